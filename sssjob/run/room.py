"""Room in the queues: how many jobs may be in flight, and which are held back until there is room.

There is none where a cap is reached, or where a resource manager has said that its queue is full. That is a state to
wait in: the job was certainly not made, and nothing is counted against it. It goes back to those that wait, which the
journal knows, and is offered again when one of our jobs in that queue has ended, and after a pause that grows, as
others may have made room. A job that is taken after such a pause is followed by the next one at once.

Jobs share a queue (a *lane*) that have the same executor, queue, account and quality of service: where one lane is full
others may not be.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sssjob.run.caps import Caps
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["AWAY", "FULL", "Room"]

#: How the reason begins for which a job is held back, where a resource manager has no room.
FULL: Final = "the queue is full"
AWAY: Final = "does not answer"         # behind the name of an executor
_PAUSE_S: Final = (5.0, 300.0)      # the first before a full queue is offered a job again, and the longest
_SHARED: Final = 0.5                # of that pause, at whose end room in another queue may be for this one
_CAP_S: Final = 5.0                 # between two looks at whether jobs of other clients have ended, at a cap
#: Options of submit commands, in small letters, that choose a queue, or an account that has limits of its own.
_OF_LANES: Final = frozenset(("a", "account", "accounting_group", "bank", "p", "partition", "project", "q", "qos",
                              "queue"))
_KNOWN_S: Final = 1.0               # how long a count of what other clients have in flight holds


@dataclass(slots=True)
class _Lane:
    """Jobs that share the limits of a queue. waiting: those that are held back, by their places. reason: that the queue
    is full, with the words of its manager, or that this does not answer. offers: how many may be tried in spite of
    that; tried: those that are. probe: the first of those that are after a pause. due: when the next is, by the
    monotonic clock. step: how many are tried at a time; bound: no more than so many have room, None where that is not
    known."""

    waiting: dict[int, Running] = field(default_factory=dict)
    reason: str | None = None
    offers: int = 0
    tried: set[int] = field(default_factory=set)
    probe: int | None = None
    pause_s: float = 0.0
    due: float = float("inf")
    step: int = 1
    bound: int | None = None


class Room:
    """The room that the jobs of an engine have. elsewhere: how many jobs of an executor and a cluster (None: of any)
    are in flight in submissions that the engine does not look after."""

    def __init__(self, engine: Engine, elsewhere: Callable[[str | None, str | None], int], caps: Caps) -> None:
        self.engine = engine
        self._elsewhere = elsewhere
        self._caps = caps
        self._lanes: dict[tuple[object, ...], _Lane] = {}
        self._counted: dict[int, Running] = {}          # jobs in flight, by identity
        self._in_flight: dict[object, int] = {}         # how many of them, by what a cap is about
        self._others: dict[tuple[str | None, str | None], tuple[float, int]] = {}    # what ``elsewhere`` said, when

    # -- who may go
    def admits(self, job: Running) -> bool:
        """Whether a job may be submitted now, and takes its place; else it is held back."""
        lane = self._lane(job)
        if lane.reason is not None and not lane.offers:
            self._hold(lane, job, lane.reason)
            return False
        cap = self._reached(job)
        if cap is not None:
            lane.due = min(lane.due, time.monotonic() + _CAP_S)
            self._hold(lane, job, cap)
            return False
        if lane.reason is not None:
            lane.offers -= 1
            lane.tried.add(self._place(job))
        lane.waiting.pop(self._place(job), None)
        self.took(job)
        if lane.reason is None:
            self._next(lane)
        return True

    def takes(self, job: Running, count: int) -> bool:
        """Whether there is room for so many jobs like this one, as far as is known."""
        lane = self._lanes.get(_lane_of(job))
        return (lane is None or lane.reason is None) and self._reached(job, count) is None

    @property
    def is_capped(self) -> bool:
        """Whether what other clients submit may leave no room under a cap."""
        return self._caps != Caps()

    def within_caps(self, consignments: Sequence[Sequence[Running]]) -> Sequence[Sequence[Running]]:
        """Jobs that are to be submitted, as they go out, but for those that a cap leaves no room for any more since
        they took their places; these wait again. It is asked while no other client can write what it submits."""
        self._others.clear()
        fitting = []
        for jobs in reversed(consignments):
            cap = self._reached(jobs[0], 0)
            if cap is None:
                fitting.append(jobs)
                continue
            lane = self._lane(jobs[0])
            lane.due = min(lane.due, time.monotonic() + _CAP_S)
            for job in jobs:
                self.engine.starting.left(job)
                job.forget()
                self._hold(lane, job, cap)
        return fitting[::-1]

    def took(self, job: Running) -> None:
        """A job is in flight."""
        job.go()
        if id(job) not in self._counted:
            self._counted[id(job)] = job
            for key in _keys(job):
                self._in_flight[key] = self._in_flight.get(key, 0) + 1

    def left(self, job: Running) -> None:
        """A job is not in flight any more, or was not submitted after all."""
        if self._counted.pop(id(job), None) is not None:
            for key in _keys(job):
                self._in_flight[key] -= 1

    def is_closed(self, job: Running) -> bool:
        """Whether the queue of a job that is about to be submitted has been found full meanwhile."""
        lane = self._lanes.get(_lane_of(job))
        return lane is not None and lane.reason is not None and self._place(job) not in lane.tried

    # -- what resource managers say
    def full(self, job: Running, reason: str) -> None:
        """A resource manager has no room for a job."""
        self._close(self._lane(job), f"{FULL}: {' '.join(reason.split())}")
        self.held_back(job)

    def full_for_many(self, jobs: Sequence[Running]) -> None:
        """A resource manager has no room for as many jobs as came together. For a part of them it may have room: one is
        offered at once, then twice as many each time, and half as many once those are refused."""
        lane = self._lane(jobs[0])
        self._search(lane, len(jobs) // 2 if lane.bound is not None and len(jobs) == lane.step else 1, len(jobs) - 1)

    def silent(self, job: Running) -> None:
        """A resource manager did not answer, and nobody knows whether it has a job: those after that one, which would
        each wait as long for an answer, are kept until it is tried again."""
        if not self.is_closed(job):     # said of another element of its array, by the same command
            self._close(self._lane(job), f"{job.of.executor().name} {AWAY}")

    @staticmethod
    def _close(lane: _Lane, reason: str) -> None:
        lane.reason, lane.offers, lane.probe = reason, 0, None
        lane.tried.clear()
        lane.pause_s = min(max(lane.pause_s * 2, _PAUSE_S[0]), _PAUSE_S[1])
        lane.due = time.monotonic() + lane.pause_s * random.uniform(0.75, 1.0)

    def held_back(self, job: Running) -> None:
        """A job that was about to be submitted, and was not, waits for room again."""
        lane = self._lane(job)
        reason = str(lane.reason)
        self.engine.starting.left(job)
        job.forget()
        self._hold(lane, job, reason)
        job.of.note(job, "full", {"reason": reason}, source=job.of.executor().name)

    def taken(self, job: Running) -> None:
        """A resource manager has taken a job."""
        lane = self._lanes.get(_lane_of(job))
        if lane is None or lane.reason is None:
            return
        lane.pause_s = 0.0
        lane.tried.discard(self._place(job))
        if lane.probe == self._place(job):
            lane.probe = None
            if lane.bound is None:
                self._offer(lane, probe=True)
            else:
                bound = lane.bound - lane.step
                self._search(lane, min(2 * lane.step, (bound + 1) // 2), bound)

    def has_ended(self, job: Running) -> None:
        """The end of a job makes room for one in each queue that it may have kept full, in the order of the jobs that
        wait. That may be another queue of the same manager, where a limit is for all of them; nobody says so, and such
        a queue is offered the room no sooner than half of its pause after its last refusal."""
        was_in_flight = id(job) in self._counted
        self.left(job)
        if not was_in_flight:
            return
        own, now = _lane_of(job), time.monotonic()
        for key, lane in sorted(self._lanes.items(), key=lambda item: min(item[1].waiting, default=-1)):
            if lane.reason is None or key == own or (key[0] == own[0] and lane.due - now <= lane.pause_s * _SHARED):
                self._offer(lane)

    def offer_due(self) -> None:
        """Offer a job to each queue whose time has come."""
        now = time.monotonic()
        for lane in self._lanes.values():
            if lane.due <= now:
                lane.due = now + _CAP_S if lane.reason is None else now + max(lane.pause_s, _PAUSE_S[0])
                self._offer(lane, probe=True)

    def next_due(self) -> float:
        """Seconds until a queue is to be offered a job."""
        due = min((lane.due for lane in self._lanes.values() if lane.waiting), default=float("inf"))
        return due - time.monotonic()

    # -- within
    def _search(self, lane: _Lane, step: int, bound: int) -> None:
        """Have so many of the jobs that wait looked at again, for no more than ``bound`` of which there is room."""
        if bound > 0:
            lane.step, lane.bound = step, bound
            self._offer(lane, probe=True, count=step)

    def _offer(self, lane: _Lane, probe: bool = False, count: int = 0) -> None:
        """Have the first job that waits looked at again. count: so many, within a search."""
        if not lane.waiting:
            lane.reason, lane.offers, lane.probe, lane.pause_s, lane.due = None, 0, None, 0.0, float("inf")
            lane.tried.clear()
            return
        if lane.reason is not None:
            lane.offers += count or 1
            lane.probe = min(lane.waiting) if probe else lane.probe
        if probe and not count:
            lane.bound = None
        for _ in range(count or 1):
            self._next(lane)

    def _next(self, lane: _Lane) -> None:
        while lane.waiting:
            first = lane.waiting.pop(min(lane.waiting))
            if first.word == "waiting" and not first.on_hold:       # one that is comes again when it is released
                self.engine.pend(first)
                return

    def _hold(self, lane: _Lane, job: Running, reason: str) -> None:
        lane.waiting[self._place(job)] = job
        job.hold_back(reason)

    def _reached(self, job: Running, more: int = 1) -> str | None:
        """The cap that keeps a job back, or so many like it, in words; None where none does."""
        name = job.of.executor().name.lower()
        own = job.of.cap
        if own is not None and self._in_flight.get(id(job.of), 0) + more > own:
            return f"of its submission no more than {own} may be in flight"
        for key, cluster, cap in ((name, job.of.cluster, self._caps.of(name)), (None, None, self._caps.of_all)):
            if cap is not None and self._in_flight.get(key, 0) + self._others_of(key, cluster) + more > cap:
                return f"of {key or 'all executors'} no more than {cap} may be in flight"
        return None

    def _others_of(self, name: str | None, cluster: str | None) -> int:
        now = time.monotonic()
        when, count = self._others.get((name, cluster), (float("-inf"), 0))
        if now - when > _KNOWN_S:
            count = self._elsewhere(name, cluster)
            self._others[name, cluster] = now, count
        return count

    def _lane(self, job: Running) -> _Lane:
        return self._lanes.setdefault(_lane_of(job), _Lane())

    def _place(self, job: Running) -> int:
        return self.engine.place[id(job)]


def _keys(job: Running) -> Iterable[object]:
    """What caps that a job counts against are about: its submission, its executor, everything."""
    return id(job.of), job.of.executor().name.lower(), None


def _lane_of(job: Running) -> tuple[object, ...]:
    name = job.of.executor().name
    attributes = job.plan.parts[0].spec.attributes if job.plan.parts else None
    if attributes is None:
        return (name,)
    custom = attributes.custom_attributes or {}
    options = sorted((option, str(value)) for option, value in custom.items()
                     if option.rpartition(".")[2].lower() in _OF_LANES)
    return name, attributes.queue_name, attributes.account, *options
