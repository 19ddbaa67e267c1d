"""Sizes of memory in whole columns of sacct."""

from __future__ import annotations

from typing import Any, Final

from sssjob.accounting._arrow import pa, pc
from sssjob.accounting._sacct_clocks import numbers_of
from sssjob.document.units import to_bytes
from sssjob.translators.records.base import Rejected, amount

#: A size of memory below which percents fit into a word.
MOST_BYTES: Final = 1 << 50
_Array = Any            # of Arrow


def peaks(texts: _Array, main: _Array, whole: bool) -> _Array:
    """The greatest size of the rows of each job in bytes, 0 where none was sampled, -1 where the reader has to look at
    one. whole: whether each job has one row."""
    sizes = numbers_of(texts.dictionary_encode(), _sampled)
    if whole:
        return sizes
    owner = pc.subtract(pc.cumulative_sum(main.cast(pa.int64())), 1)
    rows = pa.table({"job": owner, "size": sizes}).group_by("job", use_threads=False).aggregate(
        [("size", "min"), ("size", "max")])
    return pc.if_else(pc.less(rows.column("size_min"), 0), -1, rows.column("size_max")).combine_chunks()


def _sampled(text: str) -> int:
    """Whole bytes of a size that was sampled, 0 for none, -1 where there is more to it."""
    try:
        size = amount(text, "maxrss") if text else None
    except Rejected:
        return -1
    exact = 0 if size is None else to_bytes(*size)
    return int(exact) if exact < MOST_BYTES and exact == int(exact) else -1


def over_time(sizes: _Array, wall: _Array) -> _Array:
    """Byte seconds, which no word holds. wall: seconds, of less than ten digits."""
    whole = pc.multiply(sizes.cast(pa.decimal128(19, 0)), wall.cast(pa.int32()).cast(pa.decimal128(10, 0)))
    return whole.cast(pa.decimal128(38, 0))
