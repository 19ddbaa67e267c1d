"""What the tests of the local executor share."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from psij.executors import _local_starter
from psij.executors._local_proc import process

__all__ = ["starters_killed", "wait_until"]


@contextmanager
def starters_killed(every_s: float) -> Iterator[None]:
    """Whatever starter there is is killed, again and again."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(every_s):
            starter = _local_starter._starters.starter
            if starter is not None and process(starter.pid) is not None:
                with suppress(ProcessLookupError):      # it has ended by itself just now
                    os.kill(starter.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it does not become true"
        time.sleep(0.01)
