"""The journal: what was submitted and all that was learnt of it, so that it outlives the client.

One SQLite file, write-ahead, every commit on the disk before anything follows from it. A submission is a document with
the executor that runs it; its history is a list of events that is only ever added to, and what is known of a job
follows from reading them again (``standing``). Several clients may use it at once: each event is one transaction, and
only who holds the lease of a submission starts or follows its jobs. A lease is a lock of the operating system, which
goes with its holder, so that no clock is in it.

Beside the file, ``<file>.d/<token>/`` holds the lease and the scripts of an unfinished submission.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import platformdirs

from psij import JobState, JobStatus
from sssjob.errors import AccessError, UsageError

__all__ = ["Entry", "Event", "Journal", "Row", "default_path", "make_folder", "open_journal", "since", "stamp",
           "status_of", "status_record"]

_MARK: Final = 0x5353534A       # application_id: "SSSJ"
_VERSION: Final = 2             # user_version
_BUSY_S: Final = 30.0           # another client's transaction takes no longer
_TRIES: Final = 100             # to find a folder that other clients remove
_RESERVE: Final = 1 << 18       # bytes that are given back to a full disk when native ids need them
#: Where shared memory between hosts cannot be had, which a write-ahead log needs. Source: sqlite.org/wal.html, 1.
_NETWORK: Final = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "glusterfs", "fuse", "9p",
                   "orangefs")
_CHANGES: Final = {     # version -> what makes the next one of it
    1: "ALTER TABLE jobs ADD COLUMN array TEXT;\nCREATE INDEX jobs_array ON jobs (array)",
}
_SCHEMA: Final = """
CREATE TABLE submissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, executor TEXT NOT NULL, document TEXT NOT NULL,
    directory TEXT NOT NULL, policy TEXT NOT NULL, name TEXT, time REAL NOT NULL, client TEXT NOT NULL, ended REAL);
CREATE TABLE jobs (
    submission INTEGER NOT NULL REFERENCES submissions, job INTEGER NOT NULL, id TEXT, name TEXT, label TEXT NOT NULL,
    native_id TEXT, state TEXT NOT NULL, outcome TEXT, exit_code INTEGER, array TEXT, PRIMARY KEY (submission, job));
CREATE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_native_id ON jobs (native_id);
CREATE INDEX jobs_array ON jobs (array);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, submission INTEGER NOT NULL REFERENCES submissions, job INTEGER NOT NULL,
    part INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX events_submission ON events (submission, number);
"""


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """SSSJOB_JOURNAL, else ``sssjob/journal.db`` where state belongs (XDG_STATE_HOME, ~/.local/state)."""
    stated = environment.get("SSSJOB_JOURNAL")
    return Path(os.path.abspath(stated)) if stated else Path(platformdirs.user_state_dir("sssjob")) / "journal.db"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was done or learnt.

    kind: after (what a dependency means that is not of the document; need, keys), held (it waits for its user), intent
    (about to be submitted; tag), unsent (that was not done), native (native_id, reference), status (a psij status),
    ended (an outcome), cancel (somebody wants its end), release (somebody ends its hold), note (text). source: who said
    it. time: seconds since the epoch. number: 0 before it is written.
    """

    job: int
    kind: str
    source: str
    data: dict[str, Any]
    part: int = 0
    time: float = 0.0
    number: int = 0


@dataclass(slots=True)
class Row:
    """A job as it stands.

    id: the document's, else the native one. outcome: as in JobOutcome.word, None before its end. array: what the array
    is called that it is an element of.
    """

    submission: int
    job: int
    id: str | None
    name: str | None
    label: str
    native_id: str | None = None
    executor: str = ""
    state: str = "Idle"
    outcome: str | None = None
    exit_code: int | None = None
    array: str | None = None

    @property
    def key(self) -> str:
        """Names the job for good: ``@3.1`` is the first job of the third submission."""
        return f"@{self.submission}.{self.job + 1}"

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"id": self.id or self.key, "key": self.key, "native_id": self.native_id, "name": self.name,
                "executor": self.executor, "state": self.state, "outcome": self.outcome, "exit_code": self.exit_code,
                **({"array": self.array} if self.array is not None else {})}


def open_journal(path: Path | None = None) -> Journal:
    """The journal of that file, made where there is none. Raises AccessError."""
    path = default_path() if path is None else path
    with _told(path):
        _make_private(path)
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    journal = Journal(path, connection)
    journal.have_reserve()
    return journal


