"""What amounts may be, and the one search through the alternatives of an expression for a way that can be met.

``Bounds`` is what conditions leave of one amount. ``Ways`` goes one way after another through Or and preference;
``bounds_of`` keeps for each amount what it may still be, and gives the bounds of the first way on which every amount
has a value. Names and patterns restrict nothing there: an offer may hold several of them. Source: SSS job object
3.1.0, sections 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, Generic, TypeVar

from sssjob.document.element import Property
from sssjob.request.tree import NEGATED, ROWS, AllOf, AnyOf, Node, Not, Predicate, Preferred, factor_of, identity_of

__all__ = ["Bounds", "Exact", "Key", "Spent", "Ways", "amount_of", "bounds_of", "key_of"]

Exact = Fraction | int
#: What makes two amounts the same one: name, then name, type, metric, context and, where it is not known, the unit.
Key = tuple[str | None, ...]
_S = TypeVar("_S")
_AMOUNTS: Final = {name: row for name, row in ROWS.items() if row.type in ("Integer", "Float", "Duration")}
_TRIES: Final = 5_000           # conditions looked at again; an expression that takes more is not judged


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

    def holds(self, value: Exact) -> bool:
        """Whether a value satisfies everything."""
        return value not in self.excluded and not (
            (self.low is not None and (value < self.low or (self.low_open and value == self.low)))
            or (self.high is not None and (value > self.high or (self.high_open and value == self.high))))

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
    """What tells an amount from others: those of one key can be compared."""
    if not p.attributes:
        return p.tag, None, None, None, None, None
    attributes = p.attributes
    unit = attributes.get("units") if factor_of(p) is None else None
    return *identity_of(p), attributes.get("metric"), attributes.get("context"), unit


def amount_of(p: Property) -> Exact | None:
    """The value of a property that is an amount, in bytes where it has a unit of them; None for anything else."""
    value = p.value
    if p.tag not in _AMOUNTS or isinstance(value, (str, bool)):
        return None
    number = value if isinstance(value, int) else Fraction(value)
    factor = factor_of(p)
    return number if factor is None else number * factor


# --- the search ---------------------------------------------------------------------------------------------------

#: Choices that are still to be made: the first of them, and the others.
_Pending = tuple[AnyOf | Preferred, "_Pending"] | None


class Spent(Exception):
    """The search takes too long."""


class Ways(Generic[_S]):
    """A search through the alternatives of an expression. found: what the way that is being taken comes to so far."""

    def __init__(self) -> None:
        self.found: dict[Key, _S] = {}
        self.choosing = False           # whether what is taken is an alternative
        self._trail: list[Callable[[], object]] = []    # how to undo, last first
        self._left: int | None = None   # conditions that may be looked at; None: none was looked at twice yet

    # -- what a search is for
    def limit(self, p: Property, negated: bool) -> bool:
        """Add one condition; False where it contradicts what is there."""
        raise NotImplementedError

    def holds(self) -> bool:
        """Whether what was found so far fits together."""
        return True

    def wish(self, node: Preferred) -> None:
        """Take notice of a wish, which asks for nothing."""

    def ranked(self, node: AnyOf | Preferred) -> Iterable[Node]:
        """The alternatives of a choice, in the order in which they are tried."""
        return node.items

    # -- for those that add conditions
    def put(self, key: Key, value: _S) -> None:
        """Put something into ``found``, so that it can be undone."""
        if key in self.found:
            self.undoing(partial(self.found.__setitem__, key, self.found[key]))
        else:
            self.undoing(partial(self.found.pop, key))
        self.found[key] = value

    def undoing(self, undo: Callable[[], object]) -> None:
        """Remember how something is undone that was just done."""
        self._trail.append(undo)

    # -- the search
    def go(self, nodes: Iterable[Node]) -> bool:
        """Take the first way on which everything holds, and leave what it comes to in ``found``; False: there is none.

        Raises Spent where too many conditions would have to be looked at again.
        """
        tries: list[tuple[Iterator[Node], _Pending, int]] = []     # alternatives that are left at each choice
        met, pending = self._settled(nodes, None)
        while not met or pending is not None:
            if met and pending is not None:
                tries.append((iter(self.ranked(pending[0])), pending[1], len(self._trail)))
            elif self._left is None:
                self._left = _TRIES
            if not tries:
                return False
            others, rest, mark = tries[-1]
            while len(self._trail) > mark:
                self._trail.pop()()
            self.choosing = True
            node = next(others, None)
            if node is None:
                met = False
                tries.pop()
            else:
                met, pending = self._settled((node,), rest)
        return True

    def _settled(self, nodes: Iterable[Node], rest: _Pending) -> tuple[bool, _Pending]:
        """Take all that leaves no choice; whether it holds, and the choices that are left."""
        choices: list[AnyOf | Preferred] = []
        stack = [iter(nodes)]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
            elif isinstance(node, AllOf):
                stack.append(iter(node.items))
            elif isinstance(node, AnyOf) or (isinstance(node, Preferred) and node.required):
                choices.append(node)
            elif isinstance(node, Preferred):
                self.wish(node)
            elif not self._taken(node):
                return False, rest
        for choice in reversed(choices):
            rest = choice, rest
        return self.holds(), rest

    def _taken(self, node: Predicate | Not) -> bool:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Spent
        return self.limit(node.item.property, True) if isinstance(node, Not) else self.limit(node.property, False)


class _Amounts(Ways[Bounds]):
    """The search for bounds alone. fit: whether those that were found fit beside each other. Of names and texts only
    that one cannot be asked for and excluded."""

    def __init__(self, fit: Callable[[dict[Key, Bounds]], bool]) -> None:
        super().__init__()
        self._fit = fit
        self._texts: dict[tuple[Key, str], str] = {}        # what was said of each text: EQ or NE

    def holds(self) -> bool:
        """Whether the bounds on this way fit beside each other."""
        return self._fit(self.found)

    def limit(self, p: Property, negated: bool) -> bool:
        """Narrow the bounds of an amount by one condition; whether something is left of them."""
        op = p.attributes.get("op", "EQ")
        if op not in NEGATED:
            return True
        op = NEGATED[op] if negated else op
        value = amount_of(p)
        if value is None:
            return p.tag in _AMOUNTS or self._text(p, op)
        key = key_of(p)
        old = self.found.get(key) or Bounds(_AMOUNTS[p.tag].type != "Float")
        bounds = old.narrowed(op, value)
        self.put(key, bounds)
        return not bounds.empty

    def _text(self, p: Property, op: str) -> bool:
        """Add a condition on a text; False where it is excluded and asked for."""
        if op not in ("EQ", "NE") or "aggregation" in p.attributes:
            return True
        about = key_of(p), p.text
        if about not in self._texts:
            self._texts[about] = op
            self.undoing(partial(self._texts.pop, about))
        return self._texts[about] == op


def bounds_of(nodes: Iterable[Node], fit: Callable[[dict[Key, Bounds]], bool] = lambda tried_bounds: True
              ) -> dict[Key, Bounds] | None:
    """The bounds of each amount on the first way through the alternatives that can be met; None: there is none.

    fit: whether bounds fit beside each other. Empty for an expression with more alternatives than are looked at.
    """
    search = _Amounts(fit)
    try:
        return search.found if search.go(nodes) else None
    except Spent:
        return {}
