"""``sssjob ledger`` statement, usage, show, list, export, verify: what is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

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
    where,
)
from sssjob.cli._options import Session, common, format_option, output_option, pairs, zone_of
from sssjob.cli._privacy import load_privacy, privacy_option
from sssjob.cli._tables import table
from sssjob.conversion.converting import Options
from sssjob.document.lexical import utc
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.base import WriteContext
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.accounting.ledger import By, Entry, Ledger, Statement, Usage


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
@where
@click.option("--summarize", "sums", multiple=True, metavar="NAME",
              help="A line for each month, day, kind, user, machine or job, not for each entry (repeatable).")
@by
@timezone
@place
@plain
def statement(account: str, currency: str | None, since: str | None, until: str | None, users: tuple[str, ...],
              machines: tuple[str, ...], kinds: tuple[str, ...], where: tuple[str, ...], sums: tuple[str, ...], by: By,
              timezone: str | None, place: str | None, as_json: bool) -> int:
    """Print what changed the balance of ACCOUNT, between its opening and its closing; of some of it (--user, --machine,
    --kind, --where) what it comes to. With --by end charges, and what was given back of them, belong to the time at
    which their jobs ended, however late their logs came."""
    from sssjob.accounting.dimensions import Condition
    from sssjob.accounting.entries import KINDS
    from sssjob.accounting.statements import SUMS, Wanted

    _one_of(kinds, [kind for kind, (of_balance, _) in KINDS.items() if of_balance], "--kind")
    _one_of(sums, list(SUMS), "--summarize")
    first, last = moment_of(since, timezone, "--since"), moment_of(until, timezone, "--until")
    choice = Wanted(frozenset(users), frozenset(machines), frozenset(kinds), Condition.all_of(where))
    with opened_ledger(place, create=False) as ledger:
        unit = unit_of(ledger, account, currency)
        whole = ledger.statement(account, unit, since=first, until=last, by=by)
        entries = choice.of(whole.entries, ledger.entry)
    shown = _Shown(whole, entries, choice.all, sums, UTC if timezone is None else zone_of(timezone))
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
@click.option("--only", type=click.Choice(["job", "rates"]),
              help="Print just the job, or the rates, as they were kept with the charge, quote or hold.")
@place
@plain
def show(entry: int, only: str | None, place: str | None, as_json: bool) -> int:
    """Print one entry, of a charge or quote with its arithmetic."""
    with opened_ledger(place, create=False) as ledger:
        entry_found = ledger.entry(entry)
        if only is not None:
            text = _kept(ledger, entry_found, only)
            emit(json.dumps({only: text}) + "\n" if as_json else text)
            return 0
    if as_json:
        return told(entry_found, True)
    emit("".join(f"{line}\n" for line in _details(entry_found)))
    return 0


_NOT_KEPT: Final = {"job": "no job is kept", "rates": "no rates are kept"}


def _kept(ledger: Ledger, entry: Entry, name: str) -> str:
    """The whole job or rates that an entry was made of. Raises UsageError where it has none."""
    kept = entry.document.get(name)
    if kept is None:
        raise UsageError(f"with entry {entry.number}, of the kind {entry.kind}, {_NOT_KEPT[name]}")
    return str(kept) if name == "job" else ledger.rates(str(kept)).text


def _details(entry_found: Entry) -> list[str]:
    """An entry in lines: with the run that it is about, and the arithmetic of a charge."""
    lines = [line(entry_found), f"  time: {utc(entry_found.time)}"]
    if entry_found.user_name:
        lines.append(f"  user: {escape(entry_found.user_name, 100)}")
    if entry_found.start > 0:
        ended = f", until {utc(entry_found.document['end'])}" if "end" in entry_found.document else ""
        lines.append(f"  ran: from {utc(entry_found.start)}{ended}")
    if "read" in entry_found.document:
        log_format, zone = entry_found.document["read"]
        lines.append(f"  read: {escape(log_format, 40)}" + (f", times in {escape(zone, 60)}" if zone else ""))
    if reason := entry_found.document.get("reason"):
        lines.append(f"  reason: {escape(str(reason), 400)}")
    if charge := entry_found.document.get("charge"):
        lines.append(f"  rates: {escape(str(charge['rates']), 300)}")
        lines += [f"  {escape(i['rate'], 200)}{' (' + i['category'] + ')' if 'category' in i else ''}: "
                  f"{escape(i['arithmetic'], 4000)} = {i['value']}" for i in charge["items"]]
        lines.append(f"  in all: {escape(charge['arithmetic'], 100_000)} = {charge['exact']}, {charge['rounding']}")
    lines.append(f"  hash: {entry_found.hash}")
    return lines


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
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.records.stream import pieces as pieces_of

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
@click.option("--expect", "expected", metavar="ENTRY:HASH", multiple=True,
              help="An entry and its hash as somebody noted them outside of the ledger, which has to have it still "
                   "(repeatable).")
@place
@plain
def verify(expected: tuple[str, ...], place: str | None, as_json: bool) -> int:
    """Replay all entries and make every charge again; exit status 1 where something is not as it was."""
    wrong = 0
    notes = [_noted(text) for text in expected]
    with opened_ledger(place, create=False) as ledger:
        for message in chain(ledger.verify(), _unlike(ledger, notes)):
            wrong += 1
            problem(message, as_json=as_json, status=1)
        entries, head = ledger.store.one("SELECT number, hash FROM head")
    if as_json:
        emit(json.dumps({"type": "verified", "entries": entries, "hash": head, "wrong": wrong}) + "\n")
    elif not wrong:
        emit(f"{entries} entries: hashes, balances, holds and charges are as they follow\n")
    return 1 if wrong else 0


def _noted(text: str) -> tuple[int, str]:
    """(number, hash) of an entry that somebody noted. Raises UsageError."""
    parts = re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-fA-F]{64})", text.strip())
    if parts is None:
        raise UsageError(f"--expect: {escape(text, 80)!r} is no entry and its hash, as 12:9f...(64 digits)")
    return int(parts[1]), parts[2].lower()


def _unlike(ledger: Ledger, notes: Sequence[tuple[int, str]]) -> Iterator[str]:
    """What of notes the ledger does not have: it was written anew, or an older copy of it was put in its place."""
    for number, digest in notes:
        row = ledger.store.one("SELECT hash FROM entries WHERE number = ?", (number,))
        if row is None:
            yield f"entry {number}, which was noted, is missing"
        elif row[0] != digest:
            yield f"entry {number} is not the one that was noted"


COMMANDS = (statement, usage, show, list_, export, verify)
