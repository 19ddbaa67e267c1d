"""Bytes in and out of commands: ``-`` is standard input and output; written files appear whole or not at all."""

from __future__ import annotations

import codecs
import io
import os
import select
import stat
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS, Limits
from sssjob.places import check_name

_PIECE: Final = 1 << 20
_KEPT: Final = 4 << 20          # bytes of results that are kept in memory
#: Never replaced by a rename: what stands there is a device or a view of a process.
_SPECIAL: Final = ("/dev/", "/proc/", "/sys/")


def read_bytes(name: str, limits: Limits = LIMITS) -> bytes:
    """The whole of a file, a pipe or (``-``) standard input.

    Raises AccessError (a directory, not there, not readable) and RejectedError (SSS110) when it is too large.
    """
    check_name(name)
    try:
        if name == "-":
            return _bounded(standard_input(), name, limits)
        with open(name, "rb") as file:
            return _bounded(file, name, limits)
    except OSError as error:
        raise AccessError(escape(name) or "''", error.strerror or str(error)) from None


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """A file, pipe or (``-``) standard input to be read as a stream; AccessError where it cannot be opened.

    What goes wrong while it is open is not about it alone (a pipe that nobody reads any more) and stays what it is.
    """
    if name == "-":
        yield standard_input()
        return
    check_name(name)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(name, "rb"))
        except (OSError, ValueError) as error:
            raise AccessError(escape(name) or "''", getattr(error, "strerror", None) or str(error)) from None
        yield file


class Source:
    """An open file, pipe or standard input that is looked at before it is read, whole or as a stream."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self._read = b""

    def head(self, size: int) -> bytes:
        """The first bytes; what is read comes again."""
        self._read += self._get(size - len(self._read))
        return self._read

    def whole(self, limits: Limits = LIMITS) -> bytes:
        """All of it. Raises RejectedError (SSS110) when it is too large."""
        head, self._read = self._read, b""
        try:
            return head + _bounded(self.file, self.name, limits)
        except OSError as error:
            raise AccessError(escape(self.name), error.strerror or str(error)) from None

    def stream(self) -> BinaryIO:
        """All of it, to be read piece by piece."""
        head, self._read = self._read, b""
        if not head:
            return self.file
        return io.BufferedReader(_Again(head, self.file), _PIECE)

    def again(self, limits: Limits = LIMITS) -> BinaryIO | None:
        """The file, which can be read from its start as often as needed: a pipe is put on the disk. None for one that
        has no more than ``whole_bytes``. ``whole`` and ``stream`` still give all of it.

        Raises RejectedError (SSS110) for a pipe of more than ``spool_bytes``."""
        try:
            if self.file.seekable() and self.file.tell() == len(self._read):
                size = self.file.seek(0, os.SEEK_END)
                self.file.seek(len(self._read))
                if size <= limits.whole_bytes:
                    return None
                self._read = b""
                self.file.seek(0)
            elif len(self.head(limits.whole_bytes + 1)) <= limits.whole_bytes:
                return None
            else:
                self.file = self._spooled(limits)
        except OSError as error:
            raise AccessError(escape(self.name), error.strerror or str(error)) from None
        return self.file

    def _spooled(self, limits: Limits) -> BinaryIO:
        """All of a pipe, on the disk until nobody needs it any more."""
        import tempfile

        spool = tempfile.TemporaryFile(prefix=".sssjob-")     # noqa: SIM115
        weakref.finalize(self, spool.close)
        stream = self.stream()
        while piece := stream.read(_PIECE):
            spool.write(piece)
            if spool.tell() > limits.spool_bytes:
                _refuse(self.name, limits, "spool_bytes")
        spool.seek(0)
        return cast(BinaryIO, spool)

    def _get(self, size: int) -> bytes:
        try:
            return self.file.read(max(0, size))
        except OSError as error:
            raise AccessError(escape(self.name), error.strerror or str(error)) from None


class _Again(io.RawIOBase):
    """Bytes that were read already, then the rest of the file."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = memoryview(head), file

    def readable(self) -> bool:
        """Always: the bytes can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of a file; it does not wait for more than the file has to give."""
        size = len(buffer)
        read: Callable[[int], bytes] = getattr(self._file, "read1", self._file.read)
        chunk = self._head[:size] if self._head else read(size)
        self._head = self._head[size:]
        buffer[:len(chunk)] = chunk
        return len(chunk)


def once(names: Sequence[str]) -> None:
    """Refuse standard input named twice: what was read is gone."""
    if names.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")


def logs_of(names: Sequence[str]) -> tuple[str, ...]:
    """The names, and in place of a folder its files in the order in which ``ledger charge --resume`` reads them. Raises
    AccessError for one that cannot be read or has none."""
    from sssjob.accounting.sources import files_of

    logs = list[str]()
    for name in names:
        if "\0" in name or not os.path.isdir(name):
            logs.append(name)
            continue
        try:
            of_folder = [str(path) for path in files_of(Path(name))]
        except OSError as error:
            raise AccessError(escape(name), error.strerror or str(error)) from None
        if not of_folder:
            raise AccessError(escape(name), "the folder has no files")
        logs += of_folder
    return tuple(logs)


