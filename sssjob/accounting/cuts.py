"""One large log cut for several processes, each of which reads its part as a log of its own.

Where each line is a job of its own, parts are ranges of lines; lines that go on a job are not parted from it. Where the
lines of a job stand apart, a part has all lines of some of the jobs, and blank lines in place of the others. What a
format says of itself is its ``Parting``.
"""

from __future__ import annotations

import io
import mmap
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final
from zlib import crc32

from sssjob.findings import Finding
from sssjob.translators.records._packed import LONGEST, Pieces, packing
from sssjob.translators.records.base import Parting, RecordTranslator
from sssjob.translators.registry import get

__all__ = ["Cut", "cut", "merged", "opened_part"]

#: Bytes of a part, at least: below, a process is not worth its start.
LEAST: int = 4 << 20
_PIECE: Final = 1 << 20
_HEAD: Final = 1 << 20      # bytes of a first line
_REACH: Final = 4 << 20     # bytes before an edge in which lines are looked for that go on behind it


@dataclass(frozen=True, slots=True)
class Cut:
    """What one process reads of a log: head, then the bytes from start to end; before: lines that stand there before
    the part. job: the pattern that names the job of a line; of the jobs, those whose number modulo count is number."""

    start: int
    end: int
    head: bytes = b""
    before: int = 0
    job: re.Pattern[bytes] | None = None
    number: int = 0
    count: int = 1


def cut(path: str, source: str, options: Mapping[str, str], most: int) -> list[Cut]:
    """The parts of a log, at most so many; none where it cannot be cut or is not worth it. Raises OSError."""
    translator = get(source)
    parting = translator.parting if isinstance(translator, RecordTranslator) else None
    size = os.stat(path).st_size if os.path.isfile(path) else 0
    most = min(most, size // LEAST)
    if parting is None or most < 2:
        return []
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff") or packing(data[:LONGEST]) is not None:
            return []
        if parting.job is not None:
            return [Cut(0, size, job=parting.job, number=n, count=most) for n in range(most)]
        return list(_ranges(data, parting, options, most))


def _ranges(data: mmap.mmap, parting: Parting, options: Mapping[str, str], most: int) -> Iterator[Cut]:
    head, job, apart = b"", None, None
    if parting.header is not None:
        head = data[:data.find(b"\n", 0, _HEAD) + 1]
        job = parting.header(head, options) if head else None
        if job is None or (parting.again is not None and parting.again.search(data, len(head) - 1)):
            return
        apart = None if parting.apart is None else parting.apart(head)
    edges = [0]
    for n in range(1, most):
        at = data.find(b"\n", max(len(data) * n // most, len(head))) + 1
        before = -1
        while apart is not None and job is not None and before != at and 0 < at < len(data):
            at = before = _apart(data, len(head), at, apart)
            last = job(data[data.rfind(b"\n", 0, at - 1) + 1:at])
            while at < len(data) and job(data[at:_end(data, at)]) == last:
                at = _end(data, at)
        if edges[-1] < at < len(data):
            edges.append(at)
    lines = 0
    for start, end in zip(edges, [*edges[1:], len(data)], strict=True):
        yield Cut(start, end, head if start else b"", lines - bool(start and head))
        lines += _lines(data, start, end)


def _apart(data: mmap.mmap, first: int, at: int, apart: Callable[[bytes], int]) -> int:
    """The place from ``at`` on, at the beginning of a line, behind which no line belongs to one before it. first: where
    the lines begin; apart: as in ``Parting``."""
    start = data.rfind(b"\n", first, max(first, at - _REACH)) + 1 or first
    clear = at
    while start < min(clear, len(data)):
        end = _end(data, start)
        if reach := apart(data[start:end]):
            clear = max(clear, end + reach)
        start = end
    return start


def _end(data: mmap.mmap, at: int) -> int:
    """The place after the line that begins there."""
    line_end = data.find(b"\n", at)
    return len(data) if line_end < 0 else line_end + 1


def _lines(data: mmap.mmap, start: int, end: int) -> int:
    return sum(data[at:min(at + _PIECE, end)].count(b"\n") for at in range(start, end, _PIECE))


def opened_part(path: str, part: Cut) -> BinaryIO:
    """The bytes of a part. Raises OSError."""
    file = open(path, "rb")     # noqa: SIM115  (closed with what is returned)
    return io.BufferedReader(_Closing(_pieces(file, part), file), _PIECE)


class _Closing(Pieces):
    """Pieces of a file, which is closed with them."""

    def __init__(self, pieces: Iterator[bytes], file: BinaryIO) -> None:
        super().__init__(pieces)
        self._file = file

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


def _pieces(file: BinaryIO, part: Cut) -> Iterator[bytes]:
    if part.head:
        yield part.head
    file.seek(part.start)
    bytes_left, rest = part.end - part.start, b""
    while bytes_left and (piece := file.read(min(_PIECE, bytes_left))):
        bytes_left -= len(piece)
        if part.job is None:
            yield piece
            continue
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        yield b"\n".join([*_own(lines, part), b""])
    if rest:
        yield from _own([rest], part)


def _own(lines: Sequence[bytes], part: Cut) -> Iterator[bytes]:
    """The lines of the jobs of a part, blank ones in place of the others."""
    assert part.job is not None
    search, number, count = part.job.search, part.number, part.count
    for line in lines:
        match = search(line)
        yield line if (crc32(match[1].strip()) % count if match is not None else 0) == number else b""


def merged(parts: Sequence[tuple[Cut, Sequence[Finding]]]) -> list[Finding]:
    """The findings of all parts by line, as one reader would give them: what it says once is there once."""
    all_findings = [f if not part.before or not f.line else replace(f, line=f.line + part.before)
                    for part, findings in parts for f in findings]
    seen: set[tuple[str, str, str]] = set()
    merged_findings = []
    for f in sorted(all_findings, key=lambda f: f.line):
        if f.line and f.severity != "info":
            merged_findings.append(f)
        elif (key := (f.rule, f.subject, f.message)) not in seen or f.rule == "SSS540":
            seen.add(key)
            merged_findings.append(f)
    return merged_findings
