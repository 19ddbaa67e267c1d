"""The nodes of a cluster and what its queues allow, in terms that no resource manager owns: what offers are made of.

Each manager's answers are read in a module of its own (``slurm_nodes``, ``sge_nodes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["TEN_YEARS_S", "UNKNOWN", "Limits", "Node", "Pool", "Shape", "pools"]

#: How long a job may run where its manager says that there is no limit.
TEN_YEARS_S: Final = 10 * 365 * 86400


@dataclass(frozen=True, slots=True)
class Limits:
    """What a queue allows. open: whether it takes and starts jobs; duration: seconds that a job may run; nodes: that a
    job may have; both None where that is not known."""

    open: bool
    duration: int | None = None
    nodes: int | None = None


#: Of a queue of which nothing was said.
UNKNOWN: Final = Limits(open=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one node has for the jobs of a queue. memory: MiB; features: sorted."""

    processors: int
    memory: int
    gpus: int = 0
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node. shapes: queue -> what it has for its jobs, without queues whose jobs it does not take; busy: whether
    anything runs on it."""

    name: str
    shapes: Mapping[str, Shape]
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one queue that all have a shape at least; names: as the manager orders them."""

    queue: str
    shape: Shape
    names: tuple[str, ...]


def pools(nodes: Iterable[Node], *, idle: bool = False) -> Iterator[Pool]:
    """The pools of each queue, in the order of the nodes: first all its nodes with what every one of them has, then,
    where they differ, those of each shape. idle: without nodes on which anything runs."""
    queues: dict[str, dict[Shape, list[str]]] = {}
    whole: dict[str, list[str]] = {}
    for node in nodes:
        if not (idle and node.busy):
            for queue, shape in node.shapes.items():
                queues.setdefault(queue, {}).setdefault(shape, []).append(node.name)
                whole.setdefault(queue, []).append(node.name)
    for queue, shapes in queues.items():
        if len(shapes) > 1:
            yield Pool(queue, _common(list(shapes)), tuple(whole[queue]))
        for shape, own in shapes.items():
            yield Pool(queue, shape, tuple(own))


def _common(shapes: list[Shape]) -> Shape:
    """What nodes of all shapes have."""
    features = set(shapes[0].features).intersection(*(shape.features for shape in shapes))
    return Shape(min(s.processors for s in shapes), min(s.memory for s in shapes), min(s.gpus for s in shapes),
                 tuple(sorted(features)))
