"""Queries: results, aliases, streams, and that none from outside hangs or reaches anything."""

from __future__ import annotations

import io
import json
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from lxml import etree

from sssjob.errors import QueryError, QueryTimeout, RejectedError, UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.query import Result, Version, query, query_stream
from sssjob.query._text import candidates, check, linear, spell, tokens
from sssjob.xml.reader import read_document
from tests.forks import fork_queries

SHORT = replace(LIMITS, query_seconds=0.5)
NEW = b"""<JobGroup><Id>g</Id>
 <Job><Id>1</Id><User>ann</User><Duration>60</Duration><Processors units="cpu">4</Processors></Job>
 <Job><Id>2</Id><User>bob</User><Requested><Duration>90</Duration><Node>n1</Node><Node>n2</Node></Requested></Job>
</JobGroup>"""
OLD = NEW.replace(b"<Id>g</Id>", b"<JobGroupId>g</JobGroupId>").replace(b"Id>", b"JobId>").replace(
    b"JobGroupJobId", b"JobGroupId").replace(b"User>", b"UserId>").replace(b"Duration", b"WallDuration")
MIXED = NEW.replace(b"<User>bob</User>", b"<UserId>bob</UserId>")
ENVELOPE = b'<Envelope xmlns="urn:e"><Body><JobGroup><Job><JobId>1</JobId></Job></JobGroup></Body></Envelope>'


#: Tests of the process that evaluates, which is started for them; the others have it forked.
OF_THE_PROCESS = ("test_the_process_that_is_started_gives_up", "test_the_child_gives_the_same_as_this_process")


@pytest.fixture(autouse=True)
def warm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if getattr(request.node, "originalname", None) not in OF_THE_PROCESS:
        fork_queries(monkeypatch)


def texts(xpath: str, source: bytes = NEW, **more: str) -> list[str]:
    return [r.text() for r in query(xpath, source, variables=more, limits=LIMITS)]


def one(xpath: str, source: bytes = NEW) -> Result:
    (results,) = query(xpath, source, limits=LIMITS, path="a.xml")
    return results


@pytest.mark.parametrize("source", [NEW, OLD, MIXED])
@pytest.mark.parametrize(("xpath", "expected"), [
    ("/JobGroup/Job/User", ["ann", "bob"]),
    ("//UserId", ["ann", "bob"]),
    ("//userName/text()", ["ann", "bob"]),
    ("//JobId", ["1", "2"]),
    ("//Job/Id", ["1", "2"]),
    ("/JobGroup/JobGroupId", ["g"]),
    ("//Job[Owner='bob']/JobId", ["2"]),
    ("//Job[JobId > 1]//wallclockLimit", ["90"]),
    ("//Job[2]/Requested/Node[2]", ["n2"]),
    ("sum(//WallTime)", ["150"]),
    ("count(//Job)", ["2"]),
    ("for $j in //Job return concat($j/JobId, ':', $j/UserId)", ["1:ann", "2:bob"]),
])
def test_aliases(source: bytes, xpath: str, expected: list[str]) -> None:
    assert texts(xpath, source) == expected


def test_names_are_case_exact_and_unknown_ones_stay() -> None:
    assert texts("//user") == texts("//Nothing") == []


def test_only_names_of_elements_are_mapped() -> None:
    text = "//Job[@UserId = 'UserId' and $UserId = UserId] (: UserId :)"
    words = tokens(text)
    assert spell(words, {"User"}).startswith("//Job[@UserId = 'UserId' and $UserId = User]")
    assert spell(words, {"User", "UserId"}).count("self::User") == 2
    assert spell(tokens("div div div"), candidates(tokens("div div div"))) == "div div div"
    assert spell(tokens("element(UserId) | child::UserId"), {"User"}) == "element(UserId) | child::User"


def test_namespaces() -> None:
    assert texts("//Job/Id", ENVELOPE) == texts("/Envelope/Body/JobGroup/Job/JobId", ENVELOPE) == ["1"]
    assert [r.text() for r in query_stream("/Envelope/Body/JobGroup/Job/Id", ENVELOPE)] == ["1"]


