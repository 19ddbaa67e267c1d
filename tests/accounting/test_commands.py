"""``sssjob charge`` and ``sssjob quote``: what is written where, what is counted, which status."""

from __future__ import annotations

import itertools
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from tests.accounting.conftest import JOBS, RATES, Command

CHARGE = ("charge", "jobs.xml", "--rates", "rates.toml")
NOT = "jobs.xml:5: b: not charged: not-ended (State is Running)\n"
COUNTS = "3 jobs: 2 charged, 0.38 EUR, 1 not (not-ended 1)\n"


def test_charge_fills_the_document(sssjob: Command) -> None:
    code, out, err = sssjob(*CHARGE)
    assert (code, err) == (0, NOT + COUNTS)
    assert out.count('<Charge units="EUR">0.19</Charge>') == 2 == out.count("<Charge")


def test_charged_again_is_the_same(sssjob: Command) -> None:
    first = sssjob(*CHARGE).out
    Path("jobs.xml").write_text(first)
    code, out, err = sssjob(*CHARGE)
    assert (code, out, err.endswith(COUNTS), "SSS606" in err) == (0, first, True, False)


def test_another_charge_is_told(sssjob: Command) -> None:
    Path("jobs.xml").write_text(JOBS.replace("<Id>a</Id>", "<Id>a</Id><Charge>5</Charge>"))
    code, out, err = sssjob(*CHARGE)
    assert code == 0 and "SSS606 warning Charge 5 becomes 0.19" in err and out.count("<Charge") == 2


def test_itemise(sssjob: Command) -> None:
    code, out, err = sssjob(*CHARGE, "--itemise", "-o", "charged.xml")
    assert (code, err) == (0, NOT + COUNTS)
    by = out.splitlines()[0].partition(" by ")[2]
    assert by.startswith("site 7 sha256:")
    arithmetic = "{} [Processors] * 0.012 [VBR Processors] * {} [Duration] / 3600 [s/hour] = 0.192"
    a, c = arithmetic.format(16, 3600), arithmetic.format(8, 7200)
    assert out == "".join(f"{n}: 0.19 EUR by {by}\n  VBR Processors: {t}\n  charge: {t}, half-up to 0.01\n"
                          for n, t in (("a", a), ("c", c)))
    assert Path("charged.xml").read_text().count("<Charge") == 2


def test_json(sssjob: Command) -> None:
    code, out, err = sssjob(*CHARGE, "--json")
    *jobs, counts = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert [(j["id"], j.get("charge"), j.get("reason")) for j in jobs] == [
        ("a", "0.19", None), ("b", None, "not-ended"), ("c", "0.19", None)]
    counts.pop("rates")
    assert counts == {"type": "counts", "jobs": 3, "charged": 2, "not": {"not-ended": 1}, "total": "0.38",
                      "currency": "EUR"}


def test_strict_and_quiet(sssjob: Command) -> None:
    assert sssjob(*CHARGE, "--strict").code == 1
    code, _, err = sssjob(*CHARGE, "--quiet")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(("rates", "expected"), [
    ("name = 1\n", "rates.toml: version: is not said"),
    (RATES + 'kind = "x"\n', "rates.toml: rate[0].kind: no such key"),
    ("\0", "rates.toml: not TOML"),
])
@pytest.mark.parametrize("command", ["charge", "quote"])
def test_wrong_rates(sssjob: Command, command: str, rates: str, expected: str) -> None:
    Path("rates.toml").write_text(rates)
    code, out, err = sssjob(command, "jobs.xml", "--rates", "rates.toml")
    assert (code, out, expected in err) == (1, "", True), err


