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
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Literal

from sssjob.document._pattern_tree import (
    STATES,
    At,
    Chars,
    Choice,
    Node,
    PatternError,
    PatternReader,
    Repeat,
    Sequence,
    class_text,
    places_of,
    size_of,
    too_big,
)
from sssjob.document.lexical import LimitError
from sssjob.limits import LIMITS, Limits

__all__ = ["Engine", "Pattern", "PatternError", "compile_pattern"]

# --- the automaton --------------------------------------------------------------------------------------------------
# Matches the tree of a pattern with the standard library alone, in time linear in the text.

_KEPT: Final = 500_000  # places in the states that are remembered
_SPLIT, _PLACE, _CHAR, _END = range(4)
_BEFORE_WORD, _AFTER_WORD, _AT_START, _AT_END, _AT_LAST_BREAK = 1, 2, 4, 8, 16


class _State:
    """Places in the program reached at one point of the text, and what follows on each character, filled when met."""

    __slots__ = ("closed", "next", "places")

    def __init__(self, places: frozenset[int]) -> None:
        self.places = places
        self.closed: dict[int, tuple[tuple[int, ...], bool]] = {}
        self.next: dict[tuple[int, str], _State] = {}


class Automaton:
    """All ways through a pattern followed at once (Thompson's construction), states remembered as they are met."""

    def __init__(self, node: Node, limits: Limits) -> None:
        self.limits = limits
        self.program: list[tuple[int, Any, Any]] = []
        self.testers: dict[Chars, Callable[[str], object]] = {}
        self.write(node)
        self.program.append((_END, None, None))
        self.has_places = any(code == _PLACE for code, _, _ in self.program)
        self.states: dict[frozenset[int], _State] = {}
        self.kept = 0

    def write(self, node: Node) -> None:
        """Write the program of a node behind what is there."""
        program = self.program
        match node:
            case Chars():
                tester = self.testers.get(node) or self.testers.setdefault(node, _tester(node))
                program.append((_CHAR, tester, None))
            case At(kind):
                program.append((_PLACE, kind, None))
            case Sequence(items):
                for item in items:
                    self.write(item)
            case Choice(items):
                jumps = []
                for item in items[:-1]:
                    fork = self.hole()
                    self.write(item)
                    jumps.append(self.hole())
                    program[fork] = (_SPLIT, fork + 1, len(program))
                self.write(items[-1])
                for jump in jumps:
                    program[jump] = (_SPLIT, len(program), len(program))
            case Repeat(item, low, high):
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
        """Leave room for a fork; gives its place."""
        self.program.append((_SPLIT, 0, 0))
        return len(self.program) - 1

    def matches(self, text: str) -> bool:
        """Whether the whole text matches; LimitError (pattern_seconds) when that takes longer."""
        deadline = time.thread_time() + self.limits.pattern_seconds
        state, last = self.state(frozenset((0,))), len(text)
        for place, char in enumerate(text):
            around = self.around(text, place) if self.has_places else 0
            following = state.next.get((around, char))
            if following is None or not place % 4096:
                if time.thread_time() > deadline:
                    raise LimitError(text, f"a match within {self.limits.pattern_seconds} s", "pattern_seconds")
                following = self.follow(state, around, char)
            if not following.places:
                return False
            state = following
        return self.close(state, self.around(text, last))[1]

    def state(self, places: frozenset[int]) -> _State:
        """The state of these places, made when it is first met."""
        state = self.states.get(places)
        if state is None:
            self.kept += 1 + len(places)
            if self.kept > _KEPT:
                self.states, self.kept = {}, 0
            state = self.states[places] = _State(places)
        return state

    def follow(self, state: _State, around: int, char: str) -> _State:
        """The state behind one character. around: what stands on both sides of it."""
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
        """Follow all transitions that consume no character: gives the places that wait for a character, and whether the
        accepting place is reached."""
        closure = state.closed.get(around)
        if closure is not None:
            return closure
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
        """What holds at a place of a text: its ends, and words before and behind; 0 where no pattern asks."""
        if not self.has_places:
            return 0
        last = len(text)
        return (
            (_BEFORE_WORD if place and is_word(text[place - 1]) else 0)
            | (_AFTER_WORD if place < last and is_word(text[place]) else 0)
            | (_AT_START if place == 0 else 0)
            | (_AT_END if place == last else 0)
            | (_AT_LAST_BREAK if place == last - 1 and text[place] == "\n" else 0)
        )


def _tester(chars: Chars) -> Callable[[str], object]:
    if not chars.fold:
        ranges, negated = chars.ranges, chars.negated
        return lambda char: any(low <= ord(char) <= high for low, high in ranges) != negated
    return re.compile(class_text(chars, lambda code: f"\\U{code:08x}"), re.IGNORECASE).fullmatch


def is_word(char: str) -> bool:
    """Whether ``\\w`` matches the character."""
    return char.isascii() and (char.isalnum() or char == "_")


def _is_at(kind: str, around: int) -> bool:
    if kind in "bB":
        return (kind == "b") == (bool(around & _BEFORE_WORD) != bool(around & _AFTER_WORD))
    return bool(around & {"A": _AT_START, "z": _AT_END, "Z": _AT_END | _AT_LAST_BREAK}[kind])


Engine = Literal["re2", "re"]

_RE2_STEPS: Final = 1e8  # states times characters that re2 surely does in a second, measured as 2e8 at its slowest


class Pattern:
    """A pattern: ``text`` as given, ``engine`` that matches it; ``compile_pattern`` makes one. Of many patterns only
    the form is looked at: what matches is made for the first text."""

    def __init__(self, text: str, node: Node, engine: Engine | None, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self._node = node
        self._automaton: Automaton | None = None
        if engine is not None:          # what is asked for by name may not be there, or not take the pattern
            self._re2 = None if engine == "re" else _re2_compiled(text, node, engine)

    @cached_property
    def _re2(self) -> Any:
        return _re2_compiled(self.text, self._node, None)

    @cached_property
    def _size(self) -> int:
        return size_of(self._node)

    @cached_property
    def _line_end(self) -> bool:
        return "Z" in places_of(self._node)

    @property
    def engine(self) -> Engine:
        """What matches."""
        return "re" if self._re2 is None else "re2"

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
            self._automaton = Automaton(self._node, self.limits)
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
    reader = PatternReader(text, limits)
    node = reader.whole()
    if size_of(node) > STATES:
        raise too_big(text)
    return Pattern(text, node, engine, limits)


def _re2_text(node: Node) -> str:
    match node:
        case Chars():
            text = class_text(node, lambda code: f"\\x{{{code:x}}}")
            return f"(?i:{text})" if node.fold else text
        case At(kind):
            return {"A": r"\A", "z": r"\z", "Z": r"\z", "b": r"\b", "B": r"\B"}[kind]
        case Sequence(items):
            return "".join(f"(?:{_re2_text(item)})" for item in items)
        case Choice(items):
            return "|".join(f"(?:{_re2_text(item)})" for item in items)
        case Repeat(item, low, high):
            return f"(?:{_re2_text(item)}){{{low},{'' if high is None else high}}}"


def _re2_compiled(text: str, node: Node, engine: Engine | None) -> Any:
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
