"""A journal on a disk without room, and one that clients of two releases share: what each command says and does."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from psij.executors.batch._command import Result, run
from sssjob.run import journal, storage
from sssjob.run.storage import VERSION, connected
from tests.cli.conftest import Command
from tests.fakes import lab, slurm
from tests.faults.test_system import FullDisk
from tests.run.support import shell


@dataclass
class Shared:
    """A journal with a job that a stand-in for Slurm runs. jobs: of the manager."""

    folder: Path
    lab: lab.Lab

    @property
    def path(self) -> Path:
        return self.folder / "journal.db"

    def be_of(self, version: int) -> None:
        """Have the journal be of another release."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")

    def content(self) -> list[str]:
        """All that is written in it."""
        with closing(sqlite3.connect(self.path)) as connection:
            return list(connection.iterdump())


@pytest.fixture
def shared(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    monkeypatch.chdir(tmp_path)
    stand_in = lab.install(str(slurm.__file__), slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin")
    for name, value in (("SSSJOB_JOURNAL", tmp_path / "journal.db"), ("HOME", tmp_path),
                        ("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")):
        monkeypatch.setenv(name, str(value))
    (tmp_path / "job.xml").write_text(shell("sleep 100"))
    answer = sssjob("submit", "-q", "--policy", "ignore", "job.xml", "--executor", "slurm")
    assert (answer.code, answer.out) == (0, "a\n"), answer.err
    yield Shared(tmp_path, stand_in)
    stand_in.close()


#: Commands that only read, with the first line of what they print; and those that would write, in a row.
READING = [("list", "id  key "), ("list --offline", "id  key "), ("status a", "<Job>"), ("log a", ""),
           ("journal export --to records", "")]
WRITING = ["cancel a", "hold a", "submit -q --policy ignore job.xml --executor slurm",
           "run -q --policy ignore job.xml --executor slurm", "release a"]


def test_a_full_disk_is_told_and_what_is_there_is_shown(sssjob: Command, shared: Shared,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is submitted or cancelled; and when there is room again, all goes on."""
    def without_room(path: Path, alone: bool = False) -> sqlite3.Connection:
        if not alone:
            raise sqlite3.OperationalError("disk I/O error")
        return FullDisk(connected(path, alone), 0, "database or disk is full")  # type: ignore[return-value]

    full = f"{shared.path}: the journal cannot be used: the disk is full\n"
    with monkeypatch.context() as filled:
        filled.setattr(journal, "connected", without_room)
        for module in (journal, storage):
            filled.setattr(module, "has_no_room", lambda _: True)
        for words, begin in READING:
            answer = sssjob(*words.split())
            assert (answer.code, answer.out.startswith(begin)) == (0, True), words
            assert answer.err in ("", f"-: SSS602 warning {full}"), words
        assert sssjob("wait", "a", "--timeout", "0.2").code == 6
        for words in WRITING:
            assert sssjob(*words.split()) == (3, "", f"sssjob: {full}"), words
        filled.setattr(tempfile, "mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), f"{shared.path}.script"))
        Path("job.sh").write_text("#!/bin/sh\ntrue\n")
        answer = sssjob("submit", "-q", "--executor", "slurm", "--from", "slurm", "job.sh")
        assert answer.code == 3 and answer.err.startswith(f"sssjob: {shared.path}.d/"), answer
        assert answer.err.endswith(": the script of a job cannot be written: the disk is full\n")
    assert [job["canceled"] for job in shared.lab.jobs()] == [False]
    shared.lab.end("1", 9)
    assert sssjob("wait", "a", "--timeout", "60").code == 9


def test_a_journal_of_a_newer_release_is_refused_by_every_command(sssjob: Command, shared: Shared) -> None:
    """One line says why; nothing is written, submitted or cancelled."""
    shared.be_of(VERSION + 1)
    before = shared.content()
    said = f"sssjob: {shared.path}: is a journal of version {VERSION + 1}; this sssjob knows version {VERSION}\n"
    for words in (*(words for words, _ in READING), "wait a", "journal prune", *WRITING):
        if not words.startswith("run"):         # which runs without a trace where it may
            assert sssjob(*words.split()) == (3, "", said), words
    assert shared.content() == before
    assert [job["canceled"] for job in shared.lab.jobs()] == [False]


def test_a_client_that_waits_while_a_newer_release_comes_writes_nothing_more(
        sssjob: Command, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells the end of its job, which it may not write down; whoever comes next does, and the job ran once."""
    contents: list[list[str]] = []

    def change_at_the_first_question(command: Sequence[str], *others: Any, **named: Any) -> Result:
        if command[-1] != "config" and not contents:
            shared.be_of(VERSION + 1)
            contents.append(shared.content())
            shared.lab.end("1", 9)
        return run(command, *others, **named)

    monkeypatch.setattr("psij.executors.batch._host.run", change_at_the_first_question)
    answer = sssjob("wait", "a", "--timeout", "60")
    assert (answer.code, f"a newer sssjob has made it a journal of version {VERSION + 1}" in answer.err) == (9, True)
    assert [shared.content()] == contents
    shared.be_of(VERSION)
    assert sssjob("wait", "a", "--timeout", "60").code == 9
    assert len(shared.lab.jobs()) == 1
