"""Charge tables on the command line: streams, folders of Parquet files, pools of processes, and a real Dask cluster."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sssjob.accounting.partitions import Work, charge_file, in_pool, names_of, on_dask
from sssjob.cli import main

parquet: Any = pytest.importorskip("pyarrow.parquet")

RATES = 'name = "site"\nversion = "7"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 0.5\n' \
        'per = "hour"\n'
PBS = ("11/21/2026 10:00:09;E;{0}.head;user=a account=\"chem\" ctime=1 start=5 end=3605 exec_host=n/0 Exit_status=0\n"
       "11/21/2026 10:00:09;Q;{0}9.head;queue=q\n")
SACCT = "JobID|Account|State|Start|End|ElapsedRaw|AllocCPUS\n"


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def charge(capsys: pytest.CaptureFixture[str], tmp_path: Path,
           monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Answer]:
    """Run ``sssjob charge ... --rates rates.toml`` where rates.toml, a.log, b.log and s.psv are."""
    (tmp_path / "rates.toml").write_text(RATES)
    (tmp_path / "a.log").write_text(PBS.format(1))
    (tmp_path / "b.log").write_text(PBS.format(2) + "torn\n")
    (tmp_path / "s.psv").write_text(SACCT + "".join(f"{n}|p|COMPLETED|1795000000|1795003600|3600|{n}\n"
                                                    for n in range(1, 9)))
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> Answer:
        code = main(["charge", *line.split(), "--rates", "rates.toml"])
        return Answer(code, *capsys.readouterr())

    return call


def test_csv(charge: Callable[[str], Answer]) -> None:
    answer = charge("-f pbs-acct a.log b.log")
    rows = list(csv.DictReader(answer.out.splitlines()))
    assert [(r["id"], r["project"], r["charge"], r["reason"]) for r in rows] == [
        ("1.head", "chem", "0.50", ""), ("19.head", "", "", "not-started"),
        ("2.head", "chem", "0.50", ""), ("29.head", "", "", "not-started")]
    assert answer.err.splitlines()[-1] == "4 jobs: 2 charged, 1.00 EUR, 2 not (not-started 2)"
    assert "b.log: 3 records read: 2 given as 2 jobs, 1 rejected (columns 1)" in answer.err.splitlines()


def test_rows_and_counts_as_json(charge: Callable[[str], Answer]) -> None:
    """With --json standard output is JSON Lines, not CSV; charges are text, what is not known is left out."""
    answer = charge("-f sacct s.psv --json --option machine=m")
    *rows, records, counts = (json.loads(line) for line in answer.out.splitlines())
    assert (answer.code, answer.err, len(rows)) == (0, "", 8)
    assert rows[0] == {"type": "job", "machine": "m", "id": "1", "project": "p", "start": 1795000000, "end": 1795003600,
                       "wall_s": 3600, "processors": 1.0, "charge": "0.50"}
    assert (records["read"], records["jobs"], counts["charged"], counts["total"]) == (8, 8, 8, "18.00")
    table = charge("-f pbs-acct a.log b.log --json -o t.csv")
    assert [json.loads(line)["type"] for line in table.out.splitlines()] == ["records", "records", "counts"]


@pytest.mark.parametrize("output", ["-", "t.parquet"])
def test_numbers_that_no_column_holds(charge: Callable[[str], Answer], tmp_path: Path, output: str) -> None:
    """They are left out, the job is not charged, and the other rows are there."""
    (tmp_path / "w.psv").write_text(SACCT + "1|p|COMPLETED|1795000000|1795003600|9223372036854775808|4\n"
                                    "2|p|COMPLETED|1795000000|1795003600|3600|99999999999999999\n")
    answer = charge(f"-f sacct w.psv --json -o {output}")
    assert json.loads(answer.out.splitlines()[-1])["not"] == {"too-large": 1}
    if output == "-":
        rows = [json.loads(line) for line in answer.out.splitlines()[:2]]
        assert [(r.get("wall_s"), r.get("charge")) for r in rows] == [
            (None, None), (3600, "49999999999999999.50")]


@pytest.mark.parametrize(("line", "status"), [
    ("torn.log", 1), ("torn.log -o t.csv", 1), ("torn.log -o t.parquet", 1), ("torn.log empty.log -o out/", 1),
    ("empty.log", 0), ("torn.log a.log", 0), ("torn.log a.log -o out/ --jobs 2", 0),
])
def test_logs_of_which_nothing_is_taken(charge: Callable[[str], Answer], tmp_path: Path, line: str,
                                        status: int) -> None:
    """As with convert; but a day's log without a job among others is no fault."""
    (tmp_path / "torn.log").write_bytes(b"\0\xff torn\n\x1f\x8b\n")
    (tmp_path / "empty.log").write_text("")
    assert charge(f"-f pbs-acct {line}").code == status
    assert status == 0 or not list(tmp_path.glob("t.*"))


