"""What several task groups, or several tasks of one, say each for itself, where a target takes one value for the job.

``Siblings`` are for looks at one group after another. ``settle`` keeps of a property what holds for the first group,
as formats of one kind of task do, and tells of all that another group has instead; of Duration it keeps the longest,
for the job ends when its last task does. ``same_tasks`` does it for listed tasks.
Source: SSS job object 3.1.0, sections 2.2, 6 and 7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Item, Property
from sssjob.document.model import Job, TaskGroup
from sssjob.request._entry import Entry

if TYPE_CHECKING:
    from sssjob.request.asked import Asked

__all__ = ["ONE_OF_ALL", "Siblings", "same_tasks", "settle"]

#: Properties of which a target has one for the job.
ONE_OF_ALL: Final = frozenset((
    "Executable", "Arguments", "InputFile", "OutputFile", "ErrorFile", "InitialWorkingDirectory", "Duration", "Queue",
    "Project", "QualityOfService"))
#: What belongs to the command of the first group: that of another one is nothing to it.
_OF_COMMAND: Final = ("Arguments", "InitialWorkingDirectory")
_GROUP, _GROUPS, _JOB = "Job/TaskGroup", "Job/TaskGroupDefaults", "Job"
#: Of the tasks of a group, or of all groups: a limit of each is that of all of them.
_LISTED, _TASK, _TASKS = f"{_GROUP}/Task", f"{_GROUP}/TaskDefaults", f"{_GROUPS}/TaskDefaults"
#: Where a value is looked for that holds for a task group, the nearest first; listed tasks that differ have none left.
_RANKS: Final = {_LISTED: 0, f"{_LISTED}+": 0, _TASK: 1, _GROUP: 2, _TASKS: 3, _GROUPS: 4, _JOB: 5}
_CONDITIONS: Final = frozenset(("conj", "group", "preference"))


class Siblings:
    """The task groups of a job, of which one after another is looked at: what the job says beside them is gathered
    once, so that the time grows with their number and not with its square."""

    def __init__(self, job: Job) -> None:
        self.groups = list[TaskGroup]()
        self._beside = list[Item]()
        self._places = dict[int, tuple[int, int]]()     # of a group by identity: its number, items beside before it
        for item in job.items:
            if isinstance(item, TaskGroup):
                self.groups.append(item)
                self._places[id(item)] = len(self.groups), len(self._beside)
            else:
                self._beside.append(item)

    def around(self, group: TaskGroup) -> tuple[int, list[Item]]:
        """The number of a group, and the items of the job in their order without the other groups."""
        number, before = self._places[id(group)]
        return number, [*self._beside[:before], group, *self._beside[before:]]


def settle(asked: Asked, tag: str) -> bool:
    """Take away what holds for other task groups alone, with a finding at each; whether one entry is left."""
    of_each = _holding(asked.said(tag), len(asked.groups))
    if not all(_is_value(e) for entries in of_each for e in entries if e.level != _JOB or tag != "Duration"):
        return False
    if tag == "Duration":
        return _settle_duration(asked, of_each)
    holding = [entries[0] if entries else None for entries in of_each]
    stated = [e for e in holding if e is not None]
    if not stated or len({None if e is None else _said(e) for e in holding}) == 1:
        return False
    kept = holding[0] or (None if tag in _OF_COMMAND else stated[0])
    for number, e in enumerate(holding, 1):
        if e is None and kept is not None:
            asked.note("SSS502", kept, f"{tag}: task group {number} says none, and gets that of another one")
        elif e is not None and (kept is None or _said(e) != _said(kept)):
            asked.dropped(e, f"that of the first task group is taken for all, task group {number} has {e.text[:80]}")
    return _keep(asked, tag, kept)


def _settle_duration(asked: Asked, of_each: Sequence[Sequence[Entry]]) -> bool:
    """Keep the longest of the limits that hold for the task groups, for a job ends when its last task does. That of
    the job is one of them where a group has none of its own."""
    of_job = next((entries for entries in of_each if entries and entries[0].level == _JOB), ())
    limits = [_limit(entries) for entries in of_each if entries and entries[0].level != _JOB]
    if of_job and (limit := asked.least_of(of_job)) is not None:
        limits.append(limit)
    if not limits:
        return False
    longest = max(limits, key=_seconds)
    if any(e.text != longest.text for e in limits):
        asked.note("SSS502", longest, f"Duration: {longest.text} is the longest of the task groups", "info")
    return _keep(asked, "Duration", longest)


def _limit(entries: Sequence[Entry]) -> Entry:
    """Of the bounds of one task group the one that is its limit: the lowest from above, else the highest from below."""
    upper = [e for e in entries if e.attributes.get("op") != "GE"]
    return min(upper, key=_seconds) if upper else max(entries, key=_seconds)


def _holding(entries: Iterable[Entry], groups: int) -> list[list[Entry]]:
    """The entries of a name that hold for each of the task groups: those of its tasks, its own, those of all groups, or
    those of the job; in each of them what is requested over what stands bare."""
    of_all, of_each = list[Entry](), defaultdict[str, list[Entry]](list)
    for e in entries:
        if e.level in _RANKS:
            own = _RANKS[e.level] <= _RANKS[_GROUP]
            (of_each[e.above.split("/", 3)[2]] if own else of_all).append(e)
    return [_nearest([*of_each.get(f"TaskGroup[{number}]", ()), *of_all]) for number in range(1, groups + 1)]


def _nearest(entries: Sequence[Entry]) -> list[Entry]:
    """Those of the nearest place, there what is requested over what stands bare."""
    ranks = [(_RANKS[e.level], e.slot == "") for e in entries]
    nearest = min(ranks, default=None)
    return [e for rank, e in zip(ranks, entries, strict=True) if rank == nearest]


def _is_value(e: Entry) -> bool:
    """Whether a property says a value, or a bound that is taken for one, and no alternative."""
    return isinstance(e.item, Property) and not e.attributes.keys() & _CONDITIONS and e.attributes.get("op", "EQ") in (
        "EQ", *(("LE", "GE") if e.tag == "Duration" else ()))


def _said(e: Entry) -> tuple[str, str | None]:
    """What tells a value from that of another group: streams may have none, but say what becomes of them."""
    return e.text, e.attributes.get("redirectList")


def _seconds(e: Entry) -> int:
    return e.value if isinstance(e.value, int) else -1


def _keep(asked: Asked, tag: str, kept: Entry | None) -> bool:
    """Leave one entry of a name, or none; the others count as carried."""
    others = [e for e in asked.said(tag) if e is not kept]
    for e in others:
        e.used = True
        e.understood |= e.attributes.keys()
    asked.take_away(others)
    return True


def same_tasks(asked: Asked, first_task: str) -> frozenset[int]:
    """Of the listed tasks of a group: what another one says as the first does is carried with it; what not all of them
    ask for alike is no amount of each task, and cannot be asked for, nor can a limit of some of the tasks that are
    counted. Gives the identities of those entries."""
    from sssjob.request.tree import ROWS

    listed = {f"/Job/TaskGroup[{number}]": sum(1 for _ in group.containers("Task"))
              for number, group in enumerate(asked.groups, 1)}
    counted = {f"/Job/TaskGroup[{number}]": int(group.value("TaskCount") or 0)
               for number, group in enumerate(asked.groups, 1)}
    of_tasks: dict[str, list[Entry]] = {}
    for e in asked.entries:
        if e.level in (first_task, f"{first_task}+"):
            of_tasks.setdefault(e.path.partition("/Task[")[0], []).append(e)
    apart = frozenset[int]()
    for group, entries in of_tasks.items():
        first = [e for e in entries if e.level == first_task]
        of_first = [(e.slot, e.item) for e in first]
        times = [1] * len(first)
        for e in entries:
            if e.level != first_task and (e.slot, e.item) in of_first:
                e.used = True
                e.understood |= e.attributes.keys()
                times[of_first.index((e.slot, e.item))] += 1
        apart |= {id(e) for e, count in zip(first, times, strict=True) if e.tag in ROWS and (
            count < listed[group] or (e.tag in ONE_OF_ALL and count < counted[group]))}
    asked.take_away(e for e in asked.entries if id(e) in apart)
    return apart
