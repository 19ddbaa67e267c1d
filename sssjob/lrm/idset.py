"""Sets of small whole numbers as text: ``0-3,7``, and the ranges of arrays, ``1-10:2,20``.

Flux names the ranks of a job by an ``Idset``. It is kept as its ranges, so that ``0-4000000000`` costs no more than
``0-1``. Reading takes the grammar of the RFC only: ascending, nothing twice, no leading zeros, no blanks, brackets
around the whole or none.
Source: Flux RFC 22 (Idset String Representation); ids are 32 bits, as in libflux-idset.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sssjob.errors import LexicalError

__all__ = ["GREATEST", "Idset", "one_range", "ranges"]

#: The greatest id; the two above stand for "none" in libflux-idset.
GREATEST = (1 << 32) - 3
_FORM = "an idset, as 0-3,7"
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_ITEM = re.compile(r"(0|[1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?(?:,(?=[0-9])|$)")


def ranges(text: str) -> list[range] | None:
    """The ranges of ``4`` or ``3-9:2,12`` in their order, numbers of at most nine digits; None for another form.

    A range that runs backwards or whose step is 0 is empty; white space may surround a range. Sources: sbatch(1),
    --array; qsub(1) of PBS Pro and of Grid Engine.
    """
    spans = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    read = [_range(*span.groups()) for span in spans if span is not None]
    return read if len(read) == len(spans) else None


def one_range(text: str) -> tuple[int, int, int] | None:
    """(first, last, step) of ``4`` or ``3-9:2``, as they stand there: it may run backwards, and its step be 0; None for
    another form."""
    span = _RANGE.fullmatch(text)
    return None if span is None else (int(span[1]), int(span[2] or span[1]), int(span[3] or 1))


def _range(first: str, last: str | None, step: str | None) -> range:
    paces = int(step or 1)
    return range(int(first), int(last or first) + 1, paces) if paces else range(0)


@dataclass(frozen=True, slots=True)
class Idset:
    """spans: (first, last) of each range, ascending and apart from each other."""

    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Idset:
        """The set in a text; empty text is the empty set. Raises LexicalError with the position when malformed."""
        inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
        spans: list[tuple[int, int]] = []
        position, before = 0, -1
        while position < len(inner):
            item = _ITEM.match(inner, position)
            if item is None or item[0].endswith("\n"):
                raise _malformed(text, f"at character {position + 1 + (inner is not text)}")
            first = int(item[1])
            last = int(item[2] or first)
            if first <= before or last > GREATEST or (item[2] and last <= first):
                raise _malformed(text, f"{item[0].rstrip(',')} out of order or range")
            _append(spans, first, last)
            position, before = item.end(), last
        return cls(tuple(spans))

    @classmethod
    def of(cls, ids: Iterable[int]) -> Idset:
        """The set of these numbers."""
        spans: list[tuple[int, int]] = []
        for number in sorted(set(ids)):
            if not 0 <= number <= GREATEST:
                raise LexicalError(str(number), f"an id from 0 to {GREATEST}")
            _append(spans, number, number)
        return cls(tuple(spans))

    def __str__(self) -> str:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self.spans)

    @property
    def count(self) -> int:
        """How many ids there are."""
        count = 0
        for first, last in self.spans:
            count += last - first + 1
        return count

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __iter__(self) -> Iterator[int]:
        return (number for a, b in self.spans for number in range(a, b + 1))

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        at = bisect_right(self.spans, number, key=lambda span: span[0])
        return at > 0 and number <= self.spans[at - 1][1]

    def __or__(self, other: Idset) -> Idset:
        if not (self.spans and other.spans):
            return self if self.spans else other
        spans: list[tuple[int, int]] = []
        for first, last in sorted(self.spans + other.spans):
            _append(spans, first, last)
        return Idset(tuple(spans))

    def __sub__(self, other: Idset) -> Idset:
        if self.spans == other.spans or not other.spans:
            return self if not other.spans else Idset()
        spans: list[tuple[int, int]] = []
        cuts, at = other.spans, 0
        for first, last in self.spans:
            while at < len(cuts) and cuts[at][1] < first:
                at += 1
            cut = at
            while first <= last:
                if cut == len(cuts) or cuts[cut][0] > last:
                    spans.append((first, last))
                    break
                if cuts[cut][0] > first:
                    spans.append((first, cuts[cut][0] - 1))
                first = cuts[cut][1] + 1
                cut += 1
            at = max(at, cut - 1)
        return Idset(tuple(spans))

    def __and__(self, other: Idset) -> Idset:
        return self - (self - other)

    def take(self, count: int) -> Idset:
        """The first so many ids."""
        spans = []
        for first, last in self.spans:
            if count <= 0:
                break
            spans.append((first, min(last, first + count - 1)))
            count -= last - first + 1
        return Idset(tuple(spans))


def _append(spans: list[tuple[int, int]], first: int, last: int) -> None:
    """Add a range that does not start before the last one."""
    if spans and first <= spans[-1][1] + 1:
        spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
    else:
        spans.append((first, last))


def _malformed(text: str, what: str) -> LexicalError:
    return LexicalError(text, _FORM, what)
