"""What brackets and Or tie together in Requested: which properties are inherited or left as one, and what is left of
such an expression where a part of it is left out.

``conj`` joins a property to the one before it (And binds over Or), ``group`` n > 0 opens n brackets before a property,
n < 0 closes them after it. Source: SSS job object 3.1.0, sections 8.1 and 10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final, TypeVar

from sssjob.document.element import Container, Item, Property
from sssjob.limits import LIMITS

#: Properties that are inherited or left together, each with the container it stands in.
Unit = list[tuple[Property, Container]]
_Pair = tuple[Property, Container]
_I = TypeVar("_I", bound=Item)
_OR: Final = frozenset(("Or", "Nor"))
_NOT: Final = frozenset(("Nand", "Nor"))


def _or(p: Property) -> bool:
    return p.attributes.get("conj") in _OR


def _group(p: Property) -> int:
    try:
        return int(p.attributes.get("group", "0"))
    except ValueError:
        return 0


def units(items: Unit) -> Iterator[Unit]:
    """The parts of an expression that can be told apart: one property each, or all that brackets or Or tie together."""
    if not any("group" in p.attributes or "conj" in p.attributes for p, _ in items):
        yield from ([i] for i in items)
        return
    depth, starts, joined = 0, [], False
    for index, (p, _) in enumerate(items):
        if depth == 0:
            starts.append(index)
            joined = joined or (index > 0 and _or(p))
        depth += _group(p)
        if depth < 0:
            joined = True
    if joined or depth:     # at the top And binds over Or: the block cannot be parted
        yield items
        return
    for start, end in zip(starts, [*starts[1:], len(items)], strict=True):
        yield items[start:end]


# --- brackets -----------------------------------------------------------------------------------------------------

def bracketed(items: list[_I]) -> list[_I]:
    """The same expression, as many items, in brackets where it needs them to be joined to another with And."""
    at = [n for n, i in enumerate(items) if isinstance(i, Property)]
    if not at:
        return items
    out: list[Any] = list(items)
    first, last = out[at[0]], out[at[-1]]
    if _or(first):
        first = out[at[0]] = first.replace(conj="Nand" if first.attributes["conj"] == "Nor" else None)
    depth = 0
    loose = False
    for n in at:
        loose = loose or (depth == 0 and n != at[0] and _or(out[n]))
        depth += _group(out[n])
    if loose and len(at) > 1 and _group(first) >= 0 >= _group(last) and not depth:
        out[at[0]] = first.replace(group=str(_group(first) + 1))
        out[at[-1]] = last.replace(group=str(_group(last) - 1))
    return out


# --- parts that are left out --------------------------------------------------------------------------------------

class _Branch(list[list[Any]]):
    """Alternatives; each is a list of members that hold together: pairs, or branches in brackets."""


def without(unit: Unit, dropped: Callable[[Property], bool]) -> Unit:
    """What an expression still says where some of its properties are left out.

    ``(Duration and Processors) or Queue`` without Processors is ``Duration or Queue``; an alternative that has no other
    member goes with it. Empty where nothing is left, and where brackets do not balance, for then nobody knows what is
    tied to what.
    """
    if len(unit) == 1:
        return [] if dropped(unit[0][0]) else unit
    tree = _parsed(unit)
    return [] if tree is None else _written(_pruned(tree, dropped))


def _signs(unit: Unit) -> list[int] | None:
    """The brackets at each property; turned where they close before they open, None where they do not balance."""
    groups = [_group(p) for p, _ in unit]
    for signs in (groups, [-g for g in groups]):
        depths = list(accumulate(signs))
        if not depths[-1] and min(depths) == 0 and max(depths) <= LIMITS.group_depth:
            return signs
    return None


def _parsed(unit: Unit) -> _Branch | None:
    signs = _signs(unit)
    if signs is None:
        return None
    stack = [_Branch([[]])]
    for (p, child), sign in zip(unit, signs, strict=True):
        if _or(p) and stack[-1] != [[]]:
            stack[-1].append([])
        for _ in range(sign):
            inner = _Branch([[]])
            stack[-1][-1].append(inner)
            stack.append(inner)
        stack[-1][-1].append((p, child))
        for _ in range(-sign):
            stack.pop()
    return stack[0]


def _pruned(branch: _Branch, dropped: Callable[[Property], bool]) -> _Branch:
    """A branch without what is left out; it may be empty."""
    kept = _Branch()
    for alternative in branch:
        members: list[Any] = []
        for member in alternative:
            if not isinstance(member, _Branch):
                members += [] if dropped(member[0]) else [member]
                continue
            inner = _pruned(member, dropped)
            members += inner[0] if len(inner) == 1 else [inner] if inner else []
        if members:
            kept.append(members)
    return kept


def _written(branch: _Branch, nested: bool = False) -> Unit:
    """The pairs of a branch with the conj and group that say it."""
    out: Unit = []
    for number, alternative in enumerate(branch):
        for place, member in enumerate(alternative):
            part = _written(member, True) if isinstance(member, _Branch) else [_put(member, group=0)]
            part[0] = _put(part[0], joins=number > 0 and place == 0)
            out += part
    if nested:
        out[0] = _put(out[0], group=_group(out[0][0]) + 1)
        out[-1] = _put(out[-1], group=_group(out[-1][0]) - 1)
    return out


def _put(pair: _Pair, *, group: int | None = None, joins: bool | None = None) -> _Pair:
    """A pair with other brackets, or joined with Or (joins) or And to what stands before it."""
    p, child = pair
    if group is not None and group != _group(p):
        p = p.replace(group=str(group) if group else None)
    if joins is not None:
        conj = ("Nor" if joins else "Nand") if p.attributes.get("conj") in _NOT else "Or" if joins else None
        if (p.attributes.get("conj") or None) != conj:
            p = p.replace(conj=conj)
    return p, child


def bracketed_units(parts: Iterable[Unit]) -> Unit:
    """Units of one level as one list, in brackets as ``bracketed`` puts them."""
    joined = [pair for part in parts for pair in part]
    properties = bracketed([p for p, _ in joined])
    return [(p, child) for p, (_, child) in zip(properties, joined, strict=True)]
