"""What Slurm says of jobs: its states, and the records of sacct and scontrol as statuses. Text in, objects out.

Sources: squeue(1), sacct(1), scontrol(1), JOB STATE CODES; slurm.h. Seen with 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, TypeVar

from psij.executors.batch._answers import job_state, readable, waiting, whole_lines
from psij.executors.batch._array_jobs import of_elements
from psij.executors.batch._evidence import MAY_GO_ON
from psij.executors.batch._identity import Claim, RunRecord, Whose, tags_in
from psij.executors.batch._terms import SourceOffError, check_status_exit_code
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.answers import behind_notices
from sssjob.lrm.slurm import NEVER, recorded, shown, state_of, waits_for
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import of_runs, quantity

T = TypeVar("T")

#: Fields that sacct is asked for. The last ones say whose a record is; they can hold the separator, so they are last.
ACCOUNTING = ("JobID", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "Suspended", "TotalCPU",
               "NCPUS", "NNodes", "NodeList", "MaxRSS", "AveRSS", "Partition", "AllocTRES", "ConsumedEnergyRaw",
               "Account", "QOS", "Cluster", "User", "Comment", "SubmitLine")
_SHOWN = ("JobId", "ArrayJobId", "UserId", "ArrayTaskId", "JobState", "Reason", "Restarts", "ExitCode", "SubmitTime",
          "StartTime", "EndTime", "Partition", "NodeList", "NumNodes", "NumCPUs", "Account", "QOS", "TRES")

WORDS = {"timeout": "the time limit was reached", "node-failure": "a node failed", "boot": "a node did not boot",
          "preempted": "preempted by another job", "deadline": "its deadline passed", "memory": "out of memory"}


def native_state(text: str) -> tuple[NativeState, JobState] | None:
    """The state that ``CANCELLED by 0`` and the like begin with, and what PSI/J makes of it; None, with a warning, for
    one not known, and for one that changes nothing."""
    native = state_of(text)
    state = job_state(native, text.partition(" ")[0], "Slurm's job state")
    return None if native is None or state is None else (native, state)


def status_in(native: NativeState, state: JobState, metadata: dict[str, Any], reason_text: str | None,
              code: int | None = None, signal: int | None = None) -> JobStatus:
    """A status. metadata: what is known beside the state. reason_text: Slurm's reason, for people. signal: 0 for
    none."""
    if state is JobState.QUEUED:
        metadata |= waiting(native, waits_for(reason_text or ""))
    elif native.phase is not None:
        metadata["phase"] = native.phase
    if native.reason is not None:
        metadata["reason"] = native.reason
    elif native.stage is Stage.CANCELED and reason_text == NEVER:
        metadata["reason"] = "dependency"
    if signal and state is not JobState.COMPLETED:
        metadata["signal"] = signal
        code = 128 + signal
        if state is JobState.FAILED:
            metadata.setdefault("reason", "signal")
    metadata = {key: value for key, value in metadata.items() if value is not None}
    times = {JobState.QUEUED: "submit_time", JobState.ACTIVE: "start_time"}
    message = reason_text if reason_text and reason_text not in ("None", "NonZeroExitCode") else None
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


def is_off(out: str) -> bool:
    """Whether a failed sacct says that there is no accounting here, or not in this form."""
    return "storage is disabled" in out or "not supported" in out.lower()


def parse_sacct(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``sacct -D -P`` with the fields of ACCOUNTING; of several runs of a job, the last, with all usage.

    whose: the jobs that are asked about; of records of several jobs of one number only those of the job count.
    Text codes of 128 and more come with 128 taken off; the exit file knows better. Steps have the memory.
    """
    if exit_code != 0:
        if is_off(out):
            raise SourceOffError(out.strip())
        check_status_exit_code("sacct", exit_code, out)
    out = behind_notices(out, "JobID|")
    if not out.startswith("JobID|"):
        raise ValueError(f"sacct gave no header: {out[:200]!r}")
    runs: dict[str, list[RunRecord[_Record]]] = {}
    for row in _rows(out):
        native_id, dot, _ = row["JobID"].partition(".")
        if not dot:
            runs.setdefault(native_id, []).append(RunRecord(_claim(row), _is_over(row["State"]), (row, [])))
        elif native_id in runs:         # the steps of a run follow it
            runs[native_id][-1].record[1].append(row)
    return _with_arrays(runs, lambda native_id, all_runs, own: _record(own.runs(native_id, all_runs)), whose)


def _rows(out: str) -> Iterator[dict[str, str]]:
    """Rows by the names of the columns, of which the last takes the rest; rows that are too short are left out, and of
    two that are the same one: they are of one run. Raises ValueError where all are too short."""
    header, *lines = dict.fromkeys(whole_lines(out))
    names = header.split("|")
    rows = readable("sacct", (line.split("|", len(names) - 1) for line in lines), lambda row: len(row) == len(names))
    return (dict(zip(names, row, strict=True)) for row in rows)


