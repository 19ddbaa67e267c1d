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

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from typing import Any, Final, Literal, Self

from sssjob.accounting.arithmetic import plain, recompute
from sssjob.accounting.pricing import Charge, Uncharged, charge, quote
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.store import Store
from sssjob.accounting.times import seconds
from sssjob.element import Property, new_property
from sssjob.errors import SSSJobError
from sssjob.findings import Policy, escape
from sssjob.inherit import effective
from sssjob.model import Job, JobDefaults
from sssjob.reader import read_document
from sssjob.writer import write_document

__all__ = ["KINDS", "Account", "Entry", "Ledger", "LedgerError", "Posted", "Statement", "key_of"]

Kind = Literal["deposit", "credit", "quote", "hold", "release", "charge", "reversal", "refund", "adjustment"]
#: Kind of an entry -> what its amount does to (balance, holds).
KINDS: Final[dict[str, tuple[int, int]]] = {
    "deposit": (1, 0), "credit": (0, 0), "quote": (0, 0), "hold": (0, 1), "release": (0, -1), "charge": (-1, 0),
    "reversal": (1, 0), "refund": (1, 0), "adjustment": (1, 0),
}
#: Properties of a job that an account can be named by.
OWNERS: Final = ("Project", "User", "Group", "Queue", "Machine")
#: Never started, or the record does not say when: no time is.
_NEVER: Final = -1
_EXACT: Final = Context(prec=200)
_MOST: Final = Decimal(10) ** 60
_NUMBERS: Final = 2 ** 63
_TOKEN: Final = re.compile(r"\S.{0,199}")


class LedgerError(SSSJobError):
    """What was asked cannot be posted; nothing was."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. amount: 0 or more, of an adjustment either sign; machine, job, start: of the
    job that it is about ("" and -1: none); refers: number of the entry that it answers, 0: none; token: names the
    request, so that it is done once."""

    number: int
    time: int
    kind: str
    account: str
    currency: str
    amount: Decimal
    machine: str = ""
    job: str = ""
    start: int = _NEVER
    refers: int = 0
    token: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""

    @property
    def change(self) -> Decimal:
        """What it does to the balance."""
        return self.amount * KINDS[self.kind][0]

    def digest(self, previous: str) -> str:
        """SHA-256 of the entry behind the one with that digest."""
        text = json.dumps([previous, self.number, self.time, self.kind, self.account, self.currency, str(self.amount),
                           self.machine, self.job, self.start, self.refers, self.token, self.document],
                          sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        made = {"number": self.number, "time": self.time, "kind": self.kind, "account": self.account,
                "currency": self.currency, "amount": plain(self.amount), "machine": self.machine or None,
                "job": self.job or None, "start": None if self.start == _NEVER else self.start,
                "refers": self.refers or None, "token": self.token, "document": dict(self.document), "hash": self.hash}
        return {k: v for k, v in made.items() if v is not None}


@dataclass(slots=True)
class Account:
    """An account as it stands."""

    account: str
    currency: str
    balance: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    credit: Decimal = Decimal(0)

    @property
    def available(self) -> Decimal:
        """What can still be held."""
        return self.balance - self.held + self.credit

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"account": self.account, "currency": self.currency, "balance": plain(self.balance),
                "held": plain(self.held), "credit": plain(self.credit), "available": plain(self.available)}

    def take(self, entry: Entry) -> None:
        """Take over what an entry does."""
        with localcontext(_EXACT):
            of_balance, of_held = KINDS[entry.kind]
            self.balance += entry.amount * of_balance
            self.held += entry.amount * of_held
            if entry.kind == "credit":
                self.credit = entry.amount


