"""A server that forks for each command: a test pays for what a command does, and not for the start of its interpreter.

It has imported what the commands import. What it forks is a process of its own all the same, with the caller's
arguments, environment, directory, umask and standard streams: it can be sent signals, it may be killed, and it ends
as an interpreter ends. What the start itself shows (which modules a command imports, options of the interpreter, the
limit of a shell on all it starts) needs a real one. Two kinds of programs are known: ``sssjob``, and the commands of
the stand-ins (``tests.fakes``), whose files (``program``) ask the server and become what it answers.

A request is the three streams and a length (``sendmsg``), then as many bytes of ``marshal``: the words of the program
(``sssjob``, or ``stand-in``, module, command, state directory; then its arguments), the directory, the environment, the
umask, the process that the caller stands for, and limits (``RLIMIT_*`` -> value). The answers are the process id, and
when it has ended its status as ``os.waitpid`` gives it. Who closes the connection before that has it killed.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import marshal
import os
import resource
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

__all__ = ["Command", "address", "program"]

_ROOT = Path(__file__).parents[1]
_NUMBER = 8                     # bytes of a number on the wire
_STREAMS = 3 * 4                # bytes of three descriptors
#: What the commands import when they are used.
_IMPORTED = ("psij.executors.batch.sge", "psij.executors.batch.slurm", "psij.executors.local", "sssjob.cli._app",
             "sssjob.cli._dry_run", "sssjob.cli._journal", "sssjob.cli._recognised", "sssjob.cli._tables",
             *(f"sssjob.cli.{name}" for name in ("attach", "cancel", "check", "convert", "list_", "log", "run", "show",
                                                 "status", "submit", "wait")),
             "sssjob.run.client", "sssjob.run.engine", "sssjob.run.keeper", "tests.fakes.lab", "tests.fakes.sge",
             "tests.fakes.slurm")


# --- who asks ------------------------------------------------------------------------------------------------------

@functools.cache
def address() -> str:
    """The socket of the server of this process and of those that it forks; the server ends with the last of them."""
    folder = tempfile.mkdtemp(prefix="sssjob-")
    path = f"{folder}/forks"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(128)
        process = subprocess.Popen([sys.executable, "-m", "tests.forks", str(listening.fileno())], cwd=_ROOT,
                                   stdin=subprocess.PIPE, pass_fds=[listening.fileno()],
                                   env=os.environ | {"PYTHONWARNINGS": "error"})
    owner = os.getpid()

    def close() -> None:
        if os.getpid() == owner:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(close)
    return path


class Command:
    """A command ``sssjob`` in a process that the server forks, to be used as a ``subprocess.Popen`` with text pipes.

    limits: ``RLIMIT_*`` -> the most that the process may use of it.
    """

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str],
                 limits: Mapping[int, int] | None = None) -> None:
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        self._streams = {out: bytearray(), err: bytearray()}
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address())
        with open(os.devnull, "rb") as null:
            request = marshal.dumps((
                ["sssjob", *arguments], os.fspath(cwd), {os.fsencode(k): os.fsencode(v) for k, v in env.items()},
                _umask(), os.getpid(), dict(limits or {})))
            socket.send_fds(self._connection, [len(request).to_bytes(_NUMBER)], [null.fileno(), theirs_out, theirs_err])
        os.close(theirs_out)
        os.close(theirs_err)
        self._connection.sendall(request)
        self.pid = _number(self._connection)
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the negative number of the signal that ended it. timeout: seconds."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = os.waitstatus_to_exitcode(_number(self._connection))
            except TimeoutError:
                raise subprocess.TimeoutExpired("sssjob", timeout or 0) from None
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it writes until it ends. timeout: seconds, each time that it is silent."""
        with selectors.DefaultSelector() as waiting:
            for stream in self._streams:
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(timeout)
                if not ready:
                    raise subprocess.TimeoutExpired("sssjob", timeout or 0)
                for key, _ in ready:
                    piece = os.read(key.fd, 65536)
                    self._streams[key.fd] += piece
                    if not piece:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
        self.wait(timeout)
        out, err = (bytes(text).decode() for text in self._streams.values())
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless its end is known."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._connection.close()


_PROGRAM = """\
import _socket, marshal, os
def asked(n):
    text = b''
    while len(text) < n:
        piece = c.recv(n - len(text))
        if not piece:
            os.kill(os.getpid(), 9)
        text += piece
    return int.from_bytes(text, 'big')
import sys
mask = os.umask(0)
os.umask(mask)
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environb), mask, os.getppid(), {}))
c = _socket.socket(_socket.AF_UNIX)
c.connect(ADDRESS)
streams = b''.join(n.to_bytes(4, sys.byteorder) for n in (0, 1, 2))
c.sendmsg([len(request).to_bytes(8, 'big')], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
sent = 0
while sent < len(request):
    sent += c.send(request[sent:])
asked(8)
os._exit(os.waitstatus_to_exitcode(asked(8)) & 255)
"""


