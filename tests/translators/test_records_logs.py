"""Accounting logs of PBS, Grid Engine and LSF, and SWF traces: recorded files, and lines made to go wrong."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from sssjob.document.element import Property
from sssjob.document.model import Delivered, Job
from sssjob.errors import UsageError
from sssjob.lrm import sge
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records import lsf_acct, pbs_acct, sge_acct, swf
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures"
PBS = (FIXTURES / "openpbs-23.06.06" / "records" / "accounting.log").read_bytes()
SGE = (FIXTURES / "gridengine-8.1.9" / "records" / "accounting.txt").read_bytes()


def jobs_of(reader: RecordTranslator, data: bytes, **options: str) -> tuple[list[Job], Counts, list[str]]:
    """The jobs, the counts, and the findings but that no machine is named."""
    context = ReadContext(options=options)
    assert reader.stream is not None
    stream = reader.stream(BytesIO(data), context)
    jobs = list(stream)
    counts = stream.counts
    assert counts.read == counts.given + counts.rejected
    assert counts.jobs == len(jobs) and sum(counts.reasons.values()) == counts.rejected
    return jobs, counts, [str(f) for f in context.findings if f.subject != "Machine"]


def fact(job: Job, name: str) -> str | None:
    return next((p.text for p in job.all("Extension") if p.get("name") == name), None)


def held(job: Job, tag: str, metric: str | None = None) -> object:
    """The value of a delivered property."""
    assert job.delivered is not None
    return next((p.value for p in job.delivered.all(tag) if metric is None or p.get("metric") == metric), None)


# --- PBS ----------------------------------------------------------------------------------------------------------

def by_id() -> dict[str, list[Job]]:
    jobs, counts, _ = jobs_of(pbs_acct.TRANSLATOR, PBS)
    assert (counts.read, counts.given, counts.jobs, counts.reasons) == (122, 116, 44, {"no-job": 6})
    jobs_by_id: dict[str, list[Job]] = {}
    for job in jobs:
        jobs_by_id.setdefault(str(job.id), []).append(job)
    return jobs_by_id


PBS_JOBS = by_id()


def test_a_pbs_job_as_it_was_recorded() -> None:
    assert write_document(PBS_JOBS["1.head"][0]) == """\
<Job>
  <Id>1.head</Id>
  <Name>multi</Name>
  <User>alice</User>
  <Group>alice</Group>
  <Project>chem</Project>
  <Machine>head</Machine>
  <Queue>workq</Queue>
  <State>Completed</State>
  <SubmitTime>1795249223</SubmitTime>
  <StartTime>1795249223</StartTime>
  <EndTime>1795249226</EndTime>
  <StartCount>1</StartCount>
  <ExitCode>0</ExitCode>
  <CpuDuration>1</CpuDuration>
  <Extension name="State" type="LRM">E</Extension>
  <Extension name="EligibleStamp" type="LRM">1795249223</Extension>
  <Extension name="PBSProject" type="pbspro">physics</Extension>
  <Extension name="CpuPercent" type="LRM">33</Extension>
  <Extension name="Session" type="LRM">4523</Extension>
  <Requested>
    <Processors>3</Processors>
    <NodeCount>3</NodeCount>
    <Duration>300</Duration>
    <Memory units="MB" metric="Total">100</Memory>
    <Extension name="select" type="pbspro">2:ncpus=1:mem=50mb+1:ncpus=1</Extension>
    <Extension name="place" type="pbspro">free</Extension>
  </Requested>
  <Delivered>
    <Processors>3</Processors>
    <NodeCount>1</NodeCount>
    <Duration>3</Duration>
    <Node>head</Node>
    <Memory units="KB" metric="Total">102400</Memory>
    <Memory units="KB" metric="Max">55148</Memory>
    <Swap units="KB" metric="Max">62816</Swap>
  </Delivered>
