"""A client that is killed at any line loses no job and doubles none (promises P1, P2, P3; faults E10 to E14)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.run import kill_sweep

SOAK = pytest.mark.skipif(os.environ.get("SSSJOB_SOAK") != "1", reason="takes minutes: SSSJOB_SOAK=1")
KINDS = [("slurm", "submit"), ("sge", "submit"), ("local", "submit"), ("slurm", "run"), ("local", "run")]
#: Lines at which each is killed in the short sweep: some 12 each.
STRIDES = {"submit": {"slurm": 149, "sge": 149, "local": 331}, "run": {"slurm": 331, "local": 331}}
ENDS = [["one", "failed", 3], ["two", "done", 0]]


def swept(executor: str, action: str, step: int, first: int, folder: Path) -> list[dict[str, Any]]:
    root = Path(str(kill_sweep.__file__)).parents[2]
    out = subprocess.run([sys.executable, "-m", "tests.run.kill_sweep", executor, action, str(step), str(first),
                          str(folder)], cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted((json.loads(line) for line in out.splitlines()), key=lambda point: int(point["count"]))


def wrong(point: dict[str, Any]) -> bool:
    """Whether a job was lost, doubled, or given an end that it did not have."""
    if "error" in point:
        return True
    if not point["accepted"]:           # killed before the document was in the journal: nothing may have happened
        return bool(point["ran"] or point["native"])
    return (point["outcomes"], point["ran"], point["native"]) != (
        ENDS, ["one", "two"], None if point["native"] is None else 2)


def check(points: list[dict[str, Any]]) -> None:
    assert [point for point in points if wrong(point)] == []
    assert "end" in [point["where"] for point in points]    # of all of it; a slow run may take more lines than the next
    assert {point["accepted"] for point in points} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "action"), KINDS)
def test_killed_now_and_then(tmp_path: Path, executor: str, action: str) -> None:
    check(swept(executor, action, STRIDES[action][executor], 101, tmp_path / "sweep"))


@SOAK
@pytest.mark.soak
@pytest.mark.parametrize(("executor", "action"), KINDS)
def test_killed_at_every_seventh_line(tmp_path: Path, executor: str, action: str) -> None:
    check(swept(executor, action, 7, 1, tmp_path / "sweep"))
