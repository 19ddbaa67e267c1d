"""Batch scripts of Torque: what differs from the PBS family, above all ``-l nodes=``.

Source: qsub(1B) and qsub.c of Torque 6.1; for the files of output its server and pbs_mom: job_clone
(src/server/job_func.c) adds ``-INDEX`` to the paths and the name of each element of an array, and fork_to_user
(src/resmom/requests.c) sets HOME and PBS_JOBID alone for what expand_words expands in paths; any other variable there
is an error, and the file is not delivered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.request.asked import JOB
from sssjob.request.layout import Kind
from sssjob.translators.scripts import _pbs, _pbs_lines
from sssjob.translators.scripts._pbs_chunks import (
    GPU_MODE,
    beside,
    chunk_count,
    gpus_of,
    pieces,
    read_nodes,
    read_process_memory,
)
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    SITE,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Special,
    harmless,
    table,
    translator,
)
from sssjob.translators.scripts.choices import host_of_each, one_host, simple_features
from sssjob.translators.scripts.common import Written, directory
from sssjob.translators.scripts.grammars import COUNT, TORQUE_SECONDS
from sssjob.translators.scripts.layout import (
    Amount,
    Part,
    join,
    part_of,
    perhaps_shared,
    spread,
    started,
    total_of,
    unknown_factor,
)
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.whole_job import memory_of_job, of_whole_job

__all__ = ["DIALECT", "TRANSLATOR"]

_LETTERS: Final = "a:A:b:c:C:d:D:e:EfFhIj:J:k:K:l:L:m:M:nN:o:p:P:q:r:S:t:T:u:v:Vw:W:xXz"
_COUNTS: Final = {row.name: row for row in (
    Row("-l procs", "TaskGroup/TaskCount", COUNT),
    Row("-l ncpus", "Requested/Processors", COUNT),
    Row("-l mem", "Requested/Memory", _pbs.SIZE),
)}


def _read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    if "-l nodes" in options:
        read_nodes(reading, options["-l nodes"])
        groups = reading.job.task_groups
        reading.group = groups[0] if groups else None
    for name, row in _COUNTS.items():
        if name in options:
            reading.row(row, options[name])
    if "-l pmem" in options:
        read_process_memory(reading, options["-l pmem"])
    if "-n" in options:
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", options["-n"])
    _read_access(reading, [options[name] for name in _ACCESS if name in options], alone="-n" in options)


#: How Moab and Maui are told who may share the nodes of a job (resource manager extensions, NACCESSPOLICY).
_ACCESS: Final = {"-l naccesspolicy": re.compile(r"SINGLE(?:JOB|TASK)", re.IGNORECASE),
                  "-W x": re.compile(r"NACCESSPOLICY[:=]SINGLE(?:JOB|TASK)", re.IGNORECASE)}


def _read_access(reading: Reading, options: list[Option], *, alone: bool) -> None:
    """Whole nodes; other policies, and what else ``-W x`` says, are kept. alone: whether whole nodes are asked for."""
    for option in options:
        if alone or not _ACCESS[option.name].fullmatch((option.value or "").strip("\"'")):
            reading.keep(option)
            continue
        alone = True
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", option)
        reading.put("Extension[name=access,type=torque]", f"{option.name} {option.value}", option)


def _write_layout(asking: Asking) -> Written:
    groups = asking.groups
    many = [asking.of(g) for g in groups] if len(groups) > 1 else [asking]
    parts = [(part_asking, part_of(part_asking)) for part_asking in many]
    for part_asking, part in parts:
        spread(part_asking, part)
        started(part_asking, part)
    if len(parts) > 1:
        of_whole_job(asking, [part for _, part in parts], memory=True)
    first = parts[0][1]
    features = any(part_asking.find(tag) for part_asking in many for tag in ("Feature", "Node"))
    options: Written = []
    if len(parts) > 1 or first.node_total or first.per_node or first.chunks or first.cpus or first.gpus or features \
            or (first.tasks and first.processors and first.tasks != first.processors):
        options.append(("-l nodes", "+".join(_nodes(part_asking, part) for part_asking, part in parts)))
    elif first.task_total is not None:
        options.append(("-l procs", str(first.task_total)))
    elif first.processors is not None:
        options.append(("-l ncpus", str(first.processors)))
    options += _memories(asking, parts)
    for part_asking, _ in parts:
        join(asking, part_asking)
    if (exclusive := asking.extension("ExclusiveNodeUse")) is not None and exclusive.text != "false":
        spelled = asking.extension("access", "torque")
        name = next((name for name in _ACCESS if spelled is not None and spelled.text.startswith(f"{name} ")), "-n")
        options.append((name, None if spelled is None or name == "-n" else spelled.text.removeprefix(f"{name} ")))
    return options


def _nodes(asking: Asking, part: Part) -> str:
    hosts = host_of_each(asking, part.node_total, part.tasks)
    count = max(len(hosts), part.node_total or 0) or chunk_count(part)
    perhaps_shared(asking, part)
    if not part.node_total and not hosts and (count > 1 or len(asking.groups) > 1):     # alone it is on one anyway
        asking.note(APPROXIMATED, None, f"NodeCount: {count} chunks, perhaps on one node, are written as nodes"
                    if count > 1 else "NodeCount: a group, perhaps on the node of another one, is written as a node",
                    subject="NodeCount")
    host = None if hosts else one_host(asking, "each part of -l nodes names one host")
    if host is not None and count != 1:
        asking.dropped(host, "each part of -l nodes names one host")
        host = None
    texts = []
    for kind in pieces(asking, part, count):
        ppn = kind.processors or kind.tasks
        launcher = next((e for e in asking.under(("Launcher", "Scheduler")) if e.text != "single"), None)
        if (kind.tasks is not None and ppn != kind.tasks) or (launcher is not None and part.cpus not in (None, 1)):
            source = next(filter(None, map(part.sources.get, ("tasks", "distribution"))), launcher)
            asking.note(APPROXIMATED, source, f"TaskCount: ppn={ppn} slots a node for {kind.tasks or 1} tasks",
                        subject="TaskCount")
        words = ([f"ppn={ppn}"] if ppn is not None else []) + _more(asking, part, kind)
        named, hosts = hosts[:kind.count], hosts[kind.count:]
        rest = [str(kind.count - len(named))] if len(named) < kind.count else []
        texts += [":".join([first, *words]) for first in named + ([host.text] if host is not None else rest)]
    return "+".join(texts)


def _more(asking: Asking, part: Part, kind: Kind) -> list[str]:
    """GPUs of a node, and its properties."""
    words = []
    if part.gpus is not None and (gpus := gpus_of(part, part.gpus, kind)):
        words.append(f"gpus={gpus}")
        if part.gpus.kind:
            asking.note(SITE, part.gpus.entry, f"type {part.gpus.kind} is written as a property of the node")
            words.append(part.gpus.kind)
        if (mode := asking.extension(GPU_MODE, "torque")) is not None:
            words.append(mode.text)
    for e in simple_features(asking):
        if re.fullmatch(r"[A-Za-z][\w.=-]*", e.text):
            words.append(e.text)
        else:
            asking.dropped(e, f"{e.text} is no property of a node")
    return words


def _memories(asking: Asking, parts: list[tuple[Asking, Part]]) -> Written:
    """The amounts of all parts: that of the job where any part has one, else that of a process of each part."""
    stated: dict[tuple[str, int], list[tuple[Asking, Part, Amount]]] = {}       # the parts that one Memory is about
    for part_asking, part in parts:
        if part.memory is not None:
            stated.setdefault(part.memory.entry.place, []).append((part_asking, part, part.memory))
    written = [(same, *_of_all(same)) for same in stated.values()]
    of_job = max([memory_of_job(asking) if len(parts) > 1 else 0] + [beside(*same[0][:2]) for same in stated.values()])
    if len(written) == 1 and (written[0][1] == "-l mem" or len(written[0][0]) == len(parts)):
        name, amount = written[0][1:]
        if name == "-l mem":
            amount, of_job = max(amount, of_job), 0
        options = [("-l mem", of_job)] if of_job else []
        return [(name, _pbs.size_text(str(amount))) for name, amount in (*options, (name, amount))]
    if written:
        asking.note(APPROXIMATED, None, "Memory: one amount is written for all parts of the job", subject="Memory")
        of_job = max(of_job, sum(amount if name == "-l mem" else _sum(same) for same, name, amount in written))
    return [("-l mem", _pbs.size_text(str(of_job)))] if of_job else []


def _of_all(same: list[tuple[Asking, Part, Amount]]) -> tuple[str, int]:
    """The option of the parts that one Memory is about; what defaults say each group has for itself."""
    name, amount = _memory(*same[0])
    return name, _sum(same) if name == "-l mem" and len(same) > 1 and same[0][2].entry.level != JOB else amount


def _sum(same: list[tuple[Asking, Part, Amount]]) -> int:
    return sum(total_of(memory, part) or memory.value for _, part, memory in same)


def _memory(asking: Asking, part: Part, memory: Amount) -> tuple[str, int]:
    """``-l mem`` of the job or ``-l pmem`` of a process; a process is one of the slots of ppn."""
    if memory.per == "job":
        return "-l mem", memory.value
    if memory.per == "task" and part.tasks_assumed == (part.processor_total or 1):
        return "-l pmem", memory.value
    total = total_of(memory, part)
    if memory.per == "PerProcessor":
        asking.note(APPROXIMATED, memory.entry, "written for each process")
        return "-l pmem", memory.value
    if total is None:
        unknown_factor(asking, memory.entry, f"memory {memory.per} is written for the whole job")
        return "-l mem", memory.value
    times = total // memory.value if memory.value else 1
    asking.note(APPROXIMATED, memory.entry, "written for the whole job" + (
        f", {times} times as much" if times > 1 else ""), None if times > 1 else "info")
    return "-l mem", total


ROWS: Final[tuple[AnyRow, ...]] = table((
    Row("-l walltime", "Requested/Duration", TORQUE_SECONDS),
    Special(("-l nodes", *_COUNTS, "-l pmem", "-n", *_ACCESS), _read_layout, _write_layout),
    Row("-l qos", "QualityOfService"),
    Row("-l advres", "Reservation"),
    _pbs.special_array("-t", lists=True, step=False),
    directory("-d", submits=False),
    *(Row(name) for name in ("-b", "-D", "-E", "-F", "-f", "-J", "-K", "-L", "-P", "-T", "-w", "-x")),
), _pbs.ROWS, after="-l walltime")

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="K c",
    looks="k S z") | {"l nice": "costs"}

DIALECT: Final = Dialect(
    "torque", "Torque", "#PBS", ROWS, _pbs_lines.scanner(_LETTERS, strict=False, dos=True), _pbs_lines.directive,
    _pbs_lines.arguments(_LETTERS), {"{jobid}": "${PBS_JOBID}"},
    ("PBS_",), _pbs_lines.live, (".torque", ".pbs"), starts_in="home", exports=False, merges=False, open=("l ", "W "),
    foreign=("-l select", "-l place", "-J"), marks=(_pbs_lines.PREFIX,),
    files=("{name}.o{jobid}", "{name}.e{jobid}"), files_in="submit", of_hosts=True, of_input="STDIN",
    numbered="-{index}", element="-{index}", consequences=_HARMLESS,
    spellings=("access",))
TRANSLATOR: Final = translator(DIALECT)
