"""Holds the expression of one level against one offer, and explains the answer.

Public through ``sssjob.request``. Source: SSS job object 3.1.0, sections 6, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from sssjob.document.element import Property
from sssjob.document.held import per_of
from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import UnknownUnit, byte_factor
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.request.offers import Offer, count_of
from sssjob.request.tree import (
    NEGATED,
    ORDER,
    ROWS,
    SETS,
    SIGNS,
    AllOf,
    Node,
    Not,
    Predicate,
    Preferred,
    condition_text,
    identity_of,
    names_of,
    number_of,
    pattern_of,
)

if TYPE_CHECKING:
    from sssjob.document.patterns import Pattern

State = Literal["met", "not", "absent"]

_CREDENTIALS: Final = frozenset(e.name for e in ELEMENTS if e.section == "5.1 Table 3")
#: Kinds of measurement of what was used: such a use may stay below what was asked for.
_MEASURED: Final = ("Average", "Min", "Max")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one part of a request is met or not: the condition, what was offered for it, and the parts of it.

    state: met, not (something was offered, but not that) or absent (the offer says nothing about it).
    """

    text: str
    state: State
    offered: str = ""
    why: str = ""
    kind: Literal["all", "any", "not", "preference", "wish", "condition"] = "condition"
    parts: tuple[Explanation, ...] = ()

    @property
    def met(self) -> bool:
        """Whether it is met."""
        return self.state == "met"

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The explanation for people, one condition a line."""
        sign = {"met": "+", "not": "-", "absent": "?"}[self.state]
        yield f"{'  ' * indent}{sign} {self.sentence()}"
        for part in self.parts:
            yield from part.lines(indent + 1)

    def sentence(self) -> str:
        """The condition itself with what was offered for it, without its parts."""
        offered = f": offered {self.offered}" if self.offered else ""
        return f"{self.text}{offered}{f' ({self.why})' if self.why else ''}"

    def failing(self) -> Iterator[Explanation]:
        """The single conditions that are not met."""
        if not self.parts and not self.met:
            yield self
        for part in self.parts:
            if not part.met:
                yield from part.failing()


@dataclass(frozen=True, slots=True)
class Match:
    """The answer of ``match``. score: satisfied weight of the preferences, 0 to 1; 1 where there are none."""

    met: bool
    explanation: Explanation
    score: Fraction
    findings: Findings

    def lines(self) -> Iterator[str]:
        """The explanation for people, one condition a line."""
        return self.explanation.lines()

    def __bool__(self) -> bool:
        return self.met


def is_amount(tag: str) -> bool:
    """Whether a property is an amount, with units, metric and context."""
    return tag in ROWS and ROWS[tag].amount


def all_state(parts: Iterable[Explanation]) -> State:
    """The state of parts that must all hold: not before absent before met."""
    states = {p.state for p in parts}
    return "not" if "not" in states else "absent" if "absent" in states else "met"


def _any_state(parts: Iterable[Explanation]) -> State:
    states = {p.state for p in parts}
    return "met" if "met" in states else "not" if "not" in states else "absent"


class Matcher:
    """Holds one expression against one offer.

    part: the offer is that of a larger whole; literal: amounts are what was used, compared as section 8.1 says, else
    they are capacity; counts: how many nodes, processors, chunks and GPUs the request itself is about, for an offer
    that does not say how many it has.
    """

    def __init__(self, offer: Offer, part: bool, *, strict: bool, limits: Limits, findings: Findings,
                 literal: bool = True, counts: Mapping[str, int] | None = None) -> None:
        self.offer, self.part, self.strict, self.limits, self.findings = offer, part, strict, limits, findings
        self.literal, self.counts = literal, counts or {}
        self.scores: list[Fraction] = []
        self._names: dict[str, tuple[tuple[str | NodeSet, int], ...]] = {}

    def explain(self, node: Node) -> Explanation:
        """The depth of the tree is bounded by ``limits.group_depth``."""
        if isinstance(node, Predicate):
            return self.condition(node)
        if isinstance(node, Not):
            opposite = self._opposite(node.item)
            if opposite is not None:
                return self.condition(opposite)
            inner = self.condition(node.item)
            return Explanation(f"not {inner.text}", "not" if inner.met else "met", inner.offered, inner.why, "not")
        if isinstance(node, Preferred):
            return self.preferred(node)
        parts = tuple(map(self.explain, node.items))
        if isinstance(node, AllOf):
            return Explanation("all of", all_state(parts), kind="all", parts=parts)
        return Explanation("one of", _any_state(parts), kind="any", parts=parts)

    def _opposite(self, predicate: Predicate) -> Predicate | None:
        """Of a negated amount the condition that is asked for: not at least 4 is less than 4. Capacity could meet both
        a condition and its opposite, so that turning the answer round would be wrong."""
        p = predicate.property
        if self.literal or not is_capacity(p) or number_of(p.value) is None or (p.op or "EQ") not in NEGATED:
            return None
        return Predicate(p.replace(op=NEGATED[p.op or "EQ"]), predicate.implied)

    def preferred(self, node: Preferred) -> Explanation:
        """Alternatives with weights; their share of the weight goes into ``scores``."""
        parts = tuple(map(self.explain, node.items))
        total = sum(map(abs, node.weights))
        weight_met = sum(abs(w) for w, part in zip(node.weights, parts, strict=True) if part.met)
        self.scores.append(Fraction(weight_met, total))
        shown = f"weight {weight_met} of {total}"
        if node.required:
            return Explanation("one of the preferences", _any_state(parts), why=shown, kind="preference", parts=parts)
        return Explanation("wishes", "met", why=shown, kind="wish", parts=parts)

    # -- one predicate
    def condition(self, predicate: Predicate) -> Explanation:
        """One predicate; what cannot be read is a finding and not met."""
        p = predicate.property
        try:
            state, offered, why = self.names(p) if p.tag in SETS else self.values(p, predicate.implied)
        except LimitError as error:
            self.findings.add("SSS110", p.tag, f"{p.tag}: {error}")
            state, offered, why = "not", "", str(error)
        except LexicalError as error:
            pattern = p.get("aggregation") == "Pattern" or p.op == "Match"
            self.findings.add("SSS406" if pattern else "SSS407", p.tag, f"{p.tag}: {error}")
            state, offered, why = "not", "", str(error)
        return Explanation(condition_text(p), state, offered, why)

    def names(self, p: Property) -> tuple[State, str, str]:
        """Node and Feature, state, what was offered, why: any name that fits will do, NE wants none."""
        tag, op = p.tag, p.op
        offered = self._names.get(tag)
        if offered is None:
            offered = self._names[tag] = self.offer.names(tag)
        if not offered:
            return ("met" if op == "NE" else "absent"), "", "nothing offered"
        shown = _names_shown(offered)
        if op in ORDER:
            return self._ordered_names(p, offered, shown)
        requested = names_of(p, self.limits)
        least = count_of(p)
        hit = next((n for n, count in offered if count >= least and _meets(requested, n)), None)
        if op == "NE":
            return ("not" if hit is not None else "met"), shown, ""
        why = "" if hit is not None or least < 2 else f"{least} of each wanted"
        return ("met" if hit is not None else "not"), shown, why

    def _ordered_names(self, p: Property, offered: tuple[tuple[str | NodeSet, int], ...],
                       shown: str) -> tuple[State, str, str]:
        requested = number_of(p.value)
        numbers = [number_of(n) for n, _ in offered if isinstance(n, str)]
        if requested is None or not all(n is not None for n in numbers) or len(numbers) < len(offered):
            return self.unordered(p, shown)
        met = any(n is not None and _compare(p.op, n, requested) for n in numbers)
        return ("met" if met else "not"), shown, ""

    def unordered(self, p: Property, offered: str) -> tuple[State, str, str]:
        """An order asked of what are no numbers: a finding (SSS405) and not met."""
        why = f"{p.op} needs numbers"
        self.findings.add("SSS405", p.tag, f"{p.tag} {p.op} {p.text!r} against {offered!r}: {why}")
        return "not", offered, why

    def values(self, p: Property, implied: bool) -> tuple[State, str, str]:
        """All other properties: any offered one that fits will do, NE wants none equal."""
        _, name, type_ = identity_of(p)
        offered_properties = self.offer.all(p.tag, name, type_)
        if not offered_properties and p.tag == "NodeCount" and (nodes := self.offer.total("nodes")) is not None:
            offered_properties = (Property("NodeCount", int(nodes)),)
        if not offered_properties:
            if (implied or not self.literal) and p.tag in _CREDENTIALS and p.op == "EQ":
                return "met", "", "the offer names nobody"
            if not self.literal and p.tag in _ONE_AT_LEAST and p.value in (0, 1) and self.offer.properties:
                return "met", "", "every offer has one"
            return ("met" if p.op == "NE" else "absent"), "", "nothing offered"
        if not self.literal and is_capacity(p):
            return self._best([self.value(p, offered_property) for offered_property in offered_properties])
        answers = [self.value(p, offered_property) for offered_property in offered_properties]
        shown = ", ".join(a[1] for a in answers)
        if p.op == "NE":    # none may be equal
            bad = next((a for a in answers if a[0] != "met"), None)
            return (bad[0] if bad else "met"), shown, bad[2] if bad else ""
        good = next((a for a in answers if a[0] == "met"), None)
        return ("met", shown, good[2]) if good else (answers[0][0], shown, answers[0][2])

    def _best(self, answers: list[tuple[State, str, str]]) -> tuple[State, str, str]:
        """Of several amounts of a name the one that meets, else the first."""
        shown = ", ".join(answer[1] for answer in answers)
        state, _, why = next((answer for answer in answers if answer[0] == "met"), answers[0])
        return state, shown, why

    def value(self, p: Property, offered_property: Property) -> tuple[State, str, str]:
        """One requested against one offered property: state, what was offered, why."""
        shown = offered_property.text
        if offered_property.attributes:
            shown += "".join([f" {offered_property.get(a)}" for a in ("units", "metric", "context")
                              if offered_property.get(a)])
        if p.op == "Match":
            met = pattern_of(p.text, self.limits).matches(offered_property.text)
            return ("met" if met else "not"), shown, ""
        row = ROWS.get(p.tag)
        if row is not None and row.type == "String":
            return self.text(p, offered_property, shown)
        wanted_number, offered = number_of(p.value), number_of(offered_property.value)
        if wanted_number is None or offered is None:
            return self.text(p, offered_property, shown)
        if row is None or not row.amount:
            return self.compared(p, offered, wanted_number, shown)
        return self.amount(p, offered_property, wanted_number, offered, shown)

    def text(self, p: Property, offered_property: Property, shown: str) -> tuple[State, str, str]:
        """Two texts, or two numbers that stand in texts."""
        if p.op in ORDER:
            wanted_number, offered = number_of(p.value), number_of(offered_property.value)
            if wanted_number is None or offered is None:
                return self.unordered(p, shown)
            return ("met" if _compare(p.op, offered, wanted_number) else "not"), shown, ""
        if p.op not in ("EQ", "NE"):
            return "not", shown, f"op {p.op} is not known"
        return ("met" if (p.text == offered_property.text) == (p.op == "EQ") else "not"), shown, ""

    def amount(self, p: Property, offered_property: Property, wanted_number: Decimal, offered: Decimal,
               shown: str) -> tuple[State, str, str]:
        """An amount: its context, units and metric have to fit before the numbers are compared."""
        context = p.get("context") or "Available"
        used = p.tag in self.offer.used
        if not used and (offered_property.get("context") or context) != context:
            return "not", shown, f"context {context} is asked"
        measured = used and not self.strict and p.get("metric") is None and offered_property.get("metric") in _MEASURED
        per = 1 if measured else self.converted(p.get("metric"), offered_property.get("metric"))
        if isinstance(per, str):
            return "not", shown, per
        scale = _scale(p, offered_property)
        if scale is None:
            self.findings.add("SSS419", p.tag, f"{condition_text(p)} cannot be compared with {shown}: the units differ")
            return "not", shown, "the units differ"
        if per == 1 and scale == (1, 1):
            return self.compared(p, offered, wanted_number, shown, measured)
        return self.compared(p, Fraction(offered) * per * scale[1], Fraction(wanted_number) * scale[0], shown, measured)

    def compared(self, p: Property, offered: Fraction | Decimal, wanted_number: Fraction | Decimal, shown: str,
                 measured: bool = False) -> tuple[State, str, str]:
        """Two numbers in one unit. measured: the one offered is an average or extreme of what was used."""
        op, why = p.op, ""
        if not self.literal and is_capacity(p):
            state, why = _room(op or "EQ", offered, wanted_number, p.tag in _WHOLE)
            return state, shown, why
        if op == "EQ" and measured:
            op, why = "LE", "what was measured lies within what was asked"
        elif op == "EQ" and p.tag == "Duration" and p.tag in self.offer.used and not self.strict:
            op, why = "LE", "the Duration requested is a limit"
        elif op == "EQ" and self.part and is_amount(p.tag):
            op, why = "GE", "a part of the whole"
        if op not in SIGNS:
            return "not", shown, f"op {op} is not known"
        if _compare(op, offered, wanted_number):
            return "met", shown, why
        if op == "EQ" and not why and is_amount(p.tag) and offered > wanted_number:
            why = "EQ asks for just so much, GE for at least"
        return "not", shown, why

    def converted(self, wanted_metric: str | None, offered_metric: str | None) -> Fraction | int | str:
        """What the amount offered is multiplied with to be of the kind that is asked for; a text says why not."""
        wanted_metric, offered_metric = wanted_metric or "Total", offered_metric or "Total"
        if wanted_metric == offered_metric or (wanted_metric, offered_metric) == ("PerChunk", "PerNode"):
            return 1        # a chunk is on one node
        factor = Fraction(1)
        for metric, power in ((offered_metric, 1), (wanted_metric, -1)):
            if metric == "Total":
                continue
            what = per_of(metric)
            if what is None:
                other = wanted_metric if metric == offered_metric else offered_metric
                return f"metric {metric} cannot be compared with {other}"
            total = self._count(what, power < 0)
            if not total:
                return f"the offer does not say how many {what}"
            factor *= Fraction(total) ** power
        return factor

    def _count(self, what: str, asked: bool) -> Decimal | int | None:
        """How many nodes, processors, chunks or GPUs an amount is spread over. asked: it is the amount that is asked
        for. A node holds its memory for itself, so that what a node is to have is held against a node of the offer;
        what a processor is to have can come from anywhere, and only the request knows for how many."""
        if self.literal:
            return self.offer.total(what)
        mine, theirs = self.counts.get(what), self.offer.total(what)
        if asked and what == "processors":
            return mine or 1        # as the totals of a request have it that says no number of them
        return mine or theirs if asked and (self.part or what != "nodes") else theirs or mine


#: Whole things; of which every place that offers anything has one.
_WHOLE: Final = frozenset(e.name for e in ROWS.values() if e.type == "Integer" and e.amount)
_ONE_AT_LEAST: Final = ("NodeCount", "Processors")


def is_capacity(p: Property) -> bool:
    """Whether an offer of this says up to how much there is."""
    row = ROWS.get(p.tag)
    return row is not None and (row.amount or row.type == "Duration") and p.tag not in SETS and number_of(
        p.value) is not None


def _room(op: str, offered: Fraction | Decimal, wanted_number: Fraction | Decimal, whole: bool) -> tuple[State, str]:
    """Whether some amount up to the one offered satisfies a condition, and why not."""
    if op in ("EQ", "GE", "GT"):
        met = offered > wanted_number if op == "GT" else offered >= wanted_number
        return ("met" if met else "not"), "" if met else "more than is offered"
    least = 1 if whole else 0       # the smallest amount that asks for anything
    if op in ("LE", "LT"):
        met = offered > 0 and (wanted_number >= least if op == "LE" else wanted_number > least)
        return ("met" if met else "not"), "" if met else "no amount is so small"
    if op == "NE":
        met = offered > 0 and not (whole and offered == wanted_number == 1)
        return ("met" if met else "not"), ""
    return "not", f"op {op} is not known"


def _scale(p: Property, offered_property: Property) -> tuple[int, int] | None:
    """Factors of the amount wanted and the amount offered that make them comparable; None where nothing does."""
    row = ROWS.get(p.tag)
    default = row.unit if row is not None else None
    wanted_units, offered = p.get("units") or default, offered_property.get("units") or default
    if wanted_units == offered or (wanted_units or "").lower() == (offered or "").lower():
        return 1, 1
    if wanted_units is None or offered is None:
        return None
    try:
        return byte_factor(wanted_units), byte_factor(offered)
    except UnknownUnit:
        return None


def _compare(op: str | None, offered: Fraction | Decimal, wanted_number: Fraction | Decimal) -> bool:
    if op == "EQ" or op == "NE":
        return (offered == wanted_number) == (op == "EQ")
    if op == "LT" or op == "GT":
        return offered < wanted_number if op == "LT" else offered > wanted_number
    return offered <= wanted_number if op == "LE" else offered >= wanted_number


def _meets(wanted_names: NodeSet | Pattern | tuple[str, ...], offered: str | NodeSet) -> bool:
    """Whether any name offered is among those wanted."""
    if not isinstance(wanted_names, NodeSet | tuple):
        return any(map(wanted_names.matches, (offered,) if isinstance(offered, str) else offered))
    if isinstance(offered, str):
        return offered in wanted_names
    if isinstance(wanted_names, tuple):
        return any(name in offered for name in wanted_names)
    small, large = (wanted_names, offered) if wanted_names.count < offered.count else (offered, wanted_names)
    return any(name in large for name in small)


def _names_shown(offered: tuple[tuple[str | NodeSet, int], ...], most: int = 8) -> str:
    shown = [f"{name}{f' x{count}' if count > 1 else ''}" for name, count in offered[:most]]
    return ", ".join(shown) + (f" and {len(offered) - most} more" if len(offered) > most else "")
