"""Reading a log a second time where the first time ended, through rotation, compression and half-written lines.

What is known of a source is a text (``Source.state``): which file, how many bytes of it (unpacked, where it is
compressed), a digest of its beginning, and the lines that come again before what is new: those of jobs that had not
ended, and headers. A log that was rotated is found by its beginning among the files beside it, whatever its name and
however it was compressed, and read to its end first; then what was rotated after it, and then the log. A folder is one
log in files that follow each other by name (PBS: one a day). The last line counts when it has an end.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from sssjob.errors import AccessError
from sssjob.findings import escape
from sssjob.translators.records._packed import PackedError, Pieces, packing, unpacked

__all__ = ["Source", "files_of", "whole_lines"]

_HEAD: Final = 4096         # bytes that a log is known by
_PIECE: Final = 1 << 20
_FILES: Final = 100_000     # of a folder
_LONGEST: Final = 64 << 20  # bytes of a line that is held until it has an end
#: Endings of the names of compressed files, which do not count where names are compared.
_PACKED: Final = re.compile(r"\.(?:gz|bz2|xz|zst|Z)$")


@dataclass(slots=True)
class _ReadBefore:
    """What was read before. name: of the file in its folder; offset: bytes read of it, unpacked; head: digest of its
    beginning; carried: lines to come again; unpriced, rates: as ``Source``."""

    name: str = ""
    offset: int = 0
    head: str = ""
    carried: list[str] = field(default_factory=list)
    unpriced: int = 0
    rates: str = ""

    @classmethod
    def of(cls, text: str | None) -> _ReadBefore:
        """From the text of a state; without one, or of another form: nothing was read. The ledger knows its jobs."""
        if text is None:
            return cls()
        try:
            known_source = cls(**json.loads(text))
        except (ValueError, TypeError):
            return cls()            # the log is read from its beginning; the ledger charges no job twice
        return known_source if isinstance(known_source.offset, int) and known_source.offset >= 0 else cls()


class Source:
    """A log, or a folder of logs. state: what ``state`` gave the last time. notes: what was odd, after ``open``; lost:
    what cannot be read any more; half: bytes of a last line without an end, after the last byte was read; unpriced: how
    many of its jobs were passed over because the rates of this digest have no price for them.

    Raises AccessError where it cannot be read.
    """

    def __init__(self, path: str, state: str | None = None) -> None:
        self.path = Path(os.path.abspath(path))
        self.name = str(self.path)
        self.notes: list[str] = []
        self.lost: list[str] = []
        self.half = 0
        self._known = _ReadBefore.of(state)
        self._end: _ReadBefore | None = None
        self.unpriced, self.rates = self._known.unpriced, self._known.rates

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
        return json.dumps({"name": end.name, "offset": end.offset, "head": end.head, "carried": list(carried),
                           "unpriced": self.unpriced, "rates": self.rates})

    def priced(self, rates: str, unpriced: int) -> None:
        """Note by which rates, a digest, it was read, and how many jobs these have no price for."""
        self.unpriced = unpriced + (self.unpriced if rates == self.rates else 0)
        self.rates = rates

    # -- which files
    def _file(self) -> list[tuple[Path, int]]:
        state = self._known
        if not state.offset:
            return [(self.path, 0)]
        if _is(self.path, state):
            return [(self.path, state.offset)]
        beside = [p for p in files_of(self.path.parent) if p != self.path]
        old = next((p for p in beside if _is(p, state)), None)
        if old is None:
            self.lost.append(f"{escape(self.name)} is another file than the last time, and the old one is not beside "
                             "it: what was added to that is not read; charge it where it is, without --resume")
            return [(self.path, 0)]
        return [(old, state.offset), *((p, 0) for p in self._between(old, beside)), (self.path, 0)]

    def _between(self, old: Path, beside: Iterable[Path]) -> list[Path]:
        """The files that were rotated after the old one: their names begin with that of the log, and they were
        written last not before it."""
        began = old.stat().st_mtime_ns
        later = [(p.stat().st_mtime_ns, p.name, p) for p in beside
                 if p != old and _stem(p.name).startswith(_stem(self.path.name))]
        return [p for time, _, p in sorted(later) if time >= began]

    def _folder(self) -> list[tuple[Path, int]]:
        state = self._known
        stem = _stem(state.name)
        files = [p for p in files_of(self.path) if _stem(p.name) >= stem]
        if files and state.name and _stem(files[0].name) == stem:
            if _is(files[0], state):
                return [(files[0], state.offset), *((p, 0) for p in files[1:])]
            self.notes.append(f"{escape(str(files[0]))} is another file than the last time: it is read from its start")
        elif state.name:
            self.lost.append(f"{escape(str(self.path / state.name))} is gone: what was added to it is not read; charge "
                             "it where it is, without --resume")
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
            with open(path, "rb") as raw:
                file, head, start = _opened(raw, offset)
                half = b""
                if not start and head.startswith(BOM_UTF8):     # which may stand in the middle of what is read
                    start = len(BOM_UTF8)
                for piece in _again(head[start:], file):
                    whole, end, rest = (half + piece).rpartition(b"\n")
                    if end:
                        start += len(whole) + 1
                        yield whole + b"\n"
                    half = rest
                    if len(half) > _LONGEST:        # whoever reads lines refuses it
                        start += len(half)
                        yield half
                        half = b""
                if half and (not last or _is_closed(head, half)):
                    start += len(half)
                    yield half + b"\n"
                    half = b""
                self.half = len(half)
        except PackedError:
            raise                       # a reader of lines rejects it, and the mark stays
        except OSError as error:
            raise AccessError(escape(str(path)), error.strerror or str(error)) from None
        self._end = _ReadBefore(path.name, start, _digest(head, start))


def _is_closed(beginning: bytes, rest: bytes) -> bool:
    """Whether the last line of a log needs no line end: that of JSON does not, if it closes what it has begun, or
    is the end of a document of several lines."""
    if beginning.lstrip()[:1] not in (b"{", b"["):
        return False
    if rest.lstrip()[:1] not in (b"{", b"["):
        return rest.rstrip()[-1:] in (b"}", b"]")
    try:
        json.loads(rest)
    except (ValueError, RecursionError):
        return False
    return True


def _opened(raw: BinaryIO, offset: int) -> tuple[BinaryIO, bytes, int]:
    """(a file of which so much, unpacked, was read, or its beginning where that is longer; the beginning; how much)."""
    head = raw.read(_HEAD)
    packed = packing(head) is not None
    raw.seek(0 if packed else max(offset, len(head)))
    file = unpacked(raw) if packed else raw
    if packed:
        head = file.read(_HEAD)
        _skipped(file, len(head), offset)
    return file, head, offset


def _again(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Bytes that were read already, if there are some, and the rest of a file."""
    if first:
        yield first
    while piece := file.read(_PIECE):
        yield piece


