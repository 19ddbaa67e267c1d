"""The size of a job in a script for LSF: slots, resource requirements, GPUs, hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.document.units import byte_factor, to_bytes
from sssjob.lrm.sizes import POWERS, writer
from sssjob.request.asked import JOB, TASK
from sssjob.translators.scripts._lsf_names import select, write_hosts
from sssjob.translators.scripts._lsf_reading import LIMIT, bound
from sssjob.translators.scripts.base import APPROXIMATED, SITE, Asking, Entry, Reading, Special
from sssjob.translators.scripts.choices import site_resource
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.layout import (
    Amount,
    Part,
    in_all,
    join,
    on_nodes,
    one_part,
    part_of,
    perhaps_shared,
    shared,
    task_processors,
    total_of,
    unknown_factor,
)
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.resource_limits import limits_of
from sssjob.translators.scripts.whole_job import of_whole_job

__all__ = ["special_limit", "write_layout"]


def special_limit(name: str, place: str) -> Special:
    """The row of a limit in bytes, whose unit is the site's where it has none."""
    def read(reading: Reading, options: Mapping[str, Option]) -> None:
        """A ResourceLimit where the unit is known, else the option as it stands."""
        option = options[name]
        match = LIMIT.fullmatch(option.value or "")
        site = reading.context.site
        unit = None if match is None else f"{match[2].upper()}B" if match[2] else \
            None if site is None else site.lsf.unit_for_limits
        if match is None:
            reading.misfit(option, "is no size", "a number with KB, MB, GB ...")
        elif unit is None:
            reading.keep_alone(option, "the unit is the site's")
        else:
            reading.put("ResourceLimit", str(int(match[1]) * byte_factor(unit)), option, name=place)

    def write(asking: Asking) -> Written:
        """The limits of a job by that name, with a unit."""
        return [(name, _number(asking, size)) for size in limits_of(asking, place, whole=1024)]

    return Special((name,), read, write, of=("ResourceLimit",))


