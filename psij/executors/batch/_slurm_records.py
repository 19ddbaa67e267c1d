"""What Slurm says of jobs: its states, and the records of sacct and scontrol as statuses. Text in, objects out.

Sources: squeue(1), sacct(1), scontrol(1), JOB STATE CODES; slurm.h. Seen with 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from operator import itemgetter
from typing import Any, Final

from psij.executors.batch._arrays import of_elements
from psij.executors.batch._terms import SourceOffError, check_status_exit_code
from psij.executors.batch.lrm import number, rows_by_header, warn_unknown, whole_lines
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.clocks import seconds
from sssjob.lrm.hostlist import hosts
from sssjob.lrm.sizes import in_bytes

__all__ = ["ACCOUNTING", "WORDS", "SlurmState", "is_unsure", "native_state", "parse_sacct", "parse_scontrol",
           "stated", "status_in", "whole"]


#: Fields that sacct is asked for.
ACCOUNTING = ("JobID", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "Suspended", "TotalCPU",
               "NCPUS", "NNodes", "NodeList", "MaxRSS", "AveRSS", "Partition", "AllocTRES", "ConsumedEnergyRaw",
               "Account", "QOS", "Cluster")
_SHOWN = ("JobId", "ArrayJobId", "ArrayTaskId", "JobState", "Reason", "Restarts", "ExitCode", "SubmitTime", "StartTime",
          "EndTime", "Partition", "NodeList", "NumNodes", "NumCPUs", "Account", "QOS", "TRES")
_NEVER = "DependencyNeverSatisfied"     # reason of a job whose dependency cannot come true any more

WORDS = {"timeout": "the time limit was reached", "node-failure": "a node failed", "boot": "a node did not boot",
          "preempted": "preempted by another job", "deadline": "its deadline passed", "memory": "out of memory"}


class SlurmState(Enum):
    """Native states: what PSI/J makes of each, why it failed, the phase. None: the state of the job stays as it was."""

    def __init__(self, state: JobState | None, reason: str | None = None, phase: str | None = None) -> None:
        self.state, self.reason, self.phase = state, reason, phase

    def __new__(cls, *_: object) -> SlurmState:
        member = object.__new__(cls)
        member._value_ = len(cls.__members__)
        return member

    # base states
    PENDING = (JobState.QUEUED,)
    RUNNING = (JobState.ACTIVE,)
    SUSPENDED = (JobState.ACTIVE, None, "SUSPENDED")
    COMPLETED = (JobState.COMPLETED,)
    CANCELLED = (JobState.CANCELED,)
    FAILED = (JobState.FAILED,)
    TIMEOUT = (JobState.FAILED, "timeout")
    NODE_FAIL = (JobState.FAILED, "node-failure")
    PREEMPTED = (JobState.FAILED, "preempted")
    BOOT_FAIL = (JobState.FAILED, "boot")
    DEADLINE = (JobState.FAILED, "deadline")
    OUT_OF_MEMORY = (JobState.FAILED, "memory")
    # flags, which squeue shows instead
    COMPLETING = (JobState.ACTIVE, None, "CLEANUP")
    STAGE_OUT = (JobState.ACTIVE, None, "STAGE_OUT")
    CONFIGURING = (JobState.QUEUED, None, "CONFIGURING")
    EXPEDITING = (JobState.QUEUED,)
    RESIZING = (JobState.ACTIVE,)
    REQUEUED = (JobState.QUEUED,)
    REQUEUE_FED = (JobState.QUEUED,)
    REQUEUE_HOLD = (JobState.QUEUED,)
    SPECIAL_EXIT = (JobState.QUEUED,)
    STOPPED = (JobState.ACTIVE, None, "SUSPENDED")
    REVOKED = (None,)
    RESV_DEL_HOLD = (JobState.QUEUED,)
    SIGNALING = (JobState.ACTIVE,)


def native_state(text: str) -> SlurmState | None:
    """The state that ``CANCELLED by 0`` and the like begin with; None, with a warning, for one not known."""
    word = text.split(" ")[0].rstrip("+")
    if word in SlurmState.__members__:
        return SlurmState[word]
    warn_unknown("Slurm's job state", word)
    return None


def status_in(native: SlurmState, metadata: dict[str, Any], said: str | None, code: int | None = None,
                signal: int = 0) -> JobStatus:
    """A status. metadata: what is known beside the state. said: Slurm's reason, for people. signal: 0 for none."""
    assert native.state is not None
    if native.phase is not None:
        metadata["phase"] = native.phase
    if native.reason is not None:
        metadata["reason"] = native.reason
    elif native is SlurmState.CANCELLED and said == _NEVER:
        metadata["reason"] = "dependency"
    if signal and native.state is not JobState.COMPLETED:
        metadata["signal"] = signal
        code = 128 + signal
        if native.state is JobState.FAILED:
            metadata.setdefault("reason", "signal")
    metadata = {key: value for key, value in metadata.items() if value is not None}
    times = {JobState.QUEUED: "submit_time", JobState.ACTIVE: "start_time"}
    message = said if said and said not in ("None", "NonZeroExitCode") else None
    if native.state.final and (native.reason or (message and native.state is JobState.FAILED)):
        message = f"Slurm says {native.name}" + (f", {message}" if message else "")
        message = f"{WORDS[native.reason]} ({message})" if native.reason else message
    elif native.state.final:
        message = None
    final_code = code if native.state in (JobState.COMPLETED, JobState.FAILED) else None
    return JobStatus(native.state, time=metadata.get(times.get(native.state, "end_time")), message=message,
                     exit_code=final_code if native.reason is None or signal else None, metadata=metadata)


