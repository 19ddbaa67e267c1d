"""The expression of a request, values and offers, preferences, and what is wrong with them.

Amounts are compared literally here, as with what a job was given (section 8.1); ``test_capacity`` has the other way.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import (
    Delivered,
    Document,
    Job,
    JobDefaults,
    JobGroup,
    Property,
    Requested,
    Task,
    TaskDefaults,
    TaskGroup,
    TaskGroupDefaults,
    new_property,
)
from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.request import (
    LeastRequest,
    Match,
    Offer,
    check_property,
    least_request,
    parse,
    request_of,
)
from sssjob.request import match as match_capacity
from sssjob.xml.reader import read_document
from tests.strategies import examples

match = partial(match_capacity, delivered=True)


def prop(tag: str, value: Any, **attributes: str) -> Property:
    return new_property(tag, value, attributes)


def asks(*properties: Property) -> Requested:
    return Requested(list(properties))


def answer(wanted: Property, *offered: Property) -> Match:
    return match(asks(wanted), Offer.of(offered))


def rules(block: Requested, **options: Any) -> list[str]:
    findings = Findings()
    parse(block, findings, **options)
    return [f.rule for f in findings]


# --- the expression against a brute-force evaluator ---------------------------------------------------------------

Item = tuple[str, str, int]     # name, conj, group


def brute(items: list[Item], truth: dict[str, bool]) -> bool:
    """The tokens of section 10.2 handed to Python, whose not, and, or bind as SQL's do."""
    tokens: list[str] = []
    for index, (name, conj, group) in enumerate(items):
        if index:
            tokens.append("or" if conj in ("Or", "Nor") else "and")
        tokens += ["("] * group
        tokens += ["not"] if conj in ("Nand", "Nor") else []
        tokens.append(str(truth[name]))
        tokens += [")"] * -group
    return bool(eval(" ".join(tokens)))


@st.composite
def expressions(draw: st.DrawFn) -> list[Item]:
    count = draw(st.integers(1, 8))
    items: list[Item] = []
    depth = 0
    for index in range(count):
        last = index == count - 1
        group = -depth if last else draw(st.integers(-depth, 2))
        depth += group
        items.append((draw(st.sampled_from("abcd")), draw(st.sampled_from(["And", "Or", "Nand", "Nor"])), group))
    return items


@settings(max_examples=examples(50), deadline=None)
@given(expressions())
def test_expression_is_what_its_tokens_say(items: list[Item]) -> None:
    block = asks(*(prop("Feature", name, conj=conj, group=str(group)) for name, conj, group in items))
    assert rules(block, strict=True) == []
    for values in itertools.product((False, True), repeat=4):
        truth = dict(zip("abcd", values, strict=True))
        offer = Offer.of([prop("Feature", name) for name, there in truth.items() if there])
        assert match(block, offer, strict=True).met is brute(items, truth)


@settings(max_examples=examples(40), deadline=None)
@given(expressions())
def test_turned_brackets_are_turned_back(items: list[Item]) -> None:
    block = asks(*(prop("Feature", name, conj=conj, group=str(-group)) for name, conj, group in items))
    truth = {"a": True, "b": False, "c": True, "d": False}
    offer = Offer.of([prop("Feature", name) for name, there in truth.items() if there])
    if any(group for *_, group in items):
        assert rules(block) == ["SSS402"] and rules(block, strict=True) == ["SSS401"]
    assert match(block, offer).met is brute(items, truth)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["And", "Or", "Nand", "Nor"]), st.integers(-70, 70), st.integers(-2, 2)),
                max_size=20))
def test_nothing_breaks_it(items: list[tuple[str, int, int]]) -> None:
    block = asks(*(prop("Memory", n, conj=c, group=str(g), preference=str(w)) for n, (c, g, w) in enumerate(items)))
    result = match(block, Offer.of([prop("Memory", 3)]))
    assert 0 <= result.score <= 1
    assert list(result.lines())


