"""The end of a month: closed books stay as they are, and what comes later is a correction of the next invoice."""

from __future__ import annotations

import csv
import json
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.invoice import invoice, period_of
from sssjob.accounting.ledger import Ledger, LedgerError
from sssjob.accounting.store import open_store
from tests.accounting.conftest import Command
from tests.accounting.test_ledger import D, job, rates
from tests.strategies import examples

JAN, FEB, MAR = 0, 31 * 86400, 59 * 86400       # of 1970
LATER = 365 * 86400


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    ticks = iter(range(LATER, LATER + 10**6))
    return Ledger(open_store(str(tmp_path / "books.db")), clock=lambda: next(ticks))


def test_a_month_that_is_closed(books: Ledger) -> None:
    with books as there:
        first = there.charge(job("1", start=JAN + 5, more="<Queue>gpu</Queue>"), None, rates())
        there.charge(job("2", start=FEB + 5, seconds=60), None, rates())
        assert first.entry is not None
        january = invoice(there, "chem", "", "1970-01", UTC)
        assert (january.closed, january.total, january.corrections) == (False, D(100), [])
        assert there.close(FEB).kind == "closing"
        # a late log, a correction and a refund of January come when February is charged
        there.charge(job("3", start=JAN + 500, seconds=10), None, rates())
        there.charge(job("1", start=JAN + 5, seconds=50, more="<Queue>gpu</Queue>"), None, rates(), supersede=True)
        again = invoice(there, "chem", "", "1970-01", UTC)
        assert (again.closed, again.lines, again.total) == (True, january.lines, D(100))
        february = invoice(there, "chem", "", "1970-02", UTC)
        assert [(line.key, line.jobs, line.amount) for line in february.lines] == [(("-",), 1, D(60))]
        assert [(e.kind, e.job, f"{e.change:f}") for e in february.corrections] == [
            ("charge", "3", "-10.000"), ("reversal", "1", "100.000"), ("charge", "1", "-50.000")]
        assert (february.jobs, february.total) == (D(60), D(20))
        assert there.statement("chem", since=JAN, until=FEB, by="end").closing == -100
        assert list(there.verify()) == []


def test_what_is_corrected_within_the_month_is_no_correction(books: Ledger) -> None:
    with books as there:
        first = there.charge(job("1", start=5, more="<Queue>gpu</Queue>"), None, rates())
        there.charge(job("1", start=5, seconds=40, more="<Queue>gpu</Queue>"), None, rates(), supersede=True)
        second = there.charge(job("2", start=5, processors=4, more="<Queue>gpu</Queue>"), None, rates())
        assert first.entry is not None and second.entry is not None
        there.refund(second.entry.number, D(50))
        (line,) = invoice(there, "chem", "", "1970", UTC).lines
        assert (line.key, line.jobs, line.processor_s, line.amount) == (("gpu",), 2, D(480), D(190))


@settings(deadline=None, max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(["charge", "refund", "close"]), st.integers(0, 3), st.integers(0, 120)),
                max_size=15))
def test_months_add_up_to_the_account(tmp_path_factory: pytest.TempPathFactory,
                                      steps: list[tuple[str, int, int]]) -> None:
    """Whatever is charged, refunded and closed in whatever order: all invoices together are what the account lost, and
    an invoice of closed books never changes."""
    ticks = iter(range(LATER, LATER + 10**6))
    with Ledger(open_store(str(tmp_path_factory.mktemp("books") / "b")), clock=lambda: next(ticks)) as there:
        numbers: list[int] = []
        fixed: dict[str, Decimal] = {}
        for what, ident, day in steps:
            if what == "charge":
                posted = there.charge(job(str(ident), start=day * 86400, seconds=100 + day), None, rates())
                numbers += [posted.entry.number] if posted.outcome == "charged" and posted.entry is not None else []
            elif what == "refund" and numbers:
                there.refund(numbers.pop(), D(10))
            elif what == "close":
                until = period_of(f"1970-{1 + day % 6:02d}", UTC)[1]
                if until > (there.closed() or 0):
                    there.close(until)
                    months = [f"1970-{n:02d}" for n in range(1, 2 + day % 6)]
                    fixed |= {m: invoice(there, "chem", "", m, UTC).total for m in months if m not in fixed}
        year = [f"1970-{n:02d}" for n in range(1, 13)]
        totals = {month: invoice(there, "chem", "", month, UTC).total for month in year}
        assert {month: totals[month] for month in fixed} == fixed
        assert sum(totals.values(), D(0)) == -there.account("chem").balance
        assert list(there.verify()) == []


