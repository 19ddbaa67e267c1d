"""What a request comes to: processors, nodes, tasks, copies, memory and other resources of the whole job, and seconds.

Amounts at the job describe the whole job, in a task group that group, in a task that task; a metric (PerNode,
PerProcessor ...) says what an amount is multiplied with. Task groups are parts of one job and add up. Where a level
leaves alternatives the least request is taken, of Duration the most.
Source: SSS job object 3.1.0, sections 3.0, 5.1, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Property
from sssjob.document.held import per_of
from sssjob.document.inherit import TaskGroupView
from sssjob.document.lexical import LexicalError
from sssjob.document.units import UnknownUnit, byte_factor, from_bytes
from sssjob.lrm.usage import known_sum, whole
from sssjob.request.extensions import chunks_of, of_each_gpu
from sssjob.request.geometry import distribution_of, spread
from sssjob.request.layout import Layout
from sssjob.request.tree import ROWS, identity_of, number_of

if TYPE_CHECKING:
    from sssjob.request.levels import Request

__all__ = ["COUNTED", "GPU", "Identity", "Misfit", "Part", "Total", "Totals", "amount_shown", "base_amount", "is_gpu",
           "spelt", "totals_from", "totals_of"]

#: (tag, name, type): what tells one resource from another.
Identity = tuple[str, str | None, str | None]
#: Amounts that add up over task groups and tasks.
COUNTED: Final = ("Memory", "Disk", "Swap", "Network", "Resource")
GPU: Final = ("gpu", "gpus")
#: A property and what is odd about it beside the counts of its task group.
Misfit = tuple[Property, str]
_PROCESSORS: Final[Identity] = ("Processors", None, None)
_NODES: Final[Identity] = ("NodeCount", None, None)


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
    all of the group, by identity; misfits: properties that cannot hold beside the others, or hardly, and why; stated:
    what the group asks for, and its job where it is the only one; tasks: what each of its tasks asks for."""

    group: int
    layout: Layout
    amounts: dict[Identity, Total] = field(default_factory=dict)
    known: bool = True
    misfits: Sequence[Misfit] = ()
    stated: Sequence[Property] = ()
    tasks: Sequence[Sequence[Property]] = ()

    @property
    def processors(self) -> Total | None:
        """Processors of the group. known: False where they are per something that is not said."""
        layout = self.layout
        count, tasks = layout.processor_total, layout.task_total
        if not count:
            return None
        if layout.processors == count:
            origin = f"Processors {count}"
        elif count == layout.node_stated and (tasks or 0) * (layout.cpus or 1) < count:
            origin = f"one on each of {count} nodes"
        elif count == layout.chunks and (tasks or 0) * (layout.cpus or 1) < count:
            origin = f"one in each of {count} chunks"
        elif tasks is None:
            origin = f"Processors {count}"
        else:
            counted = f"{tasks} task{'s' * (tasks != 1)}"
            origin = f"{counted} of {layout.cpus} processor{'s' * (layout.cpus != 1)}" if layout.cpus else counted
        return Total(_PROCESSORS, Fraction(count), None, origin, self.known)

    @property
    def nodes(self) -> Total | None:
        """Nodes of the group."""
        layout = self.layout
        count = layout.node_total
        if not count:
            return None
        if layout.nodes == count and not layout.nodes_most:
            origin = f"NodeCount {count}"
        else:
            tasks = f"{layout.slots} tasks, {layout.per_node} on a node" if layout.per_node else "a single chunk"
            origin = "the nodes of the geometry" if layout.geometry else tasks
        return Total(_NODES, Fraction(count), None, origin)


