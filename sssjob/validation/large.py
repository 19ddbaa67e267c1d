"""A JobGroup of any size: read part by part, as often as it is asked for, never held as a whole.

``Large.of`` reads the text once, with all checks, and says of it what reading it whole would say. What concerns several
jobs is kept in a small index (``_group_index``), what stands in the group beside its jobs in ``Large.group``. Then
``sections`` gives the document again, some jobs at a time, as documents that any function for documents takes; findings
about them are brought to their places in the whole by ``Section.settle``.

Where only the whole reading can say what a text means, or where in it something stands, ``WholeError`` sends it there:
what has to be repaired, text beside the jobs, properties of the group that stand twice, dependencies that form a cycle.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.model import Job, JobDefaults, JobGroup
from sssjob.document.vocabulary import in_scope
from sssjob.errors import RejectedError
from sssjob.findings import Finding, Findings, Locator, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.validation import Siblings, _asks, _Checker, tell_made
from sssjob.validation._group_index import KnownIds, Links, Unknown
from sssjob.validation._looks import Found, Place
from sssjob.validation._sections import Counts, Section, SectionFindings, finished, told_once
from sssjob.xml._parts import Frame, Slice, frame_of, part_at, parts
from sssjob.xml._twin_writing import RAW, add_run
from sssjob.xml.encoding import LEFT, excerpt
from sssjob.xml.profiles import profile as profile_of
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["Large", "Section", "WholeError"]

_HEAD: Final = 64 << 10     # bytes in which the start tag of the group has to stand
_BESIDE: Final = 10_000     # items of a group beside its jobs that are kept
_SHOWN: Final = 2_000       # bytes on both sides of a place, of which its excerpt is made
_GROUP: Final = re.compile(r"/(?:[^/\[:]+:)?(?:(?i:jobgroup)|\*)(?:/@.*)?")
#: What the reader tells of a group only when it knows all of it, and what it tells of a text that it repairs.
_OF_ALL: Final = frozenset(("SSS107", "SSS304", "SSS307", "SSS309", "SSS204"))
_REPAIRED: Final = frozenset(("SSS104", "SSS105"))


class WholeError(Exception):
    """The document has to be read whole. findings: why, of a text that cannot be read; empty for all others."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self.findings = list(findings)
        super().__init__("the document has to be read whole")


# --- checks -------------------------------------------------------------------------------------------------------

