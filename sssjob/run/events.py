"""What comes to the loop of the engine, and who puts it there."""

from __future__ import annotations

import queue
from collections.abc import Callable

import psij
from psij.job import JobNewsCallback
from sssjob.run.on_end import Done
from sssjob.run.staging import Step

__all__ = ["AnyEvent", "Event", "Listener"]

#: Place of the job, its part, the status or what was done with its files or for its end, and the tag of what it was
#: submitted as (None: no executor says so).
Event = tuple[int, int, psij.JobStatus | Step | Done, str | None]
#: What may come: news of a job, a signal, or what is to be done with an answer that was waited for.
AnyEvent = Event | str | Callable[[], None]


class Listener(JobNewsCallback):
    """Puts every status of one part on the queue, and what changes while its state stays."""

    def __init__(self, events: queue.SimpleQueue[AnyEvent], number: int, part: int) -> None:
        self.events, self.number, self.part = events, number, part

    def job_status_changed(self, job: psij.Job, job_status: psij.JobStatus) -> None:
        """Called by psij's delivery thread."""
        self.events.put((self.number, self.part, job_status, job.id))

    def job_news(self, job: psij.Job, job_status: psij.JobStatus) -> None:
        """The same: a job was suspended, held, put back into the queue, or waits for another reason."""
        self.events.put((self.number, self.part, job_status, job.id))
