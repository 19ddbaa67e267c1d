"""How a job that was submitted is changed: the options in which two specifications of it differ, as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from psij.exceptions import InvalidJobException
from sssjob.lrm.sizes import POWERS, in_bytes
from sssjob.templates.quoting import Directive

__all__ = ["Changes", "Difference", "commands", "differences", "megabytes"]

#: Options whose value is several words: the name of a parallel environment and its slots.
_WORDS: Final = frozenset(("pe",))


@dataclass(frozen=True, slots=True)
class Changes:
    """How a resource manager is told to change a job that waits.

    command: its words, of which ``{id}`` stands for the native id and ``{changes}`` for what is changed. options: of
    the submit command -> the word for it there, before its value; one that ends with ``=`` is one word with it. Others
    cannot be changed. apart: option -> a command of its own, in which ``{value}`` stands for the value. each: options
    of which every value stands alone, as resources that have names; of the others all values are given again. live:
    options that also hold for a job that runs, ``l=walltime`` for a resource of ``l``.
    values: option -> what makes the value for the command of that for the submit command.
    """

    command: str
    options: Mapping[str, str]
    apart: Mapping[str, str] = field(default_factory=dict)
    each: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    values: Mapping[str, Callable[[str], str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """An option as it is said before and after; not at all where there is none."""

    option: str
    before: tuple[Directive, ...]
    after: tuple[Directive, ...]


def megabytes(value: str) -> str:
    """A size with units as a number of megabytes, rounded up; anything else, which may be an expression, as it is."""
    size = None if value.isdecimal() else in_bytes(value)
    return value if size is None else str(-(-size // POWERS["M"]))


def differences(before: Iterable[Directive], after: Iterable[Directive]) -> list[Difference]:
    """The options that differ, in the order in which they stand."""
    sides: list[dict[str, tuple[Directive, ...]]] = [{}, {}]
    for directives, by_option in zip((before, after), sides, strict=True):
        for directive in directives:
            by_option[directive.option] = (*by_option.get(directive.option, ()), directive)
    first, second = sides
    pairs = (Difference(option, first.get(option, ()), second.get(option, ())) for option in {**first, **second})
    return [pair for pair in pairs if [each.value for each in pair.before] != [each.value for each in pair.after]]


def commands(changes: Changes, differing: Iterable[Difference], native_id: str, *, begun: bool, manager: str
             ) -> list[list[str]]:
    """The commands that change a job, to be run one after the other. begun: whether it runs. manager: its name.

    Raises InvalidJobException for what the manager does not change, or not any more; nothing is to be changed then.
    """
    words: list[str] = []
    own: list[list[str]] = []
    for difference in differing:
        for value in _values(changes, difference, begun, manager):
            if difference.option in changes.apart:
                own.append([word.replace("{id}", native_id).replace("{value}", value)
                            for word in changes.apart[difference.option].split()])
                continue
            word = changes.options[difference.option]
            several = difference.option in _WORDS
            words += [f"{word}{value}"] if word.endswith("=") else [word, *(value.split() if several else [value])]
    if not words:
        return own
    return [*own, [part for word in changes.command.split()
                   for part in (words if word == "{changes}" else [word.replace("{id}", native_id)])]]


def _values(changes: Changes, difference: Difference, begun: bool, manager: str) -> list[str]:
    """The values that the manager is to be told. Raises InvalidJobException."""
    option, before, after = difference.option, difference.before, difference.after
    field = (after or before)[-1].field or option
    if option not in changes.options and option not in changes.apart:
        raise InvalidJobException(f"{field} of a job that was submitted is not changed by {manager}")
    own = {directive.value for directive in before}
    stated = [each for each in after if option not in changes.each or each.value not in own]
    kept = {_name(directive) for directive in after}
    gone = [each for each in before if not after or (option in changes.each and _name(each) not in kept)]
    gone += [each for each in stated if each.value is None]
    if gone:
        raise InvalidJobException(f"{gone[0].field or option} cannot be taken back from a job that was submitted")
    if begun and not all({option, f"{option}={_name(directive)}"} & changes.live for directive in stated):
        raise InvalidJobException(f"{field} of a job that has begun is not changed by {manager}")
    convert = changes.values.get(option.lower(), str)
    return [convert(str(directive.value)) for directive in stated]


def _name(directive: Directive) -> str:
    """What a value is of, where it is one of several with names: ``walltime`` of ``walltime=1:00``."""
    return str(directive.value).partition("=")[0]
