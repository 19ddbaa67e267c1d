"""``sssjob show``: a document as tables for a reader, times in UTC.

What is shown are records: all that a document says, each property with each of its attributes. A record is a dict that
JSON can hold. Values are lists of texts by name, in document order; an attribute of a container stands among them as
``@name``, an element of another vocabulary under its tag.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import SECRET, coloured, width
from sssjob.cli._options import Session, common, reading
from sssjob.cli._tables import table
from sssjob.document.element import Container, Property, Raw
from sssjob.document.held import per_of
from sssjob.document.lexical import utc
from sssjob.document.model import Document, Job, JobDefaults, JobGroup
from sssjob.document.states import has_not_begun, waits
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import Findings, escape

if TYPE_CHECKING:

    from sssjob.document.inherit import Slot, View
    from sssjob.validation.large import Large

__all__ = ["command", "moment", "records"]


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


_TIMES: Final = frozenset(e.name for e in ELEMENTS if e.type == "DateTime")
_SECRET: Final = re.compile(SECRET, re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_SIGNS: Final = {"EQ": "", "NE": "≠ ", "LT": "< ", "GT": "> ", "LE": "≤ ", "GE": "≥ ", "Match": "matches "}
#: Attributes whose value says enough; of others the name stands before it.
_NAMELESS: Final = ("name", "metric", "context", "condition", "type", "redirectList")
#: Blocks that are columns of the table of what they stand in.
_COLUMNS: Final = ("Requested", "Delivered", "Environment")
#: Where the containers in a record stand.
_LISTS: Final = {"TaskGroup": "task_groups", "Task": "tasks"}
_SLOTS: Final[tuple[Slot, ...]] = ("bare", "Requested", "Delivered", "Environment")

Values = dict[str, list[str]]


def records(document: Document | Large, *, origins: bool, secrets: bool, inherited: bool) -> Iterator[dict[str, Any]]:
    """What is shown of a document, in order: what is around its bodies, its groups and jobs (of a sweep all of them),
    whatever stands there by itself, and the files beside it.

    origins: with effective values; secrets: nothing is masked; inherited: Requested of jobs with Defaults folded in.
    """
    from sssjob.document.sweeps import expand, jobs_of

    findings = Findings()               # what is wrong with a sweep was told when the document was read
    if not isinstance(document, Document):
        jobs = (record for number, job in enumerate(document.group_jobs())
                for record in jobs_of(job, number, {}, findings))
        yield from _group(document.group, jobs, origins=origins, secrets=secrets, inherited=inherited)
        return
    document = expand(document, findings)
    if isinstance(document.root, Raw):
        yield {"type": "envelope", "properties": _around(document.root, secrets)}
    for body in document.bodies():
        if isinstance(body, Job):
            yield _job(body, None, origins=origins, secrets=secrets, inherited=inherited)
        elif isinstance(body, JobGroup):
            yield from _group(body, body.jobs, origins=origins, secrets=secrets, inherited=inherited)
        else:
            yield _record(body, secrets)
    for file in document.files.values():
        encoded = {"encoded": file.encoded} if file.encoded else {}
        yield {"type": "file", "id": file.id, "characters": len(file.text), **encoded}


def _group(group: JobGroup, jobs: Iterable[Job], *, origins: bool, secrets: bool,
           inherited: bool) -> Iterator[dict[str, Any]]:
    """What stands in a group beside its jobs, then its jobs."""
    yield _record(group, secrets, "group", without=("Job", "JobDefaults"))
    yield from (_record(item, secrets) for item in group.containers("JobDefaults"))
    defaults = group.defaults
    for job in jobs:
        yield _job(job, defaults, origins=origins, secrets=secrets, inherited=inherited)


def _job(job: Job, defaults: JobDefaults | None, *, origins: bool, secrets: bool, inherited: bool) -> dict[str, Any]:
    record = _record(job, secrets, "job")
    if job.reference is None and inherited:
        asks = _only_asks(job)
        record["requested"], record["delivered"] = _asked_in_all(job, defaults, asks), _held_in_all(job, not asks)
    if job.reference is None and origins:
        record["effective"] = list(_effective(job, defaults, secrets))
    return record


def _record(scope: Container, secrets: bool, kind: str | None = None, without: Sequence[str] = ()) -> dict[str, Any]:
    """All that stands in a container. kind: what it is called, else its tag; without: children that the caller shows.
    The depth is that of the vocabulary's containers."""
    record: dict[str, Any] = {"type": kind or scope.tag}
    if scope.reference is not None:
        record["reference"] = scope.reference
    record["properties"] = _gather([scope], secrets)
    blocks: dict[str, list[Container]] = {}
    for item in scope.items:
        if isinstance(item, Container) and item.tag not in without:
            if item.tag in _COLUMNS:
                blocks.setdefault(item.tag, []).append(item)
            else:
                record.setdefault(_LISTS.get(item.tag, "defaults"), []).append(_record(item, secrets))
    for tag in _COLUMNS:
        record[tag.lower()] = _gather(blocks.get(tag, ()), secrets)
    asked = blocks.get("Requested", [scope] if scope.tag == "Requested" else [])
    expression = _expression([p for block in asked for p in block.properties()])
    return record | ({"expression": expression} if expression else {})


