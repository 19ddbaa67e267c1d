"""Logs as sites have them, against ``csv.DictReader`` over the same text: reading, account, charge, the ledger.

``python -m bench.year [--records N] [--check]``. The log is what ``sacct`` prints of a centre in 28 columns: no two
AllocTRES are alike, with energy, GPUs of two models, memory that users chose, requeued and preempted attempts, array
jobs, cancelled and failed ones. ``jobs_of`` gives beside each line what the job really used, which is not read back
from the text; the sums of ``account`` are held against it. ``--year FOLDER`` writes a year in daily files instead.
"""

from __future__ import annotations

import argparse
import csv
import gc
import io
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from bench.charges import MANY_RATES, RATES, sacct
from bench.psij_local import Measure
from sssjob.accounting import read_rates
from sssjob.accounting._sacct_totals import SacctTotals
from sssjob.accounting.columnar import SacctTable
from sssjob.accounting.ledger import Ledger, Read
from sssjob.accounting.store import open_store
from sssjob.accounting.totals import Totals
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator, Stream
from sssjob.xml.reader import collector_paused

__all__ = ["HEADER", "Truth", "jobs_of", "main", "measures"]

_START: Final = 1767225600      # 2026-01-01T00:00:00Z
_YEAR_S: Final = 365 * 86400
HEADER: Final = (
    "JobID|JobIDRaw|JobName|User|Group|Account|Cluster|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|Suspended|"
    "State|ExitCode|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|TimelimitRaw|TotalCPU|ConsumedEnergyRaw|Restarts|"
    "NodeList")
_COLUMNS: Final = HEADER.split("|")
_FEW: Final = ("JobID", "User", "Account", "Start", "End", "ElapsedRaw", "State", "AllocTRES")
_ENDS: Final = (("COMPLETED", "0:0", 80), ("FAILED", "1:0", 6), ("TIMEOUT", "0:0", 4), ("OUT_OF_MEMORY", "0:125", 2),
                ("NODE_FAIL", "1:0", 1), ("CANCELLED by 1007", "0:15", 3), ("PREEMPTED", "0:0", 4))


class Truth(NamedTuple):
    """What a line is of, and what its job used. wall: seconds; energy: joules; failed: whether it did."""

    project: str
    start: int
    end: int
    wall: int
    processors: int
    gpus: int
    energy: int
    failed: bool


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock if rest > 3599 else f"{clock[3:]}.{seconds % 1000:03}"


def jobs_of(count: int, span_s: int = _YEAR_S, seed: int = 1) -> Iterator[tuple[str, Truth]]:
    """Lines of jobs that end one after another within a span of time, and the truth of each."""
    choose = random.Random(seed)
    states, codes, weights = zip(*_ENDS, strict=True)
    for n in range(count):
        kind = choose.choices(("cpu", "gpu", "mpi"), (75, 15, 10))[0]
        gpus = choose.choice((1, 2, 4)) if kind == "gpu" else 0
        nodes = choose.choice((2, 4, 16)) if kind == "mpi" else 1
        processors = nodes * 64 if kind == "mpi" else 8 * gpus or choose.choice((1, 2, 4, 8, 16, 32))
        number = choose.choices(range(len(_ENDS)), weights)[0]
        limit = choose.choice((60, 240, 1440, 2880))
        wall = min(int(choose.expovariate(1 / (20 * limit))) + 30, 60 * limit)
        end = _START + span_s * n // count
        start, waited, again = end - wall, int(choose.expovariate(1 / 4000)), int(choose.random() < 0.02)
        energy = int(wall * processors * choose.uniform(2, 6)) if choose.random() < 0.95 else 0
        project = f"p{int(choose.paretovariate(0.9)) % 120:03}"
        memory, host = choose.randrange(1000, 4000) * processors, choose.randrange(400)
        gres = f"gres/gpu:{choose.choice(('a100', 'h100'))}={gpus},gres/gpu={gpus}," if gpus else ""
        asked = f"billing={processors},cpu={processors},{gres}mem={memory}M,node={nodes}"
        given = asked.replace(f"cpu={processors},", f"cpu={processors},energy={energy},") if energy else asked
        ident = f"{9000 + n // 40 * 40}_{n % 40}" if n // 40 % 9 == 0 else str(9000 + n)
        yield "|".join((
            ident, str(9000 + n), choose.choice(("vasp", "train.py", "my job")), f"u{choose.randrange(9)}{project}",
            "g1", project, "colony", kind, choose.choice(("normal", "high")), _iso(start - waited),
            _iso(start - waited), _iso(start), _iso(end), str(wall), "00:00:00", states[number], codes[number],
            str(nodes), str(processors), str(processors), f"{memory}M", asked, given, str(limit),
            _clock(int(wall * processors * choose.random())), str(energy or ""), str(again),
            f"n{host:04}" if nodes == 1 else f"n[{host:04}-{host + nodes - 1:04}]",
        )), Truth(project, start, end, wall, processors, gpus, energy, states[number] not in (
            "COMPLETED", "PREEMPTED", "CANCELLED by 1007"))


