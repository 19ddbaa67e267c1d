"""``sssjob sign``: a detached signature of a document."""

from __future__ import annotations

import json
import time

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.cli._secrets import read_secret

__all__ = ["command"]


@click.command("sign")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option("--key", metavar="FILE", required=True, shell_complete=file_names,
              help="The key, which who verifies has too; readable by its owner only.")
@click.option("--signer", metavar="NAME", help="Who signs (default: the user).")
@output_option
@common
@reading
def command(session: Session, file: str, key: str, signer: str | None, output: str) -> int:
    """Write a signature of what FILE says, to be kept beside it: `sssjob verify` holds a document against it."""
    from sssjob.users import user_name
    from sssjob.xml.signature import sign_document

    secret = read_secret(key)
    document = session.read(file, facts=True)
    if session.errors:
        return 1
    signature = sign_document(document, secret, signer=user_name() if signer is None else signer, time=int(time.time()))
    emit(json.dumps(signature.record()) + "\n", output)
    return session.status()
