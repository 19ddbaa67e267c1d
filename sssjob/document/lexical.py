"""Lexical types of the SSS job object: text to value, and value to text.

Every type has a strict reader (the published form only), a liberal reader that also says what it repaired, and a
writer. Amounts are ``Decimal``, times are whole seconds. Nothing here knows elements, findings or documents; problems
are ``LexicalError``. Source: SSS job object 3.1.0, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from sssjob.errors import LexicalError, LimitError
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.clocks import total

__all__ = [
    "INFINITY",
    "XML_SPACE",
    "LexicalError",
    "LimitError",
    "liberal_boolean",
    "liberal_datetime",
    "liberal_duration",
    "liberal_float",
    "liberal_integer",
    "read_boolean",
    "read_datetime",
    "read_duration",
    "read_float",
    "read_integer",
    "utc",
    "write_boolean",
    "write_datetime",
    "write_duration",
    "write_float",
    "write_integer",
]

XML_SPACE = " \t\r\n"
INFINITY = 2147483647  # what "infinity" means as a DateTime, in Gold and so here

_V = TypeVar("_V")

# Only ASCII digits anywhere: int(), float(), Decimal() and \d all take other scripts' digits and underscores.
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")
_DATETIME = re.compile(
    r"([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(:?)([0-9]{2})(?:\6([0-9]{2})([.,][0-9]+)?)?)?"
    r" ?(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2})?)?"
)
_CLOCK = re.compile(r"[0-9]+(?::[0-9]{1,2}){1,3}")
_ISO_DURATION = re.compile(
    r"P(?:([0-9]+)W|(?=[0-9T])(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]0+)?S)?)?)",
    re.IGNORECASE | re.ASCII,
)
_EPOCH = datetime(1970, 1, 1)
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _too_long(text: str, limits: Limits) -> LimitError:
    return LimitError(text, f"a number of at most {limits.digits} digits", "digits")


def _refused(
    text: str, expected: str, liberal: Callable[[str], tuple[_V, str | None]], write: Callable[[_V], str]
) -> LexicalError:
    """The error of a strict reader; asks the liberal one what it would have made of the text."""
    try:
        value, note = liberal(text)
        return LexicalError(text, expected, note, write(value))
    except LexicalError as error:
        return LexicalError(text, expected, error.hint)


def _integer(text: str, limits: Limits) -> int | None:
    """The integer of a strict form, None when it is none; LimitError when it has too many digits."""
    text = text.strip(XML_SPACE)
    if _INTEGER.fullmatch(text) is None:
        return None
    if len(text.lstrip("+-")) > limits.digits:
        raise _too_long(text, limits)
    return int(text)


def _natural(text: str, limits: Limits) -> int | None:
    """As ``_integer``, None also below zero."""
    value = _integer(text, limits)
    return None if value is None or value < 0 else value


def _whole(text: str, limits: Limits) -> tuple[int, str] | None:
    """``16.0`` as an integer with its note, None for any other form."""
    match = _WHOLE.fullmatch(text.strip(XML_SPACE))
    if match is None:
        return None
    value = _integer(match[1], limits)
    return None if value is None else (value, "a decimal point in an integer dropped")


# Integer --------------------------------------------------------------------------------------------------------------

def read_integer(text: str, limits: Limits = LIMITS) -> int:
    """The value of an xsd:integer: optional sign, ASCII digits, outer XML white space.

    Raises LexicalError for another form, LimitError (digits) for a longer number.
    """
    if text.isdigit() and text.isascii() and len(text) <= limits.digits:
        return int(text)
    value = _integer(text, limits)
    if value is None:
        raise _refused(text, "Integer, as 16", lambda t: liberal_integer(t, limits), write_integer)
    return value


def liberal_integer(text: str, limits: Limits = LIMITS) -> tuple[int, str | None]:
    """(value, note): as ``read_integer``; also ``16.0``. ``16.5`` is refused."""
    value = _integer(text, limits)
    if value is not None:
        return value, None
    whole = _whole(text, limits)
    if whole is None:
        raise LexicalError(text, "Integer, as 16")
    return whole


def write_integer(value: int) -> str:
    """Plain digits with a minus sign where needed. Raises LimitError (digits)."""
    if abs(value) >= 10**LIMITS.digits:
        raise _too_long("(an integer)", LIMITS)
    return str(int(value))


# Float ----------------------------------------------------------------------------------------------------------------

def read_float(text: str, limits: Limits = LIMITS) -> Decimal:
    """The exact value of an xsd:float as a Decimal; an exponent is read, INF and NaN are refused.

    Raises LexicalError for another form, LimitError (digits) when the number written without exponent could need more
    digits than the limit (``1e999999999``).
    """
    if text.isdigit() and text.isascii() and len(text) <= limits.digits:
        return Decimal(text)
    word = text.strip(XML_SPACE)
    match = _FLOAT.fullmatch(word)
    if match is None:
        raise LexicalError(text, "Float, as 1.5", "not a finite number" if word.strip("+-") in {"INF", "NaN"} else None)
    if len(word) > limits.digits or match[1]:
        _check_digits(word, match[1], limits)
    return Decimal(word)


def _check_digits(text: str, exponent: str | None, limits: Limits) -> None:
    mantissa = text[: len(text) - len(exponent) - 1] if exponent else text
    shift = (exponent or "0").lstrip("+-").lstrip("0") or "0"
    digits = len(mantissa) - sum(map(mantissa.count, "+-."))
    if len(exponent or "") > limits.digits or len(shift) > 9 or digits + int(shift) > limits.digits:
        raise _too_long(text, limits)


def liberal_float(text: str, limits: Limits = LIMITS) -> tuple[Decimal, str | None]:
    """(value, note): as ``read_float``; no other form is known, so note is always None."""
    return read_float(text, limits), None


def write_float(value: Decimal | int | float) -> str:
    """The shortest decimal with the same value, never with an exponent: ``2048``, ``0.5``, ``-0`` as ``0``.

    A float is written as its shortest round-tripping form. Raises LexicalError when the value is not finite, LimitError
    (digits) when it is too long to write out.
    """
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise LexicalError(str(number), "a finite amount")
    if not number:
        return "0"
    exponent = number.as_tuple().exponent
    if number.adjusted() >= LIMITS.digits or (isinstance(exponent, int) and -exponent > 2 * LIMITS.digits):
        raise _too_long("(an amount)", LIMITS)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


# Boolean --------------------------------------------------------------------------------------------------------------

def read_boolean(text: str) -> bool:
    """True or False from the literals ``true`` and ``false``; raises LexicalError for anything else."""
    word = text.strip(XML_SPACE)
    if word == "true":
        return True
    if word == "false":
        return False
    raise _refused(text, "Boolean, true or false", liberal_boolean, write_boolean)


def liberal_boolean(text: str) -> tuple[bool, str | None]:
    """(value, note): true, false, 1, 0, yes, no in any case."""
    word = text.strip(XML_SPACE)
    value = _BOOLEANS.get(word.lower()) if word.isascii() else None
    if value is None:
        raise LexicalError(text, "Boolean, true or false")
    return value, None if word in {"true", "false"} else f"{word} taken as {write_boolean(value)}"


def write_boolean(value: bool) -> str:
    """``true`` or ``false``."""
    return "true" if value else "false"


# DateTime -------------------------------------------------------------------------------------------------------------

_DATETIME_FORM = "DateTime, seconds since 1970 UTC, as 1051557713"


def read_datetime(text: str, limits: Limits = LIMITS) -> int:
    """Epoch seconds, UTC: any non-negative integer, with no 32-bit end (SSS job object 3.1.0, section 14, oddity 20).

    Raises LexicalError for another form or a negative number, LimitError (digits).
    """
    if text.isdigit() and text.isascii() and len(text) <= limits.digits:
        return int(text)
    value = _natural(text, limits)
    if value is None:
        raise _refused(text, _DATETIME_FORM, lambda t: liberal_datetime(t, limits=limits), write_datetime)
    return value


def liberal_datetime(text: str, *, now: int | None = None, limits: Limits = LIMITS) -> tuple[int, str | None]:
    """(epoch seconds UTC, note): as ``read_datetime``; also

    ISO 8601 (``2011-04-26T12:00:00Z``, ``+02:00``, basic form), ``YYYY-MM-DD[ hh:mm[:ss]]``, ``infinity`` (2147483647),
    ``-infinity`` (0), and ``now``, which is the argument ``now`` in epoch seconds and refused where that is None. A
    date without a zone is taken as UTC, and the note says so; fractions of a second are dropped.
    """
    value = _natural(text, limits)
    if value is not None:
        return value, None
    word = text.strip(XML_SPACE)
    named = {"infinity": INFINITY, "-infinity": 0, "now": now}.get(word.lower() if word.isascii() else "")
    if named is not None:
        return named, f"{word} taken as {named}"
    if word.lower() == "now":
        raise LexicalError(text, _DATETIME_FORM, "the word now has no meaning in a document at rest")
    whole = _whole(text, limits)
    if whole is not None and whole[0] >= 0:
        return whole
    return _calendar(text, word)


def _calendar(text: str, word: str) -> tuple[int, str]:
    """Epoch seconds of an ISO 8601 date and time, with its note."""
    match = _DATETIME.fullmatch(word)
    if match is None:
        raise LexicalError(text, _DATETIME_FORM)
    year, _, month, day, hour, _, minute, second, fraction, utc, sign, zone_hour, zone_minute = match.groups()
    try:
        date = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as error:
        raise LexicalError(text, _DATETIME_FORM, str(error)) from None
    zone = 60 * int(zone_hour or 0) + int(zone_minute or 0)
    if zone > 14 * 60 or int(zone_minute or 0) > 59:
        raise LexicalError(text, _DATETIME_FORM, "the zone is more than 14 hours from UTC or has no such minute")
    value = (date - _EPOCH) // timedelta(seconds=1) - (-60 if sign == "-" else 60) * zone
    if value < 0:
        raise LexicalError(text, _DATETIME_FORM, "before 1970")
    note = "a calendar date" + ("" if utc or sign else " without zone, taken as UTC")
    return value, note + (", fraction of a second dropped" if fraction else "")


def write_datetime(value: int) -> str:
    """Epoch seconds, UTC, as plain digits. Raises LexicalError below zero, LimitError (digits)."""
    if value < 0:
        raise LexicalError(str(value), _DATETIME_FORM)
    return write_integer(value)


# Duration -------------------------------------------------------------------------------------------------------------

_DURATION_FORM = "Duration, seconds, as 3600"


def utc(seconds: float, form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    """A time as people read it: ``2030-01-01T00:00:00Z``, or in another form of strftime; the seconds where no calendar
    has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def read_duration(text: str, limits: Limits = LIMITS) -> int:
    """Seconds: any non-negative integer. Raises LexicalError for another form, LimitError (digits)."""
    if text.isdigit() and text.isascii() and len(text) <= limits.digits:
        return int(text)
    value = _natural(text, limits)
    if value is None:
        raise _refused(text, _DURATION_FORM, lambda t: liberal_duration(t, limits), write_duration)
    return value


