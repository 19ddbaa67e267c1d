"""Orders that change a native job: hold, release, rerun, suspend, resume, signal."""

from __future__ import annotations

import subprocess
from functools import partial

from psij._handlers import apart
from psij.exceptions import SubmitException
from psij.executors.batch._asking import BatchAsking, reason
from psij.executors.batch._terms import DEEDS, Failure, Order
from psij.executors.batch._watch import Watcher, watcher_of
from psij.job import Job


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

    def _act(self, job: Job, order: Order, signal: str = "") -> None:
        """Run a command that changes a native job: the one place through which orders reach the resource manager."""
        deed = DEEDS[order]
        if job.status.final:
            return
        if job.native_id is None:       # its files are fetched, or nobody has submitted it
            raise SubmitException(f"Job {job.id} cannot be {deed}: {self.name} has not been given it yet",
                                  transient=True)
        command = self.get_order_command(order, job.native_id, signal)
        if command is None:
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: {self.name} has no command for that")
        watcher = watcher_of(self)
        if watcher is not None and not self._is_there(watcher, job, deed):
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: it is in the queue no more")
        try:
            refusal = self.order_refusal(order, self._run_command(command))
        except subprocess.CalledProcessError as e:
            transient = self._classify_failure(e.returncode, e.output or "") is not Failure.REFUSED
            raise SubmitException(f"Job {job.native_id} cannot be {deed}: {reason(e)}", e, transient=transient) from e
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
