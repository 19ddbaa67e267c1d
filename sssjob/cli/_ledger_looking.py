"""``sssjob ledger`` statement, usage, show, list, export, verify: what is in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._complete import formats
from sssjob.cli._files import emit
from sssjob.cli._findings import LONG, problem
from sssjob.cli._ledger import (
    amount_of,
    by,
    line,
    moment_of,
    no_account,
    opened_ledger,
    place,
    plain,
    timezone,
    told,
    unit_of,
)
from sssjob.cli._options import Session, common, format_option, output_option, pairs, zone_of
from sssjob.cli._privacy import load_privacy, privacy_option
from sssjob.cli._tables import table
from sssjob.document.lexical import utc
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.accounting.ledger import By, Entry, Statement, Usage


@click.command("statement")
@click.argument("account")
@click.option("--currency", metavar="UNIT", help="Currency (default: the only one that the account has).")
@click.option("--since", metavar="TIME", help="Entries from this time on.")
@click.option("--until", metavar="TIME", help="Entries before this time.")
@click.option("--user", "users", metavar="NAME", multiple=True,
              help="Only entries about jobs of this user (repeatable).")
@click.option("--machine", "machines", metavar="NAME", multiple=True,
              help="Only entries about jobs of this machine (repeatable).")
@click.option("--kind", "kinds", multiple=True, metavar="KIND",
              help="Only charges, refunds, deposits ...: a kind of entry (repeatable).")
@click.option("--summarize", "sums", multiple=True, metavar="NAME",
              help="A line for each month, day, kind, user, machine or job, not for each entry (repeatable).")
@by
@timezone
@place
@plain
def statement(account: str, currency: str | None, since: str | None, until: str | None, users: tuple[str, ...],
              machines: tuple[str, ...], kinds: tuple[str, ...], sums: tuple[str, ...], by: By, timezone: str | None,
              place: str | None, as_json: bool) -> int:
    """Print what changed the balance of ACCOUNT, between its opening and its closing; of some of it (--user, --machine,
    --kind) what it comes to. With --by end charges, and what was given back of them, belong to the time at which their
    jobs ended, however late their logs came."""
    from sssjob.accounting.entries import KINDS
    from sssjob.accounting.statements import SUMS, Wanted

    _one_of(kinds, [kind for kind, (of_balance, _) in KINDS.items() if of_balance], "--kind")
    _one_of(sums, list(SUMS), "--summarize")
    first, last = moment_of(since, timezone, "--since"), moment_of(until, timezone, "--until")
    with opened_ledger(place, create=False) as ledger:
        unit = unit_of(ledger, account, currency)
        whole = ledger.statement(account, unit, since=first, until=last, by=by)
    choice = Wanted(frozenset(users), frozenset(machines), frozenset(kinds))
    shown = _Shown(whole, choice.of(whole.entries), choice.all, sums, UTC if timezone is None else zone_of(timezone))
    emit(json.dumps(shown.record()) + "\n" if as_json else shown.table())
    return 0


def _one_of(names: Sequence[str], allowed: Sequence[str], option: str) -> None:
    for name in names:
        if name not in allowed:
            raise UsageError(f"{option}: {name[:40]!r} is none of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A statement as it is shown. entries: those that are wanted; all: whether none is left out; sums: what they are
    added up by, nothing: they are shown one by one; zone: of days and months."""

    whole: Statement
    entries: Sequence[Entry]
    all: bool
    sums: Sequence[str]
    zone: tzinfo

    def record(self) -> dict[str, Any]:
        """As a JSON object; of some of the entries it has no opening and closing, but what they come to."""
        from sssjob.accounting.statements import change, summed

        record = self.whole.record()
        if not self.all:
            del record["opening"], record["closing"]
            record["change"] = f"{change(self.entries):f}"
        record["entries"] = [entry.record() for entry in self.entries]
        if self.sums:
            del record["entries"]
            record["sums"] = [s.record(self.sums) for s in summed(self.entries, self.sums, self.whole.by, self.zone)]
        return record

    def table(self) -> str:
        """As text."""
        from sssjob.accounting.statements import change, summed

        unit, by = self.whole.currency or "credits", self.whole.by
        if self.sums:
            titles: tuple[str, ...] = (*self.sums, "entries", unit)
            rows: list[tuple[str, ...]] = [
                (*(escape(text, 100) for text in s.key), str(s.entries), _signed(s.change))
                for s in summed(self.entries, self.sums, by, self.zone)]
        else:
            titles = "entry", "time", "kind", "about", unit
            rows = [(str(e.number), utc(e.moment(by)), e.kind, escape(_about(e), LONG), _signed(e.change))
                    for e in self.entries]
        blank = ("",) * (len(titles) - 2)
        if self.all:
            opening, closing = ((word, f"{amount:f}") for word, amount in (
                ("opening", self.whole.opening), ("closing", self.whole.closing)))
            rows = [self._edge(blank, *opening), *rows, self._edge(blank, *closing)]
        else:
            rows.append(self._edge(blank, "in all", _signed(change(self.entries))))
        return _table(rows, titles)

    def _edge(self, blank: Sequence[str], word: str, amount: str) -> tuple[str, ...]:
        """A row above or below the entries: its word stands under the kind, or in the first column of sums."""
        at = 0 if self.sums else 2
        return (*blank[:at], word, *blank[at:], amount)


