"""Lexical types: the forms taken, the forms refused, and round trips."""

import pickle
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document import lexical
from sssjob.document.lexical import LexicalError, LimitError
from sssjob.limits import LIMITS

NOT_NUMBERS = [
    "", " ", "1_6", "\uff11\uff16", "\u0663", "0b11", "0x10", "--1", "+", "1 6", "16\u00a0", "nan", "NaN", "inf",
    "INF", "²",
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_no_reader_takes_what_is_not_a_number(text: str) -> None:
    for name in ("integer", "float", "datetime", "duration"):
        for kind in ("read", "liberal"):
            with pytest.raises(LexicalError):
                getattr(lexical, f"{kind}_{name}")(text)


def test_too_many_digits_name_the_limit() -> None:
    for name in ("integer", "float", "datetime", "duration"):
        for text in ("9" * 5000, " " + "9" * 65, "+" + "9" * 65):
            with pytest.raises(LimitError) as caught:
                getattr(lexical, f"read_{name}")(text)
            assert caught.value.limit == "digits"
    assert lexical.read_integer("9" * 65, replace(LIMITS, digits=65)) == 10**65 - 1


@pytest.mark.parametrize(
    ("text", "value"), [("16", 16), (" +16\n", 16), ("-5", -5), ("007", 7), ("9" * 64, 10**64 - 1)]
)
def test_integers(text: str, value: int) -> None:
    assert lexical.read_integer(text) == value
    assert lexical.liberal_integer(text) == (value, None)


def test_a_strict_refusal_says_what_would_do() -> None:
    with pytest.raises(LexicalError) as caught:
        lexical.read_integer("16.0")
    error = caught.value
    assert (error.text, error.repaired) == ("16.0", "16")
    assert str(error) == "'16.0': expected Integer, as 16 (a decimal point in an integer dropped)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    limit = LimitError("x", "less", "nodes")
    assert str(pickle.loads(pickle.dumps(limit))) == str(limit) == "'x': expected less (limit nodes)"
    assert str(LexicalError("\x1b[0m" * 100, "x")).isprintable()


@pytest.mark.parametrize("text", ["16.5", "1e3", "16.0.0", ".0"])
def test_integers_refused(text: str) -> None:
    with pytest.raises(LexicalError):
        lexical.liberal_integer(text)


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("2048", "2048", "2048"), ("1e3", "1000", "1000"), (" .5 ", "0.5", "0.5"), ("12.", "12", "12"),
        ("-1.50E-1", "-0.15", "-0.15"), ("-0", "0", "0"), ("1.0000", "1", "1"), ("1e-45", "1e-45", f"0.{'0' * 44}1"),
    ],
)
def test_floats(text: str, value: str, written: str) -> None:
    assert lexical.read_float(text) == Decimal(value)
    assert lexical.write_float(lexical.read_float(text)) == written


@pytest.mark.parametrize("text", ["1e999999999", "1e-65", "1e" + "9" * 5000, "1.5e64", "0." + "1" * 70])
def test_floats_too_long_to_write(text: str) -> None:
    with pytest.raises(LimitError):
        lexical.read_float(text)


def test_amounts_that_cannot_be_written() -> None:
    for value in (Decimal("NaN"), Decimal("inf"), float("inf"), Decimal("1e64"), Decimal("1e-999"), 10**64):
        with pytest.raises(LexicalError):
            lexical.write_float(value)
    assert lexical.write_float(0.1) == "0.1"


@pytest.mark.parametrize("text", ["True", "TRUE", "1", "yes", "Yes", "False", "0", "no"])
def test_booleans(text: str) -> None:
    value = text.lower() in {"true", "1", "yes"}
    with pytest.raises(LexicalError) as caught:
        lexical.read_boolean(text)
    assert caught.value.repaired == lexical.write_boolean(value)
    assert lexical.liberal_boolean(text) == (value, f"{text} taken as {lexical.write_boolean(value)}")


