"""PSI/J: job object <-> JobSpec, both ways, and the JSON text of JobSpecs (format ``psij``).

``to_spec`` walks every item of a job once, so that whatever no rule below takes becomes a finding that names it;
``from_spec`` does the same for the members of a JobSpec. Nothing here starts a process or opens a file.
Sources: PSI/J specification (JobSpec, ResourceSpecV1, JobAttributes); numbers after "decisions" are rows of the
project's table of decisions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any, Final

from psij import (
    URI,
    InvalidJobException,
    JobAttributes,
    JobSpec,
    JSONSerializer,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from sssjob.element import Container, Property, Raw, Value, new_property
from sssjob.findings import Findings, Policy, Severity
from sssjob.inherit import effective
from sssjob.lexical import LexicalError
from sssjob.limits import Limits
from sssjob.model import Document, Environment, Job, JobGroup, Requested, TaskDefaults, TaskGroup
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.units import from_bytes, to_bytes

__all__ = ["FACTS", "JSON", "TRANSLATOR", "Target", "from_spec", "read", "to_spec", "write"]

#: Properties of one job's life: no part of what is asked for (decisions 18, 19).
FACTS: Final = frozenset((
    "State", "StatusMessage", "StartTime", "EndTime", "ExitCode", "StartCount", "SuspendDuration", "CpuDuration",
    "Charge", "SubmitTime", "SubmitHost", "StagedTime", "GlobalJob", "Session", "Process",
))
_EXTENSION_CONTEXTS: Final = frozenset(("Scheduler", "LRM", "PSIJ", "MJF", "SSSJob", "Maui", "Moab", "Gold"))

_JOB, _GROUP, _GROUPS = "Job", "Job/TaskGroup", "Job/TaskGroupDefaults"
_TASK: Final = (f"{_GROUP}/Task", f"{_GROUP}/TaskDefaults", f"{_GROUPS}/TaskDefaults")
#: Where a property is looked for, nearest first (job object 3.1.0, section 2.2).
_NEAREST: Final = (*_TASK, _GROUP, _GROUPS, _JOB)
_AMOUNTS: Final = (_GROUP, _GROUPS, _JOB)
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)     # what PSI/J replaces
_CHOICE: Final = frozenset(("op", "conj", "group", "preference"))


@dataclass(frozen=True, slots=True)
class Target:
    """What a JobSpec is made for.

    rule: of the finding for what is not carried. irrelevant: names whose loss never rejects (section 9.0: not critical
    is not a failure). handled: names the caller looks after itself. executor: empty for text; ``local`` understands
    redirectList. launcher: starts the tasks where the job names none; with invented True a finding says so.
    """

    rule: str = "SSS501"
    irrelevant: frozenset[str] = frozenset(("Id",))
    handled: frozenset[str] = frozenset()
    executor: str = ""
    launcher: str = "mpirun"
    word: str = "a JobSpec has no place for it"
    side_by_side: bool = False      # one of several task groups: amounts of the job are not the group's
    dollar: str = ""                # variable that stands for a dollar sign, so that nothing is replaced at the start


JSON: Final = Target()


# --- job object -> JobSpec ----------------------------------------------------------------------------------------

@dataclass(slots=True)
class _Entry:
    """One item of the job at its place."""

    item: Property | Raw | Container
    level: str
    slot: str                       # "", Requested, Delivered or Environment
    path: str
    policy: Policy
    used: bool = False
    understood: set[str] = field(default_factory=set)   # attributes

    @property
    def tag(self) -> str:
        return self.item.tag

    @property
    def attributes(self) -> Mapping[str, str]:
        return self.item.attributes

    @property
    def value(self) -> Value:
        assert isinstance(self.item, Property)
        return self.item.value

    @property
    def text(self) -> str:
        assert isinstance(self.item, Property)
        return self.item.text


def _policy(item: Property | Raw | Container, inherited: Policy) -> Policy:
    stated = item.attributes.get("awarenessPolicy")
    return inherited if stated is None else Policy.of(stated) or Policy.REJECT


def _walk(scope: Container, level: str, slot: str, path: str, policy: Policy,
          group: TaskGroup | None) -> Iterator[_Entry]:
    """Every leaf and every unknown item below a scope; of the task groups only the one asked for."""
    policy = _policy(scope, policy)
    for name in scope.attributes:
        if name not in ("awarenessPolicy", "export"):
            yield _Entry(Raw(f"@{name}"), level, slot, f"{path}/@{name}", policy)
    numbers: dict[str, int] = {}
    for item in scope.items:
        if isinstance(item, Container):
            numbers[item.tag] = numbers.get(item.tag, 0) + 1
            below = f"{path}/{item.tag}" + (f"[{numbers[item.tag]}]" if item.tag in ("TaskGroup", "Task") else "")
            if item.tag in ("Requested", "Delivered", "Environment"):
                yield from _walk(item, level, item.tag, below, policy, group)
            elif item.tag != "TaskGroup" or group is None or item is group:
                other = "+" if item.tag == "Task" and numbers["Task"] > 1 else ""      # only the first one is taken
                yield from _walk(item, f"{level}/{item.tag}{other}", "", below, policy, group)
        else:
            yield _Entry(item, level, slot, f"{path}/{item.tag}", _policy(item, policy))


class _Writing:
    """One job on its way into a JobSpec."""

    def __init__(self, job: Job, findings: Findings, policy: Policy, files: Mapping[str, str], target: Target,
                 group: TaskGroup | None) -> None:
        self.job, self.group, self.findings, self.files, self.target = job, group, findings, files, target
        self.entries = list(_walk(job, _JOB, "", "/Job", policy, group))
        self._same_tasks()
        self.spec = JobSpec(attributes=JobAttributes(duration=None))
        self._per_task: int | None = None       # ProcessorsPerTask

    def _same_tasks(self) -> None:
        """What another task says as the first one does is carried with it."""
        first = [(e.slot, e.item) for e in self.entries if e.level == _TASK[0]]
        for e in self.entries:
            if e.level == f"{_TASK[0]}+" and (e.slot, e.item) in first:
                e.used = True
                e.understood |= e.attributes.keys()

    # -- findings
    def note(self, rule: str, entry: _Entry | None, message: str, severity: Severity | None = None,
             subject: str = "") -> None:
        """One finding about an entry (None: about the job)."""
        self.findings.add(rule, subject or (entry.tag if entry else "Job"), message, severity=severity,
                          policy=entry.policy if entry else Policy.REJECT, path=entry.path if entry else "/Job",
                          line=self.job.line)

    def dropped(self, entry: _Entry, why: str = "", subject: str = "") -> None:
        """The finding for what is not carried."""
        name = subject or entry.tag
        severity: Severity | None = "warning" if entry.tag in self.target.irrelevant else None
        if severity and entry.policy is Policy.IGNORE:
            return
        self.note(self.target.rule, entry, f"{name}: {why or self.target.word}", severity, name)

    # -- asking
    def find(self, tag: str, levels: Sequence[str] = _NEAREST, **attributes: str) -> list[_Entry]:
        """The entries that count for a name: the nearest level, there Requested over bare (decisions 5)."""
        fits = [e for e in self.entries if e.tag == tag and e.slot in ("", "Requested") and e.level in levels
                and isinstance(e.item, Property) and all(e.attributes.get(k) == v for k, v in attributes.items())]
        for e in fits:
            e.used = True
            e.understood |= _CHOICE | attributes.keys()
        for level in levels:
            for slot in ("Requested", ""):
                found = [e for e in fits if e.level == level and e.slot == slot]
                if found:
                    return found
        return []

    def one(self, tag: str, levels: Sequence[str] = _NEAREST, *, most: bool = False,
            **attributes: str) -> _Entry | None:
        """The one entry a single value is taken from; ranges and alternatives by decisions 12."""
        found = self.find(tag, levels, **attributes)
        plain = [e for e in found if e.attributes.get("op", "EQ") not in ("NE", "Match")]
        for e in found:
            if e not in plain:
                self.dropped(e, f"a condition {e.attributes['op']} has no place in a JobSpec")
        if not plain:
            return None
        chosen = _choice(plain, most)
        exact = ("EQ", "LE") if most else ("EQ",)       # a time limit is an upper bound already
        if len(found) > 1 or chosen.attributes.get("op", "EQ") not in exact or "preference" in chosen.attributes:
            self.note("SSS502", chosen, f"{tag}: {chosen.text} is taken of "
                      + ", ".join(f"{e.attributes.get('op', 'EQ')} {e.text}" for e in found))
        return chosen

    def text(self, tag: str) -> str | None:
        """The text of a property that is carried as it is."""
        entry = self.one(tag)
        return None if entry is None else entry.text

    def count(self, tag: str, levels: Sequence[str] = _AMOUNTS) -> int | None:
        """A number of things; 0 says nothing to PSI/J."""
        entry = self.one(tag, levels)
        if entry is None:
            return None
        value = entry.value
        if not isinstance(value, int) or value < 1:
            self.dropped(entry, f"{entry.text} is no number of things that PSI/J takes")
            return None
        if entry.attributes.get("op") == "GT":
            return value + 1
        return max(value - 1, 1) if entry.attributes.get("op") == "LT" else value

    @property
    def amounts(self) -> tuple[str, ...]:
        """Levels at which an amount is the whole of what this JobSpec asks for."""
        return (_GROUP, _GROUPS) if self.target.side_by_side else _AMOUNTS

    # -- the parts of a JobSpec
    def result(self) -> JobSpec:
        """The JobSpec, once."""
        self._identity()
        self._command()
        self._environment()
        self._streams()
        self._attributes()
        self._extensions()
        self._resources()
        self._rest()
        return self.spec

    def _identity(self) -> None:
        name = self.one("Name", (_JOB,))
        if name is None:
            return
        self.spec.name = name.text
        if name.text == self.text("Executable"):
            self.note("SSS502", name, "Name: a JobSpec cannot tell a name that is the executable from none")

    def _command(self) -> None:
        self._executable()
        arguments = self.one("Arguments")
        if arguments is not None:
            self.spec.arguments = self._words(arguments)
        directory = self.one("InitialWorkingDirectory")
        if directory is not None:
            self.spec.directory = directory.text
            if not directory.text.startswith(("/", "~/")) and not self.target.executor:
                self.note("SSS504", directory, f"InitialWorkingDirectory: {directory.text} is relative; "
                          "PSI/J asks for an absolute directory")

    def _executable(self) -> None:
        entry = self.one("Executable")
        if entry is None:
            return
        text = entry.text
        if not text.startswith("#"):
            self.spec.executable = text
            if "://" in text:
                self.note("SSS504", entry, f"Executable: {text} would have to be fetched")
        elif text[1:] in self.files:
            self.spec.executable = self.files[text[1:]]
        else:
            self.dropped(entry, f"the script {text} has no place in a JobSpec, which names a file")

    def _words(self, entry: _Entry) -> list[str]:
        """Arguments as a list (decisions 24, 25)."""
        text = entry.text
        try:
            words = shlex.split(text)
        except ValueError as error:
            self.note("SSS502", entry, f"Arguments: taken as one argument: {error}")
            words = [text]
        if shlex.join(words) != text:
            self.note("SSS502", entry, f"Arguments: quoted anew as {shlex.join(words)}", "info")
        return [self._dollar(entry, "Arguments", word) for word in words]

    def _dollar(self, entry: _Entry, name: str, text: str) -> str:
        """The text as it goes into the JobSpec: PSI/J replaces ``${NAME}``, the job object does not (decisions 25)."""
        if not _REFERENCE.search(text):
            return text
        if self.target.dollar:
            return _REFERENCE.sub(f"${{{self.target.dollar}}}{{\\1}}", text)
        self.note("SSS502", entry, f"{name}: PSI/J replaces ${{...}} at the start, the job object does not")
        return text

    def _environment(self) -> None:
        variables: dict[str, str] = {}
        for level in reversed(_NEAREST):
            for e in self.entries:
                if e.slot == "Environment" and e.level == level and e.tag == "Variable" and isinstance(
                        e.item, Property):
                    e.used = True
                    e.understood.add("name")
                    name = e.attributes.get("name", "")
                    variables[name] = self._dollar(e, f"Variable {name}", e.text)
        if self.target.dollar and any(self.target.dollar in text for text in [
                *variables.values(), *(self.spec.arguments or ())]):
            variables = {self.target.dollar: "$", **variables}
        self.spec.environment = variables or None
        export = self._export()
        self.spec.inherit_environment = export is not False
        if export is None:
            self.note("SSS503", None, "Environment: the job does not say whether the submitter's variables go along; "
                      "PSI/J passes them on", "info" if self.target.executor else None, "export")

    def _export(self) -> bool | None:
        found: dict[str, bool] = {}
        for level, scope in _scopes(self.job, _JOB, self.group):
            for child in scope.containers("Environment"):
                stated = child.attributes.get("export")
                if stated is not None:
                    found.setdefault(level, stated == "true")
        return next((found[level] for level in _NEAREST if level in found), None)

    def _streams(self) -> None:
        for tag, member in (("InputFile", "stdin"), ("OutputFile", "stdout"), ("ErrorFile", "stderr")):
            entry = self.one(tag)
            if entry is None:
                continue
            entry.understood.add("redirectList")
            if entry.text:
                setattr(self.spec, f"{member}_path", entry.text)
            elif not self.target.executor:
                self.dropped(entry, "an empty name leaves the file to the queuing system; PSI/J takes /dev/null")
            self._redirect(entry, member)

    def _redirect(self, entry: _Entry, member: str) -> None:
        for word in filter(None, (w.strip() for w in entry.attributes.get("redirectList", "").split(","))):
            if word == "Close":
                setattr(self.spec, f"{member}_path", None)
            elif word == "Append" and member != "stdin" and self.target.executor == "local":
                self.attribute(f"local.{member}_mode", "append")
            elif word == "Merge" and member != "stdin" and self.target.executor == "local":
                other = "stdout" if member == "stderr" else "stderr"
                self.attribute("local.merge", f"{member}-to-{other}")
            elif word == "Keep" and self.target.executor == "local":
                continue
            else:
                self.dropped(entry, f"{word} is not carried", f"{entry.tag}/@redirectList")

    def attribute(self, name: str, value: object) -> None:
        """Set a custom attribute."""
        assert self.spec.attributes is not None
        self.spec.attributes.set_custom_attribute(name, value)

    def _attributes(self) -> None:
        attributes = self.spec.attributes
        assert attributes is not None
        duration = self.one("Duration", most=True)
        if duration is not None:
            attributes.duration = timedelta(seconds=int(duration.value))
        attributes.queue_name = self.text("Queue") if "Queue" not in self.target.irrelevant else None
        attributes.account = self.text("Project") if "Project" not in self.target.irrelevant else None
        attributes.reservation_id = self.text("Reservation") if self.target.executor != "local" else None

    def _extensions(self) -> None:
        for e in self.entries:
            if e.tag != "Extension" or e.slot not in ("", "Requested") or not isinstance(e.item, Property):
                continue
            kind, name = e.attributes.get("type", ""), e.attributes.get("name", "")
            if kind in ("Scheduler", "PSIJ"):
                e.used = self._known(e, kind, name)
            elif kind not in _EXTENSION_CONTEXTS and self.target.executor in ("", kind.lower()):
                self.attribute(f"{kind}.{name}" if kind else name, e.text)
                e.used = True
            e.understood |= {"name", "type"}

    def _known(self, e: _Entry, kind: str, name: str) -> bool:
        """Take an Extension of PSI/J's own or of the Scheduler context; False when it is neither's."""
        spec = self.spec
        if (kind, name) == ("Scheduler", "Launcher"):
            spec.launcher = e.text
        elif kind == "PSIJ" and name in ("PreLaunch", "PostLaunch"):
            setattr(spec, "pre_launch" if name == "PreLaunch" else "post_launch", e.text)
        elif kind == "PSIJ" and name in ("StageIn", "StageOut", "Cleanup", "CleanupFlags"):
            try:
                _read_staging(spec, name, e.text)
            except (ValueError, LookupError, TypeError, AttributeError):
                return False
        else:
            return (kind, name) == ("Scheduler", "ExclusiveNodeUse")
        return True

    # -- resources
    def _resources(self) -> None:
        values: dict[str, Any] = self._counts()
        exclusive = any(e.tag == "Extension" and e.attributes.get("name") == "ExclusiveNodeUse"
                        and isinstance(e.item, Property) and e.text.lower() == "true" for e in self.entries)
        values |= {"gpu_cores_per_process": self._gpus(values), "memory": self._memory(values),
                   "exclusive_node_use": exclusive}
        values = {k: v for k, v in values.items() if v is not None and v is not False}
        if values:
            self.spec.resources = self._consistent(values)

    def _counts(self) -> dict[str, Any]:
        """Nodes, processes and cores (decisions 8 to 10)."""
        tasks = self.count("TaskCount", (_GROUP, _GROUPS)) or self._listed()
        processors = self.count("Processors", self.amounts)
        each = self.count("Processors", _TASK)
        per_node = self._distribution()
        if each is None:
            each = self._per_task
        if tasks is None and processors is not None:
            processes: int | None = self._shared(processors, each or 1, "Processors")
        else:
            processes = tasks
            if tasks and processors and each is None and processors != tasks:
                each = self._shared(processors, tasks, "Processors")
        self._launcher(tasks)
        return {"node_count": self.count("NodeCount", self.amounts), "process_count": processes,
                "processes_per_node": per_node, "cpu_cores_per_process": each}

    def _listed(self) -> int | None:
        """The number of explicit tasks where no TaskCount is stated."""
        groups = [self.group] if self.group is not None else self.job.task_groups
        return sum(len(g.tasks) for g in groups) or None

    def _launcher(self, tasks: int | None) -> None:
        if tasks is not None and tasks > 1 and self.spec.launcher is None:
            self.spec.launcher = self.target.launcher
            if not self.target.executor:
                self.note("SSS503", None, f"Launcher: {tasks} tasks need one; {self.target.launcher} is taken",
                          None, "Launcher")

    def _distribution(self) -> int | None:
        """TasksPerNode; ProcessorsPerTask is kept for the cores of a process (decisions 9)."""
        entry = self.one("TaskDistribution")
        if entry is None:
            return None
        kind = entry.attributes.get("type") or ("TasksPerNode" if entry.text.isdigit() else "Rule")
        entry.understood.add("type")
        if kind == "TasksPerNode" and entry.text.isdigit() and int(entry.text):
            return int(entry.text)
        if kind == "ProcessorsPerTask" and entry.text.isdigit() and int(entry.text):
            self._per_task = int(entry.text)
            return None
        self.dropped(entry, f"a distribution by {kind} is not carried")
        return None

    def _shared(self, total: int, parts: int, name: str) -> int:
        """total / parts, rounded up with a finding."""
        if total % parts:
            self.note("SSS502", None, f"{name}: {total} cannot be shared out evenly among {parts}; rounded up",
                      None, name)
        return -(-total // parts)

    def _gpus(self, counts: Mapping[str, Any]) -> int | None:
        each = self.one("Resource", _TASK, name="GPU")
        whole = self.one("Resource", self.amounts, name="GPU")
        entry = each or whole
        if entry is None:
            return None
        entry.understood.add("name")
        entry.understood.add("units")
        amount = int(Decimal(entry.value).to_integral_value(ROUND_CEILING))
        return amount if each else self._shared(amount, counts.get("process_count") or 1, "Resource GPU")

    def _memory(self, counts: Mapping[str, Any]) -> int | None:
        """Bytes of the whole job (decisions 6)."""
        each = self.one("Memory", _TASK)
        entry = each or self.one("Memory", self.amounts)
        if entry is None:
            return None
        entry.understood |= {"units", "metric"}
        processes = counts.get("process_count") or (counts.get("node_count") or 1) * (
            counts.get("processes_per_node") or 1)
        factors = {"Total": 1, "PerNode": counts.get("node_count") or 1,
                   "PerProcessor": processes * (counts.get("cpu_cores_per_process") or 1)}
        factor = processes if each else factors.get(entry.attributes.get("metric", "Total"))
        if factor is None:
            self.dropped(entry, f"metric {entry.attributes['metric']} is not carried")
            return None
        try:
            amount = to_bytes(Decimal(entry.value), entry.attributes.get("units")) * factor
        except LexicalError as error:
            self.dropped(entry, str(error))
            return None
        if factor != 1:
            self.note("SSS502", entry, f"Memory: {factor} times the amount is asked for the whole job", "info")
        return int(amount.to_integral_value(ROUND_CEILING))

    def _consistent(self, values: dict[str, Any]) -> ResourceSpecV1:
        """A ResourceSpecV1; what contradicts the number of processes is left out with a finding."""
        for left_out in ((), ("node_count",), ("processes_per_node",), ("node_count", "processes_per_node")):
            try:
                made = ResourceSpecV1(**{k: v for k, v in values.items() if k not in left_out})
            except InvalidJobException as error:
                problem = error
                continue
            for name in left_out:
                if name in values:
                    self.note(self.target.rule, None, f"{name}: {problem}", None, name)
            return made
        self.note("SSS505", None, str(problem), None, "resources")
        return ResourceSpecV1()

    # -- what is left
    def _rest(self) -> None:
        """One finding for facts of an earlier run, one for each item and attribute that is not carried."""
        facts = []
        for e in self.entries:
            if _is_fact(e):
                facts.append(e.tag if e.slot != "Delivered" else f"Delivered/{e.tag}")
            elif e.tag == "Interactive" and isinstance(e.item, Property) and e.value is False:
                continue        # what a JobSpec is anyway
            elif not e.used and e.tag not in self.target.handled:
                name = e.attributes.get("name")
                self.dropped(e, "", e.tag if name is None else f"{e.tag} {name}")
            elif e.tag not in self.target.handled:
                for attribute in e.attributes:
                    if attribute not in e.understood and attribute != "awarenessPolicy":
                        self.dropped(e, f"attribute {attribute} is not carried", f"{e.tag}/@{attribute}")
        if facts and "facts" not in self.target.handled:
            names = ", ".join(dict.fromkeys(facts))
            self.note("SSS501", None, f"results of a run are no part of a request: {names}", "warning", names)


def _is_fact(e: _Entry) -> bool:
    if e.slot == "Delivered" or (e.tag == "Extension" and e.attributes.get("type") == "LRM"):
        return True
    in_task = e.level.endswith(("/Task", "/Task+")) and e.tag in ("Id", "Node")
    return e.tag in FACTS or in_task or (e.tag == "Duration" and e.slot == "" and e.used is False)


def _scopes(scope: Container, level: str, group: TaskGroup | None) -> Iterator[tuple[str, Container]]:
    yield level, scope
    for child in scope.containers():
        if child.tag in ("TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults") and (
                child.tag != "TaskGroup" or group is None or child is group):
            yield from _scopes(child, f"{level}/{child.tag}", group)


def _choice(found: list[_Entry], most: bool) -> _Entry:
    """Least amount that satisfies all, or the greatest (``most``); of alternatives the heaviest (decisions 12)."""
    weighed = [e for e in found if int(e.attributes.get("preference", "0")) > 0]
    if weighed:
        return max(weighed, key=lambda e: int(e.attributes["preference"]))
    if len(found) == 1 or not all(isinstance(e.value, int | Decimal) for e in found):
        return found[0]
    exact = [e for e in found if e.attributes.get("op", "EQ") == "EQ"]
    upper = [e for e in found if e.attributes.get("op") in ("LE", "LT")]
    lower = [e for e in found if e.attributes.get("op") in ("GE", "GT")]
    if most:
        return max(exact, key=_number) if exact else min(upper or lower, key=_number)
    return min(exact, key=_number) if exact else max(lower or upper, key=_number)


def _number(e: _Entry) -> Decimal:
    return Decimal(e.value)


def to_spec(job: Job, findings: Findings, *, policy: Policy = Policy.REJECT, files: Mapping[str, str] | None = None,
            target: Target = JSON, group: TaskGroup | None = None) -> JobSpec:
    """The JobSpec of a job whose JobDefaults are folded in already.

    files: id of a File -> path at which it lies; a script that is not among them cannot be carried. group: the one of
    several task groups to take (None: all of them as one). What is lost is in findings.
    """
    groups = job.task_groups
    if group is None and len(groups) > 1:
        job = _merged(job, groups, findings, policy, target)
    return _Writing(job, findings, policy, files or {}, target, group).result()


def _merged(job: Job, groups: Sequence[TaskGroup], findings: Findings, policy: Policy, target: Target) -> Job:
    """The job with its task groups as one: equal but for TaskCount, or only the first is kept (decisions 11)."""
    first, *others = (_without_count(g) for g in groups)
    same = all(other == first for other in others)
    total = sum(int(g.value("TaskCount") or 1) for g in groups)
    names = f"{len(groups)} task groups"
    if same:
        findings.add("SSS502", "TaskGroup", f"{names} are asked for as one of {total} tasks", path="/Job/TaskGroup")
        one = TaskGroup([*first, new_property("TaskCount", total)])
    else:
        findings.add(target.rule, "TaskGroup", f"a JobSpec holds one kind of task, the job has {names}; "
                     "only the first is carried", policy=_policy(job, policy), path="/Job/TaskGroup[2]")
        one = groups[0]
    kept = [i for i in job.items if i.tag != "TaskGroup"]
    return Job([*kept, one], job.attributes, None, job.line)


def _without_count(group: TaskGroup) -> list[Any]:
    return [i for i in group.items if i.tag not in ("TaskCount", "Id", "Name")]


def _read_staging(spec: JobSpec, name: str, text: str) -> None:
    if name == "Cleanup":
        spec.cleanup = {*(spec.cleanup or ()), text}
        return
    if name == "CleanupFlags":
        spec.cleanup_flags = _flags(text)
        return
    made = json.loads(text)
    mode = StagingMode[made.get("mode", "COPY")]
    if name == "StageIn":
        spec.stage_in = {*(spec.stage_in or ()), StageIn(URI(made["source"]), made["target"], mode)}
    else:
        out = StageOut(made["source"], URI(made["target"]), _flags(made.get("flags", "ALWAYS")), mode)
        spec.stage_out = {*(spec.stage_out or ()), out}


def _flags(text: str) -> StageOutFlags:
    """``IF_PRESENT|ON_ERROR`` as flags."""
    flags = StageOutFlags.NONE
    for word in text.split("|"):
        flags |= StageOutFlags[word]
    return flags


def _flag_words(flags: StageOutFlags) -> str:
    if flags & StageOutFlags.ALWAYS == StageOutFlags.ALWAYS:
        return "IF_PRESENT|ALWAYS" if flags & StageOutFlags.IF_PRESENT else "ALWAYS"
    words = [f.name or "" for f in (StageOutFlags.IF_PRESENT, StageOutFlags.ON_SUCCESS, StageOutFlags.ON_ERROR,
                                    StageOutFlags.ON_CANCEL) if flags & f]
    return "|".join(words) or "NONE"


# --- JobSpec -> job object ----------------------------------------------------------------------------------------

def from_spec(spec: JobSpec, findings: Findings) -> Job:
    """The job of a JobSpec: amounts in Requested (decisions 4), all else bare."""
    job = Job()
    _add(job, "Name", None if spec.name == spec.executable else spec.name)
    _add(job, "Executable", spec.executable)
    if spec.arguments is not None:
        _dollars(findings, "Arguments", spec.arguments)
        job.add("Arguments", shlex.join(spec.arguments))
    _add(job, "InitialWorkingDirectory", spec.directory)
    _read_attributes(job, spec.attributes or JobAttributes(duration=None))
    for tag, member in (("InputFile", "stdin"), ("OutputFile", "stdout"), ("ErrorFile", "stderr")):
        _add(job, tag, getattr(spec, f"{member}_path"))
    _read_environment(job, spec, findings)
    requested = Requested()
    group = TaskGroup()
    _read_duration(requested, spec.attributes, findings)
    if isinstance(spec.resources, ResourceSpecV1):
        _read_resources(job, requested, group, spec.resources, spec.launcher)
    elif spec.resources is not None:
        findings.add("SSS501", "resources", f"resources of version {spec.resources.version} are not known")
    _read_extensions(job, spec, findings)
    job.items += [c for c in (requested, group) if c.items]
    return job


def _add(scope: Container, tag: str, value: object) -> None:
    if value is not None and str(value) != "":
        scope.add(tag, str(value))


def _dollars(findings: Findings, name: str, texts: Iterable[str]) -> None:
    if any(_REFERENCE.search(text) for text in texts):
        findings.add("SSS502", name, f"{name}: PSI/J replaces ${{...}} at the start, the job object does not",
                     path=f"/Job/{name}")


def _read_attributes(job: Job, attributes: JobAttributes) -> None:
    _add(job, "Queue", attributes.queue_name)
    _add(job, "Project", attributes.account)
    _add(job, "Reservation", attributes.reservation_id)


def _read_duration(requested: Requested, attributes: JobAttributes | None, findings: Findings) -> None:
    if attributes is None or attributes.duration is None:
        return
    exact = Decimal(str(attributes.duration.total_seconds()))
    whole = int(exact.to_integral_value(ROUND_HALF_UP))
    if whole != exact:
        findings.add("SSS502", "Duration", f"Duration: {exact} s becomes {whole}", path="/Job/Requested/Duration")
    requested.add("Duration", whole)


def _read_environment(job: Job, spec: JobSpec, findings: Findings) -> None:
    variables = spec.environment or {}
    _dollars(findings, "Environment", variables.values())
    made = [new_property("Variable", value, {"name": name}) for name, value in variables.items()]
    job.items.append(Environment(made, {"export": "true" if spec.inherit_environment else "false"}))


def _read_resources(job: Job, requested: Requested, group: TaskGroup, r: ResourceSpecV1,
                    launcher: str | None) -> None:
    """Amounts; with a launcher that starts copies the processes are tasks, else processors (decisions 10)."""
    many = launcher not in (None, "single")
    if r.node_count is not None:
        requested.add("NodeCount", r.node_count)
    if r.processes_per_node is not None:
        job.add("TaskDistribution", str(r.processes_per_node), type="TasksPerNode")
    if r.process_count is not None:
        if many:
            group.add("TaskCount", r.process_count)
        else:
            requested.add("Processors", r.process_count * (r.cpu_cores_per_process or 1))
    if r.memory is not None:
        amount, units = from_bytes(r.memory)
        requested.add("Memory", amount, units=units)
    each = Requested()
    if r.cpu_cores_per_process is not None:
        each.add("Processors", r.cpu_cores_per_process)
    if r.gpu_cores_per_process is not None:
        each.add("Resource", Decimal(r.gpu_cores_per_process), name="GPU")
    if each.items:
        group.items.append(TaskDefaults([each]))
    if r.exclusive_node_use:
        _extend(job, "Scheduler", "ExclusiveNodeUse", "true")


def _extend(job: Job, kind: str | None, name: str, text: str) -> None:
    job.add("Extension", text, type=kind, name=name)


def _read_extensions(job: Job, spec: JobSpec, findings: Findings) -> None:
    for kind, name, stated in (("Scheduler", "Launcher", spec.launcher), ("PSIJ", "PreLaunch", spec.pre_launch),
                               ("PSIJ", "PostLaunch", spec.post_launch)):
        if stated is not None:
            _extend(job, kind, name, str(stated))
    for text in sorted(_staged(i) for i in spec.stage_in or ()):
        _extend(job, "PSIJ", "StageIn", text)
    for text in sorted(_staged(o) for o in spec.stage_out or ()):
        _extend(job, "PSIJ", "StageOut", text)
    for path in sorted(map(str, spec.cleanup or ())):
        _extend(job, "PSIJ", "Cleanup", path)
    if spec.cleanup_flags != StageOutFlags.ALWAYS:
        _extend(job, "PSIJ", "CleanupFlags", _flag_words(spec.cleanup_flags))
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        _read_custom(job, name, value, findings)


def _staged(item: StageIn | StageOut) -> str:
    made = {"source": str(item.source), "target": str(item.target)}
    if item.mode is not StagingMode.COPY:
        made["mode"] = item.mode.name
    if isinstance(item, StageOut) and item.flags != StageOutFlags.ALWAYS:
        made["flags"] = _flag_words(item.flags)
    return json.dumps(made, ensure_ascii=False)


def _read_custom(job: Job, name: str, value: object, findings: Findings) -> None:
    """``slurm.constraint`` as Extension type slurm, name constraint (decisions 16)."""
    kind, dot, rest = name.partition(".")
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if not isinstance(value, str):
        findings.add("SSS502", name, f"{name}: {text} is kept as text", path="/Job/Extension")
    _extend(job, kind if dot else None, rest if dot else name, text)


# --- JSON text ----------------------------------------------------------------------------------------------------

def read(data: bytes, context: ReadContext) -> Document:
    """One object is a Job; an array, or objects one after another (JSON Lines), a JobGroup named by its source.

    Raises RejectedError when the text is no JSON or an object no JobSpec.
    """
    findings = context.findings
    text = _decoded(data, findings, context.limits)
    jobs: list[Job] = []
    many, parts = _objects(text, findings)
    for start, end in parts:
        line = text.count("\n", 0, start) + 1
        try:
            jobs.append(from_spec(JSONSerializer().loads(text[start:end]), findings))
        except (ValueError, InvalidJobException) as error:
            findings.add("SSS112", "JobSpec", str(error), line=line)
    findings.raise_if_rejected()
    if not many:
        return Document(jobs[0], {}, context.path, context.profile, findings)
    name = context.path.rpartition("/")[2] or "-"
    findings.add("SSS503", "Id", f"Id: the group is named after its source, {name}", path="/JobGroup/Id")
    group = JobGroup([new_property("Id", name), *jobs])
    return Document(group, {}, context.path, context.profile, findings)


def _decoded(data: bytes, findings: Findings, limits: Limits) -> str:
    if len(data) > limits.document_bytes:
        findings.add("SSS110", "document_bytes", f"more than {limits.document_bytes} bytes (limit document_bytes)")
        findings.raise_if_rejected()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.add("SSS111", "JSON", f"JSON is UTF-8: {error}")
        findings.raise_if_rejected()
        raise


def _objects(text: str, findings: Findings) -> tuple[bool, list[tuple[int, int]]]:
    """Whether there may be several, and where each stands: (start, end)."""
    at = _after_space(text, 0)
    listed = text[at:at + 1] == "["
    found: list[tuple[int, int]] = []
    try:
        found = list(_elements(text, at + 1) if listed else _sequence(text, at))
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        findings.add("SSS111", "JSON", str(error), line=line)
    if not found and not findings.rejected:
        findings.add("SSS112", "JobSpec", "there is no job specification in it")
    return listed or len(found) > 1, found


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(parse_int=str)       # only to find ends; the serializer reads the values


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _sequence(text: str, at: int) -> Iterator[tuple[int, int]]:
    while at < len(text):
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _after_space(text, end)


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The members of an array whose bracket was read."""
    at = _after_space(text, at)
    while text[at:at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _after_space(text, end)
        if text[at:at + 1] == ",":
            at = _after_space(text, at + 1)
            if text[at:at + 1] != "]":
                continue
            raise json.JSONDecodeError("a member of the array expected", text, at)
        if text[at:at + 1] != "]":
            raise json.JSONDecodeError("',' or ']' expected", text, at)
    if text[at + 1:].strip(" \t\r\n"):
        raise json.JSONDecodeError("nothing may follow the array", text, at + 1)


def write(document: Document, context: WriteContext) -> str:
    """One object for a Job, an array for a JobGroup or several jobs; what is lost is in ``context.findings``."""
    policy = context.policy or Policy.REJECT
    texts: list[str] = []
    many = False
    for body in document.bodies():
        if isinstance(body, Job):
            texts.append(_text(body, context.findings, policy))
        elif isinstance(body, JobGroup):
            many = True
            texts += _group_texts(body, context.findings, policy)
        else:
            context.findings.add("SSS109", body.tag, f"{body.tag} is no job", path=f"/{body.tag}")
    if len(texts) == 1 and not many:
        return texts[0] + "\n"
    return "[\n" + ",\n".join(texts) + "\n]\n"


def _group_texts(group: JobGroup, findings: Findings, policy: Policy) -> list[str]:
    policy = _policy(group, policy)
    labels = [p.tag for p in group.properties()]
    if labels and policy is not Policy.IGNORE:
        findings.add("SSS501", "JobGroup", f"an array of JobSpecs has no place for {', '.join(labels)} of the group",
                     severity="warning", path="/JobGroup", line=group.line)
    for raw in group.unknown():
        findings.add("SSS501", raw.tag, f"{raw.tag}: not known", policy=_policy(raw, policy),
                     path=f"/JobGroup/{raw.tag}", line=raw.line)
    texts = []
    for job in group.jobs:
        if job.reference is None:
            texts.append(_text(effective(job, group.defaults, policy=policy.value).fold(), findings, policy))
        else:
            findings.add("SSS501", "Job", f"the job {job.reference} is only referred to", policy=policy,
                         path="/JobGroup/Job", line=job.line)
    return texts


def _text(job: Job, findings: Findings, policy: Policy) -> str:
    return JSONSerializer().dumps(to_spec(job, findings, policy=policy))


TRANSLATOR = Translator("psij", "PSI/J JobSpec (JSON)", "spec", read, write, (".psij", ".jsonl"))
