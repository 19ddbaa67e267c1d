"""HTCondor: states of jobs, and what the ad of a job says that it used.

Sources: condor_includes/proc.h, JobStatus; the job ClassAd attributes of the HTCondor manual, appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

from sssjob.lrm.acceptance import Judge, Refusal, at_least, bounded
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import Usage

__all__ = [
    "ANSWERS", "CPU", "JUDGE", "NUMBERS", "STATES", "cpu", "ended_at", "host_of", "in_use", "peak", "recorded",
    "started_at", "state_of",
]

_N = TypeVar("_N", int, float, Decimal)
_Number = Callable[[str], _N | None]

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
#: Time of the processor in user and system mode: of all runs, which not every release has, and of the last one.
CPU: Final = (("CumulativeRemoteUserCpu", "CumulativeRemoteSysCpu"), ("RemoteUserCpu", "RemoteSysCpu"))


def state_of(ad: Mapping[str, Any]) -> NativeState | None:
    """The state of an ad in JSON; None for a number that is not known."""
    number = ad.get("JobStatus")
    return NUMBERS.get(number) if isinstance(number, int) and not isinstance(number, bool) else None


# -- of an ad, of which ``number`` gives an attribute as a number, None where it has none
def cpu(number: _Number[_N]) -> _N | None:
    """Seconds of CPU time, of all runs where the ad has them."""
    pairs = ((number(user), number(system)) for user, system in CPU)
    return next((user + system for user, system in pairs if user is not None and system is not None), None)


def in_use(wall: _N, suspended: _N | None) -> _N:
    """Wall time without the suspended time, which RemoteWallClockTime holds. Both in seconds, of all runs."""
    return wall if suspended is None else max(wall - wall, wall - suspended)


def peak(number: _Number[_N]) -> _N | None:
    """The greatest resident size in KiB, as it was sampled rather than as it is rounded up; None for none."""
    return number("ResidentSetSize_RAW") or number("ResidentSetSize") or None


def started_at(number: _Number[_N]) -> _N | None:
    """The time of the first start, else of the last one, in seconds since the epoch."""
    return number("JobStartDate") or number("JobCurrentStartDate") or None


def ended_at(number: _Number[_N], state: NativeState | None) -> _N | None:
    """When a job came to its end, in seconds since the epoch: of one that was removed CompletionDate is that of an
    earlier run."""
    return (None if state is NUMBERS[3] else number("CompletionDate")) or number("EnteredCurrentStatus") or None


def host_of(text: Callable[[str], Any]) -> str | None:
    """The host on which a job runs, else on which it ran, of ``slot1@host``. text: gives an attribute, None where there
    is none."""
    slot = text("RemoteHost") or text("LastRemoteHost")
    return (slot.rpartition("@")[2] or None) if isinstance(slot, str) else None


def recorded(ad: Mapping[str, Any]) -> Usage:
    """What an ad in JSON says of a job; of one in the queue the place is RemoteHost. Dates of 0 were not set."""
    def number(name: str) -> float | None:
        """A number of the ad; None for one that is not there, negative, or a date of 0."""
        value = ad.get(name)
        usable = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        return value if usable and (value or not name.endswith("Date")) else None

    native, host, started, wall = state_of(ad), host_of(ad.get), started_at(number), number("RemoteWallClockTime")
    away, size = number("CumulativeSuspensionTime") or None, peak(number)
    starts, account = number("NumJobStarts") or 0, ad.get("AcctGroup")
    return Usage(
        native_state=None if native is None else native.word, submit_time=number("QDate"),
        account=account if isinstance(account, str) else None, ran=started is not None, start_time=started,
        nodes=None if host is None else [host], node_count=None if host is None else 1,
        processors=number("CpusProvisioned"), gpus=number("GPUsProvisioned"), starts=starts if starts > 1 else None,
        end_time=ended_at(number, native),
        wall_seconds=None if wall is None else in_use(wall, away), suspend_seconds=away, cpu_seconds=cpu(number),
        memory_max_bytes=None if size is None else int(size * 1024))


#: Answers of condor_submit, by its source.
ANSWERS: Final = SubmitAnswers(
    "condor_submit", re.compile(r"(\d{1,10})\.(\d{1,10})", re.ASCII),
    submitted=re.compile(r"(\d+\.\d+) - \1", re.ASCII),
    full=re.compile(r"would exceed MAX_JOBS_(?:SUBMITTED|PER_OWNER)", re.IGNORECASE),
    later=re.compile(r"can't find address|failed to connect|unable to connect|try again|"
                     r"submits are disabled", re.IGNORECASE),
    unknown=re.compile(r"failed to commit|timed out|timeout|connection (reset|closed)|failed submission",
                       re.IGNORECASE))


# What condor_submit refuses. Sources: submit_utils.cpp of HTCondor; condor_submit(1); the 23.0 bindings.

def _group(value: str) -> str:
    """The name of a group; a placeholder of a template may have blanks."""
    return "holds a blank" if any(map(str.isspace, value)) and "{" not in value else ""


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    if not any(options.get(name, "").strip() for name in ("executable", "docker_image", "container_image", "shell")):
        yield Refusal("executable", "neither an executable nor a container is named", missing=True)


JUDGE: Final = Judge("condor_submit", {"accounting_group": _group, "machine_count": at_least(1),
                                       "max_retries": at_least(0), "priority": bounded(-2**31, 2**31 - 1)}, _together)
