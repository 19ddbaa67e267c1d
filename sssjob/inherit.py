"""Default inheritance: what holds for a job, a task group, a task, and at which level it was said.

First hit wins, from the nearest: Task, TaskDefaults, TaskGroupDefaults/TaskDefaults, TaskGroup, TaskGroupDefaults,
Job, JobDefaults (with the TaskGroupDefaults inside it). A name is replaced as a whole set; bare, Requested and
Delivered are three slots that do not touch each other; Environment is merged variable by variable. Results of one
instance (Id, State, times ...) are never inherited, amounts only from the defaults of the same level: they describe
their own level. Source: SSS job object 3.1.0, section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from sssjob.element import Container, Item, Property, Value
from sssjob.model import (
    CLASSES,
    Environment,
    Job,
    JobDefaults,
    Task,
    TaskDefaults,
    TaskGroup,
    TaskGroupDefaults,
)
from sssjob.vocabulary import in_scope

__all__ = ["Effective", "Origin", "Resolved", "Shared", "Slot", "TaskGroupView", "TaskView", "View", "effective"]

Slot = Literal["bare", "Requested", "Delivered", "Environment"]
_C = TypeVar("_C", bound=Container)
_Key = tuple[str, str | None, str | None]

_NAMED: Final = frozenset(("Variable", "Resource", "Extension", "ResourceLimit"))
_CHILDREN: Final = ("Environment", "Requested", "Delivered")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was said. path: container names from the job outward, such as ``JobDefaults`` or
    ``TaskGroupDefaults/TaskDefaults``; own: at the level itself or in its sibling defaults; policy: the
    awarenessPolicy that held there (section 13: it goes along with an inherited property)."""

    path: str
    container: Container
    own: bool
    policy: str

    def __str__(self) -> str:
        return self.path


class Resolved(NamedTuple):
    """A property and where it was said."""

    property: Property
    origin: Origin


_Unit = list[tuple[Property, Container]]


class _Read(NamedTuple):
    """What is inherited or left together, its names, and whether results of one instance or amounts are in it."""

    unit: _Unit
    keys: frozenset[_Key]
    instance: bool
    amount: bool


#: What was read of containers, by identity and slot. The container is kept, so that no other one gets its identity.
Shared = dict[tuple[int, str], tuple[Container, list[_Read]]]


class _Level(NamedTuple):
    """One step of the search. amounts: amounts are taken from here; defaults: it is a Defaults element; own: it is the
    element itself or its sibling defaults; policy: the awarenessPolicy around the container; shared: see ``effective``.
    """

    path: str
    container: Container
    amounts: bool
    defaults: bool
    own: bool
    policy: str
    shared: Shared | None = None


def _key(p: Property) -> _Key:
    if p.tag in _NAMED:
        return p.tag, p.attributes.get("name"), p.attributes.get("type")
    return p.tag, None, None


def _slot_items(container: Container, slot: Slot) -> _Unit:
    if slot == "bare":
        return [(p, container) for p in container.properties()]
    children = [i for i in container.items if i.tag == slot and isinstance(i, Container)]
    return [(p, child) for child in children for p in child.properties()]


def _or(p: Property) -> bool:
    return p.attributes.get("conj") in ("Or", "Nor")


def _group(p: Property) -> int:
    try:
        return int(p.attributes.get("group", "0"))
    except ValueError:
        return 0


def _units(items: _Unit, slot: Slot) -> Iterator[_Unit]:
    """What is inherited or left together: one property; in an expression all that brackets or Or tie together."""
    if slot != "Requested" or not any("group" in p.attributes or "conj" in p.attributes for p, _ in items):
        yield from ([i] for i in items)
        return
    depth, starts, joined = 0, [], False
    for index, (p, _) in enumerate(items):
        if depth == 0:
            starts.append(index)
            joined = joined or (index > 0 and _or(p))
        depth += _group(p)
        if depth < 0:
            joined = True
    if joined or depth:     # at the top And binds over Or: the block cannot be parted
        yield items
        return
    for start, end in zip(starts, [*starts[1:], len(items)], strict=True):
        yield items[start:end]


def _read(level: _Level, slot: Slot) -> list[_Read]:
    """The units of a level; read once where that is shared."""
    if level.shared is None:
        return _reading(level.container, slot)
    key = id(level.container), slot
    if key not in level.shared:
        level.shared[key] = level.container, _reading(level.container, slot)
    return level.shared[key][1]


