"""The members of one array of a JSON document, one by one, so that the document may have any size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NoReturn

from sssjob.translators.records._lines import lines
from sssjob.translators.records.base import Rejected

__all__ = ["members"]

_PIECE: Final = 1 << 18
_NEAR: Final = 16       # characters before the end of the text in which a fault may be a word cut off
_SPACE: Final = re.compile(r"[ \t\r\n]*")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


class _Window:
    """The text from where reading stands to what has come in so far; most: characters of one value."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._lines = lines(file, most)
        self._decoder = json.JSONDecoder(parse_constant=_no_number)
        self.text, self.at, self.line, self.most = "", 0, 1, most
        self.ended = False

    def more(self) -> bool:
        """Have more text, at least as much again as there is; False at the end."""
        if self.ended:
            return False
        kept = self.text[self.at:]
        if len(kept) > self.most:
            raise Rejected("too-long", f"one value is longer than {self.most} characters")
        self.line += self.text.count("\n", 0, self.at)
        pieces, length = [kept], 0
        for line in self._lines:
            if line.long:
                raise Rejected("too-long", f"one line is longer than {self.most} bytes")
            pieces.append(line.text + "\n")
            length += len(line.text) + 1
            if length >= max(_PIECE, len(kept)):
                break
        else:
            self.ended = True
        self.text, self.at = "".join(pieces), 0
        return length > 0

    def number(self) -> int:
        """The line where reading stands."""
        return self.line + self.text.count("\n", 0, self.at)

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()    # type: ignore[union-attr]  # matches always
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise Rejected("torn" if not self.peek() else "json", f"{mark!r} expected, {self.peek()!r} found")
        self.at += 1

    def value(self) -> Any:
        """The next value. Rejected: torn, json."""
        self.peek()
        while True:
            try:
                made, end = self._decoder.raw_decode(self.text, self.at)
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
            return made


def members(file: BinaryIO, key: str, most: int) -> Iterator[tuple[int, Any]]:
    """(line, value) of each member of the array ``key`` of a JSON object. Rejected where it is no such document."""
    window = _Window(file, most)
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
