"""``sssjob explain``: the page of a rule, or what a document or a script asks for."""

from __future__ import annotations

import difflib
import json
import re
import sys
import textwrap
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import rules_or_files
from sssjob.cli._files import emit
from sssjob.cli._findings import LONG, width
from sssjob.cli._options import Session, common, reading
from sssjob.cli._tables import table
from sssjob.cli._ways import ALONE, again, replaced
from sssjob.consequences import meaning
from sssjob.document.element import Container, Property
from sssjob.errors import UsageError
from sssjob.findings import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sssjob.document.model import Document
    from sssjob.request.explaining import InAll
    from sssjob.translators.scripts.raw import Option

__all__ = ["command"]

_RULE: Final = re.compile(r"SSS[0-9]+", re.IGNORECASE)
_GROUPS: Final = {"1": "reading", "2": "values", "3": "structure", "4": "meaning", "5": "translation", "6": "running"}
_OPERATIONS: Final = {"EQ": "", "NE": "not ", "LT": "less than ", "GT": "more than ", "LE": "at most ",
                      "GE": "at least ", "Match": "matching "}


@click.command("explain")
@click.argument("subject", metavar="RULE|FILE", shell_complete=rules_or_files)
@common
@reading
def command(session: Session, subject: str) -> int:
    """Explain a rule (SSS123), or say what a document or a script asks for (FILE, - is standard input)."""
    if _RULE.fullmatch(subject):
        rule = _rule(subject.upper())
        emit(json.dumps(_record(rule)) + "\n" if session.as_json else page(rule))
        return 0
    session.dead = False                # they stand in the table of a script
    taken = session.admit(subject)
    if getattr(taken.document, "origins", None) is None:
        return _document(session, session.swept(taken.document))
    return 1 if session.errors else _script(session, taken.reader.title, taken.document)


def _rule(name: str) -> Rule:
    rule = RULES.get(name)
    if rule is None:
        close = difflib.get_close_matches(name, RULES, 3)
        raise UsageError(f"unknown rule {name} (close: {', '.join(close)})" if close else f"unknown rule {name}")
    return rule


def _record(rule: Rule) -> dict[str, object]:
    return {"id": rule.id, "kind": rule.kind, "title": rule.title, "severity": rule.severity,
            "consequence": rule.consequence, "governed": rule.governed, "text": rule.text}


def page(rule: Rule) -> str:
    """The page of a rule, in lines of at most 79 columns."""
    if rule.governed:
        level = "error, warning or silent, as awarenessPolicy (or --policy) says"
    else:
        more = ", a warning with --policy warn or ignore" if rule.eased else ", under every policy"
        level = rule.severity + (more if rule.severity == "error" else "")
    return "\n".join([
        f"{rule.id}  {rule.title}", "",
        f"  kind      {rule.kind}", f"  area      {_GROUPS.get(rule.id[3], 'other')}", f"  severity  {level}",
        *([f"  job       {meaning(rule.consequence)}"] if rule.consequence else []), "",
        *textwrap.wrap(rule.text, 79), "",
    ])


def _script(session: Session, title: str, document: Document) -> int:
    """Every directive of a script that is live, with what it asks for, and those that are dead."""
    origins: Mapping[int, tuple[Property, Option]] = document.origins  # type: ignore[attr-defined]
    dead = [(f.line, f.excerpt, f.message.removeprefix("the directive is dead: "))
            for f in document.findings or () if f.kind == "dead"]
    used = {option for _, option in origins.values()}
    options: Sequence[Option] = document.options  # type: ignore[attr-defined]
    lone = {o: replaced(o, options) for o in options if o not in used}
    dead += [(o.line, o.shown, again(after)) for o, after in lone.items() if after is not None]
    properties = [(scope, p, origins[id(p)][1]) for job, _ in document.jobs() for scope, p in _leaves(job, "job")
                  if id(p) in origins]
    properties.sort(key=lambda row: (row[2].line, row[2].column))
    totals = list(_in_all(document))
    if session.as_json:
        emit(json.dumps({"format": title, "asks": [
            *({"line": o.line, "directive": o.shown, "of": scope, "property": _called(p), "value": p.text}
              | ({"units": p.get("units")} if p.get("units") else {}) for scope, p, o in properties),
            *({"line": o.line, "directive": o.shown, "of": "job"} for o, after in lone.items() if after is None)],
            "dead": [{"line": line, "text": text, "message": why} for line, text, why in sorted(dead)],
            "totals": [total.record() for total in totals]}) + "\n")
        return session.status()
    directives = [(o, scope, _called(p), _value(p)) for scope, p, o in properties]
    directives += [(o, "job", ALONE, o.value or "") for o, after in lone.items() if after is None]
    directives.sort(key=lambda row: (row[0].line, row[0].column))
    rows = [[str(o.line) if o.line else "--set", f"{o.name} {o.value or ''}".rstrip(), *rest] for o,
            *rest in directives]
    if rows:
        emit("\n".join(table(rows, ("line", title.removesuffix(" batch script"), "of", "property", "value"),
                             width(sys.stdout, LONG))) + "\n")
    else:
        emit(f"{title}: asks for nothing\n")
    if totals:
        emit("\nin all:\n" + "".join(f"  {total}\n" for total in totals))
    if dead:
        emit("\n" + "\n".join(table([[str(line), text, why] for line, text, why in sorted(dead)],
                                     ("line", "dead", "why"), width(sys.stdout, LONG))) + "\n")
    return session.status()


def _in_all(document: Document) -> Iterator[InAll]:
    """What the job of a script comes to where no directive says so by itself."""
    from sssjob.request import request_of
    from sssjob.request.explaining import in_all

    for job, defaults in document.jobs():
        yield from in_all(request_of(job, defaults))


def _leaves(scope: Container, where: str) -> Iterator[tuple[str, Property]]:
    """(scope in words, property) of everything in a job."""
    numbers: dict[str, int] = {}
    for item in scope.items:
        if isinstance(item, Property):
            yield where, item
        elif isinstance(item, Container):
            numbers[item.tag] = numbers.get(item.tag, 0) + 1
            words = {"TaskGroup": f"task group {numbers[item.tag]}", "TaskDefaults": "each task",
                     "TaskGroupDefaults": "each task group"}
            inner = words.get(item.tag)
            yield from _leaves(item, where if inner is None else inner if where == "job" else f"{where}, {inner}")


def _called(p: Property) -> str:
    """``Resource GPU PerNode``."""
    return " ".join([p.tag, *(p.attributes[n] for n in ("type", "name", "metric", "condition") if n in p.attributes)])


def _value(p: Property) -> str:
    """The value; an amount of seconds also as a clock shows it."""
    from sssjob.conversion.compare import shown
    from sssjob.lrm.clocks import clock

    operation = _OPERATIONS.get(p.op or "EQ", "")
    if p.tag == "Duration" and isinstance(p.value, int):
        return f"{operation}{p.value} s ({clock(p.value, 1)})"
    return operation + shown(p)


def _document(session: Session, document: Document) -> int:
    from sssjob.request.explaining import explained

    texts = (json.dumps(explanation.record()) + "\n" if session.as_json else str(explanation)
             for explanation in explained(document))
    while some := "".join(islice(texts, 200)):
        emit(some)
    return session.status()
