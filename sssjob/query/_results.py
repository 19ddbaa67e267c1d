"""Results of queries: nodes of a document with their places, and values."""

from __future__ import annotations

import json
from typing import Any, Literal

from lxml import etree

Kind = Literal["element", "attribute", "text", "string", "number", "boolean", "map", "array"]


class Places:
    """Paths of elements of one document; linear when asked in document order."""

    __slots__ = ("file", "job", "ordinal", "seen")

    def __init__(self, file: str, job: Any = None, ordinal: int = 0) -> None:
        self.file = file
        self.job = job
        self.ordinal = ordinal
        self.seen: dict[tuple[Any, str], tuple[Any, int]] = {}

    def path(self, element: Any) -> str:
        """``/JobGroup/Job[2]/Requested/Memory``: a number where names repeat."""
        steps: list[str] = []
        node = element
        while node is not None:
            above = node.getparent()
            steps.append(node.tag.rpartition("}")[2] + self._number(node, above))
            node = above
        return "/" + "/".join(reversed(steps))

    def _number(self, node: Any, above: Any) -> str:
        if node is self.job:
            return f"[{self.ordinal}]" if self.ordinal else ""
        if above is None:
            return ""
        last, count = self.seen.get((above, node.tag), (None, 0))
        number = 0 if node is not last else count
        if not number:
            for before in node.itersiblings(node.tag, preceding=True):
                number += 1
                if before is last:
                    number += count - 1
                    break
            number += 1
        self.seen[above, node.tag] = node, number
        return f"[{number}]" if number > 1 or next(node.itersiblings(node.tag), None) is not None else ""


class Result:
    """One result: a node of the document, or a value.

    ``value`` is the element, or the text of an attribute or text node, or the value; ``element`` the element, or the
    one that the node belongs to (the Job of a value in a stream), or None.
    """

    __slots__ = ("_about", "_places", "value")

    def __init__(self, value: Any, places: Places, about: tuple[Kind, Any, str] | None = None) -> None:
        self.value = value
        self._places = places
        self._about = about         # kind, element, name; None for what lxml gave: it knows that itself

    def __repr__(self) -> str:
        return f"Result({self.kind!r}, {self.path!r}, {self.text()!r})"

    @property
    def kind(self) -> Kind:
        """element, attribute or text for nodes; string, number, boolean, map or array for values."""
        if self._about is not None:
            return self._about[0]
        value = self.value
        if not isinstance(value, str):
            return "element"
        return "attribute" if value.is_attribute else "text"  # type: ignore[attr-defined]

    @property
    def element(self) -> Any:
        """The element of the result, as lxml knows it."""
        if self.kind == "element":
            return self.value
        return self._about[1] if self._about is not None else self.value.getparent()

    @property
    def name(self) -> str:
        """Name of the element or attribute; empty for everything else."""
        if self.kind == "element":
            return str(self.value.tag).rpartition("}")[2]
        if self.kind != "attribute":
            return ""
        return (self._about[2] if self._about is not None else str(self.value.attrname)).rpartition("}")[2]

    @property
    def file(self) -> str:
        """Where the document came from."""
        return self._places.file

    @property
    def line(self) -> int:
        """Line of the element; 0 when there is none."""
        element = self.element
        return 0 if element is None else int(element.sourceline or 0)

    @property
    def path(self) -> str:
        """Place in the document, such as ``/JobGroup/Job[2]/Requested/Memory/@units``; empty for a value."""
        element = self.element
        if element is None:
            return ""
        ending = {"attribute": f"/@{self.name}", "text": "/text()"}.get(self.kind, "")
        return self._places.path(element) + ending

    def within_job(self) -> bool:
        """Whether a node of a stream belongs to the job; values do."""
        element, job = self.element, self._places.job
        while element is not None and element is not job:
            element = element.getparent()
        return element is not None

    def text(self) -> str:
        """The value as text: of an element all its text, numbers without an exponent where they are whole."""
        value = self.value
        if self.kind == "element":
            return str(etree.tostring(value, method="text", encoding="unicode", with_tail=False))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return _number_text(value)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def xml(self) -> str:
        """The element as XML; any other result inside ``<result kind="...">``."""
        if self.kind == "element":
            return str(etree.tostring(self.value, encoding="unicode", with_tail=False))
        root = etree.Element("result", kind=self.kind)
        if self.name:
            root.set("name", self.name)
        root.text = _xml_text(self.text())
        return str(etree.tostring(root, encoding="unicode"))

    def record(self) -> dict[str, Any]:
        """A JSON object: kind, name, file, line, path, value; empty members are left out, value never."""
        about = {"kind": self.kind, "name": self.name, "file": self.file, "line": self.line, "path": self.path}
        return {k: v for k, v in about.items() if v not in ("", 0)} | {"value": self._plain()}

    def _plain(self) -> Any:
        if self.kind == "element":
            return object_of(self.value)
        if isinstance(self.value, float):
            if self.value != self.value or self.value in (float("inf"), float("-inf")):
                return self.text()
            return int(self.value) if self.value.is_integer() and abs(self.value) < 1 << 53 else self.value
        return str(self.value) if isinstance(self.value, str) else self.value


def _number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _xml_text(text: str) -> str:
    return "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def object_of(element: Any) -> Any:
    """An element as JSON: text, or an object of attributes (``@name``) and children; repeated ones as a list."""
    members: dict[str, Any] = {f"@{k.rpartition('}')[2]}": v for k, v in element.attrib.items()}
    if not len(element):
        text = element.text or ""
        return members | {"value": text} if members else text
    for child in element.iterchildren(etree.Element):
        name, value = child.tag.rpartition("}")[2], object_of(child)
        if name not in members:
            members[name] = value
        elif isinstance(members[name], _Many):
            members[name].append(value)
        else:
            members[name] = _Many([members[name], value])
    return members


class _Many(list[Any]):
    """The values of children that have the same name."""
