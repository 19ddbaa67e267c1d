"""Objects joined: a query of several kinds of objects selects the combinations of them that its conditions hold of.

A condition with ``subject`` compares a property of one object with a property of another. Where all conditions are
joined by And, those of one object choose among its objects first, and equalities look the other object up, so that
not every combination is tried. Source: SSSRMAP message format 3.0.4, Object and Where, as Gold 2.2 answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sssjob.findings import escape
from sssjob.sssrmap.model import MessageError, Object, Where
from sssjob.sssrmap.properties import Property, Typed, close_to
from sssjob.sssrmap.things import Kind, Source, Thing

__all__ = ["Table", "comparable", "joined", "tables"]

_MOST: Final = 8        # objects of one query


@dataclass(frozen=True, slots=True)
class Table:
    """One Object of a request. label: what Get and Where call it; place: among the objects of the request."""

    label: str
    kind: Kind
    place: int


def tables(objects: Sequence[Object], source: Source) -> tuple[Table, ...]:
    """The objects of a request. Raises MessageError: 740 for kinds that are not there, 313 for kinds of joins, 318 for
    two of the same name."""
    if len(objects) > _MOST:
        raise MessageError("313", f"more than {_MOST} objects are not joined")
    described = []
    for place, asked in enumerate(objects):
        if asked.name not in source.kinds():
            raise MessageError("740", f"{escape(asked.name, 60)} is not a valid object "
                                      f"(known: {', '.join(source.kinds())})"
                                      f"{close_to(asked.name, source.kinds())}")
        if asked.join is not None:
            raise MessageError("313", f"join {escape(asked.join, 40)!r} is not supported: objects are joined by Where")
        described.append(Table(asked.alias or asked.name, source.kind(asked.name), place))
    labels = [table.label for table in described]
    if len(set(labels)) < len(labels):
        raise MessageError("318", "two objects have the same name; alias tells them apart")
    return tuple(described)


def comparable(mine: Property, theirs: Property) -> tuple[Callable[[object], Typed], Callable[[object], Typed]]:
    """How values of two properties become comparable: as what they are if they are of one type, else as texts."""
    if mine.type == theirs.type:
        return mine.typed, theirs.typed
    return lambda value: mine.text(value).strip(), lambda value: theirs.text(value).strip()


def joined(described: Sequence[Table], source: Source, wheres: Sequence[Where],
           property_of: Callable[[str, str | None], Property],
           chooses: Callable[[Sequence[Where]], Callable[[Thing], bool]], check: Callable[[], None]) -> Iterator[Thing]:
    """The combinations of objects among which those are that the conditions select, in the order of the objects.

    property_of: a property by its name and the label of its object; chooses: the test that some conditions are, of
    combinations; check: is called for each combination, and raises MessageError when the time is over.
    """
    ties: list[list[tuple[Property, Property]]] = [[] for _ in described]
    chosen: list[list[Thing]] = []
    is_plain = all(where.conj in (None, "And") and not where.group for where in wheres)
    places = {id(where): property_of(where.name, where.object).place for where in wheres}
    for table in described:
        test = chooses([where for where in wheres if is_plain and where.subject is None
                        and places[id(where)] == table.place])
        alone: list[Thing | None] = [None] * len(described)
        objects = []
        for object_ in source.things(table.kind):
            check()
            alone[table.place] = object_
            if test(Thing("", parts=tuple(alone))):
                objects.append(object_)
        chosen.append(objects)
    for where in wheres if is_plain else ():
        if where.subject is not None and where.op in (None, "EQ"):
            sides = property_of(where.name, where.object), property_of(where.value, where.subject)
            earlier, later = sorted(sides, key=lambda side: side.place or 0)
            if earlier.place != later.place:
                ties[later.place or 0].append((later, earlier))
    lookups = [_Lookup(objects, tied[0] if tied else None) for objects, tied in zip(chosen, ties, strict=True)]
    name = "_".join(table.kind.name for table in described)
    for parts in _combined(lookups, (), check):
        yield Thing(name, parts=parts)


class _Lookup:
    """The objects of one kind, by the values of the property that ties them to an earlier one, if one does."""

    def __init__(self, objects: list[Thing], tie: tuple[Property, Property] | None) -> None:
        self.objects, self._tie = objects, tie
        self._places: dict[Typed, list[int]] = {}
        if tie is not None:
            mine, theirs = tie
            value_of, self._value_of_other = comparable(mine, theirs)
            for place, object_ in enumerate(objects):
                for value in dict.fromkeys(map(value_of, mine.of_part(object_))):
                    self._places.setdefault(value, []).append(place)

    def beside(self, parts: tuple[Thing, ...]) -> Iterator[Thing]:
        """Those that may stand beside earlier objects."""
        if self._tie is None:
            yield from self.objects
            return
        theirs = self._tie[1]
        values = map(self._value_of_other, theirs.of_part(parts[theirs.place or 0]))
        places = {place for value in values for place in self._places.get(value, ())}
        for place in sorted(places):
            yield self.objects[place]


def _combined(lookups: Sequence[_Lookup], parts: tuple[Thing, ...], check: Callable[[], None]
              ) -> Iterator[tuple[Thing, ...]]:
    """All combinations, the last object changing first."""
    if len(parts) == len(lookups):
        yield parts
        return
    for object_ in lookups[len(parts)].beside(parts):
        check()
        yield from _combined(lookups, (*parts, object_), check)
