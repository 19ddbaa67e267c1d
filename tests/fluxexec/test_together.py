"""Manager and service against each other in random orders, the page's example, and the checker of streams."""

from __future__ import annotations

import contextlib
import gc
import io
import random
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.fluxexec import manager as manager_module
from sssjob.fluxexec import messages as messages_module
from sssjob.fluxexec import service as service_module
from sssjob.fluxexec.check import StreamCheck
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import JobState, Manager
from sssjob.fluxexec.messages import Message, Request, Response, from_line, read_start, to_line
from sssjob.fluxexec.rules import Profile, StreamRules
from sssjob.fluxexec.service import Service
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.fluxexec.transport import End, pair
from sssjob.lrm.flux.jobspec import Jobspec, read_jobspec
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import jobspec

SIM = {"attributes": {"user": {"simulate": {"runtime": 30, "status": 256}}}}
ACTIONS = ["submit", "submit", "bad", "cancel", "cancel", "raise", "expire", "time", "time", "reload", "override",
           "error"]


class Both:
    """A manager, and one service after the other over the same simulated machine."""

    def __init__(self, profile: str) -> None:
        self.loop = Loop(virtual=True)
        self.manager = Manager(Idset.parse("0-5"), self.loop.now, profile=profile)
        self.runner = SimulatedRunner(self.loop, split=True)
        self.names = iter(range(1000))
        self.said: list[bytes] = []
        self.service = self.join(self.runner)

    def join(self, runner: SimulatedRunner) -> Service:
        mine, self.theirs = pair(self.loop)
        self.manager.connect(mine)
        self.record(mine)
        made = Service(self.loop, self.theirs, runner, name=f"exec-{next(self.names)}", partial=True)
        made.begin()
        return made

    def record(self, end: End) -> None:
        """Keep what the manager says and hears, as lines."""
        send, receive = end.send, end.receive

        def sent(message: Message) -> None:
            if end.other is not None:
                self.said.append(to_line(message))
            send(message)

        def received(message: Message) -> None:
            self.said.append(to_line(message))
            receive(message)

        end.send, end.receive = sent, received      # type: ignore[method-assign]

    def act(self, name: str, n: int) -> None:
        manager, known = self.manager, list(self.manager.jobs)
        one = known[n % len(known)] if known else 0
        match name:
            case "submit":
                manager.submit({**jobspec("sleep", str(n % 40), nodes=n % 3 + 1, duration=20.0 * (n % 2)),
                                **(SIM if n % 5 == 0 else {})})
            case "bad":
                manager.submit({**jobspec(), "attributes": {"user": {"simulate": {"runtime": "x"}}}})
            case "time":
                end = self.loop.now() + n
                self.loop.at(end, lambda: None)
                self.loop.run(lambda: self.loop.now() >= end)
            case "reload":
                self.service.close()
                self.service = self.join(self.runner)
            case "override":
                self.join(SimulatedRunner(self.loop))       # another machine: the one before is not told
            case "error" if self.manager.service is not None and self.theirs.other is self.manager.service.channel:
                self.theirs.send(Response(f"{self.manager.service.name}.start", None, 0, 125))
                self.service.close()
                self.service = self.join(self.runner)
            case "cancel" if known:
                manager.cancel(one)
            case "raise" if known:
                manager.raise_exception(one, "user", n % 4, "note")
            case "expire" if known:
                manager.expire(one, self.loop.now() + n)


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 60)), max_size=25),
       st.sampled_from(["flux-core", "rfc32-2026"]))
def test_every_job_ends(actions: list[tuple[str, int]], profile: Profile) -> None:
    both = Both(profile)
    kept: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service_module.log, "error", lambda text, *rest: kept.append(text % rest))
        for action in actions:
            both.act(*action)
        both.loop.run()
        if both.manager.service is None or both.manager.service.name != both.service.name:
            both.service.close()
            both.service = both.join(both.runner)
            both.loop.run()
    assert kept == []
    check = StreamCheck(profile)
    found = list(check.check(io.BytesIO(b"".join(both.said))))
    # a service that was overridden is not told, and goes on answering; one that is refused was not told either
    assert [str(v) for v in found if v.rule.id not in ("no-service", "hello-refused")] == [] and not check.open
    jobs = both.manager.jobs.values()
    assert {job.state for job in jobs} <= {JobState.INACTIVE} and str(both.manager.free) == "0-5"
    for job in jobs:
        names = [name for name, _ in job.events]
        assert names.count("start") <= 1 and names.count("clean") == 1 and names[-1] == "clean"


def test_a_jobspec_is_read_once_where_nothing_comes_in_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def reads(value: object) -> Jobspec:
        read.append(value)
        return read_jobspec(value)

    for module in (manager_module, messages_module):
        monkeypatch.setattr(module, "read_jobspec", reads)
    both = Both("flux-core")
    both.manager.submit(jobspec())
    both.loop.run()
    assert len(read) == 1
    asked = next(m for m in map(from_line, both.said) if isinstance(m, Request) and m.topic.endswith(".start"))
    assert asked.read is None and read_start(asked).jobspec == read_jobspec(jobspec()) and len(read) == 2


