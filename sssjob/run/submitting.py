"""The submission of jobs that may start, in their order.

What is about to be submitted is on the disk before. While submit commands run, in threads of their own (``crew``), what
those before them have done is noted here, and the next script is written. A submission that failed for a reason that
may pass is tried again after a pause that grows, and never blindly: the resource manager is asked for its tag first.
"""

from __future__ import annotations

import heapq
import random
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Final

import psij
from psij.executors._local_staging import StagingError
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import AccessError
from sssjob.run import turns
from sssjob.run.abilities import Doubts, PreparesAhead, SubmitsArrays, SubmitsTogether
from sssjob.run.arrays import whole_of
from sssjob.run.beginning import begin_of, no_hold, with_attributes
from sssjob.run.commands import most_at_once, prepare_scripts
from sssjob.run.crew import Crew
from sssjob.run.placing import native_name, place, user_there
from sssjob.run.plan import Need
from sssjob.run.recording import WRITE_S
from sssjob.run.replaying import intent
from sssjob.run.rows import NEVER_RAN
from sssjob.run.seeking import can_search, search
from sssjob.run.signals import STOPS
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["LOOK_AGAIN_S", "RETRIES", "Submitting"]

RETRIES: Final = 5              # further tries of a submission that failed for a reason that may pass
LOOK_AGAIN_S: Final = 5.0       # between two questions for a job of which nobody knows whether it was submitted
_AHEAD: Final = 32              # scripts that are written in a row; one between two commands takes twice the CPU time
_OF_ARRAYS: Final = re.compile(r"\barray|\btasks\b", re.IGNORECASE)     # in the words of who refuses one
_PAUSE_S: Final = (1.0, 60.0)   # before the first further try, and before any


