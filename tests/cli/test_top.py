"""``sssjob top``: what it counts and guesses, its tables, and the live view by its own pilot."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sssjob.cli._top_tables import cells, text_of
from sssjob.run.client import Client
from sssjob.run.journal import Journal, open_journal
from sssjob.run.listing import Details
from sssjob.run.overview import overview
from sssjob.run.rows import Row
from tests.cli.conftest import Command

NOW = 1000.0
JOBS = [("a", "Completed", "done", None, Details("q", 100.0, 200.0, 300.0)),
        ("b", "Completed", "failed", None, Details("q", 100.0, 200.0, 500.0)),
        ("c", "Running", None, None, Details("q", 100.0, 900.0)),
        ("d", "Idle", None, "Priority", Details("q", 100.0)), ("e", "Hold", None, "Priority", Details("q", 100.0)),
        ("f", "Idle", None, "Resources", Details()), ("g", "Completed", "skipped", None, Details())]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Journal]:
    """A group of seven jobs on a manager that is not there."""
    with open_journal(tmp_path / "journal.db") as shelf:
        rows = [Row(0, n, name, None, name, None, "", state, outcome, message=message)
                for n, (name, state, outcome, message, _) in enumerate(JOBS)]
        entry = shelf.add("t", "slurm", "<JobGroup/>", tmp_path, "Reject", "grp\x1b[2J", rows)
        for n, (*_, details) in enumerate(JOBS):
            entry.detail(n, lambda details=details: details)  # type: ignore[misc]
        entry.flush()
        yield shelf


def test_counts_and_a_guess(shelf: Journal) -> None:
    """The mean of those that ended is 200 s: 100 s are left of c, 200 s of each of three, one at a time."""
    (one,) = overview(shelf, NOW)
    assert (one.queued, one.running, one.done, one.failed, one.left, one.why, one.remaining) == (
        3, 1, 1, 1, 1, "Priority", 700.0)
    assert cells(one) == ["@1", "grp\x1b[2J", "3", "1", "1", "1", "1", "~0:11:40", "Priority", "slurm"]


def test_nothing_to_guess_from(tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal.db") as journal:
        journal.add("t", "slurm", "<Job/>", tmp_path, "Reject", None, [Row(0, 0, "a", None, "a")])
        (one,) = overview(journal, NOW)
        assert (one.name, one.remaining, cells(one)[7]) == ("a", None, "")


def test_tables(shelf: Journal, sssjob: Command, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(overview(shelf, NOW))
    assert "\x1b" not in text and "4 jobs: 2 Idle, 1 Hold, 1 Running" in text
    assert sssjob("top", "--once") == (0, "no job waits or runs\n", "")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("sssjob.cli.top.time.sleep", sleep)
    code, out, _ = sssjob("top", "--interval", "0.5")
    assert (code, out.count("no job waits or runs"), pauses) == (130, 2, [0.5, 0.5])
    monkeypatch.setattr("sssjob.cli.top.refreshed", lambda client: overview(shelf, NOW))
    assert [json.loads(line)["id"] for line in sssjob("top", "--json").out.splitlines()] == list("abcdefg")


def test_the_live_view(shelf: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tables are filled; a key asks first, and only y has it done."""
    pytest.importorskip("textual")
    from textual.widgets import DataTable

    from sssjob.cli import _top

    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(_top, "refreshed", lambda client: overview(shelf, NOW))

    def ask(app: _top.Top, wish: str, key: str) -> str:
        asked.append((wish, key))
        return f"{key}: {wish}"

    monkeypatch.setattr(_top.Top, "asked", ask)
    app = _top.Top(Client(shelf), 0.05)

    async def play() -> None:
        async with app.run_test() as pilot:
            until = time.monotonic() + 30
            jobs = app.query_one("#jobs", DataTable)
            while jobs.row_count < 4 and time.monotonic() < until:
                await pilot.pause(0.05)
            assert (jobs.row_count, app.query_one("#groups", DataTable).row_count) == (4, 1)
            # what is looked for stands in the first 80 columns; the others were cut off there, time and why too
            assert [str(column.label) for column in jobs.ordered_columns][:6] == [
                "id", "key", "native id", "state", "time", "why"]
            await pilot.press("down", "h", "n")
            await pilot.press("c", "y")
            await pilot.press("tab", "r", "y", "enter")
            await pilot.pause()
            assert jobs.row_count == 7          # all of the group
            await pilot.press("enter")
            await pilot.pause()
            assert jobs.row_count == 4
            while len(asked) < 2 and time.monotonic() < until:
                await pilot.pause(0.05)
            await pilot.press("q")

    asyncio.run(play())
    assert asked == [("cancel", "@1.4"), ("release", "@1")]


