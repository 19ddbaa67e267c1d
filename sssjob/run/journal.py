"""The journal: what was submitted and all that was learnt of it, so that it outlives the client.

One SQLite file, write-ahead, every commit on the disk before anything follows from it. A submission is a document with
the executor that runs it; its history is a list of events that is only ever added to, and what is known of a job
follows from reading them again (``standing``). Several clients may use it at once: each event is one transaction, and
only who holds the lease of a submission starts or follows its jobs. A lease is a lock of the operating system, which
goes with its holder, so that no clock is in it.

Beside the file, ``<file>.d/<token>/`` holds the lease and the scripts of an unfinished submission.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from sssjob.errors import AccessError, UsageError
from sssjob.run.history import WISHES, Event, stamp
from sssjob.run.listing import Details, write_details
from sssjob.run.rows import GONE, ROUTED, JournalRows, Row
from sssjob.run.storage import (
    VERSION,
    connected,
    default_path,
    has_no_room,
    is_full,
    make_folder,
    make_private,
    private,
    told,
)

__all__ = ["Entry", "Journal", "open_journal"]

#: The history of a submission after an event, and what of it others want of who looks after its jobs.
_EVENTS: Final = "SELECT job, kind, source, data, part, time, number FROM events WHERE submission = ? AND number > ? "
_WISHED: Final = f"AND kind IN {('cancel', *WISHES, 'cap', 'on-end')} "
_SHOWN: Final = ("jobs", "details")     # the tables that lists read
_TRIES: Final = 100             # to find a folder that other clients remove
_STAMP: Final = 512             # bytes in which a stamp stands in a lease
_RESERVE: Final = 1 << 18       # bytes that are given back to a full disk when native ids need them


def open_journal(path: Path | None = None) -> Journal:
    """The journal of that file, made where there is none. Raises AccessError."""
    path = default_path() if path is None else path
    with told(path):
        make_private(path)
        try:
            connection = connected(path)
        except sqlite3.OperationalError:
            if not has_no_room(path):
                raise
            connection = connected(path, alone=True)
    journal = Journal(path, connection)
    journal.have_reserve()
    return journal


class Journal(JournalRows):
    """An open journal."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.reserve_spent = False      # by this client: the disk is full, and what follows may not be written
        self._taken_back: list[Callable[[], None]] | None = None    # within a transaction: what restores what it took
        self._in_part = False           # of a transaction, which is taken back alone
        self._folders = path.with_name(path.name + ".d")

    def have_reserve(self) -> None:
        """Have the file beside the journal that takes up room until the disk is full. None where there is no room."""
        # a journal without one is one all the same
        with suppress(OSError), open(self._reserve, "ab", opener=private) as file:
            if file.tell() < _RESERVE:
                os.posix_fallocate(file.fileno(), 0, _RESERVE)

    def _spend_reserve(self) -> bool:
        """Give the room back; whether there was any."""
        try:
            size = self._reserve.stat().st_size
            self._reserve.unlink()
        except OSError:                 # another client has spent it
            return False
        self.reserve_spent = True
        return size > 0

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
        return self._folders / token

    def add(self, token: str, executor: str, document: str, directory: Path, policy: str, name: str | None,
            rows: Sequence[Row], events: Sequence[Event] = (), cluster: str | None = None,
            request: str | None = None, site: str | None = None, settings: Mapping[str, Any] | None = None) -> Entry:
        """Write down a submission with its jobs and the first events. name: the group's id. cluster: where its jobs
        are, None where that is not known. request: what its user calls it; that of a submission which is there already
        gives that one, and nothing is written. site: the name of its profile; settings: with which it is made."""
        now, host = time.time(), socket.gethostname()
        with self._transaction():
            inserted = self._connection.execute(
                "INSERT INTO submissions (token, executor, document, directory, policy, name, time, client, cluster, "
                "request, site, settings) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM submissions WHERE request = ?)",
                (token, executor, document, os.fspath(directory), policy, name, now, f"{host}:{os.getpid()}", cluster,
                 request, site, json.dumps(dict(settings)) if settings else None, request))
            if not inserted.rowcount and request is not None and (earlier := self.requested(request)) is not None:
                return earlier
            number = inserted.lastrowid
            assert number is not None
            self._check_keys(events)
            for row in rows:
                row.submission, row.executor = number, executor
            self._connection.executemany(
                "INSERT INTO jobs (submission, job, id, name, label, state, outcome, array, message) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(number, r.job, r.id, r.name, r.label, r.state, r.outcome, r.array, r.message) for r in rows])
            self._write_events(number, events)
        return Entry(self, number, token, executor, document, Path(directory), policy, name, now, None, host, cluster,
                     site, request, dict(settings or {}))

    def requested(self, request: str) -> Entry | None:
        """The submission that its user calls so; None where there is none."""
        numbers = self._ask("SELECT number FROM submissions WHERE request = ?", request)
        return self.entry(numbers[0][0]) if numbers else None

    def _check_keys(self, events: Sequence[Event]) -> None:
        """Refuse a submission that depends on another one which was taken out since that was looked up."""
        keys = {key for event in events if event.kind == "after" for key in event.data["keys"] if key.startswith("@")}
        for key in sorted(keys):
            if not self._connection.execute("SELECT 1 FROM submissions WHERE number = ?",
                                            (int(key[1:].partition(".")[0]),)).fetchone():
                raise UsageError(f"{key} was taken out of {self.path} just now")

    def entry(self, number: int) -> Entry:
        """A submission. Raises UsageError."""
        rows = self._ask("SELECT token, executor, document, directory, policy, name, time, ended, client, "
                         "cluster, site, request, settings FROM submissions WHERE number = ?", number)
        if not rows:
            raise self._unknown(number)
        token, executor, document, directory, policy, name, at, ended, client, cluster, site, request, stated = rows[0]
        return Entry(self, number, token, executor, document, Path(directory), policy, name, at, ended,
                     client.rpartition(":")[0], cluster, site, request, json.loads(stated) if stated else {})

    def entries(self, numbers: Iterable[int]) -> list[Entry]:
        """Submissions, without those that another client has taken out since their numbers were read."""
        entries = []
        for number in numbers:
            with suppress(UsageError):
                entries.append(self.entry(number))
        return entries

    def _write_events(self, number: int, events: Sequence[Event]) -> None:
        now = time.time()
        self._connection.executemany(
            "INSERT INTO events (submission, job, part, time, kind, source, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, e.job, e.part, e.time or now, e.kind, e.source, json.dumps(e.data, default=str)) for e in events))

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of whoever changes more than one submission. Raises AccessError."""
        with self._transaction():
            yield self._connection

    def compact(self) -> None:
        """Give back the room of what was removed. Raises AccessError where other clients are busy for too long, or the
        disk has no room for a second file meanwhile; then the journal is as it was."""
        with told(self.path):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def ask(self, question: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a question with named values. Raises AccessError."""
        with told(self.path):
            return self._connection.execute(question, values).fetchall()

    def _ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        with told(self.path):
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within is one transaction, on the disk when this ends. A part that fails is taken back alone,
        and raises. Raises AccessError where the whole cannot be written; then nothing of it was, and what entries had
        noted they have noted again."""
        with self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and on the disk; within another one on the disk with that, and within a part of one nothing
        if that is nothing."""
        with told(self.path):
            if self._in_part:
                yield
                return
            if self._taken_back is not None:
                with self._part():
                    yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._taken_back = []
            try:
                version = self._connection.execute("PRAGMA user_version").fetchone()[0]
                if version != VERSION:
                    raise AccessError(str(self.path), f"a newer sssjob has made it a journal of version {version}; "
                                                      f"this one knows version {VERSION} and writes nothing more")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):       # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                for restore in reversed(self._taken_back):
                    restore()
                raise
            finally:
                self._taken_back = None

    @contextmanager
    def _part(self) -> Iterator[None]:
        if not self._connection.in_transaction:     # a savepoint would begin a transaction of its own
            raise sqlite3.OperationalError("the transaction was rolled back")
        self._connection.execute("SAVEPOINT part")
        self._in_part = True
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):           # a full disk has rolled all of it back
                self._connection.execute("ROLLBACK TO part")
                self._connection.execute("RELEASE part")
            raise
        finally:
            self._in_part = False
        self._connection.execute("RELEASE part")

    @contextmanager
    def as_known(self, entries: Iterable[Entry | None]) -> Iterator[None]:
        """Questions within are answered with what these entries have noted and the disk has no room for: by tables of
        this connection, in memory, which hide those of the file."""
        unwritten = [entry for entry in entries if entry is not None and entry.has_noted]
        with told(self.path):
            if unwritten:
                self._connection.execute("PRAGMA temp_store = MEMORY")
                for table in _SHOWN:
                    self._connection.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM main.{table}")
                    self._connection.execute(f"CREATE UNIQUE INDEX temp.{table}_key ON {table} (submission, job)")
            for entry in unwritten:
                entry.write_rows(self._connection)
            try:
                yield
            finally:
                for table in _SHOWN if unwritten else ():
                    self._connection.execute(f"DROP TABLE temp.{table}")

    def flush_together(self, entries: Sequence[tuple[Entry, bool]]) -> None:
        """Write what entries have noted in one transaction; where that fails nothing is written, and each ``flush``
        tells why. entries: with whether all jobs of each have ended."""
        noted = [(entry, ended) for entry, ended in entries if entry.has_noted or ended]
        if len(noted) > 1:
            with suppress(AccessError), self.together():
                for entry, ended in noted:
                    entry.flush(ended=ended)


