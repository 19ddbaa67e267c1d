"""Statements of some entries, sums in place of single entries, and refunds by the job."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sssjob.cli import main
from tests.accounting.conftest import Command


def _year(ledger: Command) -> None:
    """Charges of two users on two machines in two months, one given back in part, and a deposit."""
    rows = ["JobID|Cluster|Account|User|Partition|Submit|Start|End|ElapsedRaw|State|NCPUS"]
    for number, (cluster, user, start) in enumerate((("a", "ann", 1_796_000_000), ("a", "bob", 1_796_000_000),
                                                     ("b", "ann", 1_796_200_000), ("a", "ann", 1_798_760_000)), 1):
        rows.append(f"{number}|{cluster}|chem|{user}|q|{start}|{start}|{start + 100}|100|COMPLETED|{number}")
    Path("log").write_text("\n".join(rows) + "\n")
    Path("prices").write_text('name = "r"\nversion = "1"\ncurrency = "EUR"\n'
                              'rate = [{ type = "VBR", name = "Processors", rate = 0.01 }]\n')
    ledger("deposit chem 20 --currency EUR")
    assert ledger("charge --rates prices -f sacct log").code == 0
    assert ledger("refund --job 2 --amount 0.5 --reason", "a very long reason " * 8).code == 0


@pytest.mark.parametrize(("options", "lines"), [
    ("--user ann --by end", ["2 1796000100 charge 1 (a) -1.00", "4 1796200100 charge 3 (b) -3.00",
                             "5 1798760100 charge 4 (a) -4.00", "in all -8.00"]),
    ("--user ann --machine b --by start", ["4 1796200000 charge 3 (b) -3.00", "in all -3.00"]),
    ("--user nobody", ["in all +0"]),
    ("--where User=bob --by end --summarize kind", ["charge 1 -2.00", "refund 1 +0.5", "in all -1.50"]),
    ("--where Machine=b --where Queue!=x --by end", ["4 1796200100 charge 3 (b) -3.00", "in all -3.00"]),
    ("--kind refund --kind deposit --summarize kind", ["deposit 1 +20", "refund 1 +0.5", "in all +20.5"]),
    ("--summarize user --summarize machine", ["opening 0", "- - 1 +20", "ann a 2 -5.00", "ann b 1 -3.00",
                                              "bob a 2 -1.50", "closing 10.50"]),
    ("--kind charge --by end --summarize month --timezone Pacific/Kiritimati", ["2026-11 2 -3.00", "2026-12 1 -3.00",
                                                                                "2027-01 1 -4.00", "in all -10.00"]),
    ("--kind charge --by end --summarize month", ["2026-11 2 -3.00", "2026-12 2 -7.00", "in all -10.00"]),
    ("--kind charge --summarize job --since 2000-01-01 --timezone UTC", [
        "1 1 -1.00", "2 1 -2.00", "3 1 -3.00", "4 1 -4.00", "in all -10.00"]),
])
def test_some_of_a_statement_and_its_sums(ledger: Command, options: str, lines: list[str]) -> None:
    _year(ledger)

    def epoch(found: re.Match[str]) -> str:
        return str(int(datetime.fromisoformat(found[0]).timestamp()))

    out = ledger(f"statement chem {options}").out
    assert [re.sub(r"20\d\d-\S+Z", epoch, " ".join(line.split())) for line in out.splitlines()[2:]] == lines
    record = json.loads(ledger(f"statement chem {options} --json").out)
    amounts = [Decimal(line.split()[-1]) for line in lines]
    if "opening" in record:
        assert (Decimal(record["opening"]), Decimal(record["closing"])) == (amounts[0], amounts[-1])
        assert Decimal(record["opening"]) + sum(Decimal(s["change"]) for s in record["sums"]) == amounts[-1]
    else:
        assert Decimal(record["change"]) == amounts[-1]
        of_sums = [Decimal(s["change"]) for s in record.get("sums", [])]
        assert of_sums == (amounts[:-1] if "summarize" in options else [])
        assert len(record.get("entries", lines[:-1])) == len(lines) - 1


def test_a_reason_is_shown_whole(ledger: Command) -> None:
    _year(ledger)
    assert ledger("statement chem --kind refund").out.count("very") == 8


def test_a_refund_by_the_job(ledger: Command) -> None:
    _year(ledger)
    assert ledger("refund --job 2").out == "7: refund of entry 3 1.50 EUR, account chem for job 2 of a\n"
    assert ledger("refund --job 2").err == "sssjob: entry 3 has 0.00 left to give back\n"
    assert ledger("refund --job 77").err == "sssjob: no charge of job 77 is in force\n"
    assert ledger("refund --job 3 --machine a").err == "sssjob: no charge of job 3 of a is in force\n"
    Path("log").write_text(Path("log").read_text().replace("\n1|a|", "\n1|b|").replace("\n4|a|", "\n1|a|"))
    assert ledger("charge --rates prices -f sacct log").code == 0
    assert ledger("refund --job 1").err == ("sssjob: job 1 has 3 charges: name the entry, 2 (a, started "
                                            "2026-11-30T00:53:20Z), 8 (b, started 2026-11-30T00:53:20Z), 9 (a, started "
                                            "2026-12-31T23:33:20Z)\n")


@pytest.mark.parametrize(("arguments", "message"), [
    ("refund", "name the charge: its ENTRY, or --job"),
    ("refund 2 --job 1", "name the charge: its ENTRY, or --job"),
    ("refund 2 --machine a", "--machine and --amount are for --job"),
    ("statement chem --kind hold", "--kind: 'hold' is none of deposit, withdrawal, expiry, charge, reversal, refund, "
                                   "adjustment"),
    ("statement chem --where q", "'q' is no condition, as Queue=batch or User!=root"),
    ("show 1 --only job", "with entry 1, of the kind deposit, no job is kept"),
    ("show 6 --only rates", "with entry 6, of the kind refund, no rates are kept"),
    ("verify --expect 1:ab", "--expect: '1:ab' is no entry and its hash, as 12:9f...(64 digits)"),
    ("statement chem --summarize week", "--summarize: 'week' is none of month, day, kind, user, machine, job"),
])
def test_what_cannot_be_asked(ledger: Command, arguments: str, message: str) -> None:
    _year(ledger)
    answer = ledger(arguments)
    assert (answer.code, answer.out, answer.err) == (2, "", f"sssjob: {message}\n")


def test_the_lines_of_an_invoice_are_the_sums_of_statements(ledger: Command,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    """From each line to its entries, and from an entry to the job and the rates, which come to its charge again."""
    _year(ledger)
    month = "--timezone UTC --since 2026-11-01 --until 2026-12-01 --by end"
    bill = json.loads(ledger("invoice chem 2026-11 --by User --by Machine -t json --timezone UTC").out)
    assert [line["key"] for line in bill["lines"]] == [["bob", "a"], ["ann", "a"]]
    for line in bill["lines"]:
        user, machine = line["key"]
        of_line = json.loads(ledger(f"statement chem {month} --where User={user} --where Machine={machine} --json").out)
        assert of_line["change"] == f"-{line['amount']}"
    assert ledger("show 3 --only rates").out == Path("prices").read_text()
    Path("job").write_text(ledger("show 3 --only job").out)
    assert main(["charge", "job", "--rates", "prices"]) == 0
    assert '<Charge units="EUR">2.00</Charge>' in capsys.readouterr().out


def test_a_noted_entry_shows_that_an_older_copy_was_put_in_place(ledger: Command) -> None:
    """Hashes follow from each other in an older copy too: only a note elsewhere tells that entries are missing."""
    ledger("deposit chem 20")
    older = Path("ledger.db").read_bytes()
    ledger("deposit chem 5")
    note = json.loads(ledger("verify --json").out)
    assert ledger(f"verify --expect 2:{note['hash']}").code == 0
    Path("ledger.db").write_bytes(older)
    assert ledger("verify").code == 0
    answer = ledger(f"verify --expect 2:{note['hash']} --expect 1:{note['hash'].upper()}")
    assert (answer.code, answer.out, answer.err) == (
        1, "", "sssjob: entry 2, which was noted, is missing\nsssjob: entry 1 is not the one that was noted\n")
