"""``sssjob lint``: what is wrong or doubtful in batch scripts for their own resource manager."""

from __future__ import annotations

import json
import sys

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._complete import formats
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._options import Session, bounded, common

__all__ = ["command"]


@click.command("lint")
@click.argument("scripts", nargs=-1, required=True, metavar="SCRIPT...", shell_complete=file_names)
@click.option("-f", "--from", "source", default="auto", metavar="FORMAT", shell_complete=formats,
              help="Dialect of the scripts: slurm, pbspro ... (default: auto, the one that is recognised).")
@common
def command(session: Session, scripts: tuple[str, ...], source: str) -> int:
    """Say what is wrong or doubtful in every SCRIPT (- is standard input) for its own resource manager.

    Exit status 1 when the submit command would refuse one of them, with --strict also for warnings.
    """
    once(scripts)
    for name in scripts:
        errors, warnings, failures = session.errors, session.warnings, session.failures
        with session.tolerant(name):
            _lint(session, name, source)
        if session.as_json:
            emit(json.dumps({"type": "result", "file": name, "ok": session.errors == errors and session.failures
                             == failures, "errors": session.errors - errors,
                             "warnings": session.warnings - warnings}) + "\n")
        elif sys.stdout.isatty() and not session.quiet and (session.errors, session.warnings) == (errors, warnings):
            emit(f"{name}: nothing to say\n")
    return session.status()


def _lint(session: Session, name: str, source: str) -> None:
    from sssjob.translators.lint import lint

    with bounded(name):
        data = read_bytes(name)
        dialect = _dialect(data, name) if source == "auto" else source
        session.report(lint(dialect, data, name, session.policy))


def _dialect(data: bytes, name: str) -> str:
    """The dialect of a script by what stands in it; UsageError where none or several fit."""
    from sssjob.translators.recognise import guess, recognise

    fits = [t for t, _ in recognise(data, name) if t.kind == "script"]
    return (fits[0] if len(fits) == 1 else guess(data, name)[0]).name
