"""What the script dialects have in common: reading in two stages, writing in canonical order, and the way of each
directive.

A dialect is a ``Dialect``: how lines become options (``scan``), one table of rows over its parent's, and what the
table cannot say as ``Special`` rows. The script without its live directives stays in the document as the File
``Script``, byte for byte (decisions 1 and 3).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from sssjob.element import Container, Property, Value, new_property
from sssjob.findings import Policy, Severity
from sssjob.model import CLASSES, Document, File, Job, JobDefaults, Raw, TaskGroup
from sssjob.templates.quoting import QuotingError, word, words
from sssjob.translators.asked import AMOUNTS, FACTS, GROUP, NEAREST, TASK, Asked, Entry, Target, policy_of
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.bodies.facts import Facts
from sssjob.translators.scripts import untranslated
from sssjob.translators.scripts.body import carry, mode_of
from sssjob.translators.scripts.grammars import TEXT, Grammar, Kept
from sssjob.translators.scripts.raw import TEMPLATE, Line, Option, lines_of, shell_words
from sssjob.units import from_bytes, to_bytes

if TYPE_CHECKING:
    from sssjob.translators.recognise import Fit, Sample

__all__ = [
    "APPROXIMATED", "CONTRADICTORY", "DEAD", "DROPPED", "INVENTED", "PARTS", "REFUSED", "SITE", "TEMPLATED", "Asking",
    "Dialect", "Entry", "Place", "Reading", "Row", "Scan", "ScriptDocument", "Special", "asking_for", "dialect_of",
    "express", "leftovers", "place", "script_of", "table", "translator", "understand",
]

#: Rules of findings.
DROPPED: Final = "SSS501"
APPROXIMATED: Final = "SSS502"
INVENTED: Final = "SSS503"
SITE: Final = "SSS504"
REFUSED: Final = "SSS505"
CONTRADICTORY: Final = "SSS304"
DEAD: Final = "SSS506"
TEMPLATED: Final = "SSS507"

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


@dataclass(frozen=True, eq=False)
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
    pads: bool = False              # whether numbers in file names may be padded with zeros, as in %4j
    disarm: str = "#"               # what makes a live line of a script a dead one
    separator: str = ""             # option between the parts of a heterogeneous job
    open: tuple[str, ...] = ()      # beginnings of options whose names are the site's, such as ``l `` of PBS
    body: Facts | None = None       # what a job finds, of a dialect that is not in bodies/facts.py
    foreign: tuple[str, ...] = ()   # options that belong to a relative: the manager would take or refuse them later

    @cached_property
    def known(self) -> dict[str, AnyRow]:
        """Option -> row."""
        return {name: row for row in self.rows for name in row.names}

    @cached_property
    def places(self) -> dict[str, int]:
        """Option -> place of its row in the order."""
        return {name: number for number, row in enumerate(self.rows) for name in row.names}

    @cached_property
    def writing(self) -> tuple[tuple[AnyRow, str | None], ...]:
        """The rows, each with the one property that it says (empty: what only this dialect knows), or None."""
        return tuple((row, place(row.place).tag if isinstance(row, Row) else None) for row in self.rows)


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
    options: list[Option] = field(default_factory=list, compare=False)      # all that are live, in order

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
        self.options: list[Option] = []             # all of the part being read, also those that another one replaces

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
        at: Container = self.job
        if self.several and self.group is not None and path[:1] != ("TaskGroup",):
            path = ("TaskGroup", *path)
        for tag in path:
            if tag == "TaskGroup":
                if self.group is None:
                    self.group = TaskGroup()
                if not any(i is self.group for i in at.items):
                    at.items.append(self.group)
                at = self.group
            else:
                for item in at.items:
                    if item.tag == tag and isinstance(item, Container):
                        at = item
                        break
                else:
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
        made = new_property(at.tag, value, dict(at.attributes, **more) if at.attributes or more else None)
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
        self.stumble(option, why, expected)
        self.keep(option)

    def stumble(self, option: Option, why: str, expected: str) -> None:
        """The finding alone."""
        if option.value is not None and TEMPLATE.search(option.value, 0, 4096):
            self.tell(TEMPLATED, option, "a placeholder of a template; kept as text")
        else:
            self.refuse(f"{option.shown}: {why} (expected: {expected})", option.line, option.column, option.name,
                        option.text)

    def moment(self, tag: str, grammar: Grammar, option: Option) -> None:
        """A time of day of the site's clock, which a site profile knows the zone of and else is taken as UTC."""
        site = self.context.site

        def read(text: str) -> Value:
            local = grammar.read(text)
            assert isinstance(local, int)
            stamp = site.stamp(local) if site is not None else None
            return local if stamp is None else stamp

        before = len(self.job.items)
        self.row(Row(option.name, tag, Grammar(read, grammar.write, grammar.expected)), option)
        if (site is None or site.timezone is None) and any(
                i.tag == tag and isinstance(i, Property) for i in self.job.items[before:]):
            self.tell(SITE, option, "the clock of the site is taken as UTC")

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
    if given := context.options.get("set"):
        scan.components[0] += dialect.arguments(reading, given)
    job = understand(reading, scan.components)
    job.set("Executable", f"#{_SCRIPT}")
    job.items.sort(key=_order)
    context.findings.raise_if_rejected()
    body = "".join(line.text + line.end for line in scan.rest)
    file = File(_SCRIPT, base64.b64encode(body.encode("utf-8", "surrogateescape")).decode(), "base64") if encoded \
        else File(_SCRIPT, body)
    root = Raw("Request", {"action": "Submit"}, children=[Raw("Object", text="Job"), Raw("Data", children=[job])])
    return ScriptDocument(root, {_SCRIPT: file}, context.path, context.profile, context.findings,
                          reading.origins, [line.number for line in scan.rest],
                          [option for part in scan.components for option in part])


