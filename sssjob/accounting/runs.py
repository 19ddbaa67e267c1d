"""What two records of one run of a job say of each other, so that the order in which a ledger reads them is no matter.

A run is first known, then it waits, runs and ends; a record of a later stage says more than one of an earlier stage,
and of two records of a run that still runs the one by which it has run longer.
Of two records of the end the one that tells how the run ended (exit code, signal) says more than one that does not, and
otherwise the one that states all that the other states, and something beyond it. Measured peaks and sums may have
grown: accounting is asked before the last step is counted. Two records of which each states something that the other
contradicts or leaves out stand apart; which of them is right nobody can tell by reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from enum import IntEnum
from typing import Final, Literal

from sssjob.accounting.entries import Said
from sssjob.document.element import Container, Property, Raw
from sssjob.document.held import delivered
from sssjob.document.model import Job
from sssjob.document.states import job_state
from sssjob.document.units import to_bytes
from sssjob.findings import escape

__all__ = ["Stage", "Verdict", "compared", "differing", "span", "stage"]

Verdict = Literal["same", "less", "more", "apart"]
_Key = tuple[str, ...]
_Facts = dict[_Key, list[Property | Raw]]

#: Not compared: what charging writes.
_BESIDE: Final = ("Charge",)
#: Properties that grow while accounting gathers what the steps of a run used; of amounts only peaks and energy do.
_GROWING: Final = ("CpuDuration", "StartCount")
_BYTES: Final = ("Memory", "Swap", "Disk")


class Stage(IntEnum):
    """How much a record can say about a run."""

    KNOWN = 0
    WAITING = 1
    RUNNING = 2
    ENDED = 3
    TOLD = 4        # ended, and how


def stage(statement: Said) -> Stage:
    """The stage of the run that a record tells of. A document without State tells of one that is over if it says how
    long it ran."""
    word, job = statement.text("State"), statement.job
    state = job_state(word).state if word else None
    if state in ("Idle", "Hold", "NotQueued"):
        return Stage.WAITING
    if state in ("Running", "Suspended"):
        return Stage.RUNNING
    if state is None and job.value("EndTime") is None and not statement.text("Duration"):
        return Stage.KNOWN
    says_how = job.value("ExitCode") is not None or any(
        p.get("name") in ("ExitStatus", "ExitSignal") for p in job.all("Extension"))
    return Stage.TOLD if says_how else Stage.ENDED


def compared(old: Job, new: Job) -> Verdict:
    """What the new record says beside the old one, both of one run."""
    before, after = stage(Said(old)), stage(Said(new))
    if before == after == Stage.RUNNING:        # it goes on: the one that was written later says more
        longer = _lasted(new) - _lasted(old)
        return "more" if longer > 0 else "less" if longer else "same"
    if before != after:
        return "more" if after > before else "less"
    of_old, has = _facts(old), _facts(new)
    holds = all(key in has and _holds(key, items_old, has[key]) for key, items_old in of_old.items())
    held = all(key in of_old and _holds(key, items_old, of_old[key]) for key, items_old in has.items())
    if holds:
        return "same" if held else "more"
    return "less" if held else "apart"


def _lasted(job: Job) -> int:
    """For how many seconds a run has lasted, -1 where that is not said."""
    lasted = delivered(job, "Duration")
    return int(lasted.value) if lasted is not None and isinstance(lasted.value, int | Decimal) else -1


def differing(old: Job, new: Job) -> str:
    """What two records contradict each other in, for a message."""
    of_old, has = _facts(old), _facts(new)
    odd = [key for key in of_old.keys() & has.keys() if list(map(_value, of_old[key])) != list(map(_value, has[key]))]
    odd = sorted(odd) + [key for key in {**of_old, **has} if (key in of_old) != (key in has)]
    parts = [f"{_shown(key)} {_texts(of_old.get(key))} and {_texts(has.get(key))}" for key in odd[:3]]
    return "; ".join(parts) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")


def span(job: Job) -> tuple[int, int] | None:
    """(StartTime, EndTime) in seconds; None where one of them is not said."""
    start, end = job.value("StartTime"), job.value("EndTime")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else None


def _facts(job: Job) -> _Facts:
    facts: _Facts = {}
    for key, item in _items(job, ()):
        facts.setdefault(key, []).append(item)
    return facts


def _items(container: Container, path: _Key) -> Iterator[tuple[_Key, Property | Raw]]:
    counts: dict[str, int] = {}
    for item in container.items:
        if item.tag in _BESIDE and not path:
            continue
        if isinstance(item, Container):
            n = counts[item.tag] = counts.get(item.tag, 0) + 1
            yield from _items(item, (*path, f"{item.tag}[{n}]" if item.tag == "TaskGroup" else item.tag))
        elif isinstance(item, Property | Raw):
            attributes: Mapping[str, str] = item.attributes or {}
            attributes_text = sorted(f"{name}={value}" for name, value in attributes.items() if name != "units")
            yield (*path, item.tag, *attributes_text), item


def _holds(key: _Key, old: list[Property | Raw], new: list[Property | Raw]) -> bool:
    """Whether the new values say what the old ones say, or have grown from them."""
    if [_value(item) for item in old] == [_value(item) for item in new]:
        return True
    if len(old) != len(new) or not _grows(key):
        return False
    return all(isinstance(a, Decimal) and isinstance(b, Decimal) and a <= b
               for a, b in zip(map(_value, old), map(_value, new), strict=True))


def _grows(key: _Key) -> bool:
    return key[0] in _GROWING or "metric=Max" in key or "name=Energy" in key


def _value(item: Property | Raw) -> Decimal | str:
    """The value of a property, so that amounts in different units compare."""
    if isinstance(item, Raw):
        return item.text.strip()
    value, units = item.value, item.get("units")
    if not isinstance(value, int | Decimal):
        return f"{item.text.strip()} {units or ''}"
    if item.tag in _BYTES:
        with suppress(LookupError, ValueError):     # units that nobody knows
            return to_bytes(Decimal(value), units)
    return Decimal(value) if units is None else f"{Decimal(value).normalize():f} {units}"


def _shown(key: _Key) -> str:
    return escape("/".join(part for part in key if "=" not in part) + "".join(
        f" {part}" for part in key if "=" in part), 120)


def _texts(items: list[Property | Raw] | None) -> str:
    return "nothing" if items is None else escape(", ".join(item.text.strip() for item in items), 60)
