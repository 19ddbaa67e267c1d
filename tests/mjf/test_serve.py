"""The HTTP provider: keys, cache headers, and nothing else."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sssjob.mjf import Reader, Server
from sssjob.mjf.limits import LIMITS
from tests.mjf.support import NOW, PATIENT, Site, reader


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    site.write("machine", total_cpu=8, shutdowntime=NOW + 900)
    site.write("job", job_id="4711", secret="x")
    os.symlink("/etc/passwd", site.root / "job" / "allocated_cpu")
    os.mkfifo(site.root / "job" / "hs06_job")
    with Server({"machine": str(site.root / "machine"), "job": str(site.root / "job")}) as made, serving(made):
        yield made


@contextmanager
def serving(server: Server) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)) as connection:
        connection.putrequest(method, path, skip_host=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        with connection.getresponse() as response:
            return response.status, response.read().decode(), dict(response.headers)


def test_it_listens_on_loopback(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.urls == {"machine": f"http://127.0.0.1:{server.server_port}/machinefeatures",
                           "job": f"http://127.0.0.1:{server.server_port}/jobfeatures"}


@pytest.mark.skipif(not Path("/proc/net/if_inet6").is_file(), reason="no IPv6 here")
def test_ipv6(site: Site) -> None:
    try:
        server = Server({"job": str(site.write("job", job_id="x"))}, ("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with server, serving(server):
        assert server.urls["job"].startswith("http://[::1]:")
        assert reader({"JOBFEATURES": server.urls["job"]}).read()["job_id"].value == "x"


def test_our_reader_reads_it(server: Server) -> None:
    urls = server.urls
    features = Reader.from_environment({"MACHINEFEATURES": urls["machine"], "JOBFEATURES": urls["job"]},
                                       limits=PATIENT).read()
    found = {n: (features[n].state, features[n].value) for n in ("total_cpu", "job_id", "allocated_cpu", "hs06")}
    assert found == {"total_cpu": ("value", 8), "job_id": ("value", "4711"), "allocated_cpu": ("unreadable", None),
                     "hs06": ("absent", None)}


def test_cache_headers_and_confirmation(server: Server) -> None:
    status, body, headers = ask(server, "/machinefeatures/total_cpu")
    assert (status, body, headers["Cache-Control"], headers["Content-Length"]) == (200, "8\n", "max-age=600", "2")
    assert ask(server, "/machinefeatures/shutdowntime")[2]["Cache-Control"] == "max-age=30"
    assert ask(server, "/machinefeatures/total_cpu", If_None_Match=headers["ETag"])[:2] == (304, "")
    assert ask(server, "/machinefeatures/total_cpu", If_Modified_Since=headers["Last-Modified"])[0] == 304
    assert ask(server, "/machinefeatures/total_cpu", If_None_Match='"other"')[0] == 200


@pytest.mark.parametrize(("since", "status"), [
    ("Sun, 01 Jan 2040 00:00:00 GMT", 304), ("Sat, 01 Jan 2000 00:00:00 GMT", 200), ("Sat, 01 Jan 2000 00:00:00", 200),
    ("tomorrow", 200), ("", 200), ("Sun, 99 Jan 2040 00:00:00 GMT", 200), ("x" * 5000, 200)])
def test_dates_are_compared_as_dates(server: Server, since: str, status: int) -> None:
    """Only the server's own words for the time were understood."""
    assert ask(server, "/machinefeatures/total_cpu", If_Modified_Since=since)[0] == status
    assert ask(server, "/machinefeatures/total_cpu", If_Modified_Since=since, If_None_Match='"other"')[0] == 200


@pytest.mark.parametrize("path", ["/machinefeatures/total_cpu", "/machinefeatures", "/machinefeatures/hs06", "/x",
                                  "/jobfeatures/hs06_job"])
def test_head_is_get_without_the_body(server: Server, path: str) -> None:
    got, head = ask(server, path), ask(server, path, "HEAD")
    for _, _, headers in (got, head):
        headers.pop("Date")
    assert (got[0], "", got[2]) == head


def test_many_clients_at_a_time(server: Server) -> None:
    """Each is answered, and with its own answer; those that are too many are cut off and come again."""
    answers: list[tuple[str, int, str]] = []

    def client(number: int) -> None:
        path = ("/machinefeatures/total_cpu", "/jobfeatures/job_id", "/nothing")[number % 3]
        for _ in range(50):
            try:
                answers.append((path, *ask(server, path)[:2]))
                return
            except (http.client.HTTPException, OSError):
                time.sleep(0.02)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(90)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == sorted([("/machinefeatures/total_cpu", 200, "8\n"),
                                      ("/jobfeatures/job_id", 200, "4711\n"), ("/nothing", 404, "")] * 30)


@pytest.mark.parametrize("path", [
    "/", "/etc/passwd", "/machinefeatures/../job/job_id", "/machinefeatures/..", "/machinefeatures/%2e%2e/x", "//etc",
    "/jobfeatures/secret", "/jobfeatures/../../../../etc/passwd", "/machinefeatures/total_cpu/", "/jobstatus/used_CPU",
    "/machinefeatures/job_id", "/machinefeatures/total_cpu%00", "http://elsewhere/machinefeatures/total_cpu", "x",
    "/machinefeatures/.sssjob-mjf", "/" + "a" * 5000,
])
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert ask(server, path)[:2] == (404, "")


@pytest.mark.parametrize("key", ["allocated_cpu", "hs06_job"])
def test_links_out_and_fifos_are_not_served(server: Server, key: str) -> None:
    status, body, headers = ask(server, f"/jobfeatures/{key}")
    assert (status, body, headers["Cache-Control"]) == (500, "", "no-store")


@pytest.mark.parametrize("path", ["/jobfeatures", "/jobfeatures/"])
def test_a_listing_of_keys(server: Server, path: str) -> None:
    status, body, _ = ask(server, path)
    assert status == 200 and 'href="/jobfeatures/job_id"' in body and "secret" not in body


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_reading_only(server: Server, method: str) -> None:
    assert ask(server, "/machinefeatures/total_cpu", method)[0] == 501


def test_idle_clients_are_cut_off_and_do_not_keep_others_out(site: Site) -> None:
    limits = replace(LIMITS, connections=2, connection_seconds=0.3)
    with Server({"machine": str(site.write("machine", total_cpu=8))}, limits=limits) as server, serving(server):
        _occupy(server)


def _occupy(server: Server) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(2)]
    for connection in idle:
        connection.sendall(b"GET / HT")
        connection.settimeout(5)
    assert [connection.recv(1) for connection in idle] == [b"", b""]
    for connection in idle:
        connection.close()
    for _ in range(50):             # their threads end a moment later
        try:
            assert ask(server, "/machinefeatures/total_cpu")[0] == 200
            break
        except (http.client.HTTPException, ConnectionError):
            time.sleep(0.1)
    else:
        pytest.fail("the server takes nobody any more")
