"""XML documents as text: cut into pieces, of which nearly all were seen before and cost one look-up.

A document of many jobs says the same few things again and again. Its text is cut at ``</``: a piece is then the rest
of an end tag, what stands behind it, and the start tag and text of the next property (``User>\\n  <Queue>batch``), and
a piece that was understood once is understood. Nothing is judged here: a ``PieceLevel`` says what a new piece means,
and raises ``Thought`` where it takes thought; the element then goes the careful way, by a tree.

That is sound because of what holds for a text before it is cut. ``plain_text`` takes comments, CDATA sections and
carriage returns out, so that ``<`` starts a tag wherever it stands; and what was read counts only when libxml2 says
that the document is well-formed, so that each end tag belongs to the start tag before it.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.xml.encoding import character_set, clean_bytes, long_tag

_SPACE: Final = " \t\n"
_NAME: Final = r"[A-Za-z_][\w.-]*"
_PROLOG: Final = re.compile(r"(?:<\?xml\s[^>]*\?>)?\s*")
_START: Final = re.compile(rf"<(?:({_NAME}):)?({_NAME})((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*>")
_DECLARED: Final = re.compile(r"\sxmlns(?::[\w.-]+)?\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_SECTION: Final = re.compile(r"<!--.*?-->(?:\s*<!--.*?-->)*|<!\[CDATA\[(.*?)\]\]>|<[!?]", re.S)
_TAG: Final = re.compile(r"<(/?)[^<>\"'/]*(?:(?:\"[^\"]*\"|'[^']*')[^<>\"'/]*)*(/?)>")
_CHILD: Final = re.compile(r"<([A-Za-z_][^\s/<>]*)")
_WHOLE: Final = re.compile(r"[^\"']*(?:(?:\"[^\"]*\"|'[^']*')[^\"']*)*")
_DECLARATION: Final = 256   # bytes in which the declaration of a document begins
_FAR: Final = 1 << 16       # characters in which the end tag of an element is looked for
_SLOW: Final = 50           # children that may take thought, beside half of all
_PIECES: Final = 20_000     # pieces that a level keeps
_HEADS: Final = 5_000       # heads and fronts that a level keeps
_NO_SPACE: Final = re.compile(r"[^ \t\n]|\Z")


class Thought(Exception):
    """The text does not tell it: ask a tree."""


class PieceTexts(dict[str | None, Any]):
    """Text -> what it is, for one start tag: a text read before costs one look-up.

    ``plain`` converts a text that takes no thought, and gives None for any other. ``room``: how many more are kept.
    """

    __slots__ = ("plain", "room")

    def __init__(self, plain: Callable[[str], Any], room: int) -> None:
        self.plain = plain
        self.room = room


class PieceLevel:
    """What may stand in one container: pieces that were understood, and what makes something of new ones.

    known: piece -> what it adds to the container (None: nothing) and how many lines it takes (``~lines``: it ends the
    container); heads: ``Memory units="GB"`` -> texts; fronts: what stands before the last start tag of a piece -> the
    containers that start there.
    """

    __slots__ = ("fronts", "heads", "known")

    def __init__(self) -> None:
        self.known: dict[str, tuple[Any, int]] = {}
        self.heads: dict[str, Any] = {}
        self.fronts: dict[str, list[Step]] = {}

    def leaf(self, head: str, text: str) -> tuple[Any, Any]:
        """What ``<head>text</...>`` adds to the container, and the PieceTexts for others with that head, if any."""
        raise NotImplementedError

    def inner(self, head: str) -> tuple[PieceLevel, Any]:
        """The level of the container that starts with ``<head>``, and what ``made`` needs to know of its tag."""
        raise NotImplementedError

    def made(self, items: list[Any], line: int, more: Any, into: list[Any]) -> None:
        """Add the container of this level, which is complete, to the items around it."""
        raise NotImplementedError

    def element(self, text: str, line: int, depth: int) -> tuple[list[Any], int]:
        """What the text of one element in this container adds to it, and the number of its last line. Raises Thought.

        line: the number of the text's first line; depth: how many containers may stand in one another."""
        return read(text, self, line, depth)

    def keep(self, piece: str, leaf: Any, lines: int) -> None:
        """Remember what a piece is."""
        if len(self.known) < _PIECES:
            self.known[piece] = leaf, lines

    def thought(self, head: str, text: str, piece: str, lines: int) -> Any:
        """What ``<head>text</...>`` adds to the container; it is new."""
        leaf, texts = self.leaf(head, text)
        if texts is not None and len(self.heads) < _HEADS:
            self.heads[head] = texts
        if piece and (texts is None or texts.room):
            self.keep(piece, leaf, lines)
        return leaf

    def front(self, text: str) -> list[Step]:
        """The containers that start in the front of a piece. Raises Thought for text beside elements."""
        before, *starts = text.split("<")
        if before.partition(">")[2].strip(_SPACE):
            raise Thought
        steps: list[Step] = []
        level, lines = self, before.count("\n")
        for start in starts:
            head, _, space = start.partition(">")
            if space.strip(_SPACE):
                raise Thought
            lines += head.count("\n")
            if head[-1:] == "/":
                steps.append((lines, None, level.leaf(head[:-1], "")[0]))
            else:
                level, more = level.inner(head)
                steps.append((lines, level, more))
            lines += space.count("\n")
        if len(self.fronts) < _HEADS:
            self.fronts[text] = steps
        return steps