@dataclass(slots=True)
class Totals:
    """What a request comes to. layout: of the whole job; parts: of each task group; amounts: all but processors and
    nodes; copies: how often the executable starts, how_copies_start: why, in words; seconds: the Duration, None where
    none is stated; possible: whether no conditions contradict each other; own: what the job itself says of amounts,
    which are in ``amounts`` where its task groups come to no more; stated: what the job itself asks for."""

    layout: Layout
    parts: tuple[Part, ...]
    amounts: dict[Identity, Total]
    processors: Total | None
    nodes: Total | None
    tasks: int | None
    copies: int
    how_copies_start: str
    seconds: int | None
    possible: bool = True
    own: Mapping[Identity, Total] = field(default_factory=dict)
    stated: Sequence[Property] = ()

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
    least = request.least
    totals = totals_from(request, {place: [v.property for v in level.values] for place, level in least.items()})
    totals.possible = all(level.possible for level in least.values())
    return totals


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
        tags = {p.tag for p in own}
        stated = [*own, *(p for p in of_job if alone and p.tag not in tags)]
        misfits: list[Misfit] = []
        beside = of_job if alone and tags & {"NodeCount", "Processors"} else ()     # it may be more than its group's
        layout, certain = _layout(group, stated, beside, tasks, misfits, partial(request.node_range, number))
        if not misfits and (why := layout.crowded):
            misfits += [(p, why) for p in stated if p.tag == "Processors"][:1]
        if not misfits and (why := layout.sparse):
            misfits += [(p, why) for p in group.get("TaskCount")][:1]
        amounts = _amounts(own, tasks, layout, partial(_gpus, of_job, (), layout) if alone else None)
        parts.append(Part(number, layout, amounts, certain, misfits, stated, tasks))
    whole = _whole(of_job, parts)
    of_parts = _sums(parts)
    gpus = {identity: total for identity, total in of_parts.items() if is_gpu(identity)}
    own_totals = _amounts(of_job, (), whole, lambda: gpus)
    amounts = dict(own_totals)
    for of_all_groups in of_parts.values():
        _greater(amounts, of_all_groups)
    processors, nodes = _processors(whole, of_job, parts), _nodes(whole, of_job, parts)
    for total in (processors, nodes):
        if total is not None and _stated(of_job, total.identity[0], whole)[0] == total.value:
            own_totals[total.identity] = total
    seconds = [int(n) for props in values.values() for p in props if p.tag == "Duration"
               and (n := number_of(p.value)) is not None]
    tasks_in_all = sum(part.layout.task_total or 0 for part in parts) or None
    return Totals(whole, tuple(parts), amounts, processors, nodes, tasks_in_all, *_copies(groups, parts),
                  max(seconds) if seconds else None, own=own_totals, stated=of_job)


def _copies(groups: Sequence[TaskGroupView], parts: Sequence[Part]) -> tuple[int, str]:
    """How often the executable starts, and why: a script once, which starts what it likes; else once for each task."""
    count = 0
    for group, part in zip(groups, parts, strict=True):
        executable = group.value("Executable")
        if isinstance(executable, str) and executable.startswith("#"):
            return 1, "it is a script, which starts what it likes"
        if _launcher(group) == "single":
            return 1, "the job names the launcher that starts one"
        count += part.layout.copies
    if count > 1:
        each = all(part.layout.tasks or part.layout.geometry or part.layout.launched for part in parts)
        return count, f"one for each task{'' if each else ' and each task group'}, started by the manager's launcher"
    return 1, "it starts once, on all that is asked for"


def _launcher(group: TaskGroupView) -> str:
    """The launcher that the job names: ``single`` starts one copy, whatever there is room for (PSI/J), any other one a
    copy in each slot. Empty where it names none."""
    return next((p.text for p in group.get("Extension") if p.attributes.get("name") == "Launcher"), "")


def _count(properties: Iterable[Property], tag: str) -> int | None:
    for p in properties:
        if p.tag == tag and (number := number_of(p.value)) is not None and number > 0:
            return int(number)
    return None


def _stated(properties: Iterable[Property], tag: str, layout: Layout) -> tuple[int | None, bool]:
    """A count as one level states it, multiplied out, the greatest where it is stated per different things; False where
    nothing says what it is multiplied with."""
    greatest, certain = None, True
    for p in properties:
        if p.tag == tag and (number := number_of(p.value)) is not None and number > 0:
            what = per_of(p.attributes.get("metric"))
            places = layout.places_per(what)
            count = int(number) * (places or 1)
            if greatest is None or count > greatest:
                greatest, certain = count, places is not None and what != "GPUs"
    return greatest, certain


