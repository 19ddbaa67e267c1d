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
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from sssjob.accounting.columnar import SacctTable
from sssjob.accounting.cuts import Cut, cut, merged, opened_part
from sssjob.accounting.parquet import batches_of, parquet_table
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.table import Batch, Tally, charge_table
from sssjob.document.ids import unused
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import Finding, Findings, Policy, escape
from sssjob.limits import LIMITS
from sssjob.processes import Stops, in_order
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import Counts, RecordTranslator, Stream
from sssjob.translators.registry import get

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
    source: SacctTable | Stream
    tally: Tally

    @property
    def counts(self) -> Counts:
        """Of the records."""
        return self.source.counts


def tables(file: BinaryIO, source: str, context: ReadContext, rates: RateSet) -> Made:
    """The charge table of a log; UsageError for a format that is not read job by job."""
    translator = get(source)
    if not isinstance(translator, RecordTranslator) or translator.stream is None:
        raise UsageError(f"{source} is no format of accounting logs")
    tally = Tally()
    if translator.name == "sacct":
        table = SacctTable(context, rates, tally)
        return Made(table.batches(file), table, tally)
    stream = translator.stream(file, context)
    return Made(charge_table(stream, rates, tally), stream, tally)


def charge_file(path: str, target: str, work: Work, part: Cut | None = None) -> Result:
    """Write the charge table of a log, or of a part of it, as Parquet, whole or not at all."""
    result = Result(path)
    findings = Findings(path)
    try:
        rates = read_rates(work.rates)
        context = ReadContext(path, findings, policy=work.policy, options=work.options)
        with open(path, "rb") if part is None else opened_part(path, part) as file:
            charges = tables(file, work.source, context, rates)
            with parquet_table(target, rates) as table:
                for batch in charges.batches:
                    table.add(batch)
        result.counts, result.tally = charges.counts, charges.tally
    except (SSSJobError, MemoryError, OSError) as error:
        _failed(result, error)
    result.findings, result.overflow = list(findings), findings.overflow
    return result


def _failed(result: Result, error: Exception) -> Result:
    if isinstance(error, OSError):
        result.error = f"{escape(str(error.filename or result.path))}: {error.strerror or error}"
    else:
        result.error = str(error) or type(error).__name__
    result.gone = isinstance(error, (OSError, AccessError))
    return result


def names_of(paths: Sequence[str], folder: str) -> list[tuple[str, str]]:
    """(log, its Parquet file in the folder); logs of one name in different folders get numbers."""
    taken: dict[str, int] = {}
    return [(path, os.path.join(folder, unused(os.path.basename(os.path.abspath(path)), taken, ".parquet")))
            for path in paths]


class _Piece(NamedTuple):
    """A log, or a part of it, and the file that one process makes of it."""

    path: str
    made: str
    part: Cut | None


def in_pool(files: Sequence[tuple[str, str]], work: Work, jobs: int) -> Iterator[Result]:
    """File by file in so many processes; where there are fewer logs than processes, large ones in parts. The tables
    are made in a temporary folder beside their places, which have to be in one folder.

    A process that dies costs the log that it was at, when that ends a second one too. What goes wrong in a part is
    found once more in the whole. Raises AccessError where nothing can be written there.
    """
    if jobs <= 1:
        yield from (charge_file(path, target, work) for path, target in files)
        return
    most, torn = jobs // max(len(files), 1), list[tuple[str, str]]()
    for file, result in _spread(files, [_parts(path, work, most) for path, _ in files], work, jobs):
        if result is None:
            torn.append(file)
        else:
            yield result
    yield from (result for _, result in _spread(torn, [[None]] * len(torn), work, jobs) if result is not None)


def _parts(path: str, work: Work, most: int) -> Sequence[Cut | None]:
    with suppress(OSError, ValueError):         # whoever reads it says so
        return (most > 1 and cut(path, work.source, work.options, most)) or [None]
    return [None]


