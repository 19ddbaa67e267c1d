"""A document that was run of an array costs what its elements do, each as the job of its own that it is in records."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, RateSet, Uncharged, charge, recompute
from sssjob.accounting.elements import runs_of
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.document.element import new_property
from sssjob.document.model import Delivered, Job
from sssjob.run.elements import gather
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.accounting.support import rate_set
from tests.cli.conftest import Command
from tests.strategies import examples

BEGIN = 1_795_000_000
RATES = (
    "VBR Processors 0.0123\nNBF Queue=batch 0.5", "minimum = 0.7\nVBU Processors 0.333",
    "granularity = 60\nminimum_duration = 90\nrounding = \"up\"\nVBR Processors 0.001",
    "system_faults = \"free\"\nVBR Duration 0.01\nNBF Queue=batch 1",
    "combine = \"max\"\nVBR Processors 0.01\nVBR NodeCount 0.03",
    "VBU Energy 2\nVBU CpuDuration 1\nNBF Queue=batch 1",      # of which no element says anything
    "timezone = \"Europe/Berlin\"\nVBR Processors 0.01\nNBM TimeCategory=Night 0.5\n"
    "[[time_category]]\nname = \"Night\"\nfrom = 12:00:00\nto = 12:30:00",
    "VBR Processors 1\n[[price_list]]\nvalid_from = 2026-11-18T12:20:00Z\n"
    "rate = [{ type = \"VBR\", name = \"Processors\", rate = 3 }]",
)


def element(index: int, start: int | None, seconds: int, message: str = "", energy: int = 0) -> Job:
    """An element as the journal has it; start: seconds since BEGIN, None: it never started."""
    told: dict[str, str | int] = {"Id": f"7_{index}", "Queue": "batch", "State": "Completed", "SubmitTime": BEGIN - 9}
    if start is not None:
        told |= {"StartTime": BEGIN + start, "EndTime": BEGIN + start + seconds}
    if message or start is not None:
        told |= {"StatusMessage": message} if message else {"ExitCode": 0}
    items = [new_property(name, value) for name, value in told.items()]
    items.append(new_property("Extension", str(index), {"type": "LRM", "name": "ArrayIndex"}))
    if start is None:
        return Job(items)
    measured = [new_property("Resource", Decimal(energy), {"name": "Energy", "units": "J"})] if energy else []
    return Job([*items, Delivered([new_property("Processors", 3), new_property("NodeCount", 2),
                                   new_property("Duration", seconds), *measured])])


def gathered(elements: list[Job]) -> Job:
    """The document's own job, written and read again."""
    array = new_property("Extension", f"0-{len(elements) - 1}", {"type": "Scheduler", "name": "Array"})
    whole = Job([new_property("Id", "7"), new_property("Machine", "colony"), new_property("Project", "chem"),
                 new_property("Queue", "batch"), array])
    gather(whole, elements)
    job = read_document(write_document(whole).encode()).root
    assert isinstance(job, Job)
    return job


def compared(elements: list[Job], rates: RateSet) -> Charge | Uncharged:
    """The price of the whole, held against those of its elements."""
    whole = charge(gathered(elements), rates)
    charges = [price for one in elements if isinstance(price := charge(one, rates), Charge)]
    if not charges:
        assert isinstance(whole, Uncharged)
        return whole
    assert isinstance(whole, Charge), whole
    assert whole.amount == sum(price.amount for price in charges)
    assert whole.exact == sum((price.exact for price in charges), Fraction(0)) == recompute(whole.arithmetic)
    assert sum((item.value for item in whole.items), Fraction(0)) == sum(
        (item.value for price in charges for item in price.items), Fraction(0))
    return whole


ELEMENTS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3000)), st.integers(1, 400),
                              st.sampled_from(("", "", "node-failure: NODE_FAIL", "timeout", "signal: 9 = KILL"))),
                    min_size=1, max_size=6)


@settings(max_examples=examples(60), deadline=None)
@given(drawn=ELEMENTS, rates=st.sampled_from(RATES))
def test_the_whole_is_the_sum_of_its_elements(drawn: list[tuple[int | None, int, str]], rates: str) -> None:
    """Fees, minimum, granularity, rounding, the calendar and price lists are those of each; faults that are free stay
    free, and what never started costs nothing."""
    compared([element(n, *some) for n, some in enumerate(drawn)], rate_set(rates))


