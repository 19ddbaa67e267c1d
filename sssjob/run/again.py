"""Jobs that have ended, once more: the document of a submission cut down to some of its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sssjob.document.arrays import array_of
from sssjob.document.element import Property, new_property
from sssjob.document.graph import Dependencies
from sssjob.document.model import Container, Document, Job, JobDefaults, JobGroup
from sssjob.errors import UsageError
from sssjob.run.changing import rewrite
from sssjob.run.gates import holds
from sssjob.run.plan import outline
from sssjob.run.standing import Running, Submission
from sssjob.xml.reader import read_document

__all__ = ["again"]


def again(submission: Submission, jobs: Sequence[Running]) -> list[Document]:
    """Documents in which some jobs of a submission, which have ended, are described as they were submitted.

    Each body of an envelope that has such jobs becomes a document; of an array those elements stay that are among them.
    A dependency on a job of the same group that is not among them is left out where that job has ended as the
    dependency wants it; dependencies on jobs of other submissions stay. Raises UsageError where it cannot hold.
    """
    assert submission.entry is not None
    for job in jobs:
        _check(job, jobs)
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


def _check(job: Running, jobs: Sequence[Running]) -> None:
    """Refuse a job that waits for one of its group in vain."""
    for need in job.plan.needs:
        others = [job.of.jobs[n] for n in need.on]
        if not others or any(other in jobs for other in others):
            continue
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
