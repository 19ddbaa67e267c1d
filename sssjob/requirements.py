"""Requirements: what a Requested block means, and whether an offer meets it.

A block is one boolean expression over its properties, in document order: ``conj`` joins a property to the one before
it, ``group`` opens and closes brackets, ``preference`` makes alternatives of one property (sections 8.1, 10.2, 10.3).
``parse`` makes the tree, ``match`` holds it against an ``Offer`` and explains the answer. What the offer does not
mention meets nothing, so NE and Nand hold for it. ``least_request`` makes one value a property of it, for formats that
know no expressions. Source: SSS job object 3.1.0, sections 8, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Final, Literal, Self

from sssjob.element import Container, Property, Value
from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.inherit import TaskGroupView, TaskView, effective
from sssjob.lexical import LexicalError, LimitError
from sssjob.limits import LIMITS, Limits
from sssjob.model import Document, Job, JobDefaults, Requested, TaskGroup
from sssjob.nodeset import NodeSet
from sssjob.patterns import Pattern, compile_pattern
from sssjob.states import job_state
from sssjob.units import UnknownUnit, byte_factor
from sssjob.vocabulary import ELEMENTS, in_scope

__all__ = [
    "AllOf", "AnyOf", "Explanation", "Expression", "LeastRequest", "Level", "Match", "Node", "Not", "Offer",
    "Predicate", "Preferred", "Requirements", "Single", "check_property", "least_request", "match", "names_of",
    "parse", "requirements_of",
]

State = Literal["met", "not", "absent"]

_ORDER: Final = ("LT", "GT", "LE", "GE")
_SIGNS: Final = {"EQ": "=", "NE": "!=", "LT": "<", "GT": ">", "LE": "<=", "GE": ">=", "Match": "matches"}
_NAMED: Final = ("Resource", "Extension")
#: Extensions that say how a job is run and ask nothing of a place for it; only in Requested they do.
_HOW_TO_RUN: Final = frozenset({("Extension", "Array", "Scheduler")})
#: Names of nodes and features: an offer holds a set of them.
_SETS: Final = ("Node", "Feature")
_ROWS: Final = {e.name: e for e in ELEMENTS if "R" in e.categories}
_CREDENTIALS: Final = frozenset(e.name for e in ELEMENTS if e.section == "5.1 Table 3")
#: What an amount said "per" something has to be multiplied with to become a total.
_PER: Final = {"PerNode": "nodes", "PerChunk": "chunks", "PerProcessor": "processors", "PerSlot": "processors",
               "PerGPU": "GPUs"}

#: Kinds of measurement of what was used: such a use may stay below what was asked for.
_MEASURED: Final = ("Average", "Min", "Max")


# --- the expression -----------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Predicate:
    """One property as a condition. implied: it stood bare, outside Requested, in a job that still waits."""

    property: Property
    implied: bool = False

    def __str__(self) -> str:
        return _shown(self.property)


@dataclass(frozen=True, slots=True)
class Not:
    """The single predicate after Nand or Nor, negated."""

    item: Predicate

    def __str__(self) -> str:
        return f"not {self.item}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every item holds; without items: true."""

    items: tuple[Node, ...]

    def __str__(self) -> str:
        return " and ".join(_bracketed(i) if isinstance(i, AnyOf | AllOf) else str(i) for i in self.items) or "true"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one item holds."""

    items: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(_bracketed(i) if isinstance(i, AnyOf | AllOf) else str(i) for i in self.items)


@dataclass(frozen=True, slots=True)
class Preferred:
    """Alternatives of one property with their weights, as stated. required: positive weights, one must hold; else
    they are wishes and the whole holds anyway (section 10.3)."""

    items: tuple[Predicate | Not, ...]
    weights: tuple[int, ...]
    required: bool

    def __str__(self) -> str:
        total = sum(map(abs, self.weights))
        shown = ", ".join(f"{i} ({abs(w)}/{total})" for i, w in zip(self.items, self.weights, strict=True))
        return f"{'one of' if self.required else 'preferably'} [{shown}]"


Node = Predicate | Not | AllOf | AnyOf | Preferred


def _bracketed(node: Node) -> str:
    return f"({node})"


def _identity(p: Property) -> tuple[str, str | None, str | None]:
    """What makes two properties the same one: the tag, and name and type of Resource and Extension."""
    if p.tag in _NAMED:
        return p.tag, p.get("name"), p.get("type")
    return p.tag, None, None


def _shown(p: Property) -> str:
    name = f"{p.tag} {'/'.join(filter(None, _identity(p)[1:]))}" if p.tag in _NAMED else p.tag
    how = f" {p.get('aggregation')}" if p.get("aggregation") else ""
    more = "".join(f" {p.get(a)}" for a in ("units", "metric", "context") if p.get(a))
    count = f" x{p.get('count')}" if p.get("count") else ""
    op = p.op or "EQ"
    return f"{name} {_SIGNS.get(op, op)}{how} {p.text}{more}{count}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A Requested block as a tree. properties: those it was made of, with the signs of ``group`` mended."""

    root: Node
    properties: tuple[Property, ...] = ()

    def __str__(self) -> str:
        return str(self.root)


# --- reading it ---------------------------------------------------------------------------------------------------

