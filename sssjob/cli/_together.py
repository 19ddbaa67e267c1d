"""Findings that many jobs share, shown once: of a sweep of 200 jobs one line that is absent would be told 200 times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sssjob.consequences import worst_first
from sssjob.findings import Finding

if TYPE_CHECKING:
    from sssjob.document.model import Document

_JOB: Final = re.compile(r"(.*/)Job(?:\[\d+\])?((?:/.*)?)", re.DOTALL)
_STREAM: Final = re.compile(r"(.+): (std(?:out|err)) goes to job-.*", re.DOTALL)    # where no document says it
_KEY: Final = re.compile(r"@\d+\.\d+")       # of a job in the journal


def together(findings: Iterable[Finding], document: Document | None = None, *, whole: bool = True
             ) -> list[tuple[Finding, list[Finding]]]:
    """What is to be shown, and the findings that it stands for: those of one rule and text, about one part of several
    jobs, as one with the number of jobs, at the first place; at JobDefaults where all jobs have it from there. What is
    said of jobs in the journal, and of the files that streams go to unless a document names them, is one text whatever
    the jobs are called. whole: these are all findings, and not only the first of very many."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        place, message = _JOB.fullmatch(finding.path), finding.message
        key = (finding.path, str(finding.line)) if place is None else (place[1], place[2])
        if _KEY.fullmatch(finding.path):
            key, message = ("@", ""), message.removeprefix(finding.subject)
        elif stream := _STREAM.fullmatch(message):
            message = stream[2]
        groups.setdefault((finding.rule, finding.severity, message, finding.hint, *key), []).append(finding)
    return [(_one(some, document, whole), some) for some in groups.values()]


def repeated(findings: Iterable[Finding]) -> list[tuple[Finding, list[Finding]]]:
    """What is to be shown of one file, and the findings that it stands for: those of one rule and text as one, at the
    first place, with their number and the line of the last. What refuses comes first, then what breaks the job, what
    costs more and what looks different, each in the order of lines."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: (worst_first(f.severity, f.consequence), f.line, f.column)):
        groups.setdefault((finding.file, finding.rule, finding.severity, finding.message, finding.hint), []).append(
            finding)
    return [(numbered(some[0], len(some), some[-1].line), some) for some in groups.values()]


def numbered(first: Finding, count: int, last: int, *, alike: bool = True) -> Finding:
    """The first of several findings with their number. last: the line of the last one; alike: they have one text, not
    texts that differ in numbers."""
    if count == 1:
        return first
    where = f", the last at line {last}" if last != first.line else ""
    return replace(first, message=f"{first.message} ({count} {'times' if alike else 'such'}{where})")


def _one(some: list[Finding], document: Document | None, whole: bool) -> Finding:
    jobs = {finding.path for finding in some}
    if len(jobs) < 2:
        return some[0]
    first, path = some[0], some[0].path
    inherited = document is not None and _has_defaults(document) and len(jobs) == sum(1 for _ in document.jobs())
    if inherited and len({finding.line for finding in some}) == 1:
        path = _JOB.sub(r"\1JobDefaults\2", path)
    return replace(first, path=path, message=f"{first.message} ({'' if whole else 'at least '}{len(jobs)} jobs)")


def _has_defaults(document: Document) -> bool:
    groups = list(document.groups())
    return len(groups) == 1 and groups[0].defaults is not None
