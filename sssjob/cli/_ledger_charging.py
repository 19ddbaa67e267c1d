"""``sssjob ledger charge``: the jobs of documents and logs, each charged once."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.accounting.elements import lists_elements, runs_of
from sssjob.cli._complete import files
from sssjob.cli._files import emit, logs_of, once
from sssjob.cli._findings import problem, say
from sssjob.cli._ledger import line, money, opened_ledger, owner, place, rates
from sssjob.cli._log_findings import LogFindings
from sssjob.cli._options import Session, bounded, common, format_option, reading
from sssjob.cli._prices import hinted, load, options_of, tell_unsaid
from sssjob.cli._recognised import Looked
from sssjob.conversion.converting import AUTO
from sssjob.document.outlines import OutlinedJob
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.base import ReadContext
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.ledger import Ledger, Posted, Read
    from sssjob.document.model import Job, JobDefaults
    from sssjob.translators.records.base import Counts, Stream

_BATCH: Final = 1000            # jobs charged in one transaction
TOLD: Final = 10               # jobs that are told one by one, of each reason
_FIRST: Final = 1 << 16         # bytes of a log that are looked at to know it again
_BEGINNING: Final = 2           # lines of it: a header, and a record
#: Why a record is rejected that is none of a job, or of a job that another record tells of.
_NO_JOBS: Final = ("no-job", "part")
_NOT_YET: Final = ("not-started", "not-ended")      # reasons for which a later record of the job is waited for
_NO_KEY: Final = "no-key"
_UNPRICED: Final = "nothing-priced"
#: Reasons for which a job has no charge as the rates mean it; for all others rates and record do not go together.
_FREE: Final = (_UNPRICED, "not-committed", "system-fault", "earlier-attempt")
#: Reasons that some jobs of a log may have; where all of them do, the options or the rates are wrong.
_NONE_OF_THEM: Final = frozenset((_NO_KEY, _UNPRICED))
_READ_AGAIN: Final = "; the next --resume reads it from where this one began, --skip-rejected goes on behind it"


@dataclass(slots=True)
class Outcomes:
    """What became of the jobs of all sources."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    totals: dict[str, Decimal] = field(default_factory=dict)
    overdrawn: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    odd: Counter[str] = field(default_factory=Counter)      # jobs that should not have used their account, by why

    def add(self, posted: Posted) -> None:
        """Count one."""
        self.outcomes[posted.outcome] += 1
        if posted.outcome == "not":
            self.reasons[posted.reason] += 1
        elif posted.outcome == "contradicts":
            pass
        elif posted.entry is not None and posted.account is not None:
            entry = posted.entry
            if posted.detail:
                self.odd[posted.detail] += 1
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
        for word in ("charged", "superseded", "unchanged", "other-rates", "contradicts", "not"):
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
@click.option("--supersede", is_flag=True, help="Charge records that contradict charged ones, in their place.")
@click.option("--skip-rejected", is_flag=True, help="With --resume: go on behind records that could not be taken.")
@click.option("--running", is_flag=True, help="Charge jobs that still run, for what they have used so far.")
@click.option("--itemise", is_flag=True, help="Print every charge.")
@owner
@place
@common
@reading
def charge(session: Session, names: tuple[str, ...], rates_file: str, options: tuple[str, ...], resume: bool,
           recharge: bool, supersede: bool, skip_rejected: bool, running: bool, itemise: bool, owner: str,
           place: str | None) -> int:
    """Charge the jobs of documents (of any format) or accounting logs. Reading the same again, or older logs, or parts
    of logs in any order, changes nothing.

    A job is charged once for each run: by Machine, native id (else Id) and StartTime. A record that says more of a run
    replaces its charge, one that says less does not. Of records that contradict each other the first stays charged, and
    the status is 1, as where a record could not be taken.
    """
    names = names if resume else logs_of(names)
    once([*names, rates_file])
    with closing(Looked()) as looked:
        source = session.source
        if source == AUTO:
            if resume:
                raise UsageError("--resume needs the format of the log: name it with --from")
            source = looked.format(session, names)
        how = _How(owner, recharge, supersede, resume, skip_rejected, running, itemise)
        return _charge(session, names, rates_file, source, options, how, place, looked)


