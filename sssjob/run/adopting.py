"""Jobs that another client has begun: those that have a native id are followed, the others are looked for by their tag.

What bears the tag is there and followed. What does not, although the resource manager has answered and any submit
command must have done its work by now, was not submitted and is begun anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import psij
from psij.executors.batch._terms import Search
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import AccessError
from sssjob.findings import Findings, Policy
from sssjob.run.abilities import SubmitsArrays, SubmitsTogether
from sssjob.run.attempts import changes_of
from sssjob.run.changing import rewrite
from sssjob.run.history import since
from sssjob.run.plan import Plan, make_plan
from sssjob.run.seeking import Seeker, can_search
from sssjob.run.standing import Running, Submission
from sssjob.run.submitting import LOOK_AGAIN_S
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["Adopting"]

_LOST_S: Final = 60.0       # how long a job is looked for, unless the executor's lost_after says it


class Adopting:
    """Takes over jobs for an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.unsure: list[tuple[float, Running, int]] = []      # when to look for a part that may have been submitted
        self._seeker = Seeker(engine.events.put)
        self._sought: dict[str, list[tuple[Running, int]]] = {}     # by tag: parts that nobody was asked for yet

    def fill(self, submission: Submission) -> None:
        """Plan the jobs of a submission that another client has begun, as that client did."""
        if submission.entry is None or not any(
                job.word == "waiting" and not job.plan.parts for job in submission.jobs):
            return
        plan = self.planned(submission)
        for job, planned in zip(submission.jobs, plan.jobs, strict=True):
            job.plan.parts, job.plan.together, job.plan.eligible = planned.parts, planned.together, planned.eligible
            job.plan.held, job.plan.held_there = planned.held, planned.held_there
            if job.attempts:
                changes = changes_of(job.plan.retry, (attempt.clause for attempt in job.attempts))
                job.plan.parts = plan.again(job.number, changes, len(job.attempts) + 1)
                job.plan.held_there = False

    def planned(self, submission: Submission) -> Plan:
        """The plan of a submission; made once, of one that another client has begun."""
        if submission.planned is None:
            entry = submission.entry
            assert entry is not None        # else it was begun here, with its plan
            document = read_document(entry.document)
            rewrite(document, {job.number: job.changes for job in submission.jobs})
            submission.planned = make_plan(
                document, Findings(), executor=entry.executor, cwd=entry.directory,
                policy=Policy.of(entry.policy) or Policy.REJECT, scripts=entry.folder / "scripts",
                backend=submission.executor())
        return submission.planned

    def adopt(self, submission: Submission) -> None:
        """Follow what another client has submitted; look for what it may have submitted; go on with the rest."""
        self.fill(submission)
        self.engine.failing.look_at(submission)
        for job in submission.jobs:
            self.engine.pend(job)
            if job.ended:
                self.engine.on_end.resume(job)
            if job.word != "running" or job.ended:
                continue
            self.engine.starting.took_over(job)
            if all(s.final for s in job.seen):
                self.engine.settle(job)
                continue
            for part, seen in enumerate(job.seen):
                reference = job.references[part]
                if part in job.leaving and not seen.final:
                    self.engine.promised.resume(job, part)
                elif not seen.final and reference is not None:
                    self._attach(job, part, reference)
                elif not seen.final:
                    self.look_for(job, part)

    def doubt(self, job: Running, part: int) -> None:
        """Look for a part in a while."""
        self.unsure.append((time.monotonic() + LOOK_AGAIN_S, job, part))

    def look_again(self, now: float) -> None:
        """Look for those whose time has come. now: by the monotonic clock."""
        due = [(job, part) for when, job, part in self.unsure if when <= now]
        self.unsure = [item for item in self.unsure if item[0] > now]
        for job, part in due:
            if not job.ended and job.word == "running" and part < len(job.parts) and job.parts[part] is None:
                self.look_for(job, part)

    def _attach(self, job: Running, part: int, reference: str) -> None:
        psij_job = psij.Job()
        psij_job._id = job.tags[part] or psij_job.id        # by which psij knows the files of the job
        job.tags[part] = psij_job.id
        self.engine.listen(job, part, psij_job)
        job.parts[part] = psij_job
        try:
            backend = job.of.executor()
            if isinstance(backend, BatchSchedulerExecutor):
                backend.expect(psij_job, job.identity(part), job.cancel,
                               missing_since=job.seen[part].known.get("missing_since"))
            backend.attach(psij_job, reference)
        except psij.SubmitException as error:
            job.parts[part] = None
            self.engine.tell(job, f"cannot be followed: {error}")
            self.doubt(job, part)
            return
        if job.cancel:
            self.engine.cancel(job)
        elif job.doomed is not None:
            self.engine.end_natively(job)

    def leave(self) -> None:
        """Have no executor follow what nobody listens to any more: who goes on attaches to all of it anew."""
        for job in self.engine.jobs:
            backend = job.of.executor() if any(job.parts) else None
            if isinstance(backend, BatchSchedulerExecutor):
                for psij_job in filter(None, job.parts):
                    backend.leave(psij_job)

    def look_for(self, job: Running, part: int) -> None:
        """Have a part asked for by its tag, unless it is known: it is there and followed, or certainly is not and
        starts anew, or the question comes again."""
        reference, tag = job.references[part], job.sought(part)
        if reference is not None:
            self._attach(job, part, reference)
        elif job.together and part:
            return                      # known as soon as the first one is
        elif tag is None or not can_search(job.of.executor()):
            job.asked = True
            self._lost(job, part, f"{job.of.executor().name} cannot say whether it was submitted")
        else:
            self._sought.setdefault(tag, []).append((job, part))

    @property
    def seeks(self) -> bool:
        """Whether an executor is to be asked for parts, or has not answered yet."""
        return bool(self._sought) or self._seeker.is_asking()

    def ask(self) -> None:
        """Ask for all parts that are to be looked for: each executor once for all of its own, and for those that come
        meanwhile when it has answered. A step of the engine's loop, in which nothing waits for the answers."""
        asked: dict[int, tuple[psij.JobExecutor, dict[str, bool]]] = {}
        for tag, parts in self._sought.items():
            backend = parts[0][0].of.executor()
            if not self._seeker.is_asking(backend):
                asked.setdefault(id(backend), (backend, {}))[1][tag] = all(self._grace_over(*pair) for pair in parts)
        for backend, over in asked.values():
            sought = {tag: self._sought.pop(tag) for tag in over}
            self._seeker.ask(backend, list(over), partial(self._answered, sought, over))

    def _answered(self, sought: Mapping[str, Sequence[tuple[Running, int]]], over: Mapping[str, bool], tag: str,
                  answer: Search) -> None:
        """What an executor knows of a tag. over: whether the jobs must have been there when it was asked for."""
        for job, part in sought[tag]:
            settled = job.ended or job.word != "running" or part >= len(job.tags) or job.sought(part) != tag
            if not settled and job.references[part] is None:
                self._take_answer(job, part, over, tag, answer)

    def _take_answer(self, job: Running, part: int, over: Mapping[str, bool], tag: str, answer: Search) -> None:
        job.asked = True
        reference, silence = answer.found.get(tag), answer.silence
        if reference is not None:
            job.of.note(job, "note", {"text": f"found by its tag {tag}"}, part, job.of.executor().name)
            self._found(job, part, reference)
            return
        if silence is not None:
            self.engine.tell(job, str(silence))
            if not silence.transient and over[tag]:
                self._lost(job, part, f"{silence}, and nothing that it writes was found")
                return
        elif getattr(job.of.executor(), "records", None) is not None and since(job.intents[part]) is None:
            self._lost(job, part, "the machine was started anew, and nobody knows whether it had begun")
            return
        elif over[tag]:
            self._anew(job, part)
            return
        job.parts[part] = None
        self.doubt(job, part)

    def _found(self, job: Running, part: int, reference: str) -> None:
        """A part, and with the first of several that are one native job all of them."""
        parts = [(part, reference)]
        array = job.intents[part].get("array")
        if array is not None:
            backend = job.of.executor()
            assert isinstance(backend, SubmitsArrays)
            parts = [(part, backend.element_id(reference, int(array["number"])))]
        if job.together:
            backend = job.of.executor()
            assert isinstance(backend, SubmitsTogether)
            parts = [(n, backend.part_id(reference, n)) for n in range(len(job.seen))]
        for n, each_reference in parts:
            self.engine.submitting.known(job, n, each_reference.partition("@")[0], each_reference)
            self._attach(job, n, each_reference)

    def _grace_over(self, job: Running, part: int) -> bool:
        """Whether a submit command that was under way must have done its work by now. It began after its intent was
        written, with those of many jobs, and not after the last one that its client has begun; where files are staged
        in before it, or another host or boot has written that, nobody knows when, and our own clock counts."""
        stated, entry = job.intents[part], job.of.entry
        marks = [stated, *([entry.last_begun] if entry is not None and entry.last_begun else [])]
        ages = [None if stated.get("stages_in") else since(mark) for mark in marks]
        known_ages = [age for age in ages if age is not None]
        passed = (min(known_ages) if len(known_ages) == len(marks)
                  else time.monotonic() - stated.setdefault("_looked", time.monotonic()))
        config = job.of.executor().config
        return passed >= float(getattr(config, "lost_after", 0.0 if job.of.executor().name == "local" else _LOST_S))

    def _anew(self, job: Running, part: int) -> None:
        """A part that another client meant to submit and did not."""
        text = f"nothing bears the tag {job.sought(part)}: it was not submitted"
        if job.cancel:
            job.of.note(job, "note", {"text": text}, part, job.of.executor().name)
            status = psij.JobStatus(psij.JobState.CANCELED, message="on request before it was started",
                                    metadata={"reason": "cancel"})
            self.engine.tell_status(job, part, status)
            return
        if len(job.seen) == 1 or job.together:
            self.engine.starting.left(job)
            job.forget()
            job.of.note(job, "unsent", {"text": text}, part, job.of.executor().name)
            self.fill(job.of)
            self.engine.pend(job)
            return
        job.of.note(job, "note", {"text": text}, part, job.of.executor().name)
        self._part_anew(job, part)

    def _part_anew(self, job: Running, part: int) -> None:
        if not job.plan.parts:
            job.word = "waiting"
            self.fill(job.of)
            job.word = "running"
        self.engine.submitting.prepare_part(job, part)
        try:
            assert job.of.entry is not None
            job.of.entry.flush()
        except AccessError as error:
            self.engine.submitting.refused(job, part, error)
            return
        self.engine.submitting.submit(job, part)

    def _lost(self, job: Running, part: int, message: str) -> None:
        self.engine.tell_status(job, part, psij.JobStatus(
            psij.JobState.FAILED, message=message, metadata={"reason": "lost"}))
