"""Units of bytes: the eleven of the SSS job object, all binary, and how amounts move between them.

Other units (``USD`` of a Charge, ``s``) are not bytes: they are unknown here and the caller keeps them as they stand.
Source: SSS job object 3.1.0, section 11 (appendix A of the published text).
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, Overflow
from typing import NamedTuple

from sssjob.document.lexical import XML_SPACE, LexicalError, LimitError
from sssjob.limits import LIMITS

__all__ = ["UNITS", "Unit", "UnknownUnit", "byte_factor", "from_bytes", "to_bytes"]


class Unit(NamedTuple):
    """abbr: as written; name: English; power: bytes are 2**power; confidence: of the abbreviation, in words."""

    abbr: str
    name: str
    power: int
    confidence: str


# NB and DB are not SI (ronna, quetta). Some informal lists put a brontobyte (BB) at 2**90 and shift these two; the
# specification does not.
UNITS: tuple[Unit, ...] = (
    Unit("B", "byte", 0, "certain"),
    Unit("KB", "kilobyte", 10, "certain"),
    Unit("MB", "megabyte", 20, "certain"),
    Unit("GB", "gigabyte", 30, "certain"),
    Unit("TB", "terabyte", 40, "certain"),
    Unit("PB", "petabyte", 50, "certain"),
    Unit("EB", "exabyte", 60, "certain"),
    Unit("ZB", "zettabyte", 70, "certain"),
    Unit("YB", "yottabyte", 80, "certain"),
    Unit("NB", "nonabyte", 90, "high"),
    Unit("DB", "doggabyte", 100, "high"),
)

_POWERS = {unit.abbr: unit.power for unit in UNITS}
_POWERS |= {f"{unit.abbr[0]}IB": unit.power for unit in UNITS if 0 < unit.power <= 80}  # KiB .. YiB
_POWERS |= {letter: _POWERS[f"{letter}B"] for letter in "KMGT"}
_FACTORS = {name: 1 << power for name, power in _POWERS.items()}
_FACTORS |= {name.lower(): factor for name, factor in _FACTORS.items()}

# Amounts are multiplied exactly or not at all; the default context would round at 28 digits (2**100 has 31).
_EXACT = Context(prec=4 * LIMITS.digits, traps=[Inexact, Overflow])


class UnknownUnit(LexicalError, LookupError):
    """A unit that is not one of bytes; ``known`` lists the spellings written, ``close`` the similar ones."""

    def __init__(self, unit: str) -> None:
        import difflib

        self.known = tuple(_POWERS)[: len(UNITS)]
        self.close = tuple(difflib.get_close_matches(unit.upper(), self.known, 3, 0.5)) if len(unit) <= 32 else ()
        hint = f"perhaps {', '.join(self.close)}" if self.close else None
        super().__init__(unit, f"a unit of {', '.join(self.known)}", hint)
        self.args = (unit,)  # what pickling calls the class with


def byte_factor(unit: str) -> int:
    """Bytes in one of the unit: B, KB..DB, KiB..YiB, K, M, G, T, in any case, always powers of 1024.

    Raises UnknownUnit with suggestions.
    """
    factor = known_factor(unit)
    if factor is None:
        raise UnknownUnit(unit)
    return factor


def known_factor(unit: str) -> int | None:
    """The same; None for a unit that is not one of bytes."""
    factor = _FACTORS.get(unit)
    if factor is None:
        word = unit.strip(XML_SPACE)
        factor = _FACTORS.get(word.upper()) if word.isascii() else None
    return factor


def to_bytes(amount: Decimal, unit: str | None, default: str = "MB") -> Decimal:
    """The amount in bytes, exactly; ``default`` is the unit where none (or an empty one) is given.

    Raises UnknownUnit; LimitError (digits) for an amount too long to multiply exactly.
    """
    factor = byte_factor(unit or default)
    try:
        return _EXACT.multiply(amount, Decimal(factor))
    except (Inexact, Overflow):
        raise LimitError("(an amount)", f"an amount of at most {LIMITS.digits} digits", "digits") from None


def from_bytes(n: Decimal | int, *, highest: str = "PB") -> tuple[Decimal, str]:
    """(amount, unit) of a number of bytes: the largest unit in which the amount is a whole number.

    ``1536 MB``, not ``1.5 GB``: of the exact values the whole one was chosen, as every reader takes it. Zero and
    fractions of a byte stay in B. highest: the largest unit to use (PB unless the source had a larger one).
    Raises UnknownUnit for ``highest``; LimitError (digits) for an amount that has no end.
    """
    top = (byte_factor(highest).bit_length() - 1) // 10
    number = Decimal(n)
    if not number.is_finite() or number.adjusted() > 4 * LIMITS.digits:
        raise LimitError("(an amount)", f"a finite amount of at most {LIMITS.digits} digits", "digits")
    whole = int(number)
    if not whole or whole != number:
        return number, "B"
    step = min(((whole & -whole).bit_length() - 1) // 10, top)
    return Decimal(whole >> (10 * step)), UNITS[step].abbr
