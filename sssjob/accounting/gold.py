"""A bank of Gold as a plan for a ledger: its accounts, what is left of their allocations, and its ChargeRates.

    Id|Account|StartTime|EndTime|Amount|CreditLimit|Deposited|Active|CallType|Description
    1|1|2026-01-01|infinity|1000|0|1500|True|Normal|grant 17

A table is what ``goldsh OBJECT Query --raw`` prints, one file an object, called as the object is; tables of the
database have the same columns with ``g_`` before their names. Jobs of a ledger use the account that is called as their
Project, so an account of Gold gets the name of its project. What a ledger cannot say is a finding. Source: Gold 2.2,
its manual (accounts, allocations, charge rates) and the attributes that its bank defines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Final

from sssjob.accounting.accounts import Settings
from sssjob.accounting.arithmetic import amount_in
from sssjob.accounting.currencies import digits_in, digits_of
from sssjob.accounting.ledger import Entry, Ledger
from sssjob.findings import Findings, Policy, escape

__all__ = ["TABLES", "Allocation", "Bank", "Row", "bank_of", "bring", "rates_of", "rows_of"]

#: Table -> the columns that it has to have. Others are optional.
TABLES: Final[dict[str, tuple[str, ...]]] = {
    "Account": ("Id", "Name"), "Allocation": ("Id", "Account", "Amount"), "AccountProject": ("Account", "Name"),
    "AccountUser": ("Account", "Name"), "AccountMachine": ("Account", "Name"), "AccountAccount": ("Account", "Id"),
    "ProjectUser": ("Project", "Name"), "ProjectMachine": ("Project", "Name"),
    "ChargeRate": ("Type", "Name", "Amount"), "Reservation": ("Id",),
}
_TYPES: Final = ("VBR", "NBR", "VBU", "NBU", "VBM", "NBM", "VBF", "NBF")
_ALWAYS: Final = 2**31 - 1      # of the database: never ends
_DIGITS: Final = re.compile(r"-?\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: its texts by column. file, line: where it stands."""

    file: str
    line: int
    cells: Mapping[str, str]

    def get(self, column: str) -> str:
        """The text of a column; empty where the table does not have it."""
        return self.cells.get(column, "")

    def says(self, column: str, usual: bool) -> bool:
        """A column of True or False. usual: where it says neither."""
        word = self.get(column).lower()
        return word in ("true", "t", "1") if word in ("true", "t", "1", "false", "f", "0") else usual


@dataclass(frozen=True, slots=True)
class Allocation:
    """What is left of an allocation. since, until: epoch seconds, None: without such an end; below 0: an account owes
    it."""

    ident: str
    amount: Decimal
    since: int | None
    until: int | None
    description: str


@dataclass(slots=True)
class Bank:
    """What is brought over of one account. ident: of Gold; name: in the ledger."""

    ident: str
    name: str
    settings: Settings = field(default_factory=Settings)
    credit: Decimal = Decimal(0)
    allocations: list[Allocation] = field(default_factory=list)


