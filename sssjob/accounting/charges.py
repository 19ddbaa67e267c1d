"""What a price is: an amount with the arithmetic that it comes of, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from sssjob.accounting.amounts import NotChargeable, Reason
from sssjob.accounting.arithmetic import Figure, in_doubles, plain, rounded
from sssjob.accounting.facts import Note
from sssjob.accounting.rates import Rate, RateSet

__all__ = ["Charge", "Item", "Uncharged", "additive", "amount_name", "rounded_charge", "unsaid_sentence"]

_MOST: Final = Fraction(10**60)


@dataclass(frozen=True, slots=True)
class Item:
    """One rate that took part. rate: its label; category: of the time it is for; value: exact; of: the rate."""

    rate: str
    arithmetic: str
    value: Fraction
    category: str | None = None
    of: Rate | None = field(default=None, compare=False, repr=False)

    def record(self) -> dict[str, str]:
        """As a JSON object."""
        record = {"rate": self.rate, "arithmetic": self.arithmetic, "value": plain(self.value)}
        return record if self.category is None else record | {"category": self.category}


@dataclass(frozen=True, slots=True)
class Charge:
    """What a job costs. arithmetic: comes to exact; rounding: how amount follows from it; notes: what was assumed;
    unsaid: rates for an amount that each job has and this one does not say, so that it is charged for the rest."""

    amount: Decimal
    currency: str
    rates: str
    arithmetic: str
    exact: Fraction
    rounding: str
    items: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    unsaid: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As a JSON object; numbers are text."""
        return {"charge": plain(self.amount), "currency": self.currency, "rates": self.rates,
                "arithmetic": self.arithmetic, "exact": plain(self.exact), "rounding": self.rounding,
                "items": [i.record() for i in self.items]}


def unsaid_sentence(label: str, count: int, charged: int, what: str = "charged") -> str:
    """That so many jobs of those charged (what: or quoted) do not say the amount that a rate prices. label: of the
    rate, as ``Charge.unsaid`` has it."""
    name = amount_name(label)
    return (f"{name} is not said by {count} of {charged} {what} job{'s' * (charged != 1)}, to which {label} charges "
            "nothing (required = true charges no such job)")


def amount_name(label: str) -> str:
    """The name of the amount that a rate with this label prices."""
    return label.partition(" ")[2].partition(",")[0]


@dataclass(frozen=True, slots=True)
class Uncharged:
    """A job without a charge, and why."""

    reason: Reason
    detail: str
    notes: tuple[Note, ...] = ()

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"reason": str(self.reason), "detail": self.detail}


def rounded_charge(exact: Figure, rates: RateSet, items: tuple[Item, ...], notes: tuple[Note, ...] = (),
             unsaid: tuple[str, ...] = ()) -> Charge:
    """The charge that an exact amount becomes by rates. Raises NotChargeable where it is too large."""
    value = exact.value
    if abs(value) >= _MOST:
        raise NotChargeable(Reason.TOO_LARGE, "the charge has more than 60 digits")
    if rates.profile == "gold":
        amount = Decimal(f"{in_doubles(exact.text):.{rates.precision}f}")
        how = f"in binary doubles, to {rates.precision} digits"
    else:
        amount = rounded(value, rates.smallest, rates.precision, rates.rounding)
        how = rates.how
    return Charge(amount, rates.currency, rates.identity, exact.text, value, how, items, notes, unsaid)


def additive(rates: RateSet) -> bool:
    """Whether the charges of jobs that differ in nothing but amounts and duration grow with each of these alone.

    Where there are price lists by date, that is so of jobs of one list (``RateSet.place_of``). They do not where
    something is rounded, cut or chosen on the way to the sum: by a calendar, a granularity, a minimum of the duration,
    the dearest of several rates, weights of billing, a share of a benchmark; or in doubles.
    """
    return (rates.profile == "sss" and rates.combine == "sum" and rates.billing is None and not rates.dated
            and not rates.minimum_duration and rates.granularity == 1
            and not any(table.features for table in rates.benchmark.values()))
