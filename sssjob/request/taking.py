"""What requests that are to run side by side take of what is offered: an offer is capacity, and what one of them takes
is not free for the next one.

Source: SSS job object 3.1.0, sections 3.0 and 8.1; that jobs which wait for others take nothing beside these, and in
how many turns an offer has room, is the choice of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from math import ceil

from sssjob.document.nodeset import NodeSet
from sssjob.request.levels import Request
from sssjob.request.offers import Offer
from sssjob.request.totals import Identity, Total
from sssjob.request.verdict import offered_in_all

__all__ = ["Taken", "share_nodes"]

_MOST_NODES = 50_000        # of an offer, that are looked at
_PROCESSORS: Identity = ("Processors", None, None)


@dataclass(slots=True)
class Taken:
    """What requests come to together. amounts: by what they are, and their units; seconds: the longest Duration of one,
    0 where none states one."""

    amounts: dict[tuple[Identity, str | None], Total] = field(default_factory=dict)
    seconds: int = 0

    @classmethod
    def of(cls, requests: Iterable[tuple[Request, int]]) -> Taken:
        """Of requests, each of so many jobs. One that says nothing of processors and nodes takes one processor; nodes
        count where no processors are said, for others may have the rest of a node."""
        taken = cls()
        for request, count in requests:
            totals = request.totals
            whole = totals.processors or totals.nodes or Total(_PROCESSORS, Fraction(1))
            for total in (whole, *totals.amounts.values()):
                taken._add(replace(total, value=total.value * count))
            taken.seconds = max(taken.seconds, totals.seconds or 0)
        return taken

    def add(self, other: Taken) -> None:
        """Take as much more."""
        for total in other.amounts.values():
            self._add(total)
        self.seconds = max(self.seconds, other.seconds)

    def _add(self, total: Total) -> None:
        key = total.identity, total.units
        before = self.amounts.get(key)
        self.amounts[key] = total if before is None else replace(total, value=before.value + total.value)

    def turn(self, offer: Offer, other: Taken) -> int:
        """In which turn, counted from 0, an offer has room for more when this much is taken: 0 beside it, 1 when those
        before have ended. What the offer does not say is no reason to wait."""
        turns = [0]
        for key, total in other.amounts.items():
            before = self.amounts.get(key)
            offered = None if before is None else offered_in_all(total, offer)
            if before is not None and offered:
                turns.append(ceil((before.value + total.value) / offered) - 1)
        return max(turns)


def share_nodes(offer: Offer, other: Offer) -> bool:
    """Whether two offers of a site name a node that is the same."""
    nodes, others = sorted(([name for name, _ in each.names("Node")] for each in (offer, other)), key=_count)
    return any(name == named if isinstance(named, str) else name in named
               for name in islice(_each(nodes), _MOST_NODES) for named in others)


def _count(nodes: Iterable[str | NodeSet]) -> int:
    return sum(1 if isinstance(node, str) else node.count for node in nodes)


def _each(nodes: Iterable[str | NodeSet]) -> Iterator[str]:
    for node in nodes:
        yield from (node,) if isinstance(node, str) else node
