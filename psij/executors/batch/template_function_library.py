"""Functions that Mustache templates can call as ``psij.lib.NAME``."""

from __future__ import annotations

from collections.abc import Callable

from psij.job_attributes import JobAttributes

__all__ = ["ALL", "walltime_to_minutes"]


def walltime_to_minutes(walltime: str) -> int:
    """Minutes of a time as ``hh:mm:ss``, ``hh:mm``, ``mm``, or a number with unit; seconds are rounded up."""
    seconds = JobAttributes.parse_walltime(walltime).total_seconds()
    return max(1, -int(-seconds // 60))


ALL: dict[str, Callable[..., object]] = {"walltime_to_minutes": walltime_to_minutes}
