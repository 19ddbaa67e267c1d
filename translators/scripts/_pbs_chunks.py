"""The size of a job of PBS Pro: chunks of ``-l select``, their places, and the older ``-l nodes`` and ``-l ncpus``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sssjob.document.model import TaskGroup
from sssjob.lrm.usage import known_sum, whole
from sssjob.request.asked import JOB
from sssjob.request.layout import Kind
from sssjob.translators.scripts import _pbs
from sssjob.translators.scripts.base import APPROXIMATED, PARTS, SITE, Asking, Reading, Row
from sssjob.translators.scripts.choices import fits, host_of_each, one_host, simple_features, site_resource
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.grammars import COUNT
from sssjob.translators.scripts.layout import Amount, Part, join, part_of, shared, spread, started
from sssjob.translators.scripts.raw import Option, split_outside
from sssjob.translators.scripts.whole_job import bytes_of, of_whole_job, share_memory

__all__ = ["GPU_MODE", "beside", "chunk_count", "gpus_of", "pieces", "read_nodes", "read_process_memory",
           "read_select", "write_select"]

#: How processes share the GPUs of a node, behind ``gpus=`` (Torque administrator guide, NVIDIA GPGPUs), and the name of
#: the Extension that keeps it.
_GPU_MODES: Final = ("shared", "exclusive_thread", "exclusive_process", "reseterr", "default")
GPU_MODE: Final = "gpu-mode"
_COUNTED: Final = ("ncpus", "mpiprocs", "ompthreads", "ngpus")


# -- reading chunks
def read_select(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-l select`` with ``-l place``, or the older options that stand in their place."""
    select, place = options.get("-l select"), options.get("-l place")
    for name in ("-l nodes", "-l ncpus", "-l mem", "-l ngpus"):
        if select is not None and name in options:
            o = options[name]
            reading.refuse(f"{name} and -l select exclude each other", o.line, o.column, name, o.text)
    if "-l nodes" in options and select is None:
        read_nodes(reading, options["-l nodes"])
    if "-l ncpus" in options and select is None:
        reading.row(Row("-l ncpus", "Requested/Processors", COUNT), options["-l ncpus"])
    if "-l mem" in options:
        reading.row(Row("-l mem", "Requested/Memory", _pbs.SIZE), options["-l mem"])
    if "-l ngpus" in options:
        reading.row(Row("-l ngpus", "Requested/Resource[name=GPU]", COUNT), options["-l ngpus"])
    arrangement = _read_place(reading, place) if place is not None else ""
    if select is not None:
        _read_chunks(reading, select, arrangement)
    if "-l pmem" in options:
        read_process_memory(reading, options["-l pmem"])


def read_process_memory(reading: Reading, option: Option) -> None:
    """Memory of each process: of the one group, or of all."""
    groups = reading.job.task_groups
    reading.group = groups[0] if groups else None
    above = "TaskGroupDefaults" if len(groups) > 1 else "TaskGroup"
    reading.row(Row("-l pmem", f"{above}/TaskDefaults/Requested/Memory", _pbs.SIZE), option)


def _read_place(reading: Reading, option: Option) -> str:
    """The arrangement; excl and shared become ExclusiveNodeUse."""
    words = (option.value or "").split(":")
    for word, value in (("excl", "true"), ("exclhost", "host"), ("shared", "false")):
        if word in words:
            reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", value, option)
            words.remove(word)
    rest = [w for w in words if w not in ("scatter", "pack", "")]
    if rest:
        reading.keep(Option(option.name, ":".join(rest), option.line, option.column, option.text))
    return next((w for w in words if w in ("scatter", "pack")), "")


