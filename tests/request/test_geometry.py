"""Task geometry."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.limits import LIMITS
from sssjob.request.geometry import Geometry


def test_example_of_the_specification() -> None:
    geometry = Geometry.parse("{1,4}{2}{3,5}")
    assert geometry.nodes == ((1, 4), (2,), (3, 5))
    assert (geometry.node_count, geometry.gaps) == (3, ())
    assert Geometry.parse(" { 1 , 4 } {2}\n{3,05} ") == geometry
    assert str(geometry) == "{1,4}{2}{3,5}"


@pytest.mark.parametrize(
    ("text", "gaps"),
    [("{0}{1}", ()), ("{0,2}", ((1, 1),)), ("{3}", ((1, 2),)), ("{1}{99999999999999}", ((2, 99999999999998),))],
)
def test_gaps(text: str, gaps: tuple[tuple[int, int], ...]) -> None:
    assert Geometry.parse(text).gaps == gaps


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"), ("{}", "a task number expected at character 2"),
        ("{1-99999}", "a task number expected at character 2"), ("{1,,2}", "a task number expected at character 4"),
        ("{0}{1}{0}", "task 0 given twice, at character 8"), ("{1}{01}", "task 1 given twice, at character 5"),
        ("{1", "'{' never closed at character 1"), ("{1}x", "'{' expected at character 4"),
        ("1,2", "'{' expected at character 1"), ("{{1}}", "a task number expected at character 2"),
        ("{1}}", "'{' expected at character 4"), ("{-1}", "a task number expected at character 2"),
        ("{\uff11}", "a task number expected at character 2"), ("{1 2}", "a task number expected at character 2"),
    ],
)
def test_malformed(text: str, hint: str) -> None:
    with pytest.raises(LexicalError) as caught:
        Geometry.parse(text)
    assert caught.value.hint == hint


def test_limits() -> None:
    assert Geometry.parse("".join(f"{{{n}}}" for n in range(100_000))).node_count == 100_000
    with pytest.raises(LimitError, match="nodes"):
        Geometry.parse("".join(f"{{{n}}}" for n in range(11)), replace(LIMITS, nodes=10))
    with pytest.raises(LimitError, match="digits"):
        Geometry.parse("{" + "9" * 65 + "}")


@given(st.lists(st.integers(0, 50), unique=True, min_size=1), st.integers(1, 5))
def test_round_trip(numbers: list[int], size: int) -> None:
    geometry = Geometry(tuple(tuple(numbers[at : at + size]) for at in range(0, len(numbers), size)))
    assert Geometry.parse(str(geometry)) == geometry
    missing = {n for low, high in geometry.gaps for n in range(low, high + 1)}
    assert missing == set(range(max(numbers) + 1)) - set(numbers) - {0}
