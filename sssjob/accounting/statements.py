"""What of a statement is asked for: entries about jobs of one user or machine, and sums in place of single entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal, localcontext
from typing import Any, Final

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.dimensions import Condition
from sssjob.accounting.entries import EXACT, By, Entry, job_of

__all__ = ["SUMS", "Sum", "Wanted", "change", "summed"]

#: What entries can be added up by. Months and days are those of the zone.
SUMS: Final[dict[str, Callable[[Entry, By, tzinfo], str]]] = {
    "month": lambda entry, by, zone: f"{datetime.fromtimestamp(entry.moment(by), zone):%Y-%m}",
    "day": lambda entry, by, zone: f"{datetime.fromtimestamp(entry.moment(by), zone):%Y-%m-%d}",
    "kind": lambda entry, by, zone: entry.kind,
    "user": lambda entry, by, zone: entry.user_name or "-",
    "machine": lambda entry, by, zone: entry.machine or "-",
    "job": lambda entry, by, zone: entry.job or "-",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries of a statement are wanted; of what is empty, all. conditions: of the jobs that they are about."""

    users: Collection[str] = ()
    machines: Collection[str] = ()
    kinds: Collection[str] = ()
    conditions: Sequence[Condition] = ()

    @property
    def all(self) -> bool:
        """Whether no entry is left out."""
        return not (self.users or self.machines or self.kinds or self.conditions)

    def of(self, entries: Iterable[Entry], entry_of: Callable[[int], Entry]) -> list[Entry]:
        """Those of some entries that are wanted. entry_of: the entry of a number, as that of a refund's charge."""
        return [entry for entry in entries if all(
            not some or value in some for some, value in (
                (self.users, entry.user_name), (self.machines, entry.machine), (self.kinds, entry.kind))
            ) and self._of_job(entry, entry_of)]

    def _of_job(self, entry: Entry, entry_of: Callable[[int], Entry]) -> bool:
        """Whether the job that an entry is about meets the conditions; one about no job meets none."""
        if not self.conditions:
            return True
        charge = entry_of(entry.refers) if entry.refers and "job" not in entry.document else entry
        if "job" not in charge.document:
            return False
        job = job_of(charge.document["job"])
        return all(condition.holds(job) for condition in self.conditions)


@dataclass(slots=True)
class Sum:
    """Entries that have the same of what they are added up by. change: what they do to the balance."""

    key: tuple[str, ...]
    entries: int = 0
    change: Decimal = Decimal(0)

    def record(self, names: Sequence[str]) -> dict[str, Any]:
        """As a JSON object."""
        return {**dict(zip(names, self.key, strict=True)), "entries": self.entries, "change": plain(self.change)}


def change(entries: Iterable[Entry]) -> Decimal:
    """What entries do to the balance in all."""
    with localcontext(EXACT):
        return sum((entry.change for entry in entries), Decimal(0))


def summed(entries: Iterable[Entry], names: Sequence[str], by: By, zone: tzinfo = UTC) -> list[Sum]:
    """The sums of entries by names of ``SUMS``, in the order of their keys."""
    sums: dict[tuple[str, ...], Sum] = {}
    with localcontext(EXACT):
        for entry in entries:
            key = tuple([SUMS[name](entry, by, zone) for name in names])
            group_sum = sums.setdefault(key, Sum(key))
            group_sum.entries += 1
            group_sum.change += entry.change
    return [sums[key] for key in sorted(sums)]
