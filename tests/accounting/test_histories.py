"""Random histories of daily operation: whatever happens to the logs of a cluster on their way to the ledger, each run
that ended is charged once, or the command says with status 1 what it has not taken, and the repair that it names leads
there.

The runs of a small cluster are drawn first, and what they cost is computed from them alone. Slurm's dumps, PBS's and
Grid Engine's logs are made of the runs, then cut, repeated, reordered, grown, rotated, compressed and renamed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.cli import main
from tests.accounting.test_ledger import postgres
from tests.strategies import examples

RATES: Final = 'name = "site"\nversion = "1"\nprecision = 3\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 0.5\n'
BEGIN: Final = 1_795_000_000
PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@dataclass(frozen=True)
class Run:
    """One run of a job: seconds since BEGIN, and whether the manager put the job back into the queue at its end."""

    ident: int
    start: int
    end: int
    cpus: int
    requeued: bool = False

    @property
    def price(self) -> Decimal:
        return Decimal(self.cpus) * (self.end - self.start) / 2


@st.composite
def clusters(draw: st.DrawFn, attempts: bool = True) -> list[Run]:
    """Some jobs with one run or two."""
    clusters = []
    for ident in range(1, draw(st.integers(2, 5)) + 1):
        at, runs = draw(st.integers(0, 50)), draw(st.integers(1, 2)) if attempts else 1
        cpus = draw(st.integers(1, 4))
        for n in range(runs):
            end = at + draw(st.integers(1, 40))
            clusters.append(Run(ident, at, end, cpus, n + 1 < runs))
            at = end + draw(st.integers(1, 9))
    return clusters


# --- what managers write ------------------------------------------------------------------------------------------

_COLUMNS: Final = ["JobID", "Cluster", "Account", "User", "Start", "End", "ElapsedRaw", "State", "AllocTRES",
                   "ExitCode"]


def dump(runs: list[Run], now: int, order: list[str]) -> bytes:
    """What ``sacct -D`` prints at a time; the columns in any order. A run that is not over says so."""
    rows = ["|".join(order)]
    for run in sorted(runs, key=lambda r: (r.ident, r.start)):
        if run.start > now:
            continue
        over = run.end <= now
        state = ("PREEMPTED" if run.requeued else "COMPLETED") if over else "RUNNING"
        row = {"JobID": str(run.ident), "Cluster": "colony", "Account": "chem", "User": "ann",
               "Start": str(BEGIN + run.start), "End": str(BEGIN + run.end) if over else "Unknown",
               "ElapsedRaw": str(min(run.end, now) - run.start), "State": state,
               "AllocTRES": f"cpu={run.cpus},node=1", "ExitCode": "0:0"}
        rows.append("|".join(row[name] for name in order))
    return ("\n".join(rows) + "\n").encode()


def pbs(runs: list[Run]) -> bytes:
    """An accounting log in the order of time; jobs that were put back have R records, one in three is deleted."""
    lines: list[tuple[int, int, str]] = []
    for run in runs:
        def line(at: int, kind: str, more: str, ident: int = run.ident) -> tuple[int, int, str]:
            stamp = f"11/21/2026 10:{at // 60:02}:{at % 60:02}"
            return at, ident, f"{stamp};{kind};{ident}.colony;{more}"

        lasted = f"00:{(run.end - run.start) // 60:02}:{(run.end - run.start) % 60:02}"
        said = (f'user=ann group=g account="chem" queue=q ctime={BEGIN} etime={BEGIN} start={BEGIN + run.start} '
                f"exec_host=n/0*{run.cpus}")
        lines.append(line(run.start, "S", said))
        deleted = run.ident % 3 == 0 and not run.requeued
        if deleted:
            lines.append(line(run.end - 1, "D", "requestor=ann@colony"))
        lines.append(line(run.end, "R" if run.requeued else "E", f"{said} end={BEGIN + run.end} "
                          f"Exit_status={271 if deleted else 0} resources_used.ncpus={run.cpus} "
                          f"resources_used.walltime={lasted}"))
    return "".join(f"{text}\n" for _, _, text in sorted(lines)).encode()


def sge(runs: list[Run]) -> bytes:
    """An accounting file of Grid Engine: one line for each job that ended."""
    return "".join(
        f"all.q:node1:users:ann:job:{run.ident}:sge:0:{BEGIN}:{BEGIN + run.start}:{BEGIN + run.end}:0:0:"
        f"{run.end - run.start}:0:0:4460:0:0:0:0:216:0:0:0:24:0:0:0:1:4:chem:defaultdepartment:smp:{run.cpus}:0:"
        "0:0:0:NONE:0:NONE:0:0:0\n" for run in sorted(runs, key=lambda r: r.end)).encode()


LOGS: Final = {"pbs-acct": pbs, "sge-acct": sge}
OPTIONS: Final = {"sacct": [], "pbs-acct": ["--option", "timezone=UTC"],
                  "sge-acct": ["--option", "machine=colony"]}


# --- the ledger -----------------------------------------------------------------------------------------------------

class Books:
    """A ledger in a folder with rates, and charging logs by the command."""

    def __init__(self, folder: Path, source: str, place: str) -> None:
        self.folder, self.source, self.place = folder, source, place
        (folder / "rates.toml").write_text(RATES)

    def charge(self, *names: str, resume: bool = False) -> int:
        return main(["ledger", "charge", "-q", "--ledger", self.place, "-f", self.source, *OPTIONS[self.source],
                     "--rates", str(self.folder / "rates.toml"), *(["--resume"] if resume else []),
                     *(str(self.folder / name) for name in names)])

    def in_force(self) -> dict[tuple[str, int], Decimal]:
        """What is charged of each run, after the ledger was held against its entries."""
        with Ledger(open_store(self.place)) as ledger:
            assert list(ledger.verify(recharge=False)) == []
            rows = ledger.store.execute("SELECT job, start, entry FROM charges").fetchall()
            made = {(job.partition(".")[0], start - BEGIN): ledger.entry(number).amount for job, start, number in rows}
            assert ledger.account("chem").balance == -sum(made.values(), Decimal(0))
            return made


def owed(runs: list[Run]) -> dict[tuple[str, int], Decimal]:
    return {(str(run.ident), run.start): run.price for run in runs}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.lab)])
def place(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Where the ledger of a folder is kept."""
    if request.param == "sqlite":
        return lambda folder: str(folder / "ledger.db")
    return lambda folder: postgres()


