"""The launcher's line of a script that starts copies of an executable, read back.

An executable with several tasks is started once for each (a script is started once and starts what it likes). So a
script that is nothing but the line that ``side_by_side.launched`` writes is read as the executable again.
Source: SSS job object 3.1.0, sections 3.0 and 6; srun(1), mpirun(1), flux-run(1).
"""

from __future__ import annotations

import re
import shlex
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
#: The same of parts of a heterogeneous job, which it starts in all of them.
_BESIDE: Final = re.compile(r"(srun) --het-group=([\d,]+) ([^\s:-][^:]*)", re.ASCII)


def taken_back(dialect: Dialect, job: Job, script: str) -> bool:
    """Whether a script is just the line that ``launched`` writes for the tasks of the job; then the job gets the
    executable and its arguments in place of it."""
    if not dialect.launcher or not script.startswith(SHEBANG) or script.count("\n") != 2 or script[-1] != "\n":
        return False
    line = script[len(SHEBANG):-1]
    beside = _BESIDE.fullmatch(line) if dialect.separator else None
    hit = beside or _LINE.fullmatch(line)
    if hit is None or hit[1] not in (dialect.launcher, *EVERYWHERE):
        return False
    try:
        words = shlex.split(hit[3])
        if not words or " ".join(str(word(argument)) for argument in words) != hit[3]:
            return False
    except (ValueError, QuotingError):
        return False
    if beside is not None:
        if hit[2] != ",".join(map(str, range(len(job.task_groups)))) or len(job.task_groups) < 2:
            return False
        _count_tasks(job)
    elif not _has_copies(job, int(hit[2])):
        return False
    job.set_as_is("Executable", words[0])
    if len(words) > 1:
        job.set_as_is("Arguments", shlex.join(words[1:]))
    if hit[1] != dialect.launcher:
        job.add_as_is("Extension", hit[1], type="Scheduler", name="Launcher")
    return True


def _count_tasks(job: Job) -> None:
    """Say of each task group how many tasks the command starts there that is started in all of them: as many as its
    nodes and the tasks of each come to, where it does not say their number."""
    from sssjob.request.levels import request_of

    for group, part in zip(job.task_groups, request_of(job, bare=True).totals.parts, strict=True):
        layout = part.layout
        count = layout.task_total or layout.nodes or 1
        if layout.tasks is None and count > 1:
            group.items.insert(0, new_property("TaskCount", count))


def _has_copies(job: Job, copies: int) -> bool:
    """Whether a job has so many tasks; where it asks for as many processors and does not say of what tasks, it gets
    them, each task group its own."""
    from sssjob.request.levels import request_of

    groups, totals = job.task_groups, request_of(job, bare=True).totals
    if totals.copies == copies:
        return bool(groups)
    layouts = [part.layout for part in totals.parts]
    counts = [layout.tasks or layout.processors or 0 for layout in layouts]
    if sum(counts) != copies and len(layouts) == 1:
        counts = [layouts[0].tasks or layouts[0].task_total or 0]
    if sum(counts) != copies or not all(counts) or all(layout.tasks for layout in layouts):
        return False
    if not groups:
        job.items.append(TaskGroup())
    for group, layout, count in zip(job.task_groups, layouts, counts, strict=True):
        if layout.tasks is None:
            group.items.insert(0, new_property("TaskCount", count))
    return True