def test_empty_block_is_met() -> None:
    assert match(asks(), Offer.of([])).met and str(parse(asks())) == "true"


def test_padding_where_turning_does_not_help() -> None:
    block = asks(prop("Feature", "a", group="-1"), prop("Feature", "b", conj="Or"), prop("Feature", "c", group="2"))
    assert rules(block) == ["SSS402"]
    assert str(parse(block)) == "Feature = a or (Feature = b and Feature = c)"
    assert rules(asks(prop("Feature", "a", group="1"))) == ["SSS402"]
    assert rules(asks(prop("Feature", "a", group="1")), strict=True) == ["SSS401"]


@pytest.mark.parametrize("group", ["1000000", "-1000000", "65"])
def test_depth_is_limited(group: str) -> None:
    findings = Findings()
    parse(asks(prop("Feature", "a", group=group)), findings)
    assert "SSS110" in [f.rule for f in findings] and findings.rejected


def test_group_that_is_no_number() -> None:
    assert rules(asks(prop("Feature", "a", group="x"))) == ["SSS207"]


def test_long_lists() -> None:
    block = asks(*(prop("Feature", f"f{n}", conj="Or" if n % 2 else "Nand") for n in range(20_000)))
    result = match(block, Offer.of([prop("Feature", "f0"), prop("Feature", "f19999")]))
    assert result.met


# --- preferences --------------------------------------------------------------------------------------------------

def test_preferences_are_alternatives_whatever_conj_says() -> None:
    for conj in ("And", "Or"):
        block = asks(prop("Processors", 4), prop("Memory", 2, preference="3"),
                     prop("Memory", 1, preference="1", conj=conj), prop("Disk", 9))
        result = match(block, Offer.of([prop("Processors", 4), prop("Memory", 1), prop("Disk", 9)]))
        assert result.met and result.score == Fraction(1, 4)
        assert not match(block, Offer.of([prop("Memory", 1), prop("Disk", 9)])).met


def test_preferences_of_both_signs_and_zero() -> None:
    block = asks(prop("Memory", 2, preference="1"), prop("Memory", 1, preference="-1"))
    assert rules(block) == ["SSS404"]
    assert match(block, Offer.of([prop("Memory", 2)])).met
    assert not match(block, Offer.of([prop("Memory", 1)])).met
    assert rules(asks(prop("Memory", 2, preference="0"))) == ["SSS403"]


def test_preferences_of_different_properties_do_not_mix() -> None:
    block = asks(prop("Memory", 2, preference="1"), prop("Disk", 2, preference="1"))
    assert not match(block, Offer.of([prop("Memory", 2)])).met


def test_performance_factor_never_decides() -> None:
    wanted = prop("Processors", 4, performanceFactor="0.1")
    assert answer(wanted, prop("Processors", 4)).met
    assert not answer(wanted, prop("Processors", 5)).met


# --- values -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("op", "met"), [
    ("EQ", [False, True, False]), ("NE", [True, False, True]), ("LT", [True, False, False]),
    ("LE", [True, True, False]), ("GT", [False, False, True]), ("GE", [False, True, True]),
])
def test_ops(op: str, met: list[bool]) -> None:
    assert [answer(prop("Processors", 4, op=op), prop("Processors", n)).met for n in (3, 4, 5)] == met


def test_text_is_ordered_only_as_numbers() -> None:
    assert answer(prop("OperatingSystem", "9", op="GE"), prop("OperatingSystem", "10")).met
    result = answer(prop("OperatingSystem", "9", op="GE"), prop("OperatingSystem", "Linux"))
    assert not result.met and [f.rule for f in result.findings] == ["SSS405"]


@pytest.mark.parametrize(("pattern", "met"), [("lin.*", True), ("in", False), ("linux|aix", True)])
def test_match_is_anchored(pattern: str, met: bool) -> None:
    assert answer(prop("OperatingSystem", pattern, op="Match"), prop("OperatingSystem", "linux")).met is met


