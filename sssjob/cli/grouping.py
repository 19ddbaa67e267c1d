"""``sssjob split`` and ``merge``: each job of a group as a document of its own, and what is known of returned jobs back
in their group."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import Results, emit, file_name, once, write_file
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.errors import AccessError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.conversion.merging import Prefer

__all__ = ["commands"]


@click.command("split")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option("-d", "--directory", default=".", metavar="DIR",
              help="Where the documents go (default: here); it is made.")
@common
@reading
def split(session: Session, file: str, directory: str) -> int:
    """Write each job of FILE into DIR as a document of its own, named after its Id, and print the names.

    A job takes along what it inherits and the Files that it names. `sssjob merge` puts it back.
    """
    from sssjob.conversion.merging import split as parts_of
    from sssjob.xml.writer import write_document

    document = session.read(file, facts=True)
    if session.errors:
        return 1
    taken: dict[str, int] = {}
    results = Results()
    places = {os.path.join(directory, file_name(label, taken, ".xml")):
              (label, results.add(write_document(single, policy=session.policy)))
              for label, single in parts_of(document)}
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(directory), error.strerror or str(error)) from None
    for path, (label, place) in places.items():
        write_file(path, results.piece(place))
        emit(json.dumps({"type": "document", "id": label, "file": path}) + "\n" if session.as_json else
             f"{escape(path, 4096)}\n")
    return session.status()


@click.command("merge")
@click.argument("group", metavar="GROUP", shell_complete=file_names)
@click.argument("returned", nargs=-1, required=True, metavar="RETURNED...", shell_complete=file_names)
@click.option("--prefer", type=click.Choice(["group", "returned"]), metavar="SIDE",
              help="Whose word counts in a conflict: group or returned (default: a conflict is an error).")
@output_option
@common
@reading
def merge(session: Session, group: str, returned: tuple[str, ...], prefer: Prefer | None, output: str) -> int:
    """Put the facts of the jobs of RETURNED documents into GROUP, by Id, and write it.

    What the group does not say is added, the State of the job that has come further counts, and every other thing that
    both say differently is a conflict. Exit status 1: there is one, and nothing is written.
    """
    once([group, *returned])
    from sssjob.conversion.merging import merge as merge_into
    from sssjob.xml.writer import write_document

    document = session.read(group, facts=True)
    others = [session.read(name, facts=True) for name in returned]
    if session.errors:
        return 1
    findings = Findings(group)
    merge_into(document, others, findings, prefer=prefer or "none")
    session.report(findings)
    if findings.rejected:
        return 1
    emit(write_document(document, policy=session.policy), output)
    return session.status()


commands: Final = {"merge": merge, "split": split}
