"""What a request comes to: processors, nodes, tasks, copies, memory and other resources of the whole job, and seconds.

Amounts at the job describe the whole job, in a task group that group, in a task that task; a metric (PerNode,
PerProcessor ...) says what an amount is multiplied with. Task groups are parts of one job and add up. Where a level
leaves alternatives the least request is taken, of Duration the most.
Source: SSS job object 3.1.0, sections 3.0, 5.1, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from sssjob.element import Property
from sssjob.inherit import TaskGroupView
from sssjob.lexical import LexicalError
from sssjob.request.geometry import Geometry
from sssjob.request.layout import Layout
from sssjob.request.least import least_request
from sssjob.request.levels import Level, Request
from sssjob.request.tree import ROWS, identity_of, number_of, per_of
from sssjob.units import UnknownUnit, byte_factor

__all__ = ["COUNTED", "GPU", "Identity", "Part", "Total", "Totals", "base_amount", "is_gpu", "totals_from",
           "totals_of"]

#: (tag, name, type): what tells one resource from another.
Identity = tuple[str, str | None, str | None]
#: Amounts that add up over task groups and tasks.
COUNTED: Final = ("Memory", "Disk", "Swap", "Network", "Resource")
GPU: Final = ("gpu", "gpus")

def is_gpu(identity: Identity) -> bool:
    """Whether an amount counts GPUs."""
    return identity[0] == "Resource" and (identity[1] or "").lower() in GPU


@dataclass(frozen=True, slots=True)
class Total:
    """One amount of the whole job.

    value: bytes where units is ``B``, else in the unit that was said (None: a count); origin: how it comes about, for
    people; known: False where nothing says what it is multiplied with, and the value is the least that it can be;
    plain: it stands in the job just so, so that its own condition says all.
    """

    identity: Identity
    value: Fraction
    units: str | None = None
    origin: str = ""
    known: bool = True
    plain: bool = False


@dataclass(slots=True)
class Part:
    """One task group of a request (of a job without any: the job itself). group: which one, counted from 0; amounts: of
    all of the group, by identity."""

    group: int
    layout: Layout
    amounts: dict[Identity, Total] = field(default_factory=dict)


@dataclass(slots=True)
class Totals:
    """What a request comes to. layout: of the whole job; parts: of each task group; amounts: all but processors and
    nodes; seconds: the Duration, None where none is stated; possible: whether no conditions contradict each other."""

    layout: Layout
    parts: tuple[Part, ...]
    amounts: dict[Identity, Total]
    processors: Total | None
    nodes: Total | None
    tasks: int | None
    copies: int
    seconds: int | None
    possible: bool = True

    def all(self) -> tuple[Total, ...]:
        """Every total: nodes, processors, then the other amounts in the order in which they are said."""
        counts = [t for t in (self.nodes, self.processors) if t is not None]
        return (*counts, *self.amounts.values())


def base_amount(p: Property) -> tuple[Fraction, str | None] | None:
    """The number of an amount and its unit, sizes in bytes (``B``); None for what is no number."""
    number = number_of(p.value)
    if number is None:
        return None
    row = ROWS.get(p.tag)
    units = p.attributes.get("units") or (row.unit if row is not None else None)
    if units is None:
        return Fraction(number), None
    try:
        return Fraction(number) * byte_factor(units), "B"
    except UnknownUnit:
        return Fraction(number), units


Values = Mapping[tuple[int | None, int | None], Sequence[Property]]


def totals_of(request: Request) -> Totals:
    """The totals of a request, by the least request of each level."""
    values: dict[tuple[int | None, int | None], list[Property]] = {}
    possible = True
    for level in request.levels:
        least = least_request(level.expression, limits=request.limits)
        possible = possible and least.possible
        values[_place(level)] = [single.property for single in least.values]
    totals = totals_from(request, values)
    totals.possible = possible
    return totals


def _place(level: Level) -> tuple[int | None, int | None]:
    return level.group, level.task


def totals_from(request: Request, values: Values) -> Totals:
    """The totals where each level asks for just these values, one a property. values: by task group and task."""
    view = request.view
    of_job = values.get((None, None), ())
    groups = [] if view is None else list(view.task_groups())
    alone = len(groups) < 2
    parts = []
    for number, group in enumerate(groups):
        own = values.get((number, None), ())
        tasks = [values.get((number, n), ()) for n in range(len(group))]
        layout = _layout(group, [*own, *(of_job if alone else ())], tasks)
        parts.append(Part(number, layout, _amounts(own, tasks, layout)))
    whole = _whole(of_job, parts)
    amounts = _together(_amounts(of_job, (), whole), parts)
    seconds = [int(n) for props in values.values() for p in props if p.tag == "Duration"
               and (n := number_of(p.value)) is not None]
    tasks_in_all = sum(part.layout.task_total or 0 for part in parts) or None
    return Totals(whole, tuple(parts), amounts, _processors(whole, of_job, parts), _nodes(whole, of_job),
                  tasks_in_all, _copies(groups, parts), max(seconds) if seconds else None)


def _copies(groups: Sequence[TaskGroupView], parts: Sequence[Part]) -> int:
    """How often the executable is started: a script once, which starts what it likes; else once for each task."""
    count = 0
    for group, part in zip(groups, parts, strict=True):
        executable = group.value("Executable")
        if (isinstance(executable, str) and executable.startswith("#")) or _single(group):
            return 1
        count += part.layout.copies
    return count or 1


def _single(group: TaskGroupView) -> bool:
    """Whether the job names the launcher that starts one copy, whatever there is room for (PSI/J)."""
    return any(p.text == "single" and p.attributes.get("name") == "Launcher" for p in group.get("Extension"))


def _count(properties: Iterable[Property], tag: str) -> int | None:
    for p in properties:
        if p.tag == tag and (number := number_of(p.value)) is not None and number > 0:
            return int(number)
    return None


def _most(properties: Iterable[Property], tag: str) -> int | None:
    """The greatest of a count: what the job says holds for its one group too."""
    return _greatest(*(_count([p], tag) for p in properties))


def _layout(group: TaskGroupView, properties: Sequence[Property], tasks: Sequence[Sequence[Property]]) -> Layout:
    """The layout of a group: its own counts, in a job with one group those of the job too."""
    layout = Layout(nodes=_most(properties, "NodeCount"), processors=_most(properties, "Processors"))
    count = number_of(group.value("TaskCount") or 0)
    layout.tasks = int(count) if count and count > 0 else group.described or None
    each = [_count(task, "Processors") for task in tasks]
    if each and each[0] and all(one == each[0] for one in each):
        layout.cpus = each[0]
    elif any(each) and layout.processors is None:
        layout.processors = sum(one or 1 for one in each)
    _distribution(layout, group.first("TaskDistribution"))
    for extension in group.get("Extension"):
        said = extension.attributes
        if said.get("name") == "ChunkCount" and said.get("type") == "Scheduler" and extension.text.isdigit():
            layout.chunks = int(extension.text) or None
    return layout


def _distribution(layout: Layout, p: Property | None) -> None:
    """What a TaskDistribution says in numbers (section 6.4); a rule says none."""
    if p is None:
        return
    text = p.text.strip()
    kind = p.attributes.get("type") or ("TasksPerNode" if text.isdigit() else "Geometry" if text[:1] == "{" else "Rule")
    if kind == "Geometry":
        try:
            geometry = tuple(map(len, Geometry.parse(text).nodes))
        except LexicalError:
            return          # ``check`` tells of it
        if not layout.misfit(geometry=geometry):
            layout.geometry = geometry
    elif text.isdigit() and int(text):
        if kind == "TasksPerNode" and not layout.misfit(per_node=int(text)):
            layout.per_node = int(text)
        elif kind == "ProcessorsPerTask":
            layout.cpus = layout.cpus or int(text)


def _whole(of_job: Sequence[Property], parts: Sequence[Part]) -> Layout:
    """The layout of the whole job: that of its one group, else what the job says or the sum of its groups."""
    if len(parts) == 1:
        return parts[0].layout
    layouts = [part.layout for part in parts]
    return Layout(
        nodes=_greatest(_count(of_job, "NodeCount"), _summed(layout.node_total for layout in layouts)),
        processors=_greatest(_count(of_job, "Processors"), _summed(layout.processor_total for layout in layouts)),
        tasks=_summed(layout.task_total for layout in layouts), chunks=_summed(layout.chunks for layout in layouts))


def _summed(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _greatest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _amounts(properties: Iterable[Property], tasks: Sequence[Sequence[Property]], layout: Layout
             ) -> dict[Identity, Total]:
    """The amounts of one level and of the tasks in it."""
    totals: dict[Identity, Total] = {}
    stated = [p for p in properties if p.tag in COUNTED]
    gpus = sum((amount[0] for p in stated if is_gpu(identity_of(p)) and p.attributes.get("metric") in (None, "Total")
                and (amount := base_amount(p)) is not None), Fraction(0))
    for p in stated:
        total = _total(p, layout, gpus)
        if total is not None:
            _greater(totals, total)
    for total in _of_tasks(tasks, layout):
        _greater(totals, total)
    return totals


def _greater(totals: dict[Identity, Total], total: Total) -> None:
    there = totals.get(total.identity)
    if there is None or (there.units == total.units and there.value < total.value):
        totals[total.identity] = total


def _total(p: Property, layout: Layout, gpus: Fraction) -> Total | None:
    amount = base_amount(p)
    if amount is None:
        return None
    value, units = amount
    metric = p.attributes.get("metric")
    what = per_of(metric)
    if what is None:
        return Total(identity_of(p), value, units, shown(p), plain=metric in (None, "Total"))
    count: Fraction | int | None = {"nodes": layout.node_total, "processors": layout.processor_total,
                                    "chunks": layout.chunks, "GPUs": gpus or None}[what]
    if count is None:
        return Total(identity_of(p), value, units, f"{shown(p)} {metric}", known=False)
    return Total(identity_of(p), value * count, units, f"{count} {what} of {shown(p)}")


def _of_tasks(tasks: Sequence[Sequence[Property]], layout: Layout) -> list[Total]:
    """What the tasks of a group ask for in all: explicit ones as each says, else all alike."""
    sums: dict[Identity, tuple[Fraction, str | None, Property]] = {}
    for task in tasks:
        for p in task:
            amount = base_amount(p) if p.tag in COUNTED else None
            if amount is None:
                continue
            before = sums.get(identity_of(p), (Fraction(0), amount[1], p))
            sums[identity_of(p)] = before[0] + amount[0], amount[1], p
    count = layout.tasks_assumed
    totals = []
    for identity, (value, units, p) in sums.items():
        factor = Fraction(count, len(tasks))
        origin = f"{count} tasks of {shown(p)}" if len(tasks) == 1 else f"{count} tasks"
        totals.append(Total(identity, value * factor, units, origin if count > 1 else shown(p)))
    return totals


def _together(of_job: dict[Identity, Total], parts: Sequence[Part]) -> dict[Identity, Total]:
    """The greater of what the job says and what its task groups come to."""
    sums: dict[Identity, Total] = {}
    for part in parts:
        for identity, total in part.amounts.items():
            there = sums.get(identity)
            if there is None or there.units != total.units:
                sums[identity] = total
            else:
                sums[identity] = Total(identity, there.value + total.value, there.units,
                                       f"{there.origin} + {total.origin}", there.known and total.known)
    totals = dict(of_job)
    for total in sums.values():
        _greater(totals, total)
    return totals


def _processors(whole: Layout, of_job: Sequence[Property], parts: Sequence[Part]) -> Total | None:
    stated = _count(of_job, "Processors")
    count = max(whole.processor_total or 0, stated or 0)
    if not count:
        return None
    if stated == count:
        return Total(("Processors", None, None), Fraction(count), None, f"Processors {count}", plain=True)
    ways = []
    for part in parts:
        layout = part.layout
        total, tasks = layout.processor_total, layout.task_total
        if layout.processors == total or tasks is None:
            ways.append(f"Processors {total}" if total else "")
        else:
            ways.append(f"{tasks} tasks of {layout.cpus} processors" if layout.cpus else f"{tasks} tasks")
    return Total(("Processors", None, None), Fraction(count), None, " + ".join(filter(None, ways)))


def _nodes(whole: Layout, of_job: Sequence[Property]) -> Total | None:
    stated = _count(of_job, "NodeCount")
    count = max(whole.node_total or 0, stated or 0)
    if not count:
        return None
    if stated == count:
        return Total(("NodeCount", None, None), Fraction(count), None, f"NodeCount {count}", plain=True)
    if whole.geometry:
        return Total(("NodeCount", None, None), Fraction(count), None, "the nodes of the geometry")
    if whole.per_node and whole.nodes is None:
        return Total(("NodeCount", None, None), Fraction(count), None,
                     f"{whole.slots} tasks, {whole.per_node} on a node")
    return Total(("NodeCount", None, None), Fraction(count), None, "the nodes of the task groups")


def shown(p: Property) -> str:
    """An amount for people: ``Memory 2 GB``, ``GPU a100 4``."""
    said = p.attributes
    name = " ".join(filter(None, (said.get("name"), said.get("type")))) if p.tag == "Resource" else p.tag
    return f"{name} {p.text}" + (f" {said['units']}" if "units" in said else "")
