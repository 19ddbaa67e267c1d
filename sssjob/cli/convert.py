"""``sssjob convert``: a document in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit, file_name, read_bytes, write_file
from sssjob.cli._options import Session, common, output_option
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape
from sssjob.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sssjob.model import Document
    from sssjob.translators.base import Translator

__all__ = ["command"]


@click.command("convert")
@click.argument("file", metavar="[FILE]", default="-")
@click.option("-f", "--from", "source", required=True, metavar="FORMAT", help="Format of FILE: sss, sss-json, psij.")
@click.option("-t", "--to", "target", required=True, metavar="FORMAT", help="Format to write.")
@click.option("--to-profile", type=click.Choice(list(PROFILES)), default="3.1", metavar="NAME",
              help="Names to write sss with (default: 3.1).")
@click.option("--out", "directory", metavar="DIR", help="One file a job in DIR, named by Id, else Name.")
@output_option
@common
def command(session: Session, file: str, source: str, target: str, to_profile: str, directory: str | None,
            output: str) -> int:
    """Write FILE (default and -: standard input) in another format.

    What does not carry over is reported; where the policy is to reject it, nothing is written.
    """
    if directory is not None and output != "-":
        raise UsageError("--out and --output exclude each other")
    from sssjob.translators.base import ReadContext
    from sssjob.translators.registry import get

    reader, writer = get(source), get(target)
    context = ReadContext(file, Findings(file), session.profile, session.policy)
    document = reader.read(read_bytes(file), context)
    session.report(context.findings)
    if session.errors:
        return 1
    if directory is not None:
        return _each(session, writer, document, to_profile, directory)
    text = _text(session, writer, document, to_profile)
    if session.errors:
        return 1
    emit(text, output)
    return session.status()


def _text(session: Session, writer: Translator, document: Document, profile: str) -> str:
    from sssjob.translators.base import WriteContext

    context = WriteContext(Findings(document.path), profile, session.policy)
    text = writer.write(document, context)
    session.report(context.findings)
    return text if text.endswith("\n") else text + "\n"


def _each(session: Session, writer: Translator, document: Document, profile: str, directory: str) -> int:
    """All jobs are translated before the first file is written: under Reject there is none."""
    taken: set[str] = set()
    suffix = writer.suffixes[0] if writer.suffixes else ".txt"
    made = [(file_name(name, taken, suffix), _text(session, writer, single, profile))
            for name, single in _singles(document)]
    if session.errors:
        return 1
    try:
        Path(directory).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(directory), error.strerror or str(error)) from None
    for name, text in made:
        write_file(str(Path(directory) / name), text.encode("utf-8"))
        emit(f"{Path(directory) / name}\n")
    return session.status()


def _singles(document: Document) -> Iterator[tuple[str, Document]]:
    """(name, document) of every job, defaults folded in."""
    from sssjob.inherit import effective
    from sssjob.model import Document

    for number, (job, defaults) in enumerate(document.jobs(), 1):
        name = job.value("Id") or job.value("Name") or f"job-{number}"
        whole = job if defaults is None else effective(job, defaults).fold()
        yield str(name), Document(whole, document.files, document.path, document.profile)
