"""The nodes and partitions of a Slurm cluster, from ``scontrol show nodes --json`` or, up to 22.05, ``sinfo --json``,
and from the text of ``scontrol show node``, ``show partition`` and ``show licenses``.

Sources: the Slurm OpenAPI documents of v0.0.38 to v0.0.42, schema node; scontrol(1); recorded output of 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sssjob.lrm.nodes import GPU, LICENSE, TEN_YEARS_S, Counted, Limits, Node, Shape
from sssjob.lrm.slurm import limit, number

__all__ = ["NODES", "PARTITIONS", "SHARED", "TEST_ONLY", "nodes_of", "nodes_shown", "partitions_shown", "shared_shown",
           "start_shown"]

#: States and flags of a node that takes no job (sinfo(1), NODE STATE CODES), as the text and the JSON answers spell
#: them. One that is powered down takes jobs, which is why it is woken up; one that is POWER_DRAIN is to go first.
_OUT: Final = frozenset({"DOWN", "DRAIN", "DRAINED", "DRAINING", "DYNAMIC_FUTURE", "ERROR", "FAIL", "FAILING", "FUTURE",
                         "INVAL", "INVALID", "INVALID_REG", "MAINT", "MAINTENANCE", "NOT_RESPONDING", "NO_RESPOND",
                         "PERFCTRS", "POWER_DRAIN", "REBOOT_ISSUED", "RESERVED", "UNKNOWN"})
_DIGITS: Final = 15         # of a number that is believed
#: A resource of ``gres``: ``gpu:2``, ``gpu:a100:4(S:0-1)``.
_GPU: Final = re.compile(r"(?:^|,)gpu(?::([^:,()]+))?:(\d{1,6})(?![\d\w])", re.ASCII)
_LICENSE: Final = re.compile(r"^LicenseName=(\S+)\s+Total=(\d{1,9})\s", re.MULTILINE | re.ASCII)
_QUALITY: Final = re.compile(r"^[\w.+-]+$", re.MULTILINE)
#: Where a text says that there is nothing.
_NULL: Final = "(null)"
#: Commands that every release knows, whose text ``nodes_shown`` and ``partitions_shown`` read.
NODES: Final = ("scontrol", "-o", "show", "node")
PARTITIONS: Final = ("scontrol", "-o", "show", "partition")
#: The licences of the cluster, and the names of all qualities of service, a line each; either may be refused.
SHARED: Final = ("sh", "-c", "scontrol -o show licenses; sacctmgr -n -P show qos format=name; exit 0")
#: Before the options and the script of a submission: when it would start. Nothing is submitted.
TEST_ONLY: Final = ("sbatch", "--test-only")
_START: Final = re.compile(r"^sbatch: Job \S+ to start at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) ", re.MULTILINE | re.ASCII)
_RECORD: Final = re.compile(r"^(?=(?:NodeName|PartitionName)=)", re.MULTILINE)
_FIELD: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z_]+)=(\S*)")


def nodes_of(answer: Any) -> list[Node]:
    """The nodes of a JSON answer. Raises ValueError with a sentence where there are none, or one that cannot be
    understood."""
    nodes = answer.get("nodes") if isinstance(answer, dict) else None
    if isinstance(nodes, list):
        return [_node(node, place) for place, node in enumerate(nodes, 1)]
    if isinstance(answer, dict) and "sinfo" in answer:
        raise ValueError("sinfo of 23.02 and later prints no single nodes; `scontrol show nodes --json` does")
    raise ValueError("there is no list of nodes")


def nodes_shown(text: str) -> list[Node]:
    """The nodes of the text answer. Raises ValueError for one that cannot be understood."""
    nodes = [{"name": fields["NodeName"], "partitions": _listed(fields.get("Partitions")),
             "cpus": _whole(fields, "CPUTot"), "alloc_cpus": _whole(fields, "CPUAlloc"),
             "real_memory": _whole(fields, "RealMemory"), "gres": fields.get("Gres", ""),
             "active_features": fields.get("ActiveFeatures", ""),
             "state": _words(fields.get("State", "UNKNOWN"))} for fields in _records(text) if "NodeName" in fields]
    return [_node(node, place) for place, node in enumerate(nodes, 1)]


def partitions_shown(text: str, licenses: tuple[Counted, ...] = (), qualities: tuple[str, ...] = ()
                     ) -> dict[str, Limits]:
    """The partitions of the text answer, by name. licenses, qualities: as of ``shared_shown``. Raises ValueError for a
    limit that cannot be understood."""
    return {fields["PartitionName"]: Limits(
        fields.get("State", "UP") == "UP", _limited(fields, "MaxTime", limit, TEN_YEARS_S),
        _limited(fields, "MaxNodes", int, None), node_processors=_limited(fields, "MaxCPUsPerNode", int, None),
        node_memory=_limited(fields, "MaxMemPerNode", int, None), shared=licenses,
        allowed=tuple(_allowed(fields, qualities)))
        for fields in _records(text) if "PartitionName" in fields}


def _allowed(fields: Mapping[str, str], qualities: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a partition says of accounts and qualities of service (scontrol(1): AllowAccounts, AllowQos, DenyQos)."""
    if accounts := _named(fields, "AllowAccounts"):
        yield "Project", accounts
    denied = _named(fields, "DenyQos")
    if names := _named(fields, "AllowQos") or tuple(name for name in qualities if name not in denied):
        yield "QualityOfService", names


