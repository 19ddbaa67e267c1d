"""Submissions out of the journal: the document that was submitted, and what its history has made of it."""

from __future__ import annotations

from collections.abc import Callable

import psij
from sssjob.run import turns
from sssjob.run.journal import Entry
from sssjob.run.plan import outline
from sssjob.run.standing import Submission
from sssjob.run.storage import told
from sssjob.xml.reader import read_document

__all__ = ["load"]


def load(entry: Entry, executor: Callable[[], psij.JobExecutor]) -> Submission:
    """A submission out of the journal, as it stands there. Raises AccessError where that makes no sense."""
    with told(entry.journal.path):
        return _loaded(entry, executor)


def _loaded(entry: Entry, executor: Callable[[], psij.JobExecutor]) -> Submission:
    document = read_document(entry.document, path=entry.name or f"@{entry.number}")
    submission = Submission(document, executor, entry, time=entry.time)
    submission.take_plan(outline(document))
    events = entry.events()
    for event in events:
        if event.kind == "ended" and event.data["word"] == "kept":
            submission.jobs[event.job].plan.keep = True
    submission.begin()
    submission.live_through(events)
    for job in submission.jobs:
        turns.tell(job)
    return submission
