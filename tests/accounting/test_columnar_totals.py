"""Totals of sacct: what is added up column by column is what is added up job by job; prices by date, too."""

from __future__ import annotations

import io
import random
from collections import Counter
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, Uncharged, charge
from sssjob.accounting._sacct_totals import SacctTotals, _periods_of
from sssjob.accounting.rates import RateSet
from sssjob.accounting.totals import Totals
from sssjob.document.element import new_property
from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.translators import ReadContext
from sssjob.translators.registry import get
from tests.accounting.support import rate_set
from tests.accounting.test_columnar import LINES, SETTINGS, findings, log, same
from tests.strategies import examples

pytest.importorskip("pyarrow")

NAMES = ("Project", "User", "Queue", "Machine", "QualityOfService", "Group", "Reservation", "State", "StatusMessage",
         "ExitCode", "Extension:State", "Failure", "Size", "Wait")
WHERE = ("Queue=gpu", "User!=u1", "Size=0002-0004", "Failure=-", "Project=p1", "State=Completed")
#: Two lists, of which the second begins within the jobs that ``log`` writes.
LISTS = """
{}
[[price_list]]
valid_from = 2026-11-18T00:00:00Z
rate = [{{ type = "VBR", name = "Processors", rate = 3 }}]
[[price_list]]
valid_from = 2026-11-18T11:07:{:02}Z
rate = [{{ type = "VBR", name = "Processors", rate = 7 }},
        {{ type = "NBF", name = "Project", instance = "p1", rate = 1 }}]
"""


class Added:
    """Totals of a log, with what was told."""

    def __init__(self, data: bytes, rates: RateSet | None, options: dict[str, Any], *, columns: bool) -> None:
        self.totals, self.uncharged, self.unsaid = Totals(**options), Counter[str](), Counter[str]()
        context = ReadContext(findings=Findings("-"), options={"timezone": "UTC"})
        by_columns = SacctTotals([self.totals], rates, self.uncharged, self.unsaid)
        stream: Any = by_columns.of(io.BytesIO(data), context) if columns else (
            get("sacct").stream(io.BytesIO(data), context))     # type: ignore[attr-defined]
        self.by_one = 0
        for job in stream:
            self.by_one += 1
            cost = None if rates is None else charge(job, rates)
            if isinstance(cost, Charge):
                job.set_as_is("Charge", new_property("Charge", cost.amount, {"units": cost.currency}))
            if self.totals.add(job):
                if isinstance(cost, Uncharged):
                    self.uncharged[str(cost.reason)] += 1
                elif cost is not None:
                    self.unsaid.update(cost.unsaid)
        self.counts, self.findings = stream.counts, findings(context)

    def said(self) -> tuple[Any, ...]:
        groups = {(group.period, group.key): (group.sums.record(), group.sums.waits, group.sums.mem)
                  for group in self.totals.groups()}
        return (groups, self.totals.whole().record(), self.totals.left_out, self.totals.periods(), self.uncharged,
                self.unsaid, self.counts, self.findings)


def added(data: bytes, rates: RateSet | None, **options: Any) -> Added:
    """By columns, held against job by job."""
    by_columns = Added(data, rates, options, columns=True)
    assert by_columns.said() == Added(data, rates, options, columns=False).said()
    return by_columns


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_any_log(seed: int) -> None:
    """Any columns, odd texts, steps, runs; by what jobs are told apart, of any time, under conditions, with rates."""
    choose = random.Random(seed)
    options: dict[str, Any] = {"by": choose.sample(NAMES, choose.randrange(4)),
                               "every": choose.choice((None, "hour", "day", "month")),
                               "where": choose.sample(WHERE, choose.choice((0, 0, 1, 2)))}
    if choose.random() < 0.3:
        options |= {"since": 1795000000 + choose.randrange(90), "until": 1795000030 + choose.randrange(90)}
    more = {setting.split()[0]: setting for setting in choose.sample(SETTINGS, choose.choice((0, 0, 1)))}
    rates = rate_set("\n".join([*more.values(), *choose.sample(LINES, 3)])) if choose.random() < 0.6 else None
    try:
        added(log(choose), rates, **options)
    except UsageError:
        return