@dataclass(frozen=True, slots=True)
class _How:
    """How the jobs are charged, as the options say."""

    owner: str
    recharge: bool
    supersede: bool
    resume: bool
    skip_rejected: bool
    running: bool
    itemise: bool


def _charge(session: Session, names: tuple[str, ...], rates_file: str, source: str, options: tuple[str, ...],
            how: _How, place: str | None, looked: Looked) -> int:
    from sssjob.translators.records.base import RecordTranslator

    reader = get(source)
    read_options = options_of(reader.name, options)
    rates = load(session, rates_file)
    if rates is None:
        return 1
    if how.resume and not (isinstance(reader, RecordTranslator) and reader.stream):
        raise UsageError(f"--resume is for logs, not for {source}")
    if how.skip_rejected and not how.resume:
        raise UsageError("--skip-rejected is for --resume")
    tally = Outcomes()
    with opened_ledger(place) as ledger:
        for name in names:
            with session.tolerant(name), bounded(name), hinted(session, name, source):
                context = ReadContext(name, Findings(name), session.profile, session.policy,
                                      options=read_options.view(session.defaults(reader)))
                work = _SourceCharges(session, ledger, rates, how, tally)
                if isinstance(reader, RecordTranslator) and reader.stream:
                    _records(work, reader.stream, context, source, looked)
                else:
                    before = session.errors
                    document = session.read(name, looked.whole(name), source=source, options=read_options, facts=True)
                    if session.errors == before:
                        work.post(document.jobs(), name)
        for account in list(tally.overdrawn):       # unless the accounts above it have it
            tally.overdrawn[account] = ledger.standing(*account).available
    summary(session, tally)
    return session.status()


def summary(session: Session, tally: Outcomes) -> None:
    """Print what became of all jobs: those that were not charged, accounts that are overdrawn, the counts."""
    for reason, count in sorted(tally.reasons.items()):
        if reason not in _NOT_YET and count > TOLD and not (session.quiet or session.as_json):
            say(f"{count - TOLD} more not charged: {reason}")
    for reason, count in sorted(tally.odd.items()):
        session.warnings += 1
        if not session.quiet:
            problem(f"{reason}; {count} charged all the same", as_json=session.as_json)
    overdrawn = sorted((account, remaining) for account, remaining in tally.overdrawn.items() if remaining < 0)
    session.warnings += len(overdrawn)
    for (account, currency), available in [] if session.quiet else overdrawn[:None if session.as_json else TOLD]:
        problem(f"account {escape(account, 100)} is overdrawn: {money(available, currency)} left",
                as_json=session.as_json)
    if len(overdrawn) > TOLD and not (session.quiet or session.as_json):
        say(f"{len(overdrawn) - TOLD} more accounts are overdrawn: sssjob ledger usage --over 100")
    if session.as_json:
        emit(json.dumps(tally.record()) + "\n")
    elif not session.quiet:
        say(str(tally))