def _layout(group: TaskGroupView, properties: Sequence[Property], beside: Sequence[Property],
            tasks: Sequence[Sequence[Property]], misfits: list[Misfit],
            range_of_nodes: Callable[[], tuple[int, int] | None]) -> tuple[Layout, bool]:
    """The layout of a group: its own counts, in a job with one group those of the job too; False where its processors
    are per something that is not said. beside: what the job says of its one group, of which the greater counts;
    misfits: gets what does not fit."""
    layout = Layout(nodes=_greatest(_count(properties, "NodeCount"), _count(beside, "NodeCount")),
                    launched=_launcher(group) not in ("", "single"))
    count = number_of(group.value("TaskCount") or 0)
    layout.tasks = int(count) if count and count > 0 else group.described or None
    each = [_count(task, "Processors") for task in tasks]
    if each and each[0] and all(count_of_task == each[0] for count_of_task in each):
        layout.cpus = each[0]
    uneven = any(each) and not layout.cpus
    chunks = chunks_of(group)
    if chunks is not None and (why := layout.take_chunks(whole(chunks.text))):
        misfits.append((chunks, why))
    distribution, why_not = group.first("TaskDistribution"), None
    if distribution is not None:
        layout.take_range(range_of_nodes())
    with suppress(LexicalError):            # ``check`` tells of it
        why_not = None if distribution is None else spread(layout, distribution)
    processors, certain = _stated(properties, "Processors", layout)
    layout.processors = _greatest(processors, _stated(beside, "Processors", layout)[0])
    _by_gpus(layout, group, [*properties, *beside], tasks)
    if layout.processors is None and uneven:
        layout.processors = sum(count_of_task or 1 for count_of_task in each)
    if distribution is not None and (why := why_not or layout.doubt(distribution_of(distribution)[0])):
        misfits.append((distribution, why))
    return layout, certain


def _by_gpus(layout: Layout, group: TaskGroupView, properties: Sequence[Property], tasks: Sequence[Sequence[Property]]
             ) -> None:
    """Take the processors and the tasks that are asked for by GPUs: so many beside each, and, where nothing else says
    how many tasks there are, as many as all GPUs are for where each task has its own (``--gpus=4 --gpus-per-task=1``).
    Source: sbatch(1), --cpus-per-gpu, --ntasks-per-gpu, --gpus-per-task."""
    processors, of_each = of_each_gpu(group, "CpusPerGPU"), of_each_gpu(group, "TasksPerGPU")
    counted = layout.task_total is not None
    if processors is not None or (of_each is not None and not counted):
        gpus = sum((total.value for total in _gpus(properties, tasks, layout).values()), Fraction(0))
        layout.processors = _greatest(layout.processors, int((processors or 0) * gpus) or None)
        if not counted:
            layout.tasks = int((of_each or 0) * gpus) or None
    if layout.tasks is None and not counted and len(tasks) == 1:
        of_job, of_task = (sum((gpus.value for gpus in _gpus(level, (), Layout()).values() if gpus.plain), Fraction(0))
                           for level in (properties, tasks[0]))
        if of_task and of_job and of_job % of_task == 0:
            layout.tasks = int(of_job / of_task)


def _whole(of_job: Sequence[Property], parts: Sequence[Part]) -> Layout:
    """The layout of the whole job: that of its one group, else what the job says or the sum of its groups."""
    if len(parts) == 1:
        return parts[0].layout
    layouts = [part.layout for part in parts]
    chunks = [layout.chunks for layout in layouts]
    whole = Layout(
        nodes=_greatest(_count(of_job, "NodeCount"), known_sum(layout.node_apart for layout in layouts)),
        tasks=known_sum(layout.task_total for layout in layouts), chunks=None if None in chunks else known_sum(chunks),
        partly=any(layout.node_apart is None for layout in layouts))
    if whole.nodes == _count(of_job, "NodeCount"):
        whole.partly = False
    counts = [layout.processor_total for layout in layouts]     # each group has one, and each node that it asks for
    in_all = sum(count or layout.node_total or 1 for count, layout in zip(counts, layouts, strict=True))
    whole.processors = _greatest(_stated(of_job, "Processors", whole)[0], in_all if any(counts) else None)
    return whole


