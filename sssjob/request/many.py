"""One request against many offers: each condition is evaluated once for each different thing that is offered for it.

``Offers`` numbers what a list of offers says under each name. ``verdicts`` asks ``Matcher`` about one offer of each
kind (of kinds that differ in one number alone no more than it takes to see where the answer changes) and combines the
answers. Whether an offer meets, and its score, are what ``match`` says of it; the explanation of a verdict is that of
``match`` itself, made when somebody asks for it.
Source: SSS job object 3.1.0, sections 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from operator import and_, or_
from typing import Any, Final

from sssjob.document.element import Container, Property
from sssjob.document.held import per_of
from sssjob.document.model import Document
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.request.levels import Level, Request, requests_in
from sssjob.request.matching import Explanation, Match, Matcher, is_amount, is_capacity
from sssjob.request.offers import Offer
from sssjob.request.totals import Total
from sssjob.request.tree import NEGATED, AllOf, Expression, Node, Not, Predicate, Preferred, number_of
from sssjob.request.verdict import counts_of, match, total_held, ways_of
from sssjob.request.widest import Need, node_counts, node_held, on_nodes

__all__ = ["Offers", "Verdict", "verdicts"]

#: Answers about kinds that are kept for further requests; beyond it they are forgotten and worked out again.
_ANSWERS: Final = 500_000
#: Before the name of a column that holds how many nodes, processors, chunks or GPUs are offered.
_COUNT: Final = "#"


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What offers say under some names. of: the kind of each offer, numbered from 0; first: one offer of each kind;
    keys: what each kind says, of several columns the numbers of its kinds in each; families: kinds that differ in
    nothing but one number, by that number."""

    of: list[int]
    first: list[int]
    keys: list[Any]
    families: list[list[int]]

    def answers(self, meets: Callable[[int], bool], ordered: bool) -> list[bool]:
        """The answer of each kind. meets: that of one offer; ordered: with the number that tells a family apart the
        answer changes once or not at all, so that those between two equal answers need not be asked for."""
        if not ordered:
            return list(map(meets, self.first))
        answers = [False] * len(self.first)
        for family in self.families:
            low, high = 0, len(family) - 1
            least = meets(self.first[family[low]])
            greatest = least if high == low else meets(self.first[family[high]])
            while least is not greatest and high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if meets(self.first[family[middle]]) is least else (low, middle)
            for place, kind in enumerate(family):
                answers[kind] = least if place <= low else greatest
        return answers


@dataclass(slots=True)
class _Limits:
    """Up to which amount each kind met a condition that asks for at least so much (0: none was asked for), and from
    which one on it did not (None: none was)."""

    most: list[Decimal | Fraction | int]
    least: list[Decimal | Fraction | int | None]

    def answers(self, amount: Decimal | Fraction | int) -> list[bool] | None:
        """The answer of each kind to an amount; None where one is not known."""
        met = [amount <= most for most in self.most]
        return met if met == [least is None or amount < least for least in self.least] else None

    def learn(self, amount: Decimal | Fraction | int, answers: Sequence[bool]) -> None:
        """Note the answer of each kind."""
        for kind, met in enumerate(answers):
            least = self.least[kind]
            if met and amount > self.most[kind]:
                self.most[kind] = amount
            elif not met and (least is None or amount < least):
                self.least[kind] = amount


