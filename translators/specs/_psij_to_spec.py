"""PSI/J: from a job object to a JobSpec.

Every item of the job is walked once, so that whatever no rule below takes becomes a finding that names it. Sources:
PSI/J specification (JobSpec, ResourceSpecV1, JobAttributes); numbers after "decisions" are rows of the project's table
of decisions.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from psij import (
    URI,
    InvalidJobException,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from sssjob.element import Container, Property, new_property
from sssjob.findings import Findings, Policy
from sssjob.lexical import LexicalError
from sssjob.model import Job, Requested, TaskGroup
from sssjob.request.asked import (
    AMOUNTS,
    FACTS,
    GROUP,
    GROUPS,
    JOB,
    JSON,
    MARKERS,
    NEAREST,
    TASK,
    Asked,
    Entry,
    Target,
    policy_of,
)
from sssjob.request.geometry import Geometry, distribution_of
from sssjob.request.layout import Layout
from sssjob.request.levels import request_of
from sssjob.request.totals import COUNTED
from sssjob.request.tree import number_of, per_of
from sssjob.translators.scripts.grammars import FILE_TOKEN
from sssjob.translators.scripts.raw import shell_words
from sssjob.translators.specs._psij_from_spec import REFERENCE
from sssjob.units import to_bytes

__all__ = ["to_spec"]

_EXTENSION_CONTEXTS: Final = frozenset(("Scheduler", "LRM", "PSIJ", "MJF", "SSSJob", "Maui", "Moab", "Gold"))


class _Writing(Asked):
    """One job on its way into a JobSpec."""

    def __init__(self, job: Job, findings: Findings, policy: Policy, files: Mapping[str, str], target: Target,
                 group: TaskGroup | None) -> None:
        super().__init__(job, findings, policy, target, group)
        self.files = files
        self.spec = JobSpec(attributes=JobAttributes(duration=None))

    @property
    def amounts(self) -> tuple[str, ...]:
        """Levels at which an amount is the whole of what this JobSpec asks for."""
        return (GROUP, GROUPS) if self.target.side_by_side else AMOUNTS

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
        name = self.one("Name", (JOB,))
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

    def _words(self, entry: Entry) -> list[str]:
        """Arguments as a list (decisions 24, 25)."""
        text = entry.text
        try:
            words = shell_words(text)
        except ValueError as error:
            self.note("SSS502", entry, f"Arguments: taken as one argument: {error}")
            words = [text]
        if shlex.join(words) != text:
            self.note("SSS502", entry, f"Arguments: quoted anew as {shlex.join(words)}", "info")
        return [self._dollar(entry, "Arguments", word) for word in words]

    def _dollar(self, entry: Entry, name: str, text: str) -> str:
        """The text as it goes into the JobSpec: PSI/J replaces ``${NAME}``, the job object does not (decisions 25)."""
        if not REFERENCE.search(text):
            return text
        if self.target.dollar:
            return REFERENCE.sub(f"${{{self.target.dollar}}}{{\\1}}", text)
        self.note("SSS502", entry, f"{name}: PSI/J replaces ${{...}} at the start, the job object does not")
        return text

    def _environment(self) -> None:
        variables: dict[str, str] = {}
        for level in reversed(NEAREST):
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
        for level, scope in _scopes(self.job, JOB, self.group):
            for child in scope.containers("Environment"):
                stated = child.attributes.get("export")
                if stated is not None:
                    found.setdefault(level, stated == "true")
        return next((found[level] for level in NEAREST if level in found), None)

    def _streams(self) -> None:
        for tag, member in (("InputFile", "stdin"), ("OutputFile", "stdout"), ("ErrorFile", "stderr")):
            entry = self.one(tag, carried=("redirectList",))
            if entry is None:
                continue
            if entry.text:
                setattr(self.spec, f"{member}_path", self._path(entry))
            elif not self.target.executor:
                self.dropped(entry, "an empty name leaves the file to the queuing system; PSI/J takes /dev/null")
            self._redirect(entry, member)

    def _path(self, entry: Entry) -> str:
        """The name of a file. Who runs the job fills its tokens in; a JobSpec alone has none, and no doubled braces."""
        if self.target.executor:
            return entry.text
        tokens = dict.fromkeys(m[0] for m in FILE_TOKEN.finditer(entry.text) if m["token"] is not None)
        if tokens:
            self.note("SSS502", entry, f"{entry.tag}: PSI/J fills nothing in for {', '.join(tokens)}")
        return FILE_TOKEN.sub(lambda m: m[0] if m["token"] is not None else m[0][0], entry.text)

    def _redirect(self, entry: Entry, member: str) -> None:
        for word in filter(None, (w.strip() for w in entry.attributes.get("redirectList", "").split(","))):
            if word == "Close":
                setattr(self.spec, f"{member}_path", None)
            elif word == "Append" and member != "stdin" and self.target.executor not in ("", "fluxexec"):
                self.attribute(f"local.{member}_mode", "append")
            elif word == "Merge" and member != "stdin" and self.target.executor:
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
        duration = self.one("Duration")
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
            if (kind, name) in MARKERS:
                e.used = True
            elif (kind, name) == ("Scheduler", "ChunkCount"):
                e.used = True
                self.note("SSS502", e, f"Extension ChunkCount: how tasks are put into {e.text} chunks is left to the "
                          "resource manager", "info" if self.target.executor == "local" else None, "ChunkCount")
            elif kind in ("Scheduler", "PSIJ"):
                e.used = self._known(e, kind, name)
            elif kind == "MJF" and kind in self.target.handled:
                e.used = True
            elif kind not in _EXTENSION_CONTEXTS and self.target.executor in ("", kind.lower()):
                self.attribute(f"{kind}.{name}" if kind else name, e.text)
                e.used = True
            e.understood |= {"name", "type"}

    def _known(self, e: Entry, kind: str, name: str) -> bool:
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
            return kind == "Scheduler" and name in ("ExclusiveNodeUse", "ChunkCount")
        return True

    # -- resources
    def _resources(self) -> None:
        layout = self._layout()
        values: dict[str, Any] = self._counts(layout)
        exclusive = any(e.tag == "Extension" and e.attributes.get("name") == "ExclusiveNodeUse"
                        and isinstance(e.item, Property) and e.text.lower() == "true" for e in self.entries)
        values |= {"gpu_cores_per_process": self._gpus(layout), "memory": self._memory(layout),
                   "exclusive_node_use": exclusive}
        values = {k: v for k, v in values.items() if v is not None and v is not False}
        if values:
            self.spec.resources = self._consistent(values)

    def _layout(self) -> Layout:
        """What the job says of nodes, tasks and processors; their entries are kept for findings."""
        layout = Layout(nodes=self._most("NodeCount"),
                        tasks=self.count("TaskCount", (GROUP, GROUPS)) or self.listed or None,
                        processors=self._most("Processors"), cpus=self.count("Processors", TASK))
        chunks = self.one("Extension", AMOUNTS, name="ChunkCount", type="Scheduler") if self.says_chunks() else None
        if chunks is not None and chunks.text.isdigit():
            layout.chunks = int(chunks.text) or None
        self._distribution(layout)
        return layout

    def _most(self, tag: str) -> int | None:
        """The greater of what a group and the job say of a count; a group beside others has only its own."""
        levels = self.amounts
        counts = [self.count(tag, tuple(some)) for some in ((GROUP, GROUPS), (JOB,)) if set(some) <= set(levels)
                  and any(e.level in some for e in self.said(tag))]
        return max(filter(None, counts), default=None)

    def says_chunks(self) -> bool:
        """Whether the job counts chunks, pieces that the manager places as it likes."""
        return any(e.attributes.get("name") == "ChunkCount" for e in self.said("Extension"))

    def _counts(self, layout: Layout) -> dict[str, Any]:
        """Nodes, processes and cores of each process."""
        processes = layout.slots
        if processes is not None and layout.nodes and processes < layout.nodes:
            self._lost("NodeCount", f"{processes} processes are on as many nodes at most")
            layout.nodes = None
        processors = layout.processor_total
        each = layout.cpus
        if processes is not None and processors is not None:
            whole = layout.processors_each or max(1, processors // processes)
            each = whole if whole != 1 or layout.cpus else None
            if whole * processes < processors:
                self._lost("Processors", f"{whole * processes} of {processors} are asked for, as {processes} processes "
                           f"of {whole}: all processes of a JobSpec are of one size")
        self._launcher(layout.copies)
        per_node = layout.per_node
        if layout.geometry and len(set(layout.geometry)) == 1:
            per_node = layout.geometry[0]
        stated = layout.tasks or layout.processors or layout.geometry or layout.chunks
        nodes = layout.node_stated if layout.chunks is None else layout.nodes
        if nodes is None and not stated:
            nodes = layout.node_total
        return {"node_count": nodes,
                "process_count": processes if stated else None, "processes_per_node": per_node,
                "cpu_cores_per_process": each}

    def _lost(self, tag: str, why: str) -> None:
        """The finding for a number that is not carried as it is, at the property that says it, or at the distribution
        that it follows from."""
        entry = next((e for name in (tag, "TaskDistribution") for e in self.said(name) if e.used), None)
        if entry is not None:
            self.dropped(entry, why)
        else:
            self.note(self.target.rule, None, f"{tag}: {why}", None, tag)

    def _launcher(self, copies: int) -> None:
        """What starts several processes where the job does not say; a script is started once."""
        executable = self.one("Executable")
        if copies > 1 and self.spec.launcher is None and not (
                executable is not None and executable.text.startswith("#")):
            self.spec.launcher = self.target.launcher
            if not self.target.executor:
                self.note("SSS503", None, f"Launcher: {copies} tasks need one; {self.target.launcher} is taken",
                          None, "Launcher")

    def _distribution(self, layout: Layout) -> None:
        """TasksPerNode, ProcessorsPerTask and a geometry, in numbers."""
        entry = self.one("TaskDistribution", carried=("type",))
        if entry is None:
            return
        text = entry.text.strip()
        kind = entry.attributes.get("type") or (
            "TasksPerNode" if text.isdigit() else "Geometry" if text.startswith("{") else "Rule")
        if kind == "TasksPerNode" and text.isdigit() and int(text):
            if why := layout.misfit(per_node=int(text)):
                self.dropped(entry, why)
            else:
                layout.per_node = int(text)
        elif kind == "ProcessorsPerTask" and text.isdigit() and int(text):
            layout.cpus = layout.cpus or int(text)
        elif kind == "Geometry":
            try:
                geometry = tuple(map(len, Geometry.parse(text).nodes))
            except LexicalError as error:
                self.dropped(entry, str(error))
                return
            if why := layout.misfit(geometry=geometry):
                self.dropped(entry, why)
                return
            layout.geometry = geometry
            if len(set(layout.geometry)) > 1:
                self.dropped(entry, f"{layout.task_total} processes are asked for, not which of them share a node")
        else:
            self.dropped(entry, f"a distribution by {kind} is not carried")

    def _gpus(self, layout: Layout) -> int | None:
        """GPUs of each process; a total that does not divide evenly is not rounded up into more."""
        each = self.one("Resource", TASK, carried=("units",), name="GPU")
        entry = each or self.one("Resource", self.amounts, carried=("units", "metric"), name="GPU")
        if entry is None:
            return None
        for e in self.said("Resource"):
            if e.attributes.get("name") == "GPU" and e.level != entry.level and not self.target.side_by_side:
                self._beside(e, "another number of GPUs is written")
        amount = int(Decimal(entry.value).to_integral_value(ROUND_CEILING))
        if each is not None:
            return amount
        factor, processes = self._factor(entry, layout), layout.tasks_assumed
        if factor is None:
            return None
        if amount * factor % processes:
            self.dropped(entry, f"{amount * factor} GPUs cannot be shared out evenly among {processes} processes")
            return None
        if entry.attributes.get("metric"):
            self.note("SSS502", entry, f"GPU: {amount * factor} in all are {amount * factor // processes} for each of "
                      f"{processes} processes", "info")
        return amount * factor // processes

    def _beside(self, entry: Entry, why: str) -> None:
        """The finding for an amount that gives way to one of another level."""
        entry.used = True
        entry.understood |= entry.attributes.keys()
        self.dropped(entry, why, "Resource GPU")

    def _factor(self, entry: Entry, layout: Layout) -> int | None:
        """What an amount is multiplied with to become that of the whole job; None, with a finding, where nothing says
        it."""
        metric = entry.attributes.get("metric", "Total")
        what = per_of(metric)
        if metric == "Total":
            return 1
        count = {"nodes": layout.node_total, "processors": layout.processor_total, "chunks": layout.chunks}.get(
            what or "")
        if count is None:
            self.dropped(entry, f"metric {metric} is not carried" if what is None else
                         f"{metric}: the job does not say how many {what}")
        return count

    def _memory(self, layout: Layout) -> int | None:
        """Bytes of the whole job."""
        each = self.one("Memory", TASK, carried=("units", "metric"))
        entry = each or self.one("Memory", self.amounts, carried=("units", "metric"))
        if entry is None:
            return None
        factor = layout.tasks_assumed if each else self._factor(entry, layout)
        if factor is None:
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
        """A ResourceSpecV1; what contradicts the number of processes is left out with a finding at its property."""
        said = {"node_count": "NodeCount", "processes_per_node": "TaskDistribution"}
        for left_out in ((), ("node_count",), ("processes_per_node",), ("node_count", "processes_per_node")):
            try:
                resources = ResourceSpecV1(**{k: v for k, v in values.items() if k not in left_out})
            except InvalidJobException as error:
                problem = error
                continue
            for name in left_out:
                if name in values:
                    self._lost(said[name], str(problem))
            return resources
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


def _is_fact(e: Entry) -> bool:
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
    parts = request_of(job, bare=True).totals.parts
    total = sum(part.layout.task_total or 1 for part in parts)
    names = f"{len(groups)} task groups"
    if same:
        findings.add("SSS502", "TaskGroup", f"{names} are asked for as one of {total} tasks", path="/Job/TaskGroup",
                     item=groups[0], within=job)
        one = TaskGroup([*(_times(i, len(groups)) for i in first), new_property("TaskCount", total)])
    else:
        findings.add(target.rule, "TaskGroup", f"a JobSpec holds one kind of task, the job has {names}; "
                     "only the first is carried", policy=policy_of(job, policy), path="/Job/TaskGroup[2]",
                     item=groups[1], within=job)
        one = groups[0]
    kept = [i for i in job.items if i.tag != "TaskGroup"]
    return Job([*kept, one], job.attributes, None, job.line)


def _without_count(group: TaskGroup) -> list[Any]:
    return [i for i in group.items if i.tag not in ("TaskCount", "Id", "Name")]


def _times(item: Any, count: int) -> Any:
    """What so many equal task groups ask for together: counts and amounts of a group add up, what each task, node or
    processor has stays as it is."""
    if isinstance(item, Requested):
        return Requested([_times(i, count) for i in item.items], item.attributes, None, item.line)
    if not isinstance(item, Property):
        return item
    said = item.attributes
    if item.tag == "TaskDistribution" and distribution_of(item)[0] == "Geometry":
        return _geometries(item, count)
    amount = item.tag in ("NodeCount", "Processors", *COUNTED) or said.get("name") == "ChunkCount"
    number = number_of(item.value) if amount and per_of(said.get("metric")) is None else None
    return item if number is None else item.replace(value=(
        str(int(number) * count) if item.tag == "Extension" else type(item.value)(number * count)))


def _geometries(item: Property, count: int) -> Property:
    """A geometry several times over, its tasks numbered on; one that is none is told of where it is read."""
    try:
        nodes = Geometry.parse(item.text).nodes
    except LexicalError:
        return item
    step = 1 + max(number for node in nodes for number in node)
    return item.replace(value=str(Geometry(tuple(
        tuple(number + at * step for number in node) for at in range(count) for node in nodes))))


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
