"""The messages of the Flux job execution protocol, and how they look as JSON Lines.

One object a line: ``{"m":"req","t":"job-manager.exec-hello","tag":1,"p":{"service":"job-exec"}}``,
``{"m":"resp","t":...,"tag":1,"e":0,"p":{...}}`` (e other than 0: an error, es its text) and
``{"m":"event","t":"job-exception","p":{...}}``. Source: RFC 32 for topics and payloads, RFC 6 for tag and errnum;
the lines are our own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.jobspec import Jobspec, Resources, read_jobspec, read_r

__all__ = [
    "EXCEPTION", "HELLO", "Event", "Message", "Request", "Response", "Start", "from_line", "integer", "members",
    "read_start", "to_line",
]

HELLO = "job-manager.exec-hello"
EXCEPTION = "job-exception"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. tag: that of the request, 0 for start. errnum: 0, or an errno; text: what it says. routes: as in
    Request."""

    topic: str
    payload: object = None
    tag: int = 0
    errnum: int = 0
    text: str | None = None
    routes: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request. routes: the way back, only where a broker stands between. read: what the sender has read in the
    payload, between two objects of one process; nothing that comes in as bytes has it."""

    topic: str
    payload: object = None
    tag: int = 0
    routes: tuple[bytes, ...] = ()
    read: object = field(default=None, compare=False, repr=False)

    def answer(self, payload: object = None, errnum: int = 0, text: str | None = None) -> Response:
        """A response to it."""
        return Response(self.topic, payload, self.tag, errnum, text, self.routes)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that is told to everybody."""

    topic: str
    payload: object = None


Message = Request | Response | Event


def to_line(message: Message) -> bytes:
    """A message as a line."""
    header: dict[str, Any]
    match message:
        case Request():
            header = {"m": "req", "t": message.topic, "tag": message.tag}
        case Response():
            header = {"m": "resp", "t": message.topic, "tag": message.tag, "e": message.errnum}
            if message.text is not None:
                header["es"] = message.text
        case Event():
            header = {"m": "event", "t": message.topic}
    if message.payload is not None:
        header["p"] = message.payload
    return json.dumps(header, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Message | None:
    """The message in a line; None for a kind that is not known. Raises ProtocolError."""
    data = members(loads(line), "a message")
    topic, payload = data.get("t"), data.get("p")
    if data.get("m") not in ("req", "resp", "event"):
        return None
    if not isinstance(topic, str):
        raise ProtocolError("a message without topic")
    tag, errnum, text = integer(data, "tag", 0, 0, 32), integer(data, "e", 0, 0, 31), data.get("es")
    if text is not None and not isinstance(text, str):
        raise ProtocolError("es is no text")
    match data["m"]:
        case "req":
            return Request(topic, payload, tag)
        case "resp":
            return Response(topic, payload, tag, errnum, text)
        case _:
            return Event(topic, payload)


def loads(text: bytes) -> object:
    """What a JSON text says; raises ProtocolError for one that is none, NaN and Infinity too."""
    try:
        return json.loads(text.decode(), parse_constant=_constant)
    except RecursionError:
        raise ProtocolError("JSON that is nested too deep") from None
    except ValueError as error:
        raise ProtocolError(f"no JSON: {str(error)[:200]}") from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def members(value: object, what: str) -> dict[str, Any]:
    """value, if it is an object. Raises ProtocolError."""
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} is no object")
    return value


def integer(data: dict[str, Any], key: str, default: int | None = None, least: int = 0, bits: int = 63) -> int:
    """A whole number of at most so many bits. Raises ProtocolError; so it does when there is none and no default."""
    value = data.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << bits:
        raise ProtocolError(f"{key} is {'missing' if value is None else 'no whole number in range'}")
    return value


# A start request: what its payload says. Sources: RFC 32 (Start Request), RFC 14 and 20 for what is in it.

@dataclass(frozen=True, slots=True)
class Start:
    """resources: None where the request has no R (before 2023)."""

    id: int
    userid: int
    reattach: bool
    jobspec: Jobspec
    resources: Resources | None


def read_start(request: Request) -> Start:
    """A start request. What a job manager in this process has read itself is not read again. Raises ProtocolError."""
    if isinstance(request.read, Start):
        return request.read
    payload = members(request.payload, "the request")
    reattach = payload.get("reattach")
    if not isinstance(reattach, bool):
        raise ProtocolError("reattach is not true or false")
    resources = None if payload.get("R") is None else read_r(payload["R"])
    return Start(integer(payload, "id"), integer(payload, "userid", bits=32), reattach,
                 read_jobspec(payload.get("jobspec")), resources)
