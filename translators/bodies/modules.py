"""Names of environment modules in a script: those of the other site become those of this one (a site profile).

``module load gcc/9`` and ``ml gcc/9`` where they are commands of a shell, anywhere in the body; nothing else changes.
Source: module(1) of Environment Modules and of Lmod.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from sssjob.limits import LIMITS, Limits
from sssjob.translators.bodies.shell import Shell, Use

__all__ = ["named", "renamed"]

_COMMANDS: Final = re.compile(rb"(?<![\w./-])(?:module|ml)(?![\w./-])")
_SHOWN: Final = 500     # bytes of a line on either side
#: rule, subject, message, line from 0, column from 1, the line.
Tell = Callable[[str, str, str, int, int, str], None]


def renamed(text: str, names: Mapping[str, str], tell: Tell, limits: Limits = LIMITS) -> str:
    """The script with other names. names: there -> here, an empty one leaves the module out; each change is told as
    exact (SSS517), a script that cannot be looked at as such (SSS516)."""
    data = text.encode("utf-8", "surrogateescape")
    count = sum(1 for _ in islice(_COMMANDS.finditer(data), limits.shell_uses + 1))
    if not count:
        return text
    if count > limits.shell_uses:
        tell("SSS516", "module", f"names of modules are kept: more than {limits.shell_uses} such commands", 0, 0, "")
        return text
    shell = Shell(data, limits)
    uses = [use for use in shell.uses(_COMMANDS) if use.kind == "command"]
    if shell.why:
        tell("SSS516", "module", f"names of modules are kept: {shell.why}", 0, 0, "")
        return text
    pieces: list[bytes] = []
    at = line = 0
    for start, end, new in (edit for use in uses for edit in _edits(use, names)):
        line += data.count(b"\n", at, start)
        pieces += [data[at:start], new.encode()]
        at = start
        begin = data.rfind(b"\n", max(0, start - _SHOWN), start) + 1 or max(0, start - _SHOWN)
        shown = data[begin:start + _SHOWN].partition(b"\n")[0].decode("utf-8", "replace")
        what = data[start:end].decode("utf-8", "replace").strip()
        tell("SSS517", "module", f"{what} is {new or 'left out'} on this site", line, start - begin + 1, shown)
        line += data.count(b"\n", start, end)
        at = end
    return b"".join([*pieces, data[at:]]).decode("utf-8", "surrogateescape")


def named(data: bytes, limits: Limits = LIMITS) -> Iterator[tuple[str, int]]:
    """The modules that the commands of a script load, and the line of each, from 1; none of a script that cannot be
    looked at. Names that the shell makes of variables are left out."""
    if _COMMANDS.search(data) is None:
        return
    for use in islice(Shell(data, limits).uses(_COMMANDS), limits.shell_uses):
        if use.kind != "command" or not use.words:
            continue
        words = use.words[1:]
        act = next((word.text for word in words if not word.text.startswith(b"-")), b"")
        if act not in _LOADING and (use.words[0].text != b"ml" or act in _ACTS or act in _LOOKING):
            continue
        for word in words:
            if _MODULE.fullmatch(word.text) is not None and word.text not in _LOADING:
                yield word.text.decode(), data.count(b"\n", 0, word.start) + 1


_LOADING: Final = (b"load", b"add", b"try-load", b"try-add", b"swap", b"switch")
_LOOKING: Final = (b"list", b"avail", b"av", b"spider", b"show", b"display", b"whatis", b"help", b"keyword", b"key",
                   b"overview", b"ov", b"save", b"restore", b"savelist", b"describe", b"reset", b"refresh", b"update")
_MODULE: Final = re.compile(rb"[A-Za-z0-9_][\w./+@:=-]{0,199}")


def _edits(use: Use, names: Mapping[str, str]) -> list[tuple[int, int, str]]:
    """(start, end, text) of what takes the place of words, in order; a command without any module left is ``:``."""
    edits: list[tuple[int, int, str]] = []
    before = use.words[0].end
    modules_left = 0
    for word in use.words[1:]:
        new = names.get(word.text.decode("utf-8", "surrogateescape"))
        if new is None:
            modules_left += word.text not in _ACTS and not word.text.startswith(b"-")
        elif new:
            modules_left += 1
            edits.append((word.start, word.end, shlex.quote(new)))
        else:
            edits.append((before, word.end, ""))
        before = word.end
    if edits and not modules_left:
        return [(use.words[0].start, use.words[-1].end, ":")]
    return edits


_ACTS: Final = frozenset((b"load", b"add", b"try-load", b"try-add", b"unload", b"rm", b"del", b"remove", b"swap",
                          b"switch", b"use", b"purge", b"is-loaded", b"is-avail"))
