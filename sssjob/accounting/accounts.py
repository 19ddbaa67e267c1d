"""Accounts as objects: who may use one, what covers it when it is empty, and money that is there only for a time.

What an account lacks its parent covers: of an account and the accounts below it

    free      = balance - holds + credit limit - what is not there at this time - what the accounts below it lack
    available = free + what is available of its parent

Nothing is moved for that, so the order in which charges come is no matter. A deposit with a term pays what was used
within it, the one that ends first before the others; what is left of it at its end is lost.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, localcontext
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.entries import (
    COLUMNS,
    EXACT,
    Account,
    Entry,
    LedgerError,
    Said,
    entry_of,
)
from sssjob.accounting.postings import Postings
from sssjob.document.model import Job
from sssjob.findings import escape

__all__ = ["DEPTH", "Accounts", "DepositTerm", "Settings", "Standing", "settings_of", "unused"]

#: How many accounts may stand above one another.
DEPTH: Final = 32
_CLOSE: Final = 0.75        # how alike names are, from 0 to 1, of which one may be a slip for the other
_NOTHING: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Settings:
    """How an account may be used. parent: name of the account, in the same currency, that covers what it lacks; users,
    machines: whose jobs may be held and quoted (None: all); per_user: how much the jobs of one user may cost, those
    that are held among them (None: no matter); digits: behind the point of amounts by hand; closed: nothing more is
    held, quoted or put in."""

    parent: str = ""
    users: tuple[str, ...] | None = None
    machines: tuple[str, ...] | None = None
    per_user: Decimal | None = None
    digits: int | None = None
    closed: bool = False

    def record(self) -> dict[str, Any]:
        """As a JSON object; what is as usual is left out."""
        settings = {name: value for name, value in asdict(self).items()
                    if value not in ("", None) and value is not False}
        return settings | ({} if self.per_user is None else {"per_user": plain(self.per_user)})

    def refuses(self, account: str, statement: Said) -> str:
        """Why a job may not use the account; empty where it may."""
        if not self.closed and self.users is None and self.machines is None:
            return ""
        name = escape(account, 60)
        if self.closed:
            return f"account {name} is closed"
        for tag, allowed in (("User", self.users), ("Machine", self.machines)):
            if allowed is not None and (value := statement.text(tag)) not in allowed:
                return f"{tag} {escape(value, 60)} may not use account {name}" if value else \
                    f"account {name} is for certain values of {tag}, and the job says none"
        return ""


def settings_of(record: object) -> Settings:
    """The settings of their record. Raises LedgerError for one that no ledger has written."""
    try:
        fields = dict(record)  # type: ignore[call-overload]
        lists = {name: tuple(map(str, fields[name])) for name in ("users", "machines") if name in fields}
        amount = {"per_user": Decimal(fields["per_user"])} if "per_user" in fields else {}
        return Settings(**{**fields, **lists, **amount})
    except (ArithmeticError, TypeError, ValueError):
        raise LedgerError("the settings of an account are not what was written") from None


class DepositTerm(NamedTuple):
    """A deposit that can be used from ``since`` on and before ``until``, in epoch seconds. entry: its number."""

    entry: int
    since: int
    until: int
    amount: Decimal


def unused(terms: Iterable[DepositTerm], uses: Iterable[tuple[int, Decimal]]) -> dict[int, Decimal]:
    """What is left of deposits at the end of their terms, by number of entry. uses: (epoch seconds, amount; below 0:
    given back), in any order."""
    by_end = sorted(terms, key=lambda term: (term.until, term.entry))
    borders = sorted({moment for term in by_end for moment in (term.since, term.until)})
    used = [_NOTHING] * (len(borders) + 1)
    unused_amounts = {term.entry: term.amount for term in by_end}
    with localcontext(EXACT):
        for moment, amount in uses:
            used[bisect_right(borders, moment)] += amount
        for number, (begin, _) in enumerate(pairwise(borders), 1):
            open_use = max(used[number], _NOTHING)
            for term in by_end:
                if term.since <= begin < term.until:
                    taken = min(unused_amounts[term.entry], open_use)
                    unused_amounts[term.entry] -= taken
                    open_use -= taken
    return unused_amounts


@dataclass(frozen=True, slots=True)
class Standing:
    """An account at a moment. account: by its entries; lapsed: of holds that are over, though nobody has ended them;
    absent: deposits whose term has not begun, or is over with so much left; covers: what the accounts below it lack;
    available: what can be held, with what its parent has."""

    account: Account
    settings: Settings
    lapsed: Decimal
    absent: Decimal
    covers: Decimal
    available: Decimal

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        more = {"lapsed": self.lapsed, "absent": self.absent, "covers": self.covers}
        return {**self.account.record(), **{name: plain(amount) for name, amount in more.items() if amount},
                "available": plain(self.available)} | (
                    {"settings": self.settings.record()} if self.settings != Settings() else {})


class Accounts(Postings):
    """The part of a ledger that knows how accounts may be used."""

    # -- settings
    def settings(self, account: str, currency: str = "") -> Settings:
        """How an account may be used."""
        row = self.store.one("SELECT text FROM settings WHERE account = ? AND currency = ?", (account, currency))
        return Settings() if row is None else settings_of(json.loads(row[0]))

    def configure(self, account: str, currency: str = "", *, reason: str = "", **changes: Any) -> Entry:
        """Change settings of an account that is there, by the names of ``Settings``. Raises LedgerError where the
        parent is not there or stands below the account."""
        with self.store.transaction():
            self._there(account, currency)
            settings = replace(self.settings(account, currency), **changes)
            if settings.parent:
                self._there(settings.parent, currency)
                self._no_circle(account, settings.parent, currency)
            if settings.per_user is not None and settings.per_user < 0:
                raise LedgerError("the limit of a user is not below 0")
            self.store.execute("DELETE FROM settings WHERE account = ? AND currency = ?", (account, currency))
            self.store.execute("INSERT INTO settings VALUES (?, ?, ?)",
                               (account, currency, json.dumps(settings.record(), sort_keys=True)))
            return self._post(Entry(0, 0, "account", account, currency, _NOTHING, document={
                "settings": settings.record()} | ({"reason": reason} if reason else {})))

    def _there(self, account: str, currency: str) -> None:
        if not self.store.one("SELECT 1 FROM accounts WHERE account = ? AND currency = ?", (account, currency)):
            similar = self.similar(account)
            raise LedgerError(f"there is no account {escape(account, 60)} in {escape(currency, 20) or 'credits'}" +
                              (f"; did you mean {similar}?" if similar else ""))

    def similar(self, account: str) -> str:
        """The accounts that a name may be a slip for, in any case, each with its currencies; empty where there are
        none."""
        currencies: dict[str, list[str]] = {}
        folded: dict[str, list[str]] = {}
        for name, currency in self.store.execute("SELECT account, currency FROM accounts ORDER BY account, currency"):
            currencies.setdefault(str(name), []).append(str(currency) or "credits")
        for name in currencies:
            folded.setdefault(name.casefold(), []).append(name)
        close = get_close_matches(account.casefold(), folded, 3, _CLOSE)
        names = [account] if account in currencies else [name for alike in close for name in folded[alike]]
        return ", ".join(f"{escape(name, 60)} ({', '.join(currencies[name])})" for name in names)

    def _no_circle(self, account: str, parent: str, currency: str) -> None:
        above, name = [account], parent
        while name:
            if name == account:
                raise LedgerError(f"{escape(parent, 60)} cannot be the parent of {escape(account, 60)}: it is that "
                                  "account, or stands below it")
            above.append(name)
            name = self.settings(name, currency).parent
        below = self._children(currency)
        depth, level = 0, [account]
        while level:
            depth, level = depth + 1, [child for name in level for child in below.get(name, ())]
        if len(above) - 1 + depth > DEPTH:
            raise LedgerError(f"more than {DEPTH} accounts stand above one another")

    def _children(self, currency: str) -> dict[str, list[str]]:
        """Account -> those right below it."""
        below: dict[str, list[str]] = {}
        for name, text in self.store.execute("SELECT account, text FROM settings WHERE currency = ? ORDER BY account",
                                             (currency,)).fetchall():
            parent = settings_of(json.loads(text)).parent
            if parent:
                below.setdefault(parent, []).append(str(name))
        return below

    # -- what is there
    def standing(self, account: str, currency: str = "") -> Standing:
        """An account at this moment, with what covers it and what it covers. Where it has deposits with terms, all that
        was used of it is looked at."""
        with localcontext(EXACT):
            return self._standing(account, currency, self.now(), self._children(currency))

    def standings(self) -> list[Standing]:
        """All accounts, by name."""
        rows = self.store.execute("SELECT account, currency FROM accounts ORDER BY account, currency").fetchall()
        below = {currency: self._children(currency) for _, currency in rows}
        now = self.now()
        with localcontext(EXACT):
            return [self._standing(account, currency, now, below[currency]) for account, currency in rows]

    def _standing(self, account: str, currency: str, now: int, below: Mapping[str, list[str]]) -> Standing:
        own, settings = self.account(account, currency), self.settings(account, currency)
        lapsed, absent = self._lapsed_holds(account, currency, now), self._absent(account, currency, now)
        covers = sum((max(_NOTHING, -self._free(child, currency, now, below)) for child in below.get(account, ())),
                     _NOTHING)
        free = own.available + lapsed - absent - covers
        if settings.parent:
            above = self._standing(settings.parent, currency, now, below).available
            free = above if free < 0 else free + max(above, _NOTHING)     # what it lacks the parent covers already
        return Standing(own, settings, lapsed, absent, covers, free)

    def _free(self, account: str, currency: str, now: int, below: Mapping[str, list[str]]) -> Decimal:
        own = self.account(account, currency)
        lacking = sum((max(_NOTHING, -self._free(child, currency, now, below)) for child in below.get(account, ())),
                      _NOTHING)
        lapsed, absent = self._lapsed_holds(account, currency, now), self._absent(account, currency, now)
        return own.available + lapsed - absent - lacking

    def _lapsed_holds(self, account: str, currency: str, now: int) -> Decimal:
        rows = self.store.execute(
            "SELECT amount FROM entries JOIN holds ON entry = number WHERE expires BETWEEN 0 AND ? AND account = ? AND "
            "currency = ?", (now, account, currency))
        return sum((Decimal(amount) for amount, in rows), _NOTHING)

    def _absent(self, account: str, currency: str, now: int) -> Decimal:
        """Deposits that cannot be used yet, and what was left of those that cannot be used any more, as far as it has
        not been taken out."""
        terms = self._terms(account, currency)
        if not terms:
            return _NOTHING
        unused_amounts = self._left(account, currency, terms)
        early = sum((term.amount for term in terms if term.since > now), _NOTHING)
        return early + sum((unused_amounts[term.entry] for term in terms if term.until <= now), _NOTHING)

    def _terms(self, account: str, currency: str) -> list[DepositTerm]:
        rows = self.store.execute(
            "SELECT entry, since, until, amount FROM terms JOIN entries ON entry = number WHERE terms.account = ? AND "
            "terms.currency = ? ORDER BY entry", (account, currency)).fetchall()
        return [DepositTerm(entry, since, until, Decimal(amount)) for entry, since, until, amount in rows]

    def _left(self, account: str, currency: str, terms: list[DepositTerm]) -> dict[int, Decimal]:
        """What is left of each deposit by what was used, less what was taken out of it as lost."""
        uses, lost = list[tuple[int, Decimal]](), dict.fromkeys((term.entry for term in terms), _NOTHING)
        rows = self.store.execute(f"SELECT {COLUMNS} FROM entries WHERE account = ? AND currency = ? ORDER BY number",
                                  (account, currency))
        for row in rows:
            entry = entry_of(row)
            uses += entry.uses()
            if entry.kind == "expiry" and entry.refers in lost:
                lost[entry.refers] += entry.amount
        return {number: amount - lost[number] for number, amount in unused(terms, uses).items()}

    def expire(self) -> list[Entry]:
        """End holds that are over, and take out what is left of deposits whose term is over; where a late log has used
        some of it since, that is put back. Gives what was posted."""
        with self.store.transaction(), localcontext(EXACT):
            now = self.now()
            over = self.store.execute("SELECT entry FROM holds WHERE expires BETWEEN 0 AND ? ORDER BY entry",
                                      (now,)).fetchall()
            posted = [self._release(number) for number, in over]
            accounts = self.store.execute("SELECT DISTINCT account, currency FROM terms WHERE until <= ? "
                                          "ORDER BY account, currency", (now,)).fetchall()
            for account, currency in accounts:
                terms = self._terms(account, currency)
                unused_amounts = self._left(account, currency, terms)
                posted += [self._post(Entry(0, 0, "expiry", account, currency, unused_amounts[term.entry],
                                            refers=term.entry))
                           for term in terms if term.until <= now and unused_amounts[term.entry]]
            return posted

    # -- what may be used
    def used_by(self, account: str, currency: str, user: str) -> Decimal:
        """What the jobs of a user cost of an account, those that are held among them."""
        rows = self.store.execute(
            "SELECT kind, amount FROM entries WHERE account = ? AND currency = ? AND user_name = ? AND kind IN "
            "('charge', 'reversal', 'refund', 'hold', 'release')", (account, currency, user))
        with localcontext(EXACT):
            return sum((Decimal(amount) if kind in ("charge", "hold") else -Decimal(amount) for kind, amount in rows),
                       _NOTHING)

    def _admit(self, job: Job, account: str, currency: str, amount: Decimal) -> Standing:
        """The account that a job is to use. Raises LedgerError where it may not, or its user has used up a limit."""
        standing = self.standing(account, currency)
        statement = Said(job)
        why = standing.settings.refuses(account, statement)
        if why:
            raise LedgerError(why)
        limit, user = standing.settings.per_user, statement.text("User")
        if limit is not None and not user:
            raise LedgerError(f"account {escape(account, 60)} has a limit for each User, and the job says none")
        if limit is not None:
            usable = limit - self.used_by(account, currency, user)
            if amount > usable:
                raise LedgerError(f"User {escape(user, 60)} has {plain(max(usable, _NOTHING))} left of "
                                  f"account {escape(account, 60)}, {plain(amount)} are asked for")
        return standing
