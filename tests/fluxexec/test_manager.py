"""The job manager's side, against sequences that were recorded with a real one. MUSTs are quoted from RFC 32."""

from __future__ import annotations

from typing import Any

import pytest

from sssjob.errors import UsageError
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import PROFILES, JobState, Manager, Result
from sssjob.fluxexec.messages import EXCEPTION, HELLO, Event, Message, Request, Response
from sssjob.fluxexec.transport import End, pair
from sssjob.lrm.flux.errors import ExecLimitError
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import jobspec, vectors


class Desk:
    """A manager, and services that a test plays by hand."""

    def __init__(self, ranks: str = "0", profile: str = "flux-core") -> None:
        self.loop = Loop(virtual=True, start=1000.0)
        self.manager = Manager(Idset.parse(ranks), self.loop.now, profile=profile)
        self.got: list[Message] = []
        self.end = self.service()

    def service(self) -> End:
        mine, theirs = pair(self.loop)
        mine.receive = self.got.append
        self.manager.connect(theirs)
        return mine

    def say(self, message: Message, end: End | None = None) -> list[Message]:
        """What the manager says to a message."""
        self.got.clear()
        (end or self.end).send(message)
        return self.turn()

    def turn(self) -> list[Message]:
        while self.loop._calls:
            self.loop._calls.popleft()()
        return self.got

    def hello(self, end: End | None = None, name: Any = "job-exec") -> int:
        """errnum of the answer."""
        found = [m for m in self.say(Request(HELLO, {"service": name}, 1), end) if isinstance(m, Response)]
        assert [m.payload for m in found] == [None]     # "The response payload SHALL be empty on success."
        return found[0].errnum

    def answer(self, kind: Any, data: Any = None, job: Any = 1, **more: Any) -> list[Message]:
        return self.say(Response("job-exec.start", {"id": job, "type": kind, "data": {} if data is None else data,
                                                    **more}))

    def starts(self) -> list[Any]:
        """(id, reattach) of the start requests that came."""
        return [(m.payload["id"], m.payload["reattach"]) for m in self.got
                if isinstance(m, Request) and m.topic.endswith(".start") and isinstance(m.payload, dict)]


@pytest.mark.parametrize("vector", vectors("exec-sequences"), ids=lambda v: v["name"])
def test_recorded(vector: dict[str, Any]) -> None:
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    for step in vector["steps"]:
        if step == "@cancel":
            desk.manager.cancel(1)
            incoming = [{"topic": m.topic, "payload": {k: v for k, v in m.payload.items() if k != "id"}}
                        for m in desk.turn() if isinstance(m, Event) and isinstance(m.payload, dict)]
            assert incoming == vector["incoming_events"]
        elif isinstance(step, str):
            assert [{"reattach": again} for _, again in desk.starts()] == vector["further_requests"]
            desk.answer("reattached")
            desk.answer("finish", {"status": 0})
            desk.answer("release", {"ranks": "0", "final": True})
        else:
            desk.answer(step["type"], step["data"])
    assert job.events[0] == ("alloc", None)
    assert [list(event) for event in job.events[1:]] == vector["events"]
    assert job.record() == vector["final"]


NORMAL: list[tuple[str, Any]] = [("start", {}), ("finish", {"status": 0}), ("release", {"ranks": "0", "final": True})]


# What the real one ignores: an error in its log, nothing else
@pytest.mark.parametrize(("kind", "data"), [
    ("finish", {"status": 1.0}), ("finish", {"status": "1"}), ("finish", {"status": True}), ("finish", {}),
    ("finish", None), ("finish", []), ("release", {"ranks": "0", "final": 1}), ("release", {"final": True}),
    ("exception", {"severity": 0, "type": "exec"}), ("exception", {"severity": 0, "type": "exec", "note": None}),
    ("exception", {"severity": "0", "type": "exec", "note": ""}), ("unknown", {}), (None, {}), ([], {}), ({}, {}),
    ("finish", {"status": 1 << 40}),
])
@pytest.mark.parametrize("place", range(3))
def test_malformed_is_ignored(kind: Any, data: Any, place: int) -> None:
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    steps = [*NORMAL[:place], None, *NORMAL[place:]]
    for step in steps:
        if step is None:
            desk.say(Response("job-exec.start", {"id": 1, "type": kind, "data": data}))
        else:
            desk.answer(*step, extra=1)         # other keys are tolerated
    assert (job.result, [n for n, _ in job.events][-5:]) == (Result.COMPLETED, ["start", "finish", "release", "free",
                                                                                "clean"])


@pytest.mark.parametrize("payload", [None, [], "x", {}, {"id": "1"}, {"id": 2}, {"id": 1 << 70}, {"id": True},
                                     {"id": -1}, {"id": 1}, {"id": 1, "type": "start"}])
def test_answers_to_nothing_are_ignored(payload: Any) -> None:
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    desk.say(Response("job-exec.start", payload))
    desk.say(Response("other.start", {"id": 1, "type": "finish", "data": {"status": 0}}))
    assert (job.state, [n for n, _ in job.events]) == (JobState.RUN, ["alloc", "debug.start-request"])