def _reading(container: Container, slot: Slot) -> list[_Read]:
    items = _slot_items(container, slot)
    known = in_scope(container.tag if slot == "bare" else slot) if items else {}
    return [_Read(unit, frozenset([_key(p) for p, _ in unit]),
                  any([p.tag in known and known[p.tag].instance for p, _ in unit]),
                  any([p.tag in known and known[p.tag].amount for p, _ in unit]))
            for unit in (_units(items, slot) if items else ())]


def _taken(read: _Read, level: _Level, slot: Slot) -> bool:
    """Whether a unit may be inherited from a level at all."""
    if slot == "Delivered" and level.defaults:
        return False
    return not (read.instance or (read.amount and not level.amounts))


def _resolve(levels: tuple[_Level, ...], slot: Slot) -> list[tuple[_Level, _Unit]]:
    """Units by level, nearest first."""
    first = _read(levels[0], slot)
    seen = {key for read in first for key in read.keys}
    return [*((levels[0], read.unit) for read in first), *_further(levels[1:], slot, seen)]


def _further(levels: tuple[_Level, ...], slot: Slot, seen: set[_Key],
             shadows: Iterable[_Level] = ()) -> list[tuple[_Level, _Unit]]:
    """The same of levels further out. seen: names that are said further in. shadows: levels whose names hide those of
    the JobDefaults, which are the last levels (see ``fold``)."""
    found: list[tuple[_Level, _Unit]] = []
    inside = True
    for level in levels:
        taken = [read for read in _read(level, slot) if _taken(read, level, slot)]
        if taken and inside and level.path.startswith("JobDefaults"):
            inside = False
            seen |= {key for shadow in shadows for key in _shadow(shadow, slot)}
        found += [(level, read.unit) for read in taken if not read.keys & seen]
        for read in taken:
            seen |= read.keys
    return found


def _shadow(level: _Level, slot: Slot) -> set[_Key]:
    """Names that a level further in states and hands down: what is no amount and no result."""
    inward = level._replace(amounts=False)
    return {key for read in _read(level, slot) if _taken(read, inward, slot) for key in read.keys}


def _policy(child: Container | None, container: Container, outer: str) -> str:
    found = child.attributes.get("awarenessPolicy") if child is not None else None
    return found or container.attributes.get("awarenessPolicy") or outer


class View(Generic[_C]):
    """What holds for one container. ``get`` gives properties, ``origin`` says where they were said."""

    def __init__(self, container: _C, levels: tuple[_Level, ...]) -> None:
        self.container = container
        self._levels = levels
        self._found: dict[Slot, tuple[Resolved, ...]] = {}

    def resolved(self, slot: Slot = "bare") -> tuple[Resolved, ...]:
        """All properties of a slot with their origin, the nearest level first, in document order within a level."""
        found = self._found.get(slot)
        if found is None:
            found = self._found[slot] = tuple(self._read(slot))
        return found

    def _read(self, slot: Slot) -> Iterator[Resolved]:
        origins: dict[tuple[int, int], Origin] = {}
        for level, unit in _resolve(self._levels, slot):
            for p, child in unit:
                where = id(level.container), id(child)
                origin = origins.get(where)
                if origin is None:
                    policy = _policy(child, level.container, level.policy)
                    origin = origins[where] = Origin(level.path, level.container, level.own, policy)
                yield Resolved(p, origin)

    def properties(self, slot: Slot = "bare") -> list[Property]:
        """All properties of a slot, as ``resolved``."""
        return [r.property for r in self.resolved(slot)]

    def get(self, tag: str, slot: Slot = "bare") -> list[Property]:
        """The properties of one name that hold here."""
        return [r.property for r in self.resolved(slot) if r.property.tag == tag]

    def first(self, tag: str, slot: Slot = "bare") -> Property | None:
        """The first property of a name, or None."""
        return next(iter(self.get(tag, slot)), None)

    def value(self, tag: str, slot: Slot = "bare") -> Value | None:
        """The value of the first property of a name, or None."""
        found = self.first(tag, slot)
        return None if found is None else found.value

    def origin(self, tag: str, slot: Slot = "bare") -> list[Origin]:
        """Where each value that ``get`` gives was said."""
        return [r.origin for r in self.resolved(slot) if r.property.tag == tag]

    @property
    def export(self) -> bool | None:
        """Whether the submitter's variables go along: the nearest Environment that says so; None: not stated."""
        for level in self._levels:
            for child in level.container.containers("Environment"):
                if "export" in child.attributes:
                    return child.attributes["export"] == "true"
        return None

    def environment(self) -> Environment | None:
        """The variables merged from all levels (the farthest first); None where no level has an Environment."""
        found = self.properties("Environment")
        export = self.export
        if not found and export is None and not any(
                True for level in self._levels for _ in level.container.containers("Environment")):
            return None
        ordered = [p for _, unit in reversed(_resolve_runs(self._levels)) for p in unit]
        return Environment(ordered, None if export is None else {"export": "true" if export else "false"})


