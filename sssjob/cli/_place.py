"""One offer of a site for one document: whether it meets, what it costs there, and why, in words and as a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sssjob.findings import escape
from sssjob.request import Verdict
from sssjob.request.changing import smallest_change

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document

__all__ = ["Place"]


@dataclass(slots=True)
class Place:
    """One offer of a site, and what is known of the document there. wanted: the document as it is read for the site;
    queue: that of the offer; prices: of each job, None where nothing says it, why: then the reason, and price: of all
    jobs, None where that of one is not known; start: when it would start, in seconds since the epoch, None where nobody
    says it, why_no_start: then the reason; failures: the share of the jobs that were sent to the site lately and that
    it refused; value: by which it is ranked; turn: how often others of its group go first there."""

    site: Site
    path: str
    name: str
    queue: str | None
    wanted: Document = field(repr=False)
    verdict: Verdict
    prices: tuple[Decimal | None, ...]
    price: Decimal | None
    currency: str
    why: str
    start: float | None = None
    why_no_start: str = ""
    failures: float = 0.0
    value: Fraction = Fraction(0)
    turn: int = 0

    @property
    def met(self) -> bool:
        """Whether the offer meets the document."""
        return self.verdict.met

    def going(self) -> Document:
        """The document as it goes there."""
        from sssjob.run.choosing import placed

        return placed(self.wanted, self.queue, self.site.machine)

    def record(self, rank: int | None, now: float) -> dict[str, Any]:
        """As a JSON object; rank: its place among those that meet, None where it does not."""
        changes = None if self.met else self.changes()
        return {"type": "result", "rank": rank, "site": self.site.name, "offer": self.name, "met": self.met,
                "score": float(self.verdict.score), "value": float(self.value) if self.met else None,
                "price": None if self.price is None else str(self.price),
                "currency": self.currency or None, "why_no_price": self.why or None,
                "starts_in": None if self.start is None else round(max(self.start - now, 0.0)),
                "why_no_start": self.why_no_start or None, "failures": self.failures, "turn": self.turn,
                "changes": changes, "explanation": asdict(self.verdict.answer().explanation)}

    def lines(self, rank: int | None, *, explain: bool, change: bool, now: float) -> Iterator[str]:
        """For people: a line, with the conditions that fail; explain: below it all of them; change: the smallest change
        with which the offer meets. now: seconds since the epoch."""
        name = f"{escape(self.site.name)}, {escape(self.name)}"
        if rank is None:
            yield f"-  {name}: not met: {self._failing()}"
            if change:
                changes = self.changes()
                yield f"     {_would_meet(changes)}"
        else:
            yield f"{rank}. {name}: met, {', '.join(self.known(now))}"
        if explain:
            yield from (f"     {escape(line, 1000)}" for line in self.verdict.answer().lines())

    def known(self, now: float) -> Iterator[str]:
        """What it is ranked by, in words. now: seconds since the epoch."""
        yield f"preference {float(self.verdict.score):g}"
        if self.value is not self.verdict.score and self.value != self.verdict.score:
            yield f"value {float(self.value):g}"
        if self.failures:
            yield f"refused {self.failures:.0%} of late"
        yield f"no price ({escape(self.why)})" if self.price is None else f"{self.price} {self.currency}"
        if self.turn:
            yield f"room in turn {self.turn + 1} of the group"
        if self.start is not None:
            yield f"starts in {max(self.start - now, 0.0):.0f} s"
        elif self.why_no_start:
            yield f"start not known ({escape(self.why_no_start)})"

    def _failing(self) -> str:
        conditions = self.verdict.answer().explanation.failing()
        return escape("; ".join(condition.sentence() for condition in conditions), 1000)

    def changes(self) -> list[str] | None:
        """The smallest change with which the offer meets, in words; None where none is known."""
        words: list[str] = []
        for job, defaults in self.wanted.jobs():
            changes = smallest_change(job, defaults, self.verdict.offer)
            if changes is None:
                return None
            words += [escape(str(change)) for change in changes]
        return list(dict.fromkeys(words)) or None


def _would_meet(changes: list[str] | None) -> str:
    """The sentence of the changes with which an offer meets."""
    if changes is None:
        return "no change of single values meets"
    last = sorted(changes, key=lambda change: change.startswith("without "))
    return f"it would meet {'' if last[0].startswith('without ') else 'with '}{'; '.join(last)}"
