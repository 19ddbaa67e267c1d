"""Orders that change a native job: hold, release, rerun, suspend, resume, signal; and what it asks for.

Those that do no harm when they are given again are given to many jobs by one command. Jobs that the answer of a command
that failed names are told alone, for what it says of each, and the others together once more.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from functools import partial

from psij._handlers import apart
from psij.exceptions import InvalidJobException, SubmitException
from psij.executors.batch._answers import lines_by_id
from psij.executors.batch._asking import BatchAsking, reason
from psij.executors.batch._terms import DEEDS, IDS_AT_ONCE, AnyOrder, Failure, Order
from psij.executors.batch._watch import Watcher, watcher_of
from psij.job import Job
from psij.job_spec import JobSpec

_Words = list[str]


class BatchOrders(BatchAsking):
    """Gives orders to a resource manager, each for one job."""

    def hold(self, job: Job) -> None:
        """Keep a job that waits in the queue from starting until it is released. Nothing happens where it has ended.

        Raises SubmitException when the resource manager could not be asked (transient), refused, or has no such
        command.
        """
        apart(partial(self._act, job, "hold"))

    def release(self, job: Job) -> None:
        """End the hold of a job. Nothing happens where it has ended or is not held. Raises as ``hold``."""
        apart(partial(self._act, job, "release"))

    def rerun(self, job: Job) -> None:
        """End the run of a job and put it back into the queue, under the same native id. Nothing happens where it has
        ended. Raises as ``hold``.
        """
        apart(partial(self._act, job, "rerun"))

    def suspend(self, job: Job) -> None:
        """Stop the processes of a job that runs until it is resumed. Nothing happens where it has ended. Raises as
        ``hold``."""
        apart(partial(self._act, job, "suspend"))

    def resume(self, job: Job) -> None:
        """Let a job that is suspended go on. Nothing happens where it has ended. Raises as ``hold``."""
        apart(partial(self._act, job, "resume"))

    def signal(self, job: Job, name: str) -> None:
        """Send a signal to the processes of a job that runs. name: as ``USR1``. Nothing happens where it has ended.
        Raises as ``hold``."""
        apart(partial(self._act, job, "signal", name))

    def change(self, job: Job, before: JobSpec, after: JobSpec) -> None:
        """Have a job that was submitted as one specification says ask for what another one says. Nothing happens where
        it has ended.

        Raises SubmitException, as ``hold``, also for what cannot be changed any more, all of which is named; the job
        is then as it was.
        """
        apart(partial(self._change, job, before, after))

    def order_many(self, jobs: Sequence[Job], order: Order) -> dict[Job, SubmitException]:
        """The same for many jobs, with as few commands as the resource manager allows. order: one of ``MANY``. Gives
        those for which it raises.
        """
        failed: dict[Job, SubmitException] = {}
        for start in range(0, len(jobs), IDS_AT_ONCE):
            failed |= apart(partial(self._act_on, jobs[start:start + IDS_AT_ONCE], order))
        return failed

    def _act_on(self, jobs: Sequence[Job], order: Order) -> dict[Job, SubmitException]:
        there: dict[str, Job] = {}          # those that can be told of in one command, by native id
        alone, failed = [], dict[Job, SubmitException]()
        watcher = watcher_of(self)
        for job in jobs:
            try:
                if job.native_id is not None and not job.status.final and not _in_error(job) and (
                        watcher is None or self._is_there(watcher, job, DEEDS[order])):
                    there[job.native_id] = job
                else:
                    alone.append(job)       # what is said of it is said in the words for a single one
            except SubmitException as e:
                failed[job] = e
        untold, failures = self._tell_many(list(there), order)
        for native_id in there.keys() - untold:
            if watcher is not None and native_id not in failures:
                watcher.hurry(there[native_id])
        failed |= {there[native_id]: error for native_id, error in failures.items()}
        for job in [*alone, *(there[native_id] for native_id in untold)]:
            try:
                self._act(job, order)
            except SubmitException as e:
                failed[job] = e
        return failed

    def _tell_many(self, native_ids: _Words, order: Order) -> tuple[_Words, dict[str, SubmitException]]:
        """Give an order for many ids. Gives those that are to be told alone, and why nothing was done for others."""
        alone: list[str] = []
        for _ in range(2):
            command = self._order_command(order, native_ids) if len(native_ids) > 1 else None
            if command is None:
                break
            try:
                self._run_command(command)
                return alone, {}
            except subprocess.CalledProcessError as e:
                named = lines_by_id(e.output or "", native_ids)
                alone += [native_id for native_id, lines in named.items() if not self._order_done(lines)]
                native_ids = [native_id for native_id in native_ids if native_id not in named]
                if named:
                    continue
                if self._classify_failure(e.returncode, e.output or "") is Failure.REFUSED:
                    break
                error: Exception = e        # it speaks of no job: nobody was there to be asked
            except (subprocess.SubprocessError, OSError) as e:
                error = e
            return alone, {native_id: SubmitException(f"Job {native_id} cannot be {DEEDS[order]}: {reason(error)}",
                                                      error, transient=True) for native_id in native_ids}
        return [*alone, *native_ids], {}

    def _change(self, job: Job, before: JobSpec, after: JobSpec) -> None:
        if job.status.final:
            return
        native_id = self._native_id_for(job, "changed")
        try:
            commands = self.get_change_commands(job, before, after)
            back = self.get_change_commands(job, after, before) if len(commands) > 1 else []
        except InvalidJobException as e:
            raise SubmitException(f"Job {native_id} cannot be changed: {e}", e) from e
        for number, command in enumerate(commands):
            try:
                self._tell(job, "change", "changed", command)
            except SubmitException as e:
                for undo in back[:number]:
                    try:
                        self._tell(job, "change", "changed", undo)
                    except SubmitException as failure:
                        raise SubmitException(f"{e}; what was changed before stays so: {failure}", e) from e
                raise
        if job.spec is not None and job.spec._name != after._name:
            job.spec = copy(job.spec)
            job.spec.name = after._name
            if (watcher := watcher_of(self)) is not None:
                watcher.renamed(job)

    def _native_id_for(self, job: Job, deed: str) -> str:
        """The native id of a job to which something is to be done. Raises SubmitException where it has none yet."""
        if job.native_id is None:       # its files are fetched, or nobody has submitted it
            raise SubmitException(f"Job {job.id} cannot be {deed}: {self.name} has not been given it yet",
                                  transient=True)
        return job.native_id

    def _act(self, job: Job, order: Order, signal: str = "") -> None:
        deed = DEEDS[order]
        if job.status.final:
            return
        native_id = self._native_id_for(job, deed)
        if order == "release" and _in_error(job) and self.get_order_command("clear", native_id) is not None:
            order = "clear"             # what ends a hold leaves it in error, and ends well
        command = self.get_order_command(order, native_id, signal)
        if command is None:
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: {self.name} has no command for that")
        self._tell(job, order, deed, command)

    def _tell(self, job: Job, order: AnyOrder, deed: str, command: list[str]) -> None:
        """Run a command that changes a native job: the one place through which orders reach the resource manager."""
        watcher = watcher_of(self)
        if watcher is not None and not self._is_there(watcher, job, deed):
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: it is in the queue no more")
        try:
            with watcher.putting_back(job) if order == "rerun" and watcher is not None else nullcontext(True) as may_be:
                if not may_be:
                    raise SubmitException(f"Job {job.native_id} cannot be {deed}: it has ended")
                output = self._run_command(command)
            refusal = self.order_refusal(order, output)
        except subprocess.CalledProcessError as e:
            refusal = self.order_refusal(order, e.output or "")
            transient = self._classify_failure(e.returncode, e.output or "") is not Failure.REFUSED
            if order != "clear" or refusal is not None:     # `qmod -cj` ends with 1 where it has done it (8.1.9)
                raise SubmitException(f"Job {job.native_id} cannot be {deed}: {reason(e)}", e,
                                      transient=transient) from e
        except (subprocess.SubprocessError, OSError) as e:
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: {reason(e)}", e, transient=True) from e
        if refusal is not None:
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: {refusal}")
        if watcher is not None:
            watcher.hurry(job)

    def _is_there(self, watcher: Watcher, job: Job, deed: str) -> bool:
        """Whether the native id is still this job's. deed: what is to be done to it, as a participle. Raises
        SubmitException where nobody says so."""
        try:
            return watcher.is_there(job)
        except Exception as e:      # of hooks, which may raise anything
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: it is not known whether it is still the "
                                  f"same one: {reason(e)}", e, transient=True) from e


def _in_error(job: Job) -> bool:
    return (job.status.metadata or {}).get("phase") == "ERROR"
