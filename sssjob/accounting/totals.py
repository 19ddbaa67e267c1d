"""Totals of many jobs: by any property and over time, in memory that grows with the groups and not with the jobs.

What a job used belongs to the period in which it ended, or is spread over the periods in which it ran. Amounts are
those delivered; a ratio is of the jobs that have both of its figures.

Where a group has to consist of several users to be shown (``least``), small groups of a period are one, and so are
small periods; the next greater one goes with them where those are too few as well. So all that is shown adds up to all
that there is, and what is hidden cannot be had by taking the one from the other.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from math import exp, log
from typing import Any, Final, Literal

from sssjob.accounting.capacity import Capacity
from sssjob.accounting.dimensions import Condition, dimension, value_of
from sssjob.accounting.efficiency import Efficiency, at_most, of_gpus, of_memory
from sssjob.document.element import Property
from sssjob.document.endings import failed
from sssjob.document.held import held, held_for, number, ran, seconds
from sssjob.document.model import Job
from sssjob.errors import SSSJobError, UsageError
from sssjob.limits import LIMITS
from sssjob.request.in_all import asked_in_all

__all__ = ["FIGURES", "HIDDEN", "OTHER", "PERIODS", "Group", "Sums", "Totals", "step_of"]

Period = Literal["hour", "day", "week", "month", "year"]
PERIODS: Final = ("hour", "day", "week", "month", "year")
#: Figure of a group -> what it is.
FIGURES: Final = {
    "jobs": "jobs that ended, or started where they have not ended",
    "failed": "of them, those that failed: a code above 0, a signal, a limit, a fault of the system",
    "wall_h": "hours that they ran",
    "processor_h": "processors x hours",
    "share": "processors x hours by those of all groups",
    "utilised": "processors x hours by those that there were in the period",
    "gpu_utilised": "GPUs x hours by those that there were in the period",
    "change": "the figure by which groups are sorted, by that of the period before, less 1",
    "cpu_h": "hours of CPU time",
    "efficiency": "CPU time by processors x time, of the jobs that have both",
    "mem_efficiency": "peak of memory by what there was of it, over time, of the jobs on one node that have both",
    "mem_median": "peak of memory by what there was of it, which half of the jobs had at most, to 1 %",
    "mem_p95": "peak of memory by what there was of it, which 95 % of the jobs had at most, to 1 %",
    "gpu_efficiency": "time that GPUs worked by GPUs x time, of the jobs that have both",
    "gpu_median": "time that GPUs worked by GPUs x time, which half of the jobs had at most, to 1 %",
    "gpu_p95": "time that GPUs worked by GPUs x time, which 95 % of the jobs had at most, to 1 %",
    "requested_h": "processors x hours that were requested, of the jobs that say",
    "used": "what ran by what was requested, of the jobs that say",
    "gpu_h": "GPUs x hours",
    "node_h": "nodes x hours",
    "energy_kwh": "energy",
    "wait_h": "hours from submission to start, the mean",
    "wait_median_h": "hours that half of the jobs waited at most, to 1 %",
    "wait_p95_h": "hours that 95 % of the jobs waited at most, to 1 %",
    "charge": "Charge, where one stands in the jobs",
}
_GROUPS: Final = 100_000            # that are kept apart
_SPANS: Final = 100_000             # of which the period is remembered
_LONGEST: Final = 50 * 366 * 86400  # seconds of a job that are spread
_STEP: Final = log(1.02)            # of how long jobs waited
_LAST: Final = LIMITS.moment
#: What stands for the values of small groups, and for small periods.
OTHER: Final = "(others)"
HIDDEN: Final = "(suppressed)"
@dataclass(slots=True)
class Sums:
    """Sums over jobs; seconds, joule. basis: of a figure that not every job has, the jobs' share of its denominator;
    waits: jobs by how long they waited, in steps of 2 %, so that memory does not grow with the jobs; mem, gpu: how much
    they used of their memory and GPUs;
    users: whose they are, as many as matter; hidden: of too few users, so that only the number of jobs is shown."""

    jobs: int = 0
    failed: int = 0
    wall: Fraction = Fraction(0)
    processors: Fraction = Fraction(0)
    cpu: Fraction = Fraction(0)
    cpu_basis: Fraction = Fraction(0)
    cpu_paired: Fraction = Fraction(0)
    requested: Fraction = Fraction(0)
    requested_used: Fraction = Fraction(0)
    gpus: Fraction = Fraction(0)
    nodes: Fraction = Fraction(0)
    energy: Fraction = Fraction(0)
    waited: int = 0
    wait: int = 0
    waits: dict[int, int] = field(default_factory=dict)
    mem: Efficiency = field(default_factory=Efficiency)
    gpu: Efficiency = field(default_factory=Efficiency)
    charges: dict[str, Fraction] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)
    hidden: bool = False

    def add(self, other: Sums, *, users: bool = True) -> None:
        """Add another one's. users: whose they are too, which is of interest up to a number."""
        for name in _ADDED:
            if more := getattr(other, name):
                setattr(self, name, getattr(self, name) + more)
        for step, count in other.waits.items():
            self.waits[step] = self.waits.get(step, 0) + count
        self.mem.add(other.mem)
        self.gpu.add(other.gpu)
        for currency, amount in other.charges.items():
            self.charges[currency] = self.charges.get(currency, Fraction(0)) + amount
        if users:
            self.users |= other.users
        self.hidden |= other.hidden

    def waits_for(self, seconds: int) -> None:
        """Count a job that waited so long."""
        self.wait, self.waited = self.wait + seconds, self.waited + 1
        step = step_of(seconds)
        self.waits[step] = self.waits.get(step, 0) + 1

    def waited_at_most(self, share: Fraction) -> float | None:
        """Hours that so many of the jobs waited at most; None where nobody says."""
        step = at_most(self.waits, share)
        return None if step is None else 0.0 if not step else round(exp((step - 0.5) * _STEP) / 3600, 4)

    def record(self) -> dict[str, Any]:
        """The figures as a JSON object: hours, kWh, ratios; what no job says is absent."""
        if self.hidden:
            return {"jobs": self.jobs}
        record: dict[str, Any] = {
            "jobs": self.jobs, "failed": self.failed, "wall_h": _hours(self.wall),
            "processor_h": _hours(self.processors), "cpu_h": _hours(self.cpu),
            "efficiency": _ratio(self.cpu_paired, self.cpu_basis),
            **self.mem.record("mem"), **self.gpu.record("gpu"), "requested_h": _hours(self.requested),
            "used": _ratio(self.requested_used, self.requested), "gpu_h": _hours(self.gpus),
            "node_h": _hours(self.nodes), "energy_kwh": _round(self.energy / 3_600_000),
            "wait_h": _ratio(Fraction(self.wait), Fraction(self.waited * 3600)),
            "wait_median_h": self.waited_at_most(Fraction(1, 2)), "wait_p95_h": self.waited_at_most(Fraction(95, 100))}
        if self.charges:
            record["charge"] = {k: str(_exact(v)) for k, v in sorted(self.charges.items())}
        return {k: v for k, v in record.items() if v is not None}


