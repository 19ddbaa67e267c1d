"""Writing: whole texts compared, round trips over generated documents, every profile, what XML cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from sssjob.document.moab import pack, unpack
from sssjob.document.model import Document, File, Job, JobGroup, Property, Requested
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.request import parse
from sssjob.xml.profiles import PROFILES
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import documents, examples

SPEC = Path(__file__).parents[1] / "fixtures" / "spec-3.1.0"


def test_the_very_simple_example_is_written_as_printed() -> None:
    text = (SPEC / "very-simple.xml").read_text(encoding="utf-8")
    assert write_document(read_document(text)) == text


def test_the_moderate_example_is_written_with_straight_quotes() -> None:
    text = (SPEC / "moderate.xml").read_text(encoding="utf-8")
    assert write_document(read_document(text)) == text.replace("\u201d", '"')


def in_3_1(body: str, around: str = "Job") -> tuple[str, list[tuple[str, str, str]]]:
    """A body as 3.1 writes it, and what is said about it."""
    findings = Findings()
    text = write_document(read_document(f"<{around}>{body}</{around}>"), findings=findings)
    return ("".join(line.strip() for line in text.splitlines()[1:-1]),
            [(f.rule, f.severity, f.subject) for f in findings])


LISTED = ("SSS502", "info", "Feature")
STAY = ("SSS304", "warning", "Feature")


@pytest.mark.parametrize(("body", "written", "told"), [
    ("<Feature>a</Feature><Queue>q</Queue><Feature>b</Feature>",
     "<Feature aggregation=\"List\">a,b</Feature><Queue>q</Queue>"
     "<Requested><Feature>a</Feature><Feature>b</Feature></Requested>", [LISTED]),
    ("<Feature>a</Feature><Feature>a</Feature>", "<Feature aggregation=\"List\">a,a</Feature>"
     "<Requested><Feature>a</Feature><Feature>a</Feature></Requested>", [LISTED]),
    ("<Feature aggregation='List' delimiter=';'>a;b,c</Feature><Feature>d</Feature>",
     "<Feature aggregation=\"List\" delimiter=\";\">a;b,c;d</Feature><Requested>"
     "<Feature aggregation=\"List\" delimiter=\";\">a;b,c</Feature><Feature>d</Feature></Requested>", [LISTED]),
    ("<Feature>a</Feature><Feature>b</Feature><Requested><Queue>q</Queue><Queue conj='Or'>r</Queue></Requested>",
     "<Feature aggregation=\"List\">a,b</Feature><Requested><Queue group=\"1\">q</Queue>"
     "<Queue conj=\"Or\" group=\"-1\">r</Queue><Feature>a</Feature><Feature>b</Feature></Requested>", [LISTED]),
    ("<Feature>a</Feature><Feature>b</Feature><Requested><Feature>c</Feature></Requested>",
     "<Feature aggregation=\"List\">a,b</Feature><Requested><Feature>c</Feature></Requested>", [LISTED]),
    ("<State>Running</State><Feature>a</Feature><Feature>b</Feature>",
     "<State>Running</State><Feature aggregation=\"List\">a,b</Feature>", [LISTED]),
    ("<Feature>a</Feature><Feature aggregation='Pattern'>b.*</Feature>",
     "<Feature>a</Feature><Feature aggregation=\"Pattern\">b.*</Feature>", [STAY]),
    ("<Feature>a</Feature><Feature>b</Feature><Requested><Queue conj='Or' group='1'>q</Queue></Requested>",
     "<Feature>a</Feature><Feature>b</Feature><Requested><Queue conj=\"Or\">q</Queue></Requested>",
     [STAY, ("SSS402", "warning", "group")]),
    ("<Requested><Feature>a</Feature><Feature>b</Feature></Requested>",
     "<Requested><Feature>a</Feature><Feature>b</Feature></Requested>", []),
    ("<Network>Infiniband</Network>", "<Network>Infiniband</Network>", []),
    ("<Requested><Network op='NE'>GigE</Network></Requested>",
     "<Requested><Network op=\"NE\">GigE</Network></Requested>", []),
    ("<Network units='Gbps'>10</Network>", "<Network units=\"Gbps\">10</Network>", []),
    ("<Node aggregation='Range' count='2'>a[08-10],b2</Node>",
     "<Node aggregation=\"List\" count=\"2\">a08,a09,a10,b2</Node>", [("SSS502", "info", "Node")]),
    ("<Node aggregation='Range'>a[1-3,7]</Node>", "<Node aggregation=\"Range\">a[1-3,7]</Node>", []),
    ("<Node aggregation='List'>a,b</Node>", "<Node aggregation=\"List\">a,b</Node>", []),
    ("<Node aggregation='Range'>a[1-,b</Node>", "<Node aggregation=\"Range\">a[1-,b</Node>", []),
    ("<Node aggregation='Range'>a[1-9],b[1-9999999]</Node>",
     "<Node aggregation=\"Range\">a[1-9],b[1-9999999]</Node>", [("SSS110", "error", "Node")]),
])
def test_the_forms_of_3_1(body: str, written: str, told: list[tuple[str, str, str]]) -> None:
    assert in_3_1(body) == (written, told)
    document = read_document(f"<Job>{body}</Job>")
    assert read_document(write_document(document, profile="liberal")).root == document.root
    if not told or told[0][0] == "SSS502":
        assert in_3_1(written) == (written, [])


def test_forms_are_told_once() -> None:
    _, findings = in_3_1("<Id>g</Id>" + "<Job><Node aggregation='Range'>a1,b[1-2]</Node></Job>" * 3, "JobGroup")
    assert findings == [("SSS502", "info", "Node")]


@pytest.mark.parametrize("profile", ["3.0", "mam", "msub"])
def test_lax_profiles_name_the_adapter(profile: str) -> None:
    text = write_document(read_document("<Job><Network>x</Network></Job>"), profile=profile)
    assert "<NetworkAdapter>x</NetworkAdapter>" in text


def carried(file: File) -> bytes | str:
    """What a File carries: its bytes, or its text where that is no valid base64."""
    try:
        return file.content()
    except ValueError:
        return file.text


@settings(max_examples=examples(40), deadline=None)
@given(documents())
def test_what_is_written_reads_back(document: Document) -> None:
    findings = Findings()
    text = write_document(document, findings=findings)
    rules = {finding.rule for finding in findings}
    assume("SSS201" not in rules)       # characters that XML cannot hold
    again = read_document(text)
    if "SSS402" not in rules:           # brackets that were left open are closed
        assert list(again.bodies()) == list(document.bodies())
    assert {n: carried(f) for n, f in again.files.items()} == {n: carried(f) for n, f in document.files.items()}
    assert write_document(again, findings=Findings()) == text


@pytest.mark.parametrize("profile", ["liberal", "3.0"])
def test_older_names_come_back(profile: str) -> None:
    text = "<Job>\n  <JobId>a</JobId>\n  <UserId>amy</UserId>\n  <WallDuration>60</WallDuration>\n</Job>\n"
    document = read_document(text)
    assert write_document(document, profile=profile) == text
    assert write_document(document) == ("<Job>\n  <Id>a</Id>\n  <User>amy</User>\n  <Duration>60</Duration>\n</Job>\n")


def test_group_names_of_3_0_are_not_those_of_jobs() -> None:
    text = ("<JobGroup>\n  <JobGroupId>g</JobGroupId>\n  <Job>\n    <JobId>a</JobId>\n    <TaskGroup>\n"
            "      <TaskGroupName>M</TaskGroupName>\n      <UserId>u</UserId>\n    </TaskGroup>\n  </Job>\n"
            "</JobGroup>\n")
    assert write_document(read_document(text), profile="3.0") == text


def test_gold_refuses_what_gold_refuses() -> None:
    document = read_document("<Job><Id>a</Id><Requested><Processors>2</Processors></Requested></Job>")
    with pytest.raises(RejectedError, match="Requested is not accepted in profile gold"):
        write_document(document, profile="gold")
    findings = Findings()
    tolerant = read_document('<Job awarenessPolicy="Warn"><Id>a</Id><Extension name="x">1</Extension></Job>')
    write_document(tolerant, profile="gold", findings=findings)
    assert [(f.rule, f.severity) for f in findings] == [("SSS501", "warning")]


def test_usage_records() -> None:
    text = ("<UsageRecord>\n  <Instance>Moab.1</Instance>\n  <Account>chemistry</Account>\n"
            "  <Duration>3600</Duration>\n</UsageRecord>\n")
    assert write_document(read_document(text, profile="mam"), profile="mam") == text


def test_msub_scripts_are_packed_and_unpacked() -> None:
    script = "#!/bin/sh\nsleep 1000 && echo 'a<b' # ü\n"
    assert unpack(pack(script)) == script
    text = f"<job>\n  <SubmitString>{pack(script).replace('<', '&lt;')}</SubmitString>\n</job>\n"
    document = read_document(text, profile="msub")
    assert document.files["Script"].text == script
    assert write_document(document, profile="msub") == text


def test_a_job_with_files_is_written_as_a_request() -> None:
    document = Document(Job(), {"Script": File("Script", "#!/bin/sh\necho 'a < b' && true\n")})
    assert isinstance(document.root, Job)
    document.root.user = "amy"
    document.root.executable = "#Script"
    text = write_document(document)
    assert text.splitlines()[0] == '<Request action="Submit" actor="amy">'
    assert read_document(text).files == document.files
    assert write_document(read_document(text)) == text


def test_what_xml_cannot_hold_rejects_or_goes_in_as_base64() -> None:
    job = Job([Property("Arguments", "a\x00b")])
    with pytest.raises(RejectedError, match="XML cannot hold"):
        write_document(job)
    document = Document(Job(), {"S": File("S", "a\x07b")})
    document.root.items.append(Job().add("Executable", "#S"))  # type: ignore[union-attr]
    assert read_document(write_document(document)).files["S"].content() == b"a\x07b"


def test_markup_in_values_stays_text() -> None:
    job = Job()
    job.name = "</Name><Evil/>&x;"
    job.add("Extension", "a\rb\n", name='q"<>\n')
    again = read_document(write_document(job))
    assert again.root == job


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_references_and_empty_containers(profile: str) -> None:
    group = JobGroup([Job(reference="a & b")])
    group.id = "g"
    text = write_document(group, profile=profile, findings=Findings())
    assert "<Evil" not in text
    if profile not in ("gold", "mam"):
        assert read_document(text).root == group


@pytest.mark.parametrize(("groups", "written"), [
    ((-1, 1), (1, -1)), ((1, 0), (1, -1)), ((0, -1), (1, -1)), ((1, -1), (1, -1)), ((-2, 1, 0), (None, 1, -1)),
])
def test_brackets_are_written_balanced(groups: tuple[int, ...], written: tuple[int | None, ...]) -> None:
    """What is written needs no mending when it is read again; that it was mended is told."""
    asked = "".join(f'<Processors conj="Or" group="{n}">{at}</Processors>' for at, n in enumerate(groups, 1))
    read = read_document(f"<Requested>{asked}</Requested>")
    findings = Findings()
    again = read_document(write_document(read, findings=findings))
    assert isinstance(read.root, Requested) and isinstance(again.root, Requested)
    assert [p.group or None for p in again.root.all("Processors")] == list(written)
    assert [(f.rule, f.line, f.column) for f in findings] == ([] if groups == written else [("SSS402", 1, 12)])
    assert str(parse(again.root)) == str(parse(read.root))
