"""Task geometry: which numbered tasks run together on each node, ``{1,4}{2}{3,5}``.

Numbers are kept as given: the specification does not state the base (its example is 1-based, LoadLeveler's
task_geometry 0-based). Source: SSS job object 3.1.0, section 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sssjob.document.element import Property
from sssjob.document.lexical import XML_SPACE, LexicalError, LimitError
from sssjob.limits import LIMITS, Limits

if TYPE_CHECKING:
    from sssjob.request.layout import Layout

__all__ = ["Geometry", "distribution_of", "spread"]

_FORM = "a geometry, as {1,4}{2}{3,5}"


@dataclass(frozen=True, slots=True)
class Geometry:
    """nodes: for each node, in order, the numbers of its tasks in the order given."""

    nodes: tuple[tuple[int, ...], ...]

    @classmethod
    def parse(cls, text: str, limits: Limits = LIMITS) -> Geometry:
        """The geometry in a text; white space around braces and numbers is tolerated.

        Raises LexicalError naming the position when malformed (a range, an empty group, a number given twice),
        LimitError for more nodes than ``nodes`` or a longer number than ``digits``. Time is linear in the text.
        """
        nodes: list[tuple[int, ...]] = []
        seen: set[int] = set()
        position, end = _after_space(text, 0), len(text)
        while position < end:
            close = text.find("}", position)
            if text[position] != "{" or close < 0:
                what = "'{' expected" if text[position] != "{" else "'{' never closed"
                raise LexicalError(text, _FORM, f"{what} at character {position + 1}")
            nodes.append(_group(text, position + 1, close, seen, limits))
            if len(nodes) > limits.nodes:
                raise LimitError(text, f"at most {limits.nodes} nodes", "nodes")
            position = _after_space(text, close + 1)
        if not nodes:
            raise LexicalError(text, _FORM, "empty")
        return cls(tuple(nodes))

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Numbers left out, as (first, last) of each run, ascending; empty when the numbers run on from 0 or 1."""
        numbers = sorted(number for node in self.nodes for number in node)
        start = numbers[0] - 1 if numbers and numbers[0] <= 1 else 0
        return tuple((low + 1, high - 1) for low, high in pairwise([start, *numbers]) if high > low + 1)

    def __str__(self) -> str:
        return "".join(f"{{{','.join(map(str, node))}}}" for node in self.nodes)


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in XML_SPACE:
        position += 1
    return position


def _group(text: str, start: int, end: int, seen: set[int], limits: Limits) -> tuple[int, ...]:
    """The numbers between two braces; adds them to ``seen``."""
    numbers = []
    for item in text[start:end].split(","):
        word = item.strip(XML_SPACE)
        if not (word.isdigit() and word.isascii()):
            raise LexicalError(text, _FORM, f"a task number expected at character {start + 1}")
        if len(word) > limits.digits:
            raise LimitError(text, f"numbers of at most {limits.digits} digits", "digits")
        number = int(word)
        if number in seen:
            raise LexicalError(text, _FORM, f"task {number} given twice, at character {start + 1}")
        seen.add(number)
        numbers.append(number)
        start += len(item) + 1
    return tuple(numbers)


def distribution_of(p: Property) -> tuple[str, str]:
    """Kind and text of a TaskDistribution; without a type digits are TasksPerNode and braces a Geometry (6.4)."""
    text = p.text.strip()
    kind = p.get("type")
    if kind is None:
        kind = "TasksPerNode" if text.isascii() and text.isdigit() else "Geometry" if text.startswith("{") else "Rule"
    return kind, text


def spread(layout: Layout, p: Property) -> str | None:
    """Take what a TaskDistribution says in numbers into a layout (section 6.4): why it cannot hold beside the counts
    that are stated, which win over it, else an empty text; None for a rule, which says no numbers.

    Raises LexicalError for a geometry that is malformed.
    """
    kind, text = distribution_of(p)
    if kind == "Geometry":
        geometry = tuple(map(len, Geometry.parse(text).nodes))
        why = layout.misfit(geometry=geometry)
        layout.geometry = () if why else geometry
        return why
    if kind not in ("TasksPerNode", "ProcessorsPerTask") or not (
            text.isascii() and text.isdigit() and len(text) <= LIMITS.digits):
        return None
    number = int(text)
    if not number:
        return f"{kind} is 0"
    if kind == "ProcessorsPerTask":
        layout.cpus = layout.cpus or number
        return ""
    layout.widen(number)
    why = layout.misfit(per_node=number)
    layout.per_node = None if why else number
    return why
