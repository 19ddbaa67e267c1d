"""SSSRMAP over HTTP: requests and replies as octets, without any input or output.

The chunks of SSSRMAP are older than RFC 9112 and not its chunks: peers leave out the line end after the payload, or
the last blank line, or send a NUL octet behind it. ``Receiver`` takes every form that was recorded from Gold, Maui,
Slurm and the C library, and those of RFC 9112. It takes one message of a connection, and refuses whatever two readers
could understand in two ways: both kinds of length, repeated headers, continued lines, control characters.
Source: SSSRMAP wire protocol 3.0.4, "Message header requirements" and "Chunk requirements"; recordings of Gold 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from http import HTTPStatus
from typing import Final, Literal

from sssjob.findings import escape
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap.model import MessageError

__all__ = ["PATH", "FrameError", "Receiver", "framed_chunk", "framed_end", "framed_head", "framed_request"]

#: The path that clients send messages to.
PATH: Final = "/SSSRMAP3"
_PATHS: Final = ("/SSSRMAP", "/gold")
_HEADERS: Final = b'Content-Type: text/xml; charset="utf-8"\r\nTransfer-Encoding: chunked\r\n'

_FIELD: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_REQUEST_LINE: Final = re.compile(r"([!-~]+) ([!-~]+)(?: HTTP/1\.[01])?")
_STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_SIZE: Final = re.compile(rb"0*([0-9A-Fa-f]{1,12})[ \t]*(?:;[\t\x20-\x7e]*)?")
_LENGTH: Final = re.compile("[0-9]{1,12}")
#: The types of XML that are taken; the charset, if one is said, is UTF-8 or part of it.
_TYPE: Final = re.compile(r'text/xml\s*(?:;\s*charset\s*=\s*("?)(?:utf-8|us-ascii)\1\s*)?;?', re.IGNORECASE)
#: Headers that say where the message ends or what it is: none may stand there twice.
_SINGLE: Final = ("content-type", "content-length", "transfer-encoding", "host")
_LINE: Final = 4096         # octets of a line that announces a chunk

_Parsing = Generator[None, None, None]


class FrameError(MessageError):
    """Octets that are no message. http: the status of the HTTP reply."""

    def __init__(self, code: str, message: str, http: int = 400) -> None:
        self.http = http
        super().__init__(code, message)
        self.args = (code, message, http)   # what pickling calls the class with


def _malformed(message: str, http: int = 400) -> FrameError:
    return FrameError("242", message, http)


class Receiver:
    """Takes the octets of one message, as they come, and finds the payloads in them.

    kind: a request has one payload, in however many chunks it comes; a reply has one for each piece of the answer.
    gold: only the forms of requests that Gold takes. status: of the reply that is received. complete: all is there.
    """

    def __init__(self, kind: Literal["request", "reply"], *, gold: bool = False, limits: Limits = LIMITS) -> None:
        self.payloads: list[bytes] = []
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.complete = False
        self._kind, self._gold, self._limits = kind, gold, limits
        self._buffer = bytearray()
        self._ended = False
        self._taken = 0
        self._begun = bytearray()           # a payload of which more is to come
        self._parsing = self._message()
        self._go_on()

    def feed(self, data: bytes) -> None:
        """More octets; none: the peer sends no more. Raises FrameError; what follows the message is not looked at."""
        if self.complete:
            return
        self._buffer += data
        self._ended = not data
        self._go_on()

    def _go_on(self) -> None:
        try:
            next(self._parsing)
        except StopIteration:
            self.complete = True

    # -- octets
    def _line(self, most: int) -> Generator[None, None, bytes]:
        """A line, without its end: CR LF, or a bare LF, as some old clients send."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > most:
                break
            yield from self._more()
        if end < 0 or end > most:
            raise FrameError("242", f"A line of the head is longer than the limit head_bytes ({most}).", 431)
        line = bytes(self._buffer[:end])
        del self._buffer[:end + 1]
        return line.removesuffix(b"\r")

    def _more(self) -> _Parsing:
        if self._ended:
            raise FrameError("246", "The connection ended before the message did.")
        yield

    def _peek(self) -> Generator[None, None, bytes]:
        """The next octet; nothing where the peer sends no more."""
        while not self._buffer and not self._ended:
            yield
        return bytes(self._buffer[:1])

    def _exactly(self, size: int) -> Generator[None, None, bytes]:
        self._taken += size
        if self._taken > self._limits.message_bytes:
            raise FrameError("244", f"The message is longer than the limit message_bytes "
                                    f"({self._limits.message_bytes}).", 413)
        while len(self._buffer) < size:
            yield from self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    # -- the message
    def _message(self) -> _Parsing:
        if not (yield from self._peek()):
            raise FrameError("243", "Nothing was sent.")
        most = self._limits.head_bytes
        line = yield from self._line(most)
        if self._kind == "request":
            self._check_request_line(_text(line))
        else:
            self.status = _status(_text(line))
        octets_left = most - len(line)
        lines: list[str] = []
        while line := (yield from self._line(octets_left)):
            octets_left -= len(line) + 2
            lines.append(_text(line))
        self.headers = _headers(lines, loose=not self._gold)
        length, coding = self.headers.get("content-length"), self.headers.get("transfer-encoding")
        self._check_headers(length, coding)
        if coding is not None:
            yield from self._chunks()
        elif length is not None:
            self.payloads.append((yield from self._exactly(int(length))))
        else:
            yield from self._until_end()

    def _check_request_line(self, line: str) -> None:
        matched = _REQUEST_LINE.fullmatch(line)
        method = matched[1] if matched else line.partition(" ")[0]
        if matched is None or method != "POST":
            raise _malformed(f"Invalid Method: {escape(method, 40)} (should be POST).", 405)
        if not any(path in matched[2] for path in _PATHS):
            raise _malformed(f"Invalid URI: {escape(matched[2], 200)}.", 404)

    def _check_headers(self, length: str | None, coding: str | None) -> None:
        type_ = self.headers.get("content-type")
        if (self._kind == "request" or type_ is not None) and not _TYPE.fullmatch(type_ or ""):
            raise _malformed(f"Invalid Content-Type: {escape(type_ or 'UNDEFINED', 80)}.", 412)
        if length is not None and coding is not None:
            raise _malformed("Content-Length and Transfer-Encoding exclude each other.")
        if length is not None and not _LENGTH.fullmatch(length):
            raise _malformed(f"Invalid Content-Length: {escape(length, 40)}.")
        chunked = "" if coding is None else coding.removesuffix(";").rstrip()
        if chunked == "chunked" or (not self._gold and chunked.lower() == "chunked"):
            return
        if coding is not None or (self._kind == "request" and (self._gold or length is None)):
            shown = escape(coding or "UNDEFINED", 80)
            raise _malformed(f"Invalid Transfer-Encoding: {shown} (should be chunked).", 412)

    def _until_end(self) -> _Parsing:
        while not self._ended:
            if len(self._buffer) > self._limits.message_bytes:
                yield from self._exactly(len(self._buffer))     # raises the error of too long a message
            yield
        self.payloads.append(bytes(self._buffer))

    def _chunks(self) -> _Parsing:
        """The chunks, until the one of size 0; a NUL behind a payload ends a message too, and so does its sender."""
        for _ in range(self._limits.chunks):
            if (self._begun or self.payloads) and (yield from self._over()):
                break
            size = _size((yield from self._line(_LINE)))
            if size == 0:
                break
            self._put((yield from self._exactly(size)))
            if (yield from self._peek()) == b"\r":
                if (yield from self._pair()) != b"\r\n":
                    raise FrameError("244", "The payload is longer than its announced size.")
            elif self._buffer[:1] == b"\n":
                del self._buffer[:1]
        else:
            raise FrameError("244", f"The message has more chunks than the limit chunks ({self._limits.chunks}).", 413)
        if self._begun:
            self.payloads.append(bytes(self._begun))
        if not self.payloads:
            raise FrameError("244", "Invalid payload size (0)", 200)

    def _over(self) -> Generator[None, None, bool]:
        """Whether the message ends here, without a chunk of size 0: Maui's requests end with a NUL."""
        if (yield from self._peek()) == b"\0" and self._kind == "reply":
            del self._buffer[:1]
        return (yield from self._peek()) in (b"", b"\0")

    def _pair(self) -> Generator[None, None, bytes]:
        while len(self._buffer) < 2:
            yield from self._more()
        pair = bytes(self._buffer[:2])
        del self._buffer[:2]
        return pair

    def _put(self, chunk: bytes) -> None:
        """Join a chunk to the payload; in a reply a payload ends where its Envelope does."""
        self._begun += chunk
        if self._kind == "reply" and self._begun[-16:].rstrip(b"\r\n\t \0").endswith(b"Envelope>"):
            self.payloads.append(bytes(self._begun))
            self._begun.clear()
            self._taken = 0


