"""Records of jobs that still ran, beside records that tell how they went on: a day's dump of a manager has both.

Whoever adds up has each run once: a record of a job that has not ended waits until all are read, and counts where none
tells the end of that run, and none says that it ran for longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sssjob.accounting.times import seconds
from sssjob.document.model import Job, JobDefaults

__all__ = ["Ended", "Unended"]

_REMEMBERED: Final = 2_000_000      # runs that have ended, of those that come one by one
_BYTES: Final = 64 << 20            # of the others
#: Machine, Id, StartTime.
_Key = tuple[str, str, int]


class Ended:
    """Runs that have ended, as blocks of columns have them; when these are too large, the oldest are forgotten."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Any, Any, Any]] = []
        self._bytes = 0

    def add(self, ids: Any, starts: Any, machines: Any) -> None:
        """Take the runs of a block, arrays of Arrow: texts, seconds, texts."""
        self._blocks.append((ids, starts, machines))
        self._bytes += sum(array.nbytes for array in self._blocks[-1])
        while self._bytes > _BYTES and len(self._blocks) > 1:
            self._bytes -= sum(array.nbytes for array in self._blocks.pop(0))

    def among(self, keys: dict[_Key, Any]) -> Iterator[_Key]:
        """Those of some runs that are here."""
        if not keys or not self._blocks:
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        idents = pa.array(sorted({ident for _, ident, _ in keys}), pa.string())
        for block in self._blocks:
            which = pc.indices_nonzero(pc.is_in(block[0], value_set=idents))
            texts, starts, machines = (array.take(which).to_pylist() for array in block)
            yield from (key for key in zip(machines, texts, starts, strict=True) if key in keys)


class Unended:
    """Jobs that had not ended when their records were written."""

    def __init__(self, by_columns: Ended) -> None:
        self._by_columns = by_columns
        self._waiting: dict[_Key, tuple[Job, JobDefaults | None]] = {}
        self._ended: set[int] = set()
        self.again = 0
        """Records so far of runs that another one tells more of; right after ``rest``."""

    def takes(self, job: Job, defaults: JobDefaults | None) -> bool:
        """Whether a job has to wait; of one that has ended it is noted that it has."""
        ident, start, state = job.value("Id"), job.value("StartTime"), job.value("State")
        if ident is None or not isinstance(start, int) or state is None:
            return False
        key = str(job.value("Machine") or ""), str(ident), seconds(start)
        if state == "Completed":
            if len(self._ended) < _REMEMBERED:
                self._ended.add(hash(key))
            return False
        other = self._waiting.get(key)
        self.again += other is not None
        if other is None or _ran(other[0]) <= _ran(job):
            self._waiting[key] = job, defaults
        return True

    def rest(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """The jobs of whose end no record tells, in the order in which they came."""
        for key in set(self._by_columns.among(self._waiting)):
            self._ended.add(hash(key))
        for key, waiting in self._waiting.items():
            if hash(key) in self._ended:
                self.again += 1
            else:
                yield waiting


def _ran(job: Job) -> int:
    """For how many seconds a job says that it has run."""
    duration = None if job.delivered is None else job.delivered.value("Duration")
    return duration if isinstance(duration, int) else -1
