"""The text of xRSL: relations in brackets, joined by ``&``, ``|`` or ``+``, with comments and three kinds of quotes.

Source: Extended Resource Specification Language, reference manual of ARC, chapter 2.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

_BLANK: Final = re.compile(r"(?:\s++|\(\*.*?\*\))++", re.DOTALL)
_BARE: Final = re.compile(r"[^+&|()=<>!\"'^#$\s]+")
_OPERATOR: Final = re.compile(r"!=|<=|>=|[=<>]")
_DEPTH: Final = 20


class XrslError(ValueError):
    """What cannot be read, and in which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Relation:
    """``(name operator values)``; name: in lower case, without underscores; words: the strings that stand alone;
    tuples: those in brackets."""

    name: str
    operator: str
    line: int
    words: list[str] = field(default_factory=list)
    tuples: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Boolean:
    """Several specifications, joined by ``&`` (all), ``|`` (one of them) or ``+`` (jobs of their own)."""

    sign: str
    line: int
    parts: list[Boolean | Relation] = field(default_factory=list)


def parsed(text: str) -> Boolean:
    """The specification that a text is. Raises XrslError."""
    scanner = _Scanner(text)
    scanner.blanks()
    specification = scanner.specification(0)
    scanner.blanks()
    if scanner.at < len(text) or isinstance(specification, Relation):
        raise scanner.error("a specification is one sign (&, | or +) and relations in brackets")
    return specification


def quoted(text: str) -> str:
    """A string in quotes."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


class _Scanner:
    """A text and the place that has been read up to."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.names: dict[str, str] = {}     # of ``rsl_substitution``
        self.breaks = [match.start() for match in re.finditer("\n", text)]

    @property
    def line(self) -> int:
        """The number of the line that has been read up to."""
        return bisect_right(self.breaks, self.at - 1) + 1

    def error(self, message: str) -> XrslError:
        """What is wrong here."""
        return XrslError(message, self.line)

    def blanks(self) -> bool:
        """Skip blanks and comments; whether there were any."""
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match is not None

    def sign(self, signs: str) -> str:
        """The next sign where it is one of these, which is then read; else nothing."""
        sign = self.text[self.at:self.at + 1]
        if not sign or sign not in signs:
            return ""
        self.at += 1
        return sign

    def close(self) -> None:
        """A closing bracket."""
        self.blanks()
        if not self.sign(")"):
            raise self.error("a closing bracket is missing")

    def specification(self, depth: int) -> Boolean | Relation:
        """What stands in one bracket, or the whole text."""
        if depth > _DEPTH:
            raise self.error(f"brackets are nested in more than {_DEPTH} levels")
        line, sign = self.line, self.sign("&|+")
        if not sign:
            return self.relation(line)
        parts: list[Boolean | Relation] = []
        while True:
            self.blanks()
            if not self.sign("("):
                break
            self.blanks()
            parts.append(self.specification(depth + 1))
            self.close()
        if not parts:
            raise self.error(f"{sign} joins relations in brackets")
        return Boolean(sign, line, parts)

    def relation(self, line: int) -> Relation:
        """``name operator values``."""
        name = self.string()
        self.blanks()
        match = _OPERATOR.match(self.text, self.at)
        if not name or match is None:
            raise self.error("a relation is a name, an operator and values")
        self.at = match.end()
        relation = Relation(name.lower().replace("_", ""), match[0], line)
        self.values(relation.words, relation.tuples)
        if relation.name == "rslsubstitution":
            self.names.update((pair[0], pair[1]) for pair in relation.tuples if len(pair) == 2)
        return relation

    def values(self, words: list[str], tuples: list[list[str]] | None) -> None:
        """Strings, those beside each other without a blank or around # joined; tuples: of those in brackets, None where
        none can stand."""
        joined = False
        while True:
            apart = self.blanks()
            if self.sign("#"):
                if not words:
                    raise self.error("nothing stands before #")
                self.blanks()
                apart, explicit = False, True
            else:
                explicit = False
            if tuples is not None and self.sign("("):
                tuples.append([])
                self.values(tuples[-1], None)
                self.close()
                joined = False
                continue
            text = self.variable() if self.sign("$") else self.string()
            if text is None:
                if explicit:
                    raise self.error("nothing stands behind #")
                return
            if explicit or (joined and not apart):
                words[-1] += text
            else:
                words.append(text)
            joined = True

    def variable(self) -> str:
        """``$(NAME)``, as rsl_substitution says it."""
        self.blanks()
        if not self.sign("("):
            raise self.error("$ wants a name in brackets")
        self.blanks()
        name = self.string()
        self.close()
        if name not in self.names:
            raise self.error(f"{str(name)[:80]!r} is said by no rsl_substitution")
        return self.names[name]

    def string(self) -> str | None:
        """A string, bare or in quotes, which are doubled in it; None: here is none."""
        quote = self.sign("\"'^")
        if not quote:
            match = _BARE.match(self.text, self.at)
            if match is None:
                return None
            self.at = match.end()
            return match[0]
        if quote == "^":
            quote = self.text[self.at:self.at + 1]
            self.at += 1
        pieces = []
        while True:
            end = self.text.find(quote, self.at) if quote else -1
            if end < 0:
                raise self.error("a quote is never closed")
            pieces.append(self.text[self.at:end])
            self.at = end + 1
            if self.text[self.at:self.at + 1] != quote:
                return quote.join(pieces)
            self.at += 1