def test_result_forms() -> None:
    element = one("//Job[1]/Processors")
    assert (element.kind, element.line, element.path) == ("element", 2, "/JobGroup/Job[1]/Processors")
    assert element.xml() == '<Processors units="cpu">4</Processors>'
    assert element.record() == {"kind": "element", "name": "Processors", "file": "a.xml", "line": 2,
                                "path": "/JobGroup/Job[1]/Processors", "value": {"@units": "cpu", "value": "4"}}
    attribute = one("//@units")
    assert (attribute.kind, attribute.name, attribute.text()) == ("attribute", "units", "cpu")
    assert attribute.xml() == '<result kind="attribute" name="units">cpu</result>'
    assert attribute.path.endswith("/Processors/@units")
    assert one("//Job[1]/User/text()").path == "/JobGroup/Job[1]/User/text()"
    assert one("1 div 0").record()["value"] == "Infinity"
    assert one("true()").record() == {"kind": "boolean", "file": "a.xml", "value": True}
    assert one("//Job[2]").record()["value"]["Requested"]["Node"] == ["n1", "n2"]
    assert json.dumps(one("map{'a': 1}").record()["value"]) == '{"a": 1}'


def test_the_child_gives_the_same_as_this_process() -> None:
    for xpath in ("//Job[1]/User", "//@units", "//Job[1]/User/text()"):
        guarded = one(f"{xpath} | //Nothing")
        (newer,) = query(xpath, NEW, version="3.1", path="a.xml")
        assert one(xpath).record() == guarded.record() == newer.record()


def test_sources() -> None:
    root = etree.fromstring(NEW)
    assert len(list(query("//User", root))) == len(list(query("//User", root.getroottree()))) == 2
    assert len(list(query_stream("//User", io.BytesIO(NEW)))) == 2
    with pytest.raises(RejectedError):
        query("//User", b"<!DOCTYPE a><a/>")


@pytest.mark.parametrize("source", [NEW, OLD, MIXED])
@pytest.mark.parametrize("xpath", ["//Job/User", "/JobGroup/Job/UserId", "User", "User | //Nothing", "./User/data()"])
def test_stream(xpath: str, source: bytes) -> None:
    assert [r.text() for r in query_stream(xpath, source, limits=LIMITS)] == ["ann", "bob"]


def test_stream_places_and_values() -> None:
    assert [r.path for r in query_stream("//User", NEW)] == ["/JobGroup/Job[1]/User", "/JobGroup/Job[2]/User"]
    assert [(r.text(), r.path) for r in query_stream("count(.//Node)", NEW)] == [
        ("0", "/JobGroup/Job[1]"), ("2", "/JobGroup/Job[2]")]
    assert [(r.text(), r.path, r.kind) for r in query_stream("count(//Node)", NEW)] == [("2", "", "number")]
    assert [r.text() for r in query_stream("count(//Node)", b"<JobGroup/>")] == ["0"]
    assert [r.path for r in query_stream("/Job/User", b"<Job><User>a</User></Job>")] == ["/Job/User"]
    with pytest.raises(QueryError, match="alone"):
        query_stream("/JobGroup/Job[2]", NEW)


def test_variables_are_values() -> None:
    assert texts("//Job[User=$who]/Id", who="bob") == ["2"]
    assert texts("//Job[User=$who]/Id", who="' or '1'='1") == []
    with pytest.raises(QueryError):
        texts("//Job[User=$missing]")
    with pytest.raises(QueryError):
        query("1", NEW, variables={"a b": "x"})


@pytest.mark.parametrize("name", ["doc", "fn:doc", "document", "collection", "unparsed-text", "environment-variable",
                                  "system-property", "json-doc", "parse-xml", "function-lookup", "re:test",
                                  "transform", "nonsense", "trace", "Q{http://www.w3.org/2005/xpath-functions}doc"])
@pytest.mark.parametrize("form", ["{}('x')", "'x' => {}()", "{}#1", "//Job[{} (: hidden :) ('x')]"])
def test_functions_that_reach_out_are_refused_by_name(name: str, form: str) -> None:
    with pytest.raises(QueryError) as caught:
        query(form.format(name), NEW)
    assert name in str(caught.value)


NESTED = "count(//*[count(//*[count(//*[count(//*[count(//*)>0])>0])>0])>0])"
BIG = b"<JobGroup>" + b"<Job><Id>1</Id><User>a</User></Job>" * 300 + b"</JobGroup>"


