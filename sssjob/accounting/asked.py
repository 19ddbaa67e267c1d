"""What a request comes to, as amounts that rates price: for quotes and holds.

Every amount is a total of ``sssjob.request``, over the job, its task groups, defaults and tasks; here it only gets the
unit in which it was said, and what its properties say of consumption and time. Each total is said at one place: at the
job where the job itself says so much, else at each of the task groups that add up to it, which keeps rates apart that
are for one of the groups. Source: SSS job object 3.1.0, sections 3.0, 5.1 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple

from sssjob.accounting.amounts import Amount, NotChargeable, Reason, decimal, seconds_of
from sssjob.document.element import Property
from sssjob.document.held import COUNTED_BY, per_of
from sssjob.document.inherit import Effective
from sssjob.document.units import byte_factor
from sssjob.errors import RejectedError
from sssjob.request import Request, Total, Totals
from sssjob.request.bounds import key_of
from sssjob.request.levels import request_in
from sssjob.request.totals import COUNTED, Identity, Part, totals_from
from sssjob.request.tree import ROWS, identity_of, number_of

__all__ = ["AskedAmounts"]

_Place = tuple[int | None, int | None]
_JOB: Final[_Place] = (None, None)
_COUNTS: Final = ("Processors", "NodeCount")
_TAGS: Final = frozenset((*_COUNTS, *COUNTED)) - {"Resource"}


class _Sought(NamedTuple):
    """What is said of one identity at all levels. of_job: whether the job itself says its total; properties: all that
    say it, of_job_itself: those of the job's own level, of_groups: those of each task group and its tasks."""

    identity: Identity
    totals: Totals
    total: Total | None
    of_job: bool
    properties: list[Property]
    of_job_itself: list[Property]
    of_groups: dict[int | None, list[Property]]


class AskedAmounts:
    """The request of one job. chosen: values that were not asked for just so, but are the least of what was, each with
    the first property that asks for it."""

    def __init__(self, view: Effective, request: Request | None = None) -> None:
        """request: where it is known already, bare properties taken as requested. Raises NotChargeable where nothing
        can meet it."""
        try:
            self._request = request or request_in(view, bare=True)
            least = self._request.least
        except RejectedError as error:
            raise NotChargeable(Reason.REQUEST_CONTRADICTORY, str(error)) from None
        if not all(level.possible for level in least.values()):
            raise NotChargeable(Reason.REQUEST_CONTRADICTORY, "the conditions of Requested contradict each other")
        self.chosen = [(v.property, _asking(v.property, level.expression.properties)) for level in self._request.levels
                       for v in least[level.group, level.task].values if not v.exact]
        self.apart = bool(view.job.task_groups) or len(view) > 1 or len(least) > 1
        self._values: Mapping[_Place, list[Property]] = {
            place: [v.property for v in level.values] for place, level in least.items()}
        self.simple = self._request.simple
        self._sought: dict[tuple[str, str | None, str | None, str | None], list[_Sought]] = {}
        self._resources = {p.attributes.get("name") for p in self.all_values if p.tag == "Resource"}

    @cached_property
    def all_values(self) -> list[Property]:
        """The values of all levels."""
        return [p for values in self._values.values() for p in values]

    @cached_property
    def entire(self) -> AskedAmounts:
        """The same with every total at the job, whatever task groups it comes from."""
        whole = copy(self)
        whole.apart = False
        return whole

    def values(self, group: int | None) -> list[Property]:
        """The values that the job (None) or a task group asks for itself."""
        return self._values.get((group, None), [])

    @cached_property
    def least_processors(self) -> Amount | None:
        """The processors of a job that says nothing of them: one, or one on each of its nodes, for no manager starts a
        job on fewer. None where it says how many."""
        if any("Processors" in (p.tag, p.attributes.get("name")) for p in self.all_values) or self._totals.processors:
            return None
        nodes = self._totals.nodes
        if nodes is None:
            return Amount("Processors", Decimal(1), of_one=("Processors is not said", None))
        return Amount("Processors", Decimal(int(nodes.value)), origin="one on each node")

    @property
    def seconds(self) -> Decimal | None:
        """The longest Duration that any level asks for, in seconds; None where none is said."""
        durations = [seconds_of("Duration", p.value) for p in self.all_values if p.tag == "Duration"]
        return max(durations, default=None)

    def adds(self, name: str) -> bool:
        """Whether a name is that of an amount that adds up over the levels; not where each condition alone says all."""
        return not self.simple and (name in _TAGS or name in self._resources)

    def amounts(self, name: str, kind: str | None = None, metric: str | None = None, context: str | None = None, *,
                group: int | None = None) -> list[Amount]:
        """The amounts of a name that are said at the job (None) or at a task group, one a type of a Resource.

        kind: the type of a Resource; metric, context: only what was said with them. Raises NotChargeable for what is
        no amount, and where nothing says what an amount is multiplied with.
        """
        sought = self._sought.get((name, kind, metric, context))
        if sought is None:
            sought = self._sought[name, kind, metric, context] = [*self._looked_up(name, kind, metric, context)]
        return [amount for identity in sought for amount in self._amounts(name, identity, group)]

    def _looked_up(self, name: str, kind: str | None, metric: str | None, context: str | None) -> Iterator[_Sought]:
        """What is said of a name at all levels: once for all of them, as a job may have thousands of task groups."""
        attributes = {k: v for k, v in (("metric", metric), ("context", context)) if v is not None}
        sources: dict[Identity, dict[_Place, list[Property]]] = {}
        if name in _COUNTS and not attributes:
            sources[name, None, None] = {}      # tasks, nodes and geometries ask for them too
        for place, values in self._values.items():
            for p in values:
                if (p.tag if name in _TAGS else p.attributes.get("name")) == name and (
                        name in _TAGS or p.tag == "Resource") and attributes.items() <= p.attributes.items() and (
                        kind is None or p.attributes.get("type") == kind):
                    sources.setdefault(identity_of(p), {}).setdefault(place, []).append(p)
        totals = self._totals if not attributes or name in _COUNTS else self._only(
            {id(p) for places in sources.values() for properties in places.values() for p in properties}, name)
        for identity, places in sources.items():
            properties = [p for at_place in places.values() for p in at_place]
            for p in properties:
                if (value := decimal(name, p.value)) != int(value) and name in _COUNTS:
                    raise NotChargeable(Reason.NOT_A_NUMBER, f"{name} is {value}, which is not whole")
            total = _total(totals, identity)
            of_job = total is not None and (total is totals.own.get(identity) or not _adds_up(totals, identity, total))
            of_groups: dict[int | None, list[Property]] = {}
            for place, at_place in places.items():
                of_groups.setdefault(place[0], []).extend(at_place)
            yield _Sought(identity, totals, total, of_job, properties, places.get(_JOB, []), of_groups)

    @cached_property
    def _totals(self) -> Totals:
        return self._request.totals

    def _only(self, kept: set[int], name: str) -> Totals:
        """The totals if of the properties of one name only some were there."""
        return totals_from(self._request, {
            place: [p for p in values if id(p) in kept or name not in (p.tag, p.attributes.get("name"))]
            for place, values in self._values.items()})

    def _amounts(self, name: str, sought: _Sought, group: int | None) -> Iterator[Amount]:
        """The amount of one identity at one place, if it is said there."""
        total, properties = sought.total, sought.properties
        if group is not None:
            total = None if sought.of_job or total is None else _total(sought.totals.parts[group], sought.identity)
            properties = sought.of_groups.get(group, [])
        elif sought.of_job:
            properties = sought.of_job_itself
        elif total is None and properties and all(p.value == 0 for p in properties):
            total = Total(sought.identity, Fraction(0))
        elif self.apart:
            total = None
        if total is None:
            return
        if not total.known:
            of_one = [p for p in properties if per_of(p.attributes.get("metric")) in ("nodes", "processors")]
            if len(properties) != 1 or not of_one:
                raise NotChargeable(Reason.AMOUNT_MISSING, _missing(name, properties, total))
            why = _missing(name, properties, total)
            yield from (replace(amount, of_one=(why, of_one[0])) for amount in _priced(name, properties, total))
            return
        yield from _priced(name, properties, total)


