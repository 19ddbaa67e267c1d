"""``sssjob ledger``: what each command prints, refuses and posts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sssjob.cli import main
from tests.accounting.conftest import JOB, LEDGER_RATES, PBS, WAITING, Command

ROOT = Path(__file__).parents[2]


def test_scripts_are_quoted_and_held_like_documents(ledger: Command, tmp_path: Path) -> None:
    """The price of a script is that of the document that it becomes: four processors for an hour."""
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -J a -A chem -t 60\n#SBATCH -n 2 -c 2\nsrun hostname\n")
    (tmp_path / "site.toml").write_text('name = "site"\nmachine = "colony"\n')
    assert main(["convert", "-q", "-f", "slurm", "-t", "sss", "job.sh", "-o", "script.xml"]) == 0
    ledger("deposit chem 500 --currency EUR --reason grant --token t")
    for first, name in ((2, "job.sh"), (5, "script.xml")):
        more = (name, "--rates", "rates.toml", "--site", "site.toml")
        assert ledger("quote", *more).err.splitlines()[-1] == f"quote-{first}: 2.00 EUR for account chem"
        assert ledger("hold", *more).out == f"{first + 1}: hold 2.00 EUR, account chem for job a of colony\n"
        assert ledger(f"release {first + 1}").code == 0


def test_the_life_of_money(ledger: Command) -> None:
    """Deposit, quote, hold, charge, refund, statement: what a user sees of it."""
    assert ledger("deposit chem 10 --currency EUR --reason", "grant 5").out == "1: deposit 10 EUR, account chem\n"
    quoted = ledger("quote waiting.xml --rates rates.toml")
    assert quoted.err == "quote-2: 1.00 EUR for account chem\n" and "<Quote>quote-2</Quote>" in quoted.out
    assert ledger("hold waiting.xml --rates rates.toml").out == \
        "3: hold 1.00 EUR, account chem for job 1.head of colony\n"
    assert ledger("charge job.xml --rates rates.toml").err == "1 job: 1 charged; 1.00 EUR\n"
    assert ledger("charge job.xml --rates rates.toml").err == "1 job: 1 unchanged\n"
    assert ledger("refund 5 0.25 --reason", "slow disk").code == 0
    assert ledger("balance").out.splitlines()[2].split() == ["chem", "9.25", "0.00", "0", "9.25", "EUR"]
    statement = re.sub(r"20\d\d-\S+Z", "TIME", ledger("statement chem --currency EUR").out)
    assert [line.split() for line in statement.splitlines()[2:]] == [
        ["opening", "0"], ["1", "TIME", "deposit", "grant", "5", "+10"],
        ["5", "TIME", "charge", "1.head", "(colony)", "-1.00"],
        ["6", "TIME", "refund", "1.head", "(colony):", "slow", "disk", "+0.25"],
        ["closing", "9.25"]]
    shown = ledger("show 5").out
    assert "  VBR Processors: 2 [Processors] * 0.5 [VBR Processors] * 3600 [Duration] / 3600 [s/hour] = 1\n" in shown
    assert [line.split()[1] for line in ledger("list --job 1.head").out.splitlines()] == [
        "hold", "release", "charge", "refund"]
    assert ledger("verify").out == "6 entries: hashes, balances, holds and charges are as they follow\n"


def test_logs_are_charged_once(ledger: Command, tmp_path: Path) -> None:
    """The same log again, more of it, and its rotation: each job once; the counts add up."""
    line = "charge -f pbs-acct log --rates rates.toml --resume"
    first = ledger(line)
    assert first.err.splitlines() == ["log: 2 records read: 2 given as 1 jobs, 0 rejected",
                                      "sssjob: account chem is overdrawn: -0.50 EUR left", "1 job: 1 charged; 0.50 EUR"]
    assert ledger(line).err.splitlines()[-1] == "0 jobs"
    with open(tmp_path / "log", "a") as log:
        log.write(PBS.format(9))
    (tmp_path / "log").rename(tmp_path / "log.1")
    (tmp_path / "log").write_text(PBS.format(10))
    assert ledger(line).err.splitlines()[-1] == "2 jobs: 2 charged; 1.00 EUR"
    assert ledger("charge -f pbs-acct log log.1 --rates rates.toml").err.splitlines()[-1] == "3 jobs: 3 unchanged"


def test_json(ledger: Command) -> None:
    assert json.loads(ledger("deposit chem 1 --json").out)["kind"] == "deposit"
    charged, counts = map(json.loads, ledger("charge job.xml --rates rates.toml --json").out.splitlines())
    assert charged["outcome"] == "charged" and charged["entry"]["document"]["charge"]["charge"] == "1.00"
    assert counts == {"type": "counts", "jobs": 1, "charged": 1, "reasons": {}, "totals": {"EUR": "1.00"}}
    assert json.loads(ledger("balance chem --json").out.splitlines()[0])["available"] == "1"
    assert json.loads(ledger("statement chem --currency EUR --json").out)["closing"] == "-1.00"
    last = json.loads(ledger("show 2 --json").out)
    assert last["job"] == "1.head"
    assert json.loads(ledger("verify --json").out) == {
        "type": "verified", "entries": 2, "hash": last["hash"], "wrong": 0}


NO_MACHINE = ("it names no Machine, which is part of what it is charged under; for a script a site profile (--site) "
              "names it, for records the option machine")


def test_jobs_that_cannot_be_charged_are_told(ledger: Command, tmp_path: Path) -> None:
    (tmp_path / "jobs.xml").write_text(
        "<JobGroup><Id>g</Id>\n" + JOB + JOB.replace("1.head", "2").replace("<Machine>colony</Machine>", "")
        + JOB.replace("1.head", "3").replace("Processors>", "NodeCount>") + WAITING.replace("1.head", "4")
        + JOB.replace("1.head", "5").replace("<Project>chem</Project>", "") + "</JobGroup>")
    answer = ledger("charge jobs.xml --rates rates.toml --itemise --strict")
    assert answer.code == 1
    assert answer.out == "charged 1: charge 1.00 EUR, account chem for job 1.head of colony\n"
    assert answer.err.splitlines()[-1] == \
        "5 jobs: 1 charged, 4 not (no-key 2, not-started 1, nothing-priced 1); 1.00 EUR"
    assert f"jobs.xml:13: 2: not charged: no-key ({NO_MACHINE})" in answer.err
    assert "5: not charged: no-key (it has no Project, which names the account (--account-by))" in answer.err


def test_of_many_jobs_that_cannot_be_charged_some_are_told(ledger: Command, tmp_path: Path) -> None:
    """It was a line for each of a million."""
    (tmp_path / "jobs.xml").write_text("<JobGroup><Id>g</Id>" + "".join(
        JOB.replace("1.head", str(n)).replace("<Machine>colony</Machine>", "") for n in range(30)) + "</JobGroup>")
    answer = ledger("charge jobs.xml --rates rates.toml")
    assert answer.code == 1
    assert answer.err.count("not charged: no-key (") == 10
    assert answer.err.splitlines()[-3:] == [
        f"sssjob: jobs.xml: 30 jobs, none of them charged: {NO_MACHINE}",
        "20 more not charged: no-key", "30 jobs: 30 not (no-key 30)"]


def test_a_log_of_which_no_job_has_a_key(ledger: Command, tmp_path: Path) -> None:
    """It was passed over with status 0: with --resume its jobs were never charged once the machine was named."""
    (tmp_path / "s.txt").write_text(
        "JobID|Account|Submit|Start|End|State|AllocCPUS|ElapsedRaw\n"
        + "".join(f"{n}|chem|100|100|3700|COMPLETED|1|3600\n" for n in (1, 2)) + "3|chem|100|||PENDING|1|0\n")
    line = "charge -q -f sacct s.txt --rates rates.toml"
    why = f"sssjob: s.txt: 2 jobs, none of them charged: {NO_MACHINE}"
    assert (answer := ledger(line)).code == 1 and answer.err == f"{why}\n"
    answer = ledger(f"{line} --resume")
    assert (answer.code, answer.err) == (
        1, f"{why}; the next --resume reads it from where this one began, --skip-rejected goes on behind it\n")
    assert ledger("charge -f sacct s.txt --rates rates.toml --resume --option machine=colony").err.splitlines()[-1] == \
        "3 jobs: 2 charged, 1 not (not-started 1); 1.00 EUR"


def test_a_log_of_jobs_that_wait_needs_no_account(ledger: Command, tmp_path: Path) -> None:
    """A record Q of PBS says no Project: a log that had no other was refused, though there was nothing to pay."""
    (tmp_path / "log").write_text("11/02/2026 10:00:00;Q;9.srv;queue=batch\n")
    answer = ledger("charge -f pbs-acct log --rates rates.toml --resume --option machine=srv --option timezone=UTC")
    assert (answer.code, answer.err.splitlines()[-1]) == (0, "1 job: 1 not (not-started 1)")


def test_the_currency_of_a_statement(ledger: Command) -> None:
    """It had to be named even where there is only one."""
    ledger("deposit chem 5 --currency EUR")
    assert ledger("statement chem").out.splitlines()[0].split()[-1] == "EUR"
    ledger("deposit chem 7 --new")
    assert ledger("statement chem").err == \
        "sssjob: account 'chem' is kept in credits, EUR; name one with --currency\n"
    assert ledger("statement", "chem", "--currency", "").out.splitlines()[-1].split() == ["closing", "7"]
    assert ledger("statement nobody").err == "sssjob: there is no account 'nobody'\n"


def test_a_log_of_which_nothing_is_taken(ledger: Command, tmp_path: Path) -> None:
    """A record that is not taken is money that may be lost: the status says so, and the mark stays before it until
    somebody decides."""
    (tmp_path / "torn").write_text("nothing of it\nis a record\n" + PBS.format(8))
    line = "charge -q -f pbs-acct torn --rates rates.toml"
    assert ledger(line).code == 1
    for _ in range(2):
        answer = ledger(f"{line} --resume")
        assert (answer.code, answer.err) == (
            1, "sssjob: torn: 2 records were not taken (columns 2): mend the log or the options and charge it again; "
            "the next --resume reads it from where this one began, --skip-rejected goes on behind it\n")
    assert ledger(f"{line} --resume --skip-rejected").code == 1
    assert ledger(f"{line} --resume").code == 0
    assert ledger(f"{line} --skip-rejected").code == 2


SACCT = "JobID|Cluster|Account|User|Start|End|ElapsedRaw|State|AllocTRES\n"
ROW = "{0}|colony|chem|ann|2025-01-31T22:00:00|2025-01-31T23:00:00|3600|COMPLETED|cpu=2\n"
READ = "charge -f sacct --rates rates.toml --option timezone=UTC"


def test_an_older_log_takes_nothing_back(ledger: Command, tmp_path: Path) -> None:
    """A record of a job that runs says less than the one of its end, in whatever order they are read."""
    (tmp_path / "end").write_text(SACCT + ROW.format(9))
    (tmp_path / "run").write_text(SACCT + ROW.format(9).replace("COMPLETED", "RUNNING").replace(
        "2025-01-31T23:00:00", "Unknown"))
    (tmp_path / "start").write_text(PBS.format(8).splitlines(keepends=True)[0])
    assert ledger(f"{READ} end").err.splitlines()[-1] == "1 job: 1 charged; 1.00 EUR"
    assert ledger(f"{READ} run").err.splitlines()[-1] == "1 job: 1 unchanged"
    assert ledger("charge -f pbs-acct log start log --rates rates.toml").err.splitlines()[-1] == \
        "3 jobs: 1 charged, 2 unchanged; 0.50 EUR"
    assert ledger("balance chem").out.splitlines()[-1].split()[1] == "-1.50"


def test_a_sacct_file_that_grows(ledger: Command, tmp_path: Path) -> None:
    """Its header is read again, and the rows of its last job, of which steps may follow."""
    log, line = tmp_path / "g.txt", f"{READ} --resume g.txt"
    log.write_text(SACCT + ROW.format(1) + ROW.format(2))
    assert ledger(line).err.splitlines()[-1] == "2 jobs: 2 charged; 2.00 EUR"
    with open(log, "a") as file:
        file.write(ROW.format("2.batch") + ROW.format(3))
    assert ledger(line).err.splitlines()[0] == "g.txt: 3 records read: 3 given as 2 jobs, 0 rejected"
    assert ledger("balance chem").out.splitlines()[-1].split()[1] == "-3.00"


def test_a_row_without_a_header_waits_for_one(ledger: Command, tmp_path: Path) -> None:
    """The repair that the message names: with the option columns the same rows are charged."""
    (tmp_path / "g.txt").write_text(ROW.format(1))
    assert ledger(f"{READ} --resume g.txt").code == 1
    columns = SACCT.strip().replace("|", ",")
    assert ledger(f"{READ} --resume g.txt --option columns={columns}").err.splitlines()[-1] == \
        "1 job: 1 charged; 1.00 EUR"


def test_a_line_without_an_end_is_not_charged(ledger: Command, tmp_path: Path) -> None:
    """It may be cut: 3600 s of which only 360 are there yet."""
    (tmp_path / "g.txt").write_text(SACCT + ROW.format(1) + ROW.format(2).partition("0|COMPLETED")[0])
    answer = ledger(f"{READ} -q g.txt")
    assert (answer.code, answer.err) == (
        1, "sssjob: g.txt: the last line has no end and may be cut: it is not charged; charge the log again when it is "
        "whole, or end the line\n")


@pytest.mark.parametrize("resume", ["", "--resume"])
@pytest.mark.parametrize("indent", [None, 1], ids=["a line", "lines"])
def test_a_json_document_needs_no_line_end(ledger: Command, tmp_path: Path, resume: str, indent: int | None) -> None:
    """Its brackets say that it is whole, as of an answer that was stored; one that is cut is told."""
    jobs = [{"jobid": f"f{n}", "id": n, "username": "ann", "bank": "chem", "ncores": 2, "nnodes": 1, "t_submit": 1.0,
             "t_run": 2.0, "t_cleanup": 3602.0, "result": "COMPLETED", "returncode": 0} for n in (1, 2)]
    text = json.dumps({"jobs": jobs}, indent=indent)
    read = f"charge -f flux-jobs --option machine=m --rates rates.toml {resume} f.json"
    (tmp_path / "f.json").write_text(text[:-1])
    assert ledger(read).code == 1
    (tmp_path / "f.json").write_text(text)
    answer = ledger(read)
    assert (answer.code, json.loads(ledger("balance --json").out)["balance"]) == (0, "-2.00")


def test_a_log_is_read_in_one_zone(ledger: Command, tmp_path: Path) -> None:
    """In another zone every job would be another run, charged again, whatever the file is called."""
    (tmp_path / "g.txt").write_text(SACCT + ROW.format(1))
    ledger(f"{READ} g.txt")
    (tmp_path / "g.txt").rename(tmp_path / "h.txt")
    other = READ.replace("UTC", "Europe/Berlin")
    answer = ledger(f"{other} -q h.txt")
    assert (answer.code, answer.err) == (
        1, "sssjob: h.txt: the sacct times of colony were read in the zone UTC until now, not in Europe/Berlin: name "
        "that one; where it was wrong, sssjob ledger rezone takes back what was charged by it\n")
    assert ledger("rezone colony Europe/Berlin -f sacct").out == \
        "1 charges reversed; charge the sacct logs of colony again\n"
    assert ledger(f"{other} h.txt").code == 0
    assert [entry.split()[1] for entry in ledger("list").out.splitlines()] == ["charge", "reversal", "charge"]
    assert ledger("rezone colony Nowhere -f sacct").code == 2
    assert ledger("rezone sun UTC -f sacct").err == "sssjob: no sacct times of sun were read in a zone\n"


def test_a_log_is_of_one_machine(ledger: Command, tmp_path: Path) -> None:
    """By its name and by its first records."""
    text = (SACCT + ROW.format(1)).replace("Cluster|", "").replace("colony|", "")
    (tmp_path / "g.txt").write_text(text)
    assert ledger(f"{READ} -q g.txt --option machine=sun").code == 0
    (tmp_path / "g.txt").rename(tmp_path / "h.txt")
    answer = ledger(f"{READ} -q h.txt --option machine=moon")
    assert (answer.code, answer.err) == (
        1, "sssjob: h.txt: this log was charged as one of the machine sun, not of moon: its jobs would be charged "
        "twice; where that was wrong, sssjob ledger take-back reverses its charges\n")


def test_records_that_contradict_each_other(ledger: Command, tmp_path: Path) -> None:
    """Nobody can tell which is right: the first stays, and --supersede charges the other."""
    (tmp_path / "one").write_text(SACCT + ROW.format(1))
    (tmp_path / "two").write_text(SACCT + ROW.format(1).replace("cpu=2", "cpu=4"))
    ledger(f"{READ} one")
    answer = ledger(f"{READ} -q two")
    assert (answer.code, answer.err) == (1, "sssjob: two:2: 1: not charged: another record of the run is (entry 1): "
                                         "Delivered/Processors 2 and 4; --supersede charges this one instead\n")
    assert ledger(f"{READ} two --supersede").err.splitlines()[-1] == "1 job: 1 superseded; 2.00 EUR"
    assert ledger(f"{READ} one").err.splitlines()[-1] == "1 job: 1 unchanged"
    assert ledger(f"{READ} two").err.splitlines()[-1] == "1 job: 1 unchanged"


def test_a_job_runs_once_at_a_time(ledger: Command, tmp_path: Path) -> None:
    """Times that are shifted, here by a header without a zone, make no second run of a job."""
    (tmp_path / "one").write_text(SACCT + ROW.format(1))
    (tmp_path / "two").write_text(SACCT + ROW.format(1).replace("T22:00:00", "T22:30:00").replace("T23:00", "T23:30"))
    ledger(f"{READ} one")
    answer = ledger(f"{READ} -q two")
    assert answer.code == 1 and "it is charged for a run that starts 2025-01-31T22:00:00Z, and this one starts " \
        "2025-01-31T22:30:00Z" in answer.err
    ledger(f"{READ} two --supersede")
    assert ledger("balance chem").out.splitlines()[-1].split()[1] == "-1.00"


def test_a_slip_opens_no_account(ledger: Command) -> None:
    ledger("deposit prj001 10 --currency EUR")
    assert ledger("deposit prj01 500 --currency EUR").err == (
        "sssjob: there is no account prj01 in EUR; did you mean prj001 (EUR)? --new opens another one\n")
    assert ledger("adjust prj001 -5 --reason slip").code == ledger("credit prj001 5 --currency eur").code == 1
    assert ledger("deposit prj001 500").err == (
        "sssjob: there is no account prj001 in credits; did you mean prj001 (EUR)? --new opens another one\n")
    assert ledger("deposit prj002 500 --currency EUR --new").code == 0
    assert ledger("deposit physics 5 --currency EUR").code == 0


def test_refunds_stay(ledger: Command, tmp_path: Path) -> None:
    """A job that was given back for a broken node is not charged again because the rates changed."""
    ledger("charge job.xml --rates rates.toml")
    ledger("refund 1 0.25")
    (tmp_path / "rates.toml").write_text("# a comment\n" + LEDGER_RATES)
    assert ledger("charge job.xml --rates rates.toml --recharge").err.splitlines()[-1] == "1 job: 1 unchanged"
    (tmp_path / "rates.toml").write_text(LEDGER_RATES.replace("0.5", "0.7"))
    ledger("charge job.xml --rates rates.toml --recharge")
    assert ledger("balance chem").out.splitlines()[-1].split()[1] == "-1.15"
    ledger("refund 4")
    (tmp_path / "rates.toml").write_text(LEDGER_RATES.replace("0.5", "0.9"))
    ledger("charge job.xml --rates rates.toml --recharge")
    assert ledger("balance chem").out.splitlines()[-1].split()[1] == "0.00"


def test_export(ledger: Command, tmp_path: Path) -> None:
    """The charges in force as a table: one that was superseded is not there."""
    ledger("charge job.xml --rates rates.toml")
    (tmp_path / "job.xml").write_text(JOB.replace("3600", "7200"))
    ledger("charge job.xml --rates rates.toml --supersede")
    ledger("charge -f pbs-acct log --rates rates.toml")
    table = ledger("export --option fields=machine,id,start,charge")
    assert table.out == "machine,id,start,charge\ncolony,1.head,1000,2\nhead,8.head,5,0.5\n"
    assert ledger("export -t sss").out.count("<Charge units=\"EUR\">") == 2
    assert ledger("export --until 1000 --option fields=id").out == "id\n"
    (tmp_path / "p.toml").write_text('[properties]\nProject = "pseudonym"\nId = "pseudonym"\n')
    (tmp_path / "key").write_text("a key of sixteen bytes or more")
    assert ledger("export --privacy p.toml").code == 1
    (tmp_path / "p.toml").write_text('key_file = "key"\n' + (tmp_path / "p.toml").read_text())
    hidden = ledger("export --privacy p.toml --option fields=machine,id,project,charge").out
    assert "chem" not in hidden and "head," in hidden.splitlines()[2] and hidden.count(",p-") == 2
    assert ledger("export --option field=id").err == "sssjob: no option 'field' of csv\n"
    assert ledger("export -t parquet -o charges.parquet").code == 0
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "charges.parquet").column("id").to_pylist() == ["1.head", "8.head"]
    assert (ledger("export -t slurm").code, ledger("export -t nonsense").code) == (2, 2)
    assert ledger("export --since 2026-01-01T00:00").err == (
        "sssjob: --since: '2026-01-01T00:00' has no zone: add one (+02:00) or name it\n")


@pytest.mark.parametrize(("line", "code", "message"), [
    ("deposit chem ten", 2, "'ten' is no amount, as 12.50"),
    ("deposit chem NaN", 2, "'NaN' is no amount"),
    ("deposit chem -1", 1, "-1 is not above 0"),
    ("deposit chem 0", 1, "0 is not above 0"),
    ("adjust chem -1", 2, "--reason"),
    ("balance", 3, "there is no ledger"),
    ("balance --ledger job.xml", 3, "file is not a database"),
    ("balance --ledger mysql://x", 2, "no ledger can be kept at mysql://"),
    ("charge job.xml", 2, "--rates"),
    ("charge job.xml --rates job.xml", 1, "not TOML"),
    ("charge none.xml --rates rates.toml", 3, "No such file"),
    ("charge job.xml -f sss --rates rates.toml --resume", 2, "--resume is for logs, not for sss"),
    ("charge - -f pbs-acct --rates rates.toml --resume", 2, "not standard input"),
    ("charge log -f pbs-acct --option zone=UTC --rates rates.toml", 2, "no option 'zone' of pbs-acct"),
    ("charge job.xml --option machine=m --rates rates.toml", 2, "no option 'machine' of sss"),
    ("charge - -f pbs-acct --rates -", 2, "only once"),
    ("charge job.xml -f nonsense --rates rates.toml", 2, "unknown format"),
    ("charge rates.toml -f auto --rates rates.toml", 2, "no format is recognised in it"),
    ("charge log -f auto --resume --rates rates.toml", 2, "--resume needs the format of the log"),
    ("quote job.xml --rates rates.toml --expires soon", 2, "--expires: 'soon' is neither"),
    ("quote waiting.xml --rates rates.toml --expires 2026-01-01T00:00 --timezone Nowhere", 2, "is no time zone"),
    ("hold waiting.xml --rates rates.toml", 1, "account chem has 0 left, 1.00 are asked for"),
    ("hold other.xml --rates rates.toml", 1, "other.xml: it has no Project, which names the account (--account-by)"),
    ("charge log -f sss --rates rates.toml", 1, "log: if it is a log, --from names its format, as --from sacct"),
    ("statement chem", 3, "there is no ledger"),
])
def test_refusals(ledger: Command, line: str, code: int, message: str) -> None:
    answer = ledger(line)
    assert (answer.code, answer.out) == (code, "") and message in answer.err


def test_what_is_charged_is_recognised(ledger: Command, tmp_path: Path) -> None:
    line = ('11/21/2026 10:00:09;E;1.head;user=a account="chem" ctime=1 start=5 end=3605 exec_host=n/0 '
            "resources_used.ncpus=2 Exit_status=0\n")
    (tmp_path / "20261121").write_text(line)
    answer = ledger("charge 20261121 -f auto --rates rates.toml")
    assert (answer.code, answer.err.splitlines()[0], answer.err.splitlines()[-1]) == (
        0, "20261121: pbs-acct: it begins with a stamp, a type of record and an id", "1 job: 1 charged; 1.00 EUR")
    assert ledger("charge job.xml -f auto --rates rates.toml").err.splitlines()[-1] == "1 job: 1 charged; 1.00 EUR"


@pytest.mark.parametrize(("line", "code", "message"), [
    ("balance nobody", 2, "there is no account 'nobody'"),
    ("statement chem --currency USD", 2, "there is no account 'chem' in USD"),
    ("show 99", 1, "there is no entry 99"),
    ("show 99999999999999999999", 1, "there is no entry 99999999999999999999"),
    ("release 99999999999999999999", 1, "there is no entry"),
    ("refund 1", 1, "entry 1 is no charge but a deposit"),
    ("release 1", 1, "entry 1 is no hold but a deposit"),
    ("release --job 7 --machine m", 1, "no hold of job 7 of m is in force"),
    ("release", 2, "name the hold: its ENTRY, or --job"),
    ("release 1 --job 7", 2, "name the hold: its ENTRY, or --job"),
    ("release 1 --machine m", 2, "--machine is for --job"),
])
def test_refusals_where_there_is_a_ledger(ledger: Command, line: str, code: int, message: str) -> None:
    ledger("deposit chem 1")
    answer = ledger(line)
    assert (answer.code, answer.out) == (code, "") and message in answer.err


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_a_ledger_is_a_file(ledger: Command, tmp_path: Path, kind: str) -> None:
    """SQLite left its own journal beside a device."""
    (tmp_path / "place").mkdir() if kind == "folder" else os.mkfifo(tmp_path / "place")
    answer = ledger("deposit chem 1 --ledger place")
    assert (answer.code, answer.out) == (3, "") and "is no file, and cannot be a ledger" in answer.err
    assert [p.name for p in tmp_path.glob("place*")] == ["place"]


def test_folders_are_made_only_where_state_belongs(ledger: Command, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """A slip in a name made a tree of folders, and a ledger that nobody looks at."""
    for name in ("new/folder/ledger.db", "job.xml/ledger.db"):
        answer = ledger(f"deposit chem 1 --ledger {name}")
        assert (answer.code, answer.out) == (3, "") and "there is no folder" in answer.err
    assert not (tmp_path / "new").exists()
    monkeypatch.delenv("SSSJOB_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a" / "b"))
    assert ledger("deposit chem 1").code == 0
    made = tmp_path / "a" / "b" / "sssjob"
    assert (made.stat().st_mode & 0o777, (made / "ledger.db").stat().st_mode & 0o777) == (0o700, 0o600)


def test_adjust_and_credit(ledger: Command) -> None:
    assert ledger("adjust chem -5 --reason typo").out == "1: adjustment -5 credits, account chem\n"
    assert ledger("credit chem 20").code == 0
    assert ledger("balance chem").out.splitlines()[2].split() == ["chem", "-5", "0", "20", "15", "credits"]
    held = ledger("hold waiting.xml --rates rates.toml --force")
    assert held.code == 0 and ledger("release 3").out == \
        "4: release of entry 3 1.00 EUR, account chem for job 1.head of colony\n"


@pytest.mark.parametrize(("line", "message"), [
    ("deposit chem -5", "-5 is not above 0"), ("withdraw chem -5", "-5 is not above 0"),
    ("transfer chem bio -.5", "-0.5 is not above 0"), ("credit chem -20", "a credit limit is not below 0"),
    ("refund 1 -1e2", "-100 is not above 0"),
    ("deposit chem 5 --curency EUR", "No such option '--curency'. Did you mean '--currency'?"),
    ("deposit chem -x", "No such option '-x'.")])
def test_amounts_below_zero_are_no_options(ledger: Command, line: str, message: str) -> None:
    """What looks like a number is one; all else that begins so is still an option, with what was meant."""
    ledger("charge job.xml --rates rates.toml -q")
    answer = ledger(line)
    assert answer.code == (2 if "option" in message else 1)
    assert answer.err.splitlines()[-1] == f"sssjob: {message}"


def test_what_commands_offer_is_what_there_is() -> None:
    """Choices stand in the command line, so that it starts without what it does not need."""
    from sssjob.accounting.postings import OWNERS
    from sssjob.accounting.totals import PERIODS
    from sssjob.cli import account as totals
    from sssjob.cli import ledger as group

    def choices(command: click.Command, name: str) -> tuple[str, ...]:
        kind = next(p.type for p in command.params if p.name == name)
        assert isinstance(kind, click.Choice)
        return tuple(kind.choices)

    assert choices(group.charge, "owner") == OWNERS and choices(totals.command, "every") == PERIODS


def test_a_reader_that_leaves_is_no_trouble_with_the_file(tmp_path: Path) -> None:
    """``sssjob ledger charge ... | head``: status 141 and not a word, as everywhere."""
    (tmp_path / "log").write_text("".join(map(PBS.format, range(3000))))
    (tmp_path / "rates.toml").write_text(LEDGER_RATES)
    line = "sssjob ledger charge -q --itemise -f pbs-acct log --rates rates.toml | head -n 1; exit ${PIPESTATUS[0]}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PATH": path})
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_without_times_contradicts_no_other(ledger: Command, tmp_path: Path, order: int) -> None:
    """Grid Engine's record of a run that is run again may have no times: nothing is charged for it, in any order."""
    lines = (ROOT / "tests/fixtures/gridengine-8.1.9/records/accounting.txt").read_text().splitlines(keepends=True)
    first, second = (fields for line in lines if len(fields := line.split(":")) > 5 and fields[5] == "14")
    first[9:11] = "0", "0"
    assert first[11] == "25"
    (tmp_path / "log").write_text("".join([":".join(first), ":".join(second)][::order]))
    (tmp_path / "plain.toml").write_text('name = "s"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                                       "rate = 1\n")
    answer = ledger("charge log -f sge-acct --option machine=c --option timezone=UTC --rates plain.toml "
                    "--account-by User")
    assert answer.code == 0 and "2 jobs: 1 charged, 1 not (not-started 1)" in answer.err, answer
