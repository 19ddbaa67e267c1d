"""What stands inside a container as Python expects it: lists that can be appended to, blocks that need not be there.

``group.jobs`` is a live view over the items of the group; ``job.requested`` is there always, and joins the job with the
first thing that is put into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Any, Generic, SupportsIndex, TypeVar, overload

from sssjob.document.element import Accessor, Container, Item
from sssjob.errors import UsageError

C = TypeVar("C", bound=Container)


class Children(MutableSequence[C]):
    """The child containers of one kind, live: what is appended, inserted or removed here is so in the container.

    Properties and other children keep their places; what is appended stands behind the last of its kind."""

    __slots__ = ("_kind", "_owner")

    def __init__(self, owner: Container, kind: type[C]) -> None:
        self._owner, self._kind = owner, kind

    def _all(self) -> list[C]:
        return [i for i in self._owner.items if isinstance(i, self._kind)]

    def _places(self) -> list[int]:
        return [n for n, i in enumerate(self._owner.items) if isinstance(i, self._kind)]

    def __len__(self) -> int:
        return len(self._places())

    def __iter__(self) -> Iterator[C]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> C: ...
    @overload
    def __getitem__(self, index: slice) -> list[C]: ...
    def __getitem__(self, index: int | slice) -> C | list[C]:
        return self._all()[index]

    @overload
    def __setitem__(self, index: int, value: C) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[C]) -> None: ...
    def __setitem__(self, index: int | slice, value: C | Iterable[C]) -> None:
        if isinstance(index, slice):
            children: list[Any] = self._all()
            children[index] = value  # type: ignore[assignment]  # the overload says that it is iterable
            self.replace(children)
        else:
            self._owner.items[self._places()[index]] = self._checked(value)

    def __delitem__(self, index: int | slice) -> None:
        places = self._places()[index]
        for place in sorted([places] if isinstance(places, int) else places, reverse=True):
            del self._owner.items[place]

    def insert(self, index: int, value: C) -> None:
        """Put a container before the one of that index."""
        value, places = self._checked(value), self._places()
        before = range(len(places))[index:][:1]
        if before:
            self._owner.items.insert(places[before[0]], value)
        else:
            self._owner.items.insert(places[-1] + 1 if places else len(self._owner.items), value)

    def replace(self, values: Iterable[C] | None) -> None:
        """Put others in place of all that are there; None takes them away."""
        if values is not None and not isinstance(values, Iterable):
            name = self._kind.__name__
            raise UsageError(f"a list of {name} is expected in {self._owner.tag}, not "
                             + (f"one {name}: put it in brackets, [...]" if isinstance(values, self._kind) else
                                f"a {type(values).__name__}"))
        new = [self._checked(v) for v in values or ()]
        places = self._places()
        first = places[0] if places else len(self._owner.items)
        del self[:]
        self._owner.items[first:first] = new

    def _checked(self, value: object) -> C:
        if not isinstance(value, self._kind):
            raise UsageError(f"a {self._kind.__name__} is expected in {self._owner.tag}, not a {type(value).__name__}")
        return value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return self._all() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return repr(self._all())


class Listed(Accessor, Generic[C]):
    """Accessor of the children of one kind, a live list. Setting takes a list of them, or None, which takes them away;
    so does ``del``."""

    def __init__(self, kind: type[C], text: str) -> None:
        self.kind, self.text = kind, text

    def describe(self) -> str:
        """What the list holds."""
        return self.text

    @overload
    def __get__(self, obj: None, owner: type) -> Listed[C]: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> Children[C]: ...
    def __get__(self, obj: Container | None, owner: type) -> Listed[C] | Children[C]:
        return self if obj is None else Children(obj, self.kind)

    def __set__(self, obj: Container, values: Iterable[C] | None) -> None:
        Children(obj, self.kind).replace(values)

    def __delete__(self, obj: Container) -> None:
        self.__set__(obj, None)


class DefaultsOf(Accessor, Generic[C]):
    """Accessor of the Defaults of a kind; several are read as one, and None stands for none."""

    def __init__(self, kind: type[C]) -> None:
        self.kind = kind

    def describe(self) -> str:
        """Which Defaults they are."""
        return f"The {self.kind.tag}; several are read as one, in order. None where there are none."

    @overload
    def __get__(self, obj: None, owner: type) -> DefaultsOf[C]: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> C | None: ...
    def __get__(self, obj: Container | None, owner: type) -> DefaultsOf[C] | C | None:
        if obj is None:
            return self
        kind = self.kind
        for item in obj.items:
            if isinstance(item, kind):
                return joined(obj, kind)
        return None

    def __set__(self, obj: Container, value: C | None) -> None:
        kind = self.kind
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"a {kind.__name__} is expected in {obj.tag}, not a {type(value).__name__}")
        Children(obj, kind).replace(() if value is None else (value,))

    def __delete__(self, obj: Container) -> None:
        self.__set__(obj, None)


# --- blocks -------------------------------------------------------------------------------------------------------

class Joining(list[Item]):
    """The items of a block that does not stand in its container yet (it is absent, or several that are read as one):
    with the first change it takes its place there."""

    def __init__(self, items: Iterable[Item], owner: Container, block: Container) -> None:
        super().__init__(items)
        self._owner, self._block = owner, block

    def changed(self) -> None:
        """Put the block in place of all of its name in the container."""
        block, items = self._block, self._owner.items
        if type(block.items) is Joining:
            block.items = list(block.items)
        indices = [n for n, i in enumerate(items) if i.tag == block.tag and isinstance(i, Container)]
        place = indices[0] if indices else len(items)
        kept = [i for i in items if not (i.tag == block.tag and isinstance(i, Container))]
        self._owner.items[:] = [*kept[:place], block, *kept[place:]]

    def append(self, item: Item, /) -> None:
        """As of a list."""
        super().append(item)
        self.changed()

    def extend(self, items: Iterable[Item], /) -> None:
        """As of a list."""
        super().extend(items)
        self.changed()

    def insert(self, index: SupportsIndex, item: Item, /) -> None:
        """As of a list."""
        super().insert(index, item)
        self.changed()

    def __iadd__(self, items: Iterable[Item], /) -> Joining:  # type: ignore[override,misc]  # as narrow as the list
        self.extend(items)
        return self

    def __setitem__(self, index: Any, value: Any, /) -> None:
        super().__setitem__(index, value)
        self.changed()

    def __delitem__(self, index: Any, /) -> None:
        super().__delitem__(index)
        self.changed()

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def joined(owner: Container, kind: type[C]) -> C:
    """The one block of a kind; an empty one or the several as one where there is no one, which joins when changed."""
    kinds = list(map(type, owner.items))
    blocks = kinds.count(kind)
    if blocks == 1:
        block = owner.items[kinds.index(kind)]
        assert isinstance(block, kind)
        return block
    blocks_there = [i for i in owner.items if isinstance(i, kind)] if blocks else []
    container = kind((), blocks_there[0].attributes if blocks_there else None, None, blocks_there[0].line
                     if blocks_there else 0)
    container.items = Joining([item for c in blocks_there for item in c.items], owner, container)
    return container


class Block(Accessor, Generic[C]):
    """Accessor of a block such as Requested: always there, empty (and false) where the document has none.

    Setting takes a block of the kind, a mapping of what is in it, or None, which takes it away."""

    def __init__(self, kind: Callable[[], type[C]]) -> None:
        self.kind = kind

    def describe(self) -> str:
        """What the vocabulary says of the container."""
        from sssjob.document.vocabulary import CONTAINERS

        row = CONTAINERS[self.kind().tag]
        return (f"{row.name}: {row.description}.\n\nAlways there: empty, and false, where the document has none; it "
                f"joins the document with the first thing that is put into it.\nSection {row.section} of the SSS job "
                "object.")

    @overload
    def __get__(self, obj: None, owner: type) -> Block[C]: ...
    @overload
    def __get__(self, obj: Container, owner: type) -> C: ...
    def __get__(self, obj: Container | None, owner: type) -> Block[C] | C:
        return self if obj is None else joined(obj, self.kind())

    def __delete__(self, obj: Container) -> None:
        self.__set__(obj, None)

    def __set__(self, obj: Container, value: Any) -> None:
        kind = self.kind()
        container = value if value is None or isinstance(value, kind) else kind.of(value)  # type: ignore[attr-defined]
        items: list[Item] = [] if container is None else [container]
        indices = [n for n, i in enumerate(obj.items) if isinstance(i, kind)]
        place = indices[0] if indices else len(obj.items)
        kept = [i for i in obj.items if not isinstance(i, kind)]
        if container is not None and type(container.items) is Joining:
            container.items = list(container.items)
        obj.items = [*kept[:place], *items, *kept[place:]]
