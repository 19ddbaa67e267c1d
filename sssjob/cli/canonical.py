"""``sssjob canonical``: the canonical form of documents, or its digest."""

from __future__ import annotations

import json

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once
from sssjob.cli._options import Session, common, reading
from sssjob.findings import escape

__all__ = ["command"]


@click.command("canonical")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
@click.option("--digest", "digests", is_flag=True,
              help="Print the SHA-256 of the form and the name of the file, as sha256sum does.")
@common
@reading
def command(session: Session, files: tuple[str, ...], digests: bool) -> int:
    """Write the canonical form of every FILE on a line of its own: the same text for documents that say the same.

    Names and values are those of 3.1.0, attributes are sorted, there is no white space between elements.
    """
    once(files)
    from sssjob.xml.canonical import canonical, digest

    for name in files:
        errors = session.errors
        with session.tolerant(name):
            document = session.read(name, facts=True)
            if session.errors == errors:
                emit(_digest(name, digest(document), session.as_json) if digests else canonical(document) + b"\n")
    return session.status()


def _digest(name: str, hexadecimal: str, as_json: bool) -> str:
    if as_json:
        return json.dumps({"type": "digest", "file": name, "sha256": hexadecimal}) + "\n"
    return f"{hexadecimal}  {escape(name)}\n"
