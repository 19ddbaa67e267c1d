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
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sssjob.errors import AccessError, UsageError
from sssjob.serve.web import Server, application

__all__ = ["Listening", "address_of", "check_tls", "listener", "process_of", "serve"]

_HEAD_S: Final = 15.0       # until a request has begun, on a connection that is open
_STOP_S: Final = 10         # that requests have when the server stops
_STOPS: Final = (signal.SIGINT, signal.SIGTERM)


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
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise AccessError(f"{host}:{port}", error.strerror or str(error)) from None


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


class _Impatient(H11Protocol):
    """Closes a connection on which no whole request head comes in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(_HEAD_S, self._look, self.cycle)

    def _look(self, before: Any) -> None:
        """Close where nothing was asked since the last look, and nothing is being answered."""
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        else:
            self._wait()
