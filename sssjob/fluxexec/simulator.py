"""A runner whose shells only take time: with a virtual loop, a simulator of a machine.

How long a shell takes and how it ends: ``attributes.user.simulate`` = ``{"runtime": seconds, "status": wait status}``
in the jobspec, else what the command says: ``true``, ``false``, ``sleep SECONDS``; all others take no time and succeed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from signal import SIGKILL, SIGTERM

from sssjob.fluxexec.loop import Loop, Timer
from sssjob.fluxexec.messages import Start
from sssjob.fluxexec.service import Ended, Report, Up, What
from sssjob.lrm.flux.errors import JobspecError
from sssjob.lrm.flux.jobspec import Jobspec, shares
from sssjob.lrm.idset import Idset

__all__ = ["SimulatedRunner", "simulated"]


@dataclass(slots=True)
class _Run:
    shells: list[Idset | None]
    report: Report | None
    ends: Timer | None = None
    ended: int | None = None        # wait status


class SimulatedRunner:
    """split: a shell for each rank, else one for all."""

    def __init__(self, loop: Loop, *, split: bool = False) -> None:
        self.loop, self.split = loop, split
        self._runs: dict[int, _Run] = {}

    def start(self, start: Start, report: Report) -> Sequence[Idset | None]:
        """Begin; the shells are up at once. Raises JobspecError."""
        runtime, status = simulated(start.jobspec)
        ranks = None if start.resources is None else start.resources.ranks
        shells: list[Idset | None] = [ranks]
        if self.split and ranks is not None:
            shells = [rank for rank, _ in shares(start.jobspec.tasks, ranks)]
        run = self._runs[start.id] = _Run(shells, report)
        for shell in range(len(shells)):
            self._tell(run, shell, Up())
        if math.isfinite(runtime):
            run.ends = self.loop.at(self.loop.now() + runtime, lambda: self._end(run, status))
        return shells

    def find(self, start: Start, report: Report) -> Sequence[Idset | None] | None:
        """The shells of a job that was left."""
        run = self._runs.get(start.id)
        if run is None:
            return None
        run.report = report
        for shell in range(len(run.shells)):
            self._tell(run, shell, Up())
        if run.ended is not None:
            self._end(run, run.ended)
        return run.shells

    def terminate(self, job: int, *, force: bool = False) -> None:
        """End a job at once."""
        run = self._runs.get(job)
        if run is not None and run.ended is None:
            if run.ends is not None:
                run.ends.cancel()
            self._end(run, SIGKILL if force else SIGTERM)

    def leave(self, job: int) -> None:
        """Do not report any more."""
        if job in self._runs:
            self._runs[job].report = None

    def forget(self, job: int) -> None:
        """A job is over."""
        run = self._runs.pop(job, None)
        if run is not None:
            run.report, run.ends = None, None       # whose call names the run

    def _end(self, run: _Run, status: int) -> None:
        run.ended = status
        for shell in range(len(run.shells)):
            self._tell(run, shell, Ended(status))

    def _tell(self, run: _Run, shell: int, what: What) -> None:
        report = run.report
        if report is not None:
            self.loop.soon(lambda: report(shell, what))


def simulated(job: Jobspec) -> tuple[float, int]:
    """(seconds, wait status) of a job. Raises JobspecError."""
    if job.simulate:
        runtime, status = job.simulate.get("runtime", 0), job.simulate.get("status", 0)
        if isinstance(runtime, bool) or not isinstance(runtime, int | float) or not 0 <= runtime < 1 << 40:
            raise JobspecError("simulate.runtime is no number of seconds")
        if isinstance(status, bool) or not isinstance(status, int) or not 0 <= status <= 0xFFFF:
            raise JobspecError("simulate.status is no wait status")
        return float(runtime), status
    match (PurePath(job.command[0]).name, *job.command[1:]):
        case ("sleep", text):
            try:
                return max(0.0, float(text)), 0
            except ValueError:
                return 0.0, 1 << 8
        case ("false", *_):
            return 0.0, 1 << 8
    return 0.0, 0
