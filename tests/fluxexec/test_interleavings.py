"""Random interleavings: manager and service against each other, and the manager against services that do as they like.

``Together`` reloads, overrides and loses services while jobs run, in all profiles, and holds every message against the
checker of streams. ``Alone`` holds the manager against a model of its own: the table of what each response does, as
recorded of flux-core 0.88 (docs/flux-exec.md, fixtures/flux-core-0.88.0).
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sssjob.fluxexec.check import StreamCheck
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import JobState, Manager
from sssjob.fluxexec.messages import Message, Request, Response, read_start
from sssjob.fluxexec.rules import PROFILES, Profile
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.fluxexec.transport import pair
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import jobspec
from tests.fluxexec.test_together import Both
from tests.strategies import examples

NUMBER = st.integers(0, 60)
#: What a service of today breaks of the text of 2022: it says reattached, and "all" where it got no R.
OLD = {"rfc32-2022": {"all", "unknown-type"}}
#: A service that was overridden is not told, and goes on answering; one that is refused was not told either.
UNTOLD = {"no-service", "hello-refused"}


class Together(RuleBasedStateMachine):
    """Manager and services over simulated machines."""

    @initialize(profile=st.sampled_from(PROFILES))
    def begin(self, profile: Profile) -> None:
        self.profile, self.both = profile, Both(profile)
        self.other = SimulatedRunner(self.both.loop, split=True)

    @rule(n=NUMBER, name=st.sampled_from(["submit", "submit", "bad", "cancel", "raise", "expire"]))
    def job(self, n: int, name: str) -> None:
        self.both.act(name, n)

    @rule(n=NUMBER)
    def time(self, n: int) -> None:
        self.both.act("time", n)

    @rule()
    def turn(self) -> None:
        """One message or end of a shell: what comes next falls in between."""
        calls = self.both.loop._calls
        if calls:
            calls.popleft()()

    @rule(whole=st.booleans())
    def reload(self, whole: bool) -> None:
        """The service is loaded again; whole: after all that was on the way has arrived."""
        if whole:
            self.both.act("time", 0)
        self.both.act("reload", 0)

    @rule(name=st.sampled_from(["override", "error"]))
    def another(self, name: str) -> None:
        self.both.act(name, 0)

    @rule()
    def gone(self) -> None:
        """The connection is lost; nobody comes for now."""
        self.both.service.close()

    @precondition(lambda self: self.both.manager.service is None)
    @rule(known=st.booleans())
    def back(self, known: bool) -> None:
        """A service after none. known: it finds the shells of the one before; else with reattach it finds nothing."""
        self.both.service = self.both.join(self.both.runner if known else self.other)

    @invariant()
    def ranks_are_given_once(self) -> None:
        manager = self.both.manager
        held = [job.held for job in manager._running.values()]
        together = manager.free
        for ranks in held:
            together |= ranks
        assert together == manager.all and manager.free.count + sum(r.count for r in held) == manager.all.count

    @invariant()
    def requests_are_for_jobs_that_run(self) -> None:
        manager = self.both.manager
        for job in manager.jobs.values():
            assert not job.outstanding or (manager.service is not None and job.id in manager._running)
            assert (job.state is JobState.SCHED) == (not job.ranks and not job.end)

    def teardown(self) -> None:
        if not hasattr(self, "both"):
            return
        both = self.both
        both.loop.run()
        if both.manager.service is None or both.manager.service.name != both.service.name:
            both.service.close()
            both.service = both.join(both.runner)
            both.loop.run()
        check = StreamCheck(self.profile)
        found = list(check.check(io.BytesIO(b"".join(both.said))))
        let = UNTOLD | OLD.get(self.profile, set())
        assert [str(v) for v in found if v.rule.id not in let] == []
        assert {job.state for job in both.manager.jobs.values()} <= {JobState.INACTIVE}
        assert both.manager.free == both.manager.all
        for job in both.manager.jobs.values():
            names = [name for name, _ in job.events]
            assert names.count("start") <= 1 and names.count("clean") == 1 and names[-1] == "clean"


TestTogether = Together.TestCase
TestTogether.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)


@dataclass
class Model:
    """One job as the table of the reference has it."""

    state: str = "RUN"
    outstanding: bool = True
    started: bool = False
    requests: int = 1
    status: int | None = None
    end: str | None = None          # "" for finish
    success: bool = False

    def start(self) -> None:
        self.started = True

    def finish(self, status: int) -> None:
        self.status = status
        if self.state == "RUN":
            self.state, self.end = "CLEANUP", ""
        self.success |= self.end == "" and status == 0

    def exception(self, kind: str, severity: int) -> None:
        if severity == 0 and self.state == "RUN":
            self.state, self.end = "CLEANUP", kind

    def release(self, final: bool) -> None:
        if not final:
            return
        self.outstanding = False
        if self.state == "CLEANUP":
            self.state = "INACTIVE"
        else:
            self.outstanding, self.requests = True, self.requests + 1

    @property
    def result(self) -> str | None:
        if self.state != "INACTIVE":
            return None
        ends = {"cancel": "CANCELED", "timeout": "TIMEOUT"}
        return "COMPLETED" if self.success else ends.get(self.end or "", "FAILED")


MALFORMED = [("finish", {"status": 1.0}), ("finish", {"status": "1"}), ("finish", {"status": True}), ("finish", {}),
             ("release", {"ranks": "0", "final": 1}), ("release", {"final": True}),
             ("release", {"ranks": 0, "final": True}),
             ("start", None), ("start", []), ("dance", {}), (None, {}), (1, {}), ("exception", {"severity": 0}),
             ("exception", {"type": "x"}), ("exception", {"severity": "0", "type": "x", "note": ""}),
             ("exception", {"severity": 0, "type": "x", "note": 1})]
JOB = st.integers(1, 5)         # some are never there


class Alone(RuleBasedStateMachine):
    """The manager, and a service that sends anything in any order."""

    @initialize(profile=st.sampled_from(PROFILES))
    def begin(self, profile: Profile) -> None:
        self.profile, self.loop = profile, Loop(virtual=True)
        self.manager = Manager(Idset.parse("0-3"), self.loop.now, profile=profile)
        self.models: dict[int, Model] = {}
        self.seen: list[Message] = []
        self.hello()

    def hello(self) -> None:
        mine, self.theirs = pair(self.loop)
        self.theirs.receive = self.seen.append
        self.manager.connect(mine)
        self.theirs.send(Request("job-manager.exec-hello", {"service": "x"}, 1))
        self.loop.run()

    def say(self, number: object, kind: Any, data: Any, **more: Any) -> None:
        payload = {"id": number, "type": kind, **more} | ({} if data is None else {"data": data})
        self.theirs.send(Response("x.start", payload))
        self.loop.run()

    def open(self, number: int) -> Model | None:
        found = self.models.get(number)
        return found if found is not None and found.outstanding else None

    @precondition(lambda self: len(self.models) < 4)
    @rule()
    def submit(self) -> None:
        self.manager.submit(jobspec())
        self.loop.run()
        self.models[len(self.models) + 1] = Model()

    @rule(n=JOB, extra=st.booleans())
    def start(self, n: int, extra: bool) -> None:
        self.say(n, "start", {"extra": 1} if extra else {})
        if model := self.open(n):
            model.start()

    @rule(n=JOB)
    def reattached(self, n: int) -> None:
        self.say(n, "reattached", {})

    @rule(n=JOB, status=st.sampled_from([0, 15, 143, 256, 768, -1, 1 << 20]))
    def finish(self, n: int, status: int) -> None:
        self.say(n, "finish", {"status": status, "usage": {"cpu_seconds": status}})
        if model := self.open(n):
            model.finish(status)

    @rule(n=JOB, kind=st.sampled_from(["cancel", "timeout", "exec", "timelimit"]), severity=st.integers(-1, 9),
          note=st.sampled_from([None, "", "note"]))
    def exception(self, n: int, kind: str, severity: int, note: str | None) -> None:
        self.say(n, "exception", {"severity": severity, "type": kind} | ({} if note is None else {"note": note}))
        if (model := self.open(n)) and (note is not None or self.profile != "flux-core"):
            model.exception(kind, severity)

    @rule(n=JOB, final=st.booleans(), ranks=st.sampled_from(["0", "all", "zzz", "", "9"]))
    def release(self, n: int, final: bool, ranks: str) -> None:
        self.say(n, "release", {"ranks": ranks, "final": final})
        if model := self.open(n):
            model.release(final)

    @rule(n=JOB, what=st.sampled_from(MALFORMED))
    def malformed(self, n: int, what: tuple[Any, Any]) -> None:
        self.say(n, *what)

    @rule(number=st.sampled_from([None, "1", 1.0, True, -1, 1 << 64, [], {}]))
    def an_odd_id(self, number: object) -> None:
        self.say(number, "finish", {"status": 0})

    @rule(n=JOB, how=st.sampled_from(["error", "gone"]))
    def the_service_ends(self, n: int, how: str) -> None:
        if how == "error":
            self.theirs.send(Response("x.start", None, 0, 38))
            self.loop.run()
        self.theirs.close()
        self.loop.run()
        assert self.manager.service is None
        self.say(n, "finish", {"status": 0})            # too late
        for model in self.models.values():
            if model.outstanding:
                model.outstanding = False
                if model.state == "CLEANUP":
                    model.state = "INACTIVE"
        before = len(self.seen)
        self.loop.run()
        assert len(self.seen) == before                 # nothing is sent until the next hello
        self.hello()
        for model in self.models.values():
            if model.state == "RUN":
                model.outstanding, model.requests = True, model.requests + 1

    @invariant()
    def as_the_table_says(self) -> None:
        if not hasattr(self, "manager"):
            return
        for number, model in self.models.items():
            job = self.manager.jobs[number]
            assert (job.state.name, job.outstanding, job.started, job.wait_status, job.success) == (
                model.state, model.outstanding, model.started, model.status, model.success)
            assert (None if job.result is None else job.result.name) == model.result
            asked = [m.payload for m in self.seen if isinstance(m, Request) and m.topic == "x.start"
                     and isinstance(m.payload, dict) and m.payload["id"] == number]
            assert len(asked) == model.requests and all(("R" in p) == (self.profile != "rfc32-2022") for p in asked)
            assert all(m.tag == 0 for m in self.seen if isinstance(m, Request) and m.topic == "x.start")
            assert all(m.read == read_start(replace(m, read=None)) for m in self.seen
                       if isinstance(m, Request) and m.topic == "x.start")      # what goes along says nothing else
            events = [name for name, _ in job.events]
            assert events.count("start") == model.started and events.count("clean") == (model.state == "INACTIVE")


TestAlone = Alone.TestCase
TestAlone.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
