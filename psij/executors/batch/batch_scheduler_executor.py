"""The base of executors that drive a resource manager by its commands.

A subclass says how a submit script is written, which commands submit, cancel, list and ask, and what their output
means (``_hooks``). Everything else is in the base: running commands with limits and taking in answers (``_asking``),
giving orders that change a job, as hold or signal (``_orders``), ending jobs (``_canceling``), finding out what became
of a submission that got no answer (``_submission``), following jobs (``_watch``), deciding how they ended
(``_evidence``), staging (``_staging``), and the files (``_files``, ``_tidying``).
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from psij import _forks
from psij._handlers import apart, hand_over, interrupting
from psij._validate import attached_id, check_is_job
from psij.exceptions import InvalidJobException, InvalidStateException, SubmitException
from psij.executors._local_staging import Staging
from psij.executors.batch._array_jobs import Elements, JobArray, arrays_of
from psij.executors.batch._asking import reason
from psij.executors.batch._canceling import cancel_natively
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._followed import Followed
from psij.executors.batch._host import UnreachableError
from psij.executors.batch._identity import Identity, Verdict, whole_tag
from psij.executors.batch._late import EndedJob, complete, late_records
from psij.executors.batch._orders import BatchOrders
from psij.executors.batch._staging import BatchStaging, staging_of
from psij.executors.batch._submission import Submissions
from psij.executors.batch._terms import (
    UNKNOWN_ERROR,
    Failure,
    InvalidJobStateError,
    Search,
    Source,
    SourceOffError,
    check_status_exit_code,
)
from psij.executors.batch._tidying import keep_exit_file, read_left, remove_all, remove_files, tell_output
from psij.executors.batch._watch import follow, left_behind, watcher_of
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.rendered import Rendered

__all__ = ["UNKNOWN_ERROR", "BatchSchedulerExecutor", "BatchSchedulerExecutorConfig", "Failure",
           "InvalidJobStateError", "Search", "Source", "SourceOffError", "check_status_exit_code"]

_log = logging.getLogger("psij")
_RECENT_S = 10.0                    # what was seen so long ago is there
_Words = list[str]                  # the method ``list`` hides the built-in inside the class
_Jobs = list[Job]


class BatchSchedulerExecutor(BatchOrders):
    """An executor that uses the commands of a resource manager."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._lock = threading.RLock()
        self._cancel_later: set[str] = set()        # ids of jobs being submitted whose end was asked for
        self._parts: dict[str, Sequence[Job]] = {}  # by id of the first: jobs that are being submitted together
        self._submissions = Submissions(self)
        self._staging = BatchStaging(self)
        # of jobs that are attached to next
        self._earlier: dict[str, Mapping[str, float]] = {}
        self._expected: dict[str, tuple[Identity | None, bool, float | None]] = {}
        self._elements = Elements(self)
        self.files_removable = False                # keep_files only until remove_files
        _forks.tell(self)

    # --- the interface of executors ---------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Submit a job.

        An answer that does not come, or makes no sense, is followed by a search for the job by its tag, for lost_after
        seconds at most. Raises InvalidJobException, InvalidStateException; SubmitException, transient when no job was
        made and trying later may help, or when nothing could be found out (submitting the same Job again then begins
        with the search).

        Files are staged in first; where that fails, the job is FAILED and was not submitted.
        """
        if interrupting():
            staged = self._bound(job)
            hand_over(partial(self._submit_later, job, staged))
        else:
            apart(partial(self._submit, job), partial(self.cancel, job))

    def _submit(self, job: Job) -> None:
        staged = self._bound(job)
        try:
            self._bring_and_submit(job, staged)
        except BaseException:
            self._cancel_later.discard(job.id)
            job._unbind()
            raise

    def _submit_later(self, job: Job, staged: Staging | None) -> None:
        """Submit a job of which ``submit`` has returned already: what that would raise is told by its status."""
        try:
            self._bring_and_submit(job, staged)
        except Exception as e:
            self._cancel_later.discard(job.id)
            self._set_job_status(job, JobStatus(JobState.FAILED, message=str(e), metadata={"reason": "launch"}))

    def _bound(self, job: Job) -> Staging | None:
        """Tie a job to this executor, if it is as it should be; what it stages."""
        check_is_job(job)
        try:
            spec = job.spec if self._submissions.is_ready(job) and job.spec is not None else self._checked(job)
            staged = staging_of(spec, self, mark=job.id)
        except UnreachableError as e:
            raise SubmitException(f"The job was not submitted: {e}", e, transient=True) from e
        job._bind(self)
        return staged

    def _bring_and_submit(self, job: Job, staged: Staging | None) -> None:
        if staged is None or self._staging.bring(job, staged):
            self._submitted(job, *self._submissions.submit(job))

    def render(self, jobs: Sequence[Job]) -> Rendered:
        """What ``submit`` would write and run for a job, or ``submit_together`` for several; nothing is.

        Files of launchers are put into the work directory. Raises as these, as far as nobody has to be asked.
        """
        for job in jobs:
            self._checked(job)
        if len(jobs) > 1:
            self._parts[jobs[0].id] = jobs
        try:
            return self._rendered(jobs[0])
        finally:
            self._parts.pop(jobs[0].id, None)

    def render_array(self, array: JobArray) -> Rendered:
        """The same for ``submit_array``."""
        self._check_spec(array.spec)
        with self._array_job(array) as whole:
            return self._rendered(whole)

    def _rendered(self, job: Job) -> Rendered:
        path = self._script_path(job)
        files = {path: self._submissions.script(job), **self._beside(job, path)}
        return Rendered(tuple(self.get_submit_command(job, path)),
                        {str(script): text for script, text in files.items()})

    @property
    def submit_commands(self) -> int:
        """How many submit commands may run at a time, for who submits many jobs; one behind an SSH line, which carries
        the files of all of them."""
        return self.config.submit_commands if self.host.is_here else 1

    def prepare(self, job: Job) -> None:
        """Do ahead what ``submit`` does before it runs the submit command: check the job and write its script.

        For who submits many jobs and has time while a submit command runs. The specification must not change between.
        What fails here fails again, and is told, in ``submit``.
        """
        if self._submissions.is_ready(job):
            return
        with suppress(Exception):       # of hooks too, which may raise anything
            if staging_of(self._checked(job), self) is None:
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

        Nothing happens when it has ended. A job of another executor of this kind is ended by that one. Raises
        InvalidStateException when it was never submitted, SubmitException when the resource manager could not be asked
        or refused.
        """
        job._check_reach()
        if not job.status.final and (owner := job._owner(self)) is not self:
            owner.cancel(job)
        elif interrupting():
            self._check_own(job)
            hand_over(partial(self._cancel, job))
        else:
            apart(partial(self._cancel, job))

    def _cancel(self, job: Job) -> None:
        if self._can_cancel(job):
            self._cancel_native(job)

    def cancel_many(self, jobs: Sequence[Job]) -> dict[Job, SubmitException]:
        """The same for many jobs, with as few commands as the resource manager allows. Gives those for which it raises.
        """
        failed: dict[Job, SubmitException] = {}
        going = []
        for job in jobs:
            try:
                if self._can_cancel(job):
                    going.append(job)
            except InvalidStateException as e:
                failed[job] = e
            except SubmitException as e:        # of a job that only the parent of this forked child can end
                failed[job] = e
        return failed | cancel_natively(self, going)

    def submit_together(self, jobs: Sequence[Job]) -> None:
        """Submit jobs as the parts of one native job, which start and end together.

        Their native ids are that of the whole with ``part_id``. Ending one ends all. Raises as ``submit``, and
        InvalidJobException where the resource manager has no such jobs.
        """
        if not self.TOGETHER:
            raise InvalidJobException(f"{self.name} has no jobs of several parts here; submit them one by one")
        for job in jobs:
            if staging_of(self._checked(job), self) is not None:
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
            self._submitted(job, self.part_id(native_id, number), submitted, jobs[0].id)

    def arrays(self, specs: Sequence[JobSpec], indices: Sequence[int], most: int | None = None) -> Sequence[JobArray]:
        """The native arrays as which jobs can be submitted that differ only by their indices, which ascend, in their
        order; mostly one. most: how many of them may run at a time. Empty where they are to be submitted one by one.
        """
        limits = None if self.config.surroundings is not None else self.array_limits()
        if limits is None or any(staging_of(spec, self) is not None for spec in specs):
            return []
        return arrays_of(limits, specs, indices, most)

    def submit_array(self, jobs: Sequence[Job], array: JobArray) -> None:
        """Submit jobs as the elements of a native array, with one command; all of them are made, or none.

        jobs: in the order of ``array.indices``, with the tags of these elements as ids. Raises as ``submit``;
        ``may_have_made`` says the same of each of them.
        """
        for job in jobs:
            self._checked(job)
        bound: _Jobs = []
        try:
            for job in jobs:
                job._bind(self)
                bound.append(job)
            with self._array_job(array) as whole:
                native_id, submitted = self._submissions.submit(whole)
        except BaseException:
            for job in bound:
                self._cancel_later.discard(job.id)
                job._unbind()
            raise
        words_of_manager = self._submissions.said.pop(array.tag, {})
        for job, number in zip(jobs, array.indices, strict=True):
            self._submissions.said[job.id] = words_of_manager
            self._elements.add(job)
            self._submitted(job, self.element_id(native_id, number), submitted, array.tag)

    @contextmanager
    def _array_job(self, array: JobArray) -> Iterator[Job]:
        """The job that stands for all elements while they are submitted: its id is the tag of the array."""
        whole = Job(array.spec)
        whole._id, whole.executor = array.tag, self
        self._arrays[array.tag] = array
        try:
            yield whole
        finally:
            del self._arrays[array.tag]

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job that the resource manager has, or had. One that is known nowhere becomes FAILED, reason lost."""
        apart(partial(self._attach, job, attached_id(job, native_id)))

    def _attach(self, job: Job, native_id: str) -> None:
        try:
            _ = self.work_directory
        except UnreachableError as e:
            raise SubmitException(f"Job {native_id} cannot be attached to: {e}", e, transient=True) from e
        identity, takes_over, missing_since = self._expected.pop(job.id, (None, False, None))
        job._attach(self)
        job._native_id = native_id
        if not self._is_native_id(native_id):
            job.status = JobStatus(JobState.FAILED, message=f"{native_id!r} is not a job id of {self.name}",
                                   metadata={"native_id": native_id, "reason": "lost"})
            return
        # submitted here, by a process that is gone
        try:
            own = self.host.exists(self._script_path(job)) or self._elements.took_over(job, identity)
        except OSError:         # the host is out of reach now
            own = identity is not None and job.id in (identity.tags or ())
        if not own:
            keep_exit_file(self, native_id, job)
        followed = Followed(self, job, native_id, own, identity)
        followed.wanted, followed.missing_since = takes_over, missing_since
        if missing_since is not None:
            followed.missing_before_s = max(time.time() - missing_since, 0.0)
        follow(followed, 0.0)

    def _forked(self) -> None:
        """In a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def _follow_in_fork(self, job: Job) -> None:
        """In a forked child: follow a native job of the parent, as one that somebody else has submitted."""
        followed_before = left_behind(job)
        if followed_before is None or job.native_id is None:
            job._is_out_of_reach("it had not been submitted when that was done, or seemed to have ended")
            return
        keep_exit_file(self, followed_before.native_id, job)
        identity = followed_before.identity
        follow(Followed(self, job, followed_before.native_id, own=False, identity=identity), self._first_delay())

    def expect(self, job: Job, identity: Identity, takes_over: bool = False,
               missing_since: float | None = None) -> None:
        """Say what is known of a job that is attached to next, by which it is told from others of its native id.
        takes_over: its end was asked for before, so that one that was killed was canceled. missing_since: what
        a status has under that name: seconds since the epoch at which neither queue nor accounting knew it first."""
        self._expected[job.id] = identity, takes_over, missing_since

    def comes_after(self, job: Job, earlier: Mapping[str, float]) -> None:
        """Say of which jobs one that is submitted next is another attempt: by native id, when each was submitted by the
        clock of its resource manager. Should its own native id be one of them, their records are none of its."""
        self._earlier[job.id] = earlier

    def leave(self, job: Job) -> None:
        """Follow a job no more; it goes on, and can be attached to again."""
        if watcher := watcher_of(self):
            watcher.forget(job)

    def list(self) -> _Words:
        """Native ids of the user's jobs. Raises SubmitException when the resource manager does not say."""
        try:
            return self.parse_list_output(apart(partial(self._run_command, self.get_list_command())))
        except (subprocess.SubprocessError, OSError) as e:
            raise SubmitException(f"The jobs of {self.name} cannot be listed: {reason(e)}", e, transient=True) from e

    # --- what those who keep a journal ask -------------------------------------------------------------------------

    def is_settled(self, job: Job) -> bool:
        """Whether the resource manager has said how a job stands since it is followed here."""
        watcher = watcher_of(self)
        return job.status.final or watcher is None or watcher.settled(job)

    def hears(self) -> tuple[bool, float | None]:
        """Whether the resource manager has answered the last question about the queue, and since when (seconds since
        the epoch) it does not, once several questions in a row had no answer, or one has none for half a minute."""
        watcher = watcher_of(self)
        return (False, None) if watcher is None else watcher.hears()

    def is_there(self, job: Job) -> bool:
        """Whether the resource manager has this very job, and not another one of its id, by an answer of the last
        seconds; False where that cannot be found out."""
        watcher = watcher_of(self)
        try:
            return watcher is None or watcher.is_there(job, _RECENT_S)
        except Exception as e:      # of hooks, which may raise anything
            _log.info("Job %s may not be there any more: %s", job.native_id, e)
            return False

    def remove_files(self, job: Job) -> None:
        """Remove the files of a job that has ended: for who has set keep_files to note its end before they are gone."""
        remove_all(self, job)

    def native_id_of(self, job_id: str) -> str | None:
        """The native id of the job with this id, which may have been submitted by a process that is gone.

        None when the resource manager has no such job. Raises SubmitException when that cannot be found out; transient
        where it may be later, otherwise only a record that the job writes may still tell.
        """
        searched = self.native_ids_of([job_id])
        if job_id not in searched.found and searched.silence is not None:
            raise searched.silence
        return searched.found.get(job_id)

    def native_ids_of(self, job_ids: Sequence[str]) -> Search:
        """The same for many jobs at once, for which each command is run once and the records are read once."""
        ids_by_tag, answered = self._look_up(job_ids)
        silence = None
        if not answered:
            silence = SubmitException(f"{self.name} does not say whether it has a job of this tag",
                                      transient=self._lookup_commands(job_ids) is not None)
        return Search({job_id: ids[0] for job_id, ids in ids_by_tag.items()}, silence)

    def may_have_made(self, job: Job) -> bool:
        """Whether nobody knows what became of a submission of this job that raised."""
        return not self._submissions.unanswered.keys().isdisjoint((job.id, whole_tag(job.id)))

    def accounting_of(self, asked: Sequence[EndedJob]) -> tuple[dict[str, dict[str, JobStatus]], bool]:
        """Records of accounting of jobs that have ended, by native id and source; whether a source gave no answer."""
        return late_records(self, asked)

    def completed(self, before: JobStatus, records: Mapping[str, JobStatus]) -> JobStatus | None:
        """The final status of a job with what such records add to it; None where that is nothing new."""
        return complete(before, records, self._SHOWN_CODES)

    # --- the way of a job ------------------------------------------------------------------------------------------

    def _submitted(self, job: Job, native_id: str, submitted: float, tag: str | None = None) -> None:
        """Follow a job that has a native id. submitted: when it was not submitted yet; tag: another one that it bears.
        """
        with self._lock:
            job._native_id = native_id
            cancel = job.id in self._cancel_later
            self._cancel_later.discard(job.id)
        self._set_job_status(job, JobStatus(JobState.QUEUED, time=submitted, metadata={
            "native_id": native_id, "submit_time": submitted, "confirmed_at": submitted,
            **self._submissions.said.pop(job.id, {})}))
        identity = Identity(frozenset((job.id, tag or job.id)), self._user(), self.native_name(job), since=submitted,
                            until=time.time(), after=self._earlier.pop(job.id, {}).get(native_id))
        followed = Followed(self, job, native_id, own=True, identity=identity)
        followed.made_at = followed.since - max(time.time() - submitted, 0.0)
        follow(followed, self._first_delay())
        if cancel:
            try:
                self._cancel_native(job)
            except SubmitException as e:
                _log.warning("Job %s was to be canceled while it was submitted: %s", job.id, e)

    def _can_cancel(self, job: Job) -> bool:
        """Whether the resource manager is to be told to end a job: it has not ended, and has a native id; one that gets
        one later is ended then. Raises InvalidStateException for a job that was never submitted here."""
        self._check_own(job)
        if job.status.final:
            return False
        with self._lock:
            if job.native_id is None or job.id in self._staging.fetching:
                self._cancel_later.add(job.id)
                return False
        return True

    def _check_own(self, job: Job) -> None:
        """Raise InvalidStateException for a job that was never submitted here, SubmitException for one that only the
        parent of this forked child can end."""
        job._check_reach()
        if not job.status.final and job._owner(self) is not self:
            raise InvalidStateException(f"Job {job.id} cannot be canceled with others: it was not submitted to this "
                                        f"executor ({self.name}).")

    def _cancel_native(self, job: Job) -> None:
        for error in cancel_natively(self, [job]).values():
            raise error

    def _by_tag(self, job: Job, native_id: str) -> Verdict:
        """Whether a job that may be another one of the same user bears the tag: asked where the queue tells no tags."""
        if self._lookup_commands([job.id]) is None:
            return Verdict.DOUBT
        tags = [job.id, whole_tag(job.id)]
        native_ids, answered = self._look_up(tags)
        if any(native_id in (number, self._elements.native_id(number, job)) for tag in tags
               for number in native_ids.get(tag, ())):
            return Verdict.OURS
        return Verdict.STRANGER if answered else Verdict.DOUBT

    def _cancel_again(self, job: Job) -> None:
        """For the watcher: a cancel that was accepted has done nothing."""
        try:
            self._cancel_native(job)
        except SubmitException as e:
            _log.info("Cancelling job %s again: %s", job.id, e)
            if watcher := watcher_of(self):
                watcher.canceled(job)

    def _finish(self, followed: Followed, status: JobStatus) -> None:
        """For the watcher: tidy up, stage out and set the final status of a job."""
        tell_output(self, followed, status)
        read_left(self, followed, status)
        facts = status.metadata or {}
        if "machine" not in facts and (name := self._cluster_name()) is not None:
            status.metadata = {**facts, "machine": name}
        try:
            remove_files(self, followed)
        finally:
            self._staging.finish(followed.job, status)
