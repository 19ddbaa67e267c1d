"""What is set or added by hand becomes a property as the reader would have read it, or raises PropertyError at once.

A value is spelt as the text that the strict writer would write, and the vocabulary's own readers
(``sssjob.document.values``) read that text, so nothing here says a second time what a type, a range or a word is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sssjob.document import lexical
from sssjob.document._sentences import Condition
from sssjob.document.kinds import new_property
from sssjob.document.leaf import Given, Property, Value
from sssjob.document.lexical import LexicalError
from sssjob.document.states import STATES, job_state
from sssjob.document.units import UNITS, byte_factor
from sssjob.document.values import attribute_text, known_unit, typed, writable
from sssjob.document.vocabulary import (
    AWARENESS,
    CONTAINERS,
    ELEMENTS,
    Attribute,
    Element,
    aliases,
    attributes_in,
    in_scope,
    python_name,
)
from sssjob.errors import PropertyError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS

if TYPE_CHECKING:
    from sssjob.document.element import Container

#: An amount and its unit in one text; a unit that holds digits stands behind a blank, for 0x10 has none.
_WITH_UNIT: Final = re.compile(
    r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))((?:\s+[^\W\d_]\S*)|(?:[^\W\d_][^\s\d]*))\s*", re.ASCII)
#: A time of day with its zone; ``2027-01-01`` ends in a day, which looks like one.
_ZONED: Final = re.compile(r"[tT ][0-9:.,]+\s*(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*\Z")
_ABBREVIATIONS: Final = {1 << u.power: u.abbr for u in UNITS}


def property_of(scope: str, name: str, value: Given | Property, attributes: Mapping[str, Any]) -> Property:
    """The property of that name (of the specification or of Python) in a container. Raises PropertyError."""
    row = _row(scope, name)
    if isinstance(value, Property):
        return _again(scope, row, value, attributes)
    if isinstance(value, Condition):
        return _only(scope, row, value, attributes)
    more = {attribute_of(scope, row, n): a for n, a in attributes.items() if a is not None}
    value, units = _parted(row, value)
    if units is not None:
        if more.get("units") not in (None, units):
            _refuse(row, "SSS206", f"{row.name}: the value says {units}, the attribute units {more['units']!r}")
        more["units"] = units
    typed_value = _value(row, value)
    if row.name == "State":
        typed_value = _state(scope, row, str(typed_value))
    return new_property(row.name, typed_value, _attributes(scope, row, more))


def properties_of(scope: str, name: str, value: Given | Property | Condition,
                  attributes: Mapping[str, Any]) -> list[Property]:
    """The one property of a value, or all of a condition, in brackets where it needs them."""
    if not isinstance(value, Condition):
        return [property_of(scope, name, value, attributes)]
    loose = any(term.conj == "Or" for term in value.terms)
    terms = (value.bracketed() if loose else value).terms
    return [property_of(scope, name, term.value, {**attributes, **term.attributes()}) for term in terms]


def name_of(scope: str, name: str) -> str:
    """The specification's name of a property that may stand in a container. Raises PropertyError."""
    return _row(scope, name).name


def attribute_of(scope: str, row: Element, name: str) -> str:
    """The specification's name of an attribute that a property may have in a container. Raises PropertyError."""
    allowed = attributes_in(scope, True)[row.name]
    match = name if name in allowed else next((n for n in allowed if python_name(n) == name), None)
    if match is not None:
        return match
    close = difflib.get_close_matches(name, [*allowed, *map(python_name, allowed)], 1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(allowed)}"
    elsewhere = attributes_in("Requested", True).get(row.name, {})
    if scope != "Requested" and any(name in (n, python_name(n)) for n in elsewhere):
        hint = "it belongs to properties inside Requested"
    _refuse(row, "SSS302", f"{row.name}: attribute {name} may not stand here in {scope}", hint)


def fill(container: Container, members: Mapping[str, Any]) -> None:
    """Set what a container is made with: properties, attributes of its own, and child containers."""
    kind = type(container)
    own = {python_name(a.name): a for a in (*CONTAINERS[container.tag].attributes, AWARENESS)}
    for name, value in members.items():
        if name in own:
            text = _attribute_value(_container_row(container.tag), own[name], value)
            container.attributes = {**container.attributes, own[name].name: text}
        elif hasattr(kind, name) and hasattr(getattr(kind, name), "__set__"):
            setattr(container, name, value)
        else:
            container.set(name, value)


# --- names --------------------------------------------------------------------------------------------------------

