"""From a document to what has to be started: a ``Plan`` of jobs, each with its JobSpecs, dependencies and files.

Nothing is started here. Scripts that came with the document are written to a private directory; a plan whose findings
reject is never run. Where a rule of the run needed deciding, the comment names the row of the decisions.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from psij import JobSpec, ResourceSpecV1
from sssjob.element import Property
from sssjob.findings import Findings, Policy
from sssjob.graph import Dependencies, Link
from sssjob.inherit import effective
from sssjob.model import Container, Document, File, Job, JobDefaults, JobGroup, TaskGroup
from sssjob.states import job_state
from sssjob.translators.specs.psij import FACTS, Target, to_spec

__all__ = ["Need", "Part", "Plan", "PlannedJob", "make_plan", "outline"]

#: Names that cannot change what a run on this machine does (job object, section 9.0): told, never rejected.
_NOT_CRITICAL: Final = frozenset((
    "Application", "Architecture", "Charge", "Checkpointable", "Feature", "GlobalUser", "Group", "Id", "Machine",
    "NodeCount", "NotificationList", "OperatingSystem", "Partition", "Priority", "Project", "QualityOfService",
    "Queue", "Quote", "ReservationTime", "ResourceManagerType", "Restartable", "Suspendable", "TimeCategory", "Type",
    "User",
))
#: Looked after by this module or by the engine.
_HANDLED: Final = frozenset(("Dependency", "EligibleTime", "Hold", "Shell", "ResourceLimit", "NodeCount", "Id", "Name",
                                "facts"))
_LIMITS: Final = {      # ResourceLimit name in lower case -> setrlimit's (job object, section 6.3)
    "corefilesize": "core", "cputime": "cpu", "datasegsize": "data", "filesize": "fsize", "maxmemorysize": "rss",
    "maxprocesses": "nproc", "maxswap": "as", "maxmemlock": "memlock", "openfiles": "nofile", "stacksize": "stack",
}
_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")
_DOLLAR: Final = "SSSJOB_DOLLAR"


@dataclass(frozen=True, slots=True)
class Need:
    """What a job waits for: all jobs of ``on`` (places in the plan) must have ended as the condition says."""

    on: tuple[int, ...]
    condition: str          # OnSuccess, OnFailure or OnExit
    code: int | None
    text: str       # as shown to a user: ``OnSuccess prepare``


@dataclass(slots=True)
class Part:
    """One JobSpec: a whole job, or one of its task groups."""

    spec: JobSpec
    group: TaskGroup | None = None


@dataclass(slots=True)
class PlannedJob:
    """A job of the document, what to start for it and when.

    job: the document's own object, which the facts are written into. folded: with JobDefaults. label: Id, else Name,
    else ``job-N``. eligible: epoch seconds before which it must not start. held: not to be started before the user
    releases it. keep: it has succeeded before (--resume).
    """

    job: Job
    folded: Job
    label: str
    group: JobGroup | None
    path: str
    policy: Policy = Policy.REJECT      # awarenessPolicy of the job as a whole
    parts: list[Part] = field(default_factory=list)
    needs: tuple[Need, ...] = ()
    eligible: int | None = None
    held: bool = False
    keep: bool = False


@dataclass(slots=True)
class Plan:
    """Jobs in document order, and the private directory with their scripts (None: there are none).

    keep: the scripts outlive the plan.
    """

    jobs: list[PlannedJob]
    scripts: Path | None = None
    keep: bool = False

    def close(self) -> None:
        """Remove the scripts."""
        if self.scripts is not None and not self.keep:
            shutil.rmtree(self.scripts, ignore_errors=True)
            self.scripts = None


def make_plan(document: Document, findings: Findings, *, executor: str = "local", cwd: Path | None = None,
              policy: Policy = Policy.REJECT, resume: bool = False, scripts: Path | None = None,
              follower: str | None = None) -> Plan:
    """The plan of a document. cwd: what relative directories and default output files refer to.

    scripts: a directory of the caller's for scripts that came with the document. follower: who looks after jobs that
    are held, this process unless stated. Whatever the executor cannot honour is in findings; when one of them rejects
    the plan holds no scripts and must not be run. policy: the outermost default where the document states none.
    """
    made = _Planning(document, findings, executor, cwd or Path.cwd(), policy)
    made.plan.scripts, made.plan.keep = scripts, scripts is not None
    made.follower = follower or f"process {os.getpid()}"
    made.plan.jobs = made.jobs(resume)
    if findings.rejected:
        made.plan.close()
    return made.plan


def outline(document: Document) -> Plan:
    """The jobs of a document that was planned before, with their dependencies and without what is to be started."""
    return Plan(_Planning(document, Findings(document.path), "", Path(), Policy.REJECT).outline())


class _Planning:
    """The making of one plan."""

    def __init__(self, document: Document, findings: Findings, executor: str, cwd: Path, policy: Policy) -> None:
        self.document, self.findings, self.executor, self.cwd = document, findings, executor, cwd
        self.policy = policy
        self.plan = Plan([])
        self.told: set[tuple[str, str, str, str]] = set()
        self.paths: dict[str, str] = {}     # id of a File and shell -> where it lies
        self.follower = ""

    def jobs(self, resume: bool) -> list[PlannedJob]:
        """All jobs of the document."""
        planned = self.outline()
        if not planned:
            self.findings.add("SSS605", "Job", "there is no job to run")
        for job in planned:
            job.keep = resume and _succeeded(job.job)
            if not job.keep:
                self._fill(job)
        return planned

    def outline(self) -> list[PlannedJob]:
        """The same without anything to start."""
        planned: list[PlannedJob] = []
        for body in self.document.bodies():
            planned += self._body(body, len(planned))
        self._needs(planned)
        return planned

    def _body(self, body: Container, count: int) -> Iterator[PlannedJob]:
        if isinstance(body, Job):
            yield self._planned(body, None, None, "/Job", count, self.policy)
        elif isinstance(body, JobGroup):
            policy = _policy_of(body, self.policy)
            for n, job in enumerate(body.jobs, 1):
                path = f"/JobGroup/Job[{n}]"
                if job.reference is not None:
                    self._add("SSS411", "Job", f"the job {job.reference} is only referred to; it is not run", path)
                else:
                    yield self._planned(job, body.defaults, body, path, count + n - 1, policy)
        else:
            self._add("SSS605", body.tag, f"{body.tag} cannot be run: it is no job", f"/{body.tag}")

    def _planned(self, job: Job, defaults: JobDefaults | None, group: JobGroup | None, path: str, number: int,
                 policy: Policy) -> PlannedJob:
        folded = effective(job, defaults, policy=policy.value).fold()
        policy = _policy_of(folded, policy)
        label = str(job.value("Id") or job.value("Name") or f"job-{number + 1}")
        return PlannedJob(job, folded, label, group, path, policy)

    def _add(self, rule: str, subject: str, message: str, path: str, policy: Policy = Policy.REJECT,
             severity: Literal["error", "warning", "info"] | None = None) -> None:
        self.findings.add(rule, subject, message, path=path, policy=policy, severity=severity)

    # -- dependencies
    def _needs(self, planned: list[PlannedJob]) -> None:
        """Resolve every Dependency within its group (decisions 21); a cycle or a stranger cannot be run."""
        places = {id(job.job): n for n, job in enumerate(planned)}
        for group in self.document.groups():
            graph = Dependencies.of(group)
            cycle = graph.cycle()
            if cycle is not None:
                self._add("SSS410", "Dependency", f"dependencies form a cycle: {' -> '.join(cycle)}", "/JobGroup")
            for number, links in graph.links_of().items():
                job = planned[places[id(graph.jobs[number])]]
                job.needs = tuple(self._need(job, link, graph, places) for link in links)
        for job in planned:
            if job.group is None and job.folded.first("Dependency") is not None:
                self._stranger(job, str(job.folded.value("Dependency")))

    def _need(self, job: PlannedJob, link: Link, graph: Dependencies, places: Mapping[int, int]) -> Need:
        on = tuple(places[id(graph.jobs[n])] for n in link.needs if id(graph.jobs[n]) in places)
        if not on:
            self._stranger(job, link.target)
        code = "" if link.code is None else f"({link.code})"
        return Need(on, link.condition, link.code, f"{link.condition}{code} {link.target}")

    def _stranger(self, job: PlannedJob, target: str) -> None:
        self.findings.add("SSS605", "Dependency", f"{job.label} depends on {target}, which is not in the document",
                          path=f"{job.path}/Dependency", line=job.job.line)

    # -- one job
    def _fill(self, job: PlannedJob) -> None:
        self._facts(job)
        self._eligible(job)
        self._hold(job)
        groups: Sequence[TaskGroup | None] = job.folded.task_groups or [None]
        for n, group in enumerate(groups, 1):
            target = self._target(len(groups) > 1)
            files = self._scripts(job, group)
            told = Findings(self.findings.file, self.findings.limits)
            spec = to_spec(job.folded, told, policy=job.policy, files=files, target=target, group=group)
            self._tell(job, told)
            self._finish(job, spec, group, n if len(groups) > 1 else 0)
            job.parts.append(Part(spec, group))

    def _tell(self, job: PlannedJob, told: Findings) -> None:
        """Findings of a job, each once although its task groups are translated one by one."""
        for f in told:
            path = job.path + f.path.removeprefix("/Job")
            if (job.path, f.rule, f.message, path) not in self.told:
                self.told.add((job.path, f.rule, f.message, path))
                self.findings.add(f.rule, f.subject, f.message, severity=f.severity, line=f.line, path=path)

    def _target(self, several: bool) -> Target:
        local = self.executor == "local"
        return Target(rule="SSS602", irrelevant=_NOT_CRITICAL if local else frozenset(("Id",)), handled=_HANDLED,
                      executor=self.executor, launcher={"local": "multiple", "slurm": "srun"}.get(
                          self.executor, "mpirun"), word=f"the executor {self.executor} does not honour it",
                      side_by_side=several, dollar=_DOLLAR)

    def _facts(self, job: PlannedJob) -> None:
        """One finding for the results of an earlier run (decisions 19)."""
        names = [i.tag for i in job.job.items if i.tag in FACTS - {"SubmitHost"} or i.tag == "Delivered" or (
            i.tag == "Extension" and i.attributes.get("type") == "LRM")]
        if names:
            self._add("SSS601", job.label, f"{job.label}: left out and written anew: {', '.join(dict.fromkeys(names))}",
                      job.path)

    def _eligible(self, job: PlannedJob) -> None:
        value = job.folded.value("EligibleTime")
        job.eligible = int(value) if isinstance(value, int) else None

    def _hold(self, job: PlannedJob) -> None:
        """A hold of the user's is waited out; the others only the operators of a system can set (decisions 20)."""
        for p in _stated(job.folded, "Hold"):
            if p.text.lower() != "user":
                self._add("SSS602", "Hold", f"Hold {p.text} is not honoured by the executor {self.executor}: only "
                          "operators can set it", f"{job.path}/Hold", _policy_of(p, job.policy))
            elif not job.held:
                job.held = True
                self._add("SSS502", "Hold", f"{job.label} is held by the user: it waits until {self.follower} "
                          "gets the signal USR1 or the time limit is over", f"{job.path}/Hold")

    def _finish(self, job: PlannedJob, spec: JobSpec, group: TaskGroup | None, number: int) -> None:
        """Directory, streams, limits: what only the run knows."""
        if not spec.executable:
            self._add("SSS605", "Executable", f"{job.label} has no Executable", job.path)
        elif "://" in spec.executable:
            self._add("SSS603", "Executable", f"{spec.executable} would have to be fetched", f"{job.path}/Executable")
        directory = os.path.join(self.cwd, os.path.expanduser(str(spec.directory or "")))
        spec.directory = os.path.normpath(directory)
        if spec.executable and not os.path.isabs(spec.executable) and "/" in spec.executable:
            spec.executable = os.path.join(directory, spec.executable)
        self._streams(job, spec, number)
        if self.executor == "local":
            self._limits(job, spec, group)
            self._fit(job, spec)

    def _streams(self, job: PlannedJob, spec: JobSpec, number: int) -> None:
        custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
        tokens = self._tokens(job, spec)
        for member, tag in (("stdin", "InputFile"), ("stdout", "OutputFile"), ("stderr", "ErrorFile")):
            path = getattr(spec, f"{member}_path")
            if path is not None:
                setattr(spec, f"{member}_path", self._named(job, tag, str(path), tokens))
        merged = custom.get("local.merge")
        for member, tag, end in (("stdout", "OutputFile", "out"), ("stderr", "ErrorFile", "err")):
            closed = any("Close" in p.attributes.get("redirectList", "") for p in _stated(job.folded, tag))
            if getattr(spec, f"{member}_path") is None and not closed and not str(merged).startswith(member):
                name = f"job-{_safe(job.label)}{f'.{number}' if number else ''}.{end}"
                setattr(spec, f"{member}_path", name)
                self._add("SSS503", tag, f"{job.label}: {member} goes to {name}", job.path, severity="info")

    def _tokens(self, job: PlannedJob, spec: JobSpec) -> dict[str, str]:
        return {"jobid": job.label, "array_jobid": job.label, "name": str(job.job.value("Name") or job.label),
                "user": _user(), "host": socket.gethostname(), "workdir": str(spec.directory), "node_rank": "0",
                "task_rank": "0", "index": "0", "step": "0"}

    def _named(self, job: PlannedJob, tag: str, text: str, tokens: Mapping[str, str]) -> str:
        """A file name with its tokens filled in (decisions 26)."""
        def token(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return found[0][0]
            if name in ("node_rank", "task_rank", "index", "step"):
                self._add("SSS502", tag, f"{text}: {{{name}}} is 0 for all tasks", f"{job.path}/{tag}")
            value = tokens.get(name)
            return found[0] if value is None else value if name == "workdir" else _safe(value)

        return _TOKEN.sub(token, text)

    def _limits(self, job: PlannedJob, spec: JobSpec, group: TaskGroup | None) -> None:
        found: dict[str, dict[str, str]] = {}
        for p in _nearest(job.folded, group, "ResourceLimit"):
            name = _LIMITS.get(str(p.get("name", "")).lower())
            if name is None or not (p.text.strip().isdigit() or p.text.strip().lower() == "unlimited"):
                self._add("SSS602", "ResourceLimit", f"ResourceLimit {p.get('name')} = {p.text} is not honoured by the "
                          "executor local", f"{job.path}/ResourceLimit", _policy_of(p, job.policy))
                continue
            for side in ("Soft", "Hard") if p.get("type") is None else (str(p.get("type")),):
                found.setdefault(name, {})[side] = p.text.strip().lower()
        for name, sides in found.items():
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
        for name, wanted, there in (("Processors", asked, have), ("NodeCount", r.computed_node_count, 1),
                                    ("Memory", r.memory or 0, memory)):
            if wanted > there:
                self._add("SSS604", name, f"{job.label} asks for {wanted} ({name}), this machine has {there}", job.path)

    # -- scripts
    def _scripts(self, job: PlannedJob, group: TaskGroup | None) -> dict[str, str]:
        """Write the script that the job names to the private directory; id -> path."""
        found: dict[str, str] = {}
        for p in [*_nearest(job.folded, group, "Executable")]:
            name = p.text[1:]
            if not p.text.startswith("#"):
                continue
            if name not in self.document.files:
                self._add("SSS311", "Executable", f"there is no File {name}", f"{job.path}/Executable")
                continue
            shell = next((s.text for s in _nearest(job.folded, group, "Shell")), None)
            found[name] = self._written(self.document.files[name], shell)
        return found

    def _written(self, file: File, shell: str | None) -> str:
        key = f"{file.id}\0{shell}"
        if key not in self.paths:
            if self.plan.scripts is None:
                self.plan.scripts = Path(tempfile.mkdtemp(prefix="sssjob-"))    # mode 0700
            self.plan.scripts.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self.plan.scripts / f"{len(self.paths)}-{_safe(file.id)}"
            descriptor, fresh = tempfile.mkstemp(prefix=".", dir=self.plan.scripts)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(_with_shell(file.content(), shell))
            os.chmod(fresh, 0o700)
            os.replace(fresh, path)     # that of an earlier plan may be running
            self.paths[key] = str(path)
        return self.paths[key]


def _with_shell(content: bytes, shell: str | None) -> bytes:
    """The script with the interpreter that is to run it: Shell, else its own ``#!``, else /bin/sh."""
    has_own = content.startswith(b"#!")
    if has_own and shell is None:
        return content
    chosen = shell or "/bin/sh"
    line = f"#!{chosen if chosen.startswith('/') else '/usr/bin/env ' + chosen}\n".encode()
    return line + content.partition(b"\n")[2] if has_own else line + content


def _hard_limit(name: str) -> str:
    import resource

    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return "unlimited" if hard == resource.RLIM_INFINITY else str(hard)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _safe(text: str) -> str:
    """The text as part of a file name."""
    return re.sub(r"[^\w.@%+=,-]", "_", text).lstrip(".-") or "_"


def _policy_of(item: Container | Property, inherited: Policy) -> Policy:
    stated = item.attributes.get("awarenessPolicy")
    return inherited if stated is None else Policy.of(stated) or Policy.REJECT


def _succeeded(job: Job) -> bool:
    state = job_state(job.value("State"))
    return state.state == "Completed" and state.message is None and job.value("ExitCode") == 0


def _stated(job: Job, tag: str) -> Iterator[Property]:
    """A property wherever it stands in a job."""
    stack: list[Container] = [job]
    while stack:
        scope = stack.pop()
        yield from scope.all(tag)
        stack += scope.containers()


def _nearest(job: Job, group: TaskGroup | None, tag: str) -> list[Property]:
    """The properties of a name that hold for a task group, the nearest scope first (job object, section 2.2)."""
    groups = [s for s in (group, job.defaults) if s is not None]
    tasks = [t for s in groups for t in [s.defaults] if t is not None]
    for scope in [*tasks, *groups, job]:
        found = [p for r in scope.containers("Requested") for p in r.all(tag)] or scope.all(tag)
        if found:
            return found
    return []

