"""Whether amounts can meet what is asked of them: a search through the alternatives of an expression.

``bounds_of`` goes one way after another through Or and preference, keeps for each amount what it may still be, and
gives the bounds of the first way on which every amount has a value. Names and patterns restrict nothing here: an offer
may hold several of them. Source: SSS job object 3.1.0, sections 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sssjob.element import Property
from sssjob.request.tree import AllOf, AnyOf, Node, Not, Predicate, Preferred
from sssjob.units import UnknownUnit, byte_factor
from sssjob.vocabulary import ELEMENTS, Element

__all__ = ["Bounds", "Key", "amount_of", "bounds_of", "key_of"]

#: What makes two amounts the same one: name, then name, type, metric, context and, where it is not known, the unit.
Key = tuple[str | None, ...]
Exact = Fraction | int
_ROWS: Final[dict[str, Element]] = {
    e.name: e for e in ELEMENTS if "R" in e.categories and e.type in ("Integer", "Float", "Duration")}
_TRIES: Final = 5_000           # conditions looked at; an expression that takes more is not judged
_DEPTH: Final = 50              # choices inside one another
_NEGATED: Final = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an amount may be: from low to high, in bytes where it has a unit of them. whole: only whole numbers."""

    whole: bool
    low: Exact | None = None
    low_open: bool = False
    high: Exact | None = None
    high_open: bool = False
    excluded: frozenset[Exact] = frozenset()

    def narrowed(self, op: str, value: Exact) -> Bounds:
        """With one more condition."""
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        excluded = self.excluded | {value} if op == "NE" else self.excluded
        if op in ("EQ", "GE", "GT") and (low is None or (value, op == "GT") > (low, low_open)):
            low, low_open = value, op == "GT"
        if op in ("EQ", "LE", "LT") and (high is None or (value, op != "LT") < (high, not high_open)):
            high, high_open = value, op == "LT"
        return Bounds(self.whole, low, low_open, high, high_open, excluded)

    @property
    def least(self) -> Exact | None:
        """The least value, for whole numbers the one that is taken; None: there is no lower bound."""
        if self.low is None or not self.whole:
            return self.low
        return self.low.__floor__() + 1 if self.low_open else self.low.__ceil__()

    @property
    def most(self) -> Exact | None:
        """The greatest value, likewise."""
        if self.high is None or not self.whole:
            return self.high
        return self.high.__ceil__() - 1 if self.high_open else self.high.__floor__()

    @property
    def empty(self) -> bool:
        """Whether no value is left."""
        low, high = self.least, self.most
        if high is not None and high < 0:
            return True
        if low is None or high is None:
            return False
        if low > high or (low == high and not self.whole and (self.low_open or self.high_open)):
            return True
        if self.whole and high - low < len(self.excluded):
            return all(low + n in self.excluded for n in range(int(high - low) + 1))
        return low == high and low in self.excluded


def key_of(p: Property) -> Key:
    """What tells an amount from others."""
    if not p.attributes:
        return p.tag, None, None, None, None, None
    factor = _factor(p)
    return (p.tag, p.get("name"), p.get("type"), p.get("metric"), p.get("context"),
            p.get("units") if factor is None else None)


def amount_of(p: Property) -> Exact | None:
    """The value of a property that is an amount, in bytes where it has a unit of them; None for anything else."""
    if p.tag not in _ROWS or isinstance(p.value, (str, bool)):
        return None
    number = p.value if isinstance(p.value, int) else Fraction(p.value)
    return number * (_factor(p) or 1)


def _factor(p: Property) -> int | None:
    row = _ROWS.get(p.tag)
    units = p.get("units") or (row.unit if row is not None else None)
    try:
        return None if units is None else byte_factor(units)
    except UnknownUnit:
        return None


class _Spent(Exception):
    """The search takes too long."""


def bounds_of(nodes: Iterable[Node], holds: Callable[[dict[Key, Bounds]], bool] = lambda found: True
              ) -> dict[Key, Bounds] | None:
    """The bounds of each amount on the first way through the alternatives that can be met; None: there is none.

    holds: whether bounds fit beside each other. Empty for an expression with more alternatives than are looked at.
    """
    try:
        return _Search(holds).go(list(nodes), {}, 0)
    except _Spent:
        return {}


class _Search:
    def __init__(self, holds: Callable[[dict[Key, Bounds]], bool]) -> None:
        self.holds, self.left = holds, _TRIES

    def go(self, nodes: list[Node], found: dict[Key, Bounds], depth: int) -> dict[Key, Bounds] | None:
        """Take all that leaves no choice, then one alternative after another."""
        choices: list[AnyOf | Preferred] = []
        stack = list(reversed(nodes))
        found = dict(found)
        while stack:
            node = stack.pop()
            if isinstance(node, AllOf):
                stack.extend(node.items)
            elif isinstance(node, AnyOf):
                choices.append(node)
            elif isinstance(node, Preferred):
                choices += [node] if node.required else []
            elif not self._narrow(found, node):
                return None
        if not choices:
            return found if self.holds(found) else None
        if depth > _DEPTH:
            raise _Spent
        if not self.holds(found):
            return None
        first, *rest = choices
        for item in first.items:
            met = self.go([item, *rest], found, depth + 1)
            if met is not None:
                return met
        return None

    def _narrow(self, found: dict[Key, Bounds], node: Predicate | Not) -> bool:
        self.left -= 1
        if self.left < 0:
            raise _Spent
        p = node.item.property if isinstance(node, Not) else node.property
        op = p.op or "EQ"
        value = amount_of(p)
        if value is None or op not in _NEGATED:
            return True
        key = key_of(p)
        old = found.get(key) or Bounds(_ROWS[p.tag].type == "Integer")
        made = found[key] = old.narrowed(_NEGATED[op] if isinstance(node, Not) else op, value)
        return not made.empty
