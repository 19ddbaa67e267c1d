"""``sssjob ask``: a query of SSSRMAP over documents, the journal or the ledger, or a request to a server."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, width
from sssjob.cli._ledger import opened_ledger, place
from sssjob.cli._options import Session, common, reading
from sssjob.cli._tables import table
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.xml.profiles import PROFILES

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.sssrmap import Request, Response
    from sssjob.sssrmap.calling import Signing
    from sssjob.sssrmap.things import Source

__all__ = ["command"]

_JOURNAL: Final = "journal"
_LEDGER: Final = "ledger"


@click.command("ask")
@click.argument("text", metavar="REQUEST")
@click.option("--at", "places", multiple=True, metavar="FILE|journal|ledger|URL", shell_complete=file_names,
              help="Where: documents (may repeat; - is standard input), the journal (default), the ledger, or the "
                   "server at sssrmap://HOST[:PORT] (also sssrmaps, http, https).")
@click.option("--format", "form", type=click.Choice(["table", "xml"]), default="table", metavar="FORM",
              help="How the answer is written: table (default) or xml, the Response of SSSRMAP.")
@click.option("--key", metavar="FILE", shell_complete=file_names,
              help="Sign the request to a server with the key in FILE, which the server has too.")
@click.option("--password", metavar="FILE", shell_complete=file_names,
              help="Sign it with the password in FILE, which the server has of the actor.")
@click.option("--signature", "method", type=click.Choice(["SHA256", "SHA1"]), metavar="HASH",
              help="How it is signed: SHA256 (default), or SHA1, the only one that Gold and Maui know.")
@click.option("--actor", metavar="NAME", help="Who asks (default: the user).")
@click.option("--data", metavar="FILE", shell_complete=file_names,
              help="Send the jobs of this document to the server, for Submit, Modify, Quote, Reserve and Charge.")
@click.option("--to-profile", type=click.Choice(list(PROFILES)), default="3.1", metavar="NAME",
              help="Whose names they have there: 3.1 (default), or gold for Gold and Maui.")
@click.option("--id", "identifier", metavar="ID",
              help="Names a request that changes something: with the same ID it is done once (default: a new one).")
@place
@common
@reading
def command(session: Session, text: str, places: tuple[str, ...], form: str, place: str | None, key: str | None,
            password: str | None, method: str | None, actor: str | None, data: str | None, to_profile: str,
            identifier: str | None) -> int:
    """Ask a query: 'Query Job Where State=Running Get Id,State'.

    The grammar is in docs/exchange.md. Jobs are asked as they count, with all defaults folded in. A server is asked
    with any action. Exit status 1: it cannot be answered.
    """
    from sssjob.sssrmap import SAFE
    from sssjob.sssrmap.answering import answer
    from sssjob.sssrmap.sentences import request_of
    from sssjob.users import user_name

    if session.as_json and form == "xml":
        raise UsageError("--json and --format xml exclude each other")
    request = request_of(text, actor or user_name())
    if any("://" in name for name in places):
        if len(places) > 1 or place is not None:
            raise UsageError("one server is asked, and nothing beside")
        signing = _signing(key, password, method)
        if data is not None:
            request = _with_jobs(session, request, data, to_profile)
        if request.action in SAFE:
            request = replace(request, id=identifier)
        else:
            request = replace(request, id=secrets.token_hex(16) if identifier is None else identifier)
        return _shown(session, request, _answered(session, request, places[0], signing), form)
    if (key, password, method, data, identifier) != (None,) * 5:
        raise UsageError("--key, --password, --signature, --data and --id are for requests to a server")
    with ExitStack() as stack:
        source = _source(session, places, place, stack, again=len(request.objects) > 1)
        response = answer(request, source, now=int(time.time()))
    return _shown(session, request, response, form)


def _with_jobs(session: Session, request: Request, name: str, profile: str) -> Request:
    """A request with the jobs of a document in its Data, and the Files that these name beside."""
    from sssjob.sssrmap import Data, File

    document = session.read(name)
    files = [File(file.id, file.text, encoded=file.encoded) for file in document.files.values()]
    return replace(request, parts=(*request.parts, Data.of(document, profile), *files))


def _signing(key: str | None, password: str | None, method: str | None) -> Signing | None:
    from sssjob.cli._secrets import read_secret
    from sssjob.sssrmap.calling import Signing

    if key is not None and password is not None:
        raise UsageError("--key and --password exclude each other")
    name = key if password is None else password
    if name is None:
        if method is not None:
            raise UsageError("--signature needs --key or --password")
        return None
    return Signing(read_secret(name), method or "SHA256", password is not None)


def _answered(session: Session, request: Request, url: str, signing: Signing | None) -> Response:
    """The whole answer of a server; what is not understood in it is told."""
    from sssjob.sssrmap import SAFE, MessageError, Response
    from sssjob.sssrmap.calling import joined, peer_of, responses

    findings = Findings(url)
    try:
        asked = replace(request, chunking=True) if request.action == "Query" else request
        return joined(responses(asked, peer_of(url), signing=signing, findings=findings))
    except MessageError as error:
        status = error.status
        if request.id is not None and request.action not in SAFE:
            status = replace(status, message=f"{status.message} (--id {request.id} asks for the same, once)")
        return Response((status,), request.actor)
    finally:
        session.report(findings)


def _source(session: Session, places: tuple[str, ...], ledger: str | None, stack: ExitStack, *, again: bool) -> Source:
    """Where it is asked. again: documents are asked for several kinds of objects."""
    from sssjob.sssrmap.sources import Documents, JournalSource, LedgerSource

    if places in ((), (_JOURNAL,)):
        from sssjob.run.journal import open_journal

        return JournalSource(stack.enter_context(open_journal()))
    if places == (_LEDGER,):
        return LedgerSource(stack.enter_context(opened_ledger(ledger, create=False)))
    once(places)

    def documents() -> Iterator[Document]:
        """The documents that ``--at`` names, one after another; what is wrong with one is reported."""
        for name in places:
            with session.tolerant(name):
                yield session.take(name).document

    if again:
        taken = list(documents())
        return Documents(lambda: taken)
    return Documents(documents)


def _shown(session: Session, request: Request, response: Response, form: str) -> int:
    """Print the answer; gives the exit status."""
    from sssjob.sssrmap import Envelope, write_message
    from sssjob.sssrmap.statuses import meaning_of

    status = response.status
    if form == "xml":
        emit(write_message(Envelope(response)) + "\n")
    elif status.succeeded:
        emit(_records(response) if session.as_json else _table(request, response))
    message = escape(status.message or meaning_of(status.code or ""), 1000)
    if not status.succeeded:
        problem(f"{status.code}: {message}", as_json=session.as_json, status=1)
        return 1
    if status.message or status.value == "Warning":
        problem(f"{status.code}: {message}", as_json=session.as_json)
    return session.status()


def _objects(response: Response) -> list[object]:
    """The objects of an answer as JSON."""
    from lxml import etree

    from sssjob.query._results import object_of

    data = response.data
    return [] if data is None else [object_of(child) or {}
                                    for child in etree.fromstring(f"<Data>{data.content}</Data>")]


def _records(response: Response) -> str:
    return "".join(json.dumps(obj) + "\n" for obj in _objects(response))


def _table(request: Request, response: Response) -> str:
    """A row an object, a column a property; below a property what stands in it, by path."""
    rows = [dict(_cells(obj)) for obj in _objects(response)]
    if not rows:
        return ""
    titles = list(dict.fromkeys(name for row in rows for name in row))
    lines = table([[row.get(name, "") for name in titles] for row in rows], titles, width(sys.stdout))
    return "\n".join([*lines, ""])


def _cells(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts of an object by path; several of the same path in one cell."""
    if not isinstance(value, dict):
        yield path, ",".join(map(str, value)) if isinstance(value, list) else str(value)
        return
    for name, inner in value.items():
        if name == "value":
            yield path, " ".join(filter(None, (str(inner), value.get("@units"))))
        elif not name.startswith("@"):
            below = f"{path}/{name}" if path else name
            if isinstance(inner, list) and not any(isinstance(member, dict) for member in inner):
                yield below, ",".join(map(str, inner))
            else:
                for number, member in enumerate(inner if isinstance(inner, list) else [inner], 1):
                    yield from _cells(member, f"{below}[{number}]" if isinstance(inner, list) else below)
