"""Event logs of Flux: the three forms say the same, they say what ``flux-jobs`` says, ids, ends, bad lines."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.model import Job
from sssjob.lrm.flux.ids import write_id
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import recognise
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures" / "flux-0.88"
NUMBER = 57545850880
_ENDS = ("ExitCode", "StatusMessage")
SPEC = json.loads((FIXTURES / "job-info-jobspec.json").read_text())
GIVEN = {"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1", "gpu": "0-2"}}],
                                     "nodelist": ["n[1-2]"], "starttime": 0, "expiration": 0}}
LIFE: tuple[tuple[float, str, dict[str, Any]], ...] = (
    (1795251000.9, "submit", {"userid": 1001, "urgency": 16, "flags": 0, "version": 1}),
    (1795251001.0, "validate", {}), (1795251001.1, "depend", {}), (1795251001.5, "priority", {"priority": 16}),
    (1795251010.75, "alloc", {"annotations": {"sched": {"resource_summary": "rank[0-1]/core[0-1],gpu[0-2]"}}}),
    (1795251010.8, "start", {}), (1795251020.5, "finish", {"status": 0}),
    (1795251020.6, "release", {"ranks": "all", "final": True}), (1795251020.7, "free", {}), (1795251020.8, "clean", {}))


def events(*life: tuple[float, str, dict[str, Any]], **more: Any) -> str:
    made = ({"timestamp": at, "name": name, **({"context": said} if said else {}), **more} for at, name, said in life)
    return "".join(json.dumps(event) + "\n" for event in made)


def text(*life: tuple[float, str, dict[str, Any]]) -> str:
    return "".join(f"{at:.6f} {name}" + "".join(f" {k}={json.dumps(v)}" for k, v in said.items()) + "\n"
                   for at, name, said in life)


def journal(*life: tuple[float, str, dict[str, Any]], number: int = NUMBER) -> str:
    beside = {"submit": {"jobspec": SPEC}, "alloc": {"R": GIVEN}}
    return "".join(json.dumps({"id": number, "events": [{"timestamp": at, "name": name, "context": said}],
                               **beside.get(name, {})}) + "\n" for at, name, said in life)


def read(data: str | bytes, *, keep: bool = False, **options: str) -> tuple[list[Job], Counts, list[str], list[str]]:
    reader = get("flux-eventlog")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"machine": "m", **options})
    stream = reader.stream(BytesIO(data.encode() if isinstance(data, str) else data), context)
    if keep:
        stream.keep()
    jobs = list(stream)
    assert stream.counts.read == stream.counts.given + stream.counts.rejected
    return jobs, stream.counts, [f"{f.line} {f.rule} {f.message}" for f in context.findings], stream.kept


def delivered(job: Job) -> dict[str, str]:
    return {} if job.delivered is None else {p.tag: p.text for p in job.delivered.properties()}


def test_the_forms_say_the_same() -> None:
    ways = [read(events(*LIFE), id=str(NUMBER)), read(text(*LIFE), id=write_id(NUMBER, "kvs")),
            read(events(*LIFE, id=write_id(NUMBER)))]
    assert len({write_document(job) for (job,), *_ in ways}) == 1
    for (job,), counts, findings, _ in ways:
        assert (counts.read, counts.given, counts.jobs, findings) == (10, 10, 1, [])
        assert {t: job.value(t) for t in ("Id", "User", "SubmitTime", "StartTime", "EndTime", "ExitCode", "State")} == {
            "Id": write_id(NUMBER, "f58"), "User": "1001", "SubmitTime": 1795251000, "StartTime": 1795251010,
            "EndTime": 1795251020, "ExitCode": 0, "State": "Completed"}
        assert delivered(job) == {"Processors": "4", "NodeCount": "2", "Duration": "10", "Resource": "6"}


def test_the_journal_knows_more() -> None:
    (job,), *_ = read(journal(*LIFE))
    assert {t: job.value(t) for t in ("Name", "Project", "InitialWorkingDirectory")} == {
        "Name": "python3", "Project": "chem", "InitialWorkingDirectory": "/home/alice/flux"}
    assert delivered(job) == {"Processors": "4", "NodeCount": "2", "Duration": "10", "Node": "n1,n2", "Resource": "6"}
    assert job.requested is not None
    assert {p.tag: p.text for p in job.requested.properties()} == {"Processors": "2", "Duration": "300"}


@pytest.mark.parametrize("said", [j for j in json.loads((FIXTURES / "jobs-end.json").read_text())["jobs"]],
                         ids=lambda j: str(j["id"]))
def test_both_formats_say_the_same_of_the_recorded_jobs(said: dict[str, Any]) -> None:
    """The log that a recorded job must have had, by the states of RFC 21."""
    life: list[tuple[float, str, dict[str, Any]]] = [
        (said["t_submit"], "submit", {"userid": said["userid"], "urgency": said["urgency"], "flags": 0, "version": 1})]
    for name, event in (("t_priority", "priority"), ("t_run", "alloc")):
        if name in said:
            life.append((said[name], event, {"priority": said["priority"]} if event == "priority" else {
                "annotations": said["annotations"]}))
    told = said["exception"]
    if told["occurred"] and told["severity"] == 0 and (said["returncode"] == -128 or told["type"] != "exec"):
        life.append((said["t_cleanup"], "exception", {k: told[k] for k in ("type", "severity", "note")}))
    if "waitstatus" in said:
        life.append((said["t_cleanup"], "finish", {"status": said["waitstatus"]}))
    life.append((said["t_inactive"], "clean", {}))
    (job,), *_ = read(events(*life, id=said["id"]))
    reader = get("flux-jobs")
    (other, _), = reader.read(json.dumps({"jobs": [said]}).encode(), ReadContext(options={"machine": "m"})).jobs()
    for tag in ("Id", "State", "SubmitTime", "StartTime", "EndTime"):
        assert job.value(tag) == other.value(tag), tag
    shared = {k: v for k, v in delivered(other).items() if k != "Node"}
    assert delivered(job) == shared
    if told.get("type") not in ("exec", "alloc"):
        assert [job.value(t) for t in _ENDS] == [other.value(t) for t in _ENDS]


@pytest.mark.parametrize(("life", "state", "code", "signal", "message"), [
    (LIFE[:4], "Idle", None, None, None),
    ((*LIFE[:4], (1795251002.0, "urgency", {"urgency": 0, "userid": 0})), "Hold", None, None, None),
    (LIFE[:6], "Running", None, None, None), (LIFE[:7], "Running", 0, None, None),
    ((*LIFE[:6], (1795251020.5, "finish", {"status": 9}), LIFE[-1]), "Completed", None, "9", "failed: returncode -9"),
    ((*LIFE[:6], (1795251020.5, "finish", {"status": 768}), LIFE[-1]), "Completed", 3, None, "failed: returncode 3"),
    ((*LIFE[:4], (1795251005.0, "exception", {"type": "cancel", "severity": 0, "note": "no"}), LIFE[-1]), "Completed",
     None, None, "cancel: cancel: no"),
    ((*LIFE[:4], (1795251005.0, "exception", {"type": "alloc", "severity": 0, "note": "no"}), LIFE[-1]), "Completed",
     None, None, "launch: alloc: no"),
    ((*LIFE[:6], (1795251015.0, "exception", {"type": "info", "severity": 7, "note": ""}), *LIFE[6:]), "Completed", 0,
     None, None),
    ((*LIFE[:6], (1795251020.0, "exception", {"type": "timeout", "severity": 0, "note": ""}), (
        1795251020.5, "finish", {"status": 36352}), LIFE[-1]), "Completed", 142, None, "timeout: timeout"),
])
def test_ends(life: Any, state: str, code: int | None, signal: str | None, message: str | None) -> None:
    (job,), *_ = read(events(*life, id=1))
    found = next((p.text for p in job.all("Extension") if p.get("name") == "ExitSignal"), None)
    assert ([job.value(t) for t in ("State", "ExitCode", "StatusMessage")], found) == ([state, code, message], signal)


def test_the_time_between_the_exception_and_the_last_task_is_told() -> None:
    life = (*LIFE[:6], (1795251020.0, "exception", {"type": "timeout", "severity": 0, "note": ""}),
            (1795251050.0, "finish", {"status": 15}), LIFE[-1])
    (job,), _, findings, _ = read(events(*life, id=1))
    assert delivered(job)["Duration"] == "9"
    assert "Duration: cleanup - alloc says 9, finish - alloc says 39" in findings[0]


def test_events_of_several_jobs_and_jobs_that_have_not_ended() -> None:
    mixed = "".join(a + b for a, b in zip(journal(*LIFE, number=1).splitlines(True),
                                          journal(*LIFE, number=2).splitlines(True), strict=True))
    jobs, counts, *_ = read(mixed)
    assert [j.value("Id") for j in jobs] == [write_id(1, "f58"), write_id(2, "f58")] and counts.given == 20
    log = journal(*LIFE[:5], number=3)
    assert read(mixed + log, keep=True)[3] == log.splitlines()


def test_what_is_changed_after_submission() -> None:
    update = (1795251001.2, "jobspec-update", {"attributes.system.duration": 60, "attributes.system.queue": "gpu"})
    (job,), *_ = read(journal(*LIFE[:3], update, *LIFE[3:]))
    assert job.requested is not None and (job.requested.value("Duration"), job.value("Queue")) == (60, "gpu")


def test_times_in_words() -> None:
    (job,), *_ = read("2026-11-21T08:50:00.900000Z submit userid=1 urgency=16\n", id="1")
    assert job.value("SubmitTime") == 1795251000


@pytest.mark.parametrize(("line", "reason"), [
    ("nothing", "columns"), ("[Nov21 09:00] submit userid=1", "columns"), ("1.5 submit userid=x", "json"),
    ("1.5 submit userid", "json"), ("{", "json"), ('{"timestamp": 1.5}', "json"), ('{"name": "x", "id": 1}', "time"),
    ('{"timestamp": -1, "name": "submit", "id": 1}', "time"),
    ('{"timestamp": 1e17, "name": "submit", "id": 1}', "time"),
    ('{"timestamp": true, "name": "submit", "id": 1}', "number"), ('{"timestamp": 1.5, "name": "submit"}', "id"),
    ('{"timestamp": 1.5, "name": "submit", "id": "f0"}', "id"), ('{"timestamp": 1.5, "name": "x", "id": 9}', "orphan"),
    ('{"id": 1, "events": 5}', "json"),
    ('{"id": 1, "events": [{"timestamp": 1.5, "name": "submit"}], "R": {}}', "json"),
    ('{"timestamp": 1.5, "name": "finish", "id": 1, "context": {"status": 65536}}', "number"),
    ("2026-11-21T08:50:00 submit userid=1", "zone"), ("[" * 100_000, "columns"), ('{"a":' * 100_000, "json"),
])
def test_what_is_rejected(line: str, reason: str) -> None:
    jobs, counts, *_ = read(events(*LIFE, id=77) + line + "\n" + events(*LIFE, id=78))
    assert counts.record()["reasons"] == {reason: 1} and len(jobs) == 2


def test_a_log_without_ids_is_of_one_job() -> None:
    jobs, counts, *_ = read(events(*LIFE) * 2, id="1")
    assert len(jobs) == 1 and counts.record()["reasons"] == {"id": 1, "orphan": 9}


@pytest.mark.parametrize("made", [events(*LIFE), text(*LIFE), journal(*LIFE)])
def test_it_is_recognised(made: str) -> None:
    assert [t.name for t, _ in recognise(made.encode())] == ["flux-eventlog"]
