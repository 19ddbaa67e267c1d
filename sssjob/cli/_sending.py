"""``submit --sites``: documents that are routed and submitted, to the next place where one refuses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sssjob.cli._dry_run import backend_of, plan_of
from sssjob.cli._files import emit, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, lines, opened, stopped
from sssjob.cli._options import Session
from sssjob.cli._place import Place
from sssjob.cli._prices import money
from sssjob.cli._routing import Choice, Routing, rehearsed, routed, settings_at, tell
from sssjob.document.arrays import label_of
from sssjob.errors import SSSJobError
from sssjob.findings import Findings, Policy, escape

if TYPE_CHECKING:
    from psij import JobExecutor
    from sssjob.conversion.settings import Settings
    from sssjob.document.model import Document
    from sssjob.run.client import Client
    from sssjob.run.on_end import Hook
    from sssjob.run.routing import Candidate, Promise, Route
    from sssjob.run.rows import Row
    from sssjob.run.standing import Submission

#: Documents that are submitted together.
_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Terms:
    """How documents are submitted to one of several sites. starts: the managers are asked when they would start.
    patience: seconds that each may wait at a site, None for ever. together: a group is not taken apart. token: what the
    user calls the request; of several files each has a number in it. hooks: what is done at the end of each job.
    shaped: gives a document, of a file of that name, as it is to be submitted."""

    starts: bool
    patience: float | None
    together: bool
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


@dataclass(frozen=True, slots=True)
class _Routed:
    """A document for which there are places. parts: of each part the candidates, and the places of its jobs in the
    whole; tokens: of its routes, where they are in the journal already; errors: that were told of it."""

    file: str
    promise: Promise
    parts: Sequence[tuple[Sequence[Candidate], tuple[int, ...]]]
    tokens: list[str]
    errors: int


@dataclass(slots=True)
class _OnItsWay:
    """A document that has a route, or one for each part. errors: that were told of it; findings: what is to be told of
    its submission."""

    tokens: list[str]
    errors: int
    findings: Findings


def _submit_some(session: Session, client: Client, requests: Sequence[tuple[str, str | None]], choice: Choice,
                 terms: Terms) -> int:
    """Submit some documents to the best place of each, those of one site together, or go on with the requests of these
    names; the exit status. Where one cannot be read those before it are submitted. requests: files and names."""
    from sssjob.run.routing import advance_all, refusals

    worst = 0
    failure: SSSJobError | None = None
    routes: list[_Routed] = []
    shares = refusals(client.journal)
    for file, request in requests:
        session.errors = 0
        try:
            route = _routed_now(session, client, file, choice, terms, request, shares)
        except SSSJobError as error:
            failure = error
            break
        if isinstance(route, int):
            worst = max(worst, route)
        else:
            routes.append(route)
    with client.journal.together():         # on the disk before anything is submitted
        documents = [_OnItsWay(_begun(session, client, route, terms), route.errors, Findings(route.file))
                     for route in routes]
    client.findings = Findings()
    submissions = advance_all(client, [token for document in documents for token in document.tokens],
                              {token: document.findings for document in documents for token in document.tokens})
    session.report(client.findings)
    for document in documents:
        session.errors = document.errors
        session.report(document.findings)
        worst = max(worst, _told(session, client, document.tokens, [
            submission for token in document.tokens if (submission := submissions[token]) is not None]))
    if failure is not None:
        raise failure
    return worst


def _routed_now(session: Session, client: Client, file: str, choice: Choice, terms: Terms, request: str | None,
                shares: Mapping[str, float]) -> _Routed | int:
    """A document with the places where it may go; the exit status where there are none. shares: of late jobs that a
    site refused."""
    from sssjob.run.routing import Promise, known

    data = read_bytes(file)
    promise = Promise(request, sha256(data).hexdigest(), tuple(hook.promise() for hook in terms.hooks))
    if earlier := known(client.journal, promise):
        return _Routed(file, promise, (), [route.token for route in earlier], session.errors)
    routings = routed(session, file, data, choice, terms.starts, shares, terms.together, terms.shaped)
    if routings is None:
        return session.status()
    if nowhere := [routing for routing in routings if not routing.places]:
        for routing in nowhere:
            tell(session, routing, False)
        return max(routing.status for routing in nowhere)
    if terms.dry_run:
        return rehearsed(session, routings, file)
    planning: dict[str, tuple[Settings, JobExecutor]] = {}
    if len(routings) > 1 and not all([_can_be_planned(session, routing, file, planning) for routing in routings]):
        return 5
    parts = [(list(candidates(routing.places, choice)), routing.numbers) for routing in routings]
    return _Routed(file, promise, parts, [], session.errors)


def _begun(session: Session, client: Client, document: _Routed, terms: Terms) -> list[str]:
    """The tokens of the routes of a document, all of which are in the journal."""
    from sssjob.run.routing import begin_parts

    return document.tokens or [route.token for route in begin_parts(
        client.journal, document.parts, policy=session.policy or Policy.REJECT, directory=Path.cwd(),
        patience=terms.patience, promise=document.promise)]


def _can_be_planned(session: Session, routing: Routing, file: str, planning: dict[str, tuple[Settings, JobExecutor]]
                    ) -> bool:
    """Whether a part can be planned for one of its places, else it is told why not: no other part is to go out then.
    planning: by what, for each profile; it grows."""
    reasons = []
    for place in routing.places:
        findings = Findings(file)
        with suppress(SSSJobError):         # of the site: the next one is tried when it is submitted
            if place.path not in planning:
                settings = settings_at(place)
                planning[place.path] = settings, backend_of(settings)
            plan_of(session, place.going(), *planning[place.path], findings).close()
        rejecting = [finding.message for finding in findings if finding.rejects]
        if not rejecting:
            return True
        reasons.append(f"{place.site.name}, {place.name}: not submitted: {'; '.join(rejecting[:3])}")
    for reason in (*reasons, f"nothing is submitted, for no site can take {', '.join(routing.jobs)}"):
        problem(escape(reason, 1000), as_json=session.as_json, status=5)
    return False


def candidates(places: list[Place], choice: Choice) -> Iterator[Candidate]:
    """The places in which a document is tried, each queue of a site once. Raises UsageError for a site of which nobody
    knows who manages it."""
    from sssjob.run.routing import Candidate
    from sssjob.xml.writer import write_document

    seen = set()
    texts: dict[int, str] = {}          # by identity of the document, which several places share
    shown_before: tuple[Any, ...] = ()          # what the words of the place before go by
    why = ""
    prices: tuple[str | None, ...] = ()
    now = time.time()
    for rank, place in enumerate(places, 1):
        site, queue, executor = place.site.name, place.queue, choice.executor(place)
        if (site, queue) not in seen:
            seen.add((site, queue))
            if (text := texts.get(id(place.wanted))) is None:
                text = texts[id(place.wanted)] = write_document(place.wanted, findings=Findings())
            shown = (id(place.prices), place.currency, place.why, place.value, place.verdict.score, place.failures,
                     place.start, place.why_no_start, place.turn)
            if shown != shown_before:       # queues of a site are often as good as each other
                shown_before, why = shown, ", ".join(place.known(now))
                prices = tuple([None if price is None else money(price, place.currency) for price in place.prices])
            yield Candidate(site, choice.path(place), executor, queue, text,
                            f"rank {rank} of {len(places)}, {why}", prices)


def _told(session: Session, client: Client, tokens: Sequence[str], submissions: Sequence[Submission]) -> int:
    """Print the ids of a document that was routed, in their order there, and why its parts are not at the places
    before; the exit status."""
    from sssjob.run.routing import is_refused, state_of

    worst = 0
    placed_rows: list[tuple[int, Row]] = []
    for token in tokens:
        route = state_of(client.journal, token)
        entry = client.journal.requested(route.request)
        if entry is None and route.phase == "going":
            problem("it is in the journal, and the next client submits it", as_json=session.as_json, status=0)
            worst = max(worst, stopped(client, 7))
            continue
        rows = [] if entry is None else client.journal.rows_of(entry.number)
        nowhere = all(map(is_refused, rows))
        for reason in route.reasons if nowhere or not session.quiet else ():
            problem(reason, as_json=session.as_json, status=0)
        if nowhere:
            names = f": {escape(', '.join(_labels(route)), 200)}" if route.places else ""
            problem(f"no site took it{names}", as_json=session.as_json, status=5)
            worst = max(worst, 5)
            continue
        places = route.places if len(route.places) == len(rows) else route.places[:1] * len(rows) or range(len(rows))
        placed_rows += zip(places, rows, strict=True)
    rows = [row for _, row in sorted(placed_rows, key=lambda placed: placed[0])]
    emit(lines([row.record() for row in rows]) if session.as_json
         else "".join(f"{client.journal.name_of(row)}\n" for row in rows))
    return worst or stopped(client, ended_badly(submissions, session.as_json)) or session.status()


def _labels(route: Route) -> Iterator[str]:
    """What the jobs of a route are called."""
    from sssjob.xml.reader import read_document

    for number, (job, _) in enumerate(read_document(route.candidates[0].document.encode()).jobs()):
        yield label_of(job, number)
