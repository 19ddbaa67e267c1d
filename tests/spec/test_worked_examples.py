"""The worked examples of the specification: conj and group, preferences, requests and the answers given to them.

Source: SSS job object 3.1.0, sections 8.1, 8.2, 10.2 and 10.3.
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction
from functools import partial

import pytest

from sssjob.document.model import Container, Delivered, Job, Property, Requested, new_property
from sssjob.findings import Findings
from sssjob.request import Offer, parse, request_of
from sssjob.request import match as match_capacity
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.spec.support import refused, rules, spec

#: The text holds requests against what was delivered.
match = partial(match_capacity, delivered=True)


def requested(text: str) -> Requested:
    root = read_document(f"<Requested>{text}</Requested>".encode()).root
    assert isinstance(root, Requested)
    return root


def delivered(text: str) -> Delivered:
    root = read_document(f"<Delivered>{text}</Delivered>".encode()).root
    assert isinstance(root, Delivered)
    return root


def offer(**values: str | int) -> Offer:
    return Offer.of([new_property(tag, value) for tag, value in values.items()])


REQUESTS = (
    '<Processors op="GE">8</Processors><Processors op="LE">16</Processors><Duration>3600</Duration>',
    '<NodeCount>1</NodeCount><Node aggregation="Pattern">fr15.*</Node>',
    '<User group="1">scottmo</User><Account group="-1">mscfops</Account>'
    '<User conj="Or" group="1">amy</User><Account group="-1">chemistry</Account>',
    '<Memory preference="2">1024</Memory><Memory preference="1">512</Memory>',
)
ANSWERS = (
    "<Processors>12</Processors><Duration>1234</Duration>",
    "<Node>fr15n03</Node>",
    "<User>scottmo</User><Account>mscfops</Account>",
    "<Memory>1024</Memory>",
)


@spec("8.2", "a")
@pytest.mark.parametrize(("asked", "given"), list(zip(REQUESTS, ANSWERS, strict=True)))
def test_published_answer_meets_its_request(asked: str, given: str) -> None:
    answer = match(requested(asked), delivered(given))
    assert answer.met, "\n".join(answer.lines())
    assert not list(answer.findings)


@pytest.mark.parametrize(("i", "j"), [p for p in itertools.product(range(4), repeat=2) if p[0] != p[1]])
def test_no_published_answer_meets_another_request(i: int, j: int) -> None:
    assert not match(requested(REQUESTS[i]), delivered(ANSWERS[j])).met


def test_the_same_inside_a_job() -> None:
    text = f"<Job><Id>1</Id><Requested>{REQUESTS[0]}</Requested><Delivered>{ANSWERS[0]}</Delivered></Job>"
    job = read_document(text.encode()).root
    assert isinstance(job, Job)
    assert match(job, job).met


@pytest.mark.parametrize(("processors", "duration", "met"), [
    (8, 3600, True), (16, 3600, True), (7, 3600, False), (17, 3600, False), (12, 3601, False), (12, 3599, False),
])
def test_range_of_processors(processors: int, duration: int, met: bool) -> None:
    assert match(requested(REQUESTS[0]), offer(Processors=processors, Duration=duration)).met is met


def test_a_shorter_run_is_within_the_limit_but_not_strictly() -> None:
    assert match(requested("<Duration>3600</Duration>"), delivered("<Duration>1234</Duration>")).met
    assert not match(requested("<Duration>3600</Duration>"), delivered("<Duration>3601</Duration>")).met
    assert not match(requested("<Duration>3600</Duration>"), delivered("<Duration>1234</Duration>"), strict=True).met


@pytest.mark.parametrize(("user", "project", "met"), [
    ("scottmo", "mscfops", True), ("amy", "chemistry", True), ("scottmo", "chemistry", False),
    ("amy", "mscfops", False),
])
def test_pairs(user: str, project: str, met: bool) -> None:
    assert match(requested(REQUESTS[2]), offer(User=user, Project=project)).met is met


@spec("8.1", 2, 3)
@pytest.mark.parametrize(("op", "value", "met"), [
    ("EQ", 12, True), ("EQ", 11, False), ("NE", 11, True), ("LT", 11, True), ("LT", 12, False), ("GT", 13, True),
    ("LE", 12, True), ("LE", 13, False), ("GE", 12, True), ("GE", 11, False), ("Match", 12, True),
])
def test_operations(op: str, value: int, met: bool) -> None:
    assert match(requested(f'<Processors op="{op}">12</Processors>'), offer(Processors=value)).met is met


@pytest.mark.parametrize(("op", "offered", "met"), [
    ("EQ", "b", True), ("EQ", "c", False), ("NE", "b", False), ("NE", "c", True),
])
def test_operations_on_a_list(op: str, offered: str, met: bool) -> None:
    """EQ: any member; NE: none of the members."""
    block = requested(f'<Feature op="{op}" aggregation="List">a,b</Feature>')
    assert match(block, offer(Feature=offered)).met is met


def test_no_op_means_exactly() -> None:
    assert match(requested("<Processors>16</Processors>"), offer(Processors=16)).met
    assert not match(requested("<Processors>16</Processors>"), offer(Processors=17)).met


def test_different_names_are_joined_with_and() -> None:
    block = requested("<Processors>4</Processors><Memory>2</Memory>")
    assert match(block, offer(Processors=4, Memory=2)).met and not match(block, offer(Processors=4)).met


@spec("8.0", "a")
@pytest.mark.parametrize(("state", "wanted"), [("Idle", "Job: Processors = 4"), ("Completed", "Job: true")])
def test_a_bare_property_is_requested_or_delivered_by_the_state(state: str, wanted: str) -> None:
    job = read_document(f"<Job><Id>1</Id><State>{state}</State><Processors>4</Processors></Job>".encode()).root
    assert isinstance(job, Job)
    assert str(request_of(job)) == wanted
    assert ("Processors" in Offer.of(job).used) is (state == "Completed")


A, B, C = (f"<Feature{{}}>{name}</Feature>" for name in "abc")


@spec("8.1", 4, 5, 6, 7)
@pytest.mark.parametrize(("text", "formula"), [
    (A.format("") + B.format(""), "a and b"),
    (A.format("") + B.format(' conj="Or"') + C.format(""), "a or (b and c)"),
    (A.format("") + B.format(' conj="Nand"'), "a and not b"),
    (A.format("") + B.format(' conj="AndNot"'), "a and not b"),
    (A.format("") + B.format(' conj="Nand" group="1"') + C.format(' conj="Or" group="-1"'), "a and (not b or c)"),
    (A.format("") + B.format(' conj="Nor"'), "a or not b"),
    (A.format("") + B.format(' conj="OrNot" group="1"') + C.format(' group="-1"'), "a or (not b and c)"),
])
def test_truth_tables(text: str, formula: str) -> None:
    block = requested(text)
    for values in itertools.product((False, True), repeat=3):
        named = dict(zip("abc", values, strict=True))
        given = Offer.of([new_property("Feature", name) for name, there in named.items() if there])
        assert match(block, given).met is eval(formula, {}, named), (formula, named)


ELABORATE = ('<Processors group="-1">12</Processors><Processors conj="Or" group="1">16</Processors>'
             "<Memory>2048</Memory><Node>n1</Node>")


@pytest.mark.parametrize(("processors", "memory", "node", "met"), [
    (12, 2048, "n1", True), (16, 2048, "n1", True), (14, 2048, "n1", False), (12, 1024, "n1", False),
    (16, 2048, "n2", False),
])
def test_elaborate_example_closes_before_it_opens(processors: int, memory: int, node: str, met: bool) -> None:
    findings = Findings()
    expression = parse(requested(ELABORATE), findings)
    assert [f.rule for f in findings] == ["SSS402"]
    assert str(expression) == "(Processors = 12 or Processors = 16) and Memory = 2048 and Node = n1"
    assert [p.group for p in expression.properties] == [1, -1, 0, 0]
    assert match(expression, offer(Processors=processors, Memory=memory, Node=node)).met is met


def test_elaborate_example_is_an_error_in_a_strict_profile() -> None:
    findings = Findings()
    parse(requested(ELABORATE), findings, strict=True)
    assert [f.rule for f in findings] == ["SSS401"] and findings.rejected


@spec("8.1", 8, 9)
@pytest.mark.parametrize(("memory", "met", "score"), [
    (1024, True, Fraction(2, 3)), (512, True, Fraction(1, 3)), (2048, False, Fraction(0)),
])
def test_preference(memory: int, met: bool, score: Fraction) -> None:
    answer = match(requested(REQUESTS[3]), offer(Memory=memory))
    assert (answer.met, answer.score) == (met, score)


@spec("8.1", 8, 9)
def test_wishes_do_not_decide() -> None:
    block = requested('<Memory preference="-2">1024</Memory><Memory preference="-1">512</Memory>')
    assert match(block, offer(Memory=64)).met
    assert match(block, offer(Memory=512)).score == Fraction(1, 3)


def test_equal_weights_do_not_rank() -> None:
    for weight, met in ((1, [True, True, False]), (-1, [True, True, True])):
        block = requested(f'<Memory preference="{weight}">1024</Memory><Memory preference="{weight}">512</Memory>')
        answers = [match(block, offer(Memory=n)) for n in (1024, 512, 64)]
        assert [a.met for a in answers] == met
        assert [a.score for a in answers] == [Fraction(1, 2), Fraction(1, 2), Fraction(0)]


@pytest.mark.parametrize("conj", ["", ' conj="And"', ' conj="Or"'])
def test_alternatives_with_a_preference_are_joined_with_or_whatever_conj_says(conj: str) -> None:
    block = requested(f'<Memory preference="2">1024</Memory><Memory preference="1"{conj}>512</Memory>')
    assert match(block, offer(Memory=512)).met and not match(block, offer(Memory=64)).met


@pytest.mark.parametrize(("weights", "rule"), [((0, 1), "SSS403"), ((1, -1), "SSS404")])
def test_weights_that_say_nothing_clear(weights: tuple[int, int], rule: str) -> None:
    findings = Findings()
    first, second = weights
    parse(requested(f'<Memory preference="{first}">1024</Memory><Memory preference="{second}">512</Memory>'), findings)
    assert [f.rule for f in findings] == [rule] and findings.rejected is (rule == "SSS403")


@spec("8.1", 10, 11)
def test_a_performance_factor_never_decides() -> None:
    block = requested('<Processors performanceFactor="0.5">12</Processors>')
    assert match(block, offer(Processors=12)).met and not match(block, offer(Processors=6)).met
    (factor,) = [p.performance_factor for p in block.properties()]
    assert factor == Decimal("0.5")


@spec("8.2", 2, 3)
def test_groups_of_delivered_properties_are_kept() -> None:
    """A job that spanned two machines."""
    block = delivered('<Machine group="1">a</Machine><Processors group="-1">4</Processors>'
                      '<Machine group="1">b</Machine><Processors group="-1">8</Processors>')
    assert [p.group for p in block.properties()] == [1, -1, 1, -1]
    again = read_document(write_document(block)).root
    assert again == block
    assert match(requested("<Machine>b</Machine>"), block).met


def test_brackets_of_delivered_properties_balance() -> None:
    text = '<Job><Id>1</Id><Delivered><Machine group="1">a</Machine></Delivered></Job>'
    assert (rules(text), refused(text)) == (["SSS402"], ["SSS401"])


def test_several_blocks_are_one() -> None:
    text = b"<Job><Requested><Memory>1</Memory></Requested><Requested><Processors>2</Processors></Requested></Job>"
    job = read_document(text).root
    assert isinstance(job, Container)
    given: list[Property] = [new_property("Memory", 1), new_property("Processors", 2)]
    assert match(job, Offer.of(given)).met
    assert not match(job, Offer.of(given[:1])).met


def test_first_job_of_the_published_group() -> None:
    """Section 1.3: 1155 of 3600 seconds, and at most 975 of 1024 MB, were used."""
    text = ("<Job><Id>fr15n05.1234.0</Id><State>Completed</State>"
            "<Requested><Duration>3600</Duration><Processors>2</Processors><Memory>1024</Memory></Requested>"
            '<Delivered><Duration>1155</Duration><Processors consumptionRate="0.78">2</Processors>'
            '<Memory metric="Max">975</Memory></Delivered></Job>')
    job = read_document(text.encode()).root
    assert isinstance(job, Job)
    assert match(job, job).met and not match(job, job, strict=True).met


def test_second_job_of_the_published_group() -> None:
    """Section 1.3: while it waits, its task groups say what each of them needs."""
    text = ("<Job><Id>fr15n05.1234.1</Id><State>Idle</State>"
            "<TaskGroup><Requested><Memory>2048</Memory></Requested></TaskGroup>"
            f"<TaskGroup><NodeCount>4</NodeCount><Requested>{ELABORATE}</Requested></TaskGroup></Job>")
    job = read_document(text.encode()).root
    assert isinstance(job, Job)
    request = request_of(job)
    assert str(request) == ("Job: true\nTaskGroup 1: Memory = 2048\nTaskGroup 2: (Processors = 12 or Processors = 16) "
                            "and Memory = 2048 and Node = n1 and NodeCount = 4")
    assert [f.rule for f in request.findings] == ["SSS402"]
