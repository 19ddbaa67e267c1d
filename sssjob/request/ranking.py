"""The order of several offers that meet a request: the formula that ``docs/sites.md`` states.

Source: SSS job object 3.1.0, section 8.1, which calls performanceFactor a hint about what tradeoffs to make between
resources and start time, and says no more; how it is weighed is the choice of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final, NamedTuple

from sssjob.request.levels import Request
from sssjob.request.tree import properties_of

__all__ = ["Prospect", "performance_factor", "ranked", "values", "weighed_s"]

#: Seconds that a delay is measured in where the request states no Duration.
_HOUR_S: Final = 3600


class Prospect(NamedTuple):
    """What is known of a job at one offer that meets. score: share of the preferences, 0 to 1; price: None where nobody
    says it; start: when it would start, seconds since the epoch, None where nobody says it; failures: the share of the
    jobs that were sent there lately and that the place refused or lost; turn: as of ``Taken``."""

    score: Fraction
    price: Decimal | None = None
    currency: str = ""
    start: float | None = None
    failures: float = 0.0
    turn: int = 0


def performance_factor(requests: Iterable[Request]) -> Fraction:
    """The greatest performanceFactor that a requested property states; 0 without one, or where it is negative."""
    factors = [Fraction(0)]
    for request in requests:
        for level in request.levels:
            for p in properties_of(level.expression.root):
                text = p.attributes.get("performanceFactor")
                if text is not None:
                    factors.append(_number(text))
    return max(factors)


def _number(text: str) -> Fraction:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return Fraction(0)
    return Fraction(number) if number.is_finite() and abs(number.adjusted()) < 20 else Fraction(0)


def weighed_s(requests: Iterable[Request]) -> int:
    """Seconds that a delay is measured in: the longest Duration requested, else an hour."""
    return max((request.totals.seconds or 0 for request in requests), default=0) or _HOUR_S


def values(prospects: Sequence[Prospect], factor: Fraction, seconds: int) -> list[Fraction]:
    """The value of each: its score, less the factor for each ``seconds`` that it starts later than the earliest. An
    offer without an estimate counts as the latest one that has any."""
    starts = [prospect.start for prospect in prospects if prospect.start is not None]
    if not (factor and starts):
        return [prospect.score for prospect in prospects]
    earliest, latest = min(starts), max(starts)
    return [prospect.score - factor * Fraction(round((latest if prospect.start is None else prospect.start) - earliest),
                                               seconds) for prospect in prospects]


def ranked(prospects: Sequence[Prospect], factor: Fraction = Fraction(0), seconds: int = _HOUR_S) -> list[int]:
    """The places of the prospects, the best one first: by value; then those that failed less; then by price, where all
    prices are in one currency, without a price after those with one; then by turn; then by start, without an estimate
    last; then in the order given."""
    comparable = len({prospect.currency for prospect in prospects if prospect.price is not None}) == 1
    worth = values(prospects, factor, seconds)
    values_by_id = {id(value): value for value in worth}        # most share one object
    order = {value: number for number, value in enumerate(sorted(set(values_by_id.values()), reverse=True))}
    standing = {identity: order[value] for identity, value in values_by_id.items()}

    def key(place: int) -> tuple[Any, ...]:
        """What a prospect is sorted by."""
        prospect = prospects[place]
        price = prospect.price if comparable else None
        return (standing[id(worth[place])], prospect.failures, price is None, price or 0, prospect.turn,
                prospect.start is None, prospect.start or 0)

    return sorted(range(len(prospects)), key=key)
