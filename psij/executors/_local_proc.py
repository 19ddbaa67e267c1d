"""What /proc tells about processes: who belongs to a job, and whether a process id still means the same process.

Source: proc_pid_stat(5), proc_pid_environ(5), pidfd_open(2). Where there is no /proc, or it is that of another
namespace of processes (``usable``), functions answer what system calls say: whether a process is there, its group and
session, but no start, no parent and no others. Where it cannot be read for lack of descriptors or memory they raise
OSError.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import signal
from collections import defaultdict
from contextlib import suppress
from functools import cache, cached_property
from typing import NamedTuple

_SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_log = logging.getLogger("psij")
TAG = "_PSI_J_JOB_ID"       # variable by which a process is known to belong to a job


class Process(NamedTuple):
    """One process. start: clock ticks since boot; together with pid it names a process for good during one boot. 0, as
    parent is, where /proc is not usable."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int

    @property
    def living(self) -> bool:
        """Whether it has not ended; a zombie has."""
        return self.state not in "ZX"


def usable() -> bool:
    """Whether /proc is that of our own namespace of processes. Raises OSError."""
    try:
        if int(os.readlink("/proc/self")) == os.getpid():
            return True
    except ValueError:
        pass
    except OSError as e:
        if e.errno in _SCARCE:
            raise
    _warn(os.getpid())
    return False


@cache
def _warn(pid: int) -> None:
    """Once in each process: what is lacking."""
    _log.warning("/proc does not show the processes of process %d: to end a local job ends its process group; "
                 "processes that have left the group go on", pid)


def _without_proc(pid: int) -> Process | None:
    try:
        group, session = os.getpgid(pid), os.getsid(pid)
    except OSError:         # no such process, or none that we may ask about
        return None
    fd = open_pidfd(pid)
    if fd is None:
        return Process(pid, "S", 0, group, session, 0)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return Process(pid, "Z" if poll.poll(0) else "S", 0, group, session, 0)
    finally:
        os.close(fd)


def process(pid: int) -> Process | None:
    """The process of that id; None when there is none. Raises OSError."""
    if not usable():
        return _without_proc(pid)
    data = _read(pid, "stat")
    if not data:
        return None
    fields = data.rpartition(b")")[2].split()      # the name before may hold blanks and brackets
    return Process(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as stream:
            return stream.readall()
    except OSError as e:
        if e.errno in _SCARCE:
            raise
        return b""


def is_tagged(pid: int) -> bool:
    """Whether the process was started as a job, or by one; False where its environment cannot be read."""
    return usable() and any(variable.startswith(TAG.encode() + b"=") for variable in _read(pid, "environ").split(b"\0"))


@cache
def boot_id() -> str:
    """Identifies this boot of this machine, which no process outlives; empty where it cannot be told."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()
    return ""


class Snapshot:
    """All processes, as they were when it was made. Making one and asking it may raise OSError.

    whole: /proc is usable. Otherwise there are only processes whose ids are known, and groups.
    """

    def __init__(self) -> None:
        self.whole = usable()
        names = os.listdir("/proc") if self.whole else []
        processes = (process(int(name)) for name in names if name.isdigit())
        self._all = {each.pid: each for each in processes if each is not None}
        self._sessions: dict[int, set[int]] = defaultdict(set)
        self._children: dict[int, list[int]] = defaultdict(list)
        for each in self._all.values():
            self._sessions[each.session].add(each.pid)
            self._children[each.parent].append(each.pid)

    @cached_property
    def _tagged(self) -> dict[bytes, list[int]]:
        prefix = TAG.encode() + b"="
        result: dict[bytes, list[int]] = defaultdict(list)
        for pid in self._all:
            for variable in _read(pid, "environ").split(b"\0"):
                if variable.startswith(prefix):
                    result[variable[len(prefix):]].append(pid)
        return result

    def members(self, session: int | None, members_before: set[tuple[int, int]], tag: str | None) -> dict[int, Process]:
        """Living processes of a job by id.

        Those in the job's session (if it has its own), those seen as members before (members_before: id and start,
        added to), those that have the job's tag in their environment, and all descendants of any of these.
        """
        if not self.whole:
            return _known_members(session, members_before)
        chosen = {pid for pid, start in members_before if pid in self._all and self._all[pid].start == start}
        if session is not None:
            chosen |= self._sessions.get(session, set())
        if tag:
            chosen.update(self._tagged.get(tag.encode(), ()))
        pending = list(chosen)
        while pending:
            fresh = [pid for pid in self._children.get(pending.pop(), ()) if pid not in chosen]
            chosen.update(fresh)
            pending.extend(fresh)
        chosen -= {0, 1, os.getpid()}
        living = {pid: self._all[pid] for pid in chosen if pid in self._all and self._all[pid].living}
        members_before.update((each.pid, each.start) for each in living.values())
        return living


    def stranger(self, pid: int, members_before: set[tuple[int, int]]) -> bool:
        """Whether the id is that of a process that is not among the members seen before."""
        return pid in self._all and (pid, self._all[pid].start) not in members_before

    def groups(self, session: int) -> set[int]:
        """The process groups of a session, also those of which only zombies can be seen."""
        if not self.whole:
            return {session}
        return {self._all[pid].group for pid in self._sessions.get(session, ())}


def _known_members(session: int | None, members_before: set[tuple[int, int]]) -> dict[int, Process]:
    """As ``Snapshot.members``, without /proc: known processes; the process group of the session's leader stands under
    the leader's id."""
    candidates = (process(pid) for pid, _ in members_before)
    members = {each.pid: each for each in candidates if each is not None and each.living}
    if session is not None and _group_lives(session):
        members.setdefault(session, Process(session, "S", 0, session, session, 0))
    return members


def _group_lives(group: int) -> bool:
    """Whether a process group has members, zombies of others included; our own, but for its leader, are reaped."""
    with suppress(ChildProcessError):
        while (ended := os.waitid(os.P_PGID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == group:       # whoever started it waits for it
                break
            os.waitpid(ended.si_pid, os.WNOHANG)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such thing or no process."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def send(target: Process, number: int) -> None:
    """Send a signal to that very process: not to a later one with the same id. A dead one is no error.

    Raises OSError.
    """
    fd = open_pidfd(target.pid)
    try:
        now = process(target.pid)
        if now is None or now.start != target.start:
            return
        with suppress(ProcessLookupError, PermissionError):     # gone; or it has become another user's (setuid)
            if fd is not None:
                signal.pidfd_send_signal(fd, number)
            else:
                os.kill(target.pid, number)
    finally:
        if fd is not None:
            os.close(fd)