def _make_private(path: Path) -> None:
    """The file and its folder; what others could write is refused or closed to them."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):     # of an earlier client, or of one that was quicker
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise AccessError(str(path), "is no file, and cannot be the journal")
    if found.st_uid != os.geteuid():
        raise AccessError(str(path), "belongs to another user, and cannot be your journal")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o600)


def make_folder(folder: Path) -> None:
    """The folder of a submission, and the one of all of them: nobody else enters."""
    for path in (folder.parent, folder):
        path.mkdir(exist_ok=True, mode=0o700)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check what the file is and bring it to use; a file of nobody's becomes a journal."""
    connection.execute("BEGIN")         # one look, or another client makes it between two questions
    mark, version, tables = (connection.execute(question).fetchone()[0] for question in (
        "PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master"))
    connection.execute("COMMIT")
    if mark != _MARK and (mark or tables):
        raise AccessError(str(path), "is an SQLite file, but no journal of sssjob")
    if mark == _MARK and version != _VERSION and version not in _CHANGES:
        raise AccessError(str(path), f"is a journal of version {version}; this sssjob knows version {_VERSION}")
    _set_mode(connection, "delete" if _on_network(path) else "wal")
    connection.execute("PRAGMA synchronous = FULL")
    if mark == _MARK and version == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]     # another client may have been first
        while version in _CHANGES:
            for statement in _CHANGES[version].split(";\n"):
                connection.execute(statement)
            version += 1
            connection.execute(f"PRAGMA user_version = {version}")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # else another client was first
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _set_mode(connection: sqlite3.Connection, mode: str) -> None:
    """Have that journal mode. SQLite does not wait for its lock here: others may do the same, or end just now."""
    until = time.monotonic() + _BUSY_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != mode:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _on_network(path: Path, mounts: str = "/proc/self/mounts") -> bool:
    """Whether a file is on a file system that other hosts share."""
    with suppress(OSError), open(mounts, encoding="utf-8", errors="replace") as table:
        found = [(line.split()[1], line.split()[2]) for line in table]
        inside = [(len(point), kind) for point, kind in found if path.is_relative_to(point.replace("\\040", " "))]
        return bool(inside) and max(inside)[1].startswith(_NETWORK)
    return False


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Have what SQLite and the system complain of be told as an AccessError that names the journal."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        damaged = "not a database" in said or "malformed" in said
        hint = "; it is damaged or no journal: move it away to begin a new one" if damaged else ""
        raise AccessError(str(path), f"the journal cannot be used: {said}{hint}") from error
    except AccessError:
        raise
    except OSError as error:
        raise AccessError(str(path), f"the journal cannot be used: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise AccessError(str(path), f"the journal cannot be used: it is damaged ({error})") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _is_full(error: AccessError) -> bool:
    cause = error.__cause__
    return (isinstance(cause, sqlite3.OperationalError) and "full" in str(cause)) or (
        isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT))


def since(mark: Mapping[str, Any]) -> float | None:
    """Seconds since an event whose data are from ``stamp``; None where its clock is not ours. No step of the clock
    counts."""
    now = stamp()
    if (mark.get("host"), mark.get("boot")) != (now["host"], now["boot"]):
        return None
    return float(now["uptime"]) - float(mark.get("uptime", 0.0))


def stamp() -> dict[str, Any]:
    """Where and when, by a clock that nobody sets."""
    boot = ""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        boot = stream.read().strip()
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return {"host": socket.gethostname(), "boot": boot, "pid": os.getpid(), "uptime": time.clock_gettime(clock)}


def status_record(status: JobStatus) -> dict[str, Any]:
    """A psij status as a JSON object."""
    known = {"state": status.state.name, "time": status.time, "message": status.message,
             "exit_code": status.exit_code, "metadata": status.metadata}
    return {name: value for name, value in known.items() if value is not None}


def status_of(data: Mapping[str, Any]) -> JobStatus:
    """The psij status of ``status_record``."""
    return JobStatus(JobState[data["state"]], data["time"], data.get("message"), data.get("exit_code"),
                     data.get("metadata"))


