"""Reading a script in two stages: options with line and column, then properties.

The script without its live directives stays in the document as the File ``Script``, byte for byte (decisions 1 and 3).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain, count, repeat
from operator import attrgetter, itemgetter
from typing import Final

from sssjob.consequences import Consequence
from sssjob.document.element import NO_ATTRIBUTES, Container, Property, Value, property_of
from sssjob.document.model import CLASSES, Document, File, Job, Raw, TaskGroup
from sssjob.document.units import from_bytes
from sssjob.findings import Finding, Policy, Severity
from sssjob.translators.base import ReadContext
from sssjob.translators.scripts.copies import MARK, taken_back
from sssjob.translators.scripts.grammars import FROM_NOW, Coming, FromNow, Grammar, Kept, unstamped
from sssjob.translators.scripts.placeholders import scanned
from sssjob.translators.scripts.raw import TEMPLATE, Line, Option, Told, here_lines, lines_of
from sssjob.translators.scripts.resource_limits import taken
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    DEAD,
    DIALECT,
    PARTS,
    REFUSED,
    SCRIPT,
    SITE,
    TEMPLATED,
    WHOLE_NODES,
    AnyRow,
    Dialect,
    Place,
    Row,
    Scan,
    ScriptDocument,
    fate_of,
    of_part,
    place,
)

__all__ = ["Reading", "Unremarkable", "read", "understand"]


#: What is said of the options that a row looks at, behind its name or that of its option.
_Said = tuple[str | None, ...]
_UNSAID: Final = "\0"       # no script has it
_LONGEST: Final = 300       # characters of options that are kept in mind


class Unremarkable:
    """Options that a reader said nothing about which its caller wants to hear, so that they need not be read again.
    Its caller wants no job, so that nothing is put into one.

    What a row says depends on the options of the row alone, and on those that it names as ``beside``; scripts of one
    tree have most of theirs in common. matters: whether a finding is wanted; most: how many are kept, each of at most
    300 characters.
    """

    def __init__(self, matters: Callable[[Finding], bool], most: int = 20_000) -> None:
        self._matters, self._most = matters, most
        self._seen: dict[Dialect, set[_Said]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def read(self, reading: Reading, options: Sequence[Option]) -> None:
        """Read the options of a job of one part, but for those of which nothing is to be said."""
        dialect = reading.dialect
        seen = self._seen.setdefault(dialect, set())
        last: dict[str, Option] = dict(zip(map(_NAME, options), options, strict=True))
        unread: list[tuple[int, _Said]] = []         # place of a row, and what is said of all that it reads
        for name in last.keys() & dialect.alone.keys():
            if (option_said := last[name][:2]) not in seen:
                unread.append((dialect.alone[name], option_said))
        for name in last.keys() & dialect.of_any_text.keys():
            if not last[name].value:
                unread.append((dialect.of_any_text[name], last[name][:2]))
        values: dict[str, str | None] = dict(map(_SAID, options))
        if len(values) < len(options):
            values = _all_values(options)
        together = dialect.together
        for at in set(chain.from_iterable(map(together.__getitem__, together.keys() & last.keys()))):
            if (key := (dialect.rows[at].name, *map(values.get, dialect.looked_at[at], repeat(_UNSAID)))) not in seen:
                unread.append((at, key))
        for at, key in sorted(unread, key=_NUMBER):
            if self._unremarkable(reading, dialect.rows[at], last):
                self._keep(dialect, key)

    def _unremarkable(self, reading: Reading, row: AnyRow, last: Mapping[str, Option]) -> bool:
        """Read the options of a row; whether nothing was said of them that its caller wants to hear. last: the last
        option of each name."""
        findings = reading.findings
        told_before, first = findings.told, len(findings)
        if isinstance(row, Row):
            reading.row(row, last[row.name])
        elif own := {name: last[name] for name in row.names if name in last}:
            row.read(reading, own)
        return findings.told == told_before or not (
            findings.is_full or any(map(self._matters, findings.after(first))))

    def _keep(self, dialect: Dialect, key: _Said) -> None:
        if sum(map(len, filter(None, key))) <= _LONGEST:
            if self._count >= self._most:
                self._seen.clear()
                self._count = 0
            self._seen.setdefault(dialect, set()).add(key)
            self._count += 1


def _all_values(options: Iterable[Option]) -> dict[str, str | None]:
    """Option -> its values, in their order, as one text."""
    values: dict[str, str | None] = {}
    for name, value, *_ in options:
        values[name] = f"{values.get(name, '')}\n{_UNSAID if value is None else value}"
    return values


class Reading:
    """A script on its way into a job."""

    def __init__(self, dialect: Dialect, context: ReadContext) -> None:
        self.dialect, self.context = dialect, context
        self.findings = context.findings
        self.job = Job()
        self._group: TaskGroup | None = None
        self.several = False                        # parts stand side by side: amounts belong to their groups
        self.origins: dict[int, tuple[Property, Option]] = {}
        self.lines: list[Line] = []
        self._inner: frozenset[int] | None = None   # numbers of the lines in here-documents
        self.options: list[Option] = []             # all of the part being read, also those that another one replaces
        self._found: dict[tuple[str, ...], Container] = {(): self.job}      # containers by path, of one group

    @property
    def group(self) -> TaskGroup | None:
        """The task group of the part being read; None: it has none yet."""
        return self._group

    @group.setter
    def group(self, group: TaskGroup | None) -> None:
        """Put what follows into this task group; None: into the job."""
        if group is not self._group:
            self._group, self._found = group, {(): self.job}

    # -- telling
    def tell(self, rule: str, option: Option, message: str, severity: Severity | None = None,
             consequence: Consequence | None = None) -> None:
        """One finding about a directive."""
        self.findings.add(rule, option.name, f"{option.shown}: {message}", policy=self.context.policy or Policy.WARN,
                          severity=severity, line=option.line, column=option.column, excerpt=option.text,
                          consequence=consequence)

    def refuse(self, message: str, line: int, column: int = 0, subject: str = "script", text: str = "") -> None:
        """What the real command refuses: an error, unless the policy asks for less (decisions 13)."""
        lenient = self.context.policy in (Policy.WARN, Policy.IGNORE)
        self.findings.add(REFUSED, subject, message, severity="warning" if lenient else None, line=line, column=column,
                          excerpt=text)

    def dead(self, line: Line, why: str, column: int = 1) -> None:
        """A line that looks like a directive and is none; one in a here-document may be one of another script."""
        if self._inner is None:
            self._inner = frozenset(inner.number for inner in here_lines(self.lines))
        if line.number in self._inner:
            self.findings.add(DEAD, "directive", "the directive stands in a here-document, for a script that this one "
                              "writes, and asks for nothing here; --body translate converts it where a submit "
                              "command reads it, else convert that script by itself", line=line.number,
                              column=column, excerpt=line.text)
            return
        self.findings.add(DEAD, "directive", f"the directive is dead: {why}; it stays in the script as a comment",
                          line=line.number, column=column, excerpt=line.text)

    # -- putting
    def scope(self, path: tuple[str, ...]) -> Container:
        """The container at a path; TaskGroup is that of the part being read."""
        if self.several and self._group is not None and path[:1] != ("TaskGroup",):
            path = ("TaskGroup", *path)
        container = self._found.get(path)
        if container is None:
            container = self._found[path] = self._made(path)
        return container

    def _made(self, path: tuple[str, ...]) -> Container:
        above, tag = path[:-1], path[-1]
        outer = self._found.get(above)
        items = (self._made(above) if outer is None else outer).items
        if tag == "TaskGroup":
            group = self._group = self._group or TaskGroup()
            if not any(i is group for i in items if i.tag == tag):
                items.append(group)
            return group
        for item in items:
            if item.tag == tag and isinstance(item, Container):
                return item
        container = CLASSES[tag]()
        items.append(container)
        return container


    def every(self, name: str) -> list[Option]:
        """All options of a name, in their order, also those that a later one replaces."""
        return [option for option in self.options if option.name == name]

    def put(self, where: str, value: Value, option: Option, **more: str) -> Property:
        """A property at a place."""
        return self._put(place(where), value, option, more)

    def _put(self, at: Place, value: Value, option: Option, more: dict[str, str]) -> Property:
        """The same at a place that was looked up; nothing where only remarks are wanted."""
        if self.context.remarks is not None:
            return _UNUSED
        if at.special and type(value) is not str:
            value = _fitting(at, value)
        prop = property_of(at.made, at.tag, value, {**at.attributes, **more} if more else at.attributes)
        scope = None if self.several else self._found.get(at.path)
        if scope is None:
            scope = self.scope(at.path)
        scope.items.append(prop)
        self.origins[id(prop)] = (prop, option)
        return prop

    def top(self, where: str, value: Value, option: Option, **more: str) -> Property:
        """A property of the whole job, whatever part is being read."""
        several, self.several = self.several, False
        entry = self.put(where, value, option, **more)
        self.several = several
        return entry

    def bytes(self, where: str, amount: int, option: Option, **more: str) -> None:
        """An amount of bytes, in the largest unit that is exact."""
        if self.context.remarks is not None:
            return
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
        self.keep(option if _is_template(option) else Told(*option))

    def keep_alone(self, option: Option, why: str) -> None:
        """A value that means something to this dialect alone, which is told once, with the reason."""
        self.tell(SITE, option, f"{why}; kept for {self.dialect.title} alone",
                  consequence=fate_of(self.dialect.name, option.name.lstrip("-")))
        self.keep(Told(*option))

    def stumble(self, option: Option, why: str, expected: str) -> None:
        """The finding alone."""
        if _is_template(option):
            self.tell(TEMPLATED, option, "a placeholder of a template; kept as text")
        else:
            self.refuse(f"{option.shown}: {why} (expected: {expected})", option.line, option.column, option.name,
                        option.text)

    def moment(self, tag: str, grammar: Grammar, option: Option) -> None:
        """A time of day of the site's clock, which a site profile knows the zone of and else is taken as UTC."""
        site = self.context.site
        try:
            local = grammar.read(option.value or "")
        except Coming as coming:
            self.put(unstamped(tag, coming.scope), str(coming), option)
            return
        except FromNow as ahead:
            if tag == "EligibleTime":
                self.put(FROM_NOW, ahead.seconds, option)
            else:
                self.keep(option)
            return
        except Kept:
            self.keep(option)
            return
        except ValueError as error:
            self.misfit(option, str(error), grammar.expected)
            return
        assert isinstance(local, int)
        stamp = site.stamp(local) if site is not None else None
        self.put(tag, local if stamp is None else stamp, option)
        if site is None or site.timezone is None:
            self.tell(SITE, option, "the clock of the site is taken as UTC", consequence="costs")

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
        at = place(row.place)
        if at.bytes:
            self.bytes(row.place, int(value), option)
        else:
            self._put(at, value, option, NO_ATTRIBUTES)


