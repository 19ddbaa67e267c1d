"""How a part of a job is laid out, taken from a job for a writer: nodes, tasks, processors, memory, GPUs, and per what.

The numbers that follow from each other are ``sssjob.request.layout``'s; here they are asked for item by item, so that
findings name what was said. Readers never convert; writers do, where the target lacks that "per", and never into a
larger total: what a target cannot say in full is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Final

from sssjob.document.held import per_of
from sssjob.document.model import Property
from sssjob.lrm.usage import whole
from sssjob.lrm.variables import FACTS
from sssjob.request.asked import AMOUNTS, GROUP, GROUPS, JOB, TASK, Entry
from sssjob.request.geometry import distribution_of
from sssjob.request.layout import Layout
from sssjob.request.tree import identity_of
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.choices import fits
from sssjob.translators.scripts.rows import APPROXIMATED, DROPPED, SCRIPT, SITE

__all__ = [
    "Amount", "Part", "in_all", "join", "joined", "nodes_of", "of_total", "on_nodes", "one_part", "one_task",
    "part_of", "perhaps_shared", "shared", "spread", "started", "task_processors", "total_of", "totals_in",
    "unknown_factor",
]

if TYPE_CHECKING:
    from sssjob.request.totals import Totals


@dataclass(slots=True)
class Amount:
    """bytes or a count; per: job, PerNode, PerChunk, PerProcessor, PerGPU or task; entry: where it comes from."""

    value: int
    per: str
    entry: Entry
    kind: str = ""


@dataclass(slots=True)
class Part(Layout):
    """What one part asks for, with the entries that findings name. beside: memory said at other levels too; sources:
    the entry of a number, by its name here."""

    memory: Amount | None = None
    gpus: Amount | None = None
    beside: list[Entry] = field(default_factory=list)
    sources: dict[str, Entry] = field(default_factory=dict)


def part_of(asking: Asking, *, ranges: bool = False, ranks: bool = False) -> Part:
    """The layout of the job, or of the group asked for: of one of several groups only what the group says, for amounts
    of the job are those of all of them (``of_whole_job``). ranges: the target has ranges of processors; ranks: it
    places any number of tasks on the processors of a chunk."""
    part = Part()
    part.nodes, part.nodes_most = _span(asking, part, "NodeCount", "nodes")
    part.tasks = _number(asking, part, asking.one("TaskCount", (GROUP, GROUPS)), "tasks") or asking.listed or None
    part.cpus = _number(asking, part, asking.one("Processors", TASK), "cpus")
    if ranges:
        processors = _span(asking, part, "Processors", "processors")
    else:
        processors = _number(asking, part, asking.one("Processors", _levels(asking)), "processors"), None
    of_each = part.sources.get("processors")
    if of_each is None or per_of(of_each.attributes.get("metric")) not in ("nodes", "chunks"):
        part.processors, part.processors_most = processors
        of_each = None
    if asking.source == "pbspro" != asking.dialect.name and part.processors and not asking.groups and not part.nodes:
        part.chunks = 1         # amounts of the job are those of one chunk, which is on one host (pbs_resources(7B))
        part.tasks = part.processors if _starts_tasks(asking) else None
    if asking.group is None:
        for tag, name in (("NodeCount", "nodes"), ("Processors", "processors")):
            _at_least(asking, part, tag, name)
    if asking.says("ChunkCount") and (chunks := asking.chunks(part)) is not None:
        part.sources["chunks"] = chunks
    if asking.dialect.threads and one_task(asking):
        part.tasks = 1
    _distribution(asking, part)
    if of_each is not None:
        _in_all(asking, part, of_each, processors)
    if asking.says("CpusPerGPU"):
        _beside_gpus(asking, part)
    if part.shares_processors and not ranks:
        asking.note(APPROXIMATED, part.sources.get("tasks"), f"{part.tasks} tasks share {part.processors} processors; "
                    f"{asking.dialect.title} is asked for {part.slots} tasks, for it gives each one of its own")
        if part.geometry:
            part.nodes, part.geometry = part.nodes or len(part.geometry), ()
        part.tasks = part.slots
    part.memory = amount_of(asking, part, "Memory")
    if part.memory is not None:
        level = part.memory.entry.level
        part.beside = [e for e in asking.said("Memory") if e.level != level and not _of_all(asking, e)]
    part.gpus = amount_of(asking, part, "Resource", name="GPU")
    _tasks_of_gpus(asking, part)
    if part.gpus is not None:
        in_all = total_of(part.gpus, part)
        for e in asking.beside(part.gpus.entry):
            if e.level in (JOB, GROUP, GROUPS) and of_total(e) and part.gpus.per == "task" and e.value == in_all and (
                    e.attributes.get("type", "") == part.gpus.kind):
                e.used, e.understood = True, e.understood | {"name", "metric", "type"}
            elif not _of_all(asking, e):
                asking.dropped(e, "another number of GPUs is written", "Resource GPU")
    return part


def _tasks_of_gpus(asking: Asking, part: Part) -> None:
    """As many tasks as the GPUs of the job are for: each has its own, or each GPU has so many."""
    if part.tasks is not None or part.task_total is not None or asking.group is not None or len(asking.groups) > 1:
        return
    of_each = asking.extension("TasksPerGPU") if "--ntasks-per-gpu" not in asking.dialect.places else None
    if of_each is not None or (part.gpus is not None and part.gpus.per == "task"):
        part.tasks = next((of_group.layout.tasks for of_group in totals_in(asking).parts), None)


#: What starts several tasks in the commands of a job: the launchers of all managers, and those of MPI by any name.
_LAUNCHERS: Final = (r"mpi(?:run|exec)[\w.]*", "orterun", "prterun", "prun", "charmrun", *sorted({
    r"\s+".join(map(re.escape, command.split()))
    for facts in FACTS.values() for command, act in facts.commands.items() if act == "launch"}))
_STARTS_TASKS: Final = re.compile(rf"\b(?:{'|'.join(_LAUNCHERS)})\b")


def one_task(asking: Asking) -> bool:
    """Whether the slots of a job of Grid Engine are the processors of one task: a parallel environment has them on one
    host, and nothing in the commands of the job starts tasks on them. What is asked for stays the same."""
    if ("pe", "sge") not in asking.keys or asking.groups or asking.listed:
        return False
    nodes, processors = asking.said("NodeCount"), asking.said("Processors")
    if len(nodes) != 1 or len(processors) != 1 or nodes[0].text != "1" or processors[0].text in ("", "1") \
            or processors[0].attributes.get("op", "EQ") != "EQ":
        return False
    return SCRIPT in asking.document.files and not _starts_tasks(asking)


def _starts_tasks(asking: Asking) -> bool:
    """Whether the commands of the job name a launcher."""
    script = asking.document.files.get(SCRIPT)
    return script is not None and _STARTS_TASKS.search(script.as_text()) is not None


def _in_all(asking: Asking, part: Part, entry: Entry, counts: tuple[int | None, int | None]) -> None:
    """Processors of each node or chunk, least and most, as those of all of them; where nothing says how many there are,
    as those of one, and a finding tells it."""
    what = per_of(entry.attributes.get("metric"))
    places = part.places_per(what)
    if places is not None:
        for e in asking.said("Processors"):
            if e.level == entry.level:
                e.understood |= {"metric"}
    part.processors, part.processors_most = (count and count * (places or 1) for count in counts)
    if what == "nodes" and not part.spread_evenly():
        asking.note(APPROXIMATED, entry, f"{part.processors} processors in all, perhaps not the same number on each of "
                    f"{part.nodes} nodes")


def _at_least(asking: Asking, part: Part, tag: str, name: str) -> None:
    """Take a count of the job where it is greater than that of its one task group."""
    entries = asking.said(tag)
    if (len(entries) < 2 or all(e.level == entries[0].level for e in entries)
            or not any(e.level == JOB for e in entries)):
        return
    entry = asking.one(tag, (JOB,))
    if entry is not None and entry.text.isdigit() and int(entry.text) > (getattr(part, name) or 0):
        setattr(part, name, int(entry.text))
        part.sources[name] = entry


def _levels(asking: Asking) -> tuple[str, ...]:
    """Where counts of a part are said."""
    return AMOUNTS if asking.group is None else (GROUP, GROUPS)


def _of_all(asking: Asking, entry: Entry) -> bool:
    """Whether an amount is that of the whole job, of which the group asked for is a part."""
    return asking.group is not None and entry.level == JOB and of_total(entry)


def of_total(entry: Entry) -> bool:
    """Whether an amount is one of all that it is said of."""
    return entry.attributes.get("metric", "Total") == "Total"


def _beside_gpus(asking: Asking, part: Part) -> None:
    """The processors that each GPU has beside it as those of all of them, where the target counts no others."""
    if "--cpus-per-gpu" in asking.dialect.places or asking.group is not None or len(asking.groups) > 1:
        return
    total, of_each = totals_in(asking).processors, asking.extension("CpusPerGPU")
    if total is None or of_each is None:
        return
    part.processors, part.sources["processors"] = int(total.value), of_each
    asking.note(APPROXIMATED, of_each, f"{total.value} processors in all, {of_each.text} beside each GPU", "info")


def _span(asking: Asking, part: Part, tag: str, name: str) -> tuple[int | None, int | None]:
    """Least and most; ``op`` GE with LE is a range."""
    span = asking.range(tag, _levels(asking))
    if span is not None:
        part.sources[name] = span[0]
        return int(span[0].text), int(span[1].text)
    return _number(asking, part, asking.one(tag, _levels(asking)), name), None


def _number(asking: Asking, part: Part, entry: Entry | None, name: str) -> int | None:
    if entry is None:
        return None
    if number := whole(entry.text):
        part.sources[name] = entry
        return number
    asking.dropped(entry, f"{entry.text[:80]} is no number of things that can be asked for")
    return None


def _distribution(asking: Asking, part: Part) -> None:
    """What TaskDistribution says in numbers; a rule is looked for by the dialects that have one."""
    entry = asking.one("TaskDistribution", carried=("type",))
    if entry is None:
        return
    assert isinstance(entry.item, Property)
    part.sources["distribution"] = entry
    kind, text = distribution_of(entry.item)
    if kind != "Rule" or text.lower() not in asking.dialect.rules:      # else an option of its own says it
        asking.spread(entry, part)


#: A slot is a processor.
_PER: Final = {"Total": "job", "": "job", "PerSlot": "PerProcessor"}


def amount_of(asking: Asking, part: Part, tag: str, **attributes: str) -> Amount | None:
    """An amount of a part, at the nearest place that says it; None where none does, or no amount is said there."""
    if not asking.said(tag):
        return None
    entry = asking.one(tag, TASK, carried=("units", "metric", "type"), **attributes)
    per = "task"
    if entry is None:
        of_all = any(_of_all(asking, e) and attributes.items() <= e.attributes.items() for e in asking.said(tag))
        levels = (GROUP, GROUPS) if of_all else AMOUNTS
        entry = asking.one(tag, levels, carried=("units", "metric", "type"), **attributes)
        if entry is None:
            return None
        metric = entry.attributes.get("metric", "")
        per = _PER.get(metric, metric)
    value = asking.in_bytes(entry) if tag in ("Memory", "Swap", "Disk") else Decimal(entry.value)
    if value is None:
        return None
    kind = entry.attributes.get("type", "")
    if kind and not fits(asking, entry, kind):
        return None
    return Amount(int(value.to_integral_value(ROUND_CEILING)), per, entry, kind)


def join(asking: Asking, part: Asking) -> None:
    """What a part has carried is carried for the job; what stands in defaults is an item of each group that has it."""
    if part is asking:
        return
    for carried in part.entries:
        for e in asking.standing(carried.place) if carried.used else ():
            e.used = True
            e.understood |= carried.understood


def one_part(asking: Asking, *, ranges: bool = False) -> Part:
    """The layout for a target that knows one kind of part: equal task groups are added up, of others the first one
    counts."""
    groups = asking.groups
    if len(groups) < 2:
        return part_of(asking, ranges=ranges)
    many = [asking.of(group) for group in groups]
    parts = [part_of(part_asking) for part_asking in many]
    for part_asking in many:
        join(asking, part_asking)
    first, alike = parts[0], joined(parts)
    if alike and all(_alike(part) == _alike(first) for part in parts):
        first = _together(parts)
        asking.note(APPROXIMATED, None, f"TaskGroup: {len(groups)} groups are asked for as one of {first.tasks} tasks",
                    subject="TaskGroup")
    elif alike:
        shown = " and ".join(str(part.per_node) for part in parts)
        first = _together(parts)
        first.per_node = None
        asking.note(APPROXIMATED, None, f"TaskGroup: {len(groups)} groups are asked for as one of {first.tasks} tasks; "
                    f"how many are on a node, {shown}, is not", subject="TaskGroup")
    else:
        asking.note(DROPPED, None, f"TaskGroup: {asking.dialect.title} holds one kind of task, the job has "
                    f"{len(groups)}; only the first is carried", subject="TaskGroup")
    asking.alike = groups if alike else ()
    for tag in ("Feature", "Node"):
        of_groups = {any(e.level == GROUP for e in part_asking.said(tag)) for part_asking in many}
        for e in asking.said(tag) if len(of_groups) > 1 else ():
            if e.level == GROUPS:
                asking.dropped(e, "it holds for some task groups alone, for others say their own")
    before = first.processor_total
    for tag, name in (("NodeCount", "nodes"), ("Processors", "processors")):
        if any(e.level == JOB for e in asking.said(tag)):
            stated = _number(asking, first, asking.one(tag, (JOB,)), name)
            setattr(first, name, max(filter(None, (stated, getattr(first, name))), default=None))
    memory = first.memory
    if memory is not None and memory.per == "PerProcessor" and memory.entry.level != JOB and before not in (
            None, first.processor_total):       # more processors of the job are no more memory of the groups
        first.memory = replace(memory, value=memory.value * before, per="job")
    first.memory = first.memory or _amount_of_job(asking, first, "Memory")
    first.gpus = first.gpus or _amount_of_job(asking, first, "Resource", name="GPU")
    of_job = [amount for amount in (first.memory, first.gpus) if amount is not None and amount.entry.level == JOB]
    for e in (*asking.said("Memory"), *asking.said("Resource")):
        if e.level == JOB and (e.tag == "Memory" or e.attributes.get("name") == "GPU") and not any(
                amount.entry.place == e.place for amount in of_job):
            asking.dropped(e, "another amount is written", "Memory" if e.tag == "Memory" else "Resource GPU")
    return first


def _amount_of_job(asking: Asking, part: Part, tag: str, **attributes: str) -> Amount | None:
    """An amount that the job says beside its task groups."""
    if not any(e.level == JOB and attributes.items() <= e.attributes.items() for e in asking.said(tag)):
        return None
    return amount_of(asking, part, tag, **attributes)


def _together(parts: Sequence[Part]) -> Part:
    """Parts that are alike as one."""
    first = parts[0]
    tasks = sum(part.task_total or 1 for part in parts)
    if any(part.processors for part in parts):
        first.processors = sum(part.processor_total or 1 for part in parts)
    for name in ("nodes", "chunks"):
        setattr(first, name, sum(getattr(part, name) or 0 for part in parts) or None)
    for name in ("memory", "gpus"):
        amounts = [amount for part in parts if (amount := getattr(part, name)) is not None]
        if amounts and amounts[0].per == "job" and amounts[0].entry.level == GROUP:
            setattr(first, name, replace(amounts[0], value=sum(amount.value for amount in amounts)))
    first.geometry = tuple(count for part in parts for count in part.geometry) if all(
        part.geometry for part in parts) else ()
    first.tasks = tasks
    return first


def joined(parts: Sequence[Part]) -> bool:
    """Whether the task groups are one kind of task for a target that knows no other."""
    first = parts[0]
    return all(_alike(part) == _alike(first) for part in parts) or all(
        part.task_total and _of_a_task(part) == _of_a_task(first) for part in parts)


def _alike(part: Part) -> tuple[object, ...]:
    """What parts have in common that can be added up."""
    per = [(a.value, a.per, a.kind) if a is not None else None for a in (part.memory, part.gpus)]
    return part.per_node, part.cpus, *per


def _of_a_task(part: Part) -> tuple[object, ...]:
    """What each task of a part has; the part itself, which is like no other, where some of it is that of a node."""
    if part.processors or any(a is not None and a.per not in ("task", "PerProcessor", "PerGPU")
                              for a in (part.memory, part.gpus)):
        return (part,)
    return _alike(part)[1:]


def task_processors(asking: Asking, part: Part) -> tuple[int | None, int | None]:
    """(tasks, processors of each) for a target that asks for tasks of one size: processors alone are as many tasks.

    What does not divide is not rounded up: the target asks for fewer, and a finding says so.
    """
    tasks, nodes = part.slots, part.sources.get("nodes")
    if nodes is not None and part.nodes and tasks is not None and tasks < part.nodes:
        asking.dropped(nodes, f"{tasks} task{'s are' if tasks != 1 else ' is'} on as many nodes at most")
        part.nodes = part.nodes_most = None
    processors = part.processor_total
    if tasks is None or processors is None:
        return tasks, part.cpus
    each = part.processors_each or max(1, processors // tasks)
    if each * tasks < processors:
        lost = part.sources.get("processors")
        message = f"{each * tasks} of {processors} are asked for, as {tasks} tasks of {each}: all tasks are of one size"
        if lost is not None:
            asking.dropped(lost, message)
        else:
            asking.note(DROPPED, None, f"Processors: {message}", subject="Processors")
    return tasks, each if each != 1 or part.cpus == 1 else None


#: What an amount of each of some things is multiplied with: members of a Layout.
_FACTORS: Final = {"PerNode": "node_factor", "PerChunk": "chunks", "PerProcessor": "processor_total",
                   "task": "tasks_assumed"}


def total_of(amount: Amount, part: Part) -> int | None:
    """An amount of the whole part; None where nothing says what it is multiplied with."""
    if amount.per == "job":
        return amount.value
    if amount.per == "PerGPU":
        count = None if part.gpus is None or amount is part.gpus else total_of(part.gpus, part)
    else:
        count = getattr(part, _FACTORS[amount.per]) if amount.per in _FACTORS else None
    return None if count is None else amount.value * count


def totals_in(asking: Asking) -> Totals:
    """What the whole job comes to."""
    from sssjob.request.levels import request_of

    return request_of(asking.job, bare=True).totals


def in_all(asking: Asking, entry: Entry) -> int:
    """How many of a resource the whole job asks for, where the target counts it for each job."""
    entry.understood |= {"name", "type", "metric"}
    count = int(Decimal(entry.value).to_integral_value(ROUND_CEILING))
    if entry.level == JOB and of_total(entry):
        return count
    assert isinstance(entry.item, Property)
    total = totals_in(asking).amounts.get(identity_of(entry.item))
    if total is None or not total.known:
        unknown_factor(asking, entry, f"{entry.attributes.get('name')} is written as it stands")
        return count
    if total.value != count:
        asking.note(APPROXIMATED, entry, f"{ceil(total.value)} in all: {total.origin}", "info")
    return ceil(total.value)


def shared(asking: Asking, amount: Amount, parts: int, what: str, smallest: int = 1) -> int:
    """An amount of bytes shared out, in whole units of ``smallest``; what is rounded up in that is told."""
    share = Fraction(amount.value, parts)
    rounded = -int(-share // smallest) * smallest
    if rounded != share:
        asking.note(APPROXIMATED, amount.entry, f"shared out among {parts} {what}, rounded up")
    return rounded


def nodes_of(asking: Asking, part: Part) -> int | None:
    """How many nodes a part takes: as it says, else by the cores of a node that the site profile gives."""
    site, count = asking.context.site, part.processor_total
    if part.node_total is not None or part.chunks is not None or not count or site is None \
            or site.cores_per_node is None:
        return part.node_total
    return -(-count // site.cores_per_node)


def spread(asking: Asking, part: Part) -> None:
    """Give a part that has amounts per node but no nodes those that follow from the site profile, for a target that
    asks for tasks one by one; without a profile a finding says what is not known."""
    amounts = [a for a in (part.memory, part.gpus) if a is not None and a.per == "PerNode"]
    alone = (part.processor_total or 1) == 1 or part.node_factor == 1
    if not amounts or alone or part.node_total is not None or part.chunks is not None or part.per_node is not None:
        return
    nodes = nodes_of(asking, part)
    if nodes is None and part.gpus in amounts:
        part.nodes = 1
        asking.note(SITE, part.gpus.entry if part.gpus else None, "the GPUs of a node: all is asked for on one, for "
                    "how many nodes there are the job does not say; cores_per_node of a site profile would",
                    subject="Resource NodeCount")
        return
    if nodes is None:
        for amount in amounts:
            asking.note(SITE, amount.entry, f"the {amount.entry.tag} of a node is written for each task: how many "
                        "share a node the job does not say, cores_per_node of a site profile would")
        return
    part.nodes = nodes
    asking.note(APPROXIMATED, None, f"NodeCount: {nodes}, by the cores of a node in the site profile",
                subject="NodeCount")


def on_nodes(asking: Asking, part: Part) -> None:
    """Make nodes of chunks that hold several tasks or GPUs, for a target that knows no chunks: what is together in a
    chunk stays together. A chunk of one task without GPUs is that task."""
    if part.chunks is None or part.chunks == 1 or part.node_total is not None:
        return
    if (part.task_total or 0) > part.chunks or (part.gpus is not None and part.gpus.per == "PerChunk"):
        part.nodes = part.chunks
        of_all = len(asking.groups) > 1 and any(e.level == JOB for e in asking.said("NodeCount"))
        asking.note(DROPPED if of_all else APPROXIMATED, part.sources.get("chunks"), f"NodeCount: {part.chunks} "
                    "chunks, perhaps on one node, are written as nodes", subject="NodeCount")


def perhaps_shared(asking: Asking, part: Part) -> None:
    """The finding where a task group beside others is asked for on a node of its own: its chunk may be on one of
    theirs."""
    if len(asking.groups) > 1 and part.node_total and part.node_apart is None:
        asking.note(APPROXIMATED, part.sources.get("chunks"), "NodeCount: a group, perhaps on the node of another one, "
                    "is written as a node", subject="NodeCount")


def started(asking: Asking, part: Part) -> None:
    """Make tasks of the slots of a source such as LSF, for a target whose list of nodes has a line for each task."""
    source = asking.source_dialect
    if source is not None and source.slots and (part.processors or 0) > 1 and part.processors_most is None \
            and (part.tasks, part.per_node, part.cpus, part.chunks) == (None, None, None, None):
        part.tasks, part.processors = part.processors, None


def unknown_factor(asking: Asking, entry: Entry, what: str) -> None:
    """The finding where the number that a conversion needs is not stated."""
    asking.note(SITE, entry, f"{what}, for the job does not say how it is spread")
