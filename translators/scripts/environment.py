"""Variables of a job, and what of the submitter's goes along."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from sssjob.document.model import Environment
from sssjob.request.asked import JOB, Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.raw import Option, split_outside
from sssjob.translators.scripts.reading import Reading

__all__ = ["holds_macro", "named_variables", "read_variables", "variables"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def read_variables(reading: Reading, text: str, option: Option, export: str | None, *, whole: bool = False) -> None:
    """``A=1,B``: variables, and the names alone as Extension ExportNames. Quotes around a value go; whole: those around
    name and value do, and no other ones."""
    scope = reading.scope(("Environment",))
    if export is not None:
        _export(scope, export)
    names: list[str] = []
    for part in split_outside(text, ","):
        name, sign, value = (_bare(part.strip()) if whole else part.strip()).partition("=")
        if not _NAME.fullmatch(name):
            if part.strip():
                reading.misfit(option, f"{part!r} is no variable", "NAME or NAME=VALUE")
                return
        elif sign:
            reading.put("Environment/Variable", value if whole else _bare(value), option, name=name)
        else:
            names.append(name)
    if names:
        reading.put("Extension[name=ExportNames,type=Scheduler]", ",".join(names), option)


def _export(scope: object, value: str) -> None:
    assert isinstance(scope, Environment)
    scope.attributes = {"export": value}


def _bare(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def named_variables(asking: Asking) -> Iterator[Entry]:
    """The variables of the job whose names are such, each with its name in the attribute."""
    for e in asking.variables:
        if e.tag != "Variable" or e.level != JOB:
            continue
        e.used = True
        e.understood |= {"name"}
        if _NAME.fullmatch(e.attributes.get("name", "")):
            if "(" in e.text and asking.macros and holds_macro(asking, e.text):
                asking.unsaid.append((e, f"the value of {e.attributes['name']} depends on the job"))
                continue
            yield e
        else:
            asking.dropped(e, f"{e.attributes.get('name')!r} is no name of a variable")


def holds_macro(asking: Asking, text: str) -> bool:
    """Whether a text has something that its own manager replaces in every job, as ``$(Process)`` of HTCondor."""
    lower = text.lower()
    return "$int(" in lower or any(f"$({name})" in lower for name in asking.macros)


_SIGNS: Final = re.compile(r"[,'\"\\\x00-\x1f\x7f]")
_QUOTED: Final = re.compile(r"[^'\"\\\x00-\x1f\x7f]*")


def _spelt(name: str, value: str) -> str | None:
    """A value with a comma or with blanks around it in quotes."""
    if _SIGNS.search(value) is None and value == value.strip():
        return f"{name}={value}"
    return f"{name}='{value}'" if _QUOTED.fullmatch(value) else None


def variables(asking: Asking, spelt: Callable[[str, str], str | None] = _spelt) -> list[str]:
    """``A=1`` and names. spelt: one variable; None where the directive cannot say it, for managers read quotes,
    backslashes and line breaks in their own ways: those are left to the script."""
    texts = []
    for e in named_variables(asking):
        name = e.attributes.get("name", "")
        text = spelt(name, e.text)
        if text is None:
            asking.unsaid.append((e, f"the value of {name} cannot be quoted"))
        else:
            texts.append(text)
    names = asking.extension("ExportNames")
    return texts + ([] if names is None else names.text.split(","))
