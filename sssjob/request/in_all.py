"""What a job asks for in all of one property: of a plain job what stands there, else what the request comes to."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from sssjob.document.held import bare_is_held, number
from sssjob.document.model import Job

__all__ = ["asked_in_all"]


def asked_in_all(job: Job, tag: Literal["Processors", "NodeCount", "Duration"], *, bare: bool | None = None
                 ) -> Fraction | None:
    """Processors, nodes or seconds that a job asks for, those of its task groups too; None where it says nothing of
    them; of a range the least, of Duration the longest that holds for a task group.

    bare: properties beside Requested ask for something too, as they do in a job that waits; None: if its State says
    that it does."""
    if bare is None:
        bare = not bare_is_held(job)
    requested = job.requested
    stated = (None if requested is None else requested.first(tag)) or (job.first(tag) if bare else None)
    if not job.task_groups and (stated is None or not stated.attributes):
        return number(stated)
    from sssjob.request import request_of

    totals = request_of(job, bare=bare).totals
    if tag == "Duration":
        return None if totals.seconds is None else Fraction(totals.seconds)
    total = totals.processors if tag == "Processors" else totals.nodes
    return None if total is None else total.value
