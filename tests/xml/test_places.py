"""Findings point at the property that they are about, wherever and however it stands in the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.conversion.converting import Conversion, singles
from sssjob.document.element import Container, Property
from sssjob.document.model import Document
from sssjob.findings import Findings, Policy
from sssjob.validation import check
from sssjob.xml import places
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

MARK = "§"      # stands before the tag that is looked for, and is no part of the text

BAD = '<Variable name="1">x</Variable>'


def marked(text: str) -> tuple[bytes, tuple[int, int]]:
    """The text without its mark, and where that stood."""
    before, _, after = text.partition(MARK)
    return (before + after).encode(), (before.count("\n") + 1, len(before) - before.rfind("\n"))


def checked(data: bytes) -> list[tuple[int, int]]:
    """The places of names of variables that are none."""
    findings = Findings()
    check(read_document(data), findings)
    return [(f.line, f.column) for f in findings if f.rule == "SSS417"]


@pytest.mark.parametrize("text", [
    f"<Job><Environment>{MARK}{BAD}</Environment></Job>",
    f"<Job>\r\n\t<Environment>\r\n\t\t{MARK}{BAD}</Environment>\r\n</Job>",
    f"<Job><Name>Zoë € 𝄞</Name><Environment>{MARK}{BAD}</Environment></Job>",
    f"\ufeff<Job><Environment>{MARK}{BAD}</Environment></Job>".replace("\ufeff", ""),
    f"<Job\n><Environment\nexport='true'\n>{MARK}<Variable\nname='1'>x</Variable></Environment></Job>",
    f"<!-- <Job> -->\n<Job><!-- <Environment> --><Name><![CDATA[<Environment>]]></Name><Environment>{MARK}{BAD}"
    "</Environment></Job>",
    f"<Job><Environment><Variable name='a'/><Variable name='b'></Variable>{MARK}{BAD}</Environment></Job>",
    f"<Job><Name/><TaskGroup><Environment><Variable name='a'>x</Variable></Environment></TaskGroup><TaskGroup>"
    f"<Environment>{MARK}{BAD}</Environment></TaskGroup></Job>",
    f'<JobGroup><Id>g</Id><Job><Environment><Variable name="a">x</Variable></Environment></Job><Job><Environment>'
    f'{MARK}{BAD}</Environment></Job></JobGroup>',
    f"<s:Job xmlns:s='urn:s'><s:Environment>{MARK}<s:Variable name='1'>x</s:Variable></s:Environment></s:Job>",
    f"<job><env/><environment>{MARK}<variable name='1'>x</variable></environment></job>",
    f"<Envelope><Body><Request><File id='a'>&lt;Job></File><Job><Id>1</Id></Job>\n<Job><Environment>{MARK}{BAD}"
    "</Environment></Job></Request></Body></Envelope>",
    # repaired: the place is that of the text as it stands
    f"<Job><Memory units=“GB”>1</Memory><Environment>{MARK}{BAD}</Environment></Job>",
    f"<Job><Memory>1<Memory><Name>n<Name><Environment>{MARK}{BAD}</Environment></Job>",
    # wrappers, whose children count as those of the container outside
    f"<Job><Requested><NodeList><Node>a</Node></NodeList></Requested><Environment>{MARK}{BAD}</Environment></Job>",
])
def test_the_place_is_that_of_the_property(text: str) -> None:
    data, place = marked(text)
    assert checked(data) == [place]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_marks_of_encodings_are_no_column(encoding: str) -> None:
    data, place = marked(f"<Job><Name>é</Name><Environment>{MARK}{BAD}</Environment></Job>")
    assert checked(data.decode().encode(encoding)) == [place]


def test_a_declared_encoding_counts() -> None:
    data, place = marked(f"<?xml version='1.0' encoding='ISO-8859-1'?>\n<Job><Name>é</Name><Environment>{MARK}{BAD}"
                         "</Environment></Job>")
    assert checked(data.decode().encode("latin-1")) == [place]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_what_the_reader_tells_has_its_place_in_every_encoding(encoding: str) -> None:
    """Line, column and the source line as it reads, though the bytes of a line end are others."""
    named = encoding.partition("-le")[0].partition("-be")[0]
    text = f"<?xml version='1.0' encoding='{named}'?>\n<Job>\n <Name>é</Name> <Processors>many</Processors>\n</Job>\n"
    marked_text = "\ufeff" + text if named == "utf-16" else text
    findings = read_document(marked_text.encode(encoding)).findings
    assert findings is not None
    assert [(f.rule, f.line, f.column, f.excerpt) for f in findings] == [
        ("SSS201", 3, 17, " <Name>é</Name> <Processors>many</Processors>")]


def test_documents_of_lines_have_places_too() -> None:
    """One property a line: read without a tree, of properties that are shared."""
    job = "  <Job>\n    <Id>{}</Id>\n    <StartTime>9</StartTime>\n    <EndTime>5</EndTime>\n  </Job>\n"
    text = "<JobGroup>\n  <Id>g</Id>\n" + "".join(job.format(n) for n in range(3)) + "</JobGroup>\n"
    findings = Findings()
    check(read_document(text.encode()), findings)
    assert [(f.line, f.column, f.excerpt) for f in findings] == [
        (line, 5, "    <EndTime>5</EndTime>") for line in (6, 11, 16)]


GROUP = """<JobGroup><Id>g</Id>
  <JobDefaults><Executable>/bin/x</Executable>
    <Feature aggregation="Pattern">a.*</Feature></JobDefaults>
  <Job><Id>a</Id><Requested><Memory op="GE">4</Memory> <Memory op="GE">8</Memory></Requested></Job><Job><Id>b</Id>
    <TaskGroup><Checkpointable>true</Checkpointable></TaskGroup></Job>
