"""Two documents compared by what they mean: property by property and level by level, amounts in one unit, sets without
an order, and layouts (nodes, tasks, processors, memory, GPUs) by what follows from them.

    differences(one, other)  ->  [Difference("job: wall clock limit", "3600", "7200"), ...]

``--nodes=2 --ntasks-per-node=8`` of one script asks for what ``select=2:ncpus=8:mpiprocs=8`` with ``place=scatter`` of
another does: both are 2 nodes, 16 tasks, 16 processors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from sssjob.document.arrays import label_of
from sssjob.document.element import Container, Property, Raw
from sssjob.document.inherit import distinct, effective
from sssjob.document.lexical import LexicalError, utc
from sssjob.document.model import Document, Job, TaskGroup
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import from_bytes, to_bytes
from sssjob.document.vocabulary import ELEMENTS, SILENT
from sssjob.lrm.idset import ranges
from sssjob.request import Total, request_of
from sssjob.request.geometry import distribution_of
from sssjob.request.totals import COUNTED, Identity, Part, is_gpu, number_shown
from sssjob.request.tree import identity_of, number_of, range_of
from sssjob.translators.scripts.rows import source_of
from sssjob.xml.canonical import canonical

__all__ = ["Difference", "Fact", "Habits", "alike", "differences", "facts", "shown"]

_BYTES: Final = ("Memory", "Disk", "Swap")
_CHOICE: Final = frozenset(("op", "conj", "group", "preference"))
#: Properties of the layout, which are compared by what follows from them, as amounts are.
_LAYOUT: Final = frozenset(("NodeCount", "TaskCount", "TaskDistribution", "Processors"))
#: Attributes that part one property from another of the same name.
_NAMES: Final = ("type", "name", "metric", "context", "condition", "designator", "code", "aggregation")
_TASKS: Final = ("tasks", "tasks a node")
_OR: Final = " or "
#: What says where a document comes from, and nothing of the job.
_ORIGINS: Final = frozenset(("Dialect", "ChunkCount"))
_SETS: Final = frozenset(("Feature", "Node", "Dependency", "Hold"))
#: What a conversion put into a script to define the variables of another system.
_SHIM: Final = re.compile(r"^# >>> sssjob .*?^# <<< sssjob[^\n]*$", re.MULTILINE | re.DOTALL)
_TIMES: Final = frozenset(e.name for e in ELEMENTS if e.type == "DateTime")
_FILES: Final = frozenset(("InputFile", "OutputFile", "ErrorFile"))
_NAME: Final = re.compile(r"(?<!\{)\{name\}(?!\})")
#: What stands for the successor of a job of another system (decisions 21).
_SUCCESSOR: Final = re.compile(r"@JOBID:([^@]*)@")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a job says: of which scope, its name, and its value in one spelling."""

    scope: str
    name: str
    value: str

    @property
    def subject(self) -> str:
        """``job: Queue``."""
        return f"{self.scope}: {self.name}"


@dataclass(frozen=True, slots=True)
class Difference:
    """What two documents say of one thing; None: nothing."""

    subject: str
    one: str | None
    other: str | None


@dataclass(frozen=True, slots=True)
class Habits:
    """What jobs of dialects do without a word. merges: whether those of a dialect (its name) have both streams in one
    file; here: variables that hold the directory of the submission, where a script goes first or is already; exports:
    ``true`` or ``false``, whether the submitter's variables go along unless told otherwise; empty: it is not known."""

    merges: Callable[[str], bool] = lambda dialect: False
    here: frozenset[str] = frozenset()
    exports: Callable[[str], str] = lambda dialect: ""


def differences(first: Document, other: Document, *, script: bool = True, habits: Habits = Habits(),
                ) -> tuple[list[Difference], int]:
    """What differs, in the order of the first document, and how many things are the same. script: whether the commands
    of scripts are compared too."""
    a, b = (_table(facts(d, script=script, habits=habits)) for d in (first, other))
    for mine, its, document in ((a, b, first), (b, a, other)):
        for name in [n for n in its if n.endswith(_EXPORT) and n not in mine]:
            if its[name] == habits.exports(next((source_of(job) for job, _ in document.jobs()), "")):
                mine[name] = its[name]      # one says what the other does without a word
    names = list(dict.fromkeys((*a, *b)))
    differing = [Difference(n, a.get(n), b.get(n)) for n in names
                 if not alike(n.partition(": ")[2], a.get(n), b.get(n))]
    return differing, len(names) - len(differing)


