"""Two real and unlike sites take routed jobs while the router is killed: none is lost and none runs twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab

JOBS = 8
JOB = """<Job><Id>{0}</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo {0} >> ran'</Arguments>
<Requested><Processors>1</Processors><Duration>60</Duration></Requested></Job>"""


def test_a_router_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second one is refused by Slurm, which offers a partition that is not there, and goes to Grid Engine."""
    for manager in ("slurm", "sge"):
        enter_lab(manager, monkeypatch)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.chdir(tmp_path)

    def sssjob(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "sssjob", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240)

    for manager in ("slurm", "sge"):
        drafted = sssjob("sites", "draft", manager, "--name", manager, "-o", f"{manager}.toml")
        assert drafted.returncode == 0, drafted.stdout
    Path("lie.xml").write_text("<Job><Id>gone</Id><Queue>gone</Queue><NodeCount>1</NodeCount><Processors>1</Processors>"
                               "<Duration>60</Duration></Job>")
    draw = random.Random(19)
    for number in range(JOBS):
        name = f"job{number}"
        Path(f"{name}.xml").write_text(JOB.format(name))
        sites = ["--offers", "slurm.toml=lie.xml", "--sites", "sge.toml"] if number % 2 else [
            "--sites", "slurm.toml,sge.toml"]
        router = subprocess.Popen([sys.executable, "-m", "sssjob", "submit", "-q", f"{name}.xml", *sites],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if number % 4 in (1, 2):
            time.sleep(draw.uniform(2.0, 8.0))
            router.kill()
        router.wait()
    until = time.monotonic() + 200
    while time.monotonic() < until:
        lines = sssjob("list", "--all", "--json").stdout.splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        if all(record.get("outcome") for record in records if "key" in record):
            break
    done = [record["id"] for record in records if record.get("outcome") == "done"]
    ran = Path("ran").read_text().split()
    assert sorted(ran) == sorted(done)
    assert len(set(ran)) == len(ran)
    assert {"job0", "job3", "job4", "job7"} <= set(ran)         # whose router was not killed
    assert {record["site"] for record in records if record.get("outcome") == "failed"} <= {"slurm"}
    assert {record["site"] for record in records if record.get("outcome") == "done"} == {"slurm", "sge"}
