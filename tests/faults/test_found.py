"""What random plans found, each with what showed it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sssjob.run import journal
from tests.psij.batch_support import Stand, ended, runs


def test_a_journal_that_is_made_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan 12: between two questions another client made it, and it was taken for a file of somebody else."""
    path, connect = tmp_path / "j.db", sqlite3.connect
    other = threading.Thread(target=lambda: journal.open_journal(path).close())

    class Slow(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "PRAGMA user_version" and threading.current_thread() is not other and not other.ident:
                other.start()
                other.join(0.3)
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, factory=Slow, **more))
    with journal.open_journal(path) as made:
        assert made.rows() == []
    other.join()


def test_an_exit_file_that_is_later_than_accounting(stand: Stand) -> None:
    """Plan 69: sacct says 72, which may be 200; the exit file knows, and was a moment behind."""
    stand.executor.config.accounting_delay = 1.0
    stand.lab.set(forget=0, late=0.3)
    job = runs(stand)
    stand.lab.end("1", 200)
    assert ended(job).exit_code == 200


def test_an_answer_without_id_where_nothing_can_be_asked(carried_out: Callable[..., dict[str, Any]]) -> None:
    """Plan 131: NQSV cannot be asked by tag; the job's own record of its start tells that it is there."""
    answers = carried_out({"do": "fault", "command": "qsub", "times": 1, "after": True, "stdout": "warning\n"},
                          {"do": "submit", "jobs": [{"script": "sleep 0.2; exit 3"}]}, manager="nqsv")
    assert answers["wrong"] == [] and [job[2:] for job in answers["jobs"]] == [["failed", 3]]
