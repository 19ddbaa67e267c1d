"""Many offers at once: the same verdicts that each offer gets by itself, for a fraction of the evaluations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Container, Job
from sssjob.findings import Findings
from sssjob.request import Explanation, Offer, Offers, Predicate, match, requests_in, verdicts
from sssjob.request.matching import Matcher
from sssjob.xml.reader import read_document
from tests.strategies import FIXED, examples, requests

OPS = ("EQ", "NE", "LT", "LE", "GT", "GE", "Match")
METRICS = ("", ' metric="Total"', ' metric="PerNode"', ' metric="PerProcessor"', ' metric="PerGPU"', ' metric="Max"')
KINDS = tuple(f"<{tag}{attributes}{{}}>{{}}</{tag}>" for tag, attributes in (
    ("Processors", ""), ("NodeCount", ""), ("Duration", ""), ("Queue", ""), ("Machine", ""), ("User", ""),
    ("Feature", ""), ("Feature", ' aggregation="List"'), ("Node", ' aggregation="Range"'),
    *(("Memory", f' units="{units}"{metric}') for units, metric in product(("MB", "GB", "bogus"), METRICS)),
    *(("Resource", f' name="{name}"{metric}') for name, metric in product(("GPU", "License"), METRICS))))
VALUES = st.sampled_from(("0", "1", "2", "3", "4", "6", "8", "16", "0.5", "n[1-4]", "batch", "[", "a,2"))


def job(text: str) -> Job:
    root = read_document(f"<Job>{text}</Job>".encode()).root
    assert isinstance(root, Job)
    return root


def alike(request: Container, offers: list[Offer]) -> None:
    """The verdicts are those of ``match``, one after another, and so are the rules of what is wrong."""
    findings = Findings()
    together = verdicts(request, Offers(offers), findings=findings)
    alone = [match(request, offer) for offer in offers]
    assert [(one.met, one.score) for one in together] == [(one.met, one.score) for one in alone]
    assert {f.rule for f in findings} == {f.rule for answer in alone for f in answer.findings}
    assert [one.answer().explanation for one in together] == [answer.explanation for answer in alone]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Conditions with every operation, junction, bracket and preference."""
    text = ""
    for _ in range(draw(st.integers(1, 5))):
        said = f' op="{draw(st.sampled_from(OPS))}"' if draw(st.booleans()) else ""
        said += draw(st.sampled_from(("", "", ' conj="Or"', ' conj="Nand"', ' conj="Nor"')))
        said += draw(st.sampled_from(("", "", ' group="1"', ' group="-1"')))
        said += draw(st.sampled_from(("", "", ' preference="3"', ' preference="-1"')))
        text += draw(st.sampled_from(KINDS)).format(said, draw(VALUES))
    return f"<Requested>{text}</Requested>"


@st.composite
def machines(draw: st.DrawFn) -> str:
    """What one place offers: some amounts, of which many differ in nothing else, names, and now and then the same
    name twice, task groups or nothing."""
    text = "".join(draw(st.sampled_from(KINDS)).format("", draw(VALUES)) for _ in range(draw(st.integers(0, 4))))
    for tag, attributes in (("NodeCount", ""), ("Processors", ""), ("Memory", draw(st.sampled_from(METRICS)))):
        text += draw(st.sampled_from(("", *(f"<{tag}{attributes}>{n}</{tag}>" for n in (0, 1, 2, 4, 8, 64)))))
    if draw(st.integers(0, 9)) == 0:
        return f"<Processors>4</Processors><TaskGroup>{text}</TaskGroup>"
    return f"<Delivered>{text}</Delivered>" if draw(st.integers(0, 4)) == 0 else text


@settings(max_examples=examples(60), deadline=None, derandomize=FIXED)
@given(conditions() | requests(wide=True), st.lists(machines(), min_size=1, max_size=12))
def test_the_verdicts_of_each_offer_alone(request_: str, offered: list[str]) -> None:
    alike(job(request_), [Offer.of(job(text)) for text in offered])


@settings(max_examples=examples(30), deadline=None, derandomize=FIXED)
@given(st.lists(conditions() | requests(wide=True), min_size=2, max_size=6), st.lists(machines(), min_size=1,
                                                                                       max_size=6))
