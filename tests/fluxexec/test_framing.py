"""The bytes between a broker and a service: cut anywhere, damaged anywhere, late, never, or far too many."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.fluxexec.broker import BrokerChannel, decode, encode
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Event, Message, Request, Response
from sssjob.fluxexec.service import Service, State
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.lrm.flux.errors import ExecLimitError, ExecLimits, ProtocolError
from tests.cases import Cases

MESSAGES: tuple[Message, ...] = (
    Request("job-exec.start", {"id": 1, "jobspec": {"x": "y" * 300}}, 0, (b"r1", b"r2" * 200)),
    Response("service.add", None, 1), Response("job-manager.exec-hello", None, 3, 22, "no"),
    Event("job-exception", {"id": 1, "severity": 0}))
STREAM = b"\0" + b"".join(map(encode, MESSAGES))
#: Where a message ends, and the stream may.
ENDS = {0, *(1 + sum(len(encode(m)) for m in MESSAGES[:n]) for n in range(len(MESSAGES) + 1))}
EVENT = encode(Event("e", {}))


class Ear:
    """A channel of ours, and the broker's end of its socket."""

    def __init__(self, limits: ExecLimits | None = None, kind: type[BrokerChannel] = BrokerChannel) -> None:
        self.loop = Loop()
        ours, self.peer = socket.socketpair()
        self.channel = kind(self.loop, ours.detach(), limits=limits or ExecLimits())
        self.got: list[Message] = []
        self.why: list[str] = []
        self.channel.receive, self.channel.closed = self.got.append, self.why.append

    def hear(self, data: bytes) -> None:
        self.peer.sendall(data)
        while self.channel._open and self.loop._selector.select(0):
            self.loop._step(0)

    def over(self) -> list[str]:
        """What is told when the peer is gone."""
        self.peer.close()
        self.loop.run(lambda: bool(self.why), 60)
        self.channel.close()
        self.loop.close()
        return self.why


def test_byte_by_byte() -> None:
    ear = Ear()
    for at in range(len(STREAM)):
        ear.hear(STREAM[at:at + 1])
    assert tuple(ear.got) == MESSAGES and ear.over() == [""]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8, unique=True))
def test_in_any_pieces(cuts: list[int]) -> None:
    ear = Ear()
    for start, end in pairwise([0, *sorted(cuts), len(STREAM)]):
        ear.hear(STREAM[start:end])
    assert tuple(ear.got) == MESSAGES and ear.over() == [""]


def test_a_peer_that_dies_anywhere() -> None:
    """Once, and as what it is; nothing of half a message is taken."""
    with Cases() as case:
        for size in (*range(0, len(STREAM), 7), *sorted(ENDS)):
            with case(size):
                ear = Ear()
                ear.hear(STREAM[:size])
                assert ear.over() == ["" if size in ENDS else "the connection ended inside a message"]
                assert tuple(ear.got) == MESSAGES[:len(ear.got)]


@given(st.integers(0, len(STREAM) - 1), st.binary(min_size=1, max_size=6))
def test_damage_anywhere(at: int, damage: bytes) -> None:
    """Messages, or the end of the connection with a reason: no exception, and no wait for what was announced."""
    ear = Ear(ExecLimits(line_bytes=4096))
    ear.hear(STREAM[:at] + damage + STREAM[at + len(damage):])
    why = ear.over()
    assert len(why) == 1 and "Traceback" not in why[0] and len(why[0]) < 400


@pytest.mark.parametrize(("data", "why"), [
    (b"\0" + b"\xff" * 40, "this is no Flux message"),
    (b"\0" + EVENT[:4] + struct.pack(">I", 0xFFFFFFFF), "a message of 4294967295 bytes (limit line_bytes)"),
    (b"\0" + EVENT[:4] + struct.pack(">I", 0), "a message without header"),
    (b"\0" + EVENT[:4] + struct.pack(">I", 5) + b"\xff\xff\xff\xff\xff", "a frame that is longer than its message"),
    # A whole message and the length of a frame that is not there was taken for a message.
    (b"\0" + EVENT[:4] + struct.pack(">I", len(EVENT) - 7) + EVENT[8:] + b"\x05",
     "a frame that is longer than its message"),
    (b"\0" + EVENT[:4] + struct.pack(">I", 3) + b"\xff\0\0", "a frame that is longer than its message"),
    (b"\0" + EVENT[:4] + struct.pack(">I", 2000) + bytes(2000), "a message of more than 1024 frames (limit frames)"),
    (b"\x0d", "the broker refuses: EACCES"), (b"\xfe", "the broker refuses: 254"),
    (b"{\"m\":\"req\"}\n", "the broker refuses: ENOMEDIUM")])
