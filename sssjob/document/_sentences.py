"""Conditions as Python says them: ``ge(8) & le(16)``.

A ``Condition`` is what a property of Requested is set to: each of its terms becomes a property with ``op``, ``conj``
and ``group`` (sections 8.1, 10.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sssjob.document.leaf import Given
from sssjob.errors import UsageError


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison. conj: how it is joined to the one before; group: brackets that open (above 0) or close here."""

    op: str
    value: Given
    conj: str = "And"
    group: int = 0

    def __post_init__(self) -> None:
        """Raises UsageError for a condition within a comparison, of which one of the two would be lost."""
        if isinstance(self.value, Condition):
            raise UsageError("a value is compared with, not a condition: join two conditions, as ge(8) & le(16)")

    def attributes(self) -> dict[str, str | None]:
        """The attributes of its property; what is the default is left out."""
        return {"op": self.op if self.op != "EQ" else None, "conj": self.conj if self.conj != "And" else None,
                "group": str(self.group) if self.group else None}


@dataclass(frozen=True, slots=True)
class Condition:
    """Terms in the order in which they are written; ``&`` and ``|`` join conditions, each in brackets of its own."""

    terms: tuple[Comparison, ...]

    def __and__(self, other: Condition) -> Condition:
        return self._joined(other, "And")

    def __or__(self, other: Condition) -> Condition:
        return self._joined(other, "Or")

    def __bool__(self) -> bool:
        raise UsageError("a condition is neither true nor false: join conditions with & and |, not with and and or")

    def _joined(self, other: Condition, conj: str) -> Condition:
        if not isinstance(other, Condition):
            raise UsageError(f"a condition is joined to another one, as ge(8) & le(16), not to {other!r}")
        first, *rest = other.bracketed().terms
        return Condition((*self.bracketed().terms, replace(first, conj=conj), *rest))

    def bracketed(self) -> Condition:
        """The same in brackets, where it has several terms and is not one bracket already."""
        if len(self.terms) < 2 or self._whole():
            return self
        first, *middle, last = self.terms
        return Condition((replace(first, group=first.group + 1), *middle, replace(last, group=last.group - 1)))

    def _whole(self) -> bool:
        """Whether the bracket that opens first closes last."""
        depth = 0
        for term in self.terms[:-1]:
            depth += term.group
            if depth <= 0:
                return False
        return True


def eq(value: Given) -> Condition:
    """Exactly this."""
    return Condition((Comparison("EQ", value),))


def ne(value: Given) -> Condition:
    """Anything but this."""
    return Condition((Comparison("NE", value),))


def lt(value: Given) -> Condition:
    """Less than this."""
    return Condition((Comparison("LT", value),))


def gt(value: Given) -> Condition:
    """More than this."""
    return Condition((Comparison("GT", value),))


def le(value: Given) -> Condition:
    """At most this."""
    return Condition((Comparison("LE", value),))


def ge(value: Given) -> Condition:
    """At least this."""
    return Condition((Comparison("GE", value),))


def matching(pattern: str) -> Condition:
    """What a pattern matches."""
    return Condition((Comparison("Match", pattern),))
