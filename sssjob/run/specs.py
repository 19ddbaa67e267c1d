"""The JobSpecs of a planned job: what only a run knows is filled in.

Directories and streams become paths, scripts that came with the document are written to a private directory, limits of
processes and the index of an array's element get their places. Where something needed deciding, the comment names the
row of the decisions.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from psij import JobAttributes, JobExecutor, JobSpec, ResourceSpecV1
from psij.executors.batch._options import COMMENTS, ENVIRONMENT, EXIT
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.references import literal
from sssjob.document import arrays
from sssjob.document.element import Item, Property
from sssjob.document.model import Container, Document, Job, TaskGroup
from sssjob.document.values import resource_limit
from sssjob.findings import Finding, Findings, Policy
from sssjob.request.asked import policy_of
from sssjob.run.configuring import reached
from sssjob.run.facts import same_host
from sssjob.run.native import GEOMETRY, Stated, bearable, native_of, of_command, without
from sssjob.run.script_files import ScriptFiles, as_file_name
from sssjob.run.streams import MERGE, for_launcher
from sssjob.templates.quoting import HOST_MARK, ID_MARK, NUMBER_MARK
from sssjob.translators.scripts.body import facts_of
from sssjob.translators.scripts.grammars import FILE_TOKEN
from sssjob.translators.scripts.rows import Dialect, source_of
from sssjob.translators.specs.psij import Target, to_spec
from sssjob.users import user_name

if TYPE_CHECKING:
    from sssjob.run.plan import Plan, PlannedJob

__all__ = ["Specs"]

#: Names that only describe a job and cannot change how any executor runs it (job object, section 9.0): told, never
#: rejected.
_DESCRIBES: Final = frozenset(("Application", "Charge", "GlobalUser", "Id", "Quote"))
#: The same for a run on this machine.
_NOT_CRITICAL: Final = _DESCRIBES | frozenset((
    "Architecture", "Checkpointable", "Feature", "Group", "Machine", "Node", "NodeCount", "NotificationList",
    "OperatingSystem", "Partition", "Priority", "Project", "QualityOfService", "Queue", "Reservation",
    "ReservationTime", "ResourceManagerType", "Restartable", "Suspendable", "TaskDistribution", "TimeCategory", "Type",
    "User",
))
#: Looked after by this module, the plan or the engine.
_HANDLED: Final = frozenset(("Dependency", "EligibleTime", "Hold", "Shell", "NodeCount", "Id", "Name", "facts"))
_PER_GROUP: Final = frozenset(("Duration", "TaskCount"))
_SIZES_OF_NODES: Final = frozenset(("NodeCount", "TaskDistribution"))
_LIMITS: Final = {      # ResourceLimit name in lower case -> setrlimit's (job object, section 6.3)
    "corefilesize": "core", "cputime": "cpu", "datasegsize": "data", "filesize": "fsize", "maxmemorysize": "rss",
    "maxprocesses": "nproc", "maxswap": "as", "maxmemlock": "memlock", "openfiles": "nofile", "stacksize": "stack",
}
#: What starts several tasks where the job does not say (decisions 10); mpirun everywhere else.
_LAUNCHERS: Final = {"local": "multiple", "fluxexec": "multiple", "slurm": "srun"}
#: Keys of Machine/Job Features that only the resource manager knows.
_GRANTED: Final = dict.fromkeys(("allocated_cpu", "total_cpu", "job_id", "jobstart_secs"))
_LOCAL: Final = "local"
_UNFIT: Final = re.compile(r"[^\w.+=@-]+", re.ASCII)      # what of an Id is no part of a name that managers take
_LONGEST_ID: Final = 60         # characters of an Id that become a name
#: Options that name a job: Slurm, Grid Engine, PBS and NQSV, LSF, Cobalt, HTCondor.
_NAME_OPTIONS: Final = frozenset(("job-name", "N", "J", "jobname", "JobBatchName"))


class Specs:
    """Makes the JobSpecs of one plan. backend: the executor that is to take them, where there is one."""

    def __init__(self, document: Document, findings: Findings, executor: str, cwd: Path, plan: Plan,
                 backend: JobExecutor | None = None) -> None:
        self.document, self.findings, self.executor, self.cwd = document, findings, executor, cwd
        self.plan = plan
        self.native = native_of(backend)
        self.backend = backend
        self.hold = _hook(backend, "hold_attributes")
        self.fit_name: Callable[[str], str] | None = getattr(backend, "fit_name", None)
        self.machine: Callable[[], str | None] = getattr(backend, "machine", lambda: None)
        self.provides = getattr(getattr(backend, "config", None), "surroundings", None) is not None
        self.knows_itself = isinstance(backend, BatchSchedulerExecutor)     # a job can name files by its native id
        self.told: set[tuple[str, str, str, str]] = set()
        self.scripts = ScriptFiles(plan, backend)
        self.raw: dict[tuple[int, int], JobSpec] = {}       # the document's job and the place of a task group
        self.natives: dict[int, Stated] = {}     # by identity of the document's job
        self._handled = _HANDLED | ({"ResourceLimit"} if executor == _LOCAL else frozenset()) | (
            {"MJF"} if self.provides else frozenset())
        self._read: tuple[Job, dict[str, list[Property]]] | None = None     # what was asked for last, and its answer

    def of(self, job: PlannedJob, group: TaskGroup | None, place: int, parts: int) -> JobSpec:
        """The JobSpec of a job (group None), or of one of its task groups. place: of the group, from 0.

        parts: how many JobSpecs the job has.
        """
        key = (id(job.job if job.member is None else job.member.job), place)
        again = key in self.raw         # another element of the same array
        if not again:
            self.raw[key] = self._translated(job, group, place, parts)
        spec = self.raw[key] if job.member is None else copy.deepcopy(self.raw[key])
        self._finish(job, spec, group, place + 1 if parts > 1 else 0, again)
        if not again and self.native is not None and not self.findings.rejected:
            self._try(job, spec)
        return spec

    def _translated(self, job: PlannedJob, group: TaskGroup | None, place: int, parts: int) -> JobSpec:
        """The JobSpec, with what the writer of the manager's dialect says as custom attributes."""
        stated = self._stated_of(job)
        taken: frozenset[int] = frozenset() if stated is None else stated.taken
        target, files = self._target(job, parts > 1), self._scripts(job, group)
        as_one = group is None and len(job.folded.task_groups) > 1
        folded = self._started_at_once(job)
        for needless in (GEOMETRY - _PER_GROUP if as_one else frozenset[str](), _SIZES_OF_NODES):
            remaining_job = _left(folded, taken, needless)
            own_findings = self._own_findings()
            mine = None if group is None else remaining_job.task_groups[place]
            spec = to_spec(remaining_job, own_findings, policy=job.policy, files=files, target=target, group=mine)
            if stated is None or not any(f.subject == "resources" for f in own_findings):
                break
        self._tell(job, (f for f in own_findings if stated is None or not stated.settles(
            f, at_once=folded is not job.folded)))
        if stated is not None:
            self._say(spec, stated.of_part(place))
        return spec

    def _started_at_once(self, job: PlannedJob) -> Job:
        """The job with one command for all of its task groups, where the manager's script has one; else as it is."""
        own_findings = self._own_findings()
        at_once = None if self.native is None or self._launcher() != "mpirun" else self.native.started_at_once(
            job.folded, self.document, own_findings, job.policy)
        self._tell(job, own_findings)
        return at_once or job.folded

    def _own_findings(self) -> Findings:
        """For what is said of one job. Where no more is told, nobody looks for the places of it either."""
        own_findings = Findings(self.findings.file, self.findings.limits)
        own_findings.places = None if self.findings.is_full else self.findings.places
        own_findings.late = self.findings.late
        return own_findings

    def _stated_of(self, job: PlannedJob) -> Stated | None:
        """What the manager is told of a job; asked once for all of its parts."""
        if self.native is None:
            return None
        key = id(job.job if job.member is None else job.member.job)
        if key not in self.natives:
            own_findings = self._own_findings()
            self.natives[key] = self.native.of(job.folded, self.document, own_findings, job.policy)
            self._tell(job, (f for f in own_findings if self.native is None or not self.native.settles(f)))
        return self.natives[key]

    def _say(self, spec: JobSpec, stated: Mapping[str, object]) -> None:
        """Put the options of the manager into a JobSpec, beside those that an Extension of its name says."""
        assert spec.attributes is not None and self.native is not None
        own = f"{self.executor}."
        for name, value in list((spec.attributes.custom_attributes or {}).items()):
            if name.startswith(own):        # the executor's own prefix may be another than the name it was asked for by
                del (spec.attributes.custom_attributes or {})[name]
                flag = value == "true" and self.native.has_flags
                spec.attributes.set_custom_attribute(self.native.backend.custom_attribute(name.removeprefix(own)),
                                                     True if flag else value)
        for name, value in stated.items():
            spec.attributes.set_custom_attribute(name, value)

    def _try(self, job: PlannedJob, spec: JobSpec) -> None:
        """Tell before anything starts what the executor would refuse."""
        assert self.native is not None
        reason = self.native.backend.refusal(spec)
        if reason is not None:
            self._add("SSS602", job.label, f"{job.label} cannot be submitted to the executor {self.executor}: {reason}",
                      job.path)

    def _tell(self, job: PlannedJob, findings: Iterable[Finding]) -> None:
        """Findings of a job, each once although its task groups are translated one by one."""
        for f in findings:
            path = job.path + f.path.removeprefix("/Job")
            if (job.path, f.rule, f.message, path) not in self.told:
                self.told.add((job.path, f.rule, f.message, path))
                self.findings.add(f.rule, f.subject, f.message, severity=f.severity, path=path, hint=f.hint, like=f)

    def _target(self, job: PlannedJob, several: bool) -> Target:
        local = self.executor == _LOCAL
        handled = self._handled | self._given(job.folded)
        return Target(rule="SSS602", irrelevant=_NOT_CRITICAL if local else _DESCRIBES,
                      bearable=bearable if local else of_command, handled=handled,
                      executor=self.executor, launcher=self._launcher(),
                      word=f"the executor {self.executor} does not honour it", side_by_side=several)

    def _launcher(self) -> str:
        """What starts the tasks of jobs that do not say it."""
        preferred: str | None = getattr(getattr(self.backend, "config", None), "launcher", None)
        return preferred or _LAUNCHERS.get(self.executor, "mpirun")

    def _given(self, job: Job) -> frozenset[str]:
        """What the job states of where it runs and for whom that holds anyway."""
        ways: tuple[tuple[str, Callable[[str], bool]], ...] = (
            ("User", lambda text: text == user_name()), ("Machine", self._is_here))
        ways_stated = ((tag, holds, self.stated(job, tag)) for tag, holds in ways)
        return frozenset(tag for tag, holds, items in ways_stated if items and all(
            p.attributes.keys() <= {"awarenessPolicy"} and holds(p.text.strip()) for p in items))

    def stated(self, job: Job, tag: str) -> Sequence[Property]:
        """A property wherever it stands in a job. All names are read at once, for the next questions."""
        if self._read is None or self._read[0] is not job:
            self._read = job, _stated(job)
        return self._read[1].get(tag, ())

    def _is_here(self, name: str) -> bool:
        """Whether a Machine is this host, with or without its domain, or what the executor submits to."""
        if same_host(name, socket.gethostname()):
            return True
        return bool(name) and name == self.machine()

    def _add(self, rule: str, subject: str, message: str, path: str, policy: Policy = Policy.REJECT,
             severity: Any = None) -> None:
        self.findings.add(rule, subject, message, path=path, policy=policy, severity=severity)

    def _features(self, job: PlannedJob, spec: JobSpec) -> None:
        """What a job asks for and states of Machine/Job Features, for an executor that provides them."""
        from sssjob.mjf.job import misstated, values_of

        for name, reason in misstated(job.folded):
            self._add("SSS602", "Extension", f"Extension {name} of type MJF: {reason}", f"{job.path}/Extension")
        for name, value in values_of(job.folded, granted=_GRANTED).items():
            if spec.attributes is None:
                spec.attributes = JobAttributes(duration=None)
            spec.attributes.set_custom_attribute(f"mjf.{name}", value)

    def _finish(self, job: PlannedJob, spec: JobSpec, group: TaskGroup | None, number: int, again: bool) -> None:
        """Directory, streams, limits: what only the run knows. again: it was all told of another element."""
        if not spec.executable:
            self._add("SSS605", "Executable", f"{job.label} has no Executable", job.path)
        elif "://" in spec.executable:
            self._add("SSS603", "Executable", f"{spec.executable} would have to be fetched", f"{job.path}/Executable")
        if self.provides and getattr(self.backend, "SURROUNDS", True):
            self._features(job, spec)
        elif self.provides and not again:
            self._add("SSS602", "MJF", f"Machine/Job Features: the executor {self.executor} makes none, for nothing of "
                      "sssjob runs beside its jobs", job.path, severity="warning")
        directory = self._directory(str(spec.directory or ""))
        spec.directory = os.path.normpath(directory)
        if spec.executable and not os.path.isabs(spec.executable) and "/" in spec.executable:
            spec.executable = os.path.join(directory, spec.executable)
        self._name(job, spec, again)
        if number and self._dialect_of(job) is not None and any(item.tag == "Executable" for item in job.folded.items):
            spec.launcher = spec.launcher or "single"       # a script of several parts is started once
        self._streams(job, spec, number, again)
        self._options(job, spec)
        self._exported(job, spec)
        if job.member is not None:
            m = job.member
            variables = arrays.variables(m.array, m.index, self._array_id(job))
            if (dialect := self._dialect_of(job)) is not None:      # a script may ask by them which manager it runs on
                variables = {name: value for name, value in variables.items() if name.startswith(dialect.variables)}
            spec.environment = {**variables, **(spec.environment or {})}
        if self.executor == _LOCAL and not again:
            self._fit(job, spec)
        if self.executor == _LOCAL:
            self._limits(job, spec, group)

    def _directory(self, stated: str) -> str:
        """The directory of a job, on the host where it runs."""
        if isinstance(self.backend, BatchSchedulerExecutor) and not self.backend.host.is_here:
            base = self.backend.config.ssh_directory or "~"
            path = stated if stated.startswith(("/", "~")) else os.path.join(base, stated)
            return path if path.startswith("/") else str(reached(self.backend).place(path))
        return os.path.join(self.cwd, os.path.expanduser(stated))

    def _exported(self, job: PlannedJob, spec: JobSpec) -> None:
        """The submitter's variables that the job names, where not all of them go along."""
        names = [name for p in self.stated(job.folded, "Extension") if _is_export(p) for name in p.text.split(",")]
        if names:
            spec.inherit_environment = bool(spec.inherit_environment) and _exports(job.folded)
            variables = {name: literal(os.environ[name]) for name in names if name in os.environ}
            spec.environment = {**variables, **(spec.environment or {})} or None
        if self._dialect_of(job) is not None and spec.attributes is not None:
            for attribute in (EXIT, *(() if spec.inherit_environment else (ENVIRONMENT,))):
                spec.attributes.set_custom_attribute(attribute, "native")
            if comments := self._comments(job):
                spec.attributes.set_custom_attribute(COMMENTS, "\n".join(comments))

    def _comments(self, job: PlannedJob) -> list[str]:
        """The lines at the head of a script, no directives, that its manager reads in what is submitted."""
        dialect, file = self._dialect_of(job), self.document.files.get(str(job.folded.value("Executable"))[1:])
        if dialect is None or not dialect.orders or file is None:
            return []
        beginnings = tuple(f"{prefix}{blank}" for prefix in dialect.orders for blank in " \t")
        head = itertools.takewhile(lambda line: line.startswith("#") or not line.strip(),
                                   file.content().decode("utf-8", "replace").split("\n"))
        return [line.rstrip("\r") for line in head if line.startswith(beginnings)]

    def _dialect_of(self, job: PlannedJob) -> Dialect | None:
        """The dialect of the script that a job was, where it runs on the manager that this is for."""
        own = None if self.native is None else self.native.dialect
        return own if own is not None and source_of(job.folded) == own.name else None

    def _name(self, job: PlannedJob, spec: JobSpec, again: bool) -> None:
        """The name as the resource manager takes it, of a job without one its Id, by which its user knows it, or that
        of the file that its script came in; the document keeps its own."""
        name, identifier = job.folded.value("Name"), job.folded.value("Id")
        if identifier is None and source_of(job.folded):
            identifier = os.path.basename(self.document.path).strip("-<>") or None
        if self.fit_name is not None and name is None and identifier is not None and not _is_named_itself(spec):
            spec.name = self.fit_name(_UNFIT.sub("_", str(identifier))[:_LONGEST_ID])
            return
        if self.fit_name is None or not isinstance(name, str) or spec.name != name:
            return
        spec.name = self.fit_name(name)
        if spec.name != name and not again:
            self._add("SSS502", "Name", f"{self.executor} does not take the name {name!r}; {spec.name} is used there",
                      f"{job.path}/Name")

    def _options(self, job: PlannedJob, spec: JobSpec) -> None:
        """Custom attributes with which the manager holds a job."""
        assert spec.attributes is not None
        for name, value in self.hold.items() if job.held_there else ():
            spec.attributes.set_custom_attribute(name, value)

    def _streams(self, job: PlannedJob, spec: JobSpec, number: int, again: bool) -> None:
        custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
        for member, tag in (("stdin", "InputFile"), ("stdout", "OutputFile"), ("stderr", "ErrorFile")):
            path = getattr(spec, f"{member}_path")
            if path is not None and ("{" in str(path) or "}" in str(path)):
                setattr(spec, f"{member}_path", self._named(job, tag, str(path), self._tokens(job, spec)))
                by_id = any(hit["token"] == "jobid" for hit in FILE_TOKEN.finditer(str(path)))
                if by_id and job.job.value("Id") is None and not again and not self.knows_itself:
                    self._add("SSS503", tag, f"{job.label}: {{jobid}} is {job.label} here: the name is needed before "
                              f"{self.executor} gives the job its id", f"{job.path}/{tag}", severity="info")
        merged = str(custom.get(MERGE))
        for member, tag, end in (("stdout", "OutputFile", "out"), ("stderr", "ErrorFile", "err")):
            closed = any("Close" in p.attributes.get("redirectList", "") for p in self.stated(job.folded, tag))
            if getattr(spec, f"{member}_path") is None and not closed and not merged.startswith(member):
                label = "job-" + as_file_name(job.label).removeprefix("job-")
                name = f"{label}{f'.{number}' if number else ''}.{end}"
                setattr(spec, f"{member}_path", name)
                if not again:
                    self._add("SSS503", tag, f"{job.label}: {member} goes to {name}", job.path, severity="info")
        if self.executor != _LOCAL and custom:
            for_launcher(spec, custom, merged)

    def _tokens(self, job: PlannedJob, spec: JobSpec) -> dict[str, str]:
        member = job.member
        identifier = job.label
        if self._names_itself(job):     # the manager of a script may have one id for all elements
            dialect = self._dialect_of(job)
            facts = None if dialect is None else facts_of(dialect)
            identifier = NUMBER_MARK if member is None or (facts is not None and not facts.unique) else ID_MARK
        host = HOST_MARK if self.knows_itself else socket.gethostname()
        tokens = {"jobid": identifier, "array_jobid": self._array_id(job),
                  "name": str(job.job.value("Name") or job.label), "user": user_name(), "host": host,
                  "workdir": str(spec.directory), "node_rank": "0", "task_rank": "0", "step": "0"}
        return tokens | {"index": "0" if member is None else str(member.index)}

    def _names_itself(self, job: PlannedJob) -> bool:
        """Whether the native id is the id of a job: it states none of its own."""
        return self.knows_itself and (job.job if job.member is None else job.member.job).value("Id") is None

    def _array_id(self, job: PlannedJob) -> str:
        """What names the array that a job is an element of; of any other job what names it."""
        if self._names_itself(job):
            return NUMBER_MARK
        return job.label if job.member is None else job.member.id

    def _named(self, job: PlannedJob, tag: str, text: str, tokens: Mapping[str, str]) -> str:
        """A file name with its tokens filled in; numbers are filled up with zeros to the width that a token names."""
        def token(hit: re.Match[str]) -> str:
            """What stands in the name of a file for a token."""
            name = hit["token"]
            if name is None:
                return hit[0][0]
            if name in ("node_rank", "task_rank", "step") or (name == "index" and job.member is None):
                self._add("SSS502", tag, f"{text}: {{{name}}} is 0 for all tasks", f"{job.path}/{tag}")
            value = tokens.get(name)
            if value is None or name == "workdir" or value in (HOST_MARK, ID_MARK, NUMBER_MARK):
                return hit[0] if value is None else value
            return as_file_name(value).rjust(int(hit["width"] or 0), "0")

        return FILE_TOKEN.sub(token, text)

    def _limits(self, job: PlannedJob, spec: JobSpec, group: TaskGroup | None) -> None:
        limits: dict[str, dict[str, str]] = {}
        for p in nearest(job.folded, group, "ResourceLimit"):
            name, value = _LIMITS.get(str(p.get("name", "")).lower()), resource_limit(p.text)
            if name is None or value is None:
                self._add("SSS602", "ResourceLimit", f"ResourceLimit {p.get('name')} = {p.text} is not honoured by the "
                          "executor local", f"{job.path}/ResourceLimit", policy_of(p, job.policy))
                continue
            for side in ("Soft", "Hard") if p.get("type") is None else (str(p.get("type")),):
                limits.setdefault(name, {})[side] = str(value) if isinstance(value, int) else "unlimited"
        for name, sides in limits.items():
            soft, hard = sides.get("Soft"), sides.get("Hard")
            assert spec.attributes is not None
            spec.attributes.set_custom_attribute(
                f"local.rlimit.{name}", f"{soft or hard}:{hard or _hard_limit(name)}")

    def _fit(self, job: PlannedJob, spec: JobSpec) -> None:
        """Tell where more is asked than this machine has (decisions 39)."""
        r = spec.resources
        if not isinstance(r, ResourceSpecV1):
            return
        asked = r.computed_process_count * (r.cpu_cores_per_process or 1)
        have = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        for name, amount, available in (("Processors", asked, have), ("NodeCount", r.computed_node_count, 1),
                                        ("Memory", r.memory or 0, memory)):
            if amount > available:
                self._add("SSS604", name, f"{job.label} asks for {amount} ({name}), this machine has {available}",
                          job.path)

    # -- scripts
    def _scripts(self, job: PlannedJob, group: TaskGroup | None) -> dict[str, str]:
        """Write the script that the job names to the private directory; id -> path."""
        paths: dict[str, str] = {}
        for p in [*nearest(job.folded, group, "Executable")]:
            name = p.text[1:]
            if not p.text.startswith("#"):
                continue
            if name not in self.document.files:
                self._add("SSS311", "Executable", f"there is no File {name}", f"{job.path}/Executable")
                continue
            shell = next((s.text for s in nearest(job.folded, group, "Shell")), None)
            paths[name] = self.scripts.path(self.document.files[name], shell)
        return paths


