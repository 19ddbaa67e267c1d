"""Default inheritance: what holds for a job, a task group, a task, and at which level it was said.

First hit wins, from the nearest: Task, TaskDefaults, TaskGroupDefaults/TaskDefaults, TaskGroup, TaskGroupDefaults,
Job, JobDefaults (with the TaskGroupDefaults inside it). A name is replaced as a whole set, in whatever form the nearer
level says it. Bare, Requested and Delivered are three slots that do not touch each other, but in a job that still waits
bare and Requested say the same: there the nearer of the two overrides the farther. Environment is merged variable by
variable. Results of one instance (Id, State, times ...) are never inherited, amounts only from the defaults of the same
level: they describe their own level, so no other level's amount overrides them either.

What brackets or Or tie together in Requested is inherited as one or, where a nearer level says one of its names, left
as one; its names override those further out in either case. Its amounts are not shown further in, the rest of it is: a
task group of a job with ``Duration 50 and (Processors 2 or Processors 4) or Node b`` sees ``Duration 50``. The choice
is made where the expression stands, at the job. Source: SSS job object 3.1.0, sections 2.2 and 5.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from sssjob.document._levels import Level, Origin, Resolved, Seen, Shared, Slot, further, policy_in, read_units, resolve
from sssjob.document._tied import bracketed
from sssjob.document.element import Container, Item, Property, Value
from sssjob.document.model import (
    CLASSES,
    Environment,
    Job,
    JobDefaults,
    Task,
    TaskDefaults,
    TaskGroup,
    TaskGroupDefaults,
)
from sssjob.document.states import waits

__all__ = ["Effective", "Origin", "Resolved", "Shared", "Slot", "TaskGroupView", "TaskView", "View", "distinct",
           "effective"]

_C = TypeVar("_C", bound=Container)

_CHILDREN: Final = ("Environment", "Requested", "Delivered")


class View(Generic[_C]):
    """What holds for one container. ``get`` gives properties, ``origin`` says where they were said."""

    def __init__(self, container: _C, levels: tuple[Level, ...], waits: bool) -> None:
        self.container = container
        self._levels = levels
        self._waits = waits
        self._found: dict[Slot, tuple[Resolved, ...]] = {}
        self._said: dict[Slot, list[Property]] = {}     # the same without origins, which few ask for

    def resolved(self, slot: Slot = "bare") -> tuple[Resolved, ...]:
        """All properties of a slot with their origin, the nearest level first, in document order within a level; where
        several levels request something, the expression of each is in brackets where it needs them."""
        entries = self._found.get(slot)
        if entries is None:
            entries = self._found[slot] = tuple(self._read(slot))
        return entries

    def _read(self, slot: Slot) -> Iterator[Resolved]:
        origins: dict[tuple[int, int], Origin] = {}
        for level, unit in resolve(self._levels, slot, self._waits):
            for p, child in unit:
                where = id(level.container), id(child)
                origin = origins.get(where)
                if origin is None:
                    policy = policy_in(child, level.container, level.policy)
                    origin = origins[where] = Origin(level.path, level.container, level.own, policy)
                yield Resolved(p, origin)

    def properties(self, slot: Slot = "bare") -> list[Property]:
        """All properties of a slot, as ``resolved``."""
        return self._plain(slot).copy()

    def _plain(self, slot: Slot) -> list[Property]:
        stated = self._said.get(slot)
        if stated is None:
            stated = self._said[slot] = [p for _, unit in resolve(self._levels, slot, self._waits) for p, _ in unit]
        return stated

    def own(self, slot: Slot = "bare") -> list[Property]:
        """Those that are said at the level itself or in its sibling defaults."""
        if not any(read_units(level, slot) for level in self._levels if level.own):
            return []
        return [p for level, unit in resolve(self._levels, slot, self._waits) if level.own for p, _ in unit]

    def get(self, tag: str, slot: Slot = "bare") -> list[Property]:
        """The properties of one name that hold here."""
        return [p for p in self._plain(slot) if p.tag == tag]

    def first(self, tag: str, slot: Slot = "bare") -> Property | None:
        """The first property of a name, or None."""
        return next((p for p in self._plain(slot) if p.tag == tag), None)

    def value(self, tag: str, slot: Slot = "bare") -> Value | None:
        """The value of the first property of a name, or None."""
        first = self.first(tag, slot)
        return None if first is None else first.value

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
        variables = self.properties("Environment")
        export = self.export
        if not variables and export is None and not any(
                True for level in self._levels for _ in level.container.containers("Environment")):
            return None
        ordered = [p for _, unit in reversed(resolve(self._levels, "Environment", False)) for p, _ in unit]
        return Environment(ordered, None if export is None else {"export": "true" if export else "false"})


class TaskView(View[Task]):
    """What holds for one task; ``container`` is empty where the task is implicit."""


class TaskGroupView(View[TaskGroup]):
    """What holds for one task group; ``container`` is empty where it is implicit."""

    def __init__(self, container: TaskGroup, levels: tuple[Level, ...], task_levels: Callable[[], tuple[Level, ...]],
                 tasks: tuple[Task, ...], policy: str, waits: bool) -> None:
        super().__init__(container, levels, waits)
        self._beyond_task = task_levels     # asked for with the first task: many look at groups only
        self._policy = policy
        self._tasks = tasks

    def __len__(self) -> int:
        """How many tasks are described: explicit ones, or the implicit one."""
        return max(1, len(self._tasks))

    @cached_property
    def _task_levels(self) -> tuple[Level, ...]:
        return self._beyond_task()

    @property
    def described(self) -> int:
        """How many explicit tasks there are; 0: one implicit task stands for all."""
        return len(self._tasks)

    def task(self, j: int) -> TaskView:
        """The view of task j, counted from 0; IndexError beyond."""
        task = self._tasks[j] if self._tasks or j else Task()
        levels = (Level("Task", task, True, False, True, self._policy, self._levels[0].shared), *self._task_levels)
        return TaskView(task, levels, self._waits)

    def tasks(self) -> Iterator[TaskView]:
        """The views of all tasks."""
        return map(self.task, range(len(self)))


class Effective(View[Job]):
    """What holds for a job with the JobDefaults beside it; ``effective`` makes one."""

    def __init__(self, job: Job, defaults: JobDefaults | None = None, policy: str = "Reject",
                 shared: Shared | None = None) -> None:
        self.job, self.defaults, self.policy = job, defaults, policy
        here: Shared = {}       # several slots and several places look at the same container
        self._job = Level("Job", job, True, False, True, policy, here)
        self._far = tuple([Level("JobDefaults", d, True, True, True, policy, here if shared is None else shared)
                           for d in (defaults,) if d is not None])
        super().__init__(job, (self._job, *self._far), waits(job.value("State")))
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

    @property
    def divided(self) -> bool:
        """Whether anything is said of task groups or tasks, by explicit ones or in defaults of theirs; else the
        implicit ones say nothing of their own."""
        return bool(self._task_groups or self._group_defaults or self._far_group_defaults)

    def task_group(self, i: int) -> TaskGroupView:
        """The view of task group i, counted from 0; IndexError beyond."""
        group = self._task_groups[i] if self._task_groups or i else TaskGroup()
        outer = _inner_policy(self._groups_level if self._task_groups else self._job)
        path = "JobDefaults/TaskGroup" if self._task_groups and self._groups_level is not self._job else "TaskGroup"
        own = Level(path, group, True, False, True, outer, self._job.shared)
        job = self._job._replace(amounts=False, own=False)
        top = tuple([level._replace(amounts=False, own=False) for level in self._far])
        levels = (own, *self._group_defaults, job, *self._far_group_defaults, *top)
        return TaskGroupView(group, levels, lambda: self._beyond_task(levels), self._tasks_of(group),
                             _inner_policy(own), self._waits)

    def _beyond_task(self, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        """The levels beyond a task. levels: those of its task group."""
        count = 2 + len(self._group_defaults)
        near = [t for level in levels[:count - 1] for t in _nested(level, "TaskDefaults")]
        far = [t for level in self._far_group_defaults for t in _nested(level, "TaskDefaults")]
        # What a group says of itself (amounts) is not handed down to its tasks.
        above = [level._replace(amounts=False, own=False) for level in levels]
        return (*near, *above[:count], *far, *above[count:])

    def _tasks_of(self, group: TaskGroup) -> tuple[Task, ...]:
        """A group without tasks takes those of TaskGroupDefaults, as a job takes task groups: whole or not at all."""
        for c in (group, *(level.container for level in (*self._group_defaults, *self._far_group_defaults))):
            tasks = tuple(t for t in c.containers("Task") if isinstance(t, Task))
            if tasks:
                return tasks
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
        job = _folded(Job, self.job, self._levels, ("TaskGroup", "TaskGroupDefaults"), self.policy, self._waits)
        outer = job.attributes.get("awarenessPolicy", self.policy)
        if self._task_groups:
            job.items += [self._fold_group(TaskGroup, g, outer) for g in self._task_groups]
        elif self._group_defaults or self._far_group_defaults:
            job.items.append(self._fold_group(TaskGroupDefaults, TaskGroupDefaults(), outer))
        return job

    def _fold_group(self, cls: type[Any], group: Container, outer: str) -> Container:
        own = Level("TaskGroup", group, True, False, True, _inner_policy(self._groups_level), self._job.shared)
        levels = (own, *self._group_defaults, *self._far_group_defaults)
        folded: Container = _folded(cls, group, levels, ("Task", "TaskDefaults"), outer, self._waits,
                                    (self._job,))
        inner = folded.attributes.get("awarenessPolicy", outer)
        near = tuple(t for level in (own, *self._group_defaults) for t in _nested(level, "TaskDefaults"))
        far = tuple(t for level in self._far_group_defaults for t in _nested(level, "TaskDefaults"))
        shadows = (own, *self._group_defaults, self._job)
        tasks = self._tasks_of(group) if isinstance(group, TaskGroup) else self._tasks_of(TaskGroup())
        for task in tasks:
            first = Level("Task", task, True, False, True, _inner_policy(own), own.shared)
            folded.items.append(_folded(Task, task, (first, *near, *far), (), inner, self._waits, shadows))
        if not tasks and (near or far):
            start = Level("TaskDefaults", TaskDefaults(), True, False, True, inner)
            folded.items.append(_folded(TaskDefaults, start.container, (start, *near, *far), (), inner, self._waits,
                                        shadows))
        return folded


def effective(job: Job, defaults: JobDefaults | None = None, *, policy: str = "Reject",
              shared: Shared | None = None) -> Effective:
    """What holds for a job beside these JobDefaults. policy: the awarenessPolicy around both (of the JobGroup).

    shared: an empty dict that is given for all jobs beside the same JobDefaults, so that these are read once; they must
    not change between.
    """
    return Effective(job, defaults, policy, shared)


def _inner_policy(level: Level) -> str:
    return level.container.attributes.get("awarenessPolicy", level.policy)


def _defaults(level: Level, tag: str) -> tuple[Level, ...]:
    """The Defaults of one kind inside a level, as levels; several rank in document order."""
    path = tag if level.path == "Job" else f"{level.path}/{tag}"
    return _inside(level, tag, path)


def _nested(level: Level, tag: str) -> tuple[Level, ...]:
    path = tag if level.path == "TaskGroup" else f"{level.path}/{tag}"
    return _inside(level, tag, path)


def _inside(level: Level, tag: str, path: str) -> tuple[Level, ...]:
    return tuple([Level(path, c, True, True, True, _inner_policy(level), level.shared)
                  for c in level.container.items if c.tag == tag and isinstance(c, Container)])


# --- folding ------------------------------------------------------------------------------------------------------

def _folded(cls: type[_C], own: Container, levels: tuple[Level, ...], left_out: tuple[str, ...], outer: str,
            waits: bool, shadows: tuple[Level, ...] = ()) -> _C:
    """A copy of a container with what its defaults add. left_out: child containers that the caller sees to."""
    policy = own.attributes.get("awarenessPolicy", outer)
    items: list[Item] = [i for i in own.items if i.tag not in left_out and i.tag not in _CHILDREN]
    items += _inherited(levels, "bare", policy, waits, shadows)
    for tag in _CHILDREN:
        child = _folded_child(tag, own, levels, policy, waits, shadows)
        if child is not None:
            items.append(child)
    return cls(items, dict(own.attributes) or None, own.reference, own.line, own.spelling)


def _folded_child(tag: Any, own: Container, levels: tuple[Level, ...], policy: str, waits: bool,
                  shadows: tuple[Level, ...]) -> Container | None:
    mine = [i for i in own.items if i.tag == tag and isinstance(i, Container)]
    if not mine and len(levels) == 1:
        return None
    attributes = dict(mine[0].attributes) if mine else {}
    items: list[Item] = [i for c in mine for i in c.items]
    inherited = _inherited(levels, tag, attributes.get("awarenessPolicy", policy), waits, shadows)
    if tag == "Environment":
        export = _export(levels, shadows)
        attributes |= {} if export is None else {"export": export}
        items = [*inherited, *items]
    else:
        items = [*bracketed(items), *inherited] if inherited else items
    if not mine and not items and not attributes:
        return None
    return CLASSES[tag](items, attributes or None, None, mine[0].line if mine else 0)


def _export(levels: tuple[Level, ...], shadows: tuple[Level, ...]) -> str | None:
    near = sum(not level.path.startswith("JobDefaults") for level in levels)
    for order, level in enumerate((*levels[:near], *shadows, *levels[near:])):
        for child in level.container.items:
            if child.tag == "Environment" and isinstance(child, Container) and "export" in child.attributes:
                inherited = near <= order < near + len(shadows)
                return None if inherited else child.attributes["export"]
    return None


def _inherited(levels: tuple[Level, ...], slot: Slot, policy: str, waits: bool,
               shadows: tuple[Level, ...]) -> list[Property]:
    """What the levels after the first add, with the policy it had there; for Environment the farthest first."""
    if not any(read_units(level, slot) for level in levels[1:]):
        return []
    runs: list[list[Property]] = []
    for level, unit in further(levels[1:], slot, Seen(levels[0], slot, waits), shadows):
        properties = [_with_policy(p, policy_in(child, level.container, level.policy), policy) for p, child in unit]
        runs.append(bracketed(properties) if slot == "Requested" else properties)
    if slot == "Environment":
        runs.reverse()
    return [p for run in runs for p in run]


def _with_policy(p: Property, there: str, here: str) -> Property:
    if there == here or "awarenessPolicy" in p.attributes:
        return p
    return p.replace(awarenessPolicy=there)


def distinct(scope: _C) -> _C:
    """The container itself where each property in it is an object of its own, else a copy of which that is true.

    A document that is read may hold one object for two properties that say the same; who tells properties from each
    other by identity has to ask for this first.
    """
    properties = list(scope.leaves())
    return scope if len(set(map(id, properties))) == len(properties) else _with_copies(scope, set())


def _with_copies(scope: _C, seen: set[int]) -> _C:
    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Container):
            items.append(_with_copies(item, seen))
        else:
            items.append(copy(item) if id(item) in seen else item)
            seen.add(id(item))
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line, scope.spelling)
