"""``sssjob mjf``: every command and option, in this process but for the server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from sssjob.cli import main
from sssjob.cli import mjf as cli
from sssjob.mjf import web
from sssjob.mjf.keys import VARIABLES, Area
from sssjob.mjf.places import InMetadata, Place
from tests.mjf.support import NOW, Site

Command = Callable[..., tuple[int, str, str]]
JOB = """<Job><Id>4711</Id><Requested><Duration>60</Duration><Memory units="GB">2</Memory></Requested></Job>"""


@pytest.fixture
def mjf(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run ``sssjob mjf`` with the directories of the site as variables; gives (code, out, err)."""
    for area, name in VARIABLES.items():
        monkeypatch.delenv(name, raising=False)
        if (tmp_path / area).is_dir():
            monkeypatch.setenv(name, str(tmp_path / area))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main(["mjf", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def given(site: Site) -> Site:
    """A site with a few values; before ``mjf``, which looks what there is."""
    site.write("machine", total_cpu=8, hs06=b"\xff\x1b[31m")
    site.write("job", job_id="4711", jobstart_secs=NOW, wall_limit_secs=600, allocated_CPU=4)
    return site


def test_every_option_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    for name, command in cli.command.commands.items():
        wanted = [f"sssjob mjf {name}", *(o for p in command.params if isinstance(p, click.Option)
                                          for o in p.opts if o.startswith("--"))]
        assert [w for w in wanted if w not in page] == []


@pytest.mark.parametrize("arguments", [["--json"], ["show", "--json"]])
def test_json_has_every_key(given: Site, mjf: Command, arguments: list[str]) -> None:
    code, out, err = mjf(*arguments)
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert [len(answer[a]) for a in VARIABLES] == [8, 17, 9]
    assert all({"state", "value"} <= r.keys() for a in VARIABLES for r in answer[a].values())
    assert answer["job"]["allocated_cpu"]["from"] == "allocated_CPU"
    assert answer["derived"]["remaining_by"] == "wall_limit_secs"


def test_show(given: Site, mjf: Command) -> None:
    code, out, err = mjf()
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert code == 0
    assert re.fullmatch(r"total_cpu +8 +processors +value", rows["total_cpu"])
    assert re.fullmatch(r"allocated_cpu +4 +processors +value +from allocated_CPU", rows["allocated_cpu"])
    assert "s since wall_limit_secs" in out and "mem_limit_MB" not in out
    assert "hs06: mjf-unreadable warning" in err and "\x1b" not in out + err


def test_what_a_pilot_says_and_what_follows(site: Site, request: pytest.FixtureRequest) -> None:
    site.write("job", allocated_cpu=4)
    site.write("status", used_CPU=3, last_job_start=NOW, first_exp_job_end=NOW, last_exp_job_end=NOW,
               last_max_job_end=NOW, add_uncom_time=10, add_final_exp_waste=20)
    mjf: Command = request.getfixturevalue("mjf")
    lines = mjf("show")[1].splitlines()
    assert [line.split()[0] for line in lines if line][-9:-1] == [
        "scratch_limit_bytes", "used_CPU", "last_job_start", "first_exp_job_end", "last_exp_job_end",
        "last_max_job_end", "add_uncom_time", "add_final_exp_waste"]
    number = r"-?\d+"
    assert re.fullmatch(f"pilot: expected to end in {number} s, at the latest in {number} s, draining wastes {number} "
                        f"cpu s, killing wastes {number} cpu s", lines[-1])
    answer = json.loads(mjf("show", "--json")[1])
    late = answer["now"] - NOW
    assert {name: value for name, value in answer["derived"].items() if "pilot" in name or "waste" in name} == {
        "pilot_remaining_expected_s": -late, "pilot_remaining_max_s": -late,
        "draining_waste_cpu_s": pytest.approx(20 - late), "kill_waste_cpu_s": pytest.approx(10 + 3 * late)}


def test_nothing_is_set(mjf: Command) -> None:
    code, out, err = mjf("show")
    assert (code, err, out.count("absent")) == (0, "", 15)
    assert mjf("check")[0] == 1
    assert mjf("wait-shutdown")[0] == 3


def test_check(given: Site, mjf: Command) -> None:
    given.write("job", Odd=1, other=1)
    code, out, _ = mjf("check")
    assert code == 1
    assert [line.split()[:3] for line in out.splitlines()][:2] == [
        ["cpu_limit_secs:", "mjf-missing", "error"], ["hs06:", "mjf-unreadable", "error"]]
    assert "Odd: mjf-name warning" in out and "other: mjf-name info" in out and "allocated_CPU: mjf-draft info" in out
    assert [json.loads(line)["key"] for line in mjf("check", "--json")[1].splitlines()][:1] == ["cpu_limit_secs"]


def test_check_of_what_is_fine(site: Site, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    site.write("machine", total_cpu=8, hs06=80, grace_secs=60)
    site.write("job", job_id="4711", jobstart_secs=NOW, wall_limit_secs=600, cpu_limit_secs=600, allocated_cpu=4,
               hs06_job=40, max_rss_bytes=1, max_swap_bytes=1, scratch_limit_bytes=1, grace_secs_job=60)
    mjf: Command = request.getfixturevalue("mjf")
    assert mjf("check", "--strict") == (0, "JOBSTATUS: mjf-not-set info is not set\n", "")
    monkeypatch.setenv("JOBFEATURES", f"{site.root}/job/")
    (site.root / "job" / "job_id").chmod(0o600)
    code, out, _ = mjf("check")
    assert (code, mjf("check", "--strict")[0]) == (0, 1)
    assert "JOBFEATURES: mjf-slash warning" in out and "job_id: mjf-mode warning mode 0600" in out


def test_write_show_and_remove(mjf: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.xml").write_text(JOB)
    code, out, err = mjf("write", "x y", "--from", "job.xml", "--set", "allocated_cpu=4", "--draft")
    assert (code, err) == (0, "")
    assert out == "".join(f"export {name}='{tmp_path}/x y/{area}'\n" for area, name in VARIABLES.items())
    assert {p.name: p.read_text() for p in (tmp_path / "x y" / "job").iterdir()} == {
        "job_id": "4711\n", "wall_limit_secs": "60\n", "max_rss_bytes": "2147483648\n", "mem_limit_MB": "2147\n",
        "allocated_cpu": "4\n", "allocated_CPU": "4\n"}
    code, out, err = mjf("write", "x y", "--unset", "job_id", "--set", "shutdowntime_job=5", "--json")
    assert set(json.loads(out)) == set(VARIABLES.values())
    assert re.fullmatch(r"shutdowntime_job: \d+, for 5 is past or nearer than the grace time\n", err)
    assert not (tmp_path / "x y" / "job" / "job_id").exists()
    assert int((tmp_path / "x y" / "job" / "shutdowntime_job").read_text()) > NOW
    assert mjf("write", "x y", "--remove") == (0, "", "")
    assert not (tmp_path / "x y").exists()


@pytest.mark.parametrize(("arguments", "code", "expected"), [
    (["write"], 2, "DIR"), (["write", ""], 2, "no directory"), (["write", "d", "--set", "x"], 2, "NAME=VALUE"),
    (["write", "d", "--set", "jobid=1"], 2, "no key of a"), (["write", "d", "--set", "job_id=a b"], 2, "'a b'"),
    (["write", "d", "--set", "used_CPU=1"], 2, "no key"), (["write", "d", "--remove", "--set", "job_id=1"], 2, "alone"),
    (["write", "d", "--from", "group.xml"], 2, "2 jobs"), (["write", "d", "--from", "none.xml"], 3, "No such file"),
    (["write", "d", "--from", "bad.xml"], 1, "SSS301"), (["write", "/proc/x"], 3, "/proc/x"),
    (["write", "full"], 3, "not empty"), (["write", "full", "--remove"], 3, "not removed"),
    (["serve"], 2, "no directory to serve"), (["serve", "--job", "gone"], 2, "--job: "),
    (["serve", "--job", "full", "--bind", "203.0.113.1"], 3, ""), (["serve", "--port", "70000"], 2, "70000"),
    (["show", "--metadata=/etc/passwd"], 2, "no http: or https: URL"),
    (["wait-shutdown", "--before", "nan"], 2, "no number"), (["wait-shutdown", "--timeout", "-1"], 2, "range"),
    (["shew"], 2, "shew"), (["--json", "show"], 2, "behind show"),
])
def test_refused(mjf: Command, tmp_path: Path, arguments: list[str], code: int, expected: str) -> None:
    (tmp_path / "group.xml").write_text("<JobGroup><Job><Id>a</Id></Job><Job><Id>b</Id></Job></JobGroup>")
    (tmp_path / "bad.xml").write_text("<Job><Colour>red</Colour></Job>")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis").write_text("all of it")
    answer = mjf(*arguments)
    assert (answer[0], expected in answer[2], "Traceback" in answer[2]) == (code, True, False)
    assert (tmp_path / "full" / "thesis").exists()


def test_wait_shutdown(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write("machine", shutdowntime="soon")
    site.write("job", jobstart_secs=NOW, wall_limit_secs=5000)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        site.clock.now += seconds
        if len(slept) == 3:
            site.write("machine", shutdowntime=NOW + 300)

    assert cli.wait(site.reader(), 100, False, 30, None, False, sleep) == 0
    captured = capsys.readouterr()
    assert captured.out == "100 s until shutdowntime\n"
    assert captured.err.count("shutdowntime: mjf-unreadable") == 1
    assert sum(slept) == 200 and max(slept) == 30
    (site.root / "machine" / "shutdowntime").unlink()
    assert cli.wait(site.reader(), 0, False, 30, 45, True, sleep) == 6
    assert cli.wait(site.reader(), 1000, True, 30, None, True, sleep) == 0
    assert json.loads(capsys.readouterr().out) == {"type": "result", "seconds": 1000, "by": "wall_limit_secs"}


def test_wait_shutdown_in_the_past(site: Site, mjf: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHINEFEATURES", str(site.write("machine", shutdowntime=NOW)))
    code, out, err = mjf("wait-shutdown", "--limit", "--interval", "1", "--timeout", "5")
    assert (code, "since shutdowntime" in out, "mjf-stale" in err) == (0, True, True)


@pytest.mark.parametrize("command", ["show", "check", "wait-shutdown"])
def test_metadata_are_asked_on_request(mjf: Command, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    asked: list[str] = []

    def metadata(url: str, limits: object) -> Mapping[Area, Place]:
        asked.append(url)
        return {"job": InMetadata({"job_id": "vm-7", "shutdowntime_job": "1000000000"})}

    monkeypatch.setattr(web, "metadata", metadata)
    assert "vm-7" not in mjf(command)[1] and asked == []
    code, out, err = mjf(command, "--metadata")
    assert asked == ["http://169.254.169.254/openstack/latest/meta_data.json"]
    assert mjf(command, "--metadata=http://127.0.0.1:9/other")[0] == code and asked[1:] == ["http://127.0.0.1:9/other"]
    assert {"show": "vm-7" in out, "check": "MACHINEFEATURES: mjf-not-set" in out,
            "wait-shutdown": "since shutdowntime_job" in out}[command], (code, out, err)


def test_metadata_that_are_not_there_are_told(mjf: Command) -> None:
    code, out, err = mjf("show", "--metadata=http://127.0.0.1:9/x")
    assert (code, err) == (0, "http://127.0.0.1:9/x: no Machine/Job Features in the metadata, or no answer\n")
    assert out.count("MACHINEFEATURES is not set") == 4


def test_serve_what_the_options_name(site: Site) -> None:
    machine, status = site.write("machine", total_cpu=8), site.write("status", used_CPU=2)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = ["--machine", machine, "--status", status, "--port", str(port), "--bind", "127.0.0.1"]
    with serving(words, {"JOBFEATURES": "http://elsewhere/job", "MACHINEFEATURES": "/no/such"}) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(2)]
        assert said == [f"export MACHINEFEATURES=http://127.0.0.1:{port}/machinefeatures",
                        f"export JOBSTATUS=http://127.0.0.1:{port}/jobstatus"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jobstatus/used_CPU", timeout=120) as answer:
            assert answer.read() == b"2\n"
        # the port is taken
        made = subprocess.run([sys.executable, "-m", "sssjob", "mjf", "serve", *map(str, words)], capture_output=True,
                              text=True, timeout=120)
        assert made.returncode == 3 and "Address already in use" in made.stderr


@contextmanager
def serving(words: Sequence[object], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES.values()} | dict(variables)
    process = subprocess.Popen([sys.executable, "-m", "sssjob", "mjf", "serve", *map(str, words)], env=environment,
                               text=True, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def test_serve(site: Site) -> None:
    place = site.write("job", job_id="4711")
    with serving([], {"JOBFEATURES": str(place)}) as process:
        assert process.stdout is not None
        name, _, url = process.stdout.readline().strip().removeprefix("export ").partition("=")
        assert (name, url.startswith("http://127.0.0.1:")) == ("JOBFEATURES", True)
        with urllib.request.urlopen(f"{url}/job_id", timeout=120) as answer:        # as DIRAC's pilot reads
            assert answer.read() == b"4711\n"
    assert process.returncode == 130


