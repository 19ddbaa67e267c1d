"""Shares and execution environments of a site that publishes GLUE 2.0 in XML, as an ARC computing element does.

Sources: GFD-R-P.147 (GLUE 2.0), GFD.209 (its XML rendering). No recorded answer was at hand. Elements are looked for by
their local names, at any depth: releases nest them differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sssjob.lrm.nodes import Limits, Node, Shape, xml_root

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["nodes_and_shares"]

#: States of a share that takes and starts jobs (ServingState_t); draining and closed take none, queueing starts none.
_OPEN: Final = frozenset({"production", "open"})
_DIGITS: Final = 12         # of a number that is believed
#: What stands for a number that nobody knows.
_UNKNOWN: Final = frozenset({"999999999", "9999999999"})


def nodes_and_shares(text: str) -> tuple[list[Node], dict[str, Limits]]:
    """The nodes of the environments, in each share that they belong to, and the limits of shares. A share that names no
    environment has all of them. Raises ValueError where it cannot be understood."""
    root = xml_root(text)
    environments = {_value(element, "ID"): element for element in _all(root, "ExecutionEnvironment")
                    if _value(element, "ID")}
    if not environments:
        raise ValueError("it names no ExecutionEnvironment")
    shares = [(_value(element, "MappingQueue") or _value(element, "Name") or _value(element, "ID"), element)
              for element in _all(root, "ComputingShare")]
    members: dict[str, list[str]] = {name: [] for name in environments}
    for queue, share in shares:
        own = [identity for identity in _values(share, "ExecutionEnvironmentID") if identity in members]
        for identity in own or members:
            if queue and queue not in members[identity]:
                members[identity].append(queue)
    nodes = [node for name, element in environments.items() for node in _nodes(element, members[name])]
    return nodes, {queue: _limits(share) for queue, share in shares if queue}


def _nodes(environment: _Element, queues: list[str]) -> Iterator[Node]:
    """The instances of an environment, those in use apart from the others."""
    features = sorted({name for name in (_value(element, "AppName")
                                         for element in _all(environment, "ApplicationEnvironment"))
                       if name})
    shape = Shape(_number(environment, "LogicalCPUs") or _number(environment, "PhysicalCPUs") or 1,
                  _number(environment, "MainMemorySize") or 0, 0, tuple(features))
    total = _number(environment, "TotalInstances")
    available = max((1 if total is None else total) - (_number(environment, "UnavailableInstances") or 0), 0)
    used = min(_number(environment, "UsedInstances") or 0, available)
    shapes = dict.fromkeys(queues, shape)
    yield Node("", shapes, count=available - used)
    yield Node("", shapes, busy=True, count=used)


def _limits(share: _Element) -> Limits:
    state = (_value(share, "ServingState") or "production").lower()
    return Limits(state in _OPEN, _number(share, "MaxWallTime"), None, _number(share, "MaxSlotsPerJob"),
                  _number(share, "EstimatedAverageWaitingTime"))


def _all(scope: _Element, name: str) -> Iterator[_Element]:
    return (element for element in scope.iter(f"{{*}}{name}"))


def _values(scope: _Element, name: str) -> list[str]:
    return [(element.text or "").strip() for element in _all(scope, name)]


def _value(scope: _Element, name: str) -> str:
    """The text of a child of its own; empty where there is none."""
    child = scope.find(f"{{*}}{name}")
    return "" if child is None else (child.text or "").strip()


def _number(scope: _Element, name: str) -> int | None:
    value = _value(scope, name)
    if not value or value in _UNKNOWN:
        return None
    if not (value.isdecimal() and value.isascii() and len(value) <= _DIGITS):
        raise ValueError(f"{name} {value[:40]!r} is no number")
    return int(value)
