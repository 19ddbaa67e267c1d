"""Whether a document that was made or changed by hand would be read again as it is.

A quick look says of most documents that all is in order: names, types, attributes and words are those of the
vocabulary. What is wrong with all others, ``_rereading`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from math import ceil
from typing import Final

from sssjob.document.element import Container, Property, Value
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document
from sssjob.document.values import attribute_text, invisible, known_unit, writable
from sssjob.document.vocabulary import AWARENESS, CONTAINERS, Element
from sssjob.limits import LIMITS
from sssjob.xml._scopes import Scope, scope_of

_CLASSES: Final[dict[str, type]] = {"String": str, "Integer": int, "Float": Decimal, "Boolean": bool, "DateTime": int,
                                    "Duration": int}
_HIGHEST: Final = 10 ** LIMITS.digits


@cache
def classes_of(container: str) -> tuple[dict[str, type], dict[str, type]]:
    """Name of a property that may stand in a container -> class of its values; the same of those alone that may stand
    there without attributes."""
    rows = {name: row for name, (row, _) in scope_of(container, False).rows.items()}
    return ({name: _CLASSES[row.type] for name, row in rows.items()},
            {name: _CLASSES[row.type] for name, row in rows.items() if not any(a.required for a in row.attributes)})


@lru_cache(maxsize=20_000)
def attributes_fit(container: str, tag: str, attributes: tuple[tuple[str, str], ...]) -> bool:
    """Whether a property of that name may have these attributes there, spelt as they are."""
    scope = scope_of(container, True)
    allowed = scope.attributes.get(tag)
    if allowed is None:
        return False
    row, stated = scope.rows[tag][0], dict(attributes)
    for name, text in attributes:
        rule = allowed.get(name)
        if rule is None or not isinstance(text, str) or not writable(text):
            return False
        if rule is AWARENESS:
            if text not in AWARENESS.values:
                return False
            continue
        try:
            canonical, _, valid = attribute_text(rule, text, False)
        except LexicalError:
            return False
        if not valid or canonical != text:
            return False
    units = stated.get("units")
    return all(a.name in stated for a in row.attributes if a.required) and not (
        units is not None and row.unit and not known_unit(units))


@dataclass(frozen=True, slots=True)
class _Form:
    """What the values of a property have to be, from its row: looked at for every property of every document.

    kinds: their classes; longest: characters of a text, 0 where they are no texts; whole: from which whole number on
    they may be one; least: of a number, None for any; demanding: it has to have an attribute.
    """

    kinds: frozenset[type]
    longest: int
    whole: int
    identifier: bool
    verbatim: bool
    may_be_empty: bool
    least: int | Decimal | None
    demanding: bool


def _form(row: Element) -> _Form:
    kinds = {_CLASSES[row.type], *([int] if row.type == "Float" else []), *([str] if row.name == "Network" else [])}
    longest = 0 if str not in kinds else LIMITS.identifier if row.identifier else LIMITS.text
    least = row.minimum if row.type not in ("DateTime", "Duration") else 0
    whole = _HIGHEST if int not in kinds else 1 - _HIGHEST if least is None else ceil(least)
    return _Form(frozenset(kinds), longest, whole, row.identifier, row.verbatim, row.may_be_empty, least,
                 any(a.required for a in row.attributes))


@cache
def _forms(container: str) -> dict[str, _Form]:
    """Name of a property that may stand in a container -> its form."""
    return {name: _form(row) for name, (row, _) in scope_of(container, False).rows.items()}


@dataclass(frozen=True, slots=True)
class _Room:
    """What may stand in one kind of container: the forms of its properties and the names of its containers, by name."""

    scope: Scope
    forms: dict[str, _Form]
    containers: frozenset[str]


@cache
def _room(tag: str) -> _Room:
    scope = scope_of(tag, False)
    return _Room(scope, _forms(tag), frozenset(scope.containers))


def in_order(document: Document) -> bool:
    """Whether the reader would say nothing about any container of a document."""
    stack = list(document.bodies())
    seen: dict[str, set[int]] = {}      # by kind of container: properties are shared by all places with the same text
    while stack:
        container = stack.pop()
        tag = container.tag
        if tag not in seen:
            seen[tag] = set()
        if not _container_fits(container, seen[tag], stack):
            return False
    return True


def _container_fits(container: Container, seen: set[int], inside: list[Container]) -> bool:
    """Whether all of one container is in order, but for what is inside its children, which are put with those that are
    still to be looked at. seen: properties that are in order."""
    tag, items = container.tag, container.items
    room = _room(tag)
    for name, text in container.attributes.items() if container.attributes else ():
        own = room.scope.own.get(name)
        if own is None or (own.values and text not in own.values) or (
                own.type == "Boolean" and text not in ("true", "false")):
            return False
    if container.reference is not None:
        return CONTAINERS[tag].reference and not items and bool(container.reference.strip())
    if not items:
        return tag == "Environment" and bool(container.attributes)
    forms = room.forms
    for item in items:
        form = forms.get(item.tag)
        if form is None or not isinstance(item, Property):
            if item.tag not in room.containers or not isinstance(item, Container):
                return False
            inside.append(item)
            continue
        value = item.value
        if type(value) is str:
            fits = value.isprintable() and 0 < len(value) <= form.longest and value[0] != " " != value[-1]
        else:
            fits = type(value) is int and form.whole <= value < _HIGHEST
        if not fits and not _value_fits(value, form):
            return False
        if not item.attributes:
            if form.demanding:
                return False
        elif id(item) not in seen:
            if not attributes_fit(tag, item.tag, tuple(item.attributes.items())):
                return False
            seen.add(id(item))
    return not room.scope.single or not room.scope.repeats(items)


def _value_fits(value: Value, form: _Form) -> bool:
    if value.__class__ not in form.kinds:
        return False
    if isinstance(value, str):
        return _text_fits(value, form)
    if isinstance(value, Decimal) and not _digits_fit(value):
        return False
    return (form.least is None or value >= form.least) and -_HIGHEST < value < _HIGHEST


def _text_fits(text: str, form: _Form) -> bool:
    if not text.isprintable() and (form.identifier or not writable(text)) and (
            invisible(text) is not None or not writable(text)):
        return False
    bare = text.strip()
    return len(text) <= form.longest and (form.verbatim or bare == text) and (form.may_be_empty or bare != "")


def _digits_fit(value: Decimal) -> bool:
    return value.is_finite() and -200 < value.adjusted() < 200 and len(format(value, "f")) <= LIMITS.digits
