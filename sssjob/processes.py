"""The same work on many things, such as files, in several processes: results in order, a process that dies takes one
thing with it, and none of them outlives the first."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Stopped", "Stops", "in_order", "processes", "stoppable"]

N = TypeVar("N")
T = TypeVar("T")
_BATCH: Final = 50          # things that a process gets at once
_ROUNDS: Final = 4          # batches for each process, at least, so that all end at much the same time
_WORTH: Final = 64          # files for which a second process is worth its start
_GRACE_S: Final = 10.0      # for the thing that a process is at, when the work is over
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

    def whole(self) -> Stops:
        """Something that is done in full, in a ``with`` statement; a signal that came meanwhile raises then."""
        return self

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *error: object) -> None:
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


def in_order(work: Callable[[N], T], died: Callable[[N], T], names: Sequence[N], jobs: int,
             stops: Stops) -> Iterator[T]:
    """What work gives for each name, in their order; died gives it for one over which a process ended twice. A name is
    anything that can be pickled.

    work is sent to the processes: a function of a module, or a method of what can be pickled. stops: no signal ends
    the work on a name halfway.
    """
    ours = gc.get_freeze_count() == 0
    if ours:
        gc.freeze()         # what is there by now stays; nobody has to look through it again, nor copy it for that
    try:
        if jobs > 1:
            yield from _spread(work, died, names, jobs, stops)
            return
        for name in names:
            with stops.whole():
                result = work(name)
            yield result
    finally:
        if ours:
            gc.unfreeze()


def _spread(work: Callable[[N], T], died: Callable[[N], T], names: Sequence[N], jobs: int,
            stops: Stops) -> Iterator[T]:
    """The results of several processes, in the order of the names.

    A process that dies takes nothing but the name that it was at: another process tries that one once more, for it may
    have been ended from outside, and the rest of its batch goes on.
    """
    size = max(1, min(_BATCH, len(names) // (jobs * _ROUNDS)))
    waiting = deque(range(i, min(i + size, len(names))) for i in range(0, len(names), size))
    tried: set[int] = set()
    ready: dict[int, T] = {}
    turn = 0
    with _Team(work, stops) as team:
        while turn < len(names):
            team.hand_out(waiting, names, jobs)
            for number, result in team.results():
                if not isinstance(result, _Died):
                    ready[number] = result
                elif number in tried:
                    ready[number] = died(names[number])
                else:
                    tried.add(number)
                    waiting.extendleft(batch for batch in (result.rest, range(number, number + 1)) if batch)
            while turn in ready:
                yield ready.pop(turn)
                turn += 1


class _Died(NamedTuple):
    """A process ended over a name. rest: those of its batch that it did not come to."""

    rest: range


@dataclass(slots=True)
class _Helper:
    """One of the processes. line: to it and from it; batch: the names that it still owes a result."""

    process: Any            # multiprocessing has a class for each way of starting one
    line: Connection
    batch: range = range(0)


class _Team:
    """The processes that do one work; none is left when the block ends, in whatever state it is.

    An executor of concurrent.futures is not used: it ends all its processes when one of them dies, and in some releases
    of Python it then waits without end for those that heed no SIGTERM.
    """

    def __init__(self, work: Callable[[Any], Any], stops: Stops) -> None:
        from multiprocessing import get_context

        copied = sys.platform == "linux" and threading.active_count() == 1      # a copy of this process can be taken
        self._context: Any = get_context("fork" if copied else "spawn")
        self._work, self._stops = work, stops
        self._helpers: list[_Helper] = []
        self._over, self._tell_over = self._context.Pipe(duplex=False)

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, *_: object) -> None:
        """Each process ends after the name that it is at; one that takes too long over it is killed."""
        with self._stops.whole():
            self._tell_over.send_bytes(b"over")
            until = time.monotonic() + _GRACE_S
            for helper in self._helpers:
                helper.process.join(max(0.0, until - time.monotonic()))
                if helper.process.exitcode is None:
                    helper.process.kill()
                self._bury(helper)
            self._over.close()
            self._tell_over.close()

    def hand_out(self, waiting: deque[range], names: Sequence[Any], most: int) -> None:
        """Give each process that has nothing to do a batch; start as many processes as are of use."""
        idle = [helper for helper in self._helpers if not helper.batch]
        while waiting and (idle or len(self._helpers) < most):
            helper = idle.pop() if idle else self._started()
            helper.batch = waiting.popleft()
            with suppress(OSError):         # it has died, which its line tells next
                helper.line.send([names[n] for n in helper.batch])

    def results(self) -> Iterator[tuple[int, Any]]:
        """(number of a name, its result or _Died) of all that have one; waits until there is one.

        Raises what the work raised.
        """
        from multiprocessing.connection import wait

        busy = {helper.line: helper for helper in self._helpers if helper.batch}
        for line in wait(list(busy)):
            helper = busy[line]             # type: ignore[index]
            number, helper.batch = helper.batch[0], helper.batch[1:]
            try:
                fine, result = helper.line.recv()
            except (EOFError, OSError):
                self._helpers.remove(helper)
                self._bury(helper)
                yield number, _Died(helper.batch)
                continue
            if not fine:
                raise result
            yield number, result

    def _started(self) -> _Helper:
        ours, its = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._work, its, self._over), daemon=True)
        with self._stops.whole():           # what a handler raises in the callbacks of a fork is lost
            process.start()
        its.close()                         # so that the line ends when the process does
        self._helpers.append(_Helper(process, ours))
        return self._helpers[-1]

    @staticmethod
    def _bury(helper: _Helper) -> None:
        helper.line.close()
        helper.process.join()
        helper.process.close()


# -- in the other processes
_busy: Final = threading.Lock()


def _serve(work: Callable[[Any], Any], line: Connection, over: Connection) -> None:
    """Whatever is sent to all of the group, the first process alone obeys; it ends the others, also by its death."""
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(over,), daemon=True).start()
    while True:
        for name in line.recv():
            with _busy:
                answer = _answer(work, name)
            line.send(answer)


def _answer(work: Callable[[Any], Any], name: Any) -> tuple[bool, Any]:
    try:
        return True, work(name)
    except Exception as error:              # the first process raises it
        return False, error


def _follow(over: Connection) -> None:
    """End this process with the first one, or when that says so, between two names."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    first = parent_process()
    if first is not None:
        wait([first.sentinel, over])
        _busy.acquire()
        os._exit(1)
