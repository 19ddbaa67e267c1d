"""Limits of a job's processes (ResourceLimit): the options that some resource managers have for them, and ``ulimit`` at
the top of the script for all others.

Source: section 5.1 of the job object for the names; ulimit of POSIX sh, bash(1), ksh(1) and zsh(1) for letters and
units; queue_conf(5) of Grid Engine; bsub of LSF 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sssjob.document.values import resource_limit
from sssjob.request.asked import Entry
from sssjob.translators.bodies.languages import SHELLS, interpreter
from sssjob.translators.scripts.grammars import Grammar, Kept
from sssjob.translators.scripts.raw import Line, Option
from sssjob.translators.scripts.rows import APPROXIMATED, ScriptDocument, Special

if TYPE_CHECKING:
    from sssjob.translators.scripts.asking import Asking
    from sssjob.translators.scripts.reading import Reading

__all__ = ["commands", "limit", "limits_of", "stood", "taken"]

#: Names that are said with ulimit -> its letter, and the bytes of its unit (0: blocks, whose size the shell decides).
_ULIMIT: Final = {
    "CoreFileSize": ("c", 0), "CPUTime": ("t", 1), "DataSegSize": ("d", 1024), "FileSize": ("f", 0),
    "MaxMemLock": ("l", 1024), "MaxMemorySize": ("m", 1024), "OpenFiles": ("n", 1), "StackSize": ("s", 1024),
    "MaxProcesses": ("u", 1), "MaxSwap": ("v", 1024)}
_LETTERS: Final = {letter: (name, unit) for name, (letter, unit) in _ULIMIT.items()}
_NAMES: Final = {name.lower(): name for name in _ULIMIT}
#: bash counts files in blocks of its own, unless it is called sh; the others as POSIX says.
_BLOCK: Final = {"bash": 1024}
#: Shells whose ulimit knows the number of processes by that letter; of what is called sh nobody knows.
_COUNTS_PROCESSES: Final = ("bash", "ksh", "ksh93", "mksh", "zsh")
_LINE: Final = re.compile(r"ulimit (?:-([HS]) )?-([cdflmnstuv]) (\d{1,18})", re.ASCII)
_KINDS: Final = {"H": "Hard", "S": "Soft"}


@dataclass(frozen=True, slots=True)
class _Limit:
    """One limit of a job. name: as in the text; value: bytes, seconds or a number; kind: Hard, Soft, or empty for
    both."""

    name: str
    value: int
    kind: str
    entry: Entry


def _limits(asking: Asking) -> Iterator[_Limit]:
    """The limits of the whole job that no option has said yet, and that are numbers with a known name."""
    for e in asking.said("ResourceLimit"):
        name = _NAMES.get(e.attributes.get("name", "").lower())
        value = resource_limit(e.text)
        if name is not None and not e.used and e.slot == "" and e.level == "Job" and isinstance(value, int):
            yield _Limit(name, value, e.attributes.get("type", ""), e)


def _say(entry: Entry) -> None:
    """Mark a limit as carried."""
    entry.used = True
    entry.understood |= {"name", "type"}


# -- options
def limits_of(asking: Asking, name: str, kinds: Sequence[str] = ("", "Hard", "Soft"), whole: int = 1) -> list[int]:
    """The value of a limit of those kinds, which counts as carried by that; none where there is none. whole: what the
    target counts in, and rounds up to."""
    for limit_ in _limits(asking):
        if limit_.name == name and limit_.kind in kinds:
            _say(limit_.entry)
            if limit_.value % whole:
                asking.note(APPROXIMATED, limit_.entry,
                            f"ResourceLimit {name}: {limit_.value} is rounded up to a multiple "
                            f"of {whole}")
            return [limit_.value]
    return []


def limit(option: str, name: str, grammar: Grammar, *kinds: str, whole: int = 1) -> Special:
    """The row of an option that sets one limit. kinds: those that it says, the first is what it is read as (empty: hard
    and soft at once); whole: what it counts in."""
    def read(reading: Reading, options: Mapping[str, Option]) -> None:
        """The ResourceLimit of an option; one that the grammar keeps is kept."""
        given_option = options[option]
        try:
            value = grammar.read(given_option.value or "")
        except Kept:
            reading.keep(given_option)
            return
        except ValueError as error:
            reading.misfit(given_option, str(error), grammar.expected)
            return
        more = {"type": kinds[0]} if kinds[0] else {}
        reading.put("ResourceLimit", str(value), given_option, name=name, **more)

    def write(asking: Asking) -> list[tuple[str, str | None]]:
        """The limits of a job by that name."""
        return [(option, grammar.write(str(value))) for value in limits_of(asking, name, kinds, whole)]

    return Special((option,), read, write, of=("ResourceLimit",))


# -- the script
def commands(asking: Asking, shebang: str) -> list[str]:
    """The lines of ``ulimit`` for the limits that no option said, in the units of the script's shell."""
    shell = interpreter(shebang)
    lines = []
    for limit_ in _limits(asking):
        letter, unit = _ULIMIT[limit_.name]
        if shell not in SHELLS or (letter == "u" and shell not in _COUNTS_PROCESSES):
            continue
        unit = unit or _BLOCK.get(shell, 512)
        flag = {"Hard": "-H ", "Soft": "-S "}.get(limit_.kind, "")
        line = f"ulimit {flag}-{letter} {-(-limit_.value // unit)}"
        _say(limit_.entry)
        more = ", rounded up" if limit_.value % unit else ""
        again = asking.source == asking.dialect.name and not more
        asking.note(APPROXIMATED, limit_.entry,
                    f"ResourceLimit {limit_.name}: {asking.dialect.title} has no option for it; "
                    f"the script begins with {line}{more}", "info" if again else None)
        lines.append(line)
    return lines


def stood(asking: Asking) -> bool:
    """Whether a limit of the job was such a line of the script that it came from."""
    document = asking.document
    return isinstance(document, ScriptDocument) and any(
        (origin := document.origin(e.item)) is not None and origin.name == "ulimit"
        for e in asking.said("ResourceLimit"))


def taken(reading: Reading, lines: list[Line]) -> list[Line]:
    """The lines of a script without those of ``ulimit`` that it begins with, which become limits of the job."""
    if len(lines) < 2 or not lines[1].text.startswith("ulimit ") or not lines[0].text.startswith("#!"):
        return lines
    shell = interpreter(lines[0].text)
    at = 1
    while shell in SHELLS and at < len(lines) and lines[at].end and (hit := _LINE.fullmatch(lines[at].text)):
        name, unit = _LETTERS[hit[2]]
        line = lines[at]
        option = Option("ulimit", line.text.removeprefix("ulimit "), line.number, 1, line.text)
        more = {"type": _KINDS[hit[1]]} if hit[1] else {}
        reading.put("ResourceLimit", str(int(hit[3]) * (unit or _BLOCK.get(shell, 512))), option, name=name, **more)
        at += 1
    return [lines[0], *lines[at:]]