_UNUSED: Final = Property("Extension", "")      # what is put where nobody looks


def _is_template(option: Option) -> bool:
    return option.value is not None and TEMPLATE.search(option.value, 0, 4096) is not None


def _fitting(at: Place, value: Value) -> Value:
    """A value as the property of a place holds it: text, or of a resource a decimal."""
    if at.texts:
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return Decimal(value) if isinstance(value, int) else value


def read(dialect: Dialect, data: bytes, context: ReadContext) -> Document:
    """The document of a script. Raises RejectedError when it is refused."""
    reading = Reading(dialect, context)
    text = _text_of(reading, data)
    reading.lines = lines = list(lines_of(text)) if context.sample is None else context.sample.lines
    scan = _scanned(reading, lines, text)
    if set_text := context.options.get("set"):
        scan.components[0] += dialect.arguments(reading, set_text)
    if dialect.late and "<<" in text and _fits(text):
        _keep_inner(reading, scan, lines)
    options = list(chain.from_iterable(scan.components))
    if context.remarks is not None:
        job = understand(reading, scan.components)
        context.findings.raise_if_rejected()
        return ScriptDocument(job, {}, context.path, context.profile, context.findings, options=options, whole=lines)
    encoded = not _fits(text)
    scan.rest = taken(reading, scan.rest)
    job = understand(reading, scan.components)
    body = "".join([line.text + line.end for line in scan.rest])
    alone = not encoded and MARK.search(body, 0, 200) is not None and taken_back(dialect, job, body)
    if not alone:
        job.set_as_is("Executable", f"#{SCRIPT}")
    ranks = map(_ORDER.get, map(_TAG, job.items), repeat(0))
    job.items = list(map(_ITEM, sorted(zip(ranks, count(), job.items, strict=False))))
    context.findings.raise_if_rejected()
    lines_of_body = list(map(_NUMBER, scan.rest))
    encoded = encoded and not _fits(body)           # carriage returns that stood there may have gone
    if alone:
        return ScriptDocument(job, {}, context.path, context.profile, context.findings, reading.origins, lines_of_body,
                              options, lines)
    file = File(SCRIPT, base64.b64encode(body.encode("utf-8", "surrogateescape")).decode(), "base64") if encoded \
        else File(SCRIPT, body)
    root = Raw("Request", {"action": "Submit"}, children=[Raw("Object", text="Job"), Raw("Data", children=[job])])
    return ScriptDocument(root, {SCRIPT: file}, context.path, context.profile, context.findings, reading.origins,
                          lines_of_body, options, lines)


