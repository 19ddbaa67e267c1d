"""The charge table of ``sacct --parsable2``, column by column: the rows that the reader and the charge engine make.

A block of lines becomes Arrow columns; what takes thought about texts (AllocTRES, State, node lists, multipliers by
name) is done once for each different text. A job is plain when every column holds what it should, no two disagree, and
it is in one part; all others go to the reader, line by line, and come back in their place. Rates are plain when they go
by Processors and NodeCount over time, times multipliers and fees by name; with others everything goes to the reader.

The tests hold both ways against each other.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from sssjob.accounting.rates import PER, Rate, RateSet
from sssjob.accounting.sources import Pieces
from sssjob.accounting.table import COLUMNS, Tally, arrow, batch, charge_table, row, schema
from sssjob.model import Job
from sssjob.translators.base import ReadContext
from sssjob.translators.records._slurm import ending, tres
from sssjob.translators.records.base import Counts, Rejected, node
from sssjob.translators.records.sacct import Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Prices", "SacctTable", "blocks", "plain_rates"]

_PRINTABLE: Final = bytes((10, *range(32, 127)))
_HEADER: Final = re.compile(rb"\njobid", re.IGNORECASE)
_Array = Any                    # a NumPy array; one element a line or a job
_BLOCK: Final = 8 << 20
#: Column of sacct -> what may stand in it for a plain job; the columns that are looked at.
_COUNT: Final = r"^[0-9]{1,9}$"
_CLOCK: Final = r"^(([0-9]{1,5}-)?([0-9]{1,4}:)?[0-9]{1,4}:[0-9]{1,4}(\.[0-9]{1,6})?)?$"
_SIZE: Final = r"^([0-9]{1,15}(\.[0-9]{1,6})?[KMGTP]?)?$"
_FORMS: Final = {
    "jobid": r"^[1-9][0-9]{0,9}(_[0-9]{1,9})?$", "elapsedraw": _COUNT, "ncpus": _COUNT, "alloccpus": _COUNT,
    "nnodes": _COUNT, "allocnodes": _COUNT, "totalcpu": _CLOCK, "usercpu": _CLOCK, "systemcpu": _CLOCK,
    "maxrss": _SIZE, "maxvmsize": _SIZE, "exitcode": r"^[0-9]{1,3}:[0-9]{1,3}$",
    "timelimitraw": r"^([0-9]{1,9}|UNLIMITED|Partition_Limit)?$", "jobidraw": r"^[0-9]{0,10}$",
}
_NAMES: Final = {"user": "user", "group": "group", "account": "project", "cluster": "machine", "partition": "queue",
                 "qos": "qos"}
_TIMES: Final = ("submit", "start", "end")
_KNOWN: Final = frozenset((*_FORMS, *_NAMES, *_TIMES, "jobname", "state", "alloctres", "nodelist"))
#: Columns of a step that the reader looks at; all others of its row it leaves alone.
_STEP: Final = ("totalcpu", "usercpu", "systemcpu", "maxrss", "maxvmsize", "exitcode")
_PROPERTIES: Final = {"User": "user", "Group": "group", "Project": "project", "Machine": "machine", "Queue": "queue",
                      "QualityOfService": "qos"}


# -- rates
@dataclass(frozen=True, slots=True)
class Prices:
    """Rates that are plain. over: (column, rate a second); factors, fees: column -> name -> number."""

    rates: RateSet
    over: tuple[tuple[str, Fraction], ...]
    factors: dict[str, dict[str, Fraction]]
    fees: dict[str, dict[str, Fraction]]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of names that they go by."""
        return tuple(dict.fromkeys((*self.factors, *self.fees)))

    def factor(self, names: Sequence[str | None]) -> tuple[Fraction, Fraction]:
        """(product of factors, sum of fees) for one name a column."""
        by = dict(zip(self.columns, names, strict=True))
        factor, fee = Fraction(1), Fraction(0)
        for column, table in self.factors.items():
            factor *= _picked(table, by[column], 1)
        for column, table in self.fees.items():
            fee += _picked(table, by[column], 0)
        return factor, fee


