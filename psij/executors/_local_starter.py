"""A small process that starts the jobs and waits for them, so that their peak memory can be measured.

Why: to a process' peak (ru_maxrss of wait4) Linux counts the memory that it had before its exec, which is that of its
starter. Started by a client with 60 MB, a job of 5 MB is said to have had 60. Other sources do not do: the exact
peak in /proc (VmHWM) is gone when the process ends, so reading it now and then misses what comes last, and short jobs
altogether; a shell between us and the job hides exit code and signal; a control group of its own needs a right that
users rarely have; tracing changes the job.

How: one Python process per client (``_local_starter_main``), made at the first job, starts the jobs with posix_spawn
and reports their ends. The client needs neither a descriptor nor a thread per job, gets no SIGCHLD, and its own
``os.wait`` does not take an exit status away. The peak is exact above what the starter itself has, which is what any
smaller job is said to have had. It is the greatest of the peaks of the job's process and of those that it waited for,
directly or not; not their sum.

The jobs inherit from the starter. So it is replaced when what processes inherit (umask, limits, user, affinity, ...) is
no longer what it was at its start; the mask of signals is handed over with each job. A replaced starter ends with its
last job. If a starter is killed, its jobs live on; how they end is then not known.

Where this cannot be done (not Linux, no Python to run, a sandbox), ``start`` returns None: start it directly.
"""

from __future__ import annotations

import atexit
import marshal
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Report", "StartError", "Starter", "candidates", "start"]

_MAIN = Path(__file__).with_name("_local_starter_main.py")
_HEADER, _PACKET = 8, 1 << 16       # as in _local_starter_main
_FIRST_S, _LATER_S = 10.0, 60.0     # patience with its own start, with the start of a job
_BIG = 1 << 18                      # bytes of a request
_TRIES = 3                          # of starters that do not work
_CHECK_S = 1.0                      # between looks at the control group
_INHERITED = re.compile(rb"^(?:Umask|Uid|Gid|Groups|SigIgn|Cap[A-Z][a-z]+|NoNewPrivs|Seccomp|Cpus_allowed|"
                        rb"Mems_allowed):.*", re.MULTILINE)
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class StartError(OSError):
    """The job cannot be started.

    what: the limit that cannot be set, or an empty text. lost: whether it was started is not known.
    """

    def __init__(self, number: int, text: str, what: str = "", lost: bool = False) -> None:
        super().__init__(number, text)
        self.what = what
        self.lost = lost


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


@dataclass(eq=False, slots=True)
class Starter:
    """A running starter. inherited: what it got at its start. jobs and early are the engine's."""

    pid: int
    channel: socket.socket
    reports: int        # a descriptor that is left to the end of the process, in the hands of the engine's thread
    inherited: object
    group: bytes        # its control group
    checked: float      # when that was last found to be ours too
    gone: bool = False
    jobs: dict[int, Any] = field(default_factory=dict)              # by process id
    early: dict[int, Report] = field(default_factory=dict)          # not yet in jobs

    def stale(self) -> bool:
        """Whether jobs would inherit something else from this process."""
        now = time.monotonic()
        if now - self.checked > _CHECK_S:       # others move us to another group; all else is our own doing
            self.checked = now
            if self.group != _group():
                return True
        return self.inherited != _inherited()

    def ask(self, request: bytes, streams: Sequence[int]) -> tuple[int, int, str, str]:
        """The answer to a request. Raises _Dead, StartError."""
        try:
            self._send(request, streams)
            return self._answer()
        except (_Dead, StartError):
            raise
        except BaseException:       # raised by a signal handler, as KeyboardInterrupt is: nothing is to be left behind
            with suppress(OSError, _Dead):
                self.channel.shutdown(socket.SHUT_WR)
                pid = self._answer()[0]
                if pid:
                    os.killpg(pid, signal.SIGKILL)
            raise

    def _send(self, request: bytes, streams: Sequence[int]) -> None:
        head = len(request).to_bytes(_HEADER, "little") + request[:_PACKET - _HEADER]
        try:
            if streams:
                socket.send_fds(self.channel, [head], list(streams), socket.MSG_NOSIGNAL)
            else:
                self.channel.send(head, socket.MSG_NOSIGNAL)
            for start in range(_PACKET - _HEADER, len(request), _PACKET):
                self.channel.send(request[start:start + _PACKET], socket.MSG_NOSIGNAL)
        except ConnectionError as e:
            raise _Dead from e

    def _answer(self) -> tuple[int, int, str, str]:
        try:
            data = self.channel.recv(_PACKET)
        except ConnectionResetError as e:       # it left something unread
            raise _Dead from e
        except OSError as e:
            raise StartError(0, f"the process that starts jobs does not answer ({e})", lost=True) from e
        if not data:
            raise StartError(0, "the process that starts jobs has ended meanwhile", lost=True)
        answer: tuple[int, int, str, str] = marshal.loads(data)
        return answer

    def ended(self) -> Iterator[Report]:
        """The reports that are there. Raises EOFError after the last one when the starter has ended."""
        while True:
            try:
                data = os.read(self.reports, _PACKET)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                raise EOFError
            yield Report(*marshal.loads(data))

    def bury(self) -> None:
        """Let go of it when it has ended."""
        os.close(self.reports)
        with suppress(OSError):         # somebody else waited for it
            os.waitpid(self.pid, 0)


