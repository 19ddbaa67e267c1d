"""Commands of resource managers, bounded: a time limit, a limit on output, no input, no shell.

A command gets a process group of its own; all of it is killed when a limit is reached.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

OUTPUT_LIMIT = 256 * 1024 * 1024     # bytes of standard output and standard error together
_CHUNK = 1 << 18
_LINGER_S = 0.5                      # how long output is awaited from what a command that has ended left behind


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
    stdin = subprocess.DEVNULL if message is None else subprocess.PIPE
    with subprocess.Popen(list(command), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, start_new_session=True, bufsize=0) as process:
        try:
            out, err = _read(process, deadline, limit, message)
            code = _wait(process, deadline)
        except subprocess.TimeoutExpired as e:
            _kill(process)
            raise subprocess.TimeoutExpired(list(command), timeout_s, e.output, e.stderr) from None
        except BaseException:
            _kill(process)
            raise
    return Result(code, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))


def _wait(process: subprocess.Popen[bytes], deadline: float) -> int:
    """The exit code. ``Popen.wait`` with a time limit sleeps for a millisecond and more between two looks, in which a
    command that has closed its output ends; a descriptor of the process tells its end at once, where the system has
    such."""
    if process.poll() is None and (opened := getattr(os, "pidfd_open", None)) is not None:
        with suppress(OSError):         # none to be had now: it is waited for all the same
            descriptor = opened(process.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            finally:
                os.close(descriptor)
    return process.wait(max(0.0, deadline - time.monotonic()))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):     # gone; PermissionError: only setuid programs are left of it
        os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], deadline: float, limit: int,
          message: Message | None) -> tuple[bytes, bytes]:
    """Both outputs, read side by side until they are closed, while the message is sent."""
    assert process.stdout is not None and process.stderr is not None
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    total = 0
    with selectors.PollSelector() as selector, _Sender(process, message, selector) as sender:
        for fd in parts:
            selector.register(fd, selectors.EVENT_READ)
        while len(selector.get_map()) > sender.waits:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                raise subprocess.TimeoutExpired(process.args, 0, *(b"".join(part) for part in parts.values()))
            ready = selector.select(min(seconds_left, _LINGER_S))
            for key, _ in ready:
                if key.fd not in parts:
                    sender.go_on()
                    continue
                data = os.read(key.fd, _CHUNK)
                parts[key.fd].append(data)
                total += len(data)
                if not data:
                    selector.unregister(key.fd)
                elif key.fd == process.stdout.fileno():
                    sender.hear(parts[key.fd])
            if total > limit:
                raise OutputLimitError(f"{process.args!r} put out more than {limit} bytes")
            if not ready and process.poll() is not None:        # something it left behind holds the pipes
                break
    out, err = (b"".join(part) for part in parts.values())
    return out, err


class _Sender:
    """Sends a message while outputs are read. waits: how many of the selector's files are its own."""

    def __init__(self, process: subprocess.Popen[bytes], message: Message | None,
                 selector: selectors.BaseSelector) -> None:
        self._pipe, self._message, self._selector = process.stdin, message, selector
        self._rest = b"" if message is None else message.greeting
        self.waits = 0

    def __enter__(self) -> _Sender:
        if self._pipe is not None:
            os.set_blocking(self._pipe.fileno(), False)
            self._write()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def hear(self, parts: Sequence[bytes]) -> None:
        """Send the text where the answer has come by now."""
        message = self._message
        if message is not None and not message.sent and message.answer in b"".join(parts):
            message.sent, self._rest = True, self._rest + message.text
            self._write()

    def go_on(self) -> None:
        """There is room in the pipe."""
        self._write()

    def _write(self) -> None:
        if self._pipe is None or self._pipe.closed:
            return
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._pipe.fileno(), self._rest[:_CHUNK]):]
        except BlockingIOError:
            if not self.waits:
                self._selector.register(self._pipe, selectors.EVENT_WRITE)
                self.waits = 1
            return
        except BrokenPipeError:         # it has ended, and its outputs say why
            self._close()
            return
        if self.waits:
            self._selector.unregister(self._pipe)
            self.waits = 0
        if self._message is not None and self._message.sent:
            self._close()

    def _close(self) -> None:
        if self._pipe is not None and not self._pipe.closed:
            if self.waits:
                self._selector.unregister(self._pipe)
                self.waits = 0
            with suppress(BrokenPipeError):
                self._pipe.close()
