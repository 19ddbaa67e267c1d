"""What a batch executor says of its resource manager: the hooks that third parties override, and the files of its jobs.

psij-python's hooks keep their names and meaning. Further ones have defaults, with which a class that was written for
psij-python works: on the search by tag, on ends, on whose job an answer is about, and for what PSI/J has no words for.
Nothing is run here.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, ClassVar

from psij.exceptions import InvalidJobException
from psij.executors.batch._array_jobs import ArrayLimits, JobArray
from psij.executors.batch._cluster import Cluster
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._host import Host
from psij.executors.batch._identity import Claim
from psij.executors.batch._ssh import host_of
from psij.executors.batch._ssh_staging import check_modes
from psij.executors.batch._terms import AnyOrder, Failure, Order, Source
from psij.job import Job
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_status import JobStatus
from sssjob.lrm.clocks import clock
from sssjob.users import user_name

_LONGEST_WORD = 128 * 1024 - 1      # bytes of an argument or a variable that Linux can hand to a program

_Words = list[str]                  # the method ``list`` hides the built-in inside the class


class BatchHooks(JobExecutor):
    """What differs from one resource manager to the next."""

    _CONFIG = BatchSchedulerExecutorConfig
    config: BatchSchedulerExecutorConfig
    _chunk: int | None = 500        # native ids per status command; None: one command for all
    _SHOWN_CODES: Mapping[int, int] = {}    # exit codes that accounting or the queue shows as other ones
    _SIGNALED_IS_ZERO = False       # accounting may show a job that a signal ended as one with exit code 0
    _RECORDS_TELL = False           # the scripts' own records name job and native id, so that they can be searched
    _TELLS_WHOSE = False            # rows of the queue say whose job they are about: ``_claim``
    _REMEMBERS = False              # queue and sources know every job from its submission until long after its end
    _ACCOUNTED_AT_ONCE: ClassVar[int] = 200     # native ids in one question for jobs that ended long ago
    _LIVE_SOURCES: ClassVar[frozenset[str]] = frozenset()   # names of ``_sources`` that are no accounting
    _CHOOSING: ClassVar[Sequence[str]] = ()     # variables of the environment by which the commands find their cluster
    #: Whether several jobs can be submitted as the parts of one.
    TOGETHER: ClassVar[bool] = False
    #: The format of batch scripts whose options this executor takes as custom attributes; empty where there is none.
    SCRIPT_FORMAT: ClassVar[str] = ""
    _SCRIPT_MODE = 0o600            # of the submit script
    _FILES: ClassVar[Sequence[str]] = ()    # suffixes of further files that the resource manager makes of a job
    _OF_MANAGER: re.Pattern[str] | None = None      # lines in that output that say nothing of what went wrong
    _OUTPUT_IS_TROUBLE = False      # all output of the submit script is worth a message, with an end marker or without

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, BatchSchedulerExecutorConfig._from_config(config))
        self.host: Host = host_of(self.config.ssh_host, self.config.ssh_setup)
        self._work_directory: Path | None = None
        self._arrays: dict[str, JobArray] = {}      # by tag: arrays that are being submitted

    # --- psij-python's ---------------------------------------------------------------------------------------------

    @abstractmethod
    def generate_submit_script(self, job: Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the submit script of a job. context: see _create_script_context."""

    @abstractmethod
    def get_submit_command(self, job: Job, submit_file_path: Path) -> _Words:
        """The command that submits a script."""

    @abstractmethod
    def job_id_from_submit_output(self, out: str) -> str:
        """The native id in the output of a submit command that succeeded."""

    @abstractmethod
    def get_cancel_command(self, native_id: str) -> _Words:
        """The command that ends a job."""

    @abstractmethod
    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """Judge a cancel command that failed.

        Raises InvalidJobStateError when the job had ended, SubmitException for any other failure; returns when the job
        will end all the same.
        """

    @abstractmethod
    def get_status_command(self, native_ids: Iterable[str]) -> _Words:
        """The command that asks for the states of these jobs, or of all."""

    @abstractmethod
    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """Statuses by native id. Raises any exception when the output says nothing."""

    @abstractmethod
    def get_list_command(self) -> _Words:
        """The command that lists the user's jobs."""

    def parse_list_output(self, out: str) -> _Words:
        """Native ids in the output of the list command: its lines."""
        return [line.strip() for line in out.splitlines() if line.strip()]

    def _format_duration(self, duration: timedelta) -> str:
        """A time limit as the resource manager wants it: ``hours:minutes:seconds``."""
        return clock(-int(-duration.total_seconds() // 1), 1)

    def _clean_submit_script(self, job: Job) -> None:
        """Remove the submit script."""
        if not self.config.keep_files:
            self.host.remove(self._script_path(job))

    def _current_user(self) -> str:
        """The name of the user that jobs belong to."""
        return user_name() if self.host.is_here else self.host.user or str(self.host.uid)

    def native_name(self, job: Job) -> str | None:
        """The name under which accounting tells a job from others of its native id, where it does not have the tag;
        None where it has, or where the name would not help."""
        return None

    def _user(self) -> str | None:
        """The name of the user that submits, by the system; None where it has none."""
        return self.host.user

    def _create_script_context(self, job: Job) -> dict[str, Any]:
        """What a template of psij-python's form may use."""
        return _script_context(self, job)

    # --- submissions, with defaults --------------------------------------------------------------------------------

    def _check_spec(self, spec: JobSpec) -> None:
        """Refuse, with InvalidJobException, what this executor cannot do."""
        if not self.host.is_here:
            check_modes((*(spec.stage_in or ()), *(spec.stage_out or ())), self.host.name)
        _check_lengths(spec)

    def _said_of_submission(self, out: str) -> dict[str, Any]:
        """Metadata of the job, from the output of a submit command that succeeded."""
        return {}

    def _beside(self, job: Job, path: Path) -> Mapping[Path, str]:
        """The files that the submit command reads beside the script at path, and their texts."""
        return {}

    def _prepared(self, job: Job, path: Path) -> AbstractContextManager[None]:
        """What the submit command needs beside the script at path, as long as it runs."""
        return nullcontext()

    def _classify_failure(self, exit_code: int, out: str) -> Failure:
        """What it means that the submit command failed in this way."""
        return Failure.REFUSED if exit_code > 0 else Failure.UNKNOWN

    def _lookup_commands(self, tags: Sequence[str]) -> list[_Words] | None:
        """Commands whose outputs show the native jobs made for the jobs with these ids; None when jobs cannot be looked
        up. Each is run once for all of them."""
        return None

    def _cancel_command(self, native_ids: _Words) -> _Words | None:
        """The command that ends several jobs; None where each takes one of its own. What it says when it fails is read
        line by line: lines that name an id go to ``process_cancel_command_output``."""
        return None

    def _unbegun(self, out: str) -> Set[str]:
        """Native ids that the answer to a cancel command calls taken out of the queue before they began, so that there
        will be no record of them."""
        return frozenset()

    def _parse_lookup(self, out: str) -> Mapping[str, _Words]:
        """Native ids by tag, the id of the job that they were made for, the oldest first; of other jobs too."""
        return {}

    def _says_none(self, out: str) -> bool:
        """Whether a lookup command failed because there is no job at all."""
        return False

    def _is_native_id(self, text: str) -> bool:
        """Whether a text can be a job id: one word, not an option."""
        return bool(text) and not text.startswith("-") and not any(c.isspace() or c in "/\0" for c in text)

    def is_native_id(self, text: str) -> bool:
        """Whether a text has the form of this resource manager's job ids."""
        return self._is_native_id(text)

    def _launch_command(self, job: Job) -> _Words:
        """The command that starts the processes of a job. Raises InvalidJobException for an unknown launcher."""
        assert job.spec is not None
        try:
            launcher = self._get_launcher(job.spec.launcher or Launcher.DEFAULT_LAUNCHER_NAME)
            return launcher.get_launch_command(job)
        except ValueError as e:
            raise InvalidJobException(f"launcher: {e}", e) from e

    # --- ends, with defaults ---------------------------------------------------------------------------------------

    def _sources(self, native_ids: _Words) -> list[Source]:
        """Sources of final states besides the queue, the most trusted first."""
        return []

    def _reasons_command(self, native_ids: _Words) -> _Words | None:
        """One command that says why these jobs wait; None where the status command says it, or nobody does."""
        return None

    def _reasons(self, exit_code: int, out: str) -> Mapping[str, tuple[str | None, str]]:
        """Kind (``sssjob.lrm.waits``) and words of why jobs wait, by native id. Raises any exception when the output
        says nothing."""
        return {}

    def _claim(self, row: Any) -> Claim:
        """What a row of the queue says of whose job it is; row: as of ``_rows``."""
        return Claim()

    def _tags_command(self, native_ids: _Words) -> _Words | None:
        """The command that tells the tags of these jobs, where the rows of the queue do not; None where they do."""
        return None

    def _parse_tags(self, out: str) -> Mapping[str, frozenset[str]]:
        """The tags of the jobs in that answer, by native id, of an array by that of the whole."""
        return {}

    def _explain(self, status: JobStatus, output: str) -> None:
        """Put into a failed job's metadata what follows from the output of its submit script."""

    def _first_delay(self) -> float:
        """Seconds from a submission to the first question."""
        return float(self.config.initial_queue_polling_delay)

    def _watch_key(self) -> tuple[Any, ...]:
        """Executors with the same key share a watcher; the first item is a name for people."""
        return self.name, self

    # --- what PSI/J has no words for -------------------------------------------------------------------------------

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """The custom attributes with which the resource manager starts a job after others; None where it cannot.

        after: native ids by what must have become of all of them: ``ok``, ``notok``, ``any`` (an end of any kind).
        """
        return None

    def machine(self) -> str | None:
        """What the resource manager calls what it submits to; None where it has no name for it or does not say."""
        return None

    def _cluster_command(self) -> _Words | None:
        """The command whose output tells which cluster this is; None where no command tells it."""
        return None

    def _cluster(self, out: str) -> Cluster | None:
        """The cluster, from that output, which is empty where there is no such command; None where it is not known."""
        return None

    def _cluster_name(self) -> str | None:
        """The same without asking anybody, where accounting and queue do not tell it; None where that cannot be."""
        return None

    def fit_name(self, name: str) -> str:
        """The name of a job as the resource manager takes it, which is the same where it does."""
        return name

    def begin_attributes(self, at: float) -> dict[str, object] | None:
        """The custom attributes with which a job does not start before a time; None where that cannot be said.

        at: in seconds since the epoch.
        """
        return None

    def hold_attributes(self) -> dict[str, object] | None:
        """The custom attributes with which a job is held until its user releases it; None where it cannot be."""
        return None

    def get_order_command(self, order: Order, native_id: str, signal: str = "") -> _Words | None:
        """The command that has something done with a job; None where there is none. signal: of ``signal``, as USR1.

        hold: keep a job that waits from starting until its user releases it. release: end that hold, and the one of
        hold_attributes. rerun: end the run of a job and put it back into the queue. suspend, resume: stop the processes
        of a job that runs, and let them go on. signal: send them a signal.
        """
        return None

    def _order_command(self, order: Order, native_ids: _Words) -> _Words | None:
        """The command that has the same done with several jobs, one of ``MANY``; None where each takes one of its own.
        When it fails, jobs that its lines name are told alone, but for those of which ``_order_done``."""
        return None

    def _order_done(self, out: str) -> bool:
        """Whether the lines about a job, of such a command that failed for others, say that it was done."""
        return False

    def get_change_commands(self, job: Job, before: JobSpec, after: JobSpec) -> list[_Words]:
        """The commands that change a job that was submitted as ``before`` says into what ``after`` says; run one after
        the other, and where one fails those of the way back. Raises InvalidJobException for what cannot be changed.
        """
        raise InvalidJobException(f"{self.name} has no command for that")

    def order_refusal(self, order: AnyOrder, out: str) -> str | None:
        """Why the command of an order, which ended well, did not do it, from its output; None where it did."""
        return None

    def part_id(self, native_id: str, number: int) -> str:
        """The native id of a part of a job that was submitted together. native_id: of the whole, or of any part."""
        return native_id

    def array_limits(self) -> ArrayLimits | None:
        """What the resource manager takes as one array; None where jobs cannot be submitted as elements of one."""
        return None

    def array_id_from_submit_output(self, out: str) -> str:
        """The native id of a whole array in the output of the submit command that made it."""
        return self.job_id_from_submit_output(out)

    def element_id(self, native_id: str, number: int) -> str:
        """The native id of an element of an array. native_id: of the whole."""
        return native_id

    # --- files -----------------------------------------------------------------------------------------------------

    @property
    def work_directory(self) -> Path:
        """Where scripts and outputs are: ``<config.work_directory>/<name of the executor>``."""
        if self._work_directory is None:
            self._work_directory = self.host.place(str(self.config.work_directory)) / self.name.lower()
        return self._work_directory

    @work_directory.setter
    def work_directory(self, path: Path) -> None:
        """Have scripts and records there, from the next submission on."""
        self._work_directory = path

    def _script_path(self, job: Job) -> Path:
        return self.work_directory / f"{job.id}.job"

    def _aux_path(self, native_id: str, suffix: str, tag: str | None = None) -> Path:
        """A file of a native job. tag: the id of the job of psij that it is, None where that is not known. Templates of
        third parties name files by the native id alone."""
        return self.work_directory / f"{native_id}{suffix}"

    def _delete_aux_file(self, job: Job, suffix: str) -> None:
        """Remove a file of a job, such as ``.out``."""
        if not self.config.keep_files and job.native_id is not None:
            self.host.remove(self._aux_path(job.native_id, suffix, job.id))


def _script_context(executor: BatchHooks, job: Job) -> dict[str, Any]:
    """``job``, ``env``, ``custom_attributes``, ``psij`` and, of a job with a time limit, ``formatted_job_duration``."""
    from psij.executors.batch.template_function_library import ALL

    spec = job.spec
    assert spec is not None
    context: dict[str, Any] = {
        "job": job,
        "env": [{"name": name, "value": value} for name, value in (spec.environment or {}).items()],
        "custom_attributes": _by_prefix(spec),
        "psij": {"lib": ALL, "launch_command": executor._launch_command(job), "debug": 0,
                 "script_dir": str(executor.work_directory), "us_file": "", "us_port": 0, "us_addrs": ""}}
    if spec.attributes is not None and spec.attributes.duration is not None:
        context["formatted_job_duration"] = executor._format_duration(spec.attributes.duration)
    return context


def _by_prefix(spec: JobSpec) -> dict[str, Any]:
    """Custom attributes as templates see them: prefix to ``{key, value}`` pairs; a name without a dot to its value."""
    prefixes: dict[str, Any] = {}
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        prefix, dot, key = name.partition(".")
        if dot:
            prefixes.setdefault(prefix.lower(), []).append({"key": key, "value": value})
        else:
            prefixes[name] = value
    return prefixes


def _check_lengths(spec: JobSpec) -> None:
    """Refuse words that the system could not hand to the program. Raises InvalidJobException naming the member."""
    arguments, environment = spec.arguments or (), spec.environment or {}
    executable = os.fspath(spec.executable or "")
    short = _LONGEST_WORD // 4          # no character takes more than four bytes
    if sum(map(len, arguments)) + sum(map(len, environment)) + sum([len(str(value)) for value in environment.values()
                                                                    ]) + len(executable) < short - len(environment):
        return
    named = [("executable", executable),
             *((f"arguments[{index}]", text) for index, text in enumerate(arguments)),
             *((f"environment[{name!r}]", f"{name}={value}") for name, value in environment.items())]
    for field, text in named:
        if len(text) > short and len(os.fsencode(text)) > _LONGEST_WORD:
            raise InvalidJobException(f"{field} has more than {_LONGEST_WORD} bytes, which no program can be given")
