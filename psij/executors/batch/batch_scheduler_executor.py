"""The base of executors that drive a resource manager by its commands.

A subclass says how a submit script is written, which commands submit, cancel, list and ask, and what their output
means. Everything else is here: running commands with limits, finding out what became of a submission that got no
answer, following jobs (``_watch``), deciding how they ended (``_evidence``), and the files.

psij-python's hooks keep their names and meaning. Further ones, with defaults: ``_classify_failure``,
``_lookup_commands``, ``_parse_lookup``, ``_sources``, ``_ask_queue``; and for what PSI/J itself has no words for,
``dependency_attributes``, ``hold_attributes``, ``get_release_command``, ``submit_together``, ``machine``.
"""

from __future__ import annotations

import errno
import getpass
import logging
import os
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, ClassVar

from psij.exceptions import InvalidJobException, InvalidStateException, SubmitException
from psij.executors._local_staging import Staging, in_background, staging
from psij.executors.batch._command import run
from psij.executors.batch._files import clear_old, exit_file, make_private, output_tail, write_script
from psij.executors.batch._staging import after_end, before_submission
from psij.executors.batch._watch import Followed, Known, follow, watcher_of
from psij.job import Job, _ran
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus

__all__ = ["UNKNOWN_ERROR", "BatchSchedulerExecutor", "BatchSchedulerExecutorConfig", "Failure",
           "InvalidJobStateError", "Source", "SourceOffError", "check_status_exit_code"]

UNKNOWN_ERROR = "PSIJ: Unknown error"      # what hooks get of a command that failed and said nothing

_log = logging.getLogger("psij")
_AUX = (".out", ".ec", ".nodefile", ".start", ".ec.new", ".start.new", ".left")
_MOST_LEFT = 65_536     # bytes of what surroundings leave behind
_TRANSIENT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETXTBSY}
_LONGEST_WORD = 128 * 1024 - 1      # bytes of an argument or a variable that Linux can hand to a program
_LOOKUP_S = (0.5, 10.0)             # shortest and longest pause between two questions by tag
_List = list
_Words = list[str]                  # the method ``list`` hides the built-in inside the class


class InvalidJobStateError(Exception):
    """A job cannot be canceled because it has ended already; raised by process_cancel_command_output."""


class SourceOffError(Exception):
    """A source of final states does not exist at this site (such as accounting that is turned off)."""


class Failure(Enum):
    """What the failure of a submit command means."""

    REFUSED = "no job was made, and trying again will not help"
    LATER = "no job was made, and trying again later may help"
    UNKNOWN = "a job may have been made"


@dataclass(frozen=True, slots=True)
class Source:
    """A source of evidence on jobs that have ended. commands: asked one after the other.

    parse: exit code and output to statuses by native id, which need not be final. Raises SourceOffError when there is
    no such source here. late: asked only when the others have been silent on a job for accounting_delay.
    """

    name: str
    commands: Sequence[list[str]]
    parse: Callable[[int, str], Mapping[str, JobStatus]]
    late: bool = False


def check_status_exit_code(command: str, exit_code: int, out: str) -> None:
    """Raise RuntimeError when a status command failed; for parse_status_output."""
    if exit_code != 0:
        raise RuntimeError(f"{command} failed with exit code {exit_code}: {out.strip()[:2000] or UNKNOWN_ERROR}")


