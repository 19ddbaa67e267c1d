"""``convert --explain``: what became of every property, or of every directive of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sssjob.cli._findings import record, say
from sssjob.element import Container
from sssjob.findings import RULES, Finding, Findings, Policy, escape

if TYPE_CHECKING:
    from sssjob.conversion import Conversion
    from sssjob.element import Property
    from sssjob.model import Document
    from sssjob.translators.scripts.raw import Option

__all__ = ["ALONE", "again", "explain", "replaced"]


#: Of a directive that became no property: it sets an attribute, or says how to submit.
ALONE: Final = "no property of its own"


class _Ways(dict[str, tuple[str, str]]):
    """Name of a property -> (kind of the first finding about it, message); places: the same by line and column."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[tuple[int, int], tuple[str, str]] = {}

    def note(self, kind: str, subject: str, message: str, path: str) -> None:
        """Note what became of a property; what came first counts."""
        for name in (path.rpartition("/")[2].partition("[")[0], subject):
            self.setdefault(name, (kind, message))


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
    for name in dict.fromkeys(name for body in document.bodies() for name in _names(body)):
        above, _, tag = name.rpartition("/")
        way, why = ways.get("JobGroup" if above == "JobGroup" else tag, ("exact", ""))
        _told({"name": name}, f"{name}:", way, why, as_json)


def _directives(origins: Mapping[int, tuple[Property, Option]], options: Sequence[Option], ways: _Ways,
                as_json: bool) -> None:
    """The way of every directive of a script, in the order in which they stand there."""
    said: dict[Option, list[str]] = {option: [] for option in options}
    for prop, option in origins.values():
        said.setdefault(option, []).append(" ".join([prop.tag, *filter(None, [prop.attributes.get("name")])]))
    for option in sorted(said, key=lambda o: (o.line, o.column)):
        way, why = ways.places.get((option.line, option.column)) or _silent(option, said)
        names = ", ".join(dict.fromkeys(said[option])) or ALONE
        _told({"line": option.line, "column": option.column, "directive": option.shown, "name": names},
              f"{option.line}:{option.column}: {option.shown} -> {names}:", way, why, as_json)


def _silent(option: Option, said: Mapping[Option, Sequence[str]]) -> tuple[str, str]:
    """The way of a directive that no finding is about."""
    after = replaced(option, list(said)) if not said[option] else None
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


def _names(container: Container, above: str = "") -> Iterator[str]:
    """Every property of a container and of those in it, as ``Job/Requested/Memory``."""
    path = f"{above}{container.tag}/"
    for item in container.items:
        if isinstance(item, Container):
            yield from _names(item, path)
        else:
            yield path + item.tag
