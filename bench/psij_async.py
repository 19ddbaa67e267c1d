"""Many jobs at once by tasks of asyncio, beside the same jobs by a thread for each few of them.

``python -m bench.psij_async [--jobs N] [--repeat N] [--check]``: executor ``local``, ``/bin/true``, best of N in turn.
With ``--check`` the exit status is 1 when tasks need more than 1.10 times as long as threads.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from psij import AsyncJob, AsyncJobExecutor, Job, JobExecutor, JobSpec

__all__ = ["by_tasks", "by_threads", "main"]

_THREADS = 16
_MOST = 1.10        # seconds of tasks by those of threads


def by_threads(count: int) -> float:
    """Seconds for so many jobs, submitted and waited for by threads."""
    executor = JobExecutor.get_instance("local")

    def run(_: int) -> None:
        job = Job(JobSpec("/bin/true"))
        executor.submit(job)
        job.wait()

    start = time.perf_counter()
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(run, range(count)))
    return time.perf_counter() - start


def by_tasks(count: int) -> float:
    """Seconds for so many jobs, each submitted and waited for by a task, all tasks at once."""

    async def run(executor: AsyncJobExecutor) -> None:
        job = AsyncJob(JobSpec("/bin/true"))
        await executor.submit(job)
        await job.wait()

    async def all_of_them() -> None:
        executor = AsyncJobExecutor.get_instance("local")
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(run(executor))

    start = time.perf_counter()
    asyncio.run(all_of_them())
    return time.perf_counter() - start


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.psij_async", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    pairs = [(by_threads(given.jobs), by_tasks(given.jobs)) for _ in range(given.repeat)]
    threads, tasks = (min(times) for times in zip(*pairs, strict=True))
    print(f"{given.jobs} jobs: {_THREADS} threads {threads:.2f} s, tasks {tasks:.2f} s, ratio {tasks / threads:.2f}")
    return int(given.check and tasks > _MOST * threads)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
