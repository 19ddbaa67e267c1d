"""``sssjob lsp``: a language server for batch scripts, which an editor starts."""

from __future__ import annotations

import os
import sys

import click

from sssjob.cli._complete import formats
from sssjob.cli._options import Session, common
from sssjob.cli._profiles import load_site, site_option
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError

__all__ = ["command"]


@click.command("lsp")
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
              help="Dialect of the scripts: slurm, pbspro ... (default: auto, the one that is recognised).")
@click.option("--select", multiple=True, metavar="RULES",
              help="Only these rules: SSS522,SSS53 (a beginning names all that begin so).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules; of both the longer name counts.")
@site_option
@common
def command(session: Session, source: str, select: tuple[str, ...], ignore: tuple[str, ...],
            site_file: str | None) -> int:
    """Serve an editor over standard input and output (Language Server Protocol 3.17): what lint finds, what a directive
    means here and elsewhere, names of options, and the script for another manager. It needs the extra `lsp`."""
    from sssjob.translators.lint import lint
    from sssjob.translators.lint_choice import Choice

    if source != AUTO:
        lint(source, b"")       # refuses a format that is none of scripts
    choice, site = Choice.of(select, ignore), load_site(site_file)[0]
    try:
        from sssjob.cli._language_server import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError("a language server needs pygls: pip install 'sssjob[lsp]'") from None
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")      # which the server closes when its client leaves
    server(source, site, choice).start_io(sys.stdin.buffer, answers)
    return 0