def _skipped(file: BinaryIO, at: int, offset: int) -> int:
    """Read on to an offset; gives where that ended."""
    while at < offset and (piece := file.read(min(_PIECE, offset - at))):
        at += len(piece)
    return at


def whole_lines(file: BinaryIO) -> tuple[BinaryIO, list[int]]:
    """A stream up to its last line end, and a list that then holds how many bytes stand behind that."""
    half: list[int] = []

    def pieces() -> Iterator[bytes]:
        """Pieces that end with whole lines; a line that is too long comes in parts."""
        beginning = rest = b""
        for piece in _again(b"", file):
            beginning = beginning or piece
            whole, end, rest = (rest + piece).rpartition(b"\n")
            if end:
                yield whole + b"\n"
            if len(rest) > _LONGEST:
                yield rest
                rest = b""
        if rest and _is_closed(beginning, rest):
            yield rest + b"\n"
        elif rest:
            half.append(len(rest))

    return io.BufferedReader(Pieces(pieces()), _PIECE), half


def _stem(name: str) -> str:
    """The name of a file as it was before it was compressed."""
    return _PACKED.sub("", name)


def _digest(head: bytes, offset: int) -> str:
    """What a log of which so much was read is known by."""
    return hashlib.sha256(head[:offset]).hexdigest()


def _is(path: Path, state: _ReadBefore) -> bool:
    """Whether this is the file of which so much was read."""
    with suppress(OSError), open(path, "rb") as raw:
        if packing(raw.read(_HEAD)) is None:
            size = os.fstat(raw.fileno()).st_size
            raw.seek(0)
            return size >= state.offset and _digest(raw.read(_HEAD), state.offset) == state.head
        raw.seek(0)
        file = unpacked(raw)
        head = file.read(_HEAD)
        return _digest(head, state.offset) == state.head and (
            max(len(head), _skipped(file, len(head), state.offset)) >= state.offset)
    return False


def files_of(folder: Path) -> list[Path]:
    """The regular files of a folder by name, hidden ones left out. Raises OSError."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                files.append(Path(entry.path))
            if len(files) > _FILES:
                raise OSError(0, f"more than {_FILES} files")
    return sorted(files)
