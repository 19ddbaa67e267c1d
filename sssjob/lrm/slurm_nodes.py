"""The nodes of a Slurm cluster, from ``scontrol show nodes --json`` or, up to 22.05, ``sinfo --json``.

Sources: the Slurm OpenAPI documents of v0.0.38 to v0.0.42, schema node; recorded output of 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sssjob.lrm.slurm import number

__all__ = ["Pool", "Shape", "nodes_of", "pools"]

#: States and flags of a node that takes no job (sinfo(1), NODE STATE CODES), as the text and the JSON answers spell
#: them. One that is powered down takes jobs, which is why it is woken up; one that is POWER_DRAIN is to go first.
_OUT: Final = frozenset({"DOWN", "DRAIN", "DRAINED", "DRAINING", "DYNAMIC_FUTURE", "ERROR", "FAIL", "FAILING", "FUTURE",
                         "INVAL", "INVALID", "INVALID_REG", "MAINT", "MAINTENANCE", "NOT_RESPONDING", "NO_RESPOND",
                         "PERFCTRS", "POWER_DRAIN", "REBOOT_ISSUED", "RESERVED", "UNKNOWN"})
#: A resource of ``gres``: ``gpu:2``, ``gpu:a100:4(S:0-1)``.
_GPU: Final = re.compile(r"(?:^|,)gpu(?::[^:,()]+)?:(\d{1,6})(?![\d\w])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one node has. memory: MiB; features: sorted."""

    processors: int
    memory: int
    gpus: int
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one partition that all have a shape at least; names: as Slurm orders them."""

    partition: str
    shape: Shape
    names: tuple[str, ...]


def nodes_of(answer: Any) -> list[Any]:
    """The nodes of an answer. Raises ValueError with a sentence where there are none to be found."""
    nodes = answer.get("nodes") if isinstance(answer, dict) else None
    if isinstance(nodes, list):
        return nodes
    if isinstance(answer, dict) and "sinfo" in answer:
        raise ValueError("sinfo of 23.02 and later prints no single nodes; `scontrol show nodes --json` does")
    raise ValueError("there is no list of nodes")


def pools(nodes: list[Any], *, idle: bool = False) -> Iterator[Pool]:
    """The pools of each partition, in the order of the answer: first all its nodes with what every one of them has,
    then, where they differ, those of each shape. Nodes that take no job are left out; idle: so are nodes on which
    anything is allocated. Raises ValueError for a node that cannot be understood.
    """
    partitions: dict[str, dict[Shape, list[str]]] = {}
    whole: dict[str, list[str]] = {}
    for place, node in enumerate(nodes, 1):
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise ValueError(f"node {place} of the list has no name")
        queues = node.get("partitions") or []
        try:
            shape, out = _shape(node), _states(node) & _OUT
            busy = idle and (number(node.get("alloc_cpus")) or 0) > 0
        except (TypeError, ValueError) as error:
            raise ValueError(f"node {node['name'][:80]}: {error}") from None
        if not out and not busy:
            for queue in queues:
                partitions.setdefault(str(queue), {}).setdefault(shape, []).append(node["name"])
                whole.setdefault(str(queue), []).append(node["name"])
    for queue, shapes in partitions.items():
        if len(shapes) > 1:
            yield Pool(queue, _common(list(shapes)), tuple(whole[queue]))
        for shape, own in shapes.items():
            yield Pool(queue, shape, tuple(own))


def _shape(node: Mapping[str, Any]) -> Shape:
    features = node.get("active_features") or node.get("features") or []
    words = features.split(",") if isinstance(features, str) else map(str, features)
    gres = node.get("gres")
    gpus = sum(int(count) for count in _GPU.findall(gres)) if isinstance(gres, str) else 0
    return Shape(number(node.get("cpus")) or 0, number(node.get("real_memory")) or 0, gpus,
                 tuple(sorted(filter(None, words))))


def _states(node: Mapping[str, Any]) -> set[str]:
    """The states of a node, which are a word with flags or, from 23.02, one list."""
    state, flags = node.get("state") or [], node.get("state_flags") or []
    return {str(word).upper() for word in [*([state] if isinstance(state, str) else state), *flags]}


def _common(shapes: list[Shape]) -> Shape:
    """What nodes of all shapes have."""
    features = set(shapes[0].features).intersection(*(shape.features for shape in shapes))
    return Shape(min(s.processors for s in shapes), min(s.memory for s in shapes), min(s.gpus for s in shapes),
                 tuple(sorted(features)))