@pytest.mark.parametrize(("arguments", "code", "expected"), [
    (("charge", "jobs.xml", "--rates", "nowhere.toml"), 3, "nowhere.toml: No such file"),
    (("charge", "nowhere.xml", "--rates", "rates.toml"), 3, "nowhere.xml: No such file"),
    (("charge", "jobs.xml"), 2, "--rates"),
    (("charge", "-", "--rates", "-"), 2, "only once"),
    (("quote", "jobs.xml", "--rates", "rates.toml", "--start", "2026-01-01T00:00"), 2, "no zone"),
    (("quote", "jobs.xml", "--rates", "rates.toml", "--start", "1", "--timezone", "X"), 2, "no time zone"),
    (("charge", "rates.toml", "--rates", "rates.toml"), 2, "no format is recognised in it"),
    (("charge", "rates.toml", "-f", "sss", "--rates", "rates.toml"), 1, "SSS101"),
])
def test_refused(sssjob: Command, arguments: tuple[str, ...], code: int, expected: str) -> None:
    answer = sssjob(*arguments)
    assert (answer.code, answer.out, expected in answer.err) == (code, "", True), answer.err


def test_no_job(sssjob: Command) -> None:
    Path("jobs.xml").write_text("<Delivered><Processors>2</Processors></Delivered>")
    assert sssjob(*CHARGE) == (1, "", "sssjob: jobs.xml: there is no job\n")


def test_quote(sssjob: Command) -> None:
    Path("jobs.xml").write_text("<Job><Id>a</Id><Requested><Processors>16</Processors><Duration>3600</Duration>"
                                "</Requested></Job>")
    assert sssjob("quote", "jobs.xml", "--rates", "rates.toml") == (0, "a: 0.19 EUR\n", "")
    code, out, _ = sssjob("quote", "jobs.xml", "--rates", "rates.toml", "--itemise")
    assert (code, len(out.splitlines())) == (0, 3)
    record = json.loads(sssjob("quote", "jobs.xml", "--rates", "rates.toml", "--json").out.splitlines()[0])
    assert (record["type"], record["charge"]) == ("quoted", "0.19")


SCRIPT = """#!/bin/sh
#SBATCH -J a -N 2 --ntasks-per-node=4 --cpus-per-task=2 -t 60
srun hostname
"""


def test_quote_of_a_script(sssjob: Command) -> None:
    """A script, and the document and the specs that it becomes, have one price: 16 processors for an hour."""
    Path("job.sh").write_text(SCRIPT)
    price = (0, "a: 0.19 EUR\n")
    assert sssjob("quote", "-q", "job.sh", "--rates", "rates.toml")[:2] == price
    for name, kind in (("job.xml", "sss"), ("job.json", "sss-json"), ("other.sh", "pbspro")):
        assert sssjob("convert", "-q", "-f", "slurm", "-t", kind, "--policy", "warn", "job.sh", "-o", name).code == 0
        assert sssjob("quote", "-q", name, "--rates", "rates.toml")[:2] == price
    spec = {"name": "a", "executable": "/bin/true", "attributes": {"duration": "3600 s"},
            "resources": {"node_count": 2, "processes_per_node": 4, "cpu_cores_per_process": 2, "__version": 1}}
    Path("spec.json").write_text(json.dumps(spec))
    assert sssjob("quote", "-q", "spec.json", "--rates", "rates.toml")[:2] == price


def test_no_quote(sssjob: Command) -> None:
    Path("jobs.xml").write_text("<Job><Id>a</Id><Requested><Processors>16</Processors></Requested></Job>")
    assert sssjob("quote", "jobs.xml", "--rates", "rates.toml") == (
        1, "", "jobs.xml:1: a: not quoted: no-duration (Duration is not said)\n")


def test_start_decides_the_category(sssjob: Command) -> None:
    Path("rates.toml").write_text('timezone = "Europe/Berlin"\n' + RATES.replace("0.012", "1") + """
[[rate]]
type = "NBM"
name = "TimeCategory"
instance = "Night"
rate = 0.5
[[time_category]]
name = "Night"
from = 22:00:00
to = 06:00:00
""")
    Path("jobs.xml").write_text("<Job><Id>a</Id><Requested><Processors>1</Processors><Duration>7200</Duration>"
                                "</Requested></Job>")
    quote = ("quote", "jobs.xml", "--rates", "rates.toml")
    now = sssjob(*quote)
    assert now.code == 0 and re.fullmatch(r"a: [12]\.\d\d EUR\n", now.out)
    assert "quoted as if the job started now" in now.err
    for start, amount in (("2026-03-05T12:00", "2.00"), ("2026-03-05T21:00", "1.50"), ("2026-03-05T23:00", "1.00")):
        assert sssjob(*quote, "--start", start, "--timezone", "Europe/Berlin") == (0, f"a: {amount} EUR\n", "")


