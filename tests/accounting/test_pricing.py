"""What jobs cost: each kind of rate, each rule, each reason for no charge."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from sssjob.accounting import Charge, recompute
from tests.accounting.support import charged, quoted, rate_set, refused

HOUR = "<Duration>3600</Duration>"
P16 = f"<Processors>16</Processors>{HOUR}"


@pytest.mark.parametrize(("rates", "job", "amount"), [
    # Gold's example, and the specification's own job at its own length
    ("VBR Processors 1", "<Processors>16</Processors><Duration>1234</Duration>", "19744.00"),
    ("VBR Processors 1", "<Processors>16</Processors><Duration>1155</Duration>", "18480.00"),
    # resources over time
    ('VBR Processors 0.012 per = "hour"', P16, "0.19"),
    ('VBR Processors 1 per = "minute"', P16, "960.00"),
    ('VBR NodeCount 24 per = "day"', f"<NodeCount>2</NodeCount>{HOUR}", "2.00"),
    ('VBR Nodes 24 per = "day"', f"<NodeCount>2</NodeCount>{HOUR}", "2.00"),
    ('VBR Memory 1 per = "hour"', f'<Memory units="GB">2</Memory>{HOUR}', "2048.00"),
    ('VBR Memory 1 per = "hour", units = "GB"', f'<Memory>512</Memory>{HOUR}', "0.50"),
    ('VBR Disk 0.5 per = "hour", units = "TB"', f'<Disk units="GB">1536</Disk>{HOUR}', "0.75"),
    ('VBR GPU 2 per = "hour"', f'<Resource name="GPU" type="a100">4</Resource>{HOUR}', "8.00"),
    ('VBR GPU 2 per = "hour", resource_type = "a100"\nVBR GPU 1 per = "hour", resource_type = "v100"',
     f'<Resource name="GPU" type="a100">4</Resource><Resource name="GPU" type="v100">3</Resource>{HOUR}', "11.00"),
    ('VBR GPU 2 per = "hour"',
     f'<Resource name="GPU" type="a100">4</Resource><Resource name="GPU" type="v100">3</Resource>{HOUR}', "14.00"),
    ('VBR License 2 per = "hour", resource_type = "MATLAB"',
     f'<Resource name="License" type="MATLAB">1</Resource>{HOUR}', "2.00"),
    ('NBR License=MATLAB 2 per = "hour"', f'<Resource name="License" type="MATLAB">1</Resource>{HOUR}', "2.00"),
    # usage
    ('VBU Energy 0.2 units = "kWh"', '<Resource name="Energy" units="J">18000000</Resource>', "1.00"),
    ("VBU CpuDuration 0.001", "<CpuDuration>5000</CpuDuration>", "5.00"),
    ("NBU Feature=big 12.5", "<Feature>big</Feature>", "12.50"),
    ("VBU Widget 2", '<Extension name="Widget" type="site">3</Extension>', "6.00"),
    # multipliers and fees
    ("VBU Disk 1\nNBM QualityOfService=high 2\nVBF Disk 0.1\nNBF Queue=fast 3",
     "<Disk>10</Disk><QualityOfService>high</QualityOfService><Queue>fast</Queue>", "24.00"),
    ("VBU Disk 1\nNBM User=amy 0.5\nNBM Project=chem 3\nNBM Machine=colony 2",
     "<Disk>10</Disk><User>amy</User><Project>chem</Project><Machine>colony</Machine>", "30.00"),
    ("VBU Disk 1\nNBM Queue=* 5\nNBM Queue=gpu 2", "<Disk>10</Disk><Queue>cpu</Queue>", "50.00"),
    ("VBU Disk 1\nNBM Queue=* 5\nNBM Queue=gpu 2", "<Disk>10</Disk><Queue>gpu</Queue>", "20.00"),
    ("VBU Disk 1\nNBM Queue=* 5", "<Disk>10</Disk>", "10.00"),
    ("NBF Zone=Asia 200", '<Extension name="Zone" type="site">Asia</Extension>', "200.00"),
    ('VBU Disk 1 when = { Queue = "a", User = "amy" }\nVBU Disk 2 when = { Queue = "a", User = "bob" }',
     "<Disk>10</Disk><Queue>a</Queue><User>bob</User>", "20.00"),
    ("VBU Disk 1\nNBM TimeCategory=Prime 2", "<Disk>10</Disk><TimeCategory>Prime</TimeCategory>", "20.00"),
    # consumption and time in use
    ("VBR Processors 1", '<Processors consumptionRate="0.78">2</Processors><Duration>100</Duration>', "156.00"),
    ("VBR Processors 1", '<Processors consumptionRate="0">2</Processors><Duration>100</Duration>', "0.00"),
    ("VBR Processors 1", '<Processors duration="50">2</Processors><Duration>100</Duration>', "100.00"),
    ("VBR Processors 1\nVBR Memory 1", '<Processors>2</Processors><Memory duration="10">3</Memory>'
     "<Duration>100</Duration>", "230.00"),
    ("VBR Processors 1", '<Processors duration="50">2</Processors>', "100.00"),
    # slots: Delivered, else bare; Requested never
    ("VBR Processors 1", "<Processors>9</Processors><Delivered><Processors>2</Processors><Duration>10</Duration>"
     "</Delivered>", "20.00"),
    ("VBR Processors 1", "<Processors>2</Processors><Duration>10</Duration>"
     "<Requested><Processors>9</Processors><Duration>99</Duration></Requested>", "20.00"),
    # time from the stamps
    ("VBR Processors 1", "<Processors>1</Processors><StartTime>1000</StartTime><EndTime>1100</EndTime>", "100.00"),
    ("VBR Processors 1", "<Processors>1</Processors><StartTime>1000</StartTime><EndTime>1100</EndTime>"
     "<SuspendDuration>40</SuspendDuration>", "60.00"),
    ("VBR Processors 1", "<Processors>1</Processors><StartTime>1772737200000</StartTime>"
     "<EndTime>1772737260000</EndTime>", "60.00"),
    # parts of a heterogeneous job
    ("VBR Processors 1", "<Duration>10</Duration><TaskGroup><Delivered><Processors>2</Processors></Delivered>"
     "</TaskGroup><TaskGroup><Delivered><Processors>3</Processors></Delivered></TaskGroup>", "50.00"),
    # which of several
    ('VBU Memory 1 metric = "Max"', '<Memory metric="Max">7</Memory><Memory metric="Average">3</Memory>', "7.00"),
    ("VBU Memory 1", '<Memory metric="Max">7</Memory><Memory metric="Total">3</Memory>', "3.00"),
    ('VBU Memory 1 context = "Used"', '<Memory context="Used">7</Memory><Memory context="Dedicated">9</Memory>',
     "7.00"),
    # rules
    ("combine = \"max\"\nVBR Processors 1\nVBR Memory 0.001\nVBU Disk 1", "<Processors>4</Processors>"
     "<Memory>6000</Memory><Disk>5</Disk><Duration>10</Duration>", "65.00"),
    ("minimum = 5\nVBU Disk 1", "<Disk>1</Disk>", "5.00"),
    ("minimum = 5\nVBU Disk 1", "<Disk>8</Disk>", "8.00"),
    ("VBU Memory 1", '<Memory metric="Average">3</Memory><Memory metric="Max">7</Memory>', "7.00"),
    ('VBU Memory 1 metric = "Average"', '<Memory metric="Average">3</Memory><Memory metric="Max">7</Memory>', "3.00"),
    ("VBU Memory 1", '<Memory metric="Max">7</Memory><Memory>5</Memory>', "5.00"),
    ("granularity = 60\nVBR Processors 1", "<Processors>1</Processors><Duration>61</Duration>", "120.00"),
    ("minimum_duration = 300\nVBR Processors 1", "<Processors>1</Processors><Duration>61</Duration>", "300.00"),
    ("minimum_duration = 300\nVBR Processors 1", "<Processors>1</Processors><Duration>0</Duration>", "0.00"),
    ("step = 0.05\nVBU Disk 0.033", "<Disk>1</Disk>", "0.05"),
    ("precision = 0\nrounding = \"up\"\nVBU Disk 0.001", "<Disk>1</Disk>", "1"),
    ("precision = 3\nrounding = \"half-even\"\nVBU Disk 0.0005", "<Disk>1</Disk>", "0.000"),
])
def test_charge(rates: str, job: str, amount: str) -> None:
    charge = charged(rates, job)
    assert str(charge.amount) == amount
    assert recompute(charge.arithmetic) == charge.exact
    assert all(recompute(i.arithmetic) == i.value for i in charge.items)


@pytest.mark.parametrize(("rates", "job", "reason", "expected"), [
    ("VBR Processors 1", "<State>Idle</State>" + P16, "not-started", "Idle"),
    ("VBR Processors 1", "<State>Running</State>" + P16, "not-ended", "Running"),
    ("VBR Processors 1", "<State>Completed</State><Processors>1</Processors>", "not-started", "StartTime"),
    ("VBR Processors 1", "<Processors>1</Processors>", "no-duration", "StartTime and EndTime"),
    ("VBR Processors 1", "<Memory>1</Memory>" + HOUR, "nothing-priced", "not said: Processors"),
    ("", P16, "nothing-priced", "no rate is for this job"),
    ('VBR Processors 1\nVBR Disk 1 required = true', P16, "amount-missing", "Disk"),
    ("VBU Memory 1", '<Memory metric="Average">7</Memory><Memory metric="Min">3</Memory>', "amount-ambiguous",
     "2 Memory"),
    ("VBU Widget 1", '<Extension name="Widget" type="site">many</Extension>', "not-a-number", "'many'"),
    ("VBU Widget 1", '<Extension name="Widget" type="site">-1</Extension>', "negative", "-1"),
    ("VBU Widget 1", f'<Extension name="Widget" type="site">{"9" * 50}</Extension>', "too-large", "40 digits"),
    ('VBU Energy 1 units = "GB"', '<Resource name="Energy" units="J">1</Resource>', "unit-unknown", "in J"),
    ("VBU Energy 1", '<Resource name="Energy" units="J">1</Resource>', "unit-unknown", "without units"),
    ("VBR Processors 1", "<Processors>1</Processors><StartTime>50</StartTime><EndTime>40</EndTime>",
     "times-contradictory", "before"),
    ("VBR Processors 1", "<Processors>1</Processors><StartTime>40</StartTime><EndTime>50</EndTime>"
     "<SuspendDuration>11</SuspendDuration>", "times-contradictory", "suspended"),
    ('timezone = "UTC"\nVBR Processors 1\nNBM TimeCategory=Night 2\n[[time_category]]\nname = "Night"', P16,
     "no-start", "StartTime"),
    ('VBR Processors 1 benchmark = "HS23"\n[benchmark.HS23]\nmachine = { colony = 2 }',
     P16 + "<Machine>other</Machine>", "no-benchmark", "other"),
])
def test_not_chargeable(rates: str, job: str, reason: str, expected: str) -> None:
    refusals = refused(rates, job)
    assert (str(refusals.reason), expected in refusals.detail) == (reason, True), refusals.detail


NIGHT = """timezone = "Europe/Berlin"
VBR Processors 1 per = "hour"
NBM TimeCategory=Night 0.5
[[time_category]]
name = "Night"
from = 22:00:00
to = 06:00:00
"""
EVENING = "<StartTime>1772737200</StartTime><EndTime>1772751600</EndTime>"      # 20:00 to 24:00 in Berlin


@pytest.mark.parametrize(("rates", "job", "amount"), [
    (NIGHT, EVENING + "<Processors>4</Processors>", "12.00"),
    ('split = "start"\n' + NIGHT, EVENING + "<Processors>4</Processors>", "16.00"),
    (NIGHT, EVENING + "<Processors>4</Processors><Duration>7200</Duration>", "6.00"),      # suspended half of the time
    ("VBU Disk 1\n" + NIGHT, EVENING + "<Processors>4</Processors><Disk>8</Disk>", "18.00"),
    ("NBF TimeCategory=Night 7\n" + NIGHT, EVENING + "<Processors>4</Processors>", "12.00"),
    ('VBR Memory 1 when = { TimeCategory = "Night" }, per = "hour"\n' + NIGHT, EVENING + "<Memory>2</Memory>", "2.00"),
    (NIGHT, "<EndTime>1772751600</EndTime><Duration>3600</Duration><Processors>4</Processors>", "2.00"),
])
def test_calendar(rates: str, job: str, amount: str) -> None:
    charge = charged(rates, job)
    assert str(charge.amount) == amount
    assert recompute(charge.arithmetic) == charge.exact


def test_items_of_each_category() -> None:
    charge = charged(NIGHT, EVENING + "<Processors>4</Processors>")
    assert [(i.rate, i.category, i.value) for i in charge.items] == [
        ("VBR Processors", None, 8), ("VBR Processors", "Night", 8),
        ("NBM TimeCategory=Night", "Night", Fraction(1, 2))]


def test_benchmark() -> None:
    rates = """VBR Processors 1 per = "hour", benchmark = "HS23"
        [benchmark.HS23]
        reference = 10
        machine = { colony = 15.5 }"""
    assert str(charged(rates, P16 + "<Machine>colony</Machine>").amount) == "24.80"


# --- Slurm's billing. Source of the figures: Slurm, tres.html, and slurm.conf, TRESBillingWeights

WEIGHTS = 'weights = { CPU = 1.0, Mem = "0.25G", "gres/gpu" = 2.0, "license/licA" = 1.5 }'


@pytest.mark.parametrize(("flags", "cpus", "gib", "gpus", "licences", "exact", "stored"), [
    ("SUM", 1, 8, 0, 0, "3.0", 3),
    ("SUM", 1, 8, 0, 1, "4.5", 4),
    ("SUM", 1, 10, 0, 1, "5", 5),
    ("MAX_TRES", 1, 8, 0, 0, "2.0", 2),
    ("MAX_TRES", 1, 8, 0, 1, "3.5", 3),
    ("MAX_TRES_GRES", 1, 8, 1, 0, "4.0", 4),
    ("MAX_TRES_GRES", 1, 4, 1, 0, "3.0", 3),
])
def test_slurm_billing(flags: str, cpus: int, gib: int, gpus: int, licences: int, exact: str, stored: int) -> None:
    job = f'<Processors>{cpus}</Processors><Memory units="GB">{gib}</Memory><Duration>1</Duration>'
    job += f'<Resource name="GPU" type="a100">{gpus}</Resource>' if gpus else ""
    job += f'<Resource name="License" type="licA">{licences}</Resource>' if licences else ""
    for truncate, amount in (("false", Fraction(exact)), ("true", Fraction(stored))):
        charge = charged(f'VBR Billing 1\n[billing]\nflags = "{flags}"\ntruncate = {truncate}\n{WEIGHTS}', job)
        assert charge.exact == amount == recompute(charge.arithmetic)


def test_billing_of_parts() -> None:
    group = "<TaskGroup><Delivered><Processors>{}</Processors></Delivered></TaskGroup>"
    rates = "VBR Billing 1\n[billing]\nweights = { CPU = 1.5 }"
    assert charged(rates, "<Duration>1</Duration>" + group.format(1) + group.format(1)).exact == 2      # 1.5 and 1.5


# --- quotes

@pytest.mark.parametrize(("rates", "job", "amount"), [
    ("VBR Processors 1", "<Requested><Processors op=\"GE\">4</Processors><Duration op=\"LE\">10</Duration></Requested>",
     "40.00"),
    ("VBR Processors 1", "<Processors>2</Processors><Requested><Duration>10</Duration></Requested>", "20.00"),
    ("VBR Processors 1", "<Requested><Processors>4</Processors><Duration>10</Duration></Requested>"
     "<Delivered><Processors>9</Processors></Delivered>", "40.00"),
    ('VBR Memory 1', '<Requested><Memory metric="PerNode">100</Memory><NodeCount>3</NodeCount>'
     "<Duration>10</Duration></Requested>", "3000.00"),
])
def test_quote(rates: str, job: str, amount: str) -> None:
    assert str(quoted(rates, job).amount) == amount


@pytest.mark.parametrize(("rates", "job", "reason", "expected"), [
    ("VBR Processors 1", "<Requested><Processors>4</Processors></Requested>", "no-duration", "Duration is not said"),
    ("VBR Memory 1", "<Requested><Duration>10</Duration></Requested>", "nothing-priced", "Memory"),
    ("VBR Processors 1", '<Requested><Processors op="GT">4</Processors><Processors op="LT">3</Processors>'
     "<Duration>1</Duration></Requested>", "request-contradictory", "contradict"),
])
def test_no_quote(rates: str, job: str, reason: str, expected: str) -> None:
    refusals = refused(rates, job, asked=True)
    assert (str(refusals.reason), expected in refusals.detail) == (reason, True), refusals.detail


QUOTES = """VBR Processors 2
VBU Disk 1
[quote.spring]
expires = 2026-04-01T00:00:00Z
when = { Project = "chem" }
rate = [{ type = "VBR", name = "Processors", rate = 1 }, { type = "NBF", name = "Queue", instance = "gpu", rate = 7 }]
"""


@pytest.mark.parametrize(("job", "amount", "notes"), [
    ("<Quote>spring</Quote><Project>chem</Project><Queue>gpu</Queue>" + EVENING, "14407.00", []),
    ("<Quote>spring</Quote><Project>bio</Project>" + EVENING, "28800.00",
     ["Quote spring is for Project chem: the general rates hold"]),
    ("<Quote>spring</Quote><Project>chem</Project><StartTime>1775001600</StartTime><EndTime>1775016000</EndTime>",
     "28800.00", ["Quote spring expired at 2026-04-01T00:00:00+00:00: the general rates hold"]),
    ("<Quote>autumn</Quote>" + EVENING, "28800.00", ["Quote autumn is not known: the general rates hold"]),
    (EVENING, "28800.00", []),
])
def test_named_quotes(job: str, amount: str, notes: list[str]) -> None:
    charge = charged(QUOTES, job + "<Processors>1</Processors>")
    assert (str(charge.amount), [n.message for n in charge.notes]) == (amount, notes)


def test_record_can_be_recomputed() -> None:
    charge = charged(rate_set("currency = \"EUR\"\nVBR Processors 0.012 per = \"hour\""), P16 + "<Queue>q</Queue>")
    record: dict[str, Any] = json.loads(json.dumps(charge.record()))
    assert isinstance(charge, Charge)
    assert record == {
        "charge": "0.19", "currency": "EUR", "rates": record["rates"], "exact": "0.192", "rounding": "half-up to 0.01",
        "arithmetic": "16 [Processors] * 0.012 [VBR Processors] * 3600 [Duration] / 3600 [s/hour]",
        "items": [{"rate": "VBR Processors", "value": "0.192",
                   "arithmetic": "16 [Processors] * 0.012 [VBR Processors] * 3600 [Duration] / 3600 [s/hour]"}]}
