"""Values as texts of accounting records spell them: counts, amounts, durations, times.

What is empty, negative or was never set is None, never zero; what is no value rejects its record.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from sssjob.findings import escape
from sssjob.lrm.clocks import microseconds
from sssjob.lrm.sizes import POWERS, unit
from sssjob.lrm.slurm import UNSET
from sssjob.lrm.states import NativeState, Stage
from sssjob.translators.records._again import Once

#: Why a record is rejected.
REASONS: Final[dict[str, str]] = {
    "between": "between the pieces of a broken row, of whose text it may be a part",
    "columns": "another number of columns than it should have",
    "header": "no header names the columns",
    "id": "no identifier",
    "json": "not the JSON that it should be",
    "no-job": "a record of something that is no job",
    "number": "a number that is none",
    "packed": "compressed data that are damaged or cut",
    "part": "told already by another record of its job",
    "orphan": "part of a job whose own record is not here",
    "summary": "a sum over many jobs, no job",
    "time": "a time that is none",
    "too-long": "longer than a limit",
    "torn": "the input ends inside it",
    "type": "a kind of record that is not known",
    "unread": "no reader has foreseen it; worth a report",
    "xml": "not the XML that it should be",
    "zone": "a time without zone, and no zone was named",
}

LATEST: Final = 253_402_300_800        # the year 10000
EPOCHS: Final = 2**32 - 2              # times below are seconds, of whatever was set


class Rejected(Exception):
    """This record cannot be taken. reason: one of REASONS; line: where the record begins, 0 for the line at hand."""

    def __init__(self, reason: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.reason, self.line = reason, line


_NEVER_SET: Final = frozenset(str(n) for n in UNSET if n >= 2**63)
#: Digits before the point of a number or an amount of bytes; what is longer is neither read nor written.
DIGITS: Final = 24
_AMOUNT: Final = re.compile(rf"(\d{{1,{DIGITS}}}(?:\.\d{{0,12}})?)\s*([A-Za-z]{{0,3}})", re.ASCII)
_SHORT: Final = 18              # characters of a number that needs no thought
_HALF: Final = Decimal("0.5")
_PLACES: Final = 12             # digits of a duration after the point
_LETTERS: Final = "kKmMgGtTpPeEbBiI"
FLOAT: Final = re.compile(rf"-?\d{{1,{DIGITS}}}(?:\.\d{{0,18}})?(?:[eE][+-]?\d{{1,2}})?", re.ASCII)


def count(text: str, name: str) -> int | None:
    """A whole number; None where it is empty, negative or was never set. Rejected: number."""
    if text.isdigit() and text.isascii() and len(text) <= 20:
        value = int(text)
        return None if value in UNSET else value
    if not text or (text[0] == "-" and text[1:].isdigit() and text.isascii()):
        return None
    raise Rejected("number", f"{name} {escape(text, 40)!r} is no whole number")


def number(text: str, name: str) -> Decimal | None:
    """A number with a fraction; None where it is empty or negative. Rejected: number."""
    if not text:
        return None
    if text[-7:] == ".000000" and (digits := text[:-7]).isdigit() and digits.isascii() and len(digits) < _SHORT:
        return Decimal(digits)
    if len(text) < _SHORT and text.isascii() and text[0] != "." and text.replace(".", "", 1).isdigit():
        return Decimal(text.rstrip("0").rstrip(".") if text[-1] in "0." and "." in text else text)
    if not FLOAT.fullmatch(text):
        raise Rejected("number", f"{name} {escape(text, 40)!r} is no number")
    value = Decimal(text.rstrip("0").rstrip(".") if "." in text and "e" not in text.lower() else text)
    return None if text[0] == "-" and value < 0 else value


def sixths(text: str) -> int | None:
    """Microseconds of seconds with six digits after the point, as ``%f`` prints them; None of another form."""
    if text[-7:-6] == "." and 7 < len(text) < _SHORT:
        digits = text[:-7] + text[-6:]
        if digits.isdigit() and digits.isascii():
            return int(digits)
    return None


#: Of what stands before the seconds.
_MINUTES: Final[Once[str, int | None]] = Once(lambda text: microseconds(f"{text}:00"))


def micros(text: str, name: str) -> int | None:
    """Microseconds of ``[[D-]HH:]MM:SS[.mmm]`` or of plain seconds; None where empty or negative. Rejected: number."""
    if not text:
        return None
    if text[-3:-2] == ":" and (last := text[-2:]).isdigit() and last.isascii():
        minutes = _MINUTES[text[:-3]]
        if minutes is not None:
            return minutes + int(last) * 1_000_000
    if len(text) < _SHORT and text.isascii() and text.replace(".", "", 1).isdigit():
        whole, point, part = text.partition(".")
        if whole and bool(point) == bool(part) and len(part) <= _PLACES:
            return int(whole) * 1_000_000 + (int((part + "00000")[:6]) if part else 0)
    micro = microseconds(text)
    if micro is None and not (text[0] == "-" and FLOAT.fullmatch(text)):
        raise Rejected("number", f"{name} {escape(text, 40)!r} is no duration")
    return micro


def seconds(text: str, name: str) -> int | None:
    """Whole seconds, half up, of what ``micros`` reads. Rejected: number."""
    if text[-3:-2] == ":" and (last := text[-2:]).isdigit() and last.isascii():
        minutes = _MINUTES[text[:-3]]
        if minutes is not None:
            return minutes // 1_000_000 + int(last)
    return rounded(micros(text, name))


def rounded(us: int | None) -> int | None:
    """Whole seconds of microseconds, half up."""
    return None if us is None else (us + 500_000) // 1_000_000


def cpu_of(user: str, system: str) -> int | None:
    """Whole seconds, half up, of the time in user and in system mode; None where neither is there. Rejected: number."""
    first, other = sixths(user), sixths(system)
    if first is not None and other is not None:
        return rounded(first + other)
    times = [value for value in (number(user, "ru_utime"), number(system, "ru_stime")) if value is not None]
    return int(sum(times, _HALF)) if times else None


#: Letter -> unit of bytes of a document.
BYTES: Final = {letter: f"{letter}B" for letter in POWERS}


def _unit(word: str) -> tuple[str, int]:
    """(unit of a document, how many of it) of ``gb``, ``MiB``, ``K``, ``kw``. 0 of it: no unit."""
    letter, times = unit(word) or ("", 0)
    return BYTES[letter], times


_UNITS: Final = Once(_unit)
_STEPS: Final = tuple(BYTES.values())
#: As PBS writes sizes.
_ENDS: Final = {f"{letter.lower()}b": f"{letter}B" for letter in "KMGT"}


def amount(text: str, name: str, default: str = "B") -> tuple[Decimal, str] | None:
    """(amount, unit) of ``144000M``, ``10gb`` or ``3.5G``; default: the unit of a bare number. Rejected: number."""
    if (unit := _ENDS.get(text[-2:])) is not None and (digits := text[:-2]).isdigit() and digits.isascii() and (
            len(digits) < _SHORT):
        return Decimal(digits), unit
    if not text or text.startswith("-"):
        return None
    digits = text.rstrip(_LETTERS)
    if digits.isdigit() and digits.isascii() and len(digits) < _SHORT and len(text) - len(digits) <= 3:
        if digits == text:
            return Decimal(digits), default
        unit, factor = _UNITS[text[len(digits):]]
        if factor == 1:
            return Decimal(digits), unit
    match = _AMOUNT.fullmatch(text)
    if match and match[1] in _NEVER_SET:
        return None
    if match:
        if not match[2]:
            return Decimal(match[1]), default
        unit, factor = _UNITS[match[2]]
        if factor:
            return Decimal(match[1]) if factor == 1 else Decimal(match[1]) * factor, unit
    raise Rejected("number", f"{name} {escape(text, 40)!r} is no amount of memory")


def thousands(text: str, name: str) -> Decimal | None:
    """A count, maybe with K, M, G, which are 1000 based where no memory is counted. Rejected: number."""
    if len(text) < _SHORT and text.isdigit() and text.isascii():
        return Decimal(text)
    size = amount(text, name)
    if size is None or size[0] >= 2**63:
        return None
    return size[0] * Decimal(1000) ** _STEPS.index(size[1])


#: Stage of a native state -> State of the specification. In accounting a run that will be repeated is over.
_WORDS: Final = {Stage.WAITING: "Idle", Stage.HELD: "Hold", Stage.RUNNING: "Running", Stage.SUSPENDED: "Suspended"}


def state_word(native: NativeState | None, unknown: str = "Completed") -> str:
    """The State of a native state, ``unknown`` for one that no table has."""
    return unknown if native is None else _WORDS.get(native.stage, "Completed")


def words(text: str | None, *absent: str) -> str | None:
    """The text, None where it is empty or one of the words that say so."""
    text = (text or "").strip()
    return None if not text or text in absent else text


def moment(value: int, name: str) -> int:
    """Epoch seconds; those in milliseconds are recognised. Rejected: time."""
    if value > 100_000_000_000:
        value //= 1000
    if not 0 <= value < LATEST:
        raise Rejected("time", f"{name} {value} is no time")
    return value
