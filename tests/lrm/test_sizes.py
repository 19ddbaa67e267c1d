"""Sizes and clocks as managers spell them; what is no size or no time is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.lrm.clocks import clock, microseconds, seconds, total, utc
from sssjob.lrm.sizes import POWERS, Size, in_bytes, suffixes, unit, writer

G = 1 << 30


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("52424K", 52424 << 10), ("55136kb", 55136 << 10), ("12kw", 12 * 8 << 10), ("3b", 3), ("2w", 16),
    ("1.5G", 3 * G // 2), ("5 Gbytes", 5 * G), ("2GiB", 2 * G), ("1E", 1 << 60), ("47.777KB", 48923),
    ("", None), ("-", None), ("4X", None), ("4kk", None), ("-1K", None), ("1e9", None), ("\uff11K", None),
    ("9" * 49, None), ("bytes", None)])
def test_in_bytes(text: str, value: int | None) -> None:
    assert in_bytes(text) == value


@pytest.mark.parametrize("word", ["x", "kkb", "bb", "ww", "wk", "bytesbytes"])
def test_no_unit(word: str) -> None:
    assert unit(word) is None


MEGABYTES = Size({"": POWERS["M"]} | suffixes("kmg", ("", "b", "w")))


@pytest.mark.parametrize(("size", "text", "value"), [
    (MEGABYTES, "4", 4 << 20), (MEGABYTES, "4Gb", 4 * G), (MEGABYTES, "1kw", 8 << 10),
    (Size({"": 1} | suffixes("k"), fractions=True), "1.5 KB", 1536), (Size({"": 1}, fractions=True), "0.1", 1)])
def test_options(size: Size, text: str, value: int) -> None:
    assert size.read(text) == value


@pytest.mark.parametrize("text", ["", "1.5g", "4 gb", "4t", "g", "9" * 19])
def test_no_option(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        MEGABYTES.read(text)


@given(st.integers(0, 1 << 60))
def test_what_is_written_is_read(value: int) -> None:
    written = writer("b,kb,mb,gb,tb")(value)
    assert in_bytes(written) == value
    least = writer("MB,GB", POWERS["M"], POWERS["M"])(value)
    assert 0 <= (in_bytes(least) or 0) - value < POWERS["M"]


@pytest.mark.parametrize(("text", "micros"), [
    ("7", 7_000_000), ("01:02", 62_000_000), ("1-00:00:01.5", 86_401_500_000), ("100:00:00", 360_000_000_000),
    ("0:0:0.1234567", 123_456), ("", None), ("1:2:3:4", None), ("-5", None), ("1-", None), ("1:", None)])
def test_clocks(text: str, micros: int | None) -> None:
    assert microseconds(text) == micros
    assert seconds(text) == (None if micros is None else micros / 1_000_000)


@given(st.integers(0, 10**9))
def test_a_clock_is_read_again(value: int) -> None:
    assert microseconds(clock(value)) == value * 1_000_000
    assert total([int(field) for field in clock(value, 1).split(":")]) == value


def test_times_of_day() -> None:
    assert utc("Sat Nov 21 08:24:31 2026", "%a %b %d %H:%M:%S %Y") == 1795249471
    assert utc("-", "%Y") is None
