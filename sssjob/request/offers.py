"""What is offered: the properties of a machine, or those that a job was given.

Public through ``sssjob.request``. Source: SSS job object 3.1.0, section 10.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Self

from sssjob.document.arrays import label_of
from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document
from sssjob.document.nodeset import NodeSet
from sssjob.document.states import job_state
from sssjob.document.vocabulary import in_scope
from sssjob.errors import UsageError
from sssjob.limits import LIMITS
from sssjob.request.tree import NAMED, names_of, number_of

#: Name of the Extension that says how many processors a node of an offer has, where the totals do not.
NODE_PROCESSORS: Final = "NodeProcessors"
#: Name of the Extension that says after how many seconds a new job is expected to start.
ESTIMATED_WAIT: Final = "EstimatedWait"
#: Tags of properties of which an offer may say in an Extension, with commas between them, which names it takes: one of
#: them is asked for, and only one could stand in the Job itself.
ALLOWED: Final = {"AllowedProject": "Project", "AllowedQualityOfService": "QualityOfService"}


@dataclass(frozen=True, slots=True)
class Offer:
    """What is there, or what was used: properties by name, several of a name allowed (several Node, Feature).

    used: names whose values are amounts realised (Delivered), not capacities. task_groups: what belongs to single
    task groups of the job it was made of.
    """

    properties: dict[str, tuple[Property, ...]]
    used: frozenset[str] = frozenset()
    task_groups: tuple[Offer, ...] = ()
    _names: list[tuple[tuple[str | NodeSet, int], ...]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, source: Document | Container | Iterable[Property]) -> Self:
        """The offer in a document, a container, or properties: Delivered, else bare, name by name (section 10.4).

        Raises UsageError for a document or group that does not hold exactly one job."""
        if isinstance(source, Document):
            return cls.of(only_one([b for b in source.bodies() if b.reference is None], "objects"))
        if not isinstance(source, Container):
            return cls(_by_tag(source))
        if source.tag == "JobGroup":
            jobs = [j for j in source.containers("Job") if j.reference is None]
            return cls.of(only_one(jobs, "jobs"))
        if source.tag in ("Delivered", "Requested"):
            by_tag = _by_tag(source.properties())
            return cls(by_tag, frozenset(by_tag) if source.tag == "Delivered" else frozenset())
        return cls._of_scope(source)

    @classmethod
    def _of_scope(cls, scope: Container) -> Self:
        delivered = _by_tag(p for c in scope.containers("Delivered") for p in c.properties())
        done = job_state(scope.value("State")).state == "Completed"
        allowed = in_scope("Delivered")
        bare = _by_tag(p for p in _with_names(scope.properties()) if p.tag in allowed and p.tag not in delivered)
        nodes = () if "Node" in delivered or "Node" in bare else tuple(
            p for task in _tasks(scope) for p in task.all("Node"))
        both = {**bare, **delivered, **({"Node": nodes} if nodes else {})}
        groups = tuple(cls._of_scope(g) for g in scope.containers("TaskGroup"))
        return cls(both, frozenset(both if done else delivered), groups)

    def all(self, tag: str, name: str | None = None, type: str | None = None) -> tuple[Property, ...]:
        """The properties offered under a name; of Resource and Extension those of the name and type asked for."""
        properties = self.properties.get(tag, ())
        if tag not in NAMED:
            return properties
        return tuple(p for p in properties if p.get("name") == name and type in (None, p.get("type")))

    def names(self, tag: str) -> tuple[tuple[str | NodeSet, int], ...]:
        """Names, or sets of them, of the nodes or features offered, each with its count."""
        return tuple((name, count_of(p)) for p in self.properties.get(tag, ()) for name in _offered_names(p))

    def total(self, what: str) -> Decimal | None:
        """How many nodes, processors, GPUs or chunks are offered, or processors on each node (NODE_PROCESSORS), or
        after how many seconds a job is expected to start (ESTIMATED_WAIT); None where the offer does not say so."""
        if what == "nodes":
            stated = _first_number(self.properties.get("NodeCount", ()))
            if stated is not None or "Node" not in self.properties:
                return stated
            return Decimal(self._node_count())
        if what == "processors":
            return self._processors()
        if what in ("chunks", NODE_PROCESSORS, ESTIMATED_WAIT):
            return _first_number(self.all("Extension", "ChunkCount" if what == "chunks" else what))
        return _first_number([p for p in self.properties.get("Resource", ())
                              if str(p.get("name")).lower() in ("gpu", "gpus")])

    def _processors(self) -> Decimal | None:
        """Those of all nodes, where the nodes are known that each have what is stated."""
        stated = self.properties.get("Processors", ())
        number = _first_number(stated)
        if number is None or stated[0].get("metric") != "PerNode":
            return number
        nodes = self.total("nodes")
        return None if nodes is None else number * nodes

    def _node_count(self) -> int:
        names = [n for n, _ in self.names("Node")]
        single = {n for n in names if isinstance(n, str)}
        sets = [n for n in names if isinstance(n, NodeSet)]
        if not sets:
            return len(single)
        merged = sets[0]
        for more in sets[1:]:
            merged = merged | more
        return merged.count + sum(1 for n in single if n not in merged)


def _with_names(properties: Iterable[Property]) -> Iterator[Property]:
    """Properties with those whose names stand in an Extension (``ALLOWED``)."""
    for p in properties:
        yield p
        if p.tag == "Extension" and p.attributes.get("type") == "Scheduler" and (
                tag := ALLOWED.get(p.attributes.get("name", ""))):
            yield from (new_property(tag, name.strip()) for name in p.text.split(",") if name.strip())


def _by_tag(properties: Iterable[Property]) -> dict[str, tuple[Property, ...]]:
    by_tag: dict[str, list[Property]] = {}
    for p in properties:
        by_tag.setdefault(p.tag, []).append(p)
    return {tag: tuple(items) for tag, items in by_tag.items()}


def offered_by(document: Document) -> Iterator[tuple[str, Document | Container]]:
    """The offers of a document, with what each is called: every job of its own, defaults folded in, and whatever else
    holds properties by itself; of a document with one offer that document, without a name."""
    bodies: list[tuple[str, Container]] = [
        (label_of(job, number), job if defaults is None else effective(job, defaults).fold())
        for number, (job, defaults) in enumerate(document.jobs())]
    others = [b for b in document.bodies() if b.tag not in ("Job", "JobGroup") and b.reference is None]
    bodies += [(f"{body.tag} {number}", body) for number, body in enumerate(others, 1)]
    yield from bodies if len(bodies) > 1 else [("", document)]


def only_one(containers: list[Container], what: str) -> Container:
    """The one container of a list; UsageError where there is none or more. what: for the message."""
    if len(containers) != 1:
        raise UsageError(f"an offer is made of one job; there are {len(containers)} {what} here")
    return containers[0]


def _tasks(scope: Container) -> Iterator[Container]:
    yield from scope.containers("Task")
    for group in scope.containers("TaskGroup"):
        yield from group.containers("Task")


def count_of(p: Property) -> int:
    """How many of a name: its attribute count, 1 where there is none or no number."""
    text = p.get("count") or "1"
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LIMITS.digits else 1


def _first_number(properties: Iterable[Property]) -> Decimal | None:
    for p in properties:
        if (number := number_of(p.value)) is not None:
            return number
    return None


def _offered_names(p: Property) -> tuple[str | NodeSet, ...]:
    try:
        names = names_of(p) if p.get("aggregation") != "Pattern" else (p.text,)
    except LexicalError:
        return (p.text,)            # such a name is itself; ``check`` tells of it (SSS407)
    if isinstance(names, NodeSet):
        return (names,)
    return names if isinstance(names, tuple) else (p.text,)
