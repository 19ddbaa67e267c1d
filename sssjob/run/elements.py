"""What became of an array as a whole, from what became of its elements.

The document's own job gets it: state, times, the exit of the first element that failed, and Delivered with Duration as
the sum over all elements beside the Processors of one, so that their product is what was held. Each element is an
Extension ``ArrayElement``; in the journal it is a job of its own with all of its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from psij.executors.batch._answers import array_id
from sssjob.document.element import Property, new_property
from sssjob.document.model import Delivered, Job
from sssjob.document.units import from_bytes, to_bytes
from sssjob.run.facts import clear, same_place

__all__ = ["gather"]

_SUMS: Final = ("CpuDuration", "SuspendDuration")
_ENERGY: Final = ("Energy", "J")
_SHOWN: Final = ("ExitCode", "StartTime", "EndTime", "StatusMessage")


def gather(whole: Job, elements: Sequence[Job]) -> None:
    """Write into the job of an array what its elements say."""
    clear(whole)
    same_place(whole, elements[0])
    _identify(whole, elements)
    states = {str(job.value("State") or "Idle") for job in elements}
    ended = states == {"Completed"}
    whole.set_as_is("State", "Completed" if ended else "Running" if states & {"Running", "Completed"} else "Idle")
    for tag, choose in (("SubmitTime", min), ("StartTime", min), *((("EndTime", max),) if ended else ())):
        _chosen(whole, tag, choose, elements)
    if ended:
        _exit(whole, elements)
        for tag in _SUMS:
            _chosen(whole, tag, sum, elements)
    _deliver(whole, elements)
    whole.items += [_element(job) for job in elements if job.value("SubmitTime") is not None or
                    job.value("State") == "Completed"]


def _identify(whole: Job, elements: Sequence[Job]) -> None:
    """Give an array without an Id that of the native array, where its elements are of one, else that of the first
    element, as a job without an Id gets its native id."""
    if whole.first("Id") is not None:
        return
    native_ids = [native for job in elements if (native := _fact(job, "NativeId")) is not None]
    if native_ids:
        of_one_array = len(native_ids) > 1 and len(set(map(array_id, native_ids))) == 1
        whole.set_as_is("Id", array_id(native_ids[0]) if of_one_array else native_ids[0])


def _chosen(whole: Job, tag: str, choose: Callable[[Iterable[Any]], Any], elements: Sequence[Job]) -> None:
    values = [value for job in elements if (value := job.value(tag)) is not None]
    if values:
        whole.set_as_is(tag, choose(values))


def _exit(whole: Job, elements: Sequence[Job]) -> None:
    """Exit code, or signal, and message: of the first that failed, else of the first."""
    failed = next((job for job in elements if job.value("ExitCode") != 0), None)
    counts = elements[0] if failed is None else failed
    whole.set_as_is("ExitCode", counts.value("ExitCode"))
    signal = _fact(counts, "ExitSignal")
    if signal is not None:
        whole.items.append(new_property("Extension", signal, {"type": "LRM", "name": "ExitSignal"}))
    if failed is not None:
        message = str(failed.value("StatusMessage") or "failed")
        whole.set_as_is("StatusMessage", f"element {_fact(failed, 'ArrayIndex')}: {message}")


def _fact(job: Job, name: str) -> str | None:
    """A fact of the resource manager's; of several task groups those of all, parted by commas."""
    texts = [p.text for scope in (job, *job.task_groups) for p in scope.all("Extension")
             if (p.get("type"), p.get("name")) == ("LRM", name)]
    return ",".join(texts) or None


def _element(job: Job) -> Property:
    """``3 Completed NativeId=17 ExitCode=0 StartTime=... EndTime=...``."""
    words = [str(_fact(job, "ArrayIndex")), str(job.value("State") or "Idle")]
    words += [f"NativeId={native}"] if (native := _fact(job, "NativeId")) is not None else []
    words += [f"{tag}={p.text}" for tag in _SHOWN if (p := job.first(tag)) is not None]
    return new_property("Extension", " ".join(words), {"type": "LRM", "name": "ArrayElement"})


def _deliver(whole: Job, elements: Sequence[Job]) -> None:
    blocks = [block for job in elements for block in job.containers("Delivered")]
    if not blocks:
        return
    delivered = Delivered()
    for tag in dict.fromkeys(p.tag for block in blocks for p in block.properties()):
        delivered.items += _amount(tag, [p for block in blocks for p in block.all(tag)], len(blocks))
    whole.items = [*(i for i in whole.items if i.tag != "Delivered"), delivered]


def _amount(tag: str, properties: list[Property], blocks: int) -> list[Property]:
    """What stands for one name: a sum, the most of what one element had, all nodes; else what all have in common.

    Energy is what was used in all: a sum over those elements of which it is known.
    """
    if tag == "Duration":
        return [properties[0].replace(sum(_number(p) for p in properties))]
    if tag in ("Processors", "NodeCount"):
        return [max(properties, key=_number)]
    if tag == "Memory":
        return [_most(properties, metric) for metric in dict.fromkeys(p.get("metric") for p in properties)]
    if tag == "Node":
        names = list(dict.fromkeys(name for p in properties for name in p.text.split(",")))
        return [new_property(tag, ",".join(names), {"aggregation": "List"} if len(names) > 1 else None)]
    if tag == "Resource":
        used = [p for p in properties if (p.get("name"), p.get("units")) == _ENERGY]
        rest = [p for p in properties if p not in used]
        total = [used[0].replace(sum(Decimal(p.text) for p in used))] if used else []
        return [*(_common(rest, blocks)), *total]
    return _common(properties, blocks)


def _common(properties: list[Property], blocks: int) -> list[Property]:
    same = list(dict.fromkeys(properties))
    return same if len(properties) == len(same) * blocks else []


def _number(p: Property) -> int:
    return p.value if isinstance(p.value, int) else int(Decimal(p.text))


def _most(properties: list[Property], metric: str | None) -> Property:
    sizes = [to_bytes(Decimal(p.text), p.get("units")) for p in properties if p.get("metric") == metric]
    amount, units = from_bytes(int(max(sizes)))
    return next(p for p in properties if p.get("metric") == metric).replace(amount, units=units)
