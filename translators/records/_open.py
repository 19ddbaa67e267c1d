"""Jobs of which a log has told, and whose end has not come yet: so many of them, and so many characters of their lines,
that memory stays bounded whatever the log says."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from sssjob.translators.records._lines import Line

_MOST: Final = 200_000
_HELD: Final = 64 << 20         # characters of their lines


@dataclass(slots=True)
class OpenJob:
    """What every format notes of such a job: the line of its first record, how many there were, their length, and the
    lines themselves where they are kept."""

    line: int
    records: int = 0
    length: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)


_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T", bound=OpenJob)


class Waiting(Generic[_K, _T]):
    """The jobs that wait for their end, in the order in which they began."""

    def __init__(self) -> None:
        self.jobs: dict[_K, _T] = {}
        self.length = 0

    def __contains__(self, key: _K) -> bool:
        return key in self.jobs

    def too_many(self, key: _K) -> Iterator[_K]:
        """The jobs that have to leave, the oldest first, before this one is told of; each is to be taken out."""
        while key not in self.jobs and self.jobs and (len(self.jobs) >= _MOST or self.length > _HELD):
            yield next(iter(self.jobs))

    def add(self, key: _K, new: _T, line: Line, *, keeping: bool) -> _T:
        """The job, with one more line; new: what it is where this is the first. keeping: note the line itself."""
        job = self.jobs.setdefault(key, new)
        job.records += 1
        job.length += len(line.text)
        self.length += len(line.text)
        if keeping:
            job.texts.append((line.number, line.text))
        return job

    def take(self, key: _K) -> _T | None:
        """The job, which waits no more."""
        job = self.jobs.pop(key, None)
        self.length -= 0 if job is None else job.length
        return job

    def lines(self) -> Iterator[str]:
        """The lines that were kept, in their order."""
        return (text for _, text in sorted(line for job in self.jobs.values() for line in job.texts))
