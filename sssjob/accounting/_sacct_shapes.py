"""Shapes of jobs of sacct: jobs that say the same but for amounts and durations, and what each shape is charged.

A shape is a row of sacct in which numbers are left open. To learn its coefficients rows with chosen numbers are
written, read by the reader and charged by the charge engine; neither is imitated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sssjob.accounting.coefficients import Coefficients, coefficients
from sssjob.accounting.pricing import Charge, Uncharged, additive, charge
from sssjob.accounting.rates import Rate, RateSet
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import UNFORESEEN, Rejected
from sssjob.translators.records.sacct import Rows

__all__ = ["NAMES", "WHO", "Form", "Forms", "Shape", "Shapes"]

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
    "DerivedExitCode", "Elapsed", "EligibleStamp", "ExitSignal", "ExitStatus", "JobIDRaw", "MaxVMSize", "Planned",
    "SLUID", "WCKey"))
_PROCESSORS: Final = ("alloccpus", "ncpus")
_NODES: Final = ("allocnodes", "nnodes", "nodelist")
_ENERGY: Final = ("consumedenergyraw", "consumedenergy")
_ITEM: Final = re.compile(r"([a-z]+(?:/[^=,|]*)?)=(0|[1-9][0-9]{0,14})([KMGTP]?)", re.ASCII)
_START: Final = 1_000_000_000       # of the rows that are written
_FORMS: Final = 64                  # texts of TRES that differ in more than numbers
_SHAPES: Final = 1 << 14            # that are remembered


class Form(NamedTuple):
    """A text of TRES in which numbers are open. pieces: what stands before each and behind the last; match: the full
    match of a text, its groups the numbers; cpu, node, total: which of them are these (total: of GPUs), -1 for none;
    typed: those that add up to total; free: the others; memory: whether memory is said."""

    pieces: tuple[str, ...]
    match: Callable[[str], re.Match[str] | None]
    cpu: int
    node: int
    total: int
    typed: tuple[int, ...]
    free: tuple[int, ...]
    memory: bool

    def text(self, processors: int, nodes: int, amounts: Sequence[int]) -> str:
        """The text with these numbers; amounts: the free ones and the typed ones, in their order."""
        numbers = [0] * (len(self.pieces) - 1)
        for at, number in zip(self.free, amounts, strict=True):
            numbers[at] = number
        for at, number in ((self.cpu, processors), (self.node, nodes)):
            if at >= 0:
                numbers[at] = number
        if self.total >= 0 and self.typed:
            numbers[self.total] = sum(numbers[at] for at in self.typed)
        return self.pieces[0] + "".join(f"{n}{piece}" for n, piece in zip(numbers, self.pieces[1:], strict=True))


class Forms:
    """The forms of the texts of TRES in a log."""

    def __init__(self) -> None:
        self.forms: list[Form] = []
        self._last: int = 0

    def cut(self, text: str) -> tuple[int, tuple[int, ...]] | None:
        """(which form, its numbers) of a text; None where the reader has to look at it."""
        forms, last = self.forms, self._last
        if forms and (found := forms[last].match(text)) is not None:
            return self._numbers(last, found)
        for at, form in enumerate(forms):
            if (found := form.match(text)) is not None:
                self._last = at
                return self._numbers(at, found)
        new = _form(text) if len(forms) < _FORMS else None
        if new is None or (found := new.match(text)) is None:
            return None
        self._last = len(forms)
        forms.append(new)
        return self._numbers(self._last, found)

    def _numbers(self, at: int, found: re.Match[str]) -> tuple[int, tuple[int, ...]] | None:
        form, numbers = self.forms[at], tuple(map(int, found.groups()))
        if form.typed and form.total >= 0 and numbers[form.total] != sum([numbers[i] for i in form.typed]):
            return None
        return at, numbers


def _form(text: str) -> Form | None:
    """The form of a text; zeros belong to it. None where something is odd or stands twice."""
    kinds, pattern, pieces = list[str](), "", [""]
    zeros = set[str]()
    for n, item in enumerate(text.split(",") if text else ()):
        found = _ITEM.fullmatch(item)
        if found is None or (found[3] and found[1] != "mem") or found[1] in zeros or found[1] in kinds:
            return None
        kind, number, unit = found.groups()
        if number == "0" and kind in ("cpu", "node"):
            return None
        before = f"{',' if n else ''}{kind}="
        if number == "0":
            zeros.add(kind)
            pattern += re.escape(before + number + unit)
            pieces[-1] += before + number + unit
            continue
        kinds.append(kind)
        pattern += f"{re.escape(before)}([1-9][0-9]{{0,{8 if kind in ('cpu', 'node') else 14}}}){unit}"
        pieces[-1] += before
        pieces.append(unit)
    if any(kind.startswith("gres/gpu") for kind in zeros) and any(kind.startswith("gres/gpu") for kind in kinds):
        return None
    at = {kind: i for i, kind in enumerate(kinds)}
    typed = tuple(i for i, kind in enumerate(kinds) if kind.startswith("gres/gpu:"))
    total = at.get("gres/gpu", -1)
    bound = {at.get("cpu", -1), at.get("node", -1), total if typed else -1}
    return Form(tuple(pieces), re.compile(pattern, re.ASCII).fullmatch, at.get("cpu", -1), at.get("node", -1), total,
                typed, tuple(i for i in range(len(kinds)) if i not in bound), "mem" in at)


class Shape(NamedTuple):
    """What jobs have in common. form: which one their TRES have; energy: whether it was measured; texts: by which rates
    select, None for one that no rate mentions; state: the manager's, where rates ask for it."""

    form: int
    energy: bool
    texts: tuple[str | None, ...]
    state: str


