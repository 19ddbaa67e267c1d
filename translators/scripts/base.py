"""What the script dialects have in common: reading in two stages, writing in canonical order, and the way of each
directive.

A dialect is a ``Dialect``: how lines become options (``scan``), one table of rows over its parent's, and what the
table cannot say as ``Special`` rows. The script without its live directives stays in the document as the File
``Script``, byte for byte (decisions 1 and 3).
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from sssjob.element import Container, Property, Value, new_property
from sssjob.findings import Policy, Severity
from sssjob.inherit import effective
from sssjob.model import CLASSES, Document, File, Job, JobDefaults, Raw, TaskGroup
from sssjob.templates.quoting import QuotingError, word, words
from sssjob.translators.asked import AMOUNTS, FACTS, GROUP, NEAREST, TASK, Asked, Entry, Target, policy_of
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.scripts.grammars import TEXT, Grammar, Kept
from sssjob.translators.scripts.raw import TEMPLATE, Line, Option, lines_of
from sssjob.units import from_bytes, to_bytes

__all__ = [
    "APPROXIMATED", "CONTRADICTORY", "DEAD", "DROPPED", "INVENTED", "PARTS", "REFUSED", "SITE", "TEMPLATED", "Asking",
    "Dialect", "Entry", "Place", "Reading", "Row", "Scan", "ScriptDocument", "Special", "place", "table", "translator",
]

#: Rules of findings. The hub has none of the kinds dead and template yet: they go under what is nearest.
DROPPED: Final = "SSS501"
APPROXIMATED: Final = "SSS502"
INVENTED: Final = "SSS503"
SITE: Final = "SSS504"
REFUSED: Final = "SSS505"
CONTRADICTORY: Final = "SSS304"
DEAD: Final = "SSS502"
TEMPLATED: Final = "SSS504"

#: Parts of a heterogeneous job that are taken apart.
PARTS: Final = 500
_SCRIPT: Final = "Script"
_DIALECT: Final = "Dialect"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a property stands: the containers from the job inward, its name and attributes."""

    path: tuple[str, ...]
    tag: str
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def levels(self) -> Sequence[str]:
        """Where a writer looks for it."""
        if "TaskDefaults" in self.path:
            return TASK
        return AMOUNTS


@lru_cache(maxsize=512)
def place(text: str) -> Place:
    """``TaskGroup/Requested/Memory[metric=PerChunk]`` as a Place."""
    steps, _, rest = text.partition("[")
    *path, tag = steps.split("/")
    pairs = [p.partition("=") for p in rest.rstrip("]").split(",") if p]
    return Place(tuple(path), tag, tuple((k, v) for k, _, v in pairs))


@dataclass(frozen=True, slots=True)
class Row:
    """One option that is one property.

    name: as it is written, with dashes. place: see ``place``; empty for an Extension of the dialect's own, which other
    dialects do not know. fixed: the value of an option without argument.
    """

    name: str
    place: str = ""
    grammar: Grammar = TEXT
    fixed: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The options that the row is about."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Special:
    """Options whose meaning is no single property. read gets those of ``names`` that are there, by name; write gives
    options and values (None: without one)."""

    names: tuple[str, ...]
    read: Callable[[Reading, Mapping[str, Option]], None]
    write: Callable[[Asking], Iterable[tuple[str, str | None]]]
    part: bool = False      # they describe a part of a job, not the job

    @property
    def name(self) -> str:
        """The first option."""
        return self.names[0]


AnyRow = Row | Special