def _picked(table: dict[str, Fraction], name: str | None, else_: int) -> Fraction:
    if not name:
        return Fraction(else_)
    return table.get(name, table.get("*", Fraction(else_)))


def plain_rates(rates: RateSet) -> Prices | None:
    """The rates in a form for columns; None where they are not plain."""
    if (rates.profile != "sss" or rates.combine != "sum" or rates.time_category or rates.quote or rates.billing
            or rates.minimum_duration or rates.granularity != 1 or rates.system_faults != "charged"
            or rates.attempts != "all" or rates.rounding != "half-up"):
        return None
    over: list[tuple[str, Fraction]] = []
    named: dict[str, dict[str, dict[str, Fraction]]] = {"NBM": {}, "NBF": {}}
    for rate in rates.rate:
        if not _plain(rate):
            return None
        if rate.type == "VBR":
            column = {"Processors": "processors", "NodeCount": "nodes"}[rate.canonical]
            over.append((column, Fraction(rate.rate) / PER[rate.per or "second"]))
        else:
            named[rate.type].setdefault(_PROPERTIES[rate.canonical], {})[str(rate.instance)] = Fraction(rate.rate)
    if not over:
        return None
    return Prices(rates, tuple(over), named["NBM"], named["NBF"])


def _plain(rate: Rate) -> bool:
    if rate.when or rate.units or rate.resource_type or rate.metric or rate.context or rate.benchmark:
        return False
    if rate.type == "VBR":
        return rate.canonical in ("Processors", "NodeCount")
    return rate.type in ("NBM", "NBF") and rate.canonical in _PROPERTIES


# -- blocks of lines
def blocks(file: BinaryIO, is_step: Callable[[bytes], bool], size: int = _BLOCK, rest: bytes = b"") -> Iterator[bytes]:
    """Blocks of whole lines; the last job of one, with its steps, is the first of the next. rest: what was read."""
    while piece := file.read(size):
        rest += piece
        end = rest.rfind(b"\n") + 1
        at = end
        while at > 0:
            at = rest.rfind(b"\n", 0, at - 1) + 1
            if not is_step(rest[at:rest.find(b"\n", at)]):
                break
        if at > 0:
            yield rest[:at]
            rest = rest[at:]
    if rest:
        yield rest


