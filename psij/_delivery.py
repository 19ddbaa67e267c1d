"""The thread that calls status callbacks, in the order in which statuses were set.

It starts with the first callback and is a daemon; at the end of the program what is still queued is delivered first. A
callback that raises is logged. One that waits, submits or cancels is safe, because states are set by other threads. One
that blocks for seconds keeps its thread, and another thread goes on with the queue; the later calls of the same job
wait for it. A forked child gets threads of its own.

While it has no calls to make, the thread may wait for what brings the next ones (``Duty``): then no other thread has to
wake it. Where calls come one upon another that is not worth it, as each change of who waits wakes two threads.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import queue

_BURST = 6              # calls that begin within _BURST_S: those of two jobs
_BURST_S = 0.005
PATIENCE_S = 1.0        # a call that lasts between once and twice this long holds nobody up any more
_Call = Callable[[], None]


class Duty(Protocol):
    """A loop that waits for events. It has a thread of its own, and is left to the worker while that has no calls."""

    def take(self) -> bool:
        """Whether the caller is to do it now. Else what ``lend`` gave is called when it may ask again."""

    def work(self, over: Callable[[], bool]) -> None:
        """Do it until it is over, which is looked at after each event."""

    def leave(self) -> None:
        """The caller has calls to make: the other thread is to do it."""

    def rouse(self) -> None:
        """Called by any thread: end the wait for an event. Raises OSError where it cannot be ended any more."""


class _Deliverer:
    """A queue of calls, the thread that makes them (the worker), and one that sees to it that they go on."""

    def __init__(self) -> None:
        import queue

        self._queue: queue.SimpleQueue[tuple[Hashable, _Call]] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._starting = threading.Lock()
        self._worker: threading.Thread | None = None
        self._current: Hashable = None                      # whose call the worker is making
        self._number = 0                                    # of calls begun by workers
        self._held: dict[Hashable, deque[_Call]] = {}       # calls behind one that blocks
        self._watching = False
        self._watch: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pid = os.getpid()
        self.duty: Duty | None = None
        self._doing = 0         # the worker's number while it does the duty
        self._came: deque[float] = deque([-math.inf], _BURST)       # when the last calls came, by the monotonic clock

    def put(self, key: Hashable, call: _Call) -> None:
        """Have a call made; those of one key in their order."""
        self._queue.put((key, call))
        if self._doing and self._doing != threading.get_ident() and self.duty is not None:
            try:
                self.duty.rouse()
            except OSError:         # the program has closed its descriptors: who does it will not come back
                with self._lock:
                    self.duty, self._doing = None, 0
                    self._new_worker()
        if self._worker is None:
            self._start()
        if not self._watching:
            self._watching = True
            self._watch.put(None)

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):      # another thread does it, or what a handler interrupted
            return
        try:
            with self._lock, suppress(RuntimeError):        # the interpreter is shutting down
                if self._worker is None:
                    self._new_worker()
                    threading.Thread(target=self._keep_going, name="psij-callbacks-watch", daemon=True).start()
                    atexit.register(self._drain)
        finally:
            self._starting.release()

    def _new_worker(self) -> None:
        """With the lock held, so that it begins when all is set."""
        worker = threading.Thread(target=self._work, name="psij-callbacks", daemon=True)
        worker.start()
        self._worker, self._current = worker, None

    def _work(self) -> None:
        me = threading.current_thread()
        key: Hashable = None
        while True:
            with self._lock:
                self._current = None
                if self._worker is not me:
                    break
            key, call = self._next()
            with self._lock:
                if key in self._held:
                    self._held[key].append(call)
                    continue
                self._current = key
                self._number += 1
            _make(key, call)
            del call
            if os.getpid() != self._pid:        # the call has forked: the child has come to its end with it
                return
        self._make_held(key)

    def _next(self) -> tuple[Hashable, _Call]:
        """The next call and its key. Until it comes the duty is done where it can be had, not in bursts of calls."""
        while True:
            duty = self.duty if time.monotonic() - self._came[0] > _BURST_S else None
            if duty is not None and self._queue.empty() and duty.take():
                self._doing = threading.get_ident()         # first: who puts a call after the look at the queue rouses
                try:
                    duty.work(lambda: not self._queue.empty())
                except Exception:
                    log_failure("Local jobs are not looked after any more")
                    self.duty = duty = None
                self._doing = 0
            key, call = self._queue.get()
            if call is _ask_again:
                continue
            self._came.append(time.monotonic())
            if duty is not None:
                duty.leave()
            return key, call

    def _make_held(self, key: Hashable) -> None:
        """The call that blocked is over: make those that waited for it."""
        while True:
            with self._lock:
                if not self._held[key]:
                    del self._held[key]
                    return
                call = self._held[key].popleft()
            _make(key, call)

    def _idle(self) -> bool:
        return self._queue.empty() and self._current is None

    def _keep_going(self) -> None:
        """While there are calls: give the queue to a new worker when the present one is stuck in a call."""
        while True:
            self._watch.get()
            while True:
                seen = self._number
                time.sleep(PATIENCE_S)
                self._replace_stuck(seen)
                if self._idle():
                    break
            self._watching = False
            if not self._idle():        # came in between
                self._watch.put(None)

    def _replace_stuck(self, seen: int) -> None:
        with self._lock:
            if self._current is not None and self._number == seen and not self._queue.empty():
                stuck = self._current
                with suppress(RuntimeError):        # the interpreter is shutting down
                    self._new_worker()
                    self._held[stuck] = deque()

    def _drain(self) -> None:
        """At the end of the program: wait for the queue, but not for a call that takes long."""
        if os.getpid() != self._pid:
            return
        done = threading.Event()
        self.put(done, done.set)
        seen = -1
        while not done.wait(2 * PATIENCE_S) and seen != self._number:
            seen = self._number


_mine = threading.local()


def delivering() -> bool:
    """Whether the caller is a callback, in a thread of psij's."""
    return getattr(_mine, "delivering", False)


def _make(key: Hashable, call: _Call) -> None:
    _mine.delivering = True
    try:
        call()
    except BaseException:       # SystemExit too: it would end the thread and nothing else
        log_failure("A status callback of job %s failed", key)
    finally:
        _mine.delivering = False


def log_failure(text: str, *details: object) -> None:
    """Log what was just raised in a thread that has to go on, whatever the program's handlers of the log raise."""
    with suppress(Exception):
        import logging

        logging.getLogger("psij").exception(text, *details)


_deliverers: dict[int, _Deliverer] = {}     # by process id: threads do not survive a fork


def _deliverer() -> _Deliverer:
    pid = os.getpid()
    return _deliverers.get(pid) or _deliverers.setdefault(pid, _Deliverer())


def deliver(key: Hashable, call: _Call) -> None:
    """Have the delivery thread call this after everything handed over before with the same key."""
    _deliverer().put(key, call)


def _ask_again() -> None:
    """Stands in the queue where a call does."""


def lend(duty: Duty) -> _Call:
    """Let the delivery thread of this process do a duty while it has no calls to make; what has it ask for it again."""
    deliverer = _deliverer()
    deliverer.duty = duty
    return partial(deliverer.put, None, _ask_again)


def calls_begun() -> int:
    """How many calls the delivery thread has begun to make."""
    return _deliverer()._number


def is_held_up(key: Hashable, calls: int) -> bool:
    """Whether a call of a key, or one that it waits for, goes on. calls: of those begun, a while ago."""
    deliverer = _deliverer()
    current = deliverer._current
    return key in deliverer._held or current == key or (current is not None and deliverer._number == calls)
