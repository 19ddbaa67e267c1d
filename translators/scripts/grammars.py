"""How values are spelled: each Grammar reads the text of an option into that of a property and writes it back.

A reader raises ValueError for what the resource manager would refuse; the writers print one form only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Final

from sssjob.document.element import Value
from sssjob.lrm import pbs
from sssjob.lrm.clocks import clock
from sssjob.lrm.slurm import limit

__all__ = ["COUNT", "FILE_TOKEN", "FROM_NOW", "INTEGER", "PBS_SECONDS", "PBS_TIME", "SLURM_MINUTES", "SLURM_TIME",
           "TEXT", "TORQUE_SECONDS", "YES", "Coming", "FromNow", "Grammar", "Kept", "file_reader", "file_writer",
           "literal_name", "slurm_from_now", "unstamped"]


class Kept(ValueError):
    """The value is fine, but only its own dialect can say it."""


#: That of an EligibleTime in seconds after the submission.
FROM_NOW: Final = "Extension[name=EligibleTimeFromNow,type=Scheduler]"


class Coming(Kept):
    """A time without a year, a month or a date, which means the next one. scope: in what it comes once, ``Day``,
    ``Month`` or ``Year``; clock: ``HH:MM`` or ``HH:MM:SS``; day: ``""``, ``DD`` or ``MM-DD``."""

    def __init__(self, hour: str, minute: str, second: str | None = None, day: str | None = None,
                 month: str | None = None) -> None:
        self.clock = f"{int(hour):02}:{minute}{f':{second}' if second not in (None, '00') else ''}"
        time.fromisoformat(self.clock)
        if day is not None:
            date(2000, int(month or 1), int(day))
        self.day = "-".join(f"{int(number):02}" for number in (month, day) if number is not None)
        self.scope = "Day" if day is None else "Month" if month is None else "Year"
        super().__init__("depends on the day of submission")

    def __str__(self) -> str:
        """``[[MM-]DDT]HH:MM[:SS]``, as a document has it."""
        return f"{self.day}T{self.clock}" if self.day else self.clock

    @classmethod
    def read(cls, text: str) -> Coming:
        """That of a document; ValueError for what is none."""
        match = _COMING.fullmatch(text)
        if match is None:
            raise ValueError("is no time")
        return cls(match["hour"], match["minute"], match["second"], match["day"], match["month"])


_COMING: Final = re.compile(r"(?:(?:(?P<month>\d\d)-)?(?P<day>\d\d)T)?(?P<hour>\d\d?):(?P<minute>\d\d)"
                            r"(?::(?P<second>\d\d))?", re.ASCII)


def unstamped(tag: str, scope: str) -> str:
    """The place of a time that comes again (``Coming``), by the property that has one of a certain day."""
    return f"Extension[name={tag}Of{scope},type=Scheduler]"


class FromNow(Kept):
    """A time so many seconds after the submission."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__("depends on the time of submission")


@dataclass(frozen=True, slots=True)
class Grammar:
    """read: text to value; write: value (of a property, as text) to text; expected: in words; coming: of a time, how
    one that comes again is written, by its scope where there is such a text."""

    read: Callable[[str], Value]
    write: Callable[[str], str]
    expected: str
    coming: Mapping[str, Callable[[Coming], str]] = field(default_factory=dict)


def _text(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


_COUNT: Final = re.compile(r"\d{1,15}", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d{1,15}", re.ASCII)
_SLURM_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?", re.ASCII)
#: Hours with a name. Source: sbatch(1), --begin.
_SLURM_HOURS: Final = {"midnight": "00:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00"}
_SLURM_CLOCK: Final = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?", re.ASCII)
#: ``now+2hours``; the unit may be cut short. Source: sbatch(1), --begin.
_SLURM_NOW: Final = re.compile(r"now\+(\d{1,9})([smhdw][a-z]*)?", re.ASCII)
_UNITS: Final = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
#: ``MM/DD``, ``MM.DD`` or ``MMDD``, with two digits of a year and an hour or without. Source: parse_time.c of Slurm.
_SLURM_DAY: Final = re.compile(r"(\d\d)[/.]?(\d\d)(?:[/.]?(\d\d))?(?:[-T](\d\d?):(\d\d)(?::(\d\d))?)?", re.ASCII)
_PBS_COMING: Final = re.compile(r"(?:(?P<month>\d\d)?(?P<day>\d\d))?(?P<hour>\d\d)(?P<minute>\d\d)"
                                r"(?:\.(?P<second>\d\d))?", re.ASCII)
_PBS_DATE: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d\d))?", re.ASCII)


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError("is no number")
    return int(text)


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("is no whole number")
    return int(text)


def _slurm_date(text: str) -> int:
    """Seconds since 1970 of ``YYYY-MM-DD[THH:MM[:SS]]``, the site's clock taken as UTC."""
    if (clock_of_day := _SLURM_CLOCK.fullmatch(_SLURM_HOURS.get(text, text))) is not None:
        raise Coming(*clock_of_day.groups())
    if (a_day := _SLURM_DAY.fullmatch(text)) is not None:
        month, day, year, hour, minute, second = a_day.groups("00")
        if a_day[3] is None:
            raise Coming(hour, minute, second, day, month)
        text = f"20{year}-{month}-{day}T{int(hour):02}:{minute}:{second}"
    if (ahead := _SLURM_NOW.fullmatch(text)) is not None:
        unit = next((unit for unit in _UNITS if unit.startswith(ahead[2] or "seconds")), None)
        if unit is not None:
            raise FromNow(int(ahead[1]) * _UNITS[unit])
    return _stamp(_SLURM_DATE.fullmatch(text))


