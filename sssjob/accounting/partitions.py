"""Charge tables of many logs, file by file: each log becomes a Parquet file, here, in a pool of processes or on a Dask
cluster whose workers see the same files.

``charge_file`` is the unit of work: it reads one log and puts one file in place when that is complete, so doing it
again, as Dask does when a worker is lost, changes nothing.
"""

from __future__ import annotations

import gc
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from sssjob.accounting.columnar import SacctTable
from sssjob.accounting.cuts import Part, cut, in_order, opened_part
from sssjob.accounting.parquet import batches_of, parquet_table
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.table import Batch, Tally, charge_table
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import Finding, Findings, Policy, escape
from sssjob.limits import LIMITS
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import Counts, RecordTranslator
from sssjob.translators.registry import get

if TYPE_CHECKING:
    pass

__all__ = ["Result", "Work", "charge_file", "in_pool", "names_of", "on_dask", "tables"]

_RETRIES: Final = 3         # of a file whose worker was lost
_PATIENCE_S: Final = 20     # with a scheduler


@dataclass(frozen=True, slots=True)
class Work:
    """What is done to each file. source: the format; rates: their text; policy, options: of reading."""

    source: str
    rates: str
    options: Mapping[str, str] = field(default_factory=dict)
    policy: Policy | None = None


@dataclass(slots=True)
class Result:
    """What became of a file. error: why there is no table; gone: whether it could not be read."""

    path: str
    counts: Counts = field(default_factory=Counts)
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    overflow: int = 0
    error: str = ""
    gone: bool = False


@dataclass(slots=True)
class Made:
    """The batches of one log, and what has become of its records and jobs when they are through."""

    batches: Iterator[Batch]
    table: SacctTable | None
    stream: Any
    own: Tally

    @property
    def counts(self) -> Counts:
        """Of the records."""
        counts: Counts = self.stream.counts if self.table is None else self.table.counts
        return counts

    @property
    def tally(self) -> Tally:
        """Of the jobs."""
        return self.own if self.table is None else self.table.tally


def tables(file: BinaryIO, source: str, context: ReadContext, rates: RateSet) -> Made:
    """The charge table of a log; UsageError for a format that is not read job by job."""
    translator = get(source)
    if not isinstance(translator, RecordTranslator) or translator.stream is None:
        raise UsageError(f"{source} is no format of accounting logs")
    own = Tally()
    if translator.name == "sacct":
        table = SacctTable(context, rates)
        return Made(table.batches(file), table, None, own)
    stream = translator.stream(file, context)
    return Made(charge_table(stream, rates, own), None, stream, own)


def charge_file(path: str, target: str, work: Work, part: Part | None = None) -> Result:
    """Write the charge table of a log, or of a part of it, as Parquet, whole or not at all."""
    result = Result(path)
    findings = Findings(path)
    try:
        rates = read_rates(work.rates)
        context = ReadContext(path, findings, policy=work.policy, options=work.options)
        with open(path, "rb") if part is None else opened_part(path, part) as file:
            made = tables(file, work.source, context, rates)
            with parquet_table(target, rates) as table:
                for batch in made.batches:
                    table.add(batch)
        result.counts, result.tally = made.counts, made.tally
    except (SSSJobError, MemoryError) as error:
        result.error = str(error) or type(error).__name__
        result.gone = isinstance(error, AccessError)
    except OSError as error:
        result.error, result.gone = f"{escape(str(error.filename or path))}: {error.strerror or error}", True
    result.findings, result.overflow = list(findings), findings.overflow
    return result


def names_of(paths: Sequence[str], folder: str) -> list[tuple[str, str]]:
    """(log, its Parquet file in the folder); logs of one name in different folders get numbers."""
    taken: set[str] = set()
    made = []
    for path in paths:
        stem = os.path.basename(os.path.abspath(path))
        name, number = f"{stem}.parquet", 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}.parquet"
        taken.add(name)
        made.append((path, os.path.join(folder, name)))
    return made


