"""The XML of plain jobs, one after another: what stands in many of them is made into text once, for the whole stream.

A job is plain where the document writer would have nothing to say and no other form to give it; all others are left to
that writer. The tests hold both against each other.
"""

from __future__ import annotations

import re
from decimal import Decimal
from sys import getrefcount
from typing import Final

from sssjob.document.element import Item, Property
from sssjob.document.model import Delivered, Job, Requested

#: What cannot stand as it is.
_MARKED: Final = re.compile("[^\t\n -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTED: Final = re.compile("[^ !#-%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BRACKETS: Final = re.compile(r"\[[^\]]*\]")
_FORMED: Final = ("Feature",)               # which 3.1 may write in another form; so does Node, where it lists groups
_HELD: Final = 1 << 14                      # texts that are remembered
_ALONE: Final = 3       # references to a property that stands in one place: its container, a loop, the question
_SLOTS: Final = (Requested, Delivered)


class PlainJobs:
    """Writes plain jobs. A property whose text is remembered is held with it, so that no other one has its identity.
    indent: what stands before the element of a job."""

    def __init__(self, indent: str = "  ") -> None:
        self._frame = f"{indent}<Job>\n", f"{indent}</Job>\n"
        self._indents = indent + "  ", indent + "    "
        self._lines: tuple[dict[int, tuple[Property, str]], ...] = ({}, {})
        self._attributes: dict[tuple[tuple[str, str], ...], str] = {}

    def text(self, job: Job) -> str | None:
        """The element, a line for each property; None where the job is not plain."""
        if job.attributes or job.reference is not None or not job.items:
            return None
        out = [self._frame[0]]
        if not self._add(out, job.items, 0):
            return None
        out.append(self._frame[1])
        return "".join(out)

    def _add(self, out: list[str], items: list[Item], depth: int) -> bool:
        """Add the lines of items; whether all of them are plain."""
        lines, indent, append = self._lines[depth], self._indents[depth], out.append
        line_of, attributed = lines.get, self._attributes.get
        for item in items:
            item_line = line_of(id(item))
            if item_line is not None:
                append(item_line[1])
                continue
            if not isinstance(item, Property):
                if depth or not self._slot(out, item):
                    return False
                continue
            tag, value, attributes = item.tag, item.value, item.attributes
            text: object = value
            if isinstance(value, str):
                text = value if value.isalnum() or _MARKED.search(value) is None else _escaped(value)
                if text is None or tag in _FORMED:
                    return False
            elif value.__class__ is Decimal:
                text = str(value)
                if "E" in text:
                    text = item.text
            elif value.__class__ is not int:
                text = item.text
            if attributes:
                key = tuple(attributes.items())
                more = attributed(key) or self._more(key)
                if more is None or (tag == "Node" and _parted(item)):
                    return False
                line = f"{indent}<{tag}{more}>{text}</{tag}>\n"
            else:
                line = f"{indent}<{tag}>{text}</{tag}>\n"
            append(line)
            if getrefcount(item) > _ALONE:
                if len(lines) >= _HELD:
                    lines.clear()
                lines[id(item)] = item, line
        return True

    def _slot(self, out: list[str], item: Item) -> bool:
        """Add Requested or Delivered; whether it is plain."""
        if not isinstance(item, _SLOTS) or not item.items or item.attributes or (
                item.reference is not None):
            return False
        indent = self._indents[0]
        out.append(f"{indent}<{item.tag}>\n")
        plain = self._add(out, item.items, 1)
        out.append(f"{indent}</{item.tag}>\n")
        return plain

    def _more(self, attributes: tuple[tuple[str, str], ...]) -> str | None:
        """The attributes of a property as text; None where they are not plain."""
        for name, text in attributes:
            if not name.isidentifier() or not name.isascii() or _QUOTED.search(text) is not None:
                return None
        if len(self._attributes) >= _HELD:
            self._attributes.clear()
        written = self._attributes[attributes] = "".join(f' {name}="{text}"' for name, text in attributes)
        return written


def _escaped(text: str) -> str | None:
    if not text.isprintable():
        return None
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _parted(item: Property) -> bool:
    """Whether a Node lists several groups."""
    return item.attributes.get("aggregation") == "Range" and "," in _BRACKETS.sub("", item.text)