class BatchSchedulerExecutorConfig(JobExecutorConfig):
    """Settings of batch executors; times in seconds.

    queue_polling_interval: longest pause between two status commands while all goes well. initial_queue_polling_delay:
    from a submission to the first one. queue_polling_error_threshold: failures in a row after which an outage is logged
    (states stay as they are). keep_files: leave scripts and outputs in the work directory; so does the environment
    variable PSIJ_BATCH_KEEP_FILES. command_timeout: limit of one command. accounting_delay: how long a job that has
    ended waits for its accounting record. lost_after: how long a job of which nothing is known counts as alive, and how
    long a submission without an answer is looked for.
    """

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None,
                 queue_polling_interval: float = 30, initial_queue_polling_delay: float = 2,
                 queue_polling_error_threshold: int = 2, keep_files: bool = False, *, command_timeout: float = 60,
                 accounting_delay: float = 10, lost_after: float = 60) -> None:
        super().__init__(launcher_log_file, work_directory)
        self.queue_polling_interval = queue_polling_interval
        self.initial_queue_polling_delay = initial_queue_polling_delay
        self.queue_polling_error_threshold = queue_polling_error_threshold
        self.keep_files = keep_files or "PSIJ_BATCH_KEEP_FILES" in os.environ
        self.command_timeout = command_timeout
        self.accounting_delay = accounting_delay
        self.lost_after = lost_after

    @classmethod
    def _from_config(cls, config: JobExecutorConfig | None) -> BatchSchedulerExecutorConfig:
        """The configuration itself, or one of this class with its settings."""
        if isinstance(config, BatchSchedulerExecutorConfig):
            return config
        config = config or JobExecutorConfig.DEFAULT
        made = cls(launcher_log_file=config.launcher_log_file, work_directory=config.work_directory)
        made.surroundings = config.surroundings
        return made


