"""Executors on stand-ins whose commands run in this process and whose jobs are none: a fault costs no second."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forks import Command
from tests.psij.batch_support import Stand, quick_stand
from tests.psij.managers import MANAGERS, Manager

__all__ = ["bare"]


def bare(folder: Path) -> dict[str, str]:
    """An environment for programs of their own, with the stand-in's commands in that folder."""
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Slurm."""
    with quick_stand(MANAGERS["slurm"], tmp_path, monkeypatch) as stand:
        yield stand


@pytest.fixture(params=MANAGERS)
def kind(request: pytest.FixtureRequest) -> Manager:
    """Each of the resource managers."""
    return MANAGERS[request.param]


@pytest.fixture
def each(kind: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Its executor."""
    with quick_stand(kind, tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def carried_out(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Carries out the steps of a plan (``plans``) on Slurm; what was wrong, the jobs, and the native jobs."""
    def act(*steps: dict[str, Any], manager: str = "slurm", **settings: Any) -> dict[str, Any]:
        (tmp_path / "plan").write_text(json.dumps({"manager": manager, "settings": settings, "steps": steps}))
        with Command(["--plan", str(tmp_path / "plan"), str(tmp_path / "place")], tmp_path, os.environ,
                     words=("module", "tests.faults.plans")) as running:
            out, err = running.communicate(timeout=200)
        assert running.returncode == 0, err
        found: dict[str, Any] = json.loads(out)
        return found
    return act
