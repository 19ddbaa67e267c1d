"""Arithmetic that prints itself, and the way back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting.arithmetic import (
    Figure,
    Rounding,
    call,
    number,
    plain,
    product,
    ratio,
    recompute,
    rounded,
    total,
)

NUMBERS = st.decimals(0, 10**6, places=3).map(lambda d: number(d, "a [strange] label\n"))


def _grown(terms: st.SearchStrategy[Figure]) -> st.SearchStrategy[Figure]:
    some = st.lists(terms, min_size=1, max_size=3)
    return (st.builds(lambda ts: product(*ts), some) | st.builds(total, some)
            | st.builds(lambda ts: call("max", *ts), some) | st.builds(lambda t: call("floor", t), terms)
            | st.builds(ratio, terms, st.integers(1, 9).map(lambda n: number(n, "n"))))


@given(st.recursive(NUMBERS, _grown, max_leaves=12))
def test_text_gives_the_value(term: Figure) -> None:
    assert recompute(term.text) == term.value


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1)", "1 2", "max", "max(1", "x", "1 ** 2", "eval(1)", "[op 1"])
def test_no_arithmetic(text: str) -> None:
    with pytest.raises(ValueError):
        recompute(text)


@pytest.mark.parametrize(("value", "text"), [
    (Fraction(1, 3), "1/3"), (Fraction(1, 8), "0.125"), (Fraction(5), "5"), (Fraction(1, 200), "0.005"),
    (Decimal("1E+3"), "1000"), (Decimal("14.40"), "14.40"), (Fraction(10**40 + 1, 10), f"{10**39}.1"),
])
def test_plain(value: Decimal | Fraction, text: str) -> None:
    assert plain(value) == text


@pytest.mark.parametrize(("exact", "step", "precision", "how", "amount"), [
    ("2.5", "1", 0, "half-up", "3"), ("2.5", "1", 0, "half-even", "2"), ("2.1", "1", 0, "up", "3"),
    ("2.9", "1", 0, "down", "2"), ("1.015", "0.01", 2, "half-up", "1.02"), ("1.07", "0.05", 2, "half-up", "1.05"),
    ("1.07", "0.05", 2, "up", "1.10"), ("0", "0.01", 2, "half-up", "0.00"),
    (f"{10**45}.005", "0.01", 2, "half-up", f"{10**45}.01"),
])
def test_rounded(exact: str, step: str, precision: int, how: Rounding, amount: str) -> None:
    assert str(rounded(Fraction(exact), Decimal(step), precision, how)) == amount