def test_what_is_no_message(data: bytes, why: str) -> None:
    ear = Ear()
    ear.hear(data)
    assert ear.over() == [why] and ear.got == []


def test_a_giant_costs_what_it_sends() -> None:
    """16 MiB of empty frames are counted, not kept; 4 MiB in small pieces are put together once."""
    begin = time.process_time()
    with pytest.raises(ExecLimitError, match="limit frames"):
        decode(bytes(16 << 20))
    ear = Ear()
    text = "x" * (4 << 20)
    data = b"\0" + encode(Event("e", {"x": text}))
    for at in range(0, len(data), 1024):
        ear.hear(data[at:at + 1024])
    assert ear.got == [Event("e", {"x": text})] and ear.over() == [""]
    assert time.process_time() - begin < 30


@given(st.binary(max_size=300))
def test_frames_are_a_message_or_none(body: bytes) -> None:
    try:
        decode(body)
    except ProtocolError as error:
        assert str(error)


# Peers that do not read, and peers that say nothing

def test_a_broker_that_does_not_read() -> None:
    ear = Ear(ExecLimits(pending_bytes=1 << 20))
    ear.hear(b"\0")
    for _ in range(200):
        ear.channel.send(Event("e", {"x": "y" * 10_000}))
        ear.loop._step(0)
    assert ear.over() == ["the other side does not read (limit pending_bytes)"]


def test_a_broker_that_reads_late_gets_all_of_it() -> None:
    """The socket is full (EAGAIN) again and again; nothing is lost, and nothing twice."""
    ear, got = Ear(), bytearray()
    ear.hear(b"\0")
    ear.peer.setblocking(False)
    sent = [Event("e", {"n": n, "x": "y" * 5_000}) for n in range(300)]
    for message in sent:
        ear.channel.send(message)
    whole, end = b"".join(map(encode, sent)), time.monotonic() + 20
    while len(got) < len(whole):
        assert time.monotonic() < end
        ear.loop._step(0)
        try:
            got += ear.peer.recv(777)
        except BlockingIOError:
            continue
    assert bytes(got) == whole and ear.over() == [""]


@pytest.fixture
def silent() -> Iterator[tuple[Ear, Service]]:
    ear = Ear(kind=BrokerChannel)
    service = Service(ear.loop, ear.channel, SimulatedRunner(ear.loop), name="x", broker=True,
                      limits=ExecLimits(hello_seconds=0.05))
    yield ear, service
    ear.channel.close()
    ear.peer.close()
    ear.loop.close()


@pytest.mark.parametrize(("answers", "topic"), [
    (0, "service.add"), (1, "event.subscribe"), (2, "job-manager.exec-hello")])
def test_a_broker_that_does_not_answer(silent: tuple[Ear, Service], answers: int, topic: str) -> None:
    """It listens, it may even welcome us: a service that waits for ever looks like one that works."""
    ear, service = silent
    service.begin()
    if answers:
        ear.hear(b"\0" + b"".join(encode(Response(t, None, n + 1)) for n, t in enumerate(
            ("service.add", "event.subscribe")[:answers])))
    assert ear.loop.run(lambda: service.state is State.DEAD, 10)
    assert service.why == f"{topic}: no answer within 0.05 s (limit hello_seconds)" and not service.refused


def test_one_that_answers_in_time_is_not_given_up(silent: tuple[Ear, Service]) -> None:
    ear, service = silent
    service.begin()
    topics: tuple[Any, ...] = ("service.add", "event.subscribe", "job-manager.exec-hello")
    ear.hear(b"\0" + b"".join(encode(Response(t, None, n + 1)) for n, t in enumerate(topics)))
    assert service.state is State.REGISTERED
    assert not ear.loop.run(lambda: service.state is State.DEAD, 0.2)
