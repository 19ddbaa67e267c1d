"""Columns of many jobs at once: rows of typed values, or an Arrow table, without building an object for each property.

A column is the name of a property (``User``), or of one in a category (``Delivered/Duration``); without a category a
column reads Delivered, else the bare property, as charging does. Default inheritance from JobDefaults is applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from lxml import etree

from sssjob._lines import Lines, lines_of
from sssjob.element import Value
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.lexical import LexicalError
from sssjob.limits import LIMITS, Limits
from sssjob.reader import Source, parse_tree, read_bytes
from sssjob.values import typed
from sssjob.vocabulary import Element, aliases, in_scope
from sssjob.xmlio import parser

__all__ = ["ACCOUNTING", "Row", "arrow", "rows"]

Row = tuple[Value | None, ...]
_Texts = list[str | None]

#: The columns that charging asks for.
ACCOUNTING: Final = ("Id", "User", "Project", "Machine", "Queue", "StartTime", "EndTime", "Duration", "Processors")

_DEFAULTS: Final = re.compile(r"<JobDefaults[ >].*?</JobDefaults>", re.S)
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_ATTRIBUTES: Final = re.compile(r'(?: [\w.-]+="[^"]*")*')
_SEEN: Final = 20_000       # lines kept


@dataclass(slots=True)
class _Head:
    """A property: its column, its end tag, and how many more of its lines are kept: what varies more rarely repeats."""

    at: int | None
    end: str
    room: int = 500


class _Level:
    """What the lines in one container of a job say to a table.

    ``seen``: line -> column and text, () for nothing, a _Level for the start of a container, None for the end;
    ``heads``: start of a line, as far as ``>``, of a property. Both keep only the first that come.
    """

    __slots__ = ("end", "heads", "inner", "name", "places", "seen")

    def __init__(self, name: str, places: dict[str, int], inner: dict[str, _Level]) -> None:
        self.name = name
        self.places = places
        self.inner = inner
        self.end = f"</{name}>"
        self.seen: dict[str, _Said] = {}
        self.heads: dict[str, _Head] = {}

    def look(self, line: str) -> _Said:
        """What a line says. Raises _Thought."""
        start, _, rest = line.partition(">")
        head = self.heads.get(start)
        if head is None:
            learned = self._learn(start.strip(" \t"), rest.strip(" \t"))
            if not isinstance(learned, _Head):
                if len(self.seen) < _SEEN:
                    self.seen[line] = learned
                return learned
            head = learned
            if len(self.heads) < _SEEN:
                self.heads[start] = head
        text, _, close = rest.partition("<")
        if (close != head.end and close.rstrip(" \t") != head.end) or not text:
            raise _Thought
        said: _Said = () if head.at is None else (head.at, text)
        if head.room:
            head.room -= 1
            self.seen[line] = said
        return said

    def _learn(self, head: str, rest: str) -> _Head | _Level | None:
        """The column and end tag of a property, or the start or end of a container. Raises _Thought."""
        name, _, attributes = head[1:].partition(" ")
        if attributes and ("xmlns" in head or not _ATTRIBUTES.fullmatch(f" {attributes}")):
            raise _Thought
        if f"{head}>" == self.end and not rest:
            return None
        if not _NAME.fullmatch(name) or head[0] != "<":
            raise _Thought
        if not rest:
            return self.inner.get(name) or _Level(name, {}, {})
        return _Head(self.places.get(name), f"/{name}>")

    def skip(self, lines: Iterator[str]) -> None:
        """Pass over the container to its end. Raises _Thought when another of the same name may stand in it."""
        for line in lines:
            if self.name in line:
                if line.strip(" \t") != self.end:
                    raise _Thought
                return


class _Thought(Exception):
    """The lines do not tell it: ask a tree."""


_Said = tuple[int, str] | tuple[()] | _Level | None
_UNSEEN: Final = _Level("", {}, {})


class _Column:
    """Where a column stands and how its text becomes a value; seen texts are kept."""

    __slots__ = ("category", "kept", "name", "row")

    def __init__(self, text: str) -> None:
        category, _, name = text.rpartition("/")
        scope = in_scope("Job")
        name = aliases("Job").get(name, name) if name not in scope else name
        if name not in scope or category not in ("", "Requested", "Delivered"):
            raise UsageError(f"unknown column {text!r} (a property of Job, or Requested/... or Delivered/...)")
        self.category = category
        self.name = name
        self.row: Element = scope[name]
        self.kept: dict[str, Value] = {}

    def value(self, text: str) -> Value:
        """The typed value; LexicalError when the text is not of the type."""
        row = self.row
        if row.type == "String":
            return text if row.verbatim else text.strip()
        if len(text) < 19 and text.isdigit() and text.isascii():
            return Decimal(text) if row.type == "Float" else int(text)
        found = self.kept.get(text)
        if found is None:
            found, _ = typed(row, text, True)
            if len(self.kept) < 50_000:
                self.kept[text] = found
        return found


class _Table:
    """Fills rows from the elements of jobs."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = [_Column(c) for c in columns]
        self.bare = self._index("")
        self.delivered = self._index("Delivered") | {k: v for k, v in self.bare.items()
                                                     if "D" in self.columns[v].row.categories}
        self.requested = self._index("Requested")
        blocks = {"Delivered": _Level("Delivered", self.delivered, {})}
        if self.requested:
            blocks["Requested"] = _Level("Requested", self.requested, {})
        self.job = _Level("Job", self.bare, blocks)

    def _index(self, category: str) -> dict[str, int]:
        found = {}
        for i, column in enumerate(self.columns):
            if column.category == category:
                found[column.name] = i
                found |= {alias: i for alias, name in aliases("Job").items() if name == column.name}
        return found

    def texts_of_lines(self, lines: list[str]) -> _Texts | None:
        """The texts of one job's columns by its lines; None: they do not tell it."""
        row: _Texts = [None] * len(self.columns)
        rest = iter(lines)
        try:
            _fill(row, rest, self.job, first=True)
        except _Thought:
            return None
        return row if next(rest, None) is None else None

    def texts(self, job: Any) -> _Texts:
        """The texts of one job's columns."""
        row: _Texts = [None] * len(self.columns)
        bare = self.bare
        blocks = []
        for child in job:
            tag = child.tag
            if tag in bare:
                if row[bare[tag]] is None:
                    row[bare[tag]] = child.text
            elif tag == "Delivered":
                blocks.append((child, self.delivered))
            elif tag == "Requested" and self.requested:
                blocks.append((child, self.requested))
        for block, index in blocks:
            for child in block:
                tag = child.tag
                if tag in index:
                    row[index[tag]] = child.text
        return row


