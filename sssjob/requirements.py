"""Requirements: what a Requested block means, and whether an offer meets it.

A block is one boolean expression over its properties, in document order: ``conj`` joins a property to the one before
it, ``group`` opens and closes brackets, ``preference`` makes alternatives of one property (sections 8.1, 10.2, 10.3).
``parse`` makes the tree, ``match`` holds it against an ``Offer`` and explains the answer. What the offer does not
mention meets nothing, so NE and Nand hold for it. ``least_request`` makes one value a property of it, for formats that
know no expressions. Source: SSS job object 3.1.0, sections 8, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sssjob._expressions import (
    AllOf,
    AnyOf,
    Expression,
    Node,
    Not,
    Predicate,
    Preferred,
    check_property,
    identity_of,
    names_of,
    parse,
)
from sssjob._least import LeastRequest, Single, least_request
from sssjob._matching import Explanation, Match, Matcher, all_state, is_amount
from sssjob._offers import Offer, only_one
from sssjob.element import Container, Property
from sssjob.findings import Findings
from sssjob.inherit import TaskGroupView, TaskView, effective
from sssjob.limits import LIMITS, Limits
from sssjob.model import Document, Job, JobDefaults, Requested, TaskGroup
from sssjob.states import job_state
from sssjob.vocabulary import in_scope

__all__ = [
    "AllOf", "AnyOf", "Explanation", "Expression", "LeastRequest", "Level", "Match", "Node", "Not", "Offer",
    "Predicate", "Preferred", "Requirements", "Single", "check_property", "least_request", "match", "names_of",
    "parse", "requirements_of",
]

#: Extensions that say how a job is run and ask nothing of a place for it; only in Requested they do.
_HOW_TO_RUN: Final = frozenset({("Extension", "Array", "Scheduler")})


@dataclass(frozen=True, slots=True)
class Level:
    """The requirements of one level: ``Job``, ``TaskGroup 1``, ``TaskGroup 1 Task 1``. group: which one, counted from 0
    (None: the job); task: it is that of a task inside it."""

    name: str
    expression: Expression
    group: int | None = None
    task: bool = False


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a job, level by level; all must hold."""

    levels: tuple[Level, ...]
    findings: Findings

    def __str__(self) -> str:
        return "\n".join(f"{level.name}: {level.expression}" for level in self.levels)


def requirements_of(job: Job, defaults: JobDefaults | None = None, *, strict: bool = False, limits: Limits = LIMITS,
                    path: str = "/Job") -> Requirements:
    """What a job asks for: its Requested, and each task group's own, with defaults taken in.

    In a job that still waits a bare property counts as requested where Requested does not name it (section 10).
    """
    findings = Findings(limits=limits)
    view = effective(job, defaults)
    pending = job_state(job.value("State")).state not in ("Running", "Suspended", "Completed")
    own = parse(view.properties("Requested"), findings, strict=strict, limits=limits, path=f"{path}/Requested",
                implied=_bare(view.properties(), view.properties("Requested")) if pending else ())
    levels = [Level("Job", own)]
    for i, group in enumerate(view.task_groups()):
        name, where = f"TaskGroup {i + 1}", f"{path}/TaskGroup[{i + 1}]"
        levels += _lower(name, group, i, pending, findings, strict, limits, where)
        for j, task in enumerate(group.tasks()):
            levels += _lower(f"{name} Task {j + 1}", task, i, False, findings, strict, limits, f"{where}/Task[{j + 1}]")
    return Requirements(tuple(levels), findings)


def _lower(name: str, view: TaskGroupView | TaskView, group: int, pending: bool, findings: Findings, strict: bool,
           limits: Limits, path: str) -> list[Level]:
    """The level of a task group or task that asks for something beyond what its job does, else nothing."""
    own = [r.property for r in view.resolved("Requested") if r.origin.own]
    bare = _bare([r.property for r in view.resolved() if r.origin.own], own) if pending else []
    if not own and not bare:
        return []
    expression = parse(own, findings, strict=strict, limits=limits, implied=bare, path=f"{path}/Requested")
    return [Level(name, expression, group, isinstance(view, TaskView))]


