"""Prices by plans are those of the pricing, and entries made of them are the same to the last digit: over odd columns,
odd documents, all kinds of rates, and whatever came before."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.year import HEADER as SITE
from bench.year import jobs_of as year_of
from sssjob.accounting import Uncharged, charge
from sssjob.accounting import plans as plans_module
from sssjob.accounting.arithmetic import formula, plain, quotient, recompute
from sssjob.accounting.entries import COLUMNS, encoded
from sssjob.accounting.ledger import Ledger, Read
from sssjob.accounting.plans import Plans, Priced
from sssjob.accounting.rates import RateSet
from sssjob.accounting.store import Store, open_store
from sssjob.document.element import Property, Value
from sssjob.document.model import Delivered, Document, Job
from sssjob.document.outlines import OutlinedJob
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator, Stream
from tests.accounting.support import rate_set
from tests.accounting.test_columnar import HEADER, ODD, line
from tests.accounting.test_properties import AMOUNTS_OF_A_JOB, GREEDY, STARTS, rate_sets
from tests.strategies import documents, examples

RATES = {
    "one": 'VBR Processors 0.012 per = "hour"',
    "many": 'precision = 4\nminimum = 0.01\nVBR Processors 0.012 per = "hour"\nVBR NodeCount 0.5 per = "day"\n'
            "NBM QualityOfService=high 1.5\nNBM QualityOfService=* 0.7\nNBF Project=p1 0.25\nNBM User=u1 0.333333\n"
            'VBR GPU 1 per = "hour"\nVBR Memory 0.001 units = "GB", per = "hour"\nVBU Energy 0.2 units = "kWh"',
    "when": 'precision = 0\nrounding = "half-even"\nVBR Processors 7 per = "hour", when = { Queue = "gpu" }\n'
            'VBF NodeCount 0.5\nVBR Processors 0.1 metric = "Max"',
    "named": "NBR Queue=gpu 0.333333333333\nNBU QualityOfService=high 2\nNBF User=* 0.1",
    "steps": 'step = 0.05\nrounding = "up"\nVBR Processors 0.000000012345\nVBF Processors 3',
    "large": "precision = 9\nVBR Processors 123456789.123456789",
    "required": "VBR Memory 1 required = true\nVBU Swap 1",
    "faults": 'system_faults = "free"\nattempts = "committed"\nVBR Processors 1',
    "on the way": 'granularity = 3600\nminimum_duration = 100\ncombine = "max"\nVBR Processors 1\nVBR NodeCount 2',
    "promised": 'VBR Processors 1\n[quote.cheap]\nrate = [{ type = "VBR", name = "Processors", rate = 0.5 }]',
    "by date": 'timezone = "UTC"\nVBR Processors 1\n[[price_list]]\nvalid_from = 2026-11-18T11:07:30\n'
               'rate = [{ type = "VBR", name = "Processors", rate = 2 }]',
    "by start": 'timezone = "UTC"\nvalid_by = "start"\nVBR Processors 1\n[[price_list]]\n'
                'valid_from = 2026-11-18T11:06:40\nrate = [{ type = "VBR", name = "Processors", rate = 2 }]',
    "split": 'timezone = "UTC"\nvalid_by = "split"\nVBR Processors 1\n[[price_list]]\n'
             'valid_from = 2026-11-18T11:07:00\nrate = [{ type = "VBR", name = "Processors", rate = 2 }]',
}


def stream_of(data: str) -> Stream:
    translator = get("sacct")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    return translator.stream(io.BytesIO(data.encode()), ReadContext(options={"timezone": "UTC", "machine": "m"}))


def jobs_of(data: str) -> list[Job]:
    return list(stream_of(data))


def by_pricing(job: Job, rates: RateSet, *, running: bool = False) -> Priced | Uncharged:
    price = charge(job, rates, running=running)
    return price if isinstance(price, Uncharged) else Priced(
        price.amount, price.currency, encoded(price.record()), price.unsaid)


def alike(jobs: list[Job], rates: RateSet, *, running: bool = False) -> Plans:
    plans = Plans(rates, running=running)
    for number, job in enumerate(jobs):
        by_plan, amount, priced = plans.priced(job), plans.amount(job), by_pricing(job, rates, running=running)
        assert by_plan == priced, number
        assert amount == ((priced.amount, priced.unsaid) if isinstance(priced, Priced) else priced)
        if isinstance(by_plan, Priced) and isinstance(priced, Priced):
            assert by_plan.amount.as_tuple() == priced.amount.as_tuple()
    return plans


def odd_log(choose: random.Random, count: int) -> str:
    """Rows of which every other one is odd in one column, with amounts of their own."""
    rows = []
    for number in range(count):
        cpus, ran = choose.choice((0, 1, 4, 16, 4096)), choose.choice((60, 61, 1, 7919))
        changes = {"JobID": str(number + 1), "AllocCPUS": str(cpus), "ElapsedRaw": str(ran), "AllocTRES":
                   f"billing={cpus},cpu={cpus},energy={choose.randrange(9999)},gres/gpu:a100={cpus % 5},"
                   f"mem={choose.randrange(1, 99999)}M,node={1 + cpus // 64}"}
        if number % 2:
            column = choose.choice([name for name in ODD if name != "JobID"])
            changes[column] = choose.choice(ODD[column])
        rows.append(line(**changes))
    return HEADER + "".join(rows)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("running", [False, True])
def test_odd_columns(name: str, running: bool) -> None:
    """Each log twice, so that shapes come again."""
    jobs = jobs_of(odd_log(random.Random(name), 60))
    alike(jobs * 2, rate_set(RATES[name]), running=running)


def test_many_jobs_have_few_plans() -> None:
    jobs = jobs_of(HEADER + "".join(
        line(JobID=str(n), AllocCPUS=str(n), AllocTRES=f"cpu={n},node=1", QOS="high" if n % 2 else "x",
             ElapsedRaw=str(n % 60 + 1))
        for n in range(1, 200)))
    plans = alike(jobs, rate_set(RATES["many"]))
    assert len(plans) == 2


@pytest.mark.parametrize(("rates", "shapes"), [("one", 1), ("faults", 4)])
def test_own_words_of_a_state_count_where_rates_go_by_them(rates: str, shapes: int) -> None:
    """A log has a dozen of them. All begin with the same State, by which every price goes; NODE_FAIL may cost nothing.
    """
    states = ("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL") * 3
    jobs = jobs_of(HEADER + "".join(line(JobID=str(n), State=state) for n, state in enumerate(states, 1)))
    assert len(alike(jobs, rate_set(RATES[rates]))) == shapes


AMOUNTS: st.SearchStrategy[Value] = st.one_of(
    st.integers(-1, 10**5), st.integers(10**29, 10**31), st.decimals(-1, 10**6, allow_nan=True, places=3),
    st.sampled_from([Decimal("1E+3"), Decimal("1.50"), Decimal("1E-31"), Decimal("1E+40"), "4", "x", True]))
NAMES = ("Processors", "Memory", "Swap", "Duration", "NodeCount", "Resource", "Queue", "StartTime", "EndTime", "Quote",
         "ConsumptionRate", "State", "Extension")
WORDS = st.sampled_from(["gpu", "a", "cheap", "Duration"])
STATES = st.sampled_from(["Completed", "Running", "NODE_FAIL", "COMPLETED"])
TEXTS: dict[str, st.SearchStrategy[Value]] = {"Queue": WORDS, "Quote": WORDS, "State": STATES, "Extension": STATES}
WITHOUT_BILLING = GREEDY.model_copy(update={"billing": None})
ATTRIBUTES: tuple[dict[str, str], ...] = ({}, {}, {"units": "GB"}, {"metric": "Max"}, {"consumptionRate": "0.5"},
                                          {"duration": "7"}, {"metric": "PerNode"})


@st.composite
def odd_jobs(draw: st.DrawFn) -> Job:
    """A job of odd amounts, in odd places."""
    job, delivered = Job(), Delivered()
    job.add("State", draw(st.sampled_from(["Completed", "Completed", "Running", "Idle"])))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=8)):
        value: Value = draw(TEXTS.get(name, AMOUNTS))
        attributes = draw(st.sampled_from(ATTRIBUTES))
        if name == "Resource":
            attributes = {**attributes, "name": "GPU", "type": draw(st.sampled_from(["a100", "h100"]))}
        elif name == "Extension":
            attributes = {"name": "State", "type": draw(st.sampled_from(["LRM", "x"]))}
        draw(st.sampled_from([job, delivered])).items.append(Property(name, value, attributes))
    if draw(st.booleans()) or delivered.items:
        job.items.append(delivered)
    return job


def varied(job: Job, factor: int) -> Job:
    """A job that says other amounts and times in the same places."""
    def other(item: Any) -> Any:
        if isinstance(item, Delivered):
            return Delivered(map(other, item.items))
        if item.value.__class__ not in (int, Decimal) or not Decimal(item.value).is_finite():
            return item
        return Property(item.tag, item.value + factor, item.attributes)

    return Job(map(other, job.items))


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(sorted(RATES)), st.lists(odd_jobs(), min_size=1, max_size=4))
def test_odd_jobs(name: str, jobs: list[Job]) -> None:
    alike([varied(job, factor) for factor in (0, 1, 2, 5, 1000) for job in jobs], rate_set(RATES[name]))


@settings(max_examples=examples(20), deadline=None)
@given(rate_sets(), AMOUNTS_OF_A_JOB, STARTS)
def test_any_rates(rates: RateSet, values: dict[str, int], start: int) -> None:
    job = Job()
    for name, value in (("Queue", "gpu"), ("StartTime", start), ("EndTime", start + 99)):
        job.add(name, value)
    job.items.append(Delivered())
    for name, value in (*values.items(), ("Duration", 99)):
        job.items[-1].add(name, Decimal(value) if name in ("Memory", "Disk", "Swap") else value)    # type: ignore[union-attr]
    alike([varied(job, factor) for factor in (0, 1, 2, 5)], rates)


@settings(max_examples=examples(15), deadline=None)
@given(documents())
def test_any_document(document: Document) -> None:
    alike([job for job, defaults in document.jobs() if defaults is None] * 3, WITHOUT_BILLING)


def test_shapes_without_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rates go by what each job says otherwise, memory does not grow with the jobs."""
    monkeypatch.setattr(plans_module, "_MOST_SHAPES", 5)
    jobs = jobs_of(HEADER + "".join(line(JobID=str(n), User=f"u{n % 40}") for n in range(1, 90)))
    plans = alike(jobs * 2, rate_set("VBR Processors 1\nNBM User=u1 2"))
    assert len(plans) <= 5 and len(plans._once) <= 5


