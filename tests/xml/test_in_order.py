"""Documents made by hand are judged as read ones are, by check and by write."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.element import Container, Item, Property, Raw, Value
from sssjob.document.model import CLASSES, Delivered, Document, Environment, Job, Requested
from sssjob.document.vocabulary import CONTAINERS, ELEMENTS, in_scope
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.validation import check
from sssjob.xml._in_order import in_order
from sssjob.xml.reader import read_document
from sssjob.xml.writer import text_of, write_document
from tests.strategies import documents


def told(document: Document) -> list[tuple[str, str, str]]:
    findings = Findings()
    check(document, findings)
    return [(f.rule, f.message, f.path) for f in findings if f.rejects]


WRONG: list[tuple[Item, str, str]] = [
    (Property("NodeCount", "many"), "SSS201", "/Job/NodeCount"),
    (Property("Memory", "2 GB"), "SSS201", "/Job/Memory"),
    (Property("StartTime", "soon"), "SSS201", "/Job/StartTime"),
    (Property("NodeCount", -1), "SSS205", "/Job/NodeCount"),
    (Property("Memory", Decimal(2), {"units": "parsec"}), "SSS206", "/Job/Memory"),
    (Property("Foo", 1), "SSS301", "/Job/Foo"),
    (Property("TaskCount", 1), "SSS303", "/Job/TaskCount"),
    (Property("Processors", 4, {"op": "GE"}), "SSS302", "/Job/Processors"),
    (Property("Resource", Decimal(1)), "SSS208", "/Job/Resource"),
    (Raw("Foo"), "SSS301", "/Job/Foo"),
    (Requested([Property("Processors", 4, {"op": "BOGUS"})]), "SSS203", "/Job/Requested/Processors"),
    (Requested([Property("Processors", 4, {"performance_factor": "0.5"})]), "SSS302", "/Job/Requested/Processors"),
    (Requested([Property("Executable", "a")]), "SSS303", "/Job/Requested/Executable"),
    (Environment([Property("Variable", "a", {"name": "A", "names": "B"})]), "SSS302", "/Job/Environment/Variable"),
    (Job(), "SSS303", "/Job/Job"),
]


@pytest.mark.parametrize(("item", "rule", "path"), WRONG, ids=[repr(w[0])[:60] for w in WRONG])
def test_what_is_put_there_raw_is_found(item: Item, rule: str, path: str) -> None:
    job = Job([Property("Id", "1"), item])
    assert [(r, p) for r, _, p in told(Document(job))] == [(rule, path)]
    with pytest.raises(RejectedError, match=rule):
        write_document(job)
    findings = Findings()
    write_document(job, findings=findings, profile="mam")
    assert findings.rejected


@pytest.mark.parametrize(("item", "rule", "path"), [w for w in WRONG if (isinstance(w[0], Property)
                                                    and not isinstance(w[0].value, str)) or w[1] == "SSS201"])
def test_so_it_is_in_a_document_that_was_read(item: Item, rule: str, path: str) -> None:
    document = read_document("<Job><Id>1</Id></Job>")
    assert isinstance(document.root, Container)
    document.root.items.append(item)
    assert [(r, p) for r, _, p in told(document)] == [(rule, path)]
    with pytest.raises(RejectedError, match=rule):
        write_document(document)


def test_what_was_told_when_it_was_read_is_not_told_again() -> None:
    document = read_document("<Job><Id>1</Id><Foo>1</Foo><NodeCount>-1</NodeCount><Swap op='GE'>1</Swap></Job>")
    assert document.findings is not None and len(document.findings) == 3 and told(document) == []
    assert isinstance(document.root, Container)
    document.root.items.append(Property("Bar", 1))
    assert [r for r, *_ in told(document)] == ["SSS301"]


def test_what_xml_cannot_hold_is_found() -> None:
    assert [(r, p) for r, _, p in told(Document(Job([Property("Arguments", "a\x00")])))] == [("SSS201", "")]


def test_policy_lets_through_what_it_governs() -> None:
    findings = Findings()
    text = write_document(Job([Property("Id", "1"), Property("Foo", 1)]), findings=findings, policy=Policy.WARN)
    assert [(f.rule, f.severity) for f in findings] == [("SSS301", "warning")] and "<Foo>1</Foo>" in text


@given(documents())
def test_the_quick_look_agrees_with_the_reader(document: Document) -> None:
    """Where it says that all is in order, reading what is written says nothing."""
    if in_order(document):
        written = Findings()
        text = text_of(document, written)
        assert written.rejected or list(read_document(text).findings or ()) == []      # Files may hold what XML cannot


_VALUES: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(("", " ", "many", "2 GB", "a\u200b", "\x85", "é", "1", "-1", "true", "x" * 2000, "2020-01-01")),
    st.integers(-5, 5), st.booleans(), st.sampled_from((Decimal("1.5"), Decimal(-1), Decimal("1e3"), 10**65)))
_ATTRIBUTES = st.dictionaries(st.sampled_from(("op", "conj", "units", "metric", "name", "group", "context", "bad")),
                              st.sampled_from(("GE", "ge", "Or", "GB", "", "Max", "1", "Used", "é")), max_size=2)


@st.composite
def doubtful(draw: st.DrawFn) -> Container:
    """A container of any kind with properties that may be wrong in any way."""
    name = draw(st.sampled_from(("Job", "Requested", "Delivered", "TaskGroup", "JobGroup")))
    names = st.one_of(st.sampled_from(sorted(in_scope(name))), st.sampled_from([e.name for e in ELEMENTS]),
                      st.sampled_from(("Foo", "Procs", *CONTAINERS)))
    items: Any = draw(st.lists(st.builds(Property, names, _VALUES, _ATTRIBUTES), max_size=2))
    return CLASSES[name](items)


@given(doubtful())
def test_check_says_what_the_reader_would(container: Container) -> None:
    """What check and write refuse of a document by hand is what reading it would refuse, no more and no less."""
    document = Document(container)
    written = Findings()
    text = text_of(document, written)
    try:
        expected = [(f.rule, f.message) for f in read_document(text).findings or () if f.rejects]
    except RejectedError as error:
        expected = [(f.rule, f.message) for f in error.findings if f.rejects]
    findings = Findings()
    write_document(document, findings=findings)
    assert [(f.rule, f.message) for f in findings if f.rejects] == expected
    assert [(r, m) for r, m, _ in told(document) if (r, m) in expected] == expected


@pytest.mark.parametrize("first", [Property("Resource", -1), Property("Resource", -1, {"name": "a"}),
                                   Property("Memory", Decimal(-1)), Property("Processors", -3)])
@pytest.mark.parametrize("second", [Property("Resource", ""), Property("Resource", -2, {"name": "b"}),
                                    Requested([Property("NodeCount", 2), Property("NodeCount", 3, {"op": "GE"})])])
def test_less_than_nothing_is_told_once_whatever_stands_beside_it(first: Property, second: Item) -> None:
    document = Document(Job([Property("Id", "1"), first, second]))
    negative = [(r, m) for r, m, _ in told(document) if m.startswith(f"{first.tag} {first.value} ")]
    assert negative == [("SSS205", f"{first.tag} {first.value} is less than 0")]


def test_delivered_shares_properties_of_requested_only_where_they_may_stand() -> None:
    """One Property in two places is looked at in both."""
    asked = Requested(processors=4)
    asked.add("Duration", 5, op="LE")
    assert told(Document(Job([asked, Delivered(asked.items)]))) != []
