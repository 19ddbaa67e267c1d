"""Invoices as documents of UBL 2.1 (ISO/IEC 19845), which programs of book-keeping read.

An Invoice has a line for each line of the jobs and for each late charge, a CreditNote one for each correction that
gives something back; the one less the other is what ``Invoice.total`` says, to the last digit. Quantities are processor
seconds, which are exact. Of taxes nothing is said. Source: UBL-Invoice-2.1.xsd, UBL-CreditNote-2.1.xsd and their
UBL-CommonAggregateComponents-2.1.xsd, whose order of elements is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

from lxml import etree

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.entries import EXACT, Entry
from sssjob.accounting.invoice import Invoice
from sssjob.errors import UsageError
from sssjob.findings import escape

__all__ = ["ubl_credit_note", "ubl_invoice"]

_SCHEMA: Final = "urn:oasis:names:specification:ubl:schema:xsd"
_CBC: Final = f"{{{_SCHEMA}:CommonBasicComponents-2}}"
_CAC: Final = f"{{{_SCHEMA}:CommonAggregateComponents-2}}"
_CURRENCY: Final = re.compile("[A-Z]{3}")
#: Commercial invoice of UNTDID 1001; seconds, and single things, of UN/ECE recommendation 20.
_COMMERCIAL, _SECONDS, _ONE = "380", "SEC", "C62"
_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Line(NamedTuple):
    """A line of a document. unit: of the quantity; earlier: the first day of the period that it corrects."""

    name: str
    quantity: Decimal
    unit: str
    amount: Decimal
    note: str = ""
    earlier: str = ""


def ubl_invoice(bill: Invoice, seller: str, zone: tzinfo = UTC) -> bytes:
    """The Invoice of a period. seller: the name of the centre; zone: of the dates. Raises UsageError where the
    currency is none of ISO 4217, or where there is nothing to be paid for."""
    lines = [_Line(", ".join(line.key) or "jobs", line.processor_s, _SECONDS, line.amount,
                   f"{line.jobs} jobs, {', '.join(bill.by) or 'all'}") for line in bill.lines]
    lines += _corrections((entry for entry in bill.corrections if entry.change < 0), zone)
    return _document("Invoice", bill, seller, lines, zone)


def ubl_credit_note(bill: Invoice, seller: str, zone: tzinfo = UTC) -> bytes:
    """The CreditNote of what a period gives back of earlier ones. Arguments and errors as of ``ubl_invoice``."""
    given_back = (entry for entry in bill.corrections if entry.change >= 0)
    return _document("CreditNote", bill, seller, list(_corrections(given_back, zone)), zone)


def _corrections(entries: Iterable[Entry], zone: tzinfo) -> Iterator[_Line]:
    for entry in entries:
        ended = entry.document.get("end")
        why = str(entry.document.get("reason", ""))
        yield _Line(f"{entry.kind} of job {entry.job}", Decimal(1), _ONE, abs(entry.change),
                    f"entry {entry.number}{f': {why}' if why else ''}",
                    datetime.fromtimestamp(ended, zone).strftime("%Y-%m") if isinstance(ended, int) else "")


def _document(kind: str, bill: Invoice, seller: str, lines: list[_Line], zone: tzinfo) -> bytes:
    if not _CURRENCY.fullmatch(bill.currency):
        raise UsageError(f"UBL names currencies by three letters of ISO 4217, and the account is kept in "
                         f"{escape(bill.currency, 20) or 'credits'}")
    if not lines:
        raise UsageError(f"there is nothing in {escape(bill.period, 20)} of which a {kind} could have a line")
    namespaces = {None: f"{_SCHEMA}:{kind}-2", "cac": _CAC[1:-1], "cbc": _CBC[1:-1]}
    root = etree.Element(f"{{{namespaces[None]}}}{kind}", nsmap=namespaces)     # type: ignore[arg-type]
    first, last = (datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d") for moment in (bill.since, bill.until - 1))
    _basic(root, "UBLVersionID", "2.1")
    _basic(root, "ID", f"{'' if kind == 'Invoice' else 'CN-'}{bill.account}-{bill.period}")
    _basic(root, "IssueDate", datetime.fromtimestamp(bill.until, zone).strftime("%Y-%m-%d"))
    if kind == "Invoice":
        _basic(root, "InvoiceTypeCode", _COMMERCIAL)
    if not bill.closed:
        _basic(root, "Note", "The books of this period are open: it may change.")
    _basic(root, "DocumentCurrencyCode", bill.currency)
    period = _aggregate(root, "InvoicePeriod")
    _basic(period, "StartDate", first)
    _basic(period, "EndDate", last)
    for month in sorted({line.earlier for line in lines} - {""}):
        reference = _aggregate(_aggregate(root, "BillingReference"), "InvoiceDocumentReference")
        _basic(reference, "ID", f"{bill.account}-{month}")
    for role, name in (("AccountingSupplierParty", seller), ("AccountingCustomerParty", bill.account)):
        _basic(_aggregate(_aggregate(_aggregate(root, role), "Party"), "PartyName"), "Name", name)
    with localcontext(EXACT):
        whole = sum((line.amount for line in lines), Decimal(0))
    total = _aggregate(root, "LegalMonetaryTotal")
    for name in ("LineExtensionAmount", "PayableAmount"):
        _basic(total, name, plain(whole), currencyID=bill.currency)
    for number, line in enumerate(lines, 1):
        _add_line(root, kind, number, line, bill.currency)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _add_line(root: etree._Element, kind: str, number: int, line: _Line, currency: str) -> None:
    of = _aggregate(root, f"{kind}Line")
    _basic(of, "ID", str(number))
    if line.note:
        _basic(of, "Note", line.note)
    quantity = "InvoicedQuantity" if kind == "Invoice" else "CreditedQuantity"
    _basic(of, quantity, plain(line.quantity), unitCode=line.unit)
    _basic(of, "LineExtensionAmount", plain(line.amount), currencyID=currency)
    _basic(_aggregate(of, "Item"), "Name", line.name)


def _basic(parent: etree._Element, name: str, text: str, **attributes: str) -> None:
    """Add a text, without what XML cannot hold."""
    etree.SubElement(parent, _CBC + name, attributes).text = _UNFIT.sub(
        lambda sign: f"\\x{ord(sign[0]):02x}", text)


def _aggregate(parent: etree._Element, name: str) -> etree._Element:
    return etree.SubElement(parent, _CAC + name)