@dataclass(slots=True)
class SacctTable:
    """The charge table of one output of sacct. context: of its reading, whose findings are those of the lines that the
    reader has read. counts, tally: what has become of lines and jobs so far; plain: of the jobs, those that were."""

    context: ReadContext
    rates: RateSet
    counts: Counts = field(default_factory=Counts)
    tally: Tally = field(default_factory=Tally)
    plain: int = 0
    header: bytes = b""
    columns: list[str] = field(default_factory=list)
    lines: int = 0

    def batches(self, file: BinaryIO) -> Iterator[pa.RecordBatch]:
        """The rows, a batch a block."""
        first = file.readline(1 << 20)
        prices = plain_rates(self.rates) if self._begins(first) else None
        if prices is None:
            yield from charge_table(self._reader(chain((first,), _pieces(file)), 0), self.rates, self.tally)
            return
        found = blocks(file, self._is_step)
        for data in found:
            if data[:5].lower() == b"jobid" or _HEADER.search(data):        # other columns may follow
                lines = chain((self.header, data), found)
                yield from charge_table(self._reader(lines, self.lines - 1), self.rates, self.tally)
                return
            made = self._block(data, prices)
            yield self._by_rows(data) if made is None else made
            self.lines += data.count(b"\n")

    def _begins(self, first: bytes) -> bool:
        """Take the header; whether the columns are plain."""
        options = self.context.options
        names = first.decode("utf-8", "replace").strip().split("|")
        self.header, self.lines = first, 1
        self.columns = [n.strip().lower() for n in names]
        return (first.isascii() and not options.get("columns") and options.get("delimiter", "|") == "|"
                and {"jobid", "elapsedraw", "start", "end", "state"} <= set(self.columns) <= _KNOWN
                and len(set(self.columns)) == len(self.columns)
                and ("ncpus" in self.columns or "alloccpus" in self.columns))

    def _is_step(self, line: bytes) -> bool:
        fields, at = line.split(b"|"), self.columns.index("jobid")
        return at < len(fields) and (b"." in fields[at] or b"+" in fields[at])

    # -- by the reader
    def _reader(self, pieces: Iterable[bytes], before: int) -> Iterator[Job]:
        """The jobs of text that begins with a header, as the reader reads it; before: lines that stand before it."""
        reading = Rows(self.context)
        for job in reading.jobs(io.BufferedReader(Pieces(pieces))):
            job.line += before
            yield job
        for name in ("read", "given", "rejected", "jobs"):
            setattr(self.counts, name, getattr(self.counts, name) + getattr(reading.counts, name))
        self.counts.reasons.update(reading.counts.reasons)

    def _by_rows(self, data: bytes) -> pa.RecordBatch:
        jobs = self._reader((self.header, data), self.lines - 1)
        return batch([row(job, self.rates, self.tally) for job in jobs], self.rates)

    # -- by columns
    def _block(self, data: bytes, prices: Prices) -> pa.RecordBatch | None:
        """The rows of a block; None where it has to be read line by line."""
        read = _Columns.of(data, self.columns)
        if read is None:
            return None
        fits = read.jobs_that_fit(self.context.options.get("timezone"), prices)
        if fits is None:
            return None
        made = read.priced(fits, prices, self.context.options.get("machine"))
        self.counts.read += read.lines_of(fits)
        self.counts.given += read.lines_of(fits)
        count = int(fits.sum())
        self.counts.jobs += count
        self.plain += count
        self.tally.jobs += count
        self.tally.charged += count
        self.tally.total += _sum(made.column("charge"))
        if fits.all():
            return made
        return self._together(read, fits, made, data.split(b"\n"))

    def _together(self, read: _Columns, fits: _Array, made: pa.RecordBatch,
                  lines: list[bytes]) -> pa.RecordBatch:
        """The plain rows and those of the reader, in the order of the lines."""
        import numpy as np
        pa = arrow()

        odd = np.flatnonzero(~fits)
        numbers: list[int] = []
        for i in odd:
            numbers.extend(range(read.first[i], read.last[i]))
        jobs = list(self._reader((self.header, b"\n".join(lines[n] for n in numbers), b"\n"), 0))
        places = [numbers[job.line - 2] for job in jobs]        # the header is line 1 of what the reader saw
        for job, at in zip(jobs, places, strict=True):
            job.line = self.lines + at + 1
        rows = batch([row(job, self.rates, self.tally) for job in jobs], self.rates)
        order = np.argsort(np.concatenate([read.first[fits], np.array(places, dtype=np.int64)]), kind="stable")
        table = pa.Table.from_batches([made, rows]).take(pa.array(order)).combine_chunks()
        found = table.to_batches()
        return found[0] if found else rows


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_BLOCK):
        yield piece


def _sum(column: Any) -> Decimal:
    import pyarrow.compute as pc

    found = pc.sum(column).as_py()
    return found if found is not None else Decimal(0)


