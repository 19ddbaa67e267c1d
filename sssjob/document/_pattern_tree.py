"""Reads a pattern into a tree of what it may match, or says which feature of Perl it asks for that is not supported.

What is supported stands in ``sssjob.document.patterns``. Source: perlre, perlrecharclass and perlrebackslash of perl 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.limits import Limits

STATES: Final = 20_000  # of a pattern with its repetitions written out
_REPEATS: Final = 1_000  # highest count of {n,m}
TOP: Final = 0x10FFFF


class PatternError(LexicalError):
    """A pattern that is malformed or asks for a feature that is not supported.

    feature: the name of that feature, or None when the pattern is malformed; position: where, counted from 0.
    """

    def __init__(self, text: str, what: str, position: int, feature: str | None = None) -> None:
        hint = f"{what} at character {position + 1}"
        super().__init__(text, "a supported Perl pattern", f"{hint} is not supported" if feature else hint)
        self.args = (text, what, position, feature)  # what pickling calls the class with
        self.position = position
        self.feature = feature


# The tree of a pattern ------------------------------------------------------------------------------------------------

Ranges = tuple[tuple[int, int], ...]  # code points first..last


@dataclass(frozen=True, slots=True)
class Chars:
    """One character in (or, negated, not in) the ranges; fold: upper and lower case are the same."""

    ranges: Ranges
    negated: bool = False
    fold: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """A place without width: A start, z end, Z end or before the line feed that ends the text, b and B."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    low: int
    high: int | None


Node = Chars | At | Sequence | Choice | Repeat

# Reading --------------------------------------------------------------------------------------------------------------

_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 13), (32, 32))
_ACROSS: Ranges = (
    (9, 9), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_DOWN: Ranges = ((10, 13), (0x85, 0x85), (0x2028, 0x2029))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _ACROSS, "v": _DOWN}
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "e": 27, "a": 7}
_POSIX: dict[str, Ranges] = {
    "alpha": ((65, 90), (97, 122)), "digit": _DIGIT, "alnum": ((48, 57), (65, 90), (97, 122)), "upper": ((65, 90),),
    "lower": ((97, 122),), "space": _SPACE, "blank": ((9, 9), (32, 32)), "word": _WORD, "ascii": ((0, 127),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)), "print": ((32, 126),), "graph": ((33, 126),),
    "cntrl": ((0, 31), (127, 127)), "xdigit": ((48, 57), (65, 70), (97, 102)),
}
# perlre and perlrebackslash: escapes and groups that are Perl's but not ours.
_FOREIGN_ESCAPES = {
    "G": r"\G", "K": r"\K", "X": r"\X", "R": r"\R", "C": r"\C", "p": r"the Unicode property \p",
    "P": r"the Unicode property \P", "k": r"the back-reference \k", "g": r"the back-reference \g", "l": r"\l",
    "u": r"\u", "L": r"\L", "U": r"\U", "F": r"\F",
}
_FOREIGN_GROUPS = (
    ("?=", "look-ahead (?="), ("?!", "look-ahead (?!"), ("?<=", "look-behind (?<="), ("?<!", "look-behind (?<!"),
    ("?>", "the atomic group (?>"), ("?{", "code (?{"), ("??{", "code (??{"), ("?(", "the condition (?("),
    ("?R", "recursion (?R)"), ("?0", "recursion (?0)"), ("?&", "recursion (?&"), ("?P>", "recursion (?P>"),
    ("?P=", "the back-reference (?P="), ("?[", "the extended class (?["), ("*", "the verb (*"),
)
_NAMED = re.compile(r"\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|'[A-Za-z_][A-Za-z0-9_]*')")
_FLAGS = re.compile(r"\?(\^?)([a-z]*)(?:-([a-z]*))?([:)])", re.ASCII)
_COUNT = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_CODE = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|o\{([0-7]{1,7})\}|(0[0-7]{0,2})")
_POSIX_NAME = re.compile(r"\[:(\^?)([a-z]+):\]")


