"""From a document to what has to be started: a ``Plan`` of jobs, each with its JobSpecs and dependencies.

Nothing is started here. Scripts that came with the document are written to a private directory; a plan whose findings
reject is never run. Where a rule of the run needed deciding, the comment names the row of the decisions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from psij import JobExecutor, JobSpec
from sssjob.document import arrays
from sssjob.document.arrays import Array
from sssjob.document.failures import Change, FailurePolicyError, Retry, ends_all, retry_of, without_policy
from sssjob.document.graph import Dependencies, Link
from sssjob.document.inherit import Shared, distinct, effective
from sssjob.document.model import Container, Document, Job, JobDefaults, JobGroup, TaskGroup
from sssjob.document.states import job_state
from sssjob.findings import Findings, Policy
from sssjob.lrm.reasons import SELDOM, reasons_of
from sssjob.request.asked import policy_of
from sssjob.request.growing import amounts_of, grown
from sssjob.run.facts import IDENTITY, PLACED
from sssjob.run.specs import Specs
from sssjob.run.streams import emptied, share_files
from sssjob.translators.specs.psij import FACTS

__all__ = ["ATTEMPT", "KINDS", "Member", "Need", "Part", "Plan", "PlannedJob", "make_plan", "outline", "refold"]

#: Variable in which a job that may be tried again finds which attempt it is, from 1.
ATTEMPT: Final = "SSSJOB_ATTEMPT"
#: Condition of a Dependency -> what resource managers call it; none of them compares exit codes.
KINDS: Final = {"OnSuccess": "ok", "OnFailure": "notok", "OnExit": "any"}


@dataclass(frozen=True, slots=True)
class Need:
    """What a job waits for: all jobs of ``on`` (places in the plan) must have ended as the condition says.

    outside: jobs that are not of the document: ``@3.1`` in the journal, anything else is a native id.
    """

    on: tuple[int, ...]
    condition: str          # OnSuccess, OnFailure or OnExit
    code: int | None
    text: str       # as shown to a user: ``OnSuccess prepare``
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """What makes a job an element of an array. id: names the array; job: the document's own, for all elements."""

    id: str
    index: int
    array: Array
    job: Job


@dataclass(slots=True)
class Part:
    """One JobSpec: a whole job, or one of its task groups."""

    spec: JobSpec
    group: TaskGroup | None = None


@dataclass(slots=True)
class PlannedJob:
    """A job of the document, or an element of an array, what to start for it and when.

    job: the document's own object, or the element's, which the facts are written into. folded: with JobDefaults. label:
    Id, else Name, else ``job-N``. together: its parts are one native job. eligible: epoch seconds before which it must
    not start. held: not to be started before the user releases it; held_there: the resource manager sees to that. keep:
    it has succeeded before (--resume). retry: after which failures it is submitted once more; fail_fast: its failure
    ends the rest of its group.
    """

    job: Job
    folded: Job
    label: str
    group: JobGroup | None
    path: str
    policy: Policy = Policy.REJECT      # awarenessPolicy of the job as a whole
    member: Member | None = None
    parts: list[Part] = field(default_factory=list)
    together: bool = False
    needs: tuple[Need, ...] = ()
    eligible: int | None = None
    held: bool = False
    held_there: bool = False
    keep: bool = False
    retry: Retry | None = None
    fail_fast: bool = False
    listed: tuple[Job, object, Fraction | None] | None = None       # of that folded job: queue and nodes, for lists

    @property
    def shows_hold(self) -> bool:
        """Whether its user's hold shows before a resource manager has it."""
        return self.held or self.held_there


