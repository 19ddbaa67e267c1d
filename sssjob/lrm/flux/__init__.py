"""Flux: states and results of jobs, types of exceptions. Ids, durations, jobspecs and R stand in modules beside this.

Sources: flux-jobs(1), JOB STATUS and RESULTS; RFC 21; recorded output of 0.88.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["ANSWERS", "EXCEPTIONS", "RESULTS", "STATES"]

#: States, and what flux jobs shows as the status of a job that is inactive: its result.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("NEW", Stage.WAITING),
    NativeState("DEPEND", Stage.WAITING),
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
#: Type of the exception that ended a job -> its result; of all others FAILED.
RESULTS: Final = {"cancel": "CANCELED", "timeout": "TIMEOUT"}
#: Type of a fatal exception -> reason.
EXCEPTIONS: Final = {"timeout": "timeout", "alloc": "launch", "exec": "launch", "dependency": "dependency",
                     "node-failure": "node-failure"}


#: Answers of flux batch.
ANSWERS: Final = SubmitAnswers(
    "flux batch", re.compile(r"\d{1,20}", re.ASCII),
    submitted=re.compile(r"(\d{1,20})", re.ASCII),
    later=re.compile(r"unable to connect|connection refused|submission is disabled|is stopped|try again|"
                     r"max-active-jobs|temporarily|no such file or directory.*local://|service not available",
                     re.IGNORECASE),
    unknown=re.compile(r"timed out|connection reset|broken pipe|lost connection|protocol error|no route to host",
                       re.IGNORECASE))
