"""What a run found out, written into the document: state, times, exit, amounts delivered.

Times are floored, durations rounded half up (decisions 38); a signal is no exit code (decisions 32); amounts go into
Delivered. Only what is known is written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from psij import JobState, JobStatus
from sssjob.element import Container, Property, new_property
from sssjob.model import Delivered, Job, TaskGroup
from sssjob.units import from_bytes

__all__ = ["RESULTS", "Seen", "clear", "outcome_of", "record", "record_unstarted", "stated"]

#: Results of one life of a job, taken away before another one (decisions 19).
RESULTS = ("State", "StatusMessage", "SubmitTime", "StartTime", "EndTime", "ExitCode", "StartCount", "SuspendDuration",
           "CpuDuration", "Charge")
#: Fact -> the key of a status' metadata that it is from.
_KEYS = {"SubmitTime": "submit_time", "StartTime": "start_time", "EndTime": "end_time", "ExitCode": "exit_code",
         "CpuDuration": "cpu_seconds", "SuspendDuration": "suspend_seconds", "StartCount": "starts",
         "StatusMessage": "reason", "NativeId": "native_id", "ExitSignal": "signal", "Duration": "wall_seconds",
         "Processors": "processors", "NodeCount": "node_count", "Node": "nodes", "Memory": "memory_max_bytes"}
_STATES = {JobState.NEW: "Idle", JobState.QUEUED: "Idle", JobState.STAGE_IN: "Idle"}


@dataclass(slots=True)
class Seen:
    """What is known of one started part of a job. group: the document's own TaskGroup, or None for the whole job."""

    group: TaskGroup | None = None
    native_id: str | None = None
    submitted: float | None = None
    started: float | None = None
    status: JobStatus | None = None

    def take(self, status: JobStatus) -> None:
        """Take over a new status."""
        known = status.metadata or {}
        self.native_id = known.get("native_id", self.native_id)
        self.submitted = known.get("submit_time", self.submitted)
        self.started = known.get("start_time", self.started)
        if status.state is JobState.ACTIVE and self.started is None:
            self.started = status.time
        self.status = status

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.status is not None and self.status.final

    @property
    def failed(self) -> bool:
        """Whether it ended other than well."""
        return self.final and self.status is not None and self.status.state is not JobState.COMPLETED

    @property
    def known(self) -> dict[str, Any]:
        """The metadata of the last status."""
        return (self.status.metadata if self.status is not None else None) or {}


def clear(job: Job) -> None:
    """Take the results of an earlier run away and say that the job waits."""
    for tag in RESULTS:
        job.set(tag, None)
    _strip(job)
    job.set("State", "Idle")


def _strip(scope: Container) -> None:
    """Delivered and the facts of a resource manager, here and in the task groups."""
    scope.items = [i for i in scope.items if i.tag != "Delivered" and not (
        i.tag == "Extension" and isinstance(i, Property) and i.get("type") == "LRM")]
    for child in scope.containers("TaskGroup"):
        _strip(child)


def record(job: Job, parts: Sequence[Seen]) -> None:
    """Write what is known of a job's parts into the job."""
    job.set("State", _state(parts))
    _time(job, "SubmitTime", min, (p.submitted for p in parts))
    _time(job, "StartTime", min, (p.started for p in parts))
    _native(job, [p.native_id for p in parts if p.native_id is not None])
    if any(p.started is not None for p in parts):
        job.set("StartCount", 1)
    if all(p.final for p in parts):
        _ended(job, parts)


def _state(parts: Sequence[Seen]) -> str:
    if parts and all(p.final for p in parts):
        return "Completed"
    states = {_STATES.get(p.status.state, "Running") if p.status is not None else "Idle" for p in parts}
    return "Running" if "Running" in states or any(p.final for p in parts) else "Idle"


def _time(job: Job, tag: str, choose: Any, values: Iterable[float | None]) -> None:
    known = [v for v in values if v is not None]
    if known:
        job.set(tag, math.floor(choose(known)))


def _native(job: Job, ids: Sequence[str]) -> None:
    """The native ids as Extensions, and as Id where the job has none (decisions 18)."""
    if not ids:
        return
    if job.first("Id") is None:
        job.set("Id", ids[0])
    _extensions(job, "NativeId", ids)


