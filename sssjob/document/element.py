"""What every part of a job object is made of: properties, containers, and what was not understood.

A ``Property`` is an immutable leaf, shared between all places where the same text stands; a ``Container`` keeps its
items in document order, because order is data here (conj, group, redirect lists). ``Raw`` holds an element of another
vocabulary whole, so that it comes back on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter, eq, ge, gt, le, lt
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, overload

from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.document._sentences import Condition

__all__ = [
    "Accessor", "Amount", "Container", "Given", "Item", "Many", "One", "PropertiesOf", "Property", "PropertyOf", "Raw",
    "TextAttribute", "TypedAttribute", "Value", "new_property", "property_of",
    "text_of",
]

Value = str | int | Decimal | bool
#: What a property can be made of by hand; ``Container.add`` says what becomes of each.
Given = Value | float | datetime | timedelta | PathLike[str]
T = TypeVar("T")
P = TypeVar("P", bound="Property")


class _Doc:
    """The ``__doc__`` of an accessor: of the class its own text, of an instance what ``describe`` makes of it."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, obj: Accessor | None, owner: type) -> str | None:
        return self.text if obj is None else obj.describe()


class Accessor:
    """What the accessors of properties and attributes have in common: they know where they stand, for ``help()``."""

    owner: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        type.__setattr__(cls, "__doc__", _Doc(cls.__doc__))

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.__name__ = owner.__name__, name

    def describe(self) -> str:
        """What the vocabulary says: text, type, unit and section."""
        raise NotImplementedError


class _AttributeAccessor(Accessor):
    """Of an attribute of a property."""

    name: str

    def describe(self) -> str:
        """What the vocabulary says of the attribute."""
        from sssjob.document._describing import attribute_text

        return attribute_text(self.owner, self.name)


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


class TextAttribute(_AttributeAccessor):
    """Accessor of an attribute of type String: its text, or the default of the specification, or None."""

    def __init__(self, name: str, default: str | None = None) -> None:
        self.name = name
        self.default = default

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Property, owner: type) -> str | None: ...
    def __get__(self, obj: Property | None, owner: type) -> Self | str | None:
        return self if obj is None else obj.attributes.get(self.name, self.default)


class TypedAttribute(_AttributeAccessor, Generic[T]):
    """Accessor of an attribute of another type: read from its text, or the default, or None.

    Raises ValueError when the text of a property made by hand is not of the type."""

    def __init__(self, name: str, read: Callable[[str], T], default: T | None = None) -> None:
        self.name = name
        self.read = read
        self.default = default

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: Property, owner: type) -> T | None: ...
    def __get__(self, obj: Property | None, owner: type) -> Self | T | None:
        if obj is None:
            return self
        text = obj.attributes.get(self.name)
        return self.default if text is None else self.read(text)


class _Nothing(dict[str, str]):
    """No attributes, which nothing can be added to, for all properties without any share them."""

    def __setitem__(self, name: str, text: str) -> None:
        raise TypeError(f"attributes cannot be changed in place: replace({name}={text!r:.40}) makes another property")


#: Shared by all properties without attributes.
NO_ATTRIBUTES: dict[str, str] = _Nothing()


class _Leaf:
    """The slots of a property, which can be set here."""

    __slots__ = ("attributes", "spelling", "tag", "value")
    tag: str
    value: Value
    attributes: dict[str, str]
    spelling: str | None


