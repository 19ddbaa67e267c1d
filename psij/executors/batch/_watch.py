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
from collections.abc import Callable
from typing import Any

from psij.executors.batch._agenda import Agenda
from psij.executors.batch._budget import spending
from psij.executors.batch._ends import end_of, learn_start
from psij.executors.batch._files import starts
from psij.executors.batch._followed import Followed
from psij.executors.batch._hooks import BatchHooks
from psij.executors.batch._identity import Claim, Verdict, Whose, judge
from psij.executors.batch._listing import add_tags, apart, is_of, listed, native_ids_of, repeats
from psij.executors.batch._lookout import LOOK_S
from psij.executors.batch._news import amend, has_recorded, is_behind, kept, tell_missing
from psij.executors.batch._reasons import Reasons
from psij.executors.batch._sound import sound
from psij.job import Job
from psij.job_state import JobState
from psij.job_status import JobStatus

_log = logging.getLogger("psij")
_SOON_S = (0.3, 0.5)    # after an exit record: pause between two questions before it grows, and the shortest ever
_GROWTH = 1.5           # of the pause between two questions, up to the configured interval
_MOST_INTERVALS = 10    # longest pause after errors, in configured intervals
_ENDS_SHARE = 4         # the same for questions about ends, which are about few jobs and mostly wait
_SETTLE_S = (0.4, 5.0)  # shortest and longest pause between questions about ends
_MISSING = JobStatus(JobState.NEW)      # a job that an answer does not list
_STRANGERS = 50         # upper bound on the ids in one accounting query for jobs that no queue answer has listed yet
# If two accounting queries are further apart than this, the process was suspended in between; silence during the gap is
# no evidence that a job is lost.
_NAP_S = 60.0
_MOST_LOGGED = 1000     # things that went wrong and are remembered, so that they are not told again
_CANCEL_AGAIN_S = 60.0
# What the queue, or the submit command, said so long ago still holds when a job is to be cancelled: many cancels in a
# row cost one question.
_FRESH_S = 1.0
# So long after its submission a job may not be listed yet.
# Source: LSF's lsb.params, MBD_REFRESH_TIME: bjobs is answered from a copy, which is kept for 10 s by default.
_UNLISTED_S = 10.0
_CANCEL_TRIES = 3


_watchers: dict[tuple[Any, ...], Watcher] = {}
_registry = threading.RLock()
_left: dict[Job, Followed] = {}         # in a forked child: what the parent followed
os.register_at_fork(after_in_child=lambda: _start_anew())


def _start_anew() -> None:
    """In a forked child: threads and locks of the parent are not ours, and only it removes the files of its jobs."""
    global _registry
    _registry = threading.RLock()
    for watcher in _watchers.values():
        _left.update(watcher.all_followed())
    _watchers.clear()


def left_behind(job: Job) -> Followed | None:
    """In a forked child: what the parent knew of a job that it followed; given once."""
    return _left.pop(job, None)


def follow(followed: Followed, delay_s: float) -> None:
    """Have a job followed; the queue is asked delay_s from now at the latest, if that is not too often."""
    key = followed.executor._watch_key()
    with _registry:
        watcher = _watchers.get(key)
        if watcher is not None and watcher.add(followed, delay_s):
            return
        for old in [old for old, each in _watchers.items() if each.retired]:
            del _watchers[old]
        _watchers[key] = Watcher(key)
        _watchers[key].add(followed, delay_s)


def watcher_of(executor: BatchHooks) -> Watcher | None:
    """The watcher that this executor shares with others of its resource manager and user; None before the first job."""
    return _watchers.get(executor._watch_key())


