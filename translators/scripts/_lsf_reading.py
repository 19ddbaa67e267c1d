"""What an LSF script asks for, read: slots, resource requirements, GPUs, hosts.

A slot is a processor (decisions 8). Of ``-R`` everything that another dialect can say becomes properties, the rest is
kept as ``Extension type="lsf" name="R"``. Memory without a unit is in that of a site profile, else in LSF's own
(decisions 17).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.document.element import Container
from sssjob.document.model import TaskGroup
from sssjob.document.units import byte_factor, to_bytes
from sssjob.findings import Findings
from sssjob.translators.scripts._lsf_expressions import compound, sections
from sssjob.translators.scripts._lsf_names import read_hosts, selection
from sssjob.translators.scripts.base import PARTS, SITE, Reading
from sssjob.translators.scripts.raw import Option, split_outside

__all__ = ["LIMIT", "NAMES", "bound", "read_layout"]

NAMES: Final = ("-n", "-nnodes", "-R", "-M", "-gpu", "-m")


def read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    """The options of ``NAMES``."""
    slots = options.get("-n")
    apart = _apart(reading, slots) if "-R" in options and "-nnodes" not in options else []
    if (nodes := options.get("-nnodes")) is not None:
        if re.fullmatch(r"0*[1-9]\d{0,8}", nodes.value or "", re.ASCII):
            reading.put("Requested/NodeCount", int(nodes.value or ""), nodes)
            reading.put("Extension[name=nnodes,type=lsf]", "true", nodes)
            exclusive = next((option for option in reading.options if option.name == "-x"), None)
            if exclusive is None:                        # CSM allots hosts whole
                reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", nodes)
            else:
                reading.put("Extension[name=exclusive,type=lsf]", "true", exclusive)
        else:
            reading.misfit(nodes, "is no number of nodes", "a number")
    if "-R" in options and not apart:
        _read_requirements(reading)
    if slots is not None and not apart:
        _read_slots(reading, slots)
    if (limit := options.get("-M")) is not None:
        _read_memory_limit(reading, limit)
    if (gpus := options.get("-gpu")) is not None:
        _read_gpus(reading, gpus)
    if (hosts := options.get("-m")) is not None:
        read_hosts(reading, hosts)


_COUNTS: Final = re.compile(r"\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?", re.ASCII)


def _read_slots(reading: Reading, option: Option) -> None:
    match = _COUNTS.fullmatch(option.value or "")
    if match is None or not int(match[1]) or (match[2] and int(match[2]) < int(match[1])):
        reading.misfit(option, "is no number of slots", "N or MIN,MAX")
    elif match[2] is None or int(match[2]) == int(match[1]):
        _put_slots(reading, int(match[1]), option)
    else:
        cores = _cores(reading)
        reading.put("Requested/Processors", int(match[1]) * cores, option, op="GE")
        reading.put("Requested/Processors", int(match[2]) * cores, option, op="LE")


def _cores(reading: Reading) -> int:
    """The cores of each slot, as affinity says: the slots of a job are its tasks, and Processors is a total."""
    groups = reading.job.task_groups
    each = next(groups[0].containers("TaskDefaults"), None) if groups else None
    requested = None if each is None else next(each.containers("Requested"), None)
    cores = None if requested is None else requested.value("Processors")
    return cores if isinstance(cores, int) else 1


def _put_slots(reading: Reading, count: int, option: Option) -> None:
    """Slots are processors (decisions 8), but tasks where each has processors of its own."""
    tasks = None if reading.group is None else next(reading.group.containers("TaskDefaults"), None)
    if tasks is not None and _walked(tasks, "Processors"):
        reading.put("TaskGroup/TaskCount", count, option)
    else:
        reading.put("Requested/Processors", count, option)


def _given(reading: Reading) -> list[Option]:
    """All ``-R`` of the script, or all of the command line."""
    options_given = [o for o in reading.options if o.name == "-R"]
    return [o for o in options_given if not o.line] or options_given


def _apart(reading: Reading, slots: Option | None) -> list[tuple[int, str]]:
    """The parts of a compound requirement, each put as a task group; none where something in it only LSF can say."""
    options_given = _given(reading)
    try:
        parts = compound(options_given[0].value or "") if len(options_given) == 1 else None
        if not parts or len(parts) > PARTS or (slots is not None and slots.value != str(sum(n for n, _ in parts))):
            return []
        trial = Reading(reading.dialect, replace(reading.context, findings=Findings("trial")))
        if any(_put_part(trial, options_given[0], *part) for part in parts):
            return []
    except ValueError:
        return []               # the requirement is kept as it stands
    for part in parts:
        _put_part(reading, options_given[0], *part)
    reading.several, reading.group = False, None
    return parts


def _put_part(reading: Reading, option: Option, count: int, text: str) -> str:
    """One task group; what no property can hold."""
    reading.several, reading.group = True, TaskGroup()
    rest = ""
    for name, inside in sorted(sections(text), key=lambda pair: _ORDER.get(pair[0], len(_ORDER))):
        reader = _SECTIONS.get(name)
        rest += inside if reader is None else reader(reading, option, inside)
    _put_slots(reading, count, option)
    return rest


def _read_requirements(reading: Reading) -> None:
    """What all requirements come to."""
    options_given = _given(reading)
    all_sections: list[tuple[str, str, Option]] = []
    for option in options_given:
        try:
            all_sections += [(name, text, option) for name, text in sections(option.value or "")]
        except ValueError as error:
            reading.misfit(option, str(error), "select[...] rusage[...] span[...]")
    kept: dict[Option, list[str]] = {option: [] for option in options_given}
    for name, text, option in sorted(all_sections, key=lambda row: _ORDER.get(row[0], len(_ORDER))):
        reader = _SECTIONS.get(name)
        rest = text if reader is None else reader(reading, option, text)
        if rest:
            kept[option].append(rest if name == "" else f"{name}[{rest}]")
    _hosts_last(reading)
    for option, texts in kept.items():
        if texts:
            reading.put("Extension[name=R,type=lsf]", " ".join(texts), option)


def _said(reading: Reading, tag: str) -> bool:
    """Whether the part being read has said it."""
    root: Container = reading.group if reading.several and reading.group is not None else reading.job
    return _walked(root, tag)


def _walked(container: Container, tag: str) -> bool:
    for item in container.items:        # noqa: SIM110   any() would make a generator for each container
        if _walked(item, tag) if isinstance(item, Container) else item.tag == tag:
            return True
    return False


_SPANNED: Final = re.compile(r"(hosts|ptile)\s*=\s*(\d{1,9})", re.ASCII)
#: ``core(3,same=socket,exclusive=(socket,alljobs))*1``: what stands behind the number is a part of the binding.
_CORES: Final = re.compile(r"core(?:\(\s*(\d{1,6})\s*(?:,([\w=,() ]{1,200}))?\))?(?:\s*\*\s*1)?", re.ASCII)


def _span(reading: Reading, option: Option, text: str) -> str:
    match = _SPANNED.fullmatch(text)
    if match is None or not int(match[2]) or (match[1] == "hosts" and match[2] != "1"):
        return text
    if match[1] == "ptile" and int(match[2]) > 1 and _is_one_slot(reading):
        return text         # it says nothing of one slot, and a TaskDistribution would be that of several
    if match[1] == "hosts":
        if _said(reading, "NodeCount"):
            return text
        reading.put("Requested/NodeCount", 1, option)
    elif _said(reading, "TaskDistribution"):
        return text
    else:
        reading.put("TaskGroup/TaskDistribution[type=TasksPerNode]", match[2], option)
    return ""


def _affinity(reading: Reading, option: Option, text: str) -> str:
    cores, _, binding = text.partition(":")
    match = _CORES.fullmatch(cores.strip())
    tasks = None if reading.group is None else next(reading.group.containers("TaskDefaults"), None)
    if match is None or not int(match[1] or 1) or (tasks is not None and _walked(tasks, "Processors")) or (
            (binding or match[2]) and reading.several):
        return text
    reading.put("TaskGroup/TaskDefaults/Requested/Processors", int(match[1] or 1), option)
    if binding or match[2]:
        inner = f"({match[2]})" if match[2] else ""
        reading.put("Extension[name=R.affinity,type=lsf]", inner + (f":{binding}" if inner and binding else binding),
                    option)
    return ""


def bound(binding: str) -> tuple[str, str]:
    """What is kept of ``affinity[]`` as it stands in the parentheses of a core, and behind them."""
    inner, _, outer = binding.rpartition(")") if binding.startswith("(") else ("", "", binding)
    return (f",{inner[1:]}" if inner else ""), (f":{outer.removeprefix(':')}" if outer else "")


_AMOUNT: Final = re.compile(r"(\w+)\s*=\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMGTPE]B?)?(?:/(host|task|job))?", re.ASCII
                            | re.IGNORECASE)
_IN_TIME: Final = re.compile(r"\b(?:duration|decay)\s*=")
_PLACES: Final = {None: "Requested/Memory[metric=PerNode]", "host": "Requested/Memory[metric=PerNode]",
                  "job": "Requested/Memory", "task": "TaskGroup/TaskDefaults/Requested/Memory"}


def _usage(reading: Reading, option: Option, text: str) -> str:
    """Memory and scratch space of a known unit; everything else is left. How long memory is reserved only LSF says."""
    if "||" in text or (reading.several and _IN_TIME.search(text)):
        return text
    rest = []
    for part in split_outside(text, ",", str.strip):
        items = [item.strip() for item in part.split(":") if item.strip()]
        times = sorted((item for item in items if _IN_TIME.match(item)), reverse=True)      # duration before decay
        for item in items:
            match = _AMOUNT.fullmatch(item)
            if match is not None and (match[1] == "mem" or not times) and _amount(reading, option, match):
                if times:
                    reading.put(f"Extension[name=R.{times[0].partition('=')[0].strip()},type=lsf]",
                                ":".join(times).partition("=")[2].strip(), option)
            elif item not in times:
                rest.append(":".join([item, *times]))
    return ",".join(rest)


def _amount(reading: Reading, option: Option, match: re.Match[str]) -> bool:
    """Whether an amount was put."""
    name, number, suffix, per = match[1], match[2], match[3], match[4] and match[4].lower()
    if name not in ("mem", "tmp") or _said(reading, "Memory" if name == "mem" else "Disk"):
        return False
    site = reading.context.site
    unit = f"{suffix[0].upper()}B" if suffix else None if site is None else site.lsf.unit_for_limits
    if unit is None and name == "mem":
        unit = _assumed(reading, option, f"mem={number}", "MB")
        reading.put("Extension[name=memory,type=lsf]", match[0], option)
    if unit is None or (name == "tmp" and per not in (None, "host")):
        reading.tell(SITE, option, f"{name}={number}: the unit is the site's; kept as it is")
        return False
    per = per if per or name == "tmp" else _per_task(reading, option, match[0].strip())
    disk = "Requested/Disk" if _is_one_slot(reading) else "Requested/Disk[metric=PerNode]"
    where = disk if name == "tmp" else _PLACES[per]
    reading.bytes(where, int(to_bytes(Decimal(number), unit).to_integral_value(ROUND_CEILING)), option)
    return True


def _per_task(reading: Reading, option: Option, text: str) -> str | None:
    """``task`` where the site says that memory of several slots counts for each of them; where it says nothing, LSF
    takes it for each host (lsf.conf(5), RESOURCE_RESERVE_PER_TASK)."""
    site = reading.context.site
    per_task = None if site is None else site.lsf.reserve_per_task
    if per_task is None and not _is_one_slot(reading):
        reading.tell(SITE, option, f"{text} is taken for each host, as LSF does where the site says nothing "
                     "(reserve_per_task in [lsf] of a site profile)", consequence="costs")
    return "task" if per_task and not _is_one_slot(reading) else None


def _assumed(reading: Reading, option: Option, text: str, unit: str) -> str:
    """The unit that LSF takes where neither the script nor LSF_UNIT_FOR_LIMITS of the site says one (lsf.conf(5))."""
    reading.tell(SITE, option, f"{text} has no unit: {unit} is taken, as LSF does where the site says nothing "
                 "(unit_for_limits in [lsf] of a site profile)")
    return unit


def _is_one_slot(reading: Reading) -> bool:
    """Whether there is one slot, as where no number is said: it is on one host, whose amounts are those of the job."""
    return not reading.several and not any(option.name == "-nnodes" or (option.name == "-n" and option.value != "1")
                   for option in reading.options)


#: In the order of writing.
_SECTIONS: Final = {"select": selection, "span": _span, "rusage": _usage, "affinity": _affinity}
_ORDER: Final = {name: at for at, name in enumerate(_SECTIONS)}


def _hosts_last(reading: Reading) -> None:
    """Hosts that are not wanted after the features, as they are written."""
    if reading.job.requested is not None:
        reading.job.requested.items.sort(key=lambda item: item.tag == "Node")


_GPUS: Final = re.compile(r"(\d{1,9})(?:/(task|host))?", re.ASCII)


def _read_gpus(reading: Reading, option: Option) -> None:
    """``num=2/task:gmodel=V100``; how they are shared is kept for LSF."""
    pairs = [part.partition("=") for part in (option.value or "").split(":")]
    values = {name.strip(): value for name, sign, value in pairs if sign}
    match = _GPUS.fullmatch(values.pop("num", "1"))
    if match is None or not all(name.strip() and sign for name, sign, _ in pairs):
        reading.keep(option)
        return
    where = "TaskGroup/TaskDefaults/Requested/Resource[name=GPU]" if match[2] == "task" else \
        "Requested/Resource[name=GPU]" if _is_one_slot(reading) else "Requested/Resource[name=GPU,metric=PerNode]"
    kind = values.pop("gmodel", "")
    reading.put(where, int(match[1]), option, **({"type": kind} if kind else {}))
    if values:
        reading.put("Extension[name=gpu,type=lsf]", ":".join(f"{k}={v}" for k, v in values.items()), option)


LIMIT: Final = re.compile(r"(\d{1,15})([KMGTPE]?)B?", re.ASCII | re.IGNORECASE)


def _read_memory_limit(reading: Reading, option: Option) -> None:
    """``-M``: its unit is the site's where it has none; it is the memory where nothing else says that."""
    text = (option.value or "").removesuffix("!")      # which makes the limit a hard one, as LSF alone can say
    match = LIMIT.fullmatch(text)
    if match is None:
        reading.misfit(option, "is no size", "a number with KB, MB, GB ...")
        return
    site = reading.context.site
    unit = f"{match[2].upper()}B" if match[2] else None if site is None else site.lsf.unit_for_limits
    has_memory = any(p.tag == "Memory" or (p.get("name") == "R" and "mem=" in p.text) for p,
                     _ in reading.origins.values())
    if has_memory:
        if unit is None:
            reading.keep_alone(option, "the unit is the site's")
        else:
            reading.keep(option)
        return
    reading.group = next(iter(reading.job.task_groups), None)
    factor = byte_factor(unit or _assumed(reading, option, f"-M {match[0]}", "KB"))
    of_job = None if site is None else site.lsf.job_memory_limit
    if of_job is None and not _is_one_slot(reading):
        reading.tell(SITE, option, "taken for each task, as LSF does where the site says nothing (job_memory_limit in "
                     "[lsf] of a site profile)", consequence="costs")
    reading.bytes("Requested/Memory" if of_job else "TaskGroup/TaskDefaults/Requested/Memory", int(match[1]) * factor,
                  option)
    reading.put("Extension[name=memory,type=lsf]",
                "M" if unit and text == option.value else f"M {option.value}", option)
