"""``convert --explain``: what became of every property, or of every directive of a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sssjob.cli._findings import record, say
from sssjob.document.element import Container, Property
from sssjob.document.model import Document
from sssjob.findings import RULES, Finding, Findings, Policy, escape
from sssjob.request.asked import FACTS

if TYPE_CHECKING:
    from sssjob.conversion.converting import Conversion
    from sssjob.translators.scripts.raw import Option


#: Of a directive that became no property: it sets an attribute, or says how to submit.
ALONE: Final = "no property of its own"


#: What became of a property that tells of an earlier run, which nothing that asks for one has a place for.
FACT: Final = "fact not carried"
_INDEX: Final = re.compile(r"\[\d+\]")
_JOB: Final = re.compile(r"/Job(?:\[\d+\])?(?=/|$)")


@dataclass(frozen=True, slots=True)
class _Note:
    """One finding, as far as it tells what became of something. place: without the job's own place; names: of what it
    is about."""

    kind: str
    message: str
    place: str
    names: frozenset[str]


class _Ways:
    """What became of everything. places: (kind, message) of the first finding by line and column."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], tuple[str, str]] = {}
        self._notes: list[_Note] = []

    def note(self, kind: str, subject: str, message: str, path: str) -> None:
        """Note what became of something."""
        names = frozenset(name.partition("/@")[0] for name in subject.split(", "))
        self._notes.append(_Note(kind, message, _place(path), names))

    def of(self, leaf: _Leaf) -> tuple[str, str]:
        """(kind, message) of the worst that was found about a property, else exact."""
        worst = min((n for n in self._notes if leaf.is_meant(n)), key=lambda n: _WORST.get(n.kind, len(_WORST)),
                    default=None)
        if worst is None:
            return "exact", ""
        if worst.kind == "dropped" and leaf.fact:
            return FACT, worst.message.partition(":")[0]
        return worst.kind, worst.message


_WORST: Final = {kind: rank for rank, kind in enumerate((
    "refused", "dropped", "unknown", "invalid", "contradictory", "approximated", "site-dependent", "invented"))}


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A property of the document. place: where it stands in its job; shown: the same for people."""

    place: str
    tag: str
    name: str
    shown: str

    @property
    def fact(self) -> bool:
        """Whether it tells of an earlier run."""
        return self.tag in FACTS or "/Delivered/" in self.place

    def is_meant(self, note: _Note) -> bool:
        """Whether a finding is about this property: it stands there, or in what the finding stands at as a whole, or
        is named by it from the container that it stands at."""
        if note.place == self.place:
            return bool(note.names & {self.tag, self.name, f"{self.tag} {self.name}".rstrip()}) or not any(
                n.startswith(f"{self.tag} ") for n in note.names)
        if not self.place.startswith(f"{note.place}/"):
            return False
        below = self.place.removeprefix(f"{note.place}/")
        whole = note.place.rpartition("/")[2].partition("[")[0]
        if whole in note.names and whole != "Job":
            return True
        inner = _INDEX.sub("", below).removeprefix("Requested/")
        named = f"{inner} {self.name}".rstrip()
        return bool(note.names & {inner, named}) or (
            bool(note.names & {self.tag, f"{self.tag} {self.name}".rstrip()}) and "Delivered/" not in below)


def _place(path: str) -> str:
    """A path from the job inward, the first of several like the only one."""
    job = _JOB.search(path)
    return (path if job is None else f"/Job{path[job.end():]}").replace("[1]", "")


class _Heard(Findings):
    """Findings that are noted even where the document's own policy is silent."""

    def __init__(self, ways: _Ways) -> None:
        super().__init__()
        self.ways = ways

    def add(self, rule: str, subject: str, message: str, **more: Any) -> Finding | None:
        """Note a finding and its place, then record it."""
        self.ways.note(RULES[rule].kind, subject, message, more.get("path", ""))
        if more.get("column"):
            self.ways.places.setdefault((more["line"], more["column"]), (RULES[rule].kind, message))
        return super().add(rule, subject, message, **more)


def explain(how: Conversion, document: Document, *, as_json: bool) -> None:
    """The way of everything on standard error: the kind of what was found about it, else exact."""
    ways = _Ways()
    how.text(document, how.writing(_Heard(ways), Policy.WARN))
    for finding in document.findings or ():
        ways.note(finding.kind, finding.subject, finding.message, finding.path)
        if finding.column:
            ways.places.setdefault((finding.line, finding.column), (finding.kind, finding.message))
    origins = getattr(document, "origins", None)
    if origins is not None:
        _directives(origins, getattr(document, "options", []), ways, as_json)
        return
    for leaf in dict.fromkeys(leaf for body in document.bodies() for leaf in _leaves(body)):
        way, why = ways.of(leaf)
        _told({"name": leaf.shown}, f"{leaf.shown}:", way, why, as_json)


def _directives(origins: Mapping[int, tuple[Property, Option]], options: Sequence[Option], ways: _Ways,
                as_json: bool) -> None:
    """The way of every directive of a script, in the order in which they stand there."""
    properties: dict[Option, list[str]] = {option: [] for option in options}
    for prop, option in origins.values():
        properties.setdefault(option, []).append(" ".join([prop.tag, *filter(None, [prop.attributes.get("name")])]))
    for option in sorted(properties, key=lambda o: (o.line, o.column)):
        way, why = ways.places.get((option.line, option.column)) or _silent(option, properties)
        names = ", ".join(dict.fromkeys(properties[option])) or ALONE
        _told({"line": option.line, "column": option.column, "directive": option.shown, "name": names},
              f"{option.line}:{option.column}: {option.shown} -> {names}:", way, why, as_json)


def _silent(option: Option, properties: Mapping[Option, Sequence[str]]) -> tuple[str, str]:
    """The way of a directive that no finding is about."""
    after = replaced(option, list(properties)) if not properties[option] else None
    return ("exact", "") if after is None else ("replaced", again(after))


def again(option: Option) -> str:
    """Why an earlier one does not count."""
    return f"line {option.line} says it again" if option.line else "--set says it again"


def replaced(option: Option, options: Sequence[Option]) -> Option | None:
    """The option that counts in the place of one that is said again."""
    same = [o for o in options if o.name == option.name]
    return same[-1] if same and same[-1] is not option and same[-1] != option else None


def _told(what: dict[str, Any], shown: str, way: str, why: str, as_json: bool) -> None:
    if as_json:
        record({"type": "way"} | what | {"way": way} | ({"message": why} if why else {}))
    else:
        say(escape(f"{shown} {way}{f' ({why})' if why else ''}", 1000))


def _leaves(container: Container, above: str = "", place: str = "") -> Iterator[_Leaf]:
    """Every property of a container and of those in it, as ``Job/Requested/Memory``."""
    shown = f"{above}{container.tag}/"
    place = place or f"/{container.tag}"
    numbers: dict[str, int] = {}
    for item in container.items:
        if isinstance(item, Container):
            number = numbers[item.tag] = numbers.get(item.tag, 0) + 1
            counted = item.tag in ("TaskGroup", "Task") and number > 1
            below = f"{place}/{item.tag}{f'[{number}]' if counted else ''}"
            yield from _leaves(item, shown, "/Job" if item.tag == "Job" else below)
        else:
            name = item.attributes.get("name", "")
            yield _Leaf(f"{place}/{item.tag}", item.tag, name, f"{shown}{item.tag}{f' {name}' if name else ''}")
