"""Desks of the tests that run jobs: a folder with a journal, at which clients work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.support import Desk, desk_on


@pytest.fixture(params=["local", "slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on each executor that dependencies, attempts and ends have to be alike on."""
    with desk_on(request.param, tmp_path, monkeypatch) as desk:
        yield desk


@pytest.fixture(params=["slurm", "sge"])
def managed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on each resource manager that does what its own commands say."""
    with desk_on(request.param, tmp_path, monkeypatch) as managed:
        yield managed


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on the stand-in of Slurm."""
    with desk_on("slurm", tmp_path, monkeypatch) as slurm:
        yield slurm