@dataclass(slots=True)
class _SourceCharges:
    """Charging the jobs of one source after another."""

    session: Session
    ledger: Ledger
    rates: RateSet
    how: _How
    tally: Outcomes
    unpriced: int = 0       # jobs that the rates have no price for

    def post(self, jobs: Iterable[tuple[Job | OutlinedJob, JobDefaults | None]], name: str,
             read: Read | None = None) -> bool:
        """Charge jobs, so many in a transaction, and tell what became of them when it is done. read: how their log
        is. False where some that ended have no charge though they may have to have one, so the status is 1."""
        from sssjob.xml.reader import collector_paused

        pending, how, more = self._runs(jobs), self.how, True
        reasons, why = Counter[str](), ""       # of the jobs that have ended; no reason: charged
        unsaid, charged = Counter[str](), 0
        while more:
            with collector_paused():        # what a batch needs stays until all of it is charged
                batch = list(islice(pending, _BATCH))
                done = self.ledger.charges(batch, self.rates, owner=how.owner, recharge=how.recharge,
                                           supersede=how.supersede, read=read, running=how.running)
            for (job, _), posted in zip(batch, done, strict=True):
                self._tell(job, posted, name)
                unsaid.update(posted.unsaid)
                charged += posted.outcome in ("charged", "superseded")
                if posted.reason not in _NOT_YET:
                    reasons[posted.reason] += 1
                    why = why or posted.detail
            more = len(batch) == _BATCH
        self.unpriced += reasons[_UNPRICED]
        tell_unsaid(self.session, name, unsaid, charged)
        return self._settled(reasons, why, name)

    def _settled(self, reasons: Counter[str], why: str, name: str) -> bool:
        """Whether each job that has ended was charged, or costs nothing by the rates; told, and the status is 1, where
        not, and where none has a key, or a price by rates that have never charged a job. reasons: how many were not
        charged, by why; why: of the first one."""
        none = reasons.keys() <= _NONE_OF_THEM and not (reasons[_UNPRICED] and self.ledger.has_charged(self.rates))
        doubtful = {reason: n for reason, n in sorted(reasons.items())
                    if none or reason not in (*_FREE, "", _NO_KEY)}
        if not doubtful:
            return True
        self.session.errors += 1
        count = sum(doubtful.values())
        jobs_there = f"{count} job{'s' * (count != 1)}"
        rest = _READ_AGAIN * (self.how.resume and not self.how.skip_rejected)
        reasons_there = ", ".join(f"{reason} {n}" for reason, n in doubtful.items())
        what = (f"none of them charged: {escape(why, 400)}" if none else
                f"not charged: {reasons_there}: mend the rates or the log, and charge it again")
        problem(f"{escape(name)}: {jobs_there}, {what}{rest}", as_json=self.session.as_json)
        return False

    def _runs(self, jobs: Iterable[tuple[Job | OutlinedJob, JobDefaults | None]],
              ) -> Iterator[tuple[Job | OutlinedJob, JobDefaults | None]]:
        """The jobs, and in place of an array that was run its elements, which are jobs of their own in records."""
        from sssjob.accounting.postings import whole_of

        for job, defaults in jobs:
            if isinstance(job, OutlinedJob):
                if not lists_elements(job.outline):
                    yield job, None
                    continue
                job = job.job
            whole = whole_of(job, defaults)
            yield from ((run, defaults if run is job else None) for run in runs_of(whole, self.rates))

    def _tell(self, subject: Job | OutlinedJob, posted: Posted, name: str) -> None:
        self.tally.add(posted)
        if posted.outcome == "charged" and not (self.session.as_json or self.how.itemise):
            return
        job = subject.job if isinstance(subject, OutlinedJob) else subject
        ident = escape(str(job.value("Id") or job.value("Name") or "-"), 100)
        if posted.outcome == "contradicts" and posted.entry is not None:
            self.session.errors += 1
            if self.tally.outcomes["contradicts"] <= TOLD and not self.session.as_json:
                where = f"{escape(name)}:{job.line}" if job.line else escape(name)
                problem(f"{where}: {ident}: not charged: another record of the run is (entry {posted.entry.number}): "
                        f"{escape(posted.detail, 400)}; --supersede charges this one instead")
        if posted.outcome == "not" and posted.reason not in _NOT_YET:
            self.session.warnings += 1
            if not (self.session.as_json or self.session.quiet) and self.tally.reasons[posted.reason] <= TOLD:
                where = f"{escape(name)}:{job.line}" if job.line else escape(name)
                say(f"{where}: {ident}: not charged: {posted.reason} ({escape(posted.detail, 400)})")
        if self.session.as_json:
            emit(json.dumps(posted_row(ident, posted)) + "\n")
        elif self.how.itemise and posted.entry is not None and posted.outcome != "not":
            emit(f"{posted.outcome} {line(posted.entry)}\n")


def posted_row(ident: str, posted: Posted) -> dict[str, Any]:
    """What became of a job, as a JSON object."""
    row: dict[str, Any] = {"type": "posted", "id": ident, "outcome": posted.outcome}
    if posted.entry is not None:
        row["entry"] = posted.entry.record()
    if posted.reason:
        row |= {"reason": posted.reason, "detail": posted.detail}
    return row


