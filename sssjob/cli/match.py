"""``sssjob match``: whether offers meet what a document requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once
from sssjob.cli._options import Session, common, reading
from sssjob.conversion.converting import AUTO
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.document.model import Container, Document
    from sssjob.request import Match

__all__ = ["Offered", "command", "offered"]


@click.command("match")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.argument("offers", metavar="OFFER...", nargs=-1, required=True, shell_complete=files)
@click.option("--explain", is_flag=True, help="Every condition with what was offered for it, met or not.")
@click.option("--all", "every", is_flag=True, help="Exit status 0 only if every offer meets (default: if one does).")
@click.option("--delivered", is_flag=True,
              help="OFFER is what a job got, to be held against the request to the letter (section 8.1).")
@common
@reading
def command(session: Session, file: str, offers: tuple[str, ...], explain: bool, every: bool, delivered: bool) -> int:
    """Say of every OFFER whether it meets what FILE requests (one of them may be -).

    What is offered are the properties in Delivered, else the bare ones; every job of a group is an offer. Exit status
    0: one of them meets, 1: none does, and why.
    """
    once([file, *offers])
    request = session.swept(session.read(file))
    if session.errors:
        return 1
    meeting = []
    for name in offers:
        errors = session.errors
        with session.tolerant(name):
            offer_document = session.swept(session.read(name, source=AUTO))
            for offer in offered(offer_document, name, len(offers) > 1) if session.errors == errors else ():
                answer = _verdict(request, offer.given, delivered)
                session.report([f if f.file else replace(f, file=file) for f in answer.findings
                                if not session.knows(f)])
                if not any(f.rejects for f in answer.findings):
                    _told(session, offer, answer, explain)
                    meeting.append(answer.met)
    enough = all(meeting) if every else any(meeting)
    return session.status() or (0 if meeting and enough else 1)


def _verdict(request: Document, offer: Document | Container, delivered: bool) -> Match:
    """The answer to one offer. delivered: it is held against the request as what came, not as what there is."""
    from sssjob.request import match

    return match(request, offer, delivered=delivered)


@dataclass(frozen=True, slots=True)
class Offered:
    """One offer. file: where it stands; job: which one of that file, empty where it holds but one; alone: there is no
    other."""

    file: str
    job: str
    given: Document | Container
    alone: bool

    def __str__(self) -> str:
        return f"{escape(self.file)}{f', {escape(self.job)}' if self.job else ''}"


def offered(document: Document, file: str, several: bool) -> Iterator[Offered]:
    """The offers of a document. several: there are other files."""
    from sssjob.request.offers import offered_by

    for name, body in offered_by(document):
        yield Offered(file, name, body, not (name or several))


def _told(session: Session, offer: Offered, answer: Match, explain: bool) -> None:
    """One verdict: a JSON object, or a line with the conditions that are not met below it (explain: with all)."""
    if session.as_json:
        emit(json.dumps(_record(offer, answer)) + "\n")
        return
    emit(f"{'' if offer.alone else f'{offer}: '}{'met' if answer.met else 'not met'}\n")
    if explain or not answer.met:
        lines = [line for line in answer.lines() if explain or offer.alone or not line.lstrip().startswith("+")]
        emit("".join(f"  {escape(line, 1000)}\n" for line in lines))


def _record(offer: Offered, answer: Match) -> dict[str, Any]:
    """A verdict as a JSON object."""
    job = {"job": offer.job} if offer.job else {}
    return {"type": "result", "offer": offer.file, **job, "met": answer.met, "score": float(answer.score),
            "explanation": asdict(answer.explanation)}
