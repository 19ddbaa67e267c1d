"""Executors that speak HTTP to a place of work, and ask it in one thread how the jobs that they follow stand."""

from __future__ import annotations

import logging
import os
import threading
import time
from abc import abstractmethod
from pathlib import Path

from psij._validate import attached_id
from psij.exceptions import InvalidJobException, SubmitException
from psij.job import Job
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_state import JobState
from psij.job_status import JobStatus

__all__ = ["PlaceException", "PollingExecutor", "RESTExecutorConfig"]

_log = logging.getLogger("psij")


class PlaceException(InvalidJobException, SubmitException):
    """The configuration does not say which service it is: nothing can be asked of it, and no job be described."""

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        InvalidJobException.__init__(self, message, exception)
        self.transient = False


class RESTExecutorConfig(JobExecutorConfig):
    """Settings of an executor that speaks HTTP; times in seconds.

    url: of the service, up to the version. token_file: has the token, and is readable by its owner only; None where the
    service asks for none. polling_interval: between two questions how jobs stand. request_timeout: for one answer.
    lost_after: how long a job counts as alive that the service does not know any more.
    """

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None, *,
                 url: str | None = None, token_file: Path | str | None = None, polling_interval: float = 10.0,
                 request_timeout: float = 30.0, lost_after: float = 60.0) -> None:
        super().__init__(launcher_log_file, work_directory)
        self.url = url
        self.token_file = None if token_file is None else Path(os.path.expanduser(token_file))
        self.polling_interval = polling_interval
        self.request_timeout = request_timeout
        self.lost_after = lost_after


class PollingExecutor(JobExecutor):
    """Follows jobs of a service by asking for them. url: as in the configuration, before which it counts."""

    _CONFIG = RESTExecutorConfig
    _SERVICE = "the service"        # as messages call it
    SURROUNDS = False               # nothing of ours runs around a job there

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._followed: dict[str, tuple[Job, float]] = {}       # by native id, with when the service last knew it
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._silent = False

    def cancel(self, job: Job) -> None:
        """Ask the service for the end of a job."""
        if job.status.final:
            return
        if (owner := job._owner(self)) is not self:
            owner.cancel(job)
            return
        if job.native_id is None:
            raise SubmitException(f"Job {job.id} cannot be canceled: it is just being submitted.", transient=True)
        self._cancel(job.native_id)
        self._wake.set()

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job of the service by its id there."""
        text = attached_id(job, native_id)
        self._check_place()
        job._attach(self)
        job._native_id = text
        self._follow(job)

    @abstractmethod
    def _cancel(self, native_id: str) -> None:
        """Ask the service for the end of a job that it knows by that id; one that has ended already is no error."""

    @abstractmethod
    def _check_place(self) -> None:
        """Raise PlaceException where the configuration does not say which service it is."""

    @abstractmethod
    def _look(self) -> None:
        """Ask once how all jobs that are followed stand; ``_heard`` and ``_unknown`` take what is said of each. Raises
        SubmitException where nothing is heard."""

    def _setting(self, name: str, default: float) -> float:
        return float(getattr(self.config, name, default))

    def _follow(self, job: Job) -> None:
        if job.status.final or job.native_id is None:
            return
        self._followed[job.native_id] = job, time.monotonic()
        self._wake.set()
        if self._starting.acquire(blocking=False):      # else somebody starts it just now
            try:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._poll, name=f"psij-{self.name}", daemon=True)
                    self._thread.start()
            finally:
                self._starting.release()

    def _poll(self) -> None:
        while True:
            self._wake.wait(self._setting("polling_interval", 10.0))
            self._wake.clear()
            try:
                if self._followed:
                    self._look()
                self._silent = False
            except SubmitException as e:
                if not self._silent:        # states stay as they are
                    _log.warning("executor %s: nothing is heard of %d job%s: %s", self.name, len(self._followed),
                                 "s"[len(self._followed) == 1:], e)
                self._silent = True

    def _heard(self, native_id: str) -> Job:
        """The job of that id, of which the service has just said something."""
        job, _ = self._followed[native_id]
        self._followed[native_id] = job, time.monotonic()
        return job

    def _unknown(self, native_id: str) -> bool:
        """The service does not know a job: it is FAILED where that has been so for long. Whether it is."""
        job, heard_at = self._followed[native_id]
        if time.monotonic() - heard_at < self._setting("lost_after", 60.0):
            return False
        self._followed.pop(native_id, None)
        self._set_job_status(job, JobStatus(JobState.FAILED, metadata={"reason": "lost"},
                                            message=f"{self._SERVICE} does not know the job any more"))
        return True
