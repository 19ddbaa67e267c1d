"""The files of batch jobs after their ends: what is read from them, who still wants them, and their removal."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from psij.executors.batch._files import KEEP, exit_file, output_tail
from psij.job import Job
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch._followed import Followed
    from psij.executors.batch._hooks import BatchHooks
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_log = logging.getLogger("psij")
_AUX = (".out", ".ec", ".nodefile", ".start", ".ec.new", ".start.new", ".left")
#: What bash says of a program that a signal ended: the place in a script of ours, and the command as it stands there;
#: of SIGTERM it says one word.
_KILLED = re.compile(r"^\S+: line \d+: +\d+ ([A-Z][\w/ -]*?\w)(?: *\(core dumped\))? *\( ?exec -- .*$|^(Terminated)$",
                     re.MULTILINE)
#: What bash says where a node does not have the locale of the submitter, which has nothing to do with the job.
_LOCALE = re.compile(r"^\S+: (?:line \d+: )?warning: setlocale: LC_\w+: cannot change locale \([^)\n]*\).*\n?",
                     re.MULTILINE)
#: What bash says of a file or a directory: the place in a script of ours, which nobody else knows.
_PLACE: Final = re.compile(r"^\S+(?:/launcher_lib\.sh: line \d+|: line \d+: (cd)): (?=/)", re.MULTILINE)
_MOST_LEFT = 65_536     # bytes of what surroundings leave behind


def tell_output(executor: BatchHooks, followed: Followed, status: JobStatus) -> None:
    """Put into the message of a failed job what its submit script had to say."""
    if status.state is not JobState.FAILED:
        return
    output, ended = output_tail(executor._aux_path(followed.native_id, ".out", followed.tag), executor.host)
    output = _LOCALE.sub("", output)
    if executor._OF_MANAGER is not None:
        output = executor._OF_MANAGER.sub("", output).strip()
    if output and (executor._OUTPUT_IS_TROUBLE or not ended):
        executor._explain(status, output)
        output = _KILLED.sub(lambda match: f"{(match[1] or match[2]).lower()}{_number(status)}", output)
        output = _PLACE.sub(lambda match: "the directory " if match[1] else "", output)
        status.message = f"{status.message}: {output}" if status.message else output


def _number(status: JobStatus) -> str:
    """The signal that the code of a shell stands for."""
    code = status.exit_code or 0
    return f" (signal {code - 128})" if 128 < code < 193 else ""


def read_left(executor: BatchHooks, followed: Followed, status: JobStatus) -> None:
    """Put into the metadata what the surroundings of a job have left behind."""
    surroundings = executor.config.surroundings
    if surroundings is None:
        return
    try:
        path = executor._aux_path(followed.native_id, ".left", followed.tag)
        if (text := executor.host.record(path, _MOST_LEFT)) is not None:
            status.metadata = {**(status.metadata or {}), **surroundings.read(followed.job, text)}
    except Exception as e:
        _log.warning("What job %s has left behind cannot be read: %s", followed.job.id, e)


def keep_exit_file(executor: BatchHooks, native_id: str, job: Job) -> None:
    """Have the exit file of a job that somebody else submitted stay until this one, too, has seen its end."""
    keep = executor._aux_path(native_id, KEEP)
    with suppress(OSError):         # there is no work directory here: then there is no exit file either
        executor.host.note(keep, job.id)


def remove_files(executor: BatchSchedulerExecutor, followed: Followed) -> None:
    """Those of a job that has ended. The exit file stays as long as somebody else is attached to the job."""
    if executor.config.keep_files:
        return
    keep = executor._aux_path(followed.native_id, KEEP)
    try:
        if followed.own:
            watched = executor.host.exists(keep)
            executor._clean_submit_script(followed.job)
            executor.host.remove(executor.work_directory / f"{followed.job.id}.start")
            for suffix in (*_AUX, *executor._FILES):
                if not (watched and suffix == ".ec"):
                    executor._delete_aux_file(followed.job, suffix)
            executor._elements.left(followed.job)
        elif executor.host.unnote(keep, followed.job.id):
            path = executor._aux_path(followed.native_id, ".ec", followed.tag)
            written = exit_file(path, None, executor.host)
            script = None if written is None or written.job_id is None else f"{written.job_id}.job"
            if script is not None and not executor.host.exists(executor.work_directory / script):
                executor.host.remove(path)
    except OSError as e:
        _log.warning("Files of job %s cannot be removed: %s", followed.job.id, e)


def remove_all(executor: BatchSchedulerExecutor, job: Job) -> None:
    """All files of a job, whatever the configuration says."""
    suffixes = (*_AUX, *executor._FILES)
    others = (executor._aux_path(job.native_id or job.id, suffix, job.id) for suffix in suffixes)
    for path in [executor._script_path(job), *others]:
        with suppress(OSError):     # the others are removed all the same; clear_old removes this one one day
            executor.host.remove(path)
    with suppress(OSError):
        executor._elements.left(job)

