"""What /proc tells about processes: who belongs to a job, and whether a process id still means the same process.

Source: proc_pid_stat(5), proc_stat(5), pidfd_open(2). Where there is no /proc, functions answer None or nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

__all__ = ["Process", "boot_id", "members", "open_pidfd", "process", "send"]


class Process(NamedTuple):
    """One process. start: clock ticks since boot; together with pid it names a process for good during one boot."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int


def process(pid: int) -> Process | None:
    """The process of that id; None when there is none, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()     # the name before may hold blanks and brackets
    except OSError:
        return None
    return Process(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def boot_id() -> str:
    """Identifies this boot of this machine; empty where it cannot be told."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()
    return ""


def _all() -> Iterator[Process]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and (found := process(int(name))) is not None:
            yield found


def members(leader: int, own_session: bool, known: set[tuple[int, int]]) -> dict[int, Process]:
    """Living processes of a job by id, the leader among them.

    Those in the leader's session or process group (if the session is its own), those seen as members before (known:
    id and start, added to), and all descendants of any of these. Zombies don't live.
    """
    everyone = {found.pid: found for found in _all()}
    chosen = {pid for pid, p in everyone.items()
              if pid == leader or (own_session and leader in (p.session, p.group)) or (pid, p.start) in known}
    children: dict[int, list[int]] = {}
    for found in everyone.values():
        children.setdefault(found.parent, []).append(found.pid)
    pending = list(chosen)
    while pending:
        fresh = [pid for pid in children.get(pending.pop(), ()) if pid not in chosen]
        chosen.update(fresh)
        pending.extend(fresh)
    chosen -= {0, 1, os.getpid()}
    living = {pid: everyone[pid] for pid in chosen if pid in everyone and everyone[pid].state not in "ZX"}
    known.update((p.pid, p.start) for p in living.values())
    return living


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such thing or no process."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def send(target: Process, number: int) -> None:
    """Send a signal to that very process: not to a later one with the same id. A dead one is no error."""
    fd = open_pidfd(target.pid)
    try:
        now = process(target.pid)
        if now is None or now.start != target.start:
            return
        with suppress(ProcessLookupError, PermissionError):
            if fd is not None:
                signal.pidfd_send_signal(fd, number)
            else:
                os.kill(target.pid, number)
    finally:
        if fd is not None:
            os.close(fd)
