"""The ledger as a bank of Gold: the kinds of objects and the properties that Gold's list commands ask for.

An account is named by its project and has one allocation, without a term; users, projects and machines are those that
stand in the ledger. What the ledger does not know is empty, as it is in Gold. Source: the requests of the commands of
Gold 2.2 (gbalance, gls..., gstatement, gusage).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sssjob.sssrmap.things import Kind, Thing, Type

if TYPE_CHECKING:
    from sssjob.accounting.accounts import Settings
    from sssjob.accounting.ledger import Entry, Ledger
    from sssjob.document.model import Job
    from sssjob.sssrmap.model import Request

__all__ = ["GOLD_KINDS", "JOBS_ONLY", "GoldSource", "digits"]

_WHOLE: Final = re.compile("[0-9]{1,18}")
Cells = Mapping[str, str | None]
#: What Gold has for a time that is not limited.
_BEGIN, _END = "0", "2147483647"
#: Kind of an entry -> the object and the action of a transaction of Gold.
_ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "account": ("Account", "Modify"), "deposit": ("Account", "Deposit"), "withdrawal": ("Account", "Withdraw"),
    "expiry": ("Allocation", "Deactivate"), "credit": ("Allocation", "Modify"), "quote": ("Job", "Quote"),
    "hold": ("Job", "Reserve"), "release": ("Reservation", "Delete"), "charge": ("Job", "Charge"),
    "reversal": ("Job", "Refund"), "refund": ("Job", "Refund"), "adjustment": ("Account", "Deposit"),
    "closing": ("System", "Modify")}
_STAGES: Final = {"charge": "Charge", "hold": "Reserve", "quote": "Quote"}
_TYPES: Final[Mapping[str, Type]] = {
    **dict.fromkeys(("Amount", "Balance", "Reserved", "Available", "CreditLimit", "Deposited", "Delta", "Charge",
                     "Count", "Processors", "Nodes", "WallDuration", "Uses", "Rate"), "number"),
    **dict.fromkeys(("StartTime", "EndTime", "CreationTime"), "time"),
    **dict.fromkeys(("Active", "Access", "Special"), "truth")}
_NAMES: Final[Mapping[str, str]] = {
    "Account": "Id Name Amount Reserved Balance CreditLimit Available Description",
    "AccountProject": "Account Name Access", "AccountUser": "Account Name Access",
    "AccountMachine": "Account Name Access",
    "Allocation": "Id Account Active StartTime EndTime Amount CreditLimit Deposited CallType Description",
    "Project": "Name Active Special Organization Description", "ProjectUser": "Project Name Active",
    "ProjectMachine": "Project Name Active",
    "User": "Name Active Special CommonName PhoneNumber EmailAddress DefaultProject Description",
    "Machine": "Name Active Special Architecture OperatingSystem Organization Description",
    "Transaction": "Id Object Action Actor Name Child JobId Amount Delta Account Project User Machine Allocation Count "
                   "Description CreationTime RequestId Details",
    "Reservation": "Id Name Amount StartTime EndTime Job User Project Machine CallType Description",
    "ReservationAllocation": "Reservation Id Account Amount",
    "Quotation": "Id Amount StartTime EndTime WallDuration Job User Project Machine Uses CallType Description",
    "QuotationChargeRate": "Quotation Type Name Rate",
    "Job": "Id JobId User Project Machine Queue QualityOfService Stage Charge Processors Nodes WallDuration StartTime "
           "EndTime Type CallType QuoteId Description",
}
#: Name of a kind -> the kind.
GOLD_KINDS: Final[Mapping[str, Kind]] = {
    name: Kind(name, {part: _TYPES.get(part, "text") for part in names.split()}) for name, names in _NAMES.items()}
#: Properties that only a job of the bank has: by them a query of jobs is one about the bank.
JOBS_ONLY: Final = frozenset(("Stage", "Charge", "CallType", "QuoteId"))


class GoldSource:
    """The objects of a ledger as Gold has them. request: what is asked; its Options choose accounts (User, Machine,
    Active: those that may be used so) and say of which Time, in epoch seconds, the amounts of allocations are."""

    def __init__(self, ledger: Ledger, request: Request) -> None:
        self._ledger, self._request = ledger, request
        moment = request.option("Time") or ""
        self._at = int(moment) if _WHOLE.fullmatch(moment) else None

    def kinds(self) -> tuple[str, ...]:
        """Those of GOLD_KINDS."""
        return tuple(GOLD_KINDS)

    def kind(self, name: str) -> Kind:
        """One of them."""
        return GOLD_KINDS[name]

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All objects of a kind, by name or in the order of the entries."""
        rows: Mapping[str, Callable[[], Iterable[Cells]]] = {
            "Account": self._accounts, "Allocation": self._allocations, "Transaction": self._transactions,
            "Reservation": self._reservations, "Quotation": self._quotations, "Job": self._jobs,
            "ReservationAllocation": self._held,
            "AccountProject": lambda: ({"Account": name, "Name": name, "Access": "True"} for name in self._names()),
            "AccountUser": lambda: self._allowed("user"), "AccountMachine": lambda: self._allowed("machine"),
            "Project": lambda: map(self._named, self._names()),
            "User": lambda: map(self._named, self._seen("user_name")),
            "Machine": lambda: map(self._named, self._seen("machine")),
            "ProjectUser": lambda: self._of_projects("user_name"),
            "ProjectMachine": lambda: self._of_projects("machine"), "QuotationChargeRate": tuple}
        return (Thing(kind.name, cells) for cells in rows[kind.name]())

    # -- accounts
    def _accounts(self) -> Iterator[Cells]:
        for standing in self._ledger.standings():
            own = standing.account
            if not self._is_asked(standing.settings):
                continue
            yield {"Id": own.account, "Name": own.account, "Amount": digits(own.balance), "Reserved": digits(own.held),
                   "Balance": digits(own.balance - own.held), "CreditLimit": digits(own.credit),
                   "Available": digits(standing.available)}

    def _is_asked(self, settings: Settings) -> bool:
        """Whether Options ask for an account that may be used so."""
        for option, names in (("User", settings.users), ("Machine", settings.machines)):
            if (name := self._request.option(option)) and names is not None and name not in names:
                return False
        active = self._request.option("Active")
        return not active or (active.lower() == "true") is not settings.closed

    def _allocations(self) -> Iterator[Cells]:
        """What an account has, with all that was ever put in."""
        deposited: dict[tuple[str, str], Decimal] = {}
        amounts: dict[tuple[str, str], Decimal] = {}
        for entry in self._ledger.entries(until=self._at):
            key = entry.account, entry.currency
            amounts[key] = amounts.get(key, Decimal(0)) + entry.change
            if entry.kind == "deposit":
                deposited[key] = deposited.get(key, Decimal(0)) + entry.amount
        for standing in self._ledger.standings():
            own, key = standing.account, (standing.account.account, standing.account.currency)
            amount = own.balance if self._at is None else amounts.get(key, Decimal(0))
            yield {"Id": own.account, "Account": own.account, "Active": "True", "StartTime": _BEGIN, "EndTime": _END,
                   "Amount": digits(amount), "CreditLimit": digits(own.credit),
                   "Deposited": digits(deposited.get(key, Decimal(0))), "CallType": "Normal"}

    def _names(self) -> list[str]:
        return list(dict.fromkeys(account.account for account in self._ledger.accounts()))

    def _allowed(self, what: str) -> Iterator[Cells]:
        """Who may use each account; ANY where all may."""
        for standing in self._ledger.standings():
            settings = standing.settings
            names = settings.users if what == "user" else settings.machines
            for name in ("ANY",) if names is None else names:
                yield {"Account": standing.account.account, "Name": name, "Access": "True"}

    # -- what stands in the entries
    def _seen(self, field: str) -> list[str]:
        return sorted({getattr(entry, field) for entry in self._ledger.entries()} - {""})

    def _of_projects(self, field: str) -> Iterator[Cells]:
        pairs = {(entry.account, getattr(entry, field)) for entry in self._ledger.entries()}
        return ({"Project": project, "Name": name, "Active": "True"} for project, name in sorted(pairs) if name)

    @staticmethod
    def _named(name: str) -> Cells:
        return {"Name": name, "Active": "True", "Special": "False"}

    def _transactions(self) -> Iterator[Cells]:
        for entry in self._ledger.entries():
            object_, action = _ACTIONS[entry.kind]
            is_job = object_ == "Job"
            yield {"Id": str(entry.number), "Object": object_, "Action": action, "Actor": _actor(entry),
                   "Name": (entry.job if is_job else entry.account) or None, "JobId": entry.job or None,
                   "Amount": digits(entry.amount), "Delta": digits(entry.change) if entry.change else None,
                   "Account": entry.account or None, "Project": entry.account or None, "User": entry.user_name or None,
                   "Machine": entry.machine or None, "Allocation": entry.account or None,
                   "Description": str(entry.document.get("reason") or "") or None, "CreationTime": str(entry.time),
                   "RequestId": entry.token, "Details": _arithmetic(entry)}

    def _reservations(self) -> Iterator[Cells]:
        for entry in self._ledger.holds():
            yield {"Id": str(entry.number), "Name": entry.job or None, "Amount": digits(entry.amount),
                   "StartTime": str(entry.time), "EndTime": _expiry(entry), "Job": str(entry.number),
                   "User": entry.user_name or None, "Project": entry.account or None, "Machine": entry.machine or None,
                   "CallType": "Normal"}

    def _held(self) -> Iterator[Cells]:
        for entry in self._ledger.holds():
            yield {"Reservation": str(entry.number), "Id": entry.account, "Account": entry.account,
                   "Amount": digits(entry.amount)}

    def _quotations(self) -> Iterator[Cells]:
        for entry in self._ledger.entries():
            if entry.kind == "quote":
                yield {"Id": str(entry.number), "Amount": digits(entry.amount), "StartTime": str(entry.time),
                       "EndTime": _expiry(entry), "Job": str(entry.number), "User": entry.user_name or None,
                       "Project": entry.account or None, "Machine": entry.machine or None, "Uses": "1",
                       "CallType": "Normal"}

    def _jobs(self) -> Iterator[Cells]:
        """Jobs that were quoted, held or charged: an entry each, as in Gold; of a charge what was not given back."""
        back: dict[int, Decimal] = {}
        for entry in self._ledger.entries():
            if entry.kind in ("refund", "reversal"):
                back[entry.refers] = back.get(entry.refers, Decimal(0)) + entry.amount
        for entry in self._ledger.entries():
            if entry.kind in _STAGES:
                is_charge = entry.kind == "charge"
                yield {"Id": str(entry.number), "JobId": entry.job or None, "User": entry.user_name or None,
                       "Project": entry.account or None, "Machine": entry.machine or None,
                       "Stage": _STAGES[entry.kind], "CallType": "Normal",
                       "Charge": digits(entry.amount - back.get(entry.number, Decimal(0))) if is_charge else "0",
                       } | (_of_job(entry) if is_charge else {})


