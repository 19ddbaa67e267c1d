"""The client: replies that were recorded, or cut, repeated and slow, as answers or as codes."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import Final

import pytest

from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap import Get, MessageError, Object, Request, Response, Where, read_message
from sssjob.sssrmap.calling import Peer, Signing, joined, peer_of, responses
from sssjob.sssrmap.framing import framed_chunk, framed_end, framed_head
from sssjob.sssrmap.signing import Keys, verify
from tests.sssrmap.recordings import GOLD, exchanges
from tests.sssrmap.servers import scripted

EXCHANGES: Final = exchanges()
REQUEST: Final = Request("Query", "amy", (Object("Machine"), Get("Name")), chunking=True)
REPLIES: Final = {case["id"]: case["reply"].encode() for case in json.loads(
    (GOLD / "client-reads-reply.json").read_text())["cases"]}


def asked(*octets: bytes, limits: Limits = LIMITS, findings: Findings | None = None) -> Response:
    """The answer that a server's octets are."""
    with scripted(b"".join(octets)) as server:
        return joined(responses(REQUEST, peer_of(server.url), limits=limits, findings=findings))


def envelope(content: str, attributes: str = "", code: str = "000") -> bytes:
    return (f'<Envelope><Body><Response actor="amy"{attributes}><Status><Value>Success</Value><Code>{code}</Code>'
            f"</Status><Count>1</Count><Data>{content}</Data></Response></Body></Envelope>").encode()


def pieces(*envelopes: bytes, end: bytes = framed_end()) -> bytes:
    return framed_head() + b"".join(map(framed_chunk, envelopes)) + end


def numbered(number: int, last: int, content: str | None = None) -> bytes:
    return envelope(content or f"<M>{number}</M>", f' chunkNum="{number}" chunkMax="{last}"')


@pytest.mark.parametrize("name", ["chunk-01", "chunk-02", "chunk-12", "query-01", "query-22", "refuse-01", "life-01"])
def test_recorded_answers_are_read(name: str) -> None:
    """All pieces, as one answer."""
    case = EXCHANGES[name]
    answer = asked(case["response"].encode())
    assert answer.status.code == case["facts"]["code"]
    whole = [line for line in case["response"].split("<Data>")[1:]]
    assert (answer.data.content if answer.data else "") == "".join(part.partition("</Data>")[0] for part in whole)


def test_what_is_asked_is_signed_and_framed() -> None:
    octets = EXCHANGES["query-01"]["response"].encode()
    for method in ("SHA1", "SHA256"):
        for signing, type_ in ((Signing(b"k", method), "Symmetric"), (Signing(b"k", method, True), "Password")):
            with scripted(octets) as server:
                joined(responses(REQUEST, peer_of(server.url), signing=signing))
            message = read_message(server.requests[0])
            assert message.request == REQUEST
            assert verify(server.requests[0], message, Keys(b"k", {"amy": b"k"}, (method,))) == type_
    assert "key" not in repr(Signing(b"my key"))


READ_AS: Final = {
    **dict.fromkeys(("reply-01", "reply-03", "reply-05", "reply-11", "reply-13", "reply-15", "reply-17", "reply-19",
                     "reply-21", "reply-25", "reply-37", "reply-09", "reply-07"), "amy bob"),
    "reply-23": "321", "reply-27": "710", "reply-29": "740", "reply-35": "243", "reply-31": "", "reply-33": "",
}


@pytest.mark.parametrize("name", REPLIES)
def test_replies_of_other_servers(name: str) -> None:
    """What Gold's client was answered is understood wherever it is understandable."""
    try:
        answer = asked(REPLIES[name])
    except MessageError as error:
        assert error.code == READ_AS[name]
        return
    if answer.status.value == "Failure":
        assert answer.status.code == READ_AS[name]
    elif READ_AS[name]:
        assert answer.data is not None
        assert [name for name in ("amy", "bob") if f"<Name>{name}</Name>" in answer.data.content] == READ_AS[
            name].split()
    else:
        assert answer.data is not None and "<Name>amy</Name>" in answer.data.content


