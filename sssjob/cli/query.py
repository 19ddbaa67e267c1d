"""``sssjob query``: an XPath expression over documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._options import Session, common, pairs
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Finding, Findings

if TYPE_CHECKING:
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
             variables: dict[str, str]) -> Iterator[Result]:
    from sssjob.query import query, query_stream
    from sssjob.xmlio import is_json

    profile = session.profile
    if not stream:
        data = read_bytes(name)
        policy = session.policy
        if is_json(data):
            data, policy = _as_xml(session, name, data), None
        findings = Findings(name)
        found = query(expression, data, version=version, variables=variables, path=name, profile=profile,
                      findings=findings)
        _accept([] if policy is None else session.read(name, data).findings or ())
        session.report(findings if policy is None else ())
        return found
    source = sys.stdin.buffer if name == "-" else Path(name)
    if session.policy is not None:
        _accept(session.scan(name))
    return query_stream(expression, source, version=version, variables=variables, path=name, profile=profile)


def _as_xml(session: Session, name: str, data: bytes) -> bytes:
    """The document that a text in JSON stands for."""
    from sssjob.writer import write_document

    document = session.read(name, data)
    _accept([] if session.policy is None else document.findings or ())
    return write_document(document, findings=Findings(name)).encode()


def _accept(findings: Iterable[Finding]) -> None:
    """Stop before the first result of a document that --policy refuses."""
    told = list(findings)
    if any(f.rejects for f in told):
        raise RejectedError(told)


def _written(result: Result, form: str) -> str:
    if form == "jsonl":
        return json.dumps(result.record()) + "\n"
    return (result.xml() if form == "xml" else result.text()).rstrip("\n") + "\n"