def in_pool(files: Sequence[tuple[str, str]], work: Work, jobs: int) -> Iterator[Result]:
    """File by file in so many processes, each result when it is there; where there are fewer logs than processes, large
    ones in parts."""
    if jobs <= 1:
        yield from (charge_file(path, target, work) for path, target in files)
        return
    parts = {path: _parts(path, work, jobs // len(files)) for path, _ in files} if len(files) < jobs else {}
    with ProcessPoolExecutor(jobs) as pool:
        waiting: dict[Any, str] = {}
        try:
            for path, target in files:
                if not parts.get(path):
                    waiting[pool.submit(charge_file, path, target, work)] = path
            for path, target in files:
                if parts.get(path):
                    yield _in_parts(pool, path, target, work, parts[path])
            for future in as_completed(waiting):
                yield _result(future, waiting[future])
        finally:
            pool.shutdown(cancel_futures=True)


def _parts(path: str, work: Work, most: int) -> list[Part]:
    with suppress(OSError, ValueError):         # whoever reads it says so
        return cut(path, work.source, work.options, most)
    return []


def _in_parts(pool: ProcessPoolExecutor, path: str, target: str, work: Work, parts: Sequence[Part]) -> Result:
    """One table of the parts of a log, in their order. What goes wrong in a part is found once more in the whole."""
    with tempfile.TemporaryDirectory(prefix=".sssjob-", dir=Path(os.path.abspath(target)).parent) as folder:
        names = [os.path.join(folder, f"{n}.parquet") for n in range(len(parts))]
        waiting = [pool.submit(charge_file, path, name, work, part) for name, part in zip(names, parts, strict=True)]
        made = [_result(future, path) for future in waiting]
        if any(result.error for result in made):
            return _result(pool.submit(charge_file, path, target, work), path)
        return _joined(Result(path), target, work, list(zip(names, parts, made, strict=True)))


def _joined(whole: Result, target: str, work: Work, made: Sequence[tuple[str, Part, Result]]) -> Result:
    """Put the tables of parts together, and what was found in them."""
    with parquet_table(target, read_rates(work.rates)) as table:
        for name, _, _ in made:
            for batch in batches_of(name):
                table.add(batch)
    for _, _, result in made:
        whole.counts.add(result.counts)
        whole.tally.add(result.tally)
        whole.overflow += result.overflow
    found = in_order([(part, result.findings) for _, part, result in made])
    whole.findings = found[:LIMITS.findings]
    whole.overflow += len(found) - len(whole.findings)
    return whole


def on_dask(files: Sequence[tuple[str, str]], work: Work, address: str) -> Iterator[Result]:
    """File by file on a Dask cluster. A file whose worker is lost is given to another one.

    Raises UsageError where dask.distributed is not installed, AccessError where nobody answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("--dask needs dask.distributed: pip install 'sssjob[dask]'") from None
    there = [(os.path.abspath(path), os.path.abspath(target)) for path, target in files]
    _knock(address)
    try:
        client = distributed.Client(address, timeout=_PATIENCE_S)
    except (OSError, ValueError, TimeoutError) as error:
        gc.collect()        # half a client holds locks when it goes; better now than in the middle of something
        raise AccessError(escape(address), f"no Dask scheduler answers ({escape(str(error), 200)})") from None
    try:
        waiting = {client.submit(charge_file, path, target, work, pure=False, retries=_RETRIES): name
                   for (path, target), (name, _) in zip(there, files, strict=True)}
        for future in distributed.as_completed(waiting):
            yield _result(future, waiting[future])
    finally:
        client.close()


def _knock(address: str) -> None:
    """Raise AccessError where nobody listens at a TCP address, before there is half a client."""
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    try:
        if scheme not in ("", "tcp", "tls") or not (port.isdecimal() and port.isascii() and int(port) < 1 << 16):
            raise ValueError("no address of the form tcp://HOST:PORT")
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise AccessError(escape(address), f"no Dask scheduler answers ({escape(str(error), 200)})") from None


def _result(future: Any, path: str) -> Result:
    try:
        made: Result = future.result()
    except Exception as error:          # whatever the end of a worker raises
        return Result(path, error=f"{escape(path)}: {type(error).__name__}: {escape(str(error), 200)}")
    made.path = path
    return made
