"""``convert --diff``: a unified diff of a script and what becomes of it, with the reasons beside each hunk.

The reasons stand behind the second ``@@``, where patch(1) and git take any text, so that the diff can be applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from sssjob.consequences import worst_first
from sssjob.errors import UsageError
from sssjob.findings import Finding, escape
from sssjob.translators.base import Translator

_CONTEXT: Final = 3
_LARGE: Final = 5_000           # lines beyond which lines that come often are no place to begin at
_LONGEST: Final = 300           # characters of one reason
_NO_END: Final = "\\ No newline at end of file\n"

Opcode = tuple[str, int, int, int, int]


class Side(NamedTuple):
    """One of the two texts: what it is called, its format, its lines."""

    name: str
    format: str
    lines: list[str]


def wants_scripts(reader: Translator, writer: Translator) -> None:
    """Refuse what is no script of one file on either side."""
    for side in (reader, writer):
        if side.kind != "script" or side.files is not None:
            raise UsageError(f"--diff compares scripts of one file, and {side.name} is no such format")


def difference(before: tuple[str, str, bytes], after: tuple[str, str, str], findings: Iterable[Finding]) -> str:
    """The diff, or nothing where both texts are the same.

    before, after: name, format and text; findings: those of the conversion, of which those without a line stand at the
    first hunk; those on lines that are in no hunk are left to whoever prints findings.
    """
    old = Side(before[0], before[1], _lines(before[2].decode("utf-8", "surrogateescape")))
    new = Side(after[0], after[1], _lines(after[2]))
    reasons = sorted((f for f in findings if f.kind != "exact"),
                     key=lambda f: (worst_first(f.severity, f.consequence), f.line, f.column))
    pieces = []
    for number, group in enumerate(_hunks(old.lines, new.lines)):
        pieces.append(_hunk(old, new, group, reasons, first=not number))
    if not pieces:
        return ""
    return "".join([f"{sign} {escape(side.name, 4096)}\t{side.format}\n" for sign, side in (("---", old), ("+++", new))]
                   + pieces)


def _lines(text: str) -> list[str]:
    """The lines with their ends; a carriage return is a part of its line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[list[Opcode]]:
    """Groups of changes with their context; what both texts begin and end with is not searched."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    alike = 0
    while alike < min(len(old), len(new)) - same and old[-1 - alike] == new[-1 - alike]:
        alike += 1
    begin, end = max(0, same - _CONTEXT), max(0, alike - _CONTEXT)
    middle = old[begin:len(old) - end], new[begin:len(new) - end]
    matcher = SequenceMatcher(None, *middle, autojunk=max(map(len, middle)) > _LARGE)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield [(tag, a + begin, b + begin, c + begin, d + begin) for tag, a, b, c, d in group]


def _hunk(old: Side, new: Side, group: list[Opcode], reasons: Sequence[Finding], *, first: bool) -> str:
    a, b, c, d = group[0][1], group[-1][2], group[0][3], group[-1][4]
    why = "; ".join(dict.fromkeys(_reason(f) for f in reasons if a < f.line <= b or (first and not f.line)))
    hunk = [f"@@ -{_range(a, b)} +{_range(c, d)} @@{f' {why}' if why else ''}\n"]
    for tag, start, end, begin, stop in group:
        if tag == "equal":
            hunk += [_line(" ", line) for line in old.lines[start:end]]
        else:
            hunk += [_line("-", line) for line in old.lines[start:end]]
            hunk += [_line("+", line) for line in new.lines[begin:stop]]
    return "".join(hunk)


def _reason(finding: Finding) -> str:
    at = f"line {finding.line}: " if finding.line else ""
    return f"{at}{finding.rule}{finding.effect} {escape(finding.message, _LONGEST)}"


def _range(start: int, end: int) -> str:
    """Lines as a hunk names them: the first and the number; of none the line before."""
    count = end - start
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{_NO_END}"
