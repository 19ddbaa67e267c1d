"""What became of a job that ended: one decision from all that is known.

A final state needs positive evidence: a word of the resource manager, a record of its accounting, the exit file, or a
cancel that was carried out. A job that only left the queue has no end yet. No process, file or clock in here.

Each fact is taken from the most trusted source that has it: accounting, then the exit file, then the queue. What other
sources say instead is kept under ``others``; nothing here judges whether it is near enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psij.executors.batch._files import ExitFile
from psij.executors.batch._identity import SKEW_S
from psij.job_state import JobState
from psij.job_status import JobStatus

_FINALLY_UNKNOWN = "it is in no queue and in no accounting record, and no exit code of it was found"
_BY_CANCEL = ("signal", "launch", "unknown-exit")
#: Exit codes of programs that end by the signals with which managers cancel jobs: SIGTERM, then SIGKILL.
_KILLED = (128 + 15, 128 + 9)
#: Reasons of ends of a run, after which there may be another one.
MAY_GO_ON = ("node-failure", "preempted", "boot")
_NOT_SOURCED = ("native_id", "sources", "confirmed_at", "reason", "requeued", "renamed", "end_unknown", "left_out")
#: Facts of which sources may give different values.
_COMPARED = frozenset((
    "submit_time", "start_time", "end_time", "wall_seconds", "suspend_seconds", "cpu_seconds", "nodes", "node_count",
    "processors", "gpus", "memory_max_bytes", "memory_average_bytes", "energy_joules", "starts", "queue", "account",
    "qos", "machine", "signal"))


@dataclass(slots=True)
class Evidence:
    """All that is known of a job that seems to have ended.

    queue: the last that the queue said of it; in_queue: whether it still does. records: of other sources by name,
    the most trusted first. canceled: we asked for its end and the resource manager agreed. missed: answers of the
    queue in a row without it. waited_s: seconds since it first seemed to have ended; silent_s: those of them in
    which some source did not answer. runaway: the queue has not listed it for so long that a record by which it
    runs counts no more. gone: it was not there any more when its end was asked for here. canceled_at: when the
    resource manager agreed to its end, seconds since the epoch. shown: exit codes that the resource manager shows as
    other ones, with these. wanted: we asked for its end, also where no answer came: an earlier client that was
    killed may have ended it. unbegun: the resource manager said that our cancel took it out of its queue before it
    began, and there was no earlier run: no record of it will come. unwritten: the script has recorded its start and no
    end, and the resource manager may show a job that a signal ended as one with exit code 0.
    """

    queue: JobStatus | None = None
    in_queue: bool = False
    records: Mapping[str, JobStatus] = field(default_factory=dict)
    exit: ExitFile | None = None
    canceled: bool = False
    missed: int = 0
    waited_s: float = 0.0
    silent_s: float = 0.0
    shown: Mapping[int, int] = field(default_factory=dict)
    runaway: bool = False
    gone: bool = False
    canceled_at: float | None = None
    wanted: bool = False
    unbegun: bool = False
    unwritten: bool = False


def decide(evidence: Evidence, accounting_s: float, lost_s: float) -> JobStatus | None:
    """The status that follows, which may be one that is not final; None when it is too early to tell.

    accounting_s: how long a record of accounting is waited for when the end itself is sure (0 without accounting).
    lost_s: how long a job of which nothing is known counts as alive, and how long a silent accounting is waited for
    when the only evidence is a cancel: the job may have ended in itself before.
    """
    patient = evidence.waited_s < accounting_s
    ended = evidence.queue is not None and evidence.queue.state.final
    final = next((name for name, record in evidence.records.items() if record.state.final), None)
    if final is not None:
        reason = (evidence.records[final].metadata or {}).get("reason")
        if reason in MAY_GO_ON and not ended and (patient or evidence.in_queue or evidence.missed < 2):
            return None
        if patient and evidence.unwritten and evidence.records[final].state is JobState.COMPLETED:
            return None                 # the exit file may come yet
        return _complete(evidence.records[final], final, evidence)
    if evidence.queue is not None and ended:
        return None if patient else _complete(evidence.queue, "queue", evidence)
    if evidence.exit is not None and not evidence.in_queue:
        return None if patient else _complete(_by_code(evidence.exit), "exit-file", evidence)
    alive = next(iter(evidence.records.values()), None)
    if alive is not None and not evidence.runaway:
        return alive
    heard_s = evidence.waited_s - evidence.silent_s
    if evidence.canceled and evidence.missed > 1 and (
            evidence.unbegun or heard_s >= accounting_s or evidence.waited_s >= lost_s):
        metadata = {"end_unknown": True} if evidence.gone else None
        canceled = JobStatus(JobState.CANCELED, evidence.canceled_at, "canceled on request", metadata=metadata)
        return _complete(canceled, "cancel", evidence)
    if heard_s >= lost_s or alive is not None:
        lost = JobStatus(JobState.FAILED, message=_FINALLY_UNKNOWN, metadata={"reason": "lost", "end_unknown": True})
        return _complete(lost, "queue", evidence)
    return None


def is_stale(exit: ExitFile, statuses: Iterable[JobStatus | None]) -> bool:
    """Whether an exit file was written before a job was submitted, as far as statuses tell when that was: of a job
    whose tag is not known the name of the file says only the native id, which may have come round."""
    submitted = [time for status in statuses if status is not None
                 and isinstance(time := (status.metadata or {}).get("submit_time"), int | float)]
    return exit.end_time is not None and bool(submitted) and exit.end_time < min(submitted) - SKEW_S


def is_of_an_earlier_run(exit: ExitFile, starts: Sequence[float]) -> bool:
    """Whether the job has recorded a later start than that of the run which wrote an exit file: both are one word of
    one script. A job that had ended may have been put back into the queue, and its next run may have been killed."""
    return exit.start_time is not None and bool(starts) and exit.start_time < starts[-1]


def _by_code(exit: ExitFile) -> JobStatus:
    return JobStatus(JobState.COMPLETED if exit.code == 0 else JobState.FAILED, exit_code=exit.code)


def _complete(status: JobStatus, source: str, evidence: Evidence) -> JobStatus:
    """The final status with what the other sources add; each key of the metadata names its source."""
    metadata: dict[str, Any] = {}
    sources: dict[str, str] = {}
    others: dict[str, dict[str, Any]] = {}
    unknown = bool((status.metadata or {}).get("end_unknown"))
    for name, over, values in _values(status, source, evidence):
        comparable = _COMPARED if _is_about_the_end(name, values, metadata) else frozenset[str]()
        for key, value in values.items():
            if key == "waits" or (key == "native_state" and not (over or unknown)):
                continue                # it does not wait or run any more
            if value is not None and key not in metadata:
                metadata[key] = value
                if key not in _NOT_SOURCED:
                    sources[key] = name
            elif value is not None and key in comparable and value != metadata[key]:
                others.setdefault(key, {})[name] = value
    state, code = _code(status, source, evidence, metadata, sources)
    if codes := {name: other for name, other in _codes(status, source, evidence)
                 if code is not None and other not in (code, evidence.shown.get(code))}:
        others["exit_code"] = codes
    elif evidence.unwritten and code == 0:
        others["exit_code"] = {"exit-file": "none, for the script did not come to its end"}
    metadata["sources"] = {"state": source, **sources}
    if others:
        metadata["others"] = others
    ended_at = metadata.get("end_time")
    return JobStatus(state, time=ended_at if isinstance(ended_at, int | float) else status.time,
                     message=status.message or _queue_message(evidence) or _message(state, code, metadata),
                     exit_code=code, metadata=metadata)


def _values(status: JobStatus, source: str, evidence: Evidence) -> Iterable[tuple[str, bool, Mapping[str, Any]]]:
    """What each source says, and whether of the end, the most trusted first; records from before the end last."""
    others = [(name, record) for name, record in evidence.records.items() if record is not status]
    yield source, True, status.metadata or {}
    yield from ((name, True, record.metadata or {}) for name, record in others if record.state.final)
    if evidence.exit is not None:
        yield "exit-file", True, {"start_time": evidence.exit.start_time, "end_time": evidence.exit.end_time}
    if evidence.queue is not None and evidence.queue is not status:
        yield "queue", evidence.queue.state.final, evidence.queue.metadata or {}
    yield from ((name, False, record.metadata or {}) for name, record in others if not record.state.final)


def _is_about_the_end(name: str, values: Mapping[str, Any], values_before: Mapping[str, Any]) -> bool:
    """Whether values can be held against what is known: the queue's last word may be about an earlier run, and that
    of a job that is being cleaned up about the nodes that are left."""
    if name != "queue":
        return True
    return not values_before.get("attempts") and "requeued" not in values


def _codes(status: JobStatus, source: str, evidence: Evidence) -> Iterable[tuple[str, int]]:
    """Exit codes by source, of ends that a program made itself."""
    statuses = [(source, status), *evidence.records.items(),
                *([("queue", evidence.queue)] if evidence.queue is not None else [])]
    for name, record in statuses:
        if record.state.final and record.exit_code is not None and "signal" not in (record.metadata or {}):
            yield name, record.exit_code
    if evidence.exit is not None:
        yield "exit-file", evidence.exit.code


def _code(status: JobStatus, source: str, evidence: Evidence, metadata: dict[str, Any],
          sources: dict[str, str]) -> tuple[JobState, int | None]:
    """State and exit code. The exit file has the true code where the program ended in itself.

    A job that was killed, or never ran, after its end was asked for is CANCELED, where the resource manager does not
    say so itself: we asked, also where nobody heard it, or the queue showed it in the phase CANCELING. Its script may
    outlive the program for long enough to write down that it was killed. Where the script has another code, the program
    had ended in itself before it was killed.
    """
    queue = (evidence.queue.metadata if evidence.queue is not None else None) or {}
    asked = evidence.canceled or evidence.wanted or queue.get("phase") == "CANCELING"
    state, code = status.state, status.exit_code
    if state is JobState.CANCELED:
        return state, None
    own_code = None if evidence.exit is None else evidence.exit.code
    killed = asked and state is JobState.FAILED and (metadata.get("reason") in _BY_CANCEL or code in _KILLED)
    if killed and own_code in (None, *_KILLED):
        metadata.pop("reason", None)
        return JobState.CANCELED, None
    for key in ("reason", "signal") if killed else ():
        metadata.pop(key, None)
        sources.pop(key, None)
    unknown = killed or metadata.get("reason") == "unknown-exit"
    plain = "signal" not in metadata and (unknown or metadata.get("reason") is None)
    if plain and code is None and state is JobState.FAILED:
        known_codes = ((name, record.exit_code) for name, record in evidence.records.items() if record.state.final)
        source, code = next(((name, exit_code) for name, exit_code in known_codes if exit_code is not None),
                            (source, None))
    if evidence.exit is not None and plain:
        code, source = evidence.exit.code, "exit-file"
        if unknown:
            state = JobState.COMPLETED
            metadata.pop("reason", None)
        state = JobState.FAILED if code else state
    if code is not None:
        sources["exit_code"] = source
    return state, code


def _queue_message(evidence: Evidence) -> str | None:
    """What the queue said of an end that it reported as a failure."""
    queue = evidence.queue
    return queue.message if queue is not None and queue.state is JobState.FAILED else None


def _message(state: JobState, code: int | None, metadata: Mapping[str, Any]) -> str | None:
    if state is not JobState.FAILED:
        return None
    if "signal" in metadata:
        return f"ended by signal {metadata['signal']}"
    return metadata.get("reason") or (f"exit code {code}" if code is not None else None)
