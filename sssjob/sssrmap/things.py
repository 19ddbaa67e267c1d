"""What a query is asked about: kinds of objects with their properties, and objects of a kind.

An object of a document is a tree, on which names and paths are evaluated. A row of the journal or the ledger has
*cells*, name -> text, which answer without a tree; where a query asks for more, the tree is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, Protocol

from lxml import etree

from sssjob.document.vocabulary import CONTAINERS, ELEMENTS

__all__ = ["DOCUMENT_KINDS", "JOB_CLASS", "Kind", "Source", "Thing", "Type", "document_kind"]

Type = Literal["text", "number", "time", "duration", "truth", "bytes"]

#: The property that no object states: ``active`` where a job has not ended, else ``completed``.
JOB_CLASS: Final = "JobClass"
#: Kinds of objects that documents are made of.
DOCUMENT_KINDS: Final = ("Job", "JobGroup", "TaskGroup", "Task")

_TYPES: Final[dict[str, Type]] = {"Integer": "number", "Float": "number", "Boolean": "truth", "DateTime": "time",
                                  "Duration": "duration"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects. properties: name -> type; aliases: other name -> name; more: properties that are there only
    where they are asked for."""

    name: str
    properties: Mapping[str, Type]
    aliases: Mapping[str, str] = field(default_factory=dict)
    more: frozenset[str] = frozenset()

    def property_of(self, name: str) -> str | None:
        """The name of a property by any of its names; None where there is none of that name."""
        if name == JOB_CLASS and self.name == "Job":
            return name
        return name if name in self.properties else self.aliases.get(name)


@cache
def document_kind(name: str, *more: str) -> Kind:
    """The kind of an object of documents: all elements and containers of the vocabulary, for a property may stand
    anywhere below. more: properties beside these, as texts."""
    properties: dict[str, Type] = dict.fromkeys(more, "text")
    aliases: dict[str, str] = {}
    for row in ELEMENTS:
        is_amount = row.unit is not None and row.type in ("Integer", "Float")
        properties.setdefault(row.name, "bytes" if is_amount else _TYPES.get(row.type, "text"))
    for container in CONTAINERS.values():
        properties.setdefault(container.name, "text")
    for true_name, others in [*((row.name, row.aliases) for row in ELEMENTS),
                              *((container.name, container.aliases) for container in CONTAINERS.values())]:
        for alias in others:
            aliases.setdefault(alias, true_name)
    return Kind(name, properties, aliases, frozenset(more))


class Thing:
    """An object. kind: the name of its element; cells: texts by name, of properties that need no tree (None: the object
    has none); parts: the objects that a join puts together, as far as they are there."""

    __slots__ = ("_element", "_tree", "cells", "kind", "parts")

    def __init__(self, kind: str, cells: Mapping[str, str | None] | None = None,
                 tree: Callable[[], Any] | None = None, parts: tuple[Any, ...] = ()) -> None:
        self.kind, self.parts = kind, parts
        self.cells: Mapping[str, str | None] = {} if cells is None else cells
        self._tree = tree
        self._element: Any = None

    @property
    def element(self) -> Any:
        """The object as a tree (of lxml), made when it is first asked for; of a row its cells."""
        if self._element is None:
            if self._tree is not None:
                self._element = self._tree()
            else:
                self._element = etree.Element(self.kind)
                for name, text in self.cells.items():
                    if text is not None:
                        etree.SubElement(self._element, name).text = text
        return self._element

    @property
    def has_tree(self) -> bool:
        """Whether there is more to it than its cells."""
        return self._tree is not None


class Source(Protocol):
    """Where objects are: documents, the journal, the ledger."""

    def kinds(self) -> tuple[str, ...]:
        """The names of the kinds of objects that are here."""

    def kind(self, name: str) -> Kind:
        """One of them."""

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All objects of a kind."""
