"""The levels of a request: what the job, its task groups and their tasks ask for, each as one expression.

``request_of`` folds the defaults in, takes bare properties of a job that still waits as requested, and gives a
``Request``, which also knows the totals of it all. What only describes a job (a bare Extension, its name, its streams)
asks for nothing. Source: SSS job object 3.1.0, sections 2.2, 5.1, 6, 8 and 10.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sssjob.document.arrays import label_of
from sssjob.document.element import Container, Property
from sssjob.document.held import per_of
from sssjob.document.inherit import Effective, Resolved, TaskGroupView, TaskView, View, effective
from sssjob.document.model import Document, Job, JobDefaults, Requested, TaskGroup
from sssjob.document.states import waits
from sssjob.document.vocabulary import in_scope
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.request.extensions import chunks_of, of_each_gpu
from sssjob.request.offers import only_one
from sssjob.request.tree import NAMED, ROWS, SETS, AllOf, Expression, Node, identity_of, parse, properties_of, range_of

if TYPE_CHECKING:
    from sssjob.request.least import LeastRequest
    from sssjob.request.totals import Totals

__all__ = ["OVERRIDABLE", "Level", "Request", "given_to", "request_in", "request_of", "requests_in"]

#: What a bare Extension says describes a job (section 5.1 gives it no category); in Requested it asks for something.
_DESCRIBES: Final = frozenset(("Extension",))
#: Bare in a task a Node tells where it ran.
_DESCRIBES_A_TASK: Final = _DESCRIBES | {"Node"}
#: What a level further in overrides (section 7). Amounts describe their own level, and names of nodes and features add
#: up with those of other levels.
OVERRIDABLE: Final = frozenset(tag for tag, row in ROWS.items()
                               if not row.amount and tag not in SETS and tag not in NAMED)


@dataclass(frozen=True, slots=True)
class Level:
    """What one level asks for: ``Job``, ``TaskGroup 1``, ``TaskGroup 1 Task 1``. group: which task group, counted from
    0 (None: the job); task: which task of it, None where the level is not that of a task; view: what holds there, with
    where it was said, None for a block that stands by itself; overridden: what is said there and asks for nothing, for
    every level below it says its own."""

    name: str
    expression: Expression
    group: int | None = None
    task: int | None = None
    view: View[Any] | None = field(default=None, repr=False, compare=False)
    overridden: tuple[Property, ...] = ()

    def without(self, tags: Collection[str]) -> Level:
        """The level without what it demands under some names; alternatives go as one, or stay where one of them is
        about something that no other level overrides."""
        if not tags:
            return self
        root = self.expression.root
        kept: list[Node] = []
        overridden: list[Property] = []
        for item in root.items if isinstance(root, AllOf) else (root,):
            properties = list(properties_of(item))
            names = {p.tag for p in properties}
            if names.isdisjoint(tags) or not names <= OVERRIDABLE:
                kept.append(item)
            else:
                overridden += properties
        if not overridden:
            return self
        gone = set(map(id, overridden))
        expression = Expression(kept[0] if len(kept) == 1 else AllOf(tuple(kept)),
                                tuple(p for p in self.expression.properties if id(p) not in gone))
        return replace(self, expression=expression, overridden=tuple(overridden))


@dataclass
class Request:
    """What a job asks for, level by level; all levels must hold.

    view: the job with its defaults, None where a single Requested block was given; name: of the job among others, empty
    where there is only one.
    """

    levels: tuple[Level, ...]
    findings: Findings
    view: Effective | None = None
    name: str = ""
    limits: Limits = field(default=LIMITS, repr=False)

    def __str__(self) -> str:
        return "\n".join(f"{level.name}: {level.expression}" for level in self.levels)

    @cached_property
    def simple(self) -> bool:
        """Whether each condition alone says all: nothing is asked for twice, per something, or below the job, and nodes
        have nothing to hold but a processor."""
        if len(self.levels) > 1:
            return False
        names: dict[Any, Property] = {}
        for p in properties_of(self.levels[0].expression.root):
            if p.attributes and per_of(p.attributes.get("metric")):
                return False
            if p.tag in ROWS and ROWS[p.tag].amount:
                name = identity_of(p)
                if name in names:
                    return False
                names[name] = p
        processors, nodes = (names.get((tag, None, None)) for tag in ("Processors", "NodeCount"))
        if nodes is not None and len(names) > 1 and not (
                len(names) == 2 and processors is not None and _one_on_each(processors, nodes)):
            return False
        view = self.view
        if view is None or not view.divided:
            return view is None or (view.first("TaskDistribution") is None and chunks_of(view) is None
                                    and not _goes_by_gpus(view))
        return not any([group.described or group.value("TaskCount") or group.first("TaskDistribution")
                        or chunks_of(group) or _goes_by_gpus(group) for group in view.task_groups()])

    def node_range(self, group: int) -> tuple[int, int] | None:
        """The least and the most nodes of a task group, of which its job may say them where it has no other."""
        for level in reversed(self.levels):
            if level.group in (None, group) and level.task is None and (span := range_of(
                    p for p in properties_of(level.expression.root) if p.tag == "NodeCount")):
                return span
        return None

    @cached_property
    def least(self) -> dict[tuple[int | None, int | None], LeastRequest]:
        """The least request of each level, by task group and task."""
        from sssjob.request.least import least_request

        return {(level.group, level.task): least_request(level.expression, limits=self.limits)
                for level in self.levels}

    @cached_property
    def totals(self) -> Totals:
        """Processors, nodes, tasks, copies, memory, other resources and seconds of all of it, each with its origin."""
        from sssjob.request.totals import totals_of

        return totals_of(self)


def request_of(job: Job, defaults: JobDefaults | None = None, *, bare: bool | None = None, strict: bool = False,
               limits: Limits = LIMITS, path: str = "/Job") -> Request:
    """What a job asks for: its Requested, and each task group's own, with defaults taken in.

    bare: whether bare properties count as requested where Requested does not name them; None: in a job that still
    waits (section 10). strict: brackets have to balance. path: of the job, for findings.
    """
    return request_in(effective(job, defaults), bare=bare, strict=strict, limits=limits, path=path)


def request_in(view: Effective, *, bare: bool | None = None, strict: bool = False, limits: Limits = LIMITS,
               path: str = "/Job") -> Request:
    """The same of a job whose defaults were looked at already."""
    findings = Findings(limits=limits)
    pending = waits(view.job.value("State")) if bare is None else bare
    stated = view.properties("Requested")
    own = parse(stated, findings, strict=strict, limits=limits, path=f"{path}/Requested",
                implied=_bare(view.properties(), stated, _DESCRIBES) if pending else ())
    inner: list[Level] = []
    of_groups = []
    for i, group in enumerate(view.task_groups() if view.divided else ()):
        name, where = f"TaskGroup {i + 1}", f"{path}/TaskGroup[{i + 1}]"
        of_group = _lower(name, group, i, None, pending, findings, strict, limits, where)
        of_tasks = [_lower(f"{name} Task {j + 1}", task, i, j, pending, findings, strict, limits,
                           f"{where}/Task[{j + 1}]") for j, task in enumerate(group.tasks())]
        overriding = _in_each(map(_names_said, of_tasks)) if _all_described(group) else set()
        of_groups.append(_names_said(of_group) | overriding)
        inner += [*(level.without(overriding) for level in of_group), *chain.from_iterable(of_tasks)]
    job = Level("Job", own, view=view).without(_in_each(of_groups))
    return Request((job, *inner), findings, view, limits=limits)


def _names_said(levels: Iterable[Level]) -> set[str]:
    """The names under which levels ask for something that overrides the same of a level further out."""
    return {p.tag for level in levels for p in properties_of(level.expression.root)} & OVERRIDABLE


def _all_described(group: TaskGroupView) -> bool:
    """Whether no task of a group is only counted, beside others that are listed."""
    return not group.described or group.described >= int(group.value("TaskCount") or 0)


def _in_each(names: Iterable[set[str]]) -> set[str]:
    """The names that stand in every one of several sets."""
    sets = list(names)
    return set.intersection(*sets) if sets else set()


def _lower(name: str, view: TaskGroupView | TaskView, group: int, task: int | None, pending: bool, findings: Findings,
           strict: bool, limits: Limits, path: str) -> list[Level]:
    """The level of a task group or task that asks for something beyond what its job does, else nothing."""
    own = view.own("Requested")
    bare = _bare(view.own(), own, _DESCRIBES if task is None else _DESCRIBES_A_TASK) if pending else []
    if not own and not bare:
        return []
    expression = parse(own, findings, strict=strict, limits=limits, implied=bare, path=f"{path}/Requested")
    return [Level(name, expression, group, task, view)]


def _bare(properties: Iterable[Property], requested: Iterable[Property], without: frozenset[str]) -> list[Property]:
    allowed = in_scope("Requested")
    implied = [p for p in properties if p.tag in allowed and p.tag not in without]
    if not implied:
        return []
    stated = {identity_of(p) for p in requested}
    return [p for p in implied if identity_of(p) not in stated]


def _goes_by_gpus(view: View[Any]) -> bool:
    """Whether processors or tasks are asked for beside each GPU."""
    return of_each_gpu(view, "CpusPerGPU") is not None or of_each_gpu(view, "TasksPerGPU") is not None


def given_to(view: View[Any]) -> Iterator[tuple[Resolved, bool]]:
    """What a job that was started says that it was given at one level, and whether it stands in Delivered.

    Only what is said there, of a task its Node too; what describes the job is not given.
    """
    allowed = in_scope("Requested")
    for resolved in view.resolved():
        if resolved.origin.own and resolved.property.tag in allowed and resolved.property.tag not in _DESCRIBES:
            yield resolved, False
    for resolved in view.resolved("Delivered"):
        if resolved.origin.own:
            yield resolved, True


def requests_in(requested: Document | Container | Expression | Request | Sequence[Request], *,
                strict: bool = False, limits: Limits = LIMITS) -> Iterator[Request]:
    """The request of each job of a document; of a job, a task group, a Requested block or an expression the one.

    Raises UsageError for a document that holds no job and not just one other object.
    """
    if isinstance(requested, Document):
        jobs = list(requested.jobs())
        for number, (job, defaults) in enumerate(jobs):
            request = request_of(job, defaults, strict=strict, limits=limits)
            if len(jobs) > 1:
                request.name = f"Job {label_of(job, number)}"
            yield request
        if jobs:
            return
        requested = only_one([b for b in requested.bodies() if b.reference is None], "objects")
    if isinstance(requested, Sequence):
        yield from requested
    elif isinstance(requested, Request):
        yield requested
    elif isinstance(requested, Expression):
        yield Request((Level("Requested", requested),), Findings(limits=limits), limits=limits)
    elif isinstance(requested, Job):
        yield request_of(requested, strict=strict, limits=limits)
    elif isinstance(requested, TaskGroup):
        yield request_of(Job([requested]), strict=strict, limits=limits)
    else:
        findings = Findings(limits=limits)
        if requested.tag == "Task":
            requested = Requested([p for c in requested.containers("Requested") for p in c.properties()])
        expression = parse(requested, findings, strict=strict, limits=limits, path=f"/{requested.tag}")
        yield Request((Level(requested.tag, expression),), findings, limits=limits)


def _one_on_each(processors: Property, nodes: Property) -> bool:
    """Whether each node has one processor: what a place has that offers any."""
    return isinstance(processors.value, int) and processors.value == nodes.value
