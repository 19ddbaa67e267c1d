"""Strange answers of managers change nothing: what cannot be read is no answer, and what is read of a part is true.

The answers are those of the stand-ins, to the question about the queue and to that about ends; each is spoilt in every
way that a cut line, another locale, another release or another job could spoil it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, JobStatus
from psij.executors.batch._followed import LastAnswer
from psij.executors.batch._identity import Identity, Whose
from psij.executors.batch._sound import sound
from psij.executors.batch._terms import Source
from tests.psij.batch_support import Stand, ended, quick_stand, runs
from tests.psij.managers import MANAGERS, Manager

Parse = Callable[[int, str], Mapping[str, JobStatus]]
_PLACES = 300           # at which an answer is cut
_OTHERS = ("", "\n", "\0", "<html><body>503</body></html>", "[]", "{}", "null", "{\"jobs\": 3}",
           "slurm_load_jobs error", "Warnung: Dienst nicht erreichbar\n", "|" * 50 + "\n", "\ufeff", "x" * 100_000)


def _of(statuses: Mapping[str, JobStatus]) -> dict[str, tuple[Any, ...]]:
    """What counts of statuses."""
    return {one: (status.state, status.exit_code, (status.metadata or {}).get("native_state"))
            for one, status in statuses.items()}


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of the resource managers."""
    return MANAGERS[request.param]