@pytest.mark.parametrize("jobs", ["", "--jobs 2"])
def test_a_folder_of_tables(charge: Callable[[str], Answer], tmp_path: Path, jobs: str) -> None:
    answer = charge(f"-f pbs-acct a.log b.log -o out/ {jobs}")
    assert answer.code == 0 and answer.err.splitlines()[-1] == "4 jobs: 2 charged, 1.00 EUR, 2 not (not-started 2)"
    tables = [parquet.read_table(tmp_path / "out" / f"{name}.log.parquet") for name in "ab"]
    assert [t.column("id").to_pylist() for t in tables] == [["1.head", "19.head"], ["2.head", "29.head"]]
    assert tables[0].schema.metadata[b"currency"] == b"EUR"


def test_one_parquet_file(charge: Callable[[str], Answer], tmp_path: Path) -> None:
    assert charge("-f sacct s.psv -o t.parquet").code == 0
    assert parquet.read_table(tmp_path / "t.parquet").num_rows == 8


def test_a_log_that_is_not_there_leaves_the_others(charge: Callable[[str], Answer], tmp_path: Path) -> None:
    answer = charge("-f pbs-acct a.log none.log -o out/ --jobs 2")
    assert answer.code == 3 and "none.log: No such file" in answer.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.log.parquet"]
    assert charge("-f pbs-acct a.log none.log -o t.parquet").code == 3
    assert charge("-f pbs-acct a.log none.log -o t.csv").code == 3
    assert not list(tmp_path.glob("t.*")) and not list(tmp_path.glob(".sssjob-*"))


@pytest.mark.parametrize("output", ["", "--json", "-o t.csv", "-o t.parquet"])
def test_one_table_by_several_processes(charge: Callable[[str], Answer], tmp_path: Path, output: str) -> None:
    """As one process makes it, in the order of the logs, one of them twice; nothing is left beside it."""
    made = []
    for jobs in (1, 2):
        answer = charge(f"-f pbs-acct a.log b.log a.log {output} --jobs {jobs}")
        table = next(tmp_path.glob("t.*"), None)
        rows = parquet.read_table(table).to_pylist() if output.endswith("parquet") else table and table.read_text()
        made.append((answer.code, sorted(answer.out.splitlines()), rows, sorted(answer.err.splitlines())))
        assert "1.head" in str((rows, answer.out))
        if table is not None:
            table.unlink()
        if not output:
            assert [row["id"] for row in csv.DictReader(answer.out.splitlines())] == [
                "1.head", "19.head", "2.head", "29.head", "1.head", "19.head"]
    assert made[0] == made[1] and not list(tmp_path.glob(".sssjob-*"))


def test_one_table_by_several_processes_without_a_log(charge: Callable[[str], Answer], tmp_path: Path) -> None:
    answer = charge("-f pbs-acct none.log a.log -o t.parquet --jobs 2")
    assert answer.code == 3 and "none.log: No such file" in answer.err
    assert not list(tmp_path.glob("t.*")) and not list(tmp_path.glob(".sssjob-*"))
    assert "1.head" in charge("-f pbs-acct none.log a.log --jobs 2").out


def test_recognised_logs(charge: Callable[[str], Answer], tmp_path: Path) -> None:
    named, found = charge("-f pbs-acct a.log b.log"), charge("-f auto a.log b.log")
    assert (found.code, found.out) == (0, named.out)
    assert found.err.splitlines()[0] == "a.log: pbs-acct: it begins with a stamp, a type of record and an id"
    assert charge("-f auto a.log b.log --jobs 2").out == named.out
    (tmp_path / "job.xml").write_text("<Job><Id>7</Id><State>Idle</State></Job>")
    assert "<Id>7</Id>" in charge("-f auto job.xml").out


