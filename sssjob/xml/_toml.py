"""TOML in: the one place where it is read, with everything that a text can do to its parser as one exception."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from sssjob.limits import LIMITS, Limits
from sssjob.xml._faults import parse_fault


class TOMLError(ValueError):
    """A text that is no TOML, or more of it than is read; the message says which, without the name of the file."""


_PART: Final = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""


@lru_cache(maxsize=4)
def _deeper(depth: int) -> re.Pattern[str]:
    """A dotted key of more parts; the parser takes time by their square."""
    return re.compile(rf"(?:{_PART}\.[ \t]*+){{{depth}}}")


def read_toml(data: bytes | str, parse_float: Callable[[str], Any] = float, limits: Limits = LIMITS) -> dict[str, Any]:
    """The table of a TOML text. parse_float: makes a value of the text of a number with a fraction.

    Raises TOMLError: not UTF-8, not TOML, longer than ``toml_bytes``, nested deeper than ``depth``, an integer of more
    digits than Python reads.
    """
    if len(data) > limits.toml_bytes:
        raise TOMLError(f"longer than toml_bytes = {limits.toml_bytes} bytes")
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        if _deeper(limits.depth).search(text) is not None:
            raise TOMLError(f"nested deeper than depth = {limits.depth}")
        return tomllib.loads(text, parse_float=parse_float)
    except TOMLError:
        raise
    except tomllib.TOMLDecodeError as error:
        raise TOMLError(f"not TOML: {error}") from None
    except (ValueError, RecursionError) as error:
        raise TOMLError(parse_fault(error)) from None
