"""The job object: one class a container of the specification, with typed access to its properties, and ``Document``.

``job.user`` is a value, ``job.memory`` a property with attributes (``.value``, ``.units`` ...), ``job.dependency`` a
tuple; ``job.requested`` and ``job.delivered`` hold the other two slots of a property that has categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sssjob import accessors
from sssjob.element import Container, Item, Property, Raw, Value, new_property

if TYPE_CHECKING:
    from sssjob.findings import Findings
    from sssjob.places import Places

__all__ = [
    "CLASSES", "Container", "Delivered", "Document", "Environment", "File", "Item", "Job", "JobDefaults", "JobGroup",
    "Property", "Raw", "Requested", "Task", "TaskDefaults", "TaskGroup", "TaskGroupDefaults", "Value", "new_property",
]


class Requested(accessors.RequestedAccessors):
    """Properties as they were requested: a boolean expression in document order (section 8.1)."""

    __slots__ = ()
    tag = "Requested"


class Delivered(accessors.DeliveredAccessors):
    """Properties as they were used (section 8.2)."""

    __slots__ = ()
    tag = "Delivered"


class Environment(accessors.EnvironmentAccessors):
    """Environment variables."""

    __slots__ = ()
    tag = "Environment"

    @property
    def export(self) -> bool | None:
        """Whether the submitter's variables go along; None where it is not stated."""
        text = self.attributes.get("export")
        return None if text is None else text == "true"

    def variables(self) -> dict[str, str]:
        """Name -> value; the last one of a name counts."""
        return {p.attributes.get("name", ""): p.text for p in self.properties() if p.tag == "Variable"}


class _Scope(Container):
    """What Job, TaskGroup, Task and their Defaults have in common: the category slots."""

    __slots__ = ()

    def _child(self, tag: str) -> Container | None:
        found = [i for i in self.items if i.tag == tag and isinstance(i, Container)]
        if len(found) < 2:
            return found[0] if found else None
        return CLASSES[tag]([item for c in found for item in c.items], found[0].attributes, None, found[0].line)

    @property
    def requested(self) -> Requested | None:
        """The Requested block; several are read as one."""
        return self._child("Requested")  # type: ignore[return-value]

    @property
    def delivered(self) -> Delivered | None:
        """The Delivered block; several are read as one."""
        return self._child("Delivered")  # type: ignore[return-value]

    @property
    def environment(self) -> Environment | None:
        """The Environment block."""
        return self._child("Environment")  # type: ignore[return-value]

    def ensure(self, tag: str) -> Container:
        """The child container of that name, made where it is absent."""
        for child in self.containers(tag):
            return child
        made = CLASSES[tag]()
        self.items.append(made)
        return made


class _Tasks(_Scope):
    __slots__ = ()

    @property
    def tasks(self) -> list[Task]:
        """The explicit tasks, in order."""
        return list(self.containers("Task"))  # type: ignore[arg-type]

    @property
    def defaults(self) -> TaskDefaults | None:
        """The TaskDefaults of this group."""
        return self._child("TaskDefaults")  # type: ignore[return-value]


class _TaskGroups(_Scope):
    __slots__ = ()

    @property
    def task_groups(self) -> list[TaskGroup]:
        """The explicit task groups, in order; none means one implicit group."""
        return [i for i in self.items if i.tag == "TaskGroup" and isinstance(i, TaskGroup)]

    @property
    def defaults(self) -> TaskGroupDefaults | None:
        """The TaskGroupDefaults of this job."""
        return self._child("TaskGroupDefaults")  # type: ignore[return-value]


class Task(_Scope, accessors.TaskAccessors):
    """One execution endpoint (section 7.0)."""

    __slots__ = ()
    tag = "Task"


class TaskDefaults(_Scope, accessors.TaskAccessors):
    """Defaults of the tasks of one group."""

    __slots__ = ()
    tag = "TaskDefaults"


class TaskGroup(_Tasks, accessors.TaskGroupAccessors):
    """Tasks and what they have in common (section 6.0)."""

    __slots__ = ()
    tag = "TaskGroup"


class TaskGroupDefaults(_Tasks, accessors.TaskGroupAccessors):
    """Defaults of the task groups of one job."""

    __slots__ = ()
    tag = "TaskGroupDefaults"


class Job(_TaskGroups, accessors.JobAccessors):
    """One schedulable job (section 5.0)."""

    __slots__ = ()
    tag = "Job"


class JobDefaults(_TaskGroups, accessors.JobAccessors):
    """Defaults of the jobs of one group."""

    __slots__ = ()
    tag = "JobDefaults"


class JobGroup(accessors.JobGroupAccessors):
    """Jobs that depend on one another (section 4.0)."""

    __slots__ = ()
    tag = "JobGroup"

    @property
    def jobs(self) -> list[Job]:
        """The jobs, in document order; references among them have ``reference`` set."""
        return list(self.containers("Job"))  # type: ignore[arg-type]

    @property
    def defaults(self) -> JobDefaults | None:
        """The JobDefaults; several are read as one, in order."""
        found = list(self.containers("JobDefaults"))
        if len(found) < 2:
            return found[0] if found else None  # type: ignore[return-value]
        return JobDefaults([item for c in found for item in c.items], found[0].attributes, None, found[0].line)


CLASSES: dict[str, type[Container]] = {
    c.tag: c for c in (JobGroup, Job, JobDefaults, TaskGroup, TaskGroupDefaults, Task, TaskDefaults, Requested,
                       Delivered, Environment)
}


@dataclass(slots=True)
class File:
    """A File that comes with the jobs (SSSRMAP): ``#id`` in Executable names it. encoded: ``base64`` or None."""

    id: str
    text: str
    encoded: str | None = None

    def content(self) -> bytes:
        """The bytes; ValueError when base64 is broken."""
        if self.encoded == "base64":
            import base64

            return base64.b64decode(self.text, validate=False)
        return self.text.encode("utf-8")


@dataclass(slots=True)
class Document:
    """A whole document: its root, the Files beside it, and what was found while reading.

    root: a JobGroup, Job, TaskGroup, Requested or Delivered, or the Raw envelope (SSSRMAP Request, Response, Envelope,
    UsageRecord ...) around the ``bodies``. places: where in the text its items stand, where it was read from XML.
    """

    root: Container | Raw
    files: dict[str, File] = field(default_factory=dict)
    path: str = "-"
    profile: str = "3.1"
    findings: Findings | None = field(default=None, compare=False)
    places: Places | None = field(default=None, compare=False, repr=False, kw_only=True)

    def bodies(self) -> Iterator[Container]:
        """The outermost containers: the root itself, or those inside the envelope."""
        stack: list[Any] = [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, Container):
                yield node
            elif isinstance(node, Raw):
                stack.extend(reversed(node.children))

    def groups(self) -> Iterator[JobGroup]:
        """The job groups of the document."""
        return (b for b in self.bodies() if isinstance(b, JobGroup))

    def jobs(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """Every job that is defined here (no references), with the JobDefaults it stands beside."""
        for body in self.bodies():
            if isinstance(body, Job):
                if body.reference is None:
                    yield body, None
            elif isinstance(body, JobGroup):
                defaults = body.defaults
                for job in body.jobs:
                    if job.reference is None:
                        yield job, defaults
