"""How a part of a job is laid out, taken from a job for a writer: nodes, tasks, processors, memory, GPUs, and per what.

Readers never convert; writers do, where the target lacks that "per" (decisions 6 to 8). What a conversion changes is a
finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from typing import Final

from sssjob.lexical import LexicalError
from sssjob.model import Property
from sssjob.translators.asked import AMOUNTS, GROUP, GROUPS, TASK
from sssjob.translators.scripts.base import APPROXIMATED, SITE, Asking, Entry
from sssjob.units import to_bytes

__all__ = ["Amount", "Part", "fits", "part_of", "plain", "shared", "size", "unknown_factor"]


@dataclass(frozen=True, slots=True)
class Amount:
    """bytes or a count; per: job, PerNode, PerChunk, PerProcessor, PerGPU or task; entry: where it comes from."""

    value: int
    per: str
    entry: Entry
    kind: str = ""


@dataclass(slots=True)
class Part:
    """What one part asks for; None: not stated. per_node: tasks; cpus: of one task; processors: of all."""

    nodes: int | None = None
    nodes_most: int | None = None
    tasks: int | None = None
    per_node: int | None = None
    cpus: int | None = None
    processors: int | None = None
    chunks: int | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    beside: list[Entry] = field(default_factory=list)       # memory said at other levels too

    @property
    def node_chunks(self) -> bool:
        """Whether its chunks are nodes."""
        return self.chunks is not None and self.chunks == self.nodes


def part_of(asking: Asking) -> Part:
    """The layout of the job, or of the group asked for."""
    part = Part()
    part.nodes, part.nodes_most = _nodes(asking)
    part.tasks = _number(asking, asking.one("TaskCount", (GROUP, GROUPS)))
    part.chunks = _number(asking, asking.one("Extension", AMOUNTS, type="Scheduler", name="ChunkCount"))
    cpus = asking.one("Processors", TASK)
    part.cpus = _number(asking, cpus)
    part.processors = _number(asking, asking.one("Processors", AMOUNTS))
    _distribution(asking, part)
    part.memory = _amount(asking, "Memory")
    if part.memory is not None:
        part.beside = [e for e in asking.entries if e.tag == "Memory" and e.slot in ("", "Requested")
                       and e.level != part.memory.entry.level]
    part.gpus = _amount(asking, "Resource", name="GPU")
    return part


def _nodes(asking: Asking) -> tuple[int | None, int | None]:
    """Least and most; ``op`` GE with LE is a range."""
    found = asking.find("NodeCount", AMOUNTS)
    ops = {e.attributes.get("op", "EQ"): e for e in found}
    if len(found) == 2 and ops.keys() == {"GE", "LE"} and not any(
            e.attributes.keys() & {"conj", "group", "preference"} for e in found):
        return int(ops["GE"].text), int(ops["LE"].text)
    entry = asking.one("NodeCount", AMOUNTS)
    return _number(asking, entry), None


def _number(asking: Asking, entry: Entry | None) -> int | None:
    if entry is None:
        return None
    if entry.text.isdigit() and int(entry.text) > 0:
        return int(entry.text)
    asking.dropped(entry, f"{entry.text} is no number of things that can be asked for")
    return None


def _distribution(asking: Asking, part: Part) -> None:
    entry = asking.one("TaskDistribution", AMOUNTS, carried=("type",))
    if entry is None:
        return
    kind = entry.attributes.get("type") or ("TasksPerNode" if entry.text.isdigit() else "Rule")
    if not entry.text.isdigit() or kind not in ("TasksPerNode", "ProcessorsPerTask"):
        asking.dropped(entry, f"a distribution by {kind} is not carried")
    elif kind == "TasksPerNode":
        part.per_node = int(entry.text)
    else:
        part.cpus = part.cpus or int(entry.text)


_NAME: Final = re.compile(r"[^\s,:;+=&|@'\"\\#*()<>]{1,255}")
_PER: Final = {"Total": "job", "": "job"}


def _amount(asking: Asking, tag: str, **attributes: str) -> Amount | None:
    entry = asking.one(tag, TASK, carried=("units", "metric", "type"), **attributes)
    per = "task"
    if entry is None:
        entry = asking.one(tag, AMOUNTS, carried=("units", "metric", "type"), **attributes)
        if entry is None:
            return None
        metric = entry.attributes.get("metric", "")
        per = _PER.get(metric, metric)
    try:
        number = Decimal(entry.value)
        value = to_bytes(number, entry.attributes.get("units")) if tag == "Memory" else number
    except LexicalError as error:
        asking.dropped(entry, str(error))
        return None
    kind = entry.attributes.get("type", "")
    if kind and not fits(asking, entry, kind):
        return None
    return Amount(int(value.to_integral_value(ROUND_CEILING)), per, entry, kind)


def shared(asking: Asking, amount: Amount, parts: int, what: str) -> int:
    """An amount shared out, rounded up, with a finding where that is more."""
    if amount.value % parts:
        asking.note(APPROXIMATED, amount.entry, f"shared out among {parts} {what}, rounded up")
    return -(-amount.value // parts)


def unknown_factor(asking: Asking, amount: Amount, what: str) -> None:
    """The finding where the number that a conversion needs is not stated."""
    asking.note(SITE, amount.entry, f"{what}, for the job does not say how it is spread")


def size(suffixes: str, smallest: int = 1) -> Callable[[int], str]:
    """Writer of sizes in the largest power of 1024 that is exact. suffixes: one a power, from bytes; blank: none;
    smallest: bytes that are rounded up to."""
    def made(value: int) -> str:
        value = -(-value // smallest) * smallest
        power = 0
        while power + 1 < len(suffixes.split(",")) and value and value % 1024 == 0:
            value //= 1024
            power += 1
        return f"{value}{suffixes.split(',')[power]}"
    return made


def fits(asking: Asking, entry: Entry, text: str) -> bool:
    """Whether a name can stand in a list of the target's: no sign that parts or assigns is in it."""
    if _NAME.fullmatch(text):
        return True
    asking.dropped(entry, f"{text[:80]!r} is no name for {asking.dialect.title}")
    return False


def plain(entries: list[Entry]) -> bool:
    """Whether properties are simply all demanded."""
    return all(isinstance(e.item, Property) and not e.attributes.keys() & {"op", "conj", "group", "preference"}
               for e in entries)
