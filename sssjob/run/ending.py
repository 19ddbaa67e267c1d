"""The ends of jobs that somebody wants: those that are wanted together are asked for together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import psij
from sssjob.findings import joined
from sssjob.run.abilities import CancelsMany
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["Ending"]


class Ending:
    """Asks for the ends of jobs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._wanted: dict[int, Running] = {}       # by identity

    def want(self, job: Running) -> None:
        """Have the end of a job asked for at the next step of the loop, with all that are wanted by then."""
        self._wanted[id(job)] = job

    def carry_out(self) -> None:
        """A step of the engine's loop: ask for what is wanted."""
        jobs_wanted, self._wanted = self._wanted, {}
        self.end([job for job in jobs_wanted.values() if not job.ended])

    def end(self, jobs: Iterable[Running]) -> bool:
        """Ask for the end of what runs for jobs; whether that could be done for all of them."""
        backends: dict[int, tuple[psij.JobExecutor, dict[psij.Job, Running]]] = {}
        for job in jobs:
            backend = job.of.executor()
            for psij_job in job.parts:
                if psij_job is not None:
                    backends.setdefault(id(backend), (backend, {}))[1][psij_job] = job
        done = True
        for backend, made_of in backends.values():
            for psij_job, error in _cancel(backend, list(made_of)).items():
                done = False
                job = made_of[psij_job]
                label = job.plan.label
                place = job.plan.path if job.of.entry is None else job.row.key
                self.engine.findings.add("SSS602", label, f"{label} could not be cancelled: {joined(str(error))}",
                                         severity="warning", path=place)
        return done


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
