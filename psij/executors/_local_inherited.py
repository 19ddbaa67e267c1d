"""What a process inherits from the one that starts it, of the things that a program may change in itself.

Compared before each start of a job, whose starter has what the program had when it was made.
"""

from __future__ import annotations

import os
import re
import resource
import threading
from contextlib import suppress

from psij._handlers import passing

_MOST = 1 << 16     # bytes of a file of /proc that are read
_INHERITED = re.compile(rb"^(?:Umask|Uid|Gid|Groups|SigIgn|Cap[A-Z][a-z]+|NoNewPrivs|Seccomp|Cpus_allowed|"
                        rb"Mems_allowed):.*", re.MULTILINE)
_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


class _Status:
    """What the kernel says of this thread, by a descriptor that stays open: to open it takes longer than to read it.

    text: the last one, less the counters at its end; facts: those of it that are inherited.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.fd = os.open("/proc/thread-self/status", os.O_RDONLY)
        self.place = self._place()
        self.text = b""
        self.facts: list[bytes] = []

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):         # it is closed, or was never opened
            if self._place() == self.place:         # a program that closes all descriptors gives the number away
                os.close(self.fd)

    def _place(self) -> tuple[int, int]:
        status = os.fstat(self.fd)
        return status.st_dev, status.st_ino

    def inherited(self) -> list[bytes]:
        """The facts now. Raises OSError, ValueError when the descriptor has become another's."""
        text = os.pread(self.fd, _MOST, 0)
        if not text.startswith(b"Name:"):
            raise ValueError
        start, signals = text.index(b"\nUmask:"), text.index(b"\nSigIgn:")
        text = text[start:text.index(b"\nVm")] + text[signals:text.rindex(b"\nvoluntary")] if b"\nVm" in text else text
        if text != self.text:
            self.text, self.facts = text, _INHERITED.findall(text)
        return self.facts


_mine = threading.local()       # a _Status


def _facts() -> list[bytes]:
    status: _Status | None = getattr(_mine, "status", None)
    if status is not None and status.pid == os.getpid():        # not in a fork
        try:
            return status.inherited()
        except (OSError, ValueError):       # the descriptor was closed and given away: another one
            pass
    status = _Status()
    if not passing():
        _mine.status = status
    return status.inherited()


def inherited() -> tuple[object, ...]:
    """What a process that this thread starts now inherits, of the things that a program may change in itself."""
    return _facts(), list(map(resource.getrlimit, _LIMITS)), os.getpriority(os.PRIO_PROCESS, 0)


def group() -> bytes:
    """The control group of this process."""
    return _read("/proc/self/cgroup")


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, _MOST)
    finally:
        os.close(fd)
