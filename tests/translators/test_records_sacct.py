"""Slurm accounting in both forms: recorded output of one cluster, and rows made to go wrong."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.translators.base import ReadContext
from sssjob.translators.records import sacct, sacct_json
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures" / "slurm-22.05.8" / "records"


def jobs_of(data: bytes, reader: RecordTranslator = sacct.TRANSLATOR, **options: str) -> tuple[
        list[Job], Counts, list[str]]:
    """The jobs, the counts, and the findings but that no machine is named."""
    context = ReadContext(options=options)
    assert reader.stream is not None
    stream = reader.stream(BytesIO(data), context)
    jobs = list(stream)
    counts = stream.counts
    assert counts.read == counts.given + counts.rejected
    assert counts.jobs == len(jobs) and sum(counts.reasons.values()) == counts.rejected
    return jobs, counts, [str(f) for f in context.findings if f.subject != "Machine"]


def recorded() -> dict[tuple[str, int], Job]:
    jobs, counts, _ = jobs_of((FIXTURES / "sacct.psv").read_bytes(), timezone="UTC")
    assert (counts.read, counts.given, counts.jobs, counts.rejected) == (81, 81, 41, 0)
    return {(str(j.id), int(j.submit_time or 0)): j for j in jobs}


RECORDED = recorded()


def one(ident: str) -> Job:
    return next(j for (i, _), j in RECORDED.items() if i == ident)


def fact(job: Job, name: str) -> str | None:
    return next((p.text for p in job.all("Extension") if p.get("name") == name), None)


def test_a_job_as_it_was_recorded() -> None:
    assert write_document(one("12")) == """\
<Job>
  <Id>12</Id>
  <Name>gpu</Name>
  <User>alice</User>
  <Project>physics</Project>
  <Queue>batch</Queue>
  <QualityOfService>normal</QualityOfService>
  <InitialWorkingDirectory>/home/alice/run</InitialWorkingDirectory>
  <State>Completed</State>
  <StatusMessage>COMPLETED</StatusMessage>
  <SubmitTime>1795248550</SubmitTime>
  <StartTime>1795248554</StartTime>
  <EndTime>1795248556</EndTime>
  <ExitCode>0</ExitCode>
  <CpuDuration>0</CpuDuration>
  <Extension name="State" type="LRM">COMPLETED</Extension>
  <Extension name="EligibleStamp" type="LRM">1795248550</Extension>
  <Extension name="MaxVMSize" type="LRM">5512 KB</Extension>
  <Requested>
    <Processors>1</Processors>
    <NodeCount>1</NodeCount>
    <Duration>600</Duration>
    <Memory units="MB" metric="Total">100</Memory>
    <Resource name="GPU">1</Resource>
    <Resource name="License" type="matlab">2</Resource>
  </Requested>
  <Delivered>
    <Processors>1</Processors>
    <NodeCount>1</NodeCount>
    <Duration>2</Duration>
    <Node>node3</Node>
    <Memory units="MB" metric="Total">100</Memory>
    <Resource name="GPU">1</Resource>
    <Resource name="Billing">1</Resource>
    <Resource name="License" type="matlab">2</Resource>
    <Memory units="KB" metric="Max">3204</Memory>
  </Delivered>