def test_who_is_over_is_let_go_of_without_the_collector() -> None:
    loop = Loop(virtual=True)
    manager = Manager(Idset.parse("0-2"), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    service = Service(loop, theirs, SimulatedRunner(loop))
    service.begin()
    gc.collect()
    gc.disable()
    try:
        job = manager.submit(jobspec("sleep", "60", duration=600))
        loop.run(lambda: job.started)
        over = weakref.ref(service.jobs[job.id])
        loop.run()
        assert over() is None
    finally:
        gc.enable()


def test_the_order_of_two_jobs_does_not_matter() -> None:
    # Responses of different jobs may come in any order; those of one job keep theirs.
    streams = {n: [("start", {}), ("finish", {"status": 0}), ("release", {"ranks": str(n - 1), "final": True})]
               for n in (1, 2, 3)}
    for seed in range(20):
        loop = Loop(virtual=True)
        manager = Manager(Idset.parse("0-2"), loop.now)
        got: list[Message] = []
        mine, theirs = pair(loop)
        manager.connect(mine)
        theirs.receive = got.append
        theirs.send(Request("job-manager.exec-hello", {"service": "x"}, 1))
        jobs = [manager.submit(jobspec()) for _ in streams]
        loop.run()
        order = [n for n in streams for _ in range(3)]
        random.Random(seed).shuffle(order)
        left: dict[int, list[tuple[str, Any]]] = {n: list(steps) for n, steps in streams.items()}
        for n in order:
            kind, data = left[n].pop(0)
            theirs.send(Response("x.start", {"id": n, "type": kind, "data": data}))
        loop.run()
        assert [job.record()["result_name"] for job in jobs] == ["COMPLETED"] * 3


def test_the_example_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "flux-exec.md").read_text()
    block = page[page.index("    from sssjob.fluxexec"):page.index("## The service")]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec("\n".join(line[4:] for line in block.splitlines()), {})
    assert said.getvalue() == "COMPLETED 86400.0\n"


Step = tuple[str, Any]
E0: Step = ("exception", {"severity": 0, "type": "exec", "note": ""})
S: Step = ("start", {})
R: Step = ("reattached", {})
F: Step = ("finish", {"status": 0})


def rel(ranks: str, final: bool = True) -> tuple[str, Any]:
    return "release", {"ranks": ranks, "final": final}


@pytest.mark.parametrize(("steps", "reattach", "said"), [
    ([S, F, rel("0-3")], False, None), ([S, F, rel("all")], False, None), ([R, F, rel("0-3")], True, None),
    ([E0, rel("0-3")], False, None), ([S, E0, rel("0-3")], False, None), ([rel("0-3")], False, None),
    ([S, rel("1", False), rel("2-3", False), F, rel("0")], False, None), ([S, E0, E0, F, rel("0-3")], False, None),
    ([S, S], False, "start twice"), ([S, R], False, "reattached after start"), ([S, F, F], False, "finish twice"),
    ([R], False, "reattached for a request with reattach=false"),
    ([S], True, "start for a request with reattach=true"), ([E0, S], False, "start after a fatal exception"),
    ([F], False, "finish before start"), ([S, rel("0-3")], False, "final release before finish"),
    ([S, F, rel("0-3"), E0], False, "exception after the final release"),
    ([S, F, rel("0-3"), rel("0-3")], False, "release after the final release"),
    ([S, rel("4", False)], False, "release of ranks 4 outside R"),
    ([S, rel("1", False), rel("0-1", False)], False, "release of ranks 1 twice"),
    ([S, F, rel("0-2")], False, "final release without ranks 3"), ([rel("", False)], False,
                                                                 "release of no ranks that is not final"),
    ([rel("all", False)], False, "release of all ranks that is not final"),
    ([rel("zzz")], False, "ranks 'zzz' are no idset"), ([("dance", {})], False, "unknown response type 'dance'"),
    ([("start", None)], False, "start without data"), ([S, ("finish", {"status": 1.0})], False,
                                                      "finish without status (int)"),
    ([("exception", {"severity": 0, "type": "exec"})], False, "exception without note (str)"),
    ([("exception", {"severity": 8, "type": "x", "note": ""})], False, "severity 8 is not in 0-7"),
    ([("release", {"ranks": "0-3", "final": 1})], False, "release without final (bool)"),
])
def test_rules_of_a_stream(steps: list[tuple[str, Any]], reattach: bool, said: str | None) -> None:
    rules = StreamRules(Idset.parse("0-3"), reattach=reattach)
    *before, last = [rules.broken(*step) for step in steps]
    assert (before, None if last is None else last.text) == ([None] * len(before), said)
