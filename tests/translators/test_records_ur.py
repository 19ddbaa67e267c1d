"""Usage records: what is written comes back, but for what the findings of the writing name; and what readers refuse."""

from __future__ import annotations

import os
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings

from sssjob.document.element import Property
from sssjob.document.held import per_of
from sssjob.document.model import Delivered, Document, Job, JobGroup
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Policy
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records.base import RecordTranslator, leaf
from tests.strategies import examples
from tests.translators.usage_jobs import facts, jobs

SAMPLES = os.environ.get("SSSJOB_SAMPLES")
FORMATS = ("ur1", "ur2", "car")
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(40), deadline=None)
@given(job=jobs())
def test_what_does_not_come_back_is_named(name: str, job: Job) -> None:
    context = WriteContext(policy=Policy.WARN, options={"created": "1795251032", "site": "S"})
    text = get(name).write(Document(JobGroup([leaf("Id", "g"), job])), context)
    named = {f.subject for f in context.findings}
    reading = ReadContext()
    back = [j for j, _ in get(name).read(text.encode(), reading).jobs()]
    if not back:
        assert "Job" in named
        return
    assert [f.message for f in reading.findings if f.severity != "info" and f.rule not in ("SSS543", "SSS541")] == []
    was, now = facts(job), facts(back[0])
    differ = {subject for subject, *_ in (was - now) + (now - was)}
    in_all = {p.tag for d in job.items if isinstance(d, Delivered) for p in d.items
              if isinstance(p, Property) and per_of(p.get("metric"))}
    assert differ <= named | in_all, (differ - named, text)     # what is of each node comes back as of the whole job


@pytest.mark.parametrize(("terabytes", "comes_back"), [("1681.7", True), ("1500000000", True),
                                                       ("1600000000", False)])
@pytest.mark.parametrize("name", FORMATS)
def test_the_greatest_amounts(name: str, terabytes: str, comes_back: bool) -> None:
    """The job comes back whatever it used: an amount of more digits than readers take is left out, and named."""
    memory = leaf("Memory", Decimal(terabytes), {"units": "TB", "metric": "PerProcessor"})
    job = Job([leaf("Id", "1"), leaf("State", "Completed"), leaf("StartTime", 1), leaf("EndTime", 1),
               leaf("CpuDuration", 0), leaf("Machine", "m"), Delivered([leaf("Processors", 595), memory])])
    context = WriteContext(policy=Policy.WARN, options={"created": "0", "site": "S"})
    text = get(name).write(Document(job), context)
    back, = (j for j, _ in get(name).read(text.encode(), ReadContext()).jobs())
    amounts = [p for d in back.items if isinstance(d, Delivered) for p in d.all("Memory")]
    assert (bool(amounts), ("SSS501", "Memory") in {(f.rule, f.subject) for f in context.findings}) == \
        (comes_back, not comes_back)


@pytest.mark.parametrize("name", FORMATS)
def test_one_broken_record_costs_that_one_only(name: str) -> None:
    found = [Job([leaf("Id", str(n)), leaf("State", "Completed"), leaf("StartTime", 100), leaf("EndTime", 110),
                 leaf("CpuDuration", 5), leaf("Machine", "m"), Delivered([leaf("Duration", 10)])]) for n in range(4)]
    text = get(name).write(Document(JobGroup(found)), WriteContext(options={"created": "0", "site": "S"}))
    parts = text.split("Record>\n")
    parts[1] = parts[1].replace("</LocalJobId>", "</Local>")
    torn = "Record>\n".join(parts[:4])[:-20].encode()
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext()
    stream = reader.stream(BytesIO(torn), context)
    assert [j.value("Id") for j in stream] == ["0", "2"]
    assert stream.counts.record() == {"read": 4, "given": 2, "rejected": 2, "jobs": 2, "reasons": {"torn": 1, "xml": 1}}
    assert [f.line for f in context.findings if f.rule == "SSS540"] == [4, 6]


