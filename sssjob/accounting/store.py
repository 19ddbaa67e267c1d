"""Where a ledger is kept: SQLite by default, PostgreSQL by URL. Entries are only ever added.

Both databases refuse to change or remove an entry (triggers). Every transaction takes the one row of ``head`` first,
so that several writers follow one another. What is derived of the entries (accounts, charges in force, holds) is
written in the same transaction, and is held against them by ``Ledger.verify``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.places import check_name, state_folder

__all__ = ["Store", "default_place", "open_store", "shown"]

_MARK: Final = 0x5353534C       # application_id: "SSSL"
_VERSION: Final = 2
_BUSY_S: Final = 60.0           # another writer's transaction takes no longer
_SCHEMES: Final = ("postgresql", "postgres")
_PAGE: Final = 16384            # bytes of a page of SQLite: some entries of a few KB have room in it
_TABLES: Final = """
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, number BIGINT NOT NULL,
    hash TEXT NOT NULL);
CREATE TABLE entries (number BIGINT PRIMARY KEY, time BIGINT NOT NULL, kind TEXT NOT NULL, account TEXT NOT NULL,
    currency TEXT NOT NULL, amount TEXT NOT NULL, machine TEXT NOT NULL, job TEXT NOT NULL, start BIGINT NOT NULL,
    refers BIGINT NOT NULL, token TEXT UNIQUE, user_name TEXT NOT NULL, document TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX entries_account ON entries (account, currency, number);
CREATE INDEX entries_job ON entries (job);
CREATE INDEX entries_refers ON entries (refers);
CREATE TABLE rates (digest TEXT PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE accounts (account TEXT NOT NULL, currency TEXT NOT NULL, balance TEXT NOT NULL, held TEXT NOT NULL,
    credit TEXT NOT NULL, PRIMARY KEY (account, currency));
CREATE TABLE charges (machine TEXT NOT NULL, job TEXT NOT NULL, start BIGINT NOT NULL, entry BIGINT NOT NULL,
    content TEXT NOT NULL, rates TEXT NOT NULL, PRIMARY KEY (machine, job, start));
CREATE TABLE holds (entry BIGINT PRIMARY KEY, machine TEXT NOT NULL, job TEXT NOT NULL, expires BIGINT NOT NULL);
CREATE INDEX holds_job ON holds (job);
CREATE TABLE settings (account TEXT NOT NULL, currency TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (account, currency));
CREATE TABLE terms (entry BIGINT PRIMARY KEY, account TEXT NOT NULL, currency TEXT NOT NULL, since BIGINT NOT NULL,
    until BIGINT NOT NULL);
CREATE TABLE sources (name TEXT PRIMARY KEY, state TEXT NOT NULL);
INSERT INTO head VALUES (1, 2, 0, '');
"""
_SQLITE_KEPT: Final = """
CREATE TRIGGER entries_{verb} BEFORE {verb} ON entries BEGIN SELECT RAISE(ABORT, 'entries of a ledger are kept'); END;
"""
_POSTGRES_KEPT: Final = """
CREATE FUNCTION entries_kept() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries of a ledger are kept'; END $$;
CREATE TRIGGER entries_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION entries_kept();
"""


def default_place(environment: Mapping[str, str] = os.environ) -> str:
    """SSSJOB_LEDGER, else ``sssjob/ledger.db`` where state belongs (XDG_STATE_HOME, ~/.local/state)."""
    return environment.get("SSSJOB_LEDGER") or str(_own_folder() / "ledger.db")


def _own_folder() -> Path:
    return state_folder("sssjob", "SSSJOB_LEDGER")


def _is_own(folder: Path) -> bool:
    """Whether it is the folder of a ledger for which no place was stated."""
    with suppress(AccessError):         # no home directory: there is none
        return folder == _own_folder()
    return False


def shown(place: str) -> str:
    """A place as it may be printed: a URL without its password."""
    parts = urlsplit(place) if "://" in place else None
    if parts is None or parts.password is None:
        return escape(place)
    netloc = f"{parts.username or ''}:***@{parts.netloc.rpartition('@')[2]}"
    return escape(urlunsplit(parts._replace(netloc=netloc)))


def _no_text(error: UnicodeEncodeError) -> UsageError:
    return UsageError(f"{escape(error.object)} has bytes that are no UTF-8, which no ledger can hold")


class _Rows:
    """The rows that a statement gives. Each way to them raises AccessError, for a file may turn out to be damaged, or a
    server be gone, behind the first ones."""

    __slots__ = ("_cursor", "_errors", "_trouble")

    def __init__(self, cursor: Any, errors: tuple[type[Exception], ...],
                 trouble: Callable[[Exception], AccessError]) -> None:
        self._cursor, self._errors, self._trouble = cursor, errors, trouble

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed."""
        count: int = self._cursor.rowcount
        return count

    def fetchone(self) -> Any:
        """The next row; None after the last one."""
        try:
            return self._cursor.fetchone()
        except self._errors as error:
            raise self._trouble(error) from error

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from chain(self._cursor)      # so that rows which nobody asks for any more do not close the cursor
        except self._errors as error:
            raise self._trouble(error) from error


class Store:
    """A connection. Statements have ``?`` for values. Use it in one thread."""

    def __init__(self, place: str, connection: Any, sign: str, begin: str, errors: type[Exception]) -> None:
        self.place, self._connection, self._sign, self._begin = place, connection, sign, begin
        self._errors = (errors, UnicodeDecodeError)     # a damaged file has bytes that SQLite puts into its messages
        self._within = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was not committed is gone."""
        with suppress(*self._errors):
            self._connection.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> _Rows:
        """Run a statement. Raises AccessError."""
        try:
            if self._sign == "?":
                cursor = self._connection.execute(sql, values)
            else:       # without values several statements may stand in one text
                cursor = self._connection.execute(sql.replace("?", self._sign), values or None)
        except UnicodeEncodeError as error:
            raise _no_text(error) from error
        except self._errors as error:
            raise self._trouble(error) from error
        return _Rows(cursor, self._errors, self._trouble)

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row of values. Raises AccessError."""
        if not values:
            return
        try:
            if self._sign == "?":
                self._connection.executemany(sql, values)
            else:
                self._connection.cursor().executemany(sql.replace("?", self._sign), values)
        except UnicodeEncodeError as error:
            raise _no_text(error) from error
        except self._errors as error:
            raise self._trouble(error) from error

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        return self.execute(sql, values).fetchone()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; other writers wait. One within another belongs to that. Raises AccessError."""
        if self._within:
            yield
            return
        self.execute(self._begin)
        self._within = True
        try:
            self.execute("UPDATE head SET version = version")
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(AccessError):
                self.execute("ROLLBACK")
            raise
        finally:
            self._within = False

    def _trouble(self, error: Exception) -> AccessError:
        return AccessError(shown(self.place), " ".join(str(error).split())[:300])


def open_store(place: str | None = None, *, create: bool = True) -> Store:
    """The ledger at a path or ``postgresql://`` URL (None: ``default_place``), made if it is not there. Of folders only
    sssjob's own, where state belongs, is made: any other name may be a slip.

    Raises AccessError (cannot be opened, is none, not there with create=False) and UsageError (another kind of URL, or
    one that needs psycopg, which is not installed).
    """
    place = place or default_place()
    scheme = place.partition("://")[0] if "://" in place else ""
    if scheme in _SCHEMES:
        return _postgres(place, create)
    if scheme:
        raise UsageError(f"no ledger can be kept at {scheme}:// (a file, or postgresql://...)")
    return _sqlite(place, create)


def _sqlite(place: str, create: bool) -> Store:
    check_name(place)
    path = Path(os.path.abspath(place))
    try:
        if not path.exists():
            if not create:
                raise AccessError(shown(place), "there is no ledger")
            if _is_own(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            elif not path.parent.is_dir():
                raise AccessError(shown(place), f"there is no folder {escape(str(path.parent))}")
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        if not path.is_file():          # SQLite would try, and leave its journal beside a device
            raise AccessError(shown(place), "is no file, and cannot be a ledger")
        if not create and not path.stat().st_size:
            raise AccessError(shown(place), "the file is empty, there is no ledger in it")
        if missing := _cut_off(path):
            raise AccessError(shown(place), f"the file is cut off, {missing} bytes of it are missing: bring back a "
                              "copy")
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, AccessError):
            raise
        raise AccessError(shown(place), getattr(error, "strerror", None) or str(error)) from None
    store = Store(place, connection, "?", "BEGIN IMMEDIATE", sqlite3.Error)
    try:
        _prepare_sqlite(store)
    except BaseException:
        store.close()
        raise
    return store


def _cut_off(path: Path) -> int:
    """How many bytes less a file of SQLite has than its header says; 0 where the header cannot be asked, as while a
    journal stands beside the file. SQLite itself notices when it comes to a page that is not there.
    Source: https://www.sqlite.org/fileformat.html, sections 1.3.2 and 1.3.8.
    """
    with path.open("rb") as file:
        header = file.read(100)
    journals = (path.with_name(path.name + ending) for ending in ("-journal", "-wal"))
    if not header.startswith(b"SQLite format 3\0") or len(header) < 100 or any(j.exists() for j in journals):
        return 0
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
    return max(0, pages * (65536 if page == 1 else page) - path.stat().st_size)     # last: it may be growing


def _prepare_sqlite(store: Store) -> None:
    store.execute("PRAGMA synchronous = FULL")
    store.execute("BEGIN")          # both at one moment: another client may be making the tables
    mark, tables = store.one("PRAGMA application_id")[0], store.one("SELECT count(*) FROM sqlite_master")[0]
    store.execute("COMMIT")
    if mark not in (0, _MARK) or (mark == 0 and tables):
        raise AccessError(shown(store.place), "is a database of something else")
    if mark == 0:
        store.execute(f"PRAGMA page_size = {_PAGE}")        # of no effect where another client was first
        store.execute("BEGIN IMMEDIATE")
        if not store.one("SELECT count(*) FROM sqlite_master")[0]:      # nobody else was first
            kept = [_SQLITE_KEPT.format(verb=verb) for verb in ("UPDATE", "DELETE")]
            for statement in [*_TABLES.strip().split(";\n"), *kept]:
                store.execute(statement.strip())
            store.execute(f"PRAGMA application_id = {_MARK}")
        store.execute("COMMIT")
    _check_version(store)


def _postgres(place: str, create: bool) -> Store:
    try:
        import psycopg
    except ImportError:
        raise UsageError("a ledger in PostgreSQL needs psycopg: pip install 'sssjob[postgresql]'") from None
    try:
        connection = psycopg.connect(place, autocommit=True, connect_timeout=30, application_name="sssjob")
    except psycopg.Error as error:
        raise AccessError(shown(place), " ".join(str(error).split())[:300]) from None
    store = Store(place, connection, "%s", "BEGIN", psycopg.Error)
    try:
        _prepare_postgres(store, create)
    except BaseException:
        store.close()
        raise
    return store


def _prepare_postgres(store: Store, create: bool) -> None:
    if store.one("SELECT to_regclass('head')")[0] is None:
        if not create:
            raise AccessError(shown(store.place), "there is no ledger")
        store.execute("BEGIN")
        store.execute(f"SELECT pg_advisory_xact_lock({_MARK})")
        if store.one("SELECT to_regclass('head')")[0] is None:
            for statement in [*_TABLES.strip().split(";\n"), _POSTGRES_KEPT]:
                store.execute(statement)
        store.execute("COMMIT")
    _check_version(store)


def _check_version(store: Store) -> None:
    head = store.one("SELECT version, number, hash FROM head")
    if head is None:
        raise AccessError(shown(store.place), "is a ledger without its head")
    version, number, last_hash = head
    if not isinstance(number, int) or not isinstance(last_hash, str):
        raise AccessError(shown(store.place), "is damaged: its head does not say which entry is the last one")
    if version != _VERSION:
        raise AccessError(shown(store.place), f"is a ledger of version {version}, this sssjob knows {_VERSION}")
