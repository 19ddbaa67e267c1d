"""Columns of many jobs at once: rows of typed values, or an Arrow table, without building an object for each property.

A column is the name of a property (``User``), or of one in a category (``Delivered/Duration``); without a category a
column reads Delivered, else the bare property, as charging does. Default inheritance from JobDefaults is applied.

A column is read from an element, or from the text of a job. What has no column is passed over; in the text, what takes
thought is the business of a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lxml import etree

from sssjob.document.element import Value
from sssjob.document.lexical import LexicalError
from sssjob.document.values import typed
from sssjob.document.vocabulary import Element, aliases, in_scope
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.xml._aside import AsideTree, InOrder
from sssjob.xml._pieces import PieceLevel, Thought, cut, plain_text, start_of
from sssjob.xml._shapes import Plans, cut_up, joined, leaves_of
from sssjob.xml.reader import Source, parse_tree, read_bytes
from sssjob.xml.xmlio import parser

__all__ = ["ACCOUNTING", "Row", "arrow", "rows"]


#: The columns that charging asks for.
ACCOUNTING: Final = ("Id", "User", "Project", "Machine", "Queue", "StartTime", "EndTime", "Duration", "Processors")

_JOB: Final = re.compile("<[Jj]ob")
_GROUPS: Final = "//*[local-name()='JobGroup'] | //*[local-name()='Data'][*[local-name()='Job' or local-name()='job']]"


def rows(source: Source, columns: Sequence[str] = ACCOUNTING, *, path: str = "-", limits: Limits = LIMITS,
         findings: Findings | None = None) -> Iterator[Row]:
    """One tuple a job, in document order; None where the job does not state a column.

    Raises UsageError for an unknown column, RejectedError for a value that is not of its type, and as parse_tree.
    """
    collected = Findings(path, limits) if findings is None else findings
    table = Table([Column(c) for c in columns])
    data = read_bytes(source, path, limits)
    listed: Iterator[Row | Wrong]
    try:
        listed = iter(_by_text(table, data, limits))
    except Thought:
        listed = _by_tree(table, parse_tree(data, path=path, limits=limits, findings=collected))
    for row in listed:
        if isinstance(row, Wrong):
            collected.add("SSS201", "Job", row.message, line=row.line)
            raise RejectedError(list(collected))
        yield row


def _by_text(table: Table, data: bytes, limits: Limits) -> list[Row | Wrong]:
    """The rows of the one group of a document, by its text. Raises Thought where it takes the tree of all of it."""
    text = plain_text(data, limits)
    if text is None or text.prefixed:
        raise Thought
    group = text if text.name == "JobGroup" else start_of(text, "JobGroup") or start_of(text, "Data")
    if group is None or (group.name == "Data" and "<JobGroup" in text.text):
        raise Thought
    tree = AsideTree(text, data, limits)
    sheet, listed = Sheet(table), list[Row | Wrong]()
    careful = _Careful(table, tree.child if group is text else _later(tree, group.name), listed)
    end = cut(group, sheet, limits.depth, lambda number, *_: careful.add(number), listed)
    if group is not text and (_JOB.search(text.text, 0, group.begin + 1) or _JOB.search(text.text, end)):
        raise Thought
    tree.check()
    return [_filled(row, sheet.defaults) for row in listed] if sheet.defaults else listed


class _Careful:
    """Adds the rows of jobs that take thought, by their elements."""

    def __init__(self, table: Table, child: Callable[[int], Any], listed: list[Row | Wrong]) -> None:
        self.table = table
        self.child = child
        self.listed = listed
        self.names: Any = None

    def add(self, number: int) -> None:
        """Add the row of a child of the group. Raises Thought for defaults, which hold for all."""
        element = self.child(number)
        space, end, local = element.tag.rpartition("}")
        if local == "JobDefaults":
            raise Thought
        if local in JOBS:
            self.names = self.names or self.table.names(space + end)
            self.listed.append(self.table.row(element, self.names))


def _later(tree: AsideTree, name: str) -> Callable[[int], Any]:
    """The children of the only element of that name, in a tree that is made when the first is asked for."""
    children: list[InOrder] = []

    def child(number: int) -> Any:
        """The child of that number."""
        if not children:
            children.append(InOrder(next(tree.root().iter(f"{{*}}{name}"))))
        return children[0](number)

    return child


def _by_tree(table: Table, root: Any) -> Iterator[Row | Wrong]:
    """The rows of all jobs of a document. Raises Wrong, as a value, where a value is not of its type."""
    whole = root.tag.rpartition("}")[2] in ("JobGroup", *JOBS)
    for group in [root] if whole else root.xpath(_GROUPS):
        space, end, local = group.tag.rpartition("}")
        space += end
        names, jobs = table.names(space), [f"{space}{name}" for name in JOBS]
        defaults = [table.row(d, names) for d in group.iterchildren(f"{space}JobDefaults")]
        for job in [group] if local in JOBS else group.iterchildren(*jobs):
            yield _filled(table.row(job, names), defaults)


def _filled(row: Row | Wrong, defaults: Sequence[Row | Wrong]) -> Row | Wrong:
    """The row with the values of the defaults where it has none; what is wrong with either."""
    for default in defaults:
        if isinstance(row, Wrong):
            break
        row = default if isinstance(default, Wrong) else tuple(
            [d if v is None else v for v, d in zip(row, default, strict=True)])
    return row


def arrow(source: Source, columns: Sequence[str] = ACCOUNTING, *, path: str = "-", limits: Limits = LIMITS) -> Any:
    """The same as a pyarrow.Table: int64, decimal128 (as wide as needed), bool and string columns.

    Needs the extra ``tables``; UsageError says so where pyarrow is absent.
    """
    try:
        import pyarrow
    except ImportError:
        raise UsageError("Arrow tables need pyarrow: pip install 'sssjob[tables]'") from None
    kinds: dict[str, Callable[[], Any]] = {"String": pyarrow.string, "Boolean": pyarrow.bool_}
    listed = list(rows(source, columns, path=path, limits=limits))
    by_column = list(zip(*listed, strict=True)) if listed else [() for _ in columns]
    arrays = []
    for column, values in zip((Column(c) for c in columns), by_column, strict=True):
        kind = kinds.get(column.row.type, pyarrow.int64)() if column.row.type != "Float" else None
        arrays.append(pyarrow.array(values, type=kind))
    return pyarrow.Table.from_arrays(arrays, names=list(columns))


Row = tuple[Value | None, ...]
_Places = dict[str, tuple[int, ...]]
_Texts = list[str | None]

JOBS: Final = ("Job", "job")
_BLOCKS: Final = ("Delivered", "Requested")
_KEPT: Final = 50_000       # values that a column keeps
_SHAPES: Final = 2_000      # shapes of elements that are kept
_MARK: Final = "\ue000"     # private to its user


class Column:
    """Where a column stands and how its text becomes a value; seen texts are kept."""

    __slots__ = ("category", "kept", "name", "row")

    def __init__(self, text: str) -> None:
        category, _, name = text.rpartition("/")
        scope = in_scope("Job")
        name = aliases("Job").get(name, name) if name not in scope else name
        if name not in scope or category not in ("", *_BLOCKS):
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
        value = self.kept.get(text)
        if value is None:
            value, _ = typed(row, text, True)
            if len(self.kept) < _KEPT:
                self.kept[text] = value
        return value


def places(columns: Sequence[Column], category: str) -> dict[str, tuple[int, ...]]:
    """What is looked for in a job (category: empty) or in a block of it: name -> numbers of the columns."""
    named: dict[str, tuple[int, ...]] = {}
    for number, column in enumerate(columns):
        bare = category == "Delivered" and not column.category and "D" in column.row.categories
        if column.category == category or bare:
            for name in (column.name, *(a for a, name in aliases("Job").items() if name == column.name)):
                named[name] = (*named.get(name, ()), number)
    return named


class Table:
    """Fills rows from the elements of jobs."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.bare = places(columns, "")
        self.blocks = {name: index for name in _BLOCKS if (index := places(columns, name))}

    def names(self, space: str) -> tuple[_Places, dict[str, _Places]]:
        """What is looked for in a job, and in its blocks. space: ``{namespace}`` of the names, or empty."""
        def inside(index: _Places) -> _Places:
            """The places by names in the namespace."""
            return {f"{space}{name}": at for name, at in index.items()}

        return inside(self.bare), {f"{space}{name}": inside(index) for name, index in self.blocks.items()}

    def texts(self, job: Any, bare: _Places, in_blocks: dict[str, _Places]) -> _Texts:
        """The texts of one job's columns. Of its own texts the first counts, of a block the last, which goes before."""
        row: _Texts = [None] * len(self.columns)
        blocks = []
        for child in job:
            tag = child.tag
            if tag in bare:
                for at in bare[tag]:
                    if row[at] is None:
                        row[at] = child.text
            elif tag in in_blocks:
                blocks.append((child, in_blocks[tag]))
        for block, index in blocks:
            for child in block:
                for at in index.get(child.tag, ()):
                    row[at] = child.text
        return row

    def row(self, job: Any, names: tuple[_Places, dict[str, _Places]]) -> Row | Wrong:
        """The values of one job's columns, or what is wrong with one of them."""
        try:
            return tuple([None if text is None else column.value(text)
                          for column, text in zip(self.columns, self.texts(job, *names), strict=True)])
        except LexicalError as error:
            return Wrong(str(error), job.sourceline)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A job with a value that is not of its type, and its line."""

    message: str
    line: int


class _Cells(dict[str, Value | None]):
    """Text -> value of one column: a text read before costs one look-up."""

    __slots__ = ("column", "numbers", "room")

    def __init__(self, column: Column) -> None:
        super().__init__()
        self.numbers = column.row.type not in ("String", "Float")
        self.column = column
        self.room = 0 if column.row.type == "DateTime" or column.name == "Id" else _KEPT

    def __missing__(self, text: str) -> Value:
        """The value of another text. Raises Thought."""
        if self.numbers and not self.room and text.isdigit() and len(text) < 19 and text.isascii():
            return int(text)
        if "&" in text or not text.strip():
            raise Thought
        try:
            value = self.column.value(text)
        except LexicalError:
            raise Thought from None
        if self.room:
            self.room -= 1
            self[text] = value
        return value


#: How the elements of one shape are read: their name, and for each column its cells and which of the parts is its own.
_Plan = tuple[str, list[tuple[dict[str, Value | None], int]]]


class Sheet(PieceLevel):
    """The children of a group of jobs: jobs become rows, and their defaults are kept apart.

    A program writes all jobs in a few shapes. The text of an element is cut at ``>`` and ``</``; its shape is all that
    comes out but the texts of properties. An element of a new shape is parsed once, with a mark in place of each text,
    which shows where the columns are. That holds for all of the shape: the texts stand between a start tag and an end
    tag of it, where a well-formed document has no ``<``.
    """

    __slots__ = ("_cells", "_plans", "defaults", "table")

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.defaults: list[Row] = []
        self._cells = [_Cells(c) for c in table.columns]
        self._plans: Plans[_Plan] = Plans(_SHAPES)

    def element(self, text: str, line: int, depth: int) -> tuple[list[Any], int]:
        """The row of a job, and the number of its last line. Raises Thought."""
        parts = cut_up(text)
        plan = self._plans.of(parts)
        if plan is None:
            plan = self._learned(parts)
        name, cells = plan
        line += text.count("\n")
        if name in JOBS:
            return [tuple([cell[parts[at]] for cell, at in cells])], line
        if name == "JobDefaults":
            self.defaults.append(tuple([cell[parts[at]] for cell, at in cells]))
        return [], line

    def _learned(self, parts: list[str]) -> _Plan:
        """How the elements of a new shape are read. Raises Thought."""
        marks = {f"{_MARK}{at}": at for at in leaves_of(parts)}
        marked = parts.copy()
        for mark, at in marks.items():
            marked[at] = mark
        try:
            element: Any = etree.fromstring(joined(marked), parser())
        except (etree.XMLSyntaxError, ValueError):
            raise Thought from None
        if not self._plans.room or [e.text for e in element.iter() if e.text in marks] != list(marks):
            raise Thought
        cells: list[tuple[dict[str, Value | None], int]] = []
        for cell, text in zip(self._cells, self.table.texts(element, *self.table.names("")), strict=True):
            if text is not None and text not in marks:
                raise Thought
            cells.append(({parts[0]: None}, 0) if text is None else (cell, marks[text]))
        plan = element.tag, cells
        self._plans.keep(parts, set(marks.values()), plan)
        return plan
