"""What is new in an answer of the queue: statuses as they stand, and with what an answer or a record adds to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psij.executors.batch._followed import Followed
from psij.job import Job
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.waits import MISSING

_LASTING = ("submit_time", "start_time", "nodes", "node_count", "processors", "queue", "starts")
_OF_A_RUN = ("start_time", "nodes", "node_count", "processors", "gpus", "gpu_types")
_MOMENTARY = ("phase", "sources", "waits", "missing_since")        # what the next answer says anew, or takes back
_BETWEEN = ("PRERUN", "CONFIGURING", "STARTING")      # phases of a job that waits while its script may run already
_BEHIND_S = 60.0        # no resource manager's list is further behind what its jobs have recorded
_MISSING = "it is in no queue and in no accounting record"
_LATER_S = 2.0          # two starts that are further apart than this are two


def amend(job: Job, before: JobStatus, status: JobStatus, last: JobStatus | None, now: float) -> None:
    """Put what the queue says into a status that stays for PSI/J. last: what the queue said before, None for nothing.

    The first word of the queue is told as news, because what has been known so far may be an old record of a start.
    """
    facts, metadata = before.metadata or {}, status.metadata or {}
    changed = {key: value for key, value in facts.items() if key not in _MOMENTARY} | metadata
    message = status.message
    if before.state is not JobState.QUEUED and status.state is JobState.QUEUED:
        if facts.get("requeued") or _is_put_back(before, status, last, now):
            changed["requeued"] = True
        else:                   # the list is behind: the job runs
            changed, message = {key: changed[key] for key in changed if key not in ("phase", "waits")}, before.message
    elif status.state is not JobState.QUEUED and "requeued" in facts:
        changed["requeued"] = False
    if last is None or _standing(changed) != _standing(facts) or _started_later(facts, changed):
        job._renew(JobStatus(before.state, before.time, message, before.exit_code, changed))
    else:
        before.metadata, before.message = changed, message


def _standing(metadata: dict[str, Any]) -> tuple[Any, ...]:
    """What of a status is news when it changes."""
    return metadata.get("phase"), bool(metadata.get("requeued")), metadata.get("waits"), metadata.get("renamed")


def _is_put_back(before: JobStatus, status: JobStatus, last: JobStatus | None, now: float) -> bool:
    """Whether a job that had begun waits again: by the list that showed it running, by its own word or time, or because
    no list is so far behind the record of the start."""
    metadata, began = status.metadata or {}, (before.metadata or {}).get("start_time")
    if metadata.get("phase") in _BETWEEN:
        return False
    if (last is not None and last.state is JobState.ACTIVE) or metadata.get("requeued") or began is None:
        return True
    submitted = metadata.get("submit_time")
    return now - began > _BEHIND_S or (submitted is not None and submitted > began)


def tell_missing(item: Followed) -> None:
    """Tell, once, that neither the queue nor accounting knows a job of which no end is known."""
    before = item.job.status
    facts = before.metadata or {}
    if facts.get("missing_since") != item.missing_since:
        metadata = {key: value for key, value in facts.items() if key not in _MOMENTARY}
        item.job._renew(JobStatus(before.state, before.time, _MISSING, metadata={
            **metadata, "native_id": item.native_id, "waits": MISSING, "missing_since": item.missing_since}))
    item.is_missing = True


def is_behind(began: float, queue: JobStatus | None) -> bool:
    """Whether the record of a start is of an earlier life of a job that the queue has shown waiting since."""
    if queue is None or queue.state is not JobState.QUEUED:
        return False
    facts = queue.metadata or {}
    return bool(facts.get("submit_time", began) > began or facts.get("confirmed_at", began) - began > _BEHIND_S)


def has_recorded(item: Followed, metadata: dict[str, Any]) -> bool:
    """Whether the start of which the queue tells is one that the job itself has recorded, and that is counted."""
    began = metadata.get("start_time")
    return item.recorded is not None and (began is None or began - item.recorded <= _LATER_S)


def _started_later(facts_before: dict[str, Any], changed: dict[str, Any]) -> bool:
    first, second = facts_before.get("start_time"), changed.get("start_time")
    return first is not None and second is not None and second - first > _LATER_S


def kept(before: JobStatus | None, status: JobStatus) -> dict[str, Any]:
    """What the queue has said of a job that runs and does not say again now that it is being cleaned up."""
    facts_before, now = (before.metadata or {}) if before is not None else {}, (status.metadata or {})
    if status.state is JobState.QUEUED or facts_before.get("start_time") != now.get("start_time"):
        return {}
    return {key: value for key, value in facts_before.items() if key in _LASTING}


def add_starts(metadata: dict[str, Any], starts: int, source: str) -> None:
    """How often a job was started: what was seen to happen counts where accounting has fewer records. Of a job that by
    its record never began, the queue may have shown that it was about to, and only its own record tells otherwise."""
    recorded, sources = metadata.get("starts"), metadata["sources"]
    if starts and recorded == 0 and source == "queue":
        metadata.setdefault("others", {}).setdefault("starts", {})[source] = starts
        for key in _OF_A_RUN:
            if sources.get(key) == source:
                del metadata[key], sources[key]
    elif starts > (recorded or 0):
        if recorded is not None:
            metadata.setdefault("others", {}).setdefault("starts", {})[sources.get("starts", "queue")] = recorded
        metadata["starts"], sources["starts"] = starts, source


def add_nodes(metadata: dict[str, Any], names: Callable[[], list[str]]) -> None:
    """The nodes from the record of the submit script, where nothing else names them."""
    if "nodes" not in metadata and (hosts := names()):
        sources = metadata["sources"]
        metadata["nodes"], sources["nodes"] = hosts, "node-file"
        if "node_count" not in metadata:
            metadata["node_count"], sources["node_count"] = len(hosts), "node-file"
