"""Staging for batch jobs, by the program that submits and follows them: before the submission, and after the end.

Not by the submit script: how a job ended, which says what is staged out and removed, is known for certain only when the
resource manager has said it, and by then it may have killed the script. So nothing is staged out or removed for a job
that is lost, or whose program has gone; its files stay where they are. The job's directory has to be one that this
machine sees too, as the work directory has to be, or be on a host behind SSH (``_ssh_staging``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from psij.exceptions import SubmitException
from psij.executors._local_spawn import LaunchError
from psij.executors._local_staging import (
    ENDS,
    Staging,
    StagingError,
    StagingStopped,
    in_background,
    later,
    spoil,
    staging,
)
from psij.executors.batch._host import HERE
from psij.executors.batch._options import directory
from psij.executors.batch._ssh import SSHHost
from psij.executors.batch._ssh_staging import SSHStaging, check_modes
from psij.job import Job, _ran
from psij.job_executor import JobExecutor
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_PAUSE_S = (1.0, 60.0)      # before the second try to reach a host, and before any

_log = logging.getLogger("psij")
_Stop = Callable[[], bool]


def staging_of(spec: JobSpec, executor: JobExecutor, base: str | None = None, mark: str = "") -> Staging | None:
    """What a job of an executor stages and cleans up; None for one that does not. Raises InvalidJobException, and
    UnreachableError of a host of which nothing is known yet.

    base: what relative paths on the client's side refer to, the current directory unless stated.
    """
    if not (spec.stage_in or spec.stage_out or spec.cleanup):
        return None
    host = getattr(executor, "host", HERE)
    whole = staging(spec, directory(spec, host), base)
    return None if whole is None else placed(replace(whole, mark=mark), executor)


def placed(staged: Staging, executor: JobExecutor) -> Staging:
    """The same, of a job that runs where an executor has it run. Raises InvalidJobException where that cannot be."""
    from psij.executors.batch._hooks import BatchHooks

    if not isinstance(executor, BatchHooks) or not isinstance(executor.host, SSHHost):
        return staged
    check_modes((*staged.stage_in, *staged.stage_out), executor.host.name)
    return SSHStaging(staged.directory, staged.stage_in, staged.stage_out, staged.cleanup, staged.cleanup_flags,
                      staged.mark, host=executor.host, idle_s=executor.config.command_timeout,
                      most=executor.config.staging_bytes)


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

    def _fetch(self, job: Job, staged: Staging, status: JobStatus, progress: Progress | None = None) -> None:
        """In a staging thread: what a job that has ended wants done, and its final status. While a host gives no
        answer, it is tried again."""
        executor, native_id, progress = self._executor, job.native_id, progress or Progress()
        ran = progress.ran = progress.ran or status.state is JobState.COMPLETED or _ran(status) or (
            job.status.state is JobState.ACTIVE)
        canceled = status.state is JobState.CANCELED

        def tell(state: JobState) -> None:
            """Have the job in this state while its files are fetched."""
            executor._set_job_status(job, JobStatus(state, metadata={"native_id": native_id}))

        try:
            after_end(staged, status, ran, lambda: job.id in executor._cancel_later and not canceled, tell, progress)
            status.time = time.time()
        except StagingError as e:
            _log.warning("Job %s: %s", job.id, e)
            pause = min(_PAUSE_S[0] * 2.0 ** progress.tries, _PAUSE_S[1])
            progress.tries += 1
            later(pause, partial(self._fetch, job, staged, status, progress))
            return
        with executor._lock:
            self.fetching.discard(job.id)
            executor._cancel_later.discard(job.id)
        executor._set_job_status(job, status)


@dataclass(slots=True)
class Progress:
    """How far the staging after an end has come. done: items; tries: that failed because a host gave no answer; ran:
    whether the job had started."""

    done: int = 0
    tries: int = 0
    ran: bool = False

    def reached(self, count: int, certain: bool) -> None:
        """So many items are done."""
        self.done = count


def before_submission(staging: Staging, stop: _Stop) -> JobStatus | None:
    """Stage in. The final status of a job that therefore cannot be submitted, else None. Raises SubmitException where
    the machine of the job gives no answer."""
    try:
        if staging.stage_in:
            staging.bring(stop)
        return None
    except StagingStopped:
        status = JobStatus(JobState.CANCELED, message="canceled on request", metadata={"reason": "cancel"})
    except (StagingError, LaunchError) as e:
        if isinstance(e, StagingError) and e.away:
            raise SubmitException(f"The job was not submitted: {e}", e, transient=True) from e
        status = JobStatus(JobState.FAILED, message=str(e), metadata={"reason": e.reason})
    try:
        staging.remove(ENDS[status.state])
    except StagingError as e:
        status.message = f"{status.message}; {e}"
    return status


def after_end(staging: Staging, status: JobStatus, ran: bool, stop: _Stop, tell: Callable[[JobState], None],
              progress: Progress) -> None:
    """Stage out and clean up; trouble goes into the final status. tell: called with the states on the way. Raises
    StagingError where the machine of the job gives no answer."""
    if (status.metadata or {}).get("reason") == "lost":
        return
    end = ENDS[status.state]
    try:
        if ran and staging.stage_out:
            tell(JobState.STAGE_OUT)
            staging.fetch(end, stop, progress.done, progress.tries > 0, progress.reached)
        if staging.cleanup:             # only after all was fetched
            if ran:
                tell(JobState.CLEANUP)
            staging.remove(end)
    except StagingStopped:
        spoil(status, JobState.CANCELED, "cancel", "canceled on request while files were staged out")
    except StagingError as e:
        if e.away:
            raise
        spoil(status, JobState.FAILED, e.reason, str(e))
    except Exception as e:
        _log.exception("Error while staging for a batch job")
        spoil(status, JobState.FAILED, "stage-out", str(e))
