"""The checker of recorded streams: every rule by a stream that breaks it, huge and broken streams, the command."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sssjob.cli import main
from sssjob.fluxexec.check import ALL_RULES, StreamCheck
from sssjob.fluxexec.messages import EXCEPTION, HELLO, Event, Message, Request, Response, to_line
from sssjob.fluxexec.rules import PROFILES, Profile
from sssjob.lrm.flux.errors import EXEC_LIMITS
from sssjob.lrm.flux.jobspec import write_r
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import vectors

Said = Message | bytes

HI: list[Said] = [Request(HELLO, {"service": "x"}, 3), Response(HELLO, None, 3)]


def start(number: int = 1, *, ranks: str = "0-3", reattach: Any = False, **more: Any) -> Request:
    payload = {"id": number, "userid": 0, "jobspec": {}, "R": write_r(Idset.parse(ranks)), "reattach": reattach}
    return Request("x.start", {**payload, **more})


def say(kind: Any, data: Any = None, number: Any = 1) -> Response:
    return Response("x.start", {"id": number, "type": kind, "data": {} if data is None else data})


def release(ranks: str = "0-3", final: bool = True) -> Response:
    return say("release", {"ranks": ranks, "final": final})


DONE: list[Said] = [say("finish", {"status": 0}), release()]


def violations(*messages: Said, profile: Profile = "flux-core", **limits: int) -> list[tuple[int, str]]:
    check = StreamCheck(profile, replace(EXEC_LIMITS, **limits))
    lines = [m if isinstance(m, bytes) else to_line(m) for m in messages]
    return [(v.line, v.rule.id) for v in check.check(io.BytesIO(b"".join(lines)))]


BAD: list[tuple[str, list[Said], list[tuple[int, str]]]] = [
    ("unknown-type", [*HI, start(), say("dance"), say(None), say([]), *DONE[1:]],
     [(4, "unknown-type"), (5, "unknown-type"), (6, "unknown-type")]),
    ("data", [*HI, start(), say("start", [])], [(4, "data")]),
    ("member", [*HI, start(), say("start"), say("finish", {"status": 1.0}), *DONE], [(5, "member")]),
    ("note", [*HI, start(), say("exception", {"severity": 1, "type": "x"})], [(4, "note")]),
    ("severity", [*HI, start(), say("start"), say("exception", {"severity": 9, "type": "x", "note": ""}), *DONE],
     [(5, "severity")]),
    ("after-final", [*HI, start(), say("start"), *DONE, say("start"), release()],
     [(7, "after-final"), (8, "after-final")]),
    ("start-twice", [*HI, start(), say("start"), say("start"), *DONE], [(5, "start-twice")]),
    ("start-late", [*HI, start(), say("exception", {"severity": 0, "type": "x", "note": ""}), say("start"), release()],
     [(5, "start-late")]),
    ("reattached", [*HI, start(), say("reattached"), say("start"), *DONE], [(4, "reattached")]),
    ("start-for-reattach", [*HI, start(reattach=True), say("start"), *DONE], [(4, "start-for-reattach")]),
    ("finish-twice", [*HI, start(), say("start"), DONE[0], *DONE], [(6, "finish-twice")]),
    ("finish-early", [*HI, start(), *DONE], [(4, "finish-early")]),
    ("idset", [*HI, start(), say("start"), release("zzz", False), *DONE], [(5, "idset")]),
    ("outside-R", [*HI, start(), say("start"), release("7", False), *DONE], [(5, "outside-R")]),
    ("released-twice", [*HI, start(), say("start"), release("1-2", False), release("2", False), DONE[0],
                        release("0,3")], [(6, "released-twice")]),
    ("no-ranks", [*HI, start(), say("start"), release("", False), *DONE], [(5, "no-ranks")]),
    ("all-not-final", [*HI, start(), say("start"), release("all", False), *DONE], [(5, "all-not-final")]),
    ("ranks-left", [*HI, start(), say("start"), DONE[0], release("0-2")], [(6, "ranks-left")]),
    ("final-early", [*HI, start(), say("start"), release()], [(5, "final-early")]),
    ("no-message", [*HI, b"garbage\n", b'{"m":"resp"}\n', b"[]\n", b"\xff\n", b"[" * 10000 + b"\n", b"\n"],
     [(n, "no-message") for n in range(3, 8)]),
    ("too-long", [b"x" * 5000 + b"\n", *HI, b"y" * 5000], [(1, "too-long"), (4, "too-long")]),
    ("unknown-job", [*HI, start(), say("start", number=2)], [(4, "unknown-job")]),
    ("no-id", [*HI, start(), say("start", number="1"), say("start", number=1 << 70), Response("x.start", None)],
     [(4, "no-id"), (5, "no-id"), (6, "no-id")]),
    ("no-service", [*HI, start(), Response("y.start", {"id": 1, "type": "start", "data": {}})], [(4, "no-service")]),
    ("errnum", [*HI, start(), Response("x.start", None, 0, 38), *DONE], [(4, "errnum"), (5, "no-service"),
                                                                         (6, "no-service")]),
    ("hello-form", [Request(HELLO, {"service": 7}, 1), Request(HELLO, None, 1)],
     [(1, "hello-form"), (2, "hello-form")]),
    ("hello-refused", [*HI, start(), Request(HELLO, {"service": "y"}, 3), Response(HELLO, None, 3, 22)],
     [(5, "hello-refused")]),
    ("start-before-hello", [start()], [(1, "start-before-hello")]),
    ("start-form", [*HI, start(R={}), start(jobspec=None), start(reattach=0), start(userid="me"), start(number=-1),
                    Request("x.start", [])], [(n, "start-form") for n in range(3, 9)]),
    ("start-tag", [*HI, replace(start(), tag=7), say("start"), *DONE], [(3, "start-tag")]),
    ("doubled-start", [*HI, start(), start(), say("start"), *DONE], [(4, "doubled-start")]),
    ("expiration-form", [*HI, Request("x.expiration", {"id": 1}, 1),
                         Request("x.expiration", {"id": 1, "expiration": 2.5}, 2)], [(3, "expiration-form")]),
    ("nobody-asked", [*HI, Response("x.expiration", None, 9)], [(3, "nobody-asked")]),
    ("too-many-jobs", [*HI, start(1), start(2), start(3)], [(5, "too-many-jobs")]),
]


@pytest.mark.parametrize(("messages", "expected"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_rules(messages: list[Said], expected: list[tuple[int, str]]) -> None:
    deep = any(b"[[" in m for m in messages if isinstance(m, bytes))
    assert violations(*messages, line_bytes=12000 if deep else 4096, jobs=2) == expected


def test_every_rule_has_a_stream() -> None:
    # "all" is broken in the profile of 2022 only, below
    assert {case[0] for case in BAD} == set(ALL_RULES) - {"all"}


def test_ranks_that_are_released_twice_are_seen_without_R() -> None:
    """Of a service alone, or where the request had no ranks; which ranks there are is not known then."""
    responses = [(1, "start", {}), *((1, "release", {"ranks": ranks, "final": False}) for ranks in ("0-2", "2-4", "")),
                 (1, "finish", {"status": 0}), (1, "release", {"ranks": "5", "final": True})]
    lines = b"".join(json.dumps({"id": i, "type": kind, "data": data}).encode() + b"\n" for i, kind, data in responses)
    assert [(v.line, str(v.text)) for v in StreamCheck().check(io.BytesIO(lines))] == [
        (3, "release of ranks 2 twice"), (4, "release of no ranks that is not final")]


@pytest.mark.parametrize("profile", PROFILES)
def test_what_the_profiles_differ_in(profile: Profile) -> None:
    old, core = profile == "rfc32-2022", profile == "flux-core"

    def here(*messages: Said) -> list[tuple[int, str]]:
        return violations(*messages, profile=profile)

    assert here(*HI, start(), say("start"), DONE[0], release("all")) == ([(6, "all")] if old else [])
    again = [*HI, start(reattach=True)]
    assert here(*again, say("reattached"), *DONE) == ([(4, "unknown-type")] if old else [])
    assert here(*again, say("start"), *DONE) == ([] if old else [(4, "start-for-reattach")])
    assert here(*again, *DONE) == ([] if old else [(4, "finish-early")])
    assert here(*HI, start(), say("exception", {"severity": 0, "type": "x"}), release()) == (
        [(4, "note"), (5, "final-early")][:1] if core else [])
    assert here(*HI, start(R=None)) == ([] if old else [(3, "start-form")])
    hello = Request(HELLO, {"service": "x"}, 4)
    service: list[Said] = [say("start", number=5), hello]
    assert here(HI[0], *service) == ([] if profile == "rfc32-2026" else [(3, "hello-refused")])


@pytest.mark.parametrize("messages", [
    [*HI, start(), say("start"), *DONE, start(1), say("start"), *DONE],
    [*HI, start(), release()], [*HI, start(), say("exception", {"severity": 0, "type": "x", "note": ""}), release()],
    [*HI, start(), say("start"), Event(EXCEPTION, {"id": 1, "type": "cancel", "severity": 0}), release()],
    [*HI, start(), say("start"), Response("x.start", None, 0, 125), *HI, start(reattach=True), say("reattached"),
     *DONE],
    [*HI, start(), say("start"), *HI, start(reattach=True), say("reattached"), release("0", False), DONE[0],
     release("1-3")],
    [*HI, start(), start(reattach=True), say("reattached"), *DONE],
    [*HI, Request("x.expiration", {"id": 1, "expiration": 2}, 9), Response("x.expiration", None, 9, 2),
     b'{"m":"what"}\n'],
    [say("start"), *DONE, Event("other", None), Response("x.stop", {})],
    [b'{"id":1,"type":"start","data":{}}\n', b'{"id":1,"type":"finish","data":{"status":0}}\n'],
])
def test_what_is_right(messages: list[Said]) -> None:
    assert violations(*messages) == []


@pytest.mark.parametrize("vector", vectors("exec-sequences"), ids=lambda v: v["name"])
def test_recorded(vector: dict[str, Any]) -> None:
    # A real job manager took these; what it ignored or took with a shrug is what breaks a rule.
    broken = {"exception0-before-start-then-start-finish": ["start-late", "finish-early"],
              "two-exception0-first-wins": [], "finish-status-string-ignored": ["member"],
              "release-final-int-ignored": ["member"], "final-release-in-RUN-then-reattach": ["final-early"]}
    steps = [Event(EXCEPTION, {"id": 1, "type": "cancel", "severity": 0}) if step == "@cancel" else
             say(step["type"], step["data"]) for step in vector["steps"] if isinstance(step, dict) or step == "@cancel"]
    found = [rule for _, rule in violations(*HI, start(ranks="0"), *steps)]
    assert found == broken.get(vector["name"], [])


def huge(count: int) -> Iterator[bytes]:
    yield from (to_line(m) for m in HI if not isinstance(m, bytes))
    for number in range(1, count + 1):
        yield to_line(start(number, ranks="0"))
        for kind, data in (("start", {}), ("finish", {"status": 0}), ("release", {"ranks": "0", "final": True})):
            yield to_line(say(kind, data, number))


class Lines(io.RawIOBase):
    """A stream that is made while it is read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.lines = lines

    def readline(self, size: int | None = -1) -> bytes:
        return next(self.lines, b"")


