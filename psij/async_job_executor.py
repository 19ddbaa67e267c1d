"""The interface of executors for programs that use asyncio, and one that stands before any other executor."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from psij.async_job import AsyncCallback, AsyncJob, AsyncJobStatusCallback, as_async_callback
from psij.exceptions import InvalidJobTypeException, JobException
from psij.job import Job
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from packaging.version import Version

__all__ = ["AsyncJobExecutor"]

_Names = list[str]      # the method ``list`` hides the built-in inside the class


class AsyncJobExecutor(ABC):
    """Runs AsyncJobs somewhere."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        self.url = url
        self.config = JobExecutorConfig.DEFAULT if config is None else config
        self._cb: AsyncJobStatusCallback | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name this executor was asked for."""

    @property
    @abstractmethod
    def version(self) -> Version:
        """The version of the executor."""

    @abstractmethod
    async def submit(self, job: AsyncJob) -> None:
        """Hand a NEW job to the backend. Raises as ``JobExecutor.submit``."""

    @abstractmethod
    async def cancel(self, job: AsyncJob) -> None:
        """Ask for the end of a job. Raises as ``JobExecutor.cancel``."""

    @abstractmethod
    async def attach(self, job: AsyncJob, native_id: str) -> None:
        """Follow a job that the backend already has. Raises as ``JobExecutor.attach``."""

    @abstractmethod
    async def list(self) -> _Names:
        """Native identifiers of the jobs that this executor knows and could attach to."""

    async def run(self, job: AsyncJob) -> JobStatus:
        """Submit a job and wait for its end: the final status. Raises as ``submit``; JobException when it FAILED."""
        await self.submit(job)
        await job.wait()
        if job.status.state is JobState.FAILED:
            raise JobException(job.status.message, job.status.exit_code)
        return job.status

    async def set_job_status_callback(self, cb: AsyncCallback | None) -> None:
        """Have cb told of every change of status of the jobs that are submitted afterwards; None removes it."""
        self._cb = as_async_callback(cb)

    def __str__(self) -> str:
        return f"{type(self).__name__}[{self.name}]"

    @staticmethod
    def get_instance(name: str, version_constraint: str | None = None, url: str | None = None,
                     config: JobExecutorConfig | None = None, use_wrapper: bool = True) -> AsyncJobExecutor:
        """A new executor of that name; see ``JobExecutor.get_instance``. use_wrapper: is taken and means nothing, for
        every executor stands behind the same one."""
        return _Wrapped(JobExecutor.get_instance(name, version_constraint, url, config))

    @staticmethod
    def get_executor_names() -> set[str]:
        """Names of all executors that can be asked for."""
        return JobExecutor.get_executor_names()


class _Wrapped(AsyncJobExecutor):
    """An executor whose calls, which may block for as long as a command takes, are made in threads of the loop.

    Submissions that are asked for together go into one call, with which the executor starts one job while it makes the
    next one ready.
    """

    def __init__(self, executor: JobExecutor) -> None:
        super().__init__(executor.url, executor.config)
        self._executor = executor
        self._waiting: _Submissions = []
        self._submitting: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The name this executor was asked for."""
        return self._executor.name

    @property
    def version(self) -> Version:
        """The version of the executor."""
        return self._executor.version

    async def submit(self, job: AsyncJob) -> None:
        """Hand a NEW job to the backend. A task that is cancelled meanwhile leaves the submission to itself."""
        bound = job.executor if isinstance(job, AsyncJob) else None
        self._bind(job)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((job, done))
        if self._submitting is None or self._submitting.done():
            self._submitting = loop.create_task(self._submit_all())
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(lambda done: done.exception())       # nobody else takes it
            raise
        except Exception:
            job.executor = bound        # it can be submitted again
            raise

    async def _submit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            submissions, self._waiting = self._waiting, []
            by_job = {job._job: done for job, done in reversed(submissions)}
            self._waiting += [(job, done) for job, done in submissions if by_job[job._job] is not done]     # again

            def note(job: Job, error: Exception | None, by_job: _ByJob = by_job) -> None:
                """Settle the submission of a job in the loop's thread."""
                loop.call_soon_threadsafe(_settle, by_job[job], error)

            try:
                await asyncio.to_thread(self._executor._submit_all, list(by_job)[::-1], note)
            except Exception as e:
                for done in by_job.values():
                    _settle(done, e)

    def _bind(self, job: AsyncJob) -> None:
        _check(job)
        if job.executor is None:
            job.executor = self
        if job._cb is not None or self._cb is not None:
            job._tell_changes()

    async def cancel(self, job: AsyncJob) -> None:
        """Ask for the end of a job."""
        _check(job)
        await asyncio.to_thread(self._executor.cancel, job._job)

    async def attach(self, job: AsyncJob, native_id: str) -> None:
        """Follow a job that the backend already has."""
        self._bind(job)
        await asyncio.to_thread(self._executor.attach, job._job, native_id)

    async def list(self) -> _Names:
        """Native identifiers of the jobs that this executor knows and could attach to."""
        return await asyncio.to_thread(self._executor.list)

    def __str__(self) -> str:
        return f"{AsyncJobExecutor.__name__}[{self.name}]"


_ByJob = dict[Job, "asyncio.Future[None]"]
_Submissions = list[tuple[AsyncJob, "asyncio.Future[None]"]]


def _check(job: object) -> None:
    """Raise InvalidJobTypeException for what is no AsyncJob."""
    if not isinstance(job, AsyncJob):
        raise InvalidJobTypeException(f"an AsyncJobExecutor takes an AsyncJob, not {type(job).__name__}")


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
