"""Blocks of memory, storage, network and cloud in Usage Record 2.0: both ways, and what does not come back is named."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Delivered, Document, Job, JobGroup
from sssjob.findings import Policy
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records._ur2_blocks import BLOCKS
from sssjob.translators.records.base import leaf
from tests.strategies import examples
from tests.translators.usage_jobs import facts

TIMES = "<StartTime>2026-11-21T10:00:00Z</StartTime><EndTime>2026-11-21T11:00:00Z</EndTime>"
RECORD = """<UsageRecords xmlns="http://schema.ogf.org/urf/2013/04/urf" xmlns:urf="http://schema.ogf.org/urf/2013/04/urf">
<UsageRecord><RecordIdentityBlock><RecordId>r1</RecordId></RecordIdentityBlock>{compute}{job}{blocks}</UsageRecord>
</UsageRecords>"""
COMPUTE = ("<ComputeUsageBlock><CpuDuration>PT5S</CpuDuration><WallDuration>PT1H</WallDuration>" + TIMES +
           "<ExecutionHost><Hostname>n1</Hostname><Benchmark urf:type='HEPscore23'>15.3</Benchmark></ExecutionHost>"
           "<HostType>fat</HostType><Processors>2</Processors></ComputeUsageBlock>")
JOB = ("<JobUsageBlock><GlobalJobId>g</GlobalJobId><LocalJobId>1</LocalJobId><MachineName>m</MachineName>"
       "<SubmitType>direct</SubmitType><TimeInstant urf:type='boot'>2026-11-21T09:00:00Z</TimeInstant>"
       "<Status>completed</Status></JobUsageBlock>")
MEMORY = ("<MemoryUsageBlock><MemoryClass>RAM</MemoryClass><MemoryResourceCapacityUsed>1000"
          "</MemoryResourceCapacityUsed><MemoryResourceCapacityAllocated>2000</MemoryResourceCapacityAllocated>"
          + TIMES + "<ExecutionHost><Hostname urf:primary='true'>n1</Hostname></ExecutionHost><Charge>1.5</Charge>"
          "</MemoryUsageBlock>"
          "<MemoryUsageBlock><MemoryClass>RAM</MemoryClass><MemoryResourceCapacityUsed>7</MemoryResourceCapacityUsed>"
          + TIMES.replace("10:00", "10:30") + "</MemoryUsageBlock>"
          "<MemoryUsageBlock><MemoryClass>GPU</MemoryClass><MemoryResourceCapacityUsed>9</MemoryResourceCapacityUsed>"
          + TIMES + "</MemoryUsageBlock>")
STORAGE = ("<StorageUsageBlock><StorageShare>pool</StorageShare><FileCount>3</FileCount>"
           "<StorageResourceCapacityUsed>4096</StorageResourceCapacityUsed>" + TIMES +
           "<Host>s1</Host></StorageUsageBlock><StorageUsageBlock>"
           "<StorageMedia>tape</StorageMedia><StorageResourceCapacityUsed>5</StorageResourceCapacityUsed>" + TIMES +
           "</StorageUsageBlock>")
NETWORK = ("<NetworkUsageBlock><NetworkClass urf:NetworkResourceBandwidth='10'>ethernet</NetworkClass>"
           "<NetworkInboundUsed urf:SourceAddress='10.0.0.1'>30</NetworkInboundUsed>"
           "<NetworkOutboundUsed>12</NetworkOutboundUsed>"
           "</NetworkUsageBlock>")
CLOUD = ("<CloudUsageBlock><LocalVirtualMachineId>vm1</LocalVirtualMachineId><Status>started</Status><SuspendDuration>"
         "PT60S</SuspendDuration><ImageId>img</ImageId><TimeInstant urf:type='boot'>2026-11-21T10:00:05Z</TimeInstant>"
         "</CloudUsageBlock>")


def read(blocks: str, compute: str = COMPUTE, job: str = JOB) -> tuple[Job, list[str]]:
    context = ReadContext()
    (found, _), = get("ur2").read(RECORD.format(compute=compute, job=job, blocks=blocks).encode(), context).jobs()
    return found, [f"{f.rule} {f.message}" for f in context.findings if f.severity != "info"]


def write(job: Job) -> tuple[str, set[str]]:
    context = WriteContext(policy=Policy.WARN, options={"created": "0"})
    return get("ur2").write(Document(JobGroup([leaf("Id", "g"), job])), context), {f.subject for f in context.findings}


def back(text: str) -> Job:
    (job, _), = get("ur2").read(text.encode(), ReadContext()).jobs()
    return job


def delivered(job: Job, tag: str) -> list[tuple[str, str | None]]:
    return [] if job.delivered is None else [(p.text, p.get("metric")) for p in job.delivered.all(tag)]


@pytest.mark.parametrize("blocks", [MEMORY, STORAGE, NETWORK, CLOUD, MEMORY + STORAGE + CLOUD + NETWORK, ""],
                         ids=["memory", "storage", "network", "cloud", "all", "none"])
def test_blocks_come_back(blocks: str) -> None:
    job, findings = read(blocks)
    text, named = write(job)
    assert findings == [] and named <= {"Extension Infrastructure"}
    assert facts(back(text)) == facts(job)
    assert write(back(text)) == (text, named)
    for kind in BLOCKS:
        assert text.count(f"<{kind}UsageBlock>") == blocks.count(f"<{kind}UsageBlock>")


def test_amounts_are_properties() -> None:
    job, _ = read(MEMORY + STORAGE + CLOUD + NETWORK)
    assert (delivered(job, "Memory"), delivered(job, "Disk"), delivered(job, "Network")) == (
        [("1000", "Max")], [("4096", "Max")], [("42", "Total")])
    assert job.value("SuspendDuration") == 60
    assert {p.get("name"): p.text for p in job.all("Extension") if p.get("type") in ("ur2", "Grid")} == {
        "SubmitType": "direct", "TimeInstant boot": "2026-11-21T09:00:00Z",
        "RecordId": "r1", "ServiceLevel": "HEPscore23 15.3", "HostType": "fat",
        "Memory RAM MemoryResourceCapacityAllocated": "2000", "Memory RAM ExecutionHost": "n1",
        "Memory RAM ExecutionHost@primary": "true", "Memory RAM Charge": "1.5",
        "Memory RAM 2 MemoryResourceCapacityUsed": "7", "Memory RAM 2 StartTime": "2026-11-21T10:30:00Z",
        "Memory MemoryClass": "GPU", "Memory MemoryResourceCapacityUsed": "9",
        "Storage StorageShare": "pool", "Storage FileCount": "3", "Storage Host": "s1",
        "Storage 2 StorageMedia": "tape", "Storage 2 StorageResourceCapacityUsed": "5",
        "Cloud LocalVirtualMachineId": "vm1", "Cloud Status": "started", "Cloud ImageId": "img",
        "Cloud TimeInstant": "2026-11-21T10:00:05Z", "Cloud TimeInstant@type": "boot",
        "Network NetworkClass": "ethernet", "Network NetworkClass@NetworkResourceBandwidth": "10",
        "Network NetworkInboundUsed": "30", "Network NetworkInboundUsed@SourceAddress": "10.0.0.1",
        "Network NetworkOutboundUsed": "12"}


def test_a_record_of_a_virtual_machine_alone() -> None:
    job, _ = read(CLOUD.replace("<ImageId>", "<MachineName>cloud</MachineName><ImageId>"), job="")
    assert [job.value(t) for t in ("Id", "Machine", "State")] == ["vm1", "cloud", "Running"]
    text, named = write(job)
    assert facts(back(text)) - facts(job) == Counter() or "GlobalJob" in named


@pytest.mark.parametrize(("blocks", "expected"), [
    ("<CloudUsageBlock>" + "<TimeInstant urf:type='a'>x</TimeInstant>" * 2 + "</CloudUsageBlock>",
     "no place for TimeInstant of CloudUsageBlock"),
    (STORAGE.replace("<FileCount>", "<New>5</New><FileCount>"), "no place for New of StorageUsageBlock"),
    (MEMORY.replace("</Hostname>", "</Hostname><ProcessId>5</ProcessId>"), "no place for all of ExecutionHost"),
    ("<OtherBlock/>", "no place for OtherBlock"),
])
def test_what_has_no_place_is_told(blocks: str, expected: str) -> None:
    assert any(expected in finding for finding in read(blocks)[1])


@pytest.mark.parametrize("blocks", [
    STORAGE.replace("4096", "many"), NETWORK.replace(">30<", ">x<"), CLOUD.replace("PT60S", "a minute"),
    MEMORY.replace(">1000<", "><b/><")])
def test_numbers_that_are_none(blocks: str) -> None:
    context = ReadContext()
    document = get("ur2").read(RECORD.format(compute=COMPUTE, job=JOB, blocks=blocks).encode(), context)
    reasons = [f.subject for f in context.findings if f.rule == "SSS540"]
    assert reasons == ["number"] or (not reasons and "<b/>" in blocks and len(list(document.jobs())) == 1)


NAMES = [f"{kind}{more} {name.rstrip('!')}" for kind, names in BLOCKS.items() for name in names
         for more in ("", " 2", " RAM", " RAM 2")]
NAMES += ["Storage Host@x", "HostType", "Storage New", "SubmitType", "TimeInstant", "TimeInstant boot",
          "TimeInstant  x", "TimeInstant submit"]


@settings(max_examples=examples(75), deadline=None)
@given(extensions=st.lists(st.tuples(st.sampled_from(NAMES),
                                     st.sampled_from(("5", "x", " y ", "2026-11-21T10:00:00Z", "RAM", "completed"))),
                           max_size=12),
       disk=st.booleans(), memory=st.booleans(), network=st.sampled_from((0, 10)), times=st.booleans())
def test_what_does_not_come_back_is_named(extensions: list[tuple[str, str]], disk: bool, memory: bool, network: int,
                                          times: bool) -> None:
    """Extensions that look like those of blocks and make none."""
    amounts = [leaf(tag, Decimal(100), {"units": "B", "metric": "Max"}) for tag, there in (
        ("Disk", disk), ("Memory", memory)) if there]
    if network:
        amounts.append(leaf("Network", Decimal(network), {"units": "B", "metric": "Total"}))
    job = Job([leaf("Id", "1"), leaf("GlobalJob", "g"), leaf("State", "Completed"), leaf("Machine", "m"),
               *((leaf("StartTime", 1795255200), leaf("EndTime", 1795258800), leaf("CpuDuration", 1)) if times else ()),
               *(leaf("Extension", text, {"type": "ur2", "name": name}) for name, text in extensions),
               Delivered([leaf("Duration", 3600), *amounts])])
    text, named = write(job)
    was, now = facts(job), facts(back(text))
    differ = {subject for subject, *_ in (was - now) + (now - was)}
    assert differ <= named, (differ - named, text)
