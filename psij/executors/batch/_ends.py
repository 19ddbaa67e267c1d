"""What the files of a job and the sources of its resource manager say together of how it ended."""

from __future__ import annotations

import time
from typing import Final

from psij.executors.batch._evidence import Evidence, decide, is_of_an_earlier_run, is_stale
from psij.executors.batch._files import exit_file, node_names, starts
from psij.executors.batch._followed import Followed
from psij.executors.batch._news import add_nodes, add_starts
from psij.job_status import JobStatus
from sssjob.lrm.waits import MISSING

__all__ = ["end_of", "learn_start"]

# A job that so many answers of the queue in a row do not list, and no accounting for so long, is told as missing.
_MISSED: Final = 2
_MISSING_S: Final = 4.0
_UNLISTED: Final = "accounting has no end of it, and no queue lists it"
_RUNAWAY: Final = 10    # how many times lost_after the queue may not list a job that a record calls running


def learn_start(item: Followed) -> None:
    """Learn from a job's own start record when it began first: a record of another job had ended before."""
    if item.identity.began is None and item.tag is not None:
        path = item.executor._aux_path(item.native_id, ".start", item.tag)
        item.identity.began = next(iter(starts(path, item.tag, item.executor.host)), None)


def end_of(item: Followed, records: dict[str, JobStatus], now: float, patience_s: float,
           heard: bool) -> JobStatus | None:
    """How a job stands that seems to have ended; None while that is not known.

    records: what each source says of it, by the name of the source; now: monotonic time; patience_s: seconds after
    which a job that nobody knows is lost, counted from the first client on that found it missing; heard: all sources
    have answered.
    """
    if item.ended_at is None:
        return None
    executor, host = item.executor, item.executor.host
    end = exit_file(executor._aux_path(item.native_id, ".ec", item.tag), item.tag, host)
    if end is not None and item.tag is None and is_stale(end, (*records.values(), item.queue)):
        item.left_out["the exit file of that number is older than its submission"] = None
        end = None
    ours = item.tag or (end.job_id if end is not None else None)
    began = starts(executor._aux_path(item.native_id, ".start", ours), ours, host) if ours is not None else []
    if end is not None and is_of_an_earlier_run(end, began):
        end = None
    item.starts, item.recorded = max(item.starts, len(began)), began[-1] if began else item.recorded
    is_ended = end is not None or any(record.state.final for record in records.values())
    before_s = item.missing_before_s if heard and not is_ended and _is_missing(item, now) else 0.0
    runaway_s = _RUNAWAY * executor.config.lost_after
    evidence = Evidence(item.queue, item.missed == 0, records, end, item.cancel_at is not None, item.missed,
                        now - item.ended_at, item.silent_s, executor._SHOWN_CODES,
                        item.missed > 1 and before_s + now - item.missed_at >= runaway_s,
                        item.gone, None if item.cancel_at is None else time.time() - (now - item.cancel_at),
                        item.wanted, item.unbegun and not item.starts,
                        executor._SIGNALED_IS_ZERO and bool(began) and end is None)
    status = decide(evidence, executor._accounting_delay(), max(patience_s - before_s, 0.0))
    item.is_overdue = item.missing_before_s >= (runaway_s if records else patience_s) and not is_ended
    if status is None:
        return None
    metadata = status.metadata = {"native_id": item.native_id, **(status.metadata or {})}
    if not status.state.final:
        if item.missing_since is not None:      # also where an earlier client has found that
            status.message = _UNLISTED
            metadata |= {"waits": MISSING, "missing_since": item.missing_since}
        return status
    if end is not None and not began and metadata.get("starts") == 0:
        add_starts(metadata, 1, "exit-file")
    add_starts(metadata, item.starts, "start-record" if len(began) == item.starts else "queue")
    if began:
        add_nodes(metadata, lambda: node_names(executor._aux_path(item.native_id, ".nodefile", ours), host))
    if len(began) > 1:
        attempts = metadata.setdefault("attempts", [{} for _ in began])
        for attempt, start in zip(attempts if len(attempts) == len(began) else (), began, strict=False):
            attempt.setdefault("start_time", start)
    if item.left_out:
        metadata["left_out"] = list(item.left_out)
    return status


def _is_missing(item: Followed, now: float) -> bool:
    """Whether several answers of the queue, over some seconds, did not list a job whose end nobody asked for, and all
    sources have answered. Since when is noted. now: monotonic time."""
    if item.ended_at is None or not item.missed or item.cancel_at is not None or item.wanted or \
            (item.queue is not None and item.queue.state.final):
        return False
    is_sure = item.missed >= _MISSED and now - min(item.ended_at, item.missed_at) - item.silent_s >= _MISSING_S
    if is_sure and item.missing_since is None:
        item.missing_since = time.time()
    return is_sure
