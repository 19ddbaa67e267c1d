"""A small process that starts the jobs and waits for them, so that their peak memory can be measured.

Why: to a process' peak (ru_maxrss of wait4) Linux counts the memory that it had before its exec, which is that of its
starter. Started by a client with 60 MB, a job of 5 MB is said to have had 60. Other sources do not do: the exact
peak in /proc (VmHWM) is gone when the process ends, so reading it now and then misses what comes last, and short jobs
altogether; a shell between us and the job hides exit code and signal; a control group of its own needs a right that
users rarely have; tracing changes the job.

How: one Python process per client (``_local_starter_main``), made at the first job, starts the jobs with posix_spawn
and reports their ends. The client needs neither a descriptor nor a thread per job, gets no SIGCHLD, and its own
``os.wait`` does not take an exit status away. The peak is exact above what the starter itself has; of a smaller job it
is not known, and reported as 0. It is the greatest of the peaks of the job's process and of those that it waited for,
directly or not; not their sum.

The jobs inherit from the starter. So it is replaced when what processes inherit (umask, limits, user, affinity, ...) is
no longer what it was at its start; the mask of signals is handed over with each job. A replaced starter ends with its
last job, as one does whose client has gone: other processes that attach to a job are told by it how the job ends, and
find that in a file afterwards (``_local_ends``). If a starter is killed, its jobs live on; how they end is then not
known.

Where this cannot be done (not Linux, no Python to run, a sandbox), ``start`` returns None: start it directly.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what ``signal`` makes of it takes twice as long
import atexit
import marshal
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from psij.executors._local_ends import file_to_write
from psij.executors._local_inherited import group, inherited

_MAIN = Path(__file__).with_name("_local_starter_main.py")
#: It imports its program, of which the bytecode is kept: a script would be compiled at each start.
_IMPORT = "import sys; sys.path.append(sys.argv.pop(1)); import _local_starter_main"
_HEADER, _RINGS, _PACKET = 8, 1 << 63, 1 << 16       # as in _local_starter_main
_FIRST_S, _LATER_S = 10.0, 60.0     # patience with its own start, with the start of a job
_BIG = 1 << 18                      # bytes of a request
_TRIES = 3                          # of starters that do not work
_MARSHAL = 2                        # the version that does not look for objects that come twice, which takes longer
_CHECK_S = 1.0                      # between looks at the control group


class StartError(OSError):
    """The job cannot be started.

    what: the limit that cannot be set, or an empty text. lost: whether it was started is not known.
    """

    def __init__(self, number: int, text: str, what: str = "", lost: bool = False) -> None:
        super().__init__(number, text)
        self.what = what
        self.lost = lost


class _EndedError(StartError):
    """The starter has ended, and perhaps took the request before."""


class _Unusable(Exception):
    """There can be no starter here."""


class _Dead(Exception):
    """The starter has ended before it took the request."""


class Report(NamedTuple):
    """The end of a process. peak: as in ru_maxrss. when: by the monotonic clock."""

    pid: int
    wait_status: int
    cpu_s: float
    peak: int
    when: float


class _Answer(NamedTuple):
    """To a request of that number. pid 0: the job was not started. when: it was begun, by the monotonic clock."""

    request: int
    pid: int
    number: int
    what: str
    text: str
    when: float


@dataclass(eq=False, slots=True)
class StarterRequest:
    """A request that a starter has been sent. number: counted from 1. settled: it has answered, or never will."""

    starter: Starter
    number: int
    settled: bool = False
    answer: _Answer | None = None
    error: StartError | None = None

    def settle(self, answer: _Answer | None = None, error: StartError | None = None) -> None:
        """Note the answer. Neither: it was not taken."""
        self.settled, self.answer, self.error = True, answer, error


@dataclass(eq=False, slots=True)
class Starter:
    """A running starter. inherited: what it got at its start. sent: how many requests. asked: unanswered ones, the
    oldest first. unread: it has ended, and left some. bell: is rung where there are answers. jobs and early are the
    engine's."""

    pid: int
    channel: socket.socket
    reports: int        # a descriptor that is left to the end of the process, in the hands of the engine's thread
    bell: socket.socket
    inherited: object
    group: bytes        # its control group
    checked: float      # when that was last found to be ours too
    gone: bool = False
    sent: int = 0
    unread: bool = False
    asked: deque[StarterRequest] = field(default_factory=deque)
    jobs: dict[int, Any] = field(default_factory=dict)              # by process id
    early: dict[int, Report] = field(default_factory=dict)          # not yet in jobs

    def stale(self) -> bool:
        """Whether jobs would inherit something else from this process."""
        now = time.monotonic()
        if now - self.checked > _CHECK_S:       # others move us to another group; all else is our own doing
            self.checked = now
            if self.group != group():
                return True
        return self.inherited != inherited()

    def settle(self, asked: StarterRequest | None = None) -> None:
        """Take the answers to a request and those before it; to all that were sent where none is named."""
        while self.asked and not (asked is not None and asked.settled):
            try:
                answer = self._next_answer()
            except _Dead:
                self.unread = True          # answers that it gave before come yet, then its end
            except _EndedError as error:    # it took one after another: only the first can have been begun
                if len(self.asked) > 1 or not self.unread:
                    self.asked.popleft().settle(error=error)
                while self.asked:
                    self.asked.popleft().settle()
            except StartError as error:
                while self.asked:
                    self.asked.popleft().settle(error=error)
            else:
                while self.asked[0].number < answer.request:        # a signal handler raised when it was just taken
                    self.asked.popleft().settle(error=StartError(0, "its answer was interrupted", lost=True))
                self.asked.popleft().settle(answer)

    def ask(self, request: bytes, streams: Sequence[int]) -> _Answer:
        """The answer to a request. Raises _Dead, StartError."""
        self.settle()
        try:
            self.send(request, streams)
            return self._answer()
        except (_Dead, StartError):
            raise
        except BaseException:       # raised by a signal handler, as KeyboardInterrupt is: nothing is to be left behind
            with suppress(OSError, _Dead):
                self.channel.shutdown(socket.SHUT_WR)
                pid = self._answer().pid
                if pid:
                    os.killpg(pid, signal.SIGKILL)
            raise

    def send(self, request: bytes, streams: Sequence[int], rings: int = 0) -> None:
        """Send a request. rings: _RINGS where the answer is waited for with others. Raises _Dead."""
        self.sent += 1
        head = (len(request) | rings).to_bytes(_HEADER, "little") + request[:_PACKET - _HEADER]
        try:
            if streams:
                socket.send_fds(self.channel, [head], list(streams), socket.MSG_NOSIGNAL)
            else:
                self.channel.send(head, socket.MSG_NOSIGNAL)
            for start in range(_PACKET - _HEADER, len(request), _PACKET):
                self.channel.send(request[start:start + _PACKET], socket.MSG_NOSIGNAL)
        except ConnectionError as e:
            raise _Dead from e

    def _next_answer(self) -> _Answer:
        """As ``_answer``; waits until the bell is rung for it and others."""
        while True:
            try:
                return self._answer(socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._hear()

    def _hear(self) -> None:
        try:
            self.bell.recv(_PACKET)
        except ConnectionError:         # there is no more than what the channel has
            return
        except OSError as e:
            raise self._silent(e) from e

    @staticmethod
    def _silent(error: OSError) -> StartError:
        return StartError(0, f"the process that starts jobs does not answer ({error})", lost=True)

    def _answer(self, flags: int = 0) -> _Answer:
        """Raises BlockingIOError where it is not there and is not to be waited for."""
        try:
            data = self.channel.recv(_PACKET, flags)
        except ConnectionResetError as e:       # it left something unread
            raise _Dead from e
        except OSError as e:
            if flags and isinstance(e, BlockingIOError):
                raise
            raise self._silent(e) from e
        if not data:
            raise _EndedError(0, "the process that starts jobs has ended meanwhile", lost=True)
        return _Answer(*marshal.loads(data))

    def ended(self) -> list[Report]:
        """The reports of a packet, none where there is none. Raises EOFError after the last one when the starter has
        ended."""
        try:
            data = os.read(self.reports, _PACKET)
        except BlockingIOError:
            return []
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        return [Report(*report) for report in marshal.loads(data)]

    def let_go(self) -> None:
        """Have it end when its jobs have."""
        for end in (self.channel, self.bell):
            with suppress(OSError):         # the program has closed it
                end.close()

    def bury(self) -> None:
        """Let go of it when it has ended."""
        os.close(self.reports)
        with suppress(OSError):         # somebody else waited for it
            os.waitpid(self.pid, 0)


def ask_end(pid: int, parent: int) -> int | None:
    """A descriptor that brings the Report of a process, to be read by ``end_of``, from the starter of whichever process
    has started it; None where its parent is no starter of our user. It brings nothing when the starter ends before."""
    if sys.platform != "linux":
        return None
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        asking.settimeout(_CHECK_S)
        asking.connect(b"\0psij-starter-%d" % parent)
        peer, user, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if (peer, user) != (parent, os.geteuid()):      # anybody may have taken the name
            return None
        asking.send(b"%d" % pid)
        asking.setblocking(False)
        return asking.detach()
    except OSError:         # no such door
        return None
    finally:
        asking.close()


def end_of(asked: int) -> Report | None:
    """What the descriptor of ``ask_end`` brings; None when nothing will come."""
    with suppress(OSError, ValueError, EOFError, TypeError):
        (report,) = marshal.loads(os.read(asked, _PACKET))
        return Report(*report)
    return None


def _new() -> Starter:
    """Start a starter. Raises _Unusable; OSError when the system lacks something just now."""
    if not sys.executable or getattr(sys, "frozen", False) or not _MAIN.is_file():
        raise _Unusable
    gets, place = inherited(), group()
    with ExitStack() as stack:
        (channel, reports, bell), its = zip(*(_pair(stack) for _ in range(3)), strict=True)
        descriptors = [end.fileno() for end in its]
        writes = ["-B"] if sys.dont_write_bytecode or sys.pycache_prefix else []
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", *writes, "-c", _IMPORT, str(_MAIN.parent), *map(str, descriptors),
             file_to_write()],
            cwd="/", pass_fds=descriptors,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        popen.returncode = 0        # we wait for it ourselves
        for end in its:
            end.close()
        if not _ready(channel):
            with suppress(OSError):         # it has ended; that it is of no use is raised
                os.kill(popen.pid, signal.SIGKILL)
                os.waitpid(popen.pid, 0)
            raise _Unusable
        reports.setblocking(False)
        bell.settimeout(_LATER_S)
        stack.pop_all()
        return Starter(popen.pid, channel, reports.detach(), bell, gets, place, time.monotonic())