@dataclass(slots=True)
class Scan:
    """What the first stage found. components: options in order, one list for each part of a heterogeneous job; rest:
    the lines that are no live directives."""

    components: list[list[Option]] = field(default_factory=lambda: [[]])
    rest: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect.

    rows: in the order of writing. scan: the first stage. directive: an option as text of a line, raises QuotingError.
    prefix: of the lines written. tokens: canonical token of file names -> native one. variables: prefixes of the
    variables that jobs find. starts_in: ``submit`` or ``home``; exports: whether the submitter's variables go along
    when nothing is said; merges: whether both streams go into one file.
    """

    name: str
    title: str
    prefix: str
    rows: tuple[AnyRow, ...]
    scan: Callable[[Reading, list[Line]], Scan]
    directive: Callable[[str, str | None], str]
    arguments: Callable[[Reading, str], list[Option]]
    tokens: Mapping[str, str]
    variables: tuple[str, ...]
    live: Callable[[list[Line]], list[Line]]
    suffixes: tuple[str, ...] = ()
    starts_in: str = "submit"
    exports: bool = True
    merges: bool = True
    separator: str = ""             # option between the parts of a heterogeneous job
    open: tuple[str, ...] = ()      # beginnings of options whose names are the site's, such as ``l `` of PBS

    @property
    def known(self) -> dict[str, AnyRow]:
        """Option -> row."""
        return {name: row for row in self.rows for name in row.names}


def table(rows: Sequence[AnyRow], parent: Iterable[AnyRow] = (), after: str = "") -> tuple[AnyRow, ...]:
    """Rows merged over a parent's: one of the same first option takes its place, others follow that of ``after``, or
    all."""
    merged = {row.name: row for row in parent}
    new = [row for row in rows if merged.get(row.name) is None]
    merged |= {row.name: row for row in rows if row.name in merged}
    made = list(merged.values())
    at = 1 + [row.name for row in made].index(after) if after else len(made)
    return (*made[:at], *new, *made[at:])


@dataclass(slots=True)
class ScriptDocument(Document):
    """A document that came from a script: which directive each property came from, by identity."""

    origins: dict[int, tuple[Property, Option]] = field(default_factory=dict, compare=False)
    lines: list[int] = field(default_factory=list, compare=False)     # of each line of the File, where it stood

    def origin(self, item: object) -> Option | None:
        """The directive that said a property."""
        found = self.origins.get(id(item))
        return None if found is None else found[1]


# -- reading
class Reading:
    """A script on its way into a job."""

    def __init__(self, dialect: Dialect, context: ReadContext) -> None:
        self.dialect, self.context = dialect, context
        self.findings = context.findings
        self.job = Job()
        self.group: TaskGroup | None = None         # of the part being read
        self.several = False                        # parts stand side by side: amounts belong to their groups
        self.origins: dict[int, tuple[Property, Option]] = {}

    # -- telling
    def tell(self, rule: str, option: Option, message: str, severity: Severity | None = None) -> None:
        """One finding about a directive."""
        self.findings.add(rule, option.name, f"{option.shown}: {message}", policy=self.context.policy or Policy.WARN,
                          severity=severity, line=option.line, column=option.column, excerpt=option.text)

    def refuse(self, message: str, line: int, column: int = 0, subject: str = "script", text: str = "") -> None:
        """What the real command refuses: an error, unless the policy asks for less (decisions 13)."""
        lenient = self.context.policy in (Policy.WARN, Policy.IGNORE)
        self.findings.add(REFUSED, subject, message, severity="warning" if lenient else None, line=line, column=column,
                          excerpt=text)

    def dead(self, line: Line, why: str, column: int = 1) -> None:
        """A line that looks like a directive and is none."""
        self.findings.add(DEAD, "directive", f"the directive is dead: {why}; it stays in the script as a comment",
                          line=line.number, column=column, excerpt=line.text)

    # -- putting
    def scope(self, path: Sequence[str]) -> Container:
        """The container at a path; TaskGroup is that of the part being read."""
        if self.several and self.group is not None and path[:1] != ("TaskGroup",):
            path = ("TaskGroup", *path)
        at: Container = self.job
        for tag in path:
            if tag == "TaskGroup":
                if self.group is None:
                    self.group = TaskGroup()
                if not any(i is self.group for i in at.items):
                    at.items.append(self.group)
                at = self.group
            else:
                found = next(at.containers(tag), None)
                if found is None:
                    found = CLASSES[tag]()
                    at.items.append(found)
                at = found
        return at

    def put(self, where: str, value: Value, option: Option, **more: str) -> Property:
        """A property at a place."""
        at = place(where)
        if at.tag in ("Extension", "ResourceLimit", "TaskDistribution"):
            value = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
        elif at.tag == "Resource" and isinstance(value, int):
            value = Decimal(value)
        made = new_property(at.tag, value, dict(at.attributes) | more)
        self.scope(at.path).items.append(made)
        self.origins[id(made)] = (made, option)
        return made

    def top(self, where: str, value: Value, option: Option, **more: str) -> Property:
        """A property of the whole job, whatever part is being read."""
        several, self.several = self.several, False
        made = self.put(where, value, option, **more)
        self.several = several
        return made

    def bytes(self, where: str, amount: int, option: Option, **more: str) -> None:
        """An amount of bytes, in the largest unit that is exact."""
        value, units = from_bytes(Decimal(amount))
        self.put(where, value, option, units=units, **more)

    def keep(self, option: Option) -> None:
        """An option that only this dialect knows, as an Extension of its name."""
        unset = option.name if option.name not in self.dialect.known else "true"
        value = unset if option.value is None else option.value
        self.put("Extension", value, option, name=option.name.lstrip("-"), type=self.dialect.name)

    def misfit(self, option: Option, why: str, expected: str) -> None:
        """A value that does not read: a placeholder stays as it is, all else is what the command refuses."""
        if option.value is not None and TEMPLATE.search(option.value, 0, 4096):
            self.tell(TEMPLATED, option, "a placeholder of a template; kept as text")
        else:
            self.refuse(f"{option.shown}: {why} (expected: {expected})", option.line, option.column, option.name,
                        option.text)
        self.keep(option)

    def row(self, row: Row, option: Option) -> None:
        """One option by its row."""
        text = row.fixed if row.fixed is not None else option.value
        if not row.place:
            self.keep(option)
            return
        try:
            value = row.grammar.read(text or "")
        except Kept:
            self.keep(option)
            return
        except ValueError as error:
            self.misfit(option, str(error), row.grammar.expected)
            return
        if place(row.place).tag in _BYTES:
            self.bytes(row.place, int(value), option)
        else:
            self.put(row.place, value, option)


_BYTES: Final = ("Memory", "Disk", "Swap")
_LAYOUT: Final = ("Requested", "TaskGroup")


def read(dialect: Dialect, data: bytes, context: ReadContext) -> Document:
    """The document of a script. Raises RejectedError when it is refused."""
    reading = Reading(dialect, context)
    text, encoded = _text_of(reading, data)
    lines = list(lines_of(text))
    scan = dialect.scan(reading, lines)
    for option in dialect.arguments(reading, context.options.get("set") or ""):
        scan.components[0].append(option)
    context.findings.raise_if_rejected()
    if len(scan.components) > PARTS:
        context.findings.add("SSS110", "parts", f"more than {PARTS} parts of one job")
        context.findings.raise_if_rejected()
    reading.several = len(scan.components) > 1
    for number, options in enumerate(scan.components):
        reading.group = TaskGroup() if reading.several else None
        _component(reading, options, number)
    job = reading.job
    job.add("Extension", dialect.name, type="Scheduler", name=_DIALECT)
    job.set("Executable", f"#{_SCRIPT}")
    job.items.sort(key=_order)
    context.findings.raise_if_rejected()
    body = "".join(line.text + line.end for line in scan.rest)
    file = File(_SCRIPT, base64.b64encode(body.encode("utf-8", "surrogateescape")).decode(), "base64") if encoded \
        else File(_SCRIPT, body)
    root = Raw("Request", {"action": "Submit"}, children=[Raw("Object", text="Job"), Raw("Data", children=[job])])
    return ScriptDocument(root, {_SCRIPT: file}, context.path, context.profile, context.findings,
                          reading.origins, [line.number for line in scan.rest])


def _text_of(reading: Reading, data: bytes) -> tuple[str, bool]:
    """The text of a script, and whether XML cannot hold it."""
    limits = reading.context.limits
    if len(data) > limits.document_bytes:
        reading.findings.add("SSS110", "document_bytes", f"more than {limits.document_bytes} bytes")
        reading.findings.raise_if_rejected()
    if b"\0" in data:
        reading.refuse("a NUL byte: this is no script", data.count(b"\n", 0, data.index(b"\0")) + 1)
        reading.findings.raise_if_rejected()
    text = data.decode("utf-8", "surrogateescape")
    return text, any((c < " " and c not in "\t\n") or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" for c in text)


_ORDER: Final = {"Environment": 1, "Requested": 2, "TaskGroupDefaults": 3, "TaskGroup": 4}


def _order(item: Property | Container | Raw) -> int:
    return _ORDER.get(item.tag, 0) if isinstance(item, Container) else 0


def _component(reading: Reading, options: list[Option], number: int) -> None:
    """The options of one part: the last of a name counts; what is no amount is said by the first part."""
    last: dict[str, Option] = {o.name: o for o in options}
    for row in reading.dialect.rows:
        there = {name: last[name] for name in row.names if name in last}
        if not there:
            continue
        if number and not _layout(row):
            _shared(reading, there.values())
            continue
        several = reading.several
        reading.several = several and _layout(row)
        if isinstance(row, Row):
            reading.row(row, there[row.name])
        else:
            row.read(reading, there)
        reading.several = several
    known = reading.dialect.known
    for name in [n for n in last if n not in known]:
        reading.keep(last[name])


def _layout(row: AnyRow) -> bool:
    """Whether an option describes a part of a job, not the job."""
    if isinstance(row, Special):
        return row.part
    return bool(row.place) and place(row.place).path[:1] in (("Requested",), ("TaskGroup",)) and not \
        row.place.endswith("Duration")


def _shared(reading: Reading, options: Iterable[Option]) -> None:
    for option in options:
        said = [o for p, o in reading.origins.values() if o.name == option.name]
        if not any(o.value == option.value for o in said):
            reading.tell(DROPPED, option, "only the first part of a heterogeneous job can say this")


# -- writing
class Asking(Asked):
    """A job whose properties a script is written from; findings name the directive that a property came from."""

    def __init__(self, job: Job, document: Document, context: WriteContext, dialect: Dialect, policy: Policy,
                 group: TaskGroup | None) -> None:
        self.document, self.context, self.dialect, self.policy = document, context, dialect, policy
        self.source = _source_of(job)
        self.body = ""
        self.silent = False     # the first part has told it already
        target = Target(word=f"{dialect.title} has no place for it", launcher="")
        super().__init__(job, context.findings, policy, target, group)
        self._tags = {e.tag for e in self.entries}
        self._extensions = {(e.attributes.get("name"), e.attributes.get("type")) for e in self.entries
                            if e.tag == "Extension"}

    def note(self, rule: str, entry: Entry | None, message: str, severity: Severity | None = None,
             subject: str = "") -> None:
        """One finding, with line and column of the directive where the document came from a script."""
        if self.silent:
            return
        origin = None
        if entry is not None and isinstance(self.document, ScriptDocument):
            origin = self.document.origin(entry.item)
        if origin is not None:
            message = f"{origin.shown}: {message}"
        self.findings.add(rule, subject or (entry.tag if entry else "Job"), message, severity=severity,
                          policy=entry.policy if entry else self.policy, path=entry.path if entry else "/Job",
                          line=origin.line if origin else self.job.line, column=origin.column if origin else 0,
                          excerpt=origin.text if origin else "")

    def dropped(self, entry: Entry, why: str = "", subject: str = "") -> None:
        """The finding for what is not carried; its attributes go with it."""
        entry.used = True
        entry.understood |= entry.attributes.keys()
        super().dropped(entry, why, subject)

    def _condition(self, entry: Entry) -> None:
        self.dropped(entry, f"{self.dialect.title} cannot say the condition {entry.attributes.get('op', 'EQ')} "
                            f"{entry.text}")

    def find(self, tag: str, levels: Sequence[str] = NEAREST, **attributes: str) -> list[Entry]:
        """The entries that count for a name; most names are not there."""
        return super().find(tag, levels, **attributes) if tag in self._tags else []

    def at(self, where: str) -> Entry | None:
        """The property at a place."""
        wanted = place(where)
        carried = ("units",) if wanted.tag in _BYTES else ()
        return self.one(wanted.tag, wanted.levels if wanted.path else NEAREST, carried=carried,
                        **dict(wanted.attributes))

    def extension(self, name: str, kind: str = "Scheduler") -> Entry | None:
        """An Extension by name."""
        if (name, kind) not in self._extensions:
            return None
        return self.one("Extension", NEAREST, name=name, type=kind)

    def of(self, group: TaskGroup) -> Asking:
        """The same for one of several groups."""
        return Asking(self.job, self.document, self.context, self.dialect, self.policy, group)

    def row(self, row: Row) -> list[tuple[str, str | None]]:
        """The option of a row, if the job says it."""
        entry = self.at(row.place) if row.place else None
        if entry is None or (not entry.text and row.fixed is None):
            return []
        if row.fixed is not None:
            if entry.text == row.grammar.write(row.fixed):
                return [(row.name, None)]
            entry.used = False
            return []
        try:
            text = entry.text
            if entry.tag in _BYTES:
                text = str(int(to_bytes(Decimal(text), entry.attributes.get("units")).to_integral_value(ROUND_CEILING)))
            return [(row.name, row.grammar.write(text))]
        except (ValueError, OverflowError) as error:
            self.dropped(entry, f"{entry.text}: {error}")
            return []


    def open(self) -> Iterator[tuple[str, str | None]]:
        """Options of names that the dialect leaves open, as they were kept."""
        for e in self.entries:
            name = e.attributes.get("name", "") if e.tag == "Extension" and not e.used else ""
            if name.startswith(self.dialect.open or "\n") and e.attributes.get("type") == self.dialect.name:
                e.used = True
                e.understood |= {"name", "type"}
                yield f"-{name}", None if e.text == f"-{name}" else e.text

    def kept(self, row: AnyRow, said: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """Options of a row that were kept as they are, but for those that are said already."""
        for name in sorted(set(row.names) - set(said), key=row.names.index):
            entry = self.extension(name.lstrip("-"), self.dialect.name)
            if entry is not None:
                yield name, None if entry.text == "true" else entry.text


def _source_of(job: Job) -> str:
    for p in job.all("Extension"):
        if p.attributes.get("name") == _DIALECT:
            return p.text
    return ""


def write(dialect: Dialect, document: Document, context: WriteContext) -> str:
    """The script of the one job in a document; what it cannot say is in ``context.findings``."""
    jobs = list(document.jobs())
    if len(jobs) != 1:
        context.findings.add("SSS505", "Document", f"{len(jobs)} jobs, a script holds one (--out writes one file each)")
        context.findings.raise_if_rejected()
    job, defaults = jobs[0]
    came = isinstance(document, ScriptDocument)
    policy = policy_of(document.root if isinstance(document.root, Container) else job,
                       context.policy or (Policy.WARN if came else Policy.REJECT))
    if context.options.get("body", "keep") != "keep":
        raise ValueError("body is keep")
    if isinstance(defaults, JobDefaults):
        job = effective(job, defaults, policy=policy.value).fold()
    groups: list[TaskGroup | None] = list(job.task_groups) if dialect.separator and len(job.task_groups) > 1 else [None]
    asked = [Asking(job, document, context, dialect, policy, group) for group in groups]
    shebang, asked[0].body = _body(asked[0])
    options: list[tuple[str, str | None, Asking]] = []
    for number, asking in enumerate(asked):
        if number:
            options.append((dialect.separator, None, asking))
        for row in dialect.rows:
            if number and not _again(row):
                continue
            asking.silent = number > 0 and not _layout(row)
            made = asking.row(row) if isinstance(row, Row) else list(row.write(asking))
            made += asking.kept(row, [name for name, _ in made])
            options += [(*m, asking) for m in sorted(made, key=lambda m: row.names.index(m[0]))]
        asking.silent = False
        options += [(*m, asking) for m in asking.open()]
    body = asked[0].body
    _defaults(asked[0], body)
    _left_over(asked)
    directives = [line for name, value, asking in options if (line := _line(dialect, name, value, asking))]
    return shebang + "".join(directives) + _disarmed(asked[0], shebang, directives, body)


def _again(row: AnyRow) -> bool:
    """Whether each part of a heterogeneous job says it anew."""
    return _layout(row) or row.name in ("--time", "--account", "--partition", "--qos")


def _line(dialect: Dialect, name: str, value: str | None, asking: Asking) -> str:
    try:
        return f"{dialect.prefix} {dialect.directive(name, value)}\n"
    except QuotingError as error:
        asking.note(DROPPED, None, f"{name}: {error}", subject=name)
        return ""


def _body(asking: Asking) -> tuple[str, str]:
    """The first line, and what follows: the script of the job, else a line that starts its executable."""
    entry, arguments = asking.one("Executable"), asking.one("Arguments")
    text = "" if entry is None else entry.text
    file = asking.document.files.get(text[1:]) if text.startswith("#") else None
    if file is not None:
        script = file.content().decode("utf-8", "surrogateescape")
        if arguments is not None:
            asking.dropped(arguments, "a script gets its arguments when it is submitted")
        first, end, rest = script.partition("\n")
        return (first + end, rest) if first.startswith("#!") and end else ("#!/bin/sh\n", script)
    command = [str(word(text))] if text else []
    if arguments is not None:
        try:
            command.append(words(shlex.split(arguments.text)))
        except ValueError:
            command.append(word(arguments.text))
    return "#!/bin/sh\n", "".join(f"{' '.join(command)}\n" if command else "")


def _defaults(asking: Asking, body: str) -> None:
    """What the source's defaults did and the target's do not (decisions 14), and variables that will not be there."""
    from sssjob.translators.registry import get

    asking.extension(_DIALECT)
    if not asking.source or asking.source == asking.dialect.name:
        return
    source = _DIALECTS.get(asking.source)
    if source is None:
        try:
            get(asking.source)
        except ValueError:
            return
        source = _DIALECTS.get(asking.source)
    if source is None:
        return
    name, target = source.title, asking.dialect
    environment = asking.job.environment
    if source.exports != target.exports and (environment is None or environment.export is None):
        asking.note(APPROXIMATED, None, f"Environment: jobs of {name} find {_much(source)} of the submitter's "
                    f"variables unless told otherwise, those of {target.title} {_much(target)}", subject="Environment")
    if source.starts_in != target.starts_in and asking.job.first("InitialWorkingDirectory") is None:
        asking.note(APPROXIMATED, None, f"InitialWorkingDirectory: a job of {name} starts in the {source.starts_in} "
                    f"directory, one of {target.title} in the {target.starts_in} directory",
                    subject="InitialWorkingDirectory")
    if not any(v in target.variables for v in source.variables):
        _variables(asking, source, body)


def _much(dialect: Dialect) -> str:
    return "all" if dialect.exports else "few"


def _variables(asking: Asking, source: Dialect, body: str) -> None:
    """Each line of the body that uses variables of the source's; the body is kept."""
    found = re.compile(rf"\$\{{?((?:{'|'.join(map(re.escape, source.variables))})\w+)", re.ASCII)
    at = asking.document.lines if isinstance(asking.document, ScriptDocument) else []
    first = 0 if len(at) == body.count("\n") + (not body.endswith("\n")) else 1
    for index, line in enumerate(body.split("\n"), first):
        number = at[index] if index < len(at) else index + 1
        if hit := found.search(line):
            asking.findings.add(APPROXIMATED, hit[1], f"the script uses {hit[1]} of {source.title}, which "
                                f"{asking.dialect.title} does not set; the line is kept", line=number,
                                column=hit.start() + 1, excerpt=line)


