"""Staging for batch jobs, by the program that submits and follows them: before the submission, and after the end.

Not by the submit script: how a job ended, which says what is staged out and removed, is known for certain only when the
resource manager has said it, and by then it may have killed the script. So nothing is staged out or removed for a job
that is lost, or whose program has gone; its files stay where they are. The job's directory has to be one that this
machine sees too, as the work directory has to be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from psij.executors._local_spawn import LaunchError, check_directory
from psij.executors._local_staging import Staging, StagingError, StagingStopped
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.staging import StageOutFlags

__all__ = ["after_end", "before_submission"]

_log = logging.getLogger("psij")
_ENDS = {JobState.COMPLETED: StageOutFlags.ON_SUCCESS, JobState.FAILED: StageOutFlags.ON_ERROR,
         JobState.CANCELED: StageOutFlags.ON_CANCEL}
_Stop = Callable[[], bool]


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
        staging.remove(_ENDS[status.state])
    except StagingError as e:
        status.message = f"{status.message}; {e}"
    return status


def after_end(staging: Staging, status: JobStatus, ran: bool, stop: _Stop, tell: Callable[[JobState], None]) -> None:
    """Stage out and clean up; trouble goes into the final status. tell: called with the states on the way."""
    if (status.metadata or {}).get("reason") == "lost":
        return
    end = _ENDS[status.state]
    try:
        if ran and staging.stage_out:
            tell(JobState.STAGE_OUT)
            staging.fetch(end, stop)
        if staging.cleanup:             # only after all was fetched
            if ran:
                tell(JobState.CLEANUP)
            staging.remove(end)
    except StagingStopped:
        _change(status, JobState.CANCELED, "cancel", "canceled on request while files were staged out")
    except StagingError as e:
        _change(status, JobState.FAILED, e.reason, str(e))
    except Exception as e:
        _log.exception("Error while staging for a batch job")
        _change(status, JobState.FAILED, "stage-out", str(e))


def _change(status: JobStatus, state: JobState, reason: str, message: str) -> None:
    """Let trouble make the end of a job that was a good one a bad one; else it is only told."""
    if status.state is JobState.COMPLETED:
        status.state, status.message = state, message
        status.metadata = {**(status.metadata or {}), "reason": reason}
    else:
        status.message = f"{status.message}; {message}" if status.message else message