@dataclass(frozen=True, slots=True)
class Statement:
    """An account over a time: entries that change the balance, between an opening and a closing one."""

    account: str
    currency: str
    since: int | None
    until: int | None
    opening: Decimal
    entries: tuple[Entry, ...]
    closing: Decimal

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"account": self.account, "currency": self.currency, "since": self.since, "until": self.until,
                "opening": plain(self.opening), "entries": [e.record() for e in self.entries],
                "closing": plain(self.closing)}


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a job. outcome: charged, superseded (another charge before it was reversed), unchanged (charged
    already), other-rates (charged by other rates, and left so) or not (see reason)."""

    outcome: Literal["charged", "superseded", "unchanged", "other-rates", "not"]
    entry: Entry | None = None
    made: Charge | Uncharged | None = None
    reason: str = ""
    detail: str = ""
    account: Account | None = None


def key_of(job: Job) -> tuple[str, str, int]:
    """(Machine, native id or Id, StartTime) of a job: what it is charged under (decisions 18, 61).

    Raises LedgerError where the Machine or both ids are missing, or the StartTime is no time.
    """
    native = (p.text for p in job.all("Extension") if p.get("type") == "LRM" and p.get("name") == "NativeId")
    ident = next(native, None) or _text(job, "Id")
    machine = _text(job, "Machine")
    if not ident:
        raise LedgerError("it has no Id")
    if not machine:
        raise LedgerError("it names no Machine, which is part of what it is charged under")
    said = job.value("StartTime")
    start = seconds(said) if isinstance(said, int) else _NEVER
    if start >= _NUMBERS:
        raise LedgerError("its StartTime is beyond all calendars")
    return machine, ident, start


def _text(job: Job, tag: str) -> str:
    """What was delivered, else what stands bare (decisions 4, 5)."""
    found = (scope.first(tag) for scope in (*job.containers("Delivered"), job))
    return next((p.text.strip() for p in found if isinstance(p, Property)), "")


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
        return self._manual("deposit", account, currency, _positive(amount), reason, token)

    def credit(self, account: str, limit: Decimal, currency: str = "", *, reason: str = "",
               token: str | None = None) -> Entry:
        """Set how far below 0 an account may go."""
        if limit < 0:
            raise LedgerError("a credit limit is not below 0")
        return self._manual("credit", account, currency, _bounded(limit), reason, token)

    def adjust(self, account: str, amount: Decimal, currency: str = "", *, reason: str,
               token: str | None = None) -> Entry:
        """Correct a balance, up or down; the reason has to be said."""
        if not reason.strip():
            raise LedgerError("an adjustment needs a reason")
        if not amount:
            raise LedgerError("an adjustment by 0 adjusts nothing")
        return self._manual("adjustment", account, currency, _bounded(amount), reason, token)

    def refund(self, number: int, amount: Decimal | None = None, *, reason: str = "",
               token: str | None = None) -> Entry:
        """Give a charge back, or part of it. Raises LedgerError when more than the charge would be given back."""
        with self.store.transaction():
            old = self._charge_entry(number)
            again = self._again(token, "refund", old.account, old.currency, amount)
            if again is not None:
                return again
            left = old.amount - self._given_back(number)
            wanted = left if amount is None else _positive(amount)
            if not 0 < wanted <= left:
                raise LedgerError(f"entry {number} has {plain(left)} left to give back" +
                                  ("" if amount is None else f", not {plain(wanted)}"))
            return self._post(Entry(0, 0, "refund", old.account, old.currency, wanted, old.machine, old.job, old.start,
                                    number, token, {"reason": reason} if reason else {}))

    def _charge_entry(self, number: int) -> Entry:
        found = self.entry(number)
        if found.kind != "charge":
            raise LedgerError(f"entry {number} is no charge but a {found.kind}")
        return found

    def _given_back(self, number: int) -> Decimal:
        """Refunded or reversed of a charge."""
        rows = self.store.execute("SELECT amount FROM entries WHERE refers = ? AND kind IN ('refund', 'reversal')",
                                  (number,))
        with localcontext(_EXACT):
            return sum((Decimal(amount) for amount, in rows), Decimal(0))

    def _manual(self, kind: Kind, account: str, currency: str, amount: Decimal, reason: str,
                token: str | None) -> Entry:
        _name(account, "account")
        document = {"reason": reason} if reason else {}
        with self.store.transaction():
            return self._again(token, kind, account, currency, amount) or self._post(
                Entry(0, 0, kind, account, currency, amount, token=token, document=document))

    def _again(self, token: str | None, kind: str, account: str, currency: str,
               amount: Decimal | None) -> Entry | None:
        """The entry that this request has made already."""
        if token is None:
            return None
        _name(token, "token")
        row = self.store.one(f"SELECT {_COLUMNS} FROM entries WHERE token = ?", (token,))
        if row is None:
            return None
        found = _entry(row)
        if (found.kind, found.account, found.currency) != (kind, account, currency) or (
                amount is not None and found.amount != amount):
            raise LedgerError(f"token {escape(token, 60)} has made entry {found.number}, which is something else")
        return found

    # -- jobs
    def quote(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
              expires: int | None = None, start: int | None = None) -> tuple[Entry, Charge]:
        """Promise today's rates to a job; the entry's ``quote-N`` is what its Quote is to say. Raises LedgerError."""
        made = quote(job, rates, defaults, start=start)
        if isinstance(made, Uncharged):
            raise LedgerError(f"no quote: {made.reason} ({made.detail})")
        account = self._owner(_whole(job, defaults), owner)
        with self.store.transaction():
            self._keep(rates)
            entry = self._post(Entry(0, 0, "quote", account, made.currency, _bounded(made.amount), document={
                "rates": rates.digest, "expires": expires, "charge": made.record(),
                "job": _document(_whole(job, defaults))}))
        return entry, made

    def hold(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
             start: int | None = None, force: bool = False) -> tuple[Entry, Charge]:
        """Set aside what a job will cost if it gets what it requests, until it is charged.

        Raises LedgerError when the account does not have it (force: hold it all the same) or when there is a hold.
        """
        whole = _whole(job, defaults)
        machine, ident, _ = key_of(whole)
        made = quote(job, self._guaranteed(whole, rates), defaults, start=start)
        if isinstance(made, Uncharged):
            raise LedgerError(f"no hold: {made.reason} ({made.detail})")
        account = self._owner(whole, owner)
        with self.store.transaction():
            old = self.store.one("SELECT entry FROM holds WHERE machine = ? AND job = ?", (machine, ident))
            if old is not None:
                raise LedgerError(f"entry {old[0]} holds for job {escape(ident, 60)} already")
            there = self.account(account, made.currency)
            if made.amount > there.available and not force:
                raise LedgerError(f"account {escape(account, 60)} has {plain(there.available)} left, "
                                  f"{plain(made.amount)} are asked for")
            entry = self._post(Entry(0, 0, "hold", account, made.currency, _bounded(made.amount), machine, ident,
                                     document={"charge": made.record()}))
            self.store.execute("INSERT INTO holds VALUES (?, ?, ?)", (entry.number, machine, ident))
        return entry, made

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
        text = _document(whole)
        content = _content(account, text)
        old = self.store.one("SELECT entry, content, rates FROM charges WHERE machine = ? AND job = ? AND start = ?",
                             key)
        if old is not None and old[1] == content:
            if old[2] == used.digest:
                return Posted("unchanged", self.entry(old[0]))
            if not recharge:
                return Posted("other-rates", self.entry(old[0]))
        made = charge(job, used, defaults)
        if isinstance(made, Uncharged):
            if old is not None:
                self._reverse(old[0], key, f"not chargeable any more: {made.reason}")
            elif made.reason == "not-started" and _text(whole, "State").casefold() == "completed":
                self._end_hold(key)
            return Posted("not", made=made, reason=str(made.reason), detail=made.detail)
        if old is not None:
            self._reverse(old[0], key, f"superseded by another {'record' if old[1] != content else 'set of rates'}")
        if rates.attempts == "last":
            self._reverse_earlier(key)
        self._end_hold(key)
        entry = self._post(Entry(0, 0, "charge", account, made.currency, _bounded(made.amount), *key, document={
            "rates": used.digest, "charge": made.record(), "job": text}))
        self.store.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?)", (*key, entry.number, content, used.digest))
        return Posted("charged" if old is None else "superseded", entry, made,
                      account=self.account(account, made.currency))

    def _owner(self, job: Job, owner: str) -> str:
        found = _text(job, owner)
        if not found:
            raise LedgerError(f"it has no {owner}, which names the account")
        return found

    def _guaranteed(self, job: Job, rates: RateSet) -> RateSet:
        """The rates that the job's Quote promises, if it is one of ours and holds; else those given."""
        found = re.fullmatch(r"quote-([0-9]{1,18})", _text(job, "Quote"))
        row = found and self.store.one(f"SELECT {_COLUMNS} FROM entries WHERE number = ? AND kind = 'quote'",
                                       (int(found[1]),))
        if not row:
            return rates
        entry = _entry(row)
        if entry.account not in {_text(job, owner) for owner in OWNERS}:
            return rates
        start, expires = job.value("StartTime"), entry.document.get("expires")
        at = seconds(start) if isinstance(start, int) else int(self._clock())
        return rates if expires is not None and at >= expires else self.rates(str(entry.document["rates"]))

    def _end_hold(self, key: tuple[str, str, int]) -> None:
        for number, in self.store.execute("SELECT entry FROM holds WHERE machine = ? AND job = ?", key[:2]).fetchall():
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
        return Account(account, currency) if row is None else _account(account, currency, row)

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        rows = self.store.execute("SELECT account, currency, balance, held, credit FROM accounts "
                                  "ORDER BY account, currency")
        return [_account(name, currency, amounts) for name, currency, *amounts in rows]

    def entry(self, number: int) -> Entry:
        """Raises LedgerError for a number that is none."""
        row = None if not 0 < number < _NUMBERS else \
            self.store.one(f"SELECT {_COLUMNS} FROM entries WHERE number = ?", (number,))
        if row is None:
            raise LedgerError(f"there is no entry {number}")
        return _entry(row)

    def entries(self, account: str | None = None, currency: str | None = None, *, job: str | None = None,
                since: int | None = None, until: int | None = None) -> Iterator[Entry]:
        """Entries in their order; job: about a job of that id; since, until: epoch seconds, until not included."""
        given = [("account = ?", account), ("currency = ?", currency), ("job = ?", job), ("time >= ?", since),
                 ("time < ?", until)]
        where = " AND ".join(sql for sql, value in given if value is not None) or "1 = 1"
        values = [value for _, value in given if value is not None]
        return map(_entry, self.store.execute(f"SELECT {_COLUMNS} FROM entries WHERE {where} ORDER BY number", values))

    def statement(self, account: str, currency: str = "", *, since: int | None = None,
                  until: int | None = None) -> Statement:
        """An account over a time. since, until: epoch seconds, until not included."""
        with localcontext(_EXACT):
            before = (e.change for e in self.entries(account, currency, until=since)) if since is not None else ()
            opening = sum(before, Decimal(0))
            found = tuple(e for e in self.entries(account, currency, since=since, until=until) if KINDS[e.kind][0])
            return Statement(account, currency, since, until, opening, found,
                             opening + sum((e.change for e in found), Decimal(0)))

    def charged(self, *, since: int | None = None, until: int | None = None) -> Iterator[Job]:
        """The jobs of the charges in force, in the order in which they were charged, each with its Charge.

        since, until: epoch seconds of the charging, until not included.
        """
        given = [("time >= ?", since), ("time < ?", until)]
        where = "".join(f" AND {sql}" for sql, value in given if value is not None)
        rows = self.store.execute(
            f"SELECT {', '.join(f'entries.{name}' for name in _NAMES)} FROM entries JOIN charges ON entry = number "
            f"WHERE 1 = 1{where} ORDER BY number", [value for _, value in given if value is not None])
        for row in rows:
            entry = _entry(row)
            job = _job(entry.document["job"])
            job.set("Charge", new_property("Charge", entry.amount, {"units": entry.currency} if entry.currency else {}))
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
        made = _with(entry, number=number + 1, time=int(self._clock()))
        made = _with(made, hash=made.digest(previous))
        self.store.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES ({', '.join('?' * 13)})", _row(made))
        self.store.execute("UPDATE head SET number = ?, hash = ?", (made.number, made.hash))
        account = self.account(made.account, made.currency)
        account.take(made)
        values = (str(account.balance), str(account.held), str(account.credit), made.account, made.currency)
        sql = "UPDATE accounts SET balance = ?, held = ?, credit = ? WHERE account = ? AND currency = ?"
        if self.store.execute(sql, values).rowcount == 0:
            self.store.execute("INSERT INTO accounts (balance, held, credit, account, currency) VALUES (?, ?, ?, ?, ?)",
                               values)
        return made

    # -- checking
    def verify(self, *, recharge: bool = True) -> Iterator[str]:
        """Replay all entries: what is wrong with hashes, balances, charges in force, and printed arithmetic.

        recharge: every charge is made again from the stored job and rates too.
        """
        previous, numbers, accounts = "", 0, dict[tuple[str, str], Account]()
        force: dict[tuple[str, str, int], tuple[int, str, str]] = {}
        holds: set[int] = set()
        for row in self.store.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY number"):
            numbers += 1
            try:
                entry = _entry(row)
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
            accounts.setdefault((entry.account, entry.currency), Account(entry.account, entry.currency)).take(entry)
            key = (entry.machine, entry.job, entry.start)
            if entry.kind == "charge":
                force[key] = (entry.number, _content(entry.account, str(entry.document.get("job"))),
                              str(entry.document.get("rates")))
                yield from self._recomputed(entry, recharge)
            elif entry.kind == "reversal" and key in force and force[key][0] == entry.refers:
                del force[key]
            elif entry.kind == "hold":
                holds.add(entry.number)
            elif entry.kind == "release":
                holds.discard(entry.refers)
        yield from self._compared(numbers, previous, accounts, force, holds)

    def _recomputed(self, entry: Entry, recharge: bool) -> Iterator[str]:
        try:
            made = entry.document["charge"]
            exact = recompute(str(made["arithmetic"]))
            if plain(exact) != made["exact"] or made["charge"] != plain(entry.amount):
                yield f"entry {entry.number}: the arithmetic comes to {plain(exact)}"
            if recharge:
                again = charge(_job(entry.document["job"]), self.rates(str(entry.document["rates"])))
                if not isinstance(again, Charge) or again.amount != entry.amount:
                    yield f"entry {entry.number}: the stored job and rates give another charge"
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, SSSJobError) as error:
            said = escape(str(error), 200) if isinstance(error, ValueError | SSSJobError) else \
                "what is stored of the charge is not whole"
            yield f"entry {entry.number}: {said}"

    def _compared(self, number: int, digest: str, accounts: Mapping[tuple[str, str], Account],
                  force: Mapping[tuple[str, str, int], tuple[int, str, str]], holds: set[int]) -> Iterator[str]:
        """What is derived against what follows from the entries."""
        if tuple(self.store.one("SELECT number, hash FROM head")) != (number, digest):
            yield "the last entries are missing"
        try:
            kept = {(a.account, a.currency): a for a in self.accounts()}
        except LedgerError as error:
            yield str(error)
            kept = accounts = {}
        for name in sorted(kept.keys() | accounts.keys()):
            if kept.get(name) != accounts.get(name):
                yield (f"account {escape(name[0], 60)} in {escape(name[1], 60) or 'credits'}: "
                       "the balance is not that of the entries")
        rows = self.store.execute("SELECT machine, job, start, entry, content, rates FROM charges")
        if {tuple(row[:3]): tuple(row[3:]) for row in rows} != dict(force):
            yield "the charges in force are not those of the entries"
        if {row[0] for row in self.store.execute("SELECT entry FROM holds")} != holds:
            yield "the holds are not those of the entries"


