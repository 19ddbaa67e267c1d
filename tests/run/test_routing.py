"""Documents that go to one of several sites."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sssjob.errors import AccessError
from sssjob.findings import Policy
from sssjob.run.choosing import placed
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.run.routing import Candidate, advance, begin, state_of
from sssjob.run.standing import Running, Submission
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.fakes import lab, sge, slurm
from tests.forks import fork_keepers


@pytest.mark.parametrize(("asked", "becomes"), [
    ("<Duration>60</Duration>", "<Duration>60</Duration><Queue>q</Queue>"),
    ("<Queue>a</Queue>", "<Queue>q</Queue>"),
    # of alternatives and wishes the one that was chosen
    ("<Requested><Queue preference='2'>a</Queue><Queue preference='1'>b</Queue></Requested>",
     "<Requested><Queue>q</Queue></Requested>"),
    ("<Requested><Processors>1</Processors><Queue preference='3' group='+1'>a</Queue><Queue preference='2'>b</Queue>"
     "<Queue preference='1' group='-1'>c</Queue><Duration>5</Duration></Requested>",
     "<Requested><Processors>1</Processors><Queue>q</Queue><Duration>5</Duration></Requested>"),
    ("<Requested><Queue conj='Or' group='2'>a</Queue><Queue conj='Or' group='-1'>b</Queue>"
     "<Queue conj='Or' group='-1'>c</Queue></Requested>", "<Requested><Queue>q</Queue></Requested>"),
    # one that stands beside others in a bracket, or may be left out, stays as it is
    ("<Requested><Queue group='1'>a</Queue><Queue conj='Or'>b</Queue><Processors conj='Or' group='-1'>4</Processors>"
     "</Requested>", "<Requested><Queue group='1'>q</Queue><Queue conj='Or'>q</Queue>"
     "<Processors conj='Or' group='-1'>4</Processors></Requested>"),
    ("<Requested><Queue>a</Queue><Queue conj='Or'>b</Queue><Memory>1</Memory></Requested>",
     "<Requested><Queue>q</Queue><Queue conj='Or'>q</Queue><Memory>1</Memory></Requested>"),
    ("<Requested><Queue>a</Queue><Queue conj='Or'>b</Queue></Requested>", "<Requested><Queue>q</Queue></Requested>"),
    ("<Requested><Queue op='Match' group='1'>a.*</Queue><Processors conj='Or' group='-1'>4</Processors></Requested>",
     "<Requested><Queue group='1'>q</Queue><Processors conj='Or' group='-1'>4</Processors></Requested>"),
    # what is excluded stays so
    ("<Requested><Queue op='NE'>a</Queue></Requested>",
     "<Requested><Queue op='NE'>a</Queue></Requested><Queue>q</Queue>"),
    ("<Requested><Processors>1</Processors><Queue conj='Nand'>a</Queue></Requested>",
     "<Requested><Processors>1</Processors><Queue conj='Nand'>a</Queue></Requested><Queue>q</Queue>"),
    ("<Delivered><Queue>a</Queue></Delivered>", "<Delivered><Queue>a</Queue></Delivered><Queue>q</Queue>"),
])
def test_the_queue_that_was_chosen(asked: str, becomes: str) -> None:
    document = read_document(f"<Job><Id>1</Id>{asked}</Job>".encode())
    before = write_document(document)
    assert write_document(placed(document, "q")) == write_document(
        read_document(f"<Job><Id>1</Id>{becomes}</Job>".encode()))
    assert write_document(placed(document, None)) == write_document(document) == before


@pytest.mark.parametrize("asked", [
    "<Machine>m</Machine>", "<Machine op='Match'>m.*</Machine>", "<Machine op='NE'>other</Machine>",
    "<Machine preference='2'>other</Machine><Machine preference='1'>m</Machine>",
    "<Machine preference='2' group='+1'>other</Machine><Machine preference='1' group='-1'>m</Machine>",
])
def test_the_machine_that_was_chosen(asked: str) -> None:
    """A name that the executor knows as its own, whatever the document said of its machine."""
    text = "<Job><Id>1</Id><Requested>{}<Processors>1</Processors></Requested></Job>"
    document = read_document(text.format(asked).encode())
    assert write_document(placed(document, None, "m")) == write_document(read_document(
        text.format("<Machine>m</Machine>").encode()))
    assert write_document(placed(document, None)) == write_document(document)


def test_a_performance_factor_has_been_weighed() -> None:
    document = read_document(
        b"<Job><Id>1</Id><Requested><Processors performanceFactor='0.5'>4</Processors></Requested></Job>")
    assert "performanceFactor" not in write_document(placed(document, None))


def test_a_queue_of_defaults_is_chosen_once() -> None:
    document = read_document(b"<JobGroup><JobDefaults><Queue>a</Queue></JobDefaults><Job><Id>1</Id></Job></JobGroup>")
    assert write_document(placed(document, "q")).count("<Queue>q</Queue>") == 1


ROUTED = ("<JobGroup><Id>g</Id><Job><Id>one</Id><Queue>{0}</Queue><Executable>/bin/sleep</Executable><Arguments>0.2"
          "</Arguments></Job><Job><Id>two</Id><Queue>{0}</Queue><EligibleTime>{1}</EligibleTime><Executable>/bin/true"
          "</Executable></Job></JobGroup>")


@pytest.mark.parametrize("killed", [False, True])
def test_one_that_begins_while_it_is_to_be_moved_stays(killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                       ) -> None:
    """It is held before it is cancelled: what has begun meanwhile runs to its end, and what had not yet is let go, by
    the next client too."""
    monkeypatch.chdir(tmp_path)
    fork_keepers(monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    alpha, beta = (lab.install(str(fake.__file__), fake.COMMANDS, tmp_path / name, tmp_path / "bin")
                   for name, fake in (("alpha", slurm), ("beta", sge)))
    candidates = []
    for name, manager, queue in (("alpha", "slurm", "batch"), ("beta", "sge", "all.q")):
        (profile := tmp_path / f"{name}.toml").write_text(
            f"name = '{name}'\nmanager = '{manager}'\n[run]\npolling_interval = 0.2\nlost_after = 2\n"
            "accounting_delay = 1\n")
        candidates.append(Candidate(name, str(profile), manager, queue, ROUTED.format(queue, int(time.time()) + 5), ""))
    alpha.set(wait=1)
    ask = Client.ask

    def late(client: Client, wish: str, *arguments: Any, **options: Any) -> list[Running]:
        if wish == "hold":
            while alpha.jobs()[0]["start"] is None:
                time.sleep(0.01)
        answer = ask(client, wish, *arguments, **options)
        if killed and wish == "hold":
            raise KeyboardInterrupt
        return answer

    with open_journal(tmp_path / "journal.db") as journal:
        client = Client(journal)
        route = begin(journal, candidates, policy=Policy.IGNORE, directory=tmp_path, patience=0.1)
        with monkeypatch.context() as patch:
            patch.setattr(Client, "ask", late)
            with pytest.raises(KeyboardInterrupt) if killed else nullcontext():
                while state_of(journal, route.token).phase != "closed":
                    advance(client, route.token)
        advance(Client(journal), route.token)
        Client(journal).wait(["g"], 60)
        assert [(row.site, row.outcome) for row in journal.rows()] == [("alpha", "done")] * 2
        assert (beta.jobs(), state_of(journal, route.token).phase) == ([], "closed")


def test_what_was_submitted_stays_whatever_fails_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may be full when the submission stands in the journal already: another place would make two of it."""
    fork_keepers(monkeypatch)
    text = "<Job><Id>one</Id><Executable>/bin/true</Executable></Job>"
    candidates = []
    for name in ("alpha", "beta"):
        profile = tmp_path / f"{name}.toml"
        profile.write_text(f"name = '{name}'\nmanager = 'local'\n")
        candidates.append(Candidate(name, str(profile), "local", None, text, ""))
    submit = Client.submit

    def broken(client: Client, *arguments: Any, **options: Any) -> Submission | None:
        submit(client, *arguments, **options)
        raise AccessError("journal.db", "No space left on device")

    with open_journal(tmp_path / "journal.db") as journal:
        client = Client(journal)
        with monkeypatch.context() as patch:
            patch.setattr(Client, "submit", broken)
            route = begin(journal, candidates, policy=Policy.IGNORE, directory=tmp_path)
            advance(client, route.token)
        client.wait(["@1"], 60)
        assert [(row.site, row.outcome) for row in journal.rows()] == [("alpha", "done")]
        assert state_of(journal, route.token).reasons == ()


def test_places_share_the_text_of_a_document(tmp_path: Path) -> None:
    """A hundred places of one document are no hundred documents in the journal; routes of older clients are read."""
    places = [Candidate(f"s{number}", "s.toml", "local", f"q{number}", "<Job/>" if number else "<JobGroup/>", "",
                        ("1 EUR",)) for number in range(100)]
    with open_journal(tmp_path / "journal.db") as journal:
        route = begin(journal, places, policy=Policy.WARN, directory=tmp_path)
        assert route.candidates == state_of(journal, route.token).candidates == tuple(places)
        ((record,),) = journal.ask("SELECT candidates FROM routes", {})
        assert record.count("<Job/>") == 1
        older = {**json.loads(record), "candidates": [{**place._asdict(), "prices": []} for place in places]}
        del older["texts"]
        with journal.changing() as connection:
            connection.execute("UPDATE routes SET candidates = ?", (json.dumps(older),))
        assert state_of(journal, route.token).candidates == tuple(place._replace(prices=()) for place in places)