def cells(number: int) -> dict[str, str]:
    return {"JobID": str(number), "Account": f"p{number % 3}", "State": "COMPLETED", "ExitCode": "0:0",
            "Submit": "2026-11-18T10:00:00", "Start": "2026-11-18T11:00:00", "End": "2026-11-18T11:30:00",
            "ElapsedRaw": "1800", "TotalCPU": "1-02:03:04", "TimelimitRaw": "90", "ConsumedEnergyRaw": str(7 * number),
            "ReqTRES": "cpu=64,mem=4G", "AllocTRES": f"cpu=64,gres/gpu:a={number},gres/gpu={number},mem={number}M"}


def row(number: int, **changed: str) -> str:
    return "|".join((cells(number) | changed).values()) + "\n"


HEADER = "|".join(cells(1)) + "\n"


def test_plain_jobs_are_not_read_one_by_one() -> None:
    """Whatever their texts: GPUs, energy and memory that no two have, clocks of all forms."""
    clocks = ("01:02:03", "02:03.456", "1-02:03:04", "", "00:00.400", "60:00:00")
    data = HEADER + "".join(row(n, TotalCPU=clocks[n % 6]) for n in range(1, 200))
    assert added(data.encode(), rate_set('VBR GPU 1 per = "hour"\nVBU Energy 0.3'), by=["Project", "Wait"],
                 every="day").by_one == 0


@pytest.mark.parametrize("measured", [{}, {"ConsumedEnergyRaw": ""}, {"ConsumedEnergyRaw": "0"}])
def test_energy_of_the_resources_goes_by_columns(measured: dict[str, str]) -> None:
    """What AllocTRES says of energy counts where ConsumedEnergy says none, or is no column."""
    rows = [cells(n) | {"AllocTRES": f"cpu=64,energy={n * 1000},mem={n}M"} | measured for n in range(1, 50)]
    if not measured:
        for texts in rows:
            del texts["ConsumedEnergyRaw"]
    data = "".join("|".join(texts) + "\n" for texts in (rows[0], *(texts.values() for texts in rows)))
    totals = added(data.encode(), rate_set("VBU Energy 0.3"), by=["Project"])
    assert totals.by_one == 0
    assert sum(group.sums.energy for group in totals.totals.groups()) == 1_225_000


def test_memory_that_was_sampled_goes_by_columns() -> None:
    """Peaks of the job's own row and of steps, of which the greatest counts, by what AllocTRES says."""
    header = HEADER.rstrip("\n") + "|MaxRSS|NNodes\n"
    lines = [f"{row(n, AllocTRES=f'cpu=64,mem={n}G').rstrip()}|{peak}|1\n" + "".join(
        f"{row(n).replace(f'{n}|', f'{n}.{step}|', 1).rstrip()}|{size}|1\n" for step, size in steps.items())
        for n, (peak, steps) in enumerate([("", {}), ("512M", {}), ("0", {"batch": "1.5G", "0": "2048000K"}),
                                           ("", {"batch": "", "extern": "0"}), ("3G", {"batch": "1K"})] * 5, 1)]
    sums = added((header + "".join(lines)).encode(), None, by=["Project"], every="day")
    assert sums.by_one == 0
    assert sum(sum(group.sums.mem.counts.values()) for group in sums.totals.groups()) == 15


@pytest.mark.parametrize(("changed", "ratio", "by_one"), [
    ({"NNodes": "2", "AllocTRES": "cpu=64,mem=4G,node=2"}, None, 0), ({"AllocTRES": "cpu=64,node=1"}, 0.5, 1),
    ({"MaxRSS": "0.3K"}, 0.0, 1),
    ({"MaxRSS": "x"}, None, 0), ({"AllocTRES": "cpu=64,mem=999999999999999P,node=1"}, 0.0, 1),
    ({"AllocTRES": "cpu=64,mem=4096,node=1"}, 0.5, 0), ({"MaxRSS": "8G"}, 2.0, 0)])
def test_memory_that_the_log_does_not_tell(changed: dict[str, str], ratio: float | None, by_one: int) -> None:
    """A peak is of a process, so nothing is said of several nodes; without AllocTRES what was asked for counts."""
    cell = cells(1) | {"AllocTRES": "cpu=64,mem=4G,node=1", "MaxRSS": "2G", "NNodes": "1"} | changed
    sums = added(("|".join(cell) + "\n" + "|".join(cell.values()) + "\n").encode(), None)
    assert sums.by_one == by_one
    assert sums.totals.record().get("mem_median") == ratio


