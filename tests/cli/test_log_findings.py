"""What many records of a log share is told once, with its number and where it begins, by all commands that read logs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sssjob.cli import _log_findings
from tests.cli.conftest import Command

RATES = 'name = "r"\nversion = "1"\nrate = [{ type = "VBR", name = "Processors", rate = 1 }]\n'
SACCT = "JobID|Cluster|Account|User|Submit|Start|End|ElapsedRaw|State|AllocTRES|ExitCode"
PBS = ("11/21/2026 10:00:{n:02};E;{n}.head;user=u group=g account=p queue=q ctime={t} qtime={t} etime={t} start={t} "
       "end=1795000060 exec_host=n/0 Resource_List.ncpus=1 resources_used.ncpus=1 resources_used.walltime={w} "
       "Exit_status=0")
SGE = ("q:n:g:u:j:{n}:sge:0:{t}:{t}:1795000060:0:{x}:60:1:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:NONE:1:0:1:0:0:NONE:0:NONE:"
       "0:0:0")
SWF = "{n} 0 0 60 1 60 -1 {x} 60 -1 1 1 1 1 1 1 -1 -1"


def sacct(n: int, start: object = 1795000000, state: str = "COMPLETED") -> str:
    return f"{n}|colony|p1|u1|1795000000|{start}|1795000060|60|{state}|cpu=1,node=1|0:0"


#: Kind -> (format, lines, what is told of each cause).
LOGS: dict[str, tuple[str, list[str], list[str]]] = {
    "no header": ("sacct", [sacct(n) for n in range(1, 13)], [
        ":1: SSS540 warning record rejected: header: no header and no option columns says what the columns are (12 "
        "times, the last at line 12)"]),
    "states": ("sacct", [SACCT, *(sacct(n, state="ODD" if n % 3 else "NEW") for n in range(1, 10))], [
        ":2: SSS203 warning State 'ODD' is not known, taken as Completed (6 times, the last at line 9)",
        ":4: SSS203 warning State 'NEW' is not known, taken as Completed (3 times, the last at line 10)"]),
    "times": ("sacct", [SACCT, *(sacct(n, f"21.11.26 10:{n}") for n in range(10, 15)), sacct(1), sacct(2, "noon")], [
        ":2: SSS540 warning record rejected: time: Start '21.11.26 10:10' is no time (5 such, the last at line 6)",
        ":8: SSS540 warning record rejected: time: Start 'noon' is no time"]),
    "columns": ("sacct", [SACCT, "1|2", "2|2", sacct(3), "4|2|3"], [
        ":2: SSS540 warning record rejected: columns: 2 columns, not 11 (3 such, the last at line 5)"]),
    "walltimes of PBS": ("pbs-acct", [PBS.format(n=n, t=1795000000, w="long") for n in range(1, 5)], [
        ":1: SSS540 warning record rejected: number: resources_used.walltime 'long' is no duration (4 times, the last "
        "at line 4)"]),
    "failed of Grid Engine": ("sge-acct", [SGE.format(n=n, t=1795000000, x="x") for n in range(1, 4)], [
        ":1: SSS540 warning record rejected: number: exit_status 'x' is no whole number (3 times, the last at "
        "line 3)"]),
    "workloads": ("swf", [SWF.format(n=n, x="x") for n in range(1, 4)], []),
}


def told(err: str, name: str) -> list[str]:
    return [line.removeprefix(name) for line in err.splitlines() if ": SSS540 " in line or ": SSS203 " in line]


@pytest.mark.parametrize("kind", LOGS)
def test_each_cause_once(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    source, lines, causes = LOGS[kind]
    Path("log").write_text("\n".join(lines) + "\n")
    Path("rates.toml").write_text(RATES)
    rates, log = ("--rates", "rates.toml"), ("-f", source, "--option", "timezone=UTC", "log")
    answers = {
        "convert": sssjob("convert", "-t", "jsonl", *log)[2],
        "account": sssjob("account", *log)[2],
        "charge": sssjob("charge", *rates, *log)[2],
        "ledger": sssjob("ledger", "charge", "--ledger", "l.db", *rates, *log)[2],
        "resume": sssjob("ledger", "charge", "--ledger", "m.db", "--resume", *rates, *log)[2],
    }
    if kind == "workloads":     # whatever is said of it, each says it once
        causes = told(answers["convert"], "log")
        assert len(causes) == 1 and "(3 times, the last at line 3)" in causes[0]
    assert {command: told(err, "log") for command, err in answers.items()} == dict.fromkeys(answers, causes)


def test_whole_documents_of_records(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that hold all jobs tell it the same."""
    monkeypatch.chdir(tmp_path)
    source, lines, causes = LOGS["states"]
    Path("log").write_text("\n".join(lines) + "\n")
    assert told(sssjob("query", "-f", source, "//Id", "log")[2], "log") == causes


def test_programs_get_each_one(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source, lines, _ = LOGS["no header"]
    Path("log").write_text("\n".join(lines) + "\n")
    told_records = sssjob("convert", "--json", "-f", source, "-t", "jsonl", "log")[2].splitlines()
    records = [json.loads(line) for line in told_records]
    assert [record["line"] for record in records if record["type"] == "finding"] == list(range(1, 13))


def test_causes_without_end_are_added_up_by_their_subject(sssjob: Command, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_log_findings, "_MOST", 3)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "delta"]
    Path("log").write_text("\n".join([SACCT, *(sacct(n, state=word) for n, word in enumerate(words, 1))]) + "\n")
    assert told(sssjob("account", "-f", "sacct", "log")[2], "log") == [
        f":{n}: SSS203 warning State '{word}' is not known, taken as Completed{more}" for n, word, more in (
            (2, "alpha", ""), (3, "beta", ""), (4, "gamma", ""), (5, "delta", " (3 such, the last at line 7)"))]


def test_warnings_count_each_record(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told once makes ``--strict`` fail as before, told or not."""
    monkeypatch.chdir(tmp_path)
    source, lines, _ = LOGS["states"]
    Path("log").write_text("\n".join(lines) + "\n")
    assert sssjob("account", "-f", source, "--strict", "-q", "log")[0] == 1
    assert sssjob("account", "-f", source, "log")[0] == 0
