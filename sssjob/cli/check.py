"""``sssjob check``: read documents and report what is wrong or doubtful."""

from __future__ import annotations

import json
import sys

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._options import Session, common, reading
from sssjob.conversion.intake import format_of
from sssjob.errors import UsageError
from sssjob.findings import escape

__all__ = ["command"]


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
@click.option("--schema", is_flag=True, help="Also validate against the XML schema of release 3.1.0.")
@common
@reading
def command(session: Session, files: tuple[str, ...], schema: bool) -> int:
    """Read every FILE (- is standard input), of any format, and report what is wrong or doubtful.

    A bad file does not keep the others from being checked. Exit status 1 when one has rejecting findings, 3 when one
    cannot be read.
    """
    once(files)
    for name in files:
        errors, warnings = session.errors, session.warnings
        unread = session.unread
        with session.tolerant(name):
            _check(session, name, schema)
        ok = session.errors == errors and session.unread == unread
        _summary(session, name, ok, session.errors - errors, session.warnings - warnings)
    return session.status()


def _check(session: Session, name: str, schema: bool) -> None:
    if not schema:
        with session.opened(name):
            return
    from sssjob.xml.schema import validate

    data = read_bytes(name)
    form = format_of(data, name, session.source)[0].name
    if form != "sss":
        shown = "JSON" if form == "sss-json" else form
        raise UsageError(f"{escape(name)} is {shown}; --schema is for XML (convert -f {form} -t sss makes it)")
    session.read(name, data)
    session.report(validate(data, path=name))


def _summary(session: Session, name: str, ok: bool, errors: int, warnings: int) -> None:
    if session.as_json:
        emit(json.dumps({"type": "result", "file": name, "ok": ok, "errors": errors, "warnings": warnings}) + "\n")
    elif sys.stdout.isatty() and not session.quiet:
        emit(f"{name}: {'ok' if ok else 'not accepted'}, {_count(errors, 'error')}, {_count(warnings, 'warning')}\n")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
