"""What a submission promised, done by other clients on real clusters: files, late accounting, hooks at the end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.run.on_end import hook_of
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, desk_on
from tests.run.test_staging import clean, job, left, out, steps

pytestmark = pytest.mark.lab
REAL = {"real": True, "queue_polling_interval": 2, "initial_queue_polling_delay": 0.5, "accounting_delay": 10,
        "lost_after": 30}
ACCOUNTING = {"slurm": "sacct", "sge": "qacct"}


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as made:
        yield made


def test_files_come_back_after_submit_and_wait(desk: Desk) -> None:
    desk.submit(job("echo result > o; echo rest > scrap; sleep 1", out("o", "back", mode="MOVE"), clean("scrap"),
                    folder=desk.folder))
    assert desk.wait("a", seconds=120) == {"a": ("done", 0)}
    assert (desk.text("back"), left(desk)) == ("result\n", [])
    assert [step for step in steps(desk, "a") if step != "items"] == ["begun", "fetched", "done"]


def test_a_command_is_run_at_the_end(desk: Desk) -> None:
    desk.submit(job("exit 3", folder=desk.folder))
    tell = hook_of("/bin/sh -c 'echo $SSSJOB_EXIT_CODE $SSSJOB_NATIVE_ID >> told'")
    jobs, done = desk.client().wait(["a"], 120, [tell])
    assert done and desk.text("told") == f"3 {jobs[0].row.native_id}\n"


def test_accounting_that_was_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where its daemon is down: the command fails until it is back."""
    name = ACCOUNTING[desk.executor]
    (desk.folder / "bin").mkdir()
    broken = desk.folder / "bin" / name
    broken.write_text("#!/bin/sh\necho 'Unable to contact the database: Connection refused' >&2\nexit 1\n")
    broken.chmod(0o755)
    with monkeypatch.context() as away:
        away.setenv("PATH", str(broken.parent), prepend=":")
        desk.submit(job("n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done; exit 3", folder=desk.folder))
        assert desk.wait("a", seconds=120) == {"a": ("failed", 3)}
        assert desk.client().refresh([]).silent == [desk.executor]
    assert desk.job("a").plan.job.value("CpuDuration") is None
    for _ in range(20):         # accounting itself may be some seconds behind
        refreshed = desk.client().refresh([])
        if refreshed.facts:
            break
        subprocess.run(["sleep", "1"], check=True)
    (added,) = refreshed.facts.values()
    assert "CpuDuration" in added and refreshed.silent == []
    after = desk.job("a")
    assert (after.word, after.plan.job.value("ExitCode")) == ("failed", 3)
    assert after.evidence["cpu_seconds"].name == name and after.evidence["exit_code"].name == "exit-file"
    assert desk.client().refresh(["a"]).facts == {}
