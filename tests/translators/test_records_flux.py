"""``flux jobs --json``: the recorded jobs of a real broker, GPUs, absent members, bad members."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.model import Job
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import recognise
from sssjob.translators.records import _json
from sssjob.translators.records._flux import gpus_of
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.xml.writer import write_document

RECORDED = Path(__file__).parents[1] / "fixtures" / "flux-0.88" / "jobs-end.json"
JOB: dict[str, Any] = {
    "jobid": "\u0192S8Lq1y", "id": 7, "name": "run", "username": "alice", "bank": "chem", "queue": "gpu",
    "t_submit": 1795251000.9, "t_sched": 1795251001.5, "t_run": 1795251010.75, "t_cleanup": 1795251020.5,
    "runtime": 9.75, "duration": 60.0, "ncores": 4, "nnodes": 2, "nodelist": "n[1-2]", "state": "INACTIVE",
    "result": "COMPLETED", "returncode": 0,
    "annotations": {"sched": {"resource_summary": "rank[0-1]/core[0-1],gpu[0-2]"}}}


def read(data: bytes) -> tuple[list[Job], Counts, list[str]]:
    reader = get("flux-jobs")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"machine": "m"})
    stream = reader.stream(BytesIO(data), context)
    jobs = list(stream)
    assert stream.counts.read == stream.counts.given + stream.counts.rejected
    return jobs, stream.counts, [f"{f.rule} {f.message}" for f in context.findings]


def of(**more: Any) -> bytes:
    made = {k: v for k, v in (JOB | more).items() if v is not ...}
    return json.dumps({"jobs": [made]}).encode()


def test_a_job() -> None:
    (job,), _, findings = read(of())
    assert {t: job.value(t) for t in ("Id", "Name", "User", "Project", "Queue", "Machine", "SubmitTime", "StartTime",
                                      "EndTime", "ExitCode", "State")} == {
        "Id": "\u0192S8Lq1y", "Name": "run", "User": "alice", "Project": "chem", "Queue": "gpu", "Machine": "m",
        "SubmitTime": 1795251000, "StartTime": 1795251010, "EndTime": 1795251020, "ExitCode": 0, "State": "Completed"}
    assert job.delivered is not None
    assert {p.tag: p.text for p in job.delivered.properties()} == {
        "Processors": "4", "NodeCount": "2", "Duration": "10", "Node": "n[1-2]", "Resource": "6"}
    assert findings == []


def test_recorded_jobs() -> None:
    jobs, counts, findings = read(RECORDED.read_bytes())
    ends = [(j.value("Name"), j.value("ExitCode"), str(j.value("StatusMessage") or "").partition(":")[0],
             bool(j.delivered)) for j in jobs]
    assert counts.read == counts.jobs == 16 and findings == [
        "SSS501 attributes not carried over (in so many records): dependencies (1), t_depend (16), t_priority (15), "
        "uri (1)"]
    assert ends == [
        ("true", None, "cancel", False), ("sleep", 0, "", True), ("inbatch", 0, "", True),
        ("program", 127, "launch", True), ("true", None, "launch", False), ("sleep", 0, "", True),
        ("sleep", 0, "", True), ("sleep", 0, "", True), ("true", None, "cancel", False),
        ("sleep", None, "cancel", False), ("sleep", 142, "timeout", True), ("true", None, "launch", False),
        ("true", 0, "", True), ("python3", 0, "", True), ("sh", 139, "failed", True), ("sh", 3, "failed", True)]


@pytest.mark.parametrize(("more", "state", "signal"), [
    ({"state": "SCHED", "result": ..., "t_run": ..., "t_cleanup": ..., "returncode": ...}, "Idle", None),
    ({"state": "SCHED", "result": ..., "t_run": ..., "t_cleanup": ..., "urgency": 0}, "Hold", None),
    ({"state": "RUN", "result": ..., "t_cleanup": ...}, "Running", None),
    ({"result": "FAILED", "returncode": -9}, "Completed", "9"),
])
def test_states(more: dict[str, Any], state: str, signal: str | None) -> None:
    (job,), *_ = read(of(**more))
    found = next((p.text for p in job.all("Extension") if p.get("name") == "ExitSignal"), None)
    assert (job.value("State"), found) == (state, signal)


@pytest.mark.parametrize(("numbers", "more", "message"), [
    ({"state": 64, "result": 2, "waitstatus": 256}, {"result": "FAILED", "returncode": 1}, "failed: returncode 1"),
    ({"state": 64, "result": 2, "waitstatus": 9}, {"result": "FAILED", "returncode": -9}, "failed: returncode -9"),
    ({"state": 64, "result": 8, "waitstatus": 36352}, {"result": "TIMEOUT", "returncode": 142},
     "timeout: returncode 142"),
    ({"state": 64, "result": 1, "waitstatus": 0}, {"result": "COMPLETED", "returncode": 0}, None),
    ({"state": 64, "result": 4, "t_run": ..., "t_cleanup": ...},
     {"result": "CANCELED", "returncode": ..., "t_run": ..., "t_cleanup": ...}, "cancel: canceled"),
    ({"state": 16, "result": ..., "t_cleanup": ...}, {"state": "RUN", "result": ..., "returncode": ...,
                                                      "t_cleanup": ...}, None),
    ({"state": 8, "result": ..., "t_run": ..., "t_cleanup": ...},
     {"state": "SCHED", "result": ..., "returncode": ..., "t_run": ..., "t_cleanup": ...}, None)])
def test_the_numbers_of_the_interface(numbers: dict[str, Any], more: dict[str, Any], message: str | None) -> None:
    """Programs that ask Flux itself get numbers in place of words: all jobs had ended well by them."""
    (by_number,), *_ = read(of(**{"returncode": ..., **numbers}))
    (by_word,), *_ = read(of(**more))
    assert write_document(by_number) == write_document(by_word)
    assert by_number.value("StatusMessage") == message


@pytest.mark.parametrize(("summary", "count"), [
    ("rank0/core0", 0), ("rank[0-1,4]/core[0-3],gpu0", 3), ("rank0/core0,gpu[0-1] rank1/core0,gpu3", 3), ("gpu", 0)])
def test_gpus(summary: str, count: int) -> None:
    assert gpus_of(summary) == count


@pytest.mark.parametrize(("more", "reason"), [
    ({"jobid": ..., "id": ...}, "id"), ({"t_run": "soon"}, "number"), ({"t_run": 1e17}, "time"),
    ({"ncores": True}, "number"), ({"returncode": 300}, "number"), ({"username": "x" * 2000}, "too-long"),
])
def test_what_is_rejected(more: dict[str, Any], reason: str) -> None:
    assert read(of(**more))[1].record()["reasons"] == {reason: 1}


def test_a_document_that_is_cut_gives_what_is_whole() -> None:
    jobs, counts, _ = read(RECORDED.read_bytes()[:3000])
    assert len(jobs) == counts.given == 3 and counts.record()["reasons"] == {"torn": 1}
    assert read(b'{"jobs": [5, {}]}')[1].record()["reasons"] == {"id": 1, "json": 1}


def test_it_is_not_taken_for_sacct() -> None:
    assert [t.name for t, _ in recognise(RECORDED.read_bytes())] == ["flux-jobs"]


class _Counting(str):
    """A text that adds up how many characters were searched for line ends."""

    searched = 0

    def count(self, sub: str, start: Any = 0, end: Any = None) -> int:
        _Counting.searched += (len(self) if end is None else end) - start
        return super().count(sub, start, end)


def test_a_document_that_is_one_line_is_counted_once() -> None:
    """``flux jobs --json`` prints one line: the place of its last job must not cost all that stands before."""
    text = "[" + ",".join(f'{{"jobid": "f{n}"}}' for n in range(1000)) + "\n,\n{}]"
    window = _json._Window(BytesIO(text.encode()), 1 << 20, lambda *_: None)
    window.expect("[")
    window.text = _Counting(window.text)
    found = []
    while window.peek() != "]":
        found.append((window.number(), window.value()))
        if window.peek() == ",":
            window.at += 1
    assert (len(found), found[-2][0], found[-1][0]) == (1001, 1, 3)
    assert _Counting.searched <= len(text)
