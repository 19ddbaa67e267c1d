"""What every entry of a ledger needs: posting it, the accounts that follow, rates and sources that are kept."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, Final

from sssjob.accounting.entries import (
    ABOUT_RUNS,
    COLUMNS,
    EXACT,
    NAMES,
    NUMBERS,
    Account,
    Entry,
    LedgerError,
    Said,
    account_of,
    bounded,
    entry_of,
    sealed,
)
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.store import Store
from sssjob.accounting.times import shown
from sssjob.document.held import seconds
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobDefaults
from sssjob.findings import escape
from sssjob.lrm.idset import Idset

__all__ = ["CLOSED", "OWNERS", "Key", "Postings", "whole_of"]

#: Properties of a job that an account can be named by.
OWNERS: Final = ("Project", "User", "Group", "Queue", "Machine")

#: Under which name of a source the ledger keeps up to when its books are closed.
CLOSED: Final = "closed"
#: Digits of the index of an element from which on it is none.
_LONG_INDEX: Final = 10
#: Machine, native id or Id, StartTime.
Key = tuple[str, str, int]


@dataclass(slots=True)
class Unwritten:
    """What a transaction has posted and the store does not have yet. number, hash: of the last entry; closed: up to
    when the books are closed; rows: of entries, in their order; charges: rows of charges in force; touched: accounts as
    they stand after it. What the store has, and is going to be asked for: stored: rows of entries; accounts: by name
    and currency the amounts of all accounts of these names that it knows."""

    number: int
    hash: str
    closed: int | None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    entries: dict[int, Entry] = field(default_factory=dict)
    charges: list[tuple[str, str, int, int, str, str]] = field(default_factory=list)
    touched: dict[tuple[str, str], Account] = field(default_factory=dict)
    stored: dict[int, Sequence[Any]] = field(default_factory=dict)
    accounts: dict[str, dict[str, Sequence[Any]]] = field(default_factory=dict)

    def written(self) -> None:
        """Note that the store has all of it."""
        self.rows.clear()
        self.entries.clear()
        self.charges.clear()
        for (name, currency), account in self.touched.items():
            if name in self.accounts:
                self.accounts[name][currency] = account.balance, account.held, account.credit
        self.touched.clear()


class Postings:
    """A store of entries. clock: epoch seconds, of the entries to come."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._rates: dict[str, RateSet] = {}
        self._unwritten: Unwritten | None = None
        self._held: set[str] = set()    # ids of jobs and arrays that something is held for
        self._over: dict[tuple[str, str], set[int]] = {}    # by array (Machine, id): elements that have ended

    def now(self) -> int:
        """Epoch seconds."""
        return int(self._clock())

    def _given_back(self, number: int) -> Decimal:
        """Refunded or reversed of a charge."""
        if self._unwritten is not None:
            self._write()
        rows = self.store.execute("SELECT amount FROM entries WHERE refers = ? AND kind IN ('refund', 'reversal')",
                                  (number,))
        with localcontext(EXACT):
            return sum((Decimal(amount) for amount, in rows), Decimal(0))

    def _release(self, number: int) -> Entry:
        held = self.entry(number)
        if held.kind != "hold":
            raise LedgerError(f"entry {number} is no hold but a {held.kind}")
        if self.store.execute("DELETE FROM holds WHERE entry = ?", (number,)).rowcount != 1:
            raise LedgerError(f"entry {number} holds nothing any more")
        return self._post(Entry(0, 0, "release", held.account, held.currency, held.amount, held.machine, held.job,
                                refers=number, user_name=held.user_name))

    def _owner(self, statement: Said, owner: str) -> str:
        names = statement.text(owner)
        if not names:
            raise LedgerError(f"it has no {owner}, which names the account (--account-by)")
        return names

    def _guaranteed(self, statement: Said, rates: RateSet) -> RateSet:
        """The rates that the job's Quote promises, if it is one of ours and holds; else those given."""
        promise = statement.text("Quote")
        number = re.fullmatch(r"quote-([0-9]{1,18})", promise) if promise else None
        row = number and self.store.one(f"SELECT {COLUMNS} FROM entries WHERE number = ? AND kind = 'quote'",
                                        (int(number[1]),))
        if not row:
            return rates
        entry = entry_of(row)
        if entry.account not in {statement.text(owner) for owner in OWNERS}:
            return rates
        start, expires = statement.job.value("StartTime"), entry.document.get("expires")
        at = seconds(start) if isinstance(start, int) else self.now()
        return rates if expires is not None and at >= expires else self.rates(str(entry.document["rates"]))

    def _end_hold(self, key: Key, statement: Said) -> None:
        """End the hold of a job that has ended, under its native id or the Id that it had before. What is held for the
        array that it is an element of is lessened by ``_lessen_holds``."""
        if not self._held:
            return
        if not self._held.isdisjoint((key[1], statement.text("Id"))):
            for number, in self.store.execute("SELECT entry FROM holds WHERE machine = ? AND job IN (?, ?)",
                                              (*key[:2], statement.text("Id"))).fetchall():
                self._release(number)
        of_lrm = {p.get("name"): p.text for p in statement.job.all("Extension") if p.get("type") == "LRM"}
        array, index = of_lrm.get("ArrayId"), of_lrm.get("ArrayIndex", "")
        if array and index.isascii() and index.isdecimal() and len(index) < _LONG_INDEX:
            self._over.setdefault((key[0], array), set()).add(int(index))

    def _lessen_holds(self) -> None:
        """Hold only for the elements of arrays that have not ended: each of them is asked for as much as the others."""
        over, self._over = self._over, {}
        for (machine, array), indices in over.items():
            for number, expires in self.store.execute("SELECT entry, expires FROM holds WHERE machine = ? AND job = ?",
                                                      (machine, array)).fetchall():
                held = self.entry(number)
                waiting = set(Idset.parse(str(held.document.get("elements", ""))))
                if indices.isdisjoint(waiting):
                    continue
                self._release(number)
                if remaining := waiting - indices:
                    with localcontext(EXACT):
                        amount = held.amount / len(waiting) * len(remaining)
                    self._hold(Entry(0, 0, "hold", held.account, held.currency, bounded(amount), machine, array,
                                     user_name=held.user_name,
                                     document={**held.document, "elements": str(Idset.of(remaining))}), expires)

    def _hold(self, hold: Entry, expires: int) -> Entry:
        """Post a hold. expires: epoch seconds, or NEVER."""
        entry = self._post(hold)
        self.store.execute("INSERT INTO holds VALUES (?, ?, ?, ?)", (entry.number, entry.machine, entry.job, expires))
        return entry

    def _keep(self, rates: RateSet) -> None:
        if self.store.one("SELECT 1 FROM rates WHERE digest = ?", (rates.digest,)) is None:
            self.store.execute("INSERT INTO rates VALUES (?, ?, ?, ?)",
                               (rates.digest, rates.name, rates.version, rates.text))
        self._rates[rates.digest] = rates

    def rates(self, digest: str) -> RateSet:
        """Rates that were used once. Raises LedgerError."""
        if digest not in self._rates:
            row = self.store.one("SELECT text FROM rates WHERE digest = ?", (digest,))
            if row is None:
                raise LedgerError(f"no rates sha256:{escape(digest, 64)} were kept")
            self._rates[digest] = read_rates(row[0], f"sha256:{digest[:16]}")
        return self._rates[digest]

    def account(self, account: str, currency: str = "") -> Account:
        """An account as it stands; one that nobody has used has nothing."""
        batch = self._unwritten
        if batch is not None and (touched := batch.touched.get((account, currency))) is not None:
            return Account(account, currency, touched.balance, touched.held, touched.credit)
        if batch is not None and (by_currency := batch.accounts.get(account)) is not None:
            row = by_currency.get(currency)
        else:
            row = self.store.one("SELECT balance, held, credit FROM accounts WHERE account = ? AND currency = ?",
                                 (account, currency))
        return Account(account, currency) if row is None else account_of(account, currency, row)

    def entry(self, number: int) -> Entry:
        """Raises LedgerError for a number that is none."""
        if self._unwritten is not None:
            if (posted := self._unwritten.entries.get(number)) is not None:
                return posted
            if (stored := self._unwritten.stored.get(number)) is not None:
                return entry_of(stored)
        row = None if not 0 < number < NUMBERS else \
            self.store.one(f"SELECT {COLUMNS} FROM entries WHERE number = ?", (number,))
        if row is None:
            raise LedgerError(f"there is no entry {number}")
        return entry_of(row)

    def last(self) -> int:
        """The number of the last entry, 0 where there is none."""
        return int(self.store.one("SELECT number FROM head")[0])

    def source(self, name: str) -> str | None:
        """What was kept of a source of records, so that reading goes on where it ended."""
        row = self.store.one("SELECT state FROM sources WHERE name = ?", (name,))
        return None if row is None else str(row[0])

    def closed(self) -> int | None:
        """Up to when the books are closed, in epoch seconds; None: they never were."""
        until = self.source(CLOSED)
        if until is not None and not until.isdecimal():
            raise LedgerError("what is kept of closed books is no time")
        return None if until is None else int(until)

    def close(self, until: int, *, reason: str = "") -> Entry:
        """Close the books up to a moment in epoch seconds: what is posted from now on about a run that ended before it
        belongs to that moment. Raises LedgerError."""
        with self.store.transaction():
            closed = self.closed()
            if closed is not None and until <= closed:
                raise LedgerError(f"the books are closed up to {shown(closed)} already")
            if until > self.now():
                raise LedgerError("the books are closed when the time is over")
            self._note(CLOSED, str(until))
            return self._post(Entry(0, 0, "closing", "", "", Decimal(0),
                                    document={"until": until} | ({"reason": reason} if reason else {})))

    def keep_source(self, name: str, state: str) -> None:
        """Note what is known of a source, when all that was read of it is charged."""
        with self.store.transaction():
            self._note(name, state)

    def _note(self, name: str, state: str) -> None:
        self.store.execute("DELETE FROM sources WHERE name = ?", (name,))
        self.store.execute("INSERT INTO sources VALUES (?, ?)", (name, state))

    # -- posting
    @contextmanager
    def _together(self) -> Iterator[None]:
        """A transaction whose entries, and the accounts and charges in force that follow from them, are written at its
        end, each kind by one statement; within it ``entry``, ``account`` and ``_post`` know of them, statements of
        one's own do after ``_write``."""
        if self._unwritten is not None:
            yield
            return
        with self.store.transaction():
            number, last_hash = self.store.one("SELECT number, hash FROM head")
            self._unwritten = Unwritten(number, last_hash, self.closed())
            try:
                yield
                self._write()
            finally:
                self._unwritten = None

    @property
    def _batch(self) -> Unwritten:
        """What was posted within ``_together``."""
        assert self._unwritten is not None
        return self._unwritten

    def _write(self) -> None:
        """Put into the store what it does not have yet."""
        batch, store = self._batch, self.store
        if not batch.rows:
            return
        store.many(f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * len(NAMES))})", batch.rows)
        store.execute("UPDATE head SET number = ?, hash = ?", (batch.number, batch.hash))
        accounts = [(a.account, a.currency, str(a.balance), str(a.held), str(a.credit))
                    for a in batch.touched.values()]
        store.many("INSERT INTO accounts (account, currency, balance, held, credit) VALUES (?, ?, ?, ?, ?) "
                   "ON CONFLICT (account, currency) DO UPDATE SET balance = excluded.balance, held = excluded.held, "
                   "credit = excluded.credit", accounts)
        store.many("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?)", batch.charges)
        batch.written()

    def _post(self, entry: Entry) -> Entry:
        if self._unwritten is None:
            with self._together():
                return self._post(entry)
        batch, now, document = self._unwritten, self.now(), entry.document
        if batch.closed is not None and entry.kind in ABOUT_RUNS and \
                entry._replace(time=now).moment("end") < batch.closed:
            document = {**document, "booked": batch.closed}
        posted, row = sealed(entry, batch.number + 1, now, document, batch.hash)
        batch.number, batch.hash = posted.number, posted.hash
        batch.rows.append(row)
        batch.entries[posted.number] = posted
        if posted.account:          # else it is about all of them
            name = posted.account, posted.currency
            account = batch.touched.get(name)
            if account is None:
                account = batch.touched[name] = self.account(*name)
            account.take(posted)
        return posted


def whole_of(job: Job, defaults: JobDefaults | None) -> Job:
    """The job with the defaults beside it folded in."""
    return job if defaults is None else effective(job, defaults).fold()
