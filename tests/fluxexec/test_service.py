"""The execution service over a runner whose shells a test plays. MUSTs are quoted from RFC 32."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.fluxexec import service as service_module
from sssjob.fluxexec.machine import wait_status_override
from sssjob.fluxexec.messages import HELLO, Event, Request, Response
from sssjob.fluxexec.service import State
from sssjob.lrm.flux.errors import ExecLimits
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import OK, UP, Ended, Lost, NotStarted, Peer, exception, jobspec, start

NORMAL = [("start", {}), ("finish", {"status": 0}), ("release", {"ranks": "0", "final": True})]
NO_SHELL = ("exception", {"severity": 0, "type": "exec", "note": "boom"})
TIMEOUT = ("exception", {"severity": 0, "type": "timeout", "note": "resource allocation expired"})


def final(ranks: str = "0") -> tuple[str, Any]:
    return "release", {"ranks": ranks, "final": True}


def finish(status: int) -> tuple[str, Any]:
    return "finish", {"status": status}


# Hello

def test_hello_names_the_service() -> None:
    # "The Flux execution service SHALL register a service name with the job manager on initialization"; "request
    # payload SHALL be a JSON object containing with one REQUIRED key: service"
    peer = Peer(registered=False)
    assert peer.got == [Request(HELLO, {"service": "job-exec"}, 3)]
    peer.say(Request("job-exec.start", start().payload))        # before the answer: dropped
    assert (peer.service.jobs, len(peer.got)) == ({}, 1)
    peer.say(Response(HELLO, None, 3))
    assert peer.service.state is State.REGISTERED


def test_a_refused_hello_is_fatal() -> None:
    # "The execution service SHALL treat a failure response to exec-hello as fatal."
    peer = Peer(registered=False)
    peer.say(Response(HELLO, None, 3, 22, "busy"))
    assert (peer.service.state, peer.service.why) == (State.DEAD, "job-manager.exec-hello: refused: busy (22)")
    peer.got.clear()
    peer.say(start())
    assert peer.got == []


def test_a_broker_is_told_the_name_and_the_events_first() -> None:
    peer = Peer(registered=False, broker=True)
    for number, topic in enumerate(("service.add", "event.subscribe", HELLO), 1):
        asked = peer.got.pop()
        assert isinstance(asked, Request) and (asked.topic, asked.tag) == (topic, number)
        peer.say(asked.answer())
    assert peer.service.state is State.REGISTERED


# The usual course

def test_normal() -> None:
    # "The response payload SHALL be a JSON object containing the following REQUIRED keys: id, type, data"; "The job ID
    # MUST appear in the <service>.start request and response message payloads"; "The errnum field in
    # <service>.start response messages MUST be set to zero"; matchtag zero
    peer = Peer()
    peer.say(start(17))
    assert peer.got == []                       # start: "Indicates that the job shells have started"
    peer.tell(UP, job=17)
    peer.tell(OK, job=17)
    assert [(m.topic, m.tag, m.errnum, m.payload) for m in peer.got if isinstance(m, Response)] == [
        ("job-exec.start", 0, 0, {"id": 17, "type": kind, "data": data}) for kind, data in NORMAL]
    assert peer.service.jobs == {} and peer.hand.reports == {}


def test_the_greatest_wait_status() -> None:
    # "finish ... status (integer), the numerically greatest wait status returned by the set of job shells"
    peer = Peer()
    peer.say(start(ranks="0-3"))
    for shell, status in enumerate((0, 768, 15, 256)):
        peer.tell(UP, shell)
        peer.tell(Ended(status), shell)
    assert peer.answers() == [("start", {}), finish(768), final("0-3")]


def test_partial_release() -> None:
    # "release ... ranks (string), an idset representing subset of execution targets whose resources may be released;
    # and final (boolean) a flag indicating whether all the job's execution targets have now been released"
    peer = Peer(partial=True)
    peer.say(start(ranks="0-2,9", spec=jobspec(slots=4)))
    for shell in range(4):
        peer.tell(UP, shell)
    for shell in (2, 0, 3, 1):
        peer.tell(OK, shell)
    assert peer.answers() == [("start", {}), ("release", {"ranks": "2", "final": False}),
                              ("release", {"ranks": "0", "final": False}),
                              ("release", {"ranks": "9", "final": False}), finish(0), final("1")]


def test_without_r_all_ranks_are_released() -> None:
    peer = Peer()
    peer.say(start(ranks=None))
    peer.tell(UP)
    peer.tell(OK)
    assert peer.answers()[-1] == final("all")


def test_a_shell_that_is_fast() -> None:
    peer = Peer(partial=True)
    peer.say(start(ranks="0-1"))
    peer.tell(OK, 0)
    assert peer.answers() == []
    peer.tell(UP, 1)
    peer.tell(OK, 1)
    assert peer.answers() == [("start", {}), ("release", {"ranks": "0", "final": False}), finish(0), final("1")]


# What goes wrong

def test_a_job_that_cannot_be_started() -> None:
    # "start and/or finish responses MAY be omitted depending on when a fatal exception occurs. The execution service
    # MUST always send a release response with final set to True."
    peer = Peer()
    peer.say(start(ranks="0-1"))
    peer.tell(UP, 0)
    peer.tell(NotStarted("boom"), 1)
    assert peer.answers() == [NO_SHELL] and peer.hand.terminated == [(1, False)]
    peer.tell(Ended(15), 0)
    assert peer.answers() == [final("0-1")]


@pytest.mark.parametrize(("more", "note"), [
    ({"jobspec": {}}, "jobspec has not version 1"), ({"jobspec": None}, "jobspec is no object"),
    ({"jobspec": {"version": True}}, "jobspec has not version 1"),
    ({"jobspec": {**jobspec(), "tasks": []}}, "tasks has not exactly one entry"),
    ({"jobspec": {**jobspec(), "tasks": [{"command": "true"}]}}, "command is no list"),
    ({"jobspec": {**jobspec(), "tasks": [{"command": []}]}}, "command is empty"),
    ({"jobspec": {**jobspec(), "tasks": [{"command": ["a\0"]}]}}, "command is no text"),
    ({"jobspec": {**jobspec(), "tasks": [{"command": ["\ud800"]}]}}, "command is no text in Unicode"),
    ({"jobspec": {**jobspec(), "resources": [{"type": "rack"}]}},
     "resources is no slot, and no node with a slot in it"),
    ({"jobspec": jobspec(slots=1 << 30)}, "jobspec has 1073741824 tasks (limit tasks)"),
    ({"jobspec": jobspec(environment={"a=b": "1"})}, "environment: 'a=b' is no name"),
    ({"userid": "root"}, "userid is no whole number in range"), ({"userid": None}, "userid is missing"),
    ({"reattach": 1}, "reattach is not true or false"), ({"R": {}}, "R has not version 1"),
    ({"R": {"version": 1, "execution": {"R_lite": []}}}, "R has no ranks"),
    ({"R": {"version": 1, "execution": {"R_lite": [{"rank": "0-4000000000"}]}}},
     "R has 4000000001 ranks (limit ranks)"),
])
def test_a_request_that_cannot_be_understood(more: dict[str, Any], note: str) -> None:
    # "The errnum field in <service>.start response messages MUST be set to zero, even if the response indicates an
    # error."
    peer = Peer()
    peer.say(start(ranks=None, **more))
    (kind, data), last = peer.answers()
    assert (kind, data["severity"], data["type"], data["note"]) == ("exception", 0, "exec", note)
    assert last[0] == "release" and last[1]["final"] is True and peer.service.jobs == {}


@pytest.mark.parametrize("payload", [None, [], "x", {}, {"id": "1"}, {"id": True}, {"id": 1.0}, {"id": -1},
                                     {"id": 1 << 63}])
def test_a_request_without_an_id_is_dropped(payload: Any) -> None:
    peer = Peer()
    peer.say(Request("job-exec.start", payload))
    assert (peer.got, peer.service.jobs, peer.service.state) == ([], {}, State.REGISTERED)


def test_second_start_is_dropped() -> None:
    # "There SHALL NOT be more than one <service>.start request in flight for each job"
    peer = Peer()
    peer.say(start(), start())
    peer.tell(UP)
    peer.tell(OK)
    assert peer.answers() == NORMAL


def test_too_many_jobs() -> None:
    peer = Peer(limits=ExecLimits(jobs=1))
    peer.say(start(1), start(2))
    assert peer.answers(2) == [("exception", {"severity": 0, "type": "exec", "note": "too many jobs (limit jobs)"}),
                               final("all")]
    assert list(peer.service.jobs) == [1]


@pytest.mark.parametrize(("shell", "severity", "status"), [(0, 0, 256), (1, 2, 256)])
def test_a_lost_shell(shell: int, severity: int, status: int) -> None:
    peer = Peer()
    peer.say(start(ranks="0-1"))
    peer.tell(UP, 0)
    peer.tell(UP, 1)
    peer.tell(Lost("gone"), shell)
    assert peer.answers() == [("start", {}), ("exception", {"severity": severity, "type": "node-failure",
                                                            "note": "gone"})]
    assert len(peer.hand.terminated) == (severity == 0)
    peer.tell(OK, 1 - shell)
    assert peer.answers() == [finish(status), final("0-1")]


# The end of jobs

def test_cancel() -> None:
    peer = Peer()
    peer.say(start())
    peer.tell(UP)
    peer.say(exception(severity=1), exception(severity=7), exception(2))
    assert peer.hand.terminated == []
    peer.say(exception(), exception())
    assert peer.hand.terminated == [(1, False), (1, False)]     # TERM again for every further one
    peer.tell(Ended(15))
    assert peer.answers() == [("start", {}), finish(15), final()]       # no exception of our own


def test_cancel_before_start() -> None:
    peer = Peer()
    peer.say(start(), exception())
    assert peer.answers() == [] and peer.hand.terminated == [(1, False)]
    peer.tell(UP)
    peer.tell(Ended(15))
    assert peer.answers() == [final()]


@pytest.mark.parametrize(("more", "status"), [
    ({}, 256), ({"wait_status": 768}, 768), ({"wait_status": 15}, 143 << 8), ({"wait_status": 0}, 0),
    ({"wait_status": 1 << 20}, 256)])
def test_status_of_a_cancelled_job_that_ends_well(more: dict[str, Any], status: int) -> None:
    peer = Peer()
    peer.say(start())
    peer.tell(UP)
    peer.say(exception(**more), exception(wait_status=512))     # the first one counts
    peer.tell(OK)
    assert peer.answers()[1] == finish(status)


def test_kill_when_asking_does_not_help() -> None:
    peer = Peer(kill_s=5.0, kill_times=3)
    peer.say(start())
    peer.tell(UP)
    peer.say(exception())
    peer.loop.run()
    assert peer.hand.terminated == [(1, False), (1, True), (1, True), (1, True)]
    assert peer.loop.now() == 1000 + 5 + 10 + 20 + 40
    assert peer.answers() == [("start", {}), finish(256), final()]


def test_expiration() -> None:
    peer = Peer()
    peer.say(start(expiration=1060.0))
    peer.tell(UP)
    peer.loop.run(lambda: len(peer.got) == 2)
    assert (peer.loop.now(), peer.answers(), peer.hand.terminated) == (1060, [("start", {}), TIMEOUT], [(1, False)])
    peer.say(exception(kind="timeout"))
    peer.tell(Ended(signal.SIGTERM))
    assert peer.answers() == [finish(15), final()]


def test_an_executor_that_keeps_the_time_itself() -> None:
    peer = Peer()
    peer.say(start())
    peer.tell(UP)
    peer.tell(Ended(15, timed_out=True))
    assert peer.answers() == [("start", {}), TIMEOUT, finish(15), final()]


@pytest.mark.parametrize(("payload", "errnum"), [
    ({"id": 1, "expiration": 2000.0}, 0), ({"id": 1, "expiration": 0}, 0), ({"id": 2, "expiration": 0.0}, 2),
    ({"id": 1}, 71), ({"id": 1, "expiration": "x"}, 71), ({"id": 1, "expiration": -1}, 71), ({}, 71), (None, 71)])
def test_expiration_request(payload: Any, errnum: int) -> None:
    peer = Peer()
    peer.say(start(expiration=1060.0))
    peer.tell(UP)
    peer.got.clear()
    peer.say(Request("job-exec.expiration", payload, 9))
    answer = peer.got.pop()
    assert isinstance(answer, Response) and (answer.tag, answer.errnum) == (9, errnum)
    peer.loop.run(lambda: bool(peer.got))
    assert peer.loop.now() == {0: 2000, 2: 1060, 71: 1060}[errnum] if payload != {"id": 1, "expiration": 0} else 1000


def test_unknown_requests_and_events() -> None:
    peer = Peer()
    peer.say(Request("job-exec.dance", {}, 4), Event("other", {}), Event("job-exception", None),
             Event("job-exception", {"id": 1}), Response("x", None, 9))
    assert peer.got == [Response("job-exec.dance", None, 4, 38, "no such method")]


# Reload

def test_reload() -> None:
    # Design criteria: "Support execution service reload."
    peer = Peer()
    peer.say(start(1), start(2))
    peer.tell(UP, job=1)
    assert peer.answers() == [("start", {})]
    peer.service.close()
    peer.join()
    peer.say(start(1, reattach=True), start(2), start(3, reattach=True))
    assert [kind for kind, _ in peer.answers(3)] == ["exception", "release"]
    for job in (1, 2):
        peer.tell(UP, job=job)
    assert [m.payload for m in peer.got if isinstance(m, Response)] == [
        {"id": 1, "type": "reattached", "data": {}}, {"id": 2, "type": "start", "data": {}}]


def test_what_is_not_found() -> None:
    peer = Peer()
    peer.say(start(reattach=True))
    assert peer.answers() == [("exception", {"severity": 0, "type": "exec",
                                             "note": "the job's processes were not found"}), final()]


def test_reattach_over_the_same_connection() -> None:
    peer = Peer(partial=True)
    peer.say(start(1, ranks="0-1"), start(2))
    for shell in (0, 1):
        peer.tell(UP, shell)
    peer.tell(OK, 0)
    assert len(peer.answers()) == 2
    peer.say(start(1, ranks="0-1", reattach=True), start(2, reattach=True))
    assert peer.answers() == [("reattached", {})]
    peer.tell(UP, job=2)
    peer.tell(OK, job=2)
    assert peer.answers(2) == [finish(0), final()]          # start would be wrong now
    peer.tell(OK, 1)
    assert peer.answers() == [finish(0), final("1")]


@pytest.mark.parametrize("give_up", [False, True])
def test_own_shutdown(give_up: bool) -> None:
    peer = Peer()
    peer.say(start())
    peer.tell(UP)
    peer.got.clear()
    peer.service.close(give_up=give_up)
    peer.turn()
    assert [m.errnum for m in peer.got if isinstance(m, Response)] == [125] * give_up
    assert (peer.hand.terminated, peer.service.state) == ([(1, False)] * give_up, State.DEAD)


def test_the_manager_goes_away() -> None:
    peer = Peer()
    peer.say(start(expiration=1060.0))
    peer.tell(UP)
    peer.end.close()
    peer.turn()
    peer.loop.run()
    assert (peer.service.state, peer.hand.terminated, peer.loop.now()) == (State.DEAD, [], 1000)


# Any order of what may happen

def _reload(peer: Peer) -> None:
    peer.service.close()
    peer.join()


def _act(peer: Peer, action: tuple[str, int]) -> None:
    name, n = action
    shell = n % 3
    known: dict[str, Callable[[], object]] = {
        "up": lambda: peer.tell(UP, shell), "ended": lambda: peer.tell(Ended((0, 256, 15, 139)[n % 4]), shell),
        "late": lambda: peer.tell(Ended(15, timed_out=True), shell),
        "lost": lambda: peer.tell(Lost("lost"), shell), "not started": lambda: peer.tell(NotStarted("no"), shell),
        "event": lambda: peer.say(exception(severity=n % 3, wait_status=n)),
        "start": lambda: peer.say(start(ranks="0-2", reattach=n % 2 == 0, spec=jobspec(slots=3))),
        "expiration": lambda: peer.say(Request("job-exec.expiration", {"id": 1, "expiration": 1000 + n % 50}, 5)),
        "time": lambda: peer.loop.run(lambda: bool(peer.got), 1), "reload": lambda: _reload(peer),
    }
    known[name]()


NAMES = ["up", "up", "up", "ended", "ended", "late", "lost", "not started", "event", "start", "expiration", "time",
         "reload"]


#: A stream, a letter each: start, reattached, exception (fatal), exception (other: x), partial release, finish, Final.
STREAM = re.compile(r"(?:[sr][rxpe]*f|r*e?)F")


def letters(stream: list[tuple[str, Any]]) -> str:
    return "".join("F" if data.get("final") else "p" if kind == "release" else "x" if data.get("severity") else kind[0]
                   for kind, data in stream)


def released(stream: list[tuple[str, Any]]) -> list[int]:
    return [rank for kind, data in stream if kind == "release" for rank in Idset.parse(data["ranks"])]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 11)), max_size=25), st.booleans(), st.booleans())
def test_no_forbidden_response_whatever_happens(actions: list[tuple[str, int]], partial: bool, reattach: bool) -> None:
    # "An exception response MAY be sent at any point. start and/or finish responses MAY be omitted ... The final
    # release response SHALL be the last response sent by the execution service for a given job ID"
    peer = Peer(partial=partial)
    peer.hand.known |= {1} if reattach else set()
    kept = []
    with pytest.MonkeyPatch.context() as patch:         # the guard has nothing to hold back
        patch.setattr(service_module.log, "error", lambda text, *rest: kept.append(text % rest))
        streams: list[list[tuple[str, Any]]] = [[]]
        peer.say(start(ranks="0-2", reattach=reattach, spec=jobspec(slots=3)))
        for action in actions:
            streams[-1] += peer.answers()
            if action[0] == "reload":
                streams.append([])
            _act(peer, action)
        peer.say(exception())                           # whatever is still to come ends in the final release
        peer.loop.run()
        streams[-1] += peer.answers()
    assert [text for text in kept if "not sent" in text] == []
    assert peer.service.jobs == {} and peer.service.state is State.REGISTERED
    for number, stream in enumerate(streams):
        *whole, rest = re.split("(?<=F)", letters(stream))
        assert [text for text in whole if not STREAM.fullmatch(text)] == []
        assert STREAM.fullmatch(rest + ("F" if rest.endswith("f") else "fF" if rest[:1] in ("s", "r") else "F"))
        assert number < len(streams) - 1 or rest == ""
        for text in whole:
            part, stream = stream[:len(text)], stream[len(text):]
            assert sorted(released(part)) == [0, 1, 2]


@pytest.mark.parametrize(("status", "expected"), [
    (0, 0), (768, 768), (15, 143 << 8), (139, 139 << 8), (0x7F, None), (-1, None), (1 << 16, None)])
def test_wait_status_override(status: int, expected: int | None) -> None:
    assert wait_status_override(status) == expected
