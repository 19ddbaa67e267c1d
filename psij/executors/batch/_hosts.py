"""Folded lists of hosts, such as ``node[1-3,07],login``."""

from __future__ import annotations

import itertools
import re

__all__ = ["hosts"]

_MOST = 100_000      # names; a longer list stays folded
_ITEM = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PART = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def hosts(text: str) -> list[str]:
    """The names; the text itself as the only one when it is not understood or too long.

    Commas part names, brackets hold numbers and ranges; leading zeros count (Slurm's host lists, scontrol(1)).
    """
    try:
        items = _ITEM.findall(text)
        if ",".join(items) != text:
            raise ValueError(text)
        names: list[str] = []
        for item in items:
            names += _expand(item, _MOST - len(names))
        return names
    except ValueError:
        return [text]


def _expand(item: str, most: int) -> list[str]:
    pieces = _PART.split(item)          # literal, numbers, literal, ... literal
    choices = [_numbers(piece, most) if index % 2 else [piece] for index, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > most:
        raise ValueError(item)
    return ["".join(parts) for parts in itertools.product(*choices)]


def _numbers(text: str, most: int) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(text)
        first, last = match[1], match[2] or match[1]
        if not 0 <= int(last) - int(first) < most - len(found):
            raise ValueError(text)
        found += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return found
