"""Writes ``schemas/sssjob.schema.json``: JSON Schema (2020-12) of the JSON twin, as ``sssjob.xml.twin`` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from sssjob.document.vocabulary import (
    AWARENESS,
    CONSUMABLE,
    CONTAINERS,
    DELIVERED,
    REQUESTED,
    Attribute,
    Element,
    in_scope,
)
from sssjob.xml.twin import ROOTS, repeating

__all__ = ["json_schema"]

_CATEGORY: Final = {"": ("", ()), "R": ("Requested.", REQUESTED), "D": ("Delivered.", DELIVERED)}
_NUMBERS: Final[dict[str, dict[str, Any]]] = {
    "Integer": {"type": "integer"}, "Float": {"type": "number"}, "Boolean": {"type": "boolean"},
    "DateTime": {"type": "integer", "minimum": 0}, "Duration": {"type": "integer", "minimum": 0},
    "String": {"type": "string"},
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _attribute(a: Attribute) -> dict[str, Any]:
    schema: dict[str, Any] = {**_NUMBERS[a.type], "description": a.description}
    if a.values and not a.open_list and a.type == "String":
        word = "|".join(a.values)
        schema |= {"pattern": f"^({word})(,({word}))*$"} if a.is_list else {"enum": list(a.values)}
    if a.name == "preference":
        schema["not"] = {"const": 0}
    return schema


def _value(e: Element) -> dict[str, Any]:
    if e.name == "Network":
        return {"type": ["number", "string"], "minimum": 0, "minLength": 1}
    schema = dict(_NUMBERS[e.type])
    if e.minimum is not None:
        schema["minimum"] = e.minimum
    if e.type == "String" and not e.may_be_empty:
        schema["minLength"] = 1
    return schema


def _together(e: Element) -> dict[str, Any]:
    """Attributes that demand something of another or of the value."""
    rows: dict[str, Any] = {}
    names = {a.name for a in e.attributes}
    if "delimiter" in names:
        rows["delimiter"] = {"required": ["aggregation"], "properties": {"aggregation": {"const": "List"}}}
    if "code" in names:
        rows["code"] = {"required": ["condition"], "properties": {"condition": {"const": "OnExit"}}}
    if e.name == "Network":
        rows |= {a.name: {"properties": {"value": {"type": "number"}}} for a in CONSUMABLE}
    return {"dependentSchemas": rows} if rows else {}


def _property(e: Element, inherited: Iterable[Attribute]) -> dict[str, Any]:
    rows = {a.name: a for a in (*e.attributes, *inherited, AWARENESS) if not a.former}
    value = _value(e)
    required = ["value", *(a.name for a in e.attributes if a.required)]
    full = {"type": "object", "properties": {"value": value} | {n: _attribute(a) for n, a in rows.items()},
            "required": required, "additionalProperties": False} | _together(e)
    about = f"{e.description}. Section {e.section}."
    return {"description": about, **full} if len(required) > 1 else {"description": about, "anyOf": [value, full]}


def _definition(container: str, e: Element) -> str:
    prefix = _CATEGORY[CONTAINERS[container].category][0]
    return f"{prefix}{e.table}.{e.name}"


def _members(name: str) -> dict[str, dict[str, Any]]:
    """Key -> schema of one value, for the ordered form; lists are added for the object form."""
    row = CONTAINERS[name]
    members: dict[str, dict[str, Any]] = {f"@{a.name}": _attribute(a) for a in (AWARENESS, *row.attributes)}
    members |= {e.name: _ref(_definition(name, e)) for e in in_scope(name).values()}
    members |= {child: _ref(child) for child, _, _ in row.children}
    return members | {"#raw": _ref("raw")}


def _container(name: str) -> dict[str, Any]:
    row, members = CONTAINERS[name], _members(name)
    many = repeating(name) | {"#raw"}
    required = [e.name for e in in_scope(name).values() if e.appearance == "MUST" and e.table == "JobGroup"]
    required += [child for child, least, _ in row.children if least]
    properties = {k: {"type": "array", "items": v, "minItems": 1} if k in many else v for k, v in members.items()}
    forms: list[dict[str, Any]] = [
        {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1},
        {"type": "array", "minItems": 1, "items": {"type": "object", "properties": members, "minProperties": 1,
                                                   "maxProperties": 1, "additionalProperties": False}},
    ]
    if required:
        forms[0]["required"] = required
        forms[1]["allOf"] = [{"contains": {"required": [child]}} for child in required]
    if row.reference:
        forms.append({"type": "string", "minLength": 1, "description": "a reference by id"})
    return {"description": f"{row.description}. Section {row.section}.", "anyOf": forms}


def _raw() -> dict[str, Any]:
    child = {"anyOf": [{"type": "string"}, _ref("raw"), _document(False)]}
    return {"description": "an element of another vocabulary", "type": "object", "required": ["tag"],
            "properties": {"tag": {"type": "string"}, "text": {"type": "string"},
                           "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
                           "children": {"type": "array", "items": child}},
            "additionalProperties": False}


def _document(files: bool) -> dict[str, Any]:
    names: dict[str, Any] = {root: _ref(root) for root in ROOTS}
    if not files:
        return {"type": "object", "properties": names, "minProperties": 1, "maxProperties": 1,
                "additionalProperties": False}
    file = {"type": "object", "required": ["id", "text"], "additionalProperties": False,
            "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "encoded": {"type": "string"}}}
    spelling = {"type": "object", "additionalProperties": {"type": "string", "minLength": 1},
                "description": "other names that the document uses: Job/Id or a pointer -> JobId"}
    names |= {"#raw": _ref("raw"), "$schema": {"type": "string"}, "#spelling": spelling,
              "File": {"type": "array", "items": file}}
    return {"type": "object", "properties": names, "additionalProperties": False,
            "oneOf": [{"required": [root]} for root in (*ROOTS, "#raw")]}


def json_schema() -> str:
    """The text of ``schemas/sssjob.schema.json``."""
    definitions: dict[str, Any] = {"raw": _raw()}
    for name, row in CONTAINERS.items():
        for e in in_scope(name).values():
            definitions[_definition(name, e)] = _property(e, _CATEGORY[row.category][1])
        definitions[name] = _container(name)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "SSS job object 3.1.0, JSON twin",
            "$comment": "Generated by python -m sssjob.derive; do not edit.", **_document(True), "$defs": definitions}
    return json.dumps(schema, indent=1) + "\n"