@pytest.mark.parametrize("xpath", [
    NESTED, "count(1 to 100000000000)", "for $a in 1 to 9999999, $b in 1 to 9999999 return $a",
    "matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a+)+$')", "(" * 5000 + "1" + ")" * 4000,
    "(" * 65 + "1" + ")" * 65, "1" * 10_001, "some $x in 1 to 99999999999 satisfies $x < 0", "//Job[", "for $x in",
    "(: never closed", "'open", "//Job[User", "\x00",
])
def test_hostile(xpath: str) -> None:
    start = time.monotonic()
    with pytest.raises(QueryError):
        list(query(xpath, BIG, limits=replace(LIMITS, query_seconds=0.1)))
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("xpath", ["1 to 100000000000", "let $f := function($f) {$f($f)} return $f($f)"])
def test_the_process_that_is_started_gives_up(xpath: str) -> None:
    test_hostile(xpath)


def test_timeout_is_named_and_holds_in_streams() -> None:
    with pytest.raises(QueryTimeout, match="query_seconds"):
        query(NESTED, BIG, limits=SHORT)
    with pytest.raises(QueryError):
        list(query_stream("count(1 to 100000000000)", NEW, limits=SHORT))


@pytest.mark.parametrize(("xpath", "cheap"), [
    ("//Job[User='a']/Id", True), ("/JobGroup/Job[Requested/Processors > 3][@x]", True), ("count(//Job)", True),
    ("//Job[contains(Name, 'x')]", True), ("//Job//Node", False), ("//a | //b", False), ("//Job[//x]", False),
    ("//Job[/x]", False), ("//Job[../Job]", False), ("//Job/..", False), ("//Job[a = b]", False),
    ("//*[. = 'x']", False), ("//Job/following::x", False), ("//descendant::a/descendant::b", False),
])
def test_what_runs_without_a_guard(xpath: str, cheap: bool) -> None:
    words = tokens(xpath)
    check(words)
    assert linear(words) is cheap


def test_profiles() -> None:
    quotes = "<Job><JobId>1</JobId><Requested><Memory op=”LE”>5</Memory></Requested></Job>".encode()
    findings = Findings("q.xml")
    assert [r.text() for r in query("//Job/Id | //@op", quotes, findings=findings)] == ["1", "LE"]
    assert [(f.rule, f.line) for f in findings] == [("SSS104", 1)]
    with pytest.raises(RejectedError):
        query("//@op", quotes, profile="3.1")
    assert [r.text() for r in query("//User | //UserId", MIXED, profile="3.1")] == ["ann", "bob"]
    assert [r.text() for r in query("//User", MIXED, profile="3.1")] == ["ann"]
    assert [r.text() for r in query_stream("//User", MIXED, profile="3.1")] == ["ann"]


@pytest.mark.parametrize("text", ["//a[.='\udcff']", "//a\x1b", "\ufffe", " \n "])
def test_queries_that_are_no_text(text: str) -> None:
    with pytest.raises(QueryError):
        query(text, NEW)
    with pytest.raises(QueryError, match="variable x"):
        query("$x", NEW, variables={"x": "\udcff"})


def test_doctype_far_inside_a_stream() -> None:
    """The look at the start of a stream ends after its first piece."""
    with pytest.raises(RejectedError, match="SSS102"):
        list(query_stream("//Id", b"<!-- x -->" * 120_000 + b"<!DOCTYPE Job><Job><Id>1</Id></Job>"))


def test_versions() -> None:
    with pytest.raises(UsageError):
        query("1", NEW, version="2.0")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"no XPath 1\.0"):
        query("for $x in //Job return $x", NEW, version="1.0")
    with pytest.raises(QueryError, match=r"3\.1"):
        query("upper-case('a')", NEW, version="1.0")
    assert texts("upper-case(//Job[1]/User)") == ["ANN"]


# --- amounts ------------------------------------------------------------------------------------------------------

