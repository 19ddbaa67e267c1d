"""The smallest change of a request with which an offer meets it: what to ask for instead, proved by asking again.

Each condition that fails is given the amount or name that is offered, or is left out where nothing else would do; of
alternatives the one with the fewest changes. Where only what all of it comes to is too much, one count is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.inherit import distinct, effective
from sssjob.document.model import Job, JobDefaults
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.request.geometry import distribution_of
from sssjob.request.levels import request_of
from sssjob.request.matching import Matcher, is_capacity
from sssjob.request.offers import Offer
from sssjob.request.tree import SETS, AllOf, Node, Not, Predicate, condition_text, number_of
from sssjob.request.verdict import counts_of, match

__all__ = ["Change", "smallest_change"]

#: Counts that are lowered where what all of it comes to is too much, in the order in which they are tried.
_LOWERED: Final = ("TaskCount", "TaskDistribution", "Processors", "NodeCount", "Memory", "Resource")
#: Attributes of a condition that say nothing of what is offered in its place.
_CHOICE: Final = ("op", "aggregation", "delimiter")


@dataclass(frozen=True, slots=True)
class Change:
    """One property, and what is to be asked for in its place; None: it is left out."""

    property: Property
    instead: Property | None

    def __str__(self) -> str:
        if self.instead is None:
            return f"without {condition_text(self.property)}"
        attributes = self.instead.attributes
        words = (self.instead.tag, attributes.get("name"), attributes.get("type"), self.instead.text,
                 attributes.get("units"))
        return f"{' '.join(filter(None, words))} instead of {self.property.text}"


def smallest_change(job: Job, defaults: JobDefaults | None, offer: Offer) -> tuple[Change, ...] | None:
    """The changes with which an offer meets a job; none where it does already, None where no such change is known."""
    folded = distinct(effective(job, defaults).fold())
    request = request_of(folded)
    changes: list[Change] = []
    for level in request.levels:
        counts = {} if request.simple else counts_of(request, level)
        matcher = Matcher(offer, level.group is not None, strict=False, limits=LIMITS, findings=Findings(),
                          literal=False, counts=counts)
        changes += _needed(level.expression.root, matcher)
    changed = _with(folded, changes)
    if match(changed, offer).met:
        return tuple(changes)
    for lowered in _lowered(changed, offer):
        return _joined(changes, lowered)
    return None


def _joined(changes: list[Change], last: Change) -> tuple[Change, ...]:
    """Changes with one more, of what stands there after them: one change of each property."""
    for place, change in enumerate(changes):
        if change.instead is last.property:
            return (*changes[:place], Change(change.property, last.instead), *changes[place + 1:])
    return (*changes, last)


def _needed(node: Node, matcher: Matcher) -> list[Change]:
    """The changes that a part of the tree needs; its depth is bounded by ``limits.group_depth``."""
    if matcher.explain(node).met:
        return []
    if isinstance(node, Predicate):
        return [Change(node.property, _offered(node.property, matcher))]
    if isinstance(node, Not):
        return [Change(node.item.property, None)]
    ways = [_needed(item, matcher) for item in node.items]
    return [change for way in ways for change in way] if isinstance(node, AllOf) else min(ways, key=len)


def _offered(p: Property, matcher: Matcher) -> Property | None:
    """What is offered in place of a property: the greatest whole amount that meets, or the first name."""
    if is_capacity(p):
        return _highest(p, lambda instead: matcher.condition(Predicate(instead)).met)
    if p.tag in SETS:
        return None
    offered = next(iter(matcher.offer.properties.get(p.tag, ())), None)
    instead = None if offered is None else p.replace(offered.value, **dict.fromkeys(_CHOICE))
    return instead if instead is not None and matcher.condition(Predicate(instead)).met else None


def _highest(p: Property, meets: Callable[[Property], bool]) -> Property | None:
    """A property with the greatest whole number from 1 up to its own that meets, where all smaller ones do too."""
    low, high = 1, int(number_of(p.value) or 0)
    if high < low or not meets(p.replace(low)):     # mostly so: nothing of it helps
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if meets(p.replace(middle)) else (low, middle - 1)
    return p.replace(low)


def _with(scope: Container, changes: Iterable[Change]) -> Container:
    """A copy of a scope with changes."""
    instead = {id(change.property): change.instead for change in changes}
    changed = copy(scope)
    changed.items = []
    for item in scope.items:
        if isinstance(item, Container):
            changed.items.append(_with(item, changes))
        elif (new := instead.get(id(item), item)) is not None:
            changed.items.append(new)
    return changed


def _lowered(job: Container, offer: Offer) -> Iterator[Change]:
    """The changes of one count alone with which an offer meets."""
    counts = [item for item in job.leaves() if item.tag in _LOWERED and (
        type(item.value) in (int, Decimal) or (
            item.tag == "TaskDistribution" and distribution_of(item)[1].isdecimal()))]
    for p in sorted(counts, key=lambda item: _LOWERED.index(item.tag)):
        lowered = _highest(p, partial(_meets_with, job, offer, p))
        if lowered is not None:
            yield Change(p, lowered)


def _meets_with(job: Container, offer: Offer, p: Property, instead: Property) -> bool:
    return match(_with(job, [Change(p, instead)]), offer).met
