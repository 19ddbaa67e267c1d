"""Connections: TLS on both faces, and clients that say nothing, or too slowly."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sssjob.errors import AccessError, UsageError
from sssjob.serve import running
from sssjob.sssrmap import Get, MessageError, Object, Request
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from tests.serve.conftest import KEY, Serving

QUERY = Request("Query", "amy", (Object("Job"), Get("Id")))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of its own, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   cwd=folder, check=True, capture_output=True)
    return str(folder / "cert"), str(folder / "key")


def test_both_faces_speak_tls(serving: Serving, certificate: tuple[str, str]) -> None:
    """To clients that trust the certificate; others leave before they say who they are."""
    trusting = ssl.create_default_context(cafile=certificate[0])
    with serving(tls=certificate) as place:
        connection = http.client.HTTPSConnection("127.0.0.1", place.port, timeout=20, context=trusting)
        connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer Tamy"})
        with connection.getresponse() as response:
            assert response.status == 200
        connection.close()
        peer = Peer("127.0.0.1", place.messages, tls=True)
        assert joined(responses(QUERY, peer, signing=Signing(KEY), context=trusting)).status.code == "000"
        with pytest.raises(MessageError, match="certificate verify failed") as error:
            joined(responses(QUERY, peer, signing=Signing(KEY)))
        assert error.value.code == "400"
        with pytest.raises(MessageError):
            joined(responses(QUERY, Peer("127.0.0.1", place.messages), signing=Signing(KEY)))


def test_a_certificate_is_looked_at_before_anything_listens(certificate: tuple[str, str], tmp_path: Path) -> None:
    running.check_tls(*certificate)
    (tmp_path / "other").write_text("no key")
    for files in ((certificate[0], str(tmp_path / "other")), (str(tmp_path / "absent"), certificate[1])):
        with pytest.raises(AccessError, match="no certificate with its key"):
            running.check_tls(*files)


def test_parts_of_an_answer_do_not_wait_for_one_another() -> None:
    """Each answer took 40 ms more for a client that asks again when it is answered."""
    with running.listener("127.0.0.1", 0, False) as listening, \
            socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_where_it_listens() -> None:
    """On loopback without TLS, by any name of it; elsewhere with TLS only."""
    for host in ("127.0.0.1", "localhost"):
        with running.listener(host, 0, False) as listening:
            assert running.address_of(listening).startswith("127.0.0.1:")
            with pytest.raises(AccessError, match="in use"):
                running.listener("127.0.0.1", listening.getsockname()[1], False)
    for host in ("0.0.0.0", "192.0.2.1"):
        with pytest.raises(UsageError, match="with TLS only"):
            running.listener(host, 0, False)


def test_who_says_nothing_is_left(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who stops in the middle of a head, on a connection that was used before too; who waits for an answer is not.
    """
    monkeypatch.setattr(running, "_HEAD_S", 0.2)
    with serving() as place:
        for sent in (b"", b"GET /v1/jobs HTTP/1.1\r\nHost: a\r\nX", b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /he"):
            with socket.create_connection(("127.0.0.1", place.port), 20) as connection:
                connection.sendall(sent)
                answer = b""
                while more := connection.recv(1000):
                    answer += more
                assert answer.startswith(b"HTTP/1.1 204 ") == sent.startswith(b"GET /health")
        with socket.create_connection(("127.0.0.1", place.port), 20) as connection:
            connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer Tamy\r\n\r\n")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):
                while connection.recv(1000):
                    pass


def test_what_is_written_in_one_turn_is_sent_at_once() -> None:
    """A head and its body are one packet; who closes loses nothing of what was written."""
    sent: list[bytes] = []

    class Transport(asyncio.Transport):
        """Keeps what it is to send."""

        def write(self, data: Any) -> None:
            """It is sent."""
            sent.append(bytes(data))

        def close(self) -> None:
            """It is closed."""
            sent.append(b"closed")

        def is_closing(self) -> bool:
            """Whether it is closed."""
            return b"closed" in sent

    async def turns() -> None:
        corked = running._Corked(Transport(), asyncio.get_running_loop())
        for octets in (b"head ", b"body"):
            corked.write(octets)
        assert not sent
        await asyncio.sleep(0)
        corked.write(b"last")
        corked.close()
        assert corked.is_closing()
        await asyncio.sleep(0)

    asyncio.run(turns())
    assert sent == [b"head body", b"last", b"closed"]


def test_another_face_is_no_server_of_messages(serving: Serving) -> None:
    """Who asks the port of HTTP hears so, and of no input that is empty."""
    with serving() as place, pytest.raises(MessageError) as raised:
        joined(responses(Request("Query", "amy", (Object("Job"), Get("Id"))), Peer("127.0.0.1", place.port)))
    assert (raised.value.status.code, raised.value.status.message) == (
        "240", "The server answers with HTTP status 401, and no message.")
