"""Accounting logs to charges: records a second of one core, on generated logs.

``python -m bench.charges [--records N] [--check]``: PBS, Slurm, Grid Engine and LSF text to jobs and to SSS XML, jobs
to charges, sacct text to the charge table by columns. With ``--check`` the exit status is 1 when a bar is missed.
``--pipe FORMAT`` shows what memory a log takes that is never whole, ``--scaling`` what several processes make of one.
"""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, Final

from bench.psij_local import Measure
from sssjob.accounting import charge, read_rates
from sssjob.accounting.columnar import SacctTable
from sssjob.accounting.partitions import Work, in_pool
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.records.base import RecordTranslator, Stream
from sssjob.translators.records.stream import texts

__all__ = ["LOGS", "main", "measures"]

RATES = """
name = "bench"
version = "1"
currency = "EUR"
rate = [
  { type = "VBR", name = "Processors", rate = 0.012, per = "hour" },
  { type = "NBM", name = "QualityOfService", instance = "high", rate = 2 },
]
"""
MANY_RATES = """
name = "bench"
version = "1"
currency = "EUR"
rate = [
  { type = "VBR", name = "Processors", rate = 0.012, per = "hour" },
  { type = "VBR", name = "GPU", resource_type = "a100", rate = 0.9, per = "hour" },
  { type = "VBR", name = "GPU", resource_type = "h100", rate = 1.9, per = "hour" },
  { type = "VBR", name = "Memory", units = "GB", rate = 0.001, per = "hour" },
  { type = "VBU", name = "Energy", units = "kWh", rate = 0.2 },
  { type = "NBM", name = "QualityOfService", instance = "high", rate = 2 },
]
"""


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def pbs(count: int, whole: bool = False) -> Iterator[str]:
    """E records; whole: of each job Q, S and E."""
    choose = random.Random(1)
    for n in range(count):
        cpus, start, ran = choose.choice((1, 4, 16)), 1795000000 + n, choose.randrange(60, 9000)
        who = (f'user=u{n % 50} group=g account="p{n % 20}" jobname=j{n % 7} queue=q ctime={start - n % 90} '
               f"qtime={start - n % 90} etime={start - n % 90} start={start} exec_host=n{n % 9}/0*{cpus} "
               f"Resource_List.ncpus={cpus} Resource_List.walltime=01:00:00")
        if whole:
            yield f"11/21/2026 10:00:09;Q;{n}.head;queue=q\n11/21/2026 10:00:09;S;{n}.head;{who}\n"
        yield (f"11/21/2026 10:00:09;E;{n}.head;{who} session={n % 9999} end={start + ran} "
               f"Exit_status={int(n % 9 == 0)} resources_used.cput={_clock(ran * cpus * 9 // 10)} "
               f"resources_used.mem={choose.randrange(9999999)}kb resources_used.ncpus={cpus} "
               f"resources_used.walltime={_clock(ran)} run_count=1\n")


def sacct(count: int, steps: bool = False) -> Iterator[str]:
    """A line a job; steps: its batch and extern steps too, and what they used."""
    choose = random.Random(1)
    yield ("JobID|User|Account|Partition|QOS|Cluster|State|ExitCode|Submit|Start|End|ElapsedRaw|AllocCPUS|NNodes|"
           f"AllocTRES{'|TotalCPU|MaxRSS' if steps else ''}\n")
    for n in range(1, count + 1):
        cpus, start, ran = choose.choice((1, 4, 16)), 1795000000 + n, choose.randrange(60, 9000)
        tres = f"cpu={cpus},mem={cpus}G,node=1"
        end = f"|{_clock(ran)}|\n" if steps else "\n"
        yield (f"{n}|u{n % 50}|p{n % 20}|batch|{'high' if n % 3 else 'normal'}|colony|COMPLETED|0:0|{start - 50}|"
               f"{start}|{start + ran}|{ran}|{cpus}|1|billing={cpus},{tres}{end}")
        for step in ("batch", "extern") if steps else ():
            yield (f"{n}.{step}||p{n % 20}|||colony|COMPLETED|0:0|{start}|{start}|{start + ran}|{ran}|{cpus}|1|{tres}|"
                   f"{_clock(ran)}|{choose.randrange(9999999)}K\n")


