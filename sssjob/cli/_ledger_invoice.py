"""``sssjob ledger`` close and invoice: the end of a month."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import say
from sssjob.cli._ledger import moment_of, opened_ledger, place, plain, reason, timezone, told, unit_of
from sssjob.cli._options import output_option, zone_of
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.accounting.invoice import Invoice

_FORMATS: Final = ("csv", "html", "json", "pdf", "ubl", "ubl-credit-note")
#: Option -> the formats that say it.
_ONLY: Final = {"--seller": ("pdf", "ubl", "ubl-credit-note"), "--font": ("pdf",)}
_TITLES: Final = ("jobs", "processor_h", "amount", "entry", "job", "why")


@click.command("close")
@click.argument("until", metavar="TIME")
@reason
@timezone
@place
@plain
def close(until: str, reason: str, timezone: str | None, place: str | None, as_json: bool) -> int:
    """Close the books up to TIME: what is posted later about jobs that ended before belongs to the time after it."""
    moment = moment_of(until, timezone, "TIME")
    assert moment is not None
    with opened_ledger(place, create=False) as ledger:
        return told(ledger.close(moment, reason=reason), as_json)


@click.command("invoice")
@click.argument("account")
@click.argument("period")
@click.option("-t", "--to", "target", type=click.Choice(_FORMATS), default="csv", help="Format (default: csv).")
@click.option("--currency", metavar="UNIT", help="Currency (default: the only one that the account has).")
@click.option("--by", "by", multiple=True, metavar="PROPERTY", help="A line for each value (Queue); may repeat.")
@click.option("--seller", metavar="NAME", help="Who asks for the money: of pdf, and needed for ubl.")
@click.option("--font", metavar="FILE", help="A TrueType file with the letters of pdf (default: Helvetica, Latin-1).")
@timezone
@place
@output_option
@plain
def invoice(account: str, period: str, target: str, currency: str | None, by: tuple[str, ...], seller: str | None,
            font: str | None, timezone: str | None, place: str | None, output: str, as_json: bool) -> int:
    """Print what ACCOUNT has to pay for PERIOD, a month (2026-01) or a year (2026): what its jobs cost that ended then,
    and corrections of what was paid before."""
    from sssjob.accounting.invoice import invoice as invoice_of

    zone, target = UTC if timezone is None else zone_of(timezone), "json" if as_json else target
    for option, value in (("--seller", seller), ("--font", font)):
        if value is not None and target not in _ONLY[option]:
            raise UsageError(f"{option} is for {', '.join(_ONLY[option])}, not for {target}")
    if target.startswith("ubl") and not (seller or "").strip():
        raise UsageError(f"{target} needs the name of who asks for the money: --seller NAME")
    with opened_ledger(place, create=False) as ledger:
        unit = unit_of(ledger, account, currency)
        try:
            bill = invoice_of(ledger, account, unit, period, zone, by=by or ("Queue",))
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error)) from None
    emit(_written(bill, target, zone, seller or "", font), output)
    if not (bill.closed or as_json):
        say(f"the books of {period} are open: the invoice may change until sssjob ledger close")
    return 0


def _written(bill: Invoice, target: str, zone: tzinfo, seller: str, font: str | None) -> str | bytes:
    """An invoice in one of the formats."""
    if target == "pdf":
        from sssjob.accounting.invoice_pdf import pdf_of

        return pdf_of(bill, zone, seller=seller, font=font)
    if target.startswith("ubl"):
        from sssjob.accounting.ubl import ubl_credit_note, ubl_invoice

        return (ubl_invoice if target == "ubl" else ubl_credit_note)(bill, seller, zone)
    if target == "json":
        return json.dumps(bill.record()) + "\n"
    return _csv(bill) if target == "csv" else _html(bill, zone)


def _csv(bill: Invoice) -> str:
    """A row a line, a row a correction, and the sum."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*bill.by, *_TITLES])
    blank = [""] * len(bill.by)
    for line in bill.record()["lines"]:
        rows.writerow([*map(_cell, line["key"]), line["jobs"], line["processor_h"], line["amount"], "", "", ""])
    for entry in bill.corrections:
        rows.writerow([*blank, "", "", f"{-entry.change:f}", entry.number, _cell(entry.job),
                       _cell(str(entry.document.get("reason") or entry.kind))])
    rows.writerow([*blank, "", "", f"{bill.total:f}", "", "", "to be paid"])
    return text.getvalue()


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and text != "-" else text


def _html(bill: Invoice, zone: tzinfo) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    def day(moment: int) -> str:
        """The date of a moment (epoch seconds) in the zone of the invoice."""
        return datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d")

    environment = Environment(loader=PackageLoader("sssjob", "templates"), undefined=StrictUndefined,
                              autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True)
    record = bill.record()
    corrections = [{"number": e.number, "kind": e.kind, "job": e.job, "amount": f"{-e.change:f}",
                    "ended": day(e.document["end"]) if "end" in e.document else "",
                    "reason": str(e.document.get("reason", ""))} for e in bill.corrections]
    return environment.get_template("invoice.html.j2").render(
        title=f"Invoice {bill.account} {bill.period}", bill=bill, lines=record["lines"], jobs=record["jobs"],
        corrections=corrections, corrected=f"{bill.total - bill.jobs:f}", total=record["total"],
        unit=bill.currency or "credits", first=day(bill.since), last=day(bill.until - 1), zone=str(zone)) + "\n"


COMMANDS = (close, invoice)
