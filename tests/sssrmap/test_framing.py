"""Framing: what was recorded is understood octet by octet and in any pieces; what two readers could understand in two
ways is refused."""

from __future__ import annotations

import json
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap.framing import FrameError, Receiver, framed_chunk, framed_end, framed_head, framed_request
from tests.spec.support import spec
from tests.sssrmap.recordings import GOLD, MAUI, exchanges

RECORDED: Final = exchanges()
HEAD: Final = 'POST /SSSRMAP3 HTTP/1.1\r\nContent-Type: text/xml; charset="utf-8"\r\n'
CHUNKED: Final = HEAD + "Transfer-Encoding: chunked\r\n\r\n"


def received(octets: bytes, kind: Literal["request", "reply"] = "request", *, gold: bool = False, ended: bool = True,
             step: int = 1 << 20, limits: Limits = LIMITS) -> Receiver:
    """What is understood of octets that come in pieces of a size. ended: the peer sends no more."""
    receiver = Receiver(kind, gold=gold, limits=limits)
    for at in range(0, len(octets), step):
        receiver.feed(octets[at:at + step])
    if ended and not receiver.complete:
        receiver.feed(b"")
    return receiver


def octets_of(text: str) -> bytes:
    """The octets of a recording, which is in UTF-8 but for a hello of TLS."""
    return text.encode("utf-8")


def outcome(octets: bytes, *, gold: bool = False, ended: bool = True) -> tuple[int, str | None]:
    """HTTP status and code of the refusal; (200, None): a payload was found; (0, None): more is waited for."""
    try:
        receiver = received(octets, gold=gold, ended=ended)
    except FrameError as error:
        return error.http, error.code
    return (200, None) if receiver.complete else (0, None)


@pytest.mark.parametrize("name", [name for name, case in RECORDED.items() if case.get("topic") != "frame"])
@spec("SSSRMAP Wire", 1)
def test_recorded_requests_hold_one_payload(name: str) -> None:
    """However the octets are cut, and whether or not the client closes its side."""
    octets = octets_of(RECORDED[name]["request"])
    if not octets:
        return
    whole = received(octets, gold=True, ended=False)
    assert whole.complete and len(whole.payloads) == 1
    assert whole.payloads[0].rstrip().endswith(b">") or name in ("envelope-19", "envelope-20")
    assert received(octets, gold=True, ended=False, step=7).payloads == whole.payloads


FRAMES: Final = {
    name: case for name, case in RECORDED.items() if case.get("topic") == "frame"}


@pytest.mark.parametrize("name", FRAMES)
@spec("SSSRMAP Wire", 3)
def test_recorded_frames_are_answered_as_gold_does(name: str) -> None:
    """The status of HTTP and the code of what Gold refuses; what it takes is taken."""
    case = FRAMES[name]
    facts = case["facts"]
    http, code = outcome(octets_of(case["request"]), gold=True, ended=not facts.get("timed_out"))
    if name == "frame-33":
        assert (http, code) == (200, None), "a message in two chunks is one of RFC 9112; Gold hangs up"
    elif name == "frame-30":
        assert (http, code) == (200, "244"), "a payload that is longer than announced is told; Gold hangs up"
    elif facts.get("timed_out"):
        assert (http, code) == (0, None)
    elif not facts["answered"]:
        assert code in ("243", "246")
    else:
        assert http == int(facts["http"].split()[1])
        assert code == (None if facts["code"] == "000" else facts["code"])


@pytest.mark.parametrize("number", range(3))
@spec("SSSRMAP Wire", 1)
def test_requests_of_maui_end_with_a_nul(number: int) -> None:
    """``chunked;`` with a stray semicolon, and no chunk of size 0."""
    text = json.loads((MAUI / "requests.json").read_text())["requests"][number]
    receiver = received(octets_of(text) + b"\r\n\0", gold=True, ended=False)
    assert receiver.complete and receiver.payloads[0].endswith(b"</Envelope>")


