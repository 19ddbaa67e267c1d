"""The status of a job: a state, and when and how it was reached."""

from __future__ import annotations

import time as _time
from typing import Any

from psij.job_state import JobState

__all__ = ["JobStatus"]

_SHOWN = ("native_id", "native_state", "reason", "signal")      # keys of the metadata that its text has


class JobStatus:
    """One state of a job with its circumstances.

    state: the JobState. time: when it was reached, seconds since the epoch (now when not given). message: for a user.
    exit_code: of the executable, 128 + n when signal n ended it. metadata: only what is known of these keys: native_id,
    native_state, phase, reason, signal, core_dumped, start_time, end_time, submit_time (seconds since the epoch),
    wall_seconds, suspend_seconds, cpu_seconds, nodes (list), node_count, processors, gpus, memory_max_bytes,
    memory_average_bytes, energy_joules, gpu_types (name to count), starts, attempts (for each start a dictionary with
    some of these keys), queue, account, qos, machine (as the resource manager names them), sources (key to where its
    value is from), others (key to what other sources say: name of the source to its value), confirmed_at, spans
    ([processors, seconds] of each part, where some of them were given back before the end), pilot (cores_mean,
    cores_max, kill_waste, draining_waste: what a pilot said of its jobs, Machine/Job Features),
    hs06_job (the share of the machine's benchmark that the job had).
    """

    def __init__(self, state: JobState, time: float | None = None, message: str | None = None,
                 exit_code: int | None = None, metadata: dict[str, Any] | None = None) -> None:
        self.state = state
        self.time: float = _time.time() if time is None else time
        self.message = message
        self.exit_code = exit_code
        self.metadata = metadata

    @property
    def final(self) -> bool:
        """Whether the state is a final one."""
        return self.state.final

    def __str__(self) -> str:
        parts = [str(self.state), f"time={self.time}"]
        if self.message is not None:
            parts.append(f"message={self.message}")
        if self.exit_code is not None:
            parts.append(f"exit_code={self.exit_code}")
        shown = {key: self.metadata[key] for key in _SHOWN if key in self.metadata} if self.metadata else None
        if shown:
            parts.append(f"meta={shown}")
        return f"JobStatus[{', '.join(parts)}]"

    __repr__ = __str__
