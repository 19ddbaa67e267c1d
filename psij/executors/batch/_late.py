"""What accounting tells of jobs long after their ends: for who has noted an end that it did not tell at the time.

The records are judged by ``_evidence``, as if they had been there at the end; what had been known of it stands in for
the queue and the exit file, whose files are gone by now.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from psij.executors.batch._asking import BatchAsking
from psij.executors.batch._evidence import Evidence, decide
from psij.executors.batch._files import ExitFile
from psij.executors.batch._identity import Identity, Whose
from psij.executors.batch._news import add_starts
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_UNKNOWN = ("lost", "unknown-exit")                     # reasons of ends that nobody could tell
_AFTERWARDS = ("stage-in", "stage-out", "cleanup")      # reasons that no accounting knows of
_QUEUE = "queue"
_EXIT_FILE = "exit-file"


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that has ended. identity: by what it is told from others of its native id. sure: its exit code is known, so
    that nobody has to be asked for that where accounting shows another one."""

    native_id: str
    identity: Identity = field(default_factory=Identity)
    sure: bool = False


def late_records(executor: BatchSchedulerExecutor,
                 asked: Sequence[EndedJob]) -> tuple[dict[str, dict[str, JobStatus]], bool]:
    """Records of accounting by native id and source, and whether a source gave no answer; many jobs by one command.

    asked: no two of them have the same native id.
    """
    records: dict[str, dict[str, JobStatus]] = {}
    silent = False
    wanted_ids = {each.native_id for each in asked}
    for answer, mute in _answers(executor, asked):
        silent |= mute
        for native_id, by_source in answer.items():
            own = {name: record for name, record in by_source.items() if name not in executor._LIVE_SOURCES}
            if own and native_id in wanted_ids:
                records[native_id] = own
    return records, silent


def _answers(executor: BatchSchedulerExecutor,
             asked: Sequence[EndedJob]) -> Iterator[tuple[dict[str, dict[str, JobStatus]], bool]]:
    """What the sources say of some jobs at a time."""
    size = executor._ACCOUNTED_AT_ONCE
    identities = {each.native_id: each.identity for each in asked}
    for ask, sure in ((partial(BatchAsking._ask_sources, executor), True), (executor._ask_sources, False)):
        native_ids = list(dict.fromkeys(each.native_id for each in asked if each.sure == sure))
        for start in range(0, len(native_ids), size):
            ids = native_ids[start:start + size]
            whose = Whose({native_id: identities[native_id] for native_id in ids})
            late = set() if executor._LIVE_SOURCES else set(ids)            # each job alone is asked for life
            records, silent = ask(ids, late, whose)
            yield {each: records[each] for each in ids
                   if each in records}, silent      # an array is no job of its number


def complete(before: JobStatus, records: Mapping[str, JobStatus], shown: Mapping[int, int]) -> JobStatus | None:
    """The final status of a job with what accounting tells of it now; None where that is nothing, or nothing new.

    shown: exit codes that the resource manager shows as other ones, with these. An end that a source told stays what it
    is, as one after which files could not be staged out does, and what accounting says of it instead stands among
    ``others``. Accounting decides an end that nobody told, such as that of a job which had gone after its cancel.
    """
    facts = dict(before.metadata or {})
    sources, others = facts.pop("sources", {}), facts.pop("others", {})
    reason = facts.pop("reason", None)
    status = decide(Evidence(
        queue=JobStatus(before.state, time=before.time, exit_code=before.exit_code, metadata=facts),
        records=records, exit=_exit_file(before, sources), canceled=sources.get("state") == "cancel", missed=2,
        waited_s=math.inf, shown=shown), 0.0, 0.0)
    if status is None or not any(record.state.final for record in records.values()):
        return None
    metadata = status.metadata or {}
    _name_sources(metadata, sources, others)
    if metadata.get("starts") == 0:
        add_starts(metadata, facts.get("starts", int("start_time" in facts)),
                   sources.get("starts", sources.get("start_time", _QUEUE)))
    if "end_time" in metadata:
        metadata.pop("end_unknown", None)
    untold = reason in _UNKNOWN or "end_unknown" in facts or sources.get("state") == "cancel"
    if not untold or (status.state is before.state and reason not in _UNKNOWN):
        _keep_end(status, before, sources, shown)
    return None if _said(status) == _said(before) else status


def _exit_file(before: JobStatus, sources: Mapping[str, Any]) -> ExitFile | None:
    """What the exit file said, where the exit code was from it, with the times that it told of the last run."""
    if sources.get("exit_code") != _EXIT_FILE or before.exit_code is None:
        return None
    metadata = before.metadata or {}
    times = {key: metadata.get(key) if sources.get(key) == _EXIT_FILE else None for key in ("start_time", "end_time")}
    return ExitFile(before.exit_code, **times)


def _name_sources(metadata: dict[str, Any], sources: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Name the sources of what was known before, for which ``queue`` stood, and keep what other ones had said."""
    named = metadata["sources"]
    for key, name in named.items():
        if name == _QUEUE:
            named[key] = sources.get(key, sources.get("state", _QUEUE))
    others_by_source: dict[str, dict[str, Any]] = {}
    for key, values in [*others.items(), *metadata.pop("others", {}).items()]:
        value = metadata.get(key)
        for name, other in values.items():
            source = sources.get(key, _QUEUE) if name == _QUEUE else name
            if source != named.get(key) and other != value:
                others_by_source.setdefault(key, {})[source] = other
    if others_by_source:
        metadata["others"] = others_by_source


def _keep_end(status: JobStatus, before: JobStatus, sources: Mapping[str, Any], shown: Mapping[int, int]) -> None:
    """Have a status tell the end that was known before; what accounting says instead stands among ``others``."""
    metadata, metadata_before = status.metadata or {}, before.metadata or {}
    reason = metadata_before.get("reason")
    kept: dict[str, Any] = {"exit_code": before.exit_code}
    end: dict[str, Any] = {"exit_code": status.exit_code}
    if status.state is not before.state and reason not in _AFTERWARDS:
        kept |= {"state": before.state.name, "signal": metadata_before.get("signal")}
        end |= {"state": status.state.name, "signal": metadata.pop("signal", None)}
        metadata |= {} if kept["signal"] is None else {"signal": kept["signal"]}
    elif before.exit_code is None:
        kept = end
    named, others = metadata["sources"], metadata.pop("others", {})
    for key in kept:
        if kept[key] != end[key]:
            others.pop(key, None)
            if (source := named.pop(key, None)) is not None and end[key] != shown.get(kept[key]):
                others[key] = {source: end[key]}
            if kept[key] is not None:
                named[key] = sources.get(key, sources.get("state", _QUEUE))
    metadata.pop("reason", None)
    metadata |= ({"others": others} if others else {}) | ({} if reason is None else {"reason": reason})
    status.state, status.message, status.exit_code = before.state, before.message, kept["exit_code"]


def _said(status: JobStatus) -> tuple[Any, ...]:
    """All that a status says but when it was last confirmed."""
    facts = {key: value for key, value in (status.metadata or {}).items() if key != "confirmed_at"}
    return status.state, status.exit_code, status.message, facts
