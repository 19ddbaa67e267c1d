"""Shapes of jobs of sacct: jobs that say the same but for amounts and durations, and what each shape is charged.

A shape is a row of sacct in which numbers are left open. To learn its coefficients rows with chosen numbers are
written, read by the reader and charged by the charge engine; neither is imitated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sssjob.accounting.coefficients import Coefficients, coefficients
from sssjob.accounting.pricing import Charge, Uncharged, additive, charge
from sssjob.accounting.rates import Rate, RateSet
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext
from sssjob.translators.records._tres import TresForms
from sssjob.translators.records.base import UNFORESEEN, Rejected
from sssjob.translators.records.sacct import Rows

#: Column of sacct -> the property by whose text rates may select.
NAMES: Final = {"user": "User", "group": "Group", "account": "Project", "cluster": "Machine", "partition": "Queue",
                "qos": "QualityOfService", "reservation": "Reservation"}
#: Column -> the one that says it where it is empty.
WHO: Final = {"user": "uid", "group": "gid"}
#: Amounts of a shape beside Resources.
_AMOUNTS: Final = ("Processors", "NodeCount", "Memory", "Duration")
#: Names that are no Resource's: of the vocabulary, and of the Extensions that the reader of sacct writes.
_TAKEN: Final = frozenset((
    *(name for e in ELEMENTS for name in (e.name, *e.aliases)), "Nodes", "ArrayId", "ArrayIndex", "Comment",
    "DerivedExitCode", "Elapsed", "EligibleStamp", "ExitSignal", "ExitStatus", "GpuDuration", "JobIDRaw", "MaxVMSize",
    "Planned", "SLUID", "WCKey"))
_PROCESSORS: Final = ("alloccpus", "ncpus")
_NODES: Final = ("allocnodes", "nnodes", "nodelist")
_ENERGY: Final = ("consumedenergyraw", "consumedenergy")
_START: Final = 1_000_000_000       # of the rows that are written
_SHAPES: Final = 1 << 14            # that are remembered


class Shape(NamedTuple):
    """What jobs have in common. form: which one their TRES have; energy: whether it was measured; texts: by which rates
    select, None for one that no rate mentions; state: the manager's, where rates ask for it; prices: which of the price
    lists holds."""

    form: int
    energy: bool
    texts: tuple[str | None, ...]
    state: str
    prices: int = 0


class Shapes:
    """The shapes of jobs in a log with these columns, and their coefficients. known: whether rates are of a kind for
    which there are some; named: column -> texts that rates mention; by_state: whether they go by the state."""

    def __init__(self, context: ReadContext, rates: RateSet, columns: Sequence[str]) -> None:
        self.columns, self.forms = columns, TresForms()
        self.by_state = rates.system_faults == "free" or rates.attempts == "committed"
        every = [rate for prices in rates.prices for rate in prices.rates]
        self.by_memory = any(rate.canonical == "Memory" for rate in every) and "maxrss" in columns
        self.named: dict[str, frozenset[str]] = {}
        self._rates = rates.model_copy(update={"minimum": type(rates.minimum)(0)})
        self.rates = rates
        self._reading = Rows(ReadContext("-", Findings("-"), limits=context.limits, options=context.options))
        self._prices: dict[Shape, Coefficients | Uncharged | None] = {}
        self.known = additive(rates) and all([self._suits(rate) for rate in every])

    def _suits(self, rate: Rate) -> bool:
        """Whether a rate goes by what a shape has; take what it mentions."""
        if rate.type[0] == "V" and rate.canonical not in _AMOUNTS and rate.canonical in _TAKEN:
            return False
        if rate.canonical == "Memory" and self.by_memory and rate.metric not in (None, "Total"):
            return False
        selected = [(rate.canonical, {str(rate.instance)})] if rate.type[0] == "N" else []
        selected += [(name, {text}) for name, text in rate.when.items()]
        if rate.benchmark is not None:
            selected.append(("Machine", set(self.rates.benchmark[rate.benchmark].machine)))
        return all([self._takes(name, texts) for name, texts in selected])

    def _takes(self, name: str, texts: Iterable[str]) -> bool:
        column = next((column for column, column_name in NAMES.items() if column_name == name), None)
        if column is None:
            return name not in _TAKEN
        self.named[column] = self.named.get(column, frozenset()).union(texts)
        return True

    # -- amounts
    def kinds(self, shape: Shape) -> list[str | int]:
        """The amounts of a shape: ``processors``, ``nodes``, the numbers of its form, ``energy``."""
        form = self.forms.forms[shape.form]
        kinds: list[str | int] = []
        if form.cpu >= 0 or any(column in self.columns for column in _PROCESSORS):
            kinds.append("processors")
        if form.node >= 0 or any(column in self.columns for column in _NODES):
            kinds.append("nodes")
        return [*kinds, *form.free, *(("energy",) if shape.energy else ())]

    # -- prices
    def price(self, shape: Shape, texts: Mapping[str, str]) -> Coefficients | Uncharged | None:
        """The coefficients of a shape, or why its jobs are not charged; None where the reader has to look at each.
        texts: of one of its jobs, by column: who, and the state."""
        if self.by_memory and not self.forms.forms[shape.form].memory:
            return None
        if shape not in self._prices:
            if len(self._prices) >= _SHAPES:
                self._prices.clear()
            row = {**dict.fromkeys(self.columns, ""), **texts}
            kinds = self.kinds(shape)
            self._prices[shape] = coefficients(partial(self._charge, row, shape, kinds), len(kinds), self.rates)
        return self._prices[shape]

    def _start(self, prices: int, seconds: int) -> int:
        """When a job of so many seconds starts for which a price list holds."""
        borders = self.rates.borders
        if not borders:
            return _START
        if prices and self.rates.valid_by == "end":
            return borders[prices - 1] + 1 - seconds
        return borders[prices - 1] if prices else borders[0] - seconds

    def _charge(self, row: dict[str, str], shape: Shape, kinds: Sequence[str | int], seconds: int,
                amounts: Sequence[int]) -> Charge | Uncharged | None:
        """What a job of a shape is charged; None where the reader does not take it."""
        held: dict[Any, int] = dict(zip(kinds, amounts, strict=True))
        form = self.forms.forms[shape.form]
        processors, nodes = held.get("processors", 0), held.get("nodes", 0)
        start = self._start(shape.prices, seconds)
        numbers = {"jobid": "1", "elapsedraw": seconds, "start": start, "end": start + seconds,
                   "alloctres": form.text(processors, nodes, [held[at] for at in form.free]),
                   "nodelist": f"n[1-{nodes}]", **dict.fromkeys(_PROCESSORS, processors),
                   **dict.fromkeys(_NODES[:2], nodes),
                   **(dict.fromkeys(_ENERGY, held["energy"]) if shape.energy else {})}
        row = row | {column: str(number) for column, number in numbers.items() if column in row}
        try:
            self._reading.fold(row, 1)
            (job,) = self._reading.rest()
        except (Rejected, *UNFORESEEN):
            return None
        return charge(job, self._rates)
