"""What may stand in each container, and what was read there already.

A property whose text was seen before is not read again: properties are immutable and shared, so the second
``<Queue>batch</Queue>`` costs one look-up. Here is only what needs no finding; ``_elements`` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from sssjob.document import kinds
from sssjob.document.element import NO_ATTRIBUTES, Container, Item, Property
from sssjob.document.model import CLASSES
from sssjob.document.vocabulary import (
    AWARENESS,
    CONTAINERS,
    ELEMENTS,
    PRINTED,
    Attribute,
    Element,
    aliases,
    attributes_in,
    in_scope,
)
from sssjob.xml._pieces import PieceLevel, PieceTexts, Step, Thought

if TYPE_CHECKING:
    from sssjob.xml._trial import Trial

_TEXTS: Final = 2_000       # texts kept of one property: what varies more does not repeat enough
_SETS: Final = 5_000        # sets of attributes kept of one property
_LONG: Final = 1_000        # characters; longer texts take the long way
_TAG: Final = attrgetter("tag")

Plain = Callable[[str], Property | None]
#: What the tag of a container says: another spelling, attributes, and whether it only wraps what is in it.
Start = tuple[str | None, dict[str, str], bool]


class Texts(PieceTexts):
    """Text -> property, for one element name with one set of attributes.

    ``plain`` converts a text that takes no thought (digits for a number, printable words for a string); None sends
    everything else the long way, where findings are made. ``sets`` holds the same for each set of attributes that
    was read without a finding. ``room`` is none for ids and times, which do not repeat.
    """

    __slots__ = ("row", "sets")

    def __init__(self, row: Element, attributes: dict[str, str] = NO_ATTRIBUTES, spelling: str | None = None,
                 demanding: bool = False) -> None:
        super().__init__(_nothing if demanding else _plain(row, attributes, spelling),
                         0 if row.type == "DateTime" or row.name == "Id" else _TEXTS)
        self.row = row
        self.sets: dict[tuple[tuple[str, str], ...], Texts] = {}

    def __missing__(self, text: str | None) -> Property | None:
        if not text:
            return None
        property_: Property | None = self.plain(text)
        if property_ is not None and self.room:
            self.room -= 1
            self[text] = property_
        return property_

    def with_attributes(self, read: tuple[tuple[str, str], ...], kept: dict[str, str]) -> None:
        """Remember a set of attributes that was read without a finding."""
        if len(self.sets) >= _SETS:
            self.sets.clear()
        self.sets[read] = Texts(self.row, kept)


def _nothing(text: str) -> Property | None:
    return None


def _plain(row: Element, attributes: dict[str, str], spelling: str | None) -> Plain:
    """The function that makes the property of a plain text: closures, because their names cost least."""
    tag, make = row.name, kinds.CLASSES.get(row.name, Property)

    def verbatim(text: str) -> Property | None:
        """The property of any text that is not too long."""
        return None if len(text) > _LONG else make(tag, text, attributes, spelling)

    def string(text: str) -> Property | None:
        """The property of a printable text without blanks around it."""
        if text.isprintable() and text.strip() is text and len(text) <= _LONG:
            return make(tag, text, attributes, spelling)
        return None

    def integer(text: str) -> Property | None:
        """The property of ASCII digits."""
        if text.isdigit() and len(text) < 19 and text.isascii():
            return make(tag, int(text), attributes, spelling)
        return None

    def number(text: str) -> Property | None:
        """The property of ASCII digits with at most one point."""
        if text.isascii() and len(text) < 19 and text.replace(".", "", 1).isdigit():
            return make(tag, Decimal(text), attributes, spelling)
        return None

    if row.type == "String":
        return verbatim if row.verbatim else string
    return {"Float": number, "Boolean": _nothing}.get(row.type, integer)


NOTHING: Final = Texts(ELEMENTS[0], demanding=True)


def texts_of(row: Element, spelling: str | None = None) -> Texts:
    """The texts of a row without attributes; a row that demands an attribute has none."""
    return Texts(row, spelling=spelling, demanding=any(a.required for a in row.attributes))


@dataclass(slots=True, eq=False)
class Scope(PieceLevel):
    """What may stand in one container under one profile: spelling -> (row, alias), and what was read already.

    known, heads and fronts are those of a PieceLevel; trial: who thinks about what is new in the document being read.
    """

    name: str
    rows: dict[str, tuple[Element, str | None]]
    containers: dict[str, str]
    folded: dict[str, str]
    attributes: dict[str, dict[str, Attribute]]
    own: dict[str, Attribute]
    single: frozenset[str]
    make: type[Container]
    classes: dict[str, Scope] = field(default_factory=dict)
    texts: dict[str, Texts] = field(default_factory=dict)
    known: dict[str, tuple[Any, int]] = field(default_factory=dict)
    fronts: dict[str, list[Step]] = field(default_factory=dict)
    heads: dict[str, Any] = field(default_factory=dict)
    trial: Callable[[], Trial] | None = None
    above: PieceLevel | None = None      # what is read where a job stands for itself

    def fresh(self) -> Scope:
        """The same without anything read."""
        scope = Scope(self.name, self.rows, self.containers, self.folded, self.attributes, self.own, self.single,
                     self.make)
        scope.texts = {name: texts_of(row) for name, (row, alias) in self.rows.items() if alias is None}
        return scope

    def repeats(self, items: list[Item]) -> bool:
        """Whether what may stand once stands there twice."""
        if len(set(map(_TAG, items))) == len(items):
            return False
        tags = [i.tag for i in items if i.tag in self.single]
        return len(set(tags)) != len(tags)

    # -- in a text
    def leaf(self, head: str, text: str) -> tuple[Property | None, Texts | None]:
        """The property that ``<head>text</...>`` is; None where it is taken as absent. Raises Thought."""
        if self.trial is None:
            raise Thought
        return self.trial().leaf(self, head, text)

    def inner(self, head: str) -> tuple[Scope, Start]:
        """The scope of the container that starts with ``<head>``, and what its tag says. Raises Thought."""
        if self.trial is None:
            raise Thought
        return self.trial().start(self, head)

    def made(self, items: list[Any], line: int, more: Start, into: list[Any]) -> None:
        """Add the container that was read. Raises Thought where something is to be told of it."""
        if self.single and self.repeats(items):
            raise Thought
        if not items and (self.trial is None or not self.trial().may_be_empty(self)):
            raise Thought
        spelling, attributes, wrapped = more
        if wrapped:
            into += items
            return
        container = self.make(items, None, None, line, spelling)
        if attributes:
            container.attributes = dict(attributes)
        into.append(container)

    def forget(self) -> None:
        """Forget what holds for one document only."""
        self.above = None
        self.known.clear()
        self.fronts.clear()
        self.heads.clear()


@lru_cache(maxsize=64)
def scope_of(container: str, with_aliases: bool) -> Scope:
    """The scope of a container, derived once from the vocabulary. Take a ``fresh`` one to read with."""
    rows: dict[str, tuple[Element, str | None]] = {n: (e, None) for n, e in in_scope(container).items()}
    containers = {child: child for child, _, _ in CONTAINERS[container].children}
    if with_aliases:
        for alias, name in aliases(container).items():
            if name in containers:
                containers[alias] = name
            else:
                rows.setdefault(alias, (in_scope(container)[name], alias))
    elif CONTAINERS[container].category:
        rows |= {alias: (in_scope(container)[name], alias) for alias, name in PRINTED.items()}
    attributes = attributes_in(container, with_aliases)
    single = frozenset() if CONTAINERS[container].category else frozenset(
        n for n, e in in_scope(container).items() if not e.repeats)
    folded = {n.lower(): n for n in (*rows, *containers)} if with_aliases else {}
    own = {a.name: a for a in (*CONTAINERS[container].attributes, AWARENESS)}
    return Scope(container, rows, containers, folded, attributes, own, single, CLASSES[container])
