"""``sssjob list``: what its options mean, and how it is drawn."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sssjob.cli import list_
from sssjob.cli.list_ import TITLES, job_cells, list_text, moment, spell
from sssjob.errors import UsageError
from sssjob.run.journal import open_journal
from sssjob.run.listing import Details, Listed
from sssjob.run.rows import Row
from tests.cli.conftest import Command


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00:00"), (59.9, "0:00:59"), (3661, "1:01:01"),
                                                (93784, "1-02:03:04")])
def test_durations(seconds: float, shown: str) -> None:
    assert spell(seconds) == shown


def test_moments() -> None:
    assert [moment(text) for text in ("1970-01-02", "1970-01-01T01:00", "1970-01-01T01:00+01:00")] == [
        86400.0, 3600.0, 0.0]
    for text, ago in (("90s", 90), ("3d", 259200), ("2w", 1209600)):
        assert abs(time.time() - ago - moment(text)) < 60
    for text in ("soon", "3", "-1d", "9999999d", "2026-13-01", "\x1b[2J"):
        with pytest.raises(UsageError, match="is no time, as 2026-11-22"):
            moment(text)


def test_table() -> None:
    """Columns in which nothing stands are left out; what a manager said is escaped and cut."""
    row = Row(1, 0, "a", None, "a", "17", "slurm", "Idle", message="\x1b[2J" + "x" * 100)
    assert list_text([Listed(row, Details())], 0.0).splitlines() == [
        "id  key   native id  executor  state  why", "─" * 99,
        "a   @1.1  17         slurm     Idle   \\u{001B}[2J" + "x" * 49 + "…", "1 job: 1 Idle"]
    row.message, row.state = None, "Running"
    text = list_text([Listed(row, Details("batch", 10.0, 20.0, None, 2))], 50.0)
    assert text.splitlines()[0].split() == ["id", "key", "native", "id", "executor", "queue", "state", "submitted",
                                            "time", "nodes"]
    assert text.splitlines()[2].split() == ["a", "@1.1", "17", "slurm", "batch", "Running", "01-01", "00:00:10",
                                            "0:00:30", "2"]


def test_who_has_ended_waits_no_longer() -> None:
    """Left out, or canceled before it began; when a job that was left out had ended nobody says."""
    ends = [("skipped", Details(submitted=10.0)), ("canceled", Details(submitted=10.0, ended=16.0)),
            ("failed", Details(submitted=10.0, started=12.0)), (None, Details(submitted=10.0))]
    jobs = [Listed(Row(1, 0, "a", None, "a", "17", "slurm", "Idle", outcome), details) for outcome, details in ends]
    for now in (50.0, 90.0):
        assert [job_cells(job, now)[TITLES.index("time")] for job in jobs] == [
            "", "waited 0:00:06", "waited 0:00:02", f"waits {spell(now - 10)}"]


def test_a_line_a_job_where_no_terminal_is() -> None:
    """Programs read lines: nothing is folded, however long names are."""
    row = Row(1, 0, "a b " * 50, "n " * 60, "a", "17", "slurm", "Idle", message="why " * 12)
    assert len(list_text([Listed(row, Details())], 0.0).splitlines()) == 4


@pytest.mark.parametrize("columns", [72, 80, 100, 132, 200])
def test_a_terminal_has_room_for_every_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """What has no room beside the others stands under its job, and nothing is left out."""
    monkeypatch.setattr(list_, "width", lambda stream, unseen: columns)
    jobs = [Listed(Row(20, 3, "sim-17", "pressure drop", "sim-17", "4711_3", "slurm", "Completed", "failed", 137,
                       message="memory: out of memory (Slurm says OUT_OF_MEMORY) on node 7 of 12"),
                   Details("batch", 10.0, 20.0, 90.0, 12)),
            Listed(Row(21, 0, "b", None, "b", None, "sge", "Idle"), Details())]
    text = list_text(jobs, 100.0)
    assert max(map(len, text.splitlines())) <= columns
    for word in ("sim-17", "pressure", "4711_3", "failed", "01-01", "0:01:10", "batch", "12", "memory:", "(Slurm"):
        assert word in text
    assert text.splitlines()[-2].split() == ["b", "@21.1", "sge", "Idle"]
    if columns == 80:
        assert text.splitlines()[2:4] == [
            "sim-17  @20.4  4711_3     pressure drop  slurm     batch  failed 137  0:01:10",
            "  submitted 01-01 00:00:10, nodes 12, memory: out of memory (Slurm says"]


def test_watch(sssjob: Command, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn again until it is interrupted."""
    with open_journal(journal) as made:
        made.add("t", "slurm", "<Job/>", Path("/"), "Reject", None, [Row(0, 0, "a", None, "a")])
    pauses = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("sssjob.cli.list_.time.sleep", sleep)
    code, out, err = sssjob("list", "--watch", "--offline")
    assert (code, err, out.count("1 job: 1 Idle")) == (130, "sssjob: interrupted\n", 3)


def test_what_nobody_knows_is_refused(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that was typed wrong must not look as if there were no jobs; one without jobs has none."""
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    (tmp_path / "alpha.toml").write_text("name = 'alpha'\n")
    for words in (("--site", str(tmp_path / "alpha.toml")), ("--executor", "Slurm")):
        answer = sssjob("list", "--offline", *words)
        assert (answer.code, answer.out, answer.err) == (0, "", "")
    answer = sssjob("list", "--site", "nowhere")
    assert answer.code == 2 and answer.err.startswith("sssjob: there is no site 'nowhere', nor a file")
    answer = sssjob("list", "--executor", "nowhere")
    assert answer.code == 2 and answer.err.startswith("sssjob: there is no executor 'nowhere' (known: ")
    with open_journal(tmp_path / "journal.db") as journal:
        journal.add("t", "slurm", "<Job/>", tmp_path, "Reject", None, [Row(0, 0, "x_7", None, "x_7", array="x")])
    assert sssjob("list", "--offline", "--group", "x").out.startswith("id   key")      # an array is one, by its own Id
    for name, kind in (("nowhere", "group"), ("@2", "submission"), ("@" + "9" * 20, "submission"), ("", "group")):
        assert sssjob("list", "--all", "--group", name) == (
            2, "", f"sssjob: there is no {kind} {name!r} in the journal\n")
