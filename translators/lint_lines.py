"""Checks of the lines of a script: what looks like a directive, what the shell makes of them, and the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from sssjob.limits import LIMITS
from sssjob.lrm.variables import Facts
from sssjob.translators.lint_base import Hit, Script
from sssjob.translators.scripts.body import all_facts, facts_of
from sssjob.translators.scripts.raw import texts_of
from sssjob.translators.scripts.rows import dialects

__all__ = ["commented", "conflict", "ignored", "late", "line_breaks", "shebang", "template", "typographic"]


def commented(script: Script) -> Iterator[Hit]:
    """Directives that are commented out."""
    prefix = script.dialect.prefix
    name = prefix.removeprefix("#")
    if script.text.count(name) == "\n".join(texts_of(script.live_lines)).count(name):
        return                          # it stands in live directives alone
    looks = _commented(prefix)
    for line in script.lines[:script.first_command]:
        if line.number not in script.live and looks.match(line.text) and not line.text.lstrip().startswith(prefix):
            yield Hit(line.number, 1, "directive", "a directive that is commented out; nothing reads it", "info")


@cache
def _commented(prefix: str) -> re.Pattern[str]:
    """What a directive looks like that is commented out. prefix: of live ones."""
    return re.compile(rf"\s*#[#\s]*#?\s*{re.escape(prefix.removeprefix('#'))}(?=[\s-])")


def late(script: Script) -> Iterator[Hit]:
    """Directives below the first command, which are obeyed all the same."""
    live = script.live_lines
    for number, *_ in live if live and live[-1].number > script.first_command else ():
        if number > script.first_command:
            yield Hit(number, 1, "directive", f"{script.dialect.title} obeys this line although it stands below the "
                      f"first command (line {script.first_command}), in a here-document too")


def ignored(script: Script) -> Iterator[Hit]:
    """The first line for each other manager."""
    for prefix, title in _PREFIXES.items():
        if prefix == script.dialect.prefix or prefix not in script.text:
            continue
        hit = next((n for n in script.lines[:script.first_command] if n.text.startswith(prefix) and n.number not in
                    script.live and n.text[len(prefix):len(prefix) + 1] in (" ", "\t", "-")), None)
        if hit is not None and not any(o.line == hit.number for o in script.options):
            yield Hit(hit.number, 1, prefix, f"lines of {title} stand here, which {script.dialect.title} ignores",
                      "info")


_PREFIXES: Final = {"#SBATCH": "Slurm", "#PBS": "PBS", "#BSUB": "LSF", "#$": "Grid Engine", "#COBALT": "Cobalt"}


def line_breaks(script: Script) -> Iterator[Hit]:
    """DOS line breaks; the first is told."""
    hit = next((line for line in script.lines if line.end == "\r\n"), None)
    if hit is not None:
        yield Hit(hit.number, len(hit.text) + 1, "line break",
                  "DOS line breaks: the shell takes the carriage return for a part of the last word of each line")


def shebang(script: Script) -> Iterator[Hit]:
    """A script that does not begin with ``#!``."""
    first = script.lines[0].text if script.lines else ""
    if not first.startswith("#!"):
        yield Hit(1, 1, "#!", "no #! at the very beginning: " + _SHELL.get(script.dialect.name, _SHELL[""]))


_LOGIN: Final = "the user's login shell runs it, unless -S says another"
_SHELL: Final = {"pbspro": _LOGIN, "torque": _LOGIN, "": "the site chooses the shell",
                 "sge": "the shell of the queue runs it, unless -S says another"}


def typographic(script: Script) -> Iterator[Hit]:
    """Typographic dashes and quotes in directives."""
    if script.data.isascii():
        return
    for line in script.lines:
        hit = _CURLY.search(_COMMENT.sub("", line.text, 1)) if line.number in script.live else None
        if hit is not None:
            yield Hit(line.number, hit.start() + 1, "directive", f"{hit[0]} is a typographic sign, as word processors "
                      "put it; the submit command knows only - and straight quotes")


_COMMENT: Final = re.compile(r"(?<=\S)\s+#.*", re.DOTALL)
_CURLY: Final = re.compile("[\u2010-\u2015\u2212\u2018-\u201f\u00a0]")


def conflict(script: Script) -> Iterator[Hit]:
    """Marks of a conflict that was never merged; the first is told."""
    if b"<<<<<<<" not in script.data and b">>>>>>>" not in script.data:
        return
    for line in script.lines:
        if _MARKER.match(line.text):
            yield Hit(line.number, 1, "marker", "a conflict that was never merged stands here")
            return