def test_what_was_asked_before_changes_no_verdict(requests_: list[str], offered: list[str]) -> None:
    """The same offers are held against one request after another, and again in the other order."""
    alone = [Offer.of(job(text)) for text in offered]
    offers = Offers(alone)
    for text in (*requests_, *reversed(requests_)):
        findings = Findings()
        own = [match(job(text), offer) for offer in alone]
        assert [(one.met, one.score) for one in verdicts(job(text), offers, findings=findings)] == [
            (one.met, one.score) for one in own]
        assert {f.rule for f in findings} == {f.rule for answer in own for f in answer.findings}


def test_amounts_that_differ_are_not_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand requests that differ in their amounts alone: what more or less was answered before is known."""
    asked = 0
    condition = Matcher.condition

    def counted(self: Matcher, predicate: Predicate) -> Explanation:
        nonlocal asked
        asked += 1
        return condition(self, predicate)

    monkeypatch.setattr(Matcher, "condition", counted)
    offers = Offers(Offer.of(job(f"<NodeCount>{n}</NodeCount><Memory units='GB' metric='PerNode'>{n * 8}</Memory>"))
                    for n in range(1, 21))
    for number in range(1000):
        amount = number * 7919 % 997 + 2
        met = [one.met for one in verdicts(job(f"<Requested><Memory units='GB' metric='PerNode'>{amount}</Memory>"
                                               "</Requested>"), offers)]
        assert met == [n * 8 >= amount for n in range(1, 21)]
    assert asked < 2000         # of 20,000


@pytest.mark.parametrize("op", OPS[:-1])
@pytest.mark.parametrize("conj", ["And", "Nand"])
def test_where_an_amount_is_enough(op: str, conj: str) -> None:
    """Of kinds that differ in an amount alone the answer changes once, wherever that is, also beside another metric
    whose count grows."""
    wholes = [Offer.of(job(f"<Processors>{n}</Processors>")) for n in range(12)]
    alike(job(f"<Requested><Processors op='{op}' conj='{conj}'>1</Processors></Requested>"), wholes)
    alike(job(f"<Requested><Processors op='{op}' conj='{conj}'>5</Processors></Requested>"), wholes)
    per_node = [Offer.of(job(f"<NodeCount>{n}</NodeCount><Memory metric='PerNode'>{m}</Memory>"))
                for n, m in product(range(7), (3, 5))]
    alike(job(f"<Requested><Memory op='{op}' conj='{conj}'>15</Memory></Requested>"), per_node)
    totals = [Offer.of(job(f"<NodeCount>{n}</NodeCount><Memory>{m}</Memory>")) for n, m in product(range(7), (10, 12))]
    alike(job(f"<Requested><Memory op='{op}' conj='{conj}' metric='PerNode'>3</Memory></Requested>"), totals)


def test_only_what_differs_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand offers of ten queues: ten questions about queues, a few about the amounts; none when it is asked
    again."""
    asked: list[str] = []
    condition = Matcher.condition

    def counted(self: Matcher, predicate: Predicate) -> Explanation:
        asked.append(predicate.property.tag)
        return condition(self, predicate)

    monkeypatch.setattr(Matcher, "condition", counted)
    offers = Offers(Offer.of(job(f"<Queue>q{n % 10}</Queue><NodeCount>{n}</NodeCount><Processors>{n * 8}</Processors>"))
                    for n in range(1000))
    request = tuple(requests_in(job("<Requested><Queue>q3</Queue><NodeCount>500</NodeCount><Processors>4000"
                                    "</Processors></Requested>")))
    assert [n for n, one in enumerate(verdicts(request, offers)) if one.met] == list(range(503, 1000, 10))
    assert (asked.count("Queue"), len(asked) < 40) == (10, True)
    asked.clear()
    assert sum(one.met for one in verdicts(request, offers)) == 50
    assert not asked


def test_what_cannot_be_read_is_told_each_time() -> None:
    offers = Offers([Offer.of(job("<Queue>a</Queue>")), Offer.of(job("<Queue>b</Queue>"))])
    for _ in range(2):
        findings = Findings()
        verdicts(job("<Requested><Queue op='Match'>(</Queue></Requested>"), offers, findings=findings)
        assert {finding.rule for finding in findings} == {"SSS406"}


def test_answers_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sssjob.request.many._ANSWERS", 10)
    offers = Offers(Offer.of(job(f"<Queue>q{n}</Queue>")) for n in range(6))
    for n in (*range(6), *range(6)):
        assert [one.met for one in verdicts(job(f"<Requested><Queue>q{n}</Queue></Requested>"), offers)] == [
            m == n for m in range(6)]


def test_no_offers() -> None:
    assert verdicts(job("<Requested><Queue>q</Queue></Requested>"), Offers([])) == []
