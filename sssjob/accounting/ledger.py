"""The life of money as documents: deposits, quotes, holds, charges, refunds, adjustments in a journal that only grows.

An entry is a document with a number and a hash over itself and the one before it, so that replaying the entries gives
the same balances (``Ledger.verify``). Of an account (a Project, in one currency)

    balance   = deposits - withdrawals - expiries - charges + reversals + refunds + adjustments
    available = balance - holds + credit limit

A job is charged once: its natural key is Machine, native id (else Id) and StartTime. The same record again changes
nothing; another one for the same key reverses the old charge and makes a new one. Amounts are exact decimals. Source:
SSS job object 3.1.0, sections 5.1 (Charge, Quote) and 7; Gold's objects Quotation, Reservation, Charge, Refund.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Final, Self

from sssjob.accounting.accounts import Settings, Standing, unused
from sssjob.accounting.arithmetic import plain
from sssjob.accounting.charging import Charging, Read
from sssjob.accounting.currencies import digits_in, digits_of
from sssjob.accounting.entries import (
    COLUMNS,
    EXACT,
    KINDS,
    NAMES,
    NEVER,
    NUMBERS,
    Account,
    By,
    Entry,
    Kind,
    LedgerError,
    Posted,
    Said,
    Statement,
    Usage,
    account_of,
    at_start,
    bounded,
    document_of,
    end_of,
    entry_of,
    job_of,
    key_of,
    named,
    positive,
)
from sssjob.accounting.postings import whole_of
from sssjob.accounting.pricing import Charge, Uncharged, quote
from sssjob.accounting.rates import RateSet
from sssjob.document.arrays import Array, array_of
from sssjob.document.element import new_property
from sssjob.document.model import Job, JobDefaults
from sssjob.findings import escape
from sssjob.lrm.idset import Idset

__all__ = ["KINDS", "Account", "By", "Entry", "Ledger", "LedgerError", "Posted", "Read", "Settings", "Standing",
           "Statement", "Usage", "key_of"]

_NOTHING: Final = Decimal(0)
NO_TERM: Final[Mapping[str, int]] = {}


def _only(what: str, job: str, machine: str | None, entries: Sequence[tuple[int, str, str]]) -> int:
    """The number of the only entry about a job: of (number, machine, what else tells it from others) those of the
    machine, None: of any. Raises LedgerError where there is none, or where there are several."""
    entries = [entry for entry in entries if machine in (None, entry[1])]
    if len(entries) == 1:
        return int(entries[0][0])
    of = f"job {escape(job, 60)}" + ("" if machine is None else f" of {escape(machine, 60)}")
    if not entries:
        raise LedgerError(f"no {what} of {of} is in force")
    choices = ", ".join(f"{number} ({escape(where, 60)}{more})" for number, where, more in entries[:10])
    raise LedgerError(f"{of} has {len(entries)} {what}s: name the entry, {choices}")


class Ledger(Charging):
    """A ledger in a store. clock: epoch seconds, of the entries to come."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    # -- money in and out
    def deposit(self, account: str, amount: Decimal, currency: str = "", *, reason: str = "",
                token: str | None = None, new: bool = False, since: int | None = None,
                until: int | None = None) -> Entry:
        """Put money into an account. token: posted once, however often it is asked; new: the account may be a new one
        though another one has almost its name; since, until: its term in epoch seconds, until not included, behind
        which what is left of it is lost. Raises LedgerError."""
        begin = 0 if since is None else since
        if until is not None and until <= begin:
            raise LedgerError("a term ends after it begins")
        term = {name: moment for name, moment in (("since", since), ("until", until)) if moment is not None}
        with self.store.transaction():
            entry, again = self._manual("deposit", account, currency, positive(amount), reason, token, new, term)
            if term and not again:
                self.store.execute("INSERT INTO terms VALUES (?, ?, ?, ?, ?)", (
                    entry.number, account, currency, begin, NUMBERS - 1 if until is None else until))
            return entry

    def credit(self, account: str, limit: Decimal, currency: str = "", *, reason: str = "",
               token: str | None = None, new: bool = False) -> Entry:
        """Set how far below 0 an account may go."""
        if limit < 0:
            raise LedgerError("a credit limit is not below 0")
        with self.store.transaction():
            return self._manual("credit", account, currency, bounded(limit), reason, token, new)[0]

    def adjust(self, account: str, amount: Decimal, currency: str = "", *, reason: str,
               token: str | None = None, new: bool = False) -> Entry:
        """Correct a balance, up or down; the reason has to be said."""
        if not reason.strip():
            raise LedgerError("an adjustment needs a reason")
        if not amount:
            raise LedgerError("an adjustment by 0 adjusts nothing")
        with self.store.transaction():
            return self._manual("adjustment", account, currency, bounded(amount), reason, token, new)[0]

    def withdraw(self, account: str, amount: Decimal, currency: str = "", *, reason: str = "",
                 token: str | None = None) -> Entry:
        """Take money that is not held out of an account. Raises LedgerError."""
        with self.store.transaction():
            return self._again(token, "withdrawal", account, currency, positive(amount)) or \
                self._withdrawn(account, currency, amount, reason, token)

    def transfer(self, source: str, target: str, amount: Decimal, currency: str = "", *, reason: str = "",
                 token: str | None = None, new: bool = False) -> tuple[Entry, Entry]:
        """Move money that is not held from one account to another: a withdrawal and the deposit that answers it, both
        or none. token: names the withdrawal. Raises LedgerError."""
        named(target, "account")
        if source == target:
            raise LedgerError(f"{escape(source, 60)} cannot give money to itself")
        with self.store.transaction():
            again = self._again(token, "withdrawal", source, currency, positive(amount))
            if again is not None:
                row = self.store.one(f"SELECT {COLUMNS} FROM entries WHERE refers = ? AND kind = 'deposit'",
                                     (again.number,))
                if row is None or (answer := entry_of(row)).account != target:
                    raise LedgerError(f"token {escape(str(token), 60)} has made entry {again.number}, which is "
                                      "something else")
                return again, answer
            self._takes(target, currency, amount)
            if not new:
                self._slip(target, currency)
            out = self._withdrawn(source, currency, amount, reason or f"to {target}", token)
            document = {"reason": reason or f"from {source}"}
            return out, self._post(Entry(0, 0, "deposit", target, currency, amount, refers=out.number,
                                         document=document))

    def _withdrawn(self, account: str, currency: str, amount: Decimal, reason: str, token: str | None) -> Entry:
        """Post a withdrawal of what is there: neither held nor credit."""
        self._slip(account, currency, may_open=False)
        there = self.standing(account, currency)
        free = there.account.balance - there.account.held + there.lapsed - there.absent - there.covers
        self._in_digits(there.settings, account, currency, amount)
        if amount > free:
            raise LedgerError(f"account {escape(account, 60)} has {plain(max(free, Decimal(0)))} "
                              f"{escape(currency, 20) or 'credits'} that are not held, {plain(amount)} are asked for")
        return self._post(Entry(0, 0, "withdrawal", account, currency, bounded(amount), token=token,
                                document={"reason": reason} if reason else {}))

    def refund(self, number: int, amount: Decimal | None = None, *, reason: str = "",
               token: str | None = None) -> Entry:
        """Give a charge back, or part of it. Raises LedgerError when more than the charge would be given back."""
        with self.store.transaction():
            old = self._charge_entry(number)
            again = self._again(token, "refund", old.account, old.currency, amount)
            if again is not None:
                return again
            rest = old.amount - self._given_back(number)
            sum_ = rest if amount is None else positive(amount)
            if not 0 < sum_ <= rest:
                raise LedgerError(f"entry {number} has {plain(rest)} left to give back" +
                                  ("" if amount is None else f", not {plain(sum_)}"))
            return self._post(Entry(0, 0, "refund", old.account, old.currency, sum_, old.machine, old.job, old.start,
                                    number, token, old.user_name, ({"reason": reason} if reason else {}) | end_of(old)))

    def take_back(self, chosen: Callable[[Entry, Job], bool], *, reason: str, dry_run: bool = False) -> list[Entry]:
        """Reverse charges in force of jobs that should not have been charged, less what was refunded of them, all or
        none; dry_run: post nothing. Gives these charges. For which machine their logs were read is forgotten, so that
        these can be charged for the right one. Raises LedgerError."""
        if not reason.strip():
            raise LedgerError("charges are taken back for a reason")
        with self._together():
            numbers = [number for number, in self.store.execute("SELECT entry FROM charges ORDER BY entry").fetchall()]
            charges = [entry for number in numbers if chosen(entry := self.entry(number),
                                                             job_of(str(entry.document["job"])))]
            for entry in charges if not dry_run else ():
                self._reverse(entry.number, (entry.machine, entry.job, entry.start), reason)
            for machine in {entry.machine for entry in charges} if not dry_run else ():
                self.store.execute("DELETE FROM sources WHERE name LIKE ? AND state = ?", ("machine %", machine))
            return charges

    def charge_of(self, job: str, machine: str | None = None) -> int:
        """The number of the charge in force of a job, by its native id or Id. Raises LedgerError where there is none,
        or where there are several: runs of one job, or jobs of several machines."""
        rows = self.store.execute("SELECT entry, machine, start FROM charges WHERE job = ? ORDER BY entry", (job,))
        return _only("charge", job, machine, [(entry, where, f", started {at_start(start)}")
                                              for entry, where, start in rows])

    def hold_of(self, job: str, machine: str | None = None) -> int:
        """The number of the hold in force of a job, by its Id. Raises LedgerError where there is none, or where jobs of
        several machines have one."""
        rows = self.store.execute("SELECT entry, machine FROM holds WHERE job = ? ORDER BY entry", (job,))
        return _only("hold", job, machine, [(entry, where, "") for entry, where in rows])

    def _charge_entry(self, number: int) -> Entry:
        entry = self.entry(number)
        if entry.kind != "charge":
            raise LedgerError(f"entry {number} is no charge but a {entry.kind}")
        return entry

    def _manual(self, kind: Kind, account: str, currency: str, amount: Decimal, reason: str,
                token: str | None, new: bool, term: Mapping[str, int] = NO_TERM) -> tuple[Entry, bool]:
        """The entry that is asked for, and whether it was there before."""
        named(account, "account")
        again = self._again(token, kind, account, currency, amount)
        if again is not None:
            if {name: again.document.get(name) for name in ("since", "until")} != {
                    name: term.get(name) for name in ("since", "until")}:
                raise LedgerError(f"token {escape(str(token), 60)} has made entry {again.number}, which is something "
                                  "else")
            return again, True
        self._takes(account, currency, amount, closed=kind == "adjustment")
        if not new:
            self._slip(account, currency)
        document = ({"reason": reason} if reason else {}) | dict(term)
        return self._post(Entry(0, 0, kind, account, currency, amount, token=token, document=document)), False

    def _takes(self, account: str, currency: str, amount: Decimal, *, closed: bool = False) -> None:
        """Refuse what is put into an account that is closed (closed: that is no matter), or that is too fine for it."""
        settings = self.settings(account, currency)
        if settings.closed and not closed:
            raise LedgerError(f"account {escape(account, 60)} is closed")
        self._in_digits(settings, account, currency, amount)

    def _in_digits(self, settings: Settings, account: str, currency: str, amount: Decimal) -> None:
        """Refuse an amount that is finer than the account says, else than its currency and its balance are."""
        digits, why = settings.digits, "which the account does not keep"
        if digits is None:
            of_currency = digits_of(currency)
            if of_currency is None:
                return
            digits = max(of_currency, digits_in(self.account(account, currency).balance))
            why = f"those of {currency}; ledger account --digits lets the account have more"
        if digits_in(amount) > digits:
            raise LedgerError(f"{plain(amount)} has more than {digits} digits behind the point, {why}")

    def _slip(self, account: str, currency: str, *, may_open: bool = True) -> None:
        """Refuse an account that is not there yet where one is whose name is almost this one, or that is kept in
        another currency: it may be a slip."""
        if self.store.one("SELECT 1 FROM accounts WHERE account = ? AND currency = ?", (account, currency)):
            return
        if similar := self.similar(account):
            raise LedgerError(f"there is no account {escape(account, 60)} in {escape(currency, 20) or 'credits'}; did "
                              f"you mean {similar}?{' --new opens another one' * may_open}")

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
              expires: int | None = None, start: int | None = None,
              agreed: Callable[[Charge], object] = lambda _: None) -> tuple[Entry, Charge]:
        """Promise today's rates to a job; the entry's ``quote-N`` is what its Quote is to say. agreed: is asked before
        anything is posted; what it raises leaves nothing behind. Raises LedgerError."""
        quoted = quote(job, rates, defaults, start=start)
        if isinstance(quoted, Uncharged):
            raise LedgerError(f"no quote: {quoted.reason} ({quoted.detail})")
        account = self._owner(Said(whole_of(job, defaults)), owner)
        with self.store.transaction():
            why = self.settings(account, quoted.currency).refuses(account, Said(whole_of(job, defaults)))
            if why:
                raise LedgerError(f"no quote: {why}")
            agreed(quoted)
            self._keep(rates)
            entry = self._post(Entry(0, 0, "quote", account, quoted.currency, bounded(quoted.amount), document={
                "rates": rates.digest, "expires": expires, "charge": quoted.record(),
                "job": document_of(whole_of(job, defaults))}))
        return entry, quoted

    def hold(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
             start: int | None = None, force: bool = False, expires: int | None = None, dry_run: bool = False,
             agreed: Callable[[Charge], object] = lambda _: None) -> tuple[Entry, Charge]:
        """Set aside what a job will cost if it gets what it requests, until it is charged. expires: in epoch seconds,
        when it ends by itself; dry_run: nothing is held, the entry has the number 0; agreed: as of ``quote``.

        Raises LedgerError when the account does not have it, or its user has used up a limit (force: hold it all the
        same), when the job may not use the account, or when there is a hold.
        """
        whole = whole_of(job, defaults)
        machine, ident, _ = key_of(whole)
        quoted = quote(job, self._guaranteed(Said(whole), rates), defaults, start=start)
        if isinstance(quoted, Uncharged):
            raise LedgerError(f"no hold: {quoted.reason} ({quoted.detail})")
        account = self._owner(Said(whole), owner)
        with self.store.transaction():
            now = self.now()
            old = self.store.one("SELECT entry, expires FROM holds WHERE machine = ? AND job = ?", (machine, ident))
            if old is not None and not 0 <= old[1] <= now:
                raise LedgerError(f"entry {old[0]} holds for job {escape(ident, 60)} already")
            if expires is not None and expires <= now:
                raise LedgerError("a hold ends in the future")
            if old is not None:
                self._release(old[0])
            there = self._admit(whole, account, quoted.currency, _NOTHING if force else quoted.amount)
            if quoted.amount > there.available and not force:
                self._slip(account, quoted.currency)
                raise LedgerError(f"account {escape(account, 60)} has {plain(there.available)} left, "
                                  f"{plain(quoted.amount)} are asked for")
            agreed(quoted)
            until = {} if expires is None else {"expires": expires}
            stated_array = array_of(job, defaults)
            elements = {} if stated_array is None else {
                "elements": str(Idset.of(Array.of(stated_array.text).indices))}
            entry = Entry(0, 0, "hold", account, quoted.currency, bounded(quoted.amount), machine, ident,
                          user_name=Said(whole).user, document={"charge": quoted.record(), **elements, **until})
            if not dry_run:
                entry = self._hold(entry, NEVER if expires is None else expires)
        return entry, quoted

    def release(self, number: int) -> Entry:
        """End a hold. Raises LedgerError."""
        with self.store.transaction():
            return self._release(number)

    def holds(self) -> Iterator[Entry]:
        """The holds in force, in the order in which they were made."""
        return map(entry_of, self.store.execute(
            f"SELECT {', '.join(f'entries.{name}' for name in NAMES)} FROM entries JOIN holds ON entry = number "
            "ORDER BY number"))

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        rows = self.store.execute("SELECT account, currency, balance, held, credit FROM accounts "
                                  "ORDER BY account, currency")
        return [account_of(name, currency, amounts) for name, currency, *amounts in rows]

    def entries(self, account: str | None = None, currency: str | None = None, *, job: str | None = None,
                since: int | None = None, until: int | None = None) -> Iterator[Entry]:
        """Entries in their order; job: about a job of that id; since, until: epoch seconds, until not included."""
        conditions = [("account = ?", account), ("currency = ?", currency), ("job = ?", job), ("time >= ?", since),
                      ("time < ?", until)]
        where = " AND ".join(sql for sql, value in conditions if value is not None) or "1 = 1"
        values = [value for _, value in conditions if value is not None]
        return map(entry_of, self.store.execute(f"SELECT {COLUMNS} FROM entries WHERE {where} ORDER BY number", values))

    def statement(self, account: str, currency: str = "", *, since: int | None = None, until: int | None = None,
                  by: By = "posted") -> Statement:
        """An account over a time. since, until: epoch seconds, until not included; by: which time of an entry counts.
        """
        with localcontext(EXACT):
            opening, entries = Decimal(0), []
            for entry in self.entries(account, currency, until=until if by == "posted" else None):
                moment = entry.moment(by)
                if since is not None and moment < since:
                    opening += entry.change
                elif KINDS[entry.kind][0] and (until is None or moment < until):
                    entries.append(entry)
            entries.sort(key=lambda entry: (entry.moment(by), entry.number))
            return Statement(account, currency, since, until, opening, tuple(entries),
                             opening + sum((e.change for e in entries), Decimal(0)), by)

    def usage(self, *, since: int | None = None, until: int | None = None, by: By = "end") -> list[Usage]:
        """What each account was given in all before until, and what its jobs cost between since and until, less what
        was given back of that. A deposit with a term is given when the term begins, and what is left of it at the end
        is not, whether it has been taken out or not, unless by is ``posted``; without until what was given is that of
        now."""
        usages: dict[tuple[str, str], Usage] = {}
        uses: defaultdict[tuple[str, str], list[tuple[int, Decimal]]] = defaultdict(list)
        now = self.now()
        with localcontext(EXACT):
            for entry in self.entries():
                if not entry.account:           # it is about all of them
                    continue
                name = entry.account, entry.currency
                usage = usages.setdefault(name, Usage(*name))
                uses[name] += entry.uses()
                if entry.kind == "expiry" and by != "posted":
                    continue
                begin = entry.document.get("since") if entry.kind == "deposit" and by != "posted" else None
                moment = begin if isinstance(begin, int) else entry.moment(by)
                if moment < until if until is not None else begin is None or moment <= now:
                    usage.take(entry, since is None or moment >= since)
            if by != "posted":
                for name, usage in usages.items():
                    terms = self._terms(*name)
                    unused_amounts = unused(terms, uses[name])
                    usage.given -= sum((unused_amounts[term.entry] for term in terms
                                        if term.until < (now + 1 if until is None else until)), Decimal(0))
            for currency in {currency for _, currency in usages}:
                self._cover(usages, currency)
        return [usages[name] for name in sorted(usages)]

    def _cover(self, usages: Mapping[tuple[str, str], Usage], currency: str) -> None:
        """Add to what accounts of a currency have used what those below them have used beyond all that they had."""
        children = self._children(currency)
        credits = {a.account: a.credit for a in self.accounts() if a.currency == currency}

        def lack(name: str) -> Decimal:
            usage = usages[name, currency]
            usage.below = sum(map(lack, children.get(name, ())), Decimal(0))
            return max(Decimal(0), usage.used + usage.below - usage.given - credits.get(name, Decimal(0)))

        below = {child for names in children.values() for child in names}
        for name in children.keys() - below:
            lack(name)

    def charged(self, *, since: int | None = None, until: int | None = None, by: By = "posted") -> Iterator[Job]:
        """The jobs of the charges in force, in the order in which they were charged, each with its Charge.

        since, until: epoch seconds, until not included; by: of the charging, or of the start or end of the job.
        """
        conditions = [("time >= ?", since), ("time < ?", until)] if by == "posted" else []
        where = "".join(f" AND {sql}" for sql, value in conditions if value is not None)
        rows = self.store.execute(
            f"SELECT {', '.join(f'entries.{name}' for name in NAMES)} FROM entries JOIN charges ON entry = number "
            f"WHERE 1 = 1{where} ORDER BY number", [value for _, value in conditions if value is not None])
        for row in rows:
            entry = entry_of(row)
            moment = entry.moment(by)
            if (since is not None and moment < since) or (until is not None and moment >= until):
                continue
            job = job_of(entry.document["job"])
            units = {"units": entry.currency} if entry.currency else {}
            job.set_as_is("Charge", new_property("Charge", entry.amount, units))
            yield job

    def verify(self, *, recharge: bool = True) -> Iterator[str]:
        """Replay all entries: what is wrong with hashes, balances, charges in force, and printed arithmetic.

        recharge: every charge is made again from the stored job and rates too.
        """
        from sssjob.accounting.replay import replay

        return replay(self, recharge=recharge)
