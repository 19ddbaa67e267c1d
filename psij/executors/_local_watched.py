"""What the engine of executor ``local`` knows of a process: who it is, how it is to end, and how it has ended."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from psij.executors import _local_proc as proc
from psij.executors._local_starter import Starter, ask_end

_TICKS = os.sysconf("SC_CLK_TCK")


class Outcome(NamedTuple):
    """How a process ended. why: None, cancel or timeout. What is None is not known: the process was not ours.

    peak: as in ru_maxrss.
    """

    wait_status: int | None
    cpu_s: float | None
    peak: int | None
    wall_s: float
    why: str | None


class Owner(Protocol):
    """Who wants to know of the end of a process; called by the engine's thread."""

    def ended(self, outcome: Outcome) -> None:
        """The process, and all members if it was ended on request, are gone."""


@dataclass(slots=True, eq=False)
class Watched:
    """A process from its start (or attaching) to its end. pid 0: not started yet.

    starter: which reports its end. child: it is ours to reap. own_session: it leads a session of its own. tag: the
    value of proc.TAG in its environment. started: by the monotonic clock. limit: seconds from the start, or None.
    begun: the engine looks after it. killed: when the first SIGKILL was due, by the monotonic clock. empty: the last
    look found no member. known: processes seen to belong to it, by id and start. watching: those that it waits for.
    teller: a descriptor that brings the report of another client's starter (``_local_starter.ask_end``),
    whose id is parent.
    """

    owner: Owner
    pid: int = 0
    starter: Starter | None = None
    child: bool = False
    own_session: bool = True
    tag: str | None = None
    started: float = 0.0
    limit: float | None = None
    begun: bool = False
    why: str | None = None
    killing: bool = False
    killed: float = 0.0
    empty: bool = False
    ended: float | None = None
    wait_status: int | None = None
    cpu_s: float | None = None
    peak: int | None = None
    done: bool = False
    fd: int | None = None
    teller: int | None = None
    parent: int = 0
    known: set[tuple[int, int]] = field(default_factory=set)
    watching: set[int] = field(default_factory=set)
    timer: list[Any] | None = None

    def elsewhere(self, owner: Owner) -> Watched:
        """The same process, to be looked after by a forked child of the one that looks after it now."""
        parent = self.parent if self.starter is None else self.starter.pid
        return Watched(owner, self.pid, own_session=self.own_session, tag=self.tag, started=self.started,
                       limit=self.limit, known=set(self.known)).told_by(parent)

    def told_by(self, parent: int) -> Watched:
        """Have the starter of another process tell of the end, where the parent is one."""
        self.parent, self.teller = parent, ask_end(self.pid, parent)
        return self

    def started_s(self) -> float:
        """When the process started, seconds of CLOCK_BOOTTIME."""
        for pid, start in self.known:
            if pid == self.pid:
                return start / _TICKS
        return self.started - time.monotonic() + time.clock_gettime(time.CLOCK_BOOTTIME)

    def seems_alive(self) -> bool:
        """Whether the process is there, by its id and its session or what is known of it; it is noted then."""
        now = proc.process(self.pid)
        if now is None or not now.living or (self.own_session and now.session != self.pid):
            return False
        self.known = self.known or {(now.pid, now.start)}
        return (now.pid, now.start) in self.known
