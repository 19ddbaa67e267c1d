"""The findings of lint in the forms that other programs read: problem matchers, code review, dashboards.

A form is a function from findings to pieces of text, a row of ``FORMS``. None of them repeats source lines, so that no
secret of a script gets into a report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

from sssjob.consequences import worst_first
from sssjob.findings import Finding, escape
from sssjob.rules import RULES
from sssjob.version import __version__

__all__ = ["FORMS"]


def _message(finding: Finding) -> str:
    """The message with its hint, on one line."""
    hint = f" ({escape(finding.hint, 400)})" if finding.hint else ""
    return f"{escape(finding.message, 1000)}{hint}"


# -- a line each
def _gcc(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """``file:line:column: severity: message [rule]``, as compilers print it: error, warning or note."""
    for f in findings:
        yield f"{_file(f)}:{f.line or 1}:{f.column or 1}: {f.level}: {_message(f)} [{f.rule}]\n"


def _github(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """Workflow commands of GitHub Actions. Source: docs.github.com, workflow commands, setting an error message."""
    for f in findings:
        command = "notice" if f.level == "note" else f.level
        place = {"file": _file(f), "line": str(f.line or 1)} | ({"col": str(f.column)} if f.column else {})
        shown = ",".join(f"{key}={_command(value, ':,')}" for key, value in (place | {
            "title": f"{f.rule} {RULES[f.rule].title}"}).items())
        yield f"::{command} {shown}::{_command(_message(f))}\n"


def _command(text: str, more: str = "") -> str:
    """A text in a workflow command: percent signs and line breaks are coded, in properties ``:`` and ``,`` too."""
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" or c in more else c for c in text)


# -- one document
#: Grades of GitLab, which has five, from what refuses on: see ``worst_first``.
_GRADES: Final = ("critical", "major", "minor", "info", "info")
#: How much a result matters to a reader of SARIF (rank, 0 to 100), in the same order.
_RANKS: Final = (100.0, 75.0, 50.0, 25.0, 25.0)


def _json(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """One array of records."""
    records = [{k: v for k, v in f.record().items() if k not in ("type", "excerpt")} for f in findings]
    yield json.dumps(records, indent=1) + "\n"


def _gitlab(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """A report of Code Quality. Source: docs.gitlab.com, Code Quality report format: description, check_name,
    fingerprint, severity, location.path, location.lines.begin."""
    times: dict[str, int] = {}
    issues = []
    for f in findings:
        base = "\0".join((f.file, f.rule, f.subject, f.message))
        times[base] = number = times.get(base, 0) + 1       # the same once more is another issue of the file
        identity = f"{base}\0{number}".encode("utf-8", "surrogateescape")
        issues.append({"description": f"{f.rule} {_message(f)}", "check_name": f.rule,
                       "fingerprint": hashlib.sha256(identity).hexdigest(),
                       "severity": _GRADES[worst_first(f.severity, f.consequence)],
                       "location": {"path": _file(f), "lines": {"begin": f.line or 1}}})
    yield json.dumps(issues, indent=1) + "\n"


def _sarif(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """A log in SARIF 2.1.0 (OASIS, errata 01) of one run: the rules that were met, and a result for each finding."""
    results = list(findings)
    rules = sorted({f.rule for f in results})
    yield json.dumps({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "sssjob", "semanticVersion": __version__,
                                "rules": [_descriptor(rule) for rule in rules]}},
            "columnKind": "unicodeCodePoints",
            "results": [_result(f, rules.index(f.rule)) for f in results],
        }]}, indent=1) + "\n"


def _descriptor(name: str) -> dict[str, Any]:
    rule = RULES[name]
    return {"id": rule.id, "shortDescription": {"text": rule.title}, "fullDescription": {"text": rule.text},
            "help": {"text": rule.text}, "defaultConfiguration": {
                "level": "note" if rule.consequence == "looks" else _LEVELS[rule.severity]}}


_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}      # of rules


def _result(f: Finding, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(f)}}
    if f.line:
        place["region"] = {"startLine": f.line} | ({"startColumn": f.column} if f.column else {})
    return {"ruleId": f.rule, "ruleIndex": index, "level": f.level, "message": {"text": _message(f)},
            "rank": _RANKS[worst_first(f.severity, f.consequence)], "locations": [{"physicalLocation": place}]} | (
        {"properties": {"consequence": f.consequence}} if f.consequence else {})


def _uri(f: Finding) -> str:
    """The path of a file as a reference: every byte that may not stand there is coded."""
    if f.file == "-":
        return "stdin"
    path = quote(f.file.encode("utf-8", "surrogateescape"), safe="/~")
    return f"file://{path}" if path.startswith("/") else path


def _junit(findings: Iterable[Finding], files: Sequence[str]) -> Iterator[str]:
    """A test suite with a case for each file, and a failure for each error and warning in it; notes stand as text."""
    by_file = {name: list(some) for name, some in groupby(findings, key=lambda f: f.file)}
    failures = sum(f.level != "note" for some in by_file.values() for f in some)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites>\n<testsuite name="sssjob lint" tests="{len(files)}" failures="{failures}" errors="0">\n'
    for name in files:
        of_file = by_file.get(name, [])
        yield f'<testcase classname="sssjob.lint" name={quoteattr(escape(name, 4096))}'
        yield ">\n" if of_file else "/>\n"
        for f in of_file:
            if f.level != "note":
                yield (f'<failure type="{f.rule}" message={quoteattr(_message(f))}>'
                       f"{xml_escape(f'{_file(f)}:{f.line}:{f.column}: {f.consequence or f.level}')}</failure>\n")
        notes = "".join(f"{f.line}:{f.column}: {f.rule} {_message(f)}\n" for f in of_file if f.level == "note")
        yield f"<system-out>{xml_escape(notes)}</system-out>\n" if notes else ""
        yield "</testcase>\n" if of_file else ""
    yield "</testsuite>\n</testsuites>\n"


def _file(f: Finding) -> str:
    return escape(f.file, 4096) or "-"


#: Name -> pieces of text of all findings, in the order of files and lines; files: all that were looked at.
FORMS: Final[dict[str, Callable[[Iterable[Finding], Sequence[str]], Iterator[str]]]] = {
    "github": _github, "gitlab": _gitlab, "sarif": _sarif, "junit": _junit, "gcc": _gcc, "json": _json}