def _bounded(file: IO[bytes], name: str, limits: Limits) -> bytes:
    """In pieces: one read of the limit would take that much memory for the smallest file."""
    pieces, length = [], 0
    while piece := file.read(_PIECE):
        pieces.append(piece)
        length += len(piece)
        if length > limits.document_bytes:
            _refuse(name, limits, "document_bytes")
    return b"".join(pieces)


def standard_input() -> BinaryIO:
    """The bytes of standard input, also where another program put a stream of text there."""
    buffer: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    return io.BytesIO(sys.stdin.read().encode("utf-8", "surrogateescape")) if buffer is None else buffer


def _refuse(name: str, limits: Limits, limit: str) -> None:
    findings = Findings(name, limits)
    findings.add("SSS110", limit, f"larger than {limit} = {getattr(limits, limit)} bytes")
    findings.raise_if_rejected()


class Results:
    """What a command writes when all of it is there; until then it is kept, on the disk where it is much."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.SpooledTemporaryFile(max_size=_KEPT, prefix=".sssjob-")     # noqa: SIM115
        self._length = 0
        weakref.finalize(self, self._file.close)

    def add(self, piece: str | bytes) -> tuple[int, int]:
        """Take what comes next; gives its place, by which ``piece`` gives it back: where it begins, and its length."""
        octets, start = _encoded(piece), self._length
        self._length += len(octets)
        try:
            self._file.write(octets)
        except OSError as error:
            raise AccessError("temporary file", error.strerror or str(error)) from None
        return start, len(octets)

    def piece(self, place: tuple[int, int]) -> bytes:
        """What was added, when nothing more is."""
        self._file.seek(place[0])
        return self._file.read(place[1])

    def emit(self, output: str = "-", *, binary: bool = False) -> None:
        """Write all of it, as ``emit`` does. binary: what was added was no text."""
        self._file.seek(0)
        pieces = iter(lambda: self._file.read(_PIECE), b"")
        if output != "-":
            write_file(output, pieces)
        elif binary or not sys.stdout.isatty():
            for piece in pieces:
                emit(piece)
        else:
            for text in codecs.iterdecode(pieces, "utf-8", "surrogateescape"):
                emit(text)


def emit(text: str | bytes, output: str = "-", *, safe: bool = False) -> None:
    """Write a result: UTF-8 to standard output (escaped for a terminal, unless it is safe already) or to a file; bytes
    as they are, but never to a terminal (UsageError)."""
    if output != "-":
        write_file(output, _encoded(text))
        return
    if isinstance(text, bytes):
        if sys.stdout.isatty():
            raise UsageError("this format is no text; name a file with --output")
    elif not safe and not text.isprintable() and sys.stdout.isatty():
        text = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):04X}}}" for c in text)
    try:
        sys.stdout.flush()
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:                  # a stream of text that another program put there
            sys.stdout.write(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))
        else:
            _write(getattr(buffer, "raw", buffer), memoryview(_encoded(text)))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AccessError("standard output", error.strerror or str(error)) from None


def _write(stream: IO[bytes], data: memoryview) -> None:
    """All of the data, whatever one write takes; past the buffer, which would try again at the end of the process."""
    while data:
        taken = stream.write(data)
        if taken is None:               # not now: the other side does not read
            select.select((), (stream,), ())
        else:
            data = data[taken:]


def _encoded(text: str | bytes) -> bytes:
    """UTF-8; surrogates are the bytes of a file name that they stand for."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def write_file(name: str, data: bytes | Iterable[bytes], *, mode: int = 0o600, durable: bool = True) -> None:
    """Put data, or pieces of it, under that name through a temporary file beside it; a link there is replaced.

    Devices and pipes are written to as they are. durable: wait until the disk has it.
    """
    import tempfile

    check_name(name)
    path = Path(os.path.abspath(name))
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        if _special(path):
            with open(path, "wb") as file:
                file.writelines(pieces)
            return
        handle, temporary = tempfile.mkstemp(prefix=".sssjob-", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.writelines(pieces)
                file.flush()
                if mode != 0o600:
                    os.fchmod(file.fileno(), mode)
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AccessError(escape(name) or "''", error.strerror or str(error)) from None


def _special(path: Path) -> bool:
    if str(path).startswith(_SPECIAL) and not str(path).startswith("/dev/shm/"):
        return True
    mode = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def file_name(name: str, taken: dict[str, int], suffix: str) -> str:
    """A file name made of an identifier: nothing in it leads out of its directory; unique among taken (``unused``)."""
    from sssjob.document.ids import unused

    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._@+=,-[]") else "_" for c in name[:150]) or "job"
    if safe.startswith((".", "-")):
        safe = "_" + safe[1:]
    return unused(safe, taken, suffix)
