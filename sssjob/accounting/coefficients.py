"""Charges of many jobs that differ in amounts and duration only, by coefficients that the charge engine gives.

By rates that are ``additive`` such a charge is

    fixed + sum of (used * amount) + seconds * (held + sum of (timed * amount))

``coefficients`` finds these numbers by charging jobs whose amounts are 1 and 2, and charges one more, whose amounts
share no divisor, to see that the sum holds. No price is known here: what is not a sum has no coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final

from sssjob.accounting.arithmetic import ROUNDINGS
from sssjob.accounting.pricing import Charge, Uncharged
from sssjob.accounting.rates import RateSet

__all__ = ["Coefficients", "coefficients"]

#: Seconds and amounts of the job that shows whether the sum holds.
_SECONDS: Final = 7919
_AMOUNTS: Final = (101, 211, 307, 401, 503, 601, 701, 809, 907, 1009, 1103, 1201, 1301, 1409, 1511, 1601)

#: What the charge engine makes of a job of so many seconds with these amounts; None: it cannot be asked.
Price = Callable[[int, Sequence[int]], Charge | Uncharged | None]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The charge of a job in multiples of the rates' smallest amount, each number as a multiple of 1 / under. fixed:
    of each job; held: of each second; used, timed: of each amount, and of each amount and second. rounding: of the
    result; least: its minimum, whole; unsaid: as of each Charge."""

    fixed: int
    held: int
    used: tuple[int, ...]
    timed: tuple[int, ...]
    under: int
    rounding: Callable[[int, int], int]
    least: int
    unsaid: tuple[str, ...] = ()

    def charges(self, seconds: Sequence[int], amounts: Sequence[Sequence[int]]) -> list[int]:
        """The charges of jobs, in multiples of the smallest amount. amounts: of each kind those of all jobs."""
        each_second = [self.held] * len(seconds)
        sums = [self.fixed] * len(seconds)
        for factor, column in zip(self.timed, amounts, strict=True):
            if factor:
                each_second = [s + factor * amount for s, amount in zip(each_second, column, strict=True)]
        for factor, column in zip(self.used, amounts, strict=True):
            if factor:
                sums = [s + factor * amount for s, amount in zip(sums, column, strict=True)]
        rounding, under = self.rounding, self.under
        charges = [rounding(s + each * ran, under) for s, each, ran in zip(sums, each_second, seconds, strict=True)]
        return [max(charge, self.least) for charge in charges] if self.least else charges


def coefficients(price: Price, count: int, rates: RateSet) -> Coefficients | Uncharged | None:
    """The coefficients of a job with so many amounts, or why such jobs are not charged; None where charges are no such
    sum. price: by rates that are the same but for their minimum, of which there is none."""
    if count > len(_AMOUNTS):
        return None
    ones = [tuple(2 if i == at else 1 for i in range(count)) for at in range(-1, count)]
    proof = price(_SECONDS, _AMOUNTS[:count])
    answers = [price(seconds, amounts) for seconds in (1, 2) for amounts in ones]
    if isinstance(proof, Uncharged):
        same = all(isinstance(a, Uncharged) and a.reason is proof.reason for a in answers)
        return proof if same else None
    charges = [a.exact for a in answers if isinstance(a, Charge)]
    if proof is None or len(charges) < len(answers):
        return None
    return _solved(charges[:count + 1], charges[count + 1:], proof, rates)


def _solved(charges_of_one: Sequence[Fraction], two: Sequence[Fraction], proof: Charge,
            rates: RateSet) -> Coefficients | None:
    """The coefficients of charges of one and of two seconds; of each first where all amounts are 1, then where one of
    them is 2. None where they do not give the proof."""
    slopes = [(charges_of_one[at] - charges_of_one[0], two[at] - two[0]) for at in range(1, len(charges_of_one))]
    timed = [second - first for first, second in slopes]
    used = [first - both for (first, _), both in zip(slopes, timed, strict=True)]
    held = two[0] - charges_of_one[0] - sum(timed)
    fixed = charges_of_one[0] - held - sum(used) - sum(timed)
    priced_amounts = zip(used, timed, _AMOUNTS, strict=False)
    if fixed + _SECONDS * held + sum((u + _SECONDS * t) * amount for u, t, amount in priced_amounts) != proof.exact:
        return None
    smallest = Fraction(rates.smallest)
    exact = [value / smallest for value in (fixed, held, *used, *timed)]
    under = lcm(*(value.denominator for value in exact))
    whole = [value.numerator * (under // value.denominator) for value in exact]
    split, rounding, least = 2 + len(used), ROUNDINGS[rates.rounding], Fraction(rates.minimum) / smallest
    return Coefficients(whole[0], whole[1], tuple(whole[2:split]), tuple(whole[split:]), under, rounding,
                        rounding(least.numerator, least.denominator), proof.unsaid)
