"""``sssjob query``: an XPath expression over documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._options import Session, common, pairs, reading
from sssjob.conversion import AUTO
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.model import Document
    from sssjob.query import Result, Version

__all__ = ["command"]


@click.command("query")
@click.argument("expression", metavar="XPATH")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
@click.option("--xpath", "version", type=click.Choice(["1.0", "3.1"]), metavar="VERSION",
              help="Version of XPath: 1.0 or 3.1 (default: what the expression needs).")
@click.option("--stream", is_flag=True, help="Job by job, in bounded memory, for groups of any size.")
@click.option("--format", "form", type=click.Choice(["xml", "text", "jsonl"]), metavar="FORM",
              help="How results are written: xml, text or jsonl (default: xml; jsonl with --json).")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the expression: $NAME.")
@common
@reading
def command(session: Session, expression: str, files: tuple[str, ...], version: Version | None, stream: bool,
            form: str | None, variables: tuple[str, ...]) -> int:
    """Evaluate XPATH over every FILE (- is standard input) and write the results, one after another.

    Names are those of release 3.1.0, in any spelling that the documents use (but with --profile 3.1). Documents are
    taken as they stand; with --policy they are read first, and one that is refused gives no results.
    """
    once(files)
    if stream and session.policy is not None and "-" in files:
        raise UsageError("--stream with --policy reads twice; standard input (-) can be read only once")
    given = pairs(variables, "--var")
    form = form or ("jsonl" if session.as_json else "xml")
    for name in files:
        with session.tolerant(name):
            for result in _results(session, expression, name, version, stream, given):
                emit(_written(result, form))
    return session.status()


def _results(session: Session, expression: str, name: str, version: Version | None, stream: bool,
             variables: dict[str, str]) -> Iterable[Result]:
    if stream:
        return _streamed(session, expression, name, version, variables)
    from sssjob.intake import format_of
    from sssjob.query import query

    data = read_bytes(name)
    ours = format_of(data, name, session.source)[0].name == "sss" and session.site is None
    document = None if ours else _read(session, name, data)
    findings = Findings(name)
    found = query(expression, data if document is None else _as_xml(document), version=version, variables=variables,
                  path=name, profile=session.profile, findings=findings)
    if not ours:
        return found
    if session.policy is None:
        session.report(findings)
    else:
        _read(session, name, data)
    return found


def _streamed(session: Session, expression: str, name: str, version: Version | None, variables: dict[str, str]
              ) -> Iterable[Result]:
    """The same job by job, of a document in XML."""
    from sssjob.query import query_stream

    if session.source not in (AUTO, "sss") or session.site is not None:
        raise UsageError("--stream is for documents in XML as they stand, without --from and --site")
    if session.policy is not None:
        session.scan(name).raise_if_rejected()
    source = sys.stdin.buffer if name == "-" else Path(name)
    return query_stream(expression, source, version=version, variables=variables, path=name, profile=session.profile)


def _read(session: Session, name: str, data: bytes) -> Document:
    """The document of a text. Raises RejectedError under --policy for one that is refused: it gives no results."""
    before = session.errors
    document = session.take(name, data).document if session.policy is None else session.read(name, data)
    if session.policy is not None and session.errors > before:
        raise RejectedError([])
    return document


def _as_xml(document: Document) -> bytes:
    """The text of a document that was read from another format."""
    from sssjob.writer import write_document

    return write_document(document, findings=Findings(document.path)).encode()


def _written(result: Result, form: str) -> str:
    if form == "jsonl":
        return json.dumps(result.record()) + "\n"
    return (result.xml() if form == "xml" else result.text()).rstrip("\n") + "\n"
