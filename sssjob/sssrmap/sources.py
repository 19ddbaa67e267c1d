"""Where the objects of queries are: in documents, in the journal of runs, in the ledger.

Jobs are asked as they count: with all defaults folded in, under the names of 3.1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sssjob.document._folding import folded_job, tree
from sssjob.sssrmap.things import DOCUMENT_KINDS, Kind, Thing, Type, document_kind

if TYPE_CHECKING:
    from sssjob.accounting.ledger import Entry, Ledger
    from sssjob.document.model import Document
    from sssjob.run.journal import Journal
    from sssjob.run.rows import Row

__all__ = ["LEDGER_KINDS", "Documents", "JournalSource", "LedgerSource"]


class Documents:
    """The jobs, groups, task groups and tasks of documents."""

    def __init__(self, documents: Callable[[], Iterable[Document]]) -> None:
        self._documents = documents

    def kinds(self) -> tuple[str, ...]:
        """Job, JobGroup, TaskGroup, Task."""
        return DOCUMENT_KINDS

    def kind(self, name: str) -> Kind:
        """One of them."""
        return document_kind(name)

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All objects of a kind, in the order of the documents."""
        for document in self._documents():
            if kind.name == "JobGroup":
                for group in document.groups():
                    yield Thing(kind.name, tree=partial(tree, group))
                continue
            for job, defaults in document.jobs():
                whole = partial(tree, folded_job(job, defaults, "Reject"))
                if kind.name == "Job":
                    yield Thing(kind.name, tree=whole)
                else:
                    for inner in whole().iter(kind.name):
                        yield Thing(kind.name, tree=partial(deepcopy, inner))


class JournalSource:
    """The jobs of the journal, as it knows them: no resource manager is asked.

    Beside the properties of the document there are Key (``@3.1``), NativeId, Executor, Cluster, Site and Outcome.
    only: jobs for which it is true; all without it.
    """

    _MORE: Final = ("Key", "NativeId", "Executor", "Cluster", "Site", "Outcome")

    def __init__(self, journal: Journal, only: Callable[[Row], bool] | None = None) -> None:
        self._journal, self._only = journal, only
        self._number = 0
        self._trees: Mapping[int, Any] = {}

    def kinds(self) -> tuple[str, ...]:
        """Job."""
        return ("Job",)

    def kind(self, name: str) -> Kind:
        """One of them."""
        return document_kind(name, *self._MORE)

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All jobs, the oldest first."""
        for row in self._journal.rows():
            if self._only is None or self._only(row):
                yield self._thing(kind.name, row)

    def _thing(self, kind: str, row: Row) -> Thing:
        cells = {"Key": row.key, "NativeId": row.native_id, "Executor": row.executor, "Cluster": row.cluster,
                 "Site": row.site, "Outcome": row.outcome, "State": row.state}
        if row.id is not None:
            cells["Id"] = row.id
        if row.name is not None:
            cells["Name"] = row.name
        return Thing(kind, cells, lambda: self._tree(row.submission, row.job))

    def _tree(self, number: int, job: int) -> Any:
        """The tree of a job; those of the same submission are made together."""
        if number != self._number:
            from sssjob.run.client import Client

            standing = Client(self._journal).standing(self._journal.entry(number))
            self._trees = {place: tree(folded_job(planned.plan.job,
                                                  planned.plan.group.defaults if planned.plan.group else None,
                                                  "Reject"))
                           for place, planned in enumerate(standing.jobs)}
            self._number = number
        return self._trees[job]


_MONEY: Final[dict[str, Type]] = {"Amount": "number"}
_TRANSACTION: Final[dict[str, Type]] = {
    "Id": "number", "Action": "text", "Account": "text", "Currency": "text", **_MONEY, "JobId": "text",
    "Machine": "text", "User": "text", "Refers": "number", "RequestId": "text", "Description": "text",
    "CreationTime": "time"}
_LEDGER: Final[dict[str, Kind]] = {
    "Account": Kind("Account", {"Name": "text", "Currency": "text", "Balance": "number", "Reserved": "number",
                                "CreditLimit": "number", "Available": "number"}, {"Id": "Name"}),
    "Transaction": Kind("Transaction", _TRANSACTION, {"Name": "JobId"}),
    "Reservation": Kind("Reservation", _TRANSACTION, {"Name": "JobId"}),
    "Quotation": Kind("Quotation", _TRANSACTION, {"Name": "JobId"}),
}
#: Kinds of objects that the ledger has.
LEDGER_KINDS: Final = (*_LEDGER, "Job")


class LedgerSource:
    """The ledger: Account as it stands; Transaction, all entries; Reservation, holds in force; Quotation, quotes; and
    Job, the jobs of the charges in force, each with its Charge."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def kinds(self) -> tuple[str, ...]:
        """Account, Transaction, Reservation, Quotation, Job."""
        return LEDGER_KINDS

    def kind(self, name: str) -> Kind:
        """One of them."""
        return _LEDGER.get(name) or document_kind(name)

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All objects of a kind: accounts by name, all others in the order of the entries."""
        if kind.name == "Job":
            return (Thing("Job", tree=partial(tree, job)) for job in self._ledger.charged())
        if kind.name == "Account":
            return self._accounts()
        return (Thing(kind.name, _cells(entry)) for entry in self._entries(kind.name))

    def _accounts(self) -> Iterator[Thing]:
        for standing in self._ledger.standings():
            own = standing.account
            yield Thing("Account", {
                "Name": own.account, "Currency": own.currency or None, "Balance": f"{own.balance:f}",
                "Reserved": f"{own.held:f}", "CreditLimit": f"{own.credit:f}", "Available": f"{standing.available:f}"})

    def _entries(self, kind: str) -> Iterable[Entry]:
        if kind == "Transaction":
            return self._ledger.entries()
        if kind == "Quotation":
            return (entry for entry in self._ledger.entries() if entry.kind == "quote")
        return self._ledger.holds()


def _cells(entry: Entry) -> dict[str, str | None]:
    return {"Id": str(entry.number), "Action": entry.kind.capitalize(), "Account": entry.account or None,
            "Currency": entry.currency or None, "Amount": f"{entry.amount:f}", "JobId": entry.job or None,
            "Machine": entry.machine or None, "User": entry.user_name or None,
            "Refers": str(entry.refers) if entry.refers else None, "RequestId": entry.token,
            "Description": str(entry.document.get("reason") or "") or None, "CreationTime": str(entry.time)}
