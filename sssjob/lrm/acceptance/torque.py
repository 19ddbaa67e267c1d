"""What qsub of Torque refuses. Sources: qsub(1B) of Torque, -N, -p, -q, -t; array_func.c, parse_array_request;
process_opt_m of qsub_functions.c."""

from __future__ import annotations

import re
from typing import Final

from sssjob.lrm.acceptance import Judge, bounded, one_word
from sssjob.lrm.names import JOB_NAMES

__all__ = ["JUDGE"]

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def _indices(value: str) -> str:
    spans = [_RANGE.fullmatch(part) for part in re.sub(r"%\d{1,9}\Z", "", value).split(",")]
    if None in spans:
        return "is no list of indices"
    backwards = any(span is not None and span[2] is not None and int(span[2]) < int(span[1]) for span in spans)
    return "a range runs backwards" if backwards else ""


def _events(value: str) -> str:
    return "" if re.fullmatch(r"n|p|[abef]+", value) else "is n or p alone, or letters of abef"


JUDGE: Final = Judge("qsub", {
    "-t": _indices, "-m": _events, "-N": JOB_NAMES["torque"].fault, "-q": one_word(", ", "destination"),
    "-p": bounded(-1024, 1023),
})
