"""The Id of a job that was given none, where one is needed: to promise, hold and look up what it costs.

It is the job's Name, else ``job-N`` after its place in the document, as ``run`` calls it too; where another job of
the document has that Id already, ``-2``, ``-3`` ... follow. So the same document always gets the same Ids. What is
submitted needs none of this: the id that the resource manager gives becomes the Id.
"""

from __future__ import annotations

from sssjob.document.arrays import label_of
from sssjob.document.model import Document
from sssjob.findings import Findings

__all__ = ["give_ids", "unused"]


def unused(name: str, taken: dict[str, int], suffix: str = "") -> str:
    """The name, or where another one has it already the name with the next number (``a-2``, ``a-3`` ...), and a suffix.

    taken: names -> the last number that one of them was given; it takes in this one too, so that the many jobs of one
    name do not each count from 2 on.
    """
    first = free = name + suffix
    count = taken.get(first, 1)
    while free in taken:
        count += 1
        free = f"{name}-{count}{suffix}"
    taken[free] = 1
    taken[first] = count
    return free


def give_ids(document: Document, findings: Findings) -> None:
    """Give every job of a document an Id that has none; each is told (SSS503, info)."""
    jobs = [job for job, _ in document.jobs()]
    taken = dict.fromkeys((str(job.value("Id")) for job in jobs), 1)
    for number, job in enumerate(jobs):
        if job.value("Id") is not None:
            continue
        label = unused(label_of(job, number), taken)
        job.set("Id", label)
        findings.add("SSS503", "Id", f"Id: the job has none, it is called {label}", severity="info", line=job.line,
                     path="/Job/Id")
