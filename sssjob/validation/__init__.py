"""What can be wrong with a document whose elements and values are all in order: the checks of meaning.

``check`` walks the containers once, without recursion over lists, and looks closer only where an element stands that
gives reason to. Source: SSS job object 3.1.0, sections 2, 5, 6, 10 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sssjob.document.element import Container, Item, Property, Value
from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.model import CLASSES, Document, Job, JobDefaults, JobGroup
from sssjob.document.states import job_state
from sssjob.document.values import resource_limit
from sssjob.document.vocabulary import CONSUMABLE, SCOPES, element, in_scope
from sssjob.findings import Findings, Severity
from sssjob.limits import Limits
from sssjob.request.geometry import Geometry, distribution_of
from sssjob.request.tree import AMOUNTS, check_property, parse
from sssjob.xml._in_order import tell_made
from sssjob.xml.profiles import Profile
from sssjob.xml.profiles import profile as profile_of

__all__ = ["check"]

_TAG: Final = attrgetter("tag")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LISTED: Final = re.compile(r"[,\s]+")
_DEFAULTS: Final = frozenset(("JobDefaults", "TaskGroupDefaults", "TaskDefaults"))
_SCOPES: Final = frozenset(("JobGroup", *SCOPES, *_DEFAULTS))
_EXPRESSION: Final = frozenset(("group", "preference", "conj"))
_CONSUMABLE: Final = frozenset(a.name for a in CONSUMABLE)
_EVENTS: Final = frozenset(element("Job", "NotificationList").values)
_TIMES: Final = (("SubmitTime", "StartTime"), ("StagedTime", "StartTime"), ("StartTime", "EndTime"),
                 ("SubmitTime", "EndTime"))
#: Properties of a scope that give reason to look closer.
_TELLING: Final = frozenset((
    "Id", "State", "SubmitTime", "StagedTime", "StartTime", "EndTime", "Executable", "InputFile", "OutputFile",
    "ErrorFile", "EligibleTime", "DeadlineTime", "TaskDistribution", "TaskCount", "NodeCount", "Dependency", "Node",
    "Feature", "Network", "NotificationList", "ResourceLimit", "Extension",
))
#: Extensions of which more is asked than that they stand there (``failures.NAMES``, ``sweeps.NAME``, arrays).
_LOOKED_AT: Final = frozenset(("Retry", "OnFailure", "Sweep", "Array"))
#: The names of ResourceLimits that the specification has, in lower case.
_LIMITED: Final = frozenset(word.lower() for a in in_scope("Job")["ResourceLimit"].attributes if a.name == "name"
                            for word in a.values)
_VARIABLES: Final = frozenset(("Variable", "Extension"))
#: Items of a container from which on those of one name are not numbered: there may be a thousand findings.
_NUMBERED: Final = 1_000
#: States and properties of a job that is over or runs: what it asks for is history.
_OVER: Final = ("Running", "Suspended", "Completed")
_FACTS: Final = frozenset(("StartTime", "EndTime", "ExitCode", "Delivered"))
_ASKED: Final = AMOUNTS | {"TaskDistribution", "Node"}
_SPREADS: Final = frozenset(("TaskDistribution", "TaskGroup", "TaskGroupDefaults"))
_COUNTS: Final = frozenset(("Processors", "NodeCount", "TaskCount", "Duration"))
_LARGE: Final = 10**6           # amounts above are held against the limits, and such of these units
_HUGE: Final = tuple("EZYND")
#: Kind of scope -> the kind of those inside it, which have defaults beside them.
_BELOW: Final = {"JobGroup": "Job", "Job": "TaskGroup", "TaskGroup": "Task"}
_STATES: Final = {tag: element(tag, "State").values for tag in ("Job", "JobGroup")}
_Found = dict[str, list[Property]]


class _Place(NamedTuple):
    """Where a container stands; the path is spelt only when a finding needs it."""

    parent: _Place | None
    tag: str
    number: int     # among its like, from 1; 0: the only one

    def __str__(self) -> str:
        steps: list[str] = []
        place: _Place | None = self
        while place is not None:
            steps.append(f"{place.tag}[{place.number}]" if place.number else place.tag)
            place = place.parent
        return "/" + "/".join(reversed(steps))


def check(document: Document, findings: Findings, profile: str = "liberal", *, limits: Limits | None = None) -> None:
    """Add the findings of all semantic checks of a document, and, of what was made or changed by hand, those that
    reading it would give; time is linear in its size.

    profile: in a strict one (``3.1``) what the text does not allow is an error even where others can go on: brackets
    that do not balance (SSS401, else mended, SSS402), containers that may stand once (SSS304), ``code`` without OnExit
    (SSS413), ``delimiter`` without List (SSS421), a Job without Id once it has a State (SSS305).
    """
    tell_made(document, findings, profile)
    _Checker(document, findings, profile_of(profile), limits or findings.limits).run()


def _life(container: Container) -> Value | None:
    """What tells the runs of one requeued job apart, which share its Id: the StartTime, or that it waits for one."""
    if container.tag != "Job":
        return None
    return container.value("StartTime") or ("" if container.first("State") else None)


class Siblings:
    """The children of one scope so far. once: names of those that may stand there once."""

    def __init__(self) -> None:
        self.once: set[str] = set()
        self._lives: dict[tuple[str, str], dict[Value | None, int]] = {}

    def earlier(self, tag: str, identifier: str, life: Value | None, line: int) -> int | None:
        """The line of another child that has this Id, which it may not have: one of the same life, or where one of them
        has none. The child counts among its siblings from then on. line: its own."""
        lives = self._lives.setdefault((tag, identifier), {})
        first = None
        if lives and (life in lives or life is None or None in lives):
            first = lives.get(life, min(lives.values()))
        lives.setdefault(life, line)
        return first


class _Checker:
    """One run of all checks over one document."""

    def __init__(self, document: Document, findings: Findings, profile: Profile, limits: Limits) -> None:
        self.document, self.findings, self.profile, self.limits = document, findings, profile, limits
        self.bodies = list(document.bodies())
        self.strict = not profile.liberal
        self._known: frozenset[str] | None = None
        # A property is shared by all places with the same text, so what was found about one holds for all.
        self._clean: dict[int, Property] = {}
        self._job: Container | None = None      # the one that is looked at
        self._sound: set[int] = set()           # Requested in whose expression nothing is wrong, by identity
        self._beside: dict[str, tuple[Container, ...]] = {}     # scope -> defaults beside it that ask for amounts

    def run(self) -> None:
        """Check every outermost container with all that is inside."""
        self.findings.places = self.document.places
        for body, place in _placed(self.bodies, None):
            self._job = None
            self._beside.clear()
            self.walk(body, place)
        self.loose([b for b in self.bodies if isinstance(b, Job) and b.reference is None])

    def loose(self, jobs: list[Job]) -> None:
        """Jobs that are in no group and wait for each other, or one for itself (SSS410); most wait for jobs that are
        not here."""
        if any(p.text.strip() in self.known() for job in jobs for p in job.items
               if p.tag == "Dependency" and isinstance(p, Property)):
            from sssjob.document.graph import Dependencies

            Dependencies.of(JobGroup(jobs)).check_cycle(self.findings, "")

    def walk(self, body: Container, place: _Place) -> None:
        """Check a container and all that is inside, without recursion; references are left out."""
        stack = [(body, place)]
        while stack:
            container, here = stack.pop()
            if container.reference is None:
                stack.extend(reversed(self.visit(container, here)))

    def tell(self, rule: str, subject: str, message: str, container: Container, place: _Place, item: Item | None = None,
             *, severity: Severity | None = None, hint: str = "") -> None:
        """Record a finding at a container, or at an item in it."""
        self.findings.add(rule, subject, message, path=lambda: _path(container, place, item), severity=severity,
                          hint=hint, item=item, within=container)

    def contradicts(self, rule: str, subject: str, message: str, container: Container, place: _Place,
                    item: Item | None = None) -> None:
        """Something the text does not allow, with which one can go on: an error only in a strict profile."""
        self.tell(rule, subject, message, container, place, item, severity="error" if self.strict else None)

    # -- one container
    def visit(self, container: Container, place: _Place) -> list[tuple[Container, _Place]]:
        """Check one container; gives those inside it."""
        tag, items = container.tag, container.items
        names = set(map(_TAG, items))
        inside = [] if names.isdisjoint(CLASSES) else [i for i in items if isinstance(i, Container)]
        telling = names & (_TELLING if tag != "Environment" else _VARIABLES)
        by_tag: _Found = {}
        for item in items if telling else ():
            if item.tag in telling and isinstance(item, Property):
                if item.tag in by_tag:
                    by_tag[item.tag].append(item)
                else:
                    by_tag[item.tag] = [item]
        if tag in _SCOPES:
            self.scope(container, place, by_tag, inside, names)
        elif tag == "Requested":
            self.requested(container, place, by_tag)
        elif tag == "Delivered":
            self.delivered(container, place, by_tag)
        elif tag == "Environment":
            self.variables(container, place, by_tag.get("Variable", []))
        if "Extension" in by_tag:
            for_us = [p for p in by_tag["Extension"] if p.attributes.get("name") in _LOOKED_AT]
            if for_us:
                self.extensions(container, place, for_us)
        return _placed(inside, place) if inside else []

    def extensions(self, container: Container, place: _Place, stated: list[Property]) -> None:
        """What a job says of failures, and its sweep (SSS426): the grammar of it, and that it stands at a job. An array
        that is none may be one that a template is still to fill in, so that it is only doubted before it is run."""
        for p in stated:
            if p.attributes.get("name") == "Array":
                from sssjob.document.arrays import fault_of as fault_of_array

                if (doubt := fault_of_array(p)) is not None:
                    self.tell("SSS201", "Extension", doubt, container, place, p, severity="warning")
                continue
            from sssjob.document.failures import fault_of
            from sssjob.document.sweeps import check as check_sweep
            from sssjob.document.sweeps import is_sweep

            if is_sweep(p):
                fault = check_sweep(p, container, self.document.files, self.limits)
            else:
                fault = fault_of(p, container.tag, self.limits)
            if fault is not None:
                self.tell("SSS426", "Extension", fault, container, place, p)

    def scope(self, container: Container, place: _Place, found: _Found, inside: list[Container], names: set[str]
              ) -> None:
        """A job, group, task group, task or defaults: its children, then what its properties give reason to. names: of
        all that is in it."""
        if container.tag == "JobGroup" or len(inside) > len(set(map(_TAG, inside))):    # else nothing is there twice
            self.children(container, place, inside)
        if container.tag in _DEFAULTS:
            self.results(container, place, inside, names)
        if container.tag != "JobGroup":
            self.amounts(container, place, inside, names)
            if container.tag == "Job" or place.parent is None:
                self.spread(container, place, names)
        self.beside(container, inside)
        if not found and container.tag != "JobGroup":
            return
        if isinstance(container, JobGroup):
            self.group(container, place, found, inside)
        elif isinstance(container, Job):
            self.job(container, place, found)
        for tag, look in _LOOKS:
            if tag in found:
                look(self, container, place, found)

    def children(self, container: Container, place: _Place, inside: list[Container]) -> None:
        """More than one Defaults, and Ids used twice in one scope."""
        before = self.siblings(container)
        numbers: dict[str, int] = {}
        for child in inside:
            numbers[child.tag] = number = numbers.get(child.tag, 0) + 1
            if child.tag in _DEFAULTS or child.tag == "Environment":
                if child.tag in before.once:
                    self.contradicts("SSS304", child.tag, f"more than one {child.tag} here: they are read as one, in "
                                     "order", container, place, child)
                before.once.add(child.tag)
            elif child.tag in _SCOPES and child.reference is None:
                identifier = child.first("Id")
                if identifier is not None:
                    first = before.earlier(child.tag, identifier.text, _life(child), child.line)
                    if first is not None:
                        self.tell("SSS308", identifier.text, f"{child.tag} Id {identifier.text!r} is used twice (first "
                                  f"in line {first})", child, _Place(place, child.tag, number), identifier)

    def siblings(self, scope: Container) -> Siblings:
        """Those before the first child of a scope: none."""
        return Siblings()

    def results(self, container: Container, place: _Place, inside: list[Container], names: set[str]) -> None:
        """What belongs to one instance in defaults, which inherit it to nobody (SSS418)."""
        own = names & _instance(container.tag)
        for tag, p in {p.tag: p for p in reversed(container.items) if p.tag in own and isinstance(p, Property)}.items():
            self.tell("SSS418", tag, f"{tag} in {container.tag} belongs to one instance and is not inherited",
                      container, place, p)
        for block in [c for c in inside if c.tag == "Delivered"][:1]:
            self.tell("SSS418", "Delivered", f"Delivered in {container.tag} is not inherited", container, place, block)

    # -- groups and jobs
    def group(self, group: JobGroup, place: _Place, found: _Found, inside: list[Container]) -> None:
        """A JobGroup has an Id and a Job (SSS305), and dependencies that can hold."""
        if "Id" not in found:
            self.tell("SSS305", "Id", "a JobGroup must have an Id", group, place)
        self.group_states(group, place, found)
        if not any(c.tag == "Job" for c in inside):
            self.tell("SSS305", "Job", "a JobGroup must have a Job", group, place)
        if not any(i.tag == "Dependency" for c in inside if c.tag in ("Job", "JobDefaults") for i in c.items):
            return
        from sssjob.document.graph import Dependencies

        graph = Dependencies.of(group)
        known = self.known() if any(not link.needs for link in graph.links) else ()
        graph.check(self.findings, path=str(place), known=known)

    def group_states(self, group: JobGroup, place: _Place, found: _Found) -> None:
        """The words of State of a group (SSS424)."""
        for p in found.get("State", ()):
            if p.text not in _STATES["JobGroup"]:
                self.tell("SSS424", "State", f"State {p.text[:80]!r} is none of {', '.join(_STATES['JobGroup'])}",
                          group, place, p)

    def known(self) -> frozenset[str]:
        """Ids and names of all jobs of the document."""
        if self._known is None:
            self._known = frozenset(str(v) for job, _ in self.document.jobs()
                                    for v in (job.value("Id"), job.value("Name")) if v is not None)
        return self._known

    def job(self, job: Job, place: _Place, found: _Found) -> None:
        """A Job that was taken has an Id (SSS305); its State; dependencies on jobs that are not here (SSS411)."""
        if "Id" not in found and "State" in found and (     # a submission has none yet
                found["State"][0].text != "NotQueued" if self.strict else _queued(found)):
            self.tell("SSS305", "Id", f"a Job in State {found['State'][0].text} must have an Id", job, place,
                      found["State"][0])
        if "State" in found:
            self.state(job, place, found["State"][0])
        if "Dependency" in found and place.parent is None:
            for p in found["Dependency"]:
                if p.text not in self.known():
                    self.tell("SSS411", p.text, f"the job depends on {p.text!r}, which is not in the document", job,
                              place, p)

    def state(self, job: Job, place: _Place, p: Property) -> None:
        """A State under a word of another system; only another case of a known word is no more than noted."""
        text = p.text
        meant = job_state(text)
        if meant.state is None:
            self.tell("SSS424", "State", f"State {text[:80]!r} is none of {', '.join(_STATES['Job'])}", job, place, p)
        if meant.state in (None, text):
            return
        more = [f"with {name} {value!r}" for name, value in (("Hold", meant.hold), ("StatusMessage", meant.message))
                if value is not None]
        self.tell("SSS420", "State", " ".join((f"State {text!r} is taken for {meant.state}", *more)), job, place, p,
                  severity="info" if text.lower() == str(meant.state).lower() else None)

    # -- what gives reason to look closer
    def times(self, container: Container, place: _Place, found: _Found) -> None:
        """Pairs of times in the wrong order (SSS412)."""
        for before, after in _TIMES:
            if before in found and after in found and (
                    (before, after) != ("SubmitTime", "EndTime") or "StartTime" not in found):
                early, late = found[before][0].value, found[after][0].value
                if isinstance(early, int) and isinstance(late, int) and late < early:
                    self.tell("SSS412", after, f"{after} {late} is before {before} {early}", container, place,
                              found[after][0])

    def end(self, container: Container, place: _Place, found: _Found) -> None:
        """The same for what has no StartTime."""
        if "StartTime" not in found:
            self.times(container, place, found)

    def wished(self, container: Container, place: _Place, found: _Found) -> None:
        """A time that is asked for and that no calendar has (SSS110)."""
        for tag in ("EligibleTime", "DeadlineTime"):
            for p in found.get(tag, ()):
                if isinstance(p.value, int) and p.value > self.limits.moment:
                    self.tell("SSS110", tag, f"{tag} {p.text[:40]} is more than the limit moment "
                              f"({self.limits.moment}), the end of the year 9999", container, place, p,
                              severity=None if self.pending() else "warning")

    def deadline(self, container: Container, place: _Place, found: _Found) -> None:
        """A job that may not start before it must have ended (SSS423)."""
        self.wished(container, place, found)
        eligible, by = (container.first(tag) for tag in ("EligibleTime", "DeadlineTime"))
        if eligible is not None and by is not None and isinstance(eligible.value, int) and isinstance(by.value, int) \
                and by.value < eligible.value:
            self.tell("SSS423", "DeadlineTime", f"the job must end by {by.text} and may not start before "
                      f"{eligible.text}", container, place, by, severity=None if self.pending() else "warning")

    def eligible(self, container: Container, place: _Place, found: _Found) -> None:
        """The same where there is no deadline."""
        if "DeadlineTime" not in found:
            self.wished(container, place, found)

    def executable(self, container: Container, place: _Place, found: _Found) -> None:
        """An Executable that names a File of the message."""
        self.files(container, place, found["Executable"])
        for p in found["Executable"]:
            if "://" in p.text:
                self.tell("SSS425", p.tag, f"Executable {p.text[:200]} would have to be fetched", container, place, p)

    def input_file(self, container: Container, place: _Place, found: _Found) -> None:
        """An InputFile that names a File of the message."""
        self.files(container, place, found["InputFile"])

    def files(self, container: Container, place: _Place, named: Iterable[Property]) -> None:
        """Names of the form ``#Id`` of Files that did not come with the document (SSS311)."""
        for p in named:
            text = str(p.value)
            if text.startswith("#") and text[1:] not in self.document.files:
                self.tell("SSS311", text, f"{p.tag} names the File {text[1:]!r}, which does not come with the document",
                          container, place, p)

    def merged(self, container: Container, place: _Place, found: _Found) -> None:
        """Both streams merged into each other (SSS416)."""
        last = [(tag, p) for tag in ("OutputFile", "ErrorFile") for p in found.get(tag, ())[-1:]]
        if len(last) == 2 and all("Merge" in _LISTED.split(p.get("redirectList") or "") for _, p in last):
            second = [i for i in container.items if i is last[0][1] or i is last[1][1]][-1]
            self.tell("SSS416", second.tag, f"OutputFile and ErrorFile both say Merge; {second.tag} counts", container,
                      place, second)

    def dependency(self, container: Container, place: _Place, found: _Found) -> None:
        """A code without OnExit (SSS413)."""
        for p in found["Dependency"]:
            if "code" in p.attributes and p.attributes.get("condition") != "OnExit":
                self.contradicts("SSS413", p.text, f"code {p.attributes['code']} of the Dependency on {p.text!r} "
                                 "counts only with condition OnExit", container, place, p)

    def distribution(self, container: Container, place: _Place, found: _Found) -> None:
        """The form of a Geometry (SSS408), and numbers that it leaves out (SSS409)."""
        p = found["TaskDistribution"][0]
        kind, text = distribution_of(p)
        if kind != "Geometry":
            return
        try:
            drawn = Geometry.parse(text, self.limits)
        except LexicalError as error:
            rule = "SSS110" if isinstance(error, LimitError) else "SSS408"
            self.tell(rule, "TaskDistribution", f"Geometry: {error}", container, place, p)
            return
        if drawn.gaps:
            shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in drawn.gaps[:5])
            self.tell("SSS409", "TaskDistribution", f"the Geometry leaves out {shown}", container, place, p)

    def amounts(self, container: Container, place: _Place, inside: list[Container], names: set[str]) -> None:
        """What a scope asks for, taken together; most ask for one amount of each name, which takes no look."""
        self._job = container if container.tag in ("Job", "JobDefaults") else self._job
        defaults = self._beside.get(container.tag, ())
        asked = [] if names.isdisjoint(_ASKED) else [p for p in container.items if p.tag in _ASKED]
        excluding = False
        for block in inside:
            if block.tag == "Requested":
                for p in block.items:
                    if p.tag in _ASKED:
                        asked.append(p)
                    elif p.attributes and _excludes(p):
                        excluding = True
        if not excluding and (not asked or not (defaults or _takes_a_look(asked))):
            return
        from sssjob.validation._contradictions import JudgedLevel, check_level

        def tell(rule: str, subject: str, message: str, where: Container, p: Property | None,
                 severity: Severity | None) -> None:
            """Report a contradiction at the place of the container that it was found in."""
            for scope, at in ((container, place), *((d, _Place(place.parent, d.tag, 0)) for d in defaults)):
                if where is scope or any(where is block for block in scope.items):
                    self.tell(rule, subject, message, where, at if where is scope else _Place(at, where.tag, 0), p,
                              severity=severity)
                    return

        check_level(JudgedLevel(container, defaults, self.pending, tell, self.limits, self._sound))

    def spread(self, container: Container, place: _Place, names: set[str]) -> None:
        """How the tasks of a job, or of a task group that stands by itself, are spread over its nodes (SSS414)."""
        beside = self._beside.get("Job", ()) if container.tag == "Job" else ()
        if not beside and names.isdisjoint(_SPREADS):
            return
        from sssjob.validation._spread import spread_over

        if not spread_over((container, *beside), self.limits):
            return
        from sssjob.validation._contradictions import unfit

        job = container if isinstance(container, Job) else Job([container])
        defaults = next((c for c in beside if isinstance(c, JobDefaults)), None)
        for rule, p, group, message in unfit(job, defaults, self.limits):
            self.tell_inside(rule, container, place, p, group, message)

    def tell_inside(self, rule: str, container: Container, place: _Place, p: Property | None, group: int | None,
                    message: str) -> None:
        """The finding about a property anywhere inside a job; where its defaults say it, or a condition comes to it,
        about the task group or the job. group: which task group it is looked for in first, counted from 0, for another
        one may say the same."""
        groups = [(c, at) for c, at in _placed([i for i in container.items if isinstance(i, Container)], place)
                  if c.tag == "TaskGroup"]
        own = groups[group:group + 1] if group is not None else []
        scopes = [] if p is None else [(container, place), *own]
        severity: Severity | None = "warning" if rule == "SSS110" and not self.pending() else None
        while scopes:
            scope, here = scopes.pop()
            if p is not None and any(i is p for i in scope.items):
                self.tell(rule, p.tag, message, scope, here, p, severity=severity)
                return
            scopes += _placed([i for i in scope.items if isinstance(i, Container)], here)
        scope, here = own[0] if own else (container, place)
        self.tell(rule, "Processors" if p is None else p.tag, message, scope, here, severity=severity)

    def pending(self) -> bool:
        """Whether the job that is looked at is not over."""
        job = self._job
        return job is None or (job_state(job.value("State")).state not in _OVER
                               and not any(i.tag in _FACTS for i in job.items))

    def beside(self, container: Container, inside: list[Container]) -> None:
        """Remember the defaults that hold for the scopes inside a container, where they ask for amounts."""
        below = _BELOW.get(container.tag)
        if below is not None:
            name = f"{below}Defaults"
            self._beside[below] = tuple([c for c in inside if c.tag == name and _asks(c)])

    def notification(self, container: Container, place: _Place, found: _Found) -> None:
        """Words of a NotificationList that are no events (SSS422)."""
        words = {w.strip(): p for p in reversed(found["NotificationList"]) for w in reversed(p.text.split(","))}
        for word, p in reversed(words.items()):
            if word not in _EVENTS:
                self.tell("SSS422", word, f"NotificationList: {word!r} is none of {', '.join(sorted(_EVENTS))}",
                          container, place, p)

    def resource_limits(self, container: Container, place: _Place, found: _Found) -> None:
        """Limits with a name of the specification that are no number. The text is a String there, so that it is only
        doubted."""
        for p in found["ResourceLimit"]:
            if str(p.get("name", "")).lower() in _LIMITED and resource_limit(p.text) is None:
                self.tell("SSS201", "ResourceLimit", f"ResourceLimit {p.get('name')}: {p.text[:80]!r} is neither a "
                          "number (of bytes or seconds, or a count) nor unlimited", container, place, p,
                          severity="warning")

    def network(self, container: Container, place: _Place, found: _Found) -> None:
        """Network names an adapter or is an amount; with attributes of an amount it has to be one (14, oddity 14)."""
        for p in found["Network"]:
            if isinstance(p.value, str) and not _CONSUMABLE.isdisjoint(p.attributes):
                self.tell("SSS201", "Network", f"Network {p.text!r} has attributes of an amount but is no number",
                          container, place, p)

    def delivered(self, container: Container, place: _Place, found: _Found) -> None:
        """A Delivered block: names, Network, and brackets, which mean nothing there but have to balance."""
        self.names(container, place, found)
        if "Network" in found:
            self.network(container, place, found)
        if any("group" in p.attributes for p in container.properties()):
            parse(container, self.findings, strict=self.strict, limits=self.limits, path=place.__str__)

    def names(self, container: Container, place: _Place, found: _Found) -> None:
        """Sets and patterns in Node and Feature."""
        for p in (*found.get("Node", ()), *found.get("Feature", ())):
            if p.attributes:
                self.property(p, container, place)

    def property(self, p: Property, container: Container, place: _Place) -> None:
        """One requested property, or one that names nodes; each is looked at once while it is in order."""
        if id(p) in self._clean:
            return
        before = len(self.findings) + self.findings.overflow
        if "delimiter" in p.attributes and p.attributes.get("aggregation") != "List":
            self.contradicts("SSS421", p.tag, f"delimiter of {p.tag} counts only with aggregation List", container,
                             place, p)
        elif p.attributes.get("delimiter") == "":
            self.contradicts("SSS421", p.tag, f"the delimiter of {p.tag} is empty and parts nothing; a comma is taken",
                             container, place, p)
        check_property(p, self.findings, limits=self.limits, path=lambda: _path(container, place, p), within=container)
        if len(self.findings) + self.findings.overflow == before:
            self._clean[id(p)] = p

    # -- Requested and Environment
    def requested(self, container: Container, place: _Place, found: _Found) -> None:
        """A Requested block: each property, then the expression that they make."""
        if "Network" in found:
            self.network(container, place, found)
        expression = False
        for p in container.items:
            attributes = p.attributes
            if not attributes or not isinstance(p, Property):
                continue
            if "op" in attributes or "aggregation" in attributes or "delimiter" in attributes:
                self.property(p, container, place)
            expression = expression or not _EXPRESSION.isdisjoint(attributes)
        if expression and id(container) not in self._sound:
            parse(container, self.findings, strict=self.strict, limits=self.limits, path=place.__str__)

    def variables(self, container: Container, place: _Place, found: Iterable[Property]) -> None:
        """Variables set twice (SSS415), and names that are none (SSS417)."""
        seen: set[str] = set()
        for p in found:
            name = p.attributes.get("name", "")
            if name in seen:
                self.tell("SSS415", name, f"variable {name} is set twice; the last value counts", container, place, p)
            elif not _VARIABLE.fullmatch(name):
                self.tell("SSS417", name, f"{name!r} is not the name of a variable", container, place, p)
            seen.add(name)