@pytest.mark.parametrize("name", FORMATS)
def test_document_type_declarations_are_refused(name: str) -> None:
    bomb = b'<?xml version="1.0"?><!-- x --><!DOCTYPE a [<!ENTITY b "c">]><UsageRecords><UsageRecord/></UsageRecords>'
    with pytest.raises(RejectedError, match="SSS102"):
        get(name).read(bomb, ReadContext())
    with pytest.raises(RejectedError, match="SSS102"):
        get(name).read(b"<!-- " + b"x" * 2_000_000 + b" -->" + bomb[21:], ReadContext())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings(encoding: str) -> None:
    text = (f'<?xml version="1.0" encoding="{encoding}"?><!-- <JobUsageRecord> --><u:UsageRecords '
            'xmlns:u="http://schema.ogf.org/urf/2003/09/urf"><u:JobUsageRecord><u:JobIdentity><u:LocalJobId>1'
            "</u:LocalJobId></u:JobIdentity><u:JobName>M\u00fcller<![CDATA[</u:JobUsageRecord>]]></u:JobName>"
            "</u:JobUsageRecord></u:UsageRecords>")
    found = [job.value("Name") for job, _ in get("ur1").read(text.encode(encoding), ReadContext()).jobs()]
    assert found == ["M\u00fcller</u:JobUsageRecord>"]


@pytest.mark.parametrize(("inside", "reason"), [
    ("<StartTime>2010-10-22T14:51:08</StartTime>", "zone"),
    ("<StartTime>soon</StartTime>", "time"),
    ("<WallDuration>P1Y</WallDuration>", "number"),
    ("<Processors>many</Processors>", "number"),
    ("<NodeCount>1</NodeCount>" * 3 + "<JobIdentity><LocalJobId> </LocalJobId></JobIdentity>", "id"),
    ("<Queue>" + "x" * 2000 + "</Queue>", "too-long"),
    ("&bomb;", "xml"),
])
def test_what_a_record_is_rejected_for(inside: str, reason: str) -> None:
    good = "<JobUsageRecord><JobIdentity><LocalJobId>1</LocalJobId></JobIdentity>{}</JobUsageRecord>"
    context = ReadContext()
    document = get("ur1").read(("<U>" + good.format("") + good.format(inside) + "</U>").encode(), context)
    assert len(list(document.jobs())) == 1
    assert [f.subject for f in context.findings if f.rule == "SSS540"] == [reason]


@pytest.mark.parametrize(("text", "rejected"), [(b"<UsageRecord>", 50_000), (b"<UsageRecord a='1'", 1),
                                                (b"</UsageRecord", 1), (b"<!-- <UsageRecord>", 1)])
def test_beginnings_without_end(text: bytes, rejected: int) -> None:
    """Time grew with the square of their number."""
    context = ReadContext()
    assert not list(get("ur1").read(text * 50_000, context).jobs())
    assert len(context.findings) + context.findings.overflow == rejected


def test_gigantic_host_lists_and_negative_values() -> None:
    hosts = "".join(f"<Host>n{n}</Host>" for n in range(20_000))
    text = (f"<JobUsageRecord><JobIdentity><LocalJobId>1</LocalJobId></JobIdentity><WallDuration>-PT5S</WallDuration>"
            f"<Processors>-1</Processors>{hosts}</JobUsageRecord>")
    job = next(j for j, _ in get("ur1").read(text.encode(), ReadContext()).jobs())
    assert job.delivered is not None and job.delivered.value("Duration") is None
    assert job.delivered.value("Processors") is None
    context = WriteContext(policy=Policy.WARN)
    assert "<Host>" not in get("ur1").write(Document(JobGroup([job])), context)
    assert "Node" in {f.subject for f in context.findings}


def test_options() -> None:
    with pytest.raises(UsageError, match="created is a time"):
        get("ur1").write(Document(JobGroup([])), WriteContext(options={"created": "now"}))


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_samples() -> None:
    folder = Path(SAMPLES or "") / "accounting-samples"
    found = {}
    for path in sorted((folder / "ur1").iterdir()) + sorted((folder / "car").iterdir()):
        context = ReadContext(str(path))
        document = get(path.parent.name).read(path.read_bytes(), context)
        found[path.name] = [j.value("Id") for j, _ in document.jobs()], [
            f.subject for f in context.findings if f.rule == "SSS540"]
    assert found == {"gratia-batch.xml": (["699399"], []), "sgas-ur1.xml": (["gsiftp://example.org/jobs/1"], []),
                     "sgas-urt-extended.xml": (["21305"], []), "apel-aur1.xml": ([], ["summary"]),
                     "apel-car2-arc.xml": (["jobid10"], [])}