_MARKER: Final = re.compile(r"(?:<{7}|>{7}) \S")


def template(script: Script) -> Iterator[Hit]:
    """The first placeholder of each generator."""
    own, text = _OF_FLUX if script.dialect.name == "flux" else None, script.text
    for what, pattern, first, second, least in _GENERATORS:
        count = text.count(first) + (text.count(second) if second else 0)
        for line in [n for n in script.lines if first in n.text or (second and second in n.text)] \
                if count >= least else ():
            hit = next((h for h in pattern.finditer(line.text[:4096]) if own is None or not own.fullmatch(h[0])),
                       None)
            if hit is not None:
                yield Hit(line.number, hit.start() + 1, hit[0][:40], f"a placeholder of {what}: the script is a "
                          "template, and values with placeholders are not checked", "info")
                break


#: What is not also the shell's own: ``${x}`` and ``%x`` are.
#: With the signs of which one stands in every placeholder, and how often at least.
_GENERATORS: Final = (
    ("Jinja or Mustache", re.compile(r"\{\{.{0,200}?\}\}|\{%.{0,200}?%\}"), "{{", "{%", 1),
    ("Python's % operator", re.compile(r"%\(\w{1,99}\)[sd]", re.ASCII), "%(", "", 1),
    ("string.Template or make", re.compile(r"\$\$\{\w{1,99}\}", re.ASCII), "$${", "", 1),
    ("autoconf or CMake", re.compile(r"(?<![\w@.])@[A-Z_]\w{0,99}@(?![\w.])", re.ASCII), "@", "", 2),
)
#: What Flux fills in itself in the names of files (flux-submit(1), MUSTACHE TEMPLATES).
_OF_FLUX: Final = re.compile(r"\{\{(?:id|jobid|name|node|nnodes|size|task|taskid|tmpdir)(?:\.\w{1,99})?\}\}", re.ASCII)


def foreign_variables(script: Script) -> Iterator[Hit]:
    """Variables of other managers in the commands."""
    own = facts_of(script.dialect)
    if own is None:
        return
    text = script.text
    others = _others(own.prefixes, tuple(map(id, dialects())))
    for facts in dict.fromkeys([facts for prefix, facts in others if prefix in text]):
        seen: set[str] = set()
        for name, line, column, _ in _uses(script, facts):
            if facts.own(name) and name not in seen and not name.startswith(own.prefixes):
                seen.add(name)
                yield Hit(line, column, name, f"{name} is a variable of {facts.title}; {script.dialect.title} does not "
                          "set it", "info")


@lru_cache(maxsize=64)
def _others(own: tuple[str, ...], registered: tuple[int, ...]) -> list[tuple[str, Facts]]:
    """The other managers, one for each beginning of variables, by these. registered: what tells the dialects that there
    are."""
    others = {facts.prefixes: facts for facts in all_facts().values() if facts.prefixes != own}
    return [(prefix, facts) for prefixes, facts in others.items() for prefix in prefixes]


def unset(script: Script) -> Iterator[Hit]:
    """Variables that are set only where the job asks for something it does not ask for."""
    facts = facts_of(script.dialect)
    if facts is None or not facts.asked:
        return
    text = script.text
    conditional = [name for name in _conditional(facts) if name in text]
    missing = {name for name in conditional if facts.variables[name] not in script.known} if conditional else ()
    seen: set[str] = set()
    for name, line, column, kind in _uses(script, facts) if missing else ():
        if kind in ("simple", "braced") and name in missing and name not in seen:
            seen.add(name)
            yield Hit(line, column, name, f"{name} is set only where the job asks for it, and no directive does")


@cache
def _conditional(facts: Facts) -> list[str]:
    """The variables that are set only where the job asks for something."""
    return [name for name, meaning in facts.variables.items() if meaning in facts.asked]


def _uses(script: Script, facts: Facts) -> Iterator[tuple[str, int, int, str]]:
    """(name, line, column, kind) of every variable of a manager that a script expands; none without the grammar."""
    if not facts.in_text(script.text):
        return
    from sssjob.translators.bodies.carry import pattern

    shell = script.shell
    if not script.readable or shell.root is None:
        return
    for count, use in enumerate(shell.uses(pattern(facts))):
        if count > LIMITS.shell_uses:
            return
        if use.kind in ("simple", "braced", "operated", "arithmetic"):
            begin = script.data.rfind(b"\n", 0, use.start) + 1
            before = script.data[begin:use.outer[0]].decode("utf-8", "surrogateescape")
            yield use.name, script.data.count(b"\n", 0, use.start) + 1, len(before) + 1, use.kind
