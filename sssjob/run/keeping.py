"""The process that looks after the jobs of submissions on this machine when nobody else does.

Jobs of the executor ``local`` need somebody who keeps their time limits, learns how they end and starts what waits for
them. It is a client of the journal like any other, and holds the lease; when it is killed the jobs go on, their ends
are recorded, and the next client starts another one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from sssjob.run.client import Client
from sssjob.run.engine import Engine
from sssjob.run.journal import Entry, open_journal

__all__ = ["main"]

_TAKE_S = 10.0          # patience with others who hold the lease for a moment


def main() -> None:
    """In the new process: leave the one that started it, and look after the jobs to their ends."""
    path, ready, numbers = Path(sys.argv[1]), int(sys.argv[2]), list(map(int, sys.argv[3:]))
    if os.fork():
        os._exit(0)
    os.set_inheritable(ready, False)
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)

    def started() -> None:
        """Say, once, to the process that waits for it that what can be started is started."""
        nonlocal ready
        if ready >= 0:
            with contextlib.suppress(OSError):
                os.write(ready, b".")
            os.close(ready)
            ready = -1

    def done() -> bool:
        """Whether all jobs have ended; says when all that could be started was."""
        if engine.answered():
            started()
        return all(submission.ended for submission in own)

    with open_journal(path) as journal:
        entries = [entry for entry in journal.entries(numbers) if _taken(entry)]
        if not entries:
            started()
            return
        client = Client(journal)
        submissions = client.kept(entries)
        own = submissions[:len(entries)]
        engine = Engine(submissions, client.findings, client.progress, take_over=client.own, caps=client.caps())
        engine.follow(done)
        started()
        for submission in submissions:
            if submission.entry is not None:
                submission.entry.release()


def _taken(entry: Entry) -> bool:
    until = time.monotonic() + _TAKE_S
    while not entry.take():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