def step_of(seconds: int) -> int:
    """The step of a time of waiting, as ``Sums.waits`` counts."""
    return 0 if seconds < 1 else 1 + int(log(seconds) / _STEP)


_ADDED: Final = tuple(n for n in Sums.__slots__ if n not in ("charges", "users", "hidden", "waits", "mem", "gpu"))


def _round(value: Fraction) -> float:
    return float(round(value, 4))


def _hours(value: Fraction) -> float:
    return _round(value / 3600)


def _ratio(over: Fraction, under: Fraction) -> float | None:
    return _round(over / under) if under else None


def _exact(value: Fraction) -> Decimal:
    """A sum of decimals, exactly; a share of one to 9 digits."""
    places = next((n for n in range(25) if (value * 10**n).denominator == 1), 9)
    return Decimal(round(value * 10**places)).scaleb(-places)


@dataclass(frozen=True, slots=True)
class Group:
    """The sums of one period (its first day, or day and hour; "": all time; HIDDEN: several small ones) and one value
    of each property (OTHER: several small groups). beside: figures that the sums alone do not tell."""

    period: str
    key: tuple[str, ...]
    sums: Sums
    beside: dict[str, float] = field(default_factory=dict)

    def record(self, whole: Sums) -> dict[str, Any]:
        """The figures as a JSON object, with its share of the sums of all groups."""
        figures = self.sums.record()
        share = _ratio(self.sums.processors, whole.processors)
        if share is not None and not self.sums.hidden and self.sums is not whole:
            figures["share"] = share
        return figures | self.beside


