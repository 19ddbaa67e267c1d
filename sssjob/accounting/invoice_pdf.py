"""Invoices as PDF, by fpdf2 (extra ``pdf``).

Letters are those of a TrueType file, of which what is used is embedded, or of Helvetica, which every reader of PDF has
and which knows the letters of Latin-1 only. A text that the letters cannot show is refused: no name loses a letter. The
same invoice is the same file, byte for byte.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final

from sssjob.accounting.invoice import Invoice
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from fpdf import FPDF

__all__ = ["pdf_of"]

_OWN: Final = "helvetica"
_EMBEDDED: Final = "embedded"
_GREY: Final = 110
#: How fonts begin: TrueType, OpenType, Apple's.
_FONTS: Final = (b"\0\1\0\0", b"OTTO", b"true")
_CORRECTED: Final = (("entry", 14), ("kind", 20), ("job", 38), ("ended", 24), ("why", 52), ("amount", 32))     # mm


def pdf_of(bill: Invoice, zone: tzinfo = UTC, *, seller: str = "", font: str | None = None) -> bytes:
    """The page of an invoice. zone: of its dates; seller: who asks for the money; font: the path of a TrueType file.

    Raises UsageError where fpdf2 is not installed, or the letters do not have a sign, and AccessError for a font that
    cannot be read.
    """
    try:
        from fpdf import FPDF
        from fpdf.errors import FPDFException
    except ImportError:
        raise UsageError("an invoice as PDF needs fpdf2: pip install 'sssjob[pdf]'") from None
    page = FPDF(format="A4")
    page.set_creation_date(datetime.fromtimestamp(bill.until, UTC))
    page.set_title(f"Invoice {bill.account} {bill.period}")
    page.set_auto_page_break(True, 18)
    family = _letters(page, font)
    page.add_page()
    try:
        if seller:
            _write(page, family, 10, seller)
        _write(page, family, 17, f"Invoice {bill.account} {bill.period}")
        page.set_text_color(_GREY)
        _write(page, family, 9, _about(bill, zone))
        page.set_text_color(0)
        page.ln(4)
        _lines(page, bill)
        if bill.corrections:
            page.ln(6)
            _write(page, family, 12, "Corrections of earlier periods")
            page.set_font(family, size=9)
            _corrections(page, bill, zone)
        return bytes(page.output())
    except FPDFException as error:      # more properties than a page is wide
        raise UsageError(f"the invoice does not fit on a page ({escape(' '.join(str(error).split()), 200)})") from None


def _write(page: FPDF, family: str, size: int, text: str) -> None:
    """Write a text below what stands there. size: of its letters, in points."""
    page.set_font(family, size=size)
    page.multi_cell(0, size * 0.55, _shown(page, text), new_x="LMARGIN", new_y="NEXT")


def _letters(page: FPDF, font: str | None) -> str:
    """The name of the letters."""
    if font is None:
        return _OWN
    try:
        with open(font, "rb") as file:
            if file.read(4) not in _FONTS:
                raise AccessError(escape(font), "is no TrueType font")
        page.add_font(_EMBEDDED, fname=font)
    except AccessError:
        raise
    except OSError as error:
        raise AccessError(escape(font), error.strerror or str(error)) from None
    except Exception as error:      # whatever fontTools says of a file that is no font
        raise AccessError(escape(font), f"is no TrueType font ({escape(str(error), 100)})") from None
    return _EMBEDDED


def _about(bill: Invoice, zone: tzinfo) -> str:
    return (f"Jobs that ended from {_day(bill.since, zone)} to {_day(bill.until - 1, zone)} ({zone})."
            + ("" if bill.closed else " The books of this period are open: it may change."))


def _day(moment: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d")


def _lines(page: FPDF, bill: Invoice) -> None:
    """The table of what is to be paid."""
    record, unit = bill.record(), bill.currency or "credits"
    aligned = (*["LEFT"] * len(bill.by), "RIGHT", "RIGHT", "RIGHT")
    with page.table(text_align=aligned, headings_style=_plain(), borders_layout="HORIZONTAL_LINES") as table:
        _row(table, [*bill.by, "jobs", "processor hours", unit], page)
        for line in record["lines"]:
            _row(table, [*line["key"], str(line["jobs"]), line["processor_h"], line["amount"]], page)
        sums = [("jobs of the period", record["jobs"])]
        if bill.corrections:
            sums.append(("corrections of earlier periods", f"{bill.total - bill.jobs:f}"))
        for title, amount in (*sums, ("to be paid", record["total"])):
            row = table.row()
            row.cell(title, colspan=len(bill.by) + 2, align="LEFT")
            row.cell(amount)


def _corrections(page: FPDF, bill: Invoice, zone: tzinfo) -> None:
    """The table of the corrections."""
    with page.table(text_align=(*["LEFT"] * 5, "RIGHT"), col_widths=[width for _, width in _CORRECTED],
                    headings_style=_plain(), borders_layout="HORIZONTAL_LINES") as table:
        _row(table, [title for title, _ in _CORRECTED], page)
        for entry in bill.corrections:
            ended = entry.document.get("end")
            _row(table, [str(entry.number), entry.kind, entry.job, _day(ended, zone) if isinstance(ended, int) else "",
                         str(entry.document.get("reason", "")), f"{-entry.change:f}"], page)


def _plain() -> Any:
    """Headings in letters that are not bold, which a font of one file does not have."""
    from fpdf import FontFace

    return FontFace(emphasis="")


def _row(table: Any, cells: list[str], page: FPDF) -> None:
    table.row([_shown(page, text) for text in cells])


def _shown(page: FPDF, text: str) -> str:
    """The text; UsageError where the letters lack one of its signs."""
    lacking = sorted({sign for sign in text if not _has(page, sign)})
    if lacking:
        raise UsageError(f"the letters of the PDF have no sign for {escape(text, 60)} (U+{ord(lacking[0]):04X}); name "
                         "a TrueType file that has it with --font")
    return text


def _has(page: FPDF, sign: str) -> bool:
    """Whether the letters have a sign."""
    if page.is_ttf_font:
        return ord(sign) in getattr(page.current_font, "cmap", ())
    return sign.isprintable() and ord(sign) < 256
