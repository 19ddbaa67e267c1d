"""Writes a JobGroup that is read part by part: in XML, and as the JSON twin. The text is that of the whole document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from sssjob.findings import Findings, Policy
from sssjob.validation._sections import Section, SectionFindings, told_once
from sssjob.validation.large import Large, WholeError
from sssjob.xml._in_order import in_order
from sssjob.xml._rereading import reread
from sssjob.xml._twin_writing import group_pieces
from sssjob.xml.profiles import profile as profile_of
from sssjob.xml.writer import _Writer, text_of


class GroupWriter:
    """Writes the sections of a group one after another, as ``writer.write_document`` writes the document.

    profile, findings, policy: as there. Jobs may be changed before their section is written.
    """

    def __init__(self, large: Large, profile: str, findings: Findings, policy: Policy | None) -> None:
        self.large, self.profile, self.findings, self.policy = large, profile_of(profile), findings, policy
        self._told: set[str] = set()
        self._doubtful = False                          # whether the reader may say something of the text
        self._again = SectionFindings(large.path, findings.limits)     # what it says of sections that are not in order
        self._once: set[tuple[str, str]] = set()
        self._before = len(findings)
        if "JobGroup" in self.profile.refused:
            raise WholeError
        count, line = large.comments
        if count:
            findings.add("SSS113", "comment", f"{count} comment{'s are' if count > 1 else ' is'} not kept",
                         severity="info", line=line)

    def start(self) -> str:
        """The start tag of the group."""
        writer = self._writer(self.findings)
        return f"<{self._tag}{writer.attributes(self.large.group.attributes)}>\n"

    def end(self) -> str:
        """The end tag of the group; all that is to be told of the text is told then."""
        if self._doubtful and not any(f.rejects for f in islice(self.findings, self._before, None)):
            room = max(0, self.findings.limits.findings - len(self.findings))
            more = SectionFindings(self.large.path, replace(self.findings.limits, findings=room))
            more.take(self._again, self._again.overflow)
            self.findings.extend(more)
        return f"</{self._tag}>\n"

    def section(self, section: Section) -> str:
        """The children of a section; findings about them are in their places."""
        since = len(self.findings)
        self.findings.places = section.document.places
        writer = self._writer(self.findings)
        policy = Policy.of(self.large.group.attributes.get("awarenessPolicy", "")) or self.policy or Policy.REJECT
        writer.items(section.group, "  ", policy)
        text = "".join(writer.out)
        self.findings.places = None
        self.large.settle(section, self.findings, since)
        self._doubtful = self._doubtful or writer.doubtful
        if not in_order(section.document):
            start = f"<JobGroup{writer.attributes(section.group.attributes)}>\n"
            self._read(section, f"{start}{text}</JobGroup>\n" if writer.plain else
                       text_of(section.document, Findings()))
        return text

    def _read(self, section: Section, text: str) -> None:
        """Keep what the reader says of the text of a section; some it says once a document."""
        new = Findings(self.large.path, self.large.room(self._again))
        new.places = section.document.places
        reread(section.document, text, new, self.policy)
        self.large.settle(section, new, 0)
        self._again.take(told_once(new, self._once), new.overflow)

    @property
    def _tag(self) -> str:
        group = self.large.group
        return group.spelling if self.profile.keep_spelling and group.spelling else "JobGroup"

    def _writer(self, findings: Findings) -> _Writer:
        """One for each section: it knows properties by their identity, which a later section may give to others."""
        writer = _Writer(self.profile, findings, self.policy or Policy.REJECT)
        writer._told, writer._group = self._told, self.large.group
        return writer


def xml_pieces(large: Large, *, profile: str = "3.1", findings: Findings,
               policy: Policy | None = None) -> Iterator[str]:
    """The XML text of a large document, piece by piece. Ask ``findings.rejected`` at the end, before it is used."""
    writer = GroupWriter(large, profile, findings, policy)
    yield writer.start()
    for section in large.sections():
        yield writer.section(section)
    yield writer.end()


def json_pieces(large: Large, *, indent: int | None = 2) -> Iterator[str]:
    """The JSON twin of a large document, piece by piece. Raises WholeError where only the whole can be written, before
    the last piece."""
    try:
        yield from group_pieces(large.group, large.order, lambda: (s.group for s in large.sections()), indent)
    except LookupError:
        raise WholeError from None
