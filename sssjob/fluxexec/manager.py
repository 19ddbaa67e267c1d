"""The job manager's side: gives jobs ranks, has them run by an execution service, keeps their events and results.

A stand-in for the Flux job manager as far as execution goes: no priorities, no dependencies, whole ranks first come
first served. What a service sends is taken as flux-core 0.88 takes it: what is malformed, unknown or late is logged
and has no effect. Sources: RFC 32; RFC 21 for states and events; the profiles are the readings of three times.
"""

from __future__ import annotations

import errno
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from sssjob.errors import UsageError
from sssjob.fluxexec.messages import EXCEPTION, HELLO, Event, Message, Request, Response, Start, integer, members
from sssjob.fluxexec.rules import PROFILES
from sssjob.fluxexec.transport import Channel
from sssjob.fluxexec.usage import read_usage
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ProtocolError
from sssjob.lrm.flux.jobspec import Jobspec, Resources, read_jobspec, read_r, write_r
from sssjob.lrm.idset import Idset

__all__ = ["PROFILES", "JobState", "ManagedJob", "Manager", "Result"]

log = logging.getLogger("sssjob.fluxexec")

_FATAL = 0


class JobState(IntEnum):
    """RFC 21 states, with the numbers of flux-core."""

    SCHED = 8
    RUN = 16
    CLEANUP = 32
    INACTIVE = 64


class Result(IntEnum):
    """RFC 21 results, with the numbers of flux-core."""

    COMPLETED = 1
    FAILED = 2
    CANCELED = 4
    TIMEOUT = 8


_RESULTS = {"cancel": Result.CANCELED, "timeout": Result.TIMEOUT}


