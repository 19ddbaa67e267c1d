"""Records of jobs on this machine that outlive the process that submitted them.

A file per job, named by its id: first what the submitter knows (JSON), then, written by the process that starts jobs,
``pid start began`` once it runs and ``status cpu peak ended`` at its end. pid and start name the process; status is as
in wait(2), cpu in seconds, peak as in ru_maxrss; began and ended are seconds of CLOCK_BOOTTIME, which nobody sets. The
file is made by whoever comes first: the process that starts the job, or somebody who makes sure that it never starts.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psij.executors import _local_proc as proc

_BARRED = {"barred": True}


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of a job. head: submitted, started (seconds since the epoch), limit (seconds), processors.

    pid 0: not started yet. wait_status None: not ended yet. age_s: since it was last written.
    """

    head: dict[str, Any] = field(default_factory=dict)
    pid: int = 0
    start: int = 0
    wait_status: int | None = None
    cpu_s: float | None = None
    peak: int | None = None
    wall_s: float = 0.0
    age_s: float = 0.0

    @property
    def barred(self) -> bool:
        """Whether the job will never start."""
        return bool(self.head.get("barred"))

    @property
    def reference(self) -> str:
        """``pid@start@boot``."""
        return f"{self.pid}@{self.start}@{self.head.get('boot', '')}"


def head(**fields: Any) -> bytes:
    """The first line."""
    return json.dumps({**fields, "boot": proc.boot_id()}).encode() + b"\n"


def bar(path: Path) -> bool:
    """Make sure that a job never starts; False when it has been started, or is about to be."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:         # the record of its start
        return False
    with open(fd, "wb") as stream:
        stream.write(head(**_BARRED))
    return True


def read(path: Path) -> Record | None:
    """The record of a job; None where there is none."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines(keepends=True)
        age = time.time() - path.stat().st_mtime
    except OSError:
        return None
    whole = [line.split() for line in lines if line.endswith("\n")]
    with suppress(ValueError, IndexError):      # half a record says no more than that there is one
        fields = json.loads(lines[0])
        if len(whole) == 1:
            return Record(fields, age_s=age)
        pid, start, began = int(whole[1][0]), int(whole[1][1]), float(whole[1][2])
        if len(whole) == 2:
            return Record(fields, pid, start, age_s=age)
        status, cpu, peak, ended = whole[2]
        return Record(fields, pid, start, int(status), float(cpu), int(peak), max(float(ended) - began, 0.0), age)
    return Record(age_s=age)


def by_us(path: bytes, head: bytes, pid: int, began: float) -> None:
    """Record the start of a process that this process has started itself. began: by CLOCK_BOOTTIME."""
    started = proc.process(pid)
    with suppress(OSError), open(path, "xb") as stream:     # it runs already; without a record nobody else can adopt it
        stream.write(head + b"%d %d %f\n" % (pid, started.start if started else 0, began))
