"""The size of a job of Grid Engine: slots and their parallel environment, memory, and resources of the site.

A slot is a processor. Amounts of memory are those of a slot unless a site profile says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm.sge import memory
from sssjob.lrm.sizes import writer
from sssjob.request.asked import JOB
from sssjob.translators.scripts._sge_lines import RESOURCES
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, SITE, Asking, Entry, Reading, Row
from sssjob.translators.scripts.choices import (
    Choice,
    Term,
    any_of,
    choices,
    drop,
    expanded,
    fits,
    none_of,
    parsed,
    put,
    simple_features,
    site_resource,
)
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.grammars import Grammar, Kept
from sssjob.translators.scripts.layout import Amount, Part, in_all, nodes_of, one_part, total_of, unknown_factor
from sssjob.translators.scripts.raw import Option

#: Stands for a parallel environment whose name only the site knows; no name may hold the sign, so that qmaster says so.
_ANY_PE: Final = "@PE@"
#: Names that sites give to environments whose slots are on one host; whether it is so the site knows.
_ONE_HOST: Final = ("smp", "shm", "omp", "openmp", "threaded", "threads", "multithread")
_MEMORY: Final = ("-l h_vmem", "-l m_mem_free", "-l mem_free")
#: What ``4-`` is read as.
_MOST: Final = 9999999
NAMES: Final = ("-pe", *_MEMORY, "-l")


# -- sizes
def _bytes(text: str) -> int:
    amount = memory(text)
    if amount is None:
        raise Kept("no limit")
    return amount


_SIZE: Final = writer(",K,M,G,T")
SPACE: Final = Grammar(_bytes, lambda text: _SIZE(int(text)), "a size such as 4G")


# -- slots
_SLOTS: Final = re.compile(r"(\d{0,7})(?:([-:])(\d{0,7}))?", re.ASCII)


def _range(text: str) -> tuple[int, int] | None:
    """Least and most of ``4``, ``4-8``, ``-8``, ``4-``, and of a list of such."""
    matches = [_SLOTS.fullmatch(part) for part in text.split(",")]
    ends: list[int] = []
    for hit in matches:
        if hit is None or not (hit[1] or hit[3]):
            return None
        first = int(hit[1] or 1)
        ends += (first, first if hit[2] is None else int(hit[3] or _MOST))
    return (min(ends), max(ends)) if min(ends) > 0 else None


def read_slots(reading: Reading, options: Mapping[str, Option]) -> None:
    """The options of ``NAMES``."""
    option = options.get("-pe")
    if option is not None:
        name, _, text = (option.value or "").partition(" ")
        span = _range(text)
        if span is None:
            reading.misfit(option, f"{text} is no number of slots", "NAME N[-M][,...]")
        else:
            several = name if "," not in text else f"{name} {text}"
            if name != _ANY_PE:
                reading.put("Extension[name=pe,type=sge]", several, option)
            if span[0] == span[1]:
                reading.put("Requested/Processors", span[0], option)
            else:
                reading.put("Requested/Processors", span[0], option, op="GE")
                reading.put("Requested/Processors", span[1], option, op="LE")
            _read_hosts(reading, option, name, span)
    memory = [options[name] for name in _MEMORY if name in options]
    _read_complexes(reading)
    if memory:
        _read_memory(reading, memory[0], option is not None)
    for other in memory[1:]:
        reading.keep(other)
        reading.tell(SITE, other, f"kept for Grid Engine; {memory[0].name[3:]} is taken for the memory", "info")
    _read_resources(reading)


def _read_hosts(reading: Reading, option: Option, name: str, span: tuple[int, int]) -> None:
    """The hosts of the slots, by the allocation rule of the site profile, else by a name that is used for one host."""
    site = reading.context.site
    environment = None if site is None else site.sge.pe.get(name)
    rule = None if environment is None else environment.allocation_rule
    if environment is None and name in _ONE_HOST and span[1] > 1:
        reading.put("Requested/NodeCount", 1, option)
        reading.tell(SITE, option, f"the slots of {name} are taken to be on one host, as its name says; sge.pe.{name} "
                     "of a site profile knows")
    elif rule == "$pe_slots" and span[1] > 1:
        reading.put("Requested/NodeCount", 1, option)
    elif isinstance(rule, int) and span[0] == span[1] and span[0] % rule == 0:
        reading.put("Requested/NodeCount", span[0] // rule, option)


def _read_memory(reading: Reading, option: Option, parallel: bool) -> None:
    site = reading.context.site
    per_slot = None if site is None else site.sge.h_vmem_per_slot
    where = "Requested/Memory" if per_slot is False else "Requested/Memory[metric=PerSlot]"
    reading.row(Row(option.name, where, SPACE), option)
    if reading.job.requested is None or reading.job.requested.first("Memory") is None:
        return
    if option.name != _MEMORY[0]:
        reading.put("Extension[name=memory,type=sge]", option.name[3:], option)
    if parallel and per_slot is None:
        reading.tell(SITE, option, "taken as an amount for each slot; what it is the site knows")


def write_slots(asking: Asking) -> Written:
    """The same of a job."""
    part = one_part(asking, ranges=True)
    slots = _slots(asking, part)
    options, resources = _environment(asking, part, slots), list[str]()
    if part.memory is not None:
        name = asking.extension("memory", "sge")
        resource = "h_vmem" if name is None or not fits(asking, name, name.text) else name.text
        size = _SIZE(_memory(asking, part, part.memory, slots or 1, resource))
        if f"-l {resource}" in _MEMORY:
            options.append((f"-l {resource}", size))
        else:
            resources.append(f"{resource}={size}")
        for e in part.beside:
            asking.dropped(e, "another amount of memory is written")
    resources += _resources(asking, slots or 1)
    if part.gpus is not None:
        resources.append(_gpus(asking, part, part.gpus, slots or 1))
    return options + [("-l", text) for text in _once(asking, sorted(resources, reverse=True))]


def _slots(asking: Asking, part: Part) -> int | None:
    """Slots in all: a slot is a processor; None: nothing says how many."""
    slots = part.processor_total
    if slots is None and part.node_stated:
        slots = part.node_stated
        asking.note(APPROXIMATED, part.sources.get("nodes"), "NodeCount: a node is written as one slot" if slots == 1
                    else f"NodeCount: {slots} nodes are written as {slots} slots",
                    subject="NodeCount")
    tasks = part.task_total
    if tasks is not None and slots is not None and slots != tasks:
        each = part.processors_each
        asking.note(APPROXIMATED, part.sources.get("cpus") or part.sources.get("processors"),
                    f"Processors: {each or slots} of {'each task' if each else 'all tasks'} are {slots} slots in all",
                    subject="Processors")
    return slots


def _environment(asking: Asking, part: Part, slots: int | None) -> Written:
    """``-pe`` with its name: the one that was read, else that of the site profile, else a placeholder."""
    named = asking.extension("pe", "sge")
    most = part.processors_most if part.processors is not None else None
    if named is None:
        _nodes(asking, part, slots)
    if slots is None or (slots == 1 and most is None and named is None):
        if named is not None:
            asking.dropped(named, "nothing says how many slots")
        return []
    text = str(slots) if most is None else f"{slots}-" if most == _MOST else f"{slots}-{most}"
    if named is not None:
        name, _, kept = named.text.partition(" ")
        if kept and _range(kept) == (slots, most or slots):
            text = kept
        return [("-pe", f"{name} {text}")]
    return [("-pe", f"{_named(asking, part)} {text}")]


def _named(asking: Asking, part: Part) -> str:
    site = asking.context.site
    if site is not None:
        on_one_host = part.node_stated == 1 or (part.task_total == 1 and (part.processor_total or 1) > 1)
        name = site.sge.smp() if on_one_host else site.sge.spread(part.per_node)
        if name is not None:
            return name
    asking.note(SITE, None, f"Processors: {_ANY_PE} stands for the parallel environment, whose name the site knows",
                subject="Processors")
    return _ANY_PE


def _nodes(asking: Asking, part: Part, slots: int | None) -> None:
    """The finding for nodes, which a parallel environment decides."""
    site = asking.context.site
    per_node = part.per_node
    if site is not None and (site.sge.smp() if part.node_stated == 1 else per_node and site.sge.spread(per_node)):
        return
    for tag, wanted_count in (("NodeCount", part.nodes), ("TaskDistribution", part.per_node or part.geometry or None)):
        if wanted_count is not None:
            asking.note(SITE, None, f"{tag}: how slots are spread over hosts is up to the parallel environment",
                        "info" if slots in (None, 1) else None, tag)


#: Bytes to which the memory of a slot is rounded up where it cannot be shared out evenly, so that people can read it.
_ROUND: Final = 1 << 20


def _memory(asking: Asking, part: Part, memory: Amount, slots: int, resource: str) -> int:
    """Bytes of a slot; of the job where the site profile says that the resource is so counted."""
    site = asking.context.site
    if site is not None and site.sge.complex.get(resource) == "Memory per job":
        return total_of(memory, part) or memory.value
    if memory.per == "PerProcessor":
        return memory.value
    if memory.per == "job" and site is not None and site.sge.h_vmem_per_slot is False:
        return memory.value
    total = total_of(memory, part)
    if total is None and memory.per == "PerNode" and (
            nodes := nodes_of(asking, part) or part.node_factor or (1 if slots == 1 else None)):
        total = memory.value * nodes
    if total is None:
        unknown_factor(asking, memory.entry, f"memory {memory.per} is written for each slot")
        return memory.value
    if memory.per == "task" and slots == part.tasks_assumed:
        return -(-total // slots)
    rest = total % slots
    asking.note(APPROXIMATED, memory.entry, "written for each slot, of which there is one" if slots == 1 else
                f"written for each of {slots} slots{', rounded up' if rest else ''}")
    return -(-total // (slots * _ROUND)) * _ROUND if rest else total // slots


def _gpus(asking: Asking, part: Part, gpus: Amount, slots: int) -> str:
    """``gpu=1``: by the name and of what the site profile says, else by the usual one, which is told."""
    total = total_of(gpus, part) or gpus.value
    site = asking.context.site
    complexes = {} if site is None else site.sge.complex
    name, per = next(((name, kind) for name, kind in complexes.items() if kind.startswith("GPU")), ("", ""))
    if per == "GPU per job" or (name and not total % slots):
        if gpus.kind:
            asking.note(APPROXIMATED, gpus.entry, f"type {gpus.kind} is left out")
        return f"{name}={total if per == 'GPU per job' else total // slots}"
    kind = f"; type {gpus.kind} is left out" if gpus.kind else ""
    what = "whole job" if total % slots else "slot"
    name = name or "gpu"
    asking.note(SITE, gpus.entry, f"the resource is called {name} and counted for each {what}, both are the site's"
                f"{kind}")
    return f"{name}={total if total % slots else total // slots}"


# -- resources of the site
_SIMPLE: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_HOST: Final = re.compile(r"[\w.-]{1,255}", re.ASCII)
_HOSTS: Final = ("h", "hostname")
_TRUE: Final = ("", "1", "true", "TRUE", "True")


def _read_resources(reading: Reading) -> None:
    """A host, resources that are simply wanted, and what only the site can tell: each name by its last value."""
    last = {(o.value or "").partition("=")[0]: o for o in reading.every("-l")}
    for name, option in sorted(last.items()):
        text = (option.value or "").partition("=")[2]
        if not name:
            reading.stumble(option, "has a value without a name", "NAME=VALUE,...")
        elif _complex(reading, name):
            continue                        # it is read already
        elif name in _HOSTS and (choice := _host_names(text)) is not None:
            put(reading, "Requested/Node", choice, option)
        elif name == "exclusive" and text in _TRUE:
            reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", option)
        elif _SIMPLE.fullmatch(name) and "=" not in (option.value or "") and name not in _HOSTS:
            reading.put("Requested/Feature", name, option)
        else:
            reading.keep(Option(f"-l {name}", text if "=" in (option.value or "") else None, option.line, option.column,
                                option.text))


def _complex(reading: Reading, name: str) -> str:
    """What the site profile says that a complex is; nothing where it does not."""
    site = reading.context.site
    return "" if site is None else site.sge.complex.get(name, "")


def _read_complexes(reading: Reading) -> None:
    """The resources that the site profile knows as GPUs, memory or licences, each by its last value."""
    if reading.context.site is None or not reading.context.site.sge.complex:
        return
    slots = None if reading.job.requested is None else reading.job.requested.value("Processors")
    for option in {(o.value or "").partition("=")[0]: o for o in reading.every("-l")}.values():
        name, _, text = (option.value or "").partition("=")
        kind, _, per = _complex(reading, name).partition(" per ")
        if not kind:
            continue
        count = slots if isinstance(slots, int) and per != "job" else 1
        named = option._replace(name=f"-l {name}", value=text)
        if kind == "Memory":
            where = "Requested/Memory" if per == "job" else "Requested/Memory[metric=PerSlot]"
            reading.row(Row(named.name, where, SPACE), named)
            reading.put("Extension[name=memory,type=sge]", name, named)
        elif not text.isdecimal():
            reading.keep(named)
        elif kind == "GPU":
            reading.put("Requested/Resource[name=GPU]", int(text) * count, named)
        else:
            reading.put("Requested/Resource[name=License]", int(text) * count, named, type=name)


def _host_names(text: str) -> Choice | None:
    """The hosts of an expression in which any will do or none; None for another one."""
    choice = parsed(text, lambda name: Term(name) if _HOST.fullmatch(name) else None)
    return choice if choice is not None and (any_of(choice) or none_of(choice)) else None


def _resources(asking: Asking, slots: int) -> list[str]:
    """``name`` or ``name=value`` of all that is asked for by a name of the site's."""
    texts = [text for e in simple_features(asking) if (text := _feature(asking, e))]
    texts += [text for e in asking.find("Resource") if (text := _counted(asking, e, slots))]
    exclusive = asking.extension("ExclusiveNodeUse")
    if exclusive is not None and exclusive.text != "false":
        site_resource(asking, exclusive, "exclusive")
        texts.append("exclusive=true")
    return texts + _hosts(asking) + _kept(asking)


