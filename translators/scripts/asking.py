"""A job that a script is written from: what it says, asked for by place, and findings that name the directives of the
source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Final

from sssjob.consequences import Consequence
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document, Environment, Job, TaskGroup
from sssjob.document.units import to_bytes
from sssjob.findings import Policy, Severity
from sssjob.lrm import variables
from sssjob.lrm.idset import one_range
from sssjob.request._of_groups import Siblings
from sssjob.request.asked import FACTS, GROUP, JOB, NEAREST, Asked, Entry
from sssjob.translators.base import WriteContext
from sssjob.translators.scripts.grammars import FROM_NOW, INTEGER, Coming, Grammar, unstamped
from sssjob.translators.scripts.raw import Option, Told
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    DIALECT,
    DROPPED,
    SITE,
    AnyRow,
    Dialect,
    Key,
    Place,
    Row,
    ScriptDocument,
    dialect_of,
    fate_of,
    place,
)

if TYPE_CHECKING:
    from sssjob.lrm.variables import Given
    from sssjob.translators.scripts.in_place import Page

__all__ = ["SUSPECT", "Asking", "is_fact"]

class Asking(Asked):
    """A job whose properties a script is written from; findings name the directive that a property came from."""

    def __init__(self, job: Job, document: Document, context: WriteContext, dialect: Dialect, policy: Policy,
                 group: TaskGroup | None, siblings: Siblings | None = None) -> None:
        self.document, self.context, self.dialect, self.policy = document, context, dialect, policy
        self.body = ""
        self.page: Page | None = None                   # where directives are to stand; None: in one block
        self.values: dict[str, Given | None] = {}       # what stands for macros of the source
        self._origins = document.origins if isinstance(document, ScriptDocument) else {}
        self._directives: set[int] | None = None        # of which something is carried, by identity
        self._standing: dict[tuple[str, int], list[Entry]] | None = None
        self.few = False        # options that set variables keep the submitter's own out
        self.exporting = False  # an option says whether the submitter's variables go along
        self.goes = False       # an option says where jobs of the source start
        self.opened = ""        # the command of the script that goes to where jobs of the source start
        self.silent = False     # another one has told it already
        self.again = False      # another part of the job may have told it already
        self.unsaid: list[tuple[Entry, str]] = []       # variables that no directive can say, and why
        self.lost: list[tuple[Entry, Option | None]] = []       # with the directives that they came from
        self.prefix = dialect.prefix
        super().__init__(job, context.findings, policy, dialect.target, group, siblings)
        source: str | None = None
        self._extensions: dict[tuple[str | None, str | None], list[Entry]] = {}
        for e in self._tagged.get("Extension", ()):
            attributes = e.attributes
            key = attributes.get("name"), attributes.get("type")
            if key in self._extensions:
                self._extensions[key].append(e)
            else:
                self._extensions[key] = [e]
            if source is None and key[0] == DIALECT and e.level == JOB and not e.slot:
                source = e.text
        self.source = source or ""
        self.source_dialect = dialect_of(self.source)
        self.named = {name for name, _ in self._extensions}     # Extensions, of any type
        self.own = {name or "" for name, kind in self._extensions if kind == dialect.name}  # options kept as they are
        self.tags = self._tagged.keys()
        self.keys = self.tags | self._extensions.keys()

    def _note_at(self, rule: str, entry: Entry | None, message: str, severity: Severity | None, subject: str) -> None:
        """One finding, with line and column of the directive where the document came from a script; what several groups
        or parts of a job find at one place is told once."""
        if self.silent:
            return
        if entry is None:
            path, item = self._about(None, subject)
            self.findings.add(rule, subject or "Job", message, severity=severity, policy=self.policy, path=path,
                              item=item, within=self.job, once=self.again or self.findings.places is not None)
            return
        directive = self._origins.get(id(entry.item))
        origin = None if directive is None else directive[1]
        consequence: Consequence | None = None
        if rule == DROPPED:
            if not is_fact(entry):
                self.lost.append((entry, origin))
            if entry.tag == "Extension":        # of an option that only another dialect knows, which may say so
                consequence = fate_of(entry.attributes.get("type", ""), entry.attributes.get("name", ""))
        if origin is None:
            self.findings.add(rule, subject or entry.called, message, severity=severity, policy=entry.policy,
                              path=entry.path, item=entry.item, within=self.job, consequence=consequence,
                              once=self.again or bool(self.alike) or self.findings.places is not None)
        else:
            shown = origin.shown
            self.findings.add(rule, subject or entry.called,
                              message if message.startswith(f"{shown}:") else f"{shown}: {message}",
                              severity=severity, policy=entry.policy, path=entry.path, line=origin.line,
                              column=origin.column, excerpt=origin.text, item=entry.item, within=self.job,
                              consequence=consequence, once=True)

    def dropped(self, entry: Entry, why: str = "", subject: str = "") -> None:
        """The finding for what is not carried; its attributes go with it."""
        alone = "" if why else self._alone(entry) or self._one_by_one(entry)    # before it counts as looked at
        entry.used = True
        entry.understood |= entry.attributes.keys()
        if alone and isinstance(self.origin_of(entry), Told) and entry.policy is not Policy.REJECT:
            if not self.silent:
                self.lost.append((entry, self.origin_of(entry)))
        elif alone:
            self.note(self.target.rule, entry, alone, subject=subject)
        else:
            super().dropped(entry, f"dropped, {why}" if why and not _TELLS.search(why) else why, subject)

    def _alone(self, entry: Entry) -> str:
        """Of an option that only another dialect knows: what is lost, and whether the rest of it is carried."""
        kind = entry.attributes.get("type", "") if entry.tag == "Extension" else ""
        owner = dialect_of(kind) if kind not in ("", "Scheduler", self.dialect.name) else None
        if owner is None:
            return ""
        name, text = entry.attributes.get("name", ""), entry.text
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        origin = self.origin_of(entry)
        if origin is None:
            return f"{name} {text}: dropped, {self.dialect.title} has no place for this option of {owner.title}"
        if text and id(origin) in self._carried():
            part = f"{name.rpartition('.')[2]}={text}" if "." in name else text
            return f"{part} of this option is dropped, {self.dialect.title} has no place for it"
        hint = next((hint for begin, hint in owner.hints.items() if name.startswith(begin)), "")
        return f"dropped, {self.dialect.title} has no place for it{f' unless {hint}' if hint else ''}"

    def _one_by_one(self, entry: Entry) -> str:
        """Of an array: that a manager without arrays takes its elements one by one, and how."""
        if not self.dialect.each or entry.attributes.get("name") != "Array":
            return ""
        source = variables.FACTS.get(self.source)
        meanings = {} if source is None else source.variables
        index = next((name for name, meaning in meanings.items() if meaning == "array_index"), "ARRAY_INDEX")
        span = one_range(entry.text.partition("%")[0])
        indices = "echo INDICES" if span is None else f"seq {span[0]} {span[2]} {span[1]}"
        return f"dropped, {self.dialect.title} has no arrays of jobs, whose elements are submitted one by one: " \
            f"{indices} | xargs -I@ {self.dialect.each.format(index, '@')} SCRIPT"

    def origin_of(self, entry: Entry) -> Option | None:
        """The directive that said an entry; None where the document came from no script."""
        origin = self._origins.get(id(entry.item))
        return None if origin is None else origin[1]

    def _carried(self) -> set[int]:
        """The directives of which something is carried; worked out once, for there may be many to be told of."""
        if self._directives is None:
            lost, origins = {id(entry) for entry, _ in self.lost}, self._origins
            self._directives = {id(origin[1]) for e in self.entries
                                if e.used and (origin := origins.get(id(e.item))) is not None and id(e) not in lost}
        return self._directives

    def export(self) -> bool | None:
        """Whether the submitter's variables are to go along; None where nothing says so. A dialect that does not ask
        cannot say it, which the writer tells."""
        self.exporting = True
        return self.stated_export()

    def stated_export(self) -> bool | None:
        """Whether the job says that the submitter's variables go along, or that they do not; None: neither."""
        return next((item.export for item in self.job.items if isinstance(item, Environment)), None)

    def standing(self, spot: tuple[str, int]) -> Sequence[Entry]:
        """The entries of a place; all places are looked up at once, for each of many groups has some."""
        if self._standing is None:
            self._standing = {}
            for e in self.entries:
                self._standing.setdefault(e.place, []).append(e)
        return self._standing.get(spot, ())

    def forget(self) -> None:
        """More may have been carried since."""
        self._directives = None

    def spelling(self, entry: Entry) -> str:
        """What is to tell of an item that asks for nothing: it only tells which of its own options another dialect said
        something with, or that dialect would have done so anyway. Empty for all others."""
        if entry.tag != "Extension":
            return ""
        kind = entry.attributes.get("type", "Scheduler")
        owner = None if kind == "Scheduler" else dialect_of(kind)
        name = entry.attributes.get("name")
        if owner is None or owner is self.dialect:
            return ""
        if f"{name}={entry.text}" in owner.spellings:
            return "it says what holds anyway"
        spells = name in owner.spellings or (name == owner.placing and self._is_placed(self.origin_of(entry)))
        return "with which of several options it was said is not carried" if spells else ""

    def _is_placed(self, origin: Option | None) -> bool:
        """Whether what a directive says of nodes is carried."""
        return origin is not None and any(
            e.tag == "NodeCount" and e.used and self.origin_of(e) is origin for e in self.entries)

    def _condition(self, entry: Entry) -> None:
        self.dropped(entry, f"{self.dialect.title} cannot say the condition {entry.attributes.get('op', 'EQ')} "
                            f"{entry.text}")

    def at(self, where: str) -> Entry | None:
        """The property at a place; most are not there."""
        return self._at(place(where))

    def _at(self, where: Place) -> Entry | None:
        if where.tag in self._unsettled:
            self.settle(where.tag)
        entries = self._tagged.get(where.tag)
        if entries is None:
            return None
        carried = _UNITS if where.bytes else ()
        if len(entries) == 1:
            return self._only(entries[0], where.levels, carried, where.attributes)
        return self.one(where.tag, where.levels, carried=carried, **where.attributes)

    def says(self, name: str) -> bool:
        """Whether there is an Extension of the scheduler's by name; it does not count as carried by that."""
        return (name, "Scheduler") in self._extensions

    def under(self, *keys: Key) -> Sequence[Entry]:
        """All that the job says under the names of properties, or of Extensions their names and types."""
        tagged, extensions, entries = self._tagged, self._extensions, list[Entry]()
        for key in keys:
            entries += tagged.get(key, ()) if isinstance(key, str) else extensions.get(key, ())
        return entries

    def extension(self, name: str, kind: str = "Scheduler") -> Entry | None:
        """An Extension by name."""
        entries = self._extensions.get((name, kind))
        if entries is None:
            return None
        if len(entries) == 1 and not entries[0].slot:
            entries[0].used = True
            entries[0].understood |= _NAMED
            return entries[0]
        return self.one("Extension", NEAREST, name=name, type=kind)

    def extensions(self, name: str, kind: str = "Scheduler") -> list[Entry]:
        """All Extensions of a name that count."""
        return self.find("Extension", NEAREST, name=name, type=kind) if (name, kind) in self._extensions else []

    @property
    def origin(self) -> str:
        """What the source is called; empty where the job came from no dialect."""
        return self.source if self.source_dialect is None else self.source_dialect.title

    @property
    def macros(self) -> Mapping[str, str]:
        """What stands in arguments for something that another dialect says in another way."""
        source = self.source_dialect
        return {} if source is None or source is self.dialect else source.macros

    def came_from(self, *starts: str) -> bool:
        """Whether jobs of the source start in one of these directories: ``submit``, ``home``, ``scratch``."""
        return self.source_dialect is not None and self.source_dialect.starts_in in starts

    def of(self, group: TaskGroup) -> Asking:
        """The same for one of several groups."""
        return Asking(self.job, self.document, self.context, self.dialect, self.policy, group,
                      self._siblings)

    def moment(self, tag: str, grammar: Grammar) -> str | None:
        """A time as the site's clock shows it; without a site profile in UTC. One that comes again is the next one."""
        entry = self.one(tag)
        if entry is None:
            return self._coming(tag, grammar)
        site = self.context.site
        local = site.clock(int(entry.text)) if site is not None else None
        if local is None and not self.source:
            self.note(SITE, entry, "written in UTC, read by the clock of the site")
        return grammar.write(entry.text if local is None else str(local))

    def _coming(self, tag: str, grammar: Grammar) -> str | None:
        for scope, write in grammar.coming.items():
            if (entry := self.at(unstamped(tag, scope))) is None:
                continue
            try:
                coming = Coming.read(entry.text)
            except ValueError:
                coming = None
            if coming is None or coming.scope != scope:
                self.dropped(entry, f"{entry.text[:80]!r} is no time of {_OF_SCOPE[scope]}")
                return None
            if scope == "Year" and "sge" in (self.source, self.dialect.name) and self.source != self.dialect.name:
                self.note(APPROXIMATED, entry, "Grid Engine takes a date without a year for one of the year of "
                          "submission, so that a past one is no wait; others take the next one")
            return write(coming)
        return None

    def from_now(self) -> int | None:
        """How many seconds after the submission the job may begin, where that is said so."""
        entry = self.at(FROM_NOW)
        seconds = None if entry is None else self.whole(entry)
        if entry is not None and seconds is not None and seconds < 0:
            self.dropped(entry, f"{seconds} s is before the submission")
            return None
        return seconds

    def whole(self, entry: Entry) -> int | None:
        """A whole number that an Extension says; None, with a finding, where it is none."""
        try:
            return int(INTEGER.read(entry.text))
        except ValueError:
            self.dropped(entry, f"{entry.text[:80]!r} is no whole number")
            return None

    def in_bytes(self, entry: Entry) -> Decimal | None:
        """Bytes of an amount, exactly; None, with one finding, where its unit is none of bytes or it is too long."""
        try:
            return to_bytes(Decimal(entry.text), entry.attributes.get("units"))
        except (LexicalError, ArithmeticError) as error:
            if not any(lost is entry for lost, _ in self.lost):
                self.dropped(entry, str(error) or f"{entry.text[:80]} is no amount")
            return None

    def row(self, row: Row) -> list[tuple[str, str | None]]:
        """The option of a row, if the job says it."""
        if not row.place:
            return []
        where = place(row.place)
        used = {id(e) for e in self.said(where.tag) if e.used} if row.fixed is not None else ()
        entry = self._at(where)
        if entry is None:
            return []
        text = entry.text
        if row.fixed is not None:
            if text == row.grammar.write(row.fixed):
                return [(row.name, None)]
            entry.used = id(entry) in used      # one of two options that exclude each other may have said it
            return []
        if not text:
            return []
        try:
            if where.bytes:
                text = str(int(to_bytes(Decimal(text), entry.attributes.get("units")).to_integral_value(ROUND_CEILING)))
            written = row.grammar.write(text)
            if where.bytes and str(row.grammar.read(written)) != text:
                self.note(APPROXIMATED, entry, f"rounded up to {written}")
            return [(row.name, written)]
        except (ValueError, OverflowError) as error:
            self.dropped(entry, f"{entry.text}: {error}")
            return []


    def open(self) -> Iterator[tuple[str, str | None]]:
        """Options of names that the dialect leaves open, or that plugins of the site add, as they were kept."""
        site, begun, dash = self.context.site, self.dialect.open, "-"
        if self.dialect.name == "slurm" and site is not None:
            begun, dash = site.slurm.plugin_options, "--"
        if not begun or not any(name.startswith(begun) for name in self.own):
            return
        for e in self.said("Extension"):
            own = not e.used and e.attributes.get("type") == self.dialect.name
            name = e.attributes.get("name", "") if own else ""
            if name and name.startswith(begun) and name not in self.dialect.known:
                e.used = True
                e.understood |= {"name", "type"}
                yield f"{dash}{name}", None if e.text == f"{dash}{name}" else e.text

    def kept(self, row: AnyRow, names: Iterable[str], level: str = "") -> Iterator[tuple[str, str | None]]:
        """Options of a row that were kept as they are, but for those that are said already. level: only those of it."""
        for name in row.names:
            if name.lstrip("-") in self.own and name not in names:
                entry = self.extension(name.lstrip("-"), self.dialect.name)
                if entry is None or level not in ("", entry.level):
                    continue
                is_flag = name in self.dialect.flags
                if is_flag and entry.text not in _SET:
                    self.dropped(entry, f"{name} of {self.dialect.title} takes no value: it is said by true, or by "
                                 "nothing")
                    continue
                bare = _SET if is_flag or name in self.dialect.optional else _SET[:1]
                yield name, None if entry.text in bare else entry.text


#: A reason that says itself what became of it.
#: What a time is of that comes again in a day, a month or a year.
_OF_SCOPE: Final = {"Day": "day (HH:MM or HH:MM:SS)", "Month": "a day of the month (DDTHH:MM)",
                    "Year": "a day of the year (MM-DDTHH:MM)"}
_SHOWN: Final = 80          # characters of a kept option that a finding shows
_TELLS: Final = re.compile(r"\b(?:dropped|asked for|written|left out)\b")
_NAMED: Final = frozenset(("name", "type"))
_UNITS: Final = ("units",)
_SET: Final = ("true", "")      # what says an option without a value


#: Properties that may tell of an earlier run.
SUSPECT: Final = FACTS | {"Extension", "Duration", "Id", "Node"}


def is_fact(e: Entry) -> bool:
    """Whether it tells of an earlier run."""
    tag = e.tag
    if tag == "Extension" and e.slot != "Delivered":
        return e.attributes.get("type") == "LRM"
    return e.slot == "Delivered" or tag in FACTS or (
        tag == "Duration" and e.slot == "" and not e.used) or (
        tag in ("Id", "Node") and not e.slot and e.level.startswith(GROUP + "/Task")
        and not e.level.endswith("Defaults"))