def _read_chunks(reading: Reading, option: Option, arrangement: str) -> None:
    texts = split_outside(option.value or "", "+")
    parts = [_chunk(text) for text in texts[:PARTS]]
    if any(p is None for p in parts) or len(texts) > PARTS:
        reading.misfit(option, f"is no list of at most {PARTS} chunks", "[N:]ncpus=N[:name=value] parted by +")
        return
    if arrangement == "pack":
        reading.put("Requested/NodeCount", 1, option)
    for (count, resources), others in _hosts_joined([p for p in parts if p is not None]):
        if not count:
            reading.tell(APPROXIMATED, option, "a chunk of nothing is left out")
            continue
        group = reading.group = TaskGroup()
        count += len(others)
        reading.put("TaskGroup/Extension[name=ChunkCount,type=Scheduler]", str(count), option)
        if arrangement == "scatter" or others:
            reading.put("TaskGroup/Requested/NodeCount", count, option)
        _read_resources(reading, option, count, resources)
        for host in others:
            reading.put("TaskGroup/Requested/Node", host, option)
        assert reading.group is group
    reading.group = None


_Chunk = tuple[int, list[tuple[str, str]]]


def _hosts_joined(parts: list[_Chunk]) -> list[tuple[_Chunk, list[str]]]:
    """The chunks, and the hosts of those that follow each with the same resources on hosts of their own: they are one
    group of nodes, not nodes of several kinds."""
    joined: list[tuple[_Chunk, list[str]]] = []
    for count, resources in parts:
        hosts = [value for name, value in resources if name == "host"]
        (before, same), others = joined[-1] if joined else ((0, []), [])
        first = [value for name, value in same if name == "host"]
        if count == before == 1 and len(hosts) == len(first) == 1 and hosts[0] not in (*first, *others) and [
                pair for pair in resources if pair[0] != "host"] == [pair for pair in same if pair[0] != "host"]:
            others.append(hosts[0])
        else:
            joined.append(((count, resources), []))
    return joined


def _chunk(text: str) -> _Chunk | None:
    """Count and resources of ``2:ncpus=4:mem=1gb``."""
    words = split_outside(text.strip(), ":")
    count = 1
    if words and words[0].isdigit():
        count, words = int(words[0]), words[1:]
    pairs = [(name, value.strip("'\"")) for name, sign, value in (w.partition("=") for w in words) if sign]
    if len(pairs) != len(words) or any(n in _COUNTED and not v.isdigit() for n, v in pairs):
        return None
    return count, pairs


def _read_resources(reading: Reading, option: Option, count: int, resources: list[tuple[str, str]]) -> None:
    values = dict(resources)
    for name, value in resources:
        if name == "ncpus" and int(value):
            reading.put("TaskGroup/Requested/Processors", count * int(value), option)
        elif name == "mpiprocs" and int(value):
            reading.put("TaskGroup/TaskCount", count * int(value), option)
        elif name == "mem":
            try:
                reading.bytes("TaskGroup/Requested/Memory", _pbs.SIZE.read(value), option,  # type: ignore[arg-type]
                              metric="PerChunk")
            except ValueError as error:
                reading.misfit(option, f"mem={value} {error}", _pbs.SIZE.expected)
        elif name == "ngpus":
            kind = values.get("gpu_type") or values.get("accelerator_type") or values.get("gpu_model")
            reading.put("TaskGroup/Requested/Resource", int(value), option, name="GPU", metric="PerChunk",
                        **({"type": kind} if kind and "gpu_type" in values else {}))
        elif name == "gpu_type" and "ngpus" in values:
            continue
        elif name == "host":
            reading.put("TaskGroup/Requested/Node", value, option)
        elif value in ("true", "True"):
            reading.put("TaskGroup/Requested/Feature", name, option)
        else:
            reading.put("TaskGroup/Extension", value, option, name=f"select.{name}", type="pbspro")


