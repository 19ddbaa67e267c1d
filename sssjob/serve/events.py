"""What happens to jobs, for who listens: events of the journal in order, each numbered, so that nobody misses one.

The latest events are kept once for all listeners, each of which only remembers how far it is; who is further behind
reads the journal. Memory does not grow with the number of listeners.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import takewhile
from typing import Final, NamedTuple

from sssjob.run.journal import Journal

__all__ = ["KINDS", "Happening", "Happenings", "happenings"]

#: Kinds of events that are told -> what a listener learns by them.
KINDS: Final = {
    "native": "the resource manager took the job",
    "status": "its state changed",
    "hold": "somebody wants it held", "release": "somebody wants it released", "cancel": "somebody wants its end",
    "rerun": "somebody wants it back in the queue", "suspend": "somebody wants it suspended",
    "resume": "somebody wants it to go on", "signal": "somebody wants it sent a signal",
    "change": "somebody wants it changed",
    "answer": "what became of such a wish",
    "retry": "another attempt follows",
    "ended": "it has ended",
    "late": "accounting told more of its end",
}
_KEPT: Final = 10_000       # latest events
_AT_ONCE: Final = 1_000
_IN_ONE: Final = 20         # that are sent together
_ALIVE_S: Final = 15.0      # between two signs of life on a quiet stream


class Happening(NamedTuple):
    """An event. number: its place in the journal; submission: whose it is; text: as server-sent event."""

    number: int
    submission: int
    text: str


def happenings(journal: Journal, number: int) -> tuple[list[Happening], int]:
    """The next events after a number that are told, and the number of the last one that was looked at."""
    events = journal.events_after(number, _AT_ONCE)
    chosen = [event for event in events if event[4] in KINDS]
    rows = {submission: {row.job: row for row in journal.rows_of(submission)}
            for submission in {event[1] for event in chosen}}
    sent = []
    for at, submission, job, when, kind in chosen:
        row = rows[submission].get(job)
        if row is not None:
            data = json.dumps({"kind": kind, "time": when, "job": row.record()})
            sent.append(Happening(at, submission, f"id: {at}\nevent: {kind}\ndata: {data}\n\n"))
    return sent, events[-1][0] if events else number


class Happenings:
    """The latest events, and who waits for the next. read: gives those after a number, as ``happenings`` does."""

    def __init__(self, read: Callable[[int], Awaitable[tuple[list[Happening], int]]]) -> None:
        self._read = read
        self._latest: deque[Happening] = deque(maxlen=_KEPT)
        self._from = 0              # all events after this one are among the latest
        self.last = 0               # the last one that was looked at
        self._news = asyncio.Event()
        self.closed = False

    def begin(self, number: int) -> None:
        """Events count from here on. number: of the newest one."""
        self._from = self.last = number

    async def look(self) -> None:
        """Read what is new, and wake the listeners."""
        before = self.last
        while True:
            news, self.last = await self._read(self.last)
            for happening in news:
                if len(self._latest) == _KEPT:
                    self._from = self._latest[0].number
                self._latest.append(happening)
            if not news and self.last == before:
                break
            before = self.last
            self._wake()

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def stream(self, number: int | None, sees: Callable[[int], Awaitable[bool]]) -> AsyncIterator[str]:
        """Server-sent events after a number (None: from now on) of the submissions that somebody sees."""
        at = self.last if number is None else number
        yield ": listening\n\n"
        while not self.closed:
            news = self._news
            while at < self.last:
                batch, at = await self._after(at)
                texts = [happening.text for happening in batch if await sees(happening.submission)]
                for begin in range(0, len(texts), _IN_ONE):
                    yield "".join(texts[begin:begin + _IN_ONE])
                    await asyncio.sleep(0)      # what was written is sent in the next turn of the loop
            if self.closed:
                break
            try:
                async with asyncio.timeout(_ALIVE_S):
                    await news.wait()
            except TimeoutError:
                yield ": alive\n\n"

    async def _after(self, number: int) -> tuple[list[Happening], int]:
        if number >= self._from:
            latest = takewhile(lambda happening: happening.number > number, reversed(self._latest))
            return list(latest)[::-1], self.last
        return await self._read(number)
