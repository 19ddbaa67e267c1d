"""The JSON twin: lossless both ways, strict about JSON, as strict as the reader about everything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from sssjob.document.element import Raw
from sssjob.document.model import Document, File, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.xml.reader import read_document
from sssjob.xml.twin import from_json, to_json
from sssjob.xml.writer import write_document
from tests.strategies import documents, examples


@settings(max_examples=examples(40), deadline=None,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents())
def test_read_of_write_is_the_same(document: Document) -> None:
    text = to_json(document)
    back = from_json(text)
    assert back.root == document.root
    assert back.files == document.files
    assert to_json(back, indent=None) == to_json(document, indent=None)
    json.loads(text)


def test_the_whole_text_of_a_job() -> None:
    xml = ('<Job awarenessPolicy="Warn"><Id>j1</Id><Hold>User</Hold><Charge units="USD">12.750</Charge><Requested>'
           '<Processors op="GE">8</Processors><Memory group="1">1.50</Memory></Requested>'
           '<ErrorFile redirectList="Merge"/><TaskGroup>tg1</TaskGroup><Interactive>true</Interactive></Job>')
    assert to_json(read_document(xml), indent=None) == (
        '{"Job": {"@awarenessPolicy": "Warn", "Id": "j1", "Hold": ["User"], "Charge": {"value": 12.750, '
        '"units": "USD"}, "Requested": [{"Processors": {"value": 8, "op": "GE"}}, {"Memory": {"value": 1.50, '
        '"group": 1}}], "ErrorFile": {"value": "", "redirectList": "Merge"}, "TaskGroup": ["tg1"], '
        '"Interactive": true}}\n')


def test_order_that_an_object_cannot_keep() -> None:
    document = read_document("<Job><Hold>User</Hold><Id>j</Id><Hold>System</Hold></Job>")
    assert json.loads(to_json(document)) == {"Job": [{"Hold": "User"}, {"Id": "j"}, {"Hold": "System"}]}
    assert from_json(to_json(document)).root == document.root


def test_message_and_file_are_kept() -> None:
    document = read_document('<Request action="Submit" actor="amy"><Object>Job</Object><Data><Job><Id>1</Id>'
                             '<Executable>#Script</Executable></Job></Data><File id="Script">echo</File></Request>')
    back = from_json(to_json(document))
    assert (back.root, back.files) == (document.root, {"Script": File("Script", "echo")})
    assert isinstance(back.root, Raw)


def test_values_and_aliases_are_read_as_the_reader_does() -> None:
    back = from_json('{"Job": {"JobId": 17, "Hold": "User", "WallDuration": "01:00:00", "Memory": 1e2}}')
    assert isinstance(back.root, Job)
    assert back.root.id == "17" and back.root.duration == 3600 and back.root.hold == ("User",)
    assert {f.rule for f in back.findings or ()} == {"SSS306", "SSS202"}


@pytest.mark.parametrize(("text", "rule", "pointer"), [
    ('{"Job": {"Id": "a", "Id": "b"}}', "SSS111", "/Job/Id"),
    ('{"Job": {"Processors": true}}', "SSS201", "/Job/Processors"),
    ('{"Job": {"Processors": ' + "1" * 1000 + "}}", "SSS110", "/Job/Processors"),
    ('{"Job": {"Memory": 1e999999999}}', "SSS110", "/Job/Memory"),
    ('{"Job": {"Id": "\\u0000"}}', "SSS112", "/Job/Id"),
    ('{"Job": {"Id": "\\ud800"}}', "SSS112", "/Job/Id"),
    ('{"Job": {"a b": "c"}}', "SSS112", "/Job/a b"),
    ('{"Job": {"Procesors": 1}}', "SSS301", "/Job/Procesors"),
    ('{"Job": {"Requested": [{"Queue": "a"}, {"Processors": {"value": 1, "op": "XX"}}]}}', "SSS203",
     "/Job/Requested/1/Processors"),
    ('{"Job": {"Requested": [{"Queue": "a", "User": "b"}]}}', "SSS112", "/Job/Requested/0"),
    ('{"Job": {"Resource": [{"value": 1}]}}', "SSS208", "/Job/Resource/0"),
    ('{"Job": {"Memory": {"value": -1}}}', "SSS205", "/Job/Memory"),
    ('{"Job": {"Id": "a"}, "File": [{"id": "x"}]}', "SSS112", "/File/0"),
    ('{"Job": {"Id": "a"}, "File": [{"id": "x", "text": ""}, {"id": "x", "text": ""}]}', "SSS311", "/File/1/id"),
    ('{"Job": {"#raw": [1]}}', "SSS112", "/Job/#raw/0"),
    ('{"Job": {"#raw": [{"tag": "x", "attributes": []}]}}', "SSS112", "/Job/#raw/0"),
])
def test_refused_with_a_pointer(text: str, rule: str, pointer: str) -> None:
    document = from_json(text)
    assert document.findings is not None and document.findings.rejected
    assert (rule, pointer) in [(f.rule, f.path) for f in document.findings.rejecting()]


@pytest.mark.parametrize(("text", "rule"), [
    ("", "SSS111"), ("{", "SSS111"), ('{"Job": {"Charge": NaN}}', "SSS111"), (b"\xff", "SSS111"), ("[1]", "SSS112"),
    ("[" * 50_000, "SSS110"), ('{"Jb": {"Id": "1"}}', "SSS109"), ("{}", "SSS109"),
    ('{"Job": {"Id": "1"}, "JobGroup": {}}', "SSS109"), ('{"#raw": {"tag": "Foo"}}', "SSS109"),
])
def test_no_document_at_all(text: str | bytes, rule: str) -> None:
    with pytest.raises(RejectedError) as caught:
        from_json(text)
    assert [f.rule for f in caught.value.findings if f.rejects] == [rule]


def test_depth_has_a_limit() -> None:
    deep = '{"tag": "x", "children": [' * 200 + '{"tag": "y"}' + "]}" * 200
    document_or_error = None
    try:
        document_or_error = from_json('{"Job": {"Id": "a", "#raw": [' + deep + "]}}", limits=LIMITS)
    except RejectedError as error:
        assert any(f.rule == "SSS110" for f in error.findings)
    assert document_or_error is None or (document_or_error.findings and document_or_error.findings.rejected)


def test_misspelt_keys_get_a_suggestion_and_the_policy() -> None:
    found = from_json('{"Job": {"@awarenessPolicy": "Warn", "Id": "a", "Procesors": 1}}').findings
    assert found is not None and [(f.severity, f.hint) for f in found] == [("warning", "did you mean Processors?")]


FORMER = """<JobGroup>
  <JobGroupId>g</JobGroupId>
  <Job>
    <JobId>a</JobId>
    <UserId>amy</UserId>
    <WallDuration>60</WallDuration>
    <Requested>
      <WallDuration op="LE">90</WallDuration>
    </Requested>
    <TaskGroup>
      <TaskGroupId>t</TaskGroupId>
    </TaskGroup>
  </Job>
