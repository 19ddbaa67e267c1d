"""What a report says beside sums: utilisation of what there was, the period before, and the cube for other tools."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.totals import Totals
from tests.accounting.conftest import Command
from tests.strategies import examples

HEADER = "JobID|User|Account|Partition|Cluster|State|Start|End|ElapsedRaw|AllocTRES\n"
CAPACITY = "[[capacity]]\nfrom = 2026-01-01\nprocessors = 10\ngpus = 4\n[[capacity]]\nfrom = 2026-01-02T12:00:00\n" \
           "processors = 20\n"


def row(number: int, start: str, end: str, hours: int, tres: str = "cpu=5", project: str = "p", user: str = "u") -> str:
    return f"{number}|{user}|{project}|q|colony|COMPLETED|2026-01-{start}|2026-01-{end}|{hours * 3600}|{tres}\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "log").write_text(HEADER + row(1, "01T00:00:00", "02T00:00:00", 24, "cpu=5,gres/gpu=2")
                                  + row(2, "02T06:00:00", "03T06:00:00", 24) + row(3, "03T00:00:00", "03T02:00:00", 2)
                                  + row(4, "05T00:00:00", "05T01:00:00", 1, user="v", project="=2+3"))
    (tmp_path / "capacity.toml").write_text(CAPACITY)
    return tmp_path


def totals(answer_out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in answer_out.splitlines() if '"type": "records"' not in line]


def account(sssjob: Command, line: str) -> list[dict[str, object]]:
    answer = sssjob("account", "--json", "-q", "-f", "sacct", "--option", "timezone=UTC", "log", *line.split())
    assert answer.code == 0, answer.err
    return totals(answer.out)


def test_utilisation(logs: Path, sssjob: Command) -> None:
    """What ran in a period by what there was in it, over a change of the machine; GPUs only while there were some."""
    table = account(sssjob, "--by= --every day --spread --capacity capacity.toml")
    assert [(g.get("period"), g.get("utilised"), g.get("gpu_utilised")) for g in table] == [
        ("2026-01-01", 0.5, 0.5),                               # 5 of 10 processors, 2 of 4 GPUs
        ("2026-01-02", round(90 / 360, 4), 0.0),                # 5 for 18 hours, of 10 and then 20 for 12 each
        ("2026-01-03", round(40 / 480, 4), None), ("2026-01-05", round(5 / 480, 4), None),
        (None, round(255 / 2040, 4), round(48 / 144, 4))]
    table = account(sssjob, "--by= --spread --capacity capacity.toml --since 2026-01-02T12:00:00 --until "
                            "2026-01-03T00:00:00")
    assert [g["utilised"] for g in table] == [0.25, 0.25]


def test_what_is_added_up_is_recognised(logs: Path, sssjob: Command) -> None:
    """Without ``-f``, as at every command: a log and a document beside each other; of a document nothing is told."""
    (logs / "job.xml").write_text("<Job><Id>9</Id><State>Completed</State><Project>p</Project><StartTime>1767225600"
                                  "</StartTime><EndTime>1767229200</EndTime><Processors>2</Processors></Job>")
    status, out, err = sssjob("account", "job.xml", "log", "--option", "timezone=UTC")
    groups = [line.split()[:2] for line in out.splitlines()[2:]]
    assert (status, groups) == (0, [["p", "4"], ["=2+3", "1"], ["in", "all"]])
    assert err == ("log: sacct: it begins with columns of sacct, one of them JobID\n"
                   "log: 4 records read: 4 given as 4 jobs, 0 rejected\n")


def test_the_period_before(logs: Path, sssjob: Command) -> None:
    """By the figure that groups are sorted by; nothing is said where the period before has no such group."""
    table = account(sssjob, "--every day --compare --by Project")
    assert [(g.get("period"), g["key"], g.get("change")) for g in table[:-1]] == [
        ("2026-01-02", {"Project": "p"}, None), ("2026-01-03", {"Project": "p"}, round(130 / 120 - 1, 4)),
        ("2026-01-05", {"Project": "=2+3"}, None)]
    table = account(sssjob, "--every day --compare --by Project --sort jobs")
    assert [g.get("change") for g in table] == [None, 1.0, None, None]


@pytest.mark.parametrize(("more", "groups"), [
    ("", [("01", "u", 1, None), ("02", "v", 1, None), ("02", "u", 0, -1.0), ("03", "w", 1, None),
          ("03", "v", 0, -1.0)]),
    (" --top 1", [("01", "u", 1, None), ("02", "v", 1, None), ("02", "(others)", 0, None), ("03", "w", 1, None),
                  ("03", "(others)", 0, None)]),
    (" --privacy least.toml", [("d)", "(others)", 3, None)])])
def test_a_group_that_is_gone(tmp_path: Path, sssjob: Command, more: str,
                              groups: list[tuple[str, str, int, float | None]]) -> None:
    """Who had used a machine, and did no more, stood nowhere; with a least number of users a row of nobody would tell
    that there are hidden ones."""
    (tmp_path / "log").write_text(HEADER + row(1, "01T00:00:00", "01T01:00:00", 1) + row(
        2, "02T00:00:00", "02T01:00:00", 1, user="v") + row(3, "03T00:00:00", "03T02:00:00", 2, user="w"))
    (tmp_path / "least.toml").write_text("least = 2\n[properties]\nUser = \"keep\"\n")
    table = account(sssjob, "--every day --compare --by User" + more)
    rows = [(str(g["period"])[-2:], g["key"], g["jobs"], g.get("change")) for g in table[:-1]]
    assert rows == [(period, {"User": user}, *figures) for period, user, *figures in groups]


@pytest.mark.parametrize("spread", ["", " --spread"])
def test_the_cube(logs: Path, sssjob: Command, spread: str) -> None:
    """Sums by day, user, project and queue, with exact charges; by columns as job by job (with --spread)."""
    parquet = pytest.importorskip("pyarrow.parquet")
    account(sssjob, "--cube cube.parquet --rates rates.toml --every month" + spread)
    table = parquet.read_table(logs / "cube.parquet")
    rows = table.to_pylist()
    assert table.column_names[:5] == ["day", "user", "project", "queue", "jobs"]
    assert (rows[-1]["day"].isoformat(), rows[-1]["user"], rows[-1]["project"]) == ("2026-01-05", "v", "=2+3")
    assert sum(r["charge_EUR"] for r in rows) == Decimal("3.06") and sum(r["jobs"] for r in rows) == 4
    assert sum(r["processor_s"] for r in rows) == 255 * 3600 and sum(r["gpu_s"] for r in rows) == 48 * 3600
    assert len(rows) == (4 if spread else 3)


@pytest.mark.parametrize(("line", "why"), [
    ("--compare", "name them with --every"), ("--capacity capacity.toml", "--capacity needs --spread"),
    ("--capacity capacity.toml --spread", "--capacity needs periods"),
    ("--capacity odd.toml --spread --every day", "capacity[0].processors"),
    ("--capacity late.toml --spread --every day", "do not follow one another"),
    ("--capacity log --spread --every day", "log:"),
    ("--cube c.parquet --privacy p.toml", "which --privacy forbids"),
])
def test_what_is_refused(logs: Path, sssjob: Command, line: str, why: str) -> None:
    (logs / "odd.toml").write_text("[[capacity]]\nfrom = 2026-01-01\nprocessors = -1\n")
    (logs / "late.toml").write_text(CAPACITY + "[[capacity]]\nfrom = 2026-01-02\nprocessors = 5\n")
    (logs / "p.toml").write_text("least = 2\n")
    answer = sssjob("account", "-f", "sacct", "--option", "timezone=UTC", "log", *line.split())
    is_wrong_file = why in ("capacity[0].processors", "do not follow one another", "log:")      # as rates and profiles
    assert (answer.code, why in answer.err, answer.out) == (1 if is_wrong_file else 2, True, "")
    assert not (logs / "c.parquet").exists()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("by", ["--by Project", "--by State --every day", "--by Project --every day --spread"])
def test_only_the_last_attempt_is_charged(sssjob: Command, tmp_path: Path, order: tuple[int, ...], by: str) -> None:
    """As by the ledger and in tables, in whatever files and order the runs come; what an earlier one used is used."""
    rows = [row(7, "01T22:00:00", "01T23:00:00", 1), row(7, "02T00:00:00", "02T02:00:00", 2, "cpu=7"),
            row(7, "03T00:00:00", "03T03:00:00", 3), row(8, "02T00:00:00", "02T01:00:00", 1)]
    for n in order:
        (tmp_path / f"log{n}").write_text(HEADER + rows[n])
    (tmp_path / "last.toml").write_text('name = "s"\nversion = "1"\nattempts = "last"\n[[rate]]\ntype = "VBR"\n'
                                        'name = "Processors"\nrate = 1\nper = "hour"\n')
    answer = sssjob("account", "--json", "-q", "-f", "sacct", "--option", "timezone=UTC", "--rates", "last.toml",
                    *by.split(), *(f"log{n}" for n in order))
    *groups, whole = totals(answer.out)
    assert whole["jobs"] == 4
    assert whole["processor_h"] == 39.0
    assert whole["charge"] == {"": "20"}
    assert whole["not_charged"] == {"earlier-attempt": 2}
    charges = [group["charge"] for group in groups if "charge" in group]
    assert sum(Decimal(charge[""]) for charge in charges if isinstance(charge, dict)) == 20


@pytest.mark.parametrize("order", ["01", "10"])
@pytest.mark.parametrize("door", ["account", "charge", "documents", "ledger"])
def test_an_id_that_has_come_round_is_no_attempt(sssjob: Command, tmp_path: Path, door: str, order: str) -> None:
    """Managers begin to count anew: whoever has the number next must not take the charge of its last user back."""
    rows = [row(7, "01T22:00:00", "01T23:00:00", 1), row(7, "03T00:00:00", "03T03:00:00", 3, user="v")]
    (tmp_path / "log").write_text("".join([HEADER, *(rows[int(n)] for n in order)]))
    (tmp_path / "last.toml").write_text('name = "s"\nversion = "1"\nattempts = "last"\nrate = [{ type = "VBR", '
                                        'name = "Processors", rate = 1, per = "hour" }]\n')
    log: tuple[str, ...] = ("-f", "sacct", "--option", "timezone=UTC", "log")
    if door == "documents":
        assert sssjob("convert", "-t", "sss", *log, "-o", "jobs.xml").code == 0
        log = ("jobs.xml",)
    doors = {"documents": ["charge"], "ledger": ["ledger", "charge"]}
    answer = sssjob(*doors.get(door, [door]), *log, "--rates", "last.toml")
    assert answer.code == 0 and "earlier-attempt" not in answer.err + answer.out
    if door == "ledger":
        kinds = [json.loads(line)["kind"] for line in sssjob("ledger", "list", "--json").out.splitlines()]
        assert kinds == ["charge", "charge"]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"])
@settings(max_examples=examples(20), deadline=None)
@given(every=st.sampled_from(("hour", "day", "week", "month", "year")),
       moments=st.lists(st.one_of(st.integers(0, 2**31), st.integers(1_774_000_000, 1_776_500_000)), max_size=30))
def test_periods_are_those_of_the_clocks_of_the_zone(zone: str, every: Literal["hour", "day", "week", "month", "year"],
                                                     moments: list[int]) -> None:
    """In whatever order moments come, also where clocks are set back by half an hour, or a day is left out: each lies
    between the borders of its period, and has the name that the zone's calendar gives it."""
    totals, clock = Totals(["Project"], every, ZoneInfo(zone)), ZoneInfo(zone)
    forms = {"hour": "%Y-%m-%dT%H:00%z", "year": "%Y", "month": "%Y-%m"}
    for moment in [*moments, *reversed(moments)]:
        local = datetime.fromtimestamp(moment, clock)
        if every == "week":
            local = local.replace(hour=0, minute=0, fold=0) - timedelta(days=local.weekday())
        assert totals.period(moment) == local.strftime(forms.get(every, "%Y-%m-%d"))
