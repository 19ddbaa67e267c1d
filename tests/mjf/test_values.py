"""Kinds of values, and the oddities that real providers write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.mjf import KEYS, MJFValueError, read_value, revised, write_value
from sssjob.mjf.keys import Kind


@pytest.mark.parametrize(("kind", "raw", "value"), [
    ("int", b"8\r\n", 8), ("int", "8\n\n", 8), ("int", "007", 7), ("int", "8.0", 8), ("int", "8\0", 8),
    ("float", "1e3", 1000.0), ("float", "64.", 64.0), ("time", "1000.5", 1000.5), ("signed", "-3", -3),
    ("id", "18d0a6a0-a1b2", "18d0a6a0-a1b2"), ("path", "/sbin/halt now", "/sbin/halt now"),
])
def test_read(kind: Kind, raw: str | bytes, value: object) -> None:
    assert read_value(kind, raw) == value


@pytest.mark.parametrize(("kind", "raw"), [
    ("int", ""), ("int", "6_4"), ("int", "٦٤"), ("int", "+8"), ("int", "-1"), ("int", "0x10"), ("int", "8.5"),
    ("int", "unlimited"), ("int", "9" * 65), ("float", "nan"), ("float", "inf"), ("float", "1e999"), ("float", "1_0"),
    ("float", "."), ("time", "tomorrow"), ("time", "18d0a6a0-a1b2-c3d4"), ("bool", "true"), ("bool", "1"),
    ("id", "a b"), ("id", "ä"), ("id", b"\xff"), ("path", "halt"), ("path", "/a\nb"),
])
def test_refused(kind: Kind, raw: str | bytes) -> None:
    with pytest.raises(MJFValueError):
        read_value(kind, raw)


@pytest.mark.parametrize(("name", "value"), [
    ("wall_limit_secs", 0), ("cpufactor_lrms", 0), ("allocated_cpu", True), ("allocated_cpu", -1),
    ("can_postpone_last_job", 1), ("hs06", float("nan")), ("job_id", "a b"), ("allocated_cpu", 1.5),
])
def test_not_written(name: str, value: object) -> None:
    with pytest.raises(MJFValueError):
        write_value(KEYS[name], value)  # type: ignore[arg-type]


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_floats_come_back(value: float) -> None:
    assert read_value("float", write_value(KEYS["hs06"], value)) == value


@given(st.integers(min_value=1, max_value=10**18))
def test_integers_come_back(value: int) -> None:
    assert read_value("int", write_value(KEYS["max_rss_bytes"], value)) == value


@given(st.binary(max_size=40), st.sampled_from(["int", "float", "time", "id", "path", "bool", "signed"]))
def test_any_bytes_are_a_value_or_refused(raw: bytes, kind: Kind) -> None:
    try:
        read_value(kind, raw)
    except MJFValueError as error:
        assert str(error).isprintable()


def test_without_a_factor_normalised_limits_say_nothing() -> None:
    assert revised({"wall_limit_secs_lrms": 60}) == {}
    assert revised({"wall_limit_secs_lrms": 60, "cpufactor_lrms": 0.0}) == {}
    assert revised({"wall_limit_secs_lrms": 10**60, "cpufactor_lrms": 1e-300}) == {}
