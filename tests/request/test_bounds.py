"""One search goes through alternatives, for what a check finds possible and for what a target is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import Property, new_property
from sssjob.request import least_request, parse
from sssjob.request.bounds import bounds_of, key_of
from tests.strategies import examples

Alternatives = list[tuple[str, int]]


def demanded(*choices: Alternatives, tag: str = "Processors") -> list[Property]:
    """All of some choices: the alternatives of each, as (op, value), in brackets joined by Or."""
    demanded = []
    for choice in choices:
        for number, (op, value) in enumerate(choice):
            group = (number == 0) - (number == len(choice) - 1)
            more = {"op": op} | ({"conj": "Or"} if number else {}) | ({"group": str(group)} if group else {})
            demanded.append(new_property(tag, value, more))
    return demanded


def test_a_later_choice_can_turn_an_earlier_one() -> None:
    """12 or 16 processors, and 4 or 16: the first alternative of the first choice leaves nothing to the second."""
    asked = demanded([("EQ", 12), ("EQ", 16)], [("EQ", 4), ("EQ", 16)])
    least = least_request(asked)
    assert least.possible
    assert [(v.property.value, v.exact) for v in least.values] == [(16, False)]
    bounds = bounds_of([parse(asked).root])
    assert bounds is not None
    assert (bounds[key_of(asked[0])].least, bounds[key_of(asked[0])].most) == (16, 16)


_CHOICES = st.lists(st.lists(st.tuples(st.sampled_from(["EQ", "GE", "LE"]), st.integers(1, 6)), min_size=1, max_size=3),
                    min_size=1, max_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(_CHOICES)
def test_what_a_check_finds_possible_a_target_can_be_asked_for(choices: list[Alternatives]) -> None:
    asked = demanded(*choices)
    possible = any(all(any((op == "EQ" and n == value) or (op == "GE" and n >= value) or (op == "LE" and n <= value)
                           for op, value in choice) for choice in choices) for n in range(1, 7))
    assert least_request(asked).possible is possible
    assert (bounds_of([parse(asked).root]) is not None) is possible


@pytest.mark.parametrize(("conditions", "possible"), [
    ([("GT", 3), ("LT", 4)], False), ([("GT", 3), ("LT", 5)], True), ([("GE", 2), ("LE", 3), ("NE", 2)], True),
    ([("GE", 2), ("LE", 3), ("NE", 2), ("NE", 3)], False)])
def test_whole_numbers_between_bounds(conditions: Alternatives, possible: bool) -> None:
    bounds = bounds_of([parse(demanded(*([condition] for condition in conditions))).root])
    assert (bounds is not None) is possible


def test_a_search_that_would_take_too_long_is_given_up() -> None:
    """Each of 40 choices doubles the ways, of which the last choice allows none."""
    free = [p for n in range(40) for p in demanded([("EQ", 1), ("EQ", 2)], tag="Resource")
            for p in [p.replace(name=f"r{n}")]]
    asked = [*free, *demanded([("EQ", 1), ("EQ", 2)], [("EQ", 3)])]
    assert bounds_of([parse(asked).root]) == {}         # not judged
    assert not least_request(asked).possible


def test_many_choices_take_no_recursion() -> None:
    asked = demanded(*[[("GE", n), ("GE", n + 1)] for n in range(3_000)])
    least = least_request(asked)
    assert least.possible
    assert [v.property.value for v in least.values] == [2_999]
