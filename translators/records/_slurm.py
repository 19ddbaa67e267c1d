"""What the two forms of sacct share: states and trackable resources (TRES) as properties of a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from sssjob.document.element import Property
from sssjob.document.units import from_bytes, to_bytes
from sssjob.lrm.slurm import HELD, state_of
from sssjob.lrm.slurm import gpus as gpus_among
from sssjob.lrm.slurm import tres as split
from sssjob.translators.records._values import state_word
from sssjob.translators.records.base import Record, amount, count, leaf, thousands

__all__ = ["TRES", "ending", "gpus", "merge", "merged", "tres"]

def ending(native: str, reason: str, signal: int | None) -> tuple[str, str, str | None, bool]:
    """(State, StatusMessage, Hold, whether the word is known) of ``CANCELLED by 1001``, ``PENDING`` ..."""
    known = state_of(native)
    state = state_word(known)
    why = "" if known is None else known.cause
    if known is not None and known.word == "FAILED" and signal is not None:
        why = "signal"
    waits = known is not None and known.word == "PENDING"
    hold = HELD.get(reason) if waits else None
    more = f" ({reason})" if waits and reason not in ("", "None") else ""
    return "Hold" if hold else state, f"{why}: {native}{more}" if why else native + more, hold, known is not None


@dataclass(slots=True)
class TRES:
    """cpu, nodes: counts; memory: (amount, unit); others: the rest as Resources, GPUs among them."""

    cpu: int | None = None
    nodes: int | None = None
    memory: tuple[Decimal, str] | None = None
    others: tuple[Property, ...] = ()
    gpus_differ: str = field(default="")


@lru_cache(maxsize=1 << 14)
def tres(text: str, name: str) -> TRES:
    """``billing=8,cpu=8,gres/gpu:a100=1,mem=32G,node=1``. Memory without unit is in MB. Rejected: number."""
    made = TRES()
    rest: list[tuple[str, Decimal]] = []
    for kind, value in split(text):
        if kind == "cpu":
            made.cpu = count(value, f"{name} cpu")
        elif kind == "node":
            made.nodes = count(value, f"{name} node")
        elif kind == "mem":
            made.memory = amount(value, f"{name} mem", "MB")
        elif (found := thousands(value, f"{name} {kind}")) is not None:
            rest.append((kind, found))
    made.others, made.gpus_differ = merge(rest)
    return made


def merge(items: Sequence[tuple[str, Decimal]]) -> tuple[tuple[Property, ...], str]:
    """(Resources, what is wrong) of (``gres/gpu:a100``, count): of GPUs the types, where they add up to the total."""
    made: list[Property] = []
    for kind, value in items:
        category, _, what = kind.partition("/")
        if not value or kind.startswith("gres/gpu:") or kind == "gres/gpu":
            continue
        if category == "license":
            made.append(_resource("License", what, value))
        elif category == "gres":
            label, _, model = what.partition(":")
            made.append(_resource(label, model, value))
        elif kind == "billing":
            made.append(_resource("Billing", "", value))
        elif kind == "energy":
            made.append(_resource("Energy", "", value, "J"))
        elif category == "bb":
            made.append(_resource("BurstBuffer", what, value))
    total, typed, wrong = gpus_among(items)
    gpu = [_resource("GPU", model, value) for model, value in typed.items() if value]
    if not typed and total:
        gpu = [_resource("GPU", "", total)]
    return (*gpu, *made), wrong


def _resource(name: str, kind: str, value: Decimal, units: str = "") -> Property:
    attributes = {"name": name} | ({"type": kind} if kind else {}) | ({"units": units} if units else {})
    return leaf("Resource", value, attributes)


def gpus(items: Iterable[Property]) -> Decimal:
    """How many GPUs are among Resources."""
    return sum((p.value for p in items if p.get("name") == "GPU" and isinstance(p.value, Decimal)), Decimal(0))


def merged(job: Record, parts: list[Record]) -> None:
    """Make one job of the components of a heterogeneous one: counts add up, times span, the first bad code counts."""
    job.parts = parts
    ran = [p for p in parts if p.ran]
    job.ran = bool(ran)
    job.processors = _sum(p.processors for p in ran)
    job.nodes = _sum(p.nodes for p in ran)
    job.cpu = _sum(p.cpu for p in ran)
    job.wall = max((p.wall for p in ran if p.wall is not None), default=None)
    job.start = min((p.start for p in ran if p.start is not None), default=None)
    if all(p.end is not None for p in parts):
        job.end = max(p.end for p in parts if p.end is not None)
    bad = next((p for p in parts if p.exit_code or p.signal is not None), parts[0])
    job.exit_code, job.signal, job.message = bad.exit_code, bad.signal, bad.message
    job.node = None
    job.requested, job.delivered = [], _summed(p for part in ran for p in part.delivered)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


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
