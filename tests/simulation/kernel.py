"""Virtual time for programs with threads: each thread is a greenlet, one runs at a time, and a clock jumps to the next
moment at which something happens.

While a kernel runs, ``time``, ``threading`` and ``queue`` of this interpreter are its own: a sleep costs nothing, which
of several ready threads goes on is drawn from the seed, and so are all ids. One seed is one history.

A *process* is a set of threads that share a host, a pid and what modules keep for themselves (``LOCAL``). It can be
killed between any two steps: then its threads never run again, not even what stands behind ``finally``.
"""

from __future__ import annotations

import heapq
import importlib
import itertools
import os
import queue
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import greenlet

__all__ = ["EPOCH", "Deadlock", "Kernel", "Process"]

EPOCH = 1_760_000_000.0     # what the clock of the world shows at its begin; before files of today, or they were old
_STEP_S = 2e-5              # what a step takes: a thread that only looks at the clock sees it go on
_MOST_STEPS = 400_000
_RUN = 1000.0               # how long all hosts are up at the begin
#: What modules keep for the process that they are in: module, name, and what it is at the begin.
LOCAL: tuple[tuple[str, str, Callable[[], Any]], ...] = (
    ("psij.executors.batch._watch", "_watchers", dict),
    ("psij.executors.batch._watch", "_registry", lambda: threading.Lock()),
    ("psij._delivery", "_deliverers", dict),
    ("psij._delivery", "_mine", threading.local),
    ("psij.executors._local_staging", "_workers", dict),
)


class Deadlock(Exception):
    """Nobody can go on, or nobody comes to an end."""


class Process:
    """A program on a host. clock: seconds by which its clock is ahead. resources: what the system does at its end."""

    def __init__(self, kernel: Kernel, name: str, pid: int, host: str, clock: float) -> None:
        self.kernel, self.name, self.pid, self.host, self.clock = kernel, name, pid, host, clock
        self.dead = self.ended = False
        self.died: float | None = None          # when, in the kernel's time
        self.failure: BaseException | None = None
        self.resources: list[Callable[[], None]] = []
        self.local = [make() for _, _, make in LOCAL]
        self.extra: dict[str, Any] = {}

    def kill(self) -> None:
        """As by SIGKILL. Does not return where it is our own process."""
        self._close()
        if self.kernel.current is not None and self.kernel.current.process is self:
            self.kernel.hub.switch()

    def _close(self) -> None:
        if not self.dead:
            self.dead, self.died = True, self.kernel.now
            for close in reversed(self.resources):
                with suppress(Exception):
                    close()


class _Task:
    """A thread."""

    def __init__(self, kernel: Kernel, process: Process, work: Callable[[], None]) -> None:
        self.kernel, self.process, self.work = kernel, process, work
        self.done = False
        self.joiners: list[_Task] = []
        self.number = 0                 # of the rest it takes: a timer of an earlier rest wakes nobody
        self.woken = False
        self.thread: _Thread | None = None
        self.let = greenlet.greenlet(self._run, kernel.hub)

    def _run(self) -> None:
        try:
            self.work()
        except greenlet.GreenletExit:
            return
        except BaseException as error:
            self.process.failure = self.process.failure or error
        self.done = True
        for joiner in self.joiners:
            self.kernel.wake(joiner)


