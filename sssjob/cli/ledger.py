"""``sssjob ledger``: money as documents in a journal that only grows."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import click

from sssjob.cli._complete import files, formats
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, bounded, common, output_option, pairs
from sssjob.cli._tables import table
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.ledger import Entry, Ledger, Posted
    from sssjob.model import Document, Job, JobDefaults
    from sssjob.translators.records.base import Counts

__all__ = ["command"]

_BATCH: Final = 1000            # jobs charged in one transaction
_place = click.option("--ledger", "place", metavar="FILE|URL", shell_complete=files,
                      help="The ledger: a file or postgresql://... (default: SSSJOB_LEDGER, else where state belongs).")
_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON Lines.")
_currency = click.option("--currency", default="", metavar="UNIT", help="Currency (default: site credits).")
_reason = click.option("--reason", default="", metavar="TEXT", help="Why; it stands in the entry.")
_token = click.option("--token", metavar="TEXT", help="Name of the request: asked again, it posts nothing new.")
_rates = click.option("--rates", "rates_file", required=True, metavar="FILE", shell_complete=files,
                      help="The rates, in TOML.")
_owner = click.option("--account-by", "owner", default="Project", metavar="NAME",
                      type=click.Choice(["Project", "User", "Group", "Queue", "Machine"]),
                      help="Property that names the account: Project (default), User, Group, Queue or Machine.")


@click.group("ledger")
def command() -> None:
    """Accounts, quotes, holds, charges, refunds and statements."""


def _amount(text: str) -> Decimal:
    try:
        made = Decimal(text)
    except InvalidOperation:
        made = Decimal("NaN")
    if not made.is_finite() or len(text) > 90:
        raise UsageError(f"{text[:40]!r} is no amount, as 12.50")
    return made


def _open(place: str | None, *, create: bool = True) -> Ledger:
    from sssjob.accounting.ledger import Ledger
    from sssjob.accounting.store import open_store

    return Ledger(open_store(place, create=create))


def _plain(function: Callable[..., int]) -> Callable[..., int]:
    """A command that reads no documents: its errors told like those of the others."""

    @functools.wraps(function)
    def run(as_json: bool, **rest: Any) -> int:
        from sssjob.cli._app import status_of

        try:
            return function(as_json=as_json, **rest)
        except SSSJobError as error:
            status, message = status_of(error)
            problem(message, as_json=as_json, status=status)
            return status

    return _json(run)


def _told(entry: Entry, as_json: bool) -> int:
    emit(json.dumps(entry.record()) + "\n" if as_json else f"{_line(entry)}\n")
    return 0


def _money(amount: Decimal, currency: str) -> str:
    return f"{amount:f} {currency or 'credits'}"


def _line(entry: Entry) -> str:
    job = f" for job {escape(entry.job, 100)} of {escape(entry.machine, 60)}" if entry.job else ""
    refers = f" of entry {entry.refers}" if entry.refers else ""
    return f"{entry.number}: {entry.kind}{refers} {_money(entry.amount, entry.currency)}, " \
           f"account {escape(entry.account, 100)}{job}"


def _when(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str | None, zone: str | None, option: str) -> int | None:
    """Epoch seconds of a time that an option names."""
    from sssjob.accounting.times import TimeError, moment

    if text is None:
        return None
    try:
        return moment(text, None if zone is None else ZoneInfo(zone))
    except TimeError as error:
        raise UsageError(f"{option}: {error}") from None
    except (OSError, ValueError, LookupError):
        raise UsageError(f"--timezone {zone!r} is no time zone, as Europe/Berlin") from None


# -- by hand
@command.command("deposit")
@click.argument("account")
@click.argument("amount")
@_currency
@_reason
@_token
@_place
@_plain
def deposit(account: str, amount: str, currency: str, reason: str, token: str | None, place: str | None,
            as_json: bool) -> int:
    """Put AMOUNT into ACCOUNT."""
    with _open(place) as ledger:
        return _told(ledger.deposit(account, _amount(amount), currency, reason=reason, token=token), as_json)


@command.command("credit")
@click.argument("account")
@click.argument("limit")
@_currency
@_reason
@_token
@_place
@_plain
def credit(account: str, limit: str, currency: str, reason: str, token: str | None, place: str | None,
           as_json: bool) -> int:
    """Let ACCOUNT go LIMIT below 0."""
    with _open(place) as ledger:
        return _told(ledger.credit(account, _amount(limit), currency, reason=reason, token=token), as_json)


@command.command("adjust", context_settings={"ignore_unknown_options": True})
@click.argument("account")
@click.argument("amount")
@_currency
@click.option("--reason", required=True, metavar="TEXT", help="Why; it stands in the entry.")
@_token
@_place
@_plain
def adjust(account: str, amount: str, currency: str, reason: str, token: str | None, place: str | None,
           as_json: bool) -> int:
    """Correct the balance of ACCOUNT by AMOUNT, up or (-5) down."""
    with _open(place) as ledger:
        return _told(ledger.adjust(account, _amount(amount), currency, reason=reason, token=token), as_json)


@command.command("refund")
@click.argument("entry", type=int)
@click.argument("amount", required=False)
@_reason
@_token
@_place
@_plain
def refund(entry: int, amount: str | None, reason: str, token: str | None, place: str | None, as_json: bool) -> int:
    """Give the charge ENTRY back, or AMOUNT of it."""
    with _open(place, create=False) as ledger:
        given = None if amount is None else _amount(amount)
        return _told(ledger.refund(entry, given, reason=reason, token=token), as_json)


@command.command("release")
@click.argument("entry", type=int)
@_place
@_plain
def release(entry: int, place: str | None, as_json: bool) -> int:
    """End the hold ENTRY."""
    with _open(place, create=False) as ledger:
        return _told(ledger.release(entry), as_json)


# -- for jobs
def _only(document: Document, file: str) -> tuple[Job, JobDefaults | None]:
    found = list(islice(document.jobs(), 2))
    if len(found) != 1:
        raise UsageError(f"{file} holds {len(found) or 'no'} job{'s' * (len(found) > 1)}; it takes one")
    return found[0]


def _priced(session: Session, file: str, rates_file: str) -> tuple[Document, RateSet] | None:
    from sssjob.cli._prices import load

    once([file, rates_file])
    rates = load(session, rates_file)
    document = None if rates is None else session.read(file)
    return None if rates is None or document is None or session.errors else (document, rates)


_start = click.option("--start", metavar="TIME",
                      help="When the job would start, where the rates go by the time of day.")
_timezone = click.option("--timezone", metavar="ZONE", help="Zone of times that have none, as Europe/Berlin.")


@command.command("quote")
@click.argument("file", metavar="FILE", shell_complete=files)
@_rates
@_owner
@click.option("--expires", metavar="TIME", help="From when on a start is too late for it (default: never).")
@_start
@_timezone
@_place
@output_option
@common
def quote(session: Session, file: str, rates_file: str, owner: str, expires: str | None, start: str | None,
          timezone: str | None, place: str | None, output: str) -> int:
    """Promise today's rates to the job of FILE and write it with its Quote.

    A job that names the Quote is charged by these rates, whatever the rates are then.
    """
    from sssjob.writer import write_document

    given = _priced(session, file, rates_file)
    if given is None:
        return 1
    document, rates = given
    job, defaults = _only(document, file)
    with _open(place) as ledger:
        entry, made = ledger.quote(job, defaults, rates, owner=owner, expires=_moment(expires, timezone, "--expires"),
                                   start=_moment(start, timezone, "--start"))
    job.set("Quote", f"quote-{entry.number}")
    findings = Findings(file)
    text = write_document(document, findings=findings)
    session.report(findings)
    if not session.quiet and not session.as_json:
        say(f"quote-{entry.number}: {_money(made.amount, made.currency)} for account {escape(entry.account, 100)}")
    emit(json.dumps(entry.record()) + "\n" if session.as_json and output == "-" else text, output)
    return session.status()


@command.command("hold")
@click.argument("file", metavar="FILE", shell_complete=files)
@_rates
@_owner
@click.option("--force", is_flag=True, help="Hold it even where the account does not have it.")
@_start
@_timezone
@_place
@common
def hold(session: Session, file: str, rates_file: str, owner: str, force: bool, start: str | None,
         timezone: str | None, place: str | None) -> int:
    """Set aside what the job of FILE will cost at most, until it is charged."""
    given = _priced(session, file, rates_file)
    if given is None:
        return 1
    document, rates = given
    job, defaults = _only(document, file)
    with _open(place) as ledger:
        entry, _ = ledger.hold(job, defaults, rates, owner=owner, start=_moment(start, timezone, "--start"),
                               force=force)
    return _told(entry, session.as_json)


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
        money = "".join(f"; {_money(v, k)}" for k, v in sorted(self.totals.items()))
        jobs = self.outcomes.total()
        return f"{jobs} job{'s' * (jobs != 1)}" + (": " + ", ".join(parts) if parts else "") + money


@command.command("charge")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@_rates
@click.option("-f", "--from", "source", metavar="FORMAT", default="sss", shell_complete=formats,
              help="Format of FILE: sss (default), pbs-acct, sge-acct, sacct ...")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of the format, as timezone=UTC or machine=NAME.")
@click.option("--resume", is_flag=True, help="Read a log on from where the last time ended, through its rotation.")
@click.option("--recharge", is_flag=True, help="Charge anew what was charged by other rates.")
@click.option("--itemise", is_flag=True, help="Print every charge.")
@_owner
@_place
@common
def charge(session: Session, names: tuple[str, ...], rates_file: str, source: str, options: tuple[str, ...],
           resume: bool, recharge: bool, itemise: bool, owner: str, place: str | None) -> int:
    """Charge the jobs of documents or accounting logs. Reading the same again changes nothing.

    A job is charged once for each run: by Machine, native id (else Id) and StartTime. Where another record says
    something else of a run, the old charge is reversed and a new one made.
    """
    from sssjob.cli._prices import load, nothing_taken, options_of
    from sssjob.translators.base import ReadContext
    from sssjob.translators.records.base import Counts, RecordTranslator
    from sssjob.translators.registry import get

    once([*names, rates_file])
    reader = get(source)
    given = options_of(reader, options)
    rates = load(session, rates_file)
    if rates is None:
        return 1
    if resume and not (isinstance(reader, RecordTranslator) and reader.stream):
        raise UsageError(f"--resume is for logs, not for {source}")
    tally, read = _Tally(), list[Counts]()
    with _open(place) as ledger:
        for name in names:
            with session.tolerant(name), bounded(name):
                context = ReadContext(name, Findings(name), session.profile, session.policy, options=given.view({}))
                work = _Charging(session, ledger, rates, owner, recharge, itemise, tally)
                if isinstance(reader, RecordTranslator) and reader.stream:
                    read.append(_records(work, reader.stream, context, name, source, resume))
                else:
                    document = reader.read(read_bytes(name), context)
                    given.check(source)
                    session.report(context.findings)
                    if context.findings.rejected:
                        session.errors += 1
                    else:
                        work.post(document.jobs(), name)
    session.errors += not resume and nothing_taken(read)
    _closing(session, tally)
    return session.status()


def _closing(session: Session, tally: _Tally) -> None:
    for (account, currency), available in sorted(tally.overdrawn.items()):
        session.warnings += 1
        if not session.quiet:
            problem(f"account {escape(account, 100)} is overdrawn: {_money(available, currency)} left",
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
            if not (self.session.as_json or self.session.quiet):
                where = f"{escape(name)}:{job.line}" if job.line else escape(name)
                say(f"{where}: {ident}: not charged: {posted.reason} ({escape(posted.detail, 400)})")
        if self.session.as_json:
            emit(json.dumps(_posted(ident, posted)) + "\n")
        elif self.itemise and posted.entry is not None:
            emit(f"{posted.outcome} {_line(posted.entry)}\n")


def _posted(ident: str, posted: Posted) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "posted", "id": ident, "outcome": posted.outcome}
    if posted.entry is not None:
        made["entry"] = posted.entry.record()
    if posted.reason:
        made |= {"reason": posted.reason, "detail": posted.detail}
    return made


def _records(work: _Charging, stream: Callable[..., Any], context: Any, name: str, source: str,
             resume: bool) -> Counts:
    """Charge the jobs of a log; with resume only what is new, and what was read is noted when all is charged."""
    from sssjob.accounting.sources import Source
    from sssjob.cli._files import opened

    if not resume:
        with opened(name) as file:
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


# -- looking
@command.command("balance")
@click.argument("account", required=False)
@_place
@_plain
def balance(account: str | None, place: str | None, as_json: bool) -> int:
    """Print all accounts, or ACCOUNT, as they stand."""
    with _open(place, create=False) as ledger:
        found = [a for a in ledger.accounts() if account in (None, a.account)]
    if account is not None and not found:
        raise UsageError(f"there is no account {account!r}")
    if as_json:
        emit("".join(json.dumps(a.record()) + "\n" for a in found))
    else:
        rows = [(escape(a.account), *(f"{x:f}" for x in (a.balance, a.held, a.credit, a.available)),
                 a.currency or "credits") for a in found]
        emit(_table(rows, ("account", "balance", "held", "credit", "available", "in")))
    return 0


@command.command("statement")
@click.argument("account")
@_currency
@click.option("--since", metavar="TIME", help="Entries from this time on.")
@click.option("--until", metavar="TIME", help="Entries before this time.")
@_timezone
@_place
@_plain
def statement(account: str, currency: str, since: str | None, until: str | None, timezone: str | None,
              place: str | None, as_json: bool) -> int:
    """Print what changed the balance of ACCOUNT, between its opening and its closing."""
    first, last = _moment(since, timezone, "--since"), _moment(until, timezone, "--until")
    with _open(place, create=False) as ledger:
        if not any((a.account, a.currency) == (account, currency) for a in ledger.accounts()):
            raise UsageError(f"there is no account {account!r} in {currency or 'credits'}")
        made = ledger.statement(account, currency, since=first, until=last)
    if as_json:
        emit(json.dumps(made.record()) + "\n")
        return 0
    rows = [("", "", "opening", "", f"{made.opening:f}")]
    running = made.opening
    for e in made.entries:
        running += e.change
        rows.append((str(e.number), _when(e.time), e.kind, escape(_about(e), 60), f"{e.change:+f}"))
    rows.append(("", "", "closing", "", f"{made.closing:f}"))
    emit(_table(rows, ("entry", "time", "kind", "about", currency or "credits")))
    return 0


def _table(rows: Sequence[tuple[str, ...]], titles: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in table(rows, titles))


def _about(entry: Entry) -> str:
    if entry.job:
        return f"{entry.job} ({entry.machine})"
    return str(entry.document.get("reason", ""))


@command.command("show")
@click.argument("entry", type=int)
@_place
@_plain
def show(entry: int, place: str | None, as_json: bool) -> int:
    """Print one entry, of a charge or quote with its arithmetic."""
    with _open(place, create=False) as ledger:
        found = ledger.entry(entry)
    if as_json:
        return _told(found, True)
    lines = [_line(found), f"  time: {_when(found.time)}"]
    if reason := found.document.get("reason"):
        lines.append(f"  reason: {escape(str(reason), 400)}")
    if made := found.document.get("charge"):
        lines.append(f"  rates: {escape(str(made['rates']), 300)}")
        lines += [f"  {escape(i['rate'], 200)}{' (' + i['category'] + ')' if 'category' in i else ''}: "
                  f"{escape(i['arithmetic'], 4000)} = {i['value']}" for i in made["items"]]
        lines.append(f"  in all: {escape(made['arithmetic'], 100_000)} = {made['exact']}, {made['rounding']}")
    lines.append(f"  hash: {found.hash}")
    emit("".join(f"{line}\n" for line in lines))
    return 0


@command.command("list")
@click.option("--account", metavar="NAME", help="Only entries of this account.")
@click.option("--job", metavar="ID", help="Only entries about jobs of this id.")
@_place
@_plain
def list_(account: str | None, job: str | None, place: str | None, as_json: bool) -> int:
    """Print the entries in their order."""
    with _open(place, create=False) as ledger:
        for entry in ledger.entries(account, job=job):
            _told(entry, as_json)
    return 0


@command.command("export")
@click.option("-t", "--to", "target", default="csv", metavar="FORMAT", shell_complete=formats,
              help="csv (default), jsonl, sss or another format of records.")
@click.option("--since", metavar="TIME", help="Charges made from this time on.")
@click.option("--until", metavar="TIME", help="Charges made before this time.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the format.")
@click.option("--privacy", "privacy_file", metavar="FILE", shell_complete=files, help="What names become, in TOML.")
@_timezone
@_place
@output_option
@common
def export(session: Session, target: str, since: str | None, until: str | None, options: tuple[str, ...],
           privacy_file: str | None, timezone: str | None, place: str | None, output: str) -> int:
    """Write the jobs of the charges in force, with their charges, as records."""
    from sssjob.accounting.privacy import read_privacy
    from sssjob.conversion import Options
    from sssjob.translators.base import WriteContext
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.records.stream import pieces as pieces_of
    from sssjob.translators.registry import get

    writer = get(target)
    if target != "sss" and not (isinstance(writer, RecordTranslator) and (writer.texts or writer.blobs)):
        raise UsageError(f"{target} is no format of records that is written")
    findings = Findings(place or "ledger")
    given = Options(pairs(options, "--option"))
    context = WriteContext(findings, policy=session.policy, options=given.view({}))
    privacy = read_privacy(read_bytes(privacy_file), privacy_file) if privacy_file else None
    first, last = _moment(since, timezone, "--since"), _moment(until, timezone, "--until")
    with _open(place, create=False) as ledger:
        jobs = ledger.charged(since=first, until=last)
        pieces = pieces_of(jobs if privacy is None else map(privacy.applied, jobs), writer, context, "charges")
        given.check(target)
        if output == "-":
            for piece in pieces:
                emit(piece)
        else:
            emit(b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces), output)
    session.report(findings)
    return session.status()


@command.command("verify")
@_place
@_plain
def verify(place: str | None, as_json: bool) -> int:
    """Replay all entries and make every charge again; exit status 1 where something is not as it was."""
    wrong = 0
    with _open(place, create=False) as ledger:
        for message in ledger.verify():
            wrong += 1
            problem(message, as_json=as_json, status=1)
        entries = ledger.store.one("SELECT number FROM head")[0]
    if as_json:
        emit(json.dumps({"type": "verified", "entries": entries, "wrong": wrong}) + "\n")
    elif not wrong:
        emit(f"{entries} entries: hashes, balances, holds and charges are as they follow\n")
    return 1 if wrong else 0