def rows_of(text: str, name: str, file: str, findings: Findings) -> list[Row]:
    """The rows of a table that are in force; those that cannot be read are errors."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    columns = [cell.strip() for cell in lines[0].split("|")]
    lower = all(column.startswith("g_") for column in columns)
    columns_known = {column.lower().replace("_", ""): column for column in _COLUMNS}
    columns = [columns_known.get(column.removeprefix("g_").replace("_", "").lower(), column) if lower else
               columns_known.get(column.lower(), column) for column in columns]
    lacking = [column for column in TABLES[name] if column not in columns]
    if lacking or len(set(columns)) < len(columns):
        findings.add("SSS540", "header", f"the first line of {name} does not name {', '.join(lacking)}" if lacking else
                     f"the first line of {name} names a column twice", severity="error", line=1)
        return []
    rows = []
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.strip() or set(line) <= set("-| +"):
            continue
        if len(cells) != len(columns):
            findings.add("SSS540", "columns", f"{len(cells)} columns, not {len(columns)}", severity="error",
                         line=number)
            continue
        row = Row(file, number, dict(zip(columns, cells, strict=True)))
        if not row.says("Deleted", False):
            rows.append(row)
    return rows


_COLUMNS: Final = ("Id", "Name", "Account", "Project", "StartTime", "EndTime", "Amount", "CreditLimit", "Deposited",
                   "Active", "CallType", "Description", "Access", "Type", "Instance", "DepositShare", "Overflow",
                   "Deleted", "Job", "User", "Machine", "Admin")


class _Reading:
    """One bank while it is read. tables: rows by name; zone: of times without an offset; now: epoch seconds."""

    def __init__(self, tables: Mapping[str, list[Row]], zone: tzinfo, now: int,
                 findings: Callable[[str], Findings]) -> None:
        self.tables, self.zone, self.now, self._findings = tables, zone, now, findings

    def rows(self, table: str, **values: str) -> Iterator[Row]:
        """The rows of a table that have these values."""
        return (row for row in self.tables.get(table, ()) if all(row.get(k) == v for k, v in values.items()))

    def tell(self, row: Row, subject: str, message: str, *, wrong: bool = False) -> None:
        """A finding about a row. wrong: nothing is brought over until it is mended."""
        self._findings(row.file).add("SSS540" if wrong else "SSS545", subject, message, policy=Policy.WARN,
                                     severity="error" if wrong else "warning", line=row.line)

    def banks(self) -> list[Bank]:
        """All accounts."""
        banks: dict[str, Bank] = {}
        for row in self.rows("Account"):
            ident = row.get("Id")
            name = self._name(row, {bank.name for bank in banks.values()})
            if not ident or not name or ident in banks:
                self.tell(row, "Account", "an account needs an Id of its own, and a project or a Name", wrong=True)
                continue
            banks[ident] = Bank(ident, name)
        for row in self.rows("Account"):
            if (bank := banks.get(row.get("Id"))) is not None:
                bank.settings = Settings(self._parent(bank, banks), self._allowed(bank, row, "User"),
                                         self._allowed(bank, row, "Machine"))
        for row in self.rows("Allocation"):
            self._allocate(row, banks.get(row.get("Account")))
        for row in self.rows("Reservation"):
            self.tell(row, "Reservation", f"reservation {escape(row.get('Id'), 40)} is not brought over: hold the job "
                      "with sssjob ledger hold")
        return list(banks.values())

    def _name(self, row: Row, used: set[str]) -> str:
        """What an account is called: as its only project."""
        projects = [p.get("Name") for p in self.rows("AccountProject", Account=row.get("Id")) if p.says("Access", True)]
        denied = [p for p in self.rows("AccountProject", Account=row.get("Id")) if not p.says("Access", True)]
        if len(projects) == 1 and not denied and projects[0] not in ("ANY", "MEMBERS", "NONE", *used):
            return projects[0]
        name = row.get("Name")
        if name in used:
            name = f"{name} ({row.get('Id')})"
        self.tell(row, "Project", f"account {escape(row.get('Id'), 40)} is called {escape(name, 60)}: jobs find the "
                  "account of their own Project, and it is for "
                  + (escape(", ".join([*projects, *("-" + p.get("Name") for p in denied)]), 100) or "no project"))
        return name

    def _allowed(self, bank: Bank, row: Row, kind: str) -> tuple[str, ...] | None:
        """The users or machines that an account is for; None: all."""
        listed = list(self.rows(f"Account{kind}", Account=bank.ident))
        granted = [r.get("Name") for r in listed if r.says("Access", True)]
        denied = {r.get("Name") for r in listed if not r.says("Access", True)}
        names: list[str] = []
        for name in granted:
            if name != "MEMBERS":
                names.append(name)
                continue
            members = [r.get("Name") for p in self.rows("AccountProject", Account=bank.ident)
                       for r in self.rows(f"Project{kind}", Project=p.get("Name")) if r.says("Active", True)]
            if f"Project{kind}" not in self.tables:
                self.tell(row, kind, f"account {escape(bank.name, 60)} is for the {kind.lower()}s of its project, "
                          f"which the table Project{kind} would name: it is open to all")
                return None
            names += members
        if "ANY" in names or not listed:
            if denied:
                self.tell(row, kind, f"account {escape(bank.name, 60)} is for all {kind.lower()}s but "
                          f"{escape(', '.join(sorted(denied)), 100)}: a ledger names those that may, it is open to all")
            return None
        return tuple(sorted({*names} - denied - {"NONE"}))

    def _parent(self, bank: Bank, banks: Mapping[str, Bank]) -> str:
        """The account that covers what this one lacks."""
        for row in self.rows("AccountAccount", Id=bank.ident):
            if row.get("DepositShare") not in ("", "0"):
                self.tell(row, "DepositShare", "shares of deposits are not brought over")
            if row.says("Overflow", False) and row.get("Account") in banks:
                return banks[row.get("Account")].name
        return ""

    def _allocate(self, row: Row, bank: Bank | None) -> None:
        """Add an allocation to its account."""
        ident = escape(row.get("Id"), 40)
        if bank is None:
            self.tell(row, "Account", f"allocation {ident} is of no account that is there", wrong=True)
            return
        try:
            amount, credit = self._amount(row, "Amount"), self._amount(row, "CreditLimit")
            since, until = self._moment(row, "StartTime"), self._moment(row, "EndTime")
        except _Wrong as wrong:
            self.tell(row, "Allocation", str(wrong), wrong=True)
            return
        if row.get("CallType") not in ("", "Normal"):
            self.tell(row, "CallType", f"allocation {ident} is for {escape(row.get('CallType'), 40)} calls, which a "
                      "ledger does not have: it is left out")
        elif until is not None and until <= self.now:
            if amount:
                self.tell(row, "EndTime", f"allocation {ident} is over: {amount:f} are left out")
        else:
            if credit and (since is not None or until is not None):
                self.tell(row, "CreditLimit", f"the credit limit of allocation {ident} has a term, which it loses")
            bank.credit += credit
            if amount:
                bank.allocations.append(Allocation(row.get("Id"), amount, since, until, row.get("Description")))

    @staticmethod
    def _amount(row: Row, column: str) -> Decimal:
        """An amount, 0 where the table has none."""
        text = row.get(column) or "0"
        number = amount_in(text)
        if number is None:
            raise _Wrong(f"{column} {escape(text, 40)!r} is no amount")
        return number

    def _moment(self, row: Row, column: str) -> int | None:
        """Epoch seconds; None where there is no such end."""
        text = row.get(column)
        if text.lower() in ("", "infinity", "-infinity", "null"):
            return None
        if _DIGITS.fullmatch(text):
            return int(text) if 0 < int(text) < _ALWAYS else None
        try:
            moment = datetime.fromisoformat(text)
            return int((moment if moment.tzinfo else moment.replace(tzinfo=self.zone)).timestamp())
        except (ValueError, OverflowError):
            raise _Wrong(f"{column} {escape(text, 40)!r} is no time, as 2026-01-31") from None


class _Wrong(Exception):
    """A text of an allocation that is none of its kind."""


def bank_of(tables: Mapping[str, list[Row]], zone: tzinfo, now: int, findings: Callable[[str], Findings]) -> list[Bank]:
    """The accounts of a bank. zone: of times without an offset; now: epoch seconds, by which allocations are over;
    findings: those of a file."""
    return _Reading(tables, zone, now, findings).banks()


def bring(ledger: Ledger, banks: list[Bank], currency: str) -> list[Entry]:
    """Post what is not there yet, all or nothing; the same again posts nothing. Raises LedgerError."""
    posted: list[Entry] = []
    with ledger.store.transaction():
        before = ledger.last()
        for bank in banks:
            reason, token = f"account {bank.ident} of Gold", f"gold {currency or 'credits'}"
            posted.append(ledger.credit(bank.name, bank.credit, currency, reason=reason,
                                        token=f"{token} account {bank.ident}", new=True))
            finest = max((digits_in(allocation.amount) for allocation in bank.allocations), default=0)
            of_currency = digits_of(currency)
            if of_currency is not None and ledger.settings(bank.name, currency).digits != finest > of_currency:
                posted.append(ledger.configure(bank.name, currency, reason=reason, digits=finest))
            for allocation in bank.allocations:
                why = f"allocation {allocation.ident} of Gold" + (f": {allocation.description}"
                                                                  if allocation.description else "")
                name = f"{token} allocation {allocation.ident}"
                posted.append(
                    ledger.deposit(bank.name, allocation.amount, currency, reason=why, token=name, new=True,
                                   since=allocation.since,
                                   until=allocation.until) if allocation.amount > 0 else
                    ledger.adjust(bank.name, allocation.amount, currency, reason=why, token=name, new=True))
        for bank in banks:
            settings = replace(ledger.settings(bank.name, currency), digits=None)
            if bank.settings not in (settings, Settings()):
                posted.append(ledger.configure(
                    bank.name, currency, reason=f"account {bank.ident} of Gold", parent=bank.settings.parent,
                    users=bank.settings.users, machines=bank.settings.machines))
    return [entry for entry in posted if entry.number > before]


# --- rates ----------------------------------------------------------------------------------------------------------

def rates_of(rows: list[Row], name: str, currency: str, precision: int, findings: Findings) -> str:
    """ChargeRates as TOML for ``read_rates``, of profile gold."""
    lines = [f"name = {_text(name)}", 'version = "1"', 'profile = "gold"', f"precision = {precision}"]
    lines += [f"currency = {_text(currency)}"] if currency else []
    for row in rows:
        kind, subject, instance, amount = (row.get(column) for column in ("Type", "Name", "Instance", "Amount"))
        number = amount_in(amount)
        if number is None or not kind or not subject:
            findings.add("SSS540", "ChargeRate", f"Amount {escape(amount, 40)!r} is no rate", severity="error",
                         line=row.line)
            continue
        rate: dict[str, str] = {"type": _text(kind), "name": _text(subject)}
        if kind not in _TYPES:          # of several dimensions: what is multiplied, what selects, and its value
            rate = {"type": '"VBR"', "name": _text(kind), "when": f"{{ {_text(subject)} = {_text(instance)} }}"}
        elif kind.startswith("NB"):
            rate["instance"] = _text(instance)
        elif instance:
            findings.add("SSS545", "Instance", f"a {kind} of {escape(subject, 40)} goes by no Instance: "
                         f"{escape(instance, 40)} is left out", severity="warning", line=row.line)
        if not instance and "name" in rate and (kind not in _TYPES or kind.startswith("NB")):
            findings.add("SSS545", "Instance", f"a {escape(kind, 40)} of {escape(subject, 40)} without Instance meets "
                         "no job: it is left out", severity="warning", line=row.line)
            continue
        lines += ["", "[[rate]]", *(f"{key} = {value}" for key, value in rate.items()), f"rate = {number:f}"]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A string of TOML."""
    return json.dumps(text).replace("\x7f", "\\u007F")
