"""The tree beside a document that is read as text, for what takes thought.

Most documents need none of it, so it is parsed when it is asked for, and only its beginning where that is enough.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from lxml import etree

from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.xml._pieces import Text, Thought, head_of
from sssjob.xml.xmlio import checker, parser
from sssjob.xml.xmlio import parse_tree as parse_xml


class InOrder:
    """The children of an element by their number, each asked for after those before it."""

    __slots__ = ("_given", "_left")

    def __init__(self, element: Any) -> None:
        self._left = iter(element)
        self._given = 0

    def __call__(self, number: int) -> Any:
        child = next(islice(self._left, number - self._given, None))
        self._given = number + 1
        return child


def _alone(head: str) -> list[Any]:
    """The children of a document that holds the first children of another; None for one whose path may differ there,
    because its name is there once. Raises Thought."""
    try:
        children = list(etree.fromstring(head, parser()))
    except etree.XMLSyntaxError:
        raise Thought from None
    tags = Counter(child.tag for child in children)
    return [child if tags[child.tag] > 1 else None for child in children]


class AsideTree:
    """The tree of a document that is read as text, for what takes thought: parsed when it is asked for."""

    __slots__ = ("_data", "_first", "_later", "_limits", "_root", "_text")

    def __init__(self, text: Text, data: bytes, limits: Limits) -> None:
        self._text = text
        self._data = data
        self._limits = limits
        self._root: Any = None
        self._first: list[Any] | None = None
        self._later: InOrder | None = None

    def root(self) -> Any:
        """The root element. Raises Thought where the document is not well-formed."""
        if self._root is None:
            try:
                self._root = parse_xml(self._data, findings=Findings(), repairs=False, limits=self._limits)
            except RejectedError:
                raise Thought from None
        return self._root

    def child(self, number: int) -> Any:
        """A child of the root, which is asked for after those before it. Raises Thought.

        One of the first may be in a smaller tree: most findings are reported once, of the first jobs."""
        if self._first is None:
            head = None if self._text.prefixed or self._root is not None else head_of(self._text)
            self._first = _alone(head) if head is not None else []
        if number < len(self._first) and self._first[number] is not None:
            return self._first[number]
        if self._later is None:
            self._later = InOrder(self.root())
        return self._later(number)

    def check(self) -> None:
        """Raise Thought where the document is not well-formed."""
        if self._root is None:
            try:
                etree.fromstring(self._data, checker())
            except etree.XMLSyntaxError:
                raise Thought from None