class _Alternatives:
    """Predicates with a preference, of one property in one pair of brackets, while they are being collected."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[tuple[Predicate | Not, int]] = []

    def node(self) -> Node:
        signs = [[i for i in self.items if i[1] > 0], [i for i in self.items if i[1] < 0]]
        made = [Preferred(tuple(i for i, _ in part), tuple(w for _, w in part), part is signs[0])
                for part in signs if part]
        return made[0] if len(made) == 1 else AllOf(tuple(made))


class _Frame:
    """What stands between two brackets: alternatives (Or) of sequences (And)."""

    __slots__ = ("alternatives", "runs")

    def __init__(self) -> None:
        self.runs: list[list[Node | _Alternatives]] = [[]]
        self.alternatives: dict[tuple[str, str | None, str | None], _Alternatives] = {}

    def add(self, node: Node | _Alternatives) -> None:
        self.runs[-1].append(node)

    def prefer(self, item: Predicate | Not, p: Property, weight: int) -> bool:
        """Take an alternative; True where it is the first of its property here."""
        found = self.alternatives.get(_identity(p))
        first = found is None
        if found is None:
            found = self.alternatives[_identity(p)] = _Alternatives()
        found.items.append((item, weight))
        if first:
            self.add(found)
        return first

    def node(self) -> Node:
        runs = [tuple(i.node() if isinstance(i, _Alternatives) else i for i in run) for run in self.runs if run]
        parts: list[Node] = [run[0] if len(run) == 1 else AllOf(run) for run in runs]
        if not parts:
            return AllOf(())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


class _Place:
    """Where findings of one block go."""

    __slots__ = ("findings", "line", "path")

    def __init__(self, findings: Findings, line: int, path: str) -> None:
        self.findings, self.line, self.path = findings, line, path

    def add(self, rule: str, subject: str, message: str, hint: str = "") -> None:
        self.findings.add(rule, subject, message, line=self.line, path=self.path, hint=hint)


def _whole(p: Property, attribute: str, place: _Place) -> int:
    text = p.attributes.get(attribute)
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        place.add("SSS207", p.tag, f"{attribute}={text!r} of {p.tag} is not an integer")
        return 0


def _depths(groups: list[int]) -> tuple[int, int, int]:
    """Lowest, highest and last number of open brackets."""
    depth = low = high = 0
    for n in groups:
        depth += n
        low, high = min(low, depth), max(high, depth)
    return low, high, depth


def _balanced(groups: list[int], strict: bool, limits: Limits, place: _Place) -> tuple[list[int], int]:
    """The group numbers, mended, and how many brackets have to be opened before the first property."""
    low, high, last = _depths(groups)
    opened = 0
    if low < 0 or last:
        shown = f"brackets do not balance: {'one closes before it opens' if low < 0 else f'{last} left open'}"
        if strict:
            place.add("SSS401", "group", shown)
        turned = [-n for n in groups]
        if low < 0 and _depths(turned)[::2] == (0, 0):
            groups = turned
            how = "all signs of the block turned"
        else:
            opened = -low
            how = f"{opened} added at the start, {last - low} at the end"
        if not strict:
            place.add("SSS402", "group", f"{shown}; {how}")
        low, high, last = _depths(groups)
    if high + opened > limits.group_depth:
        place.add("SSS110", "group", f"{high + opened} brackets open at once, more than the limit group_depth "
                                     f"({limits.group_depth})")
        return [0] * len(groups), 0
    return groups, opened


def parse(requested: Container | Iterable[Property], findings: Findings | None = None, *, strict: bool = False,
          limits: Limits = LIMITS, path: str = "", implied: Iterable[Property] = ()) -> Expression:
    """The expression of a Requested block (section 10.2): And binds over Or, Nand and Nor negate one predicate.

    strict: brackets that do not balance are an error (SSS401) rather than mended (SSS402). Preferences: SSS403, SSS404.
    implied: bare properties that count as requested; they are joined with And. Time is linear in the properties.
    """
    line = requested.line if isinstance(requested, Container) else 0
    place = _Place(Findings(limits=limits) if findings is None else findings, line, path)
    items = list(requested.properties() if isinstance(requested, Container) else requested)
    groups, opened = _balanced([_whole(p, "group", place) for p in items], strict, limits, place)
    root = _tree(items, groups, opened, place)
    bare: tuple[Node, ...] = tuple(Predicate(p, True) for p in implied)
    if bare:
        root = AllOf((*(root.items if isinstance(root, AllOf) else (root,)), *bare))
    return Expression(root, tuple(_regrouped(p, n) for p, n in zip(items, groups, strict=True)))


def _regrouped(p: Property, group: int) -> Property:
    if "group" not in p.attributes or p.attributes["group"] == str(group):
        return p
    return p.replace(group=str(group) if group else None)


def _tree(items: list[Property], groups: list[int], opened: int, place: _Place) -> Node:
    frames = [_Frame() for _ in range(opened + 1)]
    for index, (p, group) in enumerate(zip(items, groups, strict=True)):
        conj = p.conj
        if index and conj in ("Or", "Nor") and not _continues(frames[-1], p, group):
            frames[-1].runs.append([])
        frames.extend(_Frame() for _ in range(group))
        predicate = Predicate(p)
        node: Predicate | Not = Not(predicate) if conj in ("Nand", "Nor") else predicate
        weight = _weight(p, place)
        if weight:
            frames[-1].prefer(node, p, weight)
        else:
            frames[-1].add(node)
        for _ in range(-group):
            _close(frames, place)
    while len(frames) > 1:
        _close(frames, place)
    _mixed(frames[0], place)
    return frames[0].node()


def _continues(frame: _Frame, p: Property, group: int) -> bool:
    """Whether a property is a further alternative of a preference: then its conj says nothing."""
    return group <= 0 and "preference" in p.attributes and _identity(p) in frame.alternatives


def _close(frames: list[_Frame], place: _Place) -> None:
    frame = frames.pop()
    _mixed(frame, place)
    frames[-1].add(frame.node())


def _mixed(frame: _Frame, place: _Place) -> None:
    for (tag, *_), found in frame.alternatives.items():
        if len({w > 0 for _, w in found.items}) > 1:
            place.add("SSS404", tag, f"preferences of {tag} have both signs: the positive are required, the negative "
                                     "are wishes")


def _weight(p: Property, place: _Place) -> int:
    if "preference" not in p.attributes:
        return 0
    weight = _whole(p, "preference", place)
    if not weight:
        place.add("SSS403", p.tag, f"preference 0 of {p.tag} ranks nothing")
    return weight


# --- values -------------------------------------------------------------------------------------------------------

def names_of(p: Property, limits: Limits = LIMITS) -> NodeSet | Pattern | tuple[str, ...]:
    """The names in a Node or Feature: a set (Range), a pattern (Pattern, or op Match), or literal ones (section 6.1).

    Raises LexicalError (PatternError, LimitError) for what is malformed or too large."""
    how, text = p.get("aggregation"), p.text
    if how == "Pattern" or p.op == "Match":
        return compile_pattern(text, limits)
    if how == "Range":
        return NodeSet.parse_range(text, limits)
    if how == "List":
        delimiter = p.get("delimiter") or ","
        return tuple(name for part in text.split(delimiter) if (name := part.strip()))
    return (text.strip(),)


def _number(value: Value) -> Decimal | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, str):
        try:
            value = Decimal(value.strip()) if len(value) <= LIMITS.digits else Decimal("NaN")
        except ArithmeticError:
            return None
    return value if value.is_finite() and abs(value.adjusted()) < 4 * LIMITS.digits else None


def check_property(p: Property, findings: Findings, *, limits: Limits = LIMITS, line: int = 0, path: str = "") -> None:
    """Findings about one requested property taken alone: its pattern (SSS406), nodes (SSS407), order (SSS405)."""
    place = _Place(findings, line, path)
    if p.op in _ORDER and _number(p.value) is None:
        place.add("SSS405", p.tag, f"{p.tag} {p.op} {p.text!r}: the value is not a number")
    try:
        if p.tag in _SETS:
            names = names_of(p, limits)
            if isinstance(names, NodeSet) and names.count > limits.nodes:
                place.add("SSS110", p.tag, f"{p.tag} names {names.count} nodes, more than the limit nodes "
                                           f"({limits.nodes})")
        elif p.op == "Match":
            compile_pattern(p.text, limits)
    except LimitError as error:
        place.add("SSS110", p.tag, f"{p.tag}: {error}")
    except LexicalError as error:
        pattern = p.get("aggregation") == "Pattern" or p.op == "Match"
        place.add("SSS406" if pattern else "SSS407", p.tag, f"{p.tag}: {error}")


# --- offers -------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Offer:
    """What is there, or what was used: properties by name, several of a name allowed (several Node, Feature).

    used: names whose values are amounts realised (Delivered), not capacities. task_groups: what belongs to single
    task groups of the job it was made of.
    """

    properties: dict[str, tuple[Property, ...]]
    used: frozenset[str] = frozenset()
    task_groups: tuple[Offer, ...] = ()
    _names: list[tuple[tuple[str | NodeSet, int], ...]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, source: Document | Container | Iterable[Property]) -> Self:
        """The offer in a document, a container, or properties: Delivered, else bare, name by name (section 10.4).

        Raises UsageError for a document or group that does not hold exactly one job."""
        if isinstance(source, Document):
            return cls.of(_only([b for b in source.bodies() if b.reference is None], "objects"))
        if not isinstance(source, Container):
            return cls(_by_tag(source))
        if source.tag == "JobGroup":
            jobs = [j for j in source.containers("Job") if j.reference is None]
            return cls.of(_only(jobs, "jobs"))
        if source.tag in ("Delivered", "Requested"):
            found = _by_tag(source.properties())
            return cls(found, frozenset(found) if source.tag == "Delivered" else frozenset())
        return cls._of_scope(source)

    @classmethod
    def _of_scope(cls, scope: Container) -> Self:
        delivered = _by_tag(p for c in scope.containers("Delivered") for p in c.properties())
        done = job_state(scope.value("State")).state == "Completed"
        allowed = in_scope("Delivered")
        bare = _by_tag(p for p in scope.properties() if p.tag in allowed and p.tag not in delivered)
        nodes = () if "Node" in delivered or "Node" in bare else tuple(
            p for task in _tasks(scope) for p in task.all("Node"))
        both = {**bare, **delivered, **({"Node": nodes} if nodes else {})}
        groups = tuple(cls._of_scope(g) for g in scope.containers("TaskGroup"))
        return cls(both, frozenset(both if done else delivered), groups)

    def all(self, tag: str, name: str | None = None, type: str | None = None) -> tuple[Property, ...]:
        """The properties offered under a name; of Resource and Extension those of the name and type asked for."""
        found = self.properties.get(tag, ())
        if tag not in _NAMED:
            return found
        return tuple(p for p in found if p.get("name") == name and type in (None, p.get("type")))

    def names(self, tag: str) -> tuple[tuple[str | NodeSet, int], ...]:
        """Names, or sets of them, of the nodes or features offered, each with its count."""
        return tuple((name, _count(p)) for p in self.properties.get(tag, ()) for name in _offered_names(p))

    def total(self, what: str) -> Decimal | None:
        """How many nodes, processors, GPUs or chunks are offered, where the offer says so."""
        if what == "nodes":
            stated = _first_number(self.properties.get("NodeCount", ()))
            if stated is not None or "Node" not in self.properties:
                return stated
            return Decimal(self._node_count())
        if what == "processors":
            return _first_number(self.properties.get("Processors", ()))
        if what == "chunks":
            return _first_number(self.all("Extension", "ChunkCount"))
        return _first_number([p for p in self.properties.get("Resource", ())
                              if str(p.get("name")).lower() in ("gpu", "gpus")])

    def _node_count(self) -> int:
        names = [n for n, _ in self.names("Node")]
        single = {n for n in names if isinstance(n, str)}
        sets = [n for n in names if isinstance(n, NodeSet)]
        if not sets:
            return len(single)
        merged = sets[0]
        for more in sets[1:]:
            merged = merged | more
        return merged.count + sum(1 for n in single if n not in merged)


def _by_tag(properties: Iterable[Property]) -> dict[str, tuple[Property, ...]]:
    found: dict[str, list[Property]] = {}
    for p in properties:
        found.setdefault(p.tag, []).append(p)
    return {tag: tuple(items) for tag, items in found.items()}


def _only(found: list[Container], what: str) -> Container:
    if len(found) != 1:
        raise UsageError(f"an offer is made of one job; there are {len(found)} {what} here")
    return found[0]


def _tasks(scope: Container) -> Iterator[Container]:
    yield from scope.containers("Task")
    for group in scope.containers("TaskGroup"):
        yield from group.containers("Task")


def _count(p: Property) -> int:
    text = p.get("count") or "1"
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LIMITS.digits else 1


def _first_number(found: Iterable[Property]) -> Decimal | None:
    return next((n for p in found if (n := _number(p.value)) is not None), None)


def _offered_names(p: Property) -> tuple[str | NodeSet, ...]:
    try:
        names = names_of(p) if p.get("aggregation") != "Pattern" else (p.text,)
    except LexicalError:
        return (p.text,)
    if isinstance(names, NodeSet):
        return (names,)
    return names if isinstance(names, tuple) else (p.text,)


# --- answers ------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one part of a request is met or not: the condition, what was offered for it, and the parts of it.

    state: met, not (something was offered, but not that) or absent (the offer says nothing about it).
    """

    text: str
    state: State
    offered: str = ""
    why: str = ""
    kind: Literal["all", "any", "not", "preference", "wish", "condition"] = "condition"
    parts: tuple[Explanation, ...] = ()

    @property
    def met(self) -> bool:
        """Whether it is met."""
        return self.state == "met"

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The explanation for people, one condition a line."""
        sign = {"met": "+", "not": "-", "absent": "?"}[self.state]
        offered = f": offered {self.offered}" if self.offered else ""
        why = f" ({self.why})" if self.why else ""
        yield f"{'  ' * indent}{sign} {self.text}{offered}{why}"
        for part in self.parts:
            yield from part.lines(indent + 1)


@dataclass(frozen=True, slots=True)
class Match:
    """The answer of ``match``. score: satisfied weight of the preferences, 0 to 1; 1 where there are none."""

    met: bool
    explanation: Explanation
    score: Fraction
    findings: Findings

    def lines(self) -> Iterator[str]:
        """The explanation for people, one condition a line."""
        return self.explanation.lines()

    def __bool__(self) -> bool:
        return self.met


@dataclass(frozen=True, slots=True)
class Level:
    """The requirements of one level: ``Job``, ``TaskGroup 1``, ``TaskGroup 1 Task 1``. group: which one, counted from 0
    (None: the job); task: it is that of a task inside it."""

    name: str
    expression: Expression
    group: int | None = None
    task: bool = False


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a job, level by level; all must hold."""

    levels: tuple[Level, ...]
    findings: Findings

    def __str__(self) -> str:
        return "\n".join(f"{level.name}: {level.expression}" for level in self.levels)