def alike(name: str, value: str | None, other: str | None) -> bool:
    """Whether two values of a name say the same; of tasks one of the numbers that there may be is enough."""
    return value == other or (value is not None and other is not None and name in _TASKS
                              and not set(value.split(_OR)).isdisjoint(other.split(_OR)))


def _table(all_facts: Iterable[Fact]) -> dict[str, str]:
    """Subject -> value; several values of one subject are a set, in order of their texts, but of a variable that is set
    twice the last one counts."""
    values_of: dict[str, list[str]] = {}
    for fact in all_facts:
        if fact.name.startswith("Variable "):
            values_of[fact.subject] = []
        values_of.setdefault(fact.subject, []).append(fact.value)
    return {subject: ", ".join(sorted(set(values))) for subject, values in values_of.items()}


def facts(document: Document, *, script: bool = True, habits: Habits = Habits()) -> Iterator[Fact]:
    """Everything that the jobs of a document say, defaults folded in."""
    jobs = list(document.jobs())
    for number, (job, defaults) in enumerate(jobs):
        folded = distinct(job if defaults is None else effective(job, defaults).fold())
        scope = f"job {label_of(job, number)}" if len(jobs) > 1 else "job"
        facts_of_job = _of_job(document, folded, scope, script, habits.here)
        yield from _files(list(facts_of_job), folded, scope, habits.merges)
    if not jobs:
        for body in document.bodies():
            yield from _of_scope(body, body.tag, frozenset())


def _files(facts_of_files: list[Fact], job: Job, scope: str, merges: Callable[[str], bool]) -> Iterator[Fact]:
    """The same with files as they become: the job's own name in their names, both streams in one, and the directory of
    the submission left out, which a script says by a command or not at all."""
    name, dialect = job.value("Name"), source_of(job)
    words = {fact.name.split(" ")[0] for fact in facts_of_files}
    if "OutputFile" in words and "ErrorFile" not in words and merges(dialect):
        facts_of_files.append(Fact(scope, _MERGED, "in the output file"))
    for fact in facts_of_files:
        word = fact.name.split(" ")[0]
        if word == "ErrorFile" and fact.name.endswith("redirectList=Merge") and not fact.value:
            yield Fact(fact.scope, _MERGED, "in the output file")
        elif (word, fact.value) == ("InitialWorkingDirectory", "."):
            continue
        elif word in _FILES and isinstance(name, str) and name:
            yield replace(fact, value=_NAME.sub(lambda _: name, fact.value))
        else:
            yield fact


_MERGED: Final = "ErrorFile"
_EXPORT: Final = "Environment export"


def _of_job(document: Document, job: Job, scope: str, script: bool, here: frozenset[str]) -> Iterator[Fact]:
    groups = job.task_groups
    parts: list[tuple[str, list[Container]]] = [(scope, [job, *groups])] if len(groups) < 2 else [
        (f"{scope}, task group {n}", [g]) for n, g in enumerate(groups, 1)]
    handled = frozenset[int]()
    totals = request_of(job, bare=True).totals
    for (where, scopes), part in zip(parts, totals.parts, strict=True):
        stated = _counted(scopes) if part.known else None
        if stated:
            handled |= {id(p) for p in stated}
            handled -= {id(p) for p, _ in part.misfits if p.tag == "TaskDistribution"}      # not taken, thus not told
            amounts = totals.amounts if len(groups) < 2 else part.amounts
            yield from (Fact(where, name, value) for name, value in _comes_to(part, amounts, stated))
    yield from _of_scope(job, scope, handled, [] if len(groups) < 2 else groups)
    for where, scopes in parts if len(groups) > 1 else []:
        yield from _of_scope(scopes[0], where, handled)
    executable = job.value("Executable")
    if script and isinstance(executable, str) and executable.startswith("#"):
        file = document.files.get(executable[1:])
        commands = [] if file is None else _commands(file.content().decode("utf-8", "replace"), here)
        yield Fact(scope, "commands", "\n".join(commands))


