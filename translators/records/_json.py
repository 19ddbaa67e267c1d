"""The values of a JSON document, one by one, so that the document may have any size: the members of one array of an
object (``members``), or those of an array or of JSON Lines (``values``); ``taken`` makes jobs of them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final

from sssjob.document.model import Job
from sssjob.translators.records._lines import UNFIT, lines
from sssjob.translators.records._packed import PackedError, unpacked
from sssjob.translators.records.base import Reading, Record, Rejected
from sssjob.xml._faults import no_constant

_PIECE: Final = 1 << 18
_NEAR: Final = 16       # characters before the end of the text in which a fault may be a word cut off
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(r"\\\\|\\x(?=[0-9a-f]{2})")
_Tell = Callable[[str, str, str, int], None]


def escaped(text: str) -> str:
    """The text with the escapes of what is no UTF-8 (``\\xe9``, no escape of JSON) as JSON has to write them."""
    return _ESCAPE.sub(lambda match: match[0] if match[0] == "\\\\" else "\\\\x", text)


def _fit(value: Any) -> Any:
    """A value whose texts XML can hold: what their escapes stand for may be a control character, which is written as
    ``\\x`` and its code, as in other logs."""
    if isinstance(value, str):
        return value if value.isprintable() else UNFIT.sub(
            lambda hit: hit[0] if hit[0] in "\n\r" else f"\\x{ord(hit[0]):02x}", value)
    if isinstance(value, list):
        return [_fit(member) for member in value]
    return {_fit(name): _fit(member) for name, member in value.items()} if isinstance(value, dict) else value


class _Window:
    """The text from where reading stands to what has come in so far; most: characters of one value; tell: is told what
    was odd about a line."""

    def __init__(self, file: BinaryIO, most: int, tell: _Tell) -> None:
        self._lines, self._tell = lines(file, most), tell
        self._decoder = json.JSONDecoder(parse_constant=no_constant)
        self.text, self.at, self.line, self.most = "", 0, 1, most
        self._counted = 0       # the place in the text up to which ``line`` has counted line ends
        self.ended = False

    def more(self) -> bool:
        """Have more text, at least as much again as there is; False at the end."""
        if self.ended:
            return False
        kept = self.text[self.at:]
        if len(kept) > self.most:
            raise Rejected("too-long", f"one value is longer than {self.most} characters")
        self.number()
        pieces, length = [kept], 0
        for line in self._lines:
            if line.long:
                raise Rejected("too-long", f"one line is longer than {self.most} bytes")
            if line.note:
                self._tell("SSS542", "encoding", f"{line.note}, written as \\x and their code", line.number)
            pieces.append((escaped(line.text) if line.note else line.text) + "\n")
            length += len(line.text) + 1
            if length >= max(_PIECE, len(kept)):
                break
        else:
            self.ended = True
        self.text, self.at, self._counted = "".join(pieces), 0, 0
        return length > 0

    def number(self) -> int:
        """The line where reading stands. Each character is counted once, for a document may be one long line."""
        self.line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self.line

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()    # type: ignore[union-attr]  # matches always
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def expect(self, mark: str) -> None:
        """Go past one sign. Rejected: torn, json."""
        if self.peek() != mark:
            raise Rejected("torn" if not self.peek() else "json", f"{mark!r} expected, {self.peek()!r} found")
        self.at += 1

    def value(self) -> Any:
        """The next value. Rejected: torn, json."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self.text, self.at)
                if "\\" in self.text[self.at:end]:
                    value = _fit(value)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self.text.rstrip()) - _NEAR or "Unterminated" in error.msg
                if cut and self.more():
                    continue
                raise Rejected("torn" if cut else "json", error.msg) from None
            except ValueError as error:
                raise Rejected("json", str(error)) from None
            except RecursionError:
                raise Rejected("json", "nested too deep") from None
            if end == len(self.text) and self.more():       # a number may go on
                continue
            self.at = end
            return value


def members(file: BinaryIO, key: str, most: int, tell: _Tell) -> Iterator[tuple[int, Any]]:
    """(line, value) of each member of the array ``key`` of a JSON object. Rejected where it is no such document."""
    window = _Window(file, most, tell)
    window.expect("{")
    while window.peek() == '"':
        name = window.value()
        window.expect(":")
        if name == key and window.peek() == "[":
            window.at += 1
            while window.peek() not in ("]", ""):
                number = window.number()
                yield number, window.value()
                if window.peek() == ",":
                    window.at += 1
            window.expect("]")
        else:
            window.value()
        if window.peek() == ",":
            window.at += 1
    window.expect("}")


def values(file: BinaryIO, most: int, tell: _Tell) -> Iterator[tuple[int, Any]]:
    """(line, value) of each member of an array, or of the values that follow one another. Rejected: torn, json."""
    window = _Window(file, most, tell)
    array = window.peek() == "["
    window.at += array
    while window.peek() not in ("]" if array else "", ""):
        number = window.number()
        yield number, window.value()
        if array and window.peek() == ",":
            window.at += 1
    if array:
        window.expect("]")


def taken(reading: Reading, numbered: Iterator[tuple[int, Any]], record: Callable[[Any, int], Record]) -> Iterator[Job]:
    """The jobs of (line, value), each value a record of the reading; what breaks the document itself ends it."""
    def job_of(value: Any, at: int) -> tuple[Job]:
        """The job of one record."""
        return (reading.given(record(value, at)),)

    at = 1
    try:
        for at, value in numbered:
            yield from reading.accepted(at, partial(job_of, value, at))
    except Rejected as why:
        reading.counts.read += 1
        reading.reject(at, why.reason, str(why))


class Begun:
    """A stream whose beginning has been looked at: ``first`` is its first byte that is no white space, or nothing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file = unpacked(file)
        self._head, self._damaged = b"", ""
        try:
            self._head = file.read(_NEAR)
            while self._head.isspace() and len(self._head) < _PIECE and (more := file.read(_NEAR)):
                self._head += more
        except PackedError as error:        # whoever reads on has to know
            self._damaged = str(error)
        head = self._head
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            head = head.decode("utf-16", "ignore").encode()
        self.first = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        if self._damaged:
            raise PackedError(self._damaged)
        head, self._head = self._head, b""
        return head or self._file.read(size)
