"""``sssjob ledger`` deposit, credit, adjust, refund, release, quote, hold: entries that somebody asks for."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once
from sssjob.cli._findings import say
from sssjob.cli._ledger import (
    amount_of,
    currency,
    moment_of,
    money,
    opened_ledger,
    owner,
    place,
    plain,
    rates,
    reason,
    timezone,
    token,
    told,
)
from sssjob.cli._ledger_accounts import expires, term
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.base import ReadContext

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.document.model import Document, Job, JobDefaults

@contextmanager
def _about(file: str) -> Iterator[None]:
    """Have what the ledger refuses name the file."""
    from sssjob.accounting.ledger import LedgerError

    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{escape(file)}: {error}") from None


_why = click.option("--reason", required=True, metavar="TEXT", help="Why; it stands in the entry.")


class _WithAmount(click.Command):
    """A command with an amount, which may begin with a sign: -5 is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As of any command, but for numbers."""
        ctx.ignore_unknown_options = any(_SIGNED.match(text) for text in args)
        return super().parse_args(ctx, args)


_SIGNED: Final = re.compile(r"-[.0-9]")


def _by_hand(name: str, amount: str, help: str, reason: Callable[..., Any] = reason) -> click.Command:
    """A command that posts an amount to an account. name: of the command and of the ledger's method; amount: what the
    amount is called."""

    @click.command(name, help=help, cls=_WithAmount)
    @click.argument("account")
    @click.argument("amount", metavar=amount)
    @currency
    @click.option("--new", is_flag=True, help="Open the account, though another one has almost its name.")
    @reason
    @token
    @place
    @plain
    def command(account: str, amount: str, currency: str, new: bool, reason: str, token: str | None,
                place: str | None, as_json: bool) -> int:
        """Post an amount to an account by the method of the ledger that the command is called as."""
        with opened_ledger(place) as ledger:
            post = getattr(ledger, name)
            return told(post(account, amount_of(amount), currency, reason=reason, token=token, new=new),
                        as_json)

    return command


@click.command("deposit", cls=_WithAmount)
@click.argument("account")
@click.argument("amount")
@currency
@click.option("--new", is_flag=True, help="Open the account, though another one has almost its name.")
@click.option("--from", "since", metavar="TIME", help="From when on it can be used (default: at once).")
@click.option("--until", metavar="TIME", help="When what is left of it is lost (default: never).")
@timezone
@reason
@token
@place
@plain
def deposit(account: str, amount: str, currency: str, new: bool, since: str | None, until: str | None,
            timezone: str | None, reason: str, token: str | None, place: str | None, as_json: bool) -> int:
    """Put AMOUNT into ACCOUNT."""
    with opened_ledger(place) as ledger:
        return told(ledger.deposit(account, amount_of(amount), currency, reason=reason, token=token, new=new,
                                   **term(since, until, timezone)), as_json)


@click.command("refund", cls=_WithAmount)
@click.argument("entry", type=int, required=False)
@click.argument("amount", required=False)
@click.option("--job", metavar="ID", help="In place of ENTRY: the charge in force of the job of this native id, or Id.")
@click.option("--machine", metavar="NAME", help="With --job: of this machine.")
@click.option("--amount", "part", metavar="AMOUNT", help="With --job: how much of it (default: what is left).")
@reason
@token
@place
@plain
def refund(entry: int | None, amount: str | None, job: str | None, machine: str | None, part: str | None, reason: str,
           token: str | None, place: str | None, as_json: bool) -> int:
    """Give the charge ENTRY back, or AMOUNT of it."""
    if (entry is None) == (job is None):
        raise UsageError("name the charge: its ENTRY, or --job")
    if job is None and (machine is not None or part is not None):
        raise UsageError("--machine and --amount are for --job")
    text = amount if job is None else part
    with opened_ledger(place, create=False) as ledger:
        number = ledger.charge_of(job, machine) if job is not None else int(entry or 0)
        return told(ledger.refund(number, None if text is None else amount_of(text), reason=reason, token=token),
                    as_json)


@click.command("withdraw", cls=_WithAmount)
@click.argument("account")
@click.argument("amount")
@currency
@reason
@token
@place
@plain
def withdraw(account: str, amount: str, currency: str, reason: str, token: str | None, place: str | None,
             as_json: bool) -> int:
    """Take AMOUNT, which may not be held, out of ACCOUNT."""
    with opened_ledger(place, create=False) as ledger:
        return told(ledger.withdraw(account, amount_of(amount), currency, reason=reason, token=token), as_json)


@click.command("transfer", cls=_WithAmount)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("amount")
@currency
@click.option("--new", is_flag=True, help="Open the account TO, though another one has almost its name.")
@reason
@token
@place
@plain
def transfer(source: str, target: str, amount: str, currency: str, new: bool, reason: str, token: str | None,
             place: str | None, as_json: bool) -> int:
    """Move AMOUNT, which may not be held, from the account FROM to the account TO."""
    with opened_ledger(place, create=False) as ledger:
        for entry in ledger.transfer(source, target, amount_of(amount), currency, reason=reason, token=token, new=new):
            told(entry, as_json)
    return 0


@click.command("release")
@click.argument("entry", type=int, required=False)
@click.option("--job", metavar="ID", help="In place of ENTRY: the hold in force of the job of this Id.")
@click.option("--machine", metavar="NAME", help="With --job: of this machine.")
@place
@plain
def release(entry: int | None, job: str | None, machine: str | None, place: str | None, as_json: bool) -> int:
    """End the hold ENTRY."""
    if (entry is None) == (job is None):
        raise UsageError("name the hold: its ENTRY, or --job")
    if job is None and machine is not None:
        raise UsageError("--machine is for --job")
    with opened_ledger(place, create=False) as ledger:
        number = ledger.hold_of(job, machine) if job is not None else int(entry or 0)
        return told(ledger.release(number), as_json)


@click.command("rezone")
@click.argument("machine")
@click.argument("zone")
@click.option("-f", "--from", "source", required=True, metavar="FORMAT", help="Format of the logs, as sacct.")
@place
@plain
def rezone(machine: str, zone: str, source: str, place: str | None, as_json: bool) -> int:
    """Have the times of MACHINE's records read in ZONE from now on. Charges of records that were read in another zone
    are reversed, and --resume reads the logs from their start: charge them again."""
    from sssjob.accounting.ledger import Read
    from sssjob.translators.records.base import Reading

    Reading(ReadContext("-", Findings("-"), options={"timezone": zone}))        # refuses a zone that is none
    with opened_ledger(place, create=False) as ledger:
        count = ledger.rezone(machine, Read(source, zone))
    emit(json.dumps({"type": "rezoned", "machine": machine, "format": source, "zone": zone, "reversed": count}) + "\n"
         if as_json else f"{count} charges reversed; charge the {escape(source)} logs of {escape(machine)} again\n")
    return 0


def _only(document: Document, file: str) -> tuple[Job, JobDefaults | None]:
    jobs = list(islice(document.jobs(), 2))
    if len(jobs) != 1:
        raise UsageError(f"{file} holds {len(jobs) or 'no'} job{'s' * (len(jobs) > 1)}; it takes one")
    return jobs[0]


def _priced(session: Session, file: str, rates_file: str, *, anew: bool = False) -> tuple[Document, RateSet] | None:
    """The document, whose jobs have Ids and a Machine where that is known, and the rates; None: one is refused. anew: a
    job without Id gets one that no other job has, for the same script is submitted again and again."""
    from sssjob.cli._prices import load
    from sssjob.document.ids import give_ids

    once([file, rates_file])
    rates = load(session, rates_file)
    document = None if rates is None else session.read(file)
    if rates is None or document is None or session.errors:
        return None
    findings = Findings(file)
    if anew:
        for job, _ in document.jobs():
            if job.first("Id") is None:
                job.set("Id", f"submission-{uuid4()}")
    give_ids(document, findings)
    if session.site is not None and session.site.machine is not None:
        _place(document, session.site.machine, findings)
    session.report(findings)
    return document, rates


def _place(document: Document, machine: str, findings: Findings) -> None:
    """Name the Machine of the site in every job that names none."""
    for job, defaults in document.jobs():
        if not any(scope.first("Machine") for scope in (job, *job.containers("Delivered"), *filter(None, (defaults,)))):
            job.set("Machine", machine)
            findings.add("SSS503", "Machine", f"Machine: {machine}, the one of the site", severity="info",
                         line=job.line, path="/Job/Machine")


_start = click.option("--start", metavar="TIME",
                      help="When the job would start, where the rates go by the time of day.")



@click.command("quote")
@click.argument("file", metavar="FILE", shell_complete=files)
@rates
@owner
@click.option("--expires", metavar="TIME", help="From when on a start is too late for it (default: never).")
@_start
@timezone
@place
@output_option
@common
@reading
def quote(session: Session, file: str, rates_file: str, owner: str, expires: str | None, start: str | None,
          timezone: str | None, place: str | None, output: str) -> int:
    """Promise today's rates to the job of FILE and write it with its Quote.

    A job that names the Quote is charged by these rates, whatever the rates are then.
    """
    from sssjob.cli._prices import tell_quoted
    from sssjob.xml.writer import write_document

    document_and_rates = _priced(session, file, rates_file)
    if document_and_rates is None:
        return 1
    document, rates = document_and_rates
    job, defaults = _only(document, file)
    with opened_ledger(place) as ledger, _about(file):
        entry, quoted = ledger.quote(job, defaults, rates, owner=owner,
                                     expires=moment_of(expires, timezone, "--expires"),
                                     start=moment_of(start, timezone, "--start"),
                                     agreed=partial(tell_quoted, session, file, document, job))
    job.set_as_is("Quote", f"quote-{entry.number}")
    findings = Findings(file)
    text = write_document(document, findings=findings)
    session.report(findings)
    if not session.quiet and not session.as_json:
        say(f"quote-{entry.number}: {money(quoted.amount, quoted.currency)} for account {escape(entry.account, 100)}")
    emit(json.dumps(entry.record()) + "\n" if session.as_json and output == "-" else text, output)
    return session.status()


@click.command("hold")
@click.argument("file", metavar="FILE", shell_complete=files)
@rates
@owner
@click.option("--force", is_flag=True, help="Hold it even where the account does not have it.")
@expires
@_start
@timezone
@place
@common
@reading
def hold(session: Session, file: str, rates_file: str, owner: str, force: bool, expires: str | None,
         start: str | None, timezone: str | None, place: str | None) -> int:
    """Set aside what the job of FILE will cost at most, until it is charged."""
    from sssjob.cli._prices import tell_quoted

    document_and_rates = _priced(session, file, rates_file)
    if document_and_rates is None:
        return 1
    document, rates = document_and_rates
    job, defaults = _only(document, file)
    with opened_ledger(place) as ledger, _about(file):
        entry, _ = ledger.hold(job, defaults, rates, owner=owner, start=moment_of(start, timezone, "--start"),
                               force=force, expires=moment_of(expires, timezone, "--expires"),
                               agreed=partial(tell_quoted, session, file, document, job))
    return told(entry, session.as_json) or session.status()


@click.command("gate")
@click.argument("file", metavar="FILE", shell_complete=files)
@rates
@owner
@click.option("--user", metavar="NAME", help="Who submits it, where FILE does not say that.")
@click.option("--dry-run", is_flag=True, help="Hold nothing, only answer.")
@expires
@_start
@timezone
@place
@common
@reading
def gate(session: Session, file: str, rates_file: str, owner: str, user: str | None, dry_run: bool,
         expires: str | None, start: str | None, timezone: str | None, place: str | None) -> int:
    """Answer a submit filter whether the job of FILE may be submitted: hold what it will cost at most, and print one
    line. Exit status 0 where it may be; else 1 where the account refuses it, which the line says."""
    from sssjob.accounting.ledger import LedgerError
    from sssjob.cli._prices import tell_quoted

    document_and_rates = _priced(session, file, rates_file, anew=True)
    if document_and_rates is None:
        return 1
    document, rates = document_and_rates
    job, defaults = _only(document, file)
    if user is not None and job.first("User") is None:
        job.set("User", user)
    at = moment_of(start, timezone, "--start")
    if at is None and job.first("EligibleTime") is None:
        at = int(time.time())
    with opened_ledger(place, create=False) as ledger:
        try:
            held = ledger.hold(job, defaults, rates, owner=owner, start=at,
                               expires=moment_of(expires, timezone, "--expires"), dry_run=dry_run,
                               agreed=partial(tell_quoted, session, file, document, job))[0]
        except (LedgerError, RejectedError) as error:
            why = error.findings[-1].message if isinstance(error, RejectedError) else str(error)
            answer = {"type": "gate", "accepted": False, "why": why}
            emit(json.dumps(answer) + "\n" if session.as_json else f"refused: {why}\n")
            return 1
        available = ledger.standing(held.account, held.currency).available
    if session.as_json:
        emit(json.dumps({"type": "gate", "accepted": True, "hold": held.number or None, "amount": f"{held.amount:f}",
                         "account": held.account, "currency": held.currency, "available": f"{available:f}"}) + "\n")
    else:
        number = f", hold {held.number}" if held.number else ""
        emit(f"accepted: {money(held.amount, held.currency)} of account {escape(held.account, 100)}{number}, "
             f"{money(available, held.currency)} available\n")
    return 0


COMMANDS = (
    deposit,
    _by_hand("credit", "LIMIT", "Let ACCOUNT go LIMIT below 0."),
    _by_hand("adjust", "AMOUNT", "Correct the balance of ACCOUNT by AMOUNT, up or (-5) down.", _why),
    withdraw, transfer, refund, release, quote, hold, gate, rezone,
)
