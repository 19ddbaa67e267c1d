"""The charge table: what is made column by column is what the reader and the charge engine make row by row."""

from __future__ import annotations

import io
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.columnar import SacctTable, blocks, plain_rates
from sssjob.accounting.rates import RateSet
from sssjob.accounting.table import COLUMNS, Tally, charge_table
from sssjob.findings import Findings
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator
from tests.accounting.support import rate_set

pytest.importorskip("pyarrow")

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = os.environ.get("SSSJOB_SAMPLES")
RATES = {
    "one": "VBR Processors 0.012 per = \"hour\"",
    "many": "precision = 4\nminimum = 0.01\nVBR Processors 0.012 per = \"hour\"\nVBR NodeCount 0.5 per = \"day\"\n"
            "NBM QualityOfService=high 1.5\nNBM QualityOfService=* 0.7\nNBM Queue=gpu 3\nNBF Project=p1 0.25\n"
            "NBM User=u1 0.333333",
    "steps": "step = 0.05\nVBR Processors 0.000000012345",
    "large": "VBR Processors 123456789.123456789",
}
PLAIN = "7|u1|p1|gpu|high|colony|COMPLETED|0:0|{t}|{t}|{e}|60|4|1|billing=4,cpu=4,mem=1G,node=1|n1"
HEADER = "JobID|User|Account|Partition|QOS|Cluster|State|ExitCode|Submit|Start|End|ElapsedRaw|AllocCPUS|NNodes" \
         "|AllocTRES|NodeList\n"
#: Column -> texts that are odd in some way, besides those that are not.
ODD: dict[str, list[str]] = {
    "JobID": ["7_[1-9]", "7_3", "0", "", "8+0", "x", "7.batch", "12345678901"],
    "User": ["", "u2", "x" * 2000], "Account": ["", "p2"], "Partition": ["gpu", "", "a,b"],
    "QOS": ["", "normal", "Unknown"],
    "Cluster": ["", "other"],
    "State": ["FAILED", "CANCELLED by 5", "RUNNING", "PENDING", "", "NEW_WORD", "NODE_FAIL", "completed"],
    "ExitCode": ["1:0", "0:9", "", "x"], "Submit": ["Unknown", "1795000500", "", "2026-11-21T10:00:00"],
    "Start": ["Unknown", "None", "0", "1795000090", "2026-11-21T10:00:00", "99"], "End": ["Unknown", "1795000000", "x"],
    "ElapsedRaw": ["0", "", "-5", "61", "70", "x"], "AllocCPUS": ["0", "8", "", "1000000"], "NNodes": ["0", "2", ""],
    "AllocTRES": ["", "cpu=4", "cpu=8,node=1", "cpu=x", "cpu=4,node=1,gres/gpu=2,gres/gpu:a=1"],
    "NodeList": ["", "None assigned", "n[1-2]", "n[1", "n1,n2", "n1"],
}


def rows(data: bytes, rates: RateSet, **options: str) -> tuple[list[dict[str, Any]], Any, Tally]:
    """The table by the reader alone: (rows, counts, tally)."""
    translator = get("sacct")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    tally = Tally()
    stream = translator.stream(io.BytesIO(data), ReadContext(findings=Findings("-"), options=options))
    made = [row for batch in charge_table(stream, rates, tally) for row in batch.to_pylist()]
    return made, stream.counts, tally


def columns(data: bytes, rates: RateSet, **options: str) -> tuple[list[dict[str, Any]], SacctTable]:
    """The table column by column."""
    table = SacctTable(ReadContext(findings=Findings("-"), options=options), rates)
    return [row for batch in table.batches(io.BytesIO(data)) for row in batch.to_pylist()], table


def same(data: bytes, rates: RateSet, **options: str) -> SacctTable:
    by_rows, counts, tally = rows(data, rates, **options)
    by_columns, table = columns(data, rates, **options)
    assert by_columns == by_rows
    assert table.counts == counts and table.tally == tally
    return table


def line(**changed: str) -> str:
    fields = PLAIN.format(t=1795000000, e=1795000060).split("|")
    names = HEADER.strip().split("|")
    return "|".join(changed.get(name, field) for name, field in zip(names, fields, strict=True)) + "\n"


@pytest.mark.parametrize("name", RATES)
def test_plain_jobs_do_not_need_the_reader(name: str) -> None:
    rates = rate_set(RATES[name])
    assert plain_rates(rates) is not None
    data = HEADER + "".join(
        line(JobID=str(n), AllocCPUS=str(n), AllocTRES=f"cpu={n},node=1", QOS="high" if n % 2 else "x",
             Account=f"p{n % 3}", User=f"u{n % 4}") for n in range(1, 200))
    table = same(data.encode(), rates)
    assert table.plain == table.tally.charged == 199


