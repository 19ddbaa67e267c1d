"""``sssjob verify``: whether a document says what was signed."""

from __future__ import annotations

import json
import time
from typing import Final

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._journal import instant
from sssjob.cli._options import Session, common, reading
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._secrets import read_secret
from sssjob.findings import escape

__all__ = ["command"]

_SKEW_S: Final = 60.0       # that clocks of two machines may differ by


@click.command("verify")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.argument("signature_file", metavar="SIGNATURE", shell_complete=file_names)
@click.option("--key", metavar="FILE", required=True, shell_complete=file_names,
              help="The key that it was signed with.")
@click.option("--signer", metavar="NAME", help="Who has to have signed it (default: anyone with the key).")
@click.option("--max-age", type=MORE_THAN_NONE, metavar="SECONDS", help="The longest ago that it may have been signed.")
@common
@reading
def command(session: Session, file: str, signature_file: str, key: str, signer: str | None, max_age: float | None
            ) -> int:
    """Say who signed what FILE says, and when. Exit status 1: it was not signed with this key, or not as the options
    ask.

    FILE may be written otherwise than what was signed, in any format, as long as it says the same.
    """
    from sssjob.xml.signature import SignatureError, read_signature, verify_document

    once([file, signature_file])
    secret = read_secret(key)
    signature = read_signature(read_bytes(signature_file), escape(signature_file))
    document = session.read(file, facts=True)
    if session.errors:
        return 1
    try:
        verify_document(document, signature, secret)
        if signer is not None and signature.signer != signer:
            raise SignatureError(f"it was signed by {escape(signature.signer, 60)}, not by {escape(signer, 60)}")
        age = time.time() - signature.time
        if max_age is not None and not -_SKEW_S <= age <= max_age:
            raise SignatureError(f"it was signed at {instant(signature.time)} UTC, which is not within --max-age")
    except SignatureError as error:
        problem(f"{escape(file)}: {error}", as_json=session.as_json, status=1)
        return 1
    if session.as_json:
        emit(json.dumps({"type": "result", "file": file, "signer": signature.signer, "time": signature.time}) + "\n")
    else:
        emit(f"{escape(file)}: signed by {escape(signature.signer, 200)} at {instant(signature.time)} UTC\n")
    return session.status()
