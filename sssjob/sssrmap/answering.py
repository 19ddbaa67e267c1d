"""A Query answered: conditions select objects, Get selects of each what is asked for, Options order and limit them.

Each object of the answer has the asked properties in the order of the Gets (old clients go by the position), each
inside its ancestors below the object; without Get it is whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from lxml import etree

from sssjob.findings import escape
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap._carried import form_of
from sssjob.sssrmap.conditions import Test, condition
from sssjob.sssrmap.joining import joined, tables
from sssjob.sssrmap.model import ACTIONS, GET_OPS, Count, Data, Get, MessageError, Request, Response, Status, Where
from sssjob.sssrmap.properties import Property, Selected, Typed, rank
from sssjob.sssrmap.things import Kind, Source, Thing
from sssjob.xml.writer import escaped

__all__ = ["Answer", "answer", "answers"]

_AGGREGATES: Final = ("Count", "Sum", "Average", "Max", "Min")
_ORDERS: Final = ("Sort", "Tros")


class Answer:
    """What a query selects. objects: the objects of the answer, each as XML, made as they are asked for. most_bytes:
    characters of all of them together, None for as many as there are."""

    def __init__(self, request: Request, source: Source, *, now: int, profile: str = "3.1", limits: Limits = LIMITS,
                 most_bytes: int | None = None) -> None:
        refusal = request.refusal()
        if refusal is not None:
            raise MessageError(refusal.code or "999", refusal.message or "")
        if request.action not in ACTIONS:
            raise MessageError("740", f"{escape(request.action or '', 40)} is not a valid action")
        if request.action != "Query":
            raise MessageError("313", f"{escape(request.action or '', 40)} is not supported here, Query is")
        self.request, self.source = request, source
        self.tables = tables(request.objects, source)
        self.name = "_".join(table.kind.name for table in self.tables)
        self.columns: list[_Column] = []
        self._now, self._limits, self._positional = now, limits, profile == "gold"
        self._end, self._most_bytes = time.monotonic() + limits.query_seconds, most_bytes
        self.test = self._condition(request.all(Where))
        self.columns = [_Column(get, self._property(get.name, get.object)) for get in request.all(Get)]
        self._check_columns()

    def _condition(self, wheres: Sequence[Where]) -> Test:
        return condition(wheres, self._property, limits=self._limits, like=self._positional)

    def _property(self, name: str, of: str | None) -> Property:
        """A property of the object that is called so; of none: of the only one that has it."""
        named = [table for table in self.tables if of is None or of in (table.label, table.kind.name)]
        if len(named) > 1:
            named = [table for table in named if of == table.label or (of is None and table.kind.property_of(name))]
        if not named:
            raise MessageError("318", f"{escape(name, 80)} is not a valid attribute for the objects {self.name}"
                               if of is None else f"the request names no object {escape(of, 60)}")
        if len(named) > 1:
            raise MessageError("318", f"{escape(name, 80)} is a property of {' and '.join(t.label for t in named)}: "
                                      "object has to say of which")
        return Property(name, named[0].kind, now=self._now, limits=self._limits, check=self._check_time,
                        place=named[0].place if len(self.tables) > 1 else None)

    def _check_columns(self) -> None:
        aggregates = [c for c in self.columns if c.op in _AGGREGATES]
        if (aggregates or any(c.op == "GroupBy" for c in self.columns)) and any(
                c.op not in (*_AGGREGATES, "GroupBy") for c in self.columns):
            raise MessageError("318", f"beside {', '.join(_AGGREGATES)} each Get has one of them, or GroupBy")

    def objects(self) -> Iterator[str]:
        """The objects of the answer as XML. Raises MessageError."""
        found_objects: Iterator[Thing] = filter(self.test, self._in_time(self._candidates()))
        if len(self.tables) > 1:
            found_objects = self._in_number(found_objects)
        if any(c.op in _AGGREGATES or c.op == "GroupBy" for c in self.columns):
            objects: Iterable[str] = self._grouped(found_objects)
        else:
            objects = map(self._object, self._sorted(found_objects))
        if (self.request.option("Unique") or "").lower() == "true":
            objects = dict.fromkeys(objects)
        first, most = self._whole("Offset") or 0, self._whole("Limit")
        return self._in_size(islice(objects, first, None if most is None else first + most))

    def _candidates(self) -> Iterator[Thing]:
        """All objects of the kind that is asked for, or combinations of several kinds."""
        if len(self.tables) == 1:
            return self.source.things(self.tables[0].kind)
        return joined(self.tables, self.source, self.request.all(Where), self._property, self._condition,
                      self._check_time)

    def _check_time(self) -> None:
        if time.monotonic() > self._end:
            raise MessageError("700", f"the query takes longer than the limit query_seconds "
                                      f"({self._limits.query_seconds:g})")

    def _in_time(self, found_objects: Iterable[Thing]) -> Iterator[Thing]:
        """The objects, until the time of a query is over."""
        self._end = time.monotonic() + self._limits.query_seconds
        for object_ in found_objects:
            self._check_time()
            yield object_

    def _in_number(self, found_objects: Iterator[Thing]) -> Iterator[Thing]:
        """Combinations of objects, as long as they are not too many."""
        most = self._limits.combinations
        for number, object_ in enumerate(found_objects):
            if number >= most:
                raise MessageError("700", f"more combinations are selected than the limit combinations ({most})")
            yield object_

    def _in_size(self, objects: Iterable[str]) -> Iterator[str]:
        """The objects of the answer, as long as they are not too many."""
        size = 0
        for text in objects:
            size += len(text)
            if self._most_bytes is not None and size > self._most_bytes:
                raise MessageError("700", f"the answer is longer than the limit answer_bytes ({self._most_bytes}); "
                                          "Get, Limit and Offset ask for less")
            yield text

    def _whole(self, option: str) -> int | None:
        text = self.request.option(option)
        if text is None or (text.isascii() and text.isdecimal() and len(text) < 19):
            return None if text is None else int(text)
        raise MessageError("317", f"Invalid {option} value: ({escape(text, 40)})")

    def _sorted(self, found_objects: Iterator[Thing]) -> Iterable[Thing]:
        orders = [c for c in self.columns if c.op in _ORDERS]
        if not orders:
            return found_objects
        listed = list(found_objects)
        for column in reversed(orders):
            listed.sort(key=column.order, reverse=column.op == "Tros")
        return listed

    def _object(self, object_: Thing) -> str:
        """An object with what is asked of it."""
        parts = object_.parts or (object_,)
        if not self.columns:
            if len(parts) == 1:
                return self._whole_of(object_, self.tables[0].kind)
            wholes = [self._whole_of(part, table.kind) for part, table in zip(parts, self.tables, strict=True)]
            inner = "".join(whole[whole.index(">") + 1:whole.rindex("<")] for whole in wholes)
            return f"<{self.name}>{inner}</{self.name}>"
        if all(column.property.in_cells(object_) for column in self.columns):
            inner = "".join(column.cell(object_, self._positional) for column in self.columns)
            return f"<{self.name}>{inner}</{self.name}>"
        answered = etree.Element(self.name)
        places_of = [{part.element: answered} for part in parts]
        whole_of: list[set[Any]] = [set() for _ in parts]
        for column in self.columns:
            selected, place = column.property.of(object_), column.property.place or 0
            for value in selected:
                column.put(value, parts[place].element, places_of[place], whole_of[place])
            if not selected and self._positional:
                etree.SubElement(answered, column.title)
        return form_of(answered)

    def _whole_of(self, object_: Thing, kind: Kind) -> str:
        """All of an object; of a row without a tree, where positions count, all of its properties, empty ones too, and
        those that are hidden with the Option ShowHidden."""
        if object_.has_tree or not self._positional:
            return form_of(object_.element)
        hidden = (self.request.option("ShowHidden") or "").lower() == "true"
        names = [name for name in kind.properties if hidden or name not in kind.more]
        inner = "".join(_leaf(name, object_.cells.get(name) or "") for name in names)
        return f"<{kind.name}>{inner}</{kind.name}>"

    def _grouped(self, found_objects: Iterator[Thing]) -> Iterator[str]:
        """One object for each group, with its keys and what its values come to; without GroupBy one for all."""
        keys = [c for c in self.columns if c.op == "GroupBy"]
        groups: dict[tuple[tuple[str, ...], ...], list[Thing]] = {} if keys else {(): []}
        for object_ in found_objects:
            key = tuple(tuple(c.property.text(s) for s in c.property.of(object_)) for c in keys)
            groups.setdefault(key, []).append(object_)
        for key, members in groups.items():
            texts = dict(zip(map(id, keys), (",".join(texts) for texts in key), strict=True))
            inner = "".join(_leaf(c.title, texts[id(c)] if c.op == "GroupBy" else c.aggregate(members))
                            for c in self.columns)
            yield f"<{self.name}>{inner}</{self.name}>"


class _Column:
    """A Get: a property, under the name that the answer gives it."""

    def __init__(self, get: Get, property_: Property) -> None:
        if get.op is not None and get.op not in GET_OPS:
            raise MessageError("318", f"op {escape(get.op, 40)!r} is not known (known: {', '.join(GET_OPS)})")
        self.get, self.property, self.op = get, property_, get.op
        last = get.name.rpartition("/")[2].partition("[")[0].lstrip("@.")
        self.title = get.alias or (last if last.replace("-", "_").replace(".", "_").isidentifier() else "Value")
        #: The name of the cell that answers as it is.
        self._plain = property_.name if get.units is None and property_.plain else None
        if get.units is not None:
            property_.check_units(get.units)

    def cell(self, object_: Thing, positional: bool) -> str:
        """Its elements, from the cells of an object; an empty one where there is none and positions count."""
        if self._plain is not None and (text := object_.cells.get(self._plain)) is not None:
            return _leaf(self.title, text)
        values = self.property.of(object_)
        return "".join(_leaf(self.title, self._text(value)) for value in values) or (
            _leaf(self.title, "") if positional else "")

    def _text(self, selected: Selected) -> str:
        if self.get.units is not None:
            value = self.property.typed(selected)
            if isinstance(value, Decimal):
                return self.property.shown(value, self.get.units)
        return self.property.text(selected)

    def put(self, selected: Selected, root: Any, places: dict[Any, Any], whole: set[Any]) -> None:
        """Put what was selected into the object of the answer, inside copies of the elements that it stands in.

        places: elements of the object -> those of the answer; whole: those of which all is there.
        """
        if isinstance(selected, str):
            etree.SubElement(places[root], self.title).text = selected
            return
        if selected is root:
            if self.property.place is None:
                del places[root][:]         # what was selected of it before
            places[root].extend(map(deepcopy, selected))
            whole.add(root)
            return
        plain = self.get.alias is None and self.get.units is None
        above = []
        for ancestor in selected.iterancestors():
            if ancestor in whole and plain:
                return                          # it is there already
            if ancestor in places:
                break
            above.append(ancestor)
        if plain and selected in places:
            places[selected][:] = map(deepcopy, selected)
            whole.add(selected)
            return
        inner = places[ancestor]
        for ancestor in reversed(above):
            inner = places[ancestor] = etree.SubElement(inner, ancestor.tag, dict(ancestor.attrib))
        copy = deepcopy(selected)
        copy.tail = None
        if self.get.alias or (not len(copy) and self.title == self.property.asked):
            copy.tag = self.title
        if self.get.units is not None:
            copy.text = self._text(selected)
            copy.set("units", self.get.units)
        inner.append(copy)
        if plain:
            places[selected] = copy
            whole.add(selected)

    def order(self, object_: Thing) -> tuple[int, Any]:
        """What objects are sorted by: absent, numbers, texts."""
        values = [self.property.typed(selected) for selected in self.property.of(object_)]
        return min((rank(value) for value in values), default=(0, 0))

    def aggregate(self, members: list[Thing]) -> str:
        """What the values of a group come to; empty where there are none. Raises MessageError (317) for texts."""
        values = [self.property.typed(selected) for object_ in members for selected in self.property.of(object_)]
        if self.op == "Count":
            return str(len(values))
        if not values:
            return ""
        if self.op in ("Max", "Min"):
            best = (max if self.op == "Max" else min)(values, key=rank)
            return self._shown(best)
        numbers = [value for value in values if isinstance(value, Decimal)]
        if len(numbers) < len(values):
            raise MessageError("317", f"{self.op} is for numbers, which {self.property.asked} is not in all objects")
        total = sum(numbers, Decimal(0))
        return self._shown(total if self.op == "Sum" else total / len(numbers))

    def _shown(self, value: Typed) -> str:
        if isinstance(value, Decimal):
            return self.property.shown(value, self.get.units)
        return str(value) if isinstance(value, str) else "true" if value else "false"


def _leaf(name: str, text: str) -> str:
    return f"<{name}>{escaped(text)}</{name}>"


def answer(request: Request, source: Source, *, now: int, profile: str = "3.1", limits: Limits = LIMITS,
           most_bytes: int | None = None) -> Response:
    """The Response to a Query, whole; what cannot be answered is its Status. now: epoch seconds, what ``now`` stands
    for; most_bytes: of all objects together."""
    return next(answers(request, source, None, now=now, profile=profile, limits=limits, most_bytes=most_bytes))


def answers(request: Request, source: Source, most: int | None, *, now: int, profile: str = "3.1",
            limits: Limits = LIMITS, most_bytes: int | None = None) -> Iterator[Response]:
    """The same in pieces of at most ``most`` objects, or fewer where the request says so, if it allows chunking; else
    the first piece, with Warning 146 where objects are missing. most: None for one Response, whole.

    Profile ``gold`` takes a full piece for one that others follow, as Gold does: an answer may end in an empty piece.
    """
    size = most if most is None or (request.chunk_size or 0) <= 0 else min(most, request.chunk_size or 0)
    try:
        objects = Answer(request, source, now=now, profile=profile, limits=limits, most_bytes=most_bytes).objects()
        piece = list(islice(objects, size))
        number = 1
        while True:
            following = list(islice(objects, size)) if len(piece) == size else []
            more = bool(following) or (profile == "gold" and len(piece) == size)
            if not more or not request.chunking:
                status = Status.of("146", "The result is cut short; ask with chunking for all of it.") if more else None
                yield _response(piece, request, status, number if number > 1 else None, 0 if number > 1 else None)
                return
            yield _response(piece, request, None, number, -1)
            piece, number = following, number + 1
    except MessageError as error:
        yield Response((error.status,), request.actor)


def _response(objects: list[str], request: Request, status: Status | None = None, number: int | None = None,
              last: int | None = None) -> Response:
    data = (Data("".join(objects)),) if objects else ()
    return Response((status or Status.of("000"), Count(len(objects)), *data), request.actor, number, last)