@pytest.mark.parametrize("pattern", ["(", "(?{die})", r"(a)\1"])
def test_bad_patterns_are_findings(pattern: str) -> None:
    result = answer(prop("OperatingSystem", pattern, op="Match"), prop("OperatingSystem", "linux"))
    assert not result.met and [f.rule for f in result.findings] == ["SSS406"]
    findings = Findings()
    check_property(prop("Node", pattern, aggregation="Pattern"), findings)
    assert [f.rule for f in findings] == ["SSS406"]


def test_units_are_binary_with_mb_as_default() -> None:
    assert answer(prop("Memory", Decimal(1), units="GB"), prop("Memory", Decimal(1024))).met
    assert answer(prop("Memory", Decimal("1.5"), units="GB"), prop("Memory", Decimal(1536), units="MB")).met
    assert not answer(prop("Memory", Decimal(1), units="GB", op="GE"), prop("Memory", Decimal(1000))).met


def test_units_that_do_not_compare() -> None:
    result = answer(prop("Memory", Decimal(1), units="pages"), prop("Memory", Decimal(1)))
    assert not result.met and [f.rule for f in result.findings] == ["SSS419"]
    assert answer(prop("Network", Decimal(1), units="Gbps"), prop("Network", Decimal(1), units="gbps")).met


def test_context() -> None:
    wanted = prop("Memory", 8, context="Configured")
    assert answer(wanted, prop("Memory", 8, context="Configured")).met
    assert answer(wanted, prop("Memory", 8)).met
    assert not answer(wanted, prop("Memory", 8, context="Available")).met
    assert match(asks(prop("Memory", 8)), Delivered([prop("Memory", 8, context="Used")])).met


@pytest.mark.parametrize(("metric", "more", "met"), [
    ("PerNode", [prop("NodeCount", 4)], True), ("PerNode", [prop("Node", "n[1-4]", aggregation="Range")], True),
    ("PerNode", [prop("NodeCount", 2)], False), ("PerNode", [], False), ("PerProcessor", [prop("Processors", 4)], True),
    ("PerSlot", [prop("Processors", 4)], True), ("PerGPU", [prop("Resource", 4, name="gpu")], True),
    ("PerChunk", [prop("Extension", "4", name="ChunkCount")], True), ("Max", [prop("NodeCount", 4)], False),
])
def test_metric_is_converted_where_the_offer_knows_how(metric: str, more: list[Property], met: bool) -> None:
    assert answer(prop("Memory", 256, metric=metric), prop("Memory", 1024), *more).met is met


def test_offer_per_node() -> None:
    offered = prop("Memory", 256, metric="PerNode")
    assert answer(prop("Memory", 256, metric="PerNode"), offered).met
    assert answer(prop("Memory", 1024), offered, prop("NodeCount", 4)).met
    assert answer(prop("Memory", 128, metric="PerProcessor"), offered, prop("NodeCount", 4), prop("Processors", 8)).met


def test_resource_is_known_by_name_and_type() -> None:
    wanted = prop("Resource", 1, name="License", type="MATLAB")
    assert answer(wanted, prop("Resource", 1, name="License", type="MATLAB")).met
    assert not answer(wanted, prop("Resource", 1, name="License", type="Fluent")).met
    assert answer(prop("Resource", 1, name="License"), prop("Resource", 1, name="License", type="Fluent")).met
    assert answer(prop("Extension", "x", name="a"), prop("Extension", "x", name="a")).met


def test_absent() -> None:
    result = answer(prop("Memory", 8))
    assert not result.met and result.explanation.state == "absent"
    assert answer(prop("Memory", 8, op="NE")).met
    assert answer(prop("Feature", "gpu", op="NE")).met


