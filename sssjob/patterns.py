r"""Perl5-style patterns, anchored at both ends, that cannot hang.

A pattern is read here, piece by piece, against the list of what is supported; anything else is a ``PatternError`` that
names the Perl feature, so no engine gets to read it in its own way. What was read is then matched by google-re2 where
it is installed, else by an automaton of our own (named ``re``: it needs only the standard library). Both take time
linear in the text; Python's ``re`` never sees a whole pattern, as it can hang on ``(a+)+$``, but
only single characters whose case is ignored.

Meanings, the same with both engines and those of Perl's ``/a``: ``\d \w \s \b`` and POSIX classes are ASCII; ``$`` and
``\Z`` also stand before a line feed that ends the text, ``\z`` only at the end; ``.`` is any character but a line feed.
``(?i)`` compares one character to one (no ``ss`` for sharp s). Lazy quantifiers and capturing change nothing about
whether a text matches; they are read and forgotten.

Supported: literals, ``. ^ $ | ( ) [ ]``, ``* + ? {n} {n,} {n,m}`` and their lazy forms, ``(?: )``, named groups,
comments, the flags i, s, n and a, classes with POSIX names, ``\d \D \w \W \s \S \h \H \v \V \N``, ``\A \z \Z \b \B``,
``\t \n \r \f \e \a \0 \cX \xHH \x{H} \o{O}``, ``\Q..\E``. Refused by name: look-around, back-references, conditions,
recursion, code, atomic and possessive forms, verbs, Unicode properties, ``(?m)``, ``(?x)``, ``\G``, ``\K``, ``\R``.
Source: SSS job object 3.1.0, sections 6.1 (Pattern) and 10.2 (Match).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sssjob.lexical import LexicalError, LimitError
from sssjob.limits import LIMITS, Limits

__all__ = ["Engine", "Pattern", "PatternError", "compile_pattern", "glob_to_pattern"]

Engine = Literal["re2", "re"]

_STATES = 20_000  # of a pattern with its repetitions written out
_REPEATS = 1_000  # highest count of {n,m}
_RE2_STEPS = 1e8  # states times characters that re2 surely does in a second, measured as 2e8 at its slowest
_KEPT = 500_000  # places in the states that the own automaton remembers
_TOP = 0x10FFFF


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

_Ranges = tuple[tuple[int, int], ...]  # code points first..last


@dataclass(frozen=True, slots=True)
class _Chars:
    """One character in (or, negated, not in) the ranges; fold: upper and lower case are the same."""

    ranges: _Ranges
    negated: bool = False
    fold: bool = False


@dataclass(frozen=True, slots=True)
class _At:
    """A place without width: A start, z end, Z end or before the line feed that ends the text, b and B."""

    kind: str


@dataclass(frozen=True, slots=True)
class _Sequence:
    items: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    items: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    item: _Node
    low: int
    high: int | None


_Node = _Chars | _At | _Sequence | _Choice | _Repeat

# Reading --------------------------------------------------------------------------------------------------------------

_DIGIT: _Ranges = ((48, 57),)
_WORD: _Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: _Ranges = ((9, 13), (32, 32))
_ACROSS: _Ranges = (
    (9, 9), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_DOWN: _Ranges = ((10, 13), (0x85, 0x85), (0x2028, 0x2029))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _ACROSS, "v": _DOWN}
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "e": 27, "a": 7}
_POSIX: dict[str, _Ranges] = {
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


def _inverse(ranges: _Ranges) -> _Ranges:
    holes, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            holes.append((start, low - 1))
        start = max(start, high + 1)
    return (*holes, (start, _TOP)) if start <= _TOP else tuple(holes)


def _too_big(text: str) -> LimitError:
    return LimitError(text, f"a pattern of at most {_STATES} states", "pattern_seconds")


class _Reader:
    """Reads one pattern; ``at`` is the place reached."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text, self.limits = text, limits
        self.at = 0
        self.depth = self.steps = 0
        self.fold = self.dot_all = False
        self.quoted = False  # between \Q and \E

    def error(self, what: str, at: int | None = None) -> PatternError:
        return PatternError(self.text, what, self.at if at is None else at)

    def foreign(self, feature: str, at: int | None = None) -> PatternError:
        return PatternError(self.text, feature, self.at if at is None else at, feature)

    def step(self) -> None:
        self.steps += 1
        if self.steps > 2 * _STATES:
            raise _too_big(self.text)

    def whole(self) -> _Node:
        node = self.choice()
        if self.at < len(self.text):
            raise self.error("')' without '('")
        return node

    def choice(self) -> _Node:
        branches = []
        while True:
            self.step()
            branches.append(self.sequence())
            if not self.text.startswith("|", self.at):
                return branches[0] if len(branches) == 1 else _Choice(tuple(branches))
            self.at += 1

    def sequence(self) -> _Node:
        items: list[_Node] = []
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
        return items[0] if len(items) == 1 else _Sequence(tuple(items))

    def literal(self, code: int, width: int) -> _Chars:
        self.at += width
        return _Chars(((code, code),), fold=self.fold)

    def quantified(self, item: _Node) -> _Node:
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
        return _Repeat(item, low, high)

    def counts(self) -> tuple[int, int | None]:
        found = _COUNT.match(self.text, self.at)
        if found is None:  # Perl's versions disagree: a literal, a quantifier ({,3}, { 3 }) or an error
            raise self.error("'{' without a count; write \\{ for a brace")
        low = int(found[1])
        high = low if not found[2] else int(found[3]) if found[3] else None
        if max(low, high or 0) > _REPEATS:
            raise self.foreign(f"a repetition of more than {_REPEATS}")
        if high is not None and high < low:
            raise self.error("a repetition that runs backwards")
        self.at = found.end()
        return low, high

    def atom(self) -> _Node | None:
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
            return _Chars(() if self.dot_all else ((10, 10),), negated=True)
        if sign in "^$":
            self.at += 1
            return _At("A" if sign == "^" else "Z")
        return self.literal(ord(sign), 1)

    def group(self) -> _Node | None:
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
        found = _FLAGS.match(text, self.at)
        if found is None:
            raise self.error("an unknown group", start)
        self.flags(found[1], found[2], found[3] or "", start)
        self.at = found.end()
        return found[4] == ")"

    def flags(self, caret: str, on: str, off: str, start: int) -> None:
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

    def escape(self) -> _Node:
        sign = self.text[self.at + 1 : self.at + 2]
        if sign and sign in "AzZbB":
            if self.text.startswith("{", self.at + 2) and sign in "bB":
                raise self.foreign(f"the boundary \\{sign}{{")
            self.at += 2
            return _At(sign)
        if sign == "N":
            if self.text.startswith("{", self.at + 2):
                raise self.foreign("the character name \\N{")
            self.at += 2
            return _Chars(((10, 10),), negated=True)
        found = self.escaped(in_class=False)
        if isinstance(found, int):
            return self.literal(found, 0)
        return _Chars(found)

    def escaped(self, in_class: bool) -> int | _Ranges:
        """The code point or the class of an escape, moving past it."""
        text, start = self.text, self.at
        sign = text[start + 1 : start + 2]
        if not sign:
            raise self.error("'\\' with nothing after it")
        code = _CODE.match(text, start + 1)
        if code:
            value = int(code[1] or code[2] or code[3] or code[4], 16 if code[1] or code[2] else 8)
            if value > _TOP:
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

    def bracket(self) -> _Chars:
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
                return _Chars(tuple(sorted(set(ranges))), negated, self.fold)
            self.step()
            ranges += self.class_item()

    def class_item(self) -> _Ranges:
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

    def class_char(self) -> int | _Ranges:
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
            found = _POSIX_NAME.match(text, self.at)
            if found is None or found[2] not in _POSIX:
                raise self.error("an unknown POSIX class; write \\[ for a bracket")
            self.at = found.end()
            return _inverse(_POSIX[found[2]]) if found[1] else _POSIX[found[2]]
        self.at += 1
        return ord(text[self.at - 1])


