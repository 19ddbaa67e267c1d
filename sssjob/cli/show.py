"""``sssjob show``: a document as tables for a reader, times in UTC."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import coloured, width
from sssjob.cli._options import Session, common, reading
from sssjob.cli._records import records
from sssjob.cli._tables import table
from sssjob.findings import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sssjob.cli._records import Values

__all__ = ["command"]

_HEAD: Final = ("Id", "Name", "State")
#: Longer values go on in a further line of their cell.
_PIECE: Final = 180


@click.command("show")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--origins", is_flag=True, help="Effective values, defaults folded in, and where each comes from.")
@click.option("--brief", is_flag=True, help="One line a job: state, exit code, seconds and processors.")
@click.option("--secrets", is_flag=True, help="Show variables whose names look secret (else masked).")
@common
@reading
def command(session: Session, file: str, origins: bool, brief: bool, secrets: bool) -> int:
    """Show the jobs of FILE (- is standard input): what was requested, what was delivered, states and times."""
    with session.opened(file) as document:
        shown = records(document, origins=origins, secrets=secrets, inherited=brief and not session.as_json)
        if session.as_json:
            _write(json.dumps(r) for r in shown)
        elif brief:
            _write(_brief(shown))
        else:
            _write(line for record in shown for line in _page(record))
    return session.status()


def _write(lines: Iterable[str]) -> None:
    """Lines to standard output, some hundred at a time."""
    rest = iter(lines)
    while some := list(islice(rest, 500)):
        emit("".join(f"{line}\n" for line in some), safe=True)


def _brief(shown: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One row a job: asked → given, as far as they are stated."""
    rows = []
    for record in shown:
        if record["type"] != "job" or "reference" in record:
            continue
        bare, requested, delivered = record["properties"], record["requested"], record["delivered"]
        pairs = [_pair(requested.get(k), delivered.get(k)) for k in ("Duration", "Processors", "Memory")]
        rows.append([_first(bare, "Id") if "Id" in bare else _first(bare, "Name"), _first(bare, "State"),
                     _first(bare, "ExitCode"), *pairs])
    return iter(_table(rows, ("Job", "State", "Exit", "Duration asked → given", "Processors", "Memory")))


def _first(values: Values, name: str) -> str:
    return values[name][0] if name in values else "·"


def _pair(asked: list[str] | None, delivered: list[str] | None) -> str:
    return " → ".join((asked or ["·"])[:1] + (delivered or [])[:1])


# --- pages --------------------------------------------------------------------------------------------------------

def _page(record: dict[str, Any]) -> Iterator[str]:
    """The lines of a group, a job, a file or a block by itself."""
    if record["type"] == "file":
        encoded = f", {record['encoded']}" if "encoded" in record else ""
        yield _bold(escape(f"File {record['id']}, {record['characters']} characters{encoded}"))
        yield ""
        return
    bare = record["properties"]
    heading = {k: bare[k][0] for k in _HEAD if len(bare.get(k, ())) == 1 and len(bare[k][0]) <= _PIECE}
    title = {"job": "Job", "group": "Job group", "envelope": "Envelope"}.get(record["type"], record["type"])
    head = " · ".join(map(escape, heading.values()))
    nameless = "(no Id)" if title == "Job" and "reference" not in record else ""
    yield _bold(f"{title} {head or nameless}".rstrip()) + _reference(record)
    yield from _table_of(record, frozenset(heading))
    yield from _below(record, "")
    if record.get("effective"):
        yield ""
        yield from _table([list(row.values()) for row in record["effective"]],
                          ("Level", "Slot", "Effective", "Value", "From"))
    yield ""


def _reference(record: dict[str, Any]) -> str:
    return f" → {escape(record['reference'], len(record['reference']))}" if "reference" in record else ""


def _below(record: dict[str, Any], prefix: str) -> Iterator[str]:
    """The Defaults, task groups and tasks in something that is shown. prefix: what it is called in titles."""
    for part in record.get("defaults", ()):
        yield from _part(part, prefix + part["type"])
    for number, group in enumerate(record.get("task_groups", ()), 1):
        yield from _part(group, f"{prefix}Task group {number}")
    tasks = record.get("tasks", ())
    if tasks:
        yield ""
        yield from _tasks(tasks)
    for number, task in enumerate(tasks, 1):
        yield from _evaluated(task, f"Task {number}")


def _part(record: dict[str, Any], title: str) -> Iterator[str]:
    tasks = len(record.get("tasks", ()))
    count = f", {tasks} explicit task{'s' * (tasks != 1)}" if tasks else ""
    yield ""
    yield f"{title}{count}{_reference(record)}"
    yield from _table_of(record, frozenset())
    yield from _below(record, f"{title}, ")


def _table_of(record: dict[str, Any], above: frozenset[str]) -> Iterator[str]:
    """The table of a record, without what stands above it, and the tree of what it requests."""
    rows = _rows(record, above)
    columns = _columns([rows])
    if rows:
        yield from _table([[name, *(values.get(c, "") for c in columns)] for name, values in rows],
                          ("Property", *columns))
    yield from _evaluated(record, "Requested")


def _evaluated(record: dict[str, Any], title: str) -> Iterator[str]:
    """What a record requests as a tree, where brackets, Or, negation or preferences make one of it."""
    if "expression" in record:
        yield f"{title}, as it is evaluated:"
        yield from _tree(record["expression"], 1)


def _tree(part: dict[str, Any], indent: int) -> Iterator[str]:
    weight = f" (weight {abs(part['weight'])})" if "weight" in part else ""
    yield f"{'  ' * indent}{escape(part['text'], len(part['text']))}{weight}"
    for inner in part.get("parts", ()):
        yield from _tree(inner, indent + 1)


def _tasks(tasks: Sequence[dict[str, Any]]) -> list[str]:
    """One table of all tasks of a group."""
    each = [_rows(task, frozenset()) or [("", {})] for task in tasks]
    columns = _columns(each)
    rows = [[f"{number}{_reference(task)}", name, *(values.get(c, "") for c in columns)]
            for number, (task, own) in enumerate(zip(tasks, each, strict=True), 1) for name, values in own]
    return _table(rows, ("Task", "Property", *columns))


_Row = tuple[str, dict[str, list[str]]]


def _rows(record: dict[str, Any], above: frozenset[str]) -> list[_Row]:
    """Name and values by column of everything that stands in a record itself."""
    sides = {"Value": {k: v for k, v in record["properties"].items() if k not in above},
             "Requested": record.get("requested", {}), "Delivered": record.get("delivered", {})}
    names = dict.fromkeys(name for values in sides.values() for name in values)
    rows = [(name, {side: values[name] for side, values in sides.items() if name in values}) for name in names]
    return rows + [(f"${name}", {"Value": values}) for name, values in record.get("environment", {}).items()]


def _columns(rows: Sequence[Sequence[_Row]]) -> list[str]:
    """The columns in which something stands."""
    used = {column for some in rows for _, values in some for column in values}
    return [column for column in ("Value", "Requested", "Delivered") if column in used]


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured(sys.stdout) else text


def _table(rows: Sequence[Sequence[str | Sequence[str]]], titles: Sequence[str]) -> list[str]:
    return table([[_pieces(cell) for cell in row] for row in rows], titles, width(sys.stdout))


def _pieces(cell: str | Sequence[str]) -> list[str]:
    """The lines of a cell, none of them so long that the table would cut it off."""
    lines = [cell] if isinstance(cell, str) else cell
    return [line[at:at + _PIECE] for line in lines for at in range(0, max(len(line), 1), _PIECE)]
