"""Validation against the schemas in ``schemas/``: XSD 1.0 (fast), XSD 1.1 (with the rules), JSON Schema.

Schemas are compiled once, when first asked for. Nothing touches the network and no hint inside a document is
followed. A document with aliases or repairs is not valid; write it in profile ``3.1`` first.
"""

from __future__ import annotations

import copy
import re
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from lxml import etree

from sssjob.errors import UsageError
from sssjob.findings import Finding, Findings
from sssjob.limits import LIMITS, Limits
from sssjob.xml.reader import Source, parse_tree

__all__ = ["FILES", "Version", "schema_text", "validate", "validate_json"]

Version = Literal["1.0", "1.1"]
FILES: Final[dict[str, str]] = {
    "1.0": "sssjob-3.1.0.xsd", "1.1": "sssjob-3.1.0-assertions.xsd", "json": "sssjob.schema.json",
}


def schema_text(name: str) -> str:
    """The text of a schema: ``1.0``, ``1.1`` or ``json``; UsageError for another name."""
    if name not in FILES:
        raise UsageError(f"unknown schema {name!r} (known: {', '.join(FILES)})")
    return (resources.files("sssjob.schemas") / FILES[name]).read_text(encoding="utf-8")


@cache
def _xsd10() -> etree.XMLSchema:
    return etree.XMLSchema(etree.fromstring(schema_text("1.0").encode()))


@cache
def _xsd11() -> Any:
    import xmlschema

    return xmlschema.XMLSchema11(schema_text("1.1"), defuse="always", allow="none")


@cache
def _json() -> Any:
    import json

    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema_text("json")))


def validate(source: Source | Any, version: Version = "1.0", *, path: str = "-", limits: Limits = LIMITS) -> Findings:
    """What a schema finds wrong with a document: findings with lines, none when it is valid.

    source: an lxml element or tree, or what ``read_document`` takes. Raises RejectedError when it is not XML.
    """
    findings = Findings(path, limits)
    if isinstance(source, etree._ElementTree):
        source = source.getroot()
    if not isinstance(source, etree._Element):
        source = parse_tree(source, profile="3.1", path=path, limits=limits)
    source = _judged(source)
    if version == "1.0":
        _by_xsd10(source, findings)
    elif version == "1.1":
        _by_xsd11(source, findings)
    else:
        raise UsageError(f"unknown version {version!r} (known: 1.0, 1.1)")
    return findings


def _judged(root: Any) -> Any:
    """The tree as a schema can judge it: without the namespace of its root, which says nothing (section 2), and without
    the elements unknown there whose awarenessPolicy, or that around them, is Warn or Ignore (section 9.0)."""
    space = root.tag.rpartition("}")[0]
    tolerant = root.xpath("boolean(//@awarenessPolicy[. != 'Reject'])")
    if not space and not tolerant:
        return root
    root = copy.deepcopy(root)
    for element in list(root.iter(etree.Element)):
        if space and element.tag.startswith(f"{space}}}"):
            element.tag = element.tag.rpartition("}")[2]
    for element in list(root.iter(etree.Element)) if tolerant else ():
        parent = element.getparent()
        if parent is not None and element.tag not in _known() and _policy(element) != "Reject" and not any(
                e.get("awarenessPolicy") == "Reject" for e in element.iter(etree.Element)):
            parent.remove(element)
    return root


@cache
def _known() -> frozenset[str]:
    return frozenset(re.findall(r'<xs:element name="(\w+)"', schema_text("1.0")))


def _policy(element: Any) -> str:
    """The awarenessPolicy at or around an element."""
    stated = element.xpath("ancestor-or-self::*[@awarenessPolicy][1]/@awarenessPolicy")
    return str(stated[0]) if stated else "Reject"


def _by_xsd10(root: Any, report: Findings) -> None:
    schema = _xsd10()
    if schema.validate(root):
        return
    for error in schema.error_log:  # type: ignore[attr-defined]
        report.add(_rule(error.message), "", error.message, severity="error", line=error.line, path=error.path or "")


def _by_xsd11(root: Any, report: Findings) -> None:
    for error in _xsd11().iter_errors(root):
        line = getattr(error.elem, "sourceline", 0) or 0
        reason = str(error.reason)
        report.add(_rule(reason), "", reason, severity="error", line=line, path=error.path or "")


def _rule(message: str) -> str:
    """The rule that is nearest to what a schema processor says."""
    if "attribute" in message:
        return "SSS208" if "required" in message or "missing" in message.lower() else "SSS302"
    if "not expected" in message or "nexpected child" in message or "No matching" in message:
        return "SSS301"
    return "SSS305" if "assert" in message.lower() else "SSS201"


def validate_json(text: bytes | str) -> list[Finding]:
    """What the JSON Schema finds wrong with a JSON twin; needs the package jsonschema (UsageError without it)."""
    import json

    try:
        validator = _json()
    except ImportError as error:
        raise UsageError("checking against the JSON Schema needs jsonschema: "
                         "pip install 'sssjob[json-schema]'") from error
    findings = Findings()
    for fault in validator.iter_errors(json.loads(text)):
        pointer = "".join(f"/{part}" for part in fault.absolute_path)
        findings.add("SSS112", "", fault.message[:500], path=pointer)
    return list(findings)
