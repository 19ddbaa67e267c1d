"""Offers, as documents that ``match`` and ``route`` hold requests against: what the formats of machines' answers share.

A JobGroup with a Job for each queue: its nodes with what every one of them has. Where they differ there are Jobs for
the nodes of each kind too, ``batch.2`` and on. Processors are those of all nodes together; Memory and GPUs those of
each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sssjob.document.element import new_property
from sssjob.document.model import Job, JobGroup
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.nodes import UNKNOWN, Limits, Node, Pool, pools

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["offers"]


def offers(nodes: Iterable[Node], queues: Mapping[str, Limits], machine: str | None, site: Site | None, *,
           idle: bool = False) -> JobGroup:
    """The offers of nodes. queues: what is known of their limits; of one that is closed there is no offer. machine: the
    identity of the cluster; idle: only of nodes on which nothing runs."""
    group = JobGroup()
    group.set_as_is("Id", machine or "offers")
    found = [pool for pool in pools(nodes, idle=idle) if queues.get(pool.queue, UNKNOWN).open]
    for pool, name in zip(found, _names([pool.queue for pool in found]), strict=True):
        group.items.append(_offer(pool, name, machine, site, queues.get(pool.queue, UNKNOWN)))
    return group


def _names(queues: list[str]) -> Iterator[str]:
    """A name for each offer, no two the same: that of its queue, from the second on with a number behind it."""
    taken, count = set(queues), Counter[str]()
    for queue in queues:
        name = queue
        if queue in count:
            while (name := f"{queue}.{count[queue] + 1}") in taken:
                count[queue] += 1
            taken.add(name)
        count[queue] += 1
        yield name


def _offer(pool: Pool, name: str, machine: str | None, site: Site | None, limits: Limits) -> Job:
    """One pool as a Job with bare properties. What the profile says of a queue counts before what its manager says."""
    shape, job = pool.shape, Job()
    longest = site.queues[pool.queue].duration if site is not None and pool.queue in site.queues else None
    longest = limits.duration if longest is None else longest
    count = len(pool.names) if limits.nodes is None else min(len(pool.names), limits.nodes)
    values: list[tuple[str, Any, dict[str, str]]] = [
        ("Id", name, {}), *([("Machine", machine, {})] if machine else []), ("Queue", pool.queue, {}),
        ("NodeCount", count, {}), ("Processors", shape.processors * count, {}),
        ("Memory", shape.memory, {"units": "MB", "metric": "PerNode"}),
        *([("Resource", shape.gpus, {"name": "GPU", "metric": "PerNode"})] if shape.gpus else []),
        *([("Feature", ",".join(shape.features), {"aggregation": "List"})] if shape.features else []),
        *([("Duration", longest, {})] if longest is not None else []),
        ("Node", str(Hostlist.of(pool.names)), {"aggregation": "Range"})]
    job.items.extend(new_property(tag, value, attributes) for tag, value, attributes in values)
    return job
