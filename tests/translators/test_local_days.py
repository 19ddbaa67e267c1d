"""Local times of a log, of which whole days are worked out at once: each is what it is when it is read by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.findings import Findings
from sssjob.translators import ReadContext
from sssjob.translators.records.base import Reading
from tests.strategies import examples

#: Zone -> days beside which its clocks change, by whole hours, by half of one, at midnight, or once for all by a day.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"), "America/St_Johns": ("2026-03-08", "2006-10-29"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"), "Atlantic/Azores": ("2026-03-29", "2026-10-25"),
    "America/Havana": ("2026-03-08", "2026-11-01"), "Pacific/Apia": ("2011-12-30", "2012-04-01"),
    "UTC": ("1970-01-01",),
    "Asia/Kathmandu": ("1986-01-01",), "+05:30": ("2026-06-01",),
    "Africa/Monrovia": ("1972-01-07",),
}


def alone(text: str, zone: str) -> tuple[int | None, int]:
    """(epoch seconds, findings) of one time that nothing was read before."""
    return read([text], zone)[0]


def read(texts: list[str], zone: str) -> list[tuple[int | None, int]]:
    """The same of several, one after another."""
    findings = Findings("-")
    reading, times = Reading(ReadContext(findings=findings, options={"timezone": zone})), []
    for text in texts:
        before = len(list(findings))
        times.append((reading.time(text, "Start", 1), len(list(findings)) - before))
    return times


@pytest.mark.parametrize("zone", CHANGES)
def test_days_around_a_change_of_the_clocks(zone: str) -> None:
    for day in CHANGES[zone]:
        around = [datetime.fromisoformat(day) + timedelta(minutes=minutes) for minutes in range(-1440, 3 * 1440, 13)]
        texts = [moment.isoformat() for moment in around if moment.year > 1969]
        assert read(texts, zone) == [alone(text, zone) for text in texts]


@settings(max_examples=examples(30))
@given(st.sampled_from(sorted(CHANGES)),
       st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2037, 12, 31)), max_size=9))
def test_any_times_of_a_day(zone: str, moments: list[datetime]) -> None:
    texts = [moment.replace(microsecond=0).isoformat() for moment in moments for _ in (0, 1)]
    assert read(texts, zone) == [alone(text, zone) for text in texts]


def test_seconds_and_hours_have_their_limits() -> None:
    """What is no time of a day is none on a day that is known, either; 60 is the leap second."""
    first = "2026-06-01T00:00:00"
    last = datetime(2026, 6, 1, 23, 59, 59, tzinfo=UTC)
    assert read([first, "2026-06-01T23:59:59"], "UTC")[1] == (int(last.timestamp()), 0)
    assert read([first, "2026-06-01T10:00:60"], "UTC")[1] == alone("2026-06-01T10:00:60", "UTC")
    for odd in ("2026-06-01T24:00:00", "2026-06-01T10:60:00", "2026-06-01T10:00:61"):
        with pytest.raises(Exception, match="is no time"):
            read([first, odd], "UTC")
