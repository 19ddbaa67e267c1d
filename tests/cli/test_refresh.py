"""``sssjob status --refresh``: the ends that accounting had not told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.run.support import desk_on, shell


def test_the_whole_journal_and_one_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sssjob: Command) -> None:
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        assert desk.lab is not None
        desk.lab.fault("sacct", times=-1, exit=1, stderr="Connection refused")
        desk.submit(shell("true"))
        desk.wait("a")
        answer = sssjob("status", "--refresh")
        assert (answer.code, answer.out) == (4, "") and "accounting of slurm does not answer" in answer.err
        desk.lab.heal("sacct")
        assert sssjob("status", "--refresh", "--since", "2100-01-01") == (0, "", "")
        answer = sssjob("status", "--refresh", "--json")
        added = json.loads(answer.out)
        assert (answer.code, added["key"], added["added"]["CpuDuration"]) == (0, "@1.1", "2")
        assert sssjob("status", "--refresh") == (0, "", "")
        answer = sssjob("status", "a", "--refresh")
        assert answer.code == 0 and "<CpuDuration>2</CpuDuration>" in answer.out
        assert "accounting after the end: COMPLETED" in sssjob("log", "a").out


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "Missing argument 'ID...'"), (("a", "--since", "2026-01-01"), "--since goes with --refresh"),
    (("--refresh", "--since", "soon"), "--since: "),
])
def test_what_makes_no_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sssjob: Command,
                             arguments: tuple[str, ...], message: str) -> None:
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    answer = sssjob("status", *arguments)
    assert (answer.code, answer.out) == (2, "") and message in answer.err
