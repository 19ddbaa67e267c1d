"""What an account has to pay for a month or a year: the charges of jobs that ended in it, and credit notes.

A charge that was reversed and made anew within the period counts as what is left of it. What is given back of an
earlier period, or charged late for one that is closed, stands apart: it is a correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.dimensions import dimension, value_of
from sssjob.accounting.entries import ABOUT_RUNS, EXACT, Entry, LedgerError, job_of
from sssjob.accounting.ledger import Ledger
from sssjob.document.held import as_decimal, held_for, ran

__all__ = ["Invoice", "Line", "invoice", "period_of"]

_FORMS: Final = ("%Y-%m", "%Y")


@dataclass(slots=True)
class Line:
    """Jobs of one kind. key: what they have of each property; processor_s: processors x seconds."""

    key: tuple[str, ...]
    jobs: int = 0
    processor_s: Decimal = Decimal(0)
    amount: Decimal = Decimal(0)

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"key": list(self.key), "jobs": self.jobs, "processor_h": f"{self.processor_s / 3600:.2f}",
                "amount": plain(self.amount)}


@dataclass(slots=True)
class Invoice:
    """What an account has to pay for a period. since, until: epoch seconds, until not included; closed: whether the
    books of the period are, so that it will stay as it is; by: what lines are told apart by; corrections: entries about
    jobs of earlier periods."""

    account: str
    currency: str
    period: str
    since: int
    until: int
    closed: bool
    by: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    corrections: list[Entry] = field(default_factory=list)

    @property
    def jobs(self) -> Decimal:
        """What the jobs of the period cost."""
        with localcontext(EXACT):
            return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def total(self) -> Decimal:
        """What is to be paid."""
        with localcontext(EXACT):
            return self.jobs - sum((entry.change for entry in self.corrections), Decimal(0))

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"account": self.account, "currency": self.currency, "period": self.period, "closed": self.closed,
                "by": list(self.by), "lines": [line.record() for line in self.lines], "jobs": plain(self.jobs),
                "corrections": [entry.record() for entry in self.corrections], "total": plain(self.total)}


def period_of(text: str, zone: tzinfo) -> tuple[int, int]:
    """(first second, first second after it) of a month (``2026-01``) or a year (``2026``). Raises ValueError."""
    for form in _FORMS:
        try:
            first = datetime.strptime(text, form).replace(tzinfo=zone)
        except ValueError:
            continue
        after = first.replace(year=first.year + 1) if form == "%Y" or first.month == 12 else first
        after = after if form == "%Y" else after.replace(month=first.month % 12 + 1)
        if text == first.strftime(form):
            return int(first.timestamp()), int(after.timestamp())
    raise ValueError(f"{text[:40]!r} is no month or year, as 2026-01 or 2026")


def invoice(ledger: Ledger, account: str, currency: str, period: str, zone: tzinfo, *,
            by: tuple[str, ...] = ("Queue",)) -> Invoice:
    """What an account has to pay for a period, by when its jobs ended. zone: of the period's borders; by: properties
    that lines are told apart by. Raises LedgerError (the period has not begun), UsageError, ValueError."""
    since, until = period_of(period, zone)
    names = tuple(map(dimension, by))
    bill = Invoice(account, currency, period, since, until, (ledger.closed() or 0) >= until, names)
    lines: dict[tuple[str, ...], Line] = {}
    charges: dict[int, Entry] = {}
    with localcontext(EXACT):
        for entry in _of(ledger, account, currency):
            if entry.kind == "charge":
                charges[entry.number] = entry
            if not since <= entry.moment("end") < until:
                continue
            first = entry if entry.kind == "charge" else charges.get(entry.refers)
            if first is None:
                raise LedgerError(f"entry {entry.number} answers no charge")
            if "booked" in entry.document or not since <= first.moment("end") < until:
                bill.corrections.append(entry)
            else:
                _take(lines, first, entry, names)
    if not (lines or bill.corrections) and since > ledger.now():
        raise LedgerError(f"{period} has not begun, and nothing is to be paid for it")
    bill.lines = sorted((line for line in lines.values() if line.jobs or line.amount),
                        key=lambda line: (-line.amount, line.key))
    return bill


def _of(ledger: Ledger, account: str, currency: str) -> Iterator[Entry]:
    """The entries of an account about runs."""
    return (entry for entry in ledger.entries(account, currency) if entry.kind in ABOUT_RUNS)


def _take(lines: dict[tuple[str, ...], Line], first: Entry, entry: Entry, names: tuple[str, ...]) -> None:
    """Add an entry to the line of the job that was charged first."""
    job = job_of(first.document["job"])
    line = lines.setdefault(key := tuple(value_of(job, name) for name in names), Line(key))
    line.amount -= entry.change
    if entry.kind != "refund":
        sign = 1 if entry.kind == "charge" else -1
        line.jobs += sign
        line.processor_s += sign * as_decimal(held_for(job, "Processors", ran(job) or Fraction(0)))