@pytest.mark.parametrize(("more", "http", "code"), [
    ("Transfer-Encoding: chunked\r\nContent-Length: 9\r\n", 400, "242"),
    ("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", 400, "242"),
    ("Content-Length: 9\r\nContent-Length: 9\r\n", 400, "242"),
    ("Content-Length: 9, 9\r\n", 400, "242"),
    ("Content-Length: +9\r\n", 400, "242"),
    ("Content-Length: 0x9\r\n", 400, "242"),
    ("Content-Length: -1\r\n", 400, "242"),
    ("Content-Length: \u0663\r\n", 400, "242"),
    ("Content-Length: 9999999999999\r\n", 400, "242"),
    ("Content-Length: 999999999999\r\n", 413, "244"),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400, "242"),
    ("Transfer-Encoding: gzip, chunked\r\n", 412, "242"),
    ("Transfer-Encoding: xchunked\r\n", 412, "242"),
    ("Transfer-Encoding:\x0bchunked\r\n", 400, "242"),
    ("Transfer-Encoding : chunked\r\n", 400, "242"),
    ("Transfer-Encoding:\r\n chunked\r\n", 400, "242"),
    ("Transfer-Encoding\r\n", 400, "242"),
    (": chunked\r\n", 400, "242"),
    ("Transfer-Encoding: chunked\rX: y\r\n", 400, "242"),
    ("Transfer-Encoding: chunked\0\r\n", 400, "242"),
    ("Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", 400, "242"),
    ("Host: a\r\nHost: b\r\nTransfer-Encoding: chunked\r\n", 400, "242"),
    (f"X: {'y' * 17_000}\r\n", 431, "242"),
    ("X: y\r\n" * 4_000, 431, "242"),
])
@spec("SSSRMAP Wire", 4)
def test_smuggled_framing_is_refused(more: str, http: int, code: str) -> None:
    """What a proxy in front and this server could take for different messages."""
    octets = f"{HEAD}{more}\r\n4\r\n<a/>\r\n0\r\n\r\n".encode()
    for gold in (False, True):
        refused = outcome(octets, gold=gold)
        assert refused == (http, code) or (gold and refused[0] in (400, 412) and refused[1] == "242")


@pytest.mark.parametrize(("first", "http"), [
    ("GET /SSSRMAP3 HTTP/1.1", 405), ("POST  /SSSRMAP3 HTTP/1.1", 405), ("POST /SSSRMAP3 HTTP/1.1 ", 405),
    ("POST /SSSRMAP3 HTTP/2.0", 405), ("POST /SSSRMAP3\tHTTP/1.1", 405), (" POST /SSSRMAP3 HTTP/1.1", 405),
    ("POST /other HTTP/1.1", 404), ("POST /SSSRMAP3\0 HTTP/1.1", 405), ("", 405)])
def test_first_lines_that_are_refused(first: str, http: int) -> None:
    octets = CHUNKED.replace("POST /SSSRMAP3 HTTP/1.1", first).encode() + b"4\r\n<a/>\r\n0\r\n\r\n"
    assert outcome(octets) == (http, "242")


@pytest.mark.parametrize(("body", "code"), [
    (b"4 \r\n<a/>0\r\n", None), (b"4;x=y\r\n<a/>0\r\n", None), (b"04\r\n<a/>0\r\n", None),
    (b"0x4\r\n<a/>0\r\n", "244"), (b"+4\r\n<a/>0\r\n", "244"), (b"-4\r\n<a/>0\r\n", "244"),
    (b"\r\n4\r\n<a/>0\r\n", "244"), (b"4_0\r\n<a/>0\r\n", "244"), (b"4;\x00\r\n<a/>0\r\n", "244"),
    (b"FFFFFFFFFFFFF\r\n<a/>0\r\n", "244"), (b"FFFFFFFFFFFF\r\n<a/>0\r\n", "244"), (b"0" * 5000 + b"4\r\n", "242"),
    (b"4\r\n<a/>\rx0\r\n", "244"), (b"3\r\n<a/>0\r\n", "244"), (b"5\r\n<a/>", "246"), (b"4\r\n<a/>", None),
    (b"0\r\n", "244"), (b"", "246")])
