"""Flux Standard Duration: ``1.5h``, ``90s``, ``30``, ``inf``.

Source: Flux RFC 23: a number that is not negative, and one of the suffixes ms, s, m, h, d; without one, seconds.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from sssjob.errors import LexicalError
from sssjob.lrm.clocks import UNITS

__all__ = ["read_fsd"]

_FORM: Final = "a duration, as 30, 1.5h, 90s or inf"
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,4})?)"
                              r"(ms|s|m|h|d)?")
_INFINITE: Final = frozenset(("inf", "infinity"))
#: Suffix -> seconds.
_FACTORS: Final = {"ms": Decimal("0.001")} | {letter: Decimal(UNITS[letter]) for letter in "smhd"}
_LONGEST: Final = 330       # characters: the digits of the greatest float, and some


def read_fsd(text: str, unit: int = 1) -> Decimal:
    """Seconds; infinity for ``inf`` and ``infinity`` in any case. unit: seconds that a bare number counts. Raises
    LexicalError."""
    if text.lower() in _INFINITE:
        return Decimal("Infinity")
    duration = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    if duration is None:
        raise LexicalError(text, _FORM)
    seconds = Decimal(duration[1]) * (_FACTORS[duration[2]] if duration[2] else unit)
    if not math.isfinite(float(seconds)):       # more than flux can hold
        raise LexicalError(text, _FORM)
    return seconds
