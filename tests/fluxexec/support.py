"""A service, its channel and its runner, seen from the job manager's side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import EXCEPTION, Event, Message, Request, Response, Start
from sssjob.fluxexec.service import Ended, Lost, NotStarted, Report, Runner, Service, Up, What
from sssjob.fluxexec.transport import End, pair
from sssjob.lrm.flux.jobspec import write_r
from sssjob.lrm.idset import Idset

FIXTURES = Path(__file__).parent / "fixtures" / "flux-core-0.88.0"


def vectors(name: str) -> list[Any]:
    """The recorded vectors of one kind, without quirks."""
    return [v for v in json.loads((FIXTURES / f"{name}.json").read_text())["vectors"] if not v.get("quirk")]


def jobspec(*command: str, nodes: int | None = None, slots: int = 1, duration: float = 0,
            **attributes: Any) -> dict[str, Any]:
    """A jobspec as the job manager sends it."""
    inside: dict[str, Any] = {"type": "slot", "count": slots, "with": [{"type": "core", "count": 1}], "label": "task"}
    if nodes is not None:
        inside = {"type": "node", "count": nodes, "with": [inside]}
    return {"version": 1, "resources": [inside],
            "tasks": [{"command": list(command or ("true",)), "slot": "task", "count": {"per_slot": 1}}],
            "attributes": {"system": {"duration": duration, **attributes}}}


def start(number: int = 1, *, ranks: str | None = "0", reattach: bool = False, spec: Any = None,
          expiration: float = 0.0, **more: Any) -> Request:
    """A start request to job-exec."""
    payload: dict[str, Any] = {"id": number, "userid": 100, "jobspec": jobspec() if spec is None else spec,
                               "reattach": reattach}
    if ranks is not None:
        payload["R"] = write_r(Idset.parse(ranks), expiration=expiration)
    return Request("job-exec.start", {**payload, **more})


def exception(number: int = 1, severity: int = 0, kind: str = "cancel", **more: Any) -> Event:
    """The event that tells of an exception."""
    return Event(EXCEPTION, {"id": number, "type": kind, "severity": severity, **more})


class ByHand:
    """A runner whose shells do what a test says."""

    def __init__(self) -> None:
        self.reports: dict[int, Report] = {}
        self.shells: dict[int, list[Idset | None]] = {}
        self.terminated: list[tuple[int, bool]] = []
        self.known: set[int] = set()            # jobs of an earlier service
        self.split = True

    def start(self, start: Start, report: Report) -> Sequence[Idset | None]:
        self.reports[start.id] = report
        ranks = None if start.resources is None else start.resources.ranks
        self.shells[start.id] = [ranks] if ranks is None or not self.split else [Idset.of([n]) for n in ranks]
        return self.shells[start.id]

    def find(self, start: Start, report: Report) -> Sequence[Idset | None] | None:
        return self.start(start, report) if start.id in self.known else None

    def terminate(self, job: int, *, force: bool = False) -> None:
        self.terminated.append((job, force))

    def leave(self, job: int) -> None:
        self.known.add(job)

    def forget(self, job: int) -> None:
        self.reports.pop(job, None)
        self.shells.pop(job, None)
        self.known.discard(job)

    def tell(self, what: What, shell: int = 0, job: int = 1) -> None:
        """Have something happen to a shell."""
        report = self.reports.get(job)
        if report is not None:
            report(shell, what)


class Peer:
    """The job manager's end: what a service named job-exec answers."""

    def __init__(self, runner: Runner | None = None, *, registered: bool = True, **options: Any) -> None:
        self.loop = Loop(virtual=True, start=1000.0)
        self.hand = ByHand()
        self.end: End
        self.got: list[Message] = []
        self.options = options
        self.runner: Runner = self.hand if runner is None else runner
        self.service = self.join(registered)

    def join(self, registered: bool = True) -> Service:
        """A new service takes over the same runner."""
        self.end, theirs = pair(self.loop)
        self.end.receive = self.got.append
        self.service = Service(self.loop, theirs, self.runner, name="job-exec", **self.options)
        self.service.begin()
        self.loop.soon(lambda: None)
        self.turn()
        if registered:
            hello = self.got.pop()
            assert isinstance(hello, Request)
            self.say(hello.answer())
        return self.service

    def turn(self) -> None:
        """Let everything be done that is due now."""
        while self.loop._calls:
            self.loop._calls.popleft()()

    def say(self, *messages: Message) -> None:
        """Send messages and have them taken."""
        for message in messages:
            self.end.send(message)
        self.turn()

    def tell(self, what: What, shell: int = 0, job: int = 1) -> None:
        """Have something happen to a shell."""
        self.hand.tell(what, shell, job)
        self.turn()

    def answers(self, job: int = 1) -> list[tuple[str, Any]]:
        """(type, data) of the responses for a job since the last call."""
        found = [(m.payload["type"], m.payload["data"]) for m in self.got
                 if isinstance(m, Response) and isinstance(m.payload, dict) and m.payload["id"] == job]
        self.got.clear()
        return found


UP, OK = Up(), Ended(0)
__all__ = ["FIXTURES", "OK", "UP", "ByHand", "Ended", "Lost", "NotStarted", "Peer", "exception", "jobspec", "start",
           "vectors"]