def _expression(properties: list[Property]) -> dict[str, Any] | None:
    """The tree that is evaluated, where Requested is more than one condition after another."""
    if all(p.attributes.keys().isdisjoint(("conj", "group", "preference")) for p in properties):
        return None
    from sssjob.request.explaining import tree_in_words

    part = tree_in_words(properties)
    return part.record() if part is not None else None


def _gather(blocks: Iterable[Container], secrets: bool) -> Values:
    """The values that stand in containers themselves, by name."""
    values: Values = {}
    for block in blocks:
        for name, text in block.attributes.items():
            values.setdefault(f"@{name}", []).append(text)
        for item in block.items:
            if isinstance(item, Property):
                name = item.attributes.get("name", "") if item.tag == "Variable" else item.tag
                values.setdefault(name, []).append(shown(item, secrets))
            elif isinstance(item, Raw):
                values.setdefault(item.tag, []).append(_masked(" ".join(_foreign(item)), secrets))
    return values


def moment(value: object) -> str:
    """Seconds of the epoch as a time in UTC, ISO 8601."""
    try:
        return utc(int(str(value)))
    except ValueError:
        return str(value)


def shown(item: Property, secrets: bool = False) -> str:
    """The value of a property as it is shown: time, units and operation, all other attributes behind it; passwords of
    URLs and variables that look secret masked."""
    text = moment(item.text) if item.tag in _TIMES else item.text
    variable = item.tag == "Variable"
    if not secrets and variable and _SECRET.search(item.attributes.get("name", "")):
        text = "***"
    operation = item.op or "EQ"
    units = f" {item.attributes['units']}" if "units" in item.attributes else ""
    nameless = _NAMELESS[1:] if variable else _NAMELESS             # its name is that of the row
    notes = [item.attributes[name] for name in nameless if name in item.attributes]
    notes += [f"{name} {value}" for name, value in item.attributes.items()
              if name not in _NAMELESS and name not in ("op", "units")]
    behind = f" ({', '.join(notes)})" if notes else ""
    whole = f"{_SIGNS.get(operation, f'{operation} ')}{text}{units}{behind}"
    return _masked(whole if variable else whole.strip(), secrets)


def _masked(text: str, secrets: bool) -> str:
    return text if secrets else _PASSWORD.sub(r"\1***@", text)


def _foreign(raw: Raw) -> Iterator[str]:
    """The attributes, the text and the children of an element of another vocabulary, in a row."""
    stack: list[Any] = [raw]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        if item is not raw:
            yield f"{item.tag}:"
        yield from (f"@{name} {text}" for name, text in item.attributes.items())
        if isinstance(item, Raw):
            yield item.text
            stack.extend(reversed(item.children))
        elif isinstance(item, Container):
            yield item.reference or ""
            stack.extend(reversed(item.items))
        else:
            yield item.text


