"""The options that a dialect writes for a job, without a script around them.

An executor of the same manager submits them beside the script that it makes itself, so that a job that is run asks for
exactly what the script that ``convert`` writes asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sssjob.document.model import Document, Job, TaskGroup
from sssjob.findings import Policy
from sssjob.request.asked import Entry
from sssjob.translators.base import WriteContext
from sssjob.translators.scripts import side_by_side
from sssjob.translators.scripts.accepting import accepted
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.rows import Dialect, dialect_of
from sssjob.translators.scripts.writing import directive_of, express, leftovers

__all__ = ["OptionPair", "Options", "command_of_all", "option_pair", "options_of"]

#: An option of a submit command without its dashes, and its value; None for a flag.
OptionPair = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Options:
    """parts: the options of each part of the job, one part unless the dialect has heterogeneous jobs. taken: the
    identities of the job's items that an option says, or that the writer's findings tell of."""

    parts: tuple[tuple[OptionPair, ...], ...]
    taken: frozenset[int]


def options_of(dialect: Dialect, job: Job, document: Document, context: WriteContext, policy: Policy) -> Options:
    """What the writer of a dialect makes of a job whose JobDefaults are folded in.

    document: where the job comes from, for the places of findings. policy: the awarenessPolicy of the job. What an
    option cannot say is in ``context.findings``, as ``convert`` tells it; of an item that the writer does not look at
    nothing is told, and the item is not among those taken.
    """
    groups: list[TaskGroup | None] = list(job.task_groups)
    if not dialect.separator or len(groups) < 2:
        groups = [None]
    asked = [Asking(job, document, context, dialect, policy, group) for group in groups]
    parts: list[list[OptionPair]] = [[] for _ in asked]
    number = {id(asking): n for n, asking in enumerate(asked)}
    for name, value, asking in accepted(asked, express(asked), of_own=True, partial=True):
        if name != dialect.separator and directive_of(dialect, name, value, asking):
            parts[number[id(asking)]].append(option_pair(name, value))
    taken = _taken(asked)
    for asking in asked:
        for entry in asking.entries:
            if id(entry.item) not in taken:     # its fate is the caller's
                entry.used = True
                entry.understood |= entry.attributes.keys()
    leftovers(asked)
    return Options(tuple(map(tuple, parts)), taken)


def command_of_all(dialect: Dialect, job: Job, document: Document, context: WriteContext, policy: Policy
                   ) -> list[str] | None:
    """The words of the one command with which the script of a dialect starts task groups that have commands of their
    own; None where it has none. As ``options_of``."""
    return side_by_side.command([Asking(job, document, context, dialect, policy, None)], lambda _, text: text, str)


def _taken(asked: Sequence[Asking]) -> frozenset[int]:
    """Items that were carried, and Extensions of other dialects, which only the writer can judge. One of its own that
    it does not know is an option that is newer than its table, but for those that only tell a spelling."""
    return frozenset(id(e.item) for asking in asked for e in asking.entries
                     if e.used or (e.tag == "Extension" and _is_judged(asking.dialect, e)))


def _is_judged(dialect: Dialect, entry: Entry) -> bool:
    owner = dialect_of(entry.attributes.get("type", ""))
    return owner is not None and (owner is not dialect or entry.attributes.get("name") in owner.spellings)


def option_pair(name: str, value: str | None) -> OptionPair:
    """An option of a dialect's table as the submit command takes it: ``-l walltime``, ``5`` is ``l``, ``walltime=5``;
    ``-soft -l a``, ``1`` is ``soft -l``, ``a=1``; the ``request_resource`` of HTCondor is a command of its own."""
    before = "soft -" if name.startswith("-soft ") else ""
    option, _, resource = name.removeprefix("-soft ").lstrip("-").partition(" ")
    if option == "request_resource":
        kind, _, count = (value or "").partition(" = ")
        return f"request_{kind}", count
    if resource:
        value = resource if value is None else f"{resource}={value}"
    return before + option, value
