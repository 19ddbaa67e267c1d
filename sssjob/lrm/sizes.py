"""Sizes in bytes: ``16gb``, ``52424K``, ``5.2 Gbytes``, ``12kw``. All powers are those of 1024.

``unit`` tells what a suffix means, ``amount`` and ``in_bytes`` read what a manager prints, ``Size`` what its options
take, and ``writer`` writes. What one manager spells otherwise (lower-case letters of Grid Engine are powers of 1000)
stands where its own values are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

__all__ = ["LETTERS", "POWERS", "Size", "amount", "in_bytes", "suffixes", "unit", "writer"]

#: Letters of units, by power of 1024 from the first on.
LETTERS: Final = "KMGTPE"
#: Letter -> bytes; the empty one is a byte.
POWERS: Final = {letter: 1 << 10 * power for power, letter in enumerate(("", *LETTERS))}
_WORD: Final = 8            # bytes of a word of PBS (pbs_resources(7))
_AMOUNT: Final = re.compile(r"(\d{1,24}(?:\.\d{0,12})?)\s*([A-Za-z]*)", re.ASCII)
_LONGEST: Final = 48        # characters of a size


@lru_cache(maxsize=256)
def unit(word: str) -> tuple[str, int] | None:
    """(letter of POWERS, how many of it) of ``gb``, ``MiB``, ``K``, ``Gbytes`` in any case; ``kw`` are words of eight
    bytes. None for another word."""
    letters = word.upper().removesuffix("YTES")
    letters = "" if letters in ("B", "IB") else letters.removesuffix("IB").removesuffix("B")
    if letters in POWERS:
        return letters, 1
    return (letters[:-1], _WORD) if letters.endswith("W") and letters[:-1] in POWERS else None


def amount(text: str) -> Decimal | None:
    """Bytes of a size as managers print it, with the fraction that it has; None for anything else."""
    size = _AMOUNT.fullmatch(text) if len(text) <= _LONGEST else None
    step = None if size is None else unit(size[2])
    return None if size is None or step is None else Decimal(size[1]) * (POWERS[step[0]] * step[1])


def in_bytes(text: str) -> int | None:
    """The same in whole bytes, a fraction dropped."""
    exact = amount(text)
    return None if exact is None else int(exact)


def suffixes(letters: str, ends: tuple[str, ...] = ("", "b")) -> dict[str, int]:
    """Suffix -> bytes: each letter with each end, in lower case; an end ``w`` is for words of eight bytes."""
    return {letter + end: POWERS[letter.upper()] * (_WORD if end == "w" else 1) for letter in letters for end in ends}


@dataclass(frozen=True, slots=True)
class Size:
    """What an option takes. suffixes: what may follow the number, in lower case -> bytes; fractions: whether the number
    may have one, and white space come before the suffix."""

    suffixes: Mapping[str, int]
    fractions: bool = False

    def read(self, text: str) -> int:
        """Bytes of ``16gb``, rounded up. Raises ValueError."""
        size = (_FRACTION if self.fractions else _WHOLE).fullmatch(text)
        if size is None or size[2].lower() not in self.suffixes:
            raise ValueError("is no size")
        factor = self.suffixes[size[2].lower()]
        if not self.fractions:
            return int(size[1]) * factor
        return int((Decimal(size[1]) * factor).to_integral_value(ROUND_CEILING))


_WHOLE: Final = re.compile(r"(\d{1,18})([A-Za-z]*)", re.ASCII)
_FRACTION: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]{0,2})", re.ASCII)


def writer(names: str, smallest: int = 1, first: int = 1) -> Callable[[int], str]:
    """Writer of sizes in the largest unit that is exact.

    names: of the units, a comma between them, each 1024 times the one before; smallest: bytes that are rounded up to;
    first: bytes of the first unit.
    """
    units = names.split(",")

    def write(value: int) -> str:
        """A size of so many bytes."""
        amount = -(-value // smallest) * smallest // first
        power = 0
        while power + 1 < len(units) and amount and amount % 1024 == 0:
            amount //= 1024
            power += 1
        return f"{amount}{units[power]}"

    return write