# --- nodes and features -------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("wanted", "met"), [
    (prop("Node", "n2"), True), (prop("Node", "n9"), False), (prop("Node", "n9,n3", aggregation="List"), True),
    (prop("Node", "n9; n3", aggregation="List", delimiter=";"), True),
    (prop("Node", "n[3-90]", aggregation="Range"), True), (prop("Node", "n[8-90]", aggregation="Range"), False),
    (prop("Node", "n.", aggregation="Pattern"), True), (prop("Node", "m.*", aggregation="Pattern"), False),
    (prop("Node", "n9,n3", aggregation="List", op="NE"), False), (prop("Node", "n9", op="NE"), True),
    (prop("Node", "n.", op="Match"), True), (prop("Node", "x1"), True), (prop("Node", "x1", count="2"), True),
    (prop("Node", "x1", count="3"), False), (prop("Node", "n1", count="2"), False),
])
def test_nodes(wanted: Property, met: bool) -> None:
    offered = prop("Node", "n[1-4]", aggregation="Range"), prop("Node", "x1", count="2")
    assert answer(wanted, *offered).met is met


def test_features_offered_as_a_list() -> None:
    offered = prop("Feature", "fast, big", aggregation="List")
    assert answer(prop("Feature", "big"), offered).met and not answer(prop("Feature", "small"), offered).met


def test_nodes_are_counted_once() -> None:
    nodes = (prop("Node", "n[1-4]", aggregation="Range"), prop("Node", "n2"), prop("Node", "z"),
             prop("Node", "n[4-5]", aggregation="Range"))
    assert answer(prop("NodeCount", 6), *nodes).met


def test_order_of_names() -> None:
    assert answer(prop("Feature", "9", op="LT"), prop("Feature", "8")).met
    assert [f.rule for f in answer(prop("Feature", "a", op="LT"), prop("Feature", "8")).findings] == ["SSS405"]


def test_malformed_and_large_sets() -> None:
    result = answer(prop("Node", "n[", aggregation="Range"), prop("Node", "n1"))
    assert [f.rule for f in result.findings] == ["SSS407"]
    findings = Findings()
    check_property(prop("Node", "n[1-99]", aggregation="Range"), findings, limits=replace(LIMITS, nodes=10))
    assert [f.rule for f in findings] == ["SSS110"]


# --- offers and jobs ----------------------------------------------------------------------------------------------

def test_offer_is_delivered_else_bare() -> None:
    job = Job([prop("Memory", 1), prop("Disk", 2), Delivered([prop("Memory", 3)])])
    offer = Offer.of(job)
    assert offer.properties["Memory"] == (prop("Memory", 3),) and offer.properties["Disk"] == (prop("Disk", 2),)
    assert offer.used == {"Memory"}
    assert Offer.of(Document(job)) == offer
    assert Offer.of(JobGroup([job])) == offer
    with pytest.raises(UsageError):
        Offer.of(JobGroup([job, job]))


def test_nodes_of_tasks_are_offered() -> None:
    job = Job([TaskGroup([Task([prop("Node", "n1")]), Task([prop("Node", "n2")])])])
    assert match(asks(prop("NodeCount", 2), prop("Node", "n2")), job).met


def test_bare_properties_count_while_a_job_waits() -> None:
    offer = Offer.of([prop("Processors", 4)])
    assert match(Job([prop("Processors", 4), prop("User", "amy")]), offer).met
    assert not match(Job([prop("Processors", 5)]), offer).met
    assert match(Job([prop("State", "Completed"), prop("Processors", 5)]), offer).met
    assert match(Job([prop("Processors", 5), asks(prop("Processors", 4))]), offer).met
    assert not match(Job([prop("User", "amy")]), Offer.of([prop("User", "bob")])).met


