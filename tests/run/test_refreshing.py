"""Accounting that was silent when jobs ended is asked again: what it tells completes the documents, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, JobStatus
from psij.executors.batch import _late
from psij.executors.batch._slurm_records import ACCOUNTING as COLUMNS
from psij.executors.batch._slurm_records import parse_sacct
from sssjob.run.evidence import disagreements
from sssjob.xml.writer import write_document
from tests.run.support import Desk, desk_on, group, shell

SILENT: dict[str, Any] = {"times": -1, "exit": 1, "stderr": "Connection refused"}
ACCOUNTING = {"slurm": "sacct", "sge": "qacct"}


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A manager whose accounting does not answer."""
    with desk_on(request.param, tmp_path, monkeypatch) as made:
        assert made.lab is not None
        made.lab.fault(ACCOUNTING[request.param], **SILENT)
        yield made


def document(desk: Desk, name: str) -> str:
    return write_document(desk.job(name).of.result())


def asked(desk: Desk) -> int:
    assert desk.lab is not None
    return len(desk.lab.calls(ACCOUNTING[desk.executor]))


def test_what_was_missing_is_added_once(desk: Desk) -> None:
    assert desk.lab is not None
    desk.submit(group(*(shell(f"exit {n}", name=f"j{n}") for n in range(3))))
    assert desk.wait("g") == {f"j{n}": ("failed" if n else "done", n) for n in range(3)}
    before = {name: desk.job(name) for name in ("j0", "j1", "j2")}
    assert not any("CpuDuration" in document(desk, name) for name in before)
    assert desk.client().refresh([]).silent == [desk.executor]
    desk.lab.heal(ACCOUNTING[desk.executor])
    count = asked(desk)
    refreshed = desk.client().refresh([])
    assert (refreshed.asked, sorted(refreshed.facts), refreshed.silent) == (3, ["@1.1", "@1.2", "@1.3"], [])
    assert all("CpuDuration" in added for added in refreshed.facts.values())
    assert asked(desk) - count == (1 if desk.executor == "slurm" else 3)        # qacct takes one id
    whole = document(desk, "j0")
    assert "<CpuDuration>" in whole and "<Delivered>" in whole
    for name, job in before.items():        # how it ended is as it was
        after = desk.job(name)
        assert after.outcome is not None and job.outcome is not None
        assert (after.word, after.outcome.exit_code, after.plan.job.value("ExitCode")) == (
            job.word, job.outcome.exit_code, job.outcome.exit_code)
        assert after.evidence["cpu_seconds"].kind == "accounting"
        assert after.evidence["exit_code"].name == "exit-file"
    again = desk.client().refresh([])
    assert (again.asked, again.facts) == (0, {})
    named = desk.client().refresh(["g"])
    assert (named.asked, named.facts) == (3, {})
    assert document(desk, "j0") == whole and len(desk.events("j0", "late")) == 1


def test_accounting_that_hangs_is_waited_for_no_longer_than_asked(desk: Desk) -> None:
    """All commands together: Grid Engine has one for each job."""
    assert desk.lab is not None
    desk.submit(group(*(shell("exit 0", name=f"j{n}") for n in range(3))))
    desk.wait("g")
    desk.lab.fault(ACCOUNTING[desk.executor], times=-1, sleep=30)
    count, begun = asked(desk), time.monotonic()
    assert desk.client().refresh(["g"], seconds=0.5).silent == [desk.executor]
    assert time.monotonic() - begun < 10 and asked(desk) - count <= 1


def test_jobs_that_ended_before_are_left_alone(desk: Desk) -> None:
    assert desk.lab is not None
    desk.submit(shell("true"))
    desk.wait("a")
    desk.lab.heal(ACCOUNTING[desk.executor])
    ended = desk.job("a").evidence["state"].time
    assert desk.client().refresh([], since=ended + 1).asked == 0
    assert desk.client().refresh([], since=ended - 1).asked == 1


def test_sources_that_disagree_are_told_once(desk: Desk) -> None:
    assert desk.lab is not None
    desk.submit(shell("true"))
    desk.wait("a")
    desk.lab.heal(ACCOUNTING[desk.executor])
    desk.lab.update(1, start=desk.lab.jobs()[0]["start"] - 100)
    client = desk.client()
    client.refresh([])
    assert [f.rule for f in client.findings] == ["SSS620"]
    assert [(f.subject, f.path) for f in client.findings] == [("StartTime", "@1.1")]
    other = desk.client()
    other.refresh(["a"])
    assert list(other.findings) == [] and [d.fact for d in desk.job("a").disagreements] == ["StartTime"]


def test_a_record_of_an_earlier_job_of_that_id_is_not_taken(desk: Desk) -> None:
    assert desk.lab is not None
    desk.submit(shell("true"))
    desk.wait("a")
    desk.lab.heal(ACCOUNTING[desk.executor])
    job = desk.lab.jobs()[0]
    desk.lab.update(1, command="/home/x/other.sh", **{key: job[key] - 10_000 for key in ("submit", "start", "end")})
    assert desk.client().refresh([]).facts == {} and desk.events("a", "late") == []


