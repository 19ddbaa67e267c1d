"""A start request: what its payload says. Sources: RFC 32 (Start Request), RFC 14 and 20 for what is in it."""

from __future__ import annotations

from dataclasses import dataclass

from sssjob.fluxexec.messages import Request, integer, members
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.jobspec import Jobspec, Resources, read_jobspec, read_r

__all__ = ["Start", "read_start"]


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
