"""Why a text of JSON or TOML is not taken, in words of its user: those of Python and of pydantic speak of Python.

Errors of pydantic are taken as plain dictionaries, so that nothing that only reads JSON has to import it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from json import JSONDecodeError
from typing import Any, Final, NoReturn

__all__ = ["members_once", "model_problem", "no_constant", "parse_fault"]

#: What is told instead of the words of pydantic, by type of its errors.
_WORDS: Final = {
    "extra_forbidden": "no such key", "missing": "is not said", "too_short": "is empty",
    "dict_type": "has to be a table", "model_type": "has to be a table", "model_attributes_type": "has to be a table",
    "list_type": "has to be a list",
    "bool_type": "has to be true or false", "bool_parsing": "has to be true or false",
    "int_from_float": "has to be a whole number", "int_parsing": "has to be a whole number",
    "int_parsing_size": "is too large", "int_type": "has to be a whole number", "string_type": "has to be a text",
    "decimal_max_digits": "has more digits than are taken", "decimal_whole_digits": "is too large",
    "decimal_parsing": "has to be a number", "decimal_type": "has to be a number"}
_MOMENTS: Final = ("date", "datetime", "time")
#: Steps of a path that pydantic has for the key of a table, and for either form of what is a date or a time.
_NO_KEYS: Final = ("[key]", "date", "datetime")
_SHOULD: Final = "Input should be "
_STRING: Final = re.compile(r"String should have at (least|most) (\d+) characters?")


def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, as ``object_pairs_hook``. Raises ValueError where one stands twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands there twice")
    return members


def no_constant(text: str) -> NoReturn:
    """Raise ValueError, as ``parse_constant``: NaN and Infinity are no numbers of JSON."""
    raise ValueError(f"{text} is no number of JSON")


def parse_fault(error: ValueError | RecursionError) -> str:
    """Why a text was refused: ``not JSON: Expecting value: line 1 column 1 (char 0)``, ``nested too deep``.

    What is well formed, and only too much for this program, is not said to be no JSON; nor is what a hook of ours
    refuses, whose words stand as they are."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
    if isinstance(error, JSONDecodeError):
        return f"not JSON: {error}"
    if "integer string conversion" in str(error):
        return f"a whole number has more than {sys.get_int_max_str_digits()} digits"
    return str(error)


def model_problem(error: Mapping[str, Any]) -> str:
    """An error of pydantic as ``rate[2].per: has to be a whole number``. What a validator of ours says stands as it
    is."""
    steps = [step for step in error["loc"] if step not in _NO_KEYS]
    keys = (f"[{step}]" if isinstance(step, int) else f".{_key(str(step))}" for step in steps)
    path, message = "".join(keys).removeprefix("."), _fault(error)
    return f"{path}: {message.removeprefix(f'{path}: ')}" if path else message


def _fault(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, without its path."""
    kind, message = str(error["type"]), str(error["msg"]).removeprefix("Value error, ")
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "literal_error" and isinstance(error["input"], str):
        return f"{error['input']!r:.60} is none of {error['ctx']['expected']}"
    moment = next((word for word in _MOMENTS if kind.startswith(f"{word}_")), None)
    if moment is not None:
        return "has to be a time of day" if moment == "time" else "has to be a date, or a date and a time"
    if length := _STRING.fullmatch(message):
        return "is empty" if length[0].endswith("least 1 character") else f"has at {length[1]} {length[2]} characters"
    return f"has to be {message.removeprefix(_SHOULD)}" if message.startswith(_SHOULD) else message


def _key(name: str) -> str:
    """A key as TOML spells it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
