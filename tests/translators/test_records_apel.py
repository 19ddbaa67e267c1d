"""Messages of APEL: whole texts, what a round trip loses, sums, and what is rejected."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings

from sssjob.document.model import Delivered, Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records.base import RecordTranslator, leaf
from tests.strategies import examples
from tests.translators.usage_jobs import facts, jobs

SAMPLES = os.environ.get("SSSJOB_SAMPLES")
OPTIONS = {"site": "S", "created": "4000000000"}


def a_job(ident: str = "7", **more: int) -> Job:
    times = {"StartTime": 1795251032, "EndTime": 1795254632, "CpuDuration": 7000} | more
    return Job([leaf("Id", ident), leaf("User", "alice"), leaf("GlobalUser", "/C=x/CN=Alice"), leaf("Machine", "m"),
                leaf("Queue", "q"), leaf("State", "Completed"), *(leaf(k, v) for k, v in times.items()),
                leaf("Extension", "atlas", {"type": "Grid", "name": "VO"}),
                leaf("Extension", "hepspec 11.4, HEPscore23 15.3", {"type": "Grid", "name": "ServiceLevel"}),
                Delivered([leaf("Processors", 2), leaf("NodeCount", 1), leaf("Duration", 3600)])])


def write(name: str, *found: Job, **options: str) -> tuple[str, set[str]]:
    context = WriteContext(policy=Policy.WARN, options=OPTIONS | options)
    text = get(name).write(Document(JobGroup([leaf("Id", "g"), *found])), context)
    return text, {f.subject for f in context.findings}


def test_individual_messages() -> None:
    text, named = write("apel", a_job(), version="0.4")
    assert text == """APEL-individual-job-message: v0.4
Site: S
MachineName: m
Queue: q
LocalJobId: 7
LocalUserId: alice
GlobalUserName: /C=x/CN=Alice
VO: atlas
WallDuration: 3600
CpuDuration: 7000
Processors: 2
NodeCount: 1
StartTime: 1795251032
EndTime: 1795254632
ServiceLevel: {hepspec: 11.4, HEPscore23: 15.3}
%%
"""
    assert named == {"Extension Site"}
    text, named = write("apel", a_job())
    assert "ServiceLevelType: hepspec\nServiceLevel: 11.4\n" in text and "Extension ServiceLevel" in named


@pytest.mark.parametrize(("duration", "is_more"), [(3600, False), (1800, True)])
@pytest.mark.parametrize("target", ["apel", "apel-summary", "car", "car-summary"])
def test_what_components_of_different_times_come_to_is_told(target: str, duration: int, is_more: bool) -> None:
    """A receiver multiplies the wall time of the longest by the processors of all."""
    log = ("JobID|Cluster|Account|User|Partition|Start|End|ElapsedRaw|State|AllocTRES\n"
           "4+0|v|a|u|q|1795251032|1795254632|3600|COMPLETED|cpu=8,node=1\n"
           f"4+1|v|a|u|gpu|1795251032|{1795251032 + duration}|{duration}|COMPLETED|cpu=2,node=1\n")
    context = WriteContext(policy=Policy.WARN, options=OPTIONS)
    get(target).write(get("sacct").read(log.encode(), ReadContext()), context)
    message, = {f.message for f in context.findings if f.subject == "Processors"}
    assert message == "Processors of the task groups is added up" + is_more * (
        "; they ran for different times, and with the Duration of the longest it is more than they used")


def test_a_message_holds_a_thousand_records() -> None:
    text, _ = write("apel", *(a_job(str(n)) for n in range(1001)))
    assert text.count("APEL-individual-job-message: v0.3\n") == 2
    assert len(list(get("apel").read(text.encode(), ReadContext()).jobs())) == 1001


@pytest.mark.parametrize("version", ["0.3", "0.4"])
@settings(max_examples=examples(40), deadline=None)
@given(job=jobs())
def test_what_does_not_come_back_is_named(version: str, job: Job) -> None:
    text, named = write("apel", job, version=version)
    back = [j for j, _ in get("apel").read(text.encode(), ReadContext()).jobs()]
    if not back:
        assert "Job" in named
        return
    was, now = facts(job), facts(back[0])
    assert {subject for subject, *_ in (was - now) + (now - was)} <= named


def test_summaries() -> None:
    found = [a_job("1"), a_job("2", CpuDuration=100), a_job("3", EndTime=1798761600)]
    text, named = write("apel-summary", *found, version="0.3")
    assert text == """APEL-summary-job-message: v0.3
