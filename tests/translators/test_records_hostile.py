"""Whatever comes in: no reader of records raises, and the counts add up."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.model import Document, JobGroup
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import REASONS, RecordTranslator
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEEDS = {
    "sacct": (FIXTURES / "slurm-22.05.8" / "records" / "sacct.psv").read_bytes()[:4000],
    "sacct-json": (FIXTURES / "slurm-22.05.8" / "records" / "sacct.json").read_bytes()[:7000],
    "pbs-acct": (FIXTURES / "openpbs-23.06.06" / "records" / "accounting.log").read_bytes()[-9000:],
    "sge-acct": (FIXTURES / "gridengine-8.1.9" / "records" / "accounting.txt").read_bytes()[:2000],
    "lsf-acct": b'"JOB_FINISH" "5.1" 1089407406 699195 283 33554482 1 1089290023 0 0 1089406862 "r" "8nm" "" "" "" "h" '
                b'"d" "" "o" "e" "f" 0 1 "tbed0079" 64 3.3 "" "c" 277.21 17.28 0 0 -1 0 0 9 8 0 0 0 -1 0 0 0 0 0 -1 "" '
                b'"default" 0 1 "" "" 0 310424 339112 "" "" ""\n',
    "ur1": b'<U xmlns:u="x"><u:JobUsageRecord><u:JobIdentity><u:LocalJobId>1</u:LocalJobId></u:JobIdentity><u:Status>'
           b"failed</u:Status><WallDuration>PT5S</WallDuration><StartTime>2026-11-21T10:00:00Z</StartTime><Host>n[1-2]"
           b"</Host><Memory storageUnit='KB'>5</Memory><Resource description='ExitCode'>2</Resource></u:JobUsageRecord>"
           b"<u:JobUsageRecord><u:JobIdentity><u:LocalJobId>2</u:LocalJobId></u:JobIdentity></u:JobUsageRecord></U>",
    "ur2": b"<U><UsageRecord><JobUsageBlock><LocalJobId>1</LocalJobId><Status>failed</Status></JobUsageBlock>"
           b"<ComputeUsageBlock><CpuDuration>PT5S</CpuDuration><StartTime>2026-11-21T10:00:00Z</StartTime><Execution"
           b"Host>"
           b"<Hostname>n1</Hostname></ExecutionHost><Processors>2</Processors></ComputeUsageBlock><ComputeUsageBlock>"
           b"<Processors>3</Processors></ComputeUsageBlock><MemoryUsageBlock><MemoryClass>RAM</MemoryClass>"
           b"<MemoryResourceCapacityUsed>5</MemoryResourceCapacityUsed></MemoryUsageBlock></UsageRecord></U>",
    "ur2 blocks": b"<U><UsageRecord><CloudUsageBlock><LocalVirtualMachineId>v</LocalVirtualMachineId><Status>x</Status>"
                  b"<SuspendDuration>PT5S</SuspendDuration></CloudUsageBlock><StorageUsageBlock><FileCount a='1'>5"
                  b"</FileCount><StorageResourceCapacityUsed>9</StorageResourceCapacityUsed></StorageUsageBlock>"
                  b"<NetworkUsageBlock><NetworkInboundUsed>1</NetworkInboundUsed></NetworkUsageBlock></UsageRecord><"
                  b"/U>",
    "car": b"<U><UsageRecord><JobIdentity><LocalJobId>1</LocalJobId></JobIdentity><UserIdentity><GroupAttribute "
           b"type='role'>x</GroupAttribute></UserIdentity><ServiceLevel type='Si2K'>1.0</ServiceLevel><EndTime>"
           b"2026-11-21T10:00:00Z</EndTime><Queue>q</Queue></UsageRecord><SummaryRecord/></U>",
    "apel": b"APEL-individual-job-message: v0.4\nSite: a\nLocalJobId: 1\nWallDuration: 5\nCpuDuration: 5\n"
            b"StartTime: 1\nEndTime: 9\nServiceLevel: {a: 1.5, b: 2}\nMemoryReal: 5\n%%\nLocalJobId: 2\n%%\n",
    "htcondor-history": b'ClusterId = 1\nProcId = 2\nOwner = "a"\nJobStatus = 4\nJobStartDate = 5\nCompletionDate = 9\n'
                        b'RemoteWallClockTime = 4.0\nLastRemoteHost = "s@n"\nExitBySignal = false\nExitCode = 1\n\n',
    "htcondor-history json": b'[{"ClusterId": 1, "ProcId": 2, "Owner": "a", "JobStatus": 4, "JobStartDate": 5, "Exit'
    b'Code"'
                             b': 1, "RemoteWallClockTime": 4.0, "Iwd": "/Expr(x)/", "ExitBySignal": false}, {"A": 1}]',
    "htcondor-history extract": b"h#1.2#3|a|5|1|1|1795251100|1795251105|5|6|1\nh#1.3#3|a|5|1|1|9|10|5|6|1|2.5\n",
    "flux-eventlog": b'{"timestamp": 5.5, "name": "submit", "context": {"userid": 1}}\n{"timestamp": 6.5, "name": "a'
    b'lloc", '
                     b'"context": {"annotations": {"sched": {"resource_summary": "rank0/core[0-3]"}}}}\n7.5 finish '
                     b'status=256\n{"id": 9, "events": [{"timestamp": 5, "name": "submit"}], "jobspec": {"resources"'
                     b': [{'
                     b'"type": "node", "count": 2}], "attributes": {"system": {"duration": 5}}}}\n',
    "cobalt-acct": b"11/21/2026 09:00:00;Q;7;queue=p\n11/21/2026 09:00:00;E;7;Exit_status=1 ctime=1.5 start=2.5 "
                   b'end=9.5 exec_host=n[1-2] Resource_List.ncpus=2 account="a b" resource=m\n',
    "flux-jobs": (FIXTURES / "flux-0.88" / "jobs-end.json").read_bytes()[:4000],
    "swf": b"; UnixStartTime: 0\n 184 561553 0 61 16 -1 -1 16 43200 819200 1 6 1 -1 -1 1 -1 -1\n",
}
XML = ("ur1", "ur2", "car")
#: Pieces that have hurt readers of numbers, times, lists and text.
NASTY = (b"", b"-1", b"18446744073709551615", b"9" * 400, b"1e9999", b"nan", b"\xd9\xa3", b"\xef\xbc\x91", b"\0",
         b"\xff\xfe", b"\x1b[2J",
         b"\r", b"\n", b"|", b":", b";", b"=", b'"', b"\\", b"[", b"]", b"n[1-99999999]", b"a[1-9]b[1-9]",
         b"0" * 50 + b"1", b"\xe2\x80\xa8", b"*", b"+", b"(", b"/0-99999999999", b"1-00:00:00", b"{", b"}", b"null",
         b"2026-02-30T25:61:61", b"99/99/9999 99:99:99", b"1969-12-31T00:00:00", b"\xed\xa0\x80", b"K", b"1.5.5")


@pytest.mark.parametrize("name", SEEDS)
@given(st.data())
def test_nothing_escapes(name: str, data: st.DataObject) -> None:
    text = bytearray(SEEDS[name])
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text)))
        text[at:at + data.draw(st.integers(0, 12))] = data.draw(st.sampled_from(NASTY))
    raw = bytes(text[:data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text)
    name = name.split()[0]
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"timezone": "Europe/Berlin", "id": "7"})
    stream = reader.stream(BytesIO(raw), context)
    try:
        jobs = list(stream)
    except RejectedError:           # XML in an encoding that is not accepted is refused whole
        assert name in XML and {f.rule for f in context.findings if f.rejects} <= {"SSS102", "SSS103"}
        return
    counts = stream.counts
    assert counts.read == counts.given + counts.rejected and counts.jobs == len(jobs)
    assert set(counts.reasons) <= set(REASONS) - {"unread"}
    if jobs:
        findings = Findings()
        written = write_document(Document(JobGroup(jobs)), findings=findings)
        assert not findings.rejected
        assert not (read_document(written).findings or Findings()).rejected


@pytest.mark.parametrize("name", SEEDS)
@given(st.binary(max_size=300))
def test_any_bytes(name: str, raw: bytes) -> None:
    context = ReadContext(options={"timezone": "UTC"})
    try:
        get(name.split()[0]).read(raw, context)
    except UsageError as error:
        pytest.fail(str(error))
    except RejectedError:           # XML in an encoding that is not accepted is refused whole
        assert name.split()[0] in XML and context.findings.rejected


@pytest.mark.parametrize("name", ["sacct-json", "flux-jobs", "htcondor-history json"])
@pytest.mark.parametrize("escape", ["\\f", "\\u0001", "\\ud800", "\\uffff"])
def test_escapes_of_json_are_no_characters_that_xml_cannot_hold(name: str, escape: str) -> None:
    """In every text of a log, one after another."""
    seed = SEEDS[name].decode()
    for text in re.finditer(r'"[^"\\\n]{2,}"(?!\s*:)', seed):
        raw = f"{seed[:text.start() + 2]}{escape}{seed[text.start() + 2:]}".encode()
        reader = get(name.split()[0])
        assert isinstance(reader, RecordTranslator) and reader.stream is not None
        jobs = list(reader.stream(BytesIO(raw), ReadContext(options={"timezone": "UTC"})))
        findings = Findings()
        if jobs:
            write_document(Document(JobGroup(jobs)), findings=findings)
        assert not findings.rejected, text[0]


#: A log of one job each, in which NAME is what its user calls it.
CALLED = {
    "sacct": "JobID|State|Start|End|ElapsedRaw|JobName\n1|COMPLETED|1700000000|1700000060|60|NAME\n",
    "pbs-acct": "11/21/2026 09:00:00;E;7.srv;user=u group=g jobname=NAME queue=q ctime=1 qtime=1 etime=1 "
                "start=1700000000 end=1700000060 Exit_status=0 resources_used.walltime=00:01:00\n",
    "sge-acct": "q:h:g:u:NAME:250:sge:0:1700000000:1700000000:1700000060:0:0:60:1:1" + ":0" * 15
                + ":p:d:smp:4:0:1:1:0:-U d:0.0:NONE:1:0:0\n",
    "lsf-acct": SEEDS["lsf-acct"].decode().replace('3.3 ""', '3.3 "NAME"'),
    "cobalt-acct": "11/21/2026 09:00:00;E;7;Exit_status=1 ctime=1.5 start=2.5 end=9.5 Resource_List.ncpus=2 "
                   "jobname=NAME cwd=/NAME queue=q\n",
    "htcondor-history": SEEDS["htcondor-history"].decode().replace(
        "\n\n", '\nJobBatchName = "NAME"\nIwd = "/NAME"\n\n'),
    "flux-jobs": '{"jobs": [{"id": 9, "name": "NAME", "cwd": "/NAME", "t_submit": 5.5, "t_run": 6.5, '
                 '"t_cleanup": 9.5, "state": 64, "result": "COMPLETED", "ncores": 2}]}\n',
    "ur1": SEEDS["ur1"].decode().split("<u:JobUsageRecord><u:JobIdentity><u:LocalJobId>2")[0].replace(
        "<u:Status>", "<JobName>NAME</JobName><u:Status>") + "</U>",
}


@pytest.mark.parametrize("name", CALLED)
def test_nobody_keeps_a_job_out_of_the_accounts_by_its_name(name: str) -> None:
    """The record was rejected, its job cost nothing, and a ledger that reads on (``--resume``) stood still there."""
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    readings = []
    for called in ("x", "x" * 1025):
        context = ReadContext(options={"timezone": "UTC"})
        stream = reader.stream(BytesIO(CALLED[name].replace("NAME", called).encode()), context)
        readings.append((list(stream), stream.counts, [f.message for f in context.findings if f.rule == "SSS545"]))
    ((short,), _, quiet), ((long,), counts, findings) = readings
    assert (str(short.value("Name")), long.value("Name"), counts.rejected, quiet) == ("x", None, 0, [])
    assert all("characters, the limit identifier is 1024: left out" in message for message in findings)
    for job in (short, long):
        job.items[:] = [item for item in job.items if item.tag not in ("Name", "InitialWorkingDirectory")]
    assert long == short
