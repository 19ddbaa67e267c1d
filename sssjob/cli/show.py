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

    from rich.console import Console
    from rich.table import Table

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
@click.option("--brief", is_flag=True, help="One line a job: state, exit code, seconds and processors.")
@click.option("--secrets", is_flag=True, help="Show variables whose names look secret (else masked).")
@common
def command(session: Session, file: str, origins: bool, brief: bool, secrets: bool) -> int:
    """Show the jobs of FILE (- is standard input): what was requested, what was delivered, states and times."""
    document = session.read(file)
    records = []
    for group in document.groups():
        record = {"type": "group"} | {p.tag: shown(p) for p in group.properties()}
        records.append(record)
    for job, defaults in document.jobs():
        made = job_record(job, defaults, origins=origins, secrets=secrets)
        if brief and not session.as_json:
            made["requested"] = _inherited(job, defaults)
        records.append(made)
    if session.as_json:
        emit("".join(json.dumps(r) + "\n" for r in records))
    elif brief:
        _print_brief(records)
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


def _inherited(job: Job, defaults: JobDefaults | None) -> dict[str, list[str]]:
    from sssjob.inherit import effective

    found: dict[str, list[str]] = {}
    for item in effective(job, defaults).properties("Requested"):
        found.setdefault(item.tag, []).append(shown(item))
    return found


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


def _console() -> Console:
    from rich.console import Console

    stream = sys.stdout
    return Console(file=stream, markup=False, highlight=False, emoji=False, no_color=not coloured(stream),
                   force_terminal=coloured(stream), width=None if stream.isatty() else 100)


def _print_brief(records: Iterable[dict[str, Any]]) -> None:
    """One row a job: asked -> given, where the two were stated."""
    rows = []
    for record in records:
        if record["type"] != "job":
            continue
        bare, requested, delivered = record["properties"], record["requested"], record["delivered"]
        pairs = [f"{_first(requested, k)} → {_first(delivered, k)}" for k in ("Duration", "Processors", "Memory")]
        rows.append([_first(bare, "Id") if "Id" in bare else _first(bare, "Name"), _first(bare, "State"),
                     _first(bare, "ExitCode"), *pairs])
    titles = ("Job", "State", "Exit", "Duration asked → given", "Processors", "Memory")
    _console().print(_table(rows, titles))


def _first(values: dict[str, list[str]], name: str) -> str:
    return values[name][0] if name in values else "·"


def _print(records: Iterable[dict[str, Any]]) -> None:
    console = _console()
    for record in records:
        if record["type"] == "group":
            name = " ".join(escape(str(record[k])) for k in _HEAD if k in record)
            console.print(f"Job group {name}".rstrip(), style="bold")
        else:
            _print_job(console, record)


def _print_job(console: Console, record: dict[str, Any]) -> None:
    from rich.text import Text

    bare = record["properties"]
    sides = bare, record["requested"], record["delivered"]
    head = " · ".join(escape(bare[k][0]) for k in _HEAD if k in bare)
    console.print(Text(f"Job {head or '(no Id)'}", style="bold"))
    names = dict.fromkeys(k for side in sides for k in side if k not in _HEAD)
    rows = [[name, *("\n".join(v.replace("\n", "↵") for v in side.get(name, ())) for side in sides)] for name in names]
    rows += [[f"${name}", value.replace("\n", "↵"), "", ""] for name, value in record["environment"].items()]
    console.print(_table(rows, ("Property", "Value", "Requested", "Delivered")))
    if record["task_groups"]:
        groups, tasks = record["task_groups"], record["tasks"]
        console.print(Text(f"{groups} task group{'s' * (groups > 1)}, {tasks} explicit task{'s' * (tasks != 1)}"))
    if record.get("effective"):
        rows = [list(row.values()) for row in record["effective"]]
        console.print(_table(rows, ("Slot", "Property", "Value", "From"), "Effective values"))
    console.print()


def _table(rows: Iterable[Iterable[str]], titles: Iterable[str], title: str | None = None) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, title=title, title_justify="left")
    for heading in titles:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(escape(v) for v in cell.split("\n"))) for cell in row))
    return table
