"""Columns of many jobs at once: rows of typed values, or an Arrow table, without building an object for each property.

A column is the name of a property (``User``), or of one in a category (``Delivered/Duration``); without a category a
column reads Delivered, else the bare property, as charging does. Default inheritance from JobDefaults is applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.xml._aside import AsideTree, InOrder
from sssjob.xml._pieces import Thought, cut, plain_text, start_of
from sssjob.xml._sheet import JOBS, Column, Row, Sheet, Table, Wrong
from sssjob.xml.reader import Source, parse_tree, read_bytes

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