def _pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return stack.enter_context(ours), stack.enter_context(other)


def _ready(channel: socket.socket) -> bool:
    """Whether a new starter can work."""
    channel.settimeout(_FIRST_S)
    try:
        ready = channel.recv(_PACKET) == b"ready"
    except OSError:
        ready = False
    channel.settimeout(None)
    for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):      # what Python does costs a poll for each call
        channel.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", int(_LATER_S), 0))
    return ready


class _Starters:
    """The starter of this process, made when it is needed."""

    def __init__(self) -> None:
        self.tries = _TRIES if sys.platform == "linux" else 0      # left
        self.lock = threading.Lock()
        self.starter: Starter | None = None

    def ask(self, request: bytes, streams: Sequence[int],
            on_new: Callable[[Starter], None]) -> tuple[Starter, _Answer] | None:
        """A starter and its answer, None when there can be none. on_new: is to be told of a new starter."""
        if not self.tries:
            return None
        with self.lock:
            for _ in range(2):
                try:
                    starter = self._current(on_new)
                    answer = starter.ask(request, streams)
                    if len(request) > _BIG:     # its memory, which counts for the jobs to come, has grown
                        self.retire()
                    return starter, answer
                except _Dead:
                    self.retire()
                except _Unusable:
                    self.tries -= 1
                    break
                except BaseException as e:      # the next answer would be taken for that of another request
                    self.retire()
                    if isinstance(e, StartError) or not isinstance(e, OSError):
                        raise
                    break
        return None

    def send(self, request: bytes, streams: Sequence[int], on_new: Callable[[Starter], None],
             unchanged: bool) -> StarterRequest | None:
        """A request that a starter is given, to be answered when it has done those before it. None: ask instead."""
        if not self.tries or len(request) > _BIG:
            return None
        with self.lock:
            try:
                starter = self.starter if unchanged and self.starter is not None else self._current(on_new)
                starter.send(request, streams, _RINGS)
            except BaseException as e:          # half of the request may have been sent
                self.retire()
                if isinstance(e, (OSError, _Dead, _Unusable)):
                    return None
                raise
            asked = StarterRequest(starter, starter.sent)
            starter.asked.append(asked)
            return asked

    def settle(self, asked: StarterRequest) -> _Answer | None:
        """The answer to what was sent. None: it was not taken. Raises StartError, lost."""
        with self.lock:
            try:
                asked.starter.settle(asked)
            finally:
                if asked.answer is None and self.starter is asked.starter:
                    self.retire()
        if asked.error is not None:
            raise asked.error
        return asked.answer

    def _current(self, on_new: Callable[[Starter], None]) -> Starter:
        if self.starter is not None and self.starter.stale():
            self.retire()
        if self.starter is None:
            if not _hooked:
                _hook()
            self.starter = _new()
            on_new(self.starter)
        return self.starter

    def retire(self) -> None:
        """Have the starter end when its jobs have; what it was sent it answers before."""
        starter, self.starter = self.starter, None
        if starter is not None:
            try:
                starter.settle()
            finally:
                starter.let_go()

    def close(self) -> None:
        """At the end of this process."""
        with self.lock:
            self._drop()

    def forked(self) -> None:
        """In a fork of this process: the starter is the other's."""
        self.lock = threading.Lock()
        if self.starter is not None:
            self.starter.gone = True            # for us: its descriptor is closed, and its number may become another's
            os.close(self.starter.reports)
        self._drop()

    def _drop(self) -> None:
        """Let go of the starter, whatever it has still to answer."""
        starter, self.starter = self.starter, None
        if starter is not None:
            starter.let_go()


