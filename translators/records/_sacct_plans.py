"""Rows of sacct by plans: where each text of a row goes in the job that the reader makes of it.

Rows of a log differ in little but values. What the reader makes of one of them is held against the facts of its
columns; a plan is where each fact came out, and other rows of the same kind have theirs put there. A row is left to the
reader unless every text of it is one that the reader takes without a word, and unless all that came out is explained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sssjob.document.element import NO_ATTRIBUTES, Property, property_of
from sssjob.document.model import Job
from sssjob.document.outlines import OutlinedJob, Outlines
from sssjob.lrm.slurm import NOWHERE
from sssjob.translators.records._again import Once
from sssjob.translators.records._record import USED, Heading, Record, as_job, node, prop, recall
from sssjob.translators.records._sacct_rows import ENDS, EXTENSIONS, Columns, Texts, asked_memory
from sssjob.translators.records._values import count, micros, rounded

if TYPE_CHECKING:
    from sssjob.document.outlines import Outline
    from sssjob.translators.records.sacct import Rows

__all__ = ["PlannedRow", "RowPlans"]

_PLANS: Final = 1 << 10         # that are remembered
_PEOPLE: Final = 1 << 14        # texts of whose a job is
_COUNTS: Final = 1 << 12        # texts of counts
_SHORT: Final = 10              # characters of a count or a time that needs no thought
_DIGITS: Final = 18             # of an amount that needs none
_ASKED: Final = re.compile("([1-9][0-9]{0,14})([KMGTP]?[cn]?)", re.ASCII).fullmatch
_NOTHING: Final = ("", "0")
_NOT_SUSPENDED: Final = ("", "00:00:00")
_NO_END: Final = ("", "Unknown")
_NOWHERE: Final = frozenset(filter(None, NOWHERE))
_NO_NODES: Final = (None, None, "")
_UNKNOWN: Final = NO_ATTRIBUTES     # no time limit is
#: Where a property stands: the tag of its slot, empty where it is bare.
_BARE, _REQUESTED, _DELIVERED = "", "Requested", "Delivered"


class _Name(NamedTuple):
    """Which property of a job: its slot, tag and attributes."""

    slot: str
    tag: str
    attributes: tuple[tuple[str, str], ...] = ()


def _extension(name: str) -> _Name:
    return _Name(_BARE, "Extension", (("name", name), ("type", "LRM")))


#: The facts of a row that stand first, in their order, and the properties that they become. Those of which only the
#: slot is said are properties already.
_FACTS: Final = (
    _Name(_BARE, "Id"), _Name(_BARE, "Name"), _Name(_BARE, "InitialWorkingDirectory"), _Name(_BARE, "SubmitTime"),
    _Name(_BARE, "StartTime"), _Name(_BARE, "EndTime"), _Name(_BARE, "SuspendDuration"), _Name(_BARE, "CpuDuration"),
    _extension("EligibleStamp"), _extension("ArrayId"), _extension("ArrayIndex"), _extension("JobIDRaw"),
    _extension("WCKey"), _extension("DerivedExitCode"), _extension("Comment"), _extension("SLUID"),
    _extension("Planned"), _Name(_BARE, "StartCount"), _Name(_DELIVERED, "Duration"),
    _Name(_DELIVERED, "Resource", (("name", "Energy"), ("units", "J"))),
    _Name(_DELIVERED, ""), _Name(_REQUESTED, ""), _Name(_REQUESTED, "Memory"))      # Node and the time limit before it
_MEMORY: Final = len(_FACTS) - 1        # its attributes follow from the text


class _RowPlan:
    """Where the facts of rows of one kind go. outline: of their jobs."""

    __slots__ = ("_bare", "_decimals", "_pick", "_shared", "_slots", "_values", "outline")

    def __init__(self, outline: Outline, order: Sequence[int], facts: Sequence[Any]) -> None:
        """order: of each place of the outline, which fact goes there; facts: of one row."""
        self.outline, self._bare = outline, outline.bare
        self._pick = itemgetter(*order)
        self._slots = tuple((place, outline.fields[place].kind, inside.start, inside.stop)
                            for place, inside in outline.slots.items())
        shared, values, decimals = list[int](), list[tuple[int, Any, str, dict[str, str]]](), list[Any]()
        for place, (kind, tag, attributes, value_class) in enumerate(outline.fields):
            if place in outline.slots:
                continue
            if isinstance(facts[order[place]], Property):
                shared.append(place)
            else:
                (decimals if value_class is Decimal else values).append((place, kind, tag, attributes))
        self._shared, self._values, self._decimals = tuple(shared), tuple(values), tuple(decimals)

    def job(self, facts: Sequence[Any], line: int) -> Job:
        """The job of a row."""
        flat = [*self._pick(facts)]
        for place, kind, tag, attributes in self._values:
            flat[place] = property_of(kind, tag, flat[place], attributes)
        for place, kind, tag, attributes in self._decimals:
            flat[place] = property_of(kind, tag, Decimal(flat[place]), attributes)
        items = flat[:self._bare]
        for place, slot, first, behind in self._slots:
            items[place] = slot(flat[first:behind])
        return Job(items, None, None, line)

    def values(self, facts: Sequence[Any]) -> list[Any]:
        """What stands in the places of the outline."""
        values = [*self._pick(facts)]
        for place in self._shared:
            values[place] = values[place].value
        for place, *_ in self._decimals:
            values[place] = int(values[place])
        return values


class PlannedRow(NamedTuple):
    """A row whose job is known. machine: that it names; number: of its line; row, ident: of which it is made."""

    plan: _RowPlan
    facts: list[Any]
    machine: str | None
    row: list[str]
    ident: str
    number: int

    def job(self) -> Job:
        """The job."""
        return self.plan.job(self.facts, self.number)

    def outlined(self) -> OutlinedJob:
        """The job in its outline."""
        return OutlinedJob(self.plan.outline, self.plan.values(self.facts), self.job)


#: A row of its members: as the class makes it, in a third of the time.
_planned_row: Final[Callable[[tuple[Any, ...]], PlannedRow]] = partial(tuple.__new__, PlannedRow)


class RowPlans:
    """The plans of rows with the same columns. rows: the reading that they belong to; learns: another one, without
    plans, which is asked what becomes of a row."""

    def __init__(self, rows: Rows, columns: Columns, learns: Rows) -> None:
        self._rows, self._columns, self._learns = rows, columns, learns
        self._longest = rows.context.limits.identifier
        self._plans: dict[tuple[Any, ...], _RowPlan | None] = {}
        self._kinds: dict[tuple[_Name, ...], int] = {}
        self._tags: dict[tuple[str, ...], int] = {}
        self._outlines = Outlines()
        self._unasked = rows.wanted.parted("")      # of rows without ReqTRES
        self._starts: Once[str, Property] = Once(lambda restarts: prop("StartCount", int(restarts) + 1))
        self._whose: Once[Texts, tuple[str | None, Heading, int]] = Once(self._heading, most=_PEOPLE)
        self._ended: Once[Texts, tuple[tuple[Property, ...], int, bool] | None] = Once(self._ending)
        self._counts: dict[tuple[Any, ...], tuple[int | None, tuple[Property, ...], int, int]] = {}

    # -- sections, each made once
    def _kind(self, properties: Sequence[Property]) -> int:
        """A number for properties, the same where only their values differ."""
        return self._kinds.setdefault(tuple([_named("", p) for p in properties]), len(self._kinds))

    def _heading(self, texts: Texts) -> tuple[str | None, Heading, int]:
        machine, heading = self._rows.who[texts]
        return machine, heading, self._tags.setdefault(tuple([p.tag for p in heading]), len(self._tags))

    def _ending(self, texts: Texts) -> tuple[tuple[Property, ...], int, bool] | None:
        """(what State, ExitCode and Reason become, a number for what they are, whether the job has ended); None where
        the state is not known."""
        record = Record(0, "")
        record.native, record.signal, record.exit_code, record.exit_status, ended = ENDS[texts]
        record.state, record.message, record.hold, is_known = ended
        if not record.native or not is_known:
            return None
        is_over = record.state == "Completed"
        if not is_over:
            record.exit_code = None
        properties = tuple([item for item in as_job(record).items[1:] if isinstance(item, Property)])
        return properties, self._kind(properties), is_over

    def _counted(self, key: tuple[Any, ...]) -> tuple[int | None, tuple[Property, ...], int, int] | None:
        """(processors; properties of what was asked for and then of what was held of processors and nodes; how many of
        them were asked for; a number for what they are) of what the reader knows by a key; None where it does not."""
        counts = self._rows.counted.get(key)
        if counts is None:
            return None
        if len(self._counts) >= _COUNTS:
            self._counts.clear()
        properties = (*counts.requested, *USED[counts.processors, counts.nodes])
        counted = self._counts[key] = counts.processors, properties, len(counts.requested), self._kind(properties)
        return counted

    # -- rows
    def of(self, row: list[str], ident: str, number: int) -> PlannedRow | None:
        """A row by its plan; None, or Rejected, where the reader has to look at it."""
        columns, longest = self._columns, self._longest
        ended, who = self._ended[columns.ended(row)], columns.who(row)
        clocks = None if ended is None else self._clocks(columns.times(row), ended[2])
        name, workdir, raw, planned, reserved, energy, in_short, first, second, third, fourth = columns.more(row)
        if clocks is None or ended is None or len(ident) > longest or len(name) > longest:
            return None
        submit, eligible, start, end, suspended, wall, starts, of_clocks = clocks
        amounts = self._amounts(columns.held(row), wall)
        total, user, system, peak, swap = columns.used(row)
        if amounts is None or peak or swap or (not total and (user or system)):
            return None
        of_amounts, processors, nodes, limit, memory, counted, numbers, beside = amounts
        cpu = rounded(micros(total, "TotalCPU") or None) if total else None
        joules = "" if energy in _NOTHING and in_short in _NOTHING else _energy(energy, in_short)
        if joules is None or (cpu and processors and cpu > 2 * (wall + 60) * processors):
            return None
        joules = joules or beside
        machine, heading, of_heading = self._whose[who]
        base, _, index = ident.partition("_")
        more, of_more = _NO_MORE
        if first or second or third or fourth or planned or reserved:
            more, of_more = _more((first, second, third, fourth), planned or reserved)
        facts: list[Any] = [
            ident, name or None, workdir or None, submit, start, end, suspended, cpu, eligible, base if index else None,
            index or None, raw if raw != ident and raw else None, *more, starts, wall, joules or None, nodes, limit,
            memory, *heading, *ended[0], *counted, *numbers]
        of_facts = of_clocks + (not name) + 2 * (not workdir) + 4 * (not index) + 8 * (not raw or raw == ident) + 16 * (
            cpu is None) + 32 * (not joules)
        key = of_facts, of_more, of_heading, ended[1], of_amounts
        if key not in self._plans:
            self._learn(key, facts, row, len(heading) + len(ended[0]))
        plan = self._plans[key]
        return None if plan is None else _planned_row((plan, facts, machine, row, ident, number))

    def _clocks(self, texts: Texts, is_over: bool) -> tuple[Any, ...] | None:
        """(submit time, eligible time as text, start, end, suspended time, elapsed time, starts, bits for those that
        are not said) of a job that has ended, or has no end so far; None where one is odd, or two contradict each
        other. Rejected: number."""
        submitted, eligible, started, ended, raw, elapsed, suspended, restarts = texts
        moment = self._rows.plain_moment
        start, end = moment(started), None if ended in _NO_END else moment(ended)
        submit = moment(submitted) if submitted else 0
        ready = submit if eligible == submitted else moment(eligible) if eligible else 0
        wall = int(raw) if _is_count(raw) else 0
        if elapsed:
            lasted = rounded(micros(elapsed, "Elapsed"))
            wall = wall if wall == lasted else 0 if raw else lasted or 0
        if start is None or submit is None or ready is None or not wall or start < submit - 2 or (
                end is None and (is_over or ended not in _NO_END)) or (restarts and not _is_count(restarts)):
            return None
        idle = 0 if suspended in _NOT_SUSPENDED else rounded(micros(suspended, "Suspended")) or 0
        if is_over and end is not None:
            beside = end - start - wall - idle
            if end < start or beside < -2 or (idle and beside > 2):
                return None
            idle = idle or beside
        starts = self._starts[restarts] if restarts else None
        return (submit or None, str(ready) if ready else None, start, end if is_over else None,
                idle if idle > 0 else None, wall, starts,
                64 * (not submit) + 128 * (not ready) + 256 * (idle > 0) + 512 * (starts is None) + 1024 * is_over)

    def _amounts(self, texts: Texts, wall: int) -> tuple[Any, ...] | None:
        """(what of it is said, processors, Node, the time limit that was asked for, the number of ReqMem, properties
        of counts, the numbers of AllocTRES and ReqTRES, the energy in AllocTRES); None where something of it is odd.
        Rejected: number."""
        rows = self._rows
        alloc, req, reqmem, nodelist, raw, limited, limit, *counts = texts
        allocated, asked = rows.assigned.parted(alloc), rows.wanted.parted(req) if req else self._unasked
        if allocated is None or asked is None or nodelist in _NOWHERE:
            return None
        form, numbers, places = allocated
        asked_form, asked_numbers, asked_places = asked
        nodes, listed, wrong = recall(node, nodelist) if nodelist else _NO_NODES
        cpus = count(raw, "CPUTimeRAW") if raw else None
        key = (
            True, int(numbers[places.cpu]) if places.cpu >= 0 else None,
            int(numbers[places.node]) if places.node >= 0 else None,
            int(asked_numbers[asked_places.cpu]) if asked_places.cpu >= 0 else None,
            int(asked_numbers[asked_places.node]) if asked_places.node >= 0 else None, listed,
            cpus // wall if cpus and not cpus % wall else None, *counts)
        counted = self._counts.get(key) or self._counted(key)
        time_limit = rows.limited.get((limited, limit), _UNKNOWN)
        if wrong or counted is None or time_limit is _UNKNOWN:
            return None
        memory, of_memory, total = None, "", asked_places.total
        if reqmem[:1].isdigit() and (total is None or reqmem != asked_numbers[total[0]] + total[1]):
            size = _ASKED(reqmem)
            if size is None:
                return None
            memory, of_memory = size[1], f"in {size[2]}"
        processors, properties, requested, of_counts = counted
        which = (form, asked_form, requested, of_counts, of_memory, time_limit is None, nodes is None,
                nodes is not None and nodes.attributes.get("aggregation"))
        return which, processors, nodes, time_limit, memory, properties, numbers + asked_numbers, (
            numbers[places.energy[3]] if places.energy is not None else "")

    # -- plans
    def _learn(self, key: tuple[Any, ...], facts: list[Any], row: list[str], bare: int) -> None:
        """Find the plan of a kind of rows by what the reader makes of one that has these facts. bare: how many of the
        properties behind the first facts stand bare."""
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[key] = None
        findings = self._learns.findings
        findings_before = findings.told
        self._learns.fold(dict(zip(self._columns.names, row, strict=False)), 1)
        job, = self._learns.rest()
        outlined = self._outlines.of(job)
        if outlined is None or findings.told > findings_before:
            return
        of_name, outline, order = self._names(key[-1], facts, bare), outlined.outline, list[int]()
        memory = facts[_MEMORY]
        if memory is not None:
            asked = asked_memory(memory + key[-1][4][3:], "ReqMem")
            of_name |= {} if asked is None else {_named(_REQUESTED, asked): _MEMORY}
        within = {place: outline.fields[slot].tag for slot, inside in outline.slots.items() for place in inside}
        for place, field in enumerate(outline.fields):
            name = _Name(within.get(place, _BARE), field.tag, tuple(field.attributes.items()))
            fact = 0 if place in outline.slots else of_name.pop(name, None)
            if fact is None:
                return
            order.append(fact)
        plan = _RowPlan(outline, order, facts)
        if not of_name and plan.job(facts, 1) == job:
            self._plans[key] = plan

    def _names(self, of_amounts: tuple[Any, ...], facts: list[Any], bare: int) -> dict[_Name, int]:
        """Which fact becomes which property, of those that become one."""
        form, asked_form, requested, _, of_memory, *_ = of_amounts
        rows, of_name = self._rows, dict[_Name, int]()
        first_asked = len(facts) - len(rows.wanted.forms.forms[asked_form].pieces) + 1
        first = first_asked - len(rows.assigned.forms.forms[form].pieces) + 1
        slots = [*[name.slot for name in _FACTS], *[_BARE] * bare, *[_REQUESTED] * requested]
        slots += [_DELIVERED] * (first - len(slots))
        for place, (slot, fact) in enumerate(zip(slots, facts, strict=False)):
            if isinstance(fact, Property):
                of_name[_named(slot, fact)] = place
            elif fact is not None and place != _MEMORY:
                of_name[_FACTS[place]] = place
        for slot, texts, at, behind in ((_DELIVERED, rows.assigned, form, first),
                                        (_REQUESTED, rows.wanted, asked_form, first_asked)):
            places = texts.places(at)
            assert places is not None
            of_name |= {_Name(slot, tag, tuple(attributes.items())): behind + number
                        for _, tag, attributes, number in places.properties}
            if places.total is not None and not of_memory:
                number, _, _, attributes = places.total
                of_name[_Name(slot, "Memory", tuple(attributes.items()))] = behind + number
        return of_name


def _named(slot: str, property_: Property) -> _Name:
    return _Name(slot, property_.tag, tuple(property_.attributes.items()))


def _is_count(text: str) -> bool:
    """Whether a text is a small number."""
    return text.isdigit() and text.isascii() and len(text) < _SHORT


def _energy(raw: str, in_short: str) -> str | None:
    """The first of two texts that tells of some energy; empty where none does, None where it is odd."""
    text = raw if raw not in _NOTHING else in_short
    if text in _NOTHING:
        return ""
    return text if text.isdigit() and text.isascii() and len(text) < _DIGITS and int(text) else None


def _more(texts: Sequence[str], planned: str) -> tuple[Sequence[str | None], tuple[bool, ...]]:
    """(the Extensions of texts that users and Slurm have written, and of how long a job was planned to wait; which of
    them are said). Rejected: number."""
    more = [text if text and text != "0:0" else None for text in texts]
    more.append(str(rounded(micros(planned, "Planned"))) if planned[:1].isdigit() else None)
    return more, tuple([text is None for text in more])


_NO_MORE: Final[tuple[Sequence[str | None], tuple[bool, ...]]] = _more(("",) * len(EXTENSIONS), "")
