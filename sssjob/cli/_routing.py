"""What ``route`` and ``submit --sites`` share: the offers of several sites, held against one document and ranked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._dry_run import print_rehearsal
from sssjob.cli._files import emit, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, lines, opened, stopped
from sssjob.cli._options import Session, pairs
from sssjob.cli._prices import load, money, quoted, rates_of
from sssjob.cli._profiles import load_site
from sssjob.cli.match import Offered, offered
from sssjob.cli.offers import SilentError, ask_machine, offers_of
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.request import Offer, Offers, Verdict, requests_in, verdicts
from sssjob.request.changing import smallest_change
from sssjob.request.offers import ESTIMATED_WAIT
from sssjob.request.ranking import Prospect, performance_factor, ranked, weighed_s
from sssjob.request.ranking import values as values_of

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.cli.offers import Machine
    from sssjob.conversion.settings import Settings
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.run.client import Client
    from sssjob.run.on_end import Hook
    from sssjob.run.routing import Candidate
    from sssjob.run.standing import Submission


#: Managers that are asked side by side.
_AT_ONCE: Final = 32
#: Documents that are submitted together.
_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Place:
    """One offer of a site, and what is known of the document there. wanted: the document as it is read for the site;
    queue: that of the offer; prices: of each job, None where nothing says it, why: then the reason; start: when it
    would start, in seconds since the epoch, None where nobody says it, why_no_start: then the reason; failures: the
    share of the jobs that were sent to the site lately and that it refused; value: by which it is ranked."""

    site: Site
    path: str
    name: str
    queue: str | None
    wanted: Document = field(repr=False)
    verdict: Verdict
    prices: tuple[Decimal | None, ...]
    currency: str
    why: str
    start: float | None = None
    why_no_start: str = ""
    failures: float = 0.0
    value: Fraction = Fraction(0)

    @property
    def met(self) -> bool:
        """Whether the offer meets the document."""
        return self.verdict.met

    @property
    def price(self) -> Decimal | None:
        """Of all jobs; None where that of one is not known."""
        prices_known = [price for price in self.prices if price is not None]
        return sum(prices_known, Decimal(0)) if len(prices_known) == len(self.prices) and not self.why else None

    def record(self, rank: int | None, now: float) -> dict[str, Any]:
        """As a JSON object; rank: its place among those that meet, None where it does not."""
        changes = None if self.met else self.changes()
        return {"type": "result", "rank": rank, "site": self.site.name, "offer": self.name, "met": self.met,
                "score": float(self.verdict.score), "value": float(self.value) if self.met else None,
                "price": None if self.price is None else str(self.price),
                "currency": self.currency or None, "why_no_price": self.why or None,
                "starts_in": None if self.start is None else round(max(self.start - now, 0.0)),
                "why_no_start": self.why_no_start or None, "failures": self.failures,
                "changes": changes, "explanation": asdict(self.verdict.answer().explanation)}

    def lines(self, rank: int | None, *, explain: bool, change: bool, now: float) -> Iterator[str]:
        """For people: a line, with the conditions that fail; explain: below it all of them; change: the smallest change
        with which the offer meets. now: seconds since the epoch."""
        name = f"{escape(self.site.name)}, {escape(self.name)}"
        if rank is None:
            yield f"-  {name}: not met: {self._failing()}"
            if change:
                changes = self.changes()
                would = f"it would meet with {'; '.join(changes)}" if changes else "no change of single values meets"
                yield f"     {would}"
        else:
            yield f"{rank}. {name}: met, {', '.join(self.known(now))}"
        if explain:
            yield from (f"     {escape(line, 1000)}" for line in self.verdict.answer().lines())

    def known(self, now: float) -> Iterator[str]:
        """What it is ranked by, in words. now: seconds since the epoch."""
        yield f"preference {float(self.verdict.score):g}"
        if self.value != self.verdict.score:
            yield f"value {float(self.value):g}"
        if self.failures:
            yield f"refused {self.failures:.0%} of late"
        yield f"no price ({escape(self.why)})" if self.price is None else f"{self.price} {self.currency}"
        if self.start is not None:
            yield f"starts in {max(self.start - now, 0.0):.0f} s"
        elif self.why_no_start:
            yield f"start not known ({escape(self.why_no_start)})"

    def _failing(self) -> str:
        conditions = self.verdict.answer().explanation.failing()
        return escape("; ".join(condition.sentence() for condition in conditions), 1000)

    def changes(self) -> list[str] | None:
        """The smallest change with which the offer meets, in words; None where none is known."""
        words: list[str] = []
        for job, defaults in self.wanted.jobs():
            changes = smallest_change(job, defaults, self.verdict.offer)
            if changes is None:
                return None
            words += [escape(str(change)) for change in changes]
        return list(dict.fromkeys(words)) or None


@dataclass(slots=True)
class Routing:
    """The answer of all sites. places: those that meet, the best one first; others: those that do not, as given;
    silent: whether a manager gave no answer."""

    places: list[Place] = field(default_factory=list)
    others: list[Place] = field(default_factory=list)
    silent: bool = False


def routing_options(function: Callable[..., int]) -> Callable[..., int]:
    """``--sites``, ``--offers`` and ``--starts``."""
    sites = click.option("--sites", metavar="SITE,SITE...", default="",
                         help="Sites whose managers are asked what they offer: the names or files of their profiles.")
    offers = click.option("--offers", "offer_files", multiple=True, metavar="SITE=FILE",
                          help="What a site offers (may repeat): the name or file of its profile, and its offers in "
                               "any format.")
    starts = click.option("--starts", is_flag=True,
                          help="Ask the managers when the document would start; performanceFactor weighs that.")
    return sites(offers(starts(function)))


class Choice:
    """The sites to choose from, and what they offer: each manager is asked, and each file read, once for any number of
    documents."""

    def __init__(self, session: Session, sites: str, offer_files: tuple[str, ...], asked: tuple[str, ...] = ()) -> None:
        """sites: names with commas between them; offer_files: ``SITE=FILE`` each; asked: further names. Raises
        UsageError, AccessError, SiteError."""
        sources: Mapping[str, str] = pairs(offer_files, "--offers")
        named = [*(name.strip() for name in sites.split(",") if name.strip()), *asked]
        self.files: dict[str, str | None] = {**sources, **dict.fromkeys(named)}
        if len(self.files) < len(offer_files) + len(named):
            raise UsageError("a site is named twice")
        if not self.files:
            raise UsageError("no site to choose from: --sites SITE,SITE asks them, --offers SITE=FILE says what one "
                             "offers")
        self._session = session
        session.anew = True         # each document is read for each site, with its maps of names
        self.sites = {name: load_site(name) for name in self.files}
        self.answers = _all_asked({name: self.sites[name] for name, file in self.files.items() if file is None})
        self._offers: dict[str, tuple[list[Offered], Offers]] = {}
        self._rates: dict[str, RateSet | None] = {}

    def rates(self, name: str) -> RateSet | None:
        """The rates that the profile of a site names; None where it names none, or wrong ones, which are told."""
        if name not in self._rates:
            session, (site, path) = self._session, self.sites[name]
            session.site, session.site_path = site, path
            stated = site is not None and site.rates is not None
            self._rates[name] = load(session, rates_of(session, None), doubts=False) if stated else None
            session.errors += stated and self._rates[name] is None
        return self._rates[name]

    def offers(self, name: str) -> tuple[list[Offered], Offers] | None:
        """What a site offers; None where findings reject its file, which are told. Raises SilentError."""
        if name not in self._offers:
            session, (site, path), file = self._session, self.sites[name], self.files[name]
            assert site is not None
            session.site, session.site_path = site, path
            machine = offers_of(site, path, self.answers[name]()) if file is None else session.swept(
                session.read(file, source="auto"))
            if session.errors:
                return None
            there = list(offered(machine, file or site.name, True))
            self._offers[name] = there, Offers(Offer.of(offered_job.given) for offered_job in there)
        return self._offers[name]


def routed(session: Session, file: str, data: bytes, choice: Choice, starts: bool, failures: Mapping[str, float],
           shaped: Callable[[Document, str], Document] = lambda document, name: document) -> Routing | None:
    """The places where a document fits, ranked; None where findings reject it, which are told. data: the file.
    failures: site -> share of late jobs that it refused. shaped: gives the document as it is to be submitted. Raises
    UsageError, AccessError."""
    routing = Routing()
    places: list[Place] = []
    for name in choice.files:
        try:
            places += _places(session, file, data, name, choice, starts, failures, shaped)
        except SilentError as error:
            problem(str(error), as_json=session.as_json, status=4)
            routing.silent = True
        if session.errors:
            return None
    routing.others = [place for place in places if not place.met]
    routing.places = _ranked([place for place in places if place.met])
    return routing


def _all_asked(sites: Mapping[str, tuple[Site | None, str]]) -> dict[str, Callable[[], Machine]]:
    """What gives the answer of each manager, or raises why there is none. All are asked at once, so that one that
    hangs keeps no other waiting."""
    from concurrent.futures import ThreadPoolExecutor

    if not sites:
        return {}
    with ThreadPoolExecutor(min(len(sites), _AT_ONCE)) as pool:
        return {name: pool.submit(ask_machine, site, path).result for name, (site, path) in sites.items()
                if site is not None}


def _places(session: Session, file: str, data: bytes, name: str, choice: Choice, starts: bool,
            failures: Mapping[str, float], shaped: Callable[[Document, str], Document]) -> list[Place]:
    """The offers of one site."""
    there = choice.offers(name)
    if there is None:
        return []
    offers_there, offers = there
    site, path = session.site, session.site_path = choice.sites[name]
    assert site is not None
    document = shaped(session.swept(session.read(file, data)), file)
    if session.errors:
        return []
    rates = choice.rates(name)
    prices, currency, why = _prices(rates, document)
    findings = Findings(document.path)
    answers = verdicts(document, offers, findings=findings)
    session.report([finding for finding in findings if not session.knows(finding)])
    places = [Place(site, path, offer.job or escape(choice.files[name] or site.name), _queue_of(verdict.offer),
                    document,
                    verdict, prices, currency, why, failures=failures.get(site.name, 0.0))
              for offer, verdict in zip(offers_there, answers, strict=True)]
    if rates is not None and any(rate.name == "Queue" for _, rate in rates.paths):
        places = _priced(places, rates)
    if not starts:
        return places
    idle = None if choice.files[name] else offers_of(site, path, choice.answers[name](), idle=True)
    return [_started(session, place, idle) if place.met else place for place in places]


def _queue_of(offer: Offer) -> str | None:
    return next((p.text for p in offer.properties.get("Queue", ())), None)


def _priced(places: list[Place], rates: RateSet) -> list[Place]:
    """Places with the prices of their queues, where these make a difference, of those that meet."""
    from sssjob.run.choosing import placed

    priced: dict[str | None, tuple[tuple[Decimal | None, ...], str, str]] = {}
    for number, place in enumerate(places):
        if place.met and place.queue is not None:
            if place.queue not in priced:
                priced[place.queue] = _prices(rates, placed(place.wanted, place.queue))
            prices, currency, why = priced[place.queue]
            places[number] = replace(place, prices=prices, currency=currency, why=why)
    return places


def _prices(rates: RateSet | None, document: Document) -> tuple[tuple[Decimal | None, ...], str, str]:
    """What each job of a document would cost by the rates of a site, in which currency, and why one has no price: there
    are no rates, or it cannot be quoted. Where the rates go by the time of day, jobs start now."""
    from sssjob.accounting import Uncharged

    if rates is None:
        return (), "", "the profile names no rates"
    prices: list[Decimal | None] = []
    why = ""
    for job, defaults in document.jobs():
        price, _ = quoted(job, rates, defaults)
        if isinstance(price, Uncharged):
            why = why or f"{price.reason}: {price.detail}"
        prices.append(None if isinstance(price, Uncharged) else price.amount)
    return tuple(prices), rates.currency, why


def _ranked(places: list[Place]) -> list[Place]:
    """Those that meet, the best one first."""
    if not places:
        return []
    requests = tuple(requests_in(places[0].wanted))
    factor, seconds = performance_factor(requests), weighed_s(requests)
    prospects = [Prospect(place.verdict.score, place.price, place.currency, place.start, place.failures)
                 for place in places]
    worth = values_of(prospects, factor, seconds)
    return [replace(places[place], value=worth[place]) for place in ranked(prospects, factor, seconds)]


def settings_at(place: Place) -> Settings:
    """The settings of a run at a place."""
    from sssjob.run.configuring import load_settings

    return load_settings((place.site, place.path))


def _started(session: Session, place: Place, idle: Document | None) -> Place:
    """A place with the time at which the document would start: what Slurm says of a submission that is not made, else
    now, where idle nodes of the queue would do. idle: the offers of those, None where nobody was asked, and the offer
    itself may say when jobs start."""
    from sssjob.run.choosing import placed
    from sssjob.run.starts import NoEstimateError, estimated_start

    if idle is None:
        wait = place.verdict.offer.total(ESTIMATED_WAIT)
        return replace(place, why_no_start="its manager is not asked") if wait is None else replace(
            place, start=time.time() + float(wait))
    try:
        start = estimated_start(placed(place.wanted, place.queue), settings_at(place), session.policy)
    except NoEstimateError as error:
        return replace(place, why_no_start=str(error))
    if start is not None:
        return replace(place, start=start)
    own = [Offer.of(idle_offer.given) for idle_offer in offered(idle, place.site.name, True)]
    free = [offer for offer in own if _queue_of(offer) == place.queue]
    if any(verdict.met for verdict in verdicts(place.wanted, Offers(free))):
        return replace(place, start=time.time())
    return replace(place, why_no_start="its idle nodes are not enough")


def tell(session: Session, routing: Routing, explain: bool) -> None:
    """Write the verdicts: those that meet by rank, then the others as they were given. Where none meets, the smallest
    change is told of each."""
    now = time.time()
    ranks: list[tuple[Place, int | None]] = [(place, rank) for rank, place in enumerate(routing.places, 1)]
    ranks += [(place, None) for place in routing.others]
    if session.as_json:
        emit("".join(json.dumps(place.record(rank, now)) + "\n" for place, rank in ranks))
        return
    change = explain or not routing.places
    emit("".join(f"{line}\n" for place, rank in ranks
                 for line in place.lines(rank, explain=explain, change=change, now=now)))


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
    return begin(client.journal, list(_candidates(routing.places)), policy=session.policy or Policy.REJECT,
                 directory=Path.cwd(), patience=terms.patience, promise=promise).token


def _candidates(places: list[Place]) -> Iterator[Candidate]:
    """The places in which a document is tried, each queue of a site once. Raises UsageError for a site of which nobody
    knows who manages it."""
    from sssjob.run.routing import Candidate
    from sssjob.xml.writer import write_document

    seen = set()
    texts: dict[int, str] = {}          # by identity of the document, which several places share
    executors: dict[str, str] = {}      # by profile
    now = time.time()
    for rank, place in enumerate(places, 1):
        if place.site.manager is None and "executor" not in place.site.run:
            raise UsageError(f"{place.path}: manager is missing: it is not known who would run the document")
        if (place.site.name, place.queue) not in seen:
            seen.add((place.site.name, place.queue))
            if id(place.wanted) not in texts:
                texts[id(place.wanted)] = write_document(place.wanted, findings=Findings())
            if place.path not in executors:
                executors[place.path] = str(settings_at(place).get("executor").value)
            yield Candidate(place.site.name, os.path.abspath(place.path), executors[place.path], place.queue,
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
