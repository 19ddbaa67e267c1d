"""The columns of a table of jobs, and how they are read: from an element, or from the text of a job.

What has no column is passed over; in the text, what takes thought is the business of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lxml import etree

from sssjob.document.element import Value
from sssjob.document.lexical import LexicalError
from sssjob.document.values import typed
from sssjob.document.vocabulary import Element, aliases, in_scope
from sssjob.errors import UsageError
from sssjob.xml._pieces import PieceLevel, Thought
from sssjob.xml._shapes import Plans, cut_up, joined, leaves_of
from sssjob.xml.xmlio import parser

__all__ = ["JOBS", "Column", "Row", "Sheet", "Table", "Wrong"]

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
