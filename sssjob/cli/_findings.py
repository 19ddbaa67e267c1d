"""How findings and problems look on standard error: one line each, with the source line and a caret on a terminal, or
one JSON object a line."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from typing import Any, Final

from sssjob.findings import Finding, escape

__all__ = ["coloured", "picture", "problem", "record", "show"]

_COLOURS: Final = {"error": "31;1", "warning": "33", "info": "36"}
#: Columns of the source line shown left and right of the caret.
_BEFORE, _AFTER = 50, 46


def coloured(stream: Any) -> bool:
    """Whether the stream is a terminal that wants colours (NO_COLOR, TERM=dumb)."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def record(data: dict[str, Any]) -> None:
    """One JSON object on standard error."""
    print(json.dumps(data), file=sys.stderr)


def problem(message: str, *, as_json: bool = False, status: int = 0) -> None:
    """What went wrong with the command itself, not with a place in a document."""
    if as_json:
        record({"type": "error", "status": status, "message": message})
    else:
        print(f"sssjob: {escape(message, 2000)}", file=sys.stderr)


def show(finding: Finding, *, as_json: bool = False) -> None:
    """One finding on standard error."""
    stream = sys.stderr
    if as_json:
        record(finding.record())
        return
    line = str(finding)
    if coloured(stream):
        word = f" {finding.severity} "
        line = line.replace(word, f" \x1b[{_COLOURS[finding.severity]}m{finding.severity}\x1b[0m ", 1)
    print(line, file=stream)
    if stream.isatty():
        for row in picture(finding):
            print(row, file=stream)


def picture(finding: Finding) -> list[str]:
    """The source line and a caret under the column; nothing where they are not known."""
    source = finding.excerpt.rstrip("\r\n").replace("\t", " ")
    if not source.strip():
        return []
    if not finding.column:
        return ["    " + escape(source.strip(), _BEFORE + _AFTER)]
    at = min(finding.column - 1, len(source))
    start = max(0, at - _BEFORE)
    before, after = escape(source[start:at], 1000), escape(source[at:at + _AFTER], 1000)
    gap = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in before)
    return [f"    {before}{after}", f"    {' ' * gap}^"]