@dataclass(slots=True)
class Entry:
    """A submission in a journal. time: when it was made, seconds since the epoch, on host. cluster: where its jobs are,
    None where that is not known."""

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
    cluster: str | None = None
    site: str | None = None         # the name of the profile by which it was submitted
    request: str | None = None      # what its user calls it
    settings: Mapping[str, Any] = field(default_factory=dict)       # with which it was made
    pinned: Mapping[str, Any] | None = None     # what of them is valid, once somebody has asked for that
    folder: Path = field(init=False)    # where its lease and scripts are
    way: str | None = None          # by which its cluster was reached while that did not say which it is (``placing``)
    asked_until: float = -math.inf  # by the monotonic clock: until when it is not asked again
    stays_held: bool = False        # until this process ends: something here still works for it, and does not stop
    last_begun: Mapping[str, Any] = field(default_factory=dict)     # the stamp that it had when the lease was taken
    _lease: int | None = None
    _unwritten: list[Event] = field(default_factory=list)
    _changed: dict[int, Row] = field(default_factory=dict)
    _details: dict[int, Callable[[], Details]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.journal.folder(self.token)

    @property
    def is_routed(self) -> bool:
        """Whether its site was chosen among several."""
        return (self.request or "").startswith(ROUTED)

    @property
    def is_gone(self) -> bool:
        """Whether another client has taken it out of the journal, as far as was noticed."""
        return self.ended == GONE

    # -- the lease
    def take(self) -> bool:
        """Become the one client that starts and follows its jobs; False while another one is, and where nothing is to
        be done because it was taken out of the journal."""
        while self._lease is None:
            with told(self.journal.path):
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
            with suppress(OSError, ValueError):         # where the power was cut, another boot's clock tells nothing
                self.last_begun = json.loads(os.pread(lease, _STAMP, 0))
            self.ended = self.journal.end_of(self.number)
        if self.is_gone:
            self.release()
        return not self.is_gone

    def begins(self) -> None:
        """Note in the lease that a submit command begins now. Who takes it next counts from then how long that command
        may be under way; nothing of this need outlive the machine, so nothing waits for the disk."""
        if self._lease is not None:
            with suppress(OSError):     # then it is counted from the intent
                os.pwrite(self._lease, json.dumps(stamp()).encode().ljust(_STAMP), 0)

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
        if not os.path.exists(self.folder / "lease"):   # which stays while somebody holds it
            self.ended = self.journal.end_of(self.number)
            return False
        taken = self.take()
        self.release()
        return not (taken or self.is_gone)

    def release(self) -> None:
        """Let other clients take over; after the end of its last job the folder goes too."""
        if self.stays_held:
            return
        lease, self._lease = self._lease, None
        if lease is not None:
            if self.ended is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(lease)

    # -- the history
    def events(self, after: int = 0, wishes: bool = False) -> list[Event]:
        """The history after an event, the oldest first. wishes: only what others want of who looks after the jobs."""
        rows = self.journal._ask(f"{_EVENTS}{_WISHED if wishes else ''}ORDER BY number", self.number, after)
        with told(self.journal.path):
            return [Event(job, kind, source, json.loads(data), part, float(when), number)
                    for job, kind, source, data, part, when, number in rows]

    def detail(self, job: int, details: Callable[[], Details]) -> None:
        """Remember where to learn the details of a job at the next ``flush``."""
        self._details[job] = details

    def note(self, event: Event, row: Row | None = None) -> None:
        """Remember an event, and how a job stands after it, for the next ``flush``."""
        self._unwritten.append(event)
        if row is not None:
            self._changed[row.job] = row

    def flush(self, *events: Event, ended: bool = False) -> None:
        """Write what was noted, and these events, in one transaction. Raises AccessError; then nothing was written and
        what was noted is kept. ended: all jobs have. For native ids, which cannot be refused any more, a full disk is
        given back the room that is kept for that."""
        if not (self.has_noted or events or ended):
            return
        try:
            self._write(events, ended)
        except AccessError as error:
            needed = self.journal._taken_back is None and any(event.kind == "native" for event in self._unwritten)
            if not (needed and is_full(error) and self.journal._spend_reserve()):
                raise
            self._write(events, ended)

    @property
    def has_noted(self) -> bool:
        """Whether something is to be written."""
        return bool(self._unwritten or self._changed or self._details)

    def _write(self, events: Sequence[Event], ended: bool) -> None:
        journal = self.journal
        when = time.time()
        with journal._transaction():
            journal._write_events(self.number, [*self._unwritten, *events])
            self.write_rows(journal._connection)
            ended = ended and not self._has_promises()
            if ended:
                journal._connection.execute("UPDATE submissions SET ended = ? WHERE number = ? AND ended IS NULL",
                                            (when, self.number))
        if (restores := journal._taken_back) is not None:
            restores.append(partial(self._restore, self._unwritten, self._changed, self._details, self.ended))
        self._unwritten, self._changed, self._details = [], {}, {}
        if ended:
            self.ended = when

    def write_rows(self, connection: sqlite3.Connection) -> None:
        """Write how jobs stand as it was noted, into the tables that the list reads."""
        connection.executemany(
            "UPDATE jobs SET id = ?, name = ?, native_id = ?, state = ?, outcome = ?, exit_code = ?, message = ? "
            "WHERE submission = ? AND job = ?",
            [(r.id, r.name, r.native_id, r.state, r.outcome, r.exit_code,
              r.message and r.message.encode(errors="replace").decode(),    # words of a manager may be of any bytes
              self.number, r.job) for r in self._changed.values()])
        if self._details:
            write_details(connection, self.number, [(job, of()) for job, of in self._details.items()])

    def _restore(self, events: list[Event], rows: dict[int, Row], details: dict[int, Callable[[], Details]],
                 ended: float | None) -> None:
        """Note again what a transaction had taken that was not written in the end."""
        self._unwritten, self.ended = [*events, *self._unwritten], ended
        self._changed, self._details = rows | self._changed, details | self._details

    def place(self, cluster: str) -> None:
        """Note on which cluster its jobs are, where that was not known."""
        with self.journal._transaction():
            self.journal._connection.execute("UPDATE submissions SET cluster = ? WHERE number = ? AND cluster IS NULL",
                                             (cluster, self.number))
        self.cluster = self.journal.entry(self.number).cluster

    def _has_promises(self) -> bool:
        """Whether another client has promised something for an end that nobody has taken in, and done, yet."""
        open_ones: set[tuple[int, str]] = set()
        for job, kind, text in self.journal._ask("SELECT job, kind, data FROM events WHERE submission = ? AND "
                                                 "kind IN ('on-end', 'hook') ORDER BY number", self.number):
            data = json.loads(text)
            if kind == "on-end":
                open_ones.add((job, data["hook"]))
            elif data["step"] != "failed":
                open_ones.discard((job, data["hook"]))
        return bool(open_ones)

    def reopen(self, events: Sequence[Event]) -> None:
        """Write events after which something is to be done although all jobs may have ended. Raises AccessError."""
        with self.journal._transaction():
            self.journal._write_events(self.number, events)
            self.journal._connection.execute("UPDATE submissions SET ended = NULL WHERE number = ?", (self.number,))
        self.ended = None

    def forget(self, kind: str) -> None:
        """Drop what was noted of a kind and could not be written."""
        self._unwritten = [event for event in self._unwritten if event.kind != kind]
