"""What the two forms of sacct share: states as words of a document, and jobs of several components."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from sssjob.document.element import Property
from sssjob.document.units import from_bytes, to_bytes
from sssjob.lrm.slurm import HELD, state_of
from sssjob.lrm.usage import known_sum
from sssjob.translators.records._values import state_word
from sssjob.translators.records.base import Record

#: What the components of a job may have of their own.
_OF_PARTS: Final = ("Project", "Queue", "QualityOfService", "Reservation")


def ending(native: str, reason: str, signal: int | None) -> tuple[str, str, str | None, bool]:
    """(State, StatusMessage, Hold, whether the word is known) of ``CANCELLED by 1001``, ``PENDING`` ..."""
    native_state = state_of(native)
    state = state_word(native_state)
    why = "" if native_state is None else native_state.cause
    if native_state is not None and native_state.word == "FAILED" and signal is not None:
        why = "signal"
    waits = native_state is not None and native_state.word == "PENDING"
    hold = HELD.get(reason) if waits else None
    more = f" ({reason})" if waits and reason not in ("", "None") else ""
    return "Hold" if hold else state, f"{why}: {native}{more}" if why else native + more, hold, native_state is not None


def merged(job: Record, parts: list[Record]) -> None:
    """Make one job of the components of a heterogeneous one: counts add up, times span, the first bad code counts.

    Components that were held for different times, or by other names (Queue, Project ...), say their names and amounts
    themselves: what they add up to would be of no time and no queue.
    """
    job.parts = parts
    ran = [p for p in parts if p.ran]
    job.ran = bool(ran)
    names = {tag: [next((p for p in part.heading or () if p.tag == tag), None) for part in parts] for tag in _OF_PARTS}
    apart = [own for own in names.values() if any(p != own[0] for p in own)]
    are_alike = not apart and len({p.wall for p in ran}) <= 1
    if are_alike:
        job.processors = known_sum(p.processors for p in ran)
        job.nodes = known_sum(p.nodes for p in ran)
    job.cpu = known_sum(p.cpu for p in ran)
    job.wall = max((p.wall for p in ran if p.wall is not None), default=None)
    job.start = min((p.start for p in ran if p.start is not None), default=None)
    if all(p.end is not None for p in parts):
        job.end = max(p.end for p in parts if p.end is not None)
    bad = next((p for p in parts if p.exit_code or p.signal is not None), parts[0])
    job.exit_code, job.signal, job.message = bad.exit_code, bad.signal, bad.message
    job.node = None
    job.requested, job.delivered = [], _summed(p for part in ran for p in part.delivered) if are_alike else []
    for own in apart:
        for part, name in zip(parts, own, strict=True):
            if name is not None and part.ran:
                part.delivered.append(name)


def _summed(items: Iterable[Property]) -> list[Property]:
    """Amounts of one kind added up, of peaks the greatest; memory in the largest unit that leaves it whole."""
    totals: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Decimal, Property]] = {}
    for p in items:
        if not isinstance(p.value, Decimal):
            continue
        value, kind = p.value, dict(p.attributes)
        if p.tag == "Memory":
            value = to_bytes(value, kind.pop("units", None))
        key = p.tag, tuple(kind.items())
        old = totals.get(key, (Decimal(0), p))[0]
        totals[key] = (max(value, old) if p.get("metric") == "Max" else value + old), p
    return [_amount(p, value) for value, p in totals.values()]


def _amount(p: Property, value: Decimal) -> Property:
    if p.tag != "Memory":
        return p.replace(value)
    size, units = from_bytes(value)
    return p.replace(size, units=units)
