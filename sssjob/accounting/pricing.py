"""What a job costs: a charge by what was delivered, a quote by what is requested, both by one formula.

    charge = (sum of resources over time + sum of usage) x multipliers + fees

A resource over time is amount x rate x its consumptionRate x its duration. Where a calendar parts the time of a job,
each category is charged for its share of the time, with its own rates and multipliers. Everything is exact until the
charge is rounded once. Source: SSS job object 3.1.0, section 7; Gold's types of rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from sssjob.accounting.amounts import Amount, NotChargeable, Reason
from sssjob.accounting.arithmetic import Figure, call, number, plain, product, ratio, total
from sssjob.accounting.billing import billing
from sssjob.accounting.charges import Charge, Item, Uncharged, additive, rounded_charge
from sssjob.accounting.elements import elements_of, repeated, together
from sssjob.accounting.facts import RATES_RULE, Facts, Lookups
from sssjob.accounting.rates import Billing, Named, Plan, Prices, Rate, RateSet
from sssjob.accounting.times import TimeError, parts
from sssjob.document.arrays import array_of
from sssjob.document.endings import PUT_BACK
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobDefaults
from sssjob.document.states import has_not_begun, job_state
from sssjob.lrm.slurm import STATES
from sssjob.lrm.states import Stage

if TYPE_CHECKING:       # a charge asks for nothing
    from sssjob.request.levels import Request

__all__ = ["Charge", "Item", "Quotation", "Uncharged", "additive", "charge", "price_of", "quote"]

#: Amounts of which each job has some, so that one which does not say how much is charged less than it had.
_OF_EACH: Final = ("Processors", "NodeCount", "Memory")
#: Beginnings of StatusMessage (decisions 33), and states of Slurm, that say that the system failed, or that an attempt
#: was in vain.
SYSTEM_FAULTS: Final = ("node-failure", "boot")
_FAULT_STATES: Final = tuple(word for word, state in STATES.items() if state.reason in SYSTEM_FAULTS)
IN_VAIN: Final = (*SYSTEM_FAULTS, *PUT_BACK)
_VAIN_STATES: Final = tuple(word for word, state in STATES.items() if state.reason in IN_VAIN
                            or state.stage is Stage.AGAIN or word == "REQUEUE_HOLD")


def charge(job: Job, rates: RateSet, defaults: JobDefaults | None = None, *,
           running: bool = False, lookups: Lookups | None = None) -> Charge | Uncharged:
    """The charge of a job by what was delivered to it. running: of one that still runs what it has used so far, if it
    says for how long it has run; lookups: is told what the charge goes by.

    An array whose elements say when they ran costs what they come to, each of them as the job of its own that it is in
    records: fees, minimum and rounding are those of each.
    """
    literal = rates.profile == "gold"
    elements = () if literal else elements_of(job, rates)
    if elements:
        return together([price_of(Facts(effective(element, defaults), "Delivered"), rates) for element in elements])
    facts = Facts(effective(job, defaults), "Delivered", literal=literal, lookups=lookups)
    return price_of(facts, rates, running=running)


def quote(job: Job, rates: RateSet, defaults: JobDefaults | None = None, *,
          start: int | None = None) -> Charge | Uncharged:
    """The charge that a job will have if it gets what it requests. start: epoch seconds, where no time is said.

    An array costs what its elements come to, for each of them runs, and is recorded, as a job of its own.
    """
    return Quotation(job, defaults).by(rates, start=start)


class Quotation:
    """A job whose price is asked by any number of rates: what it asks for is worked out once."""

    def __init__(self, job: Job, defaults: JobDefaults | None = None, request: Request | None = None) -> None:
        """request: of the job, where it is known, bare properties taken as requested."""
        self._view, self._request, self._array = effective(job, defaults), request, array_of(job, defaults)
        self._facts: dict[bool, Facts] = {}     # by whether they are read as they stand

    def by(self, rates: RateSet, *, start: int | None = None) -> Charge | Uncharged:
        """As ``quote``."""
        try:
            facts = self.facts(literal=rates.profile == "gold")
        except NotChargeable as error:
            return Uncharged(error.reason, error.detail)
        facts.notes[:] = [note for note in facts.notes if note.rule != RATES_RULE]      # of other rates
        quoted = price_of(facts, rates, start)
        return quoted if self._array is None or isinstance(quoted, Uncharged) else repeated(quoted, self._array.text)

    def facts(self, *, literal: bool = False) -> Facts:
        """What the job says that rates can ask for. literal: read as it stands. Raises NotChargeable."""
        return self._facts.get(literal) or self._facts.setdefault(
            literal, Facts(self._view, "Requested", literal=literal, request=self._request))

    @property
    def repeats(self) -> bool:
        """Whether it is an array, which costs what its elements come to."""
        return self._array is not None


def price_of(facts: Facts, rates: RateSet, start: int | None = None, *, running: bool = False) -> Charge | Uncharged:
    """What the facts of one job come to. start, running: as of ``quote`` and ``charge``."""
    try:
        stated_charge = facts.view.value("Charge") if rates.profile == "gold" else None
        if isinstance(stated_charge, Decimal):
            exact = Figure(f"{plain(stated_charge)} [Charge]", *stated_charge.as_integer_ratio())
            return rounded_charge(exact, rates, ())
        return _Pricing(facts, rates, start, running).charge()
    except NotChargeable as error:
        return Uncharged(error.reason, error.detail, tuple(facts.notes))


class _Share(NamedTuple):
    """Part of the time of a job: what holds in it."""

    category: str | None
    seconds: int
    prices: Prices


@dataclass(slots=True)
class _Pricing:
    """One job by one set of rates. category, share: what part of the time is being charged, (seconds, of seconds);
    plan: the rates that hold; shown: how items name the part; whole: the job's own duration; billed: amounts
    of Slurm's billing by facts; met: whether any rate was for the job, missing: what else would have been priced;
    place: what is being charged of a job whose task groups have multipliers of their own, the job itself or one of
    them."""

    facts: Facts
    rates: RateSet
    quoted_start: int | None
    running: bool = False
    items: list[Item] = field(default_factory=list)
    category: str | None = None
    share: tuple[int, int] | None = None
    plan: Plan = field(init=False)
    shown: str | None = None
    whole: Figure | None = None
    billed: dict[int, list[tuple[Amount, Figure]]] = field(default_factory=dict)
    missing: list[Rate] = field(default_factory=list)
    met: bool = False
    place: Facts | None = None

    def charge(self) -> Charge:
        """The charge. Raises NotChargeable."""
        facts = self.facts
        if facts.slot == "Delivered":
            self._ended()
            if (some_runs := facts.some_runs(self.rates.attempts)) is not None:
                self.whole = self._charged(*some_runs)
        shares = self._shares()
        span = sum(share.seconds for share in shares)
        timed = []
        for share in shares:
            self._enter(share)
            self.share = (share.seconds, span) if len(shares) > 1 else None
            timed += self._multiplied()
        if len(shares) > 1:         # fees are those of the beginning
            self._enter(shares[0])
        self.share = None
        exact = total([*timed, *self._terms("F")])
        self._nothing()
        if self.rates.minimum and exact.value < Fraction(self.rates.minimum):
            exact = call("max", exact, number(self.rates.minimum, "minimum"))
        return rounded_charge(exact, self.rates, tuple(self.items), tuple(facts.notes), self._unsaid())

    def _enter(self, share: _Share) -> None:
        """Charge a part of the time from now on."""
        self.category, self.plan = share.category, self._rates(share.prices)
        self.shown = ", ".join(filter(None, (share.category, share.prices.name))) or None

    def _ended(self) -> None:
        """Refuse a job that is not over."""
        stated = self.facts.value("State")
        state = job_state(stated).state
        if has_not_begun(stated):
            raise NotChargeable(Reason.NOT_STARTED, f"State is {state}")
        if state in ("Running", "Suspended") and not (self.running and self.facts.named("Duration")):
            raise NotChargeable(Reason.NOT_ENDED, f"State is {state}")
        if self.facts.start() is None and not self.facts.named("Duration") and (
                state == "Completed" or self.facts.end() is not None):
            raise NotChargeable(Reason.NOT_STARTED, "it ended without StartTime and Duration")
        self._free()

    def _free(self) -> None:
        """Refuse what the rates do not charge: faults of the system, attempts that were in vain."""
        rates = self.rates
        if rates.system_faults == "charged" and rates.attempts != "committed":
            return
        why, state = str(self.facts.value("StatusMessage") or ""), self.facts.native_state
        word = why.partition(":")[0].strip()
        if rates.system_faults == "free" and (word in SYSTEM_FAULTS or state in _FAULT_STATES):
            raise NotChargeable(Reason.SYSTEM_FAULT, f"it ended by {word or state}, which the rates leave free")
        if rates.attempts == "committed" and (word in IN_VAIN or state in _VAIN_STATES):
            raise NotChargeable(Reason.NOT_COMMITTED, f"this attempt ended by {word or state} and was in vain")

    def _nothing(self) -> None:
        """Refuse a job of which the rates price nothing."""
        if self.met or self.rates.profile == "gold":
            return
        names = ", ".join(dict.fromkeys(rate.name for rate in self.missing))
        raise NotChargeable(Reason.NOTHING_PRICED, f"not said: {names}" if names else "no rate is for this job")

    def _unsaid(self) -> tuple[str, ...]:
        """Rates for what each job has, of which this one says nothing that any rate prices."""
        unsaid = [rate for rate in self.missing if rate.canonical in _OF_EACH]
        priced_names = {item.of.canonical for item in self.items if item.of is not None} if unsaid else ()
        return tuple(dict.fromkeys(rate.label for rate in unsaid if rate.canonical not in priced_names))

    # -- which rates
    def _rates(self, prices: Prices) -> Plan:
        """All rates, those of the quote that the job names in place of the general ones."""
        rates = self.rates
        name = self.facts.value("Quote")
        if name is None or not rates.quote or not isinstance(name, str):
            return prices.plan
        named = rates.quote.get(name)
        why = "is not known" if named is None else self._void(named)
        if named is None or why:
            self.facts.note(RATES_RULE, "Quote", f"Quote {name} {why}: the general rates hold")
            return prices.plan
        guaranteed = {r.key: r for r in named.rate}
        kept = [guaranteed.pop(r.key, r) for r in prices.rates]
        return Plan([*kept, *guaranteed.values()])

    def _void(self, named: Named) -> str:
        """Why a quote does not hold for the job; empty: it does."""
        for name, value in named.when.items():
            if value not in self.facts.texts(name):
                return f"is for {name} {value}"
        start = self._start()
        if named.expires is not None and start is not None and start >= named.expires.timestamp():
            return f"expired at {named.expires.isoformat()}"
        return ""

    def _start(self) -> int | None:
        """When the job started; of a quote, when it may."""
        facts, start = self.facts, self.facts.start()
        if start is not None:
            return start
        if facts.slot == "Delivered":
            end, ran = facts.end(), facts.duration
            return None if end is None or ran is None else end - int(ran)
        eligible = facts.value("EligibleTime")
        return eligible if self.quoted_start is None and isinstance(eligible, int) else self.quoted_start

    # -- time
    def _shares(self) -> list[_Share]:
        """The parts of the time of the job in which other prices or another part of the day holds; one where it is all
        the same."""
        rates = self.rates
        if not rates.price_list:
            return [_Share(category, seconds, rates.prices[0]) for category, seconds in self._categories(None)]
        if rates.valid_by == "split":
            start, end = self._span()
            cuts = [start, *(p.since for p in rates.prices if p.since is not None and start < p.since < end), end]
            shares = [_Share(category, seconds, rates.prices_at(first)) for first, last in pairwise(cuts)
                      for category, seconds in self._categories((first, last))]
        else:
            prices = rates.prices_at(self._moment())
            shares = [_Share(category, seconds, prices) for category, seconds in self._categories(None)]
        for share in shares:
            if not share.prices.rates:
                raise NotChargeable(Reason.NO_RATES, "no price list holds at the time of the job")
        return shares

    def _moment(self) -> int:
        """When prices are looked up: in the first second of the job or in its last one, as the rates say."""
        facts = self.facts
        if self.rates.valid_by == "end" and facts.slot == "Delivered" and facts.start() is None:
            end = facts.end()
            if end is not None:
                return end - 1
        start, end = self._span()
        return start if self.rates.valid_by == "start" else max(start, end - 1)

    def _span(self) -> tuple[int, int]:
        """Start and end of the job. Raises NotChargeable where they are not known."""
        facts, start = self.facts, self._start()
        if start is None:
            names = "StartTime" if facts.slot == "Delivered" else "a start (--start, EligibleTime)"
            raise NotChargeable(Reason.NO_START, f"rates go by the time of day or by date, and {names} is not said")
        end = facts.end()
        if facts.start() is None or end is None:
            end = start + int(facts.duration or 0)
        if end < start:
            raise NotChargeable(Reason.TIMES_CONTRADICTORY, f"EndTime {end} is before StartTime {start}")
        return start, end

    def _categories(self, part: tuple[int, int] | None) -> list[tuple[str | None, int]]:
        """(category, seconds) that the job, or the part of it between two times, is parted into; one where no calendar
        parts it."""
        rates, facts = self.rates, self.facts
        if not rates.dated or rates.timezone is None:
            stated = facts.value("TimeCategory")
            seconds = 0 if part is None else part[1] - part[0]
            return [(stated if isinstance(stated, str) and not rates.time_category else None, seconds)]
        start, end = self._span()
        try:
            if rates.split == "border":
                return parts(*(part or (start, end)), rates.time_category, rates.timezone)
            [(category, _)] = parts(start, start, rates.time_category, rates.timezone)
        except TimeError as error:
            raise NotChargeable(Reason.TIMES_CONTRADICTORY, str(error)) from None
        return [(category, 0 if part is None else part[1] - part[0])]

    def _duration(self, amount: Amount | None) -> Figure:
        """Seconds to charge: those of the amount itself, else of the job."""
        if amount is not None and amount.duration is not None:
            return self._charged(amount.duration, f"duration of {amount.name}")
        if self.whole is None:
            ran = self.facts.duration
            if ran is None:
                raise NotChargeable(Reason.NO_DURATION, "Duration is not said" if self.facts.slot == "Requested" else
                                    "neither Duration nor StartTime and EndTime are said")
            self.whole = self._charged(ran, "Duration")
        return self.whole

    def _charged(self, ran: Decimal, label: str) -> Figure:
        """Seconds by the rules of the rates."""
        rates, term = self.rates, number(ran, label)
        if ran and ran < rates.minimum_duration:
            term = call("max", term, number(rates.minimum_duration, "minimum"))
        if term.value % rates.granularity:
            grain = number(rates.granularity, "granularity")
            term = product(call("ceil", ratio(term, grain)), grain)
        return term

    # -- terms
    def _multiplied(self) -> list[Figure]:
        """What multipliers apply to, times these: at once, or for the job itself and for each of its task groups where
        they have other multipliers, as components of a job in several queues."""
        facts, names = self.facts, {rate.canonical for rate in self.plan.kinds["M"] if rate.type[0] == "N"}
        names.update(name for rate in self.plan.kinds["M"] for name in rate.when)
        names.discard("TimeCategory")
        if not names or all(part.texts(name) == facts.texts(name) for part in facts.parts for name in names):
            return [product(self._base(), *self._terms("M"))]
        terms = []
        for self.place in (facts, *facts.parts):
            base = self._base()
            if base.value:
                terms.append(product(base, *self._terms("M")))
        self.place = None
        return terms

    def _base(self) -> Figure:
        """What multipliers apply to: resources over time (their sum, or the dearest alone) and usage."""
        resources = [total(terms) for terms in self._by_rate("R") if terms]
        if self.rates.combine == "max" and len(resources) > 1:
            resources = [call("max", *resources)]
        return total([*resources, *self._terms("U")])

    def _terms(self, kind: str) -> list[Figure]:
        """The terms of all rates of a kind: R, U, M, F."""
        return [term for terms in self._by_rate(kind) for term in terms]

    def _by_rate(self, kind: str) -> Iterator[list[Figure]]:
        category = self.shown if self.share is not None or self.rates.price_list else None
        for rate in self.plan.kinds[kind]:
            terms = list(self._named(rate) if rate.type[0] == "N" else self._valued(rate))
            if self.share is not None and kind not in "MF":
                terms = [self._shared(t) for t in terms]
            self.met = self.met or (bool(terms) and kind != "M")
            self.items += [Item(rate.label, t.text, t.value, category, rate) for t in terms]
            yield terms

    def _shared(self, term: Figure) -> Figure:
        """As much of a term as lies in the category."""
        if self.share is None:
            return term
        part, span = self.share
        return ratio(product(term, number(part, f"s {self.category or 'otherwise'}")), number(span, "s in all"))

    def _named(self, rate: Rate) -> Iterator[Figure]:
        """A name-based rate, once for each value of the property that it is for."""
        facts = self.place or self.facts
        if rate.type[2] != "M":
            if self.place not in (None, self.facts):        # of the whole job, once
                return
            facts = self.facts
        texts = self._texts(facts, rate.canonical)
        siblings = {r.instance for r in self.plan.kin[rate.type, rate.canonical]} if texts else set()
        hits = [t for t in texts if t == rate.instance or (rate.instance == "*" and t not in siblings)]
        if texts and rate.canonical != "TimeCategory" and "*" not in siblings and not siblings.intersection(texts):
            self.facts.note(RATES_RULE, rate.name, f"{rate.type} {rate.name} has no rate for {texts[0]}")
        if self._when(facts, rate):
            for _ in hits:
                yield self._rated(rate, None, None)

    def _valued(self, rate: Rate) -> Iterator[Figure]:
        """A value-based rate, once for each amount of its property; where the job has none, those of its parts."""
        stated = False
        for facts in self._where(self.facts, rate):
            amounts = self._amounts(facts, rate)
            stated = stated or bool(amounts)
            if amounts and self._is_here(facts, rate) and self._when(facts, rate):
                for amount, term in amounts:
                    yield self._rated(rate, amount, term)
        if not stated and rate.type[2] not in "MF" and self._when(self.facts, rate):
            self.missing.append(rate)
            if rate.required:
                raise NotChargeable(Reason.AMOUNT_MISSING, f"{rate.name} is not said, and {rate.label} requires it")

    def _is_here(self, facts: Facts, rate: Rate) -> bool:
        """Whether amounts there are part of what is being charged; multipliers are of the whole job."""
        while facts.outer is not None and facts.outer is not self.facts:
            facts = facts.outer
        return self.place is None or rate.type[2] == "M" or facts is self.place

    def _where(self, facts: Facts, rate: Rate) -> list[Facts]:
        """Where the amounts of a rate are: in the job, else in its parts; of what is asked for in both, for there each
        amount of the whole job is said at one place."""
        own = [facts] if self._amounts(facts, rate) else []
        if own and (facts.asked is None or not facts.asked.adds(rate.canonical)):
            return own
        return own + [where for part in facts.parts for where in self._where(part, rate)] if facts.parts else own

    def _amounts(self, facts: Facts, rate: Rate) -> Sequence[tuple[Amount, Figure]]:
        """The amounts that a rate prices, in its unit; the same in every category."""
        if rate.canonical != "Billing" or self.rates.billing is None:
            return facts.figures(rate)
        if id(facts) not in self.billed:
            self.billed[id(facts)] = self._billing(facts, self.rates.billing)
        return self.billed[id(facts)]

    def _billing(self, facts: Facts, weights: Billing) -> list[tuple[Amount, Figure]]:
        term = billing(facts, weights)
        if term is not None and facts.asked is not None and facts.outer is None:    # the job asks for some itself
            term = billing(facts.entire, weights)
        return [] if term is None else [(Amount("Billing", Decimal(0)), term)]

    def _rated(self, rate: Rate, amount: Amount | None, term: Figure | None) -> Figure:
        rated = rate.term
        if term is not None:
            rated = product(term, rated)
        if not rate.timed:
            return rated
        if rate.benchmark is not None:
            rated = self._normalised(rated, rate.benchmark)
        consumption = self._consumption(amount)
        if consumption is not None:
            rated = product(rated, number(consumption, "consumptionRate"))
        rated = product(rated, self._duration(amount))
        return rated if rate.seconds is None else ratio(rated, rate.seconds)

    def _consumption(self, amount: Amount | None) -> Decimal | Fraction | None:
        """The fraction used: of the amount, else (Gold's element ConsumptionRate) of the job."""
        own: Decimal | Fraction | None = None if amount is None else amount.consumption
        if own is None:
            whole = self.facts.amounts(_CONSUMPTION)
            own = whole[0].value if whole else None
        return None if own == 0 and self.rates.profile == "gold" else own

    def _normalised(self, term: Figure, name: str) -> Figure:
        machine = self.facts.value("Machine")
        table = self.rates.benchmark[name]
        share = self._features() if table.features else None
        if share is not None:
            return ratio(product(term, share), number(table.reference, f"{name} reference"))
        score = table.machine.get(str(machine))
        if score is None:
            raise NotChargeable(Reason.NO_BENCHMARK, f"no {name} of Machine {machine}" if machine else
                                f"{name} goes by Machine, which is not said")
        return ratio(product(term, number(score, f"{name} of {machine}")), number(table.reference, f"{name} reference"))

    def _features(self) -> Figure | None:
        """The score of a processor by what the job states: its share of the benchmark over its processors."""
        share, processors = (self.facts.chosen(name) for name in ("hs06_job", "Processors"))
        held = sum(Fraction(amount.value) for amount in processors)
        if not share or not held:
            return None
        return ratio(number(share[0].value, "hs06_job"), number(held, "Processors"))

    def _when(self, facts: Facts, rate: Rate) -> bool:
        """Whether the conditions of a rate hold; a value that none of its kin is for is noted."""
        held = True
        for name, value in rate.when.items():
            texts = self._texts(facts, name)
            if value in texts:
                continue
            held = False
            kin = {r.when.get(name) for r in self.plan.kin[rate.type, rate.canonical]}
            if texts and not kin.intersection(texts) and None not in kin:
                self.facts.note(RATES_RULE, name, f"{rate.type} {rate.name} has no rate for {name} {texts[0]}")
        return held

    def _texts(self, facts: Facts, name: str) -> list[str]:
        if name == "TimeCategory" and (self.category is not None or self.rates.time_category):
            return [] if self.category is None else [self.category]
        return facts.texts(name)


_CONSUMPTION: Final = Rate(type="VBM", name="ConsumptionRate", rate=Decimal(1))
