"""The job manager of the executor ``fluxexec``: its loop in a thread of its own, the way to the service,
and the final status of a job, from the events that the job manager has recorded for it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from psij import InvalidJobException, Job, JobExecutor, JobExecutorConfig, JobState, JobStatus, SubmitException
from sssjob.document.lexical import LexicalError
from sssjob.errors import AccessError, UsageError
from sssjob.fluxexec.loop import Loop, Timer
from sssjob.fluxexec.manager import ManagedJob, Manager, Result
from sssjob.fluxexec.records import Record, Records
from sssjob.fluxexec.runner import PsijRunner
from sssjob.fluxexec.service import Service
from sssjob.fluxexec.transport import Channel, Lines, connect, pair
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.ids import Ids, read_id, write_id
from sssjob.lrm.flux.jobspec import Jobspec
from sssjob.lrm.idset import Idset

if TYPE_CHECKING:
    from sssjob.fluxexec.executor import FluxExecConfig

__all__ = ["Desk", "final_status"]


log = logging.getLogger("sssjob.fluxexec")
_PAUSES: Final = (0.1, 10.0)        # shortest and longest between two attempts to connect, seconds


class Desk:
    """scheme, target: of the service. records: of jobs at a socket."""

    def __init__(self, scheme: str, target: str, config: FluxExecConfig, records: Records | None = None) -> None:
        self.scheme, self.target, self.config, self.records = scheme, target, config, records
        self.greeted = threading.Event()            # a service has said hello
        self.loop = Loop()
        self.manager = Manager(Idset.of(range(config.ranks)), self.loop.now, cores=config.cores,
                               profile=config.profile, changed=self._changed,
                               greeted=lambda name: self.greeted.set())
        self.dead = False
        self._on: dict[str, Callable[[ManagedJob], None]] = {
            "debug.start-request": self._asked, "start": self._started, "debug.exec-reattach-finish": self._reattached,
            "debug.start-lost": lambda managed: self._missing(), "clean": self._over}
        self._ids = Ids()
        self._lock = threading.Lock()
        self._jobs: dict[int, list[Job]] = {}
        self._names: dict[int, str] = {}            # native ids
        self._told: dict[int, JobStatus] = {}       # the last status of each
        self._runner: PsijRunner | None = None
        self._gone: Timer | None = None             # when the service counts as lost
        self._pause = _PAUSES[0]

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

    def submit(self, job: Job, jobspec: dict[str, Any], fit: tuple[Jobspec, int]) -> None:
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
            """Cancel the job, in the thread of the loop; a job that is gone needs no cancel."""
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

    def adopt(self, number: int, job: Job, record: Record) -> None:
        """Have a job taken over, once, whoever else asks for it at the same time."""
        with self._lock:
            first = number not in self._jobs
            if first:
                job._native_id = self._names[number] = write_id(number)
                self._jobs[number] = [job]
        if not first:
            if not self.follow(number, job):
                job.status = lost("it has ended meanwhile")
            return
        job.status = JobStatus(JobState.QUEUED, record.started, metadata={"native_id": job.native_id})
        self.loop.post(lambda: self._take_over(number, record))

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
                self._end(number, lost("the job manager has failed"))
        self.manager.leave()            # the service is free for another job manager
        if self._runner is not None:
            self._runner.close()

    def _take(self, number: int, jobspec: dict[str, Any], fit: tuple[Jobspec, int]) -> None:
        try:
            self.manager.submit(jobspec, userid=os.getuid(), job_id=number, fit=fit)
        except (ProtocolError, UsageError) as error:
            self._end(number, JobStatus(JobState.FAILED, message=str(error), metadata={"reason": "launch"}))

    def _take_over(self, number: int, record: Record) -> None:
        try:
            self.manager.adopt(number, record.jobspec, record.r, record.started, userid=os.getuid())
        except (ProtocolError, UsageError) as error:
            self._end(number, lost(f"the record of the job is of no use: {error}"))

    def _again(self, number: int, job: Job) -> None:
        status = self._told.get(number)
        job.status = JobStatus(JobState.QUEUED, metadata={"native_id": job.native_id}) if status is None else status

    def _changed(self, managed: ManagedJob, event: str) -> None:
        act = self._on.get(event)
        if act is not None:
            act(managed)

    def _asked(self, managed: ManagedJob) -> None:
        if not managed.started:
            self._record(managed)

    def _started(self, managed: ManagedJob) -> None:
        self._record(managed)
        self._active(managed, managed.times[-1])

    def _reattached(self, managed: ManagedJob) -> None:
        if managed.started:
            self._active(managed, next(when for (name, _), when in zip(managed.events, managed.times, strict=True)
                                       if name == "start"))

    def _over(self, managed: ManagedJob) -> None:
        self._end(managed.id, final_status(managed, self._names[managed.id], self.config.cores))
        self.loop.soon(lambda: self.manager.forget(managed.id))

    def _record(self, managed: ManagedJob) -> None:
        if self.records is not None and managed.r is not None:
            self.records.write(managed.id, Record(managed.jobspec, managed.r, managed.times[-1]))

    def _active(self, managed: ManagedJob, when: float) -> None:
        self._tell(managed.id, JobStatus(JobState.ACTIVE, when, metadata={
            "native_id": self._names[managed.id], "start_time": when}))

    def _tell(self, number: int, status: JobStatus) -> None:
        with self._lock:
            self._told[number] = status
            followers = list(self._jobs.get(number, ()))
        for job in followers:
            job.status = status

    def _end(self, number: int, status: JobStatus) -> None:
        if self.records is not None:
            self.records.remove(number)
        with self._lock:            # first: who is told of the end finds it listed no more
            followers = self._jobs.pop(number, [])
            self._told.pop(number, None)
            del self._names[number]
        for job in followers:
            job.status = status

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
    own = JobExecutorConfig(config.launcher_log_file, config.work_directory)
    own.surroundings, own.site_defaults = config.surroundings, False      # the job has been filled in
    return own


_STATES: Final = {Result.COMPLETED: JobState.COMPLETED, Result.CANCELED: JobState.CANCELED}
#: Type of the exception that ended a job -> reason; "exec" before the start is a failed launch.
_REASONS: Final = {"cancel": "cancel", "timeout": "timeout", "node-failure": "node-failure", "exec": "lost"}
_NOTE: Final = 1000                 # characters of a message


def lost(why: str) -> JobStatus:
    """The status of a job of which nothing more will be known."""
    return JobStatus(JobState.FAILED, message=why, metadata={"reason": "lost"})


def final_status(managed: ManagedJob, native_id: str, cores: int = 1) -> JobStatus:
    """The final status of a job that is INACTIVE. cores: of each rank.

    Where ranks were released before the end, metadata has ``spans``: [processors, seconds] of every part.
    """
    result = managed.result
    assert result is not None
    times: dict[str, float] = {}
    for (name, _), when in zip(managed.events, managed.times, strict=True):
        times.setdefault(name, when)
    metadata: dict[str, Any] = {"native_id": native_id}
    end = times.get("finish", times["clean"])
    if "start" in times:
        metadata |= {"start_time": times["start"], "end_time": end, "wall_seconds": max(0.0, end - times["start"]),
                     "processors": managed.ranks.count * cores, "node_count": managed.ranks.count}
        spans = _spans(managed, cores, times["start"], end)
        if len(spans) > 1:
            metadata["spans"] = spans
    metadata |= managed.usage
    if managed.usage.get("nodes"):
        metadata["node_count"] = len(metadata["nodes"])
    code = _exit_code(managed, metadata)
    reason = _reason(managed, result, "start" in times, metadata)
    if reason is not None:
        metadata["reason"] = reason
    metadata["sources"] = dict.fromkeys(metadata, "status") | dict.fromkeys(managed.usage, "measured")
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
    held_ranks, spans = managed.ranks, []
    for (name, context), when in zip(managed.events, managed.times, strict=True):
        if name != "release" or context is None or context["final"]:
            continue
        try:
            freed = held_ranks & Idset.parse(context["ranks"])
        except LexicalError:
            continue            # the manager takes what it gets
        if freed:
            held_ranks -= freed
            spans.append([freed.count * cores, max(0.0, when - start)])
    if held_ranks:
        spans.append([held_ranks.count * cores, max(0.0, end - start)])
    return spans[::-1]
