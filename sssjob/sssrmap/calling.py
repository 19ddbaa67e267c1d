"""The client's side: a Request is sent to an address, and the pieces of its answer are yielded as they come.

One request a connection. Whatever goes wrong on the way is a MessageError with a code of the classes 2xx (network and
framing), 3xx (message) or 4xx (security), so that it is told like what a server answers.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap.framing import PATH, Receiver, framed_request
from sssjob.sssrmap.model import Count, Data, Envelope, MessageError, Request, Response
from sssjob.sssrmap.reader import read_message
from sssjob.sssrmap.signing import sign
from sssjob.sssrmap.writer import write_message

__all__ = ["Peer", "Signing", "joined", "peer_of", "responses"]

#: Scheme -> (port, whether it is TLS). 7112 is the port of Gold.
_SCHEMES: Final = {"sssrmap": (7112, False), "sssrmaps": (7112, True), "http": (80, False), "https": (443, True)}
_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a server listens. tls: whether it speaks TLS, and its certificate is checked."""

    host: str
    port: int
    path: str = PATH
    tls: bool = False

    @property
    def shown(self) -> str:
        """Host and port, as the header Host has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Signing:
    """How requests are signed. key: octets; method: one of signing.HASHES; password: the key is the actor's password,
    and not shared."""

    key: bytes
    method: str = "SHA256"
    password: bool = False

    def __repr__(self) -> str:
        return f"Signing(method={self.method!r}, password={self.password})"     # no key in logs


def peer_of(url: str) -> Peer:
    """The server of a URL: ``sssrmap://HOST[:PORT][/PATH]``, or with sssrmaps (TLS), http, https. Raises UsageError."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise UsageError(f"{escape(url)} is no URL of a server: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise UsageError(f"{escape(url)}: scheme {escape(parts.scheme)!r} is not known (known: {', '.join(_SCHEMES)})")
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise UsageError(f"{escape(url)} is not of the form {parts.scheme}://HOST[:PORT][/PATH]")
    if not all("!" <= c <= "~" for c in host + parts.path):
        raise UsageError(f"{escape(url)} has characters that a URL writes with % (or a host in Punycode)")
    default, tls = _SCHEMES[parts.scheme]
    return Peer(host, default if port is None else port, parts.path if parts.path not in ("", "/") else PATH, tls)


def responses(request: Request, peer: Peer, *, signing: Signing | None = None, context: ssl.SSLContext | None = None,
              findings: Findings | None = None, limits: Limits = LIMITS) -> Iterator[Response]:
    """The pieces of the answer of a server, each as soon as it is there.

    context: of TLS, instead of the one that checks certificates by the system's list; findings: takes what was not
    understood in the answer, which is passed over. Raises MessageError. A server that repeats a piece, or numbers its
    pieces wrongly, is left (246): Gold sends the same piece for ever where a Limit is as large as its pieces.
    """
    envelope = Envelope(request)
    if signing is not None:
        actor = request.actor if signing.password else None
        envelope = sign(envelope, signing.key, method=signing.method, actor=actor)
    octets = framed_request(write_message(envelope).encode("utf-8"), peer.shown, peer.path)
    noted = Findings("-", limits) if findings is None else findings
    with _connected(peer, context, limits.message_seconds) as connection:
        _send(connection, octets)
        before: Response | None = None
        for status, payload in _payloads(connection, limits):
            response = _response(payload, noted, limits, status)
            if before is not None:
                _check_order(before, response)
            yield response
            if response.last:
                return
            before = response
        if before is None:
            raise MessageError("246", "The server answered nothing.")
        if before.chunk_max is not None:
            raise MessageError("246", f"The answer ended after piece {before.chunk_num}, which is not the last one.")


def joined(pieces: Iterator[Response]) -> Response:
    """The pieces of an answer as one Response: the Status of the last one, all objects, and their number."""
    contents: list[str] = []
    count: int | None = None
    response: Response | None = None
    for response in pieces:
        if response.data is not None:
            contents.append(response.data.content)
        if response.count is not None:
            count = (count or 0) + response.count
    if response is None:
        raise MessageError("246", "The server answered nothing.")
    counted = () if count is None else (Count(count),)
    data = (Data("".join(contents)),) if contents else ()
    return Response((response.status, *counted, *data), response.actor, id=response.id)


def _connected(peer: Peer, context: ssl.SSLContext | None, seconds: float) -> socket.socket:
    """A connection, whose every step is limited in time."""
    plain: socket.socket | None = None
    try:
        plain = socket.create_connection((peer.host, peer.port), seconds)
        if not peer.tls:
            return plain
        return (context or ssl.create_default_context()).wrap_socket(plain, server_hostname=peer.host)
    except (OSError, UnicodeError) as error:
        if plain is not None:
            plain.close()
        code = "212" if isinstance(error, (socket.gaierror, UnicodeError)) else "400" if isinstance(
            error, ssl.SSLError) else "232" if isinstance(error, TimeoutError) else "222"
        raise MessageError(code, f"{peer.shown}: no connection ({error})") from None


def _send(connection: socket.socket, octets: bytes) -> None:
    try:
        connection.sendall(octets)
    except TimeoutError:
        raise MessageError("232", "The server does not take the request in time.") from None
    except OSError as error:
        # a server may answer and close before it has read all: what it answered is still there to be read
        if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
            raise MessageError("224", f"The request cannot be sent: {error}") from None


def _payloads(connection: socket.socket, limits: Limits) -> Iterator[tuple[int, bytes]]:
    """The status of HTTP, and a piece of the reply, as they come."""
    receiver = Receiver("reply", limits=limits)
    while not receiver.complete:
        end = time.monotonic() + limits.message_seconds
        while not receiver.payloads and not receiver.complete:
            receiver.feed(_received(connection, end))
        yield from ((receiver.status, payload) for payload in receiver.payloads)
        receiver.payloads.clear()


def _received(connection: socket.socket, end: float) -> bytes:
    remaining = end - time.monotonic()
    try:
        if remaining <= 0:
            raise TimeoutError
        connection.settimeout(remaining)
        return connection.recv(_AT_ONCE)
    except TimeoutError:
        raise MessageError("232", "The server does not answer in time.") from None
    except ssl.SSLEOFError:
        return b""
    except OSError as error:
        raise MessageError("226", f"The answer cannot be received: {error}") from None


def _response(payload: bytes, findings: Findings, limits: Limits, status: int) -> Response:
    own_findings = Findings(findings.file, limits)
    try:
        response = read_message(payload, policy=Policy.WARN, limits=limits, findings=own_findings).response
    except RejectedError as error:
        if status >= 400:           # of a server of something else, whose words are of another kind
            raise MessageError("240", f"The server answers with HTTP status {status}, and no message.") from None
        raise MessageError("300", f"The answer is no message: {error}") from None
    findings.extend(own_findings)
    return response


def _check_order(before: Response, response: Response) -> None:
    """Raise MessageError where a piece is not the one that follows."""
    follows = before.chunk_num is not None and response.chunk_num == before.chunk_num + 1
    if follows and (response.data is None or response.data != before.data):
        return
    raise MessageError("246", f"The server sends a piece again, or in the wrong order, after piece {before.chunk_num}.")
