"""What counts as failed is the same by the log and by the usage records made of it, and what came of bad input."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import Command

ENDS = ("COMPLETED|0:0", "FAILED|2:0", "TIMEOUT|0:0", "NODE_FAIL|1:0", "PREEMPTED|0:0", "OUT_OF_MEMORY|0:125",
        "DEADLINE|0:0", "CANCELLED by 7|0:15", "BOOT_FAIL|0:0", "REQUEUED|0:0", "COMPLETED|0:9", "CANCELLED|0:0")
FAILED = 7      # FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, DEADLINE, BOOT_FAIL, and the one that a signal ended


def log(place: Path) -> None:
    rows = [f"{n}|colony|p{n}|u|q|1795000000|1795000000|1795000060|60|{end}|1" for n, end in enumerate(ENDS, 1)]
    header = "JobID|Cluster|Account|User|Partition|Submit|Start|End|ElapsedRaw|State|ExitCode|NCPUS"
    place.write_text("\n".join([header, *rows]) + "\n")


@pytest.mark.parametrize("target", ["sacct", "sss", "ur1", "ur2", "car"])
def test_failed_means_failed(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log"))
    name = "log"
    if target != "sacct":
        options = ("--option", "site=here") if target == "car" else ()
        code, text, err = sssjob("convert", "-f", "sacct", "-t", target, *options, "log")
        assert code == 0, err
        Path(name := "records").write_text(text)
    out = sssjob("account", "-f", target, "--by", "", "--json", name)[1]
    whole = next(record for record in map(json.loads, out.splitlines()) if record["type"] == "whole")
    assert (whole["jobs"], whole["failed"]) == (len(ENDS), FAILED)


def test_whoever_cancelled_a_job_its_state_is_one(sssjob: Command, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Extension State is the manager's word alone, by columns and by lines; StatusMessage says who it was."""
    monkeypatch.chdir(tmp_path)
    log(Path("log"))
    states = {}
    for by in ("Extension:State", "StatusMessage"):
        for more in ((), ("--every", "month")):
            lines = sssjob("account", "-f", "sacct", "--by", by, *more, "--json", "log")[1].splitlines()
            totals = [record for record in map(json.loads, lines) if record["type"] == "total"]
            states[by, more] = {total["key"][by]: total["jobs"] for total in totals}
    expected = Counter(end.split("|")[0].split()[0] for end in ENDS)
    assert states["Extension:State", ()] == states["Extension:State", ("--every", "month")] == expected
    messages = states["StatusMessage", ()]
    assert messages["cancel: CANCELLED by 7"] == messages["cancel: CANCELLED"] == 1


def test_where_nothing_was_read_no_page_is_written(sssjob: Command, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sssjob("account", "-f", "sacct", "--report", "page.html", "none.txt")[0] == 3
    assert not Path("page.html").exists()


def test_many_overdrawn_accounts_are_told_in_a_line(sssjob: Command, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log"))
    Path("rates.toml").write_text('name = "r"\nversion = "1"\n'
                                  'rate = [{ type = "VBR", name = "Processors", rate = 1 }]\n')
    err = sssjob("ledger", "charge", "--ledger", "l.db", "--rates", "rates.toml", "-f", "sacct", "log")[2].splitlines()
    assert sum("is overdrawn" in line for line in err) == 10
    assert err[-2:] == ["2 more accounts are overdrawn: sssjob ledger usage --over 100",
                        "12 jobs: 12 charged; 720.00 credits"]
    assert len(sssjob("ledger", "usage", "--ledger", "l.db", "--over", "100", "--json")[1].splitlines()) == 12
