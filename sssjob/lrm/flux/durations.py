"""Flux Standard Duration: ``1.5h``, ``90s``, ``30``, ``inf``.

Source: Flux RFC 23: a number that is not negative, and one of the suffixes ms, s, m, h, d; without one, seconds.
Writing is as flux prints it, four digits, so 61 seconds are ``1.017m``.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from sssjob.errors import LexicalError

__all__ = ["FACTORS", "read_fsd", "write_fsd"]

_FORM: Final = "a duration, as 30, 1.5h, 90s or inf"
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,4})?)"
                              r"(ms|s|m|h|d)?")
_INFINITE: Final = frozenset(("inf", "infinity"))
#: Suffix -> seconds.
FACTORS: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
#: Below so many seconds -> seconds of the unit, its suffix.
_STEPS: Final = ((60.0, 1.0, "s"), (3600.0, 60.0, "m"), (86400.0, 3600.0, "h"), (math.inf, 86400.0, "d"))
_LONGEST: Final = 330       # characters: the digits of the greatest float, and some


def read_fsd(text: str) -> float:
    """Seconds; infinity for ``inf`` and ``infinity`` in any case. Raises LexicalError."""
    if text.lower() in _INFINITE:
        return math.inf
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    seconds = math.inf if found is None else float(found[1]) * float(FACTORS[found[2] or "s"])
    if not math.isfinite(seconds):
        raise LexicalError(text, _FORM)
    return seconds


def write_fsd(seconds: float) -> str:
    """Seconds as flux prints them. Raises LexicalError for what is negative or no number."""
    if not seconds >= 0:
        raise LexicalError(str(seconds), "seconds, not negative")
    if math.isinf(seconds):
        return "inf"
    if seconds < 1e-3:
        return "0s"
    if seconds < 10.0 and seconds != int(seconds):
        return f"{seconds:.3f}s"
    _, unit, suffix = next(step for step in _STEPS if seconds < step[0])
    return f"{seconds / unit:.4g}{suffix}"
