"""A recorded stream of messages held against the rules: which line breaks which, and what flux-core would do.

Lines are messages as ``Lines`` sends them, in both directions or the service's alone; a response may also stand as its
bare payload, ``{"id": 1, "type": "start", "data": {}}``. One line is looked at after the other; what is kept of a job
goes with its final release.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import IO, Any, Final

from sssjob.fluxexec.messages import EXCEPTION, HELLO, Event, Request, Response, from_line, integer, loads, members
from sssjob.fluxexec.rules import RULES, Profile, StreamRules, WireRule, word
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimits, ProtocolError
from sssjob.lrm.flux.jobspec import read_r
from sssjob.lrm.idset import Idset

__all__ = ["ALL_RULES", "StreamCheck", "Violation"]

_WAITING: Final = 100       # requests of one topic and tag, of as many connections, that are remembered
_DROPPED: Final = "logs an error and drops the message"
_ROWS: Final = (
    WireRule("no-message", "ends the connection"), WireRule("too-long", "ends the connection"),
    WireRule("unknown-job", "logs an error and ignores the response"),
    WireRule("no-service", "logs the response and drops it: it came too late, or from nobody"),
    WireRule("no-id", "logs an error and ignores the response"),
    WireRule("errnum", "takes the service for ended: its jobs stay in RUN, nothing is sent until the next hello", True),
    WireRule("hello-form", "answers EPROTO (71)"),
    WireRule("hello-refused", "answers EINVAL (22) while the service is connected"),
    WireRule("start-before-hello", "never sends one"),
    WireRule("start-form", "never sends one; its own service fails the job"),
    WireRule("start-tag", "sends 0", True),
    WireRule("doubled-start", "its own service answers EEXIST, which ends the whole service", True),
    WireRule("expiration-form", "never sends one"), WireRule("nobody-asked", _DROPPED),
    WireRule("too-many-jobs", "has no limit; here the job is not looked at"),
)
#: Id -> rule, those of streams and those of what is around them.
ALL_RULES: Final = MappingProxyType({**RULES, **{rule.id: rule for rule in _ROWS}})


@dataclass(frozen=True, slots=True)
class Violation:
    """line: from 1. job: None where none is meant."""

    line: int
    rule: WireRule
    text: str
    job: int | None = None

    def __str__(self) -> str:
        job = "" if self.job is None else f"job {self.job}: "
        return f"{self.line}: {self.rule.id}: {job}{self.text}; flux-core {self.rule.effect}"

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"line": self.line, "rule": self.rule.id, "job": self.job, "message": self.text,
                "flux_core": self.rule.effect}


@dataclass(slots=True)
class StreamCheck:
    """lines: how many were looked at. open: jobs without a final release."""

    profile: Profile = "flux-core"
    limits: ExecLimits = EXEC_LIMITS
    lines: int = 0
    service: str | None = None
    open: dict[int, StreamRules] = field(default_factory=dict)
    _over: OrderedDict[int, None] = field(default_factory=OrderedDict)      # the last jobs that were released
    _requests: bool = False             # the stream has the manager's side too
    _asked: OrderedDict[tuple[str, int], list[str | None]] = field(default_factory=OrderedDict)

    def check(self, stream: IO[bytes]) -> Iterator[Violation]:
        """All violations of a stream, as they come."""
        most = self.limits.line_bytes
        while line := stream.readline(most + 1):
            self.lines += 1
            if len(line) > most:
                yield self._violation("too-long", f"a line of more than {most} bytes")
                while line and not line.endswith(b"\n"):
                    line = stream.readline(1 << 20)
            elif line.strip():
                yield from self.look(line)

    def look(self, line: bytes) -> Iterator[Violation]:
        """The violations of one line."""
        try:
            data = members(loads(line), "the line")
            message = None if "m" not in data and "type" in data else from_line(line)
        except ProtocolError as error:
            yield self._violation("no-message", str(error))
            return
        if "m" not in data and "type" in data:
            yield from self._response(data)
            return
        match message:
            case Request(topic=topic) if topic == HELLO:
                yield from self._said_hello(message)
            case Request(topic=topic) if topic.endswith(".start"):
                yield from self._start(message)
            case Request(topic=topic) if topic.endswith(".expiration"):
                yield from self._expiration(message)
            case Request():
                self._remember(message)
            case Response() if message.tag:
                yield from self._conventional(message)
            case Response():
                yield from self._streamed(message)
            case Event(topic=topic) if topic == EXCEPTION:
                self._exception(message)

    def _violation(self, rule: str, text: str, job: int | None = None) -> Violation:
        return Violation(self.lines, ALL_RULES[rule], text, job)

    # Between service and manager

    def _remember(self, request: Request, service: str | None = None) -> None:
        """That a request wants an answer; service: whose hello it is. Tags are those of a connection, of which several
        may stand in one stream."""
        waiting = self._asked.setdefault((request.topic, request.tag), [])
        waiting.append(service)
        del waiting[:-_WAITING]
        while len(self._asked) > self.limits.jobs:
            self._asked.popitem(last=False)

    def _said_hello(self, request: Request) -> Iterator[Violation]:
        """A service says hello; whether it may is in the answer, where that is in the stream."""
        payload = request.payload
        if not isinstance(payload, dict) or not isinstance(payload.get("service"), str):
            self._remember(request)
            yield self._violation("hello-form", "hello without service (str)")
            return
        self._remember(request, payload["service"])
        if self._requests:
            return
        if self.open and self.profile != "rfc32-2026":
            yield self._violation("hello-refused", self._refused(payload["service"]))
        self._become(payload["service"])

    def _refused(self, service: str) -> str:
        return f"hello of {service!a:.60} while {len(self.open)} jobs are outstanding"

    def _become(self, service: str | None) -> None:
        """Another service, or none: what the one before was asked is no longer outstanding."""
        self.open.clear()
        self.service = service

    def _conventional(self, response: Response) -> Iterator[Violation]:
        if (response.topic, response.tag) not in self._asked:
            if self._requests or self._asked:
                yield self._violation("nobody-asked", f"a response to {response.topic!a:.60} {response.tag}")
            return
        service = self._answered(response)
        if service is None:
            return
        self._requests = True
        if not response.errnum:
            self._become(service)
        elif self.open:
            yield self._violation("hello-refused", self._refused(service))

    def _answered(self, response: Response) -> str | None:
        """The service whose hello is answered; None for another request."""
        waiting = self._asked[response.topic, response.tag]
        service = waiting.pop(0)
        if not waiting:
            del self._asked[response.topic, response.tag]
        return service

    def _start(self, request: Request) -> Iterator[Violation]:
        self._requests = True
        service = request.topic.removesuffix(".start")
        if self.service != service:
            yield self._violation("start-before-hello", f"a start request for {service!a:.60}, not the service")
            self._become(service)
        if request.tag:
            yield self._violation("start-tag", f"a start request with tag {request.tag}")
        payload = request.payload if isinstance(request.payload, dict) else {}
        try:
            number = integer(payload, "id")
            ranks = self._request(payload)
        except ProtocolError as error:
            yield self._violation("start-form", str(error))
            return
        reattach = payload["reattach"]
        if number in self.open and not reattach:
            yield self._violation("doubled-start", "a second start request", number)
            return
        yield from self._opened(number, ranks, reattach)

    def _request(self, payload: dict[str, Any]) -> Idset | None:
        """The ranks of a start request. Raises ProtocolError."""
        integer(payload, "userid", bits=32)
        members(payload.get("jobspec"), "jobspec")
        if not isinstance(payload.get("reattach"), bool):
            raise ProtocolError("reattach is not true or false")
        if payload.get("R") is None:
            if self.profile == "rfc32-2022":
                return None
            raise ProtocolError("a start request without R")
        return read_r(payload["R"]).ranks

    def _opened(self, number: int, ranks: Idset | None, reattach: bool) -> Iterator[Violation]:
        if len(self.open) >= self.limits.jobs:
            yield self._violation("too-many-jobs", f"more than {self.limits.jobs} jobs are outstanding", number)
            return
        self._over.pop(number, None)
        self.open[number] = StreamRules(ranks, reattach=reattach, profile=self.profile)

    def _expiration(self, request: Request) -> Iterator[Violation]:
        self._remember(request)
        payload = request.payload if isinstance(request.payload, dict) else {}
        when = payload.get("expiration")
        try:
            integer(payload, "id")
            if isinstance(when, bool) or not isinstance(when, int | float) or when < 0:
                raise ProtocolError("expiration is no time")
        except ProtocolError as error:
            yield self._violation("expiration-form", str(error))

    def _exception(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, dict) and payload.get("severity") == 0 and isinstance(payload.get("id"), int):
            rules = self.open.get(payload["id"])
            if rules is not None:
                rules.canceled()

    # Responses to start requests

    def _streamed(self, response: Response) -> Iterator[Violation]:
        service = response.topic.removesuffix(".start")
        if service == response.topic:
            return
        if self._requests and service != self.service:
            yield self._violation("no-service", f"a response of {service!a:.60}, which is not the service")
        elif response.errnum:
            word = errno.errorcode.get(response.errnum, str(response.errnum))
            if response.errnum != errno.ECANCELED:
                yield self._violation("errnum", f"{word} in answer to a start request")
            self._become(None)
        elif not isinstance(response.payload, dict):
            yield self._violation("no-id", "a response without payload")
        else:
            yield from self._response(response.payload)

    def _response(self, payload: dict[str, Any]) -> Iterator[Violation]:
        try:
            number = integer(payload, "id")
        except ProtocolError as error:
            yield self._violation("no-id", str(error))
            return
        kind, data = payload.get("type"), payload.get("data")
        rules = self.open.get(number)
        if rules is None and number in self._over:
            yield self._violation("after-final", f"{word(kind)} after the final release", number)
            return
        if rules is None and not self._requests:
            yield from self._opened(number, None, kind == "reattached")     # the service's side alone
            rules = self.open.get(number)
        if rules is None:
            yield self._violation("unknown-job", "a response without a start request", number)
            return
        broken = rules.broken(kind, data)
        if broken is not None:
            yield Violation(self.lines, broken.rule, broken.text, number)
            if broken.rule.taken:
                rules.take(kind, data)
        if rules.ended:
            self._released(number)

    def _released(self, number: int) -> None:
        del self.open[number]
        self._over[number] = None
        if len(self._over) > self.limits.jobs:
            self._over.popitem(last=False)