def _scanned(reading: Reading, lines: list[Line], text: str) -> Scan:
    """The first stage, unless the text was recognised by it."""
    context, dialect = reading.context, reading.dialect
    if context.sample is not None and context.site is None and context.policy is Policy.WARN:
        scan, findings = context.sample.scans.pop(dialect.name, (None, None))
        if scan is not None and findings is not None:
            reading.findings.extend(findings)
            return scan
    return scanned(dialect, reading, lines, text)


def _keep_inner(reading: Reading, scan: Scan, lines: list[Line]) -> None:
    """Leave directives that stand in a here-document, which the command obeys all the same, in the text that the
    here-document is."""
    begins = next((line.number for line in lines if "<<" in line.text), 0)
    inside = {option.line for part in scan.components for option in part if option.line > begins}
    kept = [line for line in here_lines(lines) if line.number in inside] if inside else []
    for line in kept:
        reading.findings.add(APPROXIMATED, "script", f"{reading.dialect.title} obeys this line of a here-document as "
                             "one of the script's own; it stays in the here-document too", line=line.number, column=1,
                             excerpt=line.text)
    if kept:
        scan.rest = sorted([*scan.rest, *kept], key=_NUMBER)


def understand(reading: Reading, components: list[list[Option]]) -> Job:
    """The job that options ask for: the second stage, also for a format that spells the options of a dialect in another
    way. Raises RejectedError when it is refused."""
    findings = reading.findings
    findings.raise_if_rejected()
    if len(components) > PARTS:
        findings.add("SSS110", "parts", f"more than {PARTS} parts of one job")
        findings.raise_if_rejected()
    reading.several = len(components) > 1
    partly = reading.several and not all(WHOLE_NODES in map(_NAME, options) for options in components)
    for number, options in enumerate(components):
        reading.group = TaskGroup() if reading.several else None
        _component(reading, options, number, WHOLE_NODES if partly else "")
    reading.job.add_as_is("Extension", reading.dialect.name, type="Scheduler", name=DIALECT)
    return reading.job