def _text(line: bytes) -> str:
    return line.decode("latin-1")


def _status(line: str) -> int:
    matched = _STATUS_LINE.fullmatch(line)
    if matched is None:
        raise _malformed(f"The reply is none of HTTP: it begins with {escape(line, 40)!r}.")
    return int(matched[1])


def _headers(lines: list[str], *, loose: bool) -> dict[str, str]:
    """The headers by their names in small letters. loose: a value needs no blank before it."""
    headers: dict[str, str] = {}
    for line in lines:
        matched = _FIELD.fullmatch(line)
        if matched is None:
            raise _malformed(f"Invalid header: {escape(line, 80)}.")
        name = matched[1].lower()
        if name in _SINGLE and name in headers:
            raise _malformed(f"The header {matched[1]} stands there twice.")
        value = matched[2]
        if not loose and value[:1] != " ":
            value = value.partition(" ")[2]     # what Gold reads there
        headers[name] = value.strip(" \t")
    return headers


def _size(line: bytes) -> int:
    matched = _SIZE.fullmatch(line)
    if matched is None:
        raise FrameError("244", f"Invalid payload size ({escape(_text(line), 40)})", 200)
    return int(matched[1], 16)


def framed_request(payload: bytes, host: str, path: str = PATH) -> bytes:
    """A message as a client sends it: one chunk in the form of RFC 9112, which Gold takes too. host: with its port."""
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\n".encode("ascii") + _HEADERS + b"Connection: close\r\n\r\n"
    return head + framed_chunk(payload, stock=True) + framed_end(stock=True)


def framed_head(status: int = 200, *, stock: bool = False) -> bytes:
    """The head of a reply. stock: for a client of HTTP as it is today; else exactly the octets that old clients count.

    Who sends a Host header is of today: none of the old clients does.
    """
    phrase = HTTPStatus(status).phrase
    return (f"HTTP/1.1 {status} {phrase}\r\n".encode("ascii") + _HEADERS
            + (b"Connection: close\r\n" if stock else b"") + b"\r\n")


def framed_chunk(payload: bytes, *, stock: bool = False) -> bytes:
    """A piece of a reply."""
    return b"%X\r\n%b%b" % (len(payload), payload, b"\r\n" if stock else b"")


def framed_end(*, stock: bool = False) -> bytes:
    """What follows the last piece."""
    return b"0\r\n\r\n" if stock else b"0\r\n"