def test_recognised_logs_that_are_read_once(charge: Callable[[str], Answer], tmp_path: Path) -> None:
    """A pipe is looked at and read, and none of it is lost; other processes cannot read it."""
    os.mkfifo(tmp_path / "pipe.log")
    text = PBS.format(1) * 2000         # more than is looked at
    feeding = threading.Thread(target=(tmp_path / "pipe.log").write_text, args=(text,), daemon=True)
    feeding.start()
    answer = charge("-f auto pipe.log")
    feeding.join()
    assert answer.code == 0 and "pipe.log: 4000 records read: 4000 given" in answer.err
    feeding = threading.Thread(target=(tmp_path / "pipe.log").write_text, args=(PBS.format(1),), daemon=True)
    feeding.start()
    answer = charge("-f auto pipe.log --jobs 2")
    feeding.join()
    assert answer.code == 2 and "--jobs needs files where --from is auto, and pipe.log is none" in answer.err


@pytest.mark.parametrize(("line", "message"), [
    ("-f pbs-acct a.log --dask tcp://127.0.0.1:1", "name a folder, -o DIR/"),
    ("-f pbs-acct - --jobs 2", "--jobs needs the names of logs, not standard input"),
    ("-f auto a.log s.psv", "a.log is pbs-acct, but s.psv is sacct: one format at a time"),
    ("-f auto rates.toml", "no format is recognised in it"),
    ("-f pbs-acct - -o out/", "not standard input"),
    ("-f pbs-acct a.log --itemise", "--itemise is for documents"),
    ("-f sss a.log b.log", "several files, --jobs and --dask are for accounting logs"),
    ("-f pbs-acct a.log --jobs 0", "--jobs"),
    ("-f nonsense a.log", "unknown format"),
    ("-f pbs-acct a.log --option zone=UTC", "no option 'zone' of pbs-acct"),
    ("-f sss a.log --option timezone=UTC", "no option 'timezone' of sss"),
])
def test_refusals(charge: Callable[[str], Answer], line: str, message: str) -> None:
    answer = charge(line)
    assert (answer.code, answer.out) == (2, "") and message in answer.err


@pytest.mark.parametrize("address", ["nonsense://x", "x", "tcp://127.0.0.1:1", "127.0.0.1:99999999"])
def test_no_scheduler_answers(charge: Callable[[str], Answer], address: str) -> None:
    pytest.importorskip("dask.distributed")
    answer = charge(f"-f pbs-acct a.log -o out/ --dask {address}")
    assert answer.code == 3 and "no Dask scheduler answers" in answer.err


RUN = "7|p|COMPLETED|{0}|{1}|3600|8\n"
RUNS = {"a.psv": SACCT + RUN.format(1795000000, 1795003600) + RUN.format(1795000000, 1795003600),
        "b.psv": SACCT + RUN.format(1795010000, 1795013600) + RUN.replace("7|", "8|", 1).format(1795000000, 1795003600),
        "c.psv": SACCT + RUN.format(1794000000, 1794003600)}


@pytest.mark.parametrize(("line", "package"), [
    *product(("", "--json", "-o t.csv"), ("pyarrow", "none")),
    *product(("-o t.parquet", "-o out/", "--jobs 2", "-o out/ --jobs 2"), ("pyarrow",))])