class Kernel:
    """The scheduler."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._ids = random.Random(f"ids {seed}")        # of jobs: they are many, and no step depends on them
        self.now = 0.0
        self._draw = self.chance.random
        self.hub = greenlet.getcurrent()
        self._to_hub = self.hub.switch
        self.current: _Task | None = None
        self.steps = 0
        self._ready: list[_Task] = []
        self._timers: list[tuple[float, int, _Task, int]] = []
        self._order = itertools.count()
        self._pids = itertools.count(1000)
        self._tasks: list[_Task] = []
        self._loaded: Process | None = None
        self._kept: list[tuple[dict[str, Any], str]] = []       # names of modules, and which of them is of LOCAL
        self.over = False

    # --- processes -------------------------------------------------------------------------------------------------

    def process(self, name: str, work: Callable[[], None], host: str = "login", clock: float = 0.0) -> Process:
        """Start a program."""
        process = Process(self, name, next(self._pids), host, clock)

        def whole() -> None:
            work()
            process.ended = True
            process._close()

        self.spawn(process, whole)
        return process

    def spawn(self, process: Process, work: Callable[[], None]) -> _Task:
        """Start a thread of a program."""
        task = _Task(self, process, work)
        self._tasks.append(task)
        self._ready.append(task)
        return task

    def run(self, done: Callable[[], bool]) -> None:
        """Have the world go on until something is so. Raises Deadlock."""
        ready = self._ready
        while not done():
            if not ready:
                self._jump()
            at = int(self._draw() * len(ready))
            ready[at], ready[-1] = ready[-1], ready[at]
            task = ready.pop()
            if task.process.dead or task.done:
                continue
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise Deadlock(f"no end after {_MOST_STEPS} steps and {self.now:.0f} s")
            self.now += _STEP_S
            if task.process is not self._loaded:
                self._load(task.process)
            self.current = task
            task.let.switch()
            self.current = None

    def _jump(self) -> None:
        while self._timers:
            at, _, task, number = heapq.heappop(self._timers)
            if task.number == number and not task.process.dead and not task.done:
                self.now = max(self.now, at)
                task.woken = False
                task.number += 1
                self._ready.append(task)
                return
        raise Deadlock(f"everybody waits, after {self.now:.0f} s")

    def _load(self, process: Process) -> None:
        """Give modules what they keep for this process."""
        before = self._loaded
        for place, (names, name) in enumerate(self._kept):
            if before is not None:
                before.local[place] = names[name]
            names[name] = process.local[place]
        self._loaded = process

    # --- resting ---------------------------------------------------------------------------------------------------

    def rest(self, seconds: float | None) -> bool:
        """Let others go on; whether somebody woke us before the time was up."""
        task = self.current
        if task is None or self.over:
            raise greenlet.GreenletExit
        if seconds is not None:
            at = self.now + seconds if seconds > 0 else self.now
            heapq.heappush(self._timers, (at, next(self._order), task, task.number))
        self._to_hub()
        return task.woken

    def wake(self, task: _Task) -> None:
        """Have a thread that rests go on."""
        task.number += 1
        task.woken = True
        self._ready.append(task)

    def step_aside(self) -> None:
        """Let another thread go first, perhaps."""
        if self.current is not None and not self.over and self._draw() < 0.1:
            self._ready.append(self.current)
            self._to_hub()

    # --- the world of a program --------------------------------------------------------------------------------------

    @property
    def here(self) -> Process | None:
        """The program that runs."""
        return None if self.current is None else self.current.process

    def _clock(self) -> float:
        return EPOCH + self.now + (0.0 if self.current is None else self.current.process.clock)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have this interpreter live by our clock. Ids are drawn from the seed."""
        made: dict[tuple[Any, str], Any] = {
            (time, "time"): self._clock, (time, "monotonic"): lambda: self.now,
            (time, "sleep"): lambda seconds: self.rest(seconds), (time, "clock_gettime"): lambda _: _RUN + self.now,
            (threading, "Thread"): self._kind(_Thread), (threading, "Lock"): self._kind(_Lock),
            (threading, "RLock"): self._kind(_RLock), (threading, "Condition"): self._kind(_Condition),
            (threading, "Event"): self._kind(_Event), (threading, "Semaphore"): self._kind(_Semaphore),
            (threading, "current_thread"): self._thread, (threading, "get_ident"): self._ident,
            (queue, "SimpleQueue"): self._kind(_Queue), (os, "getpid"): self._pid,
            (os, "urandom"): self._ids.randbytes,
            (uuid, "uuid4"): lambda: uuid.UUID(int=self.chance.getrandbits(128), version=4),
        }
        before = {place: getattr(*place) for place in made}
        self._kept = [(vars(importlib.import_module(module)), name) for module, name, _ in LOCAL]
        kept = [names[name] for names, name in self._kept]
        state = random.getstate()
        random.seed(self.chance.getrandbits(64))
        for (owner, name), value in made.items():
            setattr(owner, name, value)
        try:
            yield
        finally:
            for (owner, name), value in before.items():
                setattr(owner, name, value)
            for (names, name), value in zip(self._kept, kept, strict=True):
                names[name] = value
            random.setstate(state)

    def close(self) -> None:
        """End of the world: what killed programs would have done behind ``finally`` finds nothing any more."""
        self.over = True
        for process in {task.process for task in self._tasks}:
            process._close()
        for task in self._tasks:
            for _ in range(20):
                if task.let.dead or not task.let:
                    break
                with suppress(BaseException):
                    task.let.throw(greenlet.GreenletExit)
        self._tasks.clear()

    def _kind(self, cls: Any) -> Callable[..., Any]:
        return lambda *arguments, **named: cls(self, *arguments, **named)

    def _thread(self) -> Any:
        task = self.current
        if task is None:
            return None
        task.thread = task.thread or _Thread(self)
        return task.thread

    def _ident(self) -> int:
        return id(self.current)

    def _pid(self) -> int:
        return 1 if self.current is None else self.current.process.pid


