"""What the widest places of a request need of one node, and how many of them have room on the nodes of an offer.

A place is a node of the request, a chunk, or a task (where there are processors alone, one of them); none of them is
divided between nodes. How tasks and processors lie on the places is what ``Layout.kinds`` says. What a node of an offer
has is what the offer states PerNode, for processors also by the Extension ``NodeProcessors``. A total does not say how
it is shared out among nodes, and nothing but the whole request is held against it.
Source: SSS job object 3.1.0, sections 3.0, 5.1 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sssjob.document.element import Property
from sssjob.document.held import per_of
from sssjob.request.layout import Layout
from sssjob.request.levels import Request
from sssjob.request.matching import Explanation
from sssjob.request.offers import NODE_PROCESSORS, Offer
from sssjob.request.totals import COUNTED, Identity, Totals, amount_shown, base_amount, shown
from sssjob.request.tree import identity_of

__all__ = ["Need", "node_counts", "node_held", "on_nodes"]


@dataclass(frozen=True, slots=True)
class Need:
    """An amount that each of some places needs. what: node, chunk or task; places: how many that do not share a node
    unless both fit; value: bytes where units is ``B``; origin: how it comes about; stated: a condition of its own says
    that one fits."""

    identity: Identity
    value: Fraction
    units: str | None
    what: str
    places: int
    origin: str
    stated: bool = False


@dataclass(frozen=True, slots=True)
class _Width:
    """The widest places of one task group. what: node, chunk or task; widest: how many are as wide; places: how many
    there are in all, over which a total is shared out, None for tasks; processors, tasks: on each of the widest, None
    where nothing is said."""

    what: str
    widest: int
    places: int | None
    processors: int | None
    tasks: int | None

    def factor(self, p: Property, *, of_task: bool) -> Fraction | None:
        """What an amount is multiplied with to be that of a widest place; None where that is not known, or where its
        own condition speaks of a node. of_task: it is an amount of each task."""
        per = per_of(p.attributes.get("metric"))
        if per == "processors":
            return None if self.processors is None else Fraction(self.processors)
        if per is not None:
            return Fraction(1) if per == "chunks" and self.what == "chunk" else None
        if of_task:
            return Fraction(self.tasks or 1)
        return Fraction(1, self.places) if self.places else None


def on_nodes(request: Request, totals: Totals) -> tuple[Need, ...]:
    """What the widest places of each task group need. totals: what the request comes to on one way through its
    alternatives."""
    exact = not any(p.tag == "NodeCount" and p.op not in (None, "EQ")
                    for level in request.levels for p in level.expression.properties)
    scopes: Sequence[tuple[Layout, Sequence[Property], Sequence[Sequence[Property]]]] = [
        (part.layout, part.stated, part.tasks) for part in totals.parts] or [(totals.layout, totals.stated, ())]
    needs: dict[tuple[Identity, int, str], Need] = {}
    for layout, stated, tasks in scopes:
        for need in _needs(_widest(layout, exact), stated, tasks):
            other = needs.setdefault((need.identity, need.places, need.what), need)
            if other.units == need.units and other.value < need.value:
                needs[need.identity, need.places, need.what] = need
    return tuple(needs.values())


def _widest(layout: Layout, exact: bool) -> _Width:
    """The widest places of a part of a request. exact: the nodes are just so many."""
    places = layout.chunks or (layout.node_total if exact else None)
    if not places:
        return _Width("task", (layout.task_total if layout.cpus else layout.slots) or 1, None, layout.cpus or 1, 1)
    kinds = layout.kinds(places)
    processors = max((kind.processors for kind in kinds if kind.processors is not None), default=None)
    if not layout.chunks:
        tasks = max((kind.tasks for kind in kinds if kind.tasks is not None), default=None)
        return _Width("node", 1, places, processors, tasks)
    widest = [kind for kind in kinds if kind.processors == processors]
    return _Width("chunk", sum(kind.count for kind in widest), places, processors, max(
        (kind.tasks for kind in widest if kind.tasks is not None), default=None))


def _needs(width: _Width, stated: Sequence[Property], tasks: Sequence[Sequence[Property]]) -> Iterator[Need]:
    """What a widest place needs. stated: properties of the group, and of its job where it is the only one; tasks: those
    of each of its tasks."""
    if width.processors is not None and width.processors > 1:
        yield Need(("Processors", None, None), Fraction(width.processors), None, width.what, width.widest,
                   f"a {width.what} of {width.processors} processors")
    for p, of_task in (*((p, False) for p in stated), *((p, True) for task in tasks for p in task)):
        amount = base_amount(p) if p.tag in COUNTED else None
        factor = None if amount is None else width.factor(p, of_task=of_task)
        if amount is None or factor is None or amount[0] <= 0:
            continue
        alike = not (of_task and len(tasks) > 1)    # tasks that are listed are not known to share a node
        value = amount[0] * (factor if alike else min(factor, Fraction(1)))
        yield Need(identity_of(p), Fraction(value.__ceil__()) if amount[1] is None else value, amount[1], width.what,
                   width.widest if alike else 1, f"a {width.what}, by {shown(p)}",
                   per_of(p.attributes.get("metric")) == "chunks")


def node_held(need: Need, offer: Offer) -> Explanation | None:
    """What places need against what the nodes of an offer have; None where the offer does not say."""
    tag, name, kind = need.identity
    amounts = [amount for p in offer.all(tag, name, kind) if (amount := _of_node(p, need)) is not None]
    if tag == "Processors" and (stated := offer.total(NODE_PROCESSORS)) is not None:
        amounts = [Fraction(stated)]
    if not amounts:
        return None
    amount, nodes = max(amounts), offer.total("nodes")
    title = " ".join(filter(None, (tag, name, kind)))
    fitting = int(amount / need.value)
    if need.places == 1 or not fitting or nodes is None:
        text = f"{title} >= {amount_shown(need.value, need.units)} on one node"
        return None if need.stated else Explanation(text, "met" if fitting else "not",
                                                    amount_shown(amount, need.units), need.origin)
    room = fitting * int(nodes)
    each = f"{title} {amount_shown(need.value, need.units)}"
    there = f"{amount_shown(amount, need.units)} on each of {nodes} nodes"
    return Explanation(f"room for {need.places} {need.what}s, each with {each}",
                       "met" if room >= need.places else "not", there, f"{room} have room")


def _of_node(p: Property, need: Need) -> Fraction | None:
    """What a property of an offer says of one of its nodes, in the unit of the need."""
    amount = base_amount(p)
    if amount is None or (amount[1] or "").lower() != (need.units or "").lower():
        return None
    return amount[0] if p.attributes.get("metric") == "PerNode" else None


def node_counts(tag: str) -> set[str]:
    """Which counts of an offer decide on what a node of it has, beside what it states under the name."""
    return {"nodes", NODE_PROCESSORS} if tag == "Processors" else {"nodes"}