def _row(scope: str, name: str) -> Element:
    rows = in_scope(scope)
    row = rows.get(name) or rows.get(_python_names(scope).get(name, ""))
    if row is not None:
        return row
    container = _container_row(scope)
    if name in CONTAINERS:
        _refuse(container, "SSS303", f"{name} is a container, no property of {scope}", f"set {python_name(name)}")
    elsewhere = next((e for e in ELEMENTS if name in (e.name, python_name(e.name))), None)
    if elsewhere is not None:
        _refuse(elsewhere, "SSS303", f"{elsewhere.name} may not stand in {scope}")
    canonical = aliases(scope).get(name)
    close = difflib.get_close_matches(name, [*rows, *_python_names(scope)], 1)
    hint = f"an alias of {canonical}" if canonical else f"did you mean {close[0]}?" if close else ""
    _refuse(container, "SSS301", f"unknown property {name} in {scope}", hint)


@cache
def _python_names(scope: str) -> dict[str, str]:
    return {python_name(name): name for name in in_scope(scope)}


def _container_row(name: str) -> Element:
    """A row by which an error can name a container."""
    row = CONTAINERS[name]
    return Element(name, "String", row.description, name, row.section)


def _refuse(row: Element, rule: str, message: str, hint: str = "") -> NoReturn:
    findings = Findings()
    finding = findings.add(rule, row.name, message, severity="error", hint=hint)
    assert finding is not None
    raise PropertyError(finding, row.section)


# --- values -------------------------------------------------------------------------------------------------------

def _again(scope: str, row: Element, stated: Property, attributes: Mapping[str, Any]) -> Property:
    """A property that was made already: looked at as all others, and kept as it is where it is in order."""
    if stated.tag != row.name:
        _refuse(row, "SSS303", f"{row.name} cannot be set to a property {stated.tag}")
    property_ = property_of(scope, row.name, stated.value, {**stated.attributes, **attributes})
    return stated if property_ == stated else property_


def _only(scope: str, row: Element, condition: Condition, attributes: Mapping[str, Any]) -> Property:
    properties = properties_of(scope, row.name, condition, attributes)
    if len(properties) > 1:
        _refuse(row, "SSS201", f"{row.name}: one property is expected, not the {len(properties)} of a condition",
                f"set {python_name(row.name)} to it")
    return properties[0]


def _parted(row: Element, value: Any) -> tuple[Any, str | None]:
    """``"2 GB"`` of an amount that may have units as (``"2"``, ``"GB"``); all others as they are."""
    if not isinstance(value, str) or row.type != "Float" or row.name == "Network" or not any(
            a.name == "units" for a in row.attributes):
        return value, None
    parts = _WITH_UNIT.fullmatch(value)
    if parts is None or (parts[2][:1] in "eE" and parts[2][1:].lstrip("+-").isdigit()):
        return value, None
    return parts[1], _unit(row, parts[2].strip())


def _unit(row: Element, unit: str) -> str:
    """A unit of bytes under the abbreviation that the specification has for it; others as they are."""
    if row.unit is None:
        return unit
    if not known_unit(unit):
        _refuse(row, "SSS206", f"{row.name}: unit {unit!r} is not known", f"known: {', '.join(u.abbr for u in UNITS)}")
    return _ABBREVIATIONS[byte_factor(unit)]


def _value(row: Element, value: Any) -> Value:
    text = _text(row, row.type, value)
    if not row.may_be_empty and not text.strip():
        _refuse(row, "SSS201", f"{row.name} is empty", "None takes a property away")
    try:
        typed_value = _read(row, text)
    except LexicalError as error:
        _refuse(row, "SSS110" if getattr(error, "limit", "") else "SSS201", f"{row.name}: {error}")
    if row.minimum is not None and not isinstance(typed_value, str) and typed_value < row.minimum:
        _refuse(row, "SSS205", f"{row.name} {text} is less than {row.minimum}")
    if isinstance(typed_value, str):
        _words(row, typed_value)
    return typed_value


def _read(row: Element, text: str) -> Value:
    """The value of a text; clock and ISO 8601 forms too where they leave nothing open."""
    if row.type == "Duration" or (row.type == "DateTime" and _ZONED.search(text)):
        return typed(row, text, liberal=True)[0]
    return typed(row, text, liberal=False)[0]


def _words(row: Element, text: str) -> None:
    """What the reader asks of a text."""
    if len(text) > (LIMITS.identifier if row.identifier else LIMITS.text):
        _refuse(row, "SSS110", f"{row.name} is longer than the limit {'identifier' if row.identifier else 'text'}")
    if not writable(text):
        _refuse(row, "SSS201", f"{row.name} holds characters that XML cannot hold")


def _state(scope: str, row: Element, text: str) -> str:
    """A State in its own spelling. A word of another system has to be put into one of the specification's."""
    states = row.values if scope == "JobGroup" else tuple(dict.fromkeys(str(s.state) for s in STATES.values()))
    for word in states:
        if word.lower() == text.lower():
            return word
    canonical = None if scope == "JobGroup" else job_state(text).state
    _refuse(row, "SSS201", f"State {text!r} is none of {', '.join(states)}",
            f"it is taken for {canonical}" if canonical else "")


