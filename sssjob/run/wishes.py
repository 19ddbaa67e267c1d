"""What users want of jobs that wait or run: that they are held, released, run again, suspended, resumed, signalled or
changed.

A wish is an event in the journal; here it is a text, the kind of that event, for ``signal`` with its name and for
``change`` with what is to be otherwise. The client
that looks after the job carries it out and answers with an event ``answer``, with the reason where it could not be
done. Jobs that were not submitted yet are held and released here, without the resource manager. A wish that is not
answered, because its client was killed or the resource manager was silent, is carried out by the next one; a run that
was to begin again, and a signal, are asked for once only, because nobody can say whether they came.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

import psij
from psij.executors.batch._terms import DEEDS, IDS_AT_ONCE, MANY
from sssjob.errors import AccessError
from sssjob.run.abilities import OrdersMany
from sssjob.run.changing import changed_parts, tell_manager
from sssjob.run.history import HOLDS
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from psij.executors.batch._terms import AnyOrder, Order
    from sssjob.run.engine import Engine

__all__ = ["Wishes"]

_AGAIN_S: Final = (5.0, 60.0)       # before the second try to reach a resource manager, doubled then, and before any
_ONCE: Final = ("rerun", "signal")


class Wishes:
    """Carries out the wishes for the jobs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._open: dict[int, Running] = {}         # by identity: jobs with wishes that have no answer
        self._again: dict[int, tuple[float, float]] = {}    # by the same: monotonic time of the next try, and the pause
        #: By the identity of the executor and the wish: jobs of which the resource manager is to be told together.
        self._together: dict[tuple[int, str], list[Running]] = {}

    def take(self, job: Running) -> None:
        """Take in what is wanted of a job."""
        if job.wishes and job.of.owned:
            self._open[id(job)] = job

    def release(self, job: Running) -> None:
        """A signal ends the hold of a job; where another client looks after it, that one is asked to."""
        later = job.word == "waiting" and job.plan.held_there       # it would be submitted with a hold
        if job.ended or not (job.on_hold or job.hold or later):
            return
        if not job.of.owned:
            job.of.note(job, "release", {}, source="user")
            return
        job.wish("release")
        self.take(job)

    @property
    def due(self) -> bool:
        """Whether something can be carried out now."""
        return any(self._can(job) for job in self._open.values())

    def carry_out(self) -> None:
        """Do what is wanted, as far as it is known how the jobs stand."""
        for job in list(self._open.values()):
            while job.wishes and job.of.owned and self._can(job) and self._done(job, job.wishes[0]):
                pass
            if not (job.wishes and job.of.owned):
                del self._open[id(job)]
        self._tell_together()

    def _tell_together(self) -> None:
        """Tell resource managers of what is wanted of many jobs, of as many as one command takes: it may last, and the
        others have their turn at the next step of the loop, if there is time for it."""
        batches, self._together = self._together, {}
        for (_, wish), all_jobs in batches.items():
            jobs = all_jobs[:IDS_AT_ONCE]
            job_of = {psij_job: job for job in jobs for psij_job in _told_parts(job)}
            backend = cast("OrdersMany", jobs[0].of.executor())
            failures = backend.order_many(list(job_of), cast("Order", wish))
            errors = {id(job_of[psij_job]): error for psij_job, error in failures.items()}
            for job in jobs:
                self._hear(job, wish, errors.get(id(job)))

    def _can(self, job: Running) -> bool:
        if job.ended or job.word == "waiting":
            return True
        all_heard = all(seen.final or (job.parts[part] is not None and self.engine.heard(job, part))
                        for part, seen in enumerate(job.seen))
        return all_heard and time.monotonic() >= self._again.get(id(job), (0.0,))[0]

    def _done(self, job: Running, wish: str) -> bool:
        """Carry out one wish; whether it has its answer now."""
        job.refresh()
        if job.ended:
            self._answer(job, wish, "it has ended")
        elif job.word == "waiting":
            self._here(job, wish)
        else:
            refusal = _refusal(job, wish)
            if refusal is None:
                return self._natively(job, wish)
            self._answer(job, wish, refusal)
        return True

    def _here(self, job: Running, wish: str) -> None:
        """A job that was not submitted yet: its hold is ours, and it is planned anew where it is changed."""
        if wish.startswith("change "):
            parts, refusal = changed_parts(job, self.engine.adopting.planned(job.of), wish.removeprefix("change "))
            if not refusal:
                job.plan.parts = parts
            self._answer(job, wish, refusal)
            return
        if wish not in HOLDS:
            self._answer(job, wish, "it was not submitted yet")
            return
        self._answer(job, wish)
        if wish == "release":
            self.engine.starting.unhold(job)
            self.engine.pend(job)

    def _natively(self, job: Running, wish: str) -> bool:
        """Ask the resource manager; whether it has answered, or is not to be asked again."""
        kind, _, name = wish.partition(" ")
        if kind in _ONCE and not self._begins(job, wish):
            return True
        backend = job.of.executor()
        if kind in MANY and isinstance(backend, OrdersMany):
            self._together.setdefault((id(backend), wish), []).append(job)
            return False
        try:
            if kind == "change":
                self._answer(job, wish, tell_manager(job, self.engine.adopting.planned(job.of), name))
                return True
            for psij_job in _told_parts(job):
                getattr(backend, kind)(psij_job, *([name] if name else ()))
        except psij.SubmitException as error:
            return self._hear(job, wish, error)
        return self._hear(job, wish)

    def _hear(self, job: Running, wish: str, error: psij.SubmitException | None = None) -> bool:
        """What a resource manager has said to a wish; whether it is not to be asked again."""
        kind = wish.partition(" ")[0]
        if error is not None and error.transient and kind not in _ONCE:
            self.engine.tell(job, str(error))
            pause = min(2 * self._again.get(id(job), (0.0, _AGAIN_S[0] / 2))[1], _AGAIN_S[1])
            self._again[id(job)] = time.monotonic() + pause, pause
            return False
        self._answer(job, wish, "" if error is None else str(error))
        if error is None:
            job.held_at = time.monotonic() if kind == "hold" else None
        return True

    def _begins(self, job: Running, wish: str) -> bool:
        """Write down what is about to be done, before the resource manager is told to; False, with the answer, where
        another client did so before, or that cannot be written."""
        if wish in job.undertaken:
            self._answer(job, wish, "the client that asked for it was killed, and nobody knows whether it was done; "
                                    "the log shows how the job went on")
            return False
        job.undertaken.add(wish)
        job.of.note(job, "answer", {"wish": wish, "begun": True})
        try:
            if job.of.entry is not None:
                job.of.entry.flush()
        except AccessError as error:
            self._answer(job, wish, str(error))
            return False
        return True

    def _answer(self, job: Running, wish: str, refusal: str = "") -> None:
        self._again.pop(id(job), None)
        job.answer(wish, refusal)
        job.of.note(job, "answer", {"wish": wish, "refusal": refusal})
        self.engine.recording.write_soon()


def _told_parts(job: Running) -> list[psij.Job]:
    """The native jobs of which a resource manager is told: that of one that was submitted together is one."""
    return [part for part in job.parts[:1 if job.together else None] if part is not None]


def _refusal(job: Running, wish: str) -> str | None:
    """Why a wish for a job that was submitted is not for the resource manager; None where it is."""
    kind = cast("AnyOrder", wish.partition(" ")[0])
    backend = job.of.executor()
    if not hasattr(backend, kind):
        deed = "changed" if kind == "change" else DEEDS[kind]
        return f"the executor {backend.name} has no means by which a job that was submitted could be {deed}"
    if kind == "change":
        return None         # the resource manager knows which changes a job that runs can have
    has_begun = job.plan.job.value("State") in ("Running", "Suspended")
    if kind in HOLDS and has_begun:
        return "it has begun, and a hold only keeps a job from starting" if kind == "hold" else "it has begun"
    if kind not in HOLDS and not has_begun:
        return "it has not begun"
    return None
