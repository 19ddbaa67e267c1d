"""Records out of an XML document of any size, one at a time: what is wrong with one costs that one only.

The text is cut at the tags of the records, outside comments and CDATA; each record is parsed alone, inside a root that
declares the prefixes of the document's own root. So a document that ends early, or has one broken record, gives all the
others, and memory holds one record. A document type declaration is refused before a parser sees anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any, BinaryIO, ClassVar, Final
from xml.sax.saxutils import escape as escaped
from xml.sax.saxutils import quoteattr

from lxml import etree

from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.lrm.clocks import total
from sssjob.translators.base import ReadContext
from sssjob.translators.records._lines import UNFIT, pieces
from sssjob.translators.records.base import Reading, Record, Rejected
from sssjob.xml.encoding import clean_bytes, long_tag
from sssjob.xml.xmlio import crowded, parser

_HEAD: Final = 1 << 20          # bytes before the first record
_SHORT: Final = 300             # bytes of a tag's name with its prefix
_SPANS: Final = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_SPAN: Final = re.compile(rb"<!--|<!\[CDATA\[|<\?")
_ROOT: Final = re.compile(rb"<([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>")
_NAMESPACE: Final = re.compile(rb"""xmlns(?::[\w.-]+)?\s*=\s*(?:"[^"<]*"|'[^'<]*')""")
_ENCODING: Final = re.compile(rb"""^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["'][^>]*?\?>""")
_PREFIX: Final = re.compile(r"Namespace prefix (\S+) ")
_PREFIXES: Final = 8            # undeclared prefixes of one record


