"""Conditions and amounts as Python says them: ``ge(8) & le(16)``, ``job.requested.memory >= "2 GB"``.

A ``Condition`` is what a property of Requested is set to: each of its terms becomes a property with ``op``, ``conj``
and ``group`` (sections 8.1, 10.2). Comparing an amount asks for the amount alone, whatever its op.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sssjob.document.element import Given, Property
from sssjob.document.lexical import LexicalError
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import UsageError

#: Names of amounts -> the unit in which they count without one.
_UNITS: Final = {e.name: e.unit for e in ELEMENTS if e.unit is not None}
Amount = int | float | Decimal | Fraction | str


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


# --- comparing ----------------------------------------------------------------------------------------------------

def compared(mine: Property, other: object) -> tuple[Fraction, Fraction] | None:
    """Both amounts in one unit; None where the other is no amount. Raises UsageError where the units do not agree.

    A number without unit counts in the unit that the property has without one (Memory: MB)."""
    if isinstance(other, Property):
        theirs = amount_of(other.tag, other.value, other.attributes.get("units"))
    else:
        theirs = amount_of(mine.tag, other, None)
    own = amount_of(mine.tag, mine.value, mine.attributes.get("units"))
    if own is None or theirs is None:
        return None
    if own[1] != theirs[1] and isinstance(other, Property | str) and None not in (own[1], theirs[1]):
        raise UsageError(f"{mine.tag} in {own[1]} cannot be compared with {theirs[1]}")
    return own[0], theirs[0]


def amount_of(tag: str, value: object, units: str | None) -> tuple[Fraction, str | None] | None:
    """(amount, unit) with bytes as the unit of all that has one of theirs; None for what is no amount."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction | str):
        return None
    try:
        if isinstance(value, str):
            number, _, rest = value.strip().partition(" ")
            if not rest:
                digits = len(number.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
                number, rest = number[:digits], number[digits:]
            value, units = Decimal(number), rest.strip() or units
        amount = Fraction(value) if not isinstance(value, float) else Fraction(repr(value))
    except (ArithmeticError, ValueError):
        return None
    unit = units or _UNITS.get(tag)
    try:
        return (amount * byte_factor(unit), "B") if unit is not None else (amount, None)
    except LexicalError:
        return amount, unit