def test_task_groups_are_levels_of_their_own() -> None:
    job = Job([asks(prop("Processors", 12)), TaskGroup([asks(prop("Processors", 8))]),
               TaskGroup([asks(prop("Processors", 4)), TaskDefaults([asks(prop("Memory", 1))])])])
    request = request_of(job)
    assert [level.name for level in request.levels] == ["Job", "TaskGroup 1", "TaskGroup 2", "TaskGroup 2 Task 1"]
    offer = Offer.of([prop("Processors", 12), prop("Memory", 64)])
    assert match(job, offer).met and not match(job, offer, strict=True).met
    assert "TaskGroup 2: Processors = 4" in str(request)
    assert any("TaskGroup 2" in line for line in match(job, offer).lines())


def test_task_groups_against_task_groups() -> None:
    job = Job([TaskGroup([asks(prop("Processors", 8)), Delivered([prop("Processors", 8)])]),
               TaskGroup([asks(prop("Processors", 4)), Delivered([prop("Processors", 4)])])])
    assert match(job, job, strict=True).met
    other = Job([TaskGroup([Delivered([prop("Processors", 4)])]), TaskGroup([Delivered([prop("Processors", 8)])])])
    assert not match(job, other).met


def test_defaults_take_part() -> None:
    job = Job([prop("Name", "x"), TaskGroupDefaults([asks(prop("Feature", "fast"))])])
    defaults = JobDefaults([asks(prop("Memory", 8))])
    request = request_of(job, defaults)
    assert str(request) == "Job: Memory = 8\nTaskGroup 1: Feature = fast"
    document = Document(JobGroup([defaults, job]))
    assert match(document, Offer.of([prop("Memory", 8), prop("Feature", "fast")])).met
    assert not match(document, Offer.of([prop("Memory", 8)])).met


def test_all_jobs_of_a_group_take_part() -> None:
    """Nothing of the group itself is asked for, nor that a place has the array that a job is."""
    first = Job([prop("Id", "a"), asks(prop("Memory", 8)), prop("Extension", "1-4", type="Scheduler", name="Array")])
    second = Job([prop("Id", "b"), TaskGroup([asks(prop("Processors", 2))])])
    document = Document(JobGroup([prop("Id", "g"), first, second]))
    assert match(document, Offer.of([prop("Memory", 8), prop("Processors", 2)])).met
    verdict = match(document, Offer.of([prop("Memory", 8)]))
    assert not verdict.met and "\n".join(verdict.lines()) == """\
? all levels
  + Job a
    + Memory = 8: offered 8
  ? Job b TaskGroup 1
    ? Processors = 2 (nothing offered)"""


# --- the corners --------------------------------------------------------------------------------------------------

def test_an_amount_measured_may_be_lower_when_it_was_used() -> None:
    block = asks(prop("Memory", 8))
    assert match(block, Delivered([prop("Memory", 7, metric="Max")])).met
    assert not match(block, Delivered([prop("Memory", 9, metric="Max")])).met
    assert not match(block, Offer.of([prop("Memory", 7, metric="Max")])).met


@pytest.mark.parametrize("value", ["x", "NaN", "1E+99999", "9" * 100])
def test_numbers_made_by_hand(value: str) -> None:
    assert not answer(prop("Processors", 4), prop("Processors", value)).met
    assert not answer(prop("Processors", 4, op="GE"), prop("Processors", value)).met
    assert not answer(prop("Memory", Decimal("NaN"), op="LT"), prop("Memory", Decimal(1))).met


def test_operations_nobody_knows() -> None:
    assert not answer(prop("Processors", 4, op="ABOUT"), prop("Processors", 4)).met
    assert not answer(prop("Queue", "a", op="ABOUT"), prop("Queue", "a")).met


