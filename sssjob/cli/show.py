"""``sssjob show``: a document as tables for a reader, times in UTC."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import coloured
from sssjob.cli._options import Session, common
from sssjob.findings import escape
from sssjob.vocabulary import ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sssjob.element import Container, Property
    from sssjob.inherit import Slot
    from sssjob.model import Job, JobDefaults

__all__ = ["command", "job_record", "moment"]

_TIMES: Final = frozenset(e.name for e in ELEMENTS if e.type == "DateTime")
_SECRET: Final = re.compile(r"pass|secret|token|credential|api_?key|private", re.IGNORECASE)
_HEAD: Final = ("Id", "Name", "State")


@click.command("show")
@click.argument("file", metavar="FILE")
@click.option("--origins", is_flag=True, help="Effective values, defaults folded in, and where each comes from.")
@click.option("--secrets", is_flag=True, help="Show variables whose names look secret (else masked).")
@common
def command(session: Session, file: str, origins: bool, secrets: bool) -> int:
    """Show the jobs of FILE (- is standard input): what was requested, what was delivered, states and times."""
    document = session.read(file)
    records = []
    for group in document.groups():
        record = {"type": "group"} | {p.tag: shown(p) for p in group.properties()}
        records.append(record)
    for job, defaults in document.jobs():
        records.append(job_record(job, defaults, origins=origins, secrets=secrets))
    if session.as_json:
        emit("".join(json.dumps(r) + "\n" for r in records))
    else:
        _print(records)
    return session.status()


def moment(value: object) -> str:
    """Seconds of the epoch as a time in UTC, ISO 8601."""
    try:
        return datetime.fromtimestamp(int(str(value)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(value)


def shown(item: Property) -> str:
    """The value of a property as it is shown: time, units, operation and metric beside it."""
    text = moment(item.text) if item.tag in _TIMES else item.text
    signs = {"EQ": "", "NE": "≠ ", "LT": "< ", "GT": "> ", "LE": "≤ ", "GE": "≥ ", "Match": "matches "}
    parts = [signs.get(item.op or "EQ", ""), text, f" {item.get('units')}" if item.get("units") else ""]
    notes = [v for k in ("name", "metric", "context", "condition", "type") if (v := item.get(k))]
    return "".join(parts) + (f" ({', '.join(notes)})" if notes else "")


def _gather(container: Container | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in container.properties() if container is not None else ():
        found.setdefault(item.tag, []).append(shown(item))
    return found


def job_record(job: Job, defaults: JobDefaults | None, *, origins: bool = False, secrets: bool = False
               ) -> dict[str, Any]:
    """One job as a record: properties, requested, delivered, environment, number of task groups and tasks."""
    record: dict[str, Any] = {
        "type": "job",
        "properties": _gather(job),
        "requested": _gather(job.requested),
        "delivered": _gather(job.delivered),
        "environment": _variables(job, secrets),
        "task_groups": len(job.task_groups),
        "tasks": sum(len(g.tasks) for g in job.task_groups),
    }
    if origins:
        record["effective"] = list(_effective(job, defaults, secrets))
    return record


def _variables(job: Job, secrets: bool) -> dict[str, str]:
    if job.environment is None:
        return {}
    return {k: v if secrets or not _SECRET.search(k) else "***" for k, v in job.environment.variables().items()}


def _effective(job: Job, defaults: JobDefaults | None, secrets: bool) -> Iterator[dict[str, str]]:
    from sssjob.inherit import effective

    view = effective(job, defaults)
    slots: tuple[Slot, ...] = ("bare", "Requested", "Delivered", "Environment")
    for slot in slots:
        for item, origin in view.resolved(slot):
            if slot == "Environment":
                name = item.get("name", "") or ""
                value = "***" if _SECRET.search(name) and not secrets else item.text
                yield {"slot": slot, "name": f"${name}", "value": value, "origin": str(origin)}
            else:
                yield {"slot": slot, "name": item.tag, "value": shown(item), "origin": str(origin)}


def _print(records: Iterable[dict[str, Any]]) -> None:
    from rich.console import Console

    stream = sys.stdout
    console = Console(file=stream, markup=False, highlight=False, emoji=False, no_color=not coloured(stream),
                      force_terminal=coloured(stream), width=None if stream.isatty() else 100, soft_wrap=False)
    for record in records:
        if record["type"] == "group":
            name = " ".join(escape(str(record[k])) for k in _HEAD if k in record)
            console.print(f"Job group {name}".rstrip(), style="bold")
        else:
            _print_job(console, record)


def _print_job(console: Any, record: dict[str, Any]) -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    bare, requested, delivered = record["properties"], record["requested"], record["delivered"]
    head = " · ".join(escape(bare[k][0]) for k in _HEAD if k in bare)
    console.print(Text(f"Job {head or '(no Id)'}", style="bold"))
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    columns = [("Property", "cyan"), ("Value", ""), ("Requested", ""), ("Delivered", "")]
    for title, style in columns:
        table.add_column(title, style=style, overflow="fold")
    order = [k for k in bare if k not in _HEAD]
    order += [k for k in (*requested, *delivered) if k not in order and k not in _HEAD]
    for name in dict.fromkeys(order):
        cells = [Text("\n".join(escape(v) for v in side.get(name, ()))) for side in (bare, requested, delivered)]
        table.add_row(Text(name), *cells)
    for name, value in record["environment"].items():
        table.add_row(Text(f"${escape(name)}"), Text(escape(value)), Text(""), Text(""))
    console.print(table)
    if record["task_groups"]:
        console.print(Text(f"{record['task_groups']} task groups, {record['tasks']} tasks"))
    if record.get("effective"):
        console.print(_table(record["effective"]))
    console.print()


def _table(rows: list[dict[str, str]]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, title="Effective values", title_justify="left")
    for title in ("Slot", "Property", "Value", "From"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(escape(v)) for v in row.values()))
    return table
