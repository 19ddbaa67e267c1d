"""Job ids of Flux: 64-bit numbers and their texts.

    >>> write_id(1552593348), write_id(1552593348, "f58"), read_id("f3NCSuq")
    ('f3NCSuq', 'ƒ3NCSuq', 1552593348)

The parts of an id, from the top: milliseconds (40 bits), generator (14), sequence (10). Source: Flux RFC 19. The form
``words`` needs the extra ``words`` (mnemonicode): eight bytes, the lowest first.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from sssjob.errors import LexicalError, UsageError

__all__ = ["FORMS", "GREATEST", "Form", "Ids", "read_id", "write_id"]

Form = Literal["f58plain", "f58", "dec", "hex", "dothex", "kvs", "words"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
GREATEST: Final = (1 << 64) - 1
_DIGITS: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES: Final = {digit: value for value, digit in enumerate(_DIGITS)}
_FORM: Final = "a job id, as f3NCSuq, 1552593348, 0x5c8ab1c4 or 0000.0000.5c8a.b1c4"
_DEC, _HEX = re.compile(r"[0-9]{1,20}"), re.compile(r"0[xX]([0-9A-Fa-f]{1,16})")
_F58 = re.compile(rf"(?:f|\N{{LATIN SMALL LETTER F WITH HOOK}})([{_DIGITS}]{{1,11}})")
_DOTS = re.compile(r"(?:job\.)?([0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){0,3})")
_WORDS = re.compile(r"[a-z]+(?:--?[a-z]+){5}")


def _base58(number: int) -> str:
    digits = []
    while True:
        number, digit = divmod(number, 58)
        digits.append(_DIGITS[digit])
        if not number:
            return "".join(reversed(digits))


def _dots(number: int) -> str:
    text = f"{number:016x}"
    return ".".join(text[n:n + 4] for n in range(0, 16, 4))


_WRITERS: Final[dict[Form, Callable[[int], str]]] = {
    "dec": str, "hex": hex, "dothex": _dots, "kvs": lambda number: f"job.{_dots(number)}",
    "f58": lambda number: f"\N{LATIN SMALL LETTER F WITH HOOK}{_base58(number)}",
    "f58plain": lambda number: f"f{_base58(number)}", "words": lambda number: _write_words(number),
}


def write_id(number: int, form: Form = "f58plain") -> str:
    """An id as text. Raises LexicalError for a number that is none, UsageError for a form that is not known."""
    if not 0 <= number <= GREATEST:
        raise LexicalError(str(number), f"a number from 0 to {GREATEST}")
    if form not in _WRITERS:
        raise UsageError(f"form {form!r} of job ids is not known (known: {', '.join(FORMS)})")
    return _WRITERS[form](number)


def read_id(text: str) -> int:
    """The number of an id in any form. Raises LexicalError, UsageError (words without the extra)."""
    number = _read(text)
    if number is None or number > GREATEST:
        raise LexicalError(text, _FORM)
    return number


def _read(text: str) -> int | None:
    if _DEC.fullmatch(text):
        return int(text)
    if digits := _HEX.fullmatch(text):
        return int(digits[1], 16)
    if digits := _F58.fullmatch(text):
        number = 0
        for digit in digits[1]:
            number = number * 58 + _VALUES[digit]
        return number
    if digits := _DOTS.fullmatch(text):
        return int(digits[1].replace(".", ""), 16)
    return _read_words(text) if _WORDS.fullmatch(text) else None


def _write_words(number: int) -> str:
    return str(_words().mnformat(number.to_bytes(8, "little")))


def _read_words(text: str) -> int | None:
    try:
        data = _words().mnparse(text)
    except (LookupError, ValueError):
        return None
    return int.from_bytes(data, "little") if len(data) == 8 else None


def _words() -> Any:
    """The module that knows the words."""
    try:
        import mnemonicode
    except ImportError:
        raise UsageError("job ids as words need mnemonicode: pip install 'sssjob[words]'") from None
    return mnemonicode


class Ids:
    """Makes ids that no other process makes: time since 2020, a random generator, a sequence. One thread's.

    now: seconds since the epoch.
    """

    _SINCE_MS: Final = 1_577_836_800_000

    def __init__(self, now: Callable[[], float] = time.time, generator: int | None = None) -> None:
        self._now = now
        self._generator = int.from_bytes(os.urandom(2), "big") & 0x3FFF if generator is None else generator
        self._last = -1         # milliseconds and sequence

    def next(self) -> int:
        """An id greater than all before it; at more than 1024 a millisecond they run ahead of the clock."""
        ticks = (int(self._now() * 1000) - self._SINCE_MS) << 10
        self._last = max(ticks, self._last + 1)
        milliseconds, sequence = divmod(self._last, 1 << 10)
        return (milliseconds & ((1 << 40) - 1)) << 24 | self._generator << 10 | sequence
