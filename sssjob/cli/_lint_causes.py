"""What ``lint`` finds in a folder, each cause once: many scripts are copies of few, with the same faults."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sssjob.cli._findings import problem, show
from sssjob.cli._together import numbered
from sssjob.consequences import worst_first
from sssjob.findings import Finding, escape

if TYPE_CHECKING:
    from sssjob.cli._options import Session

__all__ = ["FolderCauses"]

#: Further places that are named of one cause.
_PLACES: Final = 3
#: Words that hold more than letters, which are values of one script.
_VALUES: Final = re.compile(r"\S*[^\sA-Za-z,.;:'()]\S*", re.ASCII)


@dataclass(slots=True)
class _Cause:
    """Findings that say the same but for values. last_file, last_line: where the last one stands; files: how many have
    it; places: some of those behind the first; alike: whether all of them have one text."""

    first: Finding
    count: int = 0
    last_file: str = ""
    last_line: int = 0
    files: int = 0
    places: list[str] = field(default_factory=list)
    alike: bool = True

    def add(self, finding: Finding) -> None:
        """One more; those of a file come one after the other."""
        self.count += 1
        self.last_line = finding.line
        self.alike = self.alike and (finding.message, finding.hint) == (self.first.message, self.first.hint)
        if self.last_file != finding.file:
            self.last_file = finding.file
            self.files += 1
            if 1 < self.files <= 1 + _PLACES:
                self.places.append(f"{escape(finding.file)}:{finding.line}" if finding.line else escape(finding.file))

    @property
    def shown(self) -> Finding:
        """The first finding with the number of all, and some of the files that have it."""
        if self.files == 1:
            return numbered(self.first, self.count, self.last_line, alike=self.alike)
        more = ", ..." if self.files > 1 + _PLACES else ""
        return replace(self.first, message=f"{self.first.message} ({self.count} {'times' if self.alike else 'such'} in "
                       f"{self.files} files, also {', '.join(self.places)}{more})")


class FolderCauses:
    """Takes the findings of one file after the other; at the end each cause is told once, the worst first and of those
    the most frequent. The session keeps score of every finding."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._causes: dict[tuple[object, ...], _Cause] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Take the findings of a file."""
        for finding in findings:
            if self._session.count(finding) or not self._session.quiet:
                self._causes.setdefault(_cause(finding), _Cause(finding)).add(finding)

    def end(self) -> None:
        """Tell all causes."""
        causes = sorted(self._causes.values(), key=lambda cause: (_rank(cause.first), -cause.count))
        for cause in causes:
            show(cause.shown, brief=self._session.brief)
        count = sum(cause.count for cause in causes)
        if count > len(causes) and not self._session.quiet:
            problem(f"{count} findings have {len(causes)} causes; --each shows every one at its place")


def _rank(finding: Finding) -> int:
    return worst_first(finding.severity, finding.consequence)


def _cause(finding: Finding) -> tuple[object, ...]:
    """What findings of one cause have in common: all that they say but the values of one script."""
    about, message = finding.subject.partition("=")[0], finding.message
    option, colon, text = message.partition(": ")
    if colon and option.split(" ", 1)[0] == about:
        message = text
    return _rank(finding), finding.rule, about, _VALUES.sub("_", message)
