"""What job objects are made of beside properties: containers, what was not understood, and typed access to properties.

A ``Container`` keeps its items in document order, because order is data here (conj, group, redirect lists). ``Raw``
holds an element of another vocabulary whole, so that it comes back on writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, overload

from sssjob.document.kinds import new_property
from sssjob.document.leaf import NO_ATTRIBUTES, Accessor, Given, P, Property, T, Value, property_of, text_of
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.document._sentences import Condition

__all__ = [
    "NO_ATTRIBUTES", "Accessor", "Container", "Given", "Item", "Many", "One", "PropertiesOf", "Property", "PropertyOf",
    "Raw", "Value", "new_property", "property_of", "text_of",
]


class Raw:
    """An element of another vocabulary: tag as found (``{namespace}local``), attributes, text and children.

    Children are Raw, Container (a Job inside an envelope) or str (text between elements).
    """

    __slots__ = ("attributes", "children", "line", "tag", "text")

    def __init__(self, tag: str, attributes: Mapping[str, str] | None = None, text: str = "",
                 children: Iterable[Raw | Container | str] = (), line: int = 0) -> None:
        self.tag = tag
        self.attributes = dict(attributes or {})
        self.text = text
        self.children = list(children)
        self.line = line

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Raw):
            return NotImplemented
        return (self.tag, self.attributes, self.text, self.children) == (
            other.tag, other.attributes, other.text, other.children)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Raw({self.tag!r}, {self.attributes!r}, {self.text!r}, {self.children!r})"


class Container:
    """An element with children, in document order in ``items``.

    ``attributes`` holds awarenessPolicy, export and unknown ones; ``reference`` is the text of a reference
    (``<Job>job123</Job>``); ``line`` the source line (0: not read from text); ``spelling`` another name it was read
    under. Comparing looks at items, attributes and reference only.
    """

    __slots__ = ("attributes", "items", "line", "reference", "spelling")
    tag: ClassVar[str]

    def __init__(self, items: Iterable[Item] = (), attributes: dict[str, str] | None = None,
                 reference: str | None = None, line: int = 0, spelling: str | None = None, **members: Any) -> None:
        self.items: list[Item] = items if type(items) is list else self._listed(items) if items else []
        self.attributes = attributes or NO_ATTRIBUTES
        self.reference = reference
        self.line = line
        self.spelling = spelling
        if members:
            from sssjob.document._by_hand import fill

            fill(self, members)

    @classmethod
    def _listed(cls, items: Iterable[Item]) -> list[Item]:
        """The items of any other iterable. Raises UsageError for what holds something else than items."""
        if not isinstance(items, str | bytes) and isinstance(items, Iterable):
            listed = list(items)
            if all(isinstance(item, Property | Container | Raw) for item in listed):
                return listed
        raise UsageError(f"{cls.tag}: a list of its properties and containers is expected, not {items!r:.60}; values "
                         "go by the names of properties, such as executable=\"/bin/true\"")

    # -- asking
    def first(self, tag: str) -> Property | None:
        """The first property of that name standing directly here."""
        for item in self.items:
            if item.tag == tag and isinstance(item, Property):
                return item
        return None

    def all(self, tag: str) -> list[Property]:
        """All properties of that name standing directly here, in order."""
        return [i for i in self.items if i.tag == tag and isinstance(i, Property)]

    def properties(self) -> Iterator[Property]:
        """All properties standing directly here."""
        return (i for i in self.items if isinstance(i, Property))

    def leaves(self) -> Iterator[Property]:
        """All properties standing here and in the containers inside, in document order."""
        leaves: list[Property] = []
        _gather(self, leaves)
        return iter(leaves)

    def containers(self, tag: str | None = None) -> Iterator[Container]:
        """The child containers, or those of one name."""
        if tag is None:
            return (i for i in self.items if isinstance(i, Container))
        return (i for i in self.items if i.tag == tag and isinstance(i, Container))

    def unknown(self) -> Iterator[Raw]:
        """What was not understood and is kept."""
        return (i for i in self.items if isinstance(i, Raw))

    def value(self, tag: str) -> Value | None:
        """The value of the first property of that name, or None."""
        first = self.first(tag)
        return None if first is None else first.value

    # -- as Python objects
    def to_dict(self) -> dict[str, Any]:
        """This container as its JSON twin in dicts and lists, under its name: ``{"Job": {"Id": "1"}}``."""
        from sssjob.xml._twin_dicts import dict_of

        return dict_of(self)

    @classmethod
    def from_dict(cls, twin: Mapping[str, Any]) -> Self:
        """The container of such a dict. Raises RejectedError with what is wrong, UsageError for another container."""
        from sssjob.xml._twin_dicts import container_of

        return container_of(cls, twin)

    # -- changing: what is given is converted and checked
    def add(self, tag: str, value: Given | Property, /, **attributes: Any) -> Property:
        """Append a property and return it; None for an attribute leaves it out.

        Names are those of the specification or of Python (``NodeCount``, ``node_count``, ``performance_factor``). An
        amount may have its unit (``"2 GB"``), seconds may be a ``timedelta``, a time a ``datetime`` with a time zone.
        Raises PropertyError, which names the property and its section, for whatever the reader would refuse.
        """
        from sssjob.document import _by_hand

        property_ = _by_hand.property_of(self.tag, tag, value, attributes)
        self.items.append(property_)
        return property_

    def set(self, tag: str, value: Given | Property | Condition | None, /, **attributes: Any) -> None:
        """Put one property (of a condition: its properties) in place of all of that name; None takes them away.

        Conversions and errors as of ``add``."""
        from sssjob.document._by_hand import name_of, properties_of

        self._replace(name_of(self.tag, tag), () if value is None else properties_of(self.tag, tag, value, attributes))

    def put(self, tag: str, values: Iterable[Given | Property | Condition] | Given | Property | Condition | None,
            /) -> None:
        """Put these properties, or the one, in place of all of that name; None takes them away. Conversions and errors
        as of ``add``; of a condition all its properties are put."""
        from sssjob.document._by_hand import name_of, properties_of

        single = isinstance(values, str | bytes | bytearray | memoryview | Mapping) or not isinstance(values, Iterable)
        each: Iterable[Any] = () if values is None else (values,) if single else values  # type: ignore[assignment]
        self._replace(name_of(self.tag, tag), [
            property_ for value in each for property_ in properties_of(self.tag, tag, value, {})])

    # -- changing: what is given is taken as it is, by those who know that it is right
    def add_as_is(self, tag: str, value: Value, /, **attributes: str | None) -> Property:
        """Append a property, unchecked (attributes in XML spelling; None is left out), and return it."""
        property_ = new_property(tag, value, {k: v for k, v in attributes.items() if v is not None})
        self.items.append(property_)
        return property_

    def set_as_is(self, tag: str, value: Value | Property | None, /) -> None:
        """Put one property in place of all of that name, unchecked; None takes them away."""
        if value is None:
            if tag in map(_TAG, self.items):
                self._replace(tag, ())
            return
        self._replace(tag, (value if isinstance(value, Property) else new_property(tag, value),))

    def put_as_is(self, tag: str, values: Iterable[Property], /) -> None:
        """Put these properties behind all others in place of all of that name, unchecked."""
        self._take([i for i in self.items if not (i.tag == tag and isinstance(i, Property))] + list(values))

    def _replace(self, tag: str, values: Iterable[Property]) -> None:
        """Put properties where the first of that name stands, else at the end; the others of that name go."""
        places = [n for n, i in enumerate(self.items) if i.tag == tag and isinstance(i, Property)]
        first = places[0] if places else len(self.items)
        behind = self.items[first + 1:] if len(places) < 2 else [
            i for i in self.items[first + 1:] if not (i.tag == tag and isinstance(i, Property))]
        self._take([*self.items[:first], *values, *behind])

    def _take(self, items: list[Item]) -> None:
        """Put other items in place of those here; the list is a new one, because copies of a container share it."""
        before, self.items = self.items, items
        if type(before) is not list:
            before.changed()  # type: ignore[attr-defined]  # a block that joins its container when it is changed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Container):
            return NotImplemented
        return (self.tag == other.tag and self.items == other.items and self.attributes == other.attributes
                and self.reference == other.reference)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        what = repr(self.reference) if self.reference is not None else repr(self.items)
        return f"{self.tag}({what}{', ' + repr(self.attributes) if self.attributes else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.items, self.attributes or None, self.reference, self.line, self.spelling)


Item = Property | Container | Raw
_TAG: Final = attrgetter("tag")


class _PropertyAccessor(Accessor):
    """Of a property of a container."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def describe(self) -> str:
        """What the vocabulary says of the property."""
        from sssjob.document._describing import property_text

        return property_text(self.owner, self.tag)

    def __delete__(self, obj: Container) -> None:
        obj.put(self.tag, None)


