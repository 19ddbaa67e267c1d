"""The journal: what it refuses, what survives, and two clients at once."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import psij
from sssjob.errors import AccessError, UsageError
from sssjob.run import journal, storage
from sssjob.run.history import Event, since, stamp
from sssjob.run.journal import Entry, Journal, open_journal
from sssjob.run.listing import Filter, listed
from sssjob.run.loading import load
from sssjob.run.rows import Row
from sssjob.run.standing import Submission
from sssjob.run.storage import _on_network as on_network
from sssjob.run.storage import connected, default_path, is_full, make_folder
from tests.forks import Command
from tests.gate import until_there
from tests.psij import hazard_program
from tests.run.support import after, desk_on, group, shell

TEXT = "<Job><Id>a</Id></Job>"


def entry(journal: Journal, *ids: str | None, executor: str = "slurm", name: str | None = None) -> Entry:
    rows = [Row(0, n, one, None, one or f"job-{n + 1}") for n, one in enumerate(ids)]
    return journal.add(os.urandom(4).hex(), executor, TEXT, Path("/"), "Reject", name, rows)


def ended(made: Entry, row: Row, native_id: str | None = None) -> None:
    row.outcome, row.native_id = "done", native_id
    made.note(Event(row.job, "note", "test", {}), row)
    made.flush(ended=True)


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE)


def forked(code: str, folder: Path, *arguments: object) -> Command:
    """The same as a process that the server of the tests forks, which has imported the journal."""
    return Command([code, *map(str, arguments)], folder, os.environ, words=("module", hazard_program.__name__))


# --- where it lies, and what it refuses

@pytest.mark.parametrize(("environment", "path"), [
    ({"SSSJOB_JOURNAL": "/j/x.db", "XDG_STATE_HOME": "/s"}, "/j/x.db"),
    ({"XDG_STATE_HOME": "/s"}, "/s/sssjob/journal.db"), ({"HOME": "/h"}, "/h/.local/state/sssjob/journal.db"),
    ({"HOME": "/h", "SSSJOB_JOURNAL": ""}, "/h/.local/state/sssjob/journal.db"),
])
def test_where_it_lies(environment: dict[str, str], path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSSJOB_JOURNAL", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_path() == Path(path)


def test_it_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "j.db"
    before = os.umask(0)
    try:
        with open_journal(path) as journal:
            assert entry(journal, "a").take()
            modes = {p.name: oct(stat.S_IMODE(p.stat().st_mode)) for p in [path.parent, *path.parent.rglob("*")]
                     if p.parent.name != "j.db.d"}
    finally:
        os.umask(before)
    assert modes == {"new": "0o700", "j.db": "0o600", "j.db-wal": "0o600", "j.db-shm": "0o600", "j.db.d": "0o700",
                     "j.db.reserve": "0o600", "lease": "0o600"}


def test_one_that_others_can_read_is_closed(tmp_path: Path) -> None:
    open_journal(tmp_path / "j.db").close()
    (tmp_path / "j.db").chmod(0o644)
    open_journal(tmp_path / "j.db").close()
    assert stat.S_IMODE((tmp_path / "j.db").stat().st_mode) == 0o600


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


def newer(path: Path) -> None:
    open_journal(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()


def cut(path: Path) -> None:
    with open_journal(path) as journal:
        for _ in range(50):
            entry(journal, "a")
    path.write_bytes(path.read_bytes()[:9000])


def overwritten(path: Path) -> None:
    with open_journal(path) as journal:
        for _ in range(50):
            entry(journal, "a")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize(("make", "expected"), [
    (lambda p: p.write_text("this is no database, but a text that is long enough to be looked at" * 20),
     "file is not a database; it is damaged or no journal: move it away to begin a new one"),
    (foreign, "is an SQLite file, but no journal of sssjob"),
    (newer, "is a journal of version 9; this sssjob knows version 8"),
    (cut, "malformed; it is damaged"), (overwritten, "malformed; it is damaged"),
    (lambda p: p.mkdir(), "is no file, and cannot be the journal"),
], ids=["text", "foreign", "newer", "cut", "overwritten", "folder"])
def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path, make: object, expected: str) -> None:
    path = tmp_path / "j.db"
    make(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(AccessError) as caught, open_journal(path) as journal:
        journal.rows()
        journal.find("a")
    assert str(caught.value).startswith(f"{path}: ") and expected in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_events_that_are_damaged(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        submission.flush(Event(0, "note", "test", {}))
        journal._connection.execute("UPDATE events SET data = '{'")
        with pytest.raises(AccessError, match="it is damaged"):
            submission.events()


@pytest.mark.parametrize("change", ["events SET job = 1000", "events SET data = '[]'", "events SET data = '{}'",
                                    "submissions SET document = '<JobGroup><Id>g</Id></JobGroup>'"])
def test_contents_that_make_no_sense(tmp_path: Path, change: str) -> None:
    """Events of a job that there is not, or without what one of their kind has, and a document without the jobs that
    are listed, which was an IndexError of whoever asked for one of them."""
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        submission.flush(Event(0, "ended", "test", {"word": "done", "code": 0}))
        journal._connection.execute(f"UPDATE {change}")
        with pytest.raises(AccessError, match="the journal cannot be used: it is damaged"):
            load(submission, lambda: psij.JobExecutor.get_instance("local"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """The journal was said to be damaged, where only a word or a folder had other bytes."""
    with open_journal(tmp_path / "j.db") as journal:
        for use in (lambda: journal.find("\udcff"), lambda: listed(journal, Filter(name="\udcff"))):
            with pytest.raises(UsageError, match=r"^\\u\{DCFF\} has bytes that are no UTF-8, which no journal"):
                use()


@pytest.mark.parametrize("path", ["/proc/none/j.db", "/dev/null/j.db", "/proc/j.db"])
def test_where_nothing_can_be_made(path: str) -> None:
    with pytest.raises(AccessError, match=r"j\.db: the journal cannot be used"):
        open_journal(Path(path))


def test_two_requests_at_once_are_one(tmp_path: Path) -> None:
    """Whoever comes second gets the submission of the first, and has written nothing."""
    with open_journal(tmp_path / "j.db") as one, open_journal(tmp_path / "j.db") as other:
        first = one.add("t1", "local", "<Job/>", tmp_path, "Reject", None, [Row(0, 0, "a", None, "a")], request="r")
        second = other.add("t2", "local", "<Job/>", tmp_path, "Reject", None, [Row(0, 0, "a", None, "a")], request="r")
        assert (second.number, second.token) == (first.number, "t1") and len(other.rows()) == 1
        assert one.requested("x") is None


def test_a_newer_release_has_changed_it_meanwhile(tmp_path: Path) -> None:
    """Who has it open reads on, and writes nothing that it may not understand."""
    path = tmp_path / "j.db"
    with open_journal(path) as journal:
        submission = entry(journal, "a")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 9")
        connection.close()
        with pytest.raises(AccessError, match="a newer sssjob has made it a journal of version 9"):
            submission.flush(Event(0, "note", "test", {"text": "x"}))
        assert ([row.id for row in journal.rows()], submission.events()) == (["a"], [])


def test_full_disk(tmp_path: Path) -> None:
    """What cannot be written is told, what was written before is there, and later it can be."""
    path = tmp_path / "j.db"
    with open_journal(path) as journal:
        submission = entry(journal, "a")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        submission.note(Event(0, "note", "test", {"text": "x" * 300000}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, limits[1]))
        try:
            with pytest.raises(AccessError, match=r"the journal cannot be used: (the disk is full|disk I/O)"):
                submission.flush()
            with pytest.raises(AccessError):
                entry(journal, "b" * 300000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert ([r.id for r in journal.rows()], submission.events()) == (["a"], [])
        submission.flush()
        assert [e.kind for e in submission.events()] == ["note"]


def test_a_full_disk_is_told_in_these_words_and_what_is_there_can_be_read(tmp_path: Path,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite needs room beside the journal for the memory that clients share, and says "disk I/O error" without it."""
    path = tmp_path / "j.db"
    with open_journal(path) as shared:
        entry(shared, "a")
    def without_room(path: Path, alone: bool = False) -> sqlite3.Connection:
        if not alone:
            raise sqlite3.OperationalError("disk I/O error")
        return connected(path, alone)

    monkeypatch.setattr(journal, "connected", without_room)
    with pytest.raises(AccessError, match="the journal cannot be used: disk I/O error"):
        open_journal(path)
    for module in (journal, storage):
        monkeypatch.setattr(module, "has_no_room", lambda _: True)
    with open_journal(path) as opened:
        assert [row.id for row in opened.rows()] == ["a"]
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        try:
            with pytest.raises(AccessError, match="the journal cannot be used: the disk is full") as caught:
                entry(opened, "b" * 300000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert is_full(caught.value) and [row.id for row in opened.rows()] == ["a"]


def test_a_journal_that_can_only_be_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no client has it open there is no write-ahead log, which cannot be made either; what nobody can write is
    refused in words."""
    path = tmp_path / "j.db"
    open_journal(path).close()
    with open_journal(path) as writing, monkeypatch.context() as patch:
        entry(writing, "a")
        patch.setattr(storage, "_is_read_only", lambda path: True)
        with open_journal(path) as reading:
            assert [row.id for row in reading.rows()] == ["a"]
    names = {file.name for file in tmp_path.iterdir()}
    monkeypatch.setattr(storage, "_is_read_only", lambda path: True)
    with open_journal(path) as reading:
        assert [row.id for row in reading.rows()] == ["a"]
        with pytest.raises(AccessError, match="it is on a file system that can only be read"):
            entry(reading, "b")
    assert {file.name for file in tmp_path.iterdir()} == names
    with sqlite3.connect(path) as older:
        older.execute("PRAGMA user_version = 7")
    older.close()
    path.with_name("j.db-wal").unlink(missing_ok=True)
    with pytest.raises(AccessError, match="version 7 on a read-only file system; this sssjob reads version 8"):
        open_journal(path)


@pytest.mark.parametrize(("mounts", "network"), [
    ("/dev/sda / ext4 rw 0 0\n", False), ("/dev/sda / ext4 rw 0 0\nsrv:/h /home nfs4 rw 0 0\n", True),
    ("srv:/h /home nfs4 rw 0 0\n/dev/sdb /home/me ext4 rw 0 0\n", False), ("o /home lustre rw 0 0\n", True),
    ("", False),
])
def test_network_file_systems(tmp_path: Path, mounts: str, network: bool) -> None:
    table = tmp_path / "mounts"
    table.write_text(mounts)
    assert on_network(Path("/home/me/j.db"), str(table)) is network
    assert not on_network(Path("/home/me/j.db"), str(tmp_path / "none"))


# --- names

def test_names(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        first = entry(journal, "a", "b", name="g")
        row = journal.rows()[0]
        ended(first, row, "77")
        second = entry(journal, "a", executor="sge")

        def keys(name: str) -> list[str]:
            return [r.key for r in journal.find(name)]

        assert [keys(n) for n in ("a", "@1.1", "@1", "g", "77", "slurm:77", "b")] == [
            ["@2.1"], ["@1.1"], ["@1.1", "@1.2"], ["@1.1", "@1.2"], ["@1.1"], ["@1.1"], ["@1.2"]]
        ended(second, journal.rows_of(2)[0], "77")
        assert keys("a") == ["@2.1"] and keys("slurm:77") == ["@1.1"]
        for name in ("c", "@9", "@1.9", "@x", "sge:7", "", "'; DROP TABLE jobs"):
            with pytest.raises(UsageError, match="there is no job"):
                journal.find(name)
        entry(journal, "a")
        entry(journal, "a")
        with pytest.raises(UsageError, match=r"several jobs that have not ended: @3\.1, @4\.1"):
            journal.find("a")
        assert [journal.name_of(r) for r in journal.rows()] == ["@1.1", "b", "@2.1", "@3.1", "@4.1"]


# --- several clients

WRITER = """
import sys
from pathlib import Path
from sssjob.run.history import Event
from sssjob.run.journal import open_journal
with open_journal(Path(sys.argv[1])) as journal:
    made = journal.entry(1)
    for n in range(int(sys.argv[3])):
        made.flush(Event(0, "note", sys.argv[2], {"n": n}))
"""
HOLDER = """
import sys
from pathlib import Path
from sssjob.run.journal import open_journal
journal = open_journal(Path(sys.argv[1]))
made = journal.entry(1)
print(made.take(), flush=True)
sys.stdin.read()
"""


def test_no_event_of_several_writers_is_lost(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        before = journal.changes()
        writers = [forked(WRITER, tmp_path, tmp_path / "j.db", f"w{n}", 100) for n in range(3)]
        for n in range(100):
            submission.flush(Event(0, "note", "here", {"n": n}))
        assert [w.wait(60) for w in writers] == [0, 0, 0]
        events = submission.events()
        assert journal.changes() != before
    for source in ("w0", "w1", "w2", "here"):
        assert [e.data["n"] for e in events if e.source == source] == list(range(100))
    for writer in writers:
        writer.communicate()


def test_many_make_it_at_once(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from sssjob.run.journal import open_journal; "
            "j = open_journal(Path(sys.argv[1])); print(len(j.rows()))")
    clients = [forked(code, tmp_path, tmp_path / "j.db") for _ in range(4)]
    assert [c.communicate(timeout=60)[0] for c in clients] == ["0\n"] * 4


def test_a_lease_goes_with_its_holder(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        holder = python(HOLDER, tmp_path / "j.db")
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        assert (submission.take(), submission.held()) == (False, True)
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
        assert (submission.held(), submission.take(), submission.take(), submission.held()) == (False, True, True, True)
        submission.release()
        assert not submission.held()


@pytest.mark.parametrize("text", ["", "\0" * 512, "{"])
def test_a_lease_whose_text_was_lost_is_one(tmp_path: Path, text: str) -> None:
    """It is not synced, so that after a power cut anything may stand in it; what a killed client wrote comes again."""
    with open_journal(tmp_path / "j.db") as journal:
        entry = journal.add("token", "local", "<Job/>", tmp_path, "Ignore", None, [])
        assert entry.take() and not entry.last_begun
        entry.begins()
        entry.release()
        other = journal.entry(entry.number)
        assert other.take() and since(other.last_begun) is not None
        other.release()
        (entry.folder / "lease").write_text(text)
        last = journal.entry(entry.number)
        assert last.take() and not last.last_begun


@pytest.mark.parametrize("when", ["folder", "lease", "lock"])
def test_a_lease_whose_folder_goes_meanwhile(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who held it saw the last job end, and removes the folder between two steps of the next client."""
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        gone: list[str] = []

        def folder_of(folder: Path) -> None:
            if when == "folder" and not gone:       # what pathlib makes of one that went while it looked
                gone.append(when)
                raise FileExistsError(folder)
            make_folder(folder)
            goes("lease")

        def goes(step: str) -> None:
            if step == when and not gone:
                gone.append(when)
                shutil.rmtree(submission.folder)

        def locked(lease: int, how: int) -> None:
            goes("lock")
            flock(lease, how)

        flock = fcntl.flock
        monkeypatch.setattr("sssjob.run.journal.make_folder", folder_of)
        monkeypatch.setattr("sssjob.run.journal.fcntl.flock", locked)
        assert submission.take()
        assert gone == [when]
        with open_journal(tmp_path / "j.db") as another:        # what is held is the file that others find
            assert not another.entry(submission.number).take()
        submission.release()


def test_a_folder_that_always_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        monkeypatch.setattr("sssjob.run.journal.make_folder", lambda folder: None)
        with pytest.raises(AccessError, match="is removed again and again"):
            entry(journal, "a").take()


def test_what_has_ended_meanwhile_gets_no_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper ended the last job and left between our look at the journal and at the lease."""
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(shell("true"))
        client = desk.client()
        standing = client.standing(client.journal.entry(1))
        before = standing.entry
        desk.wait("a")
        assert before is not None
        before.ended = None
        monkeypatch.setattr(Submission, "ended", False)
        monkeypatch.setattr("sssjob.run.client.keep", lambda entry: pytest.fail("another keeper"))
        assert not client.own(standing)


def test_a_lease_is_not_inherited(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        assert submission.take()
        sleeper = subprocess.Popen(["sleep", "60"], close_fds=False)
        submission.release()
        assert submission.take()
        submission.release()
        sleeper.kill()
        sleeper.wait()


def test_the_folder_goes_after_the_end(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        assert submission.take()
        submission.release()
        assert submission.folder.exists()
        assert submission.take()
        ended(submission, journal.rows()[0])
        submission.release()
        assert not submission.folder.exists() and journal.entry(1).ended is not None


def test_a_torn_end_is_dropped(tmp_path: Path) -> None:
    """E14: killed while the log is written: whole transactions are there, the last one is or is not."""
    path = tmp_path / "j.db"
    with open_journal(path) as journal:
        submission = entry(journal, "a")
        for n in range(3):
            submission.flush(Event(0, "note", "test", {"n": n}))
        data, wal = path.read_bytes(), path.with_name("j.db-wal").read_bytes()
    for length in range(len(wal) // 2, len(wal), 997):
        copied = tmp_path / f"c{length}.db"
        copied.write_bytes(data)
        copied.with_name(f"{copied.name}-wal").write_bytes(wal[:length])
        with open_journal(copied) as torn:
            known = [e.data["n"] for e in torn.entry(1).events()] if torn.rows() else []
        assert known == list(range(len(known)))


# --- clocks

def test_time_since_an_event_is_by_a_clock_that_nobody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = json.loads(json.dumps(stamp()))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    passed = since(mark)
    assert passed is not None and 0 <= passed < 10
    assert since({**mark, "boot": "another"}) is None and since({**mark, "host": "other"}) is None


def test_threads_may_share_it(tmp_path: Path) -> None:
    with open_journal(tmp_path / "j.db") as journal:
        submission = entry(journal, "a")
        thread = threading.Thread(target=lambda: submission.flush(Event(0, "note", "thread", {})))
        thread.start()
        thread.join()
        assert [e.source for e in submission.events()] == ["thread"]


def test_a_hold_of_ours_is_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown until it is ended, also while the job goes on to wait for another one."""
    with desk_on("local", tmp_path, monkeypatch) as desk:
        hold = "<Hold>User</Hold>"
        desk.submit(group(shell(until_there()), shell("true", hold, after("a"), name="b"),
                          shell("true", hold, name="c")))

        def states() -> list[str]:
            return [desk.client().journal.find(name)[0].state for name in "abc"]

        assert states()[1:] == ["Hold", "Hold"]
        assert [desk.job(name).plan.job.value("State") for name in "bc"] == ["Hold", "Hold"]
        client = desk.client()
        entry = client.journal.entry(1)
        entry.flush(*(Event(row.job, "release", "user", {}) for row in client.journal.rows_of(1) if row.label == "b"))
        until = time.monotonic() + 60
        while states()[1] != "Idle":
            assert time.monotonic() < until, states()
            time.sleep(0.05)
        assert desk.job("b").plan.job.value("State") == "Idle" and states()[2] == "Hold"
        assert desk.client().cancel(["c"])[1]
        (tmp_path / "go").touch()
        assert desk.wait("g") == {"a": ("done", 0), "b": ("done", 0), "c": ("canceled", None)}


def test_what_is_written_together_is_one_transaction(tmp_path: Path) -> None:
    """A part that fails is taken back alone. Where the whole fails, entries have noted again what they had noted."""
    with open_journal(tmp_path / "journal.db") as journal:
        entries = [journal.add(f"t{n}", "local", "<Job/>", tmp_path, "Reject", None, [Row(0, 0, None, None, f"j{n}")])
                   for n in range(3)]

        def texts(number: int) -> list[str]:
            return [event.data["text"] for event in journal.entry(number).events()]

        with journal.together():
            for entry in entries:
                entry.note(Event(0, "note", "test", {"text": "first"}))
                entry.flush()
            with pytest.raises(UsageError), journal.together():
                entries[0].flush(Event(0, "note", "test", {"text": "never"}))
                raise UsageError("this part fails")
        assert [texts(n) for n in (1, 2, 3)] == [["first"]] * 3

        entries[0].note(Event(0, "note", "test", {"text": "second"}))
        with pytest.raises(UsageError), journal.together():
            entries[0].flush(ended=True)
            entries[0].note(Event(0, "note", "test", {"text": "third"}))
            raise UsageError("the whole fails")
        assert texts(1) == ["first"] and entries[0].ended is None
        entries[1].note(Event(0, "note", "test", {"text": "second"}))
        journal.flush_together([(entry, False) for entry in entries])
        assert [texts(n) for n in (1, 2, 3)] == [["first", "second", "third"], ["first", "second"], ["first"]]
