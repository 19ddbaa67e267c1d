"""Jobs that do not say an amount which each job has are charged for the rest, and every door tells how many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accounting.support import charged, refused
from tests.cli.conftest import Command

RATES = """name = "r"
version = "1"
rate = [{ type = "VBR", name = "Processors", rate = 1, per = "hour" },
        { type = "VBR", name = "Memory", units = "GB", rate = 1, per = "hour" },
        { type = "VBR", name = "GPU", rate = 9, per = "hour" }]
"""
HEADER = "JobID|JobName|Cluster|User|Account|State|Start|End|ElapsedRaw|AllocCPUS|AllocTRES\n"
#: Of four jobs one says its memory, and one has no charge at all.
ROWS = "".join(f"{number}|a|m|amy|p|{state}|2026-01-01T00:00:00|2026-01-01T01:00:00|3600|2|{tres}\n"
               for number, state, tres in (
    (1, "COMPLETED", "cpu=2"), (2, "COMPLETED", "cpu=2,mem=1G"), (3, "COMPLETED", "cpu=2"), (4, "PENDING", "")))
TOLD = ("SSS504 warning [costs] Memory is not said by 2 of 3 charged jobs, to which VBR Memory charges nothing ("
        "required = true charges no such job)")


@pytest.mark.parametrize(("rates", "job", "unsaid"), [
    ("VBU Processors 1\nVBU Memory 1\nVBU GPU 1", "<Processors>1</Processors>", ("VBU Memory",)),
    ("VBU Processors 1\nVBU Memory 1", "<Processors>1</Processors><Memory>0</Memory>", ()),
    ("VBU Processors 1\nVBU Memory 1 metric = \"Average\"\nVBU Memory 1 metric = \"Max\"",
     "<Processors>1</Processors><Memory metric=\"Max\">1</Memory>", ()),
    ("VBU Processors 1\nVBU Memory 1 metric = \"Average\"",
     "<Processors>1</Processors><Memory metric=\"Max\">1</Memory>", ("VBU Memory, metric=Average",)),
    ("VBU Processors 1\nVBU Memory 1 when = { Queue = \"fat\" }", "<Processors>1</Processors><Queue>thin</Queue>", ()),
    ("VBU Processors 1\nVBU Nodes 1", "<TaskGroup><Processors>1</Processors></TaskGroup>", ("VBU Nodes",)),
])
def test_what_each_job_has(rates: str, job: str, unsaid: tuple[str, ...]) -> None:
    assert charged(rates, "<State>Completed</State><Duration>10</Duration>" + job).unsaid == unsaid


def test_what_is_required_is_not_charged() -> None:
    assert refused("VBU Processors 1\nVBU Memory 1 required = true",
                   "<Duration>10</Duration><Processors>1</Processors>").reason == "amount-missing"


@pytest.mark.parametrize("words", [
    ("charge", "-f", "sacct", "--option", "timezone=UTC"),                          # column by column
    ("charge", "-f", "sacct", "--option", "timezone=UTC", "--json"),
    ("ledger", "charge", "--ledger", "l.db", "-f", "sacct", "--option", "timezone=UTC"),
    ("account", "-f", "sacct", "--option", "timezone=UTC"), ("account", "--spread", "-f", "sacct", "--option",
                                                             "timezone=UTC"),
    ("charge",), ("account",)])
def test_each_door_tells_it_once(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 words: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(RATES)
    Path("log").write_text(HEADER + ROWS)
    if "-f" not in words:
        Path("log").write_text(sssjob("convert", "-f", "sacct", "--option", "timezone=UTC", "-t", "sss", "log").out)
    answer = sssjob(*words, "--rates", "rates.toml", "log")
    whole = answer.out + answer.err
    assert answer.code == 0, whole
    told = TOLD.partition("] ")[2] if "--json" in words else f"log: {TOLD}\n"
    assert (whole.count("SSS504"), whole.count(told)) == (1, 1), whole


@pytest.mark.parametrize("count", [1, 5])
def test_a_plan_leaves_out_what_its_jobs_do(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            count: int) -> None:
    """Jobs of one shape are priced by a plan from the third on."""
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(RATES)
    Path("log").write_text(HEADER + "".join(f"{n}{ROWS.splitlines()[0][1:]}\n" for n in range(1, count + 1)))
    for words in (("charge",), ("ledger", "charge", "--ledger", "l.db")):
        answer = sssjob(*words, "-f", "sacct", "--option", "timezone=UTC", "--rates", "rates.toml", "log")
        assert f"Memory is not said by {count} of {count} charged job{'s' * (count > 1)}, to" in answer.err


def test_charges_that_are_made_anew_tell_it(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_LEDGER", "l.db")
    Path("old.toml").write_text(RATES.replace('"Memory", units = "GB", rate = 1, per', '"Swap", rate = 1, per'))
    Path("rates.toml").write_text(RATES.replace('"Processors", rate = 1', '"Processors", rate = 2'))
    Path("log").write_text(HEADER + ROWS)
    sssjob("ledger", "charge", "-f", "sacct", "--option", "timezone=UTC", "log", "--rates", "old.toml")
    answer = sssjob("ledger", "recharge", "--rates", "rates.toml")
    assert (answer.code, answer.err.count(f"rates.toml: {TOLD}\n")) == (0, 1)


def test_a_quote_tells_it(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What such a job gets by default it will be charged for."""
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(RATES)
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH -n 2 -t 60\n./a\n")
    answer = sssjob("quote", "job.sh", "--rates", "rates.toml")
    assert (answer.code, answer.out) == (0, "job-1: 2.00 credits\n")
    assert answer.err.count(TOLD.replace("2 of 3 charged jobs", "1 of 1 quoted job")) == 1