def _commands(text: str, here: frozenset[str]) -> list[str]:
    """The lines of a script that do something, but for a first one that goes where the job was submitted."""
    text = _SHIM.sub("", text)
    commands = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    goes = _GOES.fullmatch(commands[0]) if commands else None
    return commands[1:] if goes is not None and goes[1] in here else commands


_GOES: Final = re.compile(r"""cd\s+"?\$\{?(\w+)\}?"?;?""", re.ASCII)


def _of_scope(scope: Container, where: str, left_out: frozenset[int],
              groups: Iterable[Container] = ()) -> Iterator[Fact]:
    """The properties of a scope and of those in it, but for those in left_out and in groups."""
    skipped = {id(g) for g in groups}
    for item in scope.items:
        if id(item) in left_out or id(item) in skipped:
            continue
        if isinstance(item, Container):
            inner = where
            if item.tag in ("Delivered", "TaskGroupDefaults", "TaskDefaults", "Task", "JobDefaults"):
                inner = f"{where}, {item.tag}"
            yield from _of_scope(item, inner, left_out)
            if item.tag == "Environment" and item.attributes.get("export") is not None:
                yield Fact(inner, _EXPORT, item.attributes["export"])
        elif isinstance(item, Property):
            fact = _fact(item, where)
            if fact is not None:
                yield fact
        else:
            yield Fact(where, item.tag, _inside(item))


def _inside(element: Raw) -> str:
    """What stands in an element that no vocabulary here knows, and may mean anything: its text, else its XML."""
    if not element.children and not element.attributes:
        return element.text.strip()
    return canonical(Job([element])).decode().removeprefix("<Job>").removesuffix("</Job>")


def _fact(p: Property, where: str) -> Fact | None:
    if (p.tag == "Extension" and p.attributes.get("name") in _ORIGINS) or (
            p.tag == "Executable" and p.text.startswith("#")):
        return None
    if p.tag == "Variable":
        return Fact(where, f"Variable {p.attributes.get('name', '')}", p.text)
    names = [p.attributes[n] for n in _NAMES if n in p.attributes and not (n == "aggregation" and p.tag in _SETS)]
    others = [f"{k}={v}" for k, v in sorted(p.attributes.items())
              if k not in (*_NAMES, *_CHOICE, "units", "awarenessPolicy", "aggregation")]
    name = " ".join([p.tag, *names, *others])
    return Fact(where, name, f"{_condition(p)}{shown(p)}")


def _condition(p: Property) -> str:
    """``or not at least ``: what makes a value a condition."""
    stated = [(k, p.attributes[k]) for k in ("conj", "op", "group", "preference") if k in p.attributes]
    words = [text for name, text in stated if (name, text) not in SILENT]
    return f"[{' '.join(words)}] " if words else ""


def shown(p: Property) -> str:
    """The value in one spelling: bytes in the largest exact unit, nodes as a folded set, arrays as their indices."""
    text = p.text
    if p.tag in _BYTES and isinstance(p.value, int | float | Decimal):
        try:
            amount, units = from_bytes(to_bytes(Decimal(p.value), p.get("units")))
            return f"{amount:f} {units}"
        except (LexicalError, ArithmeticError):
            pass                    # compared as it is written
    if p.tag == "Node" and p.attributes.get("aggregation") in (None, "Range", "List"):
        try:
            return str(NodeSet.parse_list(text))
        except LexicalError:
            return text
    if p.tag == "Dependency":
        return _SUCCESSOR.sub(r"\1", text)
    if p.tag in _TIMES and isinstance(p.value, int):
        return utc(p.value)
    if p.tag == "NotificationList":
        return ",".join(sorted({w.strip() for w in text.split(",") if w.strip()}))
    if p.tag == "Extension" and p.attributes.get("name") == "Array":
        return _array(text)
    if isinstance(p.value, Decimal):
        return f"{p.value.normalize():f}"
    return f"{text} {p.get('units')}" if p.get("units") else text


def _array(text: str) -> str:
    """Indices in order, steps of one left out: ``1-10:1`` is ``1-10``."""
    listed, percent, throttle = text.partition("%")
    indices = ranges(listed)
    if indices is None or not all(indices) or (percent and not throttle.isdecimal()):
        return text
    parts = []
    for span in indices:
        end = "" if len(span) == 1 else f"-{span[-1]}"
        parts.append((span[0], f"{span[0]}{end}{f':{span.step}' if len(span) > 1 and span.step > 1 else ''}"))
    return ",".join(part for _, part in sorted(parts)) + percent + throttle


