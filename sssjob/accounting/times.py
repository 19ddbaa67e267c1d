"""Times as charging needs them: one moment from its text, and a stretch of time parted by a calendar of categories.

A moment without a zone is refused unless a zone is named; so is one that the clock shows twice or never. Borders of a
calendar are moments: each falls once a day, in the double hour at its first showing, in the missing hour when the clock
jumps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from sssjob.document.held import seconds
from sssjob.limits import LIMITS

__all__ = ["LONGEST", "Category", "TimeError", "moment", "parts", "shown"]

#: Seconds that a calendar parts: twenty years.
LONGEST: Final = 20 * 366 * 86400
_YEAR_10000: Final = 253_402_300_800
_LAST: Final = LIMITS.moment - 2 * 86400     # the days of a calendar are looked at to the day after the end
_EPOCH: Final = re.compile(r"[0-9]{1,14}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class TimeError(ValueError):
    """A text that is no moment, or not one moment."""


class Category(Protocol):
    """Part of a calendar: on some days from one local time to another, over midnight where it ends before it starts."""

    @property
    def name(self) -> str:
        """What rates call it."""

    @property
    def start(self) -> time:
        """The local time at which it starts."""

    @property
    def end(self) -> time:
        """The local time at which it ends, that day or the next."""

    def holds(self, day: date) -> bool:
        """Whether it starts on that day."""


def shown(epoch: int) -> str:
    """Epoch seconds as a message shows them: in UTC, and as they are behind the last year that has four digits."""
    return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%dT%H:%M:%SZ}" if epoch < _YEAR_10000 else str(epoch)


def moment(text: str, zone: ZoneInfo | None = None) -> int:
    """Epoch seconds of an epoch time (seconds or milliseconds) or of ISO 8601.

    zone: of a time that has none; a date alone is the first moment of that day there, whether its clocks show midnight
    once, twice or never. Raises TimeError.
    """
    word = text.strip()
    if _EPOCH.fullmatch(word):
        return seconds(int(word))
    try:
        when = datetime.fromisoformat(word)
    except ValueError:
        raise TimeError(f"{text!r} is neither epoch seconds nor a time such as 2026-03-29T08:00+02:00") from None
    if when.tzinfo is not None:
        return int(when.timestamp())
    if zone is None:
        raise TimeError(f"{text!r} has no zone: add one (+02:00) or name it")
    first, second = (int(when.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if first == second or _DATE.fullmatch(word):
        return first
    times = "twice" if first < second else "never"
    raise TimeError(f"{text!r} is shown {times} by the clocks of {zone.key}: add the offset from UTC")


def parts(start: int, end: int, calendar: Sequence[Category], zone: ZoneInfo) -> list[tuple[str | None, int]]:
    """(category, seconds) from start to end, in the order of first appearance; None: in no category.

    The first category of the calendar that holds counts. A stretch without length lies in the category of its start.
    Raises TimeError beyond LONGEST or the years that there are.
    """
    if not 0 <= start <= end <= _LAST or end - start > LONGEST:
        raise TimeError(f"no calendar from {start} to {end}")
    spans = [list(_spans(start, end, c, zone)) for c in calendar]
    borders = {start, *(b for seconds_by_category in spans for span in seconds_by_category for b in span
                        if start < b < end)}
    edges = [*sorted(borders), end]
    seconds_by_category: dict[str | None, int] = {}
    at = [0] * len(spans)
    for begin, stop in pairwise(edges):
        name = next((c.name for n, c in enumerate(calendar) if _inside(spans[n], at, n, begin)), None)
        seconds_by_category[name] = seconds_by_category.get(name, 0) + stop - begin
    return list(seconds_by_category.items())


def _inside(spans: list[tuple[int, int]], at: list[int], n: int, begin: int) -> bool:
    """Whether a moment lies in one of the spans; at: how many of them lie behind, moments come in order."""
    while at[n] < len(spans) and spans[at[n]][1] <= begin:
        at[n] += 1
    return at[n] < len(spans) and spans[at[n]][0] <= begin


def _spans(start: int, end: int, category: Category, zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """The stretches of one category that touch start to end, in order."""
    day = datetime.fromtimestamp(max(start - 2 * 86400, 0), UTC).date()
    last = datetime.fromtimestamp(end + 86400, UTC).date()
    over = category.end <= category.start
    while day <= last:
        if category.holds(day):
            begin, stop = _at(day, category.start, zone), _at(day + timedelta(over), category.end, zone)
            if begin < stop:
                yield begin, stop
        day += timedelta(1)


@lru_cache(maxsize=1 << 14)
def _at(day: date, clock: time, zone: ZoneInfo) -> int:
    return int(datetime.combine(day, clock, zone).timestamp())
