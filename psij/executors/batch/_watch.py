"""Following jobs: one watcher per resource manager and user asks the queue for all of their jobs at once.

Two daemon threads while there is something to do: ``queue`` asks for states and looks for the records that submit
scripts write, ``ends`` finds out what became of jobs that ended or left the queue. They are apart so that slow
accounting holds up nobody. No answer changes nothing: states stay as they are, the pauses grow, and it is logged once.

A start record makes a job ACTIVE. An exit record makes no end: it has the queue asked at once, for all jobs together,
and again in short pauses that grow.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psij.executors.batch._asking import reason
from psij.executors.batch._evidence import Evidence, decide
from psij.executors.batch._files import exit_file, node_names, starts
from psij.executors.batch._lookout import LOOK_S, Lookout
from psij.job import Job
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

__all__ = ["Followed", "Known", "Watcher", "follow", "watcher_of"]

_log = logging.getLogger("psij")
_SOON_S = (0.3, 0.5)    # after an exit record: pause between two questions before it grows, and the shortest ever
_GROWTH = 1.5           # of the pause between two questions, up to the configured interval
_MOST_INTERVALS = 10    # longest pause after errors, in configured intervals
_SHARE = 10             # a pause is at least this many times as long as the question took
_ENDS_SHARE = 4         # the same for questions about ends, which are about few jobs and mostly wait
_LINGER_S = 2.0         # how long a thread with nothing to do stays
_SETTLE_S = (0.4, 5.0)  # shortest and longest pause between questions about ends
_LASTING = ("submit_time", "start_time", "nodes", "node_count", "processors", "queue", "starts")
_MISSING = JobStatus(JobState.NEW)      # a job that an answer does not list
_STRANGERS = 50         # upper bound on the ids in one accounting query for jobs that no queue answer has listed yet
# If two accounting queries are further apart than this, the process was suspended in between; silence during the gap is
# no evidence that a job is lost.
_NAP_S = 60.0
_MOST_LOGGED = 1000     # things that went wrong and are remembered, so that they are not told again
_CANCEL_AGAIN_S = 60.0
_CANCEL_TRIES = 3


class Known(dict[str, str]):
    """What the queue said last: native states by native id. lines: of answers that are lines, each with its id."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, str] = {}

    def forget(self, native_id: str) -> None:
        """Have the next answer read anew for a job."""
        self.pop(native_id, None)
        self.lines = {}


class Followed:
    """A job that is followed, and what is known of it."""

    __slots__ = ("answered", "asked_s", "cancel_at", "canceling", "cancels", "directory", "ended_at", "executor",
                 "job", "missed", "native_id", "own", "queue", "quiet", "reread", "silent_s", "starts")

    def __init__(self, executor: BatchSchedulerExecutor, job: Job, native_id: str, own: bool) -> None:
        self.executor = executor
        self.job = job
        self.native_id = native_id
        self.directory = str(executor.work_directory)   # where its records appear
        self.own = own                          # submitted here, so that its files are ours to remove
        self.queue: JobStatus | None = None     # what the queue said last
        self.quiet: dict[str, Any] | None = None    # while nothing but "as before" is to be expected: its metadata
        self.missed = 0                         # answers in a row without it
        self.ended_at: float | None = None      # monotonic time at which it first seemed to have ended
        self.asked_s = 0.0                      # monotonic time of the last question about its end
        self.silent_s = 0.0                     # how much of the time since then sources were silent
        self.cancel_at: float | None = None     # monotonic time of the last cancel that was accepted
        self.cancels = 0
        self.canceling = 0                      # cancel commands that run now: their answer belongs to the evidence
        self.starts = 0
        self.reread = False                     # the answer that spoke of it before it was followed
        self.answered = False                   # the resource manager has said that it is alive


_watchers: dict[tuple[Any, ...], Watcher] = {}
_registry = threading.Lock()
os.register_at_fork(after_in_child=lambda: _start_anew())


def _start_anew() -> None:
    """In a forked child: threads and locks of the parent are not ours."""
    global _registry
    _registry = threading.Lock()
    _watchers.clear()


