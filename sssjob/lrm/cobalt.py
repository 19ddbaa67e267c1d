"""Cobalt: states, times. Sources: cqm.py and qsub(1) of Cobalt; recorded output of 1.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total, utc
from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["ANSWERS", "STATES", "limit", "moment"]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("queued", Stage.WAITING),
    NativeState("maxrun_hold", Stage.WAITING),
    NativeState("user_hold", Stage.HELD, phase="HELD"),
    NativeState("admin_hold", Stage.HELD, phase="HELD"),
    NativeState("dep_hold", Stage.WAITING),
    NativeState("dep_fail", Stage.HELD, phase="HELD"),
    NativeState("starting", Stage.WAITING, phase="STARTING"),
    NativeState("running", Stage.RUNNING),
    NativeState("killing", Stage.RUNNING, phase="KILLING"),     # by a user or at the time limit
    NativeState("preempting", Stage.RUNNING),
    NativeState("preempted", Stage.AGAIN),
    NativeState("exiting", Stage.RUNNING, phase="CLEANUP"),
    NativeState("done", Stage.SILENT),
)


def moment(text: str) -> float | None:
    """Seconds since the epoch of ``Thu Sep 10 17:35:17 2015 +0000 (UTC)``; None for anything else, such as N/A."""
    match = re.fullmatch(r"(.{24}) ([+-])(\d\d)(\d\d)(?: \(.*\))?", text)
    if match is None:
        return None
    offset = total((int(match[3]), int(match[4]), 0))
    local = utc(match[1], "%a %b %d %H:%M:%S %Y")
    return None if local is None else local - offset if match[2] == "+" else local + offset


def limit(text: str) -> int:
    """Seconds of ``M``, ``H:M``, ``H:M:S``, ``D:H:M:S``; Cobalt keeps whole minutes. ValueError for another form."""
    if not re.fullmatch(r"\d{1,9}(?::\d{1,9}){0,3}", text, re.ASCII):
        raise ValueError("is no time of Cobalt")
    fields = [int(field) for field in text.split(":")]
    return total(fields if len(fields) > 2 else [*fields, 0])


#: Answers of qsub.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,10}", re.ASCII),
    submitted=re.compile(r"(\d{1,10})", re.ASCII),
    later=re.compile(r"failed to connect|draining|try again|is not (accepting|running)", re.IGNORECASE),
    unknown=re.compile(r"timed out|timeout|connection reset|broken pipe|error submitting job", re.IGNORECASE))
