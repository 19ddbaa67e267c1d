"""Properties of objects by name or path, and their values as what they are: numbers, times, bytes, texts.

A name alone means the property as a child of the object, and where there is none, anywhere below it. Everything else is
a path of XPath 1.0, relative to the object, which goes through ``sssjob.query``. Values are typed as the vocabulary
types them. Source: SSSRMAP message format 3.0.4, "Modified XPATH Expressions", as Maui and Bamboo use them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from sssjob.document.lexical import (
    LexicalError,
    liberal_boolean,
    liberal_datetime,
    liberal_duration,
    liberal_float,
    write_float,
)
from sssjob.document.states import job_state
from sssjob.document.units import to_bytes
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import QueryError
from sssjob.findings import escape
from sssjob.limits import LIMITS, Limits
from sssjob.query import Selector
from sssjob.sssrmap.model import MessageError
from sssjob.sssrmap.things import JOB_CLASS, Kind, Thing, Type

__all__ = ["Property", "Selected", "Typed", "close_to", "rank"]

#: A property of an object: its element, or the text of a cell or an attribute.
Selected = Any
Typed = Decimal | str | bool

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")
_LAST: Final = re.compile(r"([A-Za-z_][\w.-]*)\s*(?:\[[^\]]*\]\s*)*$")
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,60}(\.[0-9]{1,60})?")
_UNITS: Final = {row.name: row.unit for row in reversed(ELEMENTS) if row.unit}
_WITH_UNIT: Final = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]+)\s*")


class Property:
    """A property that is asked for or compared. asked: as the request names it; name: by the vocabulary, None of a path
    that ends in none of its names; type: of its values; place: of its object in a join, None where there is one object.
    check: is called before a path is evaluated, and raises MessageError when the time of the query is over."""

    def __init__(self, asked: str, kind: Kind, *, now: int, limits: Limits = LIMITS,
                 check: Callable[[], None] = lambda: None, place: int | None = None) -> None:
        self.asked, self.kind, self._now, self._check, self.place = asked, kind, now, check, place
        self._selector: Selector | None = None
        if len(asked) > limits.identifier:
            raise MessageError("318", f"a name or path is longer than the limit identifier ({limits.identifier})")
        if _NAME.fullmatch(asked):
            self.name = kind.property_of(asked)
            if self.name is None:
                raise MessageError("318", f"{escape(asked, 80)} is not a valid attribute for the {kind.name} object"
                                          f"{close_to(asked, (*kind.properties, *kind.aliases))}")
        else:
            last = _LAST.search(asked)
            self.name = None if last is None or asked[: last.start(1)].endswith("@") else kind.property_of(last[1])
            try:
                self._selector = Selector(_relative(asked, kind.name), limits=limits)
            except QueryError as error:
                raise MessageError("318", f"{escape(asked, 80)} is no path: {error}") from None
        self.type: Type = kind.properties.get(self.name or "", "text")
        self._unit = _UNITS.get(self.name or "", "")

    @property
    def plain(self) -> bool:
        """Whether it is a name, and what stands under it the answer."""
        return self._selector is None and self.name != JOB_CLASS

    def in_cells(self, object_: Thing) -> bool:
        """Whether the cells of an object answer for the property."""
        return self._is_in_cells(object_ if self.place is None else object_.parts[self.place])

    def _is_in_cells(self, object_: Thing) -> bool:
        return self._selector is None and (self.name in object_.cells or self.name in self.kind.more
                                           or not object_.has_tree)

    def of(self, object_: Thing) -> list[Selected]:
        """The elements of the property, or the texts of cells, attributes and values. Raises MessageError (318) for a
        path that cannot be evaluated."""
        return self.of_part(object_ if self.place is None else object_.parts[self.place])

    def of_part(self, object_: Thing) -> list[Selected]:
        """The same of the object of a join that it is a property of."""
        if self._selector is not None:
            self._check()
            try:
                return self._selector.select(object_.element)
            except QueryError as error:
                raise MessageError("318", f"{escape(self.asked, 80)}: {error}") from None
        name = self.name
        assert name is not None
        if name == JOB_CLASS:
            return [_class_of(object_)]
        if self._is_in_cells(object_):
            cell = object_.cells.get(name)
            return [] if cell is None else [cell]
        children = object_.element.findall(name)
        return children or [e for e in object_.element.iter(name) if e is not object_.element]

    def text(self, selected: Selected) -> str:
        """The text of what was selected: of an element with others in it all its text."""
        if isinstance(selected, str):
            return selected
        return (selected.text or "") if not len(selected) else "".join(selected.itertext())

    def typed(self, selected: Selected) -> Typed:
        """The value of what was selected; its text where that is not of the type."""
        text = self.text(selected)
        try:
            return self._value(text, None if isinstance(selected, str) else selected.get("units"))
        except (LexicalError, LookupError, OverflowError):
            return text.strip()

    def wanted(self, text: str, units: str | None) -> Typed:
        """The value that a condition states. Raises MessageError (317) where it is not of the type, or in units that
        the property does not have."""
        stated = _WITH_UNIT.fullmatch(text) if self.type == "bytes" and units is None else None
        unit = units if stated is None else stated[2]
        if unit is not None:
            self.check_units(unit)
        try:
            return self._value(text, units)
        except (LexicalError, LookupError, OverflowError):
            what = {"time": "time stamp", "truth": "Boolean", "bytes": "amount"}.get(self.type, self.type)
            raise MessageError("317", f"Invalid {what} value for {self.asked}: ({escape(text, 60)})") from None

    def shown(self, value: Decimal, units: str | None) -> str:
        """A number as text, of bytes in units (None: those of the property)."""
        if self.type == "bytes":
            value = value / to_bytes(Decimal(1), self.units(units))
        return write_float(value)

    def units(self, units: str | None) -> str:
        """The units of an answer: those that are asked for, else those of the property. MessageError (317): unknown."""
        unit = units or self._unit
        self.check_units(unit)
        return unit

    def check_units(self, units: str) -> None:
        """Raise MessageError (317) for units that the property is not counted in."""
        if self.type != "bytes":
            raise MessageError("317", f"{self.asked} has no units")
        try:
            to_bytes(Decimal(1), units)
        except LookupError:
            raise MessageError("317", f"units {escape(units, 40)!r} of {self.asked} are not known") from None

    def _value(self, text: str, units: str | None) -> Typed:
        match self.type:
            case "number":
                return liberal_float(text)[0]
            case "time":
                return Decimal(liberal_datetime(text, now=self._now)[0])
            case "duration":
                return Decimal(liberal_duration(text)[0])
            case "truth":
                return liberal_boolean(text)[0]
            case "bytes":
                stated = _WITH_UNIT.fullmatch(text)
                number, unit = stated.groups() if stated is not None and units is None else (text, units or self._unit)
                return Decimal(to_bytes(liberal_float(number)[0], unit))
        return text.strip()


def _relative(path: str, kind: str) -> str:
    """A path with the object as its context, whose own name may stand before it."""
    for start in (f"/{kind}/", f"{kind}/"):
        if path.startswith(start) and not path.startswith(f"{start}/"):
            return path[len(start):]
    return path


def _class_of(object_: Thing) -> str:
    state = object_.cells.get("State")
    if state is None:
        state = next((e.text for e in object_.element.findall("State")), None)
    return "completed" if job_state(state).state == "Completed" else "active"


def close_to(name: str, names: Sequence[str]) -> str:
    """Which of the names that there are may have been meant, as the end of a sentence."""
    close = [other for other in names if other.lower() == name.lower()] or difflib.get_close_matches(name, names, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def rank(value: Typed) -> tuple[int, Any]:
    """The place of a value in an order: numbers, then texts, those of digits before others and as numbers."""
    if not isinstance(value, str):
        return 1, Decimal(value)
    return (2, Decimal(value)) if _DIGITS.fullmatch(value) else (3, value)