class Watcher(Agenda):
    """Follows the jobs of one resource manager."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        super().__init__(key)
        self._reasons = Reasons()
        self._looking = threading.RLock()               # of the next three: who wants to know whether a job is there
        self._looked_at = 0.0
        self._looked_for: frozenset[str] = frozenset()  # native ids that were followed then
        self._there: dict[str, Claim | None] = {}
        self._logged: set[tuple[str, ...]] = set()      # what has been logged: texts and the words in them
        self._calm = 0.0                                # the pause before there were jobs in ``_hinted``
        self._ends_due = self._ends_earliest = 0.0      # monotonic times of the next question about ends
        self._ends_pause = _SETTLE_S[0]

    # --- the queue -------------------------------------------------------------------------------------------------

    def _ask_queue(self) -> None:
        spending.set(self._budget)
        while True:
            with self._changed:
                if not self._rest("queue", lambda: bool(self._followed)):
                    return
            self._look()
            with self._changed:
                seconds_left = max(self._due - time.monotonic(), self._budget_s())
                if seconds_left > 0:
                    self._changed.wait(min(seconds_left, LOOK_S))
                    continue
                if not self._followed:
                    continue
                if self._all is None:
                    followed = list(self._followed.values())
                    self._all = followed, native_ids_of(followed)
                followed, native_ids = self._all
                self._states.followed, self._states.offered = frozenset(native_ids), {}
                self._states.elements = {}
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
        self._outage.ask()
        self._states.fresh.clear()
        try:
            commands = list(executor._status_commands(native_ids))
        except OSError as e:            # the host is out of reach, and nothing is known of its user
            commands, error, silent = [], e, set(native_ids)
        for ids, command in commands:
            try:
                seen.update(executor._ask_queue(command, self._states))
            except Exception as e:
                error = e
                silent.update(ids)
        fresh = self._states.fresh & seen.keys()
        try:
            if fresh:
                add_tags(executor, self._states, [item for item in followed if item.native_id in fresh], seen)
        except Exception as e:      # nobody says whose they are: at the next question again
            error = e
            silent |= fresh
            for native_id in fresh:
                del seen[native_id]
                self._states.forget(native_id)
        self._took, self._asked_at = time.monotonic() - started, time.monotonic()
        now, claims = time.time(), self._states.claims
        if error is None:
            self._reasons.add(followed, seen, now)
        for item in followed:
            if started < item.put_back_at:
                self._states.forget(item.native_id)
                continue
            status = seen.get(item.native_id, _MISSING)
            claim = claims.get(item.native_id)
            if claim is not None and status is not _MISSING and not repeats(claim, item.claim):
                status = self._judged(item, claim, status)
            if status is None and item.quiet is not None:
                item.quiet["confirmed_at"] = now
            elif status is not _MISSING or item.native_id not in silent:
                self._guarded(item, self._take, status, now)
            else:
                item.missed_at = time.monotonic()       # silence is no answer without it
        self._outage.report(executor.name, executor.config.queue_polling_error_threshold, error)
        self._postpone(failed=error is not None)

    def _judged(self, item: Followed, claim: Claim, status: JobStatus | None) -> JobStatus | None:
        """What the queue says of a job, by what it says of whose it is; a tag that is new is that of its records."""
        tag, name = item.tag, item.identity.name or item.renamed
        if not is_of(item, claim):
            return _MISSING
        if name not in (None, item.identity.name):
            item.renamed = item.identity.name
            self._states.forget(item.native_id)     # the next answer is read as news, with that name
        if item.tag != tag:
            with self._changed:
                if item.job in self._followed:
                    self._lookout.drop(item)
                    self._lookout.want(item)
        return status

    def is_there(self, job: Job, fresh_s: float = _FRESH_S) -> bool:
        """Whether the queue has this very job, and not another one of its id, by an answer of the last fresh_s seconds,
        also one to its submission.

        It is asked where there is none. True of a job that is not followed, and of one that may not be listed yet.
        Raises what the question raises.
        """
        now = time.monotonic()
        with self._changed:
            item = self._followed.get(job)
            if item is None or now - item.made_at < fresh_s or not item.executor._TELLS_WHOSE:
                return True
        with self._looking:
            if self._looked_at < max(now - fresh_s, item.since) or item.native_id not in self._looked_for:
                began = time.monotonic()
                with self._changed:
                    followed = list({job: item, **self._followed}.values())
                self._there = listed(item.executor, followed)
                self._looked_at, self._looked_for = began, frozenset(followed_job.native_id
                                                                     for followed_job in followed)
            there = self._there
        if item.native_id not in there:
            return now - item.made_at < _UNLISTED_S
        claim = there[item.native_id]
        return claim is None or repeats(claim, item.claim) or is_of(item, claim)

    def renamed(self, job: Job) -> None:
        """A job has another name now: by that it is told from others no more."""
        with self._changed:
            if (item := self._followed.get(job)) is not None:
                item.identity.name, item.renamed = None, item.identity.name

    def _guarded(self, item: Followed, function: Callable[..., None], *arguments: object) -> None:
        """Call a function for one job; what goes wrong with it concerns no other."""
        try:
            function(item, *arguments)
        except Exception:
            self._log_once("Following job %s of %s failed", item.native_id, self.key[0])

    def _log_once(self, text: str, *words: str) -> None:
        """Log what went wrong, with its traceback; a hook that raises at every question is one line of the log."""
        logged_before = (text, *words) in self._logged
        if len(self._logged) >= _MOST_LOGGED:
            self._logged.clear()
        self._logged.add((text, *words))
        _log.log(logging.DEBUG if logged_before else logging.ERROR, text, *words, exc_info=True)

    def _take(self, item: Followed, status: JobStatus | None, now: float) -> None:
        """What the queue says of one job: a status, None for "as before", or _MISSING."""
        if status is _MISSING:
            if not item.missed:
                item.missed_at = time.monotonic()
            item.missed = 0 if self._has_elements(item) else item.missed + 1
            item.quiet, item.claim = None, None
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

    def _has_elements(self, item: Followed) -> bool:
        """Whether the queue lists elements of the array that a job is: sources tell how the whole stands."""
        claim = self._states.elements.get(item.native_id)
        return claim is not None and judge(item.identity, claim)[0] is Verdict.OURS

    def _news(self, item: Followed, status: JobStatus, now: float, in_queue: bool = True) -> None:
        """Tell how a job stands. in_queue: by the queue; accounting may be behind the record of a start."""
        status, odd = sound(status, item.identity, now)
        item.left_out.update(dict.fromkeys(f"the queue says that {why}" for why in odd))
        metadata = status.metadata = {"native_id": item.native_id, **kept(item.queue, status),
                                      **(status.metadata or {}), "confirmed_at": now}
        if item.renamed is not None:
            metadata["renamed"] = item.renamed
        before, last = item.job.status, item.queue
        item.queue = status if in_queue else last
        native_state = self._states.offered.get(item.native_id, metadata.get("native_state"))
        if isinstance(native_state, str):
            self._states[item.native_id] = native_state
        if status.state.final:
            return
        requeued = bool(before.metadata and before.metadata.get("requeued"))
        if status.state is JobState.ACTIVE and (item.starts == 0 or (requeued and not has_recorded(item, metadata))):
            item.starts += 1
        if before.state is JobState.NEW or status.state.is_greater_than(before.state):
            item.executor._set_job_status(item.job, status)
        elif before.metadata is not None:      # the same state for PSI/J: the metadata say what has changed
            amend(item.job, before, status, last, now)

    def _alive(self, item: Followed) -> None:
        item.answered = True
        with self._changed:
            if self._ending.pop(item.job, None) is not None:
                item.ended_at, item.silent_s = None, 0.0
        if not item.missed:
            item.is_missing, item.is_overdue, item.missing_since, item.missing_before_s = False, False, None, 0.0
        due = item.cancel_at
        if due is not None and time.monotonic() - due > _CANCEL_AGAIN_S and item.cancels < _CANCEL_TRIES:
            item.executor._cancel_again(item.job)

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
                records = self._lookout.found(directory, names)
            for item, name in records:
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
        times = starts(item.executor.work_directory / name, item.job.id if item.own else None, item.executor.host)
        if not times or not item.own:
            return
        item.starts, item.recorded, item.quiet = max(item.starts, len(times)), times[-1], None
        before = item.job.status
        facts = before.metadata or {}
        if is_behind(times[-1], item.queue):
            if before.state is JobState.QUEUED and not facts.get("requeued"):
                item.job._renew(JobStatus(before.state, before.time, before.message,
                                          metadata={**facts, "requeued": True}))
            return
        item.executor._set_job_status(item.job, JobStatus(JobState.ACTIVE, time=times[-1], metadata={
            **{key: facts[key] for key in ("submit_time", "queue") if key in facts}, "native_id": item.native_id,
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
        spending.set(self._budget)
        while True:
            with self._changed:
                if not self._rest("ends", lambda: bool(self._ending)):
                    return
                seconds_left = max(self._ends_due - time.monotonic(), self._budget_s(of_ends=True))
                if seconds_left > 0:
                    self._changed.wait(seconds_left)
                    continue
                items = list(self._ending.values())
            started = self._ends_asked_at = time.monotonic()
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
        items, others = apart(items)
        if others:
            self._decide_all(others)
        executor, now = items[0].executor, time.monotonic()
        late = {item.native_id for item in items
                if item.ended_at is not None and now - item.ended_at >= executor._accounting_delay()}
        strangers = {item.native_id for item in items[:_STRANGERS]
                     if executor._REMEMBERS and not item.own and item.queue is None}
        for item in items:
            learn_start(item)
        whose = Whose({item.native_id: item.identity for item in items})
        records, silent = executor._ask_sources(native_ids_of(items), late | strangers, whose)
        now = time.monotonic()
        for item in items:
            patience = executor.config.lost_after
            if item.native_id in strangers and item.missed > 1 and not (silent or self._outage.errors):
                patience = 0.0          # all who would know it have answered
            item.left_out.update(dict.fromkeys(whose.left([item.native_id])))
            self._guarded(item, self._decide, records.get(item.native_id, {}), silent, now, patience)

    def _decide(self, item: Followed, records: dict[str, JobStatus], silent: bool, now: float,
                patience_s: float) -> None:
        if item.ended_at is None or item.canceling:     # it is alive after all; or it may be our doing
            return
        slept = now - item.asked_s > _NAP_S
        if silent or self._outage.errors or slept:
            item.silent_s += now - item.asked_s
        if slept:
            item.missed_at = now        # the queue could not list it while nobody asked
        item.asked_s = now
        heard = not (silent or self._outage.errors)
        status = end_of(item, records, now, patience_s, heard)
        if status is None:
            if heard and item.missing_since is not None:    # also where an earlier client has found that
                tell_missing(item)
            return
        if not status.state.final:
            if not item.job.status.state.is_greater_than(status.state):     # half a record takes nothing back
                self._news(item, status, time.time(), in_queue=False)
            self._alive(item)
            return
        self.forget(item.job)
        item.executor._finish(item, status)