def program(*words: str) -> str:
    """A shell script that has the server run what these words and its own arguments say.

    It imports next to nothing, without the site's packages.
    """
    text = _PROGRAM.replace("ADDRESS", repr(address()))
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -ISc {shlex.quote(text)} {shlex.join(words)} "$@"\n'


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exactly(connection: socket.socket, count: int) -> bytes:
    text = b""
    while len(text) < count:
        piece = connection.recv(count - len(text))
        if not piece:
            raise ConnectionError("the other side is gone")
        text += piece
    return text


def _number(connection: socket.socket) -> int:
    return int.from_bytes(_exactly(connection, _NUMBER))


# --- the server ----------------------------------------------------------------------------------------------------

class _Server:
    """Forks until its standard input ends; ``serve`` comes back in each of the processes that it forks."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.running: dict[int, socket.socket] = {}
        self.waiting = selectors.DefaultSelector()
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)
        for one in (listening, 0, self.woken):
            self.waiting.register(one, selectors.EVENT_READ)

    def serve(self) -> list[str]:
        """The words of the program that this process, a forked one, is to be."""
        signal.set_wakeup_fd(self.wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            for key, _ in self.waiting.select():
                if key.fileobj == 0:
                    os._exit(0)
                elif key.fileobj == self.woken:
                    os.read(self.woken, 4096)
                    self._reap()
                elif key.fileobj is self.listening:
                    words = self._answer(self.listening.accept()[0])
                    if words is not None:
                        return words
                elif key.data in self.running:
                    os.kill(key.data, signal.SIGKILL)
                    self.waiting.unregister(key.fileobj)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self.running.pop(ended[0])
                with suppress(KeyError):
                    self.waiting.unregister(connection)
                with suppress(OSError):
                    connection.sendall(ended[1].to_bytes(_NUMBER))
                connection.close()

    def _answer(self, connection: socket.socket) -> list[str] | None:
        try:
            length, streams, *_ = socket.recv_fds(connection, _NUMBER, 3)
            words, cwd, environment, umask, caller, limits = marshal.loads(
                _exactly(connection, int.from_bytes(length)))
        except (OSError, ValueError):
            connection.close()
            return None
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            self.running[pid] = connection
            self.waiting.register(connection, selectors.EVENT_READ, pid)
            with suppress(OSError):
                connection.sendall(pid.to_bytes(_NUMBER))
            return None
        self._become(connection, streams, cwd, environment, umask, limits)
        if words[0] == "stand-in":
            words.insert(1, str(caller))
        result: list[str] = words
        return result

    def _become(self, connection: socket.socket, streams: Sequence[int], cwd: str, environment: Mapping[bytes, bytes],
                umask: int, limits: Mapping[int, int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.waiting.close()
        for one in (self.listening, connection, *self.running.values()):
            one.close()
        for end in (self.woken, self.wake):
            os.close(end)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(cwd)
        os.umask(umask)
        os.environb.clear()
        os.environb.update(environment)
        _move_home()
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))


def _move_home() -> None:
    """Have the work directory, which is settled by an import, below the home directory of the environment of now."""
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
    from psij.job_executor_config import JobExecutorConfig

    default = Path(os.path.expanduser("~/.psij/work"))
    JobExecutorConfig.DEFAULT_WORK_DIRECTORY = default
    for config in (JobExecutorConfig, BatchSchedulerExecutorConfig):
        config.DEFAULT.work_directory = default


def _main(words: list[str]) -> int:
    """Be a program."""
    if words[0] == "sssjob":
        from sssjob.cli import main

        sys.argv = words
        return main()
    from tests.fakes.lab import Lab

    _, caller, module, name, state, *arguments = words
    command = importlib.import_module(module).COMMANDS[name]
    return Lab(Path(state), int(caller)).call(name, command, arguments)


def _end(code: int) -> None:
    """End as an interpreter does, but for taking all objects apart, which would copy the memory of the server."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    os._exit(code)


if __name__ == "__main__":
    for _module in _IMPORTED:
        importlib.import_module(_module)
    gc.collect()
    gc.freeze()
    _end(_main(_Server(socket.socket(fileno=int(sys.argv[1]))).serve()))
