"""A job for programs that use asyncio: the state machine is that of ``Job``, what waits is a task.

States are set by psij's threads. A task that waits is woken in its own event loop by one call of
``loop.call_soon_threadsafe`` for each batch of news; there is no thread per job and nothing is polled.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from psij import _delivery
from psij.job import _DUE, _OVERLOAD, Job, JobStatusCallback, _ends_of_wait, _reached, check_is_object
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.async_job_executor import AsyncJobExecutor

__all__ = ["AsyncFunctionJobStatusCallback", "AsyncJob", "AsyncJobStatusCallback"]

_log = logging.getLogger("psij")
_is_callback: ContextVar[bool] = ContextVar("_is_callback", default=False)      # what runs is one, or was begun by one


class AsyncJobStatusCallback(ABC):
    """Something to be told when the status of an AsyncJob changes."""

    @abstractmethod
    async def job_status_changed(self, job: AsyncJob, job_status: JobStatus) -> None:
        """Called once per status, in order, in the event loop in which the job was submitted; when that is closed, in
        the one in which the job is waited for next. Exceptions are logged."""


class AsyncFunctionJobStatusCallback(AsyncJobStatusCallback):
    """A coroutine function ``(job, job_status)``, or a plain one, as an AsyncJobStatusCallback."""

    def __init__(self, fn: Callable[[AsyncJob, JobStatus], Awaitable[None] | None]) -> None:
        self.fn = fn

    async def job_status_changed(self, job: AsyncJob, job_status: JobStatus) -> None:
        """Call the function, and await what it gives if that is to be awaited."""
        outcome: object = self.fn(job, job_status)
        if isinstance(outcome, Awaitable):
            await outcome


AsyncCallback = AsyncJobStatusCallback | Callable[["AsyncJob", JobStatus], Awaitable[None] | None]


def as_async_callback(cb: AsyncCallback | None) -> AsyncJobStatusCallback | None:
    """A callback of either form as an object; None stays None. Raises TypeError for what cannot be called so."""
    if cb is None or isinstance(cb, AsyncJobStatusCallback):
        return cb
    if not callable(cb):
        raise TypeError(f"a status callback is an AsyncJobStatusCallback or a function (job, job_status), not {cb!r}")
    check_is_object(cb)
    return AsyncFunctionJobStatusCallback(cb)


class _Task:
    """What wakes a task that waits for a change of status."""

    __slots__ = ("_event", "_loop")

    def __init__(self) -> None:
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()

    def wake(self) -> None:
        """Called by psij's threads."""
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:        # the loop is closed: nobody waits in it
            return

    async def sleep(self) -> None:
        """Until woken; a wake-up before is not lost."""
        await self._event.wait()
        self._event.clear()


class _Teller(JobStatusCallback):
    """Hands the statuses of a job to the tasks that go through them, and to asynchronous callbacks."""

    def __init__(self, job: AsyncJob) -> None:
        self._job, self._loop = job, asyncio.get_running_loop()
        self._statuses: deque[JobStatus] = deque()      # to be told
        self._task: asyncio.Task[None] | None = None
        self._warned = False

    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        """Called by psij's delivery thread."""
        self._statuses.append(job_status)
        try:
            self._loop.call_soon_threadsafe(self._begin)
        except RuntimeError:        # the loop is closed: nobody listens in it
            if not self._warned:
                self._warned = True
                _log.warning("Job %s is %s: its callbacks are told so when it is waited for in another event loop, for "
                             "the one in which it was submitted is closed", job.id, job_status.state)

    def is_deaf(self) -> bool:
        """Whether nothing is told any more: its loop is closed."""
        return self._loop.is_closed()

    def move(self) -> None:
        """Where the loop is closed, tell in the running one from now on; what could not be told as well."""
        if self.is_deaf():
            self._loop, self._task, self._warned, self._job._telling = asyncio.get_running_loop(), None, False, None
            self._begin()

    def _begin(self) -> None:
        if self._task is None and self._statuses:
            self._task = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        _is_callback.set(True)
        try:
            while self._statuses:
                status = self._job._telling = self._statuses.popleft()
                executor = self._job.executor
                for cb in (self._job._cb, None if executor is None else executor._cb):
                    if cb is not None:
                        await self._call(cb, status)
                self._job._telling, self._job._told = None, status
                self._job._job._wake()
        finally:
            self._task = None

    async def _call(self, cb: AsyncJobStatusCallback, status: JobStatus) -> None:
        """Tell one callback, which may fail, or await what was cancelled."""
        try:
            await cb.job_status_changed(self._job, status)
        except (Exception, asyncio.CancelledError):
            if self._task is not None and self._task.cancelling():      # the loop is about to be closed
                raise
            _log.exception("A status callback of job %s failed", self._job.id)


