"""The list of jobs: its filters, its order, and that it says what the documents say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sssjob.errors import UnknownJobError, UsageError
from sssjob.run.journal import Journal, open_journal
from sssjob.run.listing import COLUMNS, Details, Filter, Listed, listed, totals, write_details
from sssjob.run.routing import open_routes
from sssjob.run.rows import Row
from tests.gate import until_there
from tests.run.support import Desk, after, desk_on, eventually, group, shell

JOBS = {    # id -> executor, group, State, outcome, details
    "a1": ("slurm", "g", "Running", None, Details("batch", 100.0, 110.0, None, 2)),
    "a2": ("slurm", "g", "Idle", None, Details("batch", 200.0, None, None, None)),
    "b": ("sge", None, "Completed", "failed", Details("all.q", 50.0, 60.0, 90.0, 1)),
    "c[1]": ("local", None, "Hold", None, None),
    "d": ("slurm", None, "Completed", "skipped", Details())}


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as shelf:
        for name, (executor, group_id, state, outcome, details) in JOBS.items():
            row = Row(0, 0, name, None, name, executor=executor, state=state, outcome=outcome)
            entry = shelf.add(name, executor, "<Job/>", tmp_path, "Reject", group_id, [row])
            if details is not None:
                entry.detail(0, lambda details=details: details)  # type: ignore[misc]
            entry.flush(ended=outcome is not None)
        yield shelf


@pytest.mark.parametrize("name", ["@" + "9" * 20, "@1." + "9" * 20, "@" + "9" * 5000, "@\u0663", "@1.", "@x"])
def test_a_place_that_no_job_can_have_names_none(shelf: Journal, name: str) -> None:
    """A command with more digits than SQLite counts in ended with an internal error."""
    with pytest.raises(UnknownJobError):
        shelf.find(name)


def names(journal: Journal, **chosen: Any) -> list[str]:
    return [str(one.row.id) for one in listed(journal, Filter(**chosen))]


@pytest.mark.parametrize(("chosen", "expected"), [
    ({}, ["a1", "a2", "c[1]"]), ({"ended": True}, list(JOBS)),
    ({"states": ("running", "HOLD")}, ["a1", "c[1]"]), ({"states": ("Completed",)}, ["b", "d"]),
    ({"states": ("skipped", "idle")}, ["a2", "d"]), ({"executor": "SLURM"}, ["a1", "a2"]),
    ({"name": "a?"}, ["a1", "a2"]), ({"name": "c[1]"}, ["c[1]"]), ({"name": "c1"}, []),
    ({"ended": True, "group": "g"}, ["a1", "a2"]), ({"ended": True, "group": "@3"}, ["b"]),
    ({"ended": True, "group": "@99999999999999999999"}, []), ({"ended": True, "group": "' OR 1 --"}, []),
    ({"ended": True, "since": 150.0, "executor": "slurm"}, ["a2", "d"]),
    ({"ended": True, "sort": "-key"}, ["d", "c[1]", "b", "a2", "a1"]),
    ({"ended": True, "sort": "submitted"}, ["c[1]", "d", "b", "a1", "a2"]),
    ({"ended": True, "sort": "-nodes"}, ["a1", "b", "a2", "c[1]", "d"])])
def test_filters(shelf: Journal, chosen: dict[str, Any], expected: list[str]) -> None:
    assert names(shelf, **chosen) == expected


@pytest.mark.parametrize("column", COLUMNS)
def test_columns(shelf: Journal, column: str) -> None:
    assert sorted(names(shelf, ended=True, sort=column)) == sorted(JOBS)


@pytest.mark.parametrize(("chosen", "problem"), [
    ({"states": ("gone",)}, "there is no state 'gone' (known: Idle, Hold, Running, Suspended, Completed, done, failed, "
                            "canceled, skipped, kept)"),
    ({"sort": "colour"}, "the list cannot be sorted by 'colour' (known: key, id, name, executor, site, state, queue, "
                         "submitted, nodes, elapsed)")])
def test_refused(shelf: Journal, chosen: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        names(shelf, **chosen)
    assert str(raised.value) == problem


def test_times_and_totals(shelf: Journal) -> None:
    found = {str(one.row.id): one for one in listed(shelf, Filter(ended=True))}
    assert {name: (one.waited(300.0), one.elapsed(300.0)) for name, one in found.items()} == {
        "a1": (10.0, 190.0), "a2": (100.0, None), "b": (10.0, 30.0), "c[1]": (None, None), "d": (None, None)}
    back = Listed(Row(1, 1, "x", None, "x", state="Idle"), Details("batch", 100.0, 110.0))     # it had begun
    assert (back.waited(300.0), back.elapsed(300.0)) == (200.0, None)
    assert totals(found.values()) == "5 jobs: 1 Idle, 1 Hold, 1 Running, 1 failed, 1 skipped"
    assert (totals([]), totals([Listed(Row(1, 1, "x", None, "x"), Details())])) == ("0 jobs", "1 job: 1 Idle")


def test_a_journal_of_an_older_version(shelf: Journal) -> None:
    """It gets the tables and columns; rows without details are listed."""
    connection = sqlite3.connect(shelf.path)
    for statement in ("DROP TABLE details", "DROP TABLE routes", "ALTER TABLE submissions DROP COLUMN site",
                      "ALTER TABLE submissions DROP COLUMN settings", "PRAGMA user_version = 5"):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with open_journal(shelf.path) as again:
        assert names(again, ended=True) == list(JOBS)
        with again._transaction():
            write_details(again._connection, 1, [(0, Details("q"))])
        assert listed(again, Filter())[0].details == Details("q")
        assert open_routes(again) == []


@pytest.mark.parametrize("executor", ["local", "slurm", "sge"])
def test_details_are_the_facts_of_the_document(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        queue = "" if executor == "local" else "<Queue>batch</Queue>"
        desk.submit(group(shell("exit 1", queue), shell("true", after("a"), queue, name="b")))
        journal = desk.client().journal
        assert [one.details.queue for one in listed(journal, Filter(ended=True))] == [
            None if executor == "local" else "batch"] * 2
        desk.wait("g")
        first, second = listed(journal, Filter(ended=True))
        job = desk.job("a").plan.job
        assert (first.details.submitted, first.details.started, first.details.ended) == tuple(
            float(str(job.value(tag))) for tag in ("SubmitTime", "StartTime", "EndTime"))
        assert second.row.message == "dependency: OnSuccess a does not hold" and second.row.outcome == "skipped"


def test_nodes_that_a_job_asks_for_are_listed_while_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that follow from its tasks, bare ones, and of a range the least."""
    requests = (
        "<TaskGroup><TaskCount>7</TaskCount><TaskDistribution>2</TaskDistribution></TaskGroup>",
        "<NodeCount>3</NodeCount>",
        '<Requested><NodeCount op="LE">8</NodeCount><NodeCount op="GE">2</NodeCount></Requested>',
        "")
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.submit(group(*(shell("true", f"<Hold>User</Hold>{request}", name=f"j{number}")
                            for number, request in enumerate(requests))))
        assert [line.details.nodes for line in listed(desk.client().journal, Filter())] == [4, 3, 2, None]


