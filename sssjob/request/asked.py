"""What a job asks for, item by item: every leaf with its level, and of each name the one value that counts.

A JobSpec holds one value where Requested is an expression. ``Asked.one`` takes it from the least request of the nearest
Requested (decisions 5 and 12); where it was not asked for just so, a finding says so. Nothing here knows PSI/J.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Container, Property, Raw
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job, TaskGroup
from sssjob.findings import Findings, Policy, Severity
from sssjob.lrm.usage import whole
from sssjob.request._entry import Entry, kind_of, policy_of, said_of, unit_of
from sssjob.request._of_groups import ONE_OF_ALL, Siblings, same_tasks, settle

if TYPE_CHECKING:       # imported when an expression takes thought: most take none
    from sssjob.request import Expression, LeastRequest, Node, Single
    from sssjob.request.layout import Layout

__all__ = ["AMOUNTS", "FACTS", "GROUP", "GROUPS", "JOB", "JSON", "MARKERS", "NEAREST", "TASK", "Asked", "Entry",
           "Target", "policy_of"]

#: Properties of one job's life: no part of what is asked for (decisions 18, 19).
FACTS: Final = frozenset((
    "State", "StatusMessage", "StartTime", "EndTime", "ExitCode", "StartCount", "SuspendDuration", "CpuDuration",
    "Charge", "SubmitTime", "SubmitHost", "StagedTime", "GlobalJob", "Session", "Process",
))

#: Extensions (type, name) by which a reader notes what a document was made of: they ask for nothing, and whoever has no
#: place for them loses nothing.
MARKERS: Final = frozenset((("Scheduler", "Dialect"),))

JOB, GROUP, GROUPS = "Job", "Job/TaskGroup", "Job/TaskGroupDefaults"
TASK: Final = (f"{GROUP}/Task", f"{GROUP}/TaskDefaults", f"{GROUPS}/TaskDefaults")
#: Where a property is looked for, nearest first (job object 3.1.0, section 2.2).
NEAREST: Final = (*TASK, GROUP, GROUPS, JOB)
AMOUNTS: Final = (GROUP, GROUPS, JOB)
_CHOICE: Final = frozenset(("op", "conj", "group", "preference"))
_SLOTS: Final = ("", "Requested")
#: Where listed tasks stand: the first of a group, and the others.
_LISTED: Final = (TASK[0], f"{TASK[0]}+")
_SETS: Final = ("Node", "Feature")      # several of them are no contradiction
_WHOLE: Final = Decimal(1)


@dataclass(frozen=True, slots=True)
class Target:
    """What a JobSpec is made for.

    rule: of the finding for what is not carried. irrelevant: names whose loss never rejects (section 9.0: not critical
    is not a failure). bearable: whether that holds of an Extension, by its type and name. handled: names the caller
    looks after itself. executor: empty for text; ``local`` understands redirectList. launcher: starts the tasks where
    the job names none; with invented True a finding says so.
    """

    rule: str = "SSS501"
    irrelevant: frozenset[str] = frozenset(("Id",))
    bearable: Callable[[str, str], bool] | None = None
    handled: frozenset[str] = frozenset()
    executor: str = ""
    launcher: str = "mpirun"
    word: str = "a JobSpec has no place for it"
    side_by_side: bool = False      # one of several task groups: amounts of the job are not the group's


JSON: Final = Target()


def _said_alike(group: TaskGroup, like: object) -> list[Property]:
    """What a task group says just as another one does; of its limit, count and names alike ones may have others."""
    return [p for p in group.leaves() if p == like]


def _name_of(entry: Entry) -> str | None:
    """The name of a resource, of which each is asked for by itself; None for all else."""
    return entry.attributes.get("name") if entry.tag == "Resource" else None


@dataclass(slots=True)
class _Block:
    """The Requested of one level: as an expression, and what is asked for without one."""

    expression: Expression
    least: LeastRequest
    dropped: frozenset[int]     # identities of the properties that no value says

    def __str__(self) -> str:
        return str(self.expression)


class Asked:
    """A job whose items are asked for one by one; what nobody asks for can be told in the end.

    group: the one of several task groups to look at (None: all); siblings: those of the job, where it is known.
    """

    def __init__(self, job: Job, findings: Findings, policy: Policy, target: Target, group: TaskGroup | None,
                 siblings: Siblings | None = None) -> None:
        self.job, self.group, self.findings, self.target = job, group, findings, target
        self._siblings = Siblings(job) if siblings is None else siblings
        self.groups = self._siblings.groups     # the task groups of the job, also those that are not looked at
        self.listed = 0                         # how many tasks are listed one by one
        self.alike: Sequence[TaskGroup] = ()    # task groups that say the same, of which the first stands for all
        self.origins: Mapping[int, Property] = {}       # what a property was made of, by its identity
        self.entries: list[Entry] = []
        self.variables: list[Entry] = []        # those of Environment, at any level
        self._tagged: defaultdict[str, list[Entry]] = defaultdict(list)     # those that can be asked for, by name
        self._requested: dict[str, list[Entry]] = {}    # by level
        self._blocks: dict[str, _Block] = {}
        self._plain: dict[str, bool] = {}
        self._enter(job, JOB, "", "/Job", policy)
        #: Entries of listed tasks that not all of them ask for alike.
        self.apart = same_tasks(self, TASK[0]) if self.listed else frozenset[int]()
        self._settled = set[str]()      # names of which one of the values of several task groups is left
        self._unsettled = set[str]() if group is not None or len(self.groups) < 2 else {
            tag for tag in ONE_OF_ALL if any(e.level in (GROUP, *TASK[:2]) for e in self.said(tag))}

    def _enter(self, scope: Container, level: str, slot: str, path: str, policy: Policy) -> None:
        """An entry for each leaf and unknown item below a scope; of the task groups only for the one asked for."""
        tagged = self._tagged if slot in _SLOTS else defaultdict(list)
        entries = self.entries
        reported = not slot and level in _LISTED      # bare in a task a Node tells where it ran
        before = len(entries)
        if scope.attributes:
            policy = policy_of(scope, policy)
            for name in scope.attributes:
                if name not in ("awarenessPolicy", "export"):
                    entries.append(Entry(Raw(f"@{name}"), level, slot, path, policy))
        numbers: dict[str, int] = {}
        items = scope.items
        if scope is self.job and self.group is not None:
            number, items = self._siblings.around(self.group)
            numbers["TaskGroup"] = number - 1
        for item in items:
            if isinstance(item, Property):
                entry = Entry(item, level, slot, path, policy if "awarenessPolicy" not in item.attributes
                              else policy_of(item, policy))
                entries.append(entry)
                if not reported or entry.tag != "Node":
                    tagged[entry.tag].append(entry)
            elif isinstance(item, Container):
                numbers[item.tag] = number = numbers.get(item.tag, 0) + 1
                self._enter_inner(item, level, path, number, policy)
            else:
                entries.append(Entry(item, level, slot, path, policy_of(item, policy)))
        if slot == "Requested":
            self._requested.setdefault(level, []).extend(entries[before:])
        elif slot == "Environment":
            self.variables += entries[before:]

    def _enter_inner(self, scope: Container, level: str, path: str, number: int, policy: Policy) -> None:
        """The same of a container inside another. number: among those of its name; level, path: of the outer one."""
        tag = scope.tag
        below = f"{path}/{tag}[{number}]" if tag in ("TaskGroup", "Task") else f"{path}/{tag}"
        if tag in ("Requested", "Delivered", "Environment"):
            self._enter(scope, level, tag, below, policy)
            return
        other = "+" if tag == "Task" and number > 1 else ""         # only the first one is taken
        self.listed += tag == "Task" and level == GROUP
        self._enter(scope, f"{level}/{tag}{other}", "", below, policy)

    # -- findings
    def note(self, rule: str, entry: Entry | None, message: str, severity: Severity | None = None,
             subject: str = "") -> None:
        """One finding about an entry (None: about the job), and at each of the task groups that are alike; of what is
        written for all of them another way it is one."""
        self._note_at(rule, entry, message, severity, subject)
        if entry is not None and self.alike and rule != "SSS502":
            for other in self._alike(entry):
                self._note_at(rule, other, message, severity, subject)

    def _note_at(self, rule: str, entry: Entry | None, message: str, severity: Severity | None, subject: str) -> None:
        """The finding at one place."""
        path, item = self._about(entry, subject)
        self.findings.add(rule, subject or (entry.tag if entry else "Job"), message, severity=severity,
                          policy=entry.policy if entry else Policy.REJECT, path=path, item=item, within=self.job,
                          once=bool(self.alike) or self.findings.places is not None)

    def _alike(self, entry: Entry) -> Iterator[Entry]:
        """What the other task groups that are alike say where the first one has an entry."""
        start, first, inner = entry.above.partition("/TaskGroup[1]")
        for number, group in enumerate(self.alike[1:] if first else (), 2):
            above = f"{start}/TaskGroup[{number}]{inner}"
            if len(self.groups) > 1:
                yield from [e for e in self.entries if e.above == above and e.item == entry.item][:1]
            elif isinstance(entry.item, Property):      # they were made one
                about = self._about(entry, "")[1]
                same = next((p for own, p in zip(*(_said_alike(g, about) for g in (self.alike[0], group)), strict=False)
                             if own is about), entry.item.replace())
                yield Entry(same, entry.level, entry.slot, above, entry.policy)

    def _about(self, entry: Entry | None, subject: str) -> tuple[str, Property | Raw | Container | None]:
        """Path and item of an entry; where a finding has only a name those of the first of that name."""
        about = entry or next(iter(self._tagged.get(subject, ())), None)
        if about is not None:
            return about.path, self.origins.get(id(about.item), about.item)
        if subject == "TaskGroup" and len(self.groups) > 1:
            return "/Job/TaskGroup[2]", self.groups[1]
        environment = next(self.job.containers("Environment"), None) if subject.startswith("Environment") else None
        return ("/Job", None) if environment is None else ("/Job/Environment", environment)

    def dropped(self, entry: Entry, why: str = "", subject: str = "") -> None:
        """The finding for what is not carried."""
        name = subject or entry.called
        severity: Severity | None = "warning" if self._can_lack(entry) else None
        if severity and entry.policy is Policy.IGNORE:
            return
        if not why and (id(entry) in self.apart or entry.level == f"{TASK[0]}+"):
            why = "not all of the listed tasks ask for the same"
        self.note(self.target.rule, entry, f"{subject or entry.called}: {why or self.target.word}", severity, name)

    def _can_lack(self, entry: Entry) -> bool:
        """Whether the target may leave out an item whatever the policy is."""
        bearable = self.target.bearable
        return entry.tag in self.target.irrelevant or (
            bearable is not None and entry.tag == "Extension"
            and bearable(entry.attributes.get("type", ""), entry.attributes.get("name", "")))

    def misfit(self, entry: Entry, why: str) -> None:
        """The finding for what cannot hold beside the counts of the job, which win over it: that of ``check``."""
        self.findings.add("SSS414", entry.tag, f"{entry.tag}: {why}", path=entry.path, item=entry.item, within=self.job,
                          once=True)

    def range(self, tag: str, levels: Sequence[str]) -> tuple[Entry, Entry] | None:
        """The entries of the least and the most of a count, where two conditions and nothing else say them."""
        from sssjob.request.tree import range_of

        if len(self.said(tag)) < 2:
            return None
        entries = self.find(tag, levels)
        if range_of(e.item for e in entries if isinstance(e.item, Property)) is None:
            return None
        first, second = entries
        return (first, second) if first.attributes["op"] == "GE" else (second, first)

    def chunks(self, layout: Layout) -> Entry | None:
        """Take how many chunks there are into a layout that has its nodes, with a finding where there cannot be so
        few; the entry that says it."""
        entry = self.one("Extension", AMOUNTS, type="Scheduler", name="ChunkCount")
        if entry is None:
            return None
        if not (count := whole(entry.text)):
            self.dropped(entry, f"{entry.text[:80]} is no number of things that can be asked for")
            return None
        if why := layout.take_chunks(count):
            self.misfit(entry, why)
            return None
        return entry

    def spread(self, entry: Entry, layout: Layout) -> None:
        """Take the TaskDistribution of an entry into a layout, with a finding where it does not fit or is none that
        says numbers."""
        from sssjob.request.geometry import distribution_of, spread

        assert isinstance(entry.item, Property)
        nodes = layout.nodes
        try:
            why = spread(layout, entry.item)
        except LexicalError as error:
            self.dropped(entry, str(error))
            return
        if layout.nodes != nodes:
            self.note("SSS502", next(iter(self.said("NodeCount")), None), f"NodeCount: {layout.tasks} tasks, "
                      f"{layout.per_node} on a node, are on no fewer than {layout.nodes} nodes", "info")
        if why is None:
            self.dropped(entry, f"a distribution by {distribution_of(entry.item)[0]} is not carried")
        elif why:
            self.misfit(entry, why)

    def leave_out(self, entries: Iterable[Entry]) -> None:
        """Take entries, also those of a look at one group, away from what can be asked for; they count as carried, for
        something was told or made of them."""
        out = {e.place for e in entries}
        for e in self.entries:
            if e.place in out:
                e.used = True
                e.understood |= e.attributes.keys()
        self.take_away(e for e in self.entries if e.place in out)

    def take_away(self, entries: Iterable[Entry]) -> None:
        """Take entries away from what can be asked for."""
        out = set(map(id, entries))
        self._tagged = defaultdict(list, {tag: kept for tag, tagged in self._tagged.items()
                                          if (kept := [e for e in tagged if id(e) not in out])})

    # -- asking
    def said(self, tag: str) -> Sequence[Entry]:
        """All that the job says under a name, at any level, bare or in Requested; nothing counts as carried by that."""
        return self._tagged.get(tag, ())

    def find(self, tag: str, levels: Sequence[str] = NEAREST, **attributes: str) -> list[Entry]:
        """The entries that count for a name: the nearest level, there Requested over bare (decisions 5)."""
        if tag in self._unsettled:
            self.settle(tag)
        fits = []
        conditions = attributes.items()
        for e in self._tagged.get(tag, ()):
            if e.level not in levels:
                continue
            if conditions:
                if not conditions <= e.attributes.items():
                    continue
                e.understood |= attributes.keys()
            if e.slot and e.attributes:
                e.understood |= _CHOICE
            e.used = True
            fits.append(e)
        if len(fits) < 2:
            return fits
        nearest: dict[str | None, tuple[int, bool]] = {}
        for e in fits:
            name, rank = _name_of(e), (levels.index(e.level), not e.slot)
            nearest[name] = min(nearest.get(name, rank), rank)
        for e in fits:
            level, bare = nearest[_name_of(e)]
            if not e.slot and e.attributes and not bare and e.level == levels[level]:
                e.understood |= e.attributes.keys()     # what stands below Requested wins over it
        return [e for e in fits if (levels.index(e.level), not e.slot) == nearest[_name_of(e)]]

    def beside(self, resource: Entry) -> list[Entry]:
        """The resources of the same name that one of them does not stand for: those of other levels, and of its own one
        of another type that stands bare beside Requested."""
        return [e for e in self.said("Resource") if _name_of(e) == _name_of(resource) and (
            e.level != resource.level
            or (e.slot != resource.slot and e.attributes.get("type") != resource.attributes.get("type")))]

    def one(self, tag: str, levels: Sequence[str] = NEAREST, *, carried: Iterable[str] = (),
            **attributes: str) -> Entry | None:
        """The one entry that a single value is taken from (decisions 12). carried: attributes that the target holds."""
        if tag in self._unsettled:
            self.settle(tag)
        tagged = self._tagged.get(tag)
        if tagged is None:
            return None
        if len(tagged) == 1:
            return self._only(tagged[0], levels, carried, attributes)
        first = self.find(tag, levels, **attributes)
        if not first:
            return None
        if carried:
            for e in first:
                e.understood |= set(carried)
        if first[0].slot:
            return self._least(first, attributes)
        if len(first) > 1 and any(e.item != first[0].item for e in first):
            self.note("SSS502", first[0], f"{tag}: the first of {len(first)} is taken, {first[0].text}")
        return first[0]

    def settle(self, tag: str) -> None:
        """Leave one value of a name that task groups say each for itself."""
        self._unsettled.discard(tag)
        if settle(self, tag):
            self._settled.add(tag)

    def least_of(self, entries: Sequence[Entry]) -> Entry | None:
        """The one of several entries of a name and level whose value is taken; None where none of them says one."""
        return self._least(list(entries), {}) if entries[0].slot else entries[0]

    def _only(self, entry: Entry, levels: Sequence[str], carried: Iterable[str], attributes: Mapping[str, str]
              ) -> Entry | None:
        """The same where the job says a name once."""
        if entry.level not in levels or (attributes and not attributes.items() <= entry.attributes.items()):
            return None
        entry.used = True
        if entry.attributes:
            entry.understood = {*entry.understood, *attributes, *carried, *(_CHOICE if entry.slot else ())}
        if not entry.slot or entry.tag in self._settled:
            return entry
        return entry if self.demands(entry.level) else self._least([entry], attributes)

    def _least(self, entries: list[Entry], attributes: Mapping[str, str]) -> Entry | None:
        """What the least request of a Requested says of a name; everything else that was said of it is told."""
        if len(entries) == 1 and self.demands(entries[0].level):
            return entries[0]
        tag, block = entries[0].tag, self._block(entries[0])
        lost = [e for e in entries if id(e.item) in block.dropped]
        for e in lost:
            self._condition(e)
        singles = [v for v in block.least.values if v.property.tag == tag
                   and attributes.items() <= v.property.attributes.items()]
        if not singles:
            if not lost:
                self.note("SSS502", entries[0], f"{tag}: only an alternative that is not taken asks for it: {block}")
            return None
        entry = _source(singles[0], entries)
        entry.taken = singles[0].property
        for e in entries:
            other = kind_of(e) != kind_of(entry) if len(singles) > 1 else (
                singles[0].exact and isinstance(entry.value, str) and e.text != entry.text)
            if other and id(e.item) not in block.dropped:
                self.dropped(e, f"{said_of(e)} does not fit beside {entry.text}")
        if not singles[0].exact:
            asked = entries[0].item if len(entries) == 1 and not _depends(block) else None
            plain = isinstance(asked, Property) and asked.value == entry.taken.value
            self.note("SSS502", entry, f"{tag}: {entry.text}{unit_of(entry)} is taken of "
                      f"{_alternatives(block, entries)}", "info" if plain else None)    # asked for to the letter
        return entry

    def demands(self, level: str) -> bool:
        """Whether the Requested of a level simply demands one thing after another: then each is its own least
        request, and the expression needs no thought."""
        plain = self._plain.get(level)
        if plain is None:
            once: set[str] = set()
            for e in self._requested.get(level, ()):
                plain = e.tag not in once and _demanded(e.item)
                if not plain:
                    break
                if e.tag not in _SETS:
                    once.add(e.tag)
            plain = self._plain[level] = plain is not False
        return plain

    def expression(self, entry: Entry) -> Node:
        """The whole expression of the Requested that an entry stands in."""
        return self._block(entry).expression.root

    def _block(self, entry: Entry) -> _Block:
        """The Requested at the level of an entry."""
        from sssjob.request import least_request, parse

        if entry.level not in self._blocks:
            expression = parse(e.item for e in self._requested.get(entry.level, ()) if isinstance(e.item, Property))
            least = least_request(expression)
            block = _Block(expression, least, frozenset(map(id, least.dropped)))
            self._blocks[entry.level] = block
            several = len(self.groups) > 1 and self.group is None and entry.level in (GROUP, *TASK)
            if not least.possible and not several:
                self.note("SSS502", entry, f"Requested: the first value of each name is taken, for no value meets "
                          f"{block}", subject="Requested")
        return self._blocks[entry.level]

    def _condition(self, entry: Entry) -> None:
        """A condition that no value says: a wish gives way, the least below a bound is nothing, all else is lost."""
        if entry.attributes.get("preference", "").startswith("-"):
            self.note("SSS502", entry, f"{entry.tag}: the wish for {entry.text} is not carried")
        elif entry.attributes.get("op") in ("LE", "LT"):
            self.note("SSS502", entry, f"{entry.tag}: nothing is asked for, {said_of(entry)} is only an upper bound")
        else:
            self.dropped(entry, f"the condition {said_of(entry)} has no place in a JobSpec")

    def text(self, tag: str) -> str | None:
        """The text of a property that is carried as it is."""
        entry = self.one(tag)
        return None if entry is None else entry.text

    def count(self, tag: str, levels: Sequence[str] = AMOUNTS) -> int | None:
        """A number of things; 0 says nothing to PSI/J."""
        entry = self.one(tag, levels)
        if entry is None:
            return None
        if isinstance(entry.value, int) and entry.value > 0:
            return entry.value
        self.dropped(entry, f"{entry.text} is no number of things that PSI/J takes")
        return None


def _demanded(item: Property | Raw | Container) -> bool:
    """Whether an item is a value and no condition."""
    if not isinstance(item, Property):
        return True
    value = item.value
    whole = value >= 0 if isinstance(value, int) else not isinstance(value, Decimal) or (
        value.same_quantum(_WHOLE) and value >= 0)
    return whole and (not item.attributes or _CHOICE.isdisjoint(item.attributes))


def _source(single: Single, entries: list[Entry]) -> Entry:
    """The entry that a value comes from: of those with its attributes the one with its text, else the first."""
    def like(e: Entry) -> tuple[bool, bool]:
        """The key to sort an entry by: whether its attributes differ from the value's, then whether its text does."""
        plain = {k: v for k, v in e.attributes.items() if k not in _CHOICE}
        return plain != single.property.attributes, e.text != single.property.text

    return min(entries, key=like)


def _alternatives(block: _Block, entries: list[Entry]) -> str:
    """What there was to choose from: where names depend on each other the part of the expression that is about this
    one alone, else the whole."""
    if not _depends(block):
        return ", ".join(map(said_of, entries))
    from sssjob.request.tree import AllOf, properties_of

    root = block.expression.root
    parts = [node for node in (root.items if isinstance(root, AllOf) else (root,))
             if any(p.tag == entries[0].tag for p in properties_of(node))]
    alone = all(p.tag == entries[0].tag for node in parts for p in properties_of(node))
    return " and ".join(map(str, parts)) if alone else str(block)


def _depends(block: _Block) -> bool:
    return any(p.conj in ("Or", "Nor") for p in block.expression.properties)
