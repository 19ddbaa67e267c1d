"""One queue statement of HTCondor for jobs that differ in words of their commands: ``queue item from (...)``.

Source: condor_submit(1), queue: an item has a line; several variables are parted by commas; a line that begins with #
is a comment, and one bracket ends the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["over_items"]

_WORD: Final = re.compile(r"[^\s,;='\"]+|.", re.DOTALL)
#: What an item may be: the reader of the list takes it as it is, and so does the command in which it stands.
_ITEM: Final = re.compile(r"[\w./+:@%~^-]+", re.ASCII)
#: A word that is the same for all jobs, or the values of one variable, a value for each job.
_Piece = str | tuple[str, ...]


def over_items(blocks: Sequence[Sequence[str]]) -> str | None:
    """The description that queues all jobs by one statement; None where one statement cannot.

    blocks: of each job its commands, ``name = value`` a line, and its queue statement.
    """
    first = blocks[0]
    same = {(len(lines), lines[-1], *(line for line in lines if line.startswith("executable = "))) for lines in blocks}
    if len(same) > 1 or not re.fullmatch(r"queue( \d+)?", first[-1]):
        return None
    rows: list[list[_Piece]] = []
    for lines in zip(*(block[:-1] for block in blocks), strict=True):
        pieces = _pieces(lines)
        if pieces is None:
            return None
        rows.append(pieces)
    varying = sorted({piece for row in rows for piece in row if isinstance(piece, tuple)}, key=_length)
    macros: dict[tuple[str, ...], str] = {}
    if first[-1] == "queue":
        macros[tuple(map(str, range(len(blocks))))] = "$(Process)"
    counted = len(macros)
    spelled: dict[_Piece, str] = {}
    for values in varying:
        text = next((f"{around[0]}{macro}{around[1]}" for items, macro in macros.items()
                     if (around := _around(items, values)) is not None), None)
        if text is None:
            if not all(map(_ITEM.fullmatch, values)):
                return None
            text = macros[values] = f"$(item{len(macros) - counted + 1})"
        spelled[values] = text
    variables = list(macros)[counted:]
    if not variables:
        return None
    commands = ["".join(piece if isinstance(piece, str) else spelled[piece] for piece in row) for row in rows]
    names = ",".join(macros[values][2:-1] for values in variables)
    items = [f"    {', '.join(values)}" for values in zip(*variables, strict=True)]
    return "\n".join([*commands, f"{first[-1]} {names} from (", *items, ")", ""])


def _length(values: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return sum(map(len, values)), values


def _pieces(lines: tuple[str, ...]) -> list[_Piece] | None:
    """The words of one command of all jobs; None where the commands are not alike."""
    if lines.count(lines[0]) == len(lines):
        return [lines[0]]
    words = [_WORD.findall(line) for line in lines]
    if len({len(each) for each in words}) > 1 or len({tuple(each[:3]) for each in words}) > 1:
        return None
    return [column[0] if column.count(column[0]) == len(column) else column for column in zip(*words, strict=True)]


def _around(items: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, str] | None:
    """What stands before and behind the item in each value; None where some value has it otherwise."""
    at = values[0].find(items[0])
    if at < 0:
        return None
    begin, end = values[0][:at], values[0][at + len(items[0]):]
    alike = all(value == begin + item + end for item, value in zip(items, values, strict=True))
    return (begin, end) if alike else None