class Offers:
    """A list of offers, with what they have in common worked out once for all requests that are held against it."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self.offers = tuple(offers)
        #: Those that are judged by their kinds; of the others task groups hold a part of what is offered.
        self.plain = [number for number, offer in enumerate(self.offers)
                      if offer.properties and not offer.task_groups]
        self._kinds: dict[tuple[str, ...], _Kinds] = {}
        self._metrics: dict[str, frozenset[str]] = {}
        self._answers: dict[tuple[object, ...], list[bool]] = {}
        self._limits: dict[tuple[object, ...], _Limits] = {}
        self._kept = 0

    def __len__(self) -> int:
        return len(self.offers)

    def kinds(self, tag: str, counts: Iterable[str] = ()) -> _Kinds:
        """The kinds of the plain offers by what they say under a name, and how many of several there are."""
        columns = (tag, *(f"{_COUNT}{what}" for what in sorted(counts)))
        kinds = self._kinds.get(columns)
        if kinds is None:
            statements: Iterable[object] = (
                self._statements(tag) if len(columns) == 1 else
                zip(*(self.kinds(column).of for column in columns), strict=True))
            of, first, keys = _numbered(statements, self.plain)
            kinds = self._kinds[columns] = _Kinds(of, first, keys, self._families(columns, first, keys))
        return kinds

    def stated(self, number: int, tag: str) -> tuple[Property, ...]:
        """The properties that one offer states under a name, or the number of its nodes where it only names them."""
        offer = self.offers[number]
        properties = offer.properties.get(tag, ())
        if not properties and tag == "NodeCount" and (nodes := offer.total("nodes")) is not None:
            return (Property("NodeCount", int(nodes)),)
        return properties

    def _statements(self, column: str) -> list[object]:
        """All that each plain offer says under a name, or how many it has, as what can be compared."""
        if column[0] == _COUNT:
            return [self.offers[number].total(column[1:]) for number in self.plain]
        statements: list[object] = []
        absent = (False,), (True,)
        for number in self.plain:
            offer = self.offers[number]
            properties = offer.properties.get(column) or (column == "NodeCount" and self.stated(number, column))
            used = column in offer.used
            if not properties:
                statements.append(absent[used])
            elif len(properties) == 1:
                p = properties[0]
                kind = type(p.value)
                whole = kind is str or kind is int
                value = p.value if whole else p.text
                bare = whole and not used and not p.attributes
                statements.append(value if bare else (used, kind, value, *p.attributes.items()))
            else:
                statements.append((used, *((type(p.value), p.text, *p.attributes.items()) for p in properties)))
        return statements

    def _families(self, columns: tuple[str, ...], first: list[int], keys: list[Any]) -> list[list[int]]:
        """Kinds, numbered as in ``first``, that differ only in the amount; or, where that leaves fewer families, only
        in the one count. keys: of the kinds."""
        tag = columns[0]
        if len(columns) == 1:
            amounts = [self._amount(number, tag) for number in first]
            return _ordered([family for _, family in amounts], [amount for amount, _ in amounts])
        amounts = [self._amount(number, tag) for number in self.kinds(tag).first]
        families = _ordered([(amounts[key[0]][1], key[1:]) for key in keys], [amounts[key[0]][0] for key in keys])
        if len(columns) > 2:
            return families
        whats = [what or None for what in self.kinds(columns[1]).keys]
        return min(families, _ordered([key[0] for key in keys], [whats[key[1]] for key in keys]), key=len)

    def _amount(self, number: int, column: str) -> tuple[Decimal | None, object]:
        """The one amount that an offer states under a name, where it is one, and what else it says than the amount."""
        properties = self.stated(number, column) if column[0] != _COUNT else ()
        amount = number_of(properties[0].value) if len(properties) == 1 and type(
            properties[0].value) is not str else None
        if amount is None:
            return None, None
        return amount, (column in self.offers[number].used, tuple(properties[0].attributes.items()))

    def metrics(self, tag: str) -> frozenset[str]:
        """The metrics of all that is offered under a name; Total where none is stated."""
        metrics = self._metrics.get(tag)
        if metrics is None:
            metrics = self._metrics[tag] = frozenset(
                p.get("metric") or "Total" for first in self.kinds(tag).first for p in self.stated(first, tag))
        return metrics

    def answers(self, key: tuple[object, ...], amount: Decimal | Fraction | int | None) -> list[bool] | None:
        """The answers of all kinds to a condition; None where they have to be worked out. amount: at least so much is
        asked for, so that an offer that met more meets it too; None where that does not hold."""
        if amount is None:
            return self._answers.get(key)
        limits = self._limits.get(key)
        return None if limits is None else limits.answers(amount)

    def keep(self, key: tuple[object, ...], amount: Decimal | Fraction | int | None, answers: list[bool]) -> None:
        """Keep the answers of all kinds to a condition for further requests."""
        if amount is not None and key in self._limits:
            self._limits[key].learn(amount, answers)
            return
        self._kept += len(answers)
        if self._kept > _ANSWERS:
            self._answers.clear()
            self._limits.clear()
            self._kept = len(answers)
        if amount is None:
            self._answers[key] = answers
        else:
            self._limits[key] = _Limits([0] * len(answers), [None] * len(answers))
            self._limits[key].learn(amount, answers)


def _numbered(keys: Iterable[object], offers: list[int]) -> tuple[list[int], list[int], list[object]]:
    """The number of each key, those that are equal having one; the first offer of each number; and its key."""
    numbers: dict[object, int] = {}
    of = [numbers.setdefault(key, len(numbers)) for key in keys]
    first = dict(zip(reversed(of), reversed(offers), strict=True))
    return of, [first[kind] for kind in range(len(numbers))], list(numbers)


def _ordered(beside: list[object], numbers: list[Decimal | None]) -> list[list[int]]:
    """Kinds by what they say beside a number, in the order of their numbers; one without is a family of its own."""
    families: dict[object, list[int]] = {}
    for kind, (other, number) in enumerate(zip(beside, numbers, strict=True)):
        families.setdefault((kind if number is None else None, other), []).append(kind)
    for members in families.values():
        if len(members) > 1:
            members.sort(key=lambda kind: numbers[kind] or 0)
    return list(families.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one offer. met, score: as of a Match, which ``answer`` makes with its explanation;
    requests: what is asked for."""

    offer: Offer
    met: bool
    score: Fraction
    requests: Sequence[Request] = field(repr=False)

    def answer(self) -> Match:
        """The same with the explanation."""
        return match(self.requests, self.offer)