class One(_PropertyAccessor, Generic[T]):
    """Accessor of the value of a property that stands at most once: ``job.user``; None where it is absent."""

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> T | None: ...
    def __get__(self, obj: Container | None, owner: type) -> Self | T | None:
        return self if obj is None else obj.value(self.tag)  # type: ignore[return-value]

    def __set__(self, obj: Container, value: Given | Condition | None) -> None:
        obj.set(self.tag, value)


class Many(_PropertyAccessor, Generic[T]):
    """Accessor of the values of a property that may repeat: ``job.hold``, a tuple."""

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> tuple[T, ...]: ...
    def __get__(self, obj: Container | None, owner: type) -> Self | tuple[T, ...]:
        return self if obj is None else tuple(p.value for p in obj.all(self.tag))  # type: ignore[misc]

    def __set__(self, obj: Container,
                values: Iterable[Given | Property | Condition] | Given | Property | Condition | None) -> None:
        obj.put(self.tag, values)


class PropertyOf(_PropertyAccessor, Generic[P]):
    """Accessor of a property with attributes of its own: ``job.memory``; the Property itself, or None."""

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> P | None: ...
    def __get__(self, obj: Container | None, owner: type) -> Self | P | None:
        return self if obj is None else obj.first(self.tag)  # type: ignore[return-value]

    def __set__(self, obj: Container, value: Given | Property | Condition | None) -> None:
        obj.set(self.tag, value)


class PropertiesOf(_PropertyAccessor, Generic[P]):
    """Accessor of all properties of a name that may repeat: ``job.dependency``, a tuple of Property."""

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> tuple[P, ...]: ...
    def __get__(self, obj: Container | None, owner: type) -> Self | tuple[P, ...]:
        return self if obj is None else tuple(obj.all(self.tag))  # type: ignore[arg-type]

    def __set__(self, obj: Container,
                values: Iterable[Given | Property | Condition] | Given | Property | Condition | None) -> None:
        obj.put(self.tag, values)


def _gather(container: Container, leaves: list[Property]) -> None:
    """Append the properties of a container and of those inside it."""
    for item in container.items:
        if isinstance(item, Property):
            leaves.append(item)
        elif isinstance(item, Container):
            _gather(item, leaves)
