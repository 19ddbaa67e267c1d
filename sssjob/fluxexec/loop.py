"""One thread that does everything: calls, timers, and file descriptors that can be read or written.

With ``virtual=True`` time stands still while there is something to do, and jumps to the next timer when there is not:
a simulated day takes as long as its messages.
"""

from __future__ import annotations

import heapq
import math
import os
import queue
import selectors
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count

__all__ = ["Loop", "Timer"]

_BATCH = 256        # calls between two looks at the descriptors
_FEW = 1000         # timers that may lie about
_LONGEST_S = 3600.0     # one sleep: poll(2) takes no more than 24 days
_NAP_S = 0.01       # in which calls gather while the loop is crowded; each costs a change of threads otherwise
_LATE_S = 1.0       # a timer that is so late does not wait until no call is left


class Timer:
    """A call that is to be made at some time; ``cancel`` takes it back."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None] | None) -> None:
        self.when, self.call = when, call

    def cancel(self) -> None:
        """Do not call."""
        self.call = None


class Loop:
    """start: the time to begin with where it is virtual, seconds since the epoch."""

    def __init__(self, *, virtual: bool = False, start: float = 0.0) -> None:
        self.virtual = virtual
        self._now = start
        self._calls: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._sweep_at = _FEW
        self._number = count()
        self._selector = selectors.PollSelector()       # takes regular files, where epoll does not
        self._wake: tuple[int, int] | None = None       # a pipe, for who watches descriptors
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()       # for who watches none: far cheaper
        self._asleep = False
        self.crowded: Callable[[], bool] = lambda: False    # more is sure to come: look later, at several calls at once
        self._watched = 0
        self.stopped = False

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now if self.virtual else time.time()

    def post(self, call: Callable[[], None]) -> None:
        """Have something called soon. The only method for other threads."""
        self._calls.append(call)
        if self._asleep:
            self._asleep = False
            self.wake()

    def soon(self, call: Callable[[], None]) -> None:
        """As ``post``, in the loop's own thread."""
        self._calls.append(call)

    def wake(self) -> None:
        """Make the loop look; other threads, and signal handlers, may."""
        wake = self._wake
        if wake is None:
            self._bell.put(None)
            return
        with suppress(OSError):         # full: it will look anyway
            os.write(wake[1], b"\0")

    def wakeup_fd(self) -> int:
        """A descriptor that wakes the loop when it is written to, for ``signal.set_wakeup_fd``."""
        if self._wake is None:
            fd, other = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._selector.register(fd, selectors.EVENT_READ, lambda events: self._woken(fd))
            self._wake = fd, other
        return self._wake[1]

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        """Have something called at a time, at once when it is past."""
        timer = Timer(when, call)
        if len(self._timers) >= self._sweep_at:         # most are taken back long before their time
            self._timers = [entry for entry in self._timers if entry[2].call is not None]
            heapq.heapify(self._timers)
            self._sweep_at = max(_FEW, 2 * len(self._timers))
        heapq.heappush(self._timers, (when, next(self._number), timer))
        return timer

    def watch(self, fd: int, events: int, call: Callable[[int], None]) -> None:
        """Have call(events) made when fd can be read (1) or written (2); events 0: no longer."""
        registered = self._selector.get_map().get(fd)
        if registered is None:
            if events:
                self.wakeup_fd()
                self._selector.register(fd, events, call)
                self._watched += 1
        elif not events:
            self._selector.unregister(fd)
            self._watched -= 1
        elif registered.events != events:
            self._selector.modify(fd, events, call)

    def stop(self) -> None:
        """Let ``run`` return."""
        self.stopped = True
        self.wake()

    def run(self, until: Callable[[], bool] | None = None, timeout: float | None = None) -> bool:
        """Do what there is to do until ``stop``, or until a condition holds; False when the time was up before.

        timeout: in real seconds. Virtual without descriptors to watch, it also returns when nothing is left to do.
        """
        self.stopped = False
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (self.stopped or (until is not None and until())):
            rest = None if deadline is None else deadline - time.monotonic()
            if rest is not None and rest <= 0:
                return False
            if self.virtual and not (self._watched or self._calls or self._next_timer()):
                return until is None
            self._step(rest)
        return True

    def close(self) -> None:
        """Give back the descriptors."""
        wake, self._wake = self._wake, None
        if wake is not None:
            self._selector.unregister(wake[0])
            for fd in wake:
                os.close(fd)
        self._selector.close()

    def _step(self, rest: float | None) -> None:
        if self._watched or not self.virtual:
            for key, events in self._ready(rest):
                key.data(events)
        elif not self._calls:
            self._jump()
        calls, calls_left = self._calls, _BATCH
        while calls and calls_left and not self.stopped:
            calls_left -= 1
            calls.popleft()()
        self._due()

    def _ready(self, rest: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Descriptors that something can be done with; waits for them when there is nothing else to do."""
        if self._calls:
            return self._selector.select(0) if self._wake is not None else []
        timer = self._next_timer()
        if timer is None:
            return self._sleep(rest)
        if not self.virtual:
            wait = max(0.0, timer.when - self.now())
            return self._sleep(wait if rest is None else min(wait, rest))
        ready = self._selector.select(0)
        if not ready:
            self._jump()
        return ready

    def _sleep(self, seconds: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for a descriptor or a call. Whoever posts a call sees that we sleep, or we see the call."""
        self._asleep = not self.crowded()
        longest = _LONGEST_S if self._asleep else _NAP_S
        seconds = 0 if self._calls or self.stopped else longest if seconds is None else min(seconds, longest)
        try:
            if self._wake is not None:
                return self._selector.select(seconds)
            with suppress(queue.Empty):
                self._bell.get(timeout=seconds)
            return []
        finally:
            self._asleep = False

    def _jump(self) -> None:
        timer = self._next_timer()
        if timer is not None:
            self._now = max(self._now, timer.when)

    def _due(self) -> None:
        """Make the calls of timers; while others are waiting, only of those that are late, and of none in a time that
        stands still."""
        while self._timers and self._timers[0][0] <= self.now() - self._patience():
            call = heapq.heappop(self._timers)[2].call
            if call is not None:
                call()

    def _patience(self) -> float:
        if not self._calls:
            return 0.0
        return math.inf if self.virtual else _LATE_S

    def _next_timer(self) -> Timer | None:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        return self._timers[0][2] if self._timers else None

    def _woken(self, fd: int) -> None:
        with suppress(BlockingIOError):
            os.read(fd, 4096)
