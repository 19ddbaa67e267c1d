"""Commands of resource managers, bounded: a time limit, a limit on output, no input, no shell.

A command gets a process group of its own; all of it is killed when a limit is reached. ``subprocess`` would take half
as much CPU time again, and a program that submits many jobs runs as many commands.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Final

from psij.executors._environment import ENVIRONMENT

OUTPUT_LIMIT = 256 * 1024 * 1024     # bytes of standard output and standard error together
_CHUNK = 1 << 18
_LINGER_S = 0.5                      # how long output is awaited from what a command that has ended left behind
_PAUSE_S: Final = 0.01               # between two looks whether a command has ended, where nothing tells its end
_RESET: Final = (signal.SIGPIPE, signal.SIGXFSZ)        # Python ignores them; commands do not
_CLOSE_FROM: int | None = getattr(os, "POSIX_SPAWN_CLOSEFROM", None)        # of Python 3.13 on
_LISTED_S: Final = 0.1               # for which inheritable descriptors are known; to list them takes 0.035 ms
_MOST_TRIED: Final = 1024            # descriptors that are tried where nobody lists them
_DESCRIPTORS: Final = "/dev/fd"      # where the system lists those of the process that looks


class OutputLimitError(OSError):
    """A command put out more than the limit; it was killed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command said. exit_code: minus the signal when a signal ended it. Text is UTF-8, odd bytes escaped."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Standard output, and standard error too when the command failed."""
        if self.exit_code == 0:
            return self.stdout
        return "\n".join(text for text in (self.stdout.rstrip("\n"), self.stderr.rstrip("\n")) if text)


@dataclass(slots=True)
class Message:
    """What a command is sent on its standard input, once it has answered a greeting.

    greeting: sent first. answer: what its standard output has to say then, after whatever else. sent: whether any of
    the text has been sent.
    """

    greeting: bytes
    answer: bytes
    text: bytes
    sent: bool = False


def run(command: Sequence[str], timeout_s: float, environment: Mapping[bytes, bytes] | None = None,
        limit: int = OUTPUT_LIMIT, message: Message | None = None) -> Result:
    """Run a command to its end.

    environment: instead of our own, as the system takes it. Raises subprocess.TimeoutExpired (with the output so far),
    OutputLimitError, and OSError when it cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    with _Process(command, ENVIRONMENT if environment is None else environment, message is not None) as process:
        try:
            out, err = _read(process, deadline, limit, message)
            code = process.wait(deadline)
        except subprocess.TimeoutExpired as e:
            raise subprocess.TimeoutExpired(list(command), timeout_s, e.output, e.stderr) from None
    return Result(code, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))


class _Process:
    """A command in a session of its own, with pipes to and from it; where its ``with`` ends by an error, it is killed.

    input: descriptor of its standard input, None where that is empty, and once it was closed. outputs: those of its
    standard output and standard error.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[bytes, bytes], has_input: bool) -> None:
        self.command = command
        self.input: int | None = None
        self.outputs: list[int] = []
        self._code: int | None = None
        theirs: dict[int, int] = {}
        try:
            if has_input:
                end, self.input = os.pipe()
                theirs[0] = _beyond_streams(end)
            for number in 1, 2:
                output, end = os.pipe()
                self.outputs.append(output)
                theirs[number] = _beyond_streams(end)
            self._pid = _spawned(command, environment, theirs)
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in theirs.values():
                os.close(descriptor)

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._close()
        if error is not None and not self.has_ended():
            with suppress(ProcessLookupError, PermissionError):     # the latter: only setuid programs are left of it
                os.killpg(self._pid, signal.SIGKILL)
            self.has_ended(0)

    def close_input(self) -> None:
        """Say that nothing more comes."""
        if self.input is not None:
            os.close(self.input)
            self.input = None

    def _close(self) -> None:
        self.close_input()
        while self.outputs:
            os.close(self.outputs.pop())

    def has_ended(self, options: int = os.WNOHANG) -> bool:
        """Whether it has ended by now. options: of ``waitpid``, 0 to wait for its end."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:       # this program has children's ends thrown away: nobody knows how it ended
                self._code = 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code is not None

    def wait(self, deadline: float) -> int:
        """The exit code; minus the signal that ended it. Raises subprocess.TimeoutExpired.

        A descriptor of the process tells its end at once, where the system has such; else it is looked for every few
        milliseconds."""
        if not self.has_ended() and (opened := getattr(os, "pidfd_open", None)) is not None:
            with suppress(OSError):         # none to be had now: it is waited for all the same
                descriptor = opened(self._pid)
                try:
                    poll = select.poll()
                    poll.register(descriptor, select.POLLIN)
                    poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
                finally:
                    os.close(descriptor)
        while not self.has_ended():
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(list(self.command), 0)
            time.sleep(_PAUSE_S)
        assert self._code is not None
        return self._code


def _spawned(command: Sequence[str], environment: Mapping[bytes, bytes], streams: Mapping[int, int]) -> int:
    """Start a command with these descriptors for its streams by their numbers, an empty one where there is none, and no
    other of ours; its process id. Raises OSError.

    As ``subprocess`` does, each file of that name in ``PATH`` is tried until one can be executed.
    """
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in streams.items()]
    actions += [(_CLOSE_FROM, 3)] if _CLOSE_FROM is not None else [
        (os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable(int(time.monotonic() / _LISTED_S))]
    problem = errno.ENOENT
    for path in _candidates(os.fsencode(command[0]), environment):
        try:
            return os.posix_spawn(path, list(command), environment, file_actions=actions, setsid=True,
                                  setsigdef=_RESET)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ENOTDIR):
                problem = e.errno or problem
    raise OSError(problem, os.strerror(problem), command[0])


def _beyond_streams(descriptor: int) -> int:
    """The descriptor, or another for the same where it has the number of a stream, which this process has closed."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _candidates(program: bytes, environment: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The files that a name may mean."""
    if b"/" in program:
        yield program
        return
    for directory in environment.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        path = b"%b/%b" % (directory or b".", program)
        if os.access(path, os.F_OK):
            yield path


