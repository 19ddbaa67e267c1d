"""The functions of queries that know what an amount is: ``sss:bytes()``, ``sss:seconds()`` and ``sss:nodes()``.

Each takes nodes or texts and gives a number for each, NaN where there is none. An amount is taken as it stands: what it
is said of (``metric``, ``op``, the level it stands at) changes nothing. Units, times and ranges of nodes are read as
the reader of documents reads them. Source: SSS job object 3.1.0, sections 1, 6.1, 7 and 11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import nan
from typing import Any, Final

from lxml import etree

from sssjob.document.lexical import LexicalError, liberal_datetime, liberal_duration, liberal_float, liberal_integer
from sssjob.document.units import to_bytes
from sssjob.document.vocabulary import CONTAINERS, ELEMENTS, Element

#: The prefix that needs no declaration, and the namespace that it stands for where the document declares no other.
PREFIX: Final = "sss"
URI: Final = "urn:sssjob:functions"
_AMOUNT: Final = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]+)\s*")
_SLOTS: Final = ("Requested", "Delivered")
#: What makes a node one of several that would do, or one that is not wanted.
_OPEN: Final = frozenset({"Or", "Nor", "Nand"})


@cache
def _rows() -> Mapping[str, Element]:
    """Spelling -> row of the vocabulary; a name of 3.1.0 stands for itself."""
    by_alias = {alias: row for row in reversed(ELEMENTS) for alias in row.aliases}
    return by_alias | {row.name: row for row in reversed(ELEMENTS)}


@cache
def _containers() -> frozenset[str]:
    """Spellings of the containers that can state a number of nodes."""
    rows = [row for name, row in CONTAINERS.items() if name not in ("JobGroup", "Environment")]
    return frozenset(name for row in rows for name in (row.name, *row.aliases))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; empty for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _text(element: Any) -> str:
    return (element.text or "").strip()


def _bytes(item: Any) -> float:
    """Bytes of an element with a unit (its own, else the default one of its property) or of a text such as 2 GB."""
    if isinstance(item, str):
        amount = _AMOUNT.fullmatch(item)
        text, unit = amount.groups() if amount else ("", "")
    else:
        row = _rows().get(local_name(item))
        text, unit = _text(item), item.get("units") or (row.unit if row is not None else None) or ""
    return float(to_bytes(liberal_float(text)[0], unit)) if unit else nan


def _seconds(item: Any) -> float:
    """Seconds of a duration, or since 1970 of a time; a text is either."""
    if not isinstance(item, str):
        row = _rows().get(local_name(item))
        kind = "" if row is None else row.type
        if kind == "DateTime":
            return float(liberal_datetime(_text(item))[0])
        return float(liberal_duration(_text(item))[0]) if kind == "Duration" else nan
    try:
        return float(liberal_duration(item)[0])
    except LexicalError:
        return float(liberal_datetime(item)[0])


def _nodes(item: Any) -> float:
    """Nodes that a Node names, the value of a NodeCount, or what a container of such states."""
    if isinstance(item, str):
        return float(_ranged(item)) if item.strip() else nan
    name = local_name(item)
    row = _rows().get(name)
    if row is not None and row.name == "NodeCount":
        return float(liberal_integer(_text(item))[0])
    if row is not None and row.name == "Node":
        return _named(item)
    return _stated(item) if name in _containers() else nan


def _ranged(text: str) -> int:
    from sssjob.document.nodeset import NodeSet  # most queries name no nodes

    return NodeSet.parse_range(text).count


def _named(node: Any) -> float:
    """How many nodes a Node element stands for, each as often as its count says; a Pattern names none."""
    text, kind = _text(node), node.get("aggregation")
    if not text or kind == "Pattern" or node.get("op") in ("Match", "NE"):
        return nan
    count = 1
    if kind == "Range":
        count = _ranged(text)
    elif kind == "List":
        count = len({name for part in text.split(node.get("delimiter") or ",") if (name := part.strip())})
    return float(count * liberal_integer(node.get("count") or "1")[0])


def _stated(container: Any) -> float:
    """The number of nodes of a container: its one NodeCount, else the nodes that it names; what stands bare comes
    before Requested, that before Delivered. NaN where alternatives leave it open."""
    for name_wanted, count in (("NodeCount", _nodes), ("Node", _named)):
        for scope in (container, *(c for slot in _SLOTS for c in container if local_name(c) == slot)):
            stated = [e for e in scope if (row := _rows().get(local_name(e))) is not None and row.name == name_wanted]
            if stated:
                unclear = any(e.get("conj") in _OPEN or e.get("preference") for e in stated)
                return nan if unclear or (name_wanted == "NodeCount" and len(stated) > 1) else sum(map(count, stated))
    return nan


#: Name -> the number of one element (of lxml) or text; LexicalError where it has none.
FUNCTIONS: Final[Mapping[str, Callable[[Any], float]]] = {"bytes": _bytes, "seconds": _seconds, "nodes": _nodes}


def _number(function: Callable[[Any], float], item: Any) -> float:
    try:
        return function(item)
    except (LexicalError, OverflowError):
        return nan


def prefixed(namespaces: Mapping[str, str]) -> dict[str, str]:
    """Namespaces of a document with the prefix of these functions."""
    return {PREFIX: URI, **namespaces}


# --- XPath 1.0: lxml ----------------------------------------------------------------------------------------------

def _of_lxml(item: Any) -> Any:
    """The element that a node stands for: a text stands for the element it is the text of."""
    return item.getparent() if getattr(item, "is_text", False) else item


def extensions(namespaces: Mapping[str, str]) -> dict[tuple[str | None, str], Callable[..., float]]:
    """The functions as lxml takes them; of several nodes the first counts, as in number()."""
    def entry(name: str, function: Callable[[Any], float]) -> Callable[..., float]:
        """The entry of one function in the table that lxml takes."""
        def evaluate(_context: Any, *arguments: Any) -> float:
            """The number for the first item of the argument; no number for none."""
            if len(arguments) != 1:
                raise etree.XPathEvalError(f"{PREFIX}:{name}() takes one argument, not {len(arguments)}")
            argument = arguments[0]
            if isinstance(argument, list):
                return _number(function, _of_lxml(argument[0])) if argument else nan
            return _number(function, argument) if isinstance(argument, str) else nan

        return evaluate

    return {(namespaces[PREFIX], name): entry(name, function) for name, function in FUNCTIONS.items()}


# --- XPath 3.1: elementpath ---------------------------------------------------------------------------------------

def _of_elementpath(item: Any) -> Any:
    """The element or text that an item of a sequence stands for."""
    kind = type(item).__name__
    if "Text" in kind and "Attribute" not in kind and getattr(item, "parent", None) is not None:
        item = item.parent
    for member in ("value", "elem", "obj"):
        value = getattr(item, member, None)
        if isinstance(value, str) or hasattr(value, "tag"):
            return value
    return item


def register(parser: Any) -> None:
    """Give a parser of elementpath, whose namespaces know the prefix, the functions: a number for every item."""
    def each(function: Callable[[Any], float]) -> Callable[[Any], list[float]]:
        """A function of one item as the function of a sequence."""
        def evaluate(items: Any) -> list[float]:
            """The number of each item."""
            plain = map(_of_elementpath, items if isinstance(items, list) else [items])
            return [_number(function, item) if isinstance(item, str) or hasattr(item, "tag") else nan for item in plain]

        return evaluate

    for name, function in FUNCTIONS.items():
        parser.external_function(each(function), name=name, prefix=PREFIX, sequence_types=("item()*", "xs:double*"))