def test_gpus_that_worked() -> None:
    """gres/gpuutil of the steps is per cent of their time, of several GPUs together; what is not said is not 0."""
    header = HEADER.rstrip("\n") + "|TRESUsageInTot\n"
    lines = [row(number, AllocTRES="cpu=64,gres/gpu=2").rstrip("\n") + "|\n" + "".join(
        row(number, ElapsedRaw=elapsed).replace(f"{number}|", f"{number}.{n}|", 1).rstrip("\n") + f"|{usage}\n"
        for n, (elapsed, usage) in enumerate(steps))
        for number, steps in enumerate([
            [("1800", "cpu=00:00:01,gres/gpumem=1G,gres/gpuutil=30,mem=1G"), ("900", "gres/gpuutil=180")],
            [("1800", "gres/gpuutil=0")], [("1800", "cpu=00:00:01,mem=0")], [("1800", "gres/gpuutil=200")]], 1)]
    sums = added((header + "".join(lines)).encode(), None)
    assert sums.by_one == 3
    record = sums.totals.record()
    assert (record["gpu_efficiency"], record["gpu_median"], record["gpu_p95"]) == (0.5333, 0.6, 1.0)
    assert sums.totals.whole().gpu.counts == {0: 1, 60: 1, 100: 1}


@pytest.mark.parametrize(("step", "by_one"), [("0:15", 1), ("0:0", 1)])
def test_signals_that_only_a_step_tells(step: str, by_one: int) -> None:
    """A job without a code of its own failed if its batch step was ended by a signal."""
    data = HEADER + row(1) + row(2, State="TIMEOUT") + row(3, State="BOOT_FAIL") + row(3, ExitCode=step).replace(
        "3|", "3.batch|", 1) + row(4)
    assert added(data.encode(), None, by=["Failure"]).by_one <= by_one + 1


def test_sums_that_no_column_holds() -> None:
    """Numbers whose products are beyond 64 bits are added up job by job."""
    data = HEADER + "".join(row(n, AllocTRES=f"cpu=64,gres/gpu={10**14 + n}") for n in range(1, 50))
    assert added(data.encode(), None, by=["Project"]).by_one == 49


@pytest.mark.parametrize("valid_by", ["end", "start", "split"])
@pytest.mark.parametrize("second", range(0, 60, 7))
def test_price_lists(valid_by: str, second: int) -> None:
    """A list that begins within the jobs of a log: by columns each is charged by the list that holds for it. Those
    that are split between two lists, as all that end later, go to the reader."""
    choose = random.Random(second)
    rates = rate_set(LISTS.format(f'VBR Processors 1\nvalid_by = "{valid_by}"\nprecision = 4', second))
    ends = [choose.randrange(60) for _ in range(30)]
    table = same(b"".join([HEADER.encode(), *(row(
        n, Start=f"2026-11-18T11:06:{choose.randrange(60):02}", End="2026-11-18T11:08:00", ElapsedRaw="60", TotalCPU="",
    ).encode() for n in range(1, 30)), *(row(
        n, End=f"2026-11-18T11:07:{end:02}", ElapsedRaw="400", TotalCPU="",
    ).encode() for n, end in enumerate(ends, 30))]), rates, timezone="UTC")
    assert table.plain == (sum(end <= second for end in ends) if valid_by == "split" else 59)
    same(log(choose), rates, timezone="UTC")


@settings(max_examples=examples(40), deadline=None)
@given(every=st.sampled_from(["hour", "day", "week", "month", "year", None]),
       zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
       begin=st.integers(1_760_000_000, 1_800_000_000), steps=st.lists(st.integers(0, 1 << 14), min_size=1, max_size=9))
def test_periods_of_a_column(every: Any, zone: str, begin: int, steps: list[int]) -> None:
    """Those of each moment, though only where they begin is looked up."""
    import pyarrow as pa

    moments = [begin // 900 * 900 + 900 * step for step in steps]
    one, other = (Totals([], every, ZoneInfo(zone)) for _ in range(2))
    assert _periods_of(pa.array(moments, pa.int64()), one).to_pylist() == [other.period(at) for at in moments]
    assert one.periods() == other.periods()