</Job>
"""


@pytest.mark.parametrize(("ident", "message", "code", "signal", "status"), [
    ("3.head", None, 127, None, None),
    ("9.head", "timeout: Exit_status -29", None, None, "-29"),
    ("11.head", "cancel: deleted by root@head", None, "15", "271"),
])
def test_how_pbs_jobs_ended(ident: str, message: str | None, code: int | None, signal: str | None,
                            status: str | None) -> None:
    job = PBS_JOBS[ident][0]
    assert (job.status_message, job.exit_code, fact(job, "ExitSignal"), fact(job, "ExitStatus")) == (
        message, code, signal, status)


def test_a_rerun_is_two_jobs() -> None:
    first, second = PBS_JOBS["15.head"]
    assert (first.status_message, held(first, "Duration"), first.start_count) == ("requeued", 2, 1)
    assert (second.exit_code, held(second, "Duration"), second.start_count) == (0, 8, 2)


def test_suspended_time_is_not_wall_time() -> None:
    job = PBS_JOBS["14.head"][0]
    assert job.suspend_duration == 3 and held(job, "Duration") == 18


def test_deleted_while_queued() -> None:
    job = PBS_JOBS["12.head"][0]
    assert (job.state, job.status_message, job.start_time, job.delivered) == (
        "Completed", "cancel: deleted by root@head", None, Delivered())
    jobs, _, _ = jobs_of(pbs_acct.TRANSLATOR, PBS, timezone="UTC")
    assert next(j for j in jobs if j.id == "12.head").end_time == 1795249229


def test_array_and_its_parent() -> None:
    element, parent = PBS_JOBS["4[1].head"][0], PBS_JOBS["4[].head"][0]
    assert (fact(element, "ArrayId"), fact(element, "ArrayIndex")) == ("4[].head", "1")
    assert not parent.delivered


STAMP = b"11/21/2026 08:20:28;"


def test_jobs_that_have_not_ended() -> None:
    data = (STAMP + b"Q;5.s;user=a queue=q ctime=100\n" + STAMP + b"Q;6.s;user=b queue=q ctime=101\n"
            + STAMP + b"S;6.s;user=b queue=q ctime=101 start=110 exec_host=n/0\n" + STAMP + b"z;6.s;\n")
    jobs, counts, _ = jobs_of(pbs_acct.TRANSLATOR, data)
    assert [(j.id, j.state) for j in jobs] == [("5.s", "Idle"), ("6.s", "Suspended")] and counts.given == 4


def test_so_many_open_jobs_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pbs_acct, "_OPEN", 2)
    data = b"".join(STAMP + f"Q;{n}.s;ctime=100\n".encode() for n in range(1, 5))
    jobs, _, _ = jobs_of(pbs_acct.TRANSLATOR, data + STAMP + b"E;4.s;ctime=100 start=101 end=102 Exit_status=0\n")
    assert [(j.id, j.state) for j in jobs] == [
        ("1.s", "Idle"), ("2.s", "Idle"), ("4.s", "Completed"), ("3.s", "Idle")]


@pytest.mark.parametrize(("host", "slots", "nodes"), [
    ("n1/0", 1, 1), ("n1/0+n1/1+n2/0", 3, 2), ("n1/0-3", 4, 1), ("n1/0-1,5,11", 4, 1), ("c1/0*13+c2/0*13", 26, 2)])
def test_exec_host(host: str, slots: int, nodes: int) -> None:
    (job,), _, _ = jobs_of(pbs_acct.TRANSLATOR, STAMP + f"E;1.s;start=100 end=110 exec_host={host}\n".encode())
    assert held(job, "Processors") == slots and held(job, "NodeCount") == nodes


def test_order_of_evidence_for_processors() -> None:
    line = (b"E;1.s;start=100 end=110 exec_host=h/0*0 exec_vnode=(h:ncpus=4:ngpus=2:mem=1gb) total_execution_slots=8 "
            b"Exit_status=0\n")
    (job,), _, findings = jobs_of(pbs_acct.TRANSLATOR, STAMP + line)
    assert held(job, "Processors") == 4 and held(job, "Resource") == 2 and held(job, "Memory", "Total") == 1 << 20
    assert findings[0].endswith("Processors: exec_vnode says 4, total_execution_slots says 8; exec_vnode is taken")


def test_torque_gpus_and_wall_time_by_the_clock() -> None:
    (job,), _, _ = jobs_of(pbs_acct.TRANSLATOR, STAMP + b"E;7904;user=y Exit_status=1 start=100 end=200 "
                           b"Resource_List.nodes=1:ppn=28:gpus=1:default\n")
    assert (held(job, "Processors"), held(job, "Resource"), held(job, "Duration")) == (28, 1, 100)


def test_the_same_negative_code_in_torque_and_pbs_pro() -> None:
    (job,), _, _ = jobs_of(pbs_acct.TRANSLATOR, STAMP + b"E;1.s;start=100 end=200 Exit_status=-11\n")
    assert job.status_message == "timeout: Exit_status -11" and job.exit_code is None


def test_quoted_values_and_a_prefix() -> None:
    (job,), _, _ = jobs_of(pbs_acct.TRANSLATOR, b"20261121:" + STAMP + rb'E;1.s;user=a account="my \"big\" project" '
                           b'start=100 end=110 Exit_status=0\n')
    assert job.project == 'my "big" project'


@pytest.mark.parametrize(("line", "reason"), [
    (b"hello\n", "columns"), (STAMP + b"W;1.s;a=b\n", "type"), (STAMP + b"E;;a=b\n", "id"),
    (STAMP + b"U;R1.s;a=b\n", "no-job"), (STAMP + b"E;1.s;start=soon\n", "time"),
    (STAMP + b"E;1.s;start=100 resources_used.walltime=1:2:3:4:5\n", "number"),
    (STAMP + b"E;1.s;start=100 Exit_status=zero\n", "number"),
    (STAMP + b"E;1.s;start=100 exec_vnode=(h:ncpus=\xef\xbc\x91)\n", "number"),
    (b"11/21/2026 08:2", "torn"), (b"\0" * 500 + b"\n", "columns"),
])
def test_a_bad_pbs_line_concerns_one_job(line: bytes, reason: str) -> None:
    good = STAMP + b"E;2.s;start=100 end=110 Exit_status=0 exec_host=n/0\n"
    jobs, counts, findings = jobs_of(pbs_acct.TRANSLATOR, good + line)
    assert [j.id for j in jobs] == ["2.s"] and counts.reasons == {reason: 1}
    assert any(f.startswith("-:2: SSS540") for f in findings)


# --- Grid Engine --------------------------------------------------------------------------------------------------

def sge_jobs(**options: str) -> list[Job]:
    jobs, counts, findings = jobs_of(sge_acct.TRANSLATOR, SGE, **options)
    assert (counts.read, counts.jobs, findings) == (20, 20, [])
    return jobs


def test_a_grid_engine_job_as_it_was_recorded() -> None:
    job = next(j for j in sge_jobs(machine="cell") if j.id == "1")
    assert write_document(job) == """\
