"""Quotes of many requests by the rates of many sites: what requests of one shape cost by some rates is worked out once.

Requests are of one shape where all that a price goes by is the same in them but for how much there is of each amount,
and how long it is held. Plans are made as in ``plans``: of the arithmetic that the pricing prints for such a request
with other numbers, and held against what the pricing says of a real one before they are used. No price is known here.

Source: as of ``pricing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sssjob.accounting.amounts import Amount, NotChargeable
from sssjob.accounting.arithmetic import Figure, plain
from sssjob.accounting.charges import Uncharged
from sssjob.accounting.facts import Facts, Lookups
from sssjob.accounting.plans import PricePlan, PriceShape, open_numbers, plan_of
from sssjob.accounting.pricing import Quotation, additive, price_of
from sssjob.accounting.rates import Rate, RateSet

if TYPE_CHECKING:
    from sssjob.document.model import Job, JobDefaults
    from sssjob.request.levels import Request

__all__ = ["PlannedQuotation", "QuotePlans"]

#: Is looked up as an amount, and is no part of those that rates ask for.
_CONSUMPTION: Final = "ConsumptionRate"
_MOST_PLANS: Final = 1 << 16        # that are remembered
_MOST_AMOUNTS: Final = 60           # of a shape


class _Terms(NamedTuple):
    """Rates of which there can be plans. sought: one rate for each different thing that their amounts are looked for
    by; names: those things, number: of these; whole: the rates without a minimum."""

    sought: tuple[Rate, ...]
    names: tuple[tuple[str | None, ...], ...]
    number: int
    whole: RateSet


class QuotePlans:
    """What is known of the prices of requests, for any number of rates."""

    def __init__(self) -> None:
        self.lookups = Lookups()
        self._terms: dict[str, _Terms | None] = {}      # by the digest of the rates; None: no plan can hold them
        self._names: dict[tuple[tuple[str | None, ...], ...], int] = {}     # what rates look for, by number
        self._keys: dict[tuple[Any, ...], int] = {}     # shapes, by number
        #: None: those requests are priced one by one, as are the first ones of a shape, of which there is nothing.
        self.plans: dict[tuple[str, int], PricePlan | Uncharged | None] = {}
        self._once: set[tuple[str, int]] = set()

    def terms(self, rates: RateSet) -> _Terms | None:
        """What rates look for; None where no plan can hold them."""
        digest = rates.digest
        if digest not in self._terms:
            sought = {rate.sought: rate for rate in rates.prices[0].rates if rate.type[0] == "V"}
            names = tuple(sought)
            self._terms[digest] = _Terms(tuple(sought.values()), names, self._names.setdefault(names, len(self._names)),
                                         rates.model_copy(update={"minimum": Decimal(0)})) if (
                    digest and additive(rates) and not rates.price_list and not rates.quote) else None
        return self._terms[digest]

    def number(self, key: tuple[Any, ...]) -> int:
        """The number of a shape."""
        return self._keys.setdefault(key, len(self._keys))

    def covers(self, lookups: Lookups) -> bool:
        """Whether shapes have all that a price went by; if not they have from now on, and all plans are forgotten."""
        own = self.lookups
        if lookups.texts <= own.texts and lookups.times <= own.times:
            return True
        self.lookups = own.joined(lookups)
        self._forget()
        return False

    def _forget(self) -> None:
        self.plans.clear()
        self._once.clear()
        self._keys.clear()

    def is_second(self, plan: tuple[str, int]) -> bool:
        """Whether a request of that shape was priced by these rates before."""
        if len(self._once) + len(self.plans) >= _MOST_PLANS:
            self._forget()
        if plan in self._once:
            return True
        self._once.add(plan)
        return False


@dataclass(slots=True)
class PlannedQuotation:
    """A job whose price is asked by any number of rates. shapes: of the job, by the number of what rates look for."""

    plans: QuotePlans
    quotation: Quotation
    shapes: dict[int, tuple[int, PriceShape] | None] = field(default_factory=dict)
    lookups: Lookups | None = None

    @classmethod
    def of(cls, plans: QuotePlans, job: Job, defaults: JobDefaults | None, request: Request | None = None
           ) -> PlannedQuotation:
        """As of ``Quotation``."""
        return cls(plans, Quotation(job, defaults, request))

    def amount(self, rates: RateSet) -> Decimal | Uncharged | None:
        """What the job will be charged, or why nothing, without notes; None where no plan can hold the rates, and
        ``quotation`` has to be asked."""
        terms = self.plans.terms(rates)
        if terms is None:
            return None
        shape = self._shape(terms)
        if shape is None:
            return self._by_itself(rates)
        plan = self.plans.plans.get((rates.digest, shape[0]))
        if plan is None:
            return self._learned(rates, terms, shape)
        if isinstance(plan, Uncharged):
            return plan
        amount = plan.amount(shape[1])
        return self._by_itself(rates) if amount is None else amount

    def _by_itself(self, rates: RateSet) -> Decimal | Uncharged:
        price = self.quotation.by(rates)
        return _without_notes(price) if isinstance(price, Uncharged) else price.amount

    def _shape(self, terms: _Terms) -> tuple[int, PriceShape] | None:
        """The shape of the job for some rates, and its number; None where it has to be priced by itself."""
        if self.lookups is not self.plans.lookups:      # shapes have more to them
            self.shapes.clear()
            self.lookups = self.plans.lookups
        if terms.number not in self.shapes:
            try:
                self.shapes[terms.number] = self._made(terms)
            except NotChargeable:                       # the pricing tells why
                self.shapes[terms.number] = None
        return self.shapes[terms.number]

    def _made(self, terms: _Terms) -> tuple[int, PriceShape] | None:
        if self.quotation.repeats:
            return None
        facts = self._facts(terms)
        seconds = facts.duration
        if seconds is None or seconds != int(seconds) or any(part.parts for part in facts.parts):
            return None
        shape, lookups = PriceShape(values=[int(seconds)]), self.plans.lookups
        names = sorted({*lookups.texts, *lookups.times, _CONSUMPTION})
        for place in (facts, *facts.parts):
            shape.parts.append(None)            # between the job and each of its parts
            _add(shape, place, terms.sought, names)
        if len(shape.values) > _MOST_AMOUNTS:
            return None
        return self.plans.number((terms.number, *shape.parts)), shape

    def _facts(self, terms: _Terms) -> Facts:
        """What the job says, all of it at the job where that is the same to the rates."""
        facts = self.quotation.facts()
        counted = any("TaskCount" in names for names in (self.plans.lookups.texts, *terms.names))
        return facts.entire if facts.is_one and not counted else facts

    def _learned(self, rates: RateSet, terms: _Terms, shape: tuple[int, PriceShape]) -> Decimal | Uncharged:
        """The price of a job of whose shape there is no plan so far; the second job of a shape makes it."""
        plans, own = self.plans, (rates.digest, shape[0])
        price = self._by_itself(rates)
        if own in plans.plans or not plans.covers(self.quotation.facts().lookups) or not plans.is_second(own):
            return price
        plans.plans[own] = None
        facts, opened = _opened(self._facts(terms), terms.sought)
        example = price_of(facts, terms.whole)
        if not plans.covers(facts.lookups):
            return price
        if isinstance(example, Uncharged):
            if _without_notes(example) == price:
                plans.plans[own] = _without_notes(example)
        elif (plan := plan_of(example, opened, rates)) is not None and plan.amount(shape[1]) in (price, None):
            plans.plans[own] = plan
        return price


def _without_notes(price: Uncharged) -> Uncharged:
    return Uncharged(price.reason, price.detail)


def _figures(facts: Facts, rate: Rate) -> Sequence[tuple[Amount, Figure]] | NotChargeable:
    """The amounts that a rate prices, or why they cannot be charged."""
    try:
        return facts.figures(rate)
    except NotChargeable as error:
        return error


def _add(shape: PriceShape, facts: Facts, sought: Sequence[Rate], names: Sequence[str]) -> None:
    """Add what the job, or a part of it, says that prices go by."""
    for rate in sought:
        figures = _figures(facts, rate)
        if isinstance(figures, NotChargeable):
            shape.parts += rate.sought, figures.reason, figures.detail
            continue
        for amount, figure in figures:
            shape.parts += rate.sought, figure.under, amount.consumption, amount.duration
            shape.values.append(figure.over)
    for name in names:
        shape.parts.append(name)
        shape.parts += [(item.tag, item.text, tuple(item.attributes.items())) for item in facts.named(name)]


def _opened(facts: Facts, sought: Sequence[Rate]) -> tuple[Facts, PriceShape]:
    """The facts of a job with numbers in place of its amounts that stand nowhere else, and these."""
    count, shape = open_numbers(), PriceShape()

    def opened(under: int) -> Figure:
        """The next number, as a share of what an amount is counted in."""
        over = next(count)
        shape.values.append(over)
        shape.texts.append(plain(over))
        return Figure(f"{over} / {under}" if under > 1 else plain(over), over, under, 1)

    seconds = Decimal(opened(1).over)
    return facts.opened([{rate.sought: [(amount, opened(figure.under)) for amount, figure in figures] for rate in sought
                          if not isinstance(figures := _figures(place, rate), NotChargeable)}
                         for place in (facts, *facts.parts)], seconds), shape
