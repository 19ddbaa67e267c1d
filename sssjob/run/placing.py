"""On which cluster the jobs of a submission are, where its resource manager did not say so when it was asked.

The cluster is asked before anything is submitted and noted with the submission. Where there is no answer, it is noted
by which *way* the client reached it (``way_of``), and asked again with each submit command. Until it is known, what a
resource manager does not have is no evidence: only a client that reaches it by the same way, or whose manager has a job
that bears one of its tags, may follow the submission, submit of it, cancel, or conclude an end.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psij
from psij.executors.batch._host import HERE
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import AccessError
from sssjob.run.history import Event

if TYPE_CHECKING:
    from sssjob.run.journal import Entry

__all__ = ["ASK_AGAIN_S", "UNPLACED", "cluster_of", "native_name", "place", "unplaced", "user_there", "way_of"]

ASK_AGAIN_S: Final = 10.0       # before a resource manager is asked again which cluster it is
#: The event of a submission of which nobody knew on which cluster it would be. Its data are the way.
UNPLACED: Final = "unplaced"


def cluster_of(backend: psij.JobExecutor) -> str | None:
    """The cluster that an executor talks to; None where it has no words for it, or gives no answer now."""
    if not isinstance(backend, BatchSchedulerExecutor):
        return None
    try:
        cluster = backend.cluster()
    except psij.SubmitException:
        return None
    return None if cluster is None else str(cluster)


def way_of(backend: psij.JobExecutor) -> str | None:
    """How the resource manager of an executor is reached from here: what is reached by the same way is the same
    cluster. None where the executor has no words for its cluster, so that two are not told apart."""
    return backend.way() if isinstance(backend, BatchSchedulerExecutor) and not backend.is_nameless else None


def user_there(backend: psij.JobExecutor) -> str | None:
    """The name of the user that an executor submits as on another host; None where it submits here, or is not told."""
    host = getattr(backend, "host", HERE)
    try:
        return None if host.is_here else host.user
    except OSError:         # the submission itself tells that
        return None


def unplaced(backend: psij.JobExecutor, cluster: str | None) -> list[Event]:
    """The events with which a submission begins of which the cluster, as ``cluster_of`` has just told it, is not known.
    """
    way = way_of(backend) if cluster is None else None
    return [] if way is None else [Event(0, UNPLACED, backend.name, {"way": way})]


def place(entry: Entry | None, backend: psij.JobExecutor) -> None:
    """Note the cluster of a submission that is here, if its resource manager tells it now. It is not asked more often
    than each ``ASK_AGAIN_S``."""
    if entry is None or entry.cluster is not None or entry.way is None or time.monotonic() < entry.asked_until:
        return
    entry.asked_until = time.monotonic() + ASK_AGAIN_S
    cluster = cluster_of(backend)
    if cluster is not None:
        with suppress(AccessError):     # the way tells it as well
            entry.place(cluster)


def native_name(backend: psij.JobExecutor, psij_job: psij.Job) -> str | None:
    """The name by which a job is told from others of its native id; None where there are better means."""
    return backend.native_name(psij_job) if isinstance(backend, BatchSchedulerExecutor) else None
