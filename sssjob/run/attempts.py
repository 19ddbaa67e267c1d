"""Several attempts of one job: what became of them together, and when another one begins.

An attempt is a submission of its own, with a tag and a native id of its own. It begins after positive evidence that the
one before has ended, and never beside it: a job of which nobody knows whether it has ended, or how, is not tried again.
That an attempt is over and the next one follows is one event of the journal (``retry``), before the intent of the next.
What a resource manager puts back into its queue by itself is one attempt with several runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from psij import JobState, JobStatus
from sssjob.document.failures import Change, Clause, Retry
from sssjob.run.seen import Seen

if TYPE_CHECKING:
    from sssjob.run.standing import Running

__all__ = ["Attempt", "changes_of", "end_of", "next_clause", "together"]

_SUMS: Final = ("cpu_seconds", "suspend_seconds", "energy_joules")
_GREATEST: Final = ("memory_max_bytes", "memory_average_bytes")
_ZERO: Final = Decimal(0)
#: What a run was given: of several that of the last one.
_OF_A_RUN: Final = ("start_time", "end_time", "nodes", "node_count", "processors", "gpus", "gpu_types", "queue",
                    "account", "qos", "machine", "user")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that is over. clause: of the job's Retry, which began the next one; seen: its parts."""

    clause: str
    seen: tuple[Seen, ...]
    tags: tuple[str | None, ...] = ()
    references: tuple[str | None, ...] = ()
    intents: tuple[dict[str, Any], ...] = ()


def end_of(seen: Sequence[Seen]) -> tuple[str | None, int | None] | None:
    """(reason, exit code) of an attempt that failed: of its first part that did. The reason is None where the exit
    code says all. None where not all parts are known to have ended, or none has failed."""
    if not seen or not all(part.final for part in seen):
        return None
    failed = [part for part in seen if part.failed]
    if any(part.status is None or part.status.state is not JobState.FAILED for part in failed) or any(
            part.known.get("reason") in _UNSURE for part in seen):
        return None
    first = next(iter(failed), None)
    if first is None or first.status is None:
        return None
    reason = first.known.get("reason") or ("signal" if "signal" in first.known else None)
    return (None if reason is None else str(reason)), first.status.exit_code


#: Reasons that leave open whether a job has ended, or how.
_UNSURE: Final = ("lost", "unknown-exit", "cancel")


def next_clause(job: Running) -> Clause | None:
    """The clause after which another attempt of a job begins whose parts have ended; None where it is over."""
    retry, end = job.plan.retry, end_of(job.seen)
    if retry is None or end is None or job.cancel or job.doomed is not None:
        return None
    return retry.next_for(*end, [attempt.clause for attempt in job.attempts])


def changes_of(retry: Retry | None, clauses: Iterable[str]) -> list[Change]:
    """What an attempt asks for more than the first one. clauses: those that began the attempts up to it."""
    named = (None if retry is None else retry.named(name) for name in clauses)
    return [change for clause in named if clause is not None for change in clause.changes]


def together(attempts: Sequence[Attempt], seen: Sequence[Seen]) -> Sequence[Seen]:
    """What is known of the parts of a job over all of its attempts. seen: those of the last one.

    Times and what was given are those of the last run, amounts of time are summed, each run is among the attempts, as
    of a job that a resource manager has run several times.
    """
    if not attempts:
        return seen
    return [_together([(a.clause, a.seen[n]) for a in attempts if n < len(a.seen)], part) for n,
            part in enumerate(seen)]


def _together(before: Sequence[tuple[str, Seen]], now: Seen) -> Seen:
    runs = [each for each in (*(seen for _, seen in before), now) if each.started is not None]
    submitted = next((seen.submitted for _, seen in before if seen.submitted is not None), now.submitted)
    if not runs or all(run is now for run in runs):
        return replace(now, submitted=submitted)
    status = now.status
    if status is not None:
        status = JobStatus(status.state, status.time, status.message, status.exit_code, _metadata(before, runs, now))
    return replace(now, submitted=submitted, started=runs[-1].started, status=status,
                   put_back=now.put_back or any(run.final and run.ended_at is None for run in runs))


def _metadata(before: Sequence[tuple[str, Seen]], runs: Sequence[Seen], now: Seen) -> dict[str, Any]:
    last = runs[-1].known
    metadata: dict[str, Any] = {key: last[key] for key in _OF_A_RUN if key in last} | now.known
    for key in (*_SUMS, *_GREATEST):
        amounts = [Decimal(str(run.known[key])) for run in runs if key in run.known]
        if amounts:
            metadata[key] = sum(amounts, _ZERO) if key in _SUMS else max(amounts)
    seconds = [_seconds(run) for run in runs]
    metadata["wall_seconds"] = sum(seconds, _ZERO)
    metadata["earlier_seconds"] = sum((spent for run, spent in zip(runs, seconds, strict=True) if run is not now),
                                      _ZERO)
    metadata["starts"] = sum(int(run.known.get("starts", 1)) for run in runs)
    metadata["attempts"] = [attempt for clause, seen in before for attempt in _runs(seen, clause)] + _runs(now)
    held = [run.known.get("processors") for run in runs]
    if None not in held and len(set(held)) > 1 and "spans" not in metadata:
        metadata["spans"] = [[count, spent] for count, spent in zip(held, seconds, strict=True)]
    metadata["sources"] = {**last.get("sources", {}), **now.known.get("sources", {})}
    return metadata


def _seconds(run: Seen) -> Decimal:
    """How long a run that has ended took; nothing of one that has not."""
    if not run.final or run.started is None or run.status is None:
        return _ZERO
    if "wall_seconds" in run.known:
        return max(Decimal(str(run.known["wall_seconds"])), _ZERO)
    took = Decimal(str(run.ended_at or run.started)) - Decimal(str(run.started))
    return max(took - Decimal(str(run.known.get("suspend_seconds", 0))), _ZERO)


def _runs(seen: Seen, clause: str | None = None) -> list[dict[str, Any]]:
    """The runs of an attempt, as metadata has them: its own, else one. clause: for which the next attempt began."""
    if seen.started is None:
        return []
    metadata = seen.known
    own: list[Mapping[str, Any]] = list(metadata.get("attempts") or [{
        "start_time": math.floor(seen.started), "end_time": metadata.get("end_time"), "signal": metadata.get("signal"),
        "exit_code": seen.status.exit_code if seen.status is not None and "signal" not in metadata else None,
        "native_state": metadata.get("native_state"), "nodes": metadata.get("nodes", ())}])
    return [{**run, "native_id": seen.native_id, **({} if clause is None or run is not own[-1] else {"retry": clause})}
            for run in own]
