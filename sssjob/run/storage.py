"""The file of the journal: where it is, who may read it, its tables and their versions, and what is said when it fails.

One SQLite file with a write-ahead log; on a file system that hosts share, where there can be none, without.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.places import state_folder
from sssjob.run.listing import SCHEMA as LIST_SCHEMA

__all__ = ["VERSION", "connected", "default_path", "has_no_room", "is_full", "make_folder", "make_private", "private",
           "reason_of", "told"]

_MARK: Final = 0x5353534A       # application_id: "SSSJ"
VERSION: Final = 8             # user_version
_BUSY_S: Final = 30.0           # another client's transaction takes no longer
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_BESIDE: Final = 1 << 15        # bytes of the smallest file of shared memory; sqlite.org/walformat.html, 2.1
_WORDS: Final = {"attempt to write a readonly database": "it is on a file system that can only be read"}
#: Where shared memory between hosts cannot be had, which a write-ahead log needs. Source: sqlite.org/wal.html, 1.
_NETWORK: Final = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "glusterfs", "fuse", "9p",
                   "orangefs")
#: Documents that go to one of several sites (``routing``).
_ROUTES: Final = """CREATE TABLE routes (
    token TEXT PRIMARY KEY, candidates TEXT NOT NULL, step INTEGER NOT NULL, phase TEXT NOT NULL, reasons TEXT NOT NULL,
    patience REAL, policy TEXT NOT NULL, directory TEXT NOT NULL, time REAL NOT NULL);
CREATE INDEX routes_open ON routes (time) WHERE phase != 'closed'"""
_CHANGES: Final = {     # version -> what makes the next one of it
    1: "ALTER TABLE jobs ADD COLUMN array TEXT;\nCREATE INDEX jobs_array ON jobs (array)",
    2: "ALTER TABLE jobs ADD COLUMN message TEXT",
    3: "ALTER TABLE submissions ADD COLUMN cluster TEXT",
    4: "ALTER TABLE submissions ADD COLUMN request TEXT;\n"
       "CREATE UNIQUE INDEX submissions_request ON submissions (request);\n"
       "CREATE INDEX jobs_open ON jobs (submission, job) WHERE outcome IS NULL",
    5: ";\n".join(LIST_SCHEMA),
    6: f"ALTER TABLE submissions ADD COLUMN site TEXT;\n{_ROUTES}",
    7: "ALTER TABLE submissions ADD COLUMN settings TEXT",
}
_SCHEMA: Final = f"""
CREATE TABLE submissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, executor TEXT NOT NULL, document TEXT NOT NULL,
    directory TEXT NOT NULL, policy TEXT NOT NULL, name TEXT, time REAL NOT NULL, client TEXT NOT NULL, ended REAL,
    cluster TEXT, request TEXT, site TEXT, settings TEXT);
CREATE UNIQUE INDEX submissions_request ON submissions (request);
CREATE TABLE jobs (
    submission INTEGER NOT NULL REFERENCES submissions, job INTEGER NOT NULL, id TEXT, name TEXT, label TEXT NOT NULL,
    native_id TEXT, state TEXT NOT NULL, outcome TEXT, exit_code INTEGER, array TEXT, message TEXT,
    PRIMARY KEY (submission, job));
CREATE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_native_id ON jobs (native_id);
CREATE INDEX jobs_array ON jobs (array);
CREATE INDEX jobs_open ON jobs (submission, job) WHERE outcome IS NULL;
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, submission INTEGER NOT NULL REFERENCES submissions, job INTEGER NOT NULL,
    part INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX events_submission ON events (submission, number);
{_ROUTES};
"""


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """SSSJOB_JOURNAL, else ``sssjob/journal.db`` where state belongs (XDG_STATE_HOME, ~/.local/state)."""
    stated = environment.get("SSSJOB_JOURNAL")
    return Path(os.path.abspath(stated)) if stated else state_folder("sssjob", "SSSJOB_JOURNAL") / "journal.db"


def connected(path: Path, alone: bool = False) -> sqlite3.Connection:
    """A connection that is brought to use. alone: without the memory that clients share, for which a file beside the
    journal needs room; others wait meanwhile."""
    only_read = _is_read_only(path)
    name = f"{path.absolute().as_uri()}?{_how_to_read(path)}" if only_read else path
    connection = sqlite3.connect(name, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=only_read)
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def make_private(path: Path) -> None:
    """The file and its folder; what others could write is refused or closed to them."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):     # of an earlier client, or of one that was quicker
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise AccessError(str(path), "is no file, and cannot be the journal")
    if status.st_uid != os.geteuid():
        raise AccessError(str(path), "belongs to another user, and cannot be your journal")
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o600)