def _text_of(reading: Reading, data: bytes) -> str:
    """The text of a script."""
    limits = reading.context.limits
    if len(data) > limits.document_bytes:
        reading.findings.add("SSS110", "document_bytes", f"more than {limits.document_bytes} bytes")
        reading.findings.raise_if_rejected()
    if b"\0" in data:
        reading.refuse("a NUL byte: this is no script", data.count(b"\n", 0, data.index(b"\0")) + 1)
        reading.findings.raise_if_rejected()
    return data.decode("utf-8", "surrogateescape")


def _fits(text: str) -> bool:
    """Whether XML can hold a text; of ASCII the bytes are asked at once, for a search would ask each character."""
    return not text.encode().translate(None, _FIT) if text.isascii() else _UNFIT.search(text) is None


#: What XML cannot hold, or gives back as something else, and what of ASCII it holds.
_UNFIT: Final = re.compile("[\0-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_FIT: Final = bytes([0x09, 0x0A, *range(0x20, 0x80)])
#: Containers follow the properties.
_ORDER: Final = {"Environment": 1, "Requested": 2, "TaskGroupDefaults": 3, "TaskGroup": 4}
_TAG: Final = attrgetter("tag")
_NUMBER: Final = itemgetter(0)      # of a line
_NAME: Final = itemgetter(0)        # of an option
_SAID: Final = itemgetter(0, 1)     # its name and value
_ITEM: Final = itemgetter(2)        # behind its rank and its place


def _component(reading: Reading, options: list[Option], number: int, own: str) -> None:
    """The options of one part: the last of a name counts; what is no amount is said by the first part. own: a row
    that each part says for itself."""
    reading.options = options
    if reading.context.remarks is not None and not reading.several:
        reading.context.remarks.read(reading, options)
        return
    last: dict[str, Option] = dict(zip(map(_NAME, options), options, strict=False))
    places, rows, several = reading.dialect.places, reading.dialect.rows, reading.several
    options_by_row: dict[int, dict[str, Option]] = {}        # by place of the row
    others: list[Option] = []
    for name, option in last.items():
        at = places.get(name)
        if at is None:
            others.append(option)
        elif at in options_by_row:
            options_by_row[at][name] = option
        else:
            options_by_row[at] = {name: option}
    for at in sorted(options_by_row):
        row, of_row = rows[at], options_by_row[at]
        if several:
            reading.several = of_part(row)
            if row.name == own or (number and not reading.several):
                _shared(reading, of_row.values(), own)
                continue
        if isinstance(row, Row):
            reading.row(row, of_row[row.name])
        else:
            row.read(reading, of_row if len(of_row) == 1
                     else {name: of_row[name] for name in row.names if name in of_row})
    reading.several = several
    for option in others:
        reading.keep(option)


def _shared(reading: Reading, options: Iterable[Option], own: str) -> None:
    for option in options:
        stated = [o for p, o in reading.origins.values() if o.name == option.name]
        if option.name == own or not any(o.value == option.value for o in stated):
            reading.several = True
            reading.keep(option)
