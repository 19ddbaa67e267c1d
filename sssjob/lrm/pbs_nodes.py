"""The nodes and queues of OpenPBS, PBS Pro and Torque, from ``pbsnodes`` and ``qstat -Q -f``, as JSON or text.

Sources: pbsnodes(8B), pbs_node_attributes(7B), pbs_queue_attributes(7B) of OpenPBS; pbsnodes(8) of Torque; recorded
output of OpenPBS 23.06.06 and of slurm-wlm-torque 22.05.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from sssjob.lrm.nodes import ANYWHERE, TEN_YEARS_S, Limits, Node, Shape
from sssjob.lrm.pbs import seconds
from sssjob.lrm.sizes import in_bytes

__all__ = ["NODES", "QUEUES", "in_queues", "nodes_shown", "queues_shown"]

NODES: Final = ("pbsnodes", "-a")
QUEUES: Final = ("qstat", "-Q", "-f")
#: States of a node that takes no job. One that is busy or taken by a job takes the next one, and one that sleeps is
#: woken up.
_OUT: Final = frozenset({"down", "offline", "state-unknown", "unknown", "stale", "unresolvable", "maintenance",
                         "provisioning", "wait-provisioning", "initializing", "resv-exclusive", "reserve"})
_MIB: Final = 1 << 20
_DIGITS: Final = 9          # of a number that is believed
_FIELDS_OF_TORQUE: Final = 4
_GROUPS: Final = ("resources_available", "resources_max", "resources_assigned")
_QUEUE: Final = re.compile(r"^Queue:\s*(\S+)", re.MULTILINE)
_FIELD: Final = re.compile(r"^\s+([\w.-]+) = (.*)$")


def nodes_shown(text: str) -> list[Node]:
    """The nodes of an answer, each with what it has for any job, or in the one queue that it is bound to.

    Raises ValueError where it cannot be understood."""
    return [_node(name, fields) for name, fields in _records(text, "nodes")]


def _records(text: str, member: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and fields; a resource is a field ``resources_available.ncpus``."""
    if text.lstrip().startswith("{"):
        answer = json.loads(text)
        member_value = answer.get(member) if isinstance(answer, dict) else None
        if not isinstance(member_value, dict):
            raise ValueError(f"there is no object {member}")
        for name, fields in member_value.items():
            if not isinstance(fields, dict):
                raise ValueError(f"{name[:80]} is no object")
            resources = {group: fields.get(group) or {} for group in _GROUPS}
            if wrong := [group for group, of_group in resources.items() if not isinstance(of_group, dict)]:
                raise ValueError(f"{name[:80]}: {wrong[0]} is no object")
            yield name, {**fields, **{f"{group}.{key}": value for group, of_group in resources.items()
                                      for key, value in of_group.items()}}
    else:
        yield from _blocks(_QUEUE.sub(r"\1", text) if member == "Queue" else text)


def _blocks(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Blocks of text: a name at the beginning of a line, its fields behind white space. What comes before the first
    block and between them, such as the message of the day, has no fields and is left out."""
    name, fields = "", dict[str, Any]()
    for line in text.splitlines():
        field = _FIELD.match(line)
        if field is not None:
            fields[field[1]] = field[2].strip()
        elif line.strip() and not line[0].isspace():
            if name and fields:
                yield name, fields
            name, fields = line.strip(), {}
    if name and fields:
        yield name, fields


def _node(name: str, fields: Mapping[str, Any]) -> Node:
    states = {word.strip() for word in str(fields.get("state", "")).split(",")}
    try:
        shape = Shape(_count(fields, "resources_available.ncpus", "np", "pcpus"), _memory(fields),
                      _count(fields, "resources_available.ngpus", "gpus"),
                      tuple(sorted(filter(None, str(fields.get("properties", "")).split(",")))))
    except ValueError as error:
        raise ValueError(f"node {name[:80]}: {error}") from None
    busy = bool(fields.get("jobs")) or not states.isdisjoint({"job-exclusive", "job-busy", "job-sharing"})
    usable = states.isdisjoint(_OUT) and shape.processors > 0
    return Node(name, {str(fields.get("queue") or ANYWHERE): shape} if usable else {}, busy)


def _count(fields: Mapping[str, Any], *names: str) -> int:
    """The first of these numbers that is stated, else 0."""
    value = str(next((fields[name] for name in names if name in fields), 0))
    if not (value.isdecimal() and value.isascii() and len(value) <= _DIGITS):
        raise ValueError(f"{names[0]} {value[:40]!r} is no number")
    return int(value)


def _memory(fields: Mapping[str, Any]) -> int:
    """MiB of the node; Torque has it among others in its status (``physmem``), the commands that Slurm brings as
    ``availmem``. 0 where it is not stated."""
    status = dict(part.partition("=")[::2] for part in str(fields.get("status", "")).split(","))
    text = fields.get("resources_available.mem") or status.get("physmem") or status.get("availmem")
    size = 0 if text is None else in_bytes(str(text))
    if size is None:
        raise ValueError(f"memory {str(text)[:40]!r} is no size")
    return size // _MIB


def queues_shown(text: str) -> dict[str, Limits]:
    """What the queues of an answer allow. Raises ValueError for a limit that cannot be understood."""
    return {name: _limits(name, fields) for name, fields in _records(text, "Queue")}


def _limits(name: str, fields: Mapping[str, Any]) -> Limits:
    takes = all(str(fields.get(key, "True")).lower() in ("true", "yes") for key in ("enabled", "started"))
    walltime = fields.get("resources_max.walltime")
    try:
        duration = TEN_YEARS_S if walltime is None else seconds(str(walltime), _FIELDS_OF_TORQUE)
        nodes, processors = (_count(fields, key) or None for key in ("resources_max.nodect", "resources_max.ncpus"))
    except ValueError as error:
        raise ValueError(f"queue {name[:80]}: {error}") from None
    return Limits(takes and str(fields.get("queue_type", "Execution")).lower() == "execution", duration, nodes,
                  processors)


def in_queues(nodes: Iterable[Node], queues: Iterable[str]) -> list[Node]:
    """Nodes with what they have in each of the queues, but for those that are bound to one."""
    names = list(queues)
    return [replace(node, shapes=dict.fromkeys(names, node.shapes[ANYWHERE])) if ANYWHERE in node.shapes else node
            for node in nodes]