<Job>
  <Id>1</Id>
  <Name>burn</Name>
  <User>alice</User>
  <Group>alice</Group>
  <Project>physics</Project>
  <Machine>cell</Machine>
  <Queue>all.q</Queue>
  <State>Completed</State>
  <SubmitTime>1795251032</SubmitTime>
  <StartTime>1795251032</StartTime>
  <EndTime>1795251036</EndTime>
  <ExitCode>0</ExitCode>
  <CpuDuration>4</CpuDuration>
  <Extension name="State" type="LRM">failed=0</Extension>
  <Extension name="Account" type="sge">acct-chem</Extension>
  <Extension name="MaxVMSize" type="LRM">53669888 B</Extension>
  <Extension name="ParallelEnvironment" type="sge">smp</Extension>
  <Requested>
    <Duration>300</Duration>
    <Extension name="mem" type="sge">50M</Extension>
    <Processors>2</Processors>
  </Requested>
  <Delivered>
    <Processors>2</Processors>
    <Duration>4</Duration>
    <Node>head</Node>
    <Memory units="KB" metric="Max">48924</Memory>
    <Memory units="GB" metric="Average">0.031676</Memory>
  </Delivered>
</Job>
"""


@pytest.mark.parametrize(("ident", "message", "code", "signal"), [
    ("2", None, 3, None),
    ("4", "signal: failed 100 (killed)", None, "11"),
    ("8", "timeout: failed 37 (run time limit exceeded)", None, "9"),
    ("15", "failed 30 (asked for an error state)", 100, None),
    ("16", "never-ran: failed 28 (no such working directory)", None, None),
])
def test_how_grid_engine_jobs_ended(ident: str, message: str | None, code: int | None, signal: str | None) -> None:
    job = next(j for j in sge_jobs() if j.id == ident)
    assert (job.status_message, job.exit_code, fact(job, "ExitSignal")) == (message, code, signal)


def test_a_signal_of_a_run_that_is_run_again() -> None:
    """The accounting file and qacct say the same of how a run ended."""
    (job,), _, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f12="25", f13="137"))
    row = {"jobnumber": "1", "failed": "25", "exit_status": "137", "end_time": "Thu Sep 10 17:35:17 2015"}
    assert (fact(job, "ExitSignal"), sge.used_in([row]).signal) == ("9", 9)


def test_a_request_that_is_no_time_costs_that_request_only() -> None:
    (job,), counts, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f40="-l h_rt=2d,s_rt=30,gpu=2 -pe smp 4"))
    assert counts.given == 1 and job.requested is not None
    assert [(p.tag, p.get("name"), p.text) for p in job.requested.items if isinstance(p, Property)] == [
        ("Extension", "h_rt", "2d"), ("Extension", "s_rt", "30"), ("Resource", "GPU", "2"),
        ("Processors", None, "4")]


def test_runs_and_tasks() -> None:
    ids = [j.id for j in sge_jobs()]
    assert ids.count("14") == 2 and {"3.1", "3.2", "3.3", "3.4"} <= set(ids)
    assert next(j for j in sge_jobs() if j.id == "16").delivered == Delivered()


@pytest.mark.parametrize(("category", "limit"), [
    ("-l h_rt=24:00:00", 86400), ("-l h_rt=0:1:0,s_rt=00:00:30 -pe smp 4", 60), ("-l foo=a:NONE:5:NONE:1", None)])
@pytest.mark.parametrize("task", ["NONE", "1.node7"])
def test_colons_in_a_category(category: str, limit: int | None, task: str) -> None:
    """They made a job one of its own slaves, which waited for it until the log ended and was rejected."""
    master = sge_line(f40=category)
    lines = master if task == "NONE" else sge_line(f40=category, f42=task) + master
    jobs, counts, _ = jobs_of(sge_acct.TRANSLATOR, lines)
    assert len(jobs) == 1 and not counts.reasons
    assert (jobs[0].requested.value("Duration") if jobs[0].requested else None) == limit


def sge_line(**changed: str) -> bytes:
    """A line of 45 fields, some of them changed by the number of the field."""
    head = ["q", "h1", "g", "u", "name", "7", "sge", "0", "1311095300", "1311095310", "1311095410", "0", "0", "100"]
    fields = [*head, "5", "1", "2000", *["0"] * 14, "NONE", "d", "mpi", "4", "0", "6", "0", "0", "NONE", "0", "NONE",
              "0", "0", "0"]
    for key, value in changed.items():
        fields[int(key[1:]) - 1] = value
    return ":".join(fields).encode() + b"\n"


def test_slaves_of_a_parallel_job() -> None:
    data = sge_line(f42="1.h2", f2="h2", f37="20") + sge_line(f6="8") + sge_line()
    jobs, counts, _ = jobs_of(sge_acct.TRANSLATOR, data)
    assert [j.id for j in jobs] == ["8", "7"] and counts.given == 3
    job = jobs[1]
    assert (job.cpu_duration, held(job, "Duration"), held(job, "NodeCount"), held(job, "Processors")) == (26, 100, 2, 4)
    assert [g.value("Id") for g in job.task_groups] == ["master", "1.h2"]
    _, counts, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f42="1.h2") + sge_line(f6="8"))
    assert counts.reasons == {"orphan": 1}


@pytest.mark.parametrize(("slots", "host", "nodes"), [("1", "h1", 1), ("2", "h1", None), ("1", "UNKNOWN", None)])
def test_a_job_of_one_slot_is_on_one_node(slots: str, host: str, nodes: int | None) -> None:
    """The line names the first host only: of more slots it does not say how many there are."""
    (job,), _, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f35=slots, f2=host))
    assert job.delivered is not None and job.delivered.value("NodeCount") == nodes


def test_milliseconds_and_colons_in_a_name() -> None:
    (job,), _, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f9="1310761621000", f10="1311095354000", f11="1311095454000"))
    assert (job.start_time, job.end_time) == (1311095354, 1311095454)
    (job,), _, _ = jobs_of(sge_acct.TRANSLATOR, sge_line(f5="a:b:c", f7="x:y"))
    assert (job.name, fact(job, "Account"), job.id, held(job, "Processors")) == ("a:b:c", "x:y", "7", 4)


def test_wall_time_of_a_failed_job_is_by_the_clock() -> None:
    (job,), _, findings = jobs_of(sge_acct.TRANSLATOR, sge_line(f12="100", f13="137", f14="0"))
    assert held(job, "Duration") == 100 and fact(job, "ExitSignal") == "9" and findings == []


@pytest.mark.parametrize(("line", "reason"), [
    (b"a:b:c\n", "columns"), (sge_line(f6="x"), "columns"), (sge_line(f6="0"), "id"), (sge_line(f37="x"), "number"),
    (sge_line(f13="999"), "number"), (sge_line(f10="9" * 19), "time"), (sge_line()[:60], "torn"),
])
def test_a_bad_grid_engine_line(line: bytes, reason: str) -> None:
    _, counts, _ = jobs_of(sge_acct.TRANSLATOR, sge_line() + line)
    assert counts.given == 1 and counts.reasons == {reason: 1}


# --- LSF (constructed: no LSF can be had) -------------------------------------------------------------------------

def lsf_line(hosts: str = '2 "16*h1" "16*h2"', status: int = 64, exit_status: int = 0, info: int = 0,
             start: int = 100, index: int = 0, name: str = "n") -> str:
    usage = "10.5 1.0 " + " ".join(["0"] * 17)
    tail = '0 0 3600 0 2048 "eff" "" -1 "" -1 0 "" 0 0 "" 90 "/d" 1'
    return (f'"JOB_FINISH" "10.1" 200 77 5 0 32 50 0 0 {start} "alice" "normal" "span[ptile=16]" "" "" "sub" "/home/a" '
            f'"" "" "" "50.77" 0 {hosts} {status} 60.0 "{name}" "cmd ""x y"" z" {usage} "" "proj" {exit_status} 32 "" '
            f'"" {index} 4096 8192 "" "" "" "" 0 "" {info} "" -1 "" "" "app" "" -1 "/g" "" 0 "" -1 "" "" {tail}\n')


def test_an_lsf_job() -> None:
    (job,), _, findings = jobs_of(lsf_acct.TRANSLATOR, lsf_line().encode())
    assert findings == [] and (job.id, job.user, job.project, job.name) == ("77", "alice", "proj", "n")
    assert (held(job, "Processors"), held(job, "NodeCount"), held(job, "Duration")) == (32, 2, 90)
    assert (job.suspend_duration, job.cpu_duration, job.exit_code) == (10, 12, 0)
    assert held(job, "Memory", "Max") == 4096 and held(job, "Memory", "Average") == 2048
    assert job.requested is not None and job.requested.value("Duration") == 3600


@pytest.mark.parametrize(("change", "code", "signal", "message"), [
    ({"status": 32, "exit_status": 65280}, 255, None, "EXIT"),
    ({"status": 32, "exit_status": 9, "info": 16}, None, "9", "memory: EXIT (TERM_MEMLIMIT)"),
    ({"status": 32, "exit_status": 0x8C00, "info": 5}, 140, None, "timeout: EXIT (TERM_RUNLIMIT)"),
    ({"status": 32, "info": 14, "start": 0}, None, None, "cancel: EXIT (TERM_OWNER)"),
])
def test_how_lsf_jobs_ended(change: dict[str, int], code: int | None, signal: str | None, message: str) -> None:
    (job,), _, _ = jobs_of(lsf_acct.TRANSLATOR, lsf_line(**change).encode())  # type: ignore[arg-type]  # ints only
    assert (job.exit_code, fact(job, "ExitSignal"), job.status_message) == (code, signal, message)
    assert (not job.delivered) == (change.get("start") == 0)


def test_lsf_array_element_and_slots_written_out() -> None:
    (job,), _, findings = jobs_of(lsf_acct.TRANSLATOR, lsf_line('3 "h1" "h1" "h2"', index=4).encode())
    assert job.id == "77[4]" and held(job, "Processors") == 3
    assert "execHosts says 3, maxNumProcessors says 32" in findings[0]


@pytest.mark.parametrize(("line", "reason"), [
    (b'"JOB_NEW" "10.1" 5\n', "no-job"), (b'"JOB_FINISH" 1\n', "columns"), (b"garbage\n", "type"),
    (lsf_line('999999 "h"').encode(), "columns"), (lsf_line().encode()[:200], "torn"),
])
def test_a_bad_lsf_line(line: bytes, reason: str) -> None:
    _, counts, _ = jobs_of(lsf_acct.TRANSLATOR, lsf_line().encode() + line)
    assert counts.given == 1 and counts.reasons == {reason: 1}


# --- SWF ----------------------------------------------------------------------------------------------------------

TRACE = b"""; Version: 2.2
; UnixStartTime: 1000
184 561553 0 61 16 2.5 1024 16 43200 819200 1 6 1 3 2 1 -1 -1
185 561554 -1 -1 -1 -1 -1 16 43200 -1 5 6 1 -1 -1 -1 184 60
"""


def test_swf_there_and_back() -> None:
    document = swf.TRANSLATOR.read(TRACE, ReadContext())
    first, second = (job for job, _ in document.jobs())
    assert (first.submit_time, first.start_time, first.end_time) == (562553, 562553, 562614)
    assert (first.cpu_duration, held(first, "Memory", "Average"), first.status_message) == (40, 16384, "completed")
    assert (second.state, second.status_message, second.delivered) == ("Completed", "cancel: cancelled", Delivered())
    context = WriteContext(options={"origin": "1000"})
    assert swf.TRANSLATOR.write(document, context) == TRACE.decode()
    assert [f.subject for f in context.findings] == []


def test_swf_names_get_numbers() -> None:
    document = sge_acct.TRANSLATOR.read(sge_line() + sge_line(f4="v", f6="8"), ReadContext())
    lines = swf.TRANSLATOR.write(document, WriteContext()).splitlines()
    assert lines[2].split()[:5] == ["7", "1311095300", "10", "100", "4"] and lines[2].split()[11] == "1000000"
    assert "; Note: user 1000001 is v" in lines


def test_swf_without_origin_and_parts() -> None:
    line = b"1 5 0 61 16 -1 -1 16 -1 -1 %d 6 1 -1 -1 1 -1 -1\n"
    jobs, counts, findings = jobs_of(swf.TRANSLATOR, line % 1 + line % 2 + line % 3 + b"1 2\n")
    assert counts.reasons == {"part": 2, "columns": 1} and "count from 1970" in findings[0] and len(jobs) == 1
    with pytest.raises(UsageError, match="origin is a time"):
        jobs_of(swf.TRANSLATOR, b"", origin="now")
