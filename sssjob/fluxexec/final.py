"""Builds the final status of a job from the events that the job manager has recorded for it."""

from __future__ import annotations

import os
from typing import Any, Final

from psij import JobState, JobStatus
from sssjob.document.lexical import LexicalError
from sssjob.fluxexec.manager import ManagedJob, Result
from sssjob.lrm.idset import Idset

__all__ = ["final_status", "lost"]

_STATES: Final = {Result.COMPLETED: JobState.COMPLETED, Result.CANCELED: JobState.CANCELED}
#: Type of the exception that ended a job -> reason; "exec" before the start is a failed launch.
_REASONS: Final = {"cancel": "cancel", "timeout": "timeout", "node-failure": "node-failure", "exec": "lost"}
_NOTE: Final = 1000                 # characters of a message


def lost(why: str) -> JobStatus:
    """The status of a job of which nothing more will be known."""
    return JobStatus(JobState.FAILED, message=why, metadata={"reason": "lost"})


def final_status(managed: ManagedJob, native_id: str, cores: int = 1) -> JobStatus:
    """The final status of a job that is INACTIVE. cores: of each rank.

    Where ranks were released before the end, metadata has ``spans``: [processors, seconds] of every part.
    """
    result = managed.result
    assert result is not None
    times: dict[str, float] = {}
    for (name, _), when in zip(managed.events, managed.times, strict=True):
        times.setdefault(name, when)
    metadata: dict[str, Any] = {"native_id": native_id}
    end = times.get("finish", times["clean"])
    if "start" in times:
        metadata |= {"start_time": times["start"], "end_time": end, "wall_seconds": max(0.0, end - times["start"]),
                     "processors": managed.ranks.count * cores, "node_count": managed.ranks.count}
        spans = _spans(managed, cores, times["start"], end)
        if len(spans) > 1:
            metadata["spans"] = spans
    metadata |= managed.usage
    if managed.usage.get("nodes"):
        metadata["node_count"] = len(metadata["nodes"])
    code = _exit_code(managed, metadata)
    reason = _reason(managed, result, "start" in times, metadata)
    if reason is not None:
        metadata["reason"] = reason
    metadata["sources"] = dict.fromkeys(metadata, "status") | dict.fromkeys(managed.usage, "measured")
    return JobStatus(_STATES.get(result, JobState.FAILED), end, _message(managed), code, metadata)


def _exit_code(managed: ManagedJob, metadata: dict[str, Any]) -> int | None:
    """128 + n for signal n. None where there is none, and for a 0 of a job that an exception ended."""
    status = managed.wait_status
    if status is None or not 0 <= status <= 0xFFFF or (status == 0 and not managed.success):
        return None
    try:
        code = os.waitstatus_to_exitcode(status)
    except ValueError:
        return None
    if code >= 0:
        return code
    metadata |= {"signal": -code, "core_dumped": os.WCOREDUMP(status)}
    return 128 - code


def _reason(managed: ManagedJob, result: Result, started: bool, metadata: dict[str, Any]) -> str | None:
    if result is Result.COMPLETED:
        return None
    if managed.end:
        return "launch" if managed.end == "exec" and not started else _REASONS.get(managed.end)
    return "signal" if "signal" in metadata else None


def _message(managed: ManagedJob) -> str | None:
    """The note of the first fatal exception, else of all."""
    noted = [context for name, context in managed.events if name == "exception" and context is not None]
    fatal = [context for context in noted if context["severity"] == 0][:1]
    text = "; ".join(str(c["note"] or c["type"]) for c in fatal or noted)
    return text[:_NOTE] or None


def _spans(managed: ManagedJob, cores: int, start: float, end: float) -> list[list[float]]:
    """[processors, seconds] for each group of ranks that was given back at one time, the longest first."""
    held_ranks, spans = managed.ranks, []
    for (name, context), when in zip(managed.events, managed.times, strict=True):
        if name != "release" or context is None or context["final"]:
            continue
        try:
            freed = held_ranks & Idset.parse(context["ranks"])
        except LexicalError:
            continue            # the manager takes what it gets
        if freed:
            held_ranks -= freed
            spans.append([freed.count * cores, max(0.0, when - start)])
    if held_ranks:
        spans.append([held_ranks.count * cores, max(0.0, end - start)])
    return spans[::-1]
