"""Several task groups on a real Slurm: one heterogeneous job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.labs.test_lab_dependencies import REAL, said
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import after, desk_on, group, shell

pytestmark = pytest.mark.lab
TEXT = """<Job><Id>h</Id><Environment export="{export}"/><Requested><Duration>60</Duration></Requested>{more}
<TaskGroup><TaskCount>1</TaskCount><Executable>/bin/sh</Executable>
  <Arguments>-c 'echo "master $SLURM_PROCID $V ${{V}}"; pwd; exit {first}'</Arguments>
  <Environment><Variable name="V">a  b</Variable></Environment></TaskGroup>
<TaskGroup><TaskCount>2</TaskCount><Requested><NodeCount>2</NodeCount></Requested><Executable>/bin/sh</Executable>
  <Arguments>-c 'echo "worker $SLURM_PROCID $V"; echo err >&amp;2; exit {second}'</Arguments>
  <InitialWorkingDirectory>sub</InitialWorkingDirectory><OutputFile>w.out</OutputFile>
  <ErrorFile redirectList="Merge"/></TaskGroup></Job>"""


def text(first: int = 0, second: int = 0, more: str = "", export: bool = True) -> str:
    return TEXT.format(first=first, second=second, more=more, export=str(export).lower())


@pytest.mark.parametrize("export", [True, False])
def test_groups_run_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: bool) -> None:
    enter_lab("slurm", monkeypatch)
    (tmp_path / "sub").mkdir()
    with desk_on("slurm", tmp_path, monkeypatch, **REAL) as desk:
        outcome = desk.run(text(export=export))
        assert [(job.word, job.exit_code) for job in outcome.jobs] == [("done", 0)]
        assert desk.text("job-h.1.out") == f"master 0 a  b a  b\n{tmp_path}\n"
        assert sorted(desk.text("sub/w.out").splitlines()) == ["err", "err", "worker 1 ", "worker 2 "]
        row = desk.job("h").row
        shown = said("sacct", "-X", "-n", "-P", "-o", "JobID,NCPUS,NNodes", "-j", str(row.native_id)).split()
        assert shown == [f"{row.native_id}+0|1|1", f"{row.native_id}+1|2|2"]
        ((job, _),) = outcome.document.jobs()
        each = [[block.value(tag) for tag in ("Processors", "NodeCount")] for group in job.task_groups
                for block in group.containers("Delivered")]
        (whole,) = job.containers("Delivered")
        assert each == [[1, 1], [2, 2]] and whole.value("Processors") == 3
        assert [path.name for path in (tmp_path / "work").rglob("*.*") if path.suffix != ".sh"] == []


def test_the_worst_end_is_that_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_lab("slurm", monkeypatch)
    (tmp_path / "sub").mkdir()
    with desk_on("slurm", tmp_path, monkeypatch, **REAL) as desk:
        assert desk.run(text(second=7)).exit_code == 7


def test_a_client_that_is_killed_and_a_dependency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next client finds all parts; a job that depends on it waits for the whole."""
    enter_lab("slurm", monkeypatch)
    (tmp_path / "sub").mkdir()
    with desk_on("slurm", tmp_path, monkeypatch, **REAL) as desk:
        both = group(shell("sleep 1"), text(more="<Dependency>a</Dependency>"), shell("true", after("h"), name="z"))
        desk.killed(lambda: desk.submit(both))
        assert desk.wait("g") == {"a": ("done", 0), "h": ("done", 0), "z": ("done", 0)}
        assert desk.told("z")["slurm.dependency"] == f"afterok:{desk.job('h').row.native_id}"
        assert desk.told("h")["slurm.dependency"] == f"afterok:{desk.job('a').row.native_id}"


def test_one_is_cancelled_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_lab("slurm", monkeypatch)
    (tmp_path / "sub").mkdir()
    with desk_on("slurm", tmp_path, monkeypatch, **REAL) as desk:
        desk.submit(text(more="<Hold>User</Hold>"))
        jobs, done = desk.client().cancel(["h"], 60)
        assert done and jobs[0].word == "canceled"
        listed = subprocess.run(["squeue", "-h", "-o", "%i"], capture_output=True, text=True).stdout
        assert str(jobs[0].row.native_id) not in listed
