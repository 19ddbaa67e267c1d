"""Arrays on real clusters: every element once, no more at a time than allowed, whoever looks after them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labs.test_lab_dependencies import REAL
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, after, desk_on, group, shell

pytestmark = pytest.mark.lab


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as made:
        yield made


def array(text: str) -> str:
    return f"<Extension type='Scheduler' name='Array'>{text}</Extension>"


def test_elements(desk: Desk) -> None:
    outcome = desk.run(group(shell("echo $SLURM_ARRAY_TASK_ID $SGE_TASK_ID >> ran", array("2-6:2")),
                             shell("wc -l < ran > n", after("a"), name="b")))
    assert outcome.exit_code == 0
    assert sorted(desk.text("ran").splitlines()) == ["2 2", "4 4", "6 6"] and desk.text("n").strip() == "3"
    job = next(job for job, _ in outcome.document.jobs() if job.value("Id") == "a")
    elements = [p.text.split() for p in job.all("Extension") if p.get("name") == "ArrayElement"]
    assert [words[:2] for words in elements] == [["2", "Completed"], ["4", "Completed"], ["6", "Completed"]]


def test_a_killed_client_leaves_the_limit_to_the_next(desk: Desk) -> None:
    desk.killed(lambda: desk.submit(shell("echo x >> ran; while test ! -e go; do sleep 0.1; done", array("1-3%1"))))
    until = time.monotonic() + 30
    while not desk.text("ran"):
        assert time.monotonic() < until
        time.sleep(0.2)
    desk.client().wait(["a"], 3)
    assert desk.text("ran") == "x\n"
    (desk.folder / "go").touch()
    assert set(desk.wait("a").values()) == {("done", 0)} and desk.text("ran") == "x\n" * 3