@pytest.mark.parametrize(("policy", "charged"), [("all", 3), ("last", 2)])
def test_attempts(sssjob: Command, tmp_path: Path, policy: str, charged: int) -> None:
    """Runs of a requeued job are Jobs of the same Id."""
    run = ("<Job><Id>{0}</Id><State>Completed</State><StartTime>{1}</StartTime><Delivered><Processors>1</Processors>"
           "<Duration>3600</Duration></Delivered></Job>")
    (tmp_path / "jobs.xml").write_text("<JobGroup><Id>g</Id>" + run.format("a", 5000) + run.format("a", 10)
                                       + run.format("b", 20) + "</JobGroup>")
    (tmp_path / "rates.toml").write_text(f'attempts = "{policy}"\n' + RATES)
    counts = json.loads(sssjob(*CHARGE, "--json").out.splitlines()[-1])
    assert counts["charged"] == charged
    assert counts["not"] == ({} if policy == "all" else {"earlier-attempt": 1})


@pytest.mark.parametrize(("names", "charged"), [
    (names, charged) for logs, charged in ((("first", "begun"), "2.00"), (("first", "begun", "ended"), "5.00"),
                                           (("begun", "ended"), "5.00")) for names in itertools.permutations(logs)])
def test_a_run_that_is_not_charged_makes_no_other_one_free(sssjob: Command, tmp_path: Path, names: tuple[str, ...],
                                                           charged: str) -> None:
    """Where the log of the day on which it began was read last, a job had no charge at all; each door, and each order
    of the logs, comes to what the ledger does."""
    rows = {"first": "5|c|p|2026-03-30T08:00:00|2026-03-30T10:00:00|2026-03-30T12:00:00|7200|PREEMPTED|cpu=1",
            "begun": "5|c|p|2026-03-30T08:00:00|2026-03-30T22:00:00|Unknown|7200|RUNNING|cpu=1",
            "ended": "5|c|p|2026-03-30T08:00:00|2026-03-30T22:00:00|2026-03-31T03:00:00|18000|COMPLETED|cpu=1"}
    header = "JobID|Cluster|Account|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"
    for name in names:
        (tmp_path / name).write_text(f"{header}{rows[name]}\n")
    (tmp_path / "all").write_text(header + "".join(f"{rows[name]}\n" for name in names))
    (tmp_path / "rates.toml").write_text(
        'name = "r"\nversion = "1"\ncurrency = "EUR"\nattempts = "last"\n'
        'rate = [{ type = "VBR", name = "Processors", rate = 1, per = "hour" }]\n')
    read = ("-f", "sacct", "--option", "timezone=UTC", "--rates", "rates.toml")
    assert f"1 charged, {charged} EUR" in sssjob("charge", *read, *names).err
    whole = json.loads(sssjob("account", *read, "--json", *names).out.splitlines()[-1])
    assert {unit: Decimal(amount) for unit, amount in whole["charge"].items()} == {"EUR": Decimal(charged)}
    assert sssjob("convert", "-f", "sacct", "--option", "timezone=UTC", "-t", "sss", "all", "-o", "all.xml").code == 0
    assert f"1 charged, {charged} EUR" in sssjob("charge", "--rates", "rates.toml", "all.xml").err
    assert sssjob("ledger", "charge", *read, "--ledger", "l.db", *names).code == 0
    balance = json.loads(sssjob("ledger", "balance", "p", "--ledger", "l.db", "--json").out)
    assert balance["balance"] == f"-{charged}"
