"""What a forked child has to put right: locks that a thread of the parent held, and jobs that only the parent follows.

Threads do not survive a fork, and a lock that one of them held stays locked in the child. Objects that have locks or
follow jobs ask to be told (``tell``); jobs, of which there may be many, compare ``count`` when they are used next.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something that has to be put right in a forked child."""

    def _forked(self) -> None:
        """Called in the child, while it has one thread; must neither wait nor open anything."""


#: How many forks lie between this process and the one that imported psij.
count = 0
#: Held while a job of the parent is taken over.
guard = threading.RLock()
_told: WeakSet[Forked] = WeakSet()


def tell(listener: Forked) -> None:
    """Have an object told when it finds itself in a forked child."""
    _told.add(listener)


def _forked() -> None:
    global count, guard
    count += 1
    guard = threading.RLock()
    for listener in list(_told):
        listener._forked()


os.register_at_fork(after_in_child=_forked)