Site: S
Month: 11
Year: 2026
GlobalUserName: /C=x/CN=Alice
VO: atlas
NodeCount: 1
Processors: 2
EarliestEndTime: 1795254632
LatestEndTime: 1795254632
WallDuration: 7200
CpuDuration: 7100
NormalisedWallDuration: 82080
NormalisedCpuDuration: 80940
NumberOfJobs: 2
%%
Site: S
Month: 1
Year: 2027
GlobalUserName: /C=x/CN=Alice
VO: atlas
NodeCount: 1
Processors: 2
EarliestEndTime: 1798761600
LatestEndTime: 1798761600
WallDuration: 3600
CpuDuration: 7000
NormalisedWallDuration: 41040
NormalisedCpuDuration: 79800
NumberOfJobs: 1
%%
"""
    assert named >= {"Job"}
    assert "ServiceLevel: {hepspec: 11.4, HEPscore23: 15.3}\n" in write("apel-summary", *found, version="0.4")[0]
    assert "ServiceLevelType: hepspec\nServiceLevel: 11.4\n" in write("apel-summary", *found)[0]


def test_a_sum_is_no_job() -> None:
    text = write("apel-summary", a_job())[0]
    for name in ("apel", "apel-summary"):
        context = ReadContext()
        assert not list(get(name).read(text.encode(), context).jobs())
        assert [f.subject for f in context.findings] == ["summary"]


def test_jobs_that_have_no_usage_are_left_out() -> None:
    waiting = Job([leaf("Id", "1"), leaf("State", "Idle")])
    future = a_job(EndTime=4_000_200_000)
    assert write("apel", waiting, future) == ("", {"Job", "Extension Site"})
    assert write("apel-summary", waiting)[1] == {"Job", "Extension Site"}
    assert write("apel-summary", Job([i for i in a_job().items if i.tag != "Extension"]), version="0.3")[0] == ""


@pytest.mark.parametrize(("options", "message"), [
    ({"version": "0.1"}, "version is 0.3 or 0.4, not '0.1'"),
    ({"benchmark": "fast"}, "benchmark is a name and a number"),
])
def test_options(options: dict[str, str], message: str) -> None:
    job = Job([i for i in a_job().items if i.tag != "Extension"])
    with pytest.raises(UsageError, match=message):
        write("apel", job, **options)


def test_what_is_rejected() -> None:
    good = "LocalJobId: 1\nWallDuration: 5\nEndTime: null\nCpuDuration:-1\nGlobalUserName:/C=x/CN=a:b\nOdd: x\n%%\n"
    data = (good + "APEL-individual-job-message: v0.3\n" + good + "WallDuration: 5\n%%\n%%\n"
            + good.replace("Odd: x", "Odd") + good.replace("WallDuration: 5", "WallDuration: five")
            + good.replace("EndTime: null", "EndTime: 99999999999999999")
            + good.replace("Odd: x", "ServiceLevel: {a: b}") + "APEL-sync-message: v0.1\nSite: a\n%%\n"
            + "APEL-individual-job-message: v0.4\n" + "".join(f"k{n}: 1\n" for n in range(300)) + "%%\nLocalJobId: 9\n")
    reader = get("apel")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext()
    stream = reader.stream(BytesIO(data.encode()), context)
    found = list(stream)
    assert len(found) == 1 and found[0].value("GlobalUser") == "/C=x/CN=a:b" and found[0].value("CpuDuration") is None
    assert stream.counts.record()["reasons"] == {"columns": 1, "header": 1, "id": 1, "no-job": 1, "number": 2,
                                                 "time": 1, "too-long": 1, "torn": 1}
    assert stream.counts.read == stream.counts.given + stream.counts.rejected == 10


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_samples() -> None:
    found = {}
    for path in sorted((Path(SAMPLES or "") / "accounting-samples" / "apel-messages").iterdir()):
        context = ReadContext()
        got = [j.value("Id") for j, _ in get("apel").read(path.read_bytes(), context).jobs()]
        found[path.name] = got, [f.subject for f in context.findings if f.rule == "SSS540"]
    assert found == {"msg0.txt": (["31564872", "31564873"], []), "msg2.txt": ([], ["summary"]),
                     "msg4.txt": ([], ["summary"]), "msg6.txt": ([], ["no-job"]), "msg8.txt": ([], ["no-job"])}