def _disarmed(asking: Asking, shebang: str, directives: list[str], body: str) -> str:
    """The body with ``#`` before each line that the target would take for a directive."""
    text = shebang + "".join(directives) + body
    lines = list(lines_of(text))
    live = {line.number for line in asking.dialect.live(lines)}
    first = len(directives) + 2
    hit = [line for line in lines[first - 1:] if line.number in live]
    if not hit:
        return body
    for line in hit:
        asking.findings.add(APPROXIMATED, "directive", f"{asking.dialect.title} would obey this comment of the script; "
                            "it is written with one more #", line=line.number, column=1, excerpt=line.text)
    return "".join(("#" if line.number in live else "") + line.text + line.end for line in lines[first - 1:])


def _left_over(asked: Sequence[Asking]) -> None:
    """One finding for each property and attribute that was not carried."""
    used = {id(e.item): e for asking in asked for e in asking.entries if e.used}
    seen: set[int] = set()
    for asking in asked:
        for e in asking.entries:
            if id(e.item) in seen:
                continue
            seen.add(id(e.item))
            found = used.get(id(e.item))
            name = " ".join([e.tag, *filter(None, [e.attributes.get("name") if e.tag != "Variable" else None])])
            if _fact(e):
                asking.note(DROPPED, e, "results of a run are no part of a request", "warning", e.tag)
            elif found is None:
                if not (e.tag == "Interactive" and e.value is False):
                    asking.dropped(e, "", name)
            else:
                for attribute in found.attributes.keys() - found.understood - {"awarenessPolicy"}:
                    asking.dropped(e, f"attribute {attribute} is not carried", f"{e.tag}/@{attribute}")


def _fact(e: Entry) -> bool:
    """Whether it tells of an earlier run."""
    return e.slot == "Delivered" or e.tag in FACTS or (
        e.tag == "Extension" and e.attributes.get("type") == "LRM") or (
        e.tag == "Duration" and e.slot == "" and not e.used) or (
        e.level.startswith(GROUP + "/Task") and e.tag in ("Id", "Node") and not e.level.endswith("Defaults"))


_DIALECTS: dict[str, Dialect] = {}


def translator(dialect: Dialect) -> Translator:
    """The Translator of a dialect, for its entry point."""
    _DIALECTS[dialect.name] = dialect
    return Translator(dialect.name, f"{dialect.title} batch script", "script",
                      lambda data, context: read(dialect, data, context),
                      lambda document, context: write(dialect, document, context), dialect.suffixes or (".sh",))
