"""How bsub of LSF finds and splits directives: the first stage.

Source: the command reference of LSF 10.1, bsub, and sub_parse of openlava, which is of the same line: blanks may stand
before ``#`` and between it and ``BSUB``, what follows must begin with a dash, all of the file is read, a backslash at
the end of a directive takes up the next line, and a word that begins with ``#`` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sssjob.templates.quoting import Directive, bare, bsub
from sssjob.translators.scripts.base import APPROXIMATED, Reading, Scan
from sssjob.translators.scripts.raw import (
    Line,
    Option,
    Refusal,
    Word,
    command_words,
    option_of,
    plain_breaks,
    quoted_words,
)

FLAGS: Final = frozenset((
    "ar", "B", "datachk", "H", "hl", "I", "IS", "ISp", "ISs", "IX", "Ip", "Is", "K", "N", "Nd", "Ne", "r", "rn", "ti",
    "tty", "ul", "V", "x", "XF", "Zs"))
VALUES: Final = frozenset((
    "a", "alloc_flags", "app", "b", "C", "c", "clusters", "cn_cu", "cn_mem", "core_isolation", "csm", "cwd", "D",
    "data", "E", "e", "env", "eo", "Ep", "eptl", "ext", "extsched", "F", "f", "freq", "G", "g", "gpu", "i", "is", "J",
    "Jd", "Jm", "jobaff", "jsdl", "jsdl_strict", "jsm", "json", "k", "L", "ln_mem", "ln_slots", "Lp", "M", "m", "mig",
    "n", "network", "nnodes", "notify", "o", "oo", "outdir", "P", "p", "pack", "ptl", "Q", "q", "R", "rcacct", "rnc",
    "S", "s", "sla", "smt", "sp", "stage", "step_cgroup", "T", "t", "U", "u", "v", "W", "We", "w", "wa", "wt", "yaml"))
_WRITTEN: Final = frozenset(f"-{name}" for name in FLAGS | VALUES if name != "gpu")
_START: Final = re.compile(r"\s*#\s*BSUB\s*(?=-)")
#: One option, with a value that is plain or in double quotes: nearly all lines are such.
_PLAIN: Final = re.compile(r"""\s*#\s*BSUB\s*(-(\w+))(?:\s+(?:"([^"]*+)"|([^\s"'#\\]++)))?\s*""")
_SHOWN: Final = re.compile(r"\s*#\s*BSUB\b\s*(\S)")


def live(lines: list[Line]) -> list[Line]:
    """The lines that bsub takes for directives."""
    return [line for line in lines if _START.match(line.text)]


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives of a script, wherever they stand."""
    lines = plain_breaks(lines, lambda line, column: reading.findings.add(
        APPROXIMATED, "script", "DOS line breaks, which a shell does not take; plain ones are put", line=line,
        column=column))
    scan_result, taken = Scan(), 0
    options = scan_result.components[0]
    for index, line in enumerate(lines):
        if index < taken:
            continue
        number, plain, _ = line
        hit = _PLAIN.fullmatch(plain)
        if hit is not None:
            flag, name, quoted, value = hit.groups()
            if quoted is not None:
                value = quoted
            if name in (FLAGS if value is None else VALUES):
                options.append(option_of((flag, value, number, hit.start(1) + 1, plain)))
                continue
        begin = _START.match(line.text)
        if begin is None:
            if "BSUB" in line.text and (shown := _SHOWN.match(line.text)) is not None and shown[1] in "–—−":     # noqa: RUF001
                reading.dead(line, "what follows begins with another dash than -", shown.start(1) + 1)
            scan_result.rest.append(line)
            continue
        text, taken = _continued(lines, index) if line.text.endswith("\\") else (line.text, index + 1)
        try:
            words_found = quoted_words(text, line.number, begin.end())
        except Refusal as error:
            reading.refuse(str(error), line.number, error.column, "directive", line.text)
            continue
        options += _parse(reading, words_found, line.text)
    return scan_result


def _continued(lines: list[Line], index: int) -> tuple[str, int]:
    """A directive with the lines that a backslash takes up, and the index of the one after them."""
    text = [lines[index].text]
    while text[-1].endswith("\\") and index + 1 < len(lines):
        index += 1
        text[-1] = text[-1][:-1]
        text.append(lines[index].text)
    return "".join(text), index + 1


def arguments(reading: Reading, text: str) -> list[Option]:
    """Options of the command line."""
    return list(_parse(reading, command_words(text), text))


def _parse(reading: Reading, words_found: list[Word], text: str) -> Iterator[Option]:
    """Options out of words; a value may be glued to an option of one letter."""
    queue = list(reversed(words_found))
    while queue:
        at = queue.pop()
        name = at.text[1:]
        if not at.text.startswith("-"):
            reading.findings.add(APPROXIMATED, at.text, f"{at.text[:80]!r} and what follows are no options; left out",
                                 line=at.line, column=at.column, excerpt=text)
            return
        if name in FLAGS:
            yield Option(at.text, None, at.line, at.column, text)
        elif name in VALUES or name[:1] in VALUES:
            glued = "" if name in VALUES else name[1:]
            if not glued and not queue:
                reading.refuse(f"{at.text} wants a value", at.line, at.column, at.text, text)
                return
            yield Option(f"-{name[:1] if glued else name}", glued or queue.pop().text, at.line, at.column, text)
        else:
            reading.refuse(f"{at.text[:80]}: no such option", at.line, at.column, at.text, text)
            return


def directive(name: str, value: str | None) -> str:
    """``-n 4``, ``-R "span[hosts=1]"``."""
    if value is not None and name in _WRITTEN and bare(value):
        return f"{name} {value}"
    text = bsub(Directive(name.lstrip("-"), value, name))
    if name == "-gpu" and "=" in (value or "") and not text.endswith(("'", '"')):
        return f'-gpu "{value}"'        # as everybody writes it
    return text
