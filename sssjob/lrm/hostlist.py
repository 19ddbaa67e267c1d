"""Folded lists of hosts, ``node[1-3,007]-ib,login``: one reader of the text, and two kinds of list made from it.

``items`` reads a text piece by piece; a ``HostGrammar`` says what the text at hand allows. ``Hostlist`` is a list in
which order counts and names may repeat, kept as runs of numbers, so that ``n[0-999999]`` costs no more than ``n0``.
``hosts`` writes all names out. A set of nodes, in which order does not count, is ``sssjob.document.nodeset``.
Sources: scontrol(1), show hostnames; Flux RFC 29; the limit of one range, and how Flux folds names, as seen in
libflux-hostlist 0.88.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from sssjob.errors import LexicalError, LimitError
from sssjob.limits import LIMITS, Limits

__all__ = ["FLUX", "NOT_IN_NAMES", "SLURM", "HostGrammar", "Hostlist", "Numbers", "hosts", "items"]

#: Ranges of one pair of brackets: (digits that a number has at least, first, last) of each, as they stand.
Numbers = list[tuple[int, int, int]]
#: What stands in no name.
NOT_IN_NAMES: Final = re.compile(r"[\[\],\s\x00-\x1f\x7f]")

_FORM: Final = "a range of nodes, as n[1-3,8],login1"
_SPACE: Final = " \t\r\n"
_RANGE: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_TOKEN: Final = re.compile(r"[^\[\],]+|[\[\],]")


@dataclass(frozen=True, slots=True)
class HostGrammar:
    """What a text may hold. brackets: pairs in one item, None for any number; blanks: whether white space may surround
    names and numbers; zeros: whether the high end of a range may have leading zeros that the low end has not; longest:
    numbers of one range, None for any number; digits: of one number."""

    brackets: int | None = None
    blanks: bool = True
    zeros: bool = False
    longest: int | None = None
    digits: int = LIMITS.digits


#: Slurm's host lists, which are the Range of the SSS job object too.
SLURM: Final = HostGrammar()
#: Flux RFC 29.
FLUX: Final = HostGrammar(1, blanks=False, zeros=True, longest=1 << 20, digits=18)


def items(text: str, grammar: HostGrammar = SLURM, limits: Limits = LIMITS) -> Iterator[list[str | Numbers]]:
    """The items between commas, each as its pieces in order: text, or the numbers of a pair of brackets.

    Raises LexicalError with the position when the text is malformed, LimitError (digits) for a longer number.
    """
    pieces: list[str | Numbers] = []
    position = 0
    for token in _TOKEN.finditer(text):
        if token.start() < position:
            continue  # inside brackets that were read whole
        word = token[0]
        if word == "[":
            close = text.find("]", position)
            if close < 0:
                raise _malformed(text, "'[' never closed", position)
            pieces.append(_numbers(text, position + 1, close, grammar, limits))
            position = close + 1
            continue
        if word == "]":
            raise _malformed(text, "']' without '['", position)
        if word == ",":
            yield _item(text, pieces, position, grammar)
            pieces = []
        else:
            pieces.append(word)
        position = token.end()
    yield _item(text, pieces, len(text), grammar)


def _malformed(text: str, what: str, position: int) -> LexicalError:
    return LexicalError(text, _FORM, f"{what} at character {position + 1}")


def _item(text: str, pieces: list[str | Numbers], end: int, grammar: HostGrammar) -> list[str | Numbers]:
    """The pieces of an item that ends before the character ``end``, without the white space around it."""
    if grammar.blanks and pieces:
        if isinstance(pieces[0], str):
            pieces[0] = pieces[0].lstrip(_SPACE)
        if isinstance(pieces[-1], str):
            pieces[-1] = pieces[-1].rstrip(_SPACE)
    if not any(pieces):
        raise _malformed(text, "a name expected", end)
    pairs = 0
    for piece in pieces:
        if not isinstance(piece, str):
            pairs += 1
        elif NOT_IN_NAMES.search(piece):
            raise _malformed(text, "white space inside a name before the comma or end", end)
    if grammar.brackets is not None and pairs > grammar.brackets:
        raise _malformed(text, f"more than {grammar.brackets} pair of brackets before the comma or end", end)
    return pieces


def _numbers(text: str, start: int, end: int, grammar: HostGrammar, limits: Limits) -> Numbers:
    """The numbers between two brackets."""
    numbers: Numbers = []
    for part in text[start:end].split(","):
        span = _RANGE.fullmatch(part.strip(_SPACE) if grammar.blanks else part)
        if span is None:
            what = "brackets inside brackets" if "[" in part else "a number or a range expected"
            raise _malformed(text, what, start)
        low, high = span[1], span[2] or span[1]
        longest = min(grammar.digits, limits.digits)
        if max(len(low), len(high)) > longest:
            raise LimitError(text, f"numbers of at most {longest} digits", "digits")
        first, last = int(low), int(high)
        if last < first:
            raise _malformed(text, "a range that runs backwards", start)
        if not grammar.zeros and high[0] == "0" and len(high) != len(low):
            raise _malformed(text, "leading zeros at the high end that the low end has not", start)
        if grammar.longest is not None and last - first >= grammar.longest:
            raise _malformed(text, f"a range of more than {grammar.longest} numbers", start)
        numbers.append((len(low), first, last))
        start += len(part) + 1
    return numbers


# -- all names of a list
_MOST: Final = 100_000      # names of a list that is written out


def hosts(text: str) -> list[str]:
    """The names that a list of Slurm holds, in order; the text itself as the only one when it is malformed or names
    more than 100,000 hosts."""
    names: list[str] = []
    try:
        for pieces in items(text) if text else ():
            names += _expanded(pieces, _MOST - len(names))
    except LexicalError:
        return [text]
    return names


def _expanded(pieces: list[str | Numbers], most: int) -> list[str]:
    total = 1
    for piece in pieces:
        total *= 1 if isinstance(piece, str) else sum(last - first + 1 for _, first, last in piece)
    if total > most:
        raise LimitError("(a list of hosts)", f"at most {most} names", "nodes")
    choices = [[piece] if isinstance(piece, str) else
               [f"{number:0{width}}" for width, first, last in piece for number in range(first, last + 1)]
               for piece in pieces]
    return ["".join(parts) for parts in itertools.product(*choices)]


# -- lists in which order counts
@dataclass(frozen=True, slots=True, order=True)
class _Run:
    """prefix followed by first to last, with at least width digits each; width 0: the prefix alone."""

    prefix: str
    width: int = 0
    first: int = 0
    last: int = 0

    @property
    def count(self) -> int:
        """How many hosts."""
        return self.last - self.first + 1

    @property
    def bare(self) -> bool:
        """Whether it is one host without a number."""
        return not self.width

    def names(self) -> Iterator[str]:
        """The names, in order."""
        if self.bare:
            yield self.prefix
            return
        for number in range(self.first, self.last + 1):
            yield f"{self.prefix}{number:0{self.width}}"

    def numbers(self) -> str:
        """As it stands in brackets."""
        first = f"{self.first:0{self.width}}"
        return first if self.first == self.last else f"{first}-{self.last:0{self.width}}"


@dataclass(frozen=True, slots=True)
class Hostlist:
    """A list of hosts as Flux writes it. runs: of names that follow each other."""

    runs: tuple[_Run, ...] = ()

    @classmethod
    def parse(cls, text: str, limits: Limits = LIMITS) -> Hostlist:
        """The list in a text; empty text is the empty list. Raises LexicalError, LimitError (nodes)."""
        runs: list[_Run] = []
        count = 0
        for pieces in items(text, FLUX, limits) if text else ():
            read = _runs(pieces)
            count += sum(run.count for run in read)
            if count > limits.nodes:
                raise LimitError(text, "fewer hosts", "nodes")
            suffix = pieces[-1] if len(pieces) > 1 and isinstance(pieces[-1], str) else ""
            whole = (_single(name + suffix) for run in read for name in run.names()) if suffix else read
            for run in whole:
                _append(runs, run)
        return cls(tuple(runs))

    @classmethod
    def of(cls, names: Iterable[str]) -> Hostlist:
        """The list of these names. Raises LexicalError for one that could not be read again."""
        runs: list[_Run] = []
        for name in names:
            if not name or NOT_IN_NAMES.search(name):
                raise LexicalError(name, "the name of a host")
            _append(runs, _single(name))
        return cls(tuple(runs))

    @property
    def count(self) -> int:
        """How many names there are, each as often as it stands there."""
        return sum(run.count for run in self.runs)

    def __iter__(self) -> Iterator[str]:
        return (name for run in self.runs for name in run.names())

    def __str__(self) -> str:
        """Neighbours of one prefix in one pair of brackets."""
        parts: list[str] = []
        position = 0
        while position < len(self.runs):
            run = self.runs[position]
            end = position + 1
            while not run.bare and end < len(self.runs) and self.runs[end].prefix == run.prefix \
                    and not self.runs[end].bare:
                end += 1
            numbers = ",".join(r.numbers() for r in self.runs[position:end] if not r.bare)
            single = end == position + 1 and run.first == run.last
            parts.append(run.prefix + (numbers if single else f"[{numbers}]"))
            position = end
        return ",".join(parts)

    def unique(self) -> Hostlist:
        """Every name once, by prefix, count of digits, and number."""
        runs: list[_Run] = []
        before: _Run | None = None
        for run in sorted(piece for whole in self.runs for piece in _pieces(whole)):
            if before is not None and (run.prefix, run.width) == (before.prefix, before.width):
                run = replace(run, first=max(run.first, before.last + 1), last=max(run.last, before.last))
            if run.first <= run.last:
                _append(runs, run)
            before = run
        return Hostlist(tuple(runs))


def _runs(pieces: list[str | Numbers]) -> list[_Run]:
    """The runs of an item, without the text after its brackets."""
    prefix = pieces[0] if isinstance(pieces[0], str) else ""
    numbers = next((piece for piece in pieces if not isinstance(piece, str)), None)
    return [_single(prefix)] if numbers is None else [_Run(prefix, *numbered) for numbered in numbers]


def _single(name: str) -> _Run:
    digits = min(len(name) - len(name.rstrip("0123456789")), FLUX.digits)
    return _Run(name[:-digits], digits, int(name[-digits:]), int(name[-digits:])) if digits else _Run(name)


def _append(runs: list[_Run], run: _Run) -> None:
    """Add a run; one that goes on where the last one ended becomes part of it."""
    before = runs[-1] if runs else None
    if before is not None and before.prefix == run.prefix and before.last + 1 == run.first \
            and (width := _width(before, run)) is not None:
        runs[-1] = _Run(run.prefix, width, before.first, run.last)
    else:
        runs.append(run)


def _width(first: _Run, other: _Run) -> int | None:
    """The width with which the numbers of both read as they do; None when there is none."""
    if first.bare or other.bare:
        return None
    for width in (first.width, other.width):
        if all(f"{n:0{width}}" == f"{n:0{run.width}}" for run in (first, other) for n in (run.first, run.last)):
            return width
    return None


def _pieces(run: _Run) -> Iterator[_Run]:
    """A run in pieces of which all numbers have as many digits."""
    first = run.first
    while first <= run.last:
        width = max(run.width, len(str(first))) if run.width else 0
        last = min(run.last, 10 ** width - 1)
        yield _Run(run.prefix, width, first, last)
        first = last + 1
