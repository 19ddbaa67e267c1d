"""Money by when it was used: a month is the same however late its logs come; moving money; what an account has used."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.ledger import By, Ledger, LedgerError
from sssjob.accounting.store import open_store
from tests.accounting.conftest import Command
from tests.accounting.test_ledger import D, job, rates

MONTH = 10_000
PAID = 10**6        # the clock of the ledger: long after every job


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    ticks = iter(range(PAID, 10**7))
    return Ledger(open_store(str(tmp_path / "books.db")), clock=lambda: next(ticks))


def test_a_charge_belongs_to_the_end_of_its_job(books: Ledger) -> None:
    """The log of the first month comes much later; a refund and a correction stay with the job."""
    with books as there:
        there.deposit("chem", D(1000))
        there.charge(job("1", start=9_950, seconds=50), None, rates())            # ends when the second month begins
        first = there.charge(job("2", start=500), None, rates())
        assert first.entry is not None
        there.refund(first.entry.number, D(10))
        there.charge(job("2", start=500, seconds=60), None, rates(), supersede=True)
        by_end = there.statement("chem", since=0, until=MONTH, by="end")
        assert [(e.kind, f"{e.change:f}") for e in by_end.entries] == [
            ("charge", "-60.000"), ("refund", "10"), ("charge", "-100.000"), ("refund", "10"), ("reversal", "90.000")]
        assert (by_end.opening, by_end.closing) == (D(0), D(-50))
        second = there.statement("chem", since=MONTH, until=2 * MONTH, by="end")
        assert (second.opening, [e.job for e in second.entries], second.closing) == (D(-50), ["1"], D(-100))
        by_start = there.statement("chem", since=0, until=MONTH, by="start")
        assert (len(by_start.entries), by_start.closing) == (6, D(-100))
        posted = there.statement("chem", since=0, until=MONTH)
        assert (posted.entries, posted.closing) == ((), D(0))
        assert [str(j.value("Id")) for j in there.charged(until=MONTH, by="end")] == ["2"]
        assert [str(j.value("Id")) for j in there.charged(since=MONTH, until=2 * MONTH, by="end")] == ["1"]
        assert list(there.charged(until=MONTH)) == []
        assert list(there.verify()) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 45_000), st.integers(1, 9_000), st.booleans()),
                max_size=12),
       st.sampled_from(["posted", "start", "end"]))
def test_months_follow_one_another(tmp_path_factory: pytest.TempPathFactory,
                                   runs: list[tuple[int, int, int, bool]], by: By) -> None:
    """Whichever time counts, each month opens with what the one before closed with, the last one closes with the
    balance, and what was used of all months is what was used in all."""
    ticks = iter(range(20_000, 10**7, 1_777))
    with Ledger(open_store(str(tmp_path_factory.mktemp("books") / "b")), clock=lambda: next(ticks)) as there:
        there.deposit("chem", D(10**6))
        for ident, start, seconds, refunded in runs:
            posted = there.charge(job(str(ident), start=start, seconds=seconds), None, rates())
            if refunded and posted.outcome == "charged" and posted.entry is not None:
                there.refund(posted.entry.number, posted.entry.amount / 2)
        months = [there.statement("chem", since=n * MONTH, until=(n + 1) * MONTH, by=by) for n in range(20)]
        assert [m.opening for m in months] == [0, *(m.closing for m in months[:-1])]
        assert months[-1].closing == there.account("chem").balance
        (whole,) = there.usage(by=by)
        parts = [u.used for n in range(20) for u in there.usage(since=n * MONTH, until=(n + 1) * MONTH, by=by)]
        assert sum(parts, D(0)) == whole.used == whole.given - there.account("chem").balance


def test_money_that_moves(books: Ledger) -> None:
    with books as there:
        there.deposit("chem", D(100))
        out, back = there.transfer("chem", "bio", D(30), token="t-1", new=True)
        assert (out.kind, out.account, back.kind, back.account, back.refers) == (
            "withdrawal", "chem", "deposit", "bio", out.number)
        assert there.transfer("chem", "bio", D(30), token="t-1") == (out, back)
        assert there.withdraw("chem", D(20), token="t-2", reason="back to the funder").amount == 20
        assert there.withdraw("chem", D(20), token="t-2").number == 4
        assert [(a.account, a.balance) for a in there.accounts()] == [("bio", D(30)), ("chem", D(50))]
        assert list(there.verify()) == []


@pytest.mark.parametrize(("call", "message"), [
    (lambda there: there.withdraw("chem", D(101)), "account chem has 100 credits that are not held, 101 are asked for"),
    (lambda there: there.withdraw("bio", D(1)), "account bio has 0 credits that are not held, 1 are asked for"),
    (lambda there: there.withdraw("chem", D(0)), "0 is not above 0"),
    (lambda there: there.transfer("chem", "chem", D(1)), "chem cannot give money to itself"),
    (lambda there: there.transfer("chem", "", D(1)), "'' is no account"),
    (lambda there: there.transfer("chem", "chemm", D(1)), "did you mean chem"),
    (lambda there: there.transfer("chem", "other", D(3), token="used"), "is something else"),
    (lambda there: there.transfer("chem", "bank", D(2), token="used"), "is something else"),
])
def test_nothing_moves_that_may_not(books: Ledger, call: object, message: str) -> None:
    assert callable(call)
    with books as there:
        there.deposit("chem", D(100))
        there.credit("chem", D(50))
        there.withdraw("chem", D(2), token="used")
        there.deposit("chem", D(2))
        before = [e.hash for e in there.entries()]
        with pytest.raises(LedgerError, match=message):
            call(there)
        assert [e.hash for e in there.entries()] == before


def test_what_an_account_has_used(ledger: Command) -> None:
    ledger("deposit chem 4 --currency EUR")
    ledger("charge job.xml --rates rates.toml -q")
    ledger("deposit idle 4 --currency EUR")
    answer = ledger("usage")
    assert answer == (0, "account  given  used  %     in\n───────────────────────────────\n"
                       "chem     4      1.00  25.0  EUR\nidle     4      0     0.0   EUR\n", "")
    assert ledger("usage --until 1970-01-01T01:00:00Z").out.splitlines()[2].split() == ["chem", "0", "0", "-", "EUR"]
    late = ledger("usage chem --json --since 1970-01-01T02:00:00Z")
    assert json.loads(late.out) == {"account": "chem", "currency": "EUR", "given": "4", "used": "0", "below": "0",
                                    "percent": "0.0"}
    assert ledger("usage --over 26%") == (0, "", "")
    over = ledger("usage --over 25 --json")
    assert (over.code, [json.loads(line)["account"] for line in over.out.splitlines()]) == (1, ["chem"])
    assert ledger("usage --over x").code == ledger("usage --over 0").code == ledger("usage --over -5").code == 2
    assert ledger("usage nobody").code == 2


def test_commands_by_the_end(ledger: Command) -> None:
    ledger("deposit chem 4 --currency EUR")
    ledger("charge job.xml --rates rates.toml -q")
    window = "--since 1970-01-01T00:00:00Z --until 1970-01-01T02:00:00Z"
    answer = ledger(f"statement chem {window} --by end")
    assert [line.split()[0] for line in answer.out.splitlines()[2:]] == ["opening", "2", "closing"]
    assert "1970-01-01T01:16:40Z" in answer.out
    posted = ledger(f"statement chem {window}").out.splitlines()
    assert [line.split()[0] for line in posted[2:]] == ["opening", "closing"]
    assert "1.head" in ledger(f"export {window} --by end").out
    assert "1.head" not in ledger(f"export {window}").out
    assert ledger("withdraw chem 1 --currency EUR --reason back").code == 0
    moved = ledger("transfer chem bio 1 --currency EUR --json")
    assert [json.loads(line)["kind"] for line in moved.out.splitlines()] == ["withdrawal", "deposit"]
    refused = ledger("transfer chem bio 100 --currency EUR")
    assert (refused.code, refused.out) == (1, "")
    assert Decimal(json.loads(ledger("balance chem --json").out)["balance"]) == 1
