"""Columns of many jobs at once: rows of typed values, or an Arrow table, without building an object for each property.

A column is the name of a property (``User``), or of one in a category (``Delivered/Duration``); without a category a
column reads Delivered, else the bare property, as charging does. Default inheritance from JobDefaults is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from sssjob.element import Value
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.lexical import LexicalError
from sssjob.limits import LIMITS, Limits
from sssjob.reader import Source, parse_tree, read_bytes
from sssjob.values import typed
from sssjob.vocabulary import Element, aliases, in_scope

__all__ = ["ACCOUNTING", "Row", "arrow", "rows"]

Row = tuple[Value | None, ...]
_Texts = list[str | None]

#: The columns that charging asks for.
ACCOUNTING: Final = ("Id", "User", "Project", "Machine", "Queue", "StartTime", "EndTime", "Duration", "Processors")

_JOBS: Final = ("Job", "job")
_GROUPS: Final = "//*[local-name()='JobGroup'] | //*[local-name()='Data'][*[local-name()='Job' or local-name()='job']]"


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
        self.blocks = {"Delivered": self._index("Delivered") | {
            k: v for k, v in self.bare.items() if "D" in self.columns[v].row.categories},
            "Requested": self._index("Requested")}

    def _index(self, category: str) -> dict[str, int]:
        found = {}
        for i, column in enumerate(self.columns):
            if column.category == category:
                found[column.name] = i
                found |= {alias: i for alias, name in aliases("Job").items() if name == column.name}
        return found

    def names(self, space: str) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """What is looked for in a job, and in its blocks. space: ``{namespace}`` of the names, or empty."""
        def inside(index: dict[str, int]) -> dict[str, int]:
            return {f"{space}{name}": at for name, at in index.items()}

        return inside(self.bare), {f"{space}{name}": inside(index) for name, index in self.blocks.items() if index}

    def texts(self, job: Any, bare: dict[str, int], in_blocks: dict[str, dict[str, int]]) -> _Texts:
        """The texts of one job's columns. Of its own texts the first counts, of a block the last, which goes before."""
        row: _Texts = [None] * len(self.columns)
        blocks = []
        for child in job:
            tag = child.tag
            if tag in bare:
                if row[bare[tag]] is None:
                    row[bare[tag]] = child.text
            elif tag in in_blocks:
                blocks.append((child, in_blocks[tag]))
        for block, index in blocks:
            for child in block:
                tag = child.tag
                if tag in index:
                    row[index[tag]] = child.text
        return row


def rows(source: Source, columns: Sequence[str] = ACCOUNTING, *, path: str = "-", limits: Limits = LIMITS,
         findings: Findings | None = None) -> Iterator[Row]:
    """One tuple a job, in document order; None where the job does not state a column.

    Raises UsageError for an unknown column, RejectedError for a value that is not of its type, and as parse_tree.
    """
    found = Findings(path, limits) if findings is None else findings
    table = _Table(columns)
    data = read_bytes(source, path, limits)
    root = parse_tree(data, path=path, limits=limits, findings=found)
    whole = root.tag.rpartition("}")[2] in ("JobGroup", *_JOBS)
    for group in [root] if whole else root.xpath(_GROUPS):
        space, end, local = group.tag.rpartition("}")
        space += end
        names, jobs = table.names(space), [f"{space}{name}" for name in _JOBS]
        defaults = [table.texts(d, *names) for d in group.iterchildren(f"{space}JobDefaults")]
        for job in [group] if local in _JOBS else group.iterchildren(*jobs):
            yield _typed(table.columns, _filled(table.texts(job, *names), defaults), job.sourceline, found)


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
