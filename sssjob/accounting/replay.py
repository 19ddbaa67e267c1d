"""Replays a ledger: checks that its entries are those that were written, and that balances, holds and charges in force
follow from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sssjob.accounting.arithmetic import plain, recompute
from sssjob.accounting.entries import (
    COLUMNS,
    NEVER,
    NUMBERS,
    Account,
    Entry,
    LedgerError,
    content_of,
    entry_of,
    job_of,
)
from sssjob.accounting.pricing import Charge, charge
from sssjob.errors import SSSJobError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting.ledger import Ledger

__all__ = ["replay"]


def replay(ledger: Ledger, *, recharge: bool = True) -> Iterator[str]:
    """Replay all entries: what is wrong with hashes, balances, charges in force, and printed arithmetic.

    recharge: every charge is made again from the stored job and rates too.
    """
    previous, numbers, accounts = "", 0, dict[tuple[str, str], Account]()
    force: dict[tuple[str, str, int], tuple[int, str, str]] = {}
    holds: dict[int, int] = {}
    kept: dict[str, dict[Any, Any]] = {"settings": {}, "terms": {}}
    closed: int | None = None
    for row in ledger.store.execute(f"SELECT {COLUMNS} FROM entries ORDER BY number"):
        numbers += 1
        try:
            entry = entry_of(row)
        except LedgerError as error:
            yield str(error)
            numbers, previous = row[0] if isinstance(row[0], int) else numbers, str(row[-1])
            continue
        if entry.number != numbers:
            yield f"entry {numbers} is missing"
            numbers = entry.number
        if entry.digest(previous) != entry.hash:
            yield f"entry {entry.number} is not what was written, or the one before it"
        previous = entry.hash
        if entry.account:
            accounts.setdefault((entry.account, entry.currency), Account(entry.account, entry.currency)).take(entry)
        key = (entry.machine, entry.job, entry.start)
        if entry.kind == "charge":
            force[key] = (entry.number, content_of(entry.account, str(entry.document.get("job"))),
                          str(entry.document.get("rates")))
            yield from _recomputed(ledger, entry, recharge)
        elif entry.kind == "reversal" and key in force and force[key][0] == entry.refers:
            del force[key]
        elif entry.kind == "hold":
            holds[entry.number] = entry.document.get("expires", NEVER)
        elif entry.kind == "release":
            holds.pop(entry.refers, None)
        elif entry.kind == "account":
            kept["settings"][entry.account, entry.currency] = entry.document.get("settings")
        elif entry.kind == "deposit" and not entry.document.keys().isdisjoint(("since", "until")):
            kept["terms"][entry.number] = (entry.account, entry.currency, entry.document.get("since", 0),
                                           entry.document.get("until", NUMBERS - 1))
        elif entry.kind == "closing":
            closed = entry.document.get("until")
    if closed != ledger.closed():
        yield "the books are not closed up to where the entries say"
    yield from _compared(ledger, numbers, previous, accounts, force)
    rows = ledger.store.execute("SELECT entry, expires FROM holds").fetchall()
    if dict(rows) != holds:
        yield "the holds are not those of the entries"
    rows = ledger.store.execute("SELECT account, currency, text FROM settings").fetchall()
    if {(name, currency): text for name, currency, text in rows} != {
            name: json.dumps(settings, sort_keys=True) for name, settings in kept["settings"].items()}:
        yield "the settings of the accounts are not those of the entries"
    rows = ledger.store.execute("SELECT entry, account, currency, since, until FROM terms").fetchall()
    if {row[0]: tuple(row[1:]) for row in rows} != kept["terms"]:
        yield "the terms of the deposits are not those of the entries"


def _recomputed(ledger: Ledger, entry: Entry, recharge: bool) -> Iterator[str]:
    try:
        charge_kept = entry.document["charge"]
        exact = recompute(str(charge_kept["arithmetic"]))
        if plain(exact) != charge_kept["exact"] or charge_kept["charge"] != plain(entry.amount):
            yield f"entry {entry.number}: the arithmetic comes to {plain(exact)}"
        if recharge:
            again = charge(job_of(entry.document["job"]), ledger.rates(str(entry.document["rates"])),
                           running=True)
            if not isinstance(again, Charge) or again.amount != entry.amount:
                yield f"entry {entry.number}: the stored job and rates give another charge"
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, SSSJobError) as error:
        reason = escape(str(error), 200) if isinstance(error, ValueError | SSSJobError) else \
            "what is stored of the charge is not whole"
        yield f"entry {entry.number}: {reason}"


def _compared(ledger: Ledger, number: int, digest: str, accounts: Mapping[tuple[str, str], Account],
              force: Mapping[tuple[str, str, int], tuple[int, str, str]]) -> Iterator[str]:
    """What is derived against what follows from the entries."""
    if tuple(ledger.store.one("SELECT number, hash FROM head")) != (number, digest):
        yield "the last entries are missing"
    try:
        kept = {(a.account, a.currency): a for a in ledger.accounts()}
    except LedgerError as error:
        yield str(error)
        kept = accounts = {}
    for name in sorted(kept.keys() | accounts.keys()):
        if kept.get(name) != accounts.get(name):
            yield (f"account {escape(name[0], 60)} in {escape(name[1], 60) or 'credits'}: "
                   "the balance is not that of the entries")
    rows = ledger.store.execute("SELECT machine, job, start, entry, content, rates FROM charges")
    if {tuple(row[:3]): tuple(row[3:]) for row in rows} != dict(force):
        yield "the charges in force are not those of the entries"