class _Cutter:
    """The texts of the records of a document; most: bytes of one."""

    def __init__(self, reading: XMLReading, file: BinaryIO) -> None:
        self.reading, self.most = reading, reading.context.limits.child_bytes
        names = b"|".join(name.encode() for name in sorted(reading.records))
        self.token = re.compile(rb"<(?:!--|!\[CDATA\[|\?|!DOCTYPE|(?P<end>/?)(?:[\w.-]{1,200}:)?(?:" + names
                                + rb")(?=[\s/>]))")
        self.pieces = pieces(file)
        self.damaged: Rejected | None = None
        self.text = bytearray()
        self.at = 0             # what comes before is done with
        self.line = 1           # of the first byte of text
        self.head: bytes | None = None
        self.mark = b""         # how the root ends, where it is not the record itself
        self.closed = False
        self.strewn = False     # whether text between records was told of
        self.start: int | None = None       # of the record at hand
        self.skipping = False               # the rest of one that is too long

    def more(self) -> bool:
        """Have more text; False at its end."""
        try:
            piece = next(self.pieces, b"")
        except Rejected as why:     # compressed data that are cut: there is no more
            self.damaged, piece = why, b""
        self.text += piece
        return bool(piece)

    def drop(self, until: int) -> None:
        """Forget the text before."""
        self.line += self.text.count(b"\n", 0, until)
        self.closed = self.closed or (self.mark != b"" and self.text.find(self.mark, 0, until) >= 0)
        del self.text[:until]
        self.at = max(0, self.at - until)

    def number(self, at: int) -> int:
        """The line of a place in the text that is held."""
        return self.line + self.text.count(b"\n", 0, at)

    def cut(self) -> Iterator[tuple[int, bytes | Rejected]]:
        """(line, text of a record or why there is none)."""
        self._first()
        while True:
            hit = self.token.search(self.text, self.at)
            if hit is None:
                self.at = max(self.at, len(self.text) - _SHORT)
                if self.start is not None and len(self.text) - self.start > self.most:
                    yield self.number(self.start), Rejected("too-long", "longer than the limit child_bytes "
                                                            f"({self.most})")
                    self.start, self.skipping = None, True
                self._forget()
                if not self.more():
                    break
                continue
            opening = bytes(hit[0])
            if opening in _SPANS:
                if not self._past(_SPANS[opening], hit.end()):
                    break
            elif opening == b"<!DOCTYPE":
                if self.start is None:
                    clean_bytes(opening, self.reading.findings, whole=False)
                self.at = hit.end()
            else:
                yield from (self._ends if hit["end"] else self._begins)(hit.start(), len(opening))
        if self.start is not None:
            yield self.number(self.start), Rejected("torn", "the input ends inside it")
        elif self.mark and not (self.closed or self.mark in self.text):
            self.reading.tell("SSS542", "torn", "the input ends before its root element does: records may be missing",
                              self.number(len(self.text)))

    def _begins(self, at: int, length: int) -> Iterator[tuple[int, bytes | Rejected]]:
        """The start tag of a record."""
        if self.start is not None:
            yield self.number(self.start), Rejected("xml", "another record begins before its end")
        self._between(at)
        if self.head is None:
            self.head = bytes(self.text[:at])
            self.mark = b"</" + root if (root := _root(self.head)) else b""
        self.drop(at)
        self.start, self.skipping, self.at = 0, False, length
        if self._past(b">", length) and self.text[self.at - 2] == 0x2f:         # <Record/>
            yield self.line, bytes(self.text[:self.at])
            self.start = None
            self.drop(self.at)

    def _ends(self, at: int, length: int) -> Iterator[tuple[int, bytes | Rejected]]:
        """The end tag of a record."""
        self.at = at + length
        if not self._past(b">", self.at):
            return
        if self.start is not None:
            yield self.number(self.start), bytes(self.text[self.start:self.at])
        elif not self.skipping:
            yield self.number(at), Rejected("xml", "an end without a beginning")
        self.start, self.skipping = None, False
        self.drop(self.at)

    def _forget(self) -> None:
        """Drop what is not needed any more: all before a record, or before what may be the beginning of a tag."""
        if self.start:
            self.drop(self.start)
            self.start = 0
        elif self.start is None and self.head is None and len(self.text) > _HEAD:
            self.head = b""
        if self.start is None and self.head is not None:
            self._between(self.at)
            self.drop(self.at)

    def _between(self, until: int) -> None:
        """Tell, once, of text that stands where only records should: maybe it was one."""
        if self.start is None and not self.skipping and not self.strewn and self.text.find(b"<", 0, until) < 0 and (
                bytes(self.text[:until]).strip()):
            self.strewn = True
            self.reading.tell("SSS542", "text", "text between records is not read; it may have been one of them",
                              self.line)

    def _past(self, mark: bytes, at: int) -> bool:
        """Go on behind a mark; False: the input ends before it, or it is too far away."""
        while (end := self.text.find(mark, at)) < 0:
            at = max(at, len(self.text) - len(mark))
            if len(self.text) - self.at > self.most or not self.more():
                self.at = len(self.text)        # it is nowhere in there: nothing is looked at twice
                return False
        self.at = end + len(mark)
        return True

    def _first(self) -> None:
        """Look at the beginning: how the text is encoded."""
        try:
            self.more()
        except Rejected:        # compressed, which documents are refused for by name
            clean_bytes(b"\x1f\x8b", self.reading.findings, whole=False)
        first = bytes(self.text[:_HEAD])
        match = _ENCODING.match(first)
        self.declaration = b""
        if match and match[1].lower().startswith(b"utf-16") and b"\0" not in first:     # came as such, is UTF-8 now
            return
        clean_bytes(first, self.reading.findings, whole=False)
        if match:
            self.declaration = b'<?xml version="1.0" encoding="' + match[1] + b'"?>'