def _records(work: _SourceCharges, stream: Callable[..., Any], context: Any, source: str, looked: Looked) -> None:
    """Charge the jobs of a log; with resume only what is new, and what was read is noted when all is charged."""
    from sssjob.accounting.ledger import Read
    from sssjob.accounting.sources import Source, whole_lines
    from sssjob.translators.records._packed import unpacked

    name, session = str(context.path), work.session
    read = Read(source, context.options.get("timezone", ""))
    _same_machine(work.ledger, name, read, context.options.get("machine", "").strip())
    if not work.how.resume:
        with looked.opened(name) as file:
            lines, half = whole_lines(unpacked(file))
            jobs = stream(lines, context)
            work.post(((job, None) for job in _reported(jobs, session, context)), name, read)
            _counted(session, jobs, context)
        if half:
            session.errors += 1
            problem(f"{escape(name)}: the last line has no end and may be cut: it is not charged; charge the log again "
                    "when it is whole, or end the line", as_json=session.as_json)
        _taken(work, name, jobs.counts)
        return
    if name == "-":
        raise UsageError("--resume needs the name of a log, not standard input")
    log = Source(name)
    key = f"{source}:{log.name}"
    log = Source(name, work.ledger.source(key))
    with closing(log.open()) as file:
        session.warnings += len(log.notes)
        session.errors += len(log.lost)
        for note in (*log.notes, *log.lost):
            problem(note, as_json=session.as_json)
        if log.unpriced and log.rates != work.rates.digest:
            session.warnings += 1
            problem(f"{escape(name)}: the rates have changed; those of before had no price for {log.unpriced} jobs: if "
                    "these are to cost something now, charge the log without --resume",
                    as_json=session.as_json)
        jobs = stream(file, context)
        jobs.keep()
        before = work.tally.outcomes["contradicts"]
        settled = work.post(((job, None) for job in _reported(jobs, session, context)), name, read)
        _counted(session, jobs, context)
    contradicts = work.tally.outcomes["contradicts"] > before
    if (_taken(work, name, jobs.counts) and settled and not contradicts) or work.how.skip_rejected:
        log.priced(work.rates.digest, work.unpriced)
        work.ledger.keep_source(key, log.state(jobs.kept))


def _same_machine(ledger: Ledger, name: str, read: Read, machine: str) -> None:
    """Remember for which machine a log was read, by its name and its first records; LedgerError for another one."""
    from sssjob.translators.records._packed import unpacked

    if not machine or name == "-":
        return
    names_of_log = [os.path.abspath(name)]
    if os.path.isfile(name):
        with suppress(OSError), open(name, "rb") as raw:
            first = unpacked(raw).read(_FIRST).split(b"\n")
            if len(first) > _BEGINNING:
                names_of_log.append("sha256:" + hashlib.sha256(b"\n".join(first[:_BEGINNING])).hexdigest())
    ledger.same_machine(names_of_log, read, machine)


def _taken(work: _SourceCharges, name: str, counts: Counts) -> bool:
    """Whether all records of a log were taken; told, and the status is 1, where not."""
    lost = {reason: n for reason, n in sorted(counts.reasons.items()) if reason not in _NO_JOBS}
    if not lost:
        return True
    work.session.errors += 1
    reasons = ", ".join(f"{reason} {n}" for reason, n in lost.items())
    how = "mend the log or the options and charge it again" + (
        _READ_AGAIN * (work.how.resume and not work.how.skip_rejected))
    problem(f"{escape(name)}: {sum(lost.values())} records were not taken ({reasons}): {how}",
            as_json=work.session.as_json)
    return False


def _reported(jobs: Stream, session: Session, context: Any) -> Iterator[Job | OutlinedJob]:
    with LogFindings(session, context.findings) as log_findings:
        for job in jobs.outlined():
            log_findings.take()
            yield job


def _counted(session: Session, jobs: Any, context: Any) -> None:
    if session.as_json:
        emit(json.dumps({"type": "records", "file": context.path, **jobs.counts.record()}) + "\n")
    elif not session.quiet:
        say(f"{escape(context.path)}: {jobs.counts}")
