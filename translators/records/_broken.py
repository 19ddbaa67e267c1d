"""Rows of sacct that a line end in a text has broken, and the lines between their pieces.

sacct prints a name as its user wrote it. A name of several lines ends a row early and begins another one late: both
pieces are no rows and are rejected. A whole row that stands between two such pieces may be text of that name, and is
rejected with them; what it says is nobody's word but that user's.

Pieces that make one row together are taken for that row, and so is a line that is a row in several ways; the next piece
then begins another row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from sssjob.translators.records._delimiters import FREE, fits

if TYPE_CHECKING:
    from sssjob.translators.records._lines import Line
    from sssjob.translators.records.sacct import Rows

__all__ = ["parted_from", "unbroken"]

_REMEDY: Final = "read the output of sacct --json, or a log without that column"
_FIELDS: Final = 256        # of the pieces of one row that are looked at together; more make none


def unbroken(rows: Rows, some: Iterable[Line]) -> Iterator[Line]:
    """The lines without those that stand between the pieces of a broken row, which are rejected as ``between``.

    rows: the reading that takes each line before it asks for the next one. Behind a piece it holds lines back until the
    next piece, but no more characters than the longest text of a user can have: a piece alone costs no other row.
    Where the log goes on another time, the last piece and the lines behind it come again then.
    """
    held: list[Line] = []
    row: list[str] = []         # the fields of the pieces so far
    is_whole = False            # whether these make a row
    room = -1                   # characters behind the last piece in which another one may belong to it
    last = ""                   # the last piece
    rows.is_broken, rows.broken = False, []
    for line in some:
        if room >= 0:
            room -= len(line.text) + 1
            if room >= 0 and not _is_piece(rows, line):
                if line.text and not line.text.isspace():
                    held.append(line)
                continue
            if held and room >= 0 and not (is_whole and line.text[:1].isdigit()):
                _reject(rows, held)
            else:
                yield from held
            held.clear()
        rows.piece = None
        yield line
        piece = rows.piece
        if piece is not None:
            if room < 0 and not piece[0][:1].isdigit() and _reach(rows.columns) > 0:
                rows.tell("SSS544", "columns", "the line may be the end of a row that a line end in a text has broken, "
                          f"and rows before it part of that text: {_REMEDY}", line.number)
            row = _together(row, piece) if room >= 0 and not is_whole else piece
            is_whole = fits(row, rows.columns)
            room = _reach(rows.columns)
            last = line.text
        rows.is_broken = room >= 0
    rows.is_broken = False
    if held and rows.keeping:
        _reject(rows, held)
        rows.broken = [last, *(line.text for line in held)]
    elif rows.keeping and room >= 0:
        rows.broken = [last]
    else:
        yield from held


def _reach(columns: Iterable[str]) -> int:
    """How many characters a text of a user may have in any of some columns (in lower case); -1 where none can."""
    return max((FREE[column] for column in columns if column in FREE), default=-1)


def parted_from(header: bytes) -> Callable[[bytes], int]:
    """Of a log with a header: in how many bytes behind a line (with its end) others may belong to it; 0 where the line
    is a row."""
    bars = header.rstrip(b"\r\n").count(b"|")
    names = [name.strip().partition(b"%")[0].lower().decode("latin-1") for name in header.split(b"|")]
    most, ident = 4 * max(0, _reach(names)), names.index("jobid")

    def apart(line: bytes) -> int:
        """The bytes, 0 behind a row."""
        is_row = line.count(b"|") == bars and line.split(b"|", ident + 1)[ident][:1].isdigit()
        return 0 if is_row or not line.strip() else most

    return apart


def _is_piece(rows: Rows, line: Line) -> bool:
    """Whether a line is no row, header or blank line."""
    if not line.text.strip() or rows.is_header(line.text):
        return False
    row = rows.row_of(line.text.split(rows.delimiter))
    return row is None or not row[rows.rows.id][:1].isdigit()


def _together(row: list[str], piece: list[str]) -> list[str]:
    """The fields of pieces that follow each other, of which a line end alone stands for the one that was broken; none
    where they are too many."""
    return [*row[:-1], "\n", *piece[1:]] if row and len(row) + len(piece) <= _FIELDS else []


def _reject(rows: Rows, held: list[Line]) -> None:
    """Reject lines, all with one finding."""
    first, last = held[0].number, held[-1].number
    lines = f"line {first} stands" if first == last else f"lines {first} to {last} stand"
    rows.counts.read += len(held)
    rows.counts.given += len(held)
    rows.reject(first, "between", f"{lines} between the pieces of a row that a line end in a text has broken, and may "
                f"be part of that text: {_REMEDY}", held[0].text, taken=len(held))
