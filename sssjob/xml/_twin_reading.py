"""Reads the JSON twin: makes the XML that the text stands for and hands it to the reader.

So names, types, limits and policies hold in the same way; the paths of findings are JSON pointers. The shape stands in
``sssjob.xml.twin``, where this is public.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from lxml import etree

from sssjob.document.element import Container, Raw
from sssjob.document.model import Document, File
from sssjob.document.values import unlike
from sssjob.document.vocabulary import CONTAINERS, HOMELESS, aliases
from sssjob.errors import RejectedError
from sssjob.findings import Finding, Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.xml._faults import parse_fault
from sssjob.xml._twin_writing import RAW, ROOTS, SPELLING, Number, means, repeating
from sssjob.xml.json_places import JsonPlaces
from sssjob.xml.reader import read_document

_TOP: Final = "top"         # above the root while it is built
_BRACKETS: Final = 3        # JSON brackets that one level of elements may need


class _Object(dict[str, Any]):
    """A JSON object that remembers the keys it was given twice."""

    __slots__ = ("twice",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: list[str] = []
        if len(self) < len(pairs):
            seen: set[str] = set()
            self.twice = [k for k, _ in pairs if k in seen or seen.add(k)]  # type: ignore[func-returns-value]


def from_json(text: bytes | str, *, path: str = "-", limits: Limits = LIMITS, policy: Policy | None = None) -> Document:
    """The document that a JSON text stands for; what was found is in ``document.findings``, with JSON pointers.

    policy: the outermost default of awarenessPolicy instead of Reject. Raises RejectedError when nothing can be
    built: no strict JSON (SSS111), no job (SSS109), a limit (SSS110).
    """
    findings = Findings(path, limits)
    data = _parse(text, findings, limits)
    places = findings.places = JsonPlaces(text if isinstance(text, bytes) else text.encode("utf-8", "replace"), path)
    builder = _Builder(findings, limits)
    root = builder.document(data)
    if root is None:
        raise RejectedError(list(findings))
    try:
        document = read_document(etree.tostring(root, encoding="UTF-8"), path=path, limits=limits, policy=policy)
    except RejectedError as error:
        _take_over(error.findings, findings, data, limits)
        raise RejectedError(list(findings)) from None
    if document.findings:
        findings.overflow += document.findings.overflow
        _take_over(document.findings, findings, data, limits)
    _without_lines(document.root)
    places.root = document.root
    document.places = places
    document.files = builder.files(data)
    document.profile = "3.1"
    document.findings = findings
    return document


def _without_lines(item: Container | Raw) -> None:
    """Forget the lines of the XML between, which nobody has seen."""
    item.line = 0
    for child in item.items if isinstance(item, Container) else item.children:
        if isinstance(child, (Container, Raw)):
            _without_lines(child)


def _take_over(reported: Iterable[Finding], into: Findings, data: Any, limits: Limits) -> None:
    """Add the reader's findings with pointers in place of paths: the tree is made again, places remembered."""
    builder = _Builder(Findings("", limits), limits, places=[])
    root = builder.document(data)
    places = dict(builder.places or ())
    for f in reported:
        into.add(f.rule, f.subject, f.message, severity=f.severity, path=_pointer(root, f.path, places), hint=f.hint)


def _pointer(root: Any, path: str, places: dict[Any, str]) -> str:
    try:
        elements = root.xpath(f"/{_TOP}{path}") if path else []
    except etree.XPathError:
        return path                 # inside another namespace
    return places.get(elements[0], path) if elements else path


