"""Rates that can hardly be meant as they stand: names that are none, amounts that are none, units of something else.

A rate may be for a Resource, an Extension or an element that only the site knows, so that none of this is an error; but
a rate that never matches costs money in silence. ``usage`` counts which rates jobs really meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple

from sssjob.accounting.amounts import Reason, energy_units
from sssjob.accounting.currencies import digits_of
from sssjob.accounting.facts import Facts
from sssjob.accounting.pricing import Charge, Uncharged, charge
from sssjob.accounting.rates import Rate, RateSet
from sssjob.document.endings import Ended
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobDefaults
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import CONSUMABLE, ELEMENTS, Element
from sssjob.findings import escape

__all__ = ["Doubt", "RateUse", "doubts"]

#: Properties by name, wherever they may stand.
_KNOWN: Final[dict[str, list[Element]]] = {}
for _element in ELEMENTS:
    _KNOWN.setdefault(_element.name, []).append(_element)
#: Names of Resources and Extensions that the project's own readers write, and those that rates alone know.
_WRITTEN: Final = ("Billing", "ConsumptionRate", "Energy", "GPU", "License", "TimeCategory", "hs06_job")
_NAMES: Final = {name.casefold(): name for name in (*_KNOWN, *_WRITTEN)}
_CLOSE: Final = 0.8         # how alike names are, from 0 to 1, of which one may be a slip for the other
_AMOUNTS: Final = ("Integer", "Float", "Duration")
_SEEN: Final = 1000         # different values of a name that are kept


class Doubt(NamedTuple):
    """What may not be meant. path: of the key, as ``rate[2].name``; hint: the way out, if one is known."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f"; {self.hint}" if self.hint else "")


def doubts(rates: RateSet) -> list[Doubt]:
    """What of the rates no job can meet, or hardly, as far as their text tells."""
    return [*_of_currency(rates), *(doubt for path, rate in rates.paths for doubt in _of(path, rate))]


def _of_currency(rates: RateSet) -> Iterator[Doubt]:
    """A precision that nobody has said, where the currency has other digits."""
    digits = digits_of(rates.currency)
    if digits not in (None, rates.precision) and "precision" not in rates.model_fields_set:
        yield Doubt("precision", f"charges are rounded to {rates.precision} digits behind the point, and "
                    f"{rates.currency} has {digits}", f"say precision = {digits}, or {rates.precision} if it is meant")


def _of(path: str, rate: Rate) -> Iterator[Doubt]:
    for key, name in (("name", rate.canonical), *((f"when.{name}", name) for name in rate.when)):
        hint = _meant(name)
        if hint:
            yield Doubt(f"{path}.{key}", f"no property is called {escape(name, 60)}", hint)
    elements = _KNOWN.get(rate.canonical, [])
    if rate.type.startswith("VB") and elements and not any(e.type in _AMOUNTS for e in elements):
        yield Doubt(f"{path}.name", f"{rate.canonical} is no amount that {rate.type} could multiply",
                    f"NB{rate.type[2]} is for a name")
    if rate.context is not None and rate.context not in CONSUMABLE[0].values:
        yield Doubt(f"{path}.context", f"{escape(rate.context, 60)} is none of {', '.join(CONSUMABLE[0].values)}")
    if rate.units is not None:
        yield from _unit(path, rate, rate.units, elements)


def _unit(path: str, rate: Rate, units: str, elements: list[Element]) -> Iterator[Doubt]:
    """A unit that does not measure what the rate is for."""
    if any(e.unit is not None for e in elements):
        try:
            byte_factor(units)
        except LookupError:
            yield Doubt(f"{path}.units", f"{rate.canonical} is not measured in {escape(units, 30)}",
                        "a unit of bytes, as GB")
    elif rate.canonical == "Energy" and units not in energy_units():
        yield Doubt(f"{path}.units", f"Energy is not measured in {escape(units, 30)}",
                    f"one of {', '.join(energy_units())}")