_NAMES: Final = ("number", "time", "kind", "account", "currency", "amount", "machine", "job", "start", "refers",
                 "token", "document", "hash")
_COLUMNS: Final = ", ".join(_NAMES)


def _row(entry: Entry) -> tuple[Any, ...]:
    values = [getattr(entry, name) for name in _NAMES]
    values[5], values[11] = str(entry.amount), json.dumps(entry.document, separators=(",", ":"))
    return tuple(values)


def _entry(row: Any) -> Entry:
    """Raises LedgerError for a row that no ledger has written."""
    values = list(row)
    try:
        values[5], values[11] = Decimal(values[5]), json.loads(values[11])
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        values[11] = None
    made = Entry(*values)
    if made.kind not in KINDS or not isinstance(made.document, dict) or not made.amount.is_finite() or not all(
            isinstance(n, int) for n in (made.number, made.time, made.start, made.refers)) or not all(
            isinstance(t, str) for t in (made.account, made.currency, made.machine, made.job, made.hash)):
        raise LedgerError(f"entry {escape(str(made.number), 30)} is not what was written")
    return made


def _account(name: str, currency: str, amounts: Iterable[Any]) -> Account:
    """Raises LedgerError for amounts that are none."""
    try:
        made = [Decimal(amount) for amount in amounts]
    except (ArithmeticError, TypeError, ValueError):
        made = [Decimal("NaN")]
    if not all(amount.is_finite() for amount in made):
        raise LedgerError(f"account {escape(str(name), 60)}: what is kept of it is no amount")
    return Account(name, currency, *made)


