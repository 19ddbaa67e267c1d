"""Flux: states and results of jobs, types of exceptions, what flux jobs tells.

Ids, durations, jobspecs and R stand in modules beside this.

Sources: flux-jobs(1), JOB STATUS and RESULTS; RFC 21; recorded output of 0.88.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sssjob.lrm import waits
from sssjob.lrm.acceptance import Judge, Refusal, at_least, one_word
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.hostlist import hosts
from sssjob.lrm.states import NativeState, Stage, by_word
from sssjob.lrm.usage import Usage, end_of, whole

__all__ = [
    "ANSWERS", "EXCEPTIONS", "HOLD", "JUDGE", "RESULTS", "RESULT_NUMBERS", "STATES", "STATE_NUMBERS", "recorded",
    "waits_for",
]

#: States, and what flux jobs shows as the status of a job that is inactive: its result.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("NEW", Stage.WAITING),
    NativeState("DEPEND", Stage.WAITING, waits=waits.DEPENDENCY),
    NativeState("PRIORITY", Stage.WAITING),
    NativeState("SCHED", Stage.WAITING),
    NativeState("RUN", Stage.RUNNING),
    NativeState("CLEANUP", Stage.RUNNING, phase="CLEANUP"),
    NativeState("INACTIVE", Stage.ENDED),
    NativeState("COMPLETED", Stage.DONE),
    NativeState("FAILED", Stage.FAILED),
    NativeState("CANCELED", Stage.CANCELED),
    NativeState("TIMEOUT", Stage.FAILED, "timeout"),
)
_WORDS: Final = tuple(STATES)
#: The numbers by which Flux's own interface (job-list) tells states, and results. Source: flux-core, job.h.
STATE_NUMBERS: Final = {str(1 << n): word for n, word in enumerate(_WORDS[:_WORDS.index("COMPLETED")])}
RESULT_NUMBERS: Final = {str(1 << n): word for n, word in enumerate(_WORDS[_WORDS.index("COMPLETED"):])}
#: Type of the exception that ended a job -> its result; of all others FAILED.
RESULTS: Final = {"cancel": "CANCELED", "timeout": "TIMEOUT"}
#: Type of a fatal exception -> reason.
EXCEPTIONS: Final = {"timeout": "timeout", "alloc": "launch", "exec": "launch", "dependency": "dependency",
                     "node-failure": "node-failure"}

#: Urgency of a job that is held. Source: flux-submit(1), --urgency.
HOLD: Final = 0
#: The dependency of a job whose time has not come. Source: flux-submit(1), DEPENDENCIES.
_BEGIN: Final = "begin-time"


def waits_for(job: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Kind and words of why a job of ``flux jobs --json`` waits, None where nothing says it. An allocation that cannot
    be had at all is no reason to wait: it ends the job."""
    if job.get("urgency") == HOLD:
        return waits.HELD, "urgency 0"
    names = job.get("dependencies")
    named = [str(name) for name in names] if isinstance(names, list) else []
    if named:
        begin = all(name.startswith(_BEGIN) for name in named)
        return waits.BEGIN if begin else waits.DEPENDENCY, ", ".join(named)[:400]
    notes = job.get("annotations")
    scheduler = notes.get("sched") if isinstance(notes, dict) else None
    pending = scheduler.get("reason_pending") if isinstance(scheduler, dict) else None
    return (waits.TURN, str(pending)[:400]) if pending else (None, None)


_MOST_STATUS: Final = 0xFFFF        # of a wait status


def recorded(job: Mapping[str, Any]) -> Usage:
    """A job as ``flux jobs --json`` has it.

    t_run is the time of its allocation, t_cleanup of its end. A job that never ran has no t_run and no wait status.
    """
    status = job.get("waitstatus")
    code, signal = end_of(status) if isinstance(status, int) and 0 <= status <= _MOST_STATUS else (None, None)
    return Usage(
        native_state=job.get("status"), submit_time=job.get("t_submit"), queue=job.get("queue"),
        account=job.get("bank"), ran=job.get("t_run") is not None, start_time=job.get("t_run"),
        nodes=hosts(job.get("nodelist") or "") or None, node_count=job.get("nnodes"), processors=job.get("ncores"),
        end_time=job.get("t_cleanup"), wall_seconds=job.get("runtime"), exit_code=code, signal=signal)


#: Answers of flux batch; guesses, as no output of one that failed was recorded.
ANSWERS: Final = SubmitAnswers(
    "flux batch", re.compile(r"\d{1,20}", re.ASCII),
    submitted=re.compile(r"(\d{1,20})", re.ASCII),
    # of flux-accounting's plugin, which counts the active jobs of a user and bank
    full=re.compile(r"max(?:imum)?[ _-](?:number of )?active[ _-]jobs", re.IGNORECASE),
    later=re.compile(r"unable to connect|connection refused|submission is disabled|is stopped|try again|"
                     r"temporarily|no such file or directory.*local://|service not available",
                     re.IGNORECASE),
    unknown=re.compile(r"timed out|connection reset|broken pipe|lost connection|protocol error|no route to host",
                       re.IGNORECASE))


# What ``flux batch`` and a broker refuse. Sources: base.py and Jobspec.py of the bindings of flux-core 0.88, seen with
# a live broker; flux-batch(1).

def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    nodes, slots = whole(options.get("--nodes")), whole(options.get("--nslots"))
    if nodes is not None and slots is not None and 0 < slots < nodes:
        yield Refusal("--nodes", f"{nodes} nodes for {slots} slots")
    if "--exclusive" in options and not options.get("--nodes"):
        yield Refusal("--exclusive", "--exclusive wants --nodes")
    if slots == 0 and not options.get("--nodes"):
        yield Refusal("--nslots", "asks for no slots")


JUDGE: Final = Judge("flux batch", {
    "--nodes": at_least(1), "--cores-per-slot": at_least(1), "--gpus-per-slot": at_least(0),
    "--queue": one_word(", ", "queue"),
}, _together)
