"""Which jobs may start.

A job goes out (``submitting``) when all that it waits for has ended as it should. Where the resource manager can be
told to wait, it goes out before that, with its dependencies; what it then does not start because they cannot hold any
more has the same end as here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from psij.executors.batch._options import custom_of
from sssjob.run.beginning import begin_of
from sssjob.run.gates import Gate
from sssjob.run.outcomes import JobOutcome, Word
from sssjob.run.plan import KINDS, Need
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["MOST_NATIVE", "Starting"]

_FRESH_S: Final = 60.0          # a job seen alive no longer ago is still known where others are to wait for it
MOST_NATIVE: Final = 200        # jobs that one is told to wait for; more are waited for here


class Starting:
    """Starts the jobs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.held: dict[int, Running] = {}      # by identity: ready but for their EligibleTime or their Hold
        self._running: dict[int, int] = {}                  # elements that run, by identity of the array's job
        self._queued: dict[int, dict[int, Running]] = {}    # elements that wait for room, by the same

    # -- deciding
    def start_ready(self) -> None:
        """Start or skip every job whose dependencies have decided; a skipped one may decide others."""
        self.engine.failing.end_groups()
        self.engine.arrays.look_anew()
        now, pending = time.time(), self.engine.pending
        for job in [j for j in self.held.values() if _due(j) <= now]:
            self.unhold(job)
            self.engine.pend(job)
        self.engine.room.offer_due()
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
            self.engine.submitting.launch(list(ready.values()))
        self.engine.submitting.try_again()

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
        """Whether one more job may be in flight, and one more element of its array, unless the resource manager sees to
        that; else it is kept until another one has ended."""
        member = job.plan.member
        if member is None:
            return self.engine.room.admits(job)
        key, limit = id(member.job), member.array.throttle
        if limit is not None and self._running.get(key, 0) >= limit and not self.engine.arrays.is_limited(job):
            self._queued.setdefault(key, {})[id(job)] = job
            return False
        if not self.engine.room.admits(job):
            return False
        self._running[key] = self._running.get(key, 0) + 1
        return True

    def within_limit(self, jobs: list[Running]) -> list[Running]:
        """Those of some prepared elements of one array that may run beside the others of it; the rest waits for their
        ends, as if it had not been prepared."""
        member = jobs[0].plan.member
        assert member is not None
        key = id(member.job)
        over = max(self._running.get(key, 0) - (member.array.throttle or 0), 0)
        kept = len(jobs) - min(over, len(jobs))
        for job in jobs[kept:]:
            self.left(job)
            job.forget()
            self._queued.setdefault(key, {})[id(job)] = job
        return jobs[:kept]

    def left(self, job: Running) -> None:
        """Give back the place of a job whose submission did not happen, also among running elements of its array."""
        self.engine.room.left(job)
        if job.plan.member is not None:
            self._running[id(job.plan.member.job)] -= 1

    def took_over(self, job: Running) -> None:
        """Count a job that another client has started."""
        self.engine.room.took(job)
        if job.plan.member is not None:
            key = id(job.plan.member.job)
            self._running[key] = self._running.get(key, 0) + 1

    def has_ended(self, job: Running) -> Iterable[Running]:
        """Jobs for which the end of another one has made room among the elements of its array."""
        self.engine.room.has_ended(job)
        member = job.plan.member
        if member is None or not job.seen:      # it never took any
            return ()
        key = id(member.job)
        self._running[key] = max(self._running.get(key, 0) - 1, 0)
        waiting = self._queued.get(key, {})
        while waiting:
            first = waiting.pop(next(iter(waiting)))
            if first.word == "waiting" and not first.on_hold:     # one that is held comes again when it is released
                return (first,)
        return ()

    def next_due(self) -> float:
        """Seconds until something is to be started."""
        return min([_due(j) - time.time() for j in self.held.values()], default=float("inf"))

    def unhold(self, job: Running) -> bool:
        """Take a job out of those that are held; whether it was one."""
        return self.held.pop(id(job), None) is not None

    def skip(self, job: Running, message: str, word: Word = "skipped") -> None:
        """A job that was not started and never will be; one that has had an attempt ends as that did."""
        self.unhold(job)
        if job.attempts:
            self.engine.failing.conclude(job, message)
            return
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
        attributes_of_wait: Mapping[str, object] | None = say(after)
        taken = custom_of(job.plan.parts[0].spec).keys() | (begin_of(job) or {}).keys()
        return None if attributes_of_wait is None or attributes_of_wait.keys() & taken else attributes_of_wait

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


def _due(job: Running) -> float:
    """Epoch seconds before which it must not be submitted; without end while it is held."""
    if job.on_hold:
        return float("inf")
    return 0 if begin_of(job) is not None else job.plan.eligible or 0


def _can_be_waited_for(jobs: list[Running], need: Need, job: Running) -> bool:
    """Whether the resource manager means the same as we do when it is told to wait for a job.

    It must be one of its own that was alive just now; of an older one it may know nothing, and start the other at once.
    One that may still be left out would count as failed or ended there. What is staged out after its end does not
    count there, of several native jobs it knows no failure of one, and of a job that may be tried again only its first
    attempt.
    """
    native = [other for other in jobs for _ in other.references[:1 if other.together else None]]
    if need.condition == "OnFailure" and len(native) != 1:
        return False
    return all(other.word == "running" and other.of.executor().name == job.of.executor().name and _alive(other)
               and other.of.cluster == job.of.cluster and _host(other) == _host(job)
               and (need.condition == "OnSuccess" or other.started or not other.waits)
               and not other.staging and other.plan.retry is None
               for other in jobs if not other.ended) and (need.condition == "OnSuccess" or not any(
                   other.ended for other in jobs))


def _host(job: Running) -> object:
    """Where the resource manager of a job is."""
    return getattr(job.of.executor(), "host", None)


def _alive(job: Running) -> bool:
    """Whether all parts have native ids and the resource manager has just now these very jobs under them."""
    is_there = getattr(job.of.executor(), "is_there", lambda psij_job: True)
    for psij_job, reference in zip(job.parts, job.references, strict=True):
        if psij_job is None or reference is None or psij_job.status.final:
            return False
        seen = (psij_job.status.metadata or {}).get("confirmed_at")
        if seen is None or time.time() - float(seen) > _FRESH_S or not is_there(psij_job):
            return False
    return bool(job.parts)


def _native_ids(job: Running) -> list[str]:
    """Those that have not ended; of a job of several parts that of the whole."""
    ids = [s.native_id for s in job.seen if s.native_id is not None and not job.ended]
    return list(dict.fromkeys(native_id.partition("+")[0] for native_id in ids)) if job.together else ids
