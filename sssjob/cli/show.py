"""``sssjob show``: a document as tables for a reader, times in UTC."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import SECRET, coloured, width
from sssjob.cli._options import Session, common, reading
from sssjob.cli._tables import table
from sssjob.findings import escape
from sssjob.vocabulary import ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sssjob.element import Container, Property
    from sssjob.inherit import Slot
    from sssjob.model import Document, Job, JobDefaults

__all__ = ["command", "job_record", "moment"]

_TIMES: Final = frozenset(e.name for e in ELEMENTS if e.type == "DateTime")
_SECRET: Final = re.compile(SECRET, re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_HEAD: Final = ("Id", "Name", "State")


@click.command("show")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--origins", is_flag=True, help="Effective values, defaults folded in, and where each comes from.")
@click.option("--brief", is_flag=True, help="One line a job: state, exit code, seconds and processors.")
@click.option("--secrets", is_flag=True, help="Show variables whose names look secret (else masked).")
@common
@reading
def command(session: Session, file: str, origins: bool, brief: bool, secrets: bool) -> int:
    """Show the jobs of FILE (- is standard input): what was requested, what was delivered, states and times."""
    document = session.read(file)
    records = _records(document, origins=origins, secrets=secrets, inherited=brief and not session.as_json)
    if session.as_json:
        _write(json.dumps(r) for r in records)
    elif brief:
        _write(_brief(records))
    else:
        _write(line for record in records for line in _page(record))
    return session.status()


def _records(document: Document, *, origins: bool, secrets: bool, inherited: bool) -> Iterator[dict[str, Any]]:
    """What is shown of a document, in order: its groups, its jobs, and whatever stands there by itself."""
    for group in document.groups():
        yield {"type": "group"} | {p.tag: shown(p, secrets) for p in group.properties()}
        if group.defaults is not None:
            yield _block(group.defaults, secrets)
    for job, defaults in document.jobs():
        made = job_record(job, defaults, origins=origins, secrets=secrets)
        if inherited:
            made["requested"] = _inherited(job, defaults)
        yield made
    for body in document.bodies():
        if body.tag not in ("Job", "JobGroup"):
            yield _block(body, secrets)


def _block(scope: Container, secrets: bool) -> dict[str, Any]:
    """What stands in a container that is no job."""
    found = {tag.lower(): _gather(c, secrets) for tag in ("Requested", "Delivered") for c in scope.containers(tag)}
    return {"type": scope.tag, "properties": _gather(scope, secrets), **found,
            "environment": _variables(scope, secrets)}


def _write(lines: Iterable[str]) -> None:
    """Lines to standard output, some hundred at a time."""
    rest = iter(lines)
    while some := list(islice(rest, 500)):
        emit("".join(f"{line}\n" for line in some), safe=True)


def moment(value: object) -> str:
    """Seconds of the epoch as a time in UTC, ISO 8601."""
    try:
        return datetime.fromtimestamp(int(str(value)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(value)


def shown(item: Property, secrets: bool = False) -> str:
    """The value of a property as it is shown: time, units, operation and metric beside it; passwords of URLs masked."""
    text = moment(item.text) if item.tag in _TIMES else item.text
    text = text if secrets else _PASSWORD.sub(r"\1***@", text)
    signs = {"EQ": "", "NE": "≠ ", "LT": "< ", "GT": "> ", "LE": "≤ ", "GE": "≥ ", "Match": "matches "}
    parts = [signs.get(item.op or "EQ", ""), text, f" {item.get('units')}" if item.get("units") else ""]
    notes = [v for k in ("name", "metric", "context", "condition", "type", "redirectList") if (v := item.get(k))]
    return ("".join(parts) + (f" ({', '.join(notes)})" if notes else "")).strip()


def _gather(container: Container | None, secrets: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in container.properties() if container is not None else ():
        found.setdefault(item.tag, []).append(shown(item, secrets))
    return found


def job_record(job: Job, defaults: JobDefaults | None, *, origins: bool = False, secrets: bool = False
               ) -> dict[str, Any]:
    """One job as a record: properties, requested, delivered, environment, number of task groups and tasks."""
    record: dict[str, Any] = {
        "type": "job",
        "properties": _gather(job, secrets),
        "requested": _gather(job.requested, secrets),
        "delivered": _gather(job.delivered, secrets),
        "environment": _variables(job, secrets),
        "task_groups": [_block(g, secrets) | {"tasks": len(g.tasks)} for g in job.task_groups],
    }
    if origins:
        record["effective"] = list(_effective(job, defaults, secrets))
    return record


def _variables(scope: Container, secrets: bool) -> dict[str, str]:
    found = [(str(p.get("name", "")), p.text) for e in scope.containers("Environment") for p in e.all("Variable")]
    return {name: text if secrets or not _SECRET.search(name) else "***" for name, text in found}


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
                yield {"slot": slot, "name": item.tag, "value": shown(item, secrets), "origin": str(origin)}


def _brief(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One row a job: asked → given, as far as they are stated."""
    rows = []
    for record in records:
        if record["type"] != "job":
            continue
        bare, requested, delivered = record["properties"], record["requested"], record["delivered"]
        pairs = [_pair(requested.get(k), delivered.get(k)) for k in ("Duration", "Processors", "Memory")]
        rows.append([_first(bare, "Id") if "Id" in bare else _first(bare, "Name"), _first(bare, "State"),
                     _first(bare, "ExitCode"), *pairs])
    return iter(_table(rows, ("Job", "State", "Exit", "Duration asked → given", "Processors", "Memory")))


