"""What has ended is taken out of the journal, and nothing else, whoever works meanwhile or is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.history import Event
from sssjob.run.journal import Entry, Journal, open_journal
from sssjob.run.pruning import Pruned, prune
from sssjob.run.routing import begin
from sssjob.run.rows import Row
from sssjob.run.standing import Running
from sssjob.run.whereabouts import Whereabouts
from tests.run.support import desk_on, shell


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as shelf:
        yield shelf


def add(journal: Journal, name: str, ended: float | None = None, waits_for: str = "") -> int:
    """A submission of one job."""
    row = Row(0, 0, name, None, name, outcome=None if ended is None else "done")
    events = [Event(0, "after", "sssjob", {"need": 0, "keys": [waits_for]})] if waits_for else []
    entry = journal.add(os.urandom(4).hex(), "slurm", "<Job/>" + " " * 5000, Path("/"), "Reject", None, [row], events)
    if ended is not None:
        entry.flush(ended=True)
        with journal.changing() as connection:
            connection.execute("UPDATE submissions SET ended = ? WHERE number = ?", (ended, entry.number))
    return entry.number


def left(journal: Journal) -> list[str]:
    return [str(row.id) for row in journal.rows()]


@pytest.mark.parametrize(("options", "stay"), [
    ({}, ["open"]), ({"before": 20.0}, ["b", "c", "open"]), ({"keep": 1}, ["c", "open"]),
    ({"before": 25.0, "keep": 2}, ["b", "c", "open"]), ({"keep": 9}, ["a", "b", "c", "open"]),
    ({"dry_run": True}, ["a", "b", "c", "open"])])
def test_what_goes(shelf: Journal, options: dict[str, float], stay: list[str]) -> None:
    for name, ended in (("a", 10.0), ("b", 20.0), ("c", 30.0), ("open", None)):
        add(shelf, name, ended)
    pruned = prune(shelf, **options)  # type: ignore[arg-type]
    assert left(shelf) == stay
    going = 3 if options.get("dry_run") else 4 - len(stay)
    assert (pruned.submissions, pruned.jobs, pruned.kept, pruned.trouble) == (going, going, 0, None)
    assert shelf.ask("SELECT count(*) FROM events e LEFT JOIN submissions s ON s.number = e.submission "
                     "WHERE s.number IS NULL", {}) == [(0,)]
    assert add(shelf, "new") == 5           # no number comes twice


def test_a_route_goes_with_the_last_of_its_submissions(shelf: Journal) -> None:
    """One that is not over stays, for a client has to go on with it."""
    tokens = [begin(shelf, [], policy=Policy.REJECT, directory=Path("/")).token for _ in range(3)]
    with shelf.changing() as connection:
        connection.execute("UPDATE routes SET phase = 'closed' WHERE token != ?", (tokens[2],))
    over, open_ = 10.0, None
    for number, token, ended in ((0, tokens[0], over), (1, tokens[0], open_), (0, tokens[1], over),
                                 (0, tokens[2], over)):
        submission = add(shelf, "x", ended)
        with shelf.changing() as connection:
            connection.execute("UPDATE submissions SET request = ? WHERE number = ?",
                               (f"route:{token}:{number}", submission))
    assert prune(shelf).submissions == 3
    assert {token for token, in shelf.ask("SELECT token FROM routes", {})} == {tokens[0], tokens[2]}


def test_what_a_job_that_waits_depends_on_stays(shelf: Journal) -> None:
    first = add(shelf, "first", 10.0)
    add(shelf, "other", 10.0)
    add(shelf, "waits", None, f"@{first}.1")
    assert prune(shelf) == Pruned(1, 1, 1, 0, None) and left(shelf) == ["first", "waits"]


def test_who_looked_a_job_up_that_goes_is_refused(shelf: Journal) -> None:
    first = add(shelf, "first", 10.0)
    prune(shelf)
    with pytest.raises(UsageError, match=rf"^@{first}\.1 was taken out of .* just now$"):
        add(shelf, "waits", None, f"@{first}.1")
    assert left(shelf) == []


def test_what_a_client_is_busy_with_stays(shelf: Journal) -> None:
    number = add(shelf, "busy", 10.0)
    with open_journal(shelf.path) as another:
        entry = another.entry(number)
        assert entry.take()
        assert prune(shelf).kept == 1
        entry.release()
    assert prune(shelf).submissions == 1 and left(shelf) == []


@pytest.mark.parametrize("act", ["look", "wait"])
def test_what_goes_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    """Another client takes a submission out whose job a client has not seen end: nothing is begun once more for it,
    that is told, and the others go on."""
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.submit(shell("exit 3", name="a"))
        desk.submit(shell("sleep 60", name="b"))
        entries = desk.client().journal.entries([1, 2])
        pruned: list[Pruned] = []
        is_here = Whereabouts.is_here

        def late(whereabouts: Whereabouts, client: Client, entry: Entry) -> bool:
            if not pruned:
                pruned.append(Pruned())
                assert desk.wait("a") == {"a": ("failed", 3)}
                pruned.append(prune(desk.client().journal))
            return is_here(whereabouts, client, entry)

        monkeypatch.setattr(Whereabouts, "is_here", late)
        client = desk.client()
        if act == "look":
            submissions, answered = client.look(entries, 20)
            assert answered and [one.jobs[0].row.id for one in submissions] == ["b"]
        else:
            assert not client.wait(["a", "b"], 1.0)[1]
        assert pruned[1:] == [Pruned(1, 1, 0, pruned[1].freed)]
        assert [str(finding) for finding in client.findings] == [
            "-: SSS602 warning @1 was taken out of the journal by another client: how its jobs ended is not known"]
        assert not entries[0].folder.exists()
        desk.client().cancel(["b"], 30)


def test_one_that_goes_the_moment_it_has_ended_was_waited_for(shelf: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited for it has its end; "there is no job" was all that was said."""
    add(shelf, "a", 10.0)
    finish = Client.finish

    def late(client: Client, *words: Any) -> tuple[list[Running], bool]:
        finished = finish(client, *words)
        assert prune(shelf).submissions == 1
        return finished

    monkeypatch.setattr(Client, "finish", late)
    jobs, ended = Client(shelf).wait(["@1"])
    assert ended and [job.row.key for job in jobs] == ["@1.1"]


