"""The charge table: what is made column by column is what the reader and the charge engine make row by row."""

from __future__ import annotations

import io
import os
import random
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, Uncharged, charge
from sssjob.accounting._sacct_columns import parted
from sssjob.accounting.attempts import EARLIER, earlier_runs, settled
from sssjob.accounting.columnar import SacctTable, blocks
from sssjob.accounting.rates import RateSet
from sssjob.accounting.table import COLUMNS, RowBatch, Tally, charge_table
from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.records.base import RecordTranslator
from sssjob.xml.reader import read_document
from tests.accounting.support import rate_set
from tests.strategies import examples

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


Table = tuple[list[dict[str, Any]], Any, Tally, list[tuple[str, str, str, int]]]


def rows(data: bytes, rates: RateSet, **options: str) -> Table:
    """The table by the reader alone: (rows, counts, tally, findings)."""
    translator = get("sacct")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    tally, context = Tally(), ReadContext(findings=Findings("-"), options=options)
    stream = translator.stream(io.BytesIO(data), context)
    made = [row for batch in charge_table(stream, rates, tally) for row in batch.to_pylist()]
    return made, stream.counts, tally, findings(context)


def columns(data: bytes, rates: RateSet, **options: str) -> tuple[list[dict[str, Any]], SacctTable]:
    """The table column by column."""
    table = SacctTable(ReadContext(findings=Findings("-"), options=options), rates)
    return [row for batch in table.batches(io.BytesIO(data)) for row in batch.to_pylist()], table


def findings(context: ReadContext) -> list[tuple[str, str, str, int]]:
    """By line."""
    return sorted((f.rule, f.subject, f.message, f.line) for f in context.findings)


def same(data: bytes, rates: RateSet, **options: str) -> SacctTable:
    by_rows, counts, tally, told = rows(data, rates, **options)
    by_columns, table = columns(data, rates, **options)
    assert by_columns == by_rows
    assert table.counts == counts and table.tally == tally
    assert findings(table.context) == told
    return table


def line(**changed: str) -> str:
    fields = PLAIN.format(t=1795000000, e=1795000060).split("|")
    names = HEADER.strip().split("|")
    return "|".join(changed.get(name, field) for name, field in zip(names, fields, strict=True)) + "\n"


@pytest.mark.parametrize("name", RATES)
def test_plain_jobs_do_not_need_the_reader(name: str) -> None:
    rates = rate_set(RATES[name])
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


@settings(max_examples=examples(40), deadline=None)
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
    "granularity = 60", "minimum_duration = 100", 'combine = "max"', "VBU CpuDuration 1", 'NBM State=x 2',
    "VBM Processors 2", "NBM Processors=4 2", 'VBF Comment 2', 'profile = "gold"', "[billing]\nweights = { CPU = 1 }",
    'NBM TimeCategory=Night 2\ntimezone = "UTC"\n[[time_category]]\nname = "Night"',
    'VBR Processors 2 benchmark = "B", when = {Queue = "x"}\n[benchmark.B]\nfeatures = true',
])
def test_rates_that_are_no_sum(more: str) -> None:
    """Something is rounded, chosen or multiplied on the way, or goes by what no shape says: the reader reads all."""
    rates = rate_set(f"{RATES['one']}\n{more}")
    assert same((HEADER + line(JobID="1")).encode(), rates).plain == 0