class _Status:
    """What the kernel says of this thread, by a descriptor that stays open: to open it takes longer than to read it.

    text: the last one, less the counters at its end; facts: those of it that are inherited.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.fd = os.open("/proc/thread-self/status", os.O_RDONLY)
        self.place = self._place()
        self.text = b""
        self.facts: list[bytes] = []

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):         # it is closed, or was never opened
            if self._place() == self.place:         # a program that closes all descriptors gives the number away
                os.close(self.fd)

    def _place(self) -> tuple[int, int]:
        found = os.fstat(self.fd)
        return found.st_dev, found.st_ino

    def inherited(self) -> list[bytes]:
        """The facts now. Raises OSError, ValueError when the descriptor has become another's."""
        text = os.pread(self.fd, _PACKET, 0)
        if not text.startswith(b"Name:"):
            raise ValueError
        start, signals = text.index(b"\nUmask:"), text.index(b"\nSigIgn:")
        text = text[start:text.index(b"\nVm")] + text[signals:text.rindex(b"\nvoluntary")] if b"\nVm" in text else text
        if text != self.text:
            self.text, self.facts = text, _INHERITED.findall(text)
        return self.facts


_mine = threading.local()       # a _Status


def _facts() -> list[bytes]:
    status: _Status | None = getattr(_mine, "status", None)
    if status is not None and status.pid == os.getpid():        # not in a fork
        with suppress(OSError, ValueError):         # the descriptor was closed and given away: another one
            return status.inherited()
    status = _mine.status = _Status()
    return status.inherited()


def _inherited() -> tuple[object, ...]:
    """What a process that this thread starts now inherits, of the things that a program may change in itself."""
    return _facts(), list(map(resource.getrlimit, _LIMITS)), os.getpriority(os.PRIO_PROCESS, 0)


def _group() -> bytes:
    return _read("/proc/self/cgroup")


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, _PACKET)
    finally:
        os.close(fd)


def _new() -> Starter:
    """Start a starter. Raises _Unusable; OSError when the system lacks something just now."""
    if not sys.executable or getattr(sys, "frozen", False) or not _MAIN.is_file():
        raise _Unusable
    inherited, group = _inherited(), _group()
    with ExitStack() as stack:
        channel, its_channel = _pair(stack)
        reports, its_reports = _pair(stack)
        given = (its_channel.fileno(), its_reports.fileno())
        popen = subprocess.Popen([sys.executable, "-I", "-S", str(_MAIN), *map(str, given)], cwd="/", pass_fds=given,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
        popen.returncode = 0        # we wait for it ourselves
        its_channel.close()
        its_reports.close()
        if not _ready(channel):
            with suppress(OSError):         # it has ended; that it is of no use is raised
                os.kill(popen.pid, signal.SIGKILL)
                os.waitpid(popen.pid, 0)
            raise _Unusable
        reports.setblocking(False)
        stack.pop_all()
        return Starter(popen.pid, channel, reports.detach(), inherited, group, time.monotonic())


def _pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return stack.enter_context(one), stack.enter_context(other)


def _ready(channel: socket.socket) -> bool:
    """Whether a new starter can work."""
    channel.settimeout(_FIRST_S)
    try:
        ready = channel.recv(_PACKET) == b"ready"
    except OSError:
        ready = False
    channel.settimeout(_LATER_S)
    return ready


class _Starters:
    """The starter of this process, made when it is needed."""

    def __init__(self) -> None:
        self.tries = _TRIES if sys.platform == "linux" else 0      # left
        self.lock = threading.Lock()
        self.starter: Starter | None = None

    def ask(self, request: bytes, streams: Sequence[int],
            made: Callable[[Starter], None]) -> tuple[Starter, tuple[int, int, str, str]] | None:
        """A starter and its answer, None when there can be none. made: is to be told of a new starter."""
        if not self.tries:
            return None
        with self.lock:
            for _ in range(2):
                try:
                    starter = self._current(made)
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

    def _current(self, made: Callable[[Starter], None]) -> Starter:
        if self.starter is not None and self.starter.stale():
            self.retire()
        if self.starter is None:
            if not _hooked:
                _hook()
            self.starter = _new()
            made(self.starter)
        return self.starter

    def retire(self) -> None:
        """Have the starter end when its jobs have."""
        starter, self.starter = self.starter, None
        if starter is not None:
            starter.channel.close()

    def close(self) -> None:
        """At the end of this process."""
        with self.lock:
            self.retire()

    def forked(self) -> None:
        """In a fork of this process: the starter is the other's."""
        self.lock = threading.Lock()
        if self.starter is not None:
            os.close(self.starter.reports)
        self.retire()


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


def start(command: Sequence[bytes], environment: Mapping[bytes, bytes], directory: str, streams: Sequence[int | None],
          limits: Mapping[str, tuple[int, int]], nice: int | None,
          made: Callable[[Starter], None], record: tuple[bytes, bytes] = (b"", b"")) -> tuple[Starter, int] | None:
    """Start a command in a session of its own: the starter that reports its end, and its process id.

    streams: descriptors of stdin, stdout and stderr, None for /dev/null. limits: by name in ``resource``. made: is told
    of a starter made for this, so that it listens to its reports and its end. record: file and first line of the job's
    record, if it is to have one. None: there can be no starter here. Raises StartError.
    """
    given = [fd for fd in dict.fromkeys(streams) if fd is not None]
    request: tuple[Any, ...] = (
        [-1 if fd is None else given.index(fd) for fd in streams], candidates(command[0], environment), list(command),
        dict(environment), os.fsencode(directory),
        [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        [(name, getattr(resource, name), *pair) for name, pair in limits.items()], nice, *record)
    answered = _starters.ask(marshal.dumps(request), given, made)
    if answered is None:
        return None
    starter, (pid, number, what, text) = answered
    if not pid:
        raise StartError(number, text, what)
    return starter, pid
