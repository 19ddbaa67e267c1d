"""Documents that go to one of several sites: to the best one, to the next where that refuses them, or has them wait.

A route stands in the journal before anything is submitted: the places that were chosen, the best one first, each with
the document as it goes there. Each step is a submission whose request is named by the route and the number of the step,
so that any number of clients make it once. The next step is taken only after every job of the one before was refused,
or is proved to have been cancelled before it began; a client that is killed is followed by any other one. Parts of a
group that do not depend on each other have a route each, and all of them are written at once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from sssjob.document.model import Document
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import Findings, Policy, escape, joined
from sssjob.run.choosing import placed
from sssjob.run.configuring import complete, load_settings
from sssjob.run.facts import tell_place
from sssjob.run.history import Event
from sssjob.run.journal import Entry, Journal
from sssjob.run.on_end import kept
from sssjob.run.rows import NEVER_RAN, ROUTED, Row
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.conversion.settings import Settings
    from sssjob.conversion.site import Site
    from sssjob.run.client import Client
    from sssjob.run.entering import Prepared
    from sssjob.run.standing import Submission

__all__ = ["Candidate", "Promise", "Route", "advance", "advance_all", "begin", "begin_parts", "due_s", "followed",
           "go_on", "is_refused", "known", "open_routes", "places_of", "refusals", "state_of", "successor"]

Phase = Literal["going", "placed", "moving", "closed"]
#: Jobs of a site that are looked at for how many it refused of late.
_LATE: Final = 20
_DAY_S: Final = 86_400
#: Seconds to wait for the proof that a job which waits too long was cancelled.
_CANCEL_S: Final = 20.0
#: Seconds after which a step that could not be taken is tried again.
_AGAIN_S: Final = 1.0
#: Whose wishes those are that move a job.
_OURS: Final = "route"


class Candidate(NamedTuple):
    """One place. site: the name of the profile; profile: its file; queue: of the offer; document: its text as it is
    read for the site, which asks for the queue when it goes there (``placed``); why: its rank, in words; prices: what
    each of its jobs is to cost there, None where nobody can say it."""

    site: str
    profile: str
    executor: str
    queue: str | None
    document: str
    why: str
    prices: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """What its user calls a request (None: nothing), the digest of the document, and what is done at the end of each
    job: the data of events ``on-end``."""

    request: str | None = None
    digest: str = ""
    hooks: tuple[dict[str, Any], ...] = ()

    @property
    def token(self) -> str:
        """Of the route: the same for the same request."""
        if self.request is None:
            return token_hex(8)
        return sha256(self.request.encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class Route:
    """A document on its way. step: the place that is tried, counted from 0. phase: going (it is to be submitted),
    placed (it was), moving (its jobs are to be cancelled, for they waited too long), closed (nothing is left to do).
    reasons: why it is at none of the places before. patience: seconds that it may wait at one; None: for ever. places:
    those of its jobs in the group of which it is a part, none where it is the whole."""

    token: str
    candidates: tuple[Candidate, ...]
    step: int
    phase: Phase
    reasons: tuple[str, ...]
    patience: float | None
    policy: Policy
    directory: Path
    promise: Promise
    places: tuple[int, ...] = ()

    @property
    def request(self) -> str:
        """What names the submission of this step."""
        return f"{ROUTED}{self.token}:{self.step}"


def begin(journal: Journal, candidates: Sequence[Candidate], *, policy: Policy, directory: Path,
          patience: float | None = None, promise: Promise | None = None) -> Route:
    """The same for a document that has one part alone."""
    return begin_parts(journal, [(candidates, ())], policy=policy, directory=directory, patience=patience,
                       promise=promise)[0]


def begin_parts(journal: Journal, several: Sequence[tuple[Sequence[Candidate], tuple[int, ...]]], *, policy: Policy,
                directory: Path, patience: float | None = None, promise: Promise | None = None) -> list[Route]:
    """Write the routes of a document down, all or none; nothing is submitted. Those of the same request that are there
    stay as they are. several: of each part its candidates and the places of its jobs in the group. Raises AccessError,
    UsageError for a request of another document."""
    promise = promise or Promise()
    token = promise.token
    with journal.changing() as connection:
        if tokens := () if promise.request is None else _tokens(journal, token):
            return _same([state_of(journal, own) for own in tokens], promise)
        routes = [Route(token if len(several) == 1 else f"{token}.{number}", tuple(candidates), 0, "going", (),
                        patience, policy, directory, promise, places)
                  for number, (candidates, places) in enumerate(several, 1)]
        connection.executemany(
            "INSERT INTO routes VALUES (?, ?, 0, 'going', '[]', ?, ?, ?, ?)",
            [(route.token, _written(route), patience, policy.value, str(directory), time.time()) for route in routes])
    return routes


def _written(route: Route) -> str:
    """What the journal holds of a route that never changes; of the places each text once, by its number."""
    texts = [(*candidate[:-1], *candidate.prices) for candidate in route.candidates]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    places = [list(map(numbers.__getitem__, own)) for own in texts]
    promise = {name: getattr(route.promise, name) for name in Promise.__slots__}
    return json.dumps({"candidates": places, "texts": list(numbers), "promise": promise, "places": route.places})


def _tokens(journal: Journal, token: str) -> list[str]:
    """The routes of the parts of a document (``.`` and ``/`` are neighbours), in their order. token: of its request."""
    return [own for (own,) in journal.ask(
        "SELECT token FROM routes WHERE token = :token OR (token > :token || '.' AND token < :token || '/') "
        "ORDER BY length(token), token", {"token": token})]


def known(journal: Journal, promise: Promise) -> list[Route]:
    """The routes of a request that was made before; none where there are none. Raises as ``begin_parts``."""
    if promise.request is None:
        return []
    return _same([state_of(journal, token) for token in _tokens(journal, promise.token)], promise)


def _same(routes: list[Route], promise: Promise) -> list[Route]:
    if any(route.promise.digest != promise.digest for route in routes):
        raise UsageError(f"the request {escape(promise.request or '')!r} was made for another document")
    return routes


def places_of(journal: Journal, number: int) -> tuple[int, ...]:
    """The places of the jobs of a submission in the group of which it is a part; none where it is no part."""
    request = journal.request_of(number) or ""
    return state_of(journal, request.split(":")[1]).places if request.startswith(ROUTED) else ()


def state_of(journal: Journal, token: str) -> Route:
    """A route as it stands."""
    ((candidates, step, phase, reasons, patience, policy, directory),) = journal.ask(
        "SELECT candidates, step, phase, reasons, patience, policy, directory FROM routes WHERE token = :token",
        {"token": token})
    record = json.loads(candidates)
    if isinstance(record, list):        # of a client that knew of no requests
        record = {"candidates": record, "promise": {}}
    promise = Promise(**{**record["promise"], "hooks": tuple(record["promise"].get("hooks", ()))})
    return Route(token, tuple(_candidate(candidate, record) for candidate in record["candidates"]), step, phase,
                 tuple(json.loads(reasons)), patience, Policy.of(policy) or Policy.REJECT, Path(directory), promise,
                 tuple(record.get("places", ())))


def _candidate(record: list[int] | dict[str, Any], route: dict[str, Any]) -> Candidate:
    """A candidate as the journal has it. route: its record, which has the texts that several candidates share."""
    if isinstance(record, list):
        texts = [route["texts"][number] for number in record]
        site, profile, executor, queue, document, why, *prices = texts
        return Candidate(site, profile, executor, queue, document, why, tuple(prices))
    document = record["document"]       # of a client that wrote each candidate out
    return Candidate(**{**record, "prices": tuple(record.get("prices", ())),
                        "document": document if isinstance(document, str) else route["documents"][document]})


def open_routes(journal: Journal) -> list[str]:
    """The tokens of the routes that a client has to look after, the oldest first."""
    return [token for (token,) in journal.ask("SELECT token FROM routes WHERE phase != 'closed' ORDER BY time", {})]


def refusals(journal: Journal) -> dict[str, float]:
    """Site -> the share of its last jobs of a day that it refused, where it refused any. What is older says nothing of
    it, for a site that comes behind all others would get no job by which it could do better."""
    shares: dict[str, float] = {}
    for (site,) in journal.ask("SELECT DISTINCT site FROM submissions WHERE site IS NOT NULL", {}):
        ((refused, count),) = journal.ask(
            "SELECT total(outcome IS 'failed' AND native_id IS NULL), count(*) FROM (SELECT j.outcome, j.native_id "
            "FROM jobs j JOIN submissions s ON s.number = j.submission WHERE s.site = :site AND s.time > :since "
            "ORDER BY j.submission DESC LIMIT :late)", {"site": site, "since": time.time() - _DAY_S, "late": _LATE})
        if refused:
            shares[site] = refused / count
    return shares


def go_on(client: Client) -> None:
    """Take all steps that are due now. What keeps one back is a finding, and left to the next client."""
    tokens = open_routes(client.journal)
    try:
        advance_all(client, tokens)
    except SSSJobError:                     # one of them stands in the way of the others
        for token in tokens:
            try:
                advance(client, token)
            except SSSJobError as error:
                client.findings.add("SSS602", "route", f"a document on its way to one of several sites: {error}",
                                    severity="warning")


def advance(client: Client, token: str) -> Submission | None:
    """The same of one route."""
    return advance_all(client, [token])[token]


def advance_all(client: Client, tokens: Sequence[str], findings_of: Mapping[str, Findings] | None = None
                ) -> dict[str, Submission | None]:
    """Take the steps of routes that can be taken now, what goes to one site together; the submission at which each
    stands, None where there is none.

    findings_of: by token, gets what is to be told of a document that was submitted, else the findings of the client do.
    A signal ends it: what is not submitted then is by the next client. Raises AccessError.
    """
    journal = client.journal
    standing: dict[int, Submission] = {}        # by number
    moved = [token for token in tokens if state_of(journal, token).phase != "closed"]
    while moved and client.stopped is None:
        routes = [state_of(journal, token) for token in moved]
        standing |= _submitted(client, [route for route in routes if route.phase == "going"
                                        and journal.requested(route.request) is None], findings_of or {})
        if client.stopped is None:
            entries = [entry for route in routes if (entry := journal.requested(route.request)) is not None
                       and entry.number not in standing]
            looked = client.look(entries, steps=False)[0] if entries else []
            standing |= {submission.entry.number: submission for submission in looked if submission.entry is not None}
            _cancel(client, [state_of(journal, token) for token in moved])
        moved = [token for token in moved if _goes_on(client, token)]
    at = {token: journal.requested(state_of(journal, token).request) for token in tokens}
    return {token: None if entry is None else standing.get(entry.number) for token, entry in at.items()}


def _goes_on(client: Client, token: str) -> bool:
    """Whether a route has come to a place where it is to be submitted, by what is known of the place where it stood."""
    journal = client.journal
    while (route := state_of(journal, token)).phase != "closed":
        entry = journal.requested(route.request)
        if entry is None:
            if route.phase == "going":
                return True
            _change(journal, route, phase="closed")     # it was taken out of the journal, as only what has ended is
            continue
        rows = journal.rows_of(entry.number)
        if all(map(is_refused, rows)):
            words = (rows[0].message or "").removeprefix(f"{NEVER_RAN}: ")
            _leave(journal, route, f"refused: {words or 'no reason was given'}")
        elif any(row.outcome not in (None, "kept", "canceled") for row in rows) or _has_begun(journal, rows):
            if route.phase == "moving":
                _let_go(client, entry.number)
            _change(journal, route, phase="closed")
        elif route.phase == "moving":
            if not _cancelled(client, route, entry.number):
                return False
        elif all(row.outcome == "canceled" for row in rows) or (
                route.patience is None and all(row.native_id is not None for row in rows)):
            _change(journal, route, phase="closed")
        elif not _is_due(route, entry):
            _change(journal, route, phase="placed")
            return False
        else:
            _change(journal, route, phase="moving")
    return False


def _is_due(route: Route, entry: Entry) -> bool:
    """Whether a document has waited long enough where it is, and there is another place."""
    return route.patience is not None and route.step + 1 < len(route.candidates) and (
        time.time() - entry.time >= route.patience)


def due_s(journal: Journal) -> float:
    """Seconds until a document has waited long enough at a place to go to the next one; infinite where none may."""
    dues = [math.inf]
    for token in open_routes(journal):
        route = state_of(journal, token)
        entry = journal.requested(route.request)
        if entry is None or route.phase != "placed":
            dues.append(_AGAIN_S)
        elif route.patience is not None and route.step + 1 < len(route.candidates):
            dues.append(max(entry.time + route.patience - time.time(), _AGAIN_S))
    return min(dues)


def followed(journal: Journal, names: Sequence[str]) -> list[str]:
    """Names of jobs, those of a submission that another one of the same route came after as they are called there."""
    names_there = []
    for name in names:
        submission = journal.find(name)[0].submission
        number, dot, job = name.partition(".")
        later = successor(journal, submission)
        names_there.append(name if later is None else f"@{later}{dot}{job}" if number == f"@{submission}"
                           else f"@{later}")
    return names_there


def successor(journal: Journal, number: int) -> int | None:
    """The number of the submission that came after one on the same route; None where there is none, and for one that
    was taken out of the journal."""
    request = journal.request_of(number) or ""
    if not request.startswith(ROUTED):
        return None
    entry = journal.requested(state_of(journal, request.split(":")[1]).request)
    return None if entry is None or entry.number == number else entry.number


def is_refused(row: Row) -> bool:
    """Whether a manager did not take a job."""
    return row.outcome == "failed" and row.native_id is None


def _has_begun(journal: Journal, rows: Sequence[Row]) -> bool:
    """Whether any of these jobs has been started, as far as anybody knows."""
    begun = journal.ask("SELECT 1 FROM details WHERE submission = :number AND started IS NOT NULL",
                        {"number": rows[0].submission})
    return bool(begun) or any(row.state in ("Running", "Suspended") for row in rows)


def _submitted(client: Client, routes: Sequence[Route], findings_of: Mapping[str, Findings]) -> dict[int, Submission]:
    """Submit the step of each route, those of one site together; the submissions that were followed here, by number.
    A route of which nothing was submitted is left for its next place."""
    sites: dict[str, list[Route]] = {}
    for route in routes:
        sites.setdefault(route.candidates[route.step].profile, []).append(route)
    begun: dict[int, Submission] = {}
    for own in sites.values():
        if client.stopped is None:
            steps = [_prepared(client, route, findings_of.get(route.token, client.findings)) for route in own]
            several = [prepared for prepared in steps if prepared is not None]
            with suppress(SSSJobError), _as_there(client, own[0], client.findings):     # they are in the journal
                begun |= {submission.entry.number: submission for submission in client.begin(several).values()
                          if submission.entry is not None}
    return begun


def _prepared(client: Client, route: Route, report: Findings) -> Prepared | None:
    """The submission of a step, in the journal; None where there is none, and then the next place is taken.

    report: gets what is to be told of it."""
    candidate = route.candidates[route.step]
    findings = Findings()
    try:
        with _as_there(client, route, findings) as (site, settings):
            document = placed(read_document(candidate.document.encode()), candidate.queue, site.machine)
            _tell_place(document, route)
            complete(document, candidate.executor, settings, findings)
            prepared = client.prepare(document, candidate.executor, policy=route.policy, cwd=route.directory,
                                      request=route.request, on_end=[kept(data) for data in route.promise.hooks])
            if prepared is not None:
                client.enter(prepared)
    except SSSJobError as error:
        if client.journal.requested(route.request) is None:     # else it is there, whatever failed after that
            _leave(client.journal, route, f"not submitted: {error}")
        return None
    if prepared is None:
        reasons = [finding.message for finding in findings if finding.rejects]
        _leave(client.journal, route, f"not submitted: {'; '.join(reasons[:3])}")
        return None
    told_of = report.file or str(next(document.bodies()).value("Id") or "")      # whose step another command takes
    report.extend(findings.moved(told_of, route.places))
    return prepared


@contextmanager
def _as_there(client: Client, route: Route, findings: Findings) -> Iterator[tuple[Site, Settings]]:
    """A client as it submits the step of a route, with its site and the settings of that. Raises AccessError,
    UsageError."""
    candidate = route.candidates[route.step]
    before = client.settings, client.site, client.why, client.findings
    site = _site(candidate.profile)
    settings = load_settings((site, candidate.profile))
    client.settings, client.site, client.findings = settings, candidate.site, findings
    client.why = "; ".join([f"routed to {candidate.site}: {candidate.why}", *route.reasons])
    try:
        yield site, settings
    finally:
        client.settings, client.site, client.why, client.findings = before


def _tell_place(document: Document, route: Route) -> None:
    """Say in each job where it goes, why, and what it is to cost there."""
    candidate = route.candidates[route.step]
    reasons = [candidate.why, *route.reasons] if candidate.why else route.reasons
    for number, (job, _) in enumerate(document.jobs()):
        tell_place(job, candidate.site, reasons, candidate.prices[number] if candidate.prices else None)


def _site(profile: str) -> Site:
    from sssjob.conversion.site import read_site

    try:
        return read_site(Path(profile).read_bytes(), profile)
    except OSError as error:
        raise AccessError(profile, error.strerror or str(error)) from error


def _cancel(client: Client, routes: Sequence[Route]) -> None:
    """Ask for the end of what has waited long enough, of all of it together: it is held first, for what begins while it
    is cancelled would be lost. What has begun meanwhile is let go, when its route goes on."""
    journal = client.journal
    due: list[Entry] = []
    waiting: list[Entry] = []
    for route in routes:
        entry = journal.requested(route.request)
        if entry is None or route.phase == "closed" or not (route.phase == "moving" or _is_due(route, entry)):
            continue
        rows = journal.rows_of(entry.number)
        if _has_begun(journal, rows) or all(row.outcome is not None for row in rows):
            continue
        _change(journal, route, phase="moving")
        waiting.append(entry)
        if not any(event.kind == "cancel" for event in entry.events(wishes=True)):
            due.append(entry)
    if due:
        _ask(client, "hold", *(entry.number for entry in due))
    for entry in due:
        rows = journal.rows_of(entry.number)
        if not _has_begun(journal, rows):
            entry.flush(*(Event(row.job, "cancel", _OURS, {}) for row in rows if row.outcome is None))
    if waiting:
        client.finish([f"@{entry.number}" for entry in waiting], _CANCEL_S)


def _let_go(client: Client, number: int) -> None:
    """Release the jobs of a submission that were held on their way to another place, if any were."""
    held = [event.job for event in client.journal.entry(number).events(wishes=True)
            if (event.kind, event.source) == ("hold", _OURS)]
    if held:
        _ask(client, "release", number)


def _ask(client: Client, wish: str, *numbers: int) -> None:
    """Have all jobs of submissions that have not ended held, or released."""
    keys = [row.key for number in numbers for row in client.journal.rows_of(number) if row.outcome is None]
    if keys:
        client.ask(wish, keys, _CANCEL_S, source=_OURS)


def _cancelled(client: Client, route: Route, number: int) -> bool:
    """Whether the jobs of a submission that waited too long have ended, as was asked (``_cancel``); then the next step
    is taken where all were cancelled before they began. A user who cancels them too wants no other place."""
    journal, entry = client.journal, client.journal.entry(number)
    rows = journal.rows_of(number)
    if any(row.outcome is None for row in rows):
        return False
    by_user = any(event.source != _OURS for event in entry.events(wishes=True) if event.kind == "cancel")
    if by_user or _has_begun(journal, rows) or any(row.outcome not in ("canceled", "kept") for row in rows):
        _change(journal, route, phase="closed")
    else:
        _leave(journal, route, f"waited longer than {route.patience:g} s")
    return True


def _leave(journal: Journal, route: Route, reason: str) -> None:
    """Take the next step, or close the route where there is none."""
    candidate = route.candidates[route.step]
    place = f"{candidate.site}, {candidate.queue}" if candidate.queue else candidate.site
    reasons = (*route.reasons, f"{place}: {escape(joined(reason))}")
    last = route.step + 1 == len(route.candidates)
    _change(journal, route, step=route.step if last else route.step + 1, phase="closed" if last else "going",
            reasons=reasons)


def _change(journal: Journal, route: Route, *, phase: Phase, step: int | None = None,
            reasons: tuple[str, ...] | None = None) -> None:
    """Write how a route stands, unless another client has changed it since it was read."""
    new = (route.step if step is None else step, phase, json.dumps(route.reasons if reasons is None else reasons))
    if (route.step, route.phase) != new[:2] or reasons is not None:
        with journal.changing() as connection:
            connection.execute("UPDATE routes SET step = ?, phase = ?, reasons = ? WHERE token = ? AND step = ? AND "
                               "phase = ?", (*new, route.token, route.step, route.phase))
