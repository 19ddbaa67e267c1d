"""``sssjob executors --check``: which executors can work here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sssjob.cli import main
from tests.fakes import lab, slurm


def test_which_can_work_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                             capfd: pytest.CaptureFixture[str]) -> None:
    """A manager that answers, and the same when it does not."""
    commands = lab.install(str(slurm.__file__), slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin")
    monkeypatch.setattr("psij.JobExecutor.get_executor_names", lambda: {"slurm", "local"})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    try:
        assert main(["executors", "--check", "--json", "--timeout", "60"]) == 0
        found = {row["executor"]: row for row in map(json.loads, capfd.readouterr().out.splitlines())}
        assert found["local"] == {"executor": "local", "works": True, "why": None}
        assert found["slurm"]["works"] is True
        commands.fault("squeue", times=-1, exit=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
        assert main(["executors", "--check", "--timeout", "60"]) == 0
        words_by_name = dict(line.split(None, 1) for line in capfd.readouterr().out.splitlines())
        assert words_by_name["slurm"] == "slurm_load_jobs error: Unable to contact slurm controller"
        assert words_by_name["local"] == "works"
    finally:
        commands.close()


def test_timeout_is_about_check(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["executors", "--timeout", "3"]) == 2
    assert "--timeout is about --check" in capfd.readouterr().err