def _first(values: dict[str, list[str]], name: str) -> str:
    return values[name][0] if name in values else "·"


def _pair(asked: list[str] | None, given: list[str] | None) -> str:
    return " → ".join((asked or ["·"])[:1] + (given or [])[:1])


def _page(record: dict[str, Any]) -> Iterator[str]:
    """The lines of a group, a job or a block by itself."""
    if record["type"] == "group":
        bare = {k: [str(v)] for k, v in record.items() if k != "type"}
        record = {"type": "Job group", "properties": bare}
    else:
        bare = record["properties"]
    head = " · ".join(escape(bare[k][0]) for k in _HEAD if k in bare)
    title = "Job" if record["type"] == "job" else record["type"]
    yield _bold(f"{title} {head or ('(no Id)' if title == 'Job' else '')}".rstrip())
    yield from _properties(record, bare)
    for number, group in enumerate(record.get("task_groups", ()), 1):
        tasks = f", {group['tasks']} explicit task{'s' * (group['tasks'] != 1)}" if group["tasks"] else ""
        yield ""
        yield f"Task group {number}{tasks}"
        yield from _properties(group, group["properties"], ())
    if record.get("effective"):
        yield ""
        yield from _table([list(row.values()) for row in record["effective"]], ("Slot", "Effective", "Value", "From"))
    yield ""


def _properties(record: dict[str, Any], bare: dict[str, list[str]], above: tuple[str, ...] = _HEAD) -> list[str]:
    """The table of a record, without the columns in which nothing stands."""
    sides = {"Value": bare, "Requested": record.get("requested", {}), "Delivered": record.get("delivered", {})}
    names = dict.fromkeys(k for side in sides.values() for k in side if side is not bare or k not in above)
    kept = [title for title, side in sides.items() if any(k in names for k in side)]
    rows = [[name, *(sides[t].get(name, []) for t in kept)] for name in names]
    for name, value in record.get("environment", {}).items():
        if "Value" not in kept:
            kept.insert(0, "Value")
            rows = [[row[0], "", *row[1:]] for row in rows]
        rows.append([f"${name}", value, *[""] * (len(kept) - 1)])
    return _table(rows, ("Property", *kept)) if rows else []


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured(sys.stdout) else text


def _table(rows: Sequence[Sequence[str | Sequence[str]]], titles: Sequence[str]) -> list[str]:
    return table(rows, titles, width(sys.stdout))
