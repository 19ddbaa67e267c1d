"""A JobGroup that is read part by part means what it means as a whole: findings, order, places and texts."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from sssjob.conversion.intake import gate, large, take
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.translators.base import WriteContext
from sssjob.translators.records import _usage
from sssjob.translators.records.base import effective_jobs
from sssjob.translators.registry import get
from sssjob.validation import Siblings
from sssjob.validation._group_index import KnownIds
from sssjob.validation._group_writing import json_pieces, xml_pieces
from sssjob.validation.large import Large, WholeError
from sssjob.xml._parts import frame_of, parts
from sssjob.xml.twin import to_json
from sssjob.xml.writer import write_document
from tests.strategies import examples

#: Every job is a part of its own, and every document is large.
TINY = replace(LIMITS, part_bytes=1, whole_bytes=0)
ROOTS = ("<JobGroup>", "<JobGroup awarenessPolicy='Warn'>", "<JobGroup awarenessPolicy='Ignore'>",
         "<JobGroup bogus='1'>",
         "<JobGroup xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:noNamespaceSchemaLocation='a.xsd'>",
         "<JobGroup xmlns='urn:x'>", "<?xml version='1.0' encoding='ISO-8859-1'?><JobGroup>",
         "<?xml version='1.0' encoding='UTF-8'?>\n<JobGroup>", "\ufeff<JobGroup>", "<!-- top -->\n<JobGroup\n>")
JOB = ("<Id>{n}</Id>", "<Id>x</Id>", "<Id>y</Id>", "<Name>n{n}</Name>", "<Name>\u00e9\u00e9</Name>", "<Bogus>1</Bogus>",
       "<User>ann</User>", "<User/>", "<JobId>7</JobId>", "<State>Running</State>", "<State>Odd</State>",
       "<StartTime>{n}</StartTime>", "<StartTime>5</StartTime><EndTime>1</EndTime>", "<Executable>#f</Executable>",
       "<Requested><Processors>4</Processors><Processors>5</Processors><NodeCount>9</NodeCount></Requested>",
       "<Requested><Node aggregation='Range'>n[3-1</Node></Requested>", "<Memory units='XB'>3</Memory>",
       "<queue>b</queue>", "<Requested><Processors group='1'>4</Processors></Requested>", "<Dependency>x</Dependency>",
       "<Dependency>zz</Dependency>", "<Dependency designator='JobName'>n3</Dependency>", "<!-- c -->", "<?pi x?>",
       "<Feature>a</Feature><Feature>b</Feature>", "<NotificationList>JobFoo</NotificationList>",
       "<Foo xmlns='urn:x'>a</Foo>",
       "<Environment><Variable name='A'>1</Variable><Variable name='A'>2</Variable></Environment>",
       "<Delivered><Processors>3</Processors><Duration>60</Duration></Delivered>")
GROUP = ("<Id>g</Id>", "<State>Odd</State>", "<State>Completed</State>", "<JobDefaults><Queue>q</Queue></JobDefaults>",
         "<JobDefaults><Requested><Processors>3</Processors></Requested></JobDefaults>", "<Description>d</Description>",
         "<Unknown/>", "<Extension name='a'>1</Extension>", "<Job>ref</Job>", "<!-- k -->")


def written(seed: int) -> bytes:
    """A group of some jobs with what may go wrong in them, in one of several layouts."""
    draw = random.Random(seed)
    gap, out, rich = draw.choice(("\n  ", "", "\r\n", "\n\n", " ")), [draw.choice(ROOTS)], draw.random() < 0.5
    for number in range(draw.randint(1, 12)):
        out += [draw.choice(GROUP) for _ in iter(lambda: draw.random() < 0.12, False)]
        body = [f"<Id>{number}</Id>"] if draw.random() < 0.9 else []
        body += [draw.choice(JOB).replace("{n}", str(number)) for _ in range(draw.randint(0, 4) if rich else 0)]
        out.append(gap.join(("<Job>", *body, "</Job>")))
    out += [draw.choice(GROUP) for _ in iter(lambda: draw.random() < 0.3, False)]
    return (gap.join((*out, "</JobGroup>")) + draw.choice(("", "\n", "\n<!-- end -->\n"))).encode()


def told(findings: Findings) -> tuple[list[Any], int]:
    return [(f.rule, f.severity, f.subject, f.message, f.line, f.column, f.path, f.hint, f.excerpt)
            for f in findings], findings.overflow


def in_parts(data: bytes, profile: str = "liberal") -> Large:
    return Large.of(io.BytesIO(data), "a.xml", profile=profile, limits=TINY)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_as_the_whole(seed: int) -> None:
    """Findings with their places, jobs with their lines, and the text in every form are those of the whole reading; or
    the document is left to it."""
    data = written(seed)
    names = ("liberal", "3.1")[seed % 4 == 0]
    try:
        findings = in_parts(data, names)
    except WholeError:
        return
    taken = take(data, "a.xml", source="sss", profile=names)
    assert told(findings.findings) == told(taken.findings)
    assert told(findings.checks) == told(gate(taken.document, names))
    whole = list(taken.document.jobs())
    streamed = list(findings.jobs())
    assert streamed == whole
    assert [(job.line, [c.line for c in job.containers()]) for job, _ in streamed] == [
        (job.line, [c.line for c in job.containers()]) for job, _ in whole]
    for profile in ("3.1", "liberal", "3.0"):
        here, there = Findings("a.xml"), Findings("a.xml")
        assert "".join(xml_pieces(findings, profile=profile, findings=here)) == write_document(
            taken.document, profile=profile, findings=there)
        assert told(here) == told(there)
    for indent in (2, None):
        assert as_json(findings, indent) in (None, to_json(taken.document, indent=indent))


def as_json(made: Large, indent: int | None) -> str | None:
    """None where a name is spelt in several ways, of which only the whole can tell the places."""
    try:
        return "".join(json_pieces(made, indent=indent))
    except WholeError:
        return None


def test_most_need_no_whole_reading() -> None:
    """Or the comparison would compare nothing."""
    left = 0
    for seed in range(120):
        try:
            in_parts(written(seed))
        except WholeError:
            left += 1
    assert left < 30


@pytest.mark.parametrize("name", ["swf", "ur1", "ur2", "car", "apel", "apel-summary", "csv", "jsonl"])
def test_records_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats of records, written of jobs one after another, say the same of each job; the time of writing stands."""
    monkeypatch.setattr(_usage, "time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    writer = get(name)
    for seed in range(0, 40, 5):
        data = written(seed)
        try:
            made = in_parts(data)
        except WholeError:
            continue
        whole, streamed = WriteContext(Findings("a.xml")), WriteContext(Findings("a.xml"))
        whole.findings.places = (document := take(data, "a.xml", source="sss").document).places
        assert writer.write(document, whole) == "".join(writer.texts(effective_jobs(made), streamed))  # type: ignore[attr-defined]
        assert told(whole.findings) == told(streamed.findings)


@pytest.mark.parametrize("text", [
    "<Job><Id>1</Id></Job>", "<Request><Data><JobGroup><Id>g</Id><Job/></JobGroup></Data></Request>", "", "no XML",
    "<JobGroup><Job><Id>1</Id></Job><Job><Id>2<Id></Job></JobGroup>",                       # is repaired
    "<JobGroup><Job><Id>1</Id></Job> text <Job><Id>2</Id></Job></JobGroup>",
    "<JobGroup><Job><Id>1</Id></Job></JobGroup><JobGroup><Job><Id>2</Id></Job></JobGroup>",
    "<JobGroup><Job><Id>1</Id></Job><!-- </Job> --><Job><Id>2</Id></Job></JobGroup>",
    "<JobGroup><Id>1</Id><Job><Id>1</Id></Job><Id>2</Id><Job><Id>2</Id></Job></JobGroup>",
    "<JobGroup><Job><Id>1</Id><Dependency>2</Dependency></Job><Job><Id>2</Id><Dependency>1</Dependency></Job></JobGroup>",
    '<JobGroup><Job><Id>a-{x}</Id><Extension type="Scheduler" name="Sweep">x=1..2</Extension></Job>'
    "<Job><Id>2</Id><Dependency>a-1</Dependency></Job></JobGroup>",
    '<JobGroup><Job><Id>a</Id><Extension type="Scheduler" name="Array">1-2</Extension></Job>'
    "<Job><Id>2</Id><Dependency>a_1</Dependency></Job></JobGroup>",
    "<!DOCTYPE JobGroup><JobGroup><Job><Id>1</Id></Job><Job><Id>2</Id></Job></JobGroup>",
])
def test_left_to_the_whole_reading(text: str) -> None:
    """What only the whole tells, and what is no group: nothing is said of it here."""
    with pytest.raises(WholeError):
        in_parts(text.encode())
    assert large(io.BytesIO(text.encode()), limits=TINY) is None


def test_neither_whole_nor_in_parts() -> None:
    """A text that is wrong and too large to be read whole is refused for what is wrong with it, at its place."""
    text = b"<JobGroup>\n<Job><Id>1</Id></Job>\n<Job>\n<Id>2<Id>\n</Job>\n</JobGroup>\n"
    with pytest.raises(RejectedError) as caught:
        large(io.BytesIO(text), profile="3.1", limits=replace(TINY, document_bytes=len(text) - 1))
    assert [(f.rule, f.line) for f in caught.value.findings] == [("SSS101", 5)]


@pytest.mark.parametrize(("begins", "start", "end"), [
    (b"<JobGroup>", b"<JobGroup>\n", b"</JobGroup>\n"),
    (b"\xef\xbb\xbf<?xml version='1.0'\n encoding='utf-8'?> <a:JobGroup xmlns:a='u' b='1' >",
     b"<?xml version='1.0' encoding='utf-8'?>\n<a:JobGroup xmlns:a='u'>\n", b"</a:JobGroup>\n"),
    (b"<!-- <JobGroup> --><JobGroup awarenessPolicy='warn'>", b"<JobGroup awarenessPolicy='warn'>\n", b"</JobGroup>\n"),
    (b"<JobGroup awarenessPolicy='odd'>", b'<JobGroup awarenessPolicy="Reject">\n', b"</JobGroup>\n"),
])
def test_frames(begins: bytes, start: bytes, end: bytes) -> None:
    """Later parts have what their jobs inherit from the group: namespaces, the policy, the encoding."""
    frame = frame_of(begins + b"<Job/>")
    assert frame is not None and (frame.start, frame.end) == (start, end)


@pytest.mark.parametrize("begins", [b"<JobGroup/>", b"<Job>", b"", "<JobGroup>".encode("utf-16"),
                                    b"<!DOCTYPE a><JobGroup>"])
def test_no_frame(begins: bytes) -> None:
    assert frame_of(begins) is None


def test_parts_hold_all_of_the_text() -> None:
    """Each byte stands in one part, whatever the layout, and a part knows where."""
    for seed in range(20):
        data = written(seed)
        frame = frame_of(data)
        assert frame is not None
        made = list(parts(io.BytesIO(data), frame, TINY))
        assert b"".join(data[p.begin:p.stop] for p in made) == data
        for part in made:
            before = data[:part.begin]
            assert part.lines + part.first == 1 + before.count(b"\n") and part.last == (part is made[-1])


def test_ids_of_all_sections() -> None:
    """Ids are compared on the disk as in memory: any order of lives, many of one Id, as requeued jobs have them."""
    draw, memory, disk = random.Random(5), Siblings(), KnownIds()
    for line, _ in zip(count(1), range(2_000), strict=False):
        one = "Job", draw.choice("abcdefgh") * draw.randint(1, 9), draw.choice((None, "", 1, 2, 3, 4, 5)), line
        if draw.random() < 0.02 or one[2] is not None:
            assert disk.earlier(*one) == memory.earlier(*one)