class _Checks:
    """The findings of the checks, in the order in which the whole document would have them, and what they know."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.once: set[tuple[str, str]] = set()
        self.made, self.siblings, self.states, self.links, self.group, self.jobs = (
            SectionFindings(path, limits) for _ in range(6))
        self.ids = KnownIds()

    def parts(self) -> tuple[SectionFindings, ...]:
        """All of them."""
        return self.made, self.siblings, self.states, self.links, self.group, self.jobs


class _SectionChecker(_Checker):
    """Checks one section; what concerns its whole group is reported elsewhere, or asked of what is known of the
    group."""

    def __init__(self, section: Section, checks: _Checks, asking: tuple[Container, ...]) -> None:
        large = section.large
        super().__init__(section.document, Findings(large.path, large.room(checks.jobs)), profile_of(large.profile),
                         large.limits)
        self.of_group = Findings(large.path, large.room(checks.group))
        self.of_states = Findings(large.path, large.room(checks.states))
        self.of_siblings = Findings(large.path, large.room(checks.siblings))
        self.ids, self.asking = checks.ids, asking
        for findings in (self.of_group, self.of_states, self.of_siblings):
            findings.places = section.document.places

    def visit(self, container: Container, place: Place) -> list[tuple[Container, Place]]:
        """As every container; findings about the group are kept apart."""
        if container.tag != "JobGroup":
            return super().visit(container, place)
        of_jobs, self.findings = self.findings, self.of_group
        try:
            return super().visit(container, place)
        finally:
            self.findings = of_jobs

    def children(self, container: Container, place: Place, inside: list[Container]) -> None:
        """As in every scope; those of the group have siblings in other sections."""
        if container.tag != "JobGroup":
            super().children(container, place, inside)
            return
        of_group, self.findings = self.findings, self.of_siblings
        super().children(container, place, inside)
        self.findings = of_group

    def siblings(self, scope: Container) -> Siblings:
        """Those in the sections before."""
        return self.ids if scope.tag == "JobGroup" else super().siblings(scope)

    def group(self, group: JobGroup, place: Place, props: Found, inside: list[Container]) -> None:
        """Only the words of its State: the rest is about the whole group."""
        of_group, self.findings = self.findings, self.of_states
        self.group_states(group, place, props)
        self.findings = of_group

    def beside(self, container: Container, inside: list[Container]) -> None:
        """The defaults that hold: of jobs those of the whole group."""
        super().beside(container, inside)
        if container.tag == "JobGroup":
            self._beside["Job"] = self.asking


# --- the document -------------------------------------------------------------------------------------------------

class Large:
    """A JobGroup that is read part by part.

    findings: those of reading; checks: those of the gate; group: what stands beside its jobs, without them; defaults:
    its JobDefaults, several as one; order: the keys of its children in the JSON twin, in document
    order, each with how many stand together;
    comments: how many there are, and the line of the first.
    """

    def __init__(self, file: BinaryIO, path: str, frame: Frame, profile: str, policy: Policy | None, site: Site | None,
                 limits: Limits) -> None:
        self.file, self.path, self.frame, self.profile, self.policy = file, path, frame, profile, policy
        self.site, self.limits = site, limits
        self.findings, self.checks = SectionFindings(path, limits), SectionFindings(path, limits)
        self.group = JobGroup()
        self.defaults: JobDefaults | None = None
        self.order: list[tuple[str, int]] = []
        self.places: Locator | None = None      # a section knows its own
        self.comments = 0, 0
        self._counts = Counts()

    @classmethod
    def of(cls, file: BinaryIO, path: str = "-", *, profile: str = "liberal", policy: Policy | None = None,
           site: Site | None = None, limits: Limits = LIMITS, checked: bool = True) -> Self:
        """Read a document in a file that can be read again from its start, and check it.

        profile, policy: as a document is read; site: whose names its jobs get; checked: False for what is taken as it
        stands, without the gate. Raises WholeError for a document that is no JobGroup or has to be read whole.
        """
        file.seek(0)
        frame = frame_of(file.read(_HEAD))
        if frame is None or profile_of(profile).packed_script:
            raise WholeError
        asking: tuple[Container, ...] | None = None
        while True:
            document = cls(file, path, frame, profile, policy, site, limits)
            now = document._read(checked, asking)
            if now is None:
                return document
            asking = now

    def room(self, findings: Findings) -> Limits:
        """The limits to look with where so many findings are kept already: no more are made than can be."""
        return replace(self.limits, findings=0) if len(findings) >= self.limits.findings else self.limits

    # -- again
    def sections(self) -> Iterator[Section]:
        """The document once more, section by section."""
        before, job = Counts(), 0
        for part in parts(self.file, self.frame, self.limits):
            section = self._section(part, before, job, self.limits, set())
            before = Counts(before.spelt.copy(), before.tags.copy())
            before.add(section.group)
            job += len(section.group.jobs)
            if self.findings.overflow and section.document.findings is not None:
                section.document.findings.overflow += 1     # more was told of the document than is kept
            yield section

    def jobs(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """Every job that is defined here, with the JobDefaults it stands beside; its lines are those of the file."""
        for section in self.sections():
            section.shift(section.part.lines)
            yield from section.jobs()

    def group_jobs(self) -> Iterator[Job]:
        """All jobs of the group, references included."""
        return (job for section in self.sections() for job in section.group.jobs)

    def settle(self, section: Section, findings: Findings, since: int) -> None:
        """Bring findings about a section, from that number on, to their places."""
        new = list(islice(findings, since, None))
        section.settle(new)
        finished(new, self._counts.tags)

    def line_around(self, part: Slice, line: int, column: int) -> str:
        """The source line of a place as findings carry it, of which the part holds some."""
        data, charset, at = part.data, self.frame.charset, -1
        for _ in range(line - part.lines - 1):
            at = data.find(b"\n", at + 1)
        inset = part.inset if line - part.lines == part.first else 0
        if at < 0 and data.startswith(BOM_UTF8):
            at = len(BOM_UTF8) - 1
        here = data[at + 1:].decode(charset, "replace")[:column - 1 - inset].encode(charset, "replace")
        offset = part.begin + at + 1 + len(here) - (len(self.frame.start) if part.begin else 0)
        begin = max(0, offset - _SHOWN)
        self.file.seek(begin)
        around = self.file.read(offset - begin + _SHOWN)
        front, right = around[:offset - begin], around[offset - begin:]
        front = front[front.rfind(b"\n") + 1:].removeprefix(b"" if begin else BOM_UTF8)
        right = right.partition(b"\n")[0]
        before = front.decode(charset, "replace")
        text = before + right.decode(charset, "replace").rstrip("\r")
        if len(before) == column - 1:
            return excerpt(text, column)
        return excerpt("x" * (LEFT + 1) + text, len(before) + LEFT + 2)

    # -- the first time
    def _read(self, checked: bool, asking: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
        """Read and check all sections. asking: JobDefaults that hold, where they are known. Gives those of the group
        where jobs were checked without them."""
        checks = _Checks(self.path, self.limits)
        instructions, of_root = SectionFindings(self.path, self.limits), list[Finding]()
        links = Links() if checked and _mentions(self.file, b"Dependency") else None
        parts_read: list[Slice] = []
        once: set[tuple[str, str]] = set()
        seen: tuple[Container, ...] = ()
        held, jobs, late = list[Item](), 0, False
        try:
            for part in parts(self.file, self.frame, self.limits):
                own: set[tuple[str, str]] = set()
                before = Counts(self._counts.spelt.copy(), self._counts.tags.copy())
                section = self._section(part, before, jobs, self.room(self.findings), own)
                self._told(section, own, once, instructions, of_root)
                once |= own
                fresh = tuple(c for c in section.group.containers("JobDefaults") if _asks(c))
                late = late or (bool(fresh) and part.begin > 0)
                seen += fresh
                held += [i for i in section.group.items if i.tag != "Job"]
                if len(held) > _BESIDE:
                    raise WholeError
                if not part.begin:
                    self.group = type(section.group)((), section.group.attributes, None, section.group.line,
                                                     section.group.spelling)
                if checked:
                    self._check(section, checks, seen if asking is None else asking)
                if links is not None:
                    for job in section.group.jobs:
                        links.add(job)
                self._follow(section)
                jobs += len(section.group.jobs)
                parts_read.append(replace(part, data=b""))
        except EOFError:
            raise WholeError from None
        if late and asking is None and checked:
            return seen
        self._complete(held, instructions, of_root)
        if checked:
            self._complete_checks(checks, links, parts_read)
        return None

    def _section(self, part: Slice, before: Counts, job: int, limits: Limits, once: set[tuple[str, str]]) -> Section:
        """A part as a document. Raises WholeError for one that cannot be read, or is repaired."""
        try:
            document = read_document(part.data, profile=self.profile, path=self.path, limits=limits, policy=self.policy,
                                     once=once)
        except RejectedError as error:
            findings = list(error.findings)
            for finding in findings:
                finding.line += part.lines if finding.line else 0
            raise WholeError(findings) from None
        if not isinstance(document.root, JobGroup):
            raise WholeError
        if self.site is not None:
            self.site.rename(document)
        return Section(document, part, before, job, self)

    def _told(self, section: Section, own: set[tuple[str, str]], once: set[tuple[str, str]],
              instructions: SectionFindings, of_root: list[Finding]) -> None:
        """Take the findings of reading a section, without those that are told once a document and were told."""
        findings = section.document.findings
        assert findings is not None
        again = own & once
        kept = [f for f in findings if (f.rule, f.subject) not in again]
        hidden = findings.overflow - (len(again) - (len(findings) - len(kept)))
        if kept and self.frame.charset != "utf-8" and (section.part.inset or section.ends_within):
            raise WholeError            # the reader counts columns in UTF-8
        section.settle(kept, spelt=True)
        own_findings: list[Finding] = []
        for finding in kept:
            if finding.rule in _REPAIRED:
                raise WholeError
            if _GROUP.fullmatch(finding.path):
                if section.part.begin or finding.rule in _OF_ALL:
                    raise WholeError
                of_root.append(finding)
            elif not finding.path and finding.rule == "SSS106":
                instructions.take([finding])
            else:
                own_findings.append(finding)
        self.findings.take(own_findings, max(0, hidden))

    def _check(self, section: Section, checks: _Checks, asking: tuple[Container, ...]) -> None:
        """Check a section and take what was found."""
        part_findings = Findings(self.path, self.room(checks.made))
        tell_made(section.document, part_findings, self.profile)
        checks.ids.lines = section.part.lines
        checker = _SectionChecker(section, checks, asking)
        checker.run()
        for kept, new in ((checks.made, part_findings), (checks.siblings, checker.of_siblings),
                          (checks.states, checker.of_states), (checks.group, checker.of_group),
                          (checks.jobs, checker.findings)):
            section.settle(new)
            kept.take(told_once(new, checks.once) if new is part_findings else new, new.overflow)

    def _follow(self, section: Section) -> None:
        """Remember the order of the children, and the comments."""
        for item in section.group.items:
            add_run(self.order, RAW if isinstance(item, Raw) else item.tag)
        self._counts.add(section.group)
        if b"<!--" in section.part.data and section.document.places is not None:
            lines = section.document.places.comments()
            if lines:
                self.comments = (self.comments[0] + len(lines), self.comments[1] or lines[0] + section.part.lines)

    def _complete(self, held: list[Item], instructions: SectionFindings, of_root: list[Finding]) -> None:
        """The group, and the findings of reading in the order of the whole."""
        named = Counter(i.tag for i in held if isinstance(i, Property))
        rows = in_scope("JobGroup")
        if any(n > 1 and (tag not in rows or not rows[tag].repeats or rows[tag].once_in_text)
               for tag, n in named.items()):
            raise WholeError
        self.group.items = held
        self.defaults = self.group.defaults
        already_told = SectionFindings(self.path, self.limits)
        for some in (instructions, self.findings):
            already_told.take(some, some.overflow)
        already_told.take(of_root)
        finished(already_told, self._counts.spelt)
        self.findings = already_told

    def _complete_checks(self, checks: _Checks, links: Links | None, parts: list[Slice]) -> None:
        """What is to be said of the group as a whole, and all in the order of the whole."""
        first = Findings(self.path, self.limits)
        names = self._counts.tags
        if "Id" not in names or "Job" not in names:
            group = self._again(parts[0])
            first.places = group.document.places
            if "Id" not in names:
                first.add("SSS305", "Id", "a JobGroup must have an Id", path="/JobGroup", within=group.group)
                group.settle(first)
        if "Job" not in names:
            raise WholeError
        already_told = SectionFindings(self.path, self.limits)
        if not self.findings.overflow:
            already_told.take(checks.made, checks.made.overflow)
        already_told.take(checks.siblings, checks.siblings.overflow)
        already_told.take(first)
        already_told.take(checks.states, checks.states.overflow)
        if links is not None:
            self._depend(links, parts, checks.links)
        already_told.take(checks.links, checks.links.overflow)
        for some in (checks.group, checks.jobs):
            already_told.take(some, some.overflow)
        finished([f for f in already_told if f.rule != "SSS411"], names, checks=True)
        self.checks = already_told

    def _depend(self, links: Links, parts: list[Slice], of_links: SectionFindings) -> None:
        """Dependencies on jobs that are not here (SSS411). WholeError where they form a cycle or are defaults, or where
        a sweep or an array may make those jobs."""
        if (self.defaults is not None and self.defaults.first("Dependency") is not None) or links.cyclic():
            raise WholeError
        missing = links.unknown()
        named = list(islice(missing, self.limits.findings))
        if named and any(_mentions(self.file, word) for word in (b"Sweep", b"Array")):
            raise WholeError
        of_links.overflow += sum(1 for _ in missing)
        at, section = 0, self._again(parts[0])
        for link in named:
            while link.job >= section.job + len(section.group.jobs):
                at += 1
                job = section.job + len(section.group.jobs)
                section = self._again(parts[at], job)
            of_links.take([_unknown(section, link)])

    def _again(self, part: Slice, job: int = 0) -> Section:
        """A section that was let go."""
        return self._section(part_at(self.file, self.frame, part), Counts(), job, self.limits, set())


def _unknown(section: Section, link: Unknown) -> Finding:
    """The finding of ``graph.Dependencies`` about one of them."""
    findings = Findings(section.large.path)
    findings.places = section.document.places
    job = section.group.jobs[link.job - section.job]
    p = job.all("Dependency")[link.at]
    label = job.value("Id") if job.value("Id") is not None else job.value("Name")
    name = f"Job[{link.job + 1}]" if label is None else str(label)
    findings.add("SSS411", p.text, f"job {name} depends on {p.text!r}, which is not in the group",
                 path=f"/JobGroup/Job[{link.job + 1}]/Dependency", item=p, within=job)
    finding = findings[0]
    if finding.line:
        section.place(finding)
    return finding


def _mentions(file: BinaryIO, word: bytes) -> bool:
    """Whether a word stands in a file."""
    file.seek(0)
    before = b""
    while piece := file.read(1 << 20):
        if word in before + piece:
            return True
        before = piece[-len(word):]
    return False