@pytest.mark.parametrize("more", [
    'rounding = "up"', 'rounding = "half-even"', 'attempts = "committed"', 'system_faults = "free"', "VBR Memory 1",
    'VBR Processors 2 metric = "x"', 'NBM Queue=a 2 when = { User = "b" }', "VBR Nodes 1\nVBR GPU 2",
    'NBR GPU=a100 3', 'VBU Energy 1 units = "kWh"', "VBU Duration 1", "VBU Billing 0.1 required = true",
    'VBR Processors 2 benchmark = "B", when = {Queue = "gpu"}\n[benchmark.B]\nmachine = { colony = 2 }',
    'VBR Processors 2 benchmark = "B", when = {Queue = "gpu"}\n[benchmark.B]\nmachine = { other = 2 }',
    'timezone = "UTC"\n[[time_category]]\nname = "Night"', "VBR Nothing 1 required = true", "minimum = 7.5",
    'quote = { q = { rate = [] } }', "NBF User=* 3\nNBF User=u2 1", "precision = 9",
])
def test_rates_that_are_sums(more: str) -> None:
    """Jobs are charged, or not charged for the same reason, by coefficients."""
    rates = rate_set(f"{RATES['one']}\n{more}")
    table = same((HEADER + line(JobID="1") + line(JobID="2", User="u2", State="NODE_FAIL") + line(
        JobID="3", AllocTRES="billing=9,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=3G,node=1")).encode(), rates)
    assert table.plain == 3


def test_an_amount_that_the_log_does_not_have() -> None:
    """A rate for NodeCount, and no column that says it."""
    data = b"JobID|Start|End|ElapsedRaw|State|NCPUS\n9|1795000000|1795014400|14400|COMPLETED|8\n"
    table = same(data, rate_set('VBR NodeCount 1 per = "hour"'))
    assert (table.plain, table.tally.reasons) == (1, {"nothing-priced": 1})


def test_blanks_are_those_of_the_reader() -> None:
    """A blank behind a name makes no other name of it."""
    data = (HEADER + line(JobID="1", QOS="high ") + line(JobID="2", Account=" p1") + line(JobID="3", User="")).encode()
    table = same(data, rate_set("precision = 4\nVBR Processors 0.012\nNBM QualityOfService=high 2\nNBF Project=p1 1"))
    assert (table.plain, len({row["charge"] for row in columns(data, table.rates)[0]})) == (1, 1)


@pytest.mark.parametrize(("text", "plain"), [
    ("Jürgen", 4), ("山田 太郎", 4), ("a\u200bb", 4), ("a\u00a0", 3), ("a\tb", 3), ("\u2003a", 3), ("a\x07", 3),
    ("a\x85", 3), ("a\udcff", 3), ("ü" * 200, 4),
])
def test_letters_beyond_ascii(text: str, plain: int) -> None:
    """A name in whatever script is as plain as another; an odd byte costs its own job the fast way, and no other."""
    data = HEADER + line(JobID="1") + line(JobID="2", User=text) + line(JobID="3") + line(JobID="4", Account="ä")
    assert same(data.encode("utf-8", "surrogateescape"), rate_set(RATES["many"])).plain == plain


def test_a_line_that_is_too_long() -> None:
    """It is rejected as the reader does; the others are plain."""
    rates, context = rate_set(RATES["one"]), ReadContext(findings=Findings("-"), limits=replace(LIMITS, text=500))
    table = SacctTable(context, rates)
    data = HEADER + line(JobID="1") + line(JobID="2", User="u" * 600) + line(JobID="3")
    made = [row["id"] for batch in table.batches(io.BytesIO(data.encode())) for row in batch.to_pylist()]
    assert (made, table.plain, table.counts.reasons) == (["1", "3"], 2, {"too-long": 1})


def test_findings_are_those_of_the_reader() -> None:
    """Columns that are not carried over are told once, records by their lines, however a block is read."""
    data = (HEADER.replace("QOS", "Site") + line(JobID="1") + line(JobID="2", State="NEW") + line(JobID="3") + line(
        JobID="x") + line(JobID="5", AllocCPUS="8")).encode()
    messages = findings(same(data, rate_set(RATES["one"])).context)
    assert [(rule, number) for rule, _, _, number in messages] == [
        ("SSS203", 3), ("SSS501", 0), ("SSS540", 5), ("SSS541", 6)]