def _with(entry: Entry, **changes: Any) -> Entry:
    return Entry(*(changes.get(name, getattr(entry, name)) for name in _NAMES))


def _positive(amount: Decimal) -> Decimal:
    if not amount > 0:
        raise LedgerError(f"{plain(amount)} is not above 0")
    return _bounded(amount)


def _bounded(amount: Decimal) -> Decimal:
    if not amount.is_finite() or abs(amount) >= _MOST or amount.as_tuple().exponent < -24:     # type: ignore[operator]
        raise LedgerError("an amount has at most 60 digits before and 24 behind the point")
    return amount


def _name(text: str, what: str) -> None:
    if not _TOKEN.fullmatch(text) or not text.isprintable() or text != text.strip():
        raise LedgerError(f"{escape(text, 60)!r} is no {what} (1 to 200 printable characters)")


def _whole(job: Job, defaults: JobDefaults | None) -> Job:
    """The job with the defaults beside it folded in."""
    return job if defaults is None else effective(job, defaults).fold()


def _document(job: Job) -> str:
    """The text of a job without what charging writes into it."""
    return write_document(Job([i for i in job.items if i.tag != "Charge"], dict(job.attributes) or None),
                          policy=Policy.IGNORE)


def _content(account: str, text: str) -> str:
    """What tells whether another record of a run says the same."""
    return hashlib.sha256(f"{account}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _job(text: object) -> Job:
    made = read_document(str(text).encode(), policy=Policy.IGNORE).root
    if not isinstance(made, Job):
        raise LedgerError("what is stored is no job")
    return made
