"""Documents as they stand, as text: whole ones, and those of single jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sssjob.conversion.merging import Part, joined
from sssjob.document.graph import derived_state
from sssjob.document.inherit import effective
from sssjob.document.model import Document, Job
from sssjob.findings import Findings
from sssjob.run.elements import gather
from sssjob.run.journal import Journal
from sssjob.run.plan import outline
from sssjob.run.routing import places_of
from sssjob.run.standing import Running, Submission
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

__all__ = ["text_of"]


def text_of(journal: Journal, jobs: Sequence[Running]) -> str:
    """The document of jobs, of one name: the whole where all of its jobs are meant, of all parts where these went to
    several sites, with the last run of each where some were run again, else the jobs alone, with what they inherit."""
    wholes = list({id(job.of): job.of for job in jobs}.values())
    if len(wholes) > 1 and (document := _of_last_runs(journal, jobs)) is not None:
        return write_document(document, findings=Findings())
    if len(jobs) < sum(len(whole.jobs) for whole in wholes):
        folded = [effective(job.plan.job, job.plan.group.defaults if job.plan.group else None).fold() for job in jobs]
        return "".join(write_document(job, findings=Findings()) for job in folded)
    parts = [_part(journal, whole) for whole in wholes]
    return write_document(parts[0].document if len(parts) == 1 else joined(parts), findings=Findings())


def _of_last_runs(journal: Journal, jobs: Sequence[Running]) -> Document | None:
    """The document of which jobs were run again, with these last runs in place of the first. None where other
    documents have some of them, or it has others."""
    origins = {journal.origin_of(job.of.entry.number) for job in jobs if job.of.entry is not None}
    ((origin, part),) = origins if len(origins) == 1 else {("", "-")}
    runs = {job.plan.label: job.plan.job for job in jobs}
    if part or sorted(job.plan.label for job in jobs) != sorted(row.label for row in journal.rows_of(int(origin[1:]))) \
            or len(runs) < len(jobs):       # jobs of one Name without Ids: which is which nobody can say
        return None
    document = read_document(journal.entry(int(origin[1:])).document)
    last: dict[int, Job] = {}
    arrays: dict[int, tuple[Job, list[Job]]] = {}
    for planned in outline(document).jobs:
        if planned.member is None:
            last[id(planned.job)] = runs[planned.label]
        else:
            arrays.setdefault(id(planned.member.job), (planned.member.job, []))[1].append(runs[planned.label])
    for whole, elements in arrays.values():
        gather(whole, elements)
    for group in document.groups():
        group.items = [last.get(id(item), item) for item in group.items]
        group.set_as_is("State", derived_state(group))
    return document


def _part(journal: Journal, whole: Submission) -> Part:
    return Part(whole.result(), () if whole.entry is None else places_of(journal, whole.entry.number))
