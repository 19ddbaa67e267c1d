"""Findings that many jobs share, shown once: of a sweep of 200 jobs one line that is absent would be told 200 times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sssjob.consequences import worst_first
from sssjob.document.arrays import label_of
from sssjob.findings import Finding

if TYPE_CHECKING:
    from sssjob.document.model import Document

_JOB: Final = re.compile(r"(.*/)Job(?:\[\d+\])?((?:/.*)?)", re.DOTALL)
#: Texts of which each job has another one: the files that streams go to unless a document names them, ...
_OWN: Final = tuple(re.compile(pattern, re.DOTALL) for pattern in (
    r".+: (std(?:out|err) goes to) job-.*", r"(Arguments: quoted anew) as .*", r"job .+ (depends on .*)"))
_NUMBER: Final = re.compile(r"\[\d+\]")
_GAP: Final = re.compile(r":? ")
_VALUE: Final = re.compile(r"'[^']*'|\d+")
#: Texts that differ in values alone are told one by one if they are no more than these.
FEW: Final = 3
_KEY: Final = re.compile(r"@\d+\.\d+")       # of a job in the journal


def together(findings: Iterable[Finding], document: Document | None = None, *, whole: bool = True
             ) -> list[tuple[Finding, list[Finding]]]:
    """What is to be shown, and the findings that it stands for: those of one rule and text, about one part of several
    jobs, as one with the number of jobs, at the first place; at JobDefaults where all jobs have it from there. What the
    jobs are called makes no difference; nor do values, unless they refuse something or are few. whole: these are all
    findings, and not only the first of very many."""
    names = set() if document is None else {label_of(job, n) for n, (job, _) in enumerate(document.jobs())}
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        place, message = _JOB.fullmatch(finding.path), finding.message
        key = (_NUMBER.sub("", finding.path), "") if place is None else (place[1], place[2])
        if _KEY.fullmatch(finding.path):
            key, message = ("@", ""), message.removeprefix(finding.subject)
        elif place is not None:
            message = _without_name(message, names)
        groups.setdefault((message, finding.hint, finding.rule, finding.severity, *key), []).append(finding)
    return [shown for some, such in _but_for_values(groups) for shown in _shown(some, document, whole, such)]


def _without_name(message: str, names: Set[str]) -> str:
    """What a text says of a job, whatever that is called."""
    for pattern in _OWN:
        if own := pattern.fullmatch(message):
            return own[1]
    gaps = (gap for gap in _GAP.finditer(message) if message[:gap.start()] in names)
    return next((message[gap.end():] for gap in gaps), message)


def _but_for_values(groups: Mapping[tuple[str, ...], list[Finding]]) -> Iterator[tuple[list[Finding], str]]:
    """The groups, of which those that differ in numbers and quoted words are one if they are many, with the word that
    says so."""
    kinds: dict[tuple[str, ...], list[list[Finding]]] = {}
    for (message, *rest), some in groups.items():
        of_jobs = not some[0].rejects and _JOB.fullmatch(some[0].path)
        kinds.setdefault((_VALUE.sub("0", message) if of_jobs else message, *rest), []).append(some)
    for alike in kinds.values():
        if len(alike) > FEW:
            yield [finding for some in alike for finding in some], "such "
        else:
            yield from ((some, "") for some in alike)


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


def _shown(some: list[Finding], document: Document | None, whole: bool, such: str
           ) -> list[tuple[Finding, list[Finding]]]:
    jobs = {finding.path for finding in some}
    first, path = some[0], some[0].path
    if len(jobs) < 2 or not (_JOB.fullmatch(path) or _KEY.fullmatch(path)):     # a reader of texts knows no jobs yet
        return ([(finding, [finding]) for finding in some] if len(some) <= FEW
                else [(numbered(first, len(some), some[-1].line), some)])
    inherited = document is not None and _has_defaults(document) and len(jobs) == sum(1 for _ in document.jobs())
    if inherited and len({finding.line for finding in some}) == 1:
        path = _JOB.sub(r"\1JobDefaults\2", path)
    count = f"{'' if whole else 'at least '}{len(jobs)} {such}jobs"
    return [(replace(first, path=path, message=f"{first.message} ({count})"), some)]


def _has_defaults(document: Document) -> bool:
    groups = list(document.groups())
    return len(groups) == 1 and groups[0].defaults is not None