def _resolve_runs(levels: tuple[_Level, ...]) -> list[tuple[_Level, list[Property]]]:
    """Variables that hold, level by level, in the order of the text."""
    runs: list[tuple[_Level, list[Property]]] = []
    for level, unit in _resolve(levels, "Environment"):
        if not runs or runs[-1][0] is not level:
            runs.append((level, []))
        runs[-1][1].extend(p for p, _ in unit)
    return runs


class TaskView(View[Task]):
    """What holds for one task; ``container`` is empty where the task is implicit."""


class TaskGroupView(View[TaskGroup]):
    """What holds for one task group; ``container`` is empty where it is implicit."""

    def __init__(self, container: TaskGroup, levels: tuple[_Level, ...], task_levels: tuple[_Level, ...],
                 tasks: tuple[Task, ...], policy: str) -> None:
        super().__init__(container, levels)
        self._task_levels = task_levels
        self._policy = policy
        self._tasks = tasks

    def __len__(self) -> int:
        """How many tasks are described: explicit ones, or the implicit one."""
        return max(1, len(self._tasks))

    @property
    def described(self) -> int:
        """How many explicit tasks there are; 0: one implicit task stands for all."""
        return len(self._tasks)

    def task(self, j: int) -> TaskView:
        """The view of task j, counted from 0; IndexError beyond."""
        task = self._tasks[j] if self._tasks or j else Task()
        return TaskView(task, (_Level("Task", task, True, False, True, self._policy), *self._task_levels))

    def tasks(self) -> Iterator[TaskView]:
        """The views of all tasks."""
        return map(self.task, range(len(self)))


