"""Documents that go to one of several sites."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document

__all__ = ["placed"]

_NEGATED: Final = ("Nand", "Nor")
#: Attributes of a condition that a name which was chosen has no more.
_CHOICE: Final = ("op", "preference", "aggregation", "performanceFactor")


def placed(document: Document, queue: str | None) -> Document:
    """A copy of a document that asks for one queue: in place of each that its conditions allow, and where a job names
    none. Queues that it excludes stay so. A performanceFactor is left out: who chose the place has weighed it. queue:
    None where the offer names none."""
    copied = deepcopy(document)
    for body in copied.bodies():
        _choose(body, queue)
    if queue is not None:
        for job, defaults in copied.jobs():
            if not _names(effective(job, defaults).fold(), queue):
                job.items.append(new_property("Queue", queue))
    return copied


def _choose(scope: Container, queue: str | None) -> None:
    for place, item in enumerate(scope.items):
        if isinstance(item, Container):
            if item.tag != "Delivered":
                _choose(item, queue)
        elif isinstance(item, Property) and queue is not None and _allows(item):
            scope.items[place] = item.replace(queue, **dict.fromkeys(_CHOICE))
        elif isinstance(item, Property) and "performanceFactor" in item.attributes:
            scope.items[place] = item.replace(performanceFactor=None)


def _allows(p: Property) -> bool:
    return p.tag == "Queue" and p.attributes.get("op", "EQ") in ("EQ", "Match") and p.attributes.get(
        "conj") not in _NEGATED


def _names(scope: Container, queue: str) -> bool:
    """Whether a job asks for the queue, at any level."""
    return any(_names(item, queue) if isinstance(item, Container) else isinstance(item, Property)
               and _allows(item) and item.text == queue for item in scope.items if item.tag != "Delivered")
