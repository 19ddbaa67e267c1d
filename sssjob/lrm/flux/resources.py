"""R, the set of resources that a job was given, version 1: what is in it, and what is wrong with it.

    >>> found = read_resources({"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}],
    ...                                                     "nodelist": ["n[1-2]"]}})
    >>> found.hosts, found.children(1)["core"].count
    ({0: 'n1', 1: 'n2'}, 4)

``problems`` names everything that RFC 20 forbids; ``read_resources`` raises for the first. What a service needs to run
a job is less, and is read by ``jobspec.read_r``. Source: Flux RFC 20.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from sssjob.errors import LexicalError
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, JobspecError
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.idset import Idset

__all__ = ["ResourceSet", "problems", "read_resources"]

_TOP: Final = frozenset(("version", "execution", "scheduling", "attributes"))
_EXECUTION: Final = frozenset(("R_lite", "nodelist", "starttime", "expiration", "nslots", "properties"))
_CHARACTERS: Final = frozenset("!#$%&'\"()*+,./:;<=>?@[\\]^`{|}~ ")        # not in the name of a property


@dataclass(frozen=True, slots=True)
class ResourceSet:
    """lite: (ranks, ids by kind of child: core, gpu ...) ascending. starttime, expiration: seconds since the epoch, 0
    when not stated. hosts: the names of ranks, empty when not stated. properties: ranks by name."""

    lite: tuple[tuple[Idset, Mapping[str, Idset]], ...]
    starttime: float = 0.0
    expiration: float = 0.0
    hosts: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    properties: Mapping[str, Idset] = field(default_factory=lambda: MappingProxyType({}))
    nslots: int | None = None

    @property
    def ranks(self) -> Idset:
        """All ranks."""
        return Idset(tuple(sorted(span for ranks, _ in self.lite for span in ranks.spans)))

    def children(self, rank: int) -> Mapping[str, Idset]:
        """What is given of a rank; nothing for one that is not in it."""
        return next((children for ranks, children in self.lite if rank in ranks), MappingProxyType({}))

    def count(self, kind: str = "core") -> int:
        """How many children of a kind there are in all."""
        return sum(ranks.count * children[kind].count for ranks, children in self.lite if kind in children)


def read_resources(value: object, limits: ExecLimits = EXEC_LIMITS) -> ResourceSet:
    """R, version 1. Raises JobspecError with the first problem, ExecLimitError (ranks)."""
    for problem in problems(value, limits):
        raise JobspecError(f"R: {problem}")
    assert isinstance(value, dict)
    execution = value["execution"]
    lite = sorted(((Idset.parse(entry["rank"]), _sets(entry["children"])) for entry in execution["R_lite"]),
                  key=lambda entry: entry[0].spans)
    ranks = sorted(rank for entry, _ in lite for rank in entry)
    names = Hostlist.parse(",".join(execution.get("nodelist") or ()))
    return ResourceSet(
        tuple(lite), float(execution.get("starttime") or 0), float(execution.get("expiration") or 0),
        MappingProxyType(dict(zip(ranks, names, strict=False))),
        _sets(execution.get("properties") or {}), execution.get("nslots"))


def _sets(texts: Mapping[str, str]) -> Mapping[str, Idset]:
    return MappingProxyType({name: Idset.parse(text) for name, text in texts.items()})


def problems(value: object, limits: ExecLimits = EXEC_LIMITS) -> Iterator[str]:
    """Everything that is wrong with an R, one sentence each. Raises ExecLimitError (ranks)."""
    if not isinstance(value, dict):
        yield "it is no object"
        return
    yield from (f"unknown key {key!a:.60}" for key in value if key not in _TOP)
    if value.get("version") != 1 or isinstance(value.get("version"), bool):
        yield "version is not 1"
    for key in ("scheduling", "attributes"):
        if key in value and not isinstance(value[key], dict):
            yield f"{key} is no object"
    execution = value.get("execution")
    if not isinstance(execution, dict):
        yield "execution is missing or no object"
        return
    yield from (f"unknown key execution.{key!a:.60}" for key in execution if key not in _EXECUTION)
    ranks = Idset()
    for problem in _lite(execution.get("R_lite"), limits):
        if isinstance(problem, Idset):
            ranks = problem
        else:
            yield problem
    yield from _nodelist(execution.get("nodelist"), ranks)
    yield from _times(execution)
    yield from _properties(execution.get("properties"), ranks)


def _lite(value: object, limits: ExecLimits) -> Iterator[str | Idset]:
    """Problems of R_lite, and last all ranks."""
    if not isinstance(value, list) or not value:
        yield "R_lite is missing or empty"
        return
    seen: list[tuple[int, int]] = []
    for number, entry in enumerate(value):
        name = f"R_lite[{number}]"
        if not isinstance(entry, dict):
            yield f"{name} is no object"
            continue
        children = entry.get("children")
        yield from (f"unknown key {name}.{key!a:.60}" for key in entry if key not in ("rank", "children"))
        if not isinstance(children, dict) or "core" not in children:
            yield f"{name}.children is no object with core"
            children = {}
        for kind, text in children.items():
            if _ids(text) is None:
                yield f"{name}.children.{kind!a:.60}: {text!a:.60} is no idset with ids in it"
        ranks = _ids(entry.get("rank"))
        if ranks is None:
            yield f"{name}.rank: {entry.get('rank')!a:.60} is no idset with ids in it"
            continue
        seen += ranks.spans
    seen.sort()
    for earlier, other in pairwise(seen):
        if other[0] <= earlier[1]:
            yield f"rank {other[0]} stands twice in R_lite"
            break
    listed = Idset(tuple(seen))
    if listed.count > limits.ranks:
        raise ExecLimitError(f"R has {listed.count} ranks", "ranks")
    yield listed


def _ids(value: object) -> Idset | None:
    """The ids in a text, None when there are none."""
    if not isinstance(value, str):
        return None
    try:
        return Idset.parse(value) or None
    except LexicalError:
        return None


def _nodelist(value: object, ranks: Idset) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        yield "nodelist is no list of host lists"
        return
    try:
        count = sum(Hostlist.parse(text).count for text in value)
    except LexicalError as error:
        yield f"nodelist: {error}"
        return
    if ranks and count != ranks.count:
        yield f"nodelist has {count} hosts for {ranks.count} ranks"


def _times(execution: dict[str, Any]) -> Iterator[str]:
    for key in ("starttime", "expiration"):
        number = execution.get(key)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)
                                  or not 0 <= number < math.inf):
            yield f"{key} is no time"
    nslots = execution.get("nslots")
    if nslots is not None and (isinstance(nslots, bool) or not isinstance(nslots, int) or nslots < 1):
        yield "nslots is no whole number from 1"
    start, end = execution.get("starttime"), execution.get("expiration")
    if isinstance(start, int | float) and isinstance(end, int | float) and 0 < end < start:
        yield "expiration is before starttime"


def _properties(value: object, ranks: Idset) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield "properties is no object"
        return
    for name, text in value.items():
        holders = _ids(text)
        if not name or _CHARACTERS.intersection(name):
            yield f"property {name!a:.60} is no name"
        if holders is None:
            yield f"property {name!a:.60}: {text!a:.60} is no idset with ids in it"
        elif ranks and holders - ranks:
            yield f"property {name!a:.60} is on ranks {holders - ranks}, which are not in R_lite"