def test_one_that_goes_while_it_is_read_is_no_damage(shelf: Journal) -> None:
    entries = shelf.entries([add(shelf, "goes", 10.0), add(shelf, "stays")])
    prune(shelf)
    client = Client(shelf)
    assert [submission.entry for submission in client.standings(entries)] == entries[1:]
    with pytest.raises(UsageError, match=r"^there is no submission @1 in "):
        client.standing(entries[0])


def test_two_at_once(shelf: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds gone what it has chosen, and counts none of that."""
    for n in range(3):
        add(shelf, f"j{n}", 10.0)
    entries = Journal.entries

    def late(journal: Journal, numbers: Sequence[int]) -> list[Entry]:
        if journal is not shelf:
            return entries(journal, numbers)
        with open_journal(shelf.path) as other:
            known = entries(shelf, numbers[1:])         # the first is gone before it is looked at, the others after it
            assert prune(other).submissions == 3
        return [*entries(shelf, numbers[:1]), *known]

    monkeypatch.setattr(Journal, "entries", late)
    assert prune(shelf) == Pruned() and left(shelf) == []


def test_room_is_given_back(shelf: Journal) -> None:
    for n in range(300):
        add(shelf, f"j{n}", 10.0)
    shelf.compact()
    assert prune(shelf).freed > 1_000_000 and shelf.path.stat().st_size < 200_000


@pytest.mark.parametrize("step", range(1, 8))
def test_killed_in_the_middle(shelf: Journal, step: int) -> None:
    """At any statement that changes something: the journal is whole, and the next one goes on."""
    for n in range(3):
        add(shelf, f"j{n}", 10.0)
    add(shelf, "open")
    pid = os.fork()
    if pid == 0:
        with open_journal(shelf.path) as mine:
            count = 0

            def told(statement: str) -> None:
                nonlocal count
                count += statement.startswith(("DELETE", "COMMIT", "VACUUM"))
                if count == step * 2:
                    os.kill(os.getpid(), 9)

            mine._connection.set_trace_callback(told)
            prune(mine)
            os._exit(0)
    os.waitpid(pid, 0)
    with open_journal(shelf.path) as again:
        assert again.ask("PRAGMA integrity_check", {}) == [("ok",)]
        assert left(again) in (["j0", "j1", "j2", "open"], ["open"])
        prune(again)
        assert left(again) == ["open"]
