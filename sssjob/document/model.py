"""The job object: one class a container of the specification, with typed access to its properties, and ``Document``.

``job.user`` is a value, ``job.memory`` a property with attributes (``.value``, ``.units`` ...), ``job.dependency`` a
tuple; ``job.requested`` and ``job.delivered`` hold the other two slots of a property that has categories. Every
container is made with what is in it, by Python names: ``Job(id="1", requested={"processors": 8})``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from sssjob.document import accessors
from sssjob.document._views import Block, DefaultsOf, Listed
from sssjob.document.element import Container, Item, Property, Raw, Value, new_property
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.findings import Findings, Locator, Policy

__all__ = [
    "CLASSES", "Container", "Delivered", "Document", "Environment", "File", "Item", "Job", "JobDefaults", "JobGroup",
    "Property", "Raw", "Requested", "Task", "TaskDefaults", "TaskGroup", "TaskGroupDefaults", "Value",
    "bodies_of", "new_property",
]


class _Absentable(Container):
    """A block that is false where it says nothing, as ``job.requested`` of a job that requests nothing does."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self.items or self.attributes or self.reference is not None)

    @classmethod
    def of(cls, members: object) -> Self:
        """A block of a mapping, Python name -> value (None: not said)."""
        if not isinstance(members, Mapping):
            raise UsageError(f"{cls.tag} is set to a {cls.tag} or a mapping, not to a {type(members).__name__}")
        return cls(**{k: v for k, v in members.items() if v is not None})


class Requested(_Absentable, accessors.RequestedAccessors):
    """Properties as they were requested: a boolean expression in document order (section 8.1)."""

    __slots__ = ()
    tag = "Requested"


class Delivered(_Absentable, accessors.DeliveredAccessors):
    """Properties as they were used (section 8.2)."""

    __slots__ = ()
    tag = "Delivered"


class Environment(_Absentable, accessors.EnvironmentAccessors):
    """Environment variables: ``job.environment["PATH"] = "/bin"``."""

    __slots__ = ()
    tag = "Environment"

    @classmethod
    def of(cls, members: object) -> Self:
        """An Environment of a mapping, name -> value."""
        if not isinstance(members, Mapping):
            raise UsageError(f"Environment is set to an Environment or a mapping, not to a {type(members).__name__}")
        environment = cls()
        for name, value in members.items():
            environment[name] = value
        return environment

    def __getitem__(self, name: str) -> str:
        return self.variables()[name]

    def __setitem__(self, name: str, value: str) -> None:
        variable = type(self)().add("Variable", value, name=name)
        kept = [i for i in self.items if not _is_variable(i, name)]
        place = next((n for n, i in enumerate(self.items) if _is_variable(i, name)), len(self.items))
        self._take([*kept[:place], variable, *kept[place:]])

    def __delitem__(self, name: str) -> None:
        if name not in self.variables():
            raise KeyError(name)
        self._take([i for i in self.items if not _is_variable(i, name)])

    def __contains__(self, name: object) -> bool:
        return name in self.variables()

    @property
    def export(self) -> bool | None:
        """Whether the submitter's variables go along; None where it is not stated."""
        text = self.attributes.get("export")
        return None if text is None else text == "true"

    def variables(self) -> dict[str, str]:
        """Name -> value; the last one of a name counts."""
        return {p.attributes.get("name", ""): p.text for p in self.properties() if p.tag == "Variable"}


def _is_variable(item: Item, name: str) -> bool:
    return item.tag == "Variable" and isinstance(item, Property) and item.attributes.get("name") == name


class _Scope(Container):
    """What Job, TaskGroup, Task and their Defaults have in common: the category slots."""

    __slots__ = ()

    requested = Block[Requested](lambda: Requested)
    delivered = Block[Delivered](lambda: Delivered)
    environment = Block[Environment](lambda: Environment)

    def ensure(self, tag: str) -> Container:
        """The child container of that name, made where it is absent."""
        for child in self.containers(tag):
            return child
        container = CLASSES[tag]()
        self.items.append(container)
        return container


