"""The Slurm executor of psij beside psij-python's: scripts a second, and the cost of following 10,000 queued jobs.

``python -m bench.psij_batch [--peer PYTHON] [--repeat N] [--check]``, as ``bench.psij_core``. No resource manager is
needed: commands are answered from memory, so that what is left is our own CPU time. Lines of the queue are those that
each asks for.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.psij_core import Measure, Program

__all__ = ["main", "measures"]

_SCRIPTS = """
import time
from io import StringIO
from psij import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1
executor = JobExecutor.get_instance("slurm")
job = Job(JobSpec("/bin/echo", ["hello", "world"], name="name", environment={"A": "b"},
                  resources=ResourceSpecV1(node_count=2, processes_per_node=2),
                  attributes=JobAttributes(queue_name="q", custom_attributes={"slurm.constraint": "d&e"})))
def write(count):
    start = time.process_time()
    for _ in range(count):
        executor.generate_submit_script(job, executor._create_script_context(job), StringIO())
    return count / (time.process_time() - start)
write(50)
print(write(2000))
"""
_POLL = """
import os, time
from psij import Job, JobExecutor, JobSpec, JobState, JobStatus
executor, count = JobExecutor.get_instance("slurm"), 10000
def jobs():
    for number in range(1000000, 1000000 + count):
        job = Job(JobSpec("/bin/true"))
        job.executor, job._native_id = executor, str(number)
        job.status = JobStatus(JobState.QUEUED, metadata={"native_id": str(number), "confirmed_at": 0.0})
        yield job
try:
    from psij.executors.batch._followed import Followed
    from psij.executors.batch._watch import Watcher
    answer = "JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|NODELIST|PARTITION|QOS\\n" + "".join(
        f"{1000000 + n}|PENDING|Priority|1795277397|1795299999|1795277397|1|1||batch|normal\\n" for n in range(count))
    followed, watcher = [Followed(executor, job, job.native_id, True) for job in jobs()], Watcher(("bench",))
    ids = [item.native_id for item in followed]
    poll = lambda: watcher._poll(followed, ids)
except ImportError:
    answer = "JOBARRAYID          ST                  REASON              \\n" + "".join(
        f"{1000000 + n:<20}{'PD':<20}{'Priority':<20}\\n" for n in range(count))
    thread = executor._queue_poll_thread
    thread._jobs.update((job.native_id, [job]) for job in jobs())
    poll = thread._poll
executor._run_command = lambda command: answer
poll()
times = []
for _ in range(10):
    start = time.process_time()
    poll()
    times.append(time.process_time() - start)
print(sorted(times)[5] * 1000, flush=True)
os._exit(0)
"""

_LOOK = """
import os, tempfile, time
from pathlib import Path
from psij import Job, JobExecutorConfig, JobSpec
from psij.executors.batch._lookout import Lookout
from psij.executors.batch._followed import Followed
from psij.executors.batch.slurm import SlurmJobExecutor
with tempfile.TemporaryDirectory() as folder:
    executor, lookout = SlurmJobExecutor(config=JobExecutorConfig(work_directory=Path(folder))), Lookout()
    executor.work_directory.mkdir()
    jobs = []
    for number in range(10000):
        job = Job(JobSpec("/bin/true"))
        lookout.want(Followed(executor, job, str(number), True))
        jobs.append(job)
        executor._script_path(job).touch()
        for suffix in (".out", ".nodefile", ".start"):
            executor._aux_path(str(number), suffix, job.id).touch()
    times = []
    for number in range(10):
        executor._aux_path(str(number), ".ec", jobs[number].id).touch()
        lookout._due, start = 0.0, time.process_time()
        found = [one for directory, names in lookout.listings() for one in lookout.found(directory, names)]
        times.append(time.process_time() - start)
    print(sorted(times)[5] * 1000)
"""

PROGRAMS = (
    Program("submit scripts", _SCRIPTS, "/s", True, 1.0),
    Program("a poll of 10,000 queued jobs", _POLL, "ms", False, 0.5),
    Program("a new record beside 10,000 running jobs", _LOOK, "ms", False, None),     # only ours looks for records
)


def _run(python: str, code: str, home: str) -> float:
    """The figure that a program prints. home: where it may have its work directory."""
    done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, cwd=home,
                          env={**os.environ, "HOME": home})
    return float(done.stdout)


def measures(peer: str | None, repeat: int) -> Iterator[Measure]:
    """All measures, one after another; ours and the peer's in turn."""
    sides = [sys.executable] if peer is None else [sys.executable, peer]
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as home:
            rounds = [[_run(python, program.code, home) for python in (sides if program.bar else sides[:1])]
                      for _ in range(repeat)]
        best = [(max if program.more else min)(figures) for figures in zip(*rounds, strict=True)]
        yield Measure(program, best[0], best[1] if len(best) > 1 else None)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.psij_batch", description="the Slurm executor beside psij-python's")
    options.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with psij-python")
    options.add_argument("--repeat", type=int, default=3)
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
