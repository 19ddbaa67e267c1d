"""Where in its text an element of a document stands: looked up when a finding is told, not kept while reading.

A property is shared by all places where the same text stands, so it cannot know its line. ``Places`` belongs to
a document that was read and holds on to its text; ``of`` walks from the container that a finding is about to the item,
and then along the same way through the tags of the text. Only the job concerned is looked at, however large the
document is.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.model import bodies_of
from sssjob.document.vocabulary import ELEMENTS, TRANSPARENT
from sssjob.findings import Findings
from sssjob.xml.encoding import character_set, excerpt, text_bytes

__all__ = ["DocumentText", "Place", "Places"]

#: Line and column, from 1, and the source line as findings carry it.
Place = tuple[int, int, str]
_Names = tuple[tuple[str, str], ...]

_SHOWN: Final = 2_000       # bytes on both sides of a place, of which its excerpt is made
_KEPT: Final = 1 << 20      # bytes of a text that are kept although the file could be read again
_BLOCK: Final = 32          # lines between two whose offsets are remembered
_MOST: Final = 100_000      # items of one job that are looked at
_WORK: Final = 1_000_000    # items of a document that are looked at, over all findings
_ANCHORS: Final = 4         # jobs whose items and tags are kept
_INNER: Final = rb"(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*?"       # what stands in a tag behind the name
_TAG: Final = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(/?)([^\s/<>!?\"'=]+)(%b)(/?)>" % _INNER, re.S)
_COMMENT: Final = re.compile(rb"<!\[CDATA\[.*?\]\]>|(<!--).*?-->", re.S)
_STEP: Final = re.compile(r"([^\[\]]+)(?:\[(\d+)\])?")
#: Elements that may stand around what belongs to the container outside.
_WRAPPERS: Final = frozenset(
    name.encode() for name in (*TRANSPARENT, *(a for e in ELEMENTS if e.name == "Node" for a in e.aliases)))


class DocumentText:
    """The text of a document: its bytes, or the file to read them from again where they are many."""

    __slots__ = ("_bytes", "_last", "_path", "_size", "_starts", "_when")

    def __init__(self, data: bytes, path: str) -> None:
        self._bytes: bytes | None = data
        self._path, self._size, self._when = path, len(data), 0
        self._starts: list[int] = [0]           # of every _BLOCK-th line
        self._last = 0, 1, 1                    # offset, line and column of the place told last
        if len(data) > _KEPT and (state := _state(path)) is not None and state[0] == len(data):
            self._bytes, self._when = None, state[1]

    def read(self) -> bytes:
        """The text; empty where the file is not what it was."""
        if self._bytes is None:
            try:
                same = _state(self._path) == (self._size, self._when)
                self._bytes = text_bytes(Path(self._path).read_bytes()) if same else b""
            except OSError:
                self._bytes = b""
        self._bytes = text_bytes(self._bytes)
        return self._bytes

    def start(self, data: bytes, line: int) -> int | None:
        """The offset of a line; None where there are not so many."""
        block, rest = divmod(line - 1, _BLOCK)
        while block >= len(self._starts):
            at = _skipped(data, self._starts[-1], _BLOCK)
            if at is None:
                return None
            self._starts.append(at)
        return _skipped(data, self._starts[block], rest)

    def place(self, data: bytes, at: int) -> Place:
        """Line and column of an offset; columns count characters."""
        charset = character_set(data)
        begin_of_line, line, column = self._last            # findings mostly come in the order of the text
        block = bisect_right(self._starts, at) - 1
        if not self._starts[block] <= begin_of_line <= at:
            begin_of_line, line, column = self._starts[block], block * _BLOCK + 1, 1
        line += data.count(b"\n", begin_of_line, at)
        begin = data.rfind(b"\n", begin_of_line, at) + 1
        if begin:
            begin_of_line, column = begin, 1
        elif not begin_of_line and data.startswith(codecs.BOM_UTF8):
            begin_of_line = len(codecs.BOM_UTF8)
        column += len(data[begin_of_line:at].decode(charset, "replace"))
        self._last = at, line, column
        return line, column, self._excerpt(data, at, column, charset)

    @staticmethod
    def _excerpt(data: bytes, at: int, column: int, charset: str) -> str:
        """The source line as findings carry it; of a long one only what is around the place is looked at."""
        first = max(0, at - _SHOWN)
        begin = data.rfind(b"\n", first, at) + 1
        whole = bool(begin) or not first
        first = begin or first
        if not first and data.startswith(codecs.BOM_UTF8):
            first = len(codecs.BOM_UTF8)
        end = data.find(b"\n", at, at + _SHOWN)
        shown = data[first:at + _SHOWN if end < 0 else end].decode(charset, "replace").rstrip("\r")
        if whole:
            return excerpt(shown, column)
        before = len(data[first:at].decode(charset, "replace"))
        return excerpt(shown.ljust(_SHOWN), before + 1).rstrip()


def _state(path: str) -> tuple[int, int] | None:
    """Size and time of a regular file."""
    try:
        file = Path(path)
        state = file.stat()
        return (state.st_size, state.st_mtime_ns) if file.is_file() else None
    except (OSError, ValueError):
        return None


def _skipped(data: bytes, at: int, lines: int) -> int | None:
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            return None
    return at


class _Step(NamedTuple):
    """One step down the tags: the name as it is spelt, which of its like, and whether empty ones are no item."""

    name: bytes
    number: int
    full: bool


class _Spot(NamedTuple):
    """An item in a container: the steps that lead there, and the path as findings spell it."""

    steps: tuple[_Step, ...]
    path: tuple[tuple[str, int], ...]
    parent: Container
    item: Item


class _Anchor:
    """What a search starts from: an outermost container, or a child of a group. number: among those of its line.

    spots and tags are what stands in it, in the objects and in the text, once they were asked for.
    """

    __slots__ = ("container", "group", "large", "number", "own", "spots", "tags")

    def __init__(self, container: Container, group: Container | None, number: int) -> None:
        self.container, self.group, self.number = container, group, number
        self.spots: list[_Spot] = []
        self.own: dict[int, list[_Spot]] = {}
        self.tags: _Tags | None = None
        self.large = False          # there is too much in it to be looked at

    def look(self, most: int) -> int:
        """Go through the items, unless there are more than so many; gives how many there are."""
        if not self.spots:
            self.spots = list(islice(_spots(self.container), most))
            for spot in self.spots:
                self.own.setdefault(id(spot.item), []).append(spot)
        return len(self.spots)

    def forget(self) -> None:
        """Let go of what was looked at."""
        self.spots, self.own, self.tags = [], {}, None


class Places:
    """The places of one document that was read from XML."""

    __slots__ = ("_anchors", "_comments", "_findings", "_items", "_left", "_lines", "_looked", "_named", "_numbered",
                 "_openings", "_root", "_text")

    def __init__(self, root: Container | Raw, data: bytes, path: str, findings: Findings | None) -> None:
        self._root, self._findings = root, findings
        self._text = DocumentText(data, path)
        self._anchors: dict[int, _Anchor] = {}
        self._lines: dict[tuple[int, str], list[_Anchor]] = {}          # by line and name
        self._numbered: dict[tuple[int, str], list[_Anchor]] = {}       # by group (0: none) and name
        self._named: dict[tuple[int, str, _Names], list[_Anchor]] = {}  # by line, name and names, where that tells
        self._items: dict[tuple[int, str], dict[int, _Anchor | None]] = {}  # by line, name, item; None: of several
        self._openings: dict[tuple[int, str], list[int]] = {}           # of the tags that end on a line, by name
        self._looked: list[_Anchor] = []        # whose items and tags are kept
        self._comments: tuple[int, int] | None = None       # once they were counted
        self._left = _WORK

    def of(self, item: Item | None, within: Container | None = None, path: str = "") -> Place | None:
        """The place of the start tag of an item, or None where the text does not tell.

        within: the job or container that the finding is about, or a copy of it with defaults folded in; path: as the
        finding has it, with numbers where there are several (``/JobGroup/Job[2]/Requested/Memory``), or from the job
        on. An item that is not there itself is looked for by its value, then by its name, then the nearest container
        that is there stands for it. In a document made to take long only the container is told in the end.
        """
        if not self._anchors:
            self._collect()
        named = [(m[1], int(m[2] or 0)) for m in map(_STEP.fullmatch, path.split("/")[1:]) if m]
        anchor, inner = self._anchor(within, named)
        if anchor is None:
            return None
        if (item is None and not inner) or not self._look(anchor):
            return self._located(anchor, None)
        spot, owner = self._spot(anchor, item, within, inner), anchor
        group = anchor.group
        if item is not None and (spot is None or spot.item is not item) and group is not None:
            for child in group.items:           # what a job inherits stands in the defaults of its group
                other = self._anchors.get(id(child)) if child.tag == "JobDefaults" else None
                if other is not None and self._look(other) and id(item) in other.own:
                    spot, owner = other.own[id(item)][0], other
        return self._located(owner, spot) or self._located(anchor, None)

    def comments(self) -> tuple[int, int]:
        """How many comments there are, and the line on which the first begins (0 where there is none)."""
        if self._comments is None:
            data = self._text.read()
            starts = [m.start() for m in _COMMENT.finditer(data) if m[1]] if b"<!--" in data else []
            self._comments = len(starts), self._text.place(data, starts[0])[0] if starts else 0
        return self._comments

    # -- in the objects
    def _collect(self) -> None:
        """What searches start from: the outermost containers, and the jobs of groups."""
        for body in bodies_of(self._root):
            self._add(body, None)
            if body.tag == "JobGroup":
                for child in body.containers():
                    self._add(child, body)

    def _add(self, container: Container, group: Container | None) -> None:
        same = self._lines.setdefault((container.line, _spelt(container)), [])
        self._anchors[id(container)] = anchor = _Anchor(container, group, len(same))
        same.append(anchor)
        self._numbered.setdefault((0 if group is None else id(group), container.tag), []).append(anchor)

    def _look(self, anchor: _Anchor) -> bool:
        """Go through the items of an anchor, unless they are too many; of few anchors they are kept."""
        if anchor in self._looked or anchor.large:
            return not anchor.large
        count = anchor.look(min(_MOST, max(0, self._left)))
        self._left -= count
        if count == _MOST or self._left <= 0:
            anchor.large = True
            anchor.forget()
            return False
        self._looked.append(anchor)
        if len(self._looked) > _ANCHORS:
            self._looked.pop(0).forget()
        return True

    def _anchor(self, within: Container | None, named: list[tuple[str, int]]
                ) -> tuple[_Anchor | None, list[tuple[str, int]]]:
        """Where the search starts, and the steps of the path from there on."""
        own = self._anchors.get(id(within))
        if own is not None and within is not None:
            skipped = 1 if own.group is None or (named and named[0][0] == within.tag) else 2
            return own, named[skipped:]
        body = self._nth(0, *named[0]) if named else None
        if body is not None:
            child = self._nth(id(body.container), *named[1]) if len(named) > 1 else None
            return (body, named[1:]) if child is None else (child, named[2:])
        return (None if within is None else self._like(within)), named[1:]

    def _nth(self, group: int, tag: str, number: int) -> _Anchor | None:
        """The outermost container, or the one of a group, with that name and number; without one the only one."""
        like = self._numbered.get((group, tag), [])
        if number:
            return like[number - 1] if number <= len(like) else None
        return like[0] if len(like) == 1 else None

    def _like(self, copy: Container) -> _Anchor | None:
        """What a container is a copy of: that of its line, of several the one that has one of its items, else the one
        of its names."""
        like = self._lines.get((copy.line, _spelt(copy)), []) if copy.line else []
        if len(like) < 2:
            return like[0] if like else None
        key = copy.line, _spelt(copy)
        if (*key, ()) not in self._named:
            self._named[*key, ()] = []          # those without names, if any
            items = self._items[key] = {}
            for anchor in like:
                self._named.setdefault((*key, _names(anchor.container)), []).append(anchor)
                for item in anchor.container.items:
                    items[id(item)] = None if id(item) in items else anchor
        owners = map(self._items[key].get, map(id, copy.items))
        return next(filter(None, owners), None) or (self._named.get((*key, _names(copy))) or like)[0]

    def _spot(self, anchor: _Anchor, item: Item | None, within: Container | None, inner: list[tuple[str, int]]
              ) -> _Spot | None:
        """The best answer to what a finding names: the item itself, one of its value, of its name, its container."""
        own = anchor.own.get(id(item), [])
        if len(own) == 1:
            return own[0]
        self._left -= len(anchor.spots)
        if self._left < 0:
            return own[0] if own else None
        best: tuple[tuple[int, ...], _Spot] | None = None
        for spot in own or anchor.spots:
            alike = _alike(spot.path, inner)
            like = item is not None and alike >= len(inner) - 1 and spot.item == item
            if not (own or like or alike == len(spot.path)):
                continue                        # no container around it either
            score = bool(own) and spot.parent is within, like, alike, len(spot.path) == len(inner)
            if best is None or score > best[0]:
                best = score, spot
        return None if best is None else best[1]

    # -- in the text
    def _located(self, anchor: _Anchor, spot: _Spot | None) -> Place | None:
        data = self._text.read()
        line = self._text.start(data, anchor.container.line) if data and anchor.container.line else None
        if line is None:
            return None
        key = anchor.container.line, _spelt(anchor.container)
        if key not in self._openings:
            self._openings[key] = _openings(data, line, key[1])
        if anchor.number >= len(self._openings[key]):
            return None
        at = self._openings[key][anchor.number]
        if spot is not None:
            if anchor.tags is None:
                repaired = any(f.rule == "SSS105" for f in self._findings or ())
                anchor.tags = _Tags(data, at, repaired, len(anchor.spots))
            at = anchor.tags.offset(spot.steps, at)
        return self._text.place(data, at)


def _names(container: Container) -> _Names:
    """What tells a job from others of the same line."""
    return tuple((p.tag, p.text) for p in container.properties() if p.tag in ("Id", "Name"))


def _spelt(item: Item) -> str:
    """The name of an item in the text."""
    return item.tag.rpartition("}")[2] if isinstance(item, Raw) else item.spelling or item.tag


def _spots(anchor: Container) -> Iterator[_Spot]:
    """Everything below a container, outer before inner, without recursion."""
    stack: list[tuple[Container, tuple[_Step, ...], tuple[tuple[str, int], ...]]] = [(anchor, (), ())]
    while stack:
        parent, steps, path = stack.pop()
        names = [*map(_spelt, parent.items)]
        sparse = {name for name, item in zip(names, parent.items, strict=True)
                  if not isinstance(item, Property) or item.value == ""}
        spelt: dict[str, int] = {}
        tags: dict[str, int] = {}
        for name, item in zip(names, parent.items, strict=True):
            number = spelt[name] = spelt.get(name, -1) + 1
            tags[item.tag] = tags.get(item.tag, 0) + 1
            spot = _Spot((*steps, _Step(name.encode(), number, name not in sparse)),
                         (*path, (item.tag, tags[item.tag])), parent, item)
            yield spot
            if isinstance(item, Container):
                stack.append((item, spot.steps, spot.path))


def _alike(path: tuple[tuple[str, int], ...], steps: list[tuple[str, int]]) -> int:
    """How many steps of a path agree from the start; a step without a number agrees with all of its name."""
    count = 0
    for (tag, number), (name, which) in zip(path, steps, strict=False):
        if tag != name or which not in (0, number):
            break
        count += 1
    return count


def _openings(data: bytes, line: int, name: str) -> list[int]:
    """The start tags of a name that end on the line that starts there, to which the parser counts them."""
    tags = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?:[^\s/<>!?\"'=:]+:)?(%b)(?=[\s/>])%b>" % (
        re.escape(name.encode()), _INNER), re.S)
    end = data.find(b"\n", line)
    end = len(data) if end < 0 else end
    starts = []
    for tag in tags.finditer(data, max(0, data.rfind(b"<", 0, line))):
        if tag.start() > end:
            break
        if tag[1] is not None and line < tag.end() <= end + 1:
            starts.append(tag.start())
    return starts


class _Tags:
    """The start tags inside one element, by steps from it.

    repaired: opening tags stand in place of closing ones, as the reader took them; items: how many there are, of which
    no text has many times as many tags.
    """

    __slots__ = ("_found", "_offsets")

    def __init__(self, data: bytes, at: int, repaired: bool, items: int) -> None:
        self._offsets: list[int] = []
        self._found: dict[tuple[int, bytes, int, bool], int] = {}   # number of the element outside, step -> number
        open_: list[tuple[bytes, int]] = []                 # names, and the elements that hold what stands in them
        counts: dict[tuple[int, bytes, bool], int] = {}
        offsets, numbers = self._offsets, self._found
        for tag in islice(_TAG.finditer(data, at), 8 * items + 1_000):
            closing, name, inner, ends = tag.groups()
            if name is None:
                continue
            if b":" in name:
                name = name.rpartition(b":")[2]
            if closing or (repaired and open_ and open_[-1][0] == name and not inner.strip() and not ends):
                if len(open_) < 2:
                    return
                open_.pop()
                continue
            parent = open_[-1][1] if open_ else -1
            number = len(offsets)
            offsets.append(tag.start())
            for full in (False,) if ends or _is_empty(data, tag.end()) else (False, True):
                count = counts.get((parent, name, full), 0)
                counts[parent, name, full] = count + 1
                numbers[parent, name, count, full] = number
            if not ends:
                open_.append((name, parent if open_ and name in _WRAPPERS else number))
            elif not open_:
                return

    def offset(self, steps: tuple[_Step, ...], at: int) -> int:
        """Where the tag starts that steps lead to; of those that the text does not have the last that it has."""
        element = 0
        for step in steps:
            inner = self._found.get((element, *step))
            if inner is None:
                break
            element = inner
        return self._offsets[element] if self._offsets else at


def _is_empty(data: bytes, at: int) -> bool:
    """Whether nothing stands behind a start tag, which ends there, but the end tag."""
    end = data.find(b"<", at)
    return data.startswith(b"/", end + 1) and (end == at or not data[at:end].strip())
