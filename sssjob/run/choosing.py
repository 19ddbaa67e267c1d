"""The one queue that a document asks for where it was chosen among several."""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import accumulate, takewhile
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
    if queue is not None:
        _say_once(scope, queue)


def _say_once(scope: Container, queue: str) -> None:
    """Say the queue once where it stands in place of several alternatives, which no manager could be given: of a
    block or a bracket with nothing else in it, and of conditions that all hold."""
    first = scope.items[0] if scope.items and scope.tag == "Requested" else None
    if isinstance(first, Property) and all(_is_chosen(item, queue) for item in scope.items):
        scope.items[:] = [first.replace(group=None, conj=None)]
    place = 0
    while place < len(scope.items):
        run = list(takewhile(lambda item: _is_chosen(item, queue), scope.items[place:]))
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


def _is_chosen(item: object, queue: str) -> bool:
    return isinstance(item, Property) and _allows(item) and item.text == queue and re.fullmatch(
        r"[+-]?\d{1,3}", item.attributes.get("group", "0")) is not None


def _allows(p: Property) -> bool:
    return p.tag == "Queue" and p.attributes.get("op", "EQ") in ("EQ", "Match") and p.attributes.get(
        "conj") not in _NEGATED


def _names(scope: Container, queue: str) -> bool:
    """Whether a job asks for the queue, at any level."""
    return any(_names(item, queue) if isinstance(item, Container) else isinstance(item, Property)
               and _allows(item) and item.text == queue for item in scope.items if item.tag != "Delivered")
