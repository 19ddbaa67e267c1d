"""Formats ``csv`` and ``jsonl``: one row a job, the columns of ``COLUMNS``, in that order.

A job of several components has one row for each instead, with its id in ``part``. Amounts are those delivered, else
those that stand bare, as for charging; what is not known is empty (csv) or absent (jsonl). Options: ``fields``, a comma
list of columns; ``guard=yes`` (csv) puts an apostrophe before text that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from typing import Any, Final, Literal, NamedTuple

from sssjob.document.element import Container, Property, Value
from sssjob.document.held import as_decimal, held, in_all, per_of, ran
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document, Job, TaskGroup
from sssjob.document.states import has_not_begun
from sssjob.document.units import to_bytes
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.request.in_all import asked_in_all
from sssjob.translators.base import WriteContext
from sssjob.translators.records._usage import Telling
from sssjob.translators.records.base import RecordTranslator, effective_jobs, no_reading

__all__ = ["COLUMNS", "JOBS", "Cell", "Column", "Table", "as_csv", "as_jsonl", "chosen", "rows", "table"]

Cell = str | int | Decimal | None


_ByTag = Mapping[str, Sequence[Property]]


def _by_tag(container: Container) -> _ByTag:
    properties: dict[str, list[Property]] = {}
    for item in container.items:
        if isinstance(item, Property):
            properties.setdefault(item.tag, []).append(item)
    return properties


@dataclass(slots=True)
class _Scope:
    """A job, or one component of it: where names and amounts are looked for, nearest first, and those of Requested.
    is_first: whether no other component stands before it."""

    job: Job
    part: TaskGroup | None
    names: tuple[_ByTag, ...]
    amounts: tuple[_ByTag, ...]
    asked: Container | None
    is_first: bool = True

    def total(self, p: Property) -> Decimal | None:
        """An amount of the whole job or component, though it be one of each node; None where nothing says of how many
        it is."""
        if isinstance(p.value, Decimal) and per_of(p.attributes.get("metric")) is None:
            return p.value
        value = in_all(self.job if self.part is None else self.part, p)
        return None if value is None else as_decimal(value)

    def first(self, tag: str) -> Property | None:
        """The first property of a name, where it stands nearest."""
        for by_tag in self.amounts:
            if tag in by_tag:
                return by_tag[tag][0]
        return None

    def all(self, tag: str) -> Sequence[Property]:
        """All properties of a name, where it stands nearest."""
        return next((by_tag[tag] for by_tag in self.amounts if tag in by_tag), [])

    def name(self, tag: str) -> Value | None:
        """What the job says of a property: what was delivered, else what stands bare (decisions 4, 5)."""
        for by_tag in self.names:
            if tag in by_tag:
                return by_tag[tag][0].value
        return None


class Column(NamedTuple):
    """name; unit or form of its values; where they come from; how."""

    name: str
    unit: str
    source: str
    cell: Callable[[Any], Cell]


class Table(NamedTuple):
    """Columns, and how records become their cells."""

    columns: tuple[Column, ...]
    rows: Callable[[Iterable[Any], tuple[Column, ...], WriteContext], Iterator[list[Cell]]]


def _of_job(tag: str) -> Callable[[_Scope], Cell]:
    return lambda s: s.name(tag)


def _once(tag: str) -> Callable[[_Scope], Cell]:
    """An amount of the whole job, in the row of its first component, so that rows can be added up."""
    return lambda s: s.name(tag) if s.is_first else None


def _amount(tag: str) -> Callable[[_Scope], Cell]:
    return lambda s: None if (p := s.first(tag)) is None else p.value


def _count(tag: str) -> Callable[[_Scope], Cell]:
    def cell(s: _Scope) -> Cell:
        """How many were delivered in all; of a job that does not say so those of its task groups."""
        p = s.first(tag)
        if p is None:
            count = held(s.job, tag) if s.part is None and s.job.task_groups else None
            return None if count is None else as_decimal(count)
        return p.value if not p.attributes else s.total(p)
    return cell


def _wall(s: _Scope) -> Cell:
    stated = s.first("Duration")
    if stated is not None:
        return stated.value
    seconds = ran(s.job)
    return None if seconds is None else as_decimal(seconds)


def _asked(tag: Literal["Processors", "NodeCount", "Duration"]) -> Callable[[_Scope], Cell]:
    def cell(s: _Scope) -> Cell:
        """What is asked for in all, of a component what stands in it."""
        p = None if s.asked is None else s.asked.first(tag)
        if s.part is None:
            if not s.job.task_groups and (p is None or not p.attributes) and s.amounts is s.names:
                return None if p is None else p.value
            count = asked_in_all(s.job, tag)
            return None if count is None else as_decimal(count)
        count = None if p is None or s.asked is None else in_all(s.asked, p)
        return None if count is None else as_decimal(count)
    return cell


def _fact(name: str) -> Callable[[_Scope], Cell]:
    """An Extension of type LRM."""
    return lambda s: next((p.text for p in s.names[-1].get("Extension", ())
                           if p.get("name") == name and p.get("type") == "LRM"), None)


def _whole(name: str) -> Callable[[_Scope], Cell]:
    get = _fact(name)
    return lambda s: int(text) if isinstance(text := get(s), str) and text.isdecimal() and text.isascii() else None


def _bytes(metric: str) -> Callable[[_Scope], Cell]:
    def cell(s: _Scope) -> Cell:
        """The bytes of the Memory with that metric; None without one."""
        for p in s.all("Memory"):
            stated = p.get("metric", "Total")
            if ("Total" if per_of(stated) else stated) == metric and (size := s.total(p)) is not None:
                try:
                    return to_bytes(size, p.get("units"))
                except LexicalError:
                    return None     # an unknown unit: reported when the document was read (SSS206)
        return None
    return cell


def _resource(name: str, attribute: str = "") -> Callable[[_Scope], Cell]:
    """The sum of the Resources of that name, or a comma list of one of their attributes."""
    def cell(s: _Scope) -> Cell:
        """The sum, or the list, for one job."""
        resources = [p for p in s.all("Resource") if p.get("name") == name]
        if attribute:
            return ",".join(filter(None, (p.get(attribute) for p in resources))) or None
        return sum((s.total(p) or Decimal(0) for p in resources), Decimal(0)) if resources else None
    return cell


#: The columns of a row. Times are epoch seconds UTC.
COLUMNS: Final = (
    Column("machine", "name", "Machine", _of_job("Machine")),
    Column("id", "text", "Id", _of_job("Id")),
    Column("array_index", "text", "Extension ArrayIndex", _fact("ArrayIndex")),
    Column("part", "text", "Id of the TaskGroup", lambda s: None if s.part is None else s.part.value("Id")),
    Column("name", "text", "Name", _of_job("Name")),
    Column("user", "name", "User", _of_job("User")),
    Column("group", "name", "Group", _of_job("Group")),
    Column("project", "name", "Project", _of_job("Project")),
    Column("queue", "name", "Queue", _of_job("Queue")),
    Column("qos", "name", "QualityOfService", _of_job("QualityOfService")),
    Column("reservation", "name", "Reservation", _of_job("Reservation")),
    Column("submit", "epoch s", "SubmitTime", _of_job("SubmitTime")),
    Column("eligible", "epoch s", "Extension EligibleStamp", _whole("EligibleStamp")),
    Column("start", "epoch s", "StartTime", _of_job("StartTime")),
    Column("end", "epoch s", "EndTime", _of_job("EndTime")),
    Column("starts", "count", "StartCount", _of_job("StartCount")),
    Column("wall_s", "s", "Duration, delivered", _wall),
    Column("suspend_s", "s", "SuspendDuration", _of_job("SuspendDuration")),
    Column("cpu_s", "s", "CpuDuration", _once("CpuDuration")),
    Column("processors", "count", "Processors, delivered", _count("Processors")),
    Column("nodes", "count", "NodeCount, delivered", _count("NodeCount")),
    Column("node_list", "text", "Node, delivered", _amount("Node")),
    Column("gpus", "count", "Resource GPU, delivered, all types", _resource("GPU")),
    Column("gpu_types", "comma list", "types of Resource GPU", _resource("GPU", "type")),
    Column("mem_total_bytes", "B", "Memory metric=Total, delivered", _bytes("Total")),
    Column("mem_max_bytes", "B", "Memory metric=Max, delivered", _bytes("Max")),
    Column("energy_j", "J", "Resource Energy, delivered", _resource("Energy")),
    Column("billing", "count", "Resource Billing, delivered", _resource("Billing")),
    Column("requested_wall_s", "s", "Duration, requested", _asked("Duration")),
    Column("requested_processors", "count", "Processors, requested", _asked("Processors")),
    Column("requested_nodes", "count", "NodeCount, requested", _asked("NodeCount")),
    Column("exit_code", "0 to 255", "ExitCode", _of_job("ExitCode")),
    Column("signal", "number", "Extension ExitSignal", _whole("ExitSignal")),
    Column("state", "word", "State", _of_job("State")),
    Column("raw_state", "text", "Extension State: the manager's word", _fact("State")),
    Column("message", "text", "StatusMessage", _of_job("StatusMessage")),
    Column("charge", "number", "Charge", _once("Charge")),
)
_TAGS: Final = frozenset(word.strip(",") for c in COLUMNS for word in c.source.split()[:1]) - {"Extension", "types"}
_FACTS: Final = frozenset(c.source.split()[1].rstrip(":") for c in COLUMNS if c.source.startswith("Extension"))


def chosen(context: WriteContext, columns: tuple[Column, ...] = COLUMNS) -> tuple[Column, ...]:
    """The columns that the option ``fields`` names, else all."""
    text = context.options.get("fields")
    if not text:
        return columns
    columns_known = {c.name: c for c in columns}
    unknown = [n for n in text.split(",") if n not in columns_known]
    if unknown:
        raise UsageError(f"no column {escape(unknown[0], 60)!r} (known: {', '.join(columns_known)})")
    return tuple(columns_known[n] for n in text.split(","))


def rows(jobs: Iterable[Job], columns: tuple[Column, ...], context: WriteContext) -> Iterator[list[Cell]]:
    """The cells of each row; what has no column is told."""
    telling = Telling(context)
    for job in jobs:
        _lost(job, telling)
        for scope in _scopes(job):
            yield [c.cell(scope) for c in columns]


def _scopes(job: Job) -> Iterator[_Scope]:
    parts = [g for g in job.task_groups if g.delivered]
    bare = _by_tag(job)
    names = (*map(_by_tag, job.containers("Delivered")), bare)
    if not parts:
        waits = "State" in bare and has_not_begun(bare["State"][0].value)
        yield _Scope(job, None, names, names[:-1] if waits else names, job.requested)
    for part in parts:
        delivered = part.delivered
        assert delivered is not None
        own = _by_tag(delivered)
        yield _Scope(job, part, (own, *names), (own,), part.requested, part is parts[0])


def _lost(job: Job, telling: Telling) -> None:
    """Tell once of each property that has no column."""
    for item in job.items:
        name = item.tag
        if isinstance(item, Property) and name == "Extension":
            name = item.get("name", "") or ""
            if name in _FACTS and item.get("type") == "LRM":
                continue
            name = f"Extension {name}"
        elif name in _TAGS or name in ("Requested", "Delivered", "TaskGroup"):
            continue
        telling.tell("SSS501", name, f"no column for {escape(name, 80)}", getattr(job, "line", 0))


def _plain(value: Value | None) -> str | int | None:
    """A number as short as it can be; amounts that are whole as integers."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else format(value.normalize(), "f")
    return value


