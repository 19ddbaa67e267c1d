"""Amounts that rates price, their units, and why a job has no charge."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from sssjob.accounting.arithmetic import Figure, number, product, ratio
from sssjob.document.element import Property, Value
from sssjob.document.lexical import LexicalError, read_duration, read_float
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import ELEMENTS

__all__ = ["BYTES", "Amount", "NotChargeable", "OfOne", "Reason", "converted", "decimal", "energy_units",
           "seconds_of"]

#: Amounts of these are bytes, in MB where no unit is said.
BYTES: Final = {e.name: e.unit for e in ELEMENTS if e.unit is not None}
#: Units of energy in joule.
_JOULE: Final = {"J": 1, "kJ": 10**3, "MJ": 10**6, "GJ": 10**9, "Wh": 3600, "kWh": 3_600_000, "MWh": 3_600_000_000}


class Reason(StrEnum):
    """Why a job has no charge."""

    NOT_STARTED = "not-started"
    NOT_ENDED = "not-ended"
    NO_DURATION = "no-duration"
    NO_START = "no-start"
    NO_RATES = "no-rates"
    NOTHING_PRICED = "nothing-priced"
    AMOUNT_MISSING = "amount-missing"
    AMOUNT_AMBIGUOUS = "amount-ambiguous"
    NOT_A_NUMBER = "not-a-number"
    NEGATIVE = "negative"
    UNIT_UNKNOWN = "unit-unknown"
    NO_BENCHMARK = "no-benchmark"
    NOT_COMMITTED = "not-committed"
    SYSTEM_FAULT = "system-fault"
    EARLIER_ATTEMPT = "earlier-attempt"
    REPEATED = "repeated"
    TIMES_CONTRADICTORY = "times-contradictory"
    REQUEST_CONTRADICTORY = "request-contradictory"
    TOO_LARGE = "too-large"


class NotChargeable(ValueError):
    """A job that cannot be charged. reason: its code; detail: in words."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason} ({detail})")


#: Why an amount is that of one, and the property that says the amount.
OfOne = tuple[str, Property | None]


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of a property. consumption: average fraction used, None: not said; duration: seconds in use where that
    is not the job's; factor: what it is multiplied by where it is per something; origin: how it comes about where it is
    a total; of_one: why it is that of one node or processor only, the least, and the property that says so."""

    name: str
    value: Decimal | Fraction
    units: str | None = None
    consumption: Decimal | None = None
    duration: Decimal | None = None
    factor: Figure | None = None
    origin: str = ""
    of_one: OfOne | None = None


def decimal(name: str, value: Value) -> Decimal:
    """A value as an amount. Raises NotChargeable for what is none that can be charged."""
    try:
        amount = read_float(value) if isinstance(value, str) else Decimal(value)
    except (LexicalError, ArithmeticError):
        raise NotChargeable(Reason.NOT_A_NUMBER, f"{name} is {str(value)[:40]!r}") from None
    if not amount.is_finite():
        raise NotChargeable(Reason.NOT_A_NUMBER, f"{name} is {amount}")
    if amount < 0:
        raise NotChargeable(Reason.NEGATIVE, f"{name} is {str(amount)[:40]}")
    if abs(amount.adjusted()) > 40:
        raise NotChargeable(Reason.TOO_LARGE, f"{name} has more than 40 digits")
    return amount


def seconds_of(name: str, value: Value) -> Decimal:
    """A value as a time in seconds. Raises NotChargeable."""
    try:
        return decimal(name, read_duration(value) if isinstance(value, str) else value)
    except LexicalError:
        raise NotChargeable(Reason.NOT_A_NUMBER, f"{name} is {str(value)[:40]!r}") from None


def energy_units() -> tuple[str, ...]:
    """The units of energy that rates and amounts may be in."""
    return tuple(_JOULE)


def converted(amount: Amount, units: str | None) -> Figure:
    """The amount in a unit of the rates; None: that of the specification. Raises NotChargeable."""
    target_units = units or BYTES.get(amount.name)
    shown = f"{amount.name} {amount.units}" if amount.units else amount.name
    term = number(amount.value, f"{shown}: {amount.origin}" if amount.origin else shown)
    if amount.factor is not None:
        term = product(term, amount.factor)
    if amount.units is None or amount.units == target_units:
        return term
    factor = _units_in(amount.units, target_units)
    if factor is None:
        raise NotChargeable(Reason.UNIT_UNKNOWN, f"{amount.name} in {amount.units}, the rate is for "
                            f"{target_units or 'an amount without units'}")
    how = f"{target_units}/{amount.units}"
    if factor.numerator != 1:
        term = product(term, number(factor.numerator, how))
    return term if factor.denominator == 1 else ratio(term, number(factor.denominator, how))


def _units_in(unit: str, target_units: str | None) -> Fraction | None:
    """How many of the wanted unit are in one; None where they do not measure the same."""
    if target_units is None:
        return None
    if unit in _JOULE and target_units in _JOULE:
        return Fraction(_JOULE[unit], _JOULE[target_units])
    try:
        return Fraction(byte_factor(unit), byte_factor(target_units))
    except LookupError:
        return None
