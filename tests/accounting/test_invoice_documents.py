"""Invoices as documents of UBL and as PDF: to the digit, with all of their texts, or refused."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from sssjob.accounting.invoice import Invoice, Line, invoice
from sssjob.accounting.invoice_pdf import pdf_of
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.accounting.ubl import ubl_credit_note, ubl_invoice
from sssjob.errors import AccessError, UsageError
from tests.accounting.conftest import Command
from tests.accounting.support import rate_set
from tests.accounting.test_ledger import job
from tests.strategies import examples

FEB = 31 * 86400        # of 1970
LATER = 365 * 86400
RATES = 'currency = "EUR"\nprecision = 4\nVBR Processors 0.1234'
CBC = "{urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2}"
CAC = "{urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2}"
#: The order of elements in UBL-Invoice-2.1.xsd and UBL-CreditNote-2.1.xsd, as far as they are written; and in a line.
ORDER = ("UBLVersionID", "ID", "IssueDate", "InvoiceTypeCode", "Note", "DocumentCurrencyCode", "InvoicePeriod",
         "BillingReference", "AccountingSupplierParty", "AccountingCustomerParty", "LegalMonetaryTotal", "InvoiceLine",
         "CreditNoteLine")
OF_LINE = ("ID", "Note", "InvoicedQuantity", "CreditedQuantity", "LineExtensionAmount", "Item")


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Ledger]:
    """January closed with a job of 12.34; later a late job, a refund and a better record of January, and February."""
    ticks = iter(range(LATER, LATER + 10**6))
    with Ledger(open_store(str(tmp_path / "books.db")), clock=lambda: next(ticks)) as ledger:
        rates = rate_set(RATES)
        first = ledger.charge(job("1", start=5, more="<Queue>gpu</Queue>"), None, rates)
        ledger.close(FEB)
        ledger.charge(job("2", start=FEB + 5, seconds=60, more="<Queue>müon &amp; co</Queue>"), None, rates)
        ledger.charge(job("3", start=500, seconds=10), None, rates)
        assert first.entry is not None
        ledger.refund(first.entry.number, Decimal("1.5"), reason="node <4> broke")
        yield ledger


def names(container: etree._Element) -> list[str]:
    return [etree.QName(child).localname for child in container]


def total(text: bytes) -> Decimal:
    """What a document of UBL comes to; its elements are in order, and its lines add up to it."""
    root = etree.fromstring(text)
    kind = etree.QName(root).localname
    assert root.tag == f"{{urn:oasis:names:specification:ubl:schema:xsd:{kind}-2}}{kind}"
    assert names(root) == sorted(names(root), key=ORDER.index)
    lines = root.findall(f"{CAC}{kind}Line")
    assert lines and all(names(line) == sorted(names(line), key=OF_LINE.index) for line in lines)
    currency = root.findtext(f"{CBC}DocumentCurrencyCode")
    amounts = [line.find(f"{CBC}LineExtensionAmount") for line in lines]
    assert {amount.get("currencyID") for amount in amounts if amount is not None} == {currency}
    payable = root.findtext(f"{CAC}LegalMonetaryTotal/{CBC}PayableAmount")
    assert sum(Decimal(str(amount.text)) for amount in amounts if amount is not None) == Decimal(str(payable))
    return Decimal(str(payable))


def test_an_invoice_and_its_credit_note(books: Ledger) -> None:
    """What is given back of a closed month stands in a CreditNote that names its invoice, late charges in the next
    Invoice; together they are what is to be paid."""
    bill = invoice(books, "chem", "EUR", "1970-02", UTC)
    paid, back = ubl_invoice(bill, "Centre"), ubl_credit_note(bill, "Centre")
    assert (total(paid), total(back)) == (Decimal("17.2760"), Decimal("1.5"))
    assert total(paid) - total(back) == bill.total
    text = back.decode()
    assert "<cbc:ID>chem-1970-01</cbc:ID>" in text and "node &lt;4&gt; broke" in text
    assert "<cbc:Name>müon &amp; co</cbc:Name>" in paid.decode()
    assert total(ubl_invoice(invoice(books, "chem", "EUR", "1970-01", UTC), "Centre")) == Decimal("24.68")


@settings(max_examples=examples(33), deadline=None)
@given(amounts=st.lists(st.decimals("0.000000001", 10**12, places=9), min_size=1, max_size=8),
       name=st.text(max_size=20))
def test_any_numbers_and_names(amounts: list[Decimal], name: str) -> None:
    """Sums are exact, and whatever is in a name the document can be read."""
    bill = Invoice("a", "EUR", "2026-01", 0, FEB, True, ("Queue",), [
        Line((name,), 1, Decimal(3), amount) for amount in amounts])
    assert total(ubl_invoice(bill, name)) == sum(amounts)


def test_what_ubl_cannot_say(books: Ledger) -> None:
    bill = invoice(books, "chem", "EUR", "1970-01", UTC)
    bill.currency = "SU"
    with pytest.raises(UsageError, match="ISO 4217"):
        ubl_invoice(bill, "Centre")
    bill.currency, bill.lines = "EUR", []
    for write in (ubl_invoice, ubl_credit_note):
        with pytest.raises(UsageError, match="there is nothing in 1970-01"):
            write(bill, "Centre")


# --- PDF ------------------------------------------------------------------------------------------------------------

def shown(data: bytes) -> str:
    """The texts of a PDF whose letters are those of Helvetica."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    page = b"".join(zlib.decompress(stream) for stream in streams if stream[:1] == b"x")
    return "|".join(text.replace("\\", "") for text in re.findall(r"\((.*?)(?<!\\)\) Tj", page.decode("latin-1")))