def test_chunks_are_as_long_as_they_say(body: bytes, code: str | None) -> None:
    assert outcome(CHUNKED.encode() + body)[1] == code


def test_small_chunks_are_limited_and_so_is_their_sum() -> None:
    """A peer cannot make us work for each octet, nor keep them all."""
    limits = Limits(chunks=5, message_bytes=20)
    four = CHUNKED.encode() + b"1\r\nx\r\n" * 4
    assert received(four + b"0\r\n", limits=limits).payloads == [b"xxxx"]
    for body in (b"1\r\nx\r\n" * 2, b"11\r\n"):
        with pytest.raises(FrameError, match=r"limit (chunks|message_bytes)"):
            received(four + body, limits=limits, ended=False)


@given(pieces=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4), stock=st.booleans(),
       step=st.integers(1, 50))
def test_what_is_framed_is_received(pieces: list[bytes], stock: bool, step: int) -> None:
    """Requests and replies, in any pieces of octets; without a closing connection."""
    request = received(framed_request(b"".join(pieces), "host:1"), step=step, ended=False, gold=True)
    assert request.payloads == [b"".join(pieces)] and request.headers["host"] == "host:1"
    envelopes = [b"<Envelope>%b</Envelope>\n" % piece.hex().encode() for piece in pieces]
    reply = received(framed_head(stock=stock) + b"".join(framed_chunk(e, stock=stock) for e in envelopes)
                     + framed_end(stock=stock), "reply", step=step, ended=False)
    assert reply.complete and reply.payloads == envelopes and reply.status == 200


@spec("SSSRMAP Wire", 2)
def test_the_head_for_old_clients_is_counted_by_them() -> None:
    """Slurm's client reads 87 octets, and skips a white space."""
    assert len(framed_head()) == 88 and framed_end() == b"0\r\n"


@pytest.mark.parametrize("name", [name for name, case in RECORDED.items() if case["response"]])
def test_recorded_replies_hold_their_envelopes(name: str) -> None:
    case = RECORDED[name]
    endless = "facts" in case and case["facts"].get("endless", False)     # it was cut off when it was recorded
    receiver = received(octets_of(case["response"]), "reply", ended=not endless)
    if "facts" in case and not endless:
        assert len(receiver.payloads) == case["facts"]["envelopes"]
    assert receiver.payloads[0].startswith(b"<?xml")


REPLIES: Final = {case["id"]: case["reply"] for case in json.loads((GOLD / "client-reads-reply.json").read_text())[
    "cases"]}


@pytest.mark.parametrize("name", REPLIES)
def test_replies_of_other_servers(name: str) -> None:
    """All that Gold's client was answered: with Content-Length, another status, no terminator too."""
    octets = octets_of(REPLIES[name])
    if not octets:
        with pytest.raises(FrameError, match="Nothing was sent"):
            received(octets, "reply")
        return
    receiver = received(octets, "reply", step=5)
    assert receiver.status == (201 if name == "reply-09" else 200)
    assert len(receiver.payloads) == (2 if name in ("reply-31", "reply-33") else 1)


@pytest.mark.parametrize("octets", [
    b"<html>", b"HTTP/1.1 99 X\r\n\r\n", b"HTTP/2 200\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", b"\xff" * 20_000])
def test_what_is_no_reply(octets: bytes) -> None:
    with pytest.raises(FrameError):
        received(octets, "reply")


@given(octets=st.binary(max_size=200), kind=st.sampled_from(["request", "reply"]), gold=st.booleans())
def test_any_octets_are_refused_or_understood(octets: bytes, kind: Literal["request", "reply"], gold: bool) -> None:
    for prefix in (b"", CHUNKED.encode(), framed_head()):
        try:
            received(prefix + octets, kind, gold=gold)
        except FrameError as error:
            assert str(error)