def _claim(row: Mapping[str, str]) -> Claim:
    """Whose a row is. Old accounting knows no command lines, and comments only where the site keeps them."""
    text = f"{row.get('Comment') or ''} {row.get('SubmitLine') or ''}"
    return Claim(tags_in(text) if row.get("SubmitLine") or tags_in(text) else None, row.get("User") or None,
                 submit_time=quantity(row.get("Submit", "")))


def _is_over(state: str) -> bool:
    """Whether a run is the last one of its job by its own word."""
    native = state_of(state)
    return native is not None and native.reason not in MAY_GO_ON and native.stage in (
        Stage.DONE, Stage.FAILED, Stage.CANCELED)


def _with_arrays(rows: Mapping[str, T], judged: Callable[[str, T, Whose], JobStatus | None],
                 whose: Whose | None) -> dict[str, JobStatus]:
    """Statuses from rows by native id, with whole arrays: ``12`` from ``12_1``, ``12_2`` and ``12_[3-9]``, as far as
    they are its own elements. Where a plain job was called 12 too, that one counts which was submitted last.

    judged: the status by a native id, its row and the jobs that are asked about; None where the row is none of theirs.
    """
    whose = Whose() if whose is None else whose
    statuses: dict[str, JobStatus] = {}
    arrays: dict[str, dict[int, JobStatus]] = {}
    for native_id, row in rows.items():
        if (status := judged(native_id, row, whose)) is not None:
            statuses[native_id] = status
        array, element, index = native_id.partition("_")
        if not element:
            continue
        if whose.is_single(array):
            whose.leave(array, "it is an element of an array")
            continue
        if native_id in whose.identities and array in whose.identities:
            status = judged(native_id, row, whose.only(array))
        if status is not None:
            arrays.setdefault(array, {})[int(index) if index.isdecimal() else -1] = status
    whole = {array: of_elements([each for _, each in sorted(elements.items(), key=itemgetter(0))])
             for array, elements in arrays.items()}
    return statuses | {array: status for array, status in whole.items()
                       if array not in statuses or _submitted(statuses[array]) <= _submitted(status)}


def _submitted(status: JobStatus) -> float:
    return float((status.metadata or {}).get("submit_time") or 0.0)


#: A row and its steps.
_Record = tuple[Mapping[str, str], list[Mapping[str, str]]]


def _record(rows: list[_Record]) -> JobStatus | None:
    if not rows:
        return None
    runs = [recorded(row) for row, _ in rows]
    job = of_runs(runs, (recorded(step) for _, steps in rows for step in steps))
    state_pair = native_state(job.native_state or "")
    if state_pair is None:
        return None
    native, state = state_pair
    if state.final and job.end_time is None:       # not all of it is there yet
        return None
    metadata = job.facts(began=state is not JobState.QUEUED, over=state.final)
    if state.final or len(runs) > 1:
        metadata["starts"] = job.starts or 0        # a controller that was killed may not know that it began the job
    if job.starts and job.starts > 1:
        metadata["attempts"] = [run.attempt() for run in runs if run.ran]
    return status_in(native, state, metadata, None, job.exit_code, job.signal)


#: What scontrol says of an id that it does not know (any more), and of such an element of an array.
_UNKNOWN: Final = re.compile(r"invalid job id|^Job [\w.+\[\],-]+ not found$", re.IGNORECASE | re.MULTILINE)


def parse_scontrol(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``scontrol -o show job``; none for an id that is not known any more, or is another job's by now."""
    if exit_code != 0 and _UNKNOWN.search(out):
        return {}
    check_status_exit_code("scontrol", exit_code, out)
    statuses: dict[str, tuple[Claim, JobStatus]] = {}
    lines = whole_lines(out)
    for line in lines:
        pairs = [pair for pair in re.findall(r"(\S+?)=(\S*)", line, re.ASCII) if pair[0] in _SHOWN]
        fields = dict(pairs)
        state_pair = native_state(fields.get("JobState", ""))
        if state_pair is None or "JobId" not in fields or len(pairs) != len(fields):
            continue        # the same field twice: a name or a comment looks like fields
        native, state = state_pair
        job = shown(fields)
        metadata = job.facts(began=state is not JobState.QUEUED, over=state.final)
        native_id = fields["JobId"]
        if "ArrayTaskId" in fields:     # what squeue and sacct call it
            native_id = f"{fields.get('ArrayJobId', native_id)}_{fields['ArrayTaskId']}"
        user = fields.get("UserId", "").partition("(")[0] or None
        claim = Claim(tags_in(line) if " Command=" in line else None, user,
                      submit_time=quantity(fields.get("SubmitTime", "")))
        status = status_in(native, state, metadata, fields.get("Reason"), job.exit_code, job.signal)
        statuses[native_id] = claim, status
    if not statuses and any(lines):
        raise ValueError(f"scontrol tells of no job what is asked for: {out[:200]!r}")
    return _with_arrays(statuses, lambda native_id, row, own: row[1] if own.takes(native_id, row[0]) else None, whose)
