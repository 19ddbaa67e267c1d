"""Staging for batch jobs, by the program that submits and follows them: before the submission, and after the end.

Not by the submit script: how a job ended, which says what is staged out and removed, is known for certain only when the
resource manager has said it, and by then it may have killed the script. So nothing is staged out or removed for a job
that is lost, or whose program has gone; its files stay where they are. The job's directory has to be one that this
machine sees too, as the work directory has to be.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from psij.executors._local_spawn import LaunchError, check_directory
from psij.executors._local_staging import (
    ENDS,
    Staging,
    StagingError,
    StagingStopped,
    in_background,
    spoil,
    staging,
)
from psij.job import Job, _ran
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

__all__ = ["BatchStaging", "after_end", "before_submission", "staging_of"]

_log = logging.getLogger("psij")
_Stop = Callable[[], bool]


def staging_of(spec: JobSpec) -> Staging | None:
    """What a job stages and cleans up; None for one that does not."""
    from psij.executors.batch.lrm import directory

    return staging(spec, directory(spec)) if spec.stage_in or spec.stage_out or spec.cleanup else None


class BatchStaging:
    """The staging of one executor.

    staged: by id of the job, what it stages, once it is staged in. fetching: ids of jobs that have ended and are staged
    out, changed with the executor's lock held.
    """

    def __init__(self, executor: BatchSchedulerExecutor) -> None:
        self.staged: dict[str, Staging] = {}
        self.fetching: set[str] = set()
        self._executor = executor

    def bring(self, job: Job, staged: Staging) -> bool:
        """Stage in, if that has not been done at an earlier try; False when the job has got its end instead."""
        if self.staged.get(job.id) == staged:
            return True
        executor, began = self._executor, time.time()
        ended = before_submission(staged, lambda: job.id in executor._cancel_later)
        if ended is None:
            self.staged[job.id] = staged
            return True
        executor._cancel_later.discard(job.id)
        executor._set_job_status(job, JobStatus(JobState.QUEUED, time=began, metadata={"submit_time": began}))
        if staged.stage_in:
            executor._set_job_status(job, JobStatus(JobState.STAGE_IN, time=began))
        executor._set_job_status(job, ended)
        return False

    def finish(self, job: Job, status: JobStatus) -> None:
        """Set the final status of a job, after its staging out, which goes on in the background."""
        staged = self.staged.pop(job.id, None)
        if staged is None:
            self._executor._set_job_status(job, status)
            return
        with self._executor._lock:
            self.fetching.add(job.id)
        in_background(partial(self._fetch, job, staged, status))

    def _fetch(self, job: Job, staged: Staging, status: JobStatus) -> None:
        """In a staging thread: what a job that has ended wants done, and its final status."""
        executor, native_id = self._executor, job.native_id
        ran = status.state is JobState.COMPLETED or job.status.state is JobState.ACTIVE or _ran(status)
        canceled = status.state is JobState.CANCELED

        def tell(state: JobState) -> None:
            executor._set_job_status(job, JobStatus(state, metadata={"native_id": native_id}))

        try:
            after_end(staged, status, ran, lambda: job.id in executor._cancel_later and not canceled, tell)
            status.time = time.time()
        finally:
            with executor._lock:
                self.fetching.discard(job.id)
                executor._cancel_later.discard(job.id)
            executor._set_job_status(job, status)


def before_submission(staging: Staging, stop: _Stop) -> JobStatus | None:
    """Stage in. The final status of a job that therefore cannot be submitted, else None."""
    try:
        if staging.stage_in:
            check_directory(staging.directory)
            staging.bring(stop)
        return None
    except StagingStopped:
        status = JobStatus(JobState.CANCELED, message="canceled on request", metadata={"reason": "cancel"})
    except (StagingError, LaunchError) as e:
        status = JobStatus(JobState.FAILED, message=str(e), metadata={"reason": e.reason})
    try:
        staging.remove(ENDS[status.state])
    except StagingError as e:
        status.message = f"{status.message}; {e}"
    return status


def after_end(staging: Staging, status: JobStatus, ran: bool, stop: _Stop, tell: Callable[[JobState], None]) -> None:
    """Stage out and clean up; trouble goes into the final status. tell: called with the states on the way."""
    if (status.metadata or {}).get("reason") == "lost":
        return
    end = ENDS[status.state]
    try:
        if ran and staging.stage_out:
            tell(JobState.STAGE_OUT)
            staging.fetch(end, stop)
        if staging.cleanup:             # only after all was fetched
            if ran:
                tell(JobState.CLEANUP)
            staging.remove(end)
    except StagingStopped:
        spoil(status, JobState.CANCELED, "cancel", "canceled on request while files were staged out")
    except StagingError as e:
        spoil(status, JobState.FAILED, e.reason, str(e))
    except Exception as e:
        _log.exception("Error while staging for a batch job")
        spoil(status, JobState.FAILED, "stage-out", str(e))