def _inverse(ranges: Ranges) -> Ranges:
    holes, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            holes.append((start, low - 1))
        start = max(start, high + 1)
    return (*holes, (start, TOP)) if start <= TOP else tuple(holes)


def too_big(text: str) -> LimitError:
    """The error for a pattern of more than ``STATES`` states."""
    return LimitError(text, f"a pattern of at most {STATES} states", "pattern_seconds")


class PatternReader:
    """Reads one pattern; ``at`` is the place reached."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text, self.limits = text, limits
        self.at = 0
        self.depth = self.steps = 0
        self.fold = self.dot_all = False
        self.quoted = False  # between \Q and \E

    def error(self, what: str, at: int | None = None) -> PatternError:
        """What is malformed, at a place (default: the one reached)."""
        return PatternError(self.text, what, self.at if at is None else at)

    def foreign(self, feature: str, at: int | None = None) -> PatternError:
        """A feature of Perl that is not supported, at a place (default: the one reached)."""
        return PatternError(self.text, feature, self.at if at is None else at, feature)

    def step(self) -> None:
        """Count one step; LimitError where a pattern is too long to be read."""
        self.steps += 1
        if self.steps > 2 * STATES:
            raise too_big(self.text)

    def whole(self) -> Node:
        """The tree of the whole pattern."""
        node = self.choice()
        if self.at < len(self.text):
            raise self.error("')' without '('")
        return node

    def choice(self) -> Node:
        """Branches parted by ``|``, up to a bracket or the end."""
        branches = []
        while True:
            self.step()
            branches.append(self.sequence())
            if not self.text.startswith("|", self.at):
                return branches[0] if len(branches) == 1 else Choice(tuple(branches))
            self.at += 1

    def sequence(self) -> Node:
        """What stands one behind the other, up to ``|``, a bracket or the end."""
        items: list[Node] = []
        while self.at < len(self.text):
            self.step()
            if self.text.startswith("\\E", self.at):
                was_quoted, self.quoted, self.at = self.quoted, False, self.at + 2
                if was_quoted and items:
                    items[-1] = self.quantified(items[-1])
            elif self.quoted:
                items.append(self.quantified(self.literal(ord(self.text[self.at]), 1)))
            elif self.text.startswith("\\Q", self.at):
                self.quoted, self.at = True, self.at + 2
            elif self.text[self.at] in "|)":
                break
            else:
                item = self.atom()
                if item is not None:
                    items.append(self.quantified(item))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def literal(self, code: int, width: int) -> Chars:
        """One character by its code point; width: how much of the pattern it took."""
        self.at += width
        return Chars(((code, code),), fold=self.fold)

    def quantified(self, item: Node) -> Node:
        """The item with the quantifier that follows, if there is one."""
        if self.quoted:
            return item
        start = self.at
        sign = self.text[start : start + 1]
        if sign and sign in "*+?":
            self.at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        elif sign == "{":
            low, high = self.counts()
        else:
            return item
        self.at += self.text.startswith("?", self.at)
        if self.text.startswith("+", self.at) and self.text[self.at - 1] != "?":
            raise self.foreign("a possessive quantifier", start)
        if self.text[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise self.error("a quantifier on a quantifier")
        return Repeat(item, low, high)

    def counts(self) -> tuple[int, int | None]:
        """Least and greatest number of ``{n}``, ``{n,}`` or ``{n,m}``; None: without end."""
        count = _COUNT.match(self.text, self.at)
        if count is None:  # Perl's versions disagree: a literal, a quantifier ({,3}, { 3 }) or an error
            raise self.error("'{' without a count; write \\{ for a brace")
        low = int(count[1])
        high = low if not count[2] else int(count[3]) if count[3] else None
        if max(low, high or 0) > _REPEATS:
            raise self.foreign(f"a repetition of more than {_REPEATS}")
        if high is not None and high < low:
            raise self.error("a repetition that runs backwards")
        self.at = count.end()
        return low, high

    def atom(self) -> Node | None:
        """One item before its quantifier; None for a comment or flags."""
        sign = self.text[self.at]
        if sign == "(":
            return self.group()
        if sign == "[":
            return self.bracket()
        if sign == "\\":
            return self.escape()
        if sign in "*+?":
            raise self.error(f"'{sign}' with nothing to repeat")
        if sign == "{":
            raise self.error("'{' without anything to repeat; write \\{ for a brace")
        if sign == ".":
            self.at += 1
            return Chars(() if self.dot_all else ((10, 10),), negated=True)
        if sign in "^$":
            self.at += 1
            return At("A" if sign == "^" else "Z")
        return self.literal(ord(sign), 1)

    def group(self) -> Node | None:
        """What stands in brackets; None for a comment, and for flags that hold for the rest."""
        start = self.at
        self.at += 1
        kept = self.fold, self.dot_all
        if self.text.startswith("?#", self.at):
            end = self.text.find(")", self.at)
            if end < 0:
                raise self.error("a comment never closed", start)
            self.at = end + 1
            return None
        if self.opening(start):
            return None
        self.depth += 1
        if self.depth > self.limits.depth:
            raise LimitError(self.text, f"at most {self.limits.depth} groups inside each other", "depth")
        node = self.choice()
        if not self.text.startswith(")", self.at):
            raise self.error("'(' never closed", start)
        self.at += 1
        self.depth -= 1
        self.fold, self.dot_all = kept
        return node

    def opening(self, start: int) -> bool:
        """Reads what follows ``(``; True when it was flags for the rest of the group around, so nothing opens."""
        text = self.text
        for prefix, feature in _FOREIGN_GROUPS:
            if text.startswith(prefix, self.at):
                raise self.foreign(feature, start)
        if not text.startswith("?", self.at):
            return False
        if re.compile(r"\?[+-]?[1-9]").match(text, self.at):
            raise self.foreign("recursion (?1)", start)
        if text.startswith("?|", self.at):
            self.at += 2
            return False
        named = _NAMED.match(text, self.at)
        if named:
            self.at = named.end()
            return False
        flags = _FLAGS.match(text, self.at)
        if flags is None:
            raise self.error("an unknown group", start)
        self.flags(flags[1], flags[2], flags[3] or "", start)
        self.at = flags.end()
        return flags[4] == ")"

    def flags(self, caret: str, on: str, off: str, start: int) -> None:
        """Turn flags on and off; those that change nothing about a match are read and forgotten."""
        for flag in on:
            if flag not in "isna" or on.count("a") > 1:
                raise self.foreign(f"the flag (?{flag})", start)
        for flag in off:
            if flag not in "ismnx":
                raise self.foreign(f"the flag (?-{flag})", start)
        if caret:
            self.fold = self.dot_all = False
            if off:
                raise self.error("flags taken off after '^'", start)
        self.fold = (self.fold or "i" in on) and "i" not in off
        self.dot_all = (self.dot_all or "s" in on) and "s" not in off

    def escape(self) -> Node:
        """An escape outside a class: a place, a character or a class of characters."""
        sign = self.text[self.at + 1 : self.at + 2]
        if sign and sign in "AzZbB":
            if self.text.startswith("{", self.at + 2) and sign in "bB":
                raise self.foreign(f"the boundary \\{sign}{{")
            self.at += 2
            return At(sign)
        if sign == "N":
            if self.text.startswith("{", self.at + 2):
                raise self.foreign("the character name \\N{")
            self.at += 2
            return Chars(((10, 10),), negated=True)
        escape = self.escaped(in_class=False)
        if isinstance(escape, int):
            return self.literal(escape, 0)
        return Chars(escape)

    def escaped(self, in_class: bool) -> int | Ranges:
        """The code point or the class of an escape, moving past it."""
        text, start = self.text, self.at
        sign = text[start + 1 : start + 2]
        if not sign:
            raise self.error("'\\' with nothing after it")
        code = _CODE.match(text, start + 1)
        if code:
            value = int(code[1] or code[2] or code[3] or code[4], 16 if code[1] or code[2] else 8)
            if value > TOP:
                raise self.error("a character above U+10FFFF")
            self.at = code.end()
            return value
        if sign == "c" and text[start + 2 : start + 3].isascii() and text[start + 2 : start + 3].isalpha():
            self.at += 3
            return ord(text[start + 2].upper()) ^ 64
        if sign in "123456789":
            raise self.foreign(f"the back-reference \\{sign}")
        if sign in _FOREIGN_ESCAPES:
            raise self.foreign(_FOREIGN_ESCAPES[sign])
        self.at += 2
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign.lower() in _CLASSES and sign.isascii():
            return _CLASSES[sign] if sign.islower() else _inverse(_CLASSES[sign.lower()])
        if in_class and sign == "b":
            return 8
        if sign.isascii() and sign.isalnum():
            raise self.error(f"an unknown escape \\{sign}", start)
        return ord(sign)

    def bracket(self) -> Chars:
        """A class in square brackets."""
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = self.at
        while True:
            if self.at >= len(self.text):
                raise self.error("'[' never closed", start)
            if self.text[self.at] == "]" and self.at > first:
                self.at += 1
                return Chars(tuple(sorted(set(ranges))), negated, self.fold)
            self.step()
            ranges += self.class_item()

    def class_item(self) -> Ranges:
        """One character, one range or one named class of a class."""
        start = self.at
        low = self.class_char()
        dash = self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at)
        if not isinstance(low, int):
            if dash:
                raise self.error("a range that starts with a class", start)
            return low
        if not dash or self.at + 1 >= len(self.text):
            return ((low, low),)
        self.at += 1
        high = self.class_char()
        if not isinstance(high, int) or high < low:
            raise self.error("a range of characters that runs backwards or ends in a class", start)
        return ((low, high),)

    def class_char(self) -> int | Ranges:
        """The code point of one character of a class, or the ranges of a named class."""
        text = self.text
        if text[self.at] == "\\":
            if text.startswith(("\\Q", "\\E"), self.at):
                raise self.foreign("quoting inside a class")
            if text.startswith("\\N", self.at):
                raise self.foreign("\\N inside a class")
            return self.escaped(in_class=True)
        if text.startswith(("[.", "[="), self.at):
            raise self.foreign(f"the POSIX form {text[self.at : self.at + 2]}")
        if text.startswith("[:", self.at):
            posix_name = _POSIX_NAME.match(text, self.at)
            if posix_name is None or posix_name[2] not in _POSIX:
                raise self.error("an unknown POSIX class; write \\[ for a bracket")
            self.at = posix_name.end()
            return _inverse(_POSIX[posix_name[2]]) if posix_name[1] else _POSIX[posix_name[2]]
        self.at += 1
        return ord(text[self.at - 1])


def size_of(node: Node) -> int:
    """States of the node with its repetitions written out."""
    match node:
        case Sequence(items) | Choice(items):
            return 1 + sum(map(size_of, items))
        case Repeat(item, low, high):
            return 1 + size_of(item) * (low + 1 if high is None else max(high, 1))
    return 1


def places_of(node: Node) -> Iterator[str]:
    """The kinds of all places without width in a tree."""
    match node:
        case At(kind):
            yield kind
        case Sequence(items) | Choice(items):
            for item in items:
                yield from places_of(item)
        case Repeat(item):
            yield from places_of(item)


def class_text(chars: Chars, code: Callable[[int], str]) -> str:
    """A class in the syntax of an engine; code: how it writes a code point."""
    ranges = chars.ranges
    if not ranges:  # nothing in it: only negated, which is any character, has a use
        ranges, negated = ((0, TOP),), not chars.negated
    else:
        negated = chars.negated
    return f"[{'^' * negated}{''.join(code(low) + ('-' + code(high)) * (high > low) for low, high in ranges)}]"
