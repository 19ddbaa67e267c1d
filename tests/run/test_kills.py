"""A client that is killed at any line loses no job and doubles none (promises P1, P2, P3; faults E10 to E14).

Nor is a file lost that a job leaves, or what is wanted at its end, which may be done twice with one key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sssjob.run import on_end
from tests import forks
from tests.run import kill_sweep

SOAK = pytest.mark.skipif(os.environ.get("SSSJOB_SOAK") != "1", reason="takes minutes: SSSJOB_SOAK=1")
KINDS = [("slurm", "submit"), ("sge", "submit"), ("local", "submit"), ("slurm", "run"), ("local", "run"),
         ("slurm", "retry"), ("local", "retry"), ("slurm", "array"), ("sge", "array"), ("slurm", "route"),
         ("slurm", "reroute"), ("slurm", "parts")]
#: Lines between those at which each is killed in the short sweep: two to five each, other ones in each, of which the
#: first is one before anything is in the journal, and some of arrays and routes lie between a submission and its note;
#: the long sweep has all that differ.
STRIDES = {"submit": {"slurm": 2579, "sge": 2609, "local": 4547}, "run": {"slurm": 4877, "local": 4919},
           "retry": {"slurm": 3571, "local": 3643}, "array": {"slurm": 2237, "sge": 2251},
           "route": {"slurm": 3862}, "reroute": {"slurm": 5179}, "parts": {"slurm": 4406}}
ENDS = [["one", "failed", 3], ["two", "done", 0]]
KEYS = [f"{number}.{on_end.hook_of(kill_sweep.HOOK).id}" for number in (1, 2)]
BACK = [["kept", "kept\n"], ["moved", "moved\n"]]
#: What comes of the other documents: ends, what ran, and how many native jobs there were.
OTHERS: dict[str, tuple[list[list[Any]], tuple[str, ...], int]] = {
    "retry": ([["one", "done", 0]], ("1", "2"), 2),
    "route": ([["one", "failed", None], ["one", "done", 0]], ("one",), 1),
    "reroute": ([["one", "canceled", None], ["one", "done", 0]], ("one",), 1),
    "parts": ([["one", "done", 0], ["one", "failed", None], ["two", "done", 0]], ("one", "two"), 2),
    "room": ([["one", "done", 0], ["three", "done", 0], ["two", "done", 0]], ("one", "three", "two"), 3),
    "array": ([["one_0", "done", 0], ["one_2", "failed", 3], ["one_4", "done", 0]], ("0", "2", "4"), 3)}


def swept(executor: str, action: str, step: int, first: int, folder: Path,
          seconds: float = 250) -> list[dict[str, Any]]:
    words = [executor, action, str(step), str(first), str(folder)]
    with forks.Command(words, Path.cwd(), os.environ | forks.shared(), words=("module", kill_sweep.__name__)) as sweep:
        out, err = sweep.communicate(timeout=seconds)
    assert sweep.wait() == 0, err
    return sorted((json.loads(line) for line in out.splitlines()), key=lambda point: int(point["count"]))


def wrong(point: dict[str, Any], ends: list[list[Any]] = ENDS, ran: Sequence[str] = ("one", "two"),
          native: int = 2) -> bool:
    """Whether a job was lost, doubled, or given an end that it did not have."""
    if "error" in point:
        return True
    if not point["accepted"]:           # killed before the document was in the journal: nothing may have happened
        return bool(point["ran"] or point["native"] or point["keys"])
    apart = native > 2 or ends == OTHERS["parts"][0]        # elements, and parts of a group: side by side
    ran_there, outcomes = (sorted(point[name], key=str) if apart else point[name] for name in ("ran", "outcomes"))
    made = (outcomes, ran_there, point["native"]) != (
        ends, list(ran), None if point["native"] is None else native)
    return made or (ends == ENDS and (point["keys"], point["back"], point["left"]) != (KEYS, BACK, []))


def check(points: list[dict[str, Any]], action: str) -> None:
    told = OTHERS.get(action, (ENDS, ("one", "two"), 2))
    assert [point for point in points if wrong(point, *told)] == []
    assert "end" in [point["where"] for point in points]    # of all of it; a slow run may take more lines than the next
    assert {point["accepted"] for point in points} == {True, False}


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.parametrize(("executor", "action"), KINDS)
def test_killed_now_and_then(tmp_path: Path, executor: str, action: str) -> None:
    check(swept(executor, action, STRIDES[action][executor], 101, tmp_path / "sweep"), action)


@SOAK
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("executor", "action"), [*KINDS, ("sge", "run"), ("sge", "retry"), ("local", "array"),
                                                  ("slurm", "room"), ("sge", "room")])
def test_killed_before_everything_that_others_can_see(tmp_path: Path, executor: str, action: str) -> None:
    """Forty to a hundred points, which stand for all of the thousands of lines between them."""
    check(swept(executor, action, 0, 1, tmp_path / "sweep", 800), action)
