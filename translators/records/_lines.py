"""Lines out of a byte stream of any length: one at a time, numbered, bounded, as text that XML can hold.

What is odd about a line (bytes that are no UTF-8, control characters, no line end) comes with it as a note; nothing
is refused here but a line that is too long.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

__all__ = ["UNFIT", "Line", "lines", "pieces"]

_PIECE: Final = 1 << 20
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
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
    for number, (raw, whole, long) in enumerate(_parted(pieces(file), most), 1):
        if raw.isascii():
            text, note = raw.decode("ascii"), ""
        else:
            text, note = _decoded(raw)
        if not text.isprintable():
            text, unfit = UNFIT.subn(lambda m: f"\\x{ord(m[0]):02x}", text)
            note = note or ("control characters" if unfit else "")
        yield Line(number, text, note, whole, long)


def _decoded(raw: bytes) -> tuple[str, str]:
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), "bytes that are no UTF-8"


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """The bytes as they come, without a byte order mark; UTF-16 as UTF-8."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    first = read(_PIECE)
    while 0 < len(first) < 3 and (more := read(_PIECE)):
        first += more
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


def _parted(pieces: Iterator[bytes], most: int) -> Iterator[tuple[bytes, bool, bool]]:
    """(line, whether it has an end, whether it is too long); of a long one only the beginning is held."""
    rest: list[bytes] = []
    length = 0
    for piece in pieces:
        head, *others = piece.split(b"\n")
        rest.append(head)
        length += len(head)
        if others:
            yield _line(b"".join(rest), True, length > most)
            last = others.pop()
            for line in others:
                yield _line(line, True, len(line) > most)
            rest, length = [last], len(last)
        elif length > most:
            rest = [b"".join(rest)[: most + 1]]
    if length:
        yield _line(b"".join(rest), False, length > most)


def _line(raw: bytes, whole: bool, long: bool) -> tuple[bytes, bool, bool]:
    return (raw[:200] if long else raw.removesuffix(b"\r")), whole, long