def understand(reading: Reading, components: list[list[Option]]) -> Job:
    """The job that options ask for: the second stage, also for a format that spells the options of a dialect in another
    way. Raises RejectedError when it is refused."""
    findings = reading.findings
    findings.raise_if_rejected()
    if len(components) > PARTS:
        findings.add("SSS110", "parts", f"more than {PARTS} parts of one job")
        findings.raise_if_rejected()
    reading.several = len(components) > 1
    for number, options in enumerate(components):
        reading.group = TaskGroup() if reading.several else None
        _component(reading, options, number)
    reading.job.add("Extension", reading.dialect.name, type="Scheduler", name=_DIALECT)
    return reading.job


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
    return text, _UNFIT.search(text) is not None


#: What XML cannot hold, or gives back as something else.
_UNFIT: Final = re.compile("[\0-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_ORDER: Final = {"Environment": 1, "Requested": 2, "TaskGroupDefaults": 3, "TaskGroup": 4}


def _order(item: Property | Container | Raw) -> int:
    return _ORDER.get(item.tag, 0) if isinstance(item, Container) else 0


def _component(reading: Reading, options: list[Option], number: int) -> None:
    """The options of one part: the last of a name counts; what is no amount is said by the first part."""
    reading.options = options
    last: dict[str, Option] = {o.name: o for o in options}
    places = reading.dialect.places
    for at in sorted({places[name] for name in last if name in places}):
        row = reading.dialect.rows[at]
        simple = isinstance(row, Row)
        there = {} if simple else {name: last[name] for name in row.names if name in last}
        if number and not _layout(row):
            _shared(reading, [last[row.name]] if simple else there.values())
            continue
        several = reading.several
        reading.several = several and _layout(row)
        if isinstance(row, Row):
            reading.row(row, last[row.name])
        else:
            row.read(reading, there)
        reading.several = several
    for name in [n for n in last if n not in places]:
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
        self.lost: list[tuple[Entry, Option | None]] = []       # with the directives that they came from
        self.prefix = dialect.prefix
        target = Target(word=f"{dialect.title} has no place for it", launcher="")
        super().__init__(job, context.findings, policy, target, group)
        self._extensions = {(e.item.attributes.get("name"), e.item.attributes.get("type"))
                            for e in self._tagged.get("Extension", ())}
        self.own = any(kind == dialect.name for _, kind in self._extensions)    # options kept as they are
        self.tags = self._tagged.keys()

    def note(self, rule: str, entry: Entry | None, message: str, severity: Severity | None = None,
             subject: str = "") -> None:
        """One finding, with line and column of the directive where the document came from a script."""
        if self.silent:
            return
        origin = None
        if entry is not None and isinstance(self.document, ScriptDocument):
            origin = self.document.origin(entry.item)
        if rule == DROPPED and entry is not None and not _fact(entry):
            self.lost.append((entry, origin))
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

    def at(self, where: str) -> Entry | None:
        """The property at a place; most are not there."""
        wanted = place(where)
        if wanted.tag not in self._tagged:
            return None
        carried = ("units",) if wanted.tag in _BYTES else ()
        if not wanted.attributes:
            return self.one(wanted.tag, wanted.levels if wanted.path else NEAREST, carried=carried)
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

    def moment(self, tag: str, grammar: Grammar) -> str | None:
        """A time as the site's clock shows it; without a site profile in UTC."""
        entry = self.one(tag)
        if entry is None:
            return None
        site = self.context.site
        local = site.clock(int(entry.text)) if site is not None else None
        if local is None and not self.source:
            self.note(SITE, entry, "written in UTC, read by the clock of the site")
        return grammar.write(entry.text if local is None else str(local))

    def row(self, row: Row) -> list[tuple[str, str | None]]:
        """The option of a row, if the job says it."""
        used = {id(e) for e in self._tagged.get(place(row.place).tag, ()) if e.used} if row.fixed is not None else ()
        entry = self.at(row.place) if row.place else None
        if entry is None or (not entry.text and row.fixed is None):
            return []
        if row.fixed is not None:
            if entry.text == row.grammar.write(row.fixed):
                return [(row.name, None)]
            entry.used = id(entry) in used      # one of two options that exclude each other may have said it
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
            own = e.tag == "Extension" and not e.used and e.attributes.get("type") == self.dialect.name
            name = e.attributes.get("name", "") if own else ""
            if name.startswith(self.dialect.open or "\n"):
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
    mode_of(context.options.get("body"))
    asked = asking_for(dialect, document, context)
    shebang, asked[0].body = _body(asked[0])
    options = express(asked)
    body = asked[0].body
    _defaults(asked[0])
    leftovers(asked)
    commented = untranslated.wanted(asked[0])
    if commented:
        again, body = untranslated.restored(asked[0], [name for name, _, _ in options], body)
        first = next((n for n, o in enumerate(options) if o[2] is not asked[0]), len(options))      # of the next part
        options[first:first] = [(name, value, asked[0]) for name, value in again]
    directives = [line for name, value, asking in options if (line := _line(dialect, name, value, asking))]
    if commented:
        body = untranslated.comments(asked) + body
    return shebang + "".join(directives) + _disarmed(asked[0], shebang, directives, body)


def asking_for(dialect: Dialect, document: Document, context: WriteContext) -> list[Asking]:
    """The one job in a document, ready to be asked; several where it has parts that the dialect can say."""
    jobs = list(document.jobs())
    if len(jobs) != 1:
        context.findings.add("SSS505", "Document", f"{len(jobs)} jobs, a script holds one (--out writes one file each)")
        context.findings.raise_if_rejected()
    job, defaults = jobs[0]
    came = isinstance(document, ScriptDocument)
    policy = policy_of(document.root if isinstance(document.root, Container) else job,
                       context.policy or (Policy.WARN if came else Policy.REJECT))
    if isinstance(defaults, JobDefaults):
        from sssjob.inherit import effective

        job = effective(job, defaults, policy=policy.value).fold()
    groups: list[TaskGroup | None] = list(job.task_groups) if dialect.separator and len(job.task_groups) > 1 else [None]
    return [Asking(job, document, context, dialect, policy, group) for group in groups]


def express(asked: Sequence[Asking]) -> list[tuple[str, str | None, Asking]]:
    """The options of a job in the order of writing: name, value (None: without one), and the part that they are of."""
    dialect = asked[0].dialect
    options: list[tuple[str, str | None, Asking]] = []
    for number, asking in enumerate(asked):
        if number:
            options.append((dialect.separator, None, asking))
        for row, tag in dialect.writing:
            if not asking.own and tag is not None and tag not in asking.tags:
                continue
            if number and not _again(row):
                continue
            asking.silent = number > 0 and not _layout(row)
            made = asking.row(row) if isinstance(row, Row) else list(row.write(asking))
            if asking.own:
                made += asking.kept(row, [name for name, _ in made])
            if len(made) > 1:
                made.sort(key=lambda m: row.names.index(m[0]))
            options += [(name, value, asking) for name, value in made]
        asking.silent = False
        options += [(*m, asking) for m in asking.open()]
    return options


def _again(row: AnyRow) -> bool:
    """Whether each part of a heterogeneous job says it anew."""
    return _layout(row) or row.name in ("--time", "--account", "--partition", "--qos")


def _line(dialect: Dialect, name: str, value: str | None, asking: Asking) -> str:
    try:
        text = dialect.directive(name, value)
        if "\n" not in text:
            return f"{asking.prefix} {text}\n"
        return "".join(f"{asking.prefix} {line}\n" for line in text.split("\n"))
    except QuotingError as error:
        row = dialect.known.get(name)
        subject = place(row.place).tag if isinstance(row, Row) and row.place else name
        asking.note(DROPPED, None, f"{name}: {error}", subject=subject)
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
        if first.startswith("#!") and end:
            return first + end, carry(asking, first, rest, 1)
        return "#!/bin/sh\n", carry(asking, "", script, 0)
    command = [str(word(text))] if text else []
    if arguments is not None:
        try:
            command.append(words(shell_words(arguments.text)))
        except ValueError:
            command.append(word(arguments.text))
    return "#!/bin/sh\n", "".join(f"{' '.join(command)}\n" if command else "")


def _defaults(asking: Asking) -> None:
    """What the source's defaults did and the target's do not (decisions 14)."""
    asking.extension(_DIALECT)
    if not asking.source or asking.source == asking.dialect.name:
        return
    source = dialect_of(asking.source)
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


def _much(dialect: Dialect) -> str:
    return "all" if dialect.exports else "few"


def _disarmed(asking: Asking, shebang: str, directives: list[str], body: str) -> str:
    """The body with ``#`` before each line that the target would take for a directive."""
    text = shebang + "".join(directives) + body
    lines = list(lines_of(text))
    live = {line.number for line in asking.dialect.live(lines)}
    first = sum(text.count("\n") for text in directives) + 2
    hit = [line for line in lines[first - 1:] if line.number in live]
    if not hit:
        return body
    for line in hit:
        asking.findings.add(APPROXIMATED, "directive", f"{asking.dialect.title} would obey this comment of the script; "
                            f"it is written with {asking.dialect.disarm} before it", line=line.number, column=1,
                            excerpt=line.text)
    before = asking.dialect.disarm
    return "".join((before if line.number in live else "") + line.text + line.end for line in lines[first - 1:])


def leftovers(asked: Sequence[Asking]) -> None:
    """One finding for each property and attribute that was not carried."""
    many = len(asked) > 1
    used = {id(e.item): e for asking in asked for e in asking.entries if e.used} if many else {}
    seen: set[int] = set()
    for asking in asked:
        for e in asking.entries:
            found = e if e.used else None
            if many:
                if id(e.item) in seen:
                    continue
                seen.add(id(e.item))
                found = used.get(id(e.item))
            if (e.slot == "Delivered" or e.item.tag in _SUSPECT) and _fact(e):
                asking.note(DROPPED, e, "results of a run are no part of a request", "warning", e.tag)
            elif found is None:
                if not (e.tag == "Interactive" and e.value is False):
                    name = e.attributes.get("name") if e.tag != "Variable" else None
                    asking.dropped(e, "", f"{e.tag} {name}" if name else e.tag)
            elif not found.understood.issuperset(found.item.attributes):
                for attribute in sorted(found.attributes.keys() - found.understood - {"awarenessPolicy"}):
                    asking.dropped(e, f"attribute {attribute} is not carried", f"{e.tag}/@{attribute}")


#: Properties that may tell of an earlier run.
_SUSPECT: Final = FACTS | {"Extension", "Duration", "Id", "Node"}


def _fact(e: Entry) -> bool:
    """Whether it tells of an earlier run."""
    tag = e.item.tag
    return e.slot == "Delivered" or tag in FACTS or (
        tag == "Extension" and e.item.attributes.get("type") == "LRM") or (
        tag == "Duration" and e.slot == "" and not e.used) or (
        tag in ("Id", "Node") and e.level.startswith(GROUP + "/Task") and not e.level.endswith("Defaults"))


_DIALECTS: dict[str, Dialect] = {}


def dialect_of(name: str) -> Dialect | None:
    """The dialect of a format; None for one that has none or is not known."""
    from sssjob.translators.registry import get

    if name and name not in _DIALECTS:
        try:
            get(name)
        except ValueError:
            return None
    return _DIALECTS.get(name)


def script_of(asking: Asking) -> str:
    """The whole script of a job, carried over, for a target that keeps its directives in another file."""
    shebang, asking.body = _body(asking)
    _defaults(asking)
    return shebang + asking.body


def recognise(dialect: Dialect, sample: Sample) -> Fit | None:
    """By the lines that the dialect's own reader would obey, and by what it would refuse in them."""
    from sssjob.translators.recognise import Fit

    lines = sample.memory.get("lines") or list(lines_of(sample.text))
    sample.memory["lines"] = lines      # every dialect looks at them
    claims = frozenset(line.number for line in dialect.live(lines))
    if not claims:
        return None
    reading = Reading(dialect, ReadContext(sample.path))
    options = [o for part in dialect.scan(reading, lines).components for o in part]
    strange = next((o.name for o in options if o.name in dialect.foreign), "")
    refused = next((f.message for f in reading.findings if f.kind == "refused" and f.line in claims), "")
    against = f"{strange} belongs to a relative of it" if strange else refused
    number = len(claims)
    return Fit(f"{number} line{'s' * (number > 1)} of {dialect.prefix} that {dialect.title} obeys, the first is "
               f"{min(claims)}", against, claims)


def translator(dialect: Dialect) -> Translator:
    """The Translator of a dialect, for its entry point."""
    _DIALECTS[dialect.name] = dialect
    return Translator(dialect.name, f"{dialect.title} batch script", "script",
                      lambda data, context: read(dialect, data, context),
                      lambda document, context: write(dialect, document, context), dialect.suffixes or (".sh",),
                      lambda sample: recognise(dialect, sample))
