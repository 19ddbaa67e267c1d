"""A request without expressions: one value a property, for targets that hold no more.

Public through ``sssjob.request``. Source: SSS job object 3.1.0, sections 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Final

from sssjob.document.element import Container, Property, Value
from sssjob.limits import LIMITS, Limits
from sssjob.request.bounds import Bounds, Exact, Key, Spent, Ways, key_of
from sssjob.request.tree import (
    NEGATED,
    ROWS,
    SETS,
    AllOf,
    AnyOf,
    Expression,
    Node,
    Predicate,
    Preferred,
    exact_of,
    factor_of,
    parse,
    properties_of,
)

_PLAIN: Final = frozenset(("op", "conj", "group", "preference"))
#: Type of an element -> that of its values, where they are what it says.
_KINDS: Final[dict[str, type]] = {"Integer": int, "Duration": int, "DateTime": int, "Float": Decimal, "String": str}
_EXCLUDED: Final = 1_000        # values of one property that NE may exclude; more are dropped


@dataclass(frozen=True, slots=True)
class Single:
    """One value for one property, free of op, conj, group and preference. exact: it was asked for just so."""

    property: Property
    exact: bool


@dataclass(frozen=True, slots=True)
class LeastRequest:
    """A request without expressions. dropped: conditions that no single value can say; possible: False where the
    conditions contradict each other, and then each value is the first one stated."""

    values: tuple[Single, ...]
    dropped: tuple[Property, ...] = ()
    possible: bool = True

    def first(self, tag: str, **attributes: str) -> Single | None:
        """The first value of a name with these attributes, or None."""
        return next((v for v in self.values if v.property.tag == tag and attributes.items()
                     <= v.property.attributes.items()), None)


def least_request(requested: Container | Iterable[Property] | Expression, *, limits: Limits = LIMITS) -> LeastRequest:
    """What to ask for where a target holds one value a property and no expression.

    Of alternatives (Or, preference) the one of highest positive weight, then the first that the rest allows; then the
    least amount that satisfies what is left, for Duration the greatest. Wishes (negative preferences), patterns and
    what is only excluded are dropped. A name that has several values (Node, Feature) keeps them all.
    """
    expression = requested if isinstance(requested, Expression) else parse(requested, limits=limits)
    values = _as_they_stand(expression.root)
    if values is not None:
        return LeastRequest(tuple(values))
    least = _Least(expression)
    if least.take():
        return least.result(True)
    least = _Least(expression)
    for p in expression.properties:
        if key_of(p) not in least.found:
            least.limit(p, False)
    return least.result(False)


def _as_they_stand(root: Node) -> list[Single] | None:
    """The values of a request that demands one thing after another, each once and just so, as most do; None where there
    is something to think about."""
    values, seen = [], set()
    for item in root.items if isinstance(root, AllOf) else (root,):
        if not isinstance(item, Predicate):
            return None
        p = item.property
        attributes = p.attributes
        row = ROWS.get(p.tag)
        key = (p.tag, attributes.get("name"), attributes.get("type"))
        kind = None if row is None else _KINDS.get(row.type)
        if key in seen or kind is None or type(p.value) is not kind or attributes.get("op", "EQ") != "EQ":
            return None
        seen.add(key)
        values.append(Single(_single(p, p.value), True))
    return values


#: Amounts in a unit of bytes are whole numbers by powers of two: all of their digits are there.
_LONG: Final = Context(prec=4 * LIMITS.digits)


@dataclass(frozen=True, slots=True)
class _Mentions:
    """What is asked of one amount so far. first: its first mention, whose unit the answer has."""

    first: Property
    inexact: bool
    bounds: Bounds

    def value(self) -> Exact | None:
        """The least value that holds, for Duration the greatest; None where there is none or nothing to ask for."""
        bounds = self.bounds
        down = self.first.tag == "Duration" and bounds.high is not None
        start = bounds.high if down else bounds.low
        if start is None:
            start = 1 if bounds.whole else None
        if start is None:
            return None
        if bounds.holds(start) and (start.denominator == 1 or not bounds.whole):
            return start
        return next((v for v in self._near(start, -1 if down else 1) if bounds.holds(v)), None)

    def _near(self, start: Exact, step: int) -> Iterator[Exact]:
        """A bound and what comes next to it: whole numbers (bytes, where units are), or halfway to the other bound."""
        bounds = self.bounds
        whole = ceil(start) if step > 0 else floor(start)
        yield whole if bounds.whole else start
        for n in range(len(bounds.excluded) + 2):
            yield whole + n * step
        other = bounds.high if step > 0 else bounds.low
        if not bounds.whole and other is not None:
            yield Fraction(start + other) / 2


#: Properties that are texts, each with whether it is no alternative's.
_Texts = list[tuple[Property, bool]]


class _Least(Ways["_Mentions | _Texts"]):
    """Collects the conditions of one way through the alternatives of an expression."""

    def __init__(self, expression: Expression) -> None:
        super().__init__()
        self.expression = expression
        self.dropped: list[Property] = []

    def take(self) -> bool:
        """Add what the expression asks for; False where nothing can meet it, or too many ways would have to be tried.
        """
        try:
            return self.go((self.expression.root,))
        except Spent:
            return False

    def wish(self, node: Preferred) -> None:
        """Leave preferences out: nothing has to meet them."""
        for p in properties_of(node):
            self._drop(p)

    def ranked(self, node: AnyOf | Preferred) -> Iterable[Node]:
        """Alternatives in the order in which they are tried: those of the largest weight first."""
        if isinstance(node, AnyOf):
            return node.items
        pairs = sorted(zip(node.weights, node.items, strict=True), key=lambda pair: -pair[0])
        return [item for _, item in pairs]

    def _drop(self, p: Property) -> bool:
        """Leave a condition out, which no value says; nothing contradicts it."""
        self.dropped.append(p)
        self.undoing(self.dropped.pop)
        return True

    # -- one condition
    def limit(self, p: Property, negated: bool) -> bool:
        """Add one condition; False where nothing satisfies all of them."""
        op = p.op or "EQ"
        if op not in NEGATED or (p.tag in SETS and (negated or op != "EQ")):
            return self._drop(p)
        op = NEGATED[op] if negated else op
        number = None if p.tag in SETS or _textual(p) else exact_of(p.value)
        return self.text(p, op) if number is None else self.number(p, op, number)

    def number(self, p: Property, op: str, number: Exact) -> bool:
        """Add a condition on an amount; False where none satisfies all of them."""
        key = key_of(p)
        old = self.found.get(key)
        asked = old if isinstance(old, _Mentions) else _Mentions(p, False, Bounds(_whole(p)))
        if op == "NE" and len(asked.bounds.excluded) >= _EXCLUDED:
            return self._drop(p)
        exact = op == "EQ" or (op == "LE" and p.tag == "Duration")
        bounds = asked.bounds.narrowed(op, number * (factor_of(p) or 1))
        asked = _Mentions(asked.first, asked.inexact or not exact or self.choosing, bounds)
        self.put(key, asked)
        return bounds.low is None or asked.value() is not None

    def text(self, p: Property, op: str) -> bool:
        """Add a condition on a text or name; False where another text was asked for."""
        if op != "EQ":
            return self._drop(p)
        key = key_of(p)
        conditions = self.found.get(key)
        if not isinstance(conditions, list):
            self.put(key, [(p, self.choosing)])
            return True
        if p.tag not in SETS:
            return conditions[0][0].text == p.text
        conditions.append((p, self.choosing))
        self.undoing(conditions.pop)
        return True

    # -- the answer
    def result(self, possible: bool) -> LeastRequest:
        """The values in document order."""
        order: dict[Key, None] = {}
        for p in self.expression.properties:
            order.setdefault(key_of(p))
        for key in self.found:
            order.setdefault(key)
        values = [v for key in order if key in self.found for v in self._values(self.found[key])]
        return LeastRequest(tuple(values), tuple(self.dropped), possible)

    def _values(self, asked_values: _Mentions | _Texts) -> Iterator[Single]:
        if isinstance(asked_values, list):
            yield from [Single(_single(p, p.value), not chosen) for p, chosen in asked_values]
            return
        value = asked_values.value()
        if value is None:
            self.dropped.append(asked_values.first)
            return
        factor = factor_of(asked_values.first) or 1
        amount = value if factor == 1 else Fraction(value) / factor
        whole = asked_values.bounds.whole and amount.denominator == 1
        plain = int(amount) if whole else _LONG.divide(Decimal(amount.numerator), Decimal(amount.denominator))
        yield Single(_single(asked_values.first, plain), not asked_values.inexact)


def _single(p: Property, value: Value) -> Property:
    """A property with that value and without what ties it to others; the same one where it is so already."""
    attributes = p.attributes
    if value.__class__ is p.value.__class__ and value == p.value and (not attributes or _PLAIN.isdisjoint(attributes)):
        return p
    return p.replace(value, **dict.fromkeys(_PLAIN))


def _whole(p: Property) -> bool:
    """Whether only whole numbers can be asked for."""
    row = ROWS.get(p.tag)
    return row is not None and row.type != "Float"


def _textual(p: Property) -> bool:
    row = ROWS.get(p.tag)
    return row is not None and row.type == "String"
