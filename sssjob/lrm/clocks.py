"""Times: ``1-02:03:04.5`` in microseconds or seconds, seconds as ``HH:MM:SS``, times of day in UTC.

What one manager alone spells (minutes without seconds, four fields between colons) stands in its own module; the
arithmetic is here.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = ["UNITS", "clock", "microseconds", "seconds", "time_zone", "total", "utc"]

_CLOCK: Final = re.compile(r"(?:(\d{1,9})-)?(?:(?:(\d{1,12}):)?(\d{1,12}):)?(\d{1,18})(?:\.(\d{1,12}))?", re.ASCII)
#: Letter of a unit -> seconds, from the smallest on.
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def total(fields: Sequence[int]) -> int:
    """Seconds of ``[weeks, days, hours, minutes, seconds]``, of which the first ones may be missing."""
    return sum(map(mul, reversed(fields), UNITS.values()))


def clock(seconds: int, width: int = 2) -> str:
    """``HH:MM:SS``, which Slurm, PBS, Grid Engine and Cobalt read alike. width: least digits of the hours."""
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:0{width}}:{minutes % 60:02}:{seconds:02}"


def microseconds(text: str) -> int | None:
    """Microseconds of ``[[D-]HH:]MM:SS[.mmm]`` or of plain seconds; None for anything else."""
    clock = _CLOCK.fullmatch(text)
    if not clock:
        return None
    *fields, part = clock.groups()
    return total([int(field or 0) for field in fields]) * 1_000_000 + (int((part + "00000")[:6]) if part else 0)


def seconds(text: str) -> float | None:
    """The same in seconds."""
    micros = microseconds(text)
    return None if micros is None else micros / 1_000_000


def time_zone(name: str) -> ZoneInfo:
    """The time zone of that name in the IANA database. Raises ValueError for one that is not known."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f"{name!r} is no time zone, as Europe/Berlin") from None


def utc(text: str, form: str) -> float | None:
    """Seconds since the epoch of a time of day in UTC; None for anything else. form: as of strptime(3)."""
    try:
        return float(calendar.timegm(time.strptime(text, form)))
    except ValueError:
        return None
