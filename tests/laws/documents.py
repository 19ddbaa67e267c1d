"""Documents with a geometry: amounts at every level and in the defaults of each, what they are per, tasks, chunks, and
how they are spread; conditions, alternatives, and names of nodes and features."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from hypothesis import strategies as st

from sssjob.conversion.intake import gate
from sssjob.document.model import Document, Job
from sssjob.request import Request, request_of
from sssjob.xml.reader import read_document

__all__ = ["geometries", "job_of", "read", "request_in", "request_of_text"]

UNITS = st.sampled_from([("B", 1 << 20), ("KB", 4096), ("MB", 3000), ("GB", 9), ("GB", 9), ("GB", 9)])
METRICS = ["", "", "Total", "PerNode", "PerProcessor", "PerSlot", "PerGPU"]
#: How many chunks of equal resources there are, as PBS has them.
CHUNKS = st.integers(1, 4).map(lambda n: f'<Extension name="ChunkCount" type="Scheduler">{n}</Extension>')
#: Nodes by name: one, lists and ranges of them, and a pattern.
NODES = ("<Node>n1</Node>", "<Node op='NE'>n9</Node>", "<Node aggregation='List'>n1,n2</Node>",
         "<Node aggregation='List' delimiter=';'>n1;n2</Node>", "<Node aggregation='Range'>n[1-3]</Node>",
         "<Node aggregation='Pattern'>n[0-9]+</Node>")
#: One that every manager has, one of its own, and the one that starts a single copy.
LAUNCHERS = ("mpirun", "mpirun", "srun", "single")
FEATURES = ("<Feature>fast</Feature>", "<Feature>big</Feature>", "<Feature op='NE'>slow</Feature>")


@lru_cache(maxsize=16)
def read(text: str) -> Document:
    """The document of a text, the same one where several laws look at one after the other: none of them changes it."""
    return read_document(text.encode())


def job_of(document: Document) -> Job:
    """Its one job."""
    return next(job for job, _ in document.jobs())


def request_in(document: Document) -> Request:
    """What its one job asks for, with the defaults of its group."""
    job, defaults = next(iter(document.jobs()))
    return request_of(job, defaults, bare=True)


@lru_cache(maxsize=16)
def request_of_text(text: str) -> Request:
    """What the one job of a text asks for, the same one where several laws look at it in every format."""
    return request_in(read(text))


@cache
@st.composite
def _amount(draw: st.DrawFn, tag: str, *, metrics: bool, ops: bool = False, chunks: bool = False) -> str:
    unit, most = draw(UNITS)
    metric = draw(st.sampled_from([*METRICS, *(["PerChunk"] * 2 if chunks else [])])) if metrics else ""
    metric = "" if tag == "Disk" and metric == "PerGPU" else metric
    more = f" metric='{metric}'" if metric else ""
    op = draw(st.sampled_from(["", "", "", "", "GE", "LE"])) if ops else ""
    more += f" op='{op}'" if op else ""
    return f"<{tag} units='{unit}'{more}>{draw(st.integers(1, most))}</{tag}>"


@cache
@st.composite
def _gpus(draw: st.DrawFn, *, metrics: bool, chunks: bool = False) -> str:
    metric = draw(st.sampled_from(["", "", "PerNode", *(["PerChunk"] if chunks else [])])) if metrics else ""
    more = (f" metric='{metric}'" if metric else "") + draw(st.sampled_from(["", "", " type='a100'"]))
    return f"<Resource name='GPU'{more}>{draw(st.integers(1, 6))}</Resource>"


@cache
@st.composite
def _counts(draw: st.DrawFn) -> list[str]:
    """NodeCount and Processors."""
    lines = []
    if draw(st.booleans()):
        nodes, further = draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 0, 0, 1, 4]))
        lines += [f'<NodeCount op="GE">{nodes}</NodeCount>', f'<NodeCount op="LE">{nodes + further}</NodeCount>'] \
            if further else [f"<NodeCount>{nodes}</NodeCount>"]
    if draw(st.booleans()):
        count, op = draw(st.integers(1, 16)), draw(st.sampled_from(["", "", "", "GE", "GE", "LE"]))
        metric = draw(st.sampled_from(["", "", "", "", "Total", "PerNode", "PerChunk"]))
        more = f' metric="{metric}"' if metric else ""
        lines.append(f"<Processors{f' op={chr(34)}{op}{chr(34)}' if op else ''}{more}>{count}</Processors>")
        if op == "GE" and draw(st.booleans()):
            lines.append(f'<Processors op="LE"{more}>{count + draw(st.integers(0, 8))}</Processors>')
    return lines


@cache
@st.composite
def _distribution(draw: st.DrawFn) -> list[str]:
    kind = draw(st.sampled_from(["", "", "TasksPerNode", "ProcessorsPerTask", "Geometry"]))
    if not kind:
        return []
    if kind != "Geometry":
        return [f'<TaskDistribution type="{kind}">{draw(st.integers(1, 4))}</TaskDistribution>']
    text, at = "", 1
    for size in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        text += "{" + ",".join(map(str, range(at, at + size))) + "}"
        at += size
    return [f'<TaskDistribution type="Geometry">{text}</TaskDistribution>']


@st.composite
def _some(draw: st.DrawFn, parts: list[st.SearchStrategy[str]], chance: int = 3) -> list[str]:
    return [draw(part) for part in parts if draw(st.integers(0, chance)) == 0]


@cache
@st.composite
def _alternatives(draw: st.DrawFn) -> list[str]:
    """Two conditions of one name in brackets, of which one is enough, or which are preferred to different degrees."""
    tag, values = draw(st.sampled_from([
        ("Processors", st.integers(1, 16).map(str)), ("NodeCount", st.integers(1, 4).map(str)),
        ("Memory units='MB'", st.integers(1, 3000).map(str)), ("Feature", st.sampled_from(["fast", "big", "ib"])),
        ("Duration", st.integers(60, 100_000).map(str))]))
    first, second = draw(st.lists(values, min_size=2, max_size=2, unique=True))
    name = tag.partition(" ")[0]
    if draw(st.booleans()):
        return [f"<{tag} group='1'>{first}</{name}>", f"<{tag} conj='Or' group='-1'>{second}</{name}>"]
    return [f"<{tag} preference='1'>{first}</{name}>", f"<{tag} preference='3'>{second}</{name}>"]


@cache
@st.composite
def _names(draw: st.DrawFn, chance: int = 5) -> list[str]:
    """Features, nodes by name, and a resource that is none of those which every manager knows."""
    lines = draw(_some([st.sampled_from(FEATURES), st.just("<Feature>ib</Feature>"), st.sampled_from(NODES)], chance))
    if draw(st.integers(0, chance)) == 0:
        metric = draw(st.sampled_from(["", " metric='PerNode'"]))
        lines.append(f"<Resource name='fpga'{metric}>{draw(st.integers(1, 6))}</Resource>")
    return lines


@cache
@st.composite
def _durations(draw: st.DrawFn) -> str:
    op = draw(st.sampled_from(["", "", " op='LE'", " op='GE'"]))
    return f"<Duration{op}>{draw(st.integers(60, 100_000))}</Duration>"


@cache
@st.composite
def _group(draw: st.DrawFn, *, alone: bool) -> list[str]:
    count = draw(st.integers(0, 8))
    lines = [f"<TaskCount>{count}</TaskCount>"] if count else []
    lines += draw(_distribution())
    chunks = draw(_some([CHUNKS], 5))
    inner = draw(_some([_amount("Memory", metrics=True, chunks=bool(chunks)),
                        _gpus(metrics=True, chunks=bool(chunks)), _durations()], 5))
    if draw(st.integers(0, 2 if not alone else 7)) == 0:
        inner += draw(_counts())
    lines += chunks
    inner += draw(_names(chance=11))
    if inner:
        lines += ["<Requested>", *inner, "</Requested>"]
    each = draw(_some([st.integers(1, 4).map(lambda n: f"<Processors>{n}</Processors>"),
                       _amount("Memory", metrics=False), _gpus(metrics=False)]))
    each += draw(_some([st.just("<Feature>ib</Feature>"), st.just("<Resource name='fpga'>2</Resource>"), _durations(),
                        st.integers(1, 3).map(lambda n: f"<Resource name='License' type='lic'>{n}</Resource>")], 15))
    lines += _within("TaskDefaults", each)
    if count and draw(st.integers(0, 5)) == 0:
        for _ in range(draw(st.integers(1, count))):
            lines += _within("Task", draw(_some([_amount("Memory", metrics=False), _gpus(metrics=False),
                                                _durations()], 2)))
    return ["<TaskGroup>", *lines, "</TaskGroup>"] if lines else []


def _within(tag: str, lines: list[str]) -> list[str]:
    """A container in which all this is requested; nothing without any."""
    return [f"<{tag}>", "<Requested>", *lines, "</Requested>", f"</{tag}>"] if lines else []


@cache
@st.composite
def _group_defaults(draw: st.DrawFn) -> list[str]:
    """What task groups and their tasks have unless they say otherwise."""
    lines = draw(_some([_amount("Memory", metrics=True), _gpus(metrics=True), st.sampled_from(FEATURES),
                        _durations()]))
    each = draw(_some([st.integers(1, 4).map(lambda n: f"<Processors>{n}</Processors>"), _gpus(metrics=False)]))
    inner = (["<Requested>", *lines, "</Requested>"] if lines else []) + _within("TaskDefaults", each)
    return ["<TaskGroupDefaults>", *inner, "</TaskGroupDefaults>"] if inner else []


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """A property a line, so that the line of a finding tells which one it is about."""
    job = draw(_counts())
    chunks = draw(_some([CHUNKS], 7))
    job += draw(_some([_amount("Memory", metrics=True, ops=True, chunks=bool(chunks)),
                       _gpus(metrics=True, chunks=bool(chunks)), _amount("Disk", metrics=True),
                       st.integers(1, 9).map(lambda n: f"<Resource name='License' type='lic'>{n}</Resource>"),
                       _durations()]))
    job += draw(_names())
    job += draw(_alternatives()) if draw(st.integers(0, 5)) == 0 else []
    conditional = any(re.search(" (op|conj|group|preference|aggregation)=", line) for line in job)
    if conditional or (job and draw(st.booleans())):
        job = ["<Requested>", *job, "</Requested>"]
    job += chunks
    if draw(st.integers(0, 9)) == 0:
        job.append(f'<Extension name="Launcher" type="Scheduler">{draw(st.sampled_from(LAUNCHERS))}</Extension>')
    groups = draw(st.sampled_from([0, 1, 1, 1, 1, 2, 2, 3]))
    defaults = draw(_group_defaults()) if draw(st.integers(0, 5)) == 0 else []
    of_all = draw(st.booleans())
    job += defaults if not of_all else []
    for _ in range(groups):
        job += draw(_group(alone=groups == 1))
    if (of_all and defaults) or draw(st.integers(0, 7)) == 0:
        own = draw(_some([_amount("Memory", metrics=True), _gpus(metrics=True), st.sampled_from(FEATURES),
                          _durations()]))
        inner = (["<Requested>", *own, "</Requested>"] if own else []) + (defaults if of_all else [])
        lines = ["<JobGroup>", "<Id>g</Id>", *(["<JobDefaults>", *inner, "</JobDefaults>"] if inner else []),
                 "<Job>", "<Id>a</Id>", "<Executable>/bin/step</Executable>", *job, "</Job>", "</JobGroup>"]
    elif draw(st.integers(0, 5)) == 0:
        lines = ["<Request>", '<File id="S">#!/bin/sh', "/bin/step</File>", "<Job>", "<Executable>#S</Executable>",
                 *job, "</Job>", "</Request>"]
    else:
        lines = ["<Job>", "<Executable>/bin/step</Executable>", *job, "</Job>"]
    return "\n".join(lines)


def _sound(text: str) -> bool:
    """Whether no check refuses it."""
    return not any(f.rejects for f in gate(read(text)))


def geometries() -> st.SearchStrategy[str]:
    """Texts of documents that no door refuses."""
    return _texts().filter(_sound)
