"""How a job ended, by the first word of its StatusMessage, its code and its signal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sssjob.document.held import seconds
from sssjob.document.inherit import Effective
from sssjob.document.model import Job

__all__ = ["FAILURE", "NO_FAILURE", "PUT_BACK", "Ended", "Run", "failed", "reason_word", "run_of", "why_word"]

#: Words of StatusMessage (docs/facts.md) of runs whose job is to run again.
PUT_BACK: Final = ("preempted", "requeued")
#: The same of jobs that failed, whatever their code says; and of those that did not.
FAILURE: Final = frozenset(("timeout", "cpu-limit", "memory", "node-failure", "deadline", "boot", "launch", "signal",
                            "failed"))
NO_FAILURE: Final = frozenset(("cancel", *PUT_BACK))


def why_word(job: Job) -> str:
    """The first word of the StatusMessage, which tells why a job ended; empty where there is none."""
    return reason_word(str(job.value("StatusMessage") or ""))


def reason_word(message: str) -> str:
    """The first word of the text of a StatusMessage."""
    return message.partition(":")[0].strip()


def failed(job: Job) -> bool:
    """Whether a job ended otherwise than well, and neither because somebody wanted it to nor to be run again."""
    word = why_word(job)
    if word in NO_FAILURE:
        return False
    code = job.value("ExitCode")
    return (isinstance(code, int) and code != 0) or word in FAILURE or any(
        p.get("name") == "ExitSignal" for p in job.all("Extension"))


# Runs of jobs whose end was told before: days of a log overlap, and copies lie beside them.

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
