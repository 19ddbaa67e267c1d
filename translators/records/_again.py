"""What comes again and again in a log is made once: the facts of texts that are the same (``Once``), and the pattern
that cuts lines of one form (``Forms``, ``cutter``).

Neither changes what a record becomes, and both are bounded; the tests read every log with and without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from sssjob.findings import Findings

#: Characters of a key that is remembered.
LONGEST: Final = 4096
_MOST: Final = 1 << 12      # keys that are remembered
_OFTEN: Final = 16          # lines of one measure that no form cut, before one of them becomes a form
_FORMS: Final = 128
_BESIDE: Final = 4          # forms of one measure
_WIDE: Final = 400          # blanks of a line whose form is taken: making its pattern takes time
_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Once(dict[_K, _V]):
    """What a function makes of a key, made once. findings: what told something is made again, to be told again."""

    def __init__(self, make: Callable[[_K], _V], findings: Findings | None = None, most: int = _MOST) -> None:
        super().__init__()
        self.make, self.findings, self.most = make, findings, most

    def __missing__(self, key: _K) -> _V:
        reported_before = self.findings.told if self.findings is not None else 0
        value = self.make(key)
        if _length(key) < LONGEST and (self.findings is None or self.findings.told == reported_before):
            if len(self) >= self.most:
                self.clear()
            if self.most:
                self[key] = value
        return value


def _length(key: object) -> int:
    """Characters of the texts in a key."""
    if isinstance(key, tuple):
        return sum(map(_length, key))
    return len(key) if isinstance(key, str) else 1


class Form(Protocol):
    """How lines of one form are cut."""

    @property
    def match(self) -> Callable[[str], Any]:
        """The full match of a line of this form, its groups what is wanted of it; None of any other line."""


_F = TypeVar("_F", bound=Form)


class Forms(Generic[_F]):
    """The forms that lines of a log have come in often, by measures of the line that are quickly taken: how many of
    these signs are in it. Lines with other white space than blanks, or that are not ASCII, have none."""

    def __init__(self, form: Callable[[str], _F | None], signs: str) -> None:
        self._form, self._signs = form, signs
        self._known: dict[tuple[int, ...], list[_F]] = {}
        self._missed: dict[tuple[int, ...], int] = {}
        self._count = 0
        self._last: _F | None = None

    def cut(self, text: str) -> tuple[_F, tuple[str, ...]] | None:
        """(form, what is wanted) of a line; None where none of the forms is its own."""
        if not text.isascii() or "\t" in text:
            return None
        if self._last is not None and (values := self._last.match(text)) is not None:
            return self._last, values.groups()
        measure = tuple([text.count(sign) for sign in self._signs])
        forms: Iterable[_F] = self._known.get(measure, ())
        for form in forms:
            values = form.match(text)
            if values is not None:
                self._last = form
                return form, values.groups()
        self._miss(measure, text)
        return None

    def _miss(self, measure: tuple[int, ...], text: str) -> None:
        """Take the form of a line where those of its measure are often missed."""
        if self._count >= _FORMS or len(text) >= LONGEST or text.count(" ") > _WIDE:
            return
        missed = self._missed[measure] = self._missed.get(measure, 0) + 1
        if len(self._missed) > _MOST:
            self._missed.clear()
        if missed < _OFTEN:
            return
        self._missed[measure] = 0
        beside = self._known.setdefault(measure, [])
        if len(beside) < _BESIDE and (form := self._form(text)) is not None:
            beside.append(form)
            self._count += 1


class Token(NamedTuple):
    """A pattern of one part of a line, and the same with its value as a group."""

    plain: str
    valued: str


class Cut(NamedTuple):
    """A compiled pattern that captures the wanted columns of a line, and where its groups are.

    match: matches a whole line. values: token number -> group that holds its value. runs: the groups that hold the runs
    of columns, in their order. empty: the group that is always empty, to which an absent column refers.
    """

    match: Callable[[str], Any]
    values: dict[int, int]
    runs: tuple[int, ...]
    empty: int


def cutter(tokens: Sequence[Token], value_places: Collection[int], runs: Sequence[tuple[int, int]],
           prefix: str = "") -> Cut:
    """The pattern of lines of such tokens, parted by blanks. value_places: of the tokens whose values are wanted;
    runs: (first, last) of the tokens whose text is wanted as a whole; none of them inside another. prefix: of the line,
    with groups of its own."""
    starts, ends = {first for first, _ in runs}, {last for _, last in runs}
    number, values, runs_found, parts = re.compile(prefix).groups, dict[int, int](), list[int](), []
    for at, token in enumerate(tokens):
        part = token.valued if at in value_places else token.plain
        if at in starts:
            runs_found.append(number)
            number += 1
            part = f"({part}"
        if at in value_places:
            values[at] = number
            number += 1
        parts.append(f"{part})" if at in ends else part)
    pattern = re.compile(prefix + " ".join(parts) + "()", re.DOTALL)
    return Cut(pattern.fullmatch, values, tuple(runs_found), number)
