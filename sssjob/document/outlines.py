"""Outlines: jobs that say the same properties in the same places differ only in their values, and share an outline.

Records of one log have few outlines. What follows from an outline alone (the text around the values, where a property
stands, which values a price goes by) is worked out once for each, and a job is walked once for all who ask. An outline
knows nothing of what values mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sssjob.document.element import NO_ATTRIBUTES, Container, Property
from sssjob.document.model import Delivered, Job, Requested

__all__ = ["Field", "Outline", "OutlinedJob", "Outlines"]

_SLOTS: Final = frozenset((Requested, Delivered))
_MOST: Final = 1 << 12      # outlines that are remembered, and keys of them
_tag, _value, _attributes = attrgetter("tag"), attrgetter("value"), attrgetter("attributes")


class Field(NamedTuple):
    """What all jobs of an outline have in one place. kind: the class of the item; value_class: that of its value."""

    kind: type[Any]
    tag: str
    attributes: dict[str, str]
    value_class: type[Any]


class Outline:
    """What jobs have in common but for the values of their properties.

    fields: of what stands bare, then of the items of each Requested and Delivered in their order; bare: how many of
    them stand bare; slots: place of a Requested or Delivered -> places of its items; places: name -> place of the
    property that was delivered, else of the one that stands bare; extensions: places of the bare Extensions.
    """

    __slots__ = ("bare", "extensions", "fields", "places", "slots")

    def __init__(self, fields: Sequence[Field], bare: int, sizes: Sequence[int]) -> None:
        self.fields, self.bare = tuple(fields), bare
        self.slots: dict[int, range] = {}
        following, remaining = bare, iter(sizes)
        for place, field in enumerate(self.fields[:bare]):
            if field.kind in _SLOTS:
                self.slots[place] = range(following, following := following + next(remaining))
        delivered = [place for slot, inside in self.slots.items() if fields[slot].kind is Delivered for place in inside]
        self.places: dict[str, int] = {}
        for place in (*delivered, *range(bare)):
            if issubclass(fields[place].kind, Property):
                self.places.setdefault(fields[place].tag, place)
        self.extensions = tuple([place for place in range(bare) if fields[place].tag == "Extension"
                                 and issubclass(fields[place].kind, Property)])


class OutlinedJob:
    """A job by its outline. values: what stands in the places of ``Outline.fields``; that of what is no property means
    nothing, and a whole number may stand for the Decimal that it is. job: the job itself, or what makes it."""

    __slots__ = ("_job", "outline", "values")

    def __init__(self, outline: Outline, values: list[Any], job: Job | Callable[[], Job]) -> None:
        self.outline, self.values, self._job = outline, values, job

    @property
    def job(self) -> Job:
        """The job, which is made when somebody asks for it."""
        if not isinstance(self._job, Job):
            self._job = self._job()
        return self._job

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the job, of which one that is still to be made has none."""
        return self._job.attributes if isinstance(self._job, Job) else NO_ATTRIBUTES


class Outlines:
    """The outlines of the jobs of a stream. Attributes are known again by their identity, and held for it."""

    def __init__(self) -> None:
        self._by_identity: dict[tuple[Any, ...], tuple[Outline | None, list[dict[str, str]]]] = {}
        self._by_meaning: dict[tuple[Any, ...], Outline | None] = {}

    def of(self, job: Job) -> OutlinedJob | None:
        """A job in its outline, whatever its attributes; None where it, its Requested or its Delivered is a reference,
        or containers besides these stand in it (as task groups)."""
        bare = flat = job.items
        if job.reference is not None:
            return None
        slots = [item for item in bare if item.__class__ in _SLOTS]
        sizes = []
        if slots:
            flat = [*bare]
            for slot in slots:
                if slot.reference is not None:
                    return None
                flat += slot.items
                sizes.append(len(slot.items))
        try:
            values = [*map(_value, flat)]
        except AttributeError:                      # of elements of another vocabulary
            values = [getattr(item, "value", None) for item in flat]
        attributes = [*map(_attributes, flat)]
        what = (len(bare), *sizes, *map(type, flat), *map(_tag, flat), *map(type, values))
        key = what, *map(id, attributes)
        kept = self._by_identity.get(key)
        if kept is None:
            kept = self._outline(what, bare, flat, values, attributes, sizes), attributes
            if len(self._by_identity) >= _MOST:
                self._by_identity.clear()
            self._by_identity[key] = kept
        return None if kept[0] is None else OutlinedJob(kept[0], values, job)

    def _outline(self, what: tuple[Any, ...], bare: Sequence[Any], flat: Sequence[Any], values: Sequence[Any],
                 attributes: Sequence[dict[str, str]], sizes: Sequence[int]) -> Outline | None:
        """The outline of items by what their attributes say."""
        key = what, *[tuple(mapping.items()) for mapping in attributes]
        if key not in self._by_meaning:
            if len(self._by_meaning) >= _MOST:
                self._by_meaning.clear()
                self._by_identity.clear()
            parted = any([isinstance(item, Container) and item.__class__ not in _SLOTS for item in bare])
            fields = [Field(item.__class__, item.tag, mapping, value.__class__)
                      for item, mapping, value in zip(flat, attributes, values, strict=True)]
            self._by_meaning[key] = None if parted else Outline(fields, len(bare), sizes)
        return self._by_meaning[key]
