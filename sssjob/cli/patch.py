"""``sssjob patch``: what ``diff --json`` wrote is applied."""

from __future__ import annotations

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.findings import Findings

__all__ = ["command"]


@click.command("patch")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.argument("patch_file", metavar="PATCH", shell_complete=file_names)
@output_option
@common
@reading
def command(session: Session, file: str, patch_file: str, output: str) -> int:
    """Apply PATCH, which `sssjob diff --json A B` wrote, to FILE, and write the document that comes of it.

    FILE need not be A: an edit is applied where what it takes stands. Exit status 1: an edit does not fit, and nothing
    is written.
    """
    once([file, patch_file])
    from sssjob.conversion.patching import apply, read_patch
    from sssjob.xml.writer import write_document

    patch = read_patch(read_bytes(patch_file), patch_file)
    document = session.read(file, facts=True)
    if session.errors:
        return 1
    findings = Findings(patch_file)
    patched = apply(document, patch, findings)
    session.report([finding for finding in findings if not session.knows(finding)])
    if findings.rejected:
        return 1
    emit(write_document(patched, policy=session.policy), output)
    return session.status()
