"""Compressed logs as the bytes that were compressed: gzip, bzip2, xz, and zstd with the extra ``zstd``.

What a file is, its first bytes say, not its name. Files of several members, as ``cat a.gz b.gz`` and appending make
them, are one log. Input is taken in small steps, so that a small file that unpacks to gigabytes takes no more memory
than one of its steps does.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

from sssjob.errors import UsageError
from sssjob.xml.encoding import PACKED

_PIECE: Final = 1 << 20
#: First bytes that tell how a file is compressed, at most.
LONGEST: Final = 6


class PackedError(OSError):
    """Compressed data that are damaged, or that end too early; what came before was given."""


class _Unpacker(Protocol):
    """One member of a compressed file."""

    def decompress(self, data: bytes, /) -> bytes:
        """What these bytes unpack to."""

    @property
    def eof(self) -> bool:
        """Whether the member has come to its end."""

    @property
    def unused_data(self) -> bytes:
        """The bytes behind the end of the member."""


class _Packing(NamedTuple):
    """A way to compress. mark: the first bytes of every member; step: bytes of input that are unpacked at a time, few
    where one byte can stand for many thousands."""

    name: str
    mark: bytes
    step: int
    unpacker: Callable[[], _Unpacker]


def _zstd() -> _Unpacker:
    try:
        import zstandard
    except ImportError:
        raise UsageError("a log that is compressed with zstd needs zstandard: pip install 'sssjob[zstd]'"
                         ) from None
    decompressor: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    unpacker: _Unpacker = decompressor
    return unpacker


_PACKINGS: Final = (
    _Packing("gzip", PACKED["gzip"], 1 << 15, lambda: zlib.decompressobj(31)),
    _Packing("bzip2", PACKED["bzip2"], 1 << 10, bz2.BZ2Decompressor),
    _Packing("xz", PACKED["xz"], 1 << 12, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    _Packing("zstd", PACKED["zstd"], 1 << 12, _zstd),
)


def packing(head: bytes) -> str | None:
    """The name of what a file that begins so is compressed with; None: it is not."""
    method = _packing(head)
    return None if method is None else method.name


def _packing(head: bytes) -> _Packing | None:
    return next((way for way in _PACKINGS if head.startswith(way.mark)), None)


def unpacked(file: BinaryIO) -> BinaryIO:
    """The bytes of a file, unpacked where they are compressed. Reading raises PackedError (damaged, cut) and UsageError
    (zstd without its extra)."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    first = beginning(read)
    way = _packing(first)
    pieces = again(first, read)
    return io.BufferedReader(Pieces(pieces if way is None else _members(way, pieces)), 1 << 16)


def beginning(read: Callable[[int], bytes]) -> bytes:
    """The first bytes of a file: enough to tell what it is packed with, where it has so many."""
    first = read(_PIECE)
    while 0 < len(first) < LONGEST and (more := read(_PIECE)):
        first += more
    return first


def again(first: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The bytes that were read to tell what a file is, and those that follow."""
    while first:
        yield first
        first = read(_PIECE)


def _members(way: _Packing, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """What the members of a file come to, one after another."""
    member: _Unpacker | None = None
    rest = b""
    for piece in pieces:
        rest += piece
        while rest:
            if member is None:
                rest = rest.lstrip(b"\0")           # tapes and block devices fill up with these
                if len(rest) < len(way.mark):
                    break
                if not rest.startswith(way.mark):
                    raise PackedError(f"behind the {way.name} data stand others")
                member = way.unpacker()
            step, rest = rest[:way.step], rest[way.step:]
            try:
                output = member.decompress(step)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise PackedError(f"the {way.name} data are damaged ({error})") from None
            except Exception as error:              # of zstandard, which has no class that is here without it
                if type(error).__name__ != "ZstdError":
                    raise
                raise PackedError(f"the {way.name} data are damaged ({error})") from None
            if output:
                yield output
            if member.eof:
                rest, member = member.unused_data + rest, None
    if member is not None or rest:
        raise PackedError(f"the {way.name} data end too early")


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