def _asking(value: Property, stated: Iterable[Property]) -> Property | None:
    """The first property that asks for what a value was chosen for; None for a value that nobody states."""
    key = key_of(value)
    return next((p for p in stated if key_of(p) == key), None)


def _total(where: Totals | Part, identity: Identity) -> Total | None:
    if identity[0] == "Processors":
        return where.processors
    return where.nodes if identity[0] == "NodeCount" else where.amounts.get(identity)


def _adds_up(totals: Totals, identity: Identity, total: Total) -> bool:
    """Whether the task groups come to a total: nodes of a group that says nothing of processors have one each, which is
    known only of the whole."""
    of_groups = [of_group.value for part in totals.parts if (of_group := _total(part, identity)) is not None]
    return not of_groups or sum(of_groups) == total.value


def _missing(name: str, properties: Iterable[Property], total: Total) -> str:
    """Why a total is not known."""
    for p in properties:
        metric = p.attributes.get("metric")
        counted_by = per_of(metric)
        if counted_by is not None:
            return f"{name} is {metric}, and {COUNTED_BY[counted_by]} is not said"
    return f"{name} cannot be added up: {total.origin}"


def _priced(name: str, properties: list[Property], total: Total) -> Iterator[Amount]:
    """A total in the unit that was said, with what its properties say of consumption and time in use; where each says
    how long it is held, one amount for each."""
    uses = {(p.attributes.get("consumptionRate"), p.attributes.get("duration")) for p in properties}
    if len(uses) > 1:
        if not all("duration" in p.attributes and per_of(p.attributes.get("metric")) is None for p in properties):
            raise NotChargeable(Reason.AMOUNT_AMBIGUOUS,
                                f"{len(properties)} {name} of different consumptionRate or duration")
        for p in properties:
            yield _amount(name, p, decimal(name, p.value), p.attributes.get("units") or _unit(p), "")
        return
    units, value = _in_units(properties, total)
    first = properties[0] if properties else None
    number = None if first is None else number_of(first.value)
    if first is not None and number is not None and len(properties) == 1 and value == number:
        yield _amount(name, first, decimal(name, first.value), units, "")
    else:
        whole = Decimal(value.numerator) if value.denominator == 1 else value
        yield _amount(name, first, whole, units, total.origin)


def _amount(name: str, stating: Property | None, value: Decimal | Fraction, units: str | None, origin: str) -> Amount:
    rate, duration = (None, None) if stating is None else map(stating.attributes.get, ("consumptionRate", "duration"))
    return Amount(name, value, units, None if rate is None else decimal(f"{name}/@consumptionRate", rate),
                  None if duration is None else seconds_of(f"{name}/@duration", duration), origin=origin)


def _unit(p: Property) -> str | None:
    row = ROWS.get(p.tag)
    return p.attributes.get("units") or (None if row is None else row.unit)


def _in_units(properties: Iterable[Property], total: Total) -> tuple[str | None, Fraction]:
    """A total of bytes in the unit that all of its properties have, else as it is."""
    if total.units != "B":
        return total.units, total.value
    units = {_unit(p) for p in properties}
    unit = units.pop() if len(units) == 1 else None
    return (unit, total.value / byte_factor(unit)) if unit is not None else ("B", total.value)