def test_many_jobs_of_different_texts_are_plain() -> None:
    """GPUs, memory and energy that no two jobs share, and columns of the site, do not need the reader."""
    data = "JobID|ElapsedRaw|Start|End|State|AllocTRES|ReqTRES|ConsumedEnergyRaw|TotalCPU|Comment|Room\n" + "".join(
        f"{n}|{n}|1795000000|{1795000000 + n}|COMPLETED|billing={n},cpu=4,energy={n},gres/gpu:a{n % 2}00={n},"
        f"gres/gpu={n},mem={n}M,node=2|cpu=4,mem={n}G,node=2|{7 * n}|00:00:{n % 60:02}|comment {n}|room {n}\n"
        for n in range(1, 80))
    rates = rate_set('VBR GPU 1 resource_type = "a100", per = "hour"\nVBR Memory 0.1 units = "GB"\nVBU Energy 0.3 '
                     'units = "kWh"\nVBR Processors 0.012\nVBU Billing 0.001')
    assert same(data.encode(), rates).plain == 79


#: Rates of every type, some of which are no sum.
LINES = (
    'VBR Processors 0.012 per = "hour"', "VBR NodeCount 0.5", "VBR Memory 0.25 units = \"GB\"", "VBR GPU 1.5",
    'VBR GPU 0.1 resource_type = "a"', "VBU Energy 0.01", "VBU CpuDuration 0.1", "VBU Billing 2 required = true",
    "NBR QualityOfService=high 0.5", "NBU Queue=gpu 3", "VBM Processors 0.5", "NBM QualityOfService=high 2",
    "NBM Project=p1 1.5", "NBM User=* 0.3", "VBF NodeCount 7", "NBF Machine=colony 1", "NBM Name=job 2",
    "VBR Memory 3 metric = \"Max\"", 'NBM Queue=gpu 2 when = { User = "u1" }', "VBU Duration 0.1",
)
SETTINGS = ("precision = 4", 'rounding = "down"', "minimum = 0.5", "granularity = 60", 'combine = "max"',
            'system_faults = "free"', 'attempts = "committed"', 'attempts = "last"', "step = 0.25")
#: Column -> what the fuzz test writes into it; the first text fits the others.
FUZZ: dict[str, list[str]] = {
    "JobID": [], "State": ["COMPLETED", "FAILED", "NODE_FAIL", "RUNNING", "COMPLETED ", ""],
    "Start": ["1795000000", "", "2026-11-21T10:00:00", " 1795000000"], "End": ["1795000060", "Unknown", "1795000000"],
    "ElapsedRaw": ["60", "0", "", "60 ", "61", "75"], "NCPUS": ["4", "", "0", "4 ", "x"], "AllocCPUS": ["4", "8", ""],
    "NNodes": ["2", "", "1"], "NodeList": ["n[1-2]", "", "None assigned"], "User": ["u1", "", "u1 ", "u 1", "*"],
    "Account": ["p1", " p1", "p1 ", "p2"], "Partition": ["gpu", "gpu ", ""], "QOS": ["high", "high ", "Unknown", " "],
    "Cluster": ["colony", "", "colony "], "JobName": ["job", "job ", "a b", ""], "UID": ["7", ""],
    "AllocTRES": ["billing=3,cpu=4,gres/gpu:a=2,gres/gpu=2,mem=4G,node=2", "cpu=4,energy=7,mem=900M,node=2", "cpu=4",
                  "", "cpu=4,gres/gpu=1,gres/gpu:a=2", "cpu=4,mem=1.5G,node=2", "cpu=0,node=2",
                  "gres/fpga=2,gres/fpga=1",
                  "cpu=4,gres/gpu=0,gres/gpu:a=2", "mem=0", " cpu=4", "cpu=04", "x", "gres/Processors=3"],
    "ReqTRES": ["cpu=4,mem=4G,node=2", "cpu=5", "x"], "ReqCPUS": ["4", "", "x"], "ReqMem": ["4G", "1Gc", "4X"],
    "MaxRSS": ["3M", "", "7K", "0", "1.5M", "3G", "0.3K"],
    "TRESUsageInTot": ["", "cpu=00:00:01,gres/gpuutil=70", "gres/gpuutil=0"],
    "TotalCPU": ["00:01:00", "", "9-00:00:00", "x", "00:01:00 "],
    "Elapsed": ["00:01:00", "x"], "Suspended": ["00:00:00", "00:00:10", ""], "CPUTimeRAW": ["240", "7", ""],
    "ConsumedEnergyRaw": ["", "700", "0", "1K"],
    "ConsumedEnergy": ["", "9", "2.5K"], "Reservation": ["", "r"], "Comment": ["", "a comment "], "Room": ["", "7 "],
    "Submit": ["1795000000", "1795000500", ""], "TimelimitRaw": ["60", "UNLIMITED", "x", "1x"],
    "Restarts": ["0", "", "x"],
    "Timelimit": ["01:00:00", "x", "1x"], "ExitCode": ["0:0", "", "1:0", "0"],
    "Eligible": ["1795000000", "Unknown", ""],
}
#: What any text may have in it: letters beyond ASCII, blanks and control characters of all kinds, bytes that are no
#: UTF-8.
ANYWHERE = ("ü", "日本", "\u00a0", "\u2003", "\u200b", "\u2028", "\u0085", "\t", "\r", "\x07", "\x7f", "\udcff",
            "\udcc3")