@dataclass(slots=True)
class _Columns:
    """A block as columns. table: all lines; main: of the lines, whether it is a job's own; first, last: of each job,
    its first line and the one after its last."""

    table: pa.Table
    main: _Array
    first: _Array
    last: _Array
    wall: _Array = None
    amounts: dict[str, _Array] = field(init=False, default_factory=dict)
    times: dict[str, _Array] = field(init=False, default_factory=dict)

    @classmethod
    def of(cls, data: bytes, names: list[str]) -> _Columns | None:
        """None where a line is odd: another number of columns, what is no printable ASCII, a header, a lost step."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.csv as csv

        if not data.endswith(b"\n") or b"\n\n" in data or data.startswith(b"\n") or data.translate(None, _PRINTABLE):
            return None
        try:
            table = csv.read_csv(
                pa.BufferReader(data), csv.ReadOptions(column_names=names, block_size=len(data) + 1),
                csv.ParseOptions(delimiter="|", quote_char=False, double_quote=False, ignore_empty_lines=False),
                csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False))
        except pa.ArrowInvalid:
            return None
        ids = table.column("jobid").combine_chunks()
        main = ~pc.match_substring(ids, ".").to_numpy(zero_copy_only=False)
        first = np.flatnonzero(main)
        if not main[0] or table.num_rows != data.count(b"\n"):
            return None
        owner = np.cumsum(main) - 1
        if not main.all():
            parts = pc.list_element(pc.split_pattern(ids, ".", max_splits=1), 0)
            whose = pc.take(ids, pa.array(first[owner]))
            if not pc.all(pc.equal(parts, whose)).as_py():
                return None
        return cls(table, main, first, np.append(first[1:], table.num_rows))

    def _column(self, name: str) -> Any:
        """The texts of a column, of the jobs' own lines."""
        import pyarrow as pa

        return self.table.column(name).combine_chunks().filter(pa.array(self.main))

    def lines_of(self, fits: _Array) -> int:
        """How many lines the jobs have that fit."""
        return int((self.last - self.first)[fits].sum())

    def jobs_that_fit(self, zone: str | None, prices: Prices) -> _Array | None:
        """Of the jobs, which are plain; None where a time has no zone that can be taken."""
        import numpy as np
        import pyarrow.compute as pc

        names = set(self.table.column_names)
        fits = np.ones(len(self.last), dtype=bool)
        for name in names & _FORMS.keys():
            fits &= pc.match_substring_regex(self._column(name), _FORMS[name]).to_numpy(zero_copy_only=False)
        fits &= self._steps_fit(names)
        for name in names & {*_NAMES, "jobname"}:
            fits &= (pc.binary_length(self._column(name)).to_numpy() <= 1024)
        if "qos" in names:      # which sacct says of a job that ended just now; it is no name
            fits &= pc.not_equal(self._column("qos"), "Unknown").to_numpy(zero_copy_only=False)
        for name in names & set(_TIMES):
            found = _epochs(self._column(name), zone)
            if found is None:
                return None
            self.times[name] = found
            fits &= found > 0
        self.wall = _integers(self._column("elapsedraw"), fits)
        start, end = self.times["start"], self.times["end"]
        fits &= (end >= start) & (self.wall <= end - start + 2) & (self.wall > 0)
        if "submit" in self.times:
            fits &= start >= self.times["submit"] - 2
        fits &= self._unique("state", _ended)
        fits &= self._counted(names, fits)
        if "nodes" not in self.amounts and any(column == "nodes" for column, _ in prices.over):
            fits &= False
        return fits

    def _steps_fit(self, names: set[str]) -> _Array:
        """Of the jobs, those of whose steps every looked-at column holds what it should."""
        import numpy as np
        import pyarrow.compute as pc

        bad = np.zeros(len(self.main), dtype=bool)
        for name in names & set(_STEP):
            form = r"^([0-9]{1,3}:[0-9]{1,3})?$" if name == "exitcode" else _FORMS[name]
            bad |= ~pc.match_substring_regex(self.table.column(name).combine_chunks(), form).to_numpy(
                zero_copy_only=False)
        return np.add.reduceat(bad & ~self.main, self.first) == 0

    def _counted(self, names: set[str], fits: _Array) -> _Array:
        """Processors and nodes, and of which jobs all columns agree about them."""
        import numpy as np

        good = np.ones(len(fits), dtype=bool)
        for amount, columns in (("processors", ("alloccpus", "ncpus")), ("nodes", ("allocnodes", "nnodes"))):
            for name in (c for c in columns if c in names):
                found = _integers(self._column(name), fits)
                known = self.amounts.setdefault(amount, found)
                good &= (found == known) & (found > 0)
        if "alloctres" in names:
            for amount, of in (("processors", "cpu"), ("nodes", "nodes")):
                found = self._numbers("alloctres", partial(_of_tres, of))
                good &= (found == self.amounts.get(amount, found)) & (found > 0)
                self.amounts.setdefault(amount, found)
        if "nodelist" in names:
            found = self._numbers("nodelist", _listed)
            good &= (found == self.amounts.get("nodes", found)) & (found > 0)
            self.amounts.setdefault("nodes", found)
        return good

    def _unique(self, name: str, holds: Callable[[str], bool]) -> _Array:
        """Whether something holds, asked once for each different text."""
        return self._numbers(name, lambda text: int(holds(text))) > 0

    def _numbers(self, name: str, number: Callable[[str], int]) -> _Array:
        """A number for each text, made once for each different one."""
        import numpy as np

        coded = self._column(name).dictionary_encode()
        values = np.array([number(text) for text in coded.dictionary.to_pylist()] or [0], dtype=np.int64)
        return values[coded.indices.to_numpy()]

    # -- prices
    def priced(self, fits: _Array, prices: Prices, machine: str | None) -> pa.RecordBatch:
        """The rows of the jobs that are plain."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        fields = schema(prices.rates)
        mask = pa.array(fits)
        made: dict[str, Any] = {"id": self._column("jobid").filter(mask)}
        for column, name in _NAMES.items():
            if column in self.table.column_names:
                texts = self._column(column).filter(mask)
                made[name] = pc.if_else(pc.equal(texts, ""), machine if name == "machine" else None, texts)
        count = int(fits.sum())
        if "machine" not in made and machine is not None:
            made["machine"] = pa.array([machine] * count, pa.string())
        made |= {"start": pa.array(self.times["start"][fits]), "end": pa.array(self.times["end"][fits]),
                 "wall_s": pa.array(self.wall[fits])}
        for name, values in self.amounts.items():
            made[name] = pa.array(values[fits].astype(np.float64 if name == "processors" else np.int64))
        made["charge"] = self._charges(fits, prices, made)
        arrays = [made[name].cast(f.type) if name in made else pa.nulls(count, f.type)
                  for name, f in zip(COLUMNS, fields, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=fields)

    def _charges(self, fits: _Array, prices: Prices, made: dict[str, Any]) -> Any:
        """Exact charges: whole numbers over one denominator for each combination of names."""
        import numpy as np
        import pyarrow as pa

        common = 1
        for _, rate in prices.over:
            common = common * rate.denominator // np.gcd.reduce([common, rate.denominator]).item()
        wall = self.wall[fits]
        most = int(wall.max(initial=0))
        used = np.zeros(len(wall), dtype=object)
        for column, rate in prices.over:
            used = used + self.amounts[column][fits].astype(object) * int(rate * common)
        exact = max((int(self.amounts[c][fits].max(initial=0)) * int(r * common) for c, r in prices.over), default=0)
        small = exact * len(prices.over) * most < 1 << 40
        used = used.astype(np.int64) * wall if small else used * wall.astype(object)
        codes, combos = _combined([made.get(name) for name in prices.columns], len(wall))
        steps = np.zeros(len(wall), dtype=np.int64 if small else object)
        smallest = Fraction(prices.rates.smallest)
        least = Fraction(prices.rates.minimum)
        for code, names in enumerate(combos):
            at = codes == code
            factor, fee = prices.factor(names)
            # max(used / common * factor + fee, least) / smallest + 1/2, floored
            scale, shift = factor / (common * smallest), fee / smallest
            below = scale.denominator * shift.denominator
            over = scale.numerator * shift.denominator
            plus = shift.numerator * scale.denominator
            values = used[at]
            if small and (over * 2 * (1 << 40) + abs(plus) * 2 + below >= 1 << 62):
                values = values.astype(object)
            steps[at] = (2 * (values * over + plus) + below) // (2 * below)
            floor = (2 * least.numerator * smallest.denominator + least.denominator * smallest.numerator) // (
                2 * least.denominator * smallest.numerator)
            if floor:
                steps[at] = np.maximum(steps[at], floor)
        return _decimals(steps, int(smallest * 10**prices.rates.precision), prices.rates.precision, pa)


def _combined(columns: Sequence[Any], count: int) -> tuple[_Array, list[tuple[str | None, ...]]]:
    """(number of the combination of each row, the combinations)."""
    import numpy as np

    combos: list[tuple[str | None, ...]] = [()]
    codes = np.zeros(count, dtype=np.int64)
    for column in columns:
        if column is None:
            combos = [(*c, None) for c in combos]
            continue
        coded = column.dictionary_encode()
        names = [*coded.dictionary.to_pylist(), None]
        indices = coded.indices.fill_null(len(names) - 1).to_numpy()
        found, codes = np.unique(codes * len(names) + indices, return_inverse=True)
        combos = [(*combos[f // len(names)], names[f % len(names)]) for f in found.tolist()]
    return codes, combos


def _decimals(steps: _Array, factor: int, precision: int, pa: Any) -> Any:
    """Whole numbers of the smallest amount as decimals."""
    import numpy as np

    if steps.dtype == object:
        return pa.array([Decimal(int(s) * factor).scaleb(-precision) for s in steps], pa.decimal128(38, precision))
    low = steps.astype(np.int64) * factor
    words = np.empty((len(low), 2), dtype=np.int64)
    words[:, 0], words[:, 1] = low, np.where(low < 0, -1, 0)
    return pa.Array.from_buffers(pa.decimal128(38, precision), len(low), [None, pa.py_buffer(words.tobytes())])


def _integers(texts: Any, fits: _Array) -> _Array:
    """The whole numbers of texts; 0 for those of jobs that do not fit anyway."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(fits), texts, "0").cast(pa.int64()).to_numpy()


