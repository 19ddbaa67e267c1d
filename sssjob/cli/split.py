"""``sssjob split``: each job of a group as a document of its own."""

from __future__ import annotations

import json
import os

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, file_name, write_file
from sssjob.cli._options import Session, common, reading
from sssjob.errors import AccessError
from sssjob.findings import escape

__all__ = ["command"]


@click.command("split")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option("-d", "--directory", default=".", metavar="DIR",
              help="Where the documents go (default: here); it is made.")
@common
@reading
def command(session: Session, file: str, directory: str) -> int:
    """Write each job of FILE into DIR as a document of its own, named after its Id, and print the names.

    A job takes along what it inherits and the Files that it names. `sssjob merge` puts it back.
    """
    from sssjob.conversion.merging import split
    from sssjob.xml.writer import write_document

    document = session.read(file, facts=True)
    if session.errors:
        return 1
    taken: set[str] = set()
    texts = {os.path.join(directory, file_name(label, taken, ".xml")):
             (label, write_document(single, policy=session.policy).encode()) for label, single in split(document)}
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(directory), error.strerror or str(error)) from None
    for path, (label, octets) in texts.items():
        write_file(path, octets)
        emit(json.dumps({"type": "document", "id": label, "file": path}) + "\n" if session.as_json else
             f"{escape(path, 4096)}\n")
    return session.status()
