"""Plans of rendered templates: what a template makes of all contexts of one shape.

Two contexts have one shape where every list has as many members, each text is empty in both or in none, every value is
of the same type, and all that is no text, option or path is equal. The branches that a template takes follow from that
alone, so that it is rendered once for a shape, with slots in place of the values; after that only the filters are
called. Where a template asks more of a slot there is no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from sssjob.templates.quoting import Directive, Quoted

__all__ = ["Plan", "UnplannedError", "filter_of", "shape_of", "slot_text", "with_slots"]

#: The types of which filters make text, beside paths.
_VALUES: Final = frozenset((str, Quoted, Directive))
_EMPTY: Final = (str, "")       # in a shape: a text that is empty
_MARK: Final = "\0"     # around the number of a slot in the text of a plan; no template has one
_Filter = Callable[[Any], Quoted]
_At = int | slice
_Use = tuple[_At, _Filter | None]


class UnplannedError(Exception):
    """A template asks more of a value than whether it is empty, or puts it where no plan can."""


class _Slot:
    """Stands for a value of a context. at: its number among the values of the shape, of a list those of its members;
    kind: its type; uses: the number and the filter of each value that has been put out."""

    __slots__ = ("at", "kind", "truth", "uses")

    def __init__(self, at: _At, kind: type, truth: bool, uses: list[_Use]) -> None:
        self.at, self.kind, self.truth, self.uses = at, kind, truth, uses

    def __bool__(self) -> bool:
        return self.truth

    def _ask(self, *_: object) -> Any:
        raise UnplannedError(self.kind.__name__)

    __eq__ = __str__ = __hash__ = __len__ = __iter__ = __getitem__ = __contains__ = __add__ = __int__ = _ask

    def through(self, quote: _Filter | None) -> Quoted:
        """The text that stands for what a filter makes of the value; None: for the value itself."""
        if quote is None and self.kind is not Quoted:
            raise UnplannedError(self.kind.__name__)
        self.uses.append((self.at, quote))
        return Quoted(f"{_MARK}{len(self.uses) - 1}{_MARK}")


class _Slots(list[object]):
    """Members of a list that are slots: they can be gone through, or put out together."""

    def __init__(self, members: Sequence[object], whole: _Slot | None) -> None:
        super().__init__(members)
        self.whole = whole


def filter_of(quote: _Filter) -> Callable[[Any], Quoted]:
    """A filter that takes slots too."""
    def through(value: Any) -> Quoted:
        """What the filter makes of a value, or the text that stands for it."""
        if type(value) is _Slot:
            return value.through(quote)
        if type(value) is _Slots:
            if value.whole is None:
                raise UnplannedError("list")
            return value.whole.through(quote)
        return quote(value)

    return through


def slot_text(value: object) -> Quoted | None:
    """The text that stands for a value that is put out as it is; None for what is no slot."""
    return value.through(None) if type(value) is _Slot else None


def shape_of(context: Mapping[str, Any], values: list[Any]) -> tuple[object, ...]:
    """The shape of a context, whose values are appended in their order. It has no hash where the context holds
    something that has none."""
    shape: list[object] = []
    shape += context
    _enter(context.values(), shape, values)
    return tuple(shape)


def _enter(members: Iterable[Any], shape: list[object], values: list[Any]) -> None:
    for value in members:
        kind = type(value)
        if kind in _VALUES or isinstance(value, PurePath):
            shape.append(kind if value else _EMPTY)
            values.append(value)
        elif kind is list or kind is tuple:
            shape += (kind, len(value))
            _enter(value, shape, values)
        else:
            shape += (kind, value)


def with_slots(context: Mapping[str, Any], uses: list[_Use]) -> dict[str, object]:
    """The context with slots in place of its values. uses: is given each that a template puts out."""
    count = iter(range(1 << 30))
    return {name: _slot(value, count, uses) for name, value in context.items()}


def _slot(value: Any, count: Iterator[int], uses: list[_Use]) -> object:
    kind = type(value)
    if kind is list or kind is tuple:
        members = [_slot(member, count, uses) for member in value]
        if kind is tuple:
            return tuple(members)
        places = [member.at for member in members if type(member) is _Slot and isinstance(member.at, int)]
        first = places[0] if places else 0
        alone = len(places) == len(members)
        return _Slots(members, _Slot(slice(first, first + len(members)), list, True, uses) if alone else None)
    if kind in _VALUES or isinstance(value, PurePath):
        return _Slot(next(count), kind, bool(value), uses)
    return value


class Plan:
    """The text of a template for one shape: literal text, and between two pieces of it the values of a use, put
    through its filter."""

    __slots__ = ("_texts", "_uses")

    def __init__(self, text: str, uses: Sequence[_Use]) -> None:
        pieces = text.split(_MARK)
        self._texts = pieces[::2]
        self._uses = [uses[int(number)] for number in pieces[1::2]]

    def text(self, values: Sequence[Any]) -> str:
        """The text for these values. Raises QuotingError as the template would."""
        parts = [self._texts[0]]
        for (at, quote), text in zip(self._uses, self._texts[1:], strict=True):
            value: Any = values[at]
            parts += (value if quote is None else quote(value), text)
        return "".join(parts)
