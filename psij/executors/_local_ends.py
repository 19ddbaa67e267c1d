"""How local jobs of a user ended, for whoever attaches to one afterwards, from whatever process.

The processes that start jobs (``_local_starter_main``) share a file, to which each adds a line when a job has ended:
``pid status before after ended cpu peak .``: status as in wait(2); the job was started between before and after and
ended, all in seconds of CLOCK_BOOTTIME; cpu in seconds, peak as in ru_maxrss. A line that was cut, by a disk that is
full, lacks the full stop. The file is for one boot and one namespace of processes. At 1 MiB, some 12,000 ends, it is
renamed to ``.old``, in place of the one before; files of other boots are removed a week later.

It lies in a folder of the user's that nobody else may enter: what PSIJ_RUN_DIRECTORY names, else one below ``/tmp`` or
``/var/tmp``, whatever TMPDIR says, for processes that never heard of each other are to find the same. Where there can
be none, or the variable is empty, nothing is kept.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from psij.executors import _local_proc as proc

VARIABLE: Final = "PSIJ_RUN_DIRECTORY"
_PLACES: Final = ("/tmp", "/var/tmp")
_INITIAL: Final = 0xEFFFFFFC        # the number of the namespace of processes that is there from the boot on
_KEPT_S: Final = 7 * 86400.0        # after which files of another boot, maybe of another machine, are removed
_TICK_S: Final = 0.02               # two clock ticks: the time of a start is rounded
_log = logging.getLogger("psij")


class End(NamedTuple):
    """How a job ended. before, after and ended: seconds of CLOCK_BOOTTIME. peak: as in ru_maxrss."""

    pid: int
    wait_status: int
    before: float
    after: float
    ended: float
    cpu_s: float
    peak: int

    def started_at(self, seconds: float) -> bool:
        """Whether the process that started then, by CLOCK_BOOTTIME, is the one meant."""
        return self.before - _TICK_S <= seconds <= self.after + _TICK_S


def file_to_write() -> bytes:
    """The file to which ends are to be added, its folder made; empty where nothing can be kept."""
    name = _name()
    if not name:
        return b""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(folder):
            if not (folder / name).exists():
                _tidy(folder)
            return os.fsencode(folder / name)
    if os.environ.get(VARIABLE):
        _warn(os.environ[VARIABLE])
    return b""


def keep(pid: int, wait_status: int, started: float, cpu_s: float, peak: int) -> None:
    """Add the end of a job that no starter has started. started: by CLOCK_BOOTTIME. Nothing happens where there is no
    room."""
    path = file_to_write()
    if not path:
        return
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"\n%d %d %f %f %f %f %d .\n" % (
                pid, wait_status, started, started, time.clock_gettime(time.CLOCK_BOOTTIME), cpu_s, peak))
        finally:
            os.close(fd)


def find(pid: int, start: float | None = None) -> End | None:
    """The last end of a job with that id, which started then, in seconds of CLOCK_BOOTTIME, where that is known."""
    for path in _files():
        for end in _ends(path, pid):
            if start is None or end.started_at(start):
                return end
    return None


def are_kept() -> bool:
    """Whether any end was kept here."""
    return any(path.exists() for path in _files())


def _files() -> list[Path]:
    """Where ends may have been kept, the last ones first."""
    name = _name()
    return [folder / base for folder in _folders() if name and _is_ours(folder) for base in (name, f"{name}.old")]


def _ends(path: Path, pid: int) -> Iterator[End]:
    """Those of a process id, the last one first."""
    try:
        text = path.read_bytes()
    except OSError:
        return
    place = len(text)
    while (place := text.rfind(b"\n%d " % pid, 0, place)) >= 0:
        words = text[place:text.find(b"\n", place + 1)].split()
        if len(words) == 8 and words[-1] == b".":
            with suppress(ValueError):      # somebody else wrote it
                before, after, ended, cpu_s = map(float, words[2:6])
                yield End(pid, int(words[1]), before, after, ended, cpu_s, int(words[6]))


def _folders() -> list[Path]:
    """Where the file may be."""
    stated = os.environ.get(VARIABLE)
    if stated is None:
        return [Path(place, f"psij-{os.geteuid()}") for place in _PLACES]
    return [Path(stated)] if os.path.isabs(stated) else []


def _is_ours(folder: Path) -> bool:
    """Whether only this user can have put something there."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


@cache
def _warn(stated: str) -> None:
    _log.warning("How local jobs end is not kept for other processes: %s=%s must name, with its whole path, a folder "
                 "that is this user's and that nobody else may enter", VARIABLE, stated)


def _name() -> str:
    """The name of the file: process ids mean something during one boot and in one namespace only, whose number becomes
    another's after its first process. Empty where /proc does not say which that is."""
    with suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino
        if os.readlink("/proc/self") == str(os.getpid()):
            first = None if namespace == _INITIAL else proc.process(1)
            if first is not None or namespace == _INITIAL:
                return f"ends-{proc.boot_id()}-{namespace}-{0 if first is None else first.start}"
    return ""


def _tidy(folder: Path) -> None:
    """Remove files to which nobody has added anything for long."""
    with suppress(OSError):
        for path in folder.glob("ends-*"):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                path.unlink(missing_ok=True)
