"""PSI/J executor ``fluxexec``: a job manager in this process, and an execution service that runs its jobs.

    JobExecutor.get_instance("fluxexec")                                   # a service in this process, over ``local``
    JobExecutor.get_instance("fluxexec", url="exec:slurm")                 # the same over another executor
    JobExecutor.get_instance("fluxexec", url="unix:/run/user/1000/exec")   # `sssjob flux-exec serve --socket`

Jobs that find no free rank are QUEUED. The native id is the job id, as ``f3NCSuq``. When a service at a socket goes
away it is looked for again, and its jobs with it; one that stays away for ``lost_after`` takes its jobs along (FAILED,
reason ``lost``). ``attach`` knows the jobs of this object.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
from sssjob.errors import AccessError, UsageError
from sssjob.fluxexec.errors import ProtocolError
from sssjob.fluxexec.idset import Idset
from sssjob.fluxexec.jobid import Ids, read_id, write_id
from sssjob.fluxexec.loop import Loop, Timer
from sssjob.fluxexec.manager import ManagedJob, Manager, Result
from sssjob.fluxexec.psijspec import jobspec_of
from sssjob.fluxexec.runner import PsijRunner
from sssjob.fluxexec.service import Service
from sssjob.fluxexec.transport import Channel, Lines, connect, pair
from sssjob.lexical import LexicalError

__all__ = ["FluxExecConfig", "FluxExecExecutor", "final_status"]

log = logging.getLogger("sssjob.fluxexec")
_PAUSES: Final = (0.1, 10.0)        # shortest and longest between two attempts to connect, seconds
_STATES: Final = {Result.COMPLETED: JobState.COMPLETED, Result.CANCELED: JobState.CANCELED}
#: Type of the exception that ended a job -> reason; "exec" before the start is a failed launch.
_REASONS: Final = {"cancel": "cancel", "timeout": "timeout", "node-failure": "node-failure", "exec": "lost"}
_NOTE: Final = 1000                 # characters of a message


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
        given = config or JobExecutorConfig.DEFAULT
        if not isinstance(given, FluxExecConfig):
            surroundings = given.surroundings
            given = FluxExecConfig(given.launcher_log_file, given.work_directory)
            given.surroundings = surroundings
        super().__init__(url, given)
        self._scheme, self._target = _address(url)
        self._lock = threading.Lock()
        self._desk: _Desk | None = None

    def submit(self, job: Job) -> None:
        """Queue a job. Raises InvalidJobException for what a jobspec cannot say and for more ranks than there are,
        InvalidStateException; SubmitException (transient) when the service cannot be reached."""
        spec = self._check_job(job)
        jobspec = jobspec_of(spec, None if self._scheme == "exec" else _inherited())
        desk = self._open()
        try:
            fit = desk.manager.fit(jobspec)
        except (ProtocolError, UsageError) as error:
            raise InvalidJobException(str(error), error) from error
        job._bind(self)
        desk.submit(job, jobspec, fit)

    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; it is CANCELED when the service has released its ranks."""
        if job.status.final:
            return
        if job.executor is not self or self._desk is None:
            raise InvalidStateException(f"Job {job.id} cannot be canceled: it was not submitted to this executor.")
        self._desk.cancel(job)

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job of this object; any other becomes FAILED, reason ``lost``."""
        job._attach(self)
        job._native_id = native_id
        try:
            number = read_id(native_id)
        except (LexicalError, UsageError):
            number = -1
        desk = self._desk
        if desk is None or not desk.follow(number, job):
            job.status = JobStatus(JobState.FAILED, message=f"this process has no job {native_id[:60]}",
                                   metadata={"native_id": native_id, "reason": "lost"})

    def list(self) -> list[str]:
        """Native ids of the jobs of this object that have not ended."""
        return [] if self._desk is None else self._desk.ids()

    def close(self) -> None:
        """Let go of the service; jobs that run are no longer followed."""
        with self._lock:
            desk, self._desk = self._desk, None
        if desk is not None:
            desk.stop()

    def _open(self) -> _Desk:
        with self._lock:
            if self._desk is None or self._desk.dead:
                self._desk = _Desk(self._scheme, self._target, self.config)
                self._desk.begin()
            return self._desk


def _address(url: str | None) -> tuple[str, str]:
    scheme, _, target = (url or "exec:local").partition(":")
    if scheme not in ("exec", "unix") or not target:
        raise ValueError(f"{url!r} is no address of an execution service (known: exec:EXECUTOR, unix:PATH)")
    return scheme, target


def _inherited() -> dict[str, str]:
    """Our variables, as far as they are text."""
    made = {}
    for name, value in os.environ.items():
        with suppress(UnicodeEncodeError):
            f"{name}{value}".encode()
            made[name] = value
    return made


class _Desk:
    """The job manager, its loop in a thread of its own, and the way to the service."""

    def __init__(self, scheme: str, target: str, config: FluxExecConfig) -> None:
        self.scheme, self.target, self.config = scheme, target, config
        self.loop = Loop()
        self.manager = Manager(Idset.of(range(config.ranks)), self.loop.now, cores=config.cores,
                               profile=config.profile, changed=self._changed)
        self.dead = False
        self._ids = Ids()
        self._lock = threading.Lock()
        self._jobs: dict[int, list[Job]] = {}
        self._names: dict[int, str] = {}            # native ids
        self._told: dict[int, JobStatus] = {}       # the last status of each
        self._runner: PsijRunner | None = None
        self._gone: Timer | None = None             # when the service counts as lost
        self._pause = _PAUSES[0]
        self._host = [socket.gethostname()] if (scheme, target) == ("exec", "local") else None

    # In the caller's thread

    def begin(self) -> None:
        """Find the service and start the thread. Raises SubmitException, InvalidJobException."""
        if self.scheme == "exec":
            self._serve()
        else:
            try:
                self._connected(connect(self.target))
            except AccessError as error:
                raise SubmitException(f"the execution service cannot be reached: {error}", error,
                                      transient=True) from error
        threading.Thread(target=self._run, name="fluxexec", daemon=True).start()

    def submit(self, job: Job, jobspec: dict[str, Any], fit: tuple[int, float]) -> None:
        """Take a job that fits."""
        now = self.loop.now()
        with self._lock:
            number = self._ids.next()
            job._native_id = self._names[number] = write_id(number)
            self._jobs[number] = [job]
        job.status = JobStatus(JobState.QUEUED, now, metadata={"native_id": job.native_id, "submit_time": now})
        self.loop.post(lambda: self._take(number, jobspec, fit))

    def cancel(self, job: Job) -> None:
        """Have a job ended."""
        number = read_id(job.native_id or "")

        def call() -> None:
            with suppress(LookupError):
                self.manager.cancel(number, "canceled on request")

        self.loop.post(call)

    def follow(self, number: int, job: Job) -> bool:
        """Tell one more job of what happens to a number; whether there is such a one."""
        with self._lock:
            followers = self._jobs.get(number)
            if followers is None:
                return False
            followers.append(job)
        job._native_id = write_id(number)
        self.loop.post(lambda: self._again(number, job))
        return True

    def ids(self) -> list[str]:
        """Native ids of what has not ended."""
        with self._lock:
            return list(self._names.values())

    def stop(self) -> None:
        """End the thread."""
        self.dead = True
        self.loop.stop()

    # In the loop's thread

    def _run(self) -> None:
        try:
            self.loop.run()
        except Exception:
            log.exception("fluxexec")
            self.dead = True
            for number in list(self._jobs):
                self._end(number, _lost("the job manager has failed"))
        if self._runner is not None:
            self._runner.close()

    def _take(self, number: int, jobspec: dict[str, Any], fit: tuple[int, float]) -> None:
        try:
            self.manager.submit(jobspec, userid=os.getuid(), job_id=number, fit=fit)
        except (ProtocolError, UsageError) as error:
            self._end(number, JobStatus(JobState.FAILED, message=str(error), metadata={"reason": "launch"}))

    def _again(self, number: int, job: Job) -> None:
        status = self._told.get(number)
        job.status = JobStatus(JobState.QUEUED, metadata={"native_id": job.native_id}) if status is None else status

    def _changed(self, managed: ManagedJob, event: str) -> None:
        if event == "start":
            when = managed.times[-1]
            self._tell(managed.id, JobStatus(JobState.ACTIVE, when, metadata={
                "native_id": self._names[managed.id], "start_time": when}))
        elif event == "clean":
            status = final_status(managed, self._names[managed.id], self.config.cores)
            if self._host is not None and "start_time" in (status.metadata or {}):
                status.metadata = {**(status.metadata or {}), "nodes": self._host, "node_count": 1}
            self._end(managed.id, status)
            self.loop.soon(lambda: self.manager.forget(managed.id))
        elif event == "debug.start-lost":
            self._missing()

    def _tell(self, number: int, status: JobStatus) -> None:
        with self._lock:
            self._told[number] = status
            followers = list(self._jobs.get(number, ()))
        for job in followers:
            job.status = status

    def _end(self, number: int, status: JobStatus) -> None:
        self._tell(number, status)
        with self._lock:
            late = self._jobs.pop(number, [])
            del self._told[number], self._names[number]
        for job in late:
            job.status = status         # of one that came meanwhile; twice is ignored

    # The service

    def _serve(self) -> None:
        """A service in this process."""
        try:
            executor = JobExecutor.get_instance(self.target, config=_plain(self.config))
        except ValueError as error:
            raise InvalidJobException(str(error), error) from error
        self._runner = PsijRunner(self.loop, executor)
        mine, theirs = pair(self.loop)
        self.manager.connect(mine)
        Service(self.loop, theirs, self._runner, name="fluxexec", partial=True).begin()

    def _connected(self, fd: int) -> None:
        channel = Lines(self.loop, fd)
        self.manager.connect(channel)
        channel.closed = lambda why: self._disconnected(channel, why)
        self._missing()             # until it has said hello

    def _disconnected(self, channel: Channel, why: str) -> None:
        log.warning("the execution service has gone away%s", f": {why}" if why else "")
        self.manager.disconnected(channel)
        self._missing()
        self._reconnect_later()

    def _reconnect_later(self) -> None:
        self.loop.at(self.loop.now() + self._pause, self._reconnect)
        self._pause = min(self._pause * 2, _PAUSES[1])

    def _reconnect(self) -> None:
        try:
            fd = connect(self.target)
        except AccessError:
            self._reconnect_later()
            return
        self._pause = _PAUSES[0]
        self._connected(fd)

    def _missing(self) -> None:
        """There may be no service: see to it later that its jobs do not wait for ever."""
        if self._gone is None:
            self._gone = self.loop.at(self.loop.now() + self.config.lost_after, self._give_up)

    def _give_up(self) -> None:
        self._gone = None
        if self.manager.service is not None:
            return
        for number in list(self._jobs):
            with suppress(LookupError):
                self.manager.raise_exception(number, "exec", 0, "the execution service has not come back")
        self._missing()             # for jobs that are submitted from now on


def _plain(config: FluxExecConfig) -> JobExecutorConfig:
    """The settings that any executor has."""
    made = JobExecutorConfig(config.launcher_log_file, config.work_directory)
    made.surroundings = config.surroundings
    return made


def _lost(why: str) -> JobStatus:
    return JobStatus(JobState.FAILED, message=why, metadata={"reason": "lost"})


def final_status(managed: ManagedJob, native_id: str, cores: int = 1) -> JobStatus:
    """The final status of a job that is INACTIVE. cores: of each rank.

    Where ranks were released before the end, metadata has ``spans``: [processors, seconds] of every part.
    """
    result = managed.result
    assert result is not None
    times = {name: when for (name, _), when in reversed(list(zip(managed.events, managed.times, strict=True)))}
    metadata: dict[str, Any] = {"native_id": native_id}
    end = times.get("finish", times["clean"])
    if "start" in times:
        metadata |= {"start_time": times["start"], "end_time": end, "wall_seconds": max(0.0, end - times["start"]),
                     "processors": managed.ranks.count * cores, "node_count": managed.ranks.count}
        spans = _spans(managed, cores, times["start"], end)
        if len(spans) > 1:
            metadata["spans"] = spans
    code = _exit_code(managed, metadata)
    reason = _reason(managed, result, "start" in times, metadata)
    if reason is not None:
        metadata["reason"] = reason
    metadata["sources"] = dict.fromkeys(metadata, "stream")
    return JobStatus(_STATES.get(result, JobState.FAILED), end, _message(managed), code, metadata)


def _exit_code(managed: ManagedJob, metadata: dict[str, Any]) -> int | None:
    """128 + n for signal n. None where there is none, and for a 0 of a job that an exception ended."""
    status = managed.wait_status
    if status is None or not 0 <= status <= 0xFFFF or (status == 0 and not managed.success):
        return None
    try:
        code = os.waitstatus_to_exitcode(status)
    except ValueError:
        return None
    if code >= 0:
        return code
    metadata |= {"signal": -code, "core_dumped": os.WCOREDUMP(status)}
    return 128 - code


def _reason(managed: ManagedJob, result: Result, started: bool, metadata: dict[str, Any]) -> str | None:
    if result is Result.COMPLETED:
        return None
    if managed.end:
        return "launch" if managed.end == "exec" and not started else _REASONS.get(managed.end)
    return "signal" if "signal" in metadata else None


def _message(managed: ManagedJob) -> str | None:
    """The note of the first fatal exception, else of all."""
    noted = [context for name, context in managed.events if name == "exception" and context is not None]
    fatal = [context for context in noted if context["severity"] == 0][:1]
    text = "; ".join(str(c["note"] or c["type"]) for c in fatal or noted)
    return text[:_NOTE] or None


def _spans(managed: ManagedJob, cores: int, start: float, end: float) -> list[list[float]]:
    """[processors, seconds] for each group of ranks that was given back at one time, the longest first."""
    left, found = managed.ranks, []
    for (name, context), when in zip(managed.events, managed.times, strict=True):
        if name != "release" or context is None or context["final"]:
            continue
        try:
            freed = left & Idset.parse(context["ranks"])
        except LexicalError:
            continue            # the manager takes what it gets
        if freed:
            left -= freed
            found.append([freed.count * cores, max(0.0, when - start)])
    if left:
        found.append([left.count * cores, max(0.0, end - start)])
    return found[::-1]