@dataclass(slots=True)
class Plan:
    """Jobs in document order, and the private directory with their scripts (None: there are none).

    keep: the scripts outlive the plan. planning: what made it, where jobs of it can be planned once more.
    """

    jobs: list[PlannedJob]
    scripts: Path | None = None
    keep: bool = False
    planning: _Planning | None = None

    def again(self, number: int, changes: Sequence[Change], attempt: int) -> list[Part]:
        """What is to be started for another attempt of a job, which asks for more; nothing where it cannot be planned.

        number: its place; changes: one after the other; attempt: from 1.
        """
        return self.parts_of(self.jobs[number], changes, attempt)[0]

    def parts_of(self, job: PlannedJob, changes: Sequence[Change], attempt: int) -> tuple[list[Part], Findings]:
        """The same for a job as it is stated now, and what was found; nothing to start where that rejects."""
        return ([], Findings()) if self.planning is None else self.planning.again(job, changes, attempt)

    def close(self) -> None:
        """Remove the scripts."""
        if self.scripts is not None and not self.keep:
            shutil.rmtree(self.scripts, ignore_errors=True)
            self.scripts = None


def make_plan(document: Document, findings: Findings, *, executor: str = "local", cwd: Path | None = None,
              policy: Policy = Policy.REJECT, resume: bool = False, scripts: Path | None = None,
              follower: str | None = None, backend: JobExecutor | None = None,
              known: Callable[[str, bool], Sequence[str]] | None = None) -> Plan:
    """The plan of a document. cwd: what relative directories and default output files refer to.

    scripts: a directory of the caller's for scripts that came with the document. follower: who looks after jobs that
    are held, this process unless stated. backend: the executor, whose own means are used where it is given. known: the
    keys of jobs in the journal that an id means. Whatever the executor cannot honour is in findings; when one of them
    rejects the plan holds no scripts and must not be run. policy: the outermost default where the document states none.
    """
    findings.places, findings.late = document.places, True
    planning = _Planning(document, findings, executor, cwd or Path.cwd(), policy, backend)
    planning.plan.scripts, planning.plan.keep = scripts, scripts is not None
    planning.follower = follower or f"process {os.getpid()}"
    planning.known = known
    planning.plan.jobs = planning.jobs(resume)
    planning.plan.planning = planning
    if findings.rejected:
        planning.plan.close()
    return planning.plan


def outline(document: Document) -> Plan:
    """The jobs of a document that was planned before, with their dependencies and without what is to be started."""
    return Plan(_Planning(document, Findings(document.path), "", Path(), Policy.REJECT, None).outline())