def read_nodes(reading: Reading, option: Option) -> None:
    """The older form: each part is so many nodes, with ppn ranks."""
    texts = split_outside(option.value or "", "+")
    if len(texts) > PARTS:
        reading.misfit(option, f"has more than {PARTS} parts", "N[:ppn=P][:property] parted by +")
        return
    for text, others in _nodes_joined(texts):
        first, *words = text.strip().split(":")
        values = dict(w.partition("=")[::2] for w in words)
        if not re.fullmatch(r"\d{1,9}|[A-Za-z][\w.-]*", first) or not values.get("ppn", "1").isdigit():
            reading.misfit(option, f"{text!r} is no number of nodes", "N[:ppn=P][:property] parted by +")
            return
        if first == "0":
            reading.tell(APPROXIMATED, option, "a part of no nodes is left out")
            continue
        count = int(first) if first.isdigit() else 1 + len(others)
        reading.group = TaskGroup()
        reading.put("TaskGroup/Extension[name=ChunkCount,type=Scheduler]", str(count), option)
        reading.put("TaskGroup/Requested/NodeCount", count, option)
        if "ppn" in values or values.get("ncpus", "").isdigit():
            ranks = int(values.get("ppn", "1"))
            processors = int(values["ncpus"]) if values.get("ncpus", "").isdigit() else ranks
            reading.put("TaskGroup/Requested/Processors", count * processors, option)
            reading.put("TaskGroup/TaskCount", count * ranks, option)
        for host in () if first.isdigit() else (first, *others):
            reading.put("TaskGroup/Requested/Node", host, option)
        for name, value in values.items():
            if name == "gpus" and value.isdigit():
                reading.put("TaskGroup/Requested/Resource", int(value), option, name="GPU", metric="PerNode")
            elif "gpus" in values and name in _GPU_MODES:
                reading.put("TaskGroup/Extension", name, option, name=GPU_MODE, type="torque")
            elif name not in ("ppn", "ncpus"):
                reading.put("TaskGroup/Requested/Feature", f"{name}={value}" if value else name, option)
    reading.group = None


def _nodes_joined(texts: list[str]) -> list[tuple[str, list[str]]]:
    """The parts, and the hosts of those that follow each with the same words behind another host."""
    joined: list[tuple[str, list[str]]] = []
    for text in texts:
        host, _, words = text.strip().partition(":")
        first, _, same = joined[-1][0].strip().partition(":") if joined else ("", "", "")
        if words == same and first and not (host[:1].isdigit() or first[:1].isdigit()) and host not in (
                first, *joined[-1][1]):
            joined[-1][1].append(host)
        else:
            joined.append((text, []))
    return joined


# -- writing chunks
def write_select(asking: Asking) -> Written:
    """``-l select`` with a part for each task group; ``-l ncpus`` and ``-l mem`` where nothing else is asked for."""
    groups = asking.groups
    many = [asking.of(g) for g in groups] if len(groups) > 1 else [asking]
    parts = [(group, part_of(group, ranks=True)) for group in many]
    for group, part in parts:
        spread(group, part)
        started(group, part)
        _by_chunks(part)
    packed = _packed(asking, [p for _, p in parts])
    if len(parts) > 1 and not packed:
        of_whole_job(asking, [part for _, part in parts], memory=parts[0][1].chunks is not None)
    scattered = not packed and all(
        (p.nodes if p.chunks == 1 else p.node_total) == p.chunks if p.chunks is not None else p.node_total is not None
        for _, p in parts)
    options = _old(asking, parts[0][1]) if len(parts) == 1 else None
    if options is None:
        if not (scattered or packed):
            _unscattered(many, [p for _, p in parts])
        outside = _outside(asking, [p for _, p in parts])
        texts = [_select(group, part) for group, part in parts]
        chunks = "+".join(t for t in texts if t)
        options = [("-l select", chunks), *outside]
        hosts = re.findall(r":host=([^:+]+)", chunks) if _ON_HOSTS.fullmatch(chunks) else []
        scattered = scattered and (not hosts or len(set(hosts)) < len(hosts))       # hosts by name are apart anyway
        if asking.source not in ("", asking.dialect.name) and chunks.startswith("1:") and "+" not in chunks:
            scattered = False       # a single chunk is on one host
        words = ["scatter" if scattered else "pack" if packed else ""]
    else:
        words = []
    for group in many:
        join(asking, group)
    placing = _place(asking, words)
    if placing and not options:
        options = [("-l select", "1")]      # without one qsub takes no place; it is what a job gets that asks for none
    return options + placing


