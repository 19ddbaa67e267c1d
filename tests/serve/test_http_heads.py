"""Heads of requests as they come over the wire: what could be read in two ways, or has no end, is refused, and nothing
that follows on its connection is a request.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import Final

from sssjob.limits import Limits
from tests.serve.conftest import Place, Serving

AUTH: Final = b"Authorization: Bearer Tamy\r\n"
GET: Final = b"GET /v1/jobs HTTP/1.1\r\n"
AFTER: Final = GET + b"Host: a\r\n" + AUTH + b"Connection: close\r\n\r\n"       # sent behind each of them
BODY: Final = b"Query Job Get Id"
HEAD: Final = b"POST /v1/query HTTP/1.1\r\nHost: a\r\n" + AUTH + b"Content-Type: text/plain\r\n"
LENGTH: Final = b"Content-Length: 16\r\n"
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
PIECES: Final = b"10\r\n" + BODY + b"\r\n0\r\n"
MANY: Final = b"".join(b"X%d: y\r\n" % n for n in range(400))
H2C: Final = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"

#: Requests that are answered, and the one behind them too.
TAKEN: Final = {
    "length": HEAD + LENGTH + b"\r\n" + BODY,
    "chunks": HEAD + CHUNKED + b"\r\n" + PIECES + b"\r\n",
    "extension": HEAD + CHUNKED + b"\r\n10;a=b\r\n" + BODY + b"\r\n0\r\n\r\n",
    "trailer": HEAD + CHUNKED + b"\r\n" + PIECES + b"X: y\r\n\r\n",
    "octets": GET + b"Host: a\r\nX: \xff\xfe\r\n" + AUTH + b"\r\n",
    "absolute": b"GET http://a/v1/jobs HTTP/1.1\r\nHost: a\r\n" + AUTH + b"\r\n",
}
#: Requests that are answered, and nothing more is read behind them.
LAST: Final = {
    "version 1.0": GET.replace(b"1.1", b"1.0") + AUTH + b"\r\n",
    "upgrade": GET + b"Host: a\r\n" + AUTH + H2C + b"\r\n",
}
#: What is refused.
REFUSED: Final = {
    "no host": GET + AUTH + b"\r\n", "two hosts": GET + b"Host: a\r\nHost: b\r\n" + AUTH + b"\r\n",
    "two lengths": HEAD + LENGTH + b"Content-Length: 3\r\n\r\n" + BODY,
    "the same length twice": HEAD + LENGTH + LENGTH + b"\r\n" + BODY,
    "list of lengths": HEAD + b"Content-Length: 16, 16\r\n\r\n" + BODY,
    "sign": HEAD + b"Content-Length: +16\r\n\r\n" + BODY, "huge": HEAD + b"Content-Length: 9%040d\r\n\r\n" % 0,
    "chunks and length": HEAD + CHUNKED + LENGTH + b"\r\n0\r\n\r\n",
    "length and chunks": HEAD + LENGTH + CHUNKED + b"\r\n0\r\n\r\n",
    "other coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "coding of another name": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding twice": HEAD + CHUNKED + CHUNKED + b"\r\n" + PIECES + b"\r\n",
    "blank before the colon": HEAD + b"Content-Length : 16\r\n\r\n" + BODY,
    "continued line": GET + b"Host: a\r\nX: a\r\n b\r\n" + AUTH + b"\r\n",
    "line feeds": (GET + b"Host: a\r\n" + AUTH + b"\r\n").replace(b"\r\n", b"\n"),
    "carriage return": GET + b"Host: a\r\nX: a\rY: b\r\n" + AUTH + b"\r\n",
    "NUL": GET + b"Host: a\r\nX: a\0b\r\n" + AUTH + b"\r\n",
    "no size": HEAD + CHUNKED + b"\r\nzz\r\n", "size with 0x": HEAD + CHUNKED + b"\r\n0x10\r\n" + BODY,
    "huge size": HEAD + CHUNKED + b"\r\nffffffffffffffffff\r\n",
    "more than the size": HEAD + CHUNKED + b"\r\n10\r\n" + BODY + b"XX0\r\n\r\n",
    "long header": GET + b"Host: a\r\nX: " + b"x" * 3000 + b"\r\n\r\n", "many headers": GET + MANY + b"\r\n",
    "long target": b"GET /v1/jobs?name=" + b"x" * 3000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "endless header": GET + b"X: " + b"x" * 9000, "endless name": GET + b"x" * 9000,
    "endless extension": HEAD + CHUNKED + b"\r\n10;" + b"a" * 9000,
    "endless trailer": HEAD + CHUNKED + b"\r\n" + PIECES + b"X: " + b"a" * 9000,
    "many trailers": HEAD + CHUNKED + b"\r\n" + PIECES + MANY + b"\r\n",
    "another method": GET.replace(b"GET", b"FROB") + b"Host: a\r\n" + AUTH + b"\r\n",
    "connect": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n" + AUTH + b"\r\n",
    "target of other octets": b"GET /v1/jobs/\xc3 HTTP/1.1\r\nHost: a\r\n" + AUTH + b"\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01", "upgrade with a body": HEAD + LENGTH + H2C + b"\r\n" + BODY,
}


def statuses(place: Place, octets: bytes) -> list[bytes]:
    """Of all answers until the server closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", place.port), 20) as client, suppress(ConnectionError):
        client.sendall(octets + AFTER)
        while piece := client.recv(65536):
            received += piece
    return re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", received)


def test_heads_that_are_taken_or_refused(serving: Serving, small: Limits) -> None:
    expected = {"taken": {name: [b"200", b"200"] for name in TAKEN}, "last": {name: [b"200"] for name in LAST},
                "refused": {name: [b"400"] for name in REFUSED}}
    with serving(limits=small) as place:
        assert {kind: {name: statuses(place, octets) for name, octets in requests.items()} for kind, requests in (
            ("taken", TAKEN), ("last", LAST), ("refused", REFUSED))} == expected


def test_who_asks_stands_in_the_head_and_once(place: Place) -> None:
    """A trailer is no header, and of two tokens neither counts."""
    trailer = HEAD.replace(AUTH, b"") + CHUNKED + b"\r\n" + PIECES + AUTH + b"\r\n"
    twice = GET + b"Host: a\r\n" + AUTH + AUTH.replace(b"amy", b"bob") + b"\r\n"
    assert [statuses(place, octets) for octets in (trailer, twice)] == [[b"401", b"200"]] * 2