_LOOKS: Final[tuple[tuple[str, Callable[[_Checker, Container, _Place, _Found], Any]], ...]] = (
    ("StartTime", _Checker.times), ("EndTime", _Checker.end), ("DeadlineTime", _Checker.deadline),
    ("EligibleTime", _Checker.eligible),
    ("Executable", _Checker.executable), ("InputFile", _Checker.input_file),
    ("ErrorFile", _Checker.merged), ("Dependency", _Checker.dependency), ("TaskDistribution", _Checker.distribution),
    ("Node", _Checker.names), ("Feature", _Checker.names), ("Network", _Checker.network),
    ("NotificationList", _Checker.notification), ("ResourceLimit", _Checker.resource_limits),
)


def _path(container: Container, place: _Place, item: Item | None) -> str:
    """The path of a container or of an item in it, numbered where there are several of its name."""
    if item is None:
        return str(place)
    like = [i for i in container.items if i.tag == item.tag] if len(container.items) < _NUMBERED else []
    number = next((n for n, i in enumerate(like, 1) if i is item), 0)
    return f"{place}/{item.tag}[{number}]" if len(like) > 1 and number else f"{place}/{item.tag}"


def _placed(inside: list[Container], place: _Place | None) -> list[tuple[Container, _Place]]:
    """The containers with their places; those that stand alone have no number."""
    if len(inside) == 1:
        return [(inside[0], _Place(place, inside[0].tag, 0))]
    counts: dict[str, int] = {}
    for child in inside:
        counts[child.tag] = counts.get(child.tag, 0) + 1
    seen: dict[str, int] = {}
    placed = []
    for child in inside:
        seen[child.tag] = index = seen.get(child.tag, 0) + 1
        placed.append((child, _Place(place, child.tag, index if counts[child.tag] > 1 else 0)))
    return placed


