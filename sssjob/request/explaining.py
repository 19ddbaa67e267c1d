"""A request in words: the tree that is evaluated at each level, what was given to a job that was started, and in all.

``explained`` makes what the command ``explain`` and ``sssjob.explain`` print of a document, ``in_all`` what a request
comes to wherever that does not stand in it plainly.
Source: SSS job object 3.1.0, sections 2.2, 3.0, 8 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

from sssjob.document.arrays import label_of
from sssjob.document.element import Container, Property
from sssjob.document.held import per_of
from sssjob.document.inherit import Effective, Resolved, View
from sssjob.document.model import Document, Job
from sssjob.document.states import waits
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import escape
from sssjob.request.levels import Level, Request, given_to, request_of, requests_in
from sssjob.request.totals import Identity, Total, Totals, base_amount, spelt
from sssjob.request.totals import Part as RequestPart
from sssjob.request.tree import AllOf, AnyOf, Node, Not, Predicate, Preferred, identity_of, parse, predicates_of

__all__ = ["Explained", "ExplainedLevel", "ExplainedPart", "InAll", "condition_in_words", "explained", "in_all",
           "tree_in_words"]

Kind = Literal["all", "any", "not", "preference", "wish", "condition", "overridden"]
_OPERATIONS: Final = {"EQ": "", "NE": "not ", "LT": "less than ", "GT": "more than ", "LE": "at most ",
                      "GE": "at least ", "Match": "matching "}
#: Attributes that place a property in the tree or are words of the condition, so that they are not named once more.
_SAID: Final = frozenset(("op", "conj", "group", "preference", "name", "type", "aggregation", "units", "metric",
                          "context"))
#: What a task group says of its tasks; it has no category, and is always asked for.
_SHAPE: Final = ("TaskCount", "TaskDistribution")
_UNITS: Final = {e.name: "s" if e.type == "Duration" else e.unit for e in ELEMENTS if e.type == "Duration" or e.unit}
#: How an amount comes about that several conditions are about, or alternatives.
_OF_SEVERAL: Final = "what the conditions come to"
#: The longest line of a condition.
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """One part of a request in words. property: of a condition; origin: the Defaults that it comes from, or
    ``Delivered``; weight: of a preference, as stated; parts: what it is made of."""

    kind: Kind
    text: str
    parts: tuple[ExplainedPart, ...] = ()
    property: Property | None = None
    origin: str = ""
    weight: int | None = None

    def lines(self, indent: int) -> Iterator[str]:
        """The part for people, one condition a line; origins and weights behind it."""
        notes = [f"weight {abs(self.weight)}"] if self.weight is not None else []
        notes += [self.origin if self.origin == "Delivered" else f"from {self.origin}"] if self.origin else []
        behind = f" ({', '.join(notes)})" if notes else ""
        yield f"{'  ' * indent}{escape(self.text, _LONGEST)}{behind}"
        for part in self.parts:
            yield from part.lines(indent + 1)

    def record(self) -> dict[str, Any]:
        """The part as a JSON object: kind and text, a condition with its property, all else with its parts."""
        members: dict[str, Any] = {"kind": self.kind, "text": self.text}
        if self.property is not None:
            attributes = self.property.attributes
            named = {k: v for k, v in attributes.items() if k not in ("op", "conj", "group", "preference")}
            members |= {"property": self.property.tag, "op": attributes.get("op", "EQ"), "value": self.property.text,
                        **named}
            if "units" not in attributes and _UNITS.get(self.property.tag):
                members["units"] = _UNITS[self.property.tag]
        if self.weight is not None:
            members["weight"] = self.weight
        if self.origin:
            members["from"] = self.origin
        if self.parts:
            members["parts"] = [part.record() for part in self.parts]
        return members


@dataclass(frozen=True, slots=True)
class ExplainedLevel:
    """One level. title: empty for the job; asks: its tree, None where it asks for nothing; given: what a job that was
    started was given there; group, task: which one, counted from 0; tasks: so many in a row say the same."""

    title: str
    asks: ExplainedPart | None
    given: tuple[ExplainedPart, ...] = ()
    group: int | None = None
    task: int | None = None
    tasks: int = 1

    def record(self) -> dict[str, Any]:
        """The level as a JSON object; task groups and tasks are counted from 1."""
        level = "Job" if self.group is None else "TaskGroup" if self.task is None else "Task"
        members: dict[str, Any] = {"level": level}
        if self.group is not None:
            members["group"] = self.group + 1
        if self.task is not None:
            members |= {"task": self.task + 1, "tasks": self.tasks}
        members["asks"] = None if self.asks is None else self.asks.record()
        if self.given:
            members["given"] = [part.record() for part in self.given]
        return members


@dataclass(frozen=True, slots=True)
class InAll:
    """One amount of a whole request, with how it comes about. name: as in ``Resource GPU a100``; units: None is a
    count; known: False where it is the least that it can be."""

    name: str
    value: str
    units: str | None
    origin: str
    known: bool = True

    def __str__(self) -> str:
        amount = f"{self.value}{f' {self.units}' if self.units else ''}"
        return escape(f"{self.name} {'' if self.known else 'at least '}{amount}: {self.origin}", _LONGEST)

    def record(self) -> dict[str, Any]:
        """The amount as a JSON object."""
        units = {"units": self.units} if self.units else {}
        return {"name": self.name, "value": self.value, **units, "origin": self.origin, "known": self.known}


@dataclass(frozen=True, slots=True)
class Explained:
    """What one job (or one object by itself) asks for. state: of a job that was started, else empty; possible: whether
    its conditions can be met together."""

    title: str
    levels: tuple[ExplainedLevel, ...]
    totals: tuple[InAll, ...]
    state: str = ""
    possible: bool = True

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """All of it for people."""
        head = f"{escape(self.title)} is {escape(self.state)}; it asked for" if self.state \
            else f"{escape(self.title)} asks for"
        asking = [level for level in self.levels if level.asks is not None]
        yield f"{head}{':' if asking else ' nothing in particular.'}"
        for level in asking:
            assert level.asks is not None
            yield from _under(level.title, level.asks.lines(2 if level.title else 1))
        if not self.possible:
            yield "  its conditions contradict each other: nothing meets all of them"
        if self.totals:
            yield "  in all:"
            yield from (f"    {total}" for total in self.totals)
        giving = [level for level in self.levels if level.given]
        if giving:
            yield "it was given:"
        for level in giving:
            yield from _under(level.title, (line for part in level.given
                                            for line in part.lines(2 if level.title else 1)))

    def record(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        state = {"state": self.state} if self.state else {}
        return {"title": self.title, **state, "levels": [level.record() for level in self.levels],
                "totals": [total.record() for total in self.totals], "possible": self.possible}


def _under(title: str, lines: Iterable[str]) -> Iterator[str]:
    if title:
        yield f"  {escape(title)}:"
    yield from lines


def explained(source: Document | Container) -> Iterator[Explained]:
    """What each job of a document asks for, in order, and what a Requested or TaskGroup that stands by itself does."""
    document = source if isinstance(source, Document) else Document(source)
    for number, (job, defaults) in enumerate(document.jobs()):
        yield _explained(f"Job {label_of(job, number)}", request_of(job, defaults), job)
    for body in document.bodies():
        if body.tag not in ("Job", "JobGroup") and body.reference is None:
            for request in requests_in(body) if body.tag != "Delivered" else ():
                yield _explained(body.tag, request, None)


def _explained(title: str, request: Request, job: Job | None) -> Explained:
    started = job is not None and not waits(job.value("State"))
    state = str(job.value("State")) if job is not None and started else ""
    levels = tuple(filter(_speaks, _levels(request, started)))
    return Explained(title, levels, tuple(in_all(request)), state, request.totals.possible)


def _speaks(level: ExplainedLevel) -> bool:
    return level.group is None or level.asks is not None or bool(level.given)


# --- levels -------------------------------------------------------------------------------------------------------

def _levels(request: Request, started: bool) -> Iterator[ExplainedLevel]:
    """Every level, the job first."""
    levels = {(level.group, level.task): level for level in request.levels}
    view = request.view
    if view is None:
        yield from (ExplainedLevel("", _asked(level.expression.root, {}, ())) for level in request.levels)
        return
    of_job = [r for r in view.resolved() if r.property.tag in _SHAPE]
    above = {_place(r) for r in of_job}
    yield _level("", levels[None, None], view, of_job, started, None, None)
    for i, group in enumerate(view.task_groups() if _has_groups(view) else ()):
        shape = [r for r in group.resolved() if r.property.tag in _SHAPE and _place(r) not in above]
        name = group.container.value("Name")
        title = f"task group {i + 1}{f', {name}' if name else ''}" if group.container.items else "its tasks"
        yield _level(title, levels.get((i, None)), group, shape, started, i, None)
        tasks = [_level(f"{title}, {_task(j, group.described)}", levels.get((i, j)), task, (), started, i, j)
                 for j, task in enumerate(group.tasks())]
        yield from _folded(tasks, title)


def _place(resolved: Resolved) -> tuple[int, int]:
    """What tells a property from others that say the same, for a document that is read may hold one for several."""
    return id(resolved.origin.container), id(resolved.property)


def _has_groups(view: Effective) -> bool:
    """Whether anything is said of task groups, be it in Defaults."""
    return any(item.tag in ("TaskGroup", "TaskGroupDefaults") for scope in (view.job, view.defaults)
               if scope is not None for item in scope.items)


def _task(number: int, described: int) -> str:
    return f"task {number + 1}" if described else "each task"


def _level(title: str, level: Level | None, view: View[Any], shape: Iterable[Resolved], started: bool,
           group: int | None, task: int | None) -> ExplainedLevel:
    """A level with its own conditions, and what it says of its tasks before them."""
    origins: dict[int, str] = {}
    if level is not None and level.view is not None:
        spoken = (*level.view.resolved(), *level.view.resolved("Requested"))
        origins = {id(r.property): _origin(r, level.view) for r in spoken}
    first = [_condition(r.property, _origin(r, view)) for r in shape]
    last = [] if level is None else [_overridden(p, origins, task_groups=group is None) for p in level.overridden]
    asks = _asked(AllOf(()) if level is None else level.expression.root, origins, first, last)
    conditions = [_condition(r.property, "Delivered" if used else _origin(r, view))
             for r, used in given_to(view)] if started else []
    return ExplainedLevel(title, asks, tuple(conditions), group, task)


def _folded(tasks: Iterable[ExplainedLevel], title: str) -> Iterator[ExplainedLevel]:
    """Tasks with those that say the same one after another as one level."""
    for _, same in groupby(tasks, lambda level: (level.asks, level.given)):
        run = list(same)
        first, last = run[0], run[-1]
        if len(run) == 1:
            yield first
        else:
            assert first.task is not None
            assert last.task is not None
            yield ExplainedLevel(f"{title}, each of tasks {first.task + 1} to {last.task + 1}", first.asks, first.given,
                                 first.group, first.task, len(run))


def _origin(resolved: Resolved, view: View[Any]) -> str:
    """Where a property was said, empty where that is the level itself."""
    return "" if resolved.origin.container is view.container else resolved.origin.path


def tree_in_words(properties: Iterable[Property]) -> ExplainedPart | None:
    """The tree of a Requested by itself, brackets mended; None where nothing is in it."""
    return _asked(parse(properties).root, {}, ())


def _asked(root: Node, origins: dict[int, str], first: Iterable[ExplainedPart],
           last: Iterable[ExplainedPart] = ()) -> ExplainedPart | None:
    """The tree of a level in words, between what it says of its tasks and what those override; None where there is
    nothing."""
    items = root.items if isinstance(root, AllOf) else (root,)
    parts = (*first, *(_part(item, origins) for item in items), *last)
    if len(parts) < 2:
        return parts[0] if parts else None
    return ExplainedPart("all", "all of", parts)


def _part(node: Node, origins: dict[int, str]) -> ExplainedPart:
    """The depth of the tree is bounded by the limit of brackets."""
    if isinstance(node, Predicate):
        return _condition(node.property, origins.get(id(node.property), ""))
    if isinstance(node, Not):
        inner = _part(node.item, origins)
        return ExplainedPart("not", f"not {inner.text}", (), inner.property, inner.origin)
    if isinstance(node, Preferred):
        parts = tuple(_weighed(_part(item, origins), weight)
                      for item, weight in zip(node.items, node.weights, strict=True))
        return ExplainedPart("preference" if node.required else "wish",
                    "one of the preferences" if node.required else "wishes", parts)
    parts = tuple(_part(item, origins) for item in node.items)
    return ExplainedPart("any", "one of", parts) if isinstance(node, AnyOf) else ExplainedPart("all", "all of", parts)


def _overridden(p: Property, origins: dict[int, str], *, task_groups: bool) -> ExplainedPart:
    """What a level says and does not ask for. task_groups: it is the level of the job."""
    inner = "task group" if task_groups else "task"
    return ExplainedPart("overridden", f"overridden, for each {inner} has its own: {condition_in_words(p)}", (), p,
                         origins.get(id(p), ""))


def _weighed(part: ExplainedPart, weight: int) -> ExplainedPart:
    return ExplainedPart(part.kind, part.text, part.parts, part.property, part.origin, weight)


def _condition(p: Property, origin: str) -> ExplainedPart:
    return ExplainedPart("condition", condition_in_words(p), (), p, origin)


def condition_in_words(p: Property) -> str:
    """A property as a condition: ``Memory at least 4 GB PerNode``, ``Node pattern n.*``."""
    attributes = p.attributes
    names = [attributes[name] for name in ("name", "type") if name in attributes]
    operation = _OPERATIONS.get(p.op or "EQ", f"{p.op} ")
    value = f"{attributes['aggregation'].lower()} {p.text}" if "aggregation" in attributes else p.text
    unit = attributes.get("units") or _UNITS.get(p.tag)
    behind = filter(None, (unit, attributes.get("metric"), attributes.get("context")))
    words = [p.tag, *names, operation + value, *behind]
    more = [f"{name} {text}" for name, text in attributes.items() if name not in _SAID]
    return " ".join(words) + (f" [{', '.join(more)}]" if more else "")


# --- in all -------------------------------------------------------------------------------------------------------

def in_all(request: Request) -> Iterator[InAll]:
    """Every amount of the whole request that no single condition says plainly."""
    totals = request.totals
    statements = _statements(request)
    for total in totals.all():
        if not _is_plain(total, statements.get(total.identity, [])):
            yield _amount(total)
    yield from _tasks(request, totals)
    yield from _copies(request, totals)
    durations = statements.get(("Duration", None, None), [])
    if totals.seconds is not None and len(durations) > 1:
        yield InAll("Duration", str(totals.seconds), "s", _OF_SEVERAL)


#: Conditions of one name, and whether each has to hold for itself.
_Statements = list[tuple[Property, bool]]


def _statements(request: Request) -> dict[Identity, _Statements]:
    """The conditions of all levels by what they are about."""
    statements: dict[Identity, _Statements] = {}
    for level in request.levels:
        root = level.expression.root
        alone = {id(n) for n in (root.items if isinstance(root, AllOf) else (root,)) if isinstance(n, Predicate)}
        for predicate in predicates_of(root):
            p = predicate.property
            statements.setdefault(identity_of(p), []).append((p, id(predicate) in alone))
    return statements


def _is_plain(total: Total, statements: _Statements) -> bool:
    """Whether one condition says the amount of the whole by itself."""
    if len(statements) != 1 or not statements[0][1]:
        return False
    p = statements[0][0]
    amount = base_amount(p)
    return amount is not None and amount[0] == total.value and p.op in (None, "EQ", "GE") and \
        per_of(p.attributes.get("metric")) is None


def _amount(total: Total) -> InAll:
    tag, name, kind = total.identity
    value, units = spelt(total.value, total.units)
    adds_up = not total.plain and total.origin not in (f"{tag} {value}", "")
    return InAll(" ".join(filter(None, (tag, name, kind))), value, units,
                 total.origin if adds_up else _OF_SEVERAL, total.known)


def _tasks(request: Request, totals: Totals) -> Iterator[InAll]:
    """The tasks of all, where no TaskCount says their number by itself."""
    if totals.tasks is None or request.view is None:
        return
    stated = [group.value("TaskCount") for group in request.view.task_groups()]
    if [count for count in stated if count] != [totals.tasks]:
        yield InAll("tasks", str(totals.tasks), None, " + ".join(filter(None, map(_way, totals.parts))))


def _way(part: RequestPart) -> str:
    """How the tasks of one task group come about."""
    layout = part.layout
    if layout.task_total is None:
        return ""
    if layout.tasks is not None:
        return str(layout.tasks)
    if layout.geometry:
        return f"{layout.task_total} of the geometry"
    if layout.chunks is not None:
        return f"{layout.task_total} chunks"
    if layout.per_node and layout.nodes is not None:
        return f"{layout.per_node} on each of {layout.nodes} node{'s' * (layout.nodes != 1)}"
    if layout.processors is None:
        return f"{layout.per_node} on a node"
    return f"{layout.processors} processors, {layout.cpus or 1} a task"


def _copies(request: Request, totals: Totals) -> Iterator[InAll]:
    """How often the executable starts, where that is no matter of course."""
    several = totals.copies > 1 or (totals.tasks or 1) > 1 or (totals.processors is not None
                                                              and totals.processors.value > 1)
    if several and request.view is not None and any(g.value("Executable") for g in request.view.task_groups()):
        yield InAll("copies of the executable", str(totals.copies), None, totals.how_copies_start)
