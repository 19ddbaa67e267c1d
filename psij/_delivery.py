"""The one thread that calls status callbacks, in the order in which statuses were set.

It starts with the first callback and is a daemon. A callback that raises is logged; one that waits, submits or cancels
is safe, because states are set by other threads. A forked child gets a thread of its own.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable

__all__ = ["deliver"]

_log = logging.getLogger("psij")
_Call = Callable[[], None]


class _Deliverer:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, call: _Call) -> None:
        self._queue.put(call)
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="psij-callbacks", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            call = self._queue.get()
            try:
                call()
            except Exception:
                _log.exception("A job status callback failed")
            del call


_deliverers: dict[int, _Deliverer] = {}     # by process id: threads do not survive a fork


def deliver(call: _Call) -> None:
    """Have the delivery thread call this after everything handed over before."""
    pid = os.getpid()
    deliverer = _deliverers.get(pid) or _deliverers.setdefault(pid, _Deliverer())
    deliverer.put(call)