class Journal:
    """An open journal."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.reserve_spent = False      # by this client: the disk is full, and what follows may not be written

    def have_reserve(self) -> None:
        """Have the file beside the journal that takes up room until the disk is full. None where there is no room."""
        # a journal without one is one all the same
        with suppress(OSError), open(self._reserve, "ab", opener=_private) as file:
            if file.tell() < _RESERVE:
                os.posix_fallocate(file.fileno(), 0, _RESERVE)

    def _spend_reserve(self) -> bool:
        """Give the room back; whether there was any."""
        try:
            found = self._reserve.stat().st_size
            self._reserve.unlink()
        except OSError:                 # another client has spent it
            return False
        self.reserve_spent = True
        return found > 0

    @property
    def _reserve(self) -> Path:
        return self.path.with_name(self.path.name + ".reserve")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def folder(self, token: str) -> Path:
        """Where the lease and the scripts of a submission are. token: a random text, part of the name."""
        return self.path.with_name(self.path.name + ".d") / token

    def add(self, token: str, executor: str, document: str, directory: Path, policy: str, name: str | None,
            rows: Sequence[Row], events: Sequence[Event] = ()) -> Entry:
        """Write down a submission with its jobs and the first events. name: the group's id."""
        client = stamp()
        with self._transaction():
            number = self._connection.execute(
                "INSERT INTO submissions (token, executor, document, directory, policy, name, time, client) VALUES "
                "(?, ?, ?, ?, ?, ?, ?, ?)", (token, executor, document, os.fspath(directory), policy, name, time.time(),
                                          f"{client['host']}:{client['pid']}")).lastrowid
            assert number is not None
            for row in rows:
                row.submission, row.executor = number, executor
            self._connection.executemany(
                "INSERT INTO jobs (submission, job, id, name, label, state, outcome, array) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(number, r.job, r.id, r.name, r.label, r.state, r.outcome, r.array) for r in rows])
            self._write_events(number, events)
        return self.entry(number)

    def entry(self, number: int) -> Entry:
        """A submission. Raises UsageError."""
        found = self._ask("SELECT token, executor, document, directory, policy, name, time, ended, client FROM "
                          "submissions WHERE number = ?", number)
        if not found:
            raise UsageError(f"there is no submission @{number} in {self.path}")
        token, executor, document, directory, policy, name, when, ended, client = found[0]
        return Entry(self, number, token, executor, document, Path(directory), policy, name, when, ended,
                     client.rpartition(":")[0])

    def rows(self, *, ended: bool = True) -> list[Row]:
        """All jobs, the oldest first. ended: those too that have."""
        return self._rows("" if ended else "WHERE s.ended IS NULL AND j.outcome IS NULL")

    def rows_of(self, number: int) -> list[Row]:
        """The jobs of a submission."""
        return self._rows("WHERE j.submission = ?", number)

    def find(self, name: str) -> list[Row]:
        """The job or jobs that a name means.

        ``@3`` (a submission), ``@3.1``, an id of a document, a native id, ``executor:native id``, an id of an array
        (all of its elements) or of a group.
        Of several jobs of one name that has not ended is meant, else the newest. Raises UsageError for a name that is
        not known or means several jobs.
        """
        found = self._named(name)
        if not found:
            raise UsageError(f"there is no job {name!r} in {self.path} (`sssjob list --all` shows all)")
        several = {r.submission for r in found}
        if len(several) > 1:
            going = {r.submission for r in found if r.outcome is None}
            if len(going) > 1:
                keys = ", ".join(r.key for r in found if r.outcome is None)
                raise UsageError(f"{name!r} is the name of several jobs that have not ended: {keys}")
            newest = going.pop() if going else max(several)
            found = [r for r in found if r.submission == newest]
        return found

    def name_of(self, row: Row) -> str:
        """The shortest name that means this job and no other one that has not ended."""
        if row.id is None or any(r.outcome is None and r.key != row.key for r in self._named(row.id)):
            return row.key
        return row.id

    def _named(self, name: str) -> list[Row]:
        number, dot, job = name.removeprefix("@").partition(".")
        if name.startswith("@") and number.isdecimal() and (job.isdecimal() or not dot):
            rows = self.rows_of(int(number))
            return [r for r in rows if not dot or r.job == int(job) - 1]
        executor, colon, native = name.partition(":")
        return (self._rows("WHERE j.id = ? OR j.native_id = ?", name, name)
                or self._rows("WHERE j.array = ?", name) or self._rows("WHERE s.name = ?", name)
                or (self._rows("WHERE s.executor = ? AND j.native_id = ?", executor.lower(), native) if colon else []))

    def _rows(self, where: str, *values: object) -> list[Row]:
        found = self._ask("SELECT j.submission, j.job, j.id, j.name, j.label, j.native_id, s.executor, j.state, "
                          "j.outcome, j.exit_code, j.array FROM jobs j JOIN submissions s ON s.number = j.submission "
                          f"{where} ORDER BY j.submission, j.job", *values)
        return [Row(*values) for values in found]

    def _write_events(self, number: int, events: Sequence[Event]) -> None:
        when = time.time()
        self._connection.executemany(
            "INSERT INTO events (submission, job, part, time, kind, source, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, e.job, e.part, e.time or when, e.kind, e.source, json.dumps(e.data, default=str))
             for e in events])

    def changes(self) -> int:
        """Another number whenever another client has written something."""
        return int(self._ask("PRAGMA data_version")[0][0])

    def _ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        with _told(self.path):
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and on the disk."""
        with _told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):       # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise


@dataclass(slots=True)
class Entry:
    """A submission in a journal. time: when it was made, seconds since the epoch, on host."""

    journal: Journal
    number: int
    token: str
    executor: str
    document: str
    directory: Path
    policy: str
    name: str | None
    time: float
    ended: float | None
    host: str
    _lease: int | None = None
    _unwritten: list[Event] = field(default_factory=list)
    _changed: dict[int, Row] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its lease and scripts are."""
        return self.journal.folder(self.token)

    # -- the lease
    def take(self) -> bool:
        """Become the one client that starts and follows its jobs; False while another one is."""
        while self._lease is None:
            with _told(self.journal.path):
                lease = self.open_file("lease", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lease)
                return False
            if not os.fstat(lease).st_nlink:        # who held it has removed it since it was opened
                os.close(lease)
                continue
            self._lease = lease
            self.ended = self.journal.entry(self.number).ended
        return True

    def open_file(self, name: str, flags: int) -> int:
        """A descriptor of a file in its folder, which is made where there is none. Raises AccessError, OSError. Another
        client that saw the last job end removes the folder at any moment."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError, FileExistsError):
                make_folder(self.folder)
                return os.open(self.folder / name, flags | os.O_CLOEXEC, 0o600)
        raise AccessError(str(self.folder), "is removed again and again")

    def held(self) -> bool:
        """Whether some client, perhaps this one, holds the lease."""
        if self._lease is not None:
            return True
        taken = self.take()
        self.release()
        return not taken

    def release(self) -> None:
        """Let other clients take over; after the end of its last job the folder goes too."""
        lease, self._lease = self._lease, None
        if lease is not None:
            if self.ended is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(lease)

    # -- the history
    def events(self, after: int = 0, wishes: bool = False) -> list[Event]:
        """The history after an event, the oldest first. wishes: only what others want of who looks after the jobs."""
        some = "AND kind IN ('cancel', 'release') " if wishes else ""
        found = self.journal._ask("SELECT job, kind, source, data, part, time, number FROM events WHERE submission = ? "
                                  f"AND number > ? {some}ORDER BY number", self.number, after)
        with _told(self.journal.path):
            return [Event(job, kind, source, json.loads(data), part, when, number)
                    for job, kind, source, data, part, when, number in found]

    def note(self, event: Event, row: Row | None = None) -> None:
        """Remember an event, and how a job stands after it, for the next ``flush``."""
        self._unwritten.append(event)
        if row is not None:
            self._changed[row.job] = row

    def flush(self, *events: Event, ended: bool = False) -> None:
        """Write what was noted, and these events, in one transaction. Raises AccessError; then nothing was written and
        what was noted is kept. ended: all jobs have. For native ids, which cannot be refused any more, a full disk is
        given back the room that is kept for that."""
        if not (self._unwritten or self._changed or events or ended):
            return
        try:
            self._write(events, ended)
        except AccessError as error:
            needed = any(event.kind == "native" for event in self._unwritten)
            if not (needed and _is_full(error) and self.journal._spend_reserve()):
                raise
            self._write(events, ended)

    def _write(self, events: Sequence[Event], ended: bool) -> None:
        journal = self.journal
        when = time.time()
        with journal._transaction():
            journal._write_events(self.number, [*self._unwritten, *events])
            journal._connection.executemany(
                "UPDATE jobs SET id = ?, native_id = ?, state = ?, outcome = ?, exit_code = ? WHERE submission = ? AND "
                "job = ?", [(r.id, r.native_id, r.state, r.outcome, r.exit_code, self.number, r.job)
                            for r in self._changed.values()])
            if ended:
                journal._connection.execute("UPDATE submissions SET ended = ? WHERE number = ? AND ended IS NULL",
                                            (when, self.number))
        self._unwritten.clear()
        self._changed.clear()
        if ended:
            self.ended = when

    def forget(self, kind: str) -> None:
        """Drop what was noted of a kind and could not be written."""
        self._unwritten = [event for event in self._unwritten if event.kind != kind]