def requirements_of(job: Job, defaults: JobDefaults | None = None, *, strict: bool = False, limits: Limits = LIMITS,
                    path: str = "/Job") -> Requirements:
    """What a job asks for: its Requested, and each task group's own, with defaults taken in.

    In a job that still waits a bare property counts as requested where Requested does not name it (section 10).
    """
    findings = Findings(limits=limits)
    view = effective(job, defaults)
    pending = job_state(job.value("State")).state not in ("Running", "Suspended", "Completed")
    own = parse(view.properties("Requested"), findings, strict=strict, limits=limits, path=f"{path}/Requested",
                implied=_bare(view.properties(), view.properties("Requested")) if pending else ())
    levels = [Level("Job", own)]
    for i, group in enumerate(view.task_groups()):
        name, where = f"TaskGroup {i + 1}", f"{path}/TaskGroup[{i + 1}]"
        levels += _lower(name, group, i, pending, findings, strict, limits, where)
        for j, task in enumerate(group.tasks()):
            levels += _lower(f"{name} Task {j + 1}", task, i, False, findings, strict, limits, f"{where}/Task[{j + 1}]")
    return Requirements(tuple(levels), findings)


def _lower(name: str, view: TaskGroupView | TaskView, group: int, pending: bool, findings: Findings, strict: bool,
           limits: Limits, path: str) -> list[Level]:
    """The level of a task group or task that asks for something beyond what its job does, else nothing."""
    own = [r.property for r in view.resolved("Requested") if r.origin.own]
    bare = _bare([r.property for r in view.resolved() if r.origin.own], own) if pending else []
    if not own and not bare:
        return []
    expression = parse(own, findings, strict=strict, limits=limits, implied=bare, path=f"{path}/Requested")
    return [Level(name, expression, group, isinstance(view, TaskView))]


