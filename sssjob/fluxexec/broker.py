"""The local connector of a Flux broker, spoken without Flux's libraries.

``$FLUX_URI`` is ``local://PATH``, a Unix stream socket. The broker greets with one byte, 0 or an errno. A message is
the magic number (host order), its length (big-endian), and frames, each behind its own length: routes and an empty
delimiter, topic, payload, and last a header of 20 bytes. Source: RFC 6; flux-core 0.88, as tried against a real broker.
"""

from __future__ import annotations

import errno
import json
import os
import struct
from collections.abc import Iterator
from itertools import islice

from sssjob.errors import UsageError
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Event, Message, Request, Response, loads
from sssjob.fluxexec.transport import FdChannel, connect
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, ProtocolError

__all__ = ["BrokerChannel", "connect_broker", "decode", "encode"]

_OUTER = struct.Struct("=I"), struct.Struct(">I")
_MAGIC = 0xFFEE0012
_HEADER = struct.Struct(">BBBBIIII")            # magic, version, type, flags, userid, rolemask, aux1, aux2
_REQUEST, _RESPONSE, _EVENT = 1, 2, 4
_TOPIC, _PAYLOAD, _ROUTE = 1, 2, 8
_ANY = 0xFFFFFFFF                               # node id, user id


def encode(message: Message) -> bytes:
    """A message with its magic number and length."""
    frames = []
    match message:
        case Request():
            kind, aux1, aux2, flags = _REQUEST, _ANY, message.tag, _TOPIC | _ROUTE
        case Response():
            kind, aux1, aux2, flags = _RESPONSE, message.errnum, message.tag, _TOPIC | _ROUTE
        case Event():
            kind, aux1, aux2, flags = _EVENT, 0, 0, _TOPIC
    if flags & _ROUTE:
        frames += [*getattr(message, "routes", ()), b""]
    frames.append(message.topic.encode())
    payload = _payload(message)
    if payload:
        frames.append(payload)
        flags |= _PAYLOAD
    frames.append(_HEADER.pack(0x8E, 1, kind, flags, _ANY, 0, aux1, aux2))
    body = b"".join(_length(len(frame)) + frame for frame in frames)
    return _OUTER[0].pack(_MAGIC) + _OUTER[1].pack(len(body)) + body


def _payload(message: Message) -> bytes:
    """JSON or the text of an error, with a NUL behind it; nothing when there is none."""
    if isinstance(message, Response) and message.errnum:
        return (message.text or "").encode() + b"\0" if message.text else b""
    return b"" if message.payload is None else json.dumps(message.payload, separators=(",", ":")).encode() + b"\0"


def _length(size: int) -> bytes:
    return bytes((size,)) if size < 0xFF else b"\xff" + _OUTER[1].pack(size)


def decode(body: bytes, limits: ExecLimits = EXEC_LIMITS) -> Message | None:
    """The message in the frames behind magic number and length; None for kinds that do not matter here.

    Raises ProtocolError, ExecLimitError (frames).
    """
    frames = list(islice(_frames(body), limits.frames + 1))
    if len(frames) > limits.frames:
        raise ExecLimitError(f"a message of more than {limits.frames} frames", "frames")
    if not frames or len(frames[-1]) != _HEADER.size:
        raise ProtocolError("a message without header")
    magic, version, kind, flags, _, _, aux1, aux2 = _HEADER.unpack(frames.pop())
    if (magic, version) != (0x8E, 1):
        raise ProtocolError(f"a message of another version ({magic:#x}, {version})")
    rest = iter(frames)
    routes = tuple(iter(lambda: next(rest, b""), b"")) if flags & _ROUTE else ()
    topic, payload = next(rest, b"") if flags & _TOPIC else b"", next(rest, b"") if flags & _PAYLOAD else b""
    try:
        name = topic.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a topic that is no text") from None
    payload = payload.removesuffix(b"\0")
    if kind == _RESPONSE and aux1:
        return Response(name, None, aux2, aux1, payload.decode(errors="replace") or None, routes)
    data = loads(payload) if payload else None
    if kind == _REQUEST:
        return Request(name, data, aux2, routes)
    if kind == _RESPONSE:
        return Response(name, data, aux2, 0, None, routes)
    return Event(name, data) if kind == _EVENT else None


def _frames(body: bytes) -> Iterator[bytes]:
    position, end = 0, len(body)
    while position < end:
        size, position = body[position], position + 1
        if size == 0xFF and position + 4 <= end:
            size, position = _OUTER[1].unpack_from(body, position)[0], position + 4
        if position + size > end:
            raise ProtocolError("a frame that is longer than its message")
        yield body[position:position + size]
        position += size


class BrokerChannel(FdChannel):
    """A connection to a broker; it owns the descriptor."""

    def __init__(self, loop: Loop, fd: int, *, limits: ExecLimits = EXEC_LIMITS) -> None:
        self._bytes = bytearray()
        self._welcome = False
        super().__init__(loop, fd, limits=limits)

    def encode(self, message: Message) -> bytes:
        """Magic number, length, frames."""
        return encode(message)

    def decode(self, data: bytes) -> None:
        """Take whole messages, keep the rest."""
        self._bytes += data
        if not self._welcome:
            code = self._bytes.pop(0)
            if code:
                raise ProtocolError(f"the broker refuses: {errno.errorcode.get(code, code)}")
            self._welcome = True
        while self._open and len(self._bytes) >= 8:
            if _OUTER[0].unpack_from(self._bytes)[0] != _MAGIC:
                raise ProtocolError("this is no Flux message")
            size = _OUTER[1].unpack_from(self._bytes, 4)[0]
            if size > self.limits.line_bytes:
                raise ExecLimitError(f"a message of {size} bytes", "line_bytes")
            if len(self._bytes) < 8 + size:
                return
            body = bytes(self._bytes[8:8 + size])
            del self._bytes[:8 + size]
            message = decode(body, self.limits)
            if message is not None:
                self.receive(message)

    def torn(self) -> bool:
        """Whether a message has begun."""
        return bool(self._bytes)


def connect_broker(loop: Loop, uri: str | None = None, *, limits: ExecLimits = EXEC_LIMITS) -> BrokerChannel:
    """A connection to the broker at a URI, else at ``$FLUX_URI``. Raises UsageError, AccessError."""
    if uri is None and not os.environ.get("FLUX_URI"):
        raise UsageError("FLUX_URI is not set: this is no Flux instance")
    uri = os.environ["FLUX_URI"] if uri is None else uri
    scheme, _, path = uri.partition("://")
    if scheme != "local" or not path:
        raise UsageError(f"{uri!r} is no address of a broker on this machine (local://PATH)")
    return BrokerChannel(loop, connect(path), limits=limits)
