"""The text of a JobGroup, cut into parts that are documents of their own.

A part holds some children of the group, inside a copy of the group's start tag and its end tag. What the parts mean
together is what the text means: content that is well-formed between two tags stays well-formed beside other such
content, so a cut at a place where it may not be (in a comment, in a job inside of a job) shows as a part that is not
well-formed. Nothing is judged here; whoever reads the parts gives up on the first that is wrong.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from sssjob.findings import Policy
from sssjob.limits import Limits
from sssjob.xml.encoding import character_set

_READ: Final = 1 << 20      # bytes that are read at once
_TAIL: Final = 256          # bytes of an end tag with the blanks and the line end behind it
_ROOT: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(<\?xml\s[^>]*?\?>)?(?:\s++|(?><!--.*?-->)|(?><\?.*?\?>))*+"
    rb"<((?:[\w.-]++:)?(?i:jobgroup))((?:\s++[\w:.-]++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+>", re.S)
_ATTRIBUTE: Final = re.compile(rb"\s([\w:.-]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_END: Final = re.compile(rb"</(?:[\w.-]+:)?(?i:job)\s*>")
_LINE_END: Final = re.compile(rb"[ \t]*\r?\n")


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the children of a group in every part but the first: its start tag with all that its children
    inherit from it (namespaces, awarenessPolicy), and its end tag. charset: of the text."""

    start: bytes
    end: bytes
    charset: str


@dataclass(frozen=True, slots=True)
class Slice:
    """Some children of a group as a document of its own.

    begin, stop: where its content stands in the file, in bytes; lines: how many more a line has in the file than in
    ``data``; inset: characters that stand before the content in its first line of the file; first: number of the line
    of ``data`` in which the content begins; last: whether it holds the end of the text.
    """

    data: bytes
    begin: int
    stop: int
    lines: int
    inset: int
    first: int
    last: bool


def frame_of(head: bytes) -> Frame | None:
    """The frame of a text that begins so; None where it is no JobGroup, or in an encoding that cannot be cut."""
    root = _ROOT.match(head)
    if root is None:
        return None
    kept = [_inherited(name, text) for name, text in _ATTRIBUTE.findall(root[3])
            if name.startswith(b"xmlns") or name == b"awarenessPolicy"]
    declaration = b"" if root[1] is None else b" ".join(root[1].split()) + b"\n"
    return Frame(b"%b<%b%b>\n" % (declaration, root[2], b"".join(kept)), b"</%b>\n" % root[2], character_set(head))


def _inherited(name: bytes, text: bytes) -> bytes:
    """An attribute of the start tag; an awarenessPolicy that is none counts as Reject, which is told once."""
    if name == b"awarenessPolicy" and Policy.of(text[1:-1].decode("ascii", "replace")) is None:
        text = b'"Reject"'
    return b" %b=%b" % (name, b" ".join(text.split(b"\n")))


def parts(file: BinaryIO, frame: Frame, limits: Limits) -> Iterator[Slice]:
    """The parts of a file, from its beginning, each of about ``part_bytes``. EOFError where a child is so long that it
    passes ``child_bytes``."""
    begin, line, inset = 0, 0, 0
    held = b""
    for content in _contents(file, limits):
        if held:
            yield _part(held, begin, line, inset, frame, last=False)
            begin += len(held)
            if breaks := held.count(b"\n"):
                line, inset = line + breaks, 0
            inset += len(held[held.rfind(b"\n") + 1:].removeprefix(BOM_UTF8).decode(frame.charset, "replace"))
        held = content
    yield _part(held, begin, line, inset, frame, last=True)


def part_at(file: BinaryIO, frame: Frame, earlier: Slice) -> Slice:
    """A part again that was let go. earlier: the same without its data."""
    file.seek(earlier.begin)
    content = file.read(earlier.stop - earlier.begin)
    line = earlier.lines + earlier.first - 1
    return _part(content, earlier.begin, line, earlier.inset, frame, last=earlier.last)


def _part(content: bytes, begin: int, line: int, inset: int, frame: Frame, *, last: bool) -> Slice:
    start = frame.start if begin else b""
    first = 1 + start.count(b"\n")
    data = b"".join((start, content, b"" if last else frame.end))
    return Slice(data, begin, begin + len(content), line + 1 - first, inset, first, last)


def _contents(file: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """The text in pieces that end behind a job, where a line ends there behind that; the last holds what follows."""
    least = limits.part_bytes
    rest, at, held, more, offset = b"", least, b"", True, 0
    while True:
        end = _END.search(rest, at)
        if end is not None and (end.end() + _TAIL < len(rest) or not more):
            line_end = _LINE_END.match(rest, end.end())
            stop = end.end() if line_end is None else line_end.end()
            if held:
                yield held
            held, rest, at = rest[:stop], rest[stop:], least
        elif more:
            at = max(least, (len(rest) if end is None else end.start()) - _TAIL)
            file.seek(offset)       # others may read of the file meanwhile
            read = file.read(_READ)
            more, offset = bool(read), offset + len(read)
            rest += read
            if len(rest) > limits.child_bytes + _READ:
                raise EOFError
        else:
            yield held + rest
            return
