"""Jobs that have ended, once more: the document of a submission cut down to some of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from secrets import token_hex
from typing import TYPE_CHECKING

from sssjob.document.arrays import array_of
from sssjob.document.element import Property, new_property
from sssjob.document.graph import Dependencies
from sssjob.document.model import Container, Document, Job, JobDefaults, JobGroup
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.run.changing import rewrite
from sssjob.run.gates import holds
from sssjob.run.on_end import Hook
from sssjob.run.plan import outline
from sssjob.run.rows import AGAIN
from sssjob.run.standing import Running, Submission
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["again"]


def again(client: Client, number: int, jobs: Sequence[int], on_end: Sequence[Hook] = (), part_of: str | None = None
          ) -> list[Submission]:
    """Submit jobs of a submission once more that have ended, at the same place; the new submissions.

    jobs: their places. on_end: what is done for each job when it has ended, besides what was promised for the end of
    each of the earlier ones. part_of: a random text, where further submissions that are run again are parts of the same
    document. What a rejecting finding keeps back is not among them. Raises UsageError, AccessError.
    """
    entry = client.journal.entry(number)
    client.whereabouts.require(client, entry)
    earlier = client.standing(entry)
    chosen = [earlier.jobs[n] for n in jobs]
    promised = [hook for hook in chosen[0].hooks.values() if all(hook.id in job.hooks for job in chosen)]
    hooks = list({hook.id: hook for hook in (*promised, *on_end)}.values())
    submissions = (client.submit(document, entry.executor, policy=Policy.of(entry.policy) or Policy.REJECT,
                                 cwd=entry.directory, on_end=hooks, like=entry,
                                 request=f"{AGAIN}{part_of or token_hex(8)}.{number}")
                   for document in _documents(client, earlier, chosen))
    return [submission for submission in submissions if submission is not None]


def _documents(client: Client, submission: Submission, jobs: Sequence[Running]) -> list[Document]:
    """Documents in which some jobs of a submission, which have ended, are described as they were submitted.

    Each body of an envelope that has such jobs becomes a document; of an array those elements stay that are among them.
    A dependency on a job of the same group that is not among them is left out where that job has ended as the
    dependency wants it, in its last run; dependencies on jobs of other submissions stay. Raises UsageError where it
    cannot hold.
    """
    assert submission.entry is not None
    last_run = _last_run_of(client, submission.entry.number)
    for job in jobs:
        _check(job, jobs, last_run)
    source = read_document(submission.entry.document)
    rewrite(source, {job.number: job.changes for job in submission.jobs})
    planned = outline(source).jobs
    indices: dict[int, list[int]] = {}      # by identity of a job of the source: elements of its array
    for job in jobs:
        of = planned[job.number]
        indices.setdefault(id(of.job if of.member is None else of.member.job), []).extend(
            [] if of.member is None else [of.member.index])
    documents = []
    chosen = {job.number for job in jobs}
    left = {job.label for n, job in enumerate(planned) if job.member is not None and n not in chosen}
    for body in source.bodies():
        if isinstance(body, JobGroup):
            _cut(body, indices, left)
        elif isinstance(body, Job) and id(body) in indices:
            _cut_array(body, None, indices[id(body)])
        if id(body) in indices or (isinstance(body, JobGroup) and any(job.reference is None for job in body.jobs)):
            documents.append(Document(body, source.files, f"@{submission.entry.number}", source.profile))
    return documents


def _last_run_of(client: Client, number: int) -> Callable[[Running], Running]:
    """What gives the last run of a job of a submission: it may have been run again since."""
    rows = cache(lambda: client.journal.last_runs(number))
    standing = cache(lambda other: client.standing(client.journal.entry(other)))

    def last_run(job: Running) -> Running:
        row = rows().get(job.row.label, job.row)
        return job if row.submission == job.row.submission else standing(row.submission).jobs[row.job]

    return last_run


def _check(job: Running, jobs: Sequence[Running], last_run: Callable[[Running], Running]) -> None:
    """Refuse a job that waits for one of its group in vain."""
    for need in job.plan.needs:
        others = [job.of.jobs[n] for n in need.on]
        if not others or any(other in jobs for other in others):
            continue
        others = [last_run(other) for other in others]
        first = next((other for other in others if not other.ended), None)
        if first is not None:
            raise UsageError(f"{job.plan.label} waits for {need.text}, and {first.plan.label} has not ended; run it "
                             "again after that")
        if not holds(need, others):
            raise UsageError(f"{job.plan.label} waits for {need.text}, which does not hold; run both again")


def _cut(group: JobGroup, indices: dict[int, list[int]], left: set[str]) -> None:
    """Leave only those jobs in a group. left: elements of arrays that are not among them."""
    graph = Dependencies.of(group)
    for number, links in graph.links_of().items():
        for link in links:
            if link.needs and (link.target.strip() in left
                               or not any(id(graph.jobs[index]) in indices for index in link.needs)):
                _take_out(graph.jobs[number], link.element)
    defaults = group.defaults
    group.items = [item for item in group.items
                   if not isinstance(item, Job) or item.reference is not None or id(item) in indices]
    for job in group.jobs:
        if indices.get(id(job)):
            _cut_array(job, defaults, indices[id(job)])


def _take_out(holder: Container, element: Property) -> None:
    """Remove a property from a job, wherever it stands in it."""
    holder.items = [item for item in holder.items if item is not element]
    for item in holder.items:
        if isinstance(item, Container):
            _take_out(item, element)


def _cut_array(job: Job, defaults: JobDefaults | None, indices: list[int]) -> None:
    """Leave only those elements of an array."""
    stated = array_of(job, defaults)
    if stated is None:
        return
    _, percent, limit = stated.text.partition("%")
    listed = ",".join(map(str, sorted(indices)))
    _take_out(job, stated)
    job.items.append(new_property("Extension", f"{listed}{percent}{limit}", {"type": "Scheduler", "name": "Array"}))
