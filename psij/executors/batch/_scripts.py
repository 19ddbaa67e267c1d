"""Batch scripts that somebody else has written, submitted by the command of an executor.

What psij writes itself bears a tag by which a submission without an answer is looked for; such a script bears none.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from psij.exceptions import SubmitException
from psij.executors._local_staging import Item, Staging, StagingError
from psij.executors.batch._asking import reason
from psij.executors.batch._host import UnreachableError
from psij.executors.batch._staging import placed
from psij.executors.batch._terms import Failure
from psij.job import Job
from psij.job_spec import JobSpec
from psij.staging import StageOutFlags, StagingMode

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_IN_DIRECTORY = 'cd "$1" && shift && exec "$@"'


class ScriptSubmission(NamedTuple):
    """A script in a directory, and the command that submits it from there."""

    directory: Path
    command: list[str]

    def __str__(self) -> str:
        """The line that a person would type."""
        return f"cd {shlex.quote(str(self.directory))} && {shlex.join(self.command)}"


def script_submission(executor: BatchSchedulerExecutor, directory: Path, name: str) -> ScriptSubmission:
    """What ``submit_script`` would run for the script of that name in a directory."""
    return ScriptSubmission(directory, executor.get_submit_command(Job(JobSpec("/bin/true")), Path(name)))


def submit_script(executor: BatchSchedulerExecutor, submission: ScriptSubmission) -> str:
    """The native id of the job, or array, that a script becomes.

    Raises SubmitException, transient when trying later may help; its text says so where nobody knows whether there is
    a job now.
    """
    words = ["/bin/sh", "-c", _IN_DIRECTORY, "sh", str(submission.directory), *submission.command]
    try:
        out = executor._run_submit(words)
    except subprocess.CalledProcessError as e:
        meaning = executor._classify_failure(e.returncode, e.output or "")
        raise SubmitException(reason(e), e, transient=meaning is not Failure.REFUSED) from e
    except UnreachableError as e:
        raise SubmitException(reason(e), e, transient=True) from e
    except (subprocess.SubprocessError, OSError) as e:
        raise SubmitException(f"nobody knows whether there is a job now: {reason(e)}", e, transient=True) from e
    readers: tuple[Callable[[str], str], ...] = (executor.job_id_from_submit_output,
                                                 executor.array_id_from_submit_output)
    for read in readers:
        try:
            native_id = read(out)
        except Exception:       # of hooks, which may raise anything: it is an array, or no answer
            continue
        if executor.is_native_id(native_id):
            return native_id
    raise SubmitException(f"nobody knows whether there is a job now: no id in the answer {out.strip()[:500]!r}",
                          transient=True)


def fetch_files(executor: BatchSchedulerExecutor, targets: Mapping[Path, Path]) -> None:
    """Copy files and folders from where an executor has its commands run to this machine. targets: path there -> path
    here, where nothing is yet; what is not there is left out. Raises OSError."""
    items = tuple(Item(str(source), str(target), StagingMode.COPY, StageOutFlags.ALWAYS | StageOutFlags.IF_PRESENT)
                  for source, target in targets.items())
    try:
        placed(Staging("/", (), items, (), StageOutFlags.NONE), executor).fetch(StageOutFlags.ALWAYS, lambda: False)
    except StagingError as e:
        raise OSError(0, str(e)) from e
