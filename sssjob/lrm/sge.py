"""Grid Engine: states, how jobs failed, numbers, times and sizes of requests.

Sources: sge_status(5), qstat(1), accounting(5), sge_types(5). Seen with Son of Grid Engine 8.1.9.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total
from sssjob.lrm.sizes import LETTERS, POWERS
from sssjob.lrm.states import NativeState, Stage

__all__ = ["ANSWERS", "FAILED", "RAN", "RUN_AGAIN", "SIGNALED", "TIME_LIMIT", "memory", "number", "seconds", "state_of"]

#: Letters of the state column, tested in this order; the first that is there decides.
_STATES: Final = (
    ("E", Stage.HELD, "ERROR"), ("sST", Stage.SUSPENDED, "SUSPENDED"), ("rt", Stage.RUNNING, None),
    ("h", Stage.HELD, "HELD"), ("qwPN", Stage.WAITING, None), ("m", Stage.RUNNING, None))

#: ``failed`` of a record: to be run again; the limit of time; ended by a signal.
RUN_AGAIN, TIME_LIMIT, SIGNALED = 25, 37, 100
#: ``failed`` of a job that ran, whatever happened to it then; all others never started. Source: sge_status(5).
RAN: Final = frozenset((0, 12, 13, 14, 15, 16, 17, 24, RUN_AGAIN, 30, TIME_LIMIT, SIGNALED))
#: ``failed`` -> why the job ended, where it says so.
FAILED: Final[dict[int, str]] = {
    17: "signal", TIME_LIMIT: "timeout", SIGNALED: "signal",
    **{code: "launch" for code in range(1, SIGNALED) if code not in RAN},
}


def state_of(letters: str) -> NativeState | None:
    """The state that the letters of a state column say; None when they say nothing about it."""
    found = next(((stage, phase) for some, stage, phase in _STATES if any(one in letters for one in some)), None)
    if "d" in letters:
        return NativeState(letters, found[0] if found is not None else Stage.RUNNING, phase="CANCELING")
    return None if found is None else NativeState(letters, found[0], phase=found[1])


_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,12}")
_OCTAL: Final = re.compile(r"0[0-7]{1,15}")
_DECIMAL: Final = re.compile(r"\d{1,15}(?:\.\d{0,9})?|\.\d{1,9}", re.ASCII)


def number(text: str) -> Decimal | None:
    """A decimal, hexadecimal or octal constant; None for anything else."""
    if _HEXADECIMAL.fullmatch(text):
        return Decimal(int(text, 16))
    if _OCTAL.fullmatch(text):
        return Decimal(int(text, 8))
    return Decimal(text) if _DECIMAL.fullmatch(text) else None


def seconds(text: str) -> int | None:
    """Seconds of a number or of ``H:M:S``, of which each may be empty; None for INFINITY. ValueError: another form."""
    if text.upper() == "INFINITY":
        return None
    if found := re.fullmatch(r"(\d{0,9}):(\d{0,9}):(\d{0,9})", text, re.ASCII):
        return total([int(field or 0) for field in found.groups()])
    amount = number(text)
    if amount is None:
        raise ValueError("is no time of Grid Engine")
    return int(amount.to_integral_value(ROUND_CEILING))


def memory(text: str) -> int | None:
    """Bytes of ``4G``; lower-case letters are powers of 1000. None for INFINITY. ValueError for another form."""
    if text.upper() == "INFINITY":
        return None
    letter = text[-1:] if text[-1:].upper() in ("K", "M", "G", "T") else ""
    amount = number(text.removesuffix(letter)) if letter else number(text)
    if amount is None:
        raise ValueError("is no size")
    factor = 1000 ** (LETTERS.index(letter.upper()) + 1) if letter.islower() else POWERS[letter]
    return int((amount * factor).to_integral_value(ROUND_CEILING))


#: Answers of qsub.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII),
    submitted=re.compile(r"(\d{1,12})", re.ASCII),
    later=re.compile(r"unable to (send message|contact)|connection refused|only \d+ jobs are allowed|commlib error|"
                     r"try again|not available|qmaster is not running", re.IGNORECASE),
    unknown=re.compile(r"answer list|timeout|timed out|failed receiving|got read error|connection (reset|lost)",
                       re.IGNORECASE))