def write_year(folder: str, count: int) -> None:
    """A year in daily files, each with its header, and what is true of each job in ``truth.csv``."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "truth.csv"), "w", newline="") as file:
        truths = csv.writer(file)
        truths.writerow(Truth._fields)
        for day, jobs in groupby(jobs_of(count), lambda job: _iso(job[1].end)[:10]):
            with open(os.path.join(folder, f"sacct-{day}.txt"), "w") as log:
                log.write(HEADER + "\n")
                for line, truth in jobs:
                    log.write(line + "\n")
                    truths.writerow(truth)


def _cpu(work: Callable[[], Any]) -> float:
    """CPU seconds, the best of three runs."""
    best = float("inf")
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def _context() -> ReadContext:
    return ReadContext(options={"timezone": "UTC"})


def _stream(data: bytes) -> Stream:
    translator = get("sacct")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    return translator.stream(io.BytesIO(data), _context())


def _read(data: bytes) -> int:
    return sum(1 for _ in _stream(data))


def _account(data: bytes) -> Totals:
    totals = Totals(["Project"], "month")
    for job in SacctTotals([totals], None, Counter(), Counter()).of(io.BytesIO(data), _context()):
        totals.add(job)
    return totals


def _true(totals: Totals, truths: Iterable[Truth]) -> bool:
    """Whether totals by project and month are what was used."""
    sums: dict[tuple[str, str], list[Fraction]] = {}
    for truth in truths:
        sum_ = sums.setdefault((_iso(truth.end)[:7], truth.project), [Fraction(0)] * 6)
        for n, figure in enumerate((1, truth.failed, truth.wall, truth.wall * truth.processors,
                                    truth.wall * truth.gpus, truth.energy)):
            sum_[n] += figure
    return sums == {(g.period, g.key[0]): [g.sums.jobs, g.sums.failed, g.sums.wall, g.sums.processors, g.sums.gpus,
                                           g.sums.energy] for g in totals.groups()}


def _ledger(data: bytes, prices: str) -> int:
    rates = read_rates(prices)
    with tempfile.TemporaryDirectory() as folder, Ledger(open_store(os.path.join(folder, "ledger.db"))) as ledger:
        jobs, done, charged = _stream(data).outlined(), 0, 1
        while charged:
            with collector_paused():        # as the command does
                batch = [(job, None) for job in islice(jobs, 1000)]
                charged = len(ledger.charges(batch, rates, read=Read("sacct", "UTC")))
            done += charged
    return done


def _with_steps(row: list[str]) -> list[list[str]]:
    """A row and those of its steps, which repeat what the job was assigned and say nothing of who and of what it asked
    for."""
    unsaid = list(map(_COLUMNS.index, ("User", "Group", "Partition", "QOS", "TimelimitRaw", "ReqTRES", "ReqMem")))
    rows = [row]
    for step in ("batch", "extern", "0"):
        rows.append([f"{text}.{step}" if at < 2 else "" if at in unsaid else text for at, text in enumerate(row)])
    return rows


def _running(row: list[str]) -> list[list[str]]:
    """The row while its job runs."""
    changes = {"State": "RUNNING", "End": "Unknown", "ExitCode": "0:0"}
    return [[changes.get(name, text) for name, text in zip(_COLUMNS, row, strict=True)]]


def _suspended(row: list[str]) -> list[list[str]]:
    """The row where its job was suspended for 30 of its seconds."""
    lasted = int(row[_COLUMNS.index("ElapsedRaw")])
    changes = {"Suspended": "00:00:30", "ElapsedRaw": str(lasted - 30)} if lasted > 30 else {}
    return [[changes.get(name, text) for name, text in zip(_COLUMNS, row, strict=True)]]


def _few(row: list[str]) -> list[list[str]]:
    """What eight columns say of it."""
    return [[text for name, text in zip(_COLUMNS, row, strict=True) if name in _FEW]]


def _floor(text: str) -> float:
    return _cpu(lambda: [None for _ in csv.DictReader(io.StringIO(text), delimiter="|")])


def kinds(lines: Sequence[str]) -> Iterator[Measure]:
    """Typed reading of logs that suit the plans of rows less than a year's jobs in 28 columns, by CPU time of
    ``csv.DictReader`` over the same rows."""
    rows, few = [line.split("|") for line in lines], "|".join([name for name in _COLUMNS if name in _FEW])
    for title, header, of in (("with steps", HEADER, _with_steps), ("of jobs that run", HEADER, _running),
                              ("of jobs that were suspended", HEADER, _suspended), ("of eight columns", few, _few)):
        text = "\n".join((header, *["|".join(other) for row in rows for other in of(row)], ""))
        data = text.encode()
        yield Measure(f"typed reading {title}, by csv.DictReader", _cpu(partial(_read, data)) / _floor(text),
                      "times", 8)


def measures(count: int) -> Iterator[Measure]:
    """CPU time against that of ``csv.DictReader``; charged jobs a second of a ledger in SQLite."""
    lines, truths = zip(*jobs_of(count), strict=True)
    text = "\n".join((HEADER, *lines, ""))
    data, rates = text.encode(), read_rates(MANY_RATES)
    floor = _floor(text)
    yield Measure("csv.DictReader", count / floor, "records/s", None, least=True)
    if not _true(_account(data), truths):
        raise SystemExit("bench.year: the totals are not those of the truth")
    for title, work, bar in (
            ("typed reading", partial(_read, data), 8), ("account", lambda: _account(data), 4),
            ("charge", lambda: list(SacctTable(_context(), rates).batches(io.BytesIO(data))), 6)):
        yield Measure(f"{title}, by csv.DictReader", _cpu(work) / floor, "times", bar)
    yield from kinds(lines[:10_000])
    logs = {"logs of 28 columns": ("\n".join((HEADER, *lines[:10_000], "")).encode(), MANY_RATES),
            "plain logs": ("".join(sacct(10_000)).encode(), RATES)}
    for title, (log, prices) in logs.items():
        yield Measure(f"ledger charging of {title} into SQLite", _ledger(log, prices) / _cpu(
            partial(_ledger, log, prices)), "jobs/s", 10_000, least=True)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.year", description="logs as sites have them")
    options.add_argument("--records", type=int, default=40_000)
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    options.add_argument("--year", metavar="FOLDER", help="write a year of --records in daily files instead")
    asked = options.parse_args(arguments)
    if asked.year:
        write_year(asked.year, asked.records)
        return 0
    missed = False
    for measure in measures(asked.records):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and asked.check)


if __name__ == "__main__":
    sys.exit(main())
