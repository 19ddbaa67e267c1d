"""Some jobs of a large document as a document of their own, and how what is told of them gets its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.model import Document, Job, JobDefaults, JobGroup
from sssjob.document.vocabulary import in_scope
from sssjob.findings import Finding, Findings
from sssjob.xml._parts import Slice

if TYPE_CHECKING:
    from sssjob.validation.large import Large

_NUMBERED: Final = 1_000    # items of a container from which on ``validation`` numbers no properties
_ONCE: Final = frozenset(("SSS204", "SSS306", "SSS310", "SSS312"))
_CHILD: Final = re.compile(r"(/(?:[^/\[:]+:)?(?:(?i:jobgroup)|\*))/([^/\[]+)(?:\[(\d+)\])?(.*)", re.S)


class SectionFindings(Findings):
    """Findings that come section by section, in the order of the document."""

    __slots__ = ()

    def take(self, others: Iterable[Finding], overflow: int = 0) -> None:
        """Add findings that were told elsewhere: as many as are kept, the first that rejects among them."""
        self.overflow += overflow
        for finding in others:
            first = finding.rejects and not self._rejected
            self._rejected = self._rejected or first
            if len(self._kept) < self.limits.findings or first:
                self._kept.append(finding)
            else:
                self.overflow += 1

    @property
    def full(self) -> bool:
        """Whether no more are kept."""
        return len(self._kept) >= self.limits.findings


@dataclass(slots=True)
class Counts:
    """How many children of a group there are of each name: as they are spelt, and by what they are."""

    spelt: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)

    def add(self, group: Container) -> None:
        """Those of one section."""
        for item in group.items:
            self.tags[item.tag] += 1
            name = item.tag.rpartition("}")[2] if isinstance(item, Raw) else item.spelling or item.tag
            self.spelt[name] += 1
        self.spelt["*"] += len(group.items)


@dataclass(slots=True)
class Section:
    """Some jobs of a large document as a document of their own.

    document: with lines as they are in its own text; part: that text; before: the children of the group that stand in
    earlier sections; job: the number of its first job, from 0.
    """

    document: Document
    part: Slice
    before: Counts
    job: int
    large: Large

    @property
    def group(self) -> JobGroup:
        """The group that holds the jobs of this section."""
        root = self.document.root
        assert isinstance(root, JobGroup)
        return root

    def jobs(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """Its jobs that are defined here, with the JobDefaults of the whole group."""
        return ((job, self.large.defaults) for job in self.group.jobs if job.reference is None)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Meanwhile its containers have the lines of the whole document."""
        self.shift(self.part.lines)
        try:
            yield
        finally:
            self.shift(-self.part.lines)

    def shift(self, lines: int) -> None:
        """Add to the lines of all its containers."""
        stack: list[Item] = [self.group]
        while stack and lines:
            item = stack.pop()
            if isinstance(item, Container):
                item.line += lines
                stack += [i for i in item.items if not isinstance(i, Property)]

    @property
    def ends_within(self) -> bool:
        """Whether it ends within a line."""
        return not self.part.last and not self.part.data.endswith(b"\n" + self.large.frame.end)

    def settle(self, findings: Iterable[Finding], *, spelt: bool = False) -> None:
        """Bring findings about this section to their places in the whole document. spelt: their paths spell names as
        the text does; else they have the names of 3.1.0."""
        before = self.before.spelt if spelt else self.before.tags
        for finding in findings:
            if finding.line:
                self.place(finding)
            if finding.path:
                finding.path = _moved(finding.path, before)

    def place(self, finding: Finding) -> None:
        """Line, column and source line; where the section begins or ends within a line, that is read again."""
        part, frame = self.part, self.large.frame
        begins = finding.line == part.first and part.inset > 0
        end = len(part.data) - (0 if part.last else len(frame.end))
        ends = self.ends_within and part.data.count(b"\n", 0, end) + 1 == finding.line
        if finding.column and begins:
            finding.column += part.inset
        finding.line += part.lines
        if finding.column and (begins or ends):
            finding.excerpt = self.large.line_around(part, finding.line, finding.column)


def _moved(path: str, before: Counter[str]) -> str:
    """The path of something in a child of the group, always with the number of that child."""
    step = _CHILD.fullmatch(path)
    if step is None or step[2].startswith("@"):
        return path
    number = int(step[3] or 1) + before[step[2].rpartition(":")[2]]
    return f"{step[1]}/{step[2]}[{number}]{step[4]}"


def told_once(findings: Iterable[Finding], once: set[tuple[str, str]]) -> list[Finding]:
    """Findings without those that the reader tells once a document, of rule and subject, and that were told already."""
    kept = []
    for finding in findings:
        key = finding.rule, finding.subject
        if finding.rule not in _ONCE or key not in once:
            kept.append(finding)
        once.add(key)
    return kept


def finished(findings: Iterable[Finding], counts: Counter[str], *, checks: bool = False) -> None:
    """Take the number of a child that is the only one of its name out of the paths, and those that nobody gives."""
    many = checks and sum(counts.values()) >= _NUMBERED
    for finding in findings:
        step = _CHILD.fullmatch(finding.path) if finding.path else None
        if step is not None and step[3] is not None and (
                counts[step[2].rpartition(":")[2]] == 1 or (many and not step[4] and step[2] in in_scope("JobGroup"))):
            finding.path = f"{step[1]}/{step[2]}{step[4]}"
