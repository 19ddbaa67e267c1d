"""What bsub refuses. Source: bsub(1) of LSF 10.1, -J, -M, -n, -sp, -W; lsb.params, MAX_JOB_ARRAY_SIZE."""

from __future__ import annotations

import re
from typing import Final

from sssjob.lrm.acceptance import Judge, at_least, bounded
from sssjob.lrm.names import JOB_NAMES

__all__ = ["JUDGE"]

_ARRAY: Final = re.compile(r"([^\[\]]*)\[([\d,:\s-]+)\](?:%\d{1,9})?", re.ASCII)
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_SLOTS: Final = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?", re.ASCII)


def _name(value: str) -> str:
    """Of a name with or without a list of indices."""
    array = _ARRAY.fullmatch(value)
    name = value if array is None else array[1]
    if name and (fault := JOB_NAMES["lsf"].fault(name)):
        return fault
    for part in array[2].split(",") if array is not None else ():
        span = _RANGE.fullmatch(part.strip())
        if span is None:
            return "is no list of indices"
        if not int(span[1]) or (span[2] and int(span[2]) < int(span[1])) or (span[3] and not int(span[3])):
            return "indices are counted from 1, upwards"
    return ""


def _slots(value: str) -> str:
    slots = _SLOTS.fullmatch(value)
    if slots is None:
        return ""
    return "asks for no slots" if not int(slots[1]) else \
        "the most is less than the least" if slots[2] and int(slots[2]) < int(slots[1]) else ""


JUDGE: Final = Judge("bsub", {"-J": _name, "-n": _slots, "-nnodes": at_least(1), "-sp": bounded(1, 2**31 - 1)})