#: The table of jobs.
JOBS: Final = Table(COLUMNS, rows)


def as_jsonl(records: Iterable[Any], context: WriteContext, table: Table = JOBS) -> Iterator[str]:
    """A JSON object a line; UsageError for an unknown column."""
    columns = chosen(context, table.columns)
    names = [c.name for c in columns]

    def pieces() -> Iterator[str]:
        """One line for each row, without its empty cells."""
        for row in table.rows(records, columns, context):
            cells = {n: _number(v) for n, v in zip(names, row, strict=True) if v is not None}
            yield json.dumps(cells, ensure_ascii=False, separators=(",", ":")) + "\n"
    return pieces()


def _number(value: Cell) -> str | int | float | None:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def as_csv(records: Iterable[Any], context: WriteContext, table: Table = JOBS) -> Iterator[str]:
    """A line of names, then a line a row; UsageError for an unknown column."""
    columns = chosen(context, table.columns)
    guard = context.options.get("guard", "no")
    if guard not in ("yes", "no"):
        raise UsageError(f"guard is yes or no, not {escape(guard, 40)!r}")

    def pieces() -> Iterator[str]:
        """The lines, some 64 KiB at a time."""
        buffer = StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([c.name for c in columns])
        for row in table.rows(records, columns, context):
            cells = [_plain(v) for v in row]
            if guard == "yes":
                cells = [f"'{c}" if isinstance(c, str) and c.startswith(("=", "+", "-", "@", "\t", "\r")) else c
                         for c in cells]
            writer.writerow(cells)
            if buffer.tell() > 1 << 16:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
        yield buffer.getvalue()
    return pieces()


def table(name: str, title: str, texts: Callable[[Iterable[Any], WriteContext], Iterator[str]],
          rows: Callable[[Iterable[Any], WriteContext, Table], Iterator[str]]) -> RecordTranslator:
    """The translator of a table that is written by ``texts``."""

    def write(document: Document, context: WriteContext) -> str:
        """The rows of all jobs as one text."""
        return "".join(texts(effective_jobs(document), context))

    return RecordTranslator(name, title, "record", no_reading, write, (f".{name}",), texts=texts, rows=rows)
