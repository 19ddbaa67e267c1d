"""How findings and problems look on standard error: one line each, with the source line and a caret on a terminal, or
one JSON object a line."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from typing import IO, Any, Final

from sssjob.cli._tables import cells
from sssjob.findings import Finding, escape, joined

#: Names of variables whose values are not shown unless asked for.
SECRET: Final = "pass|secret|token|credential|api_?key|private"
_COLOURS: Final = {"error": "31;1", "warning": "33", "info": "36"}
#: Columns of the source line shown left of the caret.
_BEFORE: Final = 50
#: Columns of tables in a pipe or a file whose cells are to be found by a search: paths are shorter.
LONG: Final = 1000
_VARIABLE: Final = re.compile(rf"""(<Variable\s[^>]*?name\s*=\s*["'][^"'>]*(?:{SECRET})[^>]*>)([^<]*)""", re.IGNORECASE)


def coloured(stream: Any) -> bool:
    """Whether the stream is a terminal that wants colours (NO_COLOR, TERM=dumb)."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(stream: Any, unseen: int = 100) -> int:
    """Columns to write in: those of the terminal, else unseen."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return unseen


def say(text: str) -> None:
    """A line, escaped, on standard error; one that cannot be written changes neither result nor exit status."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        swallow(sys.stderr)


def swallow(stream: IO[str]) -> None:
    """Let everything that is still written to a stream go nowhere, the interpreter's last flush too."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):       # the stream is no file (tests)
        return


def record(data: dict[str, Any]) -> None:
    """One JSON object on standard error."""
    say(json.dumps(data))


def problem(message: str, *, as_json: bool = False, status: int = 0) -> None:
    """What went wrong with the command itself, not with a place in a document."""
    if as_json:
        record({"type": "error", "status": status, "message": message})
    else:
        say(f"sssjob: {escape(joined(message), 2000)}")


def show(finding: Finding, *, as_json: bool = False, brief: bool = False) -> None:
    """One finding on standard error; the values of variables that look secret are masked in the source line, which
    brief leaves out."""
    stream = sys.stderr
    finding = replace(finding, excerpt=masked(finding.excerpt))
    if as_json:
        record(finding.record())
        return
    line = str(finding)
    if finding.path and not finding.line:
        place = f"{finding.place}:{escape(finding.path)}" if finding.file else escape(finding.path)
        line = f"{place}{line.removeprefix(finding.place)}"
    if coloured(stream):
        word = f" {finding.severity} "
        line = line.replace(word, f" \x1b[{_COLOURS[finding.severity]}m{finding.severity}\x1b[0m ", 1)
    say(line)
    if stream.isatty() and finding.severity != "info" and not brief:
        for row in picture(finding):
            say(row)


def masked(line: str) -> str:
    """A line of XML with stars in place of the values of variables that look secret; as long as before."""
    return _VARIABLE.sub(lambda m: m[1] + "*" * len(m[2]), line)


def picture(finding: Finding) -> list[str]:
    """The source line and a caret under the column; where they are not known, the path in the document."""
    source = finding.excerpt.replace("\t", " ").rstrip()
    if not source:
        return [f"    {escape(finding.path)}"] if finding.path and finding.line else []
    room = width(sys.stderr) - 5
    if not finding.column:
        return ["    " + escape(source.strip(), room - 1)]
    from sssjob.xml.encoding import LEFT

    cut = source.startswith("…") and finding.column > LEFT + 1
    at = min(LEFT + 1 if cut else finding.column - 1, len(source))
    start = max(0, at - _BEFORE)
    before = escape(source[start:at], 1000)
    after = escape(source[at:], max(20, room - cells(before)))
    return [f"    {before}{after}", f"    {' ' * cells(before)}^"]
