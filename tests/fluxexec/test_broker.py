"""The local connector against a stand-in broker whose bytes are made by hand from the description of the wire form."""

from __future__ import annotations

import json
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.errors import AccessError, UsageError
from sssjob.fluxexec.broker import BrokerChannel, connect_broker, decode, encode
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Request, Response
from sssjob.fluxexec.service import Service, State
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.lrm.flux.errors import ProtocolError
from tests.fluxexec.support import jobspec, start

NONE = 0xFFFFFFFF


def wire(kind: int, flags: int, frames: list[bytes], aux: tuple[int, int], userid: int = 0, rolemask: int = 1) -> bytes:
    body = b""
    for frame in [*frames, struct.pack(">BBBBIIII", 0x8E, 1, kind, flags, userid, rolemask, *aux)]:
        body += (bytes([len(frame)]) if len(frame) < 255 else b"\xff" + struct.pack(">I", len(frame))) + frame
    return struct.pack("=I", 0xFFEE0012) + struct.pack(">I", len(body)) + body


def payload(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\0"


def test_request() -> None:
    message = encode(Request("service.add", {"service": "sim"}, 5))
    assert message == wire(1, 0x0B, [b"", b"service.add", payload({"service": "sim"})], (NONE, 5), NONE, 0)


def test_response_copies_the_routes() -> None:
    asked = decode(wire(1, 0x0B, [b"8b1f", b"c0de", b"", b"sim.start", payload({"id": 1})], (0, 0))[8:])
    assert asked == Request("sim.start", {"id": 1}, 0, (b"8b1f", b"c0de"))
    data = {"id": 1, "type": "start", "data": {}}
    assert encode(asked.answer(data)) == wire(
        2, 0x0B, [b"8b1f", b"c0de", b"", b"sim.start", payload(data)], (0, 0), NONE, 0)
    assert encode(asked.answer(None, 125, "gone")) == wire(
        2, 0x0B, [b"8b1f", b"c0de", b"", b"sim.start", b"gone\0"], (125, 0), NONE, 0)
    assert encode(asked.answer()) == wire(2, 0x09, [b"8b1f", b"c0de", b"", b"sim.start"], (0, 0), NONE, 0)


def test_long_frames() -> None:
    spec = {"x": "y" * 300}
    message = encode(Request("a", spec))
    assert message == wire(1, 0x0B, [b"", b"a", payload(spec)], (NONE, 0), NONE, 0)
    assert decode(message[8:]) == Request("a", spec)


@pytest.mark.parametrize("body", [b"", b"\x05ab", b"\xff\0\0", b"\x01x", b"\x14" + bytes(20), bytes(21),
                                  wire(1, 1, [b"\xff\xfe"], (0, 0))[8:], wire(1, 3, [b"x", b"{\0"], (0, 0))[8:]])
def test_no_messages(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)


@given(st.binary(max_size=80))
def test_any_bytes(body: bytes) -> None:
    try:
        decode(body)
    except ProtocolError:
        return


class Broker:
    """A broker as far as an execution service sees one; answers requests as a table says."""

    def __init__(self, folder: Path, refuse: dict[str, tuple[int, str]] | None = None, greeting: bytes = b"\0") -> None:
        self.path = str(folder / "local-0")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.refuse, self.greeting = refuse or {}, greeting
        self.seen: list[tuple[str, Any]] = []

    def accept(self) -> None:
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(5)
        self.peer.sendall(self.greeting)

    def read(self) -> tuple[int, list[bytes], tuple[int, ...]]:
        """(type, frames, header) of the next message."""
        magic, size = struct.unpack("=I", self._exactly(4))[0], struct.unpack(">I", self._exactly(4))[0]
        assert magic == 0xFFEE0012
        body, frames = self._exactly(size), []
        while body:
            length, at = (body[0], 1) if body[0] < 255 else (struct.unpack(">I", body[1:5])[0], 5)
            frames.append(body[at:at + length])
            body = body[at + length:]
        header = struct.unpack(">BBBBIIII", frames.pop())
        return header[2], frames, header

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.peer.recv(size - len(data))
            assert piece
            data += piece
        return data

    def answer(self) -> None:
        """Take a request and answer it."""
        kind, (delimiter, topic, data), header = self.read()
        assert (kind, delimiter, header[3], data[-1:]) == (1, b"", 0x0B, b"\0")
        self.seen.append((topic.decode(), json.loads(data[:-1])))
        code, text = self.refuse.get(topic.decode(), (0, ""))
        error = [text.encode() + b"\0"] if code else []
        self.peer.sendall(wire(2, 0x0B if code else 0x09, [b"", topic, *error], (code, header[7])))

    def close(self) -> None:
        self.peer.close()
        self.listener.close()


@pytest.fixture
def loop() -> Any:
    made = Loop(virtual=True)
    yield made
    made.close()


def serve(loop: Loop, broker: Broker) -> Service:
    channel = connect_broker(loop, f"local://{broker.path}")
    broker.accept()
    service = Service(loop, channel, SimulatedRunner(loop), name="sim", broker=True)
    service.begin()
    return service


def step(loop: Loop) -> None:
    loop.run(lambda: False, 0.05)


def test_a_whole_job(tmp_path: Path, loop: Loop) -> None:
    broker = Broker(tmp_path)
    service = serve(loop, broker)
    for _ in range(3):
        step(loop)
        broker.answer()
    step(loop)
    assert broker.seen == [("service.add", {"service": "sim"}), ("event.subscribe", {"topic": "job-exception"}),
                           ("job-manager.exec-hello", {"service": "sim"})]
    assert service.state is State.REGISTERED
    request = start(7, ranks="0-1", spec=jobspec("sleep", "1000000")).payload
    sent = wire(1, 0x0B, [b"r1", b"", b"sim.start", payload(request)], (0, 0))
    broker.peer.sendall(sent[:11])
    step(loop)
    broker.peer.sendall(sent[11:] + wire(8, 0, [], (1, 0)))         # control messages mean nothing here
    got: list[Any] = []
    loop.run(lambda: bool(service.jobs), 60)
    broker.peer.sendall(wire(4, 0x03, [b"job-exception", payload({"id": 7, "type": "cancel", "severity": 0})], (9, 0)))
    loop.run(lambda: not service.jobs, 60)
    step(loop)
    for _ in range(3):
        kind, frames, header = broker.read()
        assert (kind, frames[:3], header[6:]) == (2, [b"r1", b"", b"sim.start"], (0, 0))
        got.append(json.loads(frames[3][:-1])["type"])
    assert got == ["start", "finish", "release"]
    broker.close()
    assert loop.run(lambda: service.state is State.DEAD, 60) and service.why == "the job manager went away"


def test_the_name_is_taken(tmp_path: Path, loop: Loop) -> None:
    broker = Broker(tmp_path, {"service.add": (17, "File exists")})
    service = serve(loop, broker)
    step(loop)
    broker.answer()
    assert loop.run(lambda: service.state is State.DEAD, 60)
    assert (service.why, service.refused) == ("service.add: refused: File exists (17)", True)
    broker.close()


@pytest.mark.parametrize(("greeting", "why"), [
    (b"\x01", "the broker refuses: EPERM"), (b"\0" + b"x" * 12, "this is no Flux message"),
    (b"\0" + struct.pack("=I", 0xFFEE0012) + struct.pack(">I", 1 << 30),
     "a message of 1073741824 bytes (limit line_bytes)"),
    (b"\0" + struct.pack("=I", 0xFFEE0012) + struct.pack(">I", 3) + b"\x05ab",
     "a frame that is longer than its message"),
])
def test_a_broker_that_does_not_behave(tmp_path: Path, loop: Loop, greeting: bytes, why: str) -> None:
    broker = Broker(tmp_path, greeting=greeting)
    service = serve(loop, broker)
    assert loop.run(lambda: service.state is State.DEAD, 60) and service.why == why
    broker.close()


def test_addresses(loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUX_URI", "ssh://host/path")
    for uri in (None, "", "local://", "/path"):
        with pytest.raises(UsageError, match="no address of a broker"):
            connect_broker(loop, uri)
    monkeypatch.delenv("FLUX_URI")
    with pytest.raises(UsageError, match="FLUX_URI is not set"):
        connect_broker(loop)
    with pytest.raises(AccessError):
        connect_broker(loop, f"local://{tmp_path}/none")


@pytest.mark.skipif("FLUX_URI" not in os.environ, reason="needs a running Flux instance ($FLUX_URI)")
def test_a_real_broker() -> None:
    loop = Loop()
    channel = connect_broker(loop)
    assert isinstance(channel, BrokerChannel)
    got: list[Any] = []
    channel.receive = got.append
    channel.send(Request("broker.ping", {"seq": 1}, 1))
    assert loop.run(lambda: bool(got), 60) and isinstance(got[0], Response)
    channel.close()
    loop.close()