def _size(node: _Node) -> int:
    """States of the node with its repetitions written out."""
    match node:
        case _Sequence(items) | _Choice(items):
            return 1 + sum(map(_size, items))
        case _Repeat(item, low, high):
            return 1 + _size(item) * (low + 1 if high is None else max(high, 1))
    return 1


def _places(node: _Node) -> Iterator[str]:
    match node:
        case _At(kind):
            yield kind
        case _Sequence(items) | _Choice(items):
            for item in items:
                yield from _places(item)
        case _Repeat(item):
            yield from _places(item)


# Characters and patterns as text for an engine ------------------------------------------------------------------------

def _class_text(chars: _Chars, code: Callable[[int], str]) -> str:
    ranges = chars.ranges
    if not ranges:  # nothing in it: only negated, which is any character, has a use
        ranges, negated = ((0, _TOP),), not chars.negated
    else:
        negated = chars.negated
    return f"[{'^' * negated}{''.join(code(low) + ('-' + code(high)) * (high > low) for low, high in ranges)}]"


def _re2_text(node: _Node) -> str:
    match node:
        case _Chars():
            text = _class_text(node, lambda code: f"\\x{{{code:x}}}")
            return f"(?i:{text})" if node.fold else text
        case _At(kind):
            return {"A": r"\A", "z": r"\z", "Z": r"\z", "b": r"\b", "B": r"\B"}[kind]
        case _Sequence(items):
            return "".join(f"(?:{_re2_text(item)})" for item in items)
        case _Choice(items):
            return "|".join(f"(?:{_re2_text(item)})" for item in items)
        case _Repeat(item, low, high):
            return f"(?:{_re2_text(item)}){{{low},{'' if high is None else high}}}"