@dataclass(slots=True)
class ManagedJob:
    """A job. wanted: what was read in its jobspec; nodes: ranks. r and resources: what it was given, as R and as read.
    events: (name, context) in order; times: when, of each. wait_status: of the last finish."""

    id: int
    userid: int
    jobspec: dict[str, Any]
    wanted: Jobspec
    nodes: int
    state: JobState = JobState.SCHED
    ranks: Idset = field(default_factory=Idset)
    held: Idset = field(default_factory=Idset)      # of these, what was free when it got them
    r: dict[str, Any] | None = None
    resources: Resources | None = None
    outstanding: bool = False           # a start request that was not answered to the end
    started: bool = False
    events: list[tuple[str, dict[str, Any] | None]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    wait_status: int | None = None
    success: bool = False
    end: str | None = None              # type of the fatal exception that ended it; "" for finish
    exception: dict[str, Any] | None = None     # the most severe one
    usage: dict[str, Any] = field(default_factory=dict)     # what the service has measured

    @property
    def result(self) -> Result | None:
        """How it went; None while it is not over."""
        if self.state is not JobState.INACTIVE:
            return None
        if self.success:
            return Result.COMPLETED
        return _RESULTS.get(self.end or "", Result.FAILED)

    def record(self) -> dict[str, Any]:
        """As ``flux jobs`` has it."""
        members: dict[str, Any] = {"state": int(self.state), "state_name": self.state.name}
        if self.result is not None:
            members |= {"result": int(self.result), "result_name": self.result.name}
        if self.wait_status is not None:
            members["waitstatus"] = self.wait_status
        members |= {"success": self.success, "exception_occurred": self.exception is not None}
        if self.exception is not None:
            members |= {f"exception_{key}": self.exception[key] for key in ("type", "severity", "note")}
        return members


@dataclass(slots=True)
class _Service:
    name: str
    channel: Channel


class Manager:
    """ranks: what there is to give away, with so many cores each. now: seconds since the epoch.

    profile: rfc32-2022 sends no R and knows no response type reattached; rfc32-2026 lets a hello always take over, the
    two others refuse one while starts are outstanding. changed: told of every event (job, name). greeted: told the name
    of a service that has said hello.
    """

    def __init__(self, ranks: Idset, now: Callable[[], float], *, cores: int = 1, profile: str = "flux-core",
                 changed: Callable[[ManagedJob, str], None] | None = None,
                 greeted: Callable[[str], None] | None = None) -> None:
        if profile not in PROFILES:
            raise UsageError(f"profile {profile!r} is not known (known: {', '.join(PROFILES)})")
        self.all, self.free, self.cores, self.now, self.profile = ranks, ranks, cores, now, profile
        self.changed, self.greeted = changed, greeted
        self.jobs: dict[int, ManagedJob] = {}
        self.service: _Service | None = None
        self._waiting: deque[ManagedJob] = deque()
        self._asked: dict[int, Callable[[Response], None]] = {}
        self._tag = 0
        self._channels: list[Channel] = []
        self._running: dict[int, ManagedJob] = {}       # not INACTIVE, and with ranks

    # Services

    def connect(self, channel: Channel) -> None:
        """Listen to a channel; whoever says hello there becomes the service."""
        self._channels.append(channel)
        channel.receive = lambda message: self.receive(channel, message)
        channel.closed = lambda why: self.disconnected(channel)

    def disconnected(self, channel: Channel) -> None:
        """A channel is gone, and its service with it."""
        if channel in self._channels:
            self._channels.remove(channel)
        if self.service is not None and self.service.channel is channel:
            self._teardown()

    def leave(self) -> None:
        """Close all channels; what runs goes on."""
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def receive(self, channel: Channel, message: Message) -> None:
        """Take a message from a service."""
        try:
            match message:
                case Request(topic=topic) if topic == HELLO:
                    channel.send(self._hello(channel, message))
                    self._send_starts()
                case Request():
                    channel.send(message.answer(None, errno.ENOSYS, "no such method"))
                case Response() if message.tag:
                    self._conventional(channel, message)
                case Response():
                    self._answered(channel, message)
        except ProtocolError as error:
            log.warning("%s ignored: %s", message.topic[:60], error)

    def _hello(self, channel: Channel, request: Request) -> Response:
        payload = request.payload
        if not isinstance(payload, dict) or not isinstance(payload.get("service"), str):
            return request.answer(None, errno.EPROTO, "the name of the service is missing")
        outstanding = any(job.outstanding for job in self._running.values())
        if self.service is not None and outstanding and self.profile != "rfc32-2026":
            return request.answer(None, errno.EINVAL, "jobs are outstanding at another service")
        if self.service is not None:
            self._teardown()
        self.service = _Service(payload["service"], channel)
        if self.greeted is not None:
            self.greeted(payload["service"])
        return request.answer()

    def _teardown(self) -> None:
        """The service is no more. Its jobs stay in RUN for the next one; those that only had to be released are."""
        self.service = None
        for job in list(self._running.values()):
            if job.outstanding:
                job.outstanding = False
                self._event(job, "debug.start-lost")
                if job.state is JobState.CLEANUP:
                    self._inactive(job)

    def _send_starts(self) -> None:
        for job in list(self._running.values()):
            self._send_start(job)

    def _send_start(self, job: ManagedJob) -> None:
        if self.service is None or job.state is not JobState.RUN or job.outstanding:
            return
        job.outstanding = True
        self._event(job, "debug.start-request")
        payload = {"id": job.id, "userid": job.userid, "jobspec": job.jobspec, "reattach": job.started}
        resources = None if self.profile == "rfc32-2022" else job.resources
        if resources is not None:
            payload["R"] = job.r
        read = Start(job.id, job.userid, job.started, job.wanted, resources)
        self.service.channel.send(Request(f"{self.service.name}.start", payload, read=read))

    # Jobs

    def submit(self, jobspec: dict[str, Any], *, userid: int = 0, job_id: int | None = None,
               fit: tuple[Jobspec, int] | None = None) -> ManagedJob:
        """Take a job; it starts as soon as there are ranks and a service. Raises JobspecError, UsageError.

        fit: what the method of this name has said of it.
        """
        request, nodes = self.fit(jobspec) if fit is None else fit
        number = len(self.jobs) + 1 if job_id is None else job_id
        if number in self.jobs:
            raise UsageError(f"job {number} is there already")
        job = self.jobs[number] = ManagedJob(number, userid, jobspec, request, nodes)
        self._waiting.append(job)
        self._schedule()
        return job

    def adopt(self, job_id: int, jobspec: dict[str, Any], r: dict[str, Any], started: float, *,
              userid: int = 0) -> ManagedJob:
        """Take over a job that another manager has had started; a service is asked for it with reattach.

        started: when, seconds since the epoch. It has the ranks of its R, whoever else has them here. Raises
        JobspecError, UsageError.
        """
        if job_id in self.jobs:
            raise UsageError(f"job {job_id} is there already")
        request, resources = read_jobspec(jobspec), read_r(r)
        ranks = resources.ranks
        job = self.jobs[job_id] = ManagedJob(job_id, userid, jobspec, request, ranks.count, JobState.RUN, ranks,
                                             ranks & self.free, r, resources, started=True)
        job.events, job.times = [("alloc", None), ("start", None)], [started, started]
        self.free -= job.held
        self._running[job_id] = job
        self._send_start(job)
        return job

    def fit(self, jobspec: dict[str, Any]) -> tuple[Jobspec, int]:
        """What a jobspec says, and the ranks that it needs. Raises JobspecError, ExecLimitError; UsageError when there
        are too few."""
        request = read_jobspec(jobspec)
        nodes = request.nodes or max(1, math.ceil(request.tasks * request.cores / self.cores))
        if nodes > self.all.count:
            raise UsageError(f"the job needs {nodes} ranks, there are {self.all.count}")
        if nodes > EXEC_LIMITS.ranks:
            raise ExecLimitError(f"the job needs {nodes} ranks", "ranks")
        return request, nodes

    def forget(self, job_id: int) -> None:
        """Keep no record of a job that is INACTIVE."""
        if self.jobs[job_id].state is JobState.INACTIVE:
            del self.jobs[job_id]

    def cancel(self, job_id: int, note: str = "") -> None:
        """End a job. Raises LookupError."""
        self.raise_exception(job_id, "cancel", _FATAL, note)

    def raise_exception(self, job_id: int, kind: str, severity: int, note: str = "",
                        wait_status: int | None = None) -> None:
        """Raise an exception on a job; the service is told. Raises LookupError."""
        job = self.jobs[job_id]
        if job.state is JobState.INACTIVE:
            return
        exception: dict[str, Any] = {"id": job_id, "type": kind, "severity": severity}
        if wait_status is not None:
            exception["wait_status"] = wait_status
        for channel in self._channels:
            channel.send(Event(EXCEPTION, exception))
        self._exception(job, kind, severity, note)

    def expire(self, job_id: int, expiration: float) -> None:
        """Change the time at which a job is to be over; a service that refuses gets an exception onto the job."""
        job = self.jobs[job_id]
        if job.r is not None and job.resources is not None:
            job.r["execution"]["expiration"] = expiration
            job.resources = replace(job.resources, expiration=expiration)
        if self.service is None or not job.outstanding:
            return
        self._tag += 1
        self._asked[self._tag] = lambda answer: self._expired(job, answer)
        self.service.channel.send(Request(f"{self.service.name}.expiration",
                                          {"id": job_id, "expiration": expiration}, self._tag))

    def _expired(self, job: ManagedJob, answer: Response) -> None:
        if answer.errnum and job.state is not JobState.INACTIVE:
            text = answer.text or errno.errorcode.get(answer.errnum, str(answer.errnum))
            self._exception(job, "exec", 1, f"expiration was not changed: {text}")

    def _schedule(self) -> None:
        while self._waiting:
            job = self._waiting[0]
            if job.state is JobState.SCHED and job.nodes > self.free.count:
                return
            self._waiting.popleft()
            if job.state is not JobState.SCHED:
                continue
            job.ranks = job.held = self.free.take(job.nodes)
            self.free -= job.ranks
            start, duration = self.now(), job.wanted.duration
            job.resources = Resources(job.ranks, start, start + duration if duration else 0.0)
            job.r = write_r(job.ranks, self.cores, start, job.resources.expiration)
            job.state = JobState.RUN
            self._running[job.id] = job
            self._event(job, "alloc")
            self._send_start(job)

    # Responses

    def _conventional(self, channel: Channel, response: Response) -> None:
        call = self._asked.pop(response.tag, None)
        if call is None or self.service is None or self.service.channel is not channel:
            raise ProtocolError("nobody asked")
        call(response)

    def _answered(self, channel: Channel, response: Response) -> None:
        service = self.service
        if service is None or channel is not service.channel or response.topic != f"{service.name}.start":
            raise ProtocolError("the response comes from no service, or too late")
        if response.errnum:
            log.warning("service %s has ended: %s", service.name, response.text or response.errnum)
            self._teardown()
            return
        payload = members(response.payload, "the response")
        job = self.jobs.get(integer(payload, "id"))
        if job is None or not job.outstanding:
            raise ProtocolError("no start request for this job is outstanding")
        data = members(payload.get("data"), "data")
        do = _RESPONSES.get(payload["type"]) if isinstance(payload.get("type"), str) else None
        if do is None or (do is Manager._reattached and self.profile == "rfc32-2022"):
            raise ProtocolError(f"unknown response type {payload.get('type')!a:.60}")
        do(self, job, data)

    def _start(self, job: ManagedJob, data: dict[str, Any]) -> None:
        if job.started:
            log.warning("job %d started again", job.id)
            return
        job.started = True
        self._event(job, "start")

    def _reattached(self, job: ManagedJob, data: dict[str, Any]) -> None:
        self._event(job, "debug.exec-reattach-finish")

    def _finish(self, job: ManagedJob, data: dict[str, Any]) -> None:
        status = integer(data, "status", least=-(1 << 31), bits=31)
        job.wait_status = status
        if job.state is JobState.RUN:
            job.end = ""
            job.state = JobState.CLEANUP
        job.success |= job.end == "" and status == 0
        try:
            job.usage = read_usage(data.get("usage"))
        except ProtocolError as error:
            log.warning("job %d: %s", job.id, error)
        self._event(job, "finish", {"status": status})

    def _responded_exception(self, job: ManagedJob, data: dict[str, Any]) -> None:
        severity = integer(data, "severity", least=-(1 << 31), bits=31)
        kind, note = data.get("type"), data.get("note")
        if not isinstance(kind, str) or not (isinstance(note, str) or (note is None and self.profile != "flux-core")):
            raise ProtocolError("an exception without type or note")
        self._exception(job, kind, severity, note or "")

    def _exception(self, job: ManagedJob, kind: str, severity: int, note: str) -> None:
        context = {"type": kind, "severity": severity, "userid": 0, "note": note}
        if job.exception is None or severity < job.exception["severity"]:
            job.exception = context
        self._event(job, "exception", context)
        if severity != _FATAL:
            return
        if job.state is JobState.SCHED:
            job.end, job.state = kind, JobState.CLEANUP
            self._inactive(job)
        elif job.state is JobState.RUN:
            job.end, job.state = kind, JobState.CLEANUP
            if not job.outstanding:
                self._inactive(job)

    def _release(self, job: ManagedJob, data: dict[str, Any]) -> None:
        ranks, final = data.get("ranks"), data.get("final")
        if not isinstance(ranks, str) or not isinstance(final, bool):
            raise ProtocolError("a release without ranks or final")
        self._event(job, "release", {"ranks": ranks, "final": final})
        if final:
            job.outstanding = False
            if job.state is JobState.CLEANUP:
                self._inactive(job)
            else:
                self._send_start(job)       # it is still to run

    def _inactive(self, job: ManagedJob) -> None:
        if self._running.pop(job.id, None) is not None:
            self._event(job, "free")
            self.free |= job.held
        job.state = JobState.INACTIVE
        self._event(job, "clean")
        self._schedule()

    def _event(self, job: ManagedJob, name: str, context: dict[str, Any] | None = None) -> None:
        job.events.append((name, context))
        job.times.append(self.now())
        if self.changed is not None:
            self.changed(job, name)


_RESPONSES: dict[str, Callable[[Manager, ManagedJob, dict[str, Any]], None]] = {
    "start": Manager._start, "reattached": Manager._reattached, "finish": Manager._finish,
    "release": Manager._release, "exception": Manager._responded_exception,
}
