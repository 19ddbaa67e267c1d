"""``sssjob lint``: what is wrong or doubtful in batch scripts for their own resource manager."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._complete import formats
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, record
from sssjob.cli._lint_files import Examined, Examining, Named, named
from sssjob.cli._lint_formats import FORMS
from sssjob.cli._options import Session, common, fail_on_option, output_option
from sssjob.cli._profiles import load_site, site_option
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Finding, escape
from sssjob.processes import Stopped, in_order, processes, stoppable

__all__ = ["command"]

_TEXT: Final = "text"
_SHOWN: Final = 5           # files that are left out and named, of each reason


@click.command("lint")
@click.argument("scripts", nargs=-1, required=True, metavar="SCRIPT|DIR...", shell_complete=file_names)
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
              help="Dialect of the scripts: slurm, pbspro ... (default: auto, the one that is recognised).")
@click.option("--select", multiple=True, metavar="RULES",
              help="Only these rules: SSS522,SSS53 (a beginning names all that begin so).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules; of both the longer name counts.")
@click.option("--format", "form", type=click.Choice([_TEXT, *FORMS]), default=_TEXT, metavar="FORM",
              help=f"How findings are printed: {_TEXT} (default, on standard error), {', '.join(FORMS)}.")
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
            form: str, fix: bool, skip_others: bool, exit_zero: bool, jobs: int | None, site_file: str | None,
            output: str) -> int:
    """Say what is wrong or doubtful in every SCRIPT (- is standard input), and in every script of the folder DIR, for
    its own resource manager.

    Exit status 1 when the submit command would refuse one of them, with --strict also for warnings.
    """
    from sssjob.translators.lint_choice import Choice

    once(scripts)
    if form == _TEXT and output != "-":
        raise UsageError("--output is for another --format than text")
    if session.as_json and form != _TEXT:
        raise UsageError("--json is for --format text; --format json is one array of all findings")
    if fix and "-" in scripts and form != _TEXT:
        raise UsageError("--fix of standard input writes the script to standard output, and leaves no room for "
                         f"--format {form}")
    how = Examining(source, session.policy, Choice.of(select, ignore), load_site(site_file)[0], fix)
    if source != AUTO:
        from sssjob.translators.lint import lint

        lint(source, b"")                   # an unknown format is told before any file is opened
    report = _LintReport(session, form)
    try:
        for result in _results(how, list(named(scripts, skip_others)), jobs):
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

    def __init__(self, session: Session, form: str) -> None:
        self.session, self.form = session, form
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
        if self.form == _TEXT:
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
        elif self.form == _TEXT and sys.stdout.isatty() and not (session.quiet or result.message or result.findings):
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