def test_a_queue_may_be_called_like_a_property() -> None:
    """The text of a property is not taken for the Duration that a plan needs."""
    jobs = []
    for end in (60, 70, 80, 90):
        job = Job()
        for name, value in (("Queue", "Duration"), ("StartTime", 10), ("EndTime", end)):
            job.add(name, value)
        job.items.append(Delivered())
        job.items[-1].add("Processors", 2)      # type: ignore[union-attr]
        jobs.append(job)
    alike(jobs, rate_set("VBR Processors 1\nNBM Queue=Duration 2"))


RUNS = ('ClusterId = 7\nProcId = {n}\nJobUniverse = {universe}\nJobStatus = 4\nJobStartDate = 1700000000\n'
        "CompletionDate = 1700009000\nNumJobStarts = 3\nCpusProvisioned = 2\nRemoteWallClockTime = {wall}\n{more}\n\n")


@pytest.mark.parametrize(("attempts", "universe", "more", "seconds"), [
    ("all", 5, "CommittedTime = 300\nLastRemoteWallClockTime = 200.0", "wall"),
    ("committed", 5, "CommittedTime = 300\nLastRemoteWallClockTime = 200.0\nCommittedSuspensionTime = 0", 300),
    ("committed", 5, "CommittedTime = 300\nCommittedSuspensionTime = 20", 280),
    ("committed", 5, "CommittedSuspensionTime = 20", "wall"),
    ("committed", 5, "CommittedTime = 0", "not-committed"), ("committed", 9, "CommittedTime = 0", "wall"),
    ("committed", 5, "CommittedTime = -4", "negative"), ("committed", 5, 'CommittedTime = "x"', "not-a-number"),
    ("last", 5, "CommittedTime = 300\nLastRemoteWallClockTime = 200.0", 200), ("last", 5, "", "wall")])
