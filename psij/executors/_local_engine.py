"""One loop per process that learns of the end of jobs, keeps their time limits and ends what is to be ended.

Nothing is polled: it sleeps until a starter reports an end, a process descriptor (pidfd) is readable, a limit
is due or a request comes. (Only where a process has no descriptor, for lack of them, it looks now and then.)
Everything about a running process is changed by the thread that has the turn to run the loop, called the engine's
thread here: one of its own, or the one that calls callbacks while it has none to call, so that an end that it sees is
told without another thread being woken. What is to be looked at in the table of processes is
gathered, so that ending many jobs does not read it many times.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import queue
import select
import selectors
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from psij._delivery import lend, log_failure
from psij.exceptions import SubmitException
from psij.executors import _local_proc as proc
from psij.executors._local_ends import keep
from psij.executors._local_starter import Report, Starter, end_of
from psij.executors._local_watched import Outcome, Watched

GRACE_S = 2.0       # seconds between SIGTERM and SIGKILL
_RECHECK_S = 0.05   # seconds between looks where there are no process descriptors
_ZOMBIES_S = 1.0    # seconds after SIGKILL for which a process group counts where its members cannot be seen
_FEW = 1000         # timers that may lie about
_Call = Callable[[], None]


class Engine:
    """The thread and what it looks after."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._timers: list[list[Any]] = []      # [when, number, call or None], a heap
        self._canceled = 0                      # of the timers
        self._sleeps_until = 0.0
        self._numbers = itertools.count()
        self._due: dict[Watched, int | None] = {}      # to be looked at; the signal for its members, or None
        self._children: dict[int, Watched] = {}        # of this process, by their ids
        self._turn: queue.SimpleQueue[None] = queue.SimpleQueue()      # something where the own thread is to go on
        self._turns = threading.Lock()          # around what follows
        self._offered = False       # nobody has the turn: the own thread has left it to the one that calls callbacks
        self._lent = False          # that one has it
        self._wanted = False        # that one waits for it

    def watch(self, watched: Watched, at_once: bool = True) -> None:
        """Look after a process that was just started or attached. at_once: else ``wake`` is to follow soon."""
        with self._lock:
            watched.begun = True
            stop = watched.why is not None
            if watched.limit is not None:
                self._at(watched, watched.started + watched.limit, partial(self._stop, watched, "timeout"))
            wake = watched.timer is not None and watched.timer[0] < self._sleeps_until
            call = self._expect(watched)
        if call is not None:
            self._requests.put(call)
        if stop:
            self._requests.put(partial(self._begin_to_end, watched))
        if at_once and (call is not None or stop or wake):
            self.wake()

    def listen(self, starter: Starter) -> None:
        """Take the reports of a new starter until it ends."""
        self.post(partial(self._listen, starter))

    def stop(self, watched: Watched, why: str) -> None:
        """End a process with all its members; why: cancel or timeout. Returns at once."""
        self.post(partial(self._stop, watched, why))

    def signal(self, watched: Watched, number: int) -> None:
        """Send a signal to all members of a process now, in the thread that asks. Raises OSError."""
        if watched.ended is None:
            session = watched.pid if watched.own_session else None
            members = proc.Snapshot().members(session, set(watched.known), watched.tag)
            self._signal(watched, (number,), members)

    def post(self, call: _Call) -> None:
        """Have the engine's thread call this, once it has been started. A signal handler may do so too."""
        self._requests.put(call)
        self.wake()

    def wake(self) -> None:
        """Have the thread look what there is to do."""
        if self._thread is not None:
            self.rouse()

    def rouse(self) -> None:
        """Have the loop make another round."""
        with suppress(BlockingIOError):         # full: it will wake up anyway
            os.write(self._wake, b"x")

    def start(self) -> None:
        """Start the thread, if that has not been done. Raises OSError, RuntimeError; SubmitException where the program
        has closed the descriptors with which it works."""
        if self._thread is not None:
            self._check_descriptors()
            return
        with self._lock, ExitStack() as stack:
            if self._thread is None:
                self._selector = stack.enter_context(selectors.DefaultSelector())
                self._woken, self._wake = os.pipe()
                for fd in (self._woken, self._wake):
                    stack.callback(os.close, fd)
                    os.set_blocking(fd, False)
                self._pipe = os.fstat(self._wake).st_ino
                self._selector.register(self._woken, selectors.EVENT_READ, self._take_requests)
                self._offer = lend(self)
                thread = threading.Thread(target=self._run, name="psij-local", daemon=True)
                thread.start()
                self._thread = thread
                stack.pop_all()
                self._turn.put(None)
                self.rouse()        # for what was posted before

    def _check_descriptors(self) -> None:
        with suppress(OSError):
            if os.fstat(self._wake).st_ino == self._pipe:
                return
        raise SubmitException("the program has closed descriptors that it did not open, those of psij among them: no "
                              "local job can be started or followed any more")

    def _run(self) -> None:
        """The own thread."""
        while True:
            self._turn.get()
            self.work(lambda: self._wanted)
            with self._turns:
                self._offered, self._wanted = self._wanted, False
                if not self._offered:           # it is not wanted any more
                    self._turn.put(None)
            if self._offered:
                self._offer()

    def take(self) -> bool:
        """Whether the turn is the caller's, because the own thread has left it, or has not yet begun."""
        with self._turns, suppress(queue.Empty):
            if not self._offered:
                self._turn.get_nowait()
            self._offered, self._lent = False, True
            return True
        self._wanted = True
        self.rouse()
        return False

    def leave(self) -> None:
        """Have the own thread run the loop from now on."""
        with self._turns:
            self._wanted = False
            if self._offered or self._lent:
                self._offered = self._lent = False
                self._turn.put(None)

    def work(self, over: Callable[[], bool]) -> None:
        """Run the loop until it is over, which is asked after each round."""
        while not over():
            for key, _ in self._selector.select(self._timeout()):
                self._guarded(key.data)
            self._take_timers()
            while self._due:
                self._guarded(self._settle)

    @staticmethod
    def _guarded(call: _Call) -> None:
        try:
            call()
        except Exception:
            log_failure("Error while looking after a local job")

    def _take_requests(self) -> None:
        with suppress(BlockingIOError):         # somebody else has read the wake-up
            os.read(self._woken, 4096)
        with suppress(queue.Empty):             # all are taken
            while True:
                self._guarded(self._requests.get_nowait())

    # -- timers: changed under the lock -----------------------------------------------------------------------------

    def _timeout(self) -> float | None:
        with self._lock:
            self._sleeps_until = self._timers[0][0] if self._timers else math.inf
        return None if self._sleeps_until == math.inf else min(max(0.0, self._sleeps_until - time.monotonic()), 3600.0)

    def _take_timers(self) -> None:
        if not self._timers or self._timers[0][0] > time.monotonic():
            return
        due = []
        with self._lock:
            while self._timers and self._timers[0][0] <= time.monotonic():
                due.append(heapq.heappop(self._timers)[2])
            self._canceled -= due.count(None)
        for call in due:
            if call is not None:
                self._guarded(call)

    def _at(self, watched: Watched, when: float, call: _Call) -> None:
        """Set the process' timer, in place of the one that it has."""
        self._cancel_timer(watched)
        watched.timer = [when, next(self._numbers), call]
        heapq.heappush(self._timers, watched.timer)

    def _cancel_timer(self, watched: Watched) -> None:
        if watched.timer is not None:
            watched.timer[2] = None
            watched.timer = None
            self._canceled += 1
            if self._canceled > _FEW and self._canceled * 2 > len(self._timers):
                self._timers = [timer for timer in self._timers if timer[2] is not None]
                heapq.heapify(self._timers)
                self._canceled = 0

    # -- the end of a process ---------------------------------------------------------------------------------------

    def _expect(self, watched: Watched) -> _Call | None:
        """Note who tells of the end; what the thread is to call for that, if anything. Under the lock."""
        starter = watched.starter
        report = None if starter is None else starter.early.pop(watched.pid, None)
        if report is not None:
            return partial(self._reported, watched, report)
        if starter is None or starter.gone:
            return partial(self._open, watched)
        starter.jobs[watched.pid] = watched
        return None

    def _listen(self, starter: Starter) -> None:
        if not starter.gone:
            self._selector.register(starter.reports, selectors.EVENT_READ, partial(self._take_reports, starter))

    def _take_reports(self, starter: Starter) -> bool:
        """Whether there were some; maybe there are more."""
        try:
            reports = starter.ended()
        except EOFError:
            self._bury(starter)
            return False
        with self._lock:
            ended = [(starter.jobs.pop(report.pid, None), report) for report in reports]
            starter.early.update((report.pid, report) for watched, report in ended if watched is None)
        for watched, report in ended:
            if watched is not None:
                self._guarded(partial(self._reported, watched, report))
        return bool(reports)

    def _bury(self, starter: Starter) -> None:
        """The starter has ended. Jobs that it had live on, but nobody can say how they end."""
        with self._lock:
            starter.gone = True
            jobs, starter.jobs = starter.jobs, {}
        with suppress(KeyError):        # not registered yet
            self._selector.unregister(starter.reports)
        starter.bury()
        for watched in jobs.values():
            watched.starter = None
            self._guarded(partial(self._open, watched))

    def _reported(self, watched: Watched, report: Report) -> None:
        watched.wait_status, watched.cpu_s, watched.peak = report.wait_status, report.cpu_s, report.peak
        self._exited(watched, report.when)

    def _told(self, watched: Watched, teller: int) -> None:
        """Another client's starter says how a process ended, or says nothing any more."""
        self._selector.unregister(teller)
        report = end_of(teller)
        os.close(teller)
        watched.teller = None
        if report is None or report.pid != watched.pid:
            self._open(watched)
        else:
            self._reported(watched, report)

    def _open(self, watched: Watched) -> None:
        """Look after a process that no starter of ours looks after."""
        if watched.teller is not None:
            self._selector.register(watched.teller, selectors.EVENT_READ,
                                    partial(self._told, watched, watched.teller))
            return
        if watched.child:
            self._children[watched.pid] = watched
        try:
            watched.fd = proc.open_pidfd(watched.pid)
            if watched.fd is None or self._gone(watched):
                self._look(watched)
            else:
                self._selector.register(watched.fd, selectors.EVENT_READ, partial(self._exited, watched))
        except OSError:
            self.later(partial(self._look, watched))

    @staticmethod
    def _gone(watched: Watched) -> bool:
        """Whether a process that no starter looks after has ended."""
        if watched.child:
            with suppress(ChildProcessError):       # somebody else reaped it: the process table says
                return os.waitid(os.P_PID, watched.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        now = proc.process(watched.pid)
        if now is None or not now.living:
            return True
        if not watched.known:           # a starter looked after it until now
            watched.known.add((now.pid, now.start))
        return (now.pid, now.start) not in watched.known

    def _look(self, watched: Watched) -> None:
        """Without a descriptor: look whether the process has ended, again and again."""
        ended = False
        with suppress(OSError):         # not known now (no descriptors left): it is looked at again
            ended = self._gone(watched)
        if ended:
            self._exited(watched)
        else:
            self.later(partial(self._look, watched))

    def later(self, call: _Call) -> None:
        """Call this in a moment; for the engine's thread."""
        with self._lock:
            heapq.heappush(self._timers, [time.monotonic() + _RECHECK_S, next(self._numbers), call])

    def _exited(self, watched: Watched, when: float | None = None) -> None:
        """The process itself ended."""
        if watched.ended is not None:
            return
        watched.ended = time.monotonic() if when is None else when
        if watched.fd is not None:
            with suppress(KeyError):        # not registered yet
                self._selector.unregister(watched.fd)
            os.close(watched.fd)
            watched.fd = None
        child = self._children.get(watched.pid)
        if watched.child:
            self._reap(watched)
        elif child is not None and self._gone(child):       # followed twice: it is to be known how it ended
            self._exited(child)
        if watched.why is None:
            self._finish(watched)
        else:
            self._look_at_members(watched)

    def _reap(self, watched: Watched) -> None:
        """Take the status of a child process, and keep it for others as a starter does."""
        self._children.pop(watched.pid, None)
        ended = proc.process(watched.pid)
        if ended is not None:               # when it started, to the tick
            watched.known.add((ended.pid, ended.start))
        with suppress(ChildProcessError):       # somebody else reaped it: the status is lost
            _, watched.wait_status, usage = os.wait4(watched.pid, 0)
            watched.cpu_s, watched.peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
            keep(watched.pid, watched.wait_status, watched.started_s(), watched.cpu_s, watched.peak)

    def _finish(self, watched: Watched) -> None:
        watched.done = True
        with self._lock:
            self._cancel_timer(watched)
        wall = 0.0 if watched.ended is None else max(0.0, watched.ended - watched.started)
        watched.owner.ended(Outcome(watched.wait_status, watched.cpu_s, watched.peak, wall, watched.why))

    # -- ending a process -------------------------------------------------------------------------------------------

    def _stop(self, watched: Watched, why: str) -> None:
        starter = watched.starter
        while starter is not None and not starter.gone and self._take_reports(starter):
            continue
        if watched.ended is not None or self._has_ended(watched):
            return
        with self._lock:
            again = watched.why is not None
            watched.why = watched.why or why
        if watched.begun and not again:         # else it is remembered until it is started
            self._begin_to_end(watched)

    def _begin_to_end(self, watched: Watched) -> None:
        if watched.done:
            return
        self._due[watched] = signal.SIGTERM
        with self._lock:
            self._at(watched, time.monotonic() + GRACE_S, partial(self._kill, watched))

    @staticmethod
    def _has_ended(watched: Watched) -> bool:
        if watched.fd is None:
            return False
        poll = select.poll()
        poll.register(watched.fd, select.POLLIN)
        return bool(poll.poll(0))

    def _kill(self, watched: Watched) -> None:
        if not watched.done:
            watched.killing, watched.killed = True, time.monotonic()
            self._due[watched] = signal.SIGKILL

    def _look_at_members(self, watched: Watched) -> None:
        self._due.setdefault(watched, None)

    def _settle(self) -> None:
        """Signal the processes that are due; finish those of which nothing is left, wait for what others have left."""
        due, self._due = self._due, {}
        try:
            snapshot = proc.Snapshot()
            for watched, number in due.items():
                if not watched.done:
                    self._settle_one(watched, number, snapshot)
        except OSError:             # a lack of descriptors or memory is no proof that nothing is left
            self.later(lambda: self._due.update(due))

    def _settle_one(self, watched: Watched, number: int | None, snapshot: proc.Snapshot) -> None:
        session = watched.pid if watched.own_session else None
        if watched.ended is not None and snapshot.stranger(watched.pid, watched.known):
            session = None          # the id, which was free, has become another's
        living = snapshot.members(session, watched.known, watched.tag)
        if watched.killing:
            number = signal.SIGKILL
            if not snapshot.whole and time.monotonic() > watched.killed + _ZOMBIES_S:
                living = {}           # only zombies, which nobody reaps, can have survived that
        if number is not None:
            self._signal(watched, (number, signal.SIGCONT) if number == signal.SIGTERM else (number,), living)
        if watched.ended is None:
            return
        if not living and watched.empty:
            self._finish(watched)
        elif not living:
            for group in (snapshot.groups(session) | {session}) if session is not None else ():
                _kill_group(group, signal.SIGKILL)      # one that forks and ends all the time hides from a look
            self._look_at_members(watched)
        watched.empty = not living
        for pid in living:
            if pid not in watched.watching:
                self._watch_member(watched, pid)

    @staticmethod
    def _signal(watched: Watched, numbers: tuple[int, ...], members: dict[int, proc.Process]) -> None:
        """Signal the members: by groups where those are the job's own, because nothing that forks escapes that."""
        groups = {member.group for member in members.values()} - {0, 1, os.getpgrp()} if watched.own_session else set()
        for each in numbers:
            for group in groups:
                _kill_group(group, each)
            for member in members.values():
                if member.group not in groups:
                    proc.send(member, each)

    def _watch_member(self, watched: Watched, pid: int) -> None:
        fd = proc.open_pidfd(pid)
        if fd is None:
            self.later(lambda: self._look_at_members(watched))
            return
        watched.watching.add(pid)
        self._selector.register(fd, selectors.EVENT_READ, partial(self._member_gone, watched, pid, fd))

    def _member_gone(self, watched: Watched, pid: int, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
        watched.watching.discard(pid)
        self._look_at_members(watched)


def _kill_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):     # gone; or another user's, whose group has that number now
        os.killpg(group, number)


_engines: dict[int, Engine] = {}        # by process id: threads do not survive a fork


def engine() -> Engine:
    """The engine of this process."""
    pid = os.getpid()
    return _engines.get(pid) or _engines.setdefault(pid, Engine())
