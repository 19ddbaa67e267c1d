"""What a job says that rates can ask for: amounts, names, times, from the slots that count.

A charge reads Delivered, else what stands bare; where the job itself says nothing of an amount, its task groups do, and
where those say nothing their tasks. A quote takes amounts from the totals of the request (``asked``), and all else from
Requested, else bare. Names are those of the specification, of a Resource or Extension, or of an element that only the
rates know.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from sssjob.accounting.amounts import BYTES, Amount, NotChargeable, OfOne, Reason, converted, decimal, seconds_of
from sssjob.accounting.arithmetic import Figure, number
from sssjob.accounting.rates import Rate
from sssjob.document.element import Property, Raw, Value
from sssjob.document.held import COUNTED_BY, PER, per_of, seconds
from sssjob.document.inherit import Effective, TaskGroupView, View

if TYPE_CHECKING:       # a charge asks for nothing
    from sssjob.accounting.asked import AskedAmounts
    from sssjob.request.levels import Request

__all__ = ["RATES_RULE", "RUNS_APART", "Facts", "Lookups", "Note", "Slot"]

Slot = Literal["Delivered", "Requested"]
#: Rule of what is assumed because of what rates ask for; all else that is assumed is of the job alone.
RATES_RULE: Final = "SSS504"


class Note(NamedTuple):
    """What was assumed: rule of the finding that tells it, subject, message; item: what of the job it is about."""

    rule: str
    subject: str
    message: str
    item: Property | None = None


_TASKS: Final = "TaskCount"
_BY_NAME: Final = ("Resource", "Extension")
_WHOLE: Final = (None, "Total", *PER)
#: Of several amounts of a name, where the rate states no metric: the first of these that one of them has. What a job
#: held at its peak has to be there for it, whatever it used on average or at least.
_METRICS: Final = (_WHOLE, ("Max",))
_Found = Property | Raw
#: What HTCondor says of some runs in the record of all of them, by the attempts that rates charge: how long these took,
#: and for how long of that they were suspended.
RUNS_APART: Final = {"committed": ("CommittedTime", "CommittedSuspensionTime"), "last": ("LastRemoteWallClockTime",)}


@dataclass(slots=True)
class Lookups:
    """Which properties a price goes by. names: of all that were looked up; texts: of those that were read as a text or
    a value, not as an amount; times: of those that were read as a moment; all_of: of those of which more was looked at
    than the value of the first one."""

    names: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    times: set[str] = field(default_factory=set)
    all_of: set[str] = field(default_factory=set)

    def cover(self, other: Lookups) -> bool:
        """Whether all that others say is among these."""
        return (self.names >= other.names and self.texts >= other.texts and self.times >= other.times
                and self.all_of >= other.all_of)

    def joined(self, other: Lookups) -> Lookups:
        """What these or others say."""
        return Lookups(self.names | other.names, self.texts | other.texts, self.times | other.times,
                       self.all_of | other.all_of)


class Facts:
    """One job, one of its task groups or of their tasks (``parts``). group: which task group, counted from 0; literal:
    what is requested is read value by value, as it stands; lookups: is added to; request: of the job.
    """

    def __init__(self, view: View[Any], slot: Slot, outer: Facts | None = None, group: int | None = None, *,
                 literal: bool = False, lookups: Lookups | None = None, request: Request | None = None) -> None:
        self.view, self.slot, self.outer, self.group = view, slot, outer, group
        self.lookups: Lookups = (lookups or Lookups()) if outer is None else outer.lookups
        self.notes: list[Note] = [] if outer is None else outer.notes
        self._slots: dict[str, dict[str, list[_Found]]] = {}
        self._figures: dict[tuple[str | None, ...], list[tuple[Amount, Figure]]] = {}
        self._overriding: dict[str, list[str]] = {}     # what all task groups ask for instead of their job, by name
        self._alone = isinstance(view, Effective) and view.defaults is None
        self.asked: AskedAmounts | None = None if outer is None else outer.asked
        if slot == "Requested" and isinstance(view, Effective) and not literal:
            from sssjob.accounting.asked import AskedAmounts

            self.asked = AskedAmounts(view, request)
            for p, asking in self.asked.chosen:
                self.note("SSS502", p.tag, f"{p.tag}: {p.text} is taken of what is asked", asking)

    @cached_property
    def parts(self) -> tuple[Facts, ...]:
        """The task groups of a job that has some; of a task group, where it is about what was delivered, its tasks."""
        view, asked = self.view, self.asked
        if isinstance(view, Effective):
            apart = bool(view.job.task_groups) or len(view) > 1 if asked is None else asked.apart
            groups = view.task_groups() if apart else ()
            return tuple(Facts(group, self.slot, self, i) for i, group in enumerate(groups))
        if isinstance(view, TaskGroupView) and asked is None and view.described:
            return tuple(Facts(task, self.slot, self, self.group) for task in view.tasks())
        return ()

    @property
    def entire(self) -> Facts:
        """The same where what is asked for in the task groups is said at the job."""
        if self.asked is None:
            return self
        whole = copy(self)
        whole.asked, whole._figures = self.asked.entire, {}
        whole.__dict__["parts"] = ()
        return whole

    @property
    def is_one(self) -> bool:
        """Whether the task groups of a request say no more than one of them how many tasks the job has, as scripts do:
        all that a price goes by but that count is then said at the job."""
        view = self.view
        if not isinstance(view, Effective) or view.defaults is not None or self.asked is None:
            return False
        groups = view.job.task_groups
        return len(groups) == 1 and not groups[0].attributes and all(item.tag == _TASKS for item in groups[0].items)

    def opened(self, figures: Sequence[dict[tuple[str | None, ...], list[tuple[Amount, Figure]]]], duration: Decimal
               ) -> Facts:
        """The same with other amounts, by what rates look for, of the job and of each of its parts, and another
        duration; what is looked up in it is noted apart."""
        whole, *parts = [copy(facts) for facts in (self, *self.parts)]
        for facts, own in zip((whole, *parts), figures, strict=True):
            facts._figures = own
        whole.lookups, whole.notes = Lookups(), list(self.notes)
        for part in parts:
            part.outer, part.lookups, part.notes = whole, whole.lookups, whole.notes
        whole.__dict__.update(parts=tuple(parts), duration=duration)
        return whole

    def note(self, rule: str, subject: str, message: str, item: Property | None = None) -> None:
        """Say what was assumed, once."""
        if (new_note := Note(rule, subject, message, item)) not in self.notes:
            self.notes.append(new_note)

    # -- names
    def named(self, name: str) -> list[_Found]:
        """All of that name in the first slot that has it."""
        self.lookups.all_of.add(name)
        return self._named(name)

    def _named(self, name: str) -> list[_Found]:
        slots = self._slots
        self.lookups.names.add(name)
        return ((slots.get(self.slot) or self._index(self.slot)).get(name)
                or (slots.get("bare") or self._index("bare")).get(name) or [])

    def texts(self, name: str) -> list[str]:
        """Every value that a name has as text; of a Resource its type. A task group without one says its job's, and
        task groups that all ask for the same one override their job's."""
        self.lookups.texts.add(name)
        texts = self._of_all_groups(name) or [t for i in self.named(name) if (t := _text(i))]
        return texts if texts or self.outer is None else self.outer.texts(name)

    def _of_all_groups(self, name: str) -> list[str]:
        """What every task group of a request asks for under a name, which then holds and not what the job says."""
        if self.asked is None or self.outer is not None or not self.parts:
            return []
        from sssjob.request.levels import OVERRIDABLE

        self.lookups.all_of.add(name)
        self.lookups.names.add(name)
        texts = self._overriding.get(name)
        if texts is None:
            of_groups = ([text for item in part.named(name) if (text := _text(item))] for part in self.parts)
            first = next(of_groups) if name in OVERRIDABLE else []
            texts = self._overriding[name] = first if first and all(texts == first for texts in of_groups) else []
        return texts

    def value(self, name: str) -> Value | None:
        """The value of the first property of a name."""
        self.lookups.texts.add(name)
        return self._value(name)

    def _value(self, name: str) -> Value | None:
        for item in self._named(name):
            if isinstance(item, Property):
                return item.value
        return None

    @property
    def native_state(self) -> str:
        """The first word of the manager's own state, empty where none is said."""
        self.lookups.texts.add("State")
        states = (i for i in self.named("State") if i.tag == "Extension" and i.attributes.get("type") == "LRM")
        return next((_text(i).partition(" ")[0] for i in states), "")

    def _index(self, slot: str) -> dict[str, list[_Found]]:
        """What stands in a slot, by name."""
        by_name = self._slots.get(slot)
        if by_name is None:
            by_name = self._slots[slot] = {}
            for p in self._properties(slot):
                name = p.attributes.get("name", "") if p.tag in _BY_NAME else p.tag
                if name in by_name:
                    by_name[name].append(p)
                else:
                    by_name[name] = [p]
            own = self.view.container
            for holder in (own,) if slot == "bare" else own.containers(slot):
                for raw in holder.items:
                    if isinstance(raw, Raw) and not raw.children:
                        by_name.setdefault(raw.tag, []).append(raw)
        return by_name

    def _properties(self, slot: str) -> list[Property]:
        if slot == "Requested" and self.asked is not None:
            return self.asked.values(self.group)
        if self._alone:         # nothing is inherited
            own = self.view.container
            holders = (own,) if slot == "bare" else own.containers(slot)
            return [p for holder in holders for p in holder.items if isinstance(p, Property)]
        whole = self.outer is None
        return [r.property for r in self.view.resolved(slot) if r.origin.own or whole]  # type: ignore[arg-type]

    # -- amounts
    def amounts(self, rate: Rate) -> list[Amount]:
        """The amounts that a rate prices. Raises NotChargeable where several could be meant."""
        return self.chosen(rate.canonical, rate.resource_type, rate.metric, rate.context)

    def figures(self, rate: Rate) -> Sequence[tuple[Amount, Figure]]:
        """The same, each in the unit of the rate; rates that ask for the same get the same."""
        figures = self._figures.get(rate.sought)
        if figures is None:
            figures = self._figures[rate.sought] = [(a, converted(a, rate.units)) for a in self.amounts(rate)]
        elif self.asked is not None:
            self._told([amount for amount, _ in figures])
        return figures

    def spelled(self, name: str, kind: str | None) -> tuple[str, str | None]:
        """A name and type of a Resource as this job writes them, found in any case."""
        own = self._properties(self.slot) if self.asked is None else self.asked.all_values
        for p in (p for properties in (own, self._properties("bare")) for p in properties if p.tag == "Resource"):
            own_name, own_type = p.attributes.get("name", ""), p.attributes.get("type")
            if own_name.casefold() == name.casefold() and (kind is None
                                                           or (own_type or "").casefold() == kind.casefold()):
                return own_name, kind and own_type
        return name, kind

    def chosen(self, name: str, kind: str | None = None, metric: str | None = None,
               context: str | None = None) -> list[Amount]:
        """The amounts of a name: one, or one a type of a Resource; several where parts were held for different times.
        kind, metric, context: only those."""
        asked = self.asked
        if asked is not None and name == "Processors" and self.group is None and not (kind or metric or context) and (
                least := asked.least_processors) is not None:
            return self._told([least])
        if asked is not None and asked.adds(name):
            return self._told(asked.amounts(name, kind, metric, context, group=self.group))
        conditions = {} if kind is None and metric is None and context is None else {
            a: want for a, want in (("type", kind), ("metric", metric), ("context", context)) if want is not None}
        by_type: dict[str | None, list[_Found]] = {}
        for item in self.named(name):
            attributes = item.attributes
            if not conditions or conditions.items() <= attributes.items():
                by_type.setdefault(attributes.get("type"), []).append(item)
        return self._told([self._amount(name, chosen_item) for items in by_type.values()
                           for chosen_item in self._only(name, items)])

    def _told(self, amounts: list[Amount]) -> list[Amount]:
        """The same; what is priced as for one node or processor, the least that a request can take, is noted."""
        for amount in amounts:
            if amount.of_one is not None:
                why, stating = amount.of_one
                self.note(RATES_RULE, amount.name, f"{why}: it is priced as for one, the least", stating)
        return amounts

    def _only(self, name: str, items: list[_Found]) -> list[_Found]:
        """The one that counts; all, where each says how long it was held."""
        if len(items) > 1:
            choices = ([i for i in items if i.attributes.get("metric") in metrics] for metrics in _METRICS)
            items = next(filter(None, choices), items)
        if len(items) > 1 and not all("duration" in i.attributes for i in items):
            raise NotChargeable(Reason.AMOUNT_AMBIGUOUS, f"{len(items)} {name}; let the rate say metric or context")
        return items

    def _amount(self, name: str, item: _Found) -> Amount:
        value = decimal(name, item.value if isinstance(item, Property) else item.text)
        attributes = item.attributes
        rate, duration = attributes.get("consumptionRate"), attributes.get("duration")
        per = COUNTED_BY.get(per_of(attributes.get("metric")) or "")
        units = attributes.get("units") or None
        if units is None and isinstance(item, Property):
            units = BYTES.get(item.tag)
        factor, of_one = (None, None) if per is None else self._factor(name, attributes["metric"], per, item)
        if duration is None and self.outer is not None and self.slot == "Delivered":
            duration = next((p.text for p in self._properties(self.slot) if p.tag == "Duration"), None)
        return Amount(name, value, units, None if rate is None else decimal(f"{name}/@consumptionRate", rate),
                      None if duration is None else seconds_of(f"{name}/@duration", duration), factor, of_one=of_one)

    def _factor(self, name: str, metric: str, per: str, item: _Found) -> tuple[Figure, OfOne | None]:
        """What an amount is multiplied with; of a request for which nothing says it that is one."""
        for facts in (self, self.outer):
            if facts is not None and (counts := facts.named(per)):
                count = counts[0]
                return number(decimal(per, count.value if isinstance(count, Property) else count.text), per), None
        why = f"{name} is {metric}, and {per} is not said"
        if self.asked is None or per not in ("NodeCount", "Processors"):
            raise NotChargeable(Reason.AMOUNT_MISSING, why)
        return number(Decimal(1), per), (why, item if isinstance(item, Property) else None)

    # -- times
    def start(self) -> int | None:
        """Epoch seconds."""
        return self._time("StartTime")

    def end(self) -> int | None:
        """Epoch seconds."""
        return self._time("EndTime")

    def _time(self, name: str) -> int | None:
        self.lookups.times.add(name)
        value = self._value(name)
        if not isinstance(value, int):
            return None
        if value != seconds(value):
            self.note("SSS202", name, f"{name}: {value} is taken as milliseconds")
        return seconds(value)

    @cached_property
    def duration(self) -> Decimal | None:
        """Seconds that the job ran: Duration, else what lies between start and end and was not spent suspended."""
        start, end = self.start(), self.end()
        if start is not None and end is not None and end < start:
            raise NotChargeable(Reason.TIMES_CONTRADICTORY, f"EndTime {end} is before StartTime {start}")
        asked = None if self.asked is None else self.asked.seconds
        if asked is not None:
            return asked
        durations = self.named("Duration")
        if durations:
            first = durations[0]
            return seconds_of("Duration", first.value if isinstance(first, Property) else first.text)
        if start is None or end is None:
            return None
        suspended = self.value("SuspendDuration")
        ran = end - start - (suspended if isinstance(suspended, int) else 0)
        if ran < 0:
            raise NotChargeable(Reason.TIMES_CONTRADICTORY, f"suspended for longer than the {end - start} s it took")
        return Decimal(ran)

    def some_runs(self, attempts: str) -> tuple[Decimal, str] | None:
        """Seconds of those runs that rates charge by their ``attempts``, and what says so, where one record tells of
        all runs and of those; else None. Raises NotChargeable where none of the runs is charged."""
        names = RUNS_APART.get(attempts, ())
        seconds_by_name = {name: decimal(name, item.text) for name in names for item in self.named(name)
                           if item.attributes.get("type") == "htcondor"}
        name = next(iter(names), "")
        ran = seconds_by_name.pop(name, None)
        if ran is None:
            return None
        if name == "CommittedTime" and not ran:
            raise NotChargeable(Reason.NOT_COMMITTED, f"{name} is 0: all of its runs were in vain")
        return max(Decimal(0), ran - sum(seconds_by_name.values())), name


def _text(item: _Found) -> str:
    if isinstance(item, Raw):
        return item.text.strip()
    return item.attributes.get("type", "") if item.tag == "Resource" else item.text.strip()
