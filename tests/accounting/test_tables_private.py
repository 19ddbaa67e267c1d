"""``sssjob charge --privacy``: a charge table of which names are gone, priced by what the log says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.accounting.conftest import KEY, Command

LOG = ("JobID|Cluster|Account|User|Group|Partition|QOS|Submit|Start|End|ElapsedRaw|State|NCPUS|ExitCode\n"
       "1|colony|chem|ann|staff|gpu|high|1795000000|1795000000|1795003600|3600|COMPLETED|4|0:0\n"
       "2|colony|bio|bob|staff|std|high|1795000000|1795000000|1795003600|3600|FAILED|2|1:0\n"
       "2|colony|bio|bob|staff|std|high|1795000000|1795007200|1795010800|3600|COMPLETED|2|0:0\n"
       "3|colony|chem|ann||std|high|1795000000|Unknown|Unknown|0|PENDING|1|0:0\n")
#: A price that goes by names that nobody is to see.
RATES = """name = "s"
version = "1"
currency = "EUR"
rate = [{ type = "VBR", name = "Processors", rate = 0.5, per = "hour" },
        { type = "NBM", name = "User", instance = "ann", rate = 3 }]
"""
PROFILES = {
    "": ({"user": None, "group": None}, {}),
    '[properties]\nUser = "pseudonym"\nProject = "redact"\nId = "pseudonym"\n':
        ({"group": None, "project": None}, {"user": "u", "id": "i"}),
    'others = "redact"\n': (dict.fromkeys(("machine", "user", "group", "project", "queue", "qos", "start", "end",
                                           "wall_s", "processors", "nodes", "charge")), {}),
    'others = "keep"\n[properties]\nStartTime = "redact"\nGroup = "pseudonym"\nCharge = "keep"\n':
        ({"start": None}, {"group": "g"}),
}


@pytest.fixture
def place(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log, rates and profiles, where commands run."""
    monkeypatch.setenv("SSSJOB_PRIVACY_KEY", KEY)
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "rates.toml").write_text(RATES)
    return tmp_path


def rows_of(sssjob: Command, more: str) -> list[dict[str, Any]]:
    """The rows of the table."""
    answer = sssjob("charge", "-f", "sacct", "log", "--rates", "rates.toml", "-q", *more.split())
    assert answer.code == 0, answer.err
    if "-o" in more:
        parquet: Any = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table("out/log.parquet" if "out/" in more else "t.parquet")
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows
    return [{name: text or None for name, text in record.items()} for record in csv.DictReader(answer.out.splitlines())]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("attempts", ["all", "last"])
@pytest.mark.parametrize("more", ["", "rows", "-o t.parquet", "-o out/"])
def test_names_are_gone_and_prices_are_not(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch, profile: str,
                                           attempts: str, more: str) -> None:
    """Every cell is as the profile has its property; a price by user, and the last attempt by its Id, are those of the
    log; a pseudonym is the one that ``convert`` and ``account`` write."""
    (place / "profile.toml").write_text(profile)
    (place / "rates.toml").write_text(f'attempts = "{attempts}"\n{RATES}')
    if more == "rows":      # without pyarrow
        monkeypatch.setattr("sssjob.accounting.table.has_arrow", lambda: False)
        monkeypatch.setattr("sssjob.accounting._sacct_columns.has_arrow", lambda: False)
        more = ""
    plain = rows_of(sssjob, more)
    assert [str(row["charge"]) for row in plain if row["charge"]] == (
        ["6.00", "1.00", "1.00"] if attempts == "all" else ["6.00", "1.00"])
    gone, pseudonyms = PROFILES[profile]
    shown = rows_of(sssjob, f"{more} --privacy profile.toml")
    for before, after in zip(plain, shown, strict=True):
        for name, text in after.items():
            if name in pseudonyms and before[name]:
                assert text.startswith(f"{pseudonyms[name]}-") and len(text) == 18
            else:
                assert text == (None if name in gone else before[name]), name
    for name in pseudonyms:
        assert len({row[name] for row in shown}) == len({row[name] for row in plain})


def test_processes_make_the_same_table(sssjob: Command, place: Path) -> None:
    (place / "profile.toml").write_text('[properties]\nUser = "pseudonym"\nProject = "redact"\n')
    assert rows_of(sssjob, "--privacy profile.toml --jobs 2") == rows_of(sssjob, "--privacy profile.toml")


def test_pseudonyms_are_those_of_convert(sssjob: Command, place: Path) -> None:
    (place / "profile.toml").write_text('[properties]\nUser = "pseudonym"\n')
    records = sssjob("convert", "-f", "sacct", "-t", "jsonl", "--privacy", "profile.toml", "-q", "log").out
    converted = [json.loads(line).get("user") for line in records.splitlines()]
    charged = [row["user"] for row in rows_of(sssjob, "--privacy profile.toml")]
    assert charged == converted and None not in charged


@pytest.mark.parametrize(("line", "message"), [
    ("-f sss jobs.xml --privacy profile.toml", "--privacy is for tables of accounting logs (-f), not for sss"),
    ("-f sacct log --privacy none.toml", "none.toml"),
    ("-f sacct log --privacy wrong.toml", "wrong.toml: least: has to be greater than or equal to 1"),
])
def test_what_cannot_be_private_is_refused(sssjob: Command, place: Path, line: str, message: str) -> None:
    (place / "profile.toml").write_text("")
    (place / "wrong.toml").write_text("least = 0\n")
    answer = sssjob("charge", *line.split(), "--rates", "rates.toml")
    assert answer.code and answer.out == "" and message in answer.err
