"""The size of a job of Slurm: nodes, tasks, processors, memory, GPUs and other generic resources.

Source: sbatch(1) of 22.05; ``--tres-per-task`` and several types of GPUs that of 26.11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.lrm import slurm
from sssjob.lrm.sizes import POWERS, writer
from sssjob.lrm.usage import whole
from sssjob.request.asked import JOB, TASK
from sssjob.translators.scripts.base import APPROXIMATED, Asking, Entry, Reading, Row
from sssjob.translators.scripts.choices import fits, is_name, plain
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.grammars import COUNT, Grammar
from sssjob.translators.scripts.layout import (
    Amount,
    Part,
    of_total,
    on_nodes,
    part_of,
    perhaps_shared,
    shared,
    task_processors,
    total_of,
    unknown_factor,
)
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.whole_job import of_whole_job, share_memory

_MB: Final = writer(",K,M,G,T", POWERS["M"])
SIZE: Final = Grammar(slurm.SIZE.read, lambda text: _MB(int(text)), "a size")
_GPUS: Final = {"--gpus": "Requested/Resource[name=GPU]",
                "--gpus-per-node": "Requested/Resource[name=GPU,metric=PerNode]",
                "--gpus-per-task": "TaskGroup/TaskDefaults/Requested/Resource[name=GPU]"}
_MEMORY: Final = {"--mem": "PerNode", "--mem-per-cpu": "PerProcessor", "--mem-per-gpu": "PerGPU"}
_COUNTS: Final = {
    "--ntasks": Row("--ntasks", "TaskGroup/TaskCount", COUNT),
    "--ntasks-per-node": Row("--ntasks-per-node", "TaskGroup/TaskDistribution[type=TasksPerNode]", COUNT),
    "--cpus-per-task": Row("--cpus-per-task", "TaskGroup/TaskDefaults/Requested/Processors", COUNT),
}


#: Options of the layout.
NAMES: Final = ("--nodes", *_COUNTS, *_MEMORY, *_GPUS, "--gres", "--tres-per-task")
#: What a task gets of the resources that have an option of their own, too; k, M and so on count in 1,024s.
_PER_TASK: Final = re.compile(r"(?:(cpu)|gres/gpu(?::([^:,=/]+))?)=(\d{1,9})([kKmM]?)", re.ASCII)
_FACTORS: Final = {"": 1, "k": POWERS["K"], "m": POWERS["M"]}


def read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    """The size of the job: nodes, tasks, processors, memory, GPUs."""
    if (nodes := options.get("--nodes")) is not None:
        _read_nodes(reading, nodes)
    for name, row in _COUNTS.items():
        if name in options:
            reading.row(row, options[name])
    memory = [options[name] for name in _MEMORY if name in options]
    for option in memory:
        _read_memory(reading, option)
    if len(memory) > 1:
        reading.refuse(f"{' and '.join(o.name for o in memory)} exclude each other", memory[1].line, memory[1].column,
                       memory[1].name, memory[1].text)
    for name, where in _GPUS.items():
        if name in options:
            _read_gpus(reading, options[name], where)
    if (gres := options.get("--gres")) is not None:
        _read_gres(reading, gres, "--gpus-per-node" in options)
    if (tres := options.get("--tres-per-task")) is not None:
        _read_per_task(reading, tres)


def _read_per_task(reading: Reading, option: Option) -> None:
    """Processors and GPUs of each task; a list in which there is more, licences for example, stays an option."""
    parts = [_PER_TASK.fullmatch(part) for part in (option.value or "").split(",")]
    if not all(parts):
        reading.keep(option)
        return
    for part in filter(None, parts):
        count = int(part[3]) * _FACTORS[part[4].lower()]
        if part[1]:
            reading.put("TaskGroup/TaskDefaults/Requested/Processors", count, option)
        else:
            reading.put(_GPUS["--gpus-per-task"], count, option, **({"type": part[2]} if part[2] else {}))


def _read_nodes(reading: Reading, option: Option) -> None:
    match = re.fullmatch(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?", option.value or "", re.ASCII)
    if match is None:
        reading.misfit(option, "is no number of nodes", "a number or a range such as 2-4")
        return
    least = int(match[1]) * _FACTORS[match[2].lower()]
    if match[3] is None:
        reading.put("Requested/NodeCount", least, option)
        return
    most = int(match[3]) * _FACTORS[match[4].lower()]
    if most < least:
        reading.misfit(option, "the most is less than the least", "MIN-MAX")
        return
    reading.put("Requested/NodeCount", least, option, op="GE")
    reading.put("Requested/NodeCount", most, option, op="LE")


def _read_memory(reading: Reading, option: Option) -> None:
    try:
        amount = slurm.SIZE.read(option.value or "")
    except ValueError as error:
        reading.misfit(option, str(error), "a number with K, M, G or T")
        return
    if amount == 0:
        reading.keep(option)        # all memory of the node
        return
    amount = -(-amount // (1 << 20)) << 20
    reading.bytes("Requested/Memory", amount, option, metric=_MEMORY[option.name])


def _read_gpus(reading: Reading, option: Option, where: str) -> None:
    parts = [re.fullmatch(r"(?:([^:,]+):)?(\d{1,9})", part, re.ASCII) for part in (option.value or "").split(",")]
    if not all(parts):
        reading.misfit(option, "is no number of GPUs", "[TYPE:]NUMBER[,...]")
        return
    for part in filter(None, parts):
        reading.put(where, int(part[2]), option, **({"type": part[1]} if part[1] else {}))


def _read_gres(reading: Reading, option: Option, gpus_said: bool) -> None:
    for part in (option.value or "").split(","):
        match = re.fullmatch(r"(?:gres:)?([A-Za-z_]\w*)(?::([A-Za-z][^:]*))?(?:[:=](\d{1,9}))?", part, re.ASCII)
        if match is None:
            name, colon, amount = part.partition(":")
            if not (colon and amount and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)) or name == "gres":
                reading.keep(option)
                return
            reading.put(f"Extension[name=gres.{name},type=slurm]", amount, option)
            continue
        if match[1] == "gpu" and gpus_said:
            continue
        name = "GPU" if match[1] == "gpu" else match[1]
        reading.put("Requested/Resource", int(match[3] or 1), option, name=name, metric="PerNode",
                    **({"type": match[2]} if match[2] else {}))


def write_layout(asking: Asking) -> Written:
    """The size of the job in options of sbatch."""
    more_kinds = _more_kinds(asking)
    part = part_of(asking)
    on_nodes(asking, part)
    perhaps_shared(asking, part)
    _of_whole_job(asking, part)
    tasks, cpus = task_processors(asking, part)
    options = _nodes(asking, part)
    for name, count in _tasks(asking, part, tasks):
        options.append((name, str(count)))
    if cpus is not None:
        options.append(("--cpus-per-task", str(cpus)))
    if part.memory is not None:
        name, amount = _memory(asking, part, part.memory, cpus or 1)
        options.append((name, _MB(amount)))
        for e in part.beside:
            asking.dropped(e, f"Slurm takes one amount of memory, here {name}")
    if part.gpus is not None:
        gpus = _gpus(part, part.gpus, more_kinds)
        if gpus[0] == "--gpus-per-task" and not any(name.startswith("--ntasks") for name, _ in options):
            options.append(("--ntasks", str(part.nodes or 1)))      # sbatch wants to be told; one on each node
        options.append(gpus)
    return options + _gres(asking, part)


def _of_whole_job(asking: Asking, part: Part) -> None:
    """Amounts of the whole job, which the parts of a heterogeneous job cannot say: nodes take their share of the
    memory, and findings tell the rest, with the first part."""
    if asking.group is None or len(asking.groups) < 2:
        return
    is_first = asking.group is asking.groups[0]
    has_memory = any(e.level == JOB for e in asking.said("Memory"))
    parts = [part]
    for group in asking.groups if is_first or has_memory else ():
        if group is not asking.group:
            other = asking.of(group)
            other.silent = True
            parts.append(part_of(other))
    before, asking.silent = asking.silent, asking.silent or not is_first
    nodes = [each.node_total for each in parts]
    shares = has_memory and share_memory(asking, parts, nodes, "nodes", "PerNode", 1 << 20)
    of_whole_job(asking, parts, memory=shares)
    asking.silent = before


def _nodes(asking: Asking, part: Part) -> Written:
    """``--nodes``, where they are stated or follow from a geometry."""
    if part.nodes is not None:
        return [("--nodes", f"{part.nodes}-{part.nodes_most}" if part.nodes_most else str(part.nodes))]
    if part.geometry:
        return [("--nodes", str(len(part.geometry)))]
    return [("--nodes", "1")] if part.chunks == 1 else []


def _tasks(asking: Asking, part: Part, tasks: int | None) -> list[tuple[str, int]]:
    """``--ntasks`` and ``--ntasks-per-node``."""
    if part.geometry:
        if len(set(part.geometry)) == 1:
            return [("--ntasks", sum(part.geometry)), ("--ntasks-per-node", part.geometry[0])]
        asking.note(APPROXIMATED, part.sources["distribution"], "Slurm is told how many nodes and tasks, not which "
                    "tasks share a node")
    elif part.node_chunks and tasks is not None and tasks % (part.chunks or 1) == 0:
        return [("--ntasks-per-node", tasks // (part.chunks or 1))]
    elif part.per_node is not None:
        stated = part.tasks or (tasks if part.nodes is None and (part.processors or part.chunks) else None)
        return [*([("--ntasks", stated)] if stated else []), ("--ntasks-per-node", part.per_node)]
    return [("--ntasks", tasks)] if tasks is not None else []


def _is_one_task(part: Part) -> bool:
    """Whether a job is one task, which Slurm never parts between nodes."""
    return part.nodes is None and part.processors is None and part.task_total in (None, 1) and not part.geometry


def _memory(asking: Asking, part: Part, memory: Amount, cpus: int) -> tuple[str, int]:
    """Option and bytes."""
    own = {v: k for k, v in _MEMORY.items()}
    if memory.value % (1 << 20):
        asking.note(APPROXIMATED, memory.entry, "rounded up to whole MiB")
    if memory.per in own:
        return own[memory.per], memory.value
    if memory.per in ("task", "job") and _is_one_task(part):
        return "--mem", memory.value
    if memory.per == "task":
        asking.note(APPROXIMATED, memory.entry, f"per task is written per processor, {cpus} a task",
                    "info" if cpus == 1 else None)
        return "--mem-per-cpu", shared(asking, memory, cpus, "processors", 1 << 20)
    if memory.per == "PerChunk" and part.node_chunks:
        return "--mem", memory.value
    total = total_of(memory, part)
    if total is None:
        unknown_factor(asking, memory.entry, f"{memory.per} is written per processor")
        return "--mem-per-cpu", memory.value
    nodes, processors = part.node_total, part.processor_total
    if nodes is not None and (memory.per == "job" or part.chunks is None):
        return "--mem", shared(asking, replace(memory, value=total), nodes, "nodes", 1 << 20)
    if processors is None:
        unknown_factor(asking, memory.entry, "memory of the job is written as that of one node")
        return "--mem", total
    asking.note(APPROXIMATED, memory.entry, f"written per processor, {processors} in all")
    return "--mem-per-cpu", -(-total // processors)


def _more_kinds(asking: Asking) -> list[Entry]:
    """GPUs of other types than the first, where a job simply demands some of each; nothing else asks for them then."""
    entries = [e for e in asking.said("Resource") if e.attributes.get("name") == "GPU"]
    if len(entries) < 2 or len({(e.above, e.slot, e.attributes.get("metric")) for e in entries}) > 1:
        return []
    first, *others = entries
    kinds = {e.attributes.get("type", "") for e in entries}
    beside = [e for e in asking.entries if (e.above, e.slot) == (first.above, first.slot)]
    if len(kinds) < len(entries) or not plain(beside) or not all(whole(e.text) for e in entries) or not all(
            map(is_name, kinds)):
        return []
    asking.leave_out(others)
    return others


def _gpus(part: Part, gpus: Amount, more_kinds: Sequence[Entry]) -> tuple[str, str | None]:
    name = {"PerNode": "--gpus-per-node", "task": "--gpus-per-task"}.get(gpus.per, "--gpus")
    if gpus.per == "PerChunk" and part.node_chunks:
        name = "--gpus-per-node"
    words = []
    for amount in (gpus, *(replace(gpus, value=int(e.text), kind=e.attributes["type"]) for e in more_kinds)):
        value = total_of(amount, part) or amount.value if name == "--gpus" else amount.value
        words.append(f"{amount.kind}:{value}" if amount.kind else str(value))
    return name, ",".join(words)


def _gres(asking: Asking, part: Part) -> Written:
    """Other generic resources, which Slurm counts for each node."""
    words = [f"{name.removeprefix('gres.')}:{kept.text}" for name in sorted(asking.own) if name.startswith("gres.")
             and (kept := asking.extension(name, "slurm")) is not None]
    for e in asking.find("Resource"):
        name = e.attributes.get("name")
        if name in ("GPU", "License"):
            e.used = bool(e.understood & {"units"})
            continue
        e.understood |= {"name", "type", "metric"}
        kind = e.attributes.get("type")
        if not fits(asking, e, f"{name}{kind or ''}"):
            continue
        count = int(Decimal(e.text).to_integral_value(ROUND_CEILING))
        each = _each_node(asking, part, e, count)
        if each is not None:
            words.append(f"{name}:{kind + ':' if kind else ''}{each}")
    return [("--gres", ",".join(words))] if words else []


def _each_node(asking: Asking, part: Part, e: Entry, count: int) -> int | None:
    """How many of a resource each node is to have; None where that cannot be said."""
    metric = e.attributes.get("metric", "")
    if metric == "PerNode":
        return count
    if of_total(e) and e.level == JOB and asking.group is not None and len(asking.groups) > 1:
        asking.dropped(e, "it is that of all task groups, each of which is asked for by itself")
        return None
    per = "task" if e.level in TASK else {"": "job", "Total": "job", "PerSlot": "PerProcessor"}.get(metric, metric)
    total = total_of(Amount(count, per, e), part)
    nodes = part.node_total or (1 if (part.processor_total or 1) == 1 else None)
    if total is None or nodes is None or total % nodes:
        asking.dropped(e, f"Slurm counts {e.attributes.get('name')} for each node, and "
                       + ("the job does not say how many nodes" if nodes is None or total is None else
                          f"{total} cannot be shared out evenly among {nodes}"))
        return None
    if part.node_total is None:
        asking.note(APPROXIMATED, e, "counted for each node, and the job does not say how many")
    elif nodes > 1:
        asking.note(APPROXIMATED, e, f"{total} in all are written as {total // nodes} on each of {nodes} nodes")
    return total // nodes
