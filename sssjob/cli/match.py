"""``sssjob match``: whether an offer meets what a document requests."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._options import Session, common
from sssjob.errors import UsageError
from sssjob.findings import escape

__all__ = ["command"]


@click.command("match")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.argument("offer", metavar="OFFER", shell_complete=files)
@click.option("--explain", is_flag=True, help="Every condition with what was offered for it, met or not.")
@common
def command(session: Session, file: str, offer: str, explain: bool) -> int:
    """Say whether OFFER meets what FILE requests (one of them may be -).

    What is offered are the properties in Delivered, else the bare ones. Exit status 0: met, 1: not met, and why.
    """
    if file == offer == "-":
        raise UsageError("FILE and OFFER cannot both be standard input")
    from sssjob.request import match

    wanted, given = session.read(file), session.read(offer)
    if session.errors:
        return 1
    found = match(wanted, given)
    session.report(f if f.file else replace(f, file=file) for f in found.findings)
    if session.errors:
        return 1
    if session.as_json:
        record = {"type": "result", "met": found.met, "score": float(found.score),
                  "explanation": asdict(found.explanation)}
        emit(json.dumps(record) + "\n")
    else:
        emit("met\n" if found.met else "not met\n")
        if explain or not found.met:
            emit("".join(f"  {escape(line, 1000)}\n" for line in found.lines()))
    return 0 if found.met and not session.status() else 1