def _bare(properties: Iterable[Property], requested: Iterable[Property]) -> list[Property]:
    stated = {_identity(p) for p in requested}
    allowed = in_scope("Requested")
    return [p for p in properties if p.tag in allowed and _identity(p) not in stated | _HOW_TO_RUN]


def match(requested: Document | Container | Expression | Requirements, offer: Offer | Document | Container, *,
          strict: bool = False, limits: Limits = LIMITS) -> Match:
    """Whether an offer meets a request, and why.

    requested: a Requested block, a job (with all its levels), a document (all of its jobs), or what ``parse`` and
    ``requirements_of`` made.
    strict: brackets must balance; amounts used are compared exactly (by default the Duration used may be shorter than
    the one requested, which is a limit, and an Average, Min or Max of what was used may be lower); a task group is
    held only against what is offered to it. By default, where an offer has no task groups of its own, an amount of a
    task group has to fit into that of the whole.
    """
    findings = Findings(limits=limits)
    wanted = _requirements(requested, findings, strict, limits)
    given = offer if isinstance(offer, Offer) else Offer.of(offer)
    scores: list[Fraction] = []
    parts = []
    for level in wanted.levels:
        matcher = _Matcher(*_offer_for(level, given, strict), strict=strict, limits=limits, findings=findings)
        parts.append(matcher.explain(level.expression.root))
        scores += matcher.scores
    if len(parts) == 1:
        top = parts[0]
    else:
        named = tuple(_titled(level.name, part) for level, part in zip(wanted.levels, parts, strict=True))
        top = Explanation("all levels", _all_state(named), kind="all", parts=named)
    score = sum(scores, Fraction(0)) / len(scores) if scores else Fraction(1)
    return Match(top.met, top, score, findings)


