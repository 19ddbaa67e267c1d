"""A journal in memory, for worlds in which no power is cut: one database, of which each client has a connection.

Statements are SQLite's own, also those of transactions; that files are locked while somebody writes is answered here:
who comes meanwhile waits, under virtual time, or is told that the database is locked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sssjob.run import storage

__all__ = ["Connection", "Memory"]

_connect = sqlite3.connect      # worlds have another one in its place
_LOOK_S = 0.01                  # between two looks at whether another client's transaction is over
_BUSY_S = 30.0                  # as in ``sssjob.run.storage``


class Memory:
    """The database. rest: lets time go on."""

    def __init__(self, rest: Callable[[float], object]) -> None:
        self.rest = rest
        self.writer: Connection | None = None           # whose transaction is open
        self.is_full = False                            # whether the disk has no room: nothing more can be written
        self.database, self._tables = _journal()

    def connection(self, path: str | os.PathLike[str], **_: object) -> Connection:
        """In the place of ``sqlite3.connect``."""
        return Connection(self)

    def close(self) -> None:
        """End of the world: the next one finds an empty journal. Statements that SQLite has read stay so."""
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")
        for table in self._tables:
            self.database.execute(f"DELETE FROM {table}")


class Connection:
    """As ``sqlite3.connect`` gives one: the part that the journal uses."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._is_open = memory, True

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        """Carry a statement out."""
        database = self._ready()
        self._find_room(statement)
        cursor = database.execute(statement, values)
        self._memory.writer = self if database.in_transaction else None
        return cursor

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        """Carry a statement out for each of these."""
        self._find_room(statement)
        return self._ready().executemany(statement, values)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of this client is open."""
        return self._memory.writer is self

    def close(self) -> None:
        """End it: a transaction that is open is taken back."""
        if self.in_transaction:
            self._memory.database.execute("ROLLBACK")
            self._memory.writer = None
        self._is_open = False

    def _find_room(self, statement: str) -> None:
        if self._memory.is_full and statement.startswith(("INSERT", "UPDATE")):
            raise sqlite3.OperationalError("database or disk is full")

    def _ready(self) -> sqlite3.Connection:
        """The database, once no other client writes."""
        waited_s = 0.0
        while self._memory.writer not in (None, self):
            if waited_s > _BUSY_S:
                raise sqlite3.OperationalError("database is locked")
            self._memory.rest(_LOOK_S)
            waited_s += _LOOK_S
        if not self._is_open:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        return self._memory.database


@cache
def _journal() -> tuple[sqlite3.Connection, list[str]]:
    """A journal of nothing, and its tables."""
    database = _connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=500)
    with patch("sssjob.run.storage._set_mode"):         # there is no log to be written ahead in memory
        storage._prepare(database, Path("journal.db"))
    return database, [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
