"""Reading a log a second time where the first time ended, through rotation and half-written lines.

What is known of a source is a text (``Source.state``): which file, how many bytes of it, a digest of its beginning, and
the lines of jobs that had not ended, which come again before what is new. A log that was rotated is found by its
beginning among the files beside it, whatever its name, and read to its end first. A folder is one log in files that
follow each other by name (PBS: one a day). The last line counts when it has an end.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from sssjob.errors import AccessError
from sssjob.findings import escape

__all__ = ["Pieces", "Source"]

_HEAD: Final = 4096         # bytes that a log is known by
_PIECE: Final = 1 << 20
_FILES: Final = 100_000     # of a folder
_LONGEST: Final = 64 << 20  # bytes of a line that is held until it has an end


@dataclass(slots=True)
class _Known:
    """What was read before. name: of the file in its folder; offset: bytes read of it; head: digest of its beginning;
    carried: lines to come again."""

    name: str = ""
    offset: int = 0
    head: str = ""
    carried: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str | None) -> _Known:
        """From the text of a state; without one, or of another form: nothing was read. The ledger knows its jobs."""
        if text is None:
            return cls()
        try:
            made = cls(**json.loads(text))
        except (ValueError, TypeError):
            return cls()            # the log is read from its beginning; the ledger charges no job twice
        return made if isinstance(made.offset, int) and made.offset >= 0 else cls()


class Source:
    """A log, or a folder of logs. state: what ``state`` gave the last time. notes: what was odd, after ``open``.

    Raises AccessError where it cannot be read.
    """

    def __init__(self, path: str, state: str | None = None) -> None:
        self.path = Path(os.path.abspath(path))
        self.name = str(self.path)
        self.notes: list[str] = []
        self._known = _Known.of(state)
        self._end: _Known | None = None

    def open(self) -> BinaryIO:
        """What is new since the last time, as a stream of whole lines."""
        try:
            parts = self._folder() if self.path.is_dir() else self._file()
        except OSError as error:
            raise AccessError(escape(self.name), error.strerror or str(error)) from None
        carried = "".join(f"{line}\n" for line in self._known.carried).encode("utf-8", "backslashreplace")
        return io.BufferedReader(Pieces(self._pieces(parts, carried)), _PIECE)

    def state(self, carried: Sequence[str]) -> str:
        """What to give the next time, when all was read. carried: lines to come again."""
        end = self._end or self._known
        return json.dumps({"name": end.name, "offset": end.offset, "head": end.head, "carried": list(carried)})

    # -- which files
    def _file(self) -> list[tuple[Path, int]]:
        known = self._known
        if not known.offset:
            return [(self.path, 0)]
        if _is(self.path, known):
            return [(self.path, known.offset)]
        old = next((p for p in _files(self.path.parent) if p != self.path and _is(p, known)), None)
        if old is None:
            self.notes.append(f"{escape(self.name)} is another file than the last time, and the old one is not beside "
                              "it: what was added to that is not read")
            return [(self.path, 0)]
        return [(old, known.offset), (self.path, 0)]

    def _folder(self) -> list[tuple[Path, int]]:
        known = self._known
        files = [p for p in _files(self.path) if p.name >= known.name]
        if files and files[0].name == known.name:
            if _is(files[0], known):
                return [(files[0], known.offset), *((p, 0) for p in files[1:])]
            self.notes.append(f"{escape(str(files[0]))} is another file than the last time: it is read from its start")
        elif known.name:
            self.notes.append(f"{escape(str(self.path / known.name))} is gone: what was added to it is not read")
        return [(p, 0) for p in files]

    # -- their bytes
    def _pieces(self, parts: Sequence[tuple[Path, int]], carried: bytes) -> Iterator[bytes]:
        if carried:
            yield carried
        for number, (path, offset) in enumerate(parts, 1):
            yield from self._lines(path, offset, last=number == len(parts))

    def _lines(self, path: Path, offset: int, *, last: bool) -> Iterator[bytes]:
        """The bytes of a file up to its last line end; a line without one counts where the file has a successor."""
        try:
            with open(path, "rb") as file:
                head = file.read(_HEAD)
                file.seek(offset)
                half = b""
                while piece := file.read(_PIECE):
                    whole, end, rest = (half + piece).rpartition(b"\n")
                    if end:
                        offset += len(whole) + 1
                        yield whole + b"\n"
                    half = rest
                    if len(half) > _LONGEST:        # whoever reads lines refuses it
                        offset += len(half)
                        yield half
                        half = b""
                if half and not last:
                    offset += len(half)
                    yield half + b"\n"
        except OSError as error:
            raise AccessError(escape(str(path)), error.strerror or str(error)) from None
        self._end = _Known(path.name, offset, _digest(head, offset))


def _digest(head: bytes, offset: int) -> str:
    """What a log of which so much was read is known by."""
    return hashlib.sha256(head[:offset]).hexdigest()


def _is(path: Path, known: _Known) -> bool:
    """Whether this is the file of which so much was read."""
    with suppress(OSError), open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size >= known.offset and _digest(file.read(_HEAD), known.offset) == known.head
    return False


def _files(folder: Path) -> list[Path]:
    """The regular files of a folder by name, hidden ones left out. Raises OSError."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                found.append(Path(entry.path))
            if len(found) > _FILES:
                raise OSError(0, f"more than {_FILES} files")
    return sorted(found)


class Pieces(io.RawIOBase):
    """Pieces of bytes as a raw stream."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one piece goes; gives the number of bytes, 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