def _titled(name: str, part: Explanation) -> Explanation:
    return Explanation(name, part.state, kind="all", parts=(part,))


def _requirements(requested: Document | Container | Expression | Requirements, findings: Findings, strict: bool,
                  limits: Limits) -> Requirements:
    if isinstance(requested, Document):
        jobs = list(requested.jobs())
        if jobs:
            each = [requirements_of(*job, strict=strict, limits=limits) for job in jobs]
            requested = each[0] if len(each) == 1 else _together([job for job, _ in jobs], each, limits)
        else:
            requested = _only([b for b in requested.bodies() if b.reference is None], "objects")
    if isinstance(requested, Requirements):
        findings.extend(requested.findings)
        return requested
    if isinstance(requested, Expression):
        return Requirements((Level("Requested", requested),), findings)
    if isinstance(requested, Job):
        made = requirements_of(requested, strict=strict, limits=limits)
        findings.extend(made.findings)
        return made
    if isinstance(requested, TaskGroup) or requested.tag == "Task":
        requested = Requested([p for c in requested.containers("Requested") for p in c.properties()])
    expression = parse(requested, findings, strict=strict, limits=limits, path=f"/{requested.tag}")
    return Requirements((Level(requested.tag, expression),), findings)


def _together(jobs: list[Job], each: list[Requirements], limits: Limits) -> Requirements:
    """The requirements of several jobs, which all have to be met: each level is named after its job."""
    findings = Findings(limits=limits)
    levels = []
    for number, (job, one) in enumerate(zip(jobs, each, strict=True), 1):
        findings.extend(one.findings)
        name = job.value("Id") or job.value("Name") or number
        levels += [replace(level, name=f"Job {name}" if level.name == "Job" else f"Job {name} {level.name}")
                   for level in one.levels if level.expression.properties or len(one.levels) == 1]
    return Requirements(tuple(levels), findings)


def _offer_for(level: Level, offer: Offer, strict: bool) -> tuple[Offer, bool]:
    """The offer for one level, and whether it is that of the whole job, of which the level is a part."""
    if level.group is None:
        return offer, False
    if level.group < len(offer.task_groups):
        own = offer.task_groups[level.group]
        shared = {t: ps for t, ps in offer.properties.items() if not _is_amount(t)}
        return Offer({**shared, **own.properties}, own.used | (offer.used & shared.keys())), level.task
    if strict:
        return Offer({t: ps for t, ps in offer.properties.items() if not _is_amount(t)}, offer.used), False
    return offer, True


def _is_amount(tag: str) -> bool:
    return tag in _ROWS and _ROWS[tag].amount


def _all_state(parts: Iterable[Explanation]) -> State:
    states = {p.state for p in parts}
    return "not" if "not" in states else "absent" if "absent" in states else "met"


def _any_state(parts: Iterable[Explanation]) -> State:
    states = {p.state for p in parts}
    return "met" if "met" in states else "not" if "not" in states else "absent"