class Effective(View[Job]):
    """What holds for a job with the JobDefaults beside it; ``effective`` makes one."""

    def __init__(self, job: Job, defaults: JobDefaults | None = None, policy: str = "Reject",
                 shared: Shared | None = None) -> None:
        self.job, self.defaults, self.policy = job, defaults, policy
        self._job = _Level("Job", job, True, False, True, policy)
        self._far = tuple([_Level("JobDefaults", d, True, True, True, policy, shared)
                           for d in (defaults,) if d is not None])
        super().__init__(job, (self._job, *self._far))
        groups = tuple(job.task_groups)
        if not groups and defaults is not None:
            groups = tuple(defaults.task_groups)
            self._groups_level = self._far[0]
        else:
            self._groups_level = self._job
        self._task_groups = groups
        self._group_defaults = _defaults(self._job, "TaskGroupDefaults")
        self._far_group_defaults = _defaults(self._far[0], "TaskGroupDefaults") if self._far else ()

    def __len__(self) -> int:
        """How many task groups are described: explicit ones, or the implicit one."""
        return max(1, len(self._task_groups))

    def __bool__(self) -> bool:
        return True

    def task_group(self, i: int) -> TaskGroupView:
        """The view of task group i, counted from 0; IndexError beyond."""
        group = self._task_groups[i] if self._task_groups or i else TaskGroup()
        outer = _inner_policy(self._groups_level if self._task_groups else self._job)
        path = "JobDefaults/TaskGroup" if self._task_groups and self._groups_level is not self._job else "TaskGroup"
        own = _Level(path, group, True, False, True, outer)
        near = tuple(_nested(level, "TaskDefaults") for level in (own, *self._group_defaults))
        far = tuple(_nested(level, "TaskDefaults") for level in self._far_group_defaults)
        job = self._job._replace(amounts=False, own=False)
        top = tuple(level._replace(amounts=False, own=False) for level in self._far)
        levels = (own, *self._group_defaults, job, *self._far_group_defaults, *top)
        # What a group says of itself (amounts) is not handed down to its tasks.
        above = tuple(level._replace(amounts=False, own=False) for level in levels)
        count = 2 + len(self._group_defaults)
        task_levels = (*(t for ts in near for t in ts), *above[:count], *(t for ts in far for t in ts), *above[count:])
        return TaskGroupView(group, levels, task_levels, self._tasks_of(group), _inner_policy(own))

    def _tasks_of(self, group: TaskGroup) -> tuple[Task, ...]:
        """A group without tasks takes those of TaskGroupDefaults, as a job takes task groups: whole or not at all."""
        for c in (group, *(level.container for level in (*self._group_defaults, *self._far_group_defaults))):
            found = tuple(t for t in c.containers("Task") if isinstance(t, Task))
            if found:
                return found
        return ()

    def task_groups(self) -> Iterator[TaskGroupView]:
        """The views of all task groups."""
        return map(self.task_group, range(len(self)))

    def task(self, i: int, j: int) -> TaskView:
        """The view of task j of task group i."""
        return self.task_group(i).task(j)

    # -- folding
    def fold(self) -> Job:
        """A job of its own with all defaults folded in; the given ones stay as they are.

        Defaults of task groups and tasks are put into those that stand there; where none do, they stay (implicit
        ones have no place of their own)."""
        job = _folded(Job, self.job, self._levels, ("TaskGroup", "TaskGroupDefaults"), self.policy)
        outer = job.attributes.get("awarenessPolicy", self.policy)
        if self._task_groups:
            job.items += [self._fold_group(TaskGroup, g, outer) for g in self._task_groups]
        elif self._group_defaults or self._far_group_defaults:
            job.items.append(self._fold_group(TaskGroupDefaults, TaskGroupDefaults(), outer))
        return job

    def _fold_group(self, cls: type[Any], group: Container, outer: str) -> Container:
        own = _Level("TaskGroup", group, True, False, True, _inner_policy(self._groups_level))
        levels = (own, *self._group_defaults, *self._far_group_defaults)
        made: Container = _folded(cls, group, levels, ("Task", "TaskDefaults"), outer, (self._job,))
        inner = made.attributes.get("awarenessPolicy", outer)
        near = tuple(t for level in (own, *self._group_defaults) for t in _nested(level, "TaskDefaults"))
        far = tuple(t for level in self._far_group_defaults for t in _nested(level, "TaskDefaults"))
        shadows = (own, *self._group_defaults, self._job)
        tasks = self._tasks_of(group) if isinstance(group, TaskGroup) else self._tasks_of(TaskGroup())
        for task in tasks:
            first = _Level("Task", task, True, False, True, _inner_policy(own))
            made.items.append(_folded(Task, task, (first, *near, *far), (), inner, shadows))
        if not tasks and (near or far):
            start = _Level("TaskDefaults", TaskDefaults(), True, False, True, inner)
            made.items.append(_folded(TaskDefaults, start.container, (start, *near, *far), (), inner, shadows))
        return made


def effective(job: Job, defaults: JobDefaults | None = None, *, policy: str = "Reject",
              shared: Shared | None = None) -> Effective:
    """What holds for a job beside these JobDefaults. policy: the awarenessPolicy around both (of the JobGroup).

    shared: an empty dict that is given for all jobs beside the same JobDefaults, so that these are read once; they must
    not change between.
    """
    return Effective(job, defaults, policy, shared)


def _inner_policy(level: _Level) -> str:
    return level.container.attributes.get("awarenessPolicy", level.policy)


def _defaults(level: _Level, tag: str) -> tuple[_Level, ...]:
    """The Defaults of one kind inside a level, as levels; several rank in document order."""
    path = tag if level.path == "Job" else f"{level.path}/{tag}"
    return _inside(level, tag, path)


def _nested(level: _Level, tag: str) -> tuple[_Level, ...]:
    path = tag if level.path == "TaskGroup" else f"{level.path}/{tag}"
    return _inside(level, tag, path)


