"""The Id of a job that was given none, where one is needed: to promise, hold and look up what it costs.

It is the job's Name, else ``job-N`` after its place in the document, as ``run`` calls it too; where another job of
the document has that Id already, ``-2``, ``-3`` ... follow. So the same document always gets the same Ids. What is
submitted needs none of this: the id that the resource manager gives becomes the Id.
"""

from __future__ import annotations

from sssjob.document.arrays import label_of
from sssjob.document.model import Document
from sssjob.findings import Findings

__all__ = ["give_ids"]


def give_ids(document: Document, findings: Findings) -> None:
    """Give every job of a document an Id that has none; each is told (SSS503, info)."""
    jobs = [job for job, _ in document.jobs()]
    taken = {str(job.value("Id")) for job in jobs}
    for number, job in enumerate(jobs):
        if job.value("Id") is not None:
            continue
        name = label = label_of(job, number)
        count = 1
        while label in taken:
            count += 1
            label = f"{name}-{count}"
        taken.add(label)
        job.set("Id", label)
        findings.add("SSS503", "Id", f"Id: the job has none, it is called {label}", severity="info", line=job.line,
                     path="/Job/Id")
