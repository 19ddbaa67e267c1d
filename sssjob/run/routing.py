"""Documents that go to one of several sites: to the best one, to the next where that refuses them, or has them wait.

A route stands in the journal before anything is submitted: the places that were chosen, the best one first, each with
the document as it goes there. Each step is a submission whose request is named by the route and the number of the step,
so that any number of clients make it once. The next step is taken only after every job of the one before was refused,
or is proved to have been cancelled before it began; a client that is killed is followed by any other one.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import accumulate, takewhile
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal

from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.run.facts import tell_place
from sssjob.run.journal import ROUTED, Event, Journal
from sssjob.run.on_end import kept
from sssjob.run.rows import Row

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.standing import Submission

__all__ = ["Candidate", "Promise", "Route", "advance", "begin", "due_s", "followed", "go_on", "is_refused", "known",
           "open_routes", "placed", "refusals", "state_of"]

Phase = Literal["going", "placed", "moving", "closed"]
#: Jobs of a site that are looked at for how many it refused of late.
_LATE: Final = 20
#: Seconds to wait for the proof that a job which waits too long was cancelled.
_CANCEL_S: Final = 20.0
#: Seconds after which a step that could not be taken is tried again.
_AGAIN_S: Final = 1.0
#: Whose wishes those are that move a job.
_OURS: Final = "route"
_NEGATED: Final = ("Nand", "Nor")
#: Attributes of a condition that a name which was chosen has no more.
_CHOICE: Final = ("op", "preference", "aggregation", "performanceFactor")


def placed(document: Document, queue: str | None) -> Document:
    """A copy of a document that asks for one queue: in place of each that its conditions allow, and where a job names
    none. Queues that it excludes stay so. A performanceFactor is left out: who chose the place has weighed it. queue:
    None where the offer names none."""
    copied = deepcopy(document)
    for body in copied.bodies():
        _choose(body, queue)
    if queue is not None:
        for job, defaults in copied.jobs():
            if not _names(effective(job, defaults).fold(), queue):
                job.items.append(new_property("Queue", queue))
    return copied


def _choose(scope: Container, queue: str | None) -> None:
    for place, item in enumerate(scope.items):
        if isinstance(item, Container):
            if item.tag != "Delivered":
                _choose(item, queue)
        elif isinstance(item, Property) and queue is not None and _allows(item):
            scope.items[place] = item.replace(queue, **dict.fromkeys(_CHOICE))
        elif isinstance(item, Property) and "performanceFactor" in item.attributes:
            scope.items[place] = item.replace(performanceFactor=None)
    if queue is not None:
        _say_once(scope, queue)


def _say_once(scope: Container, queue: str) -> None:
    """Say the queue once where it stands in place of several alternatives, which no manager could be given: of a
    block or a bracket with nothing else in it, and of conditions that all hold."""
    first = scope.items[0] if scope.items and scope.tag == "Requested" else None
    if isinstance(first, Property) and all(_is_chosen(item, queue) for item in scope.items):
        scope.items[:] = [first.replace(group=None, conj=None)]
    place = 0
    while place < len(scope.items):
        run = list(takewhile(lambda item: _is_chosen(item, queue), scope.items[place:]))
        depths = list(accumulate(int(item.attributes.get("group", "0")) for item in run if isinstance(item, Property)))
        bracket = next((number for number, depth in enumerate(depths, 1) if depth == 0), 0)
        head = run[0] if run else None
        if isinstance(head, Property) and bracket > 1:
            scope.items[place:place + bracket] = [head.replace(group=None)]
            continue            # it may be one of several itself
        if len(run) > 1 and depths[:2] == [0, 0] and run[1].attributes.get("conj", "And") == "And":
            del scope.items[place + 1]
            continue
        place += 1


def _is_chosen(item: object, queue: str) -> bool:
    return isinstance(item, Property) and _allows(item) and item.text == queue and re.fullmatch(
        r"[+-]?\d{1,3}", item.attributes.get("group", "0")) is not None


def _allows(p: Property) -> bool:
    return p.tag == "Queue" and p.attributes.get("op", "EQ") in ("EQ", "Match") and p.attributes.get(
        "conj") not in _NEGATED


def _names(scope: Container, queue: str) -> bool:
    """Whether a job asks for the queue, at any level."""
    return any(_names(item, queue) if isinstance(item, Container) else isinstance(item, Property)
               and _allows(item) and item.text == queue for item in scope.items if item.tag != "Delivered")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place. site: the name of the profile; profile: its file; queue: of the offer; document: its text as it goes
    there; why: its rank, in words; prices: what each of its jobs is to cost there, None where nobody can say it."""

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
    reasons: why it is at none of the places before. patience: seconds that it may wait at one; None: for ever."""

    token: str
    candidates: tuple[Candidate, ...]
    step: int
    phase: Phase
    reasons: tuple[str, ...]
    patience: float | None
    policy: Policy
    directory: Path
    promise: Promise

    @property
    def request(self) -> str:
        """What names the submission of this step."""
        return f"{ROUTED}{self.token}:{self.step}"


def begin(journal: Journal, candidates: Sequence[Candidate], *, policy: Policy, directory: Path,
          patience: float | None = None, promise: Promise | None = None) -> Route:
    """Write a route down; nothing is submitted. One of the same request that is there stays as it is. Raises
    AccessError, UsageError for a request of another document."""
    promise = promise or Promise()
    token = promise.token
    record = {"candidates": [asdict(candidate) for candidate in candidates], "promise": asdict(promise)}
    with journal.changing() as connection:
        connection.execute(
            "INSERT OR IGNORE INTO routes VALUES (?, ?, 0, 'going', '[]', ?, ?, ?, ?)",
            (token, json.dumps(record), patience, policy.value, str(directory), time.time()))
    return _same(state_of(journal, token), promise)


def known(journal: Journal, promise: Promise) -> Route | None:
    """The route of a request that was made before; None where there is none. Raises as ``begin``."""
    if promise.request is None or not journal.ask("SELECT 1 FROM routes WHERE token = :token",
                                                  {"token": promise.token}):
        return None
    return _same(state_of(journal, promise.token), promise)


def _same(route: Route, promise: Promise) -> Route:
    if route.promise.digest != promise.digest:
        raise UsageError(f"the request {escape(promise.request or '')!r} was made for another document")
    return route


def state_of(journal: Journal, token: str) -> Route:
    """A route as it stands."""
    ((candidates, step, phase, reasons, patience, policy, directory),) = journal.ask(
        "SELECT candidates, step, phase, reasons, patience, policy, directory FROM routes WHERE token = :token",
        {"token": token})
    record = json.loads(candidates)
    if isinstance(record, list):        # of a client that knew of no requests
        record = {"candidates": record, "promise": {}}
    promise = Promise(**{**record["promise"], "hooks": tuple(record["promise"].get("hooks", ()))})
    return Route(token, tuple(_candidate(candidate) for candidate in record["candidates"]), step, phase,
                 tuple(json.loads(reasons)), patience, Policy.of(policy) or Policy.REJECT, Path(directory), promise)


def _candidate(record: dict[str, Any]) -> Candidate:
    """A candidate as the journal has it."""
    return Candidate(**{**record, "prices": tuple(record.get("prices", ()))})


def open_routes(journal: Journal) -> list[str]:
    """The tokens of the routes that a client has to look after, the oldest first."""
    return [token for (token,) in journal.ask("SELECT token FROM routes WHERE phase != 'closed' ORDER BY time", {})]


def refusals(journal: Journal) -> dict[str, float]:
    """Site -> the share of its last jobs that it refused, where it refused any."""
    shares: dict[str, float] = {}
    for (site,) in journal.ask("SELECT DISTINCT site FROM submissions WHERE site IS NOT NULL", {}):
        ((refused, count),) = journal.ask(
            "SELECT total(outcome IS 'failed' AND native_id IS NULL), count(*) FROM (SELECT j.outcome, j.native_id "
            "FROM jobs j JOIN submissions s ON s.number = j.submission WHERE s.site = :site ORDER BY j.submission DESC "
            "LIMIT :late)", {"site": site, "late": _LATE})
        if refused:
            shares[site] = refused / count
    return shares


def go_on(client: Client) -> None:
    """Take all steps that are due now. What keeps one back is a finding, and left to the next client."""
    for token in open_routes(client.journal):
        try:
            advance(client, token)
        except SSSJobError as error:
            client.findings.add("SSS602", "route", f"a document on its way to one of several sites: {error}",
                                severity="warning")


def advance(client: Client, token: str) -> Submission | None:
    """Take the steps of a route that can be taken now; the submission at which it stands, None where there is none.

    Raises AccessError.
    """
    journal, submission = client.journal, None
    while (route := state_of(journal, token)).phase != "closed":
        entry = journal.requested(route.request)
        if entry is None:
            if route.phase != "going":          # it was taken out of the journal, as only what has ended is
                _change(journal, route, phase="closed")
                continue
            submission, reason = _submitted(client, route)
            if submission is None:
                if journal.requested(route.request) is None:    # else it is there, whatever failed after that
                    _leave(journal, route, reason)
                continue
        elif submission is None or submission.entry is None or submission.entry.number != entry.number:
            ((submission,), _) = client.look([entry])
        assert submission.entry is not None
        rows = journal.rows_of(submission.entry.number)
        if all(map(is_refused, rows)):
            _leave(journal, route, f"refused: {rows[0].message or 'no reason was given'}")
        elif any(row.outcome not in (None, "kept", "canceled") for row in rows) or _has_begun(journal, rows):
            if route.phase == "moving":
                _let_go(client, submission.entry.number)
            _change(journal, route, phase="closed")
        elif route.phase == "moving":
            if not _cancelled(client, route, submission.entry.number):
                return submission
        elif all(row.outcome == "canceled" for row in rows) or (
                route.patience is None and all(row.native_id is not None for row in rows)):
            _change(journal, route, phase="closed")
        elif route.patience is None or time.time() - submission.entry.time < route.patience or (
                route.step + 1 == len(route.candidates)):
            _change(journal, route, phase="placed")
            return submission
        else:
            _change(journal, route, phase="moving")
    return submission


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
    return [_followed(journal, name) for name in names]


def _followed(journal: Journal, name: str) -> str:
    row = journal.find(name)[0]
    ((request,),) = journal.ask("SELECT request FROM submissions WHERE number = :number", {"number": row.submission})
    if not (request or "").startswith(ROUTED):
        return name
    route = state_of(journal, request.split(":")[1])
    entry = journal.requested(route.request)
    if entry is None or entry.number == row.submission:
        return name
    number, dot, job = name.partition(".")
    return f"@{entry.number}{dot}{job}" if number == f"@{row.submission}" else f"@{entry.number}"


def is_refused(row: Row) -> bool:
    """Whether a manager did not take a job."""
    return row.outcome == "failed" and row.native_id is None


def _has_begun(journal: Journal, rows: Sequence[Row]) -> bool:
    """Whether any of these jobs has been started, as far as anybody knows."""
    begun = journal.ask("SELECT 1 FROM details WHERE submission = :number AND started IS NOT NULL",
                        {"number": rows[0].submission})
    return bool(begun) or any(row.state in ("Running", "Suspended") for row in rows)


def _submitted(client: Client, route: Route) -> tuple[Submission | None, str]:
    """The submission of a step, or why there is none."""
    from sssjob.run.configuring import complete, load_settings
    from sssjob.xml.reader import read_document

    candidate = route.candidates[route.step]
    findings = Findings()
    before = client.settings, client.site, client.why, client.findings
    try:
        settings = load_settings((_site(candidate.profile), candidate.profile))
        document = read_document(candidate.document.encode())
        _tell_place(document, route)
        complete(document, candidate.executor, settings, findings)
        client.settings, client.site, client.findings = settings, candidate.site, findings
        client.why = "; ".join([f"routed to {candidate.site}: {candidate.why}", *route.reasons])
        submission = client.submit(document, candidate.executor, policy=route.policy, cwd=route.directory,
                                   request=route.request, on_end=[kept(data) for data in route.promise.hooks])
    except SSSJobError as error:
        return None, f"not submitted: {error}"
    finally:
        client.settings, client.site, client.why, client.findings = before
    reasons = [finding.message for finding in findings if finding.rejects]
    if submission is not None:
        client.findings.extend(findings)
    return submission, f"not submitted: {'; '.join(reasons[:3])}"


def _tell_place(document: Document, route: Route) -> None:
    """Say in each job where it goes, why, and what it is to cost there."""
    candidate = route.candidates[route.step]
    reasons = [candidate.why, *route.reasons] if candidate.why else route.reasons
    for number, (job, _) in enumerate(document.jobs()):
        tell_place(job, candidate.site, reasons, candidate.prices[number] if candidate.prices else None)


def _site(profile: str) -> Any:
    from sssjob.conversion.site import read_site
    from sssjob.errors import AccessError

    try:
        return read_site(Path(profile).read_bytes(), profile)
    except OSError as error:
        raise AccessError(profile, error.strerror or str(error)) from error


def _is_kept_from_starting(client: Client, number: int) -> bool:
    """Whether none of the jobs of a submission has begun, and none can begin any more: each is held first, for one that
    begins while it is cancelled would be lost. Where one has begun all others are let go."""
    _ask(client, "hold", number)
    if not _has_begun(client.journal, client.journal.rows_of(number)):
        return True
    _let_go(client, number)
    return False


def _let_go(client: Client, number: int) -> None:
    """Release the jobs of a submission that were held on their way to another place, if any were."""
    held = [event.job for event in client.journal.entry(number).events(wishes=True)
            if (event.kind, event.source) == ("hold", _OURS)]
    if held:
        _ask(client, "release", number)


def _ask(client: Client, wish: str, number: int) -> None:
    """Have all jobs of a submission that have not ended held, or released."""
    keys = [row.key for row in client.journal.rows_of(number) if row.outcome is None]
    if keys:
        client.ask(wish, keys, _CANCEL_S, source=_OURS)


def _cancelled(client: Client, route: Route, number: int) -> bool:
    """Whether the jobs of a submission that waited too long have ended, of which it is asked first; then the next step
    is taken where all were cancelled before they began. A user who cancels them too wants no other place."""
    journal, entry = client.journal, client.journal.entry(number)
    cancels = [event for event in entry.events(wishes=True) if event.kind == "cancel"]
    if not cancels:
        if not _is_kept_from_starting(client, number):
            _change(journal, route, phase="closed")
            return True
        entry.flush(*(Event(row.job, "cancel", _OURS, {}) for row in journal.rows_of(number) if row.outcome is None))
    client.finish([f"@{number}"], _CANCEL_S)
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
    reasons = (*route.reasons, f"{candidate.site}{f', {candidate.queue}' if candidate.queue else ''}: {escape(reason)}")
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