def _tester(chars: _Chars) -> Callable[[str], object]:
    if not chars.fold:
        ranges, negated = chars.ranges, chars.negated
        return lambda char: any(low <= ord(char) <= high for low, high in ranges) != negated
    return re.compile(_class_text(chars, lambda code: f"\\U{code:08x}"), re.IGNORECASE).fullmatch


# The own engine -------------------------------------------------------------------------------------------------------

_SPLIT, _PLACE, _CHAR, _END = range(4)
_BEFORE_WORD, _AFTER_WORD, _AT_START, _AT_END, _AT_LAST_BREAK = 1, 2, 4, 8, 16


class _State:
    """Places in the program reached at one point of the text, and what follows on each character, filled when met."""

    __slots__ = ("closed", "next", "places")

    def __init__(self, places: frozenset[int]) -> None:
        self.places = places
        self.closed: dict[int, tuple[tuple[int, ...], bool]] = {}
        self.next: dict[tuple[int, str], _State] = {}


class _Automaton:
    """All ways through a pattern followed at once (Thompson's construction), states remembered as they are met."""

    def __init__(self, node: _Node, limits: Limits) -> None:
        self.limits = limits
        self.program: list[tuple[int, Any, Any]] = []
        self.testers: dict[_Chars, Callable[[str], object]] = {}
        self.write(node)
        self.program.append((_END, None, None))
        self.has_places = any(code == _PLACE for code, _, _ in self.program)
        self.states: dict[frozenset[int], _State] = {}
        self.kept = 0

    def write(self, node: _Node) -> None:
        program = self.program
        match node:
            case _Chars():
                tester = self.testers.get(node) or self.testers.setdefault(node, _tester(node))
                program.append((_CHAR, tester, None))
            case _At(kind):
                program.append((_PLACE, kind, None))
            case _Sequence(items):
                for item in items:
                    self.write(item)
            case _Choice(items):
                jumps = []
                for item in items[:-1]:
                    fork = self.hole()
                    self.write(item)
                    jumps.append(self.hole())
                    program[fork] = (_SPLIT, fork + 1, len(program))
                self.write(items[-1])
                for jump in jumps:
                    program[jump] = (_SPLIT, len(program), len(program))
            case _Repeat(item, low, high):
                for _ in range(low):
                    self.write(item)
                if high is None:
                    fork = self.hole()
                    self.write(item)
                    program.append((_SPLIT, fork, fork))
                    program[fork] = (_SPLIT, fork + 1, len(program))
                    return
                forks = []
                for _ in range(high - low):
                    forks.append(self.hole())
                    self.write(item)
                for fork in forks:
                    program[fork] = (_SPLIT, fork + 1, len(program))

    def hole(self) -> int:
        self.program.append((_SPLIT, 0, 0))
        return len(self.program) - 1

    def matches(self, text: str) -> bool:
        deadline = time.monotonic() + self.limits.pattern_seconds
        state, last = self.state(frozenset((0,))), len(text)
        for place, char in enumerate(text):
            around = self.around(text, place) if self.has_places else 0
            following = state.next.get((around, char))
            if following is None or not place % 4096:
                if time.monotonic() > deadline:
                    raise LimitError(text, f"a match within {self.limits.pattern_seconds} s", "pattern_seconds")
                following = self.follow(state, around, char)
            if not following.places:
                return False
            state = following
        return self.close(state, self.around(text, last))[1]

    def state(self, places: frozenset[int]) -> _State:
        known = self.states.get(places)
        if known is None:
            self.kept += 1 + len(places)
            if self.kept > _KEPT:
                self.states, self.kept = {}, 0
            known = self.states[places] = _State(places)
        return known

    def follow(self, state: _State, around: int, char: str) -> _State:
        places, _ = self.close(state, around)
        verdicts: dict[int, bool] = {}
        reached = set()
        for place in places:
            tester = self.program[place][1]
            verdict = verdicts.get(id(tester))
            if verdict is None:
                verdict = verdicts[id(tester)] = bool(tester(char))
            if verdict:
                reached.add(place + 1)
        following = self.state(frozenset(reached))
        if len(state.next) < 1_000:
            state.next[around, char] = following
        return following

    def close(self, state: _State, around: int) -> tuple[tuple[int, ...], bool]:
        """Places that wait for a character, reached without one, and whether the end is among what was reached."""
        known = state.closed.get(around)
        if known is not None:
            return known
        waiting, done = [], False
        seen, stack = set(state.places), list(state.places)
        while stack:
            place = stack.pop()
            code, first, second = self.program[place]
            if code == _CHAR:
                waiting.append(place)
                continue
            done = done or code == _END
            ways: tuple[int, ...] = ()
            if code == _SPLIT:
                ways = first, second
            elif code == _PLACE and _is_at(first, around):
                ways = (place + 1,)
            for way in ways:
                if way not in seen:
                    seen.add(way)
                    stack.append(way)
        state.closed[around] = tuple(waiting), done
        return state.closed[around]

    def around(self, text: str, place: int) -> int:
        if not self.has_places:
            return 0
        last = len(text)
        return (
            (_BEFORE_WORD if place and _is_word(text[place - 1]) else 0)
            | (_AFTER_WORD if place < last and _is_word(text[place]) else 0)
            | (_AT_START if place == 0 else 0)
            | (_AT_END if place == last else 0)
            | (_AT_LAST_BREAK if place == last - 1 and text[place] == "\n" else 0)
        )


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _is_at(kind: str, around: int) -> bool:
    if kind in "bB":
        return (kind == "b") == (bool(around & _BEFORE_WORD) != bool(around & _AFTER_WORD))
    return bool(around & {"A": _AT_START, "z": _AT_END, "Z": _AT_END | _AT_LAST_BREAK}[kind])


