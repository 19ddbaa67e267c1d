"""Batch scripts of Torque: what differs from the PBS family, above all ``-l nodes=``.

Source: qsub(1B) and qsub.c of Torque 6.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.translators.scripts import _pbs
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    SITE,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Special,
    table,
    translator,
)
from sssjob.translators.scripts.choices import one_host, simple_features
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.grammars import COUNT, TORQUE_SECONDS
from sssjob.translators.scripts.layout import Part, join, part_of, spread, started
from sssjob.translators.scripts.pbspro import beside, chunk_count, pieces, read_nodes, read_process_memory
from sssjob.translators.scripts.raw import Option

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


def _write_layout(asking: Asking) -> Written:
    groups = asking.job.task_groups
    many = [asking.of(g) for g in groups] if len(groups) > 1 else [asking]
    parts = [(one, part_of(one)) for one in many]
    for one, part in parts:
        spread(one, part)
        started(one, part)
    first = parts[0][1]
    features = any(one.find(tag) for one in many for tag in ("Feature", "Node"))
    made: Written = []
    if len(parts) > 1 or first.nodes or first.per_node or first.chunks or first.cpus or first.gpus or features:
        made.append(("-l nodes", "+".join(_nodes(one, part) for one, part in parts)))
    elif first.tasks is not None:
        made.append(("-l procs", str(first.tasks)))
    elif first.processors is not None:
        made.append(("-l ncpus", str(first.processors)))
    made += _memories(asking, parts)
    for one, _ in parts:
        join(asking, one)
    if (exclusive := asking.extension("ExclusiveNodeUse")) is not None and exclusive.text != "false":
        made.append(("-n", None))
    return made


def _nodes(asking: Asking, part: Part) -> str:
    count, tasks = chunk_count(part)
    if not part.nodes:
        asking.note(APPROXIMATED, None, f"NodeCount: {count} chunks, perhaps on one node, are written as nodes",
                    subject="NodeCount")
    made = []
    host = one_host(asking, "each part of -l nodes names one host")
    if host is not None and count != 1:
        asking.dropped(host, "each part of -l nodes names one host")
        host = None
    for n, ranks, cpus in pieces(asking, part, count, tasks):
        ppn = cpus or ranks
        if ranks is not None and ppn != ranks:
            asking.note(APPROXIMATED, None, f"TaskCount: ppn={ppn} slots a node for {ranks} tasks", subject="TaskCount")
        words = [host.text if host is not None else str(n)] + ([f"ppn={ppn}"] if ppn is not None else [])
        made.append(":".join(words + _more(asking, part, ranks or 1, count)))
    return "+".join(made)


def _more(asking: Asking, part: Part, ranks: int, count: int) -> list[str]:
    """GPUs of a node, and its properties."""
    words = []
    if part.gpus is not None:
        gpus = part.gpus.value
        if part.gpus.per == "task":
            gpus *= ranks
        elif part.gpus.per == "job":
            gpus = -(-gpus // count)
        words.append(f"gpus={gpus}")
        if part.gpus.kind:
            asking.note(SITE, part.gpus.entry, f"type {part.gpus.kind} is written as a property of the node")
            words.append(part.gpus.kind)
    for e in simple_features(asking):
        if re.fullmatch(r"[A-Za-z][\w.=-]*", e.text):
            words.append(e.text)
        else:
            asking.dropped(e, f"{e.text} is no property of a node")
    return words


def _memories(asking: Asking, parts: list[tuple[Asking, Part]]) -> Written:
    """The amounts of all parts: those of the job added up, of the processes the largest."""
    made: dict[str, list[int]] = {}
    seen: set[int] = set()
    for one, part in parts:
        if part.memory is None or id(part.memory.entry.item) in seen:
            continue
        seen.add(id(part.memory.entry.item))
        for name, text in _memory(one, part):
            made.setdefault(name, []).append(int(_pbs.SIZE.read(text or "")))
    if any(len(amounts) > 1 for amounts in made.values()):
        asking.note(APPROXIMATED, None, "Memory: one amount is written for all parts of the job", subject="Memory")
    return [(name, _pbs.size_text(str(sum(amounts) if name == "-l mem" else max(amounts))))
            for name, amounts in made.items()]


def _memory(asking: Asking, part: Part) -> Written:
    memory = part.memory
    if memory is None:
        return []
    made = beside(asking, part)
    if memory.per in ("job", "task"):
        return [*made, ("-l mem" if memory.per == "job" else "-l pmem", _pbs.size_text(str(memory.value)))]
    if memory.per in ("PerNode", "PerChunk"):
        count = chunk_count(part)[0]
        asking.note(APPROXIMATED, memory.entry, "written for the whole job" + (f", {count} times as much" if count > 1
                                                                               else ""), None if count > 1 else "info")
        return [*made, ("-l mem", _pbs.size_text(str(memory.value * count)))]
    asking.note(APPROXIMATED, memory.entry, "written for each process")
    return [*made, ("-l pmem", _pbs.size_text(str(memory.value)))]


ROWS: Final[tuple[AnyRow, ...]] = table((
    Row("-l walltime", "Requested/Duration", TORQUE_SECONDS),
    Special(("-l nodes", *_COUNTS, "-l pmem", "-n"), _read_layout, _write_layout),
    Row("-l qos", "QualityOfService"),
    Row("-l advres", "Reservation"),
    _pbs.special_array("-t", lists=True, step=False),
    Row("-d", "InitialWorkingDirectory"),
    *(Row(name) for name in ("-b", "-D", "-E", "-F", "-f", "-J", "-K", "-L", "-P", "-T", "-w", "-x")),
), _pbs.ROWS, after="-l walltime")

DIALECT: Final = Dialect(
    "torque", "Torque", "#PBS", ROWS, _pbs.scanner(_LETTERS, strict=False, dos=True), _pbs.directive,
    _pbs.arguments(_LETTERS), {"{jobid}": "${PBS_JOBID}", "{index}": "${PBS_ARRAYID}", "{name}": "${PBS_JOBNAME}"},
    ("PBS_",), _pbs.live, (".torque", ".pbs"), starts_in="home", exports=False, merges=False, open=("l ", "W "),
    foreign=("-l select", "-l place", "-J"), marks=(_pbs.PREFIX,))
TRANSLATOR: Final = translator(DIALECT)
