"""What is looked at more closely where an element stands in a scope that gives reason to: times, streams, files, names.

Each look is a method that gets the container, its place, and the properties of the container by name. ``LOOKS`` says
which element gives reason to which. The walk over a document, and what is said of a whole scope, is in the package.
Source: SSS job object 3.1.0, sections 5, 6, 10 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from sssjob.document.element import Container, Item, Property
from sssjob.document.lexical import LexicalError, LimitError, utc
from sssjob.document.model import Document
from sssjob.document.states import job_state
from sssjob.document.values import resource_limit
from sssjob.document.vocabulary import CONSUMABLE, element, in_scope
from sssjob.findings import Findings, Severity
from sssjob.limits import Limits
from sssjob.request.geometry import Geometry, distribution_of
from sssjob.request.tree import check_property
from sssjob.xml.profiles import Profile

_LISTED: Final = re.compile(r"[,\s]+")
_CONSUMABLE: Final = frozenset(a.name for a in CONSUMABLE)
_EVENTS: Final = frozenset(element("Job", "NotificationList").values)
_TIMES: Final = (("SubmitTime", "StartTime"), ("StagedTime", "StartTime"), ("StartTime", "EndTime"),
                 ("SubmitTime", "EndTime"))
#: The names of ResourceLimits that the specification has, in lower case.
_LIMITED: Final = frozenset(word.lower() for a in in_scope("Job")["ResourceLimit"].attributes if a.name == "name"
                            for word in a.values)
#: Items of a container from which on those of one name are not numbered: there may be a thousand findings.
_NUMBERED: Final = 1_000
#: States and properties of a job that is over or runs: what it asks for is history.
OVER: Final = ("Running", "Suspended", "Completed")
_FACTS: Final = frozenset(("StartTime", "EndTime", "ExitCode", "Delivered"))
#: The properties of a container that give reason to look closer, by name.
Found = dict[str, list[Property]]


class Place(NamedTuple):
    """Where a container stands; the path is spelt only when a finding needs it."""

    parent: Place | None
    tag: str
    number: int     # among its like, from 1; 0: the only one

    def __str__(self) -> str:
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            steps.append(f"{place.tag}[{place.number}]" if place.number else place.tag)
            place = place.parent
        return "/" + "/".join(reversed(steps))


class Looks:
    """The looks at the properties of a scope, and how a finding is recorded at one."""

    def __init__(self, document: Document, findings: Findings, profile: Profile, limits: Limits) -> None:
        self.document, self.findings, self.profile, self.limits = document, findings, profile, limits
        self.strict = not profile.liberal
        # A property is shared by all places with the same text, so what was found about one holds for all.
        self._clean: dict[int, Property] = {}
        self._job: Container | None = None      # the one that is looked at

    def tell(self, rule: str, subject: str, message: str, container: Container, place: Place, item: Item | None = None,
             *, severity: Severity | None = None, hint: str = "") -> None:
        """Record a finding at a container, or at an item in it."""
        self.findings.add(rule, subject, message, path=lambda: _path(container, place, item), severity=severity,
                          hint=hint, item=item, within=container)

    def contradicts(self, rule: str, subject: str, message: str, container: Container, place: Place,
                    item: Item | None = None) -> None:
        """Something the text does not allow, with which one can go on: an error only in a strict profile."""
        self.tell(rule, subject, message, container, place, item, severity="error" if self.strict else None)

    def pending(self) -> bool:
        """Whether the job that is looked at is not over."""
        job = self._job
        return job is None or (job_state(job.value("State")).state not in OVER
                               and not any(i.tag in _FACTS for i in job.items))

    # -- the looks
    def times(self, container: Container, place: Place, props: Found) -> None:
        """Pairs of times in the wrong order (SSS412)."""
        for before, after in _TIMES:
            if before in props and after in props and (
                    (before, after) != ("SubmitTime", "EndTime") or "StartTime" not in props):
                early, late = props[before][0].value, props[after][0].value
                if isinstance(early, int) and isinstance(late, int) and late < early:
                    self.tell("SSS412", after, f"{after} {late} is before {before} {early}", container, place,
                              props[after][0])

    def end(self, container: Container, place: Place, props: Found) -> None:
        """The same for what has no StartTime."""
        if "StartTime" not in props:
            self.times(container, place, props)

    def wished(self, container: Container, place: Place, props: Found) -> None:
        """A time that is asked for and that no calendar has (SSS110)."""
        for tag in ("EligibleTime", "DeadlineTime"):
            for p in props.get(tag, ()):
                if isinstance(p.value, int) and p.value > self.limits.moment:
                    self.tell("SSS110", tag, f"{tag} {p.text[:40]} is more than the limit moment "
                              f"({self.limits.moment}), the end of the year 9999", container, place, p,
                              severity=None if self.pending() else "warning")

    def deadline(self, container: Container, place: Place, props: Found) -> None:
        """A job that may not start before it must have ended (SSS423)."""
        self.wished(container, place, props)
        eligible, by = (container.first(tag) for tag in ("EligibleTime", "DeadlineTime"))
        if eligible is not None and by is not None and isinstance(eligible.value, int) and isinstance(by.value, int) \
                and by.value < eligible.value:
            self.tell("SSS423", "DeadlineTime", f"the job must end by {utc(by.value)} and may not start before "
                      f"{utc(eligible.value)}", container, place, by, severity=None if self.pending() else "warning")

    def eligible(self, container: Container, place: Place, props: Found) -> None:
        """The same where there is no deadline."""
        if "DeadlineTime" not in props:
            self.wished(container, place, props)

    def executable(self, container: Container, place: Place, props: Found) -> None:
        """An Executable that names a File of the message."""
        self.files(container, place, props["Executable"])
        for p in props["Executable"]:
            if "://" in p.text:
                self.tell("SSS425", p.tag, f"Executable {p.text[:200]} would have to be fetched", container, place, p)

    def input_file(self, container: Container, place: Place, props: Found) -> None:
        """An InputFile that names a File of the message."""
        self.files(container, place, props["InputFile"])

    def files(self, container: Container, place: Place, named: Iterable[Property]) -> None:
        """Names of the form ``#Id`` of Files that did not come with the document (SSS311): a job that is over needs
        none of them."""
        for p in named:
            text = str(p.value)
            if text.startswith("#") and text[1:] not in self.document.files:
                self.tell("SSS311", text, f"{p.tag} names the File {text[1:]!r}, which does not come with the document",
                          container, place, p, severity=None if self.pending() else "warning")

    def merged(self, container: Container, place: Place, props: Found) -> None:
        """Both streams merged into each other (SSS416)."""
        last = [(tag, p) for tag in ("OutputFile", "ErrorFile") for p in props.get(tag, ())[-1:]]
        if len(last) == 2 and all("Merge" in _LISTED.split(p.get("redirectList") or "") for _, p in last):
            second = [i for i in container.items if i is last[0][1] or i is last[1][1]][-1]
            self.tell("SSS416", second.tag, f"OutputFile and ErrorFile both say Merge; {second.tag} counts", container,
                      place, second)

    def dependency(self, container: Container, place: Place, props: Found) -> None:
        """A code without OnExit (SSS413)."""
        for p in props["Dependency"]:
            if "code" in p.attributes and p.attributes.get("condition") != "OnExit":
                self.contradicts("SSS413", p.text, f"code {p.attributes['code']} of the Dependency on {p.text!r} "
                                 "counts only with condition OnExit", container, place, p)

    def distribution(self, container: Container, place: Place, props: Found) -> None:
        """The form of a Geometry (SSS408), and numbers that it leaves out (SSS409)."""
        p = props["TaskDistribution"][0]
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

    def notification(self, container: Container, place: Place, props: Found) -> None:
        """Words of a NotificationList that are no events (SSS422)."""
        words = {w.strip(): p for p in reversed(props["NotificationList"]) for w in reversed(p.text.split(","))}
        for word, p in reversed(words.items()):
            if word not in _EVENTS:
                self.tell("SSS422", word, f"NotificationList: {word!r} is none of {', '.join(sorted(_EVENTS))}",
                          container, place, p)

    def resource_limits(self, container: Container, place: Place, props: Found) -> None:
        """Limits with a name of the specification that are no number. The text is a String there, so that it is only
        doubted."""
        for p in props["ResourceLimit"]:
            if str(p.get("name", "")).lower() in _LIMITED and resource_limit(p.text) is None:
                self.tell("SSS201", "ResourceLimit", f"ResourceLimit {p.get('name')}: {p.text[:80]!r} is neither a "
                          "number (of bytes or seconds, or a count) nor unlimited", container, place, p,
                          severity="warning")

    def network(self, container: Container, place: Place, props: Found) -> None:
        """Network names an adapter or is an amount; with attributes of an amount it has to be one (14, oddity 14)."""
        for p in props["Network"]:
            if isinstance(p.value, str) and not _CONSUMABLE.isdisjoint(p.attributes):
                self.tell("SSS201", "Network", f"Network {p.text!r} has attributes of an amount but is no number",
                          container, place, p)

    def names(self, container: Container, place: Place, props: Found) -> None:
        """Sets and patterns in Node and Feature."""
        for p in (*props.get("Node", ()), *props.get("Feature", ())):
            if p.attributes:
                self.property(p, container, place)

    def property(self, p: Property, container: Container, place: Place) -> None:
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


LOOKS: Final[tuple[tuple[str, Callable[[Looks, Container, Place, Found], Any]], ...]] = (
    ("StartTime", Looks.times), ("EndTime", Looks.end), ("DeadlineTime", Looks.deadline),
    ("EligibleTime", Looks.eligible),
    ("Executable", Looks.executable), ("InputFile", Looks.input_file),
    ("ErrorFile", Looks.merged), ("Dependency", Looks.dependency), ("TaskDistribution", Looks.distribution),
    ("Node", Looks.names), ("Feature", Looks.names), ("Network", Looks.network),
    ("NotificationList", Looks.notification), ("ResourceLimit", Looks.resource_limits),
)


def _path(container: Container, place: Place, item: Item | None) -> str:
    """The path of a container or of an item in it, numbered where there are several of its name."""
    if item is None:
        return str(place)
    tag = item.tag
    alike = [id(i) for i in container.items if i.tag == tag] if len(container.items) < _NUMBERED else []
    if len(alike) > 1 and id(item) in alike:
        return f"{place}/{tag}[{alike.index(id(item)) + 1}]"
    return f"{place}/{tag}"
