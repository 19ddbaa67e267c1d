"""The command of a script that starts several copies of an executable, or several task groups side by side.

An executable with several tasks is started once for each; a script is started once and starts what it likes. Groups
with commands of their own are started by one command. Source: SSS job object 3.1.0, sections 3.0 and 6; srun(1),
``--het-group``, for Slurm, where each group is a part of the job; mpirun(1) of Open MPI, several applications parted by
a colon, for those whose parts are lists of nodes; flux-run(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from sssjob.request.asked import GROUP, GROUPS, JOB, TASK
from sssjob.request.layout import Layout
from sssjob.templates.quoting import word
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.copies import EVERYWHERE
from sssjob.translators.scripts.layout import join, joined, part_of, totals_in
from sssjob.translators.scripts.raw import shell_words
from sssjob.translators.scripts.rows import APPROXIMATED, DROPPED
from sssjob.translators.scripts.streams import file_name

if TYPE_CHECKING:
    from sssjob.request.asked import Entry

__all__ = ["command", "copies_of", "launched"]

_STREAMS: Final = (("InputFile", "--input"), ("OutputFile", "--output"), ("ErrorFile", "--error"))
_WHERE: Final = "InitialWorkingDirectory"
#: Dialects whose jobs hold several kinds of task as lists of nodes.
_BY_MPIRUN: Final = ("pbspro", "torque", "lsf")


def command(asked: Sequence[Asking], argument: Callable[[Asking, str], str], quote: Callable[[str], str] | None = None
            ) -> list[str] | None:
    """The words of the line that starts all groups of a job; None where all are started alike, or the target starts
    one command alone.

    asked: the parts of the job as the target has them; argument: how a word of a command is written; quote: how any
    other word is (None: as a word of a shell)."""
    quote = quote or (lambda text: str(word(text)))
    first = asked[0]
    native = len(asked) > 1
    groups = list(asked) if native else [first.of(g) for g in first.groups]
    names = [_nearest(group_asking, "Executable") for group_asking in groups]
    if any(not name or name.startswith("#") for name in names):
        return None
    totals = totals_in(first)
    layouts = [part.layout for part in totals.parts]
    if not native and first.dialect.name not in _BY_MPIRUN:
        return None
    apart = (totals.copies > 1 and any(map(_starts_once, layouts))) or (native and _of_their_own(groups))
    if _same_commands(groups) and not apart:
        return None
    parts = [_part(first, group_asking, number, argument, quote, native, layouts[number])
             for number, group_asking in enumerate(groups)]
    if not native:
        first.leave_out([e for e in (_own(group_asking, _WHERE) for group_asking in groups) if e is not None])
        for group_asking in groups:
            join(first, group_asking)
    words = ["srun" if native else "mpirun", *chain.from_iterable((":", *part) for part in parts)]
    del words[1]
    first.note(APPROXIMATED, None, f"TaskGroup: the groups are started side by side by {' '.join(words)[:200]}", "info",
               "TaskGroup")
    return words


def _same_commands(groups: Sequence[Asking]) -> bool:
    """Whether all groups have the same executable and arguments."""
    commands = [[_nearest(asking, tag) for tag in ("Executable", "Arguments")] for asking in groups]
    return all(words == commands[0] for words in commands)


def _starts_once(layout: Layout) -> bool:
    """Whether a group is started once on all that it asks for, where one command for all groups would start it more
    often: for each of its processors or nodes."""
    return layout.copies == 1 < (layout.slots or layout.nodes or 1)


def _of_their_own(groups: Sequence[Asking]) -> bool:
    """Whether a group after the first has a stream, a directory or a variable of its own."""
    return any(_own(asking, tag) is not None for asking in groups[1:] for tag in (*dict(_STREAMS), _WHERE)) or any(
        map(_variables, groups[1:]))


def _nearest(asking: Asking, tag: str) -> str | None:
    """What holds for a group: what it says itself, or its job."""
    return next((e.text for level in (GROUP, GROUPS, JOB) for e in asking.said(tag)
                 if e.slot == "" and e.level == level), None)


def _own(asking: Asking, tag: str) -> Entry | None:
    """What a group says of itself."""
    return next((e for e in asking.said(tag) if e.slot == "" and e.level == GROUP), None)


def _part(first: Asking, asking: Asking, number: int, argument: Callable[[Asking, str], str],
          quote: Callable[[str], str], native: bool, layout: Layout) -> list[str]:
    """How one group is started: options of the launcher, variables, command and arguments."""
    executable, arguments = asking.one("Executable"), asking.one("Arguments")
    assert executable is not None
    asking.one("TaskCount", (GROUP, GROUPS))
    if native:
        words = [f"--het-group={number}", *(["--ntasks=1"] if _starts_once(layout) else [])]
    else:
        words = ["-n", str(layout.copies)]
    if (number or not native) and (directory := _own(asking, _WHERE)) is not None:
        directory.used = True
        words += [f"--chdir={quote(directory.text)}"] if native else ["-wdir", quote(directory.text)]
    if native and number:       # those of the first group are the script's
        for tag, option in _STREAMS:
            if _own(asking, tag) is not None:
                name, _ = file_name(asking, tag)
                words += [f"{option}={quote(name)}"] if name is not None else []
            elif (of_first := _own(first, tag)) is not None:
                first.note(APPROXIMATED, of_first, f"{tag}: task group {number + 1} says none, and gets that of the "
                           "first one")
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


def launched(asked: Sequence[Asking]) -> str:
    """What stands before the executable: the launcher with the number of copies and a blank; empty for one copy.

    asked: the parts of the job as the target has them.
    """
    first = asked[0]
    counting = [e for tag in ("TaskCount", "TaskDistribution") for e in first.said(tag)] or [
        e for e in first.said("Resource") if e.level in TASK]       # GPUs of each task count tasks too
    if len(first.groups) < 2 and not first.listed and not counting and not any(
            map(first.says, ("TasksPerGPU", "Launcher"))):
        return ""               # nothing says how many: the totals need not be asked
    copies = copies_of(first, native=len(asked) > 1)
    if copies < 2:
        return ""
    if len(asked) > 1:          # parts of a heterogeneous job, which one command starts in all of them
        return f"srun --het-group={','.join(str(number) for number in range(len(asked)))} "
    launcher = _launcher(first)
    entry = next(iter(counting or first.under(("Launcher", "Scheduler"))), None)
    if not launcher:
        message = f"{first.dialect.title} starts the executable by itself, and not {copies} copies of it"
        if counting:
            first.note(DROPPED, entry, message)
        else:
            first.note(DROPPED, entry, f"TaskCount: {message}", subject="TaskCount")
        return ""
    first.note(APPROXIMATED, entry, f"{copies} copies of the executable are started by {launcher}", "info",
               "TaskCount")
    if launcher == "srun" and any(
            part.layout.shares_processors for part in totals_in(first).parts):
        launcher += " --overcommit"         # else it starts no more tasks than there are processors
    return f"{launcher} -n {copies} "


def copies_of(asking: Asking, *, native: bool = False) -> int:
    """How many copies of the executable a target starts: those of all task groups, or of the first one where the target
    carries no other. native: the groups are parts of the job there."""
    totals = totals_in(asking)
    if len(totals.parts) < 2 or native or totals.copies < 2:
        return totals.copies
    groups = [asking.of(group) for group in asking.groups]
    for group in groups:
        group.silent = True
    if _same_commands(groups) and (asking.dialect.name in _BY_MPIRUN or joined([part_of(group) for group in groups])):
        return totals.copies
    return totals.parts[0].layout.copies


def _launcher(asking: Asking) -> str:
    """The launcher of the target, or the one that the job names where it is there too."""
    own = asking.dialect.launcher
    entry = asking.extension("Launcher")
    if entry is None or not own:
        return own
    if entry.text in EVERYWHERE or entry.text == own:
        return entry.text
    asking.note(APPROXIMATED, entry, f"{own} is written in place of {entry.text}")
    return own
