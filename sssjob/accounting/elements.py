"""Arrays in money: each element costs what it does as the job of its own that it is in records.

A document that was run says of each element when it started and ended (Extension ``ArrayElement``, of type LRM), beside
the sum of their Durations and the Processors of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from sssjob.accounting.amounts import Reason
from sssjob.accounting.charges import Charge, Item, Uncharged
from sssjob.accounting.facts import Note
from sssjob.accounting.rates import RateSet
from sssjob.document.arrays import Array
from sssjob.document.element import Item as Part
from sssjob.document.element import Property, new_property
from sssjob.document.model import Delivered, Job
from sssjob.document.outlines import Outline
from sssjob.limits import LIMITS

__all__ = ["elements_of", "lists_elements", "native_ids_of", "repeated", "runs_of", "together"]

#: What a document says of all elements together, and of none of them.
_SUMMED: Final = ("CpuDuration", "SuspendDuration", "Energy")
#: Properties of the whole that each element has of its own.
_OWN: Final = ("StartTime", "EndTime", "ExitCode", "StatusMessage")


class _Element(NamedTuple):
    """An element that ran. start, end: epoch seconds; message: why it ended as it did; the others as they are said,
    empty where they are not."""

    start: int
    end: int
    message: str
    array_index: str
    native_id: str
    exit_code: str


def elements_of(job: Job, rates: RateSet) -> list[Job]:
    """The elements that ran of an array that was run, as jobs; none where the job is no such array, where its elements
    do not say when they ran, or where the rates price what only their sum is known of."""
    return [element for element, _ in _jobs(job, rates)]


def runs_of(job: Job, rates: RateSet) -> list[Job]:
    """The jobs that a ledger charges for one: those of the elements that ran of an array that was run, each under its
    native id, as it is in records; the job itself where it is no such array, where an element does not say its native
    id, or where only the sum over them can be priced."""
    runs = [] if rates.profile == "gold" else _jobs(job, rates)
    if not runs or not all(element.native_id for _, element in runs):
        return [job]
    for run, element in runs:
        facts = {"NativeId": element.native_id, "ArrayIndex": element.array_index}
        run.items[:] = [*(part for part in run.items if not _is_fact(part, facts)),
                        *(new_property("Extension", text, {"type": "LRM", "name": name})
                          for name, text in facts.items())]
        if element.exit_code.isdecimal():
            run.items.append(new_property("ExitCode", int(element.exit_code)))
        run.line = job.line
    return [run for run, _ in runs]


@lru_cache(maxsize=1 << 12)
def lists_elements(outline: Outline) -> bool:
    """Whether jobs of an outline may be arrays that were run."""
    return any(outline.fields[place].attributes.get("name") == "ArrayElement" for place in outline.extensions)


def _is_fact(part: Part, names: Collection[str]) -> bool:
    return isinstance(part, Property) and part.tag == "Extension" and part.attributes.get("name", "") in names


def native_ids_of(job: Job) -> list[str]:
    """The native ids of the elements that ran of an array that was run, as far as it says them."""
    return [element.native_id for element in _ran(_lines(job)) if element.native_id]


def _lines(job: Job) -> list[str]:
    """What an array that was run says of its elements, a line each."""
    return [item.text for item in job.items if item.tag == "Extension" and isinstance(item, Property)
            and item.attributes.get("name") == "ArrayElement" and item.attributes.get("type") == "LRM"]


def _jobs(job: Job, rates: RateSet) -> list[tuple[Job, _Element]]:
    """As ``elements_of``, each with what is said of it."""
    lines = _lines(job)
    delivered = job.delivered if lines else None
    if delivered is None or job.value("State") != "Completed" or _by_sums(rates, (*job.items, *delivered.items)):
        return []
    ran = list(_ran(lines))
    total = delivered.value("Duration")
    if not ran or total != sum(element.end - element.start for element in ran):
        return []
    kept = [part for part in job.items if part.tag not in (*_OWN, "Delivered") and not _is_line(part)]
    held = [part for part in delivered.items if part.tag != "Duration"]
    return [(_job(element, kept, held), element) for element in ran]


def _by_sums(rates: RateSet, parts: Iterable[Part]) -> bool:
    """Whether the rates price what is said of all elements together."""
    stated = {name for part in parts if isinstance(part, Property) for name in (part.tag, part.attributes.get("name"))}
    return any(rate.canonical in _SUMMED and rate.canonical in stated
               for prices in rates.prices for rate in prices.rates)


def _is_line(part: Part) -> bool:
    return isinstance(part, Property) and part.attributes.get("name") == "ArrayElement"


def _ran(lines: Iterable[str]) -> Iterator[_Element]:
    """The elements that ran, of ``3 Completed NativeId=17 ExitCode=0 StartTime=... EndTime=... StatusMessage=...``."""
    for line in lines:
        words, _, message = line.partition(" StatusMessage=")
        index, *pairs = words.split() or [""]
        facts = dict(word.split("=", 1) for word in pairs if "=" in word)
        start, end = facts.get("StartTime", ""), facts.get("EndTime", "")
        if start.isdecimal() and end.isdecimal() and int(start) <= int(end):
            yield _Element(int(start), int(end), message, index, facts.get("NativeId", ""), facts.get("ExitCode", ""))


def _job(element: _Element, kept: Sequence[Part], held: Sequence[Part]) -> Job:
    """An element as a job. kept, held: what it has in common with the others, as they stand in the job and in
    Delivered."""
    own = [new_property("StartTime", element.start), new_property("EndTime", element.end)]
    if element.message:
        own.append(new_property("StatusMessage", element.message))
    duration = new_property("Duration", element.end - element.start)
    return Job([*kept, *own, Delivered([*held, duration])])


def together(prices: Sequence[Charge | Uncharged]) -> Charge | Uncharged:
    """What elements come to; those without a charge are noted, and where none has one that is why there is none."""
    charges = [price for price in prices if isinstance(price, Charge)]
    if not charges:
        return prices[0]
    alike = Counter((charge.arithmetic, charge.amount) for charge in charges)
    first = {(charge.arithmetic, charge.amount): charge for charge in reversed(charges)}
    with localcontext(prec=200):
        amount = sum((charge.amount for charge in charges), Decimal(0))
    notes = [*dict.fromkeys(note for price in prices for note in price.notes)]
    reasons = Counter(str(price.reason) for price in prices if isinstance(price, Uncharged))
    notes += [Note("SSS504", "Array", f"{count} of {len(prices)} elements are not charged: {reason}")
              for reason, count in sorted(reasons.items())]
    return replace(charges[0], amount=amount,
                   exact=sum((charge.exact for charge in charges), Fraction(0)),
                   arithmetic=" + ".join(_times(count, text) for (text, _), count in alike.items()),
                   rounding=f"{charges[0].rounding}, of each element" if len(charges) > 1 else charges[0].rounding,
                   items=tuple(item for key, count in alike.items() for item in _repeated(first[key].items, count)),
                   notes=tuple(notes),
                   unsaid=tuple(dict.fromkeys(label for charge in charges for label in charge.unsaid)))


def _times(count: int, text: str) -> str:
    return text if count == 1 else f"{count} [elements] * ({text})"


def _repeated(items: Iterable[Item], count: int) -> Iterator[Item]:
    for item in items:
        yield replace(item, arithmetic=_times(count, item.arithmetic), value=item.value * count)


def repeated(of_element: Charge, text: str) -> Charge | Uncharged:
    """What an array will cost. of_element: what an element will; text: that of the array."""
    try:
        array = Array.of(text)
    except ValueError as error:
        return Uncharged(Reason.NOT_A_NUMBER, str(error), of_element.notes)
    if array.size > LIMITS.array_elements:
        return Uncharged(Reason.TOO_LARGE, f"the array has more elements than the limit array_elements "
                         f"({LIMITS.array_elements})", of_element.notes)
    count = len(array.indices)
    if count == 1:
        return of_element
    with localcontext(prec=200):
        amount = of_element.amount * count
    return replace(of_element, amount=amount, exact=of_element.exact * count,
                   rounding=f"{of_element.rounding}, of each element",
                   arithmetic=_times(count, of_element.arithmetic))