def test_elements_alike_are_printed_once() -> None:
    whole = compared([element(0, 0, 60), element(1, 5, 60), element(2, 0, 61), element(3, None, 0)],
                     rate_set("VBR Processors 0.1\nNBF Queue=batch 1"))
    assert isinstance(whole, Charge)
    assert whole.arithmetic == ("2 [elements] * (3 [Processors] * 0.1 [VBR Processors] * 60 [Duration] + 1 [NBF "
                                "Queue=batch]) + 3 [Processors] * 0.1 [VBR Processors] * 61 [Duration] + 1 [NBF "
                                "Queue=batch]")
    assert whole.rounding == "half-up to 0.01, of each element"


def test_elements_that_are_free_are_noted() -> None:
    whole = compared([element(0, 0, 60), element(1, 0, 60, "node-failure: NODE_FAIL")],
                     rate_set("system_faults = \"free\"\nVBR Processors 0.1"))
    assert isinstance(whole, Charge)
    assert [note.message for note in whole.notes] == ["1 of 2 elements are not charged: system-fault"]


@pytest.mark.parametrize("rates", ["VBU Energy 2 units = \"kJ\"\nNBF Queue=batch 1",
                                   "VBU CpuDuration 1\nNBF Queue=batch 1"])
def test_what_only_the_sum_is_known_of_is_charged_once(rates: str) -> None:
    """Nobody knows how much of the energy each element used: the array is charged as it stands, fees once."""
    job = gathered([element(0, 0, 60, energy=1000), element(1, 0, 60, energy=500)])
    job.set("CpuDuration", 3)
    whole = charge(job, rate_set(rates))
    assert isinstance(whole, Charge)
    assert whole.amount == 4


def test_times_that_do_not_add_up_are_charged_once() -> None:
    """An element that was suspended ran for less than lies between its start and its end."""
    job = gathered([element(0, 0, 60), element(1, 0, 60)])
    assert job.delivered is not None
    job.delivered.set("Duration", 100)
    whole = charge(job, rate_set("VBR Processors 1\nNBF Queue=batch 1"))
    assert isinstance(whole, Charge)
    assert whole.amount == 301


def with_native_ids(elements: list[Job], ident: str = "77_{}") -> list[Job]:
    for number, one in enumerate(elements):
        one.items.append(new_property("Extension", ident.format(number), {"type": "LRM", "name": "NativeId"}))
    return elements


def records(elements: list[Job]) -> str:
    """What sacct says of the elements that ran."""
    rows = ["JobID|Cluster|Account|User|Partition|Submit|Start|End|ElapsedRaw|State|NCPUS|NNodes|ExitCode"]
    for number, one in enumerate(elements):
        start, end = one.value("StartTime"), one.value("EndTime")
        if isinstance(start, int) and isinstance(end, int):
            rows.append(f"77_{number}|colony|chem|u1|batch|{BEGIN - 9}|{start}|{end}|{end - start}|COMPLETED|3|2|0:0")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("order", ["document records", "records document", "part document records",
                                   "document part records document"])
