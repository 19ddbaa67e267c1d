"""The expression of a Requested block: its tree, how it is read, and what its values are.

``parse`` makes the tree in time linear in the properties; ``names_of`` and ``check_property`` look at one property.
Public through ``sssjob.request``. Source: SSS job object 3.1.0, sections 6.1, 8.1, 10.2 and 10.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Container, Property, Value
from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import known_factor
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits

if TYPE_CHECKING:
    from sssjob.document.patterns import Pattern

#: The path of a container, or what spells it: most containers have no finding.
Path = str | Callable[[], str]
#: What compares by size.
ORDER: Final = ("LT", "GT", "LE", "GE")
#: op -> how people write it.
SIGNS: Final = {"EQ": "=", "NE": "!=", "LT": "<", "GT": ">", "LE": "<=", "GE": ">=", "Match": "matches"}
#: The condition that holds where another one does not.
NEGATED: Final = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
#: Amounts that are looked at together: what one level asks for has to fit.
AMOUNTS: Final = frozenset(("Processors", "NodeCount", "Duration", "Memory", "Disk", "Swap", "Network", "Resource",
                            "TaskCount"))
#: Attributes that tie a property to those before and after it; without them it is simply demanded too.
_TIES: Final = frozenset(("group", "preference", "conj"))
#: Properties that name and type tell apart.
NAMED: Final = ("Resource", "Extension")
#: Names of nodes and features: an offer holds a set of them.
SETS: Final = ("Node", "Feature")
#: The rows of what may be requested, by name.
ROWS: Final = {e.name: e for e in ELEMENTS if "R" in e.categories}


@dataclass(frozen=True, slots=True)
class Predicate:
    """One property as a condition. implied: it stood bare, outside Requested, in a job that still waits."""

    property: Property
    implied: bool = False

    def __str__(self) -> str:
        return condition_text(self.property)


@dataclass(frozen=True, slots=True)
class Not:
    """The single predicate after Nand or Nor, negated."""

    item: Predicate

    def __str__(self) -> str:
        return f"not {self.item}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every item holds; without items: true."""

    items: tuple[Node, ...]

    def __str__(self) -> str:
        return " and ".join(_bracketed(i) if isinstance(i, AnyOf | AllOf) else str(i) for i in self.items) or "true"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one item holds."""

    items: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(_bracketed(i) if isinstance(i, AnyOf | AllOf) else str(i) for i in self.items)


@dataclass(frozen=True, slots=True)
class Preferred:
    """Alternatives of one property with their weights, as stated. required: positive weights, one must hold; else
    they are wishes and the whole holds anyway (section 10.3)."""

    items: tuple[Predicate | Not, ...]
    weights: tuple[int, ...]
    required: bool

    def __str__(self) -> str:
        total = sum(map(abs, self.weights))
        shown = ", ".join(f"{i} ({abs(w)}/{total})" for i, w in zip(self.items, self.weights, strict=True))
        return f"{'one of' if self.required else 'preferably'} [{shown}]"


Node = Predicate | Not | AllOf | AnyOf | Preferred


def _bracketed(node: Node) -> str:
    return f"({node})"


def predicates_of(node: Node) -> Iterator[Predicate]:
    """The conditions of a tree in order, negated and implied ones too."""
    if isinstance(node, Predicate):
        yield node
    elif isinstance(node, Not):
        yield node.item
    else:
        for item in node.items:
            if isinstance(item, Predicate):
                yield item
            else:
                yield from predicates_of(item)


def properties_of(node: Node) -> Iterator[Property]:
    """The properties of a tree in order, negated and implied ones too."""
    return (predicate.property for predicate in predicates_of(node))


def range_of(properties: Iterable[Property]) -> tuple[int, int] | None:
    """The least and the most of a count, where two conditions and nothing else say them (GE and LE); None elsewhere."""
    conditions = list(properties)
    bounds = {p.op: p.value for p in conditions if not p.attributes.keys() & {"conj", "group", "preference"}}
    least, most = bounds.get("GE"), bounds.get("LE")
    return (least, most) if len(conditions) == 2 and isinstance(least, int) and isinstance(most, int) else None


def identity_of(p: Property) -> tuple[str, str | None, str | None]:
    """What makes two properties the same one: the tag, and name and type of Resource and Extension."""
    if p.tag in NAMED:
        return p.tag, p.get("name"), p.get("type")
    return p.tag, None, None


def condition_text(p: Property) -> str:
    """A requested property for people: ``Memory >= 4 GB``."""
    if not p.attributes:
        return f"{p.tag} = {p.text}"
    name = f"{p.tag} {'/'.join(filter(None, identity_of(p)[1:]))}" if p.tag in NAMED else p.tag
    how = f" {p.get('aggregation')}" if p.get("aggregation") else ""
    more = "".join(f" {p.get(a)}" for a in ("units", "metric", "context") if p.get(a))
    count = f" x{p.get('count')}" if p.get("count") else ""
    op = p.op or "EQ"
    return f"{name} {SIGNS.get(op, op)}{how} {p.text}{more}{count}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A Requested block as a tree. properties: those it was made of, with the signs of ``group`` mended."""

    root: Node
    properties: tuple[Property, ...] = ()

    def __str__(self) -> str:
        return str(self.root)


