"""``sssjob ledger charge``: the jobs of documents and logs, each charged once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, say
from sssjob.cli._ledger import line, money, opened_ledger, owner, place, rates
from sssjob.cli._options import Session, bounded, common, format_option, reading
from sssjob.cli._recognised import Looked
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.ledger import Ledger, Posted
    from sssjob.document.model import Job, JobDefaults
    from sssjob.translators.records.base import Counts

__all__ = ["charge"]

_BATCH: Final = 1000            # jobs charged in one transaction
_TOLD: Final = 10               # jobs that are told one by one, of each reason


@dataclass(slots=True)
class _Tally:
    """What became of the jobs of all sources."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    totals: dict[str, Decimal] = field(default_factory=dict)
    overdrawn: dict[tuple[str, str], Decimal] = field(default_factory=dict)

    def add(self, posted: Posted) -> None:
        """Count one."""
        self.outcomes[posted.outcome] += 1
        if posted.outcome == "not":
            self.reasons[posted.reason] += 1
        elif posted.entry is not None and posted.account is not None:
            entry = posted.entry
            self.totals[entry.currency] = self.totals.get(entry.currency, Decimal(0)) + entry.amount
            self.overdrawn.pop((entry.account, entry.currency), None)
            if posted.account.available < 0:
                self.overdrawn[entry.account, entry.currency] = posted.account.available

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"type": "counts", "jobs": self.outcomes.total(), **dict(sorted(self.outcomes.items())),
                "reasons": dict(sorted(self.reasons.items())),
                "totals": {k: f"{v:f}" for k, v in sorted(self.totals.items())}}

    def __str__(self) -> str:
        parts = []
        for word in ("charged", "superseded", "unchanged", "other-rates", "not"):
            if n := self.outcomes[word]:
                reasons = ", ".join(f"{reason} {m}" for reason, m in sorted(self.reasons.items()))
                parts.append(f"{n} {word}" + (f" ({reasons})" if word == "not" else ""))
        sums = "".join(f"; {money(v, k)}" for k, v in sorted(self.totals.items()))
        jobs = self.outcomes.total()
        return f"{jobs} job{'s' * (jobs != 1)}" + (": " + ", ".join(parts) if parts else "") + sums


@click.command("charge")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@rates
@format_option
@click.option("--resume", is_flag=True, help="Read a log on from where the last time ended, through its rotation.")
@click.option("--recharge", is_flag=True, help="Charge anew what was charged by other rates.")
@click.option("--itemise", is_flag=True, help="Print every charge.")
@owner
@place
@common
@reading
def charge(session: Session, names: tuple[str, ...], rates_file: str, options: tuple[str, ...], resume: bool,
           recharge: bool, itemise: bool, owner: str, place: str | None) -> int:
    """Charge the jobs of documents (of any format) or accounting logs. Reading the same again changes nothing.

    A job is charged once for each run: by Machine, native id (else Id) and StartTime. Where another record says
    something else of a run, the old charge is reversed and a new one made.
    """
    once([*names, rates_file])
    with closing(Looked()) as looked:
        source = session.source
        if source == AUTO:
            if resume:
                raise UsageError("--resume needs the format of the log: name it with --from")
            source = looked.format(session, names)
        return _charge(session, names, rates_file, source, options, resume, recharge, itemise, owner, place, looked)


def _charge(session: Session, names: tuple[str, ...], rates_file: str, source: str, options: tuple[str, ...],
            resume: bool, recharge: bool, itemise: bool, owner: str, place: str | None, looked: Looked) -> int:
    from sssjob.cli._prices import hinted, load, nothing_taken, options_of
    from sssjob.translators.base import ReadContext
    from sssjob.translators.records.base import Counts, RecordTranslator
    from sssjob.translators.registry import get

    reader = get(source)
    given = options_of(reader, options)
    rates = load(session, rates_file)
    if rates is None:
        return 1
    if resume and not (isinstance(reader, RecordTranslator) and reader.stream):
        raise UsageError(f"--resume is for logs, not for {source}")
    tally, read = _Tally(), list[Counts]()
    with opened_ledger(place) as ledger:
        for name in names:
            with session.tolerant(name), bounded(name), hinted(session, name, source):
                context = ReadContext(name, Findings(name), session.profile, session.policy,
                                      options=given.view(session.defaults(reader)))
                work = _Charging(session, ledger, rates, owner, recharge, itemise, tally)
                if isinstance(reader, RecordTranslator) and reader.stream:
                    read.append(_records(work, reader.stream, context, source, looked, resume))
                else:
                    before = session.errors
                    document = session.read(name, looked.whole(name), source=source, options=given, facts=True)
                    if session.errors == before:
                        work.post(document.jobs(), name)
    session.errors += not resume and nothing_taken(read)
    _closing(session, tally)
    return session.status()


