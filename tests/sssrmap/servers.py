"""A server on loopback that answers each connection with octets that a test chose."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sssjob.sssrmap.framing import FrameError, Receiver


class Scripted(NamedTuple):
    """url: where it listens; requests: the payloads that it received."""

    url: str
    requests: list[bytes]


@contextmanager
def scripted(*replies: bytes) -> Iterator[Scripted]:
    """One connection for each reply; then no more. A connection ends as soon as its reply is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(f"sssrmap://127.0.0.1:{listener.getsockname()[1]}", [])
        thread = threading.Thread(target=_serve, args=(listener, replies, server.requests))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)     # an accept that nobody meets ends
            thread.join(10)
            assert not thread.is_alive()


def _serve(listener: socket.socket, replies: tuple[bytes, ...], requests: list[bytes]) -> None:
    for reply in replies:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(10)
            receiver = Receiver("request", gold=True)
            try:
                while not receiver.complete:
                    receiver.feed(connection.recv(4096))
                requests += receiver.payloads
                connection.sendall(reply)
            except (FrameError, OSError):
                continue
