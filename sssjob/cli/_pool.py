"""The same work on many files in several processes: results in order, a process that dies takes one file with it, and
none of them outlives the first."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

__all__ = ["Stopped", "Stops", "in_order", "processes", "stoppable"]

T = TypeVar("T")
_BATCH: Final = 50          # files that a process gets at once
_ROUNDS: Final = 4          # batches for each process, at least, so that all end at much the same time
_WORTH: Final = 64          # files for which a second process is worth its start
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """SIGTERM or SIGHUP came; ``status`` is 128 and its number."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__(signal.Signals(number).name)


class Stops:
    """Ctrl-C, SIGTERM and SIGHUP while files are made: each raises, but not inside of ``whole``."""

    def __init__(self) -> None:
        self.held = self.came = 0

    def __call__(self, number: int, frame: object) -> None:
        """The handler."""
        self.came = number
        if not self.held:
            self._end()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Something that is done in full; a signal that came meanwhile raises then."""
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1
            if self.came and not self.held:
                self._end()

    def _end(self) -> None:
        number, self.came = self.came, 0
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)


@contextmanager
def stoppable() -> Iterator[Stops]:
    """Have Ctrl-C raise KeyboardInterrupt, SIGTERM and SIGHUP Stopped; a signal that is ignored stays so."""
    stops, before = Stops(), {}
    if threading.current_thread() is threading.main_thread():
        before = {n: signal.signal(n, stops) for n in _STOPS
                  if signal.getsignal(n) in (signal.SIG_DFL, signal.default_int_handler)}
    try:
        yield stops
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def processes(asked: int | None, files: int) -> int:
    """How many processes to use: those asked for, else as many as there are cores and as are worth it."""
    return min(asked or min(len(os.sched_getaffinity(0)), 1 + files // _WORTH), max(files, 1))


def in_order(work: Callable[[str], T], died: Callable[[str], T], names: Sequence[str], jobs: int,
             stops: Stops) -> Iterator[T]:
    """What work gives for each name, in their order; died gives it for one over which a process ended.

    work is sent to the processes: a function of a module, or a method of what can be pickled. stops: no signal ends
    the work on a name halfway.
    """
    size = max(1, min(_BATCH, len(names) // (jobs * _ROUNDS)))
    batches = [names[i:i + size] for i in range(0, len(names), size)]
    ours = gc.get_freeze_count() == 0
    if ours:
        gc.freeze()         # what is there by now stays; nobody has to look through it again, nor copy it for that
    try:
        if jobs == 1:
            for name in names:
                with stops.whole():
                    one = work(name)
                yield one
            return
        done = 0
        while done < len(batches):
            for made in _pooled(work, batches[done:], jobs):
                done += 1
                yield from made
            if done < len(batches):         # a process died over one of the batches that were under way
                yield from _one_by_one(work, died, batches[done])
                done += 1
    finally:
        if ours:
            gc.unfreeze()


def _pooled(work: Callable[[str], T], batches: Sequence[Sequence[str]], jobs: int) -> Iterator[list[T]]:
    """The results of batch after batch; ends early where a process dies."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    alone = sys.platform == "linux" and threading.active_count() == 1       # a copy of this process can be taken
    pool = ProcessPoolExecutor(jobs, get_context("fork" if alone else "spawn"), _begin, (work,))
    try:
        yield from pool.map(_batch, batches)
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _one_by_one(work: Callable[[str], T], died: Callable[[str], T], names: Sequence[str]) -> Iterator[T]:
    """Each in a process of its own: one of them ends it."""
    for name in names:
        made = next(_pooled(work, [[name]], 1), None)
        yield from made if made is not None else [died(name)]


# -- in the other processes
_work: Callable[[str], Any] | None = None
_busy: Final = threading.Lock()


def _begin(work: Callable[[str], Any]) -> None:
    """Whatever is sent to all of the group, the first process alone obeys; it ends the others, also by its death."""
    global _work
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    _work = work
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End this process with the first one, between two files."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    first = parent_process()
    if first is not None:
        wait([first.sentinel])
        _busy.acquire()
        os._exit(1)


def _batch(names: Sequence[str]) -> list[Any]:
    made = []
    for name in names:
        with _busy:
            assert _work is not None
            made.append(_work(name))
    return made