def test_a_page(books: Ledger) -> None:
    pytest.importorskip("fpdf")
    bill = invoice(books, "chem", "EUR", "1970-02", UTC)
    data = pdf_of(bill, UTC, seller="Rechenzentrum Süd")
    assert data.startswith(b"%PDF-") and data == pdf_of(bill, UTC, seller="Rechenzentrum Süd")
    assert shown(data) == (
        "Rechenzentrum Süd|Invoice chem 1970-02|Jobs that ended from 1970-02-01 to 1970-02-28 (UTC). The books of this "
        "period are open: it may change.|Queue|jobs|processor hours|EUR|müon & co|1|0.03|14.8080|jobs of the period|"
        "14.8080|corrections of earlier periods|0.9680|to be paid|15.7760|Corrections of earlier periods|entry|kind|"
        "job|ended|why|amount|4|charge|3|1970-01-01|2.4680|5|refund|1|1970-01-01|node <4> broke|-1.5")


@pytest.mark.parametrize("text", ["山田", "λ", "a\u0007", "\U0001f600"])
def test_a_name_that_the_letters_cannot_show(books: Ledger, text: str) -> None:
    pytest.importorskip("fpdf")
    bill = invoice(books, "chem", "EUR", "1970-01", UTC)
    bill.lines[0].key = (text,)
    with pytest.raises(UsageError, match="have no sign for"):
        pdf_of(bill)


def test_other_letters(books: Ledger, tmp_path: Path) -> None:
    """A font that has them; files that are none."""
    pytest.importorskip("fpdf")
    fonts = pytest.importorskip("matplotlib.font_manager")
    bill = invoice(books, "chem", "EUR", "1970-01", UTC)
    bill.lines[0].key = ("λ-Projekt",)
    assert pdf_of(bill, font=fonts.findfont("DejaVu Sans")).startswith(b"%PDF-")
    wrong = tmp_path / "x.ttf"
    wrong.write_bytes(b"no font")
    for path, why in ((str(wrong), "is no TrueType font"), (str(tmp_path / "none.ttf"), "No such file")):
        with pytest.raises(AccessError, match=why):
            pdf_of(bill, font=path)


@pytest.mark.parametrize(("options", "code", "message"), [
    ("-t ubl", 2, "ubl needs the name of who asks for the money"), ("--seller x", 2, "--seller is for pdf, ubl"),
    ("-t ubl --seller x --font f", 2, "--font is for pdf"), ("-t pdf --json --font f", 2, "not for json"),
    ("-t ubl --seller x", 0, ""), ("-t ubl-credit-note --seller x", 2, "there is nothing"),
])
def test_the_command(books: Ledger, tmp_path: Path, sssjob: Command, options: str, code: int, message: str) -> None:
    answer = sssjob("ledger", "invoice", "chem", "1970-01", "--ledger", str(tmp_path / "books.db"), *options.split())
    assert (answer.code, message in answer.err, answer.out.startswith("<?xml")) == (code, True, code == 0)
