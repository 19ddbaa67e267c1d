"""The local executor against the least that starting a process costs: ``os.posix_spawn`` and ``waitid`` in a loop.

``python -m bench.psij_local [--jobs N] [--repeat N] [--check]``. Jobs are /bin/true; the loop runs between the runs of
the executor, so that both see the same machine. "Beside a handler" is submit in a program that handles a signal of its
own, whose main thread has another one submit. Latency is from sending SIGKILL to a sleeping job to the entry of its
callback, less what the kernel needs to end it. With ``--check`` the exit status is 1 when a bar is missed. Where other
work shares the cores, ``chrt -r 5 python -m bench.psij_local`` lets it wait, so that figures can be compared.
"""

from __future__ import annotations

import argparse
import os
import queue
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psij import Job, JobSpec, JobStatus
from psij.executors import LocalJobExecutor, _local_starter

__all__ = ["Measure", "main", "measures"]

MEMORY = """
import gc, os, signal, sys
from psij import Job, JobSpec
from psij.executors import LocalJobExecutor
executor, count, sizes = LocalJobExecutor(), int(sys.argv[1]), []
def note():
    gc.collect()
    sizes.append(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1024)
def start(n):
    jobs = [Job(JobSpec("/bin/sleep", ["600"])) for _ in range(n)]
    note()
    for job in jobs:
        executor.submit(job)
    note()
    for job in jobs:
        os.kill(int(job.native_id), signal.SIGKILL)
    for job in jobs:
        job.wait()
def end(n):
    for _ in range(n // 50):
        jobs = [Job(JobSpec("/bin/true")) for _ in range(50)]
        for job in jobs:
            executor.submit(job)
        for job in jobs:
            job.wait()
    note()
start(10)
del sizes[:]
note()
start(count)
end(count)
end(count)
empty, described, running, once, twice = sizes
print((described - empty) / count, (running - described) / count, (twice - once) / count)
"""
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of the table. bar: the value that is to be kept below, or above if ``least``; None for none."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    least: bool = False

    @property
    def missed(self) -> bool:
        """Whether the bar is missed."""
        return self.bar is not None and (self.value < self.bar if self.least else self.value > self.bar)

    def __str__(self) -> str:
        bar = "" if self.bar is None else f"{'>' if self.least else '<'} {self.bar:g}"
        mark = "" if self.bar is None else "MISSED" if self.missed else "ok"
        return f"{self.name:<46}{self.value:>10.2f} {self.unit:<8}{bar:>7} {mark}".rstrip()


def _bare(count: int) -> float:
    """Jobs per second of the loop."""
    start = time.perf_counter()
    for _ in range(count):
        pid = os.posix_spawn("/bin/true", ["/bin/true"], os.environ)
        os.waitid(os.P_PID, pid, os.WEXITED)
    return count / (time.perf_counter() - start)


def _starter_cpu() -> float:
    """CPU seconds of the starter process, 0 when there is none."""
    starter = _local_starter._starters.starter
    if starter is None:
        return 0.0
    fields = Path(f"/proc/{starter.pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _ours(executor: LocalJobExecutor, count: int, together: bool = False) -> tuple[float, float, float]:
    """Jobs per second, and CPU milliseconds per job of this process and of the starter. together: by submit_all."""
    jobs = [Job(JobSpec("/bin/true")) for _ in range(count)]
    starter, own, start = _starter_cpu(), time.process_time(), time.perf_counter()
    if together:
        executor.submit_all(jobs)
    else:
        for job in jobs:
            executor.submit(job)
    for job in jobs:
        job.wait()
    wall, own, starter = time.perf_counter() - start, time.process_time() - own, _starter_cpu() - starter
    return count / wall, own / count * 1000, starter / count * 1000


def speed(executor: LocalJobExecutor, count: int, repeat: int) -> Iterator[Measure]:
    """Jobs per second and CPU per job; medians."""
    _ours(executor, 20)
    bare, alone, together, handling = [], [], [], []
    for _ in range(repeat):
        bare.append(_bare(count))
        alone.append(_ours(executor, count))
        together.append(_ours(executor, count, together=True))
        before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
        handling.append(_ours(executor, count))
        signal.signal(signal.SIGUSR1, before)
    floor = statistics.median(bare)
    yield Measure("posix_spawn + waitid, one after another", floor, "jobs/s")
    for name, runs, least, most in (("submit", alone, 1.0, 0.25), ("submit_all", together, 1.3, 0.25),
                                    ("submit beside a handler", handling, None, None)):
        rate, own, starter = (statistics.median(values) for values in zip(*runs, strict=True))
        yield Measure(f"local executor, {name}", rate, "jobs/s")
        yield Measure(f"{name}: ratio", rate / floor, "x", least, least=True)
        yield Measure(f"{name}: own CPU per job", own, "ms", most)
        yield Measure(f"{name}: CPU of the starter per job", starter, "ms")


def _kernel_latency() -> float:
    """Milliseconds from SIGKILL to a readable process descriptor, without any of our code."""
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
    fd = os.pidfd_open(pid)
    time.sleep(0.01)
    start = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    select.select([fd], [], [])
    elapsed = (time.perf_counter() - start) * 1000
    os.close(fd)
    os.waitpid(pid, 0)
    return elapsed


def latency(executor: LocalJobExecutor, count: int) -> Iterator[Measure]:
    """Milliseconds from the end of a job to its callback. The kernel's part is measured in turns with it, and taken off
    each."""
    seen: queue.SimpleQueue[float] = queue.SimpleQueue()

    def tell(job: Job, status: JobStatus) -> None:
        if status.final:
            seen.put(time.perf_counter())

    kernels, times = [], []
    for _ in range(count):
        kernels.append(_kernel_latency())
        job = Job(JobSpec("/bin/sleep", ["60"]))
        job.set_job_status_callback(tell)
        executor.submit(job)
        time.sleep(0.01)
        start = time.perf_counter()
        os.kill(int(str(job.native_id)), signal.SIGKILL)
        times.append((seen.get(timeout=10) - start) * 1000 - kernels[-1])
    times.sort()
    yield Measure("SIGKILL to end, the kernel's part, median", statistics.median(kernels), "ms")
    yield Measure("end to callback, median", statistics.median(times), "ms", 0.45)
    yield Measure("end to callback, 95 %", times[int(count * 0.95)], "ms", 1.5)


def memory(count: int) -> Iterator[Measure]:
    """KiB of this process that a job costs: described, running, and when it has ended and is not kept."""
    done = subprocess.run([sys.executable, "-c", MEMORY, str(count)], capture_output=True, text=True, check=True)
    described, running, left = (float(n) for n in done.stdout.split())
    yield Measure("memory of a job as described", described, "KiB")
    yield Measure("memory of a job as it runs, above that", running, "KiB")
    yield Measure("memory left by a job that has ended", left, "KiB", 1.0)


def measures(count: int, repeat: int) -> Iterator[Measure]:
    """All measures, one after another."""
    executor = LocalJobExecutor()
    yield from speed(executor, count, repeat)
    yield from latency(executor, max(20, count // 2))
    yield from memory(4 * count)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.psij_local", description="the local executor against a bare loop")
    options.add_argument("--jobs", type=int, default=400)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    missed = False
    print(f"{'measure':<46}{'value':>10} {'':<8}{'bar':>7}")
    for measure in measures(given.jobs, given.repeat):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
