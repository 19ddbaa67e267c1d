"""Requirements of a specification in our own words, each with the code that meets it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Row", "Statement", "numbered"]

#: Level, text, code; a level in lower case: the specification says it without the word.
Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """One requirement in our own words. code: the module that meets it, with the name in it where one answers."""

    section: str
    number: str
    level: str
    text: str
    code: str


def numbered(section: str, rows: tuple[Row, ...]) -> Iterator[Statement]:
    """The requirements of a section: those with a word of the specification by numbers, all others by letters."""
    loud = quiet = 0
    for level, text, code in rows:
        if level.isupper():
            loud += 1
            yield Statement(section, str(loud), level, text, code)
        else:
            quiet += 1
            yield Statement(section, "abcdefgh"[quiet - 1], level, text, code)
