"""The ends of jobs that somebody wants: those that are wanted together are asked for together, and again where the
resource manager could not be asked just then."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import psij
from sssjob.findings import joined
from sssjob.run.abilities import CancelsMany
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["Ending"]


_PAUSE_S: Final = 2.0           # before an end is asked for again; doubled each time
_LONGEST_S: Final = 60.0


class Ending:
    """Asks for the ends of jobs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._wanted: dict[int, Running] = {}       # by identity
        self._again: dict[int, Running] = {}        # those whose manager did not answer
        self._told: set[int] = set()                # jobs of which it was said that they could not be cancelled
        self._due = self._pause_s = 0.0

    def want(self, job: Running) -> None:
        """Have the end of a job asked for at the next step of the loop, with all that are wanted by then."""
        self._wanted[id(job)] = job

    def carry_out(self) -> None:
        """A step of the engine's loop: ask for what is wanted."""
        if self._again and time.monotonic() >= self._due:
            self._wanted = self._again | self._wanted
        jobs_wanted, self._wanted = self._wanted, {}
        for key in jobs_wanted:
            self._again.pop(key, None)
        failures = self._ask([job for job in jobs_wanted.values() if not job.ended])
        again = {id(job): job for job, error in failures if error.transient}
        if again:
            self._again |= again
            self._pause_s = min(max(_PAUSE_S, 2 * self._pause_s), _LONGEST_S)
            self._due = time.monotonic() + self._pause_s
        elif not self._again:
            self._pause_s = 0.0

    def next_due(self) -> float:
        """Seconds until an end is to be asked for again."""
        return self._due - time.monotonic() if self._again else float("inf")

    def end(self, jobs: Iterable[Running]) -> bool:
        """Ask for the end of what runs for jobs, once; whether that could be done for all of them."""
        return not self._ask(jobs)

    def _ask(self, jobs: Iterable[Running]) -> list[tuple[Running, psij.SubmitException]]:
        """Ask for the end of what runs for jobs. Gives those for which that could not be done, and why."""
        backends: dict[int, tuple[psij.JobExecutor, dict[psij.Job, Running]]] = {}
        for job in jobs:
            backend = job.of.executor()
            for psij_job in job.parts:
                if psij_job is not None:
                    backends.setdefault(id(backend), (backend, {}))[1][psij_job] = job
        failures = [(made_of[psij_job], error) for backend, made_of in backends.values()
                    for psij_job, error in _cancel(backend, list(made_of)).items()]
        for job, error in failures:
            if id(job) not in self._told:
                self._told.add(id(job))
                self._tell(job, error)
        return failures

    def _tell(self, job: Running, error: psij.SubmitException) -> None:
        label = job.plan.label
        self.engine.findings.add("SSS602", label, f"{label} could not be cancelled: {joined(str(error))}",
                                 severity="warning", path=job.plan.path if job.of.entry is None else job.row.key)


def _cancel(backend: psij.JobExecutor, jobs: list[psij.Job]) -> dict[psij.Job, psij.SubmitException]:
    """Cancel jobs, many at once where the executor can. Gives those for which that failed."""
    if isinstance(backend, CancelsMany):
        return backend.cancel_many(jobs)
    failed = {}
    for job in jobs:
        try:
            job.cancel()
        except psij.SubmitException as error:
            failed[job] = error
    return failed
