"""Ways for messages to go: between two objects in one process, and as JSON Lines over file descriptors.

A channel has ``send`` and ``close``, and tells two functions what comes in: ``receive(message)`` and ``closed(why)``,
the latter once, unless it was closed from this side. Nothing here blocks: what the other side does not read is kept,
up to a limit.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from sssjob.errors import AccessError
from sssjob.findings import escape
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Message, from_line, to_line
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, ProtocolError

__all__ = ["Channel", "End", "FdChannel", "Lines", "connect", "listen", "pair"]

_PIECE = 4096           # a pipe that poll calls writable takes so much (PIPE_BUF)


class Channel(Protocol):
    """One side of a connection."""

    receive: Callable[[Message], None]
    closed: Callable[[str], None]

    def send(self, message: Message) -> None:
        """Send a message; nothing happens once the channel is closed."""

    def close(self) -> None:
        """Send what is left as far as it goes, and end the connection."""


def _ignore(_: object) -> None:
    return None


class End:
    """One end of a connection inside this process."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.other: End | None = None
        self.receive: Callable[[Message], None] = _ignore
        self.closed: Callable[[str], None] = _ignore

    def send(self, message: Message) -> None:
        """Hand a message to the other end, soon."""
        other = self.other
        if other is not None:
            self.loop.soon(lambda: other.receive(message) if other.other is not None else None)

    def close(self) -> None:
        """End the connection."""
        other, self.other = self.other, None
        if other is not None:
            self.loop.soon(other._lost)

    def _lost(self) -> None:
        if self.other is not None:
            self.other = None
            self.closed("")


def pair(loop: Loop) -> tuple[End, End]:
    """The two ends of a connection."""
    client, two = End(loop), End(loop)
    client.other, two.other = two, client
    return client, two


class FdChannel:
    """Bytes over one or two file descriptors; what a message looks like is for subclasses.

    It owns the descriptors. half: the end of what comes in does not end what goes out.
    """

    def __init__(self, loop: Loop, fd_in: int, fd_out: int | None = None, *, half: bool = False,
                 limits: ExecLimits = EXEC_LIMITS) -> None:
        self.loop, self.limits, self.half = loop, limits, half
        self.fd_in, self.fd_out = fd_in, fd_in if fd_out is None else fd_out
        self.receive: Callable[[Message], None] = _ignore
        self.closed: Callable[[str], None] = _ignore
        self.ended: Callable[[], None] = lambda: None       # with half: nothing more comes in
        self._pending = bytearray()
        self._open = self._reading = True
        for fd in {self.fd_in, self.fd_out}:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.set_blocking(fd, False)
        self._watch()

    def encode(self, message: Message) -> bytes:
        """The bytes of a message."""
        raise NotImplementedError

    def decode(self, data: bytes) -> None:
        """Take bytes that came in; call ``self.receive`` for each message. Raises ProtocolError."""
        raise NotImplementedError

    def torn(self) -> bool:
        """Whether a part of a message has come in, and not the rest."""
        raise NotImplementedError

    def send(self, message: Message) -> None:
        """Send a message, now or when the other side reads."""
        if self._open:
            self._write(self.encode(message))

    def _write(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) > self.limits.pending_bytes:
            self._fail(str(ExecLimitError("the other side does not read", "pending_bytes")))
        else:
            self._watch()

    def close(self) -> None:
        """End the connection."""
        if self._open:
            while self._pending and self._writable() and self._flush():
                continue
            self._shut()

    @property
    def pending(self) -> int:
        """Bytes that were not written yet."""
        return len(self._pending)

    def _watch(self) -> None:
        reads = selectors.EVENT_READ if self._reading else 0
        writes = selectors.EVENT_WRITE if self._pending else 0
        if self.fd_in == self.fd_out:
            self.loop.watch(self.fd_in, reads | writes, self._ready)
        else:
            self.loop.watch(self.fd_in, reads, self._ready)
            self.loop.watch(self.fd_out, writes, self._ready)

    def _ready(self, events: int) -> None:
        if self._open and events & selectors.EVENT_WRITE:
            self._flush()
        if self._open and events & selectors.EVENT_READ:
            self._read()
        if self._open:
            self._watch()

    def _writable(self) -> bool:
        """Whether something can be written without waiting."""
        poll = select.poll()
        poll.register(self.fd_out, select.POLLOUT)
        return bool(poll.poll(0))

    def _flush(self) -> bool:
        """Write a piece; whether that went well."""
        try:
            sent = os.write(self.fd_out, self._pending[:_PIECE] if self.fd_in != self.fd_out else self._pending)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(error.strerror or "cannot be written")
            return False
        del self._pending[:sent]
        return True

    def _read(self) -> None:
        try:
            data = os.read(self.fd_in, 1 << 16)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(error.strerror or "cannot be read")
            return
        if not data:
            self._end()
            return
        try:
            self.decode(data)
        except ProtocolError as error:
            self._fail(str(error))

    def _end(self) -> None:
        why = "the connection ended inside a message" if self.torn() else ""
        if not self.half or why:
            self._fail(why)
            return
        self._reading = False
        self.ended()

    def _fail(self, why: str) -> None:
        if self._open:
            self._shut()
            self.closed(why)

    def _shut(self) -> None:
        self._open = False
        for fd in {self.fd_in, self.fd_out}:
            self.loop.watch(fd, 0, self._ready)
            with suppress(OSError):
                os.close(fd)


class Lines(FdChannel):
    """JSON Lines. A line that is no message ends the connection: what it was is not known, so nothing is guessed."""

    def __init__(self, loop: Loop, fd_in: int, fd_out: int | None = None, *, half: bool = False,
                 limits: ExecLimits = EXEC_LIMITS) -> None:
        self._parts: list[bytes] = []       # of a line that has not ended yet
        self._size = 0
        super().__init__(loop, fd_in, fd_out, half=half, limits=limits)

    def encode(self, message: Message) -> bytes:
        """A line."""
        return to_line(message)

    def decode(self, data: bytes) -> None:
        """Take whole lines, keep the rest."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._keep(line)
            whole, self._parts, self._size = b"".join(self._parts), [], 0
            message = from_line(whole) if whole.strip() else None
            if message is not None and self._open:
                self.receive(message)
        self._keep(rest)

    def torn(self) -> bool:
        """Whether a line has begun."""
        return self._size > 0

    def _keep(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > self.limits.line_bytes:
            raise ExecLimitError(f"a line of more than {self.limits.line_bytes} bytes", "line_bytes")


def listen(path: str) -> socket.socket:
    """A Unix socket that only its owner can connect to. One that nobody listens at any more is replaced.

    Raises AccessError.
    """
    _check_path(path)
    connection = socket.socket(socket.AF_UNIX)
    try:
        _bind(connection, path)
        connection.listen()
        connection.setblocking(False)
        return connection
    except OSError as error:
        connection.close()
        raise AccessError(path, error.strerror or str(error)) from error


def _check_path(path: str) -> None:
    if not path or "\0" in path:       # to Linux these are names without a file
        raise AccessError(escape(path) or "''", "no socket can have this name")


def _bind(listening: socket.socket, path: str) -> None:
    before = os.umask(0o177)
    try:
        try:
            listening.bind(path)
        except OSError:
            if not _stale(path):
                raise
            os.unlink(path)
            listening.bind(path)
    finally:
        os.umask(before)


def _stale(path: str) -> bool:
    """Whether there is a socket that nobody listens at."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def connect(path: str) -> int:
    """A descriptor connected to a Unix socket. Raises AccessError."""
    _check_path(path)
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            raise AccessError(path, error.strerror or str(error)) from error
        return connection.detach()