#: Column -> what becomes of its text for a job on one node.
ONE_NODE = {"NNodes": ("2", "1"), "NodeList": ("[1-2]", "1"), "AllocTRES": ("node=2", "node=1"),
            "ReqTRES": ("node=2", "node=1")}
REQUIRED = ("JobID", "State", "Start", "End", "ElapsedRaw")


def log(choose: random.Random) -> bytes:
    """Some jobs, maybe with steps, in some of the columns, most of whose texts are as they should be; some jobs run
    twice."""
    names = [name for name in FUZZ if choose.random() < (0.97 if name in REQUIRED else 0.6)]
    choose.shuffle(names)
    texts = ["|".join(names) + "\n"]
    odd, one_node = choose.choice((0.0, 0.02, 0.1)), choose.random() < 0.5
    jobs = [*range(1, choose.randrange(2, 12)), *choose.choices(range(1, 12), k=choose.choice((0, 0, 2, 6)))]
    for number in jobs:
        row = {name: choose.choice(said) if choose.random() < odd else said[0] for name, said in FUZZ.items() if said}
        if choose.random() < 0.5:
            row["ElapsedRaw"] = row["ElapsedRaw"].replace("60", "59")
        if one_node:
            row |= {name: row[name].replace(*texts) for name, texts in ONE_NODE.items()}
        if choose.random() < odd:
            name = choose.choice([name for name, said in FUZZ.items() if said])
            row[name] = choose.choice(("{1}{0}", "{0}{1}", "{0}{1}x")).format(row[name], choose.choice(ANYWHERE))
        row["Start"] = row["Start"].replace("000000", f"00000{choose.randrange(3)}")
        for ident in (str(number), f"{number}.batch")[:choose.choice((1, 1, 2))]:
            texts.append("|".join(ident if name == "JobID" else row[name] for name in names) + "\n")
    return "".join(texts).encode("utf-8", "surrogateescape")


