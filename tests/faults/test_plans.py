"""Random plans: after the storm every job has the end that is true, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.plans import MANAGERS, make_plan

SOAK = pytest.mark.skipif(os.environ.get("SSSJOB_SOAK") != "1", reason="takes minutes: SSSJOB_SOAK=1")
FIRST = 1 if os.environ.get("CI") else int.from_bytes(os.urandom(3), "big")


def wrong(first: int, count: int, folder: Path) -> list[dict[str, Any]]:
    """Plans that ended with a complaint; each can be had again by its seed."""
    done = subprocess.run([sys.executable, "-m", "tests.faults.plans", str(first), str(count), folder / "plans"],
                          cwd=Path(__file__).parents[2], capture_output=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) == count
    return [one for one in records if one["wrong"]]


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.timeout(1200)       # a busy machine makes it long, and no plan wrong
def test_a_few_plans(tmp_path: Path) -> None:
    """P1, P2, P3, P4."""
    assert wrong(FIRST, 6, tmp_path) == []


@SOAK
@pytest.mark.soak
def test_a_thousand_plans(tmp_path: Path) -> None:
    assert wrong(FIRST, 1000, tmp_path) == []


def test_plans_have_everything_in_them() -> None:
    plans = [make_plan(seed) for seed in range(400)]
    assert {plan["manager"] for plan in plans} == set(MANAGERS)
    steps = [step for plan in plans for step in plan["steps"]]
    assert {step["do"] for step in steps} == {"submit", "look", "wait", "cancel", "drop", "rest", "fault", "heal"}
    assert {"kill", "sleep", "stdout", "exit", "cut", "edit", "after"} <= {key for step in steps for key in step}