def _fill(row: _Texts, lines: Iterator[str], level: _Level, first: bool) -> None:
    """Put the texts of a container where they belong, up to its end. first: only where nothing is yet."""
    seen, look = level.seen.get, level.look
    for line in lines:
        said = seen(line, _UNSEEN)
        if said is _UNSEEN:
            said = look(line)
        if not said:
            if said is None:
                return
        elif isinstance(said, tuple):
            at, text = said
            if not first or row[at] is None:
                row[at] = text
        elif said.places:
            _fill(row, lines, said, first=False)
        else:
            said.skip(lines)
    raise _Thought


def rows(source: Source, columns: Sequence[str] = ACCOUNTING, *, path: str = "-", limits: Limits = LIMITS,
         findings: Findings | None = None) -> Iterator[Row]:
    """One tuple a job, in document order; None where the job does not state a column.

    Raises UsageError for an unknown column, RejectedError for a value that is not of its type, and as parse_tree.
    """
    found = Findings(path, limits) if findings is None else findings
    table = _Table(columns)
    data = read_bytes(source, path, limits)
    done = 0
    lines = lines_of(data, limits)
    if lines is not None:
        try:
            for texts, line in _by_lines(table, lines):
                yield _typed(table.columns, texts, line, found)
                done += 1
            return
        except etree.XMLSyntaxError:
            pass        # its jobs do not stand apart: the rest by the tree
    root = parse_tree(data, path=path, limits=limits, findings=found)
    for texts, line in islice(_by_tree(table, root), done, None):
        yield _typed(table.columns, texts, line, found)


def _by_tree(table: _Table, root: Any) -> Iterator[tuple[_Texts, int]]:
    groups = [root] if root.tag in ("JobGroup", "Job") else root.xpath("//JobGroup | //Data[Job]")
    for group in groups:
        defaults = [table.texts(d) for d in group.findall("JobDefaults")]
        for job in [group] if group.tag == "Job" else group.iterchildren("Job"):
            yield _filled(table.texts(job), defaults), job.sourceline


def _by_lines(table: _Table, lines: Lines) -> Iterator[tuple[_Texts, int]]:
    """The same from a document that has one property a line. Raises XMLSyntaxError when a part is no whole."""
    parts = [etree.fromstring(part, parser()) for part in _DEFAULTS.findall(lines.text)]
    defaults = [table.texts(d) for d in parts]
    for line, plain, text in lines.segments():
        row = table.texts_of_lines(plain) if plain is not None and "&" not in text else None
        if row is not None:
            yield _filled(row, defaults), line
        elif text.strip():
            root: Any = etree.fromstring(f"<JobGroup>{text}</JobGroup>", parser())
            for job in root.iterchildren("Job"):
                yield _filled(table.texts(job), defaults), line + job.sourceline - 1


def _filled(texts: _Texts, defaults: list[_Texts]) -> _Texts:
    for default in defaults:
        texts = [d if t is None else t for t, d in zip(texts, default, strict=True)]
    return texts


def _typed(columns: list[_Column], texts: _Texts, line: int, findings: Findings) -> Row:
    try:
        return tuple([None if t is None else c.value(t) for c, t in zip(columns, texts, strict=True)])
    except LexicalError as error:
        findings.add("SSS201", "Job", str(error), line=line)
        raise RejectedError(list(findings)) from None


def arrow(source: Source, columns: Sequence[str] = ACCOUNTING, *, path: str = "-", limits: Limits = LIMITS) -> Any:
    """The same as a pyarrow.Table: int64, decimal128 (as wide as needed), bool and string columns.

    Needs the extra ``tables``; UsageError says so where pyarrow is absent.
    """
    try:
        import pyarrow
    except ImportError:
        raise UsageError("Arrow tables need pyarrow (pip install 'sssjob[tables]')") from None
    kinds: dict[str, Callable[[], Any]] = {"String": pyarrow.string, "Boolean": pyarrow.bool_}
    listed = list(rows(source, columns, path=path, limits=limits))
    by_column = list(zip(*listed, strict=True)) if listed else [() for _ in columns]
    arrays = []
    for column, values in zip((_Column(c) for c in columns), by_column, strict=True):
        kind = kinds.get(column.row.type, pyarrow.int64)() if column.row.type != "Float" else None
        arrays.append(pyarrow.array(values, type=kind))
    return pyarrow.Table.from_arrays(arrays, names=list(columns))
