"""Tables of text for terminals and pipes: every cell escaped, columns as wide as they need, long cells folded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from sssjob.findings import escape

_GAP = "  "
_LEAST = 8          # columns are not made narrower
_MOST = 200         # characters of a line in a cell, unless a whole line may be longer


def cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def table(rows: Sequence[Sequence[str | Sequence[str]]], titles: Sequence[str], width: int = 100, *,
          texts: int | None = None, beneath: Sequence[str] = ()) -> list[str]:
    """The lines of a table: titles, a rule, the rows. A cell is a text, shown on one line, or several. texts: so many
    columns, the first ones, may be folded (default: all); the others are numbers, whose lines may be longer than width.
    beneath: for each row what stands under it, indented, in as many lines as it needs.
    """
    shown = [[_cell(cell, max(_MOST, width)) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(titles, *([max(c, key=cells) for c in row] for row in shown),
                                                         strict=True)]
    few = len(widths) if texts is None else texts
    room = width - len(_GAP) * (len(titles) - 1) - sum(widths[few:])
    widths = [*_fitted(widths[:few], room), *widths[few:]] if few else widths
    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    head = _lines([[title] for title in titles], widths)
    under = [[_GAP + part for part in _folded(escape(text), max(width - len(_GAP), _LEAST))] if text else []
             for text in beneath]
    return [*head, rule, *(line for number, row in enumerate(shown)
                           for line in [*_lines(row, widths), *(under[number] if under else ())])]


def needed(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> list[int]:
    """How wide each column of a table is that is not folded, with the gap before the next one."""
    return [max(map(cells, column)) + len(_GAP) for column in zip(titles, *rows, strict=True)]


def _cell(cell: str | Sequence[str], most: int) -> list[str]:
    """The lines of a cell, of at most so many characters each."""
    return [escape(line.replace("\n", "↵"), most) for line in ([cell] if isinstance(cell, str) else cell)] or [""]


def _lines(row: Sequence[Sequence[str]], widths: list[int]) -> list[str]:
    """The lines of one row of cells, each a list of lines."""
    folded = [[part for line in cell for part in _folded(line, most)] for cell, most in zip(row, widths, strict=True)]
    return [_GAP.join(part + " " * (most - cells(part)) for part, most in zip(parts, widths, strict=True)).rstrip()
            for parts in zip_longest(*folded, fillvalue="")]


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widest columns made narrower until all fit."""
    if sum(widths) <= room:
        return widths
    cap = next((c for c in range(max(widths), _LEAST, -1) if sum(min(w, c) for w in widths) <= room), _LEAST)
    return [min(w, cap) for w in widths]


def _folded(line: str, most: int) -> Iterator[str]:
    """Parts of a line that fit, cut at a blank where there is one."""
    while cells(line) > most:
        fits = next(n for n in range(min(most, len(line)), 0, -1) if n == 1 or cells(line[:n]) <= most)
        at = line.rfind(" ", 1, fits + 1)
        yield line[:at] if at > 0 else line[:fits]
        line = line[at + 1:] if at > 0 else line[fits:]
    yield line
