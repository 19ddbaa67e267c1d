"""The nodes of a cluster and what its queues allow, in terms that no resource manager owns: what offers are made of.

Each manager's answers are read in a module of its own (``slurm_nodes``, ``sge_nodes``, ``pbs_nodes`` and others).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = [
    "ANYWHERE", "GPU", "LICENSE", "TEN_YEARS_S", "UNKNOWN", "Counted", "Limits", "Node", "Pool", "Shape", "pools",
    "this_machine", "xml_root",
]

#: How long a job may run where its manager says that there is no limit.
TEN_YEARS_S: Final = 10 * 365 * 86400
#: What is counted beside processors and memory.
GPU: Final = "GPU"
LICENSE: Final = "License"


class Counted(NamedTuple):
    """So many of something. name: GPU or LICENSE; type: of GPU, or the name of the licence, empty where nobody says it.
    """

    name: str
    type: str
    amount: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a queue allows. open: whether it takes and starts jobs; duration: seconds that a job may run; nodes,
    processors: that a job may have; wait: seconds after which a new job is expected to start; node_processors,
    node_memory (MiB): that a job may have of each node; None where that is not known. shared: what the whole cluster
    has for all jobs together; allowed: tag of a property -> the names with which the queue takes jobs, without the
    properties of which it takes any name or nobody knows that."""

    open: bool
    duration: int | None = None
    nodes: int | None = None
    processors: int | None = None
    wait: int | None = None
    node_processors: int | None = None
    node_memory: int | None = None
    shared: tuple[Counted, ...] = ()
    allowed: tuple[tuple[str, tuple[str, ...]], ...] = ()


#: The queue of nodes that are asked for without one, or of which nobody says to which queues they belong.
ANYWHERE: Final = ""
#: Of a queue of which nothing was said.
UNKNOWN: Final = Limits(open=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one node has for the jobs of a queue. memory: MiB, 0 where that is not known; gpus: of all types; features:
    sorted; counted: its GPUs whose types are known, and licences, sorted."""

    processors: int
    memory: int
    gpus: int = 0
    features: tuple[str, ...] = ()
    counted: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node, or several that are alike and have no names. shapes: queue -> what each has for its jobs, without queues
    whose jobs it does not take; busy: whether anything runs on it; name: empty where nobody says it; count: how many
    such nodes there are."""

    name: str
    shapes: Mapping[str, Shape]
    busy: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one queue that all have a shape at least; names: as the manager orders them, without those that have
    none; count: of all of them."""

    queue: str
    shape: Shape
    names: tuple[str, ...]
    count: int


def pools(nodes: Iterable[Node], *, idle: bool = False) -> Iterator[Pool]:
    """The pools of each queue, in the order of the nodes: first all its nodes with what every one of them has, then,
    where they differ, those of each shape. idle: without nodes on which anything runs."""
    queues: dict[str, dict[Shape, list[Node]]] = {}
    whole: dict[str, list[Node]] = {}
    for node in nodes:
        if node.count and not (idle and node.busy):
            for queue, shape in node.shapes.items():
                queues.setdefault(queue, {}).setdefault(shape, []).append(node)
                whole.setdefault(queue, []).append(node)
    for queue, shapes in queues.items():
        if len(shapes) > 1:
            yield _pool(queue, _common(list(shapes)), whole[queue])
        for shape, own in shapes.items():
            yield _pool(queue, shape, own)


def _pool(queue: str, shape: Shape, nodes: list[Node]) -> Pool:
    return Pool(queue, shape, tuple([node.name for node in nodes if node.name]), sum(node.count for node in nodes))


def xml_root(text: str) -> _Element:
    """The root of an answer in XML. Raises ValueError where it is none, or has a DOCTYPE."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, encoding="utf-8")
    try:
        root = etree.fromstring(text.encode("utf-8", "surrogateescape"), parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"it is no XML: {error}") from None
    if "<!DOCTYPE" in text:
        raise ValueError("it has a DOCTYPE")
    return root


def _common(shapes: list[Shape]) -> Shape:
    """What nodes of all shapes have."""
    features = set(shapes[0].features).intersection(*(shape.features for shape in shapes))
    counts = [{each[:2]: each.amount for each in shape.counted} for shape in shapes]
    counted = [Counted(*kind, min(own[kind] for own in counts)) for kind in counts[0]
               if all(kind in own for own in counts)]
    return Shape(min(s.processors for s in shapes), min(s.memory for s in shapes), min(s.gpus for s in shapes),
                 tuple(sorted(features)), tuple(counted))


# This machine as what it offers to jobs that the executor ``local`` starts: it has no queues, and nothing ends a job.
#
# Sources: sched_getaffinity(2), sysconf(3).

def this_machine() -> tuple[list[Node], dict[str, Limits]]:
    """One node with the processors that this process may use and all memory, and that it has no limits."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    shape = Shape(len(os.sched_getaffinity(0)), memory)
    return [Node(socket.gethostname(), {ANYWHERE: shape})], {ANYWHERE: Limits(open=True, duration=TEN_YEARS_S)}
