"""The schemas: what they take, what they refuse, and that they know the network from hearsay only."""

from __future__ import annotations

import pytest
from lxml import etree

from sssjob.errors import RejectedError, UsageError
from sssjob.xml.reader import read_document
from sssjob.xml.schema import FILES, Version, schema_text, validate, validate_json
from sssjob.xml.twin import to_json

MODERATE = """<Job>
  <Id>PBS.1234.0</Id><Name>Heavy Water</Name><Project>nwchemdev</Project><User>peterk</User>
  <State>Completed</State><StartTime>1051557713</StartTime><EndTime>1051558868</EndTime><Charge>25410</Charge>
  <Requested><Processors op="GE">12</Processors><Memory op="GE" units="GB">2</Memory></Requested>
  <Delivered><Processors>16</Processors><Memory metric="Average" units="GB">1.89</Memory></Delivered>
  <Environment><Variable name="PATH">/usr/bin:/home/peterk</Variable></Environment>
</Job>"""
GROUP = """<JobGroup><Id>workflow1</Id>
  <JobDefaults><User>keith</User></JobDefaults>
  <Job><Id>a</Id><TaskGroup><TaskCount>2</TaskCount><Task><Node>node1</Node><Process>9</Process></Task></TaskGroup>
    <Charge units="USD">12.75</Charge></Job>
  <Job>job123</Job>
  <Job><Id>b</Id><Hold>System</Hold><Hold>User</Hold><Dependency condition="OnExit" code="1">a</Dependency>
    <TaskGroup><Requested><Processors group="1">12</Processors><Processors conj="Or" group="-1">16</Processors>
      <Node aggregation="Pattern">fr15n.*</Node></Requested></TaskGroup></Job>
</JobGroup>"""
SCRIPT = """<Request action="Submit"><Object>Job</Object><Data><Job><Executable>#Script</Executable></Job></Data>
  <File id="Script">echo</File></Request>"""
ACCEPTED = (MODERATE, GROUP, SCRIPT, "<JobGroup> workflow1</JobGroup>", "<TaskGroup>tg1</TaskGroup>",
            "<Requested><Memory preference='2'>1024</Memory></Requested>",
            "<Job><ErrorFile redirectList='Merge'/></Job>",
            "<Delivered><Queue awarenessPolicy='Ignore' group='1'>q</Queue><User group='-1'>u</User></Delivered>")
#: Refused by both.
REFUSED = (
    "<Job><Unknown>1</Unknown></Job>", "<Job><Processors>many</Processors></Job>",
    "<Job><Processors op='GE'>1</Processors></Job>",
    "<Job><Requested><Processors op='XX'>1</Processors></Requested></Job>",
    "<Job><Delivered><Processors op='GE'>1</Processors></Delivered></Job>", "<Job><Resource>1</Resource></Job>",
    "<Job><Interactive>1</Interactive></Job>", "<Job><Processors>-1</Processors></Job>",
    "<Job awarenessPolicy='Maybe'><Id>1</Id></Job>", "<Task><Node>n</Node></Task>", "<JobDefaults/>",
    "<Job><JobDefaults/></Job>", "<Job><Id colour='red'>1</Id></Job>", "<Job><Requested><Id>1</Id></Requested></Job>",
)
#: Only the 1.1 schema can refuse these.
RULES = (
    "<Job><Id>1</Id><Id>2</Id></Job>", "<Job><State>Running</State></Job>", "<Job/>",
    "<Job>ref<Id>1</Id></Job>", "<JobGroup><Id>g</Id></JobGroup>", "<JobGroup><Job>a</Job></JobGroup>",
    "<JobGroup><Id>g</Id><Job><Id>a</Id></Job><Job><Id> a</Id></Job></JobGroup>",
    "<Job><Dependency code='1'>a</Dependency></Job>", "<Job><Node delimiter=':'>a:b</Node></Job>",
    "<Requested><Queue group='1'>q</Queue></Requested>", "<Requested/>", "<Job><Memory>-1</Memory></Job>",
    "<Job><Charge>INF</Charge></Job>", "<Job><Queue> </Queue></Job>",
    "<Request action='Submit'><Data><Job><Executable>#S</Executable></Job></Data></Request>",
)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str, version: Version) -> None:
    assert list(validate(text, version)) == []


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str, version: Version) -> None:
    errors = validate(text, version)
    assert errors.rejected and all(f.message for f in errors)


@pytest.mark.parametrize("text", RULES)
def test_rules_of_the_assertions(text: str) -> None:
    assert not validate(text, "1.0").rejected
    assert validate(text, "1.1").rejected


def test_trees_and_lines() -> None:
    root = etree.fromstring("<Job>\n<Id>1</Id>\n<Bad/>\n</Job>")
    assert [(f.rule, f.line) for f in validate(root.getroottree())] == [("SSS301", 3)]


def test_hints_are_not_followed_and_dtds_refused() -> None:
    hinted = ('<Job xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
              'xsi:noNamespaceSchemaLocation="http://192.0.2.1/x.xsd"><Id>1</Id></Job>')
    assert not validate(hinted, "1.0").rejected
    assert not validate(hinted, "1.1").rejected
    with pytest.raises(RejectedError):
        validate("<!DOCTYPE Job [<!ENTITY a 'b'>]><Job><Id>&a;</Id></Job>", "1.1")


@pytest.mark.parametrize("text", ACCEPTED)
def test_twins_follow_the_json_schema(text: str) -> None:
    assert validate_json(to_json(read_document(text))) == []


@pytest.mark.parametrize("text", [
    '{"Job": {"Procesors": 1}}', '{"Job": {"Processors": true}}', '{"Job": {"Processors": -1}}', '{"Jb": {}}',
    '{"Job": {"Resource": [{"value": 1}]}}', '{"Job": {"Id": "1"}, "JobGroup": {"Id": "2"}}', '{"Job": {}}',
    '{"Job": {"Requested": [{"Processors": {"value": 1, "op": "XX"}}]}}', '{"Job": {"Id": "1"}, "File": [{"id": "x"}]}',
])
def test_the_json_schema_refuses(text: str) -> None:
    assert [f.rule for f in validate_json(text)][:1] == ["SSS112"]


def test_texts_by_name() -> None:
    assert all(schema_text(name).strip() for name in FILES)
    with pytest.raises(UsageError, match=r"known: 1\.0, 1\.1, json"):
        schema_text("2.0")
