"""What ``charge`` and ``quote`` share: the rates, a line or a record a job, and the counts that have to add up."""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from sssjob.accounting import Charge, RatesError, RateSet, Uncharged, read_rates
from sssjob.accounting.amounts import Reason
from sssjob.accounting.arithmetic import plain, rounded
from sssjob.accounting.charges import amount_name, unsaid_sentence
from sssjob.cli._complete import files
from sssjob.cli._files import read_bytes
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, pairs
from sssjob.conversion.converting import AUTO, Options
from sssjob.document.arrays import label_of
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, Locator, Policy, escape
from sssjob.translators.base import ReadContext
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.accounting.pricing import Quotation
    from sssjob.document.model import Document, Job
    from sssjob.translators.records.base import Counts


def rates_option(function: Callable[..., int]) -> Callable[..., int]:
    """``--rates FILE``."""
    return click.option("--rates", "rates_file", metavar="FILE", shell_complete=files,
                        help="The rates, in TOML (default: those that the site profile names).")(function)


def rates_of(session: Session, rates_file: str | None) -> str:
    """The file of the rates: the one that ``--rates`` names, else that of the site profile, which is relative to the
    folder of the profile. Raises UsageError where neither does."""
    if rates_file is not None:
        return rates_file
    if session.site is None or session.site.rates is None:
        raise UsageError("no rates: --rates FILE names them, or the key rates of the profile that --site names")
    return os.path.join(os.path.dirname(session.site_path), session.site.rates)


def load(session: Session, name: str, *, doubts: bool = True) -> RateSet | None:
    """The rates of a file; None when they are wrong, with every problem reported. doubts: also report, as warnings,
    what no job can meet."""
    try:
        rates = read_rates(read_bytes(name), name)
    except RatesError as error:
        for fault in error.problems:
            problem(f"{name}: {fault}", as_json=session.as_json, status=1)
        return None
    if doubts:
        from sssjob.accounting.doubts import doubts as doubtful

        doubts_found = doubtful(rates)
        session.warnings += len(doubts_found)
        for doubt in doubts_found if not session.quiet else ():
            problem(f"{escape(name)}: {doubt} (sssjob rates check)", as_json=session.as_json)
    return rates


def quoted(quotation: Quotation, rates: RateSet, start: int | None = None) -> tuple[Charge | Uncharged, bool]:
    """What a job will be charged, and whether it is as if it started now: the rates go by the time of day, and
    neither the job nor ``start`` (epoch seconds) says when it starts."""
    price = quotation.by(rates, start=start)
    if isinstance(price, Uncharged) and price.reason == Reason.NO_START:
        return quotation.by(rates, start=int(time.time())), True
    return price, False


def options_of(source: str, items: Sequence[str]) -> Options:
    """The values of ``--option``. UsageError for one that a format of logs does not have: such a format asks for all
    of its options when it is opened. Of other formats, and of ``auto``, they are to be checked when it is read."""
    from sssjob.translators.records.base import RecordTranslator

    options = Options(pairs(items, "--option"))
    if source == AUTO:
        return options
    reader = get(source)
    if isinstance(reader, RecordTranslator) and reader.stream is not None:
        reader.stream(io.BytesIO(), ReadContext("-", Findings("-"), options=options.view({})))
        options.check(reader.name)
    elif reader.name == "sss":          # which has none
        options.check(reader.name)
    return options


@contextmanager
def hinted(session: Session, name: str, source: str) -> Iterator[None]:
    """Where a document is expected and none is there, say how records are read."""
    try:
        yield
    except RejectedError as error:
        session.report(error.findings)
        if source == "sss" and any(f.rule == "SSS101" for f in error.findings) and not (session.quiet or
                                                                                       session.as_json):
            say(f"{escape(name)}: if it is a log, --from names its format, as --from sacct, or --from auto")
        raise


def nothing_taken(read: Iterable[Counts]) -> bool:
    """Whether there were records in the logs, and none became a job; of one log among many that is no matter."""
    counts_of_logs = list(read)
    return any(counts.read for counts in counts_of_logs) and not any(counts.given for counts in counts_of_logs)


