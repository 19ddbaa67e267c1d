"""Connections, and peers that do not behave: a named limit or an error, never a hang or a traceback."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.errors import AccessError
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Event, Message, Request, Response, from_line, to_line
from sssjob.fluxexec.transport import Lines, connect, listen, pair
from sssjob.lrm.flux.errors import ExecLimits, ProtocolError

HELLO = Request("job-manager.exec-hello", {"service": "job-exec"}, 1)
LINE = b'{"m":"req","t":"job-manager.exec-hello","tag":1,"p":{"service":"job-exec"}}\n'
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(
    st.text(), inner, max_size=3) | st.lists(inner, max_size=3), max_leaves=5)


class Ear:
    """A channel of ours on one end of a socket, and the other end."""

    def __init__(self, limits: ExecLimits | None = None) -> None:
        self.loop = Loop()
        ours, self.peer = socket.socketpair()
        self.channel = Lines(self.loop, ours.detach(), limits=limits or ExecLimits())
        self.got: list[Message] = []
        self.why: list[str] = []
        self.channel.receive, self.channel.closed = self.got.append, self.why.append

    def close(self) -> None:
        self.channel.close()
        self.peer.close()
        self.loop.close()


def test_lines() -> None:
    assert to_line(HELLO) == LINE and from_line(LINE) == HELLO
    assert to_line(Response("a.start", None, 0, 38, "no")) == b'{"m":"resp","t":"a.start","tag":0,"e":38,"es":"no"}\n'
    assert to_line(Event("job-exception", {"id": 1})) == b'{"m":"event","t":"job-exception","p":{"id":1}}\n'


@given(st.one_of(st.builds(Request, st.text(), JSON, st.integers(0, (1 << 32) - 1)),
                 st.builds(Response, st.text(), JSON, st.integers(0, (1 << 32) - 1), st.integers(0, 1 << 30),
                           st.none() | st.text()), st.builds(Event, st.text(), JSON)))
def test_lines_come_back(message: Message) -> None:
    line = to_line(message)
    assert line.count(b"\n") == 1 and from_line(line) == message


@pytest.mark.parametrize("line", [
    b"", b"{", b"[]", b"1", b'"x"', b"null", b"\xff", b'{"m":"req"}', b'{"m":"req","t":1}',
    b'{"m":"req","t":"x","tag":-1}', b'{"m":"req","t":"x","tag":true}', b'{"m":"req","t":"x","tag":1.0}',
    b'{"m":"req","t":"x","tag":4294967296}', b'{"m":"resp","t":"x","e":"1"}', b'{"m":"resp","t":"x","es":1}',
    b'{"m":"req","t":"x","p":NaN}', b"[" * 100_000, b'{"m":"req","t":"x","tag":' + b"9" * 10_000 + b"}"])
def test_no_messages(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        from_line(line)


@pytest.mark.parametrize("line", [b"{}", b'{"m":"hello"}', b'{"m":null,"t":"x"}', b'{"m":["req"],"t":"x"}'])
def test_unknown_kinds_are_ignored(line: bytes) -> None:
    assert from_line(line) is None


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_in_pieces(size: int) -> None:
    ear = Ear()
    text = LINE * 3 + b"\n  \n" + LINE
    for position in range(0, len(text), size):
        ear.peer.sendall(text[position:position + size])
        ear.loop.run(timeout=0.001)
    ear.peer.close()
    assert ear.loop.run(lambda: bool(ear.why), 60)
    assert (ear.got, ear.why) == ([HELLO] * 4, [""])
    ear.close()


@pytest.mark.parametrize(("sent", "why", "got"), [
    (LINE + b'{"m":"req"\n' + LINE, "no JSON: Expecting ',' delimiter: line 1 column 11 (char 10)", 1),
    (LINE + b'{"m":"re', "the connection ended inside a message", 1),
    (b"x" * 70_000, "a line of more than 65536 bytes (limit line_bytes)", 0),
    (b"x" * 70_000 + b"\n" + LINE, "a line of more than 65536 bytes (limit line_bytes)", 0),
    (b"[" * 60_000 + b"\n", "JSON that is nested too deep", 0),      # since Python 3.13, 4,000 are not
])
def test_a_peer_that_does_not_behave(sent: bytes, why: str, got: int) -> None:
    ear = Ear(ExecLimits(line_bytes=65_536))
    ear.peer.sendall(sent)
    ear.peer.shutdown(socket.SHUT_WR)
    assert ear.loop.run(lambda: bool(ear.why), 60)
    assert (ear.why, len(ear.got)) == ([why], got)
    ear.channel.send(HELLO)                 # nothing happens any more
    ear.close()


def test_a_peer_that_does_not_read() -> None:
    ear = Ear(ExecLimits(pending_bytes=1 << 20))
    sent = 0
    while not ear.why:
        ear.channel.send(HELLO)
        ear.loop.run(timeout=0.0001) if sent % 1000 == 0 else None
        sent += 1
        assert sent < 100_000
    assert ear.why == ["the other side does not read (limit pending_bytes)"]
    ear.close()


def test_much_goes_through_in_order() -> None:
    ear = Ear()
    other = Loop()
    back = Lines(other, ear.peer.detach())
    got: list[Message] = []
    back.receive = got.append
    for number in range(5000):
        ear.channel.send(Event("x", number))
    for _ in range(1000):
        ear.loop.run(timeout=0.001)
        other.run(timeout=0.001)
        if len(got) == 5000:
            break
    assert [m.payload for m in got] == list(range(5000))
    back.close()
    other.close()
    ear.close()


def test_pair() -> None:
    loop = Loop(virtual=True)
    one, two = pair(loop)
    got: list[Message] = []
    why: list[str] = []
    two.receive, two.closed, one.closed = got.append, why.append, why.append
    one.send(HELLO)
    one.close()
    one.send(HELLO)
    two.send(HELLO)
    loop.run()
    assert (got, why) == ([HELLO], [""])        # what was sent before the end arrives


def test_virtual_time() -> None:
    loop = Loop(virtual=True, start=100.0)
    seen: list[float] = []
    loop.at(86500.0, lambda: seen.append(loop.now()))
    loop.at(200.0, lambda: seen.append(loop.now())).cancel()
    loop.at(150.0, lambda: loop.soon(lambda: seen.append(loop.now())))
    assert loop.run() and seen == [150.0, 86500.0]
    assert not loop.run(lambda: False)      # nothing left to do


def test_listen(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with listen(path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with pytest.raises(AccessError, match="Address already in use"):
            listen(path)
        os.close(connect(path))
    with listen(path):                      # nobody listened at it any more
        pass
    os.unlink(path)
    Path(path).write_text("mine")
    with pytest.raises(AccessError, match="Address already in use"):
        listen(path)
    for bad in (str(tmp_path / "none" / "s"), str(tmp_path / ("x" * 200)), "a\0b", ""):
        with pytest.raises(AccessError):
            listen(bad)
        with pytest.raises(AccessError):
            connect(bad)
