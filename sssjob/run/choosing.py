"""The one queue, and the one machine, that a document asks for where they were chosen among several."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from itertools import accumulate, takewhile
from typing import Final

from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document

__all__ = ["placed"]

_NEGATED: Final = ("Nand", "Nor")
#: Attributes of a condition that a name which was chosen has no more.
_ALLOWING: Final = {"Queue": ("EQ", "Match"), "Machine": ("EQ", "Match", "NE")}
_CHOICE: Final = ("op", "preference", "aggregation", "performanceFactor")


def placed(document: Document, queue: str | None, machine: str | None = None) -> Document:
    """A copy of a document that asks for one queue: in place of each that its conditions allow, and where a job names
    none. Queues that it excludes stay so. Whatever it says of its Machine is said by the name of the chosen one. A
    performanceFactor is left out: who chose the place has weighed it. queue, machine: None where they have no name."""
    copied = deepcopy(document)
    for body in copied.bodies():
        _choose(body, {tag: name for tag, name in (("Queue", queue), ("Machine", machine)) if name is not None})
    if queue is not None:
        for job, defaults in copied.jobs():
            if not _names(effective(job, defaults).fold(), queue):
                job.items.append(new_property("Queue", queue))
    return copied


def _choose(scope: Container, names: Mapping[str, str]) -> None:
    for place, item in enumerate(scope.items):
        if isinstance(item, Container):
            if item.tag != "Delivered":
                _choose(item, names)
        elif isinstance(item, Property) and item.tag in names and _allows(item, item.tag):
            scope.items[place] = item.replace(names[item.tag], **dict.fromkeys(_CHOICE))
        elif isinstance(item, Property) and "performanceFactor" in item.attributes:
            scope.items[place] = item.replace(performanceFactor=None)
    for tag, name in names.items():
        _say_once(scope, tag, name)


def _say_once(scope: Container, tag: str, name: str) -> None:
    """Say what was chosen once where it stands in place of several alternatives, which no manager could be given: of a
    block or a bracket with nothing else in it, and of conditions that all hold."""
    first = scope.items[0] if scope.items and scope.tag == "Requested" else None
    if isinstance(first, Property) and all(_is_chosen(item, tag, name) for item in scope.items):
        scope.items[:] = [first.replace(group=None, conj=None)]
    place = 0
    while place < len(scope.items):
        run = list(takewhile(lambda item: _is_chosen(item, tag, name), scope.items[place:]))
        depths = list(accumulate(int(item.attributes.get("group", "0")) for item in run if isinstance(item, Property)))
        bracket = next((number for number, depth in enumerate(depths, 1) if depth == 0), 0)
        head = run[0] if run else None
        if isinstance(head, Property) and bracket > 1:
            scope.items[place:place + bracket] = [head.replace(group=None)]
            continue            # it may be one of several itself
        if len(run) > 1 and depths[:2] == [0, 0] and run[1].attributes.get("conj", "And") == "And":
            del scope.items[place + 1]
            continue
        place += 1


def _is_chosen(item: object, tag: str, name: str) -> bool:
    return isinstance(item, Property) and _allows(item, tag) and item.text == name and re.fullmatch(
        r"[+-]?\d{1,3}", item.attributes.get("group", "0")) is not None


def _allows(p: Property, tag: str) -> bool:
    """Whether a condition allows names of a property; one that excludes a machine holds at the one that was chosen."""
    return p.tag == tag and p.attributes.get("op", "EQ") in _ALLOWING[tag] and p.attributes.get("conj") not in _NEGATED


def _names(scope: Container, queue: str) -> bool:
    """Whether a job asks for the queue, at any level."""
    return any(_names(item, queue) if isinstance(item, Container) else isinstance(item, Property)
               and _allows(item, "Queue") and item.text == queue for item in scope.items if item.tag != "Delivered")
