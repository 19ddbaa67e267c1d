"""What ``help()`` says of a property or an attribute: its text, type, unit, words and section, from the vocabulary."""

from __future__ import annotations

from typing import Final

from sssjob.document.vocabulary import ATTRIBUTES, CONSUMABLE, ELEMENTS, SCOPES, Attribute, Element, in_scope

_TYPES: Final = {
    "String": "str", "Integer": "int", "Float": "Decimal", "Boolean": "bool",
    "DateTime": "int, seconds since 1970 UTC (set: also an aware datetime)",
    "Duration": "int, seconds (set: also a timedelta)",
}


def property_text(owner: str, tag: str) -> str:
    """The help of a property. owner: the name of the class of accessors, ``JobAccessors``; ``ScopeAccessors`` has what
    is the same in all scopes, ``SlotAccessors`` what is so in Requested and Delivered too."""
    container = owner.removesuffix("Accessors")
    row = in_scope(SCOPES[0] if container in ("Scope", "Slot") else container)[tag]
    kind = _TYPES[row.type]
    if row.unit is not None:
        kind += f", {row.unit} without units (set: also \"2 GB\")"
    lines = [f"{tag}: {row.description}.", "", f"Type: {row.type} ({kind})."]
    if row.values:
        lines.append(f"Known words: {', '.join(row.values)}.")
    if row.minimum is not None:
        lines.append(f"At least {row.minimum}.")
    if row.attributes:
        lines.append(f"Attributes: {', '.join(a.name for a in row.attributes if not a.former)}.")
    places = " and ".join(n for c, n in (("R", "Requested"), ("D", "Delivered")) if c in row.categories)
    lines += [f"May also stand in {places}."] if places and not owner.startswith(("Requested", "Delivered")) else []
    lines.append(f"{'Any number may stand here. ' if row.repeats else ''}Section {row.section} of the SSS job object.")
    return "\n".join(lines)


def attribute_text(owner: str, name: str) -> str:
    """The help of an attribute. owner: the name of the class of properties, ``Consumable``."""
    row = _attribute(owner, name)
    kind = _TYPES[row.type]
    lines = [f"{name}: {row.description}.", "", f"Type: {row.type} ({kind})."]
    if row.values:
        lines.append(f"{'Known' if row.open_list else 'One of the'} words: {', '.join(row.values)}.")
    if row.default is not None:
        lines.append(f"Default: {row.default}.")
    lines.append(f"Section {row.section} of the SSS job object.")
    return "\n".join(lines)


def _attribute(owner: str, name: str) -> Attribute:
    rows: tuple[Attribute, ...] = CONSUMABLE if owner == "Consumable" else _row(owner)
    return next((a for a in rows if a.name == name), ATTRIBUTES[name])


def _row(owner: str) -> tuple[Attribute, ...]:
    """The attributes of the property whose class that is: ``Charge``, ``NodeProperty``."""
    named: list[Element] = [e for e in ELEMENTS if e.name in (owner, owner.removesuffix("Property")) and e.attributes]
    return named[0].attributes if named else ()