QUOTED = ("SSS504 warning [costs] Memory is not said by 1 of 1 quoted job, to which VBR Memory charges nothing ("
          "required = true charges no such job)\n")
SENTENCE = QUOTED.partition("] ")[2]


@pytest.fixture
def submitted(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A ledger with some money, and a job that asks for processors alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_LEDGER", "l.db")
    Path("rates.toml").write_text(RATES)
    Path("job.xml").write_text("<Job><Id>7</Id><Machine>m</Machine><Project>p</Project><User>amy</User><Requested>"
                               "<Processors>2</Processors><Duration>3600</Duration></Requested></Job>")
    assert sssjob("ledger", "deposit", "p", "100").code == 0
    return sssjob


@pytest.mark.parametrize("command", ["quote", "hold", "gate"])
def test_what_is_promised_and_held_tells_it(submitted: Command, command: str) -> None:
    answer = submitted("ledger", command, "job.xml", "--rates", "rates.toml")
    assert (answer.code, answer.err.count(f"job.xml: {QUOTED}")) == (0, 1), answer
    assert "2" in answer.out


@pytest.mark.parametrize("command", ["quote", "hold", "gate"])
def test_nothing_is_posted_where_it_rejects(submitted: Command, command: str) -> None:
    answer = submitted("ledger", command, "job.xml", "--rates", "rates.toml", "--strict")
    assert (answer.code, answer.err.count(f"job.xml: {QUOTED}")) == (1, 1), answer
    assert answer.out == (f"refused: {SENTENCE}" if command == "gate" else "")
    assert submitted("ledger", "list", "--json").out.count('"kind"') == 1


@pytest.mark.parametrize("command", ["quote", "hold", "gate"])
def test_what_a_quote_assumes_is_told_by_the_ledger_too(submitted: Command, command: str) -> None:
    text = Path("job.xml").read_text()
    Path("job.xml").write_text(text.replace("<Dur", '<Memory metric="PerNode" units="GB">4</Memory><Dur'))
    price, posted = (submitted(*words, "job.xml", "--rates", "rates.toml") for words in (
        ("quote",), ("ledger", command)))
    assert "7: Memory is PerNode, and NodeCount is not said" in price.err and posted.err.startswith(price.err)
