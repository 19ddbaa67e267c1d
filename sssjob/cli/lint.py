"""``sssjob lint``: what is wrong or doubtful in batch scripts for their own resource manager.

A form of findings that other programs read (problem matchers, code review, dashboards) is a function from findings to
pieces of text, a row of ``FORMS``. None of them repeats source lines, so that no secret of a script gets into a report.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._complete import formats
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, record
from sssjob.cli._lint_causes import FolderCauses
from sssjob.cli._lint_files import Examined, Examining, Named, named
from sssjob.cli._options import Session, common, fail_on_option, output_option
from sssjob.cli._profiles import load_site, site_option
from sssjob.consequences import worst_first
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Finding, escape
from sssjob.processes import Stopped, in_order, processes, stoppable
from sssjob.rules import RULES
from sssjob.translators.lint_choice import Choice
from sssjob.version import __version__

__all__ = ["command"]


_TEXT: Final = "text"
_SHOWN: Final = 5           # files that are left out and named, of each reason


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


@click.command("lint")
@click.argument("scripts", nargs=-1, required=True, metavar="SCRIPT|DIR...", shell_complete=file_names)
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
              help="Dialect of the scripts: slurm, pbspro ... (default: auto, the one that is recognised).")
@click.option("--select", multiple=True, metavar="RULES",
              help="Only these rules: SSS522,SSS53 (a beginning names all that begin so).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules; of both the longer name counts.")
@click.option("--format", "form", type=click.Choice([_TEXT, *FORMS]), default=_TEXT, metavar="FORM",
              help=f"How findings are printed: {_TEXT} (default, on standard error), {', '.join(FORMS)}.")
@click.option("--each", is_flag=True, help="Show every finding of a folder at its place, not each cause once.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without a doubt, in the files.")
@click.option("--skip-others", is_flag=True,
              help="Leave out files that are no scripts, as in folders (for hooks that name every changed file).")
@click.option("--exit-zero", is_flag=True, help="Exit status 0 whatever is found in scripts.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes (default: cores).")
@site_option
@output_option
@common
@fail_on_option
def command(session: Session, scripts: tuple[str, ...], source: str, select: tuple[str, ...], ignore: tuple[str, ...],
            form: str, each: bool, fix: bool, skip_others: bool, exit_zero: bool, jobs: int | None,
            site_file: str | None, output: str) -> int:
    """Say what is wrong or doubtful in every SCRIPT (- is standard input), and in every script of the folder DIR, for
    its own resource manager.

    Exit status 1 when the submit command would refuse one of them, with --strict also for warnings.
    """
    once(scripts)
    if form == _TEXT and output != "-":
        raise UsageError("--output is for another --format than text")
    if session.as_json and form != _TEXT:
        raise UsageError("--json is for --format text; --format json is one array of all findings")
    if each and form != _TEXT:
        raise UsageError(f"--each is for --format text; {form} has every finding")
    if fix and "-" in scripts and form != _TEXT:
        raise UsageError("--fix of standard input writes the script to standard output, and leaves no room for "
                         f"--format {form}")
    how = Examining(source, session.policy, Choice.of(select, ignore), load_site(site_file)[0], fix)
    if source != AUTO:
        from sssjob.translators.lint import lint

        lint(source, b"")                   # an unknown format is told before any file is opened
    files = list(named(scripts, skip_others))
    folders = not each and any(not file.given for file in files) and not skip_others
    report = _LintReport(session, form, FolderCauses(session) if folders and not session.as_json else None)
    try:
        for result in _results(how, files, jobs):
            if result.usage:
                raise UsageError(result.message)
            report.add(result)
    except Stopped as error:
        problem(f"ended by {error}", as_json=session.as_json, status=error.status)
        return error.status
    report.end(output)
    return 0 if exit_zero and not (session.failures or session.unknown) else session.status()


def _results(how: Examining, files: Sequence[Named], jobs: int | None) -> Iterator[Examined]:
    """What came of each file, in order; standard input is read in this process."""
    with stoppable() as stops:
        number = 1 if any(file.name == "-" for file in files) else processes(jobs, len(files))
        yield from in_order(how.examined, _died, files, number, stops)


def _died(file: Named) -> Examined:
    return Examined(file.name, "failed", message="the process that looked at it died")


class _LintReport:
    """What is printed while files are looked at, and at the end."""

    def __init__(self, session: Session, form: str, causes: FolderCauses | None) -> None:
        self.session, self.form, self.causes = session, form, causes
        self.findings: list[Finding] = []
        self.files: list[str] = []
        self.left: dict[str, list[str]] = {}            # why -> the first files that are left out for it
        self.counts: Counter[str] = Counter()

    def add(self, result: Examined) -> None:
        """One file. A script has a result, a file of a folder that is none only counts."""
        session = self.session
        errors, warnings, failures = session.errors, session.warnings, session.failures
        if result.outcome == "skipped":
            self._skipped(result)
            return
        self.files.append(result.name)
        if self.form == _TEXT and self.causes is not None:
            self.causes.add(result.findings)
        elif self.form == _TEXT:
            session.report_once(result.findings)
        else:
            self._collect(result.findings)
        if result.overflow:
            problem(f"{result.name}: {result.overflow} more findings are not shown", as_json=session.as_json)
        if result.message:
            self._problem(result)
        if result.text is not None:
            emit(result.text)
        if result.mended and not session.quiet:
            self._mended(result)
        if session.as_json:
            emit(json.dumps({"type": "result", "file": result.name, "ok": session.errors == errors
                             and session.failures == failures, "errors": session.errors - errors,
                             "warnings": session.warnings - warnings}) + "\n")
        elif self.form == _TEXT and not (session.quiet or result.message or result.findings) and sys.stdout.isatty():
            emit(f"{result.name}: nothing to say\n")

    def _collect(self, findings: Sequence[Finding]) -> None:
        session = self.session
        counted = [(f, session.count(f)) for f in findings]
        self.findings += [f for f, counts in counted if counts or not session.quiet]

    def _problem(self, result: Examined) -> None:
        session = self.session
        status = {"doubtful": 2, "rejected": 1}.get(result.outcome, 3)
        session.unknown += status == 2
        session.errors += status == 1
        session.failures += status == 3
        shown = escape(result.name)
        message = result.message if result.message.startswith(shown) else f"{shown}: {result.message}"
        problem(message, as_json=session.as_json, status=status)

    def _mended(self, result: Examined) -> None:
        if self.session.as_json:
            record({"type": "mended", "file": result.name, "findings": result.mended})
        else:
            problem(f"{result.name}: {result.mended} mended")

    def _skipped(self, result: Examined) -> None:
        self.counts[result.message] += 1
        some = self.left.setdefault(result.message, [])
        if len(some) < _SHOWN:
            some.append(result.name)
        if self.session.as_json:
            record({"type": "skipped", "file": result.name, "message": result.message})

    def end(self, output: str) -> None:
        """The report, and what was left out of folders: each reason with its count and some names."""
        if self.causes is not None:
            self.causes.end()
        if self.form != _TEXT:
            emit("".join(FORMS[self.form](self.findings, self.files)), output)
        if self.session.quiet or self.session.as_json:
            return
        if not self.files:
            problem("no script is there to look at")
        for why, count in sorted(self.counts.items()):
            more = ", ..." if count > _SHOWN else ""
            names = ", ".join(map(escape, self.left[why]))
            problem(f"{count} {'file' if count == 1 else 'files'} left out, {why}: {names}{more}")