class Totals:
    """Jobs added up. by: names of properties, in any case; of a Resource or Extension ``Resource:GPU``.

    every: the periods, None for all time; zone: of their borders; spread: over the periods in which a job ran, else all
    of it belongs to the one in which it ended. least: users of which a group has to consist to be shown. since, until:
    epoch seconds, until not included: of jobs that ended then, of spread ones what ran then. where: conditions that a
    job has to meet. top: so many groups of a period, the greatest of a figure (``sort``; ``-figure``: the least); the
    others are one. capacity: what there was, for utilisation; compare: whether groups are held against the period
    before; most: groups that are kept apart.
    """

    def __init__(self, by: Iterable[str] = (), every: Period | None = None, zone: tzinfo = UTC, *,
                 spread: bool = False, least: int = 1, since: int | None = None, until: int | None = None,
                 where: Iterable[str] = (), top: int | None = None, sort: str = "processor_h",
                 capacity: Capacity | None = None, compare: bool = False, most: int = _GROUPS) -> None:
        self.by = tuple(map(dimension, by))
        if len(set(self.by)) < len(self.by):
            raise UsageError("a property to add up by is named twice")
        self.every, self.zone, self.spread, self.least = every, zone, spread, least
        self.since, self.until, self.where = since, until, Condition.all_of(where)
        self.top, self._capacity, self._compare, self._most = top, capacity, compare, most
        self.sort, self._least_first = sort.removeprefix("-"), sort.startswith("-")
        self._bounds: dict[str, tuple[int, int]] = {}       # first second of a period, and the first behind it
        self.bounded = since is not None or until is not None
        self.left_out: dict[str, int] = {}
        self.digits: dict[str, int] = {}        # behind the point of charges, by currency, where rates say so
        self._groups: dict[tuple[str, tuple[str, ...]], Sums] = {}
        self._begins: list[int] = []                # of spans of seconds, in their order ...
        self._spans: list[tuple[int, str]] = []     # ... the second behind each, and its period
        self._ends: tuple[int, int] | None = None       # the first and the last moment that a period was asked for

    def add(self, job: Job, user: str | None = None, jobs: int = 1) -> bool:
        """Count a job; False where it did not run, or does not say when (see ``left_out``). user: whose it is, where
        the job does not say it as it is; jobs: how many it is the sum of."""
        if not all(condition.holds(job) for condition in self.where):
            return False
        start, end = (_epoch(job, name) for name in ("StartTime", "EndTime"))
        wall = ran(job)
        if wall is None:
            return self._leave("did not run, or does not say for how long" if jobs == 1 else
                               "in sums without WallDuration", jobs)
        if end is None and start is not None:
            end = start + int(wall) if start + wall < _LAST else None
        if end is None and (self.every is not None or self.bounded):
            return self._leave("not said when")
        sums = self._sums(job, wall)
        if self.least > 1:
            sums.users.add(user or value_of(job, "User"))
        key = tuple(value_of(job, name) for name in self.by)
        period, share = None, Fraction(1)
        for period, share in self._shares(start, end):
            self.take(period, key, sums if share == 1 else _share(sums, share))
        if period is None:
            return False
        last = self._groups[period, key]
        last.jobs += jobs
        last.failed += failed(job)
        if share != 1:
            last.mem.count(sums.mem)
            last.gpu.count(sums.gpu)
        submit = _epoch(job, "SubmitTime")
        if submit is not None and start is not None and start >= submit:
            last.waits_for(start - submit)
        return True

    def tell_again(self, records: int) -> None:
        """Say that so many records were left out, because another one tells as much of the same run, or more."""
        if records:
            self._leave("another record tells of the run", records)

    def _leave(self, why: str, jobs: int = 1) -> bool:
        self.left_out[why] = self.left_out.get(why, 0) + jobs
        return False

    def take(self, period: str, key: tuple[str, ...], sums: Sums) -> None:
        """Add sums of jobs, or of a part of one, to those of a group."""
        sums_there = self._groups.get((period, key))
        if sums_there is None:
            if len(self._groups) >= self._most:
                raise SSSJobError(f"more than {self._most} groups; choose longer periods or other properties")
            sums_there = self._groups[period, key] = Sums()
        sums_there.add(sums, users=len(sums_there.users) < self.least)

    # -- periods
    def _shares(self, start: int | None, end: int | None) -> Iterator[tuple[str, Fraction]]:
        """(period, part of the job that lies in it), the last one last; none outside the time that is asked for."""
        first, last = self.since or 0, _LAST if self.until is None else self.until
        spread = self.spread and (self.every is not None or self.bounded)
        if not spread or start is None or end is None or not 0 < end - start < _LONGEST:
            if not self.bounded or (end is not None and first <= end < last):
                yield self.period(end), Fraction(1)
            return
        at, stop = max(start, first), min(end, last)
        while at < stop:
            until = stop if self.every is None else min(self.next_period(at), stop)
            yield self.period(at), Fraction(until - at, end - start)
            at = until

    def period(self, at: int | None) -> str:
        """The period of a moment in epoch seconds; "" where all time is one."""
        if self.every is None or at is None:
            return ""
        first, last = self._ends or (at, at)
        self._ends = min(first, at), max(last, at)
        place = bisect(self._begins, at) - 1
        if place >= 0 and at < self._spans[place][0]:
            return self._spans[place][1]
        return self._learned(at - at % 900)     # borders lie on quarters of an hour in every zone

    def _learned(self, at: int) -> str:
        """The period of a moment that lies in no span of seconds of which it is known."""
        floor = self._floor(at)
        period, begin, end = _named(floor, self.every or ""), int(floor.timestamp()), self.next_period(at)
        self._bounds[period] = begin, end
        if len(self._begins) > _SPANS:
            self._begins.clear()
            self._spans.clear()
        if _named(self._floor(begin), self.every or "") != period:    # clocks were set back within an hour
            begin = at
        place = bisect(self._begins, begin)
        self._begins.insert(place, begin)
        self._spans.insert(place, (end, period))
        return period

    def _floor(self, at: int) -> datetime:
        local = datetime.fromtimestamp(at, self.zone)
        local = local.replace(minute=0, second=0, microsecond=0)
        if self.every != "hour":
            local = local.replace(hour=0, fold=0)
        if self.every == "week":
            local -= timedelta(days=local.weekday())
        elif self.every == "month":
            local = local.replace(day=1)
        elif self.every == "year":
            local = local.replace(day=1, month=1)
        return local

    def next_period(self, at: int) -> int:
        """The first second of the next period."""
        if self.every == "hour":
            return at - at % 900 + 3600 - int(datetime.fromtimestamp(at - at % 900, self.zone).minute) * 60
        local = self._floor(at)
        if self.every == "day":
            after = local + timedelta(days=1)
        elif self.every == "week":
            after = local + timedelta(days=7)
        elif self.every == "month":
            after = (local + timedelta(days=32)).replace(day=1)
        else:
            after = local.replace(year=local.year + 1)
        return max(at + 1, int(after.timestamp()))

    # -- one job
    def _sums(self, job: Job, wall: Fraction) -> Sums:
        processors = held(job, "Processors")
        cpu = number(job.first("CpuDuration"))
        wanted_wall, wanted_processors = asked_in_all(job, "Duration"), asked_in_all(job, "Processors") or processors
        sums = Sums(wall=wall, processors=held_for(job, "Processors", wall), cpu=cpu or Fraction(0),
                    gpus=held_for(job, "Resource", wall, "GPU"), nodes=held_for(job, "NodeCount", wall),
                    energy=held(job, "Resource", "Energy") or Fraction(0))
        if cpu is not None and processors:
            sums.cpu_basis, sums.cpu_paired = sums.processors, cpu
        if wanted_wall and wanted_processors and processors:
            sums.requested, sums.requested_used = wanted_wall * wanted_processors, sums.processors
        sums.mem, sums.gpu = of_memory(job, wall) or sums.mem, of_gpus(job, wall) or sums.gpu
        charge = job.first("Charge")
        if (amount := number(charge)) is not None and isinstance(charge, Property):
            sums.charges[charge.get("units") or ""] = amount
        return sums

    # -- what came out
    def groups(self) -> list[Group]:
        """All groups by period, the one with the most processors x time first; small ones put together, and then small
        periods. Where all users together are too few there is one group, of which only the jobs are shown."""
        by_period: dict[str, list[Group]] = {}
        for (period, key), sums in self._groups.items():
            by_period.setdefault(period, []).append(Group(period, key, sums))
        if self._compare and self.least <= 1:       # a row without users would tell of one that is hidden
            keys = {period: {group.key for group in groups} for period, groups in by_period.items()}
            for period, groups in by_period.items():
                groups += [Group(period, key, Sums()) for key in keys.get(self._before(period), set()) - keys[period]]
        shown = {period: self._shown(sorted(by_period[period], key=self._rank)) for period in sorted(by_period)}
        small = [period for period, groups in shown.items() if any(len(g.sums.users) < self.least for g in groups)
                 and self.least > 1]
        rest = _sum(g for period in small for g in shown.pop(period))
        for period in sorted(shown, key=lambda p: _sum(shown[p]).processors) if small else ():
            if len(rest.users) >= self.least:
                break
            rest.add(_sum(shown.pop(period)))       # else what is hidden is the whole less what is shown
        all_groups = [g for period, groups in shown.items() for g in self._greatest(period, groups)]
        if small:
            rest.hidden = len(rest.users) < self.least
            all_groups.append(Group(HIDDEN if self.every else "", (OTHER,) * len(self.by), rest))
        return [self._with_more(group) for group in all_groups] if self._capacity or self._compare else all_groups

    def _with_more(self, group: Group) -> Group:
        """A group with its utilisation, and its change from the period before."""
        if group.sums.hidden or group.period == HIDDEN:
            return group
        beside: dict[str, float] = self._utilised(group.sums, *self._within(group.period))
        if self._compare and (before := self._groups.get((self._before(group.period), group.key))) is not None:
            now, then = (_sortable(sums.record(), self.sort) for sums in (group.sums, before))
            if then:
                beside["change"] = round(float(now / then) - 1, 4)
        return replace(group, beside=beside)

    def _before(self, period: str) -> str:
        """The name of the period before."""
        return _named(self._floor(self._bounds[period][0] - 900), str(self.every))

    def _within(self, period: str) -> tuple[int, int]:
        """(first second, first behind it) of a period as far as it is asked for; of all time from the first to the last
        job where nothing is."""
        first, last = self._bounds.get(period) or (self.since or 0, self.until or _LAST)
        return max(first, self.since or 0), min(last, _LAST if self.until is None else self.until)

    def _utilised(self, sums: Sums, first: int, last: int) -> dict[str, float]:
        """What was used by what there was."""
        if self._capacity is None:
            return {}
        capacity = self._capacity.given(first, last)
        ratios = {"utilised": _ratio(sums.processors, Fraction(capacity["processors"])),
                  "gpu_utilised": _ratio(sums.gpus, Fraction(capacity["gpus"]))}
        return {name: ratio for name, ratio in ratios.items() if ratio is not None}

    def record(self) -> dict[str, Any]:
        """The figures of all groups together, utilised over all periods from the first to the last one."""
        whole = self.whole()
        if not self._capacity or whole.hidden:
            return whole.record()
        bounds = sorted(self._bounds.values())
        first, last = (bounds[0][0], bounds[-1][1]) if bounds else (0, _LAST)
        return whole.record() | self._utilised(whole, max(first, self.since or 0),
                                               min(last, _LAST if self.until is None else self.until))

    def _rank(self, group: Group) -> tuple[Any, ...]:
        """The greatest first; where the least is asked for, that, and last those that do not say the figure."""
        sums = group.sums
        if self._least_first:
            record = sums.record()
            return self.sort not in record, _sortable(record, self.sort), -sums.processors, -sums.wall, group.key
        if self.sort == "processor_h":
            return -sums.processors, -sums.wall, group.key
        return -_sortable(sums.record(), self.sort), -sums.processors, -sums.wall, group.key

    def _greatest(self, period: str, groups: list[Group]) -> list[Group]:
        """As many groups of a period as are to be shown, and the others as one."""
        if self.top is None or len(groups) <= self.top:
            return groups
        kept = [g for g in groups[:self.top] if g.key != (OTHER,) * len(self.by)]
        rest = _sum(g for g in groups if g not in kept)
        return [*kept, Group(period, (OTHER,) * len(self.by), rest)]

    def _shown(self, groups: list[Group]) -> list[Group]:
        """The groups of a period, all those that have too few users as one; which is too few only if all are."""
        shown = [g for g in groups if len(g.sums.users) >= self.least or self.least == 1]
        rest = [g for g in groups if g not in shown]
        if not rest:
            return shown
        others = _sum(rest)
        while len(others.users) < self.least and shown:     # else what is hidden is the sum less what is shown
            others.add(shown.pop().sums)
        return [*shown, Group(groups[0].period, (OTHER,) * len(self.by), others)]

    def periods(self, most: int = 400) -> list[str]:
        """All periods from the first to the last one, those too in which there was nothing; none where there are more
        than so many, or where some are hidden: what is empty would tell which."""
        if self._ends is None or any(g.period == HIDDEN for g in self.groups()):
            return []
        periods, at = list[str](), self._ends[0]
        while at <= self._ends[1] and len(periods) <= most:
            periods.append(self.period(at))
            at = self.next_period(at)
        return periods if len(periods) <= most else []

    def whole(self) -> Sums:
        """The sums of all groups."""
        return _sum(self.groups())


def _sortable(record: Mapping[str, Any], figure: str) -> Decimal:
    """A figure as a number; charges of several currencies are added, only to sort by."""
    value = record.get(figure, 0)
    return sum(map(Decimal, value.values()), Decimal(0)) if isinstance(value, dict) else Decimal(str(value))


def _sum(groups: Iterable[Group]) -> Sums:
    total = Sums()
    for group in groups:
        total.add(group.sums)
    return total


def _named(at: datetime, every: str) -> str:
    return at.strftime({"hour": "%Y-%m-%dT%H:00%z", "year": "%Y", "month": "%Y-%m"}.get(every, "%Y-%m-%d"))


def _share(sums: Sums, share: Fraction) -> Sums:
    """A part of what one job used."""
    part = Sums(users=sums.users, charges={k: v * share for k, v in sums.charges.items()}, mem=sums.mem.part(share),
                gpu=sums.gpu.part(share))
    for name in _ADDED:
        if isinstance(value := getattr(sums, name), Fraction):      # counts are those of whole jobs
            setattr(part, name, value * share)
    return part


def _epoch(job: Job, name: str) -> int | None:
    value = job.value(name)
    return at if isinstance(value, int) and value > 0 and (at := seconds(value)) < _LAST else None