class _Matcher:
    """Holds one expression against one offer. part: the offer is that of a larger whole."""

    def __init__(self, offer: Offer, part: bool, *, strict: bool, limits: Limits, findings: Findings) -> None:
        self.offer, self.part, self.strict, self.limits, self.findings = offer, part, strict, limits, findings
        self.scores: list[Fraction] = []
        self._names: dict[str, tuple[tuple[str | NodeSet, int], ...]] = {}

    def explain(self, node: Node) -> Explanation:
        """The depth of the tree is bounded by ``limits.group_depth``."""
        if isinstance(node, Predicate):
            return self.condition(node)
        if isinstance(node, Not):
            inner = self.condition(node.item)
            return Explanation(f"not {inner.text}", "not" if inner.met else "met", inner.offered, inner.why, "not")
        if isinstance(node, Preferred):
            return self.preferred(node)
        parts = tuple(map(self.explain, node.items))
        if isinstance(node, AllOf):
            return Explanation("all of", _all_state(parts), kind="all", parts=parts)
        return Explanation("one of", _any_state(parts), kind="any", parts=parts)

    def preferred(self, node: Preferred) -> Explanation:
        parts = tuple(map(self.explain, node.items))
        total = sum(map(abs, node.weights))
        got = sum(abs(w) for w, part in zip(node.weights, parts, strict=True) if part.met)
        self.scores.append(Fraction(got, total))
        shown = f"weight {got} of {total}"
        if node.required:
            return Explanation("one of the preferences", _any_state(parts), why=shown, kind="preference", parts=parts)
        return Explanation("wishes", "met", why=shown, kind="wish", parts=parts)

    # -- one predicate
    def condition(self, predicate: Predicate) -> Explanation:
        p = predicate.property
        try:
            state, offered, why = self.names(p) if p.tag in _SETS else self.values(p, predicate.implied)
        except LimitError as error:
            self.findings.add("SSS110", p.tag, f"{p.tag}: {error}")
            state, offered, why = "not", "", str(error)
        except LexicalError as error:
            pattern = p.get("aggregation") == "Pattern" or p.op == "Match"
            self.findings.add("SSS406" if pattern else "SSS407", p.tag, f"{p.tag}: {error}")
            state, offered, why = "not", "", str(error)
        return Explanation(_shown(p), state, offered, why)

    def names(self, p: Property) -> tuple[State, str, str]:
        tag, op = p.tag, p.op
        offered = self._names.get(tag)
        if offered is None:
            offered = self._names[tag] = self.offer.names(tag)
        if not offered:
            return ("met" if op == "NE" else "absent"), "", "nothing offered"
        shown = _names_shown(offered)
        if op in _ORDER:
            return self._ordered_names(p, offered, shown)
        wanted = names_of(p, self.limits)
        least = _count(p)
        hit = next((n for n, count in offered if count >= least and _meets(wanted, n, self.limits)), None)
        if op == "NE":
            return ("not" if hit is not None else "met"), shown, ""
        why = "" if hit is not None or least < 2 else f"{least} of each wanted"
        return ("met" if hit is not None else "not"), shown, why

    def _ordered_names(self, p: Property, offered: tuple[tuple[str | NodeSet, int], ...],
                       shown: str) -> tuple[State, str, str]:
        wanted = _number(p.value)
        found = [_number(n) for n, _ in offered if isinstance(n, str)]
        if wanted is None or not all(n is not None for n in found) or len(found) < len(offered):
            return self.unordered(p, shown)
        met = any(n is not None and _compare(p.op, n, wanted) for n in found)
        return ("met" if met else "not"), shown, ""

    def unordered(self, p: Property, offered: str) -> tuple[State, str, str]:
        why = f"{p.op} needs numbers"
        self.findings.add("SSS405", p.tag, f"{p.tag} {p.op} {p.text!r} against {offered!r}: {why}")
        return "not", offered, why

    def values(self, p: Property, implied: bool) -> tuple[State, str, str]:
        _, name, type_ = _identity(p)
        found = self.offer.all(p.tag, name, type_)
        if not found and p.tag == "NodeCount" and (nodes := self.offer.total("nodes")) is not None:
            found = (Property("NodeCount", int(nodes)),)
        if not found:
            if implied and p.tag in _CREDENTIALS:
                return "met", "", "the offer names nobody"
            return ("met" if p.op == "NE" else "absent"), "", "nothing offered"
        answers = [self.value(p, given) for given in found]
        shown = ", ".join(a[1] for a in answers)
        if p.op == "NE":    # none may be equal
            bad = next((a for a in answers if a[0] != "met"), None)
            return (bad[0] if bad else "met"), shown, bad[2] if bad else ""
        good = next((a for a in answers if a[0] == "met"), None)
        return ("met", shown, good[2]) if good else (answers[0][0], shown, answers[0][2])

    def value(self, p: Property, given: Property) -> tuple[State, str, str]:
        """One requested against one offered property: state, what was offered, why."""
        shown = given.text + "".join(f" {given.get(a)}" for a in ("units", "metric", "context") if given.get(a))
        if p.op == "Match":
            met = compile_pattern(p.text, self.limits).matches(given.text)
            return ("met" if met else "not"), shown, ""
        row = _ROWS.get(p.tag)
        if row is not None and row.type == "String":
            return self.text(p, given, shown)
        wanted, offered = _number(p.value), _number(given.value)
        if wanted is None or offered is None:
            return self.text(p, given, shown)
        if row is None or not row.amount:
            return self.compared(p, offered, wanted, shown)
        return self.amount(p, given, wanted, offered, shown)

    def text(self, p: Property, given: Property, shown: str) -> tuple[State, str, str]:
        if p.op in _ORDER:
            wanted, offered = _number(p.value), _number(given.value)
            if wanted is None or offered is None:
                return self.unordered(p, shown)
            return ("met" if _compare(p.op, offered, wanted) else "not"), shown, ""
        if p.op not in ("EQ", "NE"):
            return "not", shown, f"op {p.op} is not known"
        return ("met" if (p.text == given.text) == (p.op == "EQ") else "not"), shown, ""

    def amount(self, p: Property, given: Property, wanted: Decimal, offered: Decimal,
               shown: str) -> tuple[State, str, str]:
        """An amount: its context, units and metric have to fit before the numbers are compared."""
        context = p.get("context") or "Available"
        used = p.tag in self.offer.used
        if not used and (given.get("context") or context) != context:
            return "not", shown, f"context {context} is asked"
        measured = used and not self.strict and p.get("metric") is None and given.get("metric") in _MEASURED
        per = Fraction(1) if measured else self.converted(p.get("metric"), given.get("metric"))
        if isinstance(per, str):
            return "not", shown, per
        scale = _scale(p, given)
        if scale is None:
            self.findings.add("SSS419", p.tag, f"{_shown(p)} cannot be compared with {shown}: the units differ")
            return "not", shown, "the units differ"
        return self.compared(p, Fraction(offered) * per * scale[1], Fraction(wanted) * scale[0], shown, measured)

    def compared(self, p: Property, offered: Fraction | Decimal, wanted: Fraction | Decimal, shown: str,
                 measured: bool = False) -> tuple[State, str, str]:
        op, why = p.op, ""
        if op == "EQ" and measured:
            op, why = "LE", "what was measured lies within what was asked"
        elif op == "EQ" and p.tag == "Duration" and p.tag in self.offer.used and not self.strict:
            op, why = "LE", "the Duration requested is a limit"
        elif op == "EQ" and self.part and _is_amount(p.tag):
            op, why = "GE", "a part of the whole"
        if op not in _SIGNS:
            return "not", shown, f"op {op} is not known"
        return ("met" if _compare(op, offered, wanted) else "not"), shown, why

    def converted(self, wanted: str | None, given: str | None) -> Fraction | str:
        """What the amount offered is multiplied with to be of the kind that is asked for; a text says why not."""
        wanted, given = wanted or "Total", given or "Total"
        if wanted == given:
            return Fraction(1)
        factor = Fraction(1)
        for metric, power in ((given, 1), (wanted, -1)):
            if metric == "Total":
                continue
            what = _PER.get(metric)
            if what is None:
                return f"metric {metric} cannot be compared with {wanted if metric == given else given}"
            total = self.offer.total(what)
            if not total:
                return f"the offer does not say how many {what}"
            factor *= Fraction(total) ** power
        return factor


