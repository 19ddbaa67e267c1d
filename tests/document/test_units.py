"""Units of bytes."""

import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.units import UNITS, UnknownUnit, byte_factor, from_bytes, to_bytes


def test_table() -> None:
    assert [unit.abbr for unit in UNITS] == ["B", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "NB", "DB"]
    assert [unit.power for unit in UNITS] == list(range(0, 101, 10))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.abbr)
def test_spellings(unit: tuple[str, str, int, str]) -> None:
    abbr, _, power, _ = unit
    spellings = [abbr, abbr.lower(), abbr.title(), f" {abbr} "]
    spellings += [f"{abbr[0]}iB", f"{abbr[0]}IB".lower()] if 0 < power <= 80 else []
    spellings += [abbr[0], abbr[0].lower()] if abbr[0] in "KMGT" else []
    assert {byte_factor(spelling) for spelling in spellings} == {2**power}


@pytest.mark.parametrize("unit", ["", "USD", "Gbit", "BB", "NiB", "P", "\u212aB", "x" * 1000])
def test_unknown(unit: str) -> None:
    with pytest.raises(UnknownUnit) as caught:
        byte_factor(unit)
    assert isinstance(caught.value, LookupError)
    assert isinstance(caught.value, LexicalError)


def test_close_units_are_suggested() -> None:
    with pytest.raises(UnknownUnit) as caught:
        byte_factor("GBs")
    assert caught.value.close[0] == "GB"
    assert pickle.loads(pickle.dumps(caught.value)).close == caught.value.close


def test_amounts() -> None:
    assert to_bytes(Decimal("1.5"), "GB") == 1536 * 2**20
    assert to_bytes(Decimal(2), None) == to_bytes(Decimal(2), "") == 2**21
    assert to_bytes(Decimal(2), None, "KB") == 2048
    assert from_bytes(1536 * 2**20) == (Decimal(1536), "MB")
    assert from_bytes(2**60) == (Decimal(1024), "PB")
    assert from_bytes(2**60, highest="eb") == (Decimal(1), "EB")
    assert from_bytes(0) == (Decimal(0), "B")
    assert from_bytes(Decimal("0.5")) == (Decimal("0.5"), "B")
    assert from_bytes(-2048) == (Decimal(-2), "KB")


def test_amounts_without_end() -> None:
    for amount in (Decimal("1e99999"), Decimal("inf"), Decimal("nan")):
        with pytest.raises(LimitError):
            from_bytes(amount)
    with pytest.raises(LimitError):
        to_bytes(Decimal("1." + "3" * 400), "DB")


@given(st.integers(0, 10**30), st.sampled_from(UNITS))
def test_round_trip(number: int, unit: tuple[str, str, int, str]) -> None:
    total = to_bytes(Decimal(number), unit[0])
    assert total == number << unit[2]
    amount, written = from_bytes(total, highest="DB")
    assert to_bytes(amount, written) == total
    assert amount == int(amount)
