"""What the two forms of sacct share: states and trackable resources (TRES).

Sources: sacct(1), Job State Codes; slurm.conf(5), AccountingStorageTRES; recorded output of 22.05.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sssjob.element import Property
from sssjob.translators.records.base import Record, amount, count, leaf, thousands
from sssjob.units import from_bytes, to_bytes

__all__ = ["CODED", "HELD", "TRES", "ending", "gpus", "merge", "merged", "tres"]

#: State -> (state of the specification, reason that StatusMessage begins with). In accounting a requeued run has ended.
STATES: Final[dict[str, tuple[str, str]]] = {
    "COMPLETED": ("Completed", ""),
    "FAILED": ("Completed", ""),
    "CANCELLED": ("Completed", "cancel"),
    "TIMEOUT": ("Completed", "timeout"),
    "NODE_FAIL": ("Completed", "node-failure"),
    "PREEMPTED": ("Completed", "preempted"),
    "OUT_OF_MEMORY": ("Completed", "memory"),
    "DEADLINE": ("Completed", "deadline"),
    "BOOT_FAIL": ("Completed", "boot"),
    "REVOKED": ("Completed", "never-ran"),
    "REQUEUED": ("Completed", ""),
    "REQUEUE_FED": ("Completed", ""),
    "REQUEUE_HOLD": ("Hold", ""),
    "SPECIAL_EXIT": ("Hold", ""),
    "RESV_DEL_HOLD": ("Hold", ""),
    "RESIZING": ("Running", ""),
    "PENDING": ("Idle", ""),
    "CONFIGURING": ("Idle", ""),
    "RUNNING": ("Running", ""),
    "COMPLETING": ("Running", ""),
    "SIGNALING": ("Running", ""),
    "STAGE_OUT": ("Running", ""),
    "SUSPENDED": ("Suspended", ""),
    "STOPPED": ("Suspended", ""),
}
#: States in which a code of 0 is the job's own.
CODED: Final = ("COMPLETED", "FAILED")
#: Reason of a pending job -> who holds it.
HELD: Final = {"JobHeldUser": "User", "JobHeldAdmin": "System", "DependencyNeverSatisfied": "System"}


def ending(native: str, reason: str, signal: int | None) -> tuple[str, str, str | None, bool]:
    """(State, StatusMessage, Hold, whether the word is known) of ``CANCELLED by 1001``, ``PENDING`` ..."""
    word = native.partition(" ")[0].rstrip("+")
    row = STATES.get(word)
    if row is None and native.partition(" ")[0].endswith("+"):
        row = next((r for name, r in STATES.items() if name.startswith(word)), None)
    state, why = row or ("Completed", "")
    if word == "FAILED" and signal is not None:
        why = "signal"
    hold = HELD.get(reason) if word == "PENDING" else None
    more = f" ({reason})" if word == "PENDING" and reason not in ("", "None") else ""
    return "Hold" if hold else state, f"{why}: {native}{more}" if why else native + more, hold, row is not None


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
    for item in filter(None, text.split(",")):
        kind, _, value = item.partition("=")
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


def merge(items: Iterable[tuple[str, Decimal]]) -> tuple[tuple[Property, ...], str]:
    """(Resources, what is wrong) of (``gres/gpu:a100``, count): of GPUs the types, where they add up to the total."""
    made: list[Property] = []
    total: Decimal | None = None
    typed: list[tuple[str, Decimal]] = []
    for kind, value in items:
        category, _, what = kind.partition("/")
        if kind == "gres/gpu":
            total = value
        elif kind.startswith("gres/gpu:"):
            typed.append((kind[9:], value))
        elif value and category == "license":
            made.append(_resource("License", what, value))
        elif value and category == "gres":
            label, _, model = what.partition(":")
            made.append(_resource(label, model, value))
        elif value and kind == "billing":
            made.append(_resource("Billing", "", value))
        elif value and kind == "energy":
            made.append(_resource("Energy", "", value, "J"))
        elif value and category == "bb":
            made.append(_resource("BurstBuffer", what, value))
    known = sum((v for _, v in typed), Decimal(0))
    wrong = ""
    if total is not None and typed and known != total:
        wrong = f"gres/gpu says {total}, its types {known}; gres/gpu is taken"
        typed = []
    gpu = [_resource("GPU", model, v) for model, v in typed if v]
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
