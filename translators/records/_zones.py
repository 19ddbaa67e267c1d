"""Times of day in a zone, as seconds of the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.translators.records._values import LATEST, Rejected

_NEAR: Final = 32           # seconds around the middle of a minute
_AROUND: Final = tuple(timedelta(hours=n) for n in range(-1, 26))      # hours of a day, and those beside it


def zone_of(name: str | None) -> tzinfo | None:
    """The zone of that name (``UTC``, ``Europe/Berlin``, ``+02:00``); UsageError for one that is not known."""
    if name is None:
        return None
    try:
        if re.fullmatch(r"[+-]\d\d:?\d\d", name, re.ASCII):
            return timezone(timedelta(hours=int(name[:3]), minutes=int(name[0] + name[-2:])))
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        raise UsageError(f"no time zone {escape(name, 60)!r} (known: UTC, +02:00, Europe/Berlin ...)") from None


def epoch_of(minute: str, zone: tzinfo, name: str) -> tuple[int, int]:
    """Epoch seconds of ``YYYY-MM-DDTHH:MM`` in a zone, by its clocks before and behind a change: the second is greater
    where this minute occurs twice, less where no clock shows it, else the same. Rejected: time."""
    try:
        local = datetime.fromisoformat(minute).replace(tzinfo=zone)
        seconds = int(local.timestamp())
        later = int(local.replace(fold=1).timestamp())
    except (ValueError, OverflowError):
        raise Rejected("time", f"{name} {minute} is no time") from None
    if not 0 <= seconds < LATEST:
        raise Rejected("time", f"{name} {minute} is no time")
    return seconds, later


def chosen(moments: tuple[int, int], near: int | None) -> tuple[int, str]:
    """(one of the moments that ``epoch_of`` gives, what is in doubt about it). Of an hour that occurs twice the first
    is taken, unless other evidence leads to a minute that begins at one of both. near: the moment of that evidence."""
    first, second = moments
    if first > second:
        return first, ("is shown by no clock of its zone (summer time begins); it is read by the clocks before, but "
                       "the log may be of another timezone")
    if first == second:
        return first, ""
    led_to = [] if near is None else [moment for moment in moments if abs(near - moment - 30) <= _NEAR]
    return (led_to[0], "") if led_to else (
        first, "occurs twice in its zone (end of summer time); the first one is taken")


def even_day(day: str, zone: tzinfo) -> int | None:
    """The first second of a day on which the clocks of a zone go on evenly; None for one on which they may not, or that
    an hour before or behind it is not as far from UTC: times of it may be shown twice, or never."""
    try:
        midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
        first = int(midnight.timestamp())
        even = len({zone.utcoffset(midnight + hours) for hours in _AROUND}) == 1
    except (ValueError, OverflowError):
        return None
    return first if even and 0 <= first < LATEST - 86400 else None
