"""The elements of arrays that an executor follows: they have one submit script, which goes with the last of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psij.executors.batch._identity import COMMON, Identity, whole_tag

if TYPE_CHECKING:
    from psij.executors.batch._hooks import BatchHooks
    from psij.job import Job

__all__ = ["Elements"]


class Elements:
    """Those of one executor."""

    def __init__(self, executor: BatchHooks) -> None:
        self._executor = executor
        self._open: dict[str, set[str]] = {}    # by tag of the array: ids of jobs whose files are still there

    def add(self, job: Job) -> None:
        """A job is an element of an array that was submitted here."""
        self._open.setdefault(whole_tag(job.id), set()).add(job.id)

    def took_over(self, job: Job, identity: Identity | None) -> bool:
        """Whether a job that is attached to is such an element; it then is one of them."""
        if identity is None or whole_tag(job.id) not in (identity.tags or ()):
            return False
        self.add(job)
        return True

    def left(self, job: Job) -> None:
        """The files of a job have been removed: with those of the last element the submit script goes. Raises OSError.
        """
        tag = whole_tag(job.id)
        mine = self._open.get(tag)
        if mine is None:
            return
        mine.discard(job.id)
        if not mine:
            del self._open[tag]
            self._executor.host.remove(self._executor.work_directory / f"{tag}.job")

    def native_id(self, native_id: str, job: Job) -> str:
        """The native id that a job has as an element of the array with this one."""
        number = job.id[COMMON:]
        return self._executor.element_id(native_id, int(number)) if number.isdecimal() else native_id