_starters = _Starters()
_hooked = False


def _hook() -> None:
    """Have the starter's sockets closed in forks and at the end; at the first use, not at import."""
    global _hooked
    _hooked = True
    os.register_at_fork(after_in_child=lambda: _starters.forked())
    atexit.register(lambda: _starters.close())


def candidates(program: bytes, environment: Mapping[bytes, bytes]) -> list[bytes]:
    """The files that a program's name may mean: itself, if it has a slash, else one in each folder of PATH."""
    if b"/" in program:
        return [program]
    path = environment.get(b"PATH", os.fsencode(os.defpath))
    return [os.path.join(folder, program) for folder in path.split(b":")]


def request_of(command: Sequence[bytes], environment: Mapping[bytes, bytes], directory: str,
               streams: Sequence[int | None], limits: Mapping[str, tuple[int, int]], nice: int | None,
               record: tuple[bytes, bytes] = (b"", b"")) -> tuple[bytes, list[int]]:
    """A request to start a command in a session of its own, and the descriptors that go with it.

    streams: descriptors of stdin, stdout and stderr, None for /dev/null. limits: by name in ``resource``. record: file
    and first line of the job's record, if it is to have one.
    """
    descriptors = [fd for fd in dict.fromkeys(streams) if fd is not None]
    request: tuple[Any, ...] = (
        [-1 if fd is None else descriptors.index(fd) for fd in streams], candidates(command[0], environment),
                                list(command),
        environment, os.fsencode(directory), list(_signal.pthread_sigmask(_signal.SIG_BLOCK, ())),
        [(name, getattr(resource, name), *pair) for name, pair in limits.items()], nice, *record)
    return marshal.dumps(request, _MARSHAL), descriptors


def start(request: bytes, descriptors: Sequence[int],
          on_new: Callable[[Starter], None]) -> tuple[Starter, int, float] | None:
    """Have a request carried out: the starter that reports the end, the process id, and when it was begun.

    on_new: is told of a starter made for this, so that it listens to its reports and its end. None: there can be no
    starter here. Raises StartError.
    """
    answered = _starters.ask(request, descriptors, on_new)
    if answered is None:
        return None
    starter, answer = answered
    if not answer.pid:
        raise StartError(answer.number, answer.text, answer.what)
    return starter, answer.pid, answer.when


def send(request: bytes, descriptors: Sequence[int], on_new: Callable[[Starter], None],
         unchanged: bool) -> StarterRequest | None:
    """As ``start``, but only begun: ``settle`` completes it. Meanwhile the next one can be sent. None: ``start`` it.

    unchanged: the program has done nothing since the last one was sent.
    """
    return _starters.send(request, descriptors, on_new, unchanged)


def settle(asked: StarterRequest) -> tuple[Starter, int, float] | None:
    """What ``start`` gives. None: it was not started, and may be tried again to learn why. Raises StartError, lost."""
    answer = _starters.settle(asked)
    return None if answer is None or not answer.pid else (asked.starter, answer.pid, answer.when)