def _parse(text: bytes | str, findings: Findings, limits: Limits) -> Any:
    """The strictly parsed text; RejectedError with the one finding that says why not."""
    def refuse(rule: str, message: str, line: int = 0, column: int = 0) -> RejectedError:
        """The error for a text that is refused, with its finding."""
        findings.add(rule, "", message, line=line, column=column)
        return RejectedError(list(findings))

    def constant(word: str) -> Any:
        """Refuse the words that Python's reader takes beside JSON: NaN, Infinity."""
        raise ValueError(f"{word} is no JSON")

    if len(text) > limits.document_bytes:
        raise refuse("SSS110", f"the text is longer than the limit document_bytes ({limits.document_bytes})")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        return json.loads(decoded, object_pairs_hook=_Object, parse_int=Number, parse_float=Number,
                          parse_constant=constant)
    except json.JSONDecodeError as error:
        raise refuse("SSS111", error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise refuse("SSS110", f"nested deeper than the limit depth ({limits.depth})") from None
    except ValueError as error:     # UnicodeDecodeError too
        raise refuse("SSS111", parse_fault(error)) from None


def _scalar(value: Any) -> str | None:
    """The XML text of a JSON scalar; None for anything else. null is an element without content."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else None


class _Builder:
    """Makes the XML tree that a JSON text stands for; ``places`` remembers the pointer of every element if asked."""

    def __init__(self, findings: Findings, limits: Limits, places: list[tuple[Any, str]] | None = None) -> None:
        self.findings = findings
        self.limits = limits
        self.places = places
        self.spelling: dict[str, str] = {}

    def refuse(self, pointer: str, message: str, rule: str = "SSS112", hint: str = "") -> None:
        """Record that something has another shape."""
        name = pointer.rpartition("/")[2]
        self.findings.add(rule, name, message if name[:40] in message else f"{name[:40]}: {message}", path=pointer,
                          hint=hint)

    def document(self, data: Any) -> Any:
        """The root element, or None where there is none."""
        if not isinstance(data, _Object):
            self.refuse("", "the text is not an object with the name of a container as key")
            return None
        self.twice(data, "")
        self.spellings(data.get(SPELLING, {}))
        names = [k for k in data if k not in ("File", "$schema", SPELLING)]
        if len(names) != 1:
            self.refuse("", "no job in it" if not names else f"one root is expected, not {', '.join(names[:5])}",
                        "SSS109")
            return None
        name, value = names[0], data[names[0]]
        top = etree.Element(_TOP)
        if name == RAW:
            self.raw(top, value, "/#raw", 1)
        elif name in ROOTS:
            self.container(top, self.name("", name, f"/{name}"), name, value, f"/{name}", 1)
        else:
            self.unknown_root(name)
        return top[0] if len(top) else None

    def spellings(self, value: Any) -> None:
        """Take the other names that the document uses."""
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            self.spelling = value
            if isinstance(value, _Object):
                self.twice(value, f"/{SPELLING}")
        else:
            self.refuse(f"/{SPELLING}", "the spellings are an object of strings")

    def name(self, outer: str, tag: str, pointer: str) -> str:
        """What the document calls an element."""
        spelling = self.spelling.get(pointer) or self.spelling.get(f"{outer}/{tag}")
        if spelling is None or means(outer, tag, spelling):
            return spelling or tag
        self.refuse(pointer, f"{spelling[:40]!r} is no other name of {tag}")
        return tag

    def unknown_root(self, name: str) -> None:
        """Say which roots there are; close ones are suggested."""
        import difflib

        close = difflib.get_close_matches(name, ROOTS, 1)
        self.refuse(f"/{name}", f"{name} is not the root of a job document{unlike(name)}", "SSS109",
                    f"did you mean {close[0]}?" if close else f"known: {', '.join(ROOTS)}")

    def twice(self, value: _Object, pointer: str) -> None:
        """Refuse keys that an object has twice."""
        for key in value.twice:
            self.refuse(f"{pointer}/{key}", f"the key {key!r} stands there twice", "SSS111")

    def element(self, parent: Any, tag: str, pointer: str, depth: int) -> Any:
        """A new child element; None, with a finding, where the name is none or it is nested too deep."""
        if depth > self.limits.depth * _BRACKETS:
            self.refuse(pointer, f"nested deeper than the limit depth ({self.limits.depth})", "SSS110")
            return None
        try:
            element = etree.SubElement(parent, tag)
        except ValueError:
            self.refuse(pointer, f"{tag[:40]!r} is not a name")
            return None
        if self.places is not None:
            self.places.append((element, pointer))
        return element

    def attribute(self, element: Any, name: str, value: Any, pointer: str) -> None:
        """Set an attribute from a JSON scalar."""
        text = _scalar(value)
        if text is None or value is None:
            self.refuse(pointer, f"the attribute {name} is not a string, number or boolean")
            return
        try:
            element.set(name, text)
        except ValueError:
            self.refuse(pointer, f"the attribute {name[:40]!r} holds a character that XML cannot hold")

    def text(self, element: Any, text: str, pointer: str) -> None:
        """Append text: to the element itself, or after its last child."""
        try:
            if len(element):
                element[-1].tail = (element[-1].tail or "") + text
            else:
                element.text = (element.text or "") + text
        except ValueError:
            self.refuse(pointer, "the text holds a character that XML cannot hold")

    # -- containers
    def container(self, parent: Any, tag: str, name: str, value: Any, pointer: str, depth: int) -> None:
        """A container from its object, its ordered list or, for a reference, its text."""
        element = self.element(parent, tag, pointer, depth)
        if element is None:
            return
        text = _scalar(value)
        if text is not None:
            self.text(element, text, pointer)
        elif isinstance(value, _Object):
            self.members(element, name, value, pointer, depth)
        else:
            for at, member in enumerate(value):
                if isinstance(member, _Object) and len(member) == 1:
                    self.twice(member, f"{pointer}/{at}")
                    self.member(element, name, *next(iter(member.items())), f"{pointer}/{at}", depth, single=True)
                else:
                    self.refuse(f"{pointer}/{at}", "a member of an ordered container is an object with one key")

    def members(self, container: Any, name: str, value: _Object, pointer: str, depth: int) -> None:
        """Everything in an object."""
        self.twice(value, pointer)
        for key, inner in value.items():
            self.member(container, name, key, inner, pointer, depth)

    def member(self, container: Any, name: str, key: str, value: Any, pointer: str, depth: int,
               single: bool = False) -> None:
        """One key of a container; single: a list is the ordered form and never several values."""
        here = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
        if key.startswith("@"):
            self.attribute(container, key[1:], value, here)
            return
        if key == "#text":
            self.text(container, _scalar(value) or "", here)
            return
        child = key if key == RAW else _child_container(name, key)
        several = isinstance(value, list) and not single and (
            child is None or child == RAW or child in repeating(name))
        for at, entry in enumerate(value if several else [value]):
            place = f"{here}/{at}" if several else here
            if child == RAW:
                self.raw(container, entry, place, depth + 1)
            elif child is not None:
                self.container(container, self.name(name, key, place), child, entry, place, depth + 1)
            else:
                tag = self.name(name, key, place)
                if key == "Extension" and tag in HOMELESS and isinstance(entry, _Object):
                    entry = entry.get("value")      # its attributes say where the name is from
                self.leaf(container, tag, entry, place, depth + 1)

    # -- leaves and what is not known
    def leaf(self, parent: Any, tag: str, value: Any, pointer: str, depth: int) -> None:
        """A property from its scalar or its object; an unknown name may hold anything."""
        element = self.element(parent, tag, pointer, depth)
        if element is None:
            return
        text = _scalar(value)
        if text is not None:
            self.text(element, text, pointer)
            return
        if not isinstance(value, _Object):
            self.refuse(pointer, f"{tag} is a list inside a list")
            return
        self.twice(value, pointer)
        inner = _scalar(value.get("value"))
        self.text(element, inner or "", pointer)
        if inner is None:
            self.refuse(f"{pointer}/value", f"the value of {tag} is not a string, number or boolean")
        for key, entry in value.items():
            if key != "value":
                self.part(element, key, entry, f"{pointer}/{key}", depth)

    def part(self, element: Any, key: str, value: Any, pointer: str, depth: int) -> None:
        """A further key of a property: an attribute, or an element inside something unknown."""
        if isinstance(value, (list, _Object)) and not key.startswith("@"):
            for entry in value if isinstance(value, list) else [value]:
                self.leaf(element, key, entry, pointer, depth + 1)
        else:
            self.attribute(element, key.removeprefix("@"), value, pointer)

    def raw(self, parent: Any, value: Any, pointer: str, depth: int) -> None:
        """An element of another vocabulary, with its children."""
        if not isinstance(value, _Object) or not isinstance(value.get("tag"), str):
            self.refuse(pointer, "a raw element is an object with a tag")
            return
        attributes, children = value.get("attributes", {}), value.get("children", [])
        if not isinstance(attributes, dict) or not isinstance(children, list):
            self.refuse(pointer, "attributes is an object and children a list")
            return
        self.twice(value, pointer)
        element = self.element(parent, value["tag"], pointer, depth)
        if element is None:
            return
        for name, text in attributes.items():
            self.attribute(element, name, text, f"{pointer}/attributes/{name}")
        self.text(element, str(value.get("text", "")), pointer)
        for at, child in enumerate(children):
            place = f"{pointer}/children/{at}"
            if isinstance(child, str):
                self.text(element, child, place)
            elif isinstance(child, _Object) and len(child) == 1 and next(iter(child)) in ROOTS:
                name, inner = next(iter(child.items()))
                here = f"{place}/{name}"
                self.container(element, self.name("", name, here), name, inner, here, depth + 1)
            else:
                self.raw(element, child, place, depth + 1)

    # -- files
    def files(self, data: Any) -> dict[str, File]:
        """The Files beside the jobs."""
        files: dict[str, File] = {}
        rows = data.get("File", [])
        if not isinstance(rows, list) or len(rows) > self.limits.files:
            self.refuse("/File", f"File is a list of at most {self.limits.files} objects (limit files)")
            return files
        size = 0
        for at, row in enumerate(rows):
            file = self.file(row, f"/File/{at}")
            if file is None:
                continue
            size += len(file.text)
            if file.id in files:
                self.refuse(f"/File/{at}/id", f"File {file.id!r} stands there twice", "SSS311")
            elif size > self.limits.files_bytes:
                self.refuse(f"/File/{at}", f"more than the limit files_bytes ({self.limits.files_bytes})", "SSS110")
            else:
                files[file.id] = file
        return files

    def file(self, row: Any, pointer: str) -> File | None:
        """One File; None, with a finding, where it has another shape."""
        if not isinstance(row, _Object) or not {"id", "text"} <= set(row) <= {"id", "text", "encoded"}:
            self.refuse(pointer, "a File is an object with id, text and perhaps encoded")
            return None
        self.twice(row, pointer)
        if not all(isinstance(v, str) and not isinstance(v, Number) for v in row.values()):
            self.refuse(pointer, "id, text and encoded of a File are strings")
            return None
        return File(row["id"], row["text"], row.get("encoded"))


def _child_container(container: str, key: str) -> str | None:
    """The container that a key means inside another one, by its name or an alias; None for a property."""
    children = {child for child, _, _ in CONTAINERS[container].children}
    if key in children:
        return key
    canonical = aliases(container).get(key)
    return canonical if canonical in children else None
