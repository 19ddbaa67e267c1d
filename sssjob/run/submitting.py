"""The submission of jobs that may start, one after the other.

What is about to be submitted is on the disk before; while the submit command of one job runs, what the one before it
has done is noted, and the script of the next is written. A submission that failed for a reason that may pass is tried
again after a pause that grows, and never blindly: the resource manager is asked for its tag first.
"""

from __future__ import annotations

import copy
import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import count
from typing import TYPE_CHECKING, Final

import psij
from sssjob.errors import AccessError
from sssjob.run.signals import STOPS
from sssjob.run.standing import Running, intent

if TYPE_CHECKING:
    from sssjob.run.engine import Engine
    from sssjob.run.plan import PlannedJob

__all__ = ["LOOK_AGAIN_S", "RETRIES", "Submitting", "begin_attributes", "begin_of", "custom_of", "finder",
           "with_attributes"]

RETRIES: Final = 5              # further tries of a submission that failed for a reason that may pass
LOOK_AGAIN_S: Final = 5.0       # between two questions for a job of which nobody knows whether it was submitted
_PAUSE_S: Final = (1.0, 60.0)   # before the first further try, and before any
_LATEST: Final = (1 << 31) - 1  # seconds since the epoch that every manager knows; Slurm takes later ones for no time


def finder(job: Running) -> Callable[[str | None], str | None] | None:
    """How to find a native job by its tag; None where the executor knows no way."""
    found: Callable[[str | None], str | None] | None = getattr(job.of.executor(), "native_id_of", None)
    return found


def begin_of(job: Running) -> Mapping[str, object] | None:
    """As ``begin_attributes``, of a job that is looked after."""
    return begin_attributes(job.plan, job.of.executor()) if job.plan.eligible else {}


def begin_attributes(plan: PlannedJob, backend: object) -> Mapping[str, object] | None:
    """The custom attributes with which a resource manager waits for the EligibleTime of a job; None where it cannot.

    Nothing of a time that has come.
    """
    say = getattr(backend, "begin_attributes", None)
    if not plan.eligible or plan.eligible <= time.time():
        return {}
    said: Mapping[str, object] | None = None
    if say is not None and plan.eligible <= _LATEST:
        said = say(plan.eligible)
    taken = {name for part in plan.parts for name in custom_of(part.spec)}
    return None if said is None or taken & said.keys() else said


def custom_of(spec: psij.JobSpec) -> Mapping[str, object]:
    """The custom attributes of a specification."""
    return (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}


