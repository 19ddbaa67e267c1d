"""Sets of node names, kept folded: ``r[1-2]n[08-11],login1``.

A name is cut into its runs of digits and the text between them. Names with the same texts form one family; inside a
family the runs are dimensions, and the set is a tree of ranges, one level for each dimension, in a form that is unique
for the names it holds. So size, membership and equality are arithmetic on ranges, whatever their length, and two
texts naming the same nodes are equal. The grammar is that of Slurm's host lists (``sssjob.lrm.hostlist``).
Source: SSS job object 3.1.0, section 6.1 (List and Range).
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise

from sssjob.document.lexical import XML_SPACE, LexicalError, LimitError
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.hostlist import NOT_IN_NAMES, SLURM, Numbers, items

__all__ = ["NodeSet", "fold"]

_DIGITS = re.compile(r"([0-9]+)")
_ZERO_TO_NINE = frozenset("0123456789")

# Numbers first..last written with exactly `length` digits: [8-11] is (1, 8, 9), (2, 10, 11), but [08-11] is (2, 8, 11).
# Different spans are different texts, so ranges with and without leading zeros never get mixed up.
_Span = tuple[int, int, int]
_Spans = tuple[_Span, ...]  # sorted, apart from each other
_Box = tuple[_Spans, ...]  # a cross product: one _Spans for each dimension
_Tree = tuple[tuple[_Spans, "_Tree"], ...]  # alternatives, each with the tree of the next dimension; () ends
_Families = dict[tuple[str, ...], _Tree]


class NodeSet:
    """An immutable set of node names; ``parse_range``, ``parse_list`` and ``of`` make one.

    Iterates by family in order of first appearance, then by number; the order of the text inside a family is not kept.
    """

    __slots__ = ("_count", "_families", "_limits")

    def __init__(self) -> None:
        self._families: _Families = {}
        self._limits = LIMITS
        self._count = 0

    @classmethod
    def parse_range(cls, text: str, limits: Limits = LIMITS) -> NodeSet:
        """The nodes of a Range text: groups parted by commas, each with any number of ``[1-3,07]``.

        Text may follow a bracket and several brackets make a cross product. Leading zeros hold when the low end of a
        range has them. Ranges stay folded: ``n[1-99999999]`` is read at once, and refused only when expanded.
        Raises LexicalError with the position when malformed; LimitError (nodes) when even the folded form has too many
        parts, (digits) for a longer number, (depth) for too many runs of digits in a name.
        """
        budget = _Budget(text, limits)
        return cls._from_boxes((_group(text, pieces, budget) for pieces in items(text, SLURM, limits)), budget)

    @classmethod
    def parse_list(cls, text: str, delimiter: str = ",", limits: Limits = LIMITS) -> NodeSet:
        """The nodes of a List text: literal names, trimmed, empty ones dropped; the delimiter may be long.

        Raises LexicalError for an empty delimiter or a name with brackets, commas or white space in it.
        """
        if not delimiter:
            raise LexicalError(delimiter, "a delimiter of at least one character")
        words = (word.strip(XML_SPACE) for word in text.split(delimiter))
        return cls.of((word for word in words if word), limits)

    @classmethod
    def of(cls, names: Iterable[str], limits: Limits = LIMITS) -> NodeSet:
        """The set of literal names. Raises LexicalError as ``parse_list``, LimitError as ``parse_range``."""
        return cls._from_boxes((_literal(name, limits) for name in names), _Budget("(names)", limits))

    @classmethod
    def _from_boxes(cls, groups: Iterable[tuple[tuple[str, ...], _Box]], budget: _Budget) -> NodeSet:
        boxes: dict[tuple[str, ...], list[_Box]] = {}
        for family, box in groups:
            budget.spend(1)
            boxes.setdefault(family, []).append(box)
        nodes = cls()
        nodes._limits = budget.limits
        nodes._families = {family: _tree(boxes_of_family, 0, len(family) - 1, budget) for family,
                           boxes_of_family in boxes.items()}
        nodes._count = sum(map(_count, nodes._families.values()))
        return nodes

    @property
    def count(self) -> int:
        """Distinct names, computed without expanding; of any size, where ``len`` ends at sys.maxsize."""
        return self._count

    def __len__(self) -> int:
        if self._count > sys.maxsize:
            raise self._too_many()
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        parts = _DIGITS.split(name)
        tree = self._families.get(tuple(parts[::2]))
        if tree is None or max(map(len, parts[1::2]), default=0) > self._limits.digits:
            return False
        for digits in parts[1::2]:
            number = (len(digits), int(digits))
            below = next((tree for spans, tree in tree if _holds(spans, number)), None)
            if below is None:
                return False
            tree = below
        return True

    def __iter__(self) -> Iterator[str]:
        """Names one after the other; raises LimitError (nodes) before the first when there are too many."""
        if self._count > self._limits.nodes:
            raise self._too_many()
        return (name for family, tree in self._families.items() for name in _names(family, tree, 0))

    def __or__(self, other: NodeSet) -> NodeSet:
        """Names of either; the limits are those of the left one."""
        if not isinstance(other, NodeSet):
            return NotImplemented
        groups = (
            (family, box) for part in (self, other) for family, tree in part._families.items() for box in _boxes(tree)
        )
        return self._from_boxes(groups, _Budget("(a union)", self._limits))

    def __eq__(self, other: object) -> bool:
        return self._families == other._families if isinstance(other, NodeSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._families.items()))

    def __str__(self) -> str:
        """The folded Range text, which reads back as an equal set; empty for the empty set."""
        groups = []
        for family, tree in self._families.items():
            for box in _boxes(tree):
                numbers = [_spans_text(spans) for spans in box]
                groups.append(family[0] + "".join(n + text for n, text in zip(numbers, family[1:], strict=True)))
        return ",".join(groups)

    def __repr__(self) -> str:
        return f"NodeSet({str(self)!r})"

    def _too_many(self) -> LimitError:
        return LimitError(str(self), f"at most {self._limits.nodes} nodes", "nodes")


def fold(names: Iterable[str], limits: Limits = LIMITS) -> str:
    """A short Range text for literal names: ``["n1", "n2", "n3", "x"]`` gives ``n[1-3],x``; duplicates count once.

    Raises LexicalError for a name that has brackets, commas or white space.
    """
    return str(NodeSet.of(names, limits))


class _Budget:
    """Steps left for building a set: overlapping cross products can need many more than the text has parts."""

    __slots__ = ("left", "limits", "text")

    def __init__(self, text: str, limits: Limits) -> None:
        self.text, self.limits, self.left = text, limits, 8 * limits.nodes

    def spend(self, steps: int) -> None:
        """Take so much; LimitError where it is more than is left."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(self.text, f"at most {self.limits.nodes} nodes", "nodes")