def follow(followed: Followed, delay_s: float) -> None:
    """Have a job followed; the queue is asked delay_s from now at the latest, if that is not too often."""
    key = followed.executor._watch_key()
    with _registry:
        watcher = _watchers.get(key)
        if watcher is not None and watcher.add(followed, delay_s):
            return
        for old in [old for old, one in _watchers.items() if one.retired]:
            del _watchers[old]
        _watchers[key] = Watcher(key)
        _watchers[key].add(followed, delay_s)


def watcher_of(executor: BatchSchedulerExecutor) -> Watcher | None:
    """The watcher that this executor shares with others of its resource manager and user; None before the first job."""
    return _watchers.get(executor._watch_key())


class Watcher:
    """Follows the jobs of one resource manager."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.retired = False        # it has nothing to do any more and takes no jobs
        self._changed = threading.Condition()
        self._followed: dict[Job, Followed] = {}        # one id may be attached to by several Jobs
        self._ending: dict[Job, Followed] = {}          # those of them that seem to have ended
        self._states = Known()
        self._all: tuple[list[Followed], list[str]] | None = None      # all followed and their native ids; made anew
        self._threads: dict[str, threading.Thread] = {}
        self._due = 0.0                                 # monotonic time of the next question to the queue
        self._pause = 0.0
        self._interval = 0.0                            # the shortest of the configured intervals
        self._took = 0.0
        self._asked_at = 0.0
        self._errors = 0
        self._logged: set[tuple[str, ...]] = set()      # what has been logged: texts and the words in them
        self._lookout = Lookout()
        self._hinted: set[Job] = set()                  # jobs with records of which the queue says nothing yet
        self._calm = 0.0                                # the pause before there were such records
        self._ends_due = self._ends_earliest = 0.0      # monotonic times of the next question about ends
        self._ends_pause = _SETTLE_S[0]

    # --- what executors call ---------------------------------------------------------------------------------------

    def add(self, followed: Followed, delay_s: float) -> bool:
        """Follow a job; False when this watcher is retired."""
        with self._changed:
            if self.retired:
                return False
            interval = float(followed.executor.config.queue_polling_interval)
            self._interval = min(self._interval, interval) if self._followed else interval
            if not self._followed:
                self._due = self._earliest(delay_s)
                self._pause = delay_s
            self._followed[followed.job] = followed
            self._all = None
            self._states.forget(followed.native_id)
            self._lookout.want(followed)
            self._pause = min(self._pause, delay_s)
            self._due = min(self._due, self._earliest(delay_s))
            self._start("queue", self._ask_queue)
            self._changed.notify_all()
            return True

    @contextmanager
    def canceling(self, job: Job) -> Iterator[None]:
        """While a cancel command runs: an end is not judged before it is known whether it was ours."""
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                followed.canceling += 1
        try:
            yield
        finally:
            if followed is not None:
                with self._changed:
                    followed.canceling -= 1

    def canceled(self, job: Job) -> None:
        """The resource manager has accepted our cancel of a job: look soon."""
        with self._changed:
            followed = self._followed.get(job)
            if followed is not None:
                followed.cancel_at, followed.quiet = time.monotonic(), None
                followed.cancels += 1
        self.hurry(job)

    def settled(self, job: Job) -> bool:
        """Whether it is known how a job stands, by a word of the resource manager since it is followed here."""
        with self._changed:
            followed = self._followed.get(job)
            return followed is None or (followed.answered and job not in self._ending)

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
            left = until - time.monotonic()
            if left <= 0:
                del self._threads[name]
                self.retired = not self._threads and not self._followed
                return False
            self._changed.wait(left)
        return True

    def _earliest(self, delay_s: float) -> float:
        return max(time.monotonic() + delay_s, self._asked_at + min(_SHARE * self._took, self._interval))

    # --- the queue -------------------------------------------------------------------------------------------------

    def _ask_queue(self) -> None:
        while True:
            with self._changed:
                if not self._rest("queue", lambda: bool(self._followed)):
                    return
            self._look()
            with self._changed:
                left = self._due - time.monotonic()
                if left > 0:
                    self._changed.wait(min(left, LOOK_S))
                    continue
                if not self._followed:
                    continue
                if self._all is None:
                    followed = list(self._followed.values())
                    self._all = followed, _native_ids(followed)
                followed, native_ids = self._all
            try:
                self._poll(followed, native_ids)
            except Exception:
                self._log_once("Following the jobs of %s failed", self.key[0])
                self._postpone(failed=True)

    def _poll(self, followed: list[Followed], native_ids: list[str]) -> None:
        """Ask for all jobs once and take in the answer."""
        executor = followed[0].executor
        started = time.monotonic()
        seen: dict[str, JobStatus | None] = {}
        silent: set[str] = set()
        error: Exception | None = None
        for ids, command in executor._status_commands(native_ids):
            try:
                seen.update(executor._ask_queue(command, self._states))
            except Exception as e:
                error = e
                silent.update(ids)
        self._took, self._asked_at = time.monotonic() - started, time.monotonic()
        now = time.time()
        for item in followed:
            status = seen.get(item.native_id, _MISSING)
            if status is None and item.quiet is not None:
                item.quiet["confirmed_at"] = now
            elif status is not _MISSING or item.native_id not in silent:
                self._guarded(item, self._take, status, now)
        self._report(executor, error)
        self._postpone(failed=error is not None)

    def _guarded(self, item: Followed, function: Callable[..., None], *arguments: object) -> None:
        """Call a function for one job; what goes wrong with it concerns no other."""
        try:
            function(item, *arguments)
        except Exception:
            self._log_once("Following job %s of %s failed", item.native_id, self.key[0])

    def _log_once(self, text: str, *words: str) -> None:
        """Log what went wrong, with its traceback; a hook that raises at every question is one line of the log."""
        known = (text, *words) in self._logged
        if len(self._logged) >= _MOST_LOGGED:
            self._logged.clear()
        self._logged.add((text, *words))
        _log.log(logging.DEBUG if known else logging.ERROR, text, *words, exc_info=True)

    def _take(self, item: Followed, status: JobStatus | None, now: float) -> None:
        """What the queue says of one job: a status, None for "as before", or _MISSING."""
        if status is _MISSING:
            item.missed, item.quiet = item.missed + 1, None
            self._settle(item)
            return
        item.missed = 0
        if status is not None:
            self._news(item, status, now)
        elif item.queue is None:        # said in an answer that came before the job was followed
            with self._changed:
                if not item.reread:     # once: of some states nothing follows
                    item.reread = True
                    self._states.forget(item.native_id)
                    self._hint({item.job})
            return
        if item.queue is not None and item.queue.state.final:
            item.quiet = None
            self._settle(item)
            return
        self._alive(item)
        metadata = item.job.status.metadata
        if metadata is not None and "confirmed_at" in metadata and not item.job.status.final:
            metadata["confirmed_at"] = now
            item.quiet = metadata if item.cancel_at is None else None

    def _news(self, item: Followed, status: JobStatus, now: float) -> None:
        metadata = status.metadata = {"native_id": item.native_id, **_kept(item.queue, status),
                                      **(status.metadata or {}), "confirmed_at": now}
        before, ran = item.job.status, item.queue is not None and item.queue.state is JobState.ACTIVE
        item.queue, native_state = status, metadata.get("native_state")
        if isinstance(native_state, str):
            self._states[item.native_id] = native_state
        if status.state.final:
            return
        requeued = bool(before.metadata and before.metadata.get("requeued"))
        if status.state is JobState.ACTIVE and (item.starts == 0 or requeued):
            item.starts += 1
        if before.state is JobState.NEW or status.state.is_greater_than(before.state):
            item.executor._set_job_status(item.job, status)
        elif before.metadata is not None:      # the same state for PSI/J: the metadata say what has changed
            changed = {key: value for key, value in before.metadata.items() if key not in ("phase", "sources")}
            changed |= metadata
            if before.state is JobState.ACTIVE and (requeued or (ran and status.state is JobState.QUEUED)):
                changed["requeued"] = status.state is JobState.QUEUED
            before.metadata, before.message = changed, status.message

    def _alive(self, item: Followed) -> None:
        item.answered = True
        with self._changed:
            if self._ending.pop(item.job, None) is not None:
                item.ended_at, item.silent_s = None, 0.0
        due = item.cancel_at
        if due is not None and time.monotonic() - due > _CANCEL_AGAIN_S and item.cancels < _CANCEL_TRIES:
            item.executor._cancel_again(item.job)

    def _report(self, executor: BatchSchedulerExecutor, error: Exception | None) -> None:
        """Log the beginning and the end of an outage, once each."""
        threshold = max(1, executor.config.queue_polling_error_threshold)
        if error is None:
            if self._errors >= threshold:
                _log.warning("%s answers again", executor.name)
            self._errors = 0
            return
        self._errors += 1
        if self._errors == threshold:
            why = "; ".join(reason(error).splitlines())
            _log.warning("%s does not answer; jobs keep their last known states: %s", executor.name, why)

    def _postpone(self, failed: bool) -> None:
        with self._changed:
            most = self._interval * (_MOST_INTERVALS if failed else 1)
            if not self._hinted:
                self._pause, self._calm = max(self._pause, self._calm), 0.0
            self._pause = min(max(self._pause, 0.01) * (2 if failed else _GROWTH), most)
            pause = self._pause * random.uniform(0.9, 1.0)
            self._due = self._earliest(pause)

    # --- records ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take in the records that have appeared."""
        hinted: set[Job] = set()
        for directory, names in self._lookout.listings():
            with self._changed:
                found = self._lookout.found(directory, names)
            for item, name in found:
                if name.endswith(".start"):
                    self._guarded(item, self._started, name)
                if not (item.own and name.endswith(".start")):
                    hinted.add(item.job)
        if hinted:
            with self._changed:
                self._hint(hinted)

    def _hint(self, jobs: set[Job]) -> None:
        """With the lock held: the queue is to be asked soon, and until it has something to say of these jobs."""
        self._hinted |= jobs & self._followed.keys()
        self._calm = self._calm or self._pause
        self._pause = min(self._pause, _SOON_S[0])
        self._due = min(self._due, max(self._earliest(0.0), self._asked_at + _SOON_S[1]))

    def _started(self, item: Followed, name: str) -> None:
        """A start record: our job runs. That of a job made elsewhere may be an old one: the queue is asked."""
        times = starts(item.executor.work_directory / name, item.job.id if item.own else None)
        if not times or not item.own:
            return
        item.starts, item.quiet = max(item.starts, len(times)), None
        known = item.job.status.metadata or {}
        item.executor._set_job_status(item.job, JobStatus(JobState.ACTIVE, time=times[-1], metadata={
            **{key: known[key] for key in ("submit_time", "queue") if key in known}, "native_id": item.native_id,
            "start_time": times[-1], "confirmed_at": time.time(), "sources": {"start_time": "start-record"}}))

    # --- ends ------------------------------------------------------------------------------------------------------

    def _settle(self, item: Followed) -> None:
        with self._changed:
            if item.job not in self._followed:
                return
            self._hinted.discard(item.job)
            if item.ended_at is None:
                item.ended_at = item.asked_s = time.monotonic()
                self._ends_pause = _SETTLE_S[0]
                self._ends_due = min(self._ends_due, self._ends_earliest)
            self._ending[item.job] = item
            self._start("ends", self._find_ends)
            self._changed.notify_all()

    def _find_ends(self) -> None:
        while True:
            with self._changed:
                if not self._rest("ends", lambda: bool(self._ending)):
                    return
                left = self._ends_due - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                items = list(self._ending.values())
            started = time.monotonic()
            try:
                self._decide_all(items)
            except Exception:
                self._log_once("Finding out how jobs of %s ended failed", self.key[0])
            with self._changed:
                now = time.monotonic()
                self._ends_earliest = now + min(max(_SETTLE_S[0], _ENDS_SHARE * (now - started)), _SETTLE_S[1])
                self._ends_due = max(self._ends_earliest, now + self._ends_pause)
                self._ends_pause = min(self._ends_pause * _GROWTH, _SETTLE_S[1])

    def _decide_all(self, items: list[Followed]) -> None:
        """Ask the sources about all items and finish those of which the end is known."""
        executor, now = items[0].executor, time.monotonic()
        late = {item.native_id for item in items
                if item.ended_at is not None and now - item.ended_at >= executor._accounting_delay()}
        strangers = {item.native_id for item in items[:_STRANGERS]
                     if executor._REMEMBERS and not item.own and item.queue is None}
        records, silent = executor._ask_sources(_native_ids(items), late | strangers)
        now = time.monotonic()
        for item in items:
            patience = executor.config.lost_after
            if item.native_id in strangers and item.missed > 1 and not (silent or self._errors):
                patience = 0.0          # all who would know it have answered
            self._guarded(item, self._decide, records.get(item.native_id, {}), silent, now, patience)

    def _decide(self, item: Followed, records: dict[str, JobStatus], silent: bool, now: float,
                patience_s: float) -> None:
        if item.ended_at is None or item.canceling:     # it is alive after all; or it may be our doing
            return
        if silent or self._errors or now - item.asked_s > _NAP_S:
            item.silent_s += now - item.asked_s
        item.asked_s = now
        executor = item.executor
        end = exit_file(executor._aux_path(item.native_id, ".ec"), item.job.id if item.own else None)
        ours = item.job.id if item.own else end.job_id if end is not None else None
        began = starts(executor._aux_path(item.native_id, ".start"), ours) if ours is not None else []
        item.starts = max(item.starts, len(began))
        known = Evidence(item.queue, item.missed == 0, records, end, item.cancel_at is not None, item.missed,
                         now - item.ended_at, item.silent_s, executor._SHOWN_CODES)
        status = decide(known, executor._accounting_delay(), patience_s)
        if status is None:
            return
        status.metadata = {"native_id": item.native_id, **(status.metadata or {})}
        if not status.state.final:
            self._news(item, status, time.time())
            self._alive(item)
            return
        _add_starts(status.metadata, item.starts, "start-record" if len(began) == item.starts else "queue")
        if began:
            _add_nodes(status.metadata, lambda: node_names(executor._aux_path(item.native_id, ".nodefile")))
        if len(began) > 1:
            attempts = status.metadata.setdefault("attempts", [{} for _ in began])
            for attempt, start in zip(attempts if len(attempts) == len(began) else (), began, strict=False):
                attempt.setdefault("start_time", start)
        self.forget(item.job)
        executor._finish(item, status)


