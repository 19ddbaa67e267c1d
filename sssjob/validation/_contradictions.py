"""What a scope asks for and nothing can meet, or what does not fit together: the checks of amounts.

All amounts of one level are looked at together: Requested, what stands bare where Requested does not name it, and what
the defaults beside it add. Of a job that is over the same is only told as a doubt, for these are facts. Source: SSS job
object 3.1.0, sections 3.0, 5.1, 6.4 and 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.lexical import LexicalError
from sssjob.document.nodeset import NodeSet
from sssjob.findings import Findings, Severity
from sssjob.limits import Limits
from sssjob.request.bounds import Bounds, Key, amount_of, bounds_of, key_of
from sssjob.request.geometry import Geometry, distribution_of
from sssjob.request.tree import AMOUNTS, AllOf, Expression, Node, Predicate, names_of, parse

__all__ = ["Level", "check_level"]

_LEVEL: Final = ("NodeCount", "Processors")
#: What is looked at where it stands bare.
_BARE: Final = AMOUNTS | {"TaskDistribution"}
_BOTH: Final = frozenset(_LEVEL)
#: Amounts that a machine has only so much of -> the limit that says how much.
_LIMITED: Final = {**dict.fromkeys(("Processors", "NodeCount", "TaskCount"), "count"),
                   **dict.fromkeys(("Memory", "Disk", "Swap"), "amount_bytes"), "Duration": "seconds"}
#: rule, subject, message, container, property, severity
Tell = Callable[[str, str, str, Container, Property | None, Severity | None], None]


@dataclass(slots=True)
class Level:
    """One scope with the defaults beside it, the one nearest first. pending: whether its job is not over; tasks: of the
    one task group of a job; sound: blocks (by identity) whose expression was read whole without a finding."""

    scope: Container
    defaults: tuple[Container, ...]
    pending: Callable[[], bool]
    tell: Tell
    limits: Limits
    tasks: int | None = None
    sound: set[int] = field(default_factory=set)

    def blocks(self) -> list[Container]:
        """The Requested of the level, own ones first."""
        return [c for scope in (self.scope, *self.defaults) for c in scope.containers("Requested")]

    def stated(self) -> list[tuple[Property, Container]]:
        """What the level asks for, each with its container: of each name what is nearest, Requested before bare."""
        scopes = (self.scope, *self.defaults)
        found: list[tuple[Property, Container]] = []
        for scope in scopes:
            taken = {_named(p) for p, _ in found}
            for block in scope.items:
                if block.tag == "Requested" and isinstance(block, Container):
                    found += [(p, block) for p in block.items if isinstance(p, Property) and _named(p) not in taken]
        for scope in scopes:
            taken = {_named(p) for p, _ in found}
            found += [(p, scope) for p in scope.items
                      if p.tag in _BARE and isinstance(p, Property) and _named(p) not in taken]
        return found

    @property
    def severity(self) -> Severity | None:
        """Of what cannot be met: no more than a doubt where the job is over."""
        return None if self.pending() else "warning"


def _named(p: Property) -> tuple[str, str | None, str | None]:
    said = p.attributes
    return (p.tag, said.get("name"), said.get("type")) if said else (p.tag, None, None)


def check_level(level: Level) -> None:
    """Add what is wrong with the amounts of a level: SSS110, SSS414, SSS423."""
    stated = level.stated()
    where = {id(p): c for p, c in stated}
    for p, container in stated:
        _absurd(level, p, container)
    inside = [p for p, c in stated if c.tag == "Requested"]
    bare = {key_of(p): p for p, c in reversed(stated) if c.tag != "Requested" and p.tag in AMOUNTS}   # the first counts
    # A bare amount that nothing meets, being less than nothing, is told of as a value.
    possible = [node for node in map(Predicate, bare.values()) if bounds_of([node]) is not None]
    nodes: list[Node] = [_tree(level, inside), *possible]
    alone = bounds_of(nodes)
    if alone is None:
        blamed = _blamed(inside)
        level.tell("SSS423", blamed.tag if blamed else "Requested", "Requested: nothing can meet "
                   f"{_shown(inside, blamed)}", where[id(blamed or inside[0])], blamed, level.severity)
        return
    if {p.tag for p, _ in stated} >= _BOTH and bounds_of(nodes, _nodes_have_processors) is None:
        p = _last(stated, "NodeCount")
        level.tell("SSS423", p.tag, f"{p.text} nodes cannot share {_last(stated, 'Processors').text} processors: each "
                   "has at least one", where[id(p)], p, level.severity)
    _fits(level, stated, alone)


def _tree(level: Level, inside: list[Property]) -> Node:
    """The expression of what is requested; blocks of several levels are joined by And, each in brackets of its own."""
    blocks = level.blocks()
    mine = {id(p) for p in inside}
    made: list[Expression] = []
    for block in blocks:
        asked = [p for p in block.properties() if id(p) in mine]
        if asked:
            findings = Findings(limits=level.limits)
            made.append(parse(asked, findings, limits=level.limits))
            if not findings.told and len(asked) == sum(1 for _ in block.properties()):
                level.sound.add(id(block))
    return AllOf(tuple(e.root for e in made))


def _nodes_have_processors(found: dict[Key, Bounds]) -> bool:
    nodes, processors = (found.get((tag, None, None, None, None, None)) for tag in _LEVEL)
    if nodes is None or processors is None or nodes.least is None or processors.most is None:
        return True
    return processors.most >= nodes.least


def _blamed(inside: list[Property]) -> Property | None:
    """Where all is joined by And, the first property that cannot be met beside those before it."""
    if any(name in p.attributes for p in inside for name in ("group", "preference")) or any(
            p.conj in ("Or", "Nor") for p in inside):
        return None
    low, high = 0, len(inside)
    while high - low > 1:
        middle = (low + high) // 2
        if bounds_of([parse(inside[:middle]).root]) is None:
            high = middle
        else:
            low = middle
    return inside[high - 1] if inside else None


def _shown(inside: list[Property], blamed: Property | None) -> str:
    like = [p for p in inside if blamed is None or _named(p) == _named(blamed)]
    text = str(parse(like)) if blamed is not None else str(parse(inside))
    return text if len(text) <= 200 else f"{text[:200]}…"


def _last(stated: Iterable[tuple[Property, Container]], tag: str) -> Property:
    return [p for p, _ in stated if p.tag == tag][-1]


def _absurd(level: Level, p: Property, container: Container) -> None:
    """An amount beyond every machine (SSS110)."""
    name = _LIMITED.get(p.tag)
    if name is None:
        return
    amount = amount_of(p) if p.tag != "TaskCount" else p.value if isinstance(p.value, int) else None
    if amount is not None and amount > (most := getattr(level.limits, name)):
        level.tell("SSS110", p.tag, f"{p.tag} {p.text} is more than the limit {name} ({most})", container, p,
                   level.severity)


# --- what does not fit together -----------------------------------------------------------------------------------

def _exact(found: dict[Key, Bounds], tag: str) -> int | None:
    bounds = found.get((tag, None, None, None, None, None))
    return int(bounds.least) if bounds is not None and bounds.least is not None and bounds.least == bounds.most \
        else None


def _fits(level: Level, stated: list[tuple[Property, Container]], found: dict[Key, Bounds]) -> None:
    """TaskDistribution and names of nodes against the counts beside them (SSS414)."""
    nodes, processors = _exact(found, "NodeCount"), _exact(found, "Processors")
    tasks = next((p.value for p, _ in stated if p.tag == "TaskCount" and isinstance(p.value, int)), level.tasks)
    distributions = [(p, c) for p, c in stated if p.tag == "TaskDistribution"]
    for p, container in distributions[:1]:
        for why in _misfits(p, level.limits, tasks, nodes, processors):
            level.tell("SSS414", p.tag, why, container, p, None)
    names = [(p, c) for p, c in stated if p.tag == "Node" and c.tag == "Requested"]
    if nodes is None or not names or any(p.conj != "And" or p.op != "EQ" or p.preference for p, _ in names):
        return
    how_many = [_names(p, level.limits) for p, _ in names]
    if None in how_many:
        return
    total = sum(n or 0 for n in how_many)
    p, container = names[-1]
    listed = any(p.get("aggregation") for p, _ in names)
    if total < nodes and listed:
        level.tell("SSS414", "Node", f"{nodes} nodes are asked for, and {total} are named", container, p, None)
    elif len(names) > nodes and not listed:
        level.tell("SSS414", "Node", f"{nodes} nodes are asked for, and {len(names)} are demanded by name", container,
                   p, None)


def _misfits(p: Property, limits: Limits, tasks: int | None, nodes: int | None, processors: int | None
             ) -> Iterable[str]:
    """Why a TaskDistribution does not fit the counts beside it."""
    kind, text = distribution_of(p)
    if kind == "Geometry":
        try:
            geometry = Geometry.parse(text, limits)
        except LexicalError:
            return
        for tag, asked, drawn in (("TaskCount", tasks, geometry.task_count), ("NodeCount", nodes, geometry.node_count)):
            if asked is not None and asked != drawn:
                yield f"{tag} is {asked}, the Geometry has {drawn}"
        if processors is not None and processors < geometry.task_count:
            yield f"{processors} processors are too few for the {geometry.task_count} tasks of the Geometry"
    elif text.isascii() and text.isdigit() and len(text) <= limits.digits:
        each = int(text)
        if kind == "TasksPerNode" and tasks is not None and nodes and (
                tasks > each * nodes or each * nodes - tasks >= each > 0):
            yield f"{tasks} tasks cannot be {each} on each of {nodes} nodes"
        elif kind == "ProcessorsPerTask" and processors is not None and each * (tasks or 1) > processors:
            yield f"{processors} processors are too few for {tasks or 1} tasks of {each} each"
        elif not each:
            yield f"{kind} is 0"


def _names(p: Property, limits: Limits) -> int | None:
    """How many nodes are named; None for a pattern and for what is malformed."""
    try:
        names = names_of(p, limits)
    except LexicalError:
        return None
    count = p.get("count") or "1"
    times = int(count) if count.isascii() and count.isdigit() and len(count) < limits.digits else 1
    return times * (names.count if isinstance(names, NodeSet) else len(names)) if isinstance(names, (NodeSet, tuple)) \
        else None
