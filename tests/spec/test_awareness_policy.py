"""awarenessPolicy: the sentences of section 9.0, and the thirteen rules that settle what they leave open."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.document.vocabulary import CONTAINERS
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.run import make_plan
from sssjob.translators.specs.psij import to_spec
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.spec.support import document, refused, spec, told


def outcome(text: str, policy: Policy | None = None) -> list[tuple[str, str]]:
    """(rule, severity) of all that is told."""
    return [(f.rule, f.severity) for f in told(text, policy=policy)]


ERROR, WARNING = ("SSS301", "error"), ("SSS301", "warning")
RUN = "<Job{}><Id>a</Id><Executable>/bin/true</Executable><Environment export='true'/>{}</Job>"


def planned(text: str, where: Path) -> list[tuple[str, str, str]]:
    """(rule, subject, severity) of what a run on this machine would not honour."""
    findings = Findings()
    make_plan(document(text), findings, cwd=where)
    return [(f.rule, f.subject, f.severity) for f in findings if f.rule == "SSS602"]


@spec("9.0", 1, "a", "c")
@pytest.mark.parametrize(("policy", "expected"), [
    ("Reject", [ERROR, ERROR]), ("Warn", [WARNING, WARNING]), ("Ignore", []),
])
def test_the_three_policies(policy: str, expected: list[tuple[str, str]]) -> None:
    text = f"<Job awarenessPolicy='{policy}'><Id>j</Id><Foo/><Bar/></Job>"
    assert outcome(text) == expected
    assert [f.subject for f in told(text)] == ["Foo", "Bar"][:len(expected)]


@spec("9.0", 3, "d")
def test_rule_1_without_the_attribute_it_is_reject() -> None:
    assert outcome("<Job><Id>j</Id><Foo/></Job>") == [ERROR]
    assert outcome("<Job><Id>j</Id><User x='1'>u</User></Job>") == [("SSS302", "error")]
    assert outcome("<Job><Requested><Memory op='ABOUT'>1</Memory></Requested></Job>") == [("SSS203", "error")]


@spec("9.0", 3, 5)
@pytest.mark.parametrize("container", [c for c in CONTAINERS if c != "JobGroup"])
def test_rule_2_the_attribute_is_looked_at_on_every_level(container: str) -> None:
    inner = {"Requested": "<Memory>1</Memory>", "Delivered": "<Memory>1</Memory>",
             "Environment": "<Variable name='A'>1</Variable>"}.get(container, "<Queue>q</Queue>")
    path = {"Job": [], "JobDefaults": [], "TaskGroup": ["Job"], "TaskGroupDefaults": ["Job"],
            "Task": ["Job", "TaskGroup"], "TaskDefaults": ["Job", "TaskGroup"]}.get(container, ["Job"])
    text = f"<{container} {{}}>{inner}<Foo {{}}/></{container}>"
    for name in reversed(path):
        text = f"<{name}>{text}</{name}>"
    group = "<JobGroup><Id>g</Id><Job><Id>j</Id></Job>" + text + "</JobGroup>"
    assert outcome(group.format("", "")) == [ERROR]
    assert outcome(group.format("awarenessPolicy='Ignore'", "")) == []
    assert outcome(group.format("", "awarenessPolicy='Warn'")) == [WARNING]


@spec("9.0", "b")
def test_rule_3_what_is_not_critical_is_no_failure(tmp_path: Path) -> None:
    """A run on this machine need not know a queue; it must not pass over a hold."""
    assert planned(RUN.format("", "<Queue>q</Queue><Machine>m</Machine>"), tmp_path) == [
        ("SSS602", "Queue", "warning"), ("SSS602", "Machine", "warning")]
    assert planned(RUN.format("", "<Hold>System</Hold>"), tmp_path) == [("SSS602", "Hold", "error")]
    assert planned(RUN.format(" awarenessPolicy='Ignore'", "<Queue>q</Queue><Hold>System</Hold>"), tmp_path) == []


@spec("9.0", "e")
def test_rule_4_the_nearest_policy_wins() -> None:
    assert outcome("<Job><Id>j</Id><Foo awarenessPolicy='Ignore'/></Job>") == []
    assert outcome("<Job awarenessPolicy='Ignore'><Id>j</Id><Foo awarenessPolicy='Reject'/></Job>") == [ERROR]
    assert outcome("<JobGroup awarenessPolicy='Ignore'><Id>g</Id><Job awarenessPolicy='Warn'><Id>j</Id><Foo/></Job>"
                   "<Job><Id>k</Id><Foo/></Job></JobGroup>") == [WARNING]


def test_rule_5_an_attribute_follows_its_bearer() -> None:
    job = "<Job awarenessPolicy='{}'><Id>j</Id><User x='1' awarenessPolicy='{}'>u</User></Job>"
    assert outcome(job.format("Reject", "Ignore")) == []
    assert outcome(job.format("Ignore", "Reject")) == [("SSS302", "error")]


@pytest.mark.parametrize("part", [
    "<Requested><Memory op='ABOUT'>1</Memory></Requested>", "<Requested><Memory conj='Xor'>1</Memory></Requested>",
    "<Dependency condition='OnWhim'>k</Dependency>", "<Memory context='Guessed'>1</Memory>",
    "<Node aggregation='Heap'>n</Node>", "<ResourceLimit name='CPUTime' type='Firm'>1</ResourceLimit>",
    "<TaskDistribution type='Whim'>x</TaskDistribution>", "<OutputFile redirectList='Append,Explode'>o</OutputFile>",
])
def test_rule_6_an_unknown_value_of_a_closed_list(part: str) -> None:
    for policy, expected in (("Reject", [("SSS203", "error")]), ("Warn", [("SSS203", "warning")]), ("Ignore", [])):
        found = outcome(f"<Job awarenessPolicy='{policy}'><Id>j</Id>{part}</Job>")
        assert [f for f in found if f[0] != "SSS411"] == expected      # k is not here


def test_rule_6_open_lists_are_never_unsupported() -> None:
    """A State that nobody knows is a doubt, whatever the policy."""
    for policy in ("Reject", "Ignore"):
        assert outcome(f"<Job awarenessPolicy='{policy}'><Id>j</Id><State>Dreaming</State>"
                       "<Resource name='T' metric='KX'>1</Resource></Job>") == [("SSS424", "warning")]


def test_rule_7_an_unknown_container_goes_with_all_that_is_in_it() -> None:
    text = "<Job awarenessPolicy='{}'><Id>j</Id><Foo><Bar><Baz{}/></Bar></Foo></Job>"
    assert outcome(text.format("Ignore", "")) == [] and outcome(text.format("Warn", "")) == [WARNING]
    assert outcome(text.format("Ignore", " awarenessPolicy='Reject'")) == [ERROR]
    assert "<Baz/>" in write_document(document(text.format("Ignore", "")))


def test_rule_8_an_unknown_policy_is_reject_and_told() -> None:
    assert outcome("<Job awarenessPolicy='ignore'><Id>j</Id><Foo/></Job>") == []
    assert set(outcome("<Job awarenessPolicy='Maybe'><Id>j</Id><Foo/></Job>")) == {ERROR, ("SSS210", "error")}
    assert refused("<Job awarenessPolicy='ignore'><Id>j</Id></Job>") == ["SSS210"]


def test_rule_9_a_default_keeps_the_policy_it_had(tmp_path: Path) -> None:
    text = ("<JobGroup><Id>g</Id><JobDefaults{}><Hold>System</Hold></JobDefaults>" + RUN + "</JobGroup>")
    ignore = " awarenessPolicy='Ignore'"
    assert planned(text.format("", ignore, ""), tmp_path) == [("SSS602", "Hold", "error")]
    assert planned(text.format(ignore, "", ""), tmp_path) == []
    own = text.replace("<Hold>", f"<Hold{ignore}>")
    assert planned(own.format("", "", ""), tmp_path) == []


def test_rule_10_a_known_name_in_the_wrong_place() -> None:
    text = "<JobGroup{}><Id>g</Id><Job><Id>j</Id></Job><Node{}>n</Node></JobGroup>"
    assert outcome(text.format("", "")) == [("SSS303", "error")]
    assert outcome(text.format("", " awarenessPolicy='Warn'")) == [("SSS303", "warning")]
    assert outcome(text.format(" awarenessPolicy='Ignore'", "")) == []


@pytest.mark.parametrize(("text", "rule"), [
    ("<Job awarenessPolicy='Ignore'><Id>j</Job>", "SSS101"),
    ("<JobGroup awarenessPolicy='Ignore'><Id>g</Id><Job><Id>j</Id></Job><Job><Id>j</Id></Job></JobGroup>", "SSS308"),
    ("<JobGroup awarenessPolicy='Ignore'><Job><Id>j</Id></Job></JobGroup>", "SSS305"),
    ("<Job awarenessPolicy='Ignore'><Id>j</Id><NodeCount>x</NodeCount></Job>", "SSS201"),
    ("<Job awarenessPolicy='Ignore'><Id>j</Id><Extension>x</Extension></Job>", "SSS208"),
])
def test_rule_11_what_is_invalid_is_never_softened(text: str, rule: str) -> None:
    assert refused(text, "liberal") == [rule]


def test_rule_12_a_translation_names_all_that_a_target_cannot_hold() -> None:
    """performanceFactor, Hold and Interactive have no place in a JobSpec."""
    job = ("<Job{}><Executable>/bin/true</Executable><Environment export='true'/><Hold>System</Hold><Interactive>true"
           "</Interactive><Requested><Processors performanceFactor='0.5'>1</Processors></Requested></Job>")
    names = ["Hold", "Interactive", "Processors/@performanceFactor"]
    for policy, severity in (("", "error"), (" awarenessPolicy='Warn'", "warning")):
        findings = Findings()
        read = document(job.format(policy)).root
        to_spec(read, findings)  # type: ignore[arg-type]
        assert sorted(f.subject for f in findings if f.rule == "SSS501" and f.severity == severity) == names
    findings = Findings()
    to_spec(document(job.format(" awarenessPolicy='Ignore'")).root, findings)  # type: ignore[arg-type]
    assert [f for f in findings if f.rule == "SSS501"] == []


@pytest.mark.parametrize(("name", "text"), [
    ("JobGroup", "<JobGroup><Id>g</Id><Job><Id>j</Id></Job></JobGroup>"),
    ("TaskGroup", "<Job><Id>j</Id><TaskGroup><TaskCount>1</TaskCount></TaskGroup></Job>"),
    ("TaskGroupDefaults", "<Job><Id>j</Id><TaskGroupDefaults><Queue>q</Queue></TaskGroupDefaults></Job>"),
    ("Requested", "<Job><Id>j</Id><Requested><Memory>1</Memory></Requested></Job>"),
    ("Delivered", "<Job><Id>j</Id><Delivered><Memory>1</Memory></Delivered></Job>"),
    ("Resource", "<Job><Id>j</Id><Resource name='GPU'>1</Resource></Job>"),
    ("Extension", "<Job><Id>j</Id><Extension name='x'>1</Extension></Job>"),
])
def test_rule_13_gold_rejects_by_itself(name: str, text: str) -> None:
    with pytest.raises(RejectedError, match=f"SSS501 error {name} is not accepted in profile gold"):
        write_document(document(text), profile="gold")


@spec("9.0", 4)
def test_a_rejection_names_what_was_not_understood() -> None:
    findings = told("<Job>\n<Id>j</Id><User colour='red'>u</User>\n<Procesors>1</Procesors></Job>")
    assert [(f.subject, f.line, f.column) for f in findings] == [("colour", 2, 11), ("Procesors", 3, 1)]
    assert "Procesors" in str(findings[1]) and "Processors" in findings[1].hint


@spec("9.0", 2)
def test_the_callers_policy_is_the_outermost_one() -> None:
    assert outcome("<Job><Id>j</Id><Foo/></Job>", Policy.IGNORE) == []
    assert outcome("<Job><Id>j</Id><Foo awarenessPolicy='Reject'/></Job>", Policy.IGNORE) == [ERROR]
    read = read_document("<Job><Id>j</Id><Foo/></Job>", policy=Policy.WARN)
    assert read.findings is not None and not read.findings.rejected
