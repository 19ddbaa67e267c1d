"""What the commands of ``sssjob ledger`` share: their options, opening the ledger, how entries and times are shown."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._app import status_of
from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._options import zone_of
from sssjob.document.lexical import utc
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting.ledger import Entry, Ledger

place = click.option("--ledger", "place", metavar="FILE|URL", shell_complete=files,
                     help="The ledger: a file or postgresql://... (default: SSSJOB_LEDGER, else where state belongs).")
currency = click.option("--currency", default="", metavar="UNIT", help="Currency (default: site credits).")
reason = click.option("--reason", default="", metavar="TEXT", help="Why; it stands in the entry.")
token = click.option("--token", metavar="TEXT", help="Name of the request: asked again, it posts nothing new.")
rates = click.option("--rates", "rates_file", required=True, metavar="FILE", shell_complete=files,
                     help="The rates, in TOML.")
owner = click.option("--account-by", "owner", default="Project", metavar="NAME",
                     type=click.Choice(["Project", "User", "Group", "Queue", "Machine"]),
                     help="Property that names the account: Project (default), User, Group, Queue or Machine.")
by = click.option("--by", default="posted", type=click.Choice(["posted", "start", "end"]),
                  help="Which time counts: of posting (default), or of the start or end of the job.")
timezone = click.option("--timezone", metavar="ZONE", help="Zone of times that have none, as Europe/Berlin.")
where = click.option("--where", multiple=True, metavar="PROPERTY=VALUE", help=(
    "Only jobs with this value (!=: without); may repeat, values of one property are alternatives."))
_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON Lines.")


def no_account(ledger: Ledger, account: str, currency: str | None = None) -> UsageError:
    """That an account is not there, with those that the name may be a slip for."""
    similar = ledger.similar(account)
    unit = "" if currency is None else f" in {currency or 'credits'}"
    return UsageError(f"there is no account {account!r}{unit}" + (f"; did you mean {similar}?" if similar else ""))


def unit_of(ledger: Ledger, account: str, currency: str | None) -> str:
    """The currency that an option names, else the only one of an account. Raises UsageError."""
    kept = [a.currency for a in ledger.accounts() if a.account == account]
    if currency is not None and currency not in kept:
        raise no_account(ledger, account, currency)
    if not kept:
        raise no_account(ledger, account)
    if currency is None and len(kept) != 1:
        currencies = ", ".join(c or "credits" for c in kept)
        raise UsageError(f"account {account!r} is kept in {currencies}; name one with --currency")
    return kept[0] if currency is None else currency


def amount_of(text: str) -> Decimal:
    """An amount of money. Raises UsageError."""
    from sssjob.accounting.arithmetic import amount_in

    amount = amount_in(text)
    if amount is None:
        raise UsageError(f"{text[:40]!r} is no amount, as 12.50")
    return amount


def opened_ledger(place: str | None, *, create: bool = True) -> Ledger:
    """The ledger that an option names. Raises AccessError, UsageError."""
    from sssjob.accounting.ledger import Ledger
    from sssjob.accounting.store import open_store

    return Ledger(open_store(place, create=create))


def plain(function: Callable[..., int]) -> Callable[..., int]:
    """A command that reads no documents: its errors told like those of the others."""

    @functools.wraps(function)
    def run(as_json: bool, **rest: Any) -> int:
        """Run the function of the command; the exit status is that of its error where it raises one."""
        try:
            return function(as_json=as_json, **rest)
        except SSSJobError as error:
            status, message = status_of(error)
            problem(message, as_json=as_json, status=status)
            return status

    return _json(run)


def told(entry: Entry, as_json: bool) -> int:
    """Print an entry; gives the exit status."""
    emit(json.dumps(entry.record()) + "\n" if as_json else f"{line(entry)}\n")
    return 0


def money(amount: Decimal, currency: str) -> str:
    """An amount as it is printed."""
    return f"{amount:f} {currency or 'credits'}"


def line(entry: Entry) -> str:
    """An entry on a line."""
    job = f" for job {escape(entry.job, 100)} of {escape(entry.machine, 60)}" if entry.job else ""
    refers = f" of entry {entry.refers}" if entry.refers else ""
    if not entry.account:
        return f"{entry.number}: {entry.kind} of the books up to {utc(entry.document['until'])}"
    if entry.kind == "account":
        details = ", ".join(" ".join((name.replace("_", " "), *_words(value)))
                            for name, value in entry.document["settings"].items())
        return f"{entry.number}: account {escape(entry.account, 100)} in {entry.currency or 'credits'}" + (
            f": {escape(details, 300)}" if details else "")
    return f"{entry.number}: {entry.kind}{refers} {money(entry.amount, entry.currency)}, " \
           f"account {escape(entry.account, 100)}{job}"


def _words(value: object) -> list[str]:
    """A setting of an account as words; what is simply so needs none."""
    if isinstance(value, list | tuple):
        return list(map(str, value))
    return [] if value is True else [str(value)]


def moment_of(text: str | None, zone: str | None, option: str) -> int | None:
    """Epoch seconds of a time that an option names."""
    from sssjob.accounting.times import TimeError, moment

    if text is None:
        return None
    place = None if zone is None else zone_of(zone)
    try:
        return moment(text, place)
    except TimeError as error:
        raise UsageError(f"{option}: {error}") from None
