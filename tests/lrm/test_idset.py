"""Idsets as libflux-idset reads and writes them, without what the RFC text does not back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError
from sssjob.lrm.idset import GREATEST, Idset, one_range, ranges
from tests.fluxexec.support import vectors

IDS = st.sets(st.integers(0, 40))


@pytest.mark.parametrize("vector", vectors("idset-decode"), ids=lambda v: repr(v["input"]))
def test_recorded(vector: dict[str, Any]) -> None:
    if vector["valid"]:
        ids = Idset.parse(vector["input"])
        assert (list(ids), ids.count, str(ids)) == (vector["ids"], vector["count"], vector["str"])
    else:
        with pytest.raises(LexicalError):
            Idset.parse(vector["input"])


@pytest.mark.parametrize("vector", vectors("idset-ops"), ids=lambda v: f"{v['a']} {v['b']}")
def test_recorded_algebra(vector: dict[str, Any]) -> None:
    a, b = Idset.parse(vector["a"]), Idset.parse(vector["b"])
    assert (str(a | b), str(a - b), a == b) == (vector["union"], vector["subtract"], vector["equal"])


@given(IDS, IDS, st.integers(0, 50))
def test_algebra(a: set[int], b: set[int], count: int) -> None:
    left, right = Idset.of(a), Idset.of(b)
    assert (set(left | right), set(left - right), set(left & right)) == (a | b, a - b, a & b)
    assert Idset.parse(str(left)) == left and [n in left for n in range(45)] == [n in a for n in range(45)]
    assert list(left.take(count)) == sorted(a)[:count]


# RFC 22: ascending, no repeats, no leading zero, a < b in ranges, no blanks, brackets around all or none
@pytest.mark.parametrize("text", ["1,", "1,,2", ",", ",1", "0-0", "3,2", "01,2", "1-2-3", "[[0]]", "[0", "0]", "-1",
                                  "1-", "1\n", "1 2", "\u0661", "1-0", "0-01", "1_0", f"{GREATEST + 1}", "9" * 5000,
                                  "all"])
def test_refused(text: str) -> None:
    with pytest.raises(LexicalError):
        Idset.parse(text)


def test_large_sets_cost_nothing() -> None:
    begin = time.process_time()
    found = Idset.parse(f"0-{GREATEST}") - Idset.parse("7")
    assert (str(found), found.count, 7 in found) == (f"0-6,8-{GREATEST}", GREATEST, False)
    text = ",".join(str(n) for n in range(0, 400_000, 2))
    assert str(Idset.parse(text)) == text
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(("text", "named"), [
    ("4", [range(4, 5)]), ("3-9:2, 12", [range(3, 10, 2), range(12, 13)]), ("3-1", [range(3, 2)]),
    ("1-3:0", [range(0)]), ("", None), ("1,", None), ("1-", None), ("1:2", None), ("a", None), ("1" * 10, None)])
def test_ranges_of_arrays(text: str, named: list[range] | None) -> None:
    assert ranges(text) == named


@pytest.mark.parametrize(("text", "expected"), [
    ("4", (4, 4, 1)), ("3-9:2", (3, 9, 2)), ("9-3", (9, 3, 1)), ("1-4:0", (1, 4, 0)), ("1,2", None), ("1-", None),
    ("", None), ("1:2", None), ("\u0663", None), ("1234567890", None)])
def test_one_range_is_what_stands_there(text: str, expected: tuple[int, int, int] | None) -> None:
    """Each manager says itself what it makes of a range that runs backwards or does not step."""
    assert one_range(text) == expected