def test_one_record_of_several_runs(attempts: str, universe: int, more: str, seconds: int | str) -> None:
    """HTCondor tells all runs of a job in one ad: rates for the last or the committed ones charged all of them."""
    walls = (9000, 300, 8000, 200, 7000)
    ads = "".join(RUNS.format(n=n, universe=universe, wall=wall, more=more) for n, wall in enumerate(walls))
    translator = get("htcondor-history")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    jobs = list(translator.stream(io.BytesIO(ads.encode()), ReadContext(options={"machine": "m"})))
    rates = rate_set(f'attempts = "{attempts}"\nVBR Processors 1')
    alike(jobs * 2, rates)
    prices = [by_pricing(job, rates) for job in jobs]
    assert [price.reason if isinstance(price, Uncharged) else price.amount for price in prices] == [
        {"wall": 2 * wall}.get(seconds, seconds) if isinstance(seconds, str) else 2 * seconds for wall in walls]


# --- entries ------------------------------------------------------------------------------------------------------

def entries(path: Path, data: str, rates: RateSet, *, by_values: bool = False) -> list[tuple[Any, ...]]:
    """by_values: of jobs as a ledger reads them, else of job objects."""
    with Ledger(open_store(str(path)), clock=lambda: 1_800_000_000) as ledger:
        ledger.deposit("p1", Decimal(10))
        stream = stream_of(data)
        jobs = [(job, None) for job in (stream.outlined() if by_values else stream)]
        assert any(isinstance(job, OutlinedJob) for job, _ in jobs) is by_values
        for at in range(0, len(jobs), 60):
            ledger.charges(jobs[at:at + 60], rates, read=Read("sacct", "UTC"))
        assert list(ledger.verify()) == []
        return [tuple(row) for row in ledger.store.execute(f"SELECT {COLUMNS} FROM entries ORDER BY number").fetchall()]


