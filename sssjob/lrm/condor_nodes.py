"""The machines of an HTCondor pool, from ``condor_status -json``.

Source: the HTCondor manual, Machine ClassAd Attributes and condor_status(1). No recorded output was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sssjob.lrm.nodes import ANYWHERE, Node, Shape

__all__ = ["MACHINES", "machines_of"]

MACHINES: Final = ("condor_status", "-json")
#: States of a slot that takes no job: its owner uses the machine, or it is being drained or shut down.
_OUT: Final = frozenset({"Owner", "Drained", "Shutdown", "Delete"})
_DYNAMIC: Final = "Dynamic"
_MOST: Final = 10**9        # a number that is believed


def machines_of(answer: Any) -> list[Node]:
    """The machines of an answer: of one with partitionable slots what these have in all, else its slots together.
    Raises ValueError where it cannot be understood."""
    if not isinstance(answer, list):
        raise ValueError("it is no list of slots")
    machines: dict[str, Node] = {}
    for place, slot in enumerate(answer, 1):
        if not isinstance(slot, dict) or not isinstance(slot.get("Machine"), str):
            raise ValueError(f"slot {place} of the list has no Machine")
        name = slot["Machine"]
        machine = machines.get(name, Node(name, {}))
        try:
            machines[name] = _with(machine, slot)
        except ValueError as error:
            raise ValueError(f"machine {name[:80]}: {error}") from None
    return list(machines.values())


def _with(machine: Node, slot: Mapping[str, Any]) -> Node:
    """A machine with one more of its slots. A dynamic slot is a part of a partitionable one, which has all of it."""
    taken = slot.get("State") == "Claimed"
    if slot.get("SlotType") == _DYNAMIC:
        return replace(machine, busy=machine.busy or taken)
    if slot.get("State") in _OUT:
        return machine
    whole = "Total" if slot.get("SlotType") == "Partitionable" else ""
    anywhere = machine.shapes.get(ANYWHERE, Shape(0, 0))
    shape = Shape(anywhere.processors + _count(slot, f"{whole}SlotCpus", "Cpus"),
                  anywhere.memory + _count(slot, f"{whole}SlotMemory", "Memory"),
                  anywhere.gpus + _count(slot, f"{whole}SlotGPUs", f"{whole}SlotGpus", "GPUs", "Gpus"))
    return replace(machine, shapes={ANYWHERE: shape} if shape.processors else {}, busy=machine.busy or taken)


def _count(slot: Mapping[str, Any], *names: str) -> int:
    """The first of these numbers that is stated, else 0."""
    value = next((slot[name] for name in names if name in slot), 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ValueError(f"{names[0]} {str(value)[:40]!r} is no number")
    return int(value)