@click.command("usage")
@click.argument("account", required=False)
@click.option("--since", metavar="TIME", help="Jobs from this time on.")
@click.option("--until", metavar="TIME", help="Jobs, and what was given, before this time.")
@click.option("--by", default="end", type=click.Choice(["posted", "start", "end"]),
              help="Which time counts: of the end of the job (default), of its start, or of posting.")
@click.option("--over", "thresholds", metavar="PERCENT", multiple=True,
              help="Only accounts that have used so much; status 1 where one has. May repeat: the greatest that is "
                   "reached is told.")
@timezone
@place
@plain
def usage(account: str | None, since: str | None, until: str | None, by: By, thresholds: tuple[str, ...],
          timezone: str | None, place: str | None, as_json: bool) -> int:
    """Print what every account, or ACCOUNT, was given, and what its jobs, and accounts below it, cost of it."""
    first, last = moment_of(since, timezone, "--since"), moment_of(until, timezone, "--until")
    percents = sorted({amount_of(text.removesuffix("%")) for text in thresholds}, reverse=True)
    if any(percent <= 0 for percent in percents):
        raise UsageError("--over is a per cent above 0")
    with opened_ledger(place, create=False) as ledger:
        rows = [u for u in ledger.usage(since=first, until=last, by=by) if account in (None, u.account)]
        if account is not None and not rows:
            raise no_account(ledger, account)
    reached = [(u, next((percent for percent in percents if u.reached(percent)), None)) for u in rows]
    if percents:
        reached = [(u, percent) for u, percent in reached if percent is not None]
    if as_json:
        emit("".join(json.dumps(u.record() | ({} if percent is None else {"over": f"{percent:f}"})) + "\n"
                     for u, percent in reached))
    elif reached or not percents:
        emit(_usage_table(reached, is_told=len(percents) > 1))
    return 1 if reached and percents else 0


def _usage_table(rows: Sequence[tuple[Usage, Decimal | None]], is_told: bool) -> str:
    """Accounts with what they have used. is_told: whether the threshold that each has reached has a column."""
    has_trees = any(u.below for u, _ in rows)
    titles = ("account", "given", "used", *(["below"] if has_trees else []), "%", *(["over"] if is_told else []), "in")
    return _table([(escape(u.account), f"{u.given:f}", f"{u.used:f}", *([f"{u.below:f}"] if has_trees else []),
                    "-" if u.percent is None else f"{u.percent:f}", *([f"{percent:f}"] if is_told else []),
                    u.currency or "credits") for u, percent in rows], titles)


def _table(rows: Sequence[tuple[str, ...]], titles: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in table(rows, titles))


def _signed(change: Decimal) -> str:
    """What an account gets (+) or gives (-), as digits; nothing has no minus."""
    return f"{change if change else change.copy_abs():+f}"


def _about(entry: Entry) -> str:
    reason = str(entry.document.get("reason", ""))
    if entry.job:
        return f"{entry.job} ({entry.machine})" + (f": {reason}" if reason else "")
    return reason


