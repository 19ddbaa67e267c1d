"""awarenessPolicy, section 9.0: every sentence of it, and the edge cases it leaves open."""

from __future__ import annotations

import pytest

from sssjob.findings import Policy
from sssjob.xml.reader import read_document


def outcome(text: str, policy: Policy | None = None) -> list[tuple[str, str]]:
    """(rule, severity) of every finding."""
    document = read_document(text, policy=policy)
    assert document.findings is not None
    return [(f.rule, f.severity) for f in document.findings]


ERROR, WARNING = ("SSS301", "error"), ("SSS301", "warning")

CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "absent means Reject": ("<Job><Foo/></Job>", [ERROR]),
    "Reject fails": ('<Job awarenessPolicy="Reject"><Foo/></Job>', [ERROR]),
    "Warn accepts and enumerates": ('<Job awarenessPolicy="Warn"><Foo/><Bar/></Job>', [WARNING, WARNING]),
    "Ignore accepts in silence": ('<Job awarenessPolicy="Ignore"><Foo/></Job>', []),
    "an element overrides its container": ('<Job><Foo awarenessPolicy="Ignore"/></Job>', []),
    "an indispensable element in a tolerant job": (
        '<Job awarenessPolicy="Ignore"><Foo awarenessPolicy="Reject"/></Job>', [ERROR]),
    "nearest ancestor wins": (
        '<JobGroup awarenessPolicy="Ignore"><Id>g</Id><Job awarenessPolicy="Warn"><Foo/></Job></JobGroup>', [WARNING]),
    "unknown subtree with a Reject below": (
        '<Job awarenessPolicy="Ignore"><Foo><Bar awarenessPolicy="Reject"/></Foo></Job>', [ERROR]),
    "known element in a wrong place": (
        '<JobGroup awarenessPolicy="Warn"><Id>g</Id><Job><Id>a</Id></Job><Queue>q</Queue></JobGroup>',
        [("SSS303", "warning")]),
    "attribute: policy of its bearer": (
        '<Job><User x="1" awarenessPolicy="Ignore">amy</User><Group x="1">g</Group></Job>', [("SSS302", "error")]),
    "value of a closed list": (
        '<Job awarenessPolicy="Warn"><Requested><Processors op="ABOUT">4</Processors></Requested></Job>',
        [("SSS203", "warning")]),
    "open lists are never unsupported": (
        '<Job><State>Dreaming</State><Resource name="T" metric="KX">1</Resource></Job>', []),
    "unknown policy: Reject, and reported": (
        '<Job awarenessPolicy="Maybe"><Foo/></Job>', [ERROR, ("SSS210", "error")]),
    "another case of the policy": ('<Job awarenessPolicy="ignore"><Foo/></Job>', []),
    "validation errors are never softened": (
        '<Job awarenessPolicy="Ignore"><NodeCount>x</NodeCount></Job>', [("SSS201", "error")]),
}


@pytest.mark.parametrize("case", CASES)
def test_policy(case: str) -> None:
    text, expected = CASES[case]
    assert outcome(text) == expected


def test_the_callers_policy_is_only_the_outermost_default() -> None:
    assert outcome("<Job><Foo/></Job>", Policy.IGNORE) == []
    assert outcome('<Job><Foo awarenessPolicy="Reject"/></Job>', Policy.IGNORE) == [ERROR]
