"""Properties: the leaves of a job object, shared between all places where the same text stands, and their attributes.

A ``Property`` is a value: it is replaced, and never changed. Containers, which hold properties, are in
``document.element``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from os import PathLike
from typing import Any, Final, Generic, Self, TypeVar, overload

from sssjob.document.vocabulary import python_name

__all__ = [
    "NO_ATTRIBUTES", "Accessor", "Given", "Property", "TextAttribute", "TypedAttribute", "Value", "property_of",
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
            f"{self.tag}, as job.{python_name(self.tag)} = {value!r:.40}, or what replace() makes of this one")

    def __delattr__(self, name: str) -> None:
        """Refuse it, as setting is refused."""
        raise AttributeError(f"a property is a value, which may stand in many jobs, so its {name} cannot be deleted: "
                             "replace() makes another one")

    def __deepcopy__(self, memo: object) -> Self:
        """The same: no copy of it could become another one."""
        return self

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
        value = self.value
        return value if type(value) is str else text_of(value)

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