def _exit(text: str) -> tuple[int | None, int]:
    """Exit code and signal of ``code:signal``."""
    code, _, signal = text.partition(":")
    return (int(code) if code.isdecimal() else None), (int(signal) if signal.isdecimal() else 0)


def stated(text: str | None) -> str | None:
    """A word of an answer; None for what stands for none."""
    return None if text in (None, "", "(null)", "Unknown") else text


def is_unsure(status: JobStatus | None) -> bool:
    """Whether sacct may have taken 128 off the exit code."""
    return status is not None and status.exit_code is not None and 0 < status.exit_code < 128


def whole(text: str) -> int | None:
    """A count; None for anything else."""
    return int(text) if text.isdecimal() else None


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


def _record(runs: list[Mapping[str, str]], steps: list[Mapping[str, str]]) -> JobStatus | None:
    row = runs[-1]
    native = native_state(row["State"])
    if native is None or native.state is None:
        return None
    if native.state.final and number(row["End"]) is None:       # not all of it is there yet
        return None
    metadata: dict[str, Any] = {"native_state": row["State"], "submit_time": number(runs[0]["Submit"]),
                                "queue": row["Partition"] or None, "account": row.get("Account") or None,
                                "qos": stated(row.get("QOS")), "machine": row.get("Cluster") or None}
    started = [run for run in runs if _ran(run)]
    if started and native.state is not JobState.QUEUED:     # of a last run that never had nodes nothing was delivered
        last = started[-1]
        metadata |= {"start_time": number(last["Start"]), "nodes": _all_nodes(last),
                     "node_count": whole(last["NNodes"]), "processors": whole(last["NCPUS"]),
                     "starts": len(started), **_gpus(last["AllocTRES"])}
    if native.state.final:
        metadata["end_time"] = number(row["End"])
    if len(runs) > 1 and started:
        metadata["starts"] = len(started)
    if len(started) > 1:
        metadata["attempts"] = [_attempt(run) for run in started]
    if started and native.state.final:
        metadata |= {"wall_seconds": _sum(number(run["ElapsedRaw"]) for run in started),
                     "cpu_seconds": _sum(seconds(run["TotalCPU"]) for run in started),
                     "suspend_seconds": _sum(seconds(run["Suspended"]) for run in started) or None,
                     "energy_joules": _sum(number(run["ConsumedEnergyRaw"]) for run in started) or None
                     } | _memory(steps)
    code, signal = _exit(row["ExitCode"])
    return status_in(native, metadata, None, code, signal)


def _attempt(run: Mapping[str, str]) -> dict[str, Any]:
    """One run of a job that was put back into the queue."""
    code, signal = _exit(run["ExitCode"])
    found = {"native_state": run["State"], "start_time": number(run["Start"]), "end_time": number(run["End"]),
             "exit_code": None if signal else code, "signal": signal or None,
             "wall_seconds": number(run["ElapsedRaw"]), "nodes": _all_nodes(run)}
    return {key: value for key, value in found.items() if value is not None}


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _memory(steps: list[Mapping[str, str]]) -> dict[str, int]:
    most = [size for step in steps if (size := in_bytes(step["MaxRSS"]))]
    mean = [size for step in steps if (size := in_bytes(step["AveRSS"]))]
    return ({"memory_max_bytes": max(most)} if most else {}) | ({"memory_average_bytes": max(mean)} if mean else {})


def _ran(run: Mapping[str, str]) -> bool:
    """Whether it had nodes; a job that never ran can have times all the same."""
    return run["NodeList"] not in ("", "None assigned")


def _all_nodes(run: Mapping[str, str]) -> list[str] | None:
    """Its nodes; None while sacct names fewer than it counts, as it does for a moment after the end (seen in 22.05)."""
    names, count = hosts(run["NodeList"]), whole(run["NNodes"])
    return names if count in (None, len(names)) else None


def _gpus(tres: str) -> dict[str, Any]:
    """GPUs of ``gres/gpu=2,gres/gpu:a100=2``: how many, and of which types where all of them are named."""
    match = re.search(r"(?:^|,)gres/gpu=(\d+)", tres)
    types = {name: int(count) for name, count in re.findall(r"(?:^|,)gres/gpu:([^=,]+)=(\d+)", tres)}
    if match is None:
        return {"gpus": sum(types.values()), "gpu_types": types} if types else {}
    return {"gpus": int(match[1])} | ({"gpu_types": types} if types and sum(types.values()) == int(match[1]) else {})


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
        native = native_state(fields.get("JobState", ""))
        if native is None or native.state is None or "JobId" not in fields or len(pairs) != len(fields):
            continue        # the same field twice: a name or a comment looks like fields
        names = fields.get("NodeList", "")
        metadata: dict[str, Any] = {"native_state": native.name, "submit_time": number(fields.get("SubmitTime", "")),
                                    "queue": fields.get("Partition"), "account": stated(fields.get("Account")),
                                    "qos": stated(fields.get("QOS"))}
        if names not in ("", "(null)") and native.state is not JobState.QUEUED:
            metadata |= {"start_time": number(fields.get("StartTime", "")), "nodes": hosts(names),
                         "node_count": whole(fields.get("NumNodes", "")),
                         "processors": whole(fields.get("NumCPUs", "")),
                         "starts": (whole(fields.get("Restarts", "")) or 0) + 1, **_gpus(fields.get("TRES", ""))}
        if native.state.final:
            metadata["end_time"] = number(fields.get("EndTime", ""))
        native_id = fields["JobId"]
        if "ArrayTaskId" in fields:     # what squeue and sacct call it
            native_id = f"{fields.get('ArrayJobId', native_id)}_{fields['ArrayTaskId']}"
        found[native_id] = status_in(native, metadata, fields.get("Reason"), *_exit(fields.get("ExitCode", "")))
    return _with_arrays(found)