@pytest.fixture
def stand(manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with quick_stand(manager, tmp_path, monkeypatch) as stand:
        yield stand


@pytest.fixture
def answers(stand: Stand) -> dict[str, tuple[Parse, str]]:
    """Parsers and true answers by what was asked: two jobs that run, and one of them that has ended."""
    jobs = [runs(stand), runs(stand)]
    ids = [job.native_id or "" for job in jobs]
    executor = stand.executor
    answers: dict[str, tuple[Parse, str]] = {
        "queue": (executor.parse_status_output, executor._ask(executor.get_status_command(ids))[1])}
    stand.lab.end(ids[0], 3)
    ended(jobs[0])
    for source in executor._sources(ids[:1]):
        for command in source.commands:
            answers[source.name] = partial(_parsed, source), executor._ask(command)[1]
    return answers


def _parsed(source: Source, exit_code: int, out: str) -> Mapping[str, JobStatus]:
    """What a source says of all jobs in an answer, whoever they are."""
    return source.parse(exit_code, out, Whose())


def _spoilt(out: str) -> Iterator[tuple[str, str]]:
    """Ways to spoil an answer, each with its name."""
    step = max(1, len(out) // _PLACES)
    yield from ((f"cut at {n}", out[:n]) for n in range(0, len(out), step))
    yield from ((f"without its first {n}", out[n:]) for n in range(1, len(out), step * 7))
    yield "another alphabet", re.sub("[A-Za-z]", lambda match: chr(ord(match[0]) + 0x3D0), out)
    yield "other digits", re.sub("[0-9]", lambda match: chr(ord(match[0]) + 0x630), out)
    yield "without separators", re.sub("[|,:=]", " ", out)
    yield "a column less", re.sub(r"^[^|\n]*\|", "", out, flags=re.MULTILINE)
    yield "a column more", re.sub(r"\|", "|x|", out, count=0)
    yield "columns in another order", "\n".join("|".join(reversed(line.split("|"))) for line in out.split("\n"))
    yield "decimal commas", re.sub(r"(\d)\.(\d)", r"\1,\2", out)
    yield from (("other", text) for text in _OTHERS)
    try:
        answer = json.loads(out)
    except ValueError:
        return
    odds: tuple[Any, ...] = (None, [], {}, "x", -1, 1e400, True)
    for odd in odds:
        yield from ((f"{path} is {odd!r}", json.dumps(changed)) for path, changed in _with(answer, odd))


def _with(value: Any, odd: Any) -> Iterator[tuple[str, Any]]:
    """The value with something odd in place of each of its parts."""
    yield "", odd
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        for path, changed in _with(one, odd):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = changed
            yield f"/{key}{path}", copy


def test_no_spoilt_answer_says_anything_else(answers: dict[str, tuple[Parse, str]]) -> None:
    """Each is refused as a whole, or says of each job what the true one says, or nothing; half a history of a job may
    lack its end, and is asked for again."""
    wrong = []
    for name, (parse, out) in answers.items():
        truth = _of(parse(0, out))
        assert truth or name != "queue"
        for how, text in _spoilt(out):
            for code in (0, 1):
                try:
                    said = _of(parse(code, text))
                except Exception:       # it is no answer
                    continue
                wrong += [(name, how, one, status) for one, status in said.items()
                          if one in truth and status[0] is not truth[one][0] and (name == "queue" or status[0].final)]
    assert wrong == []


def test_what_is_left_of_a_cut_answer_is_as_the_whole_one_says(answers: dict[str, tuple[Parse, str]]) -> None:
    """A record that lacks its last fields or a digit of its code is none, also where it is cut off behind a line: the
    facts that it lacks would never come. But a row of sacct has no word of the steps that follow it."""
    wrong = []
    for name, (parse, out) in answers.items():
        truth = {native_id: _all_of(status) for native_id, status in parse(0, out).items()}
        for end in range(len(out)):
            if name == "sacct" and re.match(r"\d+\.", out[end:]):
                continue
            with suppress(Exception):       # it is no answer
                wrong += [(name, out[:end][-40:], status) for native_id, status in parse(0, out[:end]).items()
                          if truth.get(native_id) != _all_of(status)]
    assert wrong == []


def test_what_no_job_can_have_is_no_fact(answers: dict[str, tuple[Parse, str]]) -> None:
    """Times of another age, names in which bytes are broken, and a record that stands there twice: what is left of each
    status is as the whole answer says, or is not there."""
    wrong = []
    for name, (parse, out) in answers.items():
        truth = {native_id: _facts_of(status) for native_id, status in parse(0, out).items()}
        for how, text in _damaged(out):
            with suppress(Exception):       # it is no answer
                wrong += [(name, how, key, value) for native_id, status in parse(0, text).items()
                          for key, value in _facts_of(status).items()
                          if native_id in truth and key in _FACTS and truth[native_id].get(key) != value]
    assert wrong == []


_FACTS = ("submit_time", "start_time", "end_time", "nodes", "queue", "account", "qos", "machine", "starts", "attempts",
          "cpu_seconds", "processors", "node_count", "wall_seconds")


def _facts_of(status: JobStatus) -> Mapping[str, Any]:
    return sound(status, Identity(since=time.time() - 60), time.time())[0].metadata or {}


def _damaged(out: str) -> Iterator[tuple[str, str]]:
    """Ways to damage an answer so that it still has its form."""
    for year, seconds in ("1969", -31536000), ("1970", 0), ("9999", 253370764800):
        yield year, re.sub(r"\b20\d\d\b", year, re.sub(r"\b1[789]\d{8}(\.\d+)?\b", str(seconds), out))
    for odd in ("\0", "\udcff", "\x1b", "\u202e", "\x85"):
        yield from ((f"{odd!r} at {word.end()}", f"{out[:word.end()]}{odd}{out[word.end():]}")
                    for word in re.finditer(r"[a-z](?=[a-z])(?<=[^a-z].)", out))
    yield "twice", out + out
    yield "each line twice", "".join(line * 2 for line in out.splitlines(keepends=True))
    for odd_json in ('"x"', "{}", "[1]", "true", "1e400", "9" * 30):
        yield f"numbers are {odd_json}", re.sub(r"(?<=: )[\d.]+(?=[,}])", odd_json, out)


def test_what_no_job_can_have_is_left_out() -> None:
    """A time counts up to 27 hours before the intent and after the present, for a clock may be set to another zone; so
    do those of attempts."""
    since = 1.7e9
    near, early, far = since - 26 * 3600, since - 28 * 3600, since + 28 * 3600
    facts = {"submit_time": near, "start_time": early, "end_time": far - 7200, "processors": -1, "nodes": [],
             "attempts": [{"start_time": early, "starts": 1, "why": "\udcff"}]}
    status, odd = sound(JobStatus(JobState.ACTIVE, time=far, metadata=facts), Identity(since=since), since)
    attempts = [{"starts": 1, "why": "\ufffd"}]
    assert status.metadata == {"submit_time": near, "end_time": far - 7200, "attempts": attempts}
    assert odd == [f"start_time {early} is no time of it"] and status.time == since
    assert sound(JobStatus(JobState.FAILED, metadata={"end_time": far}), None, since)[0].metadata == {}


def test_an_answer_in_another_form_lists_nobody(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no line, element or object is a job that can be understood, that is no list without our job in it."""
    job = runs(stand)
    executor = stand.executor
    command = executor.get_status_command([job.native_id or ""])
    out = executor._ask(command)[1]
    for how, text in (("lower case", re.sub(r"^.*\bjobid\b.*\n(?=\d)", "", out.lower())),
                      ("a page", "<html>503</html>"), ("other digits", re.sub(r"(?m)^\d+(?=\|)", "\u0661", out))):
        monkeypatch.setattr(executor, "_ask", lambda command, text=text: (0, text))
        for form in range(len(getattr(executor, "_FORMS", ("only",)))):
            vars(executor).update({"_form": form} if hasattr(executor, "_form") else {})
            try:
                listed_ids = executor._ask_queue(command, LastAnswer([job.native_id or ""]))
            except Exception:       # it is no answer
                continue
            assert job.native_id in listed_ids, (how, form)


def _all_of(status: JobStatus) -> tuple[Any, ...]:
    """All that a status says; its time, where the manager tells none, is the present."""
    return status.state, status.exit_code, status.message, status.metadata


def test_no_spoilt_answer_finds_another_job(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for a tag gives the job that bears it, or none; what cannot be read is silence."""
    tag, executor = runs(stand).id, stand.executor
    answers = [executor._ask(command) for command in executor._lookup_commands([tag]) or ()]
    monkeypatch.setattr("psij.executors.batch.lrm.recorded", lambda directory, host: ())
    truth = {native_id for _, out in answers for native_id in executor._parse_lookup(out).get(tag, ())}
    assert truth or not answers
    for _, out in answers:
        for how, text in _spoilt(out):
            monkeypatch.setattr(executor, "_ask", lambda command, text=text: (0, text))
            ids, _ = executor._look_up([tag])
            assert how.startswith(("without its first", "/")) or set(ids.get(tag, ())) <= truth, (how, ids)


@pytest.mark.parametrize("out", _OTHERS)
def test_a_strange_answer_does_not_say_that_there_is_no_such_job(stand: Stand, manager: Manager, out: str,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission of which nobody knows whether it made a job would be given up, or made again, while its job is
    there."""
    executor = stand.executor
    monkeypatch.setattr(executor, "_ask", lambda command: (0, out))
    monkeypatch.setattr("psij.executors.batch.lrm.recorded", lambda directory, host: ())
    is_empty = not out.strip() or out == manager.empty[0][1]
    assert not executor._lookup_commands(["t"]) or is_empty or executor._look_up(["t"]) == ({}, False)


@pytest.mark.parametrize("out", _OTHERS)
def test_a_strange_answer_ends_no_job(stand: Stand, manager: Manager, out: str) -> None:
    """As long as it is all that is said, the job stays as it was; then its true end is found."""
    job = runs(stand)
    before, asked = job.status.state, len(stand.lab.calls(manager.queue))
    for command in (manager.queue, *manager.ends):
        stand.lab.fault(command, times=-1, stdout=out.replace("\0", ""), exit=0)
    if (manager.silent_is_none and not out.strip()) or out == manager.empty[0][1]:
        return                          # that is how it says that there are no jobs
    until = time.monotonic() + 60
    while len(stand.lab.calls(manager.queue)) < asked + 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert job.status.state is before
    for command in (manager.queue, *manager.ends):
        stand.lab.heal(command)
    stand.lab.end(job.native_id or "", 4)
    assert ended(job).exit_code == 4
