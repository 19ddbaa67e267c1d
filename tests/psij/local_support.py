"""What the tests of the local executor share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psij.executors import _local_starter
from psij.executors._local_proc import process

__all__ = ["starters_killed"]


@contextmanager
def starters_killed(every_s: float) -> Iterator[None]:
    """Whatever starter there is is killed, again and again."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(every_s):
            starter = _local_starter._starters.starter
            if starter is not None and process(starter.pid) is not None:
                os.kill(starter.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()