def _scale(p: Property, given: Property) -> tuple[int, int] | None:
    """Factors of the amount wanted and the amount offered that make them comparable; None where nothing does."""
    row = _ROWS.get(p.tag)
    default = row.unit if row is not None else None
    wanted, offered = p.get("units") or default, given.get("units") or default
    if wanted == offered or (wanted or "").lower() == (offered or "").lower():
        return 1, 1
    if wanted is None or offered is None:
        return None
    try:
        return byte_factor(wanted), byte_factor(offered)
    except UnknownUnit:
        return None


def _compare(op: str | None, offered: Fraction | Decimal, wanted: Fraction | Decimal) -> bool:
    left, right = Fraction(offered), Fraction(wanted)
    if op == "EQ" or op == "NE":
        return (left == right) == (op == "EQ")
    if op == "LT" or op == "GT":
        return left < right if op == "LT" else left > right
    return left <= right if op == "LE" else left >= right


def _meets(wanted: NodeSet | Pattern | tuple[str, ...], offered: str | NodeSet, limits: Limits) -> bool:
    """Whether any name offered is among those wanted."""
    if isinstance(offered, str):
        return wanted.matches(offered) if isinstance(wanted, Pattern) else offered in wanted
    if isinstance(wanted, Pattern):
        return any(map(wanted.matches, offered))
    if isinstance(wanted, tuple):
        return any(name in offered for name in wanted)
    small, large = (wanted, offered) if wanted.count < offered.count else (offered, wanted)
    return any(name in large for name in small)


def _names_shown(offered: tuple[tuple[str | NodeSet, int], ...], most: int = 8) -> str:
    shown = [f"{name}{f' x{count}' if count > 1 else ''}" for name, count in offered[:most]]
    return ", ".join(shown) + (f" and {len(offered) - most} more" if len(offered) > most else "")


# --- without expressions ------------------------------------------------------------------------------------------

_NEGATED: Final = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_PLAIN: Final = dict.fromkeys(("op", "conj", "group", "preference"))
_EXCLUDED: Final = 1_000        # values of one property that NE may exclude; more are dropped


@dataclass(frozen=True, slots=True)
class Single:
    """One value for one property, free of op, conj, group and preference. exact: it was asked for just so."""

    property: Property
    exact: bool


@dataclass(frozen=True, slots=True)
class LeastRequest:
    """A request without expressions. dropped: conditions that no single value can say; possible: False where the
    conditions contradict each other, and then each value is the first one stated."""

    values: tuple[Single, ...]
    dropped: tuple[Property, ...] = ()
    possible: bool = True

    def first(self, tag: str, **attributes: str) -> Single | None:
        """The first value of a name with these attributes, or None."""
        return next((v for v in self.values if v.property.tag == tag and attributes.items()
                     <= v.property.attributes.items()), None)


def least_request(requested: Container | Iterable[Property] | Expression, *, limits: Limits = LIMITS) -> LeastRequest:
    """What to ask for where a target holds one value a property and no expression (decisions 12).

    Of alternatives (Or, preference) the one of highest positive weight, then the first that the rest allows; then the
    least amount that satisfies what is left, for Duration the greatest. Wishes (negative preferences), patterns and
    what is only excluded are dropped. A name that has several values (Node, Feature) keeps them all.
    """
    expression = requested if isinstance(requested, Expression) else parse(requested, limits=limits)
    made = _Least(expression)
    if made.take(expression.root):
        return made.result(True)
    made = _Least(expression)
    for p in expression.properties:
        if made.key(p) not in made.found:
            made.limit(p, False)
    return made.result(False)


