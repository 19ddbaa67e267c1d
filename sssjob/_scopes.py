"""What may stand in each container, and what was read there already; the fast way through jobs that take no thought.

A property whose text was seen before is not read again: properties are immutable and shared, so the second
``<Queue>batch</Queue>`` costs one look-up. Here is only what needs no finding; the reader does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Final

from sssjob import accessors
from sssjob.element import NO_ATTRIBUTES, Container, Item, Property
from sssjob.model import CLASSES
from sssjob.vocabulary import (
    AWARENESS,
    CONTAINERS,
    DELIVERED,
    ELEMENTS,
    PRINTED,
    REQUESTED,
    Attribute,
    Element,
    aliases,
    in_scope,
)

__all__ = ["NOTHING", "Scope", "Texts", "plain_items", "scope_of", "texts_of"]

_TEXTS: Final = 2_000       # texts kept of one property: what varies more does not repeat enough
_SETS: Final = 5_000        # sets of attributes kept of one property
_LONG: Final = 1_000        # characters; longer texts take the long way
_TAG: Final = attrgetter("tag")
_PAIR: Final = re.compile(r'([^\s=]+)="([^"]*)"')

Plain = Callable[[str], Property | None]


class Texts(dict[str | None, Property | None]):
    """Text -> property, for one element name with one set of attributes: a text read before costs one look-up.

    ``plain`` converts a text that takes no thought (digits for a number, printable words for a string); None sends
    everything else the long way, where findings are made. ``sets`` holds the same for each set of attributes that
    was read without a finding. ``room``: how many more texts are kept; none of ids and times, which do not repeat.
    """

    __slots__ = ("close", "plain", "room", "row", "sets")

    def __init__(self, row: Element, attributes: dict[str, str] = NO_ATTRIBUTES, spelling: str | None = None,
                 demanding: bool = False) -> None:
        self.row = row
        self.plain: Plain = _nothing if demanding else _plain(row, attributes, spelling)
        self.sets: dict[tuple[tuple[str, str], ...], Texts] = {}
        self.room = 0 if row.type == "DateTime" or row.name == "Id" else _TEXTS
        self.close = f"/{row.name}>"

    def __missing__(self, text: str | None) -> Property | None:
        if not text:
            return None
        made = self.plain(text)
        if made is not None and self.room:
            self.room -= 1
            self[text] = made
        return made

    def with_attributes(self, read: tuple[tuple[str, str], ...], kept: dict[str, str]) -> None:
        """Remember a set of attributes that was read without a finding."""
        if len(self.sets) >= _SETS:
            self.sets.clear()
        self.sets[read] = Texts(self.row, kept)


def _nothing(text: str) -> Property | None:
    return None


def _plain(row: Element, attributes: dict[str, str], spelling: str | None) -> Plain:
    """The function that makes the property of a plain text: closures, because their names cost least."""
    tag, make = row.name, accessors.CLASSES.get(row.name, Property)

    def verbatim(text: str) -> Property | None:
        return None if len(text) > _LONG else make(tag, text, attributes, spelling)

    def string(text: str) -> Property | None:
        if text.isprintable() and text.strip() is text and len(text) <= _LONG:
            return make(tag, text, attributes, spelling)
        return None

    def integer(text: str) -> Property | None:
        if text.isdigit() and len(text) < 19 and text.isascii():
            return make(tag, int(text), attributes, spelling)
        return None

    def number(text: str) -> Property | None:
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


@dataclass(slots=True)
class Scope:
    """What may stand in one container under one profile: spelling -> (row, alias), and what was read already.

    The rest belongs to the fast way: ``tokens``, the line of a property (``    <User>ann</User>``); ``heads``, the
    start of one (``<Memory units="GB"``); ``starts``, that of a container (``<Requested>``); ``end``, of this one.
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
    tokens: dict[str, Property] = field(default_factory=dict)
    heads: dict[str, Texts] = field(default_factory=dict)
    starts: dict[str, Scope] = field(default_factory=dict)
    end: str = ""

    def fresh(self) -> Scope:
        """The same without anything read."""
        made = Scope(self.name, self.rows, self.containers, self.folded, self.attributes, self.own, self.single,
                     self.make, end=f"</{self.name}>")
        made.texts = {name: texts_of(row) for name, (row, alias) in self.rows.items() if alias is None}
        return made

    def repeats(self, items: list[Item]) -> bool:
        """Whether what may stand once stands there twice."""
        if len(set(map(_TAG, items))) == len(items):
            return False
        tags = [i.tag for i in items if i.tag in self.single]
        return len(set(tags)) != len(tags)


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
    extra = {"Requested": REQUESTED, "Delivered": DELIVERED}.get(container, ())
    attributes = {
        name: {a.name: a for a in (*row.attributes, *extra, AWARENESS) if with_aliases or not a.former}
        for name, row in in_scope(container).items()
    }
    single = frozenset() if CONTAINERS[container].category else frozenset(
        n for n, e in in_scope(container).items() if not e.repeats)
    folded = {n.lower(): n for n in (*rows, *containers)} if with_aliases else {}
    own = {a.name: a for a in (*CONTAINERS[container].attributes, AWARENESS)}
    return Scope(container, rows, containers, folded, attributes, own, single, CLASSES[container])


# --- the fast way -------------------------------------------------------------------------------------------------

def plain_items(lines: Iterator[str], scope: Scope, line: int) -> tuple[list[Item], int] | None:
    """The items of a container whose lines these are, up to its end, and how many lines they take.

    Each line is one property, or the start or end of a container (see ``sssjob._lines``); None when one is anything
    else, or takes thought. line: the number of the line on which the container starts.
    """
    items: list[Item] = []
    append = items.append
    tokens = scope.tokens
    known = tokens.get
    nested = 0
    for text in lines:
        leaf = known(text)
        if leaf is not None:
            append(leaf)
            continue
        piece = text.strip(" \t")
        inner = scope.starts.get(piece)
        if inner is not None:
            at = line + 1 + len(items) + nested
            below = plain_items(lines, inner, at)
            if below is None or not below[0]:
                return None
            append(inner.make(below[0], None, None, at))
            nested += below[1]
        elif piece == scope.end:
            return None if scope.single and scope.repeats(items) else (items, len(items) + nested + 1)
        else:
            head, _, rest = piece.partition(">")
            texts = scope.heads.get(head)
            if texts is None and (texts := _learn(head, scope)) is None:
                return None
            content, _, close = rest.partition("<")
            if close != texts.close or not content or (leaf := texts.plain(content)) is None:
                return None
            append(leaf)
            if texts.room:
                texts.room -= 1
                tokens[text] = leaf
    return None


def _learn(head: str, scope: Scope) -> Texts | None:
    """The texts of ``<Name attributes``, when these were read before without a finding."""
    name, _, attributes = head[1:].partition(" ")
    texts = scope.texts.get(name)
    if texts is not None and attributes:
        read = tuple(_PAIR.findall(attributes))
        texts = texts.sets.get(read) if attributes == " ".join([f'{k}="{v}"' for k, v in read]) else None
    if texts is not None and len(scope.heads) < _SETS:
        scope.heads[head] = texts
    return texts