class Submitting:
    """Submits jobs for an engine."""

    def __init__(self, engine: Engine, retries: int) -> None:
        self.engine, self.retries = engine, retries
        self.later: list[tuple[float, int, Running, int]] = []      # when to try again; a heap
        self._unbegun: set[int] = set()     # by identity: jobs in it whose submit command did not run
        self._order = count()
        self._taken: deque[tuple[Running, psij.Job]] = deque()      # submitted, not noted yet
        self._goes_well = False                     # the last submit command whose end was taken in made its job
        self._doubted: set[str] = set()                     # tags of arrays of which that was told

    def launch(self, ready: list[tuple[Running, Mapping[str, object] | None]]) -> None:
        """Submit jobs. What is about to be submitted is on the disk before the first of them is."""
        afters = {id(job): after for job, after in ready}
        consignments = self._intended(
            self.engine.arrays.gathered([job for job, after in ready if self._prepare(job, after)]), afters)
        for submission in {id(jobs[0].of): jobs[0].of for jobs in consignments}.values():
            mine = [jobs for jobs in consignments if jobs[0].of is submission]
            try:
                if submission.entry is not None:
                    place(submission.entry, submission.executor())
                    submission.entry.flush()
            except AccessError as error:
                assert submission.entry is not None
                submission.entry.forget("intent")
                for job in chain(*mine):
                    self.refused(job, 0, error)
                continue
            self._submit_each(mine)

    def _intended(self, consignments: Sequence[Sequence[Running]], afters: Mapping[int, Mapping[str, object] | None]
                  ) -> Sequence[Sequence[Running]]:
        """Write down what is about to be submitted. Gives it without that for which there is no room under a cap, by
        what other clients have written until then: nobody writes between the look and the intents."""
        entries = list({id(job.of): job.of.entry for job, *_ in consignments if job.of.entry is not None}.values())
        noted = False
        if entries and self.engine.room.is_capped:
            with suppress(AccessError), entries[0].journal.together():
                consignments = self.engine.room.within_caps(consignments)
                self._note_intents(consignments, afters)
                noted = True
                for entry in entries:
                    entry.flush()
        if not noted:           # the journal takes nothing now, which the next try tells
            self._note_intents(consignments, afters)
        if entries:
            entries[0].journal.flush_together([(entry, False) for entry in entries])
        return consignments

    def _note_intents(self, consignments: Sequence[Sequence[Running]],
                      afters: Mapping[int, Mapping[str, object] | None]) -> None:
        for job in chain(*consignments):
            for part in range(len(job.parts)):
                self._note_intent(job, part, afters[id(job)])

    def _submit_each(self, consignments: Sequence[Sequence[Running]]) -> None:
        """Submit jobs in their order, and elements of an array together, until a signal tells to leave or the time is
        up. Several commands run at a time once one has been answered as it should: where a resource manager is away or
        full, that is found out by one job."""
        with Crew[Running]() as crew:
            ahead = 1       # of so many consignments the scripts are written, beside that whose turn it is
            try:
                for n, jobs in enumerate(consignments):
                    most = most_at_once(jobs)
                    while crew.working and crew.working >= (most if self._goes_well else 1):
                        self._take_end(crew)
                    if (self.engine.leaves and self._told_to_leave()) or not self.engine.in_time:
                        self._leave(list(chain(*consignments[n:])))
                        break
                    if self.engine.room.is_closed(jobs[0]):
                        for job in jobs:        # which are prepared, and for which there is no room
                            self._withdraw(job)
                            self.engine.room.held_back(job)
                        continue
                    for job in jobs:
                        self.engine.show(job)
                    if not most:
                        self._submit_here(jobs)
                        continue
                    self._give(crew, jobs[0])
                    if n + 1 >= ahead:
                        ahead = n + 1 + (_AHEAD if self._goes_well else 1)
                        prepare_scripts(consignments[n + 1:ahead])
                    if self.engine.recording.is_due:
                        self._note_taken()
            finally:
                while crew.working:
                    self._take_end(crew)
                self._note_taken()

    def _give(self, crew: Crew[Running], job: Running) -> None:
        """Have a thread submit a job, whose script is written here where it is not yet."""
        psij_job = job.parts[0]
        assert psij_job is not None
        prepare_scripts([[job]])
        self._begins(job, 0, psij_job)
        crew.give(job, partial(job.of.executor().submit, psij_job))

    def _begins(self, job: Running, part: int, psij_job: psij.Job) -> None:
        """A submit command of a part is about to run."""
        self.engine.listen(job, part, psij_job)
        if job.of.entry is not None:
            job.of.entry.begins()

    def _take_end(self, crew: Crew[Running]) -> None:
        """Take in what became of a submission; one that succeeded is noted a little later, with others, and before
        anybody waits for long."""
        end = crew.next_end(WRITE_S if self._taken else None)
        if end is None:
            self._note_taken()
            return
        job, error = end
        psij_job = job.parts[0]
        self._goes_well = error is None
        if isinstance(error, psij.SubmitException):
            self._failed(job, 0, error)
        elif isinstance(error, psij.InvalidJobException):
            self.refused(job, 0, error)
        elif error is not None:
            raise error
        elif psij_job is not None:
            self._taken.append((job, psij_job))
            self.engine.room.taken(job)

    def _submit_here(self, jobs: Sequence[Running]) -> None:
        """Submit what no thread submits: elements of an array, parts, and what its executor takes at once."""
        self._note_taken()
        if jobs[0].array is not None:
            self._submit_array(jobs)
        elif jobs[0].together:
            self._submit_together(jobs[0])
        else:
            for part in range(len(jobs[0].parts)):
                self.submit(jobs[0], part)

    def leave(self) -> None:
        """Let the next client begin at once what was to be tried again and was not begun: it would wait until a submit
        command that may be under way must have done its work."""
        self._leave([job for _, _, job, part in self.later
                     if id(job) in self._unbegun and not part and (job.together or len(job.parts) == 1)
                     and not job.ended and job.word == "running"])

    def _leave(self, jobs: Sequence[Running]) -> None:
        """Do not submit jobs that are prepared."""
        for job in jobs:
            self._withdraw(job)
            self.engine.starting.left(job)
            job.forget()
            job.of.note(job, "unsent", {"text": "the client was told to end, or its time was up"})

    @staticmethod
    def _withdraw(job: Running) -> None:
        for psij_job in job.parts:
            if psij_job is not None and isinstance(backend := job.of.executor(), PreparesAhead):
                backend.withdraw(psij_job)

    def _note_taken(self) -> None:
        """Have the native ids of what was submitted on the disk."""
        while self._taken:
            job, psij_job = self._taken.popleft()
            self._submitted(job, 0, psij_job, job.of.executor())

    def _told_to_leave(self) -> bool:
        """Whether a signal has come, which is then the next event."""
        if not any(word in STOPS for word in self.engine.signals):
            return False
        events = self.engine.events
        kept = []
        while not events.empty():
            kept.append(events.get())
        for event in sorted(kept, key=lambda event: not isinstance(event, str)):
            events.put(event)
        return True

    def _prepare(self, job: Running, after: Mapping[str, object] | None) -> bool:
        """Make psij's jobs for the parts of a job."""
        parts = job.plan.parts
        job.prepare(max(len(parts), 1))
        job.waits, job.together = after is not None, job.plan.together
        job.hold = turns.is_to_be_held(job)
        if not parts:
            self.refused(job, 0, ValueError("it can no longer be planned"))
            return False
        for part in range(len(parts)):
            self._make_part(job, part, after)
        return True

    def prepare_part(self, job: Running, part: int) -> None:
        """Make psij's job for one part, and note that it is about to be submitted."""
        self._make_part(job, part, None)
        self._note_intent(job, part, None)

    def _make_part(self, job: Running, part: int, after: Mapping[str, object] | None) -> None:
        spec = self.engine.promised.take_out(job, part, job.plan.parts[part].spec)
        unheld = job.plan.held_there and not job.hold       # it was released before it was submitted
        further = {**(after or {}), **(begin_of(job) or {}), **(no_hold(job) if unheld else {})}
        psij_job = psij.Job(with_attributes(spec, further) if further else spec)
        job.parts[part], job.tags[part], job.references[part] = psij_job, psij_job.id, None
        if job.attempts and isinstance(backend := job.of.executor(), BatchSchedulerExecutor):
            backend.comes_after(psij_job, job.earlier())

    def _note_intent(self, job: Running, part: int, after: Mapping[str, object] | None) -> None:
        job.begun = True
        psij_job = job.parts[part]
        if job.of.entry is not None and psij_job is not None:
            array = None if job.array is None else {"tag": job.array.tag, "number": next(iter(job.array.indices))}
            job.intents[part] = intent(psij_job.id, len(job.plan.parts), after, job.staging.get(part), array,
                                       native_name(job.of.executor(), psij_job), user_there(job.of.executor()),
                                       hold=job.hold, together=job.together,
                                       stages_in=bool(psij_job.spec and psij_job.spec.stage_in))
            job.of.note(job, "intent", job.intents[part], part)

    def submit(self, job: Running, part: int) -> None:
        """Submit one part that was prepared, and wait for the answer."""
        psij_job, backend = job.parts[part], job.of.executor()
        assert psij_job is not None
        self._begins(job, part, psij_job)
        try:
            backend.submit(psij_job)
        except psij.SubmitException as error:
            self._failed(job, part, error)
        except psij.InvalidJobException as error:
            self.refused(job, part, error)
        else:
            self._submitted(job, part, psij_job, backend)
            self.engine.room.taken(job)

    def _submit_together(self, job: Running) -> None:
        """Submit all parts as one native job."""
        backend, psij_jobs = job.of.executor(), [psij_job for psij_job in job.parts if psij_job is not None]
        for part, psij_job in enumerate(psij_jobs):
            self._begins(job, part, psij_job)
        assert isinstance(backend, SubmitsTogether)
        try:
            backend.submit_together(psij_jobs)
        except psij.SubmitException as error:
            self._failed(job, 0, error)
        except psij.InvalidJobException as error:
            self.refused(job, 0, error)
        else:
            for part, psij_job in enumerate(psij_jobs):
                self._submitted(job, part, psij_job, backend)
            self.engine.room.taken(job)

    def _submit_array(self, jobs: Sequence[Running]) -> None:
        """Submit elements of an array by one command."""
        backend, psij_jobs = jobs[0].of.executor(), [psij_job for job in jobs for psij_job in job.parts
                                                     if psij_job is not None]
        for job, psij_job in zip(jobs, psij_jobs, strict=True):
            self.engine.listen(job, 0, psij_job)
        if jobs[0].of.entry is not None:
            jobs[0].of.entry.begins()
        assert isinstance(backend, SubmitsArrays)
        try:
            backend.submit_array(psij_jobs, whole_of(jobs))
        except psij.SubmitException as error:
            self._array_failed(jobs, error)
        except psij.InvalidJobException as error:
            for job in jobs:
                self.refused(job, 0, error)
        else:
            for job, psij_job in zip(jobs, psij_jobs, strict=True):
                self._submitted(job, 0, psij_job, backend)
                self.engine.room.taken(job)

    def _submitted(self, job: Running, part: int, psij_job: psij.Job, backend: psij.JobExecutor) -> None:
        """Have the native id on the disk."""
        if job.of.entry is None or psij_job.native_id is None:
            return
        refer = getattr(backend, "reference", None)         # that of Refers; isinstance of a protocol takes longer
        reference = psij_job.native_id if refer is None else refer(psij_job)
        self.known(job, part, psij_job.native_id, reference or psij_job.native_id)

    def known(self, job: Running, part: int, native_id: str, reference: str) -> None:
        """A part has a native id."""
        job.references[part], job.seen[part].native_id = reference, native_id
        job.record()            # it is the Id of a job that has none, which is told before any status comes
        job.of.note(job, "native", {"native_id": native_id, "reference": reference}, part, job.of.executor().name)
        place(job.of.entry, job.of.executor())
        self.engine.recording.write_soon()
        self.engine.pend_after(job)

    # -- what was not submitted
    def _array_failed(self, jobs: Sequence[Running], error: psij.SubmitException) -> None:
        """The submission of elements together failed: they are in the same case. Where it was refused because of the
        array, each is a job of its own."""
        unsure = self._is_unsure(jobs[0], 0, error)
        if not (unsure or error.transient or isinstance(error, psij.QueueFullException)) and _OF_ARRAYS.search(
                str(error)):
            for job in jobs:
                self._anew(job, f"not taken as an array: {error}")
                job.alone = True
            return
        pause = self._pause_of(jobs[0])
        due = time.monotonic() + pause          # one time for all of them, so that they go out together again
        for job in jobs:
            self._failed(job, 0, error, unsure, (pause, due))
        if isinstance(error, psij.QueueFullException) and not unsure:
            self.engine.room.full_for_many(jobs)

    def _is_unsure(self, job: Running, part: int, error: psij.SubmitException) -> bool:
        """Whether a submission that failed may have made a job all the same."""
        if _is_before_command(error):
            return False
        backend, psij_job = job.of.executor(), job.parts[part]
        unknown = psij_job is not None and isinstance(backend, Doubts) and backend.may_have_made(psij_job)
        return job.of.entry is not None and (unknown or (error.transient and bool(self._perhaps_there([(job, part)]))))

    @staticmethod
    def _pause_of(job: Running) -> float:
        """Seconds before a job is submitted again."""
        longest: float = min(_PAUSE_S[0] * 2 ** job.tries, _PAUSE_S[1])
        return longest * random.uniform(0.5, 1.0)

    def _failed(self, job: Running, part: int, error: psij.SubmitException, unsure: bool | None = None,
                again: tuple[float, float] | None = None) -> None:
        """A submission that failed: it may be there all the same, may be tried again, or was refused. unsure: as of
        ``_is_unsure``, where that is known. again: the pause before the next try and its end by the monotonic clock."""
        if self._is_unsure(job, part, error) if unsure is None else unsure:
            for number in range(part, len(job.parts) if job.together else part + 1):
                job.parts[number] = None
                self.engine.adopting.doubt(job, number)
            job.asked = True
            if error.transient:
                self.engine.room.silent(job)
            if job.array is None or job.array.tag not in self._doubted:
                self._doubted.add("" if job.array is None else job.array.tag)
                self.engine.tell(job, f"nobody knows yet whether it was submitted: {error}")
        elif isinstance(error, psij.QueueFullException) and not job.cancel:
            self._no_room(job, part, error)
        elif error.transient and job.tries < self.retries and not job.cancel:
            pause, due = again or ((pause := self._pause_of(job)), time.monotonic() + pause)
            job.tries = tries = job.tries + 1       # those of other clients count as well
            heapq.heappush(self.later, (due, next(self._order), job, part))
            (self._unbegun.add if _is_before_command(error) else self._unbegun.discard)(id(job))
            job.of.note(job, "try", {"tries": tries, "pause": pause, "text": f"try {tries + 1} of {self.retries + 1} "
                                     f"in {pause:.1f} s: {error}"}, part)
            self.engine.recording.write_soon()
        elif not error.transient and job.waits:
            self.once_more(job, f"not taken with its dependencies: {error}")
        else:
            self.refused(job, part, error)

    def _no_room(self, job: Running, part: int, error: psij.QueueFullException) -> None:
        """The queue is full: the job waits for room. One of which parts have been submitted waits as it is."""
        if part and not job.together:
            heapq.heappush(self.later, (time.monotonic() + _PAUSE_S[1], next(self._order), job, part))
            job.of.note(job, "note", {"text": f"again in {_PAUSE_S[1]:g} s: {error}"}, part)
            return
        self._withdraw(job)
        if self.engine.room.is_closed(job):         # said of another element of its array, by the same command
            self.engine.room.held_back(job)
        else:
            self.engine.room.full(job, str(error))
        self.engine.show(job, job.held_for or "")

    def _perhaps_there(self, parts: Sequence[tuple[Running, int]]) -> set[str]:
        """Tags of those of these parts whose submission may have made a job although it failed: each executor is asked
        once for all of them."""
        tags: dict[int, tuple[psij.JobExecutor, list[str]]] = {}
        for job, part in parts:
            tag, backend = job.sought(part), job.of.executor()
            if job.of.entry is not None and tag is not None and can_search(backend):
                tags.setdefault(id(backend), (backend, []))[1].append(tag)
        tags_there: set[str] = set()
        for backend, asked in tags.values():
            answer = search(backend, asked)
            tags_there |= set(asked) if answer.silence is not None else answer.found.keys()
        return tags_there

    def try_again(self) -> None:
        """Submit again what is due, unless it is there after all."""
        due = []
        while self.later and self.later[0][0] <= time.monotonic():
            _, _, job, part = heapq.heappop(self.later)
            if not job.ended and job.word == "running":
                due.append((job, part))
        perhaps = self._perhaps_there([(job, part) for job, part in due if id(job) not in self._unbegun])
        arrays: dict[str, list[Running]] = {}
        for job, part in due:
            if job.sought(part) in perhaps:
                self.engine.adopting.look_for(job, part)
            elif isinstance(self.engine.gates.verdict(job), Need) and not any(job.references):
                self._anew(job, "what it waits for has ended otherwise meanwhile")
            elif job.array is not None:
                arrays.setdefault(job.array.tag, []).append(job)
            elif job.together:
                self._submit_together(job)
            else:
                self.submit(job, part)
                for other in range(part + 1, len(job.parts)):
                    if job.references[other] is None and job.of.entry is not None:
                        self.submit(job, other)
        for jobs in arrays.values():
            self._submit_array(jobs)

    def once_more(self, job: Running, why: str = "ended by its dependencies, which hold") -> None:
        """What certainly never ran is submitted again when we know that its dependencies hold."""
        self._anew(job, why)
        job.apart = True

    def _anew(self, job: Running, why: str) -> None:
        """Have a job that certainly was not made start anew."""
        self.engine.starting.left(job)
        job.forget()
        job.of.note(job, "unsent", {"text": why})
        self.engine.adopting.fill(job.of)
        self.engine.pend(job)

    def refused(self, job: Running, part: int, error: Exception) -> None:
        """A part that the executor did not take: it failed and never ran."""
        again = isinstance(error, psij.SubmitException) and error.transient
        status = psij.JobStatus(psij.JobState.FAILED, message=str(error), metadata={
            "reason": NEVER_RAN, **({"transient": True} if again else {})})
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
            for number in range(part, len(job.parts)):
                self.engine.tell_status(job, number, status)


def _is_before_command(error: psij.SubmitException) -> bool:
    """Whether a submission failed before its submit command ran."""
    return isinstance(error.__cause__, StagingError)
