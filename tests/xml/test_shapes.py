"""Small documents of a shape that was read before: what is made of them is what reading them anew makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.documents import job_documents
from sssjob.document.element import Container
from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.xml import _shapes, reader
from sssjob.xml.reader import read_document
from sssjob.xml.writer import text_of
from tests.cases import Cases
from tests.strategies import documents
from tests.xml.test_pieces import LAYOUTS, group, with_old_names


def shown(item: Any) -> Any:
    """Everything that was read, with lines and spellings."""
    if isinstance(item, Container):
        return (type(item), item.line, item.spelling, item.attributes, item.reference, [shown(i) for i in item.items])
    return type(item), item, item.spelling if hasattr(item, "spelling") else None


def result(text: str | bytes, limits: Limits, profile: str = "liberal") -> Any:
    try:
        made = read_document(text, limits=limits, profile=profile)
    except RejectedError as error:
        return [str(f) for f in error.findings]
    return (shown(made.root), made.files, made.profile, made.policy, [str(f) for f in made.findings or ()])


def same(text: str | bytes, profile: str = "liberal") -> None:
    """Shapes count under the usual limits alone."""
    assert result(text, LIMITS, profile) == result(text, Limits(), profile)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each document was of a known shape; nothing was read before."""
    asked: list[bool] = []
    read = _shapes.Documents.read

    def noted(self: _shapes.Documents, text: str) -> Container | None:
        made = read(self, text)
        asked.append(made is not None)
        return made

    monkeypatch.setattr(_shapes.Documents, "read", noted)
    monkeypatch.setattr(reader, "_POOLS", {})
    return asked


USUAL = """<Job>
  <Id>a</Id>
  <User>ann</User>
  <Executable>x</Executable>
  <Requested>
    <Processors op="GE">4</Processors>
    <Memory units="GB">1.5</Memory>
  </Requested>
  <Environment><Variable name="A">b</Variable></Environment>
</Job>
"""

#: What may stand in place of a text.
TEXTS = ["bob", "", " ", " bob ", "a&amp;b", "a&nope;", "a<b", "a<b/>", "a</b", "a>b", "a]]>b", "<![CDATA[x]]>", "a\nb",
         "a\tb", "\x01", "\x01User", "\x00", "\x7f", "\u200b", "\ufffe", "\ud800", "\ue000", "1e3", "-1", "many",
         "7", "1.5", "<!-- c -->", "<?p?>", "</User><User>", "x" * 1001, "12345678901234567890", "\r", "x\r\n"]


@pytest.mark.parametrize("profile", ["liberal", "3.1"])
@pytest.mark.parametrize("place", [">ann<", ">4<", ">1.5<", ">x<", ">b<", "GE", '"A"'])
def test_any_text_in_a_known_shape(known: list[bool], place: str, profile: str) -> None:
    with Cases() as case:
        for text in TEXTS:
            with case(ascii(text)):
                reader._POOLS.clear()
                known.clear()
                same(USUAL, profile)
                same(USUAL, profile)
                assert known == [False, True]
                same(USUAL.replace(place, place.replace(place.strip('<>"'), text)), profile)


def test_documents_of_a_program_have_few_shapes(known: list[bool]) -> None:
    for text in job_documents(300):
        same(text)
    assert known.count(True) > 150


@pytest.mark.parametrize("names", [str, with_old_names], ids=["3.1", "old"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout(layout: Any, names: Any) -> None:
    for text in (USUAL, USUAL.replace("ann", "bob").replace(">4<", ">16<")):
        whole = layout(names(group(f"  {text}")))
        same(whole if "iso-8859" not in whole else whole.encode("latin-1"))


@pytest.mark.parametrize("text", [
    '<Job><Id>1</Id><Resource name="a>b">1</Resource><Name>1</Name></Job>', "<Job>job123</Job>",
    "<Job><Id>1</Id><TaskGroup><Job>1</Job></TaskGroup></Job>", "<Job><Id>1</Id><Restartable>true</Restartable></Job>",
    "<Request><Data><Job><Id>1</Id></Job></Data></Request>", "<Job><Id>1</Id><Foo>1</Foo></Job>",
    "\ufeff<Job><Id>1</Id></Job>",
    "<!-- <Id>1</Id> --><Job><Id>1</Id></Job>", '<?xml version="1.0" encoding="latin-1"?><Job><Name>\xe9</Name></Job>',
])
def test_documents_whose_shape_tells_less(text: str) -> None:
    for other in (text, text.replace(">1<", ">2<"), text.replace("1<", "3<", 1), text.replace("true", "false")):
        same(other)


def test_what_was_read_may_be_changed() -> None:
    first = read_document(USUAL).root
    assert isinstance(first, Container)
    first.items.clear()
    first.line = 99
    same(USUAL)


def test_only_so_many_shapes_are_kept(known: list[bool]) -> None:
    for n in [*range(600), *range(600)]:
        read_document(f'<Job><Id>1</Id><Processors consumptionRate="0.{n}">1</Processors></Job>')
    assert 400 < known.count(True) <= 500


@given(documents(), st.data())
def test_any_document(document: Document, data: st.DataObject) -> None:
    findings = Findings()
    text = text_of(document, findings)
    same(text)
    same(text)
    at = data.draw(st.integers(0, len(text)))
    same(text[:at] + data.draw(st.sampled_from(TEXTS)) + text[at:])
