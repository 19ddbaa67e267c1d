"""What ``route`` and ``submit --sites`` share: the offers of several sites, held against one document and ranked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._dry_run import print_rehearsal
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, lines, opened, stopped
from sssjob.cli._options import Session, pairs
from sssjob.cli._prices import load, money, quoted, rates_of
from sssjob.cli._profiles import load_site
from sssjob.cli.match import offered
from sssjob.cli.offers import SilentError, ask_machine, offers_of
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.request import Offer, Offers, Verdict, requests_in, verdicts
from sssjob.request.changing import smallest_change
from sssjob.request.ranking import Prospect, performance_factor, ranked, weighed_s
from sssjob.request.ranking import values as values_of

if TYPE_CHECKING:
    from sssjob.cli.offers import Machine
    from sssjob.conversion.settings import Settings
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.run.client import Client
    from sssjob.run.routing import Candidate
    from sssjob.run.standing import Submission

__all__ = ["Place", "Routing", "routed", "routing_options", "settings_at", "submit_routed", "tell"]


#: Managers that are asked side by side.
_AT_ONCE: Final = 32


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
        known = [price for price in self.prices if price is not None]
        return sum(known, Decimal(0)) if len(known) == len(self.prices) and not self.why else None

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
    offers = click.option("--offers", "given", multiple=True, metavar="SITE=FILE",
                          help="What a site offers (may repeat): the name or file of its profile, and its offers in "
                               "any format.")
    starts = click.option("--starts", is_flag=True,
                          help="Ask the managers when the document would start; performanceFactor weighs that.")
    return sites(offers(starts(function)))


def routed(session: Session, file: str, sites: str, given: tuple[str, ...], asked: tuple[str, ...], starts: bool,
           failures: Mapping[str, float]) -> Routing | None:
    """The places where a document fits, ranked; None where findings reject it, which are told. sites: names with commas
    between them; given: ``SITE=FILE`` each; asked: further names. failures: site -> share of late jobs that it refused.
    Raises UsageError, AccessError, SiteError."""
    sources: Mapping[str, str] = pairs(given, "--offers")
    named = [*(name.strip() for name in sites.split(",") if name.strip()), *asked]
    chosen: dict[str, str | None] = {**sources, **dict.fromkeys(named)}
    if len(chosen) < len(given) + len(named):
        raise UsageError("a site is named twice")
    if not chosen:
        raise UsageError("no site to choose from: --sites SITE,SITE asks them, --offers SITE=FILE says what one offers")
    once([file, *sources.values()])
    data = read_bytes(file)
    routing = Routing()
    places: list[Place] = []
    answers = _all_asked({name: load_site(name) for name, offers in chosen.items() if offers is None})
    for name, offers in chosen.items():
        try:
            answer = answers[name]() if offers is None else None
            places += _places(session, file, data, name, offers, answer, starts, failures)
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


def _places(session: Session, file: str, data: bytes, name: str, offers: str | None, answer: Machine | None,
            starts: bool, failures: Mapping[str, float]) -> list[Place]:
    """The offers of one site. offers: the file that states them; answer: of its manager where there is none."""
    session.site, session.site_path = load_site(name)
    site, path = session.site, session.site_path
    assert site is not None
    wanted = session.swept(session.read(file, data))
    machine = offers_of(site, path, answer) if answer is not None else session.swept(
        session.read(str(offers), source="auto"))
    if session.errors:
        return []
    prices, currency, why = _prices(session, wanted)
    offers_there = list(offered(machine, offers or site.name, True))
    findings = Findings(wanted.path)
    answers = verdicts(wanted, Offers(Offer.of(one.given) for one in offers_there), findings=findings)
    session.report([finding for finding in findings if not session.knows(finding)])
    places = [Place(site, path, one.job or escape(offers or site.name), _queue_of(verdict.offer), wanted, verdict,
                    prices, currency, why, failures=failures.get(site.name, 0.0))
              for one, verdict in zip(offers_there, answers, strict=True)]
    if not starts:
        return places
    idle = None if answer is None else offers_of(site, path, answer, idle=True)
    return [_started(session, place, idle) if place.met else place for place in places]


def _queue_of(offer: Offer) -> str | None:
    return next((p.text for p in offer.properties.get("Queue", ())), None)


def _prices(session: Session, wanted: Document) -> tuple[tuple[Decimal | None, ...], str, str]:
    """What each job of a document would cost at the site of the session, in which currency, and why one has no price:
    its profile names no rates, or it cannot be quoted. Where the rates go by the time of day, jobs start now."""
    from sssjob.accounting import Uncharged

    rates = None
    if session.site is not None and session.site.rates is not None:
        rates = load(session, rates_of(session, None), doubts=False)
        session.errors += rates is None
    if rates is None:
        return (), "", "the profile names no rates"
    prices: list[Decimal | None] = []
    why = ""
    for job, defaults in wanted.jobs():
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
    now, where idle nodes of the queue would do. idle: the offers of those, None where nobody was asked."""
    from sssjob.run.routing import placed
    from sssjob.run.starts import NoEstimateError, estimated_start

    if idle is None:
        return replace(place, why_no_start="its manager is not asked")
    try:
        start = estimated_start(placed(place.wanted, place.queue), settings_at(place), session.policy)
    except NoEstimateError as error:
        return replace(place, why_no_start=str(error))
    if start is not None:
        return replace(place, start=start)
    own = [Offer.of(one.given) for one in offered(idle, place.site.name, True)]
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