def by_document(data: bytes, rates: RateSet) -> list[tuple[object, ...]]:
    """(Id, charge, reason) of the jobs of the document that the log becomes. A run that stands there again, which the
    document door refuses, has no charge."""
    context = ReadContext(findings=Findings("-"), options={"timezone": "UTC"})
    text = get("sss").write(get("sacct").read(data, context), WriteContext())
    document = read_document(text.encode())
    earlier = earlier_runs(document, rates)
    charges = [(job, EARLIER if number in earlier else charge(job, rates, defaults))
               for number, (job, defaults) in enumerate(document.jobs())]
    runs, rows = set(), list[tuple[object, ...]]()
    for job, made in charges:
        run = str(job.value("Machine") or "").strip(), str(job.id).strip(), job.start_time
        rows.append((job.id, None, str(made.reason)) if isinstance(made, Uncharged) else
                    (job.id, None, "repeated") if run in runs else (job.id, made.amount, ""))
        runs.update([run] if isinstance(made, Charge) and job.start_time is not None else [])
    return rows


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_a_log_is_charged_as_its_document(seed: int) -> None:
    """Odd columns, blanks, missing columns, rates of every type: by columns, by rows and by the document each job comes
    to the same."""
    choose = random.Random(seed)
    more = {setting.split()[0]: setting for setting in choose.sample(SETTINGS, choose.choice((0, 0, 1, 2)))}
    rates = rate_set("\n".join([*more.values(), *choose.sample(LINES, choose.randrange(1, 5))]))
    data = log(choose)
    try:
        table = same(data, rates, timezone="UTC")
    except UsageError:
        return
    again = SacctTable(ReadContext(findings=Findings("-"), options={"timezone": "UTC"}), rates)
    made = [row for batch in settled(again.batches(io.BytesIO(data)), rates, again.tally) for row in batch.to_pylist()]
    assert [(row["id"], row["charge"], row["reason"] or "") for row in made] == by_document(data, rates)
    assert again.tally.reasons == Counter(row["reason"] for row in made if row["reason"])
    assert (again.tally.charged, again.tally.total) == (
        len(made) - again.tally.reasons.total(), sum(row["charge"] or 0 for row in made))
    assert (again.tally.jobs, table.tally.jobs) == (len(made), len(made))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_local_times(zone: str) -> None:
    data = HEADER + "".join(line(JobID=str(n), Submit=f"2026-{m:02}-01T10:00:00", Start=f"2026-{m:02}-01T10:00:00",
                                 End=f"2026-{m:02}-01T10:01:00") for n, m in ((1, 1), (2, 7)))
    assert same(data.encode(), rate_set(RATES["one"]), timezone=zone).plain == 2
    twice = data.replace("2026-07-01T10", "2026-10-25T02")
    same(twice.encode(), rate_set(RATES["one"]), timezone=zone)


@pytest.mark.parametrize("size", [50, 64, 200, 1000, 1 << 20])
def test_blocks_hold_whole_jobs(size: int) -> None:
    """With their steps and all runs that follow each other."""
    text = "".join((line(JobID=str(n)) + line(JobID=f"{n}.batch") * (n % 3)) * (1 + n % 2) for n in range(1, 30))
    found = list(blocks(io.BytesIO(data := text.encode()), lambda text: text.split(b"|")[0].split(b".")[0], size))
    assert b"".join(found) == data and all(block.endswith(b"\n") for block in found)
    held = [{row.split(b"|")[0].split(b".")[0] for row in block.splitlines()} for block in found]
    assert sum(map(len, held)) == len(set().union(*held)) == 29


@pytest.mark.parametrize("text", [line(JobID="7.0") * 300, line(Account="p" * 90_000), line(JobID="7") * 300])
def test_no_block_grows_without_end(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of endless steps, a line that does not end: the reader, whose memory is bounded, has the rest."""
    monkeypatch.setattr("sssjob.accounting.columnar._MOST", 4000)
    monkeypatch.setattr("sssjob.accounting.columnar.blocks", partial(blocks, size=1000))
    data = HEADER + line(JobID="1") + line(JobID="7") + text + line(JobID="8")
    assert same(data.encode(), rate_set(RATES["one"])).plain == 1


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
    assert not isinstance(batch, RowBatch)
    assert batch.schema.names == list(COLUMNS)
    assert batch.schema.metadata == {b"rates": rates.identity.encode(), b"currency": b"EUR"}
    assert batch.to_pylist()[0]["charge"] == Decimal("0.001")


def test_no_thread_holds_what_was_read() -> None:
    """A thread that still held the bytes would abort a process that ends at that moment (of reads by several threads
    one in eight left one)."""
    names = [f"column{n}" for n in range(28)]
    for number in range(400):
        data = (b"|".join(b"text%d" % number for _ in names) + b"\n") * 3
        holders = sys.getrefcount(data)
        table = parted(data, names)
        assert table.num_rows == 3 and sys.getrefcount(data) == holders
    assert parted(b"1|2\n", names) is None
