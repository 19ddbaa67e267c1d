"""What a resource manager says of a job as far as it can be so: text that is whole, numbers, times of that job.

An answer may be damaged and still have its form. What no job can have is left out, so that another source of the same
fact counts; words for people keep their place, with ``\\ufffd`` for what nobody can read. No clock in here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from psij.executors.batch._identity import Identity
from psij.job_status import JobStatus

__all__ = ["sound"]

_FAR_S: Final = 27 * 3600.0         # further apart than any two time zones, one of which was taken for the other
_MOST: Final = 1e18                 # no amount has more digits
_TIMES: Final = ("submit_time", "start_time", "end_time")
_AMOUNTS: Final = ("node_count", "processors", "gpus", "starts", "wall_seconds", "suspend_seconds", "cpu_seconds",
                   "memory_max_bytes", "memory_average_bytes", "energy_joules")
_NAMES: Final = ("queue", "account", "qos", "machine", "nodes")


def sound(status: JobStatus, identity: Identity | None, now: float) -> tuple[JobStatus, list[str]]:
    """A status without what cannot be so, and why times were left out. now: seconds since the epoch."""
    since = identity.since if identity is not None else None
    first, last = (since or _FAR_S) - _FAR_S, now + _FAR_S
    facts = _facts(status.metadata or {}, first, last)
    odd = [f"{key} {value} is no time of it" for key, value in (status.metadata or {}).items()
           if key in _TIMES and key not in facts]
    time = status.time if _is_number(status.time) and first <= status.time <= last else now
    message = None if status.message is None else _legible(status.message)
    metadata = None if status.metadata is None else facts
    return JobStatus(status.state, time, message, status.exit_code, metadata), odd


def _facts(metadata: Mapping[str, Any], first: float, last: float) -> dict[str, Any]:
    """Those of a status, or of one of its attempts, that can be so. first, last: between which its times are."""
    facts = {key: _value(key, value, first, last) for key, value in metadata.items()}
    return {key: value for key, value in facts.items() if value is not None}


def _value(key: str, value: Any, first: float, last: float) -> Any:
    """None where it cannot be so."""
    if key in _TIMES:
        return value if _is_number(value) and first <= value <= last else None
    if key in _AMOUNTS:
        return value if _is_number(value) and 0 <= value < _MOST else None
    if key in _NAMES:
        names = value if isinstance(value, list) else [value]
        return value if names and all(isinstance(name, str) and name.isprintable() for name in names) else None
    if isinstance(value, str):
        return _legible(value)
    if isinstance(value, list):
        return [_value("", each, first, last) for each in value]
    return _facts(value, first, last) if isinstance(value, dict) else value


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _legible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