def liberal_duration(text: str, limits: Limits = LIMITS) -> tuple[int, str | None]:
    """(seconds, note): as ``read_duration``; also ``[[DD:]HH:]MM:SS`` and ISO 8601 ``PnDTnHnMnS`` or ``PnW``.

    The first field of the colon form may have any size (``90:00`` is 90 minutes), the others end at 23, 59 and 59.
    Years and months of ISO 8601 have no fixed length, so they are refused, as are fractions of a second.
    """
    value = _natural(text, limits)
    if value is not None:
        return value, None
    whole = _whole(text, limits)
    if whole is not None and whole[0] >= 0:
        return whole
    word = text.strip(XML_SPACE)
    if len(word) > 4 * limits.digits:
        raise LexicalError(text, _DURATION_FORM)
    if _CLOCK.fullmatch(word):
        return _clock(text, word, limits), "hours, minutes and seconds turned into seconds"
    match = _ISO_DURATION.fullmatch(word)
    if match is None:
        raise LexicalError(text, _DURATION_FORM)
    value = total([int(n or 0) for n in match.groups()])
    return _bounded(text, value, limits), "an ISO 8601 duration turned into seconds"


def _clock(text: str, word: str, limits: Limits) -> int:
    fields = [int(field) for field in word.split(":")]
    for field, top in zip(fields[:0:-1], (59, 59, 23), strict=False):
        if field > top:
            raise LexicalError(text, _DURATION_FORM, f"{field} is above {top}")
    return _bounded(text, total(fields), limits)


def _bounded(text: str, value: int, limits: Limits) -> int:
    if value >= 10**limits.digits:
        raise _too_long(text, limits)
    return value


def write_duration(value: int) -> str:
    """Seconds as plain digits. Raises LexicalError below zero, LimitError (digits)."""
    if value < 0:
        raise LexicalError(str(value), _DURATION_FORM)
    return write_integer(value)