def sacct_of_gpus(count: int, letters: bool = False) -> Iterator[str]:
    """A line a job, with many columns; what it was assigned differs from job to job. letters: beyond ASCII, in a
    comment now and then, and a control character."""
    choose = random.Random(1)
    yield ("JobID|JobIDRaw|JobName|User|Account|Partition|QOS|Cluster|State|ExitCode|Submit|Eligible|Start|End|"
           "Elapsed|ElapsedRaw|Suspended|AllocCPUS|NCPUS|NNodes|NodeList|ReqTRES|AllocTRES|TotalCPU|ConsumedEnergyRaw|Comment|"
           "Room\n")
    for n in range(1, count + 1):
        cpus, start, ran, gpus = choose.choice((1, 4, 16)), 1795000000 + n, choose.randrange(60, 9000), 1 + n % 4
        model = choose.choice(("a100", "h100"))
        comment = "comment" if not letters or n % 10 else "Prüfung" if n % 1000 else "\x07"
        yield (f"{n}|{n}|j{n}|u{n % 50}|p{n % 20}|gpu|{'high' if n % 3 else 'normal'}|colony|COMPLETED|0:0|"
               f"{start - 50}|{start - 50}|{start}|{start + ran}|{_clock(ran)}|{ran}|00:00:00|{cpus}|{cpus}|1|n{n % 9}|"
               f"cpu={cpus},mem={n}M,node=1|billing={cpus},cpu={cpus},energy={7 * n},gres/gpu:{model}={gpus},"
               f"gres/gpu={gpus},mem={n}M,node=1|{_clock(ran)}|{7 * n}|{comment} {n}|room {n % 300}\n")


def sge(count: int) -> Iterator[str]:
    """A line a job."""
    choose = random.Random(1)
    for n in range(count):
        start, ran = 1795000000 + n, choose.randrange(60, 9000)
        cpu = ran * 36 / 10
        yield (f"all.q:n{n % 9}:g:u{n % 50}:job{n % 7}:{n + 1}:sge:0:{start - 60}:{start}:{start + ran}:0:0:{ran}:"
               f"{cpu - 1.5:.6f}:1.500000:{choose.randrange(9999999)}.000000:0:0:0:0:0:0:0:0.000000:0:0:0:0:0:0:"
               f"p{n % 20}:defaultdepartment:smp:4:0:{cpu:.6f}:{ran / 7:.6f}:0.1:-l h_rt=9000 -pe smp 4:0.000000:NONE:"
               f"{choose.randrange(10**9)}.000000:0:0\n")


def lsf(count: int) -> Iterator[str]:
    """JOB_FINISH of 9.11, two to four hosts a job, a command with quotes in it now and then."""
    choose = random.Random(1)
    for n in range(count):
        start, ran, hosts = 1795000000 + n, choose.randrange(60, 9000), choose.randrange(2, 5)
        listed = " ".join(f'"16*h{(n + i) % 40}"' for i in range(hosts))
        used = " ".join(f"h{(n + i) % 40} {choose.randrange(9999)} 0 {ran * 16} 60 0" for i in range(hosts))
        command = 'mpirun -R ""span[ptile=16]"" a' if n % 50 == 0 else f"mpirun app {n % 300}"
        user, slots = f"u{n % 50}", 16 * hosts
        yield (f'"JOB_FINISH" "9.11" {start + ran} {n + 1} 22025 33882739 {slots} {start - 60} 0 0 {start} "{user}" '
               f'"regular" "span[ptile=16]" "" "" "login4" "/scratch/{user}" "" "%J.out" "%J.err" "{n}.4" 0 {hosts} '
               f'{listed} 64 60.0 "job{n % 7}" "{command}" {ran * 30.5:.6f} 67.060000 966960 0 -1 0 0 3026323 0 0 0 0 '
               f'-1 0 0 0 12529329 6498459 -1 "" "p{n % 20}" 0 {slots} "" "" 0 {choose.randrange(9999999)} 0 "" "" "" '
               f'"" 0 "" 0 "" -1 "/p/{user}" "" "" "" -1 "" "" 6160 "" {start} "" "" 0 {hosts} {used} 43200 0 8688640 '
               f'"select[type == local] " "" -1 "" -1 0 "" 0 0 "" {ran} "/scratch" 1 "18338657682652659712" 1 ""\n')


#: Format -> (title, lines of so many jobs, records a second that are wanted).
LOGS: Final[dict[str, tuple[str, Callable[[int], Iterator[str]], int]]] = {
    "pbs-acct": ("PBS", pbs, 60_000), "sacct": ("Slurm", sacct, 60_000), "sge-acct": ("Grid Engine", sge, 60_000),
    "lsf-acct": ("LSF", lsf, 30_000),
}


def _rate(work: Callable[[], int]) -> float:
    """Of CPU time, the best of three runs."""
    best = 0.0
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        done = work()
        best = max(best, done / (time.process_time() - start))
    return best


