"""Which jobs of a resource manager are followed, and when it is to be asked the next question about them."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from psij.executors.batch._budget import Budget
from psij.executors.batch._followed import Followed, LastAnswer
from psij.executors.batch._lookout import Lookout
from psij.executors.batch._outage import Outage
from psij.job import Job

_SHARE = 10             # a pause is at least this many times as long as the question took
_LINGER_S = 2.0         # how long a thread with nothing to do stays
_FEW = 20               # jobs; while no more are followed, the ceiling on questions is not looked at
_MINUTE_S = 60.0
_A_PAUSE = 4            # questions in the time of a configured interval that are no reason to look at it either


class Agenda(ABC):
    """Takes jobs, and orders concerning them, for the threads of a watcher, which asks the questions."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.retired = False        # it has nothing to do any more and takes no jobs
        self._changed = threading.Condition()
        self._followed: dict[Job, Followed] = {}        # one id may be attached to by several Jobs
        self._ending: dict[Job, Followed] = {}          # those of them that seem to have ended
        self._states = LastAnswer()
        self._all: tuple[list[Followed], list[str]] | None = None      # all followed and their native ids; made anew
        self._threads: dict[str, threading.Thread] = {}
        self._due = 0.0                                 # monotonic time of the next question to the queue
        self._pause = 0.0
        self._interval = 0.0                            # the shortest of the configured intervals
        self._took = 0.0
        self._asked_at = self._ends_asked_at = 0.0      # monotonic times of the last questions to queue and accounting
        self._outage = Outage()
        self._budget = Budget()
        self._many_at = float("-inf")                   # monotonic time when more than a few jobs were followed last
        self._lookout = Lookout()
        self._hinted: set[Job] = set()                  # jobs with records of which the queue says nothing yet

    @abstractmethod
    def _ask_queue(self) -> None:
        """The thread that asks the queue while jobs are followed."""

    # --- what executors call ---------------------------------------------------------------------------------------

    def add(self, followed: Followed, delay_s: float) -> bool:
        """Follow a job; False when this watcher is retired."""
        with self._changed:
            if self.retired:
                return False
            interval = float(followed.executor.config.queue_polling_interval)
            if not self._followed:
                self._interval, self._pause, self._due = interval, delay_s, float("inf")
            self._interval, self._pause = min(self._interval, interval), min(self._pause, delay_s)
            earliest = self._earliest(delay_s)
            self._followed[followed.job] = followed
            self._all = None
            self._states.forget(followed.native_id)
            self._lookout.want(followed)
            self._start("queue", self._ask_queue)
            if earliest < self._due:        # nobody is woken for each of many jobs that are submitted in a row
                self._due = earliest
                self._changed.notify_all()
            return True

    @contextmanager
    def canceling(self, job: Job, wanted: bool = True) -> Iterator[None]:
        """While a cancel command runs: an end is not judged before it is known whether it was ours. wanted: the end."""
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                followed.wanted |= wanted
                followed.canceling += 1
        try:
            yield
        finally:
            if followed is not None:
                with self._changed:
                    followed.canceling -= 1

    def canceled(self, job: Job, gone: bool = False, unbegun: bool = False) -> None:
        """The resource manager has accepted our cancel of a job: look soon. gone: it was not there any more. unbegun:
        it was taken out of the queue before it began."""
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                followed.cancel_at, followed.quiet = time.monotonic(), None
                followed.cancels += 1
                followed.gone, followed.unbegun = gone, unbegun
        self.hurry(job)

    @contextmanager
    def putting_back(self, job: Job) -> Iterator[bool]:
        """While a command runs that puts a job back into the queue. Gives whether it may run: not where the end of the
        job is told already. What was asked before the answer to the command, and an end that was seen before, are of
        the run that is over: some managers put back jobs that have ended too."""
        with self.canceling(job, wanted=False):
            yield job in self._followed
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                followed.put_back_at, followed.ended_at = time.monotonic(), None
                self._ending.pop(job, None)
                if followed.queue is not None and followed.queue.state.final:
                    followed.queue = None
                    self._states.forget(followed.native_id)

    def all_followed(self) -> dict[Job, Followed]:
        """What is followed, without the lock, which a thread that is gone may hold."""
        return dict(self._followed)

    def settled(self, job: Job) -> bool:
        """Whether it is known how a job stands, by a word of the resource manager since it is followed here; also
        that it knows nothing of the job."""
        with self._changed:
            followed = self._followed.get(job)
            return followed is None or (not followed.is_overdue and (
                followed.is_missing or (followed.answered and job not in self._ending)))

    def hears(self) -> tuple[bool, float | None]:
        """Whether the last question to the queue was answered, and since when (seconds since the epoch) none is, once
        that is an outage."""
        since = self._outage.silent_since()
        return self._asked_at > 0 and not self._outage.errors and since is None, since

    def hurry(self, job: Job) -> None:
        """Ask the queue soon."""
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                self._pause = min(self._pause, followed.executor._first_delay())
                self._due = min(self._due, self._earliest(self._pause))
                self._changed.notify_all()

    def forget(self, job: Job) -> None:
        """Stop following a job."""
        with self._changed:
            followed = self._followed.pop(job, None)
            self._ending.pop(job, None)
            self._hinted.discard(job)
            self._all = None
            if followed is not None:
                self._states.forget(followed.native_id)
                self._lookout.drop(followed)

    def close(self) -> None:
        """Follow nothing any more."""
        with self._changed:
            self._followed.clear()
            self._ending.clear()
            self._hinted.clear()
            self._lookout.clear()
            self._all = None
            self._changed.notify_all()

    # --- threads ---------------------------------------------------------------------------------------------------

    def _start(self, name: str, target: Callable[[], None]) -> None:
        """With the lock held: have a thread of that name."""
        if name not in self._threads:
            thread = threading.Thread(target=target, name=f"psij-{self.key[0]}-{name}", daemon=True)
            self._threads[name] = thread
            thread.start()

    def _rest(self, name: str, busy: Callable[[], bool]) -> bool:
        """With the lock held: wait while there is nothing to do; False when the thread is to end."""
        until = time.monotonic() + _LINGER_S
        while not busy():
            seconds_left = until - time.monotonic()
            if seconds_left <= 0:
                del self._threads[name]
                self.retired = not self._threads and not self._followed
                return False
            self._changed.wait(seconds_left)
        return True

    def _earliest(self, delay_s: float) -> float:
        return max(time.monotonic() + delay_s, self._asked_at + min(_SHARE * self._took, self._interval))

    def _budget_s(self, of_ends: bool = False) -> float:
        """Seconds until the queue, or accounting for ends, may be asked again; the ends of a few jobs are told at once.

        Each leaves questions for the other thread: accounting is asked right after the queue; then it is the turn of
        the queue, and of what follows that."""
        kept = 1 if not of_ends else 0 if self._asked_at > self._ends_asked_at else 2
        now = time.monotonic()
        if len(self._followed) > _FEW:
            self._many_at = now
        elif now - self._many_at > _MINUTE_S:       # the last ends of many jobs are of the minute of those before
            self._budget.forgive()
            return 0.0
        if not self._followed:
            return 0.0
        config = next(iter(self._followed.values())).executor.config
        return self._budget.wait_s(max(config.questions_a_minute, _A_PAUSE * 60 / max(self._interval, 0.01)), kept)
