"""The end of many jobs: as many native ids in one command as that takes, and what its answer says of each.

A command that fails says which jobs had ended already; the others are named to it once more, and one by one where it
fails again. To repeat what was done already does no harm: a cancel of a job that is being cancelled changes nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from psij.exceptions import SubmitException
from psij.executors.batch._answers import lines_by_id
from psij.executors.batch._asking import reason
from psij.executors.batch._terms import IDS_AT_ONCE, InvalidJobStateError
from psij.executors.batch._watch import Watcher, watcher_of
from psij.job import Job

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

#: What became of a native id: accepted (True), it had ended (False), or why it could not be cancelled.
_Answers = dict[str, "bool | SubmitException"]


def cancel_natively(executor: BatchSchedulerExecutor, jobs: Sequence[Job]) -> dict[Job, SubmitException]:
    """Ask for the end of jobs that have native ids. Gives those that could not be cancelled, with the reasons."""
    failed: dict[Job, SubmitException] = {}
    for start in range(0, len(jobs), IDS_AT_ONCE):
        failed |= _cancel(executor, jobs[start:start + IDS_AT_ONCE])
    return failed


def _cancel(executor: BatchSchedulerExecutor, jobs: Sequence[Job]) -> dict[Job, SubmitException]:
    watcher = watcher_of(executor)
    with ExitStack() as stack:
        if watcher is not None:
            for job in jobs:
                stack.enter_context(watcher.canceling(job))
        ours, failed = _still_there(executor, watcher, jobs)
        unbegun: set[str] = set()
        answers = _tell(executor, list(dict.fromkeys(str(job.native_id) for job in ours)), unbegun)
        for job in ours:
            answer = answers[str(job.native_id)]
            if isinstance(answer, SubmitException):
                failed[job] = answer
            elif watcher is not None and answer:
                watcher.canceled(job, unbegun=str(job.native_id) in unbegun)
            elif watcher is not None:
                watcher.hurry(job)
    return failed


def _still_there(executor: BatchSchedulerExecutor, watcher: Watcher | None, jobs: Sequence[Job]
                 ) -> tuple[Sequence[Job], dict[Job, SubmitException]]:
    """Those of these jobs that may be cancelled by their native ids, and why others may not: it cannot be found out
    whose the ids are. What the queue has no more was ended by an earlier cancel, unless a source tells another end."""
    if watcher is None:
        return jobs, {}
    listed: list[Job] = []
    failed: dict[Job, SubmitException] = {}
    for job in jobs:
        try:
            if executor._is_there(watcher, job, "canceled"):
                listed.append(job)
            else:
                watcher.canceled(job, gone=True)
        except SubmitException as e:
            failed[job] = e
    return listed, failed


def _tell(executor: BatchSchedulerExecutor, native_ids: list[str], unbegun: set[str]) -> _Answers:
    """Give the commands; what became of each id. A job that a second command does not know any more is one that the
    first has ended. unbegun: gets the ids that an answer calls ended before they began."""
    answers: _Answers = {}
    untold, asked = native_ids, False
    for again in (False, True):
        command = executor._cancel_command(untold) if len(untold) > 1 else None
        if command is None:
            break
        answered = _answer(executor, command, untold, unbegun)
        answers |= {native_id: answer or again for native_id, answer in answered.items()}
        untold, asked = [native_id for native_id in untold if native_id not in answers], True
    for native_id in untold:
        try:
            answers[native_id] = _tell_one(executor, native_id, unbegun) or asked
        except SubmitException as e:
            answers[native_id] = e
    return answers


def _run(executor: BatchSchedulerExecutor, command: Sequence[str], unbegun: set[str]) -> None:
    """Run a cancel command, and note which jobs its answer calls ended before they began. Raises as _run_command."""
    try:
        unbegun |= executor._unbegun(executor._run_command(list(command)))
    except subprocess.CalledProcessError as e:
        unbegun |= executor._unbegun(e.output or "")
        raise


def _tell_one(executor: BatchSchedulerExecutor, native_id: str, unbegun: set[str]) -> bool:
    """Give the cancel command for one id; whether the resource manager took it: False for a job that has ended already.
    """
    try:
        _run(executor, executor.get_cancel_command(native_id), unbegun)
    except subprocess.CalledProcessError as e:
        try:
            executor.process_cancel_command_output(e.returncode, e.output or "")
        except InvalidJobStateError:
            return False
    except (subprocess.TimeoutExpired, OSError) as e:
        raise SubmitException(f"Job {native_id} cannot be canceled: {reason(e)}", e, transient=True) from e
    return True


def _answer(executor: BatchSchedulerExecutor, command: list[str], native_ids: list[str],
            unbegun: set[str]) -> _Answers:
    """What one command says of many ids; those of which it says nothing certain are left out."""
    try:
        _run(executor, command, unbegun)
    except subprocess.CalledProcessError as e:
        return _read(executor, e.returncode, e.output or "", native_ids)
    except (subprocess.TimeoutExpired, OSError) as e:
        return {native_id: SubmitException(f"Job {native_id} cannot be canceled: {reason(e)}", e, transient=True)
                for native_id in native_ids}
    return dict.fromkeys(native_ids, True)


def _read(executor: BatchSchedulerExecutor, exit_code: int, out: str, native_ids: list[str]) -> _Answers:
    named = lines_by_id(out, native_ids)
    answers: _Answers = {}
    for native_id, lines in named.items():
        try:
            executor.process_cancel_command_output(exit_code, lines)
            answers[native_id] = True
        except InvalidJobStateError:
            answers[native_id] = False
        except SubmitException:
            continue
    if not named:
        try:
            executor.process_cancel_command_output(exit_code, out)
        except SubmitException as e:
            if e.transient:             # it speaks of no job: nobody was there to be asked
                return dict.fromkeys(native_ids, e)
        except InvalidJobStateError:
            pass                        # of one that it does not name
    return answers