def test_a_finished_job_takes_nothing() -> None:
    # "The final release response SHALL be the last response sent by the execution service for a given job ID and is
    # interpreted as end of stream by the job manager."
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    for step in NORMAL:
        desk.answer(*step)
    before = list(job.events)
    desk.answer("exception", {"severity": 0, "type": "exec", "note": "late"})
    desk.answer("finish", {"status": 256})
    assert (job.events, job.result) == (before, Result.COMPLETED)


@pytest.mark.parametrize(("statuses", "result", "last"), [
    ([0], 1, 0), ([768], 2, 768), ([0, 256], 1, 256), ([256, 0], 1, 0), ([15], 2, 15), ([-1], 2, -1)])
def test_finish(statuses: list[int], result: int, last: int) -> None:
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    desk.answer("start")
    for status in statuses:
        desk.answer("finish", {"status": status})
    desk.answer("release", {"ranks": "all", "final": True})
    assert (job.result, job.wait_status) == (result, last)


@pytest.mark.parametrize(("kind", "severity", "result"), [
    ("cancel", 0, Result.CANCELED), ("timeout", 0, Result.TIMEOUT), ("timelimit", 0, Result.FAILED),
    ("exec", 0, Result.FAILED), ("exec", 1, Result.COMPLETED), ("exec", 9, Result.COMPLETED),
    ("exec", -1, Result.COMPLETED)])
def test_exceptions(kind: str, severity: int, result: Result) -> None:
    # "exception ... note, which the job manager SHALL include in the exception context if present"
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    desk.answer("start")
    desk.answer("exception", {"severity": severity, "type": kind, "note": "why"})
    desk.answer("finish", {"status": 0})
    desk.answer("release", {"ranks": "0", "final": True})
    assert ("exception", {"type": kind, "severity": severity, "userid": 0, "note": "why"}) in job.events
    assert job.result is result


def test_start_requests_carry_what_they_must() -> None:
    # "The request payload SHALL be a JSON object containing the following REQUIRED keys: id, userid, jobspec, reattach"
    # (and R since 2023); "The job ID MUST appear in the <service>.start request";
    # "set the RFC 6 matchtag message field to zero"; "Once the execution service is registered, the job manager SHALL
    # send <service>.start requests for any jobs that have been allocated resources."
    desk = Desk("0-3")
    spec = jobspec("sleep", "1", nodes=2, duration=60)
    desk.manager.submit(spec, userid=7)
    desk.manager.submit(spec)
    desk.manager.submit(spec)               # no ranks left for it
    assert desk.turn() == []
    desk.hello()
    requests = [m for m in desk.got if isinstance(m, Request)]
    r = {"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0"}}], "starttime": 1000.0,
                                     "expiration": 1060.0}}
    assert requests[0] == Request("job-exec.start", {"id": 1, "userid": 7, "jobspec": spec, "reattach": False, "R": r})
    assert [m.tag for m in requests] == [0, 0] and desk.starts() == [(1, False), (2, False)]


def test_partial_release_frees_nothing_before_the_final_one() -> None:
    desk = Desk("0-3")
    desk.hello()
    desk.manager.submit(jobspec(nodes=4))
    other = desk.manager.submit(jobspec())
    desk.answer("start")
    desk.answer("release", {"ranks": "1-3", "final": False})
    assert (str(desk.manager.free), other.state) == ("", JobState.SCHED)
    desk.answer("finish", {"status": 0})
    desk.answer("release", {"ranks": "0", "final": True})
    assert (str(desk.manager.free), other.state, desk.starts()) == ("1-3", JobState.RUN, [(2, False)])


@pytest.mark.parametrize("payload", [None, {}, [], {"service": 5}, {"service": None}])
def test_hello_needs_a_name(payload: Any) -> None:
    desk = Desk()
    assert [m.errnum for m in desk.say(Request(HELLO, payload, 1)) if isinstance(m, Response)] == [71]
    assert desk.manager.service is None


@pytest.mark.parametrize("profile", PROFILES)
def test_an_idle_service_is_overridden(profile: str) -> None:
    # "If an execution service is already loaded, the job manager SHALL allow the new one to override it."
    desk = Desk(profile=profile)
    assert desk.hello() == 0
    other = desk.service()
    assert desk.hello(other, "sim") == 0
    desk.manager.submit(jobspec())
    assert [m.topic for m in desk.turn() if isinstance(m, Request)] == ["sim.start"]
    assert desk.hello(desk.end) == (0 if profile == "rfc32-2026" else 22)


@pytest.mark.parametrize(("profile", "errnum"), [("rfc32-2022", 22), ("flux-core", 22), ("rfc32-2026", 0)])
def test_hello_while_a_start_is_outstanding(profile: str, errnum: int) -> None:
    # "The job manager SHALL issue a failure response if any jobs have an outstanding start request to an existing
    # execution service." (until 2026)
    desk = Desk(profile=profile)
    desk.hello()
    job = desk.manager.submit(jobspec())
    desk.answer("start")
    assert desk.hello(desk.service()) == errnum
    assert desk.starts() == ([] if errnum else [(1, True)])
    desk.answer("finish", {"status": 0})                    # from the first one
    assert job.state is (JobState.CLEANUP if errnum else JobState.RUN)


