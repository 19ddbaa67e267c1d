"""Why a job waits that no resource manager has yet: its user holds it, its time or its turn has not come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sssjob.lrm.waits import BEGIN, DEPENDENCY, HELD

if TYPE_CHECKING:
    from sssjob.run.standing import Running

__all__ = ["is_to_be_held", "tell", "why"]

_YEAR_10000: Final = 253_402_300_800    # seconds since the epoch; later ones are told as they are


def is_to_be_held(job: Running) -> bool:
    """Whether a job will be submitted with a hold: its user has not released it before."""
    return job.plan.held_there and job.wants_hold is not False


def why(job: Running) -> str | None:
    """Kind and words of the reason, as of jobs that wait in a queue; None where nothing is known to be in its way."""
    if job.word != "waiting" or job.ended or job.held_for is not None:
        return None
    if job.on_hold or is_to_be_held(job):
        return f"{HELD}: until its user releases it"
    jobs = job.of.jobs
    needs = [need.text for need in job.plan.needs if need.outside or not all(jobs[n].ended for n in need.on)]
    if needs:
        return f"{DEPENDENCY}: {', '.join(dict.fromkeys(needs))}"
    begin = job.plan.folded.value("EligibleTime")
    if isinstance(begin, int) and begin > time.time():
        shown = begin if begin >= _YEAR_10000 else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(begin))
        return f"{BEGIN}: {shown}"
    return None


def tell(job: Running) -> None:
    """Say so in the document of a job, unless something else is said there."""
    if job.plan.job.value("StatusMessage") is None and (text := why(job)) is not None:
        job.plan.job.set_as_is("StatusMessage", text)
