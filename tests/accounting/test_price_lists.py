"""Price lists by date, and what is doubtful in rates: a price of last year is what a job of last year costs."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting import Charge, charge, read_rates, recompute
from sssjob.accounting.doubts import RateUse, doubts
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from tests.accounting.conftest import Command
from tests.accounting.support import charged, document, quoted, rate_set, refused

BERLIN = ZoneInfo("Europe/Berlin")
LISTS = """
timezone = "Europe/Berlin"
VBR Processors 1 per = "hour"
NBF Queue=gpu 100
{}
[[price_list]]
valid_from = 2026-07-01
rate = [{{ type = "VBR", name = "Processors", rate = 2, per = "hour" }},
        {{ type = "NBM", name = "Queue", instance = "gpu", rate = 3 }}]
[[price_list]]
valid_from = 2027-01-01T00:00:00+01:00
rate = [{{ type = "VBR", name = "Processors", rate = 7, per = "hour" }}]
"""


def at(text: str) -> int:
    """Epoch seconds of a time in Berlin."""
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp())


def job(start: str, end: str, more: str = "") -> str:
    first, last = at(start), at(end)
    return (f"<Id>a</Id><State>Completed</State><StartTime>{first}</StartTime><EndTime>{last}</EndTime>{more}"
            f"<Delivered><Processors>8</Processors><Duration>{last - first}</Duration></Delivered>")


@pytest.mark.parametrize(("valid_by", "start", "end", "more", "amount"), [
    ("end", "2026-06-30T20:00", "2026-06-30T23:59", "", "31.87"),
    ("end", "2026-06-30T22:00", "2026-07-01T02:00", "", "64.00"),
    ("end", "2026-06-30T22:00", "2026-07-01T00:00", "", "16.00"),       # its last second is of June
    ("start", "2026-06-30T22:00", "2026-07-01T02:00", "", "32.00"),
    ("split", "2026-06-30T22:00", "2026-07-01T02:00", "", "48.00"),
    ("split", "2026-06-30T22:00", "2026-07-01T02:00", "<Queue>gpu</Queue>", "212.00"),  # 16 + 32 x 3 + 100
    ("split", "2026-07-01T00:00", "2026-07-01T01:00", "<Queue>gpu</Queue>", "48.00"),
    ("split", "2026-12-31T23:00", "2027-01-01T01:00", "", "72.00"),
    ("split", "2026-06-30T12:00", "2026-06-30T12:00", "", "0.00"),
])
def test_the_list_that_holds(valid_by: str, start: str, end: str, more: str, amount: str) -> None:
    charge = charged(LISTS.format(f'valid_by = "{valid_by}"'), job(start, end, more))
    assert str(charge.amount) == amount
    assert recompute(charge.arithmetic) == charge.exact
    if valid_by != "start" and end > "2026-07-01T00:00":
        assert any(item.category and item.category.startswith("from 202") for item in charge.items)


def test_the_calendar_and_the_lists() -> None:
    """A night over the border is cut by both."""
    text = LISTS.format('valid_by = "split"').replace("NBF Queue=gpu 100", "NBM TimeCategory=Night 0.5") + """
