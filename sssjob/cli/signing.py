"""``sssjob canonical``, ``sign`` and ``verify``: the canonical form of documents or its digest, a detached signature of
one, and whether a document says what was signed."""

from __future__ import annotations

import json
import time
from typing import Final

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._secrets import read_secret
from sssjob.findings import escape

__all__ = ["commands"]

_SKEW_S: Final = 60.0       # that clocks of two machines may differ by


@click.command("canonical")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
@click.option("--digest", "digests", is_flag=True,
              help="Print the SHA-256 of the form and the name of the file, as sha256sum does.")
@common
@reading
def canonical_(session: Session, files: tuple[str, ...], digests: bool) -> int:
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


@click.command("sign")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option("--key", metavar="FILE", required=True, shell_complete=file_names,
              help="The key, which who verifies has too; readable by its owner only.")
@click.option("--signer", metavar="NAME", help="Who signs (default: the user).")
@output_option
@common
@reading
def sign(session: Session, file: str, key: str, signer: str | None, output: str) -> int:
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


@click.command("verify")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.argument("signature_file", metavar="SIGNATURE", shell_complete=file_names)
@click.option("--key", metavar="FILE", required=True, shell_complete=file_names,
              help="The key that it was signed with.")
@click.option("--signer", metavar="NAME", help="Who has to have signed it (default: anyone with the key).")
@click.option("--max-age", type=MORE_THAN_NONE, metavar="SECONDS", help="The longest ago that it may have been signed.")
@common
@reading
def verify(session: Session, file: str, signature_file: str, key: str, signer: str | None, max_age: float | None
           ) -> int:
    """Say who signed what FILE says, and when. Exit status 1: it was not signed with this key, or not as the options
    ask.

    FILE may be written otherwise than what was signed, in any format, as long as it says the same.
    """
    from sssjob.cli._journal import instant
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


commands: Final = {"canonical": canonical_, "sign": sign, "verify": verify}
