"""Charge tables on the command line: one stream, or a folder of Parquet files made side by side."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sssjob.accounting.table import Tally, arrow, schema
from sssjob.cli._files import emit, opened
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, bounded
from sssjob.cli._prices import nothing_taken
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.records.base import Counts

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.partitions import Result

__all__ = ["charge_logs"]

_PARQUET: Final = ".parquet"


def charge_logs(session: Session, names: Sequence[str], rates: RateSet, source: str, options: Mapping[str, str],
                output: str, jobs: int, dask: str | None) -> int:
    """The charge table of accounting logs; the exit status."""
    arrow()
    folder = output.endswith("/") or os.path.isdir(output)
    if not folder and (jobs > 1 or dask is not None):
        raise UsageError("--jobs and --dask make a Parquet file for each log: name a folder, -o DIR/")
    if folder:
        if "-" in names:
            raise UsageError("a folder of tables needs the names of logs, not standard input")
        return _folder(session, names, rates, source, options, output, jobs, dask)
    if output.endswith(_PARQUET):
        return _parquet(session, names, rates, source, options, output)
    if session.as_json and output == "-":
        pieces = _jsonl(session, names, rates, source, options)
    else:
        pieces = _csv(session, names, rates, source, options)
    if output == "-":
        for piece in pieces:
            emit(piece, safe=True)
    else:
        text = "".join(pieces)
        if session.failures or session.errors:
            return session.status()
        emit(text, output)
    return session.status()


def _batches(session: Session, names: Sequence[str], rates: RateSet, source: str,
             options: Mapping[str, str]) -> Iterable[Any]:
    """The batches of all logs, one after another; then what became of the records and jobs is told."""
    from sssjob.accounting.partitions import tables
    from sssjob.translators.base import ReadContext

    whole, read = Tally(), list[Counts]()
    for name in names:
        with session.tolerant(name), bounded(name), opened(name) as file:
            context = ReadContext(name, Findings(name), session.profile, session.policy, options=options)
            made = tables(file, source, context, rates)
            for batch in made.batches:
                session.report(context.findings)
                yield batch
            session.report(context.findings)
            _records(session, name, made.counts)
            whole.add(made.tally)
            read.append(made.counts)
    _counted(session, whole, rates, read)


def _csv(session: Session, names: Sequence[str], rates: RateSet, source: str,
         options: Mapping[str, str]) -> Iterable[str]:
    import pyarrow.csv as csv

    head = True
    for batch in _batches(session, names, rates, source, options):
        buffer = io.BytesIO()
        csv.write_csv(batch, buffer, csv.WriteOptions(include_header=head, quoting_style="needed"))
        head = False
        yield buffer.getvalue().decode()
    if head:
        yield ",".join(f'"{name}"' for name in schema(rates).names) + "\n"


def _jsonl(session: Session, names: Sequence[str], rates: RateSet, source: str,
           options: Mapping[str, str]) -> Iterable[str]:
    """A record a job, charges as text, exact; what is not known is left out."""
    for batch in _batches(session, names, rates, source, options):
        for row in batch.to_pylist():
            known = {k: f"{v:f}" if isinstance(v, Decimal) else v for k, v in row.items() if v is not None}
            yield json.dumps({"type": "job", **known}) + "\n"


def _parquet(session: Session, names: Sequence[str], rates: RateSet, source: str, options: Mapping[str, str],
             output: str) -> int:
    """One Parquet file, in place when all logs are read."""
    from sssjob.accounting.parquet import parquet_table

    with parquet_table(output, rates) as table:
        for batch in _batches(session, names, rates, source, options):
            table.add(batch)
        table.given_up = bool(session.failures or session.errors)
    return session.status()


def _folder(session: Session, names: Sequence[str], rates: RateSet, source: str, options: Mapping[str, str],
            folder: str, jobs: int, dask: str | None) -> int:
    from sssjob.accounting.partitions import Work, in_pool, names_of, on_dask

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(folder), error.strerror or str(error)) from None
    work = Work(source, rates.text, dict(options), session.policy)
    pairs = names_of(names, folder)
    results = in_pool(pairs, work, jobs) if dask is None else on_dask(pairs, work, dask)
    whole, read = Tally(), list[Counts]()
    for result in results:
        _told(session, result)
        whole.add(result.tally)
        read.append(result.counts)
    _counted(session, whole, rates, read)
    return session.status()


def _told(session: Session, result: Result) -> None:
    session.report(result.findings)
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


def _counted(session: Session, tally: Tally, rates: RateSet, read: Sequence[Counts]) -> None:
    """The jobs of all logs: charged and not, which add up."""
    session.errors += nothing_taken(read)
    if session.as_json:
        emit(json.dumps({"type": "counts", "jobs": tally.jobs, "charged": tally.charged,
                         "not": dict(sorted(tally.reasons.items())), "total": f"{tally.total:f}",
                         "currency": rates.currency, "rates": rates.identity}) + "\n")
    elif not session.quiet:
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(tally.reasons.items()))
        say(f"{tally.jobs} job{'s' * (tally.jobs != 1)}: {tally.charged} charged, {tally.total:f} "
            f"{rates.currency or 'credits'}" + (f", {tally.reasons.total()} not ({reasons})" if reasons else ""))