def _text(row: Element, kind: str, value: Any, what: str = "") -> str:
    """The text of a Python value of a type of the vocabulary; PropertyError for a value of another kind."""
    what = what or row.name
    if isinstance(value, str):
        if kind == "DateTime" and value.strip() and not value.strip().lstrip("+-").isdigit() and not _ZONED.search(
                value):
            _refuse(row, "SSS201", f"{what}: {value!r} is no time with a zone", "epoch seconds, or as "
                    "2026-01-31T12:00:00Z")
        return value
    try:
        text = _SPELL[kind](value)
    except LexicalError as error:
        _refuse(row, "SSS201", f"{what}: {error}")
    except _NotTaken as why:
        _refuse(row, "SSS201", f"{what}: {why}")
    if text is None:
        _refuse(row, "SSS201", f"{what}: a {type(value).__name__} is no {kind}", _TAKEN[kind])
    return text


class _NotTaken(Exception):
    """A value of the right kind that cannot be taken; the text says why and what to do."""


def _string(value: Any) -> str | None:
    if isinstance(value, PathLike):
        path = fspath(value)
        return path if isinstance(path, str) else None
    return None if isinstance(value, bool) or not isinstance(value, int | Decimal) else format(value, "d" if isinstance(
        value, int) else "f")


def _integer(value: Any) -> str | None:
    if isinstance(value, float | Decimal | Fraction):
        if value != value or value in (float("inf"), float("-inf")) or value != int(value):
            raise _NotTaken(f"{value} is no whole number")
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return lexical.write_integer(int(value))


def _number(value: Any) -> str | None:
    if isinstance(value, Fraction):
        if not (Decimal(value.numerator) / value.denominator) * value.denominator == value.numerator:
            raise _NotTaken(f"{value} has no end as a decimal number; round it")
        value = Decimal(value.numerator) / value.denominator
    if isinstance(value, float | Decimal):
        lexical.write_float(value)          # refuses what is not finite or too long
        return format(value if isinstance(value, Decimal) else Decimal(repr(value)), "f")
    return _integer(value)


def _boolean(value: Any) -> str | None:
    return lexical.write_boolean(value) if isinstance(value, bool) else None


def _moment(value: Any) -> str | None:
    if not isinstance(value, datetime):
        return None if isinstance(value, timedelta) else _integer(value)
    if value.utcoffset() is None:
        raise _NotTaken(f"{value} has no time zone; say which it is, as value.replace(tzinfo=datetime.UTC) or "
                        "value.astimezone() for the zone of this machine")
    return str(int(value.timestamp() // 1))


def _seconds(value: Any) -> str | None:
    if not isinstance(value, timedelta):
        return _integer(value)
    if value % timedelta(seconds=1):
        raise _NotTaken(f"{value} is no whole number of seconds; round it")
    return str(value // timedelta(seconds=1))


_SPELL: Final[dict[str, Callable[[Any], str | None]]] = {
    "String": _string, "Integer": _integer, "Float": _number, "Boolean": _boolean, "DateTime": _moment,
    "Duration": _seconds,
}
_TAKEN: Final = {
    "String": "a str, an int, a Decimal or a path", "Integer": "an int", "Float": "a number, or a str with a unit",
    "Boolean": "True or False", "DateTime": "epoch seconds or an aware datetime",
    "Duration": "seconds or a timedelta",
}


# --- attributes ---------------------------------------------------------------------------------------------------

def _attributes(scope: str, row: Element, values: Mapping[str, Any]) -> dict[str, str]:
    allowed = attributes_in(scope, True)[row.name]
    texts = {name: _attribute_value(row, allowed[name], value) for name, value in values.items()}
    if "units" in texts:
        texts["units"] = _unit(row, texts["units"])
    for attribute in row.attributes:
        if attribute.required and attribute.name not in texts:
            _refuse(row, "SSS208", f"{row.name} lacks the attribute {attribute.name}")
    return texts


def _attribute_value(row: Element, attribute: Attribute, value: Any) -> str:
    """The canonical text of an attribute of a property, or of a container's own."""
    what = f"{row.name}: attribute {attribute.name}"
    if attribute.is_list and isinstance(value, Iterable) and not isinstance(value, str):
        value = ",".join(map(str, value))
    text = _text(row, attribute.type, value, what)
    if not writable(text):
        _refuse(row, "SSS207", f"{what} holds characters that XML cannot hold")
    if attribute is AWARENESS:
        policy = Policy.of(text)
        if policy is None:
            _refuse(row, "SSS210", f"awarenessPolicy {text!r} is not known", f"known: {', '.join(AWARENESS.values)}")
        return policy.value
    try:
        canonical, _, valid = attribute_text(attribute, text, bool(attribute.values))
    except LexicalError as error:
        _refuse(row, "SSS207", f"{what}: {error}")
    if not valid:
        _refuse(row, "SSS203", f"{what} has the unknown value {text!r}", f"known: {', '.join(attribute.values)}")
    return canonical