def test_by_the_document_and_by_the_records_it_is_charged_once(sssjob: Command, tmp_path: Path, order: str,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element is a run of its own, under the native id that it has in the records too."""
    monkeypatch.chdir(tmp_path)
    elements = with_native_ids([element(0, 0, 60), element(1, 5, 70), element(2, None, 0), element(3, 9, 50)])
    log = records(elements)
    Path("records").write_text(log)
    Path("part").write_text("".join(log.splitlines(keepends=True)[:3]))
    Path("document").write_text(write_document(gathered(elements)))
    Path("rates.toml").write_text('name = "r"\nversion = "1"\nrate = [\n'
                                  '{ type = "VBR", name = "Processors", rate = 0.1 },\n'
                                  '{ type = "NBF", name = "Queue", instance = "batch", rate = 1 }]\n')
    for name in order.split():
        source = "sss" if name == "document" else "sacct"
        code, _, err = sssjob("ledger", "charge", "--ledger", "l.db", "--rates", "rates.toml", "-f", source, name)
        assert code == 0, err
    with Ledger(open_store("l.db")) as ledger:
        entries = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert sorted((entry.job, entry.amount) for entry in entries) == [
            ("77_0", Decimal("19.00")), ("77_1", Decimal("22.00")), ("77_3", Decimal("16.00"))]
        assert ledger.account("chem", "").balance == -57
        assert list(ledger.verify()) == []


@pytest.mark.parametrize("order", ["document records", "records document"])
def test_an_array_that_is_charged_as_one_is_not_charged_by_records_too(
        sssjob: Command, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates for energy take the sum that the document says. What comes later contradicts what is charged, so the status
    is 1; with --supersede it takes the place of that, whole or by all of its elements."""
    monkeypatch.chdir(tmp_path)
    elements = with_native_ids([element(0, 0, 60, energy=1000), element(1, 5, 70, energy=500), element(2, None, 0)])
    Path("records").write_text("".join(
        f"{line}|{more}\n" for line, more in zip(records(elements).splitlines(), (
            "ConsumedEnergyRaw", 1000, 500), strict=True)))
    Path("document").write_text(write_document(gathered(elements)))
    Path("rates.toml").write_text('name = "r"\nversion = "1"\nrate = [\n'
                                  '{ type = "VBU", name = "Energy", units = "J", rate = 0.1 },\n'
                                  '{ type = "NBF", name = "Queue", instance = "batch", rate = 1 }]\n')

    def charge_of(name: str, *more: str) -> tuple[int, str]:
        """Charge a file; gives (exit status, errors)."""
        how = ("--ledger", "l.db", "--rates", "rates.toml", "-f", "sss" if name == "document" else "sacct")
        code, _, err = sssjob("ledger", "charge", *how, name, *more)
        return code, err

    def in_force() -> dict[str, Decimal]:
        """What is charged, by native id or Id."""
        with Ledger(open_store("l.db")) as ledger:
            assert list(ledger.verify()) == []
            return {str(job.value("Id")): Decimal(str(job.value("Charge"))) for job in ledger.charged()}

    first, second = order.split()
    cost = {"document": {"7": Decimal("151.00")}, "records": {"77_0": Decimal("101.00"), "77_1": Decimal("51.00")}}
    assert charge_of(first)[0] == 0
    for _ in range(2):
        code, err = charge_of(second)
        assert code == 1 and "an array is charged as one or by its elements, and " in err
        assert in_force() == cost[first]
    assert charge_of(second, "--supersede")[0] == 0 and in_force() == cost[second]
    assert charge_of(first)[0] == 1 and in_force() == cost[second]


@pytest.mark.parametrize(("elements", "rates"), [
    ([element(0, 0, 60), element(1, 0, 60)], "VBR Processors 1"),                           # which are they?
    (with_native_ids([element(0, 0, 60, energy=9)]), "VBU Energy 1"),                       # how much did each use?
    (with_native_ids([element(0, 0, 60)]), 'profile = "gold"\nVBR Processors 1'),            # Gold has no arrays
])
def test_an_array_whose_elements_cannot_be_told_apart_is_one_run(elements: list[Job], rates: str) -> None:
    job = gathered(elements)
    assert runs_of(job, rate_set(rates)) == [job]


@settings(max_examples=examples(30), deadline=None)
@given(drawn=ELEMENTS, rates=st.sampled_from(RATES))
def test_the_runs_of_an_array_cost_what_it_does(drawn: list[tuple[int | None, int, str]], rates: str) -> None:
    job, by = gathered(with_native_ids([element(n, *some) for n, some in enumerate(drawn)])), rate_set(rates)
    prices = [price for run in runs_of(job, by) if isinstance(price := charge(run, by), Charge)]
    whole = charge(job, by)
    assert sum(price.amount for price in prices) == (whole.amount if isinstance(whole, Charge) else 0)


def test_the_ledger_keeps_it(tmp_path: object) -> None:
    """The entry can be made again from the job that it keeps."""
    with Ledger(open_store(f"{tmp_path}/ledger.db")) as ledger:
        rates = rate_set("minimum = 0.7\nVBR Processors 0.001")
        posted = ledger.charge(gathered([element(n, n, 60 + n) for n in range(3)]), None, rates)
        assert posted.entry is not None
        assert posted.entry.amount == Decimal("2.10")
        assert list(ledger.verify()) == []