def _epochs(texts: Any, zone: str | None) -> _Array | None:
    """Epoch seconds, 0 for what is none; None where they need a zone that is not named or shows one of them twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.match_substring_regex(texts, r"^[1-9][0-9]{8,9}$")
    iso = pc.match_substring_regex(texts, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]$")
    made = pc.if_else(digits, texts, "0").cast(pa.int64())
    if not pc.any(iso).as_py():
        return made.to_numpy()
    if zone is None or (zone != "UTC" and "/" not in zone):
        return None
    try:
        local = pc.if_else(iso, texts, "2000-06-01T00:00:00").cast(pa.timestamp("s"))
        there = local if zone == "UTC" else pc.assume_timezone(local, zone, ambiguous="raise", nonexistent="raise")
        seconds = there.cast(pa.int64()) if zone == "UTC" else there.cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    return pc.if_else(iso, seconds, made).to_numpy()


def _ended(text: str) -> bool:
    """Whether the state is one of a job that has ended, and known."""
    state, _, _, known = ending(text, "", None)
    return known and state == "Completed"


def _of_tres(of: str, text: str) -> int:
    try:
        made = tres(text, "AllocTRES")
    except Rejected:
        return -1
    return -1 if made.gpus_differ else getattr(made, of) or 0


def _listed(text: str) -> int:
    if not text or text == "None assigned":
        return -1
    _, count, wrong = node(text) if len(text) < 4096 else (None, -1, "long")
    return -1 if wrong else count