_ON_HOSTS: Final = re.compile(r"1:(?:[^+]*:)?host=[^:+]+(?:\+1:(?:[^+]*:)?host=[^:+]+)+")


def _by_chunks(part: Part) -> None:
    """Make amounts of each node such of all of them, where the chunks are not the nodes: these have their shares."""
    nodes = part.node_total
    if part.chunks is not None and nodes is not None and nodes != part.chunks:
        part.memory, part.gpus = (
            replace(amount, value=amount.value * nodes, per="job")
            if amount is not None and amount.per == "PerNode" else amount for amount in (part.memory, part.gpus))


def _unscattered(many: list[Asking], parts: list[Part]) -> None:
    """The findings for groups whose nodes are not asked for, because other groups say nothing of theirs, or have more
    chunks than nodes: the place of chunks is one for the whole job."""
    for group, part in zip(many, parts, strict=True):
        if part.chunks not in (None, 1) and part.node_total and not host_of_each(group, part.node_total, part.tasks):
            group.note(APPROXIMATED, part.sources.get("nodes") or part.sources.get("distribution"),
                       f"NodeCount: {part.chunks} chunks may be on other than {part.node_total} "
                       f"node{'s' * (part.node_total != 1)}", subject="NodeCount")
    with_nodes = [(group, part, part.node_total) for group, part in zip(many, parts, strict=True)
                  if part.chunks is None and part.node_total]
    if sum(nodes for _, _, nodes in with_nodes) < 2:
        return
    for group, part, nodes in with_nodes:
        which = f"the chunks for {nodes} nodes may share some" if nodes > 1 else \
            "its chunk may be on a node of another group"
        group.note(APPROXIMATED, part.sources.get("nodes") or part.sources.get("distribution"), f"NodeCount: {which}: "
                   "other groups do not say how many nodes", subject="NodeCount")


def _nodes_of_job(asking: Asking) -> int | None:
    """How many nodes the job says for all of its task groups."""
    return next((whole(e.text) for e in asking.entries if e.tag == "NodeCount" and e.level == JOB), None)


def _packed(asking: Asking, parts: list[Part]) -> bool:
    """Whether all chunks are to be on one node: the job says NodeCount 1, the groups say ChunkCount. Where it says as
    many nodes as all groups have chunks, each chunk is a node."""
    nodes = _nodes_of_job(asking)
    if not parts[0].chunks or nodes is None:
        return False
    chunks = [part.chunks for part in parts]
    if len(parts) > 1 and None not in chunks and nodes == known_sum(chunks):
        for part in parts:
            part.nodes = part.chunks
        return False
    for part in parts if nodes == 1 else ():
        part.nodes, part.tasks = None, part.tasks or part.per_node
    return nodes == 1


def _outside(asking: Asking, parts: list[Part]) -> Written:
    """Memory that was said beside the chunks, of each process. qsub takes no memory of the whole job there (``mem`` has
    the flag ATR_DFLAG_CVTSLT in OpenPBS): each chunk asks for its share, as it does where not all processes have the
    same."""
    amounts = [p.memory for p in parts if p.memory is not None and p.chunks is not None and p.memory.per == "task"]
    if len(amounts) != len(parts) or len({amount.value for amount in amounts}) > 1:
        amounts = []
    for part in parts if amounts else ():
        part.memory = None
    if len(parts) > 1 and parts[0].chunks is not None:
        share_memory(asking, parts, list(map(chunk_count, parts)), "chunks", "PerChunk", 1024)
    for entry in parts[0].beside:
        asking.dropped(entry, "another amount of memory is written")
    return [("-l pmem", _pbs.size_text(str(amounts[0].value)))] if amounts else []


def _of_job(amount: int) -> Written:
    return [("-l mem", _pbs.size_text(str(amount)))] if amount else []


def beside(asking: Asking, part: Part) -> int:
    """Bytes of the job where another amount of memory is written too; 0 where nothing says them."""
    for e in part.beside:
        if e.level == JOB and "metric" not in e.attributes:
            return bytes_of(asking, e)
        asking.dropped(e, "another amount of memory is written")
    return 0