def write_layout(asking: Asking) -> Written:
    """Slots and requirements of the job, one ``-R`` a section; of several task groups a compound one."""
    if len(asking.groups) > 1:
        return _write_groups(asking)
    part = one_part(asking, ranges=True)
    on_nodes(asking, part)
    tasks, cpus = task_processors(asking, part)
    most = _most(asking, part, (tasks or 1) * (cpus or 1))
    gpus = None if part.gpus is None else _gpus(asking, part, part.gpus, tasks)
    options, spans = _slots(asking, part, tasks, None if most is None else most // (cpus or 1))
    requirements = [*select(asking), *spans]
    requirements += _rusage(asking, part, cpus or 1, options)
    binding = asking.extension("R.affinity", "lsf")
    if cpus is not None and (cpus > 1 or binding is not None):
        inner, outer = bound("" if binding is None else binding.text)
        requirements.append(f"affinity[core({cpus}{inner})*1{outer}]")
    elif binding is not None:
        asking.dropped(binding, "the processors of a task are not said")
    counted = [text for e in asking.find("Resource") if (text := _counted(asking, part, e))]
    options += [("-R", text) for text in requirements + ([f"rusage[{','.join(counted)}]"] if counted else [])]
    options += [("-R", kept.text) for kept in asking.extensions("R", "lsf")]
    if gpus is not None:
        options.append(("-gpu", gpus))
    return options + write_hosts(asking)


def _most(asking: Asking, part: Part, least: int) -> int | None:
    """The most processors, where there are more than the least and more of them ask for no more of anything else: what
    is asked for of each host would be asked for of more hosts."""
    most = part.processors_most
    if most is None or most <= least:
        if most is not None and most < least:
            asking.note(APPROXIMATED, part.sources.get("processors"), f"Processors: {least} are asked for, at most "
                        f"{most} are wanted")
        return None
    shared_out = (part.gpus is not None and part.gpus.per == "job") or any(
        e.level not in TASK and e.attributes.get("metric", "Total") == "Total" for e in asking.said("Disk"))
    if (part.node_stated or 1) == 1 and not (shared_out and part.node_stated is None):
        return most
    asking.note(APPROXIMATED, part.sources.get("processors"), f"Processors: {least} of {least} to {most} are asked "
                "for, more could be on more hosts")
    return None


def _write_groups(asking: Asking) -> Written:
    """``-R "2*{...}+1*{...}"``."""
    texts, slots, parts = [], 0, list[Part]()
    for group in asking.groups:
        of_group = asking.of(group)
        part = part_of(of_group)
        perhaps_shared(of_group, part)
        parts.append(part)
        tasks, cpus = task_processors(of_group, part)
        options, spans = _slots(of_group, part, tasks, None)
        words = [*select(of_group), *spans, *_rusage(of_group, part, cpus or 1, options)]
        words += [f"affinity[core({cpus})*1]"] if cpus is not None and cpus > 1 else []
        if part.gpus is not None:
            of_group.dropped(part.gpus.entry, "-gpu is the same for all parts of a job")
        count = tasks or next((int(value or 1) for name, value in options if name == "-n"), 1)
        slots += count
        texts.append(f"{count}*{{{' '.join(words)}}}")
        join(asking, of_group)
    of_whole_job(asking, parts)
    for e in asking.said("Disk"):
        if e.level == JOB and e.attributes.get("metric", "Total") == "Total":
            asking.dropped(e, "it is that of all task groups, each of which is asked for by itself")
    for kept in asking.extensions("R", "lsf"):
        asking.dropped(kept, "it cannot stand beside a compound requirement")
    if all(text.endswith("*{}") for text in texts):
        asking.note(APPROXIMATED, None, f"TaskGroup: {len(texts)} groups that ask for nothing but tasks are asked for "
                    f"as one of {slots} tasks", subject="TaskGroup")
        return [("-n", str(slots)), *write_hosts(asking)]
    return [("-n", str(slots)), ("-R", "+".join(texts)), *write_hosts(asking)]


def _slots(asking: Asking, part: Part, tasks: int | None, most: int | None) -> tuple[Written, list[str]]:
    """``-n`` or ``-nnodes``, and the span."""
    marked = asking.extension("nnodes", "lsf")
    nodes, per_node = part.node_stated, part.per_node
    tasks = 1 if tasks is None and nodes is None and part.cpus == 1 else tasks
    options: Written = []
    if marked is not None and nodes:
        options.append(("-nnodes", str(nodes)))
        nodes = None
    elif nodes and tasks is None and nodes > 1:
        asking.note(APPROXIMATED, part.sources.get("nodes"), f"NodeCount: {nodes} nodes are written as {nodes} slots, "
                    "one on each", subject="NodeCount")
        tasks, per_node, nodes = nodes, 1, None
    if tasks is not None:
        options.append(("-n", f"{tasks},{most}" if most else str(tasks)))
    return options, _spans(asking, part, tasks, nodes, per_node)


def _spans(asking: Asking, part: Part, tasks: int | None, nodes: int | None, per_node: int | None) -> list[str]:
    """``span[...]``: how the slots are spread over hosts."""
    if nodes == 1:
        if per_node and per_node != tasks:
            asking.note(APPROXIMATED, part.sources.get("distribution"), f"TaskDistribution: all on one host, not "
                        f"{per_node}", subject="TaskDistribution")
        return ["span[hosts=1]"]
    if part.geometry and len(set(part.geometry)) > 1:
        asking.note(APPROXIMATED, part.sources["distribution"], "TaskDistribution: LSF is told how many tasks, not "
                    "which share a host", subject="TaskDistribution")
        return []
    if per_node and per_node > 1 and tasks == 1:
        return ["span[hosts=1]"]        # the one slot is on a node of its own beside those of other task groups
    spans = [f"span[ptile={per_node}]"] if per_node else []
    if nodes is not None and tasks is not None:
        if per_node is None and tasks % nodes == 0:
            spans.append(f"span[ptile={tasks // nodes}]")
        elif per_node is None or -(-tasks // per_node) != nodes:
            asking.note(APPROXIMATED, part.sources.get("nodes"), f"NodeCount: {nodes} nodes are not asked for, only "
                        f"{tasks} slots", subject="NodeCount")
        if part.nodes_most:
            asking.note(APPROXIMATED, part.sources.get("nodes"), f"NodeCount: {nodes} of {nodes} to {part.nodes_most}",
                        subject="NodeCount")
    return spans


_SIZE: Final = writer(",KB,MB,GB,TB", POWERS["K"])


def _number(asking: Asking, value: int) -> str:
    """An amount with its unit, or in the unit of a release that reads none."""
    lsf = None if asking.context.site is None else asking.context.site.lsf
    if lsf is not None and lsf.suffixes is False and lsf.unit_for_limits:
        return str(-(-value // byte_factor(lsf.unit_for_limits)))
    return _SIZE(value)


def _unitless(marked: str, value: int) -> str:
    """An amount as a script said it without a unit or as a hard limit, where it still is the job's; else empty. marked:
    ``mem=64000``, ``M 64000`` or ``M 8GB!``; value: bytes."""
    text = re.sub(r"\A(?:mem\s*=\s*|M )|/\w+\Z|!\Z", "", marked, flags=re.IGNORECASE)
    number = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTPE]?)B?", text, re.ASCII | re.IGNORECASE)
    if number is None:
        return ""
    unit = f"{number[2].upper()}B" if number[2] else "KB" if marked.startswith("M ") else "MB"
    same = int(to_bytes(Decimal(number[1]), unit).to_integral_value(ROUND_CEILING)) == value
    return marked.removeprefix("M ") if same else ""


def _rusage(asking: Asking, part: Part, cpus: int, options: Written) -> list[str]:
    """Memory and scratch space."""
    words = []
    if part.memory is not None:
        marked = asking.extension("memory", "lsf")
        raw = "" if marked is None else _unitless(marked.text, part.memory.value)
        if raw.startswith("mem="):
            words.append(raw)
        elif marked is not None and (part.memory.per == "task" or marked.text.startswith("M")):
            options.append(("-M", raw or _number(asking, part.memory.value)))
        else:
            words.append(f"mem={_memory(asking, part, part.memory, cpus)}")
        for name in ("duration", "decay"):
            if words and (time := asking.extension(f"R.{name}", "lsf")) is not None:
                words[0] += f":{name}={time.text}"
        for e in part.beside:
            asking.dropped(e, "another amount of memory is written")
    if not _of_all_groups(asking, "Disk") and (disk := asking.one("Disk", carried=("units", "metric"))) is not None \
            and (size := asking.in_bytes(disk)) is not None:
        words.append(f"tmp={_number(asking, _disk(asking, part, disk, size))}")
    return [f"rusage[{','.join(words)}]"] if words else []


def _of_all_groups(asking: Asking, tag: str) -> bool:
    """Whether a part of a job is asked for, and the amount is that of all parts."""
    return asking.group is not None and any(
        e.level == JOB and e.attributes.get("metric", "Total") == "Total" for e in asking.said(tag))


def _disk(asking: Asking, part: Part, disk: Entry, size: Decimal) -> int:
    """Bytes of scratch space on a host. size: what the job says, in bytes."""
    value = int(size.to_integral_value(ROUND_CEILING))
    metric = disk.attributes.get("metric", "")
    if value % 1024:
        asking.note(APPROXIMATED, disk, "rounded up to whole KB")
    if metric == "PerNode":
        return value
    per = "task" if disk.level in TASK else {"": "job", "Total": "job", "PerSlot": "PerProcessor"}.get(metric, metric)
    amount = Amount(value, per, disk)
    total = total_of(amount, part)
    hosts = part.node_total or (1 if (part.slots or 1) == 1 else None)
    if total is None or hosts is None:
        asking.note(SITE, disk, "written for each host, for the job does not say how many there are")
        return value if total is None else total
    if hosts > 1:
        asking.note(APPROXIMATED, disk, f"written for each of {hosts} hosts")
    return shared(asking, replace(amount, value=total), hosts, "hosts", 1024)


def _memory(asking: Asking, part: Part, memory: Amount, cpus: int) -> str:
    """Of a host, a task or the job."""
    if memory.value % 1024:
        asking.note(APPROXIMATED, memory.entry, "rounded up to whole KB")
    if memory.per in ("PerNode", "job", "task") and not (memory.per == "PerNode" and _is_uneven(part)):
        site = asking.context.site
        host = "/host" if site is not None and site.lsf.reserve_per_task else ""
        return _number(asking, memory.value) + {"PerNode": host, "job": "/job", "task": "/task"}[memory.per]
    if memory.per == "PerProcessor":
        if cpus > 1:
            asking.note(APPROXIMATED, memory.entry, f"written for each task of {cpus} processors")
        return f"{_number(asking, memory.value * cpus)}/task"
    if memory.per == "PerChunk" and part.node_chunks:
        return _number(asking, memory.value)
    total = total_of(memory, part)
    if memory.per == "PerGPU" and total is not None and part.node_total and not (total % part.node_total or
                                                                                   _is_uneven(part)):
        of_host = Amount(total // part.node_total, "PerNode", memory.entry)
        if of_host.value > memory.value:
            asking.note(APPROXIMATED, memory.entry,
                        f"written for each host, {of_host.value // memory.value} times as much")
        return _memory(asking, part, of_host, cpus)
    if total is not None:
        if total > memory.value:
            asking.note(APPROXIMATED, memory.entry,
                        f"written for the whole job, {total // memory.value} times as much")
        return f"{_number(asking, total)}/job"
    unknown_factor(asking, memory.entry, f"memory {memory.per} is written for each task")
    return f"{_number(asking, memory.value)}/task"


def _is_uneven(part: Part) -> bool:
    """Whether tasks cannot be told to be on just so many hosts: then an amount of a host has no number of hosts."""
    if part.geometry:
        return len(set(part.geometry)) > 1
    nodes, tasks = part.node_stated, part.slots
    return nodes is not None and nodes > 1 and tasks is not None and tasks % nodes != 0


def _counted(asking: Asking, part: Part, e: Entry) -> str:
    """Licences, which are counted for each job, and other things, which LSF counts for each host unless it is told."""
    name = e.attributes.get("name", "")
    if name == "GPU":
        e.used = bool(e.understood & {"units"})
        return ""
    e.understood |= {"name", "type", "metric"}
    name = e.attributes.get("type", "license") if name == "License" else name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in ("mem", "tmp", "swp"):
        asking.dropped(e, f"{name[:80]!r} is no name of a resource")
        return ""
    site_resource(asking, e, name)
    if e.attributes.get("metric") == "PerNode" and not _is_uneven(part):
        return f"{name}={int(Decimal(e.value))}/host"
    on_one_host = part.node_total == 1 or (part.node_total is None and (part.slots or 1) == 1)
    return f"{name}={in_all(asking, e)}{'' if on_one_host or e.attributes.get('name') == 'License' else '/job'}"


def _gpus(asking: Asking, part: Part, gpus: Amount, tasks: int | None) -> str | None:
    """``num=`` of each host or task; None where GPUs of the whole job cannot be said without asking for more."""
    count = _each(asking, part, gpus, tasks)
    kept = asking.extension("gpu", "lsf")
    if count is None:
        return None
    words = [f"num={count}", f"gmodel={gpus.kind}" if gpus.kind else "", kept.text if kept is not None else ""]
    return ":".join(w for w in words if w)


def _each(asking: Asking, part: Part, gpus: Amount, tasks: int | None) -> str | None:
    """How many GPUs a host (``2``) or a task (``2/task``) is to have."""
    if gpus.per == "task":
        return f"{gpus.value}/task"
    if gpus.per == "PerNode" or (gpus.per == "PerChunk" and part.node_chunks):
        return str(gpus.value)
    total, nodes = total_of(gpus, part), part.node_total
    if total is None:
        unknown_factor(asking, gpus.entry, f"GPUs {gpus.per} are written for each host")
        return str(gpus.value)
    if (nodes or tasks or 1) == 1:
        return str(total)
    if nodes is not None and total % nodes == 0:
        asking.note(APPROXIMATED, gpus.entry, f"{total} in all are written as {total // nodes} for each of {nodes} "
                    "hosts")
        return str(total // nodes)
    if tasks is not None and total % tasks == 0:
        asking.note(APPROXIMATED, gpus.entry, f"written for each of {tasks} tasks")
        return f"{total // tasks}/task"
    if nodes is None and part.per_node is None and tasks is not None and tasks % total == 0:
        part.per_node = tasks // total
        asking.note(APPROXIMATED, gpus.entry, f"one for each of {total} hosts, which have {part.per_node} tasks each")
        return "1"
    asking.dropped(gpus.entry, f"{total} GPUs cannot be shared out evenly among "
                   + (f"{nodes} hosts" if nodes is not None else f"{tasks} tasks"))
    return None
