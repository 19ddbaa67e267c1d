"""How much jobs used of the memory and the GPUs that they held: what a log cannot tell has no efficiency, not 0.

Memory is the peak by what there was of it (Delivered, else Requested). Managers sample the peak of a process or of a
node, so that only jobs on one node have one. GPUs are the time that they worked (Extension GpuDuration, of type LRM) by
GPUs x time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Final, Self

from sssjob.document.element import Container, Property
from sssjob.document.held import delivered, held, held_for, number, per_of
from sssjob.document.model import Job
from sssjob.document.units import to_bytes

__all__ = ["Efficiency", "at_most", "of_gpus", "of_memory", "percent"]

#: Metrics of memory that say what there was of it, not how much of it was used.
_WHOLE: Final = ("", "Total", "PerNode", "PerProcessor", "PerSlot")


@dataclass(slots=True)
class Efficiency:
    """Of jobs that say both: used and held over time (byte seconds, GPU seconds); counts: jobs by the whole per cent
    that they used, so that memory does not grow with the jobs."""

    used: Fraction = Fraction(0)
    held: Fraction = Fraction(0)
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, used: Fraction, held: Fraction, wall: Fraction = Fraction(1)) -> Self:
        """That of one job. wall: seconds, where neither is over time."""
        return cls(used * wall, held * wall, {percent(used, held): 1})

    def add(self, other: Efficiency) -> None:
        """Add another one's."""
        self.used, self.held = self.used + other.used, self.held + other.held
        self.count(other)

    def count(self, other: Efficiency) -> None:
        """Count the jobs of another one."""
        for step, count in other.counts.items():
            self.counts[step] = self.counts.get(step, 0) + count

    def part(self, share: Fraction) -> Efficiency:
        """A share of what was used and held, of no job."""
        return Efficiency(self.used * share, self.held * share)

    def record(self, name: str) -> dict[str, float | None]:
        """The mean over what was held, and what half of the jobs and 95 % of them had at most; None: nobody says."""
        half, most = at_most(self.counts, Fraction(1, 2)), at_most(self.counts, Fraction(95, 100))
        return {f"{name}_efficiency": float(round(self.used / self.held, 4)) if self.held else None,
                f"{name}_median": None if half is None else half / 100,
                f"{name}_p95": None if most is None else most / 100}


def percent(part: Fraction | int, whole: Fraction | int) -> int:
    """Whole per cent of a part, half up."""
    return int((200 * part + whole) // (2 * whole))


def at_most(counts: Mapping[int, int], share: Fraction) -> int | None:
    """The step up to which so many of those that were counted lie; None where there are none."""
    count_left = share * sum(counts.values())
    for step, count in sorted(counts.items()):
        count_left -= count
        if count_left <= 0:
            return step
    return None


def of_memory(job: Job, wall: Fraction) -> Efficiency | None:
    """The peak of memory of a job that ran for so many seconds; None where the log does not tell."""
    slot, asked = job.delivered, job.requested
    nodes = number(delivered(job, "NodeCount"))
    if slot is None or not wall or (nodes is not None and nodes > 1) or "," in _nodes(slot):
        return None
    peak = next((size for p in slot.all("Memory") if p.get("metric") == "Max" and (size := _bytes(p))), None)
    available = _there(slot, job) or (None if asked is None else _there(asked, job))
    return None if peak is None or not available else Efficiency.of(peak, available, wall)


def of_gpus(job: Job, wall: Fraction) -> Efficiency | None:
    """How long the GPUs of a job worked that ran for so many seconds; None where the log does not tell."""
    gpus = held_for(job, "Resource", wall, "GPU")
    worked = next((p.text for p in job.all("Extension")
                   if p.get("name") == "GpuDuration" and p.get("type") == "LRM"), "")
    if not gpus or not (worked.isascii() and worked.isdecimal()):
        return None
    return Efficiency.of(Fraction(int(worked)), gpus)


def _there(slot: Container, job: Job) -> Fraction | None:
    """The bytes of memory that a slot states for a job on one node."""
    for p in slot.all("Memory"):
        metric = p.get("metric") or ""
        if metric in _WHOLE and p.get("context") in (None, "Dedicated", "Limit", "Configured") and (size := _bytes(p)):
            count = held(job, "Processors") if per_of(metric) == "processors" else Fraction(1)
            return None if count is None else size * count
    return None


def _nodes(slot: Container) -> str:
    node = slot.first("Node")
    return "" if node is None else node.text


def _bytes(p: Property) -> Fraction | None:
    if not isinstance(p.value, int | Decimal):
        return None
    with suppress(LookupError, ValueError):     # units that nobody knows
        return Fraction(to_bytes(Decimal(p.value), p.get("units")))
    return None