_LeastKey = tuple[str, str | None, str | None, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What is asked of one property so far. first: its first mention, whose unit the answer has."""

    first: Property
    inexact: bool
    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    excluded: frozenset[Fraction] = frozenset()

    @property
    def whole(self) -> bool:
        row = _ROWS.get(self.first.tag)
        return row is not None and row.type != "Float"

    def narrowed(self, op: str, value: Fraction, inexact: bool) -> _Bounds:
        """With one more condition."""
        made = replace(self, inexact=self.inexact or inexact)
        if op == "NE":
            return replace(made, excluded=made.excluded | {value})
        if op in ("EQ", "GE", "GT") and (made.low is None or (value, op == "GT") > (made.low, made.low_open)):
            made = replace(made, low=value, low_open=op == "GT")
        if op in ("EQ", "LE", "LT") and (made.high is None or (value, op != "LT") < (made.high, not made.high_open)):
            made = replace(made, high=value, high_open=op == "LT")
        return made

    def holds(self, value: Fraction) -> bool:
        """Whether a value satisfies everything."""
        return value not in self.excluded and not (
            (self.low is not None and (value < self.low or (self.low_open and value == self.low)))
            or (self.high is not None and (value > self.high or (self.high_open and value == self.high))))

    def value(self) -> Fraction | None:
        """The least value that holds, for Duration the greatest; None where there is none or nothing to ask for."""
        down = self.first.tag == "Duration" and self.high is not None
        start = self.high if down else self.low
        if start is None:
            start = Fraction(1) if self.whole else None
        if start is None:
            return None
        return next((v for v in self._near(start, -1 if down else 1) if self.holds(v)), None)

    def _near(self, start: Fraction, step: int) -> Iterator[Fraction]:
        """A bound and what comes next to it: whole numbers (bytes, where units are), or halfway to the other bound."""
        whole = Fraction(ceil(start) if step > 0 else floor(start))
        yield whole if self.whole else start
        for n in range(len(self.excluded) + 2):
            yield whole + n * step
        other = self.high if step > 0 else self.low
        if not self.whole and other is not None:
            yield (start + other) / 2


class _Least:
    """Collects the conditions of one way through the alternatives of an expression."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.found: dict[_LeastKey, _Bounds | list[tuple[Property, bool]]] = {}
        self.dropped: list[Property] = []
        self.trail: list[Callable[[], object]] = []     # how to undo, last first
        self.choices = 0                                # alternatives that are open here

    def key(self, p: Property) -> _LeastKey:
        """What belongs together: amounts of one name that can be compared."""
        units = p.get("units")
        known = units is None or _factor(p) is not None
        return (*_identity(p), p.get("metric"), p.get("context"), None if known else units)

    # -- the tree; its depth is bounded by ``limits.group_depth``
    def take(self, node: Node) -> bool:
        """Add what a node asks for; False where it contradicts what is there."""
        if isinstance(node, Predicate):
            return self.limit(node.property, False)
        if isinstance(node, Not):
            return self.limit(node.item.property, True)
        if isinstance(node, AllOf):
            return all(map(self.take, sorted(node.items, key=_settled)))
        items: Iterable[Node] = node.items
        if isinstance(node, Preferred):
            if not node.required:
                self.dropped += [(i.item if isinstance(i, Not) else i).property for i in node.items]
                return True
            ranked = sorted(zip(node.weights, node.items, strict=True), key=lambda pair: -pair[0])
            items = [item for _, item in ranked]
        self.choices += 1
        taken = any(map(self._tried, items))
        self.choices -= 1
        return taken

    def _tried(self, node: Node) -> bool:
        mark, dropped = len(self.trail), len(self.dropped)
        if self.take(node):
            return True
        while len(self.trail) > mark:
            self.trail.pop()()
        del self.dropped[dropped:]
        return False

    # -- one condition
    def limit(self, p: Property, negated: bool) -> bool:
        """Add one condition; False where it contradicts what is there."""
        op = p.op or "EQ"
        if op not in _NEGATED or (p.tag in _SETS and (negated or op != "EQ")):
            self.dropped.append(p)
            return True
        op = _NEGATED[op] if negated else op
        number = None if p.tag in _SETS or _textual(p) else _number(p.value)
        return self.text(p, op) if number is None else self.number(p, op, Fraction(number))

    def number(self, p: Property, op: str, number: Fraction) -> bool:
        key = self.key(p)
        old = self.found.get(key)
        bounds = old if isinstance(old, _Bounds) else _Bounds(p, False)
        if op == "NE" and len(bounds.excluded) >= _EXCLUDED:
            self.dropped.append(p)
            return True
        exact = op == "EQ" or (op == "LE" and p.tag == "Duration")
        made = bounds.narrowed(op, number * (_factor(p) or 1), not exact or self.choices > 0)
        self._put(key, made)
        return made.low is None or made.value() is not None

    def text(self, p: Property, op: str) -> bool:
        if op != "EQ":
            self.dropped.append(p)
            return True
        key = self.key(p)
        there = self.found.get(key)
        if not isinstance(there, list):
            self._put(key, [(p, self.choices > 0)])
            return True
        if p.tag not in _SETS:
            return there[0][0].text == p.text
        there.append((p, self.choices > 0))
        self.trail.append(there.pop)
        return True

    def _put(self, key: _LeastKey, value: _Bounds | list[tuple[Property, bool]]) -> None:
        if key in self.found:
            self.trail.append(partial(self.found.__setitem__, key, self.found[key]))
        else:
            self.trail.append(partial(self.found.pop, key))
        self.found[key] = value

    # -- the answer
    def result(self, possible: bool) -> LeastRequest:
        """The values in document order."""
        order: dict[_LeastKey, None] = {}
        for p in self.expression.properties:
            order.setdefault(self.key(p))
        for key in self.found:
            order.setdefault(key)
        values = [v for key in order if key in self.found for v in self._values(self.found[key])]
        return LeastRequest(tuple(values), tuple(self.dropped), possible)

    def _values(self, found: _Bounds | list[tuple[Property, bool]]) -> Iterator[Single]:
        if isinstance(found, list):
            yield from (Single(p.replace(**_PLAIN), not chosen) for p, chosen in found)
            return
        value = found.value()
        if value is None:
            self.dropped.append(found.first)
            return
        amount = value / (_factor(found.first) or 1)
        exact = Decimal(amount.numerator) / Decimal(amount.denominator)
        plain = int(amount) if found.whole and amount.denominator == 1 else exact
        yield Single(found.first.replace(plain, **_PLAIN), not found.inexact)


def _settled(node: Node) -> int:
    """What leaves no choice comes first, so that choices are made in its knowledge."""
    return 0 if isinstance(node, Predicate | Not) else 1 if isinstance(node, AllOf) else 2


def _textual(p: Property) -> bool:
    row = _ROWS.get(p.tag)
    return row is not None and row.type == "String"


def _factor(p: Property) -> int | None:
    """Bytes of the unit of an amount, or None where it has none or an unknown one."""
    row = _ROWS.get(p.tag)
    units = p.get("units") or (row.unit if row is not None else None)
    try:
        return None if units is None else byte_factor(units)
    except UnknownUnit:
        return None