def test_the_last_attempt_alone(charge: Callable[[str], Answer], tmp_path: Path, line: str, package: str,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    """By rates that charge the last run of a requeued job, in whichever of the logs it stands and whether it comes
    before or after the others; of two records of one run the second counts."""
    (tmp_path / "rates.toml").write_text('attempts = "last"\n' + RATES)
    for name, text in RUNS.items():
        (tmp_path / name).write_text(text)
    if package == "none":
        monkeypatch.setattr("sssjob.accounting.table.find_spec", lambda name: None)
        monkeypatch.setattr("sssjob.accounting._sacct_columns.has_arrow", lambda: False)
    answer = charge(f"-f sacct {' '.join(RUNS)} --option machine=m {line}")
    assert answer.code == 0
    if "--json" in line:
        assert json.loads(answer.out.splitlines()[-1])["not"] == {"earlier-attempt": 3}
        rows = [row for row in map(json.loads, answer.out.splitlines()) if row["type"] == "job"]
    else:
        assert answer.err.splitlines()[-1] == "5 jobs: 2 charged, 8.00 EUR, 3 not (earlier-attempt 3)"
        text = (tmp_path / "t.csv").read_text() if "csv" in line else answer.out
        rows = list(csv.DictReader(text.splitlines())) if "parquet" not in line and "out" not in line else []
    for table in sorted([*tmp_path.glob("t.parquet"), *tmp_path.glob("out/*")]):
        rows += parquet.read_table(table).to_pylist()
    assert [(row["id"], str(row.get("charge") or ""), row.get("reason") or "") for row in rows] == [
        ("7", "", "earlier-attempt"), ("7", "", "earlier-attempt"), ("7", "4.00", ""), ("8", "4.00", ""),
        ("7", "", "earlier-attempt")]
    assert not list(tmp_path.rglob(".sssjob-*"))


@pytest.mark.parametrize(("line", "package"), [
    *product(("", "--json", "-o t.csv"), ("pyarrow", "none")),
    *product(("-o t.parquet", "-o out/", "--jobs 2", "-o out/ --jobs 2", "-o out/ --privacy p.toml"), ("pyarrow",))])
def test_a_run_is_charged_once(charge: Callable[[str], Answer], tmp_path: Path, line: str, package: str,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    """Where days of a log overlap the sum of the rows was too large, though totals and ledgers took each run once."""
    for name, text in RUNS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "d.psv").write_text(RUNS["b.psv"] + RUN.format(1795010000, 1795013601))
    (tmp_path / "p.toml").write_text('[properties]\nMachine = "redact"\nStartTime = "redact"\n')
    if package == "none":
        monkeypatch.setattr("sssjob.accounting.table.find_spec", lambda name: None)
        monkeypatch.setattr("sssjob.accounting._sacct_columns.has_arrow", lambda: False)
    answer = charge(f"-f sacct {' '.join(RUNS)} d.psv --option machine=m {line}")
    assert answer.code == 0
    if "--json" in line:
        assert json.loads(answer.out.splitlines()[-1])["not"] == {"repeated": 4}
        rows = [row for row in map(json.loads, answer.out.splitlines()) if row["type"] == "job"]
    else:
        assert answer.err.splitlines()[-1] == "8 jobs: 4 charged, 16.00 EUR, 4 not (repeated 4)"
        text = (tmp_path / "t.csv").read_text() if "csv" in line else answer.out
        rows = list(csv.DictReader(text.splitlines())) if "parquet" not in line and "out" not in line else []
    for table in sorted([*tmp_path.glob("t.parquet"), *tmp_path.glob("out/*")]):
        rows += parquet.read_table(table).to_pylist()
    again = ("7", "", "repeated")
    assert [(row["id"], str(row.get("charge") or ""), row.get("reason") or "") for row in rows] == [
        ("7", "4.00", ""), again, ("7", "4.00", ""), ("8", "4.00", ""), ("7", "4.00", ""), again,
        ("8", "", "repeated"), again]
    assert not list(tmp_path.rglob(".sssjob-*"))


def test_logs_of_one_name() -> None:
    assert names_of(["x/log", "y/log", "log"], "out") == [
        ("x/log", "out/log.parquet"), ("y/log", "out/log-2.parquet"), ("log", "out/log-3.parquet")]


@pytest.fixture
def logs(tmp_path: Path) -> list[tuple[str, str]]:
    logs = []
    for n in range(5):
        (tmp_path / f"{n}.log").write_text("".join(PBS.format(f"{n}{m}") for m in range(40)))
        logs.append((str(tmp_path / f"{n}.log"), str(tmp_path / f"{n}.parquet")))
    return logs


def tables(logs: list[tuple[str, str]]) -> list[Any]:
    return [parquet.read_table(target).to_pylist() for _, target in logs]


def test_a_pool_makes_what_one_process_makes(logs: list[tuple[str, str]]) -> None:
    work = Work("pbs-acct", RATES)
    alone = [charge_file(path, target, work) for path, target in logs]
    expected = tables(logs)
    assert list(in_pool(logs, work, 2)) == alone and tables(logs) == expected
    assert not list(Path(logs[0][0]).parent.glob(".sssjob-*"))


@pytest.mark.sweep
@pytest.mark.parametrize("deaths", ["one", "all"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_pool_with_a_process_that_is_killed(logs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch,
                                              tmp_path: Path, deaths: str, whole: bool) -> None:
    """One death is made good by another process. A log over which processes die is told and has no table; the others
    have theirs. Where that is so of a part, the whole is read."""
    work = Work("pbs-acct", RATES)
    expected = [charge_file(path, target, work) for path, target in logs]
    rows = tables(logs)
    for _, target in logs:
        os.unlink(target)

    def dying(path: str, target: str, work: Work, part: Any = None) -> Any:
        if path.endswith("2.log") and (whole or (part is not None and part.number == 0)) and (
                deaths == "all" or not (tmp_path / "died").exists()):
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return charge_file(path, target, work, part)

    monkeypatch.setattr("sssjob.accounting.partitions.charge_file", dying)
    monkeypatch.setattr("sssjob.accounting.cuts.LEAST", 1000)
    monkeypatch.setattr("sssjob.processes.threading.active_count", lambda: 1)       # copies of this process
    results = {result.path: result for result in in_pool(logs, work, 2 if whole else 12)}
    assert (tmp_path / "died").exists() and not list(tmp_path.glob(".sssjob-*"))
    for one, table, (path, target) in zip(expected, rows, logs, strict=True):
        if whole and deaths == "all" and path.endswith("2.log"):
            assert results[path].error == f"{path}: the process that charged it died" and not Path(target).exists()
            continue
        assert results[path] == one
        assert sorted(map(str, parquet.read_table(target).to_pylist())) == sorted(map(str, table))


@pytest.mark.sweep
def test_dask_with_workers_that_die(logs: list[tuple[str, str]]) -> None:
    """A real cluster on this machine, half of whose two workers (in a long run four) is killed in the middle: nothing
    is lost."""
    workers = 4 if os.environ.get("SSSJOB_SOAK") == "1" else 2
    distributed: Any = pytest.importorskip("dask.distributed")
    work = Work("pbs-acct", RATES)
    expected = [charge_file(path, target, work) for path, target in logs], tables(logs)
    for _, target in logs:
        os.unlink(target)
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                                  dashboard_address="127.0.0.1:0") as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        results = on_dask(logs, work, cluster.scheduler_address)
        found = [next(results)]
        for pid in pids[:workers // 2]:
            os.kill(pid, signal.SIGKILL)
        found += results
    assert sorted(found, key=lambda r: r.path) == sorted(expected[0], key=lambda r: r.path)
    assert tables(logs) == expected[1]


def test_an_interrupted_table_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is ended while it reads a log that does not end: neither a table nor a temporary file stays."""
    os.mkfifo(tmp_path / "log")
    (tmp_path / "rates.toml").write_text(RATES)

    def interrupt() -> None:
        with open(tmp_path / "log", "w") as log:
            log.write(PBS.format(1))
            log.flush()
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    monkeypatch.chdir(tmp_path)
    assert main(["charge", "-f", "pbs-acct", "log", "--rates", "rates.toml", "-o", "t.parquet"]) == 130
    thread.join()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "rates.toml"]


WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
from sssjob.cli import main
sys.exit(main({arguments!r}))
"""


@pytest.mark.parametrize(("names", "line"), [
    (("pyarrow", "numpy"), "-f sacct s.psv"), (("pyarrow", "numpy"), "-f sacct s.psv --json"),
    (("pyarrow", "numpy"), "-f pbs-acct a.log b.log"), (("numpy",), "-f sacct s.psv")])
def test_without_packages_that_a_table_does_not_need(charge: Callable[[str], Answer],
                                                     names: tuple[str, ...], line: str) -> None:
    """Rows, counts and findings are the same, whichever of them is installed."""
    with_all = charge(line)
    arguments = ["charge", *line.split(), "--rates", "rates.toml"]
    made = subprocess.run([sys.executable, "-c", WITHOUT.format(names=names, arguments=arguments)], capture_output=True,
                          text=True, check=False)
    assert (made.returncode, made.stdout, made.stderr) == with_all


@pytest.mark.parametrize("more", ["-o t.parquet", "-o out/", "--jobs 2"])
def test_tables_that_need_pyarrow(charge: Callable[[str], Answer], tmp_path: Path, more: str,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = charge(f"-f pbs-acct a.log {more}")
    assert (answer.code, answer.out) == (2, "") and "sssjob[tables]" in answer.err
    assert not list(tmp_path.glob("t.*")) and not (tmp_path / "out").exists()
