"""``submit --sites``: documents that are routed and submitted, to the next place where one refuses them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sssjob.cli._dry_run import print_rehearsal
from sssjob.cli._files import emit, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, lines, opened, stopped
from sssjob.cli._options import Session
from sssjob.cli._prices import money
from sssjob.cli._routing import Choice, Place, routed, settings_at, tell
from sssjob.errors import SSSJobError
from sssjob.findings import Findings, Policy

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.run.client import Client
    from sssjob.run.on_end import Hook
    from sssjob.run.routing import Candidate
    from sssjob.run.standing import Submission

#: Documents that are submitted together.
_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Terms:
    """How documents are submitted to one of several sites. starts: the managers are asked when they would start.
    patience: seconds that each may wait at a site, None for ever. token: what the user calls the request; of several
    files each has a number in it. hooks: what is done at the end of each job. shaped: gives a document, of a file of
    that name, as it is to be submitted."""

    starts: bool
    patience: float | None
    dry_run: bool
    retries: int | None
    max_queued: int | None
    token: str | None
    hooks: Sequence[Hook]
    shaped: Callable[[Document, str], Document]


def submit_routed(session: Session, files: Sequence[str], sites: str, offers: tuple[str, ...], terms: Terms) -> int:
    """Submit each document to the best of several sites; the exit status."""
    choice = Choice(session, sites, offers)
    worst = 0
    requests = [(file, terms.token if terms.token is None or len(files) == 1 else f"{terms.token} {number}")
                for number, file in enumerate(files, 1)]
    with opened(retries=terms.retries, max_queued=terms.max_queued) as client:
        if not terms.dry_run:
            client.take_steps()
            session.report(client.findings)
        for first in range(0, len(requests), _TOGETHER):
            worst = max(worst, _submit_some(session, client, requests[first:first + _TOGETHER], choice, terms))
            if client.stopped:
                break
    return worst


@dataclass(slots=True)
class _OnItsWay:
    """A document that has a route. errors: that were told of it; findings: what is to be told of its submission."""

    token: str
    errors: int
    findings: Findings


def _submit_some(session: Session, client: Client, requests: Sequence[tuple[str, str | None]], choice: Choice,
                 terms: Terms) -> int:
    """Submit some documents to the best place of each, those of one site together, or go on with the requests of these
    names; the exit status. Where one cannot be read those before it are submitted. requests: files and names."""
    from sssjob.run.routing import advance_all

    worst = 0
    failure: SSSJobError | None = None
    documents: list[_OnItsWay] = []
    for file, request in requests:
        session.errors = 0
        findings = Findings(file)
        try:
            token = _routed_now(session, client, file, choice, terms, request)
        except SSSJobError as error:
            failure = error
            break
        if isinstance(token, int):
            worst = max(worst, token)
        else:
            documents.append(_OnItsWay(token, session.errors, findings))
    client.findings = Findings()
    submissions = advance_all(client, [document.token for document in documents],
                              {document.token: document.findings for document in documents})
    session.report(client.findings)
    for document in documents:
        session.errors = document.errors
        session.report(document.findings)
        worst = max(worst, _told(session, client, document.token, submissions[document.token]))
    if failure is not None:
        raise failure
    return worst


def _routed_now(session: Session, client: Client, file: str, choice: Choice, terms: Terms, request: str | None
                ) -> str | int:
    """The token of the route of a document, which is in the journal; the exit status where there is none."""
    from sssjob.run.choosing import placed
    from sssjob.run.routing import Promise, begin, known, refusals

    data = read_bytes(file)
    promise = Promise(request, sha256(data).hexdigest(), tuple(hook.promise() for hook in terms.hooks))
    if (earlier := known(client.journal, promise)) is not None:
        return earlier.token
    routing = routed(session, file, data, choice, terms.starts, refusals(client.journal), terms.shaped)
    if routing is None:
        return session.status()
    if not routing.places:
        tell(session, routing, False)
        return 4 if routing.silent else 1
    if terms.dry_run:
        best = routing.places[0]
        return print_rehearsal(session, placed(best.wanted, best.queue), file, settings_at(best))
    return begin(client.journal, list(candidates(routing.places, choice)), policy=session.policy or Policy.REJECT,
                 directory=Path.cwd(), patience=terms.patience, promise=promise).token


def candidates(places: list[Place], choice: Choice) -> Iterator[Candidate]:
    """The places in which a document is tried, each queue of a site once. Raises UsageError for a site of which nobody
    knows who manages it."""
    from sssjob.run.routing import Candidate
    from sssjob.xml.writer import write_document

    seen = set()
    texts: dict[int, str] = {}          # by identity of the document, which several places share
    now = time.time()
    for rank, place in enumerate(places, 1):
        executor = choice.executor(place)
        if (place.site.name, place.queue) not in seen:
            seen.add((place.site.name, place.queue))
            if id(place.wanted) not in texts:
                texts[id(place.wanted)] = write_document(place.wanted, findings=Findings())
            yield Candidate(place.site.name, os.path.abspath(place.path), executor, place.queue,
                            texts[id(place.wanted)],
                            f"rank {rank} of {len(places)}, {', '.join(place.known(now))}",
                            tuple(None if price is None else money(price, place.currency) for price in place.prices))


def _told(session: Session, client: Client, token: str, submission: Submission | None) -> int:
    """Print the ids of a submission that was routed, and why it is not at the places before; the exit status."""
    from sssjob.run.routing import is_refused, state_of

    route = state_of(client.journal, token)
    entry = client.journal.requested(route.request)
    if entry is None and route.phase == "going":
        problem("it is in the journal, and the next client submits it", as_json=session.as_json, status=0)
        return stopped(client, 7)
    rows = [] if entry is None else client.journal.rows_of(entry.number)
    nowhere = all(map(is_refused, rows))
    for reason in route.reasons if nowhere or not session.quiet else ():
        problem(reason, as_json=session.as_json, status=0)
    if nowhere:
        problem("no site took it", as_json=session.as_json, status=5)
        return 5
    emit(lines([row.record() for row in rows]) if session.as_json
         else "".join(f"{client.journal.name_of(row)}\n" for row in rows))
    badly = 0 if submission is None else ended_badly([submission], session.as_json)
    return stopped(client, badly) or session.status()
