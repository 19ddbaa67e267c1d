"""A request without expressions: one value a property, for targets that hold no more.

Public through ``sssjob.request``. Source: SSS job object 3.1.0, sections 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Final

from sssjob.element import Container, Property, Value
from sssjob.limits import LIMITS, Limits
from sssjob.request.tree import (
    NEGATED,
    ROWS,
    SETS,
    AllOf,
    Expression,
    Node,
    Not,
    Predicate,
    Preferred,
    exact_of,
    identity_of,
    parse,
)
from sssjob.units import UnknownUnit, byte_factor

Exact = Fraction | int
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
    made = _Least(expression)
    if made.take(expression.root):
        return made.result(True)
    made = _Least(expression)
    for p in expression.properties:
        if made.key(p) not in made.found:
            made.limit(p, False)
    return made.result(False)


def _as_they_stand(root: Node) -> list[Single] | None:
    """The values of a request that demands one thing after another, each once and just so, as most do; None where there
    is something to think about."""
    values, seen = [], set()
    for item in root.items if isinstance(root, AllOf) else (root,):
        if not isinstance(item, Predicate):
            return None
        p = item.property
        said = p.attributes
        row = ROWS.get(p.tag)
        key = (p.tag, said.get("name"), said.get("type"))
        kind = None if row is None else _KINDS.get(row.type)
        if key in seen or kind is None or type(p.value) is not kind or said.get("op", "EQ") != "EQ":
            return None
        seen.add(key)
        values.append(Single(_single(p, p.value), True))
    return values


_LeastKey = tuple[str, str | None, str | None, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What is asked of one property so far. first: its first mention, whose unit the answer has."""

    first: Property
    inexact: bool
    low: Exact | None = None
    low_open: bool = False
    high: Exact | None = None
    high_open: bool = False
    excluded: frozenset[Exact] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether only whole numbers can be asked for."""
        row = ROWS.get(self.first.tag)
        return row is not None and row.type != "Float"

    def narrowed(self, op: str, value: Exact, inexact: bool) -> _Bounds:
        """With one more condition."""
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        excluded = self.excluded | {value} if op == "NE" else self.excluded
        if op in ("EQ", "GE", "GT") and (low is None or (value, op == "GT") > (low, low_open)):
            low, low_open = value, op == "GT"
        if op in ("EQ", "LE", "LT") and (high is None or (value, op != "LT") < (high, not high_open)):
            high, high_open = value, op == "LT"
        return _Bounds(self.first, self.inexact or inexact, low, low_open, high, high_open, excluded)

    def holds(self, value: Exact) -> bool:
        """Whether a value satisfies everything."""
        return value not in self.excluded and not (
            (self.low is not None and (value < self.low or (self.low_open and value == self.low)))
            or (self.high is not None and (value > self.high or (self.high_open and value == self.high))))

    def value(self) -> Exact | None:
        """The least value that holds, for Duration the greatest; None where there is none or nothing to ask for."""
        down = self.first.tag == "Duration" and self.high is not None
        start = self.high if down else self.low
        if start is None:
            start = 1 if self.whole else None
        if start is None:
            return None
        if self.holds(start) and (start.denominator == 1 or not self.whole):
            return start
        return next((v for v in self._near(start, -1 if down else 1) if self.holds(v)), None)

    def _near(self, start: Exact, step: int) -> Iterator[Exact]:
        """A bound and what comes next to it: whole numbers (bytes, where units are), or halfway to the other bound."""
        whole = ceil(start) if step > 0 else floor(start)
        yield whole if self.whole else start
        for n in range(len(self.excluded) + 2):
            yield whole + n * step
        other = self.high if step > 0 else self.low
        if not self.whole and other is not None:
            yield Fraction(start + other) / 2


class _Least:
    """Collects the conditions of one way through the alternatives of an expression."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.found: dict[_LeastKey, _Bounds | list[tuple[Property, bool]]] = {}
        self.dropped: list[Property] = []
        self.trail: list[Callable[[], object]] = []     # how to undo, last first
        self.choices = 0                                # alternatives that are open here

    def key(self, p: Property) -> _LeastKey:
        """What belongs together: amounts of one name that can be compared."""
        if not p.attributes:
            return p.tag, None, None, None, None, None
        units = p.get("units")
        known = units is None or _factor(p) is not None
        return (*identity_of(p), p.get("metric"), p.get("context"), None if known else units)

    # -- the tree; its depth is bounded by ``limits.group_depth``
    def take(self, node: Node) -> bool:
        """Add what a node asks for; False where it contradicts what is there."""
        if isinstance(node, Predicate):
            return self.limit(node.property, False)
        if isinstance(node, Not):
            return self.limit(node.item.property, True)
        if isinstance(node, AllOf):
            return all(map(self.take, sorted(node.items, key=_settled)))
        items: Iterable[Node] = node.items
        if isinstance(node, Preferred):
            if not node.required:
                self.dropped += [(i.item if isinstance(i, Not) else i).property for i in node.items]
                return True
            ranked = sorted(zip(node.weights, node.items, strict=True), key=lambda pair: -pair[0])
            items = [item for _, item in ranked]
        self.choices += 1
        taken = any(map(self._tried, items))
        self.choices -= 1
        return taken

    def _tried(self, node: Node) -> bool:
        mark, dropped = len(self.trail), len(self.dropped)
        if self.take(node):
            return True
        while len(self.trail) > mark:
            self.trail.pop()()
        del self.dropped[dropped:]
        return False

    # -- one condition
    def limit(self, p: Property, negated: bool) -> bool:
        """Add one condition; False where it contradicts what is there."""
        op = p.op or "EQ"
        if op not in NEGATED or (p.tag in SETS and (negated or op != "EQ")):
            self.dropped.append(p)
            return True
        op = NEGATED[op] if negated else op
        number = None if p.tag in SETS or _textual(p) else exact_of(p.value)
        return self.text(p, op) if number is None else self.number(p, op, number)

    def number(self, p: Property, op: str, number: Exact) -> bool:
        """Add a condition on an amount; False where none satisfies all of them."""
        key = self.key(p)
        old = self.found.get(key)
        bounds = old if isinstance(old, _Bounds) else _Bounds(p, False)
        if op == "NE" and len(bounds.excluded) >= _EXCLUDED:
            self.dropped.append(p)
            return True
        exact = op == "EQ" or (op == "LE" and p.tag == "Duration")
        made = bounds.narrowed(op, number * (_factor(p) or 1), not exact or self.choices > 0)
        self._put(key, made)
        return made.low is None or made.value() is not None

    def text(self, p: Property, op: str) -> bool:
        """Add a condition on a text or name; False where another text was asked for."""
        if op != "EQ":
            self.dropped.append(p)
            return True
        key = self.key(p)
        there = self.found.get(key)
        if not isinstance(there, list):
            self._put(key, [(p, self.choices > 0)])
            return True
        if p.tag not in SETS:
            return there[0][0].text == p.text
        there.append((p, self.choices > 0))
        self.trail.append(there.pop)
        return True

    def _put(self, key: _LeastKey, value: _Bounds | list[tuple[Property, bool]]) -> None:
        if key in self.found:
            self.trail.append(partial(self.found.__setitem__, key, self.found[key]))
        else:
            self.trail.append(partial(self.found.pop, key))
        self.found[key] = value

    # -- the answer
    def result(self, possible: bool) -> LeastRequest:
        """The values in document order."""
        order: dict[_LeastKey, None] = {}
        for p in self.expression.properties:
            order.setdefault(self.key(p))
        for key in self.found:
            order.setdefault(key)
        values = [v for key in order if key in self.found for v in self._values(self.found[key])]
        return LeastRequest(tuple(values), tuple(self.dropped), possible)

    def _values(self, found: _Bounds | list[tuple[Property, bool]]) -> Iterator[Single]:
        if isinstance(found, list):
            yield from [Single(_single(p, p.value), not chosen) for p, chosen in found]
            return
        value = found.value()
        if value is None:
            self.dropped.append(found.first)
            return
        factor = _factor(found.first) or 1
        amount = value if factor == 1 else Fraction(value) / factor
        whole = found.whole and amount.denominator == 1
        plain = int(amount) if whole else Decimal(amount.numerator) / Decimal(amount.denominator)
        yield Single(_single(found.first, plain), not found.inexact)


def _single(p: Property, value: Value) -> Property:
    """A property with that value and without what ties it to others; the same one where it is so already."""
    attributes = p.attributes
    if value.__class__ is p.value.__class__ and value == p.value and (not attributes or _PLAIN.isdisjoint(attributes)):
        return p
    return p.replace(value, **dict.fromkeys(_PLAIN))


def _settled(node: Node) -> int:
    """What leaves no choice comes first, so that choices are made in its knowledge."""
    return 0 if isinstance(node, Predicate | Not) else 1 if isinstance(node, AllOf) else 2


def _textual(p: Property) -> bool:
    row = ROWS.get(p.tag)
    return row is not None and row.type == "String"


def _factor(p: Property) -> int | None:
    """Bytes of the unit of an amount, or None where it has none or an unknown one."""
    row = ROWS.get(p.tag)
    units = p.get("units") or (row.unit if row is not None else None)
    try:
        return None if units is None else byte_factor(units)
    except UnknownUnit:
        return None
