"""Starting a process from a plan: streams opened, own session, limits set.

Resource limits and niceness are set by a small isolated Python process that then becomes the executable, because code
between fork and exec is unsafe in a program with threads; it reports what it could not do through a pipe.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from psij.executors._local_plan import Plan

__all__ = ["LaunchError", "Spawned", "end_marked", "spawn"]

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
    """The job cannot be started as described. transient: for lack of something that may be there later."""

    def __init__(self, message: str, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(slots=True)
class Spawned:
    """A started process. report: where the limits wrapper tells its errors. output: what a launcher script prints."""

    popen: subprocess.Popen[bytes]
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


def _open(path: str | None, flags: int, stack: ExitStack, what: str) -> int:
    """Open a stream of the job; a pipe without a peer does not block."""
    try:
        fd = os.open(path or os.devnull, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    except OSError as e:
        raise LaunchError(f"cannot open {what} {path}: {e.strerror}", e.errno in _TRANSIENT) from e
    stack.callback(os.close, fd)
    os.set_blocking(fd, True)
    return fd


def _open_streams(plan: Plan, stack: ExitStack) -> tuple[int, int, int]:
    """Descriptors of stdin, stdout and stderr; one file named twice is opened once, so that neither overwrites."""
    stdin = _open(plan.stdin, os.O_RDONLY, stack, "standard input")
    stdout = _open(plan.stdout, _flags(plan.options.append_stdout), stack, "standard output")
    if plan.stderr is not None and plan.stdout is not None and _same(plan.stderr, plan.stdout):
        return stdin, stdout, stdout
    return stdin, stdout, _open(plan.stderr, _flags(plan.options.append_stderr), stack, "standard error")


def _flags(append: bool) -> int:
    return os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one == other


def _check_directory(directory: str) -> None:
    if not os.path.isdir(directory):
        problem = "is not a directory" if os.path.exists(directory) else "does not exist"
        raise LaunchError(f"the directory {directory} {problem}")


def _wrapped(command: Sequence[str], plan: Plan, stack: ExitStack) -> tuple[list[str], int | None, int | None]:
    """The command behind the limits wrapper, if there are limits, with the ends of its pipe: to read, to write."""
    chosen = plan.options
    if not chosen.limits and not chosen.nice:
        return list(command), None, None
    read, write = os.pipe()
    os.set_blocking(read, False)
    stack.callback(os.close, write)
    todo = {"limits": chosen.limits, "nice": chosen.nice, "locale": plan.environment.get("LC_CTYPE")}
    return [sys.executable, "-I", "-S", "-c", _WRAPPER, str(write), json.dumps(todo), *command], read, write


def _as_script(command: Sequence[str], plan: Plan) -> list[str] | None:
    """The command for a text file without ``#!``, which exec refuses and a shell would run; None for other files."""
    path = Path(plan.directory, command[0])
    if os.sep not in command[0]:
        found = [Path(folder, command[0]) for folder in os.get_exec_path(plan.environment)]
        path = next((candidate for candidate in found if candidate.is_file()), path)
    try:
        with open(path, "rb") as stream:
            return None if b"\0" in stream.read(512) else ["/bin/sh", str(path), *command[1:]]
    except OSError:
        return None


def _popen(command: Sequence[str], plan: Plan, **settings: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, cwd=plan.directory, start_new_session=True, **settings)
    except OSError as e:
        if e.errno == errno.ENOEXEC and (script := _as_script(command, plan)) is not None:
            return _popen(script, plan, **settings)
        raise LaunchError(f"cannot start {command[0]}: {e.strerror}", e.errno in _TRANSIENT) from e


def spawn(command: Sequence[str], plan: Plan, script: bool) -> Spawned:
    """Start the command in a session of its own.

    script: the command is a launcher script, which redirects the executable itself; the output files are made ready
    here, and what the script prints is kept apart. Raises LaunchError.
    """
    _check_directory(plan.directory)
    with ExitStack() as stack:
        stdin, stdout, stderr = _open_streams(plan, stack)
        environment, output = plan.environment, None
        if script:
            environment = {**environment, "_PSI_J_OUTPUT_READY": "1"}
            output = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
            stdout = stderr = output.fileno()
        wrapped, read, write = _wrapped(command, plan, stack)
        spawned = None
        try:
            popen = _popen(wrapped, plan, env=environment, stdin=stdin, stdout=stdout, stderr=stderr,
                           pass_fds=() if write is None else (write,))
            spawned = Spawned(popen, read, output)
        finally:
            if spawned is None:
                _discard(read, output)
        return spawned


def _discard(report: int | None, output: IO[bytes] | None) -> None:
    with suppress(OSError):
        if report is not None:
            os.close(report)
    if output is not None:
        output.close()