class _Thread:
    def __init__(self, kernel: Kernel, group: None = None, target: Callable[..., None] | None = None,
                 name: str | None = None, args: Any = (), kwargs: Any = None, *, daemon: bool | None = None) -> None:
        self._kernel, self._target, self._args, self._kwargs = kernel, target, args, kwargs or {}
        self.name, self.daemon = name or "thread", daemon
        self._task: _Task | None = None

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        assert self._kernel.here is not None
        self._task = self._kernel.spawn(self._kernel.here, self.run)
        self._task.thread = self

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done

    def join(self, timeout: float | None = None) -> None:
        task = self._task
        if task is not None and not task.done and self._kernel.current is not None:
            task.joiners.append(self._kernel.current)
            self._kernel.rest(timeout)


class _Lock:
    """A lock that one thread holds, any thread may release."""

    _again = False

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._owner: object = None
        self._depth = 0
        self._waiting: deque[_Task] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me: object = self._kernel.current or self._kernel
        if self._owner is None:
            self._kernel.step_aside()
            if self._owner is None:
                self._owner, self._depth = me, 1
                return True
        until = None if timeout < 0 else self._kernel.now + timeout
        while self._owner is not None and not (self._again and self._owner is me):
            if not blocking or (until is not None and self._kernel.now >= until) or self._kernel.over:
                return False
            assert self._kernel.current is not None
            self._waiting.append(self._kernel.current)
            self._kernel.rest(None if until is None else until - self._kernel.now)
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._owner, self._depth = None, 0
            waiting, self._waiting = self._waiting, deque()
            for task in waiting:
                if not task.process.dead:
                    self._kernel.wake(task)

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _RLock(_Lock):
    _again = True


class _Condition:
    def __init__(self, kernel: Kernel, lock: Any = None) -> None:
        self._kernel, self._lock = kernel, lock or _RLock(kernel)
        self._waiting: deque[_Task] = deque()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return bool(self._lock.acquire())

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        task = self._kernel.current
        if task is None:
            raise greenlet.GreenletExit
        self._waiting.append(task)
        depth, self._lock._depth = self._lock._depth, 1
        self._lock.release()
        try:
            return self._kernel.rest(timeout)
        finally:
            if task in self._waiting:
                self._waiting.remove(task)
            if not self._kernel.over:
                self._lock.acquire()
                self._lock._depth = depth

    def wait_for(self, so: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else self._kernel.now + timeout
        while not (answer := so()):
            left = None if until is None else until - self._kernel.now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return answer

    def notify(self, n: int = 1) -> None:
        for _ in range(min(n, len(self._waiting))):
            self._kernel.wake(self._waiting.popleft())

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class _Event:
    def __init__(self, kernel: Kernel) -> None:
        self._changed, self._set = _Condition(kernel), False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        with self._changed:
            self._set = True
            self._changed.notify_all()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(lambda: self._set, timeout))


class _Semaphore:
    def __init__(self, kernel: Kernel, value: int = 1) -> None:
        self._changed, self._value = _Condition(kernel), value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        with self._changed:
            if not self._changed.wait_for(lambda: self._value > 0, timeout if blocking else 0):
                return False
            self._value -= 1
            return True

    def release(self, n: int = 1) -> None:
        with self._changed:
            self._value += n
            self._changed.notify(n)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Queue:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._items: deque[Any] = deque()
        self._waiting: deque[_Task] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self._items.append(item)
        if self._waiting:
            self._kernel.wake(self._waiting.popleft())

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        kernel = self._kernel
        kernel.step_aside()
        until = None if timeout is None else kernel.now + timeout
        while not self._items:
            if kernel.over:             # who waits in a loop, behind ``finally``, would never end
                raise greenlet.GreenletExit
            if not block or kernel.current is None or (until is not None and kernel.now >= until):
                raise queue.Empty
            task = kernel.current
            self._waiting.append(task)
            try:
                kernel.rest(None if until is None else until - kernel.now)
            finally:
                if task in self._waiting:
                    self._waiting.remove(task)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def put_nowait(self, item: Any) -> None:
        self.put(item)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)
