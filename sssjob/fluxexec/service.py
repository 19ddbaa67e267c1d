"""The execution service: takes the job manager's requests, has a runner run the jobs, answers.

One ``Service`` is one connection. The runner outlives it: when the job manager goes away the shells go on, and a new
Service with the same runner finds them when their jobs are started again with reattach. All of it happens in the
loop's thread.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

from sssjob.fluxexec.loop import Loop, Timer
from sssjob.fluxexec.machine import JobMachine, Phase
from sssjob.fluxexec.messages import (
    EXCEPTION,
    HELLO,
    Event,
    Message,
    Request,
    Response,
    Start,
    integer,
    members,
    read_start,
)
from sssjob.fluxexec.rules import StreamRules
from sssjob.fluxexec.transport import Channel
from sssjob.fluxexec.usage import together
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, ProtocolError
from sssjob.lrm.idset import Idset

__all__ = ["Ended", "Lost", "NotStarted", "Report", "Runner", "Service", "State", "Up", "What"]

log = logging.getLogger("sssjob.fluxexec")


@dataclass(frozen=True, slots=True)
class Up:
    """A shell is up."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A shell has ended with a wait status; timed_out: because the executor's time limit was reached. usage: what was
    measured of it (``usage``)."""

    status: int
    timed_out: bool = False
    usage: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A shell could not be started."""

    note: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A shell was up and is gone; how it ended is not known."""

    note: str


What = Up | Ended | NotStarted | Lost
Report = Callable[[int, What], None]        # (number of the shell, what happened to it), in the loop's thread


class Runner(Protocol):
    """Runs the shells of jobs."""

    def start(self, start: Start, report: Report) -> Sequence[Idset | None]:
        """Begin to start the shells of a job; the ranks of each. Reports come later. Raises ProtocolError."""

    def find(self, start: Start, report: Report) -> Sequence[Idset | None] | None:
        """The shells that were started for a job earlier; what has happened to them is reported, later. None: none."""

    def terminate(self, job: int, *, force: bool = False) -> None:
        """End the shells of a job; force: they did not go when they were asked to."""

    def leave(self, job: int) -> None:
        """Do not report on a job any more; its shells go on."""

    def forget(self, job: int) -> None:
        """A job is over."""


class State(Enum):
    """Where the connection is."""

    UNREGISTERED = auto()
    HELLO_SENT = auto()
    REGISTERED = auto()
    DEAD = auto()


class Service:
    """name: what it registers as. broker: there is a Flux broker in between, which routes by name and event.

    partial: release ranks as their shells end. kill_s: seconds from SIGTERM to SIGKILL, repeated kill_times with
    longer and longer pauses. changed: told when the state has changed; ``why`` and ``refused`` then
    say why it is DEAD.
    """

    def __init__(self, loop: Loop, channel: Channel, runner: Runner, *, name: str = "sssjob-exec",
                 broker: bool = False, partial: bool = False, kill_s: float = 5.0, kill_times: int = 6,
                 limits: ExecLimits = EXEC_LIMITS, changed: Callable[[Service], None] | None = None) -> None:
        self.loop, self.channel, self.runner, self.name = loop, channel, runner, name
        self.broker, self.partial, self.limits = broker, partial, limits
        self.kill_s, self.kill_times = kill_s, kill_times
        self.changed = changed
        self.state = State.UNREGISTERED
        self.why = ""
        self.refused = False
        self.jobs: dict[int, _Job] = {}
        self._steps: list[Request] = []
        self._late: Timer | None = None
        channel.receive, channel.closed = self.receive, self._closed

    def begin(self) -> None:
        """Say hello."""
        named = {"service": self.name}
        self._steps = [Request("service.add", named, 1), Request("event.subscribe", {"topic": EXCEPTION}, 2)]
        if not self.broker:
            self._steps.clear()
        self._steps.append(Request(HELLO, named, 3))
        if not self.loop.virtual:       # whose time does not pass for others
            self._late = self.loop.at(self.loop.now() + self.limits.hello_seconds, self._unanswered)
        self._become(State.HELLO_SENT)
        self.channel.send(self._steps[0])

    def close(self, *, give_up: bool = False) -> None:
        """Leave. The shells go on; give_up: they are ended, and the job manager is told that the service is no more."""
        if self.state is State.DEAD:
            return
        for job in list(self.jobs.values()):
            if give_up:
                self.channel.send(job.request.answer(None, errno.ECANCELED, "the service ends"))
                self.runner.terminate(job.number)
            self._drop(job)
        self.channel.close()
        self._die("")

    def receive(self, message: Message) -> None:
        """Take a message of the job manager."""
        try:
            match message:
                case Response():
                    self._answered(message)
                case Event(topic=topic) if topic == EXCEPTION:
                    self._exception(members(message.payload, "the event"))
                case Request():
                    self._asked(message)
                case _:
                    return
        except ProtocolError as error:
            log.warning("%s ignored: %s", message.topic[:60], error)

    def _asked(self, request: Request) -> None:
        if request.topic == f"{self.name}.start":
            self._start(request)
        elif request.topic == f"{self.name}.expiration":
            self._conventional(request, self._expiration)
        else:
            self.channel.send(request.answer(None, errno.ENOSYS, "no such method"))

    def _conventional(self, request: Request, do: Callable[[dict[str, Any]], int]) -> None:
        try:
            code = do(members(request.payload, "the request"))
            self.channel.send(request.answer(None, code))
        except ProtocolError as error:
            self.channel.send(request.answer(None, errno.EPROTO, str(error)))

    def _answered(self, response: Response) -> None:
        if not self._steps or response.tag != self._steps[0].tag or response.topic != self._steps[0].topic:
            raise ProtocolError("nobody asked")
        self._steps.pop(0)
        if response.errnum:
            text = response.text or errno.errorcode.get(response.errnum, "an error")
            self.channel.close()
            self.refused = True
            self._die(f"{response.topic}: refused: {text} ({response.errnum})")
        elif self._steps:
            self.channel.send(self._steps[0])
        else:
            self._become(State.REGISTERED)

    def _unanswered(self) -> None:
        if self.state is State.HELLO_SENT:
            self.channel.close()
            self._die(str(ExecLimitError(f"{self._steps[0].topic}: no answer within {self.limits.hello_seconds:g} s",
                                         "hello_seconds")))

    def _start(self, request: Request) -> None:
        if self.state is not State.REGISTERED:
            raise ProtocolError("a start before the answer to hello")
        payload = members(request.payload, "the request")
        number, reattach = integer(payload, "id"), payload.get("reattach")
        running = self.jobs.get(number)
        if running is not None:
            self._again(running, request, reattach)
            return
        job = self.jobs[number] = _Job(self, request, number)
        try:
            if len(self.jobs) > self.limits.jobs:
                raise ExecLimitError("too many jobs", "jobs")
            start = read_start(request)
        except ProtocolError as error:
            job.refuse(str(error), reattach is True)
        else:
            job.begin(start)

    def _again(self, job: _Job, request: Request, reattach: object) -> None:
        """A second request for a job that has one: with reattach the manager has lost the first one."""
        if reattach is not True:
            raise ProtocolError(f"second start of job {job.number}")
        job.attach(request)

    def _expiration(self, payload: dict[str, Any]) -> int:
        job = self.jobs.get(integer(payload, "id"))
        when = payload.get("expiration")
        if isinstance(when, bool) or not isinstance(when, int | float) or not 0 <= when < 1 << 40:
            raise ProtocolError("expiration is no time")
        if job is None:
            return errno.ENOENT
        job.expire_at(float(when))
        return 0

    def _exception(self, payload: dict[str, Any]) -> None:
        job = self.jobs.get(integer(payload, "id"))
        severity = integer(payload, "severity", least=-(1 << 31), bits=31)
        wait_status = integer(payload, "wait_status", -1, least=-1, bits=31)
        if job is not None:
            if severity == 0:
                job.rules.canceled()
            job.machine.exception(severity, None if wait_status < 0 else wait_status)

    def _closed(self, why: str) -> None:
        for job in list(self.jobs.values()):
            self._drop(job)
        self._die(why or "the job manager went away")

    def _drop(self, job: _Job) -> None:
        """Have nothing to do with a job any more; its shells go on."""
        job.stop_timers()
        del self.jobs[job.number]
        self.runner.leave(job.number)

    def _die(self, why: str) -> None:
        self.why = why
        self._become(State.DEAD)

    def _become(self, state: State) -> None:
        self.state = state
        if state is not State.HELLO_SENT and self._late is not None:
            self._late.cancel()
        if self.changed is not None:
            self.changed(self)


class _Job:
    """A job: its machine, its timers, and the request that its responses answer."""

    machine: JobMachine
    rules: StreamRules

    def __init__(self, service: Service, request: Request, number: int) -> None:
        self.service, self.request, self.number = service, request, number
        self.expiration = 0.0
        self.used: list[Mapping[str, Any]] = []     # by shells that have ended
        self._expires: Timer | None = None
        self._kills: Timer | None = None
        self._killed = 0

    def refuse(self, note: str, reattach: bool) -> None:
        """The request is none, or one too many."""
        self._set_up(None, reattach)
        self.machine.failed(note)

    def begin(self, start: Start) -> None:
        """Start the job, or find it.

        A connection that broke before ``start`` was told leaves shells that the manager takes for not started: they are
        not started twice.
        """
        resources, runner = start.resources, self.service.runner
        self._set_up(None if resources is None else resources.ranks, start.reattach)
        self.expiration = 0.0 if resources is None else resources.expiration
        shells = runner.find(start, self._report)
        if shells is None and start.reattach:
            self.machine.failed("the job's processes were not found")
            return
        try:
            self.machine.launching(runner.start(start, self._report) if shells is None else shells)
        except ProtocolError as error:
            self.machine.failed(str(error))

    def _set_up(self, ranks: Idset | None, reattach: bool) -> None:
        self.machine = JobMachine(self, ranks, reattach=reattach, partial=self.service.partial)
        self.rules = StreamRules(ranks, reattach=reattach)

    def attach(self, request: Request) -> None:
        """Answer a new request from now on."""
        self.request, before = request, self.rules
        self.rules = StreamRules(before.ranks, reattach=True)
        if self.machine.again():
            self.rules.freed, self.rules.fatal = before.freed, before.fatal
            self.rules.seen |= before.seen & {"canceled"}
        else:
            self.rules = before

    def respond(self, kind: str, data: dict[str, Any]) -> None:
        """Send a response."""
        if kind == "finish" and not self.service.broker and (usage := together(self.used)):
            data = {**data, "usage": usage}
        wrong = self.rules.broken(kind, data)
        if wrong is not None:
            log.error("job %d: not sent: %s", self.number, wrong)
            return
        self.service.channel.send(self.request.answer({"id": self.number, "type": kind, "data": data}))

    def running(self) -> None:
        """Keep the time limit."""
        self.expire_at(self.expiration)

    def expire_at(self, when: float) -> None:
        """Let the time be up then; 0: never."""
        self.expiration = when
        if self._expires is not None:
            self._expires.cancel()
        if when and self.machine.phase is Phase.RUNNING:
            self._expires = self.service.loop.at(when, self.machine.expired)

    def terminate(self) -> None:
        """End the shells: ask, then insist, with pauses that double."""
        self.service.runner.terminate(self.number)
        if self._kills is None:
            self._kill_later()

    def _kill_later(self) -> None:
        loop, pause = self.service.loop, self.service.kill_s * (1 << self._killed)
        self._kills = loop.at(loop.now() + pause, self._kill)

    def _kill(self) -> None:
        if self._killed == self.service.kill_times:
            log.error("job %d: its processes do not end", self.number)
            self.machine.kill_limit()
            return
        self._killed += 1
        self.service.runner.terminate(self.number, force=True)
        self._kill_later()

    def clean(self) -> None:
        """There is nothing to tidy up: a runner tells of the end when everything is gone."""
        self.machine.cleaned()

    def done(self) -> None:
        """Forget the job. It and its machine name each other: what is let go of needs no collector."""
        self.stop_timers()
        self.service.jobs.pop(self.number, None)
        self.service.runner.forget(self.number)
        del self.machine

    def stop_timers(self) -> None:
        """Nothing is to happen later."""
        for timer in (self._expires, self._kills):
            if timer is not None:
                timer.cancel()

    def _report(self, shell: int, what: What) -> None:
        if self.service.jobs.get(self.number) is not self:
            return
        match what:
            case Up():
                self.machine.up(shell)
            case Ended():
                if what.usage and shell in self.machine.shells:
                    self.used.append(what.usage)
                self.machine.exited(shell, what.status, timed_out=what.timed_out)
            case NotStarted():
                self.machine.not_started(shell, what.note)
            case Lost():
                self.machine.lost(shell, what.note)
