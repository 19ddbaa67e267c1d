"""Reading: the published examples as printed, repairs and their places, aliases, unknown parts, limits, hostile XML."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Document, Job, JobDefaults, JobGroup
from sssjob.document.vocabulary import ELEMENTS, in_scope
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.xml.reader import read_document
from sssjob.xml.streaming import stream_jobs
from sssjob.xml.writer import write_document
from tests.strategies import examples

SPEC = Path(__file__).parents[1] / "fixtures" / "spec-3.1.0"


def job(body: str, **options: object) -> Document:
    """A document with one Job, read."""
    return read_document(f"<Job>{body}</Job>", **options)  # type: ignore[arg-type]


def rules(document: Document) -> list[str]:
    """The rule ids of all findings, in order."""
    assert document.findings is not None
    return [f.rule for f in document.findings]


def refused(text: str | bytes, **options: object) -> list[str]:
    """The rule ids with which a text is refused."""
    with pytest.raises(RejectedError) as caught:
        document = read_document(text, **options)  # type: ignore[arg-type]
        assert document.findings is not None
        document.findings.raise_if_rejected()
    return [f.rule for f in caught.value.findings if f.rejects]


# --- the published examples (section 1.3) ---------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["very-simple", "moderate", "elaborate"])
def test_published_examples_read_as_printed(name: str) -> None:
    document = read_document(SPEC / f"{name}.xml")
    assert document.findings is not None
    assert not document.findings.rejected, list(document.findings)
    assert set(rules(document)) <= {"SSS104", "SSS105"}


def test_every_repair_of_the_elaborate_example_has_its_place() -> None:
    document = read_document(SPEC / "elaborate.xml")
    assert document.findings is not None
    closed = [(f.line, f.column, f.subject) for f in document.findings if f.rule == "SSS105"]
    assert closed == [(15, 5, "Environment"), (67, 19, "Memory")]
    quotes = [f for f in document.findings if f.rule == "SSS104"]
    assert len(quotes) == 13
    assert (quotes[0].line, quotes[0].column, quotes[0].subject) == (13, 22, "LD_LIBRARY_PATH")


@pytest.mark.parametrize(("name", "line"), [("moderate", 18), ("elaborate", 13)])
def test_the_strict_profile_refuses_them_with_line_and_column(name: str, line: int) -> None:
    with pytest.raises(RejectedError) as caught:
        read_document(SPEC / f"{name}.xml", profile="3.1")
    first = caught.value.findings[0]
    assert (first.rule, first.line) == ("SSS101", line)
    assert first.column > 0
    assert "liberal" in first.hint


def test_typed_access() -> None:
    document = read_document(SPEC / "moderate.xml")
    found = document.root
    assert isinstance(found, Job)
    assert (found.id, found.user, found.project, found.start_time) == ("PBS.1234.0", "peterk", "nwchemdev", 1051557713)
    assert found.charge is not None and found.charge.value == Decimal(25410)
    assert found.requested is not None and found.requested.processors is not None
    assert (found.requested.processors.value, found.requested.processors.op) == (12, "GE")
    assert found.delivered is not None and found.delivered.memory is not None
    assert (found.delivered.memory.value, found.delivered.memory.metric, found.delivered.memory.units) == (
        Decimal("1.89"), "Average", "GB")
    assert found.environment is not None
    assert found.environment.variables() == {"PATH": "/usr/bin:/home/peterk"}


# --- aliases (section 15 of the restored reference) -----------------------------------------------------------------

@pytest.mark.parametrize(("alias", "name"), sorted(
    (a, e.name) for e in ELEMENTS if e.table == "Job" and e.type == "String" and not e.attributes for a in e.aliases))
def test_every_alias_is_read_as_its_name(alias: str, name: str) -> None:
    document = job(f"<{alias}>x</{alias}>")
    assert isinstance(document.root, Job)
    assert document.root.value(name) == "x"
    assert "SSS306" in rules(document)
    assert "SSS301" in refused(f"<Job><{alias}>x</{alias}></Job>", profile="3.1") or alias in in_scope("Job")


def test_an_alias_beside_its_name_gives_way_and_is_kept() -> None:
    document = job("<Account>b</Account><Project>a</Project>")
    assert isinstance(document.root, Job)
    assert document.root.project == "a"
    assert "SSS307" in rules(document)
    assert [r.tag for r in document.root.unknown()] == ["Account"]


def test_names_in_another_case_are_read_with_a_finding() -> None:
    document = job("<user>amy</user>")
    assert isinstance(document.root, Job)
    assert document.root.user == "amy"
    assert rules(document) == ["SSS310"]


def test_wrappers_of_maui_are_transparent() -> None:
    document = job("<NodeProperties><Feature>a</Feature><Feature>b</Feature></NodeProperties>"
                   "<NodeList><Node>n1</Node><Node>n2</Node></NodeList>")
    assert isinstance(document.root, Job)
    assert [f.value for f in document.root.feature] == ["a", "b"]
    assert [n.value for n in document.root.node] == ["n1", "n2"]


def test_a_name_without_an_equivalent_becomes_an_extension() -> None:
    document = job("<UMask>18</UMask>")
    assert isinstance(document.root, Job)
    (found,) = document.root.extension
    assert (found.name, found.type, found.value) == ("UMask", "Maui", "18")


# --- structure ------------------------------------------------------------------------------------------------------

def test_references_by_text() -> None:
    document = read_document("<JobGroup><Id>g</Id><Job> job123</Job><Job><Id>a</Id></Job></JobGroup>")
    assert isinstance(document.root, JobGroup)
    assert [j.reference for j in document.root.jobs] == ["job123", None]
    assert [j.id for j, _ in document.jobs()] == ["a"]


@pytest.mark.parametrize("text", ["<Job/>", "<Job>x<Id>a</Id></Job>", "<Job><Id>a</Id>x</Job>"])
def test_reference_and_definition_exclude_each_other(text: str) -> None:
    assert refused(text)[0] in ("SSS309", "SSS107")


def test_text_split_by_comment_and_cdata_is_one_value() -> None:
    assert job("<User>ro<!-- -->ot</User>").root == job("<User>root</User>").root
    assert job("<User><![CDATA[ro]]>ot</User>").root == job("<User>root</User>").root


def test_unknown_parts_survive_under_ignore() -> None:
    document = job('<Id>a</Id><Warp awarenessPolicy="Ignore" x="1">nine<b/>tail</Warp>')
    assert isinstance(document.root, Job)
    (raw,) = document.root.unknown()
    assert (raw.tag, raw.attributes["x"], raw.text, raw.children[-1]) == ("Warp", "1", "nine", "tail")


def test_namespaces_are_accepted() -> None:
    document = read_document('<s:Job xmlns:s="urn:x"><s:Id>a</s:Id><s:Requested><s:Processors>2</s:Processors>'
                             "</s:Requested></s:Job>")
    assert isinstance(document.root, Job)
    assert document.root.id == "a"
    assert document.root.requested is not None


def test_files_of_a_request() -> None:
    document = read_document('<Request action="Submit"><Object>Job</Object><Data><Job><Id>a</Id><Executable>#Script'
                             '</Executable></Job></Data><File id="Script">echo hello</File></Request>')
    assert document.files["Script"].text == "echo hello"
    assert [j.id for j, _ in document.jobs()] == ["a"]


# --- values ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["1_6", "\uff11\uff12", "0b11", "9" * 5000, "nan", "1.5", "--1", "0x10"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    assert refused(f"<Job><NodeCount>{text}</NodeCount></Job>")[0] in ("SSS201", "SSS110")


def test_negative_amounts_are_refused() -> None:
    assert refused("<Job><NodeCount>-1</NodeCount></Job>") == ["SSS205"]
    assert refused("<Job><Memory>-0.5</Memory></Job>") == ["SSS205"]


def test_liberal_forms_are_read_with_a_finding_and_refused_by_the_text() -> None:
    document = job("<Requested><Duration>01:00:00</Duration></Requested><Interactive>True</Interactive>")
    assert isinstance(document.root, Job) and document.root.requested is not None
    assert document.root.requested.duration == 3600
    assert document.root.interactive is True
    assert rules(document) == ["SSS202", "SSS202"]
    assert refused("<Job><Interactive>True</Interactive></Job>", profile="3.1") == ["SSS201"]


def test_empty_elements_are_absent() -> None:
    document = job("<Id>a</Id><Processors></Processors>")
    assert isinstance(document.root, Job)
    assert document.root.processors is None


@pytest.mark.parametrize(("attribute", "rule"), [
    ('op="GE"', "SSS302"), ('units="Gb9"', "SSS206"), ('context="Guessed"', "SSS203"), ('duration="x"', "SSS207"),
    ('colour="red"', "SSS302"),
])
def test_wrong_attributes(attribute: str, rule: str) -> None:
    assert refused(f"<Job><Memory {attribute}>1</Memory></Job>") == [rule]


def test_required_attributes() -> None:
    assert refused("<Job><Resource>1</Resource></Job>") == ["SSS208"]


def test_suggestions() -> None:
    document = job("<Procesors>1</Procesors>")
    assert document.findings is not None
    assert document.findings[0].hint == "did you mean Processors?"


def test_invisible_characters_are_told() -> None:
    assert rules(job("<Queue>ba\u200dtch</Queue>")) == ["SSS209"]
    assert refused("<Job><\u0399d>a</\u0399d></Job>") == ["SSS108"]
    assert rules(job("<Name>Schwere Wässer 重水</Name>")) == []


# --- hostile XML ----------------------------------------------------------------------------------------------------

BOMB = '<!DOCTYPE j [<!ENTITY a "x">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9)) + "]>"

HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "external entity": ('<!DOCTYPE Job [<!ENTITY e SYSTEM "file:///etc/passwd">]><Job><Id>&e;</Id></Job>', "SSS102"),
    "empty doctype": ("<!DOCTYPE Job><Job><Id>a</Id></Job>", "SSS102"),
    "doctype after comment": ("<!-- x --><!DOCTYPE Job><Job><Id>a</Id></Job>", "SSS102"),
    "bomb": (BOMB + "<Job><Id>&a8;</Id></Job>", "SSS102"),
    "undefined entity": ("<Job><Id>&e;</Id></Job>", "SSS101"),
    "depth": ("<Job>" + "<TaskGroup>" * 10_000 + "</TaskGroup>" * 10_000 + "</Job>", "SSS110"),
    "unknown depth": ('<Job awarenessPolicy="Ignore">' + "<a>" * 200 + "</a>" * 200 + "</Job>", "SSS110"),
    "attributes": ("<Job><Id " + " ".join(f'a{i}="1"' for i in range(100_000)) + ">x</Id></Job>", "SSS110"),
    "gzip": (b"\x1f\x8b\x08\x00", "SSS103"),
    "utf-7": (b'<?xml version="1.0" encoding="UTF-7"?><Job><Id>a</Id></Job>', "SSS103"),
    "utf-32": ("<Job><Id>a</Id></Job>".encode("utf-32"), "SSS103"),
    "utf-16 without mark": ("<Job><Id>a</Id></Job>".encode("utf-16-le"), "SSS103"),
    "ebcdic": (b"\x4c\x6f\xa7\x94\x93", "SSS103"),
    "declared utf-16": (b'<?xml version="1.0" encoding="UTF-16"?><Job><Id>a</Id></Job>', "SSS103"),
    "overlong": (b"<Job><Id>\xc0\xaf</Id></Job>", "SSS103"),
    "empty": (b"", "SSS109"),
    "white space": (b" \n", "SSS109"),
    "another root": ("<html><body/></html>", "SSS109"),
    "cut": ("<Job><Id>a</Id>", "SSS101"),
    "nul": (b"<Job><Id>a\x00b</Id></Job>", "SSS101"),
    "not xml": ("#!/bin/sh\n#SBATCH -n 4\n", "SSS101"),
    "huge text": ("<Job><Id>" + "x" * 11_000_000 + "</Id></Job>", "SSS110"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_documents_are_refused_by_name(case: str) -> None:
    text, rule = HOSTILE[case]
    assert refused(text)[0] == rule


def test_a_root_in_other_letters_is_told_by_their_code_points() -> None:
    with pytest.raises(RejectedError, match=r"ob is not the root of a job document, in which \u0408 is U\+0408$"):
        read_document("<\u0408ob/>")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_encodings_that_are_accepted(encoding: str) -> None:
    declared = "" if encoding.startswith("utf") else f'<?xml version="1.0" encoding="{encoding}"?>'
    document = read_document(f"{declared}<Job><Name>Wässer</Name></Job>".encode(encoding))
    assert isinstance(document.root, Job)
    assert document.root.name == "Wässer"


def test_inclusions_and_hints_are_not_followed() -> None:
    document = read_document(
        '<?xml-stylesheet href="http://x/"?><Job xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://x http://x"><Id>a</Id></Job>')
    assert rules(document) == ["SSS106", "SSS106"]
    assert refused('<Job xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd" parse="text"/>'
                   "</Job>") == ["SSS301"]


def test_places_of_findings() -> None:
    document = read_document("<Job>\n  <Id>a</Id><Foo/> <Foo\n  x='1'/>\n</Job>")
    assert document.findings is not None
    assert [(f.line, f.column) for f in document.findings] == [(2, 13), (2, 20)]
    assert document.findings[0].excerpt == "  <Id>a</Id><Foo/> <Foo"


def test_limits_have_names_and_can_be_raised() -> None:
    small = Limits(document_bytes=10)
    with pytest.raises(RejectedError, match="document_bytes"):
        read_document("<Job><Id>a</Id></Job>", limits=small)
    assert job("<Id>a</Id>", limits=LIMITS).root == Job([*job("<Id>a</Id>").root.items])  # type: ignore[union-attr]


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"3\.1, liberal"):
        read_document("<Job/>", profile="4.0")


@settings(max_examples=examples(40), deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: f"<Job>{t}</Job>".encode("utf-8", "replace")))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_document(data)
    except RejectedError as error:
        assert any(f.rejects for f in error.findings)


# --- caches are not to be seen --------------------------------------------------------------------------------------

def test_what_was_ignored_once_is_not_ignored_elsewhere() -> None:
    ignored = '<Job awarenessPolicy="Ignore"><Id>a</Id><User x="1">amy</User></Job>'
    refusing = '<Job><Id>b</Id><User x="1">amy</User></Job>'
    assert refused(f"<JobGroup><Id>g</Id>{ignored}{refusing}</JobGroup>") == ["SSS302"]
    read_document(ignored)
    assert refused(refusing) == ["SSS302"]


def test_a_leaf_with_elements_is_refused_even_when_its_text_was_seen() -> None:
    assert refused("<JobGroup><Id>g</Id><Job><Queue>a</Queue></Job><Job><Queue>a<b/></Queue></Job></JobGroup>")


# --- streams --------------------------------------------------------------------------------------------------------

def test_a_stream_gives_the_same_jobs_as_the_whole() -> None:
    text = (SPEC / "elaborate.xml").read_text(encoding="utf-8")
    whole = read_document(text)
    from sssjob.xml.writer import write_document

    straight = write_document(whole)
    whole = read_document(straight)         # its brackets were mended
    streamed = list(stream_jobs(io.BytesIO(straight.encode())))
    assert isinstance(whole.root, JobGroup)
    assert [s for s in streamed if isinstance(s, Job)] == whole.root.jobs
    assert [s for s in streamed if isinstance(s, JobDefaults)] == [whole.root.defaults]


def test_a_stream_names_line_and_limit() -> None:
    findings = Findings("f")
    text = "<JobGroup>\n<Id>g</Id>\n<Job>\n<Id>a</Id><Foo/></Job></JobGroup>"
    assert len(list(stream_jobs(text, findings=findings))) == 1
    assert [(f.rule, f.line, f.column) for f in findings] == [("SSS301", 4, 11)]
    with pytest.raises(RejectedError, match="child_elements"):
        body = "<Hold>System</Hold>" * 2000
        list(stream_jobs(f"<Job>{body}</Job>", limits=Limits(child_elements=1000)))


@pytest.mark.parametrize("text", ["<JobGroup><Job><Id>a</Id></Job>", "<JobGroup><Job><Id>a</Job>", "", "<!DOCTYPE x>"])
def test_a_broken_stream_is_refused(text: str) -> None:
    with pytest.raises(RejectedError):
        list(stream_jobs(text))


def test_policy_of_the_caller_is_the_outermost_default() -> None:
    assert rules(job("<Foo/>", policy=Policy.IGNORE)) == []
    document = job("<Foo/>", policy=Policy.WARN)
    assert document.findings is not None and not document.findings.rejected


# --- what may stand once, other names of containers, places of checks ------------------------------------------------

def placed(text: str, profile: str = "liberal") -> list[tuple[str, str, str, int, int]]:
    found = read_document(text, profile=profile).findings or ()
    return [(f.rule, f.severity, f.subject, f.line, f.column) for f in found]


@pytest.mark.parametrize(("body", "name", "liberal"), [
    ("<Name>a</Name>\n <Name>b</Name>", "Name", True), ("<Name>a</Name>\n <Name>a</Name>", "Name", False),
    ("<Feature>a</Feature>\n <Feature>b</Feature>", "Feature", False),
    ("<Memory metric='Max'>1</Memory>\n <Memory metric='Average'>2</Memory>", "Memory", False),
])
def test_what_stands_twice_is_an_error_in_3_1(body: str, name: str, liberal: bool) -> None:
    text = f"<Job><Queue>q</Queue>{body}</Job>"
    assert placed(text, "3.1") == [("SSS304", "error", name, 2, 2)]
    assert placed(text) == ([("SSS304", "warning", name, 2, 2)] if liberal else [])


def test_what_repeats_in_requested_is_no_error() -> None:
    assert placed("<Job><Requested><Feature>a</Feature><Feature>b</Feature></Requested></Job>", "3.1") == []


@pytest.mark.parametrize("profile", ["3.1", "liberal"])
def test_an_environment_may_hold_no_variable(profile: str) -> None:
    assert placed('<Job><Id>1</Id><Environment export="true"/></Job>', profile) == []
    assert [f[:3] for f in placed("<Job><Environment/></Job>", profile)] == [("SSS204", "info", "Environment")]
    requested = placed("<Job><Requested/></Job>", profile)
    assert [f[0] for f in requested] == ["SSS309" if profile == "3.1" else "SSS204"]


def test_other_names_of_containers_are_told_once_with_their_place() -> None:
    text = "<JobGroup><Id>g</Id>\n  <job><Id>1</Id></job><job><Id>2</Id></job></JobGroup>"
    assert placed(text) == [("SSS306", "info", "job", 2, 3)]
    assert placed("<Job><Id>1</Id></Job>") == placed("<job><Id>1</Id></job>", "msub") == []
    findings = Findings()
    assert [j.spelling for j in stream_jobs(text, findings=findings)] == ["job", "job"]
    assert [(f.rule, f.line, f.column) for f in findings] == [("SSS306", 2, 3)]


def test_a_name_without_equivalent_keeps_its_attributes() -> None:
    document = job("<StepId>7</StepId><UMask octal='true'>077</UMask>", policy=Policy.WARN)
    assert rules(document) == ["SSS312", "SSS301"]
    assert write_document(document, profile="liberal") == (
        '<Job>\n  <StepId>7</StepId>\n  <UMask octal="true">077</UMask>\n</Job>\n')


_PAD = " " * (1 << 20)


@pytest.mark.parametrize(("text", "expected"), [
    (f"{_PAD}\n<!DOCTYPE x [<!ENTITY a 'b'>]><JobGroup><Job><Id>&a;</Id></Job></JobGroup>",
     "-: SSS102 error a document type declaration is not accepted"),
    ("<JobGroup><Job><Id>&a;</Id></Job></JobGroup>", "-:1:23: SSS101 error Entity 'a' not defined"),
    ("<JobGroup>\n" + "<a>" * 300 + "</a>" * 300 + "</JobGroup>",
     "-:2:768: SSS110 error elements are nested deeper than the limit depth"),
    (b"<JobGroup><Job><Id>\xff\xfe</Id></Job></JobGroup>", "-:1:20: SSS103 error Invalid bytes in character encoding"),
    ("<JobGroup><Job><Id>a</Id></Job>", "-:1:32: SSS101 error Premature end of data in tag JobGroup line 1"),
], ids=["late DOCTYPE", "undeclared entity", "depth", "bytes", "torn"])
def test_streams_are_refused_for_what_documents_are(text: str | bytes, expected: str) -> None:
    with pytest.raises(RejectedError) as error:
        list(stream_jobs(text))
    assert [str(f) for f in error.value.findings] == [expected]


def test_a_stream_may_be_cut_inside_a_character() -> None:
    name = "x" * 600
    text = f"\ufeff<JobGroup>{_PAD[:524_288 - 33]}<Job><Name>\U0001F600{name}</Name></Job></JobGroup>"
    assert [j.value("Name") for j in stream_jobs(text.encode("utf-16-le"))] == [f"\U0001F600{name}"]


def test_what_is_unknown_takes_no_longer_when_there_is_more_of_it() -> None:
    """5,000 unknown elements, all of other names, on one line: hints and places are looked up for what is kept."""
    text = "<JobGroup>" + "".join(f"<C{i}>x</C{i}>" for i in range(5_000)) + "</JobGroup>"
    findings = read_document(text).findings
    assert findings is not None and (len(findings), findings.overflow) == (1000, 4_000)
    assert [f.column for f in findings][:3] == [11, 21, 31]