def _named(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The names of a list, none where it says all or nothing."""
    value = fields.get(name, "ALL")
    return () if value in ("ALL", "NONE", "N/A") else tuple(_listed(value))


def shared_shown(text: str) -> tuple[tuple[Counted, ...], tuple[str, ...]]:
    """The licences of the text answer, taken ones too, and the names of qualities of service."""
    return (tuple(Counted(LICENSE, name, int(total)) for name, total in _LICENSE.findall(text)),
            tuple(_QUALITY.findall(text)))


def start_shown(text: str) -> str | None:
    """When a job would start by the answer to ``sbatch --test-only``, on the clock of the host that was asked
    (``2026-11-21T14:19:14``); None where it does not say. Seen in recorded output of 22.05.8."""
    start = _START.search(text)
    return None if start is None else start[1]


def _records(text: str) -> Iterator[dict[str, str]]:
    """The fields of each record; of a name that stands twice the first, for remarks of people come last."""
    for record in _RECORD.split(text):
        if record.strip():
            yield {name: value for name, value in reversed(_FIELD.findall(record))}


def _words(state: str) -> list[str]:
    """``IDLE*+DRAIN``; of the signs behind a state only the star says something that no word says too."""
    words = re.sub(r"[^A-Z_+]", "", state.upper()).split("+")
    return [*words, "NOT_RESPONDING"] if "*" in state else words


def _listed(names: str | None) -> list[str]:
    return [name for name in (names or "").split(",") if name and name != _NULL]


def _whole(fields: Mapping[str, str], name: str) -> int:
    value = fields.get(name, "0")
    if not value.isdecimal() or len(value) > _DIGITS:
        raise ValueError(f"node {fields['NodeName'][:80]}: {name}={value[:40]} is no number")
    return int(value)


def _limited(fields: Mapping[str, str], name: str, read: Callable[[str], int], unlimited: int | None) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    try:
        return unlimited if value in ("UNLIMITED", "INFINITE", "NONE") else read(value)
    except ValueError:
        raise ValueError(f"partition {fields['PartitionName'][:80]}: {name}={value[:40]} is no limit") from None


def _node(node: Any, place: int) -> Node:
    """A node of the JSON answer. place: among the others, from 1. Raises ValueError where it cannot be understood."""
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        raise ValueError(f"node {place} of the list has no name")
    try:
        shape, out = _shape(node), _states(node) & _OUT
        busy = (number(node.get("alloc_cpus")) or 0) > 0
    except (TypeError, ValueError) as error:
        raise ValueError(f"node {node['name'][:80]}: {error}") from None
    usable = not out and shape.processors > 0
    return Node(node["name"], dict.fromkeys(map(str, node.get("partitions") or []), shape) if usable else {}, busy)


def _shape(node: Mapping[str, Any]) -> Shape:
    features = node.get("active_features") or node.get("features") or []
    words = _listed(features) if isinstance(features, str) else filter(None, map(str, features))
    gres = node.get("gres")
    counts: dict[str, int] = {}
    for kind, count in _GPU.findall(gres) if isinstance(gres, str) else ():
        counts[kind] = counts.get(kind, 0) + int(count)
    return Shape(number(node.get("cpus")) or 0, number(node.get("real_memory")) or 0, sum(counts.values()),
                 tuple(sorted(words)), tuple(Counted(GPU, kind, counts[kind]) for kind in sorted(counts) if kind))


def _states(node: Mapping[str, Any]) -> set[str]:
    """The states of a node, which are a word with flags or, from 23.02, one list."""
    state, flags = node.get("state") or [], node.get("state_flags") or []
    return {str(word).upper() for word in [*([state] if isinstance(state, str) else state), *flags]}
