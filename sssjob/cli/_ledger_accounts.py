"""``sssjob ledger`` account, balance, expire, enforce: how accounts may be used, and what is available of them."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._ledger import (
    amount_of,
    line,
    moment_of,
    money,
    no_account,
    opened_ledger,
    place,
    plain,
    reason,
    told,
    unit_of,
)
from sssjob.cli._tables import table
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting.ledger import Settings, Standing

#: Letters by which sacctmgr understands more than one name.
_ODD: Final = frozenset(",\"'=")
#: How long sacctmgr may take for one account.
_PATIENCE_S: Final = 60
_any = click.option("--currency", metavar="UNIT", help="Currency (default: the only one that the account has).")
expires = click.option("--expires", metavar="TIME", help="When the hold ends by itself (default: never).")


def term(since: str | None, until: str | None, zone: str | None) -> dict[str, int | None]:
    """The term of a deposit that options name."""
    return {"since": moment_of(since, zone, "--from"), "until": moment_of(until, zone, "--until")}


@click.command("balance")
@click.argument("account", required=False)
@place
@plain
def balance(account: str | None, place: str | None, as_json: bool) -> int:
    """Print all accounts, or ACCOUNT, as they stand."""
    with opened_ledger(place, create=False) as ledger:
        standings = ledger.standings() if account is None else [
            ledger.standing(account, a.currency) for a in ledger.accounts() if a.account == account]
        if account is not None and not standings:
            raise no_account(ledger, account)
    if as_json:
        emit("".join(json.dumps(s.record()) + "\n" for s in standings))
    else:
        rows = [(escape(s.account.account), *(f"{amount:f}" for amount in (
            s.account.balance, s.account.held, s.account.credit, s.available)), s.account.currency or "credits")
            for s in standings]
        emit("".join(f"{line}\n" for line in table(rows, ("account", "balance", "held", "credit", "available", "in"))))
    return 0


def _names(text: str) -> tuple[str, ...] | None:
    return None if text == "all" else tuple(name.strip() for name in text.split(",") if name.strip())


def _number(text: str) -> int:
    if text == "any":
        return 24
    if not (text.isascii() and text.isdecimal() and len(text) < 3 and int(text) <= 24):
        raise UsageError(f"--digits {text[:40]!r} is no number from 0 to 24, or any")
    return int(text)


@click.command("account")
@click.argument("account")
@_any
@click.option("--parent", metavar="NAME", help="The account that covers what it lacks, or none.")
@click.option("--users", metavar="LIST", help="Those whose jobs may use it, with commas, or all.")
@click.option("--machines", metavar="LIST", help="The machines whose jobs may use it, with commas, or all.")
@click.option("--per-user", metavar="AMOUNT", help="How much the jobs of one user may cost, or any.")
@click.option("--digits", metavar="NUMBER", help="Digits behind the point of amounts by hand, or any.")
@click.option("--close/--open", "closed", default=None, help="Let nothing more be held, quoted or put in; or let it.")
@reason
@place
@plain
def account(account: str, currency: str | None, parent: str | None, users: str | None, machines: str | None,
            per_user: str | None, digits: str | None, closed: bool | None, reason: str, place: str | None,
            as_json: bool) -> int:
    """Say how ACCOUNT may be used; without options, print it."""
    changes: dict[str, Any] = {}
    if parent is not None:
        changes["parent"] = "" if parent == "none" else parent
    if users is not None:
        changes["users"] = _names(users)
    if machines is not None:
        changes["machines"] = _names(machines)
    if per_user is not None:
        changes["per_user"] = None if per_user == "any" else amount_of(per_user)
    if digits is not None:
        changes["digits"] = _number(digits)
    if closed is not None:
        changes["closed"] = closed
    with opened_ledger(place, create=False) as ledger:
        unit = unit_of(ledger, account, currency)
        if changes:
            return told(ledger.configure(account, unit, reason=reason, **changes), as_json)
        standing = ledger.standing(account, unit)
    emit(json.dumps(standing.record()) + "\n" if as_json else "".join(f"{line}\n" for line in _shown(standing)))
    return 0


def _shown(standing: Standing) -> list[str]:
    """An account as lines of a text."""
    own, settings, unit = standing.account, standing.settings, standing.account.currency
    amounts = (("balance", own.balance), ("held", own.held), ("credit", own.credit),
               ("held, but over", standing.lapsed), ("not there at this time", standing.absent),
               ("covered of accounts below it", standing.covers), ("available", standing.available))
    return [f"account {escape(own.account, 100)}", *_said(settings), *(
        f"  {name}: {money(amount, unit)}" for name, amount in amounts if amount or name in ("balance", "available"))]


def _said(settings: Settings) -> list[str]:
    lines = []
    for name, value in (("closed", "yes" if settings.closed else ""), ("parent", settings.parent),
                        ("users", settings.users), ("machines", settings.machines), ("per user", settings.per_user),
                        ("digits", settings.digits)):
        if value not in ("", None):
            text = ", ".join(value) or "nobody" if isinstance(value, tuple) else str(value)
            lines.append(f"  {name}: {escape(text, 400)}")
    return lines


@click.command("expire")
@place
@plain
def expire(place: str | None, as_json: bool) -> int:
    """End holds that are over, and take out what is left of deposits whose term is over: a line for cron."""
    with opened_ledger(place, create=False) as ledger:
        posted = ledger.expire()
    emit("".join(json.dumps(entry.record()) + "\n" if as_json else f"{line(entry)}\n" for entry in posted))
    return 0


@click.command("enforce")
@click.option("--currency", metavar="UNIT", help="Accounts of this currency (default: the only one that there is).")
@click.option("--cluster", metavar="NAME", help="Only on this cluster (default: on all that the accounts have).")
@click.option("--run", "runs", is_flag=True, help="Run the commands, instead of printing them.")
@place
@plain
def enforce(currency: str | None, cluster: str | None, runs: bool, place: str | None, as_json: bool) -> int:
    """Print the sacctmgr commands by which Slurm takes no more jobs of accounts of which nothing is available, or that
    are closed, and takes those of the others again."""
    with opened_ledger(place, create=False) as ledger:
        standings = ledger.standings()
    unit = _only_currency([s.account.currency for s in standings], currency)
    untaken = []
    for standing in (s for s in standings if s.account.currency == unit):
        name = standing.account.account
        if not name.isprintable() or set(name) & _ODD:
            untaken.append(name)
            continue
        most = "0" if standing.settings.closed or standing.available <= 0 else "-1"
        where = [f"name={name}", *([f"cluster={cluster}"] if cluster else [])]
        words = ["sacctmgr", "--immediate", "modify", "account", "where", *where, "set", f"GrpSubmitJobs={most}"]
        if runs:
            _run(words)
        emit(json.dumps({"type": "command", "account": name, "words": words, "run": runs}) + "\n" if as_json else
             f"{shlex.join(words)}\n")
    for name in untaken:
        problem(f"account '{escape(name, 60)}' is no name that sacctmgr takes: nothing is said of it",
                as_json=as_json, status=1)
    return 1 if untaken else 0


def _only_currency(currencies: Sequence[str], named: str | None) -> str:
    """The currency that an option names, else the only one of all accounts. Raises UsageError."""
    kept = sorted(set(currencies))
    if named in kept:
        return named or ""
    if named is None and len(kept) == 1:
        return kept[0]
    listed = " and ".join(unit or "credits" for unit in kept)
    raise UsageError(f"there is no account in {named or 'credits'}" if named is not None else
                     f"accounts are kept in {listed}; name one with --currency" if kept else "there are no accounts")


def _run(words: list[str]) -> None:
    """Run a command of the manager. Raises AccessError where it fails; sacctmgr says that nothing is to be modified
    where an account has the limit already, or is none of Slurm's."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AccessError(words[0], getattr(error, "strerror", None) or f"gave no answer in {_PATIENCE_S} s") from None
    output = " ".join((done.stdout + done.stderr).split())
    if done.returncode and "Nothing modified" not in output:
        raise AccessError(shlex.join(words), escape(output, 300) or f"status {done.returncode}")


COMMANDS = (balance, account, expire, enforce)
