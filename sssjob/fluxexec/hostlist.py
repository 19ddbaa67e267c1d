"""Lists of host names as Flux writes them: ``node[1-3,007],login``. Order counts, names may repeat.

A list is kept as its runs of numbers, so that ``n[0-999999]`` costs no more than ``n0``. Reading takes commas between
items, and one pair of brackets in an item; text may follow them. The first number of a range says how many digits its
numbers have at least. Not here: sets of nodes of the SSS job object, whose grammar and order differ (``nodeset``).
Source: Flux RFC 29; the limit of one range, and how names are folded, as seen in libflux-hostlist 0.88.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sssjob.lexical import LexicalError, LimitError
from sssjob.limits import LIMITS, Limits

__all__ = ["Hostlist"]

_FORM: Final = "a list of hosts, as n[1-3],login"
_ITEM: Final = re.compile(r"([^\[\],\s\x00-\x1f\x7f]*)(?:\[([^\[\]]*)\]([^\[\],\s\x00-\x1f\x7f]*))?(?:,(?!$)|$)")
_RANGE: Final = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")

_LONGEST: Final = 1 << 20       # hosts of one range


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
    """runs: of names that follow each other."""

    runs: tuple[_Run, ...] = ()

    @classmethod
    def parse(cls, text: str, limits: Limits = LIMITS) -> Hostlist:
        """The list in a text; empty text is the empty list. Raises LexicalError, LimitError (nodes)."""
        runs: list[_Run] = []
        position = count = 0
        while position < len(text):
            item = _ITEM.match(text, position)
            if item is None or not item[0].rstrip(","):
                raise LexicalError(text, _FORM, f"at character {position + 1}")
            for run in _item(text, item, position, limits.nodes - count):
                count += run.count
                _append(runs, run)
            position = item.end()
        return cls(tuple(runs))

    @classmethod
    def of(cls, names: Iterable[str]) -> Hostlist:
        """The list of these names. Raises LexicalError for one that could not be read again."""
        runs: list[_Run] = []
        for name in names:
            item = _ITEM.fullmatch(name)
            if item is None or item[2] is not None or not name or "," in name:
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
                run = _Run(run.prefix, run.width, max(run.first, before.last + 1), max(run.last, before.last))
            if run.first <= run.last:
                _append(runs, run)
            before = run
        return Hostlist(tuple(runs))


def _item(text: str, item: re.Match[str], position: int, room: int) -> Iterator[_Run]:
    """The runs of one item."""
    prefix, inside, suffix = item[1], item[2], item[3]
    if inside is None:
        made = [_single(prefix)]
    else:
        made = [_range(text, prefix, part, position + len(prefix) + 2) for part in inside.split(",")]
    if sum(run.count for run in made) > room:
        raise LimitError(text, "fewer hosts", "nodes")
    for run in made:
        if suffix:
            yield from (_single(name + suffix) for name in run.names())
        else:
            yield run


def _range(text: str, prefix: str, part: str, at: int) -> _Run:
    found = _RANGE.fullmatch(part)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if last < first or last - first >= _LONGEST or found is None:
        raise LexicalError(text, _FORM, f"at character {at}: {part!a:.40} is no range of at most {_LONGEST} numbers")
    return _Run(prefix, len(found[1]), first, last)


def _single(name: str) -> _Run:
    digits = len(name) - len(name.rstrip("0123456789"))
    digits = min(digits, 18)
    if not digits:
        return _Run(name)
    return _Run(name[:-digits], digits, int(name[-digits:]), int(name[-digits:]))


def _append(runs: list[_Run], run: _Run) -> None:
    """Add a run; one that goes on where the last one ended becomes part of it."""
    before = runs[-1] if runs else None
    if before is not None and before.prefix == run.prefix and before.last + 1 == run.first \
            and (width := _width(before, run)) is not None:
        runs[-1] = _Run(run.prefix, width, before.first, run.last)
    else:
        runs.append(run)


def _width(one: _Run, other: _Run) -> int | None:
    """The width with which the numbers of both read as they do; None when there is none."""
    if one.bare or other.bare:
        return None
    for width in (one.width, other.width):
        if all(f"{n:0{width}}" == f"{n:0{run.width}}" for run in (one, other) for n in (run.first, run.last)):
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
