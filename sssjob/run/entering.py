"""A submission on its way into the journal: planned, then written down, then begun.

The three steps are apart so that many submissions that come together are written in one transaction
(``Client.prepare``, ``Client.enter``, ``Client.begin``).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psij
from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.run.history import Event
from sssjob.run.journal import Entry, Journal
from sssjob.run.listing import Details, details_of
from sssjob.run.on_end import Hook
from sssjob.run.outcomes import JobOutcome, ended_record
from sssjob.run.placing import ASK_AGAIN_S, unplaced, way_of
from sssjob.run.plan import Plan
from sssjob.run.standing import Running, Submission

__all__ = ["Prepared", "cap_event", "known_keys", "write_down"]


@dataclass(slots=True)
class Prepared:
    """A submission that can be written down.

    text: the document as the journal keeps it; token: names its folder; request: what its user calls it; plan, backend:
    None where an earlier request of this name made it; site: the name of the profile by which it is submitted;
    settings: with which; cluster: what the backend's resource manager said that it is, asked before the journal is
    written, which nobody else could write meanwhile; entry: where it stands in the journal, None before it does.
    """

    document: Document
    text: str
    executor: str
    directory: Path | None
    policy: Policy
    request: str | None
    on_end: Sequence[Hook]
    token: str
    folder: Path
    plan: Plan | None = None
    backend: psij.JobExecutor | None = None
    site: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    entry: Entry | None = None

    @property
    def fresh(self) -> bool:
        """Whether it is in the journal now, and not an earlier one with the same request."""
        return self.entry is not None and self.entry.token == self.token

    def entered(self, entry: Entry) -> None:
        """It stands there. Raises UsageError where that is a submission of something else under the same request."""
        if entry.token != self.token:
            self.drop()
            if (entry.document, entry.executor) != (self.text, self.executor):
                raise UsageError(f"the token is that of @{entry.number}, which is another document or for another "
                                 "executor")
        self.entry = entry

    def drop(self) -> None:
        """Remove its folder: it is not submitted."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_down(prepared: Prepared, journal: Journal, *, max_queued: int | None = None, why: str = "") -> Entry:
    """Write a plan into a journal. No resource manager is asked: other clients wait for the journal meanwhile.

    max_queued: the most of its jobs in flight; None: as many as there are. why: why it goes there.
    """
    plan, backend, cluster = prepared.plan, prepared.backend, prepared.cluster
    assert plan is not None and backend is not None
    submission = Submission(prepared.document, lambda: backend)
    submission.take_plan(plan)
    rows = [job.row for job in submission.jobs]
    for job, row in zip(submission.jobs, rows, strict=True):
        row.state = "Completed" if job.plan.keep else "Hold" if job.plan.shows_hold else "Idle"
        row.outcome = "kept" if job.plan.keep else None
    first = [*unplaced(backend, cluster), *([] if max_queued is None else [cap_event(max_queued)]),
             *(event for job in submission.jobs for event in _first_events(job, prepared.on_end, why))]
    group = next((str(g.value("Id")) for g in prepared.document.groups() if g.value("Id") is not None), None)
    entry = journal.add(prepared.token, prepared.executor, prepared.text, prepared.directory or Path.cwd(),
                        prepared.policy.value, group, rows, first, cluster, prepared.request, prepared.site,
                        prepared.settings)
    entry.asked_until = time.monotonic() + ASK_AGAIN_S
    if entry.token == prepared.token:
        entry.way = None if cluster is not None else way_of(backend)
        for job in submission.jobs:
            if details_of(job) != Details():
                entry.detail(job.number, partial(details_of, job))
    return entry


def _first_events(job: Running, hooks: Sequence[Hook], why: str) -> Iterator[Event]:
    """What the journal has of a job before it is begun."""
    if job.plan.keep:
        yield Event(job.number, "ended", "sssjob", ended_record(JobOutcome(job.plan.job, job.plan.label, "kept", 0)))
    elif job.plan.shows_hold:
        yield Event(job.number, "held", "sssjob", {} if job.plan.held else {"there": True})
    for need, keys in job.outside.items():
        yield Event(job.number, "after", "sssjob", {"need": need, "keys": keys})
    if why:
        yield Event(job.number, "note", "sssjob", {"text": why})
    for hook in () if job.plan.keep else hooks:
        yield Event(job.number, "on-end", "user", hook.promise())


def cap_event(max_queued: int | None) -> Event:
    """What keeps the cap of a submission: the most of its jobs in flight; None: as many as there are."""
    return Event(0, "cap", "user", {"most": max_queued})


def known_keys(journal: Journal, name: str, by_name: bool = False) -> list[str]:
    """Keys of the jobs in a journal that an id in a document means, or where ``by_name`` a Name.

    Raises UsageError for an id of several jobs.
    """
    if by_name:
        return [row.key for row in journal.named(name)]
    if name.startswith("@"):
        return []
    try:
        return [row.key for row in journal.find(name)]
    except UsageError as error:
        if "several jobs" in str(error):
            raise
        return []
