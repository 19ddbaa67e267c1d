"""Properties that count something, and comparing them: ``job.requested.memory >= "2 GB"``.

Comparing an amount asks for the amount alone, whatever its op.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from sssjob.document.leaf import Property
from sssjob.document.lexical import LexicalError
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import UsageError

__all__ = ["Amount"]

#: Names of amounts -> the unit in which they count without one.
_UNITS: Final = {e.name: e.unit for e in ELEMENTS if e.unit is not None}


class Amount(Property):
    """A property that counts something: it compares with numbers and texts (``"2 GB"``) by its amount, whatever its op.

    A number without unit counts in the unit that the property has without one (Memory: MB). Comparing for equality
    with another Property looks at everything, as of all properties. Raises UsageError where units do not agree.
    """

    __slots__ = ()

    def _compared(self, other: object, sign: Callable[[Any, Any], bool]) -> bool:
        both = _compared(self, other)
        return NotImplemented if both is None else sign(*both)

    def __lt__(self, other: object) -> bool:
        return self._compared(other, lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, ge)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) if isinstance(other, Property) else self._compared(other, eq)

    __hash__ = Property.__hash__


def _compared(mine: Property, other: object) -> tuple[Fraction, Fraction] | None:
    """Both amounts in one unit; None where the other is no amount. Raises UsageError where the units do not agree.

    A number without unit counts in the unit that the property has without one (Memory: MB)."""
    if isinstance(other, Property):
        theirs = _amount_of(other.tag, other.value, other.attributes.get("units"))
    else:
        theirs = _amount_of(mine.tag, other, None)
    own = _amount_of(mine.tag, mine.value, mine.attributes.get("units"))
    if own is None or theirs is None:
        return None
    if own[1] != theirs[1] and isinstance(other, Property | str) and None not in (own[1], theirs[1]):
        raise UsageError(f"{mine.tag} in {own[1]} cannot be compared with {theirs[1]}")
    return own[0], theirs[0]


def _amount_of(tag: str, value: object, units: str | None) -> tuple[Fraction, str | None] | None:
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
