"""What happened to a submission, as its journal keeps it: events, the marks of when and where, and statuses as JSON."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from psij import JobState, JobStatus
from psij.executors._local_proc import boot_id

__all__ = ["HOLDS", "WISHES", "Event", "since", "stamp", "status_of", "status_record"]

#: What users want of jobs that wait, and of all that go on: clients answer it.
HOLDS: Final = ("hold", "release")
WISHES: Final = (*HOLDS, "rerun", "suspend", "resume", "signal", "change")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was done or learnt.

    kind: after (what a dependency means that is not of the document; need, keys), held (it waits for its user),
    intent (about to be submitted; tag), unsent (that was not done), try (it failed, and is tried again; tries),
    full (not submitted, as there is no room; reason), cap (how many jobs of the submission may be in flight; most),
    native (native_id, reference), status (a psij status), staging (what is done with its files after its end;
    step), ended (an outcome), late (a psij status that accounting told after the end), on-end (what is done then;
    hook), hook (that was done, or failed; step), retry (another attempt follows; clause, text), group (its end is
    wanted as another job of its group has failed; text), cancel (somebody wants its end), those of WISHES (somebody
    wants that; name: of a signal, or what is changed), answer (what became of such a wish; wish, refusal; begun,
    before it is carried out), silent and answers (the resource manager, to who follows the submission; of its first
    job), note (text). source: who said it. time: seconds since the epoch. number: 0 before it is written.
    """

    job: int
    kind: str
    source: str
    data: dict[str, Any]
    part: int = 0
    time: float = 0.0
    number: int = 0


def since(mark: Mapping[str, Any]) -> float | None:
    """Seconds since an event whose data are from ``stamp``; None where its clock is not ours. No step of the clock
    counts."""
    now = stamp()
    if (mark.get("host"), mark.get("boot")) != (now["host"], now["boot"]):
        return None
    return float(now["uptime"]) - float(mark.get("uptime", 0.0))


def stamp() -> dict[str, Any]:
    """Where and when, by a clock that nobody sets."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return {"host": socket.gethostname(), "boot": boot_id(), "pid": os.getpid(), "uptime": time.clock_gettime(clock)}


def status_record(status: JobStatus) -> dict[str, Any]:
    """A psij status as a JSON object."""
    record = {"state": status.state.name, "time": status.time, "message": status.message,
              "exit_code": status.exit_code, "metadata": status.metadata}
    return {name: value for name, value in record.items() if value is not None}


def status_of(data: Mapping[str, Any]) -> JobStatus:
    """The psij status of ``status_record``."""
    return JobStatus(JobState[data["state"]], data["time"], data.get("message"), data.get("exit_code"),
                     data.get("metadata"))