def _left(job: Job, taken: Collection[int], needless: Collection[str]) -> Job:
    """What of a job a JobSpec is to say. taken: identities of what the manager is told; of that only the names of
    GEOMETRY stay that are not needless."""
    return without(job, lambda item, _: (item.tag == "Extension" and _is_named(item)) or (
        id(item) in taken and (item.tag not in GEOMETRY or item.tag in needless)))


def _is_named(item: Item) -> bool:
    return isinstance(item, Property) and item.tag == "Extension" and _is_export(item)


def _is_export(p: Property) -> bool:
    """Whether a property names variables of the submitter that go along."""
    return p.get("type") == "Scheduler" and p.get("name") == "ExportNames"


def _exports(job: Job) -> bool:
    """Whether a job says that all variables of the submitter go along."""
    return any(child.attributes.get("export") == "true" for child in job.containers("Environment"))


def _is_named_itself(spec: JobSpec) -> bool:
    """Whether an option of the manager's own names a job."""
    custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
    return any(name.rpartition(".")[2] in _NAME_OPTIONS for name in custom)


def _hook(backend: JobExecutor | None, name: str) -> Mapping[str, object]:
    """What a hook of an executor gives; nothing where it has none."""
    hook = getattr(backend, name, None)
    return (hook() if hook is not None else None) or {}


def _hard_limit(name: str) -> str:
    import resource

    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return "unlimited" if hard == resource.RLIM_INFINITY else str(hard)


def _stated(job: Job) -> dict[str, list[Property]]:
    """All properties of a job by name, wherever they stand."""
    by_name: dict[str, list[Property]] = {}
    stack: list[Container] = [job]
    while stack:
        for item in stack.pop().items:
            if isinstance(item, Property):
                by_name.setdefault(item.tag, []).append(item)
            elif isinstance(item, Container):
                stack.append(item)
    return by_name


def nearest(job: Job, group: TaskGroup | None, tag: str) -> list[Property]:
    """The properties of a name that hold for a task group, the nearest scope first (job object, section 2.2)."""
    groups = [s for s in (group, job.defaults) if s is not None]
    tasks = [t for s in groups for t in [s.defaults] if t is not None]
    for scope in [*tasks, *groups, job]:
        properties = [p for r in scope.containers("Requested") for p in r.all(tag)] or scope.all(tag)
        if properties:
            return properties
    return []
