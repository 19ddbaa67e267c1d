"""The core of psij beside psij-python: import, JSON, memory of a job, changes of state.

``python -m bench.psij_core [--peer PYTHON] [--repeat N] [--check]``. PYTHON is the interpreter of an environment that
has psij-python; without it only our own figures are printed. Each measure is a small program in a fresh interpreter
without site packages but the one under test, compiled before, ours and the peer's in turn, best of N. Seconds are CPU
time, except for the import, which is by the clock. With ``--check`` the exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psij

__all__ = ["Measure", "Program", "main", "measures"]

OWN = Path(psij.__file__).resolve().parents[1]

_IMPORT = """
start = time.perf_counter()
import psij
print((time.perf_counter() - start) * 1000)
"""
_JSON = """
import contextlib, io
from datetime import timedelta
from psij import JobAttributes, JobSpec, ResourceSpecV1
from psij.serialize import JSONSerializer
spec = JobSpec("/bin/date", ["-u", "+%Y"], "/tmp", name="date", environment={"A": "1", "B": "2"},
               stdout_path="/tmp/out", resources=ResourceSpecV1(node_count=2, processes_per_node=4),
               attributes=JobAttributes(timedelta(hours=1), "debug", custom_attributes={"slurm.constraint": "gpu"}))
json, count = JSONSerializer(), 1000
with contextlib.redirect_stdout(io.StringIO()):     # psij-python prints what it reads
    start = time.process_time()
    for _ in range(count):
        json.loads(json.dumps(spec))
    seconds = time.process_time() - start
print(count / seconds)
"""
_MEMORY = """
import gc, tracemalloc
from psij import Job, JobSpec
gc.collect()
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
jobs = [Job(JobSpec("/bin/true")) for _ in range(10000)]
gc.collect()
print((tracemalloc.get_traced_memory()[0] - before) / len(jobs))
"""
_STATES = """
from psij import Job, JobSpec, JobState, JobStatus
count = 20000
jobs = [Job(JobSpec("/bin/true")) for _ in range(count)]
start = time.process_time()
for job in jobs:
    job.status = JobStatus(JobState.QUEUED)
    job.status = JobStatus(JobState.ACTIVE)
    job.status = JobStatus(JobState.COMPLETED, exit_code=0)
print(3 * count / (time.process_time() - start))
"""
_CALLBACKS = """
import threading
from psij import Job, JobSpec, JobState, JobStatus
count, seen, done = 20000, [], threading.Event()
def callback(job, status):
    seen.append(status)
    if len(seen) == 3 * count:
        done.set()
jobs = [Job(JobSpec("/bin/true")) for _ in range(count)]
for job in jobs:
    job.set_job_status_callback(callback)
start = time.process_time()
for job in jobs:
    job.status = JobStatus(JobState.QUEUED)
    job.status = JobStatus(JobState.ACTIVE)
    job.status = JobStatus(JobState.COMPLETED, exit_code=0)
done.wait()
print(3 * count / (time.process_time() - start))
"""


@dataclass(frozen=True, slots=True)
class Program:
    """What is measured. more: larger is better. bar: on the ratio ours to peer's, None for none."""

    name: str
    code: str
    unit: str
    more: bool
    bar: float | None


PROGRAMS = (
    Program("import psij", _IMPORT, "ms", False, 0.2),
    Program("JSON round trips", _JSON, "/s", True, 20.0),
    Program("memory of a job with its specification", _MEMORY, "B", False, 1.0),
    Program("changes of state", _STATES, "/s", True, None),
    Program("changes of state with a callback", _CALLBACKS, "/s", True, None),
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of the table."""

    program: Program
    own: float
    peer: float | None

    @property
    def missed(self) -> bool:
        """Whether the bar is missed."""
        if self.peer is None or self.program.bar is None:
            return False
        ratio = self.own / self.peer
        return ratio < self.program.bar if self.program.more else ratio > self.program.bar

    def __str__(self) -> str:
        line = f"{self.program.name:<40}{self.own:>10.0f} {self.program.unit:<3}"
        if self.peer is None:
            return line.rstrip()
        line += f"{self.peer:>10.0f} {self.program.unit:<3}{self.own / self.peer:>8.2f}"
        if self.program.bar is None:
            return line
        return f"{line} {'>' if self.program.more else '<'} {self.program.bar:<5g}{'MISSED' if self.missed else 'ok'}"


def _run(python: str, folder: Path, code: str, cache: str) -> float:
    """The figure that a program prints. cache: folder for compiled modules."""
    head = f"import sys, time\nsys.path.insert(0, {str(folder)!r})\n"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([python, "-S", "-c", head + code], capture_output=True, text=True, check=True, cwd="/",
                          env=environment)
    return float(done.stdout)


def _folder_of_peer(python: str) -> Path:
    """Where psij-python lies in its environment."""
    code = "import psij, pathlib; print(pathlib.Path(psij.__file__).resolve().parents[1])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return Path(done.stdout.strip())


def measures(peer: str | None, repeat: int) -> Iterator[Measure]:
    """All measures, one after another."""
    sides = [(sys.executable, OWN)] + ([] if peer is None else [(peer, _folder_of_peer(peer))])
    with tempfile.TemporaryDirectory() as cache:
        for python, folder in sides:
            _run(python, folder, _IMPORT, cache)
        for program in PROGRAMS:
            rounds = [[_run(python, folder, program.code, cache) for python, folder in sides] for _ in range(repeat)]
            best = [(max if program.more else min)(figures) for figures in zip(*rounds, strict=True)]
            yield Measure(program, best[0], best[1] if len(best) > 1 else None)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.psij_core", description="the core of psij beside psij-python")
    options.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with psij-python")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    print(f"{'measure':<40}{'psij':>10}    " + ("" if given.peer is None else f"{'peer':>10}   {'ratio':>8} bar"))
    missed = False
    for measure in measures(given.peer, given.repeat):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
