"""One thread per process that learns of the end of jobs, keeps their time limits and ends what is to be ended.

Nothing is polled: the thread sleeps until a process descriptor (pidfd) is readable, a limit is due or a request comes.
Everything about a running process is changed by this thread only. A process that is being ended is left unreaped until
all other members are gone, so that its id cannot come to mean another process meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import queue
import select
import selectors
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from psij.executors import _local_proc as proc

__all__ = ["GRACE_S", "Engine", "Outcome", "Watched", "engine"]

GRACE_S = 2.0       # seconds between SIGTERM and SIGKILL
_RECHECK_S = 0.05   # seconds between looks where there are no process descriptors
_log = logging.getLogger("psij")
_Call = Callable[[], None]


@dataclass(slots=True)
class Outcome:
    """How a process ended. wait_status and usage are None when it was not our child; why: None, cancel or timeout."""

    wait_status: int | None
    usage: Any
    wall_s: float
    why: str | None


class Owner(Protocol):
    """Who wants to know of the end of a process; called by the engine's thread."""

    def ended(self, outcome: Outcome) -> None:
        """The process, and all members if it was ended on request, are gone."""


@dataclass(slots=True, eq=False)
class Watched:
    """A process from its start (or attaching) to its end. pid 0: not started yet.
    begun: the engine looks after it.

    child: it is ours to reap. own_session: it leads a session of its own. started: by the monotonic clock.
    limit: seconds from the start, or None.
    """

    owner: Owner
    pid: int = 0
    child: bool = True
    own_session: bool = True
    started: float = 0.0
    limit: float | None = None
    ended: float | None = None
    why: str | None = None
    killing: bool = False
    begun: bool = False
    done: bool = False
    fd: int | None = None
    known: set[tuple[int, int]] = field(default_factory=set)
    watching: set[int] = field(default_factory=set)
    timer: list[Any] | None = None


