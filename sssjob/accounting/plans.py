"""Prices of many jobs by one set of rates: what jobs of one shape cost is worked out once, and filled in for each.

Jobs are of one shape where all that a price goes by is the same in them but for amounts: the pricing itself tells what
that is (``Lookups``). The plan of a shape is the arithmetic that the pricing prints for a job of that shape whose
amounts are numbers that stand nowhere else: where they stand in the text, other amounts can. What the plan says of a
real job is held against what the pricing says of it before the plan is used. No price is known here.

Jobs that are in parts, inherit, or say what no plan can hold, and rates that are not ``additive``, are priced one by
one, as are the first jobs of each shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from itertools import chain
from math import prod
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sssjob.accounting.arithmetic import ROUNDINGS, Formula, formula, quotient
from sssjob.accounting.entries import encoded
from sssjob.accounting.facts import RUNS_APART, Lookups
from sssjob.accounting.pricing import Charge, Uncharged, additive, charge
from sssjob.accounting.rates import RateSet
from sssjob.document.element import Property
from sssjob.document.held import seconds
from sssjob.document.model import Delivered, Job
from sssjob.document.outlines import Field, Outline, OutlinedJob, Outlines

__all__ = ["Plans", "PricePlan", "PriceShape", "Priced", "open_numbers", "plan_of"]

#: Names that are looked for by what is no price: of elements of an array, and of a promise; and by which another
#: duration is charged than the job's.
_APART: Final = ("ArrayElement", "Quote", *chain.from_iterable(RUNS_APART.values()))
_MOST_AMOUNT: Final = 10**30        # of an amount that is filled in
_DIGITS: Final = 30                 # before or behind the point of one
_MOST_CHARGE: Final = 10**60        # of a charge
_MOST_SHAPES: Final = 1 << 13       # that are remembered
_MOST_OPEN: Final = 64              # amounts of a shape
#: Numbers that are put in place of amounts, and those that mark where what follows from them is printed.
_OPEN: Final = 700_000_000_000_013
_MARK: Final = 930_000_000_000_000_000_041
_BY_NAME: Final = ("Resource", "Extension")


class Priced(NamedTuple):
    """What a job costs. record: of its Charge, as canonical JSON; unsaid: as of it."""

    amount: Decimal
    currency: str
    record: str
    unsaid: tuple[str, ...] = ()


@dataclass(slots=True)
class PriceShape:
    """What jobs have in common (parts, or the key that is made of them), and what one of them says itself. values: its
    amounts, in the order in which they stand; texts: their digits."""

    parts: list[Any] = field(default_factory=list)
    values: list[int | Fraction] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    key: tuple[Any, ...] = ()


class _Fields(NamedTuple):
    """Where what a price goes by stands in the jobs of an outline. parts: is the same where the properties, their
    attributes and the classes of their values are; amounts, texts: places of these; times: name and place of moments.
    """

    parts: object
    amounts: tuple[int, ...]
    texts: tuple[int, ...]
    times: tuple[tuple[str, int], ...]


class _How(Enum):
    """How a price goes by the properties of a name: by their amounts, which can be filled in, by their texts, by the
    text of the first one, as a moment, or in a way that no plan has."""

    AMOUNT = auto()
    TEXT = auto()
    FIRST = auto()
    MOMENT = auto()
    APART = auto()


#: Of a sum of products of amounts: what it is divided by, and (factor, which product) of each of its terms.
_Sum = tuple[int, tuple[tuple[int, int], ...]]


class PricePlan:
    """What jobs of a shape cost. whole, parts: what the charge, and those of its items that go by amounts, come to;
    pieces: the record of a charge, cut where an amount, the charge, its exact value or that of an item stands; places:
    which of these stands behind each piece but the last; unsaid: as of the charge."""

    __slots__ = ("_form", "_least", "_parts", "_places", "_products", "_rates", "_rounding", "_step", "_whole",
                 "unsaid")

    def __init__(self, rates: RateSet, whole: Formula, parts: Sequence[Formula], pieces: Sequence[str],
                 places: Sequence[int], unsaid: tuple[str, ...]) -> None:
        self.unsaid = unsaid
        which = dict[tuple[int, ...], int]()
        self._rates, self._whole, self._parts = rates, _sum(whole, which), tuple([_sum(part, which) for part in parts])
        self._products = tuple([itemgetter(*product, -1, -1) for product in which])     # of amounts and 1 behind them
        self._form = "%s".join(piece.replace("%", "%%") for piece in pieces)
        self._places = tuple(places)
        self._rounding = ROUNDINGS[rates.rounding]
        self._step = rates.smallest.as_integer_ratio()
        self._least = rates.minimum.as_integer_ratio()

    def _products_of(self, shape: PriceShape) -> list[int | Fraction]:
        """The products that the sums go by, of the amounts of a job."""
        values = [*shape.values, 1]
        return [prod(pick(values)) for pick in self._products]

    def _amount(self, products: Sequence[int | Fraction]) -> tuple[str, int, int] | None:
        """(digits of the charge, over, under: what it is before it is rounded) of a job with these products; None where
        the rates' minimum or the limit of charges decides."""
        over, under = _ratio(self._whole, products)
        least, of_least = self._least
        if over * of_least < least * under or over >= _MOST_CHARGE * under:
            return None
        step, of_step = self._step
        steps = self._rounding(over * of_step, under * step)
        precision = self._rates.precision
        digits = str(steps * step * 10**precision // of_step).zfill(precision + 1)
        return f"{digits[:-precision]}.{digits[-precision:]}" if precision else digits, over, under

    def amount(self, shape: PriceShape) -> Decimal | None:
        """The charge of a job of the shape; None where the rates' minimum or the limit of charges decides."""
        charged = self._amount(self._products_of(shape))
        return None if charged is None else Decimal(charged[0])

    def priced(self, shape: PriceShape) -> Priced | None:
        """The same with its record."""
        products = self._products_of(shape)
        charged = self._amount(products)
        if charged is None:
            return None
        amount, over, under = charged
        texts = [*shape.texts, amount, quotient(over, under),
                 *[quotient(*_ratio(part, products)) for part in self._parts]]
        return Priced(Decimal(amount), self._rates.currency,
                      self._form % tuple([texts[place] for place in self._places]), self.unsaid)


def _sum(formula: Formula, which: dict[tuple[int, ...], int]) -> _Sum:
    """A formula by its products. which: number of each product so far, to which new ones are added."""
    under, products = formula.whole()
    return under, tuple([(factor, which.setdefault(places, len(which))) for factor, places in products])


def _ratio(sum_: _Sum, products: Sequence[int | Fraction]) -> tuple[int, int]:
    """(over, under) of a sum, whole numbers that may have a common divisor."""
    under, terms = sum_
    total: int | Fraction = 0
    for factor, which in terms:
        total += factor * products[which]
    if total.__class__ is int:
        return int(total), under
    over, below = total.as_integer_ratio()
    return over, below * under


class Plans:
    """Prices by one set of rates. running: as ``charge`` has it."""

    def __init__(self, rates: RateSet, *, running: bool = False) -> None:
        self.rates, self._running = rates, running
        self._usable = additive(rates)
        self._without_minimum = rates.model_copy(update={"minimum": Decimal(0)})
        self._lookups = Lookups()
        self._hows = dict.fromkeys(_APART, _How.APART)
        #: None: those jobs are priced one by one.
        self._plans: dict[tuple[Any, ...], PricePlan | Uncharged | None] = {}
        self._once: set[tuple[Any, ...]] = set()        # shapes that one job had
        self._outlines = Outlines()
        self._fields: dict[Outline, _Fields | None] = {}
        self._parts: dict[tuple[Any, ...], object] = {}

    def __len__(self) -> int:
        """How many shapes have a plan."""
        return sum([plan is not None for plan in self._plans.values()])

    def priced(self, job: Job | OutlinedJob) -> Priced | Uncharged:
        """What a job costs that inherits nothing, or why it has no charge."""
        shape = self._shape(job) if self._usable else None
        plan = None if shape is None else self._plans.get(shape.key)
        if shape is not None and plan is not None:
            price = plan if isinstance(plan, Uncharged) else plan.priced(shape)
            if price is not None:
                return price
        whole = job if isinstance(job, Job) else job.job
        return self._unplanned(whole, shape) if plan is None else self._by_itself(whole)

    def amount(self, job: Job) -> tuple[Decimal, tuple[str, ...]] | Uncharged:
        """The amount of the same, and what it leaves out (``Priced.unsaid``)."""
        shape = self._shape(job) if self._usable else None
        plan = None if shape is None else self._plans.get(shape.key)
        if plan is None or shape is None:
            price = self._unplanned(job, shape)
        elif isinstance(plan, Uncharged):
            return plan
        elif (amount := plan.amount(shape)) is not None:
            return amount, plan.unsaid
        else:
            price = self._by_itself(job)
        return price if isinstance(price, Uncharged) else (price.amount, price.unsaid)

    def _unplanned(self, job: Job, shape: PriceShape | None) -> Priced | Uncharged:
        """The price of a job whose shape, if it has one, has no plan so far; the second job of a shape makes it."""
        lookups = self._lookups
        price = self._by_itself(job)
        if shape is not None and self._lookups is lookups and shape.key not in self._plans:
            if shape.key in self._once:
                self._learn(job, shape, price)
            else:
                if len(self._once) >= _MOST_SHAPES:
                    self._once.clear()
                self._once.add(shape.key)
        return price

    def _by_itself(self, job: Job) -> Priced | Uncharged:
        """As the pricing has it; what it goes by is noted."""
        lookups = Lookups()
        price = charge(job, self.rates, running=self._running, lookups=lookups)
        if not self._lookups.cover(lookups):
            self._lookups = self._lookups.joined(lookups)
            self._hows = {name: self._how(name) for name in self._lookups.names} | dict.fromkeys(_APART, _How.APART)
            for of_before in (self._plans, self._once, self._fields, self._parts):      # shapes have more to them
                of_before.clear()
        return price if isinstance(price, Uncharged) else Priced(price.amount, price.currency, encoded(price.record()),
                                                                      price.unsaid)

    def _how(self, name: str) -> _How:
        lookups = self._lookups
        if name in lookups.times:
            return _How.APART if name in lookups.texts else _How.MOMENT
        if name not in lookups.texts:
            return _How.AMOUNT
        return _How.TEXT if name in lookups.all_of else _How.FIRST

    # -- shapes
    def _shape(self, job: Job | OutlinedJob) -> PriceShape | None:
        """The shape of a job; None where it has to be priced by itself."""
        outlined = self._outlines.of(job) if isinstance(job, Job) else job
        if outlined is None:
            return None
        outline, values = outlined.outline, outlined.values
        if outline not in self._fields:
            if len(self._fields) >= _MOST_SHAPES:
                self._fields.clear()
                self._parts.clear()
            self._fields[outline] = self._priced_fields(outline)
        fields = self._fields[outline]
        if fields is None:
            return None
        amounts, digits, times = list[int | Fraction](), list[str](), dict[str, int]()
        for place in fields.amounts:
            value = values[place]
            if value.__class__ is int and 0 <= value < _MOST_AMOUNT:
                amounts.append(value)
                digits.append(str(value))
                continue
            exact = _amount(value)
            if exact is None:
                return None
            amounts.append(exact)
            digits.append(format(value, "f"))
        for tag, place in fields.times:
            value = values[place]
            if value != seconds(value):
                return None
            times[tag] = value
        moment = self._moment(times)
        if moment is None:
            return None
        texts = [str(value) if (value := values[place]).__class__ is Decimal else value for place in fields.texts]
        return PriceShape([], amounts, digits, (moment, fields.parts, *texts))

    def _priced_fields(self, outline: Outline) -> _Fields | None:
        """What of the jobs of an outline a price goes by; None where each has to be priced by itself."""
        delivered = [place for place in range(outline.bare) if outline.fields[place].tag == "Delivered"]
        if len(delivered) != 1 or delivered[0] not in outline.slots:
            return None
        amounts, texts, times, parts = list[int](), list[int](), dict[str, int](), list[Any]()
        first = dict[str, int]()        # what was delivered counts before what stands bare
        for place in (*outline.slots[delivered[0]], *range(outline.bare)):
            first.setdefault(_name(outline.fields[place]), place)
        for place in (*range(outline.bare), None, *outline.slots[delivered[0]]):
            if place is None:
                parts.append(None)      # what was delivered is behind what stands bare
                continue
            kind, tag, attributes, value_class = outline.fields[place]
            if not issubclass(kind, Property):
                if place >= outline.bare or not (place in outline.slots or self._hows.get(tag) is None):
                    return None
                continue
            name = _name(outline.fields[place])
            how = self._hows.get(name)
            if how is None or (how is _How.FIRST and first[name] != place):
                continue
            if how is _How.MOMENT:
                if not issubclass(value_class, int) or tag in times:
                    return None
                times[tag] = place
                continue
            if how is _How.APART or (how is _How.AMOUNT and value_class not in (int, Decimal)):
                return None
            (amounts if how is _How.AMOUNT else texts).append(place)
            parts.append((how, tag, value_class, *attributes.items()))
        if len(amounts) > _MOST_OPEN or not any([outline.fields[place].tag == "Duration" for place in amounts]):
            return None
        return _Fields(self._parts.setdefault(tuple(parts), object()), tuple(amounts), tuple(texts),
                       tuple(times.items()))

    def _moment(self, times: dict[str, int]) -> tuple[int, ...] | None:
        """What of the times of a job decides about its price: which of them are said, and which price list holds. None
        where they contradict each other, one is missing that a price list goes by, or several lists hold."""
        start, end = times.get("StartTime"), times.get("EndTime")
        if len(times) > 2 or (start is not None and end is not None and end < start):
            return None
        if not self.rates.borders:
            return start is not None, end is not None
        place = None if start is None or end is None else self.rates.place_of(start, end)
        return None if place is None else (True, True, place)

    # -- plans
    def _learn(self, job: Job, shape: PriceShape, price: Priced | Uncharged) -> None:
        """Make the plan of a shape. price: of this job, which has it."""
        if len(self._plans) >= _MOST_SHAPES:
            self._plans.clear()
        self._plans[shape.key] = None
        lookups = Lookups()
        opened = self._opened(job)
        example = charge(opened, self._without_minimum, running=self._running, lookups=lookups)
        opened_shape = self._shape(opened)
        if not self._lookups.cover(lookups) or opened_shape is None or opened_shape.key != shape.key:
            return
        if isinstance(example, Uncharged):
            if example == price:
                self._plans[shape.key] = example
            return
        plan = plan_of(example, opened_shape, self.rates)
        if plan is not None and plan.priced(shape) in (price, None):
            self._plans[shape.key] = plan

    def _opened(self, job: Job) -> Job:
        """A job whose amounts are numbers that stand nowhere else."""
        count = open_numbers()

        def opened(item: Any) -> Any:
            """An item of it."""
            if isinstance(item, Delivered):
                return Delivered(map(opened, item.items), dict(item.attributes) or None)
            if not isinstance(item, Property):
                return item
            if self._hows.get(_name(item)) is not _How.AMOUNT:
                return item
            number = next(count)
            return type(item)(item.tag, number if isinstance(item.value, int) else Decimal(number), item.attributes)

        return Job(map(opened, job.items), dict(job.attributes) or None)


def _name(item: Field | Property) -> str:
    """The name that rates know a property by."""
    return item.attributes.get("name", "") if item.tag in _BY_NAME else item.tag


def open_numbers() -> Iterator[int]:
    """Numbers that are put in place of the amounts of a shape, and stand nowhere else."""
    return iter(range(_OPEN, _OPEN + 101 * _MOST_OPEN, 101))


def _amount(value: object) -> int | Fraction | None:
    """A value as an amount that can be filled in; None for any other."""
    if isinstance(value, int):
        return value if 0 <= value < _MOST_AMOUNT and value.__class__ is int else None
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0 or abs(value.adjusted()) > _DIGITS:
        return None
    over, under = value.as_integer_ratio()
    return over if under == 1 else Fraction(over, under)


def plan_of(example: Charge, shape: PriceShape, rates: RateSet) -> PricePlan | None:
    """The plan of a shape by the charge of a job of it whose amounts stand nowhere else; None where it is no sum of
    products."""
    open_numbers = {text: place for place, text in enumerate(shape.texts)}
    try:
        whole = formula(example.arithmetic, open_numbers)
        sums = [formula(item.arithmetic, open_numbers) for item in example.items]
    except ValueError:
        return None
    record, marks, parts = example.record(), dict[str, int](open_numbers), list[Formula]()

    def marked() -> str:
        """The next mark."""
        mark = str(_MARK + 101 * len(marks))
        marks[mark] = len(marks)
        return mark

    record["charge"], record["exact"] = marked(), marked()
    for item, sum_ in zip(record["items"], sums, strict=True):
        if sum_.factors.keys() != {()}:
            item["value"] = marked()
            parts.append(sum_)
    pieces = re.split(f"({'|'.join(marks)})", encoded(record))
    return PricePlan(rates, whole, parts, pieces[::2], [marks[mark] for mark in pieces[1::2]], example.unsaid)
