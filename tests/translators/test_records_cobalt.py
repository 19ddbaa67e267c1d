"""Accounting logs of Cobalt: records of one job gathered, times with fractions, quoted values, bad lines."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest

from sssjob.document.model import Delivered, Job
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.records import _open
from sssjob.translators.records.base import Counts, RecordTranslator

SAMPLES = os.environ.get("SSSJOB_SAMPLES")
Q = "11/21/2026 09:00:00;Q;7;queue=prod"
S = "11/21/2026 09:00:10;S;7;account=chem resource=mira start=1795251010.25 user=alice"
E = ('11/21/2026 09:10:10;E;7;Exit_status=2 Resource_List.ncpus=64 Resource_List.nodect=4 '
     'Resource_List.walltime=0:20:00 account="my \\"big\\" project" args=None ctime=1795251000.5 end=1795251610.75 '
     'exec_host=n1,n2,n3,n4 jobname=N/A queue=prod resource=mira resources_used.nodect=4 '
     'resources_used.walltime=600.5 start=1795251010.25 user=alice')


def read(*lines: str, keep: bool = False) -> tuple[list[Job], Counts, list[str], list[str]]:
    reader = get("cobalt-acct")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext()
    stream = reader.stream(BytesIO("".join(f"{line}\n" for line in lines).encode()), context)
    if keep:
        stream.keep()
    jobs = list(stream)
    assert stream.counts.read == stream.counts.given + stream.counts.rejected
    return jobs, stream.counts, [f"{f.line} {f.rule} {f.message}" for f in context.findings], stream.kept


def test_a_job() -> None:
    (job,), counts, findings, _ = read(Q, S, E)
    assert {t: job.value(t) for t in ("Id", "Name", "User", "Project", "Machine", "Queue", "SubmitTime", "StartTime",
                                      "EndTime", "ExitCode", "State")} == {
        "Id": "7", "Name": None, "User": "alice", "Project": 'my "big" project', "Machine": "mira", "Queue": "prod",
        "SubmitTime": 1795251000, "StartTime": 1795251010, "EndTime": 1795251610, "ExitCode": 2, "State": "Completed"}
    assert job.delivered is not None and job.requested is not None
    assert {p.tag: p.text for p in job.delivered.properties()} == {
        "Processors": "64", "NodeCount": "4", "Duration": "601", "Node": "n1,n2,n3,n4"}
    assert {p.tag: p.text for p in job.requested.properties()} == {
        "Processors": "64", "NodeCount": "4", "Duration": "1200"}
    assert (counts.read, counts.jobs, findings) == (3, 1, [])


def test_jobs_without_an_end() -> None:
    (waiting, running), *_ = read(Q.replace(";7;", ";6;"), S)
    assert (waiting.value("State"), waiting.value("StartTime"), waiting.delivered) == ("Idle", None, Delivered())
    assert (running.value("State"), running.value("Project")) == ("Running", "chem")
    assert read(Q, S, keep=True)[3] == [Q, S]


@pytest.mark.parametrize(("lines", "state", "word"), [
    (["C;7;"], "Idle", "C"), (["HA;7;", "HR;7;"], "Idle", "HR"), (["Q;7;queue=q", "HA;7;"], "Idle", "Q"),
    (["C;7;start=1795251010.25"], "Running", "C"), (["S;7;start=1795251010.25", "C;7;"], "Running", "S"),
    (["C;7;", "A;7;"], "Completed", "A")])
def test_jobs_of_which_only_other_records_are_here(lines: list[str], state: str, word: str) -> None:
    """A job was said to be Q that had a record C alone."""
    (job,), *_ = read(*(f"11/21/2026 09:00:00;{line}" for line in lines))
    (native,) = (p.text for p in job.all("Extension") if p.get("name") == "State")
    assert (job.value("State"), native) == (state, word)


def test_so_many_open_jobs_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is given as it stands where one more comes, by their number and by the length of their lines."""
    lines = [Q.replace(";7;", f";{n};") for n in range(1, 6)]
    for name, limit in (("_MOST", 2), ("_HELD", 2 * len(Q) - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(_open, name, limit)
            jobs, counts, *_ = read(*lines, E.replace(";7;", ";5;"))
        assert [(j.id, j.value("State")) for j in jobs] == [
            ("1", "Idle"), ("2", "Idle"), ("3", "Idle"), ("5", "Completed"), ("4", "Idle")]
        assert (counts.read, counts.given) == (6, 6)


@pytest.mark.parametrize(("end", "message"), [
    ("11/21/2026 09:00:30;D;7;resource=mira", "cancel: deleted"), ("11/21/2026 09:00:30;A;7;", "launch: aborted")])
def test_jobs_that_were_stopped(end: str, message: str) -> None:
    (job,), *_ = read(Q, end)
    assert (job.value("StatusMessage"), job.value("Queue"), job.delivered) == (message, "prod", Delivered())


@pytest.mark.parametrize("stop", ["D", "A"])
def test_a_job_that_was_stopped_while_it_ran_is_one_job(stop: str) -> None:
    """D and E were two jobs of the same Id and StartTime, both charged."""
    (job,), counts, *_ = read(Q, S, f"11/21/2026 09:05:00;{stop};7;resource=mira", E)
    assert job.value("StatusMessage") == {"D": "cancel: deleted", "A": "launch: aborted"}[stop]
    assert (job.value("EndTime"), job.value("ExitCode"), counts.given) == (1795251610, 2, 4)


def test_records_behind_the_end_make_no_second_job() -> None:
    (job,), counts, *_ = read(Q, S, E, "11/21/2026 09:11:00;A;7;resource=mira")
    assert job.value("Queue") == "prod" and counts.record()["reasons"] == {"part": 1}
    again = E.replace("start=1795251010.25", "start=1795251020")
    assert len(read(Q, S, E, Q, again)[0]) == 2


def test_evidence_that_disagrees() -> None:
    assert any("SSS541 Duration" in f for f in read(E.replace("walltime=600.5", "walltime=300.5"))[2])


@pytest.mark.parametrize(("line", "reason"), [
    ("11/21/2026 09:10:10;TE;7;task=1", "part"), ("11/21/2026 09:10:10;B;7;x=1", "no-job"),
    ("11/21/2026 09:10:10;XX;7;x=1", "type"), ("11/21/2026 09:10:10;E;x;", "id"), ("nothing", "columns"),
    ("11/21/2026 09:10:10;E;7;start=soon", "number"), ("11/21/2026 09:10:10;E;7;start=9e15", "time"),
    ("11/21/2026 09:10:10;E;7;user=" + "x" * 2000, "too-long"),
])
def test_what_is_rejected(line: str, reason: str) -> None:
    jobs, counts, _, _ = read(line, E)
    assert counts.record()["reasons"] == {reason: 1} and len(jobs) == 1


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_samples() -> None:
    text = (Path(SAMPLES or "") / "accounting-samples" / "cobalt" / "cobalt.log").read_text()
    jobs, counts, _, _ = read(*text.splitlines())
    assert [(j.value("Id"), j.delivered) for j in jobs] == [("123", Delivered())]
    assert counts.record()["reasons"] == {"part": 1}        # an A behind the E of its job