class Task(_Scope, accessors.TaskAccessors):
    """One execution endpoint (section 7.0)."""

    __slots__ = ()
    tag = "Task"


class TaskDefaults(_Scope, accessors.TaskAccessors):
    """Defaults of the tasks of one group."""

    __slots__ = ()
    tag = "TaskDefaults"


class _Tasks(_Scope):
    __slots__ = ()

    tasks = Listed(Task, "The explicit tasks, in order. A live list.")
    defaults = DefaultsOf(TaskDefaults)


class TaskGroup(_Tasks, accessors.TaskGroupAccessors):
    """Tasks and what they have in common (section 6.0)."""

    __slots__ = ()
    tag = "TaskGroup"


class TaskGroupDefaults(_Tasks, accessors.TaskGroupAccessors):
    """Defaults of the task groups of one job."""

    __slots__ = ()
    tag = "TaskGroupDefaults"


class _TaskGroups(_Scope):
    __slots__ = ()

    task_groups = Listed(
        TaskGroup, "The explicit task groups, in order; none means one implicit group. A live list.")
    defaults = DefaultsOf(TaskGroupDefaults)


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

    jobs = Listed(Job, "The jobs, in document order; references among them have ``reference`` set. A live list.")
    defaults = DefaultsOf(JobDefaults)


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

    def as_text(self) -> str:
        """The same as text; bytes that are none of UTF-8 become surrogates."""
        return self.text if self.encoded != "base64" else self.content().decode("utf-8", "surrogateescape")


def bodies_of(root: Container | Raw) -> Iterator[Container]:
    """The outermost containers of a document: its root, or those inside the envelope."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Container):
            yield node
        elif isinstance(node, Raw):
            stack.extend(reversed(node.children))


def jobs_of(bodies: Iterable[Container]) -> Iterator[tuple[Job, JobDefaults | None]]:
    """Every job that is defined in some containers (no references), with the JobDefaults it stands beside."""
    for body in bodies:
        if isinstance(body, Job):
            if body.reference is None:
                yield body, None
        elif isinstance(body, JobGroup):
            defaults = body.defaults
            for job in body.jobs:
                if job.reference is None:
                    yield job, defaults


@dataclass(slots=True)
class Document:
    """A whole document: its root, the Files beside it, and what was found while reading.

    root: a JobGroup, Job, TaskGroup, Requested or Delivered, or the Raw envelope (SSSRMAP Request, Response, Envelope,
    UsageRecord ...) around the ``bodies``. policy: the outermost awarenessPolicy that it was read with, if it was;
    places: where in the text its items stand, where it was read from XML or from a script; facts: it was read from
    records, which nobody is to carry out.
    """

    root: Container | Raw
    files: dict[str, File] = field(default_factory=dict)
    path: str = "-"
    profile: str = "3.1"
    findings: Findings | None = field(default=None, compare=False)
    policy: Policy | None = field(default=None, compare=False, kw_only=True)
    places: Locator | None = field(default=None, compare=False, repr=False, kw_only=True)
    facts: bool = field(default=False, compare=False, repr=False, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The JSON twin of the document in dicts and lists (its shape: ``sssjob.xml.twin``)."""
        from sssjob.xml._twin_dicts import dict_of

        return dict_of(self)

    @classmethod
    def from_dict(cls, twin: Mapping[str, Any]) -> Document:
        """The document of such a dict. Raises RejectedError with what is wrong."""
        from sssjob.xml._twin_dicts import document_of

        return document_of(twin)

    def bodies(self) -> Iterator[Container]:
        """The outermost containers: the root itself, or those inside the envelope."""
        return bodies_of(self.root)

    def groups(self) -> Iterator[JobGroup]:
        """The job groups of the document."""
        return (b for b in self.bodies() if isinstance(b, JobGroup))

    def jobs(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """Every job that is defined here (no references), with the JobDefaults it stands beside."""
        return jobs_of(self.bodies())
