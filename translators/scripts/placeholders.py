"""Placeholders of generators in directives: ``{{ nodes }}`` and ``%(nodes)s`` are one word, whatever stands in them.

The submit command never sees them, but a reader of templates does. Blanks, quotes and other signs inside of them are
put out of its sight while it parts a directive, each by a sign of its own so that columns stay, and come back after.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sssjob.findings import Findings
from sssjob.translators.scripts.raw import Line

if TYPE_CHECKING:
    from sssjob.translators.scripts.base import Dialect, Reading, Scan

__all__ = ["scanned"]

_PLACEHOLDER: Final = re.compile(r"\{\{[^{}\n]{0,200}\}\}|%\(\w{1,99}\)[sd]", re.ASCII)
#: Signs that part words or mean something to a reader -> signs of the private area of Unicode.
_SIGNS: Final = " \t\"'#()\\,:;=+|&<>[]*!"
_HIDE: Final = {ord(sign): 0xE000 + ord(sign) for sign in _SIGNS}
_SHOW: Final = {hidden: sign for sign, hidden in _HIDE.items()}
_HIDDEN: Final = re.compile("[\ue000-\ue07f]")


def scanned(dialect: Dialect, reading: Reading, lines: list[Line], text: str) -> Scan:
    """The first stage of reading, with each placeholder as one word. text: all of the lines."""
    if "{{" not in text and "%(" not in text:
        return dialect.scan(reading, lines)
    hidden = [_hidden(line) if "{{" in line.text or "%(" in line.text else line for line in lines]
    if hidden == lines or any(_HIDDEN.search(line.text) for line in lines):     # such signs stand there already
        return dialect.scan(reading, lines)
    findings, reading.findings = reading.findings, Findings(reading.findings.file, reading.findings.limits)
    try:
        scan = dialect.scan(reading, hidden)
    finally:
        for f in reading.findings:
            findings.add(f.rule, _shown(f.subject), _shown(f.message), severity=f.severity, line=f.line,
                         column=f.column, path=f.path, hint=_shown(f.hint), excerpt=_shown(f.excerpt))
        reading.findings = findings
    scan.rest = [line._replace(text=_shown(line.text)) for line in scan.rest]
    scan.components = [[o._replace(name=_shown(o.name), text=_shown(o.text), value=None if o.value is None else
                                   _shown(o.value)) for o in part] for part in scan.components]
    return scan


def _hidden(line: Line) -> Line:
    text = _PLACEHOLDER.sub(lambda match: match[0].translate(_HIDE), line.text)
    return line if text == line.text else line._replace(text=text)


def _shown(text: str) -> str:
    return text.translate(_SHOW) if _HIDDEN.search(text) is not None else text