@pytest.fixture(autouse=True)
def silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """What the commands print is no matter here."""
    yield
    capfd.readouterr()


OFTEN: Final = settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.sweep
@OFTEN
@given(runs=clusters(), data=st.data())
def test_dumps_of_sacct_in_any_order(place: Callable[[Path], str], runs: list[Run], data: st.DataObject) -> None:
    """Dumps of a window are full of jobs that run; they come late, twice, compressed, with their columns swapped."""
    with tempfile.TemporaryDirectory() as name:
        books = Books(Path(name), "sacct", place(Path(name)))
        times = [*data.draw(st.lists(st.integers(0, 120), max_size=3)), 200]
        dumps = [dump(runs, now, data.draw(st.permutations(_COLUMNS))) for now in times]
        queue = data.draw(st.permutations([*range(len(dumps)), *data.draw(st.lists(st.sampled_from(range(len(dumps))),
                                                                                   max_size=2))]))
        for n, which in enumerate(queue):
            end = data.draw(st.sampled_from(sorted(PACKERS)))
            (books.folder / f"{n}{end}").write_bytes(PACKERS[end](dumps[which]))
            assert books.charge(f"{n}{end}") == 0
        assert books.in_force() == owed(runs)


@pytest.mark.sweep
@pytest.mark.parametrize("source", sorted(LOGS))
@OFTEN
@given(data=st.data())
def test_parts_of_logs_in_any_order(place: Callable[[Path], str], source: str, data: st.DataObject) -> None:
    """A log is cut at any byte, and its parts come in any order. Where a line was cut, the status says so, and charging
    the whole log, as the message says, ends with what is owed."""
    runs = data.draw(clusters(attempts=source == "pbs-acct"))
    text = LOGS[source](runs)
    edges = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=3))})
    parts = [text[a:b] for a, b in pairwise(edges)]
    torn = any(text[edge - 1:edge] != b"\n" for edge in edges[1:])
    with tempfile.TemporaryDirectory() as name:
        books, status = Books(Path(name), source, place(Path(name))), 0
        for n, part in enumerate(data.draw(st.permutations(parts + parts[:1]))):
            end = data.draw(st.sampled_from(sorted(PACKERS)))
            (books.folder / f"{n}{end}").write_bytes(PACKERS[end](part))
            status |= books.charge(f"{n}{end}")
        assert status == torn
        if torn:
            (books.folder / "whole").write_bytes(text)
            assert books.charge("whole") == 0
        assert books.in_force() == owed(runs)


@pytest.mark.sweep
@pytest.mark.parametrize("source", ["sacct", *sorted(LOGS)])
@OFTEN
@given(data=st.data())
def test_logs_that_grow_and_are_rotated(place: Callable[[Path], str], source: str, data: st.DataObject) -> None:
    """A log grows by any number of bytes; it is rotated, once or twice before anybody looks, and the old ones are
    compressed and renamed. Reading it on, in between or after all, charges every run once."""
    runs = data.draw(clusters(attempts=source != "sge-acct"))
    text = dump(runs, 200, _COLUMNS) if source == "sacct" else LOGS[source](runs)
    head = text[:text.index(b"\n") + 1] if source == "sacct" else b""
    with tempfile.TemporaryDirectory() as name:
        books = Books(Path(name), source, place(Path(name)))
        log, at, old, looked = books.folder / "log", 0, 0, False
        log.write_bytes(b"")
        for edge in [*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4))), len(text)]:
            with open(log, "ab") as file:
                file.write(text[at:edge])
            at = edge
            if data.draw(st.booleans()) or (not looked and not old):
                assert books.charge("log", resume=True) == 0
                looked = looked or log.stat().st_size > 300
            if looked and text[at - 1:at] == b"\n" and data.draw(st.booleans()):
                end, old = data.draw(st.sampled_from(sorted(PACKERS))), old + 1
                (books.folder / f"log.{old}{end}").write_bytes(PACKERS[end](log.read_bytes()))
                os.utime(books.folder / f"log.{old}{end}", (BEGIN + old, BEGIN + old))
                log.write_bytes(head)
        for _ in range(2):
            assert books.charge("log", resume=True) == 0
        assert books.in_force() == owed(runs)
