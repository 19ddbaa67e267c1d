"""``sssjob query``: an XPath expression over documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes, standard_input
from sssjob.cli._options import Session, common, pairs, reading
from sssjob.conversion.converting import AUTO
from sssjob.conversion.intake import format_of
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.query import Result, Version

__all__ = ["command"]


@click.command("query")
@click.argument("expression", metavar="XPATH")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
@click.option("--xpath", "version", type=click.Choice(["1.0", "3.1"]), metavar="VERSION",
              help="Version of XPath: 1.0 or 3.1 (default: what the expression needs).")
@click.option("--stream", is_flag=True, help="Job by job, in bounded memory, for groups of any size.")
@click.option("--effective", is_flag=True, help="Each job as it counts: with all defaults folded in.")
@click.option("--format", "form", type=click.Choice(["xml", "text", "jsonl"]), metavar="FORM",
              help="How results are written: xml, text or jsonl (default: xml; jsonl with --json).")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the expression: $NAME.")
@common
@reading
def command(session: Session, expression: str, files: tuple[str, ...], version: Version | None, stream: bool,
            effective: bool, form: str | None, variables: tuple[str, ...]) -> int:
    """Evaluate XPATH over every FILE (- is standard input) and write the results, one after another.

    Names are those of release 3.1.0, in any spelling that the documents use (but with --profile 3.1). Documents are
    taken as they stand; with --policy they are read first, and one that is refused gives no results.
    sss:bytes(NODE), sss:seconds(NODE) and sss:nodes(NODE) are the amounts of nodes as numbers.
    """
    once(files)
    if stream and session.policy is not None and "-" in files:
        raise UsageError("--stream with --policy reads twice; standard input (-) can be read only once")
    asked = _Question(expression, version, stream, effective, pairs(variables, "--var"))
    form = form or ("jsonl" if session.as_json else "xml")
    for name in files:
        with session.tolerant(name):
            for result in _results(session, asked, name):
                emit(_written(result, form))
    return session.status()


class _Question(NamedTuple):
    expression: str
    version: Version | None
    stream: bool
    effective: bool
    variables: dict[str, str]


def _results(session: Session, asked: _Question, name: str) -> Iterator[Result]:
    if asked.stream:
        yield from _streamed(session, asked, name)
        return
    from sssjob.query import query

    data = read_bytes(name)
    ours = format_of(data, name, session.source)[0].name == "sss" and session.site is None
    findings = Findings(name)
    if asked.effective or not ours:
        results = query(asked.expression, _read(session, name, data), version=asked.version,
                        variables=asked.variables, path=name, profile=session.profile, effective=asked.effective)
    else:
        results = query(asked.expression, data, version=asked.version, variables=asked.variables, path=name,
                        profile=session.profile, findings=findings)
        if session.policy is None:
            session.report(findings)
        else:
            _read(session, name, data)
    yield from results


def _streamed(session: Session, asked: _Question, name: str) -> Iterator[Result]:
    """The same job by job, of a document in XML."""
    from sssjob.query import query_stream

    if session.source not in (AUTO, "sss") or session.site is not None:
        raise UsageError("--stream is for documents in XML as they stand, without --from and --site")
    if session.policy is not None:
        session.scan(name).raise_if_rejected()
    source = standard_input() if name == "-" else Path(name)
    findings = Findings(name)
    yield from query_stream(asked.expression, source, version=asked.version, variables=asked.variables, path=name,
                            profile=session.profile, effective=asked.effective, policy=session.policy,
                            findings=findings)
    session.report(findings if asked.effective and session.policy is None else ())


def _read(session: Session, name: str, data: bytes) -> Document:
    """The document of a text. Raises RejectedError under --policy for one that is refused: it gives no results."""
    before = session.errors
    document = session.take(name, data).document if session.policy is None else session.read(name, data)
    if session.policy is not None and session.errors > before:
        raise RejectedError([])
    return document


def _written(result: Result, form: str) -> str:
    if form == "jsonl":
        return json.dumps(result.record()) + "\n"
    return (result.xml() if form == "xml" else result.text()).rstrip("\n") + "\n"
