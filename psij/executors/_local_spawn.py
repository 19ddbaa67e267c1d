"""Starting a process from a plan: streams opened, own session, limits set.

The starter process (``_local_starter``, which says why) does it. Where there can be none, the process is started
directly: resource limits and niceness are then set by a small isolated Python process that becomes the executable,
because code between fork and exec is unsafe in a program with threads; it reports what it could not do through a pipe.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from psij.exceptions import InvalidJobException
from psij.executors import _local_starter as starters
from psij.executors._local_engine import engine
from psij.executors._local_plan import Plan
from psij.executors._local_records import by_us

_OUTPUTS = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")     # names of a process's own standard output
_Streams = tuple[int | None, int | None, int | None]       # descriptors of stdin, stdout, stderr; None for /dev/null
_WRITTEN = os.O_WRONLY | os.O_CREAT
_TRANSIENT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_MARKERS = (b"_PSI_J_LAUNCHER_DONE", b"_PSIJ_SCRIPT_DONE")
_TAIL = 4096        # bytes of a launcher's output that are looked at
_WRAPPER = """\
import json, os, resource, sys
fd, todo, command = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
what = "limits"
try:
    if todo["locale"] is None:
        os.environ.pop("LC_CTYPE", None)    # Python may have set it at its start
    else:
        os.environ["LC_CTYPE"] = todo["locale"]
    os.set_inheritable(fd, False)
    for name, pair in todo["limits"].items():
        what = name
        resource.setrlimit(getattr(resource, name), tuple(pair))
    what = "nice"
    if todo["nice"]:
        os.nice(todo["nice"])
    what = command[0]
    os.execvp(command[0], command)
except BaseException as e:
    os.write(fd, f"{what}: {getattr(e, 'strerror', None) or e}".encode(errors="replace"))
    os._exit(127)
"""


class LaunchError(Exception):
    """The job cannot be started as described.

    transient: for lack of something that may be there later. reason: as in metadata.
    """

    def __init__(self, message: str, transient: bool = False, reason: str = "launch") -> None:
        super().__init__(message)
        self.transient = transient
        self.reason = reason


@dataclass(slots=True)
class Spawned:
    """A started process. starter: which reports its end, else it is ours to wait for.

    began: by the monotonic clock, where a starter did it. floor: bytes; a peak of memory up to it cannot be told from
    what the process had before its exec. report: where the limits wrapper tells its errors. output: what a launcher
    script prints.
    """

    pid: int
    starter: starters.Starter | None = None
    began: float | None = None
    floor: int = 0
    report: int | None = None
    output: IO[bytes] | None = None

    def launch_error(self) -> str | None:
        """What the limits wrapper could not do, after the end of the process; None when all was well."""
        if self.report is None:
            return None
        try:
            return os.read(self.report, _TAIL).decode(errors="replace") or None
        except OSError:          # nothing written and still open in a descendant
            return None

    def launcher_output(self) -> bytes:
        """The end of what the launcher script printed."""
        if self.output is None:
            return b""
        size = self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, size - _TAIL))
        return self.output.read(_TAIL)

    def close(self) -> None:
        """Close the descriptors held for this process."""
        if self.report is not None:
            os.close(self.report)
            self.report = None
        if self.output is not None:
            self.output.close()


def end_marked(output: bytes) -> bool:
    """Whether a launcher script said that it came to its end."""
    return any(marker in output for marker in _MARKERS)


def _open(path: str, flags: int, stack: ExitStack, what: str) -> int:
    """Open a stream of the job; a pipe without a peer does not block. A file that is made goes if the start fails."""
    flags |= os.O_NONBLOCK | os.O_NOCTTY
    try:
        try:
            fd = os.open(path, flags | (os.O_EXCL if flags & os.O_CREAT else 0), 0o666)
            if flags & os.O_CREAT:
                stack.push(partial(_unlink_on_error, path))
        except FileExistsError:
            fd = os.open(path, flags, 0o666)
    except OSError as e:
        raise LaunchError(f"cannot open {what} {path}: {e.strerror}", e.errno in _TRANSIENT) from e
    stack.callback(os.close, fd)
    os.set_blocking(fd, True)
    return fd


def _unlink_on_error(path: str, error: type[BaseException] | None, *_: object) -> None:
    if error is not None:
        with suppress(OSError):     # the error that brought us here is the one to tell
            os.unlink(path)


def _open_streams(plan: Plan, stack: ExitStack) -> _Streams:
    """The standard streams; one file named twice is opened once, so that neither overwrites. Standard error named
    ``/dev/stdout`` goes where the job's own standard output goes, as in the script of a launcher."""
    stdin = None if plan.stdin is None else _open(plan.stdin, os.O_RDONLY, stack, "standard input")
    stdout = None if plan.stdout is None else _open(plan.stdout, _WRITTEN | plan.options.stdout_flags, stack,
                                                    "standard output")
    if plan.stderr is None:
        return stdin, stdout, None
    if plan.stdout is not None and (plan.stderr in _OUTPUTS or _same(plan.stderr, plan.stdout)):
        return stdin, stdout, stdout
    return stdin, stdout, _open(plan.stderr, _WRITTEN | plan.options.stderr_flags, stack, "standard error")


def _same(first: str, other: str) -> bool:
    try:
        return os.path.samefile(first, other)
    except OSError:         # one of them is not there yet
        return first == other


def check_directory(directory: str) -> None:
    """Check that the job's directory is there. Raises LaunchError."""
    if not os.path.isdir(directory):
        problem = "is not a directory" if os.path.exists(directory) else "does not exist"
        raise LaunchError(f"the directory {directory} {problem}")