def _greatest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _amounts(properties: Iterable[Property], tasks: Sequence[Sequence[Property]], layout: Layout,
             other_gpus: Callable[[], dict[Identity, Total]] | None) -> dict[Identity, Total]:
    """The amounts of one level and of the tasks in it. other_gpus: the GPUs that another level asks for of the same
    nodes; of each type the greater number counts."""
    totals: dict[Identity, Total] = {}
    stated = [p for p in properties if p.tag in COUNTED]
    gpus = None
    if any(p.attributes.get("metric") == "PerGPU" for level in (stated, *tasks) for p in level):
        counts = _gpus(stated, tasks, layout)
        for other in () if other_gpus is None else other_gpus().values():
            _greater(counts, other)
        gpus = sum((total_of_kind.value for total_of_kind in counts.values()), Fraction(0)) or None
    for total in (*(_total(p, layout, gpus) for p in stated), *_of_tasks(tasks, layout, gpus)):
        if total is not None:
            _greater(totals, total)
    return totals


def _gpus(properties: Iterable[Property], tasks: Sequence[Sequence[Property]], layout: Layout
          ) -> dict[Identity, Total]:
    """The GPUs of one level and of the tasks in it, of each type."""
    counts: dict[Identity, Total] = {}
    levels = [[p for p in level if p.tag == "Resource" and is_gpu(identity_of(p))
               and p.attributes.get("metric") != "PerGPU"] for level in (properties, *tasks)]
    for total in (*(_total(p, layout, None) for p in levels[0]), *_of_tasks(levels[1:], layout, None)):
        if total is not None and total.known:
            _greater(counts, total)
    return counts


def _greater(totals: dict[Identity, Total], total: Total) -> None:
    sum_before = totals.get(total.identity)
    if sum_before is None or (sum_before.units == total.units and sum_before.value < total.value):
        totals[total.identity] = total


def _total(p: Property, layout: Layout, gpus: Fraction | None) -> Total | None:
    """An amount of all that a layout has."""
    what = per_of(p.attributes.get("metric"))
    factors: dict[str | None, Fraction | int | None] = {
        None: 1, "nodes": layout.node_factor, "processors": layout.processor_total, "chunks": layout.chunks,
        "GPUs": gpus}
    return _multiplied(p, factors[what], is_known=what != "nodes" or not layout.partly)


def _multiplied(p: Property, factor: Fraction | int | None, *, is_known: bool = True) -> Total | None:
    """An amount by a factor; None where that is not known: then it is the least that it can be. None for no number."""
    amount = base_amount(p)
    if amount is None:
        return None
    metric = p.attributes.get("metric")
    what, text = per_of(metric), shown(p)
    origin = f"{text} {metric}" if factor is None else text if what is None else f"{_of(factor, what)} {text}"
    return Total(identity_of(p), amount[0] if factor is None else amount[0] * factor, amount[1], origin,
                 is_known and factor is not None, metric in (None, "Total"))


def _of_tasks(tasks: Sequence[Sequence[Property]], layout: Layout, gpus: Fraction | None) -> list[Total]:
    """What the tasks of a group ask for in all: explicit ones as each says, else all alike. What a task asks for per
    node or chunk is counted once for each of the group's."""
    sums: dict[Identity, Total] = {}
    totals: list[Total] = []
    for task in tasks:
        of_task: dict[Identity, Total] = {}
        for p in task:
            if p.tag not in COUNTED:
                continue
            factor = _task_factor(p, task, alike=len(tasks) == 1)
            total = _total(p, layout, gpus) if factor is None else _multiplied(p, factor)
            if total is not None and factor is None:
                totals.append(total)
            elif total is not None:
                _greater(of_task, total)
        for total in of_task.values():
            _add(sums, total, f"{len(tasks)} tasks")
    count = layout.tasks_assumed
    for identity, total in sums.items():
        origin = f"{count} tasks of {total.origin}" if len(tasks) == 1 else f"{count} tasks"
        totals.append(Total(identity, total.value * Fraction(count, len(tasks)), total.units,
                            origin if count > 1 else total.origin, total.known))
    return totals