def _place(asking: Asking, words: list[str]) -> Written:
    exclusive, kept = asking.extension("ExclusiveNodeUse"), asking.extension("l place", "pbspro")
    words = [*words, kept.text if kept is not None else ""]
    if exclusive is not None:
        words.append({"false": "shared", "host": "exclhost"}.get(exclusive.text, "excl"))
        if exclusive.text in ("user", "mcs", "topo"):
            asking.note(APPROXIMATED, exclusive, "the node is asked for whole")
    text = ":".join(w for w in words if w)
    return [("-l place", text)] if text else []


def _old(asking: Asking, part: Part) -> Written | None:
    """Without select: processors and memory of the whole job; None where more is asked for."""
    gpus = part.gpus if asking.source == asking.dialect.name else None
    kept = gpus is not None and gpus.per == "job" and not gpus.kind
    chunks = (part.nodes, part.tasks, part.per_node, part.cpus, part.chunks, part.geometry, part.gpus and not kept,
              asking.find("Feature"), asking.find("Node"))
    arranged = asking.source != asking.dialect.name and (part.processors or part.memory) and (
        asking.says("ExclusiveNodeUse"))        # which -l place says, beside select alone
    if any(chunks) or arranged or (part.memory and part.memory.per not in ("job", "task")):
        return None
    options: Written = [("-l ncpus", str(part.processors))] if part.processors else []
    of_job = beside(asking, part)
    if part.memory is not None and part.memory.per == "job":
        of_job = max(of_job, part.memory.value)
    elif part.memory is not None:
        options.append(("-l pmem", _pbs.size_text(str(part.memory.value))))
    options += _of_job(of_job)
    return [*options, ("-l ngpus", str(gpus.value))] if kept and gpus is not None else options


def _select(asking: Asking, part: Part) -> str:
    count = chunk_count(part)
    if count == 0:
        return ""
    hosts = host_of_each(asking, part.node_total, part.tasks)
    count = max(len(hosts), part.node_total or 0) if hosts else count
    features, texts = _features(asking, named=bool(hosts)), []
    for kind in pieces(asking, part, count):
        chunk = f"{_resources(asking, part, count, kind)}{features}{':mpiprocs=0' if kind.tasks == 0 else ''}"
        named, hosts = hosts[:kind.count], hosts[kind.count:]
        texts += [f"1{chunk}:host={host}" for host in named]
        texts += [f"{kind.count - len(named)}{chunk}"] if len(named) < kind.count else []
    return "+".join(texts)


def chunk_count(part: Part) -> int:
    """How many chunks: those that are stated, else one a node, else one a task; tasks that share GPUs of the job evenly
    are in one chunk."""
    if part.chunks is not None:
        return part.chunks
    nodes = part.node_total
    if nodes is not None:
        return nodes
    tasks = part.task_total
    if tasks is None:
        return 1
    gpus = part.gpus.value if part.gpus is not None and part.gpus.per == "job" else 0
    return gpus if gpus and gpus < tasks and tasks % gpus == 0 and (part.processors or tasks) % gpus == 0 else tasks


def pieces(asking: Asking, part: Part, count: int) -> list[Kind]:
    """The kinds of chunk: how many of each, its ranks, processors and GPUs of the job."""
    if part.nodes_most is not None:
        asking.note(APPROXIMATED, None, f"NodeCount: {part.nodes} of {part.nodes} to {part.nodes_most} are asked for",
                    subject="NodeCount")
    of_job = part.gpus.value if part.gpus is not None and part.gpus.per == "job" else None
    if part.gpus is not None and of_job is not None and count > 1:
        asking.note(APPROXIMATED, part.gpus.entry, f"shared out among {count} chunks", "info")
    kinds = part.kinds(count, of_job)
    idle = sum(kind.count for kind in kinds if kind.tasks == 0)
    if idle:
        asking.note(APPROXIMATED, part.sources.get("tasks"), f"TaskCount: {idle} of {count} nodes have no task",
                    subject="TaskCount")
    if part.chunks is None or part.chunks != count:
        return [kind if kind.processors is not None else replace(kind, processors=part.cpus) for kind in kinds]
    ranks = part.tasks is not None or part.task_total != part.chunks
    has_processors = part.processors is not None or part.cpus is not None
    own = asking.source == asking.dialect.name          # its chunks have the processors of the site's default
    return [replace(kind, tasks=kind.tasks if ranks else None, processors=kind.processors if has_processors or (
        not own and (kind.processors or 0) > 1) else None) for kind in kinds]