def make_folder(folder: Path) -> None:
    """A folder that nobody else enters, such as that of a submission, and those above it that are not there."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check what the file is and bring it to use; a file of nobody's becomes a journal."""
    connection.execute("BEGIN")         # one look, or another client makes it between two questions
    mark, version, tables = (connection.execute(question).fetchone()[0] for question in (
        "PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master"))
    connection.execute("COMMIT")
    if mark != _MARK and (mark or tables):
        raise AccessError(str(path), "is an SQLite file, but no journal of sssjob")
    if mark == _MARK and version != VERSION and version not in _CHANGES:
        raise AccessError(str(path), f"is a journal of version {version}; this sssjob knows version {VERSION}")
    if _is_read_only(path):
        if (mark, version) != (_MARK, VERSION):
            raise AccessError(str(path), f"is a journal of version {version} on a read-only file system; "
                                         f"this sssjob reads version {VERSION}")
        return
    _set_mode(connection, "delete" if _on_network(path) else "wal")
    connection.execute("PRAGMA synchronous = FULL")
    if mark == _MARK and version == VERSION:
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
            for statement in (*_SCHEMA.split(";\n"), *LIST_SCHEMA):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
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


def _is_read_only(path: Path) -> bool:
    """Whether a file is on a file system of which everything can only be read."""
    with suppress(FileNotFoundError):
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return False


def _how_to_read(path: Path) -> str:
    """The parameter for SQLite by which it reads a journal beside which it can make no file. Where there is no
    write-ahead log no client has it open, through another mount, and it stays as it is (sqlite.org/wal.html, 4)."""
    return "mode=ro" if _on_network(path) or path.with_name(f"{path.name}-wal").exists() else "immutable=1"


def _on_network(path: Path, mounts: str = "/proc/self/mounts") -> bool:
    """Whether a file is on a file system that other hosts share."""
    with suppress(OSError), open(mounts, encoding="utf-8", errors="replace") as table:
        mount_points = [(line.split()[1], line.split()[2]) for line in table]
        inside = [(len(point), kind) for point, kind in mount_points
                  if path.is_relative_to(point.replace("\\040", " "))]
        return bool(inside) and max(inside)[1].startswith(_NETWORK)
    return False


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Have what SQLite and the system complain of, and what of the contents makes no sense, be told as an AccessError
    that names the journal; bytes in a word or a path that are no text as a UsageError that names these."""
    try:
        yield
    except sqlite3.Error as error:
        reason = "the disk is full" if _tells_full(error, path) else _WORDS.get(str(error), str(error))
        damaged = "not a database" in reason or "malformed" in reason
        hint = "; it is damaged or no journal: move it away to begin a new one" if damaged else ""
        raise AccessError(str(path), f"the journal cannot be used: {reason}{hint}") from error
    except (AccessError, UsageError):
        raise
    except OSError as error:
        raise AccessError(str(path), f"the journal cannot be used: {reason_of(error)}") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"{escape(error.object)} has bytes that are no UTF-8, which no journal can hold") from error
    except OverflowError as error:
        raise UsageError(f"no journal can hold a number of so many digits ({error})") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise AccessError(str(path), f"the journal cannot be used: it is damaged ({error})") from error


def reason_of(error: OSError) -> str:
    """Why the system has refused something, in a few words."""
    return "the disk is full" if error.errno in _NO_ROOM else error.strerror or str(error)


def private(path: str, flags: int) -> int:
    """An opener of files that only their owner reads."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def is_full(error: AccessError) -> bool:
    """Whether the journal could not be used because there is no room."""
    cause = error.__cause__
    return (isinstance(cause, sqlite3.OperationalError) and _tells_full(cause, Path(error.path))) or (
        isinstance(cause, OSError) and cause.errno in _NO_ROOM)


def _tells_full(error: sqlite3.Error, path: Path) -> bool:
    """Whether SQLite failed for want of room, which it does not always say."""
    return "full" in str(error) or ("disk I/O" in str(error) and has_no_room(path))


def has_no_room(path: Path) -> bool:
    """Whether the file system of a file has no room for what SQLite keeps beside a journal."""
    try:
        file_system = os.statvfs(path.parent)
    except OSError:
        return False
    return file_system.f_bavail * file_system.f_frsize < _BESIDE
