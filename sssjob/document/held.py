"""How much a job held in all: of what was delivered to it, else of what stands bare, unless its State says that it has
not begun: then bare amounts are what it asks for.

An amount may be one of each node, processor, GPU or chunk (``metric="PerNode"``), and the job itself may say nothing
where its task groups or their tasks do; charges, sums, tables and usage records all take amounts of the whole job from
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.model import Job
from sssjob.document.states import has_not_begun

__all__ = ["COUNTED_BY", "PER", "as_decimal", "bare_is_held", "delivered", "held", "held_for", "in_all", "number",
           "per_of", "ran", "seconds"]

#: No epoch time in seconds is as large; in milliseconds all since 1973 are.
_MILLISECONDS: Final = 10**11


#: What an amount with a metric is multiplied with: nodes, processors, chunks or GPUs. A slot is a processor.
PER: Final = {"PerNode": "nodes", "PerProcessor": "processors", "PerSlot": "processors", "PerChunk": "chunks",
              "PerGPU": "GPUs"}
#: What an amount can be per, as ``per_of`` says it -> the property that says how many of those there are.
COUNTED_BY: Final = {"nodes": "NodeCount", "processors": "Processors", "GPUs": "GPU", "chunks": "ChunkCount"}


def per_of(metric: str | None) -> str | None:
    """What an amount with this metric is per: nodes, processors, chunks or GPUs; None: it is a total."""
    return PER.get(metric or "")


def delivered(job: Container, tag: str, *, held_by: Container | None = None) -> Property | None:
    """What was delivered to a job of a property, else what stands bare. held_by: of an amount the whole job, in which a
    bare one counts only where it ``bare_is_held``."""
    for scope in job.containers("Delivered"):
        if (p := scope.first(tag)) is not None:
            return p
    bare = job.first(tag)
    return bare if bare is None or held_by is None or bare_is_held(held_by) else None


def bare_is_held(job: Container) -> bool:
    """Whether amounts that stand bare in a job are what it held: not in one whose State says that it has not begun."""
    return not has_not_begun(job.value("State"))


def number(amount: Property | None) -> Fraction | None:
    """The value of a property as an amount, None where it is none."""
    if amount is None or not isinstance(amount.value, int | Decimal) or isinstance(amount.value, bool):
        return None
    return Fraction(amount.value) if amount.value >= 0 else None


def as_decimal(value: Fraction) -> Decimal:
    """An amount as properties have it, to 28 digits."""
    return Decimal(value.numerator) / value.denominator


def seconds(epoch: int) -> int:
    """Epoch seconds of a time that may be in milliseconds."""
    return epoch // 1000 if epoch >= _MILLISECONDS else epoch


def ran(job: Container) -> Fraction | None:
    """Seconds that a job ran: Duration, else what lies between StartTime and EndTime and was not spent suspended; None
    where it does not say."""
    duration = number(delivered(job, "Duration", held_by=job))
    if duration is not None:
        return duration
    start, end, suspended = (job.value(tag) for tag in ("StartTime", "EndTime", "SuspendDuration"))
    if not (isinstance(start, int) and isinstance(end, int) and start > 0 and end > 0):
        return None
    return Fraction(max(0, seconds(end) - seconds(start) - (suspended if isinstance(suspended, int) else 0)))


def held(job: Job, tag: str, name: str | None = None) -> Fraction | None:
    """How much a job held in all of a property, or of a Resource of this name whatever its type; None: nothing says so.

    Where the job itself says nothing, what its task groups say, and of a task group without one what its tasks say, as
    a charge has it (``accounting.pricing``).
    """
    amounts = [amount for _, amount in _holders(job, tag, name)]
    return sum(amounts, Fraction(0)) if amounts else None


def held_for(job: Job, tag: str, wall: Fraction, name: str | None = None) -> Fraction:
    """The same times the seconds for which it was held: those of the job, or those that a task group which holds it
    says itself. wall: seconds that the job ran."""
    total = Fraction(0)
    for holder, amount in _holders(job, tag, name):
        own = number(next((p for d in holder.containers("Delivered") if (p := d.first("Duration"))), None))
        total += amount * (wall if holder is job or own is None else own)
    return total


def _holders(job: Job, tag: str, name: str | None) -> Iterator[tuple[Container, Fraction]]:
    """What holds some, and how much: the job, else its task groups, of one that says nothing its tasks."""
    own = _held_by(job, tag, name, job)
    if own is not None:
        yield job, own
        return
    for group in job.task_groups:
        of_group = _held_by(group, tag, name, job)
        parts = [(group, of_group)] if of_group is not None else [(t, _held_by(t, tag, name, job)) for t in group.tasks]
        yield from ((part, amount) for part, amount in parts if amount is not None)


def _held_by(holder: Container, tag: str, name: str | None, job: Container) -> Fraction | None:
    if name is None:
        return in_all(holder, delivered(holder, tag, held_by=job))
    for scope in (*holder.containers("Delivered"), holder):
        amounts = [in_all(holder, p) or Fraction(0) for p in scope.all(tag) if p.get("name") == name]
        if amounts:
            return sum(amounts, Fraction(0)) if scope is not holder or bare_is_held(job) else None
    return None


def in_all(job: Container, amount: Property | None) -> Fraction | None:
    """An amount of what a job held in all: one of each node or processor times those that were delivered; None where it
    is no number, or nothing says of how many it is."""
    value = number(amount)
    what = None if amount is None or value is None else per_of(amount.attributes.get("metric"))
    if what is None or value is None:
        return value
    if what == "GPUs":
        is_gpu = amount is not None and amount.get("name") == COUNTED_BY[what]
        count = None if is_gpu else _held_by(job, "Resource", COUNTED_BY[what], job)
        return None if count is None else value * count
    counted = delivered(job, COUNTED_BY[what])
    if counted is None or counted is amount:
        return None
    count = in_all(job, counted) if per_of(counted.attributes.get("metric")) == "nodes" else number(counted)
    return None if count is None else value * count
