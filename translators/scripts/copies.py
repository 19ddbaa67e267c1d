"""The launcher's line of a script that starts copies of an executable, read back.

An executable with several tasks is started once for each (a script is started once and starts what it likes). So a
script that is nothing but the line that ``side_by_side.launched`` writes is read as the executable again.
Source: SSS job object 3.1.0, sections 3.0 and 6; srun(1), mpirun(1), flux-run(1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from sssjob.document.element import new_property
from sssjob.document.model import Job, TaskGroup
from sssjob.templates.quoting import QuotingError, word

if TYPE_CHECKING:
    from sssjob.translators.scripts.rows import Dialect

__all__ = ["EVERYWHERE", "MARK", "SHEBANG", "taken_back"]

#: The first line of a script that is written for an executable.
SHEBANG: Final = "#!/bin/sh\n"
#: Launchers that are there under every resource manager.
EVERYWHERE: Final = ("mpirun", "mpiexec")
_LINE: Final = re.compile(r"([a-z]+(?: run)?) -n ([1-9]\d{0,8}) ([^\s-].*)", re.ASCII)
#: What a script that holds such a line has near its start; others need no closer look.
MARK: Final = re.compile(" -n | --het-group=")
#: One of several parts that a line starts side by side: of srun its number, or those of all, and whether it is started
#: once; of mpirun how often; then the command.
_PART: Final = re.compile(r"(?:--het-group=([\d,]+)( --ntasks=1)?|-n ([1-9]\d{0,8})) ([^\s:-][^:]*)", re.ASCII)


def taken_back(dialect: Dialect, job: Job, script: str) -> bool:
    """Whether a script is just the line that ``launched`` writes for the tasks of the job; then the job gets the
    executable and its arguments in place of it."""
    if not dialect.launcher or not script.startswith(SHEBANG) or script.count("\n") != 2 or script[-1] != "\n":
        return False
    line = script[len(SHEBANG):-1]
    launcher, counts, command = _side_by_side(line, len(job.task_groups))
    if not counts and (hit := _LINE.fullmatch(line)) is not None:
        launcher, command = hit[1], hit[3]
    if launcher not in (dialect.launcher, *EVERYWHERE):
        return False
    try:
        words = shlex.split(command)
        if not words or " ".join(str(word(argument)) for argument in words) != command:
            return False
    except (ValueError, QuotingError):
        return False
    if not (_have_copies(job, counts) if counts else hit is not None and _has_copies(job, int(hit[2]))):
        return False
    job.set_as_is("Executable", words[0])
    if len(words) > 1:
        job.set_as_is("Arguments", shlex.join(words[1:]))
    if launcher != dialect.launcher:
        job.add_as_is("Extension", launcher, type="Scheduler", name="Launcher")
    return True


def _side_by_side(line: str, groups: int) -> tuple[str, list[int | None], str]:
    """The launcher, how often it starts each of so many groups (None: as many tasks as there are), and the one command
    that it starts in all of them; without counts where a line is no such one."""
    launcher, _, rest = line.partition(" ")
    hits = [_PART.fullmatch(words) for words in rest.split(" : ")]
    if groups < 2 or (launcher != "srun" and len(hits) < 2) or any(
            hit is None or (hit[1] is None) is (launcher == "srun") for hit in hits):
        return "", [], ""
    parts = [hit for hit in hits if hit is not None]
    counts = [1 if hit[2] else int(hit[3]) if hit[3] else None for hit in parts]
    if launcher == "srun":
        numbers = ",".join(hit[1] for hit in parts)
        counts *= groups if len(parts) == 1 else 1
        if numbers != ",".join(map(str, range(groups))):
            return "", [], ""
    if len({hit[4] for hit in parts}) != 1:
        return "", [], ""
    return launcher, counts, parts[0][4]


def _of_each(counts: Sequence[int | None], tasks: Sequence[int]) -> Sequence[int | None]:
    """How often each group is started, of which several may be one part of the command: those whose tasks come to its
    number. tasks: of each group; where parts and groups do not fit, the counts as they are."""
    if len(counts) == len(tasks):
        return counts
    of_groups: list[int] = []
    for count in counts:
        at = len(of_groups)
        of_groups += [1] if count == 1 else _first_of(tasks[at:], count or 0)
    return of_groups if len(of_groups) == len(tasks) else counts


def _first_of(numbers: Sequence[int], total: int) -> list[int]:
    """The first numbers, as many as come to the total; none where they do not."""
    for end, sum_before in enumerate(accumulate(numbers), 1):
        if sum_before == total:
            return list(numbers[:end])
    return []


def _have_copies(job: Job, counts: Sequence[int | None]) -> bool:
    """Say of each task group how many tasks there are that a command starts in all of them: where no number is given
    as many as its nodes and the tasks of each come to. A group that is started once keeps as many processors as its
    tasks would have. False where a group says another number of tasks."""
    from sssjob.request.levels import request_of

    groups = job.task_groups
    layouts = [part.layout for part in request_of(job, bare=True).totals.parts]
    counts = _of_each(counts, [layout.task_total or 1 for layout in layouts])
    if len(counts) != len(layouts):
        return False
    started = [count or layout.task_total or layout.nodes or 1 for count, layout in zip(counts, layouts, strict=True)]
    if any(layout.tasks not in (None, count) and count > 1 for layout, count in zip(layouts, started, strict=True)):
        return False
    for group, layout, count in zip(groups, layouts, started, strict=True):
        if layout.tasks is None and count > 1:
            group.items.insert(0, new_property("TaskCount", count))
        elif layout.tasks is not None and layout.tasks > count:
            group.items = [item for item in group.items if item.tag != "TaskCount"]
            if layout.processors is None:
                group.ensure("Requested").items.append(new_property("Processors", layout.processor_total or 1))
    return True


def _has_copies(job: Job, copies: int) -> bool:
    """Whether a job has so many tasks; where it asks for as many processors and does not say of what tasks, it gets
    them, each task group its own."""
    from sssjob.request.levels import request_of

    groups, totals = job.task_groups, request_of(job, bare=True).totals
    if totals.copies == copies:
        return bool(groups)
    layouts = [part.layout for part in totals.parts]
    counts = [layout.tasks or layout.processors or 0 for layout in layouts]
    if sum(counts) != copies:
        counts = [layout.tasks_assumed for layout in layouts]
    if sum(counts) != copies or not all(counts) or all(layout.tasks for layout in layouts):
        return False
    if not groups:
        job.items.append(TaskGroup())
    for group, layout, count in zip(job.task_groups, layouts, counts, strict=True):
        if layout.tasks is None:
            group.items.insert(0, new_property("TaskCount", count))
    return True
