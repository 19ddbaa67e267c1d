"""What a scope asks for and nothing can meet, or what does not fit together: the checks of amounts.

All amounts of one level are looked at together: Requested, what stands bare where Requested does not name it, and what
the defaults beside it add. Of a job that is over the same is only reported as a doubt, for these are facts. Source: SSS
job object 3.1.0, sections 3.0, 5.1, 6.4 and 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job, JobDefaults
from sssjob.document.nodeset import NodeSet
from sssjob.findings import Findings, Severity
from sssjob.limits import Limits
from sssjob.request.bounds import Bounds, Exact, Key, amount_of, bounds_of, key_of
from sssjob.request.levels import request_of
from sssjob.request.totals import is_gpu
from sssjob.request.tree import AMOUNTS, AllOf, Expression, Node, Predicate, identity_of, names_of, parse

_LEVEL: Final = ("NodeCount", "Processors")
_BOTH: Final = frozenset(_LEVEL)
_PROCESSORS: Final[Key] = ("Processors", None, None, None, None, None)
#: Amounts of which a job takes at least one.
_AT_LEAST_ONE: Final = ("Processors", "NodeCount", "TaskCount", "Duration")
#: Amounts that a machine has only so much of -> the limit that says how much (of GPUs: how many).
_LIMITED: Final = {**dict.fromkeys(("Processors", "NodeCount", "TaskCount"), "count"),
                   **dict.fromkeys(("Memory", "Disk", "Swap", "Resource"), "amount_bytes"), "Duration": "seconds"}
#: rule, subject, message, container, property, severity
Tell = Callable[[str, str, str, Container, Property | None, Severity | None], None]


@dataclass(slots=True)
class JudgedLevel:
    """One scope with the defaults beside it, the one nearest first. pending: whether its job is not over; sound:
    blocks (by identity) whose expression was read whole without a finding."""

    scope: Container
    defaults: tuple[Container, ...]
    pending: Callable[[], bool]
    tell: Tell
    limits: Limits
    sound: set[int] = field(default_factory=set)

    def blocks(self) -> list[Container]:
        """The Requested of the level, own ones first."""
        return [c for scope in (self.scope, *self.defaults) for c in scope.containers("Requested")]

    def stated(self) -> list[tuple[Property, Container]]:
        """What the level asks for, each with its container: of each name what is nearest, Requested before bare."""
        scopes = (self.scope, *self.defaults)
        inherited: list[tuple[Property, Container]] = []
        for scope in scopes:
            taken = {_named(p) for p, _ in inherited}
            for block in scope.items:
                if block.tag == "Requested" and isinstance(block, Container):
                    inherited += [(p, block) for p in block.items if isinstance(p, Property) and _named(p) not in taken]
        for scope in scopes:
            taken = {_named(p) for p, _ in inherited}
            inherited += [(p, scope) for p in scope.items
                      if p.tag in AMOUNTS and isinstance(p, Property) and _named(p) not in taken]
        return inherited

    @property
    def severity(self) -> Severity | None:
        """Of what cannot be met: no more than a doubt where the job is over."""
        return None if self.pending() else "warning"


def unfit(job: Job, defaults: JobDefaults | None, limits: Limits
          ) -> list[tuple[str, Property | None, int | None, str]]:
    """(rule, property, task group, what is wrong) of what cannot hold, or hardly, beside the other counts of its task
    group, counted from 0, whatever level says them (SSS414: the counts win, at every door, ``Layout.misfit``), and of
    counts that multiply beyond every machine (SSS110)."""
    totals = request_of(job, defaults, bare=True, limits=limits).totals
    contradictions: list[tuple[str, Property | None, int | None, str]] = [
        ("SSS414", p, part.group, f"{p.tag}: {why}") for part in totals.parts for p, why in part.misfits]
    for total in (totals.processors, totals.nodes):
        if total is not None and total.value > limits.count and not total.plain:
            p = next((p for tag in ("TaskDistribution", "TaskCount") for p in _everywhere(job, tag)), None)
            contradictions.append(("SSS110", p, None, f"{total.identity[0]}: {total.origin} come to {total.value}, "
                                   f"more than the limit count ({limits.count})"))
    return contradictions


def _everywhere(scope: Container, tag: str) -> Iterator[Property]:
    """The properties of a name at any level of a job."""
    for item in scope.items:
        if item.tag == tag and isinstance(item, Property):
            yield item
        elif isinstance(item, Container):
            yield from _everywhere(item, tag)


def _named(p: Property) -> tuple[str, str | None, str | None]:
    attributes = p.attributes
    return (p.tag, attributes.get("name"), attributes.get("type")) if attributes else (p.tag, None, None)


def check_level(level: JudgedLevel) -> None:
    """Add what is wrong with the amounts of a level: SSS110, SSS414, SSS423."""
    stated = level.stated()
    where = {id(p): c for p, c in stated}
    for p, container in stated:
        _absurd(level, p, container)
    inside = [p for p, c in stated if c.tag == "Requested"]
    bare = {key_of(p): p for p, c in reversed(stated) if c.tag != "Requested" and p.tag in AMOUNTS}   # the first counts
    # A bare amount that nothing meets, being less than nothing, is told of as a value.
    possible = [node for node in map(Predicate, bare.values()) if bounds_of([node]) is not None]
    nodes: list[Node] = [_tree(level, stated), *possible]
    alone = bounds_of(nodes)
    if alone is None:
        blamed = _blamed(inside)
        level.tell("SSS423", blamed.tag if blamed else "Requested", "Requested: nothing can meet "
                   f"{_shown(inside, blamed)}", where[id(blamed or inside[0])], blamed, level.severity)
        return
    for tag in _AT_LEAST_ONE:
        bounds = alone.get((tag, None, None, None, None, None))
        if (bounds is not None and bounds.most == 0) or (tag == "TaskCount" and any(
                p.tag == tag and p.value == 0 for p, _ in stated)):
            p = _last(stated, tag)
            level.tell("SSS423", tag, f"{tag} {p.text}: a job takes at least one{' second' * (tag == 'Duration')}",
                       where[id(p)], p, level.severity)
    if {p.tag for p, _ in stated} >= _BOTH and bounds_of(nodes, _nodes_have_processors) is None:
        p = _last(stated, "NodeCount")
        level.tell("SSS423", p.tag, f"{p.text} nodes cannot share {_last(stated, 'Processors').text} processors: each "
                   "has at least one", where[id(p)], p, level.severity)
    held, requested = _held(alone), alone.get(_PROCESSORS)
    if held is not None and requested is not None and requested.least is not None and held < requested.least:
        p = _last(stated, "Processors")
        level.tell("SSS423", p.tag, f"the nodes hold {held} processors, and {requested.least} are asked for",
                   where[id(p)], p, level.severity)
    _fits(level, stated, alone)


def _tree(level: JudgedLevel, stated: list[tuple[Property, Container]]) -> Node:
    """The expression of what is requested; blocks of several levels are joined by And, each in brackets of its own."""
    blocks = level.blocks()
    mine = {(id(c), id(p)) for p, c in stated}
    expressions: list[Expression] = []
    for block in blocks:
        asked = [p for p in block.properties() if (id(block), id(p)) in mine]
        if asked:
            findings = Findings(limits=level.limits)
            expressions.append(parse(asked, findings, limits=level.limits))
            if not findings.told and len(asked) == sum(1 for _ in block.properties()):
                level.sound.add(id(block))
    return AllOf(tuple(e.root for e in expressions))


def _nodes_have_processors(all_bounds: dict[Key, Bounds]) -> bool:
    nodes, processors = (all_bounds.get((tag, None, None, None, None, None)) for tag in _LEVEL)
    if nodes is None or processors is None or nodes.least is None or processors.most is None:
        return True
    return processors.most >= nodes.least


def _held(all_bounds: dict[Key, Bounds]) -> Exact | None:
    """How many processors all nodes have at most, where each has so many (metric PerNode); None: not said."""
    each, nodes = (all_bounds.get(key) for key in (("Processors", None, None, "PerNode", None, None),
                                                  ("NodeCount", None, None, None, None, None)))
    if each is None or nodes is None or each.most is None or nodes.most is None:
        return None
    return each.most * nodes.most


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


def _absurd(level: JudgedLevel, p: Property, container: Container) -> None:
    """An amount beyond every machine (SSS110)."""
    name = _LIMITED.get(p.tag)
    if name is None:
        return
    if name == "amount_bytes" and is_gpu(identity_of(p)):
        name = "count"
    amount = amount_of(p) if p.tag != "TaskCount" else p.value if isinstance(p.value, int) else None
    if amount is not None and amount > (most := getattr(level.limits, name)):
        level.tell("SSS110", p.tag, f"{p.tag} {p.text} is more than the limit {name} ({most})", container, p,
                   level.severity)


# --- what does not fit together -----------------------------------------------------------------------------------

def _exact(all_bounds: dict[Key, Bounds], tag: str) -> int | None:
    bounds = all_bounds.get((tag, None, None, None, None, None))
    return int(bounds.least) if bounds is not None and bounds.least is not None and bounds.least == bounds.most \
        else None


def _fits(level: JudgedLevel, stated: list[tuple[Property, Container]], all_bounds: dict[Key, Bounds]) -> None:
    """Names of nodes against the number of nodes beside them (SSS414)."""
    nodes = _exact(all_bounds, "NodeCount")
    names: list[tuple[Property, Container]] = [(p, c) for p, c in stated if p.tag == "Node" and c.tag == "Requested"]
    if not names and level.scope.tag != "Task" and level.pending():     # in a job that is over it is where it ran
        names = [(p, level.scope) for p in level.scope.items if p.tag == "Node" and isinstance(p, Property)]
    if nodes is None or not names or any(
            p.conj != "And" or p.op != "EQ" or "preference" in p.attributes for p, _ in names):
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
