"""Lines out of a byte stream of any length: one at a time, numbered, bounded, as text that XML can hold.

What is odd about a line (bytes that are no UTF-8, control characters, no line end) comes with it as a note; nothing
is refused here but a line that is too long.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

from sssjob.translators.records._packed import PackedError, Pieces, again, beginning, packing, unpacked
from sssjob.translators.records._values import Rejected

_PIECE: Final = 1 << 20
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PLAIN: Final = bytes((9, 10, *range(32, 127)))
UNFIT: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Line(NamedTuple):
    """number: from 1; text: without its end; note: what was done to the text; whole: whether it had a line end;
    long: the line is over the limit, and text is its beginning."""

    number: int
    text: str
    note: str = ""
    whole: bool = True
    long: bool = False


def lines(file: BinaryIO, most: int) -> Iterator[Line]:
    """The lines of a stream of UTF-8, or of UTF-16 with a byte order mark; most: bytes of a line."""
    number, make_line = 0, tuple.__new__
    for block, whole in _blocks(pieces(file), most):
        if whole and len(block) <= most and not block.translate(None, _PLAIN):
            for text in block.decode("ascii").split("\n"):
                number += 1
                yield make_line(Line, (number, text, "", True, False))
            continue
        for raw in block.split(b"\n"):
            number += 1
            yield _line(number, raw, whole, len(raw) > most)


def numbered(raws: Iterable[tuple[int, bytes]], most: int) -> Iterator[Line]:
    """Lines of UTF-8 that were cut already, each with its number and without its line feed; most: bytes of a line."""
    return (_line(number, raw, True, len(raw) > most) for number, raw in raws)


def _line(number: int, raw: bytes, whole: bool, long: bool) -> Line:
    """A line of which nothing is known; of a long one only the beginning is held."""
    raw = raw[:200] if long else raw.removesuffix(b"\r")
    text, note = (raw.decode("ascii"), "") if raw.isascii() else _decoded(raw)
    if not text.isprintable():
        text, unfit = UNFIT.subn(lambda m: f"\\x{ord(m[0]):02x}", text)
        note = note or ("control characters" if unfit else "")
    return Line(number, text, note, whole, long)


def _decoded(raw: bytes) -> tuple[str, str]:
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), "bytes that are no UTF-8"


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """The bytes as they come, unpacked where they are compressed, without a byte order mark; UTF-16 as UTF-8.
    Rejected: packed."""
    try:
        yield from _plain(file)
    except PackedError as error:
        raise Rejected("packed", str(error), 1) from None


def _plain(file: BinaryIO) -> Iterator[bytes]:
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    first = beginning(read)
    if packing(first) is not None:
        file = unpacked(io.BufferedReader(Pieces(again(first, read)), _PIECE))
        read = file.read
        first = beginning(read)
    if first[:2] not in _UTF16:
        piece = first.removeprefix(codecs.BOM_UTF8)
        while piece or first:
            yield piece
            piece = first = read(_PIECE)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("backslashreplace")
    while first:
        yield decoder.decode(first).encode("utf-8", "backslashreplace")
        first = read(_PIECE)
    yield decoder.decode(b"", final=True).encode("utf-8", "backslashreplace")


def _blocks(pieces: Iterator[bytes], most: int) -> Iterator[tuple[bytes, bool]]:
    """(lines without the last line end, whether there was one); of a line that is too long the beginning is held."""
    rest: list[bytes] = []
    length = 0
    for piece in pieces:
        end = piece.rfind(b"\n")
        if end >= 0:
            yield b"".join((*rest, piece[:end])), True
            rest, length = [piece[end + 1:]], len(piece) - end - 1
            continue
        rest.append(piece)
        length += len(piece)
        if length > most:
            rest = [b"".join(rest)[: most + 1]]
    if length:
        yield b"".join(rest), False
