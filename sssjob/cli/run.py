"""``sssjob run``: run a document and write it back with its results."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import record
from sssjob.cli._options import Session, common, output_option
from sssjob.errors import AccessError
from sssjob.findings import Findings, Policy, escape

__all__ = ["command"]


@click.command("run")
@click.argument("file", metavar="FILE")
@click.option("--executor", default="local", metavar="NAME", help="What to run with; see `executors` (default: local).")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Cancel everything after so many seconds; exit status 6.")
@click.option("--resume", is_flag=True, help="Do not run again what is Completed with exit code 0.")
@click.option("--no-job-code", is_flag=True, help="Exit status 0 once the jobs have ended, however they ended.")
@output_option
@common
def command(session: Session, file: str, executor: str, timeout: float | None, resume: bool, no_job_code: bool,
            output: str) -> int:
    """Run the jobs of FILE (- is standard input) and write the document with what was delivered.

    The exit status is the job's own once it has ended (128 + n for signal n; for a group that of the first failure
    that no other job answered). With --json the last record on standard error says whose it is.
    """
    document = session.read(file)
    if session.errors:
        return _own(session, 1)
    _writable(output)
    from sssjob.run import Progress, run
    from sssjob.writer import write_document

    progress = Progress(shown=False if session.quiet or session.as_json else None)
    outcome = run(document, executor, findings=Findings(file), progress=progress, timeout=timeout, resume=resume,
                  policy=session.policy or Policy.REJECT)
    session.report(outcome.findings)
    if not outcome.jobs and outcome.origin == "sssjob" and outcome.exit_code == 1:
        return _own(session, 1)
    emit(write_document(outcome.document, findings=Findings(file)), output)
    if session.as_json:
        for result in outcome.results:
            record(result)
    return 0 if no_job_code and outcome.origin == "job" else outcome.exit_code


def _own(session: Session, code: int) -> int:
    if session.as_json:
        record({"kind": "result", "origin": "sssjob", "exit_code": code})
    return code


def _writable(output: str) -> None:
    """Refuse a result file that cannot be written before anything runs."""
    if output == "-":
        return
    parent = Path(os.path.abspath(output)).parent
    if Path(output).is_dir():
        raise AccessError(escape(output), "is a directory")
    if not parent.is_dir():
        raise AccessError(escape(output), "no such directory")
    if not os.access(parent, os.W_OK):
        raise AccessError(escape(output), "directory not writable")