def _kept(asking: Asking) -> list[str]:
    """Resources that were kept as they are, but for those with an option of their own."""
    texts = []
    for e in asking.entries:
        name = e.attributes.get("name", "") if e.tag == "Extension" and e.attributes.get("type") == "sge" else ""
        if name.startswith("l ") and name[2:] not in RESOURCES:
            e.used = True
            e.understood |= {"name", "type"}
            texts.append(name[2:] if e.text == f"-{name}" else f"{name[2:]}={e.text}")
    return texts


def _once(asking: Asking, texts: list[str]) -> list[str]:
    """Each resource once, for the last one of a name counts; the one with a value stays."""
    by_name: dict[str, str] = {}
    for text in texts:
        name = text.partition("=")[0]
        if name in by_name:
            asking.note(DROPPED, None, f"{text}: dropped, for another request for {name} is written", subject=name)
        by_name.setdefault(name, text)
    return [by_name[name] for name in sorted(by_name)]


def _feature(asking: Asking, e: Entry) -> str:
    name, sign, value = e.text.partition("=")
    fit = _SIMPLE.fullmatch(name) and (not sign or _SIMPLE.fullmatch(value))
    if not fit or name in (*_HOSTS, *RESOURCES, "exclusive"):
        asking.dropped(e, f"{e.text} is no name of a resource")
        return ""
    site_resource(asking, e, name)
    return e.text


