"""The charge table of ``sacct --parsable2``, column by column: the rows that the reader and the charge engine make.

A block of lines becomes Arrow columns. A job is plain when every column holds what it should, no two disagree, and it
is in one part. Plain jobs that differ in amounts and duration only are of one shape: the reader and the charge engine
are asked for the coefficients of the shape, once, and the charges follow from its columns of amounts. All other jobs
go to the reader, line by line, and come back in their place; with rates that are not additive, without pyarrow, and
where the columns do not suit, all of them do.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import BinaryIO, Final

from sssjob.accounting._arrow import pa, pc
from sssjob.accounting._sacct_columns import Columns
from sssjob.accounting._sacct_shapes import Shapes
from sssjob.accounting.coefficients import Coefficients
from sssjob.accounting.plans import Plans
from sssjob.accounting.pricing import Uncharged
from sssjob.accounting.rates import RateSet
from sssjob.accounting.table import COLUMNS, DIGITS, Batch, Tally, batch, charge_table, row, schema
from sssjob.document.model import Job
from sssjob.translators.base import ReadContext
from sssjob.translators.records._lines import lines, numbered
from sssjob.translators.records._packed import Pieces
from sssjob.translators.records.base import Counts
from sssjob.translators.records.sacct import TRANSLATOR, Rows

__all__ = ["SacctBlocks", "SacctTable", "blocks", "charges_of", "units_of"]

_PRINTABLE: Final = bytes((10, *range(32, 127)))
_ODD: Final = bytes(byte for byte in range(256) if byte not in _PRINTABLE)
_BLOCK: Final = 8 << 20
_MOST: Final = 64 << 20     # bytes of a block in which no job ends
_FIRST: Final = 1 << 20     # bytes of a header
_WORD: Final = 1 << 63


def blocks(file: BinaryIO, job: Callable[[bytes], bytes], size: int = _BLOCK) -> Iterator[bytes]:
    """Blocks of whole lines; the last job of one, with its steps and runs, is the first of the next. job: of a line.
    Where no job ends, more than _MOST bytes are a block of their own, wherever that ends."""
    rest, piece = b"", file.read(size)
    while piece:
        following = file.read(size)
        rest += piece
        if not following:
            break
        piece = following
        at, last = rest.rfind(b"\n") + 1, None
        while at > 0:
            before = rest.rfind(b"\n", 0, at - 1) + 1
            whose = job(rest[before:at - 1])
            if whose != last is not None:
                break
            at, last = before, whose
        if at > 0 or len(rest) > _MOST:
            yield rest[:at or None]
            rest = rest[at:] if at > 0 else b""
    if rest:
        yield rest


class SacctBlocks:
    """The jobs of one output of sacct, block by block: as columns where that can be, else by the reader. context: of
    its reading, whose findings are those of the lines that the reader has read; shapes: of the jobs of a log with such
    columns."""

    def __init__(self, context: ReadContext, shapes: Callable[[Sequence[str]], Shapes]) -> None:
        self.context, self.reading = context, Rows(context)
        self._shapes_of = shapes
        self._lines = 0

    def parts(self, file: BinaryIO) -> Iterator[Columns | Iterator[Job]]:
        """The jobs of a file: columns, of which the jobs that are not plain are to be had by ``odd``, or jobs, which
        have to be taken before the next part is asked for."""
        parting = TRANSLATOR.parting
        assert parting is not None and parting.header is not None and parting.again is not None
        first = file.readline(_FIRST)
        if not first.endswith(b"\n") or first.translate(None, _PRINTABLE):
            yield self.reading.jobs(_joined(chain((first,), _pieces(file))))
            return
        (header,) = numbered([(1, first[:-1])], self.context.limits.text)
        if not self.reading.skips(header):
            yield self._reader(chain((first,), _pieces(file)))
            return
        self._lines = 1
        names = [*self.reading.columns, *[""] * (header.text.count("|") + 1 - len(self.reading.columns))]
        shapes = self._shapes_of(self.reading.columns)
        job = parting.header(first, self.context.options) if Columns.suit(names) and shapes.known else None
        if job is None:
            yield self._reader(_pieces(file))
            return
        some = blocks(file, job)
        for data in some:       # the reader has the rest where other columns may follow, or no job ends
            if len(data) > _MOST or parting.again.search(b"\n" + data[:5]) or parting.again.search(data):
                yield self._reader(chain((data,), some))
                return
            read = None if not data.endswith(b"\n") else Columns.of(
                *_fit(data, self.context.limits.text), names, self.reading, shapes)
            if read is None:
                yield self._reader(self._unbroken(data, some))
            else:
                read.source = data
                yield read
                self._lines += data.count(b"\n")

    def _unbroken(self, data: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
        """A block for the reader, and those behind it into which the text of a broken row may reach."""
        following: bytes | None = data
        while following is not None:
            yield following
            self._lines += following.count(b"\n")
            following = next(others, None) if self.reading.is_broken else None

    def odd(self, read: Columns, nameless: int | None) -> Iterator[Job]:
        """The jobs that are not plain, and the plain ones counted. nameless: the first plain job without machine."""
        lines_read, counts = read.lines_of_plain(), self.reading.counts
        counts.read += lines_read
        counts.given += lines_read
        counts.jobs += len(read.plain)
        if len(read.plain) < len(read.first):
            texts = read.source.split(b"\n")
            for odd in read.odd():
                if nameless is not None and odd.start > nameless:
                    self.reading.nameless(self.number(read, nameless))
                at = range(read.first[odd[0]], read.last[odd[-1]])
                yield from self.reading.jobs_of(numbered(((self._lines + number + 1, texts[number]) for number in at),
                                                         self.context.limits.text))
        if nameless is not None:
            self.reading.nameless(self.number(read, nameless))

    def number(self, read: Columns, job: int) -> int:
        """The line of a job of the block at hand."""
        return self._lines + read.first[job] + 1

    def _reader(self, pieces: Iterable[bytes]) -> Iterator[Job]:
        """The jobs of text that goes on behind the lines so far."""
        before = self._lines        # as it is before the reader asks for a piece
        return self.reading.jobs_of(
            line if not before else line._replace(number=line.number + before)
            for line in lines(_joined(pieces), self.context.limits.text))


@dataclass(slots=True)
class SacctTable:
    """The charge table of one output of sacct. context: of its reading. tally: what has become of jobs so far; plain:
    how many of them were charged by coefficients."""

    context: ReadContext
    rates: RateSet
    tally: Tally = field(default_factory=Tally)
    plain: int = 0
    _blocks: SacctBlocks = field(init=False)
    _plans: Plans = field(init=False)

    def __post_init__(self) -> None:
        self._plans = Plans(self.rates)         # of the jobs that are not plain
        self._blocks = SacctBlocks(self.context, lambda columns: Shapes(self.context, self.rates, columns))

    @property
    def counts(self) -> Counts:
        """What has become of the lines so far."""
        return self._blocks.reading.counts

    def batches(self, file: BinaryIO) -> Iterator[Batch]:
        """The rows, a batch a block; of what the reader has read, some thousand at once."""
        for part in self._blocks.parts(file):
            if isinstance(part, Columns):
                yield self._block(part)
            else:
                yield from charge_table(part, self.rates, self.tally)

    def _block(self, read: Columns) -> Batch:
        """The rows of a block, in the order of the lines."""
        charges, reasons, unsaid = charges_of(read, self.rates)
        self.tally.unsaid.update(chain.from_iterable(unsaid.values()))
        plain = self._batch(read, charges, reasons)
        nameless = pc.index(plain["machine"].is_null(), True).as_py()
        jobs = list(self._blocks.odd(read, None if nameless < 0 else read.plain[nameless]))
        if len(read.plain) == len(read.first):
            return plain
        rows = batch([row(job, self._plans, self.tally) for job in jobs], self.rates)
        places = [self._blocks.number(read, job) for job in read.plain] + [job.line for job in jobs]
        order = sorted(range(len(places)), key=places.__getitem__)
        table = pa.Table.from_batches([plain, rows]).take(pa.array(order, pa.int64())).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else rows

    def _batch(self, read: Columns, charges: list[int], reasons: list[str | None]) -> pa.RecordBatch:
        """The rows of the plain jobs, counted."""
        unit = units_of(self.rates)
        self._count(charges, reasons, unit)
        fields, cells = schema(self.rates), read.output()
        cells["reason"] = pa.array(reasons, pa.string())
        units = charges if unit == 1 else [charge * unit for charge in charges]
        cells["charge"] = _decimals(units, self.rates.precision, pc.is_null(cells["reason"]))
        columns = [cells[name].cast(f.type) if name in cells else pa.nulls(len(charges), f.type)
                   for name, f in zip(COLUMNS, fields, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=fields)

    def _count(self, charges: list[int], reasons: list[str | None], unit: int) -> None:
        jobs, tally = len(charges), self.tally
        self.plain += jobs
        tally.jobs += jobs
        without = [reason for reason in reasons if reason is not None]
        tally.reasons.update(without)
        tally.charged += jobs - len(without)
        tally.total += Decimal(f"{sum(charges) * unit}e-{self.rates.precision}")


def units_of(rates: RateSet) -> int:
    """The smallest amount of charges in units of their last digit."""
    return int(rates.smallest * 10**rates.precision)


def charges_of(read: Columns, rates: RateSet) -> tuple[list[int], list[str | None], dict[int, tuple[str, ...]]]:
    """(multiples of the smallest amount, reasons why there is no charge) of the plain jobs, of which those leave whose
    shape has no coefficients or whose charge no column holds; and by the numbers of the jobs that do not say what rates
    are for, these (as of each Charge)."""
    charges, reasons = [0] * len(read.first), list[str | None]((None,)) * len(read.first)
    kept, unsaid = list[int](), dict[int, tuple[str, ...]]()
    most, shapes = 10**DIGITS // units_of(rates), read.shapes
    for key, jobs in read.by_shape().items():
        price = shapes.price(key, read.texts(jobs[0]))
        if isinstance(price, Uncharged):
            for job in jobs:
                reasons[job] = str(price.reason)
        elif isinstance(price, Coefficients):
            values = price.charges(read.seconds(jobs), [
                read.amounts(kind, jobs) if used or timed else ()
                for kind, used, timed in zip(shapes.kinds(key), price.used, price.timed, strict=True)])
            if max(values) >= most:
                continue
            for job, value in zip(jobs, values, strict=True):
                charges[job] = value
            if price.unsaid:
                unsaid |= dict.fromkeys(jobs, price.unsaid)
        else:
            continue
        kept += jobs
    if len(kept) < len(read.plain):
        read.keep(sorted(kept))
    if len(kept) == len(charges):
        return charges, reasons, unsaid
    return [charges[job] for job in read.plain], [reasons[job] for job in read.plain], unsaid


def _fit(data: bytes, most: int) -> tuple[bytes, list[int]]:
    """(the lines, the numbers of those that the reader does not take as they are): too long ones, and those that have
    control characters or bytes that are no UTF-8, which are left out here. most: bytes of a line."""
    if len(data) <= most and not data.translate(None, _PRINTABLE):
        return data, []
    raws, odd = data.split(b"\n"), list[int]()
    for at, raw in enumerate(raws):
        if len(raw) <= most and not raw.translate(None, _PRINTABLE):
            continue
        (line,) = numbered([(at, raw)], most)
        if line.long or line.note or line.text.encode() != raw:
            odd.append(at)
            raws[at] = raw.translate(None, _ODD)
    return b"\n".join(raws), odd


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_BLOCK):
        yield piece


def _joined(pieces: Iterable[bytes]) -> BinaryIO:
    return io.BufferedReader(Pieces(pieces), _FIRST)


def _decimals(units: list[int], precision: int, is_known: pa.Array) -> pa.Array:
    """Whole numbers of units of the last digit as decimals; null where they are not known."""
    kind = pa.decimal128(DIGITS, precision)
    if max(units, default=0) >= _WORD:
        texts = [Decimal(f"{unit}e-{precision}") for unit in units]
        return pa.array([d if is_there else None for d, is_there in zip(texts, is_known.to_pylist(), strict=True)],
                        kind)
    words = array("q", bytes(16 * len(units)))
    words[::2] = array("q", units)
    return pa.Array.from_buffers(kind, len(units), [is_known.buffers()[1], pa.py_buffer(words)])
