"""Real clusters are asked what they offer, and what they say they offer, they take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(("options", "met", "taken"), [
    ("-N 3 -p batch --mem=4000 -t 60", True, True), ("-N 4 -p batch", False, False),
    ("-N 1 -p debug -t 10", True, True), ("-N 1 -p batch --gres=gpu:3", False, False),
    ("-N 1 -p batch -C even", True, True), ("-N 3 -p batch -C even", False, False),
    ("-N 1 -p debug -t 11", False, True), ("-N 1 -p closed", False, True),
])
def test_offers_are_what_the_machine_takes(options: str, met: bool, taken: bool, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts of ``route --site`` agree with sbatch, but where that takes a job that waits for ever: for a partition
    that is down, and for longer than its partition lets jobs run."""
    enter_lab("slurm", monkeypatch)
    (tmp_path / "lab.toml").write_text("name = 'lab'\nmanager = 'slurm'\nmachine = 'lab'\n")
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\n#SBATCH {options}\ntrue\n")
    routed = subprocess.run([sys.executable, "-m", "sssjob", "route", "-q", "job.sh", "--site", "lab.toml"],
                            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert routed.returncode == (0 if met else 1), routed.stdout
    tested = subprocess.run(["sbatch", "--test-only", "job.sh"], cwd=tmp_path, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=60)
    assert (tested.returncode == 0) == taken, tested.stdout


@pytest.mark.parametrize(("options", "met"), [
    ("-pe mpi 8 -q all.q", True), ("-pe mpi 9 -q all.q", False), ("-q short.q -l h_rt=60", True),
    ("-q short.q -l h_rt=61", False), ("-q none.q", False),
])
def test_offers_of_a_grid_engine(options: str, met: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts of ``route --site`` agree with ``qsub -w v``, which says whether an empty cluster could run a job."""
    enter_lab("sge", monkeypatch)
    (tmp_path / "lab.toml").write_text("name = 'lab'\nmanager = 'sge'\nmachine = 'lab'\n")
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\n#$ {options}\ntrue\n")
    routed = subprocess.run([sys.executable, "-m", "sssjob", "route", "-q", "job.sh", "--site", "lab.toml"],
                            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert routed.returncode == (0 if met else 1), routed.stdout
    tested = subprocess.run(["qsub", "-w", "v", "job.sh"], cwd=tmp_path, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=60)
    assert ("found suitable queue" in tested.stdout) == met, tested.stdout


@pytest.mark.parametrize("manager", ["slurm", "sge"])
def test_a_drafted_profile_works(manager: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that was made of a manager's answers finds its queues, and a job that is routed by it runs."""
    enter_lab(manager, monkeypatch)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    (tmp_path / "job.sh").write_text(
        f"#!/bin/sh\n{'#SBATCH -n 1 -t 1' if manager == 'slurm' else '#$ -N routed'}\nexit 3\n")

    def sssjob(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "sssjob", *words], cwd=tmp_path, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)

    drafted = sssjob("sites", "draft", manager, "--name", "lab", "-o", "lab.toml")
    assert drafted.returncode == 0, drafted.stdout
    routed = sssjob("route", "-q", "job.sh", "--sites", "lab.toml", "--starts")
    assert routed.returncode == 0 and "starts in" in routed.stdout, routed.stdout
    submitted = sssjob("submit", "-q", "job.sh", "--sites", "lab.toml")
    assert submitted.returncode == 0, submitted.stdout
    waited = sssjob("wait", "@1", "--timeout", "90")
    assert waited.returncode == 3, waited.stdout
    assert ' lab ' in sssjob("list", "--all", "--offline").stdout
