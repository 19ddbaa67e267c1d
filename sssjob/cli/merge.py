"""``sssjob merge``: what is known of returned jobs goes into their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.conversion.merging import Prefer

__all__ = ["command"]


@click.command("merge")
@click.argument("group", metavar="GROUP", shell_complete=file_names)
@click.argument("returned", nargs=-1, required=True, metavar="RETURNED...", shell_complete=file_names)
@click.option("--prefer", type=click.Choice(["group", "returned"]), metavar="SIDE",
              help="Whose word counts in a conflict: group or returned (default: a conflict is an error).")
@output_option
@common
@reading
def command(session: Session, group: str, returned: tuple[str, ...], prefer: Prefer | None, output: str) -> int:
    """Put the facts of the jobs of RETURNED documents into GROUP, by Id, and write it.

    What the group does not say is added, the State of the job that has come further counts, and every other thing that
    both say differently is a conflict. Exit status 1: there is one, and nothing is written.
    """
    once([group, *returned])
    from sssjob.conversion.merging import merge
    from sssjob.xml.writer import write_document

    document = session.read(group, facts=True)
    others = [session.read(name, facts=True) for name in returned]
    if session.errors:
        return 1
    findings = Findings(group)
    merge(document, others, findings, prefer=prefer or "none")
    session.report(findings)
    if findings.rejected:
        return 1
    emit(write_document(document, policy=session.policy), output)
    return session.status()