def _meant(name: str) -> str:
    """What a name that nobody knows may be a slip for; empty where it is known, or like no other."""
    if name in _KNOWN or name in _WRITTEN:
        return ""
    same = _NAMES.get(name.casefold())
    close = [same] if same is not None else get_close_matches(name, _NAMES.values(), 1, _CLOSE)
    return f"did you mean {close[0]}?" if close else ""


@dataclass(slots=True)
class RateUse:
    """How often jobs meet each rate. jobs: looked at; charged: of them; met: jobs by path of the rate; reasons: why
    the others have no charge; seen: the values that jobs have of each name that a rate selects by, with their number of
    jobs."""

    rates: RateSet
    jobs: int = 0
    charged: int = 0
    met: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    seen: dict[str, Counter[str]] = field(default_factory=dict)
    _paths: dict[int, str] = field(default_factory=dict)
    _charged_runs: Ended = field(default_factory=Ended)

    def __post_init__(self) -> None:
        self._paths = {id(rate): path for path, rate in self.rates.paths}
        self.met.update(dict.fromkeys(self._paths.values(), 0))

    def add(self, job: Job, defaults: JobDefaults | None) -> Charge | Uncharged:
        """Charge a job and count the rates that it met; a run that was charged before meets none."""
        priced, view = charge(job, self.rates, defaults), effective(job, defaults)
        self.jobs += 1
        if not isinstance(priced, Uncharged) and self._charged_runs.again(view):
            priced = Uncharged(Reason.REPEATED, "its run was charged before")
        if isinstance(priced, Uncharged):
            self.reasons[priced.reason] += 1
            if priced.reason == Reason.NOTHING_PRICED:
                self._look(Facts(view, "Delivered"))
            return priced
        self.charged += 1
        self.met.update({self._paths[id(item.of)] for item in priced.items if id(item.of) in self._paths})
        self._look(Facts(view, "Delivered"))
        return priced

    def _look(self, facts: Facts) -> None:
        """Keep the values of what rates select by."""
        for name in {name for _, rate in self.rates.paths for name, _ in _selected(rate)}:
            values = self.seen.setdefault(name, Counter())
            for text in set(facts.texts(name)):
                if text in values or len(values) < _SEEN:
                    values[text] += 1

    def doubts(self) -> Iterator[Doubt]:
        """The rates that no job met, with the values that jobs have instead. Of quotes and price lists that held for
        none of the jobs nothing is told: the logs are of another time."""
        jobs = self.charged + self.reasons[Reason.NOTHING_PRICED]
        held = {_list(path) for path, count in self.met.items() if count}
        for path, rate in self.rates.paths:
            if self.met[path] or not jobs or (held and _list(path) not in held):
                continue
            hints = [hint for name, wanted_value in _selected(rate) if (hint := self._instead(name, wanted_value))]
            yield Doubt(path, f"{rate.label} was met by none of {jobs} jobs", "; ".join(hints))

    def _instead(self, name: str, wanted_value: str) -> str:
        """The values of a name that jobs have where none has the wanted one."""
        values = self.seen.get(name, Counter())
        if wanted_value in values or wanted_value == "*":
            return ""
        folded = [value for value in values if value.casefold() == wanted_value.casefold()]
        close = folded or get_close_matches(wanted_value, values, 1, _CLOSE)
        if close:
            return f"did you mean {name} {escape(close[0], 60)}, which {values[close[0]]} of them have?"
        common = ", ".join(f"{escape(value, 60)} ({count})" for value, count in values.most_common(3))
        return f"of {name} they have {common}" if common else f"they state no {name}"


def _list(path: str) -> str:
    """The list that a rate stands in: ``rate``, ``price_list[0].rate``, ``quote.NAME.rate``."""
    return path.rpartition("[")[0]


def _selected(rate: Rate) -> Iterator[tuple[str, str]]:
    """(name, value) that a job has to have for a rate."""
    if rate.instance is not None:
        yield rate.canonical, rate.instance
    elif rate.resource_type is not None:
        yield rate.canonical, rate.resource_type
    yield from rate.when.items()
