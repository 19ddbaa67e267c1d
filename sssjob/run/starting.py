"""Which jobs may start, and their submission.

A job goes out when all that it waits for has ended as it should. Where the resource manager can be told to wait, it
goes out before that, with its dependencies; what it then does not start because they cannot hold any more has the same
end as here. A submission that failed for a reason that may pass is tried again after a pause that grows, and never
blindly: the resource manager is asked for its tag first.
"""

from __future__ import annotations

import copy
import heapq
import random
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final

import psij
from sssjob.errors import AccessError
from sssjob.run import facts
from sssjob.run.gates import Gate
from sssjob.run.plan import KINDS, Need
from sssjob.run.signals import STOPS
from sssjob.run.standing import JobOutcome, Running, Word, intent

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["LOOK_AGAIN_S", "MOST_NATIVE", "RETRIES", "Starting", "finder"]

RETRIES: Final = 5              # further tries of a submission that failed for a reason that may pass
LOOK_AGAIN_S: Final = 5.0       # between two questions for a job of which nobody knows whether it was submitted
_PAUSE_S: Final = (1.0, 60.0)   # before the first further try, and before any
_FRESH_S: Final = 60.0          # a job seen alive no longer ago is still known where others are to wait for it
MOST_NATIVE: Final = 200       # jobs that one is told to wait for; more are waited for here


def finder(job: Running) -> Callable[[str | None], str | None] | None:
    """How to find a native job by its tag; None where the executor knows no way."""
    found: Callable[[str | None], str | None] | None = getattr(job.of.executor(), "native_id_of", None)
    return found


class Starting:
    """Starts the jobs of an engine."""

    def __init__(self, engine: Engine, retries: int) -> None:
        self.engine, self.retries = engine, retries
        self.held: dict[int, Running] = {}      # by identity: ready but for their EligibleTime or their Hold
        self.later: list[tuple[float, int, Running, int]] = []      # when to try again; a heap
        self._order = count()
        self._tries: dict[int, int] = {}                    # by identity of the job
        self._running: dict[int, int] = {}                  # elements that run, by identity of the array's job
        self._queued: dict[int, dict[int, Running]] = {}    # elements that wait for room, by the same

    # -- deciding
    def start_ready(self) -> None:
        """Start or skip every job whose dependencies have decided; a skipped one may decide others."""
        now, pending = time.time(), self.engine.pending
        for job in [j for j in self.held.values() if _due(j) <= now]:
            self.unhold(job)
            self.engine.pend(job)
        ready: dict[int, tuple[Running, Mapping[str, object] | None]] = {}
        while pending:
            job = self.engine.jobs[pending.popleft()]
            if not job.of.owned or job.ended:
                continue
            if job.word == "running" and job.waits and id(job) not in ready:
                self._reconsider(job)
            elif job.word == "waiting" and id(job) not in self.held:
                go, after = self._consider(job, now)
                if go:
                    job.word = "running"
                    ready[id(job)] = job, after
        if ready:
            self._launch(list(ready.values()))
        self._try_again()

    def _consider(self, job: Running, now: float) -> tuple[bool, Mapping[str, object] | None]:
        """Whether a job is to be started now, and what the resource manager is told to wait for."""
        if job.cancel:
            self.skip(job, "cancel: on request before it was started", "canceled")
            return False, None
        verdict = self.engine.gates.verdict(job)
        if isinstance(verdict, Need):
            self.skip(job, f"dependency: {verdict.text} does not hold")
            return False, None
        after = None if verdict else self._natively(job)
        if not verdict and after is None:
            return False, None
        if _due(job) > now:
            self.held[id(job)] = job
            return False, None
        return self._has_room(job), after

    def _reconsider(self, job: Running) -> None:
        """A job that the resource manager keeps waiting: end it when its turn can no longer come."""
        verdict = self.engine.gates.verdict(job)
        if all(s.final for s in job.seen):
            self.engine.settle(job)
        elif isinstance(verdict, Need) and not (job.started or job.cancel or job.doomed is not None):
            job.of.note(job, "note", {"text": f"{verdict.text} does not hold: it is taken out of the queue"})
            job.doomed = verdict if self.engine.end_natively(job) else None

    def _has_room(self, job: Running) -> bool:
        """Whether one more element of its array may run; else it is kept until another one has ended."""
        member = job.plan.member
        if member is None:
            return True
        key, limit = id(member.job), member.array.throttle
        if limit is not None and self._running.get(key, 0) >= limit:
            self._queued.setdefault(key, {})[id(job)] = job
            return False
        self._running[key] = self._running.get(key, 0) + 1
        return True

    def left(self, job: Running) -> None:
        """Count an element no more that has not been submitted after all."""
        if job.plan.member is not None:
            self._running[id(job.plan.member.job)] -= 1

    def took_over(self, job: Running) -> None:
        """Count an element that another client has started."""
        if job.plan.member is not None:
            key = id(job.plan.member.job)
            self._running[key] = self._running.get(key, 0) + 1

    def has_ended(self, job: Running) -> Iterable[Running]:
        """Jobs for which the end of another one has made room."""
        member = job.plan.member
        if member is None or not job.seen:      # it never took any
            return ()
        key = id(member.job)
        self._running[key] = max(self._running.get(key, 0) - 1, 0)
        waiting = self._queued.get(key, {})
        while waiting:
            first = waiting.pop(next(iter(waiting)))
            if first.word == "waiting":
                return (first,)
        return ()

    def next_due(self) -> float:
        """Seconds until something is to be started or tried again."""
        waits = [_due(j) - time.time() for j in self.held.values()]
        if self.later:
            waits.append(self.later[0][0] - time.monotonic())
        return min(waits, default=float("inf"))

    def unhold(self, job: Running) -> bool:
        """Take a job out of those that are held; whether it was one."""
        return self.held.pop(id(job), None) is not None

    def skip(self, job: Running, message: str, word: Word = "skipped") -> None:
        """A job that was not started and never will be."""
        self.unhold(job)
        job.left_out(message)
        self.engine.end(job, JobOutcome(job.plan.job, job.plan.label, word, message=message, origin="sssjob"))

    # -- dependencies that the resource manager is told of
    def _natively(self, job: Running) -> Mapping[str, object] | None:
        """The custom attributes with which the resource manager waits for what has not ended; None where it cannot."""
        say = getattr(job.of.executor(), "dependency_attributes", None)
        if say is None or job.apart or not job.plan.parts:
            return None
        after: dict[str, list[str]] = {}
        for gate in self.engine.gates.of(job):
            if not gate.decided and not self._add(gate, job, after):
                return None
        if not after or sum(map(len, after.values())) > MOST_NATIVE:
            return None
        said: Mapping[str, object] | None = say(after)
        taken = _custom(job.plan.parts[0].spec)
        return None if said is None or any(name in taken for name in said) else said

    def _add(self, gate: Gate, job: Running, after: dict[str, list[str]]) -> bool:
        """Add what one dependency waits for; False where the resource manager knows no such thing."""
        if gate.need.code is not None or gate.need.condition not in KINDS:
            return False
        ids = after.setdefault(KINDS[gate.need.condition], [])
        ids += gate.foreign
        for side in gate.sides:
            if side.open and not _can_be_waited_for(side.jobs, gate.need, job):
                return False
            ids += [id_ for other in side.jobs if side.open for id_ in _native_ids(other)]
        return True

    # -- submitting
    def _launch(self, ready: list[tuple[Running, Mapping[str, object] | None]]) -> None:
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
            for n, job in enumerate(jobs):
                if self.engine.leaves and self._told_to_leave():
                    for left in jobs[n:]:
                        left.of.note(left, "unsent", {})
                        self.left(left)
                        left.forget()
                    break
                self.engine.progress.changed(job.plan.label, "running")
                self._submit_all(job)

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
        made = psij.Job(spec if after is None else _with(spec, after))
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
        self.engine.listen(job, part, made)
        try:
            backend.submit(made)
        except psij.SubmitException as error:
            self._failed(job, part, error)
        except psij.InvalidJobException as error:
            self.refused(job, part, error)
        else:
            self._submitted(job, part, made, backend)

    def _submit_together(self, job: Running) -> None:
        """Submit all parts as one native job."""
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
        facts.record(job.plan.job, job.seen)
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

    def _try_again(self) -> None:
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
        self.left(job)
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


