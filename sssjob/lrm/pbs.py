"""PBS (OpenPBS, PBS Pro, Torque): states, exit statuses, hosts of a job, times and sizes of options.

Sources: qstat(1B), job states; pbs_job.h; job.h of Torque; pbs_resources(7); qsub(1B).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total
from sssjob.lrm.sizes import Size, suffixes
from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["ANSWERS", "FAILURES", "SIGNALED", "SIZE", "STATES", "TORQUE_ANSWERS", "exec_host", "seconds"]

#: Letters of job_state, some with a substate that says more.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("Q", Stage.WAITING),
    NativeState("H", Stage.HELD, phase="HELD"),
    NativeState("W", Stage.WAITING),
    NativeState("T", Stage.WAITING),
    NativeState("M", Stage.WAITING, phase="MOVED"),
    NativeState("R", Stage.RUNNING),
    NativeState("S", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("U", Stage.SUSPENDED, phase="SUSPENDED"),       # by a user who came back to the machine
    NativeState("B", Stage.RUNNING),                            # an array of which an element has begun
    NativeState("E", Stage.RUNNING, phase="CLEANUP"),
    NativeState("X", Stage.ENDED),
    NativeState("F", Stage.ENDED),
    NativeState("C", Stage.ENDED),
    NativeState("0", Stage.SILENT),
    NativeState("R 41", Stage.WAITING, phase="PRERUN"),
    NativeState("H 22", Stage.WAITING),                         # waits for another job
    NativeState("E 51", Stage.RUNNING, phase="STAGE_OUT"),
    NativeState("F 94", Stage.WAITING, phase="MOVED"),          # another server has it, of which nothing is seen here
)
#: An Exit_status from here on is this and the number of a signal.
SIGNALED: Final = 256
#: Exit_status below zero -> reason with Torque, and with OpenPBS and PBS Pro.
FAILURES: Final[Mapping[int, tuple[str, str]]] = {
    -1: ("launch", "launch"), -2: ("launch", "launch"), -3: ("launch", "launch"), -8: ("launch", "launch"),
    -9: ("launch", ""), -10: ("memory", ""), -11: ("timeout", ""), -12: ("cpu-limit", ""),
    -24: ("", "cpu-limit"), -25: ("", "cpu-limit"), -26: ("", "memory"), -27: ("", "memory"), -28: ("", "cpu-limit"),
    -29: ("", "timeout"),
}
#: Bytes where no suffix stands; words have eight bytes.
SIZE: Final = Size({"": 1, "b": 1, "w": 8} | suffixes("kmgtp", ("", "b", "w")))
_HOSTS: Final = 100_000
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)


@lru_cache(maxsize=1 << 12)
def exec_host(text: str) -> tuple[tuple[str, ...], int, str]:
    """(hosts, processors, what is wrong) of ``h/0+h/1``, ``h/0-3,7``, ``h/0*13``; ``*0`` leaves it to exec_vnode."""
    hosts: dict[str, None] = {}
    slots = 0
    for part in text.split("+") if text else ():
        host, _, places = part.partition("/")
        hosts[host.strip("()")] = None
        if len(hosts) > _HOSTS:
            return (), 0, f"more than {_HOSTS} hosts"
        _, star, times = places.partition("*")
        if star:
            slots += int(times) if _COUNT.fullmatch(times) else 0
            continue
        for piece in places.split(","):
            low, dash, high = piece.partition("-")
            if not re.fullmatch(r"\d{0,9}", low + high, re.ASCII) or (dash and not (low and high)):
                return (), 0, f"{part[:60]!a} is not of the form host/0-3"
            slots += max(0, int(high) - int(low) + 1) if dash else 1
    return tuple(hosts), slots, ""


def seconds(text: str, fields: int = 3) -> int:
    """Seconds of ``S``, ``M:S``, ``H:M:S``; a fraction of .5 or more is one second. ValueError for another form.

    fields: 4 for Torque, which also takes ``D:H:M:S`` and drops fractions.
    """
    if not _TIMES[fields].fullmatch(text):
        raise ValueError("is no time of PBS")
    whole, _, part = text.partition(".")
    return total([int(field) for field in whole.split(":")]) + (fields == 3 and part[:1] >= "5")


_TIMES: Final = {fields: re.compile(rf"\d{{1,12}}(?::\d{{1,9}}){{0,{fields - 1}}}(?:\.\d{{1,9}})?", re.ASCII)
                 for fields in (3, 4)}


#: Answers of qsub of OpenPBS and PBS Pro.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,15}(?:\[\d*\])?\.[\w.-]{1,255}", re.ASCII),
    submitted=re.compile(r"(\d{1,15}(?:\[\d*\])?\.[\w.-]{1,255})", re.ASCII),
    later=re.compile(r"(cannot|could not|unable to) (connect|communicate)|connection refused|no route to host|"
                     r"try again|would exceed|maximum number of jobs|exceed.*jobs|server (is )?(too )?busy|"
                     r"shutting down|temporarily", re.IGNORECASE),
    unknown=re.compile(r"timed? ?out|end of file|protocol error|system error|connection (reset|lost|closed)|"
                       r"broken pipe|premature|expired", re.IGNORECASE))
#: The same of Torque, whose ids may come without a server.
TORQUE_ANSWERS: Final = replace(
    ANSWERS, native_id=re.compile(r"\d{1,15}(?:\[\d*\]|-\d{1,10})?(?:\.[\w.-]{1,255})?", re.ASCII),
    submitted=re.compile(r"(\d{1,15}(?:\[\d*\]|-\d{1,10})?(?:\.[\w.-]{1,255})?)", re.ASCII))
