"""Thresholds: who has used how much of what he was given, of trees of accounts, and beside money of other years."""

from __future__ import annotations

import json
from pathlib import Path

from tests.accounting.conftest import JOB, Command


def _charge(ledger: Command, project: str) -> None:
    """A job of a project that costs 1."""
    Path("one.xml").write_text(JOB.replace("chem", project).replace("<Id>1", f"<Id>{project}"))
    assert ledger("charge one.xml --rates rates.toml -q").code == 0


def test_the_greatest_threshold_that_is_reached_is_told(ledger: Command) -> None:
    """Of accounts that have used 25, 100 and more per cent; one that nobody gave anything has used too much of it."""
    for name, amount in (("chem", "4"), ("bio", "1"), ("idle", "9")):
        ledger(f"deposit {name} {amount} --currency EUR")
    for project in ("chem", "bio", "free"):
        _charge(ledger, project)
    thresholds = "--over 80 --over 20 --over 100%"
    assert ledger(f"usage {thresholds}") == (
        1, "account  given  used  %      over  in\n──────────────────────────────────────\n"
           "bio      1      1.00  100.0  100   EUR\nchem     4      1.00  25.0   20    EUR\n"
           "free     0      1.00  -      100   EUR\n", "")
    assert [json.loads(text)["over"] for text in ledger(f"usage {thresholds} --json").out.splitlines()] == [
        "100", "20", "100"]
    assert ledger("usage idle --over 80") == (0, "", "")


def test_an_account_above_is_used_by_those_below(ledger: Command) -> None:
    """What accounts below lack, beyond their credit, counts as used of the one above, over several levels."""
    for name, amount in (("top", "2"), ("mid", "0.25"), ("chem", "0.25"), ("bio", "0.5")):
        ledger(f"deposit {name} {amount} --currency EUR")
    for name, parent in (("mid", "top"), ("chem", "mid"), ("bio", "mid")):
        ledger(f"account {name} --parent {parent}")
    ledger("credit bio 0.25 --currency EUR")
    for project in ("chem", "bio"):
        _charge(ledger, project)
    assert ledger("usage").out.splitlines()[2:] == [
        "bio      0.50   1.00  0      200.0  EUR", "chem     0.25   1.00  0      400.0  EUR",
        "mid      0.25   0     1.00   400.0  EUR", "top      2      0     0.75   37.5   EUR"]
    assert ledger("usage top --over 37.5").code == 1
    ledger("account mid --parent none")
    assert ledger("usage top").out.splitlines()[2:] == ["top      2      0     0.0  EUR"]


def test_a_deposit_counts_from_the_beginning_of_its_term(ledger: Command) -> None:
    """Money of a later year is no reason to be silent about what is used of this one."""
    ledger("deposit chem 2 --currency EUR --from 1970-01-01T00:00Z --until 1970-02-01T00:00Z")
    ledger("deposit chem 8 --currency EUR --from 2090-01-01T00:00Z --until 2091-01-01T00:00Z")
    ledger("charge job.xml --rates rates.toml -q")
    assert ledger("usage chem").out.splitlines()[2:] == ["chem     1.00   1.00  100.0  EUR"]
    assert ledger("usage chem --until 1970-01-15T00:00Z").out.splitlines()[2:] == ["chem     2      1.00  50.0  EUR"]
    assert ledger("usage chem --until 2090-01-02T00:00Z").out.splitlines()[2:] == ["chem     9.00   1.00  11.1  EUR"]
    assert ledger("usage chem --by posted").out.splitlines()[2:] == ["chem     10     1.00  10.0  EUR"]


def test_what_was_lost_at_the_end_of_a_term_was_not_given(ledger: Command) -> None:
    """Whether the line for cron that takes it out has run or not: a threshold told 40 % before and 100 % after it."""
    for amount, begin, end in (("2", "1970-01-01", "1970-02-01"), ("0.5", "1970-01-01", "1970-01-02"),
                               ("4", "2099-01-01", "2099-01-02")):
        ledger(f"deposit chem {amount} --currency EUR --from {begin}T00:00Z --until {end}T00:00Z")
    ledger("charge job.xml --rates rates.toml -q")          # on the first day, so that it costs half of the longer term
    options = ("", "--until 1970-02-01T00:00Z", "--until 1970-01-01T00:10Z", "--until 2099-01-02T12:00Z", "--by start")
    before = [ledger(f"usage {more}").out for more in options]
    assert [text.splitlines()[2].split()[1:3] for text in before] == [
        ["1.00", "1.00"], ["2.5", "1.00"], ["2.5", "0"], ["1.00", "1.00"], ["1.00", "1.00"]]
    assert ledger("expire").code == 0
    assert [ledger(f"usage {more}").out for more in options] == before
