"""Late accounting: what resource managers can tell of jobs that had ended before their accounting could say how.

Asked are the ends that accounting has not told, of all resource managers that have any, many jobs by one command. What
is told becomes an event of the journal; so the document that is written from then on has it, and a second look that
tells the same adds nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psij
from psij.executors.batch._budget import answer_by
from psij.executors.batch._identity import SKEW_S, Identity
from psij.executors.batch._late import EndedJob
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import UsageError
from sssjob.run.evidence import disagreements, kind_of, tell
from sssjob.run.history import Event, status_record
from sssjob.run.rows import Row

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.standing import Running, Submission

__all__ = ["Refreshed", "refresh"]

_LATE: Final = "late"
_ENDS: Final = ("done", "failed", "canceled")


@dataclass(slots=True)
class Refreshed:
    """What became of the question. asked: jobs that accounting was asked for. facts: by key of the job, what it told
    that was not in the document before, or is another value now. silent: names of executors that gave no answer."""

    asked: int = 0
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    jobs: dict[str, Running] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)


def refresh(client: Client, rows: Iterable[Row], since: float | None = None, every: bool = False,
            seconds: float | None = None) -> Refreshed:
    """Ask accounting for jobs that have ended. every: those too of which it has told the end already.

    since: seconds since the epoch; ends that were learnt before it are left alone. seconds: the longest to wait for the
    answers of all together, None for as long as each command may take. Raises AccessError.
    """
    result = Refreshed()
    by_executor: dict[str, list[tuple[Running, int]]] = {}
    for job in _jobs(client, rows):
        source = job.evidence.get("state")
        if source is None or (since is not None and source.time < since):
            continue
        for part, seen in enumerate(job.seen):
            if seen.native_id is not None and seen.final and (every or not _is_told(job, part)):
                entry = job.of.entry
                assert entry is not None
                if client.whereabouts.is_here(client, entry):
                    by_executor.setdefault(client.key(entry), []).append((job, part))
                elif entry.number in client.whereabouts.silent and entry.executor not in result.silent:
                    result.silent.append(entry.executor)
    before = answer_by.set(None if seconds is None else time.monotonic() + seconds)
    try:
        for parts in by_executor.values():
            _ask(client, parts, result)
    finally:
        answer_by.reset(before)
    return result


def _jobs(client: Client, rows: Iterable[Row]) -> Iterator[Running]:
    """Jobs of rows that have ended in a resource manager with accounting."""
    loaded: dict[int, list[Submission]] = {}        # none where another client has taken it out meanwhile
    for row in rows:
        if row.outcome not in _ENDS:
            continue
        if row.submission not in loaded:
            loaded[row.submission] = client.standings(client.journal.entries([row.submission]))
        yield from (submission.jobs[row.job] for submission in loaded[row.submission])


def _is_told(job: Running, part: int) -> bool:
    """Whether the end of a part is from accounting."""
    source = job.seen[part].known.get("sources", {}).get("state")
    return source is not None and kind_of(str(source)) == "accounting"


def _ask(client: Client, parts: list[tuple[Running, int]], result: Refreshed) -> None:
    """Ask one executor, and write down what it tells."""
    try:
        backend = parts[0][0].of.executor()
    except UsageError as error:
        client.findings.add("SSS602", "status", str(error), severity="warning")
        return
    if not isinstance(backend, BatchSchedulerExecutor):
        return
    result.asked += len({id(job) for job, _ in parts})
    for some in _rounds(parts):
        records, silent = backend.accounting_of([_asked(client, job, part) for job, part in some.values()])
        if silent and backend.name not in result.silent:
            result.silent.append(backend.name)
        for native_id, (job, part) in some.items():
            by_source, before = records.get(native_id), job.seen[part].status
            if by_source and before is not None:
                status = backend.completed(before, by_source)
                if status is not None:
                    _add(client, job, part, status, result)


def _rounds(parts: list[tuple[Running, int]]) -> list[dict[str, tuple[Running, int]]]:
    """Parts by native id, in as many rounds as a native id has come again."""
    rounds: list[dict[str, tuple[Running, int]]] = []
    for job, part in parts:
        native_id = job.seen[part].native_id or ""
        round_ = next((round_ for round_ in rounds if native_id not in round_), None)
        if round_ is None:
            rounds.append(round_ := {})
        round_[native_id] = job, part
    return rounds


def _asked(client: Client, job: Running, part: int) -> EndedJob:
    """Which job is meant."""
    seen, identity = job.seen[part], job.identity(part)
    sure = seen.status is not None and seen.status.exit_code is not None
    identity.before = _given_again(client, job, identity, seen.native_id or "")
    return EndedJob(seen.native_id or "", identity, sure)


def _given_again(client: Client, job: Running, identity: Identity, native_id: str) -> float | None:
    """When, by its clock, a manager that was set up anew gave the native id of a job that its queue never showed to a
    later one of ours, so soon that the records of that look like the job's own; None where it did not."""
    begin, until = identity.since, identity.until
    if identity.submit_time is not None or begin is None or until is None:
        return None
    rows = client.journal.alike(job.row, native_id, until + 2 * SKEW_S)
    keys = {row.key for row in rows} - {job.row.key}
    entries = client.journal.entries(sorted({row.submission for row in rows if row.key in keys}))
    others = [job for submission in client.standings(entries) for job in submission.jobs if job.row.key in keys]
    attempts = [(other.seen, other.intents) for other in others]
    attempts += [(list(attempt.seen), list(attempt.intents)) for other in others for attempt in other.attempts]
    lives = [life for attempt in attempts for life in zip(*attempt, strict=False)]
    return min((float(seen.known["submit_time"]) for seen, noted in lives
                if seen.native_id == native_id and "native_state" in seen.known and "submit_time" in seen.known
                and noted.get("since", 0.0) > begin), default=None)


def _add(client: Client, job: Running, part: int, status: psij.JobStatus, result: Refreshed) -> None:
    """Write down what accounting has told of a part."""
    entry = job.of.entry
    assert entry is not None and status.metadata is not None
    before = {fact: value for fact, value, _ in job.sources()}
    disagreements_before = list(job.disagreements)
    job.take_late(part, status, time.time())
    sources = sorted(set(map(str, status.metadata.get("sources", {}).values())))
    events = [Event(job.number, _LATE, "+".join(sources), status_record(status), part)]
    fresh = [disagreement for disagreement in disagreements(status) if disagreement not in disagreements_before]
    events += [Event(job.number, "note", "sssjob", {"text": f"{disagreement.rule}: {disagreement.text}",
                                                    **disagreement.record()}, part)
               for disagreement in fresh]
    for event in events:
        entry.note(event, job.row)
    entry.flush()
    tell(client.findings, job.plan.label, fresh, job.place)
    result.jobs[job.row.key] = job
    result.facts.setdefault(job.row.key, {}).update(
        {fact: value for fact, value, _ in job.sources() if before.get(fact) != value})