def _inside(level: _Level, tag: str, path: str) -> tuple[_Level, ...]:
    return tuple([_Level(path, c, True, True, True, _inner_policy(level), level.shared)
                  for c in level.container.items if c.tag == tag and isinstance(c, Container)])


# --- folding ------------------------------------------------------------------------------------------------------

def _folded(cls: type[_C], own: Container, levels: tuple[_Level, ...], left_out: tuple[str, ...], outer: str,
            shadows: tuple[_Level, ...] = ()) -> _C:
    """A copy of a container with what its defaults add. left_out: child containers that the caller sees to."""
    policy = own.attributes.get("awarenessPolicy", outer)
    items: list[Item] = [i for i in own.items if i.tag not in left_out and i.tag not in _CHILDREN]
    items += _inherited(levels, "bare", policy, shadows)
    for tag in _CHILDREN:
        child = _folded_child(tag, own, levels, policy, shadows)
        if child is not None:
            items.append(child)
    return cls(items, dict(own.attributes) or None, own.reference, own.line, own.spelling)


def _folded_child(tag: Any, own: Container, levels: tuple[_Level, ...], policy: str,
                  shadows: tuple[_Level, ...]) -> Container | None:
    mine = [i for i in own.items if i.tag == tag and isinstance(i, Container)]
    if not mine and len(levels) == 1:
        return None
    attributes = dict(mine[0].attributes) if mine else {}
    items: list[Item] = [i for c in mine for i in c.items]
    inherited = _inherited(levels, tag, attributes.get("awarenessPolicy", policy), shadows)
    if tag == "Environment":
        export = _export(levels, shadows)
        attributes |= {} if export is None else {"export": export}
        items = [*inherited, *items]
    else:
        items = [*_alone(items), *inherited] if inherited else items
    if not mine and not items and not attributes:
        return None
    return CLASSES[tag](items, attributes or None, None, mine[0].line if mine else 0)


def _export(levels: tuple[_Level, ...], shadows: tuple[_Level, ...]) -> str | None:
    near = sum(not level.path.startswith("JobDefaults") for level in levels)
    for order, level in enumerate((*levels[:near], *shadows, *levels[near:])):
        for child in level.container.items:
            if child.tag == "Environment" and isinstance(child, Container) and "export" in child.attributes:
                inherited = near <= order < near + len(shadows)
                return None if inherited else child.attributes["export"]
    return None


def _inherited(levels: tuple[_Level, ...], slot: Slot, policy: str, shadows: tuple[_Level, ...]) -> list[Property]:
    """What the levels after the first add, with the policy it had there; for Environment the farthest first."""
    if not any(_read(level, slot) for level in levels[1:]):
        return []
    runs: list[tuple[_Level, list[Property]]] = []
    own = {_key(p) for p, _ in _slot_items(levels[0].container, slot)}
    for level, unit in _further(levels[1:], slot, own, shadows):
        made = [_with_policy(p, _policy(child, level.container, level.policy), policy) for p, child in unit]
        if not runs or runs[-1][0] is not level:
            runs.append((level, []))
        runs[-1][1].extend(_alone(made) if slot == "Requested" else made)
    if slot == "Environment":
        runs.reverse()
    return [p for _, run in runs for p in run]


def _with_policy(p: Property, there: str, here: str) -> Property:
    if there == here or "awarenessPolicy" in p.attributes:
        return p
    return p.replace(awarenessPolicy=there)


_I = TypeVar("_I", bound=Item)


def _alone(items: list[_I]) -> list[_I]:
    """The same expression in brackets where it needs them to be joined to another with And."""
    at = [n for n, i in enumerate(items) if isinstance(i, Property)]
    if not at:
        return items
    out: list[Any] = list(items)
    first, last = out[at[0]], out[at[-1]]
    if first.attributes.get("conj") in ("Or", "Nor"):
        first = out[at[0]] = first.replace(conj="Nand" if first.attributes["conj"] == "Nor" else None)
    depth = 0
    loose = False
    for n in at:
        loose = loose or (depth == 0 and n != at[0] and _or(out[n]))
        depth += _group(out[n])
    if loose and len(at) > 1 and _group(first) >= 0 >= _group(last) and not depth:
        out[at[0]] = first.replace(group=str(_group(first) + 1))
        out[at[-1]] = last.replace(group=str(_group(last) - 1))
    return out