def _extensions(job: Job, name: str, values: Sequence[str]) -> None:
    kept = [p for p in job.all("Extension") if not (p.get("type") == "LRM" and p.get("name") == name)]
    made = [new_property("Extension", v, {"type": "LRM", "name": name}) for v in values]
    job.put("Extension", [*kept, *made])


def _ended(job: Job, parts: Sequence[Seen]) -> None:
    ran = [p for p in parts if p.started is not None]
    _time(job, "EndTime", max, (p.known.get("end_time", p.status.time if p.status else None) for p in ran or parts))
    code, signal = outcome_of(parts)
    job.set("ExitCode", code)
    _extensions(job, "ExitSignal", [] if signal is None else [str(signal)])
    job.set("StatusMessage", _message(parts))
    if any("cpu_seconds" in p.known for p in ran):
        job.set("CpuDuration", _half_up(sum(Decimal(str(p.known.get("cpu_seconds", 0))) for p in ran)))
    if ran:
        _deliver(job, ran)
        for p in ran:
            if p.group is not None:
                _deliver(p.group, [p])


def outcome_of(parts: Sequence[Seen]) -> tuple[int | None, int | None]:
    """(exit code, signal) of a job: of the first part that failed, else of the first (decisions 11, 32)."""
    counts = next((p for p in parts if p.failed), parts[0] if parts else Seen())
    signal = counts.known.get("signal")
    code = counts.status.exit_code if counts.status is not None else None
    return (None, int(signal)) if signal is not None else (code, None)


def _message(parts: Sequence[Seen]) -> str | None:
    """Reason word and text of the first part that failed (decisions 33)."""
    failed = next((p for p in parts if p.failed), None)
    if failed is None or failed.status is None:
        return None
    reason, text = failed.known.get("reason"), failed.status.message
    if failed.status.state is JobState.CANCELED:
        reason = reason or "cancel"
    return ": ".join(str(x) for x in (reason, text) if x) or None


def _half_up(seconds: Decimal | int) -> int:
    return int(Decimal(seconds).to_integral_value(ROUND_HALF_UP))


def _deliver(scope: Job | TaskGroup, parts: Sequence[Seen]) -> None:
    """Write the Delivered block of a job or a task group."""
    block = Delivered()
    start = min(p.started for p in parts if p.started is not None)
    end = max(p.known.get("end_time", p.status.time if p.status else start) for p in parts)
    wall = parts[0].known.get("wall_seconds") if len(parts) == 1 else None
    block.add("Duration", _half_up(max(Decimal(str(end - start if wall is None else wall)), Decimal(0))))
    processors = [int(p.known["processors"]) for p in parts if "processors" in p.known]
    if processors:
        block.add("Processors", _held(parts, sum(processors)))
    nodes = list(dict.fromkeys(str(n) for p in parts for n in p.known.get("nodes", ())))
    if nodes:
        block.add("NodeCount", len(nodes))
        block.add("Node", ",".join(nodes), aggregation="List" if len(nodes) > 1 else None)
    peaks = [int(p.known["memory_max_bytes"]) for p in parts if "memory_max_bytes" in p.known]
    if peaks:
        amount, units = from_bytes(max(peaks))
        block.add("Memory", amount, metric="Max", units=units)
    scope.items = [i for i in scope.items if i.tag != "Delivered"] + [block]


def _held(parts: Sequence[Seen], total: int) -> int:
    """Processors of parts side by side: on this machine no more than we may use (decisions 39)."""
    measured = all(p.known.get("sources", {}).get("processors") == "measured" for p in parts)
    return min(total, len(os.sched_getaffinity(0))) if measured else total


def record_unstarted(job: Job, message: str) -> None:
    """A job that was not started and never will be: Completed, no times, no code (decisions 22)."""
    job.set("State", "Completed")
    job.set("StatusMessage", message)


def stated(job: Job) -> list[tuple[str, str, str]]:
    """(fact, value, key of the metadata it is from) of every fact that a job holds."""
    found = [(p.tag, p.text) for tag in RESULTS for p in job.all(tag)]
    found += [(str(p.get("name")), p.text) for p in job.all("Extension") if p.get("type") == "LRM"]
    for block in job.containers("Delivered"):
        found += [(f"Delivered/{p.tag}", f"{p.text} {p.get('units') or ''}".strip()) for p in block.properties()]
    return [(name, value, _KEYS.get(name.rpartition("/")[2], "")) for name, value in found]
