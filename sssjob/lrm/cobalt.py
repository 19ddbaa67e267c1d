"""Cobalt: states, times, what qstat tells. Sources: cqm.py and qsub(1) of Cobalt; recorded output of 1.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm import waits
from sssjob.lrm.acceptance import Judge, at_least, one_word
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total, utc
from sssjob.lrm.states import NativeState, Stage, by_word
from sssjob.lrm.usage import Usage, quantity

__all__ = ["ANSWERS", "JUDGE", "STATES", "limit", "moment", "recorded"]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("queued", Stage.WAITING),
    NativeState("maxrun_hold", Stage.WAITING, waits=waits.LIMIT),
    NativeState("user_hold", Stage.HELD, phase="HELD"),
    NativeState("admin_hold", Stage.HELD, phase="HELD"),
    NativeState("dep_hold", Stage.WAITING, waits=waits.DEPENDENCY),
    NativeState("dep_fail", Stage.HELD, phase="HELD", waits=waits.NEVER),      # what it waits for has failed
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


def recorded(row: Mapping[str, str]) -> Usage:
    """What ``qstat -l`` says of a job, by the names of its columns. Its places are numbers of nodes or a block."""
    native = STATES.get(row["State"])
    return Usage(
        native_state=row["State"], queue=row.get("Queue"), submit_time=moment(row.get("SubmitTime", "")),
        ran=native is not None and native.stage is Stage.RUNNING, start_time=moment(row.get("StartTime", "")),
        node_count=quantity(row.get("Nodes", "")))


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
    full=re.compile(r"the limit of \d+ jobs per user", re.IGNORECASE),      # maxqueued of a queue
    later=re.compile(r"failed to connect|draining|try again|is not (accepting|running)", re.IGNORECASE),
    unknown=re.compile(r"timed out|timeout|connection reset|broken pipe|error submitting job", re.IGNORECASE))


# What qsub of Cobalt refuses. Source: qsub.py of Cobalt, which wants a time and a number of nodes.

JUDGE: Final = Judge("qsub", {
    "--nodecount": at_least(1), "--proccount": at_least(1), "--queue": one_word(", ", "queue"),
}, needed={"--nodecount": "a number of nodes is required", "--time": "a time limit is required"})
