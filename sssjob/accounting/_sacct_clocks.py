"""Times and clocks of whole columns of sacct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sssjob.accounting._arrow import pa, pc
from sssjob.translators.records._values import EPOCHS, micros

_Array = Any            # of Arrow
_Texts = Any            # a dictionary-encoded array of Arrow
#: Forms of clocks: pattern, one of no time, and (first, behind the last) character and microseconds of each part.
_CLOCKS: Final = (
    (r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$", "00:00:00", ((0, 2, 3_600_000_000), (3, 5, 60_000_000), (6, 8, 1_000_000))),
    (r"^[0-9]{2}:[0-9]{2}\.[0-9]{3}$", "00:00.000", ((0, 2, 60_000_000), (3, 5, 1_000_000), (6, 9, 1000))),
    (r"^[0-9]-[0-9]{2}:[0-9]{2}:[0-9]{2}$", "0-00:00:00",
     ((0, 1, 86_400_000_000), (2, 4, 3_600_000_000), (5, 7, 60_000_000), (8, 10, 1_000_000))),
)


def clock_micros(texts: _Array, name: str) -> _Array:
    """Microseconds of clocks, 0 where none stands. name: of their column."""
    total = None
    for form, zero, parts in _CLOCKS:       # hardly one is like another, so that none is asked for twice
        plain = pc.match_substring_regex(texts, form)
        clocks, texts = pc.if_else(plain, texts, zero), pc.if_else(plain, "", texts)
        for start, stop, factor in parts:
            part = pc.multiply(pc.utf8_slice_codeunits(clocks, start, stop).cast(pa.int64()), factor)
            total = part if total is None else pc.add(total, part)
    return pc.add(total, numbers_of(texts.dictionary_encode(), lambda text: micros(text, name) or 0))


def whole_seconds(us: _Array) -> _Array:
    """Seconds of microseconds, half up."""
    return pc.divide(pc.add(us, 500_000), 1_000_000)


def numbers_of(coded: _Texts, number: Callable[[str], int]) -> _Array:
    """The number of each text of a dictionary-coded column, worked out once for each different one."""
    return pc.take(pa.array([number(text) for text in coded.dictionary.to_pylist()], pa.int64()), coded.indices)


def number_before(moments: _Array, borders: Sequence[int]) -> _Array:
    """How many of some borders are not behind each moment; all in epoch seconds."""
    numbers = pc.multiply(moments, 0)
    for border in borders:
        numbers = pc.add(numbers, pc.greater_equal(moments, border).cast(pa.int64()))
    return numbers


def epochs(texts: _Array, zone: str | None) -> _Array | None:
    """Epoch seconds, 0 for what is none; None where they need a zone that is not named or shows one of them twice."""
    digits = pc.match_substring_regex(texts, r"^[1-9][0-9]{8,9}$")
    epoch_seconds = pc.if_else(digits, texts, "0").cast(pa.int64())
    epoch_seconds = pc.if_else(pc.less(epoch_seconds, EPOCHS), epoch_seconds, 0)
    if pc.all(digits).as_py():
        return epoch_seconds
    iso = pc.match_substring_regex(texts, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]$")
    if not pc.any(iso).as_py():
        return epoch_seconds
    if zone is None or (zone != "UTC" and "/" not in zone):
        return None
    try:
        local = pc.if_else(iso, texts, "2000-06-01T00:00:00").cast(pa.timestamp("s"))
        if zone == "UTC":
            return pc.if_else(iso, local.cast(pa.int64()), epoch_seconds)
        zoned = pc.assume_timezone(local, zone, ambiguous="raise", nonexistent="raise")
        return pc.if_else(iso, zoned.cast(pa.timestamp("s", "UTC")).cast(pa.int64()), epoch_seconds)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