class _Planning:
    """The making of one plan."""

    def __init__(self, document: Document, findings: Findings, executor: str, cwd: Path, policy: Policy,
                 backend: JobExecutor | None) -> None:
        self.document, self.findings, self.executor, self.cwd = document, findings, executor, cwd
        self.policy, self.backend = policy, backend
        self.plan = Plan([])
        self.specs = Specs(document, findings, executor, cwd, self.plan, backend)
        self.follower = ""
        self.known: Callable[[str, bool], Sequence[str]] | None = None

    def jobs(self, resume: bool) -> list[PlannedJob]:
        """All jobs of the document."""
        planned = self.outline()
        if not planned and not self.findings.rejected:
            self.findings.add("SSS605", "Job", "there is no job to run")
        reported: set[int] = set()
        for job in planned:
            whole = job.job if job.member is None else job.member.job
            job.keep = resume and _succeeded(whole)
            if not job.keep:
                self._fill(job, id(whole) in reported)
                reported.add(id(whole))
        self._overwritten(planned)
        return planned

    def _overwritten(self, planned: Iterable[PlannedJob]) -> None:
        """Tell of files that several jobs write, each of which empties them."""
        writers: dict[str, dict[int, PlannedJob]] = {}
        for job in planned:
            for part in job.parts:
                for path in emptied(part.spec):
                    writers.setdefault(path, {})[id(job)] = job
        for path, jobs in writers.items():
            if len(jobs) > 1:
                first = next(iter(jobs.values()))
                labels = ", ".join(job.label for job in islice(jobs.values(), 3)) + (", ..." if len(jobs) > 3 else "")
                self.findings.add("SSS607", "OutputFile", f"{len(jobs)} jobs ({labels}) write {path}, and each of them "
                                  "empties it", path=f"{first.path}/OutputFile")

    def outline(self) -> list[PlannedJob]:
        """The same without anything to start."""
        planned: list[PlannedJob] = []
        for body in self.document.bodies():
            planned += self._body(body, len(planned))
        self._needs(planned)
        return planned

    def _body(self, body: Container, count: int) -> Iterator[PlannedJob]:
        if isinstance(body, Job):
            yield from self._planned(body, None, None, "/Job", count, self.policy, None)
        elif isinstance(body, JobGroup):
            policy, defaults = policy_of(body, self.policy), body.defaults
            shared: Shared = {}
            for n, job in enumerate(body.jobs, 1):
                path = f"/JobGroup/Job[{n}]"
                if job.reference is not None:
                    self._add("SSS411", "Job", f"the job {job.reference} is only referred to; it is not run", path)
                else:
                    yield from self._planned(job, defaults, body, path, count + n - 1, policy, shared)
        else:
            self._add("SSS605", body.tag, f"{body.tag} cannot be run: it is no job", f"/{body.tag}")

    def _planned(self, job: Job, defaults: JobDefaults | None, group: JobGroup | None, path: str, number: int,
                 policy: Policy, shared: Shared | None) -> Iterator[PlannedJob]:
        """A job, or all elements of its array (decisions 23)."""
        folded = effective(job, defaults, policy=policy.value, shared=shared).fold()
        policy = policy_of(folded, policy)
        label, stated_array = arrays.label_of(job, number), arrays.array_of(folded)
        retry, fail_fast = self._on_failure(folded, path, policy, label)
        folded = distinct(without_policy(folded))
        if stated_array is None:
            yield PlannedJob(job, folded, label, group, path, policy, retry=retry, fail_fast=fail_fast)
            return
        array = arrays.read(stated_array, self.findings, self.findings.limits, f"{path}/Extension")
        folded = arrays.without_array(folded)
        for index in array.indices if array is not None else ():
            member = Member(label, index, array, job) if array is not None else None
            yield PlannedJob(arrays.element(job, index, label), folded, f"{label}_{index}", group, path, policy, member,
                             retry=retry, fail_fast=fail_fast)

    # -- what becomes of failures
    def _on_failure(self, job: Job, path: str, policy: Policy, label: str) -> tuple[Retry | None, bool]:
        """After which failures a job is tried again, and whether its failure ends the rest of its group."""
        try:
            retry, fail_fast = retry_of(job), ends_all(job)
        except FailurePolicyError as error:
            self._add("SSS426", "Extension", f"{label}: {error}", f"{path}/Extension")
            return None, False
        if retry is not None and self.executor:
            self._check_retry(retry, job, path, policy, label)
        return retry, fail_fast

    def _check_retry(self, retry: Retry, job: Job, path: str, policy: Policy, label: str) -> None:
        """Tell which clauses can never count, and which changes have nothing to change."""
        reasons = reasons_of(self.executor)
        for word in retry.unknown_to(reasons) if reasons is not None else ():
            self._add("SSS602", "Extension", f"{label}: Retry names {word}, which the executor {self.executor} cannot "
                      "tell from other failures", f"{path}/Extension", policy)
        for clause in retry.clauses:
            if (why := SELDOM.get((self.executor, clause.word))) is not None:
                self._add("SSS602", "Extension", f"{label}: Retry names {clause.word}: {why}", f"{path}/Extension",
                          severity="info")
        for name in retry.changed:
            if not amounts_of(job, name):
                self._add("SSS605", name, f"{label}: Retry changes {name}, which the job does not ask for",
                          f"{path}/Extension")

    def again(self, job: PlannedJob, changes: Sequence[Change], attempt: int) -> tuple[list[Part], Findings]:
        """What is to be started for another attempt of a job that was planned."""
        findings, specs = self.findings, self.specs
        self.findings = Findings()
        self.specs = Specs(self.document, self.findings, self.executor, self.cwd, self.plan, self.backend)
        self.specs.scripts = specs.scripts
        try:
            grown_job = replace(job, folded=grown(job.folded, changes), parts=[],
                                held_there=job.held_there and attempt == 1)
            self._parts(grown_job, attempt)
            return [] if self.findings.rejected else grown_job.parts, self.findings
        finally:
            self.findings, self.specs = findings, specs

    def _add(self, rule: str, subject: str, message: str, path: str, policy: Policy = Policy.REJECT,
             severity: Literal["error", "warning", "info"] | None = None) -> None:
        self.findings.add(rule, subject, message, path=path, policy=policy, severity=severity)

    # -- dependencies
    def _needs(self, planned: list[PlannedJob]) -> None:
        """Resolve every Dependency: in its group, else outside (decisions 21). A cycle or a stranger cannot be run."""
        places: dict[int, list[int]] = {}
        for n, job in enumerate(planned):
            places.setdefault(id(job.job if job.member is None else job.member.job), []).append(n)
        for group in self.document.groups():
            graph = Dependencies.of(group)
            cycle = graph.cycle()
            if cycle is not None:
                self._add("SSS410", "Dependency", f"dependencies form a cycle: {' -> '.join(cycle)}", "/JobGroup")
            needs_by_key: dict[tuple[int, str, int | None, str], Need] = {}      # those that are equal are one
            for number, links in graph.links_of().items():
                mine = places.get(id(graph.jobs[number]), ())
                needs = tuple(self._need(planned, n, link, graph, places, needs_by_key) for n in mine[:1]
                              for link in links)
                for n in mine:
                    planned[n].needs = needs
        for job in planned:
            if job.group is None:
                job.needs = tuple(self._outside(job, p.get("condition") or "OnSuccess", p.get("code"), p.text.strip(),
                                                p.get("designator") == "JobName") for p in job.folded.all("Dependency"))

    def _need(self, planned: Sequence[PlannedJob], number: int, link: Link, graph: Dependencies,
              places: Mapping[int, list[int]], needs_by_key: dict[tuple[int, str, int | None, str], Need]) -> Need:
        key = (id(link.needs), link.condition, link.code, link.target)
        if key not in needs_by_key:
            on = tuple(n for index in link.needs for n in places.get(id(graph.jobs[index]), ()))
            on = tuple(n for n in on if planned[n].member and planned[n].label == link.target.strip()) or on
            code = None if link.code is None else str(link.code)
            needs_by_key[key] = Need(on, link.condition, link.code,
                                     _said(link.condition, code, link.target)) if on else \
                self._outside(planned[number], link.condition, code, link.target.strip(), link.by_name)
        return needs_by_key[key]

    def _outside(self, job: PlannedJob, condition: str, code: str | None, target: str, by_name: bool = False) -> Need:
        """A dependency on a job that is not in the document: one of the journal, else the resource manager's own."""
        keys: Sequence[str] = ()
        code = code if condition == "OnExit" else None
        if self.known is not None:
            native = target.partition(":")[2] if target.lower().startswith(f"{self.executor}:") else target
            keys = self.known(target, by_name)
            if keys:
                self._add("SSS504", "Dependency", f"{job.label} depends on {target}, which is {', '.join(keys)} in "
                          "the journal", f"{job.path}/Dependency", severity="info")
            elif code is None and not by_name and self._can_wait_for(KINDS.get(condition, ""), native):
                keys = (native,)
                self._add("SSS504", "Dependency", f"{job.label} depends on {target}, which is left to {self.executor}: "
                          "it must be one of its job ids", f"{job.path}/Dependency")
        if not keys:
            where = "the document" if self.known is None else "the document or the journal"
            self.findings.add("SSS605", "Dependency", f"{job.label} depends on {target}, which is not in {where}",
                              path=f"{job.path}/Dependency", within=job.job)
        return Need((), condition, None if code is None or not code.isdigit() else int(code),
                    _said(condition, code, target), tuple(keys))

    def _can_wait_for(self, kind: str, native_id: str) -> bool:
        fits, says = (getattr(self.backend, name, None) for name in ("is_native_id", "dependency_attributes"))
        return bool(kind and fits is not None and says is not None and fits(native_id)
                    and says({kind: [native_id]}) is not None)

    # -- one job
    def _fill(self, job: PlannedJob, again: bool) -> None:
        """What has to be started. again: all was told of another element of the same array."""
        if not again:
            self._facts(job)
        self._eligible(job)
        self._hold(job, again)
        self._parts(job)

    def _parts(self, job: PlannedJob, attempt: int = 1) -> None:
        """The JobSpecs of a job. attempt: the job finds it in its environment, where there may be several."""
        groups = self._groups(job)
        job.together = len(groups) > 1 and self.executor != "local"
        for n, group in enumerate(groups):
            spec = self.specs.of(job, group, n, len(groups))
            if job.retry is not None:
                spec.environment = {ATTEMPT: str(attempt), **(spec.environment or {})}
            job.parts.append(Part(spec, group))
        if len(groups) > 1 and not job.together:
            share_files([part.spec for part in job.parts])

    def _groups(self, job: PlannedJob) -> Sequence[TaskGroup | None]:
        """The task groups that are JobSpecs of their own (decisions 11): side by side on this machine, as one native
        job where the resource manager has such jobs, else all in one JobSpec (None)."""
        several = job.folded.task_groups
        apart = self.executor == "local" or getattr(self.backend, "TOGETHER", False)
        return several if len(several) == 1 or (several and apart) else [None]

    def _facts(self, job: PlannedJob) -> None:
        """One finding for the results of an earlier run (decisions 19)."""
        names = [i.tag for i in job.job.items if i.tag in FACTS - {"SubmitHost"} or i.tag == "Delivered" or (
            i.tag == "Extension" and i.attributes.get("type") == "LRM" and i.attributes.get("name") not in (
                *IDENTITY, *PLACED))]
        if names:
            self._add("SSS601", job.label, f"{job.label}: left out and written anew: {', '.join(dict.fromkeys(names))}",
                      job.path)

    def _eligible(self, job: PlannedJob) -> None:
        value = job.folded.value("EligibleTime")
        job.eligible = int(value) if isinstance(value, int) else None

    def _hold(self, job: PlannedJob, again: bool) -> None:
        """A hold of the user's is asked for, or waited out; the others only operators can set (decisions 20)."""
        for p in self.specs.stated(job.folded, "Hold"):
            if p.text.lower() != "user":
                if not again:
                    self._add("SSS602", "Hold", f"Hold {p.text} is not honoured by the executor {self.executor}: only "
                              "operators can set it", f"{job.path}/Hold", policy_of(p, job.policy))
            elif self.specs.hold:
                if not (again or job.held_there):
                    self._add("SSS502", "Hold", f"{job.label} is submitted with a hold of the user's: it waits until "
                              f"it is released in {self.executor}", f"{job.path}/Hold", severity="info")
                job.held_there = True
            elif not job.held:
                job.held = True
                self._add("SSS502", "Hold", f"{job.label} is held by the user: it waits until it is released (`sssjob "
                          f"release`, or the signal USR1 to {self.follower}) or the time limit is over",
                          f"{job.path}/Hold")


def refold(planned: PlannedJob) -> Job:
    """A planned job with its defaults, as its document says it now."""
    defaults = None if planned.group is None else planned.group.defaults
    return distinct(without_policy(effective(planned.job, defaults, policy=planned.policy.value).fold()))


def _said(condition: str, code: str | None, target: str) -> str:
    return f"{condition}{'' if code is None else f'({code})'} {target}"


def _succeeded(job: Job) -> bool:
    state = job_state(job.value("State"))
    return state.state == "Completed" and state.message is None and job.value("ExitCode") == 0
