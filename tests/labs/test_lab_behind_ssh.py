"""A real Slurm and a real Grid Engine behind a real SSH server: jobs by ``--site``, and lines that are cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.psij.test_batch_labs import LABS, enter_lab

pytestmark = pytest.mark.lab

HERE = Path(__file__).parent
PROFILE = """name = '{name}'
manager = '{manager}'
[ssh]
host = 'lab-{name}'
setup = '. {lab}/env.sh'
directory = '{there}'
[run]
work_directory = '{there}/work'
polling_interval = 2
"""


@dataclass
class Away:
    """The sites, and the line to them. there: the folder of their jobs."""

    there: Path

    def sssjob(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "sssjob", *words], capture_output=True, text=True, timeout=600)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-m", "sssjob", *words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def cut(self) -> None:
        """End the server and all logins."""
        subprocess.run([HERE / "ssh-down", os.environ["SSSJOB_LAB_SSH"]], check=True)

    def mend(self) -> None:
        subprocess.run([HERE / "ssh-up", os.environ["SSSJOB_LAB_SSH"]], check=True)

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.sssjob("list", "--all", "--json").stdout.splitlines()]

    def until(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.5)


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    """No command of a manager is on the path here."""
    enter_lab("ssh", monkeypatch)
    if not all(name in os.environ for name in LABS.values()):
        pytest.skip("no slurm or no sge lab")
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    there = tmp_path / "there"
    there.mkdir()
    for name in ("slurm", "sge"):
        Path(f"{name}.toml").write_text(PROFILE.format(name=name, manager=name, lab=os.environ[LABS[name]],
                                                       there=there))
    with tempfile.TemporaryDirectory(prefix="l", dir="/tmp") as short:      # of sockets
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        away = Away(there)
        yield away
        away.mend()
        for name in ("slurm", "sge"):
            subprocess.run(["ssh", "-o", f"ControlPath={short}/sssjob/%C", "-O", "exit", f"lab-{name}"], check=False,
                           stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("site", ["slurm", "sge"])
def test_by_site(away: Away, site: str) -> None:
    """All that one does with jobs, and nothing is left there but the scripts."""
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH -n 1 -t 1\n#SBATCH -o out.txt\npwd; cat; exit 3\n")
    checked = away.sssjob("sites", "check", f"{site}.toml").stdout
    assert "answer" not in checked and "ssh" not in checked
    offers = away.sssjob("offers", f"{site}.toml")
    assert offers.returncode == 0 and "<Queue>" in offers.stdout
    routed = away.sssjob("route", "-q", "job.sh", "--sites", f"{site}.toml", "--starts")
    assert routed.stdout.startswith(f"1. {site}, ") and "starts in " in routed.stdout, routed
    ran = away.sssjob("run", "-q", "job.sh", "--site", f"{site}.toml")
    assert ran.returncode == 3, ran.stderr
    assert (away.there / "out.txt").read_text() == f"{away.there}\n"
    assert "<ExitCode>3</ExitCode>" in ran.stdout and "<Node>" in ran.stdout
    assert sorted(os.listdir()) == ["job.sh", "sge.toml", "slurm.toml"]
    Path("long.xml").write_text("<Job><Id>long</Id><Executable>/bin/sleep</Executable><Arguments>600</Arguments>"
                                "<Requested><Duration>900</Duration></Requested></Job>")
    submitted = away.sssjob("submit", "-q", "long.xml", "--site", f"{site}.toml")
    assert (submitted.returncode, submitted.stdout) == (0, "long\n"), submitted.stderr
    away.until(lambda: "<State>Running</State>" in away.sssjob("status", "long").stdout)
    cancelled = away.sssjob("cancel", "long", "--timeout", "60")
    assert cancelled.returncode == 0, cancelled.stderr
    Path("many.xml").write_text("<Job><Id>many</Id><Executable>/bin/sh</Executable>"
                                "<Arguments>-c 'exit $SLURM_ARRAY_TASK_ID'"
                                "</Arguments><Requested><Duration>60</Duration></Requested>"
                                "<Extension type='Scheduler' name='Array'>0-3</Extension></Job>")
    assert away.sssjob("submit", "-q", "many.xml", "--site", f"{site}.toml").returncode == 0
    away.sssjob("wait", "many", "--timeout", "120")
    records = away.records()
    assert [record["outcome"] for record in records] == ["failed", "canceled", "done", "failed", "failed", "failed"]
    assert {record["site"] for record in records} == {site}
    assert len({record["native_id"].split("_")[0].split(".")[0] for record in records[2:]}) == 1
    assert [path.name for path in (away.there / "work" / site).iterdir() if path.suffix != ".script"] == []


@pytest.mark.parametrize("site", ["slurm", "sge"])
def test_staged_files(away: Away, site: str) -> None:
    """A folder goes there and comes back, over lines that are cut while that is done."""
    folder = Path("input")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "it's \n").write_text("small\n")
    (folder / "link").symlink_to("deep")
    content = os.urandom(64 << 20)
    (folder / "large").write_bytes(content)
    (away.there / "job").mkdir()
    Path("job.xml").write_text(
        "<Job><Id>staged</Id><Executable>/bin/sh</Executable><Arguments>-c 'cp data/large back; ls -R data'</Arguments>"
        "<OutputFile>out.txt</OutputFile><InitialWorkingDirectory>job</InitialWorkingDirectory>"
        "<Requested><Duration>60</Duration></Requested>"
        '<Extension type="PSIJ" name="StageIn">{"source": "input", "target": "data"}</Extension>'
        '<Extension type="PSIJ" name="StageOut">{"source": "back", "target": "results/large", "mode": "MOVE"}'
        '</Extension>'
        '<Extension type="PSIJ" name="StageOut">{"source": "data", "target": "results/data"}</Extension>'
        '<Extension type="PSIJ" name="Cleanup">data</Extension></Job>')
    submits = away.begin("submit", "-q", "job.xml", "--site", f"{site}.toml")
    away.until(lambda: any((away.there / "job").rglob(".psij-*")) or submits.poll() is not None)
    away.cut()
    time.sleep(2)
    away.mend()
    errors = submits.communicate(timeout=600)[1]
    assert submits.returncode in (0, 7), errors     # 7: all was there already, and the line was cut a little later
    waits = away.begin("wait", "staged", "--timeout", "200")
    away.until(lambda: any(Path("results").glob(".psij-*")) or waits.poll() is not None)
    away.cut()
    time.sleep(2)
    away.mend()
    waits.communicate(timeout=600)
    assert waits.returncode == 0 or away.sssjob("wait", "staged", "--timeout", "200").returncode == 0
    assert Path("results/large").read_bytes() == content == Path("results/data/large").read_bytes()
    assert Path("results/data/deep/it's \n").read_text() == "small\n"
    assert os.readlink("results/data/link") == "deep"
    assert sorted(os.listdir(away.there / "job")) == ["job-staged.err", "out.txt"]
    assert [path for path in Path(".").rglob(".psij-*")] == []


def test_a_line_that_is_cut(away: Away) -> None:
    """While it is, jobs are as they were last known; in the end each has run once, and each end is known."""
    for number in range(6):
        Path(f"{number}.xml").write_text(
            f"<Job><Id>job{number}</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo {number} &gt;&gt; ran; "
            f"while [ ! -f go ]; do sleep 0.2; done; exit {number}'</Arguments>"
            "<Requested><Duration>600</Duration></Requested></Job>")
        site = ("slurm", "sge")[number % 2]
        assert away.sssjob("submit", "-q", f"{number}.xml", "--site", f"{site}.toml").returncode == 0
    waits = away.begin("wait", "job0", "--timeout", "200")
    ran = away.there / "ran"
    away.until(lambda: ran.exists() and len(ran.read_text().split()) == 6)
    away.until(lambda: {record["state"] for record in away.records()} == {"Running"})
    away.cut()
    late = away.begin("submit", "-q", "0.xml", "--site", "slurm.toml")
    assert "cannot be reached" in late.communicate(timeout=60)[1] and late.returncode == 3
    shown = away.sssjob("list", "--all", "--timeout", "10")
    assert "failed" not in shown.stdout and shown.returncode == 4, shown
    away.until(lambda: "has not answered since" in away.sssjob("status", "job0", "--timeout", "2").stderr, 60)
    (away.there / "go").touch()
    time.sleep(3)           # they end
    assert all(record["outcome"] is None for record in away.records())
    away.mend()
    waits.communicate(timeout=200)
    assert waits.returncode == 0
    for number in range(6):
        assert away.sssjob("wait", f"job{number}", "--timeout", "120").returncode == number
    assert sorted(ran.read_text().split()) == list("012345")
    assert [record["outcome"] for record in away.records()] == ["done", *["failed"] * 5]