def _around(root: Raw, secrets: bool) -> Values:
    """Attributes and texts of the elements around the bodies of a document, by their way from the root."""
    values: Values = {}
    stack: list[tuple[str, Any]] = [(root.tag, root)]
    while stack:
        way, item = stack.pop()
        if isinstance(item, str):
            values.setdefault(way, []).append(_masked(item, secrets))
        elif isinstance(item, Raw):
            texts = values.setdefault(way, [])
            if item.text:
                texts.append(_masked(item.text, secrets))
            for name, text in item.attributes.items():
                values.setdefault(f"{way}/@{name}", []).append(_masked(text, secrets))
            stack += [(way if isinstance(child, str) else f"{way}/{child.tag}", child)
                      for child in reversed(item.children)]
    return values


# --- effective values ---------------------------------------------------------------------------------------------

def _only_asks(job: Job) -> bool:
    """Whether bare amounts are what a job asks for: its State says that it waits, or nothing says that it has run."""
    state = job.value("State")
    ran = bool(job.delivered or any(group.delivered for group in job.task_groups) or any(
        job.first(tag) for tag in ("StartTime", "EndTime", "ExitCode")))
    return has_not_begun(state) or (waits(state) and not ran)


def _asked_in_all(job: Job, defaults: JobDefaults | None, bare: bool) -> Values:
    """What a job with its defaults requests, by name; amounts are those of the whole job, as ``explain`` has them.
    bare: it asks for what stands beside Requested, too."""
    from sssjob.document.inherit import effective

    values: Values = {}
    view = effective(job, defaults)
    stated = view.properties("Requested")
    beside = [p for p in view.properties() if all(p.tag != other.tag for other in stated)] if bare else []
    for item in (*stated, *beside):
        values.setdefault(item.tag, []).append(shown(item))
    if job.task_groups or (defaults is not None and any(defaults.containers())) or any(
            per_of(item.attributes.get("metric")) for item in (*stated, *beside)):
        from sssjob.request.explaining import in_all
        from sssjob.request.levels import request_in

        request = request_in(view, bare=bare)
        values |= {total.name: [" ".join(filter(None, (total.value, total.units)))] for total in in_all(request)}
        if request.totals.seconds is not None:
            values["Duration"] = [str(request.totals.seconds)]
    return values


def _held_in_all(job: Job, bare: bool) -> Values:
    """How long a job ran, and what it held in all of processors and memory, as far as it says so, bare too."""
    from sssjob.document.held import as_decimal, delivered, held, in_all, ran

    if not bare and not job.delivered:
        return {}
    memory = delivered(job, "Memory", held_by=job)
    size = None if memory is None else in_all(job, memory)
    units = f" {memory.attributes['units']}" if memory is not None and "units" in memory.attributes else ""
    amounts = (("Duration", ran(job), ""), ("Processors", held(job, "Processors"), ""), ("Memory", size, units))
    return {name: [f"{as_decimal(amount).normalize():f}{unit}"] for name, amount, unit in amounts if amount is not None}


def _effective(job: Job, defaults: JobDefaults | None, secrets: bool) -> Iterator[dict[str, str]]:
    """What holds at every level, with where it was said; of task groups and tasks that do not stand there only if their
    Defaults say something of them."""
    from sssjob.document.inherit import effective

    view = effective(job, defaults)
    yield from _resolved("Job", view, secrets)
    for i, group in enumerate(view.task_groups()):
        name = f"task group {i + 1}"
        if group.container.items or _speaks(group):
            yield from _resolved(name, group, secrets)
        for j, task in enumerate(group.tasks()):
            if group.described or _speaks(task):
                yield from _resolved(f"{name}, {f'task {j + 1}' if group.described else 'each task'}", task, secrets)


def _speaks(view: View[Any]) -> bool:
    return any(entry.origin.own for slot in _SLOTS for entry in view.resolved(slot))


def _resolved(level: str, view: View[Any], secrets: bool) -> Iterator[dict[str, str]]:
    for slot in _SLOTS:
        for item, origin in view.resolved(slot):
            name = f"${item.attributes.get('name', '')}" if slot == "Environment" else item.tag
            yield {"level": level, "slot": slot, "name": name, "value": shown(item, secrets), "origin": str(origin)}
