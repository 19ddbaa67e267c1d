"""Documents that are written one property a line: read by their lines, without a tree.

Nearly all are: a program wrote them, indented. Of such a document the parser only checks that it is
well-formed, which takes it less than half of the time that building a tree does, and no memory. The lines are then
the tokens. That is sound because nothing in the document can make a line look like what it is not: it has no
comment, CDATA section, instruction or carriage return, ``<`` starts a tag wherever it stands, and a line counts as a
property only when its tag is spelt exactly as one that was read before, or has no attributes, and its text holds
neither ``<`` nor ``&``. Whatever else a job holds sends it, and whatever else a document holds sends all of it, the
way of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from sssjob.limits import Limits
from sssjob.xmlio import checker, long_tag

__all__ = ["Lines", "Segment", "lines_of"]

_START: Final = re.compile(
    rb"(?:<\?xml version=([\"'])1\.0\1(?: encoding=([\"'])(?:UTF|utf)-8\2)?(?: standalone=([\"'])(?:yes|no)\3)?\?>\n)?"
    rb"([ \t]*)<(Job|JobGroup)>\n")
_JOB: Final = re.compile(r"^([ \t]*)<Job>$", re.M)
_RARE: Final = 1_000        # more ``!`` or ``?`` than this are not looked at one by one

#: Number of the first line, the lines of a plain job without ``<Job>``, or None, and the text with all its lines.
Segment = tuple[int, list[str] | None, str]


@dataclass(slots=True)
class Lines:
    """A JobGroup, or a Job alone, by its lines.

    at, stop: where the jobs are in the text, and what stands beside them; line: the number of the group's own line.
    """

    alone: bool
    text: str
    at: int
    stop: int
    line: int
    indent: str

    def segments(self) -> Iterator[Segment]:
        """The children of the group in their order: each job alone, and what stands between jobs."""
        text, at, stop, line = self.text, self.at, self.stop, self.line + 1
        start, end = f"{self.indent}<Job>\n", f"\n{self.indent}</Job>\n"
        if self.alone:
            yield self.line, text[len(start):-1].split("\n"), text
            return
        while at < stop:
            plain = None
            if text.startswith(start, at):
                to = text.find(end, at, stop)
                to = stop if to < 0 else to + len(end)
                plain = text[at + len(start):to - 1].split("\n")
            else:
                to = text.find("\n" + start, at, stop) + 1 or stop
            segment = text[at:to]
            yield line, plain, segment
            line += segment.count("\n") if plain is None else len(plain) + 1
            at = to


def lines_of(data: bytes, limits: Limits) -> Lines | None:
    """A document as lines, or None when it has to be read as a tree. It is well-formed, and keeps the limits."""
    start = _START.match(data)
    if start is None or len(data) > limits.document_bytes or b"\r" in data:
        return None
    if _holds(data, b"!", start.end()) or _holds(data, b"?", start.end()) or long_tag(data, limits):
        return None
    if len(data) > 4 * limits.document_elements and data.count(b"<") > limits.document_elements:
        return None
    try:
        etree.fromstring(data, checker())
        text = data.decode("utf-8")
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        return None
    line = data.count(b"\n", 0, start.end())
    if start[5] == b"Job":
        indent = start[4].decode()
        stop = text.rfind(f"\n{indent}</Job>") + len(indent) + 7
        return Lines(True, f"{text[start.start(4):stop]}\n", 0, stop - start.start(4) + 1, line, indent)
    first = _JOB.search(text)
    stop = text.rfind("\n</JobGroup>") + 1
    if first is None or stop <= first.start():
        return None
    return Lines(False, text, start.end(), stop, line, first[1])


def _holds(data: bytes, mark: bytes, at: int) -> bool:
    """Whether the text holds ``<`` before the mark (a search for one byte is ten times as fast as one for two)."""
    for _ in range(_RARE):
        at = data.find(mark, at + 1)
        if at < 0:
            return False
        if data[at - 1:at] == b"<":
            return True
    return b"<" + mark in data
