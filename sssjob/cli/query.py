"""``sssjob query``: an XPath expression over documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit, read_bytes
from sssjob.cli._options import Session, common
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.query import Result, Version

__all__ = ["command"]


@click.command("query")
@click.argument("expression", metavar="XPATH")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
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

    Names are those of release 3.1.0, in any spelling that the documents use.
    """
    given = _variables(variables)
    form = form or ("jsonl" if session.as_json else "xml")
    for name in files:
        with session.tolerant():
            for result in _results(expression, name, version, stream, given):
                emit(_written(result, form))
    return session.status()


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    made = {}
    for item in given:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError(f"--var {item!r}: not of the form NAME=VALUE")
        made[name] = value
    return made


def _results(expression: str, name: str, version: Version | None, stream: bool,
             variables: dict[str, str]) -> Iterator[Result]:
    from sssjob.query import query, query_stream

    if not stream:
        return query(expression, read_bytes(name), version=version, variables=variables, path=name)
    source = sys.stdin.buffer if name == "-" else Path(name)
    return query_stream(expression, source, version=version, variables=variables, path=name)


def _written(result: Result, form: str) -> str:
    if form == "jsonl":
        return json.dumps(result.record()) + "\n"
    return (result.xml() if form == "xml" else result.text()).rstrip("\n") + "\n"
