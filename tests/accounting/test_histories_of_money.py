"""Random histories of a centre's money: what its staff does, in any order, over the end of summer time and the end of a
month, with the logs of three managers, two chargers and one that dies.

The jobs of three clusters are drawn first, and what each costs is computed from them alone, part by part where prices
change while it runs. What is done to the ledger is drawn too; a model of a few lines follows refunds and new prices.
At the end charges, balances, invoices, statements, usage and terms are what the model says.
"""

from __future__ import annotations

import io
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.accounting import RateSet, read_rates
from sssjob.accounting.dimensions import value_of
from sssjob.accounting.entries import By, Entry
from sssjob.accounting.invoice import invoice
from sssjob.accounting.ledger import Ledger, LedgerError, Read
from sssjob.accounting.store import open_store
from sssjob.document.element import new_property
from sssjob.document.model import Job, Requested
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator
from tests.accounting.test_ledger import postgres
from tests.strategies import examples

ZONE: Final = ZoneInfo("Europe/Berlin")
#: Four days before clocks are set back, in the night to 25 October; 1 November begins 264 hours later than this.
BEGIN: Final = int(datetime(2026, 10, 21, tzinfo=UTC).timestamp())
TWICE: Final = range(96, 98)        # hours in which clocks show each time twice
BORDER: Final = int(datetime(2026, 11, 1, tzinfo=ZONE).timestamp())
TERM: Final = BORDER + 86400        # the deposits end
OVER: Final = BEGIN + 60 * 86400
BY: Final[tuple[By, ...]] = ("posted", "start", "end")
MONTHS: Final = ("2026-10", "2026-11", "2026-12")
_RATES: Final = """
name = "centre"
version = "{version}"
precision = 3
timezone = "Europe/Berlin"
valid_by = "split"
rate = [{{ type = "VBR", name = "Processors", rate = {before}, per = "hour" }},
        {{ type = "NBM", name = "Queue", instance = "gpu", rate = 2 }}]
[[price_list]]
valid_from = 2026-11-01
rate = [{{ type = "VBR", name = "Processors", rate = {after}, per = "hour" }},
        {{ type = "NBM", name = "Queue", instance = "gpu", rate = 2 }}]
"""
#: What staff does; what is there twice comes more often.
STEPS: Final = ("read", "refund", "refund", "recharge", "recharge", "close", "hold", "expire", "pass")
PROJECTS: Final = ("chem", "bio")
PRICES: Final = ((Fraction(1, 2), Fraction(3, 4)), (Fraction(1), Fraction(1, 4)))
RATES: Final = tuple(read_rates(_RATES.format(version=n, before=float(before), after=float(after)))
                     for n, (before, after) in enumerate(PRICES))
MACHINES: Final = {"sacct": "colony", "pbs-acct": "srv", "sge-acct": "grid"}


@dataclass(frozen=True)
class Run:
    """A run of a job or of an element of an array; start, end: epoch seconds."""

    source: str
    ident: str
    start: int
    end: int
    cpus: int
    project: str
    user: str
    queue: str
    put_back: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        return MACHINES[self.source], self.ident, self.start

    def owners(self) -> dict[str, str]:
        """What it can be added up by."""
        return {"Project": self.project, "User": self.user, "Queue": self.queue, "Machine": MACHINES[self.source]}

    def price(self, which: int) -> Decimal:
        """What it costs by one of the sets of prices, each part of its time by the list of then."""
        before = max(0, min(self.end, BORDER) - self.start)
        parts = zip((before, self.end - self.start - before), PRICES[which], strict=True)
        exact = sum((Fraction(seconds, 3600) * rate for seconds, rate in parts), Fraction(0)) * self.cpus
        exact *= 2 if self.queue == "gpu" else 1
        return Decimal(int(exact * 1000 + Fraction(1, 2))).scaleb(-3)