def verdicts(requested: Document | Container | Expression | Request | Sequence[Request], offers: Offers, *,
             findings: Findings | None = None) -> list[Verdict]:
    """The verdict of each offer, in their order: what ``match`` says of it where amounts offered are capacity.

    requested: as of ``match``. findings: get what is wrong in the request, and what cannot be compared.
    """
    requests = tuple(requests_in(requested))
    findings = Findings() if findings is None else findings
    columns = _Columns(offers, findings)
    for request in requests:
        findings.extend(request.findings)
        columns.take(request)
    by_offer: list[Verdict | None] = [None] * len(offers)
    for number, met, score in zip(offers.plain, columns.met, columns.shares(), strict=True):
        by_offer[number] = Verdict(offers.offers[number], met, score, requests)
    for number, verdict in enumerate(by_offer):
        if verdict is None:
            answer = match(requests, offers.offers[number])
            findings.extend(answer.findings)
            by_offer[number] = Verdict(offers.offers[number], answer.met, answer.score, requests)
    return [verdict for verdict in by_offer if verdict is not None]


class _Columns:
    """Answers of all plain offers, a column of them for each condition. met: whether every request is; scores: the
    weight that each offer satisfies, and the whole weight, of each preference."""

    def __init__(self, offers: Offers, findings: Findings) -> None:
        self.offers, self.findings = offers, findings
        self.met = [True] * len(offers.plain)
        self.scores: list[tuple[list[int], int]] = []

    def take(self, request: Request) -> None:
        """Hold one request against all offers."""
        simple = request.simple
        for level in request.levels:
            counts = {} if simple else counts_of(request, level)
            self.met = list(map(and_, self.met, self._column(level.expression.root, level, counts)))
        if not simple:
            self.met = list(map(and_, self.met, self._in_all(request)))

    def shares(self) -> Iterator[Fraction]:
        """The score of each offer: the mean share of the weights that it satisfies, 1 without preferences."""
        if not self.scores:
            return iter((Fraction(1),) * len(self.met))
        totals = [total for _, total in self.scores]
        shares: dict[tuple[int, ...], Fraction] = {}

        def share(*weights: int) -> Fraction:
            """The mean share of these weights in the totals; equal ones are worked out once."""
            if weights not in shares:
                shares[weights] = sum(map(Fraction, weights, totals), Fraction(0)) / len(totals)
            return shares[weights]

        return map(share, *(weights for weights, _ in self.scores))

    def _column(self, node: Node, level: Level, counts: dict[str, int]) -> list[bool]:
        """Whether each offer meets a part of the tree; its depth is bounded by ``limits.group_depth``."""
        if isinstance(node, Predicate | Not):
            return self._condition(node, level, counts)
        parts = [self._column(item, level, counts) for item in node.items]
        if isinstance(node, Preferred):
            weights = list(map(abs, node.weights))
            satisfied = [sum(weight for weight, met in zip(weights, row, strict=True) if met)
                         for row in zip(*parts, strict=True)]
            self.scores.append((satisfied, sum(weights)))
            if not node.required:
                return [True] * len(self.met)
        column, combine = ([True] * len(self.met), and_) if isinstance(node, AllOf) else ([False] * len(self.met), or_)
        for part in parts:
            column = list(map(combine, column, part))
        return column

    def _condition(self, node: Predicate | Not, level: Level, counts: dict[str, int]) -> list[bool]:
        predicate = node.item if isinstance(node, Not) else node
        p, part = predicate.property, level.group is not None
        needed = self._needed(p.tag, p.get("metric")) if is_amount(p.tag) else ()
        ordered = is_capacity(p) and (p.op or "EQ") in NEGATED
        amount = _at_least(node, p) if ordered else None
        key = (isinstance(node, Not), predicate.implied, part, p.tag, type(p.value), p.text if amount is None else None,
               *p.attributes.items(), *((what, counts.get(what)) for what in sorted(needed)))
        kinds = self.offers.kinds(p.tag, needed)
        answers = self.offers.answers(key, amount)
        if answers is None:
            before = len(self.findings)
            answers = kinds.answers(lambda number: Matcher(
                self.offers.offers[number], part, strict=False, limits=LIMITS, findings=self.findings, literal=False,
                counts=counts).explain(node).met, ordered)
            if len(self.findings) == before:        # else each request is to be told
                self.offers.keep(key, amount, answers)
        return list(map(answers.__getitem__, kinds.of))

    def _needed(self, tag: str, metric: str | None) -> set[str]:
        """How many of what there are decides on an amount too: of nothing where all is of one metric, and is compared
        as it stands."""
        metrics = {metric or "Total", *self.offers.metrics(tag)}
        return set(filter(None, map(per_of, metrics))) if len(metrics) > 1 else set()

    def _in_all(self, request: Request) -> list[bool]:
        """Whether each offer is enough for what all levels come to on some way through the alternatives."""
        enough = [False] * len(self.met)
        for totals in ways_of(request):
            if totals.possible:
                column = [True] * len(self.met)
                for total in totals.all():
                    if not total.plain:
                        column = list(map(and_, column, self._total(total)))
                for need in on_nodes(request, totals):
                    column = list(map(and_, column, self._need(need)))
                enough = list(map(or_, enough, column))
            if all(enough):
                break
        return enough

    def _total(self, total: Total) -> list[bool]:
        """Whether each offer is enough for one amount of the whole request."""
        tag = total.identity[0]
        return self._held(self.offers.kinds(tag, self._needed(tag, None)),
                          ("in all", total.identity, total.units), total.value, lambda offer: total_held(total, offer))

    def _need(self, need: Need) -> list[bool]:
        """Whether the nodes of each offer have room for some places."""
        tag = need.identity[0]
        key = ("on nodes", need.identity, need.units, need.places, need.stated and need.value)
        return self._held(self.offers.kinds(tag, node_counts(tag)), key, None if need.stated else need.value,
                          lambda offer: node_held(need, offer))

    def _held(self, kinds: _Kinds, key: tuple[object, ...], amount: Fraction | None,
              hold: Callable[[Offer], Explanation | None]) -> list[bool]:
        """Whether each offer is enough. kinds: those that decide; key: what is asked, and amount: how much of it, as of
        ``Offers.answers``; hold: whether one is."""
        exact = None if amount is None else int(amount) if amount.denominator == 1 else amount
        answers = self.offers.answers(key, exact)
        if answers is None:
            answers = kinds.answers(lambda number: (held := hold(self.offers.offers[number])) is None or held.met, True)
            self.offers.keep(key, exact, answers)
        return list(map(answers.__getitem__, kinds.of))


def _at_least(node: Predicate | Not, p: Property) -> Decimal | None:
    """How much a condition on an amount asks for, where an offer that meets it also meets it for less; None where that
    does not hold, as for what every offer has one of."""
    op = p.op or "EQ"
    amount = number_of(p.value) if (NEGATED[op] if isinstance(node, Not) else op) in ("EQ", "GE", "GT") else None
    return amount if amount is not None and amount > 1 else None
