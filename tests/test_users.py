"""Who the user is, also where the system has no name for the number: in a container, say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from psij.executors.batch.lsf import LsfExecutorConfig, LsfJobExecutor
from sssjob import users


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable names the user, and no list of users knows the number."""
    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    users._user_name.cache_clear()
    yield
    users._user_name.cache_clear()


@pytest.mark.usefixtures("nameless")
def test_a_number_stands_for_a_name(tmp_path: Path) -> None:
    """In the commands of a resource manager too: they ended in a traceback."""
    command = LsfJobExecutor(config=LsfExecutorConfig(work_directory=tmp_path)).get_list_command()
    assert (users.user_name(), command[command.index("-u") + 1]) == (str(os.getuid()), str(os.getuid()))


def test_a_variable_names_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "amy")
    assert users.user_name() == "amy"
