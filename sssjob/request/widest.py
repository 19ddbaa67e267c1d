"""What the widest place of a request needs of one node, held against a node of an offer.

A place is a node of the request, a chunk, or a task with its own processors; none of them is divided between nodes. How
tasks and processors lie on the places is what ``Layout.kinds`` says. What a node of an offer has is what the offer
states PerNode, for processors also by the Extension ``NodeProcessors``. A total does not say how it is shared out among
nodes, and nothing but the whole request is held against it.
Source: SSS job object 3.1.0, sections 3.0, 5.1 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sssjob.document.element import Property
from sssjob.request.layout import Layout
from sssjob.request.levels import Request
from sssjob.request.matching import Explanation
from sssjob.request.offers import NODE_PROCESSORS, Offer
from sssjob.request.totals import COUNTED, Identity, Total, Totals, base_amount, shown
from sssjob.request.tree import identity_of, per_of

__all__ = ["node_counts", "node_held", "on_one_node"]


@dataclass(frozen=True, slots=True)
class _Width:
    """The widest place of one task group. what: node, chunk or task; places: how many there are of them, None for
    tasks; processors, tasks: on the widest one, None where nothing is said."""

    what: str
    places: int | None
    processors: int | None
    tasks: int | None

    def factor(self, p: Property, *, of_task: bool) -> Fraction | None:
        """What an amount is multiplied with to be that of the widest place; None where that is not known, or where its
        own condition speaks of a node or of a chunk. of_task: it is an amount of each task."""
        per = per_of(p.attributes.get("metric"))
        if per == "processors":
            return None if self.processors is None else Fraction(self.processors)
        if per is not None:
            return None
        if of_task:
            return Fraction(self.tasks or 1)
        return Fraction(1, self.places) if self.places else None


def on_one_node(request: Request, totals: Totals) -> tuple[Total, ...]:
    """The greatest amount of each kind that the widest place of any task group needs of one node.

    totals: what the request comes to on one way through its alternatives."""
    exact = not any(p.tag == "NodeCount" and p.op not in (None, "EQ")
                    for level in request.levels for p in level.expression.properties)
    greatest: dict[Identity, Total] = {}
    scopes: Sequence[tuple[Layout, Sequence[Property], Sequence[Sequence[Property]]]] = [
        (part.layout, part.stated, part.tasks) for part in totals.parts] or [(totals.layout, totals.stated, ())]
    for layout, stated, tasks in scopes:
        width = _widest(layout, exact)
        for total in () if width is None else _needs(width, stated, tasks):
            other = greatest.get(total.identity)
            if other is None or (other.units == total.units and other.value < total.value):
                greatest[total.identity] = total
    return tuple(greatest.values())


def _widest(layout: Layout, exact: bool) -> _Width | None:
    """The widest place of a part of a request; None where nothing is said of any. exact: the nodes are just so many."""
    places = layout.chunks or (layout.node_total if exact else None)
    if not places:
        return _Width("task", None, layout.cpus, 1) if layout.cpus and layout.cpus > 1 else None
    kinds = layout.kinds(places)
    return _Width("chunk" if layout.chunks else "node", places,
                  max((kind.processors for kind in kinds if kind.processors is not None), default=None),
                  max((kind.tasks for kind in kinds if kind.tasks is not None), default=None))


def _needs(width: _Width, stated: Sequence[Property], tasks: Sequence[Sequence[Property]]) -> Iterator[Total]:
    """What the widest place needs. stated: properties of the group, and of its job where it is the only one; tasks:
    those of each of its tasks."""
    if width.processors is not None and width.processors > 1:
        yield Total(("Processors", None, None), Fraction(width.processors), None,
                    f"a {width.what} of {width.processors} processors")
    for p, of_task in (*((p, False) for p in stated), *((p, True) for task in tasks for p in task)):
        amount = base_amount(p) if p.tag in COUNTED else None
        factor = None if amount is None else width.factor(p, of_task=of_task)
        if amount is None or factor is None:
            continue
        if of_task and len(tasks) > 1:      # tasks that are listed are not known to share a node
            factor = min(factor, Fraction(1))
        value = amount[0] * factor
        if amount[1] is None:
            value = Fraction(value.__ceil__())
        yield Total(identity_of(p), value, amount[1], f"a {width.what}, by {shown(p)}")


def node_held(total: Total, offer: Offer) -> Explanation | None:
    """What one node needs against what a node of an offer has; None where the offer does not say."""
    tag, name, kind = total.identity
    amounts = [amount for p in offer.all(tag, name, kind) if (amount := _of_node(p, total)) is not None]
    if tag == "Processors" and (stated := offer.total(NODE_PROCESSORS)) is not None:
        amounts = [Fraction(stated)]
    if not amounts:
        return None
    units = f" {total.units}" if total.units else ""
    text = f"{' '.join(filter(None, (tag, name, kind)))} >= {total.shown}{units} on one node"
    offered = max(amounts)
    return Explanation(text, "met" if offered >= total.value else "not",
                       Total(total.identity, offered, total.units).shown, total.origin)


def _of_node(p: Property, total: Total) -> Fraction | None:
    """What a property of an offer says of one of its nodes, in the unit of the total."""
    amount = base_amount(p)
    if amount is None or (amount[1] or "").lower() != (total.units or "").lower():
        return None
    return amount[0] if p.attributes.get("metric") == "PerNode" else None


def node_counts(tag: str) -> set[str]:
    """Which counts of an offer decide on what a node of it has, beside what it states under the name."""
    return {NODE_PROCESSORS} if tag == "Processors" else set()
