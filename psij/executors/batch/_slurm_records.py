"""What Slurm says of jobs: its states, and the records of sacct and scontrol as statuses. Text in, objects out.

Sources: squeue(1), sacct(1), scontrol(1), JOB STATE CODES; slurm.h. Seen with 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

from psij.executors.batch._arrays import of_elements
from psij.executors.batch._terms import SourceOffError, check_status_exit_code
from psij.executors.batch.lrm import job_state, rows_by_header, whole_lines
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.slurm import NEVER, recorded, shown, state_of
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import of_runs

__all__ = ["ACCOUNTING", "WORDS", "is_unsure", "native_state", "parse_sacct", "parse_scontrol", "status_in"]


#: Fields that sacct is asked for.
ACCOUNTING = ("JobID", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "Suspended", "TotalCPU",
               "NCPUS", "NNodes", "NodeList", "MaxRSS", "AveRSS", "Partition", "AllocTRES", "ConsumedEnergyRaw",
               "Account", "QOS", "Cluster")
_SHOWN = ("JobId", "ArrayJobId", "ArrayTaskId", "JobState", "Reason", "Restarts", "ExitCode", "SubmitTime", "StartTime",
          "EndTime", "Partition", "NodeList", "NumNodes", "NumCPUs", "Account", "QOS", "TRES")

WORDS = {"timeout": "the time limit was reached", "node-failure": "a node failed", "boot": "a node did not boot",
          "preempted": "preempted by another job", "deadline": "its deadline passed", "memory": "out of memory"}


def native_state(text: str) -> tuple[NativeState, JobState] | None:
    """The state that ``CANCELLED by 0`` and the like begin with, and what PSI/J makes of it; None, with a warning, for
    one not known, and for one that changes nothing."""
    native = state_of(text)
    state = job_state(native, text.partition(" ")[0], "Slurm's job state")
    return None if native is None or state is None else (native, state)


def status_in(native: NativeState, state: JobState, metadata: dict[str, Any], said: str | None,
              code: int | None = None, signal: int | None = None) -> JobStatus:
    """A status. metadata: what is known beside the state. said: Slurm's reason, for people. signal: 0 for none."""
    if native.phase is not None:
        metadata["phase"] = native.phase
    if native.reason is not None:
        metadata["reason"] = native.reason
    elif native.stage is Stage.CANCELED and said == NEVER:
        metadata["reason"] = "dependency"
    if signal and state is not JobState.COMPLETED:
        metadata["signal"] = signal
        code = 128 + signal
        if state is JobState.FAILED:
            metadata.setdefault("reason", "signal")
    metadata = {key: value for key, value in metadata.items() if value is not None}
    times = {JobState.QUEUED: "submit_time", JobState.ACTIVE: "start_time"}
    message = said if said and said not in ("None", "NonZeroExitCode") else None
    if state.final and (native.reason or (message and state is JobState.FAILED)):
        message = f"Slurm says {native.word}" + (f", {message}" if message else "")
        message = f"{WORDS[native.reason]} ({message})" if native.reason else message
    elif state.final:
        message = None
    final_code = code if state in (JobState.COMPLETED, JobState.FAILED) else None
    return JobStatus(state, time=metadata.get(times.get(state, "end_time")), message=message,
                     exit_code=final_code if native.reason is None or signal else None, metadata=metadata)


def is_unsure(status: JobStatus | None) -> bool:
    """Whether sacct may have taken 128 off the exit code."""
    return status is not None and status.exit_code is not None and 0 < status.exit_code < 128


def parse_sacct(exit_code: int, out: str) -> dict[str, JobStatus]:
    """Statuses from ``sacct -D -P`` with the fields of ACCOUNTING; of several runs of a job, the last, with all usage.

    Text codes of 128 and more come with 128 taken off; the exit file knows better. Steps have the memory.
    """
    if exit_code != 0:
        if "storage is disabled" in out or "not supported" in out.lower():
            raise SourceOffError(out.strip())
        check_status_exit_code("sacct", exit_code, out)
    if not out.startswith("JobID|"):
        raise ValueError(f"sacct gave no header: {out[:200]!r}")
    jobs: dict[str, list[Mapping[str, str]]] = {}
    steps: dict[str, list[Mapping[str, str]]] = {}
    for row in rows_by_header(out):
        native_id, dot, _ = row["JobID"].partition(".")
        (steps if dot else jobs).setdefault(native_id, []).append(row)
    statuses = ((native_id, _record(runs, steps.get(native_id, []))) for native_id, runs in jobs.items())
    return _with_arrays({native_id: status for native_id, status in statuses if status is not None})


def _with_arrays(found: dict[str, JobStatus]) -> dict[str, JobStatus]:
    """The same with whole arrays: ``12`` from ``12_1``, ``12_2`` and ``12_[3-9]``."""
    arrays: dict[str, dict[int, JobStatus]] = {}
    for native_id, status in found.items():
        array, element, index = native_id.partition("_")
        if element:
            arrays.setdefault(array, {})[int(index) if index.isdecimal() else -1] = status
    return found | {array: of_elements([one for _, one in sorted(elements.items(), key=itemgetter(0))])
                    for array, elements in arrays.items()}


def _record(rows: list[Mapping[str, str]], steps: list[Mapping[str, str]]) -> JobStatus | None:
    runs = [recorded(row) for row in rows]
    job = of_runs(runs, map(recorded, steps))
    known = native_state(job.native_state or "")
    if known is None:
        return None
    native, state = known
    if state.final and job.end_time is None:       # not all of it is there yet
        return None
    metadata = job.facts(began=state is not JobState.QUEUED, over=state.final)
    if len(runs) > 1 and job.starts:
        metadata["starts"] = job.starts
    if job.starts and job.starts > 1:
        metadata["attempts"] = [run.attempt() for run in runs if run.ran]
    return status_in(native, state, metadata, None, job.exit_code, job.signal)


#: What scontrol says of an id that it does not know (any more), and of such an element of an array.
_UNKNOWN: Final = re.compile(r"invalid job id|^Job [\w.+\[\],-]+ not found$", re.IGNORECASE | re.MULTILINE)


def parse_scontrol(exit_code: int, out: str) -> dict[str, JobStatus]:
    """Statuses from ``scontrol -o show job``; none for an id that is not known any more."""
    if exit_code != 0 and _UNKNOWN.search(out):
        return {}
    check_status_exit_code("scontrol", exit_code, out)
    found = {}
    for line in whole_lines(out):
        pairs = [pair for pair in re.findall(r"(\S+?)=(\S*)", line) if pair[0] in _SHOWN]
        fields = dict(pairs)
        known = native_state(fields.get("JobState", ""))
        if known is None or "JobId" not in fields or len(pairs) != len(fields):
            continue        # the same field twice: a name or a comment looks like fields
        native, state = known
        job = shown(fields)
        metadata = job.facts(began=state is not JobState.QUEUED, over=state.final)
        native_id = fields["JobId"]
        if "ArrayTaskId" in fields:     # what squeue and sacct call it
            native_id = f"{fields.get('ArrayJobId', native_id)}_{fields['ArrayTaskId']}"
        found[native_id] = status_in(native, state, metadata, fields.get("Reason"), job.exit_code, job.signal)
    return _with_arrays(found)