@pytest.mark.parametrize(("octets", "code", "reason"), [
    (pieces(numbered(1, -1), numbered(1, -1)), "246", "a piece again"),
    (pieces(numbered(1, -1, "<M/>"), numbered(2, -1, "<M/>")), "246", "a piece again"),
    (pieces(numbered(1, -1), numbered(3, 0)), "246", "wrong order"),
    (pieces(numbered(1, -1)), "246", "ended after piece 1"),
    (pieces(numbered(1, -1), numbered(2, 0)[:-20], end=b""), "300", "no message"),
    (pieces(numbered(1, -1), end=b"9F\r\n<Envelope>"), "246", "ended before the message did"),
    (framed_head(502) + b"0\r\n", "244", "payload size"),
    (b"HTTP/1.1 503 Busy\r\n\r\n<html/>", "242", "root element is html"),
    (b"SSH-2.0-OpenSSH_9\r\n", "242", "none of HTTP"),
    (b"", "243", "Nothing was sent"),
    (pieces(b"<Envelope><Body><Request action='Query' actor='a'/></Body></Envelope>"), "321", "no Response"),
    (pieces(b"<!DOCTYPE Envelope><Envelope><Body/></Envelope>"), "300", "document type"),
    (pieces(b"<Envelope>" + b"x" * 2_000 + b"</Envelope>"), "244", "limit message_bytes"),
    (pieces(*[numbered(n, -1) for n in range(1, 30)]), "244", "limit chunks"),
])
def test_answers_that_are_none(octets: bytes, code: str, reason: str) -> None:
    with pytest.raises(MessageError, match=reason) as error:
        asked(octets, limits=replace(LIMITS, message_bytes=1_000, chunks=20))
    assert error.value.code == code


def test_pieces_are_given_as_they_come() -> None:
    """Nobody waits for the last one to see the first, and the connection is left after the last."""
    with scripted(pieces(numbered(1, -1), numbered(2, 0)) + b"more") as server:
        answers = responses(REQUEST, peer_of(server.url))
        assert next(answers).last is False and next(answers).last is True
        assert list(answers) == []


def test_what_is_not_understood_is_told() -> None:
    findings = Findings("peer")
    answer = asked(pieces(envelope("<M/>", ' mood="good"')), findings=findings)
    assert answer.status.succeeded and [f.subject for f in findings] == ["mood"]


def test_a_silent_server_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = Peer("127.0.0.1", listener.getsockname()[1])
        with pytest.raises(MessageError, match="in time") as error:
            joined(responses(REQUEST, peer, limits=replace(LIMITS, message_seconds=0.05)))
    assert error.value.code == "232"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(MessageError, match=f"127.0.0.1:{port}: no connection") as error:
        joined(responses(REQUEST, Peer("127.0.0.1", port)))
    assert error.value.code == "222"


@pytest.mark.parametrize(("url", "peer"), [
    ("sssrmap://bank", Peer("bank", 7112, "/SSSRMAP3")),
    ("sssrmaps://bank:1/", Peer("bank", 1, "/SSSRMAP3", True)),
    ("http://[::1]:7112/SSSRMAP", Peer("::1", 7112, "/SSSRMAP")),
    ("https://bank.example/gold", Peer("bank.example", 443, "/gold", True))])
def test_addresses(url: str, peer: Peer) -> None:
    assert peer_of(url) == peer
    assert peer_of(f"http://{peer.shown}").host == peer.host


@pytest.mark.parametrize("url", ["ftp://bank", "bank:7112", "http://", "http://a:b", "http://a:99999", "http://u:p@a",
                                 "http://a/?x", "http://a/#x", "http://a/ b", "http://a/\r\nX: y", "http://[::1",
                                 "http://b\u00fccher"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError):
        peer_of(url)


def test_conditions_are_sent() -> None:
    """A request goes over the wire as it is."""
    request = replace(REQUEST, parts=(*REQUEST.parts, Where("Name", "a&b<\u20ac", "Match")))
    with scripted(EXCHANGES["query-01"]["response"].encode()) as server:
        joined(responses(request, peer_of(server.url)))
    assert read_message(server.requests[0]).request == request
