"""The size of a job of Flux and the nodes that it may have (RFC 35)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, SITE, Asking, Entry, Reading, Special
from sssjob.translators.scripts.choices import (
    Choice,
    Either,
    Every,
    Term,
    any_of,
    choices,
    drop,
    infix,
    negated,
    none_of,
    put,
    sayable,
)
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.layout import Amount, Part, on_nodes, one_part, task_processors, total_of
from sssjob.translators.scripts.raw import Option
from sssjob.translators.specs._flux_constraints import as_object

LAYOUT: Final = {"--nodes": "Requested/NodeCount", "--nslots": "TaskGroup/TaskCount",
                  "--cores-per-slot": "TaskGroup/TaskDefaults/Requested/Processors",
                  "--gpus-per-slot": "TaskGroup/TaskDefaults/Requested/Resource[name=GPU]"}


_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)


def read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    """Numbers of nodes, slots, cores and GPUs, and what they are per."""
    counts: dict[str, int] = {}
    for name, where in LAYOUT.items():
        option = options.get(name)
        if option is None:
            continue
        if not _COUNT.fullmatch(option.value or ""):
            reading.misfit(option, "is no number", "a number")
        elif not int(option.value or ""):
            reading.keep(option)        # taken as not said
        else:
            counts[name] = int(option.value or "")
            reading.put(where, counts[name], option)
    nodes, slots = counts.get("--nodes"), counts.get("--nslots")
    if nodes and slots and nodes > slots:
        o = options["--nslots"]
        reading.refuse(f"{nodes} nodes for {slots} slots", o.line, o.column, o.name, o.text)
    if (only := options.get("--exclusive")) is not None:
        if not nodes:
            reading.refuse("--exclusive wants --nodes", only.line, only.column, only.name, only.text)
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", only)
        if slots is None:
            reading.put("Extension[name=exclusive,type=flux]", "true", only)
    elif nodes and slots is None:       # flux batch then takes a slot on each node, and the nodes for itself alone
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", options["--nodes"])


def write_layout(asking: Asking) -> Written:
    """The size of the job in options of flux: slots of one size, as many on each node."""
    part = one_part(asking)
    on_nodes(asking, part)
    tasks, cpus = task_processors(asking, part)
    slots = _slots(asking, part, tasks)
    nodes = _nodes(asking, part, slots)
    gpus = None
    if part.gpus is not None:
        slots, cpus, gpus = _gpus(asking, part, part.gpus, (slots, cpus))
    options: Written = []
    if nodes is not None:
        options.append(("--nodes", str(nodes)))
    for name, count in (("--nslots", slots), ("--cores-per-slot", cpus), ("--gpus-per-slot", gpus)):
        if count is not None:
            options.append((name, str(count)))
    if part.memory is not None:
        asking.dropped(part.memory.entry)
        for e in part.beside:
            asking.dropped(e)
    return options + _exclusive(asking, nodes, options)


def _slots(asking: Asking, part: Part, tasks: int | None) -> int | None:
    """Slots in all."""
    if part.per_node is not None and part.per_node == tasks and not (part.tasks or part.nodes or part.processors):
        asking.note(APPROXIMATED, part.sources.get("distribution"), f"TaskDistribution: {tasks} slots on one node, "
                    "for the job does not say how many nodes", subject="TaskDistribution")
    if tasks is None and (part.cpus or part.gpus) and (part.node_stated is None or asking.source != "flux"):
        return part.node_stated or 1        # without a number of slots Flux takes its nodes whole
    return tasks


def _nodes(asking: Asking, part: Part, slots: int | None) -> int | None:
    """Nodes, on each of which Flux makes as many slots; with another number it would take more than is asked for."""
    nodes = part.node_total
    if part.nodes_most:
        asking.note(APPROXIMATED, part.sources["nodes"], f"NodeCount: {nodes} is taken of {nodes} to {part.nodes_most}",
                    subject="NodeCount")
    if nodes is None or slots is None:
        return nodes
    if part.geometry and len(set(part.geometry)) > 1:
        asking.note(APPROXIMATED, part.sources["distribution"], "Flux spreads slots evenly")
    if slots % nodes == 0:
        if part.per_node is not None and slots != part.per_node * nodes:
            asking.note(APPROXIMATED, part.sources.get("distribution"), f"TaskDistribution: {slots} slots are spread "
                        f"evenly, not {part.per_node} on each node", subject="TaskDistribution")
        return nodes
    entry = part.sources.get("nodes") or part.sources.get("distribution")
    message = f"{slots} slots cannot be spread evenly over {nodes} nodes, and Flux would take more"
    if entry is None:
        asking.note(DROPPED, None, f"NodeCount: {message}", subject="NodeCount")
    else:
        asking.dropped(entry, message)
    return None


def _gpus(asking: Asking, part: Part, gpus: Amount, size: tuple[int | None, int | None]
          ) -> tuple[int | None, int | None, int | None]:
    """(slots, cores of each, GPUs of each): GPUs of the job go with fewer and larger slots where they have to."""
    slots, cpus = size
    if gpus.kind:
        asking.note(SITE, gpus.entry, f"Flux has no types of GPUs; {gpus.kind} is left out")
    if gpus.per == "task":
        return slots, cpus, gpus.value
    total, nodes = total_of(gpus, part) or gpus.value, part.node_total
    whole = slots or nodes or 1
    if total % whole == 0:
        if total != whole or gpus.per not in ("PerNode", "job"):
            asking.note(APPROXIMATED, gpus.entry, f"{total} GPUs in all are shared out among {whole} slots", "info")
        return slots, cpus, total // whole
    if whole % total == 0 and total % (nodes or 1) == 0:
        for entry in filter(None, (gpus.entry, part.sources.get("tasks"))):
            asking.note(APPROXIMATED, entry, f"{total} GPUs in all: {total} slots with one each are written in place "
                        f"of {whole}")
        if (launcher := next(iter(asking.under(("Launcher", "Scheduler"))), None)) is not None and not (
                part.tasks or launcher.text == "single"):
            asking.note(APPROXIMATED, launcher, f"TaskCount: {whole} copies are started in {total} slots, of which "
                        "each has a GPU", subject="TaskCount")
        return total, (cpus or 1) * (whole // total), 1
    asking.dropped(gpus.entry, f"{total} GPUs cannot be shared out evenly among {whole} slots")
    return slots, cpus, None


def _exclusive(asking: Asking, nodes: int | None, options: Written) -> Written:
    entry = asking.extension("ExclusiveNodeUse")
    if nodes is not None and len(options) == 1 and asking.source not in ("", "flux"):
        asking.note(APPROXIMATED, None, "NodeCount: nodes without slots are whole ones in Flux", "info", "NodeCount")
    if entry is None or entry.text == "false":
        return []
    if len(options) == 1 and nodes is not None and asking.source == "flux" and \
            asking.extension("exclusive", "flux") is None:
        return []
    if entry.text != "true":
        asking.note(APPROXIMATED, entry, f"{entry.text} is written as exclusive nodes")
    if nodes is None:
        asking.dropped(entry, "exclusive nodes want a number of nodes")
        return []
    return [("--exclusive", None)]


# -- constraints
_TERM: Final = re.compile(r"(-?)(?:(host|hosts|hostlist):)?([\w.+@\[\]-]+(?:,[\w.+@\[\]-]+)*)", re.ASCII)
_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.+@-]*", re.ASCII)


def _terms(text: str) -> list[tuple[str, str, bool]] | None:
    """(tag, text, wanted) of terms that are all demanded; None for another expression of RFC 35."""
    terms: list[tuple[str, str, bool]] = []
    for word in re.split(r"\s*&&?\s*|\s+and\s+|\s+", text.strip()):
        match = _TERM.fullmatch(word)
        if match is None:
            return None
        if match[2]:
            terms.append(("Node", match[3], not match[1]))
            continue
        for name in (match[1] + match[3]).split(","):
            bare = name.removeprefix("-")
            if not _PROPERTY.fullmatch(bare) or bare in ("and", "or", "not"):
                return None
            terms.append(("Feature", bare, name == bare))
    return terms


def read_requires(reading: Reading, options: Mapping[str, Option]) -> None:
    """Features and hosts of --requires; an expression that asks for more than one of them at once is kept."""
    options_given = reading.every("--requires")
    all_terms = [_terms(o.value or "") for o in options_given]
    hosts = sum(tag == "Node" and positive for some in all_terms if some for tag, _, positive in some)
    choices_ = [_choice(o.value or "") if some is None else None for o,
                some in zip(options_given, all_terms, strict=True)]
    if hosts > 1 or any(some is None and choice is None for some, choice in zip(all_terms, choices_, strict=True)):
        for option in options_given:
            reading.keep(option)
        return
    for option, some, choice in zip(options_given, all_terms, choices_, strict=True):
        if choice is not None:
            put(reading, "Requested/Feature", choice, option)
        for tag, text, positive in some or ():
            kind = {} if tag == "Feature" else {"aggregation": "Range"} if "[" in text else {
                "aggregation": "List"} if "," in text else {}
            reading.put(f"Requested/{tag}", text, option, **kind, **({} if positive else {"op": "NE"}))


def _choice(text: str) -> Choice | None:
    """An expression of features alone, with alternatives; None for another one."""
    try:
        return _of_object(as_object(text))
    except ValueError:
        return None


def _of_object(value: dict[str, Any]) -> Choice:
    """The same of an object of RFC 31. Raises ValueError for other operators."""
    (operator, operands), = value.items()
    if operator == "properties":
        if not all(_PROPERTY.fullmatch(o.removeprefix("^")) for o in operands):
            raise ValueError("is no list of properties")
        names = tuple(Term(o.removeprefix("^"), not o.startswith("^")) for o in operands)
        return names[0] if len(names) == 1 else Every(names)
    if operator not in ("and", "or", "not"):
        raise ValueError("is about more than features")
    parts = tuple(map(_of_object, operands))
    if operator == "not":
        return negated(parts[0] if len(parts) == 1 else Every(parts))
    return (Every if operator == "and" else Either)(parts)


def write_requires(asking: Asking) -> Written:
    """--requires of features and hosts."""
    choices_written = [c for c in choices(asking, "Feature") if sayable(asking, c, _no_property)]
    kept, hosts = kept_of(asking, "requires"), _hosts(asking)
    # They are joined by a blank, which binds closer than |.
    several = len(choices_written) + len(kept) + len(hosts) > 1
    options: Written = [("--requires", e.text) for e in kept]
    options += [("--requires", infix(c, _property, "&", "|", inner=several)) for c in choices_written]
    return options + hosts


def _property(term: Term) -> str:
    return term.name if term.wanted else f"-{term.name}"


def _no_property(term: Term) -> str:
    return "" if term.kind == "name" and _PROPERTY.fullmatch(term.name) else \
        f"{term.name[:80]} is no property to ask for"


_HOSTS: Final = re.compile(r"[\w.+@\[\]-]+(?:,[\w.+@\[\]-]+)*", re.ASCII)


def _hosts(asking: Asking) -> Written:
    """Hosts any of which will do, and those that are not wanted."""
    host_lists: list[list[str]] = []
    unwanted: list[str] = []
    for choice in choices(asking, "Node"):
        some, none = any_of(choice), none_of(choice)
        names = [term.name for term in some or none or () if term.kind != "other"]
        if not names or not all(map(_HOSTS.fullmatch, names)):
            drop(asking, choice, "only lists of hosts can be said")
        elif none:
            unwanted += names
        else:
            host_lists.append(names)
    if len(host_lists) > 1 and any(len(names) > 1 for names in host_lists):
        asking.note(DROPPED, None, "Node: one list of hosts can be said", subject="Node")
        host_lists = host_lists[:1]
    elif len(host_lists) > 1 and asking.source != "flux":
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
    texts = [name for names in host_lists for name in names]
    return [("--requires", f"{sign}{','.join(names)}") for sign, names in (("host:", texts), ("-host:", unwanted))
            if names]


def kept_of(asking: Asking, name: str) -> list[Entry]:
    """What was kept of an option that may stand several times, in order."""
    return asking.extensions(name, "flux")


def several(name: str) -> Special:
    """An option that adds up and that only Flux knows."""
    def read(reading: Reading, options: Mapping[str, Option]) -> None:
        """Keep every occurrence of the option."""
        for option in reading.every(name):
            reading.keep(option)

    def write(asking: Asking) -> Written:
        """Write what was kept, one option each."""
        return [(name, e.text) for e in kept_of(asking, name.lstrip("-"))]

    return Special((name,), read, write, of=(f"Extension[name={name.lstrip('-')},type=flux]",))
