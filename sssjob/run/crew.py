"""Threads in which submit commands run, so that whoever gives them away can go on meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, TypeVar

__all__ = ["Crew"]

_T = TypeVar("_T")


class Crew(Generic[_T]):
    """A few threads that carry out calls, each with the item that it is about.

    One thread gives calls and takes in how they ended; on leaving, all of them have ended. working: how many calls were
    given whose end was not taken in yet.
    """

    def __init__(self) -> None:
        self.working = 0
        self._calls: Final[queue.SimpleQueue[tuple[_T, Callable[[], None]] | None]] = queue.SimpleQueue()
        self._ends: Final[queue.SimpleQueue[tuple[_T, BaseException | None]]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Crew[_T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def give(self, item: _T, call: Callable[[], None]) -> None:
        """Have a call made: by a thread that has nothing to do, else by a new one; where there can be none, here."""
        self.working += 1
        if self.working > len(self._threads):
            thread = threading.Thread(target=self._work, name="sssjob-submit", daemon=True)
            try:
                thread.start()
            except RuntimeError:        # there can be no more threads
                if not self._threads:
                    self._carry_out(item, call)
                    return
            else:
                self._threads.append(thread)
        self._calls.put((item, call))

    def next_end(self, seconds: float | None = None) -> tuple[_T, BaseException | None] | None:
        """The item of a call that has ended, and what it raised; waits for one, and no longer than some seconds: None
        where there was none."""
        try:
            end = self._ends.get(timeout=seconds)
        except queue.Empty:
            return None
        self.working -= 1
        return end

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            self._carry_out(*call)

    def _carry_out(self, item: _T, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:      # told to who takes in the end
            self._ends.put((item, error))
        else:
            self._ends.put((item, None))
