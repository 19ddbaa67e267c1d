"""What Slurm says of jobs: its states, and the records of sacct and scontrol as statuses. Text in, objects out.

Sources: squeue(1), sacct(1), scontrol(1), JOB STATE CODES; slurm.h. Seen with 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

from psij.executors.batch._arrays import of_elements
from psij.executors.batch._terms import SourceOffError, check_status_exit_code
from psij.executors.batch.lrm import job_state, number, rows_by_header, whole_lines
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.clocks import seconds
from sssjob.lrm.hostlist import hosts
from sssjob.lrm.sizes import in_bytes
from sssjob.lrm.slurm import NEVER, NOWHERE, exit_of, gpus, state_of, tres
from sssjob.lrm.states import NativeState, Stage

__all__ = ["ACCOUNTING", "WORDS", "is_unsure", "native_state", "parse_sacct", "parse_scontrol",
           "stated", "status_in", "whole"]


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


def stated(text: str | None) -> str | None:
    """A word of an answer; None for what stands for none."""
    return None if text is None or text in NOWHERE or text == "Unknown" else text


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
    known = native_state(row["State"])
    if known is None:
        return None
    native, state = known
    if state.final and number(row["End"]) is None:       # not all of it is there yet
        return None
    metadata: dict[str, Any] = {"native_state": row["State"], "submit_time": number(runs[0]["Submit"]),
                                "queue": row["Partition"] or None, "account": row.get("Account") or None,
                                "qos": stated(row.get("QOS")), "machine": row.get("Cluster") or None}
    started = [run for run in runs if _ran(run)]
    if started and state is not JobState.QUEUED:     # of a last run that never had nodes nothing was delivered
        last = started[-1]
        metadata |= {"start_time": number(last["Start"]), "nodes": _all_nodes(last),
                     "node_count": whole(last["NNodes"]), "processors": whole(last["NCPUS"]),
                     "starts": len(started), **_gpus(last["AllocTRES"])}
    if state.final:
        metadata["end_time"] = number(row["End"])
    if len(runs) > 1 and started:
        metadata["starts"] = len(started)
    if len(started) > 1:
        metadata["attempts"] = [_attempt(run) for run in started]
    if started and state.final:
        metadata |= {"wall_seconds": _sum(number(run["ElapsedRaw"]) for run in started),
                     "cpu_seconds": _sum(seconds(run["TotalCPU"]) for run in started),
                     "suspend_seconds": _sum(seconds(run["Suspended"]) for run in started) or None,
                     "energy_joules": _sum(number(run["ConsumedEnergyRaw"]) for run in started) or None
                     } | _memory(steps)
    code, signal = exit_of(row["ExitCode"])
    return status_in(native, state, metadata, None, code, signal)


def _attempt(run: Mapping[str, str]) -> dict[str, Any]:
    """One run of a job that was put back into the queue."""
    code, signal = exit_of(run["ExitCode"])
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
    return run["NodeList"] not in NOWHERE


def _all_nodes(run: Mapping[str, str]) -> list[str] | None:
    """Its nodes; None while sacct names fewer than it counts, as it does for a moment after the end (seen in 22.05)."""
    names, count = hosts(run["NodeList"]), whole(run["NNodes"])
    return names if count in (None, len(names)) else None


def _gpus(text: str) -> dict[str, Any]:
    """GPUs of ``gres/gpu=2,gres/gpu:a100=2``: how many, and of which types where all of them are named."""
    count, types, _ = gpus((kind, Decimal(value)) for kind, value in tres(text)
                           if kind.startswith("gres/gpu") and value.isdecimal() and value.isascii())
    named = {name: int(value) for name, value in types.items()}
    return ({} if count is None else {"gpus": int(count)}) | ({"gpu_types": named} if named else {})


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
        names = fields.get("NodeList", "")
        metadata: dict[str, Any] = {"native_state": native.word, "submit_time": number(fields.get("SubmitTime", "")),
                                    "queue": fields.get("Partition"), "account": stated(fields.get("Account")),
                                    "qos": stated(fields.get("QOS"))}
        if names not in NOWHERE and state is not JobState.QUEUED:
            metadata |= {"start_time": number(fields.get("StartTime", "")), "nodes": hosts(names),
                         "node_count": whole(fields.get("NumNodes", "")),
                         "processors": whole(fields.get("NumCPUs", "")),
                         "starts": (whole(fields.get("Restarts", "")) or 0) + 1, **_gpus(fields.get("TRES", ""))}
        if state.final:
            metadata["end_time"] = number(fields.get("EndTime", ""))
        native_id = fields["JobId"]
        if "ArrayTaskId" in fields:     # what squeue and sacct call it
            native_id = f"{fields.get('ArrayJobId', native_id)}_{fields['ArrayTaskId']}"
        found[native_id] = status_in(
            native, state, metadata, fields.get("Reason"), *exit_of(fields.get("ExitCode", "")))
    return _with_arrays(found)