def test_an_answer_is_about_all_jobs_of_a_group(shelf: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group of which jobs were held, "a: it has ended" was told, of its first job."""
    pytest.importorskip("textual")
    from sssjob.cli import _top

    answers: list[dict[str, str]] = [{}, {"hold": ""}, {"hold": ""}]
    jobs = [SimpleNamespace(ended=not each, answers=each, plan=SimpleNamespace(label="a")) for each in answers]
    monkeypatch.setattr(Client, "ask", lambda self, wish, keys, seconds: jobs[:1] if keys == ["@1.1"] else jobs)
    app = _top.Top(Client(shelf), 0.05)
    assert app.asked("hold", "@1.1") == "a: it has ended"
    assert app.asked("hold", "@1") == "@1: held (2 of 3 jobs); it has ended (1 of 3 jobs)"
    assert _top._with_short_name(["@1", "first-job-of-twelve"], 1, 12) == ["@1", "first-…welve"]
    assert _top._with_short_name(["first-job-of", "@1"], 0, 12) == ["first-job-of", "@1"]


def test_the_live_view_of_many_jobs(shelf: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more are drawn than keys can wait for, and of the same rows only cells that have changed."""
    pytest.importorskip("textual")
    from textual.widgets import DataTable, Static
    from textual.widgets.data_table import ColumnKey

    from sssjob.cli import _top

    monkeypatch.setattr(_top, "_MOST", 3)
    monkeypatch.setattr(_top.Top, "looking", lambda self: None)
    changed: list[tuple[str, str]] = []
    update, add = DataTable.update_cell, DataTable.add_row

    def update_cell(self: DataTable[object], row: str, column: ColumnKey, value: object, **more: bool) -> None:
        changed.append((row, str(value)))
        update(self, row, column, value, **more)

    def add_row(self: DataTable[object], *texts: object, key: str) -> None:
        changed.append((key, "row"))
        add(self, *texts, key=key)

    monkeypatch.setattr(DataTable, "update_cell", update_cell)
    monkeypatch.setattr(DataTable, "add_row", add_row)

    async def play() -> None:
        async with (app := _top.Top(Client(shelf), 1.0)).run_test():
            jobs, overviews = app.query_one("#jobs", DataTable), overview(shelf, NOW)
            app.show(overviews)
            assert changed == [("@1", "row"), ("@1.3", "row"), ("@1.4", "row"), ("@1.5", "row")]
            assert str(app.query_one("#told", Static).render()) == (
                "1 more jobs are not shown here; `sssjob list` has them")
            jobs.move_cursor(row=2)
            changed.clear()
            app.tell("an answer")
            overviews[0].jobs[3].row.state = "Running"
            app.show(overviews)
            assert ("@1.4", "Running") in changed and not {key for key, _ in changed} - {"@1.3", "@1.4"}
            assert jobs.cursor_row == 2 and str(app.query_one("#told", Static).render()) == "an answer"
            overviews[0].jobs[2].row.outcome = "done"
            app.show(overviews)
            assert [str(jobs.get_row_at(n)[1]) for n in range(jobs.row_count)] == ["@1.4", "@1.5", "@1.6"]

    asyncio.run(play())