def _queued(found: _Found) -> bool:
    """Whether a job has been taken by a resource manager, which then has given it an Id (section 14, oddity 22)."""
    state = job_state(found["State"][0].text).state
    return state in _OVER or (
        state != "NotQueued" and ("SubmitTime" in found or "StartTime" in found))


def _excludes(p: Item) -> bool:
    """Whether a property says what is not to be."""
    return p.attributes.get("op") == "NE" or p.attributes.get("conj") in ("Nand", "Nor")


def _takes_a_look(asked: list[Item]) -> bool:
    """Whether amounts may exclude each other: a name twice, counts that have to fit together, or one that is huge or
    nothing."""
    by_name = {p.tag: p for p in asked}
    if len(by_name) < len(asked):
        return True
    for p in asked:
        value = getattr(p, "value", "")
        if not isinstance(value, str) and (value > _LARGE or (value < 1 and p.tag in _COUNTS) or (p.attributes and (
                p.attributes.get("op") == "LT" or p.attributes.get("units", "B")[:1].upper() in _HUGE))):
            return True
    nodes, processors = by_name.get("NodeCount"), by_name.get("Processors")
    if nodes is None or (processors is None and "Node" not in by_name):
        return False
    return "Node" in by_name or bool(nodes.attributes or (processors is not None and processors.attributes)) or (
        getattr(nodes, "value", 0) > getattr(processors, "value", 0))


@cache
def _instance(container: str) -> frozenset[str]:
    """Names of the properties of a container that belong to one instance."""
    return frozenset(name for name, row in in_scope(container).items() if row.instance)


def _asks(scope: Container) -> bool:
    """Whether a scope asks for amounts."""
    return any(i.tag in _ASKED for i in scope.items) or any(
        i.tag in _ASKED for c in scope.containers("Requested") for i in c.items)
