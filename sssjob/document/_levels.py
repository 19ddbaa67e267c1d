"""The levels of default inheritance: what stands at each of them, and what of it holds further in (see ``inherit``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from sssjob.document._tied import Unit, bracketed_units, units, without
from sssjob.document.element import Container, Property
from sssjob.document.vocabulary import Element, in_scope

Slot = Literal["bare", "Requested", "Delivered", "Environment"]
#: Name, name and type of a property; of what describes its own level (amounts, results) the level as well.
_Key = tuple[str | None, ...]

_NAMED: Final = frozenset(("Variable", "Resource", "Extension", "ResourceLimit"))
#: The slots that say the same of a job that still waits.
_OTHER: Final[Mapping[Slot, Slot]] = {"bare": "Requested", "Requested": "bare"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was said. path: container names from the job outward, such as ``JobDefaults`` or
    ``TaskGroupDefaults/TaskDefaults``; own: at the level itself or in its sibling defaults; policy: the
    awarenessPolicy that held there (section 13: it goes along with an inherited property)."""

    path: str
    container: Container
    own: bool
    policy: str

    def __str__(self) -> str:
        return self.path


class Resolved(NamedTuple):
    """A property and where it was said."""

    property: Property
    origin: Origin


class _Read(NamedTuple):
    """What is inherited or left together, and its names. rest: what of it is inherited by places that are further in
    (no results of one instance, no amounts); sibling: the same of the Defaults of a level (no results)."""

    unit: Unit
    keys: frozenset[_Key]
    sibling: Unit
    rest: Unit


#: What was read of containers, by identity and slot. The container is kept, so that no other one gets its identity.
Shared = dict[tuple[int, str], tuple[Container, list[_Read]]]


class Level(NamedTuple):
    """One step of the search. amounts: amounts are taken from here; defaults: it is a Defaults element; own: it is the
    element itself or its sibling defaults; policy: the awarenessPolicy around the container; shared: see ``effective``.
    """

    path: str
    container: Container
    amounts: bool
    defaults: bool
    own: bool
    policy: str
    shared: Shared | None = None


def _key(p: Property) -> _Key:
    if p.tag in _NAMED:
        return p.tag, p.attributes.get("name"), p.attributes.get("type")
    return p.tag, None, None


def slot_items(container: Container, slot: Slot) -> Unit:
    """The properties of a container in a slot, each with the element in which it stands."""
    if slot == "bare":
        return [(p, container) for p in container.properties()]
    children = [i for i in container.items if i.tag == slot and isinstance(i, Container)]
    return [(p, child) for child in children for p in child.properties()]


def read_units(level: Level, slot: Slot) -> list[_Read]:
    """The units of a level; read once where that is shared."""
    if level.shared is None:
        return _reading(level.container, slot)
    key = id(level.container), slot
    scope = level.shared.get(key)
    if scope is None:
        scope = level.shared[key] = level.container, _reading(level.container, slot)
    return scope[1]


def _reading(container: Container, slot: Slot) -> list[_Read]:
    items = slot_items(container, slot)
    if not items:
        return []
    elements = in_scope(container.tag if slot == "bare" else slot)
    parts = units(items) if slot == "Requested" else [[i] for i in items]
    return [_part(unit, elements, container.tag.removesuffix("Defaults")) for unit in parts]


def _part(unit: Unit, rows_by_name: Mapping[str, Element], level: str) -> _Read:
    """level: Job, TaskGroup or Task."""
    if len(unit) == 1:
        p = unit[0][0]
        row = rows_by_name.get(p.tag)
        if row is None or not (row.amount or row.instance):
            return _Read(unit, frozenset((_key(p),)), unit, unit)
        return _Read(unit, frozenset(((*_key(p), level),)), [] if row.instance else unit, [])
    rows = [rows_by_name.get(p.tag) for p, _ in unit]
    keys = frozenset([(*_key(p), level) if row is not None and (row.amount or row.instance) else _key(p)
                      for (p, _), row in zip(unit, rows, strict=True)])
    results = {row.name for row in rows if row is not None and row.instance}
    own = results | {row.name for row in rows if row is not None and row.amount}
    sibling = without(unit, lambda p: p.tag in results) if results else unit
    return _Read(unit, keys, sibling, without(unit, lambda p: p.tag in own) if own != results else sibling)


class Seen:
    """Names that are said further in, which override those further out.

    ``waits``: the job still waits, so that bare and Requested say the same of it; then a name of the one overrides
    that of the other, though not beside it on one level.
    """

    def __init__(self, level: Level, slot: Slot, waits: bool) -> None:
        self.slot = slot
        self.other = _OTHER.get(slot) if waits else None
        self.keys: set[_Key] = set()
        self._add(level)

    def add(self, level: Level) -> None:
        """Take the names of a level that is not the nearest."""
        if self.slot != "Delivered" or not level.defaults:
            self._add(level)

    def _add(self, level: Level) -> None:
        self.keys.update(*[read.keys for read in read_units(level, self.slot)])
        if self.other is not None:
            self.keys.update([key for read in read_units(level, self.other) for key in read.keys
                              if key[0] != "Extension"])


def resolve(levels: tuple[Level, ...], slot: Slot, waits: bool) -> list[tuple[Level, Unit]]:
    """What holds, level by level, nearest first."""
    nearest = levels[0], [pair for read in read_units(levels[0], slot) for pair in read.unit]
    if len(levels) == 1:
        return [nearest] if nearest[1] else []
    runs = [nearest, *further(levels[1:], slot, Seen(levels[0], slot, waits))]
    spoken = [run for run in runs if run[1]]
    if slot != "Requested" or len(spoken) < 2:
        return spoken
    return [(level, bracketed_units([run])) for level, run in spoken]


def further(levels: tuple[Level, ...], slot: Slot, seen: Seen,
             shadows: Iterable[Level] = ()) -> list[tuple[Level, Unit]]:
    """The same of levels further out. shadows: levels whose names override those of the JobDefaults, which are the last
    levels (see ``fold``)."""
    runs: list[tuple[Level, Unit]] = []
    inside = True
    for level in levels:
        if inside and level.path.startswith("JobDefaults"):
            inside = False
            for shadow in shadows:
                seen.add(shadow)
        items = read_units(level, slot)
        if items and (slot != "Delivered" or not level.defaults):
            runs.append((level, [pair for read in items if seen.keys.isdisjoint(read.keys)
                                 for pair in (read.sibling if level.amounts else read.rest)]))
        if level is not levels[-1]:
            seen.add(level)
    return runs


def policy_in(child: Container | None, container: Container, outer: str) -> str:
    """The awarenessPolicy inside a container: the nearest that is stated. outer: that around it."""
    policy = child.attributes.get("awarenessPolicy") if child is not None else None
    return policy or container.attributes.get("awarenessPolicy") or outer