# -- what follows from counts and amounts
def _comes_to(part: Part, amounts: Mapping[Identity, Total], stated: list[Property]) -> Iterator[tuple[str, str]]:
    """Name and value of what a task group, or a job with one at most, comes to. stated: what it is from."""
    layout = part.layout
    nodes = layout.node_total
    span = range_of(p for p in stated if p.tag == "NodeCount")
    most = layout.nodes_most or (span[1] if span is not None else None)
    most = None if most == nodes else most
    if nodes is not None:
        yield "nodes", f"{nodes}{f' to {most}' if most is not None else ''}"
    processors = layout.processor_total
    if processors is not None:
        # a chunk is a task, and a place for one on each of its processors
        tasks = dict.fromkeys((layout.tasks_assumed, replace(layout, chunks=None).tasks_assumed))
        yield _TASKS[0], _OR.join(map(str, tasks))
        each = [layout.per_node] if layout.per_node else [
            n // nodes for n in tasks if nodes and most is None and not n % nodes]
        if len(set(layout.geometry)) > 1:
            yield "tasks of each node", ", ".join(map(str, layout.geometry))
        elif each:
            yield _TASKS[1], _OR.join(map(str, each))
        yield "processors", str(processors)
    for identity in dict.fromkeys(identity_of(p) for p in stated if p.tag in COUNTED):
        total = amounts.get(identity)
        if total is not None:
            metric = next(p.attributes.get("metric", "") for p in stated if identity_of(p) == identity)
            yield _amount_name(identity), f"{_amount(total)}{_WORDS['' if total.known else metric]}"


_WORDS: Final = {"": " in all", "Total": " in all", "PerNode": " a node", "PerProcessor": " a processor",
                 "PerSlot": " a processor", "PerChunk": " a chunk", "PerGPU": " a GPU"}


def _amount_name(identity: Identity) -> str:
    """``memory``, ``GPUs a100``, ``Resource License matlab``."""
    tag, *names = identity
    if is_gpu(identity):
        tag, names = "GPUs", names[1:]
    return " ".join((tag.lower() if tag in _BYTES else tag, *filter(None, names)))


def _amount(total: Total) -> str:
    """``4 GB``: bytes in the largest exact unit."""
    units, value = total.units, number_shown(total.value)
    if units == "B" and total.value.denominator == 1:
        number, units = from_bytes(total.value.numerator)
        value = f"{number:f}"
    return f"{value} {units}" if units else value


def _counted(scopes: list[Container]) -> list[Property] | None:
    """The properties that counts and amounts follow from, of a job and its one group, or of one of several groups; None
    where one is a condition, or stands twice in a scope, so that they are compared as they stand."""
    stated: list[Property] = []
    for scope in scopes:
        keys = set[tuple[Identity, str]]()
        for p, level in _asked(scope):
            chunks = p.tag == "Extension" and p.attributes.get("name") == "ChunkCount"
            if p.tag not in _LAYOUT and p.tag not in COUNTED and not chunks:
                continue
            if number_of(p.value) is None if p.tag != "TaskDistribution" else distribution_of(p)[0] == "Rule":
                continue                # words, which are compared as they stand
            bound = p.attributes.get("op", "") if p.tag == "NodeCount" and not level else ""
            if _condition(p) and _condition(p) != f"[{bound}] ":
                return None
            key = (identity_of(p), f"{level} {bound}")
            if key in keys:
                return None
            keys.add(key)
            stated.append(p)
    bounds = {p.op for p in stated if p.tag == "NodeCount" and _condition(p)}
    return stated if not bounds or range_of(p for p in stated if p.tag == "NodeCount") is not None else None


def _asked(scope: Container, level: str = "") -> Iterator[tuple[Property, str]]:
    """The properties that a scope asks for; level: ``task`` for those of each task."""
    for item in scope.items:
        if isinstance(item, Property):
            yield item, level
        elif item.tag == "Requested":
            yield from _asked(item, level) if isinstance(item, Container) else ()
        elif item.tag == "TaskDefaults" and isinstance(item, Container) and isinstance(scope, TaskGroup):
            yield from _asked(item, "task")
