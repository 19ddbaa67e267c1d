"""Two documents compared by what they mean: property by property and level by level, amounts in one unit, sets without
an order, and layouts (nodes, tasks, processors, memory, GPUs) by what follows from them.

    differences(one, other)  ->  [Difference("job: wall clock limit", "3600", "7200"), ...]

``--nodes=2 --ntasks-per-node=8`` of one script asks for what ``select=2:ncpus=8:mpiprocs=8`` with ``place=scatter`` of
another does: both are 2 nodes, 16 tasks, 16 processors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.inherit import distinct, effective
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document, Job, TaskGroup
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import from_bytes, to_bytes
from sssjob.document.vocabulary import ELEMENTS, SILENT
from sssjob.lrm.idset import ranges
from sssjob.lrm.usage import whole

__all__ = ["Difference", "Fact", "Habits", "differences", "facts", "shown"]

_BYTES: Final = ("Memory", "Disk", "Swap")
_CHOICE: Final = frozenset(("op", "conj", "group", "preference"))
#: Properties of the layout, which are compared by what follows from them.
_LAYOUT: Final = frozenset(("NodeCount", "TaskCount", "TaskDistribution", "Processors", "Memory"))
#: Attributes that part one property from another of the same name.
_NAMES: Final = ("type", "name", "metric", "context", "condition", "designator", "code", "aggregation")
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
_LATEST: Final = 250_000_000_000        # seconds, in the year 9892
_PER: Final = {"": "job", "Total": "job", "PerSlot": "PerProcessor"}


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
            if its[name] == habits.exports(_dialect(next((job for job, _ in document.jobs()), None))):
                mine[name] = its[name]      # one says what the other does without a word
    names = list(dict.fromkeys((*a, *b)))
    return [Difference(n, a.get(n), b.get(n)) for n in names if a.get(n) != b.get(n)], sum(a.get(n) == b.get(n)
                                                                                         for n in names)


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
    for number, (job, defaults) in enumerate(jobs, 1):
        folded = distinct(job if defaults is None else effective(job, defaults).fold())
        name = str(job.value("Id") or job.value("Name") or number)
        scope = f"job {name}" if len(jobs) > 1 else "job"
        facts_of_job = _of_job(document, folded, scope, script, habits.here)
        yield from _files(list(facts_of_job), folded, scope, habits.merges)
    if not jobs:
        for body in document.bodies():
            yield from _of_scope(body, body.tag, frozenset())


def _files(facts_of_files: list[Fact], job: Job, scope: str, merges: Callable[[str], bool]) -> Iterator[Fact]:
    """The same with files as they become: the job's own name in their names, both streams in one, and the directory of
    the submission left out, which a script says by a command or not at all."""
    name, dialect = job.value("Name"), _dialect(job)
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


def _dialect(job: Job | None) -> str:
    """The dialect of the script that a job was, by name; empty where it was none."""
    return "" if job is None else next((p.text for p in job.all("Extension") if p.get("name") == "Dialect"), "")


_MERGED: Final = "ErrorFile"
_EXPORT: Final = "Environment export"


def _of_job(document: Document, job: Job, scope: str, script: bool, here: frozenset[str]) -> Iterator[Fact]:
    groups = job.task_groups
    parts: list[tuple[str, list[Container]]] = [(scope, [job, *groups])] if len(groups) < 2 else [
        (f"{scope}, task group {n}", [g]) for n, g in enumerate(groups, 1)]
    handled = frozenset[int]()
    for where, scopes in parts:
        layout = _Layout.of(scopes)
        if layout is not None:
            handled |= layout.taken
            yield from (Fact(where, name, value) for name, value in layout.said())
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
    if p.tag in _TIMES and isinstance(p.value, int) and abs(p.value) < _LATEST:
        return datetime.fromtimestamp(p.value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
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


# -- layouts
@dataclass(slots=True)
class _Layout:
    """The numbers of one part, stated and what follows from them; taken: identities of the properties they are from."""

    nodes: int | None = None
    most: int | None = None
    tasks: int | None = None
    per_node: int | None = None
    cpus: int | None = None
    processors: int | None = None
    chunks: int | None = None
    memory: tuple[int, str] | None = None
    gpus: dict[str, tuple[int, str]] = field(default_factory=dict)
    taken: frozenset[int] = frozenset()

    @classmethod
    def of(cls, scopes: list[Container]) -> _Layout | None:
        """The layout of a job and its one group, or of one of several groups; None: it is no plain demand."""
        layout, taken = cls(), set[int]()
        for scope in scopes:
            for p, level in _asked(scope):
                gpu = p.tag == "Resource" and p.attributes.get("name") == "GPU"
                chunks = p.tag == "Extension" and p.attributes.get("name") == "ChunkCount"
                if p.tag not in _LAYOUT and not gpu and not chunks:
                    continue
                if not layout._take(p, level):
                    return None
                taken.add(id(p))
        layout.taken = frozenset(taken)
        layout._follow()
        return layout

    def _take(self, p: Property, level: str) -> bool:
        """Note one property; False for a condition, or for the second of its kind."""
        choices = _CHOICE & p.attributes.keys()
        if p.tag == "NodeCount" and choices == {"op"} and p.attributes["op"] in ("GE", "LE"):
            name = "nodes" if p.attributes["op"] == "GE" else "most"
        elif choices and _condition(p):
            return False
        elif p.tag == "Memory":
            return self._amount(p, level)
        elif p.tag == "Resource":
            kind = p.attributes.get("type", "")
            new = kind not in self.gpus
            self.gpus[kind] = (int(Decimal(p.text)), level or _per(p))
            return new
        else:
            name = _COUNTS.get((p.tag, level), _COUNTS.get((p.tag, ""), ""))
            if p.tag == "TaskDistribution":
                name = {"TasksPerNode": "per_node", "ProcessorsPerTask": "cpus"}.get(
                    p.attributes.get("type", "TasksPerNode"), "")
        number = whole(p.text)
        if not name or number is None or getattr(self, name) is not None:
            return False
        setattr(self, name, number)
        return True

    def _amount(self, p: Property, level: str) -> bool:
        try:
            amount = int(to_bytes(Decimal(p.text), p.get("units")))
        except (LexicalError, ArithmeticError):
            return False
        if self.memory is not None:
            return False
        self.memory = (amount, level or _per(p))
        return True

    def _follow(self) -> None:
        """Fill in what follows (decisions 7 and 8)."""
        if self.tasks is None and self.per_node is not None and self.nodes is not None and self.most is None:
            self.tasks = self.per_node * self.nodes
        if self.tasks is None and self.processors is not None:
            self.tasks = self.processors // (self.cpus or 1)
        if self.nodes is None and self.per_node and self.tasks and not self.tasks % self.per_node:
            self.nodes = self.tasks // self.per_node
        if self.tasks is None and self.nodes is None and self.cpus is not None:
            self.tasks = 1
        if self.processors is None and self.tasks is not None:
            self.processors = self.tasks * (self.cpus or 1)
        if self.per_node is None and self.nodes and self.tasks and not self.tasks % self.nodes and self.most is None:
            self.per_node = self.tasks // self.nodes
        if self.nodes == self.most:
            self.most = None

    def said(self) -> Iterator[tuple[str, str]]:
        """Name and value of everything that is known."""
        if self.nodes is not None or self.most is not None:
            yield "nodes", f"{self.nodes or 1}{f' to {self.most}' if self.most is not None else ''}"
        for name, value in (("tasks", self.tasks), ("tasks a node", self.per_node), ("processors", self.processors)):
            if value is not None:
                yield name, str(value)
        if self.memory is not None:
            amount, per = self._total(*self.memory)
            number, units = from_bytes(amount)
            yield "memory", f"{number:f} {units}{_WORDS.get(per, f' {per}')}"
        for kind, gpus in self.gpus.items():
            amount, per = self._total(*gpus)
            yield f"GPUs {kind}".rstrip(), f"{amount}{_WORDS.get(per, f' {per}')}"

    def _total(self, amount: int, per: str) -> tuple[int, str]:
        """An amount of the whole part, where the factor is known; else as it was said."""
        factors: Mapping[str, int | None] = {
            "job": 1, "PerNode": self.nodes if self.most is None else None, "task": self.tasks,
            "PerProcessor": self.processors, "PerChunk": self.chunks}
        factor = factors.get(per)
        return (amount, per) if factor is None else (amount * factor, "job")


_COUNTS: Final = {("NodeCount", ""): "nodes", ("TaskCount", ""): "tasks", ("Processors", "task"): "cpus",
                  ("Processors", ""): "processors", ("Extension", ""): "chunks"}
_WORDS: Final = {"job": " in all", "PerNode": " a node", "task": " a task", "PerProcessor": " a processor",
                 "PerChunk": " a chunk", "PerGPU": " a GPU"}


def _per(p: Property) -> str:
    metric = p.attributes.get("metric", "")
    return _PER.get(metric, metric)


def _asked(scope: Container, level: str = "") -> Iterator[tuple[Property, str]]:
    """The properties that a scope asks for; level: ``task`` for those of each task."""
    for item in scope.items:
        if isinstance(item, Property):
            yield item, level
        elif item.tag == "Requested":
            yield from _asked(item, level) if isinstance(item, Container) else ()
        elif item.tag == "TaskDefaults" and isinstance(item, Container) and isinstance(scope, TaskGroup):
            yield from _asked(item, "task")
