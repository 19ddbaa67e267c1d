"""Checks of the commands of a script."""

from __future__ import annotations

from collections.abc import Iterator

from sssjob.limits import LIMITS
from sssjob.lrm.variables import Facts
from sssjob.translators.lint_base import Hit, Script
from sssjob.translators.scripts.body import all_facts, facts_of

__all__ = ["foreign_variables", "unset"]


def foreign_variables(script: Script) -> Iterator[Hit]:
    """Variables of other managers in the commands."""
    own = facts_of(script.dialect)
    if own is None:
        return
    text = script.text
    for facts in {f.prefixes: f for f in all_facts().values() if f.prefixes != own.prefixes}.values():
        if not any([prefix in text for prefix in facts.prefixes]):
            continue
        seen: set[str] = set()
        for name, line, column, _ in _uses(script, facts):
            if facts.own(name) and name not in seen and not name.startswith(own.prefixes):
                seen.add(name)
                yield Hit(line, column, name, f"{name} is a variable of {facts.title}; {script.dialect.title} does not "
                          "set it", "info")


def unset(script: Script) -> Iterator[Hit]:
    """Variables that are set only where the job asks for something it does not ask for."""
    facts = facts_of(script.dialect)
    if facts is None or not facts.asked:
        return
    conditional = [name for name, meaning in facts.variables.items() if meaning in facts.asked and name in script.text]
    missing = {name for name in conditional if facts.variables[name] not in script.known}
    seen: set[str] = set()
    for name, line, column, kind in _uses(script, facts) if missing else ():
        if kind in ("simple", "braced") and name in missing and name not in seen:
            seen.add(name)
            yield Hit(line, column, name, f"{name} is set only where the job asks for it, and no directive does")


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