def _closing(session: Session, tally: _Tally) -> None:
    for reason, count in sorted(tally.reasons.items()):
        if reason not in ("not-started", "not-ended") and count > _TOLD and not (session.quiet or session.as_json):
            say(f"{count - _TOLD} more not charged: {reason}")
    for (account, currency), available in sorted(tally.overdrawn.items()):
        session.warnings += 1
        if not session.quiet:
            problem(f"account {escape(account, 100)} is overdrawn: {money(available, currency)} left",
                    as_json=session.as_json)
    if session.as_json:
        emit(json.dumps(tally.record()) + "\n")
    elif not session.quiet:
        say(str(tally))


@dataclass(slots=True)
class _Charging:
    """Charging the jobs of one source after another."""

    session: Session
    ledger: Ledger
    rates: RateSet
    owner: str
    recharge: bool
    itemise: bool
    tally: _Tally

    def post(self, jobs: Iterable[tuple[Job, JobDefaults | None]], name: str) -> None:
        """Charge jobs, so many in a transaction, and tell what became of them when it is done."""
        pending = iter(jobs)
        while batch := list(islice(pending, _BATCH)):
            done = self.ledger.charges(batch, self.rates, owner=self.owner, recharge=self.recharge)
            for (job, _), posted in zip(batch, done, strict=True):
                self._tell(job, posted, name)

    def _tell(self, job: Job, posted: Posted, name: str) -> None:
        self.tally.add(posted)
        ident = escape(str(job.value("Id") or job.value("Name") or "-"), 100)
        if posted.outcome == "not" and posted.reason not in ("not-started", "not-ended"):
            self.session.warnings += 1
            if not (self.session.as_json or self.session.quiet) and self.tally.reasons[posted.reason] <= _TOLD:
                where = f"{escape(name)}:{job.line}" if job.line else escape(name)
                say(f"{where}: {ident}: not charged: {posted.reason} ({escape(posted.detail, 400)})")
        if self.session.as_json:
            emit(json.dumps(_posted(ident, posted)) + "\n")
        elif self.itemise and posted.entry is not None:
            emit(f"{posted.outcome} {line(posted.entry)}\n")


def _posted(ident: str, posted: Posted) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "posted", "id": ident, "outcome": posted.outcome}
    if posted.entry is not None:
        made["entry"] = posted.entry.record()
    if posted.reason:
        made |= {"reason": posted.reason, "detail": posted.detail}
    return made


def _records(work: _Charging, stream: Callable[..., Any], context: Any, source: str, looked: Looked,
             resume: bool) -> Counts:
    """Charge the jobs of a log; with resume only what is new, and what was read is noted when all is charged."""
    from sssjob.accounting.sources import Source

    name: str = context.path
    if not resume:
        with looked.opened(name) as file:
            jobs = stream(file, context)
            work.post(((job, None) for job in _reported(jobs, work.session, context)), name)
            return _counted(work.session, jobs, context)
    if name == "-":
        raise UsageError("--resume needs the name of a log, not standard input")
    log = Source(name)
    key = f"{source}:{log.name}"
    log = Source(name, work.ledger.source(key))
    with closing(log.open()) as file:
        for note in log.notes:
            work.session.warnings += 1
            problem(note, as_json=work.session.as_json)
        jobs = stream(file, context)
        jobs.keep()
        work.post(((job, None) for job in _reported(jobs, work.session, context)), name)
        counts = _counted(work.session, jobs, context)
    work.ledger.keep_source(key, log.state(jobs.kept))
    return counts


def _reported(jobs: Iterable[Job], session: Session, context: Any) -> Iterator[Job]:
    for job in jobs:
        session.report(context.findings)
        yield job
    session.report(context.findings)


def _counted(session: Session, jobs: Any, context: Any) -> Counts:
    session.report(context.findings)
    if session.as_json:
        emit(json.dumps({"type": "records", "file": context.path, **jobs.counts.record()}) + "\n")
    elif not session.quiet:
        say(f"{escape(context.path)}: {jobs.counts}")
    counts: Counts = jobs.counts
    return counts
