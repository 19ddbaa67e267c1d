"""``sssjob flux-exec serve`` as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sssjob.cli import main
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import ManagedJob, Manager, Result
from sssjob.fluxexec.messages import to_line
from sssjob.fluxexec.transport import Lines, connect
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import jobspec, start
from tests.forks import command
from tests.gate import until_there

WELCOME = b'{"m":"resp","t":"job-manager.exec-hello","tag":3,"e":0}\n'
HELLO = {"m": "req", "t": "job-manager.exec-hello", "tag": 3, "p": {"service": "job-exec"}}
Answer = tuple[int, list[Any], str]


SERVES = ("flux-exec", "serve", "--name", "job-exec")


def service(*options: str) -> list[str]:
    """The command that serves, as a process of its own."""
    return [*command(), *SERVES, *options]


def stdio(data: bytes, *options: str) -> Answer:
    """(exit status, messages, standard error)."""
    process = subprocess.run(service(*options), input=data, capture_output=True, timeout=60)
    return process.returncode, [json.loads(line) for line in process.stdout.splitlines()], process.stderr.decode()


def types(messages: list[Any]) -> list[str]:
    return [m["p"]["type"] for m in messages if m["m"] == "resp"]


def test_stdio() -> None:
    code, messages, err = stdio(WELCOME + to_line(start(9, ranks="0-1", spec=jobspec("sh", "-c", "exit 3", slots=2))))
    assert (code, err) == (0, "")
    course = [("start", {}), ("finish", {"status": 768}), ("release", {"ranks": "0-1", "final": True})]
    usage = messages[2]["p"]["data"].pop("usage")
    assert usage["nodes"] == [socket.gethostname()] and 0 <= usage["cpu_seconds"] < 60
    assert messages == [HELLO] + [{"m": "resp", "t": "job-exec.start", "tag": 0, "e": 0,
                                   "p": {"id": 9, "type": kind, "data": data}} for kind, data in course]


def test_simulate() -> None:
    begin = time.monotonic()
    code, messages, err = stdio(WELCOME + to_line(start(spec=jobspec("sleep", "1e9"))), "--simulate", "--stdio")
    assert (code, types(messages), err) == (0, ["start", "finish", "release"], "")
    assert time.monotonic() - begin < 100


@pytest.mark.parametrize(("data", "code", "expected"), [
    (b"", 3, "job manager: the job manager went away before it answered hello"),
    (WELCOME[:20], 3, "job manager: the connection ended inside a message"),
    (b'{"m"\n', 3, "job manager: no JSON: Expecting ':' delimiter: line 1 column 5 (char 4)"),
    (b"x" * (17 << 20), 3, "job manager: a line of more than 16777216 bytes (limit line_bytes)"),
    (b'{"m":"resp","t":"job-manager.exec-hello","tag":3,"e":22,"es":"busy\\u001b"}\n', 5,
     "job-manager.exec-hello: refused: busy\\u{001B} (22)"),
    (WELCOME + to_line(start()) * 2 + b'{"m":"req","t":"job-exec.start","p":{"id":"x"}}\n' * 3, 0,
     "job-exec.start ignored: second start of job 1\nsssjob: job-exec.start ignored: id is no whole number in range"),
])
def test_input_that_is_wrong(data: bytes, code: int, expected: str) -> None:
    assert stdio(data)[::2] == (code, f"sssjob: {expected}\n")


def test_the_reader_goes_away() -> None:
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(service(), stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE) as made:
        os.close(write)
        assert made.wait(60) == 3 and made.stderr is not None       # though its input stays open
        assert made.stderr.read() == b"sssjob: job manager: Broken pipe\n"


class Site:
    """A service at a socket, and a manager."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.path, self.options = str(folder / "s"), options
        self.loop = Loop()
        self.manager = Manager(Idset.parse("0-3"), self.loop.now)
        self.process = self.serve()

    def serve(self) -> subprocess.Popen[bytes]:
        with open(self.path + ".err", "wb") as err:         # no pipe: jobs that are left may hold it
            # an interpreter, which is gone when it was killed: what is forked goes a moment after who asked for it
            self.process = subprocess.Popen([sys.executable, "-m", "sssjob", *SERVES, "--socket", self.path,
                                             *self.options], stderr=err)
        return self.process

    def connect(self) -> Lines:
        end = time.monotonic() + 60
        while True:
            try:
                fd = connect(self.path)
                break
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.05)
        channel = Lines(self.loop, fd)
        self.manager.connect(channel)
        self.run(lambda: self.manager.service is not None)
        return channel

    def run(self, until: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not self.loop.run(until, 0.05):       # files are looked at, too
            assert time.monotonic() < end

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        code = self.process.wait(30)
        return code, Path(self.path + ".err").read_text()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def call(*options: str) -> Site:
        made.append(Site(tmp_path, *options))
        return made[-1]

    yield call
    for site in made:
        if site.process.poll() is None:
            site.process.kill()
        site.process.wait()
        site.loop.close()


def begun(job: ManagedJob) -> bool:
    return ("start", None) in job.events


def test_socket(make: Callable[..., Site]) -> None:
    site = make("--partial")
    channel = site.connect()
    with socket.socket(socket.AF_UNIX) as second:               # one manager at a time
        second.connect(site.path)
        second.settimeout(10)
        assert second.recv(10) == b""
    good, long = site.manager.submit(jobspec()), site.manager.submit(jobspec("sleep", "100"))
    site.run(lambda: good.result is Result.COMPLETED and begun(long))
    site.manager.disconnected(channel)
    channel.close()                                             # the next one finds the job
    site.connect()
    site.run(lambda: ("debug.exec-reattach-finish", None) in long.events)
    site.manager.cancel(long.id)
    site.run(lambda: long.result is Result.CANCELED)
    code, err = site.end()
    assert (code, os.path.exists(site.path)) == (143, False)
    assert err == "sssjob: a second job manager was turned away\nsssjob: the job manager went away\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_without_state_jobs_end_with_the_service(make: Callable[..., Site], number: int, tmp_path: Path) -> None:
    site = make()
    site.connect()
    job = site.manager.submit(jobspec("sh", "-c", "echo $$ > pid; exec sleep 100", cwd=str(tmp_path)))
    site.run(lambda: begun(job) and bool((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    assert site.end(number) == (128 + number, "sssjob: 1 jobs are ended with the service\n")
    site.run(lambda: site.manager.service is None)
    assert (job.result, job.outstanding) == (None, False)       # for the next service
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_with_state_a_later_service_finds_them(make: Callable[..., Site], number: int, tmp_path: Path) -> None:
    site = make("--state", str(tmp_path / "state"))
    site.connect()
    script = f"{until_there()}; exit 7"
    job = site.manager.submit(jobspec("sh", "-c", script, cwd=str(tmp_path)))
    site.run(lambda: begun(job) and (tmp_path / "state" / "1.json").exists())
    site.end(number)
    site.run(lambda: site.manager.service is None)
    site.serve()
    site.connect()
    site.run(lambda: ("debug.exec-reattach-finish", None) in job.events)
    (tmp_path / "go").touch()
    site.run(lambda: job.result is not None)
    assert (job.result, job.wait_status, site.end()[0]) == (Result.FAILED, 7 << 8, 143)
    assert not (tmp_path / "state" / "1.json").exists()


@pytest.mark.parametrize(("options", "expected"), [
    (["--socket", "x", "--stdio"], "exclude each other"),
    (["--simulate", "--executor", "local"], "takes no --executor"),
    (["--executor", "nothing"], "nothing"), (["--name", ""], "--name is empty"),
    (["--broker", "ssh://x"], "no address of a broker"), (["--colour"], "No such option"),
    (["--simulate", "--mjf"], "runs nothing"), (["--simulate", "--mjf-root", "/"], "runs nothing"),
    (["--mjf-root", "scratch"], "no absolute path"), (["--mjf-root", ""], "no absolute path")])
def test_wrong_use(options: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flux-exec", "serve", *options]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["flux-exec", "-h"], ["flux-exec", "serve", "-h"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("Usage: sssjob flux-exec")


@pytest.mark.parametrize("group", ["flux-exec", "ledger"])
def test_a_group_alone(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its help was told as one long line behind a usage line."""
    assert main([group]) == 2
    alone = capsys.readouterr()
    assert main([group, "--help"]) == 0
    assert (alone.out, alone.err.strip()) == ("", capsys.readouterr().out.strip())


def test_options_are_documented() -> None:
    import click

    from sssjob.cli.flux_exec import serve

    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text().partition("### `sssjob flux-exec serve`")[2]
    assert isinstance(serve, click.Command)
    assert [o for p in serve.params for o in p.opts if f"`{o}" not in page] == []


def test_a_socket_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flux-exec", "serve", "--socket", str(tmp_path / "none" / "s")]) == 3
    assert "No such file or directory" in capsys.readouterr().err
