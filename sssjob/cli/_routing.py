"""What ``route`` and ``submit --sites`` share: the offers of several sites, held against one document and ranked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from sssjob.cli._dry_run import print_rehearsal
from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._options import Session, pairs
from sssjob.cli._place import Place
from sssjob.cli._prices import load, rates_of
from sssjob.cli._profiles import load_site
from sssjob.cli._route_reading import Reading
from sssjob.cli.match import offered
from sssjob.cli.offers import ANSWER_S, SilentError, ask_machine, offers_of
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.request import Offer, Offers, Verdict, verdicts
from sssjob.request.offers import ESTIMATED_WAIT
from sssjob.request.ranking import Prospect, performance_factor, ranked, weighed_s
from sssjob.request.ranking import values as values_of

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.quotes import QuotePlans
    from sssjob.cli.offers import Machine
    from sssjob.conversion.merging import Part
    from sssjob.conversion.settings import Settings
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document


#: Managers that are asked side by side.
_AT_ONCE: Final = 32
#: Seconds: what starts so soon after a manager was asked starts now, whichever of them answered first.
_AT_ONCE_S: Final = 1.0
#: What a profile says of other things than how a document is read.
_ELSEWHERE: Final = ("name", "manager", "machine", "ssh", "rates", "queues", "run")


@dataclass(slots=True)
class Routing:
    """The answer of all sites for a document, or a part of one. places: those that meet, the best one first; others:
    those that do not, as given; silent: whether a manager gave no answer; jobs: what the jobs of the part are called,
    and numbers: their places in the whole, none where it is the whole."""

    places: list[Place] = field(default_factory=list)
    others: list[Place] = field(default_factory=list)
    silent: bool = False
    jobs: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def status(self) -> int:
        """The exit status: 0 where a place meets, else 1, or 4 where one may of a manager that gave no answer."""
        return 0 if self.places else 4 if self.silent else 1


def routing_options(function: Callable[..., int]) -> Callable[..., int]:
    """``--sites``, ``--offers``, ``--starts`` and ``--together``."""
    sites = click.option("--sites", metavar="SITE,SITE...", default="",
                         help="Sites whose managers are asked what they offer: the names or files of their profiles.")
    offers = click.option("--offers", "offer_files", multiple=True, metavar="SITE=FILE",
                          help="What a site offers (may repeat): the name or file of its profile, and its offers in "
                               "any format.")
    starts = click.option("--starts", is_flag=True,
                          help="Ask the managers when the document would start; performanceFactor weighs that.")
    return sites(offers(starts(together_option(function))))


def together_option(function: Callable[..., int]) -> Callable[..., int]:
    """``--together``."""
    return click.option("--together", is_flag=True,
                        help="Have all jobs of a group go to one site, also those that do not depend on each other."
                        )(function)


def _reads(site: Site) -> str:
    """All that a profile says of how a document is read which is no record: two sites with the same read it alike."""
    return repr([(name, getattr(site, name)) for name in type(site).model_fields if name not in _ELSEWHERE])


class _OfferThere(NamedTuple):
    """An offer of a site. name: of it; queue: that it names."""

    name: str
    queue: str | None
    offer: Offer


class Choice:
    """The sites to choose from, and what they offer: each manager is asked, and each file read, once for any number of
    documents."""

    def __init__(self, session: Session, sites: str, offer_files: tuple[str, ...], asked: tuple[str, ...] = (),
                 seconds: float = ANSWER_S) -> None:
        """sites: names with commas between them; offer_files: ``SITE=FILE`` each; asked: further names; seconds: how
        long each answer of a manager may take. Raises UsageError, AccessError, SiteError."""
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
        self.seconds = seconds
        self.answers = _all_asked({name: self.sites[name] for name, file in self.files.items() if file is None},
                                  seconds)
        self.reads = {name: name if site is None else _reads(site) for name, (site, _) in self.sites.items()}
        self._offers: dict[str, list[_OfferThere]] = {}
        self._together: dict[tuple[str, ...], Offers] = {}
        self._rates: dict[str, RateSet | None] = {}
        self._executors: dict[str, str] = {}
        self._paths: dict[str, str] = {}

    @cached_property
    def plans(self) -> QuotePlans:
        """What is known of the prices of documents that were routed before."""
        from sssjob.accounting.quotes import QuotePlans

        return QuotePlans()

    def rates(self, name: str) -> RateSet | None:
        """The rates that the profile of a site names; None where it names none, or wrong ones, which are told."""
        if name not in self._rates:
            session, (site, path) = self._session, self.sites[name]
            session.site, session.site_path = site, path
            stated = site is not None and site.rates is not None
            self._rates[name] = load(session, rates_of(session, None), doubts=False) if stated else None
            session.errors += stated and self._rates[name] is None
        return self._rates[name]

    def executor(self, place: Place) -> str:
        """What submits to the site of a place. Raises UsageError where nobody knows who manages it."""
        if place.path not in self._executors:
            if place.site.manager is None and "executor" not in place.site.run:
                raise UsageError(f"{place.path}: manager is missing: it is not known who would run the document")
            self._executors[place.path] = str(settings_at(place).get("executor").value)
        return self._executors[place.path]

    def path(self, place: Place) -> str:
        """The file of the profile of a place, from the root."""
        if place.path not in self._paths:
            self._paths[place.path] = os.path.abspath(place.path)
        return self._paths[place.path]

    def together(self, names: tuple[str, ...]) -> Offers:
        """The offers of several sites that were asked for, one after the other."""
        if names not in self._together:
            self._together[names] = Offers(there.offer for name in names for there in self._offers[name])
        return self._together[names]

    def offers(self, name: str) -> list[_OfferThere] | None:
        """What a site offers; None where findings reject its file, which are told. Raises SilentError."""
        if name not in self._offers:
            session, (site, path), file = self._session, self.sites[name], self.files[name]
            assert site is not None
            session.site, session.site_path = site, path
            machine = offers_of(site, path, self.answers[name]()) if file is None else session.swept(
                session.read(file, source="auto"))
            if session.errors:
                return None
            label = file or site.name
            self._offers[name] = [_OfferThere(offered_job.job or escape(file or _queue_of(offer) or label),
                                              _queue_of(offer), offer)
                                  for offered_job in (offered(machine, label, True) if file or any(
                                      True for _ in machine.jobs()) else ())        # a site whose queues are all closed
                                  for offer in (Offer.of(offered_job.given),)]
        return self._offers[name]


def routed(session: Session, file: str, data: bytes, choice: Choice, starts: bool, failures: Mapping[str, float],
           together: bool, shaped: Callable[[Document, str], Document] = lambda document, name: document
           ) -> list[Routing] | None:
    """The places where each part of a document fits, ranked; None where findings reject it, which are told. data: the
    file. failures: site -> share of late jobs that it refused. together: all of it is one part. shaped: gives a part as
    it is to be submitted. Raises UsageError, AccessError."""
    silences, now = _Silences(session), time.time() if starts else None
    readings: dict[str, list[Reading]] = {}        # of each part, once for all sites that read it alike
    reading_of: dict[str, list[Reading]] = {}
    is_record = data.lstrip()[:1] not in (b"<", b"#")
    for name in choice.files:
        with silences:
            if choice.offers(name) is not None:
                session.site, session.site_path = choice.sites[name]
                key = name if is_record else choice.reads[name]         # records are of a machine
                if key not in readings:
                    parts_read = _parts(session.swept(session.read(file, data)), together or session.errors > 0)
                    shaped_parts = [shaped(part.document, file) for part in parts_read]
                    if session.errors:
                        return None
                    readings[key] = [Reading.of(*each, choice.plans)
                                     for each in zip(shaped_parts, parts_read, strict=True)]
                reading_of[name] = readings[key]
        if session.errors:
            return None
    if len({tuple(reading.numbers for reading in several) for several in readings.values()}) > 1:
        return routed(session, file, data, choice, starts, failures, True, shaped)      # sites read it as unlike groups
    answers: dict[tuple[str, tuple[int, ...]], list[Verdict]] = {}
    for several in readings.values():
        names = tuple(name for name, own in reading_of.items() if own is several)
        for reading in several:
            answers |= _answers(session, reading, choice, names)
    places: dict[tuple[int, ...], tuple[Reading, list[Place]]] = {}        # by the places of the jobs of the part
    for name, several in reading_of.items():
        with silences:
            for reading in several:
                places.setdefault(reading.numbers, (reading, []))[1].extend(_places(
                    session, reading, name, choice, answers[name, reading.numbers], now, failures))
        if session.errors:
            return None
    return _in_turn(list(places.values()), silences.any) or [Routing(silent=silences.any)]


def _in_turn(several: Sequence[tuple[Reading, list[Place]]], silent: bool) -> list[Routing]:
    """The answer for each part, one after the other: what those before it take, each at the best of its places, is not
    free for it there. silent: as of ``Routing``."""
    from sssjob.request.taking import Taken, share_nodes

    routings = []
    taken: dict[str, dict[str | None, tuple[Offer, Taken]]] = {}        # at each site, in each queue
    shared: dict[tuple[int, int], bool] = {}        # by identity of two offers

    def beside(offer: Offer, other: Offer) -> bool:
        """Whether what is taken of one offer is not free in another one of the site."""
        pair = id(offer), id(other)
        if pair not in shared:
            shared[pair] = share_nodes(offer, other)
        return shared[pair]

    for reading, own in several:
        met = [place for place in own if place.met]
        needed = reading.side_by_side() if len(several) > 1 else Taken()
        for place in met if taken else ():
            before = Taken()
            for queue, (offer, amounts) in taken.get(place.path, {}).items():
                if queue == place.queue or beside(offer, place.verdict.offer):
                    before.add(amounts)
            place.turn = before.turn(place.verdict.offer, needed)
            if place.start is not None:
                place.start += place.turn * before.seconds
        best_first = _ranked(met)
        for place in best_first[:1]:
            taken.setdefault(place.path, {}).setdefault(place.queue, (place.verdict.offer, Taken()))[1].add(needed)
        routings.append(Routing(best_first, [place for place in own if not place.met], silent, reading.jobs,
                                reading.numbers))
    return routings


def _parts(document: Document, together: bool) -> list[Part]:
    from sssjob.conversion.merging import Part, parts

    return [Part(document)] if together else parts(document)


class _Silences:
    """Go on beside managers that give no answer: each is told. any: whether there was one."""

    __slots__ = ("_session", "any")

    def __init__(self, session: Session) -> None:
        self._session = session
        self.any = False

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SilentError):
            return False
        problem(str(error), as_json=self._session.as_json, status=4)
        self.any = True
        return True


def _all_asked(sites: Mapping[str, tuple[Site | None, str]], seconds: float) -> dict[str, Callable[[], Machine]]:
    """What gives the answer of each manager, or raises why there is none. All are asked at once, so that one that
    hangs keeps no other waiting. seconds: how long each answer may take."""
    from concurrent.futures import ThreadPoolExecutor

    if not sites:
        return {}
    with ThreadPoolExecutor(min(len(sites), _AT_ONCE)) as pool:
        return {name: pool.submit(ask_machine, site, path, seconds).result for name, (site, path) in sites.items()
                if site is not None}


def _answers(session: Session, reading: Reading, choice: Choice, names: tuple[str, ...]
             ) -> dict[tuple[str, tuple[int, ...]], list[Verdict]]:
    """The verdicts of sites that read a part alike, by their names and the places of its jobs; findings are told."""
    findings = Findings(reading.document.path)
    by_offer = iter(verdicts(reading.requests, choice.together(names), findings=findings))
    answers = {(name, reading.numbers): list(islice(by_offer, len(choice.offers(name) or ()))) for name in names}
    session.report([finding for finding in findings if not session.knows(finding)])
    return answers


def _places(session: Session, reading: Reading, name: str, choice: Choice, answers: Sequence[Verdict],
            now: float | None, failures: Mapping[str, float]) -> list[Place]:
    """The offers of one site for one part. answers: their verdicts; now: when all managers are asked for starts, None
    where none is."""
    site, path = session.site, session.site_path = choice.sites[name]
    assert site is not None
    rates = choice.rates(name)
    prices = reading.priced(rates)
    share = failures.get(site.name, 0.0)
    places = [Place(site, path, there.name, there.queue, reading.document, verdict, *prices, failures=share)
              for there, verdict in zip(choice.offers(name) or (), answers, strict=True)]
    if rates is not None and rates.by_queue:
        places = list(_priced(places, rates, reading))
    if now is None:
        return places
    idle = None if choice.files[name] else offers_of(site, path, choice.answers[name](), idle=True)
    return [_started(session, place, idle, choice.seconds, now) if place.met else place for place in places]


def _queue_of(offer: Offer) -> str | None:
    return next((p.text for p in offer.properties.get("Queue", ())), None)


def _priced(places: list[Place], rates: RateSet, reading: Reading) -> Iterator[Place]:
    """Places with the prices of their queues, where these make a difference, of those that meet."""
    for place in places:
        prices, price, currency, why = reading.priced(rates, place.queue if place.met else None)
        yield replace(place, prices=prices, price=price, currency=currency, why=why)


def _ranked(places: list[Place]) -> list[Place]:
    """Those that meet, the best one first."""
    if not places:
        return []
    requests = places[0].verdict.requests
    factor = performance_factor(requests)
    seconds = weighed_s(requests) if factor else 1      # of a factor that there is not
    prospects = [Prospect(place.verdict.score, place.price, place.currency, place.start, place.failures, place.turn)
                 for place in places]
    for place, value in zip(places, values_of(prospects, factor, seconds), strict=True):
        place.value = value
    return [places[number] for number in ranked(prospects, factor, seconds)]


def settings_at(place: Place) -> Settings:
    """The settings of a run at a place."""
    from sssjob.run.configuring import load_settings

    return load_settings((place.site, place.path))


def _started(session: Session, place: Place, idle: Document | None, seconds: float, now: float) -> Place:
    """A place with the time at which the document would start: what Slurm says of a submission that is not made, else
    now, where idle nodes of the queue would do. idle: the offers of those, None where nobody was asked, and the offer
    itself may say when jobs start; seconds: how long an answer may take."""
    from sssjob.run.starts import NoEstimateError, estimated_start

    if idle is None:
        wait = place.verdict.offer.total(ESTIMATED_WAIT)
        return replace(place, why_no_start="its manager is not asked") if wait is None else replace(
            place, start=now + float(wait))
    try:
        start = estimated_start(place.going(), settings_at(place), session.policy, seconds)
    except NoEstimateError as error:
        return replace(place, why_no_start=str(error))
    if start is not None:
        return replace(place, start=now if start <= time.time() + _AT_ONCE_S else start)
    own = [Offer.of(job) for job, _ in idle.jobs()]         # none where nothing is idle
    free = [offer for offer in own if _queue_of(offer) == place.queue]
    if any(verdict.met for verdict in verdicts(place.wanted, Offers(free))):
        return replace(place, start=now)
    return replace(place, why_no_start="its idle nodes are not enough")


def rehearsed(session: Session, routings: list[Routing], file: str) -> int:
    """Print what would go out to the best place of each part; the exit status."""
    status = 0
    for number, routing in enumerate(routings):
        best = routing.places[0]
        if routing.numbers and not session.as_json:
            emit(f"{'' if number == 0 else chr(10)}{escape(', '.join(routing.jobs), 200)}: {escape(best.site.name)}\n")
        status = max(status, print_rehearsal(session, best.going(), file, settings_at(best)))
    return status


def tell(session: Session, routing: Routing, explain: bool) -> None:
    """Write the verdicts: those that meet by rank, then the others as they were given, those of a part behind the names
    of its jobs. Where none meets, the smallest change is told of each."""
    now = time.time()
    ranks: list[tuple[Place, int | None]] = [(place, rank) for rank, place in enumerate(routing.places, 1)]
    ranks += [(place, None) for place in routing.others]
    if session.as_json:
        jobs = {"jobs": routing.jobs} if routing.numbers else {}
        emit("".join(json.dumps(place.record(rank, now) | jobs) + "\n" for place, rank in ranks))
        return
    if routing.numbers:
        emit(f"{escape(', '.join(routing.jobs), 200)}:\n")
    change = explain or not routing.places
    emit("".join(f"{line}\n" for place, rank in ranks
                 for line in place.lines(rank, explain=explain, change=change, now=now)))