class Shapes:
    """The shapes of jobs in a log with these columns, and their coefficients. known: whether rates are of a kind for
    which there are some; named: column -> texts that rates mention; by_state: whether they go by the state."""

    def __init__(self, context: ReadContext, rates: RateSet, columns: Sequence[str]) -> None:
        self.columns, self.forms = columns, Forms()
        self.by_state = rates.system_faults == "free" or rates.attempts == "committed"
        self.by_memory = any(rate.canonical == "Memory" for rate in rates.rate) and "maxrss" in columns
        self.named: dict[str, frozenset[str]] = {}
        self._rates = rates.model_copy(update={"minimum": type(rates.minimum)(0)})
        self._least = rates
        self._reading = Rows(ReadContext("-", Findings("-"), limits=context.limits, options=context.options))
        self._prices: dict[Shape, Coefficients | Uncharged | None] = {}
        self.known = additive(rates) and all(self._suits(rate) for rate in rates.rate)

    def _suits(self, rate: Rate) -> bool:
        """Whether a rate goes by what a shape has; take what it mentions."""
        if rate.type[0] == "V" and rate.canonical not in _AMOUNTS and rate.canonical in _TAKEN:
            return False
        if rate.canonical == "Memory" and self.by_memory and rate.metric not in (None, "Total"):
            return False
        selected = [(rate.canonical, {str(rate.instance)})] if rate.type[0] == "N" else []
        selected += [(name, {text}) for name, text in rate.when.items()]
        if rate.benchmark is not None:
            selected.append(("Machine", set(self._least.benchmark[rate.benchmark].machine)))
        return all([self._takes(name, texts) for name, texts in selected])

    def _takes(self, name: str, texts: Iterable[str]) -> bool:
        column = next((column for column, said in NAMES.items() if said == name), None)
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
            self._prices[shape] = coefficients(partial(self._charge, row, shape, kinds), len(kinds), self._least)
        return self._prices[shape]

    def _charge(self, row: dict[str, str], shape: Shape, kinds: Sequence[str | int], seconds: int,
                amounts: Sequence[int]) -> Charge | Uncharged | None:
        """What a job of a shape is charged; None where the reader does not take it."""
        held: dict[Any, int] = dict(zip(kinds, amounts, strict=True))
        form = self.forms.forms[shape.form]
        processors, nodes = held.get("processors", 0), held.get("nodes", 0)
        numbers = {"jobid": "1", "elapsedraw": seconds, "start": _START, "end": _START + seconds,
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
