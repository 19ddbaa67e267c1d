"""Findings of a log while it is read: a cause that many records share is told once, with its number, the place of the
first record and the line of the last."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from sssjob.cli._findings import show
from sssjob.cli._together import numbered
from sssjob.findings import Finding, Findings

if TYPE_CHECKING:
    from sssjob.cli._options import Session

_DIGITS: Final = re.compile(r"\d+")
#: Causes of a log that are told one by one; of what comes then those of one rule and subject are one.
_MOST: Final = 1000


@dataclass(slots=True)
class _Cause:
    """Findings that say the same but for numbers. last: the line of the last one; alike: whether all of them have one
    text."""

    first: Finding
    count: int = 1
    last: int = 0
    alike: bool = True


class LogFindings:
    """Takes findings as a log is read, and forgets them; at the end of the ``with`` statement they are told. Those that
    refuse are told at once, and so is each one where JSON is asked for: programs count for themselves."""

    def __init__(self, session: Session, findings: Findings) -> None:
        self._session, self._findings = session, findings
        self._causes: dict[tuple[str, ...], _Cause] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.take()
        session = self._session
        for cause in self._causes.values():
            show(numbered(cause.first, cause.count, cause.last, alike=cause.alike), brief=session.brief)
        self._causes.clear()

    def take(self) -> None:
        """Take what was found since the last time."""
        if len(self._findings):
            self.add(self._findings.taken())

    def add(self, findings: Iterable[Finding]) -> None:
        """Take findings; the session keeps score of them."""
        session = self._session
        for finding in findings:
            if session.as_json or finding.rejects:
                session.report([finding], again=False)
            elif session.count(finding) or not (session.quiet or (finding.kind == "exact" and not session.explain)):
                self._count(finding)

    def _count(self, finding: Finding) -> None:
        kind = (finding.file, finding.rule, finding.severity, finding.subject)
        exact = (*kind, _DIGITS.sub("0", finding.message), finding.hint)
        key = exact if exact in self._causes or len(self._causes) < _MOST else kind
        cause = self._causes.setdefault(key, _Cause(finding, 0))
        cause.count += 1
        cause.last = finding.line
        cause.alike = cause.alike and finding.message == cause.first.message
