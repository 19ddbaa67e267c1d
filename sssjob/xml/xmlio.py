"""XML in: safe parsing, the repairs of the published examples, and where in the text an element stands.

Nothing here knows the vocabulary. No parser resolves entities, loads anything named in the document or touches the
network; a document type declaration is refused before the parser sees it.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from sssjob.errors import RejectedError
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS, Limits
from sssjob.xml.encoding import character_set, clean_bytes, excerpt, is_json, line_of, long_tag, refusal, text_bytes

__all__ = ["Locator", "checker", "crowded", "parse_tree", "parser", "refuse_doctype", "repair", "syntax_error"]

_local = threading.local()


def parser(huge: bool = False) -> etree.XMLParser:
    """The safe parser of this thread; parsers are reused because making one costs more than a small document."""
    name = "huge" if huge else "plain"
    cached: etree.XMLParser | None = getattr(_local, name, None)
    if cached is None:
        cached = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False,
                                 remove_comments=True, remove_pis=True, remove_blank_text=True, huge_tree=huge)
        setattr(_local, name, cached)
    return cached


class _Nobody:
    """A target that the parser tells nothing."""

    def close(self) -> None:
        """The end of the document."""


def checker() -> etree.XMLParser:
    """The parser of this thread that only checks that a document is well-formed: less than half of a tree's time."""
    cached: etree.XMLParser | None = getattr(_local, "checker", None)
    if cached is None:
        cached = etree.XMLParser(target=_Nobody(), resolve_entities=False,  # type: ignore[arg-type]
                                 no_network=True, load_dtd=False, dtd_validation=False)
        _local.checker = cached
    return cached


def parse_tree(data: bytes, *, findings: Findings, repairs: bool = True, limits: Limits = LIMITS) -> Any:
    """The root element of a document; raises RejectedError (SSS101 ...) with line and column.

    repairs: try the two repairs of the published examples when the text is not well-formed.
    """
    data = clean_bytes(data, findings, limits)
    try:
        root = _parse(data, limits)
    except etree.XMLSyntaxError as error:
        mended = repair(data, findings) if repairs and _repairable(error) else None
        if mended is None:
            raise syntax_error(error, data, findings) from None
        try:
            root = _parse(mended, limits)
        except etree.XMLSyntaxError as again:
            raise syntax_error(again, mended, findings) from None
    refuse_doctype(root, findings)
    _check_instructions(data, findings)
    if long_tag(data, limits) and crowded(root, limits):
        raise refusal(findings, "SSS110", f"an element has more than the limit attributes ({limits.attributes})")
    return root


def refuse_doctype(element: Any, findings: Findings) -> None:
    """Raise RejectedError (SSS102) when the document of an element has a document type declaration."""
    if element.getroottree().docinfo.internalDTD is not None:
        raise refusal(findings, "SSS102", "a document type declaration is not accepted")


def crowded(element: Any, limits: Limits = LIMITS) -> bool:
    """Whether an element at or below this one has more attributes than the limit."""
    return bool(element.xpath(f"boolean(descendant-or-self::*/@*[{limits.attributes + 1}])"))


def _parse(data: bytes, limits: Limits) -> Any:
    return etree.fromstring(data, parser(limits.text > 10_000_000 and limits is not LIMITS))


def _repairable(error: etree.XMLSyntaxError) -> bool:
    return not any(word in str(error) for word in ("huge text", "xcessive depth", "ncoding", "amplification"))


def syntax_error(error: etree.XMLSyntaxError, data: bytes, findings: Findings, first: int = 1) -> RejectedError:
    """What the parser complained of as a finding: a limit (SSS110), the encoding (SSS103), else SSS101.

    first: the number of the first line in data.
    """
    line, column = error.position if error.position[0] else (1, 1)
    text = re.sub(r", line \d+, column \d+( \(.*\))?$", "", str(error.msg or error))
    log: Any = error.error_log
    logged = list(log) if log else []
    if logged and not error.position[0]:        # fed in pieces, the exception says less
        line, column, text = logged[-1].line, logged[-1].column, logged[-1].message
    if text == "unknown error":         # libxml2 had no memory left to say more
        return refusal(findings, "SSS110", "the input takes more memory than there is")
    shown = line_of(data, line - first + 1, column)
    if "depth" in text and "xcessive" in text:
        return refusal(findings, "SSS110", "elements are nested deeper than the limit depth", line=line,
                       column=column, excerpt=shown)
    if "huge text" in text or "too long" in text or "too big" in text:
        return refusal(findings, "SSS110", "a text is longer than the limit text", line=line, column=column)
    rule = "SSS103" if "ncoding" in text or "UTF-8" in text else "SSS101"
    hint = ""
    if re.search(rb"=\s*\xe2\x80[\x9c\x9d\x9e]", data):
        hint = "typographic quotes: profile liberal repairs them"
    elif is_json(data):
        hint = "this is JSON, of which sss-json is the form of job documents"
    return refusal(findings, rule, text, line=line, column=column, excerpt=shown, hint=hint)


def _check_instructions(data: bytes, findings: Findings) -> None:
    """Name processing instructions: the parser leaves them out."""
    if data.find(b"?>", data.find(b"?>") + 2 if data.startswith(b"<?xml ") else 0) < 0:    # ten times as fast as "<?"
        return
    tree = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
    listed: Any = tree.xpath("//processing-instruction() | /processing-instruction()")
    for match in listed:
        findings.add("SSS106", str(match.target), f"processing instruction {escape(str(match.target))} is not "
                     "followed and not kept", line=match.sourceline or 0)


# --- repairs ------------------------------------------------------------------------------------------------------

