"""psij in programs that use asyncio."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from psij import (
    AsyncJob,
    AsyncJobExecutor,
    InvalidJobException,
    InvalidStateException,
    Job,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    SubmitException,
)
from psij.exceptions import JobException
from psij.executors._rest_calls import FacilityError

Program = Callable[[AsyncJobExecutor], Coroutine[Any, Any, None]]


def sh(command: str, **members: Any) -> AsyncJob:
    return AsyncJob(JobSpec("/bin/sh", ["-c", command], **members))


def run(program: Program, folder: Path) -> None:
    async def main() -> None:
        executor = AsyncJobExecutor.get_instance("local", config=JobExecutorConfig(work_directory=folder))
        async with asyncio.timeout(30):
            await program(executor)

    asyncio.run(main())


async def _ends(executor: AsyncJobExecutor) -> None:
    job = sh("exit 5")
    assert (job.status.state, job.native_id, job.executor) == (JobState.NEW, None, None)
    await executor.submit(job)
    status = await job.wait()
    assert status is job.status and (status.state, status.exit_code) == (JobState.FAILED, 5)
    assert job.executor is executor and job.native_id and await job.wait(0) is status
    await job.cancel()


async def _timeouts(executor: AsyncJobExecutor) -> None:
    job = sh("sleep 30")
    await executor.submit(job)
    assert await job.wait(0) is None and await job.wait(0.05) is None
    active = await job.wait(target_states=[JobState.QUEUED, JobState.ACTIVE])
    assert active is not None and active.state is JobState.ACTIVE
    assert await executor.list() == [job.native_id]
    await job.cancel()
    ended = await job.wait()
    assert ended is not None and ended.state is JobState.CANCELED and await executor.list() == []


async def _canceled_tasks(executor: AsyncJobExecutor) -> None:
    job = sh("sleep 0.3; exit 3")
    await executor.submit(job)
    waits = asyncio.create_task(job.wait())
    await asyncio.sleep(0.01)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    status = await job.wait()
    assert status is not None and (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert job._job.__dict__["_waiters"] == []


async def _canceled_submissions(executor: AsyncJobExecutor) -> None:
    job = sh("exit 3")
    submits = asyncio.create_task(executor.submit(job))
    await asyncio.sleep(0)
    submits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submits
    status = await job.wait()
    assert status is not None and status.exit_code == 3


async def _statuses(executor: AsyncJobExecutor) -> None:
    job = sh("sleep 0.1")
    states = []
    submits = asyncio.create_task(executor.submit(job))
    async for status in job:
        states.append(status.state)
    await submits
    order = [JobState.NEW, JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert states == [state for state in order if state in states] and states[-1] is JobState.COMPLETED
    assert [status.state async for status in job.statuses()] == [JobState.COMPLETED]


async def _callbacks(executor: AsyncJobExecutor) -> None:
    seen: list[tuple[str, JobState]] = []
    over = asyncio.Event()

    async def of_job(job: AsyncJob, status: JobStatus) -> None:
        seen.append(("job", status.state))
        raise ValueError

    async def of_executor(job: AsyncJob, status: JobStatus) -> None:
        await asyncio.sleep(0)
        seen.append(("executor", status.state))
        if status.final:
            over.set()

    await executor.set_job_status_callback(of_executor)
    job = sh(":")
    job.set_job_status_callback(of_job)
    await executor.submit(job)
    await over.wait()
    assert seen == [(whose, state) for state in (JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)
                    for whose in ("job", "executor")]


async def _callbacks_before_wait_returns(executor: AsyncJobExecutor) -> None:
    """What a program does that ends after its last wait: the loop is closed then, and with it any callback."""
    seen: list[JobState] = []

    async def slow(job: AsyncJob, status: JobStatus) -> None:
        await asyncio.sleep(0.02)
        assert await job.wait(JobState.QUEUED) is not None      # which waits for no callback, being one
        seen.append(status.state)

    job = sh(":")
    job.set_job_status_callback(slow)
    await executor.submit(job)
    assert await job.wait() is job.status and seen == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    failing = sh(":")

    async def awaits_what_is_cancelled(job: AsyncJob, status: JobStatus) -> None:
        seen.append(status.state)
        over = asyncio.get_running_loop().create_future()
        over.cancel()
        await over

    failing.set_job_status_callback(awaits_what_is_cancelled)
    await executor.submit(failing)
    assert await failing.wait() is failing.status and seen[3:] == seen[:3]
    del seen[3:]
    endless, late = sh(":"), sh("sleep 30")
    endless.set_job_status_callback(lambda job, status: asyncio.sleep(30))
    await executor.submit(endless)
    assert await endless.wait(0.3) is endless.status        # which is seen, whatever the callback does
    await executor.submit(late)
    late.set_job_status_callback(slow)
    await late.cancel()
    assert await late.wait() is late.status and seen[3:] == [JobState.CANCELED]


async def _refusals(executor: AsyncJobExecutor) -> None:
    with pytest.raises(InvalidJobException, match="takes an AsyncJob, not Job"):
        await executor.submit(Job(JobSpec("/bin/true")))  # type: ignore[arg-type]
    nothing: Any = None
    for ask in (executor.submit, executor.cancel, partial(executor.attach, native_id="17")):
        with pytest.raises(InvalidJobException, match="takes an AsyncJob, not NoneType"):
            await ask(nothing)
    wrong = AsyncJob(JobSpec())
    with pytest.raises(InvalidJobException, match="executable"):
        await executor.submit(wrong)
    assert (wrong.status.state, wrong.executor) == (JobState.NEW, None)
    wrong.spec = JobSpec("/bin/true")
    await executor.submit(wrong)
    with pytest.raises(InvalidStateException, match="already submitted"):
        await executor.submit(wrong)
    with pytest.raises(SubmitException, match="never submitted"):
        await sh(":").cancel()
    assert (await wrong.wait()) is not None


async def _same_job_twice_at_once(executor: AsyncJobExecutor) -> None:
    job = sh(":")
    results = await asyncio.gather(executor.submit(job), executor.submit(job), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), InvalidStateException]
    assert (await job.wait()) is not None


async def _many(executor: AsyncJobExecutor) -> None:
    jobs = [sh(f"exit {number % 7}") for number in range(100)]
    await asyncio.gather(*map(executor.submit, jobs))
    statuses = await asyncio.gather(*(job.wait() for job in jobs))
    assert [status and status.exit_code for status in statuses] == [number % 7 for number in range(100)]


async def _run(executor: AsyncJobExecutor) -> None:
    assert (await executor.run(sh(":"))).exit_code == 0
    with pytest.raises(JobException, match="exit code 4") as raised:
        await executor.run(sh("exit 4"))
    assert raised.value.exit_code == 4


async def _attach(executor: AsyncJobExecutor) -> None:
    job, twin = sh("sleep 0.3; exit 6"), AsyncJob()
    await executor.submit(job)
    assert job.native_id is not None
    await executor.attach(twin, job.native_id)
    status = await twin.wait()
    assert status is not None and (status.exit_code, twin.spec) == (6, None)


async def _names(executor: AsyncJobExecutor) -> None:
    assert (executor.name, str(executor)) == ("local", "AsyncJobExecutor[local]")
    assert {"local", "slurm"} <= AsyncJobExecutor.get_executor_names()
    with pytest.raises(ValueError, match="nothing"):
        AsyncJobExecutor.get_instance("nothing")


@pytest.mark.parametrize("program", [
    _ends, _timeouts, _canceled_tasks, _canceled_submissions, _statuses, _callbacks, _callbacks_before_wait_returns,
    _refusals, _same_job_twice_at_once, _many, _run, _attach, _names], ids=lambda program: program.__name__[1:])
def test_a_program(program: Program, tmp_path: Path) -> None:
    run(program, tmp_path)


def test_a_loop_that_is_closed_is_no_trouble(tmp_path: Path) -> None:
    job = sh("sleep 0.3; exit 2")

    async def submit(executor: AsyncJobExecutor) -> None:
        await executor.set_job_status_callback(lambda job, status: asyncio.sleep(0))
        await executor.submit(job)

    async def wait(executor: AsyncJobExecutor) -> None:
        status = await job.wait()
        assert status is not None and status.exit_code == 2

    run(submit, tmp_path)
    run(wait, tmp_path)


@pytest.mark.parametrize("again", ["wait", "statuses", None])
def test_callbacks_go_on_in_the_next_loop(again: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A program that runs one loop after another misses no status, and one that never waits again is told so."""
    job, names = sh("read line <go; exit 2"), []
    assert job.spec is not None
    job.spec.directory = tmp_path
    os.mkfifo(tmp_path / "go")

    async def note(_: AsyncJob, status: JobStatus) -> None:
        await asyncio.sleep(0)
        names.append(status.state.name)

    async def submit(executor: AsyncJobExecutor) -> None:
        job.set_job_status_callback(note)
        await executor.submit(job)
        await job.wait(JobState.ACTIVE)

    async def go_on(_: AsyncJobExecutor) -> None:
        if again == "wait":
            await job.wait()
        else:
            assert [status async for status in job][-1].final
            await job.wait()

    run(submit, tmp_path)
    assert names == ["QUEUED", "ACTIVE"]
    (tmp_path / "go").write_text("\n")
    job._job.wait(30)
    assert names == ["QUEUED", "ACTIVE"] and [record.getMessage() for record in caplog.records] == [
        f"Job {job.id} is FAILED: its callbacks are told so when it is waited for in another event loop, for the one "
        f"in which it was submitted is closed"]
    if again is not None:
        run(go_on, tmp_path)
        assert names == ["QUEUED", "ACTIVE", "FAILED"]


@pytest.mark.parametrize("error", [JobException("exit code 3", 3), JobException(None, None), FacilityError("no", 503)])
def test_an_error_comes_back_from_another_process(error: Exception) -> None:
    """As what a call raises does that a pool of processes makes."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)
