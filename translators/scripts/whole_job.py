"""Amounts that a job with several task groups says of all of them, where a target is told of each group by itself."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

from sssjob.lrm.usage import whole
from sssjob.request.asked import JOB
from sssjob.translators.scripts.base import Asking, Entry
from sssjob.translators.scripts.layout import Amount, Part, of_total, shared, totals_in

__all__ = ["bytes_of", "memory_of_job", "of_whole_job", "share_memory"]


def of_whole_job(asking: Asking, parts: Sequence[Part], *, memory: bool = False) -> None:
    """Tell of amounts that the job says beside its task groups, where these come to less. memory: the target has an
    amount of memory for all of them."""
    for amounts in ([part.memory for part in parts], [part.gpus for part in parts]):
        shared_by = [amount for amount in amounts if amount is not None and amount.entry.level == JOB]
        if shared_by and len(shared_by) < sum(amount is not None for amount in amounts):
            asking.dropped(shared_by[0].entry, "it is that of all task groups; only those that say nothing of it "
                           "are asked for it")
    for tag, counts in (("Processors", [part.processor_total for part in parts]),
                        ("NodeCount", [part.node_total for part in parts])):
        entry = asking.one(tag, (JOB,)) if any(e.level == JOB for e in asking.said(tag)) else None
        least = 0 if tag == "NodeCount" and None in counts else sum(count or 0 for count in counts)
        stated = None if entry is None else whole(entry.text) if of_total(entry) else _in_all(asking)
        if entry is None or stated is None:
            continue
        if stated > least:
            asking.dropped(entry, f"{stated} in all are not asked for, only those of each task group")
        elif tag == "NodeCount" and least > stated and any(part.node_apart is None for part in parts):
            asking.dropped(entry, f"each task group is asked for on nodes of its own, {least} in all")
    for tag in ("Resource",) if memory else ("Memory", "Resource"):
        for e in asking.said(tag):
            if e.level == JOB and of_total(e) and (tag == "Memory" or e.attributes.get("name") == "GPU"):
                asking.dropped(e, "it is that of all task groups, each of which is asked for by itself",
                               tag if tag == "Memory" else "Resource GPU")


def share_memory(asking: Asking, parts: Sequence[Part], counts: Sequence[int | None], what: str, metric: str,
                 smallest: int) -> bool:
    """Have each chunk or node of several task groups ask for its share of the memory that the job says of all of them;
    False where that cannot be said. counts: how many of them each part has; what: their name; smallest: the unit in
    which shares are whole, in bytes."""
    entry = _said_of_all(asking)
    amount = 0 if entry is None else memory_of_job(asking)
    if entry is None or not amount or not all(counts):
        return False
    if any(part.memory is not None for part in parts):
        asking.dropped(entry, "it is that of all task groups, of which some ask for their own")
        return True
    share = shared(asking, Amount(amount, "job", entry), sum(filter(None, counts)), what, smallest)
    for part in parts:
        part.memory = Amount(share, metric, entry)
    return True


def _in_all(asking: Asking) -> int | None:
    """The processors that a job with several task groups asks for on each node or in each chunk, multiplied out; None
    where nothing says how many there are of those."""
    total = totals_in(asking).processors
    return int(total.value) if total is not None and total.known else None


def _said_of_all(asking: Asking) -> Entry | None:
    """What a job with several task groups says of the memory of all of them."""
    return next((e for e in asking.said("Memory") if e.level == JOB and of_total(e)), None)


def memory_of_job(asking: Asking) -> int:
    """Bytes that a job with several task groups says of all of them; 0 where it does not."""
    entry = _said_of_all(asking)
    return 0 if entry is None else bytes_of(asking, entry)


def bytes_of(asking: Asking, entry: Entry) -> int:
    """Bytes of an amount of memory of the job; 0 where it is a condition that asks for nothing, which is told."""
    taken = asking.one("Memory", (JOB,), carried=("units", "metric")) if "op" in entry.attributes else entry
    if taken is None:
        return 0
    taken.used = True
    taken.understood |= {"units", "metric"}
    return int((asking.in_bytes(taken) or Decimal(0)).to_integral_value(ROUND_CEILING))