</JobGroup>
"""
MIXED = """<Request action="Submit" actor="amy">
  <Object>JobGroup</Object>
  <Data>
    <JobGroup>
      <Id>g</Id>
      <JobsDefaults unknown="1">
        <QOS>high</QOS>
      </JobsDefaults>
      <job>
        <Executable>#Script</Executable>
        <QueueId>q</QueueId>
        <UMask>077</UMask>
        <Extension type="slurm" name="constraint">x</Extension>
        <Hold>User</Hold>
        <hold>System</hold>
        <Nodes other="2">3</Nodes>
        <Requested>
          <Queue>a</Queue>
          <requestedQueue conj="Or">b</requestedQueue>
        </Requested>
        <Strange a="1">
          <inner>2</inner>
        </Strange>
      </job>
      <Job>
        <QueueId>q</QueueId>
        <Hold>User</Hold>
        <Queue2 xmlns="urn:other">z</Queue2>
      </Job>
    </JobGroup>
  </Data>
  <File id="Script">echo 'a &lt; b'
</File>
</Request>
"""


@pytest.mark.parametrize(("text", "profile"), [(FORMER, "3.0"), (FORMER, "liberal"), (MIXED, "liberal")])
def test_the_same_text_comes_back(text: str, profile: str) -> None:
    document = read_document(text)
    once = write_document(document, profile=profile, findings=Findings())
    assert once == text
    twin = to_json(document)
    back = from_json(twin)
    assert write_document(back, profile=profile, findings=Findings()) == once
    assert to_json(back) == twin
    assert read_document(once).root == document.root
    for f in back.findings or ():
        assert f.rule in {g.rule for g in document.findings or ()}, f


def test_names_are_those_of_3_1_and_the_others_beside() -> None:
    assert json.loads(to_json(read_document(FORMER)))["#spelling"] == {
        "JobGroup/Id": "JobGroupId", "Job/Id": "JobId", "Job/User": "UserId", "Job/Duration": "WallDuration",
        "Requested/Duration": "WallDuration", "TaskGroup/Id": "TaskGroupId"}
    mixed = json.loads(to_json(read_document("<job><Hold>User</Hold><hold>System</hold><Id>1</Id></job>")))
    assert mixed["#spelling"] == {"/Job": "job", "/Job/Hold/1": "hold"}
    assert "#spelling" not in to_json(read_document("<Job><Id>1</Id></Job>"))


@pytest.mark.parametrize(("spelling", "pointer"), [
    ('{"Job/Id": "User"}', "/Job/Id"), ('{"/Job/Id": "no name"}', "/Job/Id"), ('{"/Job": "JobGroup"}', "/Job"),
    ('["JobId"]', "/#spelling"), ('{"Job/Id": true}', "/#spelling"),
    ('{"Job/Id": "JobId", "Job/Id": "jobId"}', "/#spelling/Job/Id"),
])
def test_spellings_of_something_else_are_refused(spelling: str, pointer: str) -> None:
    findings = from_json(f'{{"Job": {{"Id": "1"}}, "#spelling": {spelling}}}').findings or ()
    assert [(f.kind, f.path) for f in findings if f.rejects] == [("invalid", pointer)]