# Patterns -------------------------------------------------------------------------------------------------------------

class Pattern:
    """A compiled pattern: ``text`` as given, ``engine`` that matches it; ``compile_pattern`` makes one."""

    __slots__ = ("_automaton", "_line_end", "_node", "_re2", "_size", "engine", "limits", "text")

    def __init__(self, text: str, node: _Node, compiled: Any, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.engine: Engine = "re" if compiled is None else "re2"
        self._node = node
        self._size = _size(node)
        self._line_end = "Z" in _places(node)
        self._re2 = compiled
        self._automaton: _Automaton | None = None

    def matches(self, text: str) -> bool:
        """Whether the whole text matches.

        Raises LimitError (text) for a text longer than that limit, (pattern_seconds) when the match takes longer or,
        with re2, could take longer.
        """
        if len(text) > self.limits.text:
            raise LimitError(text, f"at most {self.limits.text} characters to match", "text")
        # re2 knows no place before a final line feed, and takes UTF-8, which lone surrogates have not.
        if self._re2 is None or (self._line_end and text.endswith("\n")):
            return self._matches_alone(text)
        if self._size * len(text) > _RE2_STEPS * self.limits.pattern_seconds:
            raise LimitError(text, f"a match within {self.limits.pattern_seconds} s", "pattern_seconds")
        try:
            return self._re2.fullmatch(text) is not None
        except UnicodeEncodeError:
            return self._matches_alone(text)

    def _matches_alone(self, text: str) -> bool:
        if self._automaton is None:
            self._automaton = _Automaton(self._node, self.limits)
        return self._automaton.matches(text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r}, engine={self.engine!r})"


def compile_pattern(text: str, limits: Limits = LIMITS, *, engine: Engine | None = None) -> Pattern:
    """The pattern of a text, anchored at both ends.

    engine: ``re2`` (ImportError when google-re2 is not installed), ``re`` for the one that needs nothing installed,
    None for re2 where it is installed and takes the pattern, else ``re``. All give the same answers.
    Raises PatternError for a malformed pattern or a feature not supported; LimitError (depth) for groups nested deeper,
    (pattern_seconds) for a pattern too big to match in time.
    """
    reader = _Reader(text, limits)
    node = reader.whole()
    if _size(node) > _STATES:
        raise _too_big(text)
    return Pattern(text, node, None if engine == "re" else _re2_compiled(text, node, engine), limits)


def _re2_compiled(text: str, node: _Node, engine: Engine | None) -> Any:
    try:
        import re2
    except ImportError:
        if engine == "re2":
            raise
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_re2_text(node), options)
    except (re2.error, UnicodeEncodeError) as error:
        if engine == "re2":
            raise PatternError(text, f"a pattern too big for re2 ({error})", 0, "size") from None
        return None


def glob_to_pattern(text: str) -> str:
    """The pattern for a glob of Gold's Match: ``*`` any characters, ``?`` one, everything else itself.

    Line feeds, which names do not have, are not matched by either. Source: SSS job object 3.1.0, section 10.2.
    """
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(char) or (char if _is_word(char) else f"\\{char}") for char in text)
