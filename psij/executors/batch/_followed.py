"""A job that a watcher follows, and what the queue said last of all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from psij.executors.batch._identity import Claim, Identity

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
    from psij.job import Job
    from psij.job_status import JobStatus


class LastAnswer(dict[str, str]):
    """What the queue said last: native states, with what else counts, by native id.

    lines: of answers that are lines, each with its id. claims: by native id, what it said of whose job it is. fresh:
    whose claims are new since that was emptied. followed: ids of the jobs that are followed, the only ones to be read;
    None: all. offered: what the answer that is being read says, which is known once it has been taken in. elements: of
    that answer too, the arrays that are followed and not listed themselves, each with the claim of an element.
    """

    def __init__(self, followed: Collection[str] | None = None) -> None:
        super().__init__()
        self.lines: dict[str, str] = {}
        self.claims: dict[str, Claim] = {}
        self.fresh: set[str] = set()
        self.followed = followed
        self.offered: dict[str, str] = {}
        self.elements: dict[str, Claim] = {}

    def wants(self, native_id: str) -> bool:
        """Whether a job is followed."""
        return self.followed is None or native_id in self.followed

    def forget(self, native_id: str) -> None:
        """Have the next answer read anew for a job."""
        self.pop(native_id, None)
        self.claims.pop(native_id, None)
        self.lines = {}


class Followed:
    """A job that is followed, and what is known of it."""

    __slots__ = ("answered", "asked_s", "cancel_at", "canceling", "cancels", "claim", "directory", "ended_at",
                 "executor", "gone", "identity", "is_missing", "is_overdue", "job", "left_out", "made_at", "missed",
                 "missed_at", "missing_before_s", "missing_since", "native_id", "own", "put_back_at", "queue", "quiet",
                 "recorded", "records", "renamed", "reread", "silent_s", "since", "starts", "unbegun", "wanted")

    def __init__(self, executor: BatchSchedulerExecutor, job: Job, native_id: str, own: bool,
                 identity: Identity | None = None) -> None:
        self.identity = Identity() if identity is None else identity
        self.records: tuple[str, ...] = ()      # the names under which its records are looked for
        self.claim: Claim | None = None         # the last of the queue that was the job's
        self.left_out: dict[str, None] = {}     # why answers about its id did not count
        self.renamed: str | None = None         # its name in the queue, where it was followed by another
        self.since = time.monotonic()
        self.made_at = -math.inf                # monotonic time of the command that gave it its id, if that was known
        self.executor = executor
        self.job = job
        self.native_id = native_id
        self.directory = str(executor.work_directory)   # where its records appear
        self.own = own                          # submitted here, so that its files are ours to remove
        self.queue: JobStatus | None = None     # what the queue said last
        self.quiet: dict[str, Any] | None = None    # while nothing but "as before" is to be expected: its metadata
        self.missed = 0                         # answers in a row without it
        self.missed_at = 0.0                    # monotonic time since which there were only such answers
        self.missing_since: float | None = None     # epoch time since which no queue has it, nor accounting an end
        self.missing_before_s = 0.0             # how long it had been so when it began to be followed here
        self.is_missing = False                 # all of them have said so here
        self.is_overdue = False                 # it had been so for long enough before: it is about to be lost
        self.gone = False                       # it was not there any more when its end was asked for
        self.ended_at: float | None = None      # monotonic time at which it first seemed to have ended
        self.asked_s = 0.0                      # monotonic time of the last question about its end
        self.silent_s = 0.0                     # how much of the time since then sources were silent
        self.cancel_at: float | None = None     # monotonic time of the last cancel that was accepted
        self.cancels = 0
        self.unbegun = False                    # our cancel took it out of the queue before it began
        self.wanted = False                     # its end was asked for, also in vain
        self.canceling = 0                      # cancel commands that run now: their answer belongs to the evidence
        self.put_back_at = 0.0                  # monotonic time when we last had it put back into the queue
        self.starts = 0
        self.recorded: float | None = None      # the last start that the job itself has recorded, which is counted
        self.reread = False                     # the answer that spoke of it before it was followed
        self.answered = False                   # the resource manager has said that it is alive

    @property
    def tag(self) -> str | None:
        """The id by which its files are known; None of a job that others have submitted and that bears none, as far as
        is known."""
        tags = self.identity.tags or ()
        return self.job.id if self.own or self.job.id in tags else next(iter(tags), None)
