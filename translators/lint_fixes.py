"""Mending what lint finds, where the mended text means what was meant in every case: nothing else of it changes.

DOS line breaks, typographic signs in directives, and options that are cut short. What is mended is a row of ``FIXES``;
a finding is mended in its own line only, but for line breaks, which are those of the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from sssjob.findings import Finding
from sssjob.translators.scripts.base import Dialect, dialect_of
from sssjob.translators.scripts.raw import Line, lines_of

__all__ = ["fixed"]

_DOS: Final = re.compile(r"DOS line breaks")


def fixed(name: str, data: bytes, findings: Iterable[Finding]) -> tuple[bytes, int]:
    """The text with what can be mended of these findings, and how many of them that were.

    name: the dialect; data: the text that the findings are of.
    """
    dialect = dialect_of(name)
    if dialect is None:
        return data, 0
    lines = {line.number: line for line in lines_of(data.decode("utf-8", "surrogateescape"))}
    before, count = dict(lines), 0
    for finding in findings:
        if _DOS.match(finding.message) and finding.rule in ("SSS505", "SSS527"):
            changed = {number: line._replace(end="\n") for number, line in lines.items() if line.end == "\r\n"}
        else:
            fix, line = FIXES.get(finding.rule), lines.get(finding.line)
            text = fix(dialect, line, finding) if fix is not None and line is not None else None
            changed = {} if text is None or line is None or text == line.text else {
                finding.line: line._replace(text=text)}
        lines |= changed
        count += bool(changed)
    if lines == before:
        return data, 0
    return "".join(line.text + line.end for line in lines.values()).encode("utf-8", "surrogateescape"), count


def _typographic(dialect: Dialect, line: Line, finding: Finding) -> str:
    """A directive with straight quotes, blanks and dashes in place of those of a word processor."""
    plain = line.text.translate(_STRAIGHT)
    return _DASH.sub(lambda hit: hit["blank"] + _dashes(dialect, hit["name"]) + hit["name"], plain)


def _dashes(dialect: Dialect, name: str) -> str:
    """The dashes of an option: word processors make one sign of two."""
    return "--" if f"--{name}" in dialect.known else "-"


_STRAIGHT: Final = {**dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B), "'"),
                    **dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F), '"'), 0xA0: " "}
_DASH: Final = re.compile("(?P<blank>[ \t])[\u2010-\u2015\u2212]+-?(?P<name>[A-Za-z][\\w-]*)", re.ASCII)


def _whole(dialect: Dialect, line: Line, finding: Finding) -> str | None:
    """A directive with an option's whole name in place of one that is cut short and read as it all the same."""
    hit = _READ_AS.match(finding.message)
    at = finding.column - 1
    if hit is None or finding.severity != "info" or not line.text.startswith(hit[1], at):
        return None
    return line.text[:at] + hit[2] + line.text[at + len(hit[1]):]


_READ_AS: Final = re.compile(r"(--[\w-]+) is no option; it is read as (--[\w-]+)")

#: Rule -> how the line of a finding is mended: the new text, None where it cannot be.
FIXES: Final[dict[str, Callable[[Dialect, Line, Finding], str | None]]] = {"SSS533": _typographic, "SSS525": _whole}