def _wrapped(command: Sequence[bytes], plan: Plan, environment: Mapping[bytes, bytes],
             stack: ExitStack) -> tuple[list[bytes], int | None, int | None]:
    """The command behind the limits wrapper, if there are limits, with the ends of its pipe: to read, to write."""
    chosen = plan.options
    if not chosen.limits and not chosen.nice:
        return list(command), None, None
    read, write = os.pipe()
    os.set_blocking(read, False)
    stack.callback(os.close, write)
    locale = environment.get(b"LC_CTYPE")
    todo = {"limits": chosen.limits, "nice": chosen.nice, "locale": None if locale is None else os.fsdecode(locale)}
    head = [sys.executable, "-I", "-S", "-c", _WRAPPER, str(write), json.dumps(todo)]
    return [*map(os.fsencode, head), *command], read, write


def _as_script(command: Sequence[bytes], plan: Plan) -> list[bytes] | None:
    """The command for a text file without ``#!``, which exec refuses and a shell would run; None for other files."""
    paths = [Path(plan.directory, os.fsdecode(each)) for each in starters.candidates(command[0], plan.environment)]
    path = next((candidate for candidate in paths if candidate.is_file()), paths[0])
    try:
        with open(path, "rb") as stream:
            return None if b"\0" in stream.read(512) else [b"/bin/sh", os.fsencode(path), *command[1:]]
    except OSError:         # exec has said already what is wrong with it
        return None


def _start(command: Sequence[bytes], plan: Plan, environment: Mapping[bytes, bytes], streams: _Streams,
           stack: ExitStack) -> Spawned:
    try:
        started = starters.start(*_request(command, plan, environment, streams), engine().listen)
        if started is not None:
            starter, pid, began = started
            return Spawned(pid, starter, began)
        return _start_directly(command, plan, environment, streams, stack)
    except OSError as e:
        if e.errno == errno.ENOEXEC and (script := _as_script(command, plan)) is not None:
            return _start(script, plan, environment, streams, stack)
        if e.errno == errno.E2BIG:
            raise InvalidJobException("arguments and environment are together more than the system takes", e) from e
        if isinstance(e, starters.StartError) and e.lost:
            raise _lost(e) from e
        what = f": {e.what}" if isinstance(e, starters.StartError) and e.what else f" {os.fsdecode(command[0])}"
        raise LaunchError(f"cannot start{what}: {e.strerror}", e.errno in _TRANSIENT) from e


def _request(command: Sequence[bytes], plan: Plan, environment: Mapping[bytes, bytes],
             streams: _Streams) -> tuple[bytes, list[int]]:
    return starters.request_of(command, environment, plan.directory, streams, plan.options.limits, plan.options.nice,
                               (plan.record, plan.head))


def _lost(error: OSError) -> LaunchError:
    return LaunchError(f"it is not known whether the job runs: {error.strerror}", reason="lost")


def _start_directly(command: Sequence[bytes], plan: Plan, environment: Mapping[bytes, bytes], streams: _Streams,
                    stack: ExitStack) -> Spawned:
    wrapped, read, write = _wrapped(command, plan, environment, stack)
    try:
        stdin, stdout, stderr = (subprocess.DEVNULL if fd is None else fd for fd in streams)
        began = time.clock_gettime(time.CLOCK_BOOTTIME) if plan.record else 0.0
        popen = subprocess.Popen(wrapped, cwd=plan.directory, start_new_session=True, env=environment, stdin=stdin,
                                 stdout=stdout, stderr=stderr, pass_fds=() if write is None else (write,))
    except BaseException:
        if read is not None:
            os.close(read)
        raise
    popen.returncode = 0        # the engine waits for it
    if plan.record:
        by_us(plan.record, plan.head, popen.pid, began)
    return Spawned(popen.pid, floor=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, report=read)


def spawn(command: Sequence[bytes], plan: Plan, script: bool) -> Spawned:
    """Start the command in a session of its own.

    script: the command is a launcher script, which redirects the executable itself; the output files are made ready
    here, and what the script prints is kept apart. Raises LaunchError, InvalidJobException.
    """
    check_directory(plan.directory)
    with ExitStack() as stack:
        stdin, stdout, stderr = _open_streams(plan, stack)
        if not script:
            return _start(command, plan, plan.environment, (stdin, stdout, stderr), stack)
        output = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        try:
            spawned = _start(command, plan, {**plan.environment, b"_PSI_J_OUTPUT_READY": b"1"},
                             (stdin, output.fileno(), output.fileno()), stack)
        except BaseException:
            output.close()
            raise
        spawned.output = output
        return spawned


@dataclass(slots=True)
class Begun:
    """A start that the starter was asked for; ``complete`` waits for it. Its streams stay open until then."""

    command: Sequence[bytes]
    plan: Plan
    streams: _Streams
    stack: ExitStack
    asked: starters.StarterRequest

    def complete(self) -> Spawned:
        """The process. What could not be started is tried again alone, which says why. Raises as ``spawn``."""
        with self.stack as stack:
            try:
                started = starters.settle(self.asked)
            except starters.StartError as error:
                raise _lost(error) from error
            if started is None:
                return _start(self.command, self.plan, self.plan.environment, self.streams, stack)
            starter, pid, began = started
            return Spawned(pid, starter, began)


def begin(command: Sequence[bytes], plan: Plan, unchanged: bool) -> Begun | None:
    """Begin to start a command that is no script, so that the next can be made ready meanwhile. None where it has to be
    ``spawn``. unchanged: the program has done nothing since the last one. Raises LaunchError."""
    check_directory(plan.directory)
    with ExitStack() as stack:
        streams = _open_streams(plan, stack)
        asked = starters.send(*_request(command, plan, plan.environment, streams), engine().listen,
                              unchanged)
        return None if asked is None else Begun(command, plan, streams, stack.pop_all(), asked)