@pytest.mark.parametrize("executor", ["slurm", "sge"])
def test_where_a_job_runs_is_listed_while_it_runs(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                  ) -> None:
    """That it began is learnt from the record that the job itself has written; the queue, which says where, is heard
    afterwards, and adds no event."""
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        desk.submit(group(shell("sleep 60")))
        client = desk.client()

        def running() -> bool:
            """Whether the list shows it as running in a queue."""
            client.look([client.journal.entry(1)])
            (line,) = listed(client.journal, Filter())
            return line.row.state == "Running" and line.details.queue is not None

        eventually(running)
        (line,) = listed(client.journal, Filter())
        assert (line.details.queue, line.details.nodes) == ("batch" if executor == "slurm" else "all.q", 1)
        client.cancel(["a"])


def test_why_a_job_waits_that_no_manager_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list and the document say the same, also after another client has changed it."""
    def told(desk: Desk) -> dict[str, tuple[str | None, object]]:
        return {str(one.row.id): (one.row.message, desk.job(one.row.key).plan.job.value("StatusMessage"))
                for one in listed(desk.client().journal, Filter()) if one.row.id != "a"}

    begin, far = 4_000_000_000, 10 ** 15
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(group(
            shell(f"{until_there()}"), shell("true", after("a", "OnExit", 1), name="b"),
            shell("true", "<Hold>User</Hold>", after("b"), name="c"),
            *(shell("true", f"<EligibleTime>{moment}</EligibleTime>", name=name)
              for name, moment in (("d", begin), ("e", far)))))
        says = {"b": "dependency: OnExit(1) a", "c": "held: until its user releases it",
                "d": "begin: 2096-10-02 07:06:40 UTC", "e": f"begin: {far}"}
        assert told(desk) == {name: (text, text) for name, text in says.items()}
        desk.client().ask("release", ["c"])
        desk.client().ask("hold", ["d"])
        says |= {"c": "dependency: OnSuccess b", "d": says["c"]}
        eventually(lambda: told(desk) == {name: (text, text) for name, text in says.items()})
        (tmp_path / "go").touch()
        desk.client().cancel(["d", "e"])
        assert desk.wait("a", "b", "c", "d", "e")["b"] == ("skipped", None)
