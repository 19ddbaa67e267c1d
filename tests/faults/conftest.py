"""Executors on stand-ins whose commands run in this process and whose jobs are none: a fault costs no second."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.batch.cobalt import CobaltJobExecutor
from psij.executors.batch.htcondor import HTCondorJobExecutor
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_classic import PBSClassicJobExecutor
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import cobalt, htcondor, pbs, pbs_classic, sge, slurm
from tests.psij.batch_support import Stand, stand_in

__all__ = ["KINDS", "Kind", "bare"]


def bare(folder: Path) -> dict[str, str]:
    """An environment for programs of their own, with the stand-in's commands in that folder."""
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}


@dataclass(frozen=True)
class Kind:
    """A resource manager: what stands in for it, its executor, and the commands to submit, to ask for states, for ends,
    and to cancel."""

    fake: ModuleType
    executor: type[BatchSchedulerExecutor]
    submit: str
    queue: str
    ends: tuple[str, ...]
    cancel: str


KINDS = {
    "slurm": Kind(slurm, SlurmJobExecutor, "sbatch", "squeue", ("sacct", "scontrol"), "scancel"),
    "sge": Kind(sge, SGEJobExecutor, "qsub", "qstat", ("qacct",), "qdel"),
    "pbs": Kind(pbs, PBSJobExecutor, "qsub", "qstat", ("qselect",), "qdel"),
    "pbs_classic": Kind(pbs_classic, PBSClassicJobExecutor, "qsub", "qstat", (), "qdel"),
    "cobalt": Kind(cobalt, CobaltJobExecutor, "qsub", "qstat", (), "qdel"),
    "htcondor": Kind(htcondor, HTCondorJobExecutor, "condor_submit", "condor_q", ("condor_history",), "condor_rm")}


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Slurm."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, virtual=True) as made:
        yield made


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each of several resource managers."""
    return KINDS[request.param]


@pytest.fixture
def each(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Its executor."""
    with stand_in(kind.fake, kind.executor, tmp_path, monkeypatch, virtual=True) as made:
        yield made


@pytest.fixture
def carried_out(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Carries out the steps of a plan (``plans``) on Slurm; what was wrong, the jobs, and the native jobs."""
    def act(*steps: dict[str, Any], manager: str = "slurm", **settings: Any) -> dict[str, Any]:
        (tmp_path / "plan").write_text(json.dumps({"manager": manager, "settings": settings, "steps": steps}))
        done = subprocess.run([sys.executable, "-m", "tests.faults.plans", "--plan", tmp_path / "plan",
                               tmp_path / "place"], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    return act
