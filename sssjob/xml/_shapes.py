"""Texts of elements cut at ``>`` and ``</``, and what follows from their shape: all of it but the texts of leaves.

A program writes its documents in a few shapes. What was made of one document says how others of its shape are read.
That holds because the texts stand between a start tag and an end tag of the shape: in a well-formed document there is
no ``<`` then, and where there is none, and no character that XML cannot hold, the document is as well-formed as the
first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from sssjob.document.element import NO_ATTRIBUTES, Container, Property
from sssjob.xml._pieces import whole
from sssjob.xml._scopes import Scope, Texts
from sssjob.xml.encoding import character_set

_T = TypeVar("_T")

_END: Final = ">\1"         # stands for the start of an end tag, so that a cut there shows: XML cannot hold it
_KEPT: Final = 500          # shapes of documents that are kept
_LONG: Final = 10_000       # characters of a document whose shape is kept


def cut_up(text: str) -> list[str]:
    """The parts of a text; an end tag begins with U+0001."""
    return text.replace("</", _END).split(">")


def joined(parts: list[str]) -> str:
    """The text that was cut."""
    return ">".join(parts).replace(_END, "</")


def leaves_of(parts: list[str]) -> list[int]:
    """Which of the parts stand between a start tag and an end tag, and are not blank."""
    return [at for at in range(1, len(parts) - 1) if parts[at + 1][:1] == _END[1] and "<" in parts[at - 1]
            and parts[at].strip()]


class Plans(Generic[_T]):
    """Shape -> what is known of it. room: how many more are kept."""

    __slots__ = ("_by_fixed", "_by_length", "room")

    def __init__(self, room: int) -> None:
        self.room = room
        self._by_fixed: dict[tuple[int, ...], dict[Any, _T]] = {}
        self._by_length: dict[int, list[tuple[Callable[[list[str]], Any], dict[Any, _T]]]] = {}

    def of(self, parts: list[str]) -> _T | None:
        """What is known of the shape of these parts."""
        for shape, plans in self._by_length.get(len(parts), ()):
            plan = plans.get(shape(parts))
            if plan is not None:
                return plan
        return None

    def keep(self, parts: list[str], varying: set[int], plan: _T) -> None:
        """Remember a plan for all parts that differ in nothing but those that vary."""
        fixed = tuple(at for at in range(len(parts)) if at not in varying)
        shape = itemgetter(*fixed)
        if fixed not in self._by_fixed:
            self._by_fixed[fixed] = {}
            self._by_length.setdefault(len(parts), []).append((shape, self._by_fixed[fixed]))
        self._by_fixed[fixed][shape(parts)] = plan
        self.room -= 1


#: A container that is made: class, what takes its items out of all that was made so far, line, spelling, attributes.
_Step = tuple[type[Container], Callable[[list[Any]], Any], int, str | None, dict[str, str]]


@dataclass(slots=True)
class _Plan:
    """How the documents of a shape are made.

    leaves: what knows a property by its text, and which part that is; steps: the containers, each after those in it;
    verbatim: parts that no property looks at; tags: how many ``<`` there are.
    """

    tags: int
    leaves: list[tuple[dict[Any, Any], int]] = field(default_factory=list)
    steps: list[_Step] = field(default_factory=list)
    verbatim: list[int] = field(default_factory=list)


class Documents:
    """The shapes of small documents without findings, and how such documents are made."""

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: Plans[_Plan] = Plans(_KEPT)

    def read(self, text: str) -> Container | None:
        """The root of a document of a known shape; None for others, and where a text takes thought."""
        if "&" in text or "\1" in text:
            return None
        parts = cut_up(text)
        plan = self._plans.of(parts)
        if plan is None or text.count("<") != plan.tags:
            return None
        for at in plan.verbatim:
            if not parts[at].isprintable():
                return None
        leaves: list[Any] = [texts[parts[at]] for texts, at in plan.leaves]
        if not all(leaves):
            return None
        for make, items, line, spelling, attributes in plan.steps:
            container = make(list(items(leaves)), None, None, line, spelling)
            if attributes:
                container.attributes = dict(attributes)
            leaves.append(container)
        root: Container = leaves[-1]
        return root

    def learn(self, text: str, data: bytes, root: Container, scopes: dict[str, Scope]) -> None:
        """Remember the shape of a document that was read without a finding."""
        if not self._plans.room or len(text) > _LONG or "&" in text or "\1" in text or "<!" in text or (
                text.rfind("<?") > 0 or (text.startswith("<?") and character_set(data) != "utf-8")):
            return
        parts = cut_up(text)
        ends = leaves_of(parts)
        if not all(whole(part.rpartition("<")[2]) for part in parts if "<" in part):
            return              # an attribute holds ``>``
        learner = _Learner(text.count("<"), parts, ends, scopes)
        if learner.container(root) is not None and not learner.ends:
            self._plans.keep(parts, {at for _, at in learner.plan.leaves if at}, learner.plan)


class _Learner:
    """Finds out how a document was made. ends: the leaves that are still to come, last first."""

    def __init__(self, tags: int, parts: list[str], ends: list[int], scopes: dict[str, Scope]) -> None:
        self.plan = _Plan(tags)
        self.parts = parts
        self.scopes = scopes
        self.ends = ends[::-1]
        self._leaves = len(self.ends)

    def container(self, container: Container) -> int | None:
        """The number under which a container is made, after all that is in it; None where that is not known."""
        scope = self.scopes.get(container.tag)
        if scope is None or container.reference is not None:
            return None
        numbers = []
        for item in container.items:
            number = self.container(item) if isinstance(item, Container) else (
                self.leaf(item, scope) if isinstance(item, Property) else None)
            if number is None:
                return None
            numbers.append(number)
        first, last = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
        in_a_row = numbers == list(range(first, last))
        items: Any = itemgetter(slice(first, last)) if in_a_row else itemgetter(*numbers)
        self.plan.steps.append((type(container), items, container.line, container.spelling, dict(container.attributes)))
        return self._leaves + len(self.plan.steps) - 1

    def leaf(self, prop: Property, scope: Scope) -> int | None:
        """The number of a property: one that is told by its text, or always the same."""
        if not self.ends or prop.tag not in scope.rows:
            return None
        at = self.ends.pop()
        name = self.parts[at - 1].rpartition("<")[2].split(None, 1)[0]
        if name.rpartition(":")[2] != (prop.spelling or prop.tag):
            return None
        row = scope.rows[prop.tag][0]
        plain = prop.attributes is NO_ATTRIBUTES and prop.spelling is None
        texts = scope.texts.get(prop.tag) if plain else None
        if texts is None:
            texts = Texts(row, prop.attributes, prop.spelling)
        if texts[self.parts[at]] == prop:
            self.plan.leaves.append((texts, at))
            if row.verbatim:
                self.plan.verbatim.append(at)
        else:
            self.plan.leaves.append(({self.parts[0]: prop}, 0))
        return len(self.plan.leaves) - 1
