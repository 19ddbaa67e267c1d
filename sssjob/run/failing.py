"""What follows from the failure of a job: another attempt of it, or the end of the rest of its group.

Both follow from what the journal holds, so that whichever client comes next goes on with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sssjob.errors import AccessError
from sssjob.request.growing import amounts_of, grown
from sssjob.run import facts
from sssjob.run.attempts import changes_of, next_clause
from sssjob.run.gates import holds
from sssjob.run.outcomes import JobOutcome
from sssjob.run.standing import Running, Submission

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["Failing"]


class Failing:
    """Looks after the failures of an engine's jobs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ended: list[Running] = []      # failures that may end the rest of their groups

    # -- another attempt
    def begins_anew(self, job: Running) -> bool:
        """Whether a job whose attempt has failed is submitted once more; then all is done that this needs."""
        clause = next_clause(job)
        if clause is None or (self.engine.stopped is not None and not self.engine.leaves):
            return False
        clauses = [*(attempt.clause for attempt in job.attempts), clause.name]
        if clause.changes and not self._asks_for_more(job, clauses):
            job.of.note(job, "note", {"text": f"not tried again: {clause} leaves nothing to ask for more of"})
            return False
        number = len(clauses) + 1
        changes = changes_of(job.plan.retry, clauses)
        parts = self.engine.adopting.planned(job.of).again(job.number, changes, number)
        if not parts:
            self.engine.tell(job, f"attempt {number} can no longer be planned")
            return False
        message = str(job.plan.job.value("StatusMessage") or "")
        self.engine.room.has_ended(job)
        self.engine.starting.left(job)
        self.engine.recording.put_aside(job)
        data = record_of(job, clause.name, message)
        job.begin_anew(data)
        job.plan.parts, job.plan.held_there = parts, False
        job.of.note(job, "retry", data)
        self.engine.show(job, data["text"])
        self.engine.pend(job)
        return True

    def _asks_for_more(self, job: Running, clauses: list[str]) -> bool:
        """Whether the changes of the last clause still change something."""
        plan = self.engine.adopting.planned(job.of).jobs[job.number]
        before = grown(plan.folded, changes_of(job.plan.retry, clauses[:-1]))
        after = grown(plan.folded, changes_of(job.plan.retry, clauses))
        return any(amounts_of(before, name) != amounts_of(after, name) for name in ("Duration", "Memory"))

    def conclude(self, job: Running, why: str) -> None:
        """A job that was to be tried again and is not: it ends as its last attempt did."""
        self.engine.starting.took_over(job)
        job.restore(f"not tried again: {why}")
        code, signal = facts.outcome_of(job.seen)
        self.engine.end(job, JobOutcome(job.plan.job, job.plan.label, "failed", code, signal,
                                        str(job.plan.job.value("StatusMessage") or ""),
                                        "job" if job.started else "sssjob"))

    # -- the rest of the group
    def has_ended(self, job: Running) -> None:
        """Look at the end of a job, as soon as nothing is being started."""
        if job.plan.fail_fast and job.word == "failed" and job.of.owned:
            self.ended.append(job)

    def look_at(self, submission: Submission) -> None:
        """Look at the ends that another client has seen."""
        for job in submission.jobs:
            if job.ended:
                self.has_ended(job)

    def end_groups(self) -> None:
        """End the rest of each group of which a job has failed that nobody waits for with an answer, once that failure
        is in the journal: it may be one of ours, such as that of a job whose intent had no room."""
        ended, self.ended = self.ended, []
        for job in ended:
            rest = [other for other in job.of.jobs if not other.ended and _is_beside(job, other)]
            if any(holds(need, [job]) for other in rest for need in other.plan.needs
                   if job.number in need.on and need.condition != "OnSuccess"):
                continue
            try:
                if rest and job.of.entry is not None:
                    job.of.entry.flush()
            except AccessError:
                self.ended.append(job)
                continue
            for other in rest:
                self._end(other, f"fail-fast: {job.plan.label} failed")

    def _end(self, job: Running, why: str) -> None:
        if job.word == "waiting":
            self.engine.starting.skip(job, why)
        elif job.why is None:
            data = {"text": why}
            job.end_with_group(data)
            job.of.note(job, "group", data)
            self.engine.cancel(job)


def record_of(job: Running, clause: str, message: str) -> dict[str, Any]:
    """The data of an event ``retry``."""
    number = len(job.attempts) + 2
    return {"clause": clause, "attempt": number, "text": f"attempt {number} after {message or clause}"}


def _is_beside(job: Running, other: Running) -> bool:
    """Whether two jobs are of one group, or elements of one array that stands alone."""
    if job is other:
        return False
    if job.plan.group is not None:
        return other.plan.group is job.plan.group
    first, two = job.plan.member, other.plan.member
    return first is not None and two is not None and first.job is two.job
