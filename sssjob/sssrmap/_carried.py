"""Elements that a message carries, as text: in the form that peers sign, and what stands in Data as it stands there.

The latter is the one fast way of ``reader``. A thousand jobs in Data would become a tree only to be written again as
the text that they are. Where the text is certainly what that tree would be written as, it is taken as it is; the parser
checks it without a tree. Everything else goes through the tree.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree

from sssjob.document.model import Document
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.xml.encoding import long_tag
from sssjob.xml.writer import write_compact
from sssjob.xml.xmlio import checker, parse_tree

__all__ = ["content_of", "cut", "form_of"]

_DECLARATION: Final = re.compile(rb'<\?xml version="1\.0"(?: encoding="(?:UTF-8|utf-8)")?\?>\s*')
_OPENED: Final = re.compile(rb"<Data(?: [A-Za-z]+=\"[^\"<&]*\")*>")
#: What a tree is written with in another way, or what only a tree tells: empty elements, other quotes, references,
#: comments, sections, instructions, namespaces, white space inside tags and around them.
_UNLIKE: Final = (b"/>", b"'", b"&#", b"&quot;", b"&apos;", b"<!", b"?>", b"xmlns", b"  ", b" >", b" =", b"= ", b"> <",
                  b"\t", b"\n", b"\r", b"\0")
_PREFIXED: Final = re.compile(rb"<[^<>]*:")       # the check without a tree knows no namespaces
_EMPTY: Final = etree.XPath("descendant-or-self::*[not(node())]")
_LEAST: Final = 2000            # bytes from which on it saves anything


def cut(data: bytes, limits: Limits) -> tuple[bytes, str] | None:
    """A message without what stands in its one Data, and that; None where the tree has to tell."""
    if len(data) < _LEAST or data.count(b"<Data") != 1 or data.count(b"</Data>") != 1 or long_tag(data, limits):
        return None
    declaration = _DECLARATION.match(data)
    opened = _OPENED.search(data)
    end = data.find(b"</Data>")
    if opened is None or end < opened.end() or (declaration is None and not data.startswith(b"<")):
        return None
    start = opened.end()
    if any(data.find(mark, start - 1, end + 1) >= 0 for mark in _UNLIKE) or (
            data.count(b"<", start, end) != data.count(b">", start, end)) or (
            data.find(b":", start, end) >= 0 and _PREFIXED.search(data, start, end)):
        return None
    head, tail = data[:start], data[end:]
    if any(mark in part for part in (head[declaration.end() if declaration else 0:], tail)
           for mark in (b"<!", b"<?", b"xmlns", b"\0")):
        return None
    try:
        text = str(memoryview(data)[start:end], "utf-8")
        etree.fromstring(data, checker())
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        return None
    return head + tail, text


def form_of(element: Any) -> str:
    """An element as XML in the form that libxml2 gives it and old peers sign: no declaration, empty elements with an
    end tag, attributes in double quotes. Empty elements of the tree get an empty text."""
    text = etree.tostring(element, encoding="unicode", with_tail=False)
    if "/>" not in text:        # which is quicker to see than elements that are empty
        return text
    empty: Any = _EMPTY(element)
    for each in empty:
        each.text = ""
    return etree.tostring(element, encoding="unicode", with_tail=False)


def content_of(document: Document, profile: str) -> str:
    """The jobs of a document as the content of Data, without white space between elements. Raises RejectedError."""
    pieces = []
    for body in document.bodies():
        alone = Document(body)
        alone.findings = document.findings          # what was read is not checked again
        text, in_form = write_compact(alone, profile=profile)
        pieces.append(text if in_form else form_of(parse_tree(text.encode(), findings=Findings(), repairs=False)))
    return "".join(pieces)
