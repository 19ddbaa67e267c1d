"""``sssjob route``: at which of several sites, and in which queue, a document fits, and which of them is best."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._options import Session, common, pairs
from sssjob.cli._prices import load, quoted, rates_of
from sssjob.cli._profiles import load_site
from sssjob.cli.match import offered
from sssjob.cli.offers import SilentError, ask
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.request import Verdict

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The answer of one offer of a site. price: what the document would cost there, None where nothing says it; why:
    then the reason."""

    site: str
    offer: str
    verdict: Verdict
    price: Decimal | None
    currency: str
    why: str

    def record(self, rank: int | None) -> dict[str, Any]:
        """As a JSON object; rank: its place among those that meet, None where it does not."""
        return {"type": "result", "rank": rank, "site": self.site, "offer": self.offer, "met": self.verdict.met,
                "score": float(self.verdict.score), "price": None if self.price is None else str(self.price),
                "currency": self.currency or None,
                "why_no_price": self.why or None, "explanation": asdict(self.verdict.answer().explanation)}

    def lines(self, rank: int | None, explain: bool) -> Iterator[str]:
        """For people: a line, with the conditions that fail; below it, with explain, all of them."""
        name = f"{escape(self.site)}, {escape(self.offer)}"
        if rank is not None:
            price = f", no price ({escape(self.why)})" if self.price is None else f", {self.price} {self.currency}"
            yield f"{rank}. {name}: met, preference {float(self.verdict.score):g}{price}"
        else:
            yield f"-  {name}: not met: {self._failing()}"
        if explain:
            yield from (f"     {escape(line, 1000)}" for line in self.verdict.answer().lines())

    def _failing(self) -> str:
        conditions = self.verdict.answer().explanation.failing()
        return escape("; ".join(condition.sentence() for condition in conditions), 1000)


@click.command("route")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--offers", "given", multiple=True, metavar="SITE=FILE",
              help="What a site offers (may repeat): the name or file of its profile, and its offers in any format.")
@click.option("--site", "asked", multiple=True, metavar="SITE",
              help="A site whose manager is asked what it offers (may repeat): the name or file of its profile.")
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", help="Format of FILE (default: auto).")
@click.option("--explain", is_flag=True, help="Every condition with what was offered for it, met or not.")
@common
def command(session: Session, file: str, given: tuple[str, ...], asked: tuple[str, ...], source: str,
            explain: bool) -> int:
    """Say of every offer of every site whether it meets what FILE requests, the best one first.

    Those that meet are ranked by the share of the preferences that they meet, then by price (of the rates that the
    profile names; only where all prices are in one currency; a site without a price comes after those with one), then
    in the order given, those of --site last. Nothing is submitted. Exit status 0: one of them meets, 1: none does, 4:
    none does, and a manager gave no answer.
    """
    files: Mapping[str, str] = pairs(given, "--offers")
    sites: dict[str, str | None] = {**files, **dict.fromkeys(asked)}
    if len(sites) < len(given) + len(asked):
        raise UsageError("a site is named twice")
    if not sites:
        raise UsageError("no site to choose from: --site SITE asks one, --offers SITE=FILE says what one offers")
    once([file, *files.values()])
    data = read_bytes(file)
    verdicts: list[_Verdict] = []
    silent = False
    for name, offers in sites.items():
        session.site, session.site_path = load_site(name)
        assert session.site is not None
        wanted = session.swept(session.read(file, data, source=source))
        try:
            machine = ask(session.site, session.site_path) if offers is None else session.swept(
                session.read(offers, source=AUTO))
        except SilentError as error:
            problem(str(error), as_json=session.as_json, status=4)
            silent = True
            continue
        if session.errors:
            return session.status()
        verdicts += _verdicts(session, wanted, machine, session.site.name, offers or session.site.name)
        if session.errors:
            return session.status()
    meeting = _ranked([verdict for verdict in verdicts if verdict.verdict.met])
    _tell(session, meeting, [verdict for verdict in verdicts if not verdict.verdict.met], explain)
    return session.status() or (0 if meeting else 4 if silent else 1)


def _verdicts(session: Session, wanted: Document, machine: Document, site: str, path: str) -> Iterator[_Verdict]:
    """The verdict of each offer of a site; what is wrong in the request is reported."""
    from sssjob.request import Offer, Offers, verdicts

    price, currency, why = _price(session, wanted)
    offers = list(offered(machine, path, True))
    findings = Findings(wanted.path)
    answers = verdicts(wanted, Offers(Offer.of(offer.given) for offer in offers), findings=findings)
    session.report([finding for finding in findings if not session.knows(finding)])
    for offer, verdict in zip(offers, answers, strict=True):
        yield _Verdict(site, offer.job or escape(path), verdict, price, currency, why)


def _price(session: Session, wanted: Document) -> tuple[Decimal | None, str, str]:
    """What all jobs of a document would cost at the site of the session, in which currency, and why there is no price:
    its profile names no rates, or a job cannot be quoted. Where the rates go by the time of day, jobs start now."""
    from sssjob.accounting import Uncharged

    rates = None
    if session.site is not None and session.site.rates is not None:
        rates = load(session, rates_of(session, None), doubts=False)
        session.errors += rates is None
    if rates is None:
        return None, "", "the profile names no rates"
    total = Decimal(0)
    for job, defaults in wanted.jobs():
        price, _ = quoted(job, rates, defaults)
        if isinstance(price, Uncharged):
            return None, rates.currency, f"{price.reason}: {price.detail}"
        total += price.amount
    return total, rates.currency, ""


def _ranked(meeting: list[_Verdict]) -> list[_Verdict]:
    """Those that meet, the best one first."""
    comparable = len({verdict.currency for verdict in meeting if verdict.price is not None}) == 1

    def key(verdict: _Verdict) -> tuple[Any, ...]:
        price = verdict.price if comparable else None
        return -verdict.verdict.score, price is None, price or 0

    return sorted(meeting, key=key)


def _tell(session: Session, meeting: list[_Verdict], others: list[_Verdict], explain: bool) -> None:
    """Write the verdicts: those that meet by rank, then the others as they were given."""
    ranked = [*((verdict, rank) for rank, verdict in enumerate(meeting, 1)), *((verdict, None) for verdict in others)]
    if session.as_json:
        emit("".join(json.dumps(verdict.record(rank)) + "\n" for verdict, rank in ranked))
    else:
        emit("".join(f"{line}\n" for verdict, rank in ranked for line in verdict.lines(rank, explain)))
