"""Charging jobs: each run once, whatever order its records come in, and each log read in one way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple, Self

from sssjob.accounting.accounts import Accounts, Settings
from sssjob.accounting.amounts import Reason
from sssjob.accounting.arithmetic import plain
from sssjob.accounting.elements import native_ids_of
from sssjob.accounting.entries import (
    COLUMNS,
    NAMES,
    NEVER,
    NUMBERS,
    Encoded,
    Entry,
    LedgerError,
    Posted,
    Said,
    at_start,
    bounded,
    content_of,
    document_of,
    end_of,
    entry_of,
    job_of,
)
from sssjob.accounting.plans import Plans, Priced
from sssjob.accounting.postings import Key, whole_of
from sssjob.accounting.pricing import Uncharged
from sssjob.accounting.rates import RateSet
from sssjob.accounting.runs import Stage, Verdict, compared, differing, span, stage
from sssjob.accounting.store import Store
from sssjob.document.endings import PUT_BACK, reason_word
from sssjob.document.held import seconds
from sssjob.document.model import Job, JobDefaults
from sssjob.document.outlines import OutlinedJob, Outlines
from sssjob.findings import escape
from sssjob.translators.records._sss import PlainJobs

__all__ = ["Charging", "Read"]

_Row = tuple[int, str, str]         # number of the entry, content, digest of the rates
_Runs = dict[int, _Row]             # by StartTime
_TOGETHER: Final = 1000     # jobs whose charges in force are looked up at once
_ASKED: Final = 500         # of them, by one statement
#: Why a run has no charge, for which one that is there is given back.
_GIVEN_BACK: Final = (Reason.NOT_STARTED, Reason.NOT_ENDED, Reason.NOT_COMMITTED, Reason.SYSTEM_FAULT,
                      Reason.EARLIER_ATTEMPT)
_ENTRY: Final = ", ".join(f"entries.{name}" for name in NAMES)
_JOB, _START = NAMES.index("job"), NAMES.index("start")


class Read(NamedTuple):
    """How a log was read: its format, and the zone of times that name none ("": they need none)."""

    format: str
    zone: str = ""


@dataclass(frozen=True, slots=True)
class _Work:
    """How jobs are charged."""

    rates: RateSet
    owner: str
    recharge: bool
    supersede: bool
    read: Read | None
    running: bool


class _Undone(Exception):
    """Nothing of a transaction is to stay."""


class _Record:
    """What one record says of a run. said: by the job with what it inherits; account: that it names; text: of the job,
    as entries keep it; read: format and zone of the log, where its times go by one."""

    __slots__ = ("account", "content", "lists_elements", "promised", "read", "said", "text")

    def __init__(self, statement: Said, account: str, text: str, read: Sequence[str] | None = None) -> None:
        self.said, self.account, self.text, self.read = statement, account, text, read
        self.content = content_of(account, text)        # what tells whether another record says the same
        self.lists_elements = "ArrayElement" in text
        self.promised = bool(statement.text("Quote"))

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """The record of which a charge was made."""
        text = str(entry.document["job"])
        return cls(Said(job_of(text)), entry.account, text, entry.document.get("read"))

    @property
    def job(self) -> Job:
        """The job."""
        return self.said.job

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return stage(self.said) >= Stage.ENDED

    def elements(self, ident: str) -> list[str]:
        """The native ids of the elements of an array that is charged as one under an id."""
        if not self.lists_elements:
            return []
        return [native_id for native_id in native_ids_of(self.job) if native_id != ident]


class Charging(Accounts):
    """The part of a ledger that charges jobs."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        super().__init__(store, clock)
        self._outlines, self._plain = Outlines(), PlainJobs("")
        self._runs: dict[tuple[str, str], _Runs] = {}   # charges in force, by job, of the jobs at hand
        self._arrays = False    # whether some were charged as one
        self._zones: set[tuple[str, Read]] = set()      # that are those of before
        self._used: dict[tuple[str, str], Settings] = {}    # of the accounts of this transaction
        self._unsettled = False     # whether no account has any
        self._plans: dict[tuple[int, bool], tuple[RateSet, Plans]] = {}     # by identity of rates, and whether running

    def charge(self, job: Job, defaults: JobDefaults | None, rates: RateSet, *, owner: str = "Project",
               recharge: bool = False, supersede: bool = False, running: bool = False) -> Posted:
        """Charge a job in a transaction of its own. Of an array ``runs_of`` gives the jobs that are to be charged."""
        return self.charges([(job, defaults)], rates, owner=owner, recharge=recharge, supersede=supersede,
                            running=running)[0]

    def charges(self, jobs: Iterable[tuple[Job | OutlinedJob, JobDefaults | None]], rates: RateSet, *,
                owner: str = "Project", recharge: bool = False, supersede: bool = False, read: Read | None = None,
                running: bool = False) -> list[Posted]:
        """Charge jobs in one transaction. recharge: those charged by other rates are charged anew, else they stay;
        supersede: so are those of which the charged record says something else; read: how their log was read, which
        has to be as before for each machine (LedgerError); running: those that still run are charged for what they
        have used so far."""
        self._zones.clear()     # one may have been noted in a transaction that was undone
        with self._together():
            self._keep(rates)
            self._forget_accounts()
            self._over.clear()
            self._arrays = self.store.one("SELECT 1 FROM sources WHERE name LIKE 'array %' LIMIT 1") is not None
            self._held = {held for held, in self.store.execute("SELECT DISTINCT job FROM holds")}
            work = _Work(rates, owner, recharge, supersede, read, running)
            pending, posted = iter(jobs), list[Posted]()
            while some := [self._known(job, defaults, work) for job, defaults in islice(pending, _TOGETHER)]:
                keyed_records = [keyed for keyed in some if not isinstance(keyed, Posted)]
                self._look_up({key[:2] for key, _ in keyed_records}, {record.account for _, record in keyed_records})
                posted += [keyed if isinstance(keyed, Posted) else self._charge(*keyed, work) for keyed in some]
            self._lessen_holds()
            return posted

    def recharges(self, rates: RateSet, chosen: Callable[[Entry, Job], bool], *, after: int = 0,
                  dry_run: bool = False) -> tuple[int | None, list[tuple[Entry, Posted]]]:
        """Charge anew, in one transaction, the next of the charges in force that were made by other rates. chosen:
        which of them, by the entry and its job; after: number of the entry behind which to look; dry_run: nothing is
        posted. Gives the number to look on behind, None when all were looked at, and of each charge that was chosen
        what became of it."""
        outcomes = list[tuple[Entry, Posted]]()
        with suppress(_Undone), self._together():
            self._keep(rates)
            self._forget_accounts()
            rows = self.store.execute(
                f"SELECT {_ENTRY} FROM charges JOIN entries ON number = entry WHERE charges.rates <> ? AND number > ? "
                "ORDER BY number LIMIT ?", (rates.digest, after, _TOGETHER)).fetchall()
            last_row = rows[-1][0] if len(rows) == _TOGETHER else None
            charges = [(entry, _Record.of(entry)) for entry in map(entry_of, rows)]
            charges = [(entry, record) for entry, record in charges if chosen(entry, record.job)]
            self._look_up({(entry.machine, entry.job) for entry, _ in charges},
                          {record.account for _, record in charges})
            work = _Work(rates, "", recharge=True, supersede=False, read=None, running=True)
            for entry, record in charges:
                key = entry.machine, entry.job, entry.start
                runs = dict(self._runs[key[:2]])
                if runs.pop(entry.start, (0,))[0] == entry.number:      # no other run of the job has reversed it
                    outcomes.append((entry, self._recharged(record, key, entry, runs, work)))
            if dry_run:
                raise _Undone
        return last_row, outcomes

    def _forget_accounts(self) -> None:
        """Look at the settings of accounts anew, which may have been changed since the last transaction."""
        self._used.clear()
        self._unsettled = self.store.one("SELECT 1 FROM settings LIMIT 1") is None

    def has_charged(self, rates: RateSet) -> bool:
        """Whether some charge in force was made by these rates."""
        return self.store.one("SELECT 1 FROM charges WHERE rates = ? LIMIT 1", (rates.digest,)) is not None

    def _known(self, job: Job | OutlinedJob, defaults: JobDefaults | None,
               work: _Work) -> tuple[Key, _Record] | Posted:
        """What a record is charged under and what it says, or that nobody can tell."""
        if isinstance(job, Job):
            whole = whole_of(job, defaults)
            job = self._outlines.of(whole) or whole
        statement = Said(job)
        try:
            key, account = statement.key, self._owner(statement, work.owner)
        except LedgerError as error:
            waits = stage(statement) is Stage.WAITING       # nothing is to be paid, whoever would pay it
            return Posted("not", reason="not-started" if waits else "no-key", detail=str(error))
        if work.read is not None:
            self._same_zone(key[0], work.read)
        text = None if work.read is None or statement.text("Charge") else self._plain.text(job)
        read = [*work.read] if work.read is not None and work.read.zone else None
        return key, _Record(statement, account, document_of(statement.job) if text is None else text, read)

    def _look_up(self, jobs: Set[tuple[str, str]], accounts: Set[str]) -> None:
        """Find the charges in force of some jobs (Machine, id), and some accounts in all currencies."""
        self._write()
        self._batch.stored.clear()
        self._runs.clear()
        by_machine: dict[str, list[str]] = {}
        for machine, job in sorted(jobs):
            by_machine.setdefault(machine, []).append(job)
        names = sorted(accounts)
        self._batch.accounts = {name: {} for name in names}
        for some in _some(names):
            for name, currency, *amounts in self.store.execute(
                    "SELECT account, currency, balance, held, credit FROM accounts WHERE account IN "
                    f"({', '.join('?' * len(some))})", some):
                self._batch.accounts[name][currency] = amounts
        for machine, idents in by_machine.items():
            for some in _some(idents):
                for content, digest, *row in self.store.execute(
                        f"SELECT content, rates, {_ENTRY} FROM charges JOIN entries ON number = entry WHERE "
                        f"charges.machine = ? AND charges.job IN ({', '.join('?' * len(some))})", (machine, *some)):
                    self._batch.stored[row[0]] = row
                    self._runs.setdefault((machine, row[_JOB]), {})[row[_START]] = row[0], content, digest

    def _charge(self, key: Key, new: _Record, work: _Work) -> Posted:
        runs = dict(self._runs.get(key[:2], ()))
        old = runs.pop(key[2], None)
        return self._first(new, key, runs, work) if old is None else self._next(new, key, old, runs, work)

    def _first(self, new: _Record, key: Key, runs: _Runs, work: _Work) -> Posted:
        """A record of a run that has no charge in force. runs: the charges of other runs of the job."""
        priced = self._priced(new, key, runs, work)
        if isinstance(priced, Uncharged):
            if priced.reason == "not-started" and new.said.text("State").casefold() == "completed":
                self._end_hold(key, new.said)
            return Posted("not", reason=str(priced.reason), detail=priced.detail)
        if runs and new.over and (others := self._overlapping(new.job, key, runs)):
            if not work.supersede:
                return Posted("contradicts", others[0], detail="a job runs once at a time; it is charged for a "
                              f"run that starts {at_start(others[0].start)}, and this one starts {at_start(key[2])}")
            for other in others:
                self._reverse(other.number, (*key[:2], other.start), "superseded by another record")
                del runs[other.start]
        if (self._arrays or new.lists_elements) and (same_array := self._of_the_same_array(new, key)):
            if not work.supersede:
                return Posted("contradicts", same_array[0], detail="an array is charged as one or by its elements, and "
                              f"{escape(same_array[0].job, 60)} is charged")
            for other in same_array:
                self._reverse(other.number, (other.machine, other.job, other.start), "superseded by another record")
        return Posted("charged", self._post_charge(new, key, priced, runs, work),
                      account=self.account(new.account, priced.currency), detail=self._odd(new, priced.currency),
                      unsaid=priced.unsaid)

    def _next(self, new: _Record, key: Key, old: _Row, runs: _Runs, work: _Work) -> Posted:
        """A record of a run that is charged. old: the charge in force."""
        number, content, digest = old
        entry = self.entry(number)
        verdict: Verdict = "same"
        if new.content == content and self._by(new, work).digest == digest:
            return Posted("unchanged", entry)
        kept = _Record.of(entry)
        if new.content != content:
            verdict = compared(kept.job, job_of(new.text))
            if verdict != "more" and new.over and new.account != kept.account:
                verdict = "apart"
        if verdict == "more" and not new.over and not work.running:
            return Posted("unchanged", entry)
        if verdict in ("same", "less"):
            return self._recharged(kept, key, entry, runs, work)
        priced = self._priced(new, key, runs, work)
        if verdict == "apart" and not work.supersede:
            if isinstance(priced, Priced) and (new.account, priced.currency, priced.amount) == (
                    entry.account, entry.currency, entry.amount):
                return Posted("unchanged", entry)
            if self._replaced(new, key):
                return Posted("unchanged", entry)
            return Posted("contradicts", entry, detail=differing(kept.job, job_of(new.text)) or
                          f"the account is {entry.account}, not {new.account}")
        if isinstance(priced, Uncharged):
            return self._uncharged(priced, key, entry)
        return self._replace(new, key, entry, priced, runs, work, "superseded by another record")

    def _recharged(self, kept: _Record, key: Key, entry: Entry, runs: _Runs, work: _Work) -> Posted:
        """A record that says nothing new: the charge stays, unless the rates are others and it is to be made anew."""
        used = self._by(kept, work)
        if entry.document.get("rates") == used.digest:
            return Posted("unchanged", entry)
        if not work.recharge:
            return Posted("other-rates", entry)
        priced = self._priced(kept, key, runs, replace(work, running=True))     # it was charged, whatever its stage
        if isinstance(priced, Uncharged):
            return self._uncharged(priced, key, entry)
        if (priced.amount, priced.currency) == (entry.amount, entry.currency):
            return Posted("unchanged", entry)
        return self._replace(kept, key, entry, priced, runs, work, "superseded by another set of rates")

    def _uncharged(self, why: Uncharged, key: Key, entry: Entry) -> Posted:
        """A charged run that has no charge now. It is given back where that is what record and rates mean; where they
        do not go together, nobody can tell, and the charge stays."""
        if why.reason not in _GIVEN_BACK:
            return Posted("not", entry, str(why.reason), f"{why.detail}; the charge in entry {entry.number} stays")
        self._reverse(entry.number, key, f"not chargeable any more: {why.reason}")
        return Posted("not", reason=str(why.reason), detail=why.detail)

    def _by(self, new: _Record, work: _Work) -> RateSet:
        """The rates that hold for a record."""
        return self._guaranteed(new.said, work.rates) if new.promised else work.rates

    def _priced(self, new: _Record, key: Key, runs: _Runs, work: _Work) -> Priced | Uncharged:
        """What a record comes to by the rates that hold for it."""
        if work.rates.attempts == "last" and any(start > key[2] for start in self._attempts(runs, new.said.user)):
            return Uncharged(Reason.EARLIER_ATTEMPT, "a later attempt of the job is charged")
        rates = self._by(new, work)
        of_rates = id(rates), work.running
        if of_rates not in self._plans:
            self._plans[of_rates] = rates, Plans(rates, running=work.running)
        return self._plans[of_rates][1].priced(new.said.subject)

    def _attempts(self, runs: _Runs, user: str) -> dict[int, int]:
        """Of runs with one Machine and Id those of one job: its user's; StartTime and number of the entry. An Id that
        has come round is another user's, sooner or later."""
        return {start: number for start, (number, *_) in sorted(runs.items()) if self.entry(number).user_name == user}

    def _post_charge(self, new: _Record, key: Key, priced: Priced, runs: _Runs, work: _Work) -> Entry:
        """Post a charge; earlier attempts are given back where only the last one counts."""
        if work.rates.attempts == "last":
            for start, number in self._attempts(runs, new.said.user).items():
                if start < key[2]:
                    self._reverse(number, (*key[:2], start), "an earlier attempt; the rates charge the last one")
        if self._held and new.over and reason_word(new.said.text("StatusMessage")) not in PUT_BACK:
            self._end_hold(key, new.said)
        used = self._by(new, work)
        document = {"rates": used.digest, "charge": Encoded(priced.record), "job": new.text, **_ended(new.said)}
        if new.read is not None:
            document["read"] = list(new.read)
        entry = self._post(Entry(0, 0, "charge", new.account, priced.currency, bounded(priced.amount), *key,
                                 user_name=new.said.user, document=document))
        self._batch.charges.append((*key, entry.number, new.content, used.digest))
        for element in new.elements(key[1]):
            self._note(_as_one(key[0], element), str(entry.number))
            self._arrays = True
        self._runs.setdefault(key[:2], {})[key[2]] = entry.number, new.content, used.digest
        return entry

    def _replace(self, new: _Record, key: Key, old: Entry, priced: Priced, runs: _Runs, work: _Work,
                 why: str) -> Posted:
        """Reverse a charge and post another one; what was refunded of it stays so, and all of it where all was."""
        refunded = self._reverse(old.number, key, why)
        entry = self._post_charge(new, key, priced, runs, work)
        kept = entry.amount if refunded == old.amount else min(refunded, entry.amount)
        if refunded and kept:
            self._post(Entry(0, 0, "refund", entry.account, entry.currency, kept, *key, entry.number,
                             user_name=entry.user_name,
                             document={"reason": f"kept from entry {old.number}", **_ended(new.said)}))
        return Posted("superseded", entry, account=self.account(entry.account, entry.currency),
                      detail=self._odd(new, priced.currency), unsaid=priced.unsaid)

    def _odd(self, new: _Record, currency: str) -> str:
        """Why a job that has run should not have used its account; empty where it may."""
        if self._unsettled:
            return ""
        name = new.account, currency
        if name not in self._used:
            self._used[name] = self.settings(*name)
        return self._used[name].refuses(new.account, new.said)

    def _replaced(self, new: _Record, key: Key) -> bool:
        """Whether this very record was charged once, and another one took its place."""
        self._write()
        rows = self.store.execute(
            f"SELECT {COLUMNS} FROM entries WHERE machine = ? AND job = ? AND start = ? AND kind = 'charge'", key)
        content = new.content
        return any(content_of(e.account, str(e.document.get("job"))) == content for e in map(entry_of, rows.fetchall()))

    def _overlapping(self, job: Job, key: Key, runs: _Runs) -> list[Entry]:
        """Charges in force of runs that cannot be others: a job runs once at a time. Without a StartTime nobody can
        tell which run it was."""
        overlapping, new = [], span(job)
        for start, (number, *_) in sorted(runs.items()):
            if NEVER in (start, key[2]):
                overlapping.append(self.entry(number))
            elif new is not None:
                entry = self.entry(number)
                other_span = span(job_of(entry.document["job"]))
                if other_span is not None and other_span[0] < new[1] and new[0] < other_span[1]:
                    overlapping.append(entry)
        return overlapping

    def _of_the_same_array(self, new: _Record, key: Key) -> list[Entry]:
        """The charges in force that this one would repeat: of an array that is charged as one those of its elements, of
        an element that of its array."""
        elements = new.elements(key[1])
        numbers = list[int]()
        if elements or self._arrays:
            self._write()
        for some in _some(elements):
            numbers += [number for number, in self.store.execute(
                f"SELECT entry FROM charges WHERE machine = ? AND job IN ({', '.join('?' * len(some))})",
                (key[0], *some))]
        if self._arrays and not elements and (note := self.source(_as_one(*key[:2]))) is not None:
            numbers = [number for number, in self.store.execute("SELECT entry FROM charges WHERE entry = ?",
                                                                (int(note),))]
        return [self.entry(number) for number in sorted(numbers)]

    def _reverse(self, number: int, key: Key, why: str) -> Decimal:
        """Take a charge back, less what was refunded of it, which is given."""
        old = self.entry(number)
        refunded = self._given_back(number)
        document = {"reason": why} | ({"refunded": plain(refunded)} if refunded else {}) | end_of(old)
        self._post(Entry(0, 0, "reversal", old.account, old.currency, old.amount - refunded, *key, number,
                         user_name=old.user_name, document=document))
        self._write()
        self.store.execute("DELETE FROM charges WHERE machine = ? AND job = ? AND start = ?", key)
        self._runs.get(key[:2], {}).pop(key[2], None)
        return refunded

    def _same_zone(self, machine: str, read: Read) -> None:
        """Refuse a log whose times are read in another zone than those of this machine and format before: all of its
        jobs would be charged a second time."""
        if not read.zone or (machine, read) in self._zones:
            return
        name = f"zone {read.format} {machine}"
        before = self.source(name)
        if before is None:
            self._note(name, read.zone)
        elif before != read.zone:
            raise LedgerError(f"the {read.format} times of {escape(machine, 60)} were read in the zone "
                              f"{escape(before, 60)} until now, not in {escape(read.zone, 60)}: name that one; where "
                              "it was wrong, sssjob ledger rezone takes back what was charged by it")
        self._zones.add((machine, read))

    def rezone(self, machine: str, read: Read) -> int:
        """Have the times of a machine's records of a format read in another zone from now on: charges that were read
        in the old one are reversed, and logs of that format are read from their start the next time. Gives how many
        charges were reversed. Raises LedgerError."""
        with self._together():
            before = self.source(f"zone {read.format} {machine}")
            if before is None:
                raise LedgerError(f"no {read.format} times of {escape(machine, 60)} were read in a zone")
            rows = self.store.execute("SELECT job, start, entry FROM charges WHERE machine = ?", (machine,)).fetchall()
            wrong = [(job, start, entry) for job, start, entry in rows if before != read.zone
                     and self.entry(entry).document.get("read") == [read.format, before]]
            for job, start, entry in wrong:
                self._reverse(entry, (machine, job, start), f"the zone of its times was {before}, not {read.zone}")
            self.store.execute("DELETE FROM sources WHERE name LIKE ?", (f"{read.format}:%",))
            self._note(f"zone {read.format} {machine}", read.zone)
            self._zones.clear()
            return len(wrong)

    def same_machine(self, names: Sequence[str], read: Read, machine: str) -> None:
        """Refuse a log that was read for another machine before. names: what it is known by. Raises LedgerError."""
        with self.store.transaction():
            for name in names:
                source_key = f"machine {read.format} {name}"
                before = self.source(source_key)
                if before is None or not self.store.one("SELECT 1 FROM charges WHERE machine = ? LIMIT 1", (before,)):
                    self._note(source_key, machine)
                elif before != machine:
                    raise LedgerError(f"this log was charged as one of the machine {escape(before, 60)}, not of "
                                      f"{escape(machine, 60)}: its jobs would be charged twice; where that was wrong, "
                                      "sssjob ledger take-back reverses its charges")


def _some(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many names at a time as are asked for by one statement."""
    for at in range(0, len(names), _ASKED):
        yield names[at:at + _ASKED]


def _as_one(machine: str, element: str) -> str:
    """Under which name of a source it is kept that an element of an array was charged with all others as one."""
    return f"array {machine} {element}"


def _ended(statement: Said) -> dict[str, int]:
    """When a run ended, as its entries keep it: EndTime, else StartTime and Duration; nothing where none says so."""
    end = statement.number("EndTime")
    if end is None:
        start, ran = statement.number("StartTime"), statement.number("Duration")
        end = None if start is None or ran is None else seconds(start) + ran
    return {} if end is None or seconds(end) >= NUMBERS else {"end": seconds(end)}