class Property(_Leaf):
    """A leaf: ``tag`` (the name of 3.1.0), typed ``value``, ``attributes`` as canonical text, and the ``spelling``
    it was read under where that is another one. It cannot be changed: make a new one with ``replace``."""

    __slots__ = ()

    op = TextAttribute("op", "EQ")
    conj = TextAttribute("conj", "And")
    group = TypedAttribute("group", int, 0)
    preference = TypedAttribute("preference", int)
    performance_factor = TypedAttribute("performanceFactor", Decimal)
    awareness_policy = TextAttribute("awarenessPolicy")

    def __init__(self, tag: str, value: Value, attributes: dict[str, str] = NO_ATTRIBUTES,
                 spelling: str | None = None) -> None:
        _set_tag(self, tag)
        _set_value(self, value)
        _set_attributes(self, attributes)
        _set_spelling(self, spelling)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse it, with AttributeError: the object may stand in many jobs."""
        raise AttributeError(
            f"a property is a value, which may stand in many jobs, so its {name} cannot be set: give the job another "
            f"{self.tag}, as job.{_python_name(self.tag)} = {value!r:.40}, or what replace() makes of this one")

    def __delattr__(self, name: str) -> None:
        """Refuse it, as setting is refused."""
        raise AttributeError(f"a property is a value, which may stand in many jobs, so its {name} cannot be deleted: "
                             "replace() makes another one")

    def replace(self, value: Value | None = None, **attributes: str | None) -> Self:
        """A copy with another value or other attributes (XML spelling; None takes one away)."""
        merged = {**self.attributes, **attributes}
        kept = {k: v for k, v in merged.items() if v is not None}
        return type(self)(self.tag, self.value if value is None else value, kept or NO_ATTRIBUTES, self.spelling)

    def get(self, attribute: str, default: str | None = None) -> str | None:
        """The text of an attribute (XML spelling), or the default."""
        return self.attributes.get(attribute, default)

    @property
    def text(self) -> str:
        """The value as the strict writer spells it."""
        return text_of(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Property):
            return NotImplemented
        return (self.tag == other.tag and self.value == other.value and type(self.value) is type(other.value)
                and self.attributes == other.attributes)

    def __hash__(self) -> int:
        return hash((self.tag, self.value))

    def __repr__(self) -> str:
        more = "".join(f", {k}={v!r}" for k, v in self.attributes.items())
        return f"{type(self).__name__}({self.tag!r}, {self.value!r}{more})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag, self.value, self.attributes, self.spelling)


def text_of(value: Value) -> str:
    """A value of a property as the strict writer spells it."""
    if type(value) is str:
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


#: What sets the slots of a property that is made; nothing else does.
_set_tag, _set_value, _set_attributes, _set_spelling = (
    getattr(Property, name).__set__ for name in ("tag", "value", "attributes", "spelling"))
_new: Final = object.__new__


def property_of(kind: type[P], tag: str, value: Value, attributes: dict[str, str]) -> P:
    """What ``kind(tag, value, attributes)`` is, in half of the time: its slots are set before it is a value."""
    leaf: Any = _new(_Leaf)
    leaf.tag, leaf.value, leaf.attributes, leaf.spelling = tag, value, attributes, None
    leaf.__class__ = kind
    leaf_of_kind: P = leaf
    return leaf_of_kind


def _python_name(tag: str) -> str:
    """The name of a property in Python."""
    from sssjob.document.vocabulary import python_name

    return python_name(tag)


class Amount(Property):
    """A property that counts something: it compares with numbers and texts (``"2 GB"``) by its amount, whatever its op.

    A number without unit counts in the unit that the property has without one (Memory: MB). Comparing for equality
    with another Property looks at everything, as of all properties. Raises UsageError where units do not agree.
    """

    __slots__ = ()

    def _compared(self, other: object, sign: Callable[[Any, Any], bool]) -> bool:
        from sssjob.document._sentences import compared

        both = compared(self, other)
        return NotImplemented if both is None else sign(*both)

    def __lt__(self, other: object) -> bool:
        return self._compared(other, lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, ge)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) if isinstance(other, Property) else self._compared(other, eq)

    __hash__ = Property.__hash__


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
        for item in self.items:
            if isinstance(item, Property):
                yield item
            elif isinstance(item, Container):
                yield from item.leaves()

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
        from sssjob.document.model import Document
        from sssjob.xml._twin_dicts import dict_of

        return dict_of(Document(self))

    @classmethod
    def from_dict(cls, twin: Mapping[str, Any]) -> Self:
        """The container of such a dict. Raises RejectedError with what is wrong, UsageError for another container."""
        from sssjob.xml._twin_dicts import container_of

        return container_of(cls, twin)  # type: ignore[return-value]

    # -- changing: what is given is converted and checked
    def add(self, tag: str, value: Given | Property, /, **attributes: Any) -> Property:
        """Append a property and return it; None for an attribute leaves it out.

        Names are those of the specification or of Python (``NodeCount``, ``node_count``, ``performance_factor``). An
        amount may have its unit (``"2 GB"``), seconds may be a ``timedelta``, a time a ``datetime`` with a time zone.
        Raises PropertyError, which names the property and its section, for whatever the reader would refuse.
        """
        from sssjob.document._by_hand import property_of

        property_ = property_of(self.tag, tag, value, attributes)
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
        new = value if isinstance(value, Property) or value is None else new_property(tag, value)
        if tag in map(_TAG, self.items):
            self._replace(tag, () if new is None else (new,))
        elif new is not None:
            self._take([*self.items, new])

    def put_as_is(self, tag: str, values: Iterable[Property], /) -> None:
        """Put these properties behind all others in place of all of that name, unchecked."""
        self._take([i for i in self.items if not (i.tag == tag and isinstance(i, Property))] + list(values))

    def _replace(self, tag: str, values: Iterable[Property]) -> None:
        """Put properties where the first of that name stands, else at the end; the others of that name go."""
        kept: list[Item] = []
        new: Iterable[Property] = values
        for item in self.items:
            if item.tag == tag and isinstance(item, Property):
                kept += new
                new = ()
            else:
                kept.append(item)
        kept += new
        self._take(kept)

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


def new_property(tag: str, value: Value, attributes: dict[str, str] | None = None) -> Property:
    """A Property of the class that belongs to the name (Processors: a Consumable)."""
    if not _CLASSES:
        from sssjob.document.accessors import CLASSES

        _CLASSES.update(CLASSES)
    return _CLASSES.get(tag, Property)(tag, value, attributes or NO_ATTRIBUTES)


_CLASSES: Final[dict[str, type[Property]]] = {}     # the accessors import this module


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