class XMLReading(Reading):
    """One pass over an XML document: ``record`` makes a Record of an element."""

    records: ClassVar[frozenset[str]] = frozenset()
    """Local names of the elements that are records."""

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self._told: set[str] = set()

    def record(self, element: Any, number: int) -> Record:
        """The record of an element. Raises Rejected."""
        raise NotImplementedError

    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of a document, one at a time; what is rejected is counted and told."""
        cutter = _Cutter(self, file)
        for number, record in cutter.cut():
            yield from self.accepted(number, partial(self._one, record, cutter, number))
        if cutter.damaged is not None:
            self.counts.read += 1
            self.reject(1, cutter.damaged.reason, str(cutter.damaged))
        if not self.counts.read and not (cutter.head is None and _root(bytes(cutter.text)).endswith(b"Records")):
            self.counts.read += 1
            self.reject(1, "xml", f"there is no {' or '.join(sorted(self.records))} in it")

    def _one(self, record: bytes | Rejected, cutter: _Cutter, number: int) -> tuple[Job]:
        """The job of one record. Rejected: what the cutter found there is none."""
        if isinstance(record, Rejected):
            raise record
        return (self.given(self.record(self._parsed(record, cutter, number), number)),)

    def _parsed(self, text: bytes, cutter: _Cutter, number: int) -> Any:
        """The element of a record. Rejected: xml, too-long."""
        limits = self.context.limits
        declared = b" ".join(_NAMESPACE.findall(_head_tag(cutter.head or b"")))
        for _ in range(_PREFIXES):
            whole = b"%b<r %b>%b</r>" % (cutter.declaration, declared, text)
            try:
                root = etree.fromstring(whole, parser())
            except etree.XMLSyntaxError as error:
                prefix = _PREFIX.match(str(error.msg))
                if prefix is None:
                    raise Rejected("xml", escape(re.sub(r", line \d+, column .*", "", str(error.msg)))) from None
                declared += f' xmlns:{prefix[1]}="urn:undeclared:{prefix[1]}"'.encode()
                self.once("SSS542", prefix[1], f"prefix {escape(prefix[1], 40)} is declared nowhere; taken for one of "
                          "this format", number)
                continue
            if long_tag(text, limits) and crowded(root, limits):
                raise Rejected("too-long", f"an element has more than the limit attributes ({limits.attributes})")
            return root[0]
        raise Rejected("xml", "too many prefixes that are not declared")

    def no_id(self) -> Rejected:
        """What to raise for a record without identifier."""
        return Rejected("id", f"{' or '.join(sorted(self.records))} without an identifier of the job")

    def once(self, rule: str, subject: str, message: str, number: int) -> None:
        """A finding that is told once of one input."""
        if subject not in self._told and len(self._told) < 1000:
            self._told.add(subject)
            self.tell(rule, subject, message, number)


def _bare(head: bytes) -> bytes:
    """The text without comments and instructions, in one pass; what never ends goes to the end."""
    kept, at = [], 0
    while at < len(head) and (span := _SPAN.search(head, at)) is not None:
        kept.append(head[at:span.start()])
        mark = _SPANS[span[0]]
        end = head.find(mark, span.end())
        at = len(head) if end < 0 else end + len(mark)
    return b"".join((*kept, head[at:]))


def _head_tag(head: bytes) -> bytes:
    """The attributes of the root's start tag."""
    match = _ROOT.search(_bare(head)) if head else None
    return match[2] if match else b""


def _root(head: bytes) -> bytes:
    """The name of the root element."""
    match = _ROOT.search(_bare(head[:_HEAD]))
    return match[1].rstrip(b"/") if match else b""


# --- texts --------------------------------------------------------------------------------------------------------

_DURATION: Final = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,12})?)S)?)?",
                              re.ASCII)
_ATTRIBUTE: Final = {"\r": "&#13;"}


def local(element: Any) -> str:
    """The name of an element without its namespace."""
    name: str = element.tag.rpartition("}")[2]
    return name


def text_of(element: Any) -> str | None:
    """The text of an element; None where there is none."""
    return (element.text or "").strip() or None


def seconds(text: str, name: str) -> int | None:
    """Whole seconds, half up, of an xs:duration; None where it is negative. Rejected: number."""
    match = _DURATION.fullmatch(text)
    if match and any(match.groups()):
        days, hours, minutes, rest = match.groups()
        whole = total([int(days or 0), int(hours or 0), int(minutes or 0), 0])
        return int((whole + Decimal(rest or 0)).quantize(Decimal(1), ROUND_HALF_UP))
    if text.startswith("-P"):
        return None
    raise Rejected("number", f"{name} {escape(text, 40)!r} is no duration of days, hours, minutes and seconds")


def instant(epoch: int) -> str | None:
    """The xs:dateTime of epoch seconds, UTC; None where a year of four digits does not hold it."""
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if epoch >= 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def stamp(value: int) -> str:
    """The xs:duration of seconds."""
    return f"PT{value}S"


def fit(text: str) -> str:
    """The text as XML can hold it: control characters as \\x and their code."""
    return UNFIT.sub(lambda m: m[0] if m[0] in "\n\r" else f"\\x{ord(m[0]):02x}", text)


def element(tag: str, content: str | Iterable[str], attributes: Mapping[str, str | None] | None = None) -> str:
    """An element: text, or elements inside."""
    more = "".join(f" {name}={quoteattr(value)}" for name, value in (attributes or {}).items() if value is not None)
    inside = escaped(content, _ATTRIBUTE) if isinstance(content, str) else "".join(content)
    return f"<{tag}{more}>{inside}</{tag}>" if inside else f"<{tag}{more}/>"
