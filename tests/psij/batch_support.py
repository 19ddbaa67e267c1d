"""What the tests of batch executors share: an executor on a stand-in, jobs, and a record of callbacks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from psij import Job, JobAttributes, JobSpec, JobState, JobStatus
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from tests.fakes.lab import Lab, install

__all__ = ["FAST", "Stand", "a_job", "ended", "stand_in"]

FAST: Mapping[str, Any] = {"queue_polling_interval": 0.3, "initial_queue_polling_delay": 0.1, "command_timeout": 5,
                           "accounting_delay": 1.0, "lost_after": 2.0}


class Stand:
    """An executor with a stand-in beneath it. seen: states by job, as they were told."""

    def __init__(self, lab: Lab, executor: BatchSchedulerExecutor) -> None:
        self.lab = lab
        self.executor = executor
        self.seen: dict[str, list[JobStatus]] = {}
        self._told = threading.Condition()
        executor.set_job_status_callback(self._note)

    def _note(self, job: Job, status: JobStatus) -> None:
        with self._told:
            self.seen.setdefault(job.id, []).append(status)
            self._told.notify_all()

    def states(self, job: Job) -> list[JobState]:
        """States of a job that its callback was told, once the last of them has been."""
        with self._told:
            self._told.wait_for(lambda: any(s is job.status for s in self.seen.get(job.id, ())), 5)
            return [status.state for status in self.seen.get(job.id, ())]

    def files(self) -> list[str]:
        """Names of the files in the work directory."""
        folder = self.executor.work_directory
        return sorted(os.listdir(folder)) if folder.exists() else []


@contextmanager
def stand_in(fake: ModuleType, cls: type[BatchSchedulerExecutor], folder: Path, monkeypatch: Any,
             **settings: Any) -> Iterator[Stand]:
    """An executor of that class on the stand-in of that module."""
    lab = install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    config = BatchSchedulerExecutorConfig(work_directory=folder / "work", **{**FAST, **settings})
    stand = Stand(lab, cls(config=config))
    try:
        yield stand
    finally:
        lab.close()
        if watcher := watcher_of(stand.executor):
            watcher.close()


def a_job(script: str, **members: Any) -> Job:
    """A job that runs a line of shell."""
    members.setdefault("attributes", JobAttributes(timedelta(minutes=1)))
    return Job(JobSpec("/bin/bash", ["-c", script], **members))


def ended(job: Job, seconds: float = 15) -> JobStatus:
    """The final status. Fails when the job does not end."""
    status = job.wait(timedelta(seconds=seconds))
    assert status is not None, f"still {job.status} after {seconds} s"
    return status
