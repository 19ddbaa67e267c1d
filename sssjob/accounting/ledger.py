"""The life of money as documents: deposits, quotes, holds, charges, refunds, adjustments in a journal that only grows.

An entry is a document with a number and a hash over itself and the one before it, so that replaying the entries gives
the same balances (``Ledger.verify``). Of an account (a Project, in one currency)

    balance   = deposits - charges + reversals + refunds + adjustments
    available = balance - holds + credit limit

A job is charged once: its natural key is Machine, native id (else Id) and StartTime. The same record again changes
nothing; another one for the same key reverses the old charge and makes a new one. Amounts are exact decimals. Source:
SSS job object 3.1.0, sections 5.1 (Charge, Quote) and 7; Gold's objects Quotation, Reservation, Charge, Refund.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, localcontext
from typing import Final, Self

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.entries import (
    COLUMNS,
    EXACT,
    KINDS,
    NAMES,
    NUMBERS,
    Account,
    Entry,
    Kind,
    LedgerError,
    Posted,
    Statement,
    account_of,
    bounded,
    changed,
    content_of,
    document_of,
    entry_of,
    job_of,
    key_of,
    named,
    positive,
    row_of,
    stated,
)
from sssjob.accounting.facts import Reason
from sssjob.accounting.pricing import Charge, Uncharged, charge, quote
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.store import Store
from sssjob.accounting.times import seconds
from sssjob.document.element import new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobDefaults
from sssjob.findings import escape

__all__ = ["KINDS", "Account", "Entry", "Ledger", "LedgerError", "Posted", "Statement", "key_of"]

#: Properties of a job that an account can be named by.
OWNERS: Final = ("Project", "User", "Group", "Queue", "Machine")


class Ledger:
    """A ledger in a store. clock: epoch seconds, of the entries to come."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._rates: dict[str, RateSet] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    # -- money in and out
    def deposit(self, account: str, amount: Decimal, currency: str = "", *, reason: str = "",
                token: str | None = None) -> Entry:
        """Put money into an account. token: posted once, however often it is asked. Raises LedgerError."""
        return self._manual("deposit", account, currency, positive(amount), reason, token)

    def credit(self, account: str, limit: Decimal, currency: str = "", *, reason: str = "",
               token: str | None = None) -> Entry:
        """Set how far below 0 an account may go."""
        if limit < 0:
            raise LedgerError("a credit limit is not below 0")
        return self._manual("credit", account, currency, bounded(limit), reason, token)

    def adjust(self, account: str, amount: Decimal, currency: str = "", *, reason: str,
               token: str | None = None) -> Entry:
        """Correct a balance, up or down; the reason has to be said."""
        if not reason.strip():
            raise LedgerError("an adjustment needs a reason")
        if not amount:
            raise LedgerError("an adjustment by 0 adjusts nothing")
        return self._manual("adjustment", account, currency, bounded(amount), reason, token)

    def refund(self, number: int, amount: Decimal | None = None, *, reason: str = "",
               token: str | None = None) -> Entry:
        """Give a charge back, or part of it. Raises LedgerError when more than the charge would be given back."""
        with self.store.transaction():
            old = self._charge_entry(number)
            again = self._again(token, "refund", old.account, old.currency, amount)
            if again is not None:
                return again
            left = old.amount - self._given_back(number)
            wanted = left if amount is None else positive(amount)
            if not 0 < wanted <= left:
                raise LedgerError(f"entry {number} has {plain(left)} left to give back" +
                                  ("" if amount is None else f", not {plain(wanted)}"))
            return self._post(Entry(0, 0, "refund", old.account, old.currency, wanted, old.machine, old.job, old.start,
                                    number, token, {"reason": reason} if reason else {}))

    def _charge_entry(self, number: int) -> Entry:
        entry = self.entry(number)
        if entry.kind != "charge":
            raise LedgerError(f"entry {number} is no charge but a {entry.kind}")
        return entry

    def _given_back(self, number: int) -> Decimal:
        """Refunded or reversed of a charge."""
        rows = self.store.execute("SELECT amount FROM entries WHERE refers = ? AND kind IN ('refund', 'reversal')",
                                  (number,))
        with localcontext(EXACT):
            return sum((Decimal(amount) for amount, in rows), Decimal(0))

    def _manual(self, kind: Kind, account: str, currency: str, amount: Decimal, reason: str,
                token: str | None) -> Entry:
        named(account, "account")
        document = {"reason": reason} if reason else {}
        with self.store.transaction():
            return self._again(token, kind, account, currency, amount) or self._post(
                Entry(0, 0, kind, account, currency, amount, token=token, document=document))

    def _again(self, token: str | None, kind: str, account: str, currency: str,
               amount: Decimal | None) -> Entry | None:
        """The entry that this request has made already."""
        if token is None:
            return None
        named(token, "token")
        row = self.store.one(f"SELECT {COLUMNS} FROM entries WHERE token = ?", (token,))
        if row is None:
            return None
        earlier = entry_of(row)
        if (earlier.kind, earlier.account, earlier.currency) != (kind, account, currency) or (
                amount is not None and earlier.amount != amount):
            raise LedgerError(f"token {escape(token, 60)} has made entry {earlier.number}, which is something else")
        return earlier

    # -- jobs
    def quote(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
              expires: int | None = None, start: int | None = None) -> tuple[Entry, Charge]:
        """Promise today's rates to a job; the entry's ``quote-N`` is what its Quote is to say. Raises LedgerError."""
        quoted = quote(job, rates, defaults, start=start)
        if isinstance(quoted, Uncharged):
            raise LedgerError(f"no quote: {quoted.reason} ({quoted.detail})")
        account = self._owner(_whole(job, defaults), owner)
        with self.store.transaction():
            self._keep(rates)
            entry = self._post(Entry(0, 0, "quote", account, quoted.currency, bounded(quoted.amount), document={
                "rates": rates.digest, "expires": expires, "charge": quoted.record(),
                "job": document_of(_whole(job, defaults))}))
        return entry, quoted

    def hold(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
             start: int | None = None, force: bool = False) -> tuple[Entry, Charge]:
        """Set aside what a job will cost if it gets what it requests, until it is charged.

        Raises LedgerError when the account does not have it (force: hold it all the same) or when there is a hold.
        """
        whole = _whole(job, defaults)
        machine, ident, _ = key_of(whole)
        quoted = quote(job, self._guaranteed(whole, rates), defaults, start=start)
        if isinstance(quoted, Uncharged):
            raise LedgerError(f"no hold: {quoted.reason} ({quoted.detail})")
        account = self._owner(whole, owner)
        with self.store.transaction():
            old = self.store.one("SELECT entry FROM holds WHERE machine = ? AND job = ?", (machine, ident))
            if old is not None:
                raise LedgerError(f"entry {old[0]} holds for job {escape(ident, 60)} already")
            there = self.account(account, quoted.currency)
            if quoted.amount > there.available and not force:
                raise LedgerError(f"account {escape(account, 60)} has {plain(there.available)} left, "
                                  f"{plain(quoted.amount)} are asked for")
            entry = self._post(Entry(0, 0, "hold", account, quoted.currency, bounded(quoted.amount), machine, ident,
                                     document={"charge": quoted.record()}))
            self.store.execute("INSERT INTO holds VALUES (?, ?, ?)", (entry.number, machine, ident))
        return entry, quoted

    def release(self, number: int) -> Entry:
        """End a hold. Raises LedgerError."""
        with self.store.transaction():
            return self._release(number)

    def _release(self, number: int) -> Entry:
        held = self.entry(number)
        if held.kind != "hold":
            raise LedgerError(f"entry {number} is no hold but a {held.kind}")
        if self.store.execute("DELETE FROM holds WHERE entry = ?", (number,)).rowcount != 1:
            raise LedgerError(f"entry {number} holds nothing any more")
        return self._post(Entry(0, 0, "release", held.account, held.currency, held.amount, held.machine, held.job,
                                refers=number))

    def charge(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
               recharge: bool = False) -> Posted:
        """Charge a job in a transaction of its own."""
        return self.charges([(job, defaults)], rates, owner=owner, recharge=recharge)[0]

    def charges(self, jobs: Iterable[tuple[Job, JobDefaults | None]], rates: RateSet, *, owner: str = "Project",
                recharge: bool = False) -> list[Posted]:
        """Charge jobs in one transaction. recharge: those charged by other rates are charged anew, else they stay."""
        with self.store.transaction():
            self._keep(rates)
            return [self._charge(job, defaults, rates, owner, recharge) for job, defaults in jobs]

    def _charge(self, job: Job, defaults: JobDefaults | None, rates: RateSet, owner: str, recharge: bool) -> Posted:
        whole = _whole(job, defaults)
        try:
            key = key_of(whole)
            account = self._owner(whole, owner)
        except LedgerError as error:
            return Posted("not", reason="no-key", detail=str(error))
        used = self._guaranteed(whole, rates)
        text = document_of(whole)
        content = content_of(account, text)
        old = self.store.one("SELECT entry, content, rates FROM charges WHERE machine = ? AND job = ? AND start = ?",
                             key)
        if old is not None and old[1] == content:
            if old[2] == used.digest:
                return Posted("unchanged", self.entry(old[0]))
            if not recharge:
                return Posted("other-rates", self.entry(old[0]))
        priced = charge(job, used, defaults)
        if rates.attempts == "last" and self.store.one(
                "SELECT 1 FROM charges WHERE machine = ? AND job = ? AND start > ?", key):
            priced = Uncharged(Reason.EARLIER_ATTEMPT, "a later attempt of the job is charged")
        if isinstance(priced, Uncharged):
            if old is not None:
                self._reverse(old[0], key, f"not chargeable any more: {priced.reason}")
            elif priced.reason == "not-started" and stated(whole, "State").casefold() == "completed":
                self._end_hold(key, stated(whole, "Id"))
            return Posted("not", made=priced, reason=str(priced.reason), detail=priced.detail)
        if old is not None:
            self._reverse(old[0], key, f"superseded by another {'record' if old[1] != content else 'set of rates'}")
        if rates.attempts == "last":
            self._reverse_earlier(key)
        self._end_hold(key, stated(whole, "Id"))
        entry = self._post(Entry(0, 0, "charge", account, priced.currency, bounded(priced.amount), *key, document={
            "rates": used.digest, "charge": priced.record(), "job": text}))
        self.store.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?)", (*key, entry.number, content, used.digest))
        return Posted("charged" if old is None else "superseded", entry, priced,
                      account=self.account(account, priced.currency))

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

    def _end_hold(self, key: tuple[str, str, int], ident: str) -> None:
        """End the hold of a job. ident: its Id, under which it was held before it had a native id."""
        for number, in self.store.execute("SELECT entry FROM holds WHERE machine = ? AND job IN (?, ?)",
                                          (*key[:2], ident)).fetchall():
            self._release(number)

    def _reverse(self, number: int, key: tuple[str, str, int], why: str) -> None:
        """Take a charge back, less what was refunded of it."""
        old = self.entry(number)
        refunded = self._given_back(number)
        document = {"reason": why} | ({"refunded": plain(refunded)} if refunded else {})
        self._post(Entry(0, 0, "reversal", old.account, old.currency, old.amount - refunded, *key, number,
                         document=document))
        self.store.execute("DELETE FROM charges WHERE machine = ? AND job = ? AND start = ?", key)

    def _reverse_earlier(self, key: tuple[str, str, int]) -> None:
        """Only the last attempt of a job is charged."""
        rows = self.store.execute("SELECT entry, start FROM charges WHERE machine = ? AND job = ? AND start < ?", key)
        for number, start in rows.fetchall():
            self._reverse(number, (*key[:2], start), "an earlier attempt; the rates charge the last one")

    # -- rates
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

    # -- what there is
    def account(self, account: str, currency: str = "") -> Account:
        """An account as it stands; one that nobody has used has nothing."""
        row = self.store.one("SELECT balance, held, credit FROM accounts WHERE account = ? AND currency = ?",
                             (account, currency))
        return Account(account, currency) if row is None else account_of(account, currency, row)

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        rows = self.store.execute("SELECT account, currency, balance, held, credit FROM accounts "
                                  "ORDER BY account, currency")
        return [account_of(name, currency, amounts) for name, currency, *amounts in rows]

    def entry(self, number: int) -> Entry:
        """Raises LedgerError for a number that is none."""
        row = None if not 0 < number < NUMBERS else \
            self.store.one(f"SELECT {COLUMNS} FROM entries WHERE number = ?", (number,))
        if row is None:
            raise LedgerError(f"there is no entry {number}")
        return entry_of(row)

    def entries(self, account: str | None = None, currency: str | None = None, *, job: str | None = None,
                since: int | None = None, until: int | None = None) -> Iterator[Entry]:
        """Entries in their order; job: about a job of that id; since, until: epoch seconds, until not included."""
        given = [("account = ?", account), ("currency = ?", currency), ("job = ?", job), ("time >= ?", since),
                 ("time < ?", until)]
        where = " AND ".join(sql for sql, value in given if value is not None) or "1 = 1"
        values = [value for _, value in given if value is not None]
        return map(entry_of, self.store.execute(f"SELECT {COLUMNS} FROM entries WHERE {where} ORDER BY number", values))

    def statement(self, account: str, currency: str = "", *, since: int | None = None,
                  until: int | None = None) -> Statement:
        """An account over a time. since, until: epoch seconds, until not included."""
        with localcontext(EXACT):
            before = (e.change for e in self.entries(account, currency, until=since)) if since is not None else ()
            opening = sum(before, Decimal(0))
            entries = tuple(e for e in self.entries(account, currency, since=since, until=until) if KINDS[e.kind][0])
            return Statement(account, currency, since, until, opening, entries,
                             opening + sum((e.change for e in entries), Decimal(0)))

    def charged(self, *, since: int | None = None, until: int | None = None) -> Iterator[Job]:
        """The jobs of the charges in force, in the order in which they were charged, each with its Charge.

        since, until: epoch seconds of the charging, until not included.
        """
        given = [("time >= ?", since), ("time < ?", until)]
        where = "".join(f" AND {sql}" for sql, value in given if value is not None)
        rows = self.store.execute(
            f"SELECT {', '.join(f'entries.{name}' for name in NAMES)} FROM entries JOIN charges ON entry = number "
            f"WHERE 1 = 1{where} ORDER BY number", [value for _, value in given if value is not None])
        for row in rows:
            entry = entry_of(row)
            job = job_of(entry.document["job"])
            units = {"units": entry.currency} if entry.currency else {}
            job.set_as_is("Charge", new_property("Charge", entry.amount, units))
            yield job

    def source(self, name: str) -> str | None:
        """What was kept of a source of records, so that reading goes on where it ended."""
        row = self.store.one("SELECT state FROM sources WHERE name = ?", (name,))
        return None if row is None else str(row[0])

    def keep_source(self, name: str, state: str) -> None:
        """Note what is known of a source, when all that was read of it is charged."""
        with self.store.transaction():
            self.store.execute("DELETE FROM sources WHERE name = ?", (name,))
            self.store.execute("INSERT INTO sources VALUES (?, ?)", (name, state))

    # -- posting
    def _post(self, entry: Entry) -> Entry:
        number, previous = self.store.one("SELECT number, hash FROM head")
        posted = changed(entry, number=number + 1, time=int(self._clock()))
        posted = changed(posted, hash=posted.digest(previous))
        self.store.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * 13)})", row_of(posted))
        self.store.execute("UPDATE head SET number = ?, hash = ?", (posted.number, posted.hash))
        account = self.account(posted.account, posted.currency)
        account.take(posted)
        values = (str(account.balance), str(account.held), str(account.credit), posted.account, posted.currency)
        sql = "UPDATE accounts SET balance = ?, held = ?, credit = ? WHERE account = ? AND currency = ?"
        if self.store.execute(sql, values).rowcount == 0:
            self.store.execute("INSERT INTO accounts (balance, held, credit, account, currency) VALUES (?, ?, ?, ?, ?)",
                               values)
        return posted

    def verify(self, *, recharge: bool = True) -> Iterator[str]:
        """Replay all entries: what is wrong with hashes, balances, charges in force, and printed arithmetic.

        recharge: every charge is made again from the stored job and rates too.
        """
        from sssjob.accounting.replay import replay

        return replay(self, recharge=recharge)


def _whole(job: Job, defaults: JobDefaults | None) -> Job:
    """The job with the defaults beside it folded in."""
    return job if defaults is None else effective(job, defaults).fold()
