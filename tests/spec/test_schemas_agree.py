"""The reader with its checks (profile 3.1), both XML Schemas and the JSON Schema agree on what is valid.

``CASES`` says who refuses a document. XSD 1.0 cannot count, compare or demand in unordered content; JSON Schema says
nothing of what holds between several elements; only the checks know patterns, node sets, geometries and graphs.
Whatever else one of them takes and another refuses is a mistake: ``test_valid_documents`` draws documents at random.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from lxml import etree

from sssjob.document.element import Raw
from sssjob.document.model import Container, Document
from sssjob.document.vocabulary import CONTAINERS, aliases, in_scope
from sssjob.xml.reader import read_document
from sssjob.xml.schema import validate, validate_json
from sssjob.xml.twin import from_json, to_json
from sssjob.xml.writer import write_document
from tests.cases import Cases
from tests.spec.support import refused
from tests.strategies import documents, examples

J = "<Job><Id>j</Id>{}</Job>"
R = J.format("<Requested>{}</Requested>")
D = J.format("<Delivered>{}</Delivered>")
G = "<JobGroup><Id>g</Id>{}</JobGroup>"
T = J.format("<TaskGroup>{}</TaskGroup>")
FILE = "<Request action='Submit'><Data>{}</Data><File id='{}'>true</File></Request>"

#: The four, in this order; a letter says who refuses: c checks, 0 XSD 1.0, 1 XSD 1.1, j JSON Schema.
ALL, NOT_10, NOT_JSON, COUNTED, CHECKS = "c01j", "c1j", "c01", "c1", "c"

CASES: dict[str, list[str]] = {
    "": [
        J.format(""), R.format("<Processors op='GE'>8</Processors><Processors op='LE'>16</Processors>"),
        "<JobGroup> workflow1</JobGroup>", "<TaskGroup>tg1</TaskGroup>", "<Job>job123</Job>",
        "<Requested><Memory preference='2'>1024</Memory><Memory preference='1'>512</Memory></Requested>",
        "<Delivered><Machine group='1'>a</Machine><Processors group='-1'>4</Processors></Delivered>",
        R.format("<Feature group='1'>a</Feature><Feature conj='Or' group='-1'>b</Feature>"),
        J.format("<Hold>User</Hold><Hold>System</Hold>"), J.format("<ErrorFile redirectList='Merge'/>"),
        J.format("<OutputFile redirectList='Append,Keep'>o</OutputFile>"),
        J.format("<Charge units='USD'>12.75</Charge>"),
        J.format("<Resource name='T' type='Z' metric='KX' duration='7'>10</Resource>"),
        J.format("<Network>Infiniband</Network>"), J.format("<Network units='Gbps'>10</Network>"),
        J.format("<Feature aggregation='List' delimiter=':'>a:b</Feature>"),
        J.format("<StartTime>99999999999</StartTime>"),
        J.format("<Dependency condition='OnExit' code='1'>k</Dependency>"), J.format("<State>Dreaming</State>"),
        J.format("<Environment export='true'><Variable name='A'/></Environment>"), "<Job><Queue>q</Queue></Job>",
        "<Job><State>NotQueued</State></Job>", T.format("<Task><Node>n</Node><Process>9</Process></Task>"),
        G.format("<JobDefaults><Queue>q</Queue></JobDefaults><Job>a</Job>" + J.format("")),
        J.format("<Requested><Memory>1</Memory></Requested><Requested><Disk>1</Disk></Requested>"),
        J.format("<Arguments/><StatusMessage> two\nlines </StatusMessage>"),
    ],
    ALL: [
        J.format("<Unknown>1</Unknown>"), J.format("<Processors>many</Processors>"),
        J.format("<Processors>1.5</Processors>"),
        J.format("<Processors op='GE'>1</Processors>"), R.format("<Processors op='XX'>1</Processors>"),
        R.format("<Processors conj='AndNot'>1</Processors>"), D.format("<Processors op='GE'>1</Processors>"),
        J.format("<Resource>1</Resource>"), J.format("<Extension>1</Extension>"),
        J.format("<ResourceLimit>1</ResourceLimit>"), J.format("<Environment><Variable>1</Variable></Environment>"),
        J.format("<Interactive>1</Interactive>"), J.format("<Interactive>True</Interactive>"),
        J.format("<Processors>-1</Processors>"), J.format("<StartTime>-1</StartTime>"),
        J.format("<StartTime>now</StartTime>"), J.format("<CpuDuration>01:00</CpuDuration>"),
        J.format("<Memory context='Guessed'>1</Memory>"), J.format("<Memory dynamic='TRUE'>1</Memory>"),
        J.format("<Memory duration='x'>1</Memory>"), "<Job awarenessPolicy='Maybe'><Id>j</Id></Job>",
        "<Job awarenessPolicy='ignore'><Id>j</Id></Job>", J.format("<JobDefaults><Queue>q</Queue></JobDefaults>"),
        "<Job><Id colour='red'>j</Id></Job>", "<Job colour='red'><Id>j</Id></Job>", R.format("<Id>1</Id>"),
        J.format("<Dependency condition='OnWhim'>j</Dependency>"), J.format("<Process>1</Process>"),
        J.format("<OutputFile redirectList='Explode'>o</OutputFile>"), T.format("<Task><Task>1</Task></Task>"),
        J.format("<InputFile redirectList='Append'>o</InputFile>"), J.format("<UserId>u</UserId>"),
        J.format("<Feature aggregation='Range'>a</Feature>"), J.format("<Node aggregation='Heap'>a</Node>"),
        R.format("<Memory preference='x'>1</Memory>"), R.format("<Memory group='x'>1</Memory>"),
        J.format("<TaskDistribution type='Whim'>x</TaskDistribution>"), J.format("<user>u</user>"),
        "<Task><Node>n</Node></Task>", "<JobDefaults><Queue>q</Queue></JobDefaults>",
    ],
    NOT_10: [
        "<Job/>", "<JobGroup/>", J.format("<Requested/>"), J.format("<Delivered/>"), T.format(""), J.format("<Queue/>"),
        "<JobGroup><Id>g</Id></JobGroup>", "<JobGroup>" + J.format("") + "</JobGroup>",
        J.format("<Memory>-1</Memory>"), J.format("<Dependency code='1'>j</Dependency>"),
        J.format("<Dependency condition='OnSuccess' code='1'>j</Dependency>"),
        J.format("<Node delimiter=':'>a:b</Node>"),
        J.format("<Feature aggregation='Pattern' delimiter=':'>a:b</Feature>"), J.format("<Charge>INF</Charge>"),
        R.format("<Memory preference='0'>1</Memory>"), J.format("<Network units='Gbps'>fast</Network>"),
    ],
    COUNTED: [
        J.format("<Name>a</Name><Name>b</Name>"), J.format("<Memory>1</Memory><Memory metric='Max'>2</Memory>"),
        J.format("<Feature>a</Feature><Feature>b</Feature>"), J.format("<Node>a</Node><Node>b</Node>"),
        G.format("<Name>a</Name><Name>b</Name>" + J.format("")), "<Job>ref<Id>j</Id></Job>", J.format("text"),
        G.format("<JobDefaults><Queue>q</Queue></JobDefaults>" * 2 + J.format("")),
        J.format("<TaskGroupDefaults><Queue>q</Queue></TaskGroupDefaults>" * 2),
        T.format("<TaskDefaults><Queue>q</Queue></TaskDefaults>" * 2),
        J.format("<Environment><Variable name='A'>1</Variable></Environment>" * 2),
        "<Job><State>Running</State></Job>", "<Job><State>Idle</State></Job>", "<Job><State>notqueued</State></Job>",
        G.format(J.format("") * 2), J.format("<TaskGroup><Id>t</Id></TaskGroup>" * 2),
        T.format("<Task><Id>t</Id></Task>" * 2), R.format("<Queue group='1'>q</Queue>"),
        R.format("<Queue group='-1'>q</Queue><User group='1'>u</User>"), D.format("<Queue group='1'>q</Queue>"),
        FILE.format("<Job><Executable>#Script</Executable></Job>", "Other"), J.format("<Queue> </Queue>"),
    ],
    CHECKS: [
        R.format("<Queue op='LT'>batch</Queue>"), R.format("<Queue op='Match'>(</Queue>"),
        J.format("<Node aggregation='Range'>n[1-</Node>"), J.format("<Feature aggregation='Pattern'>(</Feature>"),
        J.format("<TaskDistribution type='Geometry'>{1,1}</TaskDistribution>"),
        J.format("<Environment><Variable name='1A'>x</Variable></Environment>"),
        J.format("<Memory units='pages'>1</Memory>"),
        G.format("<Job><Id>a</Id><Dependency>b</Dependency></Job><Job><Id>b</Id><Dependency>a</Dependency></Job>"),
        J.format("<Executable>#Script</Executable>"),
        R.format("".join(f"<Memory group='1'>{n}</Memory>" for n in range(65)) + "<Memory group='-65'>1</Memory>"),
    ],
}


# --- the JSON twin of any XML, also of what no reader takes -------------------------------------------------------

def _scalar(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() and text.strip()[0] in "-0123456789tf" else text
    except ValueError:
        return text


def _leaf(element: Any, row: Any) -> Any:
    text = element.text or ""
    value = text if row is not None and row.type == "String" else _scalar(text)
    types = {a.name: a.type for a in row.attributes} if row is not None else {}
    made = {n: v if types.get(n, "String") == "String" and n not in _NUMBERS else _scalar(v)
            for n, v in element.attrib.items()}
    return {"value": value, **made} if made else value


_NUMBERS = frozenset(("group", "preference", "performanceFactor"))


def _twin(element: Any, container: str) -> Any:
    """The ordered form of a container, made from the XML alone by the rules of ``sssjob.xml.twin``."""
    text = (element.text or "").strip()
    if text and not len(element):
        return text
    rows = in_scope(container)
    inside = [{f"@{n}": _scalar(v) if n == "export" else v} for n, v in element.attrib.items()]
    for child in element:
        known = child.tag in {name for name, _, _ in CONTAINERS[container].children}
        inside.append({child.tag: _twin(child, child.tag) if known else _leaf(child, rows.get(child.tag))})
    return inside


def twin(text: str) -> str:
    """The JSON twin of a document as it stands, mistakes included."""
    root = etree.fromstring(text)
    data, files = root.find("Data"), root.findall("File")
    body = root if data is None else data[0]
    made: dict[str, Any] = {body.tag: _twin(body, body.tag) if body.tag in CONTAINERS else None}
    if files:
        made["File"] = [{"id": f.get("id"), "text": f.text} for f in files]
    return json.dumps(made)


def refusing(text: str) -> str:
    """Who refuses a document: letters as in ``CASES``."""
    answers = {"c": bool(refused(text)), "0": validate(text, "1.0").rejected, "1": validate(text, "1.1").rejected,
               "j": bool(validate_json(twin(text)))}
    return "".join(letter for letter, no in answers.items() if no)


@pytest.mark.parametrize("who", CASES)
def test_who_refuses(who: str) -> None:
    with Cases() as case:
        for text in CASES[who]:
            with case(text):
                assert refusing(text) == who


def test_the_twin_is_that_of_the_writer() -> None:
    """What the JSON Schema is held against above is what ``to_json`` makes, up to the form."""
    with Cases() as case:
        for text in CASES[""]:
            with case(text):
                assert from_json(twin(text)).root == read_document(text).root
                assert validate_json(to_json(read_document(text))) == []


#: Rules that no schema has: units, patterns, node sets, order of words, geometry, cycles, names of variables, Files.
_ONLY_CHECKS = {"SSS206", "SSS405", "SSS406", "SSS407", "SSS408", "SSS410", "SSS417", "SSS311", "SSS423", "SSS110"}


def known(container: Container) -> Container:
    """A container without what 3.1.0 does not know: the schemas have no awarenessPolicy that lets it pass."""
    kept = [known(i) if isinstance(i, Container) else i.replace(parallel=None) for i in container.items
            if not isinstance(i, Raw)]
    return type(container)(kept, container.attributes)


@settings(max_examples=examples(30), deadline=None)
@given(documents())
def test_valid_documents(drawn: Document) -> None:
    """A document drawn at random: what the checks take all schemas take, and what XSD 1.1 refuses the checks refuse."""
    assert isinstance(drawn.root, Container)
    text = write_document(known(drawn.root))
    read = read_document(text, profile="3.1")
    findings = refused(text)
    answers = [validate(text, "1.0").rejected, validate(text, "1.1").rejected, bool(validate_json(to_json(read)))]
    assert not any(answers) or findings, (text, answers)
    assert answers[1] or set(findings) <= _ONLY_CHECKS, (text, findings)


def test_other_names_are_refused_by_all_but_the_liberal_reader() -> None:
    for name in sorted(aliases("Job")):
        if name not in in_scope("Job"):
            text = J.format(f"<{name}>1</{name}>")
            assert refusing(text) == ALL, name