AMOUNTS = b"""<JobGroup xmlns:o="urn:other"><Job><Id>a</Id><WallTime>01:00:00</WallTime>
<StartTime>1970-01-02T00:00:00Z</StartTime>
<Requested><Memory units="GB" metric="PerNode">2</Memory><VirtualMemory>1</VirtualMemory>
<Node aggregation="Range">n[1-9],x</Node><Node count="2">y</Node></Requested></Job>
<Job><Id>b</Id><NodeCount>4</NodeCount><Memory>512</Memory><Swap units="USD">3</Swap>
<Resource name="s" units="KB">2</Resource><Resource name="gpu">2</Resource>
<Node aggregation="Pattern">n.*</Node><Node aggregation="List">a, b,a</Node>
<Node aggregation="Range">n[</Node><Node>n[1-2]</Node><Memory>much</Memory></Job>
<Job><Id>c</Id><Requested><Node>a</Node><Node conj="Or">b</Node></Requested></Job></JobGroup>"""


@pytest.mark.parametrize("version", ["1.0", "3.1"])
@pytest.mark.parametrize(("xpath", "expected"), [
    ("//Memory[sss:bytes(.) >= 1073741824]", ["2"]),
    ("//Memory[sss:bytes(.) >= sss:bytes('512 MB')]", ["2", "512"]),
    ("count(//Memory[sss:bytes(.) > 0])", ["2"]),
    ("//Job[sss:seconds(Duration) = 3600]/Id", ["a"]),
    ("//Job[sss:nodes(.) >= 4]/Id", ["a", "b"]),
    ("//Requested[sss:nodes(.) = 12]/../Id", ["a"]),
    ("sss:bytes(//Requested/Memory/text())", ["2147483648"]),
    ("sss:seconds(//StartTime)", ["86400"]),
    ("sss:seconds('1:30:00')", ["5400"]),
    ("sss:seconds('1970-01-01T01:00:00Z')", ["3600"]),
    ("sss:nodes('n[01-20]')", ["20"]),
    ("sss:bytes('1.5 KiB')", ["1536"]),
    ("sss:bytes('12')", ["NaN"]),
    ("sss:bytes(12)", ["NaN"]),
    ("sss:seconds(//Id[. = 'a'])", ["NaN"]),
])
def test_amounts(version: Version, xpath: str, expected: list[str]) -> None:
    assert [r.text() for r in query(xpath, AMOUNTS, version=version, limits=LIMITS)] == expected


def test_amounts_of_several_nodes() -> None:
    """XPath 1.0 takes the first, as number() does; 3.1 gives one for each."""
    assert texts("sss:bytes(//Memory | //Swap | //Resource)", AMOUNTS) == ["2147483648"]
    assert [r.text() for r in query("sss:bytes((//Memory, //Swap, //Resource))", AMOUNTS, version="3.1")] == [
        "2147483648", "536870912", "NaN", "1048576", "NaN", "2048", "NaN"]
    assert [r.text() for r in query("//Node/sss:nodes(.)", AMOUNTS)] == ["10", "2", "NaN", "2", "NaN", "1", "1", "1"]
    assert [r.text() for r in query("//Job/sss:nodes(.)", AMOUNTS)] == ["12", "4", "NaN"]
    assert texts("sss:bytes(//Nothing)", AMOUNTS) == ["NaN"]
    assert list(query("sss:bytes(//Nothing)", AMOUNTS, version="3.1")) == []


def test_the_prefix_of_amounts_may_be_the_documents_own() -> None:
    own = b'<sss:Job xmlns:sss="urn:own"><sss:Memory units="KB">2</sss:Memory></sss:Job>'
    versions: list[Version] = ["1.0", "3.1"]
    for version in versions:
        results = query("sss:bytes(//sss:Memory)", own, version=version)
        assert [r.text() for r in results] == ["2048"]