@pytest.mark.parametrize("how", ["error", "disconnect"])
def test_end_of_the_service(how: str) -> None:
    # "The job manager SHALL treat a conventional Flux error response to <service>.start with a nonzero errnum field as
    # an execution service fatality, and SHALL not send further requests to the execution service until it receives a
    # new job-manager.exec-hello request."
    desk = Desk("0-3")
    desk.hello()
    jobs = [desk.manager.submit(jobspec()) for _ in range(3)]
    desk.answer("start", job=1)
    desk.answer("start", job=3)
    desk.answer("finish", {"status": 0}, job=3)
    if how == "error":
        desk.say(Response("job-exec.start", None, 0, 38, "no such service"))
    else:
        desk.end.close()
        desk.turn()
    late = desk.manager.submit(jobspec())
    desk.got.clear()
    assert (desk.turn(), desk.manager.service) == ([], None)
    assert [j.state for j in jobs] == [JobState.RUN, JobState.RUN, JobState.INACTIVE] and not jobs[0].outstanding
    assert jobs[0].events[-1] == ("debug.start-lost", None) and jobs[2].result is Result.COMPLETED
    if how == "error":
        desk.answer("finish", {"status": 0}, job=1)         # too late
        assert jobs[0].state is JobState.RUN
    assert desk.hello(desk.service(), "next") == 0
    assert desk.starts() == [(1, True), (2, False), (4, False)]
    assert late.outstanding


def test_one_request_a_job() -> None:
    # "There SHALL NOT be more than one <service>.start request in flight for each job"
    desk = Desk()
    desk.hello()
    desk.manager.submit(jobspec())
    desk.turn()
    assert desk.starts() == [(1, False)]
    desk.hello()                                            # refused
    assert desk.starts() == []


def test_cancel_before_there_is_a_service_or_room() -> None:
    desk = Desk()
    first, second = desk.manager.submit(jobspec()), desk.manager.submit(jobspec())
    desk.manager.cancel(2)
    desk.manager.cancel(1)
    desk.manager.cancel(1)
    assert [j.result for j in (first, second)] == [Result.CANCELED] * 2
    assert (str(desk.manager.free), desk.hello(), desk.starts()) == ("0", 0, [])


def test_expiration_is_told_and_a_refusal_noted() -> None:
    desk = Desk()
    desk.hello()
    job = desk.manager.submit(jobspec())
    desk.answer("start")
    for errnum in (0, 38):
        desk.got.clear()
        desk.manager.expire(1, 2000.0)
        asked = desk.turn()[0]
        assert isinstance(asked, Request) and asked.payload == {"id": 1, "expiration": 2000.0} and asked.tag > 0
        desk.say(asked.answer(None, errnum))
    assert job.events[-1] == ("exception", {"type": "exec", "severity": 1, "userid": 0,
                                            "note": "expiration was not changed: ENOSYS"})
    desk.say(Response("job-exec.expiration", None, 99))         # nobody asked


def test_exceptions_are_broadcast() -> None:
    desk = Desk()
    desk.hello()
    desk.manager.submit(jobspec())
    desk.turn()
    desk.got.clear()
    desk.manager.raise_exception(1, "user", 2, "note")
    desk.manager.raise_exception(1, "exec", 0, wait_status=768)
    assert desk.turn() == [Event(EXCEPTION, {"id": 1, "type": "user", "severity": 2}),
                           Event(EXCEPTION, {"id": 1, "type": "exec", "severity": 0, "wait_status": 768})]


def test_rfc32_2022() -> None:
    desk = Desk(profile="rfc32-2022")
    desk.hello()
    job = desk.manager.submit(jobspec())
    sent = desk.turn()[-1]
    assert isinstance(sent.payload, dict) and "R" not in sent.payload
    desk.answer("reattached")
    desk.answer("exception", {"severity": 1, "type": "exec"})           # the note is optional
    assert [n for n, _ in job.events] == ["alloc", "debug.start-request", "exception"]


def test_more_ranks_than_a_job_may_have() -> None:
    """A service in this process does not read R again: its limit is kept here."""
    manager = Manager(Idset.parse("0-200000"), lambda: 0.0)
    manager.fit(jobspec(nodes=100_000))
    with pytest.raises(ExecLimitError, match=r"100001 ranks \(limit ranks\)"):
        manager.fit(jobspec(nodes=100_001))


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="known: rfc32-2022"):
        Manager(Idset.parse("0"), lambda: 0.0, profile="x")
    desk = Desk()
    with pytest.raises(UsageError, match="needs 2 ranks, there are 1"):
        desk.manager.submit(jobspec(nodes=2))
    desk.manager.submit(jobspec(), job_id=5)
    with pytest.raises(UsageError, match="job 5 is there already"):
        desk.manager.submit(jobspec(), job_id=5)
    assert [m.errnum for m in desk.say(Request("job-manager.other", {}, 4)) if isinstance(m, Response)] == [38]