def _hour(draw: st.DrawFn, first: int, last: int) -> int:
    hour = draw(st.integers(first, last))
    return hour + 2 if hour in TWICE else hour


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """Some jobs: an array, one that was put back, ones that run over the border of prices or of summer time."""
    jobs = []
    for number in range(1, draw(st.integers(3, 8)) + 1):
        source = draw(st.sampled_from(sorted(MACHINES)))
        ident = {"sacct": str(number), "pbs-acct": f"{number}.srv", "sge-acct": str(number)}[source]
        if source == "sacct" and draw(st.booleans()):
            ident = f"{number}_{draw(st.integers(0, 3))}"
        project, user, queue = (draw(st.sampled_from(names)) for names in (PROJECTS, ("ann", "bob"), ("std", "gpu")))
        common = draw(st.integers(1, 4)), project, user, queue
        hour = _hour(draw, 80, 270)
        for attempt in range(draw(st.integers(1, 2)) if source != "sge-acct" else 1):
            end = _hour(draw, hour + 1, hour + 30)
            jobs.append(Run(source, ident, BEGIN + 3600 * hour, BEGIN + 3600 * end, *common))
            if attempt:
                jobs[-2] = replace(jobs[-2], put_back=True)
            hour = _hour(draw, end + 1, end + 3)
    return jobs


# --- what managers write, of a run that is over or still runs ------------------------------------------------------

_SACCT: Final = ("JobID", "Cluster", "Account", "User", "Partition", "Start", "End", "ElapsedRaw", "State", "AllocTRES",
                 "ExitCode")


def _local(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, ZONE)


def sacct(run: Run, over: bool) -> str:
    start, end = (_local(moment).strftime("%Y-%m-%dT%H:%M:%S") for moment in (run.start, run.end))
    state = ("PREEMPTED" if run.put_back else "COMPLETED") if over else "RUNNING"
    cells = (run.ident, "colony", run.project, run.user, run.queue, start, end if over else "Unknown",
             str(run.end - run.start if over else 60), state, f"cpu={run.cpus},node=1", "0:0")
    return "|".join(cells)


def pbs(run: Run, over: bool) -> str:
    moment = run.end if over else run.start
    text = (f"{_local(moment):%m/%d/%Y %H:%M:%S};{('R' if run.put_back else 'E') if over else 'S'};{run.ident};"
            f'user={run.user} group=g account="{run.project}" queue={run.queue} ctime={run.start} etime={run.start} '
            f"start={run.start} exec_host=n/0*{run.cpus}")
    ran = timedelta(seconds=run.end - run.start)
    hours = f"{ran // timedelta(hours=1):02}:00:00"
    return text if not over else f"{text} end={run.end} Exit_status=0 resources_used.ncpus={run.cpus} " \
                                 f"resources_used.walltime={hours}"


def sge(run: Run, over: bool) -> str:
    if not over:
        return ""       # Grid Engine writes of what has ended
    return (f"{run.queue}:node1:users:{run.user}:job:{run.ident}:sge:0:{run.start}:{run.start}:{run.end}:0:0:"
            f"{run.end - run.start}:0:0:4460:0:0:0:0:216:0:0:0:24:0:0:0:1:4:{run.project}:defaultdepartment:smp:"
            f"{run.cpus}:0:0:0:0:NONE:0:NONE:0:0:0")


LINE: Final[dict[str, Callable[[Run, bool], str]]] = {"sacct": sacct, "pbs-acct": pbs, "sge-acct": sge}


def jobs_of(source: str, records: Iterable[tuple[Run, bool]]) -> Iterator[tuple[Job, None]]:
    """The jobs that the reader makes of a log."""
    lines = [text for run, over in records if (text := LINE[source](run, over))]
    lines = (["|".join(_SACCT)] if source == "sacct" else []) + lines
    options = {"timezone": ZONE.key} | ({"machine": "grid"} if source == "sge-acct" else {})
    reader = get(source)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    stream = reader.stream(io.BytesIO("".join(f"{line}\n" for line in lines).encode()),
                           ReadContext("log", options=options))
    yield from ((job, None) for job in stream)
    assert stream.counts.rejected == 0


# --- the centre -----------------------------------------------------------------------------------------------------

class _Died(Exception):
    """A charger that ends in the middle of its work."""


