"""Runs that have no charge because of another record: of a requeued job of which rates charge only the last run, Jobs
of one Machine, Id and User that started at different times; and of a run of which several records tell, all but one.
As in a ledger only a run that is charged makes an earlier one free: not one that still runs.

A later run may stand anywhere behind an earlier one, so nothing is settled before all jobs are known. ``earlier_runs``
is for a document, which is; ``LastRuns`` is for totals; ``settled`` and ``settle`` are for charge tables, of which a
second look changes the rows that it has to.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

from sssjob.accounting.amounts import Reason
from sssjob.accounting.parquet import batches_of, parquet_table
from sssjob.accounting.pricing import Charge, Uncharged, charge
from sssjob.accounting.rates import RateSet
from sssjob.accounting.table import COLUMNS, Batch, RowBatch, Tally, batch, shown
from sssjob.document.endings import Ended
from sssjob.document.held import seconds
from sssjob.document.inherit import effective
from sssjob.document.model import Document, Job, JobDefaults

if TYPE_CHECKING:
    from sssjob.accounting.privacy import Privacy
    from sssjob.validation.large import Large

__all__ = ["EARLIER", "LastRuns", "earlier_runs", "last_runs", "settle", "settled"]

#: Why a run is not charged.
EARLIER: Final = Uncharged(Reason.EARLIER_ATTEMPT, "a later attempt of the job is charged")
_MACHINE, _ID, _USER, _START, _CHARGE, _REASON = map(
    list(COLUMNS).index, ("machine", "id", "user", "start", "charge", "reason"))
#: The same of jobs.
_RUN: Final = ("Machine", "Id", "User", "StartTime")


class _Runs:
    """Runs in their order. earlier: the numbers of those of which a later one is charged; several records of a run, all
    with its StartTime, are not earlier than each other."""

    def __init__(self) -> None:
        self.earlier: set[int] = set()
        self._last: dict[tuple[str, str, str], tuple[int, ...]] = {}    # start, and the numbers of its records
        self._seen = self._settled = 0

    def add(self, is_charged: bool, machine: object, ident: object, user: object, start: object) -> None:
        """Take the next run; one without Id or StartTime is no run of another one's job, nor is one of another user,
        whose Id has come round. Blanks at the ends of texts do not count, as in a document."""
        number, self._seen = self._seen, self._seen + 1
        if not is_charged or not isinstance(ident, str) or not ident.strip() or not isinstance(start, int):
            return
        key = str(machine or "").strip(), ident.strip(), str(user or "").strip()
        start_s = seconds(start)
        last = self._last.setdefault(key, (start_s,))
        if start_s < last[0]:
            self.earlier.add(number)
        elif start_s == last[0]:
            self._last[key] = *last, number
        else:
            self.earlier.update(last[1:])
            self._last[key] = start_s, number

    # -- of tables
    def look(self, some: Batch) -> None:
        """Take the rows of a batch."""
        for *run, is_charged in zip(*_columns(some, _MACHINE, _ID, _USER, _START), strict=True):
            self.add(is_charged, *run)

    def settled(self, some: Batch, rates: RateSet, tally: Tally) -> Batch:
        """The same rows, in the order in which they were looked at, none of an earlier run with a charge; the tally
        follows."""
        first, self._settled = self._settled, self._settled + some.num_rows
        rows = self.earlier.intersection(range(first, self._settled))
        return _given_up(some, {number - first for number in rows}, EARLIER.reason, rates, tally)


class _Charged:
    """Runs that were charged: each keeps the charge of the first record that tells of it. Days of a log overlap, and
    copies lie beside them."""

    def __init__(self) -> None:
        self._charged = Ended()

    def again(self, some: Batch) -> set[int]:
        """Which rows of a batch are charged for a run that was charged before."""
        columns = _columns(some, _MACHINE, _ID, _START)
        runs = {number: ((machine or "").strip(), ident.strip(), seconds(start))
                for number, (machine, ident, start, is_charged) in enumerate(zip(*columns, strict=True))
                if is_charged and ident is not None and start is not None}
        return {number for number, first in zip(runs, self._charged.first(runs.values()), strict=True) if not first}

    def settled(self, some: Batch, rates: RateSet, tally: Tally) -> Batch:
        """The same rows, none with a charge for a run that was charged before; the tally follows."""
        return _given_up(some, self.again(some), Reason.REPEATED, rates, tally)


def _columns(some: Batch, *places: int) -> list[Sequence[Any]]:
    """Columns of a batch, and whether each row has a charge."""
    if isinstance(some, RowBatch):
        return [*([row[at] for row in some.rows] for at in places), [row[_CHARGE] is not None for row in some.rows]]
    return [*(some.column(at).to_pylist() for at in places), some.column(_CHARGE).is_valid().to_pylist()]


def _given_up(some: Batch, numbers: Collection[int], reason: Reason, rates: RateSet, tally: Tally) -> Batch:
    """The rows of a batch, some of them without their charge for a reason; the tally follows."""
    if not numbers:
        return some
    rows = some.rows if isinstance(some, RowBatch) else [tuple(row.values()) for row in some.to_pylist()]
    for number in numbers:
        tally.give_up(rows[number][_CHARGE], rows[number][_REASON], str(reason))
    return batch([(*row[:_CHARGE], None, str(reason)) if number in numbers else row for number, row in enumerate(rows)],
                 rates)


class LastRuns:
    """Jobs of which only the last run is charged. They wait in a file until all are there; of each its Id and last
    start are held in memory. charges: whether a job would be charged."""

    def __init__(self, file: IO[bytes], charges: Callable[[Job, JobDefaults | None], bool]) -> None:
        self._runs, self._count, self._file, self._charges = _Runs(), 0, file, charges

    def add(self, pair: tuple[Job, JobDefaults | None]) -> None:
        """Take the next job with the defaults beside it."""
        job, defaults = pair
        view = effective(job, defaults)
        self._runs.add(self._charges(job, defaults), *map(view.value, _RUN))
        pickle.dump((job, defaults), self._file, pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def __iter__(self) -> Iterator[tuple[Job, JobDefaults | None, bool]]:
        """The jobs in their order, and whether a later run of each is charged."""
        self._file.seek(0)
        for number in range(self._count):
            job, defaults = pickle.load(self._file)
            yield job, defaults, number in self._runs.earlier


@contextmanager
def last_runs(charges: Callable[[Job, JobDefaults | None], bool]) -> Iterator[LastRuns]:
    """A place for jobs to wait in. charges: whether a job would be charged."""
    with TemporaryFile(prefix=".sssjob-") as file:
        yield LastRuns(file, charges)


def earlier_runs(document: Document | Large, rates: RateSet) -> set[int]:
    """The numbers of the jobs of a document of which a later run is charged; none where each run is."""
    runs = _Runs()
    if rates.attempts == "last":
        for job, defaults in document.jobs():
            view = effective(job, defaults)
            runs.add(isinstance(charge(job, rates, defaults), Charge), *map(view.value, _RUN))
    return runs.earlier


def settled(batches: Iterable[Batch], rates: RateSet, tally: Tally, folder: str | None = None) -> Iterator[Batch]:
    """The batches of one charge table, in which each run is charged once; where the rates charge the last run only,
    they wait in a temporary file until all are there. tally: of all of them, right when they are through; folder: of
    the file."""
    once = _Charged()
    if rates.attempts != "last":
        yield from (once.settled(some, rates, tally) for some in batches)
        return
    runs, count = _Runs(), 0
    with TemporaryFile(prefix=".sssjob-", dir=folder) as file:
        for some in batches:
            runs.look(some)
            pickle.dump(some, file, pickle.HIGHEST_PROTOCOL)
            count += 1
        file.seek(0)
        for _ in range(count):
            yield once.settled(runs.settled(pickle.load(file), rates, tally), rates, tally)


def settle(files: Sequence[tuple[str, str]], rates: RateSet, tally: Tally, privacy: Privacy | None = None) -> None:
    """Make charge tables of some that are there: (Parquet file, the one that it becomes, maybe the same). tally: of all
    of them; privacy: what may be shown in those that are made."""
    once = _Charged()
    if rates.attempts == "last":
        runs = _Runs()
        for path, _ in files:
            for some in batches_of(path):
                runs.look(some)
        for path, target in files:
            _rewrite(path, target, lambda some: once.settled(runs.settled(some, rates, tally), rates, tally), rates,
                     privacy)
        return
    for path, target in files:
        again = [once.again(some) for some in batches_of(path)]
        if path != target or any(again):
            _rewrite(path, target, partial(_without, iter(again), rates, tally), rates, privacy)


def _without(again: Iterator[set[int]], rates: RateSet, tally: Tally, some: Batch) -> Batch:
    """A batch without the charges of runs that were charged before. again: which rows of each batch these are."""
    return _given_up(some, next(again), Reason.REPEATED, rates, tally)


def _rewrite(path: str, target: str, change: Callable[[Batch], Batch], rates: RateSet, privacy: Privacy | None) -> None:
    """Write the rows of a Parquet file, changed and as they may be shown, as another one or in its place."""
    with parquet_table(target, rates) as table:
        for some in batches_of(path):
            rows = change(some)
            table.add(rows if privacy is None else shown(rows, privacy))