def _pbs_date(text: str) -> int:
    """The same of ``CCYYMMDDhhmm[.SS]``."""
    if (coming := _PBS_COMING.fullmatch(text)) is not None:
        raise Coming(coming["hour"], coming["minute"], coming["second"], coming["day"], coming["month"])
    return _stamp(_PBS_DATE.fullmatch(text))


def _pbs_coming(coming: Coming) -> str:
    hour, minute, *second = coming.clock.split(":")
    return f"{coming.day.replace('-', '')}{hour}{minute}{''.join(f'.{of_minute}' for of_minute in second)}"


def slurm_from_now(seconds: int) -> str:
    """``now+2hours``.

    >>> slurm_from_now(3600), slurm_from_now(7260)
    ('now+1hour', 'now+121minutes')
    """
    unit, length = next((unit, length) for unit, length in _UNITS.items() if seconds % length == 0)
    count = seconds // length
    return f"now+{count}{unit if count != 1 else unit.removesuffix('s')}"


def _stamp(match: re.Match[str] | None) -> int:
    if match is None:
        raise Kept("depends on the day of submission")
    year, month, day, hour, minute, second = map(int, match.groups("0"))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())


def _dated(form: str) -> Callable[[str], str]:
    return lambda text: datetime.fromtimestamp(int(text), UTC).strftime(form)


def _yes(text: str) -> bool:
    if text not in ("y", "n"):
        raise ValueError("is neither y nor n")
    return text == "y"


TEXT: Final = Grammar(_text, str, "text")
COUNT: Final = Grammar(_count, str, "a number")
INTEGER: Final = Grammar(_integer, str, "a whole number")
SLURM_MINUTES: Final = Grammar(limit, lambda text: clock(-(-int(text) // 60) * 60), "M, M:S, H:M:S or D-H:M:S")
PBS_SECONDS: Final = Grammar(pbs.seconds, lambda text: clock(int(text)), "S, M:S or H:M:S")
TORQUE_SECONDS: Final = Grammar(partial(pbs.seconds, fields=4), lambda text: clock(int(text)),
                                "S, M:S, H:M:S or D:H:M:S")
SLURM_TIME: Final = Grammar(_slurm_date, _dated("%Y-%m-%dT%H:%M:%S"), "YYYY-MM-DDTHH:MM:SS", {
    "Day": str, "Year": lambda coming: f"{coming.day.replace('-', '/')}-{coming.clock}"})
PBS_TIME: Final = Grammar(_pbs_date, _dated("%Y%m%d%H%M.%S"), "CCYYMMDDhhmm.SS",
                          dict.fromkeys(("Day", "Month", "Year"), _pbs_coming))
YES: Final = Grammar(_yes, lambda text: "y" if text == "true" else "n", "y or n")


def file_reader(tokens: Mapping[str, str], pattern: str) -> Callable[[str], str]:
    """Read a file name: native tokens become canonical ones, literal braces are doubled."""
    token_pattern = re.compile(pattern, re.ASCII)

    def read(text: str) -> str:
        """The name of a file with the tokens of the job object in place of the dialect's."""
        pieces, at = [], 0
        for hit in token_pattern.finditer(text):
            token = tokens.get(hit["name"])
            if token is None:
                continue
            width = hit.groupdict().get("width")
            pieces += [literal_name(text[at:hit.start()]), token.replace("}", f":{width}}}") if width else token]
            at = hit.end()
        return _text("".join(pieces) + literal_name(text[at:]))

    return read


def literal_name(text: str) -> str:
    """The name of a file as a document has it, in which nothing is to be filled in: its braces are doubled."""
    return text.replace("{", "{{").replace("}", "}}") if "{" in text or "}" in text else text


#: What the name of a file in a document may hold beside text: a doubled brace, or a token and its least width.
FILE_TOKEN: Final = re.compile(r"\{\{|\}\}|\{(?P<token>[a-z_]+)(?::(?P<width>\d+))?\}", re.ASCII)


def _padded(native: str, hit: re.Match[str]) -> str:
    """A token of Slurm or HTCondor that fills in a number of a least width: ``%4j``, ``$INT(Process,%04d)``."""
    if native.startswith("%"):
        return f"%{hit['width']}{native[1:]}"
    if native in ("$(Process)", "$(Cluster)"):
        return f"$INT({native[2:-1]},%0{hit['width']}d)"
    raise LookupError(hit[0])


def file_writer(text: str, tokens: Mapping[str, str], literal: Callable[[str], str] = str) -> str:
    """Write a file name with canonical tokens. tokens: ``{jobid}`` -> native text; LookupError for one not there."""
    pieces, at = [], 0
    for hit in FILE_TOKEN.finditer(text):
        pieces.append(literal(text[at:hit.start()]))
        at = hit.end()
        if hit["token"] is None:
            pieces.append(literal(hit[0][0]))
        else:
            native = tokens["{" + hit["token"] + "}"]
            pieces.append(_padded(native, hit) if hit["width"] else native)
    return "".join(pieces) + literal(text[at:])