def _due(job: Running) -> float:
    """Epoch seconds before which it must not start; without end while it is held."""
    return float("inf") if job.plan.held and not job.released else job.plan.eligible or 0


def _can_be_waited_for(jobs: list[Running], need: Need, job: Running) -> bool:
    """Whether the resource manager means the same as we do when it is told to wait for a job.

    It must be one of its own that was alive just now; of an older one it may know nothing, and start the other at once.
    One that may still be left out would count as failed or ended there. What is staged out after its end does not
    count there, and of several native jobs it knows no failure of one.
    """
    native = [other for other in jobs for _ in other.references[:1 if other.together else None]]
    if need.condition == "OnFailure" and len(native) != 1:
        return False
    return all(other.word == "running" and other.of.executor().name == job.of.executor().name and _alive(other)
               and (need.condition == "OnSuccess" or other.started or not other.waits)
               and not any(p.spec.stage_out or p.spec.cleanup for p in other.plan.parts)
               for other in jobs if not other.ended) and (need.condition == "OnSuccess" or not any(
                   other.ended for other in jobs))


def _alive(job: Running) -> bool:
    """Whether all parts have native ids and the resource manager has spoken of them just now."""
    for made, reference in zip(job.parts, job.references, strict=True):
        if made is None or reference is None or made.status.final:
            return False
        seen = (made.status.metadata or {}).get("confirmed_at")
        if seen is None or time.time() - float(seen) > _FRESH_S:
            return False
    return bool(job.parts)


def _native_ids(job: Running) -> list[str]:
    """Those that have not ended; of a job of several parts that of the whole."""
    ids = [s.native_id for s in job.seen if s.native_id is not None and not job.ended]
    return list(dict.fromkeys(one.partition("+")[0] for one in ids)) if job.together else ids


def _custom(spec: psij.JobSpec) -> Mapping[str, object]:
    return (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}


def _with(spec: psij.JobSpec, attributes: Mapping[str, object]) -> psij.JobSpec:
    """A copy with further custom attributes."""
    made = copy.copy(spec)
    made.attributes = copy.deepcopy(spec.attributes) if spec.attributes is not None else psij.JobAttributes()
    for name, value in attributes.items():
        made.attributes.set_custom_attribute(name, value)
    return made
