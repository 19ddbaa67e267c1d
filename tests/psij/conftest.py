"""An executor on its stand-in, for the files of one resource manager, which they name as ``MANAGER``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from psij import _handlers
from tests.psij.batch_support import Stand, quick_stand, stand_in
from tests.psij.managers import Manager


@pytest.fixture(autouse=True)
def _no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in most programs: the handler by which pytest limits the time of tests asks nothing of psij."""
    monkeypatch.setattr(_handlers, "_NUMBERS", ())


@pytest.fixture
def manager(request: pytest.FixtureRequest) -> Manager:
    """The resource manager of the file."""
    manager: Manager = request.module.MANAGER
    return manager


@pytest.fixture
def stand(manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Its executor: commands are programs, and jobs are processes."""
    with stand_in(manager.fake, manager.executor, tmp_path, monkeypatch) as stand:
        yield stand


@pytest.fixture
def quick(manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Its executor: commands run in this process, and jobs are none. As good where no script has to run."""
    with quick_stand(manager, tmp_path, monkeypatch) as made:
        yield made