def _resources(asking: Asking, part: Part, count: int, kind: Kind) -> str:
    words = [] if kind.processors is None else [f"ncpus={kind.processors}"]
    if kind.tasks:
        words.append(f"mpiprocs={kind.tasks}")
    threads = asking.extension("select.ompthreads", "pbspro")
    if threads is not None and fits(asking, threads, threads.text):
        words.append(f"ompthreads={threads.text}")
    gpus = 0 if part.gpus is None else gpus_of(part, part.gpus, kind)
    memory = 0 if part.memory is None else _memory(asking, part, part.memory, count, kind, gpus)
    if part.memory is not None and (memory or not part.memory.value):
        words.append(f"mem={_pbs.size_text(str(memory))}")
    if part.gpus is not None and gpus:
        words.append(f"ngpus={gpus}")
        if part.gpus.kind:
            site_resource(asking, part.gpus.entry, "gpu_type")
            words.append(f"gpu_type={part.gpus.kind}")
    return "".join(f":{w}" for w in words)


def _memory(asking: Asking, part: Part, memory: Amount, count: int, kind: Kind, gpus: int) -> int:
    """Bytes of a chunk."""
    if memory.per in ("PerNode", "PerChunk"):
        return memory.value
    if memory.per == "job":
        return shared(asking, memory, count, "chunks", 1024)
    if memory.per == "task" and kind.tasks == 0:
        return 0
    factor = {"task": _tasks_in(part, kind), "PerProcessor": kind.processors or 1,
              "PerGPU": None if part.gpus is None else gpus}.get(memory.per)
    if factor is None:
        asking.note(SITE, memory.entry, f"{memory.per} is written for each chunk")
        return memory.value
    return memory.value * factor


def gpus_of(part: Part, gpus: Amount, kind: Kind) -> int:
    """GPUs of a chunk."""
    if gpus.per == "job":
        return kind.units or 0
    if gpus.per == "task" and kind.tasks == 0:
        return 0
    return gpus.value * {"task": _tasks_in(part, kind), "PerProcessor": kind.processors or 1}.get(gpus.per, 1)


def _tasks_in(part: Part, kind: Kind) -> int:
    """The tasks of a chunk: as they are said, else one, and of a node as many as its processors are for."""
    return kind.tasks or (1 if part.chunks is not None else max(1, (kind.processors or 1) // (part.cpus or 1)))


def _features(asking: Asking, *, named: bool) -> str:
    """Features, host and what else a chunk of ours had. named: each chunk has a host of its own."""
    plain, valued = [], []
    for e in simple_features(asking):
        if re.fullmatch(r"[\w.-]+", e.text):
            site_resource(asking, e, e.text)
            plain.append(f"{e.text}=true")
        elif re.fullmatch(r"[\w.-]+=[\w.-]+", e.text):
            site_resource(asking, e, e.text.partition("=")[0])
            valued.append(e.text)
        else:
            asking.dropped(e, f"{e.text} is no name of a resource")
    host = None if named else one_host(asking, "a chunk names one host")
    plain += [f"host={host.text}"] if host is not None else []
    for e in asking.said("Extension"):
        name = e.attributes.get("name", "")
        if e.attributes.get("type") == "pbspro" and name.startswith("select."):
            e.used = True
            e.understood |= {"name", "type"}
            if name != "select.ompthreads" and fits(asking, e, e.text) and fits(asking, e, name):
                valued.append(f"{name.removeprefix('select.')}={e.text}")
    return "".join(f":{w}" for w in plain + valued)
