"""Directories and servers, good and bad: every answer comes in time and says what it is."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sssjob.mjf import Reader
from sssjob.mjf.places import Nowhere
from sssjob.mjf.reader import place_of
from sssjob.mjf.web import metadata
from tests.mjf.support import PATIENT, QUICK, Clock, Site, Web, machine, reader, served


def state(base: str) -> tuple[str, object, str]:
    """What is said of total_cpu there."""
    found = machine(base).read()["total_cpu"]
    return found.state, found.value, found.reason


# --- which place

@pytest.mark.parametrize("base", ["", "relative/path", "ftp://h/x", "http:/x", "file://elsewhere/x", "file:x", "http://",
                                  "http://u:p@127.0.0.1/x", "http://h:99999/x", "http://[::1/x", "http://h/ x",
                                  "http://h/x?a=b", "http://ä/x", "HTTP", "javascript:1"])
def test_no_place_is_unreadable(base: str) -> None:
    assert isinstance(place_of(base), Nowhere)
    if base:
        found = reader({"MACHINEFEATURES": base}).read()["shutdowntime"]
        assert (found.state, "no absolute path" in found.reason) == ("unreadable", True)


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "file://localhost{}", "file:{}"])
def test_local_forms(form: str, site: Site) -> None:
    assert state(form.format(site.write("machine", total_cpu=8))) == ("value", 8, "")


# --- local directories

def test_a_directory_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    assert state(str(tmp_path / "gone"))[::2] == ("unreadable", f"{tmp_path / 'gone'}: No such file or directory")
    (tmp_path / "file").write_text("8")
    os.mkfifo(tmp_path / "fifo")
    for base in (f"{tmp_path}/file", f"{tmp_path}/fifo", f"file://{tmp_path}/%00", f"/{'x' * 5000}", "/dev/null"):
        assert state(base)[0] == "unreadable"


def test_files_that_are_no_values(site: Site) -> None:
    place = site.write("machine", total_cpu=b"9" * 5000, hs06=b"\xff\xfe", grace_secs="-1", jobslots="")
    (place / "phys_cores").mkdir()
    os.mkfifo(place / "log_cores")
    os.symlink("/etc/passwd", place / "shutdown_command")
    os.symlink("nothing", place / "shutdowntime")
    start = time.monotonic()
    features = site.reader().read()
    assert {name: r.reason for name, r in features.area("machine").items()} == {
        "total_cpu": "larger than value_bytes = 4096 bytes",
        "hs06": r"'\\xff\\xfe' is not a finite non-negative decimal",
        "shutdowntime": "a link that leads nowhere",
        "grace_secs": "'-1' is not a non-negative integer",
        "jobslots": "empty, not a non-negative integer",
        "phys_cores": "not a regular file",
        "log_cores": "not a regular file",
        "shutdown_command": "a link that leads out of the directory",
    }
    assert {r.state for r in features.area("machine").values()} == {"unreadable"}
    assert time.monotonic() - start < 30


def test_links_inside_the_directory_are_followed(site: Site) -> None:
    place = site.write("machine", data=8)
    os.symlink("data", place / "total_cpu")
    os.symlink("log_cores", place / "log_cores")
    (place / "sub").mkdir()
    (place / "sub" / "x").write_text("9")
    os.symlink("sub/x", place / "phys_cores")       # what lies deeper may be another thing once it is opened
    os.symlink(place / "data", place / "jobslots")
    features = site.reader().read()
    assert features["total_cpu"].value == features["jobslots"].value == 8
    assert features["log_cores"].state == "unreadable"
    assert features["phys_cores"].reason == "a link that leads out of the directory"


def test_only_a_local_directory_can_be_listed(site: Site) -> None:
    place = site.write("machine", total_cpu=8, hs06=1)
    assert place_of(str(place)).names() == ["hs06", "total_cpu"]
    assert place_of("http://127.0.0.1:9/x").names() is None and place_of("ftp://x").names() is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_not_absent(site: Site) -> None:
    (site.write("machine", total_cpu=8) / "total_cpu").chmod(0)
    assert site.reader().read()["total_cpu"].reason == "Permission denied"


# --- web servers

def test_web_values(web: Web) -> None:
    web.replies = {"/m/total_cpu": b"8\n", "/m/hs06": b"<html>", "/m/grace_secs": 500, "/m/shutdowntime": 410}
    features = machine(f"{web.base}/m/").read()
    assert [(n, features[n].state) for n in ("total_cpu", "hs06", "grace_secs", "shutdowntime", "jobslots")] == [
        ("total_cpu", "value"), ("hs06", "unreadable"), ("grace_secs", "unreadable"), ("shutdowntime", "absent"),
        ("jobslots", "absent")]
    assert features["grace_secs"].reason == "HTTP status 500 Internal Server Error"


def test_a_body_without_end(web: Web) -> None:
    web.replies["/total_cpu"] = b"8" * (10 << 20)
    web.replies["/hs06"] = b"80"
    features = machine(web.base).read()
    assert features["total_cpu"].reason == "larger than value_bytes = 4096 bytes"
    assert features["hs06"].value == 80


def slow(web: Web, text: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        for byte in text:
            handler.wfile.write(bytes([byte]))
            if web.stopped.wait(0.1):
                return
    return reply


@pytest.mark.parametrize("text", [b"HTTP/1.0 200 OK\r\n\r\n" + b"8" * 60, b"HTTP/1.0 200 OK\r\nX: " + b"y" * 60])
def test_a_server_that_trickles_is_left(web: Web, text: bytes) -> None:
    web.replies["/total_cpu"] = slow(web, text)
    start = time.monotonic()
    features = machine(web.base, limits=QUICK).read()
    assert (features["total_cpu"].reason, features["shutdowntime"].state) == (
        "no answer within request_seconds = 0.3 s", "unreadable")
    assert time.monotonic() - start < 30


def test_nobody_listens(web: Web) -> None:
    with served() as gone:
        base = gone.base
    assert state(base)[::2] == ("unreadable", "Connection refused")


@pytest.mark.parametrize("text", [b"", b"8", b"HTTP/1.0 abc\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n8",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n8",
                                  b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n8",
                                  b"HTTP/1.0 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n8"])
def test_answers_that_are_no_http(web: Web, text: bytes) -> None:
    web.replies["/total_cpu"] = lambda handler: (handler.wfile.write(text), handler.connection.shutdown(1))[1]
    assert state(web.base)[:2] == ("unreadable", None)


def test_redirects(web: Web) -> None:
    def to(target: str) -> Callable[[BaseHTTPRequestHandler], None]:
        def reply(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", target)
            handler.end_headers()
        return reply

    web.replies = {"/total_cpu": to("/there"), "/there": b"8", "/hs06": to("http://127.0.0.2:9/x"),
                   "/grace_secs": to("/grace_secs"), "/jobslots": to("file:///etc/passwd")}
    found = machine(web.base).read()
    assert {n: found[n].value or found[n].reason for n in ("total_cpu", "hs06", "grace_secs", "jobslots")} == {
        "total_cpu": 8, "hs06": "a redirect to another origin: http://127.0.0.2:9/x",
        "grace_secs": "more than one redirect", "jobslots": "a redirect to another origin: file:///etc/passwd"}


def test_https(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   cwd=tmp_path, check=True, capture_output=True)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert"))
    with served(own) as web:
        web.replies["/total_cpu"] = b"8"
        environment = {"MACHINEFEATURES": web.base}
        assert Reader.from_environment(environment, context=trusting).read()["total_cpu"].value == 8
        assert "certificate verify failed" in Reader.from_environment(environment).read()["total_cpu"].reason


# --- caching

@pytest.mark.parametrize(("headers", "until"), [
    ({}, 30), ({"Cache-Control": "max-age=100"}, 100), ({"Cache-Control": "max-age=99999"}, 600),
    ({"Cache-Control": "max-age=100", "Age": "40"}, 60), ({"Cache-Control": "no-cache, max-age=100"}, 30),
    ({"Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Expires": "Tue, 14 Nov 2023 22:15:20 GMT"}, 120),
    ({"Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Expires": "Tue, 14 Nov 2023 22:15:20 GMT", "Age": "50"}, 70),
    ({"Expires": "Fri, 31 Dec 2199 00:00:00 GMT"}, 600), ({"Expires": "Tue, 14 Nov 2023 22:15:20 GMT"}, 30),
    ({"Date": "x", "Expires": "0"}, 30), ({"Date": "x", "Expires": "Tue, 14 Nov 2023 22:15:20 GMT"}, 30),
    ({"Cache-Control": "max-age=" + "9" * 40}, 600),
])
def test_how_long_a_dynamic_key_is_kept(web: Web, headers: Mapping[str, str], until: int) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response_only(200)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"8")

    clock = Clock()
    web.replies["/jobslots"] = reply
    reader = machine(web.base, clock)
    reader.read()
    start, web.replies["/jobslots"] = clock.now, b"9"
    clock.now = start + until - 1
    assert reader.read()["jobslots"].value == 8
    clock.now = start + until + 1
    assert reader.read()["jobslots"].value == 9


def test_static_keys_are_read_once_and_dynamic_ones_confirmed(web: Web) -> None:
    web.replies = {"/total_cpu": b"8", "/jobslots": b"8"}
    web.headers["ETag"] = '"a"'
    clock = Clock()
    reader = machine(web.base, clock)
    reader.read()
    clock.now += 1000
    assert reader.read()["jobslots"].value == 8
    assert web.asked.count("/total_cpu") == 1
    assert [c for p, c in zip(web.asked, web.conditions, strict=True) if p == "/jobslots"] == ["", '"a"']
    assert reader.read(force=True)["jobslots"].value == 8
    assert web.asked.count("/jobslots") == 3


def test_what_cannot_be_read_again_is_stale(web: Web) -> None:
    clock = Clock()
    web.replies["/shutdowntime"] = str(int(clock.now) + 5000).encode()
    reader = machine(web.base, clock)
    reader.read()
    web.replies["/shutdowntime"] = 500
    made = reader.read(force=True)["shutdowntime"]
    assert (made.state, made.value, made.reason) == (
        "stale", clock.now + 5000, "not read again: HTTP status 500 Internal Server Error")
    web.replies["/shutdowntime"] = 404
    assert reader.read(force=True)["shutdowntime"].state == "absent"


# --- the metadata of a virtual machine

def test_metadata_name_the_places(web: Web) -> None:
    web.replies = {"/meta_data.json": b'{"meta": {"machinefeatures": "%s/m", "jobfeatures": "/etc"}}' %
                   web.base.encode(), "/m/total_cpu": b"8"}
    url = f"{web.base}/meta_data.json"
    features = reader({}, ask_metadata=True, url=url).read()
    assert features["total_cpu"].value == 8
    assert features["job_id"].reason == "the metadata name no http: or https: URL"
    reader({}, ask_metadata=True, url=url).read()
    assert web.asked.count("/meta_data.json") == 1


def test_metadata_hold_the_values(web: Web) -> None:
    web.replies["/meta_data.json"] = b'{"meta": {"mjf@machinefeatures@hs06": "80.5", "mjf@jobfeatures@job_id": "x"}}'
    web.replies["/odd"] = b'{"meta": {"mjf@machinefeatures@hs06": "\\ud800", "mjf@machinefeatures@../x": "1"}}'
    odd = reader({}, ask_metadata=True, url=f"{web.base}/odd").read()
    assert odd["hs06"].state == "unreadable"
    features = reader({}, ask_metadata=True, url=f"{web.base}/meta_data.json").read()
    assert (features["hs06"].value, features["job_id"].value, features["total_cpu"].state) == (80.5, "x", "absent")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"meta": 3}', b"[" * 60000, b"x" * 100000, 404, b"\xff",
                                  b'{"meta": {"machinefeatures": 3, "mjf@jobfeatures@job_id": 3}}'])
def test_metadata_that_are_none(web: Web, body: bytes | int) -> None:
    web.replies["/meta_data.json"] = body
    assert dict(metadata(f"{web.base}/meta_data.json", PATIENT)) == {}


def test_metadata_are_not_asked_where_a_variable_is_set_or_nobody_allows_it(web: Web, site: Site) -> None:
    url = f"{web.base}/meta_data.json"
    reader({}, url=url).read()
    reader({"JOBFEATURES": str(site.write("job"))}, ask_metadata=True, url=url).read()
    assert web.asked == []