def record(text: str) -> JobStatus:
    """A record of sacct: state, exit code."""
    state, code = text.split()
    row = dict.fromkeys(COLUMNS, "") | {
        "JobID": "7", "State": state, "ExitCode": code, "Submit": "100", "Start": "110", "End": "120", "NNodes": "1",
        "ElapsedRaw": "10", "TotalCPU": "00:01.500", "NodeList": "node1"}
    return parse_sacct(0, "\n".join(["|".join(row), "|".join(row.values()), ""]))["7"]


def known(state: JobState, code: int | None, source: str, **metadata: Any) -> JobStatus:
    return JobStatus(state, 120.0, "as it was", code, {
        **metadata, "sources": {"state": source, **({"exit_code": source} if code is not None else {})}})


@pytest.mark.parametrize(("before", "told", "state", "code", "reason"), [
    (known(JobState.COMPLETED, 0, "exit-file"), "COMPLETED 0:0", "COMPLETED", 0, None),
    (known(JobState.FAILED, 200, "exit-file"), "FAILED 72:0", "FAILED", 200, None),
    (known(JobState.FAILED, None, "queue", reason="lost"), "COMPLETED 0:0", "COMPLETED", 0, None),
    (known(JobState.FAILED, None, "queue", reason="unknown-exit"), "FAILED 3:0", "FAILED", 3, None),
    (known(JobState.FAILED, None, "queue", reason="lost"), "TIMEOUT 0:0", "FAILED", None, "timeout"),
    (known(JobState.FAILED, None, "queue", reason="memory", signal=9), "FAILED 0:9", "FAILED", 137, "memory"),
    (known(JobState.FAILED, 0, "exit-file", reason="stage-out"), "COMPLETED 0:0", "FAILED", 0, "stage-out"),
    (known(JobState.CANCELED, None, "cancel"), "CANCELLED 0:15", "CANCELED", None, None),
    (known(JobState.CANCELED, None, "cancel"), "COMPLETED 0:0", "COMPLETED", 0, None),
    (known(JobState.COMPLETED, None, "queue"), "TIMEOUT 0:0", "COMPLETED", None, None),
    (known(JobState.COMPLETED, 0, "scontrol"), "OUT_OF_MEMORY 0:125", "COMPLETED", 0, None),
    (known(JobState.FAILED, 3, "queue"), "COMPLETED 0:0", "FAILED", 3, None),
    (known(JobState.FAILED, None, "queue", reason="memory", signal=9), "COMPLETED 0:0", "FAILED", None, "memory"),
    (known(JobState.CANCELED, None, "queue"), "FAILED 1:0", "CANCELED", None, None),
])
def test_ends(before: JobStatus, told: str, state: str, code: int | None, reason: str | None) -> None:
    """An end that was known stays; accounting decides one that was not."""
    status = _late.complete(before, {"sacct": record(told)}, {})
    assert status is not None and status.metadata is not None
    assert (status.state.name, status.exit_code, status.metadata.get("reason")) == (state, code, reason)
    assert status.metadata["cpu_seconds"] == 1.5 and status.metadata["sources"]["cpu_seconds"] == "sacct"
    assert _late.complete(status, {"sacct": record(told)}, {}) is None


@pytest.mark.parametrize(("before", "told", "words"), [
    (known(JobState.COMPLETED, 0, "queue"), "TIMEOUT 0:0", ["SSS621 State: queue says COMPLETED, sacct FAILED"]),
    (known(JobState.FAILED, 3, "queue"), "FAILED 4:0", ["SSS621 ExitCode: queue says 3, sacct 4"]),
    (known(JobState.FAILED, 200, "queue"), "FAILED 72:0", []),
    (known(JobState.FAILED, 3, "queue"), "COMPLETED 0:0",
     ["SSS621 ExitCode: queue says 3, sacct 0", "SSS621 State: queue says FAILED, sacct COMPLETED"]),
    (known(JobState.FAILED, None, "queue", signal=9), "FAILED 1:0", []),
    (known(JobState.FAILED, 0, "exit-file", reason="stage-out"), "COMPLETED 0:0", []),
])
def test_an_end_that_accounting_sees_otherwise_is_a_disagreement(before: JobStatus, told: str, words: list[str]
                                                                 ) -> None:
    """Both are named, and what counts is what was known; sacct shows exit codes from 128 less 128."""
    status = _late.complete(before, {"sacct": record(told)}, {200: 72})
    assert status is not None and [f"{one.rule} {one.text}" for one in disagreements(status)] == [
        f"{text}; the former counts" for text in words]


def test_a_late_record_of_a_job_that_was_put_back_is_held_against_its_exit_file() -> None:
    """A controller that was away learns late of an end: the exit file, which was there before, has another time."""
    before = known(JobState.COMPLETED, 0, "exit-file", start_time=110.0, end_time=96.0, requeued=False)
    assert before.metadata is not None
    before.metadata["sources"] |= {"start_time": "exit-file", "end_time": "exit-file"}
    status = _late.complete(before, {"sacct": record("COMPLETED 0:0")}, {})
    assert status is not None and [one.text for one in disagreements(status)] == [
        "EndTime: sacct says 120, exit-file 96; the former counts"]
