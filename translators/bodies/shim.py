"""The shim: lines between the directives and the commands that define the source's variables from the target's.

It stands between two marker lines, the first of which names the dialects and sums up the lines between, so that our own
shim is known again and one that somebody edited is kept.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sssjob.lrm.variables import Facts, Given

__all__ = ["Shim", "definition", "file_definition", "folder_definition", "found", "marked", "taken_out"]

_BEGIN: Final = "# >>> sssjob shim: "
_END: Final = "# <<< sssjob shim\n"
_MARK: Final = re.compile(
    rf"^{re.escape(_BEGIN)}([a-z][a-z0-9-]{{0,40}}(?:\+[a-z][a-z0-9-]{{0,40}}){{0,8}}) on ([a-z][a-z0-9-]{{0,40}}), "
    r"([0-9a-f]{8})\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shim:
    """A shim in a body: where it stands, the dialects that the commands below are written for, the one that it was
    made for, and whether it is as it was made."""

    start: int
    end: int
    sources: tuple[str, ...]
    target: str
    intact: bool


def found(body: str) -> Iterator[Shim]:
    """The shims of a body."""
    if _BEGIN not in body:
        return
    for mark in _MARK.finditer(body):
        end = body.find(_END, mark.end())
        if end >= 0:
            yield Shim(mark.start(), end + len(_END), tuple(mark[1].split("+")), mark[2],
                       _sum(body[mark.end():end]) == mark[3])


def taken_out(text: str, source: Facts, target: Facts, facts: Callable[[str], Facts | None],
              edited: Callable[[int, int, str], None]) -> tuple[str, list[Facts], list[tuple[int, int]]]:
    """The body without our shims for others than the target, the dialects that it is written for, and the lines that
    went (the line of the new body before which they stood, how many). edited: told of a shim that somebody changed:
    its line of the body from 0, its column from 1, the line."""
    cuts: list[tuple[int, int]] = []
    sources = {} if source.name == target.name else {source.name: source}
    for old_shim in reversed(list(found(text))):
        origins = [f for f in map(facts, old_shim.sources) if f is not None]
        if old_shim.target == target.name:
            for f in origins:
                sources.pop(f.name, None)
            continue
        if not old_shim.intact:
            at = text.count("\n", 0, old_shim.start)
            edited(at, 1, text[old_shim.start:text.index("\n", old_shim.start)])
            continue
        lines = text.count("\n", old_shim.start, old_shim.end)
        cuts = [(text.count("\n", 0, old_shim.start), lines), *((at - lines, n) for at, n in cuts)]
        text = text[:old_shim.start] + text[old_shim.end:]
        sources = {f.name: f for f in origins if f.name != target.name} | sources
    return text, list(sources.values()), cuts


def marked(lines: Iterable[str], sources: Sequence[str], target: str) -> str:
    """The shim with its marker lines."""
    inner = "".join(f"{line}\n" for line in lines)
    return f"{_BEGIN}{'+'.join(sources)} on {target}, {_sum(inner)}\n{inner}{_END}"


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def definition(name: str, value: Given, absent: str = "") -> list[str]:
    """The lines that export a variable; where the target has nothing to say it stays unset, or gets the value that
    means so."""
    line = f'export {name}="{value.text}"'
    if value.needs and value.none:
        guard = f'[ "${{{value.needs}:-{value.none}}}" != "{value.none}" ]'
    elif value.needs:
        guard = f'[ -n "${{{value.needs}+x}}" ]'
    else:
        return [line] if not value.text.isalnum() else [f"export {name}={shlex.quote(value.text)}"]
    if absent:
        return [f"if {guard}; then {line}; else export {name}={shlex.quote(absent)}; fi"]
    return [f"if {guard}; then {line}; fi"]


def file_definition(name: str, value: Given, clean: list[str] | None) -> list[str]:
    """The lines that make a file and export its name. clean: names of the files that are removed when the job ends,
    to which this one is added; None: the script has a trap of its own."""
    shell_lines = [f'if [ -n "${{{value.needs}+x}}" ]; then', f'    export {name}="$(mktemp)"',
                   *f'    {value.text} > "${name}"'.split("\n")]
    if clean is not None:
        shell_lines.append(f"    {_trap('rm -f', name, clean)}")
    return [*shell_lines, "fi"]


def folder_definition(name: str, value: Given, clean: list[str] | None) -> list[str]:
    """The same of a folder."""
    shell_lines = [f'export {name}="{value.text}"']
    if clean is not None:
        shell_lines.append(_trap("rm -rf", name, clean))
    return shell_lines


def _trap(remove: str, name: str, clean: list[str]) -> str:
    """The line that removes something at the end, with all that an earlier such line removes: a shell has one trap."""
    earlier = "".join(f"; {command}" for command in clean)
    clean.append(f'{remove} "${{{name}-}}"')
    return f"trap '{remove} \"${name}\"{earlier}' 0"
