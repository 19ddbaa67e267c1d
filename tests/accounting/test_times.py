"""Moments from text, and calendars over the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting.rates import TimeCategory
from sssjob.accounting.times import LONGEST, TimeError, moment, parts

BERLIN = ZoneInfo("Europe/Berlin")


def category(name: str, start: time, end: time, **more: object) -> TimeCategory:
    return TimeCategory.model_validate({"name": name, "from": start, "to": end, **more})


NIGHT = category("Night", time(22), time(6))
WEEKEND = category("Weekend", time(), time(), days=["Sat", "Sun"])
DOUBLE = category("Small hours", time(2), time(3))


def at(text: str) -> int:
    return moment(text, BERLIN)


@pytest.mark.parametrize(("text", "zone", "epoch"), [
    ("1772737200", None, 1772737200),
    ("1772737200123", None, 1772737200),                # milliseconds
    ("2026-03-05T20:00:00+01:00", None, 1772737200),
    ("2026-03-05T19:00Z", BERLIN, 1772737200),
    ("2026-03-05 20:00", BERLIN, 1772737200),
    ("2026-10-25T02:30+02:00", BERLIN, 1792888200),
    ("2026-09-06", ZoneInfo("America/Santiago"), 1788667200),       # its first moment is 1 o'clock
    ("2023-11-05", ZoneInfo("America/Havana"), 1699156800),         # the first of two midnights
])
def test_moment(text: str, zone: ZoneInfo | None, epoch: int) -> None:
    assert moment(text, zone) == epoch


@pytest.mark.parametrize(("text", "zone", "expected"), [
    ("2026-03-05T20:00", None, "has no zone"),
    ("2026-10-25T02:30", BERLIN, "shown twice"),
    ("2026-03-29T02:30", BERLIN, "shown never"),
    ("yesterday", BERLIN, "neither"),
    ("", BERLIN, "neither"),
    ("-5", BERLIN, "neither"),
])
def test_no_moment(text: str, zone: ZoneInfo | None, expected: str) -> None:
    with pytest.raises(TimeError, match=expected):
        moment(text, zone)


HOUR = 3600


@pytest.mark.parametrize(("start", "end", "calendar", "expected"), [
    ("2026-03-05T20:00", "2026-03-06T00:00", [NIGHT], [(None, 2 * HOUR), ("Night", 2 * HOUR)]),
    ("2026-03-05T23:00", "2026-03-05T23:00", [NIGHT], [("Night", 0)]),
    ("2026-03-05T22:00", "2026-03-06T06:00", [NIGHT], [("Night", 8 * HOUR)]),
    ("2026-03-05T06:00", "2026-03-05T22:00", [NIGHT], [(None, 16 * HOUR)]),
    ("2026-03-28T22:00", "2026-03-29T06:00", [NIGHT], [("Night", 7 * HOUR)]),       # clocks go forward
    ("2026-10-24T22:00", "2026-10-25T06:00", [NIGHT], [("Night", 9 * HOUR)]),       # and back
    ("2026-10-25T00:00", "2026-10-26T00:00", [WEEKEND], [("Weekend", 25 * HOUR)]),
    ("2026-10-25T00:00", "2026-10-25T06:00", [DOUBLE], [(None, 5 * HOUR), ("Small hours", 2 * HOUR)]),
    ("2026-03-29T00:00", "2026-03-29T06:00", [DOUBLE], [(None, 5 * HOUR)]),         # there is no such hour
    ("2026-03-06T21:00", "2026-03-07T07:00", [WEEKEND, NIGHT],
     [(None, HOUR), ("Night", 2 * HOUR), ("Weekend", 7 * HOUR)]),
    ("2026-12-24T12:00", "2026-12-26T12:00", [category("Holiday", time(), time(), dates=["2026-12-25"])],
     [(None, 24 * HOUR), ("Holiday", 24 * HOUR)]),
])
def test_parts(start: str, end: str, calendar: list[TimeCategory], expected: list[tuple[str | None, int]]) -> None:
    assert parts(at(start), at(end), calendar, BERLIN) == expected


@pytest.mark.parametrize(("start", "end"), [(10, 5), (-5, 5), (0, LONGEST + 1), (10**15, 10**15 + 5)])
def test_no_calendar(start: int, end: int) -> None:
    with pytest.raises(TimeError):
        parts(start, end, [NIGHT], BERLIN)


@given(st.integers(1577836800, 1893456000), st.integers(0, 20 * 86400), st.integers(0, 20 * 86400),
       st.lists(st.sampled_from([NIGHT, WEEKEND, DOUBLE]), unique_by=lambda c: c.name))
def test_parts_add_up(start: int, first: int, second: int, calendar: list[TimeCategory]) -> None:
    def seconds(a: int, b: int) -> dict[str | None, int]:
        return {name: n for name, n in parts(a, b, calendar, BERLIN) if n}

    whole = seconds(start, start + first + second)
    left, right = seconds(start, start + first), seconds(start + first, start + first + second)
    assert whole == {k: left.get(k, 0) + right.get(k, 0) for k in whole} and left.keys() | right.keys() == whole.keys()
    assert sum(whole.values()) == first + second


@given(st.integers(1577836800, 1893456000))
def test_categories_follow_the_clock(epoch: int) -> None:
    clock = datetime.fromtimestamp(epoch, UTC).astimezone(BERLIN)
    night = clock.hour >= 22 or clock.hour < 6
    assert parts(epoch, epoch + 1, [NIGHT], BERLIN)[0][0] == ("Night" if night else None)
