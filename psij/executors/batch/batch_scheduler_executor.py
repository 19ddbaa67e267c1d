"""The base of executors that drive a resource manager by its commands.

A subclass says how a submit script is written, which commands submit, cancel, list and ask, and what their output
means (``_hooks``). Everything else is in the base: running commands with limits and taking in answers (``_asking``),
finding out what became of a submission that got no answer (``_submission``), following jobs (``_watch``), deciding how
they ended (``_evidence``), staging (``_staging``), and the files (``_files``, ``_tidying``).
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from psij.exceptions import InvalidJobException, InvalidStateException, SubmitException
from psij.executors.batch._asking import BatchAsking, reason, while_submitting
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._staging import BatchStaging, staging_of
from psij.executors.batch._submission import Submissions
from psij.executors.batch._terms import (
    UNKNOWN_ERROR,
    Failure,
    InvalidJobStateError,
    Source,
    SourceOffError,
    check_status_exit_code,
)
from psij.executors.batch._tidying import keep_exit_file, read_left, remove_all, remove_files, tell_output
from psij.executors.batch._watch import Followed, follow, watcher_of
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.rendered import Rendered

__all__ = ["UNKNOWN_ERROR", "BatchSchedulerExecutor", "BatchSchedulerExecutorConfig", "Failure",
           "InvalidJobStateError", "Source", "SourceOffError", "check_status_exit_code"]

_log = logging.getLogger("psij")
_Words = list[str]                  # the method ``list`` hides the built-in inside the class
_Jobs = list[Job]


class BatchSchedulerExecutor(BatchAsking):
    """An executor that uses the commands of a resource manager."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._lock = threading.Lock()
        self._cancel_later: set[str] = set()        # ids of jobs being submitted whose end was asked for
        self._parts: dict[str, Sequence[Job]] = {}  # by id of the first: jobs that are being submitted together
        self._submissions = Submissions(self)
        self._staging = BatchStaging(self)
        self.files_removable = False                # keep_files only until remove_files

    # --- the interface of executors ---------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Submit a job.

        An answer that does not come, or makes no sense, is followed by a search for the job by its tag, for lost_after
        seconds at most. Raises InvalidJobException, InvalidStateException; SubmitException, transient when no job was
        made and trying later may help, or when nothing could be found out (submitting the same Job again then begins
        with the search).

        Files are staged in first; where that fails, the job is FAILED and was not submitted.
        """
        spec = job.spec if self._submissions.is_ready(job) and job.spec is not None else self._checked(job)
        staged = staging_of(spec)
        job._bind(self)
        try:
            if staged is not None and not self._staging.bring(job, staged):
                return
            native_id, submitted = self._submissions.submit(job)
        except BaseException:
            self._cancel_later.discard(job.id)
            job._unbind()
            raise
        self._submitted(job, native_id, submitted)

    def render(self, jobs: Sequence[Job]) -> Rendered:
        """What ``submit`` would write and run for a job, or ``submit_together`` for several; nothing is.

        Files of launchers are put into the work directory. Raises as these, as far as nobody has to be asked.
        """
        for job in jobs:
            self._checked(job)
        if len(jobs) > 1:
            self._parts[jobs[0].id] = jobs
        try:
            path = self._script_path(jobs[0])
            files = {path: self._submissions.script(jobs[0]), **self._beside(jobs[0], path)}
            command = self.get_submit_command(jobs[0], path)
        finally:
            self._parts.pop(jobs[0].id, None)
        return Rendered(tuple(command), {str(path): text for path, text in files.items()})

    @contextmanager
    def meanwhile(self, work: Callable[[], None]) -> Iterator[None]:
        """Have something done, in this thread, while the submit commands run that are run inside. It must not raise."""
        token = while_submitting.set(work)
        try:
            yield
        finally:
            while_submitting.reset(token)

    def prepare(self, job: Job) -> None:
        """Do ahead what ``submit`` does before it runs the submit command: check the job and write its script.

        For who submits many jobs and has time while a submit command runs. The specification must not change between.
        What fails here fails again, and is told, in ``submit``.
        """
        with suppress(Exception):       # of hooks too, which may raise anything
            if staging_of(self._checked(job)) is None:
                self._submissions.prepare(job)

    def withdraw(self, job: Job) -> None:
        """Remove what ``prepare`` has made for a job that will not be submitted."""
        self._submissions.withdraw(job)

    def _checked(self, job: Job) -> JobSpec:
        spec = self._check_job(job)
        self._check_spec(spec)
        return spec

    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; it is CANCELED when the resource manager says so.

        Nothing happens when it has ended. Raises InvalidStateException when it was never submitted here,
        SubmitException when the resource manager could not be asked or refused.
        """
        if job.status.final:
            return
        if job.executor is not self:
            raise InvalidStateException(f"Job {job.id} cannot be canceled: it was not submitted to this executor.")
        with self._lock:
            if job.native_id is None or job.id in self._staging.fetching:
                self._cancel_later.add(job.id)
                return
        self._cancel_native(job, job.native_id)

    def submit_together(self, jobs: Sequence[Job]) -> None:
        """Submit jobs as the parts of one native job, which start and end together.

        Their native ids are that of the whole with ``part_id``. Ending one ends all. Raises as ``submit``, and
        InvalidJobException where the resource manager has no such jobs.
        """
        if not self.TOGETHER:
            raise InvalidJobException(f"{self.name} has no jobs of several parts here; submit them one by one")
        for job in jobs:
            if staging_of(self._checked(job)) is not None:
                raise InvalidJobException("parts of one native job cannot stage files")
        bound: _Jobs = []
        self._parts[jobs[0].id] = jobs
        try:
            for job in jobs:
                job._bind(self)
                bound.append(job)
            native_id, submitted = self._submissions.submit(jobs[0])
        except BaseException:
            for job in bound:
                self._cancel_later.discard(job.id)
                job._unbind()
            raise
        finally:
            del self._parts[jobs[0].id]
        for number, job in enumerate(jobs):
            self._submitted(job, self.part_id(native_id, number), submitted)

    def release(self, job: Job) -> None:
        """End the hold of a job. Nothing happens where it has ended or is not held.

        Raises SubmitException when the resource manager could not be asked or refused.
        """
        command = None if job.native_id is None or job.status.final else self.get_release_command(job.native_id)
        if command is None:
            return
        try:
            self._run_command(command)
        except (subprocess.SubprocessError, OSError) as e:
            raise SubmitException(f"Job {job.native_id} cannot be released: {reason(e)}", e, transient=True) from e
        if watcher := watcher_of(self):
            watcher.hurry(job)

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job that the resource manager has, or had. One that is known nowhere becomes FAILED, reason lost."""
        job._attach(self)
        job._native_id = native_id
        if not self._is_native_id(native_id):
            job.status = JobStatus(JobState.FAILED, message=f"{native_id!r} is not a job id of {self.name}",
                                   metadata={"native_id": native_id, "reason": "lost"})
            return
        own = self._script_path(job).exists()       # submitted here, by a process that is gone
        if not own:
            keep_exit_file(self, native_id, job)
        follow(Followed(self, job, native_id, own), 0.0)

    def list(self) -> _Words:
        """Native ids of the user's jobs. Raises SubmitException when the resource manager does not say."""
        try:
            return self.parse_list_output(self._run_command(self.get_list_command()))
        except (subprocess.SubprocessError, OSError) as e:
            raise SubmitException(f"The jobs of {self.name} cannot be listed: {reason(e)}", e, transient=True) from e

    # --- what those who keep a journal ask -------------------------------------------------------------------------

    def is_settled(self, job: Job) -> bool:
        """Whether the resource manager has said how a job stands since it is followed here."""
        watcher = watcher_of(self)
        return job.status.final or watcher is None or watcher.settled(job)

    def remove_files(self, job: Job) -> None:
        """Remove the files of a job that has ended: for who has set keep_files to note its end before they are gone."""
        remove_all(self, job)

    def native_id_of(self, job_id: str) -> str | None:
        """The native id of the job with this id, which may have been submitted by a process that is gone.

        None when the resource manager has no such job. Raises SubmitException when that cannot be found out; transient
        where it may be later, otherwise only a record that the job writes may still tell.
        """
        wanted = Job()
        wanted._id = job_id
        found = self._look_up(wanted)
        if found is None:
            raise SubmitException(f"{self.name} does not say whether there is a job {job_id}",
                                  transient=self._lookup_commands(wanted) is not None)
        return found[0] if found else None

    def may_have_made(self, job: Job) -> bool:
        """Whether nobody knows what became of a submission of this job that raised."""
        return job.id in self._submissions.unanswered

    # --- the way of a job ------------------------------------------------------------------------------------------

    def _submitted(self, job: Job, native_id: str, submitted: float) -> None:
        with self._lock:
            job._native_id = native_id
            cancel = job.id in self._cancel_later
            self._cancel_later.discard(job.id)
        self._set_job_status(job, JobStatus(JobState.QUEUED, time=submitted, metadata={
            "native_id": native_id, "submit_time": submitted, "confirmed_at": submitted,
            **self._submissions.said.pop(job.id, {})}))
        follow(Followed(self, job, native_id, own=True), self._first_delay())
        if cancel:
            try:
                self._cancel_native(job, native_id)
            except SubmitException as e:
                _log.warning("Job %s was to be canceled while it was submitted: %s", job.id, e)

    def _cancel_native(self, job: Job, native_id: str) -> None:
        watcher = watcher_of(self)
        if watcher is None:
            self._tell_cancel(native_id)
            return
        with watcher.canceling(job):
            if self._tell_cancel(native_id):
                watcher.canceled(job)
            else:
                watcher.hurry(job)

    def _tell_cancel(self, native_id: str) -> bool:
        """Give the cancel command; whether the resource manager took it: False for a job that has ended already."""
        try:
            self._run_command(self.get_cancel_command(native_id))
        except subprocess.CalledProcessError as e:
            try:
                self.process_cancel_command_output(e.returncode, e.output or "")
            except InvalidJobStateError:
                return False
        except (subprocess.TimeoutExpired, OSError) as e:
            raise SubmitException(f"Job {native_id} cannot be canceled: {reason(e)}", e, transient=True) from e
        return True

    def _cancel_again(self, job: Job) -> None:
        """For the watcher: a cancel that was accepted has done nothing."""
        try:
            self._cancel_native(job, job.native_id or "")
        except SubmitException as e:
            _log.info("Cancelling job %s again: %s", job.id, e)
            if watcher := watcher_of(self):
                watcher.canceled(job)

    def _finish(self, followed: Followed, status: JobStatus) -> None:
        """For the watcher: tidy up, stage out and set the final status of a job."""
        tell_output(self, followed, status)
        read_left(self, followed, status)
        known = status.metadata or {}
        if "machine" not in known and (name := self._cluster_name()) is not None:
            status.metadata = {**known, "machine": name}
        try:
            remove_files(self, followed)
        finally:
            self._staging.finish(followed.job, status)