def _counted(asking: Asking, e: Entry, slots: int) -> str:
    """Licences and other things that are counted: an amount of the job as it stands; what follows from tasks, nodes or
    processors for each slot, as Grid Engine counts where the site says nothing else, where it can be shared out so."""
    name = e.attributes.get("name", "")
    if name == "GPU":
        e.used = bool(e.understood & {"units"})
        return ""
    e.understood |= {"name", "type", "metric"}
    name = e.attributes.get("type", "license") if name == "License" else name
    if not fits(asking, e, name):
        return ""
    total = in_all(asking, e)
    if e.level == JOB and e.attributes.get("metric", "Total") == "Total":
        site_resource(asking, e, name)
        return f"{name}={total}"
    each = total if total % slots else total // slots
    what = "slot" if each < total else "job"
    asking.note(SITE, e, f"asked for as the resource {name}, counted for each {what}; both are the site's")
    return f"{name}={each}"


def _hosts(asking: Asking) -> list[str]:
    """``h=a|b``: any of several hosts, also where all of them are asked for, which Grid Engine cannot say; ``h=!a&!b``:
    none of them."""
    wanted_names: list[str] = []
    unwanted: list[str] = []
    excluding: list[Term] = []
    alone = True
    for choice in choices(asking, "Node"):
        some, none = any_of(choice), none_of(choice)
        names = expanded(some or none or [Term("", kind="other")])
        if names is None or not all(map(_HOST.fullmatch, names)) or (
                wanted_names and some and not (alone and len(names) == 1)):
            drop(asking, choice, "Grid Engine names hosts of which any will do")
        elif some:
            alone = alone and len(names) == 1
            wanted_names += names
        else:
            unwanted += names
            excluding += none or ()
    names_left = [name for name in wanted_names if name not in unwanted]
    if alone and len(names_left) > 1:
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
    if wanted_names and not names_left:
        asking.note(DROPPED, None, "Node: the hosts that are asked for are excluded too", subject="Node")
    for entry in {id(term.entry): term.entry for term in excluding}.values() if names_left else ():
        asking.note(APPROXIMATED, entry, "left out, for no host is taken but those that are "
                    "asked for by name", "info")
    return [f"h={'|'.join(names_left) if names_left else '&'.join(f'!{name}' for name in dict.fromkeys(unwanted))}"] \
        if names_left or (unwanted and not wanted_names) else []
