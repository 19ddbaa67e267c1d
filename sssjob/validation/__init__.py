"""What can be wrong with a document whose elements and values are all in order: the checks of meaning.

``check`` walks the containers once, without recursion over lists, and looks closer only where an element stands that
gives reason to. Source: SSS job object 3.1.0, sections 2, 5, 6, 10 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import Final

from sssjob.document.element import Container, Item, Property, Value
from sssjob.document.model import CLASSES, Document, Job, JobDefaults, JobGroup, jobs_of
from sssjob.document.states import job_state
from sssjob.document.vocabulary import SCOPES, element, in_scope
from sssjob.findings import Findings, Severity
from sssjob.limits import Limits
from sssjob.request.tree import AMOUNTS, parse
from sssjob.validation._looks import LOOKS, OVER, Found, Looks, Place
from sssjob.xml._in_order import in_order
from sssjob.xml._rereading import record, reread
from sssjob.xml.profiles import Profile
from sssjob.xml.profiles import profile as profile_of

__all__ = ["check"]


def tell_made(document: Document, findings: Findings, profile: str = "liberal") -> None:
    """Record what is wrong with what was made or changed by hand, without what was found when the document was read."""
    if in_order(document):
        return
    from sssjob.xml.writer import text_of

    written = Findings()
    text = text_of(document, written)
    if written.rejected:                # what XML cannot hold cannot be read again
        record([f for f in written if f.rejects], findings)
    else:
        reread(document, text, findings, profile=profile)


_TAG: Final = attrgetter("tag")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULTS: Final = frozenset(("JobDefaults", "TaskGroupDefaults", "TaskDefaults"))
_SCOPES: Final = frozenset(("JobGroup", *SCOPES, *_DEFAULTS))
_EXPRESSION: Final = frozenset(("group", "preference", "conj"))
#: Properties of a scope that give reason to look closer.
_TELLING: Final = frozenset((
    "Id", "State", "SubmitTime", "StagedTime", "StartTime", "EndTime", "Executable", "InputFile", "OutputFile",
    "ErrorFile", "EligibleTime", "DeadlineTime", "TaskDistribution", "TaskCount", "NodeCount", "Dependency", "Node",
    "Feature", "Network", "NotificationList", "ResourceLimit", "Extension",
))
#: Extensions of which more is asked than that they stand there (``failures.NAMES``, ``sweeps.NAME``, arrays, chunks).
_LOOKED_AT: Final = frozenset(("Retry", "OnFailure", "Sweep", "Array", "ChunkCount"))
_VARIABLES: Final = frozenset(("Variable", "Extension"))
_ASKED: Final = AMOUNTS | {"TaskDistribution", "Node"}
_SPREADS: Final = frozenset(("Extension", "TaskDistribution", "TaskGroup", "TaskGroupDefaults"))
_COUNTS: Final = frozenset(("Processors", "NodeCount", "TaskCount", "Duration"))
_LARGE: Final = 10**6           # amounts above are held against the limits, and such of these units
_HUGE: Final = tuple("EZYND")
#: Kind of scope -> the kind of those inside it, which have defaults beside them.
_BELOW: Final = {"JobGroup": "Job", "Job": "TaskGroup", "TaskGroup": "Task"}
_STATES: Final = {tag: element(tag, "State").values for tag in ("Job", "JobGroup")}


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
    """What tells records of one job apart, which share its Id: the StartTime of a run, of a job that ended without one
    when it was submitted and ended, or that it waits for one, and of a run that goes on for how long it has run, for
    logs tell of it then and when it is over."""
    if not isinstance(container, Job):
        return None
    start = container.value("StartTime")
    if start and (state := container.value("State")) in ("Running", "Suspended"):
        held = container.delivered
        return f"{start} {state} {'' if held is None else held.value('Duration')}"
    ended = container.value("EndTime")
    if not start and ended:
        return f"{container.value('SubmitTime')} to {ended}"
    return start or ("" if container.first("State") else None)


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


class _Checker(Looks):
    """One run of all checks over one document."""

    def __init__(self, document: Document, findings: Findings, profile: Profile, limits: Limits) -> None:
        super().__init__(document, findings, profile, limits)
        self.bodies = list(document.bodies())
        self._known: frozenset[str] | None = None
        self._waits = False                     # a job that is in no group waits for one that is here; most do not
        self._sound: set[int] = set()           # Requested in whose expression nothing is wrong, by identity
        self._beside: dict[str, tuple[Container, ...]] = {}     # scope -> defaults beside it that ask for amounts

    def run(self) -> None:
        """Check every outermost container with all that is inside."""
        self.findings.places = self.document.places
        for body, place in _placed(self.bodies, None):
            self._job = None
            self._beside.clear()
            self.walk(body, place)
        if self._waits:
            self.loose([b for b in self.bodies if isinstance(b, Job) and b.reference is None])

    def loose(self, jobs: list[Job]) -> None:
        """Jobs that are in no group and wait for each other, or one for itself (SSS410)."""
        from sssjob.document.graph import Dependencies

        Dependencies.of(JobGroup(jobs)).check_cycle(self.findings, "")

    def walk(self, body: Container, place: Place) -> None:
        """Check a container and all that is inside, without recursion; references are left out."""
        stack = [(body, place)]
        while stack:
            container, here = stack.pop()
            if container.reference is None:
                stack.extend(reversed(self.visit(container, here)))

    # -- one container
    def visit(self, container: Container, place: Place) -> list[tuple[Container, Place]]:
        """Check one container; gives those inside it."""
        tag, items = container.tag, container.items
        names = set(map(_TAG, items))
        inside = [] if names.isdisjoint(CLASSES) else [i for i in items if isinstance(i, Container)]
        telling = names & (_TELLING if tag != "Environment" else _VARIABLES)
        by_tag: Found = {}
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

    def extensions(self, container: Container, place: Place, stated: list[Property]) -> None:
        """What a job says of failures, and its sweep (SSS426): the grammar of it, and that it stands at a job. An array
        that is none may be one that a template is still to fill in, so that it is only doubted before it is run; the
        same holds for a number of chunks."""
        for p in stated:
            if p.attributes.get("name") == "Array":
                from sssjob.document.arrays import fault_of as fault_of_array

                if (doubt := fault_of_array(p)) is not None:
                    self.tell("SSS201", "Extension", doubt, container, place, p, severity="warning")
                continue
            if p.attributes.get("name") == "ChunkCount":
                from sssjob.request.extensions import fault_of_chunks

                if (doubt := fault_of_chunks(p)) is not None:
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

    def scope(self, container: Container, place: Place, props: Found, inside: list[Container], names: set[str]
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
        if not props and container.tag != "JobGroup":
            return
        if isinstance(container, JobGroup):
            self.group(container, place, props, inside)
        elif isinstance(container, Job):
            self.job(container, place, props)
        for tag, look in LOOKS:
            if tag in props:
                look(self, container, place, props)

    def children(self, container: Container, place: Place, inside: list[Container]) -> None:
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
                        self.tell("SSS308", identifier.text, f"{child.tag} Id {identifier.text!r} is used twice"
                                  + (f" (first in line {first})" if first else ""), child,
                                  Place(place, child.tag, number), identifier)

    def siblings(self, scope: Container) -> Siblings:
        """Those before the first child of a scope: none."""
        return Siblings()

    def results(self, container: Container, place: Place, inside: list[Container], names: set[str]) -> None:
        """What belongs to one instance in defaults, which inherit it to nobody (SSS418)."""
        own = names & _instance(container.tag)
        for tag, p in {p.tag: p for p in reversed(container.items) if p.tag in own and isinstance(p, Property)}.items():
            self.tell("SSS418", tag, f"{tag} in {container.tag} belongs to one instance and is not inherited",
                      container, place, p)
        for block in [c for c in inside if c.tag == "Delivered"][:1]:
            self.tell("SSS418", "Delivered", f"Delivered in {container.tag} is not inherited", container, place, block)

    # -- groups and jobs
    def group(self, group: JobGroup, place: Place, props: Found, inside: list[Container]) -> None:
        """A JobGroup has an Id and a Job (SSS305), and dependencies that can hold."""
        if "Id" not in props:
            self.tell("SSS305", "Id", "a JobGroup must have an Id", group, place)
        self.group_states(group, place, props)
        if not any(c.tag == "Job" for c in inside):
            self.tell("SSS305", "Job", "a JobGroup must have a Job", group, place)
        if not any(i.tag == "Dependency" for c in inside if c.tag in ("Job", "JobDefaults") for i in c.items):
            return
        from sssjob.document.graph import Dependencies

        graph = Dependencies.of(group)
        names_elsewhere = self.known() if any(not link.needs for link in graph.links) else ()
        graph.check(self.findings, path=str(place), known=names_elsewhere)

    def group_states(self, group: JobGroup, place: Place, props: Found) -> None:
        """The words of State of a group (SSS424)."""
        for p in props.get("State", ()):
            if p.text not in _STATES["JobGroup"]:
                self.tell("SSS424", "State", f"State {p.text[:80]!r} is none of {', '.join(_STATES['JobGroup'])}",
                          group, place, p)

    def known(self) -> frozenset[str]:
        """Ids and names of all jobs of the document, those that its sweeps make among them."""
        if self._known is None:
            from sssjob.document.sweeps import names_of

            jobs = [job for job, _ in jobs_of(self.bodies)]
            self._known = frozenset(names_of(jobs, self.document.files, self.limits))
        return self._known

    def job(self, job: Job, place: Place, props: Found) -> None:
        """A Job that was taken has an Id (SSS305); its State; dependencies on jobs that are not here (SSS411)."""
        if "Id" not in props and "State" in props and (     # a submission has none yet
                props["State"][0].text != "NotQueued" if self.strict else _queued(props)):
            self.tell("SSS305", "Id", f"a Job in State {props['State'][0].text} must have an Id", job, place,
                      props["State"][0])
        if "State" in props:
            self.state(job, place, props["State"][0])
        if "Dependency" in props and place.parent is None:
            for p in props["Dependency"]:
                self._waits = self._waits or p.text.strip() in self.known()
                if p.text not in self.known():
                    self.tell("SSS411", p.text, f"the job depends on {p.text!r}, which is not in the document", job,
                              place, p)

    def state(self, job: Job, place: Place, p: Property) -> None:
        """A State under a word of another system; only another case of a known word is no more than noted."""
        text = p.text
        mapped = job_state(text)
        if mapped.state is None:
            self.tell("SSS424", "State", f"State {text[:80]!r} is none of {', '.join(_STATES['Job'])}", job, place, p)
        if mapped.state in (None, text):
            return
        more = [f"with {name} {value!r}" for name, value in (("Hold", mapped.hold), ("StatusMessage", mapped.message))
                if value is not None]
        self.tell("SSS420", "State", " ".join((f"State {text!r} is taken for {mapped.state}", *more)), job, place, p,
                  severity="info" if text.lower() == str(mapped.state).lower() else None)

    def amounts(self, container: Container, place: Place, inside: list[Container], names: set[str]) -> None:
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
            for scope, at in ((container, place), *((d, Place(place.parent, d.tag, 0)) for d in defaults)):
                if where is scope or any(where is block for block in scope.items):
                    self.tell(rule, subject, message, where, at if where is scope else Place(at, where.tag, 0), p,
                              severity=severity)
                    return

        check_level(JudgedLevel(container, defaults, self.pending, tell, self.limits, self._sound))

    def spread(self, container: Container, place: Place, names: set[str]) -> None:
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

    def tell_inside(self, rule: str, container: Container, place: Place, p: Property | None, group: int | None,
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

    def beside(self, container: Container, inside: list[Container]) -> None:
        """Remember the defaults that hold for the scopes inside a container, where they ask for amounts."""
        below = _BELOW.get(container.tag)
        if below is not None:
            name = f"{below}Defaults"
            self._beside[below] = tuple([c for c in inside if c.tag == name and _asks(c)])

    def delivered(self, container: Container, place: Place, props: Found) -> None:
        """A Delivered block: names, Network, and brackets, which mean nothing there but have to balance."""
        self.names(container, place, props)
        if "Network" in props:
            self.network(container, place, props)
        if any("group" in p.attributes for p in container.properties()):
            parse(container, self.findings, strict=self.strict, limits=self.limits, path=place.__str__)

    # -- Requested and Environment
    def requested(self, container: Container, place: Place, props: Found) -> None:
        """A Requested block: each property, then the expression that they make."""
        if "Network" in props:
            self.network(container, place, props)
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

    def variables(self, container: Container, place: Place, variables: Iterable[Property]) -> None:
        """Variables set twice (SSS415), and names that are none (SSS417)."""
        seen: set[str] = set()
        for p in variables:
            name = p.attributes.get("name", "")
            if name in seen:
                self.tell("SSS415", name, f"variable {name} is set twice; the last value counts", container, place, p)
            elif not _VARIABLE.fullmatch(name):
                self.tell("SSS417", name, f"{name!r} is not the name of a variable", container, place, p)
            seen.add(name)


def _placed(inside: list[Container], place: Place | None) -> list[tuple[Container, Place]]:
    """The containers with their places; those that stand alone have no number."""
    if len(inside) == 1:
        return [(inside[0], Place(place, inside[0].tag, 0))]
    counts: dict[str, int] = {}
    for child in inside:
        counts[child.tag] = counts.get(child.tag, 0) + 1
    seen: dict[str, int] = {}
    placed = []
    for child in inside:
        seen[child.tag] = index = seen.get(child.tag, 0) + 1
        placed.append((child, Place(place, child.tag, index if counts[child.tag] > 1 else 0)))
    return placed


def _queued(props: Found) -> bool:
    """Whether a job has been taken by a resource manager, which then has given it an Id (section 14, oddity 22)."""
    state = job_state(props["State"][0].text).state
    return state in OVER or (
        state != "NotQueued" and ("SubmitTime" in props or "StartTime" in props))


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
