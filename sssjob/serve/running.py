"""The server's process: sockets, TLS, limits on connections, and an end that leaves nothing half done."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import uvicorn
from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sssjob.errors import AccessError, UsageError
from sssjob.limits import LIMITS
from sssjob.serve.web import Server, application

__all__ = ["Listening", "address_of", "check_tls", "listener", "process_of", "serve"]

_HEAD_S: Final = 15.0       # until a request has begun, on a connection that is open
_STOP_S: Final = 10         # that requests have when the server stops
_STOPS: Final = (signal.SIGINT, signal.SIGTERM)
_BODY_HEADERS: Final = (b"content-length", b"transfer-encoding")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where HTTP is spoken. tls: files of a certificate and its key; connections: the most of them at once."""

    socket: socket.socket
    tls: tuple[str, str] | None = None
    connections: int = 200


def listener(host: str, port: int, tls: bool) -> socket.socket:
    """A socket that listens. Raises UsageError for a place that others reach where there is no TLS, AccessError."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        loopback = all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in addresses)
        if not (tls or loopback):
            raise UsageError(f"{host} can be reached from other machines: tokens go there with TLS only "
                             "(--certificate, --private-key)")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise AccessError(f"{host}:{port}", error.strerror or str(error)) from None
    # An answer is written in two parts, and the second is not to wait until the first was acknowledged (40 ms). The
    # connections have it from here: asyncio sets it only for sockets that were made with the number of the protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket) -> str:
    """Host and port of a socket, as a URL has them."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_tls(certificate: str, key: str) -> None:
    """Raise AccessError for what is no certificate with its key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise AccessError(certificate, f"no certificate with its key: {error.strerror or error}") from None


def process_of(server: Server, listening: Listening) -> uvicorn.Server:
    """The ASGI server, ready to run."""
    certificate, key = listening.tls or (None, None)
    config = uvicorn.Config(
        application(server), http=_Impatient, ws="none", lifespan="on", log_level="error", access_log=False,
        limit_concurrency=listening.connections, timeout_keep_alive=int(_HEAD_S), server_header=False,
        timeout_graceful_shutdown=_STOP_S, h11_max_incomplete_event_size=server.limits.head_bytes,
        proxy_headers=False, ssl_certfile=certificate, ssl_keyfile=key)
    return _Process(config, server)


def serve(server: Server, listening: Listening) -> None:
    """Serve until SIGINT or SIGTERM comes: then no request is begun, and those that are have a little time."""
    try:
        process_of(server, listening).run(sockets=[listening.socket])
    finally:
        server.workers.close()
        server.audit.close()


class _Process(uvicorn.Server):
    """Ends with success when a signal asks for the end, and ends streams of events then."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let who listens to events go, then all others."""
        self._server.happenings.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does it, but that the signal does not end the process a second time."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Corked:
    """A transport that sends what is written in one turn of the loop at once: the head of an answer with its body."""

    __slots__ = ("_loop", "_pieces", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send some octets, soon."""
        if not self._pieces:
            self._loop.call_soon(self._send)
        self._pieces.append(data)

    def close(self) -> None:
        """Send what was written, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._transport.write(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        """What else a transport has."""
        return getattr(self._transport, name)


class _Impatient(HttpToolsProtocol):
    """Closes a connection on which no whole request head comes in time, or one that is longer than it may be.

    The parser takes heads and trailers of any length, trailers as if they were headers, requests that do not say their
    Host and codings that it does not undo; after a wish for another protocol (Upgrade) it reads nothing more.
    """

    _timer: asyncio.TimerHandle | None = None
    _head = 0           # octets of the head of this message, its trailers among them
    _unread = 0         # octets that came since the parser last made something of them
    _in_body = False    # the head of this message was read
    _why = ""           # it is refused, where that needs words

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        corked = _Corked(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, corked))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Octets came. A line that never ends is left before it fills the memory."""
        most = self.config.h11_max_incomplete_event_size or LIMITS.head_bytes
        for begin in range(0, len(data), most):
            if self.transport.is_closing():
                break
            piece = data[begin:begin + most]
            self._unread += len(piece)
            super().data_received(piece)
            if self._unread > most and not self.transport.is_closing():
                self.send_400_response("The request head is too long.")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head, self._in_body = 0, False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of its target came. Raises HttpParserError."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came, or a trailer, which says nothing here. Raises HttpParserError."""
        self._count(len(name) + len(value) + len(b": \r\n"))
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there. Raises HttpParserError where it says no Host, several, or another coding than chunked."""
        self._unread, self._in_body = 0, True
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise HttpParserError("a request says its Host once")
        if any(name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self.headers):
            raise HttpParserError("a coding that is not undone")
        upgrading = self.parser.should_upgrade()
        if upgrading and any(name in _BODY_HEADERS and value != b"0" for name, value in self.headers):
            self._why = "Only HTTP/1.1 is spoken here; ask without Upgrade."
            raise HttpParserError(self._why)
        super().on_headers_complete()
        if upgrading:                           # and nothing more is read from this connection
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Refuse what came, and close."""
        super().send_400_response(self._why or msg)

    def on_body(self, body: bytes) -> None:
        """A piece of the body came."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._unread = 0
        super().on_message_complete()

    def _count(self, octets: int) -> None:
        self._unread = 0
        self._head += octets
        if self._head > (self.config.h11_max_incomplete_event_size or LIMITS.head_bytes):
            raise HttpParserError("the request head is too long")

    def _wait(self) -> None:
        self._timer = self.loop.call_later(_HEAD_S, self._look, self.cycle)

    def _look(self, before: Any) -> None:
        """Close where nothing was asked since the last look, and nothing is being answered."""
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        else:
            self._wait()
