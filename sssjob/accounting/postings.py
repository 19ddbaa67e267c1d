"""What every entry of a ledger needs: posting it, the accounts that follow, rates and sources that are kept."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Final

from sssjob.accounting.entries import (
    ABOUT_RUNS,
    COLUMNS,
    EXACT,
    NAMES,
    NUMBERS,
    Account,
    Entry,
    LedgerError,
    account_of,
    bounded,
    changed,
    entry_of,
    row_of,
    stated,
)
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.store import Store
from sssjob.accounting.times import seconds
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


class Postings:
    """A store of entries. clock: epoch seconds, of the entries to come."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._rates: dict[str, RateSet] = {}
        self._over: dict[tuple[str, str], set[int]] = {}    # by array (Machine, id): elements that have ended

    def _given_back(self, number: int) -> Decimal:
        """Refunded or reversed of a charge."""
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

    def _owner(self, job: Job, owner: str) -> str:
        names = stated(job, owner)
        if not names:
            raise LedgerError(f"it has no {owner}, which names the account (--account-by)")
        return names

    def _guaranteed(self, job: Job, rates: RateSet) -> RateSet:
        """The rates that the job's Quote promises, if it is one of ours and holds; else those given."""
        number = re.fullmatch(r"quote-([0-9]{1,18})", stated(job, "Quote"))
        row = number and self.store.one(f"SELECT {COLUMNS} FROM entries WHERE number = ? AND kind = 'quote'",
                                        (int(number[1]),))
        if not row:
            return rates
        entry = entry_of(row)
        if entry.account not in {stated(job, owner) for owner in OWNERS}:
            return rates
        start, expires = job.value("StartTime"), entry.document.get("expires")
        at = seconds(start) if isinstance(start, int) else int(self._clock())
        return rates if expires is not None and at >= expires else self.rates(str(entry.document["rates"]))

    def _end_hold(self, key: tuple[str, str, int], job: Job) -> None:
        """End the hold of a job that has ended, under its native id or the Id that it had before. What is held for the
        array that it is an element of is lessened by ``_lessen_holds``."""
        for number, in self.store.execute("SELECT entry FROM holds WHERE machine = ? AND job IN (?, ?)",
                                          (*key[:2], stated(job, "Id"))).fetchall():
            self._release(number)
        of_lrm = {p.get("name"): p.text for p in job.all("Extension") if p.get("type") == "LRM"}
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
                if left := waiting - indices:
                    with localcontext(EXACT):
                        amount = held.amount / len(waiting) * len(left)
                    self._hold(Entry(0, 0, "hold", held.account, held.currency, bounded(amount), machine, array,
                                     user_name=held.user_name,
                                     document={**held.document, "elements": str(Idset.of(left))}), expires)

    def _hold(self, hold: Entry, expires: int) -> Entry:
        """Post a hold. expires: epoch seconds, or NEVER."""
        entry = self._post(hold)
        self.store.execute("INSERT INTO holds VALUES (?, ?, ?, ?)", (entry.number, entry.machine, entry.job, expires))
        return entry

    def _keep(self, rates: RateSet) -> None:
        if rates.digest not in self._rates:
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
        row = self.store.one("SELECT balance, held, credit FROM accounts WHERE account = ? AND currency = ?",
                             (account, currency))
        return Account(account, currency) if row is None else account_of(account, currency, row)

    def entry(self, number: int) -> Entry:
        """Raises LedgerError for a number that is none."""
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
                raise LedgerError(f"the books are closed up to {closed} already")
            if until > int(self._clock()):
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

    def _post(self, entry: Entry) -> Entry:
        number, previous = self.store.one("SELECT number, hash FROM head")
        now = int(self._clock())
        closed = self.closed() if entry.kind in ABOUT_RUNS else None
        if closed is not None and changed(entry, time=now).moment("end") < closed:
            entry = changed(entry, document={**entry.document, "booked": closed})
        posted = changed(entry, number=number + 1, time=now)
        posted = changed(posted, hash=posted.digest(previous))
        self.store.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * len(NAMES))})", row_of(posted))
        self.store.execute("UPDATE head SET number = ?, hash = ?", (posted.number, posted.hash))
        if not posted.account:          # it is about all of them
            return posted
        account = self.account(posted.account, posted.currency)
        account.take(posted)
        values = (str(account.balance), str(account.held), str(account.credit), posted.account, posted.currency)
        sql = "UPDATE accounts SET balance = ?, held = ?, credit = ? WHERE account = ? AND currency = ?"
        if self.store.execute(sql, values).rowcount == 0:
            self.store.execute("INSERT INTO accounts (balance, held, credit, account, currency) VALUES (?, ?, ?, ?, ?)",
                               values)
        return posted


def whole_of(job: Job, defaults: JobDefaults | None) -> Job:
    """The job with the defaults beside it folded in."""
    return job if defaults is None else effective(job, defaults).fold()
