"""Totals of the output of sacct, column by column: what ``Totals.add`` makes of the jobs that the reader gives.

Plain jobs (``_sacct_columns``) are summed in Arrow by what they are told apart by. What a job says of that is asked of
one of those whose columns have the same texts: the reader makes it a job, and ``dimensions`` looks at it. All jobs that
are not plain are given back, to be added one by one. What jobs used and asked for are numbers that are added up beside
the times and counts that every reader of columns looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, BinaryIO, Final

from sssjob.accounting._arrow import pa, pc
from sssjob.accounting._sacct_clocks import number_before, numbers_of
from sssjob.accounting._sacct_columns import Columns
from sssjob.accounting._sacct_shapes import Shapes
from sssjob.accounting._sacct_sizes import MOST_BYTES, over_time
from sssjob.accounting.columnar import SacctBlocks, charges_of, units_of
from sssjob.accounting.dimensions import ABSENT, size_class, value_of, wait_class
from sssjob.accounting.efficiency import Efficiency
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.totals import Sums, Totals, step_of
from sssjob.document.endings import Ended, failed
from sssjob.document.model import Job
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext
from sssjob.translators.records._tres import TresForm, energy_place, memory_place
from sssjob.translators.records.base import UNFORESEEN, Counts, Rejected, micros, rounded
from sssjob.translators.records.sacct import Rows

#: Property -> columns of sacct of which it comes.
_ENDED: Final = ("state", "exitcode", "reason")
_FAILED: Final = "failed"       # whether it did, of a job
_COLUMNS: Final = {
    "User": ("user", "uid"), "Group": ("group", "gid"), "Project": ("account",), "Machine": ("cluster",),
    "Queue": ("partition",), "QualityOfService": ("qos",), "Reservation": ("reservation",), "State": _ENDED,
    "StatusMessage": _ENDED, "ExitCode": _ENDED, "Extension:State": _ENDED, "Failure": _ENDED, _FAILED: _ENDED,
}
#: What is made of numbers.
_CLASSES: Final[dict[str, Callable[[int], str]]] = {"Size": size_class, "Wait": wait_class}
_WORD: Final = 2**62            # sums of Arrow stay below
_QUARTER: Final = 900           # seconds at whose multiples periods begin, in every zone
_NO_RATES: Final = 'name = "none"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 0\n'
_REMEMBERED: Final = 1 << 16
_HOURS: Final = 500 * 3600      # seconds; of more hours each moment is asked for
_FRACTIONS: Final = ("wall", "processors", "cpu", "cpu_basis", "cpu_paired", "requested", "requested_used", "gpus",
                     "nodes", "energy")
_SUMMED: Final = ("failed", "waited", "wait", "charge", "charged", "mem_used", "mem_held", *_FRACTIONS)


class SacctTotals:
    """Adds up outputs of sacct. totals: to each of which is added; rates: by which jobs are charged; uncharged, unsaid:
    count why those of the first totals are not, and for which rates they do not say an amount. One is for several logs:
    ``of`` for each of them."""

    def __init__(self, totals: Sequence[Totals], rates: RateSet | None, uncharged: Counter[str],
                 unsaid: Counter[str]) -> None:
        self.totals, self.rates, self.uncharged, self.unsaid = totals, rates, uncharged, unsaid
        self.ended = Ended()        # of all logs
        self._known: dict[tuple[str, ...], _LearnedColumns] = {}
        self.names = {name for total in totals for name in (*total.by, *(condition.name for condition in total.where))}

    @property
    def suits(self) -> bool:
        """Whether anything can be added up so: users are not counted, nor jobs shared out."""
        return (not any(total.spread or total.least > 1 for total in self.totals)
                and all(name in _COLUMNS or name in _CLASSES for name in self.names))

    def of(self, file: BinaryIO, context: ReadContext) -> _Log:
        """The log of one file, which gives the jobs that are not plain and adds up the others."""
        return _Log(self, file, context)

    def known(self, context: ReadContext, columns: Sequence[str]) -> _LearnedColumns:
        """What is known of logs with these columns."""
        key = *columns, repr(sorted(context.options.items()))
        if key not in self._known:
            self._known[key] = _LearnedColumns(context, self.rates or read_rates(_NO_RATES), columns)
        return self._known[key]


class _LearnedColumns:
    """What was learned of logs with the same columns. shapes: of their jobs."""

    def __init__(self, context: ReadContext, rates: RateSet, columns: Sequence[str]) -> None:
        self.shapes = Shapes(context, rates, columns)
        self._reading = Rows(ReadContext("-", Findings("-"), limits=context.limits, options=context.options))
        self._said: dict[tuple[str, ...], str] = {}

    def said(self, read: Columns, number: int, name: str, columns: Sequence[str]) -> str:
        """What is said of a job of which only the texts of these columns count. name: of a dimension, or FAILED."""
        row = read.row(number)
        key = name, *(row[column] for column in columns)
        if key not in self._said:
            if len(self._said) > _REMEMBERED:
                self._said.clear()
            self._said[key] = self._asked(row, name)
        return self._said[key]

    def _asked(self, row: dict[str, str], name: str) -> str:
        try:
            self._reading.fold(row, 1)
            (job,) = self._reading.rest()
        except (Rejected, *UNFORESEEN):
            return ABSENT
        if name != _FAILED:
            return value_of(job, name)
        return "silent" if job.value("ExitCode") is None and not failed(job) else str(int(failed(job)))


class _Log:
    """One log."""

    def __init__(self, whole: SacctTotals, file: BinaryIO, context: ReadContext) -> None:
        self._whole, self._file, self._context = whole, file, context
        self._blocks = SacctBlocks(context, lambda columns: whole.known(context, columns).shapes)

    @property
    def counts(self) -> Counts:
        """What has become of the lines so far."""
        return self._blocks.reading.counts

    def __iter__(self) -> Iterator[Job]:
        for part in self._blocks.parts(self._file):
            if isinstance(part, Columns):
                self._add(part)
                yield from self._blocks.odd(part, part.nameless())
            else:
                yield from part

    def _add(self, read: Columns) -> None:
        """Add up the plain jobs of a block, of which those leave that have to be added one by one."""
        rates, names = self._whole.rates, read.jobs.column_names
        charges, reasons, unsaid = ([0] * len(read.plain), list[str | None](), dict[int, tuple[str, ...]]()
                                    ) if rates is None else charges_of(read, rates)
        if not read.plain:
            return
        ends = self._said_of(read, _FAILED)
        odd = ("totalcpu" not in names and not {"usercpu", "systemcpu"}.isdisjoint(names)) or _too_large(read) or (
            max(charges, default=0) * len(charges) >= _WORD)
        doubts = pc.or_(_sampled(read, held=False), pc.less(figure(read, "peak"), 0))
        doubtful = set(pc.indices_nonzero(doubts).to_pylist())
        kept = [] if odd else [n for n, job in enumerate(read.plain)     # of which only a step may tell a signal
                               if (ends[job] != "silent" or read.last[job] - read.first[job] == 1)
                               and job not in doubtful]
        kept = self._first(read, kept)
        if len(kept) < len(read.plain):
            charges, reasons = [charges[n] for n in kept], [reasons[n] for n in kept] if reasons else []
            read.keep([read.plain[n] for n in kept])
        if read.plain:
            texts_by_name = {name: self._said_of(read, name) for name in self._whole.names}
            figures = _figures(read, ends)
            for n, totals in enumerate(self._whole.totals):
                jobs = self._sum(read, totals, charges, reasons, texts_by_name, figures, first=not n)
                if unsaid and not n:
                    self._whole.unsaid.update(label for job in jobs for label in unsaid.get(job, ()))

    def _first(self, read: Columns, kept: list[int]) -> list[int]:
        """Those of some plain jobs whose runs were not read before; the others are for whoever adds one by one."""
        are_first = self._whole.ended.first(read.runs([read.plain[n] for n in kept]))
        return [n for n, is_first in zip(kept, are_first, strict=True) if is_first]

    # -- what jobs are told apart by
    def _said_of(self, read: Columns, name: str) -> list[str]:
        """Of each job the text of a dimension; of those that are not plain any."""
        of_number = _CLASSES.get(name)
        if of_number is not None:
            numbers = figure(read, "size" if name == "Size" else "waited").to_pylist()
            classes = {number: of_number(number) if number >= 0 else ABSENT for number in set(numbers)}
            return [classes[number] for number in numbers]
        columns = [column for column in _COLUMNS[name] if column in read.jobs.column_names]
        rows = list(zip(*(read.coded(column) for column in columns), strict=True)) or [()] * len(read.first)
        texts_of, texts_by_row = self._whole.known(self._context, self._blocks.reading.columns), dict[Any, str]()
        for job in read.plain:
            if rows[job] not in texts_by_row:
                texts_by_row[rows[job]] = texts_of.said(read, job, name, columns)
        return [texts_by_row.get(row, ABSENT) for row in rows]

    # -- sums
    def _sum(self, read: Columns, totals: Totals, charges: list[int], reasons: list[str | None],
             texts_by_name: Mapping[str, list[str]], figures: Any, *, first: bool) -> Sequence[int]:
        """Add up the plain jobs; gives those that are within the totals. texts_by_name: of each job by dimension;
        figures: what each adds; first: why jobs are not charged counts."""
        rates, end, since, until = self._whole.rates, read.listed("end"), totals.since or 0, totals.until
        within = [n for n, job in enumerate(read.plain) if all(
            (texts_by_name[c.name][job] in c.values) is not c.negated for c in totals.where) and end[job] >= since and (
            until is None or end[job] < until)]
        if not within:
            return ()
        jobs = [read.plain[n] for n in within]
        if reasons and first:
            self._whole.uncharged.update(reason for n in within if (reason := reasons[n]) is not None)
        figures = figures.take(pa.array(jobs, pa.int64()))
        figures = figures.append_column("charge", pa.array([charges[n] for n in within], pa.int64()))
        figures = figures.append_column("charged", pa.array(
            [int(rates is not None and reasons[n] is None) for n in within], pa.int64()))
        keys = [f"key{n}" for n in range(len(totals.by))]
        for key, name in zip(keys, totals.by, strict=True):
            figures = figures.append_column(key, pa.array([texts_by_name[name][job] for job in jobs], pa.string()))
        figures = figures.append_column("period", _periods_of(figures.column("quarter").combine_chunks(), totals))
        self._merge(totals, figures, ["period", *keys])
        return jobs

    def _merge(self, totals: Totals, figures: Any, keys: list[str]) -> None:
        """Add the sums of groups to the totals."""
        rates, groups = self._whole.rates, dict[tuple[str, ...], Sums]()
        sums = figures.group_by(keys).aggregate([*((name, "sum") for name in _SUMMED), ("wall", "count")])
        for key, jobs, *added in _rows_of(sums, keys, "wall_count", *(f"{name}_sum" for name in _SUMMED)):
            amounts = dict(zip(_SUMMED, added, strict=True))
            group = groups[key] = Sums(jobs, amounts["failed"], waited=amounts["waited"], wait=amounts["wait"])
            for name in _FRACTIONS:
                setattr(group, name, amounts[name])        # whole, and added to fractions
            if rates is not None and amounts["charged"]:
                group.charges[rates.currency] = Fraction(amounts["charge"] * units_of(rates), 10**rates.precision)
            if amounts["mem_held"]:
                group.mem = Efficiency(Fraction(amounts["mem_used"]), Fraction(amounts["mem_held"]))
        for name in ("step", "percent"):
            counts = figures.group_by([*keys, name]).aggregate([(name, "count")])
            for key, number, jobs in _rows_of(counts, keys, name, f"{name}_count"):
                if number >= 0:
                    (groups[key].waits if name == "step" else groups[key].mem.counts)[number] = jobs
        for (period, *key), group in groups.items():
            totals.take(period, tuple(key), group)


def _rows_of(table: Any, keys: Sequence[str], *names: str) -> Iterator[tuple[Any, ...]]:
    """(texts of keys, values of names ...) of each row of an Arrow table."""
    columns = [[table.column(name).to_pylist() for name in some] for some in (keys, names)]
    return zip(zip(*columns[0], strict=True), *columns[1], strict=True)


def _periods_of(moments: Any, totals: Totals) -> Any:
    """The name of the period of each moment of an array, epoch seconds."""
    bounds = pc.min_max(moments).as_py()
    at, last, borders = bounds["min"], bounds["max"], list[int]()
    if totals.every == "hour" and last - at > _HOURS:
        periods = {moment: totals.period(moment) for moment in set(moments.to_pylist())}
        return pa.array([periods[moment] for moment in moments.to_pylist()], pa.string())
    names = [totals.period(at)]
    while totals.every is not None and (at := totals.next_period(at)) <= last:
        borders.append(at)
        names.append(totals.period(at))
    totals.period(last)         # it is told for which moments periods were asked
    return pc.take(pa.array(names, pa.string()), number_before(moments, borders))


def _too_large(read: Columns) -> bool:
    """Whether the sums of a block may be more than Arrow holds."""
    wall, processors, nodes, gpus, asked, energy, limits = (
        pc.max(figure(read, name)).as_py() or 0
        for name in ("wall", "processors", "nodes", "gpus", "asked", "joules", "requested"))
    most = max(wall * processors, wall * nodes, wall * gpus, limits * max(asked, processors), energy)
    return bool(most * len(read.first) >= _WORD)


def _sampled(read: Columns, *, held: bool) -> Any:
    """Which jobs on one node have a peak of memory and say how much there was of it (held), or do not."""
    has_memory = pc.greater(figure(read, "memory"), 0)
    peaks = pc.and_(pc.greater(figure(read, "peak"), 0), pc.less_equal(figure(read, "nodes"), 1))
    return pc.and_(peaks, has_memory if held else pc.invert(has_memory))


def _figures(read: Columns, ends: list[str]) -> Any:
    """What each job adds to the sums, as columns."""
    wall, processors, cpu_us, waited, limits = (
        figure(read, name) for name in ("wall", "processors", "cpu_us", "waited", "requested"))
    asked = figure(read, "asked")
    asked = pc.if_else(pc.equal(asked, 0), processors, asked)
    used, has_cpu = pc.multiply(wall, processors), pc.and_(pc.greater(cpu_us, 0), pc.greater(processors, 0))
    cpu = pc.divide(pc.add(cpu_us, 500_000), 1_000_000)
    says = pc.and_(pc.greater(limits, 0), pc.greater(processors, 0))
    steps = {number: step_of(number) if number >= 0 else -1 for number in set(waited.to_pylist())}
    zeros, sampled = pc.multiply(wall, 0), _sampled(read, held=True)
    peak, memory = (pc.if_else(sampled, figure(read, name), 0) for name in ("peak", "memory"))
    twice = pc.if_else(sampled, pc.multiply(memory, 2), 1)
    return pa.table({
        "mem_used": over_time(peak, wall), "mem_held": over_time(memory, wall),
        "percent": pc.if_else(sampled, pc.divide(pc.add(pc.multiply(peak, 200), memory), twice), -1),
        "failed": pa.array([int(end == "1") for end in ends], pa.int64()), "wall": wall, "processors": used, "cpu": cpu,
        "cpu_basis": pc.if_else(has_cpu, used, zeros), "cpu_paired": pc.if_else(has_cpu, cpu, zeros),
        "requested": pc.if_else(says, pc.multiply(limits, asked), zeros),
        "requested_used": pc.if_else(says, used, zeros), "gpus": pc.multiply(wall, figure(read, "gpus")),
        "nodes": pc.multiply(wall, figure(read, "nodes")), "energy": figure(read, "joules"),
        "waited": pc.greater_equal(waited, 0).cast(pa.int64()), "wait": pc.max_element_wise(waited, 0),
        "step": pa.array([steps[number] for number in waited.to_pylist()], pa.int64()),
        "quarter": pc.multiply(pc.divide(figure(read, "end"), _QUARTER), _QUARTER)})


_Array = Any            # of Arrow, one element a job


def figure(read: Columns, name: str) -> _Array:
    """A number of each job, 0 where none is said and any of those that are not plain: ``wall``, ``start``, ``end``,
    ``processors``, ``nodes``, ``gpus``, ``joules``, ``cpu_us``, ``asked`` (processors), ``requested`` (seconds),
    ``size`` (processors, else those asked for), ``waited`` (seconds from submission to start, -1 where that is not
    said), ``memory`` (bytes of AllocTRES, 0 too where they are beyond reason), ``peak`` (bytes that were sampled, -1
    where the reader has to look)."""
    if name not in read.arrays and name in _MADE:
        read.arrays[name] = _MADE[name](read)
    values = read.arrays.get(name)
    return pc.multiply(read.arrays["wall"], 0) if values is None else values


def _waited(read: Columns) -> _Array:
    """Seconds from submission to start, -1 where that is not said."""
    submit, start = figure(read, "submit"), read.arrays["start"]
    stated = pc.and_(pc.greater(submit, 0), pc.greater_equal(start, submit))
    return pc.if_else(stated, pc.subtract(start, submit), -1)


def _size(read: Columns) -> _Array:
    """Processors that jobs were assigned, else those that they asked for."""
    processors = figure(read, "processors")
    return pc.if_else(pc.equal(processors, 0), figure(read, "asked"), processors)


def _limits(read: Columns) -> _Array:
    """Seconds of the time limits of the plain jobs, 0 where there is none."""
    names, limits = read.jobs.column_names, []
    for name in ("timelimitraw", "timelimit"):
        if name in names:
            texts = read.column(name)
            digits = pc.match_substring_regex(texts, r"^[0-9]")
            clocks = pc.if_else(pc.and_(read.fits, digits), texts, "").dictionary_encode()
            limits.append(numbers_of(clocks, _minutes if name == "timelimitraw" else _clock))
    if not limits:
        return pc.multiply(read.arrays["wall"], 0)
    if len(limits) == 1:
        return limits[0]
    return pc.if_else(pc.match_substring_regex(read.column("timelimitraw"), r"^[0-9]"), *limits)


#: What a text says, of its numbers.
_Amount = Callable[[tuple[str, ...]], int]


def _assigned(read: Columns, amount_of: Callable[[TresForm], _Amount]) -> _Array:
    """An amount of each job that its AllocTRES say, 0 where there are none. amount_of: the texts of a form."""
    of, texts = read.lists.get("of"), read.lists.get("texts")
    if of is None or texts is None:
        return pc.multiply(read.arrays["wall"], 0)
    amounts = [amount_of(form) for form in read.shapes.forms.forms]
    values = [0 if cut is None else amounts[cut[0]](cut[1]) for cut in texts]
    return pa.array([values[text] for text in of], pa.int64())


def _amount_at(place: tuple[int, int] | None) -> _Amount:
    """The amount that stands at a place (which number, units of one), 0 where there is none or it is beyond reason."""
    if place is None:
        return lambda numbers: 0
    at, unit = place

    def amount(numbers: tuple[str, ...]) -> int:
        units = int(numbers[at]) * unit
        return units if units < MOST_BYTES else 0

    return amount


def _joules(read: Columns) -> _Array:
    """The energy that the jobs used, by ConsumedEnergy, else by AllocTRES."""
    measured = figure(read, "energy")
    return pc.if_else(pc.equal(measured, 0), _assigned(read, lambda form: _amount_at(energy_place(form))), measured)


def _minutes(text: str) -> int:
    """Seconds of minutes."""
    return 60 * int(text) if text else 0


def _clock(text: str) -> int:
    """Whole seconds of a clock."""
    return rounded(micros(text, "Timelimit")) or 0


def _gpus_of(form: TresForm, numbers: Sequence[str]) -> int:
    """The GPUs of a text of a form: those of all types, else those that are said of no type."""
    if form.typed:
        return sum([int(numbers[at]) for at in form.typed])
    return int(numbers[form.total]) if form.total >= 0 else 0


#: What is worked out when it is asked for.
_MADE: Final[dict[str, Callable[[Columns], _Array]]] = {
    "requested": _limits, "waited": _waited, "asked": lambda read: figure(read, "reqcpus"), "size": _size,
    "gpus": lambda read: _assigned(read, lambda form: partial(_gpus_of, form)),
    "memory": lambda read: _assigned(read, lambda form: _amount_at(memory_place(form))), "joules": _joules}
