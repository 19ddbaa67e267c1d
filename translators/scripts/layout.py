"""How a part of a job is laid out, taken from a job for a writer: nodes, tasks, processors, memory, GPUs, and per what.

Readers never convert; writers do, where the target lacks that "per" (decisions 6 to 8). What a conversion changes is a
finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.lexical import LexicalError
from sssjob.model import Property
from sssjob.translators.asked import AMOUNTS, GROUP, GROUPS, TASK
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, SITE, Asking, Entry
from sssjob.translators.scripts.choices import is_name
from sssjob.units import to_bytes

__all__ = ["Amount", "Part", "derive_nodes", "fits", "join", "nodes_of", "one_part", "part_of", "plain", "shared",
           "size", "spread", "started", "task_processors", "together", "unknown_factor"]


@dataclass(slots=True)
class Amount:
    """bytes or a count; per: job, PerNode, PerChunk, PerProcessor, PerGPU or task; entry: where it comes from."""

    value: int
    per: str
    entry: Entry
    kind: str = ""


@dataclass(slots=True)
class Part:
    """What one part asks for; None: not stated. per_node: tasks; cpus: of one task; processors: of all."""

    nodes: int | None = None
    nodes_most: int | None = None
    tasks: int | None = None
    per_node: int | None = None
    cpus: int | None = None
    processors: int | None = None
    processors_most: int | None = None
    chunks: int | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    beside: list[Entry] = field(default_factory=list)       # memory said at other levels too

    @property
    def node_chunks(self) -> bool:
        """Whether its chunks are nodes."""
        return self.chunks is not None and self.chunks == self.nodes


def part_of(asking: Asking, *, ranges: bool = False) -> Part:
    """The layout of the job, or of the group asked for. ranges: the target has ranges of processors."""
    part = Part()
    part.nodes, part.nodes_most = _span(asking, "NodeCount")
    part.tasks = _number(asking, asking.one("TaskCount", (GROUP, GROUPS)))
    if asking.says("ChunkCount"):
        part.chunks = _number(asking, asking.one("Extension", AMOUNTS, type="Scheduler", name="ChunkCount"))
    cpus = asking.one("Processors", TASK)
    part.cpus = _number(asking, cpus)
    if ranges:
        part.processors, part.processors_most = _span(asking, "Processors")
    else:
        part.processors = _number(asking, asking.one("Processors", AMOUNTS))
    _distribution(asking, part)
    part.memory = _amount(asking, "Memory")
    if part.memory is not None:
        level = part.memory.entry.level
        part.beside = [e for e in asking.said("Memory") if e.level != level]
    part.gpus = _amount(asking, "Resource", name="GPU")
    return part


def _span(asking: Asking, tag: str) -> tuple[int | None, int | None]:
    """Least and most; ``op`` GE with LE is a range."""
    if len(asking.said(tag)) > 1:
        found = asking.find(tag, AMOUNTS)
        ops = {e.attributes.get("op", "EQ"): e for e in found}
        if len(found) == 2 and ops.keys() == {"GE", "LE"} and not any(
                e.attributes.keys() & {"conj", "group", "preference"} for e in found):
            return int(ops["GE"].text), int(ops["LE"].text)
    entry = asking.one(tag, AMOUNTS)
    return _number(asking, entry), None


def _number(asking: Asking, entry: Entry | None) -> int | None:
    if entry is None:
        return None
    text = entry.text
    if text.isdigit() and (number := int(text)) > 0:
        return number
    asking.dropped(entry, f"{entry.text} is no number of things that can be asked for")
    return None


def _distribution(asking: Asking, part: Part) -> None:
    entry = asking.one("TaskDistribution", AMOUNTS, carried=("type",))
    if entry is None:
        return
    kind = entry.attributes.get("type") or ("TasksPerNode" if entry.text.isdigit() else "Rule")
    if kind == "Rule" and entry.text.lower() in asking.dialect.rules:
        return                  # an option of its own says it
    if not entry.text.isdigit() or kind not in ("TasksPerNode", "ProcessorsPerTask"):
        asking.dropped(entry, f"a distribution by {kind} is not carried")
    elif kind == "TasksPerNode":
        part.per_node = int(entry.text)
    else:
        part.cpus = part.cpus or int(entry.text)


#: A slot is a processor (decisions 8).
_PER: Final = {"Total": "job", "": "job", "PerSlot": "PerProcessor"}


def _amount(asking: Asking, tag: str, **attributes: str) -> Amount | None:
    if not asking.said(tag):
        return None
    entry = asking.one(tag, TASK, carried=("units", "metric", "type"), **attributes)
    per = "task"
    if entry is None:
        entry = asking.one(tag, AMOUNTS, carried=("units", "metric", "type"), **attributes)
        if entry is None:
            return None
        metric = entry.attributes.get("metric", "")
        per = _PER.get(metric, metric)
    try:
        number = Decimal(entry.value)
        value = to_bytes(number, entry.attributes.get("units")) if tag == "Memory" else number
    except LexicalError as error:
        asking.dropped(entry, str(error))
        return None
    kind = entry.attributes.get("type", "")
    if kind and not fits(asking, entry, kind):
        return None
    return Amount(int(value.to_integral_value(ROUND_CEILING)), per, entry, kind)


def together(part: Part) -> None:
    """A single chunk is on one node."""
    if part.chunks == 1 and part.nodes is None:
        part.nodes = 1


def derive_nodes(part: Part) -> None:
    """Nodes that follow from all tasks and those of a node (rosetta 4.3)."""
    tasks = part.tasks or part.processors
    if part.nodes is None and part.per_node and tasks:
        part.nodes = -(-tasks // part.per_node)


def join(asking: Asking, one: Asking) -> None:
    """What a part has carried is carried for the job."""
    if one is asking:
        return
    mine = {id(e.item): e for e in asking.entries}
    for e in one.entries:
        if e.used and id(e.item) in mine:
            mine[id(e.item)].used = True
            mine[id(e.item)].understood |= e.understood


def one_part(asking: Asking, *, ranges: bool = False) -> Part:
    """The layout for a target that knows one kind of part: equal task groups are added up, of others the first one
    counts (decisions 11)."""
    groups = asking.job.task_groups
    if len(groups) < 2:
        part = part_of(asking, ranges=ranges)
        together(part)
        return part
    many = [asking.of(group) for group in groups]
    parts = [part_of(one) for one in many]
    for one in many:
        join(asking, one)
    first = parts[0]
    if all(_alike(part) == _alike(first) for part in parts):
        first.tasks = sum(part.tasks or part.chunks or 1 for part in parts)
        asking.note(APPROXIMATED, None, f"TaskGroup: {len(groups)} groups are asked for as one of {first.tasks} tasks",
                    subject="TaskGroup")
        for name in ("nodes", "processors", "chunks"):
            if any(_of_group(one, name) for one in many):
                setattr(first, name, sum(getattr(part, name) or 0 for part in parts) or None)
    else:
        asking.note(DROPPED, None, f"TaskGroup: {asking.dialect.title} holds one kind of task, the job has "
                    f"{len(groups)}; only the first is carried", subject="TaskGroup")
    return first


_AT_GROUP: Final = {"nodes": "NodeCount", "processors": "Processors", "chunks": "Extension"}


def _of_group(asking: Asking, name: str) -> bool:
    return any(e.tag == _AT_GROUP[name] and e.level == GROUP for e in asking.entries)


def _alike(part: Part) -> tuple[object, ...]:
    """What parts have in common that can be added up."""
    per = [(a.value, a.per, a.kind) if a is not None else None for a in (part.memory, part.gpus)]
    return part.per_node, part.cpus, *per


def task_processors(asking: Asking, part: Part) -> int | None:
    """Processors of a task; fills in the tasks of chunks and processors (decisions 7, 8)."""
    if part.chunks is not None:
        tasks = part.tasks or part.chunks
        cpus = part.processors / tasks if part.processors else None
        if part.node_chunks and tasks % part.chunks == 0:
            part.per_node, part.tasks = tasks // part.chunks, None
        else:
            part.tasks = tasks
    elif part.processors is not None and part.tasks is None and (part.per_node is None or part.nodes is None):
        part.tasks, cpus = part.processors, None
    elif part.processors is not None and part.cpus is None:
        tasks = part.tasks or (part.per_node or 1) * (part.nodes or 1)
        cpus = part.processors / tasks
    else:
        return part.cpus
    if cpus is None:
        return part.cpus
    if cpus != int(cpus):
        asking.note(APPROXIMATED, None, f"Processors: {part.processors} cannot be shared out evenly, rounded up",
                    subject="Processors")
    whole = -int(-cpus // 1)
    return whole if whole != 1 else part.cpus


def shared(asking: Asking, amount: Amount, parts: int, what: str) -> int:
    """An amount shared out, rounded up, with a finding where that is more."""
    if amount.value % parts:
        asking.note(APPROXIMATED, amount.entry, f"shared out among {parts} {what}, rounded up")
    return -(-amount.value // parts)


def nodes_of(asking: Asking, part: Part) -> int | None:
    """How many nodes a part takes: as it says, else by the cores of a node that the site profile gives."""
    site = asking.context.site
    count = part.processors or (part.tasks or 0) * (part.cpus or 1)
    if part.nodes is not None or part.chunks is not None or not count or site is None or site.cores_per_node is None:
        return part.nodes
    return -(-count // site.cores_per_node)


def spread(asking: Asking, part: Part) -> None:
    """Give a part that has amounts per node but no nodes those that follow from the site profile, for a target that
    asks for tasks one by one; without a profile a finding says what is not known."""
    amounts = [a for a in (part.memory, part.gpus) if a is not None and a.per == "PerNode"]
    alone = (part.processors or part.tasks or 1) == 1
    if not amounts or alone or part.nodes is not None or part.chunks is not None or part.per_node is not None:
        return
    nodes = nodes_of(asking, part)
    if nodes is None:
        for amount in amounts:
            asking.note(SITE, amount.entry, f"the {amount.entry.tag} of a node is written for each task: how many "
                        "share a node the job does not say, cores_per_node of a site profile would")
        return
    part.nodes = nodes
    asking.note(APPROXIMATED, None, f"NodeCount: {nodes}, by the cores of a node in the site profile",
                subject="NodeCount")


#: Dialects whose slots are Processors (decisions 8): what starts tasks there starts one on each.
_SLOTS: Final = ("lsf", "sge")


def started(asking: Asking, part: Part) -> None:
    """Make tasks of the slots of LSF and Grid Engine, for a target whose list of nodes has a line for each task."""
    if asking.source in _SLOTS and (part.processors or 0) > 1 and part.processors_most is None \
            and (part.tasks, part.per_node, part.cpus, part.chunks) == (None, None, None, None):
        part.tasks, part.processors = part.processors, None


def unknown_factor(asking: Asking, amount: Amount, what: str) -> None:
    """The finding where the number that a conversion needs is not stated."""
    asking.note(SITE, amount.entry, f"{what}, for the job does not say how it is spread")


def size(suffixes: str, smallest: int = 1) -> Callable[[int], str]:
    """Writer of sizes in the largest power of 1024 that is exact. suffixes: one a power, from bytes; blank: none;
    smallest: bytes that are rounded up to."""
    def made(value: int) -> str:
        value = -(-value // smallest) * smallest
        power = 0
        while power + 1 < len(suffixes.split(",")) and value and value % 1024 == 0:
            value //= 1024
            power += 1
        return f"{value}{suffixes.split(',')[power]}"
    return made


def fits(asking: Asking, entry: Entry, text: str) -> bool:
    """Whether a name can stand in a list of the target's: no sign that parts or assigns is in it."""
    if is_name(text):
        return True
    asking.dropped(entry, f"{text[:80]!r} is no name for {asking.dialect.title}")
    return False


def plain(entries: list[Entry]) -> bool:
    """Whether properties are simply all demanded."""
    return all(isinstance(e.item, Property) and not e.attributes.keys() & {"op", "conj", "group", "preference"}
               for e in entries)