@lru_cache(maxsize=1)
def _inheritable(_: int) -> tuple[int, ...]:
    """Descriptors that this process would hand on to its children, beside the three of its streams; asked for once in a
    number of the clock. To close one that is gone by then does no harm.

    What has become inheritable since is handed on, and stays open until the command ends: Python opens nothing so, but
    a library may, while it reads a file, and a program that hands a descriptor to a child of its own."""
    try:
        descriptors: Iterable[int] = [int(name) for name in os.listdir(_DESCRIPTORS)]
    except FileNotFoundError:           # there is no /proc
        descriptors = range(_MOST_TRIED)
    inheritable = []
    for descriptor in descriptors:
        with suppress(OSError):         # of one that is not open, as that by which they were listed
            if descriptor > 2 and os.get_inheritable(descriptor):
                inheritable.append(descriptor)
    return tuple(inheritable)


def _read(process: _Process, deadline: float, limit: int, message: Message | None) -> tuple[bytes, bytes]:
    """Both outputs, read side by side until they are closed, while the message is sent."""
    parts: dict[int, list[bytes]] = {output: [] for output in process.outputs}
    total, poll, waiting = 0, select.poll(), set(parts)
    sender = _Sender(process, message, poll)
    for fd in parts:
        poll.register(fd, select.POLLIN)
    while waiting:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            raise subprocess.TimeoutExpired(list(process.command), 0, *(b"".join(part) for part in parts.values()))
        ready = poll.poll(min(seconds_left, _LINGER_S) * 1000)
        for fd, _ in ready:
            if fd not in parts:
                sender.write()
                continue
            data = os.read(fd, _CHUNK)
            parts[fd].append(data)
            total += len(data)
            if not data:
                poll.unregister(fd)
                waiting.discard(fd)
            elif fd == process.outputs[0]:
                sender.hear(parts[fd])
        if total > limit:
            raise OutputLimitError(f"{process.command!r} put out more than {limit} bytes")
        if not ready and process.has_ended():       # something it left behind holds the pipes
            break
    out, err = (b"".join(part) for part in parts.values())
    return out, err


class _Sender:
    """Sends a message while outputs are read."""

    def __init__(self, process: _Process, message: Message | None, poll: select.poll) -> None:
        self._process, self._message, self._poll = process, message, poll
        self._rest = b"" if message is None else message.greeting
        self._waits = False             # for room in the pipe
        if process.input is not None:
            os.set_blocking(process.input, False)
            self.write()

    def hear(self, parts: Sequence[bytes]) -> None:
        """Send the text where the answer has come by now."""
        message = self._message
        if message is not None and not message.sent and message.answer in b"".join(parts):
            message.sent, self._rest = True, self._rest + message.text
            self.write()

    def write(self) -> None:
        """Send what there is room for."""
        pipe = self._process.input
        if pipe is None:
            return
        try:
            while self._rest:
                self._rest = self._rest[os.write(pipe, self._rest[:_CHUNK]):]
        except BlockingIOError:
            if not self._waits:
                self._poll.register(pipe, select.POLLOUT)
                self._waits = True
            return
        except BrokenPipeError:         # it has ended, and its outputs say why
            self._message = None
        if self._waits:
            self._poll.unregister(pipe)
            self._waits = False
        if self._message is None or self._message.sent:
            self._process.close_input()