class BatchSchedulerExecutor(JobExecutor):
    """An executor that uses the commands of a resource manager."""

    config: BatchSchedulerExecutorConfig
    _chunk: int | None = 500        # native ids per status command; None: one command for all
    _SHOWN_CODES: Mapping[int, int] = {}    # exit codes that accounting or the queue shows as other ones
    _RECORDS_TELL = False           # the scripts' own records name job and native id, so that they can be searched
    #: Whether several jobs can be submitted as the parts of one.
    TOGETHER: ClassVar[bool] = False
    #: Custom attributes for what PSI/J has no member for, by name (``quality_of_service``).
    FURTHER_ATTRIBUTES: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _OUTPUT_IS_TROUBLE = False      # all output of the submit script is worth a message, with an end marker or without

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, BatchSchedulerExecutorConfig._from_config(config))
        self._lock = threading.Lock()
        self._cancel_later: set[str] = set()        # ids of jobs being submitted whose end was asked for
        self._said: dict[str, dict[str, Any]] = {}  # id of job -> what the answer to its submission said beside the id
        self._unanswered: dict[str, float] = {}     # id of job -> time of a submission of which nothing is known
        self._staged: dict[str, Staging] = {}       # by id of the job: what it stages, once it is staged in
        self._parts: dict[str, Sequence[Job]] = {}  # by id of the first: jobs that are being submitted together
        self._fetching: set[str] = set()            # ids of jobs that have ended and are staged out
        self._off: set[str] = set()                 # sources that do not exist here
        self.files_removable = False                # keep_files only until remove_files
        self._work_directory: Path | None = None
        self._cleared: set[Path] = set()            # work directories that were cleared of old files

    # --- hooks: what third parties override ------------------------------------------------------------------------

    @abstractmethod
    def generate_submit_script(self, job: Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the submit script of a job. context: see _create_script_context."""

    @abstractmethod
    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """The command that submits a script."""

    @abstractmethod
    def job_id_from_submit_output(self, out: str) -> str:
        """The native id in the output of a submit command that succeeded."""

    @abstractmethod
    def get_cancel_command(self, native_id: str) -> list[str]:
        """The command that ends a job."""

    @abstractmethod
    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """Judge a cancel command that failed.

        Raises InvalidJobStateError when the job had ended, SubmitException for any other failure; returns when the job
        will end all the same.
        """

    @abstractmethod
    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """The command that asks for the states of these jobs, or of all."""

    @abstractmethod
    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """Statuses by native id. Raises any exception when the output says nothing."""

    @abstractmethod
    def get_list_command(self) -> list[str]:
        """The command that lists the user's jobs."""

    def parse_list_output(self, out: str) -> list[str]:
        """Native ids in the output of the list command: its lines."""
        return [line.strip() for line in out.splitlines() if line.strip()]

    def _format_duration(self, duration: timedelta) -> str:
        """A time limit as the resource manager wants it: ``hours:minutes:seconds``."""
        seconds = -int(-duration.total_seconds() // 1)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    def _clean_submit_script(self, job: Job) -> None:
        """Remove the submit script."""
        if not self.config.keep_files:
            self._script_path(job).unlink(missing_ok=True)

    def _current_user(self) -> str:
        """The name of the user that jobs belong to."""
        return getpass.getuser()

    # --- further hooks with defaults -------------------------------------------------------------------------------

    def _check_spec(self, spec: JobSpec) -> None:
        """Refuse, with InvalidJobException, what this executor cannot do."""
        _check_lengths(spec)

    def _said_of_submission(self, out: str) -> dict[str, Any]:
        """Metadata of the job, from the output of a submit command that succeeded."""
        return {}

    def _classify_failure(self, exit_code: int, out: str) -> Failure:
        """What it means that the submit command failed in this way."""
        return Failure.REFUSED if exit_code > 0 else Failure.UNKNOWN

    def _lookup_commands(self, job: Job) -> list[list[str]] | None:
        """Commands whose output shows a native job made for this job; None when it cannot be looked up."""
        return None

    def _parse_lookup(self, job: Job, out: str) -> list[str]:
        """Native ids of jobs made for this job, the oldest first."""
        return []

    def _says_none(self, out: str) -> bool:
        """Whether a lookup command failed because there is no job at all."""
        return False

    def _sources(self, native_ids: list[str]) -> list[Source]:
        """Sources of final states besides the queue, the most trusted first."""
        return []

    def _explain(self, status: JobStatus, said: str) -> None:
        """Put into a failed job's metadata what follows from the output of its submit script."""

    def _ask_queue(self, command: list[str], known: Known) -> Mapping[str, JobStatus | None]:
        """Run a status command; statuses by native id. known: native states by id, as of the last answer.

        None as a value: listed, and as before.
        """
        return self.parse_status_output(*self._ask(command))

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """The custom attributes with which the resource manager starts a job after others; None where it cannot.

        after: native ids by what must have become of all of them: ``ok``, ``notok``, ``any`` (an end of any kind).
        """
        return None

    def machine(self) -> str | None:
        """What the resource manager calls what it submits to; None where it has no name for it or does not say."""
        return None

    def fit_name(self, name: str) -> str:
        """The name of a job as the resource manager takes it, which is the same where it does."""
        return name

    def hold_attributes(self) -> dict[str, object] | None:
        """The custom attributes with which a job is held until its user releases it; None where it cannot be."""
        return None

    def get_release_command(self, native_id: str) -> _Words | None:
        """The command that ends the hold of hold_attributes."""
        return None

    def _watch_key(self) -> tuple[Any, ...]:
        """Executors with the same key share a watcher; the first item is a name for people."""
        return self.name, self

    # --- the interface of executors ---------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Submit a job.

        An answer that does not come, or makes no sense, is followed by a search for the job by its tag, for lost_after
        seconds at most. Raises InvalidJobException, InvalidStateException; SubmitException, transient when no job was
        made and trying later may help, or when nothing could be found out (submitting the same Job again then begins
        with the search).

        Files are staged in first; where that fails, the job is FAILED and was not submitted.
        """
        spec = self._check_job(job)
        self._check_spec(spec)
        staged = _staging_of(spec)
        job._bind(self)
        try:
            if staged is not None and not self._stage_in(job, staged):
                return
            native_id, submitted = self._submit(job)
        except BaseException:
            self._cancel_later.discard(job.id)
            job._unbind()
            raise
        self._submitted(job, native_id, submitted)

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
            if job.native_id is None or job.id in self._fetching:
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
            spec = self._check_job(job)
            self._check_spec(spec)
            if _staging_of(spec) is not None:
                raise InvalidJobException("parts of one native job cannot stage files")
        bound: _List[Job] = []
        self._parts[jobs[0].id] = jobs
        try:
            for job in jobs:
                job._bind(self)
                bound.append(job)
            native_id, submitted = self._submit(jobs[0])
        except BaseException:
            for job in bound:
                self._cancel_later.discard(job.id)
                job._unbind()
            raise
        finally:
            del self._parts[jobs[0].id]
        for number, job in enumerate(jobs):
            self._submitted(job, self.part_id(native_id, number), submitted)

    def part_id(self, native_id: str, number: int) -> str:
        """The native id of a part of a job that was submitted together. native_id: of the whole, or of any part."""
        return native_id

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
            raise SubmitException(f"Job {job.native_id} cannot be released: {_reason(e)}", e, transient=True) from e
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
        with suppress(OSError):
            if not own:
                keep = self._aux_path(native_id, ".keep")
                keep.mkdir(0o700, exist_ok=True)
                (keep / job.id).touch(0o600)
        follow(Followed(self, job, native_id, own), 0.0)

    def list(self) -> _Words:
        """Native ids of the user's jobs. Raises SubmitException when the resource manager does not say."""
        try:
            return self.parse_list_output(self._run_command(self.get_list_command()))
        except (subprocess.SubprocessError, OSError) as e:
            raise SubmitException(f"The jobs of {self.name} cannot be listed: {_reason(e)}", e, transient=True) from e

    def is_settled(self, job: Job) -> bool:
        """Whether the resource manager has said how a job stands since it is followed here."""
        watcher = watcher_of(self)
        return job.status.final or watcher is None or watcher.settled(job)

    def remove_files(self, job: Job) -> None:
        """Remove the files of a job that has ended: for who has set keep_files to note its end before they are gone."""
        files = [self._script_path(job), *(self._aux_path(job.native_id or job.id, suffix) for suffix in _AUX)]
        for path in files:
            with suppress(OSError):
                path.unlink(missing_ok=True)

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
        return job.id in self._unanswered

    # --- files -----------------------------------------------------------------------------------------------------

    @property
    def work_directory(self) -> Path:
        """Where scripts and outputs are: ``<config.work_directory>/<name of the executor>``."""
        if self._work_directory is None:
            self._work_directory = Path(os.path.abspath(self.config.work_directory / self.name.lower()))
        return self._work_directory

    @work_directory.setter
    def work_directory(self, path: Path) -> None:
        self._work_directory = path

    def _script_path(self, job: Job) -> Path:
        return self.work_directory / f"{job.id}.job"

    def _aux_path(self, native_id: str, suffix: str) -> Path:
        return self.work_directory / f"{native_id}{suffix}"

    def _delete_aux_file(self, job: Job, suffix: str) -> None:
        """Remove a file of a job, such as ``.out``."""
        if not self.config.keep_files and job.native_id is not None:
            self._aux_path(job.native_id, suffix).unlink(missing_ok=True)

    def _create_script_context(self, job: Job) -> dict[str, Any]:
        """What a template of psij-python's form may use."""
        spec = job.spec
        assert spec is not None
        context: dict[str, Any] = {
            "job": job,
            "env": [{"name": name, "value": value} for name, value in (spec.environment or {}).items()],
            "custom_attributes": _by_prefix(spec),
            "psij": {"lib": _library(), "launch_command": self._launch_command(job), "debug": 0,
                     "script_dir": str(self.work_directory), "us_file": "", "us_port": 0, "us_addrs": ""}}
        if spec.attributes is not None and spec.attributes.duration is not None:
            context["formatted_job_duration"] = self._format_duration(spec.attributes.duration)
        return context

    def _launch_command(self, job: Job) -> _Words:
        assert job.spec is not None
        try:
            launcher = self._get_launcher(job.spec.launcher or Launcher.DEFAULT_LAUNCHER_NAME)
            return launcher.get_launch_command(job)
        except ValueError as e:
            raise InvalidJobException(f"launcher: {e}", e) from e

    def _stage_in(self, job: Job, staged: Staging) -> bool:
        """Stage in, if that has not been done at an earlier try; False when the job has got its end instead."""
        if self._staged.get(job.id) == staged:
            return True
        began = time.time()
        ended = before_submission(staged, lambda: job.id in self._cancel_later)
        if ended is None:
            self._staged[job.id] = staged
            return True
        self._cancel_later.discard(job.id)
        self._set_job_status(job, JobStatus(JobState.QUEUED, time=began, metadata={"submit_time": began}))
        if staged.stage_in:
            self._set_job_status(job, JobStatus(JobState.STAGE_IN, time=began))
        self._set_job_status(job, ended)
        return False

    # --- submitting ------------------------------------------------------------------------------------------------

    def _submit(self, job: Job) -> tuple[str, float]:
        """Native id and time of submission."""
        if job.id in self._unanswered:
            submitted = self._unanswered[job.id]
            found = self._search(job, "an earlier submission of it got no answer")
            if found is not None:
                return found, submitted
        try:
            path = self._write_script(job)
        except OSError as e:
            raise SubmitException(f"The submit script cannot be written: {_reason(e)}", e,
                                  transient=e.errno in _TRANSIENT) from e
        submitted = time.time()
        try:
            return self._native_id(job, path), submitted
        except BaseException:
            if job.id not in self._unanswered:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise

    def _write_script(self, job: Job) -> Path:
        from io import StringIO

        if make_private(self.work_directory) not in self._cleared:
            self._cleared.add(self.work_directory)
            clear_old(self.work_directory, time.time())
        text = StringIO()
        self.generate_submit_script(job, self._create_script_context(job), text)
        path = self._script_path(job)
        path.unlink(missing_ok=True)        # of an earlier submission of this very job, known not to have worked
        write_script(path, text.getvalue())
        return path

    def _native_id(self, job: Job, path: Path) -> str:
        try:
            out = self._run_submit(self.get_submit_command(job, path))
        except subprocess.CalledProcessError as e:
            return self._after_failure(job, e)
        except subprocess.TimeoutExpired as e:
            return self._search_or_raise(job, f"the submit command took longer than {e.timeout} s", e)
        except OSError as e:
            raise SubmitException(f"The submit command cannot be run: {_reason(e)}", e,
                                  transient=e.errno in _TRANSIENT) from e
        except (KeyboardInterrupt, SystemExit):
            self._unanswered.setdefault(job.id, time.time())
            raise
        try:
            native_id = self.job_id_from_submit_output(out)
        except Exception as e:
            return self._search_or_raise(job, f"no job id in the answer {out.strip()[:500]!r}", e)
        if not isinstance(native_id, str) or not self._is_native_id(native_id):
            return self._search_or_raise(job, f"no job id in the answer {out.strip()[:500]!r}", None)
        self._said[job.id] = self._said_of_submission(out)
        return native_id

    def _after_failure(self, job: Job, error: subprocess.CalledProcessError) -> str:
        said = error.output.strip()
        if said in ("", UNKNOWN_ERROR):
            said = f"exit code {error.returncode}, no message"
        meaning = self._classify_failure(error.returncode, error.output)
        if meaning is Failure.UNKNOWN:
            return self._search_or_raise(job, said, error)
        raise SubmitException(said, error, transient=meaning is Failure.LATER) from error

    def _search_or_raise(self, job: Job, why: str, error: BaseException | None) -> str:
        found = self._search(job, why, error)
        if found is None:
            raise SubmitException(f"The job was not submitted: {why}", error, transient=True) from error
        return found

    def _search(self, job: Job, why: str, error: BaseException | None = None) -> str | None:
        """The native id of a job of which nobody knows whether it was made; None when it was not.

        Raises SubmitException when that cannot be found out.
        """
        self._unanswered.setdefault(job.id, time.time())
        can_ask = self._lookup_commands(job) is not None
        if not (can_ask or self._RECORDS_TELL):
            raise SubmitException(f"Nobody knows whether the job was submitted: {why}", error) from error
        until, pause, answered = time.monotonic() + self.config.lost_after, _LOOKUP_S[0], False
        while True:
            found = self._look_up(job)
            if found:
                del self._unanswered[job.id]
                if len(found) > 1:
                    _log.warning("Job %s was made %s times: %s; the first is followed", job.id, len(found), found)
                return found[0]
            answered = found is not None
            left = until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LOOKUP_S[1])
        if answered:
            del self._unanswered[job.id]
            return None
        silence = f", {self.name} does not answer" if can_ask else ""
        raise SubmitException(f"Nobody knows whether the job was submitted{silence}: {why}", error,
                              transient=can_ask) from error

    def _look_up(self, job: Job) -> _Words | None:
        """Native ids of jobs that bear our tag; None when a command gave no answer, or there is none to ask."""
        found: dict[str, None] = {}
        commands = self._lookup_commands(job)
        answered = commands is not None
        for command in commands or ():
            try:
                code, out = self._ask(command)
                if code == 0:
                    found.update(dict.fromkeys(self._parse_lookup(job, out)))
                elif not self._says_none(out):
                    answered = False
            except (subprocess.SubprocessError, OSError, ValueError):
                answered = False
        return list(found) if found or answered else None

    def _submitted(self, job: Job, native_id: str, submitted: float) -> None:
        with self._lock:
            job._native_id = native_id
            cancel = job.id in self._cancel_later
            self._cancel_later.discard(job.id)
        self._set_job_status(job, JobStatus(JobState.QUEUED, time=submitted, metadata={
            "native_id": native_id, "submit_time": submitted, "confirmed_at": submitted, **self._said.pop(job.id, {})}))
        follow(Followed(self, job, native_id, own=True), self._first_delay())
        if cancel:
            try:
                self._cancel_native(job, native_id)
            except SubmitException as e:
                _log.warning("Job %s was to be canceled while it was submitted: %s", job.id, e)

    def is_native_id(self, text: str) -> bool:
        """Whether a text has the form of this resource manager's job ids."""
        return self._is_native_id(text)

    def _is_native_id(self, text: str) -> bool:
        """Whether a text can be a job id: one word, not an option."""
        return bool(text) and not text.startswith("-") and not any(c.isspace() or c in "/\0" for c in text)

    # --- cancelling ------------------------------------------------------------------------------------------------

    def _cancel_native(self, job: Job, native_id: str) -> None:
        try:
            self._run_command(self.get_cancel_command(native_id))
        except subprocess.CalledProcessError as e:
            try:
                self.process_cancel_command_output(e.returncode, e.output or "")
            except InvalidJobStateError:
                if watcher := watcher_of(self):
                    watcher.hurry(job)
                return
        except (subprocess.TimeoutExpired, OSError) as e:
            raise SubmitException(f"Job {native_id} cannot be canceled: {_reason(e)}", e, transient=True) from e
        if watcher := watcher_of(self):
            watcher.canceled(job)

    def _cancel_again(self, job: Job) -> None:
        """For the watcher: a cancel that was accepted has done nothing."""
        try:
            self._cancel_native(job, job.native_id or "")
        except SubmitException as e:
            _log.info("Cancelling job %s again: %s", job.id, e)
            if watcher := watcher_of(self):
                watcher.canceled(job)

    # --- for the watcher -------------------------------------------------------------------------------------------

    def _first_delay(self) -> float:
        return float(self.config.initial_queue_polling_delay)

    def _accounting_delay(self) -> float:
        """How long the record of an end is waited for; 0 where there is no source of records."""
        known = any(not source.late and source.name not in self._off for source in self._sources([]))
        return self.config.accounting_delay if known else 0.0

    def _status_commands(self, native_ids: _Words) -> Iterator[tuple[_Words, _Words]]:
        """Status commands and the ids that each is to answer for; one that does not depend on ids comes once."""
        size = self._chunk or len(native_ids)
        if len(native_ids) > size:
            one, other = (self.get_status_command(native_ids[n:n + 1]) for n in (0, 1))
            size = len(native_ids) if one == other else size
        for start in range(0, len(native_ids), size):
            ids = native_ids[start:start + size]
            yield ids, self.get_status_command(ids)

    def _ask(self, command: _Words) -> tuple[int, str]:
        """Exit code and output of a command."""
        try:
            return 0, self._run_command(command)
        except subprocess.CalledProcessError as e:
            return e.returncode, e.output or ""

    def _ask_sources(self, native_ids: _Words, late: set[str]) -> tuple[dict[str, dict[str, JobStatus]], bool]:
        """Records by native id and source, and whether a source was silent.

        late: ids for which late sources are asked too. A source is not asked for what one before it has settled.
        """
        records: dict[str, dict[str, JobStatus]] = {}
        silent = False
        open_ids = native_ids
        for index in range(len(self._sources(native_ids))):
            source = self._sources(open_ids)[index]
            if source.late:
                source = self._sources([one for one in open_ids if one in late])[index]
            if source.name not in self._off:
                silent |= self._ask_source(source, records)
            open_ids = [one for one in open_ids
                        if not any(status.state.final for status in records.get(one, {}).values())]
        return records, silent

    def _ask_source(self, source: Source, records: dict[str, dict[str, JobStatus]]) -> bool:
        """Add what a source knows to the records; whether it was silent."""
        silent = False
        for command in source.commands:
            try:
                for native_id, status in source.parse(*self._ask(command)).items():
                    records.setdefault(native_id, {})[source.name] = status
            except (SourceOffError, FileNotFoundError, PermissionError) as e:
                _log.info("%s: there is no %s: %s", self.name, source.name, e)
                self._off.add(source.name)
                return silent
            except Exception as e:
                _log.debug("%s: %s does not answer: %s", self.name, source.name, e)
                silent = True
        return silent

    def _finish(self, followed: Followed, status: JobStatus) -> None:
        """Tidy up, stage out and set the final status of a job."""
        job = followed.job
        if status.state is JobState.FAILED:
            said, ended = output_tail(self._aux_path(followed.native_id, ".out"))
            if said and (self._OUTPUT_IS_TROUBLE or not ended):
                self._explain(status, said)
                status.message = f"{status.message}: {said}" if status.message else said
        self._read_left(followed, status)
        staged = self._staged.pop(job.id, None)
        try:
            self._remove_files(followed)
        finally:
            if staged is None:
                self._set_job_status(job, status)
            else:
                with self._lock:
                    self._fetching.add(job.id)
                in_background(partial(self._stage_out, job, staged, status))

    def _read_left(self, followed: Followed, status: JobStatus) -> None:
        """Put into the metadata what the surroundings of a job have left behind."""
        if self.config.surroundings is None:
            return
        try:
            with open(self._aux_path(followed.native_id, ".left"), encoding="ascii", errors="replace") as file:
                status.metadata = {**(status.metadata or {}),
                                   **self.config.surroundings.read(followed.job, file.read(_MOST_LEFT))}
        except FileNotFoundError:
            return
        except Exception as e:
            _log.warning("What job %s has left behind cannot be read: %s", followed.job.id, e)

    def _stage_out(self, job: Job, staged: Staging, status: JobStatus) -> None:
        """In a staging thread: what a job that has ended wants done, and its final status."""
        native_id = job.native_id
        ran = status.state is JobState.COMPLETED or job.status.state is JobState.ACTIVE or _ran(status)
        canceled = status.state is JobState.CANCELED

        def tell(state: JobState) -> None:
            self._set_job_status(job, JobStatus(state, metadata={"native_id": native_id}))

        try:
            after_end(staged, status, ran, lambda: job.id in self._cancel_later and not canceled, tell)
            status.time = time.time()
        finally:
            with self._lock:
                self._fetching.discard(job.id)
                self._cancel_later.discard(job.id)
            self._set_job_status(job, status)

    def _remove_files(self, followed: Followed) -> None:
        """Those of a job that has ended. The exit file stays as long as somebody else is attached to the job."""
        if self.config.keep_files:
            return
        keep = self._aux_path(followed.native_id, ".keep")
        try:
            if followed.own:
                watched = keep.exists()
                self._clean_submit_script(followed.job)
                (self.work_directory / f"{followed.job.id}.start").unlink(missing_ok=True)
                for suffix in _AUX:
                    if not (watched and suffix == ".ec"):
                        self._delete_aux_file(followed.job, suffix)
            elif _left_by(keep, followed.job.id):
                written = exit_file(self._aux_path(followed.native_id, ".ec"), None)
                script = None if written is None or written.job_id is None else f"{written.job_id}.job"
                if script is not None and not (self.work_directory / script).exists():
                    self._delete_aux_file(followed.job, ".ec")
        except OSError as e:
            _log.warning("Files of job %s cannot be removed: %s", followed.job.id, e)

    # --- commands --------------------------------------------------------------------------------------------------

    def _run_command(self, cmd: _Words) -> str:
        """Standard output of a command. Raises CalledProcessError with all its output, TimeoutExpired, OSError."""
        return _output_of(cmd, self.config.command_timeout, {**os.environ, "LC_ALL": "C"})

    def _run_submit(self, command: _Words) -> str:
        """The same for a submit command, in our own locale: the job may inherit it."""
        return _output_of(command, self.config.command_timeout, os.environ)


def _staging_of(spec: JobSpec) -> Staging | None:
    from psij.executors.batch.lrm import directory

    return staging(spec, directory(spec)) if spec.stage_in or spec.stage_out or spec.cleanup else None


def _left_by(keep: Path, job_id: str) -> bool:
    """Take one who is attached to a job out of the directory of those who are; whether it was the last one."""
    with suppress(OSError):
        (keep / job_id).unlink(missing_ok=True)
        keep.rmdir()
        return True
    return False


def _output_of(command: list[str], timeout_s: float, environment: Mapping[str, str]) -> str:
    result = run(command, timeout_s, environment)
    if result.exit_code != 0:
        raise subprocess.CalledProcessError(result.exit_code, command, result.output or UNKNOWN_ERROR)
    return result.stdout


def _reason(error: BaseException) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return str(error.output or "").strip() or f"exit code {error.returncode}"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename!r} is not found (PATH is {os.environ.get('PATH', '')!r})"
    if isinstance(error, OSError) and error.filename and error.errno in (errno.EACCES, errno.ENOEXEC):
        return f"{error.filename!r}: {error.strerror} (PATH is {os.environ.get('PATH', '')!r})"
    return str(error)


def _library() -> dict[str, Any]:
    from psij.executors.batch.template_function_library import ALL

    return ALL


def _by_prefix(spec: JobSpec) -> dict[str, Any]:
    """Custom attributes as templates see them: prefix to ``{key, value}`` pairs; a name without a dot to its value."""
    found: dict[str, Any] = {}
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        prefix, dot, key = name.partition(".")
        if dot:
            found.setdefault(prefix.lower(), []).append({"key": key, "value": value})
        else:
            found[name] = value
    return found


def _check_lengths(spec: JobSpec) -> None:
    """Refuse words that the system could not hand to the program."""
    named = [("executable", spec.executable or ""),
             *((f"arguments[{index}]", text) for index, text in enumerate(spec.arguments or ())),
             *((f"environment[{name!r}]", f"{name}={value}") for name, value in (spec.environment or {}).items())]
    for field, text in named:
        if len(text) > _LONGEST_WORD // 4 and len(os.fsencode(text)) > _LONGEST_WORD:
            raise InvalidJobException(f"{field} has more than {_LONGEST_WORD} bytes, which no program can be given")
