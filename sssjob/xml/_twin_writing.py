"""Writes the JSON twin; its shape stands in ``sssjob.xml.twin``, where this is public."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from json.encoder import encode_basestring
from typing import Any, Final

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.model import Document, File
from sssjob.document.vocabulary import ATTRIBUTES, CONTAINERS, HOMELESS, aliases, in_scope

#: Containers that may be the root of a document.
ROOTS: Final = ("JobGroup", "Job", "TaskGroup", "Requested", "Delivered")
#: The key of elements of another vocabulary.
RAW: Final = "#raw"
#: The key of the names that are not those of 3.1.0.
SPELLING: Final = "#spelling"
#: Container around a name, and the name -> how it is spelt there.
_Kinds = dict[tuple[str, str], set[str | None]]
#: What JSON takes for a number and writes in the same way.
CANONICAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


class Number(str):
    """The digits of a JSON number, exactly."""

    __slots__ = ()


def repeating(container: str) -> frozenset[str]:
    """Names that may stand more than once in a container, written as lists; Requested and Delivered count as single
    here, because a list under their name is the ordered form."""
    rows = CONTAINERS[container]
    names = {e.name for e in in_scope(container).values() if e.repeats}
    names |= {child for child, _, most in rows.children if most is None and not CONTAINERS[child].category}
    return frozenset(names)


def to_json(document: Document, *, indent: int | None = 2) -> str:
    """The JSON text of a document; indent None: on one line."""
    root = document.root
    top: dict[str, Any] = {RAW: _raw(root)} if isinstance(root, Raw) else {root.tag: _container(root)}
    if document.files:
        top["File"] = [_file(f) for f in document.files.values()]
    spelling = _spelling(root)
    if spelling:
        top[SPELLING] = spelling
    return "".join(dump(top, indent, 0)) + "\n"


def _file(file: File) -> dict[str, str]:
    member = {"id": file.id, "text": file.text}
    return member | {"encoded": file.encoded} if file.encoded is not None else member


def _spelling(root: Container | Raw) -> dict[str, str]:
    """Names in a document that are not those of 3.1.0; see above."""
    kinds: _Kinds = {}
    _collect(root, "", kinds)
    spelling, mixed = _spelt(kinds)
    for outer, item, pointer in _places(root, "", "") if mixed else ():
        if (outer, item.tag) in mixed and item.spelling is not None and means(outer, item.tag, item.spelling):
            spelling[pointer] = item.spelling
    return spelling


def _spelt(kinds: _Kinds) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """The names that are always spelt in one other way, and those that are spelt in several."""
    spelling, mixed = {}, set()
    for (outer, tag), spellings in kinds.items():
        names = {s for s in spellings if s is not None and means(outer, tag, s)}
        if names and len(spellings) == 1:
            spelling[f"{outer}/{tag}"] = names.pop()
        elif names:
            mixed.add((outer, tag))
    return spelling, mixed


def _collect(node: Item, outer: str, kinds: _Kinds) -> None:
    """The spellings of every name in every container."""
    if not isinstance(node, Raw):
        kinds.setdefault((outer, node.tag), set()).add(node.spelling)
    for item in node.items if isinstance(node, Container) else node.children if isinstance(node, Raw) else ():
        if not isinstance(item, str):
            _collect(item, node.tag if isinstance(node, Container) else "", kinds)


def _places(node: Item, outer: str, pointer: str) -> Iterator[tuple[str, Property | Container, str]]:
    """Everything at and below an item with the container around it and its pointer, as ``_container`` lays it out."""
    here = f"{pointer}/{_key(node)}" if not outer else pointer
    if isinstance(node, Raw):
        for at, child in enumerate(node.children):
            if isinstance(child, Container):
                yield from _places(child, "", f"{here}/children/{at}")
            elif isinstance(child, Raw):
                yield from _places(child, RAW, f"{here}/children/{at}")
        return
    yield outer, node, here
    if not isinstance(node, Container):
        return
    ordered, many = node.tag == "Requested" or not _keeps_order(node), repeating(node.tag) | {RAW}
    seen: Counter[str] = Counter()
    for at, item in enumerate(node.items, len(node.attributes) + (node.reference is not None)):
        key = _key(item)
        place = f"{at}/{key}" if ordered else f"{key}/{seen[key]}" if key in many else key
        seen[key] += 1
        yield from _places(item, node.tag, f"{here}/{place}")


def means(outer: str, tag: str, spelling: str) -> bool:
    """Whether a name means another one in a container, so that it is read as that."""
    if spelling.lower() == tag.lower() or not outer:
        return spelling.lower() == tag.lower()
    if tag == "Extension" and spelling in HOMELESS:
        return True
    names = aliases(outer)
    return names.get(spelling) == tag or tag in {n for a, n in names.items() if a.lower() == spelling.lower()}


def _raw(raw: Raw) -> dict[str, Any]:
    members: dict[str, Any] = {"tag": raw.tag}
    if raw.attributes:
        members["attributes"] = raw.attributes
    if raw.text:
        members["text"] = raw.text
    if raw.children:
        members["children"] = [_child(c) for c in raw.children]
    return members


def _child(child: Raw | Container | str) -> Any:
    if isinstance(child, str):
        return child
    return _raw(child) if isinstance(child, Raw) else {child.tag: _container(child)}


def _container(c: Container) -> Any:
    if c.reference is not None and not c.items and not c.attributes:
        return c.reference
    attributes: dict[str, Any] = {f"@{name}": _attribute(name, text) for name, text in c.attributes.items()}
    if c.reference is not None:
        attributes["#text"] = c.reference
    if c.tag == "Requested" or not _keeps_order(c):
        return [{k: v} for k, v in attributes.items()] + [{_key(i): _item(i)} for i in c.items]
    many = repeating(c.tag)
    for item in c.items:
        key = _key(item)
        if key in many or key == RAW:
            attributes.setdefault(key, []).append(_item(item))
        else:
            attributes[key] = _item(item)
    return attributes


def _keeps_order(c: Container) -> bool:
    """Whether an object can hold the items: equal names together, and more than one only where a list may stand."""
    runs: list[tuple[str, int]] = []
    for item in c.items:
        add_run(runs, _key(item))
    return _fits_object(c.tag, runs)


def add_run(runs: list[tuple[str, int]], key: str) -> None:
    """Count a further key among keys that stand together."""
    if runs and runs[-1][0] == key:
        runs[-1] = key, runs[-1][1] + 1
    else:
        runs.append((key, 1))


def _fits_object(container: str, runs: Sequence[tuple[str, int]]) -> bool:
    if len({key for key, _ in runs}) < len(runs):
        return False
    if all(count == 1 for _, count in runs):
        return True
    many = repeating(container) | {RAW}
    return all(key in many for key, count in runs if count > 1)


def group_pieces(group: Container, runs: Sequence[tuple[str, int]], sections: Callable[[], Iterable[Container]],
                 indent: int | None) -> Iterator[str]:
    """The pieces of ``to_json`` of a JobGroup that comes in sections.

    group: what stands in it beside the jobs; runs: the keys of its items, those that stand together with their number;
    sections: gives its items anew each time. LookupError where a name is spelt in several ways, which takes the whole.
    """
    kinds: _Kinds = {}

    def items(key: str | None) -> Iterator[Any]:
        """The values of one key, or all items as objects with their key."""
        for section in sections():
            _collect(section, "", kinds)
            yield from (_item(i) if key else {_key(i): _item(i)} for i in section.items if key in (None, _key(i)))

    attributes: dict[str, Any] = {f"@{name}": _attribute(name, text) for name, text in group.attributes.items()}

    def members() -> Iterator[tuple[str, Any]]:
        """The members of the outermost object, each with the text that stands before its value."""
        whole: Any = attributes
        if not _fits_object(group.tag, runs):
            whole = chain([{k: v} for k, v in attributes.items()], items(None))
        else:
            for key, _ in runs:
                own = [_item(i) for i in group.items if _key(i) == key]
                attributes[key] = items(key) if key == "Job" else own if key in many else own[0]
        yield f"{encode_basestring(group.tag)}: ", whole
        spelling, mixed = _spelt(kinds)
        if mixed:
            raise LookupError("a name is spelt in several ways")
        if spelling:
            yield f"{encode_basestring(SPELLING)}: ", spelling

    many = repeating(group.tag) | {RAW}
    yield from _enclosed("{", "}", members(), indent, 0)
    yield "\n"


def _key(item: Item) -> str:
    return RAW if isinstance(item, Raw) else item.tag


def _item(item: Item) -> Any:
    if isinstance(item, Raw):
        return _raw(item)
    if isinstance(item, Container):
        return _container(item)
    value = item.value if isinstance(item.value, (str, bool)) else Number(item.text)
    if isinstance(value, Number) and not CANONICAL.fullmatch(value):
        value = str(value)              # a value made by hand that JSON has no number for
    if not item.attributes:
        return value
    members = {"value": value}
    for name, text in item.attributes.items():
        members["@value" if name == "value" else name] = _attribute(name, text)
    return members


def _attribute(name: str, text: str) -> str | bool:
    row = ATTRIBUTES.get(name)
    if row is None or row.type == "String":
        return text
    if row.type == "Boolean":
        return {"true": True, "false": False}.get(text, text)
    return Number(text) if CANONICAL.fullmatch(text) else text


def dump(value: Any, indent: int | None, level: int) -> Iterator[str]:
    """The pieces of the JSON text of dicts, lists, text, booleans and ``Number``."""
    if isinstance(value, Number):
        yield str(value)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str):
        yield encode_basestring(value)
    elif isinstance(value, dict):
        members = ((f"{encode_basestring(k)}: ", v) for k, v in value.items())
        yield from _enclosed("{", "}", members, indent, level)
    else:
        yield from _enclosed("[", "]", (("", v) for v in value), indent, level)


def _enclosed(first: str, last: str, members: Iterable[tuple[str, Any]], indent: int | None,
              level: int) -> Iterator[str]:
    separator = ", " if indent is None else ",\n" + " " * (indent * (level + 1))
    start, some = separator.lstrip(", ") if indent is None else separator[1:], False
    yield first
    for key, value in members:
        yield (separator if some else start) + key
        yield from dump(value, indent, level + 1)
        some = True
    if some and indent is not None:
        yield "\n" + " " * (indent * level)
    yield last