def _spread(files: Sequence[tuple[str, str]], parts: Sequence[Sequence[Cut | None]], work: Work,
            jobs: int) -> Iterator[tuple[tuple[str, str], Result | None]]:
    """(file, its result) in their order; None where one of several parts went wrong. parts: of each file."""
    if not files:
        return
    above = Path(os.path.abspath(files[0][1])).parent
    try:
        folder = tempfile.TemporaryDirectory(prefix=".sssjob-", dir=above)
    except OSError as error:
        raise AccessError(escape(str(above)), error.strerror or str(error)) from None
    with folder:
        pieces = [[_Piece(path, os.path.join(folder.name, f"{n}-{m}.parquet"), part) for m, part in enumerate(some)]
                  for n, ((path, _), some) in enumerate(zip(files, parts, strict=True))]
        results = in_order(partial(_charged, work), _died, [piece for some in pieces for piece in some], jobs, Stops())
        for (path, target), some in zip(files, pieces, strict=True):
            results_of_parts = list(islice(results, len(some)))
            torn = len(results_of_parts) > 1 and any(result.error for result in results_of_parts)
            yield (path, target), None if torn else _placed(target, work, some, results_of_parts)


def _charged(work: Work, piece: _Piece) -> Result:
    try:
        return charge_file(piece.path, piece.made, work, piece.part)
    except Exception as error:          # of one log; the others go on
        return _ended(piece.path, error)


def _died(piece: _Piece) -> Result:
    return Result(piece.path, error=f"{escape(piece.path)}: the process that charged it died")


def _ended(path: str, error: Exception) -> Result:
    return Result(path, error=f"{escape(path)}: {type(error).__name__}: {escape(str(error), 200)}")


def _placed(target: str, work: Work, pieces: Sequence[_Piece], results: Sequence[Result]) -> Result:
    """Put the table of a log into its place; it comes of all its pieces, in their order."""
    result = results[0] if len(results) == 1 else Result(pieces[0].path)
    try:
        if len(results) > 1:
            _joined(result, target, work, [(p.made, p.part, r) for p, r in zip(pieces, results, strict=True) if p.part])
        elif not result.error:
            os.replace(pieces[0].made, target)
    except (SSSJobError, OSError) as error:
        return _failed(Result(result.path), error)
    return result


def _joined(whole: Result, target: str, work: Work, parts_made: Sequence[tuple[str, Cut, Result]]) -> None:
    """Put the tables of parts together, and what was found in them."""
    with parquet_table(target, read_rates(work.rates)) as table:
        for name, _, _ in parts_made:
            for batch in batches_of(name):
                table.add(batch)
    for _, _, result in parts_made:
        whole.counts.add(result.counts)
        whole.tally.add(result.tally)
        whole.overflow += result.overflow
    findings = merged([(part, result.findings) for _, part, result in parts_made])
    whole.findings = findings[:LIMITS.findings]
    whole.overflow += len(findings) - len(whole.findings)


def on_dask(files: Sequence[tuple[str, str]], work: Work, address: str) -> Iterator[Result]:
    """File by file on a Dask cluster. A file whose worker is lost is given to another one.

    Raises UsageError where dask.distributed is not installed, AccessError where nobody answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("--dask needs dask.distributed: pip install 'sssjob[dask]'") from None
    absolute = [(os.path.abspath(path), os.path.abspath(target)) for path, target in files]
    _knock(address)
    try:
        client = distributed.Client(address, timeout=_PATIENCE_S)
    except (OSError, ValueError, TimeoutError) as error:
        gc.collect()        # half a client holds locks when it goes; better now than in the middle of something
        raise AccessError(escape(address), f"no Dask scheduler answers ({escape(str(error), 200)})") from None
    try:
        waiting = {client.submit(charge_file, path, target, work, pure=False, retries=_RETRIES): name
                   for (path, target), (name, _) in zip(absolute, files, strict=True)}
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
        result: Result = future.result()
    except Exception as error:          # whatever the end of a worker raises
        return _ended(path, error)
    result.path = path
    return result
