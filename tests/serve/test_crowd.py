"""Many at once, and clients that take what they can: idle connections, listeners, slow bodies, half-closed sockets,
queries without end.

SSSJOB_CROWD says how many (30; docs/exchange.md tells what a thousand cost).
"""

from __future__ import annotations

import http.client
import os
import resource
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sssjob.limits import LIMITS, Limits
from sssjob.run.history import Event
from sssjob.run.journal import open_journal
from sssjob.serve import running
from tests.serve.conftest import Place, Serving, still

CROWD: Final = int(os.environ.get("SSSJOB_CROWD", "30"))
JOB: Final = "<Job><Id>%s</Id><Executable>/bin/true</Executable></Job>"
LISTEN: Final = (b"GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer Tamy\r\n\r\n")


@pytest.fixture(autouse=True)
def descriptors() -> None:
    """Both ends of all connections are in this process."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))


def connected(stack: ExitStack, place: Place, octets: bytes) -> socket.socket:
    """A connection on which something was sent."""
    client = stack.enter_context(socket.create_connection(("127.0.0.1", place.port), 30))
    client.sendall(octets)
    return client


def read_until(client: socket.socket, word: bytes) -> bytes:
    """What comes, up to a word."""
    received = bytearray()
    while word not in received[-4000:]:
        piece = client.recv(3000)
        assert piece, received
        received += piece
    return bytes(received)


def memory_kb() -> int:
    """What this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_idle_connections_keep_nobody_from_being_served(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is left after a while; beyond the most that are taken there is a status and no more."""
    monkeypatch.setattr(running, "_HEAD_S", 2.0)
    with serving(connections=CROWD + 20) as place, ExitStack() as stack:
        idle = [connected(stack, place, b"GET /v1/jobs HT" if n % 2 else b"") for n in range(CROWD)]
        assert place.call("amy", "GET", "/v1/jobs").status == 200
        for client in idle:
            client.settimeout(30)
            assert client.recv(1000) == b""
        assert place.call("amy", "GET", "/v1/jobs").status == 200


def test_more_connections_than_are_taken(serving: Serving) -> None:
    with serving(connections=5) as place, ExitStack() as stack:
        listeners = [connected(stack, place, LISTEN) for _ in range(4)]
        for client in listeners:
            assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert place.call(None, "GET", "/health").status == 503
        for client in listeners:
            client.close()
        end = time.monotonic() + 20
        while place.call(None, "GET", "/health").status != 204:
            assert time.monotonic() < end


def test_listeners_hear_everything_in_flat_memory(tmp_path: Path) -> None:
    """All of them hear of each job, in order; what the server keeps for one of them does not grow with what happens."""
    with still(tmp_path, connections=CROWD + 20) as place, ExitStack() as stack:
        listeners = [connected(stack, place, LISTEN) for _ in range(CROWD)]
        for client in listeners:
            read_until(client, b"\r\n\r\n")
        assert place.call("amy", "POST", "/v1/jobs", JOB % "a").status == 201
        with open_journal(place.journal) as journal:
            entry = journal.entry(1)
            entry.flush(Event(0, "hold", "user", {}), Event(0, "release", "user", {}))
            assert len({read_until(client, b"release").count(b"\ndata:") for client in listeners}) == 1
            before = memory_kb()
            for _ in range(20):
                entry.flush(*(Event(0, kind, "user", {}) for kind in ("hold", "release") * 10))
            entry.flush(Event(0, "cancel", "user", {}))
            received = [read_until(client, b"event: cancel") for client in listeners]
        assert {(text.count(b"event: hold"), text.count(b"event: release")) for text in received} == {(200, 200)}
        assert memory_kb() - before < 20_000 + len(b"".join(received)) // 1000


def test_slow_bodies_and_half_closed_connections(serving: Serving, small: Limits) -> None:
    """A body that comes an octet at a time is left with 408, one that ends early is nobody's job; who closes the
    own half is gone, as for most servers of HTTP."""
    head = ("{} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer Tamy\r\nContent-Type: application/xml\r\n"
            "Content-Length: {}\r\n\r\n")
    body = JOB % "x"
    with serving(limits=small) as place, ExitStack() as stack:
        slow = [connected(stack, place, head.format("POST /v1/convert", 500).encode()) for _ in range(10)]
        quick = connected(stack, place, (head.format("POST /v1/convert?to=slurm", len(body)) + body).encode())
        quick.shutdown(socket.SHUT_WR)
        short = connected(stack, place, (head.format("POST /v1/jobs", 500) + body).encode())
        short.shutdown(socket.SHUT_WR)
        for client in (quick, short):
            while client.recv(1000):
                pass
        for client in slow:
            client.sendall(b"<")
            assert b"408" in read_until(client, b"message_seconds")
            with suppress(ConnectionResetError):        # where an octet came after its end
                assert not client.recv(1000), "nothing more is read from it"
        assert place.call("amy", "GET", "/v1/jobs?ended=true").body["total"] == 0


def test_queries_without_end_are_ended_and_hold_nobody_up(tmp_path: Path) -> None:
    """Thousands of paths over some jobs, by as many clients as there are threads for queries: each is told the limit
    that ended it; jobs are looked at meanwhile."""
    limits = replace(LIMITS, query_seconds=0.3, answer_bytes=1_000)
    paths = " Or ".join(f"Requested/Processors[{n}]=5" for n in range(1, 1500))
    with still(tmp_path, limits=limits) as place:
        group = f"<JobGroup><Id>g</Id>{''.join(JOB % n for n in range(40))}</JobGroup>"
        assert place.call("amy", "POST", "/v1/jobs", group).status == 201
        messages: list[str] = []

        def ask() -> None:
            reply = place.call("amy", "POST", "/v1/query", f"Query Job Where {paths} Get Id", Content_Type="text/plain")
            messages.append(f"{reply.status} {reply.body['message']}")

        threads = [threading.Thread(target=ask) for _ in range(3)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        assert place.call("amy", "GET", "/v1/jobs/@1.1").status == 200
        seen = time.monotonic() - begun
        for thread in threads:
            thread.join()
        assert messages == ["400 700: the query takes longer than the limit query_seconds (0.3)"] * 3
        assert seen < time.monotonic() - begun
        reply = place.call("amy", "POST", "/v1/query", "Query Job", Content_Type="text/plain")
        assert (reply.status, reply.body["message"]) == (
            400, "700: the answer is longer than the limit answer_bytes (1000); Get, Limit and Offset ask for less")
        assert len(place.call("amy", "POST", "/v1/query", "Query Job Get Id", Content_Type="text/plain").body["objects"]
                   ) == 40


def test_a_client_that_takes_no_answer(serving: Serving) -> None:
    """Its connection is its own trouble."""
    with serving() as place, ExitStack() as stack:
        for _ in range(5):
            client = connected(stack, place, LISTEN.replace(b"/v1/events", b"/openapi.json") * 20)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=20)
        connection.request("GET", "/openapi.json", headers={"Authorization": "Bearer Tamy"})
        assert connection.getresponse().status == 200
        connection.close()


def test_nothing_hides_in_a_body(serving: Serving, small: Limits) -> None:
    """Of a request that is too long nothing more is read: what follows is none."""
    again = LISTEN.replace(b"/v1/events", b"/v1/jobs")
    first = again.replace(b"GET", b"POST").removesuffix(b"\r\n") + b"Content-Type: application/xml\r\n"
    with serving(limits=small) as place, ExitStack() as stack:
        for path in (b"/v1/jobs", b"/api/v2/compute/job/local"):
            framed = b"Transfer-Encoding: chunked\r\n\r\n900\r\n" + b"x" * 2304 + b"\r\n0\r\n\r\n"
            client = connected(stack, place, first.replace(b"/v1/jobs", path) + framed + again)
            client.settimeout(20)
            answer = b""
            with suppress(ConnectionResetError):
                while piece := client.recv(65536):
                    answer += piece
            assert answer.count(b"HTTP/1.1 ") == 1 and answer[9:12] == b"413"
        assert [line["operation"] for line in place.log()] == ["submit", "iri_v2_launchJob"]
