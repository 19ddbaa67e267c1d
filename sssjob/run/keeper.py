"""The process that looks after the jobs of submissions on this machine when nobody else does.

Jobs of the executor ``local`` need somebody who keeps their time limits, learns how they end and starts what waits for
them. It is a client of the journal like any other, and holds the lease; when it is killed the jobs go on, their ends
are recorded, and the next client starts another one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sssjob.errors import AccessError
from sssjob.run.journal import Entry

__all__ = ["keep"]

_READY_S = 60.0         # patience with its start
_TAKE_S = 10.0          # of its own, with others who hold the lease for a moment
_ROOT = str(Path(__file__).resolve().parents[2])
_CODE = f"import sys; sys.path.append({_ROOT!r}); from sssjob.run.keeper import main; main()"


def keep(entries: Sequence[Entry]) -> None:
    """Start one for submissions that were made together, and wait until it has started what can be started."""
    read, write = os.pipe()
    log = -1
    entry, numbers = entries[0], [str(entry.number) for entry in entries]
    jobs = f"the jobs of {', '.join(f'@{number}' for number in numbers[:5])}{', ...' * (len(numbers) > 5)}"
    try:
        log = entry.open_file("keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        subprocess.run([sys.executable, "-P", "-c", _CODE, str(entry.journal.path), str(write), *numbers],
                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(write,), start_new_session=True,
                       check=True)
        os.close(write)
        write = -1
        if not select.select([read], [], [], _READY_S)[0] or os.read(read, 1) != b".":
            last_line = (entry.folder / "keeper.log").read_text(errors="replace").strip().rpartition("\n")[2]
            raise AccessError(str(entry.journal.path), f"{jobs} are not looked after: {last_line}")
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, AccessError):
            raise
        raise AccessError(sys.executable, f"cannot look after {jobs}: {error}") from error
    finally:
        for fd in (read, write, log):
            if fd >= 0:
                os.close(fd)


def main() -> None:
    """In the new process: leave the one that started it, and look after the jobs to their ends."""
    path, ready, numbers = Path(sys.argv[1]), int(sys.argv[2]), list(map(int, sys.argv[3:]))
    if os.fork():
        os._exit(0)
    os.set_inheritable(ready, False)
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    from sssjob.run.client import Client
    from sssjob.run.engine import Engine
    from sssjob.run.journal import open_journal

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
        entries = [entry for number in numbers if _taken(entry := journal.entry(number))]
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