</JobGroup>"""


def converted(document: Document, target: str) -> list[tuple[str, int, int]]:
    """Subjects and places of the findings of a translation of all jobs."""
    findings = Findings()
    how = Conversion("sss", target, Policy.WARN)
    for name, single in singles(document):
        how.files(single, how.writing(findings, Policy.WARN, name))
    return [(f.subject, f.line, f.column) for f in findings if f.subject in ("Feature", "Memory", "Checkpointable")]


@pytest.mark.parametrize("target", ["slurm", "pbspro", "lsf", "sge", "psij", "jsdl", "flux-jobspec"])
def test_translations_name_the_place_too(target: str) -> None:
    """Of a property that the job inherits it is that in the defaults."""
    where = {"Feature": {(3, 5)}, "Memory": {(4, 29), (4, 56)}, "Checkpointable": {(5, 16)}}
    findings = converted(read_document(GROUP.encode()), target)
    assert {subject for subject, _, _ in findings} >= {"Feature"}
    assert [t for t in findings if t[1:] not in where[t[0]]] == []


@pytest.mark.parametrize(("first", "second"), [("", "<Name>n</Name>"), ("", ""), ("<Id>1</Id>", "")])
def test_jobs_of_one_line_without_names_have_places(first: str, second: str) -> None:
    """A job with defaults is a copy, and of several on one line names tell which. One without any name was put among
    those that were being looked through, for ever: `run`, `convert` and `explain` did not end."""
    text = (f"<JobGroup><Id>g</Id><JobDefaults><Project>p</Project></JobDefaults><Job>{first}"
            f"<Executable>/a</Executable></Job><Job>{second}<Executable>/b</Executable>{MARK}<Feature>x</Feature></Job></JobGroup>")
    data, (line, column) = marked(text)
    assert converted(read_document(data), "psij") == [("Feature", line, column)]


def test_a_large_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is not kept; where it was changed meanwhile there is only the line."""
    monkeypatch.setattr(places, "_KEPT", 10)
    data, place = marked(f"<Job>\n<Environment>{MARK}{BAD}</Environment></Job>")
    file = tmp_path / "job.xml"
    file.write_bytes(data)
    for later, expected in ((b"", place), (b" ", (2, 0))):
        document = read_document(file)
        if later:
            file.write_bytes(data + later)
        findings = Findings()
        check(document, findings)
        assert [(f.line, f.column) for f in findings] == [expected]


def test_a_job_made_to_take_long_has_the_place_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_MOST", 100)
    assert checked(f"<Job><Environment>{BAD * 200}</Environment></Job>".encode()) == [(1, 1)]
    monkeypatch.setattr(places, "_WORK", 0)
    assert checked(f"<Job>\n<Environment>{BAD}</Environment></Job>".encode()) == [(1, 1)]


def test_what_is_not_there_has_the_place_of_what_is_nearest() -> None:
    document = read_document(b"<Job>\n <Requested>\n  <Memory>4</Memory></Requested></Job>")
    job, there = document.root, document.places
    assert isinstance(job, Container) and there is not None
    for item, path, place in ((Property("Memory", 4), "/Job/Requested/Memory", (3, 3)),
                              (Property("Memory", 5), "/Job/Requested/Memory", (3, 3)),
                              (Property("Disk", 5), "/Job/Requested/Disk", (2, 2)),
                              (None, "/Job/Requested", (2, 2)), (None, "/Job", (1, 1)), (None, "", (1, 1))):
        found = there.of(item, job, path)
        assert found is not None and found[:2] == place, path
    assert there.of(None, None, "/JobGroup") is None


def test_the_element_that_says_reject_is_blamed_and_not_what_is_around_it() -> None:
    document = read_document("<Job awarenessPolicy='Ignore'><Foo><Bar awarenessPolicy='Reject'/></Foo></Job>")
    assert document.findings is not None
    assert [(f.rule, f.subject, f.severity, f.column, f.path) for f in document.findings] == [
        ("SSS301", "Bar", "error", 36, "/Job/Foo/Bar")]


def test_comments_that_are_not_written_are_told() -> None:
    document = read_document("<!-- a -->\n<Job><Id>1</Id><!-- b --><Name><![CDATA[<!-- c -->]]></Name></Job>")
    findings = Findings()
    write_document(document, findings=findings)
    assert [(f.rule, f.severity, f.message, f.line) for f in findings] == [
        ("SSS113", "info", "2 comments are not kept", 1)]
    assert not document.findings