def _kept(before: JobStatus | None, status: JobStatus) -> dict[str, Any]:
    """What the queue has said of a job that runs and does not say again now that it is being cleaned up."""
    known, now = (before.metadata or {}) if before is not None else {}, (status.metadata or {})
    if status.state is JobState.QUEUED or known.get("start_time") != now.get("start_time"):
        return {}
    return {key: value for key, value in known.items() if key in _LASTING}


def _add_starts(metadata: dict[str, Any], starts: int, source: str) -> None:
    """How often a job was started: what was seen to happen counts where accounting has fewer records."""
    told, sources = metadata.get("starts", 0), metadata["sources"]
    if starts > told:
        if told:
            metadata.setdefault("others", {}).setdefault("starts", {})[sources.get("starts", "queue")] = told
        metadata["starts"], sources["starts"] = starts, source


def _add_nodes(metadata: dict[str, Any], names: Callable[[], list[str]]) -> None:
    """The nodes from the record of the submit script, where nothing else names them."""
    if "nodes" not in metadata and (found := names()):
        sources = metadata["sources"]
        metadata["nodes"], sources["nodes"] = found, "node-file"
        if "node_count" not in metadata:
            metadata["node_count"], sources["node_count"] = len(found), "node-file"


def _native_ids(items: Iterable[Followed]) -> list[str]:
    """Their native ids, each once, in order."""
    return list(dict.fromkeys(item.native_id for item in items))
