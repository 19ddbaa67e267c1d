"""A document that is to be routed, or a part of one, as sites read it: what its jobs ask for, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from sssjob.accounting import Charge, RateSet, Uncharged
from sssjob.cli._prices import quoted
from sssjob.document.arrays import Array, array_of, label_of
from sssjob.document.model import Document, Job, JobDefaults
from sssjob.document.states import waits
from sssjob.request import Request, requests_in

if TYPE_CHECKING:
    from sssjob.accounting.quotes import PlannedQuotation, QuotePlans
    from sssjob.conversion.merging import Part
    from sssjob.request.taking import Taken

#: Of each job, None where it has none; of all of them, None where one has none; their currency; why one has none.
_Prices = tuple[tuple[Decimal | None, ...], Decimal | None, str, str]


@dataclass(slots=True)
class Reading:
    """A part of a document as it is read for some sites. requests: what its jobs ask for; quotations: of each job;
    jobs, numbers: as of ``Routing``; at: by queue, the quotations of the part as it goes to that queue; prices: by the
    digest of rates, and the queue if they go by it."""

    document: Document
    requests: tuple[Request, ...]
    quotations: list[PlannedQuotation]
    jobs: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    at: dict[str, list[PlannedQuotation]] = field(default_factory=dict)
    prices: dict[tuple[str, str | None], _Prices] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Document, part: Part, plans: QuotePlans) -> Reading:
        """Of a part, of which the document is what is to be submitted."""
        from sssjob.accounting.quotes import PlannedQuotation

        requests = tuple(requests_in(document))
        jobs = list(document.jobs())
        return cls(document, requests, [
            PlannedQuotation.of(plans, job, defaults, request if waits(job.value("State")) else None)
            for (job, defaults), request in zip(jobs, requests if jobs else (), strict=True)],
            _names(part), part.places)

    def priced(self, rates: RateSet | None, queue: str | None = None) -> _Prices:
        """What each job costs by the rates of a site, in a queue if one is named; rates that say the same are asked
        once."""
        if rates is None:
            return (), None, "", "the profile names no rates"
        key = rates.digest, queue
        if key not in self.prices:
            self.prices[key] = _prices(rates, self.quotations if queue is None else self._quotations_in(queue))
        return self.prices[key]

    def side_by_side(self) -> Taken:
        """What its jobs take when they begin: those that wait for others of them take nothing yet, and of an array as
        many elements count as may run at a time."""
        from sssjob.document.graph import Dependencies
        from sssjob.request.taking import Taken

        waiting = {link.job for group in self.document.groups() for link in Dependencies.of(group).links if link.needs}
        jobs = list(self.document.jobs())
        return Taken.of((request, _at_once(*jobs[number]) if jobs else 1)
                        for number, request in enumerate(self.requests) if number not in waiting)

    def _quotations_in(self, queue: str) -> list[PlannedQuotation]:
        """Of each job as it goes to a queue."""
        from sssjob.accounting.quotes import PlannedQuotation
        from sssjob.run.choosing import placed

        if queue not in self.at:
            plans = self.quotations[0].plans
            self.at[queue] = [PlannedQuotation.of(plans, *each) for each in placed(self.document, queue).jobs()]
        return self.at[queue]


def _prices(rates: RateSet, quotations: Iterable[PlannedQuotation]) -> _Prices:
    """What each job of a document would cost by the rates of a site, in which currency, and why one cannot be quoted.
    Where the rates go by the time of day, jobs start now."""
    amounts: list[Decimal | None] = []
    why = ""
    for planned in quotations:
        price = planned.amount(rates)
        if isinstance(price, Decimal):
            amounts.append(price)
        else:
            amount, why_not = _in_words(quoted(planned.quotation, rates)[0] if price is None else price)
            amounts.append(amount)
            why = why or why_not
    priced = [amount for amount in amounts if amount is not None]
    return tuple(amounts), None if why else sum(priced, Decimal(0)), rates.currency, why


def _in_words(charge: Charge | Uncharged) -> tuple[Decimal | None, str]:
    """The amount of a charge, and why there is none."""
    return (None, f"{charge.reason}: {charge.detail}") if isinstance(charge, Uncharged) else (charge.amount, "")


def _at_once(job: Job, defaults: JobDefaults | None) -> int:
    """How many elements of a job may run at a time."""
    try:
        array = None if (stated := array_of(job, defaults)) is None else Array.of(stated.text)
    except ValueError:          # it is told when the job is planned
        array = None
    return 1 if array is None else min(array.size, array.throttle or array.size)


def _names(part: Part) -> tuple[str, ...]:
    """What the jobs of a part are called."""
    return tuple(label_of(job, place) for place, (job, _) in zip(part.places, part.document.jobs(), strict=False))