def whole(head: str) -> bool:
    """Whether a start tag ends after this: the next ``>`` may stand in an attribute instead."""
    return _WHOLE.fullmatch(head) is not None


#: Lines before a start tag, the level of its container, and what that has to know; without a level: the property that
#: an element without content is.
Step = tuple[int, PieceLevel | None, Any]
#: A container that is still open: its items, its level, the line of its start tag, and what has to be known of the tag.
_Outer = tuple[list[Any], PieceLevel, int, Any]


def read(text: str, level: PieceLevel, line: int, depth: int) -> tuple[list[Any], int]:
    """What the text of one element adds to a level, and the number of its last line. Raises Thought.

    line: the number of the text's first line; depth: how many containers may stand in one another."""
    items: list[Any] = []
    append, known_pieces = items.append, level.known.get
    around: list[_Outer] = []
    pieces = iter(text.split("</"))
    for piece in pieces:
        seen = known_pieces(piece)
        if seen is not None:
            leaf, lines = seen
            if lines >= 0:
                if leaf is not None:
                    append(leaf)
                line += lines
                continue
            line += ~lines
        else:
            front, mark, rest = piece.rpartition("<")
            lines = piece.count("\n")
            if mark:
                steps = level.fronts.get(front)
                if steps is None:
                    steps = _steps_of(level, front, alone=not around)
                if steps:
                    items, level = _entered(steps, items, level, line, around, depth)
                    append, known_pieces = items.append, level.known.get
                    piece = ""                      # means something else in the container around
                line += lines
                head, _, content = rest.partition(">")
                texts = level.heads.get(head)
                if texts is not None and content and "&" not in content:
                    leaf = texts.get(content)
                    if leaf is not None:            # for the second time: the piece may come again
                        if piece:
                            level.keep(piece, leaf, lines)
                        append(leaf)
                        continue
                    leaf = texts.plain(content)
                    if leaf is not None:
                        if texts.room:
                            texts.room -= 1
                            texts[content] = leaf
                        append(leaf)
                        continue
                if head[-1:] != "/":
                    if (leaf := level.thought(head, content, piece, lines)) is not None:
                        append(leaf)
                    continue
                items += _without_content(level, head, content)
            else:
                line += _end_kept(level, piece, lines)
        if not around:
            return _at_end(pieces, items, line)
        outer_items, outer, begun, more = around.pop()
        level.made(items, begun, more, outer_items)
        items, level = outer_items, outer
        append, known_pieces = items.append, level.known.get
    raise Thought           # it has no end