# Reading --------------------------------------------------------------------------------------------------------------

def _check_runs(text: str, parts: list[str], limits: Limits) -> None:
    if len(parts) > 2 * limits.depth:
        raise LimitError(text, f"at most {limits.depth} runs of digits in a name", "depth")
    for digits in parts[1::2]:
        if len(digits) > limits.digits:
            raise LimitError(text, f"numbers of at most {limits.digits} digits", "digits")


def _literal(name: str, limits: Limits) -> tuple[tuple[str, ...], _Box]:
    if not name or NOT_IN_NAMES.search(name):
        raise LexicalError(name, "the name of a node, without brackets, commas or white space")
    parts = _DIGITS.split(name)
    _check_runs(name, parts, limits)
    return tuple(parts[::2]), tuple([((len(n), int(n), int(n)),) for n in parts[1::2]])


def _by_length(low: int, high: int, width: int) -> Iterator[_Span]:
    """low..high with at least ``width`` digits, cut where the numbers grow by a digit."""
    while low <= high:
        top = min(high, 10**width - 1)
        yield width, low, top
        low, width = top + 1, width + 1


def _group(text: str, pieces: list[str | Numbers], budget: _Budget) -> tuple[tuple[str, ...], _Box]:
    """One item as family and box; runs of digits that touch, ``n1[0-3]`` or ``n[1-2][3-4]``, become one dimension."""
    texts, box = [""], []
    run: _Spans = ()
    for piece in pieces:
        if not isinstance(piece, str):
            run = _joined(run, _spans(piece, budget), text, budget)
            continue
        parts = _DIGITS.split(piece)
        _check_runs(text, parts, budget.limits)
        for part in parts:
            if part[:1] in _ZERO_TO_NINE:
                run = _joined(run, ((len(part), int(part), int(part)),), text, budget)
            elif run and part:
                box.append(run)
                texts.append(part)
                run = ()
            else:
                texts[-1] += part
    if run:
        box.append(run)
        texts.append("")
    if len(box) > budget.limits.depth:
        raise LimitError(text, f"at most {budget.limits.depth} runs of digits in a name", "depth")
    return tuple(texts), tuple(box)


def _spans(numbers: Numbers, budget: _Budget) -> _Spans:
    spans: list[_Span] = []
    for width, low, high in numbers:
        pieces = list(_by_length(low, high, width))
        budget.spend(len(pieces))
        spans += pieces
    return _merged(spans)


def _joined(front: _Spans, right: _Spans, text: str, budget: _Budget) -> _Spans:
    """Numbers of ``front`` each followed by those of ``right``, as in ``[1-2][0-5]``."""
    if not front:
        return right
    if front[-1][0] + right[-1][0] > budget.limits.digits:
        raise LimitError(text, f"numbers of at most {budget.limits.digits} digits", "digits")
    spans: list[_Span] = []
    for length, low, high in right:
        scale = 10**length
        for left_length, first, last in front:
            if high - low == scale - 1:  # all numbers of that length: the result has no holes
                spans.append((left_length + length, first * scale, last * scale + high))
                continue
            budget.spend(last - first + 1)
            for number in range(first * scale, (last + 1) * scale, scale):
                spans.append((left_length + length, number + low, number + high))
    return _merged(spans)