class Engine:
    """The thread and what it looks after."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._timers: list[list[Any]] = []      # [when, number, call or None], a heap
        self._numbers = itertools.count()

    def watch(self, watched: Watched) -> None:
        """Look after a process that was just started or attached."""
        self._post(lambda: self._begin(watched))

    def stop(self, watched: Watched, why: str) -> None:
        """End a process with all its members; why: cancel or timeout. Returns at once."""
        self._post(lambda: self._stop(watched, why))

    def post(self, call: _Call) -> None:
        """Have the engine's thread call this."""
        self._post(call)

    def _post(self, call: _Call) -> None:
        self._requests.put(call)
        if self._thread is None:
            self._start()
        with suppress(BlockingIOError):         # full: it will wake up anyway
            os.write(self._wake, b"x")

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._selector = selectors.DefaultSelector()
                self._woken, self._wake = os.pipe()
                os.set_blocking(self._woken, False)
                os.set_blocking(self._wake, False)
                self._selector.register(self._woken, selectors.EVENT_READ, self._take_requests)
                self._thread = threading.Thread(target=self._run, name="psij-local", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(self._timeout()):
                self._guarded(key.data)
            while self._timers and self._timers[0][0] <= time.monotonic():
                call = heapq.heappop(self._timers)[2]
                if call is not None:
                    self._guarded(call)

    @staticmethod
    def _guarded(call: _Call) -> None:
        try:
            call()
        except Exception:
            _log.exception("Error while looking after a local job")

    def _take_requests(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with suppress(queue.Empty):
            while True:
                self._guarded(self._requests.get_nowait())

    def _timeout(self) -> float | None:
        while self._timers and self._timers[0][2] is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return min(max(0.0, float(self._timers[0][0]) - time.monotonic()), 3600.0)

    def _at(self, when: float, call: _Call) -> list[Any]:
        timer = [when, next(self._numbers), call]
        heapq.heappush(self._timers, timer)
        return timer

    # -- one process ------------------------------------------------------------------------------------------------

    def _begin(self, watched: Watched) -> None:
        watched.begun = True
        watched.fd = proc.open_pidfd(watched.pid)
        if watched.fd is not None:
            self._selector.register(watched.fd, selectors.EVENT_READ, lambda: self._exited(watched))
        else:
            threading.Thread(target=self._wait_for, args=(watched,), name="psij-local-wait", daemon=True).start()
        if watched.limit is not None:
            watched.timer = self._at(watched.started + watched.limit, lambda: self._stop(watched, "timeout"))
        if watched.why is not None:
            why, watched.why = watched.why, None
            self._stop(watched, why)

    def _wait_for(self, watched: Watched) -> None:
        """In a thread of its own: wait without a process descriptor."""
        if watched.child:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, watched.pid, os.WEXITED | os.WNOWAIT)
        else:
            while proc.process(watched.pid) is not None:
                time.sleep(_RECHECK_S)
        self._post(lambda: self._exited(watched))

    def _exited(self, watched: Watched) -> None:
        """The process itself ended; it is not reaped yet."""
        if watched.ended is not None:
            return
        watched.ended = time.monotonic()
        self._forget(watched)
        if watched.why is None:
            self._finish(watched)
        else:
            self._check_gone(watched)

    def _forget(self, watched: Watched) -> None:
        if watched.fd is not None:
            self._selector.unregister(watched.fd)
            os.close(watched.fd)
            watched.fd = None

    def _stop(self, watched: Watched, why: str) -> None:
        if not watched.begun:
            watched.why = why           # remembered until it is started
            return
        if watched.ended is not None or watched.why is not None or self._has_ended(watched):
            return
        watched.why = why
        self._signal(watched, signal.SIGTERM)
        self._signal(watched, signal.SIGCONT)
        self._cancel_timer(watched)
        watched.timer = self._at(time.monotonic() + GRACE_S, lambda: self._kill(watched))

    @staticmethod
    def _has_ended(watched: Watched) -> bool:
        if watched.fd is None:
            return False
        poll = select.poll()
        poll.register(watched.fd, select.POLLIN)
        return bool(poll.poll(0))

    @staticmethod
    def _cancel_timer(watched: Watched) -> None:
        if watched.timer is not None:
            watched.timer[2] = None
            watched.timer = None

    def _kill(self, watched: Watched) -> None:
        if watched.done:
            return
        watched.killing = True
        self._signal(watched, signal.SIGKILL)
        self._check_gone(watched)

    @staticmethod
    def _signal(watched: Watched, number: int) -> None:
        """Signal the whole group at once, then the members outside it."""
        outside = proc.members(watched.pid, watched.own_session, watched.known)
        if watched.own_session and watched.child:       # unreaped, so the group is still ours
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(watched.pid, number)
            outside = {pid: member for pid, member in outside.items() if member.group != watched.pid}
        for member in outside.values():
            proc.send(member, number)

    def _check_gone(self, watched: Watched) -> None:
        """Finish if nothing of the job lives any more, else wait for the members that are left."""
        if watched.done:
            return
        left = proc.members(watched.pid, watched.own_session, watched.known)
        if watched.ended is not None:
            left.pop(watched.pid, None)
            if not left:
                self._finish(watched)
                return
        for member in left.values():
            if member.pid != watched.pid and member.pid not in watched.watching:
                if watched.killing:
                    proc.send(member, signal.SIGKILL)
                self._watch_member(watched, member.pid)

    def _watch_member(self, watched: Watched, pid: int) -> None:
        fd = proc.open_pidfd(pid)
        if fd is None:
            self._at(time.monotonic() + _RECHECK_S, lambda: self._check_gone(watched))
            return
        watched.watching.add(pid)
        self._selector.register(fd, selectors.EVENT_READ, lambda: self._member_gone(watched, pid, fd))

    def _member_gone(self, watched: Watched, pid: int, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
        watched.watching.discard(pid)
        self._check_gone(watched)

    def _finish(self, watched: Watched) -> None:
        watched.done = True
        self._cancel_timer(watched)
        status, usage = None, None
        if watched.child:
            with suppress(ChildProcessError):       # somebody else reaped it: the status is lost
                _, status, usage = os.wait4(watched.pid, 0)
        ended = watched.ended if watched.ended is not None else time.monotonic()
        watched.owner.ended(Outcome(status, usage, ended - watched.started, watched.why))


_engines: dict[int, Engine] = {}        # by process id: threads do not survive a fork


def engine() -> Engine:
    """The engine of this process."""
    pid = os.getpid()
    return _engines.get(pid) or _engines.setdefault(pid, Engine())