def test_jobs_that_are_over_are_forgotten() -> None:
    check = StreamCheck(limits=replace(EXEC_LIMITS, jobs=100))
    assert list(check.check(Lines(huge(2000)))) == []       # type: ignore[arg-type]
    assert check.lines == 8002 and not check.open and len(check._over) == 100 and not check._asked


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    messages = [*HI, start(), say("start"), release(), start(2)]
    path.write_bytes(b"".join(to_line(m) for m in messages if not isinstance(m, bytes)))
    assert main(["flux-exec", "check", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == (
        f"{path}:5: final-early: job 1: final release before finish; flux-core sends the start request again, with "
        "reattach when the job was started: for ever, if the service goes on like this\n")
    assert captured.err == "jobs without a final release, where the stream ends: 1\n"
    assert main(["flux-exec", "check", "--json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "line": 5, "rule": "final-early", "job": 1, "message": "final release before finish",
        "flux_core": ALL_RULES["final-early"].effect}
    path.write_bytes(b"".join(huge(1)))
    assert main(["flux-exec", "check", "--profile", "rfc32-2022", str(path)]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["flux-exec", "check", str(tmp_path / "none")]) == 3
    assert "No such file" in capsys.readouterr().err


def test_the_page_has_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "flux-exec.md").read_text()
    table = page[page.index("| rule | broken by"):page.index("## Small formats")].splitlines()[2:]
    rows = [row.split("|") for row in table if row.startswith("|")]
    assert {row[1].strip(" `"): row[3].strip() for row in rows} == {r.id: r.effect for r in ALL_RULES.values()}
