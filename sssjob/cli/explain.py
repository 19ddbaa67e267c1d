"""``sssjob explain``: the page of a rule, or what a document asks for."""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import rules_or_files
from sssjob.cli._files import emit
from sssjob.cli._options import Session, common
from sssjob.errors import UsageError
from sssjob.findings import RULES, Rule, escape
from sssjob.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sssjob.element import Property
    from sssjob.model import Document, TaskGroup

__all__ = ["command", "sentences"]

_RULE: Final = re.compile(r"SSS[0-9]+", re.IGNORECASE)
_GROUPS: Final = {"1": "reading", "2": "values", "3": "structure", "4": "meaning", "5": "translation", "6": "running"}
_OPERATIONS: Final = {"EQ": "", "NE": "not ", "LT": "less than ", "GT": "more than ", "LE": "at most ",
                      "GE": "at least ", "Match": "matching "}
_RELATIONS: Final = {"And": "and", "Or": "or", "Nand": "and not", "Nor": "or not"}


@click.command("explain")
@click.argument("subject", metavar="RULE|FILE", shell_complete=rules_or_files)
@common
def command(session: Session, subject: str) -> int:
    """Explain a rule (SSS123), or say in words what a document asks for (FILE, - is standard input)."""
    if _RULE.fullmatch(subject):
        rule = _rule(subject.upper())
        emit(json.dumps(_record(rule)) + "\n" if session.as_json else page(rule))
        return 0
    return _document(session, subject)


def _rule(name: str) -> Rule:
    found = RULES.get(name)
    if found is None:
        close = difflib.get_close_matches(name, RULES, 3)
        raise UsageError(f"unknown rule {name} (close: {', '.join(close)})" if close else f"unknown rule {name}")
    return found


def _record(rule: Rule) -> dict[str, object]:
    return {"id": rule.id, "kind": rule.kind, "title": rule.title, "severity": rule.severity,
            "governed": rule.governed, "text": rule.text}


def page(rule: Rule) -> str:
    """The page of a rule, in lines of at most 79 columns."""
    if rule.governed:
        level = "error, warning or silent, as awarenessPolicy (or --policy) says"
    else:
        level = rule.severity + (", under every policy" if rule.severity == "error" else "")
    return "\n".join([
        f"{rule.id}  {rule.title}", "",
        f"  kind      {rule.kind}", f"  area      {_GROUPS.get(rule.id[3], 'other')}", f"  severity  {level}", "",
        *textwrap.wrap(rule.text, 79), "",
    ])


def _document(session: Session, name: str) -> int:
    document = session.read(name)
    records = []
    for title, properties in _asking(document):
        wanted = sentences(properties)
        if session.as_json:
            records.append({"job": title.removeprefix("Job "), "asks": wanted})
            continue
        emit(f"{escape(title)} asks for{':' if wanted else ' nothing in particular.'}\n")
        emit("".join(f"  {line}\n" for line in wanted))
    if session.as_json:
        emit("".join(json.dumps(r) + "\n" for r in records))
    return session.status()


def _asking(document: Document) -> Iterator[tuple[str, Iterable[Property]]]:
    """(title, properties requested) of every job, its task groups and tasks, and of bare Requested and TaskGroups."""
    from sssjob.inherit import effective
    from sssjob.model import TaskGroup

    for number, (job, defaults) in enumerate(document.jobs(), 1):
        title = f"Job {job.value('Name') or job.value('Id') or f'number {number}'}"
        yield title, effective(job, defaults).properties("Requested")
        for n, group in enumerate(job.task_groups, 1):
            yield from _group(f"{title}, task group {n}", group)
    for body in document.bodies():
        if body.tag == "Requested":
            yield body.tag, body.properties()
        elif isinstance(body, TaskGroup):
            yield from _group(body.tag, body)


def _group(title: str, group: TaskGroup) -> Iterator[tuple[str, Iterable[Property]]]:
    if group.requested is not None:
        yield title, group.requested.properties()
    for n, task in enumerate(group.tasks, 1):
        if task.requested is not None:
            yield f"{title}, task {n}", task.requested.properties()


def sentences(properties: Iterable[Property]) -> list[str]:
    """One line a property of the expression, in document order, brackets as they open and close."""
    lines = []
    for number, item in enumerate(properties):
        relation = f"{_RELATIONS.get(item.conj or 'And', item.conj)} " if number else ""
        group = item.group or 0
        opens, closes = _brackets("(", group), _brackets(")", -group)
        lines.append(f"{relation}{opens}{_sentence(item)}{closes}")
    return lines


def _brackets(sign: str, count: int) -> str:
    return sign * count if count <= LIMITS.group_depth else f"{sign} ({count} of them) "


def _sentence(item: Property) -> str:
    units = item.get("units")
    metric = item.get("metric")
    text = f"{item.tag} {_OPERATIONS.get(item.op or 'EQ', '')}{escape(item.text)}"
    text += f" {escape(units)}" if units else ""
    text += f" ({escape(metric)})" if metric else ""
    preference = item.preference
    if preference:
        text += f" [one of these is needed, weight {preference}]" if preference > 0 else f" [wished, {preference}]"
    return text