def _steps_of(level: PieceLevel, front: str, *, alone: bool) -> list[Step]:
    """The containers that start in a front that is new. alone: no container is open. Raises Thought."""
    if alone and front[:1] not in ("<", ""):
        raise Thought               # a second element
    return level.front(front)


def _entered(steps: list[Step], items: list[Any], level: PieceLevel, line: int,
             around: list[_Outer], depth: int) -> tuple[list[Any], PieceLevel]:
    """Items and level of the innermost container that starts; those around it are put on ``around``, of which there may
    be as many as depth. Raises Thought."""
    for at, inner, more in steps:
        if inner is not None:
            around.append((items, level, line + at, more))
            items, level = [], inner
        elif more is not None:
            items.append(more)
    if len(around) > depth:
        raise Thought
    return items, level


def _without_content(level: PieceLevel, head: str, content: str) -> list[Any]:
    """What ``<head/>`` adds before the end of its container. Raises Thought where text follows it."""
    if content.strip(_SPACE):
        raise Thought
    leaf = level.leaf(head[:-1], "")[0]
    return [] if leaf is None else [leaf]


def _end_kept(level: PieceLevel, piece: str, lines: int) -> int:
    """Remember a piece that only ends the container; its lines. Raises Thought for text behind the end tag."""
    if piece.partition(">")[2].strip(_SPACE):
        raise Thought
    level.keep(piece, None, ~lines)
    return lines


def _at_end(pieces: Iterator[str], items: list[Any], line: int) -> tuple[list[Any], int]:
    """The result, where the element ends with the last piece. Raises Thought where more follows."""
    if next(pieces, None) is not None:
        raise Thought
    return items, line


def _skip_space(text: str, at: int) -> int:
    """Where the next character stands that is no white space."""
    match = _NO_SPACE.search(text, at)
    return len(text) if match is None else match.start()


def _element_end(text: str, at: int) -> int:
    """Where the element ends that starts there: by each of its tags, which takes longest. Raises Thought."""
    depth = 0
    for tag in _TAG.finditer(text, at):
        depth += -1 if tag[1] else not tag[2]
        if depth <= 0:
            return tag.end()
    raise Thought


def cut(text: Text, level: PieceLevel, depth: int, careful: Callable[[int, int, int, int], None], items: list[Any],
        relieve: Callable[[], None] | None = None) -> int:
    """Add what the children of an element are to the items. Returns where its end tag stands in the text.

    careful: adds a child that takes thought (its number, where it starts and ends in the text, its line); relieve: is
    called for each other. Raises Thought where the children cannot be told apart.
    """
    whole, at, line = text.text, text.at, text.line
    taken = slow = 0                # children, and those that took thought
    doubtful = False
    space, lines, lead, end = 0, 0, "</", ""             # what was before the last child, with its tag, and its end tag
    while True:
        if whole.startswith(lead, at) and end:
            begin = at + space
            line += lines
        else:
            begin = _skip_space(whole, at)
            name = _CHILD.match(whole, begin)
            if name is None:
                if whole.startswith("</", begin):
                    return begin
                raise Thought
            space, lines = begin - at, whole.count("\n", at, begin)
            line += lines
            end = f"</{name[1]}>"
            lead = whole[at:name.end() + 1]
        stop = -1 if doubtful else whole.find(end, begin, begin + _FAR)
        stop = _element_end(whole, begin) if stop < 0 else stop + len(end)
        try:
            if slow > _SLOW + taken // 2:
                raise Thought
            added, after = level.element(whole[begin:stop], line, depth)
            items += added
            line = after
            if relieve is not None:
                relieve()
        except Thought:
            sure = _element_end(whole, begin)
            doubtful = doubtful or sure != stop
            stop = sure
            slow += 1
            careful(taken, begin, stop, line)
            line += whole.count("\n", begin, stop)
        taken += 1
        at = stop