@pytest.mark.parametrize(("column", "text"), [(c, t) for c, texts in ODD.items() for t in texts])
def test_one_odd_text_among_plain_jobs(column: str, text: str) -> None:
    """The job in which it stands is the reader's; the others stay plain, and all keep their places."""
    data = HEADER + line(JobID="1") + line(JobID="2", **{column: text} if column != "JobID" else {}) + (
        line(JobID=text) if column == "JobID" else "") + line(JobID="3") + line(JobID="4")
    same(data.encode(), rate_set(RATES["many"]), timezone="UTC", machine="m")


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30), name=st.sampled_from(sorted(RATES)))
def test_any_mixture(seed: int, name: str) -> None:
    choose = random.Random(seed)
    texts = [HEADER]
    for number in range(1, choose.randrange(2, 40)):
        odd = {c: choose.choice(ODD[c]) for c in ODD if c != "JobID" and choose.random() < 0.02}
        texts.append(line(JobID=str(number), **odd))
        texts += [line(**odd | {"JobID": f"{number}.{step}"}) for step in ("batch", "0") if choose.random() < 0.3]
    same("".join(texts).encode(), rate_set(RATES[name]), timezone="UTC")


@pytest.mark.parametrize("change", [
    lambda s: s.replace("JobID|", "JobIDRaw|JobID|").replace("\n7", "\n7|7"), lambda s: s.replace("|User|", "|Weird|"),
    lambda s: s.replace("\n", "|\n"), lambda s: s.replace("\n", "\r\n"), lambda s: s + "\n", lambda s: s[:-1],
    lambda s: s + HEADER + s, lambda s: s.replace("u1", "ü1"), lambda s: s.replace("u1", "u\x07"),
    lambda s: s.replace("|u1|", "|u|1|"), lambda s: s.replace("|u1|", "|\"u1|"), lambda s: "", lambda s: HEADER,
    lambda s: s.replace("u1|", ""), lambda s: s[s.index("\n") + 1:],
])
def test_odd_files(change: Any) -> None:
    same(change(HEADER + "".join(line(JobID=f"7{n}") for n in range(5))).encode(), rate_set(RATES["one"]),
         timezone="UTC")


@pytest.mark.parametrize("more", [
    "granularity = 60", "minimum_duration = 100", 'rounding = "up"', 'combine = "max"', 'attempts = "committed"',
    'system_faults = "free"', "VBR Memory 1", "VBU CpuDuration 1", 'NBM State=x 2', "VBR Processors 2 metric = \"x\"",
    "NBM Queue=a 2 when = { User = \"b\" }", 'timezone = "UTC"\n[[time_category]]\nname = "Night"',
    "[billing]\nweights = { CPU = 1 }",
])
def test_rates_that_are_not_plain(more: str) -> None:
    rates = rate_set(f"{RATES['one']}\n{more}")
    assert plain_rates(rates) is None
    assert same((HEADER + line(JobID="1")).encode(), rates).plain == 0


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_local_times(zone: str) -> None:
    data = HEADER + "".join(line(JobID=str(n), Submit=f"2026-{m:02}-01T10:00:00", Start=f"2026-{m:02}-01T10:00:00",
                                 End=f"2026-{m:02}-01T10:01:00") for n, m in ((1, 1), (2, 7)))
    assert same(data.encode(), rate_set(RATES["one"]), timezone=zone).plain == 2
    twice = data.replace("2026-07-01T10", "2026-10-25T02")
    same(twice.encode(), rate_set(RATES["one"]), timezone=zone)


@pytest.mark.parametrize("size", [50, 64, 200, 1000, 1 << 20])
def test_blocks_hold_whole_jobs(size: int) -> None:
    data = "".join(line(JobID=str(n)) + line(JobID=f"{n}.batch") * (n % 3) for n in range(1, 30)).encode()
    found = list(blocks(io.BytesIO(data), lambda text: b"." in text.split(b"|")[0], size))
    assert b"".join(found) == data
    assert all(b"." not in block.split(b"|")[0] and block.endswith(b"\n") for block in found)


def test_recorded_output() -> None:
    for path in sorted((FIXTURES / "slurm-22.05.8" / "records").glob("*.psv")):
        same(path.read_bytes(), rate_set(RATES["many"]), timezone="UTC")


@pytest.mark.skipif(not SAMPLES, reason="SSSJOB_SAMPLES names no folder of public samples")
def test_public_output() -> None:
    for path in sorted(Path(str(SAMPLES), "accounting-samples", "slurm").iterdir()):
        data = path.read_bytes()
        if data[:5].lower() == b"jobid":
            same(data, rate_set(RATES["one"]), timezone="UTC")


def test_the_schema() -> None:
    rates = rate_set("currency = \"EUR\"\nprecision = 3\n" + RATES["one"])
    (batch,) = SacctTable(ReadContext(), rates).batches(io.BytesIO((HEADER + line()).encode()))
    assert batch.schema.names == list(COLUMNS)
    assert batch.schema.metadata == {b"rates": rates.identity.encode(), b"currency": b"EUR"}
    assert batch.to_pylist()[0]["charge"] == Decimal("0.001")