def test_kinds_of_requests_and_offers() -> None:
    group = TaskGroup([asks(prop("Memory", 8))])
    assert match(group, Requested([prop("Memory", 8)])).met
    assert match(Document(group), Document(Delivered([prop("Memory", 8)]))).met
    answer_ = match(parse(asks(prop("Memory", 8))), Offer.of([prop("Memory", 8)]))
    assert answer_ and list(answer_.lines()) == ["+ Memory = 8: offered 8"]
    assert answer(prop("Node", "a"), prop("Node", "n[", aggregation="Range")).met is False
    assert answer(prop("Node", "a"), prop("Node", "a.*", aggregation="Pattern")).met is False
    assert not answer(prop("NodeCount", 2)).met


def test_shown() -> None:
    block = asks(prop("Memory", 2, units="GB", preference="-1"), prop("Node", "a", count="2", conj="Nor"),
                 prop("Memory", 1, preference="-3"))
    assert str(parse(block)) == (
        "preferably [Memory = 2 GB (1/4), Memory = 1 (3/4)] or not Node = a x2")
    names = [prop("Node", f"n{n}") for n in range(20)]
    assert "and 12 more" in answer(prop("Node", "n1"), *names).explanation.offered


# --- one value a property (decisions 12) --------------------------------------------------------------------------

def least(*properties: Property) -> list[tuple[str, str, bool]]:
    """(name, value, exact) of all that is to be asked for."""
    found = least_request(asks(*properties))
    assert found.possible
    return [(v.property.tag, v.property.text, v.exact) for v in found.values]


@pytest.mark.parametrize(("properties", "expected"), [
    ([prop("Processors", 4)], [("Processors", "4", True)]),
    ([prop("Processors", 8, op="GE"), prop("Processors", 16, op="LE")], [("Processors", "8", False)]),
    ([prop("Processors", 8, op="GT")], [("Processors", "9", False)]),
    ([prop("Processors", 16, op="LE")], [("Processors", "1", False)]),
    ([prop("Processors", 1, op="NE"), prop("Processors", 3, op="NE")], [("Processors", "2", False)]),
    ([prop("Queue", "q"), prop("Processors", 8, op="LT", conj="Nand")],
     [("Queue", "q", True), ("Processors", "8", False)]),
    ([prop("Duration", 60, op="GE"), prop("Duration", 120, op="LE")], [("Duration", "120", False)]),
    ([prop("Duration", 120, op="LE")], [("Duration", "120", True)]),
    ([prop("Duration", 120, op="LT")], [("Duration", "119", False)]),
    ([prop("Duration", 60, op="GE")], [("Duration", "60", False)]),
    ([prop("Memory", Decimal(1), units="GB", op="GE"), prop("Memory", Decimal(1536), op="GE")],
     [("Memory", "1.5", False)]),
    ([prop("Resource", Decimal(2), name="GPU", op="GT"), prop("Resource", Decimal(1), name="Tape")],
     [("Resource", "3", False), ("Resource", "1", True)]),
    ([prop("Memory", 512, metric="PerNode"), prop("Memory", 4096)],
     [("Memory", "512", True), ("Memory", "4096", True)]),
    ([prop("Feature", "a"), prop("Feature", "b"), prop("Node", "n[1-4]", aggregation="Range")],
     [("Feature", "a", True), ("Feature", "b", True), ("Node", "n[1-4]", True)]),
])
def test_least_value(properties: list[Property], expected: list[tuple[str, str, bool]]) -> None:
    assert least(*properties) == expected


def test_of_alternatives_the_heaviest_then_the_first() -> None:
    assert least(prop("Memory", 1, preference="1"), prop("Memory", 2, preference="2"),
                 prop("Memory", 3, preference="2")) == [("Memory", "2", False)]
    assert least(prop("Processors", 16), prop("Processors", 12, conj="Or")) == [("Processors", "16", False)]
    assert least(prop("User", "a", group="1"), prop("Memory", 9, group="-1"), prop("User", "b", conj="Or", group="1"),
                 prop("Memory", 1, group="-1")) == [("User", "a", False), ("Memory", "9", False)]


