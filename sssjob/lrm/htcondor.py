"""HTCondor: states of jobs. Source: condor_includes/proc.h, JobStatus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage

__all__ = ["ANSWERS", "NUMBERS", "STATES"]

#: JobStatus of an ad -> state.
NUMBERS: Final[Mapping[int, NativeState]] = {
    0: NativeState("UNEXPANDED", Stage.WAITING),
    1: NativeState("IDLE", Stage.WAITING),
    2: NativeState("RUNNING", Stage.RUNNING),
    3: NativeState("REMOVED", Stage.ENDED, "cancel", "CANCELING"),
    4: NativeState("COMPLETED", Stage.ENDED),
    5: NativeState("HELD", Stage.HELD, phase="HELD"),
    6: NativeState("TRANSFERRING_OUTPUT", Stage.RUNNING, phase="STAGE_OUT"),
    7: NativeState("SUSPENDED", Stage.SUSPENDED, phase="SUSPENDED"),
    8: NativeState("FAILED", Stage.FAILED),
    9: NativeState("BLOCKED", Stage.WAITING),
    10: NativeState("PREPARING", Stage.WAITING, phase="STAGE_IN"),
}
STATES: Final[Mapping[str, NativeState]] = {state.word: state for state in NUMBERS.values()}


#: Answers of condor_submit.
ANSWERS: Final = SubmitAnswers(
    "condor_submit", re.compile(r"(\d{1,10})\.(\d{1,10})", re.ASCII),
    submitted=re.compile(r"(\d+\.\d+) - \1", re.ASCII),
    later=re.compile(r"can't find address|failed to connect|unable to connect|would exceed MAX_JOBS|try again|"
                     r"submits are disabled", re.IGNORECASE),
    unknown=re.compile(r"failed to commit|timed out|timeout|connection (reset|closed)|failed submission",
                       re.IGNORECASE))
