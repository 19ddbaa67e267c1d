"""``sssjob run``: run a document and write it back with its results."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sssjob.cli._app import status_of
from sssjob.cli._arguments import TakesArguments
from sssjob.cli._complete import files
from sssjob.cli._dry_run import dry_run_option, print_rehearsal
from sssjob.cli._files import emit
from sssjob.cli._findings import problem, record
from sssjob.cli._journal import hooks, submitted, submitting, tell_causes
from sssjob.cli._mjf import mjf_options
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._settings import executor_option, settings_of
from sssjob.errors import AccessError, RejectedError, SSSJobError
from sssjob.findings import Findings, Policy, escape
from sssjob.places import check_name

if TYPE_CHECKING:
    from sssjob.conversion.settings import Settings
    from sssjob.document.model import Document
    from sssjob.run import Outcome, Progress
    from sssjob.run.journal import Journal

__all__ = ["command"]


@click.command("run", cls=TakesArguments)
@click.argument("file", metavar="FILE", shell_complete=files)
@executor_option
@click.option("--timeout", type=MORE_THAN_NONE, metavar="SECONDS",
              help="Cancel everything after so many seconds; exit status 6.")
@click.option("--resume", is_flag=True, help="Do not run again what is Completed with exit code 0.")
@click.option("--no-job-code", is_flag=True, help="Exit status 0 once the jobs have ended, however they ended.")
@dry_run_option
@mjf_options
@submitting
@output_option
@common
@reading
def command(session: Session, file: str, executor: str | None, timeout: float | None, resume: bool, no_job_code: bool,
            dry_run: bool, retries: int | None, fail_fast: bool, max_queued: int | None, expand_arrays: bool,
            output: str, on_end: tuple[str, ...]) -> int:
    """Run the jobs of FILE (- is standard input) and write the document with what was delivered.

    The exit status is the job's own once it has ended (128 + n for signal n; for a group that of the first failure
    that no other job answered). With --json the last record on standard error says whose it is. What follows `--` are
    arguments of the script or program, as those of `sbatch job.sh a b`.
    """
    try:
        return _run(session, file, executor, timeout, resume, no_job_code, retries, fail_fast, max_queued,
                    expand_arrays, output, dry_run, on_end)
    except RejectedError as error:
        session.report(error.findings)
        return _own(session, 1)
    except BrokenPipeError:
        raise
    except (SSSJobError, OSError) as error:
        status, message = status_of(error)
        if message:
            problem(message, as_json=session.as_json, status=status)
        return _own(session, status)


def _run(session: Session, file: str, stated_executor: str | None, timeout: float | None, resume: bool,
         no_job_code: bool, retries: int | None, fail_fast: bool, max_queued: int | None, expand_arrays: bool,
         output: str, dry_run: bool, on_end: tuple[str, ...]) -> int:
    from sssjob.run.configuring import complete

    end_hooks = hooks(on_end)
    settings = settings_of(session, stated_executor)
    executor = str(settings.get("executor").value)
    document = submitted(session, file, executor, fail_fast, expand_arrays)
    if session.status():
        return _own(session, 1)
    if dry_run:
        return print_rehearsal(session, document, file, settings, resume)
    _writable(output)
    from sssjob.run import Progress
    from sssjob.xml.writer import write_document

    def planned(findings: Findings) -> bool:
        """Report what was found while planning; whether the jobs may be run."""
        session.report(findings, document)
        return session.status() == 0

    progress = Progress(shown=False if session.quiet or session.as_json else None)
    findings = Findings(file)
    complete(document, executor, settings, findings)
    outcome = _ran(document, executor, _journal(executor, session), findings=findings, progress=progress,
                   retries=retries, max_queued=max_queued, settings=settings, timeout=timeout, resume=resume,
                   policy=session.policy or Policy.REJECT, planned=planned, on_end=end_hooks,
                   site=None if session.site is None else session.site.name)
    session.report(outcome.findings, document)
    if not outcome.jobs and outcome.origin == "sssjob" and outcome.exit_code == 1:
        return _own(session, 1)
    if outcome.stopped:
        problem(f"{outcome.stopped}: {outcome.what_ended}", as_json=session.as_json, status=outcome.exit_code)
    _deliver(write_document(outcome.document, findings=Findings(file)), output)
    *jobs, last = outcome.results
    for result in jobs if session.as_json else ():
        record(result)
    if not session.as_json:
        tell_causes(outcome.jobs)
    if outcome.exit_code == 0 and session.status():
        return _own(session, 1)         # --strict
    if session.as_json:
        record(last)
    return 0 if no_job_code and outcome.origin == "job" else outcome.exit_code


def _journal(executor: str, session: Session) -> Journal | None:
    """The journal; jobs of this machine are run without one where there can be none, which is told."""
    from sssjob.run.journal import open_journal

    try:
        return open_journal()
    except AccessError as error:
        if executor.lower() != "local":
            raise
        if not session.quiet:
            problem(f"{error}; a run that is killed will leave no trace", as_json=session.as_json)
        return None


def _ran(document: Document, executor: str, journal: Journal | None, *, findings: Findings, progress: Progress,
         retries: int | None, max_queued: int | None, settings: Settings, site: str | None, **options: Any) -> Outcome:
    """Run a document, written down in the journal if there is one."""
    from sssjob.run import run
    from sssjob.run.client import Client
    from sssjob.run.submitting import RETRIES

    retries = RETRIES if retries is None else retries
    if journal is None:
        return run(document, executor, findings=findings, progress=progress, retries=retries, max_queued=max_queued,
                   site=site, **options)
    with journal:
        client = Client(journal, findings, progress, settings=settings, retries=retries, max_queued=max_queued,
                        site=site)
        return client.run(document, executor, **options)


def _deliver(text: str, output: str) -> None:
    """Write the document; where the file cannot take it, what was delivered goes to standard output all the same."""
    try:
        emit(text, output)
    except OSError:
        if output != "-":
            emit(text)
        raise


def _own(session: Session, code: int) -> int:
    if session.as_json:
        record({"kind": "result", "origin": "sssjob", "exit_code": code})
    return code


def _writable(output: str) -> None:
    """Refuse a place for the result that cannot be written before anything runs."""
    if output == "-":
        if _read_only(sys.stdout):
            raise AccessError("standard output", "is closed")
        return
    check_name(output)
    parent = Path(os.path.abspath(output)).parent
    if Path(output).is_dir():
        raise AccessError(escape(output), "is a directory")
    if not parent.is_dir():
        raise AccessError(escape(output), "no such directory")
    if not os.access(parent, os.W_OK):
        raise AccessError(escape(output), "directory not writable")


def _read_only(stream: IO[str]) -> bool:
    try:
        return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except (OSError, ValueError):       # no file (tests)
        return False
