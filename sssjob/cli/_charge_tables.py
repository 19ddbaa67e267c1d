"""Charge tables on the command line: one table of all logs, or a folder of Parquet files; made by one process or by
several."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sssjob.accounting.parquet import batches_of, parquet_table
from sssjob.accounting.table import Tally, arrow, csv_text, shown
from sssjob.cli._files import emit
from sssjob.cli._findings import problem, say
from sssjob.cli._log_findings import LogFindings
from sssjob.cli._options import Session, bounded
from sssjob.cli._prices import nothing_taken, tell_unsaid
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import Counts

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.partitions import Result, Work
    from sssjob.accounting.privacy import Privacy
    from sssjob.cli._recognised import Looked

_PARQUET: Final = ".parquet"


def charge_logs(session: Session, names: Sequence[str], rates: RateSet, source: str, options: Mapping[str, str],
                output: str, jobs: int, dask: str | None, looked: Looked, privacy: Privacy | None = None) -> int:
    """The charge table of accounting logs; the exit status."""
    logs = _Logs(session, names, rates, source, options, looked, jobs, privacy)
    folder = output.endswith("/") or os.path.isdir(output)
    if not folder and dask is not None:
        raise UsageError("--dask makes a Parquet file for each log: name a folder, -o DIR/")
    if folder or jobs > 1 or output.endswith(_PARQUET):
        arrow()
    if folder or jobs > 1:
        logs.check("a folder of tables needs" if folder else "--jobs needs")
    if folder:
        return logs.folder(output, dask)
    if output.endswith(_PARQUET):
        return logs.parquet(output)
    pieces = logs.jsonl() if session.as_json and output == "-" else logs.csv()
    if output == "-":
        for piece in pieces:
            emit(piece, safe=True)
    else:
        text = "".join(pieces)
        if session.failures or session.errors:
            return session.status()
        emit(text, output)
    return session.status()


@dataclass(slots=True)
class _Logs:
    """Logs that are charged."""

    session: Session
    names: Sequence[str]
    rates: RateSet
    source: str
    options: Mapping[str, str]
    looked: Looked
    jobs: int
    privacy: Privacy | None

    def check(self, what: str) -> None:
        """UsageError where there is something that other processes cannot read by its name."""
        if "-" in self.names:
            raise UsageError(f"{what} the names of logs, not standard input")
        if self.looked.kept:
            raise UsageError(f"{what} files where --from is auto, and {escape(self.looked.kept[0])} is none")

    # -- batches
    def batches(self, beside: str = "") -> Iterable[Any]:
        """The batches of all logs, one after another; then what became of the records and jobs is reported. beside: the
        folder for what several processes make."""
        from sssjob.accounting.attempts import settled

        whole, read = Tally(), list[Counts]()
        batches = self._one_by_one(whole, read) if self.jobs == 1 else self._side_by_side(whole, read, beside)
        rows = settled(batches, self.rates, whole, beside or None)
        yield from rows if self.privacy is None else (shown(batch, self.privacy) for batch in rows)
        _counted(self.session, whole, self.rates, read, self.names)

    def _one_by_one(self, whole: Tally, read: list[Counts]) -> Iterable[Any]:
        from sssjob.accounting.partitions import tables

        session = self.session
        for name in self.names:
            with session.tolerant(name), bounded(name), self.looked.opened(name) as file:
                context = ReadContext(name, Findings(name), session.profile, session.policy, options=self.options)
                table = tables(file, self.source, context, self.rates)
                with LogFindings(session, context.findings) as log_findings:
                    for batch in table.batches:
                        log_findings.take()
                        yield batch
                _records(session, name, table.counts)
                whole.add(table.tally)
                read.append(table.counts)

    def _side_by_side(self, whole: Tally, read: list[Counts], beside: str) -> Iterable[Any]:
        """Made by several processes as Parquet, read back in the order of the logs."""
        from sssjob.accounting.partitions import in_pool, names_of

        with tempfile.TemporaryDirectory(prefix=".sssjob-", dir=beside or None) as folder:
            pairs = names_of(self.names, folder)
            done: defaultdict[str, list[Result]] = defaultdict(list)
            awaited = Counter(self.names)
            results = in_pool(pairs, self._work(), self.jobs)
            for name, parquet in pairs:
                while len(done[name]) < awaited[name]:
                    result = next(results)
                    done[result.path].append(result)
                awaited[name] = 0               # one that is named twice is there twice
                result = done[name].pop()
                if os.path.exists(parquet):
                    yield from batches_of(parquet)
                    os.unlink(parquet)
                _told(self.session, result)
                whole.add(result.tally)
                read.append(result.counts)

    def _work(self) -> Work:
        from sssjob.accounting.partitions import Work

        return Work(self.source, self.rates.text, dict(self.options), self.session.policy)

    # -- tables
    def csv(self) -> Iterable[str]:
        """A line of names, then a line a job."""
        head = True
        for batch in self.batches():
            yield csv_text(batch, head=head)
            head = False
        if head:
            yield csv_text(None, head=True)

    def jsonl(self) -> Iterable[str]:
        """A record a job, charges as text, exact; what is not known is left out."""
        for batch in self.batches():
            for row in batch.to_pylist():
                columns = {k: f"{v:f}" if isinstance(v, Decimal) else v for k, v in row.items() if v is not None}
                yield json.dumps({"type": "job", **columns}) + "\n"

    def parquet(self, output: str) -> int:
        """One Parquet file, in place when all logs are read; the exit status."""
        with parquet_table(output, self.rates) as table:
            for batch in self.batches(os.path.dirname(os.path.abspath(output))):
                table.add(batch)
            table.given_up = bool(self.session.failures or self.session.errors)
        return self.session.status()

    def folder(self, folder: str, dask: str | None) -> int:
        """A Parquet file for each log; the exit status."""
        from sssjob.accounting.attempts import settle
        from sssjob.accounting.partitions import names_of

        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise AccessError(escape(folder), error.strerror or str(error)) from None
        pairs, whole, read = names_of(self.names, folder), Tally(), list[Counts]()
        if self.rates.attempts == "last" or self.privacy is not None:       # by names that may not be shown
            with tempfile.TemporaryDirectory(prefix=".sssjob-", dir=folder) as beside:
                tables = self._made(names_of(self.names, beside), dask, whole, read)
                settle([(path, target) for path, (_, target) in zip(tables, pairs, strict=True) if path], self.rates,
                       whole, self.privacy)
        else:
            tables = self._made(pairs, dask, whole, read)
            settle([(path, path) for path in tables if path], self.rates, whole)
        _counted(self.session, whole, self.rates, read, self.names)
        return self.session.status()

    def _made(self, pairs: Sequence[tuple[str, str]], dask: str | None, whole: Tally, read: list[Counts]) -> list[str]:
        """Make the Parquet file of each log, and tell what became of it; their names, empty where there is none."""
        from sssjob.accounting.partitions import in_pool, on_dask

        work, failed = self._work(), set[str]()
        results = in_pool(pairs, work, self.jobs) if dask is None else on_dask(pairs, work, dask)
        for result in results:
            _told(self.session, result)
            whole.add(result.tally)
            read.append(result.counts)
            if result.error:
                failed.add(result.path)
        return ["" if name in failed or not os.path.exists(table) else table for name, table in pairs]


def _told(session: Session, result: Result) -> None:
    with LogFindings(session, Findings()) as log_findings:
        log_findings.add(result.findings)
    if result.overflow and not session.quiet:
        problem(f"{result.overflow} more findings are not shown", as_json=session.as_json)
    if result.error:
        session.failures += result.gone
        session.errors += not result.gone
        problem(result.error, as_json=session.as_json, status=3 if result.gone else 1)
    else:
        _records(session, result.path, result.counts)


def _records(session: Session, name: str, counts: Counts) -> None:
    if session.as_json:
        emit(json.dumps({"type": "records", "file": name, **counts.record()}) + "\n")
    elif not session.quiet:
        say(f"{escape(name)}: {counts}")


def _counted(session: Session, tally: Tally, rates: RateSet, read: Sequence[Counts], names: Sequence[str]) -> None:
    """The jobs of all logs: charged and not, which add up. names: of the logs."""
    session.errors += nothing_taken(read)
    tell_unsaid(session, names[0] if len(names) == 1 else "", tally.unsaid, tally.charged)
    if session.as_json:
        emit(json.dumps({"type": "counts", "jobs": tally.jobs, "charged": tally.charged,
                         "not": dict(sorted(tally.reasons.items())), "total": f"{tally.total:f}",
                         "currency": rates.currency, "rates": rates.identity}) + "\n")
    elif not session.quiet:
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(tally.reasons.items()))
        say(f"{tally.jobs} job{'s' * (tally.jobs != 1)}: {tally.charged} charged, {tally.total:f} "
            f"{rates.currency or 'credits'}" + (f", {tally.reasons.total()} not ({reasons})" if reasons else ""))