@pytest.mark.parametrize(("xpath", "said"), [
    ("sss:foo(1)", "bytes, seconds, nodes"), ("sss:bytes()", "sss:bytes"), ("sss:bytes(1, 2)", "sss:bytes"),
    ("Q{urn:sssjob:functions}bytes(1)", "without a namespace"),
])
@pytest.mark.parametrize("version", ["1.0", "3.1"])
def test_amounts_that_are_asked_for_wrongly(version: Version, xpath: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        list(query(xpath, AMOUNTS, version=version))
    assert said in str(caught.value)


def test_a_hostile_range_of_nodes_ends_in_time() -> None:
    wide = ",".join(f"n[{i}-{i + 10 ** 9}]m[{i}-{i + 10 ** 9}]" for i in range(2_000))
    document = f'<Job><Node aggregation="Range">{wide}</Node></Job>'.encode()
    start = time.monotonic()
    with suppress(QueryError):      # given up: that is an answer too
        list(query("sss:nodes(//Node)", document, limits=SHORT))
    assert time.monotonic() - start < 60
    long = b'<Job><Node aggregation="Range">n[1-99999999999]</Node></Job>'
    assert texts("sss:nodes(//Node)", long) == ["99999999999"]


# --- effective values ---------------------------------------------------------------------------------------------

DEFAULTS = b"""<JobGroup awarenessPolicy="Warn">
<JobDefaults><Project>p</Project><Requested><Memory units="GB">2</Memory><Duration>100</Duration></Requested>
<TaskGroupDefaults><Queue>far</Queue><TaskDefaults><Shell>sh</Shell></TaskDefaults></TaskGroupDefaults></JobDefaults>
<Job><Id>1</Id><TaskGroup><TaskCount>2</TaskCount><Task><Id>t</Id></Task></TaskGroup></Job>
<Job><Id>2</Id><Project>own</Project>
<Requested><Duration>50</Duration></Requested></Job>
</JobGroup>"""


@pytest.mark.parametrize(("xpath", "plain_", "effective"), [
    ("count(//Job[Project='p'])", ["0"], ["1"]),
    ("//Job/Project", ["own"], ["p", "own"]),
    ("//Job/Requested/Duration", ["50"], ["100", "50"]),
    ("//Job[sss:bytes(Requested/Memory) > 1073741824]/Id", [], ["1", "2"]),
    ("//Job/TaskGroup/Queue", [], ["far"]),
    ("//Task/Shell", [], ["sh"]),
    ("sum(//Job/Requested/Duration)", ["50"], ["150"]),
])
def test_effective_values(xpath: str, plain_: list[str], effective: list[str]) -> None:
    assert [r.text() for r in query(xpath, DEFAULTS)] == [r.text() for r in query_stream(xpath, DEFAULTS)] == plain_
    assert [r.text() for r in query(xpath, DEFAULTS, effective=True)] == effective
    assert [r.text() for r in query_stream(xpath, DEFAULTS, effective=True)] == effective


def test_effective_documents_keep_what_they_are() -> None:
    assert not list(query("//JobDefaults", DEFAULTS, effective=True))
    assert [(r.path, r.line) for r in query("//Duration", DEFAULTS, effective=True)] == [
        ("/JobGroup/Job[1]/Requested/Duration", 4), ("/JobGroup/Job[2]/Requested/Duration", 6)]
    envelope = b"<Envelope><Body>x" + DEFAULTS + b"</Body></Envelope>"
    assert [r.text() for r in query("/Envelope/Body/JobGroup/@awarenessPolicy", envelope, effective=True)] == ["Warn"]
    assert [r.text() for r in query("//Job/Project", envelope, effective=True)] == ["p", "own"]
    assert [r.text() for r in query_stream("//Job/Project", envelope, effective=True)] == ["p", "own"]
    assert [r.text() for r in query("//Project", etree.fromstring(DEFAULTS), effective=True)] == ["p", "own"]
    reference = read_document(b"<JobGroup><Job>x-7</Job></JobGroup>")
    assert [r.text() for r in query("//Job", reference, effective=True)] == ["x-7"]


def test_defaults_of_two_groups_stay_apart_in_a_stream() -> None:
    other = DEFAULTS.replace(b"<Project>p</Project>", b"<Project>q</Project>")
    both = b"<Envelope><Body>" + DEFAULTS + other + b"</Body></Envelope>"
    assert [r.text() for r in query_stream("//Job/Project", both, effective=True)] == ["p", "own", "q", "own"]


def test_defaults_that_come_after_jobs_are_refused_in_a_stream() -> None:
    late = b"<JobGroup>\n<Job><Id>1</Id></Job>\n<JobDefaults><Project>p</Project></JobDefaults></JobGroup>"
    assert [r.text() for r in query("//Job/Project", late, effective=True)] == ["p"]
    with pytest.raises(QueryError, match=r"a\.xml:3: JobDefaults stands after jobs"):
        list(query_stream("//Job/Project", late, effective=True, path="a.xml"))
    assert [r.text() for r in query_stream("count(//Job)", late)] == ["1"]