[[time_category]]
name = "Night"
from = 23:00:00
to = 06:00:00
"""
    later = 'type = "NBM", name = "TimeCategory", instance = "Night", rate = 0.25'
    text = text.replace('instance = "gpu", rate = 3', f'instance = "gpu", rate = 3 }}, {{ {later}')
    charge = charged(text, job("2026-06-30T22:00", "2026-07-01T02:00"))
    assert str(charge.amount) == "20.00"                          # 8 x (1 + 0.5) + 16 x 2 x 0.25
    assert {item.category for item in charge.items} == {None, "Night", "Night, from 2026-07-01"}


@given(st.integers(0, 400 * 86400), st.integers(0, 400 * 86400), st.integers(1, 64))
def test_a_split_job_is_the_sum_of_its_parts(first: int, length: int, processors: int) -> None:
    """The charge of a job over borders is that of jobs that end and begin there."""
    rates = rate_set(LISTS.format('valid_by = "split"\nprecision = 9'))
    start = at("2026-06-01T00:00") + first
    end = start + length
    borders = [at("2026-07-01T00:00"), at("2027-01-01T00:00")]
    cuts = [start, *(b for b in borders if start < b < end), end]

    def exact(begin: int, stop: int) -> Fraction:
        price = charge(next(iter(document(
            f"<State>Completed</State><StartTime>{begin}</StartTime><EndTime>{stop}</EndTime>"
            f"<Delivered><Processors>{processors}</Processors></Delivered>").jobs()))[0], rates)
        assert isinstance(price, Charge)
        return price.exact

    assert exact(start, end) == sum(exact(a, b) for a, b in pairwise(cuts))


def test_before_the_first_list() -> None:
    lists = LISTS.format("").replace("VBR Processors 1 per", "# ").replace("NBF Queue=gpu 100", "")
    refusals = refused(lists, job("2026-06-30T20:00", "2026-06-30T23:59"))
    assert (refusals.reason, refusals.detail) == ("no-rates", "no price list holds at the time of the job")
    refusals = refused(lists, "<State>Completed</State><Processors>1</Processors><Duration>5</Duration>")
    assert (refusals.reason, refusals.detail) == (
        "no-start", "rates go by the time of day or by date, and StartTime is not said")


def test_quotes_go_by_their_start(sssjob: Command, tmp_path: Path) -> None:
    asked = "<EligibleTime>{}</EligibleTime><Requested><Processors>8</Processors><Duration>3600</Duration></Requested>"
    assert [str(quoted(LISTS.format(""), asked.format(at(f"{day}T12:00"))).amount)
            for day in ("2026-06-30", "2026-07-01", "2027-01-01")] == ["8.00", "16.00", "56.00"]
    (tmp_path / "lists.toml").write_text(
        'name = "r"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n[[price_list]]\n'
        'valid_from = 2020-01-01T00:00:00Z\n[[price_list.rate]]\ntype = "VBR"\nname = "Processors"\nrate = 2\n')
    (tmp_path / "ask.sh").write_text("#!/bin/sh\n#SBATCH -n 4 -t 1\n./a\n")
    answer = sssjob("quote", "ask.sh", "--rates", "lists.toml", "-q")
    assert (answer.code, answer.out) == (0, "job-1: 480.00 credits\n")      # as if it started now: the list of 2020
    answer = sssjob("quote", "ask.sh", "--rates", "lists.toml", "-q", "--start", "2019-12-31T23:00:00Z")
    assert answer.out == "job-1: 240.00 credits\n"


def test_a_late_log_is_charged_at_its_own_prices(tmp_path: Path) -> None:
    """The same file of rates charges a log of June in August as in June; charging it again changes nothing."""
    rates = rate_set(LISTS.format(""))
    text = job("2026-06-30T20:00", "2026-06-30T22:00", "<Project>p</Project><Machine>m</Machine>")
    ((one, defaults),) = document(text).jobs()
    with Ledger(open_store(str(tmp_path / "ledger")), clock=lambda: at("2026-08-20T12:00")) as ledger:
        posted = ledger.charge(one, defaults, rates)
        assert posted.entry is not None and posted.entry.amount == Decimal("16.00")
        assert ledger.charge(one, defaults, rates, recharge=True).outcome == "unchanged"
        assert list(ledger.verify()) == []


def test_negative_rates_of_gold() -> None:
    gold = 'profile = "gold"\nVBU Disk 1\nNBF Queue=test -10\nVBF Disk -0.5'
    charge = charged(gold, "<Disk>4</Disk><Queue>test</Queue>")
    assert (str(charge.amount), recompute(charge.arithmetic)) == ("-8.00", Fraction(-8))
    assert str(charged(gold, "<Disk>4</Disk>").amount) == "2.00"


@pytest.mark.parametrize("name", ['Memory {} context = "Utilized"', 'Memory {} context = "Used"', "UtilizedMemory {}"])
def test_a_sense_of_memory_by_any_of_its_names(name: str) -> None:
    charge = charged(f"VBU {name.format(1)}",
                     '<Memory context="Utilized">15</Memory><Memory context="Dedicated">99</Memory>')
    assert (str(charge.amount), charge.items[0].rate) == ("15.00", "VBU Memory, context=Used")


@pytest.mark.parametrize(("line", "doubt"), [
    ("NBM Queu=a 2", "rate[0].name: no property is called Queu; did you mean Queue?"),
    ("VBR Procesors 1", "rate[0].name: no property is called Procesors; did you mean Processors?"),
    ("VBR gpu 1", "rate[0].name: no property is called gpu; did you mean GPU?"),
    ("VBR User 1", "rate[0].name: User is no amount that VBR could multiply; NBR is for a name"),
    ('VBR Memory 1 units = "kWh"', "rate[0].units: Memory is not measured in kWh; a unit of bytes, as GB"),
    ('VBU Energy 1 units = "GB"', "rate[0].units: Energy is not measured in GB; one of J, kJ, MJ, GJ, Wh, kWh, MWh"),
    ('VBR Memory 1 context = "Usd"', "rate[0].context: Usd is none of Configured, Available, Used, Dedicated"),
    ('VBR Disk 1 when = { Quality = "a", QualityOfServic = "b" }',
     "rate[0].when.QualityOfServic: no property is called QualityOfServic; did you mean QualityOfService?"),
    ('currency = "JPY"\nVBR Disk 1', "precision: charges are rounded to 2 digits behind the point, and JPY has 0; say "
     "precision = 0, or 2 if it is meant"),
    ('currency = "KWD"\nVBR Disk 1', "precision: charges are rounded to 2 digits behind the point, and KWD has 3; say "
     "precision = 3, or 2 if it is meant"),
])
def test_doubts(line: str, doubt: str) -> None:
    assert [str(d) for d in doubts(rate_set(line))] == [doubt]


@pytest.mark.parametrize("line", ["VBR GPU 1", "VBU Widget 2", "NBM TimeCategory=Night 2", "VBR Nodes 1",
                                  'VBU Disk 1 units = "KiB"', 'VBU Energy 1 units = "kWh"', "NBF NodeCount=4 1",
                                  "VBR Billing 1", 'currency = "JPY"\nprecision = 2\nVBR Disk 1',
                                  'currency = "EUR"\nprecision = 4\nVBR Disk 1', 'currency = "SU"\nVBR Disk 1'])
def test_no_doubts(line: str) -> None:
    assert doubts(rate_set(line)) == []


def test_the_rates_of_the_examples_are_not_doubtful() -> None:
    examples = sorted((Path(__file__).parents[2] / "examples").glob("rates*.toml"))
    assert examples
    assert [doubts(read_rates(path.read_bytes())) for path in examples] == [[]] * len(examples)


def test_what_jobs_meet() -> None:
    rates = rate_set('VBR Processors 1\nVBR GPU 1 resource_type = "A100"\nNBM Queue=fast 2\nNBM Queue=slow 1\n'
                     "NBF User=zoe 1")
    usage = RateUse(rates)
    for n, queue in enumerate(("slow", "slow", "Fast", "x")):
        (one, defaults), = document(
            f"<State>{'Running' if queue == 'x' else 'Completed'}</State><Queue>{queue}</Queue><User>u{n}</User>"
            '<Processors>1</Processors><Resource name="GPU" type="a100">2</Resource><Duration>9</Duration>').jobs()
        usage.add(one, defaults)
    assert (usage.jobs, usage.charged, dict(usage.reasons)) == (4, 3, {"not-ended": 1})
    assert dict(usage.met) == {"rate[0]": 3, "rate[1]": 0, "rate[2]": 0, "rate[3]": 2, "rate[4]": 0}
    assert [str(d) for d in usage.doubts()] == [
        "rate[1]: VBR GPU=A100 was met by none of 3 jobs; did you mean GPU a100, which 3 of them have?",
        "rate[2]: NBM Queue=fast was met by none of 3 jobs; did you mean Queue Fast, which 1 of them have?",
        "rate[4]: NBF User=zoe was met by none of 3 jobs; of User they have u0 (1), u1 (1), u2 (1)"]


def test_rates_of_which_none_prices_anything() -> None:
    """Each of them is doubtful; nothing was said of them because no job was charged."""
    usage = RateUse(rate_set('VBR GPU 1 resource_type = "V100"\nNBM Queue=STD 3'))
    (one, defaults), = document("<State>Completed</State><Queue>std</Queue><Duration>9</Duration>"
                                '<Resource name="GPU" type="v100">2</Resource>').jobs()
    usage.add(one, defaults)
    assert (usage.charged, dict(usage.reasons)) == (0, {"nothing-priced": 1})
    assert [str(d) for d in usage.doubts()] == [
        "rate[0]: VBR GPU=V100 was met by none of 1 jobs; did you mean GPU v100, which 1 of them have?",
        "rate[1]: NBM Queue=STD was met by none of 1 jobs; did you mean Queue std, which 1 of them have?"]


def test_a_run_meets_rates_once() -> None:
    """Days of a log overlap: rates seemed to be met by more jobs than there were."""
    usage = RateUse(rate_set("VBR Processors 1"))
    runs = ("<Id>1</Id><StartTime>5</StartTime>", "<Id>1</Id><StartTime>9</StartTime>", "<Id>2</Id>")
    for run in [*runs, *runs]:
        (one, defaults), = document(f"<State>Completed</State><Processors>1</Processors><Duration>9</Duration>{run}"
                                    ).jobs()
        usage.add(one, defaults)
    assert (usage.jobs, usage.charged, dict(usage.reasons), dict(usage.met)) == (
        6, 4, {"repeated": 2}, {"rate[0]": 4})


def test_lists_of_another_time_are_not_doubtful() -> None:
    rates = rate_set(LISTS.format("") + '[quote.q]\nrate = [{ type = "VBR", name = "Processors", rate = 3 }]\n')
    usage = RateUse(rates)
    ((one, defaults),) = document(job("2026-07-03T20:00", "2026-07-03T23:59")).jobs()
    usage.add(one, defaults)
    assert [d.path for d in usage.doubts()] == ["price_list[0].rate[1]"]


def test_the_command(sssjob: Command, tmp_path: Path) -> None:
    good = sssjob("rates", "check", "rates.toml")
    assert good == (0, "", "rates.toml: 1 rate, none of them doubtful\n")
    against = sssjob("rates", "check", "rates.toml", "--against", "jobs.xml")
    assert (against.code, against.out.splitlines()[2:], against.err.splitlines()[-1]) == (
        0, ["rate[0]  VBR Processors  2"], "3 jobs: 2 charged, 1 not (not-ended 1)")
    text = (tmp_path / "rates.toml").read_text()
    (tmp_path / "bad.toml").write_text(text + '[[rate]]\ntype = "NBM"\nname = "Queu"\ninstance = "q"\nrate = 2\n')
    bad = sssjob("rates", "check", "bad.toml")
    assert (bad.code, bad.err) == (
        1, "sssjob: bad.toml: rate[1].name: no property is called Queu; did you mean Queue?\n")
    answer = sssjob("charge", "jobs.xml", "--rates", "bad.toml")
    assert answer.err.startswith("sssjob: bad.toml: rate[1].name: no property is called Queu; did you mean Queue?")
    records = [json.loads(line) for line in sssjob("rates", "check", "bad.toml", "--against", "jobs.xml", "--json")
               .out.splitlines()]
    assert [record["type"] for record in records] == ["doubt", "rate", "rate", "counts", "doubt"]
    assert sssjob("rates", "check", "none.toml").code == 3
    (tmp_path / "bad.toml").write_text("name = 1")
    assert sssjob("rates", "check", "bad.toml").code == 1
    assert sssjob("rates", "check", "rates.toml", "--against", "none.txt").code == 3
