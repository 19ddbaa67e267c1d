"""Records of jobs that still ran, and records of runs that were read before: a day's dump of a manager has both.

Whoever adds up has each run once: of records that tell its end the first one counts. A record of a job that has not
ended waits until all are read, and counts where none tells the end of that run, and none says that it ran for longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from sssjob.document.endings import Ended, Run, run_of
from sssjob.document.model import Job, JobDefaults

__all__ = ["Unended"]


class Unended:
    """Jobs that had not ended when their records were written. ended: the runs that have, of these records and of those
    that are added up by columns."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._waiting: dict[Run, tuple[Job, JobDefaults | None]] = {}
        self.again = 0
        """Records so far of runs of which another one tells as much, or more; right after ``rest``."""

    def takes(self, job: Job, defaults: JobDefaults | None) -> bool:
        """Whether a job has to wait, or its run was read before; of one that has ended it is noted that it has."""
        key, state = run_of(job), job.value("State")
        if key is None or state is None:
            return False
        if state == "Completed":
            is_first = self._ended.first((key,))[0]
            self.again += not is_first
            return not is_first
        other = self._waiting.get(key)
        self.again += other is not None
        if other is None or _ran(other[0]) <= _ran(job):
            self._waiting[key] = job, defaults
        return True

    def rest(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """The jobs of whose end no record tells, in the order in which they came."""
        for key, waiting in self._waiting.items():
            if key in self._ended:
                self.again += 1
            else:
                yield waiting


def _ran(job: Job) -> int:
    """For how many seconds a job says that it has run."""
    duration = None if job.delivered is None else job.delivered.value("Duration")
    return duration if isinstance(duration, int) else -1