def test_boolean_literals() -> None:
    assert (lexical.read_boolean("true"), lexical.read_boolean(" false ")) == (True, False)
    assert lexical.liberal_boolean("true") == (True, None)
    for text in ("", "on", "2", "ye\u017f"):
        with pytest.raises(LexicalError):
            lexical.liberal_boolean(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1051557713", 1051557713), ("4294967296", 4294967296), ("2011-04-26", 1303776000),
        ("2011-04-26 12:00:00", 1303819200), ("2011-04-26T12:00Z", 1303819200), ("20110426T120000Z", 1303819200),
        ("2011-04-26T14:00:00.25+02:00", 1303819200), ("2011-04-26T07:30:00-0430", 1303819200),
        ("infinity", 2147483647), ("-Infinity", 0), ("now", 7), ("16.0", 16), ("1970-01-01", 0),
    ],
)
def test_dates(text: str, value: int) -> None:
    assert lexical.liberal_datetime(text, now=7)[0] == value


def test_notes_on_dates() -> None:
    assert lexical.liberal_datetime("5") == (5, None)
    assert lexical.liberal_datetime("1970-01-02") == (86400, "a calendar date without zone, taken as UTC")
    assert lexical.liberal_datetime("1970-01-02T00:00:00Z")[1] == "a calendar date"
    with pytest.raises(LexicalError, match="now has no meaning"):
        lexical.liberal_datetime("now")
    with pytest.raises(LexicalError) as caught:
        lexical.read_datetime("1970-01-02")
    assert caught.value.repaired == "86400"


@pytest.mark.parametrize(
    "text", ["-1", "-0.5", "1969-12-31", "2011-02-30", "2011-04-26T25:00:00", "2011-04-26T00:00+15:00", "2011-4-26",
             "2011-0426", "٢٠١١-04-26", "2011-04-26T00:00:00+01:60", "tomorrow"]
)
def test_dates_refused(text: str) -> None:
    for read in (lexical.read_datetime, lexical.liberal_datetime):
        with pytest.raises(LexicalError):
            read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3600", 3600), ("1:30", 90), ("90:00", 5400), ("1:00:00", 3600), ("100:00:00", 360000), ("2:03:04:05", 183845),
        ("P1DT2H3M4S", 93784), ("PT5M", 300), ("pt1.0s", 1), ("P2W", 1209600), ("P1D", 86400), ("60.0", 60),
    ],
)
def test_durations(text: str, value: int) -> None:
    assert lexical.liberal_duration(text)[0] == value


@pytest.mark.parametrize(
    "text", ["-1", "-0.5", "1:60", "1:60:00", "1:24:00:00", "1:2:3:4:5", "P1Y", "P1M", "P", "PT", "P1DT", "PT1.5S",
             "1h", ":30", "9" * 300 + ":00", "P" + "9" * 65 + "D"]
)
def test_durations_refused(text: str) -> None:
    for read in (lexical.read_duration, lexical.liberal_duration):
        with pytest.raises(LexicalError):
            read(text)


def test_negative_times_are_not_written() -> None:
    for write in (lexical.write_datetime, lexical.write_duration):
        with pytest.raises(LexicalError):
            write(-1)
    with pytest.raises(LimitError):
        lexical.write_integer(-(10**64))


@given(st.integers(-(10**64) + 1, 10**64 - 1))
def test_integers_round_trip(value: int) -> None:
    assert lexical.read_integer(lexical.write_integer(value)) == value
    if value >= 0:
        assert lexical.read_duration(lexical.write_duration(value)) == value
        assert lexical.read_datetime(lexical.write_datetime(value)) == value


@given(st.decimals("-1e30", "1e30", places=8))
def test_floats_round_trip(value: Decimal) -> None:
    text = lexical.write_float(value)
    assert lexical.read_float(text) == value
    assert "e" not in text.lower()


@given(st.text(max_size=9) | st.text("0123456789PTDHMS:.-+ ", max_size=14))
def test_any_text_is_read_or_refused(text: str) -> None:
    for name in ("integer", "float", "boolean", "datetime", "duration"):
        try:
            value = getattr(lexical, f"read_{name}")(text)
        except LexicalError:
            continue
        assert getattr(lexical, f"liberal_{name}")(text) == (value, None)