_TAG: Final = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|"
    r"<(/?)([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*?)(/?)>", re.S)
_CURLY: Final = re.compile("=(\\s*)[\u201c\u201d\u201e\u201f\u2033]([^\u201c\u201d\u201e\u201f\u2033\"<>]*)"
                           "[\u201c\u201d\u201e\u201f\u2033]")


def repair(data: bytes, findings: Findings) -> bytes | None:
    """The text with the two faults of the published examples mended, each change a finding; None: nothing to mend.

    Typographic quotes around attribute values become straight; an opening tag without attributes that has the name
    of the element open at that place becomes its closing tag. Linear in the length of the text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    changed: list[tuple[int, str, str, str]] = []
    straight = _straight_quotes(text, changed)
    closed = _closed_tags(straight, changed)
    if not changed:
        return None
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    lines = text.split("\n")
    for at, rule, subject, message in sorted(changed):
        line = _bisect(starts, at)
        column = at - starts[line - 1] + 1
        findings.add(rule, subject, message, line=line, column=column, excerpt=excerpt(lines[line - 1], column))
    return closed.encode("utf-8")


def _bisect(starts: list[int], at: int) -> int:
    from bisect import bisect_right

    return bisect_right(starts, at)


def _straight_quotes(text: str, changed: list[tuple[int, str, str, str]]) -> str:
    """Same length as before: each typographic quote is one character, as the straight one is."""

    def mend(match: re.Match[str]) -> str:
        """An attribute with straight quotes, noted as changed; text outside of tags stays."""
        if text.rfind("<", 0, match.start()) <= text.rfind(">", 0, match.start()):
            return match.group()        # not inside a tag
        changed.append((match.start() + 1 + len(match.group(1)), "SSS104", match.group(2),
                        f"typographic quotes around {match.group(2)!r} read as straight ones"))
        return f'={match.group(1)}"{match.group(2)}"'

    return _CURLY.sub(mend, text)


def _closed_tags(text: str, changed: list[tuple[int, str, str, str]]) -> str:
    out: list[str] = []
    stack: list[str] = []
    at = 0
    for match in _TAG.finditer(text):
        closing, name, attributes, empty = match.groups()
        if name is None:
            continue
        if closing:
            if stack and stack[-1] == name:
                stack.pop()
        elif stack and stack[-1] == name and not attributes.strip() and not empty:
            stack.pop()
            out += [text[at:match.start()], f"</{name}>"]
            at = match.end()
            changed.append((match.start(), "SSS105", name, f"<{name}> read as </{name}>"))
        elif not empty:
            stack.append(name)
    return "".join([*out, text[at:]])


# --- places -------------------------------------------------------------------------------------------------------

_START_TAG: Final = re.compile(r"<(?:[^\s/<>!?:]+:)?([^\s/<>!?:]+)")


@dataclass(slots=True)
class Locator:
    """Line, column and source line of an element, looked up in the bytes only when a finding needs them.

    first: number of the first line in data (streams keep only what they are reading).
    """

    data: bytes = b""
    first: int = 1
    _starts: list[int] | None = None
    _charset: str = "utf-8"
    _line: int = 0              # the line looked at last, its text, and where its tags start
    _kept: str | None = None
    _places: dict[str, list[int]] = field(default_factory=dict)
    _left: Iterator[re.Match[str]] | None = None

    def __call__(self, element: Any) -> tuple[int, int, str]:
        """Line and column (from 1; 0: not known) of the start tag of an lxml element, and the text of that line."""
        line = int(element.sourceline or 0)
        text = self._text(line)
        if text is None:
            return line, 0, ""
        tag = element.tag.rpartition("}")[2]
        nth = self._before(element)
        places = self._tags(text, tag, nth)
        while not places and line > self.first:        # the tag started on an earlier line
            line -= 1
            text = self._text(line) or ""
            places = self._tags(text, tag, len(text))[-1:]
        column = places[min(nth, len(places) - 1)] + 1 if places else 1
        return line, column, excerpt(text, column)

    def _tags(self, text: str, tag: str, nth: int) -> list[int]:
        """Where the tags of a name start in the line looked at last, as far as the nth (from 0) of them."""
        if self._left is None:
            self._left = _START_TAG.finditer(text)
        places = self._places.setdefault(tag, [])
        while len(places) <= nth and (match := next(self._left, None)) is not None:
            self._places.setdefault(match[1], []).append(match.start())
        return places

    def _text(self, line: int) -> str | None:
        if line != self._line:
            self._line, self._kept = line, self._read(line)
            self._places.clear()
            self._left = None
        return self._kept

    def _read(self, line: int) -> str | None:
        if self._starts is None:
            self.data = text_bytes(self.data)
            self._charset = character_set(self.data)
            self._starts = [0, *(m.end() for m in re.finditer(b"\n", self.data))]
        index = line - self.first
        if not 0 <= index < len(self._starts):
            return None
        end = self.data.find(b"\n", self._starts[index])
        raw = self.data[self._starts[index]:end if end >= 0 else len(self.data)]
        return raw.removeprefix(codecs.BOM_UTF8 if index == 0 else b"").decode(self._charset, "replace").rstrip("\r")

    @staticmethod
    def _before(element: Any, most: int = 10_000) -> int:
        """How many elements of the same name start before this one on the same line."""
        count, line, tag = 0, element.sourceline, element.tag
        node = element
        for _ in range(most):
            before = node.getprevious()
            if before is not None:
                node = before
                count += sum(1 for e in node.iter(tag) if e.sourceline == line)
            else:
                node = node.getparent()
                if node is None:
                    break
                count += node.tag == tag and node.sourceline == line
            if node.sourceline != line and before is None:
                break
        return count
