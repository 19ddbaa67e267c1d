"""A bank of Gold becomes a ledger: balances and charges are equal, and what a ledger cannot say is told."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from sssjob.accounting import Charge, charge, read_rates
from sssjob.accounting.gold import rates_of, rows_of
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.findings import Findings
from tests.accounting.conftest import Command
from tests.accounting.test_gold import CASES, FIXTURE, job

TABLES = {
    "Account": "Id|Name|Description\n1|Biology|\n2|Chemistry|\n3|Cornucopia|\n4|Physics|below\n",
    "AccountProject": "Account|Name|Access\n1|bio|True\n2|chem|True\n3|ANY|True\n4|phys|True\n",
    "AccountUser": "Account|Name|Access\n1|MEMBERS|True\n1|dave|False\n2|ANY|True\n4|amy|True\n4|bob|True\n",
    "AccountMachine": "Account|Name|Access\n1|colony|True\n2|ANY|True\n2|blue|False\n",
    "AccountAccount": "Account|Id|DepositShare|Overflow\n2|4|0|True\n",
    "ProjectUser": "Project|Name|Active|Admin\nbio|ann|True|False\nbio|dave|True|True\nbio|eve|False|False\n",
    "Allocation": "Id|Account|StartTime|EndTime|Amount|CreditLimit|Deposited|Active|CallType|Description\n"
                  "1|1|-infinity|infinity|1000.5|0|1500|True|Normal|grant 17\n"
                  "2|1|2020-01-01|2999-01-01 12:00:00|250|0|250|True|Normal|\n"
                  "3|1|2020-01-01|2021-01-01|77|0|100|False|Normal|\n"
                  "4|2|-infinity|infinity|-30|500|0|True|Normal|\n5|4|0|2147483647|12|7|12|True||\n"
                  "6|2|-infinity|infinity|9|0|9|True|Forward|\n",
    "Reservation": "Id|Name|Job\n1|PBS.1|1\n",
    "ChargeRate": "Type|Name|Instance|Amount\nVBR|Processors||1\nNBF|Queue|test|-10\nProcessors|Queue|gpu|8\n",
}


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    folder = tmp_path / "bank"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_a_bank(bank: Path, sssjob: Command, tmp_path: Path) -> None:
    place = str(tmp_path / "l.db")
    asked = ("ledger", "import", "gold", "bank", "--ledger", place, "--currency", "SU", "--write-rates", "r.toml")
    answer = sssjob(*asked)
    assert answer.code == 0, answer.err
    assert ("bank/Account.txt:4: SSS545 warning account 3 is called Cornucopia: jobs find the account of their own "
            "Project, and it is for ANY\n") in answer.err
    with Ledger(open_store(place)) as ledger:
        there = {s.account.account: s for s in ledger.standings()}
        balances = {name: (float(s.account.balance), float(s.account.credit)) for name, s in there.items()}
        assert balances == {"bio": (1250.5, 0), "chem": (-30, 500), "Cornucopia": (0, 0), "phys": (12, 7)}
        assert there["phys"].available == 12 + 7 + 470      # what the account above it has
        assert (there["bio"].settings.users, there["bio"].settings.machines) == (("ann",), ("colony",))
        assert (there["chem"].settings.users, there["chem"].settings.machines) == (None, None)
        assert (there["phys"].settings.users, there["phys"].settings.parent) == (("amy", "bob"), "chem")
        number = ledger.last()
        assert list(ledger.verify()) == []
    assert sssjob(*asked).out == ""
    with Ledger(open_store(place)) as ledger:
        assert ledger.last() == number
    assert [(r.label, str(r.rate)) for r in read_rates((tmp_path / "r.toml").read_text()).rate] == [
        ("VBR Processors", "1"), ("NBF Queue=test", "-10"), ("VBR Processors, Queue=gpu", "8")]


def test_amounts_that_are_finer_than_their_currency(bank: Path, sssjob: Command, tmp_path: Path) -> None:
    """Gold has them, and its balances are kept: the account says how many digits it has."""
    asked = ("ledger", "import", "gold", "bank", "--ledger", str(tmp_path / "l.db"), "--currency", "JPY")
    answer = sssjob(*asked)
    assert answer.code == 0 and "account bio in JPY: digits 1\n" in answer.out, answer
    with Ledger(open_store(str(tmp_path / "l.db"))) as ledger:
        assert ledger.account("bio", "JPY").balance == Decimal("1250.5")
    assert sssjob(*asked).out == ""


def test_what_is_told(bank: Path, sssjob: Command, tmp_path: Path) -> None:
    """Every thing that a ledger does not say, at its line."""
    answer = sssjob("ledger", "import", "gold", "bank", "--dry-run", "--json", "--ledger", str(tmp_path / "l.db"))
    findings = [(Path(f["file"]).name, f["line"], f["subject"])
                for f in map(json.loads, filter(lambda line: line.startswith("{"), answer.err.splitlines()))
                if f["rule"] == "SSS545"]
    assert sorted(findings) == [
        ("Account.txt", 3, "Machine"), ("Account.txt", 4, "Project"), ("Allocation.txt", 4, "EndTime"),
        ("Allocation.txt", 7, "CallType"), ("Reservation.txt", 2, "Reservation")]
    assert not (tmp_path / "l.db").exists()


@pytest.mark.parametrize(("table", "text", "why"), [
    ("Account", "Name\nx\n", "does not name Id"), ("Account", "Id|Name|Name\n1|a|b\n", "names a column twice"),
    ("Account", "Id|Name\n1|a|b\n", "3 columns, not 2"), ("Account", "Id|Name\n|a\n", "needs an Id of its own"),
    ("Account", "Id|Name\n1|a\n1|b\n", "needs an Id of its own"),
    ("Allocation", "Id|Account|Amount\n1|9|5\n", "is of no account"),
    ("Allocation", "Id|Account|Amount\n1|1|1,5\n", "is no amount"),
    ("Allocation", "Id|Account|Amount\n1|1|NaN\n", "is no amount"),
    ("Allocation", "Id|Account|Amount|EndTime\n1|1|5|soon\n", "is no time"),
    ("Allocation", "Id|Account|Amount|EndTime\n1|1|5|2999-13-01\n", "is no time"),
    ("ChargeRate", "Type|Name|Amount\nVBR|Processors|dear\n", "is no rate"),
    ("ChargeRate", "Type|Name|Amount\nVBR|Processors|1\nVBR|Processors|2\n", "is for the same as"),
])
def test_nothing_is_brought_of_a_bank_that_is_wrong(bank: Path, sssjob: Command, tmp_path: Path, table: str, text: str,
                                                    why: str) -> None:
    (bank / f"{table}.txt").write_text(text)
    answer = sssjob("ledger", "import", "gold", "bank", "--ledger", str(tmp_path / "l.db"), "--write-rates", "r.toml")
    assert (answer.code, why in answer.err, answer.out) == (1, True, "")
    assert not (tmp_path / "l.db").exists() and not (tmp_path / "r.toml").exists()


def test_folders_that_are_no_bank(bank: Path, sssjob: Command, tmp_path: Path) -> None:
    (bank / "g_account.psv").write_text("Id|Name\n")
    assert "two files for Account" in sssjob("ledger", "import", "gold", "bank").err
    for name in ("Account.txt", "g_account.psv", "ChargeRate.txt"):
        (bank / name).unlink()
    for folder, code, why in (("bank", 2, "neither a table Account nor ChargeRate"), ("none", 3, "No such file")):
        answer = sssjob("ledger", "import", "gold", folder)
        assert (answer.code, why in answer.err) == (code, True)


def test_tables_of_the_database() -> None:
    """Their columns have g_ before their names; rows that were deleted are not there."""
    findings = Findings("-")
    rows = rows_of("g_id|g_name|g_deleted\n-----+----\n1|a|False\n2|b|True\n", "Account", "-", findings)
    assert [dict(row.cells) for row in rows] == [{"Id": "1", "Name": "a", "Deleted": "False"}] and not list(findings)


def test_two_accounts_of_one_project(bank: Path, sssjob: Command, tmp_path: Path) -> None:
    """The second is called by its own name, which is told; so none loses its money."""
    (bank / "AccountProject.txt").write_text("Account|Name|Access\n1|bio|True\n2|bio|True\n4|phys|True\n4|bio|True\n")
    place = str(tmp_path / "l.db")
    assert sssjob("ledger", "import", "gold", "bank", "--ledger", place).code == 0
    with Ledger(open_store(place)) as ledger:
        assert {a.account for a in ledger.accounts()} == {"bio", "Chemistry", "Cornucopia", "Physics"}


@pytest.mark.parametrize("name", FIXTURE["rates"])
def test_charges_are_those_of_gold(name: str) -> None:
    """The rates of a running bank, written as its ChargeRates are listed, charge what it charged."""
    said = FIXTURE["rates"][name]
    table = "Type|Name|Instance|Amount\n" + "".join(
        f"{r['type']}|{r['name']}|{r.get('instance', '')}|{r['rate']}\n" for r in said["rates"])
    findings = Findings("-")
    rates = read_rates(rates_of(rows_of(table, "ChargeRate", "-", findings), "bank", "", said["precision"], findings))
    assert not list(findings)
    cases = [case for case in CASES if case["rates"] == name and "quirk" not in case]
    assert cases
    for case in cases:
        cost = charge(job(case), rates)
        assert isinstance(cost, Charge) and str(cost.amount) == case["charge"], case["title"]