@dataclass
class Centre:
    """A ledger with two clients, and a model of it. priced: by run the set of prices by which it is charged; refunded:
    by run how much was given back."""

    ledgers: tuple[Ledger, Ledger]
    runs: list[Run]
    now: int = OVER
    priced: dict[Run, int] = field(default_factory=dict)
    refunded: defaultdict[Run, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    granted: dict[str, int] = field(default_factory=dict)
    closed: dict[tuple[str, str], Decimal] = field(default_factory=dict)

    def cost(self, run: Run) -> Decimal:
        """What the account of a run has lost by it."""
        return run.price(self.priced[run]) - self.refunded[run] if run in self.priced else Decimal(0)

    def read(self, source: str, picked: list[tuple[Run, bool]], which: int, dies: bool, prices: int) -> None:
        """Charge a log, some of whose records come twice or tell of runs that are not over."""
        ledger, before = self.ledgers[which], self.ledgers[0].last()
        read = Read(source, ZONE.key)
        jobs = jobs_of(source, picked)

        def cut() -> Iterator[tuple[Job, None]]:
            yield from islice(jobs, 1)
            self.fail()

        if dies:
            with suppress(_Died):
                ledger.charges(cut(), RATES[prices], read=read)
            assert self.ledgers[0].last() == before
            return
        outcomes = ledger.charges(jobs, RATES[prices], read=read)
        assert not {"contradicts", "superseded"} & {posted.outcome for posted in outcomes}
        for run, over in picked:
            if over:
                self.priced.setdefault(run, prices)

    def read_all(self, which: int) -> None:
        """Charge the logs of all managers, whole."""
        for source in sorted(MACHINES):
            both = [(run, over) for run in self.runs if run.source == source for over in (False, True)]
            self.read(source, _in_order(both), which, False, 0)

    @staticmethod
    def fail() -> NoReturn:
        raise _Died

    def refund(self, run: Run, part: int) -> None:
        """Give a charge back, or a part of it."""
        rest = self.cost(run)
        amount = (rest / part).quantize(Decimal("0.001"))
        if not amount:
            return
        number = next(entry for machine, job, start, entry in self.ledgers[1].store.execute(
            "SELECT machine, job, start, entry FROM charges").fetchall() if (machine, job, start) == run.key)
        self.ledgers[1].refund(number, amount)
        self.refunded[run] += amount

    def recharge(self, prices: int, project: str, queue: str, rates: RateSet) -> None:
        """Charge anew the jobs of a project, or of one of its queues."""
        def chosen(entry: Entry, job: Job) -> bool:
            return entry.account == project and queue in ("", value_of(job, "Queue"))

        after: int | None = 0
        while after is not None:
            after, _ = self.ledgers[0].recharges(rates, chosen, after=after)
        for run in [run for run in self.priced if run.project == project and queue in ("", run.queue)]:
            old, new = (run.price(which) for which in (self.priced[run], prices))
            if old != new:
                self.priced[run] = prices
                self.refunded[run] = new if self.refunded[run] == old else min(self.refunded[run], new)

    def close(self) -> None:
        """Close October; its invoices stay as they are."""
        with suppress(LedgerError):
            self.ledgers[0].close(BORDER)
            self.closed = {(project, MONTHS[0]): self.paid(project, MONTHS[0]) for project in self.granted}

    def paid(self, project: str, month: str) -> Decimal:
        return invoice(self.ledgers[1], project, "", month, ZONE, by=("Queue", "User")).total

    def hold(self, number: int, expires: int | None) -> None:
        """Hold for a job that waits."""
        waiting = Job([new_property("Id", f"waits-{number}"), new_property("Machine", "colony"),
                       new_property("Project", "chem"), new_property("State", "Idle"),
                       Requested([new_property("Processors", 2), new_property("Duration", 3600)])])
        with suppress(LedgerError):
            self.ledgers[1].hold(waiting, None, RATES[1], start=OVER, expires=expires, force=True)

    # -- what has to be so
    def check(self) -> None:
        ledger = self.ledgers[0]
        assert list(ledger.verify()) == []
        rows = ledger.store.execute("SELECT machine, job, start, entry FROM charges").fetchall()
        assert {tuple(key): ledger.entry(number).amount for *key, number in rows} == {
            run.key: run.price(prices) for run, prices in self.priced.items()}
        for owner in ("Project", "User", "Queue", "Machine"):
            sums, expected = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
            for job in ledger.charged():
                sums[value_of(job, owner)] += Decimal(str(job.value("Charge")))
            for run, prices in self.priced.items():
                expected[run.owners()[owner]] += run.price(prices)
            assert sums == expected
        for project in self.granted:
            self.check_account(project)

    def check_account(self, project: str) -> None:
        """Balance, invoices, statements and usage of an account, before and after its deposits are over."""
        ledger = self.ledgers[0]
        own = [run for run in self.priced if run.project == project]
        lost = sum(map(self.cost, own), Decimal(0))
        assert sum((self.paid(project, month) for month in MONTHS), Decimal(0)) == lost
        for (name, month), total in self.closed.items():
            assert self.paid(name, month) == total
        assert {u.account: u.used for u in ledger.usage()}.get(project, 0) == lost
        ledger.expire()
        assert ledger.expire() == []
        in_term = sum((self.cost(run) for run in own if run.end < TERM), Decimal(0))
        balance = max(self.granted[project] - in_term, Decimal(0))    # of the term, which is over: lost
        assert ledger.account(project).balance == self.granted[project] - lost - balance
        for by in BY:
            assert ledger.statement(project, by=by).closing == ledger.account(project).balance


def _act(centre: Centre, data: st.DataObject) -> None:
    """Do one thing that staff does."""
    draw = data.draw
    what = draw(st.sampled_from(STEPS))
    charged = sorted((run for run in centre.priced if centre.cost(run)), key=lambda run: run.key)
    if what == "read":
        source = draw(st.sampled_from(sorted(MACHINES)))
        own = [run for run in centre.runs if run.source == source]
        picked = draw(st.lists(st.tuples(st.sampled_from(own), st.booleans()), max_size=5)) if own else []
        centre.read(source, _in_order(picked), draw(st.integers(0, 1)), draw(st.booleans()) and len(picked) > 1, 0)
    elif what == "refund" and charged:
        centre.refund(draw(st.sampled_from(charged)), draw(st.integers(1, 3)))
    elif what == "recharge":
        prices, queue = draw(st.integers(0, 1)), draw(st.sampled_from(("", "", "gpu")))
        for project in draw(st.sampled_from((PROJECTS, PROJECTS[:1], PROJECTS[1:]))):
            centre.recharge(prices, project, queue, RATES[prices])
    elif what == "close":
        centre.close()
    elif what == "hold":
        centre.hold(draw(st.integers(1, 3)), draw(st.sampled_from((None, centre.now + 50, centre.now + 90000))))
    elif what == "expire":
        centre.ledgers[draw(st.integers(0, 1))].expire()
    elif what == "pass":
        centre.now += draw(st.sampled_from((60, 86400, 30 * 86400)))


def _in_order(picked: list[tuple[Run, bool]]) -> list[tuple[Run, bool]]:
    """A log as its manager would write it: the runs of a job stand together in their order, each once at each state."""
    return sorted(set(picked), key=lambda record: (record[0].ident, record[0].start, record[1]))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.lab)])
def place(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Where the ledger of a folder is kept."""
    return (lambda folder: str(folder / "ledger.db")) if request.param == "sqlite" else (lambda folder: postgres())


@pytest.mark.sweep
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=runs(), data=st.data())
def test_whatever_the_staff_does(place: Callable[[Path], str], jobs: list[Run], data: st.DataObject) -> None:
    """After any number of steps, and the logs read once more, whole, by the other client."""
    with tempfile.TemporaryDirectory() as name:
        where = place(Path(name))
        centre: Any = None
        with Ledger(open_store(where), lambda: centre.now) as one, Ledger(open_store(where), lambda: centre.now) as two:
            centre = Centre((one, two), jobs)
            for project in PROJECTS:
                amount = data.draw(st.integers(1, 400))
                one.deposit(project, Decimal(amount), until=TERM)
                centre.granted[project] = amount
            if data.draw(st.sampled_from((True, True, False))):
                centre.read_all(0)
            for _ in range(data.draw(st.integers(4, 16))):
                _act(centre, data)
            centre.read_all(1)
            centre.check()
