"""A disk that loses what nobody waited for: a VFS of SQLite (apsw) below the journal, and connections that use it.

Writes reach the file at once, as other clients see them, and are remembered until they are synced. When the power is
cut, each of them that was not is lost, kept, or torn: some of its sectors are there and some are not, in any order.
That is what SQLite is built for (sqlite.org/atomiccommit.html, 2), and what a journal without
``PRAGMA synchronous = FULL`` does not survive.

The shared memory of the write-ahead log is no part of a disk: it goes with the power.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

__all__ = ["Connection", "Disk"]

_SECTOR = 512
_numbers = itertools.count()


class Disk:
    """What is below one journal. chance: by which it is drawn what of the writes is left.

    cut_in: operations until the power is cut; None while nobody wants that. is_cut: whether it was, after which every
    operation fails until ``restore``.
    """

    def __init__(self, journal: Path, chance: random.Random) -> None:
        self.chance = chance
        self.cut_in: int | None = None
        self.is_cut = False
        self.cuts = 0
        self._places = [journal.with_name(journal.name + suffix) for suffix in ("", "-wal", "-journal")]
        self._memory = journal.with_name(journal.name + "-shm")
        self._synced: dict[str, bytearray] = {}           # by path: what a cut cannot take away
        self._writes: dict[str, list[tuple[int, bytes | None]]] = {}    # since: where, what; None: cut off there
        self.name = f"simulated-{os.getpid()}-{next(_numbers)}"
        self._vfs = _VFS(self)

    def close(self) -> None:
        """Take the VFS out of SQLite."""
        self._vfs.unregister()

    def operation(self) -> None:
        """Before each write and sync. Raises OSError once the power is cut."""
        if self.cut_in is not None:
            self.cut_in -= 1
            self.is_cut = self.is_cut or self.cut_in <= 0
        if self.is_cut:
            raise apsw.IOError("the power is cut")

    def wrote(self, path: str, at: int, data: bytes | None) -> None:
        """A write, or with None: the file was cut off there."""
        self._writes.setdefault(path, []).append((at, data))

    def synced(self, path: str) -> None:
        """All of a file is on the disk."""
        kept = self._synced.setdefault(path, bytearray())
        for at, data in self._writes.pop(path, ()):
            _put(kept, at, data)

    def removed(self, path: str) -> None:
        """A file is gone for good."""
        self._synced.pop(path, None)
        self._writes.pop(path, None)

    def restore(self) -> None:
        """Power again: files as the cut has left them. All who used the disk are gone."""
        for place in self._places:
            path = str(place)
            content = bytearray(self._synced.get(path, b""))
            for at, data in self._writes.pop(path, ()):
                self._leave(content, at, data)
            with suppress(FileNotFoundError):
                place.unlink()          # the old one may still be open, with its locks
            if content or path in self._synced:
                place.write_bytes(content)
                place.chmod(0o600)
                self._synced[path] = content
        with suppress(FileNotFoundError):
            self._memory.unlink()
        self.cut_in, self.is_cut = None, False
        self.cuts += 1

    def _leave(self, content: bytearray, at: int, data: bytes | None) -> None:
        """Keep of a write what the cut has left of it."""
        fate = self.chance.choice(("kept", "lost", "torn"))
        if data is None or fate != "torn":
            if fate != "lost":
                _put(content, at, data)
            return
        for begin in range(0, len(data), _SECTOR):
            if self.chance.random() < 0.5:
                _put(content, at + begin, data[begin:begin + _SECTOR])


def _put(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        content.extend(bytes(at - len(content)))
        return
    content.extend(bytes(max(at + len(data) - len(content), 0)))
    content[at:at + len(data)] = data


class _VFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _File(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.operation()
        super().xDelete(filename, syncdir)
        self.disk.removed(filename)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.disk, self.cuts = disk, disk.cuts
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def _operation(self) -> None:
        if self.cuts != self.disk.cuts:         # it was open when the power was cut: nothing of it counts
            raise apsw.IOError("the power was cut")
        self.disk.operation()

    def xWrite(self, data: bytes, offset: int) -> None:
        self._operation()
        super().xWrite(data, offset)
        self.disk.wrote(self.path, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        self._operation()
        super().xTruncate(newsize)
        self.disk.wrote(self.path, newsize, None)

    def xSync(self, flags: int) -> None:
        self._operation()
        super().xSync(flags)
        self.disk.synced(self.path)


# --- the part of sqlite3 that the journal uses -----------------------------------------------------------------------

class Connection:
    """As ``sqlite3.connect`` gives one, on a simulated disk. dies: called when it fails because the power is cut."""

    def __init__(self, path: str | os.PathLike[str], disk: Disk, dies: Callable[[], None]) -> None:
        self._disk, self._dies = disk, dies
        self._made = self._told(lambda: apsw.Connection(os.fspath(path), vfs=disk.name))

    def execute(self, statement: str, values: Any = ()) -> _Cursor:
        """Carry a statement out, to its end."""
        rows = self._told(lambda: list(self._made.execute(statement, values)))
        return _Cursor(rows, self._made.last_insert_rowid(), self._made.changes())

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Carry a statement out for each of these."""
        self._told(lambda: self._made.executemany(statement, values).close())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._made.in_transaction)

    def close(self) -> None:
        """Close the file."""
        self._told(self._made.close)

    def _told(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except apsw.BusyError as error:
            raise sqlite3.OperationalError("database is locked") from error
        except apsw.Error as error:
            if self._disk.is_cut:
                self._dies()
            raise sqlite3.DatabaseError(str(error)) from error


class _Cursor:
    def __init__(self, rows: list[Any], lastrowid: int, rowcount: int) -> None:
        self._rows, self.lastrowid, self.rowcount = rows, lastrowid, rowcount

    def fetchone(self) -> Any:
        """The first row; None where there is none."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        """All rows."""
        return self._rows
