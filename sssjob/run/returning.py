"""Documents as they stand, as text: whole ones, and those of single jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sssjob.conversion.merging import Part, joined
from sssjob.document.inherit import effective
from sssjob.findings import Findings
from sssjob.run.journal import Journal
from sssjob.run.routing import places_of
from sssjob.run.standing import Running, Submission
from sssjob.xml.writer import write_document

__all__ = ["text_of"]


def text_of(journal: Journal, jobs: Sequence[Running]) -> str:
    """The document of jobs, of one name: the whole where all of its jobs are meant, of all parts where these went to
    several sites, else the jobs alone, with what they inherit."""
    wholes = list({id(job.of): job.of for job in jobs}.values())
    if len(jobs) < sum(len(whole.jobs) for whole in wholes):
        folded = [effective(job.plan.job, job.plan.group.defaults if job.plan.group else None).fold() for job in jobs]
        return "".join(write_document(job, findings=Findings()) for job in folded)
    parts = [_part(journal, whole) for whole in wholes]
    return write_document(parts[0].document if len(parts) == 1 else joined(parts), findings=Findings())


def _part(journal: Journal, whole: Submission) -> Part:
    return Part(whole.result(), () if whole.entry is None else places_of(journal, whole.entry.number))
