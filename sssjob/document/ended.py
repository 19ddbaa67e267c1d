"""Runs of jobs whose end was told before: days of a log overlap, and copies lie beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sssjob.document.held import seconds
from sssjob.document.inherit import Effective
from sssjob.document.model import Job

__all__ = ["Ended", "Run", "run_of"]

_REMEMBERED: Final = 1_000_000      # runs: that many are remembered at least, and twice as many at most
#: Machine, Id, StartTime.
Run = tuple[str, str, int]


def run_of(view: Job | Effective) -> Run | None:
    """The run that a record tells of; None where it does not say which."""
    machine, ident, start = map(view.value, ("Machine", "Id", "StartTime"))
    return (str(machine or ""), str(ident), seconds(start)) if ident is not None and isinstance(start, int) else None


class Ended:
    """The last million or two of the runs whose end was told."""

    def __init__(self) -> None:
        self._runs, self._older = set[int](), set[int]()

    def first(self, keys: Iterable[Run]) -> list[bool]:
        """Of each run whether its end is told for the first time."""
        ends, runs, older = list(map(hash, keys)), self._runs, self._older
        new = set(ends)
        if len(new) == len(ends) and new.isdisjoint(runs) and new.isdisjoint(older):
            are_first = [True] * len(ends)
        else:
            new = {run for run in new if run not in runs and run not in older}
            still_new = new.copy()
            are_first = []
            for run in ends:
                are_first.append(run in still_new)
                still_new.discard(run)
        runs |= new
        if len(runs) >= _REMEMBERED:
            self._runs, self._older = set(), runs
        return are_first

    def again(self, job: Job | Effective) -> bool:
        """Whether the end of a job's run was told before; it is now. False where the job does not say which run."""
        run = run_of(job)
        return run is not None and not self.first((run,))[0]

    def __contains__(self, key: object) -> bool:
        run = hash(key)
        return run in self._runs or run in self._older