# Ranges ---------------------------------------------------------------------------------------------------------------

def _merged(spans: list[_Span]) -> _Spans:
    """Sorted, with overlapping and touching spans of one length made one."""
    spans.sort()
    merged: list[_Span] = []
    for length, low, high in spans:
        if merged and merged[-1][0] == length and low <= merged[-1][2] + 1:
            if high > merged[-1][2]:
                merged[-1] = (length, merged[-1][1], high)
        else:
            merged.append((length, low, high))
    return tuple(merged)


def _holds(spans: _Spans, number: tuple[int, int]) -> bool:
    """Whether the number, as (digits, value), is in the spans."""
    length, value = number
    place = bisect_left(spans, (length, value + 1, 0))  # spans before it start at value or lower
    return place > 0 and spans[place - 1][0] == length and value <= spans[place - 1][2]


def _spans_text(spans: _Spans) -> str:
    """``[8-11,20]``, or the bare number when there is only one; spans that only a digit more parts are joined."""
    ranges: list[list[str]] = []
    previous: _Span | None = None
    for span in spans:
        length, low, high = span
        if previous and (length, low) == (previous[0] + 1, 10 ** previous[0]) and previous[2] == low - 1:
            ranges[-1][1] = str(high)
        else:
            ranges.append([str(low).zfill(length), str(high).zfill(length)])
        previous = span
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return ranges[0][0]
    return "[" + ",".join(low if low == high else f"{low}-{high}" for low, high in ranges) + "]"


# Trees ----------------------------------------------------------------------------------------------------------------

def _tree(boxes: list[_Box], depth: int, dimensions: int, budget: _Budget) -> _Tree:
    """The unique tree of the union of boxes, from dimension ``depth`` on."""
    if depth == dimensions:
        return ()
    if depth == dimensions - 1:
        return ((_merged([span for box in boxes for span in box[depth]]), ()),)
    alike: dict[_Spans, list[_Box]] = {}
    for box in boxes:
        alike.setdefault(box[depth], []).append(box)
    merged: dict[_Tree, list[_Span]] = {}
    for spans, numbers in _apart(alike, budget):
        merged.setdefault(_tree(numbers, depth + 1, dimensions, budget), []).extend(spans)
    return tuple(sorted((_merged(spans), tree) for tree, spans in merged.items()))


def _apart(alike: dict[_Spans, list[_Box]], budget: _Budget) -> Iterator[tuple[Iterable[_Span], list[_Box]]]:
    """The same boxes under spans that do not overlap; a box stands under several where spans had to be cut."""
    flat = sorted(span for spans in alike for span in spans)
    if all(earlier[0] != right[0] or earlier[2] < right[1] for earlier, right in pairwise(flat)):
        yield from alike.items()
        return
    # Cut every span wherever another one starts or ends, then bring together the pieces under the same boxes.
    cuts = sorted({(length, edge) for length, low, high in flat for edge in (low, high + 1)})
    owners: dict[tuple[int, int], list[int]] = {}
    groups = list(alike)
    for index, spans in enumerate(groups):
        for length, low, high in spans:
            first, last = bisect_left(cuts, (length, low)), bisect_left(cuts, (length, high + 1))
            budget.spend(last - first)
            for place in range(first, last):
                owners.setdefault((place, length), []).append(index)
    together: dict[tuple[int, ...], list[_Span]] = {}
    for (place, length), indexes in owners.items():
        together.setdefault(tuple(indexes), []).append((length, cuts[place][1], cuts[place + 1][1] - 1))
    for combined, pieces in together.items():
        boxes = [box for index in combined for box in alike[groups[index]]]
        budget.spend(len(boxes))
        yield pieces, boxes


def _count(tree: _Tree) -> int:
    return sum(sum(high - low + 1 for _, low, high in spans) * _count(below) for spans, below in tree) if tree else 1


def _boxes(tree: _Tree) -> Iterator[_Box]:
    """The branches of a tree: boxes that do not overlap."""
    if not tree:
        yield ()
    for spans, below in tree:
        for rest in _boxes(below):
            yield (spans, *rest)


def _names(family: tuple[str, ...], tree: _Tree, depth: int) -> Iterator[str]:
    if not tree:
        yield family[depth]
    for spans, below in tree:
        for length, low, high in spans:
            for number in range(low, high + 1):
                head = family[depth] + str(number).zfill(length)
                for tail in _names(family, below, depth + 1):
                    yield head + tail