@dataclass(slots=True)
class PricedJobs:
    """What became of the jobs of a document. what: charged or quoted; places: of what stands in it, if they are known.
    """

    session: Session
    file: str
    what: str
    rates: RateSet
    jobs: int = 0
    done: int = 0
    total: Fraction = Fraction(0)
    reasons: Counter[str] = field(default_factory=Counter)
    unsaid: Counter[str] = field(default_factory=Counter)
    places: Locator | None = None

    def add(self, job: Job, result: Charge | Uncharged) -> dict[str, Any]:
        """Count a job, tell what was assumed and why it has no charge; its record."""
        name = label_of(job, self.jobs)
        self.jobs += 1
        self.session.report(_assumed(self.session, self.file, name, job, result, self.places), again=False)
        if isinstance(result, Charge):
            self.done += 1
            self.total += Fraction(result.amount)
            self.unsaid.update(result.unsaid)
        else:
            self.reasons[result.reason] += 1
            self._refused(name, job, result)
        return {"type": self.what, "id": name, **result.record()}

    def _refused(self, name: str, job: Job, result: Uncharged) -> None:
        where = f"{escape(self.file)}:{job.line}" if job.line else escape(self.file)
        if not (self.session.as_json or self.session.quiet):
            say(f"{where}: {escape(name)}: not {self.what}: {result.reason} ({escape(result.detail, 400)})")

    @property
    def amount(self) -> Decimal:
        """The sum of all charges."""
        return rounded(self.total, self.rates.smallest, self.rates.precision, "half-up")

    def record(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return {"type": "counts", "jobs": self.jobs, self.what: self.done, "not": dict(sorted(self.reasons.items())),
                "total": plain(self.amount), "currency": self.rates.currency, "rates": self.rates.identity}

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(self.reasons.items()))
        refused = f", {self.reasons.total()} not ({reasons})" if reasons else ""
        return (f"{self.jobs} job{'s' * (self.jobs != 1)}: {self.done} {self.what}, "
                f"{money(self.amount, self.rates.currency)}{refused}")


def tell_unsaid(session: Session, file: str, unsaid: Mapping[str, int], charged: int, what: str = "charged") -> None:
    """Tell of each rate how many jobs are charged for the rest alone, for they do not say the amount that it prices,
    though each job has some. unsaid: by the rate's label; charged: jobs in all; file: where these are; what: charged or
    quoted."""
    findings = Findings(file)
    _add_unsaid(findings, session, unsaid, charged, what)
    session.report(findings, again=False)


def _add_unsaid(findings: Findings, session: Session, unsaid: Mapping[str, int], charged: int, what: str) -> None:
    for label, count in sorted(unsaid.items()):
        findings.add("SSS504", amount_name(label), unsaid_sentence(label, count, charged, what), consequence="costs",
                     policy=session.policy or Policy.WARN)


def _assumed(session: Session, file: str, name: str, job: Job, price: Charge | Uncharged, places: Locator | None
             ) -> Findings:
    """What was assumed for the price of a job."""
    findings = Findings(file)
    for note in price.notes:
        findings.places = None if note.item is None else places     # of the job itself its line is known in streams too
        findings.add(note.rule, note.subject, f"{name}: {note.message}", within=job, path="/Job", item=note.item,
                     policy=session.policy or Policy.WARN, consequence="costs")
    return findings


def tell_quoted(session: Session, file: str, document: Document, job: Job, price: Charge) -> None:
    """Tell what the quote of one job assumes and leaves out, before anything is posted by it. Raises RejectedError
    where that makes the exit status 1."""
    findings = _assumed(session, file, label_of(job, 0), job, price, document.places)
    _add_unsaid(findings, session, dict.fromkeys(price.unsaid, 1), 1, "quoted")
    session.report(findings)
    if len(findings) and (session.errors or session.flawed):
        raise RejectedError(list(findings))


def money(amount: Decimal, currency: str) -> str:
    """``12.50 EUR``."""
    return f"{plain(amount)} {currency or 'credits'}"


def page(records: Iterable[dict[str, Any]], *, as_json: bool, itemise: bool) -> str:
    """The records as JSON Lines, or as text with the items of each charge."""
    if as_json:
        return "".join(json.dumps(r) + "\n" for r in records)
    return "".join(f"{line}\n" for r in records if "charge" in r for line in _lines(r, itemise))


def _lines(record: dict[str, Any], itemise: bool) -> list[str]:
    lines = [f"{escape(record['id'])}: {record['charge']} {record['currency'] or 'credits'}"]
    if itemise:
        lines[0] += f" by {record['rates']}"
        for item in record["items"]:
            category = f" ({item['category']})" if "category" in item else ""
            lines.append(f"  {item['rate']}{category}: {item['arithmetic']} = {item['value']}")
        lines.append(f"  charge: {record['arithmetic']} = {record['exact']}, {record['rounding']}")
    return [lines[0], *(escape(line, 100_000) for line in lines[1:])]
