"""``sssjob serve``: what it refuses before it listens, and that it ends well when it is told to."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture
def users(tmp_path: Path, sssjob: Command) -> tuple[str, str]:
    """A file of users with amy in it, and her token."""
    token, _, entry = sssjob("serve", "--new-token", "amy").out.partition("\n")
    file = tmp_path / "users.toml"
    file.write_text(entry)
    file.chmod(0o600)
    return str(file), token


def test_it_serves_until_it_is_told_to_stop(users: tuple[str, str], tmp_path: Path) -> None:
    """Status 0, and nothing said."""
    file, token = users
    command = [sys.executable, "-m", "sssjob", "serve", "--users", file, "--port", "0", "--executor", "local",
               "--sssrmap-port", "0", "--audit", str(tmp_path / "audit")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            url = re.fullmatch(r"http://127\.0\.0\.1:(\d+)\n", process.stdout.readline())
            assert url is not None
            assert re.fullmatch(r"sssrmap://127\.0\.0\.1:\d+\n", process.stdout.readline())
            connection = http.client.HTTPConnection("127.0.0.1", int(url[1]), timeout=30)
            connection.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {token}"})
            with connection.getresponse() as response:
                assert response.status == 200
            connection.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
        assert process.stderr.read() == ""
    assert '"operation": "jobs", "status": 200' in (tmp_path / "audit").read_text()


@pytest.mark.parametrize(("arguments", "code", "why"), [
    ((), 2, "--users FILE says who may ask"),
    (("--users", "{0}", "--sssrmap-sha1"), 2, "need --sssrmap-port"),
    (("--users", "{0}", "--port", "0", "--sssrmap-port", "0", "--sssrmap-key", "{0}x"), 3, "No such file"),
    (("--users", "{0}", "--certificate", "c"), 2, "belong together"),
    (("--users", "{0}", "--certificate", "absent", "--private-key", "absent"), 3, "no certificate with its key"),
    (("--users", "{0}", "--host", "0.0.0.0", "--port", "0"), 2, "with TLS only"),
    (("--users", "{0}", "--executor", "klingon"), 2, "klingon"),
    (("--users", "{0}", "--directory", "absent"), 3, "is no directory"),
    (("--users", "{0}", "--rates", "{0}"), 1, "users"),
    (("--users", "{0}", "--audit", "/"), 3, "/"),
    (("--users", "{0}", "--rate", "0"), 2, "0.1"),
    (("--users", "absent"), 3, "No such file"),
    (("--new-token", "a:b"), 2, "no name of a user"),
])
def test_what_it_refuses(sssjob: Command, users: tuple[str, str], arguments: tuple[str, ...], code: int, why: str,
                         tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = sssjob("serve", *(text.format(users[0]) for text in arguments))
    assert (answer.code, answer.out) == (code, "") and why in answer.err and "Traceback" not in answer.err


def test_a_file_of_users_that_others_read_is_refused(sssjob: Command, users: tuple[str, str]) -> None:
    Path(users[0]).chmod(0o644)
    answer = sssjob("serve", "--users", users[0])
    assert answer.code == 2 and "can be used by others" in answer.err