# --- reading it ---------------------------------------------------------------------------------------------------

class _Alternatives:
    """Predicates with a preference, of one property in one pair of brackets, while they are being collected."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[tuple[Predicate | Not, int]] = []

    def node(self) -> Node:
        """All of them as one node, or two where the weights have both signs."""
        signs = [[i for i in self.items if i[1] > 0], [i for i in self.items if i[1] < 0]]
        preferred = [Preferred(tuple(i for i, _ in part), tuple(w for _, w in part), part is signs[0])
                for part in signs if part]
        return preferred[0] if len(preferred) == 1 else AllOf(tuple(preferred))


class _Frame:
    """What stands between two brackets: alternatives (Or) of sequences (And)."""

    __slots__ = ("alternatives", "runs")

    def __init__(self) -> None:
        self.runs: list[list[Node | _Alternatives]] = [[]]
        self.alternatives: dict[tuple[str, str | None, str | None], _Alternatives] = {}

    def add(self, node: Node | _Alternatives) -> None:
        """Put a node behind the others."""
        self.runs[-1].append(node)

    def prefer(self, item: Predicate | Not, p: Property, weight: int) -> bool:
        """Take an alternative; True where it is the first of its property here."""
        alternatives = self.alternatives.get(identity_of(p))
        first = alternatives is None
        if alternatives is None:
            alternatives = self.alternatives[identity_of(p)] = _Alternatives()
        alternatives.items.append((item, weight))
        if first:
            self.add(alternatives)
        return first

    def node(self) -> Node:
        """All of it as one node, as small as can be."""
        runs = [tuple(i.node() if isinstance(i, _Alternatives) else i for i in run) for run in self.runs if run]
        parts: list[Node] = [run[0] if len(run) == 1 else AllOf(run) for run in runs]
        if not parts:
            return AllOf(())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


class _Place:
    """Where findings of one block go."""

    __slots__ = ("findings", "path", "within")

    def __init__(self, findings: Findings, within: Container | None, path: Path) -> None:
        self.findings, self.within, self.path = findings, within, path

    def add(self, rule: str, subject: str, message: str, item: Property | None = None) -> None:
        """Record a finding about the block, or a property of it."""
        self.findings.add(rule, subject, message, path=self.path, item=item, within=self.within)


def _whole(p: Property, attribute: str, place: _Place) -> int:
    text = p.attributes.get(attribute)
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        place.add("SSS207", p.tag, f"{attribute}={text!r} of {p.tag} is not an integer", p)
        return 0


def _depths(groups: list[int]) -> tuple[int, int, int]:
    """Lowest, highest and last number of open brackets."""
    depth = low = high = 0
    for n in groups:
        depth += n
        low, high = min(low, depth), max(high, depth)
    return low, high, depth


def balanced(groups: Iterable[str], limits: Limits = LIMITS) -> bool:
    """Whether the brackets of a block balance and are no more than the limit. groups: the texts of its ``group``."""
    try:
        low, high, last = _depths(list(map(int, groups)))
    except ValueError:
        return False
    return low == 0 == last and high <= limits.group_depth


def _balanced(items: list[Property], groups: list[int], strict: bool, limits: Limits, place: _Place
              ) -> tuple[list[int], int]:
    """The group numbers, mended, and how many brackets have to be opened before the first property."""
    low, high, last = _depths(groups)
    opened = 0
    if low < 0 or last:
        culprit = _culprit(items, groups)
        shown = f"brackets do not balance: {'one closes before it opens' if low < 0 else f'{last} left open'}"
        first_told = not _told_elsewhere(place.within, limits)
        if strict and first_told:
            place.add("SSS401", "group", shown, culprit)
        turned = [-n for n in groups]
        if low < 0 and _depths(turned)[::2] == (0, 0):
            groups = turned
            how = "all signs of the block turned"
        else:
            opened = -low
            how = f"{opened} added at the start, {last - low} at the end"
        if first_told and not strict:
            place.add("SSS402", "group", f"{shown}; {how}", culprit)
        low, high, last = _depths(groups)
    if high + opened > limits.group_depth:
        place.add("SSS110", "group", f"{high + opened} brackets open at once, more than the limit group_depth "
                                     f"({limits.group_depth})")
        return [0] * len(groups), 0
    return groups, opened


def _told_elsewhere(container: Container | None, limits: Limits) -> bool:
    """Whether the brackets of a block balance with those of elements that are not known, which findings of their own
    are about."""
    if container is None or all(isinstance(item, Property) for item in container.items):
        return False
    return balanced([item.attributes["group"] for item in container.items if "group" in item.attributes], limits)


def _culprit(items: list[Property], groups: list[int]) -> Property | None:
    """The property that closes more brackets than are open, else the one that opens the first that stays open."""
    opened: list[tuple[Property, int]] = []
    for p, n in zip(items, groups, strict=True):
        if n > 0:
            opened.append((p, n))
        while n < 0:
            if not opened:
                return p
            first, index_opened = opened.pop()
            n += index_opened
            if n > 0:
                opened.append((first, n))
    return opened[0][0] if opened else None


def parse(requested: Container | Iterable[Property], findings: Findings | None = None, *, strict: bool = False,
          limits: Limits = LIMITS, path: Path = "", implied: Iterable[Property] = ()) -> Expression:
    """The expression of a Requested block (section 10.2): And binds over Or, Nand and Nor negate one predicate.

    strict: brackets that do not balance are an error (SSS401) rather than mended (SSS402). Preferences: SSS403, SSS404.
    implied: bare properties that count as requested; they are joined with And. Time is linear in the properties.
    """
    within = requested if isinstance(requested, Container) else None
    place = _Place(Findings(limits=limits) if findings is None else findings, within, path)
    items = list(requested.properties() if isinstance(requested, Container) else requested)
    if not any(p.attributes and not _TIES.isdisjoint(p.attributes) for p in items):     # one demand after another
        asked: list[Node] = [Predicate(p) for p in items]
        root = asked[0] if len(asked) == 1 else AllOf(tuple(asked))
    else:
        groups, opened = _balanced(items, [_whole(p, "group", place) for p in items], strict, limits, place)
        root = _tree(items, groups, opened, place)
        items = [_regrouped(p, n) for p, n in zip(items, groups, strict=True)]
    bare: tuple[Node, ...] = tuple([Predicate(p, True) for p in implied])
    if bare:
        root = AllOf((*(root.items if isinstance(root, AllOf) else (root,)), *bare))
    return Expression(root, tuple(items))


def _regrouped(p: Property, group: int) -> Property:
    if "group" not in p.attributes or p.attributes["group"] == str(group):
        return p
    return p.replace(group=str(group) if group else None)


def _tree(items: list[Property], groups: list[int], opened: int, place: _Place) -> Node:
    frames = [_Frame() for _ in range(opened + 1)]
    for index, (p, group) in enumerate(zip(items, groups, strict=True)):
        conj = p.attributes.get("conj")
        if index and conj in ("Or", "Nor") and not _continues(frames[-1], p, group):
            frames[-1].runs.append([])
        frames.extend(_Frame() for _ in range(group))
        predicate = Predicate(p)
        node: Predicate | Not = Not(predicate) if conj in ("Nand", "Nor") else predicate
        weight = _weight(p, place)
        if weight:
            frames[-1].prefer(node, p, weight)
        else:
            frames[-1].add(node)
        for _ in range(-group):
            _close(frames, place)
    while len(frames) > 1:
        _close(frames, place)
    _mixed(frames[0], place)
    return frames[0].node()


def _continues(frame: _Frame, p: Property, group: int) -> bool:
    """Whether a property is a further alternative of a preference: then its conj says nothing."""
    return group <= 0 and "preference" in p.attributes and identity_of(p) in frame.alternatives


def _close(frames: list[_Frame], place: _Place) -> None:
    frame = frames.pop()
    _mixed(frame, place)
    frames[-1].add(frame.node())


def _mixed(frame: _Frame, place: _Place) -> None:
    for (tag, *_), alternatives in frame.alternatives.items():
        first = alternatives.items[0][1] > 0
        for node, weight in alternatives.items:
            if (weight > 0) is not first:
                place.add("SSS404", tag, f"preferences of {tag} have both signs: the positive are required, the "
                          "negative are wishes", (node.item if isinstance(node, Not) else node).property)
                break


def _weight(p: Property, place: _Place) -> int:
    if "preference" not in p.attributes:
        return 0
    weight = _whole(p, "preference", place)
    if not weight:
        place.add("SSS403", p.tag, f"preference 0 of {p.tag} ranks nothing", p)
    return weight


# --- values -------------------------------------------------------------------------------------------------------

def pattern_of(text: str, limits: Limits = LIMITS) -> Pattern:
    """The pattern of a text. What reads patterns is imported for the first of them: most requests have none.

    Raises LexicalError (PatternError, LimitError) for what is malformed or too large."""
    from sssjob.document.patterns import compile_pattern

    return compile_pattern(text, limits)


def names_of(p: Property, limits: Limits = LIMITS) -> NodeSet | Pattern | tuple[str, ...]:
    """The names in a Node or Feature: a set (Range), a pattern (Pattern, or op Match), or literal ones (section 6.1).

    Raises LexicalError (PatternError, LimitError) for what is malformed or too large."""
    how, text = p.get("aggregation"), p.text
    if how == "Pattern" or p.op == "Match":
        return pattern_of(text, limits)
    if how == "Range":
        return NodeSet.parse_range(text, limits)
    if how == "List":
        delimiter = p.get("delimiter") or ","
        return tuple(name for part in text.split(delimiter) if (name := part.strip()))
    return (text.strip(),)


def number_of(value: Value) -> Decimal | None:
    """The value as a finite number, or None."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else Decimal(value)
    if isinstance(value, str):
        try:
            value = Decimal(value.strip()) if len(value) <= LIMITS.digits else Decimal("NaN")
        except ArithmeticError:
            return None
    return value if value.is_finite() and abs(value.adjusted()) < 4 * LIMITS.digits else None