def _of_job(entry: Entry) -> dict[str, str | None]:
    """What the document of a charged job says."""
    from sssjob.accounting.entries import job_of

    job: Job = job_of(entry.document["job"])
    names = {"Queue": "Queue", "QualityOfService": "QualityOfService", "Processors": "Processors", "Nodes": "NodeCount",
             "WallDuration": "Duration", "StartTime": "StartTime", "EndTime": "EndTime", "Type": "JobType"}
    scopes = (*job.containers("Delivered"), job)
    values = {shown: next((value for scope in scopes if (value := scope.value(name)) is not None), None)
              for shown, name in names.items()}
    return {shown: None if value is None else str(value) for shown, value in values.items()}


def _actor(entry: Entry) -> str | None:
    """Who asked the server for it, by the name that its request has there."""
    kind, _, rest = (entry.token or "").partition(":")
    return rest.partition(":")[0] or None if kind == "serve" else None


def _expiry(entry: Entry) -> str:
    expires = entry.document.get("expires")
    return str(expires) if isinstance(expires, int) else _END


def _arithmetic(entry: Entry) -> str | None:
    charge = entry.document.get("charge")
    return str(charge["arithmetic"]) if isinstance(charge, Mapping) and "arithmetic" in charge else None


def digits(amount: Decimal) -> str:
    """An amount without zeros behind the point."""
    return f"{amount.normalize():f}" if amount else "0"
