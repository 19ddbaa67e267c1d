"""What the submit command of a resource manager refuses; the judge of each stands with what else is known of it.

A ``Judge`` sees the options of one job, or of one part of a heterogeneous job, by the names that the dialect writes. It
says what is refused of every site: limits, queues, accounts and resources of a site are no part of it. Writers of
scripts, ``lint`` and the tests share it. Names of jobs are in ``sssjob.lrm.names``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final, cast

__all__ = ["Judge", "Refusal", "at_least", "bounded", "judge_of", "of_form", "one_word"]

_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An option that is refused, and why; missing: it is not there, and the job is refused without it."""

    option: str
    why: str
    missing: bool = False


def _nothing(options: Mapping[str, str]) -> Iterator[Refusal]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules of a submit command.

    command: its name. values: option -> why a value of it is refused, empty where it is taken. together: what is
    refused of the options of a job by name, those without a value with an empty one. adds: options that may be said
    several times, of which all count.
    """

    command: str
    values: Mapping[str, Callable[[str], str]]
    together: Callable[[Mapping[str, str]], Iterator[Refusal]] = _nothing
    needed: Mapping[str, str] = field(default_factory=dict)     # option -> why a job without it is refused
    whole: Mapping[str, str] = field(default_factory=dict)      # option -> why a job of several parts may not have it

    def refusals(self, options: Iterable[tuple[str, str | None]], *, partial: bool = False) -> list[Refusal]:
        """What is refused of the options of a job; None stands for no value. partial: there are more options than
        these, so that nothing is said of what is missing or does not go together."""
        listed, values = [*options], self.values
        refused = [Refusal(name, why) for name, value in listed
                   if name in values and value is not None and (why := values[name](value))]
        if partial:
            return refused
        last = dict(listed)
        if None in last.values():
            last |= {name: "" for name, value in last.items() if value is None}
        refused += self.together(cast("dict[str, str]", last))
        refused += [Refusal(name, why, missing=True) for name, why in self.needed.items() if name not in last]
        return refused


#: Dialect -> module of its manager, and the name of the judge in it.
_JUDGES: Final = {**{name: (name, "JUDGE") for name in ("cobalt", "flux", "htcondor", "lsf", "sge", "slurm")},
                  "pbspro": ("pbs", "PBSPRO_JUDGE"), "torque": ("pbs", "TORQUE_JUDGE")}


@cache
def judge_of(name: str) -> Judge | None:
    """The judge of a dialect; None for one that has none."""
    if name not in _JUDGES:
        return None
    module, judge = _JUDGES[name]
    return cast(Judge, getattr(import_module(f"sssjob.lrm.{module}"), judge))


def _number(value: str) -> float | None:
    """A whole number, which may be longer than any that counts; None for what is none."""
    return float(value) if _WHOLE.fullmatch(value) else None


def at_least(least: int) -> Callable[[str], str]:
    """The check of a number: it refuses those below. What is no number is left to the grammar of the option."""
    def why(value: str) -> str:
        """Why a value is refused; empty if it is not."""
        number = _number(value)
        return f"is below {least}" if number is not None and number < least else ""

    return why


def bounded(least: int, most: int) -> Callable[[str], str]:
    """The check of a number within bounds."""
    def why(value: str) -> str:
        """Why a value is refused; empty if it is not."""
        number = _number(value)
        return f"is not from {least} to {most}" if number is not None and not least <= number <= most else ""

    return why


def of_form(form: str, why: str) -> Callable[[str], str]:
    """The check of an option of few words. form: an expression of those that are taken; why: what another one is."""
    taken = re.compile(form, re.IGNORECASE | re.ASCII | re.DOTALL)

    def refused(value: str) -> str:
        """Why a value is refused; empty if it is not."""
        return "" if taken.fullmatch(value) else why

    return refused


def one_word(parting: str, what: str) -> Callable[[str], str]:
    """The check of a name of one thing: it refuses any of the signs that would part several."""
    signs = frozenset(parting)

    def why(value: str) -> str:
        """Why a value is refused; empty if it is not."""
        return f"names several; there is one {what}" if not signs.isdisjoint(value) else ""

    return why
