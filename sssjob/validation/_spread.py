"""Whether anything may be odd about how tasks are spread: the quick look that most documents need no more than.

What is odd then is worked out by ``_contradictions``. Source: SSS job object 3.1.0, section 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.lexical import LexicalError
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.usage import whole
from sssjob.request.extensions import counts_chunks
from sssjob.request.geometry import distribution_of, spread
from sssjob.request.layout import Layout

#: What is said of tasks and how they are spread, and what it stands in.
_SPREAD: Final = frozenset(("NodeCount", "Processors", "TaskCount", "TaskDistribution"))
_INNER: Final = frozenset(("Requested", "TaskGroup", "Task", "TaskDefaults", "TaskGroupDefaults"))
_TASKS: Final = ("Task", "TaskDefaults")
#: Attributes that say where in an expression a count stands.
_CHOICE: Final = frozenset(("conj", "group", "preference"))
#: What says nothing of tasks, or of one task alone.
_APART: Final = ({"NodeCount", "Processors"}, {"NodeCount", "Task"}, {"Processors", "Task"})


def spread_over(scopes: Iterable[Container], limits: Limits = LIMITS) -> bool:
    """Whether scopes say enough of tasks and how they are spread that something may not fit. The least and the greatest
    that each count can be are held against each other, without a look at what each level asks for: where nothing is odd
    about these, nothing is odd about any choice between them."""
    stated: dict[str, list[Property]] = {}
    chunks: list[int] = []
    groups = listed = 0
    stack = [(scope, False) for scope in scopes]
    while stack:
        scope, of_task = stack.pop()
        for item in scope.items:
            tag = item.tag
            if tag in _SPREAD and isinstance(item, Property):
                stated.setdefault("Task" if of_task else tag, []).append(item)
            elif tag == "Extension" and isinstance(item, Property) and counts_chunks(item):
                chunks.append(whole(item.text) or 0)
            elif tag in _INNER and isinstance(item, Container):
                groups += tag == "TaskGroup"
                listed += tag == "Task"
                stack.append((item, of_task or tag in _TASKS))
    if chunks and (len(chunks) > 1 or chunks[0] > limits.count):
        return True
    if not stated or (not chunks and not listed and "TaskDistribution" not in stated and (
            len(stated) < 2 or stated.keys() in _APART)):
        return False
    distributions = stated.pop("TaskDistribution", [])
    if groups > 1 or len(distributions) > 1 or (listed > 1 and "Task" in stated):
        return True
    least = dict.fromkeys(["ChunkCount"], chunks[0]) if chunks and chunks[0] else {}
    most = dict(least)
    for tag, properties in stated.items():
        for p in properties:
            count = _count(p)
            if not count:
                return True
            least[tag] = min(count, least.get(tag, count))
            most[tag] = max(count, most.get(tag, count))
    if listed:
        least.setdefault("TaskCount", listed)
        most.setdefault("TaskCount", listed)
    distribution = distributions[0] if distributions else None
    return _odd(least, most, distribution, limits) or (
        least != most and (_odd(most, least, distribution, limits) or _odd(most, most, distribution, limits)))


def _count(p: Property) -> int:
    """The count of at least one that a property asks for as it is, alone or beside alternatives; 0: it does not."""
    value, attributes = p.value, p.attributes
    if type(value) is not int or value < 0 or (attributes and not (
            attributes.keys() <= _CHOICE and attributes.get("conj", "And") in ("And", "Or"))):
        return 0
    return value


def _odd(places: Mapping[str, int], tasks: Mapping[str, int], distribution: Property | None, limits: Limits) -> bool:
    """Whether something does not fit where there are so many nodes and processors, and so many tasks of so many
    processors."""
    layout = Layout(nodes=places.get("NodeCount"), tasks=tasks.get("TaskCount"), cpus=tasks.get("Task"))
    why: str | None = layout.take_chunks(places.get("ChunkCount"))
    try:
        if distribution is not None:
            why = why or spread(layout, distribution)
    except LexicalError:
        return True
    layout.processors = places.get("Processors")
    if distribution is not None:
        why = why or layout.doubt(distribution_of(distribution)[0])
    return bool(why or layout.crowded or layout.sparse) or max(
        layout.processor_total or 0, layout.node_total or 0) > limits.count
