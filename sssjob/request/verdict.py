"""Whether an offer meets a request: every level, and what all of them come to.

``match`` is the door. An offer is capacity; ``delivered`` compares literally what was used with what was asked for.
Source: SSS job object 3.1.0, sections 3.0, 8.1 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Final

from sssjob.document.element import Container, Property
from sssjob.document.held import per_of
from sssjob.document.model import Document
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.request.least import least_request
from sssjob.request.levels import Level, Request, requests_in
from sssjob.request.matching import Explanation, Match, Matcher, all_state, is_amount
from sssjob.request.offers import Offer
from sssjob.request.totals import Total, Totals, amount_shown, base_amount, is_gpu, totals_from
from sssjob.request.tree import AllOf, AnyOf, Expression, Node, Not, Predicate
from sssjob.request.widest import node_held, on_nodes

__all__ = ["counts_of", "match", "offered_in_all", "total_held", "ways_of"]

#: How many ways through the alternatives of a request are tried before the least one alone counts.
_WAYS: Final = 64
_COUNTS: Final = ("Processors", "NodeCount")


def match(requested: Document | Container | Expression | Request | Sequence[Request],
          offer: Offer | Document | Container, *,
          delivered: bool = False, strict: bool = False, limits: Limits = LIMITS) -> Match:
    """Whether an offer meets a request, and why.

    requested: a Requested block, a job (with all its levels), a document (all of its jobs, each for itself), or what
    ``parse``, ``request_of`` or ``requests_in`` made, so that it need not be made again for each of many offers.
    By default amounts of the offer are capacity: up to how much there is. Task groups add up, and each task needs a
    processor. delivered: amounts are compared literally, as with what a job was given (section 8.1): EQ is met by
    just so much, but the Duration used may be shorter than the one requested, which is a limit, and an Average, Min or
    Max of what was used may be lower.
    strict: brackets must balance; with delivered, amounts used are compared exactly, and a task group is held only
    against what is offered to it.
    """
    findings = Findings(limits=limits)
    offered = offer if isinstance(offer, Offer) else Offer.of(offer)
    scores: list[Fraction] = []
    parts: list[Explanation] = []
    for request in requests_in(requested, strict=strict, limits=limits):
        findings.extend(request.findings)
        parts += _levels(request, offered, scores, findings, delivered=delivered, strict=strict, limits=limits)
    top = parts[0].parts[0] if len(parts) == 1 else Explanation("all levels", all_state(parts), kind="all",
                                                                parts=tuple(parts))
    score = sum(scores, Fraction(0)) / len(scores) if scores else Fraction(1)
    return Match(top.met, top, score, findings)


def _levels(request: Request, offer: Offer, scores: list[Fraction], findings: Findings, *, delivered: bool,
            strict: bool, limits: Limits) -> Iterator[Explanation]:
    """The explanation of each level of one job, titled with its name; last what all of them come to."""
    simple = delivered or request.simple
    many = len(request.levels) > 1
    for level in request.levels:
        if request.name and many and not level.expression.properties and isinstance(level.expression.root, AllOf) \
                and not level.expression.root.items:
            continue
        matcher = Matcher(*_offer_for(level, offer, strict and delivered), strict=strict, limits=limits,
                          findings=findings, literal=delivered, counts={} if simple else counts_of(request, level))
        explanation = matcher.explain(level.expression.root)
        scores += matcher.scores
        yield _titled(_name(request, level), explanation)
    if not delivered and not simple:
        whole = _in_all(request, offer)
        if whole is not None:
            yield _titled(f"{request.name} in all" if request.name else "In all", whole)


def _name(request: Request, level: Level) -> str:
    if not request.name:
        return level.name
    return request.name if level.name == "Job" else f"{request.name} {level.name}"


def _titled(name: str, part: Explanation) -> Explanation:
    return Explanation(name, part.state, kind="all", parts=(part,))


def _offer_for(level: Level, offer: Offer, strict: bool) -> tuple[Offer, bool]:
    """The offer for one level, and whether it is that of the whole job, of which the level is a part."""
    if level.group is None:
        return offer, False
    if level.group < len(offer.task_groups):
        own = offer.task_groups[level.group]
        shared = {t: ps for t, ps in offer.properties.items() if not is_amount(t)}
        return Offer({**shared, **own.properties}, own.used | (offer.used & shared.keys())), level.task is not None
    if strict:
        return Offer({t: ps for t, ps in offer.properties.items() if not is_amount(t)}, offer.used), False
    return offer, True


# -- what all levels come to
def counts_of(request: Request, level: Level) -> dict[str, int]:
    """How many nodes, processors, chunks and GPUs a level is about."""
    totals = request.totals
    part = None if level.group is None else totals.parts[level.group]
    layout, amounts = (totals.layout, totals.amounts) if part is None else (part.layout, part.amounts)
    counts = {"nodes": layout.node_factor, "processors": layout.processor_total, "chunks": layout.chunks,
              "GPUs": sum(int(total.value) for identity, total in amounts.items() if is_gpu(identity))}
    return {what: count for what, count in counts.items() if count}


def _in_all(request: Request, offer: Offer) -> Explanation | None:
    """What the request comes to against the whole offer: the first way through its alternatives that fits, else the
    least one. None where the conditions of the levels say it all."""
    first: Explanation | None = None
    for totals in ways_of(request):
        explanation = _held(request, totals, offer)
        if explanation is None or explanation.met:
            return explanation
        first = first or explanation
    return first


def ways_of(request: Request) -> Iterator[Totals]:
    """The totals of each way through the alternatives; the least one first."""
    yield request.totals
    choices = []
    for level in request.levels:
        conjunctions = list(islice(_conjunctions(level.expression.root), _WAYS))
        choices.append([(level, conjunction) for conjunction in conjunctions])
    for choice in islice(product(*choices), _WAYS) if any(len(c) > 1 for c in choices) else ():
        values: dict[tuple[int | None, int | None], list[Property]] = {}
        possible = True
        for level, conjunction in choice:
            least = least_request(Expression(AllOf(conjunction)))
            possible = possible and least.possible
            values[level.group, level.task] = [single.property for single in least.values]
        if possible:
            yield totals_from(request, values)


def _conjunctions(node: Node) -> Iterator[tuple[Predicate | Not, ...]]:
    """The ways to satisfy a tree, each as the conditions that have to hold together; wishes are none."""
    if isinstance(node, Predicate | Not):
        yield (node,)
    elif isinstance(node, AllOf):
        for combination in product(*(list(islice(_conjunctions(item), _WAYS)) for item in node.items)):
            yield tuple(condition for part in combination for condition in part)
    elif isinstance(node, AnyOf) or node.required:
        for item in node.items:
            yield from _conjunctions(item)
    else:
        yield ()


def _held(request: Request, totals: Totals, offer: Offer) -> Explanation | None:
    """Every total that no single condition says, against what is offered in all, and the widest places against a node.
    """
    if not totals.possible:
        return Explanation("the conditions contradict each other", "not")
    held = [*(total_held(total, offer) for total in totals.all() if not total.plain),
            *(node_held(need, offer) for need in on_nodes(request, totals))]
    parts = [explanation for explanation in held if explanation is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return Explanation("all of", all_state(parts), kind="all", parts=tuple(parts))


def total_held(total: Total, offer: Offer) -> Explanation | None:
    """One amount of a whole request against what is offered of it in all; None where every offer is enough."""
    tag, name, kind = total.identity
    text = f"{' '.join(filter(None, (tag, name, kind)))} >= {amount_shown(total.value, total.units)}"
    why = total.origin if total.known else f"at least {total.origin}"
    offered = offered_in_all(total, offer)
    if offered is None and tag in _COUNTS and total.value <= 1:
        return None
    if offered is None:
        return Explanation(text, "absent", "", f"{why}; nothing offered")
    return Explanation(text, "met" if offered >= total.value else "not",
                       amount_shown(offered, total.units), why)


def offered_in_all(total: Total, offer: Offer) -> Fraction | None:
    """How much of an amount is offered in all, in the unit of the total; of several statements the greatest, None where
    none is made."""
    tag, name, kind = total.identity
    if tag in _COUNTS:
        count = offer.total("processors" if tag == "Processors" else "nodes")
        return None if count is None else Fraction(count)
    amounts = [whole_amount for p in _of_offer(offer, tag, name, kind)
               if (whole_amount := _whole_amount(p, total, offer)) is not None]
    return max(amounts, default=None)


def _of_offer(offer: Offer, tag: str, name: str | None, kind: str | None) -> Sequence[Property]:
    own = offer.all(tag, name, kind)
    return own if own else [p for group in offer.task_groups for p in group.all(tag, name, kind)]


def _whole_amount(p: Property, total: Total, offer: Offer) -> Fraction | None:
    amount = base_amount(p)
    if amount is None or (amount[1] or "").lower() != (total.units or "").lower():
        return None
    what = per_of(p.attributes.get("metric"))
    if what is None:
        return amount[0]
    count = offer.total(what)
    return None if count is None else amount[0] * Fraction(count)