@dataclass(slots=True)
class Text:
    """A document ready to be cut: a root element whose tag starts at ``begin`` and ends before ``at``.

    text: without comments, CDATA, carriage returns and a prefix that all names have (prefixed); name, attributes: of
    the root, without declarations of namespaces; first, line: on which its start tag starts and ends.
    """

    text: str
    begin: int
    at: int
    name: str
    attributes: str
    first: int
    line: int
    prefixed: bool = False


def plain_text(data: bytes, limits: Limits) -> Text | None:
    """A document as text that can be cut, or None when it has to be read by a tree."""
    try:
        data = clean_bytes(data, Findings(), limits)
        declared = b"<?xml" in data[:_DECLARATION]
        text = data.removeprefix(BOM_UTF8).decode(character_set(data) if declared else "utf-8")
    except (RejectedError, UnicodeDecodeError, LookupError):
        return None
    if long_tag(data, limits) or (
            len(data) > 4 * limits.document_elements and data.count(b"<") > limits.document_elements):
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    prolog = None if text[:2] == "<J" else _PROLOG.match(text)
    at = prolog.end() if prolog else 0
    if "\r" in text:
        return None
    if ("!" in text and "<!" in text) or (text.find("?", at) >= 0 and text.find("<?", at) >= 0):   # one is fast to find
        try:
            text = text[:at] + _SECTION.sub(_unfolded, text[at:])
        except Thought:
            return None
        at = _skip_space(text, at)
    start = _START.match(text, at)
    if start is None:
        return None
    prefixed = bool(start[1])
    if prefixed:
        text = text.replace(f"</{start[1]}:", "</").replace(f"<{start[1]}:", "<")
        start = _START.match(text, at)
    if start is None or ("xmlns" in start[3] and text.find("xmlns", start.end()) >= 0):
        return None
    return _text(text, start, prefixed)


def _text(text: str, start: re.Match[str], prefixed: bool) -> Text:
    first = text.count("\n", 0, start.start()) + 1
    attributes = start[3] and _DECLARED.sub("", start[3])
    return Text(text, start.start(), start.end(), start[2], attributes, first,
                first + start.group().count("\n"), prefixed)


def head_of(text: Text) -> str | None:
    """The first jobs of a group as a document of their own, with the same lines; None where the group is short."""
    stop = -1
    for end in ("</Job>", "</job>"):
        if (at := text.text.find(end, text.at + _FAR)) >= 0:
            stop = at + len(end)
            break
    return None if stop < 0 or stop > text.at + 2 * _FAR else f"{text.text[:stop]}</{text.name}>"


def start_of(text: Text, name: str) -> Text | None:
    """The same at the one element of that name; None where there is none, or another that may be called so."""
    at = text.text.find(f"<{name}")
    start = _START.match(text.text, at) if at >= 0 and text.text.find(f"<{name}", at + 1) < 0 else None
    return None if start is None or start[2] != name else _text(text.text, start, text.prefixed)


def _unfolded(section: re.Match[str]) -> str:
    """What a section of a text becomes: the lines of comments stay between elements. Raises Thought."""
    if section[1] is not None:
        if not section[1].strip(_SPACE):
            raise Thought
        return section[1].replace("&", "&amp;").replace("<", "&lt;")
    whole = section.group()
    if len(whole) < len("<!---->"):
        raise Thought           # an instruction, or what is no XML
    lines = whole.count("\n")
    if lines and not _between(section.string, section.start(), section.end()):
        raise Thought
    return "\n" * lines


def _between(text: str, start: int, end: int) -> bool:
    """Whether what stands there stands between two tags."""
    before = text.rfind("<", 0, start)
    tag = _TAG.match(text, before) if before >= 0 else None
    tagged = before < 0 or (tag is not None and _skip_space(text, tag.end()) >= start)
    return tagged and text[_skip_space(text, end):][:1] in ("<", "")