@click.command("show")
@click.argument("entry", type=int)
@place
@plain
def show(entry: int, place: str | None, as_json: bool) -> int:
    """Print one entry, of a charge or quote with its arithmetic."""
    with opened_ledger(place, create=False) as ledger:
        entry_found = ledger.entry(entry)
    if as_json:
        return told(entry_found, True)
    lines = [line(entry_found), f"  time: {utc(entry_found.time)}"]
    if reason := entry_found.document.get("reason"):
        lines.append(f"  reason: {escape(str(reason), 400)}")
    if charge := entry_found.document.get("charge"):
        lines.append(f"  rates: {escape(str(charge['rates']), 300)}")
        lines += [f"  {escape(i['rate'], 200)}{' (' + i['category'] + ')' if 'category' in i else ''}: "
                  f"{escape(i['arithmetic'], 4000)} = {i['value']}" for i in charge["items"]]
        lines.append(f"  in all: {escape(charge['arithmetic'], 100_000)} = {charge['exact']}, {charge['rounding']}")
    lines.append(f"  hash: {entry_found.hash}")
    emit("".join(f"{line}\n" for line in lines))
    return 0


@click.command("list")
@click.option("--account", metavar="NAME", help="Only entries of this account.")
@click.option("--job", metavar="ID", help="Only entries about jobs of this id.")
@place
@plain
def list_(account: str | None, job: str | None, place: str | None, as_json: bool) -> int:
    """Print the entries in their order."""
    with opened_ledger(place, create=False) as ledger:
        for entry in ledger.entries(account, job=job):
            told(entry, as_json)
    return 0


@click.command("export")
@click.option("-t", "--to", "target", default="csv", metavar="FORMAT", shell_complete=formats,
              help="csv (default), jsonl, sss or another format of records.")
@click.option("--since", metavar="TIME", help="Charges from this time on.")
@click.option("--until", metavar="TIME", help="Charges before this time.")
@by
@format_option
@privacy_option("What names become (TOML).")
@timezone
@place
@output_option
@common
def export(session: Session, target: str, since: str | None, until: str | None, by: By, options: tuple[str, ...],
           privacy_file: str | None, timezone: str | None, place: str | None, output: str) -> int:
    """Write the jobs of the charges in force, with their charges, as records."""
    from sssjob.conversion.converting import Options
    from sssjob.translators.base import WriteContext
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.records.stream import pieces as pieces_of
    from sssjob.translators.registry import get

    writer = get(target)
    if target != "sss" and not (isinstance(writer, RecordTranslator) and (writer.texts or writer.blobs)):
        raise UsageError(f"{target} is no format of records that is written")
    findings = Findings(place or "ledger")
    taken = Options(pairs(options, "--option"))
    context = WriteContext(findings, policy=session.policy, options=taken.view({}))
    privacy = load_privacy(privacy_file)
    first, last = moment_of(since, timezone, "--since"), moment_of(until, timezone, "--until")
    with opened_ledger(place, create=False) as ledger:
        jobs = ledger.charged(since=first, until=last, by=by)
        pieces = pieces_of(jobs if privacy is None else map(privacy.applied, jobs), writer, context, "charges")
        taken.check(target)
        if output == "-":
            for piece in pieces:
                emit(piece)
        else:
            emit(b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces), output)
    session.report(findings)
    return session.status()


@click.command("verify")
@place
@plain
def verify(place: str | None, as_json: bool) -> int:
    """Replay all entries and make every charge again; exit status 1 where something is not as it was."""
    wrong = 0
    with opened_ledger(place, create=False) as ledger:
        for message in ledger.verify():
            wrong += 1
            problem(message, as_json=as_json, status=1)
        entries = ledger.store.one("SELECT number FROM head")[0]
    if as_json:
        emit(json.dumps({"type": "verified", "entries": entries, "wrong": wrong}) + "\n")
    elif not wrong:
        emit(f"{entries} entries: hashes, balances, holds and charges are as they follow\n")
    return 1 if wrong else 0


COMMANDS = (statement, usage, show, list_, export, verify)