def _bare(properties: Iterable[Property], requested: Iterable[Property]) -> list[Property]:
    stated = {identity_of(p) for p in requested}
    allowed = in_scope("Requested")
    return [p for p in properties if p.tag in allowed and identity_of(p) not in stated | _HOW_TO_RUN]


def match(requested: Document | Container | Expression | Requirements, offer: Offer | Document | Container, *,
          strict: bool = False, limits: Limits = LIMITS) -> Match:
    """Whether an offer meets a request, and why.

    requested: a Requested block, a job (with all its levels), a document (all of its jobs), or what ``parse`` and
    ``requirements_of`` made.
    strict: brackets must balance; amounts used are compared exactly (by default the Duration used may be shorter than
    the one requested, which is a limit, and an Average, Min or Max of what was used may be lower); a task group is
    held only against what is offered to it. By default, where an offer has no task groups of its own, an amount of a
    task group has to fit into that of the whole.
    """
    findings = Findings(limits=limits)
    wanted = _requirements(requested, findings, strict, limits)
    given = offer if isinstance(offer, Offer) else Offer.of(offer)
    scores: list[Fraction] = []
    parts = []
    for level in wanted.levels:
        matcher = Matcher(*_offer_for(level, given, strict), strict=strict, limits=limits, findings=findings)
        parts.append(matcher.explain(level.expression.root))
        scores += matcher.scores
    if len(parts) == 1:
        top = parts[0]
    else:
        named = tuple(_titled(level.name, part) for level, part in zip(wanted.levels, parts, strict=True))
        top = Explanation("all levels", all_state(named), kind="all", parts=named)
    score = sum(scores, Fraction(0)) / len(scores) if scores else Fraction(1)
    return Match(top.met, top, score, findings)


def _titled(name: str, part: Explanation) -> Explanation:
    return Explanation(name, part.state, kind="all", parts=(part,))


def _requirements(requested: Document | Container | Expression | Requirements, findings: Findings, strict: bool,
                  limits: Limits) -> Requirements:
    if isinstance(requested, Document):
        jobs = list(requested.jobs())
        if jobs:
            each = [requirements_of(*job, strict=strict, limits=limits) for job in jobs]
            requested = each[0] if len(each) == 1 else _together([job for job, _ in jobs], each, limits)
        else:
            requested = only_one([b for b in requested.bodies() if b.reference is None], "objects")
    if isinstance(requested, Requirements):
        findings.extend(requested.findings)
        return requested
    if isinstance(requested, Expression):
        return Requirements((Level("Requested", requested),), findings)
    if isinstance(requested, Job):
        made = requirements_of(requested, strict=strict, limits=limits)
        findings.extend(made.findings)
        return made
    if isinstance(requested, TaskGroup) or requested.tag == "Task":
        requested = Requested([p for c in requested.containers("Requested") for p in c.properties()])
    expression = parse(requested, findings, strict=strict, limits=limits, path=f"/{requested.tag}")
    return Requirements((Level(requested.tag, expression),), findings)


def _together(jobs: list[Job], each: list[Requirements], limits: Limits) -> Requirements:
    """The requirements of several jobs, which all have to be met: each level is named after its job."""
    findings = Findings(limits=limits)
    levels = []
    for number, (job, one) in enumerate(zip(jobs, each, strict=True), 1):
        findings.extend(one.findings)
        name = job.value("Id") or job.value("Name") or number
        levels += [replace(level, name=f"Job {name}" if level.name == "Job" else f"Job {name} {level.name}")
                   for level in one.levels if level.expression.properties or len(one.levels) == 1]
    return Requirements(tuple(levels), findings)


def _offer_for(level: Level, offer: Offer, strict: bool) -> tuple[Offer, bool]:
    """The offer for one level, and whether it is that of the whole job, of which the level is a part."""
    if level.group is None:
        return offer, False
    if level.group < len(offer.task_groups):
        own = offer.task_groups[level.group]
        shared = {t: ps for t, ps in offer.properties.items() if not is_amount(t)}
        return Offer({**shared, **own.properties}, own.used | (offer.used & shared.keys())), level.task
    if strict:
        return Offer({t: ps for t, ps in offer.properties.items() if not is_amount(t)}, offer.used), False
    return offer, True