</Job>
"""


@pytest.mark.parametrize(("ident", "state", "message", "code", "signal"), [
    ("3", "Completed", "FAILED", 3, None),
    ("17", "Completed", "timeout: TIMEOUT", None, "15"),        # the code 0 of a job cut off is none
    ("18", "Completed", "signal: FAILED", None, "9"),
    ("16", "Completed", "cancel: CANCELLED by 0", None, None),
    ("40", "Completed", "node-failure: NODE_FAIL", None, None),
    ("27", "Idle", "PENDING (PartitionConfig)", None, None),
])
def test_how_jobs_ended(ident: str, state: str, message: str, code: int | None, signal: str | None) -> None:
    job = one(ident)
    assert (job.state, job.status_message, job.exit_code, fact(job, "ExitSignal")) == (state, message, code, signal)


def test_a_start_time_is_no_evidence_that_a_job_ran() -> None:
    for ident in ("19", "28"):      # cancelled and refused before the start: sacct prints Start = End
        job = one(ident)
        assert job.start_time is None and not job.delivered and job.exit_code is None


def test_a_held_job() -> None:
    job = next(j for (i, _), j in RECORDED.items() if i == "42" and j.state == "Hold")
    assert job.hold == ("User",) and not job.delivered


def test_every_run_of_a_requeued_job_is_a_job() -> None:
    runs = [j for (i, _), j in RECORDED.items() if i == "41"]
    assert [(j.status_message, j.delivered.value("Duration")) for j in runs if j.delivered] == [
        ("REQUEUED", 1), ("COMPLETED", 12)]


def test_suspension_is_what_elapsed_leaves_out() -> None:
    job = one("39")
    assert job.suspend_duration == 2 and job.delivered is not None and job.delivered.value("Duration") == 23


def test_an_array_element() -> None:
    job = one("6_4")
    assert (fact(job, "ArrayId"), fact(job, "ArrayIndex"), fact(job, "JobIDRaw")) == ("6", "4", "38")


def test_components_of_a_heterogeneous_job() -> None:
    job = one("10")
    assert [g.value("Id") for g in job.task_groups] == ["10+0", "10+1"]
    assert [g.delivered.value("Processors") for g in job.task_groups if g.delivered] == [1, 2]
    assert job.delivered is not None and job.delivered.value("Processors") == 3
    assert job.delivered.value("NodeCount") == 2 and job.delivered.value("Memory") == 300


def test_both_forms_tell_the_same() -> None:
    jobs, counts, findings = jobs_of((FIXTURES / "sacct.json").read_bytes(), sacct_json.TRANSLATOR)
    assert (counts.read, counts.jobs, counts.rejected) == (42, 41, 0)
    *findings, rest = findings
    assert len(findings) == 5 and all("prints 0 for a job that failed" in f for f in findings)
    assert rest.endswith("attributes not carried over (in so many records): constraints (1), flags (34), priority (40)")
    assert {(str(j.id), j.submit_time) for j in jobs} == set(RECORDED)
    for job in jobs:
        text = RECORDED[str(job.id), int(job.submit_time or 0)]
        if text.state == "Running":         # recorded a few seconds apart
            continue
        assert job.delivered == text.delivered and job.requested == text.requested, job.id
        assert job.task_groups == text.task_groups
        for tag in ("StartTime", "EndTime", "CpuDuration", "SuspendDuration", "State", "Project", "Queue", "Name"):
            assert job.value(tag) == text.value(tag), (job.id, tag)


def test_numbers_of_later_releases() -> None:
    job = b"""{"jobs": [{"job_id": 7, "time": {"elapsed": 5, "start": {"set": true, "infinite": false, "number": 100},
      "end": 105, "submission": 90, "limit": {"set": false, "infinite": true, "number": 0}},
      "state": {"current": ["FAILED"]}, "exit_code": {"return_code": {"set": true, "number": 7},
      "signal": {"id": {"set": false, "number": 0}}}, "nodes": "n1",
      "tres": {"allocated": [{"type": "cpu", "name": "", "count": 2}]}}], "meta": {}}"""
    (made,), _, findings = jobs_of(job, sacct_json.TRANSLATOR)
    assert findings == [] and made.exit_code == 7 and made.delivered is not None
    assert made.delivered.value("Processors") == 2 and not made.requested


def test_start_that_is_the_eligible_time() -> None:
    job = b"""{"jobs": [{"job_id": 7, "state": {"current": "COMPLETED"}, "nodes": "n1", "time": {"elapsed": 5,
      "submission": 90, "eligible": 91, "start": 91, "end": 205}}]}"""
    (made,), _, findings = jobs_of(job, sacct_json.TRANSLATOR)
    assert made.start_time == 200 and "time.start is the eligible time" in findings[0]


@pytest.mark.parametrize(("data", "reasons"), [
    (b'{"jobs": [{"job_id": 1}, {"job_id": 2', {"torn": 1}),
    (b'{"jobs": [{"job_id": 1}, 5, {"job_id": "x"}]}', {"json": 1, "number": 1}),
    (b'{"jobs": [{"job_id": 1, "time": {"elapsed": NaN}}]}', {"json": 1}),
    (b'{"jobs": [' + b"[" * 100_000, {"json": 1}),
    (b"slurm: error", {"json": 1}),
    (b"", {"torn": 1}),
])
def test_broken_json(data: bytes, reasons: dict[str, int]) -> None:
    _, counts, findings = jobs_of(data, sacct_json.TRANSLATOR)
    assert dict(counts.reasons) == reasons and len(findings) >= len(reasons)


# --- rows made by hand --------------------------------------------------------------------------------------------

HEAD = b"JobID|JobName|State|Start|End|ElapsedRaw|AllocCPUS\n"


@pytest.mark.parametrize(("row", "reason"), [
    (b"1|a|COMPLETED|100|200|100\n", "columns"),
    (b"1|a|COMPLETED|100|200|100|4|5|6\n", ""),                 # the bar can only stand in JobName
    (b"x|a|COMPLETED|100|200|100|4\n", "id"),
    (b"1|a|COMPLETED|100|yesterday|100|4\n", "time"),
    (b"1|a|COMPLETED|100|200|1e3|4\n", "number"),
    (b"1|a|COMPLETED|100|99999999999999999999|100|4\n", "time"),
    (b"1|a|COMPLETED|100|200|100|" + "\u0661".encode() + b"\n", "number"),
    (b"1.batch|a|COMPLETED|100|200|100|4\n", "orphan"),
    (b"1|" + b"a" * 2000 + b"|COMPLETED|100|200|100|4\n", ""),     # without its name
    (b"1|a|COMPLETED|100|2", "torn"),
    (b"1|" + b"a" * (11 << 20) + b"|COMPLETED|100|200|100|4\n", "too-long"),
])
def test_a_bad_row_concerns_one_job(row: bytes, reason: str) -> None:
    good = b"2|b|COMPLETED|100|200|100|4\n"
    jobs, counts, findings = jobs_of(HEAD + good + row)
    assert jobs[0].value("Id") == "2"
    assert dict(counts.reasons) == ({reason: 1} if reason else {})
    assert [f for f in findings if "-:3: " in f], findings


def test_a_bar_in_the_only_free_column() -> None:
    (job,), _, _ = jobs_of(HEAD + b"1|a|b|COMPLETED|100|200|100|4\n")
    assert job.name == "a|b"


@pytest.mark.parametrize("data", [
    HEAD.replace(b"\n", b"\r\n") + b"1|a|COMPLETED|100|200|100|4\r\n",
    b"\xef\xbb\xbf" + HEAD + b"1|a|COMPLETED|100|200|100|4\n",
    (HEAD + b"1|a|COMPLETED|100|200|100|4\n").decode().encode("utf-16"),
    HEAD.replace(b"\n", b"|\n") + b"1|a|COMPLETED|100|200|100|4|\n",
    b"\n" + HEAD + b"\n1|a|COMPLETED|100|200|100|4\n\n",
])
def test_other_forms_of_text(data: bytes) -> None:
    (job,), _, findings = jobs_of(data)
    assert findings == [] and job.name == "a" and job.delivered is not None
    assert job.delivered.value("Processors") == 4


def test_bytes_that_xml_cannot_hold() -> None:
    (job,), _, findings = jobs_of(HEAD + b"1|a\xff\x1b[2J|COMPLETED|100|200|100|4\n")
    assert job.name == r"a\xff\x1b[2J" and "SSS542" in findings[0]
    assert write_document(job)


def test_a_zone_has_to_be_named() -> None:
    row = HEAD + b"1|a|COMPLETED|2026-03-29T10:00:00|2026-03-29T11:00:00|3600|4\n"
    with pytest.raises(UsageError, match="names no zone"):
        jobs_of(row)
    with pytest.raises(UsageError, match="no time zone 'Mars/Base'"):
        jobs_of(row, timezone="Mars/Base")
    (job,), _, _ = jobs_of(row, timezone="Europe/Berlin")
    assert job.start_time == 1774771200
    (job,), _, _ = jobs_of(row, timezone="+02:00")
    assert job.start_time == 1774771200
    good = b"2|b|COMPLETED|100|200|100|4\n"
    _, counts, _ = jobs_of(HEAD + good + row.partition(b"\n")[2])
    assert counts.reasons == {"zone": 1}


def test_the_hour_that_occurs_twice() -> None:
    row = HEAD + b"1|a|COMPLETED|2026-10-25T02:30:00|2026-10-25T04:00:00|9000|4\n"
    (job,), _, findings = jobs_of(row, timezone="Europe/Berlin")
    assert job.start_time == 1792888200 and len(findings) == 1 and "occurs twice" in findings[0]


@pytest.mark.parametrize(("start", "end", "elapsed", "span", "doubt"), [
    ("2026-10-25T02:30:00", "2026-10-25T02:10:00", 2400, 2400, "Start"),     # ended before it began
    ("2026-10-25T01:50:30", "2026-10-25T02:10:10", 4780, 4780, ""),
    ("2026-10-25T01:50:00", "2026-10-25T02:10:00", 1200, 1200, ""),
    ("2026-10-25T01:50:00", "2026-10-25T02:10:00", 3000, 1200, "End"),       # neither of both
])
def test_the_end_in_an_hour_that_occurs_twice(start: str, end: str, elapsed: int, span: int, doubt: str) -> None:
    """Of the two moments the end is the one that the elapsed time leads to."""
    row = f"1|a|COMPLETED|{start}|{end}|{elapsed}|4\n"
    (job,), _, findings = jobs_of(HEAD + row.encode(), timezone="Europe/Berlin")
    assert job.start_time is not None and job.end_time is not None and job.end_time - job.start_time == span
    assert [f.split()[3] for f in findings if "occurs twice" in f] == ([doubt] if doubt else [])


def test_a_time_that_no_clock_shows() -> None:
    """It was read by the clocks before without a word; such a log may be of another zone."""
    row = b"1|a|COMPLETED|2026-03-29T02:30:00|2026-03-29T04:30:00|3600|4\n"
    (job,), _, findings = jobs_of(HEAD + row, timezone="Europe/Berlin")
    assert job.start_time == 1774747800 and findings[0] == (
        "-:2: SSS544 warning Start 2026-03-29T02:30 is shown by no clock of its zone (summer time begins); it is read "
        "by the clocks before, but the log may be of another timezone")


def test_evidence_that_disagrees() -> None:
    head = b"JobID|State|Start|End|ElapsedRaw|AllocCPUS|AllocTRES|NNodes|NodeList\n"
    (job,), _, findings = jobs_of(head + b"1|COMPLETED|100|200|40|4|cpu=8,node=2,gres/gpu=4,gres/gpu:a=1|2|n[1-3]\n")
    assert job.delivered is not None and job.delivered.value("Processors") == 4
    assert job.suspend_duration == 60
    assert [f.partition("warning ")[2] for f in findings] == [
        "Processors: AllocCPUS says 4, AllocTRES says 8; AllocCPUS is taken",
        "NodeCount: AllocTRES says 2, NodeList says 3; AllocTRES is taken",
        "GPU: AllocTRES gres/gpu says 4, its types 1; gres/gpu is taken"]


def test_a_clock_that_went_back() -> None:
    (job,), _, findings = jobs_of(HEAD + b"1|a|COMPLETED|200|100|5|4\n")
    assert any("SSS543" in f for f in findings)
    assert job.delivered is not None and job.delivered.value("Duration") == 5


def test_columns_by_option() -> None:
    (job,), _, _ = jobs_of(b"1;alice;COMPLETED\n", columns="JobID,User,State", delimiter=";")
    assert job.user == "alice" and not job.delivered
    with pytest.raises(UsageError, match="no JobID"):
        jobs_of(b"", columns="User")
    _, counts, _ = jobs_of(b"1|alice\n")
    assert counts.reasons == {"header": 1}


def test_policy_reject_refuses_columns_that_are_lost() -> None:
    context = ReadContext(policy=Policy.REJECT)
    sacct.TRANSLATOR.read(b"JobID|AveDiskRead\n1|4\n", context)
    assert context.findings.rejected


@pytest.mark.parametrize(("asked", "memory", "metric"), [
    ("3000Mc", 3000, "PerProcessor"), ("48000Mn", 48000, "PerNode"), ("2G", 2, "Total")])
def test_memory_asked_for(asked: str, memory: int, metric: str) -> None:
    (job,), _, _ = jobs_of(f"JobID|State|ReqMem\n1|PENDING|{asked}\n".encode())
    found = job.requested.first("Memory") if job.requested else None
    assert found is not None and found.value == memory and found.get("metric") == metric


def test_a_node_list_that_is_too_large_stays_folded() -> None:
    (job, _), _, findings = jobs_of(b"JobID|State|Start|ElapsedRaw|NodeList\n1|COMPLETED|100|5|n[1-99999999]\n"
                                  b"2|COMPLETED|100|5|n[5-\n")
    assert job.delivered is not None and job.delivered.value("Node") == "n[1-99999999]"
    assert any("n[5-" in f for f in findings)


def test_an_unknown_quality_of_service_is_none() -> None:
    """What sacct says of a job that ended just now (seen in 22.05)."""
    (job,), _, _ = jobs_of(b"JobID|QOS|State|Start|End|ElapsedRaw\n7|Unknown|COMPLETED|1795000000|1795000009|9\n")
    assert job.value("QualityOfService") is None


def test_an_odd_member_of_what_was_asked_for_costs_itself() -> None:
    """The memory of ReqTRES went with an odd number of processors, in silence."""
    context = ReadContext()
    assert sacct.TRANSLATOR.stream is not None
    (job,) = sacct.TRANSLATOR.stream(BytesIO(
        b"JobID|Start|End|ElapsedRaw|State|ReqTRES\n5|100|160|60|FAILED|cpu=?,mem=4G,node=x,gres/gpu:a=2\n"), context)
    assert job.requested is not None
    assert [(p.tag, p.text) for p in job.requested.properties()] == [("Memory", "4"), ("Resource", "2")]
    assert [f.message for f in context.findings if f.rule == "SSS542"] == [
        "ReqTRES cpu '?' is no whole number; it is left out", "ReqTRES node 'x' is no whole number; it is left out"]


@pytest.mark.parametrize(("columns", "texts", "joules"), [
    ("", "", "51007"), ("|ConsumedEnergyRaw", "|", "51007"), ("|ConsumedEnergyRaw", "|0", "51007"),
    ("|ConsumedEnergyRaw", "|51012", "51012"), ("|ConsumedEnergy|ConsumedEnergyRaw", "|2.5K|", "2500.0")])
def test_energy_is_what_its_column_says_else_what_the_resources_say(columns: str, texts: str, joules: str) -> None:
    """A log without the column of energy was charged no energy, though AllocTRES says how much it was."""
    data = (f"JobID|ElapsedRaw|Start|End|State|AllocTRES{columns}\n"
            f"5|60|1795000000|1795000060|COMPLETED|billing=8,cpu=8,energy=51007,mem=32G,node=1{texts}\n")
    (job,) = jobs_of(data.encode())[0]
    assert [p.text for p in job.delivered.all("Resource") if p.get("name") == "Energy"] == [joules]


def test_energy_of_the_json_form() -> None:
    """It says energy among the resources that were assigned."""
    data = (b'{"jobs": [{"job_id": 5, "cluster": "c", "state": {"current": ["COMPLETED"]}, "nodes": "n1", "time": '
            b'{"start": 1795000000, "end": 1795000060, "elapsed": 60}, "tres": {"allocated": [{"type": "cpu", "count": '
            b'8}, {"type": "energy", "count": 51007}, {"type": "node", "count": 1}]}}]}')
    (job,) = jobs_of(data, sacct_json.TRANSLATOR)[0]
    assert [p.text for p in job.delivered.all("Resource") if p.get("name") == "Energy"] == ["51007"]