@pytest.mark.parametrize(("text", "zone", "span"), [
    ("1970-01", "UTC", (0, FEB)), ("1970", "UTC", (0, LATER)), ("1970-12", "UTC", (334 * 86400, LATER)),
    ("1970-02", "Europe/Berlin", (FEB - 3600, MAR - 3600)),
])
def test_periods(text: str, zone: str, span: tuple[int, int]) -> None:
    assert period_of(text, ZoneInfo(zone)) == span


@pytest.mark.parametrize("text", ["1970-13", "70-1", "1970-1", "january", "", "1970-01-01", "9999-12"])
def test_no_periods(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        period_of(text, UTC)


def test_what_cannot_be_closed(books: Ledger) -> None:
    with books as there:
        there.close(FEB)
        with pytest.raises(LedgerError, match=r"closed up to \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ already"):
            there.close(FEB)
        with pytest.raises(LedgerError, match="when the time is over"):
            there.close(LATER * 2)
        there.store.execute("UPDATE sources SET state = '5' WHERE name = 'closed'")
        assert list(there.verify()) == ["the books are not closed up to where the entries say"]


def test_the_commands(ledger: Command, tmp_path: Path) -> None:
    ledger("deposit chem 9 --currency EUR")
    ledger("charge job.xml --rates rates.toml -q")
    answer = ledger("invoice chem 1970-01")
    assert answer == (0, "Queue,jobs,processor_h,amount,entry,job,why\n-,1,2.00,1.00,,,\n,,,1.00,,,to be paid\n",
                      "the books of 1970-01 are open: the invoice may change until sssjob ledger close\n")
    assert ledger("close 1970-02-01T00:00:00Z") == (0, "3: closing of the books up to 1970-02-01T00:00:00Z\n", "")
    assert ledger("refund 2 0.25 --reason", "=broken <node>").code == 0
    assert json.loads(ledger("invoice chem 1970-01 --json").out)["closed"] is True
    rows = list(csv.DictReader(ledger("invoice chem 1970-02 --by Project --by User").out.splitlines()))
    assert [(r["amount"], r["entry"], r["job"], r["why"]) for r in rows] == [
        ("-0.25", "4", "1.head", "'=broken <node>"), ("-0.25", "", "", "to be paid")]
    assert ledger("invoice chem 1970-02 -t html -o page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Corrections of earlier periods" in page and "=broken &lt;node&gt;" in page
    assert "The books of this period are open" in page and "://" not in page
    closed = ledger("invoice chem 1970-01 -t html")
    assert "are open" not in closed.out + closed.err
    assert ledger("invoice chem 2999-01") == (
        1, "", "sssjob: 2999-01 has not begun, and nothing is to be paid for it\n")
    assert [a["account"] for a in map(json.loads, ledger("balance --json").out.splitlines())] == ["chem"]
    assert ledger("verify").code == 0
    for wrong in ("invoice chem 1970-1", "invoice nobody 1970-01", "invoice chem 1970-01 --by Nothing",
                  "invoice chem 1970-01 --timezone Nowhere", "invoice chem 1970-01 -t doc", "close soon"):
        assert ledger(wrong).code == 2, wrong
    assert ledger("close 2999-01-01T00:00:00Z").code == 1