def exact_of(value: Value) -> Fraction | int | None:
    """The same without Decimal's rounding, whole numbers as such; or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = number_of(value)
    return None if number is None else Fraction(number)


def factor_of(p: Property) -> int | None:
    """Bytes of the unit of an amount, or None where it has none or an unknown one."""
    units = p.attributes.get("units")
    if not units:
        row = ROWS.get(p.tag)
        units = None if row is None else row.unit
    return None if units is None else known_factor(units)


def check_property(p: Property, findings: Findings, *, limits: Limits = LIMITS, path: Path = "",
                   within: Container | None = None) -> None:
    """Findings about one requested property taken alone: its pattern (SSS406), nodes (SSS407), order (SSS405).

    within: the container that it stands in."""
    place = _Place(findings, within, path)
    if p.op in ORDER and number_of(p.value) is None:
        place.add("SSS405", p.tag, f"{p.tag} {p.op} {p.text!r}: the value is not a number", p)
    try:
        if p.tag in SETS:
            names = names_of(p, limits)
            if isinstance(names, NodeSet) and names.count > limits.nodes:
                place.add("SSS110", p.tag, f"{p.tag} names {names.count} nodes, more than the limit nodes "
                                           f"({limits.nodes})", p)
        elif p.op == "Match":
            pattern_of(p.text, limits)
    except LimitError as error:
        place.add("SSS110", p.tag, f"{p.tag}: {error}", p)
    except LexicalError as error:
        pattern = p.get("aggregation") == "Pattern" or p.op == "Match"
        place.add("SSS406" if pattern else "SSS407", p.tag, f"{p.tag}: {error}", p)
