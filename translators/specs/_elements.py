"""Descriptions of jobs in XML, element by element: what readers and writers of JSDL and of ADL have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from lxml import etree

from sssjob.document.element import Container
from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.request.asked import NEAREST
from sssjob.translators.base import ReadContext
from sssjob.translators.scripts.base import Asking, Dialect, Entry, Reading, Scan, leftovers, script_of
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.rows import DirectivePlaces
from sssjob.xml.xmlio import parse_tree

_SAFE: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def description(name: str, title: str, **more: Any) -> Dialect:
    """The dialect of a format that has no lines of options. more: what holds for its jobs."""
    return Dialect(name, title, "", (), lambda reading, lines: Scan(), lambda name, value: "",
                   lambda reading, text: [], {}, (), lambda lines: [], **more)


def local(node: Any) -> str:
    """The name of an element without its namespace."""
    return str(etree.QName(node).localname)


def bare(node: Any, count: int) -> bool:
    """Whether an element and all in it are so many, without attributes."""
    inside = list(node.iter())
    return len(inside) == count and not any(inner.attrib for inner in inside)


def text_of(node: Any) -> str:
    """The text of an element without the blanks around it."""
    return (node.text or "").strip()


def whole_text(asked: Sequence[Asking], root: Any) -> str:
    """The text of a description that is written; what it leaves of the job is told. asked: the job, as asked for."""
    asked[0].extension("Dialect")
    leftovers(asked)
    etree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{etree.tostring(root, encoding="unicode")}\n'


def document_of(root: Any, tag: str, title: str, dialect: Dialect, context: ReadContext,
                job_in: Callable[[Reading], Job]) -> Document:
    """The document of a description whose root has that name, and is of that kind; job_in: reads the job in it.

    Raises RejectedError for another root, and for what cannot be carried.
    """
    findings = context.findings
    if root.tag != tag:
        findings.add("SSS109", str(root.tag), f"is no {title}", line=root.sourceline or 0)
        findings.raise_if_rejected()
    reading = Reading(dialect, context)
    job = job_in(reading)
    findings.raise_if_rejected()
    return Document(job, {}, context.path, context.profile, findings, places=DirectivePlaces(reading.origins))


def _plain(node: Any, copy: Any) -> Any:
    """A copy whose prefixes do not depend on the document that it stands in."""
    copy.attrib.update(node.attrib)
    copy.text = node.text
    for inner in node:
        _plain(inner, etree.SubElement(copy, inner.tag))
    return copy


class ElementReader:
    """One description on its way into a job. kind: type of the Extensions that hold what only its format has."""

    kind = ""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def unknown(self, node: Any, why: str = "is not known") -> None:
        """An element that is not carried; the policy decides."""
        self.reading.findings.add("SSS301", local(node), f"{local(node)}: {why}", line=node.sourceline or 0,
                                  policy=self.reading.context.policy or Policy.WARN)

    def option(self, node: Any) -> Option:
        """What findings name as the origin of a value."""
        return Option(local(node), text_of(node)[:200], node.sourceline or 0, 0, "")

    def keep(self, node: Any) -> None:
        """An element that only the format has, as its text or XML."""
        value = node.text or ""
        if len(node) or node.attrib or value.startswith("<"):
            space: Any = {None: etree.QName(node).namespace}
            value = etree.tostring(_plain(node, etree.Element(node.tag, nsmap=space)), encoding="unicode")
        self.reading.put("Extension", value, self.option(node), type=self.kind, name=local(node))

    def put(self, where: str, node: Any, **more: str) -> None:
        """Put the text of an element into a place of the job; an empty one is nothing."""
        self.no_elements(node)
        text = text_of(node)
        if text:
            self.reading.put(where, text, self.option(node), **more)

    def no_elements(self, node: Any) -> None:
        """Tell of elements where text alone is looked for."""
        for inner in node:
            self.unknown(inner)

    def attributes(self, node: Any, *names: str) -> None:
        """Tell of attributes that are not among the known ones (SSS302)."""
        for name in node.attrib:
            if name not in names:
                self.reading.findings.add("SSS302", f"{local(node)}/@{name}", f"{local(node)}: attribute {name} is "
                                          "not carried", policy=self.reading.context.policy or Policy.WARN,
                                          line=node.sourceline or 0)

    def count(self, where: str, node: Any) -> None:
        """Put a whole number into a place; anything else is refused."""
        number = self.number_of(node)
        if number is not None:
            self.reading.put(where, number, self.option(node))

    def number_of(self, node: Any) -> int | None:
        """The whole number of an element; None for an empty one, and for anything else, which is refused."""
        self.no_elements(node)
        text = text_of(node)
        if re.fullmatch(r"\+?\d{1,15}", text, re.ASCII):
            return int(text)
        if text:
            self.refuse(node, f"{text[:80]!r} is no whole number")
        return None

    def refuse(self, node: Any, why: str) -> None:
        """What nobody could obey: an error unless the policy asks for less."""
        self.reading.refuse(f"{local(node)}: {why}", node.sourceline or 0, 0, local(node))

    def copy(self, node: Any, kind: str, source: str, target: str) -> None:
        """A file that is copied before the job (StageIn) or after it (StageOut)."""
        text = json.dumps({"source": source, "target": target}, ensure_ascii=False)
        self.reading.put(f"Extension[name={kind},type=PSIJ]", text, self.option(node))

    def sorted_items(self) -> None:
        """Have the properties of the job stand before its containers."""
        self.reading.job.items.sort(key=lambda item: isinstance(item, Container))


class ElementWriter:
    """One job on its way into a description. space: the namespace of its elements; kind: as in ``ElementReader``."""

    space = kind = ""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.scripts: dict[str, str] = {}

    def add(self, into: Any, element: str, text: str, entry: Entry | None = None, space: str = "",
            **more: str) -> None:
        """One element with text; a character that XML cannot hold is told."""
        if _SAFE.search(text) or any(map(_SAFE.search, more.values())):
            if entry is not None:
                self.asking.dropped(entry, "a character in it cannot stand in XML")
            return
        node = etree.SubElement(into, f"{{{space or self.space}}}{element}", more)
        node.text = text

    def kept(self, into: Any, name: str, space: str = "") -> None:
        """What was kept of an element: its text or XML."""
        for e in self.asking.find("Extension", NEAREST, name=name, type=self.kind):
            if not e.text.startswith("<"):
                self.add(into, name, e.text, e, space)
                continue
            try:
                node = parse_tree(e.text.encode(), findings=Findings(self.kind), repairs=False)
            except (RejectedError, UnicodeEncodeError):
                self.asking.dropped(e, "is no XML")
                continue
            if node.tag != f"{{{space or self.space}}}{name}":
                self.asking.dropped(e, f"is no element {name}")
            else:
                into.append(node)

    def executable(self) -> tuple[str, Entry | None]:
        """The executable; a script of the document becomes a file of its own, whose name it is."""
        entry = self.asking.one("Executable")
        text = "" if entry is None else entry.text
        if not text.startswith("#") or text[1:] not in self.asking.document.files:
            return text, entry
        job = self.asking.job
        stem = self.asking.context.name or str(job.value("Name") or job.value("Id") or "job")
        name = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', stem).strip('.')[:100] or 'job'}.sh"
        self.scripts[name] = script_of(self.asking)
        return name, entry

    def copies(self) -> Iterable[tuple[str, str, str, Entry]]:
        """(StageIn or StageOut, source, target, entry) of each file that is copied."""
        for kind in ("StageIn", "StageOut"):
            for e in self.asking.find("Extension", NEAREST, name=kind, type="PSIJ"):
                try:
                    staging = json.loads(e.text)
                    source, target = str(staging["source"]), str(staging["target"])
                except (ValueError, LookupError, TypeError):
                    self.asking.dropped(e, "is no file to transfer")
                    continue
                if set(staging) - {"source", "target"}:
                    self.asking.dropped(e, f"{source}: the file is copied, whatever becomes of the job")
                    continue
                yield kind, source, target, e


def in_order(part: Any, names: Iterable[str]) -> Any:
    """An element with its children in the order of its schema."""
    order = {name: place for place, name in enumerate(names)}
    part[:] = sorted(part, key=lambda node: order.get(local(node), len(order)))
    return part