class Submitting:
    """Submits jobs for an engine."""

    def __init__(self, engine: Engine, retries: int) -> None:
        self.engine, self.retries = engine, retries
        self.later: list[tuple[float, int, Running, int]] = []      # when to try again; a heap
        self._order = count()
        self._tries: dict[int, int] = {}                    # by identity of the job
        self._taken: deque[tuple[Running, int, psij.Job, psij.JobExecutor]] = deque()   # submitted, not noted yet
        self._more = False                                  # another job is submitted after this one,
        self._next: Running | None = None                   # and it is this one, not prepared yet
        self._prepared: Running | None = None               # whose script is there
        self._trouble: list[Exception] = []                 # what went wrong while a submit command ran

    def launch(self, ready: list[tuple[Running, Mapping[str, object] | None]]) -> None:
        """Submit jobs. What is about to be submitted is on the disk before the first of them is."""
        prepared = [job for job, after in ready if self._prepare(job, after)]
        for submission in {id(j.of): j.of for j in prepared}.values():
            jobs = [job for job in prepared if job.of is submission]
            try:
                if submission.entry is not None:
                    submission.entry.flush()
            except AccessError as error:
                assert submission.entry is not None
                submission.entry.forget("intent")
                for job in jobs:
                    self.refused(job, 0, error)
                continue
            self._submit_each(jobs)

    def _submit_each(self, jobs: Sequence[Running]) -> None:
        """Submit jobs one after the other, until a signal tells to leave."""
        try:
            for n, job in enumerate(jobs, 1):
                if self.engine.leaves and self._told_to_leave():
                    self._leave(jobs[n - 1:])
                    break
                self.engine.progress.changed(job.plan.label, "running")
                self._more = n < len(jobs)
                self._next = jobs[n] if self._more else None
                self._submit_all(job)
        finally:
            self._next, self._more = None, False
            self._note_taken()

    def _leave(self, jobs: Sequence[Running]) -> None:
        """Do not submit jobs that are prepared."""
        for job in jobs:
            for made in job.parts:
                if made is not None and hasattr(backend := job.of.executor(), "withdraw"):
                    backend.withdraw(made)
            job.of.note(job, "unsent", {})
            self.engine.starting.left(job)
            job.forget()

    def _meanwhile(self) -> None:
        """While a submit command runs: note what the one before it has done, and prepare the next."""
        try:
            self._note_taken()
            job, self._next = self._next, None
            if job is not None and len(job.parts) == 1 and job.parts[0] is not None:
                if not job.plan.parts[0].spec.stage_in:     # that takes its time: what was done is noted before it
                    self._prepared = job
                job.of.executor().prepare(job.parts[0])  # type: ignore[attr-defined]
        except Exception as error:      # it must not end the command; told after it
            self._trouble.append(error)

    def _note_taken(self) -> None:
        """Have the native ids of what was submitted on the disk."""
        while self._taken:
            self._submitted(*self._taken.popleft())

    def _told_to_leave(self) -> bool:
        """Whether a signal has come, which is then the next event."""
        if not any(word in STOPS for word in self.engine.signals):
            return False
        events = self.engine.events
        kept = []
        while not events.empty():
            kept.append(events.get())
        for event in sorted(kept, key=lambda event: isinstance(event, tuple)):
            events.put(event)
        return True

    def _prepare(self, job: Running, after: Mapping[str, object] | None) -> bool:
        """Make psij's jobs for the parts of a job, and note that they are about to be submitted."""
        parts = job.plan.parts
        job.prepare(max(len(parts), 1))
        job.waits, job.hold, job.together = after is not None, job.plan.held_there, job.plan.together
        if not parts:
            self.refused(job, 0, ValueError("it can no longer be planned"))
            return False
        for part in range(len(parts)):
            self.prepare_part(job, part, after)
        return True

    def prepare_part(self, job: Running, part: int, after: Mapping[str, object] | None = None) -> None:
        """The same for one part."""
        spec = job.plan.parts[part].spec
        further = {**(after or {}), **(begin_of(job) or {})}
        made = psij.Job(with_attributes(spec, further) if further else spec)
        job.parts[part], job.tags[part], job.references[part] = made, made.id, None
        if job.of.entry is not None:
            job.intents[part] = intent(made.id, len(job.plan.parts), after, hold=job.hold, together=job.together)
            job.of.note(job, "intent", job.intents[part], part)

    def _submit_all(self, job: Running) -> None:
        if job.together:
            self._submit_together(job)
            return
        for part in range(len(job.parts)):
            self.submit(job, part)

    def submit(self, job: Running, part: int) -> None:
        """Submit one part that was prepared."""
        made, backend = job.parts[part], job.of.executor()
        assert made is not None
        if self._prepared is not job:
            self._note_taken()
        self.engine.listen(job, part, made)
        aside = getattr(backend, "meanwhile", lambda work: nullcontext())
        try:
            with aside(self._meanwhile):
                backend.submit(made)
        except psij.SubmitException as error:
            self._failed(job, part, error)
        except psij.InvalidJobException as error:
            self.refused(job, part, error)
        else:
            self._taken.append((job, part, made, backend))
        if self._trouble:
            raise self._trouble.pop()
        if not self._more:
            self._note_taken()

    def _submit_together(self, job: Running) -> None:
        """Submit all parts as one native job."""
        self._note_taken()
        backend, made = job.of.executor(), [one for one in job.parts if one is not None]
        for part, one in enumerate(made):
            self.engine.listen(job, part, one)
        try:
            backend.submit_together(made)  # type: ignore[attr-defined]
        except psij.SubmitException as error:
            self._failed(job, 0, error)
        except psij.InvalidJobException as error:
            self.refused(job, 0, error)
        else:
            for part, one in enumerate(made):
                self._submitted(job, part, one, backend)

    def _submitted(self, job: Running, part: int, made: psij.Job, backend: psij.JobExecutor) -> None:
        """Have the native id on the disk."""
        if job.of.entry is None or made.native_id is None:
            return
        reference = backend.reference(made) if hasattr(backend, "reference") else made.native_id
        self.known(job, part, made.native_id, reference or made.native_id)

    def known(self, job: Running, part: int, native_id: str, reference: str) -> None:
        """A part has a native id."""
        job.references[part], job.seen[part].native_id = reference, native_id
        job.record()
        job.of.note(job, "native", {"native_id": native_id, "reference": reference}, part, job.of.executor().name)
        self.engine.write_soon()
        self.engine.pend_after(job)

    # -- what was not submitted
    def _failed(self, job: Running, part: int, error: psij.SubmitException) -> None:
        """A submission that failed: it may be there all the same, may be tried again, or was refused."""
        backend, made = job.of.executor(), job.parts[part]
        unknown = made is not None and hasattr(backend, "may_have_made") and backend.may_have_made(made)
        if job.of.entry is not None and (unknown or (error.transient and self._may_be_there(job, part))):
            for one in range(part, len(job.parts) if job.together else part + 1):
                job.parts[one] = None
                self.engine.adopting.doubt(job, one)
            job.asked = True
            self.engine.tell(job, f"nobody knows yet whether it was submitted: {error}")
        elif error.transient and self._tries.get(id(job), 0) < self.retries and not job.cancel:
            self._tries[id(job)] = tries = self._tries.get(id(job), 0) + 1
            pause = min(_PAUSE_S[0] * 2 ** (tries - 1), _PAUSE_S[1]) * random.uniform(0.5, 1.0)
            heapq.heappush(self.later, (time.monotonic() + pause, next(self._order), job, part))
            job.of.note(job, "note", {"text": f"try {tries + 1} of {self.retries + 1} in {pause:.1f} s: {error}"}, part)
        elif not error.transient and job.waits:
            self.once_more(job, f"not taken with its dependencies: {error}")
        else:
            self.refused(job, part, error)

    def _may_be_there(self, job: Running, part: int) -> bool:
        """Whether a submission that failed may have made a job all the same."""
        find = finder(job)
        if find is None:
            return False
        try:
            return find(job.tags[part]) is not None
        except psij.SubmitException:
            return True

    def try_again(self) -> None:
        """Submit again what is due, unless it is there after all."""
        while self.later and self.later[0][0] <= time.monotonic():
            _, _, job, part = heapq.heappop(self.later)
            if job.ended or job.word != "running":
                continue
            if job.of.entry is not None and self._may_be_there(job, part):
                self.engine.adopting.look_for(job, part)
            elif job.together:
                self._submit_together(job)
            else:
                self.submit(job, part)
                for other in range(part + 1, len(job.parts)):
                    if job.references[other] is None and job.of.entry is not None:
                        self.submit(job, other)

    def once_more(self, job: Running, why: str = "ended by its dependencies, which hold") -> None:
        """What certainly never ran is submitted again when we know that its dependencies hold."""
        job.of.note(job, "unsent", {"text": why})
        self.engine.starting.left(job)
        job.forget()
        job.apart = True
        self.engine.adopting.fill(job.of)
        self.engine.pend(job)

    def refused(self, job: Running, part: int, error: Exception) -> None:
        """A part that the executor did not take: it failed and never ran."""
        again = isinstance(error, psij.SubmitException) and error.transient
        status = psij.JobStatus(psij.JobState.FAILED, message=str(error), metadata={
            "reason": "never-ran", **({"transient": True} if again else {})})
        self.engine.tell_status(job, part, status)
        for other in job.parts[:part]:
            if other is not None:
                other.cancel()
        for missing in range(part + 1, len(job.parts)):
            self.engine.tell_status(job, missing, status)

    def next_due(self) -> float:
        """Seconds until something is to be tried again."""
        return self.later[0][0] - time.monotonic() if self.later else float("inf")

    def give_up(self, job: Running) -> None:
        """Try no more to submit a job whose end is wanted."""
        mine = [item for item in self.later if item[2] is job]
        self.later = [item for item in self.later if item[2] is not job]
        heapq.heapify(self.later)
        for _, _, _, part in mine:
            status = psij.JobStatus(psij.JobState.CANCELED, message="on request before it was started",
                                    metadata={"reason": "cancel"})
            for one in range(part, len(job.parts)):
                self.engine.tell_status(job, one, status)

    def release(self, job: Running) -> None:
        """End a hold that the resource manager keeps."""
        for made in job.parts:
            try:
                if made is not None:
                    job.of.executor().release(made)  # type: ignore[attr-defined]
            except psij.SubmitException as error:
                self.engine.tell(job, str(error))


def with_attributes(spec: psij.JobSpec, attributes: Mapping[str, object]) -> psij.JobSpec:
    """A copy with further custom attributes."""
    made = copy.copy(spec)
    made.attributes = copy.deepcopy(spec.attributes) if spec.attributes is not None else psij.JobAttributes()
    for name, value in attributes.items():
        made.attributes.set_custom_attribute(name, value)
    return made
