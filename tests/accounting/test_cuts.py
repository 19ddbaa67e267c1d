"""A log that is read in parts gives what it gives as a whole: jobs, counts, findings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sssjob.accounting import cuts
from sssjob.accounting.partitions import Result, Work, in_pool
from sssjob.findings import Findings
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.xml.writer import write_document

RATES = 'name = "r"\nversion = "1"\nrate = [{ type = "VBR", name = "Processors", rate = 0.01 }]\n'
STAMP = "11/21/2026 10:00:00"


def pbs(choose: random.Random) -> Iterator[str]:
    """Q, S, E in any mixture of jobs; runs that are requeued, suspended, deleted; what is no record."""
    waiting: list[list[str]] = []
    for n in range(120):
        facts = f"user=u{n % 5} ctime=1795000000 start={1795000100 + n} exec_host=n{n % 3}/0*2 Resource_List.ncpus=2"
        lines = [f"{STAMP};Q;{n}.h;queue=q", f"{STAMP};S;{n}.h;{facts} account=a{n % 3}"]
        lines += [f"{STAMP};z;{n}.h;", "11/21/2026 10:01:00;r;" + f"{n}.h;"] if n % 7 == 0 else []
        lines += [f"{STAMP};R;{n}.h;{facts} end={1795000150 + n}"] if n % 11 == 0 else []
        lines += [f"{STAMP};D;{n}.h;requestor=root@h"] if n % 13 == 0 else []
        lines += [f"{STAMP};E;{n}.h;{facts} end={1795000300 + n} Exit_status=0"] if n % 10 else []
        waiting.append(lines[::-1])
    while waiting:
        job = choose.choice(waiting[:8])
        yield job.pop()
        if not job:
            waiting.remove(job)
        if choose.random() < 0.05:
            yield choose.choice((f"{STAMP};E;x;", "nonsense", f"{STAMP};L;license;", f"{STAMP};E;7.h;ctime=x", ""))


def sacct(choose: random.Random) -> Iterator[str]:
    """Jobs with steps, components and rows that are none."""
    yield "JobID|User|State|ExitCode|Start|End|ElapsedRaw|AllocCPUS|NNodes|AllocTRES"
    for n in range(1, 150):
        rest = f"COMPLETED|0:0|{1795000000 + n}|{1795000060 + n}|60|4|1|cpu={choose.choice((4, 4, 8))},node=1"
        yield f"{n}{'+0' if n % 9 == 0 else ''}|u|{rest}"
        for step in range(choose.randrange(4)):
            yield f"{n}{'+0' if n % 9 == 0 else ''}.{step}||{rest}"
        if n % 9 == 0:
            yield f"{n}+1|u|{rest}"
        if choose.random() < 0.05:
            yield choose.choice(("x|y", "|||||||||", f"{n + 500}.0||{rest}", ""))


def sge(choose: random.Random) -> Iterator[str]:
    """Jobs, some with slaves before their master, some slaves without."""
    for n in range(1, 120):
        name = "a:b" if n % 17 == 0 else "job"
        line = (f"all.q:n{{host}}:g:u:{name}:{n}:sge:0:1795000000:{1795000010 + n}:{1795000070 + n}:0:0:60:50.5:1.5:"
                "1000.0:0:0:0:0:0:0:0:0.0:0:0:0:0:0:0:p:d:smp:4:0:52.0:0.5:0.1:-l h_rt=300:0.0:{task}:2048.0:0:0")
        for slave in range(choose.randrange(3) if n % 4 == 0 else 0):
            yield line.format(host=slave, task=f"{slave}.n")
        if n % 12:
            yield line.format(host=n % 5, task="NONE")


def lsf(choose: random.Random) -> Iterator[str]:
    """Jobs and other events."""
    for n in range(1, 100):
        yield (f'"JOB_FINISH" "9.11" {1795000100 + n} {n} 283 33554482 1 1795000000 0 0 1795000050 "u" "q" "" "" "" '
               f'"h" "d" "" "o" "e" "f" 0 1 "t{n % 4}" 64 3.3 "" "c" 277.21 17.28 0 0 -1 0 0 9 8 0 0 0 -1 0 0 0 0 0 '
               f'-1 "" "p" 0 {choose.choice((1, 1, 3))} "" "" 0 310424 339112 "" "" ""')
        if n % 10 == 0:
            yield '"JOB_NEW" "9.11" 5'


LOGS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "pbs-acct": pbs, "sacct": sacct, "sge-acct": sge, "lsf-acct": lsf}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LEAST", 1000)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [2, 5])
def test_parts_are_the_whole(name: str, seed: int, most: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(LOGS[name](random.Random(seed))) + "\n" * (seed != 3))
    parts = cuts.cut(str(log), name, {}, most)
    assert 2 <= len(parts) <= most
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    reading = reader.stream

    def read(part: cuts.Cut | None) -> tuple[list[str], Counts, Findings]:
        context = ReadContext("log", Findings("log"))
        with open(log, "rb") if part is None else cuts.opened_part(str(log), part) as file:
            stream = reading(file, context)
            return [write_document(job) for job in stream], stream.counts, context.findings

    jobs, counts, findings = read(None)
    made, found, total = [], [], Counts()
    for part in parts:
        some, more, reported = read(part)
        made += some
        total.add(more)
        found.append((part, list(reported)))
    assert sorted(made) == sorted(jobs) and (made == jobs or parts[0].job is not None)
    assert total == counts
    assert sorted(map(str, cuts.merged(found))) == sorted(map(str, findings))


def rows(path: Path) -> list[dict[str, object]]:
    import pyarrow.parquet as parquet

    records: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    return sorted(records, key=lambda row: str(sorted(row.items(), key=str)))


def charged(log: Path, name: str, jobs: int) -> tuple[Result, list[dict[str, object]]]:
    target = log.parent / f"{jobs}.parquet"
    (result,) = in_pool([(str(log), str(target))], Work(name, RATES, {"machine": "m"}), jobs)
    assert [p for p in log.parent.iterdir() if p.name.startswith(".")] == []
    return result, rows(target) if target.exists() else []


@pytest.mark.parametrize("name", LOGS)
def test_one_log_in_several_processes(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    log = tmp_path / "log"
    log.write_text("\n".join(LOGS[name](random.Random(9))) + "\n")
    (alone, table), (several, joined) = charged(log, name, 1), charged(log, name, 3)
    assert joined == table and table
    assert (several.counts, several.tally, several.error) == (alone.counts, alone.tally, "")
    assert sorted(map(str, several.findings)) == sorted(map(str, alone.findings))


def test_what_fails_in_a_part_fails_as_in_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    log = tmp_path / "log"
    log.write_text("\n".join(sacct(random.Random(1))).replace("1795000001", "2026-11-21T10:00:00") + "\n")
    (alone, table), (several, joined) = charged(log, "sacct", 1), charged(log, "sacct", 3)
    assert (several.error, joined) == (alone.error, table) and "names no zone" in alone.error


@pytest.mark.parametrize(("text", "options"), [
    ("1|u\n" * 900, {"columns": "jobid,user"}), ("JobID|User\n" + "1|u\n" * 900 + "JobID|Account\n1|a\n", {}),
    ("JobID,User\n" + "1,u\n" * 900, {"delimiter": ","}), ("JobID|User\n", {}), ("", {}),
])
def test_what_is_not_cut(text: str, options: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    assert cuts.cut(str(log), "sacct", options, 4) == []


def test_other_formats_and_encodings_are_not_cut(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 5000)
    assert cuts.cut(str(log), "swf", {}, 4) == []
    log.write_text("\n".join(lsf(random.Random(1))), encoding="utf-16")
    assert cuts.cut(str(log), "lsf-acct", {}, 4) == []
