"""PSI/J: what a job asks for in nodes, processes, GPUs and memory, as a ResourceSpecV1.

The numbers that follow from each other are those of ``sssjob.request.layout``; here they are asked for item by item, so
that findings name what was said, and several task groups become one. Source: PSI/J specification, ResourceSpecV1.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, TypeVar

from psij import InvalidJobException, ResourceSpecV1
from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.held import per_of
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Environment, Job, Requested, Task, TaskDefaults, TaskGroup
from sssjob.document.units import to_bytes
from sssjob.findings import Findings, Policy
from sssjob.request.asked import AMOUNTS, GROUP, GROUPS, JOB, TASK, Asked, Entry, Target, policy_of
from sssjob.request.geometry import Geometry, distribution_of
from sssjob.request.layout import Layout
from sssjob.request.levels import Request, request_of
from sssjob.request.totals import COUNTED
from sssjob.request.tree import number_of, properties_of

C = TypeVar("C", bound=Container)
_STREAMS = ("InputFile", "OutputFile", "ErrorFile")


class Resources(Asked):
    """A job that is asked for the amounts of a ResourceSpecV1."""

    @property
    def amounts(self) -> tuple[str, ...]:
        """Levels at which an amount is the whole of what this JobSpec asks for."""
        return (GROUP, GROUPS) if self.target.side_by_side else AMOUNTS

    def resources(self, layout: Layout, counts: dict[str, Any]) -> ResourceSpecV1 | None:
        """What the job asks for; None where it asks for nothing. counts: those of ``counts``."""
        exclusive = any(e.attributes.get("name") == "ExclusiveNodeUse" and isinstance(e.item, Property)
                        and e.text.lower() == "true" for e in self.entries if e.tag == "Extension")
        gpus, gpus_each = self._gpus(layout)
        values = counts | {
            "gpu_cores_per_process": gpus_each, "memory": self._memory(layout, gpus),
            "exclusive_node_use": exclusive}
        values = {k: v for k, v in values.items() if v is not None and v is not False}
        return self._consistent(values) if values else None

    def layout(self) -> Layout:
        """What the job says of nodes, tasks and processors; their entries are kept for findings."""
        layout = Layout(tasks=self.count("TaskCount", (GROUP, GROUPS)) or self.listed or None,
                        cpus=self.count("Processors", TASK))
        span = self.range("NodeCount", self.amounts) if len(self.said("NodeCount")) == 2 else None
        if span is None:
            layout.nodes = self._most("NodeCount", layout)
        else:
            layout.nodes, layout.nodes_most = int(span[0].text), int(span[1].text)
        if self.says_chunks():
            self.chunks(layout)
        per = {per_of(e.attributes.get("metric")) for e in self.said("Processors") if e.level not in TASK}
        of_places = bool(per & {"nodes", "chunks"})     # a distribution may say how many there are
        if not of_places:
            layout.processors = self._most("Processors", layout)
        self._distribution(layout)
        if span is not None:
            self.note("SSS502", span[0], f"NodeCount: {layout.nodes} is taken of {span[0].text} to {span[1].text}")
        if of_places:
            layout.processors = self._most("Processors", layout)
        self._tasks_of_gpus(layout)
        if not self.target.executor:
            self._beside_gpus(layout)
        if "nodes" in per and not layout.spread_evenly():
            self._lost("Processors", f"{layout.processors} processors in all, perhaps not the same number on each node")
        return layout

    def _tasks_of_gpus(self, layout: Layout) -> None:
        """As many processes as the GPUs of the job are for, where each has its own and nothing else counts them. An
        executor counts them itself for a script, which is started once."""
        if layout.task_total is not None or len(self.groups) > 1 or not any(
                e.level in TASK for e in self.said("Resource")):
            return
        totals = request_of(self.job, bare=True).totals
        if totals.copies > 1 or not self.target.executor:
            layout.tasks = totals.layout.tasks

    def _beside_gpus(self, layout: Layout) -> None:
        """The processors that each GPU has beside it as those of the processes, or of the one that there is."""
        entry = next((e for e in self.said("Extension") if e.attributes.get("name") == "CpusPerGPU"), None)
        total = None if entry is None else request_of(self.job, bare=True).totals.processors
        processes = layout.slots or (1 if (layout.nodes or 1) == 1 else 0)
        if entry is None or total is None or not processes or total.value % processes:
            return
        entry.used = True
        entry.understood |= {"name", "type"}
        layout.tasks, layout.cpus = processes, int(total.value) // processes
        self.note("SSS502", entry, f"{total.value} processors in all, {entry.text} beside each GPU", "info",
                  "Extension CpusPerGPU")

    def _most(self, tag: str, layout: Layout) -> int | None:
        """The greater of what a group and the job say of a count; a group beside others has only its own. layout: what
        counts of each node or chunk are multiplied with."""
        counts = []
        for levels in ((GROUP, GROUPS), (JOB,)):
            entries = [e for e in self.said(tag) if e.level in levels]
            if not entries or not set(levels) <= set(self.amounts):
                continue
            count = self.count(tag, levels)
            what = per_of(entries[0].attributes.get("metric"))
            places = None if what is None else layout.places_per(what)
            if count is not None and places is not None:
                count *= places
                for e in entries:
                    e.understood |= {"metric"}
            counts.append(count)
        return max(filter(None, counts), default=None)

    def says_chunks(self) -> bool:
        """Whether the job counts chunks, pieces that the manager places as it likes."""
        return any(e.attributes.get("name") == "ChunkCount" for e in self.said("Extension"))

    def counts(self, layout: Layout) -> dict[str, Any]:
        """Nodes, processes and cores of each process, by their names in a ResourceSpecV1."""
        processes = layout.slots
        if layout.shares_processors:
            self._lost("TaskCount", f"{layout.tasks} tasks share {layout.processors} processors: one process is asked "
                       "for on each")
        if processes is not None and layout.nodes and processes < layout.nodes:
            self._lost("NodeCount", f"{processes} processes are on as many nodes at most")
            layout.nodes = None
        processors = layout.processor_total
        each = layout.cpus
        if processes is not None and processors is not None:
            whole = layout.processors_each or max(1, processors // processes)
            each = whole if whole != 1 or layout.cpus else None
            if whole * processes < processors:
                self._lost("Processors", f"{whole * processes} of {processors} are asked for, as {processes} processes "
                           f"of {whole}: all processes of a JobSpec are of one size")
        per_node = layout.per_node
        if layout.geometry and len(set(layout.geometry)) == 1:
            per_node = layout.geometry[0]
        stated = layout.tasks or layout.processors or layout.geometry or layout.chunks
        nodes = layout.node_stated if layout.chunks is None else layout.nodes
        if nodes is None and not stated:
            nodes = layout.node_total
        return {"node_count": nodes,
                "process_count": processes if stated else None, "processes_per_node": per_node,
                "cpu_cores_per_process": each}

    def _lost(self, tag: str, why: str) -> None:
        """The finding for a number that is not carried as it is, at the property that says it, or at the distribution
        that it follows from."""
        entry = next((e for name in (tag, "TaskDistribution") for e in self.said(name) if e.used), None)
        if entry is not None:
            self.dropped(entry, why)
        else:
            self.note(self.target.rule, None, f"{tag}: {why}", None, tag)

    def _distribution(self, layout: Layout) -> None:
        """TasksPerNode, ProcessorsPerTask and a geometry, in numbers."""
        entry = self.one("TaskDistribution", carried=("type",))
        if entry is None:
            return
        self.spread(entry, layout)
        if len(set(layout.geometry)) > 1:
            self.dropped(entry, f"{layout.task_total} processes are asked for, not which of them share a node")

    def _gpus(self, layout: Layout) -> tuple[int | None, int | None]:
        """GPUs of all processes and of each; a total that does not divide evenly is not rounded up into more."""
        each = self.one("Resource", TASK, carried=("units",), name="GPU")
        entry = each or self.one("Resource", self.amounts, carried=("units", "metric"), name="GPU")
        if entry is None:
            return None, None
        amount = int(Decimal(entry.value).to_integral_value(ROUND_CEILING))
        processes = layout.tasks_assumed
        for e in self.beside(entry):
            if each is not None and e.level not in TASK and "metric" not in e.attributes and (
                    e.value == amount * processes and e.attributes.get("type") == each.attributes.get("type")):
                e.used, e.understood = True, e.understood | e.attributes.keys()
            elif e.level == entry.level or not self.target.side_by_side:
                self._beside(e, "another number of GPUs is written")
        if each is not None:
            return amount * processes, amount
        factor = self._factor(entry, layout)
        if factor is None:
            return None, None
        if amount * factor % processes:
            self.dropped(entry, f"{amount * factor} GPUs cannot be shared out evenly among {processes} processes")
            return amount * factor, None
        if entry.attributes.get("metric"):
            self.note("SSS502", entry, f"GPU: {amount * factor} in all are {amount * factor // processes} for each of "
                      f"{processes} processes", "info")
        return amount * factor, amount * factor // processes

    def _beside(self, entry: Entry, why: str) -> None:
        """The finding for an amount that gives way to one of another level."""
        entry.used = True
        entry.understood |= entry.attributes.keys()
        self.dropped(entry, why, "Resource GPU")

    def _factor(self, entry: Entry, layout: Layout, gpus: int | None = None) -> int | None:
        """What an amount is multiplied with to become that of the whole job; None, with a finding, where nothing says
        it. gpus: how many the whole job has."""
        metric = entry.attributes.get("metric", "Total")
        what = per_of(metric)
        if metric == "Total":
            return 1
        count = {"nodes": layout.node_total, "processors": layout.processor_total, "chunks": layout.chunks,
                 "GPUs": gpus}.get(what or "")
        if count is None and what is not None and self._is_one(what, layout):
            self.note("SSS502", entry, f"{entry.tag}: {metric} is that of one, for the job does not say how many "
                      f"{what}", "info")
            return 1
        if count is None:
            self.dropped(entry, f"metric {metric} is not carried" if what is None else
                         f"{metric}: the job does not say how many {what}")
        return count

    def _is_one(self, what: str, layout: Layout) -> bool:
        """Whether a count of nodes or processors that nobody says is one: a JobSpec without counts is one process on
        one node (PSI/J specification, ResourceSpecV1), and this machine is one node whatever runs there."""
        if what == "nodes" and self.target.executor == "local":
            return True
        stated = (layout.nodes, layout.tasks, layout.processors, layout.cpus, layout.per_node, layout.chunks)
        return what in ("nodes", "processors") and not layout.geometry and not any(stated)

    def _memory(self, layout: Layout, gpus: int | None) -> int | None:
        """Bytes of the whole job. gpus: how many it has."""
        each = self.one("Memory", TASK, carried=("units", "metric"))
        entry = each or self.one("Memory", self.amounts, carried=("units", "metric"))
        if entry is None:
            return None
        factor = layout.tasks_assumed if each else self._factor(entry, layout, gpus)
        if factor is None:
            return None
        try:
            amount = to_bytes(Decimal(entry.value), entry.attributes.get("units")) * factor
        except LexicalError as error:
            self.dropped(entry, str(error))
            return None
        if factor != 1:
            self.note("SSS502", entry, f"Memory: {factor} times the amount is asked for the whole job", "info")
        return int(amount.to_integral_value(ROUND_CEILING))

    def _consistent(self, values: dict[str, Any]) -> ResourceSpecV1:
        """A ResourceSpecV1; what contradicts the number of processes is left out with a finding at its property."""
        properties = {"node_count": "NodeCount", "processes_per_node": "TaskDistribution"}
        for left_out in ((), ("node_count",), ("processes_per_node",), ("node_count", "processes_per_node")):
            try:
                resources = ResourceSpecV1(**{k: v for k, v in values.items() if k not in left_out})
            except InvalidJobException as error:
                problem = error
                continue
            for name in left_out:
                if name in values:
                    self._lost(properties[name], str(problem))
            return resources
        self.note("SSS505", None, str(problem), None, "resources")
        return ResourceSpecV1()


def merged(job: Job, groups: Sequence[TaskGroup], findings: Findings, policy: Policy, target: Target
           ) -> tuple[Job, dict[int, Property] | None]:
    """The job with its task groups as one, and of what its properties were made, by their identity, where the groups
    are equal but for TaskCount; else only the first is kept (decisions 11)."""
    request = request_of(job, bare=True)
    groups = _of_one_limit(groups, request, findings, job)
    groups = _of_one_stream(groups, findings, job, policy, target)
    first, *others = (_without_count(g) for g in groups)
    same = all(other == first for other in others)
    total = sum(part.layout.task_total or 1 for part in request.totals.parts)
    names = f"{len(groups)} task groups"
    origins: dict[int, Property] = {}
    if same:
        copies = request.totals.copies
        alike = copies in (1, total)        # a script starts once
        more = "" if alike else f", of which each is started, not {copies} copies"
        findings.add("SSS502" if alike else target.rule, "TaskGroup", f"{names} are asked for as one of {total} tasks"
                     + more, policy=policy_of(job, policy), path="/Job/TaskGroup[2]", item=groups[1], within=job)
        group = TaskGroup([*(_times(i, len(groups), origins) for i in first), new_property("TaskCount", total)])
        for number, unlike in enumerate(groups, 1):
            for item in unlike.items:
                if item.tag in ("Id", "Name") and item.tag not in target.handled:
                    findings.add(target.rule, item.tag, f"{item.tag}: {target.word}", severity="warning",
                                 path=f"/Job/TaskGroup[{number}]/{item.tag}", item=item, within=job)
    else:
        differing = ", ".join(_differing(groups)) or "how they say it"
        findings.add(target.rule, "TaskGroup", f"a JobSpec holds one kind of task, the job has {names}, which differ "
                     f"in {differing}: what the first says is carried", policy=policy_of(job, policy),
                     path="/Job/TaskGroup[2]", item=groups[1], within=job)
        group = groups[0]
    kept = [i for i in job.items if i.tag != "TaskGroup"]
    whole = Job([*kept, group], job.attributes, None, job.line)
    if same:
        asked, now = (_memory_of(some) for some in (job, whole))
        if asked is not None and now is not None and now > asked:
            item = next((p for block in groups[0].containers("Requested") for p in block.all("Memory")), groups[0])
            findings.add(target.rule, "Memory", f"Memory: as one, the {names} have the processors of the job, and with "
                         f"them {now} bytes, not {asked}", policy=policy_of(job, policy), path="/Job/TaskGroup/Memory",
                         item=item, within=job)
    return whole, origins if same else None


def _differing(groups: Sequence[TaskGroup]) -> list[str]:
    """The names of what task groups do not say alike."""
    stated = [[(p.tag, p.value, p.attributes) for p in group.leaves() 
               if p.tag not in ("TaskCount", "Id", "Name")] for group in groups]
    return sorted({item[0] for of_group in stated for item in of_group if any(item not in other for other in stated)})


def _of_one_stream(groups: Sequence[TaskGroup], findings: Findings, job: Job, policy: Policy, target: Target
                   ) -> Sequence[TaskGroup]:
    """The task groups, each with the files for streams that a script of all of them would name: those of the first
    group, or of the first one that says any. As they are where they differ in more than that."""
    unlike = [tag for tag in _STREAMS if len({_stream(group, job, tag) for group in groups}) > 1]
    rest = [_without_count(_without(group, *unlike)) for group in groups]
    if not unlike or any(other != rest[0] for other in rest):
        return groups
    kept = []
    for tag in unlike:
        files = [group.first(tag) or job.first(tag) for group in groups]
        of_all = next(filter(None, files))
        kept.append(of_all)
        for number, file in enumerate(files, 1):
            if file is None:
                findings.add("SSS502", tag, f"{tag}: task group {number} says none, and gets that of another one",
                             path=f"/Job/TaskGroup/{tag}", item=of_all, within=job)
            elif file.text != of_all.text:
                findings.add(target.rule, tag, f"{tag}: that of the first task group is taken for all, task group "
                             f"{number} has {file.text[:80]}", policy=policy_of(job, policy), item=file, within=job,
                             path=f"/Job/TaskGroup[{number}]/{tag}")
    return [TaskGroup([*_without(g, *unlike).items, *kept], g.attributes or None, None, g.line) for g in groups]


def _stream(group: TaskGroup, job: Job, tag: str) -> str | None:
    """The file that a task group names for a stream, or its job."""
    file = group.first(tag) or job.first(tag)
    return None if file is None else file.text


def _of_one_limit(groups: Sequence[TaskGroup], request: Request, findings: Findings, job: Job) -> list[TaskGroup]:
    """The task groups, each with the limit that holds for the longest, or for its tasks; without any where that is the
    job's."""
    limits = [p for level in request.levels if level.group is not None for p in properties_of(level.expression.root)
              if p.tag == "Duration"]
    if not limits:
        return list(groups)
    longest = next((p for p in limits if p.value == request.totals.seconds), None)
    of_job = any(p.tag == "Duration" for p in properties_of(request.levels[0].expression.root))
    if longest is None and not of_job:
        return list(groups)
    if longest is not None and any(p.value != longest.value for p in limits):
        findings.add("SSS502", "Duration", f"Duration: {longest.text} is the longest of the task groups",
                     severity="info", path="/Job/TaskGroup/Duration", item=longest, within=job)
    limit = [] if longest is None else [Requested([longest])]
    return [TaskGroup([*_without(_without_limits(g), "Duration").items, *limit], g.attributes or None, None, g.line)
            for g in groups]