def _task_factor(p: Property, task: Sequence[Property], *, alike: bool) -> Fraction | None:
    """What an amount of a task is multiplied with by what the task says; None: it goes by the layout of its group.
    alike: one description stands for all tasks."""
    what = per_of(p.attributes.get("metric"))
    if what is None:
        return Fraction(1)
    if what == "GPUs":
        counts = (base_amount(q) for q in task if is_gpu(identity_of(q)) and q.attributes.get("metric") != "PerGPU")
        return sum((amount[0] for amount in counts if amount is not None), Fraction(0)) or None
    if what == "processors":
        count = _count(task, "Processors")
        return None if count is None and alike else Fraction(count or 1)
    return None


def _add(sums: dict[Identity, Total], total: Total, origin: str) -> None:
    """Add a total to a sum; one in another unit leaves the sum unknown."""
    sum_before = sums.get(total.identity)
    if sum_before is None:
        sums[total.identity] = total
    else:
        same = sum_before.units == total.units
        value = sum_before.value + (total.value if same else 0)
        sums[total.identity] = Total(total.identity, value, sum_before.units, origin,
                                     sum_before.known and total.known and same)


def _sums(parts: Iterable[Part]) -> dict[Identity, Total]:
    """The amounts of all task groups."""
    sums: dict[Identity, Total] = {}
    for part in parts:
        for identity, total in part.amounts.items():
            sum_before = sums.get(identity)
            _add(sums, total, "" if sum_before is None else f"{sum_before.origin} + {total.origin}")
    return sums


def _processors(whole: Layout, of_job: Sequence[Property], parts: Sequence[Part]) -> Total | None:
    stated, certain = _stated(of_job, "Processors", whole)
    count = max(whole.processor_total or 0, stated or 0)
    if not count:
        return None
    if stated == count:
        plain = all(p.attributes.get("metric") in (None, "Total") for p in of_job if p.tag == "Processors")
        return Total(_PROCESSORS, Fraction(count), None, f"Processors {count}", certain, plain)
    totals = [part.processors for part in parts]
    origins = [f"one on each of {nodes} nodes" if total is None and (nodes := part.layout.node_total) else
               "one task" if total is None else total.origin for part, total in zip(parts, totals, strict=True)]
    return Total(_PROCESSORS, Fraction(count), None, " + ".join(origins),
                 certain and all(total is None or total.known for total in totals))


def _nodes(whole: Layout, of_job: Sequence[Property], parts: Sequence[Part]) -> Total | None:
    stated = _count(of_job, "NodeCount")
    count = max(whole.node_total or 0, stated or 0)
    if not count:
        return None
    if stated == count:
        return Total(_NODES, Fraction(count), None, f"NodeCount {count}", plain=True)
    single = parts[0].nodes if len(parts) == 1 else None
    return Total(_NODES, Fraction(count), None, "the nodes of the task groups" if single is None else single.origin)


def _of(count: Fraction | int, what: str) -> str:
    """``2 nodes of``, ``1 node of``."""
    return f"{count} {what.removesuffix('s') if count == 1 else what} of"


def number_shown(value: Fraction) -> str:
    """A number for people."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"


def spelt(value: Fraction, units: str | None) -> tuple[str, str | None]:
    """An amount and its unit as people write them; bytes in the largest unit in which they are whole."""
    if value.denominator != 1 or units != "B":
        return number_shown(value), units
    amount, unit = from_bytes(value.numerator)
    return f"{amount:f}", unit


def amount_shown(value: Fraction, units: str | None) -> str:
    """The same as one text: ``16 GB``."""
    return " ".join(filter(None, spelt(value, units)))


def shown(p: Property) -> str:
    """An amount for people: ``Memory 2 GB``, ``GPU a100 4``."""
    attributes = p.attributes
    name = " ".join(filter(None, (attributes.get("name"), attributes.get("type")))) if p.tag == "Resource" else p.tag
    return f"{name} {p.text}" + (f" {attributes['units']}" if "units" in attributes else "")
