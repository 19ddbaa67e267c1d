"""Several task groups with commands of their own: the one command of the script that starts them side by side.

Source: srun(1), ``--het-group``, for Slurm, where each group is a part of the job; mpirun(1) of Open MPI, several
applications parted by a colon, for those whose parts are lists of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from sssjob.request.asked import GROUP, GROUPS, JOB
from sssjob.templates.quoting import word
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.layout import join
from sssjob.translators.scripts.raw import shell_words
from sssjob.translators.scripts.rows import APPROXIMATED
from sssjob.translators.scripts.streams import file_name

if TYPE_CHECKING:
    from sssjob.request.asked import Entry

__all__ = ["command"]

_STREAMS: Final = (("InputFile", "--input"), ("OutputFile", "--output"), ("ErrorFile", "--error"))
_WHERE: Final = "InitialWorkingDirectory"
_BY_MPIRUN: Final = ("pbspro", "torque", "lsf")


def command(asked: Sequence[Asking], argument: Callable[[Asking, str], str], quote: Callable[[str], str] | None = None
            ) -> list[str] | None:
    """The words of the line that starts all groups of a job; None where all have the same command, or the target
    starts one command alone.

    asked: the parts of the job as the target has them; argument: how a word of a command is written; quote: how any
    other word is (None: as a word of a shell)."""
    quote = quote or (lambda text: str(word(text)))
    first = asked[0]
    native = len(asked) > 1
    groups = list(asked) if native else [first.of(g) for g in first.groups]
    commands = [[_nearest(group_asking, tag) for tag in ("Executable", "Arguments")] for group_asking in groups]
    if all(parts == commands[0] for parts in commands) or any(not name or name.startswith("#") for name, _ in commands):
        return None
    if not native and first.dialect.name not in _BY_MPIRUN:
        return None
    parts = [_part(group_asking, number, argument, quote, native) for number, group_asking in enumerate(groups)]
    if not native:
        for group_asking in groups:
            first.leave_out(e for e in (_own(group_asking, _WHERE),) if e is not None)
            join(first, group_asking)
    words = ["srun" if native else "mpirun", *chain.from_iterable((":", *part) for part in parts)]
    del words[1]
    first.note(APPROXIMATED, None, f"TaskGroup: the groups are started side by side by {' '.join(words)[:200]}", "info",
               "TaskGroup")
    return words


def _nearest(asking: Asking, tag: str) -> str | None:
    """What holds for a group: what it says itself, or its job."""
    return next((e.text for level in (GROUP, GROUPS, JOB) for e in asking.said(tag)
                 if e.slot == "" and e.level == level), None)


def _own(asking: Asking, tag: str) -> Entry | None:
    """What a group says of itself."""
    return next((e for e in asking.said(tag) if e.slot == "" and e.level == GROUP), None)


def _part(asking: Asking, number: int, argument: Callable[[Asking, str], str], quote: Callable[[str], str],
          native: bool) -> list[str]:
    """How one group is started: options of the launcher, variables, command and arguments."""
    executable, arguments = asking.one("Executable"), asking.one("Arguments")
    assert executable is not None
    count = asking.one("TaskCount", (GROUP, GROUPS))
    words = [f"--het-group={number}"] if native else ["-n", count.text if count and count.text.isdigit() else "1"]
    if (number or not native) and (directory := _own(asking, _WHERE)) is not None:
        directory.used = True
        words += [f"--chdir={quote(directory.text)}"] if native else ["-wdir", quote(directory.text)]
    if native and number:       # those of the first group are the script's
        for tag, option in _STREAMS:
            if _own(asking, tag) is not None:
                name, _ = file_name(asking, tag)
                words += [f"{option}={quote(name)}"] if name is not None else []
    variables = _variables(asking)
    for e in variables:
        e.used = True
        e.understood |= {"name"}
    words += ["env", *(quote(f"{e.attributes.get('name', '')}={e.text}") for e in variables)] if variables else []
    words.append(quote(executable.text))
    if arguments is not None:
        try:
            plain = shell_words(arguments.text)
        except ValueError:
            return [*words, quote(arguments.text)]
        if ":" in plain:
            asking.dropped(arguments, "a colon alone would part two commands")
        words += [argument(asking, each) for each in plain]
    return words


def _variables(asking: Asking) -> list[Entry]:
    """The variables that the group has for itself."""
    return [e for e in asking.entries if e.slot == "Environment" and e.tag == "Variable" and e.level == GROUP]