def test_an_alternative_that_the_rest_excludes_is_not_taken() -> None:
    assert least(prop("Processors", 12, group="1"), prop("Processors", 16, conj="Or", group="-1"),
                 prop("Processors", 14, op="GE")) == [("Processors", "16", False)]


def test_wishes_patterns_and_mere_exclusions_are_dropped() -> None:
    wish, match_, other, most = (prop("Memory", 1, preference="-1"), prop("Queue", "a.*", op="Match"),
                                 prop("Feature", "slow", op="NE"), prop("Disk", 4, op="LE"))
    least = least_request(asks(wish, match_, other, most, prop("User", "amy")))
    assert [v.property for v in least.values] == [prop("User", "amy")]
    assert set(least.dropped) == {wish, match_, other, most}


@pytest.mark.parametrize(("unit", "power"), [("GB", 30), ("PB", 50), ("DB", 100)])
def test_a_byte_more_is_a_byte_more(unit: str, power: int) -> None:
    """It was rounded to 28 digits: more than 3 DB was 3 DB."""
    least_values = least_request(asks(prop("Memory", 3, op="GT", units=unit))).values
    (value,) = [single.property.value for single in least_values]
    assert Fraction(value) == 3 + Fraction(1, 1 << power)


def test_contradictions() -> None:
    least = least_request(asks(prop("Processors", 4), prop("Processors", 5), prop("Queue", "a"), prop("Queue", "b")))
    assert not least.possible
    assert [v.property.text for v in least.values] == ["4", "a"]
    assert not least_request(asks(prop("Processors", 4, op="GT"), prop("Processors", 5, op="LT"))).possible


def test_the_least_request_of_the_elaborate_example() -> None:
    least = least_request(asks(prop("Processors", 12, group="-1"), prop("Processors", 16, conj="Or", group="1"),
                               prop("Memory", 512), prop("Node", "fr15n.*", aggregation="Pattern")))
    first = least.first("Processors")
    assert first is not None and (first.property, first.exact) == (prop("Processors", 12), False)
    assert least.first("Node", aggregation="Pattern") is not None and least.first("Disk") is None


_AMOUNTS = st.builds(
    lambda tag, n, op, conj, weight: prop(tag, n, op=op, conj=conj, **({"preference": str(weight)} if weight else {})),
    st.sampled_from(["Processors", "Memory", "Duration"]), st.integers(0, 6),
    st.sampled_from(["EQ", "NE", "LT", "LE", "GT", "GE"]), st.sampled_from(["And", "Or", "Nand", "Nor"]),
    st.sampled_from([0, 0, 1, 2]))


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(_AMOUNTS, min_size=1, max_size=5))
def test_what_is_asked_for_satisfies_the_request(properties: list[Property]) -> None:
    found: LeastRequest = least_request(asks(*properties))
    if found.possible and not found.dropped:
        assert match(asks(*properties), Offer.of([v.property for v in found.values]), strict=True).met


def test_least_request_of_long_lists() -> None:
    block = asks(*(prop("Processors", n, op="NE") for n in range(20_000)),
                 *(prop("Feature", f"f{n}") for n in range(50_000)))
    assert len(least_request(block).values) == 50_001


@pytest.mark.parametrize("metric", ["PerSlot", "PerProcessor"])
@pytest.mark.parametrize(("offered", "met"), [("50", True), ("2", False)])
def test_an_amount_of_each_processor_of_a_job_that_says_no_number_of_them_is_that_of_one(metric: str, offered: str,
                                                                                         met: bool) -> None:
    """As its totals have it; the offer's 80 processors are not the job's. ``#$ -l h_vmem=2560K`` without ``-pe``."""
    request, offer = (read_document(f"<Job>{text}</Job>".encode()) for text in (
        f"<Requested><Memory units='KB' metric='{metric}'>2560</Memory></Requested>",
        f"<Memory>{offered}</Memory><Processors>80</Processors><NodeCount>80</NodeCount>"))
    assert match_capacity(request, offer).met is met
