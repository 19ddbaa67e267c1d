"""PSI/J executor ``fluxexec``: a job manager in this process, and an execution service that runs its jobs.

    JobExecutor.get_instance("fluxexec")                                   # a service in this process, over ``local``
    JobExecutor.get_instance("fluxexec", url="exec:slurm")                 # the same over another executor
    JobExecutor.get_instance("fluxexec", url="unix:/run/user/1000/exec")   # `sssjob flux-exec serve --socket`

Jobs that find no free rank are QUEUED. The native id is the job id, as ``f3NCSuq``. When a service at a socket goes
away it is looked for again, and its jobs with it; one that stays away for ``lost_after`` takes its jobs along (FAILED,
reason ``lost``). ``attach`` knows the jobs of this object, and at a socket those that a process which is gone has had
started: they are recorded in ``work_directory``.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobExecutor,
    JobExecutorConfig,
    JobState,
    JobStatus,
    SubmitException,
)
from psij.rendered import Rendered
from sssjob.document.lexical import LexicalError
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.fluxexec.desk import Desk
from sssjob.fluxexec.psijspec import jobspec_of
from sssjob.fluxexec.records import Record, Records
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.ids import read_id

__all__ = ["FluxExecConfig", "FluxExecExecutor"]

log = logging.getLogger("sssjob.fluxexec")
_HELLO_S: Final = 5.0               # for a service to say hello


class FluxExecConfig(JobExecutorConfig):
    """ranks: how many there are to give away, the CPUs of this process unless stated; cores: of each. profile: of the
    job manager. lost_after: seconds without a service after which its jobs count as lost."""

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None, *,
                 ranks: int | None = None, cores: int = 1, profile: str = "flux-core",
                 lost_after: float = 60.0) -> None:
        super().__init__(launcher_log_file, work_directory)
        self.ranks = len(os.sched_getaffinity(0)) if ranks is None else ranks
        self.cores, self.profile, self.lost_after = cores, profile, lost_after


class FluxExecExecutor(JobExecutor):
    """Runs jobs through an execution service. Raises ValueError for a url that is none."""

    config: FluxExecConfig

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        settings = config or JobExecutorConfig.DEFAULT
        if not isinstance(settings, FluxExecConfig):
            surroundings = settings.surroundings
            settings = FluxExecConfig(settings.launcher_log_file, settings.work_directory)
            settings.surroundings = surroundings
        super().__init__(url, settings)
        self._scheme, self._target = _address(url)
        self._lock = threading.Lock()
        self._desk: Desk | None = None
        self._records = Records(settings.work_directory / "fluxexec", os.path.abspath(self._target)
                                ) if self._scheme == "unix" else None

    def submit(self, job: Job) -> None:
        """Queue a job. Raises InvalidJobException for what a jobspec cannot say and for more ranks than there are,
        InvalidStateException; SubmitException (transient) when the service cannot be reached."""
        spec = self._check_job(job)
        if self.config.surroundings is not None:
            self.config.surroundings.check(job)
        jobspec = jobspec_of(spec, None if self._scheme == "exec" else _inherited())
        desk = self._open()
        try:
            fit = desk.manager.fit(jobspec)
        except (ProtocolError, UsageError) as error:
            raise InvalidJobException(str(error), error) from error
        job._bind(self)
        desk.submit(job, jobspec, fit)

    def render(self, jobs: Sequence[Job]) -> Rendered:
        """The jobspec that ``submit`` would hand to the service; no service is asked. Raises InvalidJobException."""
        (job,) = jobs
        jobspec = jobspec_of(self._check_job(job), None if self._scheme == "exec" else _inherited())
        return Rendered(request=json.dumps(jobspec, indent=1, ensure_ascii=False))

    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; it is CANCELED when the service has released its ranks."""
        if job.status.final:
            return
        if job.executor is not self or self._desk is None:
            raise InvalidStateException(f"Job {job.id} cannot be canceled: it was not submitted to this executor.")
        self._desk.cancel(job)

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job of this object; or, at a socket, one that was started by a process that is gone.

        Any other becomes FAILED, reason ``lost``. Raises InvalidStateException; SubmitException (transient) where the
        service cannot be reached or still serves another process.
        """
        job._attach(self)
        job._native_id = native_id
        try:
            number = read_id(native_id)
        except (LexicalError, UsageError):
            number = -1
        desk = self._desk
        if desk is not None and desk.follow(number, job):
            return
        record = self._records.read(number) if self._records is not None and number >= 0 else None
        if record is None:
            job.status = JobStatus(JobState.FAILED, message=self._unknown(native_id),
                                   metadata={"native_id": native_id, "reason": "lost"})
            return
        try:
            self._adopt(job, number, record)
        except SubmitException:
            job._unbind()
            raise

    def _unknown(self, native_id: str) -> str:
        """Why a job is not to be found."""
        if self._records is None:
            return (f"this process has no job {native_id[:60]}, and the service of another process cannot be joined "
                    "(one at a socket can)")
        return (f"there is no record of job {native_id[:60]} in {self._records.folder}: it has ended, was never "
                "started, or belongs to another service")

    def _adopt(self, job: Job, number: int, record: Record) -> None:
        """Ask the service for a job that a process which is gone has had started. Raises SubmitException."""
        desk = self._open()
        if not desk.greeted.wait(_HELLO_S):
            if not desk.ids():
                self.close()
            raise SubmitException(f"the execution service at {self._target} says no hello: it serves another process, "
                                  "which has to end first", transient=True)
        desk.adopt(number, job, record)

    def list(self) -> list[str]:
        """Native ids of the jobs of this object that have not ended."""
        return [] if self._desk is None else self._desk.ids()

    def close(self) -> None:
        """Let go of the service; jobs that run are no longer followed."""
        with self._lock:
            desk, self._desk = self._desk, None
        if desk is not None:
            desk.stop()

    def _open(self) -> Desk:
        with self._lock:
            if self._desk is None or self._desk.dead:
                if self._scheme == "unix" and self.config.surroundings is not None:
                    log.warning("the execution service makes the surroundings of its jobs, and this process none "
                                "(sssjob flux-exec serve --mjf)")
                self._desk = Desk(self._scheme, self._target, self.config, self._records)
                self._desk.begin()
            return self._desk


def _address(url: str | None) -> tuple[str, str]:
    scheme, _, target = (url or "exec:local").partition(":")
    if scheme not in ("exec", "unix") or not target:
        raise ValueError(f"{url!r} is no address of an execution service (known: exec:EXECUTOR, unix:PATH)")
    return scheme, target


def _inherited() -> dict[str, str]:
    """Our variables, as far as they are text; a jobspec is JSON and holds no other bytes, which the log tells."""
    variables = {}
    for name, value in os.environ.items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            log.warning("the variable %s is not passed on: it is no UTF-8", escape(name, 60))
        else:
            variables[name] = value
    return variables