def measures(count: int) -> Iterator[Measure]:
    """Records a second."""
    logs = {name: "".join(made(count)).encode() for name, (_, made, _) in LOGS.items()}
    for name, (title, _, bar) in LOGS.items():
        yield _measured(f"{title} text to jobs", partial(_count, name, logs[name]), bar)
    more = {"PBS text to jobs, with Q and S": ("pbs-acct", pbs(count // 3, whole=True)),
            "Slurm text to jobs, with steps": ("sacct", sacct(count // 3, steps=True))}
    for title, (name, lines) in more.items():
        yield _measured(title, partial(_records, name, "".join(lines).encode()), 60_000)
    for name, (title, _, _) in LOGS.items():
        yield _measured(f"{title} text to SSS XML", partial(_written, name, logs[name]), 30_000)
    yield from _charges(count, logs["pbs-acct"])


def _charges(count: int, log: bytes) -> Iterator[Measure]:
    rates = read_rates(RATES)
    jobs = list(_stream("pbs-acct", log))[:count // 4]
    yield _measured("a charge, itemised", lambda: len([charge(job, rates) for job in jobs]))
    for title, lines, text, bar in (
            ("", sacct, RATES, 300_000),
            (", GPUs, memory, energy, all texts different", sacct_of_gpus, MANY_RATES, 50_000),
            (", and letters beyond ASCII", partial(sacct_of_gpus, letters=True), MANY_RATES, 50_000)):
        yield _measured(f"sacct text to the charge table, by columns{title}",
                        partial(_tabled, "".join(lines(10 * count)).encode(), text), bar)


def _tabled(data: bytes, rates: str) -> int:
    return sum(batch.num_rows for batch in SacctTable(ReadContext(), read_rates(rates)).batches(io.BytesIO(data)))


def _measured(title: str, work: Callable[[], int], bar: int | None = None) -> Measure:
    return Measure(title, _rate(work), "records/s", bar, least=True)


def _stream(name: str, data: bytes) -> Stream:
    translator = get(name)
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    return translator.stream(io.BytesIO(data), ReadContext(options={"machine": "m"}))


def _count(name: str, data: bytes) -> int:
    return sum(1 for _ in _stream(name, data))      # none is kept, as by the commands


def _records(name: str, data: bytes) -> int:
    stream = _stream(name, data)
    deque(stream, 0)
    return stream.counts.read


def _written(name: str, data: bytes) -> int:
    stream = _stream(name, data)
    deque(texts(stream, get("sss"), WriteContext(), "log"), 0)
    return stream.counts.read


# --- memory and processes -----------------------------------------------------------------------------------------

def _peak() -> float:
    """MB that this process has ever held."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def _feed(made: Callable[[int], Iterator[str]], count: int, fd: int) -> None:
    """Write a log into a pipe."""
    with open(fd, "w") as file:
        lines = made(count)
        while piece := "".join(islice(lines, 5000)):
            file.write(piece)


def _jobs_of(name: str, file: BinaryIO) -> Iterator[int]:
    translator = get(name)
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    return (1 for _ in translator.stream(file, ReadContext(options={"machine": "m"})))


def _rows_of(file: BinaryIO) -> Iterator[int]:
    return (batch.num_rows for batch in SacctTable(ReadContext(), read_rates(RATES)).batches(file))


def piped(name: str, count: int) -> Iterator[str]:
    """Peak memory while a log of so many records comes through a pipe, at 10 %, 50 % and all of it. name: a format, or
    ``columns`` for sacct to the charge table."""
    here, there = os.pipe()
    made = sacct if name == "columns" else LOGS[name][1]
    child = multiprocessing.get_context("fork").Process(target=_feed, args=(made, count, there))
    child.start()
    os.close(there)
    marks, done, start = [count // 10, count // 2, count], 0, time.process_time()
    with open(here, "rb") as file:
        for some in _rows_of(file) if name == "columns" else _jobs_of(name, file):
            done += some
            if done >= marks[0]:
                rate = done / (time.process_time() - start)
                yield f"{name}: {done} of {count}, peak {_peak():.0f} MB, {rate:.0f} jobs/s"
                marks = [mark for mark in marks if mark > done] or [count + 1]
    child.join()


def scaling(count: int) -> Iterator[str]:
    """One log to a charge table in one process and in one for each core: CPU seconds on the longest way, which is what
    the clock shows where the cores are free."""
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        for name, (title, made, _) in LOGS.items():
            log = os.path.join(folder, "log")
            with open(log, "w") as file:
                file.writelines(made(count))
            took = []
            for jobs in (1, cores):
                start = os.times()
                for result in in_pool([(log, os.path.join(folder, "table.parquet"))], Work(name, RATES), jobs):
                    assert result.tally.jobs == count, result.error
                end = os.times()
                own, others = end.user + end.system - start.user - start.system, (
                    end.children_user + end.children_system - start.children_user - start.children_system)
                took.append(own + others / cores)
            yield (f"{title}: {count} jobs, {took[0]:.1f} s by one process, {took[1]:.1f} s by {cores}: "
                   f"{took[0] / took[1]:.2f} x")


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.charges", description="accounting logs to charges")
    options.add_argument("--records", type=int, default=20_000)
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    options.add_argument("--pipe", choices=[*LOGS, "columns"], help="peak memory of --records through a pipe instead")
    options.add_argument("--scaling", action="store_true", help="one log of --records in several processes instead")
    given = options.parse_args(arguments)
    if given.pipe or given.scaling:
        for line in piped(given.pipe, given.records) if given.pipe else scaling(given.records):
            print(line, flush=True)
        return 0
    missed = False
    for measure in measures(given.records):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