@pytest.mark.parametrize("name", ["many", "when", "faults", "by date"])
def test_entries_of_odd_columns_are_those_of_the_pricing(name: str, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """With the plans and without any of them, to the last hash; ``verify`` prices each job once more."""
    data, rates = odd_log(random.Random(name), 80), rate_set(RATES[name])
    by_plans = entries(tmp_path / "plans.db", data, rates)
    monkeypatch.setattr(Plans, "priced", lambda plans, job: by_pricing(job if isinstance(job, Job) else job.job, rates))
    assert entries(tmp_path / "pricing.db", data, rates) == by_plans
    assert all(row[12] == json.dumps(json.loads(row[12]), sort_keys=True, separators=(",", ":")) for row in by_plans)


@pytest.mark.parametrize("name", ["many", "when", "faults", "promised", "by start"])
def test_entries_by_values_are_those_of_jobs(name: str, tmp_path: Path) -> None:
    """To the last hash, of a log whose jobs come again, some changed, some in another order, and of a site's."""
    choose, rates = random.Random(name), rate_set(RATES[name])
    first, again = odd_log(choose, 60), odd_log(choose, 60).splitlines(keepends=True)[1:]
    choose.shuffle(again)
    of_site = "\n".join((SITE, *(line for line, _ in year_of(70, 9 * 86400)), ""))
    for data in (first + first[len(HEADER):] + "".join(again), of_site + of_site[len(SITE) + 1:]):
        by_values = entries(tmp_path / f"{len(data)}-values.db", data, rates, by_values=True)
        assert by_values == entries(tmp_path / f"{len(data)}-jobs.db", data, rates)
        assert len(by_values) > 50


# --- arithmetic ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["3", "2 [a] * 3 + 5 / 4", "(3 + 2) * (7 + 3) * 3 / 8", "3 * 3 - -1", "-(2 + 3)"])
def test_a_formula_is_its_text(text: str) -> None:
    """With 2 and 3 left open: with 2 and 3 in place of them it comes to what the text does."""
    if "- -" in text:
        with pytest.raises(ValueError):
            formula(text, {})
        return
    under, products = formula(text, {"2": 0, "3": 1}).whole()
    total = 0
    for factor, places in products:
        for place in places:
            factor *= (2, 3)[place]
        total += factor
    assert Fraction(total, under) == recompute(text)


@pytest.mark.parametrize("text", ["max(2, 3)", "ceil(2 / 3)", "1 / 2", "1 / (2 + 3)", "1 / 0", "2 +"])
def test_what_is_no_sum_of_products_has_no_formula(text: str) -> None:
    with pytest.raises(ValueError):
        formula(text, {"2": 0})


@given(st.integers(-10**12, 10**12), st.integers(1, 10**9))
def test_a_quotient_is_written_as_the_fraction(over: int, under: int) -> None:
    assert quotient(over, under) == plain(Fraction(over, under))


def test_the_accounts_of_a_batch_are_asked_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many jobs and accounts there are, and whether or not these have been used before."""
    log = HEADER + "".join(line(JobID=str(n), Account=f"p{n % 20}") for n in range(1, 60))
    asked, one = list[str](), Store.one

    def noted(store: Store, sql: str, values: Sequence[Any] = ()) -> Any:
        """As it is, noted."""
        asked.append(sql)
        return one(store, sql, values)

    monkeypatch.setattr(Store, "one", noted)
    with Ledger(open_store(str(tmp_path / "ledger.db"))) as ledger:
        for name in ("p3", "p4"):
            ledger.deposit(name, Decimal(100))
        for rate in (1, 2):
            rates = rate_set(f"VBR Processors {rate}")
            asked.clear()
            charged = ledger.charges([(job, None) for job in jobs_of(log)], rates, recharge=True)
            assert not [sql for sql in asked if "FROM accounts" in sql]
            balances = {posted.account.account: posted.account.balance for posted in charged if posted.account}
            assert len(balances) == 20
            assert balances == {account.account: account.balance for account in ledger.accounts()}
