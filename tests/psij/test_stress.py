"""Thousands of jobs, their statuses set by several threads that are switched as often as Python can: no state is lost,
doubled, out of order or backward, for callbacks and for those who wait."""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from psij import InvalidStateException, Job, JobExecutor, JobSpec, JobState, JobStatus, StageIn, SubmitException

THREADS = 4
SOON = timedelta(seconds=60)
FINAL = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELED)
STAGING = JobSpec("x", stage_in=[StageIn("a", "b")], cleanup=["b"])


@pytest.fixture(autouse=True)
def forced_switching() -> Iterator[None]:
    """Threads change after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Passive(JobExecutor):
    """An executor whose jobs' statuses are set by the test."""

    def submit(self, job: Job) -> None:
        self._check_job(job)
        job._bind(self)
        job.status = JobStatus(JobState.QUEUED)

    def cancel(self, job: Job) -> None:
        job.status = JobStatus(JobState.CANCELED)

    def attach(self, job: Job, native_id: str) -> None:
        job._attach(self)

    def list(self) -> list[str]:
        return []


def in_threads(*calls: Callable[[], None]) -> None:
    """Run all at once; errors come out."""
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == [] and not any(thread.is_alive() for thread in threads)


def seen_by(callbacks: dict[str, list[JobStatus]]) -> Callable[[Job, JobStatus], None]:
    return lambda job, status: callbacks.setdefault(job.id, []).append(status)


def shaken(jobs: list[Job], seed: int) -> Callable[[], None]:
    """Sets states of all jobs: some earlier ones in any order, now and then a final one, in the end always one."""
    def run() -> None:
        rng = random.Random(seed)
        for job in rng.sample(jobs, len(jobs)):
            for state in [*rng.sample(list(JobState), 4), rng.choice(FINAL)]:
                job.status = JobStatus(state, exit_code=rng.choice([None, 1]))
    return run


def check(job: Job, statuses: list[JobStatus]) -> None:
    states = [status.state for status in statuses]
    assert all(later.is_greater_than(earlier) for earlier, later in itertools.pairwise(states)), states
    assert statuses[-1] is job.status and job.status.final
    assert states[0] is JobState.QUEUED                 # set or filled in: the jobs were submitted
    if states[-1] is JobState.COMPLETED or statuses[-1].exit_code is not None:
        assert JobState.ACTIVE in states
    if states[-1] is JobState.COMPLETED and job.spec is STAGING:
        assert {JobState.STAGE_IN, JobState.CLEANUP} <= set(states)


@pytest.mark.sweep
@pytest.mark.parametrize("count", [500, 10_000 if os.environ.get("SSSJOB_SOAK") == "1" else 2_500])
def test_states_from_several_threads(count: int) -> None:
    executor = Passive()
    by_job: dict[str, list[JobStatus]] = {}
    by_executor: dict[str, list[JobStatus]] = {}
    executor.set_job_status_callback(seen_by(by_executor))
    jobs = [Job(STAGING if number % 2 else JobSpec("x")) for number in range(count)]
    for job in jobs:
        job.set_job_status_callback(seen_by(by_job))
        executor.submit(job)
    waited: list[JobStatus | None] = []
    in_threads(*(shaken(jobs, seed) for seed in range(THREADS)),
               lambda: waited.extend(job.wait(SOON) for job in jobs))
    drained(executor)
    assert waited == [job.status for job in jobs]
    for job in jobs:
        assert by_job[job.id] == by_executor[job.id]
        check(job, by_job[job.id])


def drained(executor: JobExecutor) -> None:
    """Wait until all callbacks so far were called."""
    last, done = Job(JobSpec("x")), threading.Event()
    last.set_job_status_callback(lambda job, status: done.set())
    executor.submit(last)
    assert done.wait(60)


@pytest.mark.sweep
def test_callbacks_that_submit_cancel_and_wait() -> None:
    """Each job's end submits the next one, cancels it at once and waits for it, all inside callbacks."""
    executor, lock, done = Passive(), threading.Lock(), threading.Event()
    waiting = [Job(JobSpec("x")) for _ in range(400)]
    ended: list[str] = []

    def callback(job: Job, status: JobStatus) -> None:
        if not status.final:
            return
        with lock:
            ended.append(job.id)
            following = waiting.pop() if waiting else None
        if following is None:
            if len(ended) == 400:
                done.set()
            return
        executor.submit(following)
        following.cancel()
        ending = following.wait()
        assert ending is not None and ending.final

    executor.set_job_status_callback(callback)
    started = [waiting.pop() for _ in range(8)]
    for job in started:
        executor.submit(job)
    in_threads(*(job.cancel for job in started))
    assert done.wait(60) and len(set(ended)) == 400


@pytest.mark.sweep
def test_only_one_of_many_submits() -> None:
    executor = Passive()
    for _ in range(200):
        job = Job(JobSpec("x"))
        refused: list[bool] = []

        def submit(job: Job = job, refused: list[bool] = refused) -> None:
            try:
                executor.submit(job)
            except InvalidStateException:
                refused.append(True)

        in_threads(*[submit] * THREADS)
        assert len(refused) == THREADS - 1 and job.executor is executor


@pytest.mark.sweep
def test_waiting_meets_setting() -> None:
    """A waiter never sleeps past the state it waits for, whoever is first."""
    for _ in range(300):
        job = Job()
        found: list[JobStatus | None] = []

        def wait(job: Job = job, found: list[JobStatus | None] = found) -> None:
            found.append(job.wait(SOON, JobState.ACTIVE))

        in_threads(wait, lambda job=job: setattr(job, "status", JobStatus(JobState.ACTIVE)), wait)  # type: ignore[misc]
        assert found == [job.status] * 2


def test_cancel_of_one_never_submitted() -> None:
    with pytest.raises(SubmitException):
        Job().cancel()
