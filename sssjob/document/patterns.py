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

from functools import cached_property
from typing import Any, Final, Literal

from sssjob.document._automaton import Automaton
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
