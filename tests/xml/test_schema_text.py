"""What the published text itself prints is valid by its schemas and read by its strict profile."""

from __future__ import annotations

import pytest

from sssjob.findings import Findings
from sssjob.validation import check
from sssjob.xml.reader import read_document
from sssjob.xml.schema import validate

ACCEPTED = [
    # sections 8.1 and 8.2
    ("<Job><Id>1</Id><Requested><User group='1'>scottmo</User><Account group='-1'>mscfops</Account></Requested></Job>",
     {"SSS306"}),
    ("<Job><Id>1</Id><Requested><Processors group='1'>4</Processors><Account conj='Or' group='-1'>x</Account>"
     "</Requested></Job>", {"SSS306"}),
    ("<Job><Id>1</Id><Delivered><User>scottmo</User><Account>mscfops</Account></Delivered></Job>", {"SSS306"}),
    # prose of 5.1
    ("<Job><Id>1</Id><Environment export='True'><Variable name='A'>1</Variable></Environment></Job>", {"SSS202"}),
    ("<Job><Id>1</Id><Memory dynamic='True'>1</Memory></Job>", {"SSS202"}),
    # any namespace
    ("<Job xmlns='http://www.scidac.org/ScalableSystems/SSSRMAP'><Id>1</Id><Requested><Memory>1</Memory></Requested></Job>",
     set()),
    # section 9.0
    ("<Job awarenessPolicy='Ignore'><Id>1</Id><Foo/></Job>", set()),
    ("<Job><Id>1</Id><Foo awarenessPolicy='Warn'><Bar/></Foo></Job>", {"SSS301"}),
]
REFUSED = [
    "<Job><Id>1</Id><Account>a</Account></Job>", "<Job><Id>1</Id><Foo/></Job>",
    "<Job><Id>1</Id><Foo awarenessPolicy='Ignore'/><Bar/></Job>",
    "<Job awarenessPolicy='Ignore'><Id>1</Id><Foo><Bar awarenessPolicy='Reject'/></Foo></Job>",
    "<Job><Id>1</Id><Environment export='TRUE'><Variable name='A'>1</Variable></Environment></Job>",
    "<Job xmlns='urn:x'><Id>1</Id><Foo/></Job>",
]


@pytest.mark.parametrize(("text", "expected"), ACCEPTED)
def test_what_the_text_prints_is_accepted(text: str, expected: set[str]) -> None:
    document = read_document(text, profile="3.1")
    findings = Findings()
    check(document, findings, "3.1")
    assert {f.rule for f in (*(document.findings or ()), *findings)} == expected
    assert not findings.rejected and document.findings is not None and not document.findings.rejected
    assert list(validate(text)) == list(validate(text, "1.1")) == []


@pytest.mark.parametrize("text", REFUSED)
def test_all_else_is_refused_as_before(text: str) -> None:
    document = read_document(text, profile="3.1")
    assert document.findings is not None and document.findings.rejected
    assert validate(text).rejected and validate(text, "1.1").rejected
