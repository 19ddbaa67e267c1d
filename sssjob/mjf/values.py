"""From the text of a file to a typed value and back; neither text says a word on line ends or blanks.

Reading rule: white space (CR and NUL too) is stripped at both ends, then the whole text must be of the key's kind.
Python's own ``int`` and ``float`` are never asked alone: they take ``6_4``, ``٦٤`` and ``nan``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from sssjob.document.lexical import LexicalError, write_float
from sssjob.findings import escape
from sssjob.mjf.keys import KEYS, Key, Kind
from sssjob.mjf.limits import LIMITS, Limits

__all__ = ["MJFValueError", "Value", "read_value", "revised", "write_value"]

Value = int | float | str | bool

_SPACE: Final = " \t\r\n\v\f\0"
_INT: Final = re.compile(r"([0-9]+)(?:\.0)?", re.ASCII)
_SIGNED: Final = re.compile(r"(-?[0-9]+)(?:\.0)?", re.ASCII)
_FLOAT: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_ID: Final = re.compile(r"[!-~]+")
_PATH: Final = re.compile(r"/[ -~]*")
_FORMS: Final = {"int": "a non-negative integer", "signed": "an integer", "float": "a finite non-negative decimal",
                 "time": "seconds since 1970", "id": "printable ASCII without blanks", "path": "an absolute path",
                 "bool": "True or False"}


class MJFValueError(ValueError):
    """A text that is no value of its key's kind; ``raw`` is the text."""

    def __init__(self, raw: str, expected: str) -> None:
        self.raw = raw
        super().__init__(f"{escape(raw, 60)!r} is not {expected}" if raw else f"empty, not {expected}")


def read_value(kind: Kind, raw: str | bytes, limits: Limits = LIMITS) -> Value:
    """The value of a file's content. A time is an int where it has no fraction. Raises MJFValueError."""
    try:
        text = (raw.decode("utf-8") if isinstance(raw, bytes) else raw).strip(_SPACE)
    except UnicodeDecodeError as error:
        raise MJFValueError(error.object.decode("utf-8", "backslashreplace"), _FORMS[kind]) from None
    value = None if len(text) > limits.digits and kind not in ("id", "path") else _typed(kind, text)
    if value is None:
        raise MJFValueError(text, _FORMS[kind])
    return value


def _typed(kind: Kind, text: str) -> Value | None:
    match kind:
        case "int" | "signed":
            digits = (_INT if kind == "int" else _SIGNED).fullmatch(text)
            return int(digits[1]) if digits else None
        case "time":
            digits = _INT.fullmatch(text)
            return int(digits[1]) if digits else _finite(text)
        case "float":
            return _finite(text)
        case "bool":
            return {"True": True, "False": False}.get(text)
    return text if (_ID if kind == "id" else _PATH).fullmatch(text) else None


def _finite(text: str) -> float | None:
    value = float(text) if _FLOAT.fullmatch(text) else None
    return None if value == float("inf") else value


def write_value(key: Key, value: Value) -> str:
    """The text of a value, without the newline that ends the file. Raises MJFValueError.

    A whole number stands for a float too and is written without a point. 0 is no limit: readers take it for none.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        text = write_float(value) if isinstance(value, float) else str(value)
    except LexicalError:
        raise MJFValueError(repr(value), _FORMS[key.kind]) from None
    if (isinstance(value, bool) != (key.kind == "bool")
            or (key.limit and value == 0) or (key.name == "cpufactor_lrms" and value == 0)):
        raise MJFValueError(text, f"a value of {key.name}")
    read_value(key.kind, text)
    return text


def revised(draft: Mapping[str, Value]) -> dict[str, float]:
    """The keys of the note that the draft's keys give, in the note's units.

    1 GB is 10^9 bytes and 1 MB 10^6, as the draft counts. Real seconds are normalised ones divided by cpufactor_lrms:
    so says its table; the other half of its prose contradicts it. Without a factor above 0 they are not known.
    """
    factors: dict[str, float] = {}
    factor = draft.get("cpufactor_lrms", 0)
    for name, value in draft.items():
        key = KEYS.get(name)
        if key is None or not key.of or isinstance(value, str):
            continue
        if not key.normalised:
            factors[key.of] = value * key.factor
        elif isinstance(factor, int | float) and factor > 0 and math.isfinite(value / factor):
            factors[key.of] = value / factor
    return factors