def _without_limits(group: TaskGroup) -> TaskGroup:
    """A task group without the limits of its listed tasks, unless further ones are only counted."""
    if len(list(group.containers("Task"))) < int(group.value("TaskCount") or 0):
        return group
    items = [_without(item, "Duration") if isinstance(item, Task) else item for item in group.items]
    return TaskGroup(items, group.attributes or None, group.reference, group.line)


def _without(scope: C, *tags: str) -> C:
    """A task group or what stands in it, without some names in its own slots, and without what holds nothing."""
    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Requested | TaskDefaults | Environment):
            item = _without(item, *(tags if not isinstance(item, Environment) else ()))
            if not item.items and not item.attributes:
                continue
        if item.tag not in tags:
            items.append(item)
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line)


def _memory_of(job: Job) -> Fraction | None:
    """Bytes of a whole job; None where it does not say them."""
    total = request_of(job, bare=True).totals.amounts.get(("Memory", None, None))
    return total.value if total is not None and total.known else None


def _without_count(group: TaskGroup) -> list[Any]:
    return [i for i in _without(group).items if i.tag not in ("TaskCount", "Id", "Name")]


def _times(item: Any, count: int, origins: dict[int, Property]) -> Any:
    """What so many equal task groups ask for together: counts and amounts of a group add up, what each task, node or
    processor has stays as it is. origins: gets what each property was made of, by its identity."""
    if isinstance(item, Requested):
        return Requested([_times(i, count, origins) for i in item.items], item.attributes, None, item.line)
    if not isinstance(item, Property):
        return item
    attributes = item.attributes
    if item.tag == "TaskDistribution" and distribution_of(item)[0] == "Geometry":
        origins[id(product := _geometries(item, count))] = item
        return product
    amount = item.tag in ("NodeCount", "Processors", *COUNTED) or attributes.get("name") == "ChunkCount"
    number = number_of(item.value) if amount and per_of(attributes.get("metric")) is None else None
    if number is None:
        return item
    product = item.replace(value=(
        str(int(number) * count) if item.tag == "Extension" else type(item.value)(number * count)))
    origins[id(product)] = item
    return product


def _geometries(item: Property, count: int) -> Property:
    """A geometry several times over, its tasks numbered on; one that is none is told of where it is read."""
    try:
        nodes = Geometry.parse(item.text).nodes
    except LexicalError:
        return item
    step = 1 + max(number for node in nodes for number in node)
    return item.replace(value=str(Geometry(tuple(
        tuple(number + at * step for number in node) for at in range(count) for node in nodes))))