def submit_routed(session: Session, file: str, sites: str, given: tuple[str, ...], *, starts: bool,
                  patience: float | None, dry_run: bool, retries: int | None, max_queued: int | None) -> int:
    """Submit a document to the best of several sites; the exit status. patience: seconds that it may wait there."""
    from sssjob.run.routing import advance, begin, placed, refusals

    with opened(retries=retries, max_queued=max_queued) as client:
        routing = routed(session, file, sites, given, (), starts, refusals(client.journal))
        if routing is None:
            return session.status()
        if not routing.places:
            tell(session, routing, False)
            return 4 if routing.silent else 1
        if dry_run:
            best = routing.places[0]
            return print_rehearsal(session, placed(best.wanted, best.queue), file, settings_at(best))
        candidates = list(_candidates(routing.places))
        route = begin(client.journal, candidates, policy=session.policy or Policy.REJECT, directory=Path.cwd(),
                      patience=patience)
        client.findings = Findings(file)
        submission = advance(client, route.token)
        session.report(client.findings)
        return _told(session, client, route.token, submission)


def _candidates(places: list[Place]) -> Iterator[Candidate]:
    """The places in which a document is tried, each queue of a site once. Raises UsageError for a site of which nobody
    knows who manages it."""
    from sssjob.run.routing import Candidate, placed
    from sssjob.xml.writer import write_document

    seen = set()
    now = time.time()
    for rank, place in enumerate(places, 1):
        if place.site.manager is None and "executor" not in place.site.run:
            raise UsageError(f"{place.path}: manager is missing: it is not known who would run the document")
        if (place.site.name, place.queue) not in seen:
            seen.add((place.site.name, place.queue))
            text = write_document(placed(place.wanted, place.queue), findings=Findings())
            yield Candidate(place.site.name, os.path.abspath(place.path),
                            str(settings_at(place).get("executor").value), place.queue, text,
                            f"rank {rank} of {len(places)}, {', '.join(place.known(now))}",
                            tuple(None if price is None else money(price, place.currency) for price in place.prices))


def _told(session: Session, client: Client, token: str, submission: Submission | None) -> int:
    """Print the ids of a submission that was routed, and why it is not at the places before; the exit status."""
    from sssjob.run.routing import state_of

    route = state_of(client.journal, token)
    for reason in route.reasons if not session.quiet else ():
        problem(reason, as_json=session.as_json, status=0)
    if submission is None or submission.entry is None:
        problem("no site took it", as_json=session.as_json, status=5)
        return 5
    rows = client.journal.rows_of(submission.entry.number)
    emit(lines([row.record() for row in rows]) if session.as_json
         else "".join(f"{client.journal.name_of(row)}\n" for row in rows))
    return stopped(client, ended_badly([submission], session.as_json)) or session.status()