class AsyncJob:
    """A job to run by an AsyncJobExecutor. It starts in the state NEW.

    ``await job.wait()`` waits for its end; ``async for status in job.statuses()`` goes through its statuses. To cancel
    a task that waits does nothing to the job: ``await job.cancel()`` ends it.
    """

    def __init__(self, spec: JobSpec | None = None) -> None:
        self.executor: AsyncJobExecutor | None = None       # set when submitted or attached
        self._cb: AsyncJobStatusCallback | None = None
        self._telling: JobStatus | None = None              # of which callbacks are being told
        self._told: JobStatus | None = None                 # the last one that they were told of
        self._job = Job(spec)

    @property
    def spec(self) -> JobSpec | None:
        """What is to be run."""
        return self._job.spec

    @spec.setter
    def spec(self, spec: JobSpec | None) -> None:
        """Have this JobSpec, before the job is submitted."""
        self._job.spec = spec

    @property
    def id(self) -> str:
        """Identifies this object in this process and beyond; not the backend's identifier."""
        return self._job.id

    @property
    def native_id(self) -> str | None:
        """The backend's identifier as text; None before the job is queued there."""
        return self._job.native_id

    @property
    def status(self) -> JobStatus:
        """The present status."""
        return self._job.status

    async def set_status(self, status: JobStatus) -> None:
        """Set the status, by the rules of ``Job.status``; for executors."""
        self._job.status = status

    def set_job_status_callback(self, cb: AsyncCallback | None) -> None:
        """Have cb told of every later change of status, if the job is submitted afterwards or has a callback already:
        an AsyncJobStatusCallback or a coroutine function; None removes it."""
        self._cb = as_async_callback(cb)
        if self.executor is not None and self._cb is not None and self._job._cb is None:
            self._tell_changes()

    def _tell_changes(self) -> None:
        """Have the callbacks told in this event loop, from now on."""
        self._job.set_job_status_callback(_Teller(self))

    def _move(self) -> None:
        """Have the callbacks told in this event loop, where the one in which the job was submitted is closed."""
        if isinstance(self._job._cb, _Teller):
            self._job._cb.move()

    async def cancel(self) -> None:
        """Ask the executor to end the job; nothing happens if it is already final. Raises as ``Job.cancel``."""
        await asyncio.to_thread(self._job.cancel)

    async def wait(self, timeout: timedelta | float | JobState | Sequence[JobState] | None = None,
                   target_states: JobState | Sequence[JobState] | None = None) -> JobStatus | None:
        """Wait for a target state, any state after one of them, or any final state; as ``Job.wait``.

        The callbacks for what is seen are over when it returns, unless one takes more than a second or is what waits.
        Returns the status that ended the wait, or None when the time was up.
        """
        seconds, targets = _ends_of_wait(timeout, target_states)
        self._move()
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        if not await self._sleep(lambda: _reached(self._job.status.state, targets), deadline):
            return None
        status = self._job.status
        due = self._job.__dict__.get(_DUE)
        if due is not None and not _is_callback.get():
            await self._wait_for_callbacks(due, deadline)
        return status

    async def _wait_for_callbacks(self, due: JobStatus, deadline: float | None) -> None:
        """Until they were told of a status, or one takes long; in a loop with much to do their turn comes late."""
        loop = asyncio.get_running_loop()
        for _ in range(_OVERLOAD):
            begun, patience = self._telling, loop.time() + _delivery.PATIENCE_S
            until = patience if deadline is None else min(deadline, patience)
            if await self._sleep(partial(self._is_told, due), until) or until == deadline or (
                    begun is not None and self._telling is begun):
                return

    def _is_told(self, due: JobStatus) -> bool:
        if not isinstance(self._job._cb, _Teller) or self._job._cb.is_deaf():
            return True
        return self._told is not None and not due.state.is_greater_than(self._told.state)

    async def _sleep(self, over: Callable[[], bool], deadline: float | None) -> bool:
        """Until it is over, which every change of status may bring about; False when the time, by the loop's clock, was
        up."""
        if over():
            return True
        if deadline is not None and deadline <= asyncio.get_running_loop().time():
            return False
        try:
            async with asyncio.timeout_at(deadline):
                with self._woken() as task:
                    while not over():
                        await task.sleep()
        except TimeoutError:
            return False
        return True

    @contextmanager
    def _woken(self) -> Iterator[_Task]:
        task = _Task()
        with self._job._waiting(task):
            yield task

    async def statuses(self) -> AsyncIterator[JobStatus]:
        """The present status and those that follow, up to the final one, as they are seen: a state that is left before
        the task runs again is passed over (a callback misses none)."""
        self._move()
        with self._woken() as task:
            status = self._job.status
            yield status
            while not status.final:
                await task.sleep()
                if self._job.status is not status:
                    status = self._job.status
                    yield status

    def __aiter__(self) -> AsyncIterator[JobStatus]:
        return self.statuses()

    def __hash__(self) -> int:
        return hash(self._job)

    def __str__(self) -> str:
        return f"Async{self._job}"
